//! Stochastic-gradient samplers: public post-processing of released gradients. The noise
//! that dynamics inject is asked for on the gradient itself, where it also hides rows
//! (docs/proofs/guarantee.md).

mod dynamics;
#[cfg(test)]
pub(in crate::sampler) mod known_gradients;
mod published;
mod schedule;
#[cfg(test)]
mod simulations;
mod state;
#[cfg(test)]
mod tests;

pub use dynamics::Dynamics;
pub use published::LiSettings;
pub use schedule::Schedule;

use std::sync::Arc;

use ndarray::{Array2, ArrayView1};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use self::dynamics::Update;
use super::{Chains, PublicRng, SettingError, StepInfo};
use crate::model::Prior;
use crate::privacy::{Batch, GradientNoise, Halt, Releases};

/// Ratio of the iterations where a level of a falling schedule ends and begins.
const LEVEL: f64 = 1.15;

/// Most parts of a cycle that are priced one by one before a run.
const PARTS: u64 = 128;

/// A θ beyond this in any coordinate is not gone to.
const FARTHEST: f64 = 1e100;

/// How a sampler's gradients are released.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientSettings {
    /// Bound b on a row's tempered gradient in L2, nats a unit of θ; `None` in non-private
    /// runs only.
    pub clip: Option<f64>,
    /// Rows of a step.
    pub batch: Batch,
    /// Noise on the gradient sum beyond what the dynamics inject, as a multiple τ of the
    /// sensitivity 2b, added in square. It hides rows better and raises the temperature: SGLD
    /// and SGHMC sample `p^(1/T)`, `T = 1 + (2bτ/σ)²`, σ the sampler's own noise (in
    /// coordinates of scale s below the largest less so); the thermostat absorbs it. A smaller
    /// step hides rows without that.
    pub extra_noise: f64,
}

/// A stochastic-gradient sampler. Bias falls with the step; the noise of a Poisson batch
/// comes on top and is not corrected for (the thermostat absorbs what is constant of it).
/// With a falling schedule, averages over draws are to be weighted by the steps.
#[derive(Clone, Debug)]
pub struct StochasticGradient {
    prior: Arc<Prior>,
    pub(super) dynamics: Dynamics,
    pub(super) schedule: Schedule,
    gradients: GradientSettings,
    /// Public scale s of every parameter: the dynamics run on θ/s.
    base: Vec<f64>,
    /// Variance of the injected noise over what leaves the posterior invariant.
    pub(super) temperature: f64,
    pub(super) state: StochasticGradientState,
}

/// What `state.json` keeps of a stochastic-gradient sampler: all of it public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StochasticGradientState {
    /// Momentum of every chain in units of the scale; empty before the first step and for
    /// dynamics without.
    pub(super) momenta: Vec<Vec<f64>>,
    /// Thermostat of every chain, likewise.
    pub(super) thermostats: Vec<f64>,
    /// Running mean of squared gradients less their noise's variance, d values.
    pub(super) second_moment: Vec<f64>,
    /// Steps made.
    pub(super) iteration: u64,
}

impl StochasticGradient {
    /// A sampler of d parameters.
    ///
    /// # Errors
    /// [`SettingError`] for a bounded support or a number out of range.
    pub fn new(
        prior: Prior,
        d: usize,
        dynamics: Dynamics,
        schedule: Schedule,
        gradients: GradientSettings,
    ) -> Result<Self, SettingError> {
        prior.validate(d)?;
        if prior.is_bounded() {
            return Err(SettingError::new(
                "model.box",
                "stochastic-gradient samplers need an unbounded support: remove it, or take a sampler that decides, such as barker",
            ));
        }
        dynamics.validate()?;
        schedule.validate()?;
        gradients.validate()?;
        Ok(StochasticGradient {
            prior: Arc::new(prior),
            dynamics,
            schedule,
            gradients,
            base: vec![1.0; d],
            temperature: 1.0,
            state: StochasticGradientState {
                momenta: Vec::new(),
                thermostats: Vec::new(),
                second_moment: vec![0.0; d],
                iteration: 0,
            },
        })
    }

