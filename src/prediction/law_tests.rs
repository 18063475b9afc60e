use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::data::LabelKind;
use crate::expression::{FAMILIES, Law, family};
use crate::prediction::Mixture;
use crate::prediction::predictor::{BY_NUMBERS, by_numbers};

/// A named likelihood, its parameters, the predictor, the labels over which its expression is
/// summed, and the law in closed form.
type Case = (
    &'static str,
    &'static [(&'static str, f64)],
    f64,
    LabelKind,
    LabelLaw,
);

fn number(low: f64, high: f64) -> LabelKind {
    LabelKind::Number { low, high }
}

fn cases() -> Vec<Case> {
    let e = f64::exp;
    let odds = |u: f64| 1.0 / (1.0 + e(-u));
    vec![
        (
            "probit",
            &[],
            0.7,
            LabelKind::Binary,
            LabelLaw::Binary {
                chance: 0.758_036_347_776_926_9,
            },
        ),
        (
            "cloglog",
            &[],
            -0.4,
            LabelKind::Binary,
            LabelLaw::Binary {
                chance: 1.0 - e(-e(-0.4)),
            },
        ),
        (
            "gaussian",
            &[("log_sigma", -0.3)],
            0.7,
            number(-20.0, 20.0),
            LabelLaw::Normal {
                mean: 0.7,
                sd: e(-0.3),
            },
        ),
        (
            "student-t",
            &[("log_sigma", 0.2), ("nu", 9.0)],
            -0.7,
            number(-4e2, 4e2),
            LabelLaw::StudentT {
                at: -0.7,
                scale: e(0.2),
                freedom: 9.0,
            },
        ),
        (
            "log-normal",
            &[("log_sigma", -0.5)],
            0.4,
            number(1e-6, 200.0),
            LabelLaw::LogNormal {
                at: 0.4,
                sd: e(-0.5),
            },
        ),
        (
            "gamma",
            &[("log_shape", 1.1)],
            0.9,
            number(1e-9, 100.0),
            LabelLaw::Gamma {
                mean: e(0.9),
                shape: e(1.1),
            },
        ),
        (
            "negative-binomial",
            &[("log_shape", 0.5)],
            1.4,
            LabelKind::Count { max: 2000 },
            LabelLaw::NegativeBinomial {
                mean: e(1.4),
                shape: e(0.5),
            },
        ),
        (
            "beta",
            &[("log_precision", 2.0)],
            0.6,
            number(1e-9, 1.0 - 1e-9),
            LabelLaw::Beta {
                mean: odds(0.6),
                rest: odds(-0.6),
                precision: e(2.0),
            },
        ),
        (
            "weibull",
            &[("log_shape", 0.6)],
            0.8,
            number(1e-9, 60.0),
            LabelLaw::Weibull {
                scale: e(0.8),
                shape: e(0.6),
            },
        ),
        (
            "quantile",
            &[("share", 0.8), ("width", 0.2), ("log_scale", -0.5)],
            0.3,
            number(-40.0, 40.0),
            LabelLaw::Quantile {
                at: 0.3,
                share: 0.8,
                width: 0.2,
                scale: e(-0.5),
            },
        ),
        (
            "log-normal-survival",
            &[("log_sigma", -0.5)],
            0.4,
            number(1e-6, 200.0),
            LabelLaw::LogNormal {
                at: 0.4,
                sd: e(-0.5),
            },
        ),
    ]
}

fn by_expression(case: &Case) -> LabelLaw {
    let (name, parameters, eta, label, _) = case;
    let fixed: Vec<(String, f64)> = parameters
        .iter()
        .map(|(n, v)| (n.to_string(), *v))
        .collect();
    let text = family(name).unwrap().likelihood;
    let law = Law::new("oracle", text, &[], &fixed).unwrap();
    by_numbers(law, *label, *eta, &[])
}

/// Every named likelihood has a closed form here, and it is the one that its expression says.
#[test]
fn closed_forms_are_those_of_the_expressions() {
    let cases = cases();
    for family in FAMILIES {
        let closed = cases.iter().any(|c| c.0 == family.name);
        assert!(
            closed != BY_NUMBERS.contains(&family.name),
            "{}",
            family.name
        );
    }
    for case in &cases {
        let (name, law) = (case.0, &case.4);
        let oracle = by_expression(case);
        // A quantile regression predicts its quantile, which is not the mean.
        if name != "quantile" {
            let (a, b) = (law.expected(), oracle.expected());
            assert!((a - b).abs() < 1e-4 * b.abs().max(0.1), "{name}: {a} {b}");
        }
        let (at, spread) = law.about();
        for k in -8..=12 {
            let y = at + 0.4 * f64::from(k) * spread;
            if y < law.least() || y > law.most() {
                continue;
            }
            let (a, b) = (law.below(y), oracle.below(y));
            assert!((a - b).abs() < 2e-4, "{name} at {y}: {a} {b}");
        }
    }
}

