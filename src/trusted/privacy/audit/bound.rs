//! From counts to a lower bound on ε: the choice of an event, and Clopper–Pearson.

use statrs::distribution::{Beta, ContinuousCDF, Normal};
use statrs::function::beta::checked_beta_reg;

use super::{AuditError, Settings};

/// How often each number of accepted moves was seen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    /// Of runs of `steps` steps.
    pub fn new(steps: u32) -> Self {
        Histogram {
            counts: vec![0; steps as usize + 1],
            total: 0,
        }
    }

    /// One run that accepted `accepted` moves.
    pub fn add(&mut self, accepted: u32) {
        if let Some(count) = self.counts.get_mut(accepted as usize) {
            *count += 1;
            self.total += 1;
        }
    }

    /// Runs that accepted exactly `accepted` moves.
    #[cfg(test)]
    pub fn seen(&self, accepted: usize) -> u64 {
        self.counts[accepted]
    }

    /// Runs in the event.
    fn count(&self, event: &Event) -> u64 {
        let k = event.threshold as usize;
        if event.at_least {
            self.counts[k..].iter().sum()
        } else {
            self.counts[..=k].iter().sum()
        }
    }
}

/// An event, and where it is expected more often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Event {
    /// h.
    pub public: f64,
    /// {S ≥ threshold}, or else {S ≤ threshold}.
    pub at_least: bool,
    /// Of S.
    pub threshold: u32,
    /// Whether D' plays P.
    reversed: bool,
}

/// The lower bound at the settings' δ and confidence, and the event in words. `sample`
/// gives runs on D (`false`) or D' (`true`) with public part h; independent at every call.
/// `words` say what was counted.
pub(super) fn lower_bound(
    sample: &mut dyn FnMut(bool, f64, u64) -> Result<Histogram, AuditError>,
    public: &[f64],
    steps: u32,
    words: &dyn Fn(&Event) -> String,
    settings: &Settings,
) -> Result<(f64, String), AuditError> {
    let first_half = settings.trials / 2;
    let scanned = (public.len() as u64).clamp(1, first_half.max(1));
    let mut best = Event {
        public: public.first().copied().unwrap_or(0.0),
        at_least: true,
        threshold: steps,
        reversed: false,
    };
    let mut score = f64::NEG_INFINITY;
    for &h in public.iter().take(scanned as usize) {
        let on = sample(false, h, first_half / scanned)?;
        let off = sample(true, h, first_half / scanned)?;
        if let Some((event, found)) = best_event(h, &on, &off, settings)
            && found > score
        {
            (best, score) = (event, found);
        }
    }
    let n = settings.trials - first_half;
    let mut counts = [0; 2];
    for (neighbour, count) in [false, true].into_iter().zip(&mut counts) {
        *count = sample(neighbour, best.public, n)?.count(&best);
    }
    if best.reversed {
        counts.swap(0, 1);
    }
    let bound = epsilon_lower(counts, n, settings.delta, settings.confidence);
    let words = format!(
        "{}: {} of {n} runs on {}, {} on {}",
        words(&best),
        counts[0],
        if best.reversed { "D'" } else { "D" },
        counts[1],
        if best.reversed { "D" } else { "D'" },
    );
    Ok((bound, words))
}

/// An event of decisions, in words.
pub(super) fn accepted_moves(steps: u32) -> impl Fn(&Event) -> String {
    move |event| {
        format!(
            "{} {} of {steps} moves with h = {:.3} accepted",
            if event.at_least {
                "at least"
            } else {
                "at most"
            },
            event.threshold,
            event.public
        )
    }
}

/// The event whose frequencies promise the largest bound at the confidence that is asked for.
fn best_event(
    h: f64,
    on: &Histogram,
    off: &Histogram,
    settings: &Settings,
) -> Option<(Event, f64)> {
    let n = on.total.min(off.total) as f64;
    // Of the runs that will bound it.
    let runs = (settings.trials - settings.trials / 2) as f64;
    let caution = -Normal::standard().inverse_cdf(0.5 * (1.0 - settings.confidence));
    let spread = |f: f64| caution * (f * (1.0 - f) / runs).sqrt() + 0.5 * caution * caution / runs;
    let promise = |p: f64, q: f64| ((p - spread(p) - settings.delta) / (q + spread(q))).ln();
    let mut best: Option<(Event, f64)> = None;
    for at_least in [true, false] {
        let (mut a, mut b) = (0, 0);
        let steps = on.counts.len();
        for i in 0..steps {
            let k = if at_least { steps - 1 - i } else { i };
            a += on.counts[k];
            b += off.counts[k];
            let (p, q) = (a as f64 / n, b as f64 / n);
            for (reversed, score) in [(false, promise(p, q)), (true, promise(q, p))] {
                if score.is_finite() && best.is_none_or(|(_, s)| score > s) {
                    let threshold = k as u32;
                    let event = Event {
                        public: h,
                        at_least,
                        threshold,
                        reversed,
                    };
                    best = Some((event, score));
                }
            }
        }
    }
    best
}

/// `max(0, ln((p_low − δ)/q_high))` for counts (P, Q) of n runs each.
fn epsilon_lower(counts: [u64; 2], n: u64, delta: f64, confidence: f64) -> f64 {
    let alpha = 0.5 * (1.0 - confidence);
    let p = clopper_pearson_low(counts[0], n, alpha) - delta;
    let q = clopper_pearson_high(counts[1], n, alpha);
    if p > 0.0 { (p / q).ln().max(0.0) } else { 0.0 }
}

