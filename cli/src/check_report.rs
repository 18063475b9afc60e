//! What `dpmc check` says, as numbers: the text is printed from this, and `--json` is this.

use serde::Serialize;

use super::check_budget::BudgetReport;
use super::{CliError, check_budget};
use dpmc::config::{Forecast, FormulaTerms, Hierarchy, Plan};
use dpmc::data::{LabelKind, Population, Unit};
use dpmc::model::Predictor;
use dpmc::privacy::{Acceptance, Batch, Estimator, GradientNoise};
use dpmc::run::{Prepared, rows_of_walk};
use dpmc::sampler::{AnchorSettings, RandomWalk, Sampler};

/// All of it. Numbers that do not apply are absent.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub table: Table,
    pub model: ModelPart,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<FormulaTerms>,
    /// What rows add to their linear predictor as it is, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<String>,
    /// How often rows count, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hierarchies: Vec<Hierarchy>,
    /// In words.
    pub prior: String,
    pub memory: Memory,
    pub run: Run,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<Clip>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minibatch: Option<Minibatch>,
    /// Percent of moves on a minibatch without noise and with, on all rows without and with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branches_percent: Option<[f64; 4]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradients: Option<Gradients>,
    /// Step of the first iteration of a sampler on stochastic gradients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_step: Option<f64>,
    /// Steps of the secret chain behind each draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_steps_a_draw: Option<u64>,
    /// What is released before the first step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Anchor>,
    pub private: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// What a score of the protected held-out table would be like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validate: Option<Validate>,
    pub warnings: Vec<String>,
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Validate {
    /// Of the held-out table.
    pub rows: usize,
    pub epsilon: f64,
    pub delta: f64,
    pub share: f64,
    /// Standard deviation of the noise of the mean log score, nats.
    pub log_score_sd: f64,
    /// The same of the accuracy, of binary labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy_sd: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Table {
    /// Rows, or units.
    pub rows: usize,
    /// Whose rows are, where neighbours differ in all rows of one unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    pub features: usize,
    /// Bound on a row's Euclidean norm.
    pub row_norm: f64,
    /// Where rows have bounds of their own: their mean and largest, in units of the row norm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_row_bound: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_row_bound: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct ModelPart {
    pub name: &'static str,
    pub parameters: usize,
    pub tempering: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Memory {
    pub rows_bytes: usize,
    /// Whether the rows lie in files, as they take more memory than they may.
    pub on_disk: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Run {
    pub algorithm: String,
    pub chains: usize,
    pub warmup: u64,
    pub iterations: u64,
}

/// How log-likelihood ratios are clipped.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Clip {
    /// Widened until nothing is clipped.
    None,
    /// Bound of a typical move, nats.
    Typical { nats: f64 },
}

impl Clip {
    fn of(typical: Option<f64>) -> Self {
        typical.map_or(Clip::None, |nats| Clip::Typical { nats })
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Minibatch {
    /// Rows expected of a typical step.
    pub rows_a_step: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Gradients {
    /// How many, in words.
    pub count: String,
    /// L2 bound of a row's gradient, nats a unit of theta; absent where none is clipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// Noise on each coordinate of the sum, the same unit.
    pub noise_sd: f64,
    /// Of a Poisson minibatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// What an anchored run releases first, nats of rho (of Gaussian noise that is mu^2/2 too).
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Anchor {
    /// A regression's.
    Path {
        /// The way to the mode, at most; what it leaves goes to the gradients.
        path_at_most: f64,
        gradients: f64,
        curvature: f64,
        second_one: f64,
    },
    /// A network's.
    Expansion {
        warm_start: f64,
        gradient: f64,
        curvature: f64,
        second_one: f64,
    },
    Moments {
        moments: f64,
        degree: usize,
    },
}

impl Report {
    /// All but what the budget decides.
    pub fn new(prepared: &Prepared) -> Result<Self, CliError> {
        let Prepared {
            plan,
            data,
            sampler,
            ..
        } = prepared;
        let model = &*prepared.model;
        let population = prepared.population();
        let rows = population.rows;
        let length = plan.length()?;
        let bounded = population != Population::from(rows);
        let mut report = Report {
            table: Table {
                rows,
                unit: data.unit().cloned(),
                features: data.features().len(),
                row_norm: data.row_norm(),
                mean_row_bound: bounded.then(|| population.total / rows as f64),
                largest_row_bound: bounded.then_some(population.largest),
            },
            model: ModelPart {
                name: plan.model_name(model),
                parameters: model.dim(),
                tempering: plan.config.model.tempering,
            },
            formula: plan.formula_terms()?,
            offset: plan.offset_meaning()?,
            weights: plan.weights_meaning(),
            hierarchies: plan.hierarchies()?,
            prior: check_budget::prior(model.prior()),
            memory: Memory {
                rows_bytes: data.bytes(),
                on_disk: data.on_disk(),
                available_bytes: None,
            },
            run: Run {
                algorithm: plan.family()?.name(),
                chains: plan.chains(),
                warmup: length.warmup,
                iterations: length.iterations,
            },
            clip: None,
            minibatch: None,
            branches_percent: None,
            gradients: None,
            first_step: None,
            secret_steps_a_draw: None,
            anchor: None,
            private: plan.budget()?.is_some(),
            budget: None,
            forecast: None,
            validate: validate_of(plan)?,
            warnings: Vec::new(),
            notes: Vec::new(),
        };
        report.read(sampler, model.dim(), population);
        Ok(report)
    }

    /// What the sampler reads of the rows, and how.
    fn read(&mut self, sampler: &Sampler, d: usize, population: Population) {
        let gradients = |noise: GradientNoise, count: String| Gradients {
            count,
            clip: noise.clip,
            noise_sd: noise.sigma,
            rate: match noise.batch {
                Batch::Poisson { rate } => Some(rate),
                Batch::All => None,
            },
        };
        match sampler {
            // Free draws read nothing.
            Sampler::Walk(walk) if !walk.decides() => {}
            Sampler::Walk(walk) => {
                let typical = walk.typical_clip(d);
                self.clip = Some(Clip::of(typical));
                if typical.is_some() {
                    self.read_batches(walk, d, population);
                }
            }
            Sampler::Hamiltonian(s) => {
                self.clip = Some(Clip::of(s.typical_clip(d)));
                let count = format!("{} a step", s.leapfrog_steps() + 1);
                self.gradients = Some(gradients(s.settings().gradient, count));
            }
            Sampler::StochasticGradient(s) => {
                self.first_step = Some(s.first_step());
                self.gradients = Some(gradients(s.noise_of_step(1), "1 a step".into()));
            }
            Sampler::Optimiser(s) => {
                self.first_step = Some(s.first_step());
                self.gradients = Some(gradients(s.noise(), "1 a step".into()));
            }
            Sampler::PosteriorDraws(s) => self.secret_steps_a_draw = Some(s.request().steps),
            Sampler::Variational(s) => {
                let count = format!("{} in all", s.gradients());
                self.gradients = Some(gradients(s.noise(), count));
            }
        }
        if self.private {
            self.anchor = sampler.anchoring().and_then(Anchor::of);
        }
    }

    /// Rows that a typical step reads, and how moves divide over the branches of DP-Fast MH.
    fn read_batches(&mut self, sampler: &RandomWalk, d: usize, population: Population) {
        let clips = sampler.typical_clips(d);
        let rows = population.rows;
        let mut counts = [0u32; 4];
        for &clip in &clips {
            let (estimator, acceptance) = sampler.rule(clip);
            let all = usize::from(estimator == Estimator::FullBatch);
            counts[2 * all + usize::from(acceptance != Acceptance::Barker)] += 1;
        }
        let count = clips.len() as f64;
        let rows_a_step = rows_of_walk(sampler, d, population);
        if rows_a_step < rows as f64 {
            self.minibatch = Some(Minibatch { rows_a_step });
        }
        if sampler.fast_mh.is_some() {
            self.branches_percent = Some(counts.map(|n| 100.0 * f64::from(n) / count));
        }
    }
}

impl Anchor {
    fn of(settings: &AnchorSettings) -> Option<Self> {
        match settings {
            AnchorSettings::Expansion(s) => {
                s.anchoring
                    .split
                    .map(|split| match s.anchoring.slopes.predictor {
                        Predictor::Linear | Predictor::Joint(_) => Anchor::Path {
                            path_at_most: split.start,
                            gradients: split.gradient,
                            curvature: split.curvature,
                            second_one: split.refresh,
                        },
                        Predictor::Network(_) => Anchor::Expansion {
                            warm_start: split.start,
                            gradient: split.gradient,
                            curvature: split.curvature,
                            second_one: split.refresh,
                        },
                    })
            }
            AnchorSettings::Moments(s) => s.rho.map(|moments| Anchor::Moments {
                moments,
                degree: s.degree,
            }),
        }
    }
}

/// The noise of a score of the held-out table, whose rows are counted for it.
fn validate_of(plan: &Plan) -> Result<Option<Validate>, CliError> {
    let (Some(settings), Some(data)) = (plan.validation()?, plan.load_validation()?) else {
        return Ok(None);
    };
    let binary = data.label_kind() == Some(LabelKind::Binary);
    let (log_score_sd, accuracy_sd) = settings.noise(data.rows(), binary);
    Ok(Some(Validate {
        rows: data.rows(),
        epsilon: settings.budget.epsilon(),
        delta: settings.budget.delta(),
        share: settings.share,
        log_score_sd,
        accuracy_sd,
    }))
}
