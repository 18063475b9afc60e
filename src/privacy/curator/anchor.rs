//! The release of an anchor: gradient and curvature of the log likelihood at a public θ*,
//! charged, computed and noised (mathematics, section 4.1).

use super::Curator;
use crate::engine::{AnchorQuery, AnchorSums};
use crate::model::{Metric, Slopes, check_anchorable};
use crate::privacy::event_key::EventKey;
use crate::privacy::mechanism::{self, AnchorVariances, MAX_VARIANCE, Secret};
use crate::privacy::releases::{AnchorNoise, Expansion, Halt};

impl Curator {
    /// The privacy events of an anchor's release: its gradient and its curvature.
    ///
    /// # Errors
    /// [`Halt::Refused`] for noise that cannot be drawn or charged.
    pub(crate) fn anchor_cost(noise: AnchorNoise) -> Result<[EventKey; 2], Halt> {
        anchor_events(variances(noise)?)
            .ok_or_else(|| Halt::Refused("the anchor's noise is not finite".into()))
    }

    /// Charges both releases, then makes them. See `Releases::anchor`.
    pub(super) fn release_anchor(
        &mut self,
        at: &[f64],
        metric: &Metric,
        noise: Option<AnchorNoise>,
    ) -> Result<Expansion, Halt> {
        self.stopped()?;
        self.check_unweighted()?;
        let d = self.own_model.dim();
        check_anchorable(&*self.own_model).map_err(|e| Halt::Refused(e.what))?;
        let slopes = self.own_model.slopes().ok_or_else(|| {
            Halt::Refused(format!("model '{}' has no anchor", self.own_model.name()))
        })?;
        let public = at.len() == d && at.iter().all(|v| v.is_finite()) && metric.dim() == d;
        if !public || !metric.is_valid() {
            return Err(Halt::Refused(
                "an anchor needs a finite point and a lower-triangular metric of the model's dimension"
                    .into(),
            ));
        }
        let variances = match (noise, self.ledger.is_some()) {
            (Some(noise), _) => Some(variances(noise)?),
            (None, false) => None,
            (None, true) => {
                return Err(Halt::Refused("a private anchor needs noise".into()));
            }
        };
        if let Some(v) = variances {
            self.charge_anchor(v)?;
        }
        let query = AnchorQuery { at, metric, slopes };
        let sums = self
            .engine
            .anchor_sums(&query)
            .map_err(|e| Halt::Failed(e.to_string()))?;
        let sums = mechanism::expansion(&mut self.secret, Secret::seal(sums), variances);
        Ok(self.in_nats(&sums, metric, &slopes, variances))
    }

    fn charge_anchor(&mut self, v: AnchorVariances) -> Result<(), Halt> {
        let Some(ledger) = &mut self.ledger else {
            return Ok(());
        };
        let keys = anchor_events(v)
            .ok_or_else(|| Halt::Refused("the anchor's noise is not finite".into()))?;
        let events = keys.map(|key| (key, 1));
        Ok(ledger.charge(&events, 0.0)?)
    }

    /// From integer units to nats, tempering and the model's unit included.
    fn in_nats(
        &self,
        sums: &AnchorSums,
        metric: &Metric,
        slopes: &Slopes,
        variances: Option<AnchorVariances>,
    ) -> Expansion {
        let d = sums.gradient.len();
        let unit = self.own_model.tempering() * self.own_model.unit();
        let g = unit * AnchorSums::gradient_unit(metric.row_bound, slopes);
        let c = unit * AnchorSums::curvature_unit(metric.row_bound, slopes);
        let mut curvature = vec![0.0; d * d];
        let mut triangle = sums.curvature.iter();
        for i in 0..d {
            for (j, sum) in triangle.by_ref().take(i + 1).enumerate() {
                curvature[i * d + j] = *sum as f64 * c;
                curvature[j * d + i] = curvature[i * d + j];
            }
        }
        let sd = |variance: fn(AnchorVariances) -> f64, unit: f64| {
            variances.map_or(0.0, |v| variance(v).sqrt() * unit)
        };
        Expansion {
            gradient: sums.gradient.iter().map(|s| *s as f64 * g).collect(),
            curvature,
            gradient_sd: sd(|v| v.gradient as f64, g),
            curvature_sd: sd(|v| 2.0 * v.curvature as f64, c),
        }
    }
}

/// Variances in squared units from the noise multipliers: σ = τΔ, rounded up.
fn variances(noise: AnchorNoise) -> Result<AnchorVariances, Halt> {
    let units = |tau: f64, squared: f64, key: &str| -> Result<u128, Halt> {
        let variance = (tau * tau * squared).ceil();
        if !(tau > 0.0 && variance >= 1.0 && variance < MAX_VARIANCE as f64 / 2.0) {
            return Err(Halt::Refused(format!(
                "the anchor's {key} noise multiplier must be positive and moderate, not {tau}"
            )));
        }
        Ok(variance as u128)
    };
    let gradient = AnchorSums::GRADIENT_SENSITIVITY.powi(2);
    Ok(AnchorVariances {
        gradient: units(noise.gradient, gradient, "gradient")?,
        curvature: units(
            noise.curvature,
            AnchorSums::CURVATURE_SENSITIVITY_SQUARED / 2.0,
            "curvature",
        )?,
    })
}

/// The two events: gradient with Δ²/(2σ²), curvature with Δ²/(4v), v the off-diagonal
/// variance.
fn anchor_events(v: AnchorVariances) -> Option<[EventKey; 2]> {
    let gradient = (v.gradient as f64).sqrt();
    let curvature = (2.0 * v.curvature as f64).sqrt();
    Some([
        EventKey::discrete_gaussian(AnchorSums::GRADIENT_SENSITIVITY, gradient)?,
        EventKey::discrete_gaussian(
            AnchorSums::CURVATURE_SENSITIVITY_SQUARED.sqrt() * (1.0 + 1e-15),
            curvature,
        )?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ρ = 1/(2τ²) each: σ = τΔ.
    #[test]
    fn an_anchor_costs_its_two_gaussians() {
        for (a, b) in [(1.0, 2.0), (0.3, 5.0), (20.0, 0.7)] {
            let noise = AnchorNoise {
                gradient: a,
                curvature: b,
            };
            let keys = anchor_events(variances(noise).unwrap()).unwrap();
            for (key, tau) in keys.iter().zip([a, b]) {
                let rho = 0.5 / (tau * tau);
                let charged = key.rho().unwrap();
                assert!(charged >= rho * (1.0 - 1e-9) && charged < rho * (1.0 + 1e-4));
            }
        }
        for bad in [0.0, -1.0, f64::NAN, 1e30] {
            let noise = AnchorNoise {
                gradient: bad,
                curvature: 1.0,
            };
            assert!(variances(noise).is_err());
        }
    }
}
