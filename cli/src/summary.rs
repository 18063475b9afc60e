//! `dpmc summary`: what a run directory holds at this moment.

use std::path::Path;

use serde_json::{Map, Value};

use super::CliError;
use super::answers::print_json;
use super::args::SummaryArguments;
use dpmc::config::Plan;
use dpmc::data::Dataset;
use dpmc::diagnostics::noise_aware_moments;
use dpmc::model::MomentAnchor;
use dpmc::output::plot::Marginal;
use dpmc::output::{self, DrawTable, NamedNoise, Point, RunSummary, guarantee_number};
use dpmc::privacy::Certificate;

pub(super) fn run(a: &SummaryArguments) -> Result<(), CliError> {
    if let Some(path) = &a.plot {
        a_picture(path)?;
    }
    let summary = whole(&a.directory)?;
    if let Some(path) = &a.plot {
        if summary.points.is_some() {
            return Err(CliError::Input(format!(
                "--plot {}: there is no density to draw: {}",
                path.display(),
                output::POINT
            )));
        }
        plot(&a.directory, &summary, path)?;
    }
    if a.json {
        return print_json(&document(&summary, a.events)?);
    }
    print(&summary);
    Ok(())
}

/// Events of a certificate that JSON shows where nobody asked for all: a run may have thousands,
/// and `certificate.json` has them.
const EVENTS_SHOWN: usize = 20;

/// A summary as JSON.
pub(super) fn document(summary: &RunSummary, all_events: bool) -> Result<Value, CliError> {
    let mut document =
        serde_json::to_value(summary).map_err(|e| CliError::Failure(e.to_string()))?;
    let certificate = document.pointer_mut("/certificate");
    if !all_events && let Some(certificate) = certificate.and_then(Value::as_object_mut) {
        shorten_events(certificate);
    }
    Ok(document)
}

/// A list that lacks some has another name, so that nobody accounts for it as the whole.
fn shorten_events(certificate: &mut Map<String, Value>) {
    let events = certificate.get("events").and_then(Value::as_array);
    let count = events.map_or(0, Vec::len);
    if count > EVENTS_SHOWN
        && let Some(Value::Array(mut events)) = certificate.remove("events")
    {
        events.truncate(EVENTS_SHOWN);
        certificate.insert("first_events".into(), events.into());
        certificate.insert("events_left_out".into(), (count - EVENTS_SHOWN).into());
    }
}

/// All that is to be said of a run's directory.
pub(super) fn whole(directory: &Path) -> Result<RunSummary, CliError> {
    let mut summary = output::summarize_directory(directory)?;
    summary.held_out = output::held_out_reports(directory)?;
    if let Ok(plan) = Plan::read(&directory.join("run.toml")) {
        // The public test table may have moved since; the summary stands without it.
        if let Ok(test) = plan.load_test() {
            add_test_scores(&mut summary, directory, &plan, test.as_ref())?;
        }
        add_noise_of_moments(&mut summary, directory, &plan)?;
        let certificate = &summary.certificate;
        match output::more_spent_by_ledger(directory, &plan.ledger_name(), certificate) {
            Ok(more) => summary.epsilon_spent_by_ledger = more,
            Err(e) => {
                let note = format!("what the run's own ledger counts as spent is not known: {e}");
                summary.notes.push(note);
            }
        }
        if let Some(weights) = plan.weights_meaning() {
            let note = format!("rows have weights, which are protected: {weights}");
            summary.notes.push(note);
        }
        if let Some(offset) = plan.offset_meaning()? {
            let note = format!(
                "rows add an offset to their linear predictor, whose coefficient is 1: {offset}"
            );
            summary.notes.push(note);
        }
    }
    Ok(summary)
}

/// Adds scores on the public test table, if there is one.
pub(super) fn add_test_scores(
    summary: &mut RunSummary,
    directory: &Path,
    plan: &Plan,
    test: Option<&Dataset>,
) -> Result<(), CliError> {
    if let Some(test) = test
        && let Some(predictive) = plan.predictive(test)?
        && let Some(scores) = output::test_scores(directory, test.as_public(), predictive)?
    {
        summary.test_accuracy = scores.accuracy;
        summary.test_rmse = scores.rmse;
        summary.test_log_loss = Some(scores.log_loss);
    }
    Ok(())
}

