//! From a run file to a run.

use std::path::Path;
use std::sync::Arc;

use rand::{TryRng, rngs::SysRng};

use super::price::Price;
use super::{RunError, iterations_a_part, mixing};
use crate::config::{ConfigError, DrawsName, Plan};
use crate::data::{Dataset, Frame, LabelKind, Population};
use crate::engine::{EngineSetup, Workload};
use crate::expression::Source;
use crate::model::{Model, Predictor};
use crate::posterior_run::{PosteriorRun, RunLength, RunState};
use crate::privacy::{Curator, Ledger};
use crate::sampler::{Chains, Sampler};

/// What published DP-SGLD does.
const LI_AS_PUBLISHED: &str = "as published (Li 2019, Algorithm 1, the gradient's sign turned), dp-sgld injects half of the noise that leaves the posterior invariant and samples its square: standard deviations are too small by a factor of sqrt(2) (dp-sghmc has no listing there). The paper's claims of epsilon rest on constants that it does not give; this certificate charges what the mechanism does";

/// Where a run's ledger lies, unless the run file names one that others share.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// `ledger.json` in the run's directory.
    Directory(&'a Path),
    /// Nowhere: it ends with the process, and counts this run alone.
    Memory,
}

/// Where secret coins come from.
#[derive(Clone, Copy, Debug)]
pub enum Coins {
    /// The operating system; without privacy from the run file's seed, where it has one.
    Fresh,
    /// A seed, so that a study can be repeated. What is released is private only while the seed
    /// is secret; the certificate says so.
    Seeded(u64),
}

/// What a run file asks for, read and checked; nothing is charged or written yet.
pub struct Prepared {
    /// The run file.
    pub plan: Plan,
    /// The table.
    pub data: Dataset,
    /// The model over it.
    pub model: Arc<dyn Model>,
    /// The sampler, before its first step.
    pub sampler: Sampler,
    /// The public held-out table.
    pub test: Option<Dataset>,
    /// What the certificate must say, and a reader of `dpmc check` too: of public numbers alone.
    pub warnings: Vec<String>,
}

/// A run with what it costs, ready to begin.
pub struct Priced {
    prepared: Prepared,
    /// `None` without privacy.
    price: Option<Price>,
    /// Where it is to be taken up.
    saved: Option<RunState>,
}

/// Reads the table that `plan` names and makes model and sampler.
///
/// # Errors
/// [`ConfigError`] naming file, line or key.
pub fn prepare(plan: Plan) -> Result<Prepared, ConfigError> {
    plan.check_declarations()?;
    let data = plan.load_data()?;
    prepare_with(plan, data)
}

/// As [`prepare`], with a table in memory in place of the run file's
/// ([`Plan::take_frame`] says so in the resolved run file).
///
/// # Errors
/// As there; rows in place of lines.
pub fn prepare_frame(plan: Plan, frame: &Frame) -> Result<Prepared, ConfigError> {
    plan.check_declarations()?;
    let data = plan.load_frame(frame)?;
    prepare_with(plan, data)
}

pub(super) fn prepare_with(plan: Plan, data: Dataset) -> Result<Prepared, ConfigError> {
    let test = plan.load_test()?;
    let model = plan.model(&data)?;
    let population = data.population();
    let sampler = plan.sampler(&*model, population, data.row_norm())?;
    plan.check_range(&sampler, &*model, population)?;
    let mut warnings = warnings(&plan, data.rows())?;
    let rate = plan.ratio_rate(&*model).unwrap_or(f64::INFINITY);
    warnings.extend(sampler.cuts(rate, model.dim()).map(cut));
    warnings.extend(unclear_zero(&*model));
    warnings.extend(mixing::warning(
        &plan,
        &sampler,
        &*model,
        (population, data.row_norm()),
    )?);
    Ok(Prepared {
        plan,
        data,
        model,
        sampler,
        test,
        warnings,
    })
}

