//! Derivatives against differences, changes against plain differences, f32 against f64, bounds
//! against values.

use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;

use super::{Clip, FAMILIES, Information, LabelRange, Labels, Law, Range, Source, family};

/// Laws with a value of each shared parameter, and a label of each kind.
fn laws() -> Vec<(Law, Vec<f64>, Vec<f64>)> {
    let mut all: Vec<(Law, Vec<f64>, Vec<f64>)> = FAMILIES
        .iter()
        .map(|f| {
            let fixed = |n: &str| ["nu", "share", "width", "trials"].contains(&n);
            let (numbers, names): (Vec<_>, Vec<_>) = f
                .parameters
                .iter()
                .map(|(n, _)| n.to_string())
                .partition(|n| fixed(n));
            let numbers: Vec<(String, f64)> = numbers
                .into_iter()
                .map(|n| match n.as_str() {
                    "nu" => (n, 4.0),
                    "share" => (n, 0.7),
                    "trials" => (n, 20.0),
                    _ => (n, 0.3),
                })
                .collect();
            let law = Law::new(f.name, f.likelihood, &names, &numbers).unwrap();
            let labels = match f.label {
                Labels::Binary => vec![-1.0, 1.0],
                Labels::Number => vec![-2.5, 0.7, 3.0],
                Labels::Positive => vec![0.05, 1.0, 7.5],
                Labels::Share => vec![0.02, 0.5, 0.9],
                Labels::Count => vec![0.0, 1.0, 17.0],
            };
            (law, names.iter().map(|_| 0.3).collect(), labels)
        })
        .collect();
    let own = |text| Law::new("expression", text, &[], &[]).unwrap();
    all.push((own("-log1p_exp(-y * eta)"), vec![], vec![-1.0, 1.0]));
    all.push((own("y * eta - exp(eta)"), vec![], vec![0.0, 5.0]));
    all.push((own("-sqrt(1 + (y - eta)^2)"), vec![], vec![-1.0, 4.0]));
    all.push((
        own("if(y >= 2, log(inv_logit(eta)), -eta^2 / 8)"),
        vec![],
        vec![1.0, 2.0],
    ));
    all
}

#[test]
fn derivatives_are_those_of_differences() {
    for (law, shared, labels) in laws() {
        for y in labels {
            for eta in [-1.7, -0.2, 0.4, 2.1] {
                let f = |eta: f64, shared: &[f64]| law.log_likelihood(y, eta, shared);
                let h = 1e-5;
                let scores = law.scores(y, eta, &shared);
                let plain = (f(eta + h, &shared) - f(eta - h, &shared)) / (2.0 * h);
                let close =
                    |a: f64, b: f64| (a - b).abs() < 1e-7 * (1.0 + a.abs() + f(eta, &shared).abs());
                assert!(
                    close(scores[0], plain),
                    "{law:?} {y} {eta}: {} {plain}",
                    scores[0]
                );
                for k in 0..shared.len() {
                    let (mut up, mut down) = (shared.clone(), shared.clone());
                    up[k] += h;
                    down[k] -= h;
                    let plain = (f(eta, &up) - f(eta, &down)) / (2.0 * h);
                    assert!(close(scores[k + 1], plain), "{law:?} {k} {y} {eta}");
                }
                if shared.is_empty() {
                    let s = |e: f64| law.slopes(y, e, &shared).0;
                    let plain = -(s(eta + h) - s(eta - h)) / (2.0 * h);
                    assert!(
                        close(law.slopes(y, eta, &shared).1, plain),
                        "{law:?} {y} {eta}"
                    );
                }
            }
        }
    }
}

/// In f32, where the denominator after the move is lost in the one before it: a change that is
/// hopeless keeps its sign.
#[test]
fn moves_of_a_denominator_keep_their_sign() {
    let texts = [
        "-0.5 * ((y - eta) / exp(log_sigma))^2 - log_sigma",
        "-0.5 * (y - eta)^2 / exp(2 * log_sigma) - log_sigma",
        "-0.5 * ((y - eta) / (exp(log_sigma) * exp(log_sigma)))^2 - 2 * log_sigma",
    ];
    for text in texts {
        let law = Law::new("expression", text, &["log_sigma".into()], &[]).unwrap();
        for (from, by) in [(17.45, -19.41), (-1.96, 19.41), (9.0, -9.0)] {
            let exact = law.change(2.0, [0.5, 0.25], [&[from], &[by]]);
            let constants = [from as f32, by as f32];
            let mut out = [0.0f32; 5];
            law.changes::<false>(&[2.0; 5], &[0.5; 5], &[0.25; 5], &constants, &mut out);
            let gap = (f64::from(out[4]) / exact - 1.0).abs();
            assert!(gap < 1e-4, "{text} {from} {by}: {} for {exact}", out[4]);
        }
    }
}

