//! Formulas: `visits ~ log1p(income) + ns(age, knots = [30, 50]) + region * insured`.
//!
//! A formula says which columns a regression has; what a column's bounds and levels are stands in
//! `[columns]`. Both are public, and no row is looked at: a formula is another way to write
//! `[data.label]`, `[[data.features]]` and `[[data.interactions]]`, and becomes those.

mod algebra;
mod call;
mod expand;
mod parse;
mod resolve;
mod token;

pub(super) use expand::{Expansion, LabelColumns, expand};
pub use resolve::toml_key;

/// What is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wrong {
    /// At a character of the formula, from 0.
    Formula { place: usize, what: String },
    /// At a key of a column's declaration; "" for all of it.
    Column {
        name: String,
        part: &'static str,
        what: String,
    },
}

impl Wrong {
    fn at(place: usize, what: impl Into<String>) -> Self {
        let what = what.into();
        Wrong::Formula { place, what }
    }
}

/// A column's name as a formula has it: in backticks where it holds other characters than letters,
/// digits, `_` and `.`.
pub fn formula_name(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|c| c.is_alphabetic());
    match first && letters.all(|c| c.is_alphanumeric() || matches!(c, '_' | '.')) {
        true => name.into(),
        false => format!("`{}`", name.replace('`', "``")),
    }
}

#[cfg(test)]
mod tests;
