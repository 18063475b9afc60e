//! Convergence diagnostics against ArviZ and in cases where they are undefined.

use super::*;

/// AR(1) chain with innovations that are sums of twelve uniforms less six, from
/// the 64-bit linear congruential generator of Knuth's MMIX. Integer and exact
/// arithmetic only, so that Python makes the same numbers to the last bit.
fn series(seed: u64, n: usize, rho: f64, shift: f64) -> Vec<f64> {
    let mut state = seed;
    let mut x = 0.0;
    (0..n)
        .map(|_| {
            let mut e = 0.0;
            for _ in 0..12 {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                e += (state >> 11) as f64 / (1u64 << 53) as f64;
            }
            x = rho * x + (e - 6.0);
            x + shift
        })
        .collect()
}

fn chains(seeds: std::ops::RangeInclusive<u64>, n: usize, rho: f64) -> Vec<Vec<f64>> {
    seeds.map(|seed| series(seed, n, rho, 0.0)).collect()
}

/// `expected`: r_hat, ess_bulk, ess_tail, ess_mean.
#[track_caller]
fn assert_matches(chains: &[Vec<f64>], expected: [f64; 4]) {
    let found = [
        r_hat(chains),
        ess_bulk(chains),
        ess_tail(chains),
        ess_mean(chains),
    ];
    for (f, e) in found.iter().zip(expected) {
        assert!(
            (f / e - 1.0).abs() < 1e-10,
            "{found:?} instead of {expected:?}"
        );
    }
}

// The expected numbers were printed by ArviZ 0.23.4 (with NumPy 2.4.6 and SciPy
// 1.17.1): `arviz.rhat(a)` and `arviz.ess(a, method=...)` with "bulk", "tail"
// and "mean". `arviz.rhat` refuses a single chain; for that one its parts were
// put together: max(_rhat(_z_scale(h)), _rhat(_z_scale(abs(h - median(h))))) of
// h = _split_chains(a), all from arviz.stats.diagnostics.

#[test]
fn autocorrelated_chains() {
    assert_matches(
        &chains(1..=4, 250, 0.7),
        [
            1.0045287875039264,
            233.8871037223806,
            277.0483384696947,
            230.60239527161616,
        ],
    );
}

#[test]
fn antithetic_chains_of_odd_length() {
    // Bulk and mean are at their bound, S·log10(S).
    assert_matches(
        &chains(1..=4, 101, -0.5),
        [
            1.002515893877945,
            1040.823996531185,
            371.88089219760843,
            1040.823996531185,
        ],
    );
}

#[test]
fn one_chain() {
    assert_matches(
        &[series(7, 400, 0.9, 0.0)],
        [
            1.057251598458751,
            26.638802859260963,
            54.59941978337838,
            25.709538688267624,
        ],
    );
}

#[test]
fn tied_draws() {
    let mut chains = chains(5..=6, 200, 0.5);
    for x in chains.iter_mut().flatten() {
        *x = (2.0 * *x).floor() / 2.0;
    }
    assert_matches(
        &chains,
        [
            1.0053751026115623,
            124.83611686411561,
            185.5461018686184,
            125.66885014624343,
        ],
    );
}

#[test]
fn four_and_five_draws() {
    assert_matches(
        &chains(41..=43, 4, 0.2),
        [
            1.8831211408778608,
            12.9501749525715,
            12.9501749525715,
            12.9501749525715,
        ],
    );
    assert_matches(
        &chains(31..=32, 5, 0.2),
        [
            1.6932687786661953,
            7.224719895935548,
            7.224719895935548,
            7.224719895935548,
        ],
    );
}

#[test]
fn independent_draws() {
    let chains = chains(21..=24, 1000, 0.0);
    assert_matches(
        &chains,
        [
            1.0003243354303017,
            3935.1836366864036,
            3928.9471342550064,
            3936.2876615084624,
        ],
    );
    // What they mean, whatever ArviZ says: all but no correlation.
    assert!(r_hat(&chains) < 1.01);
    assert!((3600.0..4400.0).contains(&ess_bulk(&chains)));
    assert!((3600.0..4400.0).contains(&ess_tail(&chains)));
}

