//! Exactness: every sampler reproduces posteriors known in closed form or by quadrature.
//!
//! False alarms and power are those of `common::chains::TEST` (a mean off by 0.15 sds or an sd by
//! 10 %), and of `STUDY` (half of that) in the study; with fixed seeds, a failure is a defect. A
//! factor of two in a ratio, a flipped sign or a swapped θ and θ' moves means or sds by tens of per
//! cent.

use std::sync::Arc;

use crate::common::chains::{
    AnyCurator, Length, STUDY, TEST, log_posterior_by_curator, quadrature, run, samplers,
};
use dpmc::data::{Dataset, LabelKind};
use dpmc::engine::EngineChoice;
use dpmc::model::{GaussianMean, Mixture, Model, Prior, Regression};
use dpmc::privacy::Acceptance;
use dpmc::synthetic;

struct Problem {
    name: &'static str,
    data: fn() -> Dataset,
    model: Arc<dyn Model>,
    /// Exact (mean, sd) of each parameter.
    exact: Vec<(f64, f64)>,
}

/// The rows that the generator makes, read through a second, public path: the tests'
/// own references need cells, and cells never leave a `Dataset`.
fn check_all(problem: &Problem, iterations: usize, length: &Length) {
    let start: Vec<f64> = problem.exact.iter().map(|e| e.0).collect();
    let scale: Vec<f64> = problem.exact.iter().map(|e| e.1).collect();
    for (k, (name, estimator, rule, private)) in samplers().into_iter().enumerate() {
        let rule = match rule {
            // Noise of about one nat on a typical move: enough to test the penalty.
            Acceptance::Penalty { .. } => {
                let typical = problem.model.ratio_rate().unwrap()
                    * 2.0
                    * scale.iter().map(|s| s * s).sum::<f64>().sqrt();
                Acceptance::Penalty {
                    tau: 1.0 / (2.0 * typical),
                }
            }
            other => other,
        };
        // A penalty whose noise is off by two moves sds by little: the full length sees it.
        let length = match rule {
            Acceptance::Penalty { .. } => &STUDY,
            _ => length,
        };
        let mut curator = AnyCurator::new(
            (problem.data)(),
            problem.model.clone(),
            EngineChoice::Cpu,
            // No budget lasts for half a million steps on a hundred rows; that a private
            // curator makes the very same decisions is a test below.
            false,
            100 + k as u64,
        );
        // The penalty and Barker rules mix more slowly.
        let steps = length.of(if private { 2 * iterations } else { iterations });
        let draws = run(
            &mut curator,
            &*problem.model,
            (estimator, rule),
            &start,
            &scale,
            steps,
            k as u8,
        );
        for (j, (column, exact)) in draws.iter().zip(&problem.exact).enumerate() {
            let label = format!("{} {name} parameter {j}", problem.name);
            length.assert_moments(&label, column, *exact);
        }
    }
}

const GAUSS_ROWS: usize = 120;

fn gaussian_data() -> Dataset {
    synthetic::gaussian(GAUSS_ROWS, &[0.3, -0.5], &[1.0, 0.7], 6.0, 21).unwrap()
}

#[test]
fn gaussian_mean_matches_its_closed_form() {
    gaussian_mean(&TEST);
}

fn gaussian_mean(length: &Length) {
    // Σ with correlation; κ = 0.5; prior N(0, 0.3²) so that a wrong prior term shows.
    let covariance = [1.0, 0.2, 0.2, 0.5];
    let (kappa, prior_sd) = (0.5, 0.3);
    let data = gaussian_data();
    let prior = Prior {
        support: dpmc::model::Support::Box(vec![2.0; 2]),
        ..Prior::normal(2, prior_sd)
    };
    let model = GaussianMean::new(data.features(), &covariance, 6.0, prior, kappa).unwrap();
    // Posterior precision: I/s² + κNΣ⁻¹; mean from the rows' sum, got from the model
    // itself at two points (its reference form is quadratic, so that is exact).
    let det = covariance[0] * covariance[3] - covariance[1] * covariance[2];
    let inverse = [
        covariance[3] / det,
        -covariance[1] / det,
        -covariance[2] / det,
        covariance[0] / det,
    ];
    let n = GAUSS_ROWS as f64;
    let row_sum = gaussian_sum();
    let mut p = [0.0; 4];
    for (k, v) in p.iter_mut().enumerate() {
        *v = kappa * n * inverse[k];
    }
    p[0] += prior_sd.powi(-2);
    p[3] += prior_sd.powi(-2);
    let d = p[0] * p[3] - p[1] * p[2];
    let cov = [p[3] / d, -p[1] / d, -p[2] / d, p[0] / d];
    let b = [
        kappa * (inverse[0] * row_sum[0] + inverse[1] * row_sum[1]),
        kappa * (inverse[2] * row_sum[0] + inverse[3] * row_sum[1]),
    ];
    let exact = vec![
        (cov[0] * b[0] + cov[1] * b[1], cov[0].sqrt()),
        (cov[2] * b[0] + cov[3] * b[1], cov[3].sqrt()),
    ];
    check_all(
        &Problem {
            name: "gaussian",
            data: gaussian_data,
            model: Arc::new(model),
            exact,
        },
        200_000,
        length,
    );
}

