//! Sensitive rows and what was declared about them in public.
//!
//! A [`Dataset`] is built only from declarations (columns, bounds, levels, a row
//! norm); nothing in it is estimated from rows, and no cell can be read back
//! through its public interface, unless its owner declares the rows public
//! ([`Dataset::as_public`]) before a curator has them.

mod bounds;
mod builder;
mod csv_records;
mod error;
mod feature;
mod frame;
mod kept;
mod label;
mod load;
mod npy_elements;
mod parquet_columns;
mod part;
mod public_rows;
mod ranks;
mod read_csv;
mod read_idx;
mod read_npy;
mod read_parquet;
mod row_weights;
mod rows;
mod storage;
mod unit;
mod values;

use std::sync::Arc;

use crate::features::Column;
pub use crate::features::{Form, Interaction, Number, OneHot, Transform};

pub(in crate::trusted) use bounds::RowBounds;
pub use bounds::{BoundsSource, Population};
pub use builder::DatasetBuilder;
use builder::Pending;
pub use csv_records::{TextFormat, delimiter};
pub use error::DataError;
pub use feature::{Cell, Condition, Feature, FeatureKind, is_missing};
pub use frame::{Frame, FrameColumn, FramePart};
pub use kept::{CACHE_ENDINGS, Room};
pub use label::{Label, LabelKind, LabelValues, SeenEvent};
pub use load::{Source, header, load, load_frame, load_parts, load_share};
pub(crate) use load::{is_text, stem};
pub use part::Part;
pub use public_rows::PublicRows;
pub use ranks::{Held, Ranks, Share};
pub use read_parquet::silence_damaged_files;
pub(crate) use read_parquet::without_panics;
pub use row_weights::RowWeights;
pub(in crate::trusted) use row_weights::share_of;
pub use rows::BadCells;
use storage::Cells;
pub use storage::Storage;
pub(in crate::trusted) use storage::{Grid, Tiles};
pub use unit::Unit;
pub(in crate::trusted) use unit::Units;
use values::Values;

/// Rows in one tile: the unit of the in-memory layout, one cache line a feature.
pub(in crate::trusted) const TILE: usize = 16;
/// Rows of a list that are fetched one by one.
const MOST_FETCHED: usize = 4096;

/// Declared bounds of a number that a row adds to its linear predictor as it is, with the
/// coefficient 1. It is stored behind the row's features, and is none: no norm counts it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offset {
    /// Its least value.
    pub low: f64,
    /// Its largest value, above the least.
    pub high: f64,
}

impl Offset {
    /// Of a declaration.
    ///
    /// # Errors
    /// What is wrong where it is no number that keeps its units.
    pub fn of(feature: &Feature) -> Result<Self, String> {
        feature.validate()?;
        match &feature.kind {
            FeatureKind::Number(number) if *number.form() == Form::Kept => {
                let [low, high] = number.mapped_ends();
                Ok(Offset { low, high })
            }
            _ => Err("is a number in its own units: give clamp = [low, high]".into()),
        }
    }

    /// The middle of its bounds.
    pub fn middle(self) -> f64 {
        0.5 * (self.low + self.high)
    }

    /// True bounds of stored values: rounding moves one by less than 2^-14 of the larger end.
    pub fn stored(self) -> [f64; 2] {
        let slack = f64::powi(2.0, -14) * self.size();
        [self.low - slack, self.high + slack]
    }