#[test]
fn one_shifted_chain() {
    let mut chains = chains(11..=13, 200, 0.3);
    chains.push(series(14, 200, 0.3, 1.5));
    assert_matches(
        &chains,
        [
            1.2048207991934663,
            14.878799195576102,
            63.6198211113703,
            14.463784521627009,
        ],
    );
    assert!(r_hat(&chains) > 1.1);
}

#[test]
fn folding_finds_a_chain_of_another_scale() {
    let mut chains = chains(11..=14, 500, 0.0);
    for x in &mut chains[3] {
        *x *= 4.0;
    }
    assert!(r_hat(&chains) > 1.1);
}

#[test]
fn unequal_chains_are_cut_to_the_shortest() {
    let equal = chains(1..=4, 100, 0.7);
    let mut unequal = equal.clone();
    unequal[2] = series(3, 130, 0.7, 0.0);
    assert_eq!(r_hat(&equal), r_hat(&unequal));
    assert_eq!(ess_bulk(&equal), ess_bulk(&unequal));
    assert_eq!(ess_tail(&equal), ess_tail(&unequal));
    assert_eq!(ess_mean(&equal), ess_mean(&unequal));
    let (a, b) = (summarize("x", &equal), summarize("x", &unequal));
    assert_eq!((a.mean, a.q95), (b.mean, b.q95));
}

#[test]
fn undefined_is_nan() {
    let mut with_nan = chains(1..=2, 50, 0.0);
    with_nan[1][7] = f64::NAN;
    let mut with_infinity = chains(1..=2, 50, 0.0);
    with_infinity[0][3] = f64::INFINITY;
    let undefined: [Vec<Vec<f64>>; 7] = [
        vec![],
        vec![vec![]],
        vec![vec![1.0, 2.0, 3.0]],
        vec![series(1, 50, 0.0, 0.0), vec![]],
        vec![vec![0.1; 100]; 4],
        with_nan,
        with_infinity,
    ];
    for chains in &undefined {
        for value in [
            r_hat(chains),
            ess_bulk(chains),
            ess_tail(chains),
            ess_mean(chains),
        ] {
            assert!(value.is_nan(), "{value} for {chains:?}");
        }
    }
    assert!(summarize("x", &undefined[5]).q50.is_nan());
    assert_eq!(summarize("x", &undefined[4]).q50, 0.1);
}

#[test]
fn stuck_chains_never_converge() {
    assert_eq!(r_hat(&[vec![0.1; 100], vec![0.3; 100]]), f64::INFINITY);
    assert!(ess_bulk(&[vec![0.1; 100], vec![0.3; 100]]) < 10.0);
}

#[test]
fn tail_of_few_values_is_undefined() {
    // The 95 % quantile is the greatest draw: it splits nothing.
    let half_ones: Vec<f64> = (0..200).map(|i| f64::from(i % 7 < 3)).collect();
    assert!(ess_tail(std::slice::from_ref(&half_ones)).is_nan());
    assert!(ess_bulk(&[half_ones]).is_finite());
}

#[test]
fn summary_of_autocorrelated_chains() {
    let s = summarize("slope", &chains(1..=4, 250, 0.7));
    assert_eq!(s.name, "slope");
    // NumPy 2.4.6: mean, std(ddof=1) and quantile of the same draws.
    for (found, expected) in [
        (s.mean, 0.14775549728389162),
        (s.sd, 1.3933227818106133),
        (s.q5, -2.071689945384098),
        (s.q50, 0.16176138798660364),
        (s.q95, 2.461015674783859),
        (s.ess_bulk, 233.8871037223806),
        (s.ess_tail, 277.0483384696947),
        (s.r_hat, 1.0045287875039264),
    ] {
        assert!((found / expected - 1.0).abs() < 1e-10);
    }
}
