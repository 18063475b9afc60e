//! `dpmc check`: what a run file would do, before anything is spent.

use super::answers::print_json;
use super::args::{CheckArguments, Overrides};
use super::check_report::Report;
use super::records::Records;
use super::{CliError, check_budget, check_print};
use dpmc::config::{Plan, Validation};
use dpmc::data::Room;
use dpmc::machine::available_memory;
use dpmc::output;
use dpmc::privacy::Ledger;
use dpmc::run::{Prepared, prepare};
use dpmc::sampler::Algorithm;

pub(super) fn run(a: &CheckArguments) -> Result<(), CliError> {
    let mut plan = Plan::read(&a.run)?;
    merge(&mut plan, &a.overrides)?;
    plan.take_terms(None)?;
    // Before a row is read: what is left afterwards follows the lengths of records.
    let available = available_memory();
    let prepared = prepare(plan)?;
    // Comes before a budget that is refused.
    let setting = |report: &Report| {
        if !a.json {
            check_print::print_setting(report);
        }
    };
    let report = outlook(&prepared, available, setting)?;
    if a.json {
        print_json(&report)?;
    } else {
        check_print::print_outlook(&report);
    }
    Ok(())
}

/// All that is to be said of a run before it begins; `setting` is shown what no budget decides.
/// `available`: bytes of memory before the table was read, where known.
pub(super) fn outlook(
    prepared: &Prepared,
    available: Option<u64>,
    setting: impl FnOnce(&Report),
) -> Result<Report, CliError> {
    let plan = &prepared.plan;
    let mut report = Report::new(prepared)?;
    report.memory.available_bytes = available;
    setting(&report);
    if let Some(price) = prepared.price()? {
        check_budget::fill(&mut report, prepared, &price)?;
        let shared = plan.shared_ledger();
        let found = match &shared {
            Some(path) => Ledger::records_of(path)?,
            None => None,
        };
        if let (Some(path), None) = (&shared, &found) {
            let path = path.display();
            report.notes.push(format!(
                "new ledger: there is none at {path} yet, and the run would start one"
            ));
        }
        let records = Records::of(plan);
        if let Some((id, heads)) = &found {
            report.warnings.extend(records.doubt(id, heads)?);
        }
        let id = found.as_ref().map(|(id, _)| id.as_str());
        report
            .warnings
            .extend(records.sum(price.budget, price.measure, id));
    }
    report.warnings.extend(prepared.warnings.iter().cloned());
    let held_out = report.validate.as_ref();
    let warning = held_out.and_then(|v| Validation::warning(v.delta, v.rows));
    report.warnings.extend(warning);
    report.notes.extend(plan.notes_on_features()?);
    let note = output::note_on_sampler(&prepared.sampler, report.private);
    report.notes.extend(note.map(String::from));
    Ok(report)
}

/// A resumed run keeps data, model, algorithm, budget and ledger: its draws were made
/// and paid for under them.
pub(super) fn only_length_and_engine(o: &Overrides) -> Result<(), CliError> {
    let foreign = [
        ("--data", o.data.is_some()),
        ("--algorithm", o.algorithm.is_some()),
        ("--as-published", o.as_published),
        ("--epsilon", o.epsilon.is_some()),
        ("--delta", o.delta.is_some()),
        ("--not-private", o.not_private),
        ("--ledger", o.ledger.is_some()),
        ("--chains", o.chains.is_some()),
        ("--seed", o.seed.is_some()),
    ];
    match foreign.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(CliError::Input(format!(
            "{flag}: a resumed run keeps its settings; only --iterations, --engine, --memory, --cache and --quiet may change"
        ))),
    }
}

/// Flags override the run file; what they set is refused by the flag's name.
///
/// # Errors
/// [`CliError`] naming the flag.
pub fn merge(plan: &mut Plan, o: &Overrides) -> Result<(), CliError> {
    if let (Some(flag), Some(stated)) = (&o.ledger, plan.shared_ledger()) {
        let found = |path: &std::path::Path| path.canonicalize().or(std::path::absolute(path));
        if found(flag).ok() != found(&stated).ok() {
            // Whoever wrote the run file shares that ledger's budget with others.
            return Err(plan
                .refuse(
                    "privacy.ledger",
                    format!(
                        "--ledger {} is another ledger than the run file's {}; leave the flag out",
                        flag.display(),
                        stated.display()
                    ),
                )
                .into());
        }
    }
    for (given, key, flag) in [
        (o.data.is_some(), "data.file", "--data"),
        (o.algorithm.is_some(), "sampler.algorithm", "--algorithm"),
        (o.as_published, "sampler.as_published", "--as-published"),
        (o.epsilon.is_some(), "privacy.epsilon", "--epsilon"),
        (o.delta.is_some(), "privacy.delta", "--delta"),
        (o.not_private, "privacy.not_private", "--not-private"),
        (o.ledger.is_some(), "privacy.ledger", "--ledger"),
        (o.chains.is_some(), "run.chains", "--chains"),
        (o.iterations.is_some(), "run.iterations", "--iterations"),
        (o.seed.is_some(), "run.seed", "--seed"),
    ] {
        if given {
            plan.set_by_flag(key, flag);
        }
    }
    let absolute = |p: &std::path::Path| std::path::absolute(p).unwrap_or_else(|_| p.into());
    let name = plan.dataset_name();
    if o.data.is_some() {
        plan.check_name()?;
    }
    let config = &mut plan.config;
    if let Some(file) = &o.data {
        // The data set keeps its name: a ledger follows the name, not the file.
        config.data.name = Some(name);
        config.data.file = absolute(file);
    }
    if let Some(name) = &o.algorithm {
        let algorithm = Algorithm::parse(name).ok_or_else(|| {
            let names: Vec<&str> = Algorithm::ALL.iter().map(|a| a.name()).collect();
            CliError::Input(format!(
                "--algorithm: '{name}' is unknown; one of {}",
                names.join(", ")
            ))
        })?;
        // Settings of the run file's own sampler do not carry over to another.
        config.sampler.choose(algorithm);
    }
    config.sampler.as_published |= o.as_published;
    if o.not_private {
        (config.privacy.epsilon, config.privacy.delta) = (None, None);
        (config.privacy.ledger, config.privacy.order) = (None, None);
        config.privacy.filter = None;
        config.privacy.not_private = true;
    }
    if o.epsilon.is_some() || o.delta.is_some() {
        config.privacy.not_private = false;
        config.privacy.epsilon = o.epsilon.or(config.privacy.epsilon);
        config.privacy.delta = o.delta.or(config.privacy.delta);
    }
    if let Some(ledger) = &o.ledger {
        config.privacy.ledger = Some(absolute(ledger));
    }
    config.run.chains = o.chains.or(config.run.chains);
    config.run.iterations = o.iterations.unwrap_or(config.run.iterations);
    config.run.seed = o.seed.or(config.run.seed);
    if let Some(engine) = o.engine {
        config.run.engine = engine.into();
    }
    plan.keep_rows(Room {
        memory: o.memory,
        cache: o.cache.as_deref().map(absolute),
    });
    Ok(())
}
