//! What can be audited, by the names of the command.

use super::AuditError;

/// What can be audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// All rows, Barker acceptance.
    Barker,
    /// Poisson minibatch, Barker acceptance.
    PoissonBarker,
    /// Poisson minibatch of remainders at an anchor, Barker acceptance; the anchor's own
    /// releases are audited beside it ([`super::AnchorCase`]).
    AnchoredBarker,
    /// All rows, discrete Gaussian noise, Metropolis with penalty.
    DpPenalty,
    /// All rows, discrete Gaussian noise, Barker's test with a correction.
    DpBarker,
    /// DP-Fast MH in its sound form, where it is new: a noisy minibatch with penalty.
    DpFastMh,
    /// A batch without replacement, Barker's test with a correction (Heikkilä 2019).
    DpBarkerSubsampled,
    /// Algorithm 2 of Zhang & Zhang 2023 to the letter, where it adds no noise. Its claim
    /// is false.
    DpFastMhAsPublished,
    /// Leapfrog on noisy gradients, penalty acceptance.
    DpHmc,
    /// Leapfrog on noisy gradients, Barker acceptance.
    BarkerHmc,
    /// Langevin dynamics on noisy gradients of Poisson batches.
    DpSgld,
    /// The same with momentum and friction.
    DpSghmc,
    /// The same with a thermostat.
    DpSgnht,
    /// Stochastic gradient ascent on noisy gradients of Poisson batches.
    DpSgd,
    /// Adam on such gradients.
    DpAdam,
    /// Variational inference by noisy gradients of Poisson batches.
    Dpvi,
}

impl Subject {
    /// All of them.
    pub const ALL: [Subject; 16] = [
        Subject::Barker,
        Subject::PoissonBarker,
        Subject::AnchoredBarker,
        Subject::DpPenalty,
        Subject::DpBarker,
        Subject::DpFastMh,
        Subject::DpBarkerSubsampled,
        Subject::DpFastMhAsPublished,
        Subject::DpHmc,
        Subject::BarkerHmc,
        Subject::DpSgld,
        Subject::DpSghmc,
        Subject::DpSgnht,
        Subject::DpSgd,
        Subject::DpAdam,
        Subject::Dpvi,
    ];

    /// Name of the algorithm.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Barker => "barker",
            Subject::PoissonBarker => "poisson-barker",
            Subject::AnchoredBarker => "anchored-barker",
            Subject::DpPenalty => "dp-penalty",
            Subject::DpBarker => "dp-barker",
            Subject::DpBarkerSubsampled => "dp-barker-subsampled",
            Subject::DpFastMh | Subject::DpFastMhAsPublished => "dp-fast-mh",
            Subject::DpHmc => "dp-hmc",
            Subject::BarkerHmc => "barker-hmc",
            Subject::DpSgld => "dp-sgld",
            Subject::DpSghmc => "dp-sghmc",
            Subject::DpSgnht => "dp-sgnht",
            Subject::DpSgd => "dp-sgd",
            Subject::DpAdam => "dp-adam",
            Subject::Dpvi => "dpvi",
        }
    }

    /// Whether it is the letter of a paper.
    pub fn as_published(self) -> bool {
        self == Subject::DpFastMhAsPublished
    }

    /// The subject of a name, to the letter of its paper or not.
    ///
    /// # Errors
    /// [`AuditError::Setting`] where there is none; for an unknown name with the nearest.
    pub fn parse(name: &str, as_published: bool) -> Result<Self, AuditError> {
        let refuse = |key, what: String| Err(AuditError::setting(key, what));
        if matches!(
            name,
            "mh" | "tuna-mh" | "hmc" | "sgld" | "sghmc" | "sgnht" | "sgd" | "adam"
        ) {
            return refuse(
                "algorithm",
                format!("{name} is not private and claims nothing: there is nothing to audit"),
            );
        }
        let mut named = Self::ALL
            .into_iter()
            .filter(|s| s.name() == name)
            .peekable();
        if named.peek().is_none() {
            let mut names = Self::ALL.map(Subject::name).to_vec();
            names.push(super::held_out::NAME);
            // The two forms of one algorithm have one name.
            names.sort_unstable();
            names.dedup();
            let nearest = names
                .iter()
                .copied()
                .max_by(|a, b| {
                    strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name))
                })
                .unwrap_or_default();
            return refuse(
                "algorithm",
                format!(
                    "'{name}' is unknown; one of {}; the nearest valid one is '{nearest}'",
                    names.join(", ")
                ),
            );
        }
        match named.find(|s| s.as_published() == as_published) {
            Some(subject) => Ok(subject),
            None => refuse(
                "as-published",
                format!("{name} has no published form apart; leave this out"),
            ),
        }
    }
}
