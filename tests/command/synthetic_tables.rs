//! The promise: made-up labels follow the law of the model by one draw a set, in the label's own
//! words, beside features as they were.

use crate::common::place::{Place, RUN, edit};

const SETS: usize = 4;
const ROWS: usize = 4000;

fn features() -> String {
    let rows = (0..ROWS).map(|i| {
        let (a, b) = (
            f64::from(i as u32 % 41) / 20.0 - 1.0,
            f64::from(i as u32 % 9) / 4.0 - 1.0,
        );
        format!("{b},\"row {i}, public\",{a}\n")
    });
    format!("b,name,a\n{}", rows.collect::<String>())
}

fn lines(place: &Place, set: usize) -> Vec<String> {
    let text = std::fs::read_to_string(place.path(&format!("made/set-{set}.csv"))).unwrap();
    text.lines().map(String::from).collect()
}

#[test]
fn labels_follow_one_draw_a_set_in_their_own_words() {
    let run = edit(
        RUN,
        "column = \"y\"",
        "column = \"y\"\npositive = [\"1\"]\nnegative = [\"0\"]",
    );
    let run = edit(&run, "\"barker\"\nstep = 0.0001", "\"anchored-barker\"");
    // A wide posterior, so that no draw passes for another.
    let run = edit(&run, "epsilon = 5.0", "epsilon = 0.5");
    let place = Place::new(&run);
    place.write("features.csv", &features());
    place.works("sample run.toml --out out --quiet");
    let text = place.works("synthesize out --table features.csv --sets 4 --out made --seed 3");
    assert!(text.contains("4 sets of 4000 rows"), "{text}");
    let draws = place.draws("out").rows;
    for set in 0..SETS {
        let lines = lines(&place, set + 1);
        assert_eq!(lines[0], "b,name,a,y");
        assert_eq!(lines.len(), ROWS + 1);
        // The draw in the middle of each quarter of the chain.
        let theta = &draws[(2 * set + 1) * draws.len() / (2 * SETS)].2;
        let (mut expected, mut variance, mut positive) = (0.0, 0.0, 0.0);
        for (line, made) in features().lines().zip(&lines).skip(1) {
            let (before, label) = made.rsplit_once(',').unwrap();
            assert_eq!(before, line);
            assert!(label == "0" || label == "1", "{label}");
            let cells: Vec<&str> = line.split(',').collect();
            let number = |k: usize| -> f64 { cells[k].parse().unwrap() };
            let eta = theta[0] + theta[1] * number(3) + theta[2] * number(0);
            let p = 1.0 / (1.0 + (-eta).exp());
            (expected, variance) = (expected + p, variance + p * (1.0 - p));
            positive += f64::from(u8::from(label == "1"));
        }
        // Beyond six standard deviations with a chance under 1e-8.
        let gap: f64 = positive - expected;
        assert!(
            gap.abs() < 6.0 * f64::sqrt(variance) + 1.0,
            "set {set}: {gap}"
        );
    }
    assert_ne!(lines(&place, 1), lines(&place, 2));
    // A seed gives the same labels, another one others.
    let first = lines(&place, 1);
    for (seed, same) in [(3, true), (4, false)] {
        std::fs::remove_dir_all(place.path("made")).unwrap();
        let command =
            format!("synthesize out --table features.csv --sets 4 --out made --seed {seed} --json");
        let told: serde_json::Value = serde_json::from_str(&place.works(&command)).unwrap();
        assert_eq!(told["files"].as_array().unwrap().len(), SETS);
        assert_eq!(lines(&place, 1) == first, same);
    }
}

