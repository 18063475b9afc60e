//! The promise of the command for samplers whose steps have no ρ: `check` says what they cost,
//! the order is chosen once and kept, ledgers of another measure are refused by name, and what is
//! not private says so.

use crate::common::place::{Place, RUN, edit, number, releases};

fn fast() -> String {
    edit(
        RUN,
        "\"barker\"",
        "\"dp-fast-mh\"\nbatch_cap = 60\nlambda = 5",
    )
}

fn subsampled() -> String {
    edit(RUN, "\"barker\"", "\"dp-barker-subsampled\"\nbatch = 100")
}

/// The number after `words` in `text`.
fn after(text: &str, words: &str) -> f64 {
    let rest = text
        .split(words)
        .nth(1)
        .unwrap_or_else(|| panic!("no '{words}': {text}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn check_says_what_a_step_costs_and_how_many_there_are() {
    for run in [
        fast(),
        subsampled(),
        edit(RUN, "\"barker\"", "\"dp-fast-mh-full\""),
    ] {
        let place = Place::new(&run);
        let text = place.works("check run.toml");
        let steps = after(&text, "affords about ");
        assert!(steps > 10.0, "{text}");
        // The whole budget, divided by the cost of a step, at the order that is named.
        let full = run.contains("full");
        assert_eq!(text.contains("Rényi filter at order"), !full, "{text}");
        let symbol = if full { "rho" } else { "D_" };
        assert!(
            text.contains(&format!("a typical step costs {symbol}")),
            "{text}"
        );
        assert_eq!(
            text.contains("branches "),
            !run.contains("subsampled"),
            "{text}"
        );
    }
}

#[test]
#[ignore = "study"]
fn a_run_counts_one_order_from_start_to_certificate() {
    let longer = edit(&fast(), "0.0001", "0.002");
    for (run, kind) in [(longer, "fast_mh_noisy"), (subsampled(), "heikkila")] {
        let place = Place::new(&run);
        place.works("sample run.toml --out out --iterations 5");
        let certificate = place.certificate("out");
        assert_eq!(certificate["private"], true);
        assert!(certificate["rho"].is_null(), "{certificate}");
        let order = number(&certificate, "order");
        let resolved = std::fs::read_to_string(place.path("out/run.toml")).unwrap();
        assert!(
            resolved.contains(&format!("order = {order:?}")),
            "{resolved}"
        );
        let ledger = place.ledger("out/ledger.json");
        assert_eq!(number(&ledger["measure"]["renyi"], "order"), order);
        assert!(number(&ledger, "divergence_spent") > 0.0);
        let events = certificate["events"].as_array().unwrap();
        assert!(events.iter().any(|e| e["kind"] == kind), "{certificate}");
        let spent = number(&certificate, "epsilon_spent");
        assert!(spent <= 5.0 && number(&certificate, "epsilon") <= 5.0);
        // Resumed at the same order, with the run file or without, and spent to the end.
        place.works("sample --resume out --iterations 10");
        place.works("sample run.toml --resume out --iterations 15");
        place.works("sample --resume out --iterations 100000000 --quiet");
        let certificate = place.certificate("out");
        assert_eq!(certificate["status"], "budget spent");
        assert_eq!(number(&certificate, "order"), order);
        assert_eq!(number(&certificate, "epsilon"), 5.0);
        let spent = number(&certificate, "epsilon_spent");
        assert!(spent > 4.9 && spent <= 5.0, "{spent}");
        assert!(place.works("summary out").contains("filter at order"));
    }
}

#[test]
fn a_shared_ledger_says_what_is_counted() {
    let place = Place::new(RUN);
    place.write("fast.toml", &fast());
    place.works("sample run.toml --iterations 20 --ledger l.json --out first");
    let message = place.refuses("sample fast.toml --iterations 20 --ledger l.json --out second");
    assert!(
        message.contains("l.json") && message.contains("zCDP filter"),
        "{message}"
    );
    place.works("sample fast.toml --iterations 20 --ledger r.json --out third");
    assert!(!place.path("second").exists());
    let order = number(&place.ledger("r.json")["measure"]["renyi"], "order");
    // Any private sampler can share it at its order, which a run that states another is told.
    place.works("sample run.toml --iterations 20 --ledger r.json --out fourth");
    let resolved = std::fs::read_to_string(place.path("fourth/run.toml")).unwrap();
    assert!(
        resolved.contains(&format!("order = {order:?}")),
        "{resolved}"
    );
    let other = format!("delta = 1e-6\norder = {:?}", order + 1.0);
    place.write("run.toml", &edit(RUN, "delta = 1e-6", &other));
    let message = place.refuses("sample run.toml --iterations 20 --ledger r.json --out fifth");
    assert!(
        message.contains(&format!("state order = {order} in [privacy]")),
        "{message}"
    );
}

/// Gaussian noise is counted as Gaussian DP in a ledger of the run's own, as rho in one that
/// other samplers may share; a stated filter rules both, and a resumed run keeps its own.
#[test]
fn a_stated_filter_rules_and_noise_has_its_own() {
    let place = Place::new(&edit(RUN, "\"barker\"", "\"dp-penalty\"\ntau = 40.0"));
    let check = place.works("check run.toml");
    assert!(
        check.contains("mu^2/2") && check.contains("Gaussian-DP filter"),
        "{check}"
    );
    let steps = |out: &str| releases(&place.certificate(out)).0;
    place.works("sample run.toml --iterations 100000 --out own");
    let certificate = place.certificate("own");
    let (claimed, mu) = (number(&certificate, "epsilon"), number(&certificate, "mu"));
    assert!(
        certificate["rho"].is_null() && claimed <= 5.0 && mu > 0.5,
        "{certificate}"
    );
    let printed = format!("mu {})", dpmc::output::guarantee_number(mu));
    assert!(place.works("summary own").contains(&printed));
    let resolved = std::fs::read_to_string(place.path("own/run.toml")).unwrap();
    assert!(resolved.contains("filter = \"gaussian\""), "{resolved}");
    place.works("sample run.toml --iterations 100000 --ledger l.json --out shared");
    assert!(number(&place.certificate("shared"), "rho") > 0.0);
    assert_eq!(place.ledger("l.json")["measure"], "zcdp");
    // About an eighth more of them.
    let more = steps("own") / steps("shared");
    assert!((1.1..1.15).contains(&more), "{more}");
    // A decision by a coin costs up to pi/2 of its rho there.
    let stated = |name: &str| edit(RUN, "delta = 1e-6", &format!("delta = 1e-6\n{name}"));
    for (filter, least, most) in [("zcdp", 1.0, 1.0), ("gaussian", 1.0, 1.571)] {
        place.write("run.toml", &stated(&format!("filter = \"{filter}\"")));
        let ledger = format!("{filter}.json");
        place.works(&format!(
            "sample run.toml --iterations 10 --ledger {ledger} --out {filter}"
        ));
        place.works(&format!("sample --resume {filter} --iterations 20"));
        assert_eq!(place.ledger(&ledger)["measure"], filter);
        let price = crate::common::place::spent(&place.json(&ledger))
            / releases(&place.certificate(filter)).1;
        assert!(
            price > least - 1e-6 && price < most + 1e-6,
            "{filter}: {price}"
        );
    }
    // A ledger that exists says what it counts; one that says otherwise is told.
    place.write("run.toml", RUN);
    place.works("sample run.toml --iterations 10 --ledger gaussian.json --out another");
    assert!(number(&place.certificate("another"), "mu") > 0.0);
    for (settings, words) in [
        ("filter = \"gaussian\"\norder = 12.0", "contradicts 'order'"),
        ("filter = \"zcdp\"", "state filter = \"gaussian\""),
        ("filter = \"renyi\"", "gaussian"),
    ] {
        place.write("run.toml", &stated(settings));
        let message = place.refuses("sample run.toml --ledger gaussian.json --out none");
        assert!(message.contains(words), "{message}");
        assert!(!place.path("none").exists());
    }
}
