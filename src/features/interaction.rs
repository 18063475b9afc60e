//! Products of declared features.

use std::ops::Range;

use super::number::{Column, toward_zero};
use crate::data::Feature;

/// Most columns of one interaction.
const MOST_COLUMNS: usize = 1 << 16;

/// The products of the columns of two or more declared features, one of each.
#[derive(Clone, Debug)]
pub struct Interaction {
    parts: Vec<Part>,
}

/// Some columns of the declared features.
#[derive(Clone, Debug)]
struct Part {
    /// What they are called in the declaration.
    name: String,
    columns: Range<usize>,
    /// Largest sum of their squares in a row.
    square: f64,
    /// Whether they add up to 1 in every row.
    complete: bool,
}

impl Interaction {
    /// The products of `parts`, each the column of one of `features` (all that it makes) or
    /// the name of a single feature.
    ///
    /// # Errors
    /// What is wrong, for the caller to put behind the declaration's key: fewer than two
    /// parts, one that is not declared, is the intercept or is named twice, too many columns.
    pub fn new(features: &[Feature], parts: &[String]) -> Result<Self, String> {
        if parts.len() < 2 {
            return Err("names the features to multiply; give two or more".into());
        }
        let parts: Vec<Part> = parts
            .iter()
            .map(|name| find(features, name))
            .collect::<Result<_, _>>()?;
        for (i, part) in parts.iter().enumerate() {
            let before = parts[..i]
                .iter()
                .find(|p| overlap(&p.columns, &part.columns));
            if let Some(before) = before {
                return Err(format!(
                    "'{}' and '{}' are the same feature, or one holds the other; a column's own curve is polynomial or spline",
                    before.name, part.name
                ));
            }
        }
        let columns = parts
            .iter()
            .try_fold(1usize, |n, part| n.checked_mul(part.columns.len()));
        if columns.is_none_or(|n| n > MOST_COLUMNS) {
            return Err(format!(
                "makes more than {MOST_COLUMNS} columns; merge levels by groups or name single features"
            ));
        }
        Ok(Interaction { parts })
    }

    /// Names of its columns; `main` are those of the features.
    pub fn names(&self, main: &[String]) -> Vec<String> {
        let mut names = vec![String::new()];
        for (i, part) in self.parts.iter().enumerate() {
            let columns = main.get(part.columns.clone()).unwrap_or_default();
            let joint = if i == 0 { "" } else { ":" };
            let products = names
                .iter()
                .flat_map(|name| columns.iter().map(move |c| format!("{name}{joint}{c}")));
            names = products.collect();
        }
        names
    }

    /// What follows for the values of its columns from those of the features'.
    pub(crate) fn columns(&self, main: &[Column]) -> Vec<Column> {
        let mut products = vec![Column::FLAG];
        for part in &self.parts {
            let columns = main.get(part.columns.clone()).unwrap_or_default();
            let next = products
                .iter()
                .flat_map(|p| columns.iter().map(move |c| p.times(*c)));
            products = next.collect();
        }
        products
    }

    /// The features' columns that each of its own is the product of.
    pub(crate) fn factors(&self) -> Vec<Vec<usize>> {
        let mut products = vec![Vec::new()];
        for part in &self.parts {
            let next = products.iter().flat_map(|p: &Vec<usize>| {
                part.columns.clone().map(|j| [p.as_slice(), &[j]].concat())
            });
            products = next.collect();
        }
        products
    }

    /// Largest sum of its columns' squares in a row: the product of those of its parts.
    pub fn max_square(&self) -> f64 {
        self.parts.iter().map(|part| part.square).product()
    }

    /// Appends its columns to the features of a row, which lie in front.
    pub(crate) fn push(&self, row: &mut Vec<f32>) {
        let mut products = vec![1.0];
        for part in &self.parts {
            let columns = row.get(part.columns.clone()).unwrap_or_default();
            let next = products
                .iter()
                .flat_map(|p| columns.iter().map(move |&c| p * f64::from(c)));
            products = next.collect();
        }
        row.extend(products.into_iter().map(toward_zero));
    }

