//! Events on a grid, so that the ledger can count equal ones together.

use super::flow::{self, MOST_RATIO};
use crate::privacy::event::{Event, Form, Neighbours};
use crate::privacy::mechanism::LOGIT_ERROR;

/// Steps an octave of the grid that bounded ranges are rounded **up** to.
const ETA_GRID: f64 = 512.0;
/// The same for the ρ of Gaussian events, whose ratio hardly varies.
const RHO_GRID: f64 = 65_536.0;
/// Grid step of a sum over its sensitivity, at most: the clip bound is 2^19 to 2^20 steps
/// and the sensitivity twice that.
const SUM_STEP: f64 = 1.0 / (1u64 << 20) as f64;

/// Shortens a lattice's σ to that of a continuous Gaussian which, rounded at random, is the
/// lattice's law: by σ² − 4 steps², a relative 2/s² where σ is s steps. s ≥ 0.05·2^20 where σ
/// is at least 0.05 of the sensitivity, so that 2/s² < 7.3e-10, in as many coordinates as there
/// are (`docs/proofs/accounting.md`). Less noise is charged by its own s.
const LATTICE: f64 = 1e-9;

/// An event on its grid; equal keys are counted together.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct EventKey {
    kind: Kind,
    index: i32,
}

/// What one row adds to a sum, over what its replacement can change.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Alone {
    /// Its replacement may pull the other way: rows lie in a ball around 0.
    Half,
    /// 1/√2 of it: two rows' parts have no negative inner product.
    RootHalf,
}

impl Alone {
    fn share(self) -> f64 {
        match self {
            Alone::Half => 0.5,
            Alone::RootHalf => std::f64::consts::FRAC_1_SQRT_2,
        }
    }
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
enum Kind {
    BoundedRange,
    /// The same, where a chain's end is taken for a draw of its target.
    PosteriorDraw,
    /// Of which no more is known.
    DiscreteGaussian,
    /// The same, of sums whose rows' own parts are known.
    GaussianOfRows(Alone),
    /// Index of the clip; `ratio`: index of Λ/λ.
    PoissonBarker {
        ratio: i32,
    },
    /// Index of the mean; `ratio`: index of σ over the weight's bound.
    FastMhNoisy {
        ratio: i32,
    },
    /// Index of the rate; `ratio`: index of the sensitivity over σ.
    PoissonGaussian {
        ratio: i32,
    },
    /// Its index is 0.
    Heikkila {
        batch: u64,
        rows: u64,
    },
}

impl EventKey {
    /// Bounded range η, rounded up to the grid 2^(k/512). `None` unless η > 0 and finite.
    pub fn bounded_range(eta: f64) -> Option<Self> {
        Some(EventKey {
            kind: Kind::BoundedRange,
            index: round_up(eta, ETA_GRID)?,
        })
    }

    /// One posterior draw of bounded range η, **if** it is one: the chain that makes it must
    /// have converged. `None` as above.
    pub fn posterior_draw(eta: f64) -> Option<Self> {
        Some(EventKey {
            kind: Kind::PosteriorDraw,
            index: round_up(eta, ETA_GRID)?,
        })
    }

    /// Barker acceptance on a Poisson minibatch: clip of the widest row and Λ/λ, both rounded up
    /// to the grid 2^(k/512); the price grows in either. `None` unless both are positive and
    /// finite, Λ/λ at most 1e9.
    pub fn poisson_barker(clip: f64, ratio: f64) -> Option<Self> {
        let key = EventKey {
            index: round_up(clip, ETA_GRID)?,
            kind: Kind::PoissonBarker {
                ratio: round_up(ratio, ETA_GRID)?,
            },
        };
        matches!(key.event(), Event::PoissonBarker { ratio, .. } if ratio <= MOST_RATIO)
            .then_some(key)
    }

    /// Whether its guarantee holds only under a condition that no computation here can check.
    pub fn is_conditional(self) -> bool {
        self.kind == Kind::PosteriorDraw
    }

