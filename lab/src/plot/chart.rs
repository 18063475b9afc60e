//! A figure: panels of curves, dots, density maps and contours, and what is written of it:
//! SVG, PNG and the numbers.

use std::path::Path;

use plotters::prelude::{DrawingBackend, IntoDrawingArea, SVGBackend};
use plotters::style::WHITE;
use plotters::style::text_anchor::HPos;

use super::diagram::Diagram;
use dpmc::diagnostics::{CellDensity, Cells};
use dpmc::output::plot::png;
use dpmc::output::plot::style::{LEGEND, Paper, TITLE, WIDTH, message, text, units};

/// Space around all panels, and between two of them.
const MARGIN: f64 = 24.0;
/// Room for tick labels left of a panel and for what is above and below it.
const LEFT: f64 = 46.0;
const ABOVE: f64 = 40.0;
const BELOW: f64 = 46.0;
const LEGEND_LINE: f64 = 16.0;
const NOTE_LINE: f64 = 17.0;

/// How an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By factors; values that are not positive are passed over.
    Log,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it counts, with its unit.
    pub label: String,
    /// How.
    pub scale: Scale,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str) -> Self {
        Axis {
            label: label.into(),
            scale: Scale::Linear,
        }
    }

    /// A logarithmic axis.
    pub fn log(label: &str) -> Self {
        Axis {
            label: label.into(),
            scale: Scale::Log,
        }
    }
}

/// How the points of a series are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Joined.
    Solid,
    /// Joined by dashes.
    Dashed,
}

/// Something in a panel.
#[derive(Clone, Debug)]
pub enum Mark {
    /// Points (x, y); those that are not finite are gaps.
    Series {
        /// Name in the legend and in the numbers.
        label: String,
        /// The points, in order.
        points: Vec<(f64, f64)>,
        /// How they are shown.
        stroke: Stroke,
    },
    /// Shares of draws in cells, dark where they are many.
    Map {
        /// Name in the numbers.
        label: String,
        /// The cells.
        cells: Cells,
        /// Share of each, column after column.
        shares: Vec<f64>,
    },
    /// The outlines of a density's smallest regions of given mass.
    Contours {
        /// Name in the legend.
        label: String,
        /// The density.
        density: CellDensity,
        /// Masses, each in (0, 1).
        masses: Vec<f64>,
    },
}

impl Mark {
    /// Joined points.
    pub fn line(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Mark::Series {
            label: label.into(),
            points,
            stroke: Stroke::Solid,
        }
    }

    /// Points joined by dashes: claims, bounds and references.
    pub fn dashed(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Mark::Series {
            label: label.into(),
            points,
            stroke: Stroke::Dashed,
        }
    }

    /// Its name in the legend; maps have none there.
    pub(super) fn legend(&self) -> Option<&str> {
        match self {
            Mark::Series { label, .. } | Mark::Contours { label, .. } => Some(label),
            Mark::Map { .. } => None,
        }
    }
}

/// One panel.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What it shows.
    pub name: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// In drawing order.
    pub marks: Vec<Mark>,
}

/// A figure.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// What exactly is plotted; wrapped below the title.
    pub note: String,
    /// Panels a row.
    pub columns: usize,
    /// Height of a panel's area, pixels.
    pub height: f64,
    /// Panels.
    pub plots: Vec<Plot>,
}

impl Chart {
    /// Writes `STEM.svg`, `STEM.png` and `numbers.csv` into a folder that exists.
    ///
    /// # Errors
    /// A message that names the file.
    pub fn write(&self, folder: &Path, stem: &str) -> Result<(), String> {
        let write = |name: String, bytes: Vec<u8>| {
            let path = folder.join(name);
            std::fs::write(&path, bytes)
                .map_err(|e| format!("cannot write {}: {e}", path.display()))
        };
        write(format!("{stem}.svg"), self.svg()?.into_bytes())?;
        write(
            format!("{stem}.png"),
            png(self.total_height(), |paper| self.draw(paper))?,
        )?;
        write("numbers.csv".into(), self.numbers()?)
    }

