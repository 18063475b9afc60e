//! The promise: predictions, effects and comparisons follow from the released draws and the public
//! table alone, in the label's own units; whoever asks for more is told why not.

use dpmc::math::normal;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal};
use serde_json::Value;

use super::declared_run_files::{KINDS, is_sampled, run_file, table as all_labels};
use crate::common::place::{Place, RUN, edit, repository, table};

/// New rows without labels.
const NEW: &str = "b,a\n0.5,-0.25\n-1,1\n0.125,0\n";

fn cells() -> Vec<[f64; 3]> {
    let rows = NEW.lines().skip(1).map(|line| {
        let (b, a) = line.split_once(',').unwrap();
        [1.0, a.parse().unwrap(), b.parse().unwrap()]
    });
    rows.collect()
}

fn dot(row: &[f64; 3], theta: &[f64]) -> f64 {
    row.iter().zip(theta).map(|(x, t)| x * t).sum()
}

fn logit(eta: f64) -> f64 {
    1.0 / (1.0 + (-eta).exp())
}

/// Numbers of a CSV text, column by column, by name.
fn column(text: &str, name: &str) -> Vec<f64> {
    let mut lines = text.lines();
    let at = lines.next().unwrap().split(',').position(|n| n == name);
    let at = at.unwrap_or_else(|| panic!("no column {name} in {text}"));
    let cell = |line: &str| line.split(',').nth(at).unwrap().parse().unwrap();
    lines.map(cell).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    let all = value.as_array().unwrap().iter();
    all.map(|v| v.as_f64().unwrap()).collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// As NumPy's percentile.
fn percentile(values: &[f64], p: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() - 1) as f64 * p;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + at.fract() * (high - low)
}

fn sampled(run: &str) -> Place {
    let place = Place::new(run);
    place.write("new.csv", NEW);
    place.works("sample run.toml --out out --quiet");
    place
}

/// A private run whose draws spread as far as its posterior.
fn anchored(run: &str) -> String {
    edit(
        run,
        "algorithm = \"barker\"\nstep = 0.0001",
        "algorithm = \"anchored-barker\"",
    )
}

/// A step that mixes within the few draws of a test.
fn open(run: &str) -> String {
    let run = edit(run, "epsilon = 5.0\ndelta = 1e-6", "not_private = true");
    let run = edit(
        &run,
        "algorithm = \"barker\"\nstep = 0.0001",
        "algorithm = \"hmc\"",
    );
    edit(
        &run,
        "engine = \"cpu\"",
        "engine = \"cpu\"\nchains = 1\nseed = 4\nwarmup = 100",
    )
}

/// Of a run's draws: the mean of a linear predictor, and its variance without the noise of the
/// anchor that state.json has, whose covariance is L⁻ᵀSL⁻¹.
fn quiet(place: &Place, draws: &[Vec<f64>], row: &[f64]) -> [f64; 2] {
    let state = place.json("out/state.json");
    let factor = numbers(&state["anchor"]["metric"]["factor"]);
    let spread = numbers(&state["anchor"]["spread"]);
    let d = row.len();
    // L⁻¹ times the row.
    let mut a = row.to_vec();
    for i in 0..d {
        let known: f64 = (0..i).map(|j| factor[i * d + j] * a[j]).sum();
        a[i] = (a[i] - known) / factor[i * d + i];
    }
    let pairs = (0..d * d).map(|k| (k / d, k % d));
    let noise: f64 = pairs.map(|(i, j)| a[i] * spread[i * d + j] * a[j]).sum();
    let eta = |theta: &Vec<f64>| -> f64 { row.iter().zip(theta).map(|(x, t)| x * t).sum() };
    let etas: Vec<f64> = draws.iter().map(eta).collect();
    let mean = etas.iter().sum::<f64>() / etas.len() as f64;
    let squares = etas.iter().map(|e| (e - mean).powi(2));
    let variance = squares.sum::<f64>() / (etas.len() - 1) as f64;
    [mean, variance - noise]
}

