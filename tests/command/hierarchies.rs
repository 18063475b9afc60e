//! The promise: levels that share a prior are pooled as far as the data say, whoever draws; what is
//! wrong with a hierarchy is said before anything is spent.

use crate::common::place::{Draws, Place, edit, number, repository};
use dpmc::math::{cholesky, inverse};
use serde_json::Value;

const LEVELS: [(&str, usize); 5] = [("a", 2), ("b", 4), ("c", 9), ("d", 16), ("e", 30)];

const RUN: &str = r#"[data]
file = "t.csv"
[columns]
y = { clamp = [-8, 8] }
x = { scale = [-1, 1] }
g = { levels = ["a", "b", "c", "d", "e"], strict = true }
[model]
kind = "linear"
variance = 1
formula = "y ~ x + (1 | g)"
prior = { kind = "normal", sd = 3 }
[[model.hierarchy]]
name = "g"
kind = "half-cauchy"
scale = 0.8
[sampler]
algorithm = "anchored-barker"
[run]
iterations = 10000
chains = 2
seed = 5
engine = "cpu"
[privacy]
not_private = true
"#;

/// Numbers that look like noise of unit variance.
fn noise(i: usize) -> f64 {
    let t = i as f64;
    1.414 * (12.989 * t + 4.1 * t * t).sin()
}

/// Rows (y, x, level).
fn rows() -> Vec<(f64, f64, usize)> {
    let mut rows = Vec::new();
    for (g, (_, count)) in LEVELS.iter().enumerate() {
        for _ in 0..*count {
            let i = rows.len();
            let x = ((37 * i % 65) as f64 - 32.0) / 32.0;
            let effect = [0.9, -0.6, 0.4, -1.0, 0.3][g];
            rows.push((0.5 + 0.7 * x + effect + noise(i), x, g));
        }
    }
    rows
}

fn place(run: &str) -> Place {
    let place = Place::new(run);
    let line = |(y, x, g): (f64, f64, usize)| format!("{y:.5},{x:.5},{}\n", LEVELS[g].0);
    let lines: String = rows().into_iter().map(line).collect();
    place.write("t.csv", &format!("y,x,g\n{lines}"));
    place
}

/// Means of the coefficients, and points of τ with their masses: given τ the posterior is normal
/// (Lindley & Smith 1972), and τ is integrated by midpoints in τ/(1 + τ).
fn posterior() -> (Vec<f64>, Vec<(f64, f64)>) {
    let d = 2 + LEVELS.len();
    let (mut k, mut a) = (vec![0.0; d * d], vec![0.0; d]);
    for (y, x, g) in rows() {
        let mut row = vec![0.0; d];
        (row[0], row[1], row[2 + g]) = (1.0, x, 1.0);
        for i in 0..d {
            a[i] += row[i] * y;
            for j in 0..d {
                k[i * d + j] += row[i] * row[j];
            }
        }
    }
    let (mut masses, mut means) = (Vec::new(), vec![0.0; d]);
    let mut first = None;
    for i in 0..4000 {
        let u = (f64::from(i) + 0.5) / 4000.0;
        let tau = u / (1.0 - u);
        let mut whole = k.clone();
        for j in 0..d {
            whole[j * d + j] += if j < 2 { 1.0 / 9.0 } else { tau.powi(-2) };
        }
        let covariance = inverse(&whole, d).unwrap();
        let centre: Vec<f64> = covariance
            .chunks(d)
            .map(|row| row.iter().zip(&a).map(|(c, a)| c * a).sum())
            .collect();
        let root = cholesky(&whole, d).unwrap();
        let log_volume: f64 = -(0..d).map(|j| root[j * d + j].ln()).sum::<f64>();
        let fit: f64 = 0.5 * a.iter().zip(&centre).map(|(a, c)| a * c).sum::<f64>();
        let log = fit + log_volume - LEVELS.len() as f64 * tau.ln();
        let top = *first.get_or_insert(log) + 30.0;
        let prior = 1.0 / (1.0 + (tau / 0.8).powi(2));
        let mass = (log - top).exp() * prior / (1.0 - u).powi(2);
        masses.push((tau, mass));
        means
            .iter_mut()
            .zip(centre)
            .for_each(|(m, c)| *m += mass * c);
    }
    let sum: f64 = masses.iter().map(|m| m.1).sum();
    masses.iter_mut().for_each(|m| m.1 /= sum);
    means.iter_mut().for_each(|m| *m /= sum);
    (means, masses)
}

