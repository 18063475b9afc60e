//! `[sampler.anchor]` of models that released moments tell: degree, and the budget's division.

use super::Plan;
use super::anchor::MARGIN;
use crate::config::ConfigError;
use crate::config::schema::{AnchorSection, SamplerSection};
use crate::model::{MOST_MOMENTS, Model, MomentBasis, MomentForm};
use crate::privacy::{Acceptance, Curator, Estimator};
use crate::sampler::{MomentSettings, typical_moment_clip};

/// Highest degree of a mixture's moments.
const DEGREE: usize = 12;

impl Plan {
    /// Settings of a run on moments.
    pub(super) fn moment_settings(
        &self,
        s: &SamplerSection,
        section: &AnchorSection,
        model: &dyn Model,
        (rows, row_norm): (usize, f64),
        rule: (Estimator, Acceptance),
    ) -> Result<MomentSettings, ConfigError> {
        let basis = self.moment_basis(section, model, row_norm)?;
        self.check_moment_keys(s, section)?;
        let d = model.dim();
        let step = s.step.unwrap_or(2.38 / (d as f64).sqrt());
        let preconditioner = self.preconditioner(s, d)?;
        let share = self.moment_share(s)?;
        let typical = share * typical_moment_clip(model, &basis, step, &preconditioner);
        let mut settings = MomentSettings {
            degree: basis.degree,
            rho: None,
            share,
            typical_clip: typical,
        };
        let Some(budget) = self.budget()? else {
            return Ok(settings);
        };
        let (rho, measure) = self.left_for_steps(model, budget)?;
        settings.rho = Some(match section.moments {
            Some(share) if share > 0.0 && share < 1.0 => share * rho,
            Some(share) => {
                return Err(self.refuse(
                    "sampler.anchor.moments",
                    format!("is a share of the budget and must lie between 0 and 1, not {share}"),
                ));
            }
            None => {
                let price = match Curator::cost(rows, typical, rule.0, rule.1) {
                    Ok(key) => key.map_or(0.0, |(key, _)| self.price_of(key, measure, budget)),
                    Err(e) => return Err(self.refuse("sampler.clip", e.to_string())),
                };
                rho - self.moment_steps(rho, price, rule.1)?
            }
        });
        Ok(settings)
    }

    fn moment_basis(
        &self,
        section: &AnchorSection,
        model: &dyn Model,
        row_norm: f64,
    ) -> Result<MomentBasis, ConfigError> {
        let degree = match (model.moment_form(), section.degree) {
            (Some(MomentForm::Mixture { .. }), given) => given.unwrap_or(DEGREE),
            (_, None) => 1,
            (_, Some(_)) => {
                return Err(self.refuse(
                    "sampler.anchor.degree",
                    format!(
                        "a {} needs no more than the sums of its columns; leave it out",
                        self.model_name(model)
                    ),
                ));
            }
        };
        let basis = MomentBasis {
            degree,
            features: model.features(),
            bound: row_norm,
        };
        if basis.is_valid() {
            return Ok(basis);
        }
        Err(self.refuse(
            "sampler.anchor.degree",
            format!("must lie between 1 and {MOST_MOMENTS}, not {degree}"),
        ))
    }

    /// Keys of the other kind of anchor.
    fn check_moment_keys(
        &self,
        s: &SamplerSection,
        section: &AnchorSection,
    ) -> Result<(), ConfigError> {
        let foreign = [
            ("sampler.proposal", s.proposal.is_some()),
            ("sampler.anchor.stages", section.stages.is_some()),
            ("sampler.anchor.start", section.start.is_some()),
            ("sampler.anchor.gradient", section.gradient.is_some()),
            ("sampler.anchor.curvature", section.curvature.is_some()),
            ("sampler.anchor.refresh", section.refresh.is_some()),
            ("sampler.anchor.decisions", section.decisions.is_some()),
            ("sampler.anchor.clip", section.clip.is_some()),
            ("sampler.anchor.radius", section.radius.is_some()),
        ];
        match foreign.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((key, _)) => Err(self.refuse(
                key,
                "belongs to regressions, which are expanded at a point; here moments of the rows are released, and moves are a random walk's ('step', 'scale', 'covariance', 'adapt')",
            )),
        }
    }

    fn moment_share(&self, s: &SamplerSection) -> Result<f64, ConfigError> {
        let Some(clip) = &s.clip else {
            return Ok(1.0);
        };
        match (clip.share, clip.rate, clip.rms, clip.norm) {
            (Some(share), None, None, None) if share > 0.0 && share.is_finite() => Ok(share),
            _ => Err(self.refuse(
                "sampler.clip",
                "an anchored sampler clips remainders: give { share = … }, positive",
            )),
        }
    }

    /// ρ kept for the steps, each of this price: what they are expected to cost with a margin,
    /// between a hundredth and half of the budget.
    fn moment_steps(
        &self,
        rho: f64,
        price: f64,
        acceptance: Acceptance,
    ) -> Result<f64, ConfigError> {
        let length = self.length()?;
        let steps = (length.iterations as f64 + length.warmup as f64) * self.chains() as f64;
        let margin = match acceptance {
            Acceptance::Penalty { .. } => 1.0 + 1e-4,
            _ => MARGIN,
        };
        Ok((margin * steps * price).clamp(0.01 * rho, 0.5 * rho))
    }
}
