//! The trusted curator: owns engine, ledger and secret generator. It computes a step's
//! cost from the query's own sensitivity, charges it, and only then looks at rows.

mod anchor;
mod cost;
mod fixed_batch;
mod full_batch;
mod gradient;
mod moments;
mod open;
mod poisson;
mod posterior_draw;
mod session;
#[cfg(test)]
mod unit_tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ndarray::{Array2, ArrayView2};

pub(crate) use cost::largest_batch_clip;
pub use open::OpenCurator;

use self::cost::smallest_clip;
use super::accountant::EventKey;
use super::ledger::Ledger;
use super::mechanism::{PoissonSampler, RowShares, SecretRng};
use super::releases::{
    Acceptance, AnchorNoise, DrawRequest, Estimator, Expansion, GradientNoise, Halt, MomentNoise,
    Moves, Releases,
};
use crate::data::{Dataset, Population, Unit};
use crate::engine::{self, Engine, EngineError, EngineInfo, EngineSetup, RatioQuery};
use crate::math::Correction;
use crate::model::{
    AnchorRelease, Anchored, Metric, Model, ModelError, MomentAnchor, MomentRemainder, Moments,
};

/// What is wrong when a curator is set up.
#[derive(Debug, thiserror::Error)]
pub enum CuratorError {
    /// The engine could not be had.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Model and data do not fit.
    #[error("{0}")]
    Mismatch(String),
    /// No entropy.
    #[error("{0}")]
    Entropy(String),
    /// No thread.
    #[error("{0}")]
    Threads(String),
}

/// Holder of the data. A private curator answers through [`Releases`] alone.
///
/// Exact sums are out of reach from outside the crate:
/// ```compile_fail
/// # use dpmc::privacy::Curator;
/// fn leak(curator: &mut Curator, theta: &[f64]) {
///     let _ = curator.exact_log_ratios(&[theta], &[theta], &[1.0]);
/// }
/// ```
/// while the same call on a curator opened as not private compiles:
/// ```
/// # use dpmc::privacy::OpenCurator;
/// fn study(curator: &mut OpenCurator, theta: &[f64]) {
///     let _ = curator.exact_log_ratios(&[theta], &[theta], &[1.0]);
/// }
/// ```
pub struct Curator {
    engine: Box<dyn Engine>,
    /// What rows are asked by: the own model of the rows, or what an anchor leaves of it.
    model: Arc<dyn Model>,
    own_model: Arc<dyn Model>,
    population: Population,
    /// What minibatches draw rows by, where these have bounds of their own.
    shares: Option<RowShares>,
    /// Declared bound B on a row's norm.
    row_norm: f64,
    /// Whose rows are, where they are not protected one by one.
    unit: Option<Unit>,
    ledger: Option<Ledger>,
    secret: SecretRng,
    /// What the secret generator was seeded with, where it was.
    seed: Option<u64>,
    /// The caller's wish to stop.
    stop: Option<Arc<AtomicBool>>,
    poisson: PoissonSampler,
    listed: Vec<Vec<u64>>,
    answers: Vec<Vec<i32>>,
    correction: Option<Correction>,
    /// Without privacy: the clip up to which no gradient was clipped so far.
    widest_gradient: Option<f64>,
}

impl Curator {
    /// A private curator whose every answer is charged to `ledger`. `seed`: fixes the
    /// secret generator for tests; the guarantee then holds only while it stays secret.
    ///
    /// # Errors
    /// [`CuratorError`] where engine, entropy or the fit of model and data fail.
    pub fn private(
        data: Dataset,
        model: Arc<dyn Model>,
        engine: impl Into<EngineSetup>,
        ledger: Ledger,
        seed: Option<u64>,
    ) -> Result<Self, CuratorError> {
        Self::build(data, model, engine.into(), Some(ledger), seed)
    }

