//! A privacy loss distribution on a grid, twice: one pair that dominates the given pair,
//! and one that it dominates.
//!
//! Upper: *connect the dots* (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022). Each
//! slice of losses between two knots is split onto them so that its mass under P and
//! under Q is kept; the profile becomes its chords in z = e^ε, which lie above it.
//!
//! Lower (new): on each slice the chord is above the profile by at most
//! `g = Δz·a·b/(a+b)`, a and b the masses under Q given to its ends (the height of the
//! chord over the crossing of the end tangents). The profile's values at the knots less
//! the larger g of both neighbours therefore have chords below it; their lower convex
//! hull is the profile of a pair that the given one dominates. Both errors are O(h²).
//! See `docs/proofs/accounting.md`.

use super::pair::{Atom, Pair};

/// Masses under P at the knots `k·h`, k from `first`; the rest, if any, is at +∞.
#[derive(Clone, Debug)]
pub(super) struct Knots {
    pub h: f64,
    pub first: i64,
    pub p: Vec<f64>,
    pub infinite: f64,
}

/// Slices of losses between neighbouring knots.
#[derive(Clone, Debug)]
pub(super) struct Slices {
    h: f64,
    /// Knots at the ends of the slices, ascending; 0 is one of them.
    knots: Vec<i64>,
    slices: Vec<Slice>,
    /// Masses (knot, P, Q) exactly on a knot.
    atoms: Vec<(i64, f64, f64)>,
    /// Mass above the last slice under P, below the first one under Q.
    outside: (f64, f64),
}

/// Masses under P and Q, and the rounding error on the scale of P.
#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    p: f64,
    q: f64,
    slack: f64,
}

/// Most knots of one event.
const MOST_KNOTS: f64 = 3e7;
/// From this knot on slices are wider: their width over the loss stays under its inverse.
/// The error of a slice counts by the square of its width and by its mass, which is small
/// out there.
const UNIFORM: i64 = 4096;

/// Knots 0, 1, … up to the first at or beyond `last`, wider apart from `UNIFORM` on.
fn outwards(last: i64) -> Vec<i64> {
    let mut knots = vec![0];
    let mut at = 0;
    while at < last {
        at += 1i64 << (at / UNIFORM).max(1).ilog2();
        knots.push(at);
    }
    knots
}

impl Slices {
    /// Cuts `pair` into slices of width `h` (wider far out); outside lies at most `mass`
    /// under P and Q. `None` where that takes too many knots.
    pub(super) fn new(pair: Pair, h: f64, mass: f64) -> Option<Self> {
        let (low, high) = pair.range(mass);
        if !(low < 600.0 && high < 600.0 && (low + high) / h < MOST_KNOTS) {
            return None;
        }
        let (down, up) = (
            outwards((low / h).ceil() as i64),
            outwards((high / h).ceil() as i64),
        );
        let mut slices = Vec::with_capacity(down.len() + up.len());
        let mut near = pair.below(0.0);
        for &k in &down[1..] {
            let loss = -(k as f64) * h;
            let far = pair.below(loss);
            slices.push(Slice {
                p: (near.p - far.p).max(0.0),
                q: (near.q - far.q).max(0.0),
                slack: near.error.max(far.error) * (near.p + loss.exp() * near.q),
            });
            near = far;
        }
        let below = near.q;
        slices.reverse();
        let mut near = pair.above(0.0);
        for ends in up.windows(2) {
            let far = pair.above(ends[1] as f64 * h);
            let loss = ends[0] as f64 * h;
            slices.push(Slice {
                p: (near.p - far.p).max(0.0),
                q: (near.q - far.q).max(0.0),
                slack: near.error.max(far.error) * (near.p + loss.exp() * near.q),
            });
            near = far;
        }
        let mut knots: Vec<i64> = down[1..].iter().rev().map(|k| -k).collect();
        knots.extend(up);
        let mut cut = Slices {
            h,
            knots,
            slices,
            atoms: Vec::new(),
            outside: (near.p, below),
        };
        for atom in pair.atoms() {
            cut.place(atom);
        }
        Some(cut)
    }