/// A denominator is moved once, however often it holds the same part: 2^28 times here.
#[test]
fn shared_parts_of_a_denominator_are_moved_once() {
    let square = (0..28).fold("eta".to_string(), |e, _| format!("({e})^2"));
    Law::new("expression", &format!("-1 / {square}"), &[], &[]).unwrap();
}

proptest! {
    /// Large moves against plain differences; small ones against the slope, to many digits.
    #[test]
    fn changes_keep_their_digits(which in 0usize..FAMILIES.len() + 4, place in 0usize..3, eta in -3f64..3.0, log in -16f64..0.5, up in any::<bool>()) {
        let all = laws();
        let (law, shared, labels) = &all[which % all.len()];
        let y = labels[place % labels.len()];
        let delta = if up { log.exp() } else { -log.exp() };
        let moved: Vec<f64> = shared.iter().map(|_| 0.3 * delta).collect();
        let there: Vec<f64> = shared.iter().zip(&moved).map(|(s, m)| s + m).collect();
        let change = law.change(y, [eta, delta], [shared, &moved]);
        let (a, b) = (law.log_likelihood(y, eta, shared), law.log_likelihood(y, eta + delta, &there));
        let rounding = 1e-12 * (1.0 + a.abs() + b.abs());
        prop_assert!((change - (b - a)).abs() <= rounding, "{law:?} {y} {eta} {delta}: {change} {}", b - a);
        // The trapezoidal rule is off by the third derivative's δ³/12.
        let slope = |eta: f64, shared: &[f64]| -> f64 {
            let scores = law.scores(y, eta, shared);
            scores[0] + 0.3 * scores[1..].iter().sum::<f64>()
        };
        let ends = [slope(eta, shared), slope(eta + delta, &there)];
        let mean = 0.5 * (ends[0] + ends[1]) * delta;
        let allowed = 1e-11 * change.abs() + 1e4 * delta.abs().powi(3) + 1e-12 * delta.abs() * (ends[0].abs() + 1.0);
        prop_assert!((change - mean).abs() <= allowed, "{law:?} {y} {eta} {delta}: {change} {mean}");
    }

    /// f32 to what f32 can hold of the terms, by every kind of code.
    #[test]
    fn lanes_match_f64(which in 0usize..FAMILIES.len() + 4, place in 0usize..3, eta in -3f32..3.0, log in -12f32..0.5, up in any::<bool>()) {
        let all = laws();
        let (law, shared, labels) = &all[which % all.len()];
        let y = labels[place % labels.len()];
        let delta = if up { log.exp() } else { -log.exp() };
        let moved: Vec<f64> = shared.iter().map(|_| 0.3 * f64::from(delta)).collect();
        let there: Vec<f64> = shared.iter().zip(&moved).map(|(s, m)| s + m).collect();
        let exact = law.change(y, [f64::from(eta), f64::from(delta)], [shared, &moved]);
        let constants: Vec<f32> = shared.iter().chain(&moved).map(|v| *v as f32).collect();
        // The size of what is added up: slopes at both ends.
        let size = |eta: f64, shared: &[f64]| -> f64 { law.scores(y, eta, shared).iter().map(|s| s.abs()).sum() };
        let far = f64::from(eta + delta);
        let scale = f64::from(delta.abs()) * (1.0 + y.abs() + size(f64::from(eta), shared) + size(far, &there));
        let mut out = [0.0f32; 5];
        for fused in [true, false] {
            let (labels, etas, deltas) = ([y as f32; 5], [eta; 5], [delta; 5]);
            match fused {
                true => law.changes::<true>(&labels, &etas, &deltas, &constants, &mut out),
                false => law.changes::<false>(&labels, &etas, &deltas, &constants, &mut out),
            }
            let gap = (f64::from(out[4]) - exact).abs();
            prop_assert!(gap <= 2e-5 * scale, "{law:?} {y} {eta} {delta}: {} for {exact}", out[4]);
            for (k, exact) in law.scores(y, f64::from(eta), shared).into_iter().enumerate() {
                let mut score = [0.0f32; 5];
                law.score_lanes::<true>(k, &labels, &etas, &constants[..shared.len()], &mut score);
                let gap = (f64::from(score[0]) - exact).abs();
                prop_assert!(gap <= 2e-5 * (1.0 + y.abs() + exact.abs()), "{law:?} {k} {y} {eta}: {} for {exact}", score[0]);
            }
        }
    }

    #[test]
    fn bounds_hold(which in 0usize..FAMILIES.len() + 4, place in 0usize..3, share in 0f64..1.0, spread in 0f64..1.0) {
        let all = laws();
        let (law, shared, labels) = &all[which % all.len()];
        let ranges: Vec<Range> = shared.iter().map(|_| Range { low: 0.0, high: 0.6 }).collect();
        let eta = Range { low: -1.0, high: 2.0 };
        let y = labels[place % labels.len()];
        let bounds = law.score_bounds(&[Range::of(y)], eta, &ranges);
        let here: Vec<f64> = shared.iter().map(|_| 0.6 * spread).collect();
        for (score, bound) in law.scores(y, -1.0 + 3.0 * share, &here).iter().zip(&bounds) {
            prop_assert!(score.abs() <= *bound, "{law:?} {y}: {score} over {bound}");
            prop_assert!(bound.is_finite());
        }
    }

    /// No text makes the parser stop.
    #[test]
    fn any_text_is_read_or_refused(text in "[-+*/^()0-9.eEyt if,<>=!lgamxp_]{0,60}") {
        if let Err(e) = Law::new("expression", &text, &["a".into()], &[]) {
            prop_assert!(!e.to_string().is_empty());
        }
    }
}

