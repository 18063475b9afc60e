//! Figures 1 and 2 of Räisä 2021: the samplers on one budget, by distance from the exact
//! posterior, by error of the mean and by R-hat.

use super::drawing::shown;
use super::raisa_run::{CHAINS, Entry, Score, average};
use super::raisa_settings::{EPSILONS, FEW, REPEATS, methods};
use super::raisa_targets::{Kind, ROWS, Target};
use super::{Drawing, Effort, Figure, ReproduceError, Table};
use crate::plot::{Axis, Mark, Plot};
use dpmc::privacy::Budget;

/// ε that the table shows.
const TABLED: [f64; 4] = [2.0, 4.0, 8.0, 15.0];
/// Iterations of quick runs.
const QUICK: u64 = 40;

/// All scores of one method on one problem.
struct Curve {
    target: &'static str,
    entry: Entry,
    /// One an ε.
    scores: Vec<Score>,
}

/// δ = 0.1/n.
pub(super) fn budget(epsilon: f64, rows: usize) -> Result<Budget, ReproduceError> {
    Ok(Budget::new(epsilon, 0.1 / rows as f64)?)
}

/// Every method on both problems.
fn curves(effort: &Effort) -> Result<(Vec<f64>, Vec<Curve>), ReproduceError> {
    let epsilons = if effort.quick {
        TABLED.to_vec()
    } else {
        EPSILONS.to_vec()
    };
    let rows = effort.of(ROWS, 2_000) as usize;
    let mut curves = Vec::new();
    for kind in [Kind::Banana, Kind::Gaussian] {
        let target = Target::new(kind, rows)?;
        for mut entry in methods(kind, rows) {
            entry.most = effort.of(entry.most, QUICK);
            entry.repeats = effort.of(entry.repeats, 1);
            let scores = epsilons
                .iter()
                .map(|e| {
                    let budget = budget(*e, rows)?;
                    average(&target, &entry, Some(budget))
                })
                .collect::<Result<_, _>>()?;
            curves.push(Curve {
                target: target.name(),
                entry,
                scores,
            });
        }
    }
    Ok((epsilons, curves))
}

/// MMD, with its standard error where there are repeats.
fn with_error(s: &Score) -> String {
    match s.mmd_error.is_finite() {
        true => format!("{:.3} ± {:.3}", s.mmd, s.mmd_error),
        false => format!("{:.3}", s.mmd),
    }
}

/// One panel of one problem.
fn panel(
    name: &'static str,
    y: Axis,
    of: fn(&Score) -> f64,
    (epsilons, curves): &(Vec<f64>, Vec<Curve>),
) -> Plot {
    let own = curves.iter().filter(|c| c.target == name);
    Plot {
        name: name.into(),
        x: Axis::linear("epsilon at delta = 0.1/n"),
        y,
        marks: own
            .map(|c| {
                let points = epsilons.iter().zip(&c.scores).map(|(e, s)| (*e, of(s)));
                Mark::line(c.entry.label, points.collect())
            })
            .collect(),
    }
}

/// Figure 1.
pub(super) fn divergence(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let all = curves(effort)?;
    let plots = ["banana", "Gaussian"].map(|name| panel(name, Axis::log("MMD"), |s| s.mmd, &all));
    Ok(drawing(figure, effort, plots.to_vec(), &all))
}

/// Figure 2.
pub(super) fn errors(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let all = curves(effort)?;
    let mut plots = Vec::new();
    for name in ["banana", "Gaussian"] {
        let error = Axis::log("error of the mean");
        plots.push(panel(name, error, |s| s.mean_error, &all));
        plots.push(panel(name, Axis::log("largest R-hat"), |s| s.r_hat, &all));
    }
    Ok(drawing(figure, effort, plots, &all))
}

fn drawing(
    figure: &Figure,
    effort: &Effort,
    plots: Vec<Plot>,
    (epsilons, curves): &(Vec<f64>, Vec<Curve>),
) -> Drawing {
    let tabled = |c: &Curve, of: &dyn Fn(&Score) -> String| -> String {
        let pairs = epsilons.iter().zip(&c.scores);
        let kept = pairs.filter(|(e, _)| TABLED.contains(e));
        kept.map(|(_, s)| of(s)).collect::<Vec<_>>().join(" / ")
    };
    let rows = curves
        .iter()
        .map(|c| {
            vec![
                c.target.into(),
                c.entry.label.into(),
                c.entry.role.name().into(),
                tabled(c, &|s| shown(s.epsilon)),
                tabled(c, &|s| format!("{:.0}", s.iterations)),
                tabled(c, &|s| format!("{:.2}", s.acceptance)),
                tabled(c, &|s| with_error(s)),
                tabled(c, &|s| format!("{:.2e}", s.mean_error)),
                tabled(c, &|s| format!("{:.2}", s.r_hat)),
            ]
        })
        .collect();
    let table = Table {
        head: vec![
            "problem",
            "method",
            "role",
            "spends of 2 / 4 / 8 / 15",
            "iterations a chain",
            "accepted",
            "MMD",
            "error of the mean",
            "R-hat",
        ],
        rows,
    };
    let says = format!(
        "n = {}, {CHAINS} chains share the budget, means over {} repeats ({FEW} for stochastic gradients), first halves left out, {} exact draws.",
        effort.of(ROWS, 2_000),
        effort.of(REPEATS, 1),
        super::raisa_targets::REFERENCE,
    );
    let drawing = Drawing::new(figure, &says, (2, 250.0), plots, table);
    drawing.noting(NOTES)
}

const NOTES: &[&str] = &[
    "A run ends where its next step would exceed the budget by the ledger's filter (Gaussian DP, rho, or one Renyi order): for dp-hmc and dp-penalty after as many iterations as by the paper's tight accountant of the Gaussian. Runs that spend less than their budget ended early, for time.",
    "Settings of all methods were chosen on these made-up rows, which costs no privacy here; on real rows it would.",
];
