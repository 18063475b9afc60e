//! Exactness on a neural network: Hamiltonian samplers reproduce what a network of one tanh unit
//! predicts, by quadrature over its four parameters.
//!
//! Its posterior has two mirror-image modes, θ and θ with (w₁, b₁, w₂) negated, which a chain need
//! not visit in turn: what is compared is the predicted probability at two points, the same for
//! both. False alarms and power as in `known_posteriors.rs`; fixed seeds. A label's sign, a missing
//! bias, a factor of two in a ratio or another order of the parameters move them by tens of per
//! cent.

use std::sync::Arc;

use crate::common::chains::{AnyCurator, Length, STUDY, TEST, drive};
use dpmc::data::{Dataset, LabelKind};
use dpmc::engine::EngineChoice;
use dpmc::model::{Mlp, Model, Prior};
use dpmc::privacy::{Acceptance, Batch, Estimator, GradientNoise, Lambda};
use dpmc::sampler::{
    ClipNorm, ClipRule, Hamiltonian, HamiltonianSettings, HamiltonianWarmup, Mass,
};

/// One feature and a label: more often true to the right, with a few exceptions.
const ROWS: [(f64, bool); 14] = [
    (-1.0, false),
    (-0.9, false),
    (-0.75, false),
    (-0.6, true),
    (-0.4, false),
    (-0.25, false),
    (0.1, true),
    (0.2, true),
    (0.35, true),
    (0.5, true),
    (0.6, false),
    (0.8, true),
    (0.9, true),
    (1.0, true),
];

/// Where predictions are compared.
const POINTS: [f64; 2] = [-0.5, 0.8];

fn sigma(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

fn data(kind: LabelKind) -> Dataset {
    let mut builder = Dataset::builder_with(vec!["x".into()], Some(kind), 1.0).unwrap();
    for (x, y) in ROWS {
        let label = match (kind, y) {
            (_, true) => 1.0,
            (LabelKind::Binary, false) => -1.0,
            (_, false) => 0.0,
        };
        builder.push_value(&[x as f32], Some(label)).unwrap();
    }
    builder.finish().unwrap()
}

/// Mean and sd of the predicted probability at each point: the midpoint rule on 40⁴ cells of
/// ±5.5 prior sds, priors N(0, 1) on w₁ and b₁ and N(0, `out`²) on w₂ and b₂.
fn exact(out: f64) -> [(f64, f64); 2] {
    const CELLS: usize = 40;
    let axis = |sd: f64| -> Vec<(f64, f64)> {
        let z = (0..CELLS).map(|i| -5.5 + 11.0 * (i as f64 + 0.5) / CELLS as f64);
        z.map(|z| (sd * z, (-0.5 * z * z).exp())).collect()
    };
    let (inner, outer) = (axis(1.0), axis(out));
    let (mut mass, mut first, mut second) = (0.0, [0.0; 2], [0.0; 2]);
    for &(w1, p1) in &inner {
        for &(b1, p2) in &inner {
            let unit = |x: f64| (w1 * x + b1).tanh();
            let units = ROWS.map(|(x, y)| (unit(x), y));
            let there = POINTS.map(unit);
            for &(w2, p3) in &outer {
                for &(b2, p4) in &outer {
                    let chance = |(a, y): (f64, bool)| {
                        let odds = b2 + w2 * a;
                        sigma(if y { odds } else { -odds })
                    };
                    let likelihood: f64 = units.into_iter().map(chance).product();
                    let weight = p1 * p2 * p3 * p4 * likelihood;
                    mass += weight;
                    for (k, a) in there.into_iter().enumerate() {
                        let p = sigma(b2 + w2 * a);
                        first[k] += weight * p;
                        second[k] += weight * p * p;
                    }
                }
            }
        }
    }
    [0, 1].map(|k| {
        let mean = first[k] / mass;
        (mean, (second[k] / mass - mean * mean).sqrt())
    })
}

/// Leapfrog steps of half a prior sd; a clip that no row reaches: ‖∇f‖ ≤ √(2w₂² + 2) a row.
fn sampler(model: &dyn Model, rule: (Estimator, Acceptance), noise: GradientNoise) -> Hamiltonian {
    let settings = HamiltonianSettings {
        estimator: rule.0,
        acceptance: rule.1,
        clip: Some(ClipRule {
            rate: 12.0,
            norm: ClipNorm::Euclidean,
        }),
        largest_clip: 1e6,
        gradient: noise,
        step: 0.45,
        leapfrog_steps: 4,
        jitter: Some(HamiltonianSettings::JITTER),
        mass: Mass::Scalar(1.0),
        warmup: HamiltonianWarmup::none(),
    };
    Hamiltonian::new(model.prior().clone(), settings, model.dim()).unwrap()
}

fn check(kind: LabelKind, length: &Length) {
    let names = data(kind).features().to_vec();
    let outputs = if kind == LabelKind::Binary { 1 } else { 2 };
    // The log odds of two classes are the difference of two outputs, weights of N(0, 2).
    let expected = exact((outputs as f64).sqrt());
    // The labels tell: under the prior alone both are one half.
    assert!(expected[1].0 - expected[0].0 > 0.15, "{expected:?}");
    let prior = Prior::normal(2 + 2 * outputs, 1.0);
    let model: Arc<dyn Model> = Arc::new(Mlp::new(&names, 1, kind, prior, 1.0).unwrap());
    let noisy = |clip: Option<f64>, sigma: f64| GradientNoise {
        clip,
        batch: Batch::All,
        sigma,
    };
    let poisson = Estimator::Poisson {
        lambda: Lambda::Ratio(2.0),
    };
    let (all, penalty) = (Estimator::FullBatch, Acceptance::Penalty { tau: 0.02 });
    for (i, (name, rule, noise, steps)) in [
        (
            "hmc",
            (all, Acceptance::Metropolis),
            noisy(Some(12.0), 0.0),
            60_000,
        ),
        (
            "barker-hmc",
            (all, Acceptance::Barker),
            noisy(Some(0.5), 0.7),
            170_000,
        ),
        ("dp-hmc", (all, penalty), noisy(Some(0.5), 0.7), 220_000),
        (
            "poisson",
            (poisson, Acceptance::Barker),
            noisy(Some(0.5), 0.3),
            170_000,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let seed = 40 + 10 * outputs as u8 + i as u8;
        let engine = EngineChoice::Cpu;
        let mut curator =
            AnyCurator::new(data(kind), model.clone(), engine, false, u64::from(seed));
        let sampler = sampler(&*model, rule, noise);
        let start = vec![0.1; model.dim()];
        let steps = length.of(steps);
        let draws = drive(sampler.into(), &mut curator, &start, steps, seed);
        for (k, x) in POINTS.into_iter().enumerate() {
            let odds = |t: usize| -> f64 {
                let at = |j: usize| draws[j][t];
                let unit = (at(0) * x + at(1)).tanh();
                match outputs {
                    1 => at(2) * unit + at(3),
                    // w₂ of either class, then b₂ of either.
                    _ => (at(3) - at(2)) * unit + at(5) - at(4),
                }
            };
            let column: Vec<f64> = (0..steps).map(|t| sigma(odds(t))).collect();
            length.assert_moments(&format!("{name}, {outputs} at {x}"), &column, expected[k]);
        }
    }
}

#[test]
fn a_binary_head_matches_quadrature() {
    check(LabelKind::Binary, &TEST);
}

#[test]
#[ignore = "study"]
fn long_chains_of_either_head_match_quadrature() {
    check(LabelKind::Binary, &STUDY);
    check(LabelKind::Class { classes: 2 }, &STUDY);
}
