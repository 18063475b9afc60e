//! Which accountants apply to a sequence, and the best of their answers.

use serde::Serialize;

use super::compose::Target;
use super::gaussian;
use super::pld::{self, Bounds, Counted};
use super::renyi;
use super::sequence::Sequence;
use crate::privacy::conversion::{delta_of_rho, epsilon_of_rho};
use crate::privacy::event::Event;

/// Tolerance of the grid where events were bucketed.
const BUCKETED: f64 = 4e-3;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// The smallest ε at this δ.
    Epsilon {
        /// δ in [0, 1).
        delta: f64,
    },
    /// The smallest δ at this ε.
    Delta {
        /// ε ≥ 0, nats.
        epsilon: f64,
    },
}

/// One accountant's bounds on what was asked (ε in nats, or δ).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The accountant.
    pub method: &'static str,
    /// Not above the true value of the dominating pairs; 0 where it gives none.
    pub lower: f64,
    /// Never below the true value. Infinite (`null` in JSON) where there is no bound.
    pub upper: f64,
    /// Which direction gave the larger bound, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<&'static str>,
    /// Order α that gave the bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<f64>,
    /// Width of the grid of losses, nats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<f64>,
    /// Whether it also holds where costs followed earlier answers, as a filter's limit.
    pub adaptive: bool,
}

/// All answers, and the best of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Account {
    /// Largest lower bound.
    pub lower: f64,
    /// Smallest upper bound: the guarantee for a sequence fixed in advance.
    pub upper: f64,
    /// The accountant that gave it.
    pub method: &'static str,
    /// One entry per accountant that applied.
    pub accountants: Vec<Answer>,
}

/// Bounds to a relative 1e-3 where that can be had.
pub fn account(sequence: &Sequence, question: Question) -> Account {
    account_within(sequence, question, 1e-3)
}

/// As [`account`], to the given relative tolerance of the privacy loss distributions.
pub fn account_within(sequence: &Sequence, question: Question, tolerance: f64) -> Account {
    let mut accountants: Vec<Answer> = [
        basic(sequence, question),
        closed_form(sequence, question),
        zcdp(sequence, question),
        renyi_answer(sequence, question),
    ]
    .into_iter()
    .flatten()
    .collect();
    accountants.extend(losses(sequence, question, tolerance));
    let none = Answer {
        lower: 0.0,
        upper: match question {
            Question::Epsilon { .. } => f64::INFINITY,
            Question::Delta { .. } => 1.0,
        },
        ..answer("none", false)
    };
    let best = accountants
        .iter()
        .min_by(|a, b| a.upper.total_cmp(&b.upper))
        .unwrap_or(&none)
        .clone();
    let lower = accountants.iter().fold(0.0f64, |l, a| l.max(a.lower));
    Account {
        lower: lower.min(best.upper),
        upper: best.upper,
        method: best.method,
        accountants,
    }
}

fn answer(method: &'static str, adaptive: bool) -> Answer {
    Answer {
        method,
        lower: 0.0,
        upper: f64::INFINITY,
        direction: None,
        order: None,
        grid: None,
        adaptive,
    }
}

/// Sum of the events' ε, where all have one (δ = 0). Adaptive choices do not hurt it.
fn basic(sequence: &Sequence, question: Question) -> Option<Answer> {
    let mut sum = 0.0;
    for (event, count) in sequence.events() {
        sum += *count as f64
            * match event {
                Event::Pure { epsilon } => *epsilon,
                Event::BoundedRange { eta } => *eta,
                Event::PoissonGaussian { rate: 0.0, .. } => 0.0,
                _ => return None,
            };
    }
    let sum = sum * (1.0 + 1e-12);
    Some(Answer {
        upper: match question {
            Question::Epsilon { .. } => sum,
            Question::Delta { epsilon } => f64::from(epsilon < sum),
        },
        ..answer("basic composition", true)
    })
}

