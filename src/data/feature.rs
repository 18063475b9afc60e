//! From declared columns to features: bounds and levels come from the run file,
//! nothing is estimated from rows.

const MISSING_LEVEL: &str = "is missing; declare 'missing = 0' or 'missing = 1' for this feature, or name the level (\"\" for an empty cell)";

/// A value as a table reader hands it over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    Text(&'a str),
    Number(f64),
    Missing,
}

/// One declared source of features.
#[derive(Clone, Debug)]
pub struct Feature {
    /// The column read; `None` for the intercept.
    pub column: Option<String>,
    /// How the column becomes features.
    pub kind: FeatureKind,
    /// What stands for a missing cell: a value in the column's own units, for an indicator
    /// of texts the feature's own, 0 or 1. Without one a missing cell is an error, but for
    /// one-hot levels.
    pub missing: Option<f64>,
}

/// How one column becomes features.
#[derive(Clone, Debug)]
pub enum FeatureKind {
    /// The constant 1.
    Intercept,
    /// Clamped to `[low, high]` and mapped linearly onto `[−1, 1]`.
    Scale {
        /// Declared lower bound.
        low: f64,
        /// Declared upper bound.
        high: f64,
    },
    /// Clamped to `[low, high]`, in the column's own units.
    Clamp {
        /// Declared lower bound.
        low: f64,
        /// Declared upper bound.
        high: f64,
    },
    /// One 0/1 feature for each declared level but the reference, and one for anything else
    /// (missing cells too) unless `strict`.
    OneHot {
        /// Declared levels.
        levels: Vec<String>,
        /// Refuse undeclared levels instead of giving them a feature.
        strict: bool,
        /// The declared level whose rows are 0 in all of these features: without one they
        /// add up to 1, which is the intercept.
        reference: Option<String>,
    },
    /// 1 where the condition holds, else 0; a missing cell holds only the level "".
    Indicator(Condition),
}

/// The condition of an indicator feature.
#[derive(Clone, Debug)]
pub enum Condition {
    /// The cell is one of these texts.
    OneOf(Vec<String>),
    /// The cell is a number above this.
    Above(f64),
    /// The cell is a number below this.
    Below(f64),
}

impl Feature {
    /// Names of the features this declaration makes, in order.
    pub fn names(&self) -> Vec<String> {
        let column = self.column.as_deref().unwrap_or("intercept");
        match &self.kind {
            FeatureKind::Intercept => vec!["intercept".into()],
            FeatureKind::Scale { .. } | FeatureKind::Clamp { .. } => vec![column.into()],
            FeatureKind::Indicator(Condition::OneOf(levels)) => match levels.as_slice() {
                [one] => vec![format!("{column}={one}")],
                _ => vec![format!("{column}=({})", levels.join("|"))],
            },
            FeatureKind::Indicator(Condition::Above(v)) => vec![format!("{column}>{v}")],
            FeatureKind::Indicator(Condition::Below(v)) => vec![format!("{column}<{v}")],
            FeatureKind::OneHot {
                levels,
                strict,
                reference,
            } => {
                let kept = levels.iter().filter(|l| reference.as_ref() != Some(*l));
                let mut names: Vec<String> = kept.map(|l| format!("{column}={l}")).collect();
                if !strict {
                    names.push(format!("{column}=other"));
                }
                names
            }
        }
    }

    /// Largest contribution of this declaration to a row's squared norm.
    pub fn max_square(&self) -> f64 {
        match &self.kind {
            FeatureKind::Clamp { low, high } => (low * low).max(high * high),
            _ => 1.0,
        }
    }

    /// Checks the declaration itself.
    ///
    /// # Errors
    /// What is wrong, for the caller to put behind the declaration's key: reversed, equal
    /// or non-finite bounds, empty or repeated levels, a `missing` that nothing reads or
    /// that lies outside the bounds.
    pub fn validate(&self) -> Result<(), String> {
        self.check().map_err(|(_, what)| what)
    }

