//! Promise: the accountants agree with published ones and with independent references.
//! `tests/data/accounting.json` holds the values, with versions and known bugs.

use dpmc::privacy::accountant::{Account, Question, Sequence, account};
use dpmc::privacy::{Event, Form, Neighbours};
use serde_json::Value;

fn entries(group: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("../data/accounting.json")).unwrap();
    let entries = file["entries"].as_array().unwrap();
    entries
        .iter()
        .filter(|e| e["group"] == group)
        .cloned()
        .collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn ask(entry: &Value, neighbours: Neighbours, events: Vec<(Event, u64)>) -> Account {
    let sequence = Sequence::new(neighbours, events).unwrap();
    let delta = number(&entry["query"]["delta"]);
    account(&sequence, Question::Epsilon { delta })
}

/// `upper` ≥ the truth and within 0.5 % of it; `lower` never above it.
fn check(entry: &Value, answer: &Account) {
    let bracket = &entry["bracket"];
    let id = &entry["id"];
    println!("{id} {} {} {}", answer.lower, answer.upper, answer.method);
    // Extrapolated values are good to about 1e-4; published brackets end at `upper`.
    if let Some(exact) = bracket["exact"].as_f64() {
        assert!(answer.upper >= exact * (1.0 - 1e-9), "{id}: {answer:?}");
        assert!(answer.upper <= exact * 1.005, "{id}: {answer:?}");
        assert!(answer.lower <= exact * (1.0 + 1e-9), "{id}: {answer:?}");
        return;
    }
    if let Some(lower) = bracket["lower"].as_f64() {
        assert!(answer.upper >= lower, "{id}: {answer:?}");
    }
    if let Some(best) = bracket["best_estimate"].as_f64() {
        assert!(answer.upper >= best * (1.0 - 1e-3), "{id}: {answer:?}");
        assert!(answer.upper <= best * 1.005, "{id}: {answer:?}");
        assert!(answer.lower <= best * (1.0 + 1e-4), "{id}: {answer:?}");
    }
    if let Some(upper) = bracket["upper"].as_f64() {
        assert!(answer.lower <= upper, "{id}: {answer:?}");
        assert!(answer.upper <= upper * 1.005 + 1e-12, "{id}: {answer:?}");
    }
}

#[test]
fn compositions_of_gaussians() {
    for entry in entries("a") {
        let mu = number(&entry["parameters"]["mu_gdp"]);
        let event = Event::Gaussian {
            sensitivity: mu,
            sigma: 1.0,
        };
        let answer = ask(&entry, Neighbours::AddRemove, vec![(event, 1)]);
        check(&entry, &answer);
        for (epsilon, delta) in entry["delta_at_eps"].as_object().unwrap() {
            let sequence = Sequence::new(Neighbours::AddRemove, vec![(event, 1)]).unwrap();
            let epsilon = epsilon.parse().unwrap();
            let ours = account(&sequence, Question::Delta { epsilon });
            let delta = number(delta);
            assert!(
                ours.upper >= delta * (1.0 - 1e-9),
                "{} {ours:?}",
                entry["id"]
            );
            assert!(
                ours.upper <= delta * (1.0 + 1e-6) + 1e-100,
                "{} {ours:?}",
                entry["id"]
            );
        }
    }
}

#[test]
fn poisson_subsampled_gaussians() {
    for entry in entries("b") {
        let p = &entry["parameters"];
        let count = entry["compositions"].as_u64().unwrap();
        let relation = entry["neighbour_relation"].as_str().unwrap();
        // The file's σ is relative to one row; substitution changes two.
        let (neighbours, sensitivity) = if relation.starts_with("replace-one") {
            (Neighbours::Substitution, 2.0)
        } else {
            (Neighbours::AddRemove, 1.0)
        };
        let event = Event::PoissonGaussian {
            rate: number(&p["q"]),
            sensitivity,
            sigma: number(&p["sigma"]),
        };
        check(&entry, &ask(&entry, neighbours, vec![(event, count)]));
    }
}

#[test]
fn batches_of_fixed_size() {
    for entry in entries("c") {
        let p = &entry["parameters"];
        let event = Event::FixedBatchGaussian {
            batch: p["batch"].as_u64().unwrap(),
            rows: p["N"].as_u64().unwrap(),
            sensitivity: 1.0,
            sigma: number(&p["sigma"]),
        };
        let count = entry["compositions"].as_u64().unwrap();
        check(
            &entry,
            &ask(&entry, Neighbours::Substitution, vec![(event, count)]),
        );
    }
}

