//! The trusted curator: owns engine, ledger and secret generator. It computes a step's
//! cost from the query's own sensitivity, charges it, and only then looks at rows.

use std::sync::Arc;

use super::event::EventKey;
use super::ledger::{ChargeError, Ledger};
use super::mechanism::{
    self, DRAW_DELTA, LOGIT_ERROR, MAX_VARIANCE, PoissonSampler, SealedRatio, Secret, SecretRng,
};
use super::releases::{Acceptance, Estimator, Halt, Lambda, Moves, Releases};
use crate::data::Dataset;
use crate::engine::{
    self, Engine, EngineError, EngineInfo, EngineSetup, Grid, RatioQuery, RatioSum,
};
use crate::model::Model;

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
    model: Arc<dyn Model>,
    rows: usize,
    ledger: Option<Ledger>,
    secret: SecretRng,
    seeded: bool,
    poisson: PoissonSampler,
    listed: Vec<Vec<u64>>,
    answers: Vec<Vec<i32>>,
}

/// A curator without privacy: exact answers may be read.
pub struct OpenCurator(Curator);

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

    /// A curator without privacy, for references, tests and benchmarks.
    ///
    /// # Errors
    /// As [`Curator::private`].
    pub fn not_private(
        data: Dataset,
        model: Arc<dyn Model>,
        engine: impl Into<EngineSetup>,
        seed: u64,
    ) -> Result<OpenCurator, CuratorError> {
        Self::build(data, model, engine.into(), None, Some(seed)).map(OpenCurator)
    }

    fn build(
        data: Dataset,
        model: Arc<dyn Model>,
        setup: EngineSetup,
        ledger: Option<Ledger>,
        seed: Option<u64>,
    ) -> Result<Self, CuratorError> {
        if data.features().len() != model.features() {
            return Err(CuratorError::Mismatch(format!(
                "model '{}' needs {} feature(s), the data declare {}",
                model.name(),
                model.features(),
                data.features().len()
            )));
        }
        if model.labelled() && !data.labelled() {
            return Err(CuratorError::Mismatch(format!(
                "model '{}' needs a label; declare [data.label]",
                model.name()
            )));
        }
        let rows = data.rows();
        let secret = match seed {
            Some(seed) => {
                let position = ledger.as_ref().map_or(0, Ledger::position);
                SecretRng::from_seed(seed, position)
            }
            None => SecretRng::from_system().map_err(CuratorError::Entropy)?,
        };
        Ok(Curator {
            engine: engine::open(setup, Arc::new(data), &*model)?,
            model,
            rows,
            ledger,
            secret,
            seeded: seed.is_some(),
            poisson: PoissonSampler::new(),
            listed: Vec::new(),
            answers: Vec::new(),
        })
    }

    /// Number of rows N (public).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What computes.
    pub fn engine_info(&self) -> EngineInfo {
        self.engine.info()
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// The ledger of a private curator.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    pub(crate) fn ledger_mut(&mut self) -> Option<&mut Ledger> {
        self.ledger.as_mut()
    }

    /// Whether the secret generator was given a seed.
    pub fn is_seeded(&self) -> bool {
        self.seeded
    }

    /// The privacy event of one move with clip bound c (nats), and the δ of its coins;
    /// `None` where the rule is not private.
    ///
    /// # Errors
    /// [`Halt::Refused`] where the parameters have no finite cost.
    pub fn cost(
        rows: usize,
        clip_bound: f64,
        estimator: Estimator,
        rule: Acceptance,
    ) -> Result<Option<(EventKey, f64)>, Halt> {
        let grid = Grid::new(clip_bound).map_err(|e| Halt::Refused(e.to_string()))?;
        let refuse = |what: &str| Halt::Refused(what.to_string());
        match (estimator, rule) {
            (_, Acceptance::Metropolis) => Ok(None),
            (Estimator::FullBatch, Acceptance::Barker) => {
                // η = 2c (mathematics, section 3).
                let eta = 2.0 * grid.clip_bound() + LOGIT_ERROR;
                let key =
                    EventKey::bounded_range(eta).ok_or_else(|| refuse("eta is not finite"))?;
                Ok(Some((key, 0.0)))
            }
            (Estimator::Poisson { lambda }, Acceptance::Barker) => {
                // η = c(2 + Λ/λ) (mathematics, section 4), inflated for f64 arithmetic.
                let (lambda, big) = poisson_rates(rows, grid, lambda)?;
                let eta = grid.clip_bound() * (2.0 + big / lambda) * (1.0 + 1e-9) + LOGIT_ERROR;
                let key =
                    EventKey::bounded_range(eta).ok_or_else(|| refuse("eta is not finite"))?;
                let blocks = ((lambda + big) / 4096.0).floor() + 1.0;
                Ok(Some((key, DRAW_DELTA * blocks)))
            }
            (Estimator::FullBatch, Acceptance::Penalty { tau }) => {
                let steps = penalty_variance(grid, tau)?;
                // σ² = steps·γ.
                let sigma = (steps as f64 * grid.step()).sqrt();
                let key = EventKey::discrete_gaussian(2.0 * grid.clip_bound(), sigma)
                    .ok_or_else(|| refuse("the noise is not finite"))?;
                Ok(Some((key, 0.0)))
            }
            (Estimator::Poisson { .. }, Acceptance::Penalty { .. }) => Err(refuse(
                "penalty acceptance on a Poisson minibatch is not built; use barker acceptance or all rows",
            )),
        }
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
        let mut events = Vec::with_capacity(live.len());
        let mut coins = 0.0;
        for &c in live {
            if let Some((key, delta)) = Self::cost(self.rows, clips[c], estimator, rule)? {
                events.push((key, 1));
                coins += delta;
            } else if self.ledger.is_some() {
                return Err(Halt::Refused(
                    "Metropolis acceptance on exact ratios is not private; choose a private algorithm or --not-private".into(),
                ));
            }
        }
        match &mut self.ledger {
            None => Ok(()),
            Some(ledger) => ledger.charge(&events, coins).map_err(|e| match e {
                ChargeError::Spent(refusal) => Halt::BudgetSpent(refusal),
                ChargeError::File(e) => Halt::Failed(e.to_string()),
            }),
        }
    }

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

    fn sums(&mut self, query: &RatioQuery) -> Result<Vec<Secret<RatioSum>>, Halt> {
        let sums = self
            .engine
            .ratio_sums(query)
            .map_err(|e| Halt::Failed(e.to_string()))?;
        Ok(sums.into_iter().map(Secret::seal).collect())
    }

    fn decide_full(
        &mut self,
        moves: &Moves<'_>,
        live: &[usize],
        clips: &[f64],
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        let query = self.query(moves, live, clips)?;
        for (k, sum) in self.sums(&query)?.into_iter().enumerate() {
            let (c, grid) = (live[k], query.grid(k));
            let h = moves.public[c];
            let rng = &mut self.secret;
            accepted[c] = match rule {
                Acceptance::Barker => mechanism::barker(rng, mechanism::full_batch(sum, grid), h),
                Acceptance::Metropolis => {
                    mechanism::metropolis(rng, mechanism::full_batch(sum, grid), h)
                }
                Acceptance::Penalty { tau } => {
                    let steps = penalty_variance(grid, tau)?;
                    mechanism::penalty(rng, sum, grid, steps, h)
                }
            };
        }
        Ok(())
    }

    fn decide_poisson(
        &mut self,
        moves: &Moves<'_>,
        live: &[usize],
        clips: &[f64],
        lambda: Lambda,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        let query = self.query(moves, live, clips)?;
        let ratios = self.poisson_ratios(&query, lambda)?;
        for (&c, ratio) in live.iter().zip(ratios) {
            let h = moves.public[c];
            accepted[c] = match rule {
                Acceptance::Barker => mechanism::barker(&mut self.secret, ratio, h),
                Acceptance::Metropolis => mechanism::metropolis(&mut self.secret, ratio, h),
                Acceptance::Penalty { .. } => {
                    return Err(Halt::Refused(
                        "penalty on a Poisson minibatch is not built".into(),
                    ));
                }
            };
        }
        Ok(())
    }

    /// Draws each chain's batch, evaluates its rows and thins them (section 4, 1–3).
    fn poisson_ratios(
        &mut self,
        query: &RatioQuery,
        lambda: Lambda,
    ) -> Result<Vec<SealedRatio>, Halt> {
        let chains = query.chains();
        self.listed.resize_with(chains, Vec::new);
        self.answers.resize_with(chains, Vec::new);
        let mut rates = Vec::with_capacity(chains);
        for (k, rows) in self.listed.iter_mut().enumerate() {
            let (lambda, big) = poisson_rates(self.rows, query.grid(k), lambda)?;
            mechanism::draw_rows(
                &mut self.secret,
                &self.poisson,
                lambda + big,
                self.rows,
                rows,
            );
            rates.push(lambda / self.rows as f64);
        }
        self.engine
            .ratio_rows(query, &self.listed, &mut self.answers)
            .map_err(|e| Halt::Failed(e.to_string()))?;
        let mut ratios = Vec::with_capacity(chains);
        for (k, answers) in self.answers.iter_mut().enumerate() {
            let steps = Secret::seal(std::mem::take(answers));
            ratios.push(mechanism::poisson_estimate(
                &mut self.secret,
                &steps,
                query.grid(k),
                rates[k],
            ));
            *answers = mechanism::recycle(steps);
        }
        Ok(ratios)
    }

    /// Non-private runs without a given clip: double it until no row is clipped.
    fn decide_unclipped(
        &mut self,
        moves: &Moves<'_>,
        live: &[usize],
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        if self.ledger.is_some() {
            return Err(Halt::Refused(
                "a private move needs a public clip bound".into(),
            ));
        }
        let mut clips: Vec<f64> = (0..moves.public.len())
            .map(|c| {
                let distance = moves
                    .thetas
                    .row(c)
                    .iter()
                    .zip(moves.proposals.row(c))
                    .map(|(a, b)| (a - b) * (a - b))
                    .sum::<f64>()
                    .sqrt();
                (self.model.ratio_rate().unwrap_or(1.0) * distance).max(SMALLEST_CLIP)
            })
            .collect();
        for &c in live {
            loop {
                let query = self.query(moves, &[c], &clips)?;
                let sum = self
                    .engine
                    .ratio_sums(&query)
                    .map_err(|e| Halt::Failed(e.to_string()))?;
                if sum[0].saturated == 0 || clips[c] > 1e20 {
                    break;
                }
                clips[c] *= 2.0;
            }
        }
        self.decide_full(moves, live, &clips, rule, accepted)
    }
}

