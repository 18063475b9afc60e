//! `docs/reference/run_file.md` lists keys as the code has them.

use std::fmt::Write;
use std::path::Path;

use super::schema::{Key, SECTIONS, SamplerSection};
use crate::sampler::{Algorithm, Family};

/// Set, the test writes the page anew instead of comparing.
const WRITE: &str = "DPMC_WRITE_REFERENCE";
const WIDTH: usize = 100;

/// The names of the samplers that take a key of `[sampler]`.
fn takers(key: &Key) -> String {
    let takes = |a: &Algorithm| a.family().takes(key.name);
    let decides = |a: &Algorithm| matches!(a.family(), Family::Decisions(_));
    if Algorithm::ALL.iter().all(|a| takes(a) == decides(a)) {
        return "decides".into();
    }
    let names = Algorithm::ALL.iter().filter(|a| takes(a));
    let names: Vec<String> = names.map(|a| format!("`{}`", a.name())).collect();
    names.join(", ")
}

/// One key as an item of a list, wrapped.
fn item(key: &Key, of_samplers: bool) -> String {
    let samplers = match of_samplers && key.is_particular() {
        true => format!("; samplers: {}", takers(key)),
        false => String::new(),
    };
    let values = match key.name {
        "algorithm" => Algorithm::ALL.map(|a| format!("`{}`", a.name())).join(", "),
        _ => key.values.to_string(),
    };
    let text = format!(
        "* `{}` ({values}{samplers}): {}",
        key.name,
        key.meaning.trim()
    );
    let mut item = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            item += "\n ";
            column = 1;
        }
        if column > 0 {
            item.push(' ');
            column += 1;
        }
        item += word;
        column += length;
    }
    item
}

/// The page with the lists between its markers made anew.
fn renewed(page: &str) -> String {
    let mut page = page.to_string();
    for (section, keys) in SECTIONS {
        let (begin, end) = (
            format!("<!-- keys of [{section}], from the code -->\n"),
            format!("<!-- end of [{section}] -->"),
        );
        let (before, rest) = page.split_once(&begin).unwrap();
        let (_, after) = rest.split_once(&end).unwrap();
        let mut list = String::new();
        for key in keys {
            let _ = writeln!(list, "{}", item(key, section == "sampler"));
        }
        page = format!("{before}{begin}\n{list}\n{end}{after}");
    }
    page
}

#[test]
fn the_reference_lists_the_keys_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/run_file.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let renewed = renewed(&page);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(path, renewed).unwrap();
        return;
    }
    assert!(
        page == renewed,
        "docs/reference/run_file.md is not current: {WRITE}=1 cargo test -p dpmc --lib reference"
    );
}

/// Whose a particular key is follows from the samplers themselves: somebody's, and not
/// everybody's.
#[test]
fn particular_keys_are_of_some_samplers() {
    for key in SamplerSection::KEYS
        .iter()
        .filter(|key| key.is_particular())
    {
        let takes = Algorithm::ALL.iter().filter(|a| a.family().takes(key.name));
        assert!(
            (1..Algorithm::ALL.len()).contains(&takes.count()),
            "{key:?}"
        );
    }
}
