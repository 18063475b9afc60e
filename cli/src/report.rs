//! `dpmc report`: a run as one page that needs nothing else: what was asked, what it cost, what
//! came out, how good that is. Everything on it stands in the run's directory, which is public.

use std::collections::BTreeMap;
use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::CliError;
use super::answers::print_json;
use super::args::ReportArguments;
use super::summary;
use dpmc::math::normal;
use dpmc::output::{self, DrawTable, OutputError, Point, RunSummary, rounded_up};
use dpmc::privacy::Certificate;

const STYLE: &str = include_str!("report.css");
/// Densities and traces are drawn of so many parameters; of more, the table tells.
const MOST_DRAWN: usize = 24;

pub(super) fn run(a: &ReportArguments) -> Result<(), CliError> {
    write(&a.directory, &a.out)?;
    if a.json {
        return print_json(&serde_json::json!({ "page": a.out.display().to_string() }));
    }
    println!("wrote {}", a.out.display());
    Ok(())
}

/// Writes the page of a run's directory to `out`.
pub(super) fn write(directory: &Path, out: &Path) -> Result<(), CliError> {
    let summary = summary::whole(directory)?;
    let draws = output::read_draws(directory)?;
    let run_file = directory.join("run.toml");
    let asked = std::fs::read_to_string(&run_file).map_err(|e| OutputError::Read {
        path: run_file,
        what: e.to_string(),
    })?;
    let page = page(directory, &summary, &draws, &asked)?.into_string();
    std::fs::write(out, page).map_err(|e| {
        let (path, what) = (out.into(), e.to_string());
        OutputError::Write { path, what }.into()
    })
}

/// Of the run file, as text.
fn asked_for(asked: &str, section: &str, key: &str) -> Option<String> {
    let table: toml::Table = asked.parse().ok()?;
    let value = table.get(section)?.get(key)?;
    Some(
        value
            .as_str()
            .map_or_else(|| value.to_string(), String::from),
    )
}

fn page(
    directory: &Path,
    summary: &RunSummary,
    draws: &DrawTable,
    asked: &str,
) -> Result<Markup, CliError> {
    let c = &summary.certificate;
    let name = asked_for(asked, "data", "name")
        .or_else(|| asked_for(asked, "data", "file").map(|f| stem(&f)))
        .unwrap_or_default();
    let algorithm = asked_for(asked, "sampler", "algorithm").unwrap_or_else(|| "a sampler".into());
    let model = asked_for(asked, "model", "kind").unwrap_or_default();
    let title = format!("{name}: {model} posterior");
    Ok(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    p class="quiet" {
                        (c.counted()) ", " (draws.parameters.len()) " parameters, " (algorithm)
                        ", " (summary.chains) " × " (summary.draws) " draws, " (c.status)
                    }
                    (guarantee(c, summary.epsilon_spent_by_ledger))
                    (warnings(summary))
                    h2 { "Results" }
                    @match &summary.points {
                        Some(ends) => (points(ends)),
                        None => {
                            (results(summary))
                            (pictures(directory, summary, draws)?)
                        }
                    }
                    (test_scores(summary))
                    h2 { "What was released, and what it cost" }
                    (costs(c))
                    h2 { "To repeat and to cite" }
                    p {
                        "Made by dpmc " (c.version) " on " (c.engine.kind) " (" (c.engine.adapter)
                        "). The run file below says all that was asked; with the same table and as "
                        "much budget again, " code { "dpmc sample run.toml" } " repeats it with "
                        "fresh noise. " code { "CITATION.cff" } " of dpmc says how to cite it; state "
                        "\u{3b5}, \u{3b4} and the neighbouring relation beside every figure taken "
                        "from here."
                    }
                    details { summary { "The run file" } pre { (asked) } }
                }
            }
        }
    })
}

