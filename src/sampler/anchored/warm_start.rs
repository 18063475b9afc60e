//! The private warm start of a network: noisy Newton steps in coordinates whitened by the step
//! before, then the anchor itself (docs/proofs/anchors.md). All of it is post-processing of
//! releases that the curator charges.

use super::moves::gaussian;
use super::structure::Structure;
use crate::expression::Location;
use crate::model::{Anchor, Lower, Metric, Prior, Slopes};
use crate::privacy::{AnchorNoise, Expansion, Halt, Releases};

/// Longest Newton step of a network, root mean square of the predictor's change: beyond, it is no
/// longer its own expansion.
const LONGEST_STEP: f64 = 1.5;
/// Share of a network's steps that is made: its Gauss–Newton matrix lacks the score's curvature,
/// and whole steps of two units already run in circles where that counts.
const NETWORK_SHARE: f64 = 0.5;
/// Longest move of a network's θ in a step: beyond, the step is damped (Levenberg 1944, Marquardt
/// 1963) in the directions that rows tell little of, where the expansion says least of the network.
const NETWORK_REACH: f64 = 2.0;
/// Tries of a damping, each this many times the one before.
const DAMPINGS: i32 = 10;
const MORE_DAMPING: f64 = 8.0;
/// Multiple of the root mean square at which rows are usually clipped.
const USUAL_CLIP: f64 = 2.0;
/// The anchor may lie this many posterior sds a coordinate from its expansion's centre.
const FARTHEST: f64 = 6.0;
/// The same where rows have no remainders, so that far away costs nothing but clipped scores.
const FARTHEST_FLAT: f64 = 25.0;

/// ρ of the parts of an anchored run, nats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnchorSplit {
    /// A network's warm start; of a regression the most that its path may take, and what that
    /// leaves goes to gradients and curvature.
    pub start: f64,
    /// The anchor's gradient.
    pub gradient: f64,
    /// The anchor's curvature.
    pub curvature: f64,
    /// A second expansion at the mean of the warm-up's draws; 0 for none.
    pub refresh: f64,
}

impl AnchorSplit {
    /// All of it.
    pub fn rho(&self) -> f64 {
        self.start + self.gradient + self.curvature + self.refresh
    }
}

/// How an anchor is found and released.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchoring {
    /// First point, public.
    pub start: Vec<f64>,
    /// A network's Newton steps, a regression's stages at most; 0 anchors about `start`.
    pub stages: u32,
    /// What tells where labels lie; `None` where `start` is to stay.
    pub location: Option<Location>,
    /// Rows N, or units.
    pub rows: usize,
    /// Declared bound B on a row's norm.
    pub row_norm: f64,
    /// Tempering κ times the model's unit (1/s² of a linear one).
    pub unit: f64,
    /// The model's scores and weights with their bounds.
    pub slopes: Slopes,
    /// What declarations alone say of the features.
    pub structure: Structure,
    /// Rows are clipped at this multiple of the expected root mean square of their norms in
    /// whitened coordinates; `None` follows a released profile of the norms.
    pub clip: Option<f64>,
    /// The target is restricted to ‖u‖ ≤ radius.
    pub radius: f64,
    /// What may be spent; `None` in a non-private run, whose anchor is exact.
    pub split: Option<AnchorSplit>,
    /// Whether no decisions are made at the anchor, so that rows' remainders do not matter.
    pub undecided: bool,
}

impl Anchoring {
    /// Finds and releases the anchor.
    ///
    /// # Errors
    /// [`Halt::Failed`] where the warm start does not settle (what was spent stays charged),
    /// and the curator's own.
    pub fn run(&self, prior: &Prior, releases: &mut dyn Releases) -> Result<Anchor, Halt> {
        if !self.slopes.predictor.is_network() {
            return self.follow(prior, releases);
        }
        let d = self.start.len();
        let mut at = self.start.clone();
        let mut metric = Metric::identity(d, self.norm(&at));
        for stage in 1..=self.stages {
            let each = self
                .split
                .map_or(0.0, |s| multiplier(0.5 * self.stage_rho(stage, s.start)));
            let noise = AnchorNoise::expansion(each, each);
            let anchor = self.release(&at, &metric, noise, releases)?;
            let (precision, mut step) = self.newton(&anchor, prior)?;
            let factor = metric.factor.compose(&precision);
            self.shorten(&mut step, &precision);
            at = inside(anchor.theta(&step), &at, prior);
            // How far the step went in units of its own posterior sd.
            let length = norm(&precision.transposed_times(&step)) / (d as f64).sqrt();
            let settled = 10.0 * (1.0 + self.start_error());
            if stage == self.stages && (length.is_nan() || length > settled) {
                return Err(Halt::Failed(format!(
                    "the warm start did not settle: its last Newton step was {length:.1} posterior sds long; what it cost is spent. Give a start closer by, more stages, or a larger budget"
                )));
            }
            let row_bound = self.row_bound(&factor, &at);
            metric = Metric { factor, row_bound };
        }
        let tau = |part: fn(AnchorSplit) -> f64| self.split.map_or(0.0, |s| multiplier(part(s)));
        let noise = AnchorNoise::expansion(tau(|s| s.gradient), tau(|s| s.curvature));
        self.centred(self.release(&at, &metric, noise, releases)?, prior)
    }

