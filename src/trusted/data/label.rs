//! The declared label of a row: binary, a number, a count or a class. Bounds come from the run
//! file; nothing is estimated from rows.

use serde::{Deserialize, Serialize};

use super::feature::{Cell, equals, is_missing, number};
use crate::features::missing_within;

/// What the values of a table's label are: what a model reads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum LabelKind {
    /// −1 or +1.
    Binary,
    /// A number in `[low, high]`.
    Number {
        /// Public lower bound.
        low: f64,
        /// Public upper bound.
        high: f64,
    },
    /// A whole number in `0..=max`.
    Count {
        /// Public upper bound.
        max: u32,
    },
    /// A whole number in `0..classes`.
    Class {
        /// Number of classes.
        classes: u32,
    },
}

const DECLARE: &str = "declare 'missing = …' for the label";
const NAME_LEVEL: &str = "is missing; list every negative level in 'negative = […]', with the level \"\" for empty cells if they mean 0 (in 'positive' if 1)";
const NAME_ZERO: &str =
    "is missing; declare 'positive = [\"1\"]' and 'negative = [\"0\", \"\"]' if empty cells mean 0";

/// Largest count and class: exact in f32.
const MOST: u32 = 1 << 24;

impl LabelKind {
    /// For messages: what such a label is called in a run file.
    pub fn describe(self) -> &'static str {
        match self {
            LabelKind::Binary => "a binary label",
            LabelKind::Number { .. } => "a numeric label (clamp or scale)",
            LabelKind::Count { .. } => "counts (count = max)",
            LabelKind::Class { .. } => "classes (classes = k)",
        }
    }

    /// Largest |y| of a label of this kind.
    pub fn bound(self) -> f64 {
        match self {
            LabelKind::Binary => 1.0,
            LabelKind::Number { low, high } => low.abs().max(high.abs()),
            LabelKind::Count { max } => f64::from(max),
            LabelKind::Class { classes } => f64::from(classes) - 1.0,
        }
    }

    /// Checks the declaration itself.
    ///
    /// # Errors
    /// What is wrong, for the caller to put behind the declaration's key.
    pub fn validate(self) -> Result<(), String> {
        match self {
            LabelKind::Binary => Ok(()),
            LabelKind::Number { low, high } => {
                if !(low.is_finite() && high.is_finite()) {
                    return Err("bounds must be finite numbers".into());
                }
                if low >= high {
                    return Err(format!(
                        "bounds are reversed or equal: [{low}, {high}]; write [low, high]"
                    ));
                }
                if low.abs().max(high.abs()) > 1e18 {
                    return Err("bounds are at most 1e18; declare the label in larger units".into());
                }
                Ok(())
            }
            LabelKind::Count { max } if !(1..=MOST).contains(&max) => {
                Err(format!("count must lie in 1..={MOST}, not {max}"))
            }
            LabelKind::Class { classes } if !(2..=MOST).contains(&classes) => {
                Err(format!("classes must lie in 2..={MOST}, not {classes}"))
            }
            _ => Ok(()),
        }
    }

    /// A label as it is stored: numbers and counts clipped to their bounds, others checked.
    ///
    /// # Errors
    /// What is wrong; never the value.
    pub(super) fn store(self, value: f64) -> Result<f32, String> {
        let whole = value >= 0.0 && value.fract() == 0.0;
        match self {
            LabelKind::Binary if value == 1.0 || value == -1.0 => Ok(value as f32),
            LabelKind::Binary => Err("the label is not binary".into()),
            LabelKind::Number { .. } if !value.is_finite() => {
                Err("the label is NaN or infinite".into())
            }
            LabelKind::Number { low, high } => Ok(inside(value.clamp(low, high), low, high)),
            LabelKind::Count { max } if whole => Ok(value.min(f64::from(max)) as f32),
            LabelKind::Count { .. } => {
                Err("the label is not a count (a whole number from 0 on)".into())
            }
            LabelKind::Class { classes } if whole && value < f64::from(classes) => Ok(value as f32),
            LabelKind::Class { classes } => Err(format!(
                "the label is not a class (a whole number from 0 to {})",
                classes - 1
            )),
        }
    }
}

/// The f32 nearest to a number in `[low, high]` that lies there too, where one does.
fn inside(value: f64, low: f64, high: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) > high {
        nearest.next_down()
    } else if f64::from(nearest) < low {
        nearest.next_up()
    } else {
        nearest
    }
}