fn column(draws: &Draws, name: &str) -> Vec<f64> {
    let j = draws.columns.iter().position(|c| c == name).unwrap();
    draws.rows.iter().map(|row| row.2[j - 2]).collect()
}

/// Means of all coefficients, and the share of τ below three points, against numeric integration,
/// within 5.5 of their standard errors by the effective draws (4e-8 each). A missing Jacobian, a
/// variance in place of an sd or unpooled levels are off by tens of them.
fn is_the_posterior(run: &str) {
    let place = place(run);
    place.works("sample run.toml --out out --quiet");
    let summary: Value = serde_json::from_str(&place.works("summary out --json")).unwrap();
    let (means, masses) = posterior();
    let parameters = summary["parameters"].as_array().unwrap();
    assert_eq!(parameters.len(), means.len() + 1);
    assert_eq!(parameters[means.len()]["name"], "sd(g)");
    for (parameter, known) in parameters.iter().zip(&means) {
        let error = number(parameter, "sd") / number(parameter, "ess_bulk").sqrt();
        let seen = number(parameter, "mean");
        assert!((seen - known).abs() < 5.5 * error, "{parameter} {known}");
    }
    let draws = place.draws("out");
    let taus = column(&draws, "sd(g)");
    let ess = number(&parameters[means.len()], "ess_bulk").min(taus.len() as f64);
    assert!(ess > 1000.0, "{ess}");
    for point in [0.4, 0.8, 1.4] {
        let below = |m: &&(f64, f64)| m.0 < point;
        let known: f64 = masses.iter().filter(below).map(|m| m.1).sum();
        let seen = taus.iter().filter(|t| **t < point).count() as f64 / taus.len() as f64;
        let error = (known * (1.0 - known) / ess).sqrt();
        assert!(
            (seen - known).abs() < 5.5 * error,
            "τ < {point}: {seen} {known}"
        );
    }
}

/// Draws of the released expansion, by Gibbs: a linear model is its own quadratic.
#[test]
fn an_anchor_draws_the_posterior() {
    is_the_posterior(RUN);
}

/// Chains over the coefficients alone, by decisions, along gradients or not.
#[test]
#[ignore = "study"]
fn chains_draw_the_posterior() {
    let longer = edit(
        RUN,
        "iterations = 10000",
        "iterations = 150000\nwarmup = 10000\nthin = 10",
    );
    is_the_posterior(&edit(&longer, "anchored-barker", "mh"));
    let gradients = edit(
        RUN,
        "iterations = 10000",
        "iterations = 20000\nwarmup = 1000",
    );
    is_the_posterior(&edit(&gradients, "anchored-barker", "hmc"));
}

