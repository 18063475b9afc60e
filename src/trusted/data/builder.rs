//! Rows, one by one or in blocks, into a [`Dataset`].

use std::io;

use super::feature::Cell;
use super::row_weights;
use super::storage::Cells;
use super::values::Values;
use super::{DataError, Dataset, Offset, RowBounds, TILE, Unit, Units};
use crate::features::Column;

/// Rows of one tile that are not yet scaled, rounded and stored: together that takes less time.
#[derive(Clone, Default)]
pub(super) struct Pending {
    /// A feature's value of each row; 0 where there is none.
    values: Vec<[f32; TILE]>,
    /// The norm that a row may have.
    most: [f64; TILE],
    count: usize,
}

/// Collects rows into a [`Dataset`].
pub struct DatasetBuilder {
    pub(super) set: Dataset,
    /// The last rows.
    pub(super) pending: Pending,
    /// Where units are declared: what they are, and whose each row is.
    pub(super) owners: Option<(Unit, Vec<u64>)>,
    /// Of the next row, where rows have weights.
    pub(super) share: f32,
}

impl DatasetBuilder {
    /// Adds one row with its binary label, scaled to norm ≤ B where it is longer.
    ///
    /// # Errors
    /// [`DataError::Row`] where the width is wrong, a value is not finite, or a label
    /// is missing or not expected. The message holds the row's number, never a value.
    pub fn push(&mut self, row: &[f32], label: Option<bool>) -> Result<(), DataError> {
        self.push_value(row, label.map(|y| if y { 1.0 } else { -1.0 }))
    }

    /// As [`DatasetBuilder::push`], with a label of any kind: numbers and counts beyond their
    /// bounds are clipped, a binary label is ±1.
    ///
    /// # Errors
    /// [`DataError::Row`], as there, and for a label that is none of its kind.
    pub fn push_value(&mut self, row: &[f32], label: Option<f64>) -> Result<(), DataError> {
        self.push_numbered(row, label, None)
    }

    /// As [`DatasetBuilder::push_value`], for a row whose norm is **publicly** known to be at
    /// most `bound`·B, 0 < bound ≤ 1: it is scaled to that where it is longer, and a
    /// minibatch draws it that much less often. All rows have such a bound, or none. A bound
    /// computed from private cells voids the guarantee.
    ///
    /// # Errors
    /// [`DataError::Row`], as there, and for a bound that is none.
    pub fn push_bounded(
        &mut self,
        row: &[f32],
        label: Option<f64>,
        bound: f64,
    ) -> Result<(), DataError> {
        self.push_numbered(row, label, Some(bound))
    }

    fn push_numbered(
        &mut self,
        row: &[f32],
        label: Option<f64>,
        bound: Option<f64>,
    ) -> Result<(), DataError> {
        let number = self.set.rows + 1;
        self.push_row(row, label, bound)
            .map_err(|what| DataError::Row { row: number, what })
    }

    /// As [`DatasetBuilder::push_value`], with what is wrong alone.
    pub(super) fn push_row(
        &mut self,
        row: &[f32],
        label: Option<f64>,
        bound: Option<f64>,
    ) -> Result<(), String> {
        let set = &self.set;
        if row.len() != set.width() {
            let beside = match set.offset {
                Some(_) => " and an offset",
                None => "",
            };
            let d = set.features.len();
            return Err(format!("{} values for {d} features{beside}", row.len()));
        }
        if let Some(j) = row.iter().position(|v| !v.is_finite()) {
            let name = set.features.get(j).map_or("the offset", String::as_str);
            return Err(format!("feature '{name}' is not finite"));
        }
        let (lane, most) = self.take(label, bound)?;
        for (lanes, v) in self.lanes(lane).iter_mut().zip(row) {
            lanes[lane] = *v;
        }
        self.added(lane, most);
        Ok(())
    }

