//! The pair of a noisy Poisson minibatch, whose changed row is kept s times, s ~ Poisson(m), and
//! weighs ν in units of the noise's standard deviation at most each time:
//! P = Σ_s Pois(m; s) N(sν, 1) and Q = Σ_s Pois(m; s) N(−sν, 1) (`docs/proofs/accounting.md`).

use super::pair::Tail;
use crate::math::normal::above;

/// Terms smaller than e^−this of the largest are left out.
const NEGLIGIBLE: f64 = 45.0;
/// More counts than this have no mass that f64 could hold, for means under 1.
const MOST: u32 = 200;

/// Masses above `loss` ≥ 0, the log of the densities' ratio.
pub(super) fn tail_above(mean: f64, shift: f64, loss: f64) -> Tail {
    let x = point(mean, shift, loss);
    let (mut p, mut q) = ((0.0, 0.0), (0.0, 0.0));
    let mut mass = (-mean).exp();
    for s in 0..MOST {
        let s = f64::from(s);
        for (sum, at) in [(&mut p, x - s * shift), (&mut q, x + s * shift)] {
            let part = mass * above(at);
            sum.0 += part;
            sum.1 += part * (16.0 + 2.0 * s + 2.0 * at.max(0.0).powi(2));
        }
        mass *= mean / (s + 1.0);
        if mass < 1e-18 * p.0 {
            break;
        }
    }
    let error = |sum: (f64, f64)| if sum.0 > 0.0 { sum.1 / sum.0 } else { 0.0 };
    Tail {
        p: p.0,
        q: q.0,
        error: error(p).max(error(q)) * f64::EPSILON,
    }
}

/// `log E e^{sνx − s²ν²/2} + m`, and the mean of s in the law so tilted.
fn log_moment(mean: f64, shift: f64, x: f64) -> (f64, f64) {
    let slope = mean.ln() + shift * x;
    let (mut top, mut sum, mut first, mut factorial) = (0.0f64, 1.0, 0.0, 0.0);
    let mut s = 0.0f64;
    loop {
        s += 1.0;
        factorial += s.ln();
        // Concave in s: below the largest so far it only falls.
        let term = s * (slope - 0.5 * s * shift * shift) - factorial;
        if term > top {
            let down = (top - term).exp();
            (top, sum, first) = (term, sum * down, first * down);
        }
        let part = (term - top).exp();
        sum += part;
        first += s * part;
        if term < top - NEGLIGIBLE {
            return (top + sum.ln(), first / sum);
        }
    }
}

/// Where the loss, which grows with x and is odd, is `loss` ≥ 0.
fn point(mean: f64, shift: f64, loss: f64) -> f64 {
    let at = |x: f64| {
        let (one, other) = (log_moment(mean, shift, x), log_moment(mean, shift, -x));
        (one.0 - other.0 - loss, shift * (one.1 + other.1))
    };
    // So small a step that the number of terms that count grows slowly.
    let step = (0.5 / shift).max(1.0);
    let (mut low, mut high) = (0.0, step);
    while at(high).0 < 0.0 {
        (low, high) = (high, high + step);
    }
    // Newton, kept within the bracket.
    let mut x = 0.5 * (low + high);
    for _ in 0..100 {
        let (value, slope) = at(x);
        match value < 0.0 {
            true => low = x,
            false => high = x,
        }
        let newton = x - value / slope;
        let next = match newton > low && newton < high {
            true => newton,
            false => 0.5 * (low + high),
        };
        if (next - x).abs() <= 2.0 * f64::EPSILON * x {
            return next;
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::super::pair::Pair;
    use super::super::{Question, Sequence, account};
    use super::*;
    use crate::privacy::event::{Event, Neighbours};

    #[test]
    fn the_loss_is_what_the_point_says() {
        for (mean, shift) in [(0.495, 0.125), (1e-3, 3.0), (1e-9, 0.01), (0.5, 20.0)] {
            for loss in [0.0, 1e-6, 0.1, 3.0, 40.0] {
                let x = point(mean, shift, loss);
                let found = log_moment(mean, shift, x).0 - log_moment(mean, shift, -x).0;
                assert!(
                    (found - loss).abs() < 1e-13 * (1.0 + loss),
                    "{mean} {shift}: {found}"
                );
            }
        }
    }

    /// `H_z` of two rows' laws by quadrature: each kept a Poisson number of times of its own mean,
    /// each time with a weight of its own.
    fn shows(rows: [(f64, f64); 2], epsilon: f64) -> f64 {
        let density = |(mean, weight): (f64, f64), x: f64| {
            let mut mass = (-mean).exp();
            (1..40u32).fold(0.0, |sum, s| {
                let part = mass * (-0.5 * (x - f64::from(s - 1) * weight).powi(2)).exp();
                mass *= mean / f64::from(s);
                sum + part
            })
        };
        let h = 0.002;
        let sum: f64 = (-7500..7500)
            .map(|k| h * f64::from(k))
            .map(|x| (density(rows[0], x) - epsilon.exp() * density(rows[1], x)).max(0.0))
            .sum();
        h * sum / (2.0 * std::f64::consts::PI).sqrt()
    }

    /// No two rows show more than the pair, and opposite ones of full mean and weight as much.
    #[test]
    fn no_rows_show_more_than_the_pair() {
        for (mean, shift) in [(0.495, 0.125), (0.2, 1.0), (0.01, 2.0)] {
            let pair = Pair::Kept { mean, shift };
            for epsilon in [0.0, 0.02, 0.3, 2.0] {
                let most = pair.delta(epsilon).1;
                for (m, w) in [
                    (1.0, -1.0),
                    (0.9, -1.0),
                    (1.0, -0.5),
                    (0.3, 0.4),
                    (1.0, 0.0),
                ] {
                    let other = (m * mean, w * shift);
                    for rows in [[(mean, shift), other], [other, (mean, shift)]] {
                        let shown = shows(rows, epsilon);
                        assert!(
                            shown <= most + 1e-5 * most + 1e-12,
                            "{epsilon}: {shown} {most}"
                        );
                        assert!((m, w) != (1.0, -1.0) || shown > most * (1.0 - 1e-4) - 1e-12);
                    }
                }
            }
        }
    }

    /// 16 steps of the audit's case: half of what the coupling's Rényi curve gives, and above the
    /// 1.87 that the noisy sums cost by numerical integration of the case itself.
    #[test]
    fn the_pair_is_much_below_the_coupling() {
        let event = Event::FastMhNoisy {
            mean: 0.495,
            sensitivity: 1.0,
            sigma: 8.0,
        };
        let sequence = Sequence::new(Neighbours::Substitution, vec![(event, 16)]).unwrap();
        let answer = account(&sequence, Question::Epsilon { delta: 1e-5 });
        let of = |method: &str| {
            let mut all = answer.accountants.iter();
            all.find(|a| a.method == method).unwrap().upper
        };
        let (pair, coupling) = (of("privacy loss distribution"), of("Rényi"));
        assert!(pair > 1.87 && pair < 2.1, "{pair}");
        assert!(coupling > 3.3 && answer.upper == pair, "{coupling}");
    }
}
