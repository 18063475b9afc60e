//! Which accountants apply to a sequence, and the best of their answers.

use serde::Serialize;

use super::conversion::{delta_of_rho, epsilon_of_rho};
use super::gaussian;
use super::gaussian_filter::gaussian_dp;
use super::orders::renyi_answer;
use super::pld::{self, Bounds, Counted};
use super::sequence::Sequence;
use super::tilt::Target;
use crate::privacy::event::Event;

/// Tolerance of the grid where events were bucketed.
const BUCKETED: f64 = 4e-3;

const BASIC: &str = "basic composition";

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
    best_of(
        question,
        [
            basic(sequence, question),
            closed_form(sequence, question),
            zcdp(sequence, question),
            gaussian_dp(sequence, question),
            renyi_answer(sequence, question),
            losses(sequence, question, tolerance),
        ],
    )
}

/// As [`account`] without the privacy loss distributions, which bring nothing to long
/// sequences of bounded-range and Gaussian events: milliseconds, for certificates that are
/// renewed every few seconds.
pub fn account_without_losses(sequence: &Sequence, question: Question) -> Account {
    best_of(
        question,
        [
            basic(sequence, question),
            closed_form(sequence, question),
            zcdp(sequence, question),
            gaussian_dp(sequence, question),
            renyi_answer(sequence, question),
        ],
    )
}

fn best_of<const N: usize>(question: Question, answers: [Option<Answer>; N]) -> Account {
    let mut accountants: Vec<Answer> = answers.into_iter().flatten().collect();
    for answer in &mut accountants {
        // NaN and negative divergences are no bounds; an underflow to 0 is none either.
        if answer.upper.is_nan() {
            answer.upper = f64::INFINITY;
        }
        if matches!(question, Question::Delta { .. }) && answer.method != BASIC {
            answer.upper = answer.upper.max(f64::MIN_POSITIVE);
        }
    }
    let none = Answer {
        lower: 0.0,
        upper: match question {
            Question::Epsilon { .. } => f64::INFINITY,
            Question::Delta { .. } => 1.0,
        },
        ..answer("none", false)
    };
    let lower = accountants.iter().fold(0.0f64, |l, a| l.max(a.lower));
    // An upper bound below another's lower one would be a defect: it is not believed.
    let best = accountants
        .iter()
        .filter(|a| a.upper >= lower * (1.0 - 1e-6))
        .min_by(|a, b| a.upper.total_cmp(&b.upper))
        .unwrap_or(&none)
        .clone();
    Account {
        lower: lower.min(best.upper),
        upper: best.upper,
        method: best.method,
        accountants,
    }
}

pub(super) fn answer(method: &'static str, adaptive: bool) -> Answer {
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
                Event::PoissonGaussian { rate: 0.0, .. } => 0.0,
                event => event.eta()?,
            };
    }
    let sum = sum * (1.0 + 1e-12);
    Some(Answer {
        upper: match question {
            Question::Epsilon { .. } => sum,
            Question::Delta { epsilon } => f64::from(epsilon < sum),
        },
        ..answer(BASIC, true)
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
        _ if mu.1 == 0.0 => (0.0, 0.0),
        Question::Epsilon { delta } => gaussian::epsilon(mu, delta),
        Question::Delta { epsilon } => (
            gaussian::delta(mu.0, epsilon).0,
            gaussian::delta(mu.1, epsilon).1,
        ),
    });
    Some(Answer {
        lower,
        upper,
        ..answer("closed form of the Gaussian", false)
    })
}

fn zcdp(sequence: &Sequence, question: Question) -> Option<Answer> {
    let mut sum = 0.0;
    for (event, count) in sequence.events() {
        sum += *count as f64 * event.rho()?;
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

/// Privacy loss distributions, or the exact profile of a single event.
fn losses(sequence: &Sequence, question: Question, tolerance: f64) -> Option<Answer> {
    let pairs = sequence.pairs()?;
    // Nothing on a Poisson minibatch is known to attain the pair that dominates it.
    let attained = !sequence.events().iter().any(|(event, _)| {
        matches!(
            event,
            Event::PoissonBarker { .. } | Event::FastMhNoisy { .. }
        )
    });
    let known = |bounds: (f64, f64)| Answer {
        lower: if attained { bounds.0 } else { 0.0 },
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
        let method = match attained {
            true => "exact profile",
            false => "profile of the dominating pair",
        };
        return Some(Answer {
            method,
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

/// Exact bounds for one event.
fn single(pair: super::pair::Pair, question: Question) -> (f64, f64) {
    let delta = |epsilon: f64| {
        let (one, other) = (pair.delta(epsilon), pair.delta_reversed(epsilon));
        (one.0.max(other.0), one.1.max(other.1))
    };
    let solve = |exceeds: &dyn Fn(f64) -> bool| {
        if !exceeds(0.0) {
            return (0.0, 0.0);
        }
        let (mut low, mut high) = (0.0, 1e-6);
        while exceeds(high) {
            low = high;
            high *= 2.0;
            if high > 1e6 {
                return (low, f64::INFINITY);
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
        (low, high)
    };
    match question {
        Question::Delta { epsilon } => delta(epsilon),
        Question::Epsilon { delta: wanted } => (
            solve(&|e| delta(e).0 > wanted).0,
            solve(&|e| delta(e).1 > wanted).1,
        ),
    }
}