fn stem(file: &str) -> String {
    let name = Path::new(file).file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// How often somebody is right who knows all other rows and has to tell which of two values one row
/// has, both as likely before: with μ-GDP Φ(μ/2), else (e^ε + δ)/(e^ε + 1) (Kairouz 2015, Theorem
/// 2.1 at equal errors).
fn right_guesses(epsilon: f64, delta: f64, mu: Option<f64>) -> f64 {
    let odds = epsilon.exp();
    let general = if odds.is_finite() {
        (odds + delta) / (odds + 1.0)
    } else {
        1.0
    };
    // What inexact coins cost is paid from δ.
    mu.map_or(general, |mu| (normal::below(0.5 * mu) + delta).min(general))
}

/// `by_ledger`: what the ledger counts as spent, where that is more than the certificate says.
fn guarantee(c: &Certificate, by_ledger: Option<f64>) -> Markup {
    let (Some(epsilon), Some(delta)) = (c.epsilon, c.delta) else {
        return html! {
            div class="box open" {
                p { strong { "This run is not private." } }
                p { "No noise was added. What it shows may give rows of the table away." }
            }
        };
    };
    let right = 100.0 * right_guesses(epsilon, delta, c.mu);
    html! {
        div class="box" {
            p {
                strong { "Differentially private: \u{3b5} = " (rounded_up(epsilon, number)) ", \u{3b4} = " (format!("{delta:e}")) "." }
                " It covers " (c.covers) "."
            }
            p {
                "Replacing " (c.protected()) " of the table by any other" @if c.unit.is_some() { "s" } " changes the probability of anything on this page by a factor of at most "
                (upwards(epsilon.exp())) ", but for a probability of " (format!("{delta:e}")) "."
            }
            p {
                "Put as a test: somebody who knows all other rows, and has to tell which of two values " @if c.unit.is_some() { "these have" } @else { "the remaining one has" } ", guesses right at most "
                (format!("{:.1}", (10.0 * right).ceil() / 10.0)) " % of the time, where a coin is right 50 %."
            }
        }
        @if c.adaptive {
            p class="quiet" {
                "What steps cost followed what had been released before, so the guarantee is the whole budget; "
                "\u{3b5} = " (rounded_up(c.epsilon_spent.unwrap_or(epsilon), number)) " of it was used."
            }
        }
        @if let Some(more) = by_ledger {
            p class="quiet" {
                "The ledger in the run's directory counts more than the certificate says: by ledger.json, \u{3b5} = " (rounded_up(more, number)) " was used."
            }
        }
        @if let Some(blank) = c.epsilon_zero_out {
            p class="quiet" {
                "Other reports often count rows that are added or removed, with a known number of rows. "
                "Counted so (the part of " (c.protected()) " left out of every sum, instead of replaced), \u{3b5} = " (rounded_up(blank, number)) " was used"
                @if c.adaptive { ", which is no guarantee, for costs followed what had been released" } "."
            }
        }
        p class="quiet" {
            @if c.unit.is_none() { "It protects a row, not a person with several. " }
            "It covers what was published, not how long the computation took. "
            "Bounds and settings must not have been chosen by a look at the rows."
        }
    }
}

fn warnings(summary: &RunSummary) -> Markup {
    let all: Vec<&String> = summary
        .certificate
        .warnings
        .iter()
        .chain(&summary.notes)
        .collect();
    html! {
        @if !all.is_empty() {
            h2 { "Read this first" }
            ul class="warn" { @for text in all { li { (text) } } }
        }
    }
}

/// A row of the table of results.
struct Row<'a> {
    name: &'a str,
    mean: f64,
    sd: f64,
    /// 90 % credible interval, noise included where the run knows it.
    interval: [f64; 2],
    /// Standard deviation of the mean for the noise.
    noise: Option<f64>,
    ess: f64,
    r_hat: f64,
}

fn rows(summary: &RunSummary) -> Vec<Row<'_>> {
    let noise = |j: usize| summary.noise_aware.as_ref().and_then(|n| n.get(j));
    let parameters = summary.parameters.iter().enumerate();
    parameters
        .map(|(j, p)| Row {
            name: &p.name,
            mean: p.mean,
            sd: p.sd,
            interval: noise(j).map_or([p.q5, p.q95], |n| n.noise.interval),
            noise: noise(j).map(|n| n.noise.mean_sd),
            ess: p.ess_bulk,
            r_hat: p.r_hat,
        })
        .collect()
}

