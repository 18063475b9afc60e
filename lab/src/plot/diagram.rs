//! One panel of a figure: axes, curves, dots, maps and contours.

use plotters::prelude::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::chart::{Axis, Mark, Plot, Stroke, filled};
use super::contours::outline;
use super::ruler::{Extent, Ruler, unit};
use dpmc::output::plot::style::{AXIS, LABEL, LEGEND, NAME, Paper, Pen, Point, fill, line, text};

/// Colours that the colour-blind tell apart (Okabe & Ito 2008), yellow left out.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(150, 110, 0),
    RGBColor(40, 40, 40),
];
/// What tells one mark from another.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tone {
    color: RGBColor,
    /// Lines have dots at their points: the colours are used for the second time.
    dotted: bool,
}

/// The tone of a panel's mark `i`.
fn tone(i: usize) -> Tone {
    Tone {
        color: COLORS[i % COLORS.len()],
        dotted: (i / COLORS.len()) % 2 == 1,
    }
}

/// Length of a dash and of the gap after it, pixels.
const DASH: (f64, f64) = (7.0, 4.0);

/// The rectangle in which a panel's marks are drawn, pixels.
pub(super) struct Diagram<'a, B: DrawingBackend> {
    pub(super) paper: &'a Paper<B>,
    pub(super) plot: &'a Plot,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl<B: DrawingBackend> Diagram<'_, B> {
    /// Draws everything but the legend.
    pub(super) fn draw(&self) -> Result<(), String> {
        let name = NAME.fit(&self.plot.name, self.right - self.left + 40.0);
        text(
            self.paper,
            NAME,
            &name,
            (self.left - 40.0, self.top - 30.0),
            HPos::Left,
        )?;
        let (x, y) = self.rulers();
        self.axes(x, y)?;
        let mut color = self.first_color();
        for mark in &self.plot.marks {
            self.mark(mark, tone(color), x, y)?;
            color += usize::from(mark.legend().is_some());
        }
        Ok(())
    }

    /// Names of the marks below the panel, one a line.
    pub(super) fn legend(&self, top: f64, left: f64, pitch: f64) -> Result<(), String> {
        let named = self
            .plot
            .marks
            .iter()
            .filter_map(|m| Some((m, m.legend()?)));
        for (i, (mark, label)) in named.enumerate() {
            let y = top + pitch * i as f64;
            let tone = tone(self.first_color() + i);
            let stroke = match mark {
                Mark::Series { stroke, .. } => *stroke,
                _ => Stroke::Solid,
            };
            self.stroke(&[(left, y), (left + 22.0, y)], stroke, tone)?;
            let label = LEGEND.fit(label, self.right - left - 26.0);
            text(self.paper, LEGEND, &label, (left + 28.0, y), HPos::Left)?;
        }
        Ok(())
    }

    fn has_map(&self) -> bool {
        let mut marks = self.plot.marks.iter();
        marks.any(|m| matches!(m, Mark::Map { .. }))
    }

    /// Maps are blue: what is drawn on one is not.
    fn first_color(&self) -> usize {
        usize::from(self.has_map())
    }

    fn rulers(&self) -> (Ruler, Ruler) {
        let mut xs = Extent::default();
        let mut ys = Extent::default();
        for mark in &self.plot.marks {
            match mark {
                Mark::Series { points, .. } => {
                    for &(x, y) in points {
                        let placed = unit(self.plot.x.scale, x).zip(unit(self.plot.y.scale, y));
                        if let Some((x, y)) = placed {
                            xs.include(x);
                            ys.include(y);
                        }
                    }
                }
                Mark::Map { cells, .. } => {
                    for (j, extent) in [(0, &mut xs), (1, &mut ys)] {
                        let (low, high) = cells.side(j);
                        extent.include(low);
                        extent.include(high);
                    }
                }
                Mark::Contours { .. } => {}
            }
        }
        let slack = if self.has_map() { 0.0 } else { 0.04 };
        let ruler = |axis: &Axis, extent: Extent, slack: f64, from: f64, to: f64| {
            let (low, high) = extent.ends(slack);
            Ruler {
                scale: axis.scale,
                low,
                high,
                from,
                to,
            }
        };
        (
            ruler(&self.plot.x, xs, 0.0, self.left, self.right),
            ruler(&self.plot.y, ys, slack, self.bottom, self.top),
        )
    }

    fn axes(&self, x: Ruler, y: Ruler) -> Result<(), String> {
        let corner = (self.left, self.bottom);
        line(
            self.paper,
            AXIS,
            &[(self.left, self.top), corner, (self.right, self.bottom)],
        )?;
        for (value, label) in x.ticks() {
            if let Some(at) = x.place(value) {
                line(
                    self.paper,
                    AXIS,
                    &[(at, self.bottom), (at, self.bottom + 4.0)],
                )?;
                let place = (at, self.bottom + 12.0);
                text(self.paper, LABEL, &label, place, HPos::Center)?;
            }
        }
        for (value, label) in y.ticks() {
            if let Some(at) = y.place(value) {
                line(self.paper, AXIS, &[(self.left - 4.0, at), (self.left, at)])?;
                text(
                    self.paper,
                    LABEL,
                    &label,
                    (self.left - 7.0, at),
                    HPos::Right,
                )?;
            }
        }
        let (x, y) = (&self.plot.x.label, &self.plot.y.label);
        let (below, above) = (
            (self.right, self.bottom + 27.0),
            (self.left - 40.0, self.top - 13.0),
        );
        text(self.paper, LABEL, x, below, HPos::Right)?;
        text(self.paper, LABEL, y, above, HPos::Left)
    }

    fn mark(&self, mark: &Mark, tone: Tone, x: Ruler, y: Ruler) -> Result<(), String> {
        match mark {
            Mark::Series { points, stroke, .. } => {
                let mut run: Vec<Point> = Vec::new();
                for &(px, py) in points {
                    if let (Some(px), Some(py)) = (x.place(px), y.place(py)) {
                        run.push((px, py));
                    } else {
                        self.stroke(&run, *stroke, tone)?;
                        run.clear();
                    }
                }
                self.stroke(&run, *stroke, tone)
            }
            Mark::Map { cells, shares, .. } => {
                let most = shares.iter().copied().fold(0.0, f64::max);
                let half = [0, 1].map(|j| {
                    let (low, high) = cells.side(j);
                    0.5 * (high - low) / cells.bins()[j] as f64
                });
                for (cx, cy, share) in filled(cells, shares) {
                    let sides = (
                        x.place(cx - half[0]).zip(x.place(cx + half[0])),
                        y.place(cy - half[1]).zip(y.place(cy + half[1])),
                    );
                    if let (Some((l, r)), Some((b, t))) = sides {
                        let corners = [(l, b), (l, t), (r, t), (r, b)];
                        fill(self.paper, shade(share / most), &corners)?;
                    }
                }
                Ok(())
            }
            Mark::Contours {
                density, masses, ..
            } => {
                for (from, to) in masses.iter().flat_map(|&m| outline(density, m)) {
                    let place = |p: [f64; 2]| x.place(p[0]).zip(y.place(p[1]));
                    if let (Some(from), Some(to)) = (place(from), place(to))
                        && self.holds(from)
                        && self.holds(to)
                    {
                        line(self.paper, Pen::new(tone.color, 1.5), &[from, to])?;
                    }
                }
                Ok(())
            }
        }
    }

    fn holds(&self, (x, y): Point) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }

    fn stroke(&self, run: &[Point], stroke: Stroke, tone: Tone) -> Result<(), String> {
        let pen = Pen::new(tone.color, 1.75);
        match stroke {
            Stroke::Solid if run.len() > 1 => {
                line(self.paper, pen, run)?;
                if tone.dotted {
                    self.dots(run, tone)?;
                }
                Ok(())
            }
            Stroke::Dashed => {
                for dash in dashes(run) {
                    line(self.paper, pen, &dash)?;
                }
                Ok(())
            }
            _ => self.dots(run, tone),
        }
    }

    fn dots(&self, run: &[Point], tone: Tone) -> Result<(), String> {
        for &(x, y) in run {
            let (l, r, t, b) = (x - 2.5, x + 2.5, y - 2.5, y + 2.5);
            fill(self.paper, tone.color, &[(l, b), (l, t), (r, t), (r, b)])?;
        }
        Ok(())
    }
}