#[test]
fn special_functions_are_those_of_tables() {
    let law = |text: &str| Law::new("expression", text, &[], &[]).unwrap();
    // R: lgamma, pnorm(log.p = TRUE), digamma, trigamma.
    let gamma = law("lgamma(eta)");
    for (u, value, score, weight) in [
        (
            0.1,
            2.252712651734206,
            -10.423754940411076,
            101.43329915079275,
        ),
        (
            3.7,
            1.428072326665388,
            1.1671535393615113,
            0.31003785767003833,
        ),
        (
            42.0,
            114.03421178146169,
            3.725717617937282,
            0.02409521984367057,
        ),
    ] {
        assert!((gamma.log_likelihood(0.0, u, &[]) - value).abs() < 1e-12 * value);
        let (s, w) = gamma.slopes(0.0, u, &[]);
        assert!((s - score).abs() < 1e-11 * score.abs(), "{s}");
        assert!((w + weight).abs() < 1e-11 * weight, "{w}");
    }
    let normal = law("std_normal_lcdf(eta)");
    for (u, value) in [
        (-40.0, -804.6084420137538),
        (-3.0, -6.607726221510349),
        (0.0, -std::f64::consts::LN_2),
        (2.5, -0.006229025485860002),
    ] {
        let ours = normal.log_likelihood(0.0, u, &[]);
        assert!((ours - value).abs() < 1e-12 * value.abs(), "{ours} {value}");
    }
}

#[test]
fn wrong_expressions_say_where() {
    let message = |text: &str| {
        Law::new("expression", text, &["a".into()], &[])
            .unwrap_err()
            .to_string()
    };
    for (text, place, word) in [
        ("a * eta +", 10, "the end"),
        ("a * eta)", 8, "')'"),
        ("a * eta + b", 11, "'b' is not known"),
        ("exp a * eta", 5, "'('"),
        ("a * 1.2.3 + eta", 5, "not a number"),
        ("if(eta > 0, a, eta)", 4, "no slope"),
        ("if(y, a, eta)", 5, "comparison"),
        ("a + eta^0.5", 9, "whole numbers"),
        ("a + eta $", 9, "'$'"),
    ] {
        let message = message(text);
        assert!(
            message.contains(&format!("character {place} ")),
            "{text}: {message}"
        );
        assert!(message.contains(word), "{text}: {message}");
    }
    assert!(message("a * y").contains("eta"));
    assert!(message("y * eta").contains("'a'"));
    assert!(message(&"(".repeat(100)).contains("deep"));
}