    /// Whether it is noise on sums over all rows.
    pub fn is_gaussian(self) -> bool {
        matches!(self.kind, Kind::DiscreteGaussian | Kind::GaussianOfRows(_))
    }

    /// A [`Self::discrete_gaussian`] on a sum of which one row alone changes no more than `alone` of
    /// the sensitivity.
    pub fn gaussian_of_rows(sensitivity: f64, sigma: f64, alone: Alone) -> Option<Self> {
        Some(EventKey {
            kind: Kind::GaussianOfRows(alone),
            ..Self::discrete_gaussian(sensitivity, sigma)?
        })
    }

    /// Discrete Gaussian with the given Δ and σ (same unit), its ρ rounded up to the
    /// grid 2^(k/65536).
    pub fn discrete_gaussian(sensitivity: f64, sigma: f64) -> Option<Self> {
        let rho = sensitivity * sensitivity / (2.0 * sigma * sigma);
        Some(EventKey {
            kind: Kind::DiscreteGaussian,
            index: round_up(
                rho * (1.0 + 2.0 * LATTICE.max(8.0 * rho * SUM_STEP.powi(2))),
                RHO_GRID,
            )?,
        })
    }

    /// Noisy minibatch of DP-Fast MH: the mean multiplicity rounded up to the grid 2^(k/512),
    /// σ/W rounded down to the grid 2^(k/65536). `None` where [`Event::validate`] refuses it.
    pub fn fast_mh_noisy(mean: f64, sensitivity: f64, sigma: f64) -> Option<Self> {
        let inverse = sensitivity / sigma * (1.0 + 1e-12);
        let key = EventKey {
            index: round_up(mean.max(2e-15), ETA_GRID)?,
            kind: Kind::FastMhNoisy {
                ratio: round_up(inverse, RHO_GRID)?,
            },
        };
        key.event().validate(Neighbours::Substitution).ok()?;
        Some(key)
    }

    /// Gaussian noise on the sum of a Poisson sample: rate rounded up and σ/Δ rounded down to
    /// the grid 2^(k/512), which costs under 0.3 % and lets the thousands of noise levels of
    /// a step-size schedule be counted together. `None` where [`Event::validate`] refuses it.
    pub fn poisson_gaussian(rate: f64, sensitivity: f64, sigma: f64) -> Option<Self> {
        let inverse = sensitivity / sigma * (1.0 + LATTICE);
        let key = EventKey {
            index: round_up(rate, ETA_GRID)?,
            kind: Kind::PoissonGaussian {
                ratio: round_up(inverse, ETA_GRID)?,
            },
        };
        key.event().validate(Neighbours::Substitution).ok()?;
        (rate <= 1.0).then_some(key)
    }

    /// Heikkilä's subsampled test on `batch` of `rows` rows, in the tightened form. `None`
    /// where [`Event::validate`] refuses it.
    pub fn heikkila(batch: u64, rows: u64) -> Option<Self> {
        let key = EventKey {
            index: 0,
            kind: Kind::Heikkila { batch, rows },
        };
        key.event().validate(Neighbours::Substitution).ok()?;
        Some(key)
    }

    /// zCDP cost ρ of one such event, nats; `None` where it is not zCDP.
    pub fn rho(self) -> Option<f64> {
        match self.kind {
            Kind::BoundedRange | Kind::PosteriorDraw => {
                let eta = grid_value(self.index, ETA_GRID);
                Some(eta * eta / 8.0)
            }
            Kind::DiscreteGaussian | Kind::GaussianOfRows(_) => {
                Some(grid_value(self.index, RHO_GRID))
            }
            Kind::PoissonBarker { .. } => self.event().rho(),
            Kind::FastMhNoisy { .. } | Kind::PoissonGaussian { .. } | Kind::Heikkila { .. } => None,
        }
    }

