//! The promise: numeric labels, counts and classes are read from CSV, Parquet and NPY through
//! their declarations, and every model with such a label runs from a run file.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use crate::common::tables::{RUN, csv, edit, folder_with, gzip, npy, parquet, run_over};
use dpmc::data::{self, Feature, FeatureKind, Label, LabelKind, LabelValues, Source, Storage};
use dpmc::engine::EngineChoice;
use dpmc::model::{Model, Prior, Regression};
use dpmc::privacy::Curator;

/// b is declared as a label of `kind`, a as the feature.
fn source(file: &Path, names: [&str; 2], values: LabelValues) -> Source {
    Source {
        path: file.into(),
        label_file: None,
        features: vec![Feature {
            column: Some(names[0].into()),
            kind: FeatureKind::clamp(-1.0, 1.0),
            missing: None,
        }],
        interactions: vec![],
        offset: None,
        label: Some(Label {
            column: Some(names[1].into()),
            values,
            missing: None,
            event: None,
        }),
        row_norm: None,
        weights: None,
        bounds: None,
        unit: None,
        text: Default::default(),
        bad_cells: Default::default(),
        storage: Storage::F32,
        room: Default::default(),
    }
}

/// `Σ log p(y|x, 1) − log p(y|x, 0)` of a linear model with s² = 1/2: `Σ 2x(y − x/2)`.
fn total(source: &Source) -> f64 {
    let set = data::load(source).unwrap();
    let (names, label) = (set.features().to_vec(), set.label_kind().unwrap());
    let model = Regression::linear(&names, 0.5, label, 1.0, Prior::flat_box(1, 2.0), 1.0).unwrap();
    let model: Arc<dyn Model> = Arc::new(model);
    let mut open = Curator::not_private(set, model, EngineChoice::Cpu, 1).unwrap();
    open.exact_log_ratios(&[&[0.0]], &[&[1.0]], &[16.0])
        .unwrap()[0]
        .0
}

#[test]
fn numbers_from_every_format_give_the_same_exact_sums() {
    // As in crate::common::tables::csv, which rounds to three digits: a = (i mod 7)/7, b = −(i mod
    // 5)/5.
    let expected = |label: fn(f64) -> f64| -> f64 {
        (0..40)
            .map(|i| (f64::from(i % 7) / 7.0, label(-f64::from(i % 5) / 5.0)))
            .map(|(x, y)| 2.0 * x * (y - 0.5 * x))
            .sum()
    };
    let clamp = LabelValues::Clamp {
        low: -0.5,
        high: 2.0,
    };
    let scale = LabelValues::Scale {
        low: -1.0,
        high: 0.0,
    };
    for (file, bytes) in [
        ("t.csv", csv().into_bytes()),
        ("t.csv.gz", gzip(csv().as_bytes())),
        ("t.parquet", parquet()),
    ] {
        let folder = folder_with(file, &bytes);
        let path = folder.path().join(file);
        let clamped = total(&source(&path, ["a", "b"], clamp.clone()));
        let want = expected(|y| y.max(-0.5));
        assert!(
            (clamped - want).abs() < 0.05,
            "{file}: {clamped} for {want}"
        );
        let scaled = total(&source(&path, ["a", "b"], scale.clone()));
        let want = expected(|y| 2.0 * y + 1.0);
        assert!((scaled - want).abs() < 0.05, "{file}: {scaled} for {want}");
    }
    // Every cell of these NPY files is 0.5, also of the label file.
    let folder = folder_with("x.npy", &npy("(6, 1)", 6));
    std::fs::write(folder.path().join("y.npy"), npy("(6,)", 6)).unwrap();
    let mut from_file = source(&folder.path().join("x.npy"), ["x0", "-"], clamp);
    from_file.label_file = Some(folder.path().join("y.npy"));
    from_file.label.as_mut().unwrap().column = None;
    let sum = total(&from_file);
    assert!((sum - 6.0 * 2.0 * 0.5 * 0.25).abs() < 1e-4, "{sum}");
    // As counts and classes these cells are refused by position, and never quoted.
    for values in [
        LabelValues::Count { max: 3 },
        LabelValues::Classes { classes: 3 },
        LabelValues::ZeroOne,
    ] {
        from_file.label.as_mut().unwrap().values = values;
        let message = data::load(&from_file).unwrap_err().to_string();
        assert!(message.contains("y.npy, line 1:"), "{message}");
        assert!(!message.contains("0.5"), "{message}");
    }
    // A column and a file at once are refused.
    from_file.label.as_mut().unwrap().column = Some("x0".into());
    let message = data::load(&from_file).unwrap_err().to_string();
    assert!(message.contains("data.label"), "{message}");
}