    /// Whether another has the same parts, in whatever order.
    pub(crate) fn equals(&self, other: &Interaction) -> bool {
        self.sorted() == other.sorted()
    }

    /// The columns of its parts, in the order of the table.
    pub(crate) fn sorted(&self) -> Vec<Range<usize>> {
        sorted(self.parts.iter().map(|part| part.columns.clone()).collect())
    }

    /// How its parts were named.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| &*part.name)
    }

    /// A part whose columns add up to 1, and the columns of all others, sorted: the products
    /// with it add up to the products of those.
    pub(crate) fn complete_part(&self) -> Option<(&str, Vec<Range<usize>>)> {
        let complete = self.parts.iter().position(|part| part.complete)?;
        let others = self
            .parts
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != complete);
        let others = others.map(|(_, part)| part.columns.clone()).collect();
        Some((&self.parts[complete].name, sorted(others)))
    }
}

pub(crate) fn sorted(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    ranges
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The columns that a declaration calls `name`.
fn find(features: &[Feature], name: &str) -> Result<Part, String> {
    let mut start = 0;
    let placed: Vec<(&Feature, Vec<String>, usize)> = features
        .iter()
        .map(|feature| {
            let names = feature.names();
            let at = start;
            start += names.len();
            (feature, names, at)
        })
        .collect();
    let whole = |(feature, names, at): &(&Feature, Vec<String>, usize)| Part {
        name: name.into(),
        columns: *at..at + names.len(),
        square: feature.max_square(),
        complete: feature.is_complete(),
    };
    if features
        .iter()
        .any(|f| f.column.is_none() && name == "intercept")
    {
        return Err("'intercept' is 1 in every row; leave it out".into());
    }
    let of_column: Vec<_> = placed
        .iter()
        .filter(|(f, ..)| f.column.as_deref() == Some(name))
        .collect();
    if let [one] = of_column.as_slice() {
        return Ok(whole(one));
    }
    let mut curves = placed
        .iter()
        .filter(|(f, ..)| f.curve().as_deref() == Some(name));
    if let (Some(one), None) = (curves.next(), curves.next()) {
        return Ok(whole(one));
    }
    let of_column = of_column.iter().flat_map(|(_, names, _)| names.clone());
    let of_column: Vec<String> = of_column.collect();
    if let Some(found) = single(&placed, name)
        && !of_column.iter().any(|c| c == name)
    {
        return Ok(found);
    }
    if !of_column.is_empty() {
        return Err(format!(
            "column '{name}' is in several [[data.features]]; name one of what they make: {}",
            listed(&of_column)
        ));
    }
    let columns = features.iter().filter_map(|f| f.column.as_deref());
    let nearest = columns
        .max_by(|a, b| strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name)));
    let hint = nearest.map(|n| format!("; the nearest is '{n}'"));
    Err(format!(
        "'{name}' is no column or feature of [[data.features]]; declare it there{}",
        hint.unwrap_or_default()
    ))
}

/// The feature of this very name.
fn single(placed: &[(&Feature, Vec<String>, usize)], name: &str) -> Option<Part> {
    placed.iter().find_map(|(feature, names, at)| {
        let k = names.iter().position(|n| n == name)?;
        // A part of several columns: none of them is larger than 1.
        let alone = names.len() == 1;
        Some(Part {
            name: name.into(),
            columns: at + k..at + k + 1,
            square: if alone { feature.max_square() } else { 1.0 },
            complete: alone && feature.is_complete(),
        })
    })
}

/// Up to eight names.
fn listed(names: &[String]) -> String {
    let few: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
    let more = if names.len() > 8 { ", …" } else { "" };
    format!("{}{more}", few.join(", "))
}

#[cfg(test)]
mod tests;
