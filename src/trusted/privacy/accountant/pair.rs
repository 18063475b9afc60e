//! Dominating pairs (P, Q): for every event with a known privacy profile, the two laws
//! whose privacy loss `L = log dP/dQ` bounds the event's for every ε at once.
//!
//! A pair dominates a mechanism when `H_z(M(D) ‖ M(D')) ≤ H_z(P ‖ Q)` for all neighbours
//! and all z ≥ 0, `H_z(P ‖ Q) = E_P[(1 − z e^−L)₊]`. Products of dominating pairs
//! dominate the (adaptive) composition of mechanisms that were fixed in advance
//! (Zhu, Dong & Wang 2022, Theorem 10). The proofs for each pair are in
//! `docs/proofs/accounting.md`.

use super::kept;
use crate::math::normal::{above, below};

/// A dominating pair; scales in units of the noise's standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pair {
    /// P = (1−q)N(0,1) + qN(μ,1), Q = N(0,1): Poisson-subsampled Gaussian under
    /// add/remove; q = 1 is the Gaussian.
    Mixture {
        /// Sampling rate q.
        rate: f64,
        /// Sensitivity over σ.
        shift: f64,
    },
    /// P = (1−q)N(0,1) + qN(ν,1), Q = (1−q)N(0,1) + qN(−ν,1): Poisson-subsampled Gaussian
    /// under substitution.
    TwoSided {
        /// Sampling rate q.
        rate: f64,
        /// Half the sensitivity over σ.
        shift: f64,
    },
    /// Profile `γ H_{1+(z−1)/γ}(N(μ,1) ‖ N(0,1))` for z ≥ 1 and its mirror image: batches of
    /// fixed size without replacement under substitution.
    FixedBatch {
        /// Batch over rows γ.
        rate: f64,
        /// Sensitivity over σ.
        shift: f64,
    },
    /// Loss of density ∝ e^{±ℓ/2} on [−η, η] under P and Q: the pointwise supremum of the
    /// profiles of all η-bounded-range bits.
    BoundedRange {
        /// η, nats.
        eta: f64,
        /// What ρ is known to be, over η²/8: in (0, 1]. It bounds Rényi divergences alone.
        share: f64,
    },
    /// Randomised response.
    Pure {
        /// ε, nats.
        epsilon: f64,
    },
    /// P = Σ_s Pois(m; s) N(sν, 1), Q = Σ_s Pois(m; s) N(−sν, 1): noisy Poisson minibatches.
    Kept {
        /// Mean m of the number of times that a row is kept.
        mean: f64,
        /// Largest weight ν of one of them.
        shift: f64,
    },
}

/// Masses beyond a value of the loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tail {
    pub p: f64,
    pub q: f64,
    /// Relative rounding error of both.
    pub error: f64,
}

/// Mass at one value of the loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Atom {
    pub loss: f64,
    pub p: f64,
    pub q: f64,
}

/// A pair's parameters: what is known of it grows in rate and scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    /// Which pair.
    pub kind: u8,
    /// Sampling rate.
    pub rate: f64,
    /// How far the two are apart.
    pub scale: f64,
}

impl Pair {
    /// Whether (Q, P) has the same profile as (P, Q).
    pub(super) fn is_symmetric(self) -> bool {
        !matches!(self, Pair::Mixture { rate, .. } if rate < 1.0)
    }

    /// Rounding error of a loss, nats, for losses that matter.
    pub(super) fn loss_error(self) -> f64 {
        match self {
            Pair::Kept { .. } => 1e-13,
            _ => 1e-15,
        }
    }

    /// What tells it from others.
    pub(super) fn parameters(self) -> Parameters {
        let (kind, rate, scale) = match self {
            Pair::Mixture { rate, shift } => (0, rate, shift),
            Pair::TwoSided { rate, shift } => (1, rate, shift),
            Pair::FixedBatch { rate, shift } => (2, rate, shift),
            Pair::BoundedRange { eta, share } => (3, share, eta),
            Pair::Pure { epsilon } => (4, 1.0, epsilon),
            Pair::Kept { mean, shift } => (5, mean, shift),
        };
        Parameters { kind, rate, scale }
    }