    /// The same sampler on θ/s: s near the posterior's standard deviations makes one step fit
    /// all parameters. The gradient's noise is then `1/max s` of what it is unscaled, and what
    /// a parameter of smaller s lacks is added from the chain's public stream.
    ///
    /// # Errors
    /// [`SettingError`] unless `scale` has d positive finite values.
    pub fn with_scale(mut self, scale: &[f64]) -> Result<Self, SettingError> {
        let d = self.base.len();
        let positive = scale.iter().all(|s| *s > 0.0 && s.is_finite());
        if scale.len() != d || !positive {
            return Err(SettingError::new(
                "sampler.scale",
                format!("needs {d} positive values"),
            ));
        }
        self.base = scale.to_vec();
        Ok(self)
    }

    /// The gradient request of iteration t (from 1): follows from the settings alone, so that a
    /// run can be priced before it starts.
    pub fn noise_of_step(&self, t: u64) -> GradientNoise {
        let q = self.gradients.rate();
        let own = q * self.force_noise(t) / self.largest_scale();
        let extra = self.gradients.extra();
        GradientNoise {
            clip: self.gradients.clip,
            batch: self.gradients.batch,
            sigma: if extra > 0.0 { own.hypot(extra) } else { own },
        }
    }

    /// Iterations that stand for all of the first `iterations`, each with how many it stands
    /// for: parts of equal step, or whose steps differ by a few per cent.
    pub fn levels(&self, iterations: u64) -> Vec<(u64, u64)> {
        if matches!(self.schedule, Schedule::Fixed { .. }) {
            return vec![(1, iterations)];
        }
        if let Schedule::Cyclical { length, .. } = self.schedule {
            return parts_of_cycles(length, iterations);
        }
        let mut levels = Vec::new();
        let mut first = 1u64;
        while first <= iterations {
            let next = (first + 1).max((first as f64 * LEVEL) as u64);
            let next = next.min(iterations.saturating_add(1));
            let middle = (first as f64 * (next - 1) as f64).sqrt() as u64;
            levels.push((middle, next - first));
            first = next;
        }
        levels
    }

    /// Step of the first iteration.
    pub fn first_step(&self) -> f64 {
        self.schedule.at(1)
    }

    /// Steps made.
    pub fn iteration(&self) -> u64 {
        self.state.iteration
    }

    /// Advances all chains by one step. A chain whose next θ would not be a usable number
    /// stays, with a fresh momentum and thermostat, so that no draw holds NaN.
    ///
    /// # Errors
    /// [`Halt`]; nothing has moved then.
    pub fn step(
        &mut self,
        chains: &mut Chains,
        releases: &mut dyn Releases,
    ) -> Result<StepInfo, Halt> {
        self.check(chains)?;
        let t = self.state.iteration + 1;
        let noise = self.noise_of_step(t);
        let released = releases.gradients(chains.thetas.view(), noise)?;
        if released.dim() != chains.thetas.dim() {
            return Err(Halt::Failed("gradients of another shape".into()));
        }
        self.start_momenta(chains);
        let scale = self.scale();
        let total = self.total_gradients(chains, &released);
        let missing = self.missing_noise(t, noise.sigma, &scale);
        for (c, rng) in chains.rngs.iter_mut().enumerate() {
            let force = force(total.row(c), &scale, &missing, rng);
            let mut theta = chains.thetas.row(c).to_vec();
            let mut momentum = self.state.momenta.get(c).cloned().unwrap_or_default();
            let mut thermostat = self.state.thermostats.get(c).copied().unwrap_or_default();
            self.dynamics.advance(Update {
                a: self.schedule.at(t),
                force: &force,
                scale: &scale,
                theta: &mut theta,
                momentum: &mut momentum,
                thermostat: &mut thermostat,
            });
            let usable = theta.iter().all(|v| v.abs() <= FARTHEST)
                && momentum.iter().all(|v| v.is_finite())
                && thermostat.is_finite();
            if usable {
                chains.thetas.row_mut(c).assign(&ArrayView1::from(&theta));
            } else {
                momentum = fresh_momentum(self.dynamics, theta.len(), rng);
                thermostat = self.dynamics.thermostat();
            }
            if let (Some(p), Some(xi)) = (
                self.state.momenta.get_mut(c),
                self.state.thermostats.get_mut(c),
            ) {
                (*p, *xi) = (momentum, thermostat);
            }
            chains.accepted[c] += 1;
        }
        self.learn(t, noise.sigma, &total);
        self.state.iteration = t;
        // Nothing is decided.
        Ok(StepInfo {
            accepted: vec![true; chains.len()],
        })
    }