#[test]
fn a_probability_is_averaged_over_the_draws() {
    let place = sampled(&anchored(RUN));
    let draws = place.draws("out").rows;
    let thetas: Vec<Vec<f64>> = draws.iter().map(|(_, _, t)| t.to_vec()).collect();
    let text = place.works("predict out --table new.csv --draws 100000 --intervals 0.8");
    let all = place.json("out/certificate.json");
    assert!(all["epsilon"].as_f64().unwrap() <= 5.0);
    for (i, row) in cells().iter().enumerate() {
        let p: Vec<f64> = draws.iter().map(|(_, _, t)| logit(dot(row, t))).collect();
        let [eta, variance] = quiet(&place, &thetas, row);
        let middle = logit(eta);
        let bend = middle * (1.0 - middle) * (1.0 - 2.0 * middle);
        let mean = middle + 0.5 * bend * variance.max(0.0);
        let expected = [mean, percentile(&p, 0.1), percentile(&p, 0.9)];
        let names = ["probability", "probability_low", "probability_high"];
        for (name, expected) in names.iter().zip(expected) {
            let found = column(&text, name)[i];
            // Rows are kept on a grid of 16 bits. The expansion left out 1e-4 at most in 200 runs;
            // with the noise in it the second probability is off by 3e-3.
            let far = if name.ends_with('y') { 4e-4 } else { 2e-4 };
            assert!((found - expected).abs() < far, "{name} {found} {expected}");
        }
    }
    // The same as JSON, as a file, as Parquet; half of the draws differ.
    let told =
        json(&place.works("predict out --table new.csv --draws 100000 --intervals 0.8 --json"));
    let column_of = |text: &str| column(text, "probability");
    assert_eq!(numbers(&told["columns"]["probability"]), column_of(&text));
    assert_eq!(
        (told["draws"].as_u64(), told["label"].as_str()),
        (Some(300), Some("y"))
    );
    place.works("predict out --table new.csv --out p.csv --draws 100000 --intervals 0.8");
    assert_eq!(std::fs::read_to_string(place.path("p.csv")).unwrap(), text);
    place.works("predict out --table new.csv --out p.parquet");
    let file = std::fs::File::open(place.path("p.parquet")).unwrap();
    let reader = parquet::file::reader::SerializedFileReader::new(file).unwrap();
    let rows = parquet::file::reader::FileReader::metadata(&reader)
        .file_metadata()
        .num_rows();
    assert_eq!(rows, 3);
    // A single row has the same answer.
    let one: Vec<&str> = NEW.lines().take(2).collect();
    place.write("one.csv", &one.join("\n"));
    let alone = place.works("predict out --table one.csv --draws 100000 --intervals 0.8");
    assert_eq!(
        alone,
        text.lines()
            .take(2)
            .map(|l| format!("{l}\n"))
            .collect::<String>()
    );
    place.works("effects out --table one.csv --shift a=0.1");
    let fewer = json(&place.works("predict out --table new.csv --draws 150 --json"));
    assert_eq!(fewer["draws"].as_u64(), Some(150));
}

/// Of a linear regression on a scaled label: means and ends in the label's own units.
#[test]
fn numbers_are_predicted_in_their_own_units() {
    let run = edit(
        &open(RUN),
        "column = \"y\"",
        "column = \"y\"\nscale = [-3, 5]",
    );
    let run = edit(
        &run,
        "kind = \"logistic\"",
        "kind = \"linear\"\nvariance = 0.04",
    );
    let place = sampled(&run);
    let draws = place.draws("out").rows;
    let text = place.works("predict out --table new.csv --draws 100000");
    for (i, row) in cells().iter().enumerate() {
        let means: Vec<f64> = draws
            .iter()
            .map(|(_, _, t)| 1.0 + 4.0 * dot(row, t))
            .collect();
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let found = column(&text, "mean")[i];
        assert!((found - mean).abs() < 1e-3, "{found} {mean}");
        for (name, p) in [("label_low", 0.05), ("label_high", 0.95)] {
            let y = column(&text, name)[i];
            // sd of the noise in the label's units: 0.2 * 4.
            let below = means.iter().map(|m| normal::below((y - m) / 0.8));
            let below = below.sum::<f64>() / means.len() as f64;
            assert!((below - p).abs() < 1e-3, "{name} {below}");
        }
        let ends = ["mean_low", "mean_high"].map(|name| column(&text, name)[i]);
        assert!((ends[0] - percentile(&means, 0.05)).abs() < 1e-3);
        assert!((ends[1] - percentile(&means, 0.95)).abs() < 1e-3);
    }
}

