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
    /// Draws of the Gaussian that a regression's released anchor makes, without decisions.
    /// Approximate.
    DpLaplace,
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
    /// Hamiltonian Monte Carlo. Not private.
    Hmc,
    /// Leapfrog on noisy clipped gradients, penalty acceptance (Räisä 2021).
    DpHmc,
    /// Leapfrog on noisy clipped gradients, Barker acceptance.
    BarkerHmc,
    /// Stochastic-gradient Langevin dynamics (Welling & Teh 2011). Not private.
    Sgld,
    /// The same, its injected noise charged (Li 2019).
    DpSgld,
    /// Stochastic-gradient HMC (Chen 2014). Not private.
    Sghmc,
    /// The same, its injected noise charged (Li 2019).
    DpSghmc,
    /// Stochastic-gradient thermostat (Ding 2014). Not private.
    Sgnht,
    /// The same, its injected noise charged (Räisä 2021).
    DpSgnht,
    /// Stochastic gradient descent. Not private, and no sampler: ends at a point.
    Sgd,
    /// The same on clipped, noisy gradients (Abadi 2016).
    DpSgd,
    /// Adam (Kingma & Ba 2015). Not private, and no sampler: ends at a point.
    Adam,
    /// The same on clipped, noisy gradients.
    DpAdam,
    /// A Gaussian fitted by released gradients (Jälkö 2017), and draws from it. Approximate.
    Dpvi,
    /// One posterior draw each (Wang 2015). Private if the chain behind it has converged.
    Ops,
}

/// What kind of sampler a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A proposal and a decision.
    Decisions(Combination),
    /// Langevin-type dynamics without decisions.
    StochasticGradient {
        /// Which.
        dynamics: DynamicsName,
        /// Whether clip and noise make it private.
        private: bool,
    },
    /// Climbs to a point along gradients.
    Optimiser {
        /// Which.
        rule: OptimiserName,
        /// Whether clip and noise make it private.
        private: bool,
    },
    /// Draws of a released Gaussian.
    Laplace,
    /// Variational inference.
    Variational,
    /// Posterior draws by secret chains.
    PosteriorDraws,
}

/// Stochastic-gradient dynamics by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicsName {
    /// First order.
    Sgld,
    /// Second order with friction.
    Sghmc,
    /// Second order with a thermostat.
    Sgnht,
}

/// Optimisers by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptimiserName {
    /// Along the gradient.
    Sgd,
    /// Along the gradient's running mean over its root mean square.
    Adam,
}

impl Algorithm {
    /// All of them, in the order of `docs/reference/samplers.md`.
    pub const ALL: [Algorithm; 26] = [
        Algorithm::Mh,
        Algorithm::TunaMh,
        Algorithm::Barker,
        Algorithm::PoissonBarker,
        Algorithm::AnchoredBarker,
        Algorithm::DpLaplace,
        Algorithm::DpPenalty,
        Algorithm::DpBarker,
        Algorithm::DpFastMh,
        Algorithm::DpFastMhFull,
        Algorithm::DpBarkerSubsampled,
        Algorithm::Hmc,
        Algorithm::DpHmc,
        Algorithm::BarkerHmc,
        Algorithm::Sgld,
        Algorithm::DpSgld,
        Algorithm::Sghmc,
        Algorithm::DpSghmc,
        Algorithm::Sgnht,
        Algorithm::DpSgnht,
        Algorithm::Sgd,
        Algorithm::DpSgd,
        Algorithm::Adam,
        Algorithm::DpAdam,
        Algorithm::Dpvi,
        Algorithm::Ops,
    ];

