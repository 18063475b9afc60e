//! Tests of what a run file may declare about features: what is refused at which key, and that
//! the resolved file says the same again.

use std::path::Path;

use super::*;

const RUN: &str = r#"[data]
file = "table.csv"
[data.label]
column = "y"
[[data.features]]
column = "b"
one_hot = ["u", "v"]
[[data.features]]
column = "a"
scale = [1, 9]
[model]
kind = "logistic"
prior = { kind = "normal", sd = 3.0 }
[sampler]
algorithm = "barker"
step = 0.001
[privacy]
epsilon = 5.0
delta = 1e-6
"#;

fn plan(text: String) -> Result<Plan, String> {
    Plan::parse(Path::new("run.toml"), text).map_err(|e| e.to_string())
}

/// RUN with other declarations of `a`, checked.
fn declared(features: &str) -> Result<Plan, String> {
    let plan = plan(RUN.replace("scale = [1, 9]", features))?;
    plan.check_declarations().map_err(|e| e.to_string())?;
    Ok(plan)
}

fn names(plan: &Plan) -> Vec<String> {
    plan.source(Path::new("t.csv"), None).unwrap().names()
}

const PRODUCT: &str = "scale = [1, 9]\n[[data.interactions]]\nfeatures = [\"a\", \"b\"]";

#[test]
fn every_declaration_makes_its_columns_and_comes_back() {
    for (features, columns, square) in [
        ("scale = [1, 9]\ntransform = \"log\"", "log(a)", 2.0),
        ("clamp = [0, 9]\ntransform = \"sqrt\"", "sqrt(a)", 10.0),
        (
            "scale = [0, 9]\ntransform = \"log1p\"\nmissing = 3",
            "log1p(a)",
            2.0,
        ),
        (
            "scale = [-9, 9]\ntransform = \"asinh\"\npolynomial = 3",
            "asinh(a) asinh(a)^2 asinh(a)^3",
            4.0,
        ),
        (
            "clamp = [0, 9]\nstandardize = { mean = 5, sd = 2 }",
            "a",
            1.0 + 6.25,
        ),
        (
            "scale = [1, 9]\nspline = { knots = [3, 5] }",
            "a~s1 a~s2 a~s3",
            2.0,
        ),
        (
            "one_hot = [\"p\"]\nreference = \"q\"\n[data.features.groups]\nq = [\"r\", \"s\"]",
            "a=p a=other",
            2.0,
        ),
        (
            "one_hot = []\nstrict = true\ngroups = { other = [\"r\"], q = [\"s\"] }",
            "a=other a=q",
            2.0,
        ),
        (PRODUCT, "a a:b=u a:b=v a:b=other", 3.0),
    ] {
        let plan = declared(features).unwrap();
        let found = names(&plan);
        assert_eq!(found[..3], ["b=u", "b=v", "b=other"]);
        assert_eq!(found[3..].join(" "), columns, "{features}");
        let norm = plan.source(Path::new("t.csv"), None).unwrap().norm_bound();
        assert!((norm * norm - square).abs() < 1e-9, "{features}: {norm}");
        let resolved = plan.resolved().unwrap();
        let again = Plan::parse(Path::new("run.toml"), resolved.clone()).unwrap();
        assert_eq!(again.config.data.features, plan.config.data.features);
        assert_eq!(
            again.config.data.interactions,
            plan.config.data.interactions
        );
        assert_eq!(names(&again), found);
        assert_eq!(again.resolved().unwrap(), resolved);
    }
}

#[test]
fn what_is_wrong_is_said_at_its_key() {
    let twice = format!("{PRODUCT}\n[[data.interactions]]\nfeatures = [\"b\", \"a\"]");
    for (features, says) in [
        (
            "scale = [0, 9]\ntransform = \"log\"",
            "line 11: data.features[1].transform: log needs a lower bound above 0",
        ),
        (
            "scale = [1, 9]\ntransform = \"logg\"",
            "line 11: unknown variant `logg`, expected one of `log`, `log1p`, `sqrt`, `asinh`; the nearest valid one is `log`",
        ),
        (
            "scale = [1, 9]\ntransfrom = \"log\"",
            "line 11: unknown field `transfrom`",
        ),
        (
            "scale = [1, 9]\ntransfrom = \"log\"",
            "nearest valid one is `transform`",
        ),
        (
            "scale = [1, 9]\nspline = { knts = [3] }",
            "nearest valid one is `knots`",
        ),
        (
            "clamp = [1, 9]\nstandardize = { mean = 3 }",
            "line 11: missing field `sd`",
        ),
        (
            "one_hot = [\"p\"]\ntransform = \"log\"",
            "data.features[1].transform: 'transform' belongs to scale or clamp",
        ),
        (
            "scale = [1, 9]\nstandardize = { mean = 3, sd = 1 }",
            "data.features[1].standardize: 'standardize' belongs to clamp",
        ),
        (
            "clamp = [1, 9]\nstandardize = { mean = 3, sd = 0 }",
            "data.features[1].standardize: needs a finite mean",
        ),
        (
            "clamp = [1, 9]\npolynomial = 2",
            "data.features[1].polynomial: 'polynomial' belongs to scale",
        ),
        (
            "clamp = [1, 9]\nspline = { knots = [3] }",
            "data.features[1].spline: 'spline' belongs to scale",
        ),
        (
            "scale = [1, 9]\npolynomial = 2\nspline = { knots = [3] }",
            "line 12: data.features[1].spline: 'spline' and 'polynomial'",
        ),
        (
            "scale = [1, 9]\npolynomial = 1",
            "data.features[1].polynomial: the degree",
        ),
        (
            "scale = [1, 9]\nspline = { knots = [9] }",
            "data.features[1].spline: knots must lie inside the bounds (1, 9)",
        ),
        (
            "scale = [1, 9]\ngroups = { g = [\"p\"] }",
            "data.features[1].groups: 'groups' belongs to one_hot",
        ),
        (
            "groups = { g = [\"p\"] }",
            "'groups' belongs to one_hot, which may be []",
        ),
        (
            "one_hot = [\"p\"]\ngroups = { g = [\"p\"] }",
            "line 11: data.features[1].groups: level 'p'",
        ),
        (
            "one_hot = [\"p\"]\ngroups = { g = [\"LEVEL\"] }",
            "data.features[1].groups: replace LEVEL",
        ),
        (
            "one_hot = [\"p\", \" q\"]",
            "line 8: data.features[1]: level ' q' has blanks at an edge",
        ),
        (
            "one_hot = []\ngroups = { g = [\"p\\t\"] }",
            "data.features[1].groups: level 'p\t' has blanks at an edge",
        ),
        (
            "indicator = { in = [\"p \"] }",
            "cells are read without blanks around them; write 'p'",
        ),
        (
            "scale = [1, 9]\nspline = { knots = [3] }\nmissing = 10",
            "data.features[1].missing",
        ),
        (
            &PRODUCT.replace("\"b\"]", "\"c\"]"),
            "line 12: data.interactions[0].features: 'c' is no column",
        ),
        (
            &PRODUCT.replace("features =", "columns ="),
            "nearest valid one is `features`",
        ),
        (
            &twice,
            "line 14: data.interactions[1].features: are those of data.interactions[0]",
        ),
    ] {
        let message = declared(features).unwrap_err();
        assert!(message.contains(says), "{features}: {message}");
    }
}

