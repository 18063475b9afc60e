//! The promise: optimisers run from a run file, are charged what subsampled Gaussian noise costs,
//! and are taken for what they are: a point, no posterior.

use serde_json::Value;

use crate::common::place::{Place, RUN, edit, number, repository};

const PRIVATE: &str = r#"
algorithm = "dp-sgd"
algorithm = "dp-sgd"; gradient = { rate = 0.1 }
algorithm = "dp-sgd"; gradient = { rate = 0.1, clip = 0.5, tau = 2.0 }; step = 0.5; schedule = "cube-root"
algorithm = "dp-adam"; gradient = { rate = 0.2 }; scale = [1, 2, 1]
algorithm = "dp-adam"; step = 0.1
"#;

fn run_file(sampler: &str, run: &str) -> String {
    let text = edit(
        RUN,
        "algorithm = \"barker\"\nstep = 0.0001",
        &sampler.replace("; ", "\n"),
    );
    edit(
        &text,
        "iterations = 300",
        &format!("iterations = 40\n{run}"),
    )
}

fn notes_a_point(summary: &Value) -> bool {
    let mut notes = summary["notes"].as_array().unwrap().iter();
    notes.any(|n| n.as_str().unwrap().contains("no posterior draw"))
}

/// Forty gradients are charged, of the rate, clip and noise that were asked for; one point a chain
/// is kept, at the end; no summary makes an interval of it.
#[test]
fn private_optimisers_keep_their_promises() {
    for sampler in PRIVATE.lines().filter(|l| !l.is_empty()) {
        for chains in [1, 2] {
            let place = Place::new(&run_file(sampler, ""));
            let flags = format!("--chains {chains}");
            let check = place.works(&format!("check run.toml {flags}"));
            assert!(check.contains("an optimiser ends at a point"), "{check}");
            let said = place.works(&format!("sample run.toml --out out {flags}"));
            assert!(said.contains("40 steps, no draws"), "{said}");
            assert!(!said.contains("95%") && !said.contains("r_hat"), "{said}");
            let draws = place.draws("out");
            let kept: Vec<(i32, i64)> = draws.rows.iter().map(|r| (r.0, r.1)).collect();
            let expected: Vec<(i32, i64)> = (0..chains).map(|c| (c, 40)).collect();
            assert_eq!(kept, expected, "{sampler}");
            let certificate = place.certificate("out");
            let events = certificate["events"].as_array().unwrap();
            assert_eq!(events.len(), 1, "{sampler}: {certificate}");
            assert_eq!(number(&events[0], "count"), 40.0 * f64::from(chains));
            let subsampled = sampler.contains("rate");
            let kind = match subsampled {
                true => "poisson_gaussian",
                false => "discrete_gaussian",
            };
            assert_eq!(events[0]["kind"], kind, "{certificate}");
            if sampler.contains("tau") {
                // Events are rounded to a public grid, to the dearer side.
                let ratio = number(&events[0], "sigma") / number(&events[0], "sensitivity");
                assert!((1.995..=2.0).contains(&ratio), "{certificate}");
                assert!((number(&events[0], "sensitivity") - 1.0).abs() < 1e-5);
                assert!((0.1..0.1003).contains(&number(&events[0], "rate")));
            } else {
                // The noise that the budget asks for uses nearly all of it up.
                let spent = number(&certificate, "epsilon_spent");
                assert!(spent > 3.0 && spent <= 5.0, "{sampler}: {spent}");
            }
            assert_eq!(certificate["status"], "finished");
            let summary: Value = serde_json::from_str(&place.works("summary out --json")).unwrap();
            assert!(summary["parameters"].as_array().unwrap().is_empty());
            let points = summary["points"].as_array().unwrap();
            assert_eq!(points.len(), 3);
            assert_eq!(
                points[0]["values"].as_array().unwrap().len(),
                chains as usize
            );
            assert!(notes_a_point(&summary));
            place.refuses("summary out --plot out.svg");
            place.works("report out --out page.html");
            let page = std::fs::read_to_string(place.path("page.html")).unwrap();
            assert!(page.contains("Where the optimiser ended") && !page.contains("95 %"));
        }
    }
}