    fn size(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// The grid of values in 16 bits.
    fn grid(self) -> Grid {
        let bound = self.size();
        let column = Column {
            bound,
            ..Column::UNIT
        };
        column.grid(bound)
    }
}

/// Sensitive rows, clipped to a declared public norm.
///
/// Layout: tiles of 16 rows, feature-major within a tile, so that one vector
/// load holds one feature of 16 rows. Lanes past the last row are zero.
/// A value is an f32 or an integer of 16 bits on its column's grid ([`Storage`]).
pub struct Dataset {
    features: Vec<String>,
    offset: Option<Offset>,
    rows: usize,
    cells: Cells,
    labels: Option<Values<f32>>,
    label_kind: Option<LabelKind>,
    /// Of what a row would add with the largest weight, where rows have weights.
    shares: Option<Values<f32>>,
    row_norm: f64,
    bounds: Option<RowBounds>,
    units: Option<Units>,
    ranks: Option<Arc<Ranks>>,
}

impl Dataset {
    /// Starts a data set with the given feature names, whose rows will be clipped
    /// to L2 norm `row_norm` (public, > 0). `labelled` rows carry a binary label.
    ///
    /// # Errors
    /// [`DataError::Declaration`] where the norm is not positive or no feature is named.
    pub fn builder(
        features: Vec<String>,
        labelled: bool,
        row_norm: f64,
    ) -> Result<DatasetBuilder, DataError> {
        Self::builder_with(features, labelled.then_some(LabelKind::Binary), row_norm)
    }

    /// As [`Dataset::builder`], with a label of any kind.
    ///
    /// # Errors
    /// [`DataError::Declaration`] as there, and where the label's bounds are impossible.
    pub fn builder_with(
        features: Vec<String>,
        label: Option<LabelKind>,
        row_norm: f64,
    ) -> Result<DatasetBuilder, DataError> {
        label
            .map_or(Ok(()), LabelKind::validate)
            .map_err(|what| DataError::declaration("data.label", what))?;
        if !(row_norm > 0.0 && row_norm.is_finite()) {
            return Err(DataError::declaration(
                "data.row_norm",
                format!("must be a positive number, not {row_norm}"),
            ));
        }
        if features.is_empty() {
            return Err(DataError::declaration(
                "data.features",
                "declare at least one feature".into(),
            ));
        }
        Ok(DatasetBuilder {
            set: Dataset {
                features,
                offset: None,
                rows: 0,
                cells: Cells::F32(Values::default()),
                labels: label.map(|_| Values::default()),
                label_kind: label,
                shares: None,
                row_norm,
                bounds: None,
                units: None,
                ranks: None,
            },
            pending: Pending::default(),
            owners: None,
            share: 1.0,
        })
    }

    /// Number of rows N, or where rows belong to units, of these. Public by convention
    /// (docs/proofs/guarantee.md).
    pub fn rows(&self) -> usize {
        match (&self.ranks, &self.units) {
            (Some(ranks), _) => ranks.rows() as usize,
            (None, Some(units)) => units.count(),
            (None, None) => self.rows,
        }
    }

    /// Number of rows that are stored here; private where they belong to units.
    pub(in crate::trusted) fn lines(&self) -> usize {
        self.rows
    }

    /// Which rows are whose, where that was declared.
    pub(in crate::trusted) fn units(&self) -> Option<&Units> {
        self.units.as_ref()
    }

    /// Whose rows are, and how many of one count; `None` where rows are protected one by one.
    pub fn unit(&self) -> Option<&Unit> {
        self.units.as_ref().map(Units::declared)
    }

    /// Feature names, in column order.
    pub fn features(&self) -> &[String] {
        &self.features
    }

    /// What rows add to their linear predictor beside their features, where that was declared.
    pub fn offset(&self) -> Option<Offset> {
        self.offset
    }

    /// Number of values of a stored row: its features, and behind them its offset.
    pub fn width(&self) -> usize {
        self.features.len() + usize::from(self.offset.is_some())
    }

    /// The declared bound B on every row's L2 norm.
    pub fn row_norm(&self) -> f64 {
        self.row_norm
    }

    /// Whether rows carry a label.
    pub fn labelled(&self) -> bool {
        self.labels.is_some()
    }

    /// Whether rows have weights of their own.
    pub fn weighted(&self) -> bool {
        self.shares.is_some()
    }