/// The example of `docs/reference/run_file.md` makes the columns that it says.
#[test]
fn the_documented_example_is_as_described() {
    let docs = include_str!("../../../../docs/reference/run_file.md");
    let after = docs.split("#### Curves").nth(1).unwrap();
    let example = after.split("```").nth(1).unwrap();
    let example = example.trim_start_matches("toml");
    let start = RUN.find("[[data.features]]").unwrap();
    let end = RUN.find("[model]").unwrap();
    let run = format!("{}{example}{}", &RUN[..start], &RUN[end..]);
    let plan = plan(run).unwrap();
    let declared = plan.check_declarations();
    assert!(declared.is_ok(), "{declared:?}");
    let found = names(&plan);
    let region = "region=south region=abroad region=islands region=other";
    let main =
        format!("intercept log(income) age~s1 age~s2 age~s3 age~s4 bmi bmi^2 score {region}");
    assert_eq!(found[..13].join(" "), main);
    assert_eq!(
        (found.len(), found[13].as_str()),
        (13 + 16, "age~s1:region=south")
    );
    // 1 + 1 + 1 + 2 + 25 + 1, and 1 for the products.
    let norm = plan.source(Path::new("t.csv"), None).unwrap().norm_bound();
    assert!((norm * norm - 32.0).abs() < 1e-9, "{norm}");
    assert_eq!(plan.notes_on_features().unwrap(), Vec::<String>::new());
}

/// Whatever stands behind a key: an error or a plan, never a panic.
#[test]
fn odd_values_never_panic() {
    const ODD: [&str; 12] = [
        "-1",
        "0",
        "nan",
        "inf",
        "1e308",
        "5e-324",
        "[]",
        "[nan]",
        "{}",
        "'log'",
        "[0, 1]",
        "{ mean = nan, sd = inf }",
    ];
    for odd in ODD {
        for line in [
            format!("scale = [1, 9]\ntransform = {odd}"),
            format!("scale = [1, 9]\npolynomial = {odd}"),
            format!("scale = [1, 9]\nspline = {{ knots = {odd} }}"),
            format!("scale = [1, 9]\nspline = {{ knots = [{odd}] }}"),
            format!("scale = [{odd}, 9]\ntransform = 'log1p'\nspline = {{ knots = [3] }}"),
            format!("scale = [-1, {odd}]\ntransform = 'asinh'\npolynomial = 9"),
            format!("clamp = [1, 9]\nstandardize = {odd}"),
            format!("clamp = [-9, 9]\nstandardize = {{ mean = {odd}, sd = {odd} }}"),
            format!("one_hot = []\ngroups = {odd}"),
            format!("one_hot = []\ngroups = {{ g = {odd} }}"),
            PRODUCT.replace("[\"a\", \"b\"]", odd),
        ] {
            if let Ok(plan) = declared(&line) {
                assert!(plan.notes_on_features().is_ok(), "{line}");
            }
        }
    }
}

#[test]
fn notes_are_of_regressions_alone() {
    let plan = declared("scale = [1, 9]\n[[data.features]]\nintercept = true").unwrap();
    let notes = plan.notes_on_features().unwrap();
    assert!(
        notes[0].contains("each of b, intercept adds up to 1"),
        "{notes:?}"
    );
    let mut other = plan;
    other.config.model.kind = ModelKind::GaussianMean;
    assert!(other.notes_on_features().unwrap().is_empty());
}

/// Shortened rows may hold less than 1.
#[test]
fn flags_are_known_where_no_row_is_shortened() {
    let numbers = "[[data.features]]\ncolumn = \"a\"";
    let run = RUN.replace(
        numbers,
        &format!("[[data.features]]\nintercept = true\n{numbers}"),
    );
    let of = |data: &str| {
        let plan = plan(run.replace("[data]", data)).unwrap();
        plan.structure().unwrap()
    };
    let known = of("[data]");
    assert_eq!(known.flags, [true, true, true, true, false]);
    assert_eq!(known.constant, Some(3));
    let shortened = of("[data]\nrow_norm = 1.2");
    assert!(shortened.flags.is_empty() && shortened.constant.is_none());
}
