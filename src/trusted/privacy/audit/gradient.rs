//! Released gradients, attacked: one by one, and as the steps of whole samplers take them.
//! The row that differs has its gradient clipped to `+b e₁` on D and to `−b e₁` on D', which is
//! as far apart as two rows can be; all other rows are silent.

use std::sync::Arc;

use super::bound::{Event, Histogram, lower_bound};
use super::case::claims;
use super::gradient_runs::Runs;
use super::{AuditError, Report, Settings, Subject, report};
use crate::data::{DataError, Dataset, Unit};
use crate::engine::{EngineChoice, EngineSetup};
use crate::model::{GaussianMean, Model, Prior};
use crate::privacy::accountant::Budget;
use crate::privacy::accountant::EventKey;
use crate::privacy::accountant::{Measure, tightest_order};
use crate::privacy::curator::{Curator, CuratorError};
use crate::privacy::ledger::Ledger;
use crate::privacy::releases::{Acceptance, Batch, Estimator, GradientNoise};
use crate::sampler::{
    ClipNorm, ClipRule, Dynamics, GradientSettings, Hamiltonian, HamiltonianSettings,
    HamiltonianWarmup, Mass, Optimiser, OptimiserName, Sampler, Schedule, StochasticGradient,
};

/// Rows lie so far out along the first axis that their gradients point along it from wherever
/// a chain may be.
const FAR: f64 = 1e9;
/// Of a row: so large that the silent ones' gradients, −θ/VARIANCE, are next to nothing.
const VARIANCE: f64 = 1e6;
/// Parameters.
pub(super) const DIM: usize = 2;
/// Rows of each data set.
const ROWS: usize = 2;
/// Leapfrog steps of a trajectory, which releases one gradient more.
const LEAPFROG_STEPS: u32 = 2;
/// Points of a variational step.
pub(super) const DRAWS: usize = 2;
/// Thresholds on a score: more make the choice of one a lottery.
const BINS: u32 = 48;
/// Scores beyond so many times the accountant's ε are counted as if they lay there.
const REACH: f64 = 1.25;

/// What asks for gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GradientRun {
    /// Nobody: gradients at θ = 0, one a step.
    Alone,
    /// A Hamiltonian trajectory, three gradients, and its decision.
    Hamiltonian {
        /// How it is decided.
        acceptance: Acceptance,
        /// Clip bound of every move, nats.
        clip_bound: f64,
    },
    /// A stochastic-gradient sampler, whose own noise is the σ of the case.
    Dynamics(Dynamics),
    /// An optimiser, on the gradients of the case.
    Optimiser(OptimiserName),
    /// Variational inference, two gradients a step.
    Variational,
}

/// In what D and D' differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Differing {
    /// One row.
    Row,
    /// All rows of a unit, four that pull the same way.
    Unit,
    /// As many rows of a table that was declared to have no units: no neighbours.
    Rows,
}

/// Rows of a unit.
const UNIT_ROWS: u32 = 4;

/// Gradients released on worst-case neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientCase {
    /// What asks for them.
    pub run: GradientRun,
    /// Rows of a gradient.
    pub batch: Batch,
    /// Clip b of a row's gradient, nats a unit of θ.
    pub clip: f64,
    /// Noise σ on the batch's sum, same unit.
    pub sigma: f64,
    /// Steps T of a run by default.
    pub steps: u32,
    /// In what the tables differ.
    pub differing: Differing,
}

impl GradientCase {
    /// The worst case of a sampler that follows gradients; `None` of others. Noise is such
    /// that half of it would be seen.
    pub fn of(subject: Subject) -> Option<Self> {
        let hamiltonian = |acceptance| GradientCase {
            run: GradientRun::Hamiltonian {
                acceptance,
                clip_bound: 0.25,
            },
            batch: Batch::All,
            clip: 1.0,
            sigma: 8.0,
            steps: 1,
            differing: Differing::Row,
        };
        let dynamics = |dynamics| GradientCase {
            run: GradientRun::Dynamics(dynamics),
            sigma: 3.0,
            steps: 4,
            ..Self::alone(Subject::DpSgld)
        };
        let optimiser = |name| GradientCase {
            run: GradientRun::Optimiser(name),
            ..dynamics(Dynamics::Sgld)
        };
        Some(match subject {
            // ρ = 1/32 for each gradient, and the same for a penalty of τ = 4 and for η = 1/2.
            Subject::DpHmc => hamiltonian(Acceptance::Penalty { tau: 4.0 }),
            Subject::BarkerHmc => hamiltonian(Acceptance::Barker),
            Subject::DpSgld => dynamics(Dynamics::Sgld),
            Subject::DpSghmc => dynamics(Dynamics::Sghmc { friction: 0.5 }),
            Subject::DpSgnht => dynamics(Dynamics::Sgnht { diffusion: 0.5 }),
            Subject::DpSgd => optimiser(OptimiserName::Sgd),
            Subject::DpAdam => optimiser(OptimiserName::Adam),
            Subject::Dpvi => GradientCase {
                run: GradientRun::Variational,
                sigma: 3.0,
                steps: 2,
                ..Self::alone(Subject::Dpvi)
            },
            _ => return None,
        })
    }

