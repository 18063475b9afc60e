//! One panel: the marginal density of one parameter.

use plotters::prelude::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::Marginal;
use super::axis::{constant_label, ticks};
use super::style::{
    AXIS, CURVE, INTERVAL, LABEL, LEGEND, MEAN, NAME, Paper, Point, TAILS, fill, line, text,
};
use crate::diagnostics::{density, mean, quantile};

/// Pixels between two places where the density is computed.
const RESOLUTION: f64 = 1.5;

/// The rectangle that a density fills, in pixels of the picture. Its name is
/// written above it and its ticks below.
pub(super) struct Panel<'a, B: DrawingBackend> {
    pub(super) canvas: &'a Paper<B>,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// How far tick labels may reach beyond `left` and `right`.
    pub(super) overhang: f64,
}

impl<B: DrawingBackend> Panel<'_, B> {
    /// Draws the density of the draws pooled over chains.
    pub(super) fn draw(&self, parameter: &Marginal) -> Result<(), String> {
        let width = self.right - self.left;
        let name = NAME.fit(&parameter.name, width);
        let above = (self.left, self.top - 11.0);
        text(self.canvas, NAME, &name, above, HPos::Left)?;
        let (left_end, right_end) = ((self.left, self.bottom), (self.right, self.bottom));
        line(self.canvas, AXIS, &[left_end, right_end])?;

        let draws = parameter.sorted();
        let points = (width / RESOLUTION) as usize;
        let curve = density(&draws, points, parameter.effective());
        let (Some(&(low, _)), Some(&(high, _))) = (curve.first(), curve.last()) else {
            return self.draw_constant(&draws);
        };

        let place = |x: f64| self.left + (x - low) / (high - low) * width;
        let peak = curve.iter().fold(0.0, |peak: f64, &(_, y)| peak.max(y));
        let curve: Vec<Point> = curve
            .iter()
            .map(|&(x, y)| (place(x), self.bottom - y / peak * (self.bottom - self.top)))
            .collect();
        self.fill_below(&curve, TAILS, self.left, self.right)?;
        let own = [quantile(&draws, 0.05), quantile(&draws, 0.95)];
        let interval = parameter
            .interval
            .filter(|i| i.iter().all(|v| v.is_finite()));
        // What is shown of it: it may be wider than the curve.
        let [from, to] = interval.unwrap_or(own).map(|v| place(v.clamp(low, high)));
        self.fill_below(&curve, INTERVAL, from, to)?;
        line(self.canvas, CURVE, &curve)?;

        let centre = mean(&draws);
        // A few far draws can take the mean out of the range that is shown.
        if (low..=high).contains(&centre) {
            let x = place(centre);
            line(
                self.canvas,
                MEAN,
                &[(x, height_at(&curve, x)), (x, self.bottom)],
            )?;
        }
        for (value, label) in ticks(low, high, width) {
            self.tick(place(value), &label)?;
        }
        Ok(())
    }

    /// Draws that have no density: a line at their one value, if there is any.
    fn draw_constant(&self, sorted: &[f64]) -> Result<(), String> {
        let middle = (self.left + self.right) / 2.0;
        if sorted.is_empty() {
            let at = (middle, (self.top + self.bottom) / 2.0);
            return text(self.canvas, LEGEND, "no finite draws", at, HPos::Center);
        }
        line(
            self.canvas,
            MEAN,
            &[(middle, self.top), (middle, self.bottom)],
        )?;
        self.tick(middle, &constant_label(quantile(sorted, 0.5)))
    }

    /// Fills the area below the curve between two horizontal places.
    fn fill_below(
        &self,
        curve: &[Point],
        color: RGBColor,
        from: f64,
        to: f64,
    ) -> Result<(), String> {
        let mut corners = vec![(from, self.bottom), (from, height_at(curve, from))];
        corners.extend(curve.iter().filter(|(x, _)| (from..to).contains(x)));
        corners.extend([(to, height_at(curve, to)), (to, self.bottom)]);
        fill(self.canvas, color, &corners)
    }

    fn tick(&self, x: f64, label: &str) -> Result<(), String> {
        line(
            self.canvas,
            AXIS,
            &[(x, self.bottom), (x, self.bottom + 4.0)],
        )?;
        // A long label near an end is moved inwards, off the next panel's.
        let inwards = LABEL.width(label) / 2.0 - self.overhang;
        let x = x.min(self.right - inwards).max(self.left + inwards);
        text(
            self.canvas,
            LABEL,
            label,
            (x, self.bottom + 12.0),
            HPos::Center,
        )
    }
}

/// The curve's vertical place at `x`, by linear interpolation.
fn height_at(curve: &[Point], x: f64) -> f64 {
    let after = curve.partition_point(|&(at, _)| at < x);
    match (curve.get(after.wrapping_sub(1)), curve.get(after)) {
        (Some(a), Some(b)) => a.1 + (x - a.0) / (b.0 - a.0) * (b.1 - a.1),
        (Some(end), None) | (None, Some(end)) => end.1,
        (None, None) => 0.0,
    }
}
