//! The promise of `[data.bounds]`: a run over rows with public bounds of their own reads the
//! wide ones more often, says what is public, and refuses a bad bound by file, line and column.

use crate::common::place::{Place, edit, number, table};

const BOUNDS: &str = "[data.bounds]\ncolumn = \"w\"\npublic = true\n";

const RUN: &str = r#"[data]
file = "people.csv"
row_norm = 2.0
[data.bounds]
column = "w"
public = true
[data.label]
column = "y"
[[data.features]]
columns = ["a", "b"]
clamp = [-2, 2]
[model]
kind = "logistic"
prior = { kind = "normal", sd = 3.0 }
[sampler]
algorithm = "poisson-barker"
step = 0.0005
[run]
iterations = 200
seed = 3
engine = "cpu"
[privacy]
epsilon = 5.0
delta = 1e-6
"#;

/// A table whose every hundredth row is wide, and its run file.
fn strata(rows: u32, run: &str) -> Place {
    let place = Place::new(run);
    let mut text = String::new();
    for (i, line) in table(rows).lines().enumerate() {
        text += line;
        text += match i {
            0 => ",w\n",
            _ if i.is_multiple_of(100) => ",1\n",
            _ => ",0.05\n",
        };
    }
    place.write("people.csv", &text);
    place
}

/// What `dpmc check` says, but for the memory that is free just then.
fn check(place: &Place, run: &str) -> String {
    let text = place.works(&format!("check {run}"));
    let lines = text.lines().filter(|l| !l.starts_with("memory"));
    lines.collect::<Vec<_>>().join("\n")
}

