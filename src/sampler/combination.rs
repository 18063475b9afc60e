//! The table behind the catalogue: which rows are read × how moves are accepted, anchored or
//! not. Combinations that nobody published are as good as the others, or refused with a reason.

use serde::{Deserialize, Serialize};

use super::Algorithm;

/// Which rows estimate the log-likelihood ratio, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimatorName {
    /// All rows.
    All,
    /// A Poisson minibatch.
    Poisson,
    /// So many rows without replacement.
    FixedBatch,
}

/// How a move is accepted, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcceptanceName {
    /// min(1, e^z). Not private.
    Metropolis,
    /// σ(z).
    Barker,
    /// Discrete Gaussian noise and its penalty.
    Penalty,
    /// Discrete Gaussian noise and a correction. Approximate.
    NoisyBarker,
}

/// A point of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    /// Rows read.
    pub estimator: EstimatorName,
    /// Acceptance.
    pub acceptance: AcceptanceName,
    /// Whether rows are asked for remainders at a released anchor.
    pub anchored: bool,
    /// DP-Fast MH: each move's clip bound decides whether it gets all rows after all, and
    /// Barker acceptance instead of noise. By name alone.
    pub fast_mh: bool,
    /// Whether proposals are leapfrog trajectories along released gradients; else random
    /// walks, or moves around the anchor.
    pub leapfrog: bool,
}

impl EstimatorName {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::All, Self::Poisson, Self::FixedBatch];

    /// Its name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Poisson => "poisson",
            Self::FixedBatch => "fixed-batch",
        }
    }
}

impl AcceptanceName {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Metropolis,
        Self::Barker,
        Self::Penalty,
        Self::NoisyBarker,
    ];

    /// Its name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metropolis => "metropolis",
            Self::Barker => "barker",
            Self::Penalty => "penalty",
            Self::NoisyBarker => "noisy-barker",
        }
    }
}

impl Combination {
    /// Its published name, or its choices in words.
    pub fn name(self) -> String {
        let named = Algorithm::ALL
            .into_iter()
            .find(|a| a.combination() == Some(self));
        named.map_or_else(
            || {
                let (rows, rule) = (self.estimator.name(), self.acceptance.name());
                let anchored = if self.anchored { ", anchored" } else { "" };
                let leapfrog = if self.leapfrog { ", leapfrog" } else { "" };
                format!("{rows} + {rule}{anchored}{leapfrog}")
            },
            |algorithm| algorithm.name().into(),
        )
    }

    /// Why it cannot be run at all: the key to change, and the reason.
    pub fn refusal(self) -> Option<(&'static str, &'static str)> {
        use AcceptanceName::{Metropolis, NoisyBarker, Penalty};
        use EstimatorName::{FixedBatch, Poisson};
        match (self.estimator, self.acceptance) {
            _ if self.leapfrog && self.anchored => Some((
                "anchored",
                "trajectories in the anchor's own Gaussian are known exactly and need no gradients: proposal = { autoregressive = { correlation = r } }, r the cosine of the trajectory's length; drop 'leapfrog_steps'",
            )),
            (FixedBatch, NoisyBarker) if self.leapfrog => Some((
                "estimator",
                "a fixed batch clips every move at the same bound, which no long trajectory keeps to; use estimator = \"all\" or \"poisson\"",
            )),
            (FixedBatch, NoisyBarker) if self.anchored => Some((
                "estimator",
                "a fixed batch costs the same however small its ratios are, and has no rho to divide: remainders save nothing there; use estimator = \"poisson\" or \"all\" with an anchor",
            )),
            (FixedBatch, NoisyBarker) => None,
            (FixedBatch, Metropolis) => Some((
                "acceptance",
                "metropolis on a batch without replacement samples no known distribution: its estimate is off by more than any rule allows for; use estimator = \"poisson\", which is exact, or acceptance = \"noisy-barker\"",
            )),
            (FixedBatch, _) => Some((
                "acceptance",
                "a batch of fixed size goes with \"noisy-barker\" alone: no other rule allows for the noise of sampling without replacement; use estimator = \"poisson\", which is exact with it",
            )),
            (Poisson, NoisyBarker) => Some((
                "acceptance",
                "noisy-barker takes its estimate for Gaussian, a Poisson minibatch needs no such thing: use acceptance = \"barker\", which is exact and cheaper, or estimator = \"fixed-batch\"",
            )),
            (Poisson, Penalty) if self.anchored => Some((
                "acceptance",
                "a noisy Poisson minibatch has no rho, by which an anchored run divides its budget; use acceptance = \"barker\", or estimator = \"all\"",
            )),
            _ => None,
        }
    }

    /// Whether it can be run under a privacy budget.
    pub fn is_private(self) -> bool {
        self.acceptance != AcceptanceName::Metropolis
    }

    /// Whether every step reads a Poisson minibatch.
    pub fn is_minibatch(self) -> bool {
        self.estimator == EstimatorName::Poisson && !self.fast_mh
    }

    /// Whether it may ask for rows on the host: by their numbers, once for an anchor, or for
    /// gradients that a GPU has no room for.
    pub fn reads_listed_rows(self) -> bool {
        self.estimator != EstimatorName::All || self.anchored || self.leapfrog
    }

    /// Whether a key of `[sampler]` means something to it.
    pub fn takes(self, key: &str) -> bool {
        let poisson = self.estimator == EstimatorName::Poisson;
        match key {
            "lambda" => poisson,
            "lambda_ratio" | "chi" => self.is_minibatch(),
            "tau" => self.acceptance == AcceptanceName::Penalty && !self.fast_mh,
            "variance" => {
                (self.estimator, self.acceptance)
                    == (EstimatorName::All, AcceptanceName::NoisyBarker)
            }
            "batch" => self.estimator == EstimatorName::FixedBatch,
            "batch_cap" => self.fast_mh && poisson,
            "step_epsilon" | "step_delta" => self.fast_mh,
            "proposal" | "anchor" => self.anchored,
            "leapfrog_steps" | "jitter" | "adapt_length" | "gradient" => self.leapfrog,
            "schedule" | "friction" | "diffusion" | "preconditioner" | "steps" | "as_published" => {
                false
            }
            _ => true,
        }
    }

    /// Acceptance rate that warm-up aims at by default: 0.234 for Metropolis (Roberts,
    /// Gelman & Gilks 1997), 0.158 for Barker (Agrawal et al. 2023), both raised for the
    /// low dimensions met here.
    pub fn default_target(self) -> f64 {
        match self.acceptance {
            AcceptanceName::Metropolis => 0.3,
            AcceptanceName::Penalty if !self.fast_mh => 0.15,
            _ => 0.2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are one to one, and every published one can be run.
    #[test]
    fn every_name_is_a_point_of_the_table() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.family().name(), algorithm.name());
            let refusal = algorithm.combination().and_then(Combination::refusal);
            assert_eq!(refusal, None, "{algorithm:?}");
            assert_eq!(Algorithm::parse(algorithm.name()), Some(algorithm));
        }
    }
}