    /// The anchor with its ellipsoid around the centre of its own Gaussian.
    pub(super) fn centred(&self, mut anchor: Anchor, prior: &Prior) -> Result<Anchor, Halt> {
        let d = anchor.at.len();
        let (precision, centre) = gaussian(&anchor, prior, 0.0)
            .ok_or_else(|| Halt::Failed("the anchor's curvature cannot be inverted".into()))?;
        let far = norm(&precision.transposed_times(&centre)) / (d as f64).sqrt();
        let farthest = match self.slopes.is_quadratic() {
            true => FARTHEST_FLAT,
            false => FARTHEST,
        };
        if far.is_nan() || far > farthest {
            return Err(Halt::Failed(format!(
                "the anchor lies {far:.1} posterior sds a coordinate from the centre of its own expansion; what it cost is spent. The budget is too small for this posterior: raise epsilon, declare tighter bounds (count, clamp, row_norm), or temper the likelihood"
            )));
        }
        anchor.centre = centre;
        Ok(anchor)
    }

    fn release(
        &self,
        at: &[f64],
        metric: &Metric,
        noise: AnchorNoise,
        releases: &mut dyn Releases,
    ) -> Result<Anchor, Halt> {
        Ok(self.anchor_of(at, metric, releases.anchor(at, metric, noise)?))
    }

    /// An expansion as it was released.
    pub(super) fn anchor_of(&self, at: &[f64], metric: &Metric, expansion: Expansion) -> Anchor {
        Anchor {
            at: at.to_vec(),
            metric: metric.clone(),
            gradient: expansion.gradient,
            curvature: expansion.curvature,
            gradient_sd: expansion.gradient_sd,
            curvature_sd: expansion.curvature_sd,
            centre: vec![0.0; at.len()],
            radius: self.radius,
            spread: Vec::new(),
            doubts: Default::default(),
            alone: None,
        }
    }

    /// The expansion's precision factor, and the step to its centre; a ridge of
    /// about the noise's spectral norm keeps weak directions from being followed on noise alone.
    fn newton(&self, anchor: &Anchor, prior: &Prior) -> Result<(Lower, Vec<f64>), Halt> {
        let d = anchor.at.len();
        let mut raised = anchor.clone();
        let ridge = anchor.curvature_sd * (2.0 * d as f64).sqrt();
        for i in 0..d {
            raised.curvature[i * d + i] += ridge;
        }
        let solve = |damping: f64| {
            gaussian(&raised, prior, damping)
                .filter(|(p, c)| p.is_valid() && c.iter().all(|v| v.is_finite()))
                .ok_or_else(|| {
                    Halt::Failed(
                        "the warm start's curvature cannot be inverted; give a start or a larger budget"
                            .into(),
                    )
                })
        };
        let (precision, mut step) = solve(0.0)?;
        let reach = |u: &[f64]| norm(&anchor.metric.factor.solve_transposed(u));
        for k in 0..DAMPINGS {
            if NETWORK_SHARE * reach(&step) <= NETWORK_REACH {
                break;
            }
            step = solve(MORE_DAMPING.powi(k) / NETWORK_REACH.powi(2))?.1;
        }
        Ok((precision, step))
    }

    /// Bound of rows whitened by `factor`. A network's rows change with θ as its weights do: theirs
    /// are what is expected of a posterior.
    fn row_bound(&self, factor: &Lower, at: &[f64]) -> f64 {
        self.typical_bound()
            .min(self.norm(at) * factor.inverse_norm())
    }

