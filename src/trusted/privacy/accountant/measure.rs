//! What a ledger counts, fixed before its first charge: ρ, μ²/2 of Gaussian DP, or the Rényi
//! divergence at one order (docs/proofs/accounting.md).

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::event_key::EventKey;
use super::rho::Rho;
use super::{divergence, epsilon_of_rho, gaussian_dp, multiplicity_tail};
use crate::privacy::event::Event;

/// Largest multiplicity of one row that is ever counted.
const MOST_MULTIPLICITY: u32 = 64;
/// Covers the f64 arithmetic of a divergence and of the limit.
const ROUNDING: f64 = 1e-12;

/// The amount whose sum a ledger limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// ρ of zCDP (Whitehouse, Ramdas, Rogers & Wu 2023).
    #[default]
    Zcdp,
    /// μ²/2 of Gaussian DP (Smith & Thakurta 2022): for Gaussian noise that is its ρ, of which
    /// a budget holds more than under zCDP; for one of many decisions by a coin it is little more
    /// than theirs, for any π/2 times theirs.
    Gaussian,
    /// The Rényi divergence of one order α > 1 (Feldman & Zrnic 2021).
    Renyi {
        /// α.
        order: f64,
    },
}

/// What one event costs a ledger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// In the ledger's measure, rounded up.
    pub cost: Rho,
    /// Mass of multiplicities beyond the cut, which δ pays for as it does for coins.
    pub tail: f64,
}

impl Measure {
    /// The Rényi divergence of order `order`.
    ///
    /// # Errors
    /// A message where the order is not in [1.01, 10^5].
    pub fn renyi(order: f64) -> Result<Self, String> {
        if (1.01..=1e5).contains(&order) {
            Ok(Measure::Renyi { order })
        } else {
            Err(format!("must lie between 1.01 and 1e5, not {order}"))
        }
    }

    /// Symbol of its amounts: `rho`, `mu^2/2`, or `D_` and the order.
    pub fn symbol(self) -> String {
        match self {
            Measure::Zcdp => "rho".into(),
            Measure::Gaussian => "mu^2/2".into(),
            Measure::Renyi { order } => format!("D_{order}"),
        }
    }

    /// In words: `zCDP filter`, `Gaussian-DP filter`, or `Rényi filter at order` and the order.
    pub fn filter(self) -> String {
        match self {
            Measure::Zcdp => "zCDP filter".into(),
            Measure::Gaussian => "Gaussian-DP filter (Smith & Thakurta 2022)".into(),
            Measure::Renyi { order } => {
                format!("Rényi filter at order {order} (Feldman & Zrnic 2021)")
            }
        }
    }

    /// The most that may be spent: what becomes `budget`'s ε at the δ left to conversion.
    /// At one order, `ε − log((α−1)/α) + (log δ + log α)/(α−1)` (Canonne, Kamath & Steinke
    /// 2020, Prop. 12); 0 where the order converts to more than ε on its own.
    pub fn limit(self, budget: Budget) -> f64 {
        match self {
            Measure::Zcdp => budget.rho(),
            Measure::Gaussian => gaussian_dp::limit(budget.epsilon(), budget.conversion_delta()),
            Measure::Renyi { order } => {
                let offset = offset(order, budget.conversion_delta());
                let left = budget.epsilon() - offset;
                (left - ROUNDING * (budget.epsilon() + offset.abs())).max(0.0)
            }
        }
    }

    /// What of the limit must be left after an event that is no Gaussian noise.
    pub fn reserve(self, budget: Budget) -> f64 {
        match self {
            Measure::Gaussian => gaussian_dp::reserve(self.limit(budget)),
            Measure::Zcdp | Measure::Renyi { .. } => 0.0,
        }
    }

    /// ε at δ of a spent amount, nats.
    pub fn epsilon(self, spent: f64, delta: f64) -> f64 {
        match self {
            _ if spent <= 0.0 => 0.0,
            Measure::Zcdp => epsilon_of_rho(spent, delta),
            Measure::Gaussian => gaussian_dp::epsilon(spent, delta),
            Measure::Renyi { order } => (spent + offset(order, delta)).max(0.0),
        }
    }

