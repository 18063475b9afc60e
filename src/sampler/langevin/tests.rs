//! Stochastic-gradient samplers on Gaussians, by the exact moments of their linear steps.

use super::known_gradients::KnownGradients;
use super::*;
use crate::model::{Density, Prior, Support};
use crate::privacy::Batch;
use crate::sampler::*;

const CLIP: f64 = 1e9;

pub(super) fn flat() -> Prior {
    Prior {
        density: Density::Flat,
        support: Support::Unbounded,
        anchor: None,
    }
}

pub(super) fn settings(rate: f64, extra_noise: f64) -> GradientSettings {
    GradientSettings {
        clip: Some(CLIP),
        batch: if rate < 1.0 {
            Batch::Poisson { rate }
        } else {
            Batch::All
        },
        extra_noise,
    }
}

pub(super) fn sampler(d: usize, dynamics: Dynamics, step: f64, rate: f64) -> StochasticGradient {
    let schedule = Schedule::Fixed { step };
    StochasticGradient::new(flat(), d, dynamics, schedule, settings(rate, 0.0)).unwrap()
}

/// The parts of a cycle hold every iteration once, and their steps add up to those of all.
#[test]
fn parts_of_cycles_stand_for_all_iterations() {
    for (length, iterations) in [(2, 1), (7, 30), (100, 250), (1000, 10_000), (3000, 100)] {
        let schedule = Schedule::Cyclical { step: 0.3, length };
        let settings = settings(1.0, 0.0);
        let s = StochasticGradient::new(flat(), 1, Dynamics::Sgld, schedule, settings).unwrap();
        let levels = s.levels(iterations);
        assert_eq!(levels.iter().map(|l| l.1).sum::<u64>(), iterations);
        let all: f64 = (1..=iterations).map(|t| schedule.at(t)).sum();
        let parts: f64 = levels.iter().map(|l| l.1 as f64 * schedule.at(l.0)).sum();
        assert!((parts / all - 1.0).abs() < 2e-3, "{length} {parts} {all}");
    }
}

/// (θ, p, ξ) after one step of a one-dimensional chain whose gradient's noise is zσ.
fn one_step(
    sampler: &StochasticGradient,
    lambda: f64,
    (theta, p, xi): (f64, f64, f64),
    z: f64,
) -> (f64, f64, f64) {
    let mut sampler = sampler.clone();
    let mut state = sampler.state();
    state.iteration = 1;
    if sampler.dynamics.has_momentum() {
        state.momenta = vec![vec![p]];
        state.thermostats = vec![xi];
    }
    sampler.restore(&state, 1).unwrap();
    let mut chains = Chains::new(&[vec![theta]], [1; 32]);
    let mut releases = KnownGradients::diagonal(5, &[0.0], &[lambda], 1);
    releases.fixed = Some(vec![z]);
    let info = sampler.step(&mut chains, &mut releases).unwrap();
    assert_eq!(info.accepted, [true]);
    let after = sampler.state();
    let p = after.momenta.first().map_or(0.0, |p| p[0]);
    let xi = after.thermostats.first().copied().unwrap_or(0.0);
    (chains.thetas[[0, 0]], p, xi)
}

/// Stationary (E θ², E θp, E p²) and E of the squared momentum halfway, from the step's own
/// matrix: `P = M P Mᵀ + b bᵀ`, summed by doubling.
fn moments(sampler: &StochasticGradient, lambda: f64, xi: f64) -> ([f64; 3], f64) {
    let column = |theta, p, z| {
        let after = one_step(sampler, lambda, (theta, p, xi), z);
        [after.0, after.1]
    };
    let (m0, m1, b) = (
        column(1.0, 0.0, 0.0),
        column(0.0, 1.0, 0.0),
        column(0.0, 0.0, 1.0),
    );
    let first = [[m0[0], m1[0]], [m0[1], m1[1]]];
    let times = |a: [[f64; 2]; 2], b: [[f64; 2]; 2]| {
        std::array::from_fn::<_, 2, _>(|i| {
            std::array::from_fn::<_, 2, _>(|j| a[i][0] * b[0][j] + a[i][1] * b[1][j])
        })
    };
    let transposed = |a: [[f64; 2]; 2]| [[a[0][0], a[1][0]], [a[0][1], a[1][1]]];
    let mut sum = [[b[0] * b[0], b[0] * b[1]], [b[1] * b[0], b[1] * b[1]]];
    let mut power = first;
    for _ in 0..40 {
        let next = times(times(power, sum), transposed(power));
        for (s, n) in sum.iter_mut().flatten().zip(next.iter().flatten()) {
            *s += n;
        }
        power = times(power, power);
    }
    // p + p' = (m10, 1 + m11)·(θ, p) + b1 z.
    let (u, v) = (first[1][0], 1.0 + first[1][1]);
    let halfway =
        0.25 * (u * u * sum[0][0] + 2.0 * u * v * sum[0][1] + v * v * sum[1][1] + b[1] * b[1]);
    ([sum[0][0], sum[0][1], sum[1][1]], halfway)
}