    fn build(
        data: Dataset,
        model: Arc<dyn Model>,
        setup: EngineSetup,
        ledger: Option<Ledger>,
        seed: Option<u64>,
    ) -> Result<Self, CuratorError> {
        check_fit(&data, &*model)?;
        crate::machine::start_threads(false).map_err(CuratorError::Threads)?;
        let population = data.population();
        let shares = match data.bounds() {
            Some(bounds) => {
                let shares = RowShares::new(bounds);
                let refusal = "there are too many rows to draw them by their bounds";
                Some(shares.ok_or_else(|| CuratorError::Mismatch(refusal.into()))?)
            }
            None => None,
        };
        let (row_norm, unit) = (data.row_norm(), data.unit().cloned());
        let secret = match seed {
            Some(seed) => {
                let position = ledger.as_ref().map_or(0, Ledger::position);
                SecretRng::from_seed(seed, position)
            }
            None => SecretRng::from_system().map_err(CuratorError::Entropy)?,
        };
        let data = Arc::new(data);
        Ok(Curator {
            engine: engine::open(setup, data, &*model)?,
            own_model: model.clone(),
            model,
            population,
            shares,
            row_norm,
            unit,
            ledger,
            secret,
            seed,
            stop: None,
            poisson: PoissonSampler::new(),
            listed: Vec::new(),
            answers: Vec::new(),
            correction: None,
            widest_gradient: None,
        })
    }

    /// The same curator over another engine's copy of the rows.
    #[cfg(all(test, feature = "gpu"))]
    pub(in crate::trusted) fn with_engine(mut self, engine: Box<dyn Engine>) -> Self {
        self.engine = engine;
        self
    }

    /// Number of rows N, or of units (public).
    pub fn rows(&self) -> usize {
        self.population.rows
    }

    /// Whose rows are; `None` where they are protected one by one.
    pub fn unit(&self) -> Option<&Unit> {
        self.unit.as_ref()
    }

    /// Refuses what is of single rows, and no guarantee for all rows of a unit.
    fn check_single_rows(&self) -> Result<(), Halt> {
        match self.unit {
            Some(_) => Err(Halt::Refused(SINGLE_ROWS.into())),
            None => Ok(()),
        }
    }

    /// What computes.
    pub fn engine_info(&self) -> EngineInfo {
        self.engine.info()
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// From here on rows are asked for their remainders at `anchor` only; the model's prior
    /// takes what was released in.
    ///
    /// # Errors
    /// [`Halt::Refused`] where model and anchor do not fit.
    pub fn set_anchor(&mut self, anchor: impl Into<AnchorRelease>) -> Result<(), Halt> {
        self.check_unweighted()?;
        let refuse = |e: ModelError| Halt::Refused(e.to_string());
        let model = self.own_model.clone();
        self.model = match anchor.into() {
            AnchorRelease::Expansion(anchor) => {
                let anchored = Anchored::new(model, anchor).map_err(refuse)?;
                let anchor = anchored.anchor().clone();
                self.weigh_rows(&anchor.at, &anchor.metric)?;
                Arc::new(anchored)
            }
            AnchorRelease::Moments(moments) => Arc::new(MomentRemainder::new(
                MomentAnchor::new(model, moments).map_err(refuse)?,
            )),
        };
        Ok(())
    }

    /// Whether rows have public bounds of their own.
    pub(in crate::trusted::privacy) fn is_weighted(&self) -> bool {
        self.population != Population::from(self.population.rows)
    }

    fn check_unweighted(&self) -> Result<(), Halt> {
        if self.is_weighted() {
            return Err(Halt::Refused(
                "a row's own bound says nothing of its remainder at an anchor; leave [data.bounds] out".into(),
            ));
        }
        Ok(())
    }

    /// The ledger of a private curator.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    pub(in crate::trusted) fn ledger_mut(&mut self) -> Option<&mut Ledger> {
        self.ledger.as_mut()
    }