/// What an anchor clips at agrees with what is known of the models that are written by hand.
#[test]
fn reaches_are_those_known() {
    let law = |text: &str| Law::new("expression", text, &[], &[]).unwrap();
    let close = |a: f64, b: f64, digits: f64| assert!((a - b).abs() < digits * b, "{a} for {b}");
    let classes = LabelRange::Classes(vec![-1.0, 1.0]);
    let logistic = law("-log1p_exp(-y * eta)").reach(&classes);
    close(logistic.weight, 0.25, 1e-6);
    close(logistic.score, 1.0, 1e-3);
    // Of a label that is seen once in ten times.
    close(logistic.common_score, 0.9, 0.01);
    // 2/π at η = 0, r = φ(1.2816)/0.1, and 4 times the root of r(r − 1.6449), r = φ(1.6449)/0.05.
    let probit = law(family("probit").unwrap().likelihood).reach(&classes);
    close(probit.weight, std::f64::consts::FRAC_2_PI, 1e-6);
    close(probit.common_score, 1.755, 0.02);
    close(probit.score, 3.713, 0.01);
    close(logistic.third, 0.0962, 1e-2);
    let numbers = LabelRange::Numbers {
        low: -2.0,
        high: 2.0,
    };
    let linear = law("-0.5 * ((y - eta) / 0.5)^2").reach(&numbers);
    close(linear.weight, 4.0, 1e-9);
    close(linear.score, 16.0, 1e-6);
    close(linear.first_weight, 4.0, 1e-9);
    assert_eq!(linear.third, 0.0);
    let poisson = law("y * eta - exp(eta)").reach(&LabelRange::Counts(100));
    assert!((25.0..35.0).contains(&poisson.weight));
    close(poisson.first_weight, 1.0, 1e-9);
    assert_eq!(poisson.crossing, 1.0);
}

