//! Pictures of a posterior: a density for each of few parameters, a line for each of many.

use plotters::prelude::{DrawingBackend, IntoDrawingArea, SVGBackend};
use plotters::style::text_anchor::HPos;
use plotters::style::{RGBColor, WHITE};

use super::Marginal;
use super::axis::ticks;
use super::panel::Panel;
use super::png::png;
use super::style::{
    AXIS, CURVE, INTERVAL, LABEL, LEGEND, MEAN, NAME, Paper, Pen, TAILS, TITLE, WIDTH, fill, line,
    message, text, units,
};
use crate::diagnostics::{mean, quantile};

/// More parameters than this have lines in place of densities.
const MOST_DENSITIES: usize = 12;
/// No more than the first of them have: a picture of a whole network would not fit into memory.
const MOST_LINES: usize = 250;
/// Space around all panels, and between two of them.
const MARGIN: f64 = 24.0;
/// Height of the head, with title and legend.
const HEAD: f64 = 76.0;
/// Height of a panel's name above, and of its tick labels below, the curve.
const PANEL_NAME: f64 = 24.0;
const PANEL_LABELS: f64 = 30.0;
/// Height of a line, and the width of the names beside them.
const LINE: f64 = 20.0;
const NAMES: f64 = 260.0;
/// Intervals that hold 90 % and 50 %, and the mean on them.
const OUTER: Pen = Pen::new(RGBColor(31, 95, 153), 1.5);
const INNER: Pen = Pen::new(RGBColor(31, 95, 153), 4.5);
const DOT: f64 = 4.0;
const ON_LINES: RGBColor = RGBColor(200, 78, 37);

/// What is drawn of parameters.
pub(super) struct Picture<'a> {
    pub parameters: &'a [Marginal],
    pub title: &'a str,
    forest: bool,
    /// How many parameters there are, of which the first are drawn.
    count: usize,
}

impl<'a> Picture<'a> {
    /// Densities, however many.
    pub fn densities(parameters: &'a [Marginal], title: &'a str) -> Self {
        Picture {
            parameters,
            title,
            forest: false,
            count: parameters.len(),
        }
    }

    /// What suits so many.
    pub fn new(parameters: &'a [Marginal], title: &'a str) -> Self {
        let forest = parameters.len() > MOST_DENSITIES;
        let drawn = if forest { MOST_LINES } else { MOST_DENSITIES };
        Picture {
            forest,
            count: parameters.len(),
            ..Self::densities(&parameters[..parameters.len().min(drawn)], title)
        }
    }

