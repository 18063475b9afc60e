//! Rényi divergences `D_α` of the events, for real α > 1, nats.
//!
//! Dominating pairs give f-divergences `∫ q f(p/q)` with `f(u) = u^α − 1 − α(u−1) ≥ 0`, so
//! that small divergences keep their relative accuracy. Where a curve is known at whole
//! orders only, `(α−1)D_α`, convex in α, is interpolated linearly, which bounds it from
//! above (it is 0 at α = 1).

use super::pair::Pair;
use super::quadrature::integrate;
use crate::math::normal::log_density;
use crate::privacy::event::Form;

/// Above this exponent a moment counts as infinite: no optimum lies there.
const LARGEST_EXPONENT: f64 = 690.0;
/// Relative error granted to the quadratures.
const QUADRATURE: f64 = 1e-10;

/// `u^α − 1 − α(u−1)` from `v = u − 1` and `log u`.
fn convex(alpha: f64, v: f64, log: f64) -> f64 {
    if alpha * v.abs() < 0.02 {
        // Binomial series from the second term.
        let mut term = 0.5 * alpha * (alpha - 1.0) * v * v;
        let mut sum = term;
        for k in 3..10 {
            term *= (alpha - f64::from(k) + 1.0) / f64::from(k) * v;
            sum += term;
        }
        return sum;
    }
    (alpha * log).exp_m1() - alpha * v
}

/// `D_α` of a moment less one, with the quadrature's error.
fn from_moment(excess: f64, alpha: f64) -> f64 {
    (excess * (1.0 + QUADRATURE)).ln_1p() / (alpha - 1.0)
}

/// `D_α(P ‖ Q)`, the larger of both directions.
pub(super) fn of_pair(pair: Pair, alpha: f64) -> f64 {
    match pair {
        Pair::Mixture { rate, shift } if rate >= 1.0 => 0.5 * alpha * shift * shift,
        Pair::Mixture { rate, shift } => mixture(rate, shift, alpha),
        Pair::TwoSided { rate, shift } => two_sided(rate, shift, alpha),
        Pair::FixedBatch { rate, shift } => fixed_batch(rate, shift, alpha),
        Pair::BoundedRange { eta, share } => {
            bounded_range(eta, alpha).min(0.125 * alpha * eta * eta * share)
        }
        Pair::Pure { epsilon } => pure(epsilon, alpha),
        // Poisson counts have heavier tails than noise.
        Pair::Kept { .. } => f64::INFINITY,
    }
}

/// Log of the mixture's likelihood ratio at x, and the ratio less one.
fn log_ratio(rate: f64, shift: f64, x: f64) -> (f64, f64) {
    let u = shift * x - 0.5 * shift * shift;
    if u > 30.0 {
        let log = rate.ln() + u + ((1.0 - rate) / rate * (-u).exp()).ln_1p();
        (log, log.exp_m1())
    } else {
        let v = rate * u.exp_m1();
        (v.ln_1p(), v)
    }
}

/// Whether the moment of order α of a mixture of the given shift is beyond range: the
/// bound `q^α e^{α(α−1)μ²/2}` on one of its terms.
fn too_large(rate: f64, shift: f64, alpha: f64) -> bool {
    alpha * rate.ln() + 0.5 * alpha * (alpha - 1.0) * shift * shift > LARGEST_EXPONENT
        || alpha > 1e7
}

fn panel(shift: f64) -> f64 {
    (1.0 / shift).min(1.0)
}

/// Poisson-subsampled Gaussian, add/remove. (P, Q) is the worse direction (Mironov, Talwar
/// & Zhang 2019, Theorem 5).
fn mixture(rate: f64, shift: f64, alpha: f64) -> f64 {
    if too_large(rate, shift, alpha) {
        return f64::INFINITY;
    }
    let excess = integrate(-14.0, alpha * shift + 14.0, panel(shift), |x| {
        let (log, v) = log_ratio(rate, shift, x);
        density_times(x, convex(alpha, v, log), alpha * log)
    });
    from_moment(excess, alpha)
}

/// `φ(x)·value`, where `value ≤ e^log` may be too large on its own.
fn density_times(x: f64, value: f64, log: f64) -> f64 {
    if value.is_finite() {
        log_density(x).exp() * value
    } else {
        (log_density(x) + log).exp()
    }
}

