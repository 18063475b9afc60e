//! A folder with a table, a run file and the command, for tests of the command.
#![allow(dead_code)]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

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

/// The folder; removed at the end.
pub struct Place(TempDir);

impl Place {
    /// A folder with `people.csv` and the run file `run.toml`.
    pub fn new(run: &str) -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        let mut table = String::from("a,b,y\n");
        for i in 0..500u32 {
            let (a, b) = (f64::from(i * 37 % 101), f64::from(i * 53 % 89));
            table += &format!("{:.4},{:.4},{}\n", a / 50.0 - 1.0, b / 44.0 - 1.0, i % 2);
        }
        place.write("people.csv", &table);
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
        command.current_dir(self.0.path());
        command.args(arguments.split_whitespace());
        command.stdin(Stdio::null());
        command
    }

    /// Exit code, standard output and standard error.
    pub fn dpmc(&self, arguments: &str) -> (i32, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap_or(-1), text(stdout), text(stderr))
    }

    /// Runs a command that must end well; its standard output.
    pub fn works(&self, arguments: &str) -> String {
        let (code, out, error) = self.dpmc(arguments);
        assert_eq!(code, 0, "{arguments}: {error}");
        out
    }

    /// Runs a command that must refuse its input; its message.
    pub fn refuses(&self, arguments: &str) -> String {
        let (code, _, error) = self.dpmc(arguments);
        assert_eq!(code, 2, "{arguments}: {error}");
        assert!(!error.contains("panicked"), "{arguments}: {error}");
        error
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }
}

/// Replaces `from` in `text`; every edit must hit.
pub fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no '{from}' to edit");
    text.replace(from, to)
}