/// Made-up people whose label has a law that the model knows: rows to fit and rows to judge by.
fn made_up(rows: u32, seed: u64, label: impl Fn(f64, &mut ChaCha20Rng) -> f64) -> String {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut text = String::from("a,b,y\n");
    for _ in 0..rows {
        let (a, b) = (rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0));
        let y = label(0.5 + 0.6 * a - 0.4 * b, &mut rng);
        text += &format!("{a},{b},{y}\n");
    }
    text
}

/// Intervals hold as many public labels as they say: a share that is off by six of its standard
/// deviations has a chance under 1e-8. The private
/// posterior of 20,000 rows moves it by far less. Those of
/// counts hold at least as many, and a label's law spread over whole numbers is allowed for by its
/// rank.
#[test]
fn intervals_hold_what_they_say() {
    let gaussian = "kind = \"gaussian\"\nconstants = { log_sigma = -0.35667494393873245 }";
    let normal = |eta: f64, rng: &mut ChaCha20Rng| {
        let z: f64 = StandardNormal.sample(rng);
        eta + 0.7 * z
    };
    let gamma =
        |eta: f64, rng: &mut ChaCha20Rng| Gamma::new(2.0, eta.exp() / 2.0).unwrap().sample(rng);
    let poisson = |eta: f64, rng: &mut ChaCha20Rng| -> f64 {
        Poisson::new((eta + 1.0).exp()).unwrap().sample(rng)
    };
    let cases: [(&str, &str, [String; 2]); 3] = [
        (
            "clamp = [-9, 9]",
            gaussian,
            [20_000, 4000].map(|n| made_up(n, u64::from(n), normal)),
        ),
        (
            "clamp = [1e-6, 99]",
            "kind = \"gamma\"\nconstants = { log_shape = 0.6931471805599453 }",
            [20_000, 4000].map(|n| made_up(n, u64::from(n), gamma)),
        ),
        (
            "count = 99",
            "kind = \"poisson\"",
            [20_000, 4000].map(|n| made_up(n, u64::from(n), poisson)),
        ),
    ];
    for (label, model, [people, fresh]) in cases {
        let run = edit(RUN, "column = \"y\"", &format!("column = \"y\"\n{label}"));
        let run = edit(&run, "kind = \"logistic\"", model);
        let run = edit(&run, "\"barker\"\nstep = 0.0001", "\"anchored-barker\"");
        let place = Place::new(&run);
        place.write("people.csv", &people);
        place.write("fresh.csv", &fresh);
        place.works("sample run.toml --out out --quiet");
        let told = json(&place.works("compare out --table fresh.csv --draws 40 --json"));
        let counts = label.starts_with("count");
        for coverage in told["coverage"].as_array().unwrap() {
            let of = |key: &str| coverage[key].as_f64().unwrap();
            let gap = of("share") - of("level");
            // Of whole numbers too, which count by the part of their probability that is inside.
            assert!(gap.abs() < 6.0 * of("sd"), "{model}: {coverage}");
        }
        let pit = numbers(&told["pit"]);
        assert!((pit.iter().sum::<f64>() - 4000.0).abs() < 1e-6);
        for bin in &pit {
            // sd of a tenth of 4000: 19.
            assert!((bin - 400.0).abs() < 6.0 * 19.0, "{model}: {pit:?}");
        }
        // The ends that `predict` says are those of the intervals that `compare` counts.
        let predicted = place.works("predict out --table fresh.csv --draws 40");
        let [low, high] = ["label_low", "label_high"].map(|name| column(&predicted, name));
        let labels = column(&fresh, "y");
        let inside = labels.iter().enumerate();
        let inside = inside.filter(|(i, y)| low[*i] <= **y && **y <= high[*i]);
        let share = inside.count() as f64 / 4000.0;
        let counted = told["coverage"][1]["share"].as_f64().unwrap();
        match counts {
            // An interval that ends within a whole number's probability holds all of it.
            true => assert!(share > counted, "{model}: {share} {counted}"),
            false => assert!((share - counted).abs() < 2e-3, "{model}: {share} {counted}"),
        }
    }
}

