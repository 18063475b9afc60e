//! The promise: a formula over declared columns is the same table as the feature blocks that it
//! stands for, to the bit, and whatever is wrong with it is said before anything is spent.

use std::path::Path;

use crate::common::place::{Place, edit, repository};
use dpmc::config::Plan;

const REST: &str = r#"
[sampler]
algorithm = "mh"
step = 0.02
[run]
iterations = 30
chains = 1
seed = 5
engine = "cpu"
[privacy]
not_private = true
"#;

/// Adult by a formula, and by blocks.
const ADULT: [&str; 2] = [
    r#"[data]
file = "adult.csv.gz"
[columns]
income = { positive = [">50K"], negative = ["<=50K"] }
age = { scale = [17, 90] }
hours-per-week = { scale = [1, 99] }
capital-gain = { clamp = [0, 100_000] }
gender = { indicator = { in = ["Female"] } }
race = { levels = ["White", "Black"], groups = { few = ["Other", "Amer-Indian-Eskimo"] } }
native-country = { indicator = { in = ["United-States"] }, missing = 0 }
occupation = { levels = ["Sales", "Craft-repair"] }
[model]
kind = "logistic"
formula = """income ~ ns(age, knots = [30, 45]) * race + poly(`hours-per-week`, 2)
    + log1p(`capital-gain`) + `native-country`*gender + I(education in c("Masters", 'Doctorate'))
    + factor(occupation, ref = "Craft-repair")"""
prior = { kind = "normal", sd = 3.0 }
"#,
    r#"[data]
file = "adult.csv.gz"
[data.label]
column = "income"
positive = [">50K"]
negative = ["<=50K"]
[[data.features]]
intercept = true
[[data.features]]
column = "age"
scale = [17, 90]
spline = { knots = [30, 45] }
[[data.features]]
column = "race"
one_hot = ["White", "Black"]
groups = { few = ["Other", "Amer-Indian-Eskimo"] }
reference = "White"
[[data.features]]
column = "hours-per-week"
scale = [1, 99]
polynomial = 2
[[data.features]]
column = "capital-gain"
clamp = [0, 100_000]
transform = "log1p"
[[data.features]]
column = "native-country"
indicator = { in = ["United-States"] }
missing = 0
[[data.features]]
column = "gender"
indicator = { in = ["Female"] }
[[data.features]]
column = "education"
indicator = { in = ["Masters", "Doctorate"] }
[[data.features]]
column = "occupation"
one_hot = ["Sales", "Craft-repair"]
reference = "Craft-repair"
[[data.interactions]]
features = ["age", "race"]
[[data.interactions]]
features = ["native-country", "gender"]
[model]
kind = "logistic"
prior = { kind = "normal", sd = 3.0 }
"#,
];

/// A made-up table with odd names and rare levels, by a formula and by blocks.
const ODD: [&str; 2] = [
    r#"[data]
file = "odd.csv"
[columns]
"n visits" = { count = 20, missing = 0 }
"x.1" = { scale = [-5, 5], missing = 1 }
"log(x)" = { clamp = [1, 50], standardize = { mean = 10, sd = 5 } }
"a-b" = { scale = [1, 1000], transform = "log" }
"wo`hn\"ort" = { levels = ["nord", "süd"], groups = { rar = ["insel", ""] }, reference = "rar", strict = true }
"x>3" = { indicator = { above = 2 }, missing = 0 }
unknown = { clamp = [0, 9] }
unused = { scale = [9, 1] }
[model]
kind = "poisson"
formula = "`n visits` ~ 0 + `wo``hn\"ort` + (x.1 + `log(x)` + `a-b`)^2 - x.1:`log(x)` + sqrt(unknown) + `x>3`:I(x.1 < 0.5) + `x>3` + I(x.1 < 0.5)"
prior = { kind = "normal", sd = 1.0 }
"#,
    r#"[data]
file = "odd.csv"
[data.label]
column = "n visits"
count = 20
missing = 0
[[data.features]]
column = 'wo`hn"ort'
one_hot = ["nord", "süd"]
groups = { rar = ["insel", ""] }
strict = true
[[data.features]]
column = "x.1"
scale = [-5, 5]
missing = 1
[[data.features]]
column = "log(x)"
clamp = [1, 50]
standardize = { mean = 10, sd = 5 }
[[data.features]]
column = "a-b"
scale = [1, 1000]
transform = "log"
[[data.features]]
column = "unknown"
clamp = [0, 9]
transform = "sqrt"
[[data.features]]
column = "x>3"
indicator = { above = 2 }
missing = 0
[[data.features]]
column = "x.1"
indicator = { below = 0.5 }
missing = 1
[[data.interactions]]
features = ["x.1", "a-b"]
[[data.interactions]]
features = ["log(x)", "log(a-b)"]
[[data.interactions]]
features = ["x>3", "x.1<0.5"]
[model]
kind = "poisson"
prior = { kind = "normal", sd = 1.0 }
"#,
];