/// The declared label.
#[derive(Clone, Debug)]
pub struct Label {
    /// The column read; `None` where a file of its own holds the labels.
    pub column: Option<String>,
    /// What its cells hold.
    pub values: LabelValues,
    /// Value (in the column's own units) that stands for a missing cell of a number, count or
    /// class; without one a missing cell is an error.
    pub missing: Option<f64>,
    /// Of a time: where the event is seen; the times of others are stored with a minus sign.
    pub event: Option<SeenEvent>,
}

/// Whether the event was seen that a time is the time of.
#[derive(Clone, Debug)]
pub struct SeenEvent {
    /// The column read.
    pub column: String,
    /// Texts that mean that it was.
    pub seen: Vec<String>,
    /// Texts that mean that it was not; of none, all others that are not missing.
    pub censored: Vec<String>,
}

/// What the cells of a label hold.
#[derive(Clone, Debug)]
pub enum LabelValues {
    /// 0 or 1: a binary label.
    ZeroOne,
    /// A binary label: these texts are positive, these negative; with no negatives, all others
    /// are but those of missing cells, which no list names.
    Named {
        /// Texts that mean 1.
        positive: Vec<String>,
        /// Texts that mean 0; empty: everything else that is not missing.
        negative: Vec<String>,
    },
    /// A number, clamped to `[low, high]`, in the column's own units.
    Clamp {
        /// Declared lower bound.
        low: f64,
        /// Declared upper bound.
        high: f64,
    },
    /// A number, clamped to `[low, high]` and mapped linearly onto `[−1, 1]`.
    Scale {
        /// Declared lower bound.
        low: f64,
        /// Declared upper bound.
        high: f64,
    },
    /// A whole number from 0 on, clamped to `max`.
    Count {
        /// Declared upper bound.
        max: u32,
    },
    /// A whole number from 0 to `classes − 1`.
    Classes {
        /// Declared number of classes.
        classes: u32,
    },
    /// A text of one of these lists, in their order: classes from 0.
    Levels(Vec<Vec<String>>),
    /// Successes in as many trials as another column says: their share of these.
    Successes {
        /// The column of the trials.
        trials: String,
    },
}

impl Label {
    /// 0/1 labels of a file of their own.
    pub fn zero_one_file() -> Self {
        Label {
            column: None,
            values: LabelValues::ZeroOne,
            missing: None,
            event: None,
        }
    }

    /// The column of trials, where the label is of successes in these.
    pub(super) fn trials(&self) -> Option<&str> {
        match &self.values {
            LabelValues::Successes { trials } => Some(trials),
            _ => None,
        }
    }

    /// What a model reads of this label.
    pub fn kind(&self) -> LabelKind {
        match self.values {
            LabelValues::ZeroOne | LabelValues::Named { .. } => LabelKind::Binary,
            LabelValues::Clamp { high, .. } if self.event.is_some() => {
                LabelKind::Number { low: -high, high }
            }
            LabelValues::Clamp { low, high } => LabelKind::Number { low, high },
            LabelValues::Scale { .. } => LabelKind::Number {
                low: -1.0,
                high: 1.0,
            },
            LabelValues::Successes { .. } => LabelKind::Number {
                low: 0.0,
                high: 1.0,
            },
            LabelValues::Count { max } => LabelKind::Count { max },
            LabelValues::Classes { classes } => LabelKind::Class { classes },
            LabelValues::Levels(ref levels) => LabelKind::Class {
                classes: levels.len() as u32,
            },
        }
    }

    /// Checks the declaration itself.
    ///
    /// # Errors
    /// What is wrong, for the caller to put behind the declaration's key.
    pub fn validate(&self) -> Result<(), String> {
        self.check().map_err(|(_, what)| what)
    }

