//! The command line.

use std::path::PathBuf;

use super::{made_up, suite};

pub const USAGE: &str = "\
Errors of dpmc and its peers on the development tables, in posterior standard deviations.

    cargo run --release --example tables [-- OPTIONS]

  --tables A,B      these alone (default: all that can be made)
  --epsilons 1,3    default 1,3,6,10, at delta = 1e-6
  --repeats N       default 20
  --quick           three repeats, four tables, ε = 1, 3, 10: under two minutes
  --suite DIR       folder of CSV.gz tables, see examples/tables/README.md
  --algorithms A,B  of dpmc, the first is plotted; default anchored-barker
  --python PYTHON   interpreter with diffprivlib 0.6 and scikit-learn; default python3
  --json FILE       all numbers
  --plot FILE.svg   errors against ε
  --markdown FILE   the tables of README.md and docs/results/tables.md
  --from A.json,B   what earlier studies found, in place of a new one

tables: adult4, adult12, adult23, adult85; hmda, diamonds, cps1988, randhie (with --suite); made up:
rare, skewed, small, collinear, leverage, narrow, separated, wide, linear-rare, poisson-rare";

pub struct Arguments {
    pub tables: Vec<String>,
    pub epsilons: Vec<f64>,
    pub repeats: u64,
    pub suite: Option<PathBuf>,
    pub algorithms: Vec<String>,
    pub python: String,
    pub json: Option<PathBuf>,
    pub plot: Option<PathBuf>,
    pub markdown: Option<PathBuf>,
    pub from: Vec<PathBuf>,
}

impl Arguments {
    /// `None`: help was asked for.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
        let mut all = vec!["adult4", "adult12", "adult23", "adult85"];
        all.extend(suite::FILES.map(|(name, _)| name));
        all.extend(made_up::NAMES);
        let mut a = Arguments {
            tables: all.iter().map(|name| (*name).to_owned()).collect(),
            epsilons: vec![1.0, 3.0, 6.0, 10.0],
            repeats: 20,
            suite: None,
            algorithms: vec!["anchored-barker".into()],
            python: "python3".into(),
            json: None,
            plot: None,
            markdown: None,
            from: Vec::new(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--tables" => a.tables = list(&value()?),
                "--epsilons" => {
                    let parsed = list(&value()?).iter().map(|e| e.parse()).collect();
                    let parsed: Result<Vec<f64>, _> = parsed;
                    a.epsilons = parsed.map_err(|e| format!("--epsilons: {e}"))?;
                }
                "--repeats" => {
                    let parsed = value()?.parse();
                    a.repeats = parsed.map_err(|e| format!("--repeats: {e}"))?;
                }
                "--quick" => {
                    a.repeats = 3;
                    a.epsilons = vec![1.0, 3.0, 10.0];
                    a.tables = list("adult12,small,leverage,linear-rare");
                }
                "--suite" => a.suite = Some(value()?.into()),
                "--algorithms" => a.algorithms = list(&value()?),
                "--python" => a.python = value()?,
                "--json" => a.json = Some(value()?.into()),
                "--plot" => a.plot = Some(value()?.into()),
                "--markdown" => a.markdown = Some(value()?.into()),
                "--from" => a.from = list(&value()?).into_iter().map(PathBuf::from).collect(),
                "--help" | "-h" => return Ok(None),
                other => return Err(format!("unknown option {other}\n\n{USAGE}")),
            }
        }
        if let Some(name) = a.tables.iter().find(|t| !all.contains(&t.as_str())) {
            return Err(format!("unknown table {name}\n\n{USAGE}"));
        }
        let finite = a.epsilons.iter().all(|e| *e > 0.0 && e.is_finite());
        if !finite || a.repeats == 0 {
            return Err("ε and the number of repeats must be positive".into());
        }
        Ok(Some(a))
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(|word| word.trim().to_owned()).collect()
}