/// Moves with a smaller clip bound than the smallest grid's are not put to the data.
const SMALLEST_CLIP: f64 = 8.271_806_125_530_277e-25; // 2^-80

/// (λ, Λ) of a Poisson minibatch on this grid.
fn poisson_rates(rows: usize, grid: Grid, lambda: Lambda) -> Result<(f64, f64), Halt> {
    let big = rows as f64 * grid.clip_bound();
    // A floor keeps thinning probabilities well above 2^-64; public and symmetric.
    let value = lambda.value(big).max(1e-6 * big);
    let limit = f64::powi(2.0, 27);
    if !(value > 0.0 && value + big < limit && value < 65_536.0 * rows as f64) {
        return Err(Halt::Refused(format!(
            "a Poisson minibatch of lambda = {value:e}, Lambda = {big:e} cannot be drawn: their sum must stay under 2^27 rows; a smaller clip or lambda, or all rows"
        )));
    }
    Ok((value, big))
}

/// σ² of the penalty in units of γ: (2cτ)² rounded up, so that σ²/γ is an integer and
/// the acceptance exactly reversible (section 5).
fn penalty_variance(grid: Grid, tau: f64) -> Result<u64, Halt> {
    let refuse = |what: String| Err(Halt::Refused(what));
    if !(tau > 0.0 && tau.is_finite()) {
        return refuse(format!("tau must be positive, not {tau}"));
    }
    if grid.exponent() > 0 {
        return refuse("the penalty needs a clip bound of at most 2^20 nats".into());
    }
    let steps = ((2.0 * grid.clip_bound() * tau).powi(2) / grid.step()).ceil();
    let variance = steps * f64::powi(2.0, -grid.exponent());
    if !(steps < f64::powi(2.0, 62) && variance < MAX_VARIANCE as f64) {
        return refuse(format!(
            "tau = {tau} asks for more noise than the sampler can draw"
        ));
    }
    Ok(steps.max(1.0) as u64)
}

