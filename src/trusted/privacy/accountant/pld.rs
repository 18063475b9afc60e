//! The privacy-loss-distribution accountant: bounds from both sides, grid found from the
//! tolerance asked for.

use rayon::prelude::*;

use super::compose::{Composed, Outcome, compose};
use super::grid::Slices;
use super::pair::Pair;
use super::tilt::{Part, Target, choose_tilt};
use super::window::{Window, locate};

/// A pair and how often it is taken for the upper and for the lower bound. They differ
/// at the edges of buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counted {
    pub pair: Pair,
    pub upper: u64,
    pub lower: u64,
}

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

/// Refinements of the grid that are tried.
const ROUNDS: usize = 7;
/// No refinement beyond this many points.
const FINEST: usize = 1 << 20;

/// Bounds on ε or δ of a fixed sequence, to the relative `tolerance` where that can be
/// had. `None` where the losses do not fit a grid.
pub(super) fn account(parts: &[Counted], target: Target, tolerance: f64) -> Option<Bounds> {
    let symmetric = parts.iter().all(|part| part.pair.is_symmetric());
    let forward = direction(parts, target, tolerance, false, 0.0)?;
    if symmetric {
        return Some(forward);
    }
    // Mostly far below: then a coarse bound will do.
    let backward = direction(parts, target, tolerance, true, forward.upper)?;
    Some(Bounds {
        lower: forward.lower.max(backward.lower),
        upper: forward.upper.max(backward.upper),
        grid: forward.grid.min(backward.grid),
        reversed: backward.upper > forward.upper,
    })
}

fn direction(
    parts: &[Counted],
    target: Target,
    tolerance: f64,
    reversed: bool,
    enough: f64,
) -> Option<Bounds> {
    let total: f64 = parts.iter().map(|part| part.upper as f64).sum();
    // Mass left outside the grids: a 1e-7th of δ, or of the smallest δ of interest.
    let delta = match target {
        Target::Delta(delta) => delta,
        Target::Epsilon(_) => 1e-30,
    };
    let mass = (1e-7 * delta / total).max(1e-290);
    let span = parts
        .par_iter()
        .map(|part| part.pair.range(mass))
        .map(|(low, high)| low + high)
        .reduce(|| 0.0, f64::max);
    // A coarse pass finds the tilt and the spread, and with them the first grid.
    let make = |h: f64| move |i: usize| part(&parts[i], h, mass, reversed);
    let coarse: Vec<Part> = (0..parts.len())
        .into_par_iter()
        .map(make(span / 4096.0))
        .collect::<Option<_>>()?;
    let tilt = choose_tilt(&coarse, target);
    let mut window = locate(&coarse, &tilt);
    drop(coarse);
    // From the growth of the composed variance; coarser where passes are cheap to repeat.
    let bucketed = parts.iter().any(|part| part.upper != part.lower);
    let start = if bucketed { 3.0 } else { 12.0 };
    let mut h = (start * tolerance * tilt.variance / total)
        .sqrt()
        .clamp(span / 1.5e6, span / 512.0);
    // Below this ε or δ nothing is refined.
    let nothing = match target {
        Target::Delta(_) => 1e-9,
        Target::Epsilon(_) => 1e-30,
    };
    let rounding = parts
        .iter()
        .map(|part| part.upper as f64 * part.pair.loss_error())
        .sum();
    let mut best: Option<Bounds> = None;
    let mut last: Option<(f64, f64)> = None;
    for round in 0..ROUNDS {
        h = snapped(parts, h);
        let Some(composed) = located(parts.len(), &make(h), h, &mut window) else {
            break;
        };
        let (lower, upper) = composed.answer(target, rounding);
        let so_far = best.map_or((lower, upper), |b| (lower.max(b.lower), upper.min(b.upper)));
        best = Some(Bounds {
            lower: so_far.0,
            upper: so_far.1,
            grid: h,
            reversed,
        });
        let (gap, wanted) = (upper - lower, tolerance * so_far.1);
        // The grid's share of the gap grows as h²; edges of buckets keep theirs.
        let share = match last {
            Some((wider, before)) if bucketed => {
                let ratio: f64 = wider / h;
                (before - gap).max(0.0) / (ratio * ratio - 1.0)
            }
            _ => gap,
        };
        if share <= wanted
            || so_far.1 <= enough.max(nothing)
            || round + 1 == ROUNDS
            || composed.points > FINEST
        {
            break;
        }
        last = Some((h, gap));
        h *= (0.8 * (wanted / share).sqrt()).clamp(0.1, 0.7);
    }
    best
}

/// Composes, moving the window once or twice where the coarse pass misplaced it.
fn located(
    n: usize,
    part: &(dyn Fn(usize) -> Option<Part> + Sync),
    h: f64,
    window: &mut Window,
) -> Option<Composed> {
    for _ in 0..3 {
        match compose(n, part, h, *window) {
            Outcome::Composed(composed) => return Some(*composed),
            Outcome::Elsewhere(better) => *window = better,
            Outcome::Impossible => return None,
        }
    }
    None
}

/// A width at most `h` that puts the atoms of the most frequent randomised response on
/// knots, unless they lie closer to each other than that.
fn snapped(parts: &[Counted], h: f64) -> f64 {
    parts
        .iter()
        .filter_map(|part| match part.pair {
            Pair::Pure { epsilon } if epsilon >= h => Some((part.upper, epsilon)),
            _ => None,
        })
        .max_by_key(|(count, _)| *count)
        .map_or(h, |(_, epsilon)| epsilon / (epsilon / h).ceil().max(8.0))
}

/// Both grids of one pair.
fn part(counted: &Counted, h: f64, mass: f64, reversed: bool) -> Option<Part> {
    let slices = Slices::new(counted.pair, h, mass)?;
    let slices = if reversed { slices.reversed() } else { slices };
    Some(Part {
        upper: (slices.upper(), counted.upper),
        lower: (slices.lower(), counted.lower),
    })
}
