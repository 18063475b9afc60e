//! The promise: a run file of a linear or Poisson regression needs no more than the name of the
//! anchored algorithm, and its draws carry the anchor's noise.

use std::path::Path;

use crate::common::anchored_run::AnchoredRun;
use crate::common::place::{Place, RUN, edit};
use crate::common::regression::{COUNT, NUMBER, mode, table};
use dpmc::config::Plan;
use dpmc::data::LabelKind;
use dpmc::engine::{EngineChoice, EngineError};
use dpmc::privacy::CuratorError;

/// A run file's first lines for a table of this kind.
fn run_file(kind: LabelKind) -> String {
    let (label, model) = match kind {
        LabelKind::Count { .. } => ("count = 36", "kind = \"poisson\""),
        _ => ("clamp = [-2.5, 2.5]", "kind = \"linear\"\nvariance = 0.4"),
    };
    format!(
        "[data]\nfile = \"made up\"\n[data.label]\ncolumn = \"y\"\n{label}\n[[data.features]]\ncolumns = [\"a\", \"b\"]\nclamp = [-1, 1]\n[model]\n{model}\nprior = {{ kind = \"normal\", sd = 3.0 }}\n[sampler]\nalgorithm = \"anchored-barker\"\n[run]\niterations = 6000\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n"
    )
}

/// From a run file that names the algorithm alone: warm start, anchor and steps within ε = 3.
/// The mean lies within 5.5 sds of the anchor's stated noise of the true one (4e-8 a parameter;
/// a tenth of a posterior sd for Laplace's error and clipped rows), and the budget is kept.
#[test]
fn run_files_sample_regressions_around_private_anchors() {
    for (kind, engine) in [
        (NUMBER, EngineChoice::Cpu),
        (COUNT, EngineChoice::Cpu),
        (NUMBER, EngineChoice::Gpu),
        (COUNT, EngineChoice::Gpu),
    ] {
        let table = table(20_000, kind);
        let plan = Plan::parse(Path::new("run.toml"), run_file(kind)).unwrap();
        let data = table.data();
        let model = plan.model(&data).unwrap();
        let expected = mode(&table, &*model, 3.0);
        let run = match AnchoredRun::of(&plan, data, engine, 1) {
            Ok(run) => run,
            Err(CuratorError::Engine(EngineError::NoAdapter { .. }))
                if std::env::var_os("DPMC_REQUIRE_GPU").is_none() =>
            {
                eprintln!("skipped: no GPU adapter (DPMC_REQUIRE_GPU=1 makes this a failure)");
                continue;
            }
            Err(e) => panic!("{e}"),
        };
        for (j, (exact, laplace)) in expected.into_iter().enumerate() {
            let ((m, s, ess), noise) = (run.moments(j), run.noise[j].mean_sd);
            println!(
                "{kind:?} {j}: {m:.4} against {exact:.4}, sd {s:.4} against {laplace:.4}, noise {noise:.4}, ess {ess:.0}"
            );
            let allowed = 5.5 * noise.hypot(s / ess.sqrt()) + 0.1 * laplace;
            assert!((m - exact).abs() < allowed, "{kind:?}: {m} against {exact}");
            assert!(noise < 3.0 * laplace, "{kind:?}: the anchor is all noise");
            assert!(
                (s / laplace - 1.0).abs() < 0.5,
                "{kind:?}: {s} against {laplace}"
            );
            assert!(ess > 800.0, "{kind:?}: {ess}");
        }
    }
}

/// The command itself: what it checks, samples and sums up.
#[test]
fn the_command_anchors_regressions_and_reports_their_noise() {
    for (label, model) in [
        ("clamp = [-1, 2]", "\"linear\"\nvariance = 0.25"),
        ("count = 2", "\"poisson\""),
    ] {
        let run = edit(RUN, "column = \"y\"", &format!("column = \"y\"\n{label}"));
        let run = edit(&run, "\"logistic\"", model);
        let run = edit(&run, "\"barker\"\nstep = 0.0001", "\"anchored-barker\"");
        let run = edit(&run, "epsilon = 5.0", "epsilon = 30.0");
        let place = Place::new(&run);
        assert!(place.works("check run.toml").contains("anchor     rho"));
        place.works("sample run.toml --out out --quiet");
        let summary = place.works("summary out");
        assert!(summary.contains("with the anchor's noise"), "{summary}");
        let json: serde_json::Value =
            serde_json::from_str(&place.works("summary out --json")).unwrap();
        let noise = json["noise_aware"].as_array().unwrap();
        assert_eq!(noise.len(), 3);
        assert!(noise.iter().all(|n| n["mean_sd"].as_f64().unwrap() > 0.0));
    }
    // A linear model leaves no remainder that could be clipped.
    let run = edit(RUN, "column = \"y\"", "column = \"y\"\nclamp = [-1, 2]");
    let run = edit(&run, "\"logistic\"", "\"linear\"\nvariance = 0.25");
    let clip = "\"anchored-barker\"\nclip = { share = 0.5 }";
    let run = edit(&run, "\"barker\"\nstep = 0.0001", clip);
    let message = Place::new(&run).refuses("check run.toml");
    assert!(
        message.contains("sampler.clip") && message.contains("quadratic"),
        "{message}"
    );
}

