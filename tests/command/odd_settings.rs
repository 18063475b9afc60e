//! The promise: settings that cannot work are refused with exit code 2 before anything is
//! made, and the message names what set them: the key with its line, or the flag.

use crate::common::place::{Place, RUN, edit};

#[test]
fn a_bad_flag_is_named_and_not_the_line_that_it_overrides() {
    let place = Place::new(RUN);
    for (flags, flag) in [
        ("--epsilon 0", "--epsilon"),
        ("--epsilon -1", "--epsilon"),
        ("--epsilon nan", "--epsilon"),
        ("--epsilon 1e9", "--epsilon"),
        ("--epsilon 1e-5", "--epsilon"),
        ("--delta 0", "--delta"),
        ("--delta 1", "--delta"),
        ("--delta -1e-6", "--delta"),
        ("--chains 0", "--chains"),
        ("--chains -1", "--chains"),
        ("--chains 65537", "--chains"),
        ("--iterations 0", "--iterations"),
        ("--iterations -1", "--iterations"),
        ("--seed -1", "--seed"),
        ("--algorithm mh", "--algorithm"),
        ("--algorithm bark", "--algorithm"),
        ("--not-private --ledger l.json", "--ledger"),
    ] {
        for command in ["check run.toml", "sample run.toml --out out"] {
            let message = place.refuses(&format!("{command} {flags}"));
            assert!(message.contains(flag), "{flags}: {message}");
            assert!(!message.contains("run.toml"), "{flags}: {message}");
            assert!(!place.path("out").exists(), "{flags}");
        }
    }
    // What the file says is still the file's fault.
    place.write("run.toml", &edit(RUN, "delta = 1e-6", "delta = 2"));
    let message = place.refuses("check run.toml --epsilon 1");
    assert!(message.contains("run.toml, line 22"), "{message}");
    place.write("run.toml", &edit(RUN, "\ndelta = 1e-6", ""));
    let message = place.refuses("check run.toml --epsilon 1");
    assert!(message.contains("--epsilon: needs delta"), "{message}");
}

#[test]
fn a_clip_bound_that_no_grid_holds_is_refused_at_the_extreme_key() {
    for (from, to, key) in [
        ("tempering = 1.0", "tempering = 1e-300", "model.tempering"),
        ("tempering = 1.0", "tempering = 1e-20", "model.tempering"),
        ("step = 0.0001", "step = 1e-300", "sampler.step"),
        ("step = 0.0001", "step = 1e300", "sampler.step"),
        ("step = 0.0001", "clip = { rate = 1e-30 }", "sampler.clip"),
        ("step = 0.0001", "clip = { rms = 1e30 }", "sampler.clip"),
        ("step = 0.0001", "scale = 1e-40", "sampler.scale"),
        ("step = 0.0001", "scale = 1e200", "sampler.scale"),
    ] {
        let run = edit(RUN, from, to);
        let place = Place::new(&run);
        let line = 1 + run.lines().position(|l| l == to).unwrap();
        for flags in ["", "--not-private", "--not-private --algorithm mh"] {
            for command in ["check run.toml", "sample run.toml --out out"] {
                let message = place.refuses(&format!("{command} {flags}"));
                let says = format!("run.toml, line {line}: {key}: ");
                assert!(message.contains(&says), "{to} {flags}: {message}");
                assert!(message.contains("choose a"), "{message}");
                assert!(!place.path("out").exists(), "{to} {flags}");
            }
        }
    }
}

#[test]
fn a_minibatch_or_noise_that_cannot_be_drawn_is_refused_without_privacy_too() {
    for (algorithm, setting, key) in [
        ("tuna-mh", "lambda = 1e12", "sampler.lambda"),
        ("tuna-mh", "lambda_ratio = 1e12", "sampler.lambda_ratio"),
        ("poisson-barker", "chi = 1e300", "sampler.chi"),
        ("dp-penalty", "tau = 1e200", "sampler.tau"),
        ("dp-barker", "variance = 3.3", "sampler.variance"),
    ] {
        let run = edit(RUN, "\"barker\"", &format!("\"{algorithm}\"\n{setting}"));
        let place = Place::new(&run);
        for command in ["check run.toml", "sample run.toml --out out"] {
            let message = place.refuses(&format!("{command} --not-private"));
            assert!(message.contains(&format!("{key}: ")), "{message}");
            assert!(!place.path("out").exists(), "{setting}");
        }
    }
}