/// A wrong model is seen: labels of twice the spread lie outside.
#[test]
fn a_wrong_model_is_seen() {
    let run = edit(
        &open(RUN),
        "column = \"y\"",
        "column = \"y\"\nclamp = [-9, 9]",
    );
    let run = edit(
        &run,
        "kind = \"logistic\"",
        "kind = \"linear\"\nvariance = 0.25",
    );
    let run = edit(
        &run,
        "[model]",
        "[test]\nfile = \"fresh.csv\"\npublic = true\n[model]",
    );
    let place = Place::new(&run);
    let wide = |eta: f64, rng: &mut ChaCha20Rng| {
        let z: f64 = StandardNormal.sample(rng);
        eta + z
    };
    place.write("people.csv", &made_up(4000, 1, wide));
    place.write("fresh.csv", &made_up(2000, 2, wide));
    place.works("sample run.toml --out out --quiet");
    let told = json(&place.works("compare out --draws 40 --json"));
    // Pr[|Z| < 0.822] is 0.589.
    let share = told["coverage"][1]["share"].as_f64().unwrap();
    assert!((share - 0.589).abs() < 0.07, "{share}");
    let text = place.works("compare out --draws 40");
    assert!(text.contains("inside of 90 % intervals: 5"), "{text}");
}

/// Binary labels are counted by their predicted probabilities.
#[test]
fn probabilities_are_compared_with_frequencies() {
    let place = sampled(&open(RUN));
    let coin = |eta: f64, rng: &mut ChaCha20Rng| {
        f64::from(u8::from(rng.random::<f64>() < logit(3.0 * eta)))
    };
    place.write("people.csv", &made_up(20_000, 5, coin));
    place.write("fresh.csv", &made_up(4000, 6, coin));
    place.works("sample run.toml --out again --quiet");
    let told = json(&place.works("compare again --table fresh.csv --draws 40 --json"));
    let bins = told["calibration"].as_array().unwrap();
    assert!(bins.len() >= 8);
    for bin in bins {
        let of = |key: &str| bin[key].as_f64().unwrap();
        let p = of("predicted");
        let sd = (p * (1.0 - p) / of("rows")).sqrt();
        assert!((of("observed") - p).abs() < 6.0 * sd + 0.01, "{bin}");
    }
}

/// What a change makes of a row.
type Edit<'a> = &'a dyn Fn(&mut [f64; 4]);

/// The log loss of a test table is that of the probabilities which `predict` gives to its rows.
#[test]
fn scores_of_classes_are_of_what_is_predicted() {
    let test = "[test]\nfile = \"test.csv\"\npublic = true\n[model]";
    let place = Place::new(&edit(&anchored(RUN), "[model]", test));
    let labels = [1.0, 0.0, 1.0];
    let rows: Vec<String> = (NEW.lines().skip(1).zip(labels))
        .map(|(row, y)| format!("{row},{y}\n"))
        .collect();
    place.write("test.csv", &format!("b,a,y\n{}", rows.concat()));
    place.write("new.csv", NEW);
    place.works("sample run.toml --out out --quiet");
    let loss = |p: Vec<f64>| -> f64 {
        let each = p.iter().zip(labels);
        each.map(|(p, y)| -(if y > 0.5 { *p } else { 1.0 - p }).ln())
            .sum::<f64>()
            / 3.0
    };
    let told = json(&place.works("summary out --json"))["test_log_loss"].clone();
    let told = told.as_f64().unwrap();
    let predicted = column(&place.works("predict out --table new.csv"), "probability");
    assert!((told - loss(predicted)).abs() < 1e-9, "{told}");
}