    /// Takes the label and bound of the next row: where its values belong, and the norm they may
    /// have.
    fn take(&mut self, label: Option<f64>, bound: Option<f64>) -> Result<(usize, f64), String> {
        let set = &mut self.set;
        let (i, refuse) = (set.rows, Err);
        let label = match (set.label_kind, label) {
            (Some(_), None) => return refuse("the label is missing".into()),
            (None, Some(_)) => return refuse("a label was given but none was declared".into()),
            (Some(kind), Some(value)) => match kind.store(value) {
                Ok(stored) => Some(stored),
                Err(what) => return refuse(what),
            },
            (None, None) => None,
        };
        if i == 0 && bound.is_some() {
            set.bounds = Some(RowBounds::default());
        }
        let most = match (&mut set.bounds, bound) {
            (Some(bounds), Some(bound)) => match bounds.push(bound) {
                Ok(rounded) => rounded * set.row_norm,
                Err(what) => return refuse(what),
            },
            (None, None) => set.row_norm,
            _ => return refuse("either all rows have a bound of their own, or none".into()),
        };
        let padded = (i + 1).next_multiple_of(TILE);
        if let (Some(labels), Some(y)) = (&mut set.labels, label) {
            labels.from(i, padded)[0] = y;
        }
        if let Some(shares) = &mut set.shares {
            shares.from(i, padded)[0] = std::mem::replace(&mut self.share, 1.0);
        }
        Ok((i % TILE, most))
    }

    /// Where the values of further rows go, from this lane on.
    fn lanes(&mut self, lane: usize) -> &mut [[f32; TILE]] {
        let pending = &mut self.pending;
        if pending.count == 0 {
            pending.values.clear();
            pending.values.resize(self.set.width(), [0.0; TILE]);
            pending.most = [0.0; TILE];
        }
        debug_assert_eq!(lane, self.set.rows % TILE);
        &mut pending.values
    }

    /// Where the values of a whole tile's rows go, which [`DatasetBuilder::push_filled`] then
    /// adds; `None` amid a tile.
    pub(super) fn tile(&mut self) -> Option<&mut [[f32; TILE]]> {
        let free = self.pending.count == 0 && self.set.rows.is_multiple_of(TILE);
        free.then(|| self.lanes(0))
    }

    /// As [`DatasetBuilder::push_row`], for finite values that are in [`DatasetBuilder::tile`].
    pub(super) fn push_filled(
        &mut self,
        label: Option<f64>,
        bound: Option<f64>,
    ) -> Result<(), String> {
        let (lane, most) = self.take(label, bound)?;
        self.added(lane, most);
        Ok(())
    }

    /// Counts a row whose values are in its lane.
    fn added(&mut self, lane: usize, most: f64) {
        self.pending.most[lane] = most;
        self.pending.count += 1;
        self.set.rows += 1;
        if lane + 1 == TILE {
            self.store();
        }
    }

    /// Scales rows to their norms and stores them.
    fn store(&mut self) {
        let (set, pending) = (&mut self.set, &mut self.pending);
        let (d, count) = (set.features.len(), std::mem::take(&mut pending.count));
        if count == 0 {
            return;
        }
        let mut squares = [0.0; TILE];
        for lanes in &pending.values[..d] {
            for lane in 0..TILE {
                squares[lane] += f64::from(lanes[lane]) * f64::from(lanes[lane]);
            }
        }
        let mut shrink = [1.0; TILE];
        for lane in 0..TILE {
            let (norm, most) = (squares[lane].sqrt(), pending.most[lane]);
            if norm > most {
                // The slack keeps the f32 result inside the ball after rounding.
                shrink[lane] = most / norm * (1.0 - 1e-7);
            }
        }
        for lanes in &mut pending.values[..d] {
            for lane in 0..TILE {
                lanes[lane] = (f64::from(lanes[lane]) * shrink[lane]) as f32;
            }
        }
        if let Some(bounds) = set.offset {
            let cut = |v: f32| f64::from(v).clamp(bounds.low, bounds.high) as f32;
            pending.values[d] = pending.values[d].map(cut);
        }
        let first = set.rows - count;
        let lanes = first % TILE..first % TILE + count;
        set.cells
            .push(first, (&pending.values, d), &pending.most, lanes);
    }

