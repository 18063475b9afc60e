//! Private aggregation of teacher ensembles (Papernot 2017; with Gaussian noise, "GNMax", Papernot
//! 2018, section 4.1): teachers learn from disjoint parts of the sensitive rows and vote on public
//! ones; only noisy winners are released, and a student learns from them.
//!
//! A laboratory algorithm: rows are public, and its noise is a seeded stream of floating-point
//! numbers, which hides nothing.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use dpmc::privacy::Neighbours;
use dpmc::privacy::accountant::{Question, Sequence, SequenceError, account_within};

/// Of the accountant, relative.
const TOLERANCE: f64 = 1e-3;

/// Votes of all teachers.
#[derive(Clone, Debug)]
pub struct Votes {
    classes: usize,
    /// Rows × classes, row-major.
    counts: Vec<u32>,
}

impl Votes {
    /// None yet, on so many rows.
    pub fn none(rows: usize, classes: usize) -> Self {
        Votes {
            classes,
            counts: vec![0; rows * classes],
        }
    }

    /// One teacher's class of every row.
    pub fn add(&mut self, said: &[usize]) {
        let rows = self.counts.chunks_exact_mut(self.classes);
        for (row, &class) in rows.zip(said) {
            row[class] += 1;
        }
    }

    /// Mean share of the teachers that vote for the winner.
    pub fn agreement(&self) -> f64 {
        let rows = self.counts.chunks_exact(self.classes);
        let shares = rows.map(|row| {
            let all: u32 = row.iter().sum();
            f64::from(row.iter().copied().max().unwrap_or(0)) / f64::from(all.max(1))
        });
        shares.sum::<f64>() / (self.counts.len() / self.classes).max(1) as f64
    }

    /// The winners on the first `answers` rows, N(0, σ²) on every count.
    pub fn answers(&self, answers: usize, sigma: f64, seed: u64) -> Vec<usize> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let rows = self.counts.chunks_exact(self.classes).take(answers);
        let winner = |row: &[u32]| {
            let noisy = row.iter().map(|count| {
                let z: f64 = StandardNormal.sample(&mut rng);
                f64::from(*count) + sigma * z
            });
            let noisy: Vec<f64> = noisy.collect();
            (1..noisy.len()).fold(0, |best, k| if noisy[k] > noisy[best] { k } else { best })
        };
        rows.map(winner).collect()
    }
}

/// ε of so many answers, whatever the votes are: a row is in one teacher's part, and that teacher's
/// vote moves from one count to another, a distance of √2. So it is for either neighbours, where
/// parts are dealt so that a further row leaves the others in theirs.
///
/// # Errors
/// [`SequenceError`] for numbers out of range.
pub fn epsilon(sigma: f64, answers: u64, delta: f64) -> Result<f64, SequenceError> {
    let event = dpmc::privacy::Event::Gaussian {
        sensitivity: std::f64::consts::SQRT_2,
        sigma,
    };
    let sequence = Sequence::new(Neighbours::Substitution, vec![(event, answers)])?;
    Ok(account_within(&sequence, Question::Epsilon { delta }, TOLERANCE).upper)
}

/// The least noise, to a part in a thousand, at which so many answers cost ε.
///
/// # Errors
/// As [`epsilon`].
pub fn sigma(wanted: f64, answers: u64, delta: f64) -> Result<f64, SequenceError> {
    let (mut low, mut high) = (1e-2f64, 1e6f64);
    while high / low > 1.001 {
        let middle = (low * high).sqrt();
        match epsilon(middle, answers, delta)? > wanted {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Gaussian mechanism's exact ε (Balle & Wang 2018) at μ = √2·√100/σ: δ(ε) = Φ(μ/2 − ε/μ) −
    /// e^ε Φ(−μ/2 − ε/μ).
    #[test]
    fn answers_cost_what_a_gaussian_of_their_distance_does() {
        let s = sigma(2.04, 100, 1e-5).unwrap();
        let found = epsilon(s, 100, 1e-5).unwrap();
        assert!(found <= 2.04 && found > 2.02, "{found}");
        let mu = (2.0f64 * 100.0).sqrt() / s;
        let cdf = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        let delta = cdf(mu / 2.0 - found / mu) - found.exp() * cdf(-mu / 2.0 - found / mu);
        assert!((delta / 1e-5 - 1.0).abs() < 0.05, "{delta}");
    }

    /// Two classes at 7 and 3 votes: the noisy winner is the first with probability Φ(4/(σ√2)), in
    /// 20,000 answers to within six standard errors. Without noise it always is.
    #[test]
    fn winners_are_as_noisy_as_their_counts() {
        let mut votes = Votes::none(20_000, 2);
        for teacher in 0..10 {
            votes.add(&vec![usize::from(teacher < 3); 20_000]);
        }
        assert!((votes.agreement() - 0.7).abs() < 1e-12);
        assert!(votes.answers(20_000, 0.0, 1).iter().all(|k| *k == 0));
        let said = votes.answers(20_000, 3.0, 2);
        let share = said.iter().filter(|k| **k == 0).count() as f64 / 20_000.0;
        let wanted = 0.5 * libm::erfc(-4.0 / (3.0 * 2.0));
        assert!(
            (share - wanted).abs() < 6.0 * (0.25f64 / 20_000.0).sqrt(),
            "{share} {wanted}"
        );
    }
}