fn odd_table() -> String {
    let mut text = String::from("n visits,x.1,log(x),a-b,\"wo`hn\"\"ort\",x>3,unknown\n");
    for i in 0..700u32 {
        // One row in a hundred or so is of a rare level.
        let town = match i % 97 {
            0 => "insel",
            1 => "",
            k if k % 2 == 0 => "nord",
            _ => "süd",
        };
        let x = match i % 13 {
            0 => "NA".to_string(),
            k => format!("{:.2}", f64::from(k) - 6.5),
        };
        let above = if i % 17 == 3 {
            String::new()
        } else {
            (i % 5).to_string()
        };
        let (visits, log, ab) = (i * 7 % 25, 1 + i * 11 % 60, 1 + i * 37 % 1200);
        text += &format!("{visits},{x},{log},{ab},{town},{above},{}\n", i % 10);
    }
    text
}

/// A place with both tables and one run file.
fn place(run: &str) -> Place {
    let place = Place::new(&format!("{run}{REST}"));
    place.write("odd.csv", &odd_table());
    let adult = repository("examples/data/adult_train.csv.gz");
    std::fs::copy(adult, place.path("adult.csv.gz")).unwrap();
    place
}

/// Names, row norm, rows and labels, to the bit.
fn table(folder: &Path, run: &str) -> (Vec<String>, f64, Vec<u32>, Vec<f64>) {
    let plan = Plan::parse(&folder.join("run.toml"), format!("{run}{REST}")).unwrap();
    let data = plan.load_data().unwrap();
    let public = data.as_public();
    let rows = public.rows().iter().map(|v| v.to_bits()).collect();
    (
        public.features().to_vec(),
        data.row_norm(),
        rows,
        public.numbers(),
    )
}

#[test]
fn a_formula_is_the_table_of_the_blocks_that_it_stands_for() {
    let place = place("");
    let folder = place.path("");
    for (formula, blocks, features) in [
        (
            ADULT[0],
            ADULT[1],
            1 + 3 + 3 + 2 + 1 + 1 + 1 + 1 + 2 + 9 + 1,
        ),
        (ODD[0], ODD[1], 3 + 6 + 3),
    ] {
        let (one, other) = (table(&folder, formula), table(&folder, blocks));
        assert_eq!(one.0, other.0);
        assert_eq!(one.0.len(), features, "{:?}", one.0);
        assert!(one == other, "rows, labels or norms differ");
        // The resolved file says the same again.
        let plan = Plan::parse(&folder.join("run.toml"), format!("{formula}{REST}")).unwrap();
        let resolved = plan.resolved().unwrap();
        assert!(resolved.contains("formula = "), "{resolved}");
        let again = Plan::parse(&folder.join("run.toml"), resolved.clone()).unwrap();
        assert_eq!(again.resolved().unwrap(), resolved);
        let rows = again.load_data().unwrap();
        assert_eq!(rows.features(), one.0);
    }
}