/// What draws on released moments do not show.
const OF_MOMENTS: &str = "the draws, and what is made of them, take the released moments for exact: intervals that hold the noise of these are in the second table (noise_aware in --json)";

/// Adds what the noise of released moments does to each mean, where some were released.
pub(super) fn add_noise_of_moments(
    summary: &mut RunSummary,
    directory: &Path,
    plan: &Plan,
) -> Result<(), CliError> {
    let Some(moments) = summary.moments.take() else {
        return Ok(());
    };
    if !moments.is_valid() {
        return Ok(());
    }
    let table = output::read_draws(directory)?;
    let (features, bound, sds) = (
        moments.basis.features,
        moments.basis.bound,
        moments.sds.clone(),
    );
    // A model of moments has no label, and names of its own: any will do.
    let names: Vec<String> = (0..features).map(|j| format!("x{j}")).collect();
    let anchor = plan
        .model_for(&names, bound)
        .ok()
        .filter(|model| model.dim() == table.parameters.len())
        .and_then(|model| MomentAnchor::new(model, moments).ok());
    if let Some(anchor) = anchor {
        let columns: Vec<_> = (0..table.parameters.len())
            .map(|j| table.parameter(j))
            .collect();
        let noise = noise_aware_moments(&columns, &sds, |theta| anchor.slopes(theta));
        if noise.is_some() {
            summary.notes.push(OF_MOMENTS.into());
        }
        summary.noise_aware = noise.map(|noise| NamedNoise::name_all(&table.parameters, noise));
    }
    Ok(())
}

/// Nothing but SVG and PNG is drawn, under no other name.
fn a_picture(path: &Path) -> Result<(), CliError> {
    let extension = path.extension().unwrap_or_default();
    if ["svg", "png"]
        .iter()
        .any(|e| extension.eq_ignore_ascii_case(e))
    {
        return Ok(());
    }
    Err(CliError::Input(format!(
        "--plot {}: SVG and PNG are drawn; name the file {}",
        path.display(),
        path.with_extension("svg").display()
    )))
}

/// What a picture of the draws must say: of which table, and how private.
pub(super) fn title(directory: &Path, c: &Certificate) -> String {
    let name = Plan::read(&directory.join("run.toml")).map(|plan| plan.dataset_name());
    let of = match name {
        Ok(name) if !name.is_empty() => format!("{name} ({})", c.counted()),
        _ => c.counted(),
    };
    match (c.epsilon, c.delta) {
        (Some(epsilon), Some(delta)) => format!(
            "Posterior of {of}, private at ε = {}, δ = {delta:e}",
            (1e4 * epsilon).ceil() / 1e4
        ),
        _ => format!("Posterior of {of}, not private"),
    }
}

/// The parameters as they are drawn, with intervals that hold the noise where it is known.
pub(super) fn marginals(table: &DrawTable, summary: &RunSummary) -> Vec<Marginal> {
    let noise = |j: usize| Some(summary.noise_aware.as_ref()?.get(j)?.noise.interval);
    let names = table.parameters.iter().enumerate();
    names
        .map(|(j, name)| Marginal {
            name: name.clone(),
            chains: table.parameter(j),
            interval: noise(j),
        })
        .collect()
}

/// Draws the marginal posteriors of a run's directory to an SVG or PNG file.
pub(super) fn plot(directory: &Path, summary: &RunSummary, path: &Path) -> Result<(), CliError> {
    let parameters = marginals(&output::read_draws(directory)?, summary);
    let title = title(directory, &summary.certificate);
    output::plot::write(&parameters, &title, path).map_err(CliError::Failure)
}

/// The table a person reads.
pub(super) fn print(summary: &RunSummary) {
    match &summary.points {
        Some(points) => print_points(points),
        None => print_parameters(summary),
    }
    print_run(summary);
}

/// Where an optimiser ended, a column a chain.
fn print_points(points: &[Point]) {
    let width = width(points.iter().map(|p| &p.name));
    println!("{:width$} {:>12}", "parameter", "end");
    for p in points {
        let values: Vec<String> = p.values.iter().map(|v| format!("{v:>12.4}")).collect();
        println!("{:width$} {}", p.name, values.join(" "));
    }
}

