//! A folder to run the laboratory in.

use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn lab(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dpmc-lab"));
        command.current_dir(self.0.path());
        command.args(arguments.split_whitespace());
        command.output().unwrap()
    }

    /// Runs a command that must end well; its standard output.
    pub fn works(&self, arguments: &str) -> String {
        let output = self.lab(arguments);
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must refuse its input; its message.
    pub fn refuses(&self, arguments: &str) -> String {
        let output = self.lab(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}
