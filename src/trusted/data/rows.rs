//! From cells to rows of a [`Dataset`] by the declarations: batches of rows on all threads, taken
//! in the order of the file. Which row is refused, and with what words, follows from the table
//! alone, never from threads.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::feature::Cell;
use super::kept::{self, Kept, Spilled};
use super::{
    BoundsSource, DataError, Dataset, DatasetBuilder, FeatureKind, Held, Label, Part, RowBounds,
    Share, Source, TILE, bounds, load, row_weights, unit,
};

/// What becomes of a cell that its declaration cannot read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadCells {
    /// It ends the load with an error that names its line.
    #[default]
    Error,
    /// It counts as missing, and so do all cells of a line that does not split into the header's.
    Missing,
}

impl BadCells {
    pub(crate) fn is_default(&self) -> bool {
        *self == BadCells::Error
    }

    /// What `read` makes of a cell, or of a missing one in place of one that it refuses.
    #[inline]
    pub(super) fn read<T>(
        self,
        cell: Cell<'_>,
        mut read: impl FnMut(Cell<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let first = match cell {
            Cell::Bad(what) => Err(what.to_string()),
            _ => read(cell),
        };
        match self {
            BadCells::Error => first,
            BadCells::Missing => first.or_else(|what| read(Cell::Missing).map_err(|_| what)),
        }
    }
}

/// How the cells of a row are read: the same for all rows, shared by all threads.
pub(super) struct Rule<'a> {
    pub(super) source: &'a Source,
    label: Option<Label>,
    /// Columns that are read, in the order in which rows have their cells.
    wanted: Vec<String>,
    features: Vec<Option<usize>>,
    label_cell: Option<usize>,
    event_cell: Option<usize>,
    trials_cell: Option<usize>,
    offset_cell: Option<usize>,
    bound_cell: Option<usize>,
    owner_cell: Option<usize>,
    weight_cell: Option<usize>,
    side_labels: Option<Vec<f64>>,
    side_bounds: Option<Vec<f64>>,
}

/// What a row has, where it has such a thing.
type Found<T> = Result<Option<T>, DataError>;

fn index(wanted: &mut Vec<String>, column: &str) -> usize {
    let found = wanted.iter().position(|n| n == column);
    found.unwrap_or_else(|| {
        wanted.push(column.to_string());
        wanted.len() - 1
    })
}

impl<'a> Rule<'a> {
    /// Reads label and bounds files beside the table too.
    pub fn new(source: &'a Source, label: Option<Label>) -> Result<Self, DataError> {
        let mut wanted = Vec::new();
        let columns = source.features.iter().map(|f| f.column.as_deref());
        let features = columns.map(|c| c.map(|c| index(&mut wanted, c))).collect();
        let label_column = label.as_ref().and_then(|l| l.column.as_deref());
        let label_cell = label_column.map(|c| index(&mut wanted, c));
        let event = label.as_ref().and_then(|l| l.event.as_ref());
        let event_cell = event.map(|e| index(&mut wanted, &e.column));
        let trials = label.as_ref().and_then(Label::trials);
        let trials_cell = trials.map(|c| index(&mut wanted, c));
        let offset = source.offset.as_ref().and_then(|o| o.column.as_deref());
        let offset_cell = offset.map(|c| index(&mut wanted, c));
        let (bound_cell, side_bounds) = match &source.bounds {
            Some(BoundsSource::Column(column)) => (Some(index(&mut wanted, column)), None),
            Some(BoundsSource::File(path)) => (None, Some(bounds::read_file(path)?)),
            None => (None, None),
        };
        let unit = source.unit.as_ref();
        let owner_cell = unit.map(|u| index(&mut wanted, &u.column));
        let weights = source.weights.as_ref();
        let weight_cell = weights.map(|w| index(&mut wanted, &w.column));
        let side_labels = match (&source.label_file, &label) {
            (Some(path), Some(label)) => Some(load::labels(path, label, source.bad_cells)?),
            _ => None,
        };
        Ok(Rule {
            source,
            label,
            wanted,
            features,
            label_cell,
            event_cell,
            trials_cell,
            offset_cell,
            bound_cell,
            owner_cell,
            weight_cell,
            side_labels,
            side_bounds,
        })
    }

