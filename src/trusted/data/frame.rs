//! Tables that the program around this library holds in memory. Their cells go the way that those
//! of a file go: the same declarations, the same words of what is wrong.

use std::borrow::Cow;
use std::ops::Range;

use super::load::{check_names, find_columns};
use super::rows::Rows;
use super::{Cell, DataError};

/// A column of a part of a [`Frame`], in whatever layout its owner has.
pub trait FrameColumn: Send + Sync {
    /// The cell of a row of the part, counted from 0.
    fn cell(&self, row: usize) -> Cell<'_>;

    /// The same cells of some rows where all are numbers: what saves a call for each.
    fn numbers(&self, _rows: Range<usize>) -> Option<Cow<'_, [f64]>> {
        None
    }
}

/// Some consecutive rows: how many, and a column for each name; none for a type without cells.
pub type FramePart = (usize, Vec<Option<Box<dyn FrameColumn>>>);

/// A table in memory, its owner's until it is read. It has no `Debug`.
pub struct Frame {
    /// Of all columns.
    pub names: Vec<String>,
    /// All rows, in order.
    pub parts: Vec<FramePart>,
}

/// Reads all rows.
pub(super) fn rows(frame: &Frame, rows: &mut Rows<'_>) -> Result<(), DataError> {
    let path = &rows.path().to_path_buf();
    check_names(path, &frame.names)?;
    let wanted = find_columns(path, &frame.names, &rows.wanted)?;
    let count = frame.parts.iter().map(|(rows, _)| *rows as u64).sum();
    rows.expect(count)?;
    rows.reserve(count);
    let mut first = 0;
    for (count, columns) in &frame.parts {
        let plain = |(&at, name): (&usize, &String)| {
            let column = columns.get(at).and_then(Option::as_deref);
            column.ok_or_else(|| DataError::file(path, format!(
                    "column '{name}' is nested or of an unsupported type; make it boolean, integer, float or text"
                )))
        };
        let columns = wanted.iter().zip(&rows.wanted).map(plain);
        let columns: Vec<&dyn FrameColumn> = columns.collect::<Result<_, _>>()?;
        let numbers = |rows: Range<usize>| -> Vec<_> {
            columns.iter().map(|c| c.numbers(rows.clone())).collect()
        };
        rows.extend_by_index(first, *count, numbers, |i, k| columns[k].cell(i))?;
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

    fn part(cells: &[[Option<&'static str>; 2]]) -> FramePart {
        let column = |j: usize| -> Option<Box<dyn FrameColumn>> {
            Some(Box::new(Texts(cells.iter().map(|row| row[j]).collect())))
        };
        (cells.len(), vec![column(0), column(1), None])
    }

    fn frame(parts: &[&[[Option<&'static str>; 2]]]) -> Frame {
        Frame {
            names: ["x", "y", "dates"].map(String::from).into(),
            parts: parts.iter().map(|cells| part(cells)).collect(),
        }
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
            offset: None,
            label: Some(Label {
                column: Some("y".into()),
                values: LabelValues::ZeroOne,
                missing: None,
                event: None,
            }),
            row_norm: None,
            weights: None,
            bounds: None,
            unit: None,
            text: Default::default(),
            bad_cells: Default::default(),
            storage: Default::default(),
            room: Default::default(),
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

    /// Numbers that are told one by one, or many at once.
    struct Numbers(Vec<f64>, bool);

    impl FrameColumn for Numbers {
        fn cell(&self, row: usize) -> Cell<'_> {
            Cell::Number(self.0[row])
        }

        fn numbers(&self, rows: Range<usize>) -> Option<Cow<'_, [f64]>> {
            self.1.then(|| Cow::Borrowed(&self.0[rows]))
        }
    }

    /// Parts of 45, 0 and 300 rows of x, w and y; `odd` is x in row 40.
    fn told(odd: f64, at_once: bool) -> Frame {
        let part = |rows: Range<usize>| -> FramePart {
            let turn = |i: usize, rate: f64| 3.0 * (rate * i as f64).sin();
            let x = |i: usize| if i == 40 { odd } else { turn(i, 1.3) };
            let columns: [Vec<f64>; 3] = [
                rows.clone().map(x).collect(),
                rows.clone().map(|i| turn(i, 0.7).exp()).collect(),
                rows.clone()
                    .map(|i| f64::from(u8::from(i % 3 == 0)))
                    .collect(),
            ];
            let columns = columns.map(|values| -> Option<Box<dyn FrameColumn>> {
                Some(Box::new(Numbers(values, at_once)))
            });
            (rows.len(), columns.into())
        };
        Frame {
            names: ["x", "w", "y"].map(String::from).into(),
            parts: vec![part(0..45), part(45..45), part(45..345)],
        }
    }

    #[test]
    fn numbers_at_once_are_the_same_rows_and_the_same_errors() {
        let path = std::path::Path::new("the table");
        let kinds = |x, w| {
            [
                (None, FeatureKind::Intercept),
                (Some("x"), x),
                (Some("w"), w),
            ]
        };
        let number = |form, transform| {
            FeatureKind::Number(super::super::Number::new(0.1, 9.0, transform, form))
        };
        use super::super::{Form, Storage, Transform};
        let standard = Form::Standardized { mean: 1.0, sd: 0.7 };
        let mut seen = 0;
        for (x, w) in [
            (
                FeatureKind::scale(-2.0, 2.5),
                number(Form::Scaled, Some(Transform::Log)),
            ),
            (FeatureKind::clamp(-1.0, 9.0), number(standard, None)),
            (
                FeatureKind::scale(-2.0, 2.5),
                number(Form::Polynomial(2), None),
            ),
        ] {
            for (storage, row_norm) in [(Storage::I16, None), (Storage::F32, Some(1.4))] {
                let mut source = source(path, "x");
                let features = kinds(x.clone(), w.clone()).map(|(column, kind)| Feature {
                    column: column.map(String::from),
                    kind,
                    missing: None,
                });
                (source.features, source.storage) = (features.into(), storage);
                source.row_norm = row_norm;
                for odd in [0.3, f64::NAN, f64::INFINITY, 1e300] {
                    let [one, many] = [false, true].map(|at_once| {
                        load_frame(&source, &told(odd, at_once)).map_err(|e| e.to_string())
                    });
                    match (one, many) {
                        (Ok(one), Ok(many)) => {
                            let (a, b) = (one.as_public(), many.as_public());
                            assert_eq!((a.rows(), a.labels()), (b.rows(), b.labels()));
                            assert_eq!(one.rows(), 345);
                            seen += 1;
                        }
                        (one, many) => assert_eq!(one.err(), many.err()),
                    }
                }
            }
        }
        assert!(seen >= 12, "{seen}");
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
    fn a_part_without_the_column_is_refused() {
        let mut frame = frame(&[]);
        assert!(said(&frame, "x").contains("0 row(s)"));
        frame.parts.push((1, Vec::new()));
        assert!(said(&frame, "x").contains("column 'x'"));
    }
}
