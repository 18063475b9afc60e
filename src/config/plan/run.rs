//! `[privacy]` and `[run]`: what a run may spend, how long it is and where it starts.

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::StartEntry;
use crate::model::Model;
use crate::posterior_run::RunLength;
use crate::privacy::Budget;
use crate::sampler::stream;

impl Plan {
    /// The budget; `None` for a non-private run.
    ///
    /// # Errors
    /// [`ConfigError`] where there is none, both, or a bad one.
    pub fn budget(&self) -> Result<Option<Budget>, ConfigError> {
        let p = &self.config.privacy;
        match (p.epsilon, p.delta, p.not_private) {
            (None, None, true) if p.ledger.is_some() => Err(self.refuse(
                "privacy.ledger",
                "a non-private run has no ledger; drop one of the two",
            )),
            (None, None, true) if self.states_measure() => Err(self.refuse(
                match p.order {
                    Some(_) => "privacy.order",
                    None => "privacy.filter",
                },
                "a non-private run has no ledger to count anything; drop one of the two",
            )),
            (None, None, true) => Ok(None),
            (Some(epsilon), Some(delta), false) => Budget::new(epsilon, delta)
                .map(Some)
                .map_err(|e| self.refuse(e.key, e.what)),
            (None, None, false) => Err(ConfigError::general(
                "no budget: give --epsilon E --delta D (or [privacy] epsilon and delta), or --not-private",
            )),
            (_, _, true) => Err(self.refuse(
                "privacy.not_private",
                "contradicts epsilon and delta; keep one of the two",
            )),
            (Some(_), None, false) => Err(self.refuse(
                "privacy.epsilon",
                "needs delta beside it (smaller than 1/N)",
            )),
            (None, Some(_), false) => Err(self.refuse("privacy.delta", "needs epsilon beside it")),
        }
    }

    /// Lengths of the run.
    ///
    /// # Errors
    /// [`ConfigError`] for zeros.
    pub fn length(&self) -> Result<RunLength, ConfigError> {
        let run = &self.config.run;
        for (key, value) in [
            ("run.iterations", run.iterations),
            ("run.thin", run.thin),
            ("run.chains", self.chains() as u64),
        ] {
            if value == 0 {
                return Err(self.refuse(key, "must be at least 1"));
            }
        }
        if run.thin > run.iterations {
            let what = format!(
                "keeps every {}-th draw, and run.iterations = {} has none: everything would be spent on no draw; give at most that number, or more iterations",
                run.thin, run.iterations
            );
            return Err(self.refuse("run.thin", what));
        }
        if !(run.ess > 0.0 && run.ess.is_finite()) {
            return Err(self.refuse("run.ess", format!("must be positive, not {}", run.ess)));
        }
        if self.chains() > 65_536 {
            return Err(self.refuse("run.chains", "at most 65,536"));
        }
        Ok(RunLength {
            iterations: run.iterations,
            warmup: run.warmup,
            thin: run.thin,
        })
    }

    /// Starting points of all chains.
    ///
    /// # Errors
    /// [`ConfigError`] where the start is outside the support, or the prior is improper.
    pub fn starts(&self, model: &dyn Model, seed: [u8; 32]) -> Result<Vec<Vec<f64>>, ConfigError> {
        let (d, prior) = (model.dim(), model.prior());
        let refuse = |what: &str| Err(self.refuse("run.start", what));
        let point = match &self.config.run.start {
            // A fit and a secret chain start there too.
            StartEntry::Usual | StartEntry::Dpvi(_) | StartEntry::Ops(_) => {
                let start = model.usual_start();
                let blocks = prior.blocks();
                blocks.map_or(start.clone(), |blocks| blocks.usual_start(start))
            }
            StartEntry::Zero if prior.blocks().is_some_and(|b| !b.names().is_empty()) => {
                return refuse(
                    "the prior's density has a pole where all coefficients of a hierarchy or a horseshoe are 0, which no chain would leave; leave start out, or give { value = […] }",
                );
            }
            StartEntry::Zero => vec![0.0; d],
            StartEntry::Value(v) if v.len() == d => v.clone(),
            StartEntry::Value(v) => {
                return refuse(&format!("{} values for {d} parameters", v.len()));
            }
            StartEntry::Prior => {
                // Streams above the chains' own, so that no coin is used twice.
                return (0..self.chains())
                    .map(|c| {
                        let mut rng = stream(seed, (1 << 32) + c as u64);
                        prior.draw(&mut rng).ok_or_else(|| {
                            self.refuse("run.start", "the prior is improper; start from a value")
                        })
                    })
                    .collect();
            }
        };
        if !prior.contains(&point) {
            return refuse("lies outside the model's box");
        }
        Ok(vec![point; self.chains()])
    }
}