/// Width of a column of names.
fn width<'a>(names: impl Iterator<Item = &'a String>) -> usize {
    names.map(|n| n.chars().count()).max().unwrap_or(9).max(9)
}

/// Moments, quantiles and convergence of a run's draws.
fn print_parameters(summary: &RunSummary) {
    let width = width(summary.parameters.iter().map(|p| &p.name));
    println!(
        "{:width$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>6}",
        "parameter", "mean", "sd", "5%", "50%", "95%", "ess_bulk", "ess_tail", "r_hat"
    );
    for p in &summary.parameters {
        println!(
            "{:width$} {:>9.4} {:>9.4} {:>9.4} {:>9.4} {:>9.4} {:>8.0} {:>8.0} {:>6.3}",
            p.name, p.mean, p.sd, p.q5, p.q50, p.q95, p.ess_bulk, p.ess_tail, p.r_hat
        );
    }
    print_noise_aware(summary, width);
}

/// How the run went, what it scored and what it cost.
fn print_run(summary: &RunSummary) {
    let c = &summary.certificate;
    println!(
        "\n{} chain(s), {}, {}",
        summary.chains,
        match summary.points {
            Some(_) => format!("{} steps, no draws", c.iterations),
            None => format!(
                "{} draws each, acceptance {:.3}",
                summary.draws, summary.acceptance
            ),
        },
        c.status
    );
    if let Some(loss) = summary.test_log_loss {
        let first = match (summary.test_accuracy, summary.test_rmse) {
            (Some(accuracy), _) => format!("accuracy {accuracy:.4}, "),
            (None, Some(error)) => format!("root mean square error {error:.4}, "),
            (None, None) => String::new(),
        };
        let what = match summary.points {
            Some(_) => "at that point",
            None => "posterior predictive",
        };
        println!("test {first}log loss {loss:.4} ({what})");
    }
    for line in summary.held_out.iter().flat_map(|report| report.lines()) {
        println!("{line}");
    }
    match (c.epsilon, c.delta, c.epsilon_spent) {
        (Some(epsilon), Some(delta), Some(spent)) => {
            println!(
                "private: ({}, {delta:e})-DP, neighbours by substitution{}, {} (spent {}, {}){}",
                guarantee_number(epsilon),
                match c.unit {
                    Some(_) => format!(" of {}", c.protected()),
                    None => String::new(),
                },
                c.covers,
                match summary.epsilon_spent_by_ledger {
                    Some(more) => format!("{}, as ledger.json counts", guarantee_number(more)),
                    None => guarantee_number(spent),
                },
                match (c.rho, c.mu, c.order) {
                    (Some(rho), _, _) => format!("rho {}", guarantee_number(rho)),
                    (_, Some(mu), _) => format!("mu {}", guarantee_number(mu)),
                    (_, _, Some(order)) => format!("filter at order {order}"),
                    _ => "no rho".into(),
                },
                if c.adaptive {
                    "; costs were adaptive, so the guarantee is the budget"
                } else {
                    ""
                }
            );
            if let Some(epsilon) = c.epsilon_zero_out {
                println!(
                    "for comparison{}: epsilon {} was spent where the part of {} may be left out, instead of replaced",
                    if c.adaptive { ", no guarantee" } else { "" },
                    guarantee_number(epsilon),
                    c.protected()
                );
            }
        }
        _ => println!("NOT private"),
    }
    for warning in &c.warnings {
        println!("warning: {warning}");
    }
    for note in &summary.notes {
        println!("note: {note}");
    }
}

/// What the noise of an anchor adds to the table, where there is one.
fn print_noise_aware(summary: &RunSummary, width: usize) {
    let Some(rows) = &summary.noise_aware else {
        return;
    };
    println!(
        "\n{:width$} {:>9} {:>19} {:>19}",
        "with the anchor's noise", "mean's sd", "90% for the mean", "90% credible"
    );
    for (p, row) in summary.parameters.iter().zip(rows) {
        let [a, b] = row.noise.mean_interval;
        let [c, d] = row.noise.interval;
        println!(
            "{:width$} {:>9.4} {a:>9.4} {b:>9.4} {c:>9.4} {d:>9.4}",
            p.name, row.noise.mean_sd
        );
    }
}
