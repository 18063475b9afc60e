//! The published combinations by name: proposal × estimator × acceptance.

use serde::{Deserialize, Serialize};

/// A named sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Metropolis–Hastings, all rows. Not private.
    Mh,
    /// TunaMH (Zhang 2020): Poisson minibatch, Metropolis. Not private.
    TunaMh,
    /// All rows, Barker acceptance.
    Barker,
    /// Poisson minibatch, Barker acceptance.
    PoissonBarker,
    /// Poisson minibatch of third-order remainders at a released anchor, Barker acceptance.
    AnchoredBarker,
    /// All rows, discrete Gaussian noise, Metropolis with penalty (Yıldırım & Ermiş 2019).
    DpPenalty,
    /// All rows, discrete Gaussian noise of variance C and a correction (Heikkilä 2019, full
    /// data). Approximate.
    DpBarker,
    /// DP-Fast MH (Zhang & Zhang 2023): a Poisson minibatch while its rate is below K, else all
    /// rows; noise and penalty where the paper adds it, else Barker acceptance.
    DpFastMh,
    /// The same on all rows.
    DpFastMhFull,
    /// A batch without replacement, discrete Gaussian noise and a correction (Heikkilä 2019).
    /// Approximate.
    DpBarkerSubsampled,
}

impl Algorithm {
    /// All of them, in the README's order.
    pub const ALL: [Algorithm; 10] = [
        Algorithm::Mh,
        Algorithm::TunaMh,
        Algorithm::Barker,
        Algorithm::PoissonBarker,
        Algorithm::AnchoredBarker,
        Algorithm::DpPenalty,
        Algorithm::DpBarker,
        Algorithm::DpFastMh,
        Algorithm::DpFastMhFull,
        Algorithm::DpBarkerSubsampled,
    ];

    /// Its name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Mh => "mh",
            Algorithm::TunaMh => "tuna-mh",
            Algorithm::Barker => "barker",
            Algorithm::PoissonBarker => "poisson-barker",
            Algorithm::AnchoredBarker => "anchored-barker",
            Algorithm::DpPenalty => "dp-penalty",
            Algorithm::DpBarker => "dp-barker",
            Algorithm::DpFastMh => "dp-fast-mh",
            Algorithm::DpFastMhFull => "dp-fast-mh-full",
            Algorithm::DpBarkerSubsampled => "dp-barker-subsampled",
        }
    }

    /// The algorithm of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.name() == name)
    }

    /// Whether it can be run under a privacy budget.
    pub fn is_private(self) -> bool {
        !matches!(self, Algorithm::Mh | Algorithm::TunaMh)
    }

    /// Whether it reads a Poisson minibatch (and takes `lambda`, `lambda_ratio` or `chi`).
    pub fn is_minibatch(self) -> bool {
        matches!(
            self,
            Algorithm::TunaMh | Algorithm::PoissonBarker | Algorithm::AnchoredBarker
        )
    }

    /// Whether it is DP-Fast MH (and takes `step_epsilon` and `step_delta`).
    pub fn is_fast_mh(self) -> bool {
        matches!(self, Algorithm::DpFastMh | Algorithm::DpFastMhFull)
    }

    /// Whether it asks for rows by their numbers, which the CPU copy answers.
    pub fn reads_listed_rows(self) -> bool {
        self.is_minibatch() || matches!(self, Algorithm::DpFastMh | Algorithm::DpBarkerSubsampled)
    }

    /// Acceptance rate that warm-up aims at by default: 0.234 for Metropolis (Roberts,
    /// Gelman & Gilks 1997), 0.158 for Barker (Agrawal et al. 2023), both raised for the
    /// low dimensions met here.
    pub fn default_target(self) -> f64 {
        match self {
            Algorithm::Mh | Algorithm::TunaMh => 0.3,
            Algorithm::Barker
            | Algorithm::PoissonBarker
            | Algorithm::AnchoredBarker
            | Algorithm::DpBarker
            | Algorithm::DpFastMh
            | Algorithm::DpFastMhFull
            | Algorithm::DpBarkerSubsampled => 0.2,
            Algorithm::DpPenalty => 0.15,
        }
    }
}