/// Expected information against closed forms: of the normal law diag(1/σ², 2) in (η, log σ), of
/// Student's t (ν+1)/((ν+3)σ²) and 2ν/(ν+3), of classes p(1 − p), of the gamma law with shape k in
/// η k and in log k k(kψ'(k) − 1), of the negative binomial μr/(μ + r) in η.
#[test]
fn information_is_what_is_known_of_these_laws() {
    let of = |name: &str, shared: &[&str], fixed: &[(&str, f64)], labels, at: &[f64], eta: f64| {
        let shared: Vec<String> = shared.iter().map(|n| n.to_string()).collect();
        let fixed: Vec<(String, f64)> = fixed.iter().map(|(n, v)| (n.to_string(), *v)).collect();
        let text = family(name).unwrap().likelihood;
        let law = Law::new(name, text, &shared, &fixed).unwrap();
        let information = Information::new(law, &labels, at, [eta - 0.1, eta + 0.1]);
        let size = information.size();
        let mut factor = vec![0.0; size * size];
        information.factor(eta, &mut factor);
        let entry = |i: usize, j: usize| -> f64 {
            (0..size)
                .map(|k| factor[i * size + k] * factor[j * size + k])
                .sum()
        };
        let last = size - 1;
        [entry(0, 0), entry(last, last), entry(0, last)]
    };
    let close = |found: [f64; 3], known: [f64; 3]| {
        for (a, b) in found.iter().zip(known) {
            assert!(
                (a - b).abs() < 4e-3 * known[0].max(known[1]),
                "{found:?} for {known:?}"
            );
        }
    };
    let wide = |low, high| LabelRange::Numbers { low, high };
    for (log_sigma, eta) in [(-4.0f64, 3.0), (0.3, -1.0)] {
        let found = of(
            "gaussian",
            &["log_sigma"],
            &[],
            wide(-20.0, 20.0),
            &[log_sigma],
            eta,
        );
        close(found, [(-2.0 * log_sigma).exp(), 2.0, 0.0]);
        let found = of(
            "student-t",
            &["log_sigma"],
            &[("nu", 9.0)],
            wide(-90.0, 90.0),
            &[log_sigma],
            eta,
        );
        close(found, [10.0 / 12.0 * (-2.0 * log_sigma).exp(), 1.5, 0.0]);
    }
    let shape = 1.5f64;
    let trigamma = 0.934_802_200_5;
    let found = of(
        "gamma",
        &["log_shape"],
        &[],
        wide(1e-3, 900.0),
        &[shape.ln()],
        2.0,
    );
    close(found, [shape, shape * (shape * trigamma - 1.0), 0.0]);
    let (mu, r) = (3.0f64, 2.0f64);
    let found = of(
        "negative-binomial",
        &["log_shape"],
        &[],
        LabelRange::Counts(400),
        &[r.ln()],
        mu.ln(),
    );
    assert!((found[0] - mu * r / (mu + r)).abs() < 4e-3, "{found:?}");
    assert!(found[2].abs() < 4e-3, "{found:?}");
    // Many counts, most of them small: sums over all 2,000, by the law's own terms.
    for (mu, r) in [(50.0f64, 0.3f64), (50.0, 1.0), (4.0, 0.05)] {
        let found = of(
            "negative-binomial",
            &["log_shape"],
            &[],
            LabelRange::Counts(20_000),
            &[r.ln()],
            mu.ln(),
        );
        let mut chance = (r / (r + mu)).powf(r);
        let (mut known, mut digammas) = ([0.0; 3], 0.0);
        for y in 0..20_000 {
            let y = f64::from(y);
            let slope = (y - mu) * r / (r + mu);
            let shape = r * (digammas + (r / (r + mu)).ln() + (mu - y) / (r + mu));
            known[0] += chance * slope * slope;
            known[1] += chance * shape * shape;
            known[2] += chance * slope * shape;
            digammas += 1.0 / (r + y);
            chance *= (y + r) / (y + 1.0) * mu / (r + mu);
        }
        for (a, b) in found.iter().zip(known) {
            assert!(
                (a - b).abs() < 0.01 * known[0],
                "{mu} {r} {found:?} {known:?}"
            );
        }
    }
    // A peak far from a share of zeros: with p of these log-odds −2 and a Poisson law else the
    // information in η is (1 − p)μ, for 0 is none of its counts.
    for (mu, most) in [(500.0f64, 5_000), (3_750.0, 100_000), (20.0, 60)] {
        let counts = LabelRange::Counts(most);
        let found = of(
            "zero-inflated-poisson",
            &["logit_zero"],
            &[],
            counts,
            &[-2.0],
            mu.ln(),
        );
        let p = 1.0 / (1.0 + 2f64.exp());
        for (a, b) in found.iter().zip([(1.0 - p) * mu, p * (1.0 - p), 0.0]) {
            assert!((a - b).abs() < 0.01 * b + 1e-4 * mu, "{mu} {found:?}");
        }
    }
    // Of shares whose density is largest at an end: with a and b the beta law's parameters,
    // m = a/φ and φ held fixed, φ²m²(1 − m)² (ψ'(a) + ψ'(b)) in η; less what lies beyond the
    // log-odds that an f64 holds.
    for (precision, eta, trigammas) in [
        (2.0f64, 2.0f64, 0.757_640_57 + 18.806_977_93),
        (2.0, -2.0, 0.757_640_57 + 18.806_977_93),
        (20.0, 3.5, 0.052_859_27 + 3.777_876_16),
    ] {
        let fixed = [("log_precision", precision.ln())];
        let found = of("beta", &[], &fixed, wide(0.01, 0.99), &[], eta);
        let m = 1.0 / (1.0 + (-eta).exp());
        let known = (precision * m * (1.0 - m)).powi(2) * trigammas;
        assert!(
            (found[0] - known).abs() < 0.03 * known,
            "{eta} {found:?} {known}"
        );
    }
    // Of Weibull's k²; 1 + Γ''(2) = 1.8237 in log k; and Γ'(2) = 0.4228 between them, also where
    // most labels are beyond the declared ones.
    for (log_shape, eta) in [(0.3f64, 2.0), (-0.6, 8.5), (-1.5, 0.0)] {
        let found = of(
            "weibull",
            &["log_shape"],
            &[],
            wide(1.0, 5e3),
            &[log_shape],
            eta,
        );
        let k = log_shape.exp();
        close(found, [k * k, 1.823_68, -0.422_784 * k]);
    }
    let found = of(
        "log-normal",
        &["log_sigma"],
        &[],
        wide(1.0, 1e7),
        &[1.0],
        3.0,
    );
    close(found, [(-2f64).exp(), 2.0, 0.0]);
    let p = 1.0 / (1.0 + (-0.8f64).exp());
    let logistic = Law::new("expression", "-log1p_exp(-y * eta)", &[], &[]).unwrap();
    let classes = LabelRange::Classes(vec![-1.0, 1.0]);
    let information = Information::new(logistic, &classes, &[], [0.7, 0.9]);
    let mut factor = [0.0];
    information.factor(0.8, &mut factor);
    assert!((factor[0].powi(2) - p * (1.0 - p)).abs() < 1e-4);
}