    /// Whether the secret generator was given a seed.
    pub fn is_seeded(&self) -> bool {
        self.seed.is_some()
    }

    /// All arrays must have C rows and the model's dimension.
    fn check_shapes(&self, moves: &Moves<'_>, accepted: usize) -> Result<(), Halt> {
        let chains = moves.public.len();
        let shape = (chains, self.model.dim());
        let clips = moves.clip_bounds.map_or(chains, <[f64]>::len);
        if moves.thetas.dim() != shape
            || moves.proposals.dim() != shape
            || clips != chains
            || accepted != chains
        {
            return Err(Halt::Refused(format!(
                "moves of {chains} chains must come as {chains} × {} arrays",
                shape.1
            )));
        }
        Ok(())
    }

    /// Charges all live moves at once, or nothing.
    fn charge(
        &mut self,
        live: &[usize],
        clips: &[f64],
        estimator: Estimator,
        rule: Acceptance,
    ) -> Result<(), Halt> {
        let mut events: Vec<(EventKey, u64)> = Vec::with_capacity(live.len());
        let mut coins = 0.0;
        for &c in live {
            if let Some((key, delta)) = Self::cost(self.population, clips[c], estimator, rule)? {
                // Equal ones as one: the ledger works out a price for each entry.
                match events.last_mut() {
                    Some((last, count)) if *last == key => *count += 1,
                    _ => events.push((key, 1)),
                }
                coins += delta;
            } else if self.ledger.is_some() {
                return Err(Halt::Refused(
                    "Metropolis acceptance without noise (mh, tuna-mh) is not private; choose a private algorithm or --not-private".into(),
                ));
            }
        }
        match &mut self.ledger {
            None => Ok(()),
            Some(ledger) => Ok(ledger.charge(&events, coins)?),
        }
    }

    /// The engine's query for the moves of these chains; made of public numbers alone.
    fn query(
        &self,
        moves: &Moves<'_>,
        chains: &[usize],
        clips: &[f64],
    ) -> Result<RatioQuery, Halt> {
        let rows = |a: &ndarray::ArrayView2<'_, f64>| -> Vec<Vec<f64>> {
            chains.iter().map(|&c| a.row(c).to_vec()).collect()
        };
        let (thetas, proposals) = (rows(&moves.thetas), rows(&moves.proposals));
        let t: Vec<&[f64]> = thetas.iter().map(Vec::as_slice).collect();
        let p: Vec<&[f64]> = proposals.iter().map(Vec::as_slice).collect();
        let c: Vec<f64> = chains.iter().map(|&c| clips[c]).collect();
        RatioQuery::new(&*self.model, &t, &p, &c).map_err(|e| Halt::Refused(e.to_string()))
    }
}

/// Why some answers are not for units.
const SINGLE_ROWS: &str = "this is not clipped unit by unit; with data.unit use anchored-barker or dp-laplace for regressions, and for other models a sampler that decides on moves, such as barker";

/// Why rows of this model have no bounds of their own.
pub(crate) fn unscaled(model: &dyn Model) -> String {
    format!(
        "in model '{}' a shorter row has no smaller log ratio, so a row's own bound would clip it; regressions whose only parameters are coefficients take bounds of rows, other models need one row_norm for all",
        model.name()
    )
}

