//! Runs of what follows released gradients, repeated through private curators of D and D', each
//! paid for.

use ndarray::Array2;
use rand::{RngExt, SeedableRng};

use super::adversary::Adversary;
use super::gradient::{DIM, DRAWS, GradientCase, GradientRun};
use super::{AuditError, Settings};
use crate::model::Prior;
use crate::privacy::accountant::Budget;
use crate::privacy::accountant::EventKey;
use crate::privacy::accountant::Measure;
use crate::privacy::ledger::Ledger;
use crate::privacy::releases::{Halt, Releases};
use crate::sampler::{Chains, Dpvi, PublicRng};

/// Most runs made in lockstep.
const MOST_CHAINS: f64 = 2048.0;

/// Both curators, and what reads their answers.
pub(super) struct Runs<'a> {
    case: &'a GradientCase,
    pub(super) adversaries: [Adversary; 2],
    /// Of public streams.
    coins: PublicRng,
    chains: usize,
}

impl<'a> Runs<'a> {
    pub(super) fn open(
        case: &'a GradientCase,
        keys: &[(EventKey, u64)],
        settings: &Settings,
    ) -> Result<Self, AuditError> {
        let budget = Budget::new(1000.0, 0.5).map_err(|e| Halt::Refused(e.to_string()))?;
        let measure = Measure::without_order(keys.iter().map(|(key, _)| *key))
            .unwrap_or(Measure::Renyi { order: 2.0 });
        let mut dearest = 0.0f64;
        for (key, _) in keys {
            let price = measure.price(*key, budget).map_err(Halt::Refused)?;
            dearest = dearest.max(price.cost.nats());
        }
        let affords = measure.limit(budget) / dearest;
        let chains = match case.run {
            GradientRun::Variational => DRAWS,
            _ => affords.floor().min(MOST_CHAINS) as usize,
        };
        if affords.is_nan() || affords < chains as f64 || chains == 0 {
            return Err(AuditError::setting(
                "algorithm",
                "one step of this case costs more than any ledger holds",
            ));
        }
        let open = |neighbour| -> Result<Adversary, AuditError> {
            let ledger = Ledger::counting(budget, measure);
            let engine = (settings.engine, chains);
            let curator = case.curator(neighbour, engine, ledger, settings.seed)?;
            Ok(Adversary::new(curator))
        };
        Ok(Runs {
            case,
            adversaries: [open(false)?, open(true)?],
            coins: PublicRng::seed_from_u64(settings.seed.unwrap_or_else(rand::random)),
            chains,
        })
    }

    /// The scores of some runs on D (0) or D' (1), at most `most`.
    pub(super) fn make(
        &mut self,
        neighbour: usize,
        steps: u32,
        most: u64,
    ) -> Result<Vec<f64>, AuditError> {
        let adversary = &mut self.adversaries[neighbour];
        let seed: [u8; 32] = self.coins.random();
        if self.case.run == GradientRun::Variational {
            let fit = Dpvi {
                steps: u64::from(steps),
                learning_rate: 0.05,
                draws_per_step: DRAWS,
                scale: None,
            };
            let mut rng = PublicRng::from_seed(seed);
            let prior = Prior::normal(DIM, 1.0);
            fit.run(&prior, &[0.0; DIM], self.case.noise(), adversary, &mut rng)?;
            return Ok(vec![adversary.take_scores().iter().sum()]);
        }
        let count = most.min(self.chains as u64) as usize;
        let mut chains = Chains::new(&vec![vec![0.0; DIM]; count], seed);
        let mut sampler = self.case.sampler()?;
        for _ in 0..steps {
            match &mut sampler {
                Some(sampler) => sampler.step(&mut chains, adversary).map(|_| ())?,
                None => {
                    let thetas = Array2::zeros((count, DIM));
                    adversary.gradients(thetas.view(), self.case.noise())?;
                }
            }
        }
        Ok(adversary.take_scores())
    }
}