fn warnings(plan: &Plan, rows: usize) -> Result<Vec<String>, ConfigError> {
    let mut warnings = Vec::new();
    if let Some(budget) = plan.budget()?
        && budget.delta() > 1.0 / rows as f64
    {
        warnings.push(format!(
            "delta {:e} exceeds 1/rows (or units): it permits publishing some of them outright",
            budget.delta()
        ));
    }
    if plan.config.sampler.as_published {
        warnings.push(LI_AS_PUBLISHED.into());
    }
    Ok(warnings)
}

/// What a reader must know of draws whose decisions saw clipped log ratios.
fn cut((clip, bound): (f64, f64)) -> String {
    let bound = match bound.is_finite() {
        true => format!("below the model's bound of {bound:.3e}"),
        false => "and the model has no bound on them".into(),
    };
    format!(
        "a row's log ratio is clipped at {clip:.3e} nats in a typical move, {bound}: where rows reach the clip the draws are of another distribution than the posterior, and nothing here shows how far that is"
    )
}

/// What to do about a likelihood that treats a label of 0 by itself, and does not say as what.
fn unclear_zero(model: &dyn Model) -> Option<String> {
    let Predictor::Joint(joint) = model.slopes()?.predictor else {
        return None;
    };
    let from_zero = matches!(joint.label, LabelKind::Number { low: 0.0, .. });
    let source = || joint.located(&model.usual_start()).information.source();
    (from_zero && source() == Source::Observed).then(|| {
        "the likelihood has an expression of its own for a label of 0, and over all labels it does not add up to 1: if 0 has a probability, write the constants of the others' density too (such as -0.9189385, minus half the log of 2 pi, for a normal one); without them runs need more noise, and predictions give 0 another share than the rows".into()
    })
}

impl Prepared {
    /// Number of rows, and their bounds.
    pub fn population(&self) -> Population {
        self.data.population()
    }

    /// What the run costs; `None` without privacy.
    ///
    /// # Errors
    /// [`ConfigError`] where the budget is too small for a step, saying what would fit.
    pub fn price(&self) -> Result<Option<Price>, ConfigError> {
        let budget = self.plan.budget()?;
        budget.map(|budget| Price::of(self, budget)).transpose()
    }

    /// The run with its price, which is looked at once.
    ///
    /// # Errors
    /// As [`Prepared::price`].
    pub fn priced(self) -> Result<Priced, ConfigError> {
        Ok(Priced {
            price: self.price()?,
            prepared: self,
            saved: None,
        })
    }

    /// Iterations of all chains between two part files.
    ///
    /// # Errors
    /// [`ConfigError`] where `[run]` has no length.
    pub fn iterations_a_part(&self) -> Result<u64, ConfigError> {
        Ok(iterations_a_part(
            &self.sampler,
            &*self.model,
            self.population(),
            self.plan.chains(),
            self.plan.length()?,
        ))
    }

    /// Opens ledger and engine. Nothing is charged yet.
    ///
    /// # Errors
    /// [`RunError`], also where the ledger does not hold a first draw.
    pub fn begin(self, place: Place<'_>, coins: Coins) -> Result<PosteriorRun, RunError> {
        self.priced()?.begin(place, coins)
    }
}

impl Priced {
    /// The run.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// The same run, to be taken up at `saved`: it goes on without decisions where it did,
    /// whatever this length would have planned.
    ///
    /// # Errors
    /// As [`Prepared::price`].
    pub fn resuming(mut self, saved: RunState) -> Result<Self, ConfigError> {
        if let (true, Sampler::Walk(walk)) = (saved.free, &mut self.prepared.sampler) {
            walk.draw_freely();
            self.price = self.prepared.price()?;
        }
        self.saved = Some(saved);
        Ok(self)
    }

