//! Figure 1c and supplement figures 4 to 6 of Heikkilä et al. 2019: how well N(0, C) + V_cor
//! imitates a logistic variable.

use super::ridge::{RidgeFit, logistic};
use super::{Drawing, Effort, Figure, ReproduceError, Table};
use crate::plot::{Axis, Mark, Plot};
use dpmc::math::normal::below;
use dpmc::privacy::Correction;

/// Noise variance of the paper.
const VARIANCE: f64 = 2.0;
/// Seita's grid and penalty, as the paper uses them.
const RIDGE_N: u64 = 4000;
const RIDGE_LAMBDA: f64 = 10.0;
/// Largest |x| at which errors are looked at.
const REACH: f64 = 10.0;

const NNLS: &str = "non-negative least squares (dp-barker)";
const RIDGE: &str = "Seita's ridge";
const NOTE: &str = "An error of the acceptance curve biases the chain; it is no privacy matter.";

/// `count` + 1 even places of [−reach, reach].
fn places(reach: f64, count: u64) -> Vec<f64> {
    (0..=count)
        .map(|i| reach * (2.0 * i as f64 / count as f64 - 1.0))
        .collect()
}

fn curve(places: &[f64], f: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    places.iter().map(|&x| (x, f(x))).collect()
}

fn largest(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|(_, y)| y.abs()).fold(0.0, f64::max)
}

fn nnls(variance: f64) -> Result<Correction, ReproduceError> {
    Correction::fit(variance).map_err(ReproduceError::Failed)
}

fn ridge(variance: f64, effort: &Effort) -> RidgeFit {
    RidgeFit::new(variance, effort.of(RIDGE_N, 100) as usize, RIDGE_LAMBDA)
}

fn error_table(rows: Vec<(String, f64)>) -> Table {
    Table {
        head: vec!["fit", "largest error of the acceptance curve"],
        rows: rows
            .into_iter()
            .map(|(label, error)| vec![label, format!("{error:.2e}")])
            .collect(),
    }
}

/// Figure 1c.
pub(super) fn fit(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let fit = nnls(VARIANCE)?;
    let at = places(REACH, effort.of(400, 80));
    let errors = curve(&at, |x| fit.noisy_cdf(x) - logistic(x));
    let plots = vec![
        Plot {
            name: "Acceptance probability".into(),
            x: Axis::linear("log ratio, nats"),
            y: Axis::linear("probability"),
            marks: vec![
                Mark::line("N(0, 2) + V_cor", curve(&at, |x| fit.noisy_cdf(x))),
                Mark::dashed("logistic", curve(&at, logistic)),
            ],
        },
        Plot {
            name: "Error".into(),
            x: Axis::linear("log ratio, nats"),
            y: Axis::linear("difference"),
            marks: vec![Mark::line("N(0, 2) + V_cor less logistic", errors)],
        },
    ];
    let table = error_table(vec![(format!("{NNLS}, C = 2"), fit.error())]);
    Ok(Drawing::new(figure, "", (2, 240.0), plots, table).noting(&[NOTE]))
}

/// Supplement, figure 4.
pub(super) fn errors(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let at = places(REACH, effort.of(800, 80));
    let (ours, theirs) = (nnls(VARIANCE)?, ridge(VARIANCE, effort));
    let ours = curve(&at, |x| ours.noisy_cdf(x) - logistic(x));
    let theirs = curve(&at, |x| theirs.noisy_cdf(x) - logistic(x));
    let table = error_table(vec![
        (format!("{NNLS}, C = 2"), largest(&ours)),
        (format!("{RIDGE}, C = 2"), largest(&theirs)),
    ]);
    let plot = Plot {
        name: "Error of the acceptance curve".into(),
        x: Axis::linear("log ratio, nats"),
        y: Axis::linear("difference from the logistic curve"),
        marks: vec![Mark::line(NNLS, ours), Mark::line(RIDGE, theirs)],
    };
    Ok(Drawing::new(figure, SETTINGS, (1, 300.0), vec![plot], table).noting(&[NOTE]))
}

const SETTINGS: &str =
    "Ridge: 2n+1 places of [-10, 10] fitted at 4n+1 of [-20, 20], negative weights cut off.";

/// Supplement, figure 5.
pub(super) fn distributions(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let at = places(REACH, effort.of(800, 80));
    let (ours, theirs) = (nnls(VARIANCE)?, ridge(VARIANCE, effort));
    let cdf = |x: f64| -> f64 {
        let part = |mean: f64, sd: f64| below((x - mean) / sd);
        let components = ours.components().iter();
        components
            .map(|c| 0.5 * c.weight * (part(c.mean, c.sd) + part(-c.mean, c.sd)))
            .sum()
    };
    let variance: f64 = ours
        .components()
        .iter()
        .map(|c| c.weight * (c.mean * c.mean + c.sd * c.sd))
        .sum();
    let missing = std::f64::consts::PI.powi(2) / 3.0 - VARIANCE;
    let plot = Plot {
        name: "Distribution function of V_cor".into(),
        x: Axis::linear("V_cor, nats"),
        y: Axis::linear("probability"),
        marks: vec![
            Mark::line(NNLS, curve(&at, cdf)),
            Mark::line(RIDGE, curve(&at, |x| theirs.cdf(x))),
        ],
    };
    let table = Table {
        head: vec!["fit", "variance of V_cor", "variance missing from N(0, 2)"],
        rows: vec![vec![
            NNLS.into(),
            format!("{variance:.4}"),
            format!("{missing:.4}"),
        ]],
    };
    Ok(Drawing::new(
        figure,
        SETTINGS,
        (1, 300.0),
        vec![plot],
        table,
    ))
}

/// Supplement, figure 6.
pub(super) fn by_variance(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let count = effort.of(8, 3);
    let variances: Vec<f64> = (1..=count).map(|i| 3.2 * i as f64 / count as f64).collect();
    let at = places(REACH, effort.of(800, 80));
    let mut curves = [Vec::new(), Vec::new()];
    let mut rows = Vec::new();
    for &c in &variances {
        let theirs = ridge(c, effort);
        let error = largest(&curve(&at, |x| theirs.noisy_cdf(x) - logistic(x)));
        let ours = nnls(c)?.error();
        curves[0].push((c, ours));
        curves[1].push((c, error));
        rows.push((format!("{NNLS}, C = {c:.1}"), ours));
        rows.push((format!("{RIDGE}, C = {c:.1}"), error));
    }
    let [ours, theirs] = curves;
    let plot = Plot {
        name: "Largest error".into(),
        x: Axis::linear("C, the Gaussian's variance"),
        y: Axis::log("largest error of the acceptance curve"),
        marks: vec![Mark::line(NNLS, ours), Mark::line(RIDGE, theirs)],
    };
    let table = error_table(rows);
    Ok(Drawing::new(figure, SETTINGS, (1, 300.0), vec![plot], table).noting(&[NOTE]))
}