#[test]
fn seeded_draws_are_those_of_the_blocks() {
    for (formula, blocks) in [(ADULT[0], ADULT[1]), (ODD[0], ODD[1])] {
        let place = place(formula);
        place.write("blocks.toml", &format!("{blocks}{REST}"));
        place.works("sample run.toml --out one --quiet");
        place.works("sample blocks.toml --out other --quiet");
        let (one, other) = (place.draws("one"), place.draws("other"));
        assert!(one.last() >= 1);
        assert_eq!(one, other);
    }
}

/// A private run with a formula and a public test table is resumed and summed up.
#[test]
fn a_private_run_goes_on_with_its_formula() {
    let run = edit(ADULT[0], "prior =", "tempering = 0.01\nprior =");
    let place = place(&run);
    let private = edit(
        &format!("{run}{REST}[test]\nfile = \"held.csv\"\npublic = true\n"),
        "not_private = true",
        "epsilon = 8\ndelta = 1e-6",
    );
    let private = edit(
        &private,
        "algorithm = \"mh\"\nstep = 0.02",
        "algorithm = \"barker\"\nstep = 0.001",
    );
    place.write("run.toml", &private);
    let head =
        "age,education,occupation,race,gender,capital-gain,hours-per-week,native-country,income\n";
    let held = "40,Masters,Sales,White,Female,0,40,,>50K\n20,HS,,Black,Male,0,20,Cuba,<=50K\n";
    place.write("held.csv", &format!("{head}{held}"));
    place.works("sample run.toml --out out --quiet");
    let before = place.draws("out").last();
    place.works("sample --resume out --iterations 60 --quiet");
    assert!(place.draws("out").last() > before);
    let summary = place.works("summary out");
    assert!(summary.contains("age~s1:race=Black"), "{summary}");
    assert!(summary.contains("accuracy"), "{summary}");
}

#[test]
fn check_prints_every_coefficient() {
    let place = place(ADULT[0]);
    let text = place.works("check run.toml");
    for line in [
        "formula    income ~ ns(age, knots = [30, 45]) * race + poly(`hours-per-week`, 2) + log1p(",
        "label      income: 1 for \">50K\", 0 for \"<=50K\"\nfeatures   intercept\n",
        "\n           age~s1, age~s2, age~s3               natural cubic spline of age over 17 to 90, knots 30, 45\n",
        "\n           race=Black, race=few, race=other     differences from race=White\n",
        "\n           hours-per-week, hours-per-week^2     Legendre polynomials of hours-per-week up to degree 2 over 1 to 99\n",
        "\n           log1p(capital-gain)                  log1p(capital-gain), cut off at 0 and 100000\n",
        "\n           native-country=United-States\n",
        "\n           age~s1:race=Black, age~s1:race=few, …, age~s3:race=other (9 in all)\n",
    ] {
        assert!(text.contains(line), "no '{line}' in {text}");
    }
    let report: serde_json::Value =
        serde_json::from_str(&place.works("check run.toml --json")).unwrap();
    let terms = report["formula"]["terms"].as_array().unwrap();
    let names = terms
        .iter()
        .flat_map(|t| t["coefficients"].as_array().unwrap());
    assert_eq!(
        names.count() as u64,
        report["table"]["features"].as_u64().unwrap()
    );
    let product = terms.last().unwrap();
    assert_eq!(product["term"], "`native-country`:gender");
    assert_eq!(
        product["coefficients"][0],
        "native-country=United-States:gender=Female"
    );
    // A run file without a formula has no such lines.
    place.write("run.toml", &format!("{}{REST}", ADULT[1]));
    assert!(!place.works("check run.toml").contains("features   "));
}

const SMALL: &str = r#"[data]
file = "people.csv"
[columns]
y = {}
a = { scale = [-1, 1] }
b = { levels = ["0", "1"] }
[model]
kind = "logistic"
formula = "y ~ a + b"
prior = { kind = "normal", sd = 3.0 }
"#;

