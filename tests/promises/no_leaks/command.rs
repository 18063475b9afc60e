//! What the command leaves on two tables that differ in one row. Its secret coins are never
//! seeded, so what is compared is what coins do not decide: names, counts, costs, words.

use std::collections::BTreeSet;

use serde_json::Value;

use super::files;
use crate::common::place::{Draws, Place, RUN, edit, table};

/// The same table with another last row.
fn other() -> String {
    let text = table(500);
    let end = text.trim_end().rfind('\n').unwrap();
    format!("{}\n-1.0000,1.0000,1\n", &text[..end])
}

const SAMPLERS: [(&str, bool); 6] = [
    ("algorithm = \"barker\"\nstep = 0.001", true),
    ("algorithm = \"poisson-barker\"\nstep = 0.001", true),
    (
        "algorithm = \"dp-penalty\"\ntau = 3000.0\nstep = 0.001",
        true,
    ),
    (
        "algorithm = \"dp-hmc\"\nstep = 0.01\nleapfrog_steps = 2\ntau = 3000.0\ngradient = { tau = 3000.0 }",
        true,
    ),
    ("algorithm = \"dp-sgld\"\nstep = 1e-6", true),
    // What its steps cost follows released values.
    ("algorithm = \"anchored-barker\"", false),
];

/// A place for each of the two tables, where the same run was made; what it said. Draws fill a
/// part file and begin a second.
fn both(sampler: &str, flags: &str) -> [(Place, String); 2] {
    let run = edit(RUN, "algorithm = \"barker\"\nstep = 0.0001", sampler);
    let run = edit(
        &run,
        "iterations = 300",
        "iterations = 1100\nchains = 64\nseed = 3",
    );
    [table(500), other()].map(|rows| {
        let place = Place::new(&run);
        place.write("people.csv", &rows);
        let mut command = place.command(&format!("sample run.toml --out out {flags}"));
        command.env("DPMC_RECORDS", place.path("records"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{sampler}: {output:?}");
        // Nobody sits at a terminal.
        assert!(output.stderr.is_empty(), "{sampler}: {output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        (place, said)
    })
}

/// Every key of a file, however deep.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            found.insert(key.clone());
            keys(item, found);
        }),
        _ => {}
    }
}

pub fn keys_of(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    keys(value, &mut found);
    found
}

/// Words alone: numbers and the space that they need become `#`.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || "()[],=:".contains(c));
    let number = |word: &&str| word.trim_end_matches('%').parse::<f64>().is_ok();
    let kept = words.filter(|word| !word.is_empty() && !number(word));
    kept.map(String::from).collect()
}

/// Files by name; a record is named after its ledger, which is drawn, in the table's folder.
fn names(place: &Place) -> Vec<String> {
    let found = files(&place.path("out")).into_iter().map(|(name, _)| name);
    let records = files(&place.path("records"));
    found
        .chain(records.iter().map(|_| "a record".into()))
        .collect()
}

fn record(place: &Place) -> Value {
    let records = files(&place.path("records"));
    serde_json::from_slice(&records[0].1).unwrap()
}

/// What costs were, in units, record by record of the ledger.
fn units(place: &Place) -> Vec<String> {
    let ledger = place.json("out/ledger.json");
    let records = ledger.as_array().unwrap().iter().skip(1);
    records
        .map(|record| record["spent_units"].to_string())
        .collect()
}

/// Rows of each part, and the iterations in it.
fn boundaries(place: &Place) -> Vec<(usize, i64)> {
    let parts = place.parts("out");
    let read = parts
        .iter()
        .map(|part| Draws::read(std::slice::from_ref(part)));
    read.map(|draws| (draws.rows.len(), draws.last())).collect()
}

pub fn names_counts_and_costs_follow_public_numbers() {
    for (sampler, fixed) in SAMPLERS {
        let [(one, first), (two, second)] = both(sampler, "");
        assert_eq!(names(&one), names(&two), "{sampler}");
        assert_eq!(boundaries(&one), boundaries(&two), "{sampler}");
        for file in ["out/certificate.json", "out/state.json", "out/ledger.json"] {
            let [a, b] = [&one, &two].map(|place| keys_of(&place.json(file)));
            assert_eq!(a, b, "{sampler}: {file}");
        }
        assert_eq!(keys_of(&record(&one)), keys_of(&record(&two)), "{sampler}");
        // The run file, but for where it lies.
        let [a, b] = [&one, &two].map(|place| {
            let text = std::fs::read_to_string(place.path("out/run.toml")).unwrap();
            text.replace(&place.path("").display().to_string(), "")
        });
        assert_eq!(a, b, "{sampler}");
        if fixed {
            assert_eq!(one.certificate("out"), two.certificate("out"), "{sampler}");
            assert_eq!(units(&one), units(&two), "{sampler}");
        }
        // Notes speak of draws; all else is the same words.
        let [first, second] = [first, second].map(|said| {
            let lines = said.lines().filter(|line| !line.starts_with("note:"));
            words(&lines.collect::<Vec<_>>().join("\n"))
        });
        assert_eq!(first, second, "{sampler}");
    }
}