    /// The event with its (rounded) parameters.
    pub fn event(self) -> Event {
        match self.kind {
            Kind::BoundedRange | Kind::PosteriorDraw => Event::BoundedRange {
                eta: grid_value(self.index, ETA_GRID),
            },
            Kind::DiscreteGaussian | Kind::GaussianOfRows(_) => Event::DiscreteGaussian {
                sensitivity: 1.0,
                sigma: (0.5 / grid_value(self.index, RHO_GRID)).sqrt(),
                step: SUM_STEP,
            },
            Kind::PoissonBarker { ratio } => Event::PoissonBarker {
                clip: grid_value(self.index, ETA_GRID),
                ratio: grid_value(ratio, ETA_GRID),
            },
            Kind::FastMhNoisy { ratio } => Event::FastMhNoisy {
                mean: grid_value(self.index, ETA_GRID),
                sensitivity: 1.0,
                sigma: 1.0 / grid_value(ratio, RHO_GRID),
            },
            Kind::PoissonGaussian { ratio } => Event::PoissonGaussian {
                rate: grid_value(self.index, ETA_GRID).min(1.0),
                sensitivity: 1.0,
                sigma: 1.0 / grid_value(ratio, ETA_GRID),
            },
            Kind::Heikkila { batch, rows } => Event::Heikkila {
                batch,
                rows,
                form: Form::Tightened,
            },
        }
    }
}

impl EventKey {
    /// The key without what only other neighbours ask about: keys of one event are one.
    pub fn under_substitution(self) -> Self {
        let kind = match self.kind {
            Kind::GaussianOfRows(_) => Kind::DiscreteGaussian,
            kind => kind,
        };
        EventKey { kind, ..self }
    }

    /// What bounds the same release under [`Neighbours::ZeroOut`]
    /// (`docs/proofs/accounting.md`, "A row that is blanked out").
    pub fn zero_out(self) -> Event {
        match (self.kind, self.event()) {
            // The coin's error is granted in full, as it was.
            (_, Event::BoundedRange { eta }) => Event::BoundedRange {
                eta: 0.5 * eta + LOGIT_ERROR,
            },
            (_, Event::PoissonBarker { clip, ratio }) => {
                let rho = (flow::rho_of_one(ratio) / flow::rho(ratio)).sqrt();
                let range = flow::range_of_one(ratio) / flow::range(ratio);
                // The same functions price it: only arithmetic can be off.
                let share = rho.max(range) * (1.0 + 1e-12);
                Event::PoissonBarker {
                    clip: (clip + LOGIT_ERROR) * share,
                    ratio,
                }
            }
            (
                Kind::GaussianOfRows(alone),
                Event::DiscreteGaussian {
                    sensitivity,
                    sigma,
                    step,
                },
            ) => Event::DiscreteGaussian {
                sensitivity: sensitivity * alone.share(),
                sigma,
                step,
            },
            (
                _,
                Event::PoissonGaussian {
                    rate,
                    sensitivity,
                    sigma,
                },
            ) => Event::PoissonGaussian {
                rate,
                sensitivity: 0.5 * sensitivity,
                sigma,
            },
            // A blank row is one of those that substitution may bring.
            (_, event) => event,
        }
    }
}

/// η as charged: rounded up to the grid.
pub fn charged_eta(eta: f64) -> Option<f64> {
    Some(grid_value(round_up(eta, ETA_GRID)?, ETA_GRID))
}

fn grid_value(index: i32, per_octave: f64) -> f64 {
    // The last factor covers exp2's rounding, so that the value is never under η.
    (f64::from(index) / per_octave).exp2() * (1.0 + 4.0 * f64::EPSILON)
}

fn round_up(value: f64, per_octave: f64) -> Option<i32> {
    if !(value > 0.0 && value.is_finite()) {
        return None;
    }
    let mut index = (value.log2() * per_octave).ceil() as i32;
    while grid_value(index, per_octave) < value {
        index += 1;
    }
    Some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rounding_is_up_and_small(log in -60f64..10.0) {
            let eta = log.exp();
            let charged = charged_eta(eta).unwrap_or(0.0);
            prop_assert!(charged >= eta && charged < eta * 1.0014);
        }

        #[test]
        fn a_gaussian_is_never_undercharged(delta in 1e-3f64..1e3, ratio in 0.1f64..1e4) {
            let sigma = delta * ratio;
            let rho = EventKey::discrete_gaussian(delta, sigma).and_then(EventKey::rho).unwrap_or(0.0);
            let exact = 0.5 / (ratio * ratio);
            prop_assert!(rho >= exact && rho < exact * 1.0001);
        }
    }

