//! A run may be stopped and taken up again: the caller's flag, which long steps look at between
//! two releases, and coins of its own for every session of a seeded run without privacy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Curator;
use crate::privacy::mechanism::SecretRng;
use crate::privacy::releases::Halt;
use crate::privacy::{Ledger, LedgerFileError, PaidRun};

impl Curator {
    /// Once `flag` is set, [`Curator::stopped`] says so.
    pub(crate) fn stop_when(&mut self, flag: Arc<AtomicBool>) {
        self.stop = Some(flag);
    }

    /// # Errors
    /// [`Halt::Interrupted`] where the caller's flag is set. Asked before anything is charged; it
    /// follows the caller's clock and no row.
    pub(crate) fn stopped(&self) -> Result<(), Halt> {
        match &self.stop {
            Some(flag) if flag.load(Ordering::SeqCst) => Err(Halt::Interrupted),
            _ => Ok(()),
        }
    }

    /// A saved run is taken up for the `session`-th time; `paid` is what its ledger had seen of it.
    /// Without privacy and with a fixed seed its coins would start anew and repeat those of the
    /// first session. Private coins are fresh, or follow the ledger's position where a seed was
    /// given; none are ever saved.
    ///
    /// # Errors
    /// A message where the ledger did not pay for the run, or has seen this session already.
    pub(crate) fn take_up(&mut self, paid: Option<&PaidRun>, session: u64) -> Result<(), String> {
        match (paid, &mut self.ledger) {
            (None, None) => {
                if let Some(seed) = self.seed {
                    self.secret = SecretRng::from_seed(seed, u128::from(session));
                }
                Ok(())
            }
            (Some(paid), Some(ledger)) => ledger.accept(paid, session),
            (None, Some(_)) => Err("the saved draws are not private".into()),
            (Some(_), None) => Err("the saved run is private; so must its resumption be".into()),
        }
    }

    /// Settles the ledger: what was charged stays charged, what was only reserved goes back.
    ///
    /// # Errors
    /// [`LedgerFileError`] where the file cannot be written; the reservation stands.
    pub(crate) fn settle(&mut self) -> Result<(), LedgerFileError> {
        self.ledger.as_mut().map_or(Ok(()), Ledger::settle)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ndarray::{Array2, ArrayView2};

    use super::*;
    use crate::config::Plan;
    use crate::engine::EngineChoice;
    use crate::model::{Metric, Prior, Regression};
    use crate::privacy::releases::{
        Acceptance, AnchorNoise, Batch, Estimator, Expansion, GradientNoise, Moves, Releases,
    };
    use crate::privacy::{Budget, Ledger};
    use crate::sampler::{Dpvi, Sampler, stream};
    use crate::synthetic;

    /// A caller who stops the curator after so many releases.
    struct Caller {
        curator: Curator,
        flag: Arc<AtomicBool>,
        left: u64,
    }

    impl Caller {
        fn new(releases: u64) -> Self {
            let data = synthetic::logistic(200, &[1.5, -1.0], 5).unwrap();
            let prior = Prior::normal(2, 1.0);
            let model = Regression::logistic(data.features(), data.row_norm(), prior, 1.0).unwrap();
            let ledger = Ledger::in_memory(Budget::new(500.0, 1e-6).unwrap());
            let engine = EngineChoice::Cpu;
            let mut curator =
                Curator::private(data, Arc::new(model), engine, ledger, Some(1)).unwrap();
            let flag = Arc::new(AtomicBool::new(false));
            curator.stop_when(flag.clone());
            Caller {
                curator,
                flag,
                left: releases,
            }
        }

        fn released(&mut self) {
            self.left -= 1;
            self.flag.store(self.left == 0, Ordering::SeqCst);
        }

        fn charged(&self) -> u64 {
            let events = self.curator.ledger().unwrap().events();
            events.iter().map(|(_, count)| count).sum()
        }
    }

    impl Releases for Caller {
        fn check_stop(&self) -> Result<(), Halt> {
            self.curator.stopped()
        }

        fn decide(
            &mut self,
            moves: &Moves<'_>,
            estimator: Estimator,
            rule: Acceptance,
            accepted: &mut [bool],
        ) -> Result<(), Halt> {
            self.curator.decide(moves, estimator, rule, accepted)
        }

        fn anchor(
            &mut self,
            at: &[f64],
            metric: &Metric,
            noise: AnchorNoise,
        ) -> Result<Expansion, Halt> {
            let answer = self.curator.anchor(at, metric, noise)?;
            self.released();
            Ok(answer)
        }

        fn gradients(
            &mut self,
            thetas: ArrayView2<'_, f64>,
            noise: GradientNoise,
        ) -> Result<Array2<f64>, Halt> {
            let answer = self.curator.gradients(thetas, noise)?;
            self.released();
            Ok(answer)
        }
    }

    #[test]
    fn a_fit_ends_after_the_release_that_it_was_stopped_in() {
        let mut caller = Caller::new(7);
        let fit = Dpvi {
            steps: 100,
            learning_rate: 0.01,
            draws_per_step: 1,
            scale: None,
        };
        let noise = GradientNoise {
            clip: Some(1.0),
            batch: Batch::All,
            sigma: 100.0,
        };
        let (prior, mut rng) = (Prior::normal(2, 1.0), stream([1; 32], 0));
        let halt = fit.run(&prior, &[0.0; 2], noise, &mut caller, &mut rng);
        assert!(matches!(halt, Err(Halt::Interrupted)), "{halt:?}");
        assert_eq!(caller.charged(), 7);
    }

    #[test]
    fn a_warm_start_ends_after_the_stage_that_it_was_stopped_in() {
        let text = "[data]\nfile = \"made up\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"a\", \"b\"]\nclamp = [-3, 3]\n[model]\nkind = \"logistic\"\nprior = { kind = \"normal\", sd = 1.0 }\n[sampler]\nalgorithm = \"anchored-barker\"\nclip = { share = 1e-4 }\nanchor = { stages = 9 }\n[privacy]\nepsilon = 500.0\ndelta = 1e-6\n";
        let plan = Plan::parse(Path::new("made-up.toml"), text.into()).unwrap();
        let mut caller = Caller::new(4);
        let model = caller.curator.model().clone();
        let sampler = plan.sampler(&*model, 200, caller.curator.row_norm).unwrap();
        let Sampler::Walk(walk) = sampler else {
            panic!("no walk");
        };
        let halt = walk.release_anchor(&mut caller);
        assert!(matches!(halt, Err(Halt::Interrupted)), "{halt:?}");
        // Two curvatures at the start; gradient, curvature and profile of the first stage of nine.
        assert_eq!(caller.charged(), 5);
    }
}