/// A set is a table that the run file's own declarations read: numbers in their own units, counts
/// as whole numbers.
#[test]
fn a_set_is_a_table_like_the_runs_own() {
    for (label, model) in [
        ("scale = [-3, 5]", "\"linear\"\nvariance = 0.001"),
        ("count = 9", "\"poisson\""),
    ] {
        let run = edit(RUN, "column = \"y\"", &format!("column = \"y\"\n{label}"));
        let run = edit(&run, "step = 0.0001", "step = 0.0001\nclip = { rate = 1 }");
        let place = Place::new(&edit(&run, "\"logistic\"", model));
        place.write("features.csv", "a,b\n0.5,0.25\n-0.5,0.25\n");
        place.works("sample run.toml --out out --quiet");
        place.works("synthesize out --table features.csv --sets 3 --out made");
        for line in lines(&place, 2).iter().skip(1) {
            let y: f64 = line.rsplit_once(',').unwrap().1.parse().unwrap();
            // The draws begin at 0, the middle of the scale's range: 1.
            let fits = if label.starts_with("count") {
                y >= 0.0 && y.fract() == 0.0
            } else {
                (y - 1.0).abs() < 1.5
            };
            assert!(fits, "{line}");
        }
        place.works("compare out --table made/set-1.csv");
    }
}

#[test]
fn what_cannot_be_made_up_is_refused() {
    let place = Place::new(RUN);
    place.write("features.csv", "a,b\n0.5,0.25\n");
    place.write("labelled.csv", "a,b,y\n0.5,0.25,1\n");
    std::fs::create_dir(place.path("full")).unwrap();
    place.write("full/file", "kept");
    place.works("sample run.toml --out out --quiet");
    for (command, words) in [
        ("--table labelled.csv --out made", "has a column 'y'"),
        ("--table features.csv --out made --sets 0", "1 to 300 sets"),
        (
            "--table features.csv --out made --sets 301",
            "1 to 300 sets",
        ),
        ("--table features.csv --out full", "is not empty"),
    ] {
        let message = place.refuses(&format!("synthesize out {command}"));
        assert!(message.contains(words), "{command}: {message}");
        assert!(!place.path("made").exists());
    }
}

/// Estimates of many sets combine into the posterior's own variance by the rule of the guide, and
/// not by that for partially synthetic data. What the variance between 300 sets makes of it lies
/// below 0.52 or above 1.6 times the posterior's with a chance under 1e-6 (chi-square, 299 degrees
/// of freedom, of a variance 1.22 times the posterior's).
#[test]
fn sets_combine_into_the_posteriors_own_variance() {
    const MANY: usize = 300;
    let run = edit(RUN, "[[data.features]]\nintercept = true\n", "");
    let run = edit(&run, "[\"a\", \"b\"]", "[\"a\"]");
    let run = edit(&run, "column = \"y\"", "column = \"y\"\nclamp = [-9, 9]");
    let run = edit(&run, "\"logistic\"", "\"linear\"\nvariance = 0.25");
    let run = edit(&run, "\"barker\"\nstep = 0.0001", "\"anchored-barker\"");
    let run = edit(&run, "iterations = 300", "iterations = 4000");
    let place = Place::new(&run);
    place.write("features.csv", &features());
    place.works("sample run.toml --out out --quiet");
    place.works(&format!(
        "synthesize out --table features.csv --sets {MANY} --out made --seed 8"
    ));
    let draws: Vec<f64> = place.draws("out").rows.iter().map(|r| r.2[0]).collect();
    let variance = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        squares / (values.len() as f64 - 1.0)
    };
    let (mut estimates, mut own) = (Vec::new(), 0.0);
    for set in 1..=MANY {
        let lines = lines(&place, set);
        let pairs = lines.iter().skip(1).map(|line| {
            let cells: Vec<&str> = line.rsplitn(3, ',').collect();
            let number = |k: usize| -> f64 { cells[k].parse().unwrap() };
            (number(1), number(0))
        });
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let squares: f64 = pairs.iter().map(|(x, _)| x * x).sum();
        let slope = pairs.iter().map(|(x, y)| x * y).sum::<f64>() / squares;
        let left: f64 = pairs.iter().map(|(x, y)| (y - slope * x).powi(2)).sum();
        estimates.push(slope);
        own += left / (ROWS as f64 - 1.0) / squares / MANY as f64;
    }
    let (between, posterior) = (variance(&estimates), variance(&draws));
    let rule = (1.0 + 1.0 / MANY as f64) * between - own;
    let of_replaced_labels = own + between / MANY as f64;
    assert!(
        (0.52..1.6).contains(&(rule / posterior)),
        "{rule} {posterior}"
    );
    assert!(
        of_replaced_labels < 0.3 * posterior,
        "{of_replaced_labels} {posterior}"
    );
}
