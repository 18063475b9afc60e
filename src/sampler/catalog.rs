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
}

impl Algorithm {
    /// All of them, in the README's order.
    pub const ALL: [Algorithm; 7] = [
        Algorithm::Mh,
        Algorithm::TunaMh,
        Algorithm::Barker,
        Algorithm::PoissonBarker,
        Algorithm::AnchoredBarker,
        Algorithm::DpPenalty,
        Algorithm::DpBarker,
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

    /// Acceptance rate that warm-up aims at by default: 0.234 for Metropolis (Roberts,
    /// Gelman & Gilks 1997), 0.158 for Barker (Agrawal et al. 2023), both raised for the
    /// low dimensions met here.
    pub fn default_target(self) -> f64 {
        match self {
            Algorithm::Mh | Algorithm::TunaMh => 0.3,
            Algorithm::Barker
            | Algorithm::PoissonBarker
            | Algorithm::AnchoredBarker
            | Algorithm::DpBarker => 0.2,
            Algorithm::DpPenalty => 0.15,
        }
    }
}