/// Without privacy and with a seed, a run in two halves ends where a whole one does; Adam's
/// moments are taken up again.
#[test]
fn a_resumed_optimiser_goes_on_where_it_was() {
    for sampler in ["algorithm = \"sgd\"", "algorithm = \"adam\""] {
        let place = Place::new(&run_file(sampler, "seed = 5"));
        let flags = "--not-private --quiet --chains 2";
        place.works(&format!(
            "sample run.toml --out whole {flags} --iterations 80"
        ));
        place.works(&format!("sample run.toml --out halves {flags}"));
        place.works("sample --resume halves --iterations 80 --quiet");
        let (whole, halves) = (place.draws("whole"), place.draws("halves"));
        assert_eq!(whole.rows.len(), 2);
        // The first half's end was published, and stays.
        assert_eq!(halves.rows.len(), 4);
        let last = |draws: &[(i32, i64, Vec<f64>)]| -> Vec<Vec<f64>> {
            draws
                .iter()
                .filter(|r| r.1 == 80)
                .map(|r| r.2.clone())
                .collect()
        };
        assert_eq!(last(&whole.rows), last(&halves.rows), "{sampler}");
    }
}

/// A budget that a given noise uses up ends the run at the point that it had reached.
#[test]
fn a_budget_that_ends_leaves_the_point() {
    let sampler = "algorithm = \"dp-sgd\"; gradient = { tau = 1.0 }";
    let place = Place::new(&run_file(sampler, ""));
    place.works("sample run.toml --out out --quiet --iterations 4000");
    let certificate = place.certificate("out");
    assert_eq!(certificate["status"], "budget spent");
    let draws = place.draws("out");
    assert_eq!(draws.rows.len(), 1);
    assert_eq!(draws.rows[0].1 as f64, number(&certificate, "iterations"));
}

const REFUSED: &str = r#"
algorithm = "sgd"                                         => --not-private; dp-sgd
algorithm = "adam"                                        => --not-private; dp-adam
algorithm = "dp-sgd"; gradient = { rate = 1.5 }           => sampler.gradient.rate; (0, 1], not 1.5
algorithm = "dp-sgd"; gradient = { extra_tau = 1 }        => sampler.gradient.extra_tau; 'tau'
algorithm = "dp-sgd"; gradient = { tau = 0 }              => sampler.gradient.tau; positive
algorithm = "dp-sgd"; gradient = { tau = 0.1 }            => too small for a single step; a larger gradient.tau
algorithm = "dp-adam"; friction = 0.1                     => sampler.friction; no use
algorithm = "dp-adam"; gradient = { tau = 1e12 }          => sampler.gradient; cannot be drawn
"#;

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_charged() {
    for line in REFUSED.lines().filter(|l| !l.is_empty()) {
        let (sampler, words) = line.split_once("=>").unwrap();
        let place = Place::new(&run_file(sampler.trim(), ""));
        let message = place.refuses("sample run.toml --out out");
        for word in words.split(';').map(str::trim) {
            assert!(message.contains(word), "{line}: {message}");
        }
        assert!(!place.path("out").exists(), "{line}");
    }
}

