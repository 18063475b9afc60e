//! What to do about a run file that the TOML reader cannot take.

use toml::de::DeTable;

use super::error::line_of;
use super::schema::{Key, SECTIONS};

/// Names that other software, or another part of a run file, has for what is called otherwise.
const OTHER_NAMES: [(&str, &str); 56] = [
    ("gaussian", "normal"),
    ("gauss", "normal"),
    ("ridge", "normal"),
    ("lasso", "laplace"),
    ("double-exponential", "laplace"),
    ("cauchy", "student-t"),
    ("t", "student-t"),
    ("student", "student-t"),
    ("uniform", "flat"),
    ("improper", "flat"),
    ("bernoulli", "logistic"),
    ("logit", "logistic"),
    ("binary", "logistic"),
    ("ols", "gaussian"),
    ("lm", "gaussian"),
    ("normal", "gaussian"),
    ("lognormal", "log-normal"),
    ("negbin", "negative-binomial"),
    ("negbinomial", "negative-binomial"),
    ("nb", "negative-binomial"),
    ("zip", "zero-inflated-poisson"),
    ("zinb", "zero-inflated-negative-binomial"),
    ("ordered", "ordinal"),
    ("cumulative", "ordinal"),
    ("polr", "ordinal"),
    ("nuts", "hmc"),
    ("stan", "hmc"),
    ("metropolis", "mh"),
    ("metropolis-hastings", "mh"),
    ("random-walk", "mh"),
    ("langevin", "sgld"),
    ("path", "file"),
    ("csv", "file"),
    ("table", "file"),
    ("sep", "delimiter"),
    ("separator", "delimiter"),
    ("eps", "epsilon"),
    ("range", "scale"),
    ("bounds", "scale"),
    ("limits", "scale"),
    ("min", "scale"),
    ("max", "scale"),
    ("lower", "scale"),
    ("upper", "scale"),
    ("categories", "levels"),
    ("values", "levels"),
    ("baseline", "reference"),
    ("sigma", "sd"),
    ("stddev", "sd"),
    ("mu", "mean"),
    ("df", "degrees"),
    ("nu", "degrees"),
    ("family", "kind"),
    ("kind", "algorithm"),
    ("burnin", "warmup"),
    ("samples", "iterations"),
];

/// Names this alike, by Jaro and Winkler, may be meant.
const ALIKE: f64 = 0.75;

/// What a message of the TOML reader at an offset of the text says to whoever wrote it.
pub(super) fn explained(text: &str, offset: usize, message: &str) -> String {
    let line = line_of(text, offset);
    if let Some(what) = undeclared(text, line, message) {
        return what;
    }
    let hint = line_hint(text, line, message);
    if !hint.is_empty() {
        return format!("{message}{hint}");
    }
    if message.starts_with("unknown ") {
        return unknown(message);
    }
    let what = another_type(text, offset, message).or_else(|| match message {
        "duplicate key" => Some(format!(
            "{} is there twice; a key and a section have one place each",
            word_at(text, offset)
        )),
        _ if DeTable::parse(text).is_err() => unreadable(text, offset, message),
        _ => None,
    });
    what.unwrap_or_else(|| message.to_string())
}

