//! Algorithm 1 of Li et al. 2019 as a mechanism: the steps that its theorems claim, and what steps
//! truly cost.

use super::ReproduceError;
use dpmc::privacy::accountant::{Question, Sequence, account_within};
use dpmc::privacy::{Event, Neighbours};
use dpmc::sampler::Schedule;

/// Ratio of the iterations where a level of a falling schedule ends and begins.
const LEVEL: f64 = 1.25;
/// Of the accountants, relative.
const TOLERANCE: f64 = 5e-3;
/// Iterations that are their own level.
const EARLY: u64 = 8;
/// Whether steps are fixed (Theorem 3) or fall with `t^(−1/3)` (Theorem 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Fixed,
    CubeRoot,
}

impl Form {
    pub fn name(self) -> &'static str {
        match self {
            Form::Fixed => "fixed step",
            Form::CubeRoot => "step falling with t^(-1/3)",
        }
    }

    fn schedule(self, step: f64) -> Schedule {
        match self {
            Form::Fixed => Schedule::Fixed { step },
            Form::CubeRoot => Schedule::CubeRoot { step },
        }
    }
}

/// Algorithm 1 as a mechanism, in the paper's units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mechanism {
    /// N.
    pub rows: f64,
    /// L, bound on a row's gradient.
    pub clip: f64,
    /// Iterations T.
    pub steps: u64,
    /// Steps η_t on the mean log posterior.
    pub form: Form,
    /// δ of its total.
    pub delta: f64,
}

impl Mechanism {
    /// q = 1/√N, as in the paper's experiments.
    pub fn rate(self) -> f64 {
        self.rows.sqrt().recip()
    }

    /// The largest first step of Theorem 3, `ε²N/(c²L²T log(1/δ))`, or of Theorem 4, with T^(2/3),
    /// for c = 1.
    pub fn claimed_step(self, epsilon: f64) -> f64 {
        let steps = self.steps as f64;
        let length = match self.form {
            Form::Fixed => steps,
            Form::CubeRoot => steps.cbrt().powi(2),
        };
        epsilon.powi(2) * self.rows / (self.clip.powi(2) * length * -self.delta.ln())
    }

    /// The largest fixed step of Wang, Fienberg & Smola 2015 ("Privacy for free", algorithm 2) in
    /// the same units: `ε²N/(128 L²T log(2.5T/δ) log(2/δ))`.
    pub fn wang_step(self, epsilon: f64) -> f64 {
        let (steps, delta) = (self.steps as f64, self.delta);
        let logs = (2.5 * steps / delta).ln() * (2.0 / delta).ln();
        epsilon.powi(2) * self.rows / (128.0 * self.clip.powi(2) * steps * logs)
    }

    /// Noise on the batch sum over L, of the first iteration.
    pub fn multiplier(self, step: f64) -> f64 {
        self.rate() * (self.rows / step).sqrt() / self.clip
    }

    /// ε of all iterations by the accountants, to about 5e-3.
    ///
    /// # Errors
    /// [`ReproduceError::Sequence`] for a step that no accountant takes.
    pub fn epsilon(self, step: f64, neighbours: Neighbours) -> Result<f64, ReproduceError> {
        let sensitivity = match neighbours {
            Neighbours::AddRemove | Neighbours::ZeroOut => self.clip,
            Neighbours::Substitution => 2.0 * self.clip,
        };
        let event = |eta: f64| Event::PoissonGaussian {
            rate: self.rate(),
            sensitivity,
            sigma: self.rate() * self.rows * (eta * self.rows).sqrt().recip(),
        };
        let levels = self.levels(step).into_iter();
        let events = levels.map(|(eta, count)| (event(eta), count)).collect();
        let sequence = Sequence::new(neighbours, events)?;
        let question = Question::Epsilon { delta: self.delta };
        Ok(account_within(&sequence, question, TOLERANCE).upper)
    }

    /// Steps η and for how many iterations each stands: the mean over a level, for costs are
    /// nearly proportional to η.
    pub fn levels(self, step: f64) -> Vec<(f64, u64)> {
        if self.form == Form::Fixed {
            return vec![(step, self.steps)];
        }
        let schedule = self.form.schedule(step);
        let (mut levels, mut first) = (Vec::new(), 1u64);
        while first <= self.steps {
            let next = if first < EARLY {
                first + 1
            } else {
                (first as f64 * LEVEL) as u64
            };
            let next = next.min(self.steps + 1);
            let count = next - first;
            let sum: f64 = (first..next).map(|t| schedule.at(t)).sum();
            levels.push((sum / count as f64, count));
            first = next;
        }
        levels
    }

    /// The largest first step whose true cost is `epsilon`, to about 5e-3.
    pub fn largest_step(self, epsilon: f64, neighbours: Neighbours) -> Result<f64, ReproduceError> {
        // ε(η) is nearly a power: a secant in logarithms, from the claim.
        let miss = |log: f64| {
            self.epsilon(log.exp(), neighbours)
                .map(|cost| (cost / epsilon).ln())
        };
        let mut a = self.claimed_step(epsilon).ln();
        let mut at_a = miss(a)?;
        let mut b = a - at_a.clamp(-2.0, 2.0);
        for _ in 0..8 {
            let at_b = miss(b)?;
            if at_b.abs() < TOLERANCE || (b - a).abs() < 1e-9 {
                break;
            }
            let slope = ((at_b - at_a) / (b - a)).clamp(0.2, 5.0);
            (a, at_a) = (b, at_b);
            b -= (at_b / slope).clamp(-3.0, 3.0);
        }
        Ok(b.exp())
    }
}

/// Of the MNIST experiment after so many iterations; its first step is 0.1.
pub(super) fn mnist(steps: u64) -> Mechanism {
    Mechanism {
        rows: 60_000.0,
        clip: 4.0,
        steps,
        form: Form::CubeRoot,
        delta: 1e-5,
    }
}

/// First step of the MNIST experiment, and the ε that the paper claims for it.
pub(super) const MNIST_STEP: f64 = 0.1;
pub(super) const MNIST_CLAIM: &str = "0.10";
