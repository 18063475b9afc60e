//! A table as its owner sees it: typed columns, a label, and the declarations that a run file
//! makes of them.

use std::fmt::Write as _;
use std::path::Path;

use super::glm::{Design, Model, Problem};

/// A code that is none of the declared levels: all its indicators are zero.
pub const UNDECLARED: u16 = u16::MAX;

/// What a column holds, with its public declaration.
#[derive(Clone, Debug)]
pub enum Values {
    /// Numbers with public bounds, mapped to [−1, 1].
    Number { low: f64, high: f64, raw: Vec<f64> },
    /// Yes or no.
    Flag(Vec<bool>),
    /// Codes into public levels; the reference has no indicator.
    Levels {
        names: Vec<String>,
        reference: usize,
        codes: Vec<u16>,
    },
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub values: Values,
}

impl Column {
    pub fn number(name: &str, [low, high]: [f64; 2], raw: Vec<f64>) -> Self {
        let values = Values::Number { low, high, raw };
        Column {
            name: name.into(),
            values,
        }
    }

    pub fn flag(name: &str, values: Vec<bool>) -> Self {
        Column {
            name: name.into(),
            values: Values::Flag(values),
        }
    }

    /// Texts as levels: all of them in alphabetical order, the commonest as the reference.
    pub fn texts(name: &str, texts: &[String]) -> Self {
        let mut names = texts.to_vec();
        names.sort();
        names.dedup();
        let mut counts = vec![0u32; names.len()];
        let codes: Vec<u16> = texts.iter().map(|t| code(&names, t)).collect();
        codes.iter().for_each(|c| counts[*c as usize] += 1);
        let most = counts.iter().max().copied().unwrap_or(0);
        let reference = counts.iter().position(|c| *c == most).unwrap_or(0);
        let values = Values::Levels {
            names,
            reference,
            codes,
        };
        Column {
            name: name.into(),
            values,
        }
    }

    /// The same with a level that is declared and has no rows.
    #[must_use]
    pub fn with_empty_level(mut self, name: &str) -> Self {
        if let Values::Levels { names, .. } = &mut self.values {
            names.push(name.into());
        }
        self
    }

    /// The same column of other rows.
    pub fn with_texts(&self, texts: &[String]) -> Self {
        let mut column = self.clone();
        if let Values::Levels { names, codes, .. } = &mut column.values {
            *codes = texts.iter().map(|t| code(names, t)).collect();
        }
        column
    }

    /// These rows of it.
    pub fn take(&self, rows: &[usize]) -> Self {
        let values = match &self.values {
            Values::Number { low, high, raw } => Values::Number {
                low: *low,
                high: *high,
                raw: rows.iter().map(|&i| raw[i]).collect(),
            },
            Values::Flag(flags) => Values::Flag(rows.iter().map(|&i| flags[i]).collect()),
            Values::Levels {
                names,
                reference,
                codes,
            } => Values::Levels {
                names: names.clone(),
                reference: *reference,
                codes: rows.iter().map(|&i| codes[i]).collect(),
            },
        };
        Column {
            name: self.name.clone(),
            values,
        }
    }

    /// Coefficients it has.
    fn width(&self) -> usize {
        match &self.values {
            Values::Levels { names, .. } => names.len() - 1,
            _ => 1,
        }
    }

    /// Names of its coefficients.
    fn coefficients(&self) -> Vec<String> {
        match &self.values {
            Values::Levels {
                names, reference, ..
            } => (0..names.len())
                .filter(|k| k != reference)
                .map(|k| format!("{}={}", self.name, names[k]))
                .collect(),
            _ => vec![self.name.clone()],
        }
    }

    /// Whether row `i` holds a number, where numbers are expected.
    pub fn is_finite(&self, i: usize) -> bool {
        !matches!(&self.values, Values::Number { raw, .. } if !raw[i].is_finite())
    }

    fn rows(&self) -> usize {
        match &self.values {
            Values::Number { raw, .. } => raw.len(),
            Values::Flag(flags) => flags.len(),
            Values::Levels { codes, .. } => codes.len(),
        }
    }

    /// The entry that row `i` has in the design, counted from the column's first.
    fn entry(&self, i: usize) -> Option<(usize, f64)> {
        match &self.values {
            Values::Number { low, high, raw } => {
                let inside = raw[i].clamp(*low, *high);
                Some((0, 2.0 * (inside - low) / (high - low) - 1.0))
            }
            Values::Flag(flags) => flags[i].then_some((0, 1.0)),
            Values::Levels {
                reference, codes, ..
            } => {
                let code = codes[i] as usize;
                let known = codes[i] != UNDECLARED && code != *reference;
                known.then(|| (code - usize::from(code > *reference), 1.0))
            }
        }
    }