#[test]
fn pure_and_bounded_range() {
    for entry in entries("d") {
        let p = &entry["parameters"];
        let count = entry["compositions"].as_u64().unwrap();
        let event = match (p["eps0"].as_f64(), p["eta"].as_f64()) {
            (Some(epsilon), _) => Event::Pure { epsilon },
            (_, Some(eta)) => Event::BoundedRange { eta },
            _ => panic!("{entry}"),
        };
        let answer = ask(&entry, Neighbours::Substitution, vec![(event, count)]);
        check(&entry, &answer);
        if matches!(event, Event::BoundedRange { .. }) {
            // Not below what bits chosen in advance can reach, not above zCDP; the lower
            // bound is theirs or less.
            let reached =
                number(&entry["answers"]["exact_nonadaptive(Dong-Durfee-Rogers20)"]["eps"]);
            let zcdp = number(&entry["answers"]["opendp.zCDP(eta^2/8)"]["eps"]);
            assert!(answer.upper >= reached && answer.upper <= zcdp * (1.0 + 1e-6));
            assert!(answer.lower <= reached * (1.0 + 1e-6) && answer.lower > 0.5 * reached);
        }
    }
}

#[test]
fn mixed_sequences() {
    for entry in entries("e") {
        let p = &entry["parameters"];
        let mut events = Vec::new();
        for triple in p["gaussians_q_sigma_count"].as_array().unwrap() {
            events.push((
                Event::PoissonGaussian {
                    rate: number(&triple[0]),
                    sensitivity: 1.0,
                    sigma: number(&triple[1]),
                },
                triple[2].as_u64().unwrap(),
            ));
        }
        for pair in p["pure_eps_count"].as_array().unwrap() {
            let epsilon = number(&pair[0]);
            events.push((Event::Pure { epsilon }, pair[1].as_u64().unwrap()));
        }
        check(&entry, &ask(&entry, Neighbours::AddRemove, events));
    }
}

/// The conversion from Rényi divergence itself, and the classic one.
#[test]
fn conversions() {
    for entry in entries("f") {
        let text = entry["parameters"]["rdp"].as_str().unwrap();
        let Some(rho) = text.split("rho=").nth(1) else {
            continue;
        };
        let rho: f64 = rho.parse().unwrap();
        let delta = number(&entry["query"]["delta"]);
        let ours = dpmc::privacy::epsilon_of_rho(rho, delta);
        let peer = number(&entry["answers"]["dp_accounting.rdp.compute_epsilon (CKS20)"]["eps"]);
        // The peer's orders are a grid; ours are not.
        assert!(
            ours <= peer * (1.0 + 1e-9) && ours > peer * 0.999,
            "{ours} {peer}"
        );
        let classic = number(&entry["answers"]["classic Mironov17"]["eps"]);
        let ours = dpmc::privacy::epsilon_of_rho_classic(rho, delta);
        assert!(ours <= classic * (1.0 + 1e-9) && ours > classic * 0.999);
    }
}

#[test]
fn heikkila_2019_as_published_and_tightened() {
    for entry in entries("g") {
        let p = &entry["parameters"];
        let count = entry["compositions"].as_u64().unwrap();
        for (form, key) in [
            (Form::Published, "eq21+eq22, CKS20"),
            (Form::Tightened, "tightened eq21 + eq22, CKS20"),
        ] {
            let event = Event::Heikkila {
                batch: p["b"].as_u64().unwrap(),
                rows: p["N"].as_u64().unwrap(),
                form,
            };
            let answer = ask(&entry, Neighbours::Substitution, vec![(event, count)]);
            let peer = number(&entry["answers"][key]["eps"]);
            println!("{} {form:?} {} {peer}", entry["id"], answer.upper);
            assert!(
                answer.upper <= peer * (1.0 + 1e-6) && answer.upper > peer * 0.99,
                "{} {form:?}: {answer:?} {peer}",
                entry["id"]
            );
        }
    }
}

/// Step-size schedules of up to 10,000 distinct σ. The file's own values round every σ
/// to one of 100 buckets, down (`upper`) or up: the truth is between them.
#[test]
fn schedules() {
    check_schedules(0..=10_000);
}

#[test]
#[ignore = "study"]
fn schedules_of_many_more_steps() {
    check_schedules(10_001..=u64::MAX);
}

fn check_schedules(counts: std::ops::RangeInclusive<u64>) {
    for entry in entries("h") {
        let p = &entry["parameters"];
        let count = entry["compositions"].as_u64().unwrap();
        if !counts.contains(&count) {
            continue;
        }
        let first = p["sigma_1"].as_f64().unwrap_or(0.790_569_415_042_094_8);
        let events = (1..=count)
            .map(|t| {
                (
                    Event::PoissonGaussian {
                        rate: number(&p["q"]),
                        sensitivity: 1.0,
                        sigma: first * (t as f64).powf(1.0 / 6.0),
                    },
                    1,
                )
            })
            .collect();
        let answer = ask(&entry, Neighbours::AddRemove, events);
        let high = number(&entry["bracket"]["upper"]);
        let low = entry["answers"]["ref.pld"]["eps_sigma_bucket_max"]
            .as_f64()
            .unwrap_or(high * 0.999);
        let id = &entry["id"];
        println!("{id} {low} {high} {} {}", answer.lower, answer.upper);
        assert!(answer.upper >= low && answer.upper <= high * 1.005, "{id}");
        assert!(
            answer.lower <= high && answer.upper - answer.lower < 0.01 * high,
            "{id}"
        );
    }
}