#[test]
fn what_is_wrong_is_said_at_its_line_and_character() {
    for (from, to, says) in [
        (
            "y ~ a",
            "y ~ aa",
            "line 9: model.formula: column 'aa' is not declared: write aa = { scale",
        ),
        (
            "y ~ a",
            "y ~ aa",
            "the nearest that is declared is a, at character 5 of 'y ~ aa + b'",
        ),
        ("y ~ a", "y ~ a +", "at character 9 of 'y ~ a + + b'"),
        (
            "\"y ~ a + b\"",
            "\"\"\"\ny ~ a\n + c\"\"\"",
            "line 9: model.formula: column 'c'",
        ),
        (
            "y ~ a",
            "z ~ a",
            "the label 'z' is not declared: write in [columns] z = { positive",
        ),
        ("y ~ a", "a ~ b + y", "columns.y: give exactly one of scale"),
        (
            "y ~ a",
            "y ~ log(a)",
            "model.formula: log needs a lower bound above 0",
        ),
        ("y ~ a", "y ~ log(a)", "at character 5 of"),
        (
            "y ~ a",
            "y ~ ns(a, knots = [3])",
            "model.formula: knots must lie inside the bounds (-1, 1)",
        ),
        (
            "[-1, 1]",
            "[1, -1]",
            "line 5: columns.a: bounds are reversed",
        ),
        (
            "[-1, 1] }",
            "[-1, 1], missing = 2 }",
            "line 5: columns.a.missing: the value of a missing cell",
        ),
        (
            "[-1, 1]",
            "[-1, 1], clamp = [0, 1]",
            "columns.a: give exactly one of scale",
        ),
        (
            "[-1, 1]",
            "[-1, 1], transform = \"log\"",
            "line 5: columns.a.transform: log needs",
        ),
        (
            "[-1, 1]",
            "[-1, 1], reference = \"0\"",
            "columns.a.reference: belongs to levels",
        ),
        (
            "scale = [-1",
            "scael = [-1",
            "line 5: unknown field `scael`",
        ),
        ("a = { scale", "a.1 = { scale", "line 5: unknown field `1`"),
        (
            "a = { scale",
            "a.1 = { scale",
            "a name with a dot stands in quotes: \"x.1\" = { … }",
        ),
        ("scale = [-1", "scael = [-1", "nearest valid one is `scale`"),
        ("[\"0\", \"1\"]", "[\"0\", \"0\"]", "line 6: columns.b: "),
        ("[\"0\", \"1\"]", "[\"LEVEL\"]", "columns.b: replace LEVEL"),
        (
            "[\"0\", \"1\"]",
            "[\"0\"], reference = \"1\"",
            "columns.b.reference: '1' is none of the levels",
        ),
        (
            "+ b",
            "+ factor(b, ref = '2')",
            "'2' is none of the levels of 'b' in [columns], which are 0, 1",
        ),
        (
            "[\"0\", \"1\"]",
            "[\"0\"], groups = { g = [\"0\"] }",
            "columns.b.groups: level '0' is in levels and in",
        ),
        (
            "y = {}",
            "y = { levels = [\"0\", \"1\"] }",
            "columns.y: a logistic model needs a declared binary label",
        ),
        (
            "y = {}",
            "y = { count = 3 }",
            "columns.y: a logistic model needs a declared binary label",
        ),
        (
            "y = {}",
            "y = { positive = [\"1\"], count = 3 }",
            "columns.y: declarations contradict",
        ),
        (
            "y = {}",
            "y = { negative = [\"1\"] }",
            "columns.y.negative: needs 'positive'",
        ),
        (
            "[columns]",
            "[data.label]\ncolumn = \"y\"\n[columns]",
            "data.label: the label is declared twice: delete [data.label] or columns.y",
        ),
        (
            "[columns]\ny = {}",
            "[data.label]\ncolumn = \"z\"\n[columns]",
            "[data.label] declares another label than 'y'",
        ),
        (
            "[columns]",
            "label_file = \"y.npy\"\n[columns]",
            "data.label_file: contradicts the formula's label 'y'",
        ),
        (
            "[columns]",
            "[[data.features]]\nintercept = true\n[columns]",
            "line 3: data.features: [model] has a formula",
        ),
        (
            "[columns]",
            "[[data.interactions]]\nfeatures = [\"a\", \"b\"]\n[columns]",
            "data.interactions: [model] has a formula",
        ),
        (
            "formula = \"y ~ a + b\"",
            "",
            "line 3: columns: is for formulas",
        ),
        (
            "y ~ a",
            "~ a",
            "model.formula: a logistic model needs a declared binary label",
        ),
        ("a = { scale", "chain = { scale = [0, 1] }\na = { scale", ""),
        // Public bounds of rows are no column that is protected.
        (
            "[columns]",
            "[data.bounds]\ncolumn = \"a\"\npublic = true\n[columns]",
            "data.bounds.column: column 'a' is a feature or the label",
        ),
        (
            "[columns]",
            "[data.bounds]\ncolumn = \"y\"\npublic = true\n[columns]",
            "data.bounds.column: column 'y' is a feature or the label",
        ),
        (
            "[columns]",
            "bad_cells = \"missing\"\n[columns]",
            "data.bad_cells: \"missing\" needs a rule for missing cells in every declaration; column 'a' has none",
        ),
    ] {
        let run = edit(SMALL, from, to);
        if says.is_empty() {
            let run = edit(&run, "y ~ a", "y ~ chain");
            let message = place(&run).refuses("check run.toml");
            assert!(
                message.contains("model.formula: feature name 'chain'"),
                "{message}"
            );
            continue;
        }
        let place = Place::new(&format!("{run}{REST}"));
        for command in ["check run.toml", "sample run.toml --out out"] {
            let message = place.refuses(command);
            assert!(message.contains(says), "{to}: {message}");
        }
        assert!(!place.path("out").exists());
    }
}

