//! What a column's declaration and the formula make of it together.

use std::collections::BTreeMap;

use super::parse::{Atom, Curve, Shape};
use super::{Wrong, formula_name};
use crate::config::schema::{ColumnEntry, FeatureEntry, IndicatorEntry, SplineEntry};
use crate::data::Transform;

/// Columns as they are declared, and the label's, which is none of the terms.
pub(super) struct Resolver<'a> {
    pub columns: &'a BTreeMap<String, ColumnEntry>,
    pub label: Option<&'a str>,
    /// The column that says whether a time's event was seen.
    pub event: Option<&'a str>,
    pub formula: &'a str,
}

/// A column made into features.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    pub column: String,
    pub entry: FeatureEntry,
    /// How the formula has it.
    pub text: String,
    pub place: usize,
}

impl Resolver<'_> {
    /// Declared columns but the label, by name.
    pub fn others(&self) -> impl Iterator<Item = &String> {
        let apart = [self.label, self.event];
        self.columns
            .keys()
            .filter(move |c| !apart.contains(&Some(c.as_str())))
    }

    pub fn resolve(&self, atom: &Atom) -> Result<Resolved, Wrong> {
        let column = &atom.column;
        if self.label == Some(column) {
            let what = format!(
                "'{column}' is the label, which a term of it would predict exactly; drop it here"
            );
            return Err(Wrong::at(atom.start, what));
        }
        if self.event == Some(column) {
            let what = format!("'{column}' says whether the label's event was seen; drop it here");
            return Err(Wrong::at(atom.start, what));
        }
        let made = match (&atom.shape, self.columns.get(column)) {
            (Shape::Condition(condition), declared) => condition_of(atom, condition, declared)?,
            (_, None) => {
                let key = toml_key(column);
                let how = format!(
                    "write {key} = {{ scale = [LOW, HIGH] }} in [columns], or {{ levels = [\"A\", \"B\"] }}, from public knowledge"
                );
                return Err(self.undeclared(atom, &how));
            }
            (Shape::Plain, Some(declared)) => plain(column, declared)?,
            (Shape::Number { transform, curve }, Some(declared)) => {
                number(atom, *transform, curve.as_ref(), declared)?
            }
            (Shape::Offset(transform), Some(declared)) => offset(atom, *transform, declared)?,
            (Shape::Levels { reference }, Some(declared)) => {
                levels(atom, reference.as_ref(), declared)?
            }
        };
        let length = atom.end.saturating_sub(atom.start);
        let text = match atom.shape {
            Shape::Plain => formula_name(column),
            _ => self.formula.chars().skip(atom.start).take(length).collect(),
        };
        Ok(Resolved {
            column: column.clone(),
            entry: FeatureEntry {
                column: Some(column.clone()),
                ..made
            },
            text,
            place: atom.start,
        })
    }

    /// A column whose levels share a prior: all of them, without a reference.
    pub fn levels(&self, atom: &Atom) -> Result<Resolved, Wrong> {
        let (name, key) = (&atom.column, toml_key(&atom.column));
        let apart = [self.label, self.event].contains(&Some(name));
        if !apart && !self.columns.contains_key(name) {
            let how = format!(
                "levels that share a prior are public, write {key} = {{ levels = [\"A\", \"B\"] }} in [columns]; if which ones there are is private, leave the term out and protect the rows of each together by data.unit"
            );
            return Err(self.undeclared(atom, &how));
        }
        let found = self.resolve(atom)?;
        if found.entry.one_hot.is_none() {
            let what = format!(
                "'{name}' has no levels in [columns], and levels share a prior: {key} = {{ levels = [\"A\", \"B\"] }}"
            );
            return Err(Wrong::at(atom.start, what));
        }
        if found.entry.reference.is_some() {
            let what = "levels that share a prior have a coefficient each, and none is a reference; delete it, or write the column as a term of its own";
            return Err(wrong_column(name, "reference", what));
        }
        Ok(found)
    }

    /// A column that nothing is declared of: how to, and the nearest that something is.
    fn undeclared(&self, atom: &Atom, how: &str) -> Wrong {
        let column = &atom.column;
        let nearest = self.others().max_by(|a, b| {
            strsim::jaro_winkler(a, column).total_cmp(&strsim::jaro_winkler(b, column))
        });
        let hint =
            nearest.map(|n| format!("; the nearest that is declared is {}", formula_name(n)));
        let hint = hint.unwrap_or_default();
        let what = format!("column '{column}' is not declared: {how}{hint}");
        Wrong::at(atom.start, what)
    }
}