/// Of a line that is no TOML, what most likely it was to be.
fn unreadable(text: &str, offset: usize, message: &str) -> Option<String> {
    let line = text.lines().nth(line_of(text, offset) - 1)?;
    let code = without_comment(line);
    if code.contains(['“', '”', '„', '‘', '’', '«', '»']) {
        return Some("quotes are straight ones in a run file: \"text\"".into());
    }
    let (name, value) = match code.split_once('=') {
        Some((name, value)) => (name.trim(), value.trim()),
        None if code.contains(':') => return Some("a key and its value are joined by =".into()),
        None => return None,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let of_name = message.contains("unquoted key") || message.starts_with("key with no value");
    if of_name && !name.is_empty() && !name.contains(['"', '\'']) && !name.chars().all(plain) {
        return Some(format!(
            "a name that is not of letters a to z, digits, - and _ alone stands in quotes: \"{name}\" = …"
        ));
    }
    if message.contains("basic string") || message.contains("literal string, expected `'`") {
        return Some("a text begins and ends with a quote, in one line".into());
    }
    let word = word_at(text, offset);
    let is_number = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let of_two = |by: char| {
        word.split_once(by)
            .filter(|(a, b)| is_number(a) && is_number(b))
    };
    if let Some((low, high)) = of_two(':').or(of_two('-')) {
        return Some(format!("bounds are a list: [{low}, {high}]"));
    }
    if of_two('/').is_some() {
        return Some("a fraction is written as a number, such as 1e-5".into());
    }
    if value
        .split_once(',')
        .is_some_and(|(a, b)| is_number(a) && is_number(b))
    {
        return Some("decimals have a point, such as 1.5".into());
    }
    if is_number(word) && message.contains("leading zero") {
        return Some("a number has no separators of thousands: 1000".into());
    }
    if is_number(word) {
        return Some("the values of a list are separated by commas, such as [0, 100]".into());
    }
    if ["True", "False", "TRUE", "FALSE"].contains(&word) {
        return Some("true and false are written small".into());
    }
    if !word.starts_with(|c: char| c.is_alphabetic()) {
        return None;
    }
    let whole = match value.contains(['[', ']', '{', '}', '"', '\'']) {
        true => format!("\"{word}\""),
        false => format!("{name} = \"{value}\""),
    };
    Some(format!("a text stands in quotes: {whole}"))
}

/// What stands around an offset, up to blanks and what separates values.
fn word_at(text: &str, offset: usize) -> &str {
    let ends = |c: char| c.is_whitespace() || "=,[]{}#".contains(c);
    let (before, after) = match text.split_at_checked(offset) {
        Some(parts) => parts,
        None => return "",
    };
    let start = before.rfind(ends).map_or(0, |i| {
        i + before[i..].chars().next().map_or(1, char::len_utf8)
    });
    let end = offset + after.find(ends).unwrap_or(after.len());
    &text[start..end]
}

/// Whether a line begins a section.
fn is_header(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']') && !line.contains('=')
}

/// The section that holds an offset, without brackets.
fn section_at(text: &str, offset: usize) -> &str {
    let before = text.get(..offset).unwrap_or("");
    let mut headers = before.lines().map(|l| without_comment(l).trim());
    let last = headers.rfind(|l| is_header(l)).unwrap_or("");
    last.trim_matches(['[', ']']).trim()
}

/// The key whose value stands at an offset.
fn key_at(text: &str, offset: usize) -> &str {
    let before = text.get(..offset).unwrap_or("");
    let (names, _) = before.rsplit_once('=').unwrap_or(("", ""));
    let names = names.trim_end();
    let start = names
        .rfind([' ', '\t', '\n', '{', ','])
        .map_or(0, |i| i + 1);
    &names[start..]
}

/// `invalid type: string "1", expected f64` in words, with what the key takes.
fn another_type(text: &str, offset: usize, message: &str) -> Option<String> {
    let (found, wanted) = message
        .strip_prefix("invalid type: ")?
        .split_once(", expected ")?;
    let key = key_at(text, offset);
    let section = section_at(text, offset);
    let keys = SECTIONS.iter().find(|(name, _)| *name == section);
    let known = keys.and_then(|(_, keys)| keys.iter().find(|k| k.name == key));
    // (Behind the first semicolon stand its default and its place in the draws.)
    let takes = known.map(|k| k.values.split(';').next().unwrap_or(k.values));
    let wanted = match (wanted, takes) {
        ("a sequence", Some(takes)) => format!("a list is needed here, {takes},"),
        ("a sequence", None) => "a list in brackets is needed here,".into(),
        (w, Some(takes)) if w.starts_with("struct ") => {
            format!("a table in braces is needed here, {takes},")
        }
        (w, None) if w.starts_with("struct ") || w == "a map" => {
            "a table in braces is needed here,".into()
        }
        ("f64" | "f32", _) => "a number is needed here,".into(),
        ("a string", _) => "a text in quotes is needed here,".into(),
        ("a boolean", _) => "true or false is needed here,".into(),
        (w, _)
            if w.strip_prefix(['u', 'i'])
                .is_some_and(|w| w == "size" || w.parse::<u8>().is_ok()) =>
        {
            "a whole number is needed here,".into()
        }
        _ => return None,
    };
    let of_number = found
        .strip_prefix("integer ")
        .or(found.strip_prefix("floating point "));
    let quoted = found.strip_prefix("string ");
    let found = match (of_number, quoted, found) {
        (Some(number), ..) => format!("the number {}", number.trim_matches('`')),
        (_, Some(text), _) => format!("the text {text}"),
        (.., "sequence") => "a list".into(),
        (.., "map") => "a table".into(),
        _ => found.to_string(),
    };
    let is_number = wanted.contains("number is needed");
    let advice = match quoted.is_some() && is_number {
        true => "; numbers have no quotes",
        false => "",
    };
    let prefix = if key.is_empty() {
        String::new()
    } else {
        format!("{key}: ")
    };
    Some(format!("{prefix}{wanted} and there is {found}{advice}"))
}

