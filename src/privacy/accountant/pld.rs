//! The privacy-loss-distribution accountant: bounds from both sides, grid found from the
//! tolerance asked for.

use super::compose::{Composed, Part, Target, choose_tilt, compose};
use super::grid::Slices;
use super::pair::Pair;

/// Bounds from one or both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub lower: f64,
    pub upper: f64,
    /// Width of the grid, nats.
    pub grid: f64,
    /// Whether (Q, P) gave the larger upper bound.
    pub reversed: bool,
}

/// A repeated event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Repeated {
    /// Dominates it.
    pub upper: Pair,
    /// Attained by some mechanism of its kind.
    pub lower: Pair,
    pub count: u64,
}

/// Refinements of the grid that are tried.
const ROUNDS: usize = 7;

/// Bounds on ε or δ of a fixed sequence, to the relative `tolerance` where that can be
/// had and the dominating pairs are attained. `None` where the losses do not fit a grid.
pub(super) fn account(parts: &[Repeated], target: Target, tolerance: f64) -> Option<Bounds> {
    let side = |of: fn(&Repeated) -> Pair| -> Vec<(Pair, u64)> {
        parts.iter().map(|part| (of(part), part.count)).collect()
    };
    let upper = both_directions(&side(|part| part.upper), target, tolerance)?;
    if parts.iter().all(|part| part.upper == part.lower) {
        return Some(upper);
    }
    let lower = both_directions(&side(|part| part.lower), target, tolerance)?;
    Some(Bounds {
        lower: lower.lower.min(upper.upper),
        ..upper
    })
}

fn both_directions(parts: &[(Pair, u64)], target: Target, tolerance: f64) -> Option<Bounds> {
    let directions: &[bool] = if parts.iter().all(|(pair, _)| pair.is_symmetric()) {
        &[false]
    } else {
        &[false, true]
    };
    let mut best: Option<Bounds> = None;
    for &reversed in directions {
        let one = direction(parts, target, tolerance, reversed)?;
        best = Some(match best {
            None => one,
            Some(other) => Bounds {
                lower: one.lower.max(other.lower),
                upper: one.upper.max(other.upper),
                grid: one.grid.min(other.grid),
                reversed: one.upper > other.upper,
            },
        });
    }
    best
}

fn direction(
    parts: &[(Pair, u64)],
    target: Target,
    tolerance: f64,
    reversed: bool,
) -> Option<Bounds> {
    let total: f64 = parts.iter().map(|(_, n)| *n as f64).sum();
    // Mass left outside the grids: a 1e-7th of δ, or of the smallest δ of interest.
    let delta = match target {
        Target::Delta(delta) => delta,
        Target::Epsilon(_) => 1e-30,
    };
    let mass = (1e-7 * delta / total).max(1e-290);
    // A coarse pass finds the tilt and the spread, and with them the first grid.
    let span = parts
        .iter()
        .map(|(pair, _)| pair.range(mass))
        .fold(0.0f64, |s, (low, high)| s.max(low + high));
    let coarse = at(parts, span / 4096.0, mass, reversed)?;
    let tilt = choose_tilt(&coarse, target);
    let mut h = (12.0 * tolerance * tilt.variance / total)
        .sqrt()
        .clamp(span / 4e6, span / 512.0);
    let mut best: Option<Bounds> = None;
    for round in 0..ROUNDS {
        h = snapped(parts, h);
        let Some((composed, rounding)) = fine(parts, h, mass, reversed, tilt.exponent) else {
            break;
        };
        let (lower, upper) = composed.answer(target, rounding);
        let bounds = best.map_or(
            Bounds {
                lower,
                upper,
                grid: h,
                reversed,
            },
            |b: Bounds| Bounds {
                lower: lower.max(b.lower),
                upper: upper.min(b.upper),
                grid: h,
                reversed,
            },
        );
        best = Some(bounds);
        let (gap, wanted) = (bounds.upper - bounds.lower, tolerance * bounds.upper);
        if gap <= wanted || round + 1 == ROUNDS || composed.points > 1 << 22 {
            break;
        }
        h *= (0.8 * (wanted / gap).sqrt()).clamp(0.1, 0.7);
    }
    best
}

/// A width at most `h` that puts the atoms of the most frequent randomised response on
/// knots.
fn snapped(parts: &[(Pair, u64)], h: f64) -> f64 {
    parts
        .iter()
        .filter_map(|(pair, count)| match *pair {
            Pair::Pure { epsilon } => Some((*count, epsilon)),
            _ => None,
        })
        .max_by_key(|(count, _)| *count)
        .map_or(h, |(_, epsilon)| epsilon / (epsilon / h).ceil().max(8.0))
}

/// Grids of width `h` for all pairs.
fn at(parts: &[(Pair, u64)], h: f64, mass: f64, reversed: bool) -> Option<Vec<Part>> {
    use rayon::prelude::*;
    parts
        .par_iter()
        .map(|&(pair, count)| {
            let slices = Slices::new(pair, h, mass)?;
            let slices = if reversed { slices.reversed() } else { slices };
            Some(Part {
                upper: slices.upper(),
                lower: slices.lower(),
                count,
            })
        })
        .collect()
}

fn fine(
    parts: &[(Pair, u64)],
    h: f64,
    mass: f64,
    reversed: bool,
    tilt: f64,
) -> Option<(Composed, f64)> {
    let grids = at(parts, h, mass, reversed)?;
    // Losses at the edges of slices carry a relative error of a few ulp.
    let rounding = grids
        .iter()
        .map(|g| g.count as f64 * 1e-15 * (1.0 + g.upper.h))
        .sum();
    Some((compose(&grids, tilt)?, rounding))
}
