//! What a formula makes: its coefficients, term by term, in words for `dpmc check`.

use super::Plan;
use super::declared::Place;
use super::features::features_of;
use crate::config::ConfigError;
use crate::config::schema::{FeatureEntry, LabelEntry};

/// A formula and what it stands for.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FormulaTerms {
    /// The formula.
    pub formula: String,
    /// The label's column; none where the formula begins with `~` and no `[data.label]` names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How the label is read, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_meaning: Option<String>,
    /// In the order of the coefficients.
    pub terms: Vec<Term>,
}

/// One term of a formula.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Term {
    /// As the formula has it.
    pub term: String,
    /// Names of its features, which regressions have a coefficient each for.
    pub coefficients: Vec<String>,
    /// What their values are, in words; empty where the names say it.
    pub meaning: String,
}

impl Plan {
    /// What rows add to their linear predictor as it is, in words, if they add something.
    ///
    /// # Errors
    /// [`ConfigError`] where a formula is wrong.
    pub fn offset_meaning(&self) -> Result<Option<String>, ConfigError> {
        let offset = self.declared()?.offset;
        Ok(offset.map(|(_, entry)| meaning(&entry)))
    }

    /// How often rows count, in words, if they have weights.
    pub fn weights_meaning(&self) -> Option<String> {
        self.weights_entry().map(|(section, w)| {
            let (column, most) = (&w.column, w.most);
            match section {
                "data.weights" => {
                    format!(
                        "{column}, up to {most}, over {}: a row's log likelihood counts that often",
                        w.one.unwrap_or(1.0)
                    )
                }
                _ => format!("{column}, up to {most} trials of a row"),
            }
        })
    }

    /// The terms of the run file's formula, if it has one; no row is read.
    ///
    /// # Errors
    /// [`ConfigError`], as for the table.
    pub fn formula_terms(&self) -> Result<Option<FormulaTerms>, ConfigError> {
        let Some(formula) = &self.config.model.formula else {
            return Ok(None);
        };
        let declared = self.declared()?;
        let source = self.source(&self.config.data.file, self.config.data.label_file.as_ref())?;
        let mut terms = Vec::new();
        for (place, entry) in &declared.features {
            let refuse =
                |(part, what): (&str, String)| self.refuse_feature(place, entry, part, &what);
            let made = features_of(entry).map_err(refuse)?;
            terms.push(Term {
                term: text_of(place),
                coefficients: made.iter().flat_map(|f| f.names()).collect(),
                meaning: match place.hierarchy() {
                    Some(name) => shared(name, entry.column.as_deref()),
                    None => meaning(entry),
                },
            });
        }
        let mains: usize = terms.iter().map(|t| t.coefficients.len()).sum();
        for ((place, _), interaction) in declared.interactions.iter().zip(&source.interactions) {
            let mut alone = source.clone();
            alone.interactions = vec![interaction.clone()];
            terms.push(Term {
                term: text_of(place),
                coefficients: alone.names().split_off(mains),
                meaning: match place.hierarchy() {
                    Some(name) => shared(name, None),
                    None => "products".into(),
                },
            });
        }
        let label = declared.label.map(|(_, l)| l);
        Ok(Some(FormulaTerms {
            formula: formula.split_whitespace().collect::<Vec<_>>().join(" "),
            label_meaning: label.as_ref().map(label_meaning),
            label: label.and_then(|l| l.column),
            terms,
        }))
    }
}

/// Of levels that share a prior.
fn shared(name: &str, column: Option<&str>) -> String {
    let what = match column {
        Some(column) => format!("one for each level of {column}"),
        None => "deviations from the slope, one for each level".into(),
    };
    format!("{what}, N(0, sd({name})²)")
}

fn text_of(place: &Place) -> String {
    match place {
        Place::Key(key) => key.clone(),
        Place::Term { text, .. } => text.clone(),
    }
}

fn listed<T: std::fmt::Display>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(T::to_string).collect();
    values.join(", ")
}

/// What the values of a declaration's features are.
fn meaning(entry: &FeatureEntry) -> String {
    let of = match (entry.transform, &entry.column) {
        (Some(transform), Some(column)) => format!("{}({column})", transform.name()),
        (_, column) => column.clone().unwrap_or_default(),
    };
    let [low, high] = entry.scale.or(entry.clamp).unwrap_or_default();
    if let Some(degree) = entry.polynomial {
        return format!("Legendre polynomials of {of} up to degree {degree} over {low} to {high}");
    }
    if let Some(spline) = &entry.spline {
        let knots = listed(&spline.knots);
        return format!("natural cubic spline of {of} over {low} to {high}, knots {knots}");
    }
    if entry.scale.is_some() {
        return format!("{of}, mapped: -1 at {low}, 1 at {high}");
    }
    if entry.clamp.is_some() {
        return match &entry.standardize {
            Some(s) => format!("({of} - {})/{}, cut off at {low} and {high}", s.mean, s.sd),
            None => format!("{of}, cut off at {low} and {high}"),
        };
    }
    match (&entry.one_hot, &entry.reference, &entry.column) {
        (Some(_), Some(reference), Some(column)) => {
            format!("differences from {column}={reference}")
        }
        (Some(_), None, _) => "one for each level".into(),
        _ => String::new(),
    }
}

/// How a label is read.
fn label_meaning(label: &LabelEntry) -> String {
    let texts = |levels: &[String]| {
        let levels: Vec<String> = levels.iter().map(|l| format!("\"{l}\"")).collect();
        levels.join(", ")
    };
    if !label.positive.is_empty() {
        let positive = texts(&label.positive);
        let negative = match label.negative.is_empty() {
            true => "any other text".into(),
            false => texts(&label.negative),
        };
        return format!("1 for {positive}, 0 for {negative}");
    }
    if !label.levels.is_empty() {
        let each = label.levels.iter().map(|l| texts(&l.texts()));
        return format!("in this order: {}", each.collect::<Vec<_>>().join(" < "));
    }
    if let Some(trials) = &label.trials {
        return format!("successes in as many trials as {} says", trials.column);
    }
    if let (Some([low, high]), Some(event)) = (label.clamp, &label.event) {
        let (seen, column) = (texts(&event.seen), &event.column);
        return format!("times from {low} to {high}, of events where {column} is {seen}");
    }
    if let Some([low, high]) = label.clamp {
        return format!("numbers from {low} to {high}");
    }
    if let Some([low, high]) = label.scale {
        return format!("-1 at {low}, 1 at {high}");
    }
    if let Some(max) = label.count {
        return format!("counts up to {max}");
    }
    match label.classes {
        Some(classes) => format!("classes 0 to {}", classes.saturating_sub(1)),
        None => "0 or 1".into(),
    }
}
