//! Hamiltonian samplers on known densities: the target stays whatever the gradients are, and
//! the same statistic sees a wrong acceptance ratio. Seeds are fixed; chains are independent,
//! so that false-alarm rates are those of a mean of independent draws.

use rand_distr::{Distribution, StandardNormal};

use super::known_density::{Gradient, KnownDensity, Noise, Tamper};
use super::*;
use crate::model::{Density, Prior, Support};
use crate::privacy::{Acceptance, Batch, Estimator, GradientNoise};
use crate::sampler::*;

const NOISE: GradientNoise = GradientNoise {
    clip: Some(1.0),
    batch: Batch::All,
    sigma: 1.0,
};
pub(super) const RULES: [Acceptance; 3] = [
    Acceptance::Metropolis,
    Acceptance::Barker,
    Acceptance::Penalty { tau: 1.0 },
];
const CHAINS: usize = 4000;

pub(super) fn flat() -> Prior {
    Prior {
        density: Density::Flat,
        support: Support::Unbounded,
        anchor: None,
    }
}

pub(super) fn settings(
    acceptance: Acceptance,
    step: f64,
    leapfrog_steps: u32,
) -> HamiltonianSettings {
    HamiltonianSettings {
        estimator: Estimator::FullBatch,
        acceptance,
        clip: Some(ClipRule {
            rate: 0.3,
            norm: ClipNorm::Proposal,
        }),
        largest_clip: 1e6,
        gradient: NOISE,
        step,
        leapfrog_steps,
        jitter: Some(HamiltonianSettings::JITTER),
        mass: Mass::Scalar(1.0),
        warmup: HamiltonianWarmup::none(),
    }
}

/// A target θ = f(z) of two independent standard normals z.
struct Target {
    prior: Prior,
    log_likelihood: fn(&[f64]) -> f64,
    gradient: Gradient,
    theta: fn([f64; 2]) -> [f64; 2],
    z: fn(&[f64]) -> [f64; 2],
    mass: Mass,
}

/// Posterior N(μ, S), S = [[1, 0.4], [0.4, 0.25]], μ = (0.5, −0.25), of a prior N(0, 2²I) and the
/// likelihood that is left: `−½θᵀ(S⁻¹ − I/4)θ + (S⁻¹μ)·θ`.
fn gaussian() -> Target {
    const A: [f64; 3] = [0.25 / 0.09, -0.4 / 0.09, 1.0 / 0.09];
    const H: [f64; 2] = [A[0] * 0.5 - A[1] * 0.25, A[1] * 0.5 - A[2] * 0.25];
    fn product(t: &[f64]) -> [f64; 2] {
        [
            (A[0] - 0.25) * t[0] + A[1] * t[1],
            A[1] * t[0] + (A[2] - 0.25) * t[1],
        ]
    }
    Target {
        prior: Prior::normal(2, 2.0),
        log_likelihood: |t| {
            let p = product(t);
            (H[0] - 0.5 * p[0]) * t[0] + (H[1] - 0.5 * p[1]) * t[1]
        },
        gradient: |t| {
            let p = product(t);
            vec![H[0] - p[0], H[1] - p[1]]
        },
        // S = KKᵀ, K = [[1, 0], [0.4, 0.3]].
        theta: |z| [0.5 + z[0], -0.25 + 0.4 * z[0] + 0.3 * z[1]],
        z: |t| {
            let a = t[0] - 0.5;
            [a, (t[1] + 0.25 - 0.4 * a) / 0.3]
        },
        mass: Mass::dense(&[2.0, -1.5, -1.5, 6.0], 2).unwrap(),
    }
}

/// θ₁ ~ N(0, 1), θ₂ | θ₁ ~ N((θ₁² − 1)/2, 0.5²), flat prior: h is K(p) − K(p') alone.
fn banana() -> Target {
    Target {
        prior: flat(),
        log_likelihood: |t| {
            let z = (t[1] - 0.5 * (t[0] * t[0] - 1.0)) / 0.5;
            -0.5 * (t[0] * t[0] + z * z)
        },
        gradient: |t| {
            let z = (t[1] - 0.5 * (t[0] * t[0] - 1.0)) / 0.5;
            vec![-t[0] + 2.0 * z * t[0], -2.0 * z]
        },
        theta: |z| [z[0], 0.5 * (z[0] * z[0] - 1.0) + 0.5 * z[1]],
        z: |t| [t[0], (t[1] - 0.5 * (t[0] * t[0] - 1.0)) / 0.5],
        mass: Mass::Scalar(2.0),
    }
}

impl Target {
    fn sampler(&self, rule: Acceptance) -> Hamiltonian {
        let settings = HamiltonianSettings {
            mass: self.mass.clone(),
            ..settings(rule, 0.5, 3)
        };
        Hamiltonian::new(self.prior.clone(), settings, 2).unwrap()
    }

    fn density(&self, seed: u8) -> KnownDensity {
        KnownDensity::new(self.log_likelihood, self.gradient, seed)
    }

