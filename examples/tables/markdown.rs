//! The study's results as the tables of the README and of `docs/results/tables.md`.

use std::fmt::Write as _;
use std::path::Path;

use super::report::Report;
use super::score::Score;

/// Both tables into one file.
pub fn write(reports: &[Report], path: &Path) -> Result<(), String> {
    let text = format!("{}\n{}", errors(reports), honesty(reports));
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// How far from the mean without privacy.
fn errors(reports: &[Report]) -> String {
    let mut text = String::from(
        "| table (rows × coefficients) | yardstick | `dpmc` | objective perturbation | gradient \
         descent or AdaSSP | holds |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for report in reports {
        let yardstick = report.yardstick.iter().map(|(_, error)| Some(*error));
        let rms = |method: &str| series(each(report, method).map(|s| s.and_then(|s| s.rms)));
        let mut simple = rms("DP-GD").unwrap_or("–".into());
        if let Some(adassp) = rms("AdaSSP") {
            write!(simple, "; AdaSSP {adassp}").unwrap_or_default();
        }
        let holds = each(report, OURS).filter_map(|s| s?.covers_mean);
        let (least, most) = holds.fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
        writeln!(
            text,
            "| {} ({} × {}) | {} | **{}** | {} | {simple} | {least:.2}–{most:.2} |",
            report.table,
            thousands(report.rows),
            report.coefficients,
            series(yardstick).unwrap_or_default(),
            rms(OURS).unwrap_or("–".into()),
            rms("objective perturbation").unwrap_or("–".into()),
        )
        .unwrap_or_default();
    }
    text
}

/// What intervals hold, and predictions beside the best peer's.
fn honesty(reports: &[Report]) -> String {
    let mut text = String::from(
        "| table | mean without privacy | generating coefficients | least of them | without \
         privacy | test log loss | best peer's | without privacy |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for report in reports {
        let ours = |of: fn(&Score) -> Option<f64>| {
            series(each(report, OURS).map(|s| s.and_then(of))).unwrap_or("–".into())
        };
        let loss = |s: &Score| s.log_loss;
        let peers = report.yardstick.iter().map(|(epsilon, _)| {
            let here = report.scores.iter().filter(|s| s.epsilon == *epsilon);
            // Of neighbours that are ours.
            let peers = here.filter(|s| !s.method.starts_with("dpmc") && !s.method.contains("add"));
            peers.filter_map(loss).reduce(f64::min)
        });
        let truth = report.covers_truth;
        let digits = |losses: &mut dyn Iterator<Item = Option<f64>>| {
            let all: Option<Vec<String>> = losses.map(|l| Some(format!("{:.3}", l?))).collect();
            all.map_or("–".into(), |l| l.join(" / "))
        };
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            report.table,
            ours(|s| s.covers_mean),
            ours(|s| s.covers_truth),
            ours(|s| s.covers_truth_least),
            truth.map_or("–".into(), |[all, least]| format!(
                "{all:.2} ({least:.2})"
            )),
            digits(&mut each(report, OURS).map(|s| s.and_then(loss))),
            digits(&mut peers.into_iter()),
            report.log_loss.map_or("–".into(), |l| format!("{l:.3}")),
        )
        .unwrap_or_default();
    }
    text
}

/// `dpmc` by whatever sampler came first.
const OURS: &str = "dpmc";

/// A method's scores by ε.
fn each<'a>(report: &'a Report, method: &str) -> impl Iterator<Item = Option<&'a Score>> {
    let named = move |s: &&Score| match method {
        OURS => s.method.starts_with(OURS),
        method => s.method == method,
    };
    let epsilons = report.yardstick.iter();
    let found = epsilons.map(|(e, _)| {
        let mut here = report.scores.iter().filter(|s| s.epsilon == *e);
        here.find(named)
    });
    found.collect::<Vec<_>>().into_iter()
}

/// `1.24 / 0.61`; nothing where there is no number.
fn series(values: impl Iterator<Item = Option<f64>>) -> Option<String> {
    let values: Vec<Option<f64>> = values.collect();
    let one = |v: &Option<f64>| match v {
        None => "–".into(),
        Some(v) if *v >= 9.995 => format!("{v:.0}"),
        Some(v) => format!("{v:.2}"),
    };
    let texts: Vec<String> = values.iter().map(one).collect();
    values
        .iter()
        .any(Option::is_some)
        .then(|| texts.join(" / "))
}

fn thousands(n: usize) -> String {
    match n {
        0..1000 => n.to_string(),
        _ => format!("{},{:03}", thousands(n / 1000), n % 1000),
    }
}
