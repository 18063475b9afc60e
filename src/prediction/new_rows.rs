//! Public rows that answers are for. Other than a run's table they may be a single one.

use std::path::Path;

use super::PredictionError;
use super::declarations::cut_off;
use super::public_table::PublicTable;
use crate::config::{ConfigError, Plan};
use crate::data::{DataError, Dataset, Frame};

/// Rows of a public table, read by the declarations of a run.
pub struct NewRows {
    set: Dataset,
    rows: usize,
    /// What the declarations cut off of them, in sentences.
    cut_off: Vec<String>,
}

impl NewRows {
    /// Of a file, with its labels or without; relative to the working directory.
    ///
    /// # Errors
    /// [`PredictionError`] naming file, line and column, or that the run protects this table.
    pub fn read(plan: &Plan, file: &Path, labelled: bool) -> Result<Self, PredictionError> {
        match plan.load_public(file, labelled) {
            Ok(set) => {
                // (NPY has no cells as they are written.)
                let path = plan.public_path(file)?;
                match PublicTable::read(&path, plan.public_text()?) {
                    Ok(table) if table.rows() == set.rows() => Ok(NewRows::new(plan, set, &table)),
                    _ => Ok(set.into()),
                }
            }
            // It names the line already.
            Err(e @ ConfigError::Data(DataError::Cell { .. })) => Err(e.into()),
            Err(e) => {
                let path = plan.public_path(file)?;
                match PublicTable::read(&path, plan.public_text()?) {
                    Ok(table) if table.rows() == 1 => {
                        Self::of_table(plan, &table, &file.to_string_lossy(), labelled)
                    }
                    Ok(table) if table.rows() == 0 => Err(PredictionError::Input(format!(
                        "{}: holds no row behind its header",
                        file.display()
                    ))),
                    _ => Err(e.into()),
                }
            }
        }
    }

    /// Of a table in memory, which messages call `name`.
    ///
    /// # Errors
    /// [`PredictionError`] naming row and column.
    pub fn of_frame(
        plan: &Plan,
        frame: &Frame,
        name: &str,
        labelled: bool,
    ) -> Result<Self, PredictionError> {
        match frame.parts.iter().map(|(rows, _)| rows).sum::<usize>() {
            1 => Self::of_table(plan, &PublicTable::of_frame(frame), name, labelled),
            _ => {
                let set = plan.load_public_frame(frame, name, labelled)?;
                Ok(NewRows::new(plan, set, &PublicTable::of_frame(frame)))
            }
        }
    }

    /// Of public cells, which messages call `name`.
    ///
    /// # Errors
    /// As [`NewRows::of_frame`].
    pub fn of_table(
        plan: &Plan,
        table: &PublicTable,
        name: &str,
        labelled: bool,
    ) -> Result<Self, PredictionError> {
        let rows = table.rows();
        // A data set has two rows or more: a single one is put there twice.
        let frame = match rows {
            1 => table.twice().frame(),
            _ => table.frame(),
        };
        let set = plan.load_public_frame(&frame, name, labelled)?;
        Ok(NewRows {
            rows,
            ..NewRows::new(plan, set, table)
        })
    }

    fn new(plan: &Plan, set: Dataset, table: &PublicTable) -> Self {
        NewRows {
            cut_off: cut_off(plan, table),
            ..set.into()
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of which the declared bounds cut numbers off, each in a sentence.
    pub(super) fn cut_off(&self) -> &[String] {
        &self.cut_off
    }

    /// The rows as a data set, whose last row is no row of the table where there is one alone.
    pub(super) fn set(&self) -> &Dataset {
        &self.set
    }

    /// Number of features.
    pub fn features(&self) -> usize {
        self.set.features().len()
    }

    /// Number of values of a row: its features, and behind them its offset.
    pub fn width(&self) -> usize {
        self.set.width()
    }

    /// Features and offset, row after row.
    pub fn values(&self) -> Vec<f32> {
        let mut values = self.set.as_public().rows();
        values.truncate(self.rows * self.width());
        values
    }

    /// Labels as models read them; none where they were not read.
    pub fn labels(&self) -> Vec<f64> {
        let mut labels = self.set.as_public().numbers();
        labels.truncate(self.rows);
        labels
    }
}

impl From<Dataset> for NewRows {
    fn from(set: Dataset) -> Self {
        NewRows {
            rows: set.rows(),
            set,
            cut_off: Vec::new(),
        }
    }
}