    /// Every row has an offset behind its features, cut off at these bounds; before the first row
    /// and before its storage is chosen.
    ///
    /// # Errors
    /// [`DataError::Declaration`] where the bounds are reversed or not finite.
    pub fn with_offset(mut self, offset: Offset) -> Result<Self, DataError> {
        if !(offset.low < offset.high && (offset.high - offset.low).is_finite()) {
            let what = "bounds are reversed, equal or not finite; write [low, high]";
            return Err(DataError::declaration("data.offset", what.into()));
        }
        self.set.offset = Some(offset);
        Ok(self)
    }

    /// Keeps rows on the grids of these columns, one a feature; before the first row.
    pub(super) fn on_grids(mut self, columns: &[Column]) -> Self {
        let norm = self.set.row_norm;
        let grids = columns.iter().map(|c| c.grid(norm));
        let grids = grids.chain(self.set.offset.map(Offset::grid)).collect();
        self.set.cells = Cells::I16(Values::default(), grids);
        self
    }

    /// Rows have weights; before the first row. All rows are pushed with
    /// [`DatasetBuilder::push_weighted`] then: others have the largest weight. A model knows nothing
    /// of weights: its tempering is the power of a row that has the largest one.
    #[must_use]
    pub fn weighted(mut self) -> Self {
        self.set.shares = Some(Values::default());
        self
    }

    /// As [`DatasetBuilder::push_value`], for a row that adds this share of what it would add with
    /// the largest weight: cut off at 1, nearest multiple of 2^-20.
    ///
    /// # Errors
    /// [`DataError::Row`], as there, and for a share that is negative or not finite.
    pub fn push_weighted(
        &mut self,
        row: &[f32],
        label: Option<f64>,
        share: f64,
    ) -> Result<(), DataError> {
        let share = match self.set.weighted() {
            true => row_weights::share(Cell::Number(share), 1.0),
            false => Err("a weight was given but none were declared".into()),
        };
        let row_number = self.set.rows + 1;
        let fail = |what| DataError::Row {
            row: row_number,
            what,
        };
        self.push_share(share.map_err(fail)?);
        let pushed = self.push_value(row, label);
        self.share = 1.0;
        pushed
    }

    /// Says what the next row adds of what it would add with the largest weight.
    pub(super) fn push_share(&mut self, share: f32) {
        self.share = share;
    }

    /// Rows belong to units, of each of which so many count; before the first row. All rows are
    /// pushed with [`DatasetBuilder::push_owned`] then.
    #[must_use]
    pub fn of_units(mut self, unit: Unit) -> Self {
        self.owners = Some((unit, Vec::new()));
        self
    }

    /// As [`DatasetBuilder::push_value`], for a row of the unit that goes by this number.
    ///
    /// # Errors
    /// [`DataError::Row`], as there.
    pub fn push_owned(
        &mut self,
        row: &[f32],
        label: Option<f64>,
        owner: u64,
    ) -> Result<(), DataError> {
        self.push_value(row, label)?;
        self.push_owner(owner);
        Ok(())
    }

