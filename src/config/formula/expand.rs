//! From terms to the declarations that a run file would hold without a formula.

use std::collections::BTreeMap;

use super::Wrong;
use super::algebra::{Shared, Term, Terms, terms};
use super::parse::parse;
use super::resolve::{Resolved, Resolver, classes};
use crate::config::schema::{ColumnEntry, FeatureEntry, InteractionEntry};
use crate::data::{Condition, Feature, FeatureKind};

/// What a formula stands for.
#[derive(Debug)]
pub(in crate::config) struct Expansion {
    /// The label's column and where it stands, unless the formula begins with `~`.
    pub label: Option<(String, usize)>,
    /// In the order of their coefficients.
    pub features: Vec<Main>,
    /// After them.
    pub interactions: Vec<Product>,
    /// What is added to all of them as it is.
    pub offset: Option<Main>,
}

/// A term of one column; the intercept has none.
#[derive(Clone, Debug)]
pub(in crate::config) struct Main {
    pub entry: FeatureEntry,
    /// As the formula has it.
    pub text: String,
    /// The character where it stands, from 0.
    pub place: usize,
    /// The hierarchy whose prior its coefficients share: `g`.
    pub hierarchy: Option<String>,
}

/// A term of several columns.
#[derive(Clone, Debug)]
pub(in crate::config) struct Product {
    pub entry: InteractionEntry,
    pub text: String,
    pub place: usize,
    /// The same: `x | g`.
    pub hierarchy: Option<String>,
}

/// The columns of `[data.label]`.
#[derive(Clone, Copy, Default)]
pub(in crate::config) struct LabelColumns<'a> {
    pub label: Option<&'a str>,
    /// Says whether a time's event was seen.
    pub event: Option<&'a str>,
}

/// What `formula` stands for, with columns as declared.
///
/// # Errors
/// [`Wrong`], at a character of the formula or at a column's key.
pub(in crate::config) fn expand(
    formula: &str,
    columns: &BTreeMap<String, ColumnEntry>,
    label: LabelColumns<'_>,
) -> Result<Expansion, Wrong> {
    let parsed = parse(formula)?;
    let own = parsed.label.as_ref().map(|(name, _)| name.as_str());
    let resolver = Resolver {
        columns,
        label: own.or(label.label),
        event: label.event,
        formula,
    };
    let found = terms(&parsed.terms, &resolver)?;
    let mains: Vec<&Term> = found.terms.iter().filter(|t| t.parts.len() == 1).collect();
    let order: Vec<usize> = mains.iter().map(|t| t.parts[0]).collect();
    let mut columns: Vec<Resolved> = order.iter().map(|&i| found.columns[i].clone()).collect();
    check_apart(&columns)?;
    let complete = set_references(&mut columns, found.intercept);
    let mut interactions = products(&found, &order, &columns, complete)?;
    let levels = levels_that_share(&found.shared, &columns)?;
    let slopes = slopes_that_share(&found, &order, &columns, complete)?;
    interactions.extend(slopes);
    let intercept = found.intercept.then(|| Main {
        entry: FeatureEntry {
            intercept: Some(true),
            ..FeatureEntry::default()
        },
        text: "intercept".into(),
        place: 0,
        hierarchy: None,
    });
    let mains = columns.into_iter().map(|c| Main {
        entry: c.entry,
        text: c.text,
        place: c.place,
        hierarchy: None,
    });
    let features = intercept.into_iter().chain(mains).chain(levels);
    let features: Vec<Main> = features.collect();
    if features.is_empty() {
        let what = "no term is left; a model needs one, or the intercept";
        return Err(Wrong::at(formula.chars().count(), what));
    }
    let offset = found.offset.clone().map(|c| Main {
        entry: c.entry,
        text: c.text,
        place: c.place,
        hierarchy: None,
    });
    Ok(Expansion {
        offset,
        label: parsed.label,
        features,
        interactions,
    })
}

/// Whether two features of one column would have the same names.
fn is_twice(a: &FeatureEntry, b: &FeatureEntry) -> bool {
    let number = |e: &FeatureEntry| e.scale.is_some() || e.clamp.is_some();
    match (number(a), number(b)) {
        (true, true) => a.transform == b.transform && a.spline.is_some() == b.spline.is_some(),
        // All levels, and some of them again.
        _ => a.one_hot.is_some() || b.one_hot.is_some(),
    }
}

fn check_apart(columns: &[Resolved]) -> Result<(), Wrong> {
    for (i, column) in columns.iter().enumerate() {
        let same = |c: &&Resolved| c.column == column.column && is_twice(&c.entry, &column.entry);
        if let Some(before) = columns[..i].iter().find(same) {
            let what = format!(
                "'{}' says again what '{}' says of its column; keep one",
                column.text, before.text
            );
            return Err(Wrong::at(column.place, what));
        }
    }
    Ok(())
}

/// Beside a constant all levels are counted from a reference, the first of them if none is stated;
/// without an intercept the first column of levels is the constant, with all of its levels.
fn set_references(columns: &mut [Resolved], intercept: bool) -> Option<usize> {
    let of_levels = |c: &Resolved| c.entry.one_hot.is_some();
    let complete = (!intercept)
        .then(|| columns.iter().position(of_levels))
        .flatten();
    for (i, column) in columns.iter_mut().enumerate() {
        let first = classes(&column.entry).next().cloned();
        let entry = &mut column.entry;
        entry.reference = match complete == Some(i) {
            true => None,
            false => entry.reference.take().or(first),
        };
    }
    complete
}

