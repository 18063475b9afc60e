//! Tables that the program around this library holds in memory. Their cells go the way that those
//! of a file go: the same declarations, the same words of what is wrong.

use super::load::{check_names, find_columns};
use super::rows::Rows;
use super::{Cell, DataError};

/// Ends the name that stands for such a table where a run file names a file.
pub(super) const ENDING: &str = ".frame";

/// A column of a part of a [`Frame`], in whatever layout its owner has.
pub trait FrameColumn: Send + Sync {
    /// The cell of a row of the part, counted from 0.
    fn cell(&self, row: usize) -> Cell<'_>;
}

/// Some consecutive rows; a column without cells is of a type that has none.
type Part = (usize, Vec<Option<Box<dyn FrameColumn>>>);

/// A table in memory. It has no `Debug`, and none of its cells can be read back.
pub struct Frame {
    names: Vec<String>,
    parts: Vec<Part>,
}

impl Frame {
    /// A table with these columns and no rows yet.
    pub fn new(names: Vec<String>) -> Self {
        let parts = Vec::new();
        Frame { names, parts }
    }

    /// Appends `rows` rows, which have one entry a column: `None` where its type holds no cells,
    /// which matters only to who declares that column.
    ///
    /// # Errors
    /// [`DataError::Declaration`] where there is not one entry a column.
    pub fn push(
        &mut self,
        rows: usize,
        columns: Vec<Option<Box<dyn FrameColumn>>>,
    ) -> Result<(), DataError> {
        if columns.len() != self.names.len() {
            let what = format!("{} of {} columns", columns.len(), self.names.len());
            return Err(DataError::declaration("the table in memory", what));
        }
        self.parts.push((rows, columns));
        Ok(())
    }
}

/// Reads all rows.
pub(super) fn rows(frame: &Frame, rows: &mut Rows<'_>) -> Result<(), DataError> {
    let path = rows.rule.path();
    check_names(path, &frame.names)?;
    let wanted = find_columns(path, &frame.names, &rows.rule.wanted)?;
    let count = frame.parts.iter().map(|(rows, _)| *rows as u64).sum();
    rows.expect(count)?;
    rows.reserve(count);
    let mut first = 0;
    for (count, columns) in &frame.parts {
        let plain = |(&at, name): (&usize, &String)| {
            columns[at].as_deref().ok_or_else(|| DataError::File {
                path: path.into(),
                what: format!(
                    "column '{name}' is nested or of an unsupported type; make it boolean, integer, float or text"
                ),
            })
        };
        let columns = wanted.iter().zip(&rows.rule.wanted).map(plain);
        let columns: Vec<&dyn FrameColumn> = columns.collect::<Result<_, _>>()?;
        rows.extend_by_index(first, *count, |i, cells| {
            cells.extend(columns.iter().map(|column| column.cell(i)));
        })?;
        first += *count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::load::{load, load_frame};
    use super::super::{Feature, FeatureKind, Label, LabelValues, Source};
    use super::*;

    /// What a test writes: `None` is a missing cell.
    struct Texts(Vec<Option<&'static str>>);

    impl FrameColumn for Texts {
        fn cell(&self, row: usize) -> Cell<'_> {
            self.0[row].map_or(Cell::Missing, Cell::Text)
        }
    }

    fn part(cells: &[[Option<&'static str>; 2]]) -> (usize, Vec<Option<Box<dyn FrameColumn>>>) {
        let column = |j: usize| -> Option<Box<dyn FrameColumn>> {
            Some(Box::new(Texts(cells.iter().map(|row| row[j]).collect())))
        };
        (cells.len(), vec![column(0), column(1), None])
    }

    fn frame(parts: &[&[[Option<&'static str>; 2]]]) -> Frame {
        let names = ["x", "y", "dates"].map(String::from);
        let mut frame = Frame::new(names.into());
        for cells in parts {
            let (rows, columns) = part(cells);
            frame.push(rows, columns).unwrap();
        }
        frame
    }

    fn source(path: &std::path::Path, column: &str) -> Source {
        Source {
            path: path.into(),
            label_file: None,
            features: vec![Feature {
                column: Some(column.into()),
                kind: FeatureKind::clamp(0.0, 10.0),
                missing: None,
            }],
            interactions: Vec::new(),
            label: Some(Label {
                column: Some("y".into()),
                values: LabelValues::ZeroOne,
                missing: None,
            }),
            row_norm: None,
            bounds: None,
            text: Default::default(),
            bad_cells: Default::default(),
            storage: Default::default(),
        }
    }

    fn said(frame: &Frame, column: &str) -> String {
        let source = source(std::path::Path::new("the table"), column);
        match load_frame(&source, frame) {
            Ok(_) => "nothing".into(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn a_table_in_memory_is_read_as_its_file_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let cells = [
            ["1", "0"],
            ["4.5", "1"],
            ["99", "1"],
            ["7", "0"],
            ["2", "1"],
        ];
        let lines: Vec<String> = cells.iter().map(|[x, y]| format!("{x},{y},-\n")).collect();
        std::fs::write(&path, format!("x,y,dates\n{}", lines.concat())).unwrap();
        let cells = cells.map(|row| row.map(Some));
        let from_file = load(&source(&path, "x")).unwrap();
        let frame = frame(&[&cells[..2], &[], &cells[2..]]);
        let from_memory = load_frame(&source(&path, "x"), &frame).unwrap();
        let (a, b) = (from_file.as_public(), from_memory.as_public());
        assert_eq!((a.rows(), a.labels()), (b.rows(), b.labels()));
        assert_eq!(from_memory.rows(), 5);
    }

    #[test]
    fn what_is_wrong_names_row_and_column_and_no_cell() {
        let good = [Some("1"), Some("0")];
        let parts = |bad| frame(&[&[good, good], &[good, bad]]);
        let text = said(&parts([Some("secret"), Some("0")]), "x");
        assert!(text.contains("line 4, column 'x'"), "{text}");
        assert!(!text.contains("secret"), "{text}");
        assert!(said(&parts([None, Some("0")]), "x").contains("missing"));
        let text = said(&parts(good), "z");
        assert!(
            text.contains("none of its 3 columns is called 'z'"),
            "{text}"
        );
        assert!(said(&parts(good), "dates").contains("unsupported type"));
        assert_eq!(said(&parts(good), "x"), "nothing");
    }

    #[test]
    fn each_part_has_all_columns() {
        let mut frame = frame(&[]);
        assert!(frame.push(1, vec![None]).is_err());
        assert!(said(&frame, "x").contains("0 row(s)"));
    }
}