/// `unknown field `stpe`, expected one of `step`, …` with what was meant.
fn unknown(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next() else {
        return message.to_string();
    };
    // What only labels have, among the keys of columns.
    if ["event", "trials"].contains(&unknown) && message.contains("`clamp`") {
        return format!(
            "{message}; '{unknown}' is of labels alone: declare the label in [data.label], with its column and {unknown}, instead of here"
        );
    }
    let alike = |a: &str| a.to_lowercase().replace(['_', ' '], "-");
    let expected: Vec<&str> = quoted.collect();
    let other = OTHER_NAMES
        .iter()
        .filter(|(name, _)| *name == alike(unknown));
    let other = other
        .filter_map(|(_, ours)| expected.iter().find(|e| *e == ours))
        .next();
    let same = || expected.iter().find(|e| alike(e) == alike(unknown));
    // (Where there is one alone, that is it.)
    let only = || expected.first().filter(|_| expected.len() == 1);
    if let Some(meant) = other.or_else(same).or_else(only) {
        return format!("{message}; the nearest valid one is `{meant}`");
    }
    if message.starts_with("unknown field")
        && let Some(place) = elsewhere(unknown)
    {
        return format!("unknown field `{unknown}`: {place}");
    }
    let likeness = |e: &&&str| strsim::jaro_winkler(&alike(e), &alike(unknown));
    let nearest = expected
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest.filter(|e| likeness(e) >= ALIKE) {
        Some(meant) => format!("{message}; the nearest valid one is `{meant}`"),
        None => message.to_string(),
    }
}

/// Where a key belongs that is none here.
fn elsewhere(key: &str) -> Option<String> {
    // (All but one have keys of a list.)
    if key == "test" || !key.contains('.') && SECTIONS.iter().any(|(name, _)| *name == key) {
        return Some(format!("it is a section of its own, [{key}]"));
    }
    let has = |(_, keys): &&(&str, &[Key])| keys.iter().any(|k| k.name == key);
    let sections = SECTIONS.iter().filter(has);
    let sections: Vec<String> = sections.map(|(name, _)| format!("[{name}]")).collect();
    let (last, others) = sections.split_last()?;
    Some(match others {
        [] => format!("it belongs in {last}"),
        _ => format!("it belongs in {} or {last}", others.join(", ")),
    })
}

