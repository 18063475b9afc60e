//! `[data]` and `[test]`: tables with their declared features and labels.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::Plan;
use crate::config::ConfigError;
use crate::config::files::{existing_part, is_pattern, table_files};
use crate::config::schema::{FeatureEntry, LabelEntry, LevelEntry, TestSection};
use crate::data::{
    self, BadCells, BoundsSource, Dataset, Feature, Frame, Held, Label, LabelKind, LabelValues,
    Part, Room, SeenEvent, Share, Source, TextFormat, Unit,
};

/// Ends the name that stands for a table in memory where a run file names a file.
const IN_MEMORY: &str = ".frame";

impl Plan {
    /// Loads the sensitive table.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key, or file, line and column.
    pub fn load_data(&self) -> Result<Dataset, ConfigError> {
        let (source, parts) = self.protected()?;
        Ok(data::load_parts(&source, &parts)?)
    }

    /// What is declared of the sensitive table, and its files where it has several.
    fn protected(&self) -> Result<(Source, Vec<Part>), ConfigError> {
        let data = &self.config.data;
        if self.is_of_frame() {
            return Err(self.refuse(
                "data.file",
                "stands for a table that a program held in memory; only that program can hand it over again",
            ));
        }
        let mut source = self.source(&data.file, data.label_file.as_ref())?;
        // The test table has none: it is not clipped for privacy.
        source.bounds = self.bounds()?;
        source.unit = self.unit()?;
        source.weights = self.row_weights()?;
        source.room = self.room.clone();
        let parts = table_files(&source.path)?;
        let by_cells = parts.iter().any(|part| !part.given.is_empty());
        if by_cells && matches!(source.bounds, Some(BoundsSource::File(_))) {
            return Err(self.refuse(
                "data.bounds.file",
                "rows stand in the order of their folders' names, which are cells, and bounds must not follow cells; give the bounds in a column",
            ));
        }
        Ok((source, parts))
    }

    /// How much memory the sensitive table's rows may take, and where they are kept beyond that: a
    /// matter of the machine, of which the run file says nothing.
    pub fn keep_rows(&mut self, room: Room) {
        self.room = room;
    }

    /// What was said of that.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// As [`Plan::load_data`], the rows of one of several ranks, and which of the table's they are.
    ///
    /// # Errors
    /// As there.
    pub fn load_share(&self, share: Share) -> Result<(Dataset, Held), ConfigError> {
        let (source, parts) = self.protected()?;
        Ok(data::load_share(&source, &parts, share)?)
    }

    /// As [`Plan::load_data`], of a table in memory.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key, or row and column.
    pub fn load_frame(&self, frame: &Frame) -> Result<Dataset, ConfigError> {
        let data = &self.config.data;
        let mut source = self.source(&data.file, data.label_file.as_ref())?;
        source.bounds = self.bounds()?;
        source.unit = self.unit()?;
        source.weights = self.row_weights()?;
        source.path = PathBuf::from(format!("the table '{}' in memory", self.dataset_name()));
        Ok(data::load_frame(&source, frame)?)
    }

    /// The features that `frame` has by the declarations of `[data]`, without a label. Its rows
    /// are the caller's own to read: whoever predicts with released draws declares them public.
    ///
    /// # Errors
    /// As [`Plan::load_frame`].
    pub fn load_features(&self, frame: &Frame) -> Result<Dataset, ConfigError> {
        let mut source = self.source(&self.config.data.file, None)?;
        source.label = None;
        source.path = PathBuf::from("the new table");
        Ok(data::load_frame(&source, frame)?)
    }

    /// Whose rows are, where a guarantee for single rows would not do.
    pub(super) fn unit(&self) -> Result<Option<Unit>, ConfigError> {
        let data = &self.config.data;
        match (&data.unit, data.rows_per_unit) {
            (None, None) => Ok(None),
            (Some(column), Some(rows)) => {
                let column = column.clone();
                let unit = Unit { column, rows };
                let refuse = |what| self.refuse("data.rows_per_unit", what);
                unit.validate().map_err(refuse)?;
                Ok(Some(unit))
            }
            (Some(_), None) => Err(self.refuse(
                "data.rows_per_unit",
                "is missing: say how many rows of one unit count; it is public, and noise grows with it",
            )),
            (None, Some(_)) => Err(self.refuse(
                "data.rows_per_unit",
                "belongs to data.unit, the column that says whose a row is; give that too, or drop this",
            )),
        }
    }