/// Blocks say the same as a formula: the draws of one seed are the same.
#[test]
fn features_may_be_named_instead() {
    let by_formula = place(RUN);
    by_formula.works("sample run.toml --out out --quiet --iterations 50");
    let blocks = r#"[data.label]
column = "y"
clamp = [-8, 8]
[[data.features]]
intercept = true
[[data.features]]
column = "x"
scale = [-1, 1]
[[data.features]]
column = "g"
one_hot = ["a", "b", "c", "d", "e"]
strict = true
"#;
    let (head, tail) = RUN.split_once("[columns]").unwrap();
    let (_, tail) = tail.split_once("[model]").unwrap();
    let run = format!("{head}{blocks}[model]{tail}");
    let run = edit(&run, "formula = \"y ~ x + (1 | g)\"\n", "");
    let run = edit(&run, "name = \"g\"\n", "name = \"g\"\nfeatures = [\"g\"]\n");
    let by_blocks = place(&run);
    by_blocks.works("sample run.toml --out out --quiet --iterations 50");
    assert_eq!(by_formula.draws("out").rows, by_blocks.draws("out").rows);
    let check = by_blocks.works("check run.toml");
    assert!(check.contains("sd(g), sampled, of g=a"), "{check}");
    // And without one each it is refused.
    let none = edit(&run, "features = [\"g\"]\n", "");
    by_blocks.write("run.toml", &none);
    assert!(
        by_blocks
            .refuses("check run.toml")
            .contains("needs 'features'")
    );
    for (from, to, said) in [
        ("[\"g\"]", "[\"x\"]", "is of one coefficient"),
        ("[\"g\"]", "[\"h\"]", "is no column, product or coefficient"),
        ("[\"g\"]", "[\"g=a\", \"intercept\"]", "is the intercept"),
        (
            "strict = true",
            "strict = true\nreference = \"a\"",
            "has a reference",
        ),
    ] {
        by_blocks.write("run.toml", &edit(&run, from, to));
        let message = by_blocks.refuses("check run.toml");
        assert!(message.contains(said), "{message}");
    }
}

/// A private run, gone on with: its draws have τ, predictions and priors work, held-out scores too.
#[test]
fn answers_follow_from_a_private_run() {
    let run = edit(RUN, "not_private = true", "epsilon = 8\ndelta = 1e-6");
    let run = edit(
        &run,
        "[model]",
        "[test]\nfile = \"held.csv\"\npublic = true\n[model]",
    );
    let run = edit(&run, "y ~ x + (1 | g)", "y ~ x + (x | g)");
    let slopes = "[[model.hierarchy]]\nname = \"x | g\"\nscale = 1\n[sampler]";
    let place = place(&edit(&run, "[sampler]", slopes));
    place.write("held.csv", "y,x,g\n1.0,0.5,a\n0.2,-0.5,e\n");
    place.write("new.csv", "x,g\n0.5,a\n-0.5,e\n");
    place.works("sample run.toml --out out --quiet --iterations 200");
    place.works("sample --resume out --quiet --iterations 400");
    let draws = place.draws("out");
    assert_eq!(draws.columns[2 + 12..], ["sd(g)", "sd(x | g)"]);
    assert!(column(&draws, "sd(x | g)").iter().all(|t| *t > 0.0));
    let told = place.works("predict out --table new.csv");
    assert_eq!(told.lines().count(), 3);
    assert!(place.works("summary out").contains("sd(x | g)"));
    assert!(place.works("summary out --json").contains("test_log_loss"));
    assert!(place.works("prior run.toml").contains("mean"));
    place.works("effects out --table new.csv --shift x=0.1");
}

/// What does not go together is refused with the reason, and nothing is charged.
#[test]
fn what_is_wrong_is_said() {
    let private = edit(RUN, "not_private = true", "epsilon = 1\ndelta = 1e-6");
    for (from, to, said) in [
        ("name = \"g\"", "name = \"h\"", "sd(g) needs a prior"),
        ("scale = 0.8", "scale = 0", "must be positive"),
        (
            "scale = 0.8",
            "scale = 1e-100",
            "model.hierarchy[0].scale: must lie between 1e-18 and 1e18",
        ),
        (
            "scale = 0.8",
            "scale = 0.8\ndegrees = 3",
            "belongs to kind = \"half-student-t\"",
        ),
        ("\"half-cauchy\"", "\"half-student-t\"", "needs 'degrees'"),
        (
            "scale = 0.8",
            "scale = 0.8\nfeatures = [\"g\"]",
            "delete 'features'",
        ),
        ("(1 | g)", "g", "write (1 | g)"),
        ("(1 | g)", "(1 | x)", "'x' has no levels in [columns]"),
        ("(1 | g)", "(1 | town)", "column 'town' is not declared"),
        (
            "(1 | g)",
            "(1 | town)",
            "write town = { levels = [\"A\", \"B\"] } in [columns]",
        ),
        ("(1 | g)", "(1 | town)", "by data.unit"),
        (
            "[sampler]",
            "[model.parameters]\nlog_sigma = { mean = 0, sd = 1 }\n[sampler]",
            "kind = \"gaussian\" draws its log_sigma",
        ),
        ("strict = true", "reference = \"a\"", "none is a reference"),
        (
            "{ kind = \"normal\", sd = 3 }",
            "{ kind = \"laplace\", scale = 1 }",
            "normal, student-t or horseshoe",
        ),
        (
            "{ kind = \"normal\", sd = 3 }",
            "{ kind = \"student-t\", scale = 1 }",
            "'degrees'",
        ),
        ("\"anchored-barker\"", "\"dp-sgld\"", "has a pole"),
        (
            "\"anchored-barker\"",
            "\"anchored-barker\"\nanchor = { decisions = 0.1 }",
            "makes no decisions",
        ),
        ("seed = 5", "seed = 5\ndraws = \"chain\"", "in them always"),
        ("variance = 1", "variance = 1\nbox = 5", "no box"),
    ] {
        let place = place(&edit(&private, from, to));
        let message = place.refuses("sample run.toml --out out --quiet");
        assert!(message.contains(said), "{from} → {to}: {message}");
        assert!(!place.path("out/draws.parquet").exists());
    }
}