/// Where runs start: the mean and sd of a uniform law, and a rate.
#[test]
fn starts_fit_labels_that_are_spread_evenly() {
    let law = |name: &str, shared: &str| {
        Law::new(
            name,
            family(name).unwrap().likelihood,
            &[shared.to_string()],
            &[],
        )
        .unwrap()
    };
    let numbers = LabelRange::Numbers {
        low: 0.0,
        high: 6e4,
    };
    let (eta, shared) = law("gaussian", "log_sigma").fit_to_range(&numbers, true, &[(0.0, 10.0)]);
    let sd: f64 = 6e4 / 12f64.sqrt();
    assert!((eta - 3e4).abs() < 1.0, "{eta}");
    assert!((shared[0] - sd.ln()).abs() < 0.05, "{shared:?}");
    let counts = LabelRange::Counts(80);
    let (eta, _) =
        law("negative-binomial", "log_shape").fit_to_range(&counts, true, &[(0.0, 10.0)]);
    assert!((eta - 10f64.ln()).abs() < 0.01, "{eta}");
    let (eta, _) =
        law("negative-binomial", "log_shape").fit_to_range(&counts, false, &[(0.0, 10.0)]);
    assert_eq!(eta, 0.0);
    // Few small counts say of a shape that it is large, without end.
    for most in [2, 3, 8, 12, 16, 24] {
        let counts = LabelRange::Counts(most);
        let fit = law("negative-binomial", "log_shape").fit_to_range(&counts, true, &[(0.0, 2.0)]);
        assert!(fit.1[0].abs() < 4.0, "{most}: {fit:?}");
    }
    // Labels far from 1 on a log link: the mean of the logarithms of 32 numbers up to 1e7, and of
    // one.
    let prices = LabelRange::Numbers {
        low: 1.0,
        high: 1e7,
    };
    let logs = prices.typical().into_iter().map(f64::ln);
    let mean = logs.sum::<f64>() / 33.0;
    let (eta, _) = law("log-normal", "log_sigma").fit_to_range(&prices, true, &[(0.0, 10.0)]);
    assert!((eta - mean).abs() < 0.01, "{eta} for {mean}");
}

/// Chances of ordered classes against differences of the logistic function, for all numbers of
/// them.
#[test]
fn ordered_classes_have_the_chances_of_cumulative_logits() {
    use super::{ORDINAL_CLASSES, ordinal, ordinal_parameters};
    let sigma = |u: f64| 1.0 / (1.0 + (-u).exp());
    for classes in ORDINAL_CLASSES {
        let names: Vec<String> = ordinal_parameters(classes)
            .into_iter()
            .map(|p| p.0)
            .collect();
        let law = Law::new("ordinal", &ordinal(classes), &names, &[]).unwrap();
        let shared: Vec<f64> = (0..names.len())
            .map(|k| 0.3 * (k as f64).sin() - 0.4)
            .collect();
        let mut cuts = vec![shared[0]];
        for gap in &shared[1..] {
            cuts.push(cuts[cuts.len() - 1] + gap.exp());
        }
        for eta in [-2.0, 0.1, 1.7] {
            let mut whole = 0.0;
            for class in 0..classes as usize {
                let up = cuts.get(class).map_or(1.0, |c| sigma(c - eta));
                let down = if class == 0 {
                    0.0
                } else {
                    sigma(cuts[class - 1] - eta)
                };
                let found = law.log_likelihood(class as f64, eta, &shared).exp();
                assert!(
                    (found - (up - down)).abs() < 1e-12,
                    "{class} of {classes} at {eta}"
                );
                whole += found;
            }
            assert!((whole - 1.0).abs() < 1e-12);
        }
    }
}

/// Of four ordered classes: clipped scores by the chances of the classes have the mean 0, to what
/// interpolation leaves, and none is beyond the clip; their own mean is not 0.
#[test]
fn clipped_classes_have_the_mean_0() {
    use super::{ordinal, ordinal_parameters};
    let names: Vec<String> = ordinal_parameters(4).into_iter().map(|p| p.0).collect();
    let law = Law::new("ordinal", &ordinal(4), &names, &[]).unwrap();
    let shared = [-1.3, 0.2, 0.6];
    let classes = LabelRange::Classes(vec![0.0, 1.0, 2.0, 3.0]);
    // Products of four vectors of three coordinates.
    let vectors = DMatrix::from_fn(3, 4, |i, j| (1.0 + 2.0 * i as f64 + 5.0 * j as f64).sin());
    let gram = vectors.transpose() * &vectors;
    for (eta, most) in [(-1.1, 0.2), (0.4, 0.6), (1.9, 1e9)] {
        let information = Information::new(law, &classes, &shared, [eta - 0.1, eta + 0.1]);
        let gram = gram.as_slice();
        let clip = Clip { gram, most };
        let (mut centred, mut plain) = (DVector::zeros(4), DVector::zeros(4));
        for y in 0..4 {
            let chance = law.log_likelihood(f64::from(y), eta, &shared).exp();
            let found = information.centred(law, [f64::from(y), eta], &shared, &clip);
            let scores = DVector::from_vec(law.scores(f64::from(y), eta, &shared));
            let norm = (&vectors * &scores).norm();
            let found = DVector::from_vec(found);
            assert!((&vectors * &found).norm() <= (1.0 + 1e-5) * most, "{found}");
            centred += found * chance;
            plain += scores * chance * (most / norm).min(1.0);
        }
        assert!(centred.norm() < 1e-5, "{centred}");
        assert_eq!(plain.norm() > 1e-2, most < 1e3, "{plain}");
    }
}