fn two_sided(rate: f64, shift: f64, alpha: f64) -> f64 {
    if too_large(rate, if rate < 1.0 { shift } else { 2.0 * shift }, alpha) {
        return f64::INFINITY;
    }
    let end = 2.0 * alpha * shift + 14.0;
    let excess = integrate(-14.0 - shift, end, panel(2.0 * shift), |x| {
        let (log_a, a) = log_ratio(rate, shift, x);
        let (log_b, b) = log_ratio(rate, shift, -x);
        let log = log_a - log_b;
        let v = (a - b) / (1.0 + b);
        density_times(x, (1.0 + b) * convex(alpha, v, log), alpha * log + log_b)
    });
    from_moment(excess, alpha)
}

/// The dominating pair's own moment: never above Wang, Balle & Kasiviswanathan 2019.
fn fixed_batch(rate: f64, shift: f64, alpha: f64) -> f64 {
    if too_large(rate, shift, alpha) {
        return f64::INFINITY;
    }
    let start = 0.5 * shift;
    let excess = integrate(start, alpha * shift + 14.0, panel(shift), |x| {
        let (log, v) = log_ratio(rate, shift, x);
        let mirrored = (1.0 + v) * convex(alpha, -v / (1.0 + v), -log);
        density_times(x, convex(alpha, v, log) + mirrored, alpha * log)
    });
    from_moment(excess, alpha)
}

/// Exact maximum over all bits whose logits differ by at most η. With `R = p/q` in
/// [1, e^η], `Σ p^α q^{1−α} = R^{α−1}(a − bR)/(e^η − 1)`, `a = e^η − e^{(1−α)η}`,
/// `b = 1 − e^{(1−α)η}`, largest at `R = (α−1)a/(αb)`. Never above `αη²/8`.
fn bounded_range(eta: f64, alpha: f64) -> f64 {
    let simple = 0.125 * alpha * eta * eta;
    if eta < 1e-3 || alpha < 1.0 + 1e-3 {
        return simple.min(eta);
    }
    // a/b = (e^{αη} − 1)/(e^{(α−1)η} − 1).
    let below = ((1.0 - alpha) * eta).exp();
    let log_ab = eta + ((-alpha * eta).exp_m1() / ((1.0 - alpha) * eta).exp_m1()).ln();
    let log_r = ((alpha - 1.0) / alpha).ln() + log_ab;
    let log_a = eta + (-(below * (-eta).exp())).ln_1p();
    let log_moment = (alpha - 1.0) * log_r + log_a - alpha.ln() - (eta + (-(-eta).exp_m1()).ln());
    let exact = (log_moment + 1e-14 * alpha.max(2.0)) / (alpha - 1.0);
    exact.min(simple).min(eta)
}

/// Randomised response, the worst ε-DP mechanism (Kairouz, Oh & Viswanath 2015).
fn pure(epsilon: f64, alpha: f64) -> f64 {
    // Relative to p = e^ε/(1+e^ε): p e^{(α−1)ε} + q e^{−(α−1)ε}.
    let m = (alpha - 1.0) * epsilon;
    let log_p = -(-epsilon).exp().ln_1p();
    let moment = m + log_p + (-2.0 * m - epsilon).exp().ln_1p();
    ((moment / (alpha - 1.0)) * (1.0 + 1e-14) + 1e-15).min(epsilon)
}

/// The noisy minibatch branch of DP-Fast MH (docs/proofs/guarantee.md): the changed row
/// appears s and s′ times, both Poisson(`mean`), coupled antimonotonically, each time with a
/// weight of at most W; multiplicities above `most` are left to δ. `multiplier` = σ/W.
pub(super) fn fast_mh(mean: f64, multiplier: f64, most: u32, alpha: f64) -> f64 {
    let scale = 0.5 * alpha * (alpha - 1.0) / (multiplier * multiplier);
    // mean ≤ 1/2 leaves more than half of the mass at 0, so that antimonotonically at most
    // one of s, s′ is not 0. What lies above the cut counts at the cut.
    let mut mass = (-mean).exp();
    let mut excess = 0.0;
    for s in 1..=most {
        mass *= mean / f64::from(s);
        let here = if s == most {
            mass / (1.0 - mean / f64::from(s + 1))
        } else {
            mass
        };
        excess += 2.0 * here * (scale * f64::from(s * s)).exp_m1();
    }
    (excess * (1.0 + 1e-12)).ln_1p() / (alpha - 1.0)
}