    /// One gradient of the kind that the subject follows: on all rows for Hamiltonian samplers,
    /// on a Poisson batch for others.
    pub fn alone(subject: Subject) -> Self {
        let all = matches!(subject, Subject::DpHmc | Subject::BarkerHmc);
        GradientCase {
            run: GradientRun::Alone,
            batch: if all {
                Batch::All
            } else {
                Batch::Poisson { rate: 0.5 }
            },
            clip: 1.0,
            sigma: if all { 4.0 } else { 1.5 },
            steps: 1,
            differing: Differing::Row,
        }
    }

    fn name(&self) -> &'static str {
        match self.batch {
            Batch::All => "a gradient on all rows",
            Batch::Poisson { .. } => "a gradient on a Poisson batch",
        }
    }

    pub(super) fn noise(&self) -> GradientNoise {
        GradientNoise {
            clip: Some(self.clip),
            batch: self.batch,
            sigma: self.sigma,
        }
    }

    /// What one step is charged.
    pub(super) fn keys(&self) -> Result<Vec<(EventKey, u64)>, AuditError> {
        let gradient = Curator::gradient_cost(match self.sampler()? {
            Some(Sampler::StochasticGradient(s)) => s.noise_of_step(1),
            _ => self.noise(),
        })?;
        Ok(match self.run {
            GradientRun::Alone | GradientRun::Dynamics(_) | GradientRun::Optimiser(_) => {
                vec![(gradient, 1)]
            }
            GradientRun::Variational => vec![(gradient, DRAWS as u64)],
            GradientRun::Hamiltonian {
                acceptance,
                clip_bound,
            } => {
                let mut keys = vec![(gradient, u64::from(LEAPFROG_STEPS) + 1)];
                let cost = Curator::cost(ROWS, clip_bound, Estimator::FullBatch, acceptance)?;
                keys.extend(cost.map(|(key, _)| (key, 1)));
                keys
            }
        })
    }

    /// The sampler as a run starts; `None` where there is none.
    pub(super) fn sampler(&self) -> Result<Option<Sampler>, AuditError> {
        let wrong = |e: String| AuditError::setting("algorithm", e);
        let prior = Prior::normal(DIM, 1.0);
        Ok(Some(match self.run {
            GradientRun::Alone | GradientRun::Variational => return Ok(None),
            GradientRun::Hamiltonian {
                acceptance,
                clip_bound,
            } => {
                let clip = ClipRule {
                    rate: clip_bound,
                    norm: ClipNorm::Constant,
                };
                let settings = HamiltonianSettings {
                    estimator: Estimator::FullBatch,
                    acceptance,
                    clip: Some(clip),
                    largest_clip: 1e3,
                    gradient: self.noise(),
                    step: 0.1,
                    leapfrog_steps: LEAPFROG_STEPS,
                    // Runs in lockstep would share it.
                    jitter: None,
                    mass: Mass::Scalar(1.0),
                    warmup: HamiltonianWarmup::none(),
                };
                let sampler = Hamiltonian::new(prior, settings, DIM);
                sampler.map_err(|e| wrong(e.to_string()))?.into()
            }
            GradientRun::Optimiser(name) => {
                let schedule = Schedule::Fixed { step: 0.1 };
                Optimiser::new(prior, name, schedule, self.noise(), ROWS, vec![1.0; DIM])
                    .map_err(|e| wrong(e.to_string()))?
                    .into()
            }
            GradientRun::Dynamics(dynamics) => {
                let rate = match self.batch {
                    Batch::All => 1.0,
                    Batch::Poisson { rate } => rate,
                };
                // The step at which its own noise is σ: it falls with the root of the step.
                let step = (rate * dynamics.force_noise(1.0) / self.sigma).powi(2);
                let settings = GradientSettings {
                    clip: Some(self.clip),
                    batch: self.batch,
                    extra_noise: 0.0,
                };
                let schedule = Schedule::Fixed { step };
                StochasticGradient::new(prior, DIM, dynamics, schedule, settings)
                    .map_err(|e| wrong(e.to_string()))?
                    .into()
            }
        }))
    }

    /// D or D'.
    pub(super) fn data(&self, neighbour: bool) -> Result<Dataset, DataError> {
        let mut set = Dataset::builder_with(vec!["x".into(), "z".into()], None, FAR)?;
        if self.differing == Differing::Unit {
            let column = "unit".into();
            set = set.of_units(Unit {
                column,
                rows: UNIT_ROWS,
            });
        }
        let rows = match self.differing {
            Differing::Row => 1,
            Differing::Unit | Differing::Rows => UNIT_ROWS,
        };
        let far = FAR as f32;
        let own = [if neighbour { -far } else { far }, 0.0];
        let silent = (1..ROWS as u64).map(|owner| (owner, [0.0; 2]));
        for (owner, row) in silent.chain((0..rows).map(|_| (0, own))) {
            match self.differing {
                Differing::Unit => set.push_owned(&row, None, owner)?,
                _ => set.push_value(&row, None)?,
            }
        }
        set.finish()
    }

    /// Their model: a row's gradient is `(x − θ)/VARIANCE`.
    pub(super) fn model(data: &Dataset) -> Result<Arc<dyn Model>, CuratorError> {
        let covariance = [VARIANCE, 0.0, 0.0, VARIANCE];
        let prior = Prior::normal(DIM, 1.0);
        GaussianMean::new(data.features(), &covariance, FAR, prior, 1.0)
            .map(|model| Arc::new(model) as Arc<dyn Model>)
            .map_err(|e| CuratorError::Mismatch(e.to_string()))
    }

    pub(super) fn curator(
        &self,
        neighbour: bool,
        (engine, chains): (EngineChoice, usize),
        ledger: Ledger,
        seed: Option<u64>,
    ) -> Result<Curator, AuditError> {
        let data = self.data(neighbour);
        let data = data.map_err(|e| AuditError::setting("rows", e.to_string()))?;
        let model = Self::model(&data)?;
        let setup = EngineSetup {
            chains,
            ..engine.into()
        };
        let seed = seed.map(|s| s ^ (u64::from(neighbour) << 63));
        Ok(Curator::private(data, model, setup, ledger, seed)?)
    }
}