/// Times at a Weibull law's quantiles, a third of which end before the event where that is late:
/// events are shortened, rows stop early, and what their scores add up to is a fiftieth at most of
/// what clipped scores alone leave.
#[test]
fn clipped_times_have_the_mean_0() {
    let text = family("weibull").unwrap().likelihood;
    let law = Law::new("weibull", text, &["log_shape".to_string()], &[]).unwrap();
    let times = LabelRange::Numbers {
        low: -40.0,
        high: 40.0,
    };
    let (eta, shared, count) = (1.21, [0.2], 3000);
    let information = Information::new(law, &times, &shared, [0.0, 3.0]);
    for most in [1.0, 2.0, 4.0] {
        let clip = Clip {
            gram: &[0.9, 0.1, 0.1, 1.0],
            most,
        };
        let (mut centred, mut plain) = (DVector::zeros(2), DVector::zeros(2));
        for i in 0..count {
            let hazard = -((f64::from(i) + 0.5) / f64::from(count)).ln();
            let time = (eta + hazard.ln() / 0.2f64.exp()).exp();
            let end = if i % 3 == 0 { 2.5 } else { 1e9 };
            let label = if time <= end { time } else { -end };
            let scores = DVector::from_vec(law.scores(label, eta, &shared));
            let norm = (scores.dot(&(DMatrix::from_row_slice(2, 2, clip.gram) * &scores))).sqrt();
            centred += DVector::from_vec(information.centred(law, [label, eta], &shared, &clip));
            plain += scores * (most / norm).min(1.0);
        }
        assert!(plain.norm() > 0.02 * f64::from(count), "{plain}");
        assert!(centred.norm() < 0.02 * plain.norm(), "{centred} {plain}");
    }
}

/// Of times: events tell on average what Fisher's information says, where nothing ends the waiting;
/// laws that give labels below 0 another meaning are not taken for such.
#[test]
fn events_of_times_tell_what_is_expected() {
    let times = LabelRange::Numbers {
        low: -40.0,
        high: 40.0,
    };
    let of = |name: &str, shared: &str| {
        let text = family(name).unwrap().likelihood;
        Law::new(name, text, &[shared.to_string()], &[]).unwrap()
    };
    let (eta, step) = (0.7, 1e-3);
    let text = "if(y > 0, log_shape + exp(log_shape) * (log(y) - eta) - log(y), 0) \
                - if(y > 0, 2, 1) * log1p_exp(exp(log_shape) * (log(if(y > 0, y, -y)) - eta))";
    let own = Law::new("log-logistic", text, &["log_shape".to_string()], &[]).unwrap();
    for (law, shared) in [
        (of("weibull", "log_shape"), 0.3),
        (of("log-normal-survival", "log_sigma"), -0.2f64),
        (own, 0.3),
    ] {
        let information = Information::new(law, &times, &[shared], [eta - 0.1, eta + 0.1]);
        assert_eq!(information.source(), Source::Events, "{law:?}");
        let mut factor = vec![0.0; 4];
        information.factor(eta, &mut factor);
        let factor = DMatrix::from_row_slice(2, 2, &factor);
        let known = &factor * factor.transpose();
        let mut mean = DMatrix::zeros(2, 2);
        for i in -30_000..8_000 {
            let time = (eta + step * f64::from(i)).exp();
            let chance = law.log_likelihood(time, eta, &[shared]).exp() * time * step;
            let z = DVector::from_vec(law.hazard_scores(time, eta, &[shared]));
            if chance > 0.0 {
                mean += &z * z.transpose() * chance;
            }
        }
        assert!(
            (mean.clone() - &known).norm() < 0.01 * known.norm(),
            "{mean} {known}"
        );
    }
    let text = "if(y > 0, -y * exp(-eta - log_gain), y * exp(-eta)) - eta";
    let signed = Law::new("signed", text, &["log_gain".to_string()], &[]).unwrap();
    let information = Information::new(signed, &times, &[0.2], [0.0, 1.0]);
    assert_eq!(information.source(), Source::Observed);
}