/// Heikkilä 2019's subsampled test on b of N rows, with the amplification of Wang, Balle &
/// Kasiviswanathan 2019, Theorem 9; their bound exceeds the unamplified one where batches are
/// large, and `tightened` takes the smaller.
pub(super) fn heikkila(batch: u64, rows: u64, form: Form, alpha: f64) -> f64 {
    let (b, rate) = (batch as f64, batch as f64 / rows as f64);
    match form {
        Form::Published => without_replacement(rate, alpha, |order| heikkila_published(b, order)),
        // Which rows are drawn has one law on both data sets, and divergences are quasi-convex.
        Form::Tightened => without_replacement(rate, alpha, |order| heikkila_tightened(b, order))
            .min(heikkila_tightened(b, alpha)),
    }
}

/// Their eq. (21): `5/(2b) + log(2b/(b−5α))/(2(α−1)) + 2α/(b−5α)`, α < b/5.
fn heikkila_published(b: f64, alpha: f64) -> f64 {
    if 5.0 * alpha >= b {
        return f64::INFINITY;
    }
    let left = b - 5.0 * alpha;
    2.5 / b + (2.0 * b / left).ln() / (2.0 * (alpha - 1.0)) + 2.0 * alpha / left
}

/// The supremum over `r = σ₁²/σ₂²` that both variances can reach together: largest at an
/// end of [1/(1+5/b), 1+5/b] (`docs/proofs/accounting.md`).
fn heikkila_tightened(b: f64, alpha: f64) -> f64 {
    if 5.0 * alpha >= b {
        return f64::INFINITY;
    }
    let variances =
        |r: f64| -0.5 * r.ln() - (alpha - (alpha - 1.0) * r).ln() / (2.0 * (alpha - 1.0));
    let r = 1.0 + 5.0 / b;
    let above = variances(r) + 2.0 * alpha / (b * (alpha - (alpha - 1.0) * r));
    let below = variances(1.0 / r) + 2.0 * alpha / b;
    above.max(below) + 1e-15
}

