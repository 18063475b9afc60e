//! What is declared of a table, by `[data.label]` and `[[data.features]]` or by a formula over
//! `[columns]`.

use super::Plan;
use super::data::key_of;
use crate::config::ConfigError;
use crate::config::formula::{Expansion, LabelColumns, Wrong, expand, toml_key};
use crate::config::schema::{
    ColumnEntry, FeatureEntry, InteractionEntry, LabelEntry, LevelEntry, ModelKind,
};
use crate::expression::ParseError;

const FORMULA: &str = "model.formula";

/// Declarations, with where they stand.
#[derive(Debug)]
pub(super) struct Declared {
    pub label: Option<(String, LabelEntry)>,
    pub features: Vec<(Place, FeatureEntry)>,
    pub interactions: Vec<(Place, InteractionEntry)>,
    /// A number that rows add to their linear predictor as it is.
    pub offset: Option<(Place, FeatureEntry)>,
}

/// Where a declaration stands.
#[derive(Debug)]
pub(super) enum Place {
    /// A key of the run file.
    Key(String),
    /// A term of the formula, by its text and character, and the hierarchy whose prior its
    /// coefficients share.
    Term {
        text: String,
        place: usize,
        hierarchy: Option<String>,
    },
}

impl Place {
    /// The hierarchy of a formula's term.
    pub fn hierarchy(&self) -> Option<&str> {
        match self {
            Place::Term { hierarchy, .. } => hierarchy.as_deref(),
            Place::Key(_) => None,
        }
    }
}

impl Declared {
    /// The columns that labels, features and the offset are read from.
    pub fn columns(&self) -> impl Iterator<Item = &String> {
        let features = self.features.iter().chain(&self.offset);
        let features = features.flat_map(|(_, e)| {
            let several = e.columns.iter().flatten();
            e.column.iter().chain(several)
        });
        let label = self.label.iter().flat_map(|(_, l)| {
            let event = l.event.iter().map(|e| &e.column);
            let trials = l.trials.iter().map(|t| &t.column);
            l.column.iter().chain(event).chain(trials)
        });
        features.chain(label)
    }
}

impl Plan {
    /// All declarations of the table but those of its bounds.
    pub(super) fn declared(&self) -> Result<Declared, ConfigError> {
        let config = &self.config;
        let Some(formula) = &config.model.formula else {
            if !config.columns.is_empty() {
                let what = "is for formulas: give one in [model], formula = \"label ~ a + b\", or declare the features in [[data.features]]";
                return Err(self.refuse("columns", what));
            }
            return Ok(self.blocks());
        };
        let data = &config.data;
        for (key, given) in [
            ("data.features", !data.features.is_empty()),
            ("data.interactions", !data.interactions.is_empty()),
        ] {
            if given {
                let what = "[model] has a formula, which declares all features: delete these blocks, or the formula";
                return Err(self.refuse(key, what));
            }
        }
        let declared = data.label.as_ref();
        let event = declared.and_then(|l| l.event.as_ref());
        let label = LabelColumns {
            label: declared.and_then(|l| l.column.as_deref()),
            event: event.map(|e| e.column.as_str()),
        };
        let found = expand(formula, &config.columns, label).map_err(|w| self.wrong(w))?;
        let own = self.offset_block();
        if let (Some(_), Some(offset)) = (&own, &found.offset) {
            let what = "the offset is declared twice: delete [data.offset] or this term";
            return Err(self.refuse_formula(offset.place, what));
        }
        let label = self.label_of(&found)?;
        let term = |text, place, hierarchy| Place::Term {
            text,
            place,
            hierarchy,
        };
        // Cutpoints are the intercepts of ordered classes; references stay as beside one.
        let ordered = config.model.kind == ModelKind::Ordinal;
        let features = found.features.into_iter();
        let features = features.filter(|m| !(ordered && m.entry.intercept == Some(true)));
        let interactions = found.interactions.into_iter();
        let offset = found.offset;
        Ok(Declared {
            label,
            offset: offset.map_or(own, |m| Some((term(m.text, m.place, m.hierarchy), m.entry))),
            features: features
                .map(|m| (term(m.text, m.place, m.hierarchy), m.entry))
                .collect(),
            interactions: interactions
                .map(|p| (term(p.text, p.place, p.hierarchy), p.entry))
                .collect(),
        })
    }

    fn blocks(&self) -> Declared {
        let data = &self.config.data;
        let label = data.label.clone().map(|l| ("data.label".to_string(), l));
        let features = data.features.iter().cloned().enumerate();
        let interactions = data.interactions.iter().cloned().enumerate();
        Declared {
            label,
            offset: self.offset_block(),
            features: features
                .map(|(i, e)| (Place::Key(format!("data.features[{i}]")), e))
                .collect(),
            interactions: interactions
                .map(|(i, e)| (Place::Key(format!("data.interactions[{i}]")), e))
                .collect(),
        }
    }

    fn offset_block(&self) -> Option<(Place, FeatureEntry)> {
        let entry = self.config.data.offset.clone()?;
        let entry = FeatureEntry {
            column: Some(entry.column),
            clamp: Some(entry.clamp),
            transform: entry.transform,
            missing: entry.missing,
            ..FeatureEntry::default()
        };
        Some((Place::Key("data.offset".into()), entry))
    }

    /// What is declared of features and of the offset, by blocks or by a formula.
    ///
    /// # Errors
    /// [`ConfigError`] where a formula is wrong.
    pub fn feature_entries(&self) -> Result<Vec<FeatureEntry>, ConfigError> {
        let declared = self.declared()?;
        let features = declared.features.into_iter().chain(declared.offset);
        Ok(features.map(|(_, entry)| entry).collect())
    }

