//! The promise: `dpmc check` says what a budget buys before it is paid, in words and as numbers,
//! and an anchored run is refused for no size of its budget.

use crate::common::place::{Place, RUN, edit, number, table};
use serde_json::Value;

fn anchored(algorithm: &str) -> Place {
    let run = edit(
        RUN,
        "\"barker\"\nstep = 0.0001",
        &format!("\"{algorithm}\""),
    );
    let place = Place::new(&run);
    place.write("people.csv", &table(3000));
    place
}

fn json(place: &Place, flags: &str) -> Value {
    serde_json::from_str(&place.works(&format!("check run.toml --json {flags}"))).unwrap()
}

#[test]
fn json_holds_what_the_text_says() {
    let place = Place::new(RUN);
    let (text, report) = (place.works("check run.toml"), json(&place, ""));
    assert_eq!(report["table"]["rows"], 500);
    assert_eq!(report["run"]["algorithm"], "barker");
    assert_eq!(report["model"]["parameters"], 3);
    let budget = &report["budget"];
    let cost = format!(
        "a typical step costs rho {:.3e}",
        number(budget, "step_cost")
    );
    assert!(text.contains(&cost), "{text}");
    let steps = format!("affords about {:.0}", number(budget, "steps_affordable"));
    assert!(text.contains(&steps), "{text}");
    assert_eq!(budget["ends_early"], false);
    assert!(report["forecast"].is_null() && report["anchor"].is_null());
    assert!(report["notes"].as_array().unwrap().is_empty());

    let public = json(&place, "--not-private");
    assert!(public["private"] == false && public["budget"].is_null());

    let place = Place::new(&edit(RUN, "delta = 1e-6", "delta = 1e-2"));
    let warnings = &json(&place, "")["warnings"];
    assert!(
        warnings[0].as_str().unwrap().contains("1/rows"),
        "{warnings}"
    );
}

#[test]
fn free_draws_are_called_free_and_noise_is_forecast() {
    for (algorithm, word) in [
        ("dp-laplace", "this run makes no decisions"),
        ("anchored-barker", "decisions would cost rho"),
    ] {
        let place = anchored(algorithm);
        let text = place.works("check run.toml --epsilon 0.2");
        for said in [
            word,
            "draws      free: of the released quadratic",
            "posterior sds would take",
        ] {
            assert!(text.contains(said), "no '{said}': {text}");
        }
        for nonsense in [
            "inf",
            "NaN",
            "typical step",
            "affords",
            "clip ",
            "minibatch",
        ] {
            assert!(!text.contains(nonsense), "'{nonsense}': {text}");
        }
        let report = json(&place, "--epsilon 0.2");
        let (budget, forecast) = (&report["budget"], &report["forecast"]);
        assert!(budget["step_cost"].is_null() && budget["free_draws"].is_object());
        assert_eq!(number(forecast, "effective_draws"), 300.0);
        let noise = number(forecast, "noise_posterior_sds");
        let target = number(forecast, "target_posterior_sds");
        let epsilon = number(forecast, "epsilon_for_target");
        assert!(noise > target && epsilon > 0.2, "{forecast}");
        assert!(number(forecast, "rows_for_target") > 3000.0);
        // What is asked for is what it takes.
        let better = &json(&place, &format!("--epsilon {epsilon}"))["forecast"];
        let noise = number(better, "noise_posterior_sds");
        assert!((0.8..1.25).contains(&(noise / target)), "{better}");
    }
}

#[test]
fn an_anchored_run_takes_any_budget() {
    let place = anchored("anchored-barker");
    for (k, epsilon) in ["0.1", "50", "500"].into_iter().enumerate() {
        let flags = format!("--epsilon {epsilon}");
        let text = place.works(&format!("check run.toml {flags}"));
        assert!(text.contains("forecast   means off by"), "{text}");
        place.works(&format!("sample run.toml {flags} --quiet --out out{k}"));
        assert_eq!(place.draws(&format!("out{k}")).last(), 300);
        let spent = number(&place.certificate(&format!("out{k}")), "epsilon_spent");
        assert!(spent <= epsilon.parse().unwrap());
    }
}