/// Audits released gradients: runs of T steps each, put to a threshold on the log likelihood
/// ratio of all that they release. In the name of `subject`, or of the gradient itself where
/// nothing follows it.
///
/// # Errors
/// As [`super::audit`].
pub fn audit_gradients(
    case: &GradientCase,
    subject: Subject,
    settings: &Settings,
) -> Result<Report, AuditError> {
    settings.check()?;
    let steps = settings.steps.unwrap_or(case.steps);
    let mut keys = case.keys()?;
    let mut runs = Runs::open(case, &keys, settings)?;
    keys.iter_mut().for_each(|(_, n)| *n *= u64::from(steps));
    let claims = claims(&keys, settings.delta, |budget| measure(&keys, budget))?;
    let reach = REACH * if claims.1.is_finite() { claims.1 } else { 8.0 };
    let engine = runs.adversaries[0].curator().engine_info().kind;
    let fine = f64::from(BINS) / (2.0 * reach);
    let mut sample = |neighbour: bool, _, wanted: u64| -> Result<Histogram, AuditError> {
        let mut histogram = Histogram::new(BINS);
        let mut left = wanted;
        while left > 0 {
            let scores = runs.make(usize::from(neighbour), steps, left)?;
            for score in &scores {
                let bin = ((score + reach) * fine).floor();
                histogram.add(bin.clamp(0.0, f64::from(BINS)) as u32);
            }
            left -= scores.len() as u64;
        }
        Ok(histogram)
    };
    let words = |event: &Event| {
        let (sign, bin) = match event.at_least {
            true => ("at least", event.threshold),
            false => ("less than", event.threshold + 1),
        };
        let score = f64::from(bin) / fine - reach;
        format!("log likelihood ratio of D and D' {sign} {score:.2}")
    };
    let (bound, event) = lower_bound(&mut sample, &[0.0], BINS, &words, settings)?;
    let mut report = report(subject, settings, steps, claims, bound, event, &engine);
    if case.run == GradientRun::Alone {
        report.algorithm = case.name();
    }
    Ok(report)
}

/// What a run's own ledger counts, at the order that shows the smallest ε of the gradients
/// where it needs one.
fn measure(keys: &[(EventKey, u64)], budget: Budget) -> Measure {
    match keys.iter().find(|(key, _)| key.rho().is_none()) {
        None => Measure::without_order(keys.iter().map(|(key, _)| *key)).unwrap_or_default(),
        Some(&(key, count)) => Measure::Renyi {
            order: tightest_order(key, count, budget),
        },
    }
}