impl Releases for Curator {
    fn decide(
        &mut self,
        moves: &Moves<'_>,
        estimator: Estimator,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        accepted.fill(false);
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
                Estimator::Poisson { .. } => Err(Halt::Refused(
                    "a Poisson minibatch needs a clip: the model has no bound, declare 'clip'"
                        .into(),
                )),
            };
        };
        // No grid so fine exists: such a move is made only where θ' = θ, on any data.
        let (still, live): (Vec<usize>, Vec<usize>) =
            live.into_iter().partition(|&c| clips[c] < SMALLEST_CLIP);
        if !live.is_empty() {
            self.charge(&live, clips, estimator, rule)?;
            match estimator {
                Estimator::FullBatch => self.decide_full(moves, &live, clips, rule, accepted)?,
                Estimator::Poisson { lambda } => {
                    self.decide_poisson(moves, &live, clips, lambda, rule, accepted)?;
                }
            }
        }
        for c in still {
            accepted[c] = moves.thetas.row(c) == moves.proposals.row(c);
        }
        Ok(())
    }
}

impl OpenCurator {
    /// Exact clipped sums `Σ clip(r_i)` in nats, with the number of clipped rows, for C
    /// pairs (θ, θ').
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn exact_log_ratios(
        &mut self,
        thetas: &[&[f64]],
        proposals: &[&[f64]],
        clip_bounds: &[f64],
    ) -> Result<Vec<(f64, u64)>, EngineError> {
        let query = RatioQuery::new(&*self.0.model, thetas, proposals, clip_bounds)?;
        let sums = self.0.engine.ratio_sums(&query)?;
        Ok(sums
            .iter()
            .enumerate()
            .map(|(k, s)| (s.steps as f64 * query.grid(k).step(), s.saturated))
            .collect())
    }

    /// What computes.
    pub fn engine_info(&self) -> EngineInfo {
        self.0.engine.info()
    }

    /// The curator, for a non-private run.
    pub fn into_curator(self) -> Curator {
        self.0
    }
}

impl Releases for OpenCurator {
    fn decide(
        &mut self,
        moves: &Moves<'_>,
        estimator: Estimator,
        rule: Acceptance,
        accepted: &mut [bool],
    ) -> Result<(), Halt> {
        self.0.decide(moves, estimator, rule, accepted)
    }
}