fn results(summary: &RunSummary) -> Markup {
    let rows = rows(summary);
    let noisy = rows.iter().any(|r| r.noise.is_some());
    let finite = rows
        .iter()
        .flat_map(|r| r.interval)
        .filter(|v| v.is_finite());
    let (low, high) = finite.fold((0.0f64, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
    html! {
        p {
            "Means and 90 % credible intervals of the posterior."
            @if noisy {
                " The intervals include the noise that was added for privacy; the column “noise” says how far the mean is off for that noise alone (one standard deviation)."
            }
            " Coefficients are on the scale of the declared columns."
        }
        // Whoever has no mouse scrolls it by keys.
        div class="wide" tabindex="0" role="region" aria-label="Table of results" {
            table {
                caption { "The line of each interval is drawn from " (number(low)) " to " (number(high)) "; the vertical mark is 0." }
                thead { tr {
                    th scope="col" { "parameter" } th scope="col" { "interval" }
                    th scope="col" { "mean" } th scope="col" { "sd" }
                    th scope="col" { "5 %" } th scope="col" { "95 %" }
                    @if noisy { th scope="col" { "noise" } }
                    th scope="col" { "effective draws" } th scope="col" { "R-hat" }
                } }
                tbody { @for r in &rows { tr {
                    th scope="row" { (r.name) } td { (forest(r, low, high)) } td { (number(r.mean)) } td { (number(r.sd)) }
                    td { (number(r.interval[0])) } td { (number(r.interval[1])) }
                    @if noisy { td { (r.noise.map_or_else(String::new, number)) } }
                    td { (format!("{:.0}", r.ess)) } td { (format!("{:.3}", r.r_hat)) }
                } } }
            }
        }
    }
}

/// Where an optimiser ended: no draws, so no intervals.
fn points(ends: &[Point]) -> Markup {
    html! {
        p { "Where the optimiser ended, a column for each chain. Coefficients are on the scale of the declared columns." }
        // Whoever has no mouse scrolls it by keys.
        div class="wide" tabindex="0" role="region" aria-label="Table of results" {
            table {
                tbody { @for p in ends { tr {
                    th scope="row" { (p.name) }
                    @for value in &p.values { td { (number(*value)) } }
                } } }
            }
        }
    }
}

fn test_scores(summary: &RunSummary) -> Markup {
    html! {
        @if let Some(loss) = summary.test_log_loss {
            p {
                "On the public test table: "
                @if let Some(accuracy) = summary.test_accuracy { "accuracy " (format!("{accuracy:.4}")) ", " }
                @if let Some(error) = summary.test_rmse { "root mean square error " (format!("{error:.4}")) ", " }
                "log loss " (format!("{loss:.4}")) "."
            }
        }
        @for line in summary.held_out.iter().flat_map(|report| report.lines()) {
            p { (line) }
        }
    }
}

/// Mean and interval as a line on the common axis.
fn forest(r: &Row<'_>, low: f64, high: f64) -> Markup {
    const WIDTH: f64 = 260.0;
    let span = if high > low { high - low } else { 1.0 };
    let x = |v: f64| {
        format!(
            "{:.1}",
            4.0 + (WIDTH - 8.0) * ((v - low) / span).clamp(0.0, 1.0)
        )
    };
    let label = format!(
        "{}: mean {}, interval {} to {}",
        r.name,
        number(r.mean),
        number(r.interval[0]),
        number(r.interval[1])
    );
    html! {
        svg role="img" aria-label=(label) viewBox=(format!("0 0 {WIDTH} 16")) {
            line x1=(x(0.0)) y1="0" x2=(x(0.0)) y2="16" stroke="#afb8c1" {}
            @if r.interval.iter().all(|v| v.is_finite()) {
                line x1=(x(r.interval[0])) y1="8" x2=(x(r.interval[1])) y2="8" stroke="#0550ae" stroke-width="3" {}
                circle cx=(x(r.mean)) cy="8" r="4" fill="#0550ae" {}
            }
        }
    }
}

fn pictures(directory: &Path, summary: &RunSummary, draws: &DrawTable) -> Result<Markup, CliError> {
    let count = draws.parameters.len();
    if count == 0 || count > MOST_DRAWN || draws.is_empty() {
        return Ok(html! {});
    }
    let parameters = summary::marginals(draws, summary);
    let title = summary::title(directory, &summary.certificate);
    let densities = output::plot::densities(&parameters, &title).map_err(CliError::Failure)?;
    Ok(html! {
        h2 { "Densities" }
        div role="img" aria-label="Densities of the draws of each parameter" { (PreEscaped(densities)) }
        h2 { "Draws in order" }
        p class="quiet" { "A chain that has settled looks like a band without a trend; draws of an anchor's own Gaussian always do." }
        @for p in &parameters { (trace(&p.name, &p.chains)) }
    })
}

fn trace(name: &str, chains: &[Vec<f64>]) -> Markup {
    const SIZE: (f64, f64) = (900.0, 56.0);
    const POINTS: usize = 450;
    let finite = chains.iter().flatten().filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| {
        (a.min(*v), b.max(*v))
    });
    let span = if high > low { high - low } else { 1.0 };
    let line = |chain: &Vec<f64>| -> String {
        let every = chain.len().div_ceil(POINTS).max(1);
        let points = chain.iter().step_by(every).enumerate().map(|(i, v)| {
            let x = 130.0 + (SIZE.0 - 134.0) * (i * every) as f64 / chain.len().max(2) as f64;
            format!(
                "{x:.1},{:.1}",
                SIZE.1 - 4.0 - (SIZE.1 - 8.0) * (v - low) / span
            )
        });
        points.collect::<Vec<_>>().join(" ")
    };
    let colors = ["#0550ae", "#b35900", "#1a7f37", "#8250df"];
    html! {
        svg role="img" aria-label=(format!("Draws of {name} in order")) viewBox=(format!("0 0 {} {}", SIZE.0, SIZE.1)) {
            text x="0" y="32" font-size="13" fill="#1f2328" { (shortened(name)) }
            @for (c, chain) in chains.iter().enumerate() {
                polyline points=(line(chain)) fill="none" stroke=(colors[c % colors.len()]) stroke-width="0.8" {}
            }
        }
    }
}

fn shortened(name: &str) -> String {
    let short: String = name.chars().take(15).collect();
    match short.len() < name.len() {
        true => format!("{short}…"),
        false => short,
    }
}

/// What a release is, for somebody who has not read the code.
fn in_words(kind: &str) -> &'static str {
    match kind {
        "gaussian" | "discrete_gaussian" => "sums over all rows, with Gaussian noise",
        "poisson_gaussian" => "sums over a random batch of rows, with Gaussian noise",
        "fixed_batch_gaussian" => "sums over a batch of fixed size, with Gaussian noise",
        "bounded_range" => "random decisions on moves, by all rows",
        "poisson_barker" => "random decisions on moves, by a few rows drawn in secret",
        "pure" => "posterior draws",
        "heikkila" => "decisions by a batch of rows, with Gaussian noise",
        "fast_mh_noisy" => "decisions by a few rows, with Gaussian noise",
        _ => "releases without a guarantee",
    }
}

