//! `dpmc init`: a run file from the header alone.

use std::io::{BufReader, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use super::CliError;
use super::answers::print_json;
use super::args::InitArguments;
use super::init_questions::Questions;
use dpmc::config::{
    ConfigError, existing_part, formula_name, quoted, table_files, table_header, toml_key,
};
use dpmc::data::TextFormat;

/// What is declared of a table: by answers, or by placeholders that `dpmc check` refuses.
pub(super) struct Declared {
    pub label: Column,
    /// The lines of `[model]` above the formula.
    pub model: Vec<String>,
    /// Standard deviation of the coefficients' prior.
    pub prior_sd: String,
    /// Those that the model may use, in the header's order.
    pub others: Vec<Column>,
}

/// A column, and what stands in its braces in `[columns]`.
pub(super) struct Column {
    pub name: String,
    pub declaration: String,
}

impl Column {
    pub fn new(name: &str, declaration: impl Into<String>) -> Self {
        Column {
            name: name.into(),
            declaration: declaration.into(),
        }
    }
}

/// What every column is taken for until somebody says otherwise.
pub(super) const NUMBER: &str = "scale = [LOW, HIGH]";

impl Declared {
    /// The last column is the label, and all else has bounds left to declare.
    pub fn nothing(columns: &[String]) -> Self {
        let (label, others) = match columns {
            [] => ("LABEL", columns),
            [others @ .., last] => (&**last, others),
        };
        Declared {
            label: Column::new(label, "positive = [\"LEVEL\"], negative = [\"LEVEL\"]"),
            model: vec![
                "kind = \"logistic\"   # or linear (with variance = S2), poisson; others: see below".into(),
            ],
            prior_sd: "10.0".into(),
            others: others.iter().map(|c| Column::new(c, NUMBER)).collect(),
        }
    }
}

/// What `--json` says.
#[derive(Serialize)]
struct Made {
    columns: Vec<String>,
    /// Where it was written; none where it was printed.
    file: Option<String>,
    run_file: String,
}

pub(super) fn run(a: &InitArguments) -> Result<(), CliError> {
    let columns = header(&a.data, a.delimiter.as_deref())?;
    let mut out = a.out.clone();
    refuse_existing(out.as_deref())?;
    let terminal = std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
        && std::io::stderr().is_terminal();
    let asked = a.interactive || terminal && !a.json && !a.no_interactive;
    let declared = match asked {
        false => Declared::nothing(&columns),
        true => {
            let mut input = BufReader::new(std::io::stdin());
            let mut ask = Questions::new(&mut input, std::io::stderr());
            let declared = ask.declared(&columns);
            if out.is_none() && terminal {
                out = ask.file();
            }
            declared
        }
    };
    let source = source(&a.data, out.as_deref())?;
    let text = run_file(&source, a.delimiter.as_deref(), &declared);
    if let Some(path) = &out {
        write_new(path, &text).inspect_err(|_| {
            if asked && !a.json {
                // Answers took somebody's time.
                print!("{text}");
            }
        })?;
    }
    if a.json {
        return print_json(&Made {
            columns,
            file: out.map(|path| path.display().to_string()),
            run_file: text,
        });
    }
    if out.is_none() {
        print!("{text}");
    }
    Ok(())
}

fn refuse_existing(out: Option<&Path>) -> Result<(), CliError> {
    match out {
        Some(path) if path.exists() => Err(CliError::Input(format!(
            "{}: exists already; remove it or choose another --out",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Writes a file that was not there.
fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    let file = std::fs::File::create_new(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|e| CliError::Failure(format!("{}: cannot be written: {e}", path.display())))
}

fn format(delimiter: Option<&str>) -> Result<TextFormat, CliError> {
    Ok(TextFormat {
        delimiter: delimiter
            .map(dpmc::data::delimiter)
            .transpose()
            .map_err(|what| CliError::Input(format!("--delimiter: {what}")))?,
        ..Default::default()
    })
}

/// The names of a table's columns. One alone that holds what stands between names elsewhere is
/// asked about.
fn header(data: &Path, delimiter: Option<&str>) -> Result<Vec<String>, CliError> {
    let columns = table_header(data, format(delimiter)?).map_err(ConfigError::from)?;
    if let ([only], None) = (&*columns, delimiter) {
        let likely = [
            (';', "semicolon", "';'"),
            ('|', "bar", "'|'"),
            ('\t', "tab", "$'\\t'"),
        ];
        // (Where the names are missing it is a row, and is not shown.)
        if let Some((_, what, flag)) = likely.iter().find(|(c, ..)| only.contains(*c)) {
            return Err(CliError::Input(format!(
                "{}: its header is a single name with a {what} in it; give --delimiter {flag} if that stands between names, else --delimiter ','",
                data.display()
            )));
        }
    }
    Ok(columns)
}

/// The table's lines in `[data]` of a run file at `out`, whose paths are relative to its own
/// folder, so that both may move together. Nobody knows where a printed one will lie: it has the
/// whole path.
fn source(data: &Path, out: Option<&Path>) -> Result<String, CliError> {
    let file = std::path::absolute(data).unwrap_or_else(|_| data.into());
    let folder = out.and_then(|out| Some(std::path::absolute(out).ok()?.parent()?.to_path_buf()));
    let within = folder.and_then(|folder| Some(file.strip_prefix(folder).ok()?.to_path_buf()));
    let file = match within {
        Some(within) if !within.as_os_str().is_empty() => within,
        _ => file,
    };
    let file = quoted(&file)
        .map_err(|_| CliError::Input(format!("{}: give a path in UTF-8", file.display())))?;
    let mut source = format!("file = {file}");
    let is_one = table_files(data).is_ok_and(|parts| parts.is_empty());
    if !is_one {
        let name = existing_part(data);
        let name = name
            .file_name()
            .unwrap_or("table".as_ref())
            .to_string_lossy();
        source = format!("name = {}\n{source}", quote(&name));
    }
    Ok(source)
}

/// A run file for the table at `data`, with bounds left to declare.
pub(super) fn text(data: &Path, delimiter: Option<&str>) -> Result<String, CliError> {
    let declared = Declared::nothing(&header(data, delimiter)?);
    Ok(run_file(&source(data, None)?, delimiter, &declared))
}

/// The same for a table in memory, of its columns' names.
pub(super) fn text_of_columns(columns: &[String]) -> String {
    run_file("name = \"table\"", None, &Declared::nothing(columns))
}

pub(super) fn quote(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

fn run_file(source: &str, delimiter: Option<&str>, declared: &Declared) -> String {
    let delimiter = delimiter.map_or(String::new(), |c| format!("delimiter = {}\n", quote(c)));
    let label = column(&declared.label);
    let others: Vec<String> = declared.others.iter().map(column).collect();
    let others = others.join("\n");
    let (model, prior_sd) = (declared.model.join("\n"), &declared.prior_sd);
    let formula = quote(&format!("{} ~ .", formula_name(&declared.label.name)));
    format!(
        r#"# A dpmc run file, made from the table's header alone.
# Bounds and levels must come from public knowledge (a code book, a law), never from looking at the
# rows: replace every LOW, HIGH and LEVEL, delete the lines of columns that you do not need, then
# run `dpmc check` on this file. docs/reference/run_file.md has every key.

[data]
{source}
{delimiter}# unit = "COLUMN"   # where a person, say, has several rows: protects them together, with
# rows_per_unit = K   # at most so many of each, see docs/guide/persons.md
# row_norm = 3.0   # clip rows to this L2 norm; without it, what the features imply

[columns]
# The label. Two classes have positive and negative texts; without negative, all other cells mean 0
# and missing ones stop the run. For 0/1 cells: {{}}. Numbers: {{ clamp = [LOW, HIGH] }}. Counts:
# {{ count = MAX }}. For an "mlp" with several classes: {{ classes = K }}
{label}
# What the model may use. Numbers: {{ scale = [LOW, HIGH] }}; an empty cell is an error unless
# missing = VALUE says what it counts as. Texts: {{ levels = ["LEVEL", …], strict = true }}, the first
# of which the others are compared with; without strict any other text, and an empty cell, is one
# level more. Some texts against all others: {{ indicator = {{ in = ["LEVEL"] }} }}.
{others}

# Rows that may be published score the predictions:
# [test]
# file = "PUBLIC.csv"
# public = true

[model]
{model}
# Numbers of unknown spread are kind = "gaussian" with parameters = {{ log_sigma = {{ mean = M,
# sd = 1 }} }}. Ratings, times, skewed costs, counts with many zeros and likelihoods of your own:
# docs/guide/likelihoods.md.
# The dot is all of [columns] but the label. Or name the terms, as in R, such as
# log(a) + b * c + ns(d, knots = [30, 50]) + (1 | e): docs/guide/formulas.md.
formula = {formula}
tempering = 1.0
# Wide beside what effects may be. For a label that is a number: its largest bound, in its units.
prior = {{ kind = "normal", sd = {prior_sd} }}

[sampler]
# Follows noisy gradients and curvature to the mode and releases the log likelihood's
# expansion there, all out of one budget; rows decide about moves where the budget pays
# for that, else draws are free, of the expansion. `dpmc check` says which, and how far
# off the means will be. ("dp-laplace": regressions, never a decision.)
algorithm = "anchored-barker"
# Of other models:
#   mixture, gaussian-mean, banana: the same, with adapt = "full" here, warmup = 2000 in
#     [run], a box in [model], no label, and formula = "~ . - 1"
#   mlp, binary label, from some 100,000 rows on: the same, with clip = {{ rate = 1.5 }}
#     here and start = "prior" in [run]
#   any other mlp: "dp-sgld" with gradient = {{ clip = 1.0 }}

[run]
iterations = 5000         # no warm-up: the anchor scales the moves
# ess = 400   # effective draws that decisions must buy; where they cannot, draws are free
# Draws of a regression or an mlp hold the noise of the releases, so that intervals are as
# wide as they must be; draws = "chain" leaves it out, for the chain's own target.

[privacy]
epsilon = 1.0
delta = 1e-6             # smaller than 1/rows
"#
    )
}

/// A column's line in `[columns]`.
fn column(column: &Column) -> String {
    let key = toml_key(&column.name);
    match column.declaration.as_str() {
        "" => format!("{key} = {{}}"),
        declaration => format!("{key} = {{ {declaration} }}"),
    }
}
