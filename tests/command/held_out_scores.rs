//! The promise: predictions are scored on the public table that a run file names, as the saved
//! draws say: a network's head averaged over draws, for a binary label and for classes; a linear
//! regression's mean and density, a Poisson regression's probabilities.

use crate::common::place::{Place, RUN, edit, table};

const HIDDEN: usize = 3;
const FEATURES: usize = 3;

/// Outputs of one row: W₁, b₁, W₂, b₂ one after the other.
fn outputs(theta: &[f64], row: [f64; FEATURES], count: usize) -> Vec<f64> {
    let bias = FEATURES * HIDDEN;
    let second = bias + HIDDEN;
    let last = second + HIDDEN * count;
    let unit = |h: usize| -> f64 {
        let sum: f64 = (0..FEATURES)
            .map(|j| theta[h * FEATURES + j] * row[j])
            .sum();
        (sum + theta[bias + h]).tanh()
    };
    (0..count)
        .map(|k| {
            let sum: f64 = (0..HIDDEN)
                .map(|h| theta[second + k * HIDDEN + h] * unit(h))
                .sum();
            sum + theta[last + k]
        })
        .collect()
}

/// Probability of y = 1.
fn probability(theta: &[f64], row: [f64; FEATURES], count: usize) -> f64 {
    let o = outputs(theta, row, count);
    let odds = if count == 1 { o[0] } else { o[1] - o[0] };
    1.0 / (1.0 + (-odds).exp())
}

#[test]
fn a_network_is_scored_by_its_draws() {
    for count in [1, 2] {
        let mut run = edit(RUN, "\"logistic\"", "\"mlp\"\nhidden = 3");
        run = edit(&run, "tempering = 1.0\n", "");
        run = edit(
            &run,
            "algorithm = \"barker\"\nstep = 0.0001",
            "algorithm = \"sgld\"\nstep = 0.01",
        );
        run = edit(
            &run,
            "iterations = 300",
            "iterations = 300\nchains = 1\nseed = 5\nstart = \"prior\"",
        );
        run = edit(&run, "epsilon = 5.0\ndelta = 1e-6", "not_private = true");
        run = edit(
            &run,
            "[model]",
            "[test]\nfile = \"held.csv\"\npublic = true\n[model]",
        );
        if count == 2 {
            run = edit(&run, "column = \"y\"", "column = \"y\"\nclasses = 2");
        }
        let place = Place::new(&run);
        let held = table(60);
        place.write("held.csv", &held);
        let text = place.works("sample run.toml --out out");
        assert!(text.contains("test accuracy"), "{text}");
        let summary: serde_json::Value =
            serde_json::from_str(&place.works("summary out --json")).unwrap();
        let draws = place.draws("out").rows;
        assert_eq!(draws.len(), 300);
        let (mut hits, mut loss, mut rows) = (0.0, 0.0, 0.0);
        for line in held.lines().skip(1) {
            let cells: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
            let row = [1.0, cells[0], cells[1]];
            let all = draws
                .iter()
                .map(|(_, _, theta)| probability(theta, row, count));
            let p = all.sum::<f64>() / draws.len() as f64;
            let of_label = if cells[2] == 1.0 { p } else { 1.0 - p };
            hits += f64::from(of_label > 0.5);
            loss -= of_label.ln();
            rows += 1.0;
        }
        let found = |key: &str| summary[key].as_f64().unwrap();
        assert_eq!(found("test_accuracy"), hits / rows);
        let gap = found("test_log_loss") - loss / rows;
        assert!(gap.abs() < 1e-4, "{gap}");
    }
}

/// Labels 0 to 4, which the training rows (0 and 1) hardly hint at.
fn counted(rows: u32) -> String {
    let mut text = String::from("a,b,y\n");
    for i in 0..rows {
        let (a, b) = (
            f64::from(i * 37 % 41) / 20.0 - 1.0,
            f64::from(i % 9) / 4.0 - 1.0,
        );
        text += &format!("{a:.4},{b:.4},{}\n", i * 7 % 5);
    }
    text
}

/// log p(y | η).
fn log_density(kind: &str, y: f64, eta: f64) -> f64 {
    match kind {
        "linear" => {
            -(y - eta).powi(2) / (2.0 * 0.7) - (2.0 * std::f64::consts::PI * 0.7).ln() / 2.0
        }
        _ => y * eta - eta.exp() - (1..=y as u64).map(|k| (k as f64).ln()).sum::<f64>(),
    }
}

#[test]
fn a_regression_is_scored_by_its_draws() {
    for (kind, model, label) in [
        ("linear", "\"linear\"\nvariance = 0.7", "clamp = [0, 4]"),
        ("poisson", "\"poisson\"", "count = 4"),
    ] {
        let mut run = edit(RUN, "\"logistic\"", model);
        run = edit(&run, "column = \"y\"", &format!("column = \"y\"\n{label}"));
        run = edit(&run, "algorithm = \"barker\"", "algorithm = \"mh\"");
        run = edit(&run, "step = 0.0001", "step = 0.05");
        run = edit(
            &run,
            "iterations = 300",
            "iterations = 300\nchains = 1\nseed = 5",
        );
        run = edit(&run, "epsilon = 5.0\ndelta = 1e-6", "not_private = true");
        run = edit(
            &run,
            "[model]",
            "[test]\nfile = \"held.csv\"\npublic = true\n[model]",
        );
        let place = Place::new(&run);
        let held = counted(60);
        place.write("held.csv", &held);
        let text = place.works("sample run.toml --out out");
        let expected = match kind {
            "linear" => "test root mean square error ",
            _ => "test log loss ",
        };
        assert!(text.contains(expected), "{text}");
        let again = place.works("summary out");
        assert!(
            again.contains(expected) && text.starts_with(&again),
            "{again}"
        );
        let summary: serde_json::Value =
            serde_json::from_str(&place.works("summary out --json")).unwrap();
        let draws = place.draws("out").rows;
        let (mut square, mut loss) = (0.0, 0.0);
        for line in held.lines().skip(1) {
            let cells: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
            let etas: Vec<f64> = draws
                .iter()
                .map(|(_, _, t)| t[0] + t[1] * cells[0] + t[2] * cells[1])
                .collect();
            let n = etas.len() as f64;
            let p: f64 = etas
                .iter()
                .map(|e| log_density(kind, cells[2], *e).exp())
                .sum();
            square += (etas.iter().sum::<f64>() / n - cells[2]).powi(2) / 60.0;
            loss -= (p / n).ln() / 60.0;
        }
        let gap = summary["test_log_loss"].as_f64().unwrap() - loss;
        assert!(gap.abs() < 1e-5, "{kind}: {gap}");
        assert!(summary.get("test_accuracy").is_none());
        let error = summary.get("test_rmse").map(|v| v.as_f64().unwrap());
        assert_eq!(error.is_some(), kind == "linear");
        assert!(error.is_none_or(|e| (e - square.sqrt()).abs() < 1e-5));
    }
}