/// Labels 60 noise sds from the start, declared within 100: the warm start makes the steps that it
/// takes to get there. (Of the intercept: 5.5 sds of the stated noise, 4e-8, and a tenth of a sd.)
#[test]
fn labels_far_from_the_start_are_reached() {
    let far = "[data]\nfile = \"people.csv\"\n[data.label]\ncolumn = \"y\"\nclamp = [0, 100]\n[[data.features]]\ncolumn = \"a\"\nclamp = [-1, 1]\n[[data.features]]\nintercept = true\n[model]\nkind = \"linear\"\nvariance = 1.0\nprior = { kind = \"normal\", sd = 100.0 }\n[sampler]\nalgorithm = \"anchored-barker\"\n[run]\niterations = 2000\nengine = \"cpu\"\n[privacy]\nepsilon = 4.0\ndelta = 1e-6\n";
    let place = Place::new(far);
    let mut table = String::from("a,y\n");
    let (mut sum, n) = (0.0, 10_000);
    for i in 0..n {
        let (a, noise) = ((f64::from(i) * 1.7).sin(), (f64::from(i) * 0.37).sin());
        let y = 60.0 + 2.0 * a + noise;
        sum += y;
        table.push_str(&format!("{a},{y}\n"));
    }
    place.write("people.csv", &table);
    place.works("sample run.toml --out out --quiet");
    let json: serde_json::Value = serde_json::from_str(&place.works("summary out --json")).unwrap();
    let parameter = &json["parameters"][1];
    assert_eq!(parameter["name"], "intercept");
    let number = |v: &serde_json::Value| v.as_f64().unwrap();
    // a has mean zero over so many turns: the intercept is the labels' mean.
    let gap = number(&parameter["mean"]) - sum / f64::from(n);
    let noise = number(&json["noise_aware"][1]["mean_sd"]);
    assert!(
        gap.abs() < 5.5 * noise + 0.1 * number(&parameter["sd"]),
        "{gap}, noise {noise}"
    );
    assert!(noise < 0.1, "{noise}");
}

/// Labels that are all alike say nothing of three of four coefficients. Under a Laplace prior of
/// scale 1, whose sd is 1.4, draws are about as wide as that, and not a hundred times and more.
#[test]
fn a_laplace_prior_holds_what_rows_do_not_tell() {
    let run = "[data]\nfile = \"rows.csv\"\n[data.label]\ncolumn = \"y\"\n\
               [[data.features]]\nintercept = true\n\
               [[data.features]]\ncolumns = [\"a\", \"b\", \"c\"]\nscale = [-1, 1]\n\
               [model]\nkind = \"logistic\"\nprior = { kind = \"laplace\", scale = 1.0 }\n\
               [sampler]\nalgorithm = \"dp-laplace\"\n[run]\niterations = 1000\n\
               [privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
    let place = Place::new(run);
    let column = |i: i32, k: f64| (f64::from(i) * k).sin();
    let line = |i| {
        format!(
            "1,{:.4},{:.4},{:.4}\n",
            column(i, 1.7),
            column(i, 2.9),
            column(i, 4.3)
        )
    };
    let lines = (0..300).map(line);
    place.write(
        "rows.csv",
        &lines.fold("y,a,b,c\n".to_string(), |all, line| all + &line),
    );
    place.works("sample run.toml --out out --quiet");
    let draws = place.draws("out");
    let largest = draws.rows.iter().flat_map(|row| &row.2[1..]);
    let largest = largest.fold(0.0f64, |most, v| most.max(v.abs()));
    assert!(largest < 40.0, "{largest}");
}