    /// True bound of a row's z at `at`, in plain coordinates.
    fn norm(&self, at: &[f64]) -> f64 {
        self.slopes.predictor.norm(at, self.row_norm)
    }

    /// The bound to expect before anything is released.
    pub fn typical_bound(&self) -> f64 {
        let d = self.start.len() as f64;
        self.clip.unwrap_or(USUAL_CLIP) * (d / self.whole_weight(self.slopes.typical_weight)).sqrt()
    }

    /// Σ κw where the mean weight is `weight` of that at the origin.
    fn whole_weight(&self, weight: f64) -> f64 {
        weight * self.slopes.first_weight * self.unit * self.expected_rows()
    }

    /// Rows that are expected of all units.
    pub(super) fn expected_rows(&self) -> f64 {
        self.rows as f64 * self.slopes.expected_rows()
    }

    /// The same as so many rows of the largest weight.
    pub(super) fn expected_weights(&self) -> f64 {
        self.expected_rows() * self.slopes.mean_share
    }

    /// Rows of all units at most.
    pub(super) fn most_rows(&self) -> f64 {
        self.rows as f64 * f64::from(self.slopes.rows_of_unit)
    }

    /// Keeps a Newton step from overshooting where the expansion holds near by only: the root mean
    /// square of its change of η is `‖Kᵀu‖/√(κNw̄)`, K the precision's factor.
    fn shorten(&self, step: &mut [f64], precision: &Lower) {
        let length = norm(&precision.transposed_times(step));
        let change = length / self.whole_weight(self.slopes.typical_weight).sqrt();
        let share = NETWORK_SHARE.min(LONGEST_STEP / change);
        step.iter_mut().for_each(|s| *s *= share);
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

    /// ρ of the warm start whose last Newton step has this error.
    pub fn start_rho(&self, error: f64) -> f64 {
        // error = 2κsb τ with ρ = 1/(2τ²), of which the last step's gradient gets its part.
        let gradient = 2.0 * (self.gradient_bound() / error).powi(2);
        gradient / (0.5 * self.stage_rho(self.stages, 1.0))
    }

    /// Noise of a whitened gradient released for ρ, nats a posterior sd.
    pub fn gradient_noise(&self, rho: f64) -> f64 {
        2.0 * self.gradient_bound() * multiplier(rho)
    }

    /// Largest part of a row in a whitened gradient.
    fn gradient_bound(&self) -> f64 {
        self.unit * self.slopes.usual_score() * self.typical_bound()
    }

    /// Expected ‖u‖² of a draw: the posterior's own spread and both noises.
    pub fn typical_square(&self) -> f64 {
        let d = self.start.len() as f64;
        let anchor = self.split.map_or(0.0, |s| self.gradient_noise(s.gradient));
        // A regression's path ends in gradients of one mode that are combined.
        let start = if self.stages > 0 && self.slopes.predictor.is_network() {
            self.start_error()
        } else {
            0.0
        };
        d * (1.0 + start * start + anchor * anchor)
    }
}

/// τ of a discrete Gaussian that costs ρ, rounded up a little so that the charge, rounded
/// up too, stays within ρ.
pub(super) fn multiplier(rho: f64) -> f64 {
    (0.5 / rho).sqrt() * (1.0 + 2e-5)
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// `to`, or the last point on the way there from `from` (in tenths) that the support holds.
pub(super) fn inside(to: Vec<f64>, from: &[f64], prior: &Prior) -> Vec<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn anchoring() -> Anchoring {
        Anchoring {
            start: vec![0.0; 12],
            stages: 6,
            location: None,
            rows: 32_561,
            row_norm: 3.5,
            unit: 0.5,
            slopes: Slopes::logistic(),
            structure: Structure::default(),
            clip: None,
            radius: 18.0,
            split: None,
            undecided: false,
        }
    }

    /// The start's error is the one its ρ was asked for, and its steps' ρ add up.
    #[test]
    fn the_starts_price_buys_its_error() {
        let mut a = anchoring();
        for error in [0.3, 1.2, 4.0] {
            let start = a.start_rho(error);
            let stages: f64 = (1..=a.stages).map(|s| a.stage_rho(s, start)).sum();
            assert!((stages / start - 1.0).abs() < 1e-12);
            a.split = Some(AnchorSplit {
                start,
                gradient: 1.0,
                curvature: 1.0,
                refresh: 0.0,
            });
            assert!((a.start_error() / error - 1.0).abs() < 1e-4, "{error}");
        }
    }
}
