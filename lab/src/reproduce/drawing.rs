//! A figure's picture, numbers and table, and how they are written.

use std::fmt;
use std::path::Path;

use super::{Figure, ReproduceError};
use crate::plot::{Chart, Plot};

/// A figure that was run.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// Its panels.
    pub chart: Chart,
    /// What is claimed, what is spent, and for which accuracy.
    pub table: Table,
    /// What a reader of the table must know.
    pub notes: Vec<&'static str>,
}

/// A table of texts; all rows have as many cells as the head.
#[derive(Clone, Debug)]
pub struct Table {
    /// Column names.
    pub head: Vec<&'static str>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

impl Drawing {
    /// A figure of these panels, `columns` a row and `height` pixels high each.
    pub(super) fn new(
        figure: &Figure,
        settings: &str,
        (columns, height): (usize, f64),
        plots: Vec<Plot>,
        table: Table,
    ) -> Self {
        Drawing {
            chart: Chart {
                title: figure.title(),
                note: format!("Our reading: {}. {settings}", figure.shows)
                    .trim_end()
                    .into(),
                columns,
                height,
                plots,
            },
            table,
            notes: Vec::new(),
        }
    }

    /// With notes for the table.
    pub(super) fn noting(mut self, notes: &[&'static str]) -> Self {
        self.notes.extend(notes);
        self
    }

    /// Writes `NAME.svg`, `NAME.png` and `numbers.csv` into `folder`, made where missing.
    ///
    /// # Errors
    /// [`ReproduceError::Failed`] naming the file.
    pub fn write(&self, folder: &Path, name: &str) -> Result<(), ReproduceError> {
        std::fs::create_dir_all(folder).map_err(|e| {
            ReproduceError::Failed(format!("cannot make the folder {}: {e}", folder.display()))
        })?;
        self.chart
            .write(folder, name)
            .map_err(ReproduceError::Failed)
    }
}

impl fmt::Display for Table {
    /// Columns padded to their widest cell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |j: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(j));
            let widest = cells.map(|c| c.chars().count()).max().unwrap_or(0);
            widest.max(self.head[j].chars().count())
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            let padded: Vec<String> = cells
                .zip(&widths)
                .map(|(cell, &width)| format!("{cell:width$}"))
                .collect();
            writeln!(f, "  {}", padded.join("  ").trim_end())
        };
        line(&mut self.head.iter().copied())?;
        for row in &self.rows {
            line(&mut row.iter().map(String::as_str))?;
        }
        Ok(())
    }
}

/// ε for a table.
pub(super) fn shown(epsilon: f64) -> String {
    if epsilon.is_infinite() {
        "infinite".into()
    } else if epsilon >= 100.0 {
        format!("{epsilon:.0}")
    } else {
        format!("{epsilon:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let table = Table {
            head: vec!["a", "long"],
            rows: vec![
                vec!["four".into(), "x".into()],
                vec!["y".into(), "z".into()],
            ],
        };
        assert_eq!(table.to_string(), "  a     long\n  four  x\n  y     z\n");
        assert_eq!(
            [shown(f64::INFINITY), shown(0.0123), shown(123.4)],
            ["infinite", "0.012", "123"]
        );
    }
}
