//! `dpmc init`: a run file from the header alone.

use std::fmt::Write;
use std::io::{BufReader, IsTerminal, Write as _};
use std::path::Path;

use serde::Serialize;

use super::CliError;
use super::answers::print_json;
use super::args::InitArguments;
use super::init_questions::Questions;
use dpmc::config::{ConfigError, existing_part, quoted, table_files, table_header};
use dpmc::data::TextFormat;

/// What is declared of a table: by answers, or by placeholders that `dpmc check` refuses.
pub(super) struct Declared {
    pub label: String,
    /// The lines below the label's column.
    pub label_lines: Vec<String>,
    /// The lines of `[model]` above tempering and prior.
    pub model: Vec<String>,
    /// Declarations, and the columns of each.
    pub features: Vec<(String, Vec<String>)>,
}

/// What every column is taken for until somebody says otherwise.
pub(super) const NUMBER: &str = "scale = [LOW, HIGH]";

impl Declared {
    /// The last column is the label, and all else has bounds left to declare.
    pub fn nothing(columns: &[String]) -> Self {
        let (label, others) = match columns {
            [] => ("LABEL", columns),
            [only] => (&**only, columns),
            [others @ .., last] => (&**last, others),
        };
        let lines = [
            "positive = [\"LEVEL\"]",
            "# negative = [\"LEVEL\"]   # without it all other cells mean 0, missing ones stop the run",
            "# For 0/1 cells drop both. For kind = \"linear\": clamp = [LOW, HIGH] or scale = [LOW, HIGH];",
            "# for \"poisson\": count = MAX; for an \"mlp\" with several classes: classes = K",
        ];
        Declared {
            label: label.into(),
            label_lines: lines.map(String::from).into(),
            model: vec![
                "kind = \"logistic\"   # or linear (with variance = S2), poisson; others: see below".into(),
            ],
            features: vec![(NUMBER.into(), others.to_vec())],
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
    let mut t = String::new();
    let mut line = |s: &str| {
        let _ = writeln!(t, "{s}");
    };
    line("# A dpmc run file, made from the table's header alone.");
    line("# Bounds and levels must come from public knowledge (a code book, a law), never");
    line("# from looking at the rows: replace every LOW, HIGH and LEVEL, drop what you");
    line(
        "# do not need, then run `dpmc check` on this file. docs/reference/run_file.md has every key.",
    );
    line("");
    line("[data]");
    line(source);
    if let Some(delimiter) = delimiter {
        line(&format!("delimiter = {}", quote(delimiter)));
    }
    line(
        "# unit = \"COLUMN\"   # where a person, say, has several rows: protects them together, with",
    );
    line("# rows_per_unit = K   # at most so many of each, see docs/guide/persons.md");
    line("# row_norm = 3.0   # clip rows to this L2 norm; without it, what the features imply");
    line("");
    line("[data.label]");
    line(&format!(
        "column = {}   # the label",
        quote(&declared.label)
    ));
    declared.label_lines.iter().for_each(|l| line(l));
    line("");
    line("[[data.features]]");
    line("intercept = true");
    line("");
    line("# A block for all columns of one kind; those of other kinds or bounds have their own:");
    line(
        "#   one_hot = [\"LEVEL\", …] and reference = \"LEVEL\"; indicator = { in = [\"LEVEL\"] } or",
    );
    line(
        "#   { above = LOW }. An empty cell is an error unless 'missing = VALUE' says what it counts as.",
    );
    line("# Beside scale: transform = \"log\" (log1p, sqrt, asinh), polynomial = 3 or");
    line(
        "# spline = { knots = [..] }. Products of features: [[data.interactions]]. All of this may",
    );
    line("# be written as in R, formula = \"label ~ a * b\": docs/guide/formulas.md.");
    let features = declared.features.iter();
    for (declaration, columns) in features.filter(|(_, columns)| !columns.is_empty()) {
        line("[[data.features]]");
        line(&names(columns));
        line(declaration);
        line("");
    }
    line("# Rows that may be published score the predictions:");
    line("# [test]");
    line("# file = \"PUBLIC.csv\"");
    line("# public = true");
    line("");
    line("[model]");
    declared.model.iter().for_each(|l| line(l));
    line(
        "# Numbers of unknown spread are kind = \"gaussian\"; ratings, times, skewed costs, counts with",
    );
    line("# many zeros and likelihoods of your own: docs/guide/likelihoods.md.");
    line("tempering = 1.0");
    line("prior = { kind = \"normal\", sd = 10.0 }");
    line("");
    line("[sampler]");
    line("# Follows noisy gradients and curvature to the mode and releases the log likelihood's");
    line("# expansion there, all out of one budget; rows decide about moves where the budget pays");
    line("# for that, else draws are free, of the expansion. `dpmc check` says which, and how far");
    line("# off the means will be. (\"dp-laplace\": regressions, never a decision.)");
    line("algorithm = \"anchored-barker\"");
    line("# Of other models:");
    line(
        "#   mixture, gaussian-mean, banana: the same, with adapt = \"full\" here, warmup = 2000 in",
    );
    line("#     [run], a box in [model], and neither label nor intercept in [data]");
    line("#   mlp, binary label, from some 100,000 rows on: the same, with clip = { rate = 1.5 }");
    line("#     here and start = \"prior\" in [run]");
    line("#   any other mlp: \"dp-sgld\" with gradient = { clip = 1.0 }");
    line("");
    line("[run]");
    line("iterations = 5000         # no warm-up: the anchor scales the moves");
    line(
        "# ess = 400   # effective draws that decisions must buy; where they cannot, draws are free",
    );
    line(
        "# Draws of a regression or an mlp hold the noise of the releases, so that intervals are as",
    );
    line("# wide as they must be; draws = \"chain\" leaves it out, for the chain's own target.");
    line("");
    line("[privacy]");
    line("epsilon = 1.0");
    line("delta = 1e-6             # smaller than 1/rows");
    t
}

/// The columns of a block, in lines that can be read and edited.
fn names(columns: &[String]) -> String {
    const WIDTH: usize = 98;
    if let [only] = columns {
        return format!("column = {}", quote(only));
    }
    let mut lines = vec![String::from("columns = [")];
    for (i, name) in columns.iter().enumerate() {
        let end = if i + 1 < columns.len() { "," } else { "]" };
        let name = format!("{}{end}", quote(name));
        match lines.last_mut() {
            Some(line) if line.ends_with('[') => *line += &name,
            Some(line) if line.chars().count() + 1 + name.chars().count() <= WIDTH => {
                *line += " ";
                *line += &name;
            }
            _ => lines.push(format!("    {name}")),
        }
    }
    lines.join("\n")
}
