//! The promise: likelihoods that are declared by an expression are sampled exactly, with the
//! parameters that their rows share, and seen from an anchor. What is exact is written out here by
//! other formulas than the library's.
//!
//! False alarms and power as in `known_posteriors`.

use std::sync::Arc;

use nalgebra::DMatrix;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal};

use crate::common::chains::{AnyCurator, Length, TEST, quadrature, run, samplers};
use crate::common::regression::{AT, KAPPA, NORM, NUMBER, PRIOR_SD, Table, table};
use dpmc::data::{Dataset, LabelKind};
use dpmc::engine::EngineChoice;
use dpmc::expression::{Law, family, ordinal, ordinal_parameters};
use dpmc::model::{Anchor, Lower, Metric, Model, Prior, Regression, Support};
use dpmc::privacy::{Acceptance, AnchorNoise, Curator, Estimator, Lambda, Releases};
use dpmc::sampler::{
    Adapt, Adaptation, AnchoredProposal, AnchoredSettings, Anchoring, Chains, Decisions,
    Preconditioner, RandomWalk, Structure,
};

fn law(name: &str, shared: &[&str], fixed: &[(&str, f64)]) -> Law {
    let shared: Vec<String> = shared.iter().map(|n| n.to_string()).collect();
    let fixed: Vec<(String, f64)> = fixed.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    Law::new(name, family(name).unwrap().likelihood, &shared, &fixed).unwrap()
}

/// Rows of one feature with their labels.
fn rows(kind: LabelKind) -> Vec<(f64, f64)> {
    let one = |i: i32| {
        let t = f64::from(i);
        let x = f64::from((0.7 * t).sin() as f32);
        let noise = (2.9 * t).sin() + (5.3 * t).cos();
        let y = match kind {
            LabelKind::Count { .. } => (2.0 * (0.6 * x + 0.5 * noise).exp()).round(),
            _ => f64::from((0.9 * x + 0.6 * noise) as f32),
        };
        (x, y)
    };
    (0..70).map(one).collect()
}

fn data(kind: LabelKind) -> Dataset {
    let mut set = Dataset::builder_with(vec!["a".into()], Some(kind), 1.0).unwrap();
    for (x, y) in rows(kind) {
        set.push_value(&[x as f32], Some(y)).unwrap();
    }
    set.finish().unwrap()
}

/// A coefficient and a shared parameter, by sums over all rows and by minibatches.
fn check_shared(name: &str, shared: &str, kind: LabelKind, log_density: fn(f64, f64, f64) -> f64) {
    // Bounds of steps grow with the box, and minibatches with them.
    let (kappa, sds, limit) = (0.6, [0.5, 0.4], 1.3);
    let prior = Prior {
        density: dpmc::model::Density::Normal {
            mean: vec![0.0, 0.2],
            sd: sds.to_vec(),
        },
        support: Support::Box(vec![limit; 2]),
        anchor: None,
    };
    let set = data(kind);
    let law = law(name, &[shared], &[]);
    let model = Regression::declared(set.features(), law, kind, 1.0, prior, kappa).unwrap();
    let model: Arc<dyn Model> = Arc::new(model);
    let table = rows(kind);
    let density = |theta: &[f64]| -> f64 {
        let each = table
            .iter()
            .map(|(x, y)| log_density(*y, x * theta[0], theta[1]));
        kappa * each.sum::<f64>()
            - 0.5 * (theta[0] / sds[0]).powi(2)
            - 0.5 * ((theta[1] - 0.2) / sds[1]).powi(2)
    };
    let exact = quadrature(density, &[0.5, 0.0], &[0.25, 0.25], limit);
    let scale: Vec<f64> = exact.iter().map(|e| e.1).collect();
    let start: Vec<f64> = exact.iter().map(|e| e.0).collect();
    for (k, (sampler, estimator, rule, _)) in samplers().into_iter().enumerate() {
        // The others see the same sums; their own tests are with the models written by hand.
        if !["mh", "poisson-barker"].contains(&sampler) {
            continue;
        }
        let mut curator = AnyCurator::new(
            data(kind),
            model.clone(),
            EngineChoice::Cpu,
            false,
            40 + k as u64,
        );
        let steps = TEST.of(160_000);
        let draws = run(
            &mut curator,
            &*model,
            (estimator, rule),
            &start,
            &scale,
            steps,
            k as u8,
        );
        for (j, (column, exact)) in draws.iter().zip(&exact).enumerate() {
            TEST.assert_moments(&format!("{name} {sampler} parameter {j}"), column, *exact);
        }
    }
}