/// Terms of several columns, fewest first; `order` and `columns` are the features'.
fn products(
    found: &Terms,
    order: &[usize],
    columns: &[Resolved],
    complete: Option<usize>,
) -> Result<Vec<Product>, Wrong> {
    let mut terms: Vec<&Term> = found.terms.iter().filter(|t| t.parts.len() > 1).collect();
    terms.sort_by_key(|t| t.parts.len());
    let mut products = Vec::new();
    for term in terms {
        let mut names = Vec::new();
        let text: Vec<&str> = term
            .parts
            .iter()
            .map(|&p| &*found.columns[p].text)
            .collect();
        let text = text.join(":");
        for &part in &term.parts {
            let Some(i) = order.iter().position(|&o| o == part) else {
                let alone = &found.columns[part].text;
                let what = format!(
                    "{text} multiplies columns that the model has on their own, and {alone} is not among the terms; add it, or write * for :"
                );
                return Err(Wrong::at(term.place, what));
            };
            if complete == Some(i) {
                let what = format!(
                    "without an intercept '{}' has a column for each level, whose products add up to what they are multiplied by; keep the intercept in a model with {text}",
                    columns[i].column
                );
                return Err(Wrong::at(term.place, what));
            }
            names.push(name_of(columns, i, term.place)?);
        }
        products.push(Product {
            entry: InteractionEntry { features: names },
            text,
            place: term.place,
            hierarchy: None,
        });
    }
    Ok(products)
}

/// `(1 | g)`: the levels of g, each with a coefficient.
fn levels_that_share(shared: &[Shared], columns: &[Resolved]) -> Result<Vec<Main>, Wrong> {
    let mut mains = Vec::new();
    for one in shared.iter().filter(|s| s.effect.is_none()) {
        let (name, text) = (&one.levels.column, &one.levels.text);
        let twice = columns
            .iter()
            .any(|c| c.column == *name && c.entry.one_hot.is_some());
        if twice {
            let what = format!(
                "the levels of '{name}' are a term of their own too; keep {text}, or (1 | {text}), in which they share a prior"
            );
            return Err(Wrong::at(one.place, what));
        }
        mains.push(Main {
            entry: one.levels.entry.clone(),
            text: format!("(1 | {text})"),
            place: one.place,
            hierarchy: Some(name.clone()),
        });
    }
    Ok(mains)
}

/// `(x | g)`: the slopes of x, one for each level of g.
fn slopes_that_share(
    found: &Terms,
    order: &[usize],
    columns: &[Resolved],
    complete: Option<usize>,
) -> Result<Vec<Product>, Wrong> {
    let mut products = Vec::new();
    for one in &found.shared {
        let Some(effect) = one.effect else { continue };
        let (slope, levels) = (&found.columns[effect].text, &one.levels);
        let i = order.iter().position(|&o| o == effect);
        let Some(i) = i.filter(|i| complete != Some(*i)) else {
            let what = format!(
                "({slope} | {0}) are deviations from the slope of {slope} over all levels, which is not among the terms; add it: {slope} + ({slope} | {0})",
                levels.text
            );
            return Err(Wrong::at(one.place, what));
        };
        let names = vec![name_of(columns, i, one.place)?, levels.column.clone()];
        products.push(Product {
            entry: InteractionEntry { features: names },
            text: format!("({slope} | {})", levels.text),
            place: one.place,
            hierarchy: Some(format!("{slope} | {}", levels.column)),
        });
    }
    Ok(products)
}

/// What a number is called, its transform included.
fn curve(column: &Resolved) -> String {
    match column.entry.transform {
        Some(transform) => format!("{}({})", transform.name(), column.column),
        None => column.column.clone(),
    }
}

/// What an indicator is called.
fn condition(column: &Resolved) -> Option<String> {
    let entry = column.entry.indicator.clone()?;
    let condition = match (entry.one_of, entry.above, entry.below) {
        (Some(levels), ..) => Condition::OneOf(levels),
        (None, Some(v), _) => Condition::Above(v),
        (None, None, v) => Condition::Below(v?),
    };
    let feature = Feature {
        column: Some(column.column.clone()),
        kind: FeatureKind::Indicator(condition),
        missing: None,
    };
    feature.names().pop()
}

/// How `[[data.interactions]]` names all features of a column, where nothing else has that name.
fn name_of(columns: &[Resolved], i: usize, place: usize) -> Result<String, Wrong> {
    let column = &columns[i];
    let name = condition(column).unwrap_or_else(|| curve(column));
    let is_curve = column.entry.spline.is_some() || column.entry.polynomial.is_some();
    let others = columns.iter().enumerate().filter(|(j, _)| *j != i);
    let clash = others.map(|(_, other)| other).find(|other| {
        let number = other.entry.scale.is_some() || other.entry.clamp.is_some();
        let straight = other.column == column.column && is_curve;
        (straight && number && curve(other) == name)
            || (other.column == name && other.column != column.column)
    });
    match clash {
        None => Ok(name),
        Some(other) => {
            let (one, other) = (&column.text, &other.text);
            let what = format!("whether {one} or {other} is multiplied cannot be told; keep one");
            Err(Wrong::at(place, what))
        }
    }
}
