//! Properties of every accountant.

use super::gaussian;
use super::{Account, Question, Sequence, account};
use crate::privacy::event::{Event, Form, Neighbours};
use proptest::prelude::*;

fn of(neighbours: Neighbours, events: &[(Event, u64)]) -> Sequence {
    Sequence::new(neighbours, events.to_vec()).unwrap()
}

fn epsilon(neighbours: Neighbours, events: &[(Event, u64)]) -> Account {
    account(&of(neighbours, events), Question::Epsilon { delta: 1e-6 })
}

const SUBSTITUTION: Neighbours = Neighbours::Substitution;
const ADD_REMOVE: Neighbours = Neighbours::AddRemove;

fn poisson(rate: f64, sigma: f64) -> Event {
    Event::PoissonGaussian {
        rate,
        sensitivity: 1.0,
        sigma,
    }
}

/// An event of every kind under substitution, from three numbers in (0, 1).
fn any_event(kind: usize, a: f64, b: f64) -> Event {
    let (sensitivity, sigma) = (1.0, 0.6 + 5.0 * a);
    match kind {
        0 => Event::Gaussian { sensitivity, sigma },
        1 => Event::DiscreteGaussian {
            sensitivity,
            sigma,
            step: 1e-5,
        },
        2 => poisson(0.3 * b, sigma),
        3 => Event::FixedBatchGaussian {
            batch: 1 + (50.0 * b) as u64,
            rows: 200,
            sensitivity,
            sigma,
        },
        4 => Event::BoundedRange { eta: a },
        5 => Event::Pure { epsilon: a },
        6 => Event::PoissonBarker {
            clip: 0.4 * a,
            ratio: 4.0 * b,
        },
        7 => Event::Heikkila {
            batch: 500 + (500.0 * a) as u64,
            rows: 100_000,
            form: if b < 0.5 {
                Form::Published
            } else {
                Form::Tightened
            },
        },
        _ => Event::FastMhNoisy {
            mean: 0.01 * b + 1e-4,
            sensitivity,
            sigma: 2.0 * sigma,
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Splitting a count changes nothing, more releases never cost less, lower ≤ upper,
    /// and asking back gives the δ that was asked for, or less.
    #[test]
    fn composition_is_the_sum_of_counts(
        kind in 0usize..9, a in 0.01f64..1.0, b in 0.01f64..1.0, n in 1u64..40, m in 1u64..40,
    ) {
        let event = any_event(kind, a, b);
        let together = epsilon(SUBSTITUTION, &[(event, n + m)]);
        let apart = epsilon(SUBSTITUTION, &[(event, n), (event, m)]);
        prop_assert!((together.upper - apart.upper).abs() <= 1e-12 * together.upper);
        prop_assert!((together.lower - apart.lower).abs() <= 1e-12 * together.upper);
        prop_assert!(together.lower <= together.upper && together.upper.is_finite());
        let fewer = epsilon(SUBSTITUTION, &[(event, n)]);
        prop_assert!(fewer.upper <= together.upper * (1.0 + 2e-3) + 1e-9);
        let question = Question::Delta { epsilon: together.upper };
        let delta = account(&of(SUBSTITUTION, &[(event, n + m)]), question);
        prop_assert!(delta.upper <= 1.05e-6, "{:?} {:?}", event, delta);
    }

    /// Monotone in σ, q and the count; every accountant's upper bound is above every
    /// accountant's lower one.
    #[test]
    fn subsampled_gaussians_are_monotone(
        rate in 1e-3f64..0.5, sigma in 0.5f64..6.0, count in 1u64..2000,
    ) {
        for neighbours in [SUBSTITUTION, ADD_REMOVE] {
            let base = epsilon(neighbours, &[(poisson(rate, sigma), count)]);
            let tolerance = 1.0 + 2e-3;
            for more in [
                (poisson(rate, sigma * 0.9), count),
                (poisson(rate * 1.1, sigma), count),
                (poisson(rate, sigma), count + count / 8 + 1),
            ] {
                let worse = epsilon(neighbours, &[more]);
                prop_assert!(worse.upper * tolerance + 1e-9 >= base.upper);
            }
            for x in &base.accountants {
                prop_assert!(x.upper >= base.lower * (1.0 - 1e-9), "{:?}", base);
            }
        }
    }

    /// No subsampling at q = 1 and with all rows in the batch; one release is the exact
    /// profile.
    #[test]
    fn special_cases_are_the_gaussian(sigma in 0.5f64..50.0, count in 1u64..200) {
        let gaussian = Event::Gaussian { sensitivity: 1.0, sigma };
        let exact = epsilon(SUBSTITUTION, &[(gaussian, count)]);
        let batch = Event::FixedBatchGaussian { batch: 9, rows: 9, sensitivity: 1.0, sigma };
        for other in [poisson(1.0, sigma), batch] {
            let same = epsilon(SUBSTITUTION, &[(other, count)]);
            prop_assert!((same.upper - exact.upper).abs() <= 1e-9 * exact.upper + 1e-12);
        }
        let one = gaussian::epsilon((1.0 / sigma, 1.0 / sigma), 1e-6);
        let single = epsilon(SUBSTITUTION, &[(gaussian, 1)]);
        prop_assert!((single.upper - one.1).abs() <= 1e-9 * one.1 + 1e-12);
    }
}

#[test]
fn without_delta_only_pure_events_have_a_bound() {
    let pure = [(Event::Pure { epsilon: 0.1 }, 3)];
    let zero = Question::Epsilon { delta: 0.0 };
    let answer = account(&of(SUBSTITUTION, &pure), zero);
    assert!((answer.upper - 0.3).abs() < 1e-9);
    let gaussian = Event::Gaussian {
        sensitivity: 1.0,
        sigma: 5.0,
    };
    let answer = account(&of(SUBSTITUTION, &[(gaussian, 1)]), zero);
    assert!(answer.upper.is_infinite());
    let open = account(
        &of(SUBSTITUTION, &[(Event::NotPrivate, 1)]),
        Question::Epsilon { delta: 0.1 },
    );
    assert!(open.upper.is_infinite());
}

/// Events next to nothing beside a large one add next to nothing, to either bound: no grid has to
/// be as fine as their losses.
#[test]
fn events_of_next_to_nothing_need_no_fine_grid() {
    let large = Event::Gaussian {
        sensitivity: 1.0,
        sigma: 0.33,
    };
    let question = Question::Epsilon { delta: 1e-6 };
    let alone = account(&of(SUBSTITUTION, &[(large, 1)]), question);
    for small in [1e-12, 1e-8, 1e-5] {
        let pure = Event::Pure { epsilon: small };
        let both = account(&of(SUBSTITUTION, &[(large, 1), (pure, 60)]), question);
        let losses = both.accountants.iter().find(|a| a.grid.is_some()).unwrap();
        assert!(losses.grid.unwrap() > 1e-3, "{small}: {losses:?}");
        let most = (alone.upper + 60.0 * small) * 1.002;
        assert!(losses.upper < most, "{small}: {losses:?}, alone {alone:?}");
        assert!(losses.lower > 0.998 * alone.lower, "{small}: {losses:?}");
    }
}

/// The discrete Gaussian's bound is that of its own exact profile, summed over the
/// lattice, and not far above it.
#[test]
fn the_lattice_is_bounded() {
    let (s, shift) = (2000i64, 1500i64);
    let weight = |k: i64| (-0.5 * (k as f64 / s as f64).powi(2)).exp();
    let total: f64 = (-40 * s..40 * s).map(weight).sum();
    for epsilon in [0.1, 1.0, 3.0f64] {
        let exact: f64 = (-40 * s..40 * s)
            .map(|k| (weight(k - shift) - epsilon.exp() * weight(k)).max(0.0) / total)
            .sum();
        let event = Event::DiscreteGaussian {
            sensitivity: shift as f64,
            sigma: s as f64,
            step: 1.0,
        };
        let ours = account(
            &of(SUBSTITUTION, &[(event, 1)]),
            Question::Delta { epsilon },
        );
        assert!(
            ours.upper >= exact && ours.upper < exact * 1.001,
            "{ours:?} {exact}"
        );
    }
}

/// Buckets of scales and rates bracket a sequence between those of its extremes.
#[test]
fn buckets_bracket_what_they_hold() {
    let near = |x: f64| poisson(0.01 * (1.0 + x), 1.0 - 0.5 * x);
    let many: Vec<(Event, u64)> = (0..100).map(|i| (near(1e-4 * f64::from(i)), 20)).collect();
    for neighbours in [SUBSTITUTION, ADD_REMOVE] {
        let (least, most) = (
            epsilon(neighbours, &[(near(0.0), 2000)]),
            epsilon(neighbours, &[(near(0.01), 2000)]),
        );
        let ours = epsilon(neighbours, &many);
        assert!(
            ours.upper >= least.lower && ours.lower <= most.upper,
            "{ours:?}"
        );
        assert!(ours.upper <= 1.02 * most.upper && ours.lower >= 0.98 * least.lower);
    }
}

/// Where f64 is at its ends: tails under 1e-308, overflowing exponents, multiplicities of
/// 1e-16. References by mpmath at 60 digits (Gaussians) and with exact Poisson masses.
#[test]
fn extremes_of_f64_lose_no_mass() {
    let at = |event: Event, count: u64, delta: f64| {
        account(
            &of(SUBSTITUTION, &[(event, count)]),
            Question::Epsilon { delta },
        )
    };
    let gaussian = |sigma| Event::Gaussian {
        sensitivity: 1.0,
        sigma,
    };
    let thin = at(gaussian(0.938_392_496_173_355_6), 1000, 1e-6);
    assert!(
        thin.upper >= 727.057_084_736 && thin.upper < 727.057_084_8,
        "{thin:?}"
    );
    assert!(thin.lower <= 727.057_084_737);
    // Two-sided at q = 1 is the Gaussian; at q = 1/2 its rows are seen against the unmoved
    // half of Q, at half the distance.
    let (closed, near) = (at(gaussian(0.05), 1, 1e-5), at(gaussian(0.1), 1, 1e-5));
    let two = at(poisson(1.0, 0.05), 1, 1e-5);
    let half = at(poisson(0.5, 0.05), 1, 1e-5);
    assert!(
        (two.upper / closed.upper - 1.0).abs() < 1e-9,
        "{two:?} {closed:?}"
    );
    assert!(
        half.upper < near.upper && half.upper > near.upper - 5.0,
        "{half:?} {near:?}"
    );
    let bit = at(Event::BoundedRange { eta: 100.0 }, 1, 1e-6);
    assert!(bit.upper > 99.0 && bit.upper <= 100.0 + 1e-9, "{bit:?}");
    let rare = |mean, sigma| Event::FastMhNoisy {
        mean,
        sensitivity: 1.0,
        sigma,
    };
    let few = at(rare(1e-6, 3.0), 10_000, 1e-12);
    let coupled = few.accountants.iter().find(|a| a.method == "Rényi");
    assert!(
        coupled.is_some_and(|a| a.upper > 3.38 && a.upper < 3.4),
        "{few:?}"
    );
    // The losses have a standard deviation of 2e-6 √(10⁴(e^{1/9} − 1)) together, of which δ leaves
    // about seven.
    assert!(few.upper > 3e-4 && few.upper < 6e-4, "{few:?}");
    // One row of weight W against none, with the chance 1e-15 of being kept.
    let never = at(rare(1e-15, 0.1), 1, 1e-18);
    assert!(never.upper > 30.0, "{never:?}");
}