/// Amplification by sampling without replacement at rate q of a mechanism of curve
/// `base` (whole orders), interpolated to real α.
pub(super) fn without_replacement(q: f64, alpha: f64, base: impl Fn(f64) -> f64) -> f64 {
    if alpha > 2e4 {
        return f64::INFINITY;
    }
    let scaled = |order: f64| -> f64 {
        if order <= 1.0 {
            return 0.0;
        }
        let second = base(2.0);
        let pairs = 0.5 * order * (order - 1.0);
        let mut sum = q * q * pairs * (4.0 * second.exp_m1()).min(2.0 * second.exp());
        let mut log_choose = pairs.ln();
        let mut j = 3.0;
        while j <= order {
            log_choose += ((order - j + 1.0) / j).ln();
            sum += (std::f64::consts::LN_2 + j * q.ln() + log_choose + (j - 1.0) * base(j)).exp();
            j += 1.0;
        }
        (sum * (1.0 + 1e-11)).ln_1p()
    };
    let (floor, ceil) = (alpha.floor(), alpha.ceil());
    let (low, high) = (scaled(floor), scaled(ceil));
    let share = alpha - floor;
    let between = if share > 0.0 {
        low + share * (high - low)
    } else {
        low
    };
    between / (alpha - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mironov, Talwar & Zhang 2019, eq. for whole orders.
    fn binomial(q: f64, mu: f64, alpha: u32) -> f64 {
        let mut log_choose = 0.0f64;
        let mut sum = 0.0;
        for k in 0..=alpha {
            let (kf, a) = (f64::from(k), f64::from(alpha));
            sum += (log_choose
                + kf * q.ln()
                + (a - kf) * (-q).ln_1p()
                + 0.5 * kf * (kf - 1.0) * mu * mu)
                .exp();
            log_choose += ((a - kf) / (kf + 1.0)).ln();
        }
        sum.ln() / f64::from(alpha - 1)
    }

    #[test]
    fn the_mixture_matches_the_binomial_sum() {
        for (q, sigma) in [(0.01, 1.0), (0.1, 0.6), (0.3, 4.0), (1e-4, 0.5)] {
            for alpha in [2u32, 3, 8, 30] {
                let exact = binomial(q, 1.0 / sigma, alpha);
                let ours = mixture(q, 1.0 / sigma, f64::from(alpha));
                if ours.is_finite() {
                    assert!(
                        (ours / exact - 1.0).abs() < 1e-6,
                        "{q} {sigma} {alpha}: {ours} {exact}"
                    );
                    assert!(ours >= exact * (1.0 - 1e-7));
                }
            }
        }
    }

    #[test]
    fn full_rate_is_no_subsampling() {
        for alpha in [1.1, 2.5, 20.0] {
            let gauss = 0.5 * alpha * 0.64;
            for other in [two_sided(1.0, 0.4, alpha), fixed_batch(1.0, 0.8, alpha)] {
                assert!(
                    (other / gauss - 1.0).abs() < 1e-7,
                    "{alpha}: {other} {gauss}"
                );
            }
        }
    }

    #[test]
    fn bounded_range_is_the_maximum_over_bits() {
        let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
        for eta in [0.05, 0.5, 2.0] {
            for alpha in [1.5f64, 2.0, 10.0, 100.0] {
                let brute = (-20_000..20_000)
                    .map(|k| f64::from(k) * 1e-3)
                    .map(|z| {
                        let (p, q) = (sigma(z), sigma(z - eta));
                        let (np, nq) = (sigma(-z), sigma(eta - z));
                        let term = |p: f64, q: f64| (alpha * p.ln() + (1.0 - alpha) * q.ln()).exp();
                        (term(p, q) + term(np, nq)).ln() / (alpha - 1.0)
                    })
                    .fold(0.0, f64::max);
                let closed = bounded_range(eta, alpha);
                assert!(
                    (closed / brute - 1.0).abs() < 1e-5,
                    "{eta} {alpha}: {closed} {brute}"
                );
                assert!(closed >= brute - 1e-13 && closed <= alpha * eta * eta / 8.0 * 1.000_001);
            }
        }
    }

    /// Our curve for fixed batches is never above the published amplification.
    #[test]
    fn fixed_batches_beat_the_published_amplification() {
        for (q, sigma) in [(0.001, 1.0), (0.01, 1.0), (0.01, 5.0), (0.2, 2.0)] {
            for alpha in [2.0, 3.0, 5.5, 16.0] {
                let mu = 1.0 / sigma;
                let published = without_replacement(q, alpha, |a| 0.5 * a * mu * mu);
                let ours = fixed_batch(q, mu, alpha);
                assert!(ours <= published, "{q} {sigma} {alpha}: {ours} {published}");
            }
        }
    }

    /// A batch of all rows, or of most, costs the test itself; of few, what amplification says.
    #[test]
    fn no_batch_costs_more_than_the_test_on_it() {
        for alpha in [1.5, 2.0, 7.0, 60.0] {
            let test = heikkila_tightened(1000.0, alpha);
            let curve = |rows| heikkila(1000, rows, Form::Tightened, alpha);
            let amplified =
                |rate| without_replacement(rate, alpha, |a| heikkila_tightened(1000.0, a));
            assert_eq!(curve(1000), test);
            assert!(amplified(1.0) > 2.0 * test);
            assert_eq!(curve(100_000), amplified(0.01));
            assert!(curve(100_000) < 0.1 * test);
        }
    }

    /// The tightened bound holds for Gaussians of all reachable variances and means, and
    /// is reached.
    #[test]
    fn the_tightened_test_bounds_all_pairs_of_gaussians() {
        let b = 1000.0f64;
        for alpha in [2.0f64, 10.0, 100.0] {
            let mut worst = 0.0f64;
            for i in 0..=200 {
                for j in 0..=200 {
                    let (v1, v2) = (1.0 + f64::from(i) / 200.0, 1.0 + f64::from(j) / 200.0);
                    // Also the extreme neighbour of each.
                    for v1 in [v1, (v2 + 5.0 / b).min(2.0), (v2 - 5.0 / b).max(1.0)] {
                        if (v1 - v2).abs() > 5.0 / b + 1e-12 {
                            continue;
                        }
                        let mixed = alpha * v2 + (1.0 - alpha) * v1;
                        let d = 0.5 * (v2 / v1).ln()
                            + (v2 / mixed).ln() / (2.0 * (alpha - 1.0))
                            + alpha * (4.0 / b) / (2.0 * mixed);
                        worst = worst.max(d);
                    }
                }
            }
            let bound = heikkila_tightened(b, alpha);
            assert!(
                worst <= bound && worst > 0.999 * bound,
                "{alpha}: {worst} {bound}"
            );
            assert!(bound < heikkila_published(b, alpha));
        }
    }
}
