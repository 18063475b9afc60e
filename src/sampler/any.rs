//! Every sampler behind one type: what a posterior run advances.

use serde::{Deserialize, Serialize};

use super::{
    AnchorSettings, Chains, ClipNorm, Hamiltonian, HamiltonianState, Optimiser, OptimiserState,
    PosteriorDraws, RandomWalk, RandomWalkState, StepInfo, StochasticGradient,
    StochasticGradientState, Variational, VariationalState,
};
use crate::data::Population;
use crate::engine::Workload;
use crate::model::Model;
use crate::privacy::{Acceptance, Batch, Curator, Estimator, EventKey, Halt, Releases};

/// What an anchor's path asks of rows beside its stages, about.
const LAST_RELEASES: u64 = 6;

/// A sampler.
#[derive(Clone, Debug)]
pub enum Sampler {
    /// Proposes, and asks for one decision.
    Walk(Box<RandomWalk>),
    /// Follows released gradients, then asks for one decision.
    Hamiltonian(Box<Hamiltonian>),
    /// Follows released gradients.
    StochasticGradient(Box<StochasticGradient>),
    /// Climbs along released gradients to one point, which is no draw.
    Optimiser(Box<Optimiser>),
    /// Fits a Gaussian to the posterior by released gradients, and draws from that.
    Variational(Box<Variational>),
    /// Takes the ends of secret chains for posterior draws.
    PosteriorDraws(Box<PosteriorDraws>),
}

/// What `state.json` keeps of a sampler: all of it public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplerState {
    /// Of a [`RandomWalk`].
    Walk(RandomWalkState),
    /// Of a [`Hamiltonian`].
    Hamiltonian(HamiltonianState),
    /// Of a [`StochasticGradient`].
    StochasticGradient(StochasticGradientState),
    /// Of an [`Optimiser`].
    Optimiser(OptimiserState),
    /// Of a [`Variational`].
    Variational(VariationalState),
    /// Of [`PosteriorDraws`], which have none.
    PosteriorDraws,
}

/// What one step of one chain costs on average: events with how often each comes, and δ of
/// secret coins.
#[derive(Clone, Debug, Default)]
pub struct StepCost {
    /// Events.
    pub events: Vec<(EventKey, f64)>,
    /// δ of the coins.
    pub coins: f64,
}

impl Sampler {
    /// What an anchored run releases before its first step.
    pub fn anchoring(&self) -> Option<&AnchorSettings> {
        self.walk()?.anchoring.as_ref()
    }

    /// ρ of that; 0 for others.
    pub fn anchor_rho(&self) -> f64 {
        let anchoring = self.anchoring();
        anchoring.and_then(AnchorSettings::rho).unwrap_or(0.0)
    }

    /// Whether it ends at a point, and is no sampler: what lies on the way is not kept.
    pub fn is_optimiser(&self) -> bool {
        matches!(self, Sampler::Optimiser(_))
    }

    /// Whether what a step costs follows released values of an anchor: remainders whose clip
    /// depends on where, and in which metric, the expansion comes to lie.
    pub fn cost_is_a_guess(&self) -> bool {
        match self.anchoring() {
            Some(AnchorSettings::Expansion(s)) => !s.anchoring.slopes.is_quadratic(),
            _ => false,
        }
    }
}

impl From<RandomWalk> for Sampler {
    fn from(sampler: RandomWalk) -> Self {
        Sampler::Walk(Box::new(sampler))
    }
}

impl From<Hamiltonian> for Sampler {
    fn from(sampler: Hamiltonian) -> Self {
        Sampler::Hamiltonian(Box::new(sampler))
    }
}

impl From<StochasticGradient> for Sampler {
    fn from(sampler: StochasticGradient) -> Self {
        Sampler::StochasticGradient(Box::new(sampler))
    }
}

impl From<Optimiser> for Sampler {
    fn from(sampler: Optimiser) -> Self {
        Sampler::Optimiser(Box::new(sampler))
    }
}

impl From<Variational> for Sampler {
    fn from(sampler: Variational) -> Self {
        Sampler::Variational(Box::new(sampler))
    }
}

impl From<PosteriorDraws> for Sampler {
    fn from(sampler: PosteriorDraws) -> Self {
        Sampler::PosteriorDraws(Box::new(sampler))
    }
}