/// Effects by hand, from the draws: a shift that the bounds cut off, a value, a contrast.
#[test]
fn effects_are_average_differences() {
    let features = "[[data.features]]\ncolumn = \"c\"\none_hot = [\"red\", \"green\"]\nreference = \"red\"\nstrict = true\n[model]";
    let run = edit(
        &edit(&anchored(RUN), "[model]", features),
        "iterations = 300",
        "iterations = 60",
    );
    // The chain's own draws give an effect, those with the noise in them its interval.
    let own = edit(&run, "[run]", "[run]\ndraws = \"chain\"");
    let place = Place::new(&run);
    let coloured = |text: &str, header: &str| -> String {
        let rows = text.lines().skip(1).enumerate();
        let rows =
            rows.map(|(i, line)| format!("{line},{}\n", if i % 3 == 0 { "green" } else { "red" }));
        format!("{header},c\n{}", rows.collect::<String>())
    };
    place.write("people.csv", &coloured(&table(500), "a,b,y"));
    place.write("new.csv", &coloured(NEW, "b,a"));
    place.write("own.toml", &own);
    for run in ["run", "own"] {
        place.works(&format!("sample {run}.toml --out {run} --quiet"));
    }
    let rows: Vec<[f64; 4]> = cells()
        .iter()
        .enumerate()
        .map(|(i, r)| [r[0], r[1], r[2], f64::from(u8::from(i % 3 == 0))])
        .collect();
    let mean = |theta: &[f64], change: Edit| -> f64 {
        let each = rows.iter().map(|row| {
            let mut row = *row;
            change(&mut row);
            logit(row.iter().zip(theta).map(|(x, t)| x * t).sum())
        });
        each.sum::<f64>() / 3.0
    };
    let as_it_is: Edit = &|_| {};
    let cases: [(&str, Edit, Edit); 3] = [
        ("--shift a=0.5", as_it_is, &|r| r[1] = (r[1] + 0.5).min(1.0)),
        ("--set c=green", as_it_is, &|r| r[3] = 1.0),
        ("--contrast c=red:green", &|r| r[3] = 0.0, &|r| r[3] = 1.0),
    ];
    for (flag, before, after) in cases {
        for (run, keys) in [("run", &["low", "high"][..]), ("own", &["effect"])] {
            let told = json(&place.works(&format!(
                "effects {run} --table new.csv {flag} --draws 60 --json"
            )));
            let draws = place.draws(run).rows;
            let differences = draws
                .iter()
                .map(|(_, _, t)| mean(t, after) - mean(t, before));
            let differences: Vec<f64> = differences.collect();
            for key in keys {
                let expected = match *key {
                    "low" => percentile(&differences, 0.05),
                    "high" => percentile(&differences, 0.95),
                    _ => differences.iter().sum::<f64>() / differences.len() as f64,
                };
                let found = told["effects"][0][key].as_f64().unwrap();
                assert!(
                    (found - expected).abs() < 2e-4,
                    "{run} {flag} {key}: {found} {expected}"
                );
            }
        }
    }
    let text = place
        .works("effects run --table new.csv --shift a=0.5 --set a=0.25 --contrast c=red:green");
    // One row of three goes from 1 to 1.5.
    assert!(text.contains("33.3 % of the rows end beyond"), "{text}");
    assert!(
        text.contains("a=0.25") && text.contains("c=red:green"),
        "{text}"
    );
    for (flag, words) in [
        ("--shift z=1", "reads no column 'z'; it reads a, b, c"),
        ("--shift c=1", "holds no number in row 1"),
        ("--shift a=much", "is a number"),
        ("--set c=blue", "'blue' is no level of column 'c'"),
        ("--set a=red", "is read as a number"),
        ("--contrast c=red", "names two values"),
        ("--set c", "COLUMN=VALUE"),
        ("", "say which change"),
    ] {
        let message = place.refuses(&format!("effects run --table new.csv {flag}"));
        assert!(message.contains(words), "{flag}: {message}");
    }
}

/// Every kind with a label predicts, is compared and makes up labels, with its parameters sampled
/// and held.
#[test]
fn every_likelihood_answers() {
    for kind in KINDS {
        let run = run_file(kind, is_sampled, "mh", "step = 0.02");
        let place = Place::new(&edit(
            &run,
            "epsilon = 30.0\ndelta = 1e-6",
            "not_private = true",
        ));
        place.write("visits.csv", &all_labels());
        let new: Vec<&str> = all_labels().leak().lines().take(6).collect();
        place.write("new.csv", &new.join("\n"));
        place.write("features.csv", "a,b\n0.1,0.2\n-0.5,0.75\n");
        place.works("sample run.toml --out out --quiet");
        let text = place.works("predict out --table new.csv --draws 10");
        let binary = text.starts_with("probability");
        assert_eq!(text.lines().count(), 6, "{}: {text}", kind.0);
        if !binary {
            let centre = if kind.0 == "quantile" {
                "quantile"
            } else {
                "mean"
            };
            let [low, high] = ["label_low", "label_high"].map(|n| column(&text, n));
            for ((low, high), mean) in low.iter().zip(&high).zip(column(&text, centre)) {
                assert!(low < high && mean.is_finite(), "{}: {text}", kind.0);
            }
        }
        let told = json(&place.works("compare out --table new.csv --draws 10 --json"));
        assert_eq!(told["rows"].as_u64(), Some(5), "{}", kind.0);
        place.works("effects out --table new.csv --shift a=0.1 --draws 10");
        place.works("synthesize out --table features.csv --sets 2 --out made");
        place.works("prior run.toml --draws 20 --table new.csv");
    }
}