    /// Has a table in memory, which only the caller can hand over again, take the file's place:
    /// the data set keeps its name.
    pub fn take_frame(&mut self) {
        let name = self.dataset_name();
        self.config.data.file = format!("{name}{IN_MEMORY}").into();
        self.config.data.name = Some(name);
    }

    /// Whether the table was in the memory of a program: see [`Plan::take_frame`].
    pub fn is_of_frame(&self) -> bool {
        let name = self.config.data.file.file_name().unwrap_or_default();
        name.to_string_lossy().ends_with(IN_MEMORY)
    }

    /// Loads the public held-out table, if one is declared.
    ///
    /// # Errors
    /// [`ConfigError`], also where the table is not declared public.
    pub fn load_test(&self) -> Result<Option<Dataset>, ConfigError> {
        let Some(test) = self.public_test()? else {
            return Ok(None);
        };
        let source = self.source(&test.file, test.label_file.as_ref())?;
        let parts = table_files(&source.path)?;
        Ok(Some(data::load_parts(&source, &parts)?))
    }

    /// The `[test]` section, if there is one; refused unless it is declared public, and where
    /// a private run protects the same file.
    pub(super) fn public_test(&self) -> Result<Option<&TestSection>, ConfigError> {
        let Some(test) = &self.config.test else {
            return Ok(None);
        };
        if !test.public {
            return Err(self.refuse(
                "test.public",
                "the guarantee does not cover the test table; set public = true if its rows may be revealed, or drop [test]",
            ));
        }
        if test.label_file.is_some() && self.label_column()? {
            return Err(self.refuse(
                "test.label_file",
                "contradicts the column of [data.label]; keep one",
            ));
        }
        let data = &self.config.data;
        let is_private = |file: &PathBuf| {
            let mut private = std::iter::once(&data.file).chain(&data.label_file);
            private.any(|private| self.same_file(file, private))
        };
        let key = if is_private(&test.file) {
            "test.file"
        } else if test.label_file.as_ref().is_some_and(is_private) {
            "test.label_file"
        } else {
            return Ok(Some(test));
        };
        if self.config.privacy.not_private {
            return Ok(Some(test));
        }
        Err(self.refuse(
            key,
            "is the file of [data], which the run protects; a public test table holds other rows, in a file of its own; split the table or drop [test]",
        ))
    }

    /// Whether two paths of the run file lead to a common file, by whatever links, hard ones too.
    pub(super) fn same_file(&self, one: &Path, other: &Path) -> bool {
        let canonical = |p: PathBuf| p.canonicalize().unwrap_or(p);
        let places = |file| {
            let path = self.locate(file);
            let paths: Vec<PathBuf> = match table_files(&path) {
                Ok(parts) if !parts.is_empty() => parts.into_iter().map(|p| p.path).collect(),
                // A folder that cannot be listed as a table may hold any file below it.
                Err(_) => vec![existing_part(&path)],
                Ok(_) => vec![path],
            };
            paths.into_iter().map(canonical)
        };
        let within = |place: &Path, all: &HashSet<PathBuf>| {
            let mut above = place.ancestors();
            above.any(|part| all.contains(part))
        };
        let [one, other] = [one, other].map(|file| places(file).collect::<HashSet<PathBuf>>());
        one.iter().any(|place| within(place, &other))
            || other.iter().any(|place| within(place, &one))
            || has_common_file(&one, &other)
    }

    /// Refuses a table without a name: a pattern has none that a ledger could know it by.
    ///
    /// # Errors
    /// [`ConfigError`] at `data.name`.
    pub fn check_name(&self) -> Result<(), ConfigError> {
        let data = &self.config.data;
        let has_own = data.file.file_name().is_some() && !is_pattern(&self.locate(&data.file));
        match data.name.is_some() || has_own {
            true => Ok(()),
            false => Err(self.refuse(
                "data.name",
                "the files have no name of their own; give one, such as name = \"visits\", by which ledgers know the table",
            )),
        }
    }

    /// Whether a path of the run file names text tables.
    fn is_text(&self, file: &Path) -> bool {
        let first = || table_files(&self.locate(file)).ok()?.into_iter().next();
        data::is_text(file) || first().is_some_and(|part| data::is_text(&part.path))
    }