/// Labels of times without an `event` have two signs and one law; a density of numbers of both signs
/// stays what it is.
#[test]
fn signed_times_are_predicted_as_times() {
    for case in cases() {
        let (name, law) = (case.0, &case.4);
        let LabelKind::Number { high, .. } = case.3 else {
            continue;
        };
        let times = ["weibull", "log-normal-survival"].contains(&name);
        let both = ["gaussian", "student-t"].contains(&name);
        if !times && !both {
            continue;
        }
        let signed = by_expression(&(name, case.1, case.2, number(-high, high), law.clone()));
        let (a, b) = (law.expected(), signed.expected());
        assert!((a - b).abs() < 1e-3 * b.abs().max(0.1), "{name}: {a} {b}");
        assert_eq!(times, signed.below(-1e-3 * high) == 0.0, "{name}");
        let LabelLaw::Numeric(signed) = signed else {
            panic!("{name}");
        };
        assert_eq!(times, signed.is_of_times(), "{name}");
    }
}

/// Likelihoods without a closed form here, against chances written by hand.
#[test]
fn sums_over_counts_are_of_the_right_law() {
    let chances = |name: &str, fixed: &[(&str, f64)], shared: &[(&str, f64)], max, eta| {
        let names: Vec<String> = shared.iter().map(|(n, _)| n.to_string()).collect();
        let values: Vec<f64> = shared.iter().map(|(_, v)| *v).collect();
        let fixed: Vec<(String, f64)> = fixed.iter().map(|(n, v)| (n.to_string(), *v)).collect();
        let text = family(name).unwrap().likelihood;
        let law = Law::new(name, text, &names, &fixed).unwrap();
        let law = by_numbers(law, LabelKind::Count { max }, eta, &values);
        move |y: u32| {
            law.below(f64::from(y))
                - if y > 0 {
                    law.below(f64::from(y) - 1.0)
                } else {
                    0.0
                }
        }
    };
    let close = |found: f64, known: f64| assert!((found - known).abs() < 1e-9, "{found} {known}");
    // Three trials of chance 0.2.
    let of = chances("binomial", &[("trials", 3.0)], &[], 3, 0.25f64.ln());
    for (y, known) in [0.512, 0.384, 0.096, 0.008].into_iter().enumerate() {
        close(of(y as u32), known);
    }
    // A zero whatever else by 0.2, else Poisson's law of mean 2, whose counts end at 60.
    let of = chances(
        "zero-inflated-poisson",
        &[],
        &[("logit_zero", 0.25f64.ln())],
        60,
        2f64.ln(),
    );
    let poisson = (-2f64).exp();
    close(of(0), 0.2 + 0.8 * poisson);
    close(of(3), 0.8 * poisson * 8.0 / 6.0);
    // The same of the geometric law of mean 1 (shape 1), chances 2^-(y + 1).
    let shared = [("log_shape", 0.0), ("logit_zero", 0.25f64.ln())];
    let of = chances("zero-inflated-negative-binomial", &[], &shared, 60, 0.0);
    close(of(0), 0.2 + 0.8 * 0.5);
    close(of(3), 0.8 / 16.0);
    // Times whose logarithm is normal: the share that is later.
    let names = ["log_sigma".to_string()];
    let text = family("log-normal-survival").unwrap().likelihood;
    let law = Law::new("log-normal-survival", text, &names, &[]).unwrap();
    for (time, share) in [(1.0, 0.5), (2.0, 0.243_5), (0.5, 0.756_5)] {
        let later = law.log_likelihood(-time, 0.0, &[0.0]).exp();
        // 1 − Φ(log 2) = 0.24410.
        let exact = if time == 1.0 {
            share
        } else {
            1.0 - crate::math::normal::below(f64::ln(time))
        };
        assert!(
            (later - exact).abs() < 1e-9 && (later - share).abs() < 2e-3,
            "{time} {later}"
        );
    }
}

/// By the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart a distance like this has a chance
/// under 1e-7 in each of ten cases.
#[test]
fn draws_follow_their_distribution_functions() {
    const DRAWS: usize = 20_000;
    let most = ((2.0f64 / 1e-7).ln() / (2.0 * DRAWS as f64)).sqrt();
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let mut laws: Vec<LabelLaw> = cases().into_iter().map(|c| c.4).collect();
    laws.push(LabelLaw::Poisson { mean: 3.3 });
    laws.push(LabelLaw::Classes(vec![0.2, 0.5, 0.3]));
    laws.push(by_expression(&cases()[5]));
    laws.push(by_expression(&cases()[6]));
    for law in laws {
        let mut draws: Vec<f64> = (0..DRAWS).map(|_| law.draw(&mut rng)).collect();
        draws.sort_by(f64::total_cmp);
        for k in (0..DRAWS).step_by(97) {
            let y = draws[k];
            let share = draws.partition_point(|v| *v <= y) as f64 / DRAWS as f64;
            let gap = (share - law.below(y)).abs();
            assert!(gap < most, "{law:?} at {y}: {gap}");
        }
    }
}