/// Applies the lattice's share to a bound of the Gaussian's profile.
fn on_lattice(
    sequence: &Sequence,
    question: Question,
    bounds: impl Fn(Question) -> (f64, f64),
) -> (f64, f64) {
    let (shift, mass) = sequence.lattice();
    if shift == 0.0 {
        return bounds(question);
    }
    // H(discrete) ≤ e^shift·H(Gaussian) at ε − shift, plus the tails. A lower bound of the
    // Gaussian says nothing about the lattice.
    match question {
        Question::Epsilon { delta } => {
            let delta = (delta - mass) * (-shift).exp();
            let upper = if delta > 0.0 {
                bounds(Question::Epsilon { delta }).1 + shift
            } else {
                f64::INFINITY
            };
            (0.0, upper)
        }
        Question::Delta { epsilon } => {
            let at = (epsilon - shift).max(0.0);
            let upper = bounds(Question::Delta { epsilon: at }).1 * shift.exp() + mass;
            (0.0, upper.min(1.0))
        }
    }
}

fn closed_form(sequence: &Sequence, question: Question) -> Option<Answer> {
    let mu = sequence.gaussian()?;
    let (lower, upper) = on_lattice(sequence, question, |question| match question {
        _ if mu == 0.0 => (0.0, 0.0),
        Question::Epsilon { delta } => gaussian::epsilon(mu, delta),
        Question::Delta { epsilon } => {
            let delta = gaussian::delta(mu, epsilon);
            (delta * (1.0 - 1e-9), delta * (1.0 + 1e-9))
        }
    });
    Some(Answer {
        lower,
        upper,
        ..answer("closed form of the Gaussian", false)
    })
}

/// ρ of an event where it is zCDP.
pub(super) fn rho(event: &Event) -> Option<f64> {
    let gaussian = |sensitivity: f64, sigma: f64| 0.5 * (sensitivity / sigma).powi(2);
    match *event {
        Event::Gaussian { sensitivity, sigma }
        | Event::DiscreteGaussian {
            sensitivity, sigma, ..
        } => Some(gaussian(sensitivity, sigma)),
        // Sampling never costs: D_α is quasi-convex.
        Event::PoissonGaussian { rate: 0.0, .. } => Some(0.0),
        Event::PoissonGaussian {
            sensitivity, sigma, ..
        }
        | Event::FixedBatchGaussian {
            sensitivity, sigma, ..
        } => Some(gaussian(sensitivity, sigma)),
        Event::BoundedRange { eta } => Some(0.125 * eta * eta),
        Event::Pure { epsilon } => Some(0.5 * epsilon * epsilon),
        _ => None,
    }
}

fn zcdp(sequence: &Sequence, question: Question) -> Option<Answer> {
    let mut sum = 0.0;
    for (event, count) in sequence.events() {
        sum += *count as f64 * rho(event)?;
    }
    let sum = sum * (1.0 + 1e-12);
    Some(Answer {
        upper: match question {
            Question::Epsilon { delta } => epsilon_of_rho(sum, delta),
            Question::Delta { epsilon } => delta_of_rho(sum, epsilon),
        },
        ..answer("zCDP", true)
    })
}

/// Best order of the summed Rényi curves.
fn renyi_answer(sequence: &Sequence, question: Question) -> Option<Answer> {
    if sequence
        .events()
        .iter()
        .any(|(e, _)| matches!(e, Event::NotPrivate))
    {
        return None;
    }
    // Multiplicities of DP-Fast MH beyond a cut go to δ: the best cut is tried.
    let cuts: Vec<u32> = if sequence
        .events()
        .iter()
        .any(|(e, _)| matches!(e, Event::FastMhNoisy { .. }))
    {
        (1..=24).collect()
    } else {
        vec![0]
    };
    cuts.into_iter()
        .filter_map(|cut| renyi_at_cut(sequence, question, cut))
        .min_by(|a, b| a.upper.total_cmp(&b.upper))
}