    pub fn path(&self) -> &Path {
        &self.source.path
    }

    fn fail(&self, line: u64, column: Option<&str>, what: String) -> DataError {
        DataError::Cell {
            path: self.source.path.clone(),
            line,
            column: column.map(String::from),
            what,
        }
    }

    /// Appends the features of a row, and its offset; `cell` gives its cells by their place among
    /// the wanted.
    fn features<'c>(
        &self,
        line: u64,
        cell: &impl Fn(usize) -> Cell<'c>,
        out: &mut Vec<f32>,
    ) -> Result<(), DataError> {
        for (feature, &at) in self.source.features.iter().zip(&self.features) {
            let cell = match (at, &feature.kind) {
                (Some(k), _) => cell(k),
                (None, FeatureKind::Intercept) => Cell::Missing,
                (None, _) => {
                    return Err(self.fail(line, None, "a feature names no column".into()));
                }
            };
            // What nearly all cells are; the rest of the loop would do the same, slower.
            if let (Cell::Number(v), FeatureKind::Number(number)) = (cell, &feature.kind)
                && v.is_finite()
            {
                number.push(v, out);
                continue;
            }
            let start = out.len();
            let read = |cell: Cell<'_>| {
                out.truncate(start);
                feature.push(cell, out)
            };
            let read = self.source.bad_cells.read(cell, read);
            read.map_err(|what| self.fail(line, feature.column.as_deref(), what))?;
        }
        for interaction in &self.source.interactions {
            interaction.push(out);
        }
        let (Some(offset), Some(k)) = (&self.source.offset, self.offset_cell) else {
            return Ok(());
        };
        let start = out.len();
        let read = |cell: Cell<'_>| {
            out.truncate(start);
            offset.push(cell, out)
        };
        let read = self.source.bad_cells.read(cell(k), read);
        read.map_err(|what| self.fail(line, offset.column.as_deref(), what))
    }

    /// The value of a row in a file beside the table; what file and values are called.
    fn beside(&self, side: &[f64], [file, values]: [&str; 2], row: usize, line: u64) -> Found<f64> {
        let short = || format!("{file} holds only {} {values}", side.len());
        let value = side.get(row).copied().map(Some);
        value.ok_or_else(|| self.fail(line, None, short()))
    }

    /// The label in a row's cells of label, event and trials.
    fn label(&self, row: usize, line: u64, cells: [Option<Cell<'_>>; 3]) -> Found<f64> {
        if let Some(labels) = &self.side_labels {
            return self.beside(labels, ["the label file", "labels"], row, line);
        }
        let (Some(label), Some(cell)) = (&self.label, cells[0]) else {
            return Ok(None);
        };
        let bad = self.source.bad_cells;
        if let (Some(column), Some(trials)) = (label.trials(), cells[2]) {
            let own = label.column.as_deref();
            let fail = |column| move |what| self.fail(line, column, what);
            let successes = label.read(cell).map_err(fail(own))?;
            let trials = label.read(trials).map_err(fail(Some(column)))?;
            let share = Label::share([successes, trials]);
            return share.map(Some).map_err(fail(own));
        }
        let value = bad.read(cell, |cell| label.stored(cell));
        let value = value.map_err(|what| self.fail(line, label.column.as_deref(), what))?;
        let (Some(event), Some(cell)) = (&label.event, cells[1]) else {
            return Ok(Some(value));
        };
        let seen = bad.read(cell, |cell| Label::is_seen(event, cell));
        let seen = seen.map_err(|what| self.fail(line, Some(&event.column), what))?;
        Ok(Some(if seen { value } else { -value }))
    }

    fn bound(&self, row: usize, line: u64, cell: Option<Cell<'_>>) -> Found<f64> {
        if let Some(bounds) = &self.side_bounds {
            return self.beside(bounds, ["data.bounds.file", "bounds"], row, line);
        }
        self.of_cell(self.bound_cell, line, cell.map(bounds::read))
    }

    fn owner(&self, line: u64, cell: Option<Cell<'_>>) -> Found<u64> {
        self.of_cell(self.owner_cell, line, cell.map(unit::owner))
    }

    /// The share of the largest weight, where rows have weights.
    fn share(&self, line: u64, cell: Option<Cell<'_>>) -> Found<f32> {
        let most = self.source.weights.as_ref().map_or(1.0, |w| w.most);
        let read = cell.map(|cell| row_weights::share(cell, most));
        self.of_cell(self.weight_cell, line, read)
    }

    /// What was read of the cell at this place, or its error.
    fn of_cell<T>(
        &self,
        at: Option<usize>,
        line: u64,
        read: Option<Result<T, String>>,
    ) -> Found<T> {
        let column = at.map(|k| self.wanted[k].as_str());
        read.transpose()
            .map_err(|what| self.fail(line, column, what))
    }

    /// Refuses label and bounds files of another length than the table.
    fn check_lengths(&self, rows: usize) -> Result<(), DataError> {
        for (key, what, side) in [
            ("data.label_file", "labels", &self.side_labels),
            ("data.bounds.file", "bounds", &self.side_bounds),
        ] {
            if let Some(side) = side
                && side.len() != rows
            {
                let what = format!("{} {what} for {rows} rows", side.len());
                return Err(DataError::declaration(key, what));
            }
        }
        Ok(())
    }
}