/// Scores of counts reach as far as counts do beside the rates that are expected, eight sds of the
/// largest at most: up to 12, of rates up to 3, it is 12 − ½ and not 3.
#[test]
fn scores_of_few_counts_are_of_all_of_them() {
    let poisson = Law::new("poisson", "y * eta - exp(eta) - lgamma(y + 1)", &[], &[]).unwrap();
    let few = poisson.reach(&LabelRange::Counts(12));
    assert!((11.0..=12.0).contains(&few.score), "{few:?}");
    let many = poisson.reach(&LabelRange::Counts(400));
    assert!((many.score / 80.0 - 1.0).abs() < 0.05, "{many:?}");
}

/// Costs: nothing in a share of the rows, else exponential of mean e^η. That share, h in log odds,
/// and the mean tell of themselves alone: information is p(1 − p) in h and p in η. Where a constant
/// was left out of the density, what 0 stands for is not said, and information is as observed.
#[test]
fn a_label_of_zero_may_have_a_probability() {
    let labels = LabelRange::Numbers {
        low: 0.0,
        high: 60.0,
    };
    let known = |h: f64| 1.0 / (1.0 + (-h).exp());
    let of = |text: &str| Law::new("costs", text, &["h".to_string()], &[]).unwrap();
    let costs = of("if(y > 0, -log1p_exp(-h) - eta - y * exp(-eta), -log1p_exp(h))");
    for h in [-1.4, 0.0, 2.0] {
        let information = Information::new(costs, &labels, &[h], [-1.0, 2.0]);
        assert_eq!(information.source(), Source::Expected);
        for eta in [-0.9, 0.3, 1.7] {
            let mut factor = vec![0.0; 4];
            information.factor(eta, &mut factor);
            let factor = DMatrix::from_row_slice(2, 2, &factor);
            let found = &factor * factor.transpose();
            let p = known(h);
            let error = [found[(0, 0)] / p, found[(1, 1)] / (p * (1.0 - p))];
            assert!(error.iter().all(|r| (r - 1.0).abs() < 0.01), "{h}: {found}");
            assert!(found[(0, 1)].abs() < 0.01 * p, "{h}: {found}");
        }
    }
    let unclear = of("if(y > 0, -log1p_exp(-h) - eta - y * exp(-eta) + 1, -log1p_exp(h))");
    let information = Information::new(unclear, &labels, &[0.0], [-1.0, 2.0]);
    assert_eq!(information.source(), Source::Observed);
    // What cannot be is no probability, whatever was left out of the others.
    let none = of("if(y > 0, h - eta - y * exp(-eta), -1000)");
    let information = Information::new(none, &labels, &[1.0], [-1.0, 2.0]);
    assert_eq!(information.source(), Source::Expected);
}

/// Scores of a t law end at (ν + 1)/(2√ν σ) in η and at ν in log σ, and it is clipped there; those
/// of a normal law do not end.
#[test]
fn scores_of_heavy_tails_end() {
    let labels = LabelRange::Numbers {
        low: -9.0,
        high: 9.0,
    };
    let sampled = ["log_sigma".to_string()];
    let of = |name: &str, fixed: &[(String, f64)]| {
        let text = family(name).unwrap().likelihood;
        Law::new(name, text, &sampled, fixed).unwrap()
    };
    let sigma = 0.4f64;
    let heavy = of("student-t", &[("nu".to_string(), 4.0)]).located(&labels, &[sigma.ln()]);
    let largest = heavy.information.largest_scores();
    for (found, known) in largest.iter().zip([1.25 / sigma, 4.0]) {
        assert!((found / known - 1.0).abs() < 0.02, "{found} {known}");
    }
    // In log σ over the scale of that score, which has the information 2ν/(ν + 3).
    let scale = (8.0f64 / 7.0).sqrt() / ((5.0f64 / 7.0).sqrt() / sigma);
    let known = (1.25 / sigma).hypot(4.0 / scale);
    assert!(heavy.reach.ends);
    assert!((heavy.reach.score / known - 1.0).abs() < 0.02);
    let light = of("gaussian", &[]).located(&labels, &[sigma.ln()]).reach;
    assert!(!light.ends && light.score > 7.9 * light.weight.sqrt());
}
