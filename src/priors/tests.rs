use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::*;

const N: usize = 40_000;

fn block(law: BlockLaw, d: usize) -> Blocks {
    let members = (0..d).collect();
    Blocks {
        blocks: vec![Block { members, law }],
    }
}

fn shared(scale: ScaleLaw, d: usize) -> Blocks {
    let name = "sd(g)".into();
    block(BlockLaw::Shared { name, scale }, d)
}

fn horseshoe(scale: f64, d: usize) -> Blocks {
    let name = "sd(horseshoe)".into();
    block(BlockLaw::Horseshoe { name, scale }, d)
}

const SCALES: [ScaleLaw; 3] = [
    ScaleLaw::HalfNormal { scale: 0.7 },
    ScaleLaw::HalfStudentT {
        degrees: 1.0,
        scale: 0.3,
    },
    ScaleLaw::HalfStudentT {
        degrees: 4.0,
        scale: 2.0,
    },
];

/// The density of τ itself, written down apart from the one under test.
fn density(law: ScaleLaw, tau: f64) -> f64 {
    match law {
        ScaleLaw::HalfNormal { scale } => (-tau * tau / (2.0 * scale * scale)).exp(),
        ScaleLaw::HalfStudentT { degrees, scale } => {
            (1.0 + (tau / scale).powi(2) / degrees).powf(-0.5 * (degrees + 1.0))
        }
    }
}

/// ∫ N(b; 0, τ²λ²) over half-Cauchy λ = tan φ, by midpoints.
fn horseshoe_density(b: f64, tau: f64) -> f64 {
    let n = 1500;
    let each = (0..n).map(|i| {
        let phi = (f64::from(i) + 0.5) / f64::from(n) * std::f64::consts::FRAC_PI_2;
        let sd = tau * phi.tan();
        (-0.5 * (b / sd).powi(2)).exp() / sd
    });
    each.sum::<f64>()
}

/// Points τ on a fine grid, evenly in τ/(1 + τ), and the masses there of a density of τ.
fn grid(of: impl Fn(f64) -> f64, n: usize) -> Vec<(f64, f64)> {
    let points = (0..n).map(|i| {
        let x = (i as f64 + 0.5) / n as f64;
        let tau = x / (1.0 - x);
        (tau, of(tau) / (1.0 - x).powi(2))
    });
    points.collect()
}

/// Largest gap between the draws' distribution and that of the masses.
fn kolmogorov(mut draws: Vec<f64>, masses: &[(f64, f64)]) -> f64 {
    draws.sort_by(f64::total_cmp);
    let whole: f64 = masses.iter().map(|m| m.1).sum();
    let (mut below, mut i, mut gap) = (0.0, 0, 0.0f64);
    for (tau, mass) in masses {
        below += 0.5 * mass / whole;
        while i < draws.len() && draws[i] < *tau {
            i += 1;
        }
        gap = gap.max((i as f64 / draws.len() as f64 - below).abs());
        below += 0.5 * mass / whole;
    }
    gap
}

/// √n times the gap exceeds this with probability 1e-6 (Kolmogorov).
const FALSE_ALARM: f64 = 2.694;

/// Draws of τ given coefficients have the law that quadrature in τ gives; a missing Jacobian, a
/// variance for an sd or a lost coefficient moves it by far more than the gap. False alarm 1e-6
/// each.
#[test]
fn scales_given_coefficients_are_exact() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for (theta, n) in [(vec![0.3, -0.8, 0.1, 0.02], 4), (vec![1.3], 1)] {
        let sum: f64 = theta.iter().map(|b: &f64| b * b).sum();
        for law in SCALES {
            let of = |tau: f64| density(law, tau) * tau.powi(-n) * (-sum / (2.0 * tau * tau)).exp();
            let prior = shared(law, theta.len());
            let draws = (0..N).map(|_| prior.scales(&theta, &mut rng)[0]).collect();
            let gap = kolmogorov(draws, &grid(of, 20_000)) * (N as f64).sqrt();
            assert!(gap < FALSE_ALARM, "{law:?}, {n} coefficients: {gap}");
        }
        let of = |tau: f64| {
            let each = theta.iter().map(|b| horseshoe_density(*b, tau));
            density(ScaleLaw::half_cauchy(0.5), tau) * each.product::<f64>()
        };
        let prior = horseshoe(0.5, theta.len());
        let n = N / 4;
        let draws = (0..n).map(|_| prior.scales(&theta, &mut rng)[0]).collect();
        let gap = kolmogorov(draws, &grid(of, 2000)) * (n as f64).sqrt();
        assert!(gap < FALSE_ALARM, "horseshoe: {gap}");
    }
}