/// Standard output is the summary, which the directory alone tells, and two lines of paths.
pub fn standard_output_is_the_summary() {
    let [(place, said), _] = both(SAMPLERS[0].0, "");
    std::fs::remove_file(place.path("people.csv")).unwrap();
    let summary = place.works("summary out");
    let expected = format!("new ledger: the run's own\n{summary}draws and certificate: out\n");
    assert_eq!(said, expected);
}

/// What reads a run directory does not read the table: without it, it says the same.
pub fn readers_of_a_run_need_no_table() {
    let [(place, _), _] = both(SAMPLERS[5].0, "--quiet");
    let say = || {
        let plot = place.works("summary out --plot p.svg");
        let svg = std::fs::read(place.path("p.svg")).unwrap();
        let json = place.works("summary out --json");
        let account = place.works("account out/certificate.json --delta 1e-6");
        (plot, svg, json, account)
    };
    let before = say();
    std::fs::remove_file(place.path("people.csv")).unwrap();
    assert_eq!(before, say());
    // The others take no table at all.
    for command in ["account", "calibrate", "audit", "bench", "devices"] {
        let message = place.refuses(&format!("{command} --data people.csv"));
        assert!(message.contains("--data"), "{command}: {message}");
    }
}

/// `check` and `init` on neighbours: the same bytes, but for the machine's free memory.
pub fn check_and_init_say_the_same() {
    let [one, two] = [table(500), other()].map(|rows| {
        let place = Place::new(RUN);
        place.write("people.csv", &rows);
        let mut check: Value = serde_json::from_str(&place.works("check run.toml --json")).unwrap();
        check["memory"]["available_bytes"].take();
        let init = place.works("init people.csv");
        (
            check,
            init.replace(&place.path("").display().to_string(), ""),
        )
    });
    assert_eq!(one, two);
}

/// Nothing is written outside of the run's directory and the records; what locks is empty, and
/// nothing that is half-written stays.
pub fn nothing_is_written_elsewhere() {
    let place = Place::new(RUN);
    let mut command = place.command("sample run.toml --out out --quiet");
    command
        .env_remove("DPMC_RECORDS")
        .env("HOME", place.path("home"));
    for variable in [
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
    ] {
        command.env(variable, place.path("home").join(variable));
    }
    command.env("TMPDIR", place.path("tmp"));
    for folder in ["home", "tmp"] {
        std::fs::create_dir(place.path(folder)).unwrap();
    }
    assert!(command.output().unwrap().status.success());
    let found = files(&place.path(""));
    let known = |name: &str| {
        let ours = [
            "people.csv",
            "run.toml",
            "out/run.toml",
            "out/certificate.json",
        ]
        .contains(&name)
            || ["out/state.json", "out/ledger.json"].contains(&name)
            || name == "out/draws.parquet/part-000000.parquet";
        let record = name.contains("/dpmc/records/") && name.ends_with(".json");
        ours || record
    };
    for (name, bytes) in &found {
        assert!(
            known(name) || name == "out/run.lock" && bytes.is_empty(),
            "{name}"
        );
    }
    assert_eq!(
        found
            .iter()
            .filter(|(name, _)| name.contains("records"))
            .count(),
        1
    );
}

/// The keys that `docs` lists for certificate, state, and ledger or record.
pub fn listed(docs: &str) -> [BTreeSet<String>; 3] {
    [
        "certificate.json`",
        "state.json`",
        "ledger.json` and a record",
    ]
    .map(|name| {
        let line = format!("* `{name}: ");
        let (_, list) = docs
            .split_once(&line)
            .unwrap_or_else(|| panic!("no list '{line}'"));
        let ends = ["\n* ", "\n\n"].map(|end| list.find(end).unwrap());
        // Every other piece between backquotes is a name.
        let names = list[..ends[0].min(ends[1])].split('`').skip(1).step_by(2);
        names.map(String::from).collect()
    })
}

