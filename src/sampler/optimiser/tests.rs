//! Steps by hand, on rows whose gradients are known.

use super::*;
use crate::privacy::Batch;
use crate::sampler::langevin::known_gradients::KnownGradients;

/// Twenty rows at (1, −2), precision 2 and 8 in all; prior N(0, 2²): where the log posterior's
/// gradient is `P(m − θ) − θ/4`.
const AT: [f64; 2] = [1.0, -2.0];
const PRECISION: [f64; 2] = [2.0, 8.0];
const ROWS: usize = 20;

fn optimiser(rule: OptimiserName, step: f64, scale: [f64; 2]) -> Optimiser {
    let noise = GradientNoise {
        clip: None,
        batch: Batch::All,
        sigma: 0.0,
    };
    let schedule = Schedule::Fixed { step };
    let prior = Prior::normal(2, 2.0);
    Optimiser::new(prior, rule, schedule, noise, ROWS, scale.to_vec()).unwrap()
}

fn known() -> KnownGradients {
    KnownGradients::diagonal(ROWS, &AT, &PRECISION, 1)
}

fn mean_gradient(theta: [f64; 2]) -> [f64; 2] {
    std::array::from_fn(|j| (PRECISION[j] * (AT[j] - theta[j]) - theta[j] / 4.0) / ROWS as f64)
}

fn run(mut optimiser: Optimiser, start: [f64; 2], steps: usize) -> [f64; 2] {
    let mut chains = Chains::new(&[start.to_vec()], [3; 32]);
    let mut releases = known();
    for _ in 0..steps {
        optimiser.step(&mut chains, &mut releases).unwrap();
    }
    [chains.thetas[[0, 0]], chains.thetas[[0, 1]]]
}

/// Without noise a step is the mean log posterior's gradient times the step, the scale squared.
#[test]
fn a_step_of_sgd_is_the_gradient() {
    let start = [0.3, 0.7];
    let g = mean_gradient(start);
    let plain = run(optimiser(OptimiserName::Sgd, 0.5, [1.0; 2]), start, 1);
    let scaled = run(optimiser(OptimiserName::Sgd, 0.5, [2.0, 0.1]), start, 1);
    for j in 0..2 {
        assert!((plain[j] - (start[j] + 0.5 * g[j])).abs() < 1e-12);
        let square = [4.0, 0.01][j];
        assert!((scaled[j] - (start[j] + 0.5 * square * g[j])).abs() < 1e-12);
    }
}

/// Adam's first step has the length of the learning rate; the second follows from both gradients.
#[test]
fn two_steps_of_adam_by_hand() {
    let start = [0.3, 0.7];
    let first = mean_gradient(start);
    let after: [f64; 2] = std::array::from_fn(|j| start[j] + 0.1 * first[j].signum());
    let once = run(optimiser(OptimiserName::Adam, 0.1, [1.0; 2]), start, 1);
    let twice = run(optimiser(OptimiserName::Adam, 0.1, [1.0; 2]), start, 2);
    let second = mean_gradient(after);
    for j in 0..2 {
        assert!((once[j] - after[j]).abs() < 1e-12);
        let m = (0.09 * first[j] + 0.1 * second[j]) / (1.0 - 0.81);
        let v = (0.999e-3 * first[j].powi(2) + 1e-3 * second[j].powi(2)) / (1.0 - 0.998_001);
        assert!((twice[j] - (after[j] + 0.1 * m / v.sqrt())).abs() < 1e-9);
    }
}

/// The end is the posterior's mode, not the likelihood's: a missing prior would be off by 1/9 and
/// 1/33 of it.
#[test]
fn both_end_at_the_mode() {
    for (rule, step) in [(OptimiserName::Sgd, 2.0), (OptimiserName::Adam, 0.02)] {
        let end = run(optimiser(rule, step, [1.0; 2]), [5.0, 5.0], 3000);
        for j in 0..2 {
            let mode = PRECISION[j] * AT[j] / (PRECISION[j] + 0.25);
            assert!((end[j] - mode).abs() < 1e-3, "{rule:?}: {end:?}");
        }
    }
}

#[test]
fn states_come_back_and_damaged_ones_do_not() {
    let mut adam = optimiser(OptimiserName::Adam, 0.1, [1.0; 2]);
    let mut chains = Chains::new(&[vec![0.0; 2], vec![1.0; 2]], [3; 32]);
    adam.step(&mut chains, &mut known()).unwrap();
    let state = adam.state();
    let mut other = optimiser(OptimiserName::Adam, 0.1, [1.0; 2]);
    other.restore(&state, 2).unwrap();
    assert_eq!(other.state(), state);
    assert!(other.restore(&state, 1).unwrap_err().contains("'moments'"));
    let mut sgd = optimiser(OptimiserName::Sgd, 0.1, [1.0; 2]);
    assert!(sgd.restore(&state, 2).is_err());
    let damaged = OptimiserState {
        iteration: u64::MAX,
        ..state
    };
    assert!(
        other
            .restore(&damaged, 2)
            .unwrap_err()
            .contains("'iteration'")
    );
}

#[test]
fn what_cannot_be_climbed_is_refused() {
    let boxed = Optimiser::new(
        Prior::flat_box(2, 1.0),
        OptimiserName::Sgd,
        Schedule::Fixed { step: 1.0 },
        optimiser(OptimiserName::Sgd, 1.0, [1.0; 2]).noise(),
        ROWS,
        vec![1.0; 2],
    );
    assert_eq!(boxed.unwrap_err().key, "model.box");
    let mut chains = Chains::new(&[vec![f64::NAN; 2]], [3; 32]);
    let mut sgd = optimiser(OptimiserName::Sgd, 1.0, [1.0; 2]);
    assert!(sgd.step(&mut chains, &mut known()).is_err());
}
