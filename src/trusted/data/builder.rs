//! Rows, one by one or in blocks, into a [`Dataset`].

use super::storage::{Cells, Column};
use super::{DataError, Dataset, Offset, RowBounds, TILE, Unit, Units};

/// Collects rows into a [`Dataset`].
pub struct DatasetBuilder {
    pub(super) set: Dataset,
    /// Room for a row.
    pub(super) clipped: Vec<f32>,
    pub(super) rounded: Vec<i16>,
    /// Where units are declared: what they are, and whose each row is.
    pub(super) owners: Option<(Unit, Vec<u64>)>,
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
        let set = &mut self.set;
        let (d, i) = (set.features.len(), set.rows);
        let refuse = Err;
        if row.len() != set.width() {
            let beside = if set.offset.is_some() {
                " and an offset"
            } else {
                ""
            };
            return refuse(format!("{} values for {d} features{beside}", row.len()));
        }
        if let Some(j) = row.iter().position(|v| !v.is_finite()) {
            let name = set.features.get(j).map_or("the offset", String::as_str);
            return refuse(format!("feature '{name}' is not finite"));
        }
        let (row, offset) = row.split_at(d);
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
        let norm = row
            .iter()
            .map(|&v| f64::from(v) * f64::from(v))
            .sum::<f64>()
            .sqrt();
        // The slack keeps the f32 result inside the ball after rounding.
        let shrink = if norm > most {
            most / norm * (1.0 - 1e-7)
        } else {
            1.0
        };
        for (to, &from) in self.clipped.iter_mut().zip(row) {
            *to = (f64::from(from) * shrink) as f32;
        }
        if let (Some(bounds), [value]) = (set.offset, offset) {
            self.clipped[d] = f64::from(*value).clamp(bounds.low, bounds.high) as f32;
        }
        let row = (&self.clipped[..], d);
        set.cells.push(i, row, most, &mut self.rounded);
        if let (Some(labels), Some(y)) = (&mut set.labels, label) {
            if i.is_multiple_of(TILE) {
                labels.resize(labels.len() + TILE, 0.0);
            }
            labels[i] = y;
        }
        set.rows += 1;
        Ok(())
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
        self.clipped = vec![0.0; self.width()];
        self.rounded = vec![0; self.width()];
        Ok(self)
    }

    /// Keeps rows on the grids of these columns, one a feature; before the first row.
    pub(super) fn on_grids(mut self, columns: &[Column]) -> Self {
        let norm = self.set.row_norm;
        let grids = columns.iter().map(|c| c.grid(norm));
        let grids = grids.chain(self.set.offset.map(Offset::grid)).collect();
        self.set.cells = Cells::I16(Vec::new(), grids);
        self
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
    pub(super) fn push_owner(&mut self, owner: u64) {
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
                labels: set.labels.as_ref().map(|_| Vec::new()),
                label_kind: set.label_kind,
                row_norm: set.row_norm,
                bounds: None,
                units: None,
            },
            clipped: self.clipped.clone(),
            rounded: self.rounded.clone(),
            owners: self.owners.as_ref().map(|(u, _)| (u.clone(), Vec::new())),
        }
    }

    /// Adds the rows of another one of the same kind.
    pub(super) fn append(&mut self, other: &DatasetBuilder) {
        let (set, from) = (&mut self.set, &other.set);
        if let Some(more) = &from.bounds {
            set.bounds.get_or_insert_default().append(more);
        }
        let (rows, width) = (set.rows, set.width());
        set.cells.append(rows, &from.cells, from.rows, width);
        if let (Some(labels), Some(more)) = (&mut set.labels, &from.labels) {
            labels.truncate(rows);
            labels.extend_from_slice(&more[..from.rows]);
            labels.resize((rows + from.rows).next_multiple_of(TILE), 0.0);
        }
        set.rows += from.rows;
        if let (Some((_, owners)), Some((_, more))) = (&mut self.owners, &other.owners) {
            owners.extend_from_slice(more);
        }
    }

    /// Makes room for so many more rows.
    pub(super) fn reserve(&mut self, rows: usize) {
        let tiles = rows.div_ceil(TILE);
        let values = tiles * TILE * self.width();
        self.set.cells.room(Some(values));
    }

    /// Ends the data set.
    ///
    /// # Errors
    /// [`DataError::TooFewRows`] under two rows or units: substitution needs a population.
    pub fn finish(mut self) -> Result<Dataset, DataError> {
        if let Some((unit, owners)) = self.owners.take() {
            if owners.len() != self.set.rows {
                let what = "not every row says whose it is".into();
                return Err(DataError::declaration("data.unit", what));
            }
            unit.validate()
                .map_err(|what| DataError::declaration("data.rows_per_unit", what))?;
            self = self.grouped(&owners, unit);
        }
        if self.set.rows() < 2 {
            return Err(DataError::TooFewRows {
                rows: self.set.rows(),
            });
        }
        self.set.cells.room(None);
        Ok(self.set)
    }

    /// The rows that count, in the order of their units.
    fn grouped(self, owners: &[u64], unit: Unit) -> Self {
        let (units, order) = Units::group(owners, unit);
        let mut grouped = self.like();
        let (from, to) = (&self.set, &mut grouped.set);
        to.cells
            .room(Some(order.len().next_multiple_of(TILE) * from.width()));
        let (mut row, d) = (vec![0.0; from.width()], from.features.len());
        for (i, &line) in order.iter().enumerate() {
            from.copy_row(line, &mut row);
            // (On their grids already: the same integers again.)
            let row = (&row[..], d);
            to.cells.push(i, row, from.row_norm, &mut grouped.rounded);
        }
        to.labels = from.labels.as_ref().map(|labels| {
            let mut sorted: Vec<f32> = order.iter().map(|&line| labels[line]).collect();
            sorted.resize(order.len().next_multiple_of(TILE), 0.0);
            sorted
        });
        to.rows = order.len();
        to.units = Some(units);
        grouped
    }
}