    /// As [`Feature::validate`], with the key of the declaration at fault; "" for all of it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        self.check_kind().map_err(|what| ("", what))?;
        self.check_reference().map_err(|what| ("reference", what))?;
        self.check_missing().map_err(|what| ("missing", what))
    }

    fn check_kind(&self) -> Result<(), String> {
        match &self.kind {
            FeatureKind::Scale { low, high } | FeatureKind::Clamp { low, high } => {
                if !(low.is_finite() && high.is_finite()) {
                    return Err("bounds must be finite numbers".into());
                }
                if low >= high {
                    return Err(format!(
                        "bounds are reversed or equal: [{low}, {high}]; write [low, high]"
                    ));
                }
            }
            FeatureKind::OneHot { levels, .. }
            | FeatureKind::Indicator(Condition::OneOf(levels)) => {
                if levels.is_empty() {
                    return Err("declare at least one level".into());
                }
                for (i, level) in levels.iter().enumerate() {
                    if levels[..i].contains(level) {
                        return Err(format!("level '{level}' is declared twice"));
                    }
                }
            }
            FeatureKind::Indicator(Condition::Above(v) | Condition::Below(v)) => {
                if !v.is_finite() {
                    return Err("the threshold must be a finite number".into());
                }
            }
            FeatureKind::Intercept => {}
        }
        Ok(())
    }

    fn check_reference(&self) -> Result<(), String> {
        match &self.kind {
            FeatureKind::OneHot {
                levels,
                strict,
                reference: Some(reference),
            } => {
                if !levels.contains(reference) {
                    return Err(format!(
                        "'{reference}' is none of the levels of one_hot; name one of them"
                    ));
                }
                if *strict && levels.len() == 1 {
                    return Err("leaves no feature; declare another level".into());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_missing(&self) -> Result<(), String> {
        let Some(missing) = self.missing else {
            return Ok(());
        };
        match &self.kind {
            FeatureKind::OneHot { .. } | FeatureKind::Intercept => Err(
                "'missing' belongs to scale, clamp and indicator; one_hot may declare the level \"\" of empty cells"
                    .into(),
            ),
            FeatureKind::Scale { low, high } | FeatureKind::Clamp { low, high } => {
                missing_within(missing, *low, *high)
            }
            FeatureKind::Indicator(Condition::OneOf(_)) if missing != 0.0 && missing != 1.0 => {
                Err("'missing' is the indicator's own value and must be 0 or 1".into())
            }
            _ if missing.is_finite() => Ok(()),
            _ => Err("'missing' must be a finite number".into()),
        }
    }

    /// Appends this declaration's features of one cell. Errors never quote the cell.
    pub(super) fn push(&self, cell: Cell<'_>, out: &mut Vec<f32>) -> Result<(), String> {
        match &self.kind {
            FeatureKind::Intercept => out.push(1.0),
            FeatureKind::Scale { low, high } => {
                let v = self.number(cell)?.clamp(*low, *high);
                out.push((2.0 * ((v - low) / (high - low)) - 1.0) as f32);
            }
            FeatureKind::Clamp { low, high } => {
                out.push(self.number(cell)?.clamp(*low, *high) as f32);
            }
            FeatureKind::OneHot {
                levels,
                strict,
                reference,
            } => {
                let hit = levels.iter().position(|l| equals(cell, l));
                if hit.is_none() && *strict {
                    return Err(
                        "holds a level that is not declared; add it to 'one_hot' or drop 'strict'"
                            .into(),
                    );
                }
                let kept = levels.iter().enumerate();
                let kept = kept.filter(|(_, l)| reference.as_ref() != Some(*l));
                out.extend(kept.map(|(k, _)| f32::from(u8::from(hit == Some(k)))));
                if !strict {
                    out.push(f32::from(u8::from(hit.is_none())));
                }
            }
            FeatureKind::Indicator(condition) => {
                let holds = match condition {
                    Condition::OneOf(levels) if levels.iter().any(|l| equals(cell, l)) => true,
                    Condition::OneOf(_) if is_missing(cell) => {
                        self.missing.ok_or_else(|| MISSING_LEVEL.to_string())? > 0.0
                    }
                    Condition::OneOf(_) => false,
                    Condition::Above(v) => self.number(cell)? > *v,
                    Condition::Below(v) => self.number(cell)? < *v,
                };
                out.push(f32::from(u8::from(holds)));
            }
        }
        Ok(())
    }

    fn number(&self, cell: Cell<'_>) -> Result<f64, String> {
        number(cell, self.missing, "declare 'missing = …' for this feature")
    }
}

/// The number in a cell, or what was declared to stand for a missing one; `hint` says what to
/// do where nothing was.
pub(super) fn number(cell: Cell<'_>, missing: Option<f64>, hint: &str) -> Result<f64, String> {
    let value = match cell {
        Cell::Number(v) => Some(v),
        Cell::Missing => None,
        Cell::Text(_) if is_missing(cell) => None,
        Cell::Text(t) => Some(
            t.trim()
                .parse::<f64>()
                .map_err(|_| "does not hold a number".to_string())?,
        ),
    };
    match value.or(missing) {
        Some(v) if v.is_finite() => Ok(v),
        Some(_) => Err("holds NaN or infinity".into()),
        None => Err(format!("is missing; {hint}")),
    }
}

/// A value for missing cells stands for one that a cell may hold: beyond the bounds it would
/// silently be the bound.
pub(super) fn missing_within(missing: f64, low: f64, high: f64) -> Result<(), String> {
    if (low..=high).contains(&missing) {
        return Ok(());
    }
    Err(format!(
        "the value of a missing cell, {missing}, must lie inside the declared bounds [{low}, {high}]"
    ))
}

/// Whether a cell holds nothing, or what stands for nothing in tables.
pub(super) fn is_missing(cell: Cell<'_>) -> bool {
    match cell {
        Cell::Text(t) => matches!(t.trim(), "" | "?" | "NA" | "NaN" | "nan" | "null"),
        Cell::Number(v) => v.is_nan(),
        Cell::Missing => true,
    }
}

/// Whether a cell holds a level; "" is that of an empty cell in every format.
pub(super) fn equals(cell: Cell<'_>, level: &str) -> bool {
    match cell {
        Cell::Text(t) => t.trim() == level,
        Cell::Number(v) if v.is_nan() => level.is_empty(),
        Cell::Number(v) => level.parse::<f64>().is_ok_and(|l| l == v),
        Cell::Missing => level.is_empty(),
    }
}

#[cfg(test)]
mod tests;
