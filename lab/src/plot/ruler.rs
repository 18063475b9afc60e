//! Where a panel's values lie: the range of its axes, places and ticks.

use super::chart::Scale;
use dpmc::output::plot::axis::ticks;

/// Labels of ticks are estimated too wide: panels have room for four of them.
const ROOM: f64 = 2.0;

/// From values to places.
#[derive(Clone, Copy)]
pub(super) struct Ruler {
    pub(super) scale: Scale,
    /// Ends in the scale's own unit (decades if logarithmic).
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Ruler {
    /// The place of a value, where it has one.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let v = unit(self.scale, value)?;
        Some(self.from + (v - self.low) / (self.high - self.low) * (self.to - self.from))
    }

    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => ticks(self.low, self.high, ROOM * (self.to - self.from).abs()),
            Scale::Log if self.high - self.low < 0.4 => {
                let (low, high) = (10f64.powf(self.low), 10f64.powf(self.high));
                ticks(low, high, ROOM * (self.to - self.from).abs())
            }
            Scale::Log => log_ticks(self.low, self.high),
        }
    }
}

/// A value in the scale's own unit, where it has one.
pub(super) fn unit(scale: Scale, value: f64) -> Option<f64> {
    let v = match scale {
        Scale::Linear => value,
        Scale::Log if value > 0.0 => value.log10(),
        Scale::Log => return None,
    };
    v.is_finite().then_some(v)
}

/// Powers of ten, every few where they are many, with others between where they are few.
fn log_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let (first, last) = (low.ceil() as i32, high.floor() as i32);
    let steps: &[f64] = match high - low {
        ..0.7 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
        ..2.2 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let every = ((last - first) / 6 + 1).max(1) as usize;
    (first - 1..=last)
        .rev()
        .step_by(every)
        .flat_map(|k| steps.iter().map(move |s| (k, s)))
        .map(|(k, s)| (s * 10f64.powi(k), k, *s))
        .filter(|(v, ..)| (low - 1e-9..=high + 1e-9).contains(&v.log10()))
        .map(|(v, k, s)| {
            let label = match k {
                -3..=4 => format!("{}", (v * 1e6).round() / 1e6),
                _ => format!("{s}e{k}").replace('-', "−"),
            };
            (v, label)
        })
        .collect()
}

/// Smallest and largest of what was included.
#[derive(Default)]
pub(super) struct Extent(Option<(f64, f64)>);

impl Extent {
    pub(super) fn include(&mut self, v: f64) {
        self.0 = Some(self.0.map_or((v, v), |(l, h)| (l.min(v), h.max(v))));
    }

    /// Ends with some slack on both sides; never equal.
    pub(super) fn ends(&self, slack: f64) -> (f64, f64) {
        let (low, high) = self.0.unwrap_or((0.0, 1.0));
        let size = high - low;
        if size > 1e-9 * low.abs().max(high.abs()) && size.is_normal() {
            (low - slack * size, high + slack * size)
        } else {
            let around = 0.5 * low.abs().max(1.0);
            (low - around, high + around)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However narrow or wide a logarithmic axis: two to thirteen ticks, all on it.
    #[test]
    fn logarithmic_axes_have_ticks() {
        for low in [-7.3, -2.0, -0.09, 0.0, 3.96] {
            for size in [0.01, 0.07, 0.3, 0.45, 0.69, 0.71, 1.5, 2.3, 5.0, 13.0] {
                let ruler = Ruler {
                    scale: Scale::Log,
                    low,
                    high: low + size,
                    from: 0.0,
                    to: 200.0,
                };
                let places: Vec<f64> = ruler
                    .ticks()
                    .iter()
                    .filter_map(|(v, _)| ruler.place(*v))
                    .collect();
                assert!((2..=13).contains(&places.len()), "{low} {size}: {places:?}");
                assert!(places.iter().all(|p| (-0.1..=200.1).contains(p)));
            }
        }
    }
}