pub(super) fn close(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 1e-9,
        "{found} against {expected}"
    );
}

#[test]
fn sgld_has_the_variance_of_its_recursion() {
    for (lambda, a, rate) in [(2.0, 0.3, 1.0), (0.5, 0.01, 0.1), (100.0, 0.02, 0.003)] {
        let sampler = sampler(1, Dynamics::Sgld, a, rate);
        close(sampler.noise_of_step(7).sigma, 2.0 * rate / a.sqrt());
        let ([variance, ..], _) = moments(&sampler, lambda, 0.0);
        close(variance, 1.0 / (lambda * (1.0 - a * lambda / 4.0)));
        // A prior counts once, whatever the rate.
        let mut with_prior = sampler;
        with_prior = StochasticGradient::new(
            Prior::normal(1, 0.5),
            1,
            with_prior.dynamics,
            with_prior.schedule,
            settings(rate, 0.0),
        )
        .unwrap();
        let lambda = lambda + 4.0;
        let ([variance, ..], _) = moments(&with_prior, lambda - 4.0, 0.0);
        close(variance, 1.0 / (lambda * (1.0 - a * lambda / 4.0)));
    }
}

#[test]
fn sghmc_has_the_variance_of_its_recursion() {
    for (lambda, a, friction, rate) in [(2.0, 0.04, 0.1, 1.0), (9.0, 0.01, 0.5, 0.2)] {
        let dynamics = Dynamics::Sghmc { friction };
        let sampler = sampler(1, dynamics, a, rate);
        close(
            sampler.noise_of_step(1).sigma,
            rate * (2.0 * friction / a).sqrt(),
        );
        let ([variance, _, square], _) = moments(&sampler, lambda, 0.0);
        close(
            variance,
            1.0 / (lambda * (1.0 - a * lambda / (4.0 - 2.0 * friction))),
        );
        // The momentum carries the friction's own error, 1/(1 − friction/2), besides.
        close(square, 2.0 * lambda * variance / (2.0 - friction));
    }
    // Full friction is SGLD of step 2a.
    let full = sampler(1, Dynamics::Sghmc { friction: 1.0 }, 0.05, 0.3);
    let sgld = sampler(1, Dynamics::Sgld, 0.1, 0.3);
    close(moments(&full, 3.0, 0.0).0[0], moments(&sgld, 3.0, 0.0).0[0]);
    close(full.noise_of_step(1).sigma, sgld.noise_of_step(1).sigma);
}

/// Where the thermostat rests, found by bisection: E ‖(p + p')/2‖² = 1.
fn resting(sampler: &StochasticGradient, lambda: f64) -> (f64, f64) {
    let (mut low, mut high) = (1e-3, 20.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if moments(sampler, lambda, middle).1 > 1.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, moments(sampler, lambda, low).0[0])
}

#[test]
fn a_resting_thermostat_gives_the_right_variance() {
    let (lambda, diffusion) = (3.0, 1.5);
    let dynamics = Dynamics::Sgnht { diffusion };
    let mut biases = Vec::new();
    for (a, rate) in [(0.1, 0.25), (0.05, 1.0)] {
        let sampler = sampler(1, dynamics, a, rate);
        close(
            sampler.noise_of_step(3).sigma,
            rate * (2.0 * diffusion / a).sqrt(),
        );
        let (xi, variance) = resting(&sampler, lambda);
        let k = a * a * lambda;
        close(
            variance,
            1.0 / (lambda * (1.0 - k / (2.0 * (2.0 - xi * a)))),
        );
        assert!((xi / diffusion - 1.0).abs() < 0.15, "{xi}");
        biases.push(variance * lambda - 1.0);
    }
    let order = (biases[0] / biases[1]).log2();
    assert!((order - 2.0).abs() < 0.1, "{order}");
    // One step of the thermostat itself.
    let sampler = sampler(1, dynamics, 0.1, 1.0);
    let (_, p, xi) = one_step(&sampler, lambda, (0.7, -0.4, 2.0), 0.3);
    close(xi, 2.0 + 0.1 * ((0.5 * (p - 0.4)).powi(2) - 1.0));
}

#[test]
fn bias_halves_with_the_step() {
    for dynamics in [Dynamics::Sgld, Dynamics::Sghmc { friction: 0.3 }] {
        let bias = |a| moments(&sampler(1, dynamics, a, 0.5), 2.0, 0.0).0[0] * 2.0 - 1.0;
        let ratio = bias(0.02) / bias(0.01);
        assert!((ratio - 2.0).abs() < 0.02, "{ratio}");
    }
}