impl Sampler {
    /// Advances all chains by one step.
    ///
    /// # Errors
    /// [`Halt`]; the chains have not moved then.
    pub fn step(
        &mut self,
        chains: &mut Chains,
        releases: &mut dyn Releases,
    ) -> Result<StepInfo, Halt> {
        match self {
            Sampler::Walk(s) => s.step(chains, releases),
            Sampler::Hamiltonian(s) => s.step(chains, releases),
            Sampler::StochasticGradient(s) => s.step(chains, releases),
            Sampler::Optimiser(s) => s.step(chains, releases),
            Sampler::Variational(s) => s.step(chains, releases),
            Sampler::PosteriorDraws(s) => s.step(chains, releases),
        }
    }

    /// The random walk, where it is one.
    pub fn walk(&self) -> Option<&RandomWalk> {
        match self {
            Sampler::Walk(s) => Some(s),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn walk_mut(&mut self) -> Option<&mut RandomWalk> {
        match self {
            Sampler::Walk(s) => Some(s),
            _ => None,
        }
    }

    /// Whether what its steps cost may follow released values: warm-up, or clip bounds of
    /// moves made by released gradients.
    pub fn costs_follow_releases(&self) -> bool {
        match self {
            Sampler::Walk(s) => {
                s.adaptation.is_active()
                    || matches!(s.anchoring, Some(AnchorSettings::Expansion(_)))
            }
            Sampler::Hamiltonian(_) => true,
            Sampler::StochasticGradient(_)
            | Sampler::Optimiser(_)
            | Sampler::Variational(_)
            | Sampler::PosteriorDraws(_) => false,
        }
    }

    /// Clip of a typical move and the bound on its log ratios, nats, where the clip is below that:
    /// rows may then be cut, and the chain samples another distribution. `rate`: the model's bound
    /// a unit of length; infinite where it has none. Anchored walks say by themselves what they cut.
    pub fn cuts(&self, rate: f64, d: usize) -> Option<(f64, f64)> {
        let (clip, length) = match self {
            Sampler::Walk(s) if s.anchoring.is_none() => {
                (s.typical_clip(d)?, s.typical_move(ClipNorm::Euclidean, d))
            }
            Sampler::Hamiltonian(s) => (s.typical_clip(d)?, s.typical_move(ClipNorm::Euclidean, d)),
            _ => return None,
        };
        let bound = rate * length;
        (clip < 0.999 * bound).then_some((clip, bound))
    }

    /// Standard deviation of the noise of a penalty over all rows, in nats, in a typical move.
    pub fn penalty_noise(&self, d: usize) -> Option<f64> {
        let (estimator, acceptance, clip) = match self {
            Sampler::Walk(s) if s.anchoring.is_none() => {
                (s.estimator, s.acceptance, s.typical_clip(d)?)
            }
            Sampler::Hamiltonian(s) => {
                let of = s.settings();
                (of.estimator, of.acceptance, s.typical_clip(d)?)
            }
            _ => return None,
        };
        match (estimator, acceptance) {
            (Estimator::FullBatch, Acceptance::Penalty { tau }) => Some(2.0 * clip * tau),
            _ => None,
        }
    }

    /// Cost of one step of one chain over `rows`, a [`Population`] or a number of rows, on average
    /// over `iterations` steps of `chains` chains. For samplers other than random walks.
    ///
    /// # Errors
    /// [`Halt::Refused`] where some step can never be charged.
    pub fn step_cost(
        &self,
        rows: impl Into<Population>,
        model: &dyn Model,
        (iterations, chains): (u64, usize),
    ) -> Result<StepCost, Halt> {
        let d = model.dim();
        match self {
            Sampler::PosteriorDraws(s) => {
                let rate = model.ratio_rate().unwrap_or(f64::INFINITY);
                Ok(StepCost {
                    events: vec![(Curator::draw_cost(rate, s.request())?, 1.0)],
                    coins: 0.0,
                })
            }
            Sampler::Walk(_) => Ok(StepCost::default()),
            Sampler::Hamiltonian(s) => hamiltonian_cost(s, rows.into(), d),
            Sampler::StochasticGradient(s) => scheduled_cost(s, iterations),
            Sampler::Optimiser(s) => Ok(StepCost {
                events: vec![(Curator::gradient_cost(s.noise())?, 1.0)],
                coins: 0.0,
            }),
            Sampler::Variational(s) => {
                let draws = iterations.max(1) as f64 * chains.max(1) as f64;
                let per_draw = s.gradients() as f64 / draws;
                let key = Curator::gradient_cost(s.noise())?;
                Ok(StepCost {
                    events: vec![(key, per_draw)],
                    coins: 0.0,
                })
            }
        }
    }

    /// What so many steps of all chains ask of all rows.
    pub fn workload(&self, steps: u64) -> Workload {
        let all_rows = |estimator: Estimator| match estimator {
            Estimator::FullBatch => steps,
            Estimator::Poisson { .. } | Estimator::FixedBatch { .. } => 0,
        };
        let ask = |workload: &mut Workload, batch: Batch, gradients: u64| match batch {
            Batch::All => workload.gradients = gradients,
            Batch::Poisson { rate } => {
                workload.listed = gradients;
                workload.share = (rate * 4_294_967_296.0) as u32;
            }
        };
        let mut workload = Workload::default();
        match self {
            Sampler::Walk(s) => {
                if s.decides() && s.fast_mh.is_none() {
                    workload.ratios = all_rows(s.estimator);
                }
                if let Some(AnchorSettings::Expansion(s)) = &s.anchoring {
                    workload.anchors = u64::from(s.anchoring.stages) + LAST_RELEASES;
                }
            }
            Sampler::Hamiltonian(s) => {
                let gradients = u64::from(s.leapfrog_steps()).saturating_add(1);
                workload.ratios = all_rows(s.settings().estimator);
                let gradients = steps.saturating_mul(gradients);
                ask(&mut workload, s.settings().gradient.batch, gradients);
            }
            Sampler::StochasticGradient(s) => {
                ask(&mut workload, s.noise_of_step(1).batch, steps);
            }
            Sampler::Optimiser(s) => {
                ask(&mut workload, s.noise().batch, steps);
            }
            Sampler::Variational(s) => {
                ask(&mut workload, s.noise().batch, s.gradients());
            }
            Sampler::PosteriorDraws(s) => {
                workload.ratios = steps.saturating_mul(s.request().steps);
            }
        }
        workload
    }

    /// The public state.
    pub fn state(&self) -> SamplerState {
        match self {
            Sampler::Walk(s) => SamplerState::Walk(s.state()),
            Sampler::Hamiltonian(s) => SamplerState::Hamiltonian(s.state()),
            Sampler::StochasticGradient(s) => SamplerState::StochasticGradient(s.state()),
            Sampler::Optimiser(s) => SamplerState::Optimiser(s.state()),
            Sampler::Variational(s) => SamplerState::Variational(s.state()),
            Sampler::PosteriorDraws(_) => SamplerState::PosteriorDraws,
        }
    }

    /// Restores the public state that `iterations` steps of so many chains of d parameters left.
    ///
    /// # Errors
    /// A message naming the field that is damaged, or that it is of another sampler.
    pub fn restore(
        &mut self,
        state: &SamplerState,
        iterations: u64,
        (chains, d): (usize, usize),
    ) -> Result<(), String> {
        match (self, state) {
            (Sampler::Walk(s), SamplerState::Walk(t)) => s.restore(t),
            (Sampler::Hamiltonian(s), SamplerState::Hamiltonian(t)) => s.restore(t),
            (Sampler::StochasticGradient(s), SamplerState::StochasticGradient(t)) => {
                s.restore(t, chains)
            }
            (Sampler::Optimiser(s), SamplerState::Optimiser(t)) => s.restore(t, chains),
            (Sampler::Variational(s), SamplerState::Variational(t)) => {
                s.restore(t, iterations > 0, d)
            }
            (Sampler::PosteriorDraws(_), SamplerState::PosteriorDraws) => Ok(()),
            _ => Err("'sampler' is the state of another algorithm".into()),
        }
    }
}

/// L + 1 gradients and one decision of a typical move.
fn hamiltonian_cost(s: &Hamiltonian, rows: Population, d: usize) -> Result<StepCost, Halt> {
    let gradients = f64::from(s.leapfrog_steps()) + 1.0;
    let mut cost = StepCost {
        events: vec![(Curator::gradient_cost(s.settings().gradient)?, gradients)],
        coins: 0.0,
    };
    let clip = s.typical_clip(d);
    let (estimator, acceptance) = (s.settings().estimator, s.settings().acceptance);
    if let Some(clip) = clip
        && let Some((key, coins)) = Curator::cost(rows, clip, estimator, acceptance)?
    {
        cost.events.push((key, 1.0));
        cost.coins = coins;
    }
    Ok(cost)
}

/// The gradients of a schedule.
fn scheduled_cost(s: &StochasticGradient, iterations: u64) -> Result<StepCost, Halt> {
    let events = s.levels(iterations).into_iter().map(|(t, count)| {
        let key = Curator::gradient_cost(s.noise_of_step(t))?;
        Ok((key, count as f64 / iterations.max(1) as f64))
    });
    Ok(StepCost {
        events: events.collect::<Result<_, Halt>>()?,
        coins: 0.0,
    })
}