/// A name as a key of a run file: in quotes where it needs them.
pub fn toml_key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !name.is_empty() && name.chars().all(bare) {
        true => name.into(),
        false => toml::Value::String(name.into()).to_string(),
    }
}

fn wrong_column(name: &str, part: &'static str, what: impl Into<String>) -> Wrong {
    Wrong::Column {
        name: name.into(),
        part,
        what: what.into(),
    }
}

/// A column as it is declared.
fn plain(name: &str, declared: &ColumnEntry) -> Result<FeatureEntry, Wrong> {
    check(name, declared)?;
    let levels = declared.has_levels().then(|| declared.levels.clone());
    Ok(FeatureEntry {
        scale: declared.scale,
        clamp: declared.clamp,
        transform: declared.transform,
        standardize: declared.standardize.clone(),
        one_hot: levels.map(Option::unwrap_or_default),
        groups: declared.groups.clone(),
        strict: declared.strict,
        reference: declared.reference.clone(),
        indicator: declared.indicator.clone(),
        missing: declared.missing,
        ..FeatureEntry::default()
    })
}

/// A feature's declaration is of one kind, with keys of that kind alone.
fn check(name: &str, declared: &ColumnEntry) -> Result<(), Wrong> {
    for key in ["positive", "negative", "count", "classes"] {
        if declared.sets(key) {
            let what = "says how a label is read, and the formula has the column as a feature: give scale, clamp, levels or indicator instead";
            return Err(wrong_column(name, key, what));
        }
    }
    let (number, levels) = (
        declared.scale.is_some() || declared.clamp.is_some(),
        declared.has_levels(),
    );
    let kinds = [
        declared.scale.is_some(),
        declared.clamp.is_some(),
        levels,
        declared.indicator.is_some(),
    ];
    if kinds.iter().filter(|k| **k).count() != 1 {
        let what = "give exactly one of scale = [LOW, HIGH], clamp = [LOW, HIGH], levels = […], indicator = { … }, from public knowledge";
        return Err(wrong_column(name, "", what));
    }
    for (key, fits, owner) in [
        ("strict", levels, "levels"),
        ("reference", levels, "levels"),
        ("transform", number, "scale or clamp"),
        ("standardize", declared.clamp.is_some(), "clamp"),
    ] {
        if declared.sets(key) && !fits {
            return Err(wrong_column(name, key, format!("belongs to {owner}")));
        }
    }
    Ok(())
}

/// A function or a curve of a number.
fn number(
    atom: &Atom,
    transform: Option<Transform>,
    curve: Option<&Curve>,
    declared: &ColumnEntry,
) -> Result<FeatureEntry, Wrong> {
    let (name, key) = (&atom.column, toml_key(&atom.column));
    let mut entry = plain(name, declared)?;
    let refuse = |what: String| Err(Wrong::at(atom.start, what));
    if entry.scale.is_none() && entry.clamp.is_none() {
        return refuse(format!(
            "'{name}' is no number: [columns] {key} has no scale or clamp, which this is a function of"
        ));
    }
    if let (Some(declared), Some(_)) = (entry.transform, transform) {
        return refuse(format!(
            "[columns] {key} says transform = \"{}\" already; write it once, there or here",
            declared.name()
        ));
    }
    if curve.is_some() && entry.scale.is_none() {
        return refuse(format!(
            "a curve needs [columns] {key} = {{ scale = [LOW, HIGH] }} in place of clamp: the bounds are its range"
        ));
    }
    entry.transform = transform.or(entry.transform);
    match curve {
        Some(Curve::Polynomial(degree)) => entry.polynomial = Some(*degree),
        Some(Curve::Spline(knots)) => {
            let knots = knots.clone();
            entry.spline = Some(SplineEntry { knots });
        }
        None => {}
    }
    Ok(entry)
}