    /// The columns that features and the offset are read from, in no order; some of them twice.
    ///
    /// # Errors
    /// [`ConfigError`] where a formula is wrong.
    pub fn feature_columns(&self) -> Result<Vec<String>, ConfigError> {
        let of = |e: FeatureEntry| e.column.into_iter().chain(e.columns.into_iter().flatten());
        Ok(self.feature_entries()?.into_iter().flat_map(of).collect())
    }

    /// The label that a formula names, which `[data.label]` or `[columns]` declares.
    fn label_of(&self, found: &Expansion) -> Result<Option<(String, LabelEntry)>, ConfigError> {
        let data = &self.config.data;
        let entry = data.label.clone().map(|l| ("data.label".to_string(), l));
        let Some((name, place)) = &found.label else {
            return Ok(entry);
        };
        if data.label_file.is_some() {
            let what = format!(
                "contradicts the formula's label '{name}'; drop one (a formula without a label begins with ~)"
            );
            return Err(self.refuse("data.label_file", what));
        }
        let (key, declared) = (column_key(name, ""), self.config.columns.get(name));
        let wrong = |what: String| Err(self.refuse_formula(*place, &what));
        match (entry, declared) {
            (Some(_), Some(_)) => Err(self.refuse(
                "data.label",
                format!("the label is declared twice: delete [data.label] or {key}"),
            )),
            (Some((_, entry)), None) if entry.column.as_ref() != Some(name) => wrong(format!(
                "[data.label] declares another label than '{name}'; name its column here, or declare {key} in its place"
            )),
            (Some(entry), None) => Ok(Some(entry)),
            (None, Some(declared)) => Ok(Some((key, self.label_entry(name, declared)?))),
            (None, None) => wrong(format!(
                "the label '{name}' is not declared: write in [columns] {} = {{ positive = [\"yes\"], negative = [\"no\"] }} for two classes, {{ count = MAX }} for counts, {{ clamp = [LOW, HIGH] }} or {{ scale = [LOW, HIGH] }} for numbers, {{}} for 0 and 1",
                toml_key(name)
            )),
        }
    }

    fn label_entry(&self, name: &str, declared: &ColumnEntry) -> Result<LabelEntry, ConfigError> {
        for key in [
            "transform",
            "standardize",
            "groups",
            "strict",
            "reference",
            "indicator",
        ] {
            if declared.sets(key) {
                let what = "belongs to features, and the formula has the column as its label: two classes are positive = […] and negative = […], numbers scale or clamp, counts count, ordered classes levels";
                return Err(self.refuse(&column_key(name, key), what));
            }
        }
        Ok(LabelEntry {
            column: Some(name.into()),
            positive: declared.positive.clone(),
            negative: declared.negative.clone(),
            clamp: declared.clamp,
            scale: declared.scale,
            count: declared.count,
            classes: declared.classes,
            levels: (declared.levels.iter().flatten().cloned())
                .map(LevelEntry::One)
                .collect(),
            event: None,
            trials: None,
            missing: declared.missing,
        })
    }

    fn wrong(&self, wrong: Wrong) -> ConfigError {
        match wrong {
            Wrong::Formula { place, what } => self.refuse_formula(place, &what),
            Wrong::Column { name, part, what } => self.refuse(&column_key(&name, part), what),
        }
    }

    /// An error at a character of the formula, from 0.
    pub(super) fn refuse_formula(&self, place: usize, what: &str) -> ConfigError {
        let text = self.config.model.formula.as_deref().unwrap_or_default();
        let error = ParseError {
            // On one line, where a run file has several.
            text: text.replace(char::is_whitespace, " "),
            place: place + 1,
            what: what.into(),
        };
        self.refuse(FORMULA, error.to_string())
    }

    /// An error at a part of a feature's declaration; "" for all of it.
    pub(super) fn refuse_feature(
        &self,
        place: &Place,
        entry: &FeatureEntry,
        part: &str,
        what: &str,
    ) -> ConfigError {
        let (place, column) = match (place, &entry.column) {
            (Place::Key(key), _) => return self.refuse(&key_of(key, part), what),
            (Place::Term { place, .. }, column) => (*place, column),
        };
        let declared = column
            .as_ref()
            .and_then(|c| Some((c, self.config.columns.get(c)?)));
        let Some((column, declared)) = declared else {
            return self.refuse_formula(place, what);
        };
        let of_formula = match part {
            "polynomial" | "spline" => true,
            "transform" => declared.transform.is_none(),
            _ => entry.indicator.is_some() && declared.indicator.is_none(),
        };
        match of_formula {
            true => self.refuse_formula(place, what),
            false => self.refuse(&column_key(column, part), what.replace("one_hot", "levels")),
        }
    }

    /// An error of an interaction.
    pub(super) fn refuse_interaction(&self, place: &Place, what: &str) -> ConfigError {
        match place {
            Place::Key(key) => self.refuse(&key_of(key, "features"), what),
            Place::Term { place, .. } => self.refuse_formula(*place, what),
        }
    }

    /// The key that all features stand under.
    pub(super) fn features_key(&self) -> &'static str {
        match self.config.model.formula {
            Some(_) => FORMULA,
            None => "data.features",
        }
    }

    /// The key that the label stands under, or would.
    pub(super) fn label_key(&self) -> String {
        let declared = self.declared().ok().and_then(|d| d.label);
        match (declared, &self.config.model.formula) {
            (Some((key, _)), _) => key,
            (None, Some(_)) => FORMULA.into(),
            (None, None) => "data.label".into(),
        }
    }
}

fn column_key(name: &str, part: &str) -> String {
    key_of(&format!("columns.{}", toml_key(name)), part)
}