    /// A table file with the declarations of `[data]`, checked.
    pub(super) fn source(
        &self,
        file: &Path,
        label_file: Option<&PathBuf>,
    ) -> Result<Source, ConfigError> {
        let data = &self.config.data;
        let features = self.features()?;
        let interactions = self.interactions(&features)?;
        let offset = self.offset()?;
        if let Some(norm) = data.row_norm
            && !(norm > 0.0 && norm.is_finite())
        {
            return Err(self.refuse("data.row_norm", format!("must be positive, not {norm}")));
        }
        let label = self.label()?;
        let column = label.as_ref().and_then(|l| l.column.as_ref());
        if column.is_some() && data.label_file.is_some() {
            return Err(self.refuse(
                "data.label_file",
                "contradicts the column of [data.label]; keep one",
            ));
        }
        if column.is_none() && data.label.is_some() && data.label_file.is_none() {
            return Err(self.refuse("data.label", "needs its 'column', or a label_file"));
        }
        if data.bad_cells == BadCells::Missing {
            let all: Vec<&Feature> = features.iter().chain(&offset).collect();
            self.check_missing_rules(&all, label.as_ref())?;
        }
        Ok(Source {
            path: self.locate(file),
            label_file: label_file.map(|f| self.locate(f)),
            features,
            interactions,
            offset,
            label,
            row_norm: data.row_norm,
            weights: None,
            bounds: None,
            unit: None,
            text: self.text_format()?,
            bad_cells: data.bad_cells,
            storage: data.storage,
            room: Room::default(),
        })
    }

    /// How the text tables of the run file are written.
    fn text_format(&self) -> Result<TextFormat, ConfigError> {
        let data = &self.config.data;
        let test = self.config.test.as_ref().map(|t| &t.file);
        let held_out = self.config.validate.as_ref().map(|v| &v.file);
        let others = || test.into_iter().chain(held_out);
        let text = || self.is_text(&data.file) || others().any(|file| self.is_text(file));
        for (key, given) in [
            ("data.delimiter", data.delimiter.is_some()),
            ("data.quoted_newlines", data.quoted_newlines),
        ] {
            if given && !text() {
                let what = "belongs to text tables (.csv, .tsv, .txt); drop it";
                return Err(self.refuse(key, what));
            }
        }
        let delimiter = data.delimiter.as_deref().map(data::delimiter).transpose();
        Ok(TextFormat {
            delimiter: delimiter.map_err(|what| self.refuse("data.delimiter", what))?,
            quoted_newlines: data.quoted_newlines,
        })
    }

    /// Cells that cannot be read count as missing only where all declarations say what missing
    /// cells count as, so that no cell can stop a run.
    fn check_missing_rules(
        &self,
        features: &[&Feature],
        label: Option<&Label>,
    ) -> Result<(), ConfigError> {
        let refuse = |what: String| {
            let what =
                format!("\"missing\" needs a rule for missing cells in every declaration; {what}");
            Err(self.refuse("data.bad_cells", what))
        };
        if let Some(feature) = features.iter().find(|f| !f.reads_missing()) {
            let column = feature.column.as_deref().unwrap_or_default();
            return refuse(format!(
                "column '{column}' has none: give 'missing', or the level \"\" among its levels"
            ));
        }
        if label.is_some_and(|label| !label.reads_missing()) {
            return refuse("the label has none: give 'missing' with clamp, scale, count or classes, name the level \"\" in 'positive', 'negative' or one of 'levels', and in the 'in' of an 'event'".into());
        }
        if self.config.data.unit.is_some() {
            return refuse("that of data.unit can have none: whose a row is must not depend on whether its line can be read".into());
        }
        if self.weights_entry().is_some() {
            return refuse("the column of [data.weights] can have none: a row without a weight would count in no stated way".into());
        }
        let bounds = self.config.data.bounds.as_ref();
        if bounds.is_some_and(|b| b.column.is_some()) {
            return refuse(
                "the column of [data.bounds] can have none: give the bounds in a 'file'".into(),
            );
        }
        Ok(())
    }

    fn label_column(&self) -> Result<bool, ConfigError> {
        let label = self.declared()?.label;
        Ok(label.is_some_and(|(_, l)| l.column.is_some()))
    }