fn costs(c: &Certificate) -> Markup {
    let mut kinds: BTreeMap<&str, (u64, Option<f64>)> = BTreeMap::new();
    for e in &c.events {
        let kind = kinds
            .entry(in_words(e.event.kind()))
            .or_insert((0, Some(0.0)));
        kind.0 += e.count;
        let rho = e.event.rho().map(|rho| rho * e.count as f64);
        kind.1 = kind.1.zip(rho).map(|(a, b)| a + b);
    }
    let total: Option<f64> = kinds.values().map(|(_, rho)| *rho).sum();
    let share = |rho: Option<f64>| match (rho, total) {
        (Some(rho), Some(total)) if total > 0.0 && rho < 5e-4 * total => "under 0.1 %".into(),
        (Some(rho), Some(total)) if total > 0.0 => format!("{:.1} %", 100.0 * rho / total),
        _ => "–".into(),
    };
    if kinds.is_empty() {
        return html! { p { "Nothing that a ledger counts." } };
    }
    html! {
        table {
            thead { tr { th scope="col" { "released" } th scope="col" { "times" } th scope="col" { "share of what was spent" } } }
            tbody { @for (kind, (count, rho)) in &kinds { tr {
                th scope="row" { (kind) } td { (count) } td { (share(*rho)) }
            } } }
        }
        p { "Accounted by: " (c.accountant) "." }
        @if let Some(budget) = &c.budget {
            p { "Budget: \u{3b5} = " (number(budget.epsilon())) ", \u{3b4} = " (format!("{:e}", budget.delta())) "."
                @if let Some(ledger) = &c.ledger { " Ledger: " (ledger) "." }
                @if let Some(records) = &c.records { " This run is " (records) "." }
            }
        }
    }
}

/// A bound, which is never rounded down.
fn upwards(v: f64) -> String {
    match v {
        v if v < 100.0 => format!("{:.2}", (100.0 * v).ceil() / 100.0),
        v if v < 1e5 => format!("{:.0}", v.ceil()),
        _ => format!("{:.2e}", 1.01 * v),
    }
}

/// Three or four digits; whole numbers without a point.
fn number(v: f64) -> String {
    match v.abs() {
        a if !a.is_finite() => "–".into(),
        a if a < 1e5 && v == v.trunc() => format!("{v:.0}"),
        a if !(1e-3..1e5).contains(&a) => format!("{v:.2e}"),
        a if a >= 100.0 => format!("{v:.0}"),
        a if a >= 1.0 => format!("{v:.2}"),
        _ => format!("{v:.4}"),
    }
}