    /// As SVG.
    pub fn svg(&self) -> Result<String, String> {
        let height = self.height();
        let size = (units(WIDTH) as u32, units(height) as u32);
        let mut svg = String::new();
        {
            let canvas = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            self.draw(&canvas)?;
            canvas.present().map_err(message)?;
        }
        let in_units = format!(r#"width="{}" height="{}""#, size.0, size.1);
        let in_pixels = format!(r#"width="{WIDTH}" height="{height}""#);
        Ok(svg.replacen(&in_units, &in_pixels, 1))
    }

    /// As PNG.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        png(self.height(), |paper| self.draw(paper))
    }

    /// Few parameters share the width; many go three, then four a row.
    fn grid(&self) -> (usize, f64) {
        match self.parameters.len() {
            1 => (1, 220.0),
            2 => (2, 160.0),
            4 | 10.. => (4, 104.0),
            _ => (3, 104.0),
        }
    }

    fn height(&self) -> f64 {
        let (columns, curve) = self.grid();
        let rows = self.parameters.len().div_ceil(columns) as f64;
        match self.forest {
            true => HEAD + self.parameters.len() as f64 * LINE + PANEL_LABELS + MARGIN / 2.0,
            false => HEAD + rows * (PANEL_NAME + curve + PANEL_LABELS) + MARGIN / 2.0,
        }
    }

    fn draw<B: DrawingBackend>(&self, paper: &Paper<B>) -> Result<(), String> {
        paper.fill(&WHITE).map_err(message)?;
        let title = TITLE.fit(self.title, WIDTH - 2.0 * MARGIN);
        text(paper, TITLE, &title, (MARGIN, 26.0), HPos::Left)?;
        self.draw_legend(paper)?;
        match self.forest {
            true => self.draw_forest(paper),
            false => self.draw_densities(paper),
        }
    }

    /// What the marks mean.
    fn draw_legend<B: DrawingBackend>(&self, paper: &Paper<B>) -> Result<(), String> {
        let noisy = self.parameters.iter().any(|p| p.interval.is_some());
        let interval = match noisy {
            true => "90 % interval, the noise for privacy included",
            false => "90 % interval",
        };
        let (top, middle, bottom) = (48.0, 53.0, 58.0);
        let mut x = MARGIN;
        let marks = match self.forest {
            true => ["mean", "50 % interval", interval],
            false => ["posterior density", interval, "mean"],
        };
        for (k, label) in marks.into_iter().enumerate() {
            let right = x + 14.0;
            match (self.forest, k) {
                (true, 0) => dot(paper, (x + 7.0, middle))?,
                (true, 1) => line(paper, INNER, &[(x, middle), (right, middle)])?,
                (true, _) => line(paper, OUTER, &[(x, middle), (right, middle)])?,
                (false, 2) => line(paper, MEAN, &[(x + 7.0, top), (x + 7.0, bottom)])?,
                (false, _) => {
                    let color = if k == 0 { TAILS } else { INTERVAL };
                    let corners = [(x, bottom), (x, top), (right, top), (right, bottom)];
                    fill(paper, color, &corners)?;
                    line(paper, CURVE, &[(x, top), (right, top)])?;
                }
            }
            text(paper, LEGEND, label, (right + 7.0, middle), HPos::Left)?;
            x = right + 7.0 + LEGEND.width(label) + 12.0;
        }
        let drawn = self.parameters.len();
        if drawn < self.count {
            let note = format!("the first {drawn} of {} parameters", self.count);
            text(paper, LEGEND, &note, (x, middle), HPos::Left)?;
        }
        Ok(())
    }

    fn draw_densities<B: DrawingBackend>(&self, paper: &Paper<B>) -> Result<(), String> {
        let (columns, curve) = self.grid();
        // From the left side of a panel to that of the next.
        let pitch = (WIDTH - MARGIN) / columns as f64;
        for (i, parameter) in self.parameters.iter().enumerate() {
            let left = MARGIN + (i % columns) as f64 * pitch;
            let row = (i / columns) as f64;
            let top = HEAD + row * (PANEL_NAME + curve + PANEL_LABELS) + PANEL_NAME;
            let panel = Panel {
                canvas: paper,
                left,
                right: left + pitch - MARGIN,
                top,
                bottom: top + curve,
                overhang: MARGIN / 2.0 - 2.0,
            };
            panel.draw(parameter)?;
        }
        Ok(())
    }

    fn draw_forest<B: DrawingBackend>(&self, paper: &Paper<B>) -> Result<(), String> {
        let lines: Vec<Option<Line>> = self.parameters.iter().map(Line::of).collect();
        let ends = lines.iter().flatten().flat_map(|l| l.outer);
        let (low, high) = ends.fold((0.0f64, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
        let (left, right) = (MARGIN + NAMES, WIDTH - 2.0 * MARGIN);
        let span = if high - low > 1e-300 { high - low } else { 1.0 };
        let place = |v: f64| left + (v - low) / span * (right - left);
        let bottom = HEAD + self.parameters.len() as f64 * LINE;
        let zero = place(0.0);
        line(paper, AXIS, &[(zero, HEAD), (zero, bottom)])?;
        line(paper, AXIS, &[(left, bottom), (right, bottom)])?;
        for (value, label) in ticks(low, low + span, right - left) {
            let x = place(value);
            line(paper, AXIS, &[(x, bottom), (x, bottom + 4.0)])?;
            text(paper, LABEL, &label, (x, bottom + 12.0), HPos::Center)?;
        }
        for (i, (parameter, drawn)) in self.parameters.iter().zip(&lines).enumerate() {
            let y = HEAD + (i as f64 + 0.5) * LINE;
            let name = NAME.fit(&parameter.name, NAMES - 12.0);
            text(paper, NAME, &name, (left - 12.0, y), HPos::Right)?;
            let Some(drawn) = drawn else {
                text(paper, LEGEND, "beyond what is drawn", (left, y), HPos::Left)?;
                continue;
            };
            for (pen, ends) in [(OUTER, drawn.outer), (INNER, drawn.inner)] {
                let [a, b] = ends.map(|v| (place(v), y));
                line(paper, pen, &[a, b])?;
            }
            dot(paper, (place(drawn.mean), y))?;
        }
        Ok(())
    }
}

/// A parameter as a line.
struct Line {
    mean: f64,
    inner: [f64; 2],
    outer: [f64; 2],
}

impl Line {
    fn of(parameter: &Marginal) -> Option<Self> {
        let draws = parameter.sorted();
        let between = |a, b| [quantile(&draws, a), quantile(&draws, b)];
        let own = between(0.05, 0.95);
        let line = Line {
            mean: mean(&draws),
            inner: between(0.25, 0.75),
            outer: parameter.interval.unwrap_or(own),
        };
        let all = [line.inner, line.outer].concat();
        // A range of such values is a number itself.
        let is_drawn = |v: &f64| v.abs() < 1e300;
        let shown = !draws.is_empty() && all.iter().chain([&line.mean]).all(is_drawn);
        shown.then_some(line)
    }
}

fn dot<B: DrawingBackend>(paper: &Paper<B>, (x, y): (f64, f64)) -> Result<(), String> {
    let corners = [(x - DOT, y), (x, y - DOT), (x + DOT, y), (x, y + DOT)];
    fill(paper, ON_LINES, &corners)
}
