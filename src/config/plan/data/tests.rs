//! Tests of what a run file may declare about its tables.

use super::*;

const RUN: &str = r#"[data]
file = "table.csv"
[data.label]
column = "y"
[[data.features]]
column = "a"
scale = [-1, 1]
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

fn plan(folder: &Path, text: &str) -> Plan {
    Plan::parse(&folder.join("run.toml"), text.into()).unwrap()
}

/// Whatever the path: a link to the private table is that table. Without privacy it is none.
#[cfg(unix)]
#[test]
fn the_private_table_is_no_public_test_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("table.csv"), "a,y\n0.5,1\n0.5,0\n").unwrap();
    std::fs::write(path.join("held.csv"), "a,y\n0.5,1\n0.5,0\n").unwrap();
    std::os::unix::fs::symlink("table.csv", path.join("link.csv")).unwrap();
    std::fs::hard_link(path.join("table.csv"), path.join("hard.csv")).unwrap();
    for (file, fine) in [
        ("held.csv", true),
        ("link.csv", false),
        ("hard.csv", false),
        ("./table.csv", false),
    ] {
        let run = format!("{RUN}[test]\nfile = \"{file}\"\npublic = true\n");
        match plan(path, &run).check_declarations() {
            Ok(()) => assert!(fine, "{file}"),
            Err(error) => {
                let message = error.to_string();
                assert!(
                    !fine && message.contains("line 18: test.file: "),
                    "{message}"
                );
            }
        }
        let open = run.replace("epsilon = 5.0\ndelta = 1e-6", "not_private = true");
        assert!(plan(path, &open).check_declarations().is_ok(), "{file}");
    }
}

#[test]
fn private_labels_are_no_public_test_labels() {
    let run = RUN.replace("[data.label]\ncolumn = \"y\"\n", "label_file = \"y.npy\"\n");
    let test = "[test]\nfile = \"held.csv\"\npublic = true\nlabel_file = ";
    let check = |labels: &str| {
        let run = format!("{run}{test}\"{labels}\"\n");
        plan(Path::new("folder"), &run).check_declarations()
    };
    assert!(check("held.npy").is_ok());
    let message = check("./y.npy").unwrap_err().to_string();
    assert!(
        message.contains("test.label_file: is the file of [data]"),
        "{message}"
    );
    // Nor are they its features.
    let run = format!("{run}{test}\"held.npy\"\n").replace("held.csv", "y.npy");
    let message = plan(Path::new("folder"), &run).check_declarations();
    let message = message.unwrap_err().to_string();
    assert!(message.contains("test.file: is the file"), "{message}");
}

#[test]
fn a_reference_level_belongs_to_one_hot() {
    let source = |declared: &str| {
        let run = RUN.replace("scale = [-1, 1]", declared);
        let plan = plan(Path::new("folder"), &run);
        let source = plan.source(Path::new("table.csv"), None);
        source.map_err(|e| e.to_string())
    };
    let declared = source("one_hot = ['x', 'y', 'z']\nreference = 'y'").unwrap();
    assert_eq!(declared.features[0].names(), ["a=x", "a=z", "a=other"]);
    assert_eq!(declared.norm_bound(), 1.0);
    let message = source("one_hot = ['x', 'y']\nreference = 'w'").unwrap_err();
    let at = "line 8: data.features[0].reference: 'w' is none of the levels";
    assert!(message.contains(at), "{message}");
    let message = source("scale = [0, 1]\nreference = 'w'").unwrap_err();
    assert!(
        message.contains("'reference' belongs to one_hot"),
        "{message}"
    );
}

/// Cells are read without blanks around them: such a level would match none of them.
#[test]
fn levels_of_labels_have_no_blanks_at_an_edge() {
    let check = |declared: &str| {
        let run = RUN.replace("column = \"y\"", &format!("column = \"y\"\n{declared}"));
        plan(Path::new("folder"), &run)
            .label()
            .map_err(|e| e.to_string())
    };
    assert!(check("positive = ['very ill', '']").is_ok());
    for (declared, key) in [
        ("positive = ['yes ']", "data.label.positive"),
        (
            "positive = ['yes']\nnegative = [' no']",
            "data.label.negative",
        ),
        (
            "levels = ['low', ['high', 'high\u{a0}']]",
            "data.label.levels",
        ),
        (
            "clamp = [1, 9]\nevent = { column = 'e', in = ['seen '] }",
            "data.label.event.in",
        ),
    ] {
        let message = check(declared).unwrap_err();
        let says = format!("{key}: level '");
        assert!(
            message.contains(&says) && message.contains("without blanks around them"),
            "{declared}: {message}"
        );
    }
}

/// A table's declarations for formulas too.
#[test]
fn levels_of_columns_have_no_blanks_at_an_edge() {
    let run = RUN
        .replace(
            "[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumn = \"a\"\nscale = [-1, 1]\n",
            "[columns]\ny = { LABEL }\na = { FEATURE }\n",
        )
        .replace("[model]", "[model]\nformula = \"y ~ a\"");
    let check = |label: &str, feature: &str| {
        let run = run.replace("LABEL", label).replace("FEATURE", feature);
        plan(Path::new("folder"), &run)
            .check_declarations()
            .map_err(|e| e.to_string())
    };
    assert_eq!(check("positive = ['yes']", "levels = ['u', 'v']"), Ok(()));
    let message = check("positive = [' yes']", "levels = ['u', 'v']").unwrap_err();
    assert!(
        message.contains("columns.y.positive: level ' yes'"),
        "{message}"
    );
    let message = check("positive = ['yes']", "levels = ['u', 'v ']").unwrap_err();
    assert!(message.contains("columns.a: level 'v '"), "{message}");
}