    fn cell(&self, i: usize) -> String {
        match &self.values {
            Values::Number { raw, .. } => raw[i].to_string(),
            Values::Flag(flags) => u8::from(flags[i]).to_string(),
            Values::Levels { names, codes, .. } => names[codes[i] as usize].clone(),
        }
    }

    /// Its block in a run file.
    fn declare(&self) -> String {
        let what = match &self.values {
            Values::Number { low, high, .. } => format!("scale = [{low:?}, {high:?}]"),
            Values::Flag(_) => "indicator = { in = [\"1\"] }".into(),
            Values::Levels {
                names, reference, ..
            } => format!(
                "one_hot = {names:?}\nreference = {:?}\nstrict = true",
                names[*reference]
            ),
        };
        format!("[[data.features]]\ncolumn = {:?}\n{what}\n\n", self.name)
    }
}

fn code(names: &[String], text: &String) -> u16 {
    let place = names.binary_search(text);
    place.map_or(UNDECLARED, |k| k as u16)
}

/// The rows' design: an intercept, then the columns.
pub fn design(columns: &[Column]) -> Design {
    let mut starts = vec![1];
    for column in columns {
        starts.push(starts[starts.len() - 1] + column.width());
    }
    let mut design = Design::new(starts[columns.len()]);
    for i in 0..columns.first().map_or(0, Column::rows) {
        let entries = columns.iter().zip(&starts).filter_map(|(column, start)| {
            let (j, v) = column.entry(i)?;
            Some((start + j, v))
        });
        design.push(std::iter::once((0, 1.0)).chain(entries));
    }
    design
}

/// A regression on a table.
pub struct Table {
    pub name: String,
    pub model: Model,
    pub columns: Vec<Column>,
    pub design: Design,
    /// Labels as the model reads them: 0 or 1, numbers, counts.
    pub y: Vec<f64>,
    /// Public bounds on a number or a count.
    pub label: [f64; 2],
    pub test: Option<(Design, Vec<f64>)>,
    /// Of made-up tables: the coefficients that labels are drawn from.
    pub truth: Option<Vec<f64>>,
    /// A coefficient that stands for infinity: no interval is asked to cover it.
    pub separated: Option<usize>,
    pub prior_sd: f64,
}

impl Table {
    pub fn new(name: &str, model: Model, columns: Vec<Column>, y: Vec<f64>) -> Self {
        Table {
            name: name.into(),
            model,
            design: design(&columns),
            columns,
            y,
            label: [0.0, 1.0],
            test: None,
            truth: None,
            separated: None,
            prior_sd: 5.0,
        }
    }

    /// What the declarations imply: 1 for the intercept and for each column.
    pub fn row_norm(&self) -> f64 {
        (1.0 + self.columns.len() as f64).sqrt()
    }

    pub fn coefficients(&self) -> Vec<String> {
        let columns = self.columns.iter().flat_map(Column::coefficients);
        std::iter::once("intercept".into()).chain(columns).collect()
    }

    pub fn problem<'a>(&'a self, y: &'a [f64]) -> Problem<'a> {
        Problem {
            design: &self.design,
            y,
            model: self.model,
            row_norm: self.row_norm(),
            label: self.label,
            precision: self.prior_sd.powi(-2),
        }
    }

    /// The run file of a user who knows nothing but the declarations: no sampler key but the
    /// algorithm's name.
    pub fn run_file(&self, algorithm: &str, epsilon: f64, delta: f64) -> String {
        let [low, high] = self.label;
        let (label, model) = match self.model {
            Model::Logistic => (String::new(), "kind = \"logistic\"".into()),
            Model::Linear { variance } => (
                format!("clamp = [{low:?}, {high:?}]\n"),
                format!("kind = \"linear\"\nvariance = {variance:?}"),
            ),
            Model::Poisson => (format!("count = {high}\n"), "kind = \"poisson\"".into()),
        };
        let features: String = self.columns.iter().map(Column::declare).collect();
        format!(
            "[data]\nname = {name:?}\nfile = \"{name}.csv\"\n\n\
             [data.label]\ncolumn = \"y\"\n{label}\n\
             [[data.features]]\nintercept = true\n\n{features}\
             [model]\n{model}\nprior = {{ kind = \"normal\", sd = {sd:?} }}\n\n\
             [sampler]\nalgorithm = {algorithm:?}\n\n\
             [privacy]\nepsilon = {epsilon:?}\ndelta = {delta:e}\n",
            name = self.name,
            sd = self.prior_sd,
        )
    }

    /// Writes the rows beside the run file.
    pub fn write_csv(&self, y: &[f64], folder: &Path) -> std::io::Result<()> {
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        let mut text = format!("y,{}\n", names.join(","));
        for (i, label) in y.iter().enumerate() {
            let _ = write!(text, "{label}");
            for column in &self.columns {
                text.push(',');
                text.push_str(&column.cell(i));
            }
            text.push('\n');
        }
        std::fs::write(folder.join(format!("{}.csv", self.name)), text)
    }
}
