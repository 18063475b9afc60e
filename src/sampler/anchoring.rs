//! The private warm start: noisy Newton steps in coordinates whitened by the step before,
//! then the anchor itself (mathematics, section 4.1). All of it is post-processing of
//! releases that the curator charges.

use super::anchored::gaussian;
use crate::model::{Anchor, Lower, Metric, Prior};
use crate::privacy::{AnchorNoise, Halt, Releases};

/// ρ of the parts of an anchored run, nats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnchorSplit {
    /// Newton steps of the warm start together.
    pub start: f64,
    /// The anchor's gradient.
    pub gradient: f64,
    /// The anchor's curvature.
    pub curvature: f64,
}

impl AnchorSplit {
    /// All of it.
    pub fn rho(&self) -> f64 {
        self.start + self.gradient + self.curvature
    }
}

/// How an anchor is found and released.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchoring {
    /// First point, public.
    pub start: Vec<f64>,
    /// Newton steps; 0 anchors at `start`.
    pub stages: u32,
    /// Rows N.
    pub rows: usize,
    /// Declared bound B on a row's norm.
    pub row_norm: f64,
    /// Tempering κ.
    pub tempering: f64,
    /// Rows are clipped at this multiple of `√(4d/(κN))` in whitened coordinates, which is
    /// at most the root mean square of their norms there: Σ κw‖L⁻¹x‖² = d and w ≤ 1/4.
    pub clip: f64,
    /// The target is restricted to ‖u‖ ≤ radius.
    pub radius: f64,
    /// What may be spent; `None` in a non-private run, whose anchor is exact.
    pub split: Option<AnchorSplit>,
}

impl Anchoring {
    /// Finds and releases the anchor.
    ///
    /// # Errors
    /// [`Halt::Failed`] where the warm start does not settle (what was spent stays charged),
    /// and the curator's own.
    pub fn run(&self, prior: &Prior, releases: &mut dyn Releases) -> Result<Anchor, Halt> {
        let d = self.start.len();
        let mut at = self.start.clone();
        let mut metric = Metric::identity(d, self.row_norm);
        for stage in 1..=self.stages {
            let noise = self.split.map(|s| {
                let each = multiplier(0.5 * self.stage_rho(stage, s.start));
                AnchorNoise {
                    gradient: each,
                    curvature: each,
                }
            });
            let anchor = self.release(&at, &metric, noise, releases)?;
            let (step, precision) = self.newton(&anchor, prior)?;
            at = inside(anchor.theta(&step), &at, prior);
            // How far the step went in units of its own posterior sd.
            let length = norm(&precision.transposed_times(&step)) / (d as f64).sqrt();
            let settled = 10.0 * (1.0 + self.start_error());
            if stage == self.stages && (length.is_nan() || length > settled) {
                return Err(Halt::Failed(format!(
                    "the warm start did not settle: its last Newton step was {length:.1} posterior sds long; what it cost is spent. Give a start closer by, more stages, or a larger budget"
                )));
            }
            metric = self.next_metric(&metric, &precision);
        }
        let noise = self.split.map(|s| AnchorNoise {
            gradient: multiplier(s.gradient),
            curvature: multiplier(s.curvature),
        });
        self.release(&at, &metric, noise, releases)
    }

    fn release(
        &self,
        at: &[f64],
        metric: &Metric,
        noise: Option<AnchorNoise>,
        releases: &mut dyn Releases,
    ) -> Result<Anchor, Halt> {
        let expansion = releases.anchor(at, metric, noise)?;
        Ok(Anchor {
            at: at.to_vec(),
            metric: metric.clone(),
            gradient: expansion.gradient,
            curvature: expansion.curvature,
            gradient_sd: expansion.gradient_sd,
            curvature_sd: expansion.curvature_sd,
            radius: self.radius,
        })
    }

    /// The step to the expansion's own centre, and its precision factor; a ridge of twice
    /// the noise's spectral norm keeps weak directions from being followed on noise alone.
    fn newton(&self, anchor: &Anchor, prior: &Prior) -> Result<(Vec<f64>, Lower), Halt> {
        let d = anchor.at.len();
        let mut raised = anchor.clone();
        let ridge = anchor.curvature_sd * (2.0 * d as f64).sqrt();
        for i in 0..d {
            raised.curvature[i * d + i] += ridge;
        }
        let (precision, centre) = gaussian(&raised, prior)
            .filter(|(p, c)| p.is_valid() && c.iter().all(|v| v.is_finite()))
            .ok_or_else(|| {
                Halt::Failed(
                    "the warm start's curvature cannot be inverted; give a start or a larger budget"
                        .into(),
                )
            })?;
        Ok((centre, precision))
    }

    /// Whitened by the precision just found, with the row bound that goes with it.
    fn next_metric(&self, metric: &Metric, precision: &Lower) -> Metric {
        let factor = metric.factor.compose(precision);
        let d = factor.dim() as f64;
        let usual = (4.0 * d / (self.tempering * self.rows as f64)).sqrt();
        let largest = self.row_norm * factor.inverse_norm();
        Metric {
            factor,
            row_bound: (self.clip * usual).min(largest),
        }
    }

    /// ρ of a Newton step: the last one, which decides where the anchor lies, gets three
    /// times as much as the others.
    fn stage_rho(&self, stage: u32, start: f64) -> f64 {
        let weight = if stage == self.stages { 3.0 } else { 1.0 };
        start * weight / (f64::from(self.stages) + 2.0)
    }

    /// Expected noise of the last Newton step, in posterior sds a coordinate.
    pub fn start_error(&self) -> f64 {
        self.split.map_or(0.0, |s| {
            self.gradient_noise(0.5 * self.stage_rho(self.stages, s.start))
        })
    }

    /// Noise of a whitened gradient released for ρ, nats a posterior sd.
    pub fn gradient_noise(&self, rho: f64) -> f64 {
        let d = self.start.len() as f64;
        let bound = self.clip * (4.0 * d / (self.tempering * self.rows as f64)).sqrt();
        2.0 * self.tempering * bound * multiplier(rho)
    }

    /// Expected ‖u‖² of a draw: the posterior's own spread and both noises.
    pub fn typical_square(&self) -> f64 {
        let d = self.start.len() as f64;
        let anchor = self.split.map_or(0.0, |s| self.gradient_noise(s.gradient));
        let start = if self.stages > 0 {
            self.start_error()
        } else {
            0.0
        };
        d * (1.0 + start * start + anchor * anchor)
    }
}

/// τ of a discrete Gaussian that costs ρ, rounded up a little so that the charge, rounded
/// up too, stays within ρ.
fn multiplier(rho: f64) -> f64 {
    (0.5 / rho).sqrt() * (1.0 + 2e-5)
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// `to`, or the last point on the way there from `from` (in tenths) that the support holds.
fn inside(to: Vec<f64>, from: &[f64], prior: &Prior) -> Vec<f64> {
    for tenths in (1..=10).rev() {
        let share = f64::from(tenths) / 10.0;
        let point: Vec<f64> = from
            .iter()
            .zip(&to)
            .map(|(a, b)| a + share * (b - a))
            .collect();
        if prior.contains(&point) {
            return point;
        }
    }
    from.to_vec()
}
