//! A run file as Python gives it: a path, a text or a dict.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use serde_json::Value;

use dpmc::config::ConfigError;
use dpmc_cli::{CliError, EngineArgument, Overrides, bytes, merge};

use crate::errors::raise;

/// A run file with what keyword arguments say over it.
#[pyclass(frozen, module = "dpmc._dpmc")]
pub struct Plan {
    pub plan: dpmc::config::Plan,
    /// Made of a dict: no file has its lines.
    pub imaginary: bool,
}

/// Stands for the file that a run on a table in memory need not name.
const NO_FILE: &str = "table.frame";

impl Plan {
    fn new(
        py: Python<'_>,
        plan: Result<dpmc::config::Plan, ConfigError>,
        imaginary: bool,
    ) -> PyResult<Self> {
        let plan = plan.map_err(|e| raise(py, &e.into(), imaginary))?;
        Ok(Plan { plan, imaginary })
    }
}

#[pymethods]
impl Plan {
    /// Reads a run file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Plan::new(py, dpmc::config::Plan::read(&path), false)
    }

    /// Parses the text of one that lies (or would lie) at `path`. `frame`: its table is in memory.
    #[staticmethod]
    fn parse(py: Python<'_>, text: String, path: PathBuf, frame: bool) -> PyResult<Self> {
        if frame && let Ok(mut table) = text.parse::<toml::Table>() {
            let data = table.get_mut("data").and_then(toml::Value::as_table_mut);
            if let Some(data) = data
                && !data.contains_key("file")
            {
                data.insert("file".into(), NO_FILE.into());
                let text = toml::to_string(&table).map_err(|e| crate::input(py, e.to_string()))?;
                return Plan::new(py, dpmc::config::Plan::parse(&path, text), true);
            }
        }
        Plan::new(py, dpmc::config::Plan::parse(&path, text), false)
    }

    /// The same of a dict, as JSON; entries that are null count as absent.
    #[staticmethod]
    fn of_dict(py: Python<'_>, json: &str, base: PathBuf, frame: bool) -> PyResult<Self> {
        let bad = |what: String| crate::input(py, format!("the run's dict: {what}"));
        let mut value: Value = serde_json::from_str(json).map_err(|e| bad(e.to_string()))?;
        without_nulls(&mut value);
        if frame
            && let Some(Value::Object(data)) = value.get_mut("data")
            && !data.contains_key("file")
        {
            data.insert("file".into(), NO_FILE.into());
        }
        let text = toml::to_string(&value).map_err(|e| bad(e.to_string()))?;
        let path = base.join("run.toml");
        Plan::new(py, dpmc::config::Plan::parse(&path, text), true)
    }

    /// The plan with keyword arguments over it; what they set is refused by their names.
    #[pyo3(signature = (*, algorithm=None, epsilon=None, delta=None, not_private=false, ledger=None, chains=None, iterations=None, engine=None, seed=None, memory=None, cache=None, frame=false))]
    #[allow(clippy::too_many_arguments)]
    fn with_(
        &self,
        py: Python<'_>,
        algorithm: Option<String>,
        epsilon: Option<f64>,
        delta: Option<f64>,
        not_private: bool,
        ledger: Option<PathBuf>,
        chains: Option<usize>,
        iterations: Option<u64>,
        engine: Option<&str>,
        seed: Option<u64>,
        memory: Option<String>,
        cache: Option<PathBuf>,
        frame: bool,
    ) -> PyResult<Self> {
        let memory = memory.as_deref().map(bytes).transpose();
        let memory = memory.map_err(|what| crate::input(py, format!("memory=: {what}")))?;
        let engine = match engine {
            None => None,
            Some("auto") => Some(EngineArgument::Auto),
            Some("cpu") => Some(EngineArgument::Cpu),
            Some("gpu") => Some(EngineArgument::Gpu),
            Some(_) => return Err(crate::input(py, "engine=: one of 'auto', 'cpu', 'gpu'")),
        };
        let mut plan = self.plan.clone();
        for (given, key, argument) in [
            (algorithm.is_some(), "sampler.algorithm", "algorithm="),
            (epsilon.is_some(), "privacy.epsilon", "epsilon="),
            (delta.is_some(), "privacy.delta", "delta="),
            (not_private, "privacy.not_private", "not_private="),
            (ledger.is_some(), "privacy.ledger", "ledger="),
            (chains.is_some(), "run.chains", "chains="),
            (iterations.is_some(), "run.iterations", "iterations="),
            (seed.is_some(), "run.seed", "seed="),
        ] {
            if given {
                // Before the command's own names for them: the first one is said.
                plan.set_by_flag(key, argument);
            }
        }
        let overrides = Overrides {
            data: None,
            algorithm,
            as_published: false,
            epsilon,
            delta,
            not_private,
            ledger,
            chains,
            iterations,
            engine,
            seed,
            memory,
            cache,
        };
        merge(&mut plan, &overrides).map_err(|e| raise(py, &said_here(e), self.imaginary))?;
        if frame {
            let no_file =
                plan.config.data.name.is_none() && plan.config.data.file == Path::new(NO_FILE);
            let unnamed = no_file || plan.check_name().is_err();
            if unnamed && !plan.config.privacy.not_private {
                let what = "data.name: name the table in [data]: ledger and records know it by that name, whichever program hands it over";
                let error = ConfigError::general(what);
                return Err(raise(py, &error.into(), true));
            }
            plan.take_frame();
        }
        Ok(Plan {
            plan,
            imaginary: self.imaginary,
        })
    }

    /// Columns that the run reads, in no order.
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let columns = self.plan.columns();
        columns.map_err(|e| raise(py, &e.into(), self.imaginary))
    }

    /// Columns of features that the run file declares.
    fn feature_columns(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let columns = self.plan.feature_columns();
        columns.map_err(|e| raise(py, &e.into(), self.imaginary))
    }

    /// The label's column, where there is one.
    fn label(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let label = self.plan.declared_label();
        let label = label.map_err(|e| raise(py, &e.into(), self.imaginary))?;
        Ok(label.and_then(|(_, label)| label.column))
    }

    /// The columns that labels are read from.
    fn label_columns(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let label = self.plan.declared_label();
        let label = label.map_err(|e| raise(py, &e.into(), self.imaginary))?;
        let columns = label.map(|(_, l)| l.column.into_iter().chain(l.event.map(|e| e.column)));
        Ok(columns.into_iter().flatten().collect())
    }

    /// Name of the data set, for ledgers.
    fn dataset(&self) -> String {
        self.plan.dataset_name()
    }

    /// Whether the run's table was in memory.
    fn is_of_frame(&self) -> bool {
        self.plan.is_of_frame()
    }
}

/// The command's flags by the names that they have here.
fn said_here(error: CliError) -> CliError {
    match error {
        CliError::Input(what) => match what.strip_prefix("--") {
            Some(rest) => match rest.split_once(": ") {
                Some((flag, what)) => CliError::Input(format!("{flag}=: {what}")),
                None => CliError::Input(what),
            },
            None => CliError::Input(what),
        },
        other => other,
    }
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
