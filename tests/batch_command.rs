//! The promise of the command for samplers whose steps have no ρ: `check` says what they cost,
//! the order is chosen once and kept, ledgers of another measure are refused by name, and what is
//! not private says so.

#[path = "common/place.rs"]
#[allow(dead_code)]
mod place;

use place::{Place, RUN, edit, number};

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
        let ledger = place.json("out/ledger.json");
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
fn a_shared_ledger_of_another_measure_is_refused_by_name() {
    let place = Place::new(RUN);
    place.write("fast.toml", &fast());
    place.works("sample run.toml --iterations 20 --ledger l.json --out first");
    let message = place.refuses("sample fast.toml --iterations 20 --ledger l.json --out second");
    assert!(
        message.contains("l.json") && message.contains("zCDP filter"),
        "{message}"
    );
    place.works("sample fast.toml --iterations 20 --ledger r.json --out third");
    let message = place.refuses("sample run.toml --iterations 20 --ledger r.json --out second");
    let order = number(&place.json("r.json")["measure"]["renyi"], "order");
    assert!(
        message.contains(&format!("state order = {order} in [privacy]")),
        "{message}"
    );
    assert!(!place.path("second").exists());
    // As the message says, any private sampler can share it at its order.
    let run = edit(
        RUN,
        "delta = 1e-6",
        &format!("delta = 1e-6\norder = {order}"),
    );
    place.write("run.toml", &run);
    place.works("sample run.toml --iterations 20 --ledger r.json --out fourth");
}

#[test]
fn the_published_form_runs_without_privacy_alone_and_says_why() {
    let run = edit(&fast(), "lambda = 5", "lambda = 5\nas_published = true");
    let place = Place::new(&run);
    let message = place.refuses("sample run.toml --out out");
    assert!(
        message.contains("as_published") && message.contains("--not-private"),
        "{message}"
    );
    place.write("plain.toml", &fast());
    let message = place.refuses("check plain.toml --as-published");
    assert!(message.contains("--as-published"), "{message}");
    place.works("check run.toml --not-private");
    // A model whose row bounds the paper does not state.
    let gauss = "\"gaussian-mean\"\nbox = 3\ncovariance = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]";
    place.write("gauss.toml", &edit(&run, "\"logistic\"", gauss));
    let message = place.refuses("sample gauss.toml --not-private --out out");
    assert!(
        message.contains("sampler.as_published") && message.contains("'gaussian-mean'"),
        "{message}"
    );
    assert!(!place.path("out").exists());
    place.works("sample plain.toml --as-published --not-private --chains 2 --out out --seed 3");
    let certificate = place.certificate("out");
    assert_eq!(certificate["private"], false);
    assert!(certificate["epsilon"].is_null());
    let warnings = certificate["warnings"].to_string();
    for part in [
        "not private",
        "impossible on its neighbour",
        "6Kp",
        "not reversible",
    ] {
        assert!(warnings.contains(part), "no '{part}': {warnings}");
    }
    place.draws("out").assert_contiguous(2);
    let resolved = std::fs::read_to_string(place.path("out/run.toml")).unwrap();
    assert!(resolved.contains("as_published = true"), "{resolved}");
}