/// Where a column's cells come from.
enum Given {
    /// The file, whose column of this place it is.
    File(usize),
    /// Its folders: a cell, which may be missing.
    Folders(Option<String>),
}

/// Some consecutive rows of the table.
pub(super) struct Block<'a> {
    rule: &'a Rule<'a>,
    given: &'a [Given],
    built: DatasetBuilder,
    share: Option<Share>,
    /// Rows before the next one, those of other ranks too.
    seen: usize,
    values: Vec<f32>,
}

impl Block<'_> {
    /// Adds a row whose cells in the file are these, by place; `line` is for messages.
    #[inline]
    pub fn push<'c>(&mut self, line: u64, own: impl Fn(usize) -> Cell<'c>) -> Result<(), DataError>
    where
        Self: 'c,
    {
        let given = self.given;
        if !self.here(1) {
            self.seen += 1;
            return Ok(());
        }
        let cell = |k: usize| match given.get(k) {
            None => own(k),
            Some(Given::File(place)) => own(*place),
            Some(Given::Folders(given)) => given.as_deref().map_or(Cell::Missing, Cell::Text),
        };
        self.values.clear();
        self.rule.features(line, &cell, &mut self.values)?;
        let (label, bound) = self.beside(line, cell)?;
        self.seen += 1;
        self.built
            .push_row(&self.values, label, bound)
            .map_err(|what| self.rule.fail(line, None, what))
    }

    /// Whether all of the next rows are this rank's, where rows are dealt.
    fn here(&self, rows: usize) -> bool {
        let (first, last) = (self.seen as u64, (self.seen + rows - 1) as u64);
        (self.share).is_none_or(|share| share.has(first, None) && share.has(last, None))
    }

    /// What a row has beside its features: its label and its bound. Says whose it is, and how often
    /// it counts.
    #[inline]
    fn beside<'c>(
        &mut self,
        line: u64,
        cell: impl Fn(usize) -> Cell<'c>,
    ) -> Result<(Option<f64>, Option<f64>), DataError> {
        let (rule, row) = (self.rule, self.seen);
        let cell = |at: Option<usize>| at.map(&cell);
        let label = [rule.label_cell, rule.event_cell, rule.trials_cell];
        let label = rule.label(row, line, label.map(cell))?;
        let bound = rule.bound(row, line, cell(rule.bound_cell))?;
        if let Some(owner) = rule.owner(line, cell(rule.owner_cell))? {
            self.built.push_owner(owner);
        }
        if let Some(share) = rule.share(line, cell(rule.weight_cell))? {
            self.built.push_share(share);
        }
        Ok((label, bound))
    }

    /// Adds the rows of a tile whose cells are these numbers, by place, where each feature is the
    /// only one of a finite number: many at once. `false`, and none is added, where it is not so.
    fn push_tile(&mut self, line: u64, cells: &[&[f64; TILE]]) -> Result<bool, DataError> {
        let source = self.rule.source;
        let plain = cells.len() == self.rule.wanted.len() && source.interactions.is_empty();
        let plain = plain && self.here(TILE);
        let lanes = match self.built.tile() {
            Some(lanes) if plain && source.offset.is_none() => lanes,
            _ => return Ok(false),
        };
        for ((to, feature), at) in lanes
            .iter_mut()
            .zip(&source.features)
            .zip(&self.rule.features)
        {
            let values = match (at, &feature.kind) {
                (Some(k), FeatureKind::Number(number)) if all_finite(cells[*k]) => {
                    number.lanes(cells[*k])
                }
                (None, FeatureKind::Intercept) => Some([1.0; TILE]),
                _ => None,
            };
            match values.filter(|values| values.iter().all(|v| v.is_finite())) {
                Some(values) => *to = values,
                None => return Ok(false),
            }
        }
        for (lane, line) in (line..).take(TILE).enumerate() {
            let (label, bound) = self.beside(line, |k| Cell::Number(cells[k][lane]))?;
            self.seen += 1;
            let added = self.built.push_filled(label, bound);
            added.map_err(|what| self.rule.fail(line, None, what))?;
        }
        Ok(true)
    }

    /// Adds a row that does not split into cells, or refuses it: always where it is not known
    /// to be a row.
    pub fn push_malformed(&mut self, line: u64, what: &str, row: bool) -> Result<(), DataError> {
        match self.rule.source.bad_cells {
            BadCells::Missing if row => {
                // What folders say of it stays.
                self.push(line, |_| Cell::Missing)
            }
            _ => Err(self.rule.fail(line, None, what.into())),
        }
    }
}

