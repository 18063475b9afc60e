//! The promise: transforms, curves, merged levels and products of declared features run from a
//! run file to a summary, held-out table included, and `check` notes what coefficients pay for.

use crate::common::place::{Place, edit};

const RUN: &str = r#"[data]
file = "staff.csv"
[data.label]
column = "left"
positive = ["yes"]
negative = ["no"]
[[data.features]]
intercept = true
[[data.features]]
column = "pay"
scale = [1000, 100000]
transform = "log"
[[data.features]]
column = "age"
scale = [18, 68]
spline = { knots = [30, 45] }
[[data.features]]
column = "score"
clamp = [0, 100]
standardize = { mean = 50, sd = 20 }
missing = 50
[[data.features]]
column = "town"
one_hot = ["north", "south"]
groups = { islands = ["isle", "skerry"] }
reference = "north"
[[data.interactions]]
features = ["pay", "town"]
[[data.interactions]]
features = ["town=islands", "age"]
[test]
file = "held.csv"
public = true
[model]
kind = "logistic"
tempering = 1.0
prior = { kind = "normal", sd = 2.0 }
[sampler]
algorithm = "barker"
step = 0.0001
[run]
iterations = 200
engine = "cpu"
[privacy]
epsilon = 5.0
delta = 1e-6
"#;

const NAMES: &str = "intercept log(pay) age~s1 age~s2 age~s3 score town=south town=islands \
    town=other log(pay):town=south log(pay):town=islands log(pay):town=other \
    town=islands:age~s1 town=islands:age~s2 town=islands:age~s3";

/// Made-up staff.
fn staff(rows: u32) -> String {
    let mut text = String::from("pay,age,score,town,left\n");
    for i in 0..rows {
        let town = ["north", "south", "isle", "skerry", "abroad"][(i * 7 % 5) as usize];
        let score = match i % 11 {
            0 => String::new(),
            k => (k * 10).to_string(),
        };
        let left = if i * 31 % 100 < 40 { "yes" } else { "no" };
        let (pay, age) = (800 + i * 977 % 120_000, 17 + i * 13 % 60);
        text += &format!("{pay},{age},{score},{town},{left}\n");
    }
    text
}

fn place(run: &str) -> Place {
    let place = Place::new(run);
    place.write("staff.csv", &staff(600));
    place.write("held.csv", &staff(100));
    place
}

#[test]
fn a_run_file_with_every_kind_of_feature_runs() {
    let place = place(RUN);
    let text = place.works("check run.toml");
    // 1 + 1 + 1 + 2.5² + 1 and the products, 1 and 1.
    assert!(
        text.contains("600 rows (public), 15 features, row norm ≤ 3.5000"),
        "{text}"
    );
    assert!(!text.contains("note: "), "{text}");
    place.works("sample run.toml --out out --quiet");
    let draws = place.draws("out");
    let names: Vec<&str> = NAMES.split_whitespace().collect();
    assert_eq!(draws.columns[2..], names);
    let summary = place.works("summary out");
    for name in names {
        assert!(summary.contains(name), "no {name} in {summary}");
    }
    assert!(summary.contains("accuracy"), "{summary}");
    // The resolved run file says the same again.
    std::fs::copy(place.path("out/run.toml"), place.path("again.toml")).unwrap();
    let again = place.works("check again.toml");
    assert!(again.contains("15 features, row norm ≤ 3.5000"), "{again}");
}

#[test]
fn cells_that_no_declaration_takes_are_named_and_not_shown() {
    let place = place(RUN);
    for (column, bad) in [
        ("pay", "s3cret,30,50,north,no"),
        ("age", "2000,,50,north,no"),
    ] {
        let table = staff(600);
        let third = table.lines().nth(2).unwrap();
        place.write("staff.csv", &edit(&table, third, bad));
        let message = place.refuses("check run.toml");
        let at = format!("staff.csv, line 3, column '{column}'");
        assert!(
            message.contains(&at) && !message.contains("s3cret"),
            "{message}"
        );
    }
}

#[test]
fn declarations_that_coefficients_pay_for_are_noted() {
    let run = edit(RUN, "reference = \"north\"\n", "");
    let run = edit(&run, "standardize = { mean = 50, sd = 20 }\n", "");
    let text = place(&run).works("check run.toml");
    for says in [
        "note: each of intercept, town adds up to 1",
        "note: 'score' reaches 100 in its own units",
        "note: the columns of pay:town add up to those of pay",
    ] {
        assert!(text.contains(says), "no '{says}' in {text}");
    }
}