    /// Independent chains that start from exact draws.
    fn chains(&self, seed: u8) -> Chains {
        let mut rng = stream([seed; 32], u64::MAX - 1);
        let starts: Vec<Vec<f64>> = (0..CHAINS)
            .map(|_| {
                let z = std::array::from_fn(|_| StandardNormal.sample(&mut rng));
                (self.theta)(z).to_vec()
            })
            .collect();
        Chains::new(&starts, [seed; 32])
    }

    /// Largest |z-score| of six moments of z, all zero in the target: 2e-9 each to exceed 6 (under
    /// 2e-8 with the skewness of 4000 squares), hence 1.2e-7 a call.
    fn defect(&self, chains: &Chains) -> f64 {
        let mut sums = [0.0; 6];
        for theta in chains.thetas.rows() {
            let [a, b] = (self.z)(&theta.to_vec());
            let terms = [a, b, a * a - 1.0, b * b - 1.0, a * b, a * a * b];
            sums.iter_mut().zip(terms).for_each(|(s, t)| *s += t);
        }
        let variances = [1.0, 1.0, 2.0, 2.0, 1.0, 3.0];
        let n = chains.len() as f64;
        let z = sums
            .iter()
            .zip(variances)
            .map(|(s, v)| s.abs() / (n * v).sqrt());
        // Not a number is a defect too.
        z.fold(0.0, |m, z| if z <= m { m } else { z })
    }

    /// Defect and acceptance rate after 20 steps from exact draws.
    fn run(&self, rule: Acceptance, density: &mut KnownDensity, seed: u8) -> (f64, f64) {
        let (mut sampler, mut chains) = (self.sampler(rule), self.chains(seed));
        for _ in 0..20 {
            sampler.step(&mut chains, density).unwrap();
        }
        let accepted: u64 = chains.accepted.iter().sum();
        (self.defect(&chains), accepted as f64 / (20 * CHAINS) as f64)
    }
}

/// Right gradients; noisy ones; and halved, clipped, lattice-valued ones.
const WAYS: [(Noise, f64, f64); 3] = [
    (Noise::None, 1.0, f64::INFINITY),
    (Noise::Gaussian(1.5), 1.0, f64::INFINITY),
    (Noise::Lattice(0.75), 0.5, 2.0),
];

/// The target stays for every rule and all of these: 9 runs, false alarm at most
/// 9 · 1.2e-7 / 1.2, that is under 1e-6.
fn target_stays(target: &Target, seed: u8) {
    for rule in RULES {
        for (noise, scale, clip) in WAYS {
            let mut density = target.density(seed);
            (density.noise, density.scale, density.clip) = (noise, scale, clip);
            let (defect, rate) = target.run(rule, &mut density, seed);
            assert!(defect < 6.0, "{rule:?} {noise:?}: {defect}");
            assert!((0.1..0.99).contains(&rate), "{rule:?} {noise:?}: {rate}");
        }
    }
}

#[test]
fn gaussian_stays_whatever_the_gradients_are() {
    target_stays(&gaussian(), 11);
}

#[test]
fn banana_stays_whatever_the_gradients_are() {
    target_stays(&banana(), 12);
}

/// From one far point 4000 chains come to the target, noisy lattice gradients and all; after a
/// single step they have not. False alarm 1.2e-7.
#[test]
fn chains_find_the_target_from_far_off() {
    let target = gaussian();
    let mut density = target.density(13);
    density.noise = Noise::Lattice(0.75);
    let mut sampler = target.sampler(Acceptance::Barker);
    let mut chains = Chains::new(&vec![vec![3.0, 2.0]; CHAINS], [13; 32]);
    sampler.step(&mut chains, &mut density).unwrap();
    assert!(target.defect(&chains) > 20.0);
    for _ in 0..120 {
        sampler.step(&mut chains, &mut density).unwrap();
    }
    let defect = target.defect(&chains);
    assert!(defect < 6.0, "{defect}");
}

/// The power of the statistic above: every wrong h is seen at twice its threshold.
#[test]
fn wrong_acceptance_ratios_are_seen() {
    let broken: [(&str, Target, Tamper); 4] = [
        ("K(p') − K(p)", banana(), |h, _, _| -h),
        ("no kinetic energy", banana(), |_, _, _| 0.0),
        // With M = 2I, ‖p‖²/2 is twice the kinetic energy.
        ("K = ‖p‖²/2", banana(), |h, _, _| 2.0 * h),
        ("no prior", gaussian(), |h, from, to| {
            let prior = Prior::normal(2, 2.0);
            h - (prior.log_density(to) - prior.log_density(from))
        }),
    ];
    for rule in RULES {
        for (what, target, tamper) in &broken {
            // Lattice gradients that are half of what they should be hide part of it.
            for (noise, scale, clip) in [WAYS[0], WAYS[1]] {
                let mut density = target.density(14);
                (density.noise, density.scale, density.clip) = (noise, scale, clip);
                density.tamper = *tamper;
                let (defect, _) = target.run(rule, &mut density, 14);
                assert!(defect > 12.0, "{rule:?} {noise:?} {what}: {defect}");
            }
        }
    }
}