/// On Adult at ε = 3 both come near the mode, which Adam without noise finds: its log loss on
/// held-out rows is 0.342 (that of no feature is 0.55). Over 12 seeds the private ones were 0.3422
/// and 0.3440, with standard deviations of 0.0002 and 0.0009; ten of the larger are allowed.
#[test]
fn private_optimisers_come_near_the_mode_on_adult() {
    let run = std::fs::read_to_string(repository("examples/adult_sgld.toml")).unwrap();
    let start = run.find("[sampler]").unwrap();
    let run = run[..start].replace("data/", &repository("examples/data/"));
    let loss = |sampler: &str, iterations: u32, flags: &str| {
        let tail = format!(
            "[sampler]\n{}\n[run]\niterations = {iterations}\nengine = \"cpu\"\n",
            sampler.replace("; ", "\n")
        );
        let place = Place::new(&format!("{run}{tail}"));
        place.works(&format!(
            "sample run.toml --out out --quiet --chains 1 {flags}"
        ));
        let summary: Value = serde_json::from_str(&place.works("summary out --json")).unwrap();
        number(&summary, "test_log_loss")
    };
    let open = "--not-private --seed 1";
    let mode = loss("algorithm = \"adam\"; step = 0.1", 500, open);
    assert!((mode - 0.342).abs() < 0.001, "{mode}");
    let budget = "--epsilon 3 --delta 1e-5";
    for (sampler, steps) in [
        (
            "algorithm = \"dp-sgd\"; step = 0.5; gradient = { clip = 2.5, rate = 0.02 }",
            2000,
        ),
        (
            "algorithm = \"dp-adam\"; step = 0.05; gradient = { rate = 0.02 }",
            1000,
        ),
    ] {
        let at = loss(sampler, steps, budget);
        assert!(at < mode + 0.011, "{sampler}: {at} against {mode}");
    }
}

/// Without a `step`, on models whose curvature no bound tells: a network of one layer, with one
/// output and with two, and a law with a parameter that rows share. Steps of N ended anywhere.
#[test]
fn usual_steps_end_near_the_rows_on_any_model() {
    let x = |i: u32| (f64::from(i) * 2.399_963).sin();
    let noise = |i: u32| (f64::from(i % 12) - 5.5) / (143.0f64 / 12.0).sqrt();
    let two = "positive = [\"1\"]\nnegative = [\"0\"]";
    for (kind, label, [least, most]) in [
        ("mlp\"\nhidden = 4\n#", two, [-20.0, 20.0]),
        ("mlp\"\nhidden = 4\n#", "classes = 2", [-20.0, 20.0]),
        (
            "gaussian\"\nparameters.log_sigma = { mean = 0, sd = 1 }\n#",
            "clamp = [-3, 3]",
            [-1.0, 1.0],
        ),
    ] {
        // At the origin a network of one layer is symmetric, and its gradient nothing.
        let binary = kind.starts_with("mlp");
        let start = if binary { "\"prior\"" } else { "\"usual\"" };
        let place = Place::new(&format!(
            "[data]\nfile = \"rows.csv\"\n[data.label]\ncolumn = \"y\"\n{label}\n\
             [[data.features]]\ncolumn = \"x\"\nclamp = [-1, 1]\n\
             [model]\nkind = \"{kind}\"\nprior = {{ kind = \"normal\", sd = 2 }}\n\
             [sampler]\nalgorithm = \"sgd\"\n[run]\niterations = 300\nseed = 3\nstart = {start}\n\
             [privacy]\nnot_private = true\n"
        ));
        let y = |i: u32| match binary {
            true => f64::from(u8::from(x(i) + 0.3 * noise(i) > 0.0)),
            false => 0.5 * x(i) + 0.5 * noise(i),
        };
        let lines = (0..2_000).map(|i| format!("{:.4},{}\n", x(i), y(i)));
        place.write(
            "rows.csv",
            &lines.fold("x,y\n".to_string(), |all, line| all + &line),
        );
        place.works("sample run.toml --out out --quiet");
        let end = place.draws("out").rows.pop().unwrap().2;
        assert!(
            end.iter().all(|v| (least..=most).contains(v)),
            "{kind}: {end:?}"
        );
        assert!(end.iter().any(|v| v.abs() > 0.2), "{kind}: {end:?}");
        if !binary {
            assert!(
                (end[0] - 0.5).abs() < 0.05 && (end[1] - 0.5f64.ln()).abs() < 0.05,
                "{end:?}"
            );
        }
    }
}