    /// Opens ledger and engine, and takes up what was saved. Nothing is charged yet.
    ///
    /// # Errors
    /// As [`Prepared::begin`].
    pub fn begin(self, place: Place<'_>, coins: Coins) -> Result<PosteriorRun, RunError> {
        let Priced {
            mut prepared,
            price,
            saved,
        } = self;
        if let Some(price) = &price {
            // The resolved run file says what its ledger counts.
            prepared.plan.state_measure(price.measure);
        }
        let plan = &prepared.plan;
        let public_seed = public_seed(plan.config.run.seed)?;
        let starts = plan.starts(&*prepared.model, public_seed)?;
        let start = plan.warm_start(&*prepared.model)?;
        let engine = EngineSetup {
            choice: plan.config.run.engine,
            listed_rows: plan.family()?.reads_listed_rows() || start.is_some(),
            chains: plan.chains(),
            workload: workload(&prepared.sampler, start.as_ref(), plan.length()?),
        };
        let (length, resolved) = (plan.length()?, plan.resolved()?);
        let curator = match price {
            Some(price) => {
                let ledger = ledger(&prepared, &price, place, saved.as_ref())?;
                // The run file's seed fixes the public streams alone, so run.toml may hold it.
                let seed = match coins {
                    Coins::Fresh => None,
                    Coins::Seeded(seed) => Some(seed),
                };
                Curator::private(prepared.data, prepared.model, engine, ledger, seed)?
            }
            None => {
                let seed = match coins {
                    Coins::Fresh => plan.config.run.seed.unwrap_or_else(rand::random),
                    Coins::Seeded(seed) => seed,
                };
                Curator::not_private(prepared.data, prepared.model, engine, seed)?.into_curator()
            }
        };
        let chains = Chains::new(&starts, public_seed);
        let keeps_chain = prepared.plan.config.run.draws == DrawsName::Chain;
        let mut run = PosteriorRun::new(
            curator,
            prepared.sampler,
            chains,
            length,
            resolved,
            prepared.warnings,
        )
        .starting_by(start);
        if keeps_chain {
            run = run.keeping_chain_draws();
        }
        if let Some(state) = &saved {
            run.resume(state).map_err(RunError::State)?;
        }
        Ok(run)
    }
}

/// What the run asks of all rows, its start included.
fn workload(sampler: &Sampler, start: Option<&Sampler>, length: RunLength) -> Workload {
    let steps = length.iterations.saturating_add(length.warmup);
    let (own, start) = (
        sampler.workload(steps),
        start.map(|s| s.workload(1)).unwrap_or_default(),
    );
    Workload {
        ratios: own.ratios.saturating_add(start.ratios),
        gradients: own.gradients.saturating_add(start.gradients),
        anchors: own.anchors.saturating_add(start.anchors),
        listed: own.listed.saturating_add(start.listed),
        share: own.share.max(start.share),
    }
}

/// The run's ledger, once it is found to lead to a draw.
fn ledger(
    prepared: &Prepared,
    price: &Price,
    place: Place<'_>,
    saved: Option<&RunState>,
) -> Result<Ledger, RunError> {
    let plan = &prepared.plan;
    let (path, shared) = match (plan.shared_ledger(), place) {
        (Some(path), _) => (path, true),
        (None, Place::Directory(directory)) => (directory.join("ledger.json"), false),
        (None, Place::Memory) => return Ok(Ledger::counting(price.budget, price.measure)),
    };
    let name = plan.ledger_name();
    let rows = prepared.data.rows();
    let mut ledger = Ledger::open(&path, &name, rows, price.budget, price.measure)?;
    ledger.covers_one_run(!shared);
    let left = (price.limit - ledger.spent()).max(0.0);
    price
        .outlay(saved)
        .check(plan, &path, left, price.measure)?;
    Ok(ledger)
}