/// Every key of the file is listed. `context`: whose file.
pub fn assert_listed(file: &Value, listed: &BTreeSet<String>, context: &str) {
    let missing: Vec<_> = keys_of(file).difference(listed).cloned().collect();
    assert!(missing.is_empty(), "{context}: in no list: {missing:?}");
}

/// Every key that is written is in the lists of `docs`, each of which says what pays for it. (Of
/// other samplers: with the families.)
pub fn every_field_is_listed(docs: &str) {
    let [certificate, state, ledger] = listed(docs);
    for sampler in [SAMPLERS[0].0, SAMPLERS[5].0] {
        let [(place, _), _] = both(sampler, "--quiet --iterations 50");
        assert_listed(&place.certificate("out"), &certificate, sampler);
        assert_listed(&place.json("out/state.json"), &state, sampler);
        assert_listed(&place.json("out/ledger.json"), &ledger, sampler);
        assert_listed(&record(&place), &ledger, sampler);
    }
}

/// The names in the paragraph of `docs` on keys that few runs write.
fn rarer(docs: &str) -> BTreeSet<String> {
    let (_, text) = docs
        .split_once("Some runs write a few keys more")
        .expect("no paragraph on keys of some runs");
    let text = &text[..text.find("\n\n").unwrap()];
    let names = text.split('`').skip(1).step_by(2);
    names.map(String::from).collect()
}

/// Parts of the run file that are put in place of others, so that a run writes keys which none of
/// the families does.
const RARER: [&[(&str, &str)]; 6] = [
    &[
        (SAMPLER, "algorithm = \"dp-laplace\""),
        (
            "file = \"people.csv\"",
            "file = \"people.csv\"\nunit = \"who\"\nrows_per_unit = 2",
        ),
    ],
    &[
        (SAMPLER, "algorithm = \"dp-laplace\""),
        (
            "kind = \"normal\", sd = 3.0",
            "kind = \"student-t\", degrees = 4, scale = 2.0",
        ),
    ],
    &[(
        SAMPLER,
        "algorithm = \"anchored-barker\"\nanchor = { decisions = 0.2, refresh = 0.1 }",
    )],
    // (What warm-up learns of a covariance may be nothing, by chance.)
    &[(
        SAMPLER,
        "algorithm = \"barker\"\nstep = 0.01\ncovariance = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]",
    )],
    &[(
        SAMPLER,
        "algorithm = \"barker-hmc\"\ncovariance = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]",
    )],
    &[(SAMPLER, "algorithm = \"barker-hmc\"\nscale = [1, 2, 1]")],
];
const SAMPLER: &str = "algorithm = \"barker\"\nstep = 0.0001";

/// Their keys are listed too, and no others are said to be theirs.
pub fn every_field_of_rarer_runs_is_listed(docs: &str) {
    let rarer = rarer(docs);
    let lists = listed(docs).map(|list| &list | &rarer);
    let mut written = BTreeSet::new();
    // With budget enough for a whole warm-up, and for a refresh near the first anchor.
    let length = ("iterations = 300", "iterations = 300\nwarmup = 200");
    let budget = ("epsilon = 5.0", "epsilon = 50.0");
    let rows = table(500)
        .lines()
        .enumerate()
        .fold(String::new(), |all, (i, row)| {
            let who = if i == 0 {
                "who".into()
            } else {
                format!("p{}", i / 2)
            };
            all + &format!("{row},{who}\n")
        });
    for edits in RARER {
        let edits = edits.iter().chain([&length, &budget]);
        let run = edits.fold(RUN.to_string(), |run, (from, to)| edit(&run, from, to));
        let place = Place::new(&run);
        place.write("people.csv", &rows);
        let mut command = place.command("sample run.toml --out out --quiet");
        command.env("DPMC_RECORDS", place.path("records"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{run}: {output:?}");
        let [certificate, state, ledger] = &lists;
        for (file, list) in [
            (place.certificate("out"), certificate),
            (place.json("out/state.json"), state),
            (place.json("out/ledger.json"), ledger),
            (record(&place), ledger),
        ] {
            assert_listed(&file, list, &run);
            written.extend(keys_of(&file));
        }
    }
    let unwritten: Vec<_> = rarer.difference(&written).collect();
    assert!(unwritten.is_empty(), "{unwritten:?}");
}
