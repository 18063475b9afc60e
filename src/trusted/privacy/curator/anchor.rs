//! The release of an anchor: gradient, curvature and profile of the log likelihood at a public
//! θ*, charged, computed and noised (docs/proofs/anchors.md).

use super::{Curator, SINGLE_ROWS};
use crate::engine::{AnchorParts, AnchorQuery, AnchorSums};
use crate::model::{Metric, Profile, check_anchorable};
use crate::privacy::accountant::{Alone, EventKey};
use crate::privacy::mechanism::{self, AnchorVariances, MAX_ANCHOR_VARIANCE, Secret};
use crate::privacy::releases::{AnchorNoise, Expansion, Halt};

impl Curator {
    /// The privacy events of what is released at a point.
    ///
    /// # Errors
    /// [`Halt::Refused`] for noise that cannot be drawn or charged.
    pub(in crate::trusted) fn anchor_cost(noise: AnchorNoise) -> Result<Vec<EventKey>, Halt> {
        anchor_events(variances(noise)?)
    }

    /// Charges the releases, then makes them. See `Releases::anchor`.
    pub(super) fn release_anchor(
        &mut self,
        at: &[f64],
        metric: &Metric,
        noise: AnchorNoise,
    ) -> Result<Expansion, Halt> {
        self.stopped()?;
        self.check_unweighted()?;
        let d = self.own_model.dim();
        check_anchorable(&*self.own_model).map_err(|e| Halt::Refused(e.what))?;
        let slopes = self.own_model.slopes().ok_or_else(|| {
            Halt::Refused(format!("model '{}' has no anchor", self.own_model.name()))
        })?;
        if self.unit.is_some() && slopes.predictor.is_network() {
            return Err(Halt::Refused(SINGLE_ROWS.into()));
        }
        let public = at.len() == d && at.iter().all(|v| v.is_finite()) && metric.dim() == d;
        if !public || !metric.is_valid() {
            return Err(Halt::Refused(
                "an anchor needs a finite point and a lower-triangular metric of the model's dimension"
                    .into(),
            ));
        }
        let slopes = slopes
            .of_units(self.unit.as_ref().map_or(1, |u| u.rows))
            .at(at)
            .lighter(noise.largest_weight);
        let variances = variances(noise)?;
        self.charge_anchor(variances)?;
        let parts = AnchorParts {
            gradient: noise.gradient.is_some(),
            curvature: noise.curvature.is_some(),
            profile: noise.profile.map(|_| noise.profile_of),
        };
        let query = AnchorQuery {
            at,
            metric,
            slopes,
            parts,
        };
        let sums = self
            .engine
            .anchor_sums(&query)
            .map_err(|e| Halt::Failed(e.to_string()))?;
        let sums = mechanism::expansion(&mut self.secret, Secret::seal(sums), variances);
        Ok(self.in_nats(&sums, &query, variances))
    }

    fn charge_anchor(&mut self, v: AnchorVariances) -> Result<(), Halt> {
        let Some(ledger) = &mut self.ledger else {
            return Ok(());
        };
        let events: Vec<(EventKey, u64)> =
            anchor_events(v)?.into_iter().map(|key| (key, 1)).collect();
        Ok(ledger.charge(&events, 0.0)?)
    }

    /// Weighs rows for remainders at this anchor.
    pub(super) fn weigh_rows(&mut self, at: &[f64], metric: &Metric) -> Result<(), Halt> {
        let Some(slopes) = self.own_model.slopes() else {
            return Ok(());
        };
        let query = AnchorQuery {
            at,
            metric,
            slopes,
            parts: AnchorParts {
                gradient: false,
                curvature: false,
                profile: None,
            },
        };
        let done = self.engine.weigh_rows(&query);
        done.map_err(|e| Halt::Failed(e.to_string()))
    }

    /// From integer units to nats, tempering and the model's unit included.
    fn in_nats(
        &self,
        sums: &AnchorSums,
        query: &AnchorQuery<'_>,
        variances: AnchorVariances,
    ) -> Expansion {
        let (metric, slopes) = (query.metric, &query.slopes);
        let unit = self.own_model.tempering() * self.own_model.unit();
        let g = unit * AnchorSums::gradient_unit(metric.row_bound, slopes);
        let c = unit * AnchorSums::curvature_unit(metric.row_bound, slopes);
        let w = match query.parts.profile {
            Some(Profile::Gradients) => AnchorSums::row_unit(slopes),
            Some(Profile::Norms) | None => unit * AnchorSums::weight_unit(slopes),
        };
        let d = metric.dim();
        let mut curvature = Vec::new();
        if !sums.curvature.is_empty() {
            curvature = vec![0.0; d * d];
            let mut triangle = sums.curvature.iter();
            for i in 0..d {
                for (j, sum) in triangle.by_ref().take(i + 1).enumerate() {
                    curvature[i * d + j] = *sum as f64 * c;
                    curvature[j * d + i] = curvature[i * d + j];
                }
            }
        }
        let sd =
            |variance: Option<u128>, unit: f64| variance.map_or(0.0, |v| (v as f64).sqrt() * unit);
        Expansion {
            gradient: sums.gradient.iter().map(|s| *s as f64 * g).collect(),
            curvature,
            profile: sums.profile.iter().map(|s| *s as f64 * w).collect(),
            gradient_sd: sd(variances.gradient, g),
            curvature_sd: sd(variances.curvature.map(|v| 2 * v), c),
            profile_sd: sd(variances.profile, w),
        }
    }
}