    fn check(&self, chains: &Chains) -> Result<(), Halt> {
        let (count, d) = chains.thetas.dim();
        let kept = self.state.momenta.len();
        if d != self.base.len() || (kept != 0 && kept != count) {
            return Err(Halt::Refused(
                "chains and sampler differ in number or parameters".into(),
            ));
        }
        if !chains.thetas.iter().all(|v| v.abs() <= FARTHEST) {
            return Err(Halt::Refused(
                "a chain does not start at a usable number".into(),
            ));
        }
        Ok(())
    }

    fn start_momenta(&mut self, chains: &mut Chains) {
        if self.dynamics.has_momentum() && self.state.momenta.is_empty() {
            let (dynamics, d) = (self.dynamics, self.base.len());
            let rngs = chains.rngs.iter_mut();
            self.state.momenta = rngs.map(|r| fresh_momentum(dynamics, d, r)).collect();
            self.state.thermostats = vec![dynamics.thermostat(); chains.len()];
        }
    }

    /// `∇ log prior + ĝ`, C × d.
    fn total_gradients(&self, chains: &Chains, released: &Array2<f64>) -> Array2<f64> {
        let mut total = released.clone();
        for (theta, mut row) in chains.thetas.rows().into_iter().zip(total.rows_mut()) {
            let slopes = self.prior.slopes(&theta.to_vec()).0;
            row += &ArrayView1::from(&slopes);
        }
        total
    }

    fn force_noise(&self, t: u64) -> f64 {
        self.temperature.sqrt() * self.dynamics.force_noise(self.schedule.at(t))
    }

    fn largest_scale(&self) -> f64 {
        self.base.iter().copied().fold(0.0, f64::max)
    }

    /// Standard deviation, a coordinate, of what the gradient's noise lacks of the force's.
    fn missing_noise(&self, t: u64, sigma: f64, scale: &[f64]) -> Vec<f64> {
        let (wanted, q) = (self.force_noise(t), self.gradients.rate());
        let largest = self.largest_scale();
        let lacks = |s: &f64| {
            // Nothing where s is the largest, not even a rounding error.
            if *s >= largest {
                return 0.0;
            }
            (wanted.powi(2) - (s * sigma / q).powi(2)).max(0.0).sqrt()
        };
        scale.iter().map(lacks).collect()
    }

    /// Scale of this step's coordinates: s√G.
    pub(super) fn scale(&self) -> Vec<f64> {
        let Dynamics::PreconditionedSgld { decay, floor, .. } = self.dynamics else {
            return self.base.clone();
        };
        let roots = self.state.second_moment.iter().map(|v| v.max(0.0).sqrt());
        let roots: Vec<f64> = roots.collect();
        let largest = roots.iter().copied().fold(0.0, f64::max);
        // A metric of fewer gradients than the mean remembers would be mostly noise.
        let early = (self.state.iteration as f64) * (1.0 - decay) < 1.0;
        if early || !(largest > 0.0 && largest.is_finite()) {
            return self.base.clone();
        }
        let curvature = |root: f64| floor * largest + root;
        let smallest = roots.iter().map(|r| curvature(*r)).fold(f64::MAX, f64::min);
        let pairs = self.base.iter().zip(&roots);
        pairs
            .map(|(s, r)| s * (smallest / curvature(*r)).sqrt().min(1.0))
            .collect()
    }