/// `Σ x_i` recovered from exact sums of a non-private curator: with Σ = I and κ = 1,
/// R(θ→θ') = (θ'−θ)·Σx − N(‖θ'‖²−‖θ‖²)/2.
fn gaussian_sum() -> [f64; 2] {
    let data = gaussian_data();
    let prior = Prior::flat_box(2, 2.0);
    let model = GaussianMean::new(data.features(), &[1.0, 0.0, 0.0, 1.0], 6.0, prior, 1.0).unwrap();
    let mut open =
        dpmc::privacy::Curator::not_private(data, Arc::new(model), EngineChoice::Cpu, 1).unwrap();
    let zero = [0.0, 0.0];
    let n = GAUSS_ROWS as f64;
    [[1.0, 0.0], [0.0, 1.0]].map(|unit| {
        let sums = open.exact_log_ratios(&[&zero], &[&unit], &[16.0]).unwrap();
        sums[0].0 + n / 2.0
    })
}

/// Rows (x, y) of a linear regression, in f32 as a data set holds them.
fn line() -> Vec<([f32; 2], f32)> {
    let row = |i: usize| {
        let t = i as f32;
        let x = [(0.7 * t).sin(), (1.3 * t).cos() * 0.8];
        (x, 0.9 * x[0] - 0.4 * x[1] + 0.5 * (2.9 * t).sin())
    };
    (0..80).map(row).collect()
}

fn line_data() -> Dataset {
    let label = LabelKind::Number {
        low: -2.0,
        high: 2.0,
    };
    let names = vec!["a".into(), "b".into()];
    let mut set = Dataset::builder_with(names, Some(label), 2.0).unwrap();
    for (x, y) in line() {
        set.push_value(&x, Some(f64::from(y))).unwrap();
    }
    set.finish().unwrap()
}

/// Exact (mean, sd) of the posterior of `y ~ N(x·θ, variance)`, tempered, under N(0, sd²).
fn line_posterior(variance: f64, kappa: f64, prior_sd: f64) -> Vec<(f64, f64)> {
    let (mut p, mut b) = ([prior_sd.powi(-2), 0.0, prior_sd.powi(-2)], [0.0; 2]);
    for (x, y) in line() {
        let (x, y) = (x.map(f64::from), f64::from(y));
        p[0] += kappa * x[0] * x[0] / variance;
        p[1] += kappa * x[0] * x[1] / variance;
        p[2] += kappa * x[1] * x[1] / variance;
        b[0] += kappa * x[0] * y / variance;
        b[1] += kappa * x[1] * y / variance;
    }
    let det = p[0] * p[2] - p[1] * p[1];
    vec![
        ((p[2] * b[0] - p[1] * b[1]) / det, (p[2] / det).sqrt()),
        ((p[0] * b[1] - p[1] * b[0]) / det, (p[0] / det).sqrt()),
    ]
}

#[test]
fn linear_regression_matches_its_closed_form() {
    linear_regression(&TEST);
}

