//! The release of the rows' moments: charged, computed and noised (docs/proofs/anchors.md).

use super::Curator;
use crate::engine::MomentSums;
use crate::model::{MomentBasis, Moments, moment_form};
use crate::privacy::accountant::{Alone, EventKey};
use crate::privacy::mechanism::{self, MAX_VARIANCE, Secret};
use crate::privacy::releases::{Halt, MomentNoise};

impl Curator {
    /// The privacy event of a release of moments.
    ///
    /// # Errors
    /// [`Halt::Refused`] for noise that cannot be drawn or charged.
    pub(in crate::trusted) fn moments_cost(noise: MomentNoise) -> Result<EventKey, Halt> {
        let sigma = (variance(noise)? as f64).sqrt();
        EventKey::gaussian_of_rows(MomentSums::SENSITIVITY, sigma, Alone::Half)
            .ok_or_else(|| Halt::Refused("the moments' noise is not finite".into()))
    }

    /// Charges, then releases. See `Releases::moments`.
    pub(super) fn release_moments(
        &mut self,
        degree: usize,
        noise: Option<MomentNoise>,
    ) -> Result<Moments, Halt> {
        self.check_unweighted()?;
        moment_form(&*self.own_model).map_err(|e| Halt::Refused(e.what))?;
        let basis = MomentBasis {
            degree,
            features: self.own_model.features(),
            bound: self.row_norm,
        };
        if !basis.is_valid() {
            return Err(Halt::Refused(format!(
                "there are no moments of degree {degree} of {} column(s)",
                basis.features
            )));
        }
        if noise.is_none() && self.ledger.is_some() {
            return Err(Halt::Refused("private moments need noise".into()));
        }
        let variance = noise.map(variance).transpose()?;
        if let (Some(noise), Some(ledger)) = (noise, &mut self.ledger) {
            ledger.charge(&[(Self::moments_cost(noise)?, 1)], 0.0)?;
        }
        let sums = self
            .engine
            .moment_sums(&basis)
            .map_err(|e| Halt::Failed(e.to_string()))?;
        let sums = mechanism::moments(&mut self.secret, Secret::seal(sums), variance);
        let units: Vec<f64> = (0..basis.len())
            .map(|k| MomentSums::unit(&basis, k))
            .collect();
        let sd = variance.map_or(0.0, |v| (v as f64).sqrt());
        Ok(Moments {
            basis,
            rows: self.rows() as f64,
            sums: sums
                .iter()
                .zip(&units)
                .map(|(s, u)| *s as f64 * u)
                .collect(),
            sds: units.iter().map(|u| sd * u).collect(),
        })
    }
}

/// σ² in squared units, σ = τΔ, rounded up.
fn variance(noise: MomentNoise) -> Result<u128, Halt> {
    let variance = (noise.tau * MomentSums::SENSITIVITY).powi(2).ceil();
    if !(noise.tau > 0.0 && variance >= 1.0 && variance < MAX_VARIANCE as f64) {
        return Err(Halt::Refused(format!(
            "the moments' noise multiplier must be positive and moderate, not {}",
            noise.tau
        )));
    }
    Ok(variance as u128)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ρ = 1/(2τ²).
    #[test]
    fn moments_cost_one_gaussian() {
        for tau in [0.3, 1.0, 25.0] {
            let rho = Curator::moments_cost(MomentNoise { tau })
                .unwrap()
                .rho()
                .unwrap();
            let expected = 0.5 / (tau * tau);
            assert!(rho >= expected * (1.0 - 1e-9) && rho < expected * (1.0 + 1e-4));
        }
        for tau in [0.0, -1.0, f64::NAN, 1e30] {
            assert!(Curator::moments_cost(MomentNoise { tau }).is_err());
        }
    }
}