/// A tile's numbers of each column; `None` where fewer are left.
fn tile_of<'a>(columns: &[&'a [f64]], at: usize) -> Option<Vec<&'a [f64; TILE]>> {
    let tiles = columns.iter().map(|c| c.get(at..)?.first_chunk());
    tiles.collect()
}

fn all_finite(x: &[f64; TILE]) -> bool {
    // Without a way out, which would take longer.
    x.iter().fold(true, |all, x| all & x.is_finite())
}

/// What finding the units of a table takes a row, bytes.
const UNIT_BYTES: usize = 64;

/// Collects a table's rows.
pub(super) struct Rows<'a> {
    pub(super) rule: &'a Rule<'a>,
    /// Columns that a reader must deliver from its file, in this order.
    pub wanted: Vec<String>,
    /// What folders give instead, for each column that is read; empty where they give none.
    given: Vec<Given>,
    built: DatasetBuilder,
    /// Which rows or units are kept, where a table's are dealt.
    share: Option<Share>,
    /// Where units are dealt: which one each owner is, in the order of their first rows, and how
    /// many rows it has so far.
    units: HashMap<u64, (u64, u32)>,
    /// Rows so far, those of other ranks too.
    seen: usize,
    /// Rows that fit in memory, and what is available.
    most: Option<(u64, u64)>,
    /// Bytes of a row.
    row: usize,
    /// Where rows that do not fit may be kept.
    kept: Option<&'a Kept<'a>>,
    /// Their files.
    spilled: Option<Spilled>,
}