    /// The label as it is declared, be it in `[data.label]` or in `[columns]`, with its key.
    ///
    /// # Errors
    /// [`ConfigError`] where a formula is wrong.
    pub fn declared_label(&self) -> Result<Option<(String, LabelEntry)>, ConfigError> {
        Ok(self.declared()?.label)
    }

    /// The columns of the table that the run reads, in no order; some of them twice.
    ///
    /// # Errors
    /// [`ConfigError`] where a formula is wrong.
    pub fn columns(&self) -> Result<Vec<String>, ConfigError> {
        let bounds = self.config.data.bounds.iter();
        let bounds = bounds.filter_map(|b| b.column.clone());
        let weights = self.weights_entry().map(|(_, w)| w.column.clone());
        let beside = bounds.chain(self.config.data.unit.clone()).chain(weights);
        Ok(self.declared()?.columns().cloned().chain(beside).collect())
    }

    /// What the labels are, where some are declared.
    pub(super) fn label_kind(&self) -> Result<Option<LabelKind>, ConfigError> {
        Ok(self.label()?.as_ref().map(Label::kind))
    }

    /// The declared label, checked; 0/1 where a `label_file` stands alone.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key.
    pub fn label(&self) -> Result<Option<Label>, ConfigError> {
        let data = &self.config.data;
        let Some((key, entry)) = self.declared()?.label else {
            return Ok(data.label_file.as_ref().map(|_| Label::zero_one_file()));
        };
        self.check_levels(&key, &entry)?;
        let label = label(&entry).map_err(|what| self.refuse(&key, what))?;
        label
            .check()
            .map_err(|(part, what)| self.refuse(&key_of(&key, part), what))?;
        Ok(Some(label))
    }

    /// Negative levels mean something only beside positive ones, and other texts.
    fn check_levels(&self, key: &str, label: &LabelEntry) -> Result<(), ConfigError> {
        let ordered = label.levels.iter().flat_map(LevelEntry::texts).collect();
        let seen = label.event.iter().flat_map(|e| e.seen.clone()).collect();
        let censored: Vec<String> = label
            .event
            .iter()
            .flat_map(|e| e.censored.clone())
            .collect();
        for (part, levels) in [
            ("positive", &label.positive),
            ("negative", &label.negative),
            ("levels", &ordered),
            ("event.in", &seen),
            ("event.censored", &censored),
        ] {
            can_match(levels).map_err(|w| self.refuse(&key_of(key, part), w))?;
        }
        if let Some(level) = censored.iter().find(|l| seen.contains(l)) {
            let what = format!("'{level}' means that the event was seen, by 'in'");
            return Err(self.refuse(&key_of(key, "event.censored"), what));
        }
        let refuse = |what: &str| Err(self.refuse(&key_of(key, "negative"), what));
        if label.positive.is_empty() && !label.negative.is_empty() {
            return refuse("needs 'positive' beside it; without it cells must be 0 or 1");
        }
        match label.negative.iter().find(|l| label.positive.contains(l)) {
            Some(level) => refuse(&format!("level '{level}' is declared positive too")),
            None => Ok(()),
        }
    }

    /// The label is no feature: its own column would predict it.
    pub(super) fn check_label_apart(
        &self,
        key: &str,
        entry: &FeatureEntry,
    ) -> Result<(), ConfigError> {
        let Some(declared) = &self.config.data.label else {
            return Ok(());
        };
        let named = |column: &String| {
            entry.column.as_ref() == Some(column)
                || entry.columns.iter().flatten().any(|c| c == column)
        };
        let of_label = [
            &declared.column,
            &declared.event.as_ref().map(|e| e.column.clone()),
            &declared.trials.as_ref().map(|t| t.column.clone()),
        ];
        let Some(label) = of_label.into_iter().flatten().find(|c| named(c)) else {
            return Ok(());
        };
        let part = if entry.column.as_ref() == Some(label) {
            "column"
        } else {
            "columns"
        };
        Err(self.refuse(
            &key_of(key, part),
            format!("column '{label}' belongs to the label of [data.label], which a feature of it would predict exactly; drop it here"),
        ))
    }
}