/// White where nothing is, blue where most is; the root shows the tails.
fn shade(share: f64) -> RGBColor {
    let dark = share.clamp(0.0, 1.0).sqrt();
    let mix = |light: f64, full: f64| (light + dark * (full - light)) as u8;
    RGBColor(mix(238.0, 22.0), mix(244.0, 80.0), mix(250.0, 140.0))
}

/// Cuts a run of points into dashes.
fn dashes(run: &[Point]) -> Vec<Vec<Point>> {
    let mut found = Vec::new();
    let mut current: Vec<Point> = run.first().map(|&p| vec![p]).unwrap_or_default();
    let (mut drawing, mut left) = (true, DASH.0);
    for pair in run.windows(2) {
        let (mut at, to) = (pair[0], pair[1]);
        loop {
            let size = (to.0 - at.0).hypot(to.1 - at.1);
            if size <= left {
                left -= size;
                break;
            }
            at = (
                at.0 + left / size * (to.0 - at.0),
                at.1 + left / size * (to.1 - at.1),
            );
            if drawing {
                current.push(at);
                found.push(std::mem::take(&mut current));
            } else {
                current = vec![at];
            }
            drawing = !drawing;
            left = if drawing { DASH.0 } else { DASH.1 };
        }
        if drawing {
            current.push(to);
        }
    }
    if drawing && current.len() > 1 {
        found.push(current);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fourteen_marks_differ() {
        let tones: Vec<Tone> = (0..14).map(tone).collect();
        for (i, tone) in tones.iter().enumerate() {
            assert!(!tones[..i].contains(tone), "{i}");
        }
    }

    #[test]
    fn dashes_cover_a_line_up_to_their_gaps() {
        let found = dashes(&[(0.0, 0.0), (50.0, 0.0), (50.0, 60.0)]);
        let length = |d: &Vec<Point>| -> f64 {
            let pairs = d.windows(2);
            pairs
                .map(|p| (p[1].0 - p[0].0).hypot(p[1].1 - p[0].1))
                .sum()
        };
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|d| (length(d) - DASH.0).abs() < 1e-9));
        assert!(dashes(&[]).is_empty() && dashes(&[(1.0, 1.0)]).is_empty());
    }
}