    /// What the labels are, where rows carry some.
    pub fn label_kind(&self) -> Option<LabelKind> {
        self.label_kind
    }

    /// Number of rows and, where they have public bounds of their own, what those add up to.
    pub fn population(&self) -> Population {
        let bounds = self.bounds();
        bounds.map_or(self.rows().into(), RowBounds::population)
    }

    /// The public bounds of single rows, those of other ranks too, where some are declared.
    pub(in crate::trusted) fn bounds(&self) -> Option<&RowBounds> {
        let all = self.ranks.as_ref().and_then(|ranks| ranks.bounds.as_ref());
        all.or(self.bounds.as_ref())
    }

    /// Bytes held here by the rows; where these belong to units, by as many as there may be.
    pub fn bytes(&self) -> usize {
        let rows = match self.unit() {
            Some(unit) => self.rows() * unit.rows as usize,
            None => self.rows,
        };
        let rows = rows.next_multiple_of(TILE);
        let values = self.cells.value_bytes() * self.width();
        let beside = [self.labelled(), self.bounds.is_some(), self.weighted()];
        let beside = beside.into_iter().map(usize::from).sum::<usize>();
        rows * (values + 4 * beside)
    }

    /// Whether rows lie in files, which are mapped into memory.
    pub fn on_disk(&self) -> bool {
        self.cells.is_filed()
    }

    /// How features are kept.
    pub fn storage(&self) -> Storage {
        match self.cells {
            Cells::F32(_) => Storage::F32,
            Cells::I16(..) => Storage::I16,
        }
    }

    /// The same rows in half the bytes: rounded to a grid that follows from the declared norm
    /// alone, by at most 2^-16 of it and a little (rows on the edge of the ball by twice that).
    /// Rows that are kept so already stay as they are.
    pub fn in_16_bits(&self) -> Dataset {
        let (d, width) = (self.features.len(), self.width());
        let column = Column {
            bound: self.row_norm,
            ..Column::UNIT
        };
        let mut cells = match &self.cells {
            Cells::F32(_) => {
                let mut grids = vec![column.grid(self.row_norm); d];
                grids.extend(self.offset.map(Offset::grid));
                Cells::I16(Values::default(), grids)
            }
            kept => kept.empty(),
        };
        cells.room(Some(self.tiles().len()));
        for (k, tile) in self.tiles().chunks(width * TILE).enumerate() {
            let (first, share) = (k * TILE, |i: usize| match &self.bounds {
                Some(bounds) if i < self.rows => bounds.share(i),
                _ => 1.0,
            });
            let rows: Vec<[f32; TILE]> = (0..width).map(|j| tile.lanes(j, j)).collect();
            let most = std::array::from_fn(|lane| share(first + lane) * self.row_norm);
            let lanes = 0..TILE.min(self.rows - first);
            cells.push(first, (&rows, d), &most, lanes);
        }
        Dataset {
            features: self.features.clone(),
            labels: self.labels.clone(),
            shares: self.shares.clone(),
            bounds: self.bounds.clone(),
            units: self.units.clone(),
            ranks: self.ranks.clone(),
            cells,
            ..*self
        }
    }

    /// Tiles, each `width × TILE` values, feature-major.
    pub(in crate::trusted) fn tiles(&self) -> Tiles<'_> {
        self.cells.view()
    }

    /// Labels as their kind stores them (binary: −1 / +1), one a row, padded to whole tiles; empty
    /// when unlabelled.
    pub(in crate::trusted) fn labels(&self) -> &[f32] {
        self.labels.as_ref().map_or(&[], Values::as_slice)
    }

    /// What each row adds of what it would add with the largest weight, padded to whole tiles; empty
    /// where that is all of it.
    pub(in crate::trusted) fn shares(&self) -> &[f32] {
        self.shares.as_ref().map_or(&[], Values::as_slice)
    }