#[test]
#[ignore = "study"]
fn unknown_variance_matches_quadrature() {
    let label = LabelKind::Number {
        low: -3.0,
        high: 3.0,
    };
    check_shared("gaussian", "log_sigma", label, |y, eta, log_sigma| {
        let variance = (2.0 * log_sigma).exp();
        -(y - eta).powi(2) / (2.0 * variance) - 0.5 * variance.ln()
    });
}

#[test]
fn overdispersed_counts_match_quadrature() {
    // Γ(y + r)/Γ(r) as a product.
    check_shared(
        "negative-binomial",
        "log_shape",
        LabelKind::Count { max: 40 },
        |y, eta, s| {
            let (mu, r) = (eta.exp(), s.exp());
            let rising: f64 = (0..y as u32).map(|k| (r + f64::from(k)).ln()).sum();
            rising + r * r.ln() + y * mu.ln() - (y + r) * (mu + r).ln()
        },
    );
}

/// Rows of two features with labels of this kind.
fn two_features(kind: LabelKind) -> Table {
    let numbers = table(90, NUMBER);
    if kind != LabelKind::Binary {
        return numbers;
    }
    let labels = numbers
        .labels
        .iter()
        .map(|y| if *y > 0.3 { 1.0 } else { -1.0 });
    Table {
        offsets: Vec::new(),
        labels: labels.collect(),
        rows: numbers.rows,
        kind,
    }
}

/// Chains about an exact expansion target the posterior itself.
fn check_anchored(
    law: Law,
    kind: LabelKind,
    sd: f64,
    log_density: fn(f64, f64) -> f64,
    length: &Length,
) {
    let table = two_features(kind);
    let names = ["a".to_string(), "b".to_string()];
    let prior = Prior::normal(2, PRIOR_SD);
    let model = Regression::declared(&names, law, kind, NORM, prior.clone(), KAPPA).unwrap();
    let model: Arc<dyn Model> = Arc::new(model);
    let density = |theta: &[f64]| -> f64 {
        let rows = table.rows.iter().zip(&table.labels);
        let each = rows.map(|(x, y)| log_density(*y, x[0] * theta[0] + x[1] * theta[1]));
        let squares: f64 = theta.iter().map(|t| t * t).sum();
        KAPPA * each.sum::<f64>() - 0.5 * squares / (PRIOR_SD * PRIOR_SD)
    };
    let exact = quadrature(density, &AT, &[1.5 * sd; 2], 1e9);
    let factor = Lower::new(vec![1.0 / sd, 0.0, 0.1 / sd, 1.1 / sd]).unwrap();
    let metric = Metric {
        row_bound: NORM * factor.inverse_norm(),
        factor,
    };
    let open =
        |seed| Curator::not_private(table.data(), model.clone(), EngineChoice::Cpu, seed).unwrap();
    let seen = open(3)
        .anchor(&AT, &metric, AnchorNoise::expansion(0.0, 0.0))
        .unwrap();
    let anchor = Anchor {
        at: AT.to_vec(),
        metric,
        gradient: seen.gradient,
        curvature: seen.curvature,
        gradient_sd: 0.0,
        curvature_sd: 0.0,
        centre: vec![0.0; 2],
        // Beyond any draw.
        radius: 9.0,
        spread: Vec::new(),
        doubts: Default::default(),
        alone: None,
    };
    let poisson = Estimator::Poisson {
        lambda: Lambda::Ratio(0.5),
    };
    for (k, (estimator, rule)) in [
        (poisson, Acceptance::Barker),
        (Estimator::FullBatch, Acceptance::Metropolis),
    ]
    .into_iter()
    .enumerate()
    {
        let settings = AnchoredSettings {
            anchoring: Anchoring {
                location: None,
                start: AT.to_vec(),
                stages: 0,
                rows: table.rows.len(),
                row_norm: NORM,
                unit: KAPPA,
                slopes: model.slopes().unwrap(),
                structure: Structure::default(),
                clip: Some(100.0),
                radius: 9.0,
                split: None,
                undecided: false,
            },
            proposal: AnchoredProposal::Autoregressive { correlation: 0.0 },
            // Wide enough that no remainder is clipped.
            share: 8.0,
            refresh_after: None,
            decisions: Decisions::All,
        };
        let (adaptation, identity) = (
            Adaptation::new(Adapt::None, 0.3, 0, 2),
            Preconditioner::Identity,
        );
        let mut sampler = RandomWalk::new(
            prior.clone(),
            estimator,
            rule,
            None,
            1.0,
            identity,
            adaptation,
        )
        .with_anchoring(settings);
        let mut curator = open(60 + k as u64);
        sampler.set_anchor(anchor.clone()).unwrap();
        curator.set_anchor(anchor.clone()).unwrap();
        let mut chains = Chains::new(&[AT.to_vec()], [k as u8; 32]);
        sampler.start_at_anchor(&mut chains);
        let mut draws = [Vec::new(), Vec::new()];
        for _ in 0..length.of(70_000) {
            sampler.step(&mut chains, &mut curator).unwrap();
            for (column, v) in draws.iter_mut().zip(chains.thetas.row(0)) {
                column.push(*v);
            }
        }
        for (j, (column, exact)) in draws.iter().zip(&exact).enumerate() {
            let label = format!("{} {estimator:?} {rule:?} parameter {j}", law.name());
            length.assert_moments(&label, column, *exact);
        }
    }
}