fn public_seed(seed: Option<u64>) -> Result<[u8; 32], RunError> {
    let mut bytes = [0u8; 32];
    match seed {
        Some(seed) => bytes[..8].copy_from_slice(&seed.to_le_bytes()),
        None => SysRng
            .try_fill_bytes(&mut bytes)
            .map_err(|e| RunError::NoSeed(e.to_string()))?,
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "[data]\nfile = \"t.csv\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"a\"]\nclamp = [-1, 1]\n[model]\nkind = \"logistic\"\nprior = { kind = \"normal\", sd = 1.0 }\n[sampler]\nalgorithm = \"barker\"\nstep = 1e-4\n[run]\niterations = 3\nengine = \"cpu\"\n[privacy]\nepsilon = 2.0\ndelta = 1e-6\n";

    /// A ledger that the run file names is charged wherever else the run leaves nothing.
    #[test]
    fn a_shared_ledger_is_charged_by_a_run_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let table: String = (0..200)
            .map(|i| format!("{},{}\n", i % 3 - 1, i % 2))
            .collect();
        std::fs::write(folder.path().join("t.csv"), format!("a,y\n{table}")).unwrap();
        let run = |privacy: &str| {
            let text = format!("{RUN}{privacy}");
            let plan = Plan::parse(&folder.path().join("run.toml"), text).unwrap();
            let prepared = prepare(plan).unwrap();
            let mut run = prepared.begin(Place::Memory, Coins::Seeded(1)).unwrap();
            run.step();
            run.settle().unwrap();
            run.certificate().covers
        };
        let file = folder.path().join("shared.json");
        assert_eq!(run(""), "this run only");
        assert!(!file.exists());
        assert_eq!(
            run("ledger = \"shared.json\"\n"),
            "every run of the ledger file"
        );
        let spent = Ledger::budget_of(&file).unwrap();
        assert!(spent.is_some() && std::fs::read_to_string(&file).unwrap().contains("settled"));
    }

    #[test]
    fn what_a_run_asks_of_all_rows_follows_from_its_sampler() {
        let folder = tempfile::tempdir().unwrap();
        let table: String = (0..200)
            .map(|i| format!("{},{}\n", i % 3 - 1, i % 2))
            .collect();
        std::fs::write(folder.path().join("t.csv"), format!("a,y\n{table}")).unwrap();
        let of = |sampler: &str, start: &str| {
            let text = RUN
                .replace("algorithm = \"barker\"\nstep = 1e-4", sampler)
                .replace("[run]", &format!("[run]\nwarmup = 2\n{start}"))
                .replace("epsilon = 2.0", "epsilon = 200.0");
            let plan = Plan::parse(&folder.path().join("run.toml"), text).unwrap();
            let prepared = prepare(plan).unwrap();
            let start = prepared.plan.warm_start(&*prepared.model).unwrap();
            let length = prepared.plan.length().unwrap();
            let w = workload(&prepared.sampler, start.as_ref(), length);
            [w.ratios, w.gradients, w.anchors]
        };
        let step = "step = 1e-4";
        let all = |name: &str| format!("algorithm = \"{name}\"\n{step}");
        assert_eq!(of(&all("barker"), ""), [5, 0, 0]);
        assert_eq!(of(&all("poisson-barker"), ""), [0, 0, 0]);
        let leapfrog = format!(
            "{}\nleapfrog_steps = 3\ngradient = {{ clip = 1.0 }}",
            all("dp-hmc")
        );
        assert_eq!(of(&leapfrog, ""), [5, 20, 0]);
        let clipped = "gradient = { clip = 1.0";
        let sgld = format!("algorithm = \"dp-sgld\"\n{clipped} }}");
        assert_eq!(of(&sgld, ""), [0, 5, 0]);
        let batches = format!("algorithm = \"dp-sgld\"\n{clipped}, rate = 0.1 }}");
        assert_eq!(of(&batches, ""), [0, 0, 0]);
        let fit = "start = { dpvi = { epsilon = 0.2, delta = 1e-7, steps = 7, clip = 1.0 } }";
        assert_eq!(of(&all("barker"), fit)[0], 5);
        assert!(of(&all("barker"), fit)[1] >= 7);
        let [ratios, gradients, anchors] = of("algorithm = \"dp-laplace\"", "");
        assert_eq!((ratios, gradients), (0, 0));
        assert!(anchors > 6);
    }
}