    fn place(&mut self, atom: Atom) {
        let knot = (atom.loss / self.h).round();
        let near = (knot * self.h - atom.loss).abs() <= 4.0 * f64::EPSILON * atom.loss.abs();
        // The rounding of such a loss is among the losses' rounding errors.
        if near && self.knots.binary_search(&(knot as i64)).is_ok() {
            self.atoms.push((knot as i64, atom.p, atom.q));
            return;
        }
        let at = atom.loss / self.h;
        let k = self.knots.partition_point(|&k| (k as f64) <= at);
        let last = self.slices.len() - 1;
        let slice = &mut self.slices[k.saturating_sub(1).min(last)];
        slice.p += atom.p;
        slice.q += atom.q;
        slice.slack += atom.p * 4.0 * f64::EPSILON;
    }

    /// The pair with P and Q exchanged.
    pub(super) fn reversed(&self) -> Self {
        let slices = self.slices.iter().enumerate().rev().map(|(k, s)| Slice {
            p: s.q,
            q: s.p,
            slack: s.slack * (-self.loss(k)).exp(),
        });
        Slices {
            h: self.h,
            slices: slices.collect(),
            knots: self.knots.iter().rev().map(|k| -k).collect(),
            atoms: self.atoms.iter().map(|&(k, p, q)| (-k, q, p)).collect(),
            outside: (self.outside.1, self.outside.0),
        }
    }

    /// Loss at the lower end of slice k.
    fn loss(&self, k: usize) -> f64 {
        self.knots[k] as f64 * self.h
    }

    /// `(e^w − 1, 1 − e^−w)` of slice k of width w.
    fn widths(&self, k: usize) -> (f64, f64) {
        let w = (self.knots[k + 1] - self.knots[k]) as f64 * self.h;
        (w.exp_m1(), -(-w).exp_m1())
    }

    /// Mass under P that slice k gives to its upper end: `(P − z_k Q)/(1 − e^−w)`, and the
    /// error of that.
    fn split(&self, k: usize) -> (f64, f64) {
        let s = &self.slices[k];
        let down = self.widths(k).1;
        let loss = self.loss(k);
        let b = (s.p - loss.exp() * s.q) / down;
        let error = (s.slack + s.p * (8.0 + loss.abs()) * f64::EPSILON) / down;
        (b, error)
    }

    /// Masses at the slices' ends as masses at all knots in between too.
    fn dense(&self, p: &[f64], from: usize, infinite: f64) -> Knots {
        let knots = &self.knots[from..from + p.len()];
        let first = knots[0];
        let mut all = vec![0.0; (knots[p.len() - 1] - first) as usize + 1];
        for (k, mass) in knots.iter().zip(p) {
            all[(k - first) as usize] = *mass;
        }
        Knots {
            h: self.h,
            first,
            p: all,
            infinite,
        }
    }

    /// Adds the atoms on knots.
    fn add_atoms(&self, p: &mut [f64]) {
        for (knot, mass, _) in &self.atoms {
            if let Ok(k) = self.knots.binary_search(knot) {
                p[k] += mass;
            }
        }
    }

    /// A pair on the grid that dominates this one.
    pub(super) fn upper(&self) -> Knots {
        let mut p = vec![0.0; self.knots.len()];
        for (k, s) in self.slices.iter().enumerate() {
            let (b, error) = self.split(k);
            // Mass moved up under a fixed P only raises the profile.
            let up = (b + error).clamp(0.0, s.p);
            p[k] += s.p - up + s.slack;
            p[k + 1] += up;
        }
        self.add_atoms(&mut p);
        // What lies below the first knot is moved up to it.
        p[0] += self.outside.1 * self.loss(0).exp();
        self.dense(&p, 0, self.outside.0)
    }

    /// The chords' masses at the knots, and how far the profile is lowered at each.
    fn chords(&self) -> (Vec<f64>, Vec<f64>) {
        let n = self.knots.len();
        let (mut p, mut gap) = (vec![0.0; n], vec![0.0f64; n]);
        for (k, s) in self.slices.iter().enumerate() {
            let (up, down) = self.widths(k);
            let (b, error) = self.split(k);
            let b = b.clamp(0.0, s.p);
            let a = s.p - b;
            p[k] += a;
            p[k + 1] += b;
            let low = b * (1.0 - down);
            let height = if a + low > 0.0 {
                up * a * low / (a + low)
            } else {
                0.0
            };
            let g = height * (1.0 + 1e-9) + up * (error + s.slack);
            gap[k] = gap[k].max(g);
            gap[k + 1] = gap[k + 1].max(g);
        }
        self.add_atoms(&mut p);
        (p, gap)
    }