/// A law of one's own that says what a named one says predicts the same.
#[test]
fn an_expression_predicts_as_the_kind_that_it_spells_out() {
    let run = edit(&open(RUN), "column = \"y\"", "column = \"y\"\ncount = 60");
    let place = sampled(&edit(&run, "\"logistic\"", "\"poisson\""));
    let named = place.works("predict out --table new.csv --draws 50");
    let toml = std::fs::read_to_string(place.path("out/run.toml")).unwrap();
    let own = edit(
        &toml,
        "kind = \"poisson\"",
        "kind = \"declared\"\nlikelihood = \"y * eta - exp(eta) - lgamma(y + 1)\"",
    );
    place.write("out/run.toml", &own);
    let said = place.refuses("predict out --table new.csv --draws 50");
    assert!(said.contains("another model"), "{said}");
    // A state that does not say what its draws were made by.
    let mut state = place.json("out/state.json");
    state.as_object_mut().unwrap().remove("settings").unwrap();
    place.write("out/state.json", &state.to_string());
    let declared = place.works("predict out --table new.csv --draws 50");
    for name in ["mean", "mean_low", "label_low", "label_high"] {
        for (a, b) in column(&named, name).iter().zip(column(&declared, name)) {
            assert!((a - b).abs() < 1e-9, "{name}: {a} {b}");
        }
    }
    // Of many rows an expression's means are tabulated by the linear predictor, so finely that
    // averages do not tell; of counts of such a table the law is summed over 61 of them.
    place.write("many.csv", &table(800));
    let effects = || {
        let text = place.works("effects out --table many.csv --shift a=0.3 --draws 50 --json");
        let told = json(&text);
        ["effect", "low", "high"].map(|key| told["effects"][0][key].as_f64().unwrap())
    };
    let declared = effects();
    place.write("out/run.toml", &toml);
    for (a, b) in effects().iter().zip(declared) {
        assert!((a / b - 1.0).abs() < 1e-4, "{a} {b}");
    }
}

/// Numbers beyond the declared bounds are predicted as the bound, and it is said of how many.
#[test]
fn numbers_beyond_their_bounds_are_said() {
    let place = sampled(&open(RUN));
    let inside = json(&place.works("predict out --table new.csv --draws 50 --json"));
    assert_eq!(
        inside["notes"].as_array().map(Vec::len),
        Some(0),
        "{inside}"
    );
    let row = "a,b\n2.5,0.5\n1.0,0.5\n-0.5,0.5\n";
    place.write("far.csv", row);
    let told = json(&place.works("predict out --table far.csv --draws 50 --json"));
    let notes = told["notes"].to_string();
    assert!(
        notes.contains("33.333 % of the rows lie beyond the declared bounds of 'a'"),
        "{notes}"
    );
    assert!(!notes.contains("of 'b'"), "{notes}");
    // A single row is read by another way.
    place.write("far.csv", "a,b\n2.5,-7\n");
    let told = json(&place.works("predict out --table far.csv --draws 50 --json"));
    let notes = told["notes"].to_string();
    for column in ["'a'", "'b'"] {
        let words = format!("100.000 % of the rows lie beyond the declared bounds of {column}");
        assert!(notes.contains(&words), "{notes}");
    }
}