    /// As [`Label::validate`], with the key of the declaration at fault; "" for all of it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        match self.values {
            // The mapped bounds are always valid, the declared ones perhaps not.
            LabelValues::Scale { low, high } => LabelKind::Number { low, high }.validate(),
            _ => self.kind().validate(),
        }
        .map_err(|what| ("", what))?;
        if self.event.is_some()
            && !matches!(self.values, LabelValues::Clamp { low, .. } if low > 0.0)
        {
            return Err((
                "event",
                "belongs to times: clamp = [LOW, HIGH] with LOW > 0".into(),
            ));
        }
        self.check_missing().map_err(|what| ("missing", what))
    }

    fn check_missing(&self) -> Result<(), String> {
        let Some(missing) = self.missing else {
            return Ok(());
        };
        match self.values {
            LabelValues::Clamp { low, high } | LabelValues::Scale { low, high } => {
                missing_within(missing, low, high)
            }
            LabelValues::Count { .. } if missing.fract() != 0.0 => {
                Err("'missing' must be a whole number from 0 on".into())
            }
            LabelValues::Count { max } => missing_within(missing, 0.0, f64::from(max)),
            LabelValues::Classes { classes } if missing.fract() == 0.0 => {
                missing_within(missing, 0.0, f64::from(classes) - 1.0)
            }
            LabelValues::Classes { .. } => Err("'missing' must be one of the classes".into()),
            LabelValues::Named { .. } | LabelValues::Levels(_) => Err(
                "'missing' stands for a number; name the level \"\" of empty cells among the declared ones"
                    .into(),
            ),
            LabelValues::ZeroOne | LabelValues::Successes { .. } => {
                Err("'missing' stands for a number and belongs to clamp, scale, count or classes".into())
            }
        }
    }

    /// Whether it says what a missing cell counts as.
    pub(crate) fn reads_missing(&self) -> bool {
        let event = self.event.as_ref();
        self.stored(Cell::Missing).is_ok()
            && event.is_none_or(|event| Label::is_seen(event, Cell::Missing).is_ok())
    }

    /// The stored value of one cell, of a time whose event is seen. Errors never quote the cell.
    pub(super) fn stored(&self, cell: Cell<'_>) -> Result<f64, String> {
        let mut value = self.read(cell)?;
        if let (Some(_), LabelValues::Clamp { low, .. }) = (&self.event, &self.values) {
            // The kind's bounds are those of both signs.
            value = value.max(*low);
        }
        self.kind().store(value).map(f64::from)
    }

    /// The share of successes in trials, 0 in none.
    pub(super) fn share([successes, trials]: [f64; 2]) -> Result<f64, String> {
        match successes <= trials {
            true => Ok(successes / trials.max(1.0)),
            false => Err("says of more successes than there were trials".into()),
        }
    }

    /// Whether a cell of its own column says that the event was seen.
    pub(super) fn is_seen(event: &SeenEvent, cell: Cell<'_>) -> Result<bool, String> {
        let among = |levels: &[String]| levels.iter().any(|l| equals(cell, l));
        let (seen, all_others) = (among(&event.seen), event.censored.is_empty());
        match cell {
            Cell::Bad(what) => Err(what.into()),
            _ if seen || among(&event.censored) => Ok(seen),
            _ if is_missing(cell) => Err("does not say whether the event was seen".into()),
            _ if all_others => Ok(false),
            _ => Err("is none of the texts that 'in' and 'censored' of the event name".into()),
        }
    }

    /// The value of one cell, as [`LabelKind::store`] takes it. Errors never quote the cell.
    pub(super) fn read(&self, cell: Cell<'_>) -> Result<f64, String> {
        let binary = |positive| if positive { 1.0 } else { -1.0 };
        match &self.values {
            LabelValues::ZeroOne => {
                let v = match cell {
                    Cell::Number(v) => Some(v),
                    Cell::Text(t) => t.trim().parse::<f64>().ok(),
                    Cell::Missing | Cell::Bad(_) => None,
                };
                match v {
                    Some(1.0) => Ok(1.0),
                    Some(0.0) => Ok(-1.0),
                    _ if is_missing(cell) && self.column.is_some() => Err(NAME_ZERO.into()),
                    _ => Err("the label is not 0 or 1; declare 'positive = [\"…\"]'".into()),
                }
            }
            LabelValues::Named { positive, negative } => {
                if positive.iter().any(|l| equals(cell, l)) {
                    Ok(binary(true))
                } else if negative.iter().any(|l| equals(cell, l)) {
                    Ok(binary(false))
                } else if is_missing(cell) {
                    Err(NAME_LEVEL.into())
                } else if negative.is_empty() {
                    Ok(binary(false))
                } else {
                    Err("the label is neither a declared positive nor a declared negative".into())
                }
            }
            LabelValues::Levels(levels) => match levels
                .iter()
                .position(|l| l.iter().any(|t| equals(cell, t)))
            {
                Some(class) => Ok(class as f64),
                None => Err("the label is none of the declared levels".into()),
            },
            LabelValues::Clamp { .. } => number(cell, self.missing, DECLARE),
            LabelValues::Scale { low, high } => {
                let v = number(cell, self.missing, DECLARE)?.clamp(*low, *high);
                Ok(2.0 * ((v - low) / (high - low)) - 1.0)
            }
            LabelValues::Count { .. } => number(cell, self.missing, DECLARE),
            LabelValues::Successes { .. } => {
                match number(cell, None, "every row needs its successes and trials")? {
                    v if v >= 0.0 && v.fract() == 0.0 => Ok(v),
                    _ => Err("is no whole number from 0 on".into()),
                }
            }
            LabelValues::Classes { .. } => number(
                cell,
                self.missing,
                "every row needs its class; declare 'missing = …' for the label",
            ),
        }
    }
}

#[cfg(test)]
mod tests;