impl<'a> Rows<'a> {
    /// `available`: bytes of memory, where known; `kept`: where rows that need more may be kept.
    pub fn new(
        rule: &'a Rule<'a>,
        built: DatasetBuilder,
        available: Option<u64>,
        ranks: usize,
        kept: Option<&'a Kept<'a>>,
    ) -> Self {
        // A row's bound, twice, and its place in the table that draws rows by it, for all ranks.
        let bounds = 6 * ranks * usize::from(rule.source.bounds.is_some());
        let weights = usize::from(rule.source.weights.is_some());
        let beside = 4 * (usize::from(rule.label.is_some()) + weights + bounds);
        let own = built.set.cells.value_bytes() * built.width() + beside;
        let row = match rule.source.unit {
            // Rows are sorted by their units, which every rank finds, into a second table.
            Some(_) => 2 * own + UNIT_BYTES * ranks,
            None => own,
        };
        let tile = (TILE * row) as u64;
        let most = available.map(|bytes| ((bytes / tile).saturating_mul(TILE as u64), bytes));
        Rows {
            rule,
            wanted: rule.wanted.clone(),
            given: Vec::new(),
            built,
            share: None,
            units: HashMap::new(),
            seen: 0,
            most,
            row,
            kept,
            spilled: None,
        }
    }

    pub fn path(&self) -> &Path {
        self.rule.path()
    }

    /// Keeps a rank's rows or units of a table.
    pub fn deal(&mut self, share: Share) {
        self.share = Some(share);
    }

    /// Rows so far, those of other ranks too.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// Begins a file.
    pub fn begin(&mut self, part: &Part) {
        let given = |column: &String| part.given.iter().find(|(name, _)| name == column);
        let (folders, own): (Vec<_>, Vec<_>) =
            (self.rule.wanted.iter().cloned()).partition(|column| given(column).is_some());
        self.wanted = own;
        self.given = match folders.is_empty() {
            true => Vec::new(),
            false => {
                let mut places = 0..;
                let from = |column: &String| match given(column) {
                    Some((_, cell)) => Given::Folders(cell.clone()),
                    None => Given::File(places.next().unwrap_or(usize::MAX)),
                };
                self.rule.wanted.iter().map(from).collect()
            }
        };
    }

    /// Has more rows than fit go to files, before they are read, or refuses them.
    pub fn expect(&mut self, more: u64) -> Result<(), DataError> {
        let size = self.share.map_or(1, |share| share.size as u64);
        let rows = more.div_ceil(size).saturating_add(self.built.rows() as u64);
        let Some((most, available)) = self.most.filter(|(most, _)| rows > *most) else {
            return Ok(());
        };
        if kept::may_spill(self.rule.source) {
            let folder = self.folder();
            self.spilled = Some(Spilled::begin(self.kept, &folder, &mut self.built)?);
            self.most = None;
            return Ok(());
        }
        // The first number that is too large, whatever was read so far.
        let rows = most.saturating_add(1);
        let needed = rows.saturating_mul(self.row as u64);
        Err(DataError::TooLarge {
            path: self.rule.path().into(),
            rows,
            features: self.built.width(),
            needed_mib: needed >> 20,
            available_mib: available >> 20,
            advice: match kept::has_files(self.rule.source) {
                false => "declare fewer features, or split the table",
                true => "declare fewer features, or keep rows on disk (--memory, --cache)",
            },
        })
    }