    /// What one event costs a ledger of this measure and `budget`.
    ///
    /// # Errors
    /// A message where the measure cannot count the event, with what to do.
    pub fn price(self, key: EventKey, budget: Budget) -> Result<Price, String> {
        let whole = |nats: f64| Price {
            cost: Rho::cost(nats),
            tail: 0.0,
        };
        let order = match self {
            Measure::Zcdp => {
                return key.rho().map(whole).ok_or_else(|| uncounted("rho", key));
            }
            Measure::Gaussian => {
                let rho = key.rho().ok_or_else(|| uncounted("mu", key))?;
                return Ok(whole(match key.event().eta() {
                    None => rho,
                    Some(eta) => gaussian_dp::decision(rho, eta, self.reserve(budget)),
                }));
            }
            Measure::Renyi { order } => order,
        };
        let (nats, tail) = match key.event() {
            Event::FastMhNoisy { mean, .. } => {
                let most = self.limit(budget) / (0.5 * budget.coin_delta());
                cut(key.event(), mean, order, most)
            }
            // A lattice's divergence is at most α·ρ, whatever its step.
            Event::DiscreteGaussian { .. } => (key.rho().map_or(f64::NAN, |r| order * r), 0.0),
            event => (divergence(event, 0, order), 0.0),
        };
        // No budget holds more; NaN is none either.
        if !(0.0..1e9).contains(&nats) {
            return Err(unpriced(key, order));
        }
        Ok(Price {
            cost: Rho::cost(nats * (1.0 + ROUNDING)),
            tail,
        })
    }

    /// What a run of such events counts without an order; `None` where it needs one.
    pub(in crate::trusted) fn without_order(
        keys: impl IntoIterator<Item = EventKey>,
    ) -> Option<Self> {
        keys.into_iter()
            .try_fold(Measure::Gaussian, |measure, key| match key.rho() {
                _ if key.is_gaussian() => Some(measure),
                rho => rho.map(|_| Measure::Zcdp),
            })
    }

    /// Whether its ledger can count events that have no ρ.
    pub fn is_renyi(self) -> bool {
        matches!(self, Measure::Renyi { .. })
    }
}

fn uncounted(what: &str, key: EventKey) -> String {
    format!(
        "a release of kind {} has no {what}, which this ledger counts; give this sampler a ledger of its own, without 'filter' or with an 'order' in [privacy]",
        key.event().kind()
    )
}

fn unpriced(key: EventKey, order: f64) -> String {
    let most = match key.event() {
        Event::Heikkila { batch, .. } => format!(", under batch/5 = {}", batch as f64 / 5.0),
        _ => String::new(),
    };
    format!(
        "a release of kind {} has no finite divergence at order {order}; state a smaller 'order' in [privacy]{most}",
        key.event().kind()
    )
}

/// What conversion at order α adds to the divergence.
fn offset(order: f64, delta: f64) -> f64 {
    (-1.0 / order).ln_1p() - (delta.ln() + order.ln()) / (order - 1.0)
}

/// Divergence and tail of a minibatch's noisy sum at the smallest cut whose tails, over as
/// many events as the limit affords, cost at most half of the coins' δ: `most` is the limit
/// over that half.
fn cut(event: Event, mean: f64, order: f64, most: f64) -> (f64, f64) {
    (1..=MOST_MULTIPLICITY)
        .map(|cut| (divergence(event, cut, order), multiplicity_tail(mean, cut)))
        .find(|(nats, tail)| tail * most <= *nats || !nats.is_finite())
        .unwrap_or((f64::NAN, 0.0))
}

/// Orders to choose from, public like all that they are chosen by.
fn orders() -> impl Iterator<Item = f64> {
    let coarse = (0..).map(|i| (64.0 * f64::powi(1.1, i)).round());
    [1.05, 1.1, 1.2, 1.35, 1.5, 1.75]
        .into_iter()
        .chain((2..64).map(f64::from))
        .chain(coarse.take_while(|order| *order <= 1e5))
}

/// The order that affords most of `moves`, one of each, from public numbers alone; 2 where
/// none affords any.
pub(crate) fn best_order(moves: &[EventKey], budget: Budget) -> f64 {
    let rounds = |order: f64| {
        let measure = Measure::Renyi { order };
        let cost: Option<f64> = moves
            .iter()
            .map(|&key| measure.price(key, budget).ok().map(|p| p.cost.nats()))
            .sum();
        measure.limit(budget) / cost.unwrap_or(f64::INFINITY)
    };
    orders()
        .map(|order| (order, rounds(order)))
        .filter(|(_, rounds)| rounds.is_finite())
        .fold(
            (2.0, 0.0),
            |best, new| {
                if new.1 > best.1 { new } else { best }
            },
        )
        .0
}

/// The order at which `count` events show the smallest ε at the budget's δ; 2 where none is
/// finite.
pub(in crate::trusted) fn tightest_order(key: EventKey, count: u64, budget: Budget) -> f64 {
    let epsilon = |order: f64| {
        let measure = Measure::Renyi { order };
        let price = measure.price(key, budget).ok()?;
        let spent = price.cost.times(count).nats();
        Some(measure.epsilon(spent, budget.conversion_delta()))
    };
    orders()
        .filter_map(|order| Some((order, epsilon(order)?)))
        .fold((2.0, f64::INFINITY), |best, new| {
            if new.1 < best.1 { new } else { best }
        })
        .0
}
