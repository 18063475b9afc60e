//! The published combinations by name: proposal × estimator × acceptance.

use serde::{Deserialize, Serialize};

use super::{AcceptanceName, Combination, EstimatorName};

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

    /// Its point in the table of estimators and acceptance rules.
    pub fn combination(self) -> Combination {
        use AcceptanceName::{Barker, Metropolis, NoisyBarker, Penalty};
        use EstimatorName::{All, FixedBatch, Poisson};
        let (estimator, acceptance) = match self {
            Algorithm::Mh => (All, Metropolis),
            Algorithm::TunaMh => (Poisson, Metropolis),
            Algorithm::Barker => (All, Barker),
            Algorithm::PoissonBarker | Algorithm::AnchoredBarker => (Poisson, Barker),
            Algorithm::DpPenalty | Algorithm::DpFastMhFull => (All, Penalty),
            Algorithm::DpFastMh => (Poisson, Penalty),
            Algorithm::DpBarker => (All, NoisyBarker),
            Algorithm::DpBarkerSubsampled => (FixedBatch, NoisyBarker),
        };
        Combination {
            estimator,
            acceptance,
            anchored: self == Algorithm::AnchoredBarker,
            fast_mh: matches!(self, Algorithm::DpFastMh | Algorithm::DpFastMhFull),
        }
    }
}
