//! From declared columns to features: bounds and levels come from the run file,
//! nothing is estimated from rows.

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
    /// Value (in the column's own units) that stands for a missing cell; without
    /// one a missing numeric cell is an error.
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
    /// One 0/1 feature for each declared level, and one for anything else unless `strict`.
    OneHot {
        /// Declared levels.
        levels: Vec<String>,
        /// Refuse undeclared levels instead of giving them a feature.
        strict: bool,
    },
    /// 1 where the condition holds, else 0.
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
            FeatureKind::OneHot { levels, strict } => {
                let mut names: Vec<String> =
                    levels.iter().map(|l| format!("{column}={l}")).collect();
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
    /// or non-finite bounds, empty or repeated levels, a `missing` that nothing reads.
    pub fn validate(&self) -> Result<(), String> {
        let refuse = |what: String| Err(what);
        if let Some(missing) = self.missing {
            if !self.reads_numbers() {
                return refuse(
                    "'missing' stands for a number and belongs to scale, clamp or an indicator with above or below"
                        .into(),
                );
            }
            if !missing.is_finite() {
                return refuse("'missing' must be a finite number".into());
            }
        }
        match &self.kind {
            FeatureKind::Scale { low, high } | FeatureKind::Clamp { low, high } => {
                if !(low.is_finite() && high.is_finite()) {
                    return refuse("bounds must be finite numbers".into());
                }
                if low >= high {
                    return refuse(format!(
                        "bounds are reversed or equal: [{low}, {high}]; write [low, high]"
                    ));
                }
            }
            FeatureKind::OneHot { levels, .. }
            | FeatureKind::Indicator(Condition::OneOf(levels)) => {
                if levels.is_empty() {
                    return refuse("declare at least one level".into());
                }
                for (i, level) in levels.iter().enumerate() {
                    if levels[..i].contains(level) {
                        return refuse(format!("level '{level}' is declared twice"));
                    }
                }
            }
            FeatureKind::Indicator(Condition::Above(v) | Condition::Below(v)) => {
                if !v.is_finite() {
                    return refuse("the threshold must be a finite number".into());
                }
            }
            FeatureKind::Intercept => {}
        }
        Ok(())
    }

    /// Whether cells are read as numbers, not as texts or not at all.
    fn reads_numbers(&self) -> bool {
        match &self.kind {
            FeatureKind::Scale { .. } | FeatureKind::Clamp { .. } => true,
            FeatureKind::Indicator(condition) => !matches!(condition, Condition::OneOf(_)),
            FeatureKind::OneHot { .. } | FeatureKind::Intercept => false,
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
            FeatureKind::OneHot { levels, strict } => {
                let hit = levels.iter().position(|l| equals(cell, l));
                if hit.is_none() && *strict {
                    return Err(
                        "holds a level that is not declared; add it to 'one_hot' or drop 'strict'"
                            .into(),
                    );
                }
                out.extend((0..levels.len()).map(|k| f32::from(u8::from(hit == Some(k)))));
                if !strict {
                    out.push(f32::from(u8::from(hit.is_none())));
                }
            }
            FeatureKind::Indicator(condition) => {
                let holds = match condition {
                    Condition::OneOf(levels) => levels.iter().any(|l| equals(cell, l)),
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
        Cell::Text(t) if is_missing(t) => None,
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

fn is_missing(text: &str) -> bool {
    matches!(text.trim(), "" | "?" | "NA" | "NaN" | "nan" | "null")
}

pub(super) fn equals(cell: Cell<'_>, level: &str) -> bool {
    match cell {
        Cell::Text(t) => t.trim() == level,
        Cell::Number(v) => level.parse::<f64>().is_ok_and(|l| l == v),
        Cell::Missing => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn feature(kind: FeatureKind) -> Feature {
        Feature {
            column: Some("c".into()),
            kind,
            missing: None,
        }
    }

    proptest! {
        #[test]
        fn scaled_values_stay_in_the_unit_interval(v in -1e12f64..1e12, low in -1e6f64..1e6, width in 1e-3f64..1e6) {
            let f = feature(FeatureKind::Scale { low, high: low + width });
            let mut out = Vec::new();
            f.push(Cell::Number(v), &mut out).map_err(TestCaseError::fail)?;
            prop_assert!(out[0].abs() <= 1.0);
        }

        #[test]
        fn one_hot_always_sums_to_one(text in ".*") {
            let f = feature(FeatureKind::OneHot { levels: vec!["a".into(), "b".into()], strict: false });
            let mut out = Vec::new();
            f.push(Cell::Text(&text), &mut out).map_err(TestCaseError::fail)?;
            prop_assert_eq!(out.len(), f.names().len());
            prop_assert_eq!(out.iter().sum::<f32>(), 1.0);
        }

        #[test]
        fn errors_never_quote_the_cell(text in "[a-z]{12,20}") {
            let f = feature(FeatureKind::Scale { low: 0.0, high: 1.0 });
            let message = f.push(Cell::Text(&text), &mut Vec::new()).unwrap_err();
            prop_assert!(!message.contains(&text));
        }
    }

    #[test]
    fn missing_is_mapped_only_when_declared() {
        let mut f = feature(FeatureKind::Scale {
            low: 0.0,
            high: 2.0,
        });
        assert!(f.push(Cell::Text("?"), &mut Vec::new()).is_err());
        f.missing = Some(2.0);
        let mut out = Vec::new();
        assert!(f.push(Cell::Text("?"), &mut out).is_ok());
        assert_eq!(out, [1.0]);
    }

    #[test]
    fn an_infinite_cell_is_refused() {
        let f = feature(FeatureKind::Clamp {
            low: 0.0,
            high: 2.0,
        });
        assert!(f.push(Cell::Text("inf"), &mut Vec::new()).is_err());
        assert!(f.push(Cell::Number(f64::NAN), &mut Vec::new()).is_err());
    }
}
