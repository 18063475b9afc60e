//! For the tests of the command: a folder to run it in, and what it leaves there as a
//! second reader finds it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use tempfile::TempDir;

// Not every test edits.
#[allow(unused_imports)]
pub use super::edit::edit;

/// Logistic regression on 500 rows; a step costs little of the budget.
pub const RUN: &str = r#"[data]
file = "people.csv"
[data.label]
column = "y"
[[data.features]]
intercept = true
[[data.features]]
columns = ["a", "b"]
scale = [-1, 1]
[model]
kind = "logistic"
tempering = 1.0
prior = { kind = "normal", sd = 3.0 }
[sampler]
algorithm = "barker"
step = 0.0001
[run]
iterations = 300
engine = "cpu"
[privacy]
epsilon = 5.0
delta = 1e-6
"#;

/// A file of the repository.
#[allow(dead_code)]
pub fn repository(file: &str) -> String {
    format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"))
}

/// A folder with a table and the run file `run.toml`.
pub struct Place(TempDir);

impl Place {
    pub fn new(run: &str) -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        place.write("people.csv", &table(500));
        place.write("run.toml", run);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dpmc"));
        self.prepared(&mut command, arguments);
        command
    }

    /// The same, with a program of its own.
    pub fn prepared<'a>(&self, command: &'a mut Command, arguments: &str) -> &'a mut Command {
        command.current_dir(self.0.path());
        // Nobody's data folder is written to.
        command.env("DPMC_RECORDS", "off");
        command.args(arguments.split_whitespace());
        command.stdin(Stdio::null())
    }

    pub fn dpmc(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must end well; its standard output.
    pub fn works(&self, arguments: &str) -> String {
        let output = self.dpmc(arguments);
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must refuse its input; its message.
    pub fn refuses(&self, arguments: &str) -> String {
        let output = self.dpmc(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// What a check says, but for the memory that happens to be free.
    pub fn checked(&self, command: &str) -> String {
        let report = self.works(command);
        let lines = report.lines().filter(|l| !l.starts_with("memory"));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Copies a folder of the place with all that is in it.
    pub fn copy(&self, from: &str, to: &str) {
        std::fs::create_dir(self.path(to)).unwrap();
        for entry in std::fs::read_dir(self.path(from)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let (from, to) = (format!("{from}/{name}"), format!("{to}/{name}"));
            if self.path(&from).is_dir() {
                self.copy(&from, &to);
            } else {
                std::fs::copy(self.path(&from), self.path(&to)).unwrap();
            }
        }
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    /// A ledger's terms and its last record, as one.
    #[allow(dead_code)]
    pub fn ledger(&self, name: &str) -> Value {
        let mut records = self.json(name);
        let records = records.as_array_mut().unwrap();
        let (mut terms, mut last) = (records[0].take(), records.pop().unwrap());
        let terms_of = terms.as_object_mut().unwrap();
        terms_of.append(last.as_object_mut().unwrap_or(&mut serde_json::Map::new()));
        terms
    }

    pub fn certificate(&self, directory: &str) -> Value {
        self.json(&format!("{directory}/certificate.json"))
    }

    pub fn parts(&self, directory: &str) -> Vec<PathBuf> {
        let folder = self.path(directory).join("draws.parquet");
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let mut parts: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        parts.sort();
        parts
    }

    pub fn draws(&self, directory: &str) -> Draws {
        Draws::read(&self.parts(directory))
    }
}

/// 500 or so people: a, b and a label that depends on them.
pub fn table(rows: u32) -> String {
    let mut text = String::from("a,b,y\n");
    for i in 0..rows {
        let (a, b) = (
            f64::from(i * 37 % 101) / 50.0 - 1.0,
            f64::from(i * 53 % 89) / 44.0 - 1.0,
        );
        let y = u32::from(2.0 * a - b + f64::from(i * 71 % 97) / 24.0 - 2.0 > 0.0);
        text += &format!("{a:.4},{b:.4},{y}\n");
    }
    text
}

/// Draws as a second reader finds them.
#[derive(Debug, PartialEq)]
pub struct Draws {
    pub columns: Vec<String>,
    pub rows: Vec<(i32, i64, Vec<f64>)>,
}

impl Draws {
    pub fn read(parts: &[PathBuf]) -> Self {
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        for part in parts {
            let file = std::fs::File::open(part).unwrap();
            let reader = SerializedFileReader::new(file).unwrap();
            let fields = reader.metadata().file_metadata().schema().get_fields();
            columns = fields.iter().map(|f| f.name().to_string()).collect();
            for row in reader.get_row_iter(None).unwrap() {
                let row = row.unwrap();
                let (mut chain, mut iteration, mut theta) = (-1, -1, Vec::new());
                for (name, field) in row.get_column_iter() {
                    match (name.as_str(), field) {
                        ("chain", Field::Int(v)) => chain = *v,
                        ("iteration", Field::Long(v)) => iteration = *v,
                        (_, Field::Double(v)) => theta.push(*v),
                        other => panic!("unexpected column {other:?}"),
                    }
                }
                rows.push((chain, iteration, theta));
            }
        }
        Draws { columns, rows }
    }

    pub fn last(&self) -> i64 {
        self.rows.iter().map(|r| r.1).max().unwrap_or(0)
    }

    /// Every chain has the iterations 1, 2, …, each once and in order.
    pub fn assert_contiguous(&self, chains: i32) {
        for chain in 0..chains {
            let mine = self.rows.iter().filter(|r| r.0 == chain).map(|r| r.1);
            assert!(mine.eq(1..=self.last()), "chain {chain}");
        }
        assert_eq!(self.rows.len() as i64, i64::from(chains) * self.last());
    }
}

pub fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no number '{key}' in {value}"))
}

/// What a ledger file counts as spent, in nats of its measure: its last record says.
#[allow(dead_code)]
pub fn spent(ledger: &Value) -> f64 {
    let ledger = ledger.as_array().and_then(|a| a.last()).unwrap_or(ledger);
    ["rho_spent", "mu_squared_half_spent", "divergence_spent"]
        .iter()
        .find_map(|key| ledger[key].as_f64())
        .unwrap_or_else(|| panic!("nothing spent in {ledger}"))
}

/// Number of releases and their ρ, from a certificate's events.
pub fn releases(certificate: &Value) -> (f64, f64) {
    let events = certificate["events"].as_array().unwrap();
    events.iter().fold((0.0, 0.0), |(count, rho), event| {
        let one = match event["kind"].as_str().unwrap() {
            "bounded_range" => number(event, "eta").powi(2) / 8.0,
            "poisson_barker" => {
                let event = dpmc::privacy::Event::PoissonBarker {
                    clip: number(event, "clip"),
                    ratio: number(event, "ratio"),
                };
                event.rho().unwrap()
            }
            _ => 0.5 * (number(event, "sensitivity") / number(event, "sigma")).powi(2),
        };
        let times = number(event, "count");
        (count + times, rho + times * one)
    })
}