fn renyi_at_cut(sequence: &Sequence, question: Question, cut: u32) -> Option<Answer> {
    let (curve, tail) = curve(sequence, cut);
    let found = |upper: f64, order: f64| Answer {
        upper,
        order: Some(order),
        ..answer("Rényi", false)
    };
    match question {
        Question::Epsilon { delta } => {
            // Half of δ is enough for the tail, which must then prove small enough.
            let share = if tail > 0.0 { 0.999 * delta } else { delta };
            if share <= 0.0 {
                return None;
            }
            let (order, value) = minimum(|m| {
                let alpha = 1.0 + m;
                curve(alpha) - (1.0 / m).ln_1p() - (share.ln() + alpha.ln()) / m
            });
            let upper = value.max(0.0);
            if tail > 0.0 && tail * (1.0 + upper.exp()) > delta - share {
                return None;
            }
            Some(found(upper, order))
        }
        Question::Delta { epsilon } => {
            let (order, value) = minimum(|m| {
                let alpha = 1.0 + m;
                m * (curve(alpha) - epsilon) - m.ln() - alpha * (1.0 / m).ln_1p()
            });
            let upper = value.exp() + tail * (1.0 + epsilon.exp());
            Some(found(upper.min(1.0), order))
        }
    }
}

/// The summed curve, and the mass beyond the cut.
fn curve(sequence: &Sequence, cut: u32) -> (impl Fn(f64) -> f64 + '_, f64) {
    use rayon::prelude::*;
    // Pairs are merged and bucketed; what has none keeps its own curve.
    let pairs = sequence.pairs().unwrap_or_default();
    let rest: Vec<(Event, u64)> = if pairs.is_empty() {
        sequence.events().to_vec()
    } else {
        Vec::new()
    };
    let tail = rest
        .iter()
        .map(|(event, count)| match event {
            Event::FastMhNoisy { mean, .. } => *count as f64 * poisson_tail(*mean, cut),
            _ => 0.0,
        })
        .sum();
    let neighbours = sequence.neighbours();
    let sum = move |alpha: f64| {
        let of_pairs: f64 = pairs
            .par_iter()
            .map(|p| p.upper as f64 * renyi::of_pair(p.pair, alpha))
            .sum();
        let of_rest: f64 = rest
            .iter()
            .map(|(event, count)| *count as f64 * of_event(*event, neighbours, cut, alpha))
            .sum();
        of_pairs + of_rest
    };
    (sum, tail)
}

fn of_event(
    event: Event,
    neighbours: crate::privacy::event::Neighbours,
    cut: u32,
    alpha: f64,
) -> f64 {
    match event {
        Event::Heikkila { batch, rows, form } => renyi::heikkila(batch, rows, form, alpha),
        Event::FastMhNoisy {
            mean,
            sensitivity,
            sigma,
        } => renyi::fast_mh(mean, sigma / sensitivity, cut, alpha),
        Event::NotPrivate => f64::INFINITY,
        // A coarse lattice has no pair, but its zCDP bound.
        Event::DiscreteGaussian { .. } => rho(&event).map_or(f64::INFINITY, |rho| alpha * rho),
        other => Sequence::new(neighbours, vec![(other, 1)])
            .ok()
            .and_then(|s| s.pairs())
            .map_or(f64::INFINITY, |pairs| {
                pairs.iter().map(|p| renyi::of_pair(p.pair, alpha)).sum()
            }),
    }
}

/// `Pr[Poisson(mean) > cut]`, rounded up.
fn poisson_tail(mean: f64, cut: u32) -> f64 {
    let mut term = (-mean).exp();
    for k in 1..=cut + 1 {
        term *= mean / f64::from(k);
    }
    // The terms fall at least by mean/(cut + 2) each.
    term / (1.0 - mean / f64::from(cut + 2)) * (1.0 + 1e-12)
}

/// Golden section over log(α − 1): (order, value). Any order gives a valid bound.
fn minimum(at: impl Fn(f64) -> f64) -> (f64, f64) {
    let f = |x: f64| {
        let value = at(x.exp());
        if value.is_nan() { f64::INFINITY } else { value }
    };
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut low, mut high) = (-5.0, 14.0);
    // Infinite moments give no slope to follow: first find where the curve is finite.
    if f(high).is_infinite() {
        let mut finite = low;
        for _ in 0..14 {
            let middle = 0.5 * (finite + high);
            if f(middle).is_infinite() {
                high = middle;
            } else {
                finite = middle;
            }
        }
        high = finite;
    }
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut fa, mut fb) = (f(a), f(b));
    let (mut best, mut value) = if fa < fb { (a, fa) } else { (b, fb) };
    for _ in 0..24 {
        if fa < fb {
            (high, b, fb) = (b, a, fa);
            a = high - ratio * (high - low);
            fa = f(a);
        } else {
            (low, a, fa) = (a, b, fb);
            b = low + ratio * (high - low);
            fb = f(b);
        }
        for (x, y) in [(a, fa), (b, fb)] {
            if y < value {
                (best, value) = (x, y);
            }
        }
    }
    // Curves known at whole orders have their minimum at one.
    let whole = (1.0 + best.exp()).round() - 1.0;
    if whole >= 1.0 && f(whole.ln()) < value {
        (best, value) = (whole.ln(), f(whole.ln()));
    }
    (1.0 + best.exp(), value)
}