    /// Says whose the last row is.
    pub(in crate::trusted) fn push_owner(&mut self, owner: u64) {
        if let Some((_, owners)) = &mut self.owners {
            owners.push(owner);
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.set.rows
    }

    pub(super) fn width(&self) -> usize {
        self.set.width()
    }

    /// Another one for rows of the same kind.
    pub(super) fn like(&self) -> DatasetBuilder {
        let set = &self.set;
        DatasetBuilder {
            set: Dataset {
                features: set.features.clone(),
                offset: set.offset,
                rows: 0,
                cells: set.cells.empty(),
                labels: set.labels.as_ref().map(|_| Values::default()),
                label_kind: set.label_kind,
                shares: set.shares.as_ref().map(|_| Values::default()),
                row_norm: set.row_norm,
                bounds: None,
                units: None,
                ranks: None,
            },
            pending: Pending::default(),
            owners: self.owners.as_ref().map(|(u, _)| (u.clone(), Vec::new())),
            share: 1.0,
        }
    }

    /// Adds the rows of another one of the same kind.
    pub(super) fn append(&mut self, mut other: DatasetBuilder) {
        self.store();
        other.store();
        let (set, from) = (&mut self.set, &other.set);
        if let Some(more) = &from.bounds {
            set.bounds.get_or_insert_default().append(more.units());
        }
        let (rows, width) = (set.rows, set.width());
        set.cells.append(rows, &from.cells, from.rows, width);
        let beside = [
            (&mut set.labels, &from.labels),
            (&mut set.shares, &from.shares),
        ];
        for (values, more) in beside {
            if let (Some(values), Some(more)) = (values, more) {
                let to = values.from(rows, (rows + from.rows).next_multiple_of(TILE));
                to[..from.rows].copy_from_slice(&more.as_slice()[..from.rows]);
            }
        }
        set.rows += from.rows;
        if let (Some((_, owners)), Some((_, more))) = (&mut self.owners, &other.owners) {
            owners.extend_from_slice(more);
        }
    }

    /// Makes room for so many more rows, where they are in memory.
    pub(super) fn reserve(&mut self, rows: usize) {
        let tiles = rows.div_ceil(TILE);
        let values = tiles * TILE * self.width();
        self.set.cells.room(Some(values));
    }

    /// Ends the data set.
    ///
    /// # Errors
    /// [`DataError::TooFewRows`] under two rows or units: substitution needs a population.
    pub fn finish(self) -> Result<Dataset, DataError> {
        if let Some((unit, owners)) = &self.owners {
            if owners.len() != self.set.rows {
                let what = "not every row says whose it is".into();
                return Err(DataError::declaration("data.unit", what));
            }
            unit.validate()
                .map_err(|what| DataError::declaration("data.rows_per_unit", what))?;
        }
        let data = self.finish_some();
        match data.rows() {
            rows @ ..2 => Err(DataError::TooFewRows { rows }),
            _ => Ok(data),
        }
    }

    /// Ends some rows of a data set: all that are here of their units, where these are declared.
    pub(super) fn finish_some(mut self) -> Dataset {
        self.store();
        if let Some((unit, owners)) = self.owners.take() {
            // The rows that count, in the order of their units.
            let (units, order) = Units::group(&owners, unit);
            self = self.picked(&order);
            self.set.units = Some(units);
        }
        self.set.cells.room(None);
        self.set
    }

    /// Writes rows that do not change any more to their files, where they have some.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let keep = TILE * self.set.width();
        self.set.cells.write(keep)?;
        let mut beside = [&mut self.set.labels, &mut self.set.shares].into_iter();
        beside.try_for_each(|of| of.as_mut().map_or(Ok(()), |values| values.write(TILE)))
    }

    /// Writes the rest of them.
    pub(super) fn write_all(&mut self) -> io::Result<()> {
        self.store();
        self.set.cells.finish()?;
        let mut beside = [&mut self.set.labels, &mut self.set.shares].into_iter();
        beside.try_for_each(|of| of.as_mut().map_or(Ok(()), Values::finish))
    }

    /// These of its rows, in this order.
    pub(super) fn picked(mut self, order: &[usize]) -> Self {
        self.store();
        let mut picked = self.like();
        let from = &self.set;
        picked.reserve(order.len());
        let mut row = vec![0.0; from.width()];
        for &line in order {
            from.copy_row(line, &mut row);
            // (In their ball and on their grids already: the same values again.)
            let lane = picked.set.rows % TILE;
            for (lanes, v) in picked.lanes(lane).iter_mut().zip(&row) {
                lanes[lane] = *v;
            }
            picked.added(lane, from.row_norm);
        }
        picked.store();
        let sorted = |values: &Values<f32>| {
            let mut sorted = Values::default();
            let places = sorted.from(0, order.len().next_multiple_of(TILE));
            let values = order.iter().map(|&line| values.as_slice()[line]);
            places.iter_mut().zip(values).for_each(|(to, v)| *to = v);
            sorted
        };
        picked.set.labels = from.labels.as_ref().map(sorted);
        picked.set.shares = from.shares.as_ref().map(sorted);
        if let (Some((_, to)), Some((_, owners))) = (&mut picked.owners, &self.owners) {
            to.extend(order.iter().map(|&line| owners[line]));
        }
        picked
    }
}