    /// The pair of the same kind at another rate and scale.
    pub(super) fn at(self, rate: f64, scale: f64) -> Pair {
        let shift = scale;
        match self {
            Pair::Mixture { .. } => Pair::Mixture { rate, shift },
            Pair::TwoSided { .. } => Pair::TwoSided { rate, shift },
            Pair::FixedBatch { .. } => Pair::FixedBatch { rate, shift },
            Pair::BoundedRange { .. } => Pair::BoundedRange {
                eta: scale,
                share: rate,
            },
            Pair::Pure { .. } => Pair::Pure { epsilon: scale },
            Pair::Kept { .. } => Pair::Kept { mean: rate, shift },
        }
    }

    /// A pair that some mechanism of the event's kind attains step after step; for most it
    /// is the dominating pair itself. Batches of fixed size: one row of norm Δ against a zero
    /// row. Bounded range: logits ±η/2, which is randomised response.
    pub(super) fn attained(self) -> Pair {
        match self {
            Pair::FixedBatch { rate, shift } => Pair::Mixture { rate, shift },
            Pair::BoundedRange { eta, share: 1.0 } => Pair::Pure { epsilon: 0.5 * eta },
            other => other,
        }
    }

    /// Continuous mass with loss above `loss ≥ 0`.
    pub(super) fn above(self, loss: f64) -> Tail {
        match self {
            Pair::Mixture { rate, shift } | Pair::FixedBatch { rate, shift } => {
                let x = mixture_point(rate, shift, loss);
                let (zero, one) = (above(x), above(x - shift));
                Tail {
                    p: (1.0 - rate) * zero + rate * one,
                    q: zero,
                    error: rounding(x, shift),
                }
            }
            Pair::TwoSided { rate, shift } => {
                let x = two_sided_point(rate, shift, loss);
                let zero = above(x);
                Tail {
                    p: (1.0 - rate) * zero + rate * above(x - shift),
                    q: (1.0 - rate) * zero + rate * above(x + shift),
                    error: rounding(x, shift),
                }
            }
            Pair::BoundedRange { eta, .. } => {
                let up = (0.5 * (eta - loss)).max(0.0).exp_m1() / (2.0 * (0.5 * eta).sinh());
                Tail {
                    p: (0.5 * loss).exp() * up,
                    q: (-0.5 * eta).exp() * up,
                    error: 8.0 * f64::EPSILON,
                }
            }
            Pair::Pure { .. } => Tail::default(),
            Pair::Kept { mean, shift } => kept::tail_above(mean, shift, loss),
        }
    }

    /// Continuous mass with loss below `loss ≤ 0`.
    pub(super) fn below(self, loss: f64) -> Tail {
        match self {
            Pair::Mixture { rate, shift } if rate < 1.0 => {
                let x = mixture_point(rate, shift, loss);
                let (zero, one) = (below(x), below(x - shift));
                Tail {
                    p: (1.0 - rate) * zero + rate * one,
                    q: zero,
                    error: rounding(x, shift),
                }
            }
            _ => {
                let mirror = self.above(-loss);
                Tail {
                    p: mirror.q,
                    q: mirror.p,
                    error: mirror.error,
                }
            }
        }
    }

    /// Atoms of the loss.
    pub(super) fn atoms(self) -> Vec<Atom> {
        match self {
            Pair::FixedBatch { rate, shift } => {
                // What neither tail holds: (1−γ)·TV(N(μ,1), N(0,1)).
                let mass = (1.0 - rate) * libm::erf(shift / 8f64.sqrt());
                vec![Atom {
                    loss: 0.0,
                    p: mass,
                    q: mass,
                }]
            }
            Pair::Pure { epsilon } => {
                let (high, low) = (1.0 / (1.0 + (-epsilon).exp()), 1.0 / (1.0 + epsilon.exp()));
                vec![
                    Atom {
                        loss: epsilon,
                        p: high,
                        q: low,
                    },
                    Atom {
                        loss: -epsilon,
                        p: low,
                        q: high,
                    },
                ]
            }
            _ => Vec::new(),
        }
    }