/// Privacy loss distributions, or the exact profile of a single event.
fn losses(sequence: &Sequence, question: Question, tolerance: f64) -> Option<Answer> {
    let pairs = sequence.pairs()?;
    let known = |bounds: (f64, f64)| Answer {
        lower: bounds.0,
        upper: bounds.1,
        ..answer("privacy loss distribution", false)
    };
    if pairs.is_empty() {
        return Some(known((0.0, 0.0)));
    }
    if matches!(question, Question::Epsilon { delta } if delta <= 0.0) {
        return None;
    }
    if sequence.total() == 1.0 {
        let pair = pairs[0].pair;
        let bounds = on_lattice(sequence, question, |question| single(pair, question));
        return Some(Answer {
            method: "exact profile",
            ..known(bounds)
        });
    }
    let tolerance = if pairs.iter().any(|p| p.upper != p.lower) {
        tolerance.max(BUCKETED)
    } else {
        tolerance
    };
    let found = std::cell::Cell::new(None);
    let bounds = on_lattice(sequence, question, |question| {
        let bounds = two_sided(&pairs, question, tolerance);
        found.set(bounds);
        bounds.map_or((0.0, f64::INFINITY), |b| (b.lower, b.upper))
    });
    let pld = found.get()?;
    Some(Answer {
        grid: Some(pld.grid),
        direction: Some(
            match (pairs.iter().all(|p| p.pair.is_symmetric()), pld.reversed) {
                (true, _) => "both (symmetric)",
                (false, false) => "removing a row",
                (false, true) => "adding a row",
            },
        ),
        ..known(bounds)
    })
}

/// Upper bounds from the dominating pairs; lower ones from pairs that are attained.
fn two_sided(pairs: &[Counted], question: Question, tolerance: f64) -> Option<Bounds> {
    let target = match question {
        Question::Epsilon { delta } => Target::Delta(delta),
        Question::Delta { epsilon } => Target::Epsilon(epsilon),
    };
    let bounds = pld::account(pairs, target, tolerance)?;
    let attained: Vec<Counted> = pairs
        .iter()
        .map(|p| Counted {
            pair: p.pair.attained(),
            ..*p
        })
        .collect();
    if attained == pairs {
        return Some(bounds);
    }
    let lower = pld::account(&attained, target, tolerance)?.lower;
    Some(Bounds {
        lower: lower.min(bounds.upper),
        ..bounds
    })
}

/// Exact bounds for one event, rounding apart.
fn single(pair: super::pair::Pair, question: Question) -> (f64, f64) {
    let delta = |epsilon: f64| pair.delta(epsilon).max(pair.delta_reversed(epsilon));
    match question {
        Question::Delta { epsilon } => {
            let value = delta(epsilon);
            let error = 1e-12 * value + 1e-15 * pair.above(epsilon).p;
            ((value - error).max(0.0), value + error)
        }
        Question::Epsilon { delta: wanted } => {
            let error = |epsilon: f64| 1e-15 * pair.above(epsilon).p;
            let solve = |sign: f64| {
                let exceeds = |e: f64| delta(e) + sign * error(e) > wanted;
                if !exceeds(0.0) {
                    return 0.0;
                }
                let (mut low, mut high) = (0.0, 1e-6);
                while exceeds(high) {
                    low = high;
                    high *= 2.0;
                    if high > 1e6 {
                        return f64::INFINITY;
                    }
                }
                for _ in 0..100 {
                    let middle = 0.5 * (low + high);
                    if exceeds(middle) {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                if sign > 0.0 { high } else { low }
            };
            (solve(-1.0), solve(1.0))
        }
    }
}