#[test]
fn a_label_may_stay_in_its_section() {
    let run = edit(
        SMALL,
        "[columns]\ny = {}",
        "[data.label]\ncolumn = \"y\"\n[columns]",
    );
    for formula in ["y ~ a + b", "~ a + b"] {
        let run = edit(&run, "y ~ a + b", formula);
        let place = Place::new(&format!("{run}{REST}"));
        place.works("sample run.toml --out out --quiet");
        let columns = place.draws("out").columns;
        assert_eq!(columns[2..], ["intercept", "a", "b=1", "b=other"]);
    }
    let twice = edit(&run, "y ~ a + b", "~ a + y");
    let message = Place::new(&format!("{twice}{REST}")).refuses("check run.toml");
    assert!(message.contains("'y' is the label"), "{message}");
}

/// A text without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The run files of the guide's page run, and it prints what check prints.
#[test]
fn what_the_documentation_shows_runs() {
    let page = std::fs::read_to_string(repository("docs/guide/formulas.md")).unwrap();
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).collect();
    assert_eq!(blocks.len(), 2);
    for (i, block) in blocks.into_iter().enumerate() {
        let run = block.split("```").next().unwrap();
        let data = repository("examples/data/adult_train.csv.gz");
        let place = Place::new(&edit(run, "examples/data/adult_train.csv.gz", &data));
        let check = place.works("check run.toml");
        if i == 0 {
            let shown = page
                .split("`dpmc check` says of it:\n\n```text\n")
                .nth(1)
                .unwrap();
            let shown = shown.split("```").next().unwrap();
            assert!(check.contains(shown), "{check}");
            let formula = run.lines().find(|l| l.starts_with("formula = ")).unwrap();
            let wrong = edit(run, formula, "formula = \"income ~ agee + gender\"");
            place.write("wrong.toml", &wrong);
            let message = place.refuses("check wrong.toml");
            let shown = page.split("```text\nrun.toml, ").nth(1).unwrap();
            let shown = words(shown.split("```").next().unwrap());
            assert!(words(&message).ends_with(&shown), "{message}");
        }
        place.works("sample run.toml --out out --quiet --iterations 50");
        assert!(place.draws("out").last() >= 1, "{run}");
    }
}