#[test]
fn what_cannot_be_answered_is_refused_with_a_way_out() {
    let place = sampled(RUN);
    place.write("short.csv", "a\n0.5\n");
    place.write("text.csv", "a,b\n0.5,secret\n");
    place.write("bare.csv", "a,b\n");
    for (command, words) in [
        ("predict out --table bare.csv", "holds no row"),
        ("effects out --table bare.csv --shift a=1", "holds no row"),
        ("predict out --table none.csv", "no such table"),
        ("predict out --table short.csv", "is called 'b'"),
        ("predict out --table text.csv", "line 2, column 'b'"),
        ("predict out --table people.csv", "which the run protects"),
        ("compare out --table people.csv", "which the run protects"),
        (
            "effects out --table people.csv --shift a=1",
            "which the run protects",
        ),
        (
            "synthesize out --table people.csv --out made",
            "which the run protects",
        ),
        (
            "prior run.toml --table people.csv",
            "which the run protects",
        ),
        (
            "predict out --table new.csv --intervals 1.5",
            "between 0 and 1",
        ),
        (
            "predict out --table new.csv --intervals -1",
            "between 0 and 1",
        ),
        (
            "predict out --table new.csv --out p.txt",
            ".csv or .parquet",
        ),
        ("predict nowhere --table new.csv", "is not a run directory"),
        ("compare out", "has no [test] table"),
        ("compare out --table new.csv", "is called 'y'"),
    ] {
        let message = place.refuses(command);
        assert!(message.contains(words), "{command}: {message}");
        assert!(!message.contains("secret"), "{message}");
    }
    assert!(!place.path("made").exists());
    // A label in the table is not read, and that is said.
    place.write("labelled.csv", "a,b,y\n0.5,0.25,secret\n0,0,secret\n");
    let output = place.dpmc("predict out --table labelled.csv");
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("column 'y' of the table is the label"),
        "{said}"
    );
    // A run that failed, one that has no draws, one whose run file was changed.
    let certificate = std::fs::read_to_string(place.path("out/certificate.json")).unwrap();
    let finished = format!("\"status\": {}", place.certificate("out")["status"]);
    place.write(
        "out/certificate.json",
        &edit(&certificate, &finished, "\"status\": \"failed\""),
    );
    assert!(
        place
            .refuses("predict out --table new.csv")
            .contains("--resume")
    );
    place.write("out/certificate.json", &certificate);
    let toml = std::fs::read_to_string(place.path("out/run.toml")).unwrap();
    place.write(
        "out/run.toml",
        &edit(&toml, "\"logistic\"", "\"mlp\"\nhidden = 2"),
    );
    assert!(
        place
            .refuses("predict out --table new.csv")
            .contains("another model")
    );
    // As a run leaves it that is killed before its first draws are written.
    place.works("sample run.toml --out empty --quiet");
    for part in place.parts("empty") {
        std::fs::remove_file(part).unwrap();
    }
    let mut state = place.json("empty/state.json");
    (state["parts"], state["files"]) = (0.into(), serde_json::json!([]));
    place.write("empty/state.json", &state.to_string());
    assert!(
        place
            .refuses("predict empty --table new.csv")
            .contains("holds no draws")
    );
    // A [test] table is public, and no private one.
    let place = Place::new(&format!(
        "{RUN}[test]\nfile = \"held.csv\"\npublic = true\n"
    ));
    place.write("held.csv", &table(60));
    place.works("sample run.toml --out out --quiet");
    let toml = std::fs::read_to_string(place.path("out/run.toml")).unwrap();
    place.write(
        "out/run.toml",
        &edit(&toml, "public = true", "public = false"),
    );
    assert!(place.refuses("compare out").contains("public"));
    place.write("out/run.toml", &edit(&toml, "held.csv", "people.csv"));
    assert!(place.refuses("compare out").contains("the run protects"));
}

/// Draws without the noise of the releases get what `dpmc summary` says of it: the interval of the
/// intercept's probability at a row of zeros is as wide. (In 60 runs the ratio of the two widths
/// had mean 1.000 and standard deviation 0.009; 0.15 is over 16 of them.)
#[test]
fn chains_of_their_own_get_the_noise_of_the_releases() {
    let run = edit(RUN, "\"barker\"\nstep = 0.0001", "\"anchored-barker\"");
    let run = edit(&run, "epsilon = 5.0", "epsilon = 1.0");
    let run = edit(
        &run,
        "iterations = 300",
        "iterations = 4000\ndraws = \"chain\"",
    );
    let place = Place::new(&run);
    place.write("zero.csv", "a,b\n0,0\n");
    place.works("sample run.toml --out out --quiet");
    let summary = json(&place.works("summary out --json"));
    let noisy = &summary["noise_aware"][0]["interval"];
    let expected = [0, 1].map(|k| logit(noisy[k].as_f64().unwrap()));
    let text = place.works("predict out --table zero.csv --draws 100000");
    let found = ["probability_low", "probability_high"].map(|n| column(&text, n)[0]);
    let own: Vec<f64> = place
        .draws("out")
        .rows
        .iter()
        .map(|r| logit(r.2[0]))
        .collect();
    let [own, found, expected] = [
        percentile(&own, 0.95) - percentile(&own, 0.05),
        found[1] - found[0],
        expected[1] - expected[0],
    ];
    assert!(
        expected > 1.2 * own,
        "the noise is too small to see: {own} {expected}"
    );
    assert!(
        (found / expected - 1.0).abs() < 0.15,
        "{own} {found} {expected}"
    );
}