/// Below the probability of an event seen `k` times in `n`, but for probability `alpha`.
fn clopper_pearson_low(k: u64, n: u64, alpha: f64) -> f64 {
    if k == 0 || k > n {
        return 0.0;
    }
    let (a, b) = (k as f64, (n - k + 1) as f64);
    let tail = |x: f64| checked_beta_reg(a, b, x).is_ok_and(|tail| tail <= alpha);
    confirmed(quantile(a, b, alpha).unwrap_or(0.0), -1.0, tail).unwrap_or(0.0)
}

/// Above the probability of an event seen `k` times in `n`, but for probability `alpha`.
fn clopper_pearson_high(k: u64, n: u64, alpha: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    let (a, b) = ((k + 1) as f64, (n - k) as f64);
    let tail = |x: f64| checked_beta_reg(b, a, 1.0 - x).is_ok_and(|tail| tail <= alpha);
    confirmed(quantile(a, b, 1.0 - alpha).unwrap_or(1.0), 1.0, tail).unwrap_or(1.0)
}

/// Moves a quantile outwards (down for −1, up for 1) until its tail is confirmed: the
/// inverse is right to about 1e-5 only, the function itself to 1e-12.
fn confirmed(start: f64, outwards: f64, tail: impl Fn(f64) -> bool) -> Option<f64> {
    (0..30)
        .map(|i| {
            // By ever larger shifts of the logit.
            let less = (1.0 - start) * (-outwards * 1e-7 * f64::powi(2.0, i)).exp();
            start / (start + less)
        })
        .find(|&x| x > 0.0 && x < 1.0 && tail(x))
}

/// Inverse of the regularised incomplete beta function.
fn quantile(a: f64, b: f64, p: f64) -> Option<f64> {
    let x = Beta::new(a, b).ok()?.try_inverse_cdf(p).ok()?;
    x.is_finite().then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Pr[Binomial(n, p) ≤ k]`, summed term by term.
    fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
        let mut log = n as f64 * (-p).ln_1p();
        let mut sum = log.exp();
        for i in 0..k {
            log += ((n - i) as f64 / (i + 1) as f64 * p / (1.0 - p)).ln();
            sum += log.exp();
        }
        sum
    }

    /// At most α, but for what the sum of the tail loses, and nearly all of it.
    fn covered(tail: f64, alpha: f64) -> bool {
        tail <= alpha + 1e-11 && tail > 0.99 * alpha
    }

    #[test]
    fn clopper_pearson_inverts_the_binomial() {
        for alpha in [0.05, 5e-4, 5e-7] {
            for n in [1u64, 7, 100, 100_000] {
                for k in [0, 1, 2, 5, 90, 5_000].into_iter().filter(|&k| k < n) {
                    let high = clopper_pearson_high(k, n, alpha);
                    let tail = binomial_cdf(k, n, high);
                    assert!(covered(tail, alpha), "{k} of {n}: {tail}");
                    if k > 0 {
                        let low = clopper_pearson_low(k, n, alpha);
                        let tail = 1.0 - binomial_cdf(k - 1, n, low);
                        assert!(covered(tail, alpha), "{k} of {n}: {tail}");
                    }
                    // An event and its complement mirror each other.
                    let mirrored = 1.0 - clopper_pearson_low(n - k, n, alpha);
                    assert!(
                        (mirrored - high).abs() < 1e-4 * high.min(1.0 - high) + 1e-7,
                        "{k} of {n}"
                    );
                }
                assert_eq!(clopper_pearson_low(0, n, alpha), 0.0);
                assert_eq!(clopper_pearson_high(n, n, alpha), 1.0);
                let none = clopper_pearson_high(0, n, alpha);
                let exact = 1.0 - alpha.powf(1.0 / n as f64);
                assert!(none >= exact - 1e-12 && none < exact * (1.0 + 1e-4));
            }
        }
    }

    #[test]
    fn a_bound_is_never_negative_nor_infinite() {
        for counts in [[0, 0], [10, 10], [0, 10], [10, 0], [3, 7]] {
            for delta in [0.0, 1e-5, 0.999] {
                let bound = epsilon_lower(counts, 10, delta, 0.999);
                assert!(bound >= 0.0 && bound.is_finite(), "{counts:?}: {bound}");
            }
        }
    }

    /// Bits of known odds: the bound stays under the truth, and comes near it.
    #[test]
    fn a_known_loss_is_bounded_from_below() {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_chacha::ChaCha12Rng::seed_from_u64(3);
        // {S ≥ 3} for bits of probability 0.3 and 0.1: ln 27 = 3.30 at δ = 0.
        let mut sample = |neighbour, _, runs: u64| {
            let p = if neighbour { 0.1 } else { 0.3 };
            let mut histogram = Histogram::new(3);
            for _ in 0..runs {
                histogram.add((0..3).map(|_| u32::from(rng.random::<f64>() < p)).sum());
            }
            Ok(histogram)
        };
        let settings = Settings {
            trials: 400_000,
            delta: 0.0,
            confidence: 1.0 - 1e-6,
            ..Settings::default()
        };
        let (bound, words) =
            lower_bound(&mut sample, &[0.0], 3, &accepted_moves(3), &settings).unwrap();
        assert!(bound < 27f64.ln() && bound > 2.7, "{bound}: {words}");
    }
}