/// Whether a file is among both, under two names perhaps.
fn has_common_file(one: &HashSet<PathBuf>, other: &HashSet<PathBuf>) -> bool {
    // All names of a file have its length and its time in common: few others are to be opened.
    let marks = |path: &PathBuf| {
        let data = path.metadata().ok().filter(|data| data.is_file())?;
        Some((data.len(), data.modified().ok()))
    };
    let mut marked: HashMap<_, Vec<&PathBuf>> = HashMap::new();
    for path in other {
        marked.entry(marks(path)).or_default().push(path);
    }
    one.iter().any(|path| {
        let mark = marks(path);
        let alike = marked.get(&mark).filter(|_| mark.is_some());
        let mut alike = alike.into_iter().flatten();
        alike.any(|other| same_file::is_same_file(path, other).unwrap_or(false))
    })
}

/// The key of a part of a declaration; "" for all of it.
pub(super) fn key_of(declaration: &str, part: &str) -> String {
    match part {
        "" => declaration.into(),
        _ => format!("{declaration}.{part}"),
    }
}

/// A level that `dpmc init` left to declare would match no cell, and nobody would know; nor would
/// one with blanks around it, which cells are read without.
pub(super) fn can_match(levels: &[String]) -> Result<(), String> {
    if levels.iter().any(|l| l == "LEVEL") {
        return Err("replace LEVEL by a level of the column".into());
    }
    match levels.iter().find(|l| l.trim() != l.as_str()) {
        Some(level) => Err(format!(
            "level '{level}' has blanks at an edge and would match no cell: cells are read without blanks around them; write '{}'",
            level.trim()
        )),
        None => Ok(()),
    }
}

fn label(entry: &LabelEntry) -> Result<Label, String> {
    let kinds = [
        !entry.positive.is_empty(),
        entry.clamp.is_some(),
        entry.scale.is_some(),
        entry.count.is_some(),
        entry.classes.is_some(),
        !entry.levels.is_empty(),
        entry.trials.is_some(),
    ];
    if kinds.iter().filter(|k| **k).count() > 1 {
        return Err(
            "declarations contradict: give one of positive = […], clamp = [low, high], scale = [low, high], count = max, classes = k, levels = […], trials = { column = …, most = … }, or none for 0/1 cells"
                .into(),
        );
    }
    let ordered: Vec<Vec<String>> = entry.levels.iter().map(LevelEntry::texts).collect();
    let texts = ordered.concat();
    for (key, levels) in [("positive", &entry.positive), ("levels", &texts)] {
        if !levels.is_empty() && entry.column.is_none() {
            return Err(format!("'{key}' reads texts and needs a 'column'"));
        }
    }
    if entry.event.as_ref().is_some_and(|e| e.seen.is_empty()) {
        return Err(
            "'event' names no text that means that the event was seen: in = [\"1\"]".into(),
        );
    }
    if entry.event.is_some() && entry.column.is_none() {
        return Err("'event' goes with the 'column' of a time".into());
    }
    let repeated = |(k, level): (usize, &String)| texts[..k].contains(level);
    if texts.iter().enumerate().any(repeated) {
        return Err("'levels' names a level twice".into());
    }
    if entry.trials.is_some() && entry.column.is_none() {
        return Err("'trials' goes with the 'column' of the successes".into());
    }
    let values = if let Some(trials) = &entry.trials {
        let trials = trials.column.clone();
        LabelValues::Successes { trials }
    } else if let Some([low, high]) = entry.clamp {
        LabelValues::Clamp { low, high }
    } else if let Some([low, high]) = entry.scale {
        LabelValues::Scale { low, high }
    } else if let Some(max) = entry.count {
        LabelValues::Count { max }
    } else if let Some(classes) = entry.classes {
        LabelValues::Classes { classes }
    } else if !entry.levels.is_empty() {
        LabelValues::Levels(ordered)
    } else if entry.positive.is_empty() {
        LabelValues::ZeroOne
    } else {
        LabelValues::Named {
            positive: entry.positive.clone(),
            negative: entry.negative.clone(),
        }
    };
    Ok(Label {
        column: entry.column.clone(),
        values,
        missing: entry.missing,
        event: entry.event.as_ref().map(|e| SeenEvent {
            column: e.column.clone(),
            seen: e.seen.clone(),
            censored: e.censored.clone(),
        }),
    })
}

#[cfg(test)]
mod tests;