    /// Where rows lie in files, the places of some in a list in the order of the file, whose tiles
    /// the system is told to fetch.
    pub(in crate::trusted) fn by_place(&self, rows: &[u64]) -> Option<Vec<usize>> {
        if !self.on_disk() {
            return None;
        }
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by_key(|&at| rows[at]);
        // Of many rows neighbours come along when one is read.
        if rows.len() <= MOST_FETCHED {
            let width = self.width() * TILE;
            for at in &order {
                let tile = rows[*at] as usize / TILE * width;
                self.cells.fetch(tile..tile + width);
            }
        }
        Some(order)
    }

    /// Copies up to [`TILE`] rows into the lanes of one tile.
    pub(in crate::trusted) fn gather(&self, rows: &[u64], tile: &mut [f32]) {
        for (lane, &row) in rows.iter().enumerate() {
            let to = tile.as_chunks_mut::<TILE>().0.iter_mut();
            self.each(row as usize, to, |lanes, v| lanes[lane] = v);
        }
    }

    /// Copies row `i`.
    pub(in crate::trusted) fn copy_row<T: From<f32>>(&self, i: usize, out: &mut [T]) {
        self.each(i, out.iter_mut(), |to, v| *to = v.into());
    }

    /// Copies word `k` of the rows from `tile` on: the bits of feature k, or of the integers of
    /// features 2k (low half) and 2k + 1.
    #[cfg(feature = "gpu")]
    pub(in crate::trusted) fn copy_word(&self, k: usize, tile: usize, out: &mut [u32]) {
        let d = self.width();
        for (t, out) in out.chunks_mut(TILE).enumerate() {
            let first = (tile + t) * d;
            match self.tiles().slice(first * TILE..(first + d) * TILE) {
                Tiles::F32(lanes) => {
                    let lanes = &lanes[k * TILE..];
                    out.iter_mut()
                        .zip(lanes)
                        .for_each(|(to, x)| *to = x.to_bits());
                }
                Tiles::I16(lanes, _) => {
                    let half = |at: usize| lanes.get(at).map_or(0, |m| u32::from(*m as u16));
                    for (i, to) in out.iter_mut().enumerate() {
                        let at = 2 * k * TILE + i;
                        *to = half(at + TILE) << 16 | half(at);
                    }
                }
            }
        }
    }

    /// Steps of the columns' grids; empty where rows are floats.
    #[cfg(feature = "gpu")]
    pub(in crate::trusted) fn steps(&self) -> Vec<f32> {
        match self.tiles() {
            Tiles::F32(_) => Vec::new(),
            Tiles::I16(_, grid) => grid.iter().map(|g| g.step).collect(),
        }
    }

    /// Hands out the values of row `i`, feature by feature.
    #[inline]
    fn each<T>(&self, i: usize, out: impl Iterator<Item = T>, mut put: impl FnMut(T, f32)) {
        let width = self.width() * TILE;
        let start = i / TILE * width;
        match self.tiles().slice(start..start + width) {
            Tiles::F32(tile) => {
                let lanes = tile.as_chunks::<TILE>().0;
                out.zip(lanes).for_each(|(to, x)| put(to, x[i % TILE]));
            }
            Tiles::I16(tile, grid) => {
                let lanes = tile.as_chunks::<TILE>().0.iter().zip(grid);
                out.zip(lanes)
                    .for_each(|(to, (x, grid))| put(to, grid.value(x[i % TILE])));
            }
        }
    }

    /// Row-major copy.
    pub(in crate::trusted) fn public_rows(&self) -> Vec<f32> {
        let d = self.width();
        let mut rows = vec![0.0; self.rows * d];
        for (i, row) in rows.chunks_exact_mut(d).enumerate() {
            self.copy_row(i, row);
        }
        rows
    }
}

impl std::fmt::Debug for Dataset {
    /// Shape and declarations only: never a cell.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dataset")
            .field("rows", &self.rows())
            .field("features", &self.features)
            .field("row_norm", &self.row_norm)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
