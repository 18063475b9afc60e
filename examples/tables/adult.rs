//! The Adult census table of this repository: with four features, of which the labels want more
//! (adult4), with twelve (adult12, as in `examples/adult_anchored.toml`), with lists of levels each
//! of which has one more than rows have (adult23), and with every level of every column (adult85),
//! rare ones too.

use std::collections::HashMap;
use std::path::Path;

use flate2::read::GzDecoder;

use super::glm::Model;
use super::table::{Column, Table, design};

/// The columns of a CSV.gz file with a header, as texts.
pub struct Texts(HashMap<String, Vec<String>>);

impl Texts {
    pub fn read(path: &Path) -> Result<Texts, String> {
        let fail = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let file = std::fs::File::open(path).map_err(|e| fail(&e))?;
        let mut reader = csv::Reader::from_reader(GzDecoder::new(file));
        let names: Vec<String> = reader
            .headers()
            .map_err(|e| fail(&e))?
            .iter()
            .map(str::to_owned)
            .collect();
        let mut columns = vec![Vec::new(); names.len()];
        for record in reader.records() {
            let record = record.map_err(|e| fail(&e))?;
            for (column, cell) in columns.iter_mut().zip(&record) {
                // A level of its own: `?` would be a missing cell.
                let cell = if cell.trim() == "?" {
                    "unknown"
                } else {
                    cell.trim()
                };
                column.push(cell.to_owned());
            }
        }
        Ok(Texts(names.into_iter().zip(columns).collect()))
    }

    pub fn get(&self, column: &str) -> Result<&[String], String> {
        let found = self.0.get(column).map(Vec::as_slice);
        found.ok_or_else(|| format!("there is no column {column}"))
    }

    /// NaN where a cell is no number.
    pub fn numbers(&self, column: &str) -> Result<Vec<f64>, String> {
        let cells = self.get(column)?.iter();
        Ok(cells.map(|c| c.parse().unwrap_or(f64::NAN)).collect())
    }

    /// Where the cell is one of these texts.
    pub fn among(&self, column: &str, texts: &[&str]) -> Result<Vec<bool>, String> {
        let cells = self.get(column)?.iter();
        Ok(cells.map(|c| texts.contains(&c.as_str())).collect())
    }
}

const FLAGS: [(&str, &[&str]); 6] = [
    ("gender", &["Male"]),
    ("marital-status", &["Married-civ-spouse"]),
    ("race", &["White"]),
    ("native-country", &["United-States"]),
    ("occupation", &["Exec-managerial", "Prof-specialty"]),
    ("workclass", &["Private"]),
];

const LEVELS: [&str; 7] = [
    "workclass",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "gender",
    "native-country",
];

const LISTS: [&str; 4] = ["gender", "race", "marital-status", "relationship"];

/// `adult4`, `adult12`, `adult23` or `adult85`.
pub fn table(name: &str) -> Result<Table, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
    let train = Texts::read(&folder.join("adult_train.csv.gz"))?;
    let test = Texts::read(&folder.join("adult_test.csv.gz"))?;
    let columns = columns(&train, name, None)?;
    let test_columns = self::columns(&test, name, Some(&columns))?;
    let label = |texts: &Texts| -> Result<Vec<f64>, String> {
        let incomes = texts.get("income")?.iter();
        Ok(incomes
            .map(|c| f64::from(u8::from(c.starts_with(">50K"))))
            .collect())
    };
    let mut table = Table::new(name, Model::Logistic, columns, label(&train)?);
    table.test = Some((design(&test_columns), label(&test)?));
    Ok(table)
}

/// The columns of one split; `declared`: those of the training rows, whose levels hold.
fn columns(texts: &Texts, table: &str, declared: Option<&[Column]>) -> Result<Vec<Column>, String> {
    let mut columns = vec![
        Column::number("age", [17.0, 90.0], texts.numbers("age")?),
        Column::number(
            "educational-num",
            [1.0, 16.0],
            texts.numbers("educational-num")?,
        ),
        Column::number(
            "hours-per-week",
            [1.0, 99.0],
            texts.numbers("hours-per-week")?,
        ),
    ];
    if table == "adult4" {
        columns.remove(1);
        let (name, among) = FLAGS[1];
        columns.push(Column::flag(name, texts.among(name, among)?));
        return Ok(columns);
    }
    if table == "adult23" {
        columns.remove(1);
        for name in LISTS {
            let cells = texts.get(name)?;
            let known = declared.and_then(|d| d.iter().find(|c| c.name == name));
            columns.push(known.map_or_else(
                || Column::texts(name, cells).with_empty_level("none of these"),
                |c| c.with_texts(cells),
            ));
        }
        return Ok(columns);
    }
    let (gain, loss) = (
        texts.numbers("capital-gain")?,
        texts.numbers("capital-loss")?,
    );
    if table == "adult12" {
        let positive = |values: &[f64]| values.iter().map(|v| *v > 0.0).collect();
        columns.push(Column::flag("gain", positive(&gain)));
        columns.push(Column::flag("loss", positive(&loss)));
        for (name, among) in FLAGS {
            columns.push(Column::flag(name, texts.among(name, among)?));
        }
        return Ok(columns);
    }
    let log = |values: Vec<f64>| values.into_iter().map(f64::ln_1p).collect();
    columns.push(Column::number("log-gain", [0.0, 1e5f64.ln_1p()], log(gain)));
    columns.push(Column::number("log-loss", [0.0, 5e3f64.ln_1p()], log(loss)));
    for name in LEVELS {
        let cells = texts.get(name)?;
        let known = declared.and_then(|d| d.iter().find(|c| c.name == name));
        columns.push(known.map_or_else(|| Column::texts(name, cells), |c| c.with_texts(cells)));
    }
    Ok(columns)
}