    /// Bounds on `H_{e^ε}(P ‖ Q)` for ε ≥ 0: the exact profile of a single event, and its
    /// rounding.
    pub(super) fn delta(self, epsilon: f64) -> (f64, f64) {
        let mut bounds = match self {
            Pair::Mixture { rate: 1.0, shift } => super::gaussian::delta(shift, epsilon),
            _ => {
                let tail = self.above(epsilon);
                difference(tail.p, tail.q, tail.error, epsilon)
            }
        };
        for atom in self.atoms().iter().filter(|a| a.loss > epsilon) {
            let mass = -atom.p * (epsilon - atom.loss).exp_m1();
            bounds.0 += mass * (1.0 - 1e-14);
            bounds.1 += mass * (1.0 + 1e-14) + atom.p * 1e-15;
        }
        bounds
    }

    /// Bounds on `H_{e^ε}(Q ‖ P)` for ε ≥ 0.
    pub(super) fn delta_reversed(self, epsilon: f64) -> (f64, f64) {
        if self.is_symmetric() {
            return self.delta(epsilon);
        }
        let tail = self.below(-epsilon);
        difference(tail.q, tail.p, tail.error, epsilon)
    }

    /// Losses outside `(−lo, hi)` hold at most `mass` under either law.
    pub(super) fn range(self, mass: f64) -> (f64, f64) {
        let far = |outside: &dyn Fn(f64) -> f64| {
            let mut high = 1e-9;
            while outside(high) > mass && high < 1e4 {
                high *= 2.0;
            }
            let mut low = 0.0;
            for _ in 0..30 {
                let middle = 0.5 * (low + high);
                if outside(middle) > mass {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            high
        };
        let atom = self.atoms().iter().fold(0.0f64, |a, b| a.max(b.loss));
        let high = far(&|x| self.above(x).p).max(atom);
        let low = far(&|x| self.below(-x).q).max(atom);
        (low, high)
    }
}

/// Where the loss of the mixture pair is `loss`: it grows with x.
fn mixture_point(rate: f64, shift: f64, loss: f64) -> f64 {
    if rate >= 1.0 {
        return loss / shift + 0.5 * shift;
    }
    let ratio = 1.0 + loss.exp_m1() / rate;
    if ratio <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let log = if loss > 600.0 {
        loss - rate.ln()
    } else {
        ratio.ln()
    };
    log / shift + 0.5 * shift
}

/// Where the loss of the two-sided pair is `loss ≥ 0`: positive root of
/// `q c t² − (1−q)(e^ℓ − 1) t − q c e^ℓ = 0`, `t = e^{νx}`, `c = e^{−ν²/2}`. With
/// `s = t e^{−ℓ/2}`, log s = asinh((1−q) sinh(ℓ/2)/(q c)), in logs where that overflows.
fn two_sided_point(rate: f64, shift: f64, loss: f64) -> f64 {
    let half = 0.5 * loss;
    let log_c = rate.ln() - 0.5 * shift * shift;
    let log_sinh = if half > 20.0 {
        half - std::f64::consts::LN_2
    } else {
        half.sinh().ln()
    };
    let log_ratio = (1.0 - rate).ln() + log_sinh - log_c;
    let log_s = if log_ratio > 300.0 {
        std::f64::consts::LN_2 + log_ratio
    } else {
        log_ratio.exp().asinh()
    };
    (log_s + half) / shift
}

/// Bounds on `p − e^ε q` from tails of the given relative error. Where q underflows it
/// says nothing.
fn difference(p: f64, q: f64, error: f64, epsilon: f64) -> (f64, f64) {
    if q < 1e-290 {
        return (0.0, p * (1.0 + error));
    }
    let other = (epsilon + q.ln()).exp();
    let error = (error + (4.0 + epsilon) * 4.0 * f64::EPSILON) * (p + other);
    ((p - other - error).max(0.0), (p - other).max(0.0) + error)
}

/// Rounding of x enters the tail's relative error as x·|dx|, and dx is a few ulp of x + μ.
fn rounding(x: f64, shift: f64) -> f64 {
    if x.is_finite() {
        (16.0 + 2.0 * x * x + shift * shift) * f64::EPSILON
    } else {
        0.0
    }
}