#[test]
fn quantiles_of_mixtures_invert_their_distribution_functions() {
    let mixtures = [
        Mixture(
            cases()
                .iter()
                .map(|c| c.4.clone())
                .skip(2)
                .take(2)
                .collect(),
        ),
        Mixture(
            cases()
                .iter()
                .map(|c| c.4.clone())
                .skip(4)
                .take(2)
                .collect(),
        ),
        Mixture(vec![cases()[7].4.clone()]),
        Mixture(vec![cases()[8].4.clone()]),
        Mixture(vec![cases()[9].4.clone()]),
        Mixture(vec![by_expression(&cases()[4]), by_expression(&cases()[5])]),
    ];
    for mixture in mixtures {
        for p in [1e-6, 0.05, 0.5, 0.95, 0.999] {
            let y = mixture.quantile(p);
            let found = mixture.below(y);
            assert!((found - p).abs() < 1e-8, "{mixture:?}: {p} {y} {found}");
        }
    }
    let normal = Mixture(vec![LabelLaw::Normal { mean: 3.0, sd: 2.0 }]);
    assert!((normal.quantile(0.975) - (3.0 + 2.0 * 1.959_963_984_540_054)).abs() < 1e-6);
}

#[test]
fn quantiles_of_counts_are_the_least_that_suffice() {
    for laws in [
        vec![LabelLaw::Poisson { mean: 0.2 }],
        vec![
            LabelLaw::Poisson { mean: 4.0 },
            LabelLaw::Poisson { mean: 900.0 },
        ],
        vec![cases()[6].4.clone()],
        vec![by_expression(&cases()[6])],
    ] {
        let mixture = Mixture(laws);
        for p in [0.001, 0.05, 0.5, 0.95, 0.9999] {
            let y = mixture.quantile(p);
            assert!(y >= 0.0 && y.fract() == 0.0);
            assert!(mixture.below(y) >= p * (1.0 - 1e-9), "{mixture:?} {p} {y}");
            assert!(mixture.under(y) < p, "{mixture:?} {p} {y}");
        }
    }
}

/// Predictors that overflow give numbers that say so, and searches end.
#[test]
fn what_is_no_law_ends_in_no_number() {
    let inf = f64::INFINITY;
    for law in [
        LabelLaw::Poisson { mean: inf },
        LabelLaw::Gamma {
            mean: inf,
            shape: 2.0,
        },
        LabelLaw::Normal { mean: 0.0, sd: inf },
        LabelLaw::Normal {
            mean: f64::NAN,
            sd: 1.0,
        },
        LabelLaw::NegativeBinomial {
            mean: inf,
            shape: 1.0,
        },
        LabelLaw::Beta {
            mean: 1.0,
            rest: 0.0,
            precision: 3.0,
        },
        LabelLaw::Weibull {
            scale: inf,
            shape: 1.0,
        },
        LabelLaw::StudentT {
            at: 0.0,
            scale: 0.0,
            freedom: 3.0,
        },
        LabelLaw::Poisson { mean: 1e300 },
        LabelLaw::Poisson { mean: 0.0 },
    ] {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        law.draw(&mut rng);
        let mixture = Mixture(vec![law]);
        for p in [0.05, 0.95] {
            mixture.quantile(p);
        }
    }
    assert!(Mixture(Vec::new()).quantile(0.5).is_nan());
    assert_eq!(
        Mixture(vec![LabelLaw::Poisson { mean: 0.0 }]).quantile(0.95),
        0.0
    );
}

#[test]
fn means_that_are_none() {
    let wide = LabelLaw::StudentT {
        at: 1.0,
        scale: 1.0,
        freedom: 1.0,
    };
    assert!(wide.expected().is_nan());
    assert!((Mixture(vec![wide]).quantile(0.75) - 2.0).abs() < 1e-6);
}

/// Where series give way to approximations the two agree.
#[test]
fn large_shapes_are_approximated_closely() {
    for (a, b) in [
        (1990.0, 3.0),
        (5.0, 1990.0),
        (1990.0, 90.0),
        (1990.0, 700.0),
        (600.0, 1990.0),
    ] {
        let mean: f64 = a / (a + b);
        let sd = (mean * (1.0 - mean) / (a + b)).sqrt();
        for k in -6..=6 {
            let x = mean + 0.5 * f64::from(k) * sd;
            if x <= 0.0 || x >= 1.0 {
                continue;
            }
            let exact = checked_beta_reg(a, b, x).unwrap();
            let near = large_beta_below(a, b, x);
            assert!((exact - near).abs() < 1e-4, "{a} {b} {x}: {exact} {near}");
        }
    }
    for k in -6..=6 {
        let shape = 0.999e6f64;
        let x = shape + f64::from(k) * shape.sqrt();
        let series = checked_gamma_lr(shape, x).unwrap();
        assert!((series - normal::below(cube_root(shape, x))).abs() < 1e-6);
    }
}