/// Variances in squared units from the noise multipliers: σ = τΔ, rounded up; 0 for τ = 0.
fn variances(noise: AnchorNoise) -> Result<AnchorVariances, Halt> {
    let units = |tau: Option<f64>, squared: f64, key: &str| -> Result<Option<u128>, Halt> {
        let Some(tau) = tau else { return Ok(None) };
        if tau == 0.0 {
            return Ok(Some(0));
        }
        let variance = (tau * tau * squared).ceil();
        if !(tau > 0.0 && variance >= 1.0 && variance < MAX_ANCHOR_VARIANCE as f64 / 2.0) {
            return Err(Halt::Refused(format!(
                "the anchor's {key} noise multiplier must be positive and moderate, not {tau}"
            )));
        }
        Ok(Some(variance as u128))
    };
    let gradient = AnchorSums::GRADIENT_SENSITIVITY.powi(2);
    let curvature = AnchorSums::CURVATURE_SENSITIVITY_SQUARED / 2.0;
    let profile = AnchorSums::PROFILE_SENSITIVITY_SQUARED;
    Ok(AnchorVariances {
        gradient: units(noise.gradient, gradient, "gradient")?,
        curvature: units(noise.curvature, curvature, "curvature")?,
        profile: units(noise.profile, profile, "profile")?,
    })
}

/// One event a part: gradient and profile with Δ²/(2σ²), curvature with Δ²/(4v), v the
/// off-diagonal variance. A private run has no exact part.
fn anchor_events(v: AnchorVariances) -> Result<Vec<EventKey>, Halt> {
    let curvature = v.curvature.map(|v| 2 * v);
    let slack = 1.0 + 1e-15;
    let parts = [
        (AnchorSums::GRADIENT_SENSITIVITY, v.gradient, Alone::Half),
        (
            AnchorSums::CURVATURE_SENSITIVITY_SQUARED.sqrt() * slack,
            curvature,
            Alone::RootHalf,
        ),
        (
            AnchorSums::PROFILE_SENSITIVITY_SQUARED.sqrt() * slack,
            v.profile,
            Alone::RootHalf,
        ),
    ];
    let mut keys = Vec::new();
    for (sensitivity, variance, alone) in parts {
        let Some(variance) = variance else { continue };
        if variance == 0 {
            return Err(Halt::Refused("a private anchor needs noise".into()));
        }
        let sigma = (variance as f64).sqrt();
        let key = EventKey::gaussian_of_rows(sensitivity, sigma, alone);
        keys.push(key.ok_or_else(|| Halt::Refused("the anchor's noise is not finite".into()))?);
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ρ = 1/(2τ²) each: σ = τΔ.
    #[test]
    fn an_anchor_costs_its_two_gaussians() {
        for (a, b) in [(1.0, 2.0), (0.3, 5.0), (20.0, 0.7)] {
            let noise = AnchorNoise {
                profile: Some(a + b),
                ..AnchorNoise::expansion(a, b)
            };
            let keys = anchor_events(variances(noise).unwrap()).unwrap();
            assert_eq!(keys.len(), 3);
            for (key, tau) in keys.iter().zip([a, b, a + b]) {
                let rho = 0.5 / (tau * tau);
                let charged = key.rho().unwrap();
                assert!(charged >= rho * (1.0 - 1e-9) && charged < rho * (1.0 + 1e-4));
            }
        }
        // For a row that is left out: half of the gradient's change, 1/√2 of the others'.
        let noise = AnchorNoise {
            profile: Some(2.0),
            ..AnchorNoise::expansion(2.0, 2.0)
        };
        let keys = anchor_events(variances(noise).unwrap()).unwrap();
        for (key, share) in keys.iter().zip([0.25, 0.5, 0.5]) {
            let rho = key.zero_out().rho().unwrap() / key.rho().unwrap();
            assert!((rho / share - 1.0).abs() < 1e-3, "{rho} {share}");
        }
        assert!(anchor_events(variances(AnchorNoise::expansion(0.0, 1.0)).unwrap()).is_err());
        // ε = 0.01: a curvature that gets a hundredth of its ρ.
        assert!(anchor_events(variances(AnchorNoise::expansion(1e4, 5e3)).unwrap()).is_ok());
        for bad in [-1.0, f64::NAN, 1e30] {
            assert!(variances(AnchorNoise::expansion(bad, 1.0)).is_err());
        }
    }
}
