//! The promise: the run files of `examples` run as they stand, within their budgets.

use crate::common::place::{Place, RUN, number, repository};

/// The README's first regression, as it stands there. Decisions are spread by what those at the
/// released anchor cost, so that the budget holds all iterations: where they were spread by a rule
/// of thumb each of 64 runs ended early, after about 6,000 of 10,000.
#[test]
fn the_first_regression_of_the_readme_runs_to_its_end() {
    let readme = std::fs::read_to_string(repository("README.md")).unwrap();
    let run = readme.split("```toml\n").nth(1).unwrap();
    let run = run.split("```").next().unwrap();
    let place = Place::new(&run.replace("examples/data", &repository("examples/data")));
    let text = place.works("sample run.toml --out out");
    assert!(text.contains("private: (6.0000, 1e-6)-DP"), "{text}");
    let certificate = place.certificate("out");
    assert_eq!(certificate["status"], "finished");
    // Nearly all was spent on gradients, of which a row alone makes half of what replacing it can.
    let spent = number(&certificate, "epsilon_spent");
    let blank = number(&certificate, "epsilon_zero_out");
    assert!(
        (0.48 * spent..0.6 * spent).contains(&blank),
        "{blank} of {spent}"
    );
    assert!(
        text.contains("for comparison, no guarantee: epsilon"),
        "{text}"
    );
    assert_eq!(place.draws("out").rows.len(), 10_000);
}

/// Without privacy no move is too long: a chain of `barker-hmc` that starts far from the mode
/// gets there, where the limit on what a move may cost kept it at its start for ever.
#[test]
fn a_far_start_does_not_hold_barker_hmc() {
    let readme = std::fs::read_to_string(repository("README.md")).unwrap();
    let run = readme.split("```toml\n").nth(1).unwrap();
    let run = run.split("```").next().unwrap();
    let run = run.replace("examples/data", &repository("examples/data"));
    let run = run.replace("\"anchored-barker\"", "\"barker-hmc\"\nstep = 0.005");
    let place = Place::new(&format!(
        "{run}\n[run]\niterations = 60\nseed = 7\nengine = \"cpu\"\n"
    ));
    let text = place.works("sample run.toml --not-private --out out");
    let accepted = text.split("acceptance ").nth(1).unwrap();
    let accepted: f64 = accepted.split(',').next().unwrap().parse().unwrap();
    assert!(accepted > 0.2, "{text}");
}

/// DP-SGLD as a private run: the step by the budget, the budget kept, the accuracy of more
/// than the larger class's 0.76.
#[test]
fn the_langevin_example_runs_within_its_budget() {
    let place = Place::new(RUN);
    let run = repository("examples/adult_sgld.toml");
    let text = place.works(&format!("check {run}"));
    assert!(
        text.contains("32561 rows") && !text.contains("end early"),
        "{text}"
    );
    // Also where the orders that serve a budget of 1 convert to more than all of it.
    let small = place.works(&format!("check {run} --epsilon 0.05"));
    assert!(!small.contains("end early"), "{small}");
    let text = place.works(&format!("sample {run} --engine cpu --out out"));
    let accuracy = text.split("test accuracy ").nth(1).unwrap();
    let accuracy: f64 = accuracy.split(',').next().unwrap().parse().unwrap();
    assert!(accuracy > 0.8293, "{text}");
    let certificate = place.certificate("out");
    assert_eq!(certificate["status"], "finished");
    assert_eq!(certificate["rows"], 32_561);
    let epsilon = number(&certificate, "epsilon");
    assert!(0.5 < epsilon && epsilon <= 1.0, "{epsilon}");
}

/// The second paper's task as a private run: the table is read, the budget kept.
#[test]
fn the_mnist_example_runs_within_its_budget() {
    let place = Place::new(RUN);
    let run = repository("examples/mnist79.toml");
    let text = place.works(&format!("check {run}"));
    assert!(
        text.contains("12214 rows") && !text.contains("end early"),
        "{text}"
    );
    let text = place.works(&format!("sample {run} --iterations 50 --out out"));
    assert!(text.contains("test accuracy"), "{text}");
    let certificate = place.certificate("out");
    assert_eq!(certificate["status"], "finished");
    assert_eq!(certificate["rows"], 12_214);
    let epsilon = number(&certificate, "epsilon");
    assert!(0.0 < epsilon && epsilon < 5.0, "{epsilon}");
}