/// Whatever is answered follows from draws, run file and public tables: with the private table gone
/// every byte is the same.
#[test]
fn answers_are_the_same_without_the_private_table() {
    let run = format!("{RUN}[test]\nfile = \"held.csv\"\npublic = true\n");
    let place = Place::new(&run);
    place.write("new.csv", NEW);
    place.write("held.csv", &table(60));
    place.works("sample run.toml --out out --quiet");
    let commands = [
        "predict out --table new.csv",
        "predict out --table new.csv --json",
        "effects out --table new.csv --shift a=0.25 --set b=0",
        "compare out",
        "compare out --table held.csv --json",
        "prior run.toml --seed 1",
        "prior run.toml --table new.csv --seed 1 --json",
    ];
    let say = || commands.map(|command| place.works(command));
    let made = |out: &str| {
        place.works(&format!(
            "synthesize out --table new.csv --out {out} --seed 1"
        ));
        std::fs::read_to_string(place.path(out).join("set-1.csv")).unwrap()
    };
    let before = (say(), made("one"));
    std::fs::remove_file(place.path("people.csv")).unwrap();
    assert_eq!(before, (say(), made("other")));
}

/// Models without labels say so.
#[test]
fn a_model_without_labels_predicts_nothing() {
    let run = edit(RUN, "[data.label]\ncolumn = \"y\"\n", "");
    let run = edit(&run, "[[data.features]]\nintercept = true\n", "");
    let run = edit(
        &run,
        "kind = \"logistic\"",
        "kind = \"gaussian-mean\"\ncovariance = [[1, 0], [0, 1]]",
    );
    let place = sampled(&edit(
        &run,
        "step = 0.0001",
        "step = 0.0001\nclip = { rate = 1 }",
    ));
    let message = place.refuses("predict out --table new.csv");
    assert!(message.contains("label"), "{message}");
}

/// What the guide's page types runs, and says what the page shows it to say first.
#[test]
fn what_the_guide_shows_runs() {
    let page = std::fs::read_to_string(repository("docs/guide/predictions.md")).unwrap();
    let blocks = |kind: &str| -> Vec<&str> {
        let start = format!("```{kind}\n");
        let blocks = page.split(start.as_str()).skip(1);
        blocks.map(|b| b.split("```").next().unwrap()).collect()
    };
    let place = Place::new(RUN);
    std::fs::create_dir_all(place.path("examples/data")).unwrap();
    for name in ["adult_train.csv.gz", "adult_test.csv.gz"] {
        let file = format!("examples/data/{name}");
        std::fs::copy(repository(&file), place.path(&file)).unwrap();
    }
    place.write("answers.toml", blocks("toml")[0]);
    place.write("newcomers.csv", blocks("csv")[0]);
    let commands = blocks("sh").concat();
    let commands: Vec<&str> = commands.lines().collect();
    assert!(commands.len() >= 7);
    let mut said = String::new();
    for command in commands {
        let rest = command.strip_prefix("dpmc ").unwrap();
        let fewer = if rest.starts_with("compare") {
            " --draws 20"
        } else {
            ""
        };
        said += &place.works(&format!("{rest}{fewer}"));
    }
    for shown in blocks("text") {
        let first = shown.lines().next().unwrap();
        assert!(
            said.contains(first.split(" by ").next().unwrap()),
            "{first}"
        );
    }
    assert!(place.path("made-up/set-20.csv").exists());
    // What no level declares is a level too.
    let other = "effects answers --table newcomers.csv --set marital-status=other";
    assert!(place.works(other).contains("marital-status=other"));
    let unknown = "effects answers --table newcomers.csv --set marital-status=Widowed";
    assert!(place.refuses(unknown).contains("is no level"));
}