#[test]
fn an_anchored_cloglog_matches_quadrature() {
    let law = law("cloglog", &[], &[]);
    check_anchored(
        law,
        LabelKind::Binary,
        0.2,
        |y, eta| {
            let miss = (-eta.exp()).exp();
            if y > 0.0 {
                (1.0 - miss).ln()
            } else {
                miss.ln()
            }
        },
        &TEST,
    );
}

/// Weights of a t law are negative where a row is far off.
#[test]
fn an_anchored_t_law_matches_quadrature() {
    let law = law("student-t", &[], &[("log_sigma", -0.9), ("nu", 3.0)]);
    check_anchored(
        law,
        NUMBER,
        0.12,
        |y, eta| {
            let scaled = (y - eta) / (-0.9f64).exp();
            -2.0 * (1.0 + scaled * scaled / 3.0).ln()
        },
        &TEST,
    );
}

/// The expansion of a law with a shared parameter lies about the mode, and is as wide as the
/// posterior there: 4,000 rows that the law made, two of its parameters coefficients. The density
/// is written out here, its derivatives are differences. No coin is fresh, so there are no false
/// alarms; half a sd in a parameter of four, or a tenth in a width, fails.
fn check_expansion(
    (name, law): (&str, Law),
    kind: LabelKind,
    label: fn(f64, &mut ChaCha12Rng) -> f64,
    log_density: fn(f64, f64, &[f64]) -> f64,
) {
    let mut rng = ChaCha12Rng::seed_from_u64(7);
    // The cutpoints of ordered classes are their intercepts.
    let ordered = name == "ordinal";
    let d = 2 + law.shared().len();
    let rows: Vec<([f64; 2], f64)> = (0..4_000)
        .map(|_| {
            let x = rng.random_range(-1.0..1.0f32);
            let first = if ordered {
                rng.random_range(-1.0..1.0f32)
            } else {
                1.0
            };
            let y = label(0.8 * f64::from(first) + 0.6 * f64::from(x), &mut rng);
            ([f64::from(first), f64::from(x)], f64::from(y as f32))
        })
        .collect();
    let first = if ordered { "w" } else { "intercept" };
    let names = [first.to_string(), "x".to_string()];
    let mut set = Dataset::builder_with(names.to_vec(), Some(kind), 1.5).unwrap();
    for (x, y) in &rows {
        set.push_value(&x.map(|v| v as f32), Some(*y)).unwrap();
    }
    let set = set.finish().unwrap();
    let prior = Prior::normal(d, 3.0);
    let model = Regression::declared(&names, law, kind, 1.5, prior.clone(), 1.0).unwrap();
    let model: Arc<dyn Model> = Arc::new(model);
    let mut curator = Curator::not_private(set, model.clone(), EngineChoice::Cpu, 1).unwrap();
    let anchoring = Anchoring {
        location: None,
        start: model.usual_start(),
        stages: 25,
        rows: rows.len(),
        row_norm: 1.5,
        unit: 1.0,
        slopes: model.slopes().unwrap(),
        structure: Structure::default(),
        clip: None,
        radius: 12.0,
        split: None,
        undecided: false,
    };
    let anchor = anchoring.run(&prior, &mut curator).unwrap();
    let mode = anchor.theta(&anchor.centre);
    let density = |theta: &[f64]| -> f64 {
        let each = rows
            .iter()
            .map(|(x, y)| log_density(*y, theta[0] * x[0] + theta[1] * x[1], &theta[2..]));
        each.sum::<f64>() - theta.iter().map(|t| t * t / 18.0).sum::<f64>()
    };
    let h = 1e-4;
    let at = |moves: &[(usize, f64)]| {
        let mut theta = mode.clone();
        moves.iter().for_each(|(k, by)| theta[*k] += by);
        density(&theta)
    };
    let precision = DMatrix::from_fn(d, d, |i, j| {
        let corners = at(&[(i, h), (j, h)]) - at(&[(i, h), (j, -h)]) - at(&[(i, -h), (j, h)]);
        -(corners + at(&[(i, -h), (j, -h)])) / (4.0 * h * h)
    });
    let covariance = precision.try_inverse().unwrap();
    let l = DMatrix::from_fn(d, d, |i, j| {
        if j <= i {
            anchor.metric.factor.times(&unit(d, j))[i]
        } else {
            0.0
        }
    });
    let whitened = DMatrix::from_row_slice(d, d, &anchor.curvature);
    let own = &l * whitened * l.transpose() + DMatrix::identity(d, d) / 9.0;
    let own = own.try_inverse().unwrap();
    for k in 0..d {
        let slope = (at(&[(k, h)]) - at(&[(k, -h)])) / (2.0 * h);
        let sd = covariance[(k, k)].sqrt();
        assert!(
            (slope * sd).abs() < 0.1,
            "{name} {k}: {} sds of {mode:?}",
            slope * sd
        );
        let ratio = own[(k, k)].sqrt() / sd;
        assert!(
            (0.92..1.08).contains(&ratio),
            "{name} {k}: as wide as {ratio} of it"
        );
    }
}