    /// Its name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Mh => "mh",
            Algorithm::TunaMh => "tuna-mh",
            Algorithm::Barker => "barker",
            Algorithm::PoissonBarker => "poisson-barker",
            Algorithm::AnchoredBarker => "anchored-barker",
            Algorithm::DpLaplace => "dp-laplace",
            Algorithm::DpPenalty => "dp-penalty",
            Algorithm::DpBarker => "dp-barker",
            Algorithm::DpFastMh => "dp-fast-mh",
            Algorithm::DpFastMhFull => "dp-fast-mh-full",
            Algorithm::DpBarkerSubsampled => "dp-barker-subsampled",
            Algorithm::Hmc => "hmc",
            Algorithm::DpHmc => "dp-hmc",
            Algorithm::BarkerHmc => "barker-hmc",
            Algorithm::Sgld => "sgld",
            Algorithm::DpSgld => "dp-sgld",
            Algorithm::Sghmc => "sghmc",
            Algorithm::DpSghmc => "dp-sghmc",
            Algorithm::Sgnht => "sgnht",
            Algorithm::DpSgnht => "dp-sgnht",
            Algorithm::Sgd => "sgd",
            Algorithm::DpSgd => "dp-sgd",
            Algorithm::Adam => "adam",
            Algorithm::DpAdam => "dp-adam",
            Algorithm::Dpvi => "dpvi",
            Algorithm::Ops => "ops",
        }
    }

    /// The algorithm of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.name() == name)
    }

    /// What kind of sampler it is.
    pub fn family(self) -> Family {
        use DynamicsName::{Sghmc, Sgld, Sgnht};
        let gradient = |dynamics, private| Family::StochasticGradient { dynamics, private };
        let optimiser = |rule, private| Family::Optimiser { rule, private };
        match self {
            Algorithm::Sgd => optimiser(OptimiserName::Sgd, false),
            Algorithm::DpSgd => optimiser(OptimiserName::Sgd, true),
            Algorithm::Adam => optimiser(OptimiserName::Adam, false),
            Algorithm::DpAdam => optimiser(OptimiserName::Adam, true),
            Algorithm::Sgld => gradient(Sgld, false),
            Algorithm::DpSgld => gradient(Sgld, true),
            Algorithm::Sghmc => gradient(Sghmc, false),
            Algorithm::DpSghmc => gradient(Sghmc, true),
            Algorithm::Sgnht => gradient(Sgnht, false),
            Algorithm::DpSgnht => gradient(Sgnht, true),
            Algorithm::DpLaplace => Family::Laplace,
            Algorithm::Dpvi => Family::Variational,
            Algorithm::Ops => Family::PosteriorDraws,
            _ => self
                .combination()
                .map_or(Family::Variational, Family::Decisions),
        }
    }

    /// Its point in the table of estimators and acceptance rules; `None` for samplers that
    /// make no decisions.
    pub fn combination(self) -> Option<Combination> {
        use AcceptanceName::{Barker, Metropolis, NoisyBarker, Penalty};
        use EstimatorName::{All, FixedBatch, Poisson};
        let (estimator, acceptance) = match self {
            Algorithm::Mh | Algorithm::Hmc => (All, Metropolis),
            Algorithm::TunaMh => (Poisson, Metropolis),
            Algorithm::Barker | Algorithm::BarkerHmc => (All, Barker),
            Algorithm::PoissonBarker | Algorithm::AnchoredBarker => (Poisson, Barker),
            Algorithm::DpPenalty | Algorithm::DpFastMhFull | Algorithm::DpHmc => (All, Penalty),
            Algorithm::DpFastMh => (Poisson, Penalty),
            Algorithm::DpBarker => (All, NoisyBarker),
            Algorithm::DpBarkerSubsampled => (FixedBatch, NoisyBarker),
            Algorithm::Sgld
            | Algorithm::DpSgld
            | Algorithm::Sghmc
            | Algorithm::DpSghmc
            | Algorithm::Sgnht
            | Algorithm::DpSgnht
            | Algorithm::Sgd
            | Algorithm::DpSgd
            | Algorithm::Adam
            | Algorithm::DpAdam
            | Algorithm::Dpvi
            | Algorithm::DpLaplace
            | Algorithm::Ops => return None,
        };
        Some(Combination {
            estimator,
            acceptance,
            anchored: self == Algorithm::AnchoredBarker,
            fast_mh: matches!(self, Algorithm::DpFastMh | Algorithm::DpFastMhFull),
            leapfrog: matches!(
                self,
                Algorithm::Hmc | Algorithm::DpHmc | Algorithm::BarkerHmc
            ),
        })
    }
}

impl Family {
    /// Whether it can be run under a privacy budget.
    pub fn is_private(self) -> bool {
        match self {
            Family::Decisions(combination) => combination.is_private(),
            Family::StochasticGradient { private, .. } | Family::Optimiser { private, .. } => {
                private
            }
            Family::Laplace | Family::Variational | Family::PosteriorDraws => true,
        }
    }

    /// Its published name, or its choices in words.
    pub fn name(self) -> String {
        let named = Algorithm::ALL.into_iter().find(|a| a.family() == self);
        match (named, self) {
            (Some(algorithm), _) => algorithm.name().into(),
            (None, Family::Decisions(combination)) => combination.name(),
            (None, _) => String::new(),
        }
    }

    /// Whether it may ask for rows on the host; see [`Combination::reads_listed_rows`].
    pub fn reads_listed_rows(self) -> bool {
        match self {
            Family::Decisions(combination) => combination.reads_listed_rows(),
            // Their batches are drawn on the host.
            Family::Laplace
            | Family::StochasticGradient { .. }
            | Family::Optimiser { .. }
            | Family::Variational => true,
            Family::PosteriorDraws => false,
        }
    }

    /// Whether a key of `[sampler]` means something to it.
    pub fn takes(self, key: &str) -> bool {
        match self {
            Family::Decisions(combination) => combination.takes(key),
            Family::StochasticGradient { dynamics, private } => match key {
                "gradient" | "schedule" | "step" | "scale" => true,
                "friction" => dynamics == DynamicsName::Sghmc,
                "diffusion" => dynamics == DynamicsName::Sgnht,
                "preconditioner" => dynamics == DynamicsName::Sgld,
                "as_published" => private && dynamics != DynamicsName::Sgnht,
                _ => false,
            },
            Family::Optimiser { .. } => {
                matches!(key, "gradient" | "schedule" | "step" | "scale")
            }
            Family::Laplace => key == "anchor",
            Family::Variational => matches!(key, "gradient" | "step" | "scale" | "steps"),
            Family::PosteriorDraws => matches!(key, "step" | "scale" | "steps"),
        }
    }
}