const SHORT: &str =
    "sample run.toml --not-private --chains 1 --iterations 2 --seed 1 --out out --quiet";

/// Values that each key may be given; those that are not refused must run.
const EXTREMES: &str = "5e-324|1e-24|1|1e24|1.7e308";
/// What lies between them.
const LARGE: &str = "1e-80|1e-10|1e9|1e80";

const SAMPLERS: [(&str, &str); 10] = [
    ("mh", ""),
    ("poisson-barker", "chi = 1.0"),
    ("dp-penalty", "tau = 5.0"),
    (
        "dp-hmc",
        "tau = 5.0\ngradient.tau = 5.0\ngradient.clip = 1.0",
    ),
    ("sgld", "gradient.rate = 0.5\ngradient.clip = 1.0"),
    ("barker", "clip = { rate = 0.01 }"),
    ("tuna-mh", "lambda = 3.0"),
    ("sghmc", "friction = 0.2"),
    ("sgnht", "diffusion = 0.2"),
    ("dpvi", "steps = 5"),
];

fn gaussian() -> String {
    let gaussian = edit(RUN, "\"logistic\"", "\"gaussian-mean\"\nbox = 3.0");
    let gaussian = edit(&gaussian, "[data.label]\ncolumn = \"y\"\n", "");
    let gaussian = edit(&gaussian, "[[data.features]]\nintercept = true\n", "");
    edit(&gaussian, "[model]", COVARIANCE)
}

const COVARIANCE: &str = "[model]\ncovariance = [[1.0, 0.0], [0.0, 1.0]]";

fn mixture() -> String {
    let mixture = edit(
        &gaussian(),
        "\"gaussian-mean\"",
        "\"mixture\"\nvariance = 2.0",
    );
    let mixture = edit(&mixture, &format!("{COVARIANCE}\n"), "[model]\n");
    edit(&mixture, "columns = [\"a\", \"b\"]", "columns = [\"a\"]")
}

#[test]
fn no_extreme_value_fails_after_the_directory_is_made() {
    try_values(RUN, &SAMPLERS[..5], EXTREMES);
}

#[test]
fn no_extreme_value_of_another_sampler_does() {
    try_values(RUN, &SAMPLERS[5..], EXTREMES);
}

/// One sampler of each kind is enough for the other models.
#[test]
fn no_extreme_value_of_another_model_does() {
    try_values(&gaussian(), &SAMPLERS[1..4], EXTREMES);
    try_values(&mixture(), &SAMPLERS[1..4], EXTREMES);
}

#[test]
#[ignore = "study"]
fn no_large_value_fails_after_the_directory_is_made() {
    try_values(RUN, &SAMPLERS, LARGE);
    try_values(&gaussian(), &SAMPLERS[..4], LARGE);
    try_values(&mixture(), &SAMPLERS[..4], LARGE);
    try_values(&gaussian(), &SAMPLERS[..1], EXTREMES);
    try_values(&mixture(), &SAMPLERS[..1], EXTREMES);
}

/// Gives each number of the run file each value, for each sampler.
fn try_values(base: &str, samplers: &[(&str, &str)], values: &str) {
    let place = Place::new(RUN);
    let mut bad = Vec::new();
    for (algorithm, setting) in samplers {
        let sampler = format!("\"{algorithm}\"\nscale = 1.0\n{setting}");
        let run = edit(base, "\"barker\"", &sampler);
        // The flags below replace length and budget.
        let end = run.find("[run]").unwrap();
        let keys = run[..end].match_indices(" = ").map(|(at, _)| at + 3);
        let numbers: Vec<usize> = keys
            .filter(|&at| run[at..].starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        for at in numbers {
            let end = run[at..].find(['\n', ' ']).unwrap() + at;
            for value in values.split('|') {
                let text = format!("{}{value}{}", &run[..at], &run[end..]);
                place.write("run.toml", &text);
                let output = place.dpmc(SHORT);
                // A failure, or a directory that a refusal leaves behind.
                let code = output.status.code();
                let fine = match code {
                    Some(0) => std::fs::remove_dir_all(place.path("out")).is_ok(),
                    Some(2) => !place.path("out").exists(),
                    _ => false,
                };
                if !fine {
                    let line = text[..at].lines().last().unwrap_or_default().to_string();
                    bad.push(format!(
                        "{line}{value} ({code:?}): {}",
                        output.stderr.escape_ascii()
                    ));
                    let _ = std::fs::remove_dir_all(place.path("out"));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