    /// The picture as SVG.
    pub(super) fn svg(&self) -> Result<String, String> {
        let height = self.total_height();
        let size = (units(WIDTH) as u32, units(height) as u32);
        let mut svg = String::new();
        {
            let paper = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            self.draw(&paper)?;
            paper.present().map_err(message)?;
        }
        let in_units = format!(r#"width="{}" height="{}""#, size.0, size.1);
        let in_pixels = format!(r#"width="{WIDTH}" height="{height}""#);
        Ok(svg.replacen(&in_units, &in_pixels, 1))
    }

    /// What is plotted: panel, series, x, y, and for maps and densities the share of a cell.
    pub(super) fn numbers(&self) -> Result<Vec<u8>, String> {
        let mut table = csv::Writer::from_writer(Vec::new());
        let fail = |e: csv::Error| format!("cannot write the numbers: {e}");
        table
            .write_record(["panel", "series", "x", "y", "share"])
            .map_err(fail)?;
        for plot in &self.plots {
            let mut row = |label: &str, x: f64, y: f64, share: Option<f64>| {
                let share = share.map_or(String::new(), |s| s.to_string());
                let (x, y) = (x.to_string(), y.to_string());
                table
                    .write_record([&plot.name, label, &x, &y, &share])
                    .map_err(fail)
            };
            for mark in &plot.marks {
                match mark {
                    Mark::Series { label, points, .. } => {
                        for &(x, y) in points {
                            row(label, x, y, None)?;
                        }
                    }
                    Mark::Map {
                        label,
                        cells,
                        shares,
                    } => {
                        for (x, y, share) in filled(cells, shares) {
                            row(label, x, y, Some(share))?;
                        }
                    }
                    // A formula, not a measurement; its cells would drown the rest.
                    Mark::Contours { .. } => {}
                }
            }
        }
        table.into_inner().map_err(|e| e.to_string())
    }

    /// Height of the picture in pixels.
    pub(super) fn total_height(&self) -> f64 {
        let rows = self.plots.len().div_ceil(self.columns.max(1));
        self.head() + rows as f64 * self.row_height()
    }

    fn notes(&self) -> Vec<String> {
        wrap(&self.note, (WIDTH - 2.0 * MARGIN) / LEGEND.width("x"))
    }

    fn head(&self) -> f64 {
        46.0 + NOTE_LINE * self.notes().len() as f64
    }

    fn row_height(&self) -> f64 {
        let legend = |p: &Plot| p.marks.iter().filter(|m| m.legend().is_some()).count();
        let lines = self.plots.iter().map(legend).max().unwrap_or(0);
        ABOVE + self.height + BELOW + LEGEND_LINE * lines as f64 + MARGIN / 2.0
    }

    pub(super) fn draw<B: DrawingBackend>(&self, paper: &Paper<B>) -> Result<(), String> {
        paper.fill(&WHITE).map_err(message)?;
        let title = TITLE.fit(&self.title, WIDTH - 2.0 * MARGIN);
        text(paper, TITLE, &title, (MARGIN, 26.0), HPos::Left)?;
        for (i, note) in self.notes().iter().enumerate() {
            let at = (MARGIN, 50.0 + NOTE_LINE * i as f64);
            text(paper, LEGEND, note, at, HPos::Left)?;
        }
        let columns = self.columns.max(1);
        let pitch = (WIDTH - MARGIN) / columns as f64;
        for (i, plot) in self.plots.iter().enumerate() {
            let left = MARGIN + (i % columns) as f64 * pitch;
            let top = self.head() + (i / columns) as f64 * self.row_height() + ABOVE;
            let diagram = Diagram {
                paper,
                plot,
                left: left + LEFT,
                right: left + pitch - MARGIN,
                top,
                bottom: top + self.height,
            };
            diagram.draw()?;
            diagram.legend(top + self.height + BELOW, left, LEGEND_LINE)?;
        }
        Ok(())
    }
}

/// Centres and shares of the cells that hold anything.
pub(super) fn filled<'a>(
    cells: &'a Cells,
    shares: &'a [f64],
) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
    let rows = cells.bins()[1];
    let held = shares.iter().enumerate().filter(|(_, s)| **s > 0.0);
    held.map(move |(index, &share)| {
        let [x, y] = cells.centre(index / rows, index % rows);
        (x, y, share)
    })
}

/// Lines of at most `characters` characters, broken between words.
fn wrap(text: &str, characters: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line)
                if (line.chars().count() + 1 + word.chars().count()) as f64 <= characters =>
            {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