    /// Learns the metric from this step's gradients, pooled over chains.
    fn learn(&mut self, t: u64, sigma: f64, total: &Array2<f64>) {
        let Dynamics::PreconditionedSgld { decay, adapt, .. } = self.dynamics else {
            return;
        };
        if t > adapt {
            return;
        }
        let noise = sigma / self.gradients.rate();
        let scales = self.state.second_moment.iter_mut().zip(&self.base);
        for ((v, s), column) in scales.zip(total.columns()) {
            let count = column.len().max(1) as f64;
            let mean = column.iter().map(|g| g * g).sum::<f64>() / count;
            let next = decay * *v + (1.0 - decay) * s * s * (mean - noise * noise);
            if next.is_finite() {
                *v = next;
            }
        }
    }
}

/// The parts of a cycle of n iterations, at most [`PARTS`], by their middle, each with how many of
/// the first `iterations` fall into it.
fn parts_of_cycles(n: u64, iterations: u64) -> Vec<(u64, u64)> {
    let (whole, rest) = (iterations / n, iterations % n);
    let parts = PARTS.min(n);
    let bounds = (0..parts).map(|k| (k * n / parts, (k + 1) * n / parts));
    let counted = bounds.map(|(from, to)| {
        let count = whole * (to - from) + rest.clamp(from, to) - from;
        // Iterations count from 1.
        (1 + (from + to - 1) / 2, count)
    });
    counted.filter(|(_, count)| *count > 0).collect()
}

impl GradientSettings {
    fn rate(&self) -> f64 {
        match self.batch {
            Batch::All => 1.0,
            Batch::Poisson { rate } => rate,
        }
    }

    /// Extra noise on the sum, standard deviation.
    fn extra(&self) -> f64 {
        self.clip.map_or(0.0, |b| self.extra_noise * 2.0 * b)
    }

    fn validate(&self) -> Result<(), SettingError> {
        let refuse = |key: &str, what: String| {
            Err(SettingError::new(&format!("sampler.gradient.{key}"), what))
        };
        if let Some(clip) = self.clip
            && !(clip > 0.0 && clip.is_finite())
        {
            return refuse("clip", format!("must be positive, not {clip}"));
        }
        if let Batch::Poisson { rate } = self.batch
            && !(rate > 0.0 && rate < 1.0)
        {
            return refuse(
                "rate",
                format!("must lie in (0, 1), not {rate}; for all rows leave it out"),
            );
        }
        if !(self.extra_noise >= 0.0 && self.extra_noise.is_finite()) {
            return refuse(
                "extra_tau",
                format!("must be at least 0, not {}", self.extra_noise),
            );
        }
        if self.extra_noise > 0.0 && self.clip.is_none() {
            return refuse("extra_tau", "is a multiple of 2·clip: give 'clip'".into());
        }
        Ok(())
    }
}

/// Force on u = θ/s: the gradient there, and the noise it lacks.
fn force(
    total: ArrayView1<'_, f64>,
    scale: &[f64],
    missing: &[f64],
    rng: &mut PublicRng,
) -> Vec<f64> {
    let coordinates = total.iter().zip(scale).zip(missing);
    coordinates
        .map(|((g, s), sd)| {
            let mut f = s * g;
            if *sd > 0.0 {
                let z: f64 = StandardNormal.sample(rng);
                f += sd * z;
            }
            f
        })
        .collect()
}

fn fresh_momentum(dynamics: Dynamics, d: usize, rng: &mut PublicRng) -> Vec<f64> {
    let d = if dynamics.has_momentum() { d } else { 0 };
    (0..d).map(|_| StandardNormal.sample(rng)).collect()
}