    proptest! {
        #[test]
        fn a_minibatch_is_never_undercharged(mean in 1e-9f64..0.49, ratio in 0.06f64..1e4) {
            let key = EventKey::fast_mh_noisy(mean, 2.0, 2.0 * ratio);
            let Some(Event::FastMhNoisy { mean: m, sensitivity, sigma }) = key.map(EventKey::event) else {
                return Err(TestCaseError::fail("no event"));
            };
            prop_assert!(m >= mean && m < mean * 1.0014);
            prop_assert!(sigma / sensitivity <= ratio && sigma / sensitivity > ratio * 0.9999);
        }
    }

    proptest! {
        #[test]
        fn a_poisson_sample_is_never_undercharged(rate in 1e-9f64..1.0, ratio in 0.06f64..1e4) {
            let key = EventKey::poisson_gaussian(rate, 2.0, 2.0 * ratio);
            let Some(Event::PoissonGaussian { rate: q, sensitivity, sigma }) = key.map(EventKey::event) else {
                return Err(TestCaseError::fail("no event"));
            };
            prop_assert!(q >= rate && q <= rate * 1.0014);
            prop_assert!(sigma / sensitivity <= ratio && sigma / sensitivity > ratio * 0.9986);
        }
    }

    proptest! {
        #[test]
        fn a_minibatch_decision_is_never_undercharged(c in -20f64..1.0, k in -8f64..8.0) {
            let (clip, ratio) = (c.exp(), k.exp());
            let key = EventKey::poisson_barker(clip, ratio);
            let Some(Event::PoissonBarker { clip: c, ratio: k }) = key.map(EventKey::event) else {
                return Err(TestCaseError::fail("no event"));
            };
            prop_assert!(c >= clip && c < clip * 1.0014 && k >= ratio && k < ratio * 1.0014);
            let exact = Event::PoissonBarker { clip, ratio }.rho().unwrap_or(f64::NAN);
            let charged = key.and_then(EventKey::rho).unwrap_or(f64::NAN);
            // Both are bounds from above, the exact one by up to 1/4096 of it.
            prop_assert!(charged >= exact * (1.0 - 1.0 / 4096.0) && charged < exact * 1.006);
        }
    }

    #[test]
    fn events_without_rho_are_checked_by_their_theorems() {
        assert!(EventKey::fast_mh_noisy(0.51, 1.0, 1.0).is_none());
        assert!(EventKey::fast_mh_noisy(0.1, 1.0, 0.01).is_none());
        assert!(EventKey::heikkila(10, 100).is_none());
        assert!(EventKey::heikkila(101, 100).is_none());
        assert!(EventKey::poisson_gaussian(0.0, 1.0, 1.0).is_none());
        assert!(EventKey::poisson_gaussian(1.1, 1.0, 1.0).is_none());
        assert!(EventKey::poisson_gaussian(0.5, 1.0, 0.01).is_none());
        assert!(EventKey::poisson_gaussian(0.5, 1.0, 2.0).is_some_and(|k| k.rho().is_none()));
        let key = EventKey::heikkila(100, 1000);
        assert!(key.is_some_and(|k| k.rho().is_none()));
        let json = serde_json::to_string(&key).unwrap();
        assert_eq!(key, serde_json::from_str(&json).unwrap());
    }