    /// A pair on the grid that this one dominates: where the grid is too coarse, that of two equal
    /// laws, which every pair dominates.
    pub(super) fn lower(&self) -> Knots {
        let n = self.knots.len();
        let (p, gap) = self.chords();
        let zero = self.knots.partition_point(|&k| k < 0);
        // Profile at the knots, from above (D) and, less its line at −∞, from below (E):
        // sums of positive terms.
        let mut excess = vec![0.0; (zero + 5).min(n)];
        let mut sum = 0.0;
        for k in 1..excess.len() {
            let up = self.widths(k - 1).0;
            sum += p[k - 1];
            excess[k] = excess[k - 1] + up * sum;
            sum *= 1.0 + up;
        }
        let mut profile = vec![0.0; n];
        let mut sum = 0.0;
        for k in (zero.saturating_sub(4)..n - 1).rev() {
            let (up, down) = self.widths(k);
            sum = (sum + p[k + 1]) * (1.0 - down);
            profile[k] = profile[k + 1] + up * sum;
        }
        let bottom = (0..=zero).rev().find(|&k| excess[k] <= gap[k]);
        let top = (zero..n).find(|&k| profile[k] <= gap[k]);
        let equal = self.dense(&[1.0], zero, 0.0);
        let (Some(bottom), Some(top)) = (bottom, top) else {
            return equal;
        };
        // The lowered profile touches its two asymptotes at the knots a and b. Where a value
        // was raised to the asymptote, the next one inwards is lowered to it too: the chord
        // between them must not rise.
        let a = bottom + usize::from(excess[bottom] < gap[bottom]);
        let b = top.saturating_sub(usize::from(profile[top] < gap[top]));
        if b < a + 4 || a + 2 >= excess.len() {
            return equal;
        }
        let mut low = vec![0.0; n];
        for k in a + 2..b - 1 {
            let (up, down) = (self.widths(k).0, self.widths(k - 1).1);
            low[k] = p[k] - (gap[k + 1] - gap[k]) / up + (gap[k] - gap[k - 1]) / down;
        }
        let e = |k: usize| excess[k] - gap[k];
        let (up, down) = self.widths(a);
        low[a] = e(a + 1) / up;
        low[a + 1] = (e(a + 2) - e(a + 1)) / self.widths(a + 1).0 - e(a + 1) / down;
        let d = |k: usize| profile[k] - gap[k];
        let (up, down) = self.widths(b - 1);
        low[b] = d(b - 1) / down;
        low[b - 1] = (d(b - 2) - d(b - 1)) / self.widths(b - 2).1 - d(b - 1) / up;
        match hull(&low[a..=b], &self.knots[a..=b], self.h) {
            Some(p) => self.dense(&p, a, 0.0),
            None => equal,
        }
    }
}

/// Lower convex hull of a profile given by its kinks (masses under P at ascending knots,
/// some negative): a negative kink is spread onto its neighbours, masses under P and Q
/// kept, which replaces the profile there by the chord under it.
fn hull(kinks: &[f64], knots: &[i64], h: f64) -> Option<Vec<f64>> {
    let width = |from: usize, to: usize| -(-((knots[to] - knots[from]) as f64) * h).exp_m1();
    let mut kept: Vec<(usize, f64)> = Vec::with_capacity(kinks.len());
    let mut carry = 0.0;
    let last = kinks.len() - 1;
    for (k, &kink) in kinks.iter().enumerate() {
        let mut gone = (k, kink + carry);
        carry = 0.0;
        if gone.1 >= 0.0 {
            kept.push(gone);
            continue;
        }
        // Spread over the last kept knot and the next one; that may turn the former
        // negative too.
        while let Some(left) = kept.last_mut().filter(|_| k < last) {
            let onward = gone.1 * width(left.0, gone.0) / width(left.0, k + 1);
            carry += onward;
            left.1 += gone.1 - onward;
            if left.1 >= 0.0 {
                gone.1 = 0.0;
                break;
            }
            gone = *left;
            kept.pop();
        }
        // Nothing to spread over: only rounding may be left.
        if gone.1 < -1e-13 {
            return None;
        }
    }
    let mut p = vec![0.0; kinks.len()];
    for (k, mass) in kept {
        p[k] = mass;
    }
    Some(p)
}