/// Priors of single coefficients: heavy tails and the horseshoe, at an anchor and by decisions.
#[test]
#[ignore = "study"]
fn other_priors_of_coefficients_are_drawn() {
    let alone = edit(RUN, "y ~ x + (1 | g)", "y ~ x + g");
    let (start, rest) = alone.split_once("[[model.hierarchy]]").unwrap();
    let alone = format!(
        "{start}[sampler]{}",
        rest.split_once("[sampler]").unwrap().1
    );
    for prior in [
        "{ kind = \"student-t\", degrees = 4, scale = 1 }",
        "{ kind = \"horseshoe\", scale = 0.5, intercept_sd = 3 }",
    ] {
        let run = edit(&alone, "{ kind = \"normal\", sd = 3 }", prior);
        let longer = edit(
            &run,
            "iterations = 10000",
            "iterations = 40000\nwarmup = 5000\nthin = 5",
        );
        let longer = edit(&longer, "anchored-barker", "mh");
        let [anchored, decided] = [run, longer].map(|run| {
            let place = place(&run);
            place.works("sample run.toml --out out --quiet");
            let told = place.works("summary out --json");
            serde_json::from_str::<Value>(&told).unwrap()
        });
        for name in ["x", "g=e"] {
            let of = |summary: &Value| {
                let mut all = summary["parameters"].as_array().unwrap().iter();
                let own = all.find(|p| p["name"] == name).unwrap();
                let error = number(own, "sd") / number(own, "ess_bulk").sqrt();
                (number(own, "mean"), error)
            };
            let ((a, one), (b, two)) = (of(&anchored), of(&decided));
            let gap = (a - b).abs();
            assert!(gap < 5.5 * one.hypot(two), "{prior} {name}: {a} {b}");
        }
    }
}

/// The run files of the guide's page run.
#[test]
fn what_the_guide_shows_runs() {
    let page = std::fs::read_to_string(repository("docs/guide/hierarchies.md")).unwrap();
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).collect();
    assert!(blocks.len() >= 2);
    let mut run = String::new();
    for block in blocks {
        let block = block.split("```").next().unwrap();
        if block.starts_with("[data]") {
            let data = repository("examples/data/adult_train.csv.gz");
            run = edit(block, "examples/data/adult_train.csv.gz", &data);
        } else {
            // A piece in place of the first file's prior.
            let prior = run.lines().find(|l| l.starts_with("prior = ")).unwrap();
            run = edit(&run, prior, block.trim_end());
        }
        let place = Place::new(&run);
        let check = place.works("check run.toml");
        let shown = page.split("```text\n").nth(1).unwrap();
        let shown = shown.split("```").next().unwrap();
        assert!(
            check.contains("horseshoe") || check.contains(shown),
            "{check}"
        );
        place.works("sample run.toml --out out --quiet --iterations 50");
        assert!(place.draws("out").last() >= 1, "{run}");
    }
}
