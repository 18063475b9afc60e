//! The promise: what a prior predicts is said without the private table, by the prior's own law.

use crate::common::place::{Place, RUN, edit};
use dpmc::math::normal;
use serde_json::Value;

fn told(place: &Place, flags: &str) -> Value {
    serde_json::from_str(&place.works(&format!("prior run.toml --json {flags}"))).unwrap()
}

/// Of one row the predictor of a linear regression is normal: the empirical distribution function
/// of 4000 draws lies within 0.046 of it but for 1e-7 (Massart).
#[test]
fn a_linear_prior_predicts_its_normal_law() {
    let run = edit(RUN, "column = \"y\"", "column = \"y\"\nclamp = [-3, 3]");
    let run = edit(
        &run,
        "kind = \"logistic\"",
        "kind = \"linear\"\nvariance = 4.0",
    );
    let place = Place::new(&run);
    // Nothing of the private table is needed.
    std::fs::remove_file(place.path("people.csv")).unwrap();
    place.write("new.csv", "a,b\n0.5,-0.75\n");
    let told = told(&place, "--table new.csv --draws 4000 --seed 3");
    assert_eq!(told["rows"].as_u64(), Some(1));
    let mean_sd = 3.0 * (1.0f64 + 0.25 + 0.5625).sqrt();
    for (k, sd) in [(0, mean_sd), (1, mean_sd.hypot(2.0))] {
        for pair in told["predicted"][k]["quantiles"].as_array().unwrap() {
            let (p, q) = (pair[0].as_f64().unwrap(), pair[1].as_f64().unwrap());
            assert!((normal::below(q / sd) - p).abs() < 0.047, "{p} {q}");
        }
    }
    let beyond = told["beyond_bounds"].as_f64().unwrap();
    let expected = 1.0 - normal::within(3.0 / mean_sd.hypot(2.0));
    assert!((beyond - expected).abs() < 0.047, "{beyond} {expected}");
}

/// Without a table rows are made up within the declarations; a wide prior makes logistic
/// probabilities all but certain, which is said.
#[test]
fn rows_are_made_up_where_no_table_is_given() {
    let features = "[[data.features]]\ncolumn = \"c\"\none_hot = [\"red\", \"green\"]\nstrict = true\n[[data.features]]\ncolumn = \"d\"\nindicator = { in = [\"yes\"] }\n[[data.features]]\ncolumn = \"e\"\nindicator = { above = 7 }\n[model]";
    let wide = edit(&edit(RUN, "[model]", features), "sd = 3.0", "sd = 50.0");
    let place = Place::new(&wide);
    std::fs::remove_file(place.path("people.csv")).unwrap();
    let share = told(&place, "--draws 200 --seed 1")["all_but_certain"]
        .as_f64()
        .unwrap();
    assert!(share > 0.85, "{share}");
    place.write("run.toml", &edit(&wide, "sd = 50.0", "sd = 0.1"));
    let share = told(&place, "--draws 200 --seed 1")["all_but_certain"]
        .as_f64()
        .unwrap();
    assert_eq!(share, 0.0);
    let text = place.works("prior run.toml --seed 1");
    assert!(text.contains("200 made-up rows"), "{text}");
    assert_eq!(text, place.works("prior run.toml --seed 1"));
}

#[test]
fn an_improper_prior_is_refused_with_its_key() {
    let place = Place::new(&edit(RUN, "prior = { kind = \"normal\", sd = 3.0 }\n", ""));
    let message = place.refuses("prior run.toml");
    assert!(
        message.contains("model.prior: a flat prior without a box"),
        "{message}"
    );
    let place = Place::new(&edit(
        RUN,
        "prior = { kind = \"normal\", sd = 3.0 }",
        "box = 2.0",
    ));
    place.works("prior run.toml");
}