#[test]
fn a_model_made_for_other_labels_is_refused_by_the_curator() {
    let folder = folder_with("t.csv", csv().as_bytes());
    let numbers = LabelValues::Clamp {
        low: -1.0,
        high: 1.0,
    };
    let source = source(&folder.path().join("t.csv"), ["a", "b"], numbers);
    let set = data::load(&source).unwrap();
    let narrower = LabelKind::Number {
        low: -0.5,
        high: 1.0,
    };
    let names = ["a".to_string()];
    let model =
        Regression::linear(&names, 0.5, narrower, 1.0, Prior::flat_box(1, 2.0), 1.0).unwrap();
    let answer = Curator::not_private(set, Arc::new(model), EngineChoice::Cpu, 1);
    let message = answer.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(message.contains("kinds and bounds"), "{message}");
}

fn dpmc(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dpmc"));
    command.env("DPMC_RECORDS", "off");
    command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

/// Each new model from its run file to its certificate.
#[test]
fn every_model_runs_from_a_run_file() {
    let boxed = "box = 2.0\ntempering = 0.1";
    let clipped = |run: &str| edit(run, "step = 0.001", "step = 0.001\nclip = { rate = 0.5 }");
    let kind = |run: &str, model: &str| edit(run, "\"logistic\"\ntempering = 1.0", model);
    let label = |run: &str, values: &str| edit(run, "\"y\"", values);
    let unlabelled = edit(RUN, "[data.label]\ncolumn = \"y\"\n", "");
    let two = edit(&unlabelled, "[[data.features]]\nintercept = true\n", "");
    let cases = [
        (
            kind(
                &label(RUN, "\"y\"\nscale = [0, 2]"),
                &format!("\"linear\"\nvariance = 0.5\n{boxed}"),
            ),
            vec!["intercept", "a", "b"],
        ),
        (
            kind(
                &label(RUN, "\"y\"\ncount = 3\nmissing = 1"),
                &format!("\"poisson\"\n{boxed}"),
            ),
            vec!["intercept", "a", "b"],
        ),
        (
            kind(
                &two,
                &format!("\"banana\"\ncurvature = 0.5\nvariances = [1.0, 2.0]\n{boxed}"),
            ),
            vec!["theta1", "theta2"],
        ),
        (
            kind(&clipped(RUN), "\"mlp\"\nhidden = 2\ntempering = 0.1"),
            vec!["w1[0,intercept]", "b1[1]", "w2[0,1]", "b2[0]"],
        ),
        (
            kind(
                &label(&clipped(RUN), "\"y\"\nclasses = 3"),
                "\"mlp\"\nhidden = 2\ntempering = 0.1",
            ),
            vec!["w2[2,1]", "b2[2]"],
        ),
    ];
    for (run, names) in cases {
        let folder = folder_with("table.csv", csv().as_bytes());
        std::fs::write(folder.path().join("run.toml"), &run).unwrap();
        for arguments in [
            // Moves cost what the coins make them cost: a budget that holds any 25 of them.
            &["check", "run.toml", "--epsilon", "100"][..],
            &["sample", "run.toml", "--out", "out", "--epsilon", "100"],
            &["summary", "out"],
        ] {
            let output = dpmc(folder.path(), arguments);
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{arguments:?} of {run}\n{error}");
            let text = String::from_utf8_lossy(&output.stdout);
            if arguments[0] == "summary" {
                for name in &names {
                    assert!(text.contains(name), "no {name} in {text}");
                }
            }
        }
        // The resolved run file says the same again.
        let resolved = std::fs::read_to_string(folder.path().join("out/run.toml")).unwrap();
        std::fs::write(folder.path().join("again.toml"), resolved).unwrap();
        assert!(
            dpmc(folder.path(), &["check", "again.toml"])
                .status
                .success()
        );
    }
    // A network has no GPU form: refused by the flag's name, not run as something else.
    let folder = folder_with("table.csv", csv().as_bytes());
    let run = clipped(&run_over("table.csv"));
    let run = kind(&run, "\"mlp\"\nhidden = 2\ntempering = 0.1");
    std::fs::write(folder.path().join("run.toml"), run).unwrap();
    let output = dpmc(
        folder.path(),
        &["sample", "run.toml", "--out", "o", "--engine", "gpu"],
    );
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--engine cpu"), "{error}");
}
