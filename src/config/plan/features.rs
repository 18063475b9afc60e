//! `[[data.features]]` and `[[data.interactions]]`: what the columns of a table become.

use super::Plan;
use super::data::can_match;
use super::declared::Place;
use crate::config::ConfigError;
use crate::config::schema::{FeatureEntry, IndicatorEntry, ModelKind};
use crate::data::{Condition, Feature, FeatureKind, Form, Interaction, Number, OneHot};

/// What is wrong with a declaration: the key of it at fault, "" for all of it, and what to do.
type Wrong = (&'static str, String);

impl Plan {
    /// The declared features, one a column.
    pub(super) fn features(&self) -> Result<Vec<Feature>, ConfigError> {
        let mut features = Vec::new();
        for (place, entry) in &self.declared()?.features {
            if let Place::Key(key) = place {
                self.check_label_apart(key, entry)?;
            }
            let refuse = |(part, what): Wrong| self.refuse_feature(place, entry, part, &what);
            for feature in features_of(entry).map_err(refuse)? {
                feature.check().map_err(refuse)?;
                features.push(feature);
            }
        }
        if features.is_empty() {
            return Err(self.refuse("data.features", "declare at least one [[data.features]]"));
        }
        Ok(features)
    }

    /// The declared offset, checked; only regressions have a predictor that it could be added to.
    pub(super) fn offset(&self) -> Result<Option<Feature>, ConfigError> {
        let Some((place, entry)) = self.declared()?.offset else {
            return Ok(None);
        };
        if let Place::Key(key) = &place {
            self.check_label_apart(key, &entry)?;
        }
        let refuse = |(part, what): Wrong| self.refuse_feature(&place, &entry, part, &what);
        match self.config.model.kind {
            ModelKind::GaussianMean
            | ModelKind::Mixture
            | ModelKind::Banana
            | ModelKind::Mlp
            | ModelKind::Network => Err(refuse((
                "",
                "an offset belongs to regressions, which have a linear predictor to add it to; drop it"
                    .into(),
            ))),
            _ => {
                let made = features_of(&entry).map_err(refuse)?;
                for feature in &made {
                    feature.check().map_err(refuse)?;
                }
                Ok(made.into_iter().next())
            }
        }
    }

    /// The declared products of them.
    pub(super) fn interactions(
        &self,
        features: &[Feature],
    ) -> Result<Vec<Interaction>, ConfigError> {
        let mut interactions = Vec::new();
        for (place, entry) in &self.declared()?.interactions {
            let refuse = |what: String| self.refuse_interaction(place, &what);
            let interaction = Interaction::new(features, &entry.features).map_err(refuse)?;
            if let Some(j) = interactions
                .iter()
                .position(|other| interaction.equals(other))
            {
                return Err(refuse(format!(
                    "are those of data.interactions[{j}] in another order; drop one"
                )));
            }
            interactions.push(interaction);
        }
        Ok(interactions)
    }

    /// What the declarations alone say of a regression's features, for `dpmc check`; no row is
    /// read.
    ///
    /// # Errors
    /// [`ConfigError`], as for the table.
    pub fn notes_on_features(&self) -> Result<Vec<String>, ConfigError> {
        let data = &self.config.data;
        match self.config.model.kind {
            ModelKind::GaussianMean
            | ModelKind::Mixture
            | ModelKind::Banana
            | ModelKind::Mlp
            | ModelKind::Network => Ok(vec![]),
            kind => {
                let mut source = self.source(&data.file, data.label_file.as_ref())?;
                // Levels that share a prior are told apart from a constant by that.
                let pooled: Vec<String> = (self.hierarchies()?.into_iter())
                    .flat_map(|h| h.coefficients)
                    .collect();
                if !pooled.is_empty() {
                    let own = |f: &Feature| !f.names().iter().any(|n| pooled.contains(n));
                    source.features.retain(own);
                    source.interactions.clear();
                }
                if kind == ModelKind::Ordinal {
                    // Its cutpoints are one.
                    source.features.push(Feature {
                        column: None,
                        kind: FeatureKind::Intercept,
                        missing: None,
                    });
                }
                Ok(source.notes())
            }
        }
    }
}

/// One entry's features, one a column.
pub(super) fn features_of(entry: &FeatureEntry) -> Result<Vec<Feature>, Wrong> {
    if let Some(count) = entry.pixels {
        return pixels(entry, count);
    }
    check_companions(entry)?;
    let kinds = [
        entry.intercept.is_some(),
        entry.scale.is_some(),
        entry.clamp.is_some(),
        entry.one_hot.is_some(),
        entry.indicator.is_some(),
    ];
    let whole = |what: &str| Err(("", what.to_string()));
    if kinds.iter().filter(|k| **k).count() != 1 {
        return whole(
            "bounds are missing or contradict: give exactly one of intercept, scale = [low, high], clamp = [low, high], one_hot = […], indicator = { … }",
        );
    }
    if entry.intercept.is_some() {
        if entry.intercept == Some(false) || entry.column.is_some() || entry.columns.is_some() {
            return whole("write 'intercept = true' alone");
        }
        return Ok(vec![Feature {
            column: None,
            kind: FeatureKind::Intercept,
            missing: entry.missing,
        }]);
    }
    let indicator = entry.indicator.as_ref().and_then(|i| i.one_of.as_ref());
    for levels in entry.one_hot.iter().chain(indicator) {
        can_match(levels).map_err(|what| ("", what))?;
    }
    for levels in entry.groups.iter().flat_map(|g| g.values()) {
        can_match(levels).map_err(|what| ("groups", what))?;
    }
    let columns = columns(entry).map_err(|what| ("", what))?;
    let kind = kind(entry).map_err(|what| ("", what))?;
    Ok(columns
        .into_iter()
        .map(|column| Feature {
            column: Some(column),
            kind: kind.clone(),
            missing: entry.missing,
        })
        .collect())
}

/// The bytes of an image, from 0 to 1.
fn pixels(entry: &FeatureEntry, count: usize) -> Result<Vec<Feature>, Wrong> {
    let alone = FeatureEntry {
        pixels: entry.pixels,
        ..Default::default()
    };
    if *entry != alone || !(1..=1 << 20).contains(&count) {
        return Err(("", "write 'pixels = N' alone, N from 1 to 2^20".into()));
    }
    let form = Form::Standardized {
        mean: 0.0,
        sd: 255.0,
    };
    let kind = FeatureKind::Number(Number::new(0.0, 255.0, None, form));
    let feature = |j| Feature {
        column: Some(format!("x{j}")),
        kind: kind.clone(),
        missing: None,
    };
    Ok((0..count).map(feature).collect())
}

/// Keys that mean something beside others alone.
fn check_companions(e: &FeatureEntry) -> Result<(), Wrong> {
    let (scale, clamp, one_hot) = (e.scale.is_some(), e.clamp.is_some(), e.one_hot.is_some());
    let keys = [
        ("strict", e.strict.is_some(), one_hot, "one_hot"),
        ("reference", e.reference.is_some(), one_hot, "one_hot"),
        (
            "groups",
            e.groups.is_some(),
            one_hot,
            "one_hot, which may be []",
        ),
        (
            "transform",
            e.transform.is_some(),
            scale || clamp,
            "scale or clamp, whose bounds stay in raw units",
        ),
        (
            "standardize",
            e.standardize.is_some(),
            clamp,
            "clamp, whose bounds stay in raw units; scale has a unit of its own",
        ),
        (
            "polynomial",
            e.polynomial.is_some(),
            scale,
            "scale, whose bounds are the curve's range",
        ),
        (
            "spline",
            e.spline.is_some(),
            scale,
            "scale, whose bounds are its outer knots",
        ),
    ];
    for (key, given, fits, owner) in keys {
        if given && !fits {
            return Err((key, format!("'{key}' belongs to {owner}")));
        }
    }
    if e.spline.is_some() && e.polynomial.is_some() {
        let what = "'spline' and 'polynomial' are two curves of one column; keep one";
        return Err(("spline", what.into()));
    }
    Ok(())
}

/// The columns of an entry that reads some.
fn columns(entry: &FeatureEntry) -> Result<Vec<String>, String> {
    match (&entry.column, &entry.columns) {
        (Some(column), None) => Ok(vec![column.clone()]),
        (None, Some(columns)) if !columns.is_empty() => Ok(columns.clone()),
        _ => Err("give 'column' or 'columns'".into()),
    }
}

/// What an entry makes of a cell.
fn kind(entry: &FeatureEntry) -> Result<FeatureKind, String> {
    let number = |[low, high]: [f64; 2], form| {
        FeatureKind::Number(Number::new(low, high, entry.transform, form))
    };
    Ok(if let Some(bounds) = entry.scale {
        let form = match (entry.polynomial, &entry.spline) {
            (Some(degree), _) => Form::Polynomial(degree),
            (None, Some(spline)) => Form::Spline(spline.knots.clone()),
            (None, None) => Form::Scaled,
        };
        number(bounds, form)
    } else if let Some(bounds) = entry.clamp {
        let form = entry
            .standardize
            .as_ref()
            .map_or(Form::Kept, |s| Form::Standardized {
                mean: s.mean,
                sd: s.sd,
            });
        number(bounds, form)
    } else if let Some(levels) = &entry.one_hot {
        FeatureKind::OneHot(OneHot {
            levels: levels.clone(),
            groups: entry.groups.clone().unwrap_or_default(),
            strict: entry.strict.unwrap_or(false),
            reference: entry.reference.clone(),
        })
    } else {
        let indicator = entry.indicator.clone().unwrap_or_default();
        FeatureKind::Indicator(condition(indicator)?)
    })
}

fn condition(entry: IndicatorEntry) -> Result<Condition, String> {
    match (entry.one_of, entry.above, entry.below) {
        (Some(levels), None, None) => Ok(Condition::OneOf(levels)),
        (None, Some(v), None) => Ok(Condition::Above(v)),
        (None, None, Some(v)) => Ok(Condition::Below(v)),
        _ => Err("indicator needs exactly one of in, above, below".into()),
    }
}

#[cfg(test)]
mod tests;