/// 1 % of rows are as long as B, 99 % a twentieth: at the same η a step reads Σw/N = 5.95 %
/// of the rows that it reads without bounds.
#[test]
fn heavy_tails_are_read_in_proportion_to_their_bounds() {
    let run = edit(RUN, "step = 0.0005", "step = 0.05");
    let place = strata(2000, &run);
    place.write("plain.toml", &edit(&run, BOUNDS, ""));
    let (bounded, plain) = (check(&place, "run.toml"), check(&place, "plain.toml"));
    let said = "0.0595 of the row norm on average, 1.0000 at most";
    assert!(bounded.contains(said), "{bounded}");
    let expects = |text: &str| -> f64 {
        let after = text.split("expects ").nth(1).unwrap();
        after.split(' ').next().unwrap().parse().unwrap()
    };
    let cost = |text: &str| text.split("costs rho ").nth(1).unwrap()[..9].to_string();
    assert_eq!(cost(&bounded), cost(&plain));
    let ratio = expects(&bounded) / expects(&plain);
    assert!((ratio / 0.0595 - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn a_run_says_that_its_bounds_are_public() {
    let place = strata(500, RUN);
    place.works("sample run.toml --out out --quiet");
    let certificate = place.certificate("out");
    let warnings = certificate["warnings"].to_string();
    assert!(
        warnings.contains("[data.bounds]") && warnings.contains("public"),
        "{warnings}"
    );
    assert!(number(&certificate, "delta") == 1e-6);
    let resolved = std::fs::read_to_string(place.path("out/run.toml")).unwrap();
    assert!(resolved.contains("[data.bounds]") && resolved.contains("column = \"w\""));
    // A resumed run reads them again.
    place.works("sample --resume out --iterations 300 --quiet");
    assert_eq!(place.draws("out").last(), 300);
}

/// An NPY file of bounds does what a column does.
#[test]
fn bounds_may_lie_in_a_file_of_their_own() {
    let place = strata(500, RUN);
    let file = "[data.bounds]\nfile = \"w.npy\"\npublic = true\n";
    place.write("file.toml", &edit(RUN, BOUNDS, file));
    let bound = |i: u32| if i.is_multiple_of(100) { 1.0 } else { 0.05 };
    let bounds: Vec<f64> = (1..=500).map(bound).collect();
    npy(&place, &bounds);
    assert_eq!(check(&place, "file.toml"), check(&place, "run.toml"));
    let longer = [&bounds[..], &[0.5]].concat();
    let mut wide = bounds.clone();
    wide[16] = 1.5;
    for (values, said) in [
        (&bounds[1..], "data.bounds.file holds only 499 bounds"),
        (&longer, "data.bounds.file: 501 bounds for 500 rows"),
        (
            &wide,
            "w.npy, line 17: a row's bound is a share of row_norm",
        ),
    ] {
        npy(&place, values);
        let message = place.refuses("check file.toml");
        assert!(message.contains(said), "{message}");
    }
}

fn npy(place: &Place, values: &[f64]) {
    let shape = format!("({},)", values.len());
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:117}\n").bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    std::fs::write(place.path("w.npy"), bytes).unwrap();
}

/// A cell of the third row, and what is said of it; other cells are never quoted.
#[test]
fn bad_bounds_are_named_by_line_and_column() {
    let place = strata(500, RUN);
    let good = std::fs::read_to_string(place.path("people.csv")).unwrap();
    let third = good.lines().nth(3).unwrap();
    let start = third.strip_suffix("0.05").unwrap();
    for (cell, said) in [
        ("0", "(0, 1]"),
        ("-0.25", "(0, 1]"),
        ("1.25", "(0, 1]"),
        ("NaN", "is missing"),
        ("inf", "NaN or infinity"),
        ("", "is missing"),
        ("wide", "does not hold a number"),
    ] {
        let bad = good.replace(third, &format!("{start}{cell}"));
        place.write("people.csv", &bad);
        let message = place.refuses("check run.toml");
        let place = "people.csv, line 4, column 'w'";
        assert!(message.contains(place), "{cell}: {message}");
        assert!(message.contains(said), "{cell}: {message}");
        let private = third.split(',').next().unwrap();
        assert!(!message.contains(private), "{cell}: {message}");
    }
}

/// What stands in the run file instead, and what is said.
#[test]
fn bad_declarations_are_named_by_key() {
    let place = strata(500, RUN);
    let column = "column = \"w\"";
    let kind = "kind = \"logistic\"";
    for (old, new, said) in [
        (
            "public = true\n",
            "",
            "run.toml, line 4: data.bounds.public: ",
        ),
        (
            "public = true",
            "public = false",
            "run.toml, line 6: data.bounds.public: ",
        ),
        (column, "column = \"v\"", "columns is called 'v'"),
        (
            column,
            "column = \"a\"",
            "run.toml, line 5: data.bounds.column: column 'a'",
        ),
        (
            column,
            "column = \"y\"",
            "run.toml, line 5: data.bounds.column: column 'y'",
        ),
        ("column = \"w\"\n", "", "give the 'column'"),
        (column, "column = \"w\"\nfile = \"w.npy\"", "one of the two"),
        (column, "colum = \"w\"", "the nearest valid one is `column`"),
        (
            kind,
            "kind = \"mlp\"\nhidden = 3",
            "data.bounds: in model 'mlp'",
        ),
        (
            "\"poisson-barker\"\nstep = 0.0005",
            "\"anchored-barker\"",
            "data.bounds: an anchored sampler",
        ),
    ] {
        place.write("run.toml", &edit(RUN, old, new));
        let message = place.refuses("sample run.toml --out out");
        assert!(message.contains(said), "{new}: {message}");
        assert!(!place.path("out").exists());
    }
}

/// Samplers on all rows run over shortened rows and read them as ever.
#[test]
fn other_samplers_take_bounded_rows_as_they_are() {
    let place = strata(500, &edit(RUN, "poisson-barker", "barker"));
    let message = check(&place, "run.toml");
    assert!(message.contains("bounds     public"), "{message}");
    assert!(!message.contains("minibatch"), "{message}");
    place.works("sample run.toml --out out --quiet");
}
