//! `dpmc init`: a run file from the header alone.

use std::fmt::Write;
use std::path::Path;

use super::CliError;
use super::args::InitArguments;
use dpmc::config::{ConfigError, existing_part, quoted, table_files, table_header};
use dpmc::data::TextFormat;

pub(super) fn run(a: &InitArguments) -> Result<(), CliError> {
    let text = text(&a.data, a.delimiter.as_deref())?;
    match &a.out {
        None => print!("{text}"),
        Some(path) if path.exists() => {
            return Err(CliError::Input(format!(
                "{}: exists already; remove it or choose another --out",
                path.display()
            )));
        }
        Some(path) => std::fs::write(path, text).map_err(|e| {
            CliError::Failure(format!("{}: cannot be written: {e}", path.display()))
        })?,
    }
    Ok(())
}

/// A run file for the table at `data`, with bounds left to declare.
pub(super) fn text(data: &Path, delimiter: Option<&str>) -> Result<String, CliError> {
    let format = TextFormat {
        delimiter: delimiter
            .map(dpmc::data::delimiter)
            .transpose()
            .map_err(|what| CliError::Input(format!("--delimiter: {what}")))?,
        ..Default::default()
    };
    let columns = table_header(data, format).map_err(ConfigError::from)?;
    let file = std::path::absolute(data).unwrap_or_else(|_| data.into());
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
    Ok(run_file(&source, delimiter, &columns))
}

/// The same for a table in memory, of its columns' names.
pub(super) fn text_of_columns(columns: &[String]) -> String {
    run_file("name = \"table\"", None, columns)
}

fn quote(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

fn run_file(source: &str, delimiter: Option<&str>, columns: &[String]) -> String {
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
    line("# row_norm = 3.0   # clip rows to this L2 norm; without it, what the features imply");
    line("");
    line("[data.label]");
    line(&format!(
        "column = {}   # the label; for 0/1 cells drop 'positive'",
        quote(columns.last().map_or("LABEL", String::as_str))
    ));
    line("positive = [\"LEVEL\"]");
    line(
        "# negative = [\"LEVEL\"]   # without it all other cells mean 0, missing ones stop the run",
    );
    line("# for kind = \"linear\": clamp = [LOW, HIGH] or scale = [LOW, HIGH];");
    line("# for \"poisson\": count = MAX; for an \"mlp\" with several classes: classes = K");
    line("");
    line("[[data.features]]");
    line("intercept = true");
    let without_label = columns.len().saturating_sub(1).max(1);
    line("");
    line("# An empty cell is an error unless 'missing = VALUE' says what it counts as.");
    line("# Beside scale: transform = \"log\" (log1p, sqrt, asinh), polynomial = 3 or");
    line(
        "# spline = { knots = [..] }. Products of features: [[data.interactions]]. All of this may",
    );
    line("# be written as in R, formula = \"label ~ a * b\": docs/guide/formulas.md.");
    for column in columns.iter().take(without_label) {
        line("");
        line("[[data.features]]");
        line(&format!("column = {}", quote(column)));
        line(
            "scale = [LOW, HIGH]   # or: one_hot = [\"LEVEL\", …] and reference = \"LEVEL\"; indicator = { in = [\"LEVEL\"] } or { above = LOW }",
        );
    }
    line("");
    line("[model]");
    line("kind = \"logistic\"   # or linear (with variance = S2), poisson; others: see [sampler]");
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