/// What to write for an entry of `[columns]` that is no table, such as `age = [18, 99]`.
fn undeclared(text: &str, line: usize, message: &str) -> Option<String> {
    let before = text.lines().take(line).map(|l| without_comment(l).trim());
    let before: Vec<&str> = before.collect();
    let entry = before.last()?;
    let section = before.iter().rfind(|l| is_header(l))?;
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
        assert!(
            error.to_string().contains("a list is needed here"),
            "{error}"
        );
    }

    #[test]
    fn what_was_meant_is_said() {
        const TEXT: &str = "[data]
file = \"t.csv\"
[columns]
age = { scale = [0, 100] }
sex = { levels = [\"f\", \"m\"] }
[model]
kind = \"logistic\"
formula = \"y ~ age\"
prior = { kind = \"normal\", sd = 5 }
[sampler]
algorithm = \"mh\"
[run]
seed = 1
[privacy]
epsilon = 1
";
        assert!(Plan::parse(Path::new("run.toml"), TEXT.into()).is_ok());
        for (line, from, to, says) in [
            (5, "\"f\", \"m\"", "f, m", "a text stands in quotes: \"f\""),
            (5, "\"f\"", "“f”", "quotes are straight ones"),
            (5, "\"f\"", "0.5", "decimals may not"),
            (4, "[0, 100]", "0:100", "bounds are a list: [0, 100]"),
            (4, "[0, 100]", "0-100", "bounds are a list: [0, 100]"),
            (4, "[0, 100]", "[0 100]", "separated by commas"),
            (4, "[0, 100]", "[0, 1,000]", "no separators of thousands"),
            (
                4,
                "[0, 100]",
                "100",
                "scale: a list is needed here, `[LOW, HIGH]`, and there is the number 100",
            ),
            (4, "scale", "range", "nearest valid one is `scale`"),
            (4, "age =", "age group =", "\"age group\" = …"),
            (4, "age =", "größe =", "\"größe\" = …"),
            (
                7,
                "logistic",
                "bernoulli",
                "nearest valid one is `logistic`",
            ),
            (7, "logistic", "Logistic", "nearest valid one is `logistic`"),
            (7, "logistic", "cox", "`declared`"),
            (8, "\"y ~ age\"", "y ~ age", "formula = \"y ~ age\""),
            (8, "\"y ~ age\"", "\"y ~ age", "ends with a quote"),
            (
                9,
                "{ kind = \"normal\", sd = 5 }",
                "\"normal\"",
                "the text \"normal\"",
            ),
            (
                10,
                "[sampler]",
                "[sampler]\nkind = 1",
                "nearest valid one is `algorithm`",
            ),
            (
                10,
                "[sampler]",
                "[sampling]",
                "nearest valid one is `sampler`",
            ),
            (10, "[sampler]", "[columns]", "columns is there twice"),
            (
                2,
                "file",
                "formula",
                "unknown field `formula`: it belongs in [model]",
            ),
            (
                2,
                "file = \"t.csv\"",
                "columns = 1",
                "a section of its own, [columns]",
            ),
            (2, "file", "sep", "nearest valid one is `delimiter`"),
            (
                13,
                "seed = 1",
                "seed = 1.5",
                "seed: a whole number is needed here, and there is the number 1.5",
            ),
            (13, "seed = 1", "seed: 1", "joined by ="),
            (
                15,
                "epsilon = 1",
                "epsilon = \"1\"",
                "the text \"1\"; numbers have no quotes",
            ),
            (15, "epsilon = 1", "epsilon = 1,5", "decimals have a point"),
            (
                9,
                "sd = 5",
                "sd = true",
                ": expected a number or a list of numbers",
            ),
            (2, "\"t.csv\"", "3", "a path in quotes"),
            (15, "epsilon = 1", "epsilon = 1/5", "such as 1e-5"),
            (
                2,
                "file",
                "column",
                "it belongs in [data.label], [data.offset], [data.weights] or [data.features]",
            ),
            (
                15,
                "epsilon = 1",
                "chains = 4",
                "unknown field `chains`: it belongs in [run]",
            ),
        ] {
            let text = TEXT.replacen(from, to, 1);
            let error = Plan::parse(Path::new("run.toml"), text).err().unwrap();
            let said = error.to_string();
            let line = line + to.matches('\n').count();
            assert!(said.contains(&format!("line {line}: ")), "{to}: {said}");
            assert!(said.contains(says), "{to}: {said}");
        }
        // No word of a text that nothing is like.
        let said = unknown("unknown variant `glm`, expected one of `logistic`, `mixture`");
        assert!(!said.contains("nearest"), "{said}");
    }

    #[test]
    fn offsets_may_be_anywhere() {
        let text = "ä = ö, [“\n= #=";
        for offset in 0..text.len() + 3 {
            for message in [
                "duplicate key",
                "invalid type: map, expected f64",
                "x, expected y",
            ] {
                let _ = explained(text, offset, message);
            }
        }
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
            let message = format!("unknown variant `{unknown}`, expected one of {expected}");
            super::unknown(&message)
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