fn linear_regression(length: &Length) {
    // A box far outside the posterior; a prior that counts.
    let prior = Prior {
        support: dpmc::model::Support::Box(vec![1.6; 2]),
        ..Prior::normal(2, 0.3)
    };
    let data = line_data();
    let label = data.label_kind().unwrap();
    let model = Regression::linear(data.features(), 0.5, label, 2.0, prior, 0.6).unwrap();
    check_all(
        &Problem {
            name: "linear",
            data: line_data,
            model: Arc::new(model),
            exact: line_posterior(0.5, 0.6, 0.3),
        },
        160_000,
        length,
    );
}

fn logistic_data() -> Dataset {
    synthetic::logistic(120, &[1.5, -1.0], 5).unwrap()
}

#[test]
fn logistic_regression_matches_quadrature() {
    logistic_regression(&TEST);
}

fn logistic_regression(length: &Length) {
    let data = logistic_data();
    let model: Arc<dyn Model> = Arc::new(
        Regression::logistic(data.features(), data.row_norm(), Prior::normal(2, 0.5), 0.7).unwrap(),
    );
    let density = log_posterior_by_curator(logistic_data, model.clone(), vec![0.8, -0.6]);
    let exact = quadrature(density, &[0.8, -0.6], &[0.2, 0.2], 1e9);
    check_all(
        &Problem {
            name: "logistic",
            data: logistic_data,
            model,
            exact,
        },
        160_000,
        length,
    );
}

fn mixture_data() -> Dataset {
    synthetic::mixture(90, Some(3.0), 6).unwrap()
}

#[test]
fn the_mixture_matches_quadrature() {
    mixture(&TEST);
}

fn mixture(length: &Length) {
    let model: Arc<dyn Model> =
        Arc::new(Mixture::new(2.0, 3.0, Prior::flat_box(2, 3.0), 0.3).unwrap());
    let density = log_posterior_by_curator(mixture_data, model.clone(), vec![0.3, 0.2]);
    let exact = quadrature(density, &[0.3, 0.2], &[1.0, 1.0], 3.0);
    check_all(
        &Problem {
            name: "mixture",
            data: mixture_data,
            model,
            exact,
        },
        400_000,
        length,
    );
}

#[test]
#[ignore = "study"]
fn long_chains_match_all_of_these() {
    for problem in [
        gaussian_mean,
        linear_regression,
        logistic_regression,
        mixture,
    ] {
        problem(&STUDY);
    }
}

/// A private curator decides as an open one does: same coins, same chain, for as long as
/// its budget lasts.
#[test]
fn a_private_curator_makes_the_same_decisions() {
    let model: Arc<dyn Model> =
        Arc::new(Mixture::new(2.0, 3.0, Prior::flat_box(2, 3.0), 0.003).unwrap());
    for (name, estimator, rule, private) in samplers() {
        if !private {
            continue;
        }
        let rule = match rule {
            Acceptance::Penalty { .. } => Acceptance::Penalty { tau: 50.0 },
            other => other,
        };
        let chain = |private| {
            let engine = EngineChoice::Cpu;
            let mut curator = AnyCurator::new(mixture_data(), model.clone(), engine, private, 7);
            run(
                &mut curator,
                &*model,
                (estimator, rule),
                &[0.3, 0.2],
                &[0.5, 0.5],
                1000,
                3,
            )
        };
        assert_eq!(chain(true), chain(false), "{name}");
    }
}

/// The GPU engine drives the same chain: with the same seeds, decisions are those of the
/// CPU unless a ratio differs by quanta right at a coin's threshold.
#[test]
fn the_gpu_engine_samples_the_same_chain() {
    let model: Arc<dyn Model> =
        Arc::new(Mixture::new(2.0, 3.0, Prior::flat_box(2, 3.0), 0.3).unwrap());
    if dpmc::engine::devices().len() < 2 {
        assert!(
            std::env::var_os("DPMC_REQUIRE_GPU").is_none(),
            "DPMC_REQUIRE_GPU is set and there is no adapter"
        );
        eprintln!("skipped: no GPU adapter");
        return;
    }
    let chain = |engine| {
        let mut curator = AnyCurator::new(mixture_data(), model.clone(), engine, false, 7);
        let barker = (dpmc::privacy::Estimator::FullBatch, Acceptance::Barker);
        run(
            &mut curator,
            &*model,
            barker,
            &[0.3, 0.2],
            &[0.5, 0.5],
            1000,
            3,
        )
    };
    assert_eq!(chain(EngineChoice::Cpu), chain(EngineChoice::Gpu));
}
