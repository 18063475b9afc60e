//! What to do about a run file that the TOML reader cannot take.

use super::error::line_of;

/// What a message of the TOML reader at an offset of the text says to whoever wrote it.
pub(super) fn explained(text: &str, offset: usize, message: &str) -> String {
    let line = line_of(text, offset);
    undeclared(text, line, message).unwrap_or_else(|| {
        let hint = line_hint(text, line, message);
        format!("{message}{}{hint}", nearest_hint(message))
    })
}

/// What to write for an entry of `[columns]` that is no table, such as `age = [18, 99]`.
fn undeclared(text: &str, line: usize, message: &str) -> Option<String> {
    let before = text.lines().take(line).map(|l| without_comment(l).trim());
    let before: Vec<&str> = before.collect();
    let entry = before.last()?;
    let is_header = |l: &&&str| l.starts_with('[') && l.ends_with(']') && !l.contains('=');
    let section = before.iter().rfind(is_header)?;
    let (name, value) = entry.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_table = value.starts_with('{') || name.contains('.');
    if *section != "[columns]" || is_table || !message.starts_with("invalid type") {
        return None;
    }
    let example = match value.starts_with(['[', '"']) && value.contains('"') {
        true => "{ levels = [\"a\", \"b\"] }",
        false => "{ scale = [LOW, HIGH] }",
    };
    Some(format!(
        "a column is declared by a table in braces, such as {name} = {example}"
    ))
}

/// What to do about a line that is no TOML yet: a placeholder of `dpmc init`, or a path with
/// backslashes in double quotes.
fn line_hint(text: &str, line: usize, message: &str) -> String {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or("");
    let code = without_comment(line);
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    let holds = |name| words.clone().any(|w| w == name);
    if holds("LOW") || holds("HIGH") {
        return "; replace LOW and HIGH by numbers from public knowledge, such as [18, 99]".into();
    }
    if holds("MAX") || holds("K") {
        return "; replace MAX or K by a number from public knowledge, such as 10".into();
    }
    if holds("S2") {
        return "; replace S2 by the variance of the noise in the label, such as 1.0".into();
    }
    if code.contains("LEVEL") {
        return "; replace LEVEL by a level of the column in quotes, such as \"yes\"".into();
    }
    let key = code.split('=').next().unwrap_or("");
    let dotted = key.contains('.') && !key.contains(['"', '\'', '[']);
    if dotted && message.starts_with("unknown field") && message.contains("`levels`") {
        return "; a name with a dot stands in quotes: \"x.1\" = { … }".into();
    }
    let escape = message.contains("escape") || message.contains("unicode");
    if code.contains('\\') && (escape || message.contains("invalid value")) {
        return "; in double quotes a \\ begins an escape: write / or single quotes".into();
    }
    String::new()
}

/// A line up to its comment.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (i, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return &line[..i],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    line
}

/// Names that other software has for what a run file calls otherwise.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("gaussian", "normal"),
    ("gauss", "normal"),
    ("double-exponential", "laplace"),
    ("uniform", "flat"),
    ("nuts", "hmc"),
];

/// `unknown field `stpe`, expected one of `step`, …` → the nearest of them.
fn nearest_hint(message: &str) -> String {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return String::new();
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next() else {
        return String::new();
    };
    // What only labels have, among the keys of columns.
    if ["event", "trials"].contains(&unknown) && message.contains("`clamp`") {
        return format!(
            "; '{unknown}' is of labels alone: declare the label in [data.label], with its column and {unknown}, instead of here"
        );
    }
    let lower = unknown.to_lowercase();
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == lower);
    let known = other.and_then(|(_, ours)| quoted.clone().find(|q| q == ours));
    let nearest = quoted.max_by(|a, b| {
        strsim::jaro_winkler(a, unknown).total_cmp(&strsim::jaro_winkler(b, unknown))
    });
    known
        .or(nearest)
        .map(|key| format!("; the nearest valid one is `{key}`"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Plan;

    #[test]
    fn a_column_that_is_no_table_is_told_what_to_be() {
        for (entry, says) in [
            ("age = [18.0, 99.0]", "age = { scale = [LOW, HIGH] }"),
            ("age = 3 # years", "age = { scale = [LOW, HIGH] }"),
            (
                "town = [\"a\", \"b\"]",
                "town = { levels = [\"a\", \"b\"] }",
            ),
        ] {
            let text = format!("[data]\nfile = \"a.csv\"\n[columns]\n{entry}\n");
            let error = Plan::parse(Path::new("run.toml"), text).err().unwrap();
            let said = error.to_string();
            assert!(said.contains("line 4") && said.ends_with(says), "{said}");
        }
        // Within braces the message is the reader's own.
        let text = "[columns]\nage = { scale = 3 }\n".to_string();
        let error = Plan::parse(Path::new("run.toml"), text).err().unwrap();
        assert!(error.to_string().contains("invalid type"), "{error}");
    }

    #[test]
    fn the_nearest_key_is_named() {
        let hint = nearest_hint("unknown field `stpe`, expected one of `clip`, `step`, `tau`");
        assert!(hint.contains("`step`"), "{hint}");
    }

    #[test]
    fn what_only_labels_have_is_sent_to_their_table() {
        for key in ["event", "trials"] {
            let text = format!("[data]\nfile = \"t.csv\"\n[columns]\ny = {{ {key} = 1 }}\n");
            let error = Plan::parse(Path::new("run.toml"), text).err().unwrap();
            let message = error.to_string();
            assert!(
                message.contains("line 4") && message.contains(key),
                "{message}"
            );
            assert!(message.contains("in [data.label]"), "{message}");
            assert!(!message.contains("nearest"), "{message}");
        }
    }

    #[test]
    fn other_names_are_known_where_they_fit() {
        let hint = |unknown: &str, expected: &str| {
            nearest_hint(&format!(
                "unknown variant `{unknown}`, expected one of {expected}"
            ))
        };
        let priors = "`flat`, `normal`, `laplace`";
        assert!(hint("gaussian", priors).contains("`normal`"));
        assert!(hint("Uniform", priors).contains("`flat`"));
        let samplers = "`mh`, `tuna-mh`, `dpvi`, `ops`, `dp-hmc`, `hmc`";
        assert!(hint("nuts", samplers).contains("`hmc`"));
        // A model is no prior.
        let models = "`logistic`, `gaussian-mean`, `mixture`";
        assert!(hint("gaussian", models).contains("`gaussian-mean`"));
    }

    #[test]
    fn a_comment_or_another_line_gives_no_hint() {
        let text = "a = [1 2] # or LOW\nb = [LOW, HIGH]\nc = \"#\" MAX";
        assert_eq!(line_hint(text, 1, "missing comma"), "");
        assert!(line_hint(text, 2, "").contains("replace LOW and HIGH"));
        assert!(line_hint(text, 3, "").contains("replace MAX"));
        assert_eq!(line_hint("a = \"\\\\LOWER\"", 1, "invalid type"), "");
        assert_eq!(line_hint("", 1, "missing field `data`"), "");
    }
}