/// The model must find the columns it reads.
pub(super) fn check_fit(data: &Dataset, model: &dyn Model) -> Result<(), CuratorError> {
    if data.features().len() != model.features() {
        return Err(CuratorError::Mismatch(format!(
            "model '{}' needs {} feature(s), the data declare {}",
            model.name(),
            model.features(),
            data.features().len()
        )));
    }
    if data.offset() != model.offset() {
        return Err(CuratorError::Mismatch(format!(
            "offsets of rows: model '{}' and the data declare other ones; their bounds must be the same",
            model.name()
        )));
    }
    if data.bounds().is_some() && data.unit().is_some() {
        return Err(CuratorError::Mismatch(
            "rows have bounds of their own, and their units none; drop data.unit or [data.bounds]"
                .into(),
        ));
    }
    if data.bounds().is_some() && !model.ratio_scales_with_row() {
        return Err(CuratorError::Mismatch(unscaled(model)));
    }
    if data.weighted() && (model.label().is_none() || model.row_function().sees_rows()) {
        return Err(CuratorError::Mismatch(format!(
            "rows have weights, and model '{}' is no regression; drop [data.weights]",
            model.name()
        )));
    }
    match (model.label(), data.label_kind()) {
        (Some(_), None) => Err(CuratorError::Mismatch(format!(
            "model '{}' needs a label; declare [data.label]",
            model.name()
        ))),
        (Some(needed), Some(found)) if needed != found => Err(CuratorError::Mismatch(format!(
            "model '{}' was made for {}, the data carry {}: kinds and bounds must be the same",
            model.name(),
            needed.describe(),
            found.describe()
        ))),
        _ => Ok(()),
    }
}

impl Releases for Curator {
    fn check_stop(&self) -> Result<(), Halt> {
        self.stopped()
    }

    fn decide(
        &mut self,
        moves: &Moves<'_>,
        estimator: Estimator,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        accepted.fill(false);
        if self.model.prior().anchor.is_some() {
            self.check_single_rows()?;
        }
        self.check_shapes(moves, accepted.len())?;
        // h = −∞ rejects before anything is charged; NaN never accepts.
        let live: Vec<usize> = (0..moves.public.len())
            .filter(|&c| moves.public[c] > f64::NEG_INFINITY)
            .collect();
        if live.is_empty() {
            return Ok(());
        }
        let Some(clips) = moves.clip_bounds else {
            return match estimator {
                Estimator::FullBatch => self.decide_unclipped(moves, &live, rule, accepted),
                _ => Err(Halt::Refused(
                    "a minibatch needs a clip: the model has no bound, declare 'clip'".into(),
                )),
            };
        };
        // Such a move is made only where θ' = θ, on any data.
        let smallest = smallest_clip(rule);
        let (still, live): (Vec<usize>, Vec<usize>) =
            live.into_iter().partition(|&c| clips[c] < smallest);
        if !live.is_empty() {
            // Before the charge, for it may be refused; it touches no row.
            let query = self.query(moves, &live, clips)?;
            self.charge(&live, clips, estimator, rule)?;
            match estimator {
                Estimator::FullBatch => self.decide_full(&query, moves, &live, rule, accepted)?,
                Estimator::Poisson { lambda } => {
                    self.decide_poisson(&query, moves, &live, lambda, rule, accepted)?;
                }
                Estimator::FixedBatch { batch } => {
                    self.decide_fixed_batch(&query, moves, &live, batch, rule, accepted)?;
                }
            }
        }
        for c in still {
            accepted[c] = moves.thetas.row(c) == moves.proposals.row(c);
        }
        Ok(())
    }

    fn anchor(
        &mut self,
        at: &[f64],
        metric: &Metric,
        noise: AnchorNoise,
    ) -> Result<Expansion, Halt> {
        self.release_anchor(at, metric, noise)
    }

    fn moments(&mut self, degree: usize, noise: Option<MomentNoise>) -> Result<Moments, Halt> {
        self.check_single_rows()?;
        self.release_moments(degree, noise)
    }

    fn gradients(
        &mut self,
        thetas: ArrayView2<'_, f64>,
        noise: GradientNoise,
    ) -> Result<Array2<f64>, Halt> {
        if self.model.gradient_function().sees_rows() {
            self.check_single_rows()?;
        }
        self.release_gradients(thetas, noise)
    }

    fn posterior_draw(&mut self, start: &[f64], request: &DrawRequest) -> Result<Vec<f64>, Halt> {
        self.check_single_rows()?;
        self.release_draw(start, request)
    }
}