/// `offset(log(x))`: the number keeps its units, whatever its declaration maps it to elsewhere.
fn offset(
    atom: &Atom,
    transform: Option<Transform>,
    declared: &ColumnEntry,
) -> Result<FeatureEntry, Wrong> {
    let entry = number(atom, transform, None, declared)?;
    if entry.standardize.is_some() {
        let what =
            "an offset keeps its units, and standardize would change them; drop one of the two";
        return Err(Wrong::at(atom.start, what));
    }
    Ok(FeatureEntry {
        clamp: entry.scale.or(entry.clamp),
        transform: entry.transform,
        missing: entry.missing,
        ..FeatureEntry::default()
    })
}

/// `factor(x, ref = "a")`
fn levels(
    atom: &Atom,
    reference: Option<&(String, usize)>,
    declared: &ColumnEntry,
) -> Result<FeatureEntry, Wrong> {
    let (name, key) = (&atom.column, toml_key(&atom.column));
    let mut entry = plain(name, declared)?;
    if entry.one_hot.is_none() {
        let what = format!("factor needs [columns] {key} = {{ levels = [\"A\", \"B\"] }}");
        return Err(Wrong::at(atom.start, what));
    }
    let Some((reference, place)) = reference else {
        return Ok(entry);
    };
    if let Some(other) = declared.reference.as_ref().filter(|r| *r != reference) {
        let what = format!("[columns] {key} says reference = \"{other}\"; keep one of the two");
        return Err(Wrong::at(*place, what));
    }
    if !classes(&entry).any(|c| c == reference) {
        return Err(Wrong::at(*place, no_level(name, reference, &entry)));
    }
    entry.reference = Some(reference.clone());
    Ok(entry)
}

/// Levels and groups, in the order of their coefficients.
pub(super) fn classes(entry: &FeatureEntry) -> impl Iterator<Item = &String> {
    let groups = entry.groups.iter().flat_map(|g| g.keys());
    entry.one_hot.iter().flatten().chain(groups)
}

fn no_level(name: &str, level: &str, entry: &FeatureEntry) -> String {
    let known: Vec<&str> = classes(entry).take(8).map(String::as_str).collect();
    let more = if classes(entry).count() > 8 {
        ", …"
    } else {
        ""
    };
    let known = known.join(", ");
    format!("'{level}' is none of the levels of '{name}' in [columns], which are {known}{more}")
}

/// `I(x > 3)`: the condition alone is all the declaration that it needs, but for missing cells.
fn condition_of(
    atom: &Atom,
    condition: &IndicatorEntry,
    declared: Option<&ColumnEntry>,
) -> Result<FeatureEntry, Wrong> {
    let mut entry = FeatureEntry {
        indicator: Some(condition.clone()),
        ..FeatureEntry::default()
    };
    let Some(declared) = declared else {
        return Ok(entry);
    };
    let (name, key) = (&atom.column, toml_key(&atom.column));
    let refuse = |what: String| Err(Wrong::at(atom.start, what));
    entry.missing = declared.missing;
    let threshold = condition.above.or(condition.below);
    if let (Some(value), Some([low, high])) = (threshold, declared.scale.or(declared.clamp))
        && !(low..=high).contains(&value)
    {
        return refuse(format!(
            "{value} lies outside the bounds [{low}, {high}] of [columns] {key}, which all cells lie in"
        ));
    }
    if !declared.has_levels() {
        return Ok(entry);
    }
    if threshold.is_some() {
        return refuse(format!("'{name}' has levels in [columns], and no order"));
    }
    let whole = plain(name, declared)?;
    let grouped = whole.groups.iter().flat_map(|g| g.values()).flatten();
    let known: Vec<&String> = whole.one_hot.iter().flatten().chain(grouped).collect();
    for level in condition.one_of.iter().flatten() {
        if !known.contains(&level) {
            return refuse(no_level(name, level, &whole));
        }
    }
    // As among the levels: a missing cell is another one, unless there is none.
    if declared.strict != Some(true) {
        entry.missing = Some(0.0);
    }
    Ok(entry)
}