fn unit(d: usize, k: usize) -> Vec<f64> {
    (0..d).map(|j| f64::from(u8::from(j == k))).collect()
}

#[test]
fn an_expansion_holds_what_rows_share() {
    let number = |low, high| LabelKind::Number { low, high };
    check_expansion(
        ("gaussian", law("gaussian", &["log_sigma"], &[])),
        number(-9.0, 9.0),
        |eta, rng| eta + 0.4 * rng.sample::<f64, _>(StandardNormal),
        |y, eta, s| -0.5 * ((y - eta) / s[0].exp()).powi(2) - s[0],
    );
    check_expansion(
        (
            "negative-binomial",
            law("negative-binomial", &["log_shape"], &[]),
        ),
        LabelKind::Count { max: 60 },
        |eta, rng| {
            let gamma = Gamma::new(1.5, eta.exp() / 1.5).unwrap().sample(rng);
            Poisson::new(gamma.max(1e-9)).unwrap().sample(rng)
        },
        |y, eta, s| {
            let (mu, r) = (eta.exp(), s[0].exp());
            let rising: f64 = (0..y as u32).map(|k| (r + f64::from(k)).ln()).sum();
            rising + r * r.ln() + y * mu.ln() - (y + r) * (mu + r).ln()
        },
    );
    // Three in five are not seen to their end.
    check_expansion(
        ("weibull", law("weibull", &["log_shape"], &[])),
        number(-30.0, 30.0),
        |eta, rng| {
            let time = eta.exp() * (-rng.random::<f64>().ln()).powf(1.0 / 1.4);
            let end = rng.random_range(0.2..3.0);
            if time < end { time } else { -end }
        },
        |y, eta, s| {
            let (k, z) = (s[0].exp(), y.abs() / eta.exp());
            let event = if y > 0.0 {
                k.ln() + (k - 1.0) * z.ln() - eta
            } else {
                0.0
            };
            event - z.powf(k)
        },
    );
    let parameters = ordinal_parameters(4).into_iter().map(|p| p.0);
    let parameters: Vec<String> = parameters.collect();

    check_expansion(
        (
            "ordinal",
            Law::new("ordinal", &ordinal(4), &parameters, &[]).unwrap(),
        ),
        LabelKind::Class { classes: 4 },
        |eta, rng| {
            let u: f64 = rng.random();
            let latent = eta + (u / (1.0 - u)).ln();
            [-0.7, 0.4, 1.3].iter().filter(|c| latent > **c).count() as f64
        },
        |y, eta, s| {
            let cuts = [s[0], s[0] + s[1].exp(), s[0] + s[1].exp() + s[2].exp()];
            let below = |k: usize| match k {
                0 => 0.0,
                4 => 1.0,
                _ => 1.0 / (1.0 + (eta - cuts[k - 1]).exp()),
            };
            (below(y as usize + 1) - below(y as usize)).ln()
        },
    );
}