/// Temperature T as documented; the thermostat absorbs the same noise.
#[test]
fn extra_noise_raises_the_temperature() {
    let (lambda, a, rate, extra) = (2.0, 0.1, 0.5, 1e-9);
    let build = |dynamics| {
        let schedule = Schedule::Fixed { step: a };
        StochasticGradient::new(flat(), 1, dynamics, schedule, settings(rate, extra)).unwrap()
    };
    for dynamics in [Dynamics::Sgld, Dynamics::Sghmc { friction: 0.2 }] {
        let plain = sampler(1, dynamics, a, rate);
        let own = plain.noise_of_step(1).sigma;
        let hot = build(dynamics);
        close(hot.noise_of_step(1).sigma, own.hypot(2.0 * CLIP * extra));
        close(
            moments(&hot, lambda, 0.0).0[0],
            moments(&plain, lambda, 0.0).0[0] * (1.0 + (2.0 * CLIP * extra / own).powi(2)),
        );
    }
    let dynamics = Dynamics::Sgnht { diffusion: 0.5 };
    let (cool, hot) = (sampler(1, dynamics, a, rate), build(dynamics));
    assert!(hot.noise_of_step(1).sigma > 1.2 * cool.noise_of_step(1).sigma);
    let ((xi_cool, cool), (xi_hot, hot)) = (resting(&cool, lambda), resting(&hot, lambda));
    assert!(xi_hot > 1.5 * xi_cool && (hot / cool - 1.0).abs() < 2e-3);
}

/// Li 2019: noise τ/√(ηN) on the sum, which samples the squared posterior; ours does not.
#[test]
fn published_dp_sgld_halves_the_variance() {
    let li = LiSettings {
        clip: CLIP,
        eta: Schedule::CubeRoot { step: 0.1 },
        batch: 50.0,
        rows: 2000,
    };
    let published = StochasticGradient::published_dp_sgld(flat(), 1, li).unwrap();
    for t in [1, 8, 1000] {
        let eta = 0.1 * (t as f64).powf(-1.0 / 3.0);
        let request = published.noise_of_step(t);
        close(request.sigma, 50.0 / (eta * 2000.0).sqrt());
        assert_eq!(request.batch, Batch::Poisson { rate: 0.025 });
        assert_eq!(request.clip, Some(CLIP));
    }
    let fixed = LiSettings {
        eta: Schedule::Fixed { step: 0.1 },
        ..li
    };
    let (lambda, a) = (2000.0, 2.0 * 0.1 / 2000.0);
    let published = StochasticGradient::published_dp_sgld(flat(), 1, fixed).unwrap();
    let right = 1.0 / (lambda * (1.0 - a * lambda / 4.0));
    close(moments(&published, lambda, 0.0).0[0], 0.5 * right);
    let ours = sampler(1, Dynamics::Sgld, a, 0.025);
    close(moments(&ours, lambda, 0.0).0[0], right);
    // Its drift is η/N: one step without noise.
    let (theta, ..) = one_step(&published, lambda, (1.0, 0.0, 0.0), 0.0);
    close(theta, 1.0 - 0.1 / 2000.0 * lambda);
    let hmc = StochasticGradient::published_dp_sghmc(flat(), 1, fixed, 0.1).unwrap();
    let expected = 1.0 / (lambda * (1.0 - 0.1 / (4.0 - 0.2)));
    close(moments(&hmc, lambda, 0.0).0[0], expected);
}

#[test]
fn impossible_settings_are_named() {
    let schedule = Schedule::Fixed { step: 0.1 };
    let build = |prior, dynamics, gradients| {
        StochasticGradient::new(prior, 1, dynamics, schedule, gradients).map(|_| ())
    };
    let sgld = Dynamics::Sgld;
    let mut unclipped = settings(0.5, 2.0);
    unclipped.clip = None;
    let outside = GradientSettings {
        batch: Batch::Poisson { rate: 1.5 },
        ..settings(0.5, 0.0)
    };
    for (result, key) in [
        (
            build(Prior::flat_box(1, 1.0), sgld, settings(0.5, 0.0)),
            "model.box",
        ),
        (build(flat(), sgld, unclipped), "sampler.gradient.extra_tau"),
        (build(flat(), sgld, outside), "sampler.gradient.rate"),
        (
            build(
                flat(),
                Dynamics::Sghmc { friction: 2.0 },
                settings(0.5, 0.0),
            ),
            "sampler.friction",
        ),
        (
            build(
                flat(),
                Dynamics::Sgnht { diffusion: 0.0 },
                settings(0.5, 0.0),
            ),
            "sampler.diffusion",
        ),
    ] {
        assert_eq!(result.unwrap_err().key, key);
    }
    let unscaled = sampler(2, sgld, 0.1, 1.0);
    let error = unscaled.with_scale(&[1.0, 0.0]).unwrap_err();
    assert_eq!(error.key, "sampler.scale");
}
