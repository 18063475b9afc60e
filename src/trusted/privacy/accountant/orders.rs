//! The Rényi accountant: the best order of the summed curves.

use super::renyi;
use super::rules::{Answer, Question, answer};
use super::sequence::Sequence;
use crate::privacy::event::{Event, Neighbours};

/// Best order of the summed Rényi curves.
pub(super) fn renyi_answer(sequence: &Sequence, question: Question) -> Option<Answer> {
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
    // Pairs are merged and bucketed; what has none keeps its own curve, as all do where
    // multiplicities are cut.
    let pairs = match cut == 0 {
        true => sequence.pairs().unwrap_or_default(),
        false => Vec::new(),
    };
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

/// `D_α` of one event under substitution; multiplicities of DP-Fast MH are counted up to
/// `cut`, the rest is `multiplicity_tail`'s.
pub fn divergence(event: Event, cut: u32, alpha: f64) -> f64 {
    of_event(event, Neighbours::Substitution, cut, alpha)
}

/// `Pr[Poisson(mean) > cut]`, rounded up.
pub(in crate::trusted) fn multiplicity_tail(mean: f64, cut: u32) -> f64 {
    poisson_tail(mean, cut)
}

fn of_event(event: Event, neighbours: Neighbours, cut: u32, alpha: f64) -> f64 {
    match event {
        Event::Heikkila { batch, rows, form } => renyi::heikkila(batch, rows, form, alpha),
        Event::FastMhNoisy {
            mean,
            sensitivity,
            sigma,
        } => renyi::fast_mh(mean, sigma / sensitivity, cut, alpha),
        Event::NotPrivate => f64::INFINITY,
        // A coarse lattice has no pair, but its zCDP bound.
        Event::DiscreteGaussian { .. } => event.rho().map_or(f64::INFINITY, |rho| alpha * rho),
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