/// Integrated densities against quadrature in τ: differences between two points.
#[test]
fn densities_are_integrated() {
    let points = [[0.3, -0.8, 0.1], [1.2, 0.05, -0.4]];
    let change = |of: &dyn Fn(&[f64], f64) -> f64, n: usize| {
        let whole = |b: &[f64]| grid(|tau| of(b, tau), n).iter().map(|m| m.1).sum::<f64>();
        (whole(&points[1]) / whole(&points[0])).ln()
    };
    for law in SCALES {
        let of = |b: &[f64], tau: f64| {
            let sum: f64 = b.iter().map(|b| b * b).sum();
            density(law, tau) * tau.powi(-3) * (-sum / (2.0 * tau * tau)).exp()
        };
        let prior = shared(law, 3);
        let own = prior.log_density(&points[1]) - prior.log_density(&points[0]);
        let known = change(&of, 200_000);
        assert!((own - known).abs() < 1e-6, "{law:?}: {own} {known}");
    }
    let of = |b: &[f64], tau: f64| {
        let each = b.iter().map(|b| horseshoe_density(*b, tau));
        density(ScaleLaw::half_cauchy(0.5), tau) * each.product::<f64>()
    };
    let prior = horseshoe(0.5, 3);
    let own = prior.log_density(&points[1]) - prior.log_density(&points[0]);
    let known = change(&of, 4000);
    assert!((own - known).abs() < 1e-3, "horseshoe: {own} {known}");
}

fn student(d: usize) -> Blocks {
    let law = BlockLaw::StudentT {
        degrees: 3.0,
        mean: vec![0.5; d],
        scale: vec![0.8; d],
    };
    block(law, d)
}

/// Gradients against differences of log densities; precisions are positive.
#[test]
fn slopes_are_those_of_the_density() {
    let mut priors: Vec<Blocks> = SCALES.iter().map(|law| shared(*law, 3)).collect();
    priors.extend([horseshoe(0.5, 3), student(3)]);
    for theta in [[0.3, -0.8, 0.1], [1e-3, 2e-3, -4e-3], [30.0, -2.0, 1.0]] {
        for prior in &priors {
            let (gradient, precision) = prior.slopes(&theta);
            for j in 0..3 {
                let h = 1e-5 * theta[j].abs();
                let at = |by: f64| {
                    let mut to = theta;
                    to[j] += by;
                    prior.log_density(&to)
                };
                let known = (at(h) - at(-h)) / (2.0 * h);
                let near = (gradient[j] - known).abs() <= 1e-5 * (1.0 + known.abs());
                assert!(near, "{prior:?} at {theta:?}: {} {known}", gradient[j]);
                assert!(precision[j] > 0.0 && precision[j].is_finite());
            }
        }
    }
}

/// Draws of the prior: the share of |b| below a number, against quadrature over τ. False alarm 1e-6
/// (4.9 standard errors) for each.
#[test]
fn prior_draws_have_their_law() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let mut share = |prior: &Blocks, most: f64, centre: f64| {
        let hit = |draw: Vec<f64>| f64::from(u8::from((draw[0] - centre).abs() < most));
        let hits: f64 = (0..N).map(|_| hit(prior.draw(&mut rng))).sum();
        hits / N as f64
    };
    let near = |seen: f64, known: f64, what: &str| {
        let error = (known * (1.0 - known) / N as f64).sqrt();
        assert!((seen - known).abs() < 4.9 * error, "{what}: {seen} {known}");
    };
    let within = |x: f64| 1.0 - 2.0 * crate::math::normal::above(x);
    for law in SCALES {
        for most in [0.1, 0.5, 2.0] {
            let masses = grid(|tau| density(law, tau), 20_000);
            let whole: f64 = masses.iter().map(|m| m.1).sum();
            let below = masses.iter().map(|(tau, m)| m * within(most / tau));
            let known = below.sum::<f64>() / whole;
            near(share(&shared(law, 2), most, 0.0), known, "hierarchy");
        }
    }
    // P(|t₃| < 1), and of a horseshoe with τ half-Cauchy(1): P(|τλz| < 1) = P(|λz| < 1/τ).
    near(share(&student(2), 0.8, 0.5), 0.608_997_8, "student-t");
    let cauchy = ScaleLaw::half_cauchy(1.0);
    let masses = grid(|tau| density(cauchy, tau), 1000);
    let whole: f64 = masses.iter().map(|m| m.1).sum();
    let both = masses.iter().map(|(tau, a)| {
        let inner = masses
            .iter()
            .map(|(lambda, b)| b * within(1.0 / (tau * lambda)));
        a * inner.sum::<f64>() / whole
    });
    near(
        share(&horseshoe(1.0, 2), 1.0, 0.0),
        both.sum::<f64>() / whole,
        "horseshoe",
    );
}

/// Nothing fails where numbers are extreme.
#[test]
fn extremes_are_finite() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut priors: Vec<Blocks> = SCALES.iter().map(|law| shared(*law, 40)).collect();
    priors.extend([horseshoe(1e-3, 40), student(40)]);
    for value in [0.0, 1e-200, 1e-30, 1.0, 1e30, 1e150] {
        for prior in &priors {
            let mut theta = vec![0.0; 40];
            theta[7] = value;
            assert!(prior.log_density(&theta).is_finite(), "{value} {prior:?}");
            let (gradient, precision) = prior.slopes(&theta);
            assert!(gradient.iter().chain(&precision).all(|v| !v.is_nan()));
            assert!(prior.scales(&theta, &mut rng).iter().all(|s| *s >= 0.0));
        }
    }
}

#[test]
fn parameters_need_one_prior_each() {
    assert!(student(3).validate(3).is_ok());
    for d in [2, 4] {
        assert!(student(3).validate(d).is_err());
    }
    assert!(
        shared(ScaleLaw::HalfNormal { scale: -1.0 }, 2)
            .validate(2)
            .is_err()
    );
    assert!(horseshoe(f64::NAN, 2).validate(2).is_err());
}