    /// Reads batches on all threads and adds their rows in order; `count` says how many rows a
    /// batch has.
    pub fn extend<B: Sync>(
        &mut self,
        batches: &[B],
        count: impl Fn(&B) -> usize,
        read: impl Fn(&B, &mut Block<'_>) -> Result<(), DataError> + Sync,
    ) -> Result<(), DataError> {
        let mut first = self.seen;
        let mut starts = Vec::with_capacity(batches.len());
        for batch in batches {
            starts.push(first);
            first = first.saturating_add(count(batch));
        }
        self.expect((first - self.seen) as u64)?;
        self.seen = first;
        let (rule, given, built) = (self.rule, &self.given[..], &self.built);
        // Of which unit a row is, and so whether it is here, is known when all before it are read.
        let share = self.share.filter(|_| rule.source.unit.is_none());
        let blocks: Vec<Result<DatasetBuilder, DataError>> = batches
            .par_iter()
            .zip(&starts)
            .map(|(batch, &seen)| {
                let mut block = Block {
                    rule,
                    given,
                    built: built.like(),
                    share,
                    seen,
                    values: Vec::new(),
                };
                read(batch, &mut block)?;
                Ok(block.built)
            })
            .collect();
        for block in blocks {
            let mut block = block?;
            if let (Some(share), Some((unit, owners))) = (self.share, &block.owners) {
                let kept = share.kept(unit, owners, &mut self.units);
                block = block.picked(&kept);
            }
            self.built.append(block);
        }
        let written = self.built.write();
        written.map_err(|e| kept::failed(&self.folder(), &e))
    }

    /// Where rows go that do not fit: to be kept, or beside the table.
    fn folder(&self) -> PathBuf {
        let path = self.rule.path();
        let beside = || path.ancestors().find(|path| path.is_dir());
        let kept = self.kept.map(|kept| kept.folder());
        kept.or_else(beside).unwrap_or(Path::new(".")).into()
    }

    /// As [`Rows::extend`], for `count` rows in memory behind the `first` ones of a file: `cell` gives
    /// the wanted cells by row and place, and `numbers` those of some rows, by place, where all of
    /// them are numbers.
    pub fn extend_by_index<'c>(
        &mut self,
        first: u64,
        count: usize,
        numbers: impl Fn(Range<usize>) -> Vec<Option<Cow<'c, [f64]>>> + Sync,
        cell: impl Fn(usize, usize) -> Cell<'c> + Sync,
    ) -> Result<(), DataError> {
        // Whole tiles, some for each thread, whose columns stay in a core's cache.
        let size = count.div_ceil(4 * rayon::current_num_threads());
        let size = size.min(128 * TILE).next_multiple_of(TILE);
        let starts: Vec<usize> = (0..count).step_by(size.max(1)).collect();
        let end = |start: &usize| count.min(start + size);
        self.extend(
            &starts,
            |start| end(start) - start,
            |start, block| {
                let rows = *start..end(start);
                let numbers = numbers(rows.clone());
                let all: Option<Vec<&[f64]>> = numbers.iter().map(|n| n.as_deref()).collect();
                for tile in rows.clone().step_by(TILE) {
                    let (at, line) = (tile - rows.start, first + tile as u64 + 1);
                    let cells = all.as_ref().and_then(|all| tile_of(all, at));
                    if let Some(cells) = cells
                        && block.push_tile(line, &cells)?
                    {
                        continue;
                    }
                    for i in tile..rows.end.min(tile + TILE) {
                        block.push(first + i as u64 + 1, |k| match numbers.get(k) {
                            Some(Some(numbers)) => Cell::Number(numbers[i - rows.start]),
                            _ => cell(i, k),
                        })?;
                    }
                }
                Ok(())
            },
        )
    }

    /// Makes room for so many more rows.
    pub fn reserve(&mut self, more: u64) {
        let size = self.share.map_or(1, |share| share.size as u64);
        self.built
            .reserve(usize::try_from(more.div_ceil(size)).unwrap_or(0));
    }

    /// The data set of all rows, or of those that are here: blocks, or the files that `dealt` has.
    pub fn finish(mut self, dealt: Option<Held>) -> Result<(Dataset, Held), DataError> {
        self.rule.check_lengths(self.seen)?;
        let folder = self.folder();
        let written = self.built.write_all();
        written.map_err(|e| kept::failed(&folder, &e))?;
        let unit = self.rule.source.unit.as_ref();
        let count = unit.map_or(self.seen, |_| self.units.len());
        let blocks = self.share.map(|share| share.of(count as u64, unit));
        let (data, held) = match dealt.or(blocks) {
            Some(mut held) => {
                let data = self.built.finish_some();
                let bounds = data.bounds().map(RowBounds::units);
                held.bounds = bounds.unwrap_or_default().to_vec();
                (data, held)
            }
            None => {
                let fail = |e: DataError| DataError::file(self.rule.path(), e.to_string());
                (self.built.finish().map_err(fail)?, Held::default())
            }
        };
        if let Some(spilled) = self.spilled {
            spilled.end(self.kept, (&data, &held))?;
        }
        Ok((data, held))
    }
}
