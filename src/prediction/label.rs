//! A label in its own words: units of a scaled number, levels of a binary one.

use super::PredictionError;
use crate::config::Plan;
use crate::data::{Label, LabelValues};

/// How a label is written in its table.
#[derive(Clone, Debug)]
pub struct Words {
    label: Label,
}

impl Words {
    /// Of the declared label.
    ///
    /// # Errors
    /// [`PredictionError`] where the run file declares none.
    pub fn new(plan: &Plan) -> Result<Self, PredictionError> {
        let label = plan.label()?;
        let none = || plan.refuse("data.label", "there is none, so nothing can be predicted");
        Ok(Words {
            label: label.ok_or_else(none)?,
        })
    }

    /// The label's column; `label` where a file of its own holds the labels.
    pub fn column(&self) -> &str {
        self.label.column.as_deref().unwrap_or("label")
    }

    /// A number as the table has it, of one that a model reads.
    pub fn number(&self, y: f64) -> f64 {
        match self.label.values {
            LabelValues::Scale { low, high } => low + 0.5 * (y + 1.0) * (high - low),
            _ => y,
        }
    }

    /// A difference of numbers as the table has them.
    pub fn difference(&self, y: f64) -> f64 {
        match self.label.values {
            LabelValues::Scale { low, high } => 0.5 * y * (high - low),
            _ => y,
        }
    }

    /// Declared bounds of a number, as the table has it.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        match self.label.values {
            LabelValues::Scale { low, high } | LabelValues::Clamp { low, high } => {
                Some((low, high))
            }
            LabelValues::Count { max } => Some((0.0, f64::from(max))),
            _ => None,
        }
    }

    /// The two classes of a binary label, 0 first. Of several levels that mean the same it is the
    /// first one that is no empty cell. Where any other text is negative, that is `not LEVEL`.
    pub fn classes(&self) -> [String; 2] {
        let LabelValues::Named { positive, negative } = &self.label.values else {
            return ["0".into(), "1".into()];
        };
        let first = |levels: &[String]| {
            let named = levels.iter().find(|level| !level.is_empty());
            named.or(levels.first()).cloned()
        };
        let one = first(positive).unwrap_or_else(|| "1".into());
        [first(negative).unwrap_or_else(|| format!("not {one}")), one]
    }

    /// The classes' texts in their order where the run file names levels; none of a label that is
    /// 0 or 1, or no class.
    pub fn names(&self) -> Option<Vec<String>> {
        match &self.label.values {
            LabelValues::Named { .. } => Some(self.classes().to_vec()),
            LabelValues::Levels(levels) => {
                let first = |texts: &Vec<String>| texts.first().cloned().unwrap_or_default();
                Some(levels.iter().map(first).collect())
            }
            _ => None,
        }
    }

    /// A label as a cell of the table, of a binary 0 or 1, a class, a count or a number as models
    /// read them.
    pub fn cell(&self, y: f64) -> String {
        match self.label.values {
            LabelValues::ZeroOne | LabelValues::Named { .. } | LabelValues::Successes { .. } => {
                let [zero, one] = self.classes();
                if y > 0.0 { one } else { zero }
            }
            LabelValues::Levels(ref levels) => {
                let level = levels.get(y as usize).and_then(|texts| texts.first());
                level.cloned().unwrap_or_default()
            }
            _ => self.number(y).to_string(),
        }
    }
}