    #[test]
    fn a_free_or_infinite_event_does_not_exist() {
        assert!(EventKey::bounded_range(0.0).is_none());
        assert!(EventKey::bounded_range(f64::NAN).is_none());
        assert!(EventKey::bounded_range(f64::INFINITY).is_none());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e9] {
            assert!(EventKey::poisson_barker(0.1, bad).is_none());
        }
        assert!(EventKey::poisson_barker(f64::INFINITY, 1.0).is_none());
    }

    /// What each release comes to for a row that is blanked out: half of a change in the largest
    /// case, and never more than a replaced row's, but for the coin.
    #[test]
    fn a_blank_row_is_charged_its_part() {
        let delta = |event| match event {
            Event::DiscreteGaussian { sensitivity, .. } => sensitivity,
            Event::PoissonGaussian { sensitivity, .. } => sensitivity,
            Event::BoundedRange { eta } => eta,
            Event::PoissonBarker { clip, .. } => clip,
            other => panic!("{other:?}"),
        };
        let share = |key: Option<EventKey>| {
            let key = key.unwrap();
            delta(key.zero_out()) / delta(key.event())
        };
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        let of_rows = |alone| share(EventKey::gaussian_of_rows(2.0, 9.0, alone));
        near(of_rows(Alone::Half), 0.5);
        near(of_rows(Alone::RootHalf), 0.5f64.sqrt());
        near(share(EventKey::discrete_gaussian(2.0, 9.0)), 1.0);
        near(share(EventKey::poisson_gaussian(0.1, 2.0, 9.0)), 0.5);
        near(share(EventKey::bounded_range(0.2)), 0.5);
        // √(ρ of one/ρ) = 0.757 and η of one/η = 2/2.5 at Λ = λ.
        let of_minibatch = share(EventKey::poisson_barker(0.1, 1.0));
        assert!((0.799..0.802).contains(&of_minibatch), "{of_minibatch}");
        for key in [
            EventKey::heikkila(100, 1000),
            EventKey::fast_mh_noisy(0.1, 1.0, 9.0),
        ] {
            let key = key.unwrap();
            assert_eq!(key.zero_out(), key.event());
        }
        // The coin's error is granted in full, which is all that is left of tiny steps.
        let tiny = delta(EventKey::bounded_range(1e-15).unwrap().zero_out());
        assert!((1.0..1.01).contains(&(tiny / LOGIT_ERROR)), "{tiny}");
        let tiny = EventKey::poisson_barker(1e-15, 1.0).unwrap().zero_out();
        let Some(eta) = tiny.eta() else {
            panic!("{tiny:?}")
        };
        assert!(
            (2.0 * LOGIT_ERROR..2.1 * LOGIT_ERROR).contains(&eta),
            "{eta}"
        );
        // What a ledger's file and a certificate say of it is the same event.
        let alone = EventKey::gaussian_of_rows(2.0, 9.0, Alone::Half).unwrap();
        let plain = EventKey::discrete_gaussian(2.0, 9.0).unwrap();
        assert_eq!((alone.event(), alone.rho()), (plain.event(), plain.rho()));
        assert_eq!(alone.under_substitution(), plain);
        assert!(alone.is_gaussian());
    }

    /// Keys that saved states have had since before minibatches were priced by their flow.
    #[test]
    fn keys_of_old_states_are_read() {
        for (text, kind) in [
            (r#"{"kind":"BoundedRange","index":-512}"#, "bounded_range"),
            (
                r#"{"kind":{"FastMhNoisy":{"ratio":-65536}},"index":-512}"#,
                "fast_mh_noisy",
            ),
        ] {
            let key: EventKey = serde_json::from_str(text).unwrap();
            assert_eq!(key.event().kind(), kind);
        }
        let old: EventKey =
            serde_json::from_str(r#"{"kind":"BoundedRange","index":-512}"#).unwrap();
        assert_eq!(Some(old), EventKey::bounded_range(0.5));
        let new = EventKey::poisson_barker(0.5, 1.0);
        let json = serde_json::to_string(&new).unwrap();
        assert_eq!(new, serde_json::from_str(&json).unwrap());
    }
}
