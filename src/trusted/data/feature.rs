//! From declared columns to features: bounds and levels come from the run file,
//! nothing is estimated from rows.

use crate::features::Column;
use crate::features::{Form, Number, OneHot, check_levels, number_of};

const MISSING_LEVEL: &str = "is missing; declare 'missing = 0' or 'missing = 1' for this feature, or name the level (\"\" for an empty cell)";

/// A value as a table reader hands it over. It has no `Debug`: no message shows a cell.
#[derive(Clone, Copy)]
pub enum Cell<'a> {
    /// A text, which may be a number's.
    Text(&'a str),
    /// A number; one that is not finite is refused.
    Number(f64),
    /// No value.
    Missing,
    /// One that no format reads, and why.
    Bad(&'static str),
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
    /// A number, cut off at declared bounds and mapped.
    Number(Number),
    /// A 0/1 feature for each of a column's levels.
    OneHot(OneHot),
    /// 1 where the condition holds, else 0; a missing cell holds only the level "".
    Indicator(Condition),
}

impl FeatureKind {
    /// Clamped to `[low, high]` and mapped linearly onto `[−1, 1]`.
    pub fn scale(low: f64, high: f64) -> Self {
        FeatureKind::Number(Number::new(low, high, None, Form::Scaled))
    }

    /// Clamped to `[low, high]`, in the column's own units.
    pub fn clamp(low: f64, high: f64) -> Self {
        FeatureKind::Number(Number::new(low, high, None, Form::Kept))
    }
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

impl Condition {
    fn check(&self) -> Result<(), String> {
        match self {
            Condition::OneOf(levels) if levels.is_empty() => {
                Err("declare at least one level".into())
            }
            Condition::OneOf(levels) => check_levels(levels),
            Condition::Above(v) | Condition::Below(v) if !v.is_finite() => {
                Err("the threshold must be a finite number".into())
            }
            _ => Ok(()),
        }
    }
}

impl Feature {
    /// Names of the features this declaration makes, in order.
    pub fn names(&self) -> Vec<String> {
        let column = self.column.as_deref().unwrap_or("intercept");
        match &self.kind {
            FeatureKind::Intercept => vec!["intercept".into()],
            FeatureKind::Number(number) => number.names(column),
            FeatureKind::Indicator(Condition::OneOf(levels)) => match levels.as_slice() {
                [one] => vec![format!("{column}={one}")],
                _ => vec![format!("{column}=({})", levels.join("|"))],
            },
            FeatureKind::Indicator(Condition::Above(v)) => vec![format!("{column}>{v}")],
            FeatureKind::Indicator(Condition::Below(v)) => vec![format!("{column}<{v}")],
            FeatureKind::OneHot(one_hot) => one_hot.names(column),
        }
    }

    /// Largest contribution of this declaration to a row's squared norm.
    pub fn max_square(&self) -> f64 {
        match &self.kind {
            FeatureKind::Number(number) => number.max_square(),
            _ => 1.0,
        }
    }

    /// What is declared of its features' values, in order.
    pub(super) fn columns(&self) -> Vec<Column> {
        match &self.kind {
            FeatureKind::Number(number) => number.columns(),
            _ => vec![Column::FLAG; self.names().len()],
        }
    }

    /// Whether its features add up to 1 in every row.
    pub(crate) fn is_complete(&self) -> bool {
        match &self.kind {
            FeatureKind::Intercept => true,
            FeatureKind::OneHot(one_hot) => one_hot.reference.is_none(),
            _ => false,
        }
    }

    /// What a number is called, its transform included.
    pub(crate) fn curve(&self) -> Option<String> {
        match (&self.kind, &self.column) {
            (FeatureKind::Number(number), Some(column)) => Some(number.name(column)),
            _ => None,
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
        match &self.kind {
            FeatureKind::Intercept => Ok(()),
            FeatureKind::Number(number) => number.check(),
            FeatureKind::OneHot(one_hot) => one_hot.check(),
            FeatureKind::Indicator(condition) => condition.check().map_err(|what| ("", what)),
        }?;
        self.check_missing().map_err(|what| ("missing", what))
    }

    fn check_missing(&self) -> Result<(), String> {
        let Some(missing) = self.missing else {
            return Ok(());
        };
        match &self.kind {
            FeatureKind::OneHot(_) | FeatureKind::Intercept => Err(
                "'missing' belongs to scale, clamp and indicator; one_hot may declare the level \"\" of empty cells"
                    .into(),
            ),
            FeatureKind::Number(number) => number.check_missing(missing),
            FeatureKind::Indicator(Condition::OneOf(_)) if missing != 0.0 && missing != 1.0 => {
                Err("'missing' is the indicator's own value and must be 0 or 1".into())
            }
            _ if missing.is_finite() => Ok(()),
            _ => Err("'missing' must be a finite number".into()),
        }
    }

    /// Whether it says what a missing cell counts as.
    pub(crate) fn reads_missing(&self) -> bool {
        self.push(Cell::Missing, &mut Vec::new()).is_ok()
    }

    /// Appends this declaration's features of one cell. Errors never quote the cell.
    #[inline]
    pub(crate) fn push(&self, cell: Cell<'_>, out: &mut Vec<f32>) -> Result<(), String> {
        match &self.kind {
            FeatureKind::Intercept => out.push(1.0),
            FeatureKind::Number(number) => number.push(self.number(cell)?, out),
            FeatureKind::OneHot(one_hot) => one_hot.push(|level| equals(cell, level), out)?,
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

/// A cell's text without the blanks around it; most cells have none.
fn trimmed(text: &str) -> &str {
    let is_plain = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
    match text.as_bytes() {
        bytes if is_plain(bytes.first()) && is_plain(bytes.last()) => text,
        _ => text.trim(),
    }
}

/// The number in a cell, or what was declared to stand for a missing one; `hint` says what to
/// do where nothing was.
#[inline]
pub(super) fn number(cell: Cell<'_>, missing: Option<f64>, hint: &str) -> Result<f64, String> {
    let value = match cell {
        Cell::Number(v) => Some(v),
        Cell::Missing => None,
        Cell::Bad(what) => return Err(what.into()),
        Cell::Text(_) if is_missing(cell) => None,
        Cell::Text(t) => Some(
            trimmed(t)
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

/// Whether a cell holds nothing, or what stands for nothing in tables.
#[inline]
pub fn is_missing(cell: Cell<'_>) -> bool {
    match cell {
        Cell::Text(t) => matches!(trimmed(t), "" | "?" | "NA" | "NaN" | "nan" | "null"),
        Cell::Number(v) => v.is_nan(),
        Cell::Missing => true,
        Cell::Bad(_) => false,
    }
}

/// Whether a cell holds a level; "" is that of an empty cell in every format. The text 1.0 is what
/// other programs write for the whole number 1.
pub(super) fn equals(cell: Cell<'_>, level: &str) -> bool {
    match cell {
        Cell::Text(t) => {
            let (t, whole) = (trimmed(t), |level: &str| level.parse::<i64>().is_ok());
            t == level || (t.strip_suffix(".0") == Some(level) && whole(level))
        }
        Cell::Number(v) if v.is_nan() => level.is_empty(),
        Cell::Number(v) => number_of(level) == Some(v),
        Cell::Missing => level.is_empty(),
        Cell::Bad(_) => false,
    }
}

#[cfg(test)]
mod tests;
