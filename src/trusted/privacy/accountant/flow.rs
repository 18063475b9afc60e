//! Price of a Barker decision on a Poisson minibatch. Substituting a row drives the logit of the
//! acceptance probability along a flow `dl/dt = c g(σ(l))`, from one data set's value to the
//! other's within time 1; proofs are in `docs/proofs/guarantee.md`, "Poisson minibatch with Barker
//! acceptance". Here `K = Λ/λ`, `c` is the clip of the widest row in nats, and all results are
//! rounded up.

use std::cell::RefCell;
use std::collections::HashMap;

/// Largest K that is priced.
pub(in crate::trusted::privacy) const MOST_RATIO: f64 = 1e9;

/// Logits beyond this are bounded together.
const END: f64 = 64.0;
/// How far the supremum may be overestimated, relatively.
const SLACK: f64 = 1.0 / 4096.0;
/// Covers the f64 arithmetic of one evaluation, relatively.
const ROUNDING: f64 = 1e-12;

/// `g` at acceptance probability `p = 1 − q`, over all pairs of rows. Convex in p, and growing in
/// p and K where p ≥ 1/2.
pub(in crate::trusted::privacy) fn speed(ratio: f64, q: f64) -> f64 {
    let p = 1.0 - q;
    // Of the row that favours the move: of ratio c, or of a smaller one if that is worse.
    let favours = match ratio * ratio * p <= 2.0 {
        true => 1.0 / (1.0 + ratio * p),
        false => (1.0 + 2.0 / ratio) / (1.0 + (2.0 * p).sqrt()).powi(2),
    };
    favours + (1.0 + ratio) / (1.0 + ratio * q)
}

/// The same over pairs of a row and a blank one, whose ratio is 0. Convex in p, and growing in p
/// and K: a row that favours the move alone adds at most 1, which one against it exceeds.
fn speed_of_one(ratio: f64, q: f64) -> f64 {
    (1.0 + ratio) / (1.0 + ratio * q)
}

/// `sup_y [log(1 − p + p e^y) − p y]/y²` at `p = σ(l)`, l ≥ 0: the least variance proxy, halved,
/// of a bit (Kearns & Saul 1998). It falls in l.
fn proxy(l: f64) -> f64 {
    match l > 1e-4 {
        true => (0.5 * l).tanh() / (4.0 * l),
        false => 0.125,
    }
}

/// Upper bound of ρ₀(K) = sup over p of g² times the proxy, within [`SLACK`] of it: a decision is
/// c²ρ₀-zCDP. Infinite beyond [`MOST_RATIO`]. Only p ≥ 1/2 counts, where on a cell of logits g is
/// largest at its upper end and the proxy at its lower one; cells are halved until that is close
/// to a value that is reached.
pub(in crate::trusted::privacy) fn rho(ratio: f64) -> f64 {
    known(ratio, false)
}

/// The same where neighbours are by zero-out.
pub(in crate::trusted::privacy) fn rho_of_one(ratio: f64) -> f64 {
    known(ratio, true)
}

/// A supremum, of pairs with a blank row or of all. It takes several hundred evaluations, and every
/// decision is priced; ratios of events lie on a grid, so a run asks for the same few.
fn known(ratio: f64, of_one: bool) -> f64 {
    /// Beyond so many all are forgotten.
    const MOST: usize = 1 << 12;
    thread_local! {
        static KNOWN: RefCell<HashMap<(u64, bool), f64>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= MOST {
            known.clear();
        }
        let speed = if of_one { speed_of_one } else { speed };
        let compute = || supremum(ratio, speed);
        *known
            .entry((ratio.to_bits(), of_one))
            .or_insert_with(compute)
    })
}

fn supremum(ratio: f64, speed: fn(f64, f64) -> f64) -> f64 {
    if !(ratio > 0.0 && ratio <= MOST_RATIO) {
        return f64::INFINITY;
    }
    let bound = |low: f64, high: f64| speed(ratio, logistic(-high)).powi(2) * proxy(low);
    let mut cells: Vec<(f64, f64)> = (0..END as u32)
        .map(|k| (f64::from(k), f64::from(k + 1)))
        .collect();
    let mut reached = cells.iter().fold(0.0f64, |r, c| r.max(bound(c.0, c.0)));
    let mut least = bound(END, f64::INFINITY);
    while let Some((low, high)) = cells.pop() {
        let most = bound(low, high);
        if most <= reached * (1.0 + SLACK) {
            least = least.max(most);
            continue;
        }
        let middle = 0.5 * (low + high);
        reached = reached.max(bound(middle, middle));
        cells.extend([(low, middle), (middle, high)]);
    }
    least * (1.0 + ROUNDING)
}

/// η/c: the bounded range of a decision over the clip, g at p = 1. At least 2.
pub(in crate::trusted::privacy) fn range(ratio: f64) -> f64 {
    speed(ratio, 0.0) * (1.0 + ROUNDING)
}

/// The same where neighbours are by zero-out. At least 1.
pub(in crate::trusted::privacy) fn range_of_one(ratio: f64) -> f64 {
    speed_of_one(ratio, 0.0) * (1.0 + ROUNDING)
}

fn logistic(l: f64) -> f64 {
    1.0 / (1.0 + (-l).exp())
}
