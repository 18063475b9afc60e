//! Runs of a comparison pay for what they release, or say that nothing does.

use super::*;
use dpmc::privacy::{Event, Form};
use dpmc::synthetic;

const ROWS: usize = 2_000;
const STEPS: u64 = 40;
const MIXTURE: &str = "[data]\nfile = 'x'\n[[data.features]]\ncolumn = 'x'\nclamp = [-3, 3]\n[model]\nkind = 'mixture'\ntempering = 0.01\nbox = 3.0\n";
const LOGISTIC: &str = "[data]\nfile = 'x'\n[data.label]\ncolumn = 'y'\n[[data.features]]\ncolumns = ['a', 'b']\nclamp = [-1, 1]\n[model]\nkind = 'logistic'\nprior = { kind = 'normal', sd = 1.0 }\n";

fn trace(method: &Method<'_>) -> Trace {
    let problem = Problem {
        settings: MIXTURE,
        delta: 1e-5,
        data: &|| Ok(synthetic::mixture(ROWS, Some(3.0), 1)?),
    };
    run(&problem, method, STEPS, 1).unwrap()
}

#[test]
fn what_no_ledger_pays_for_is_not_private() {
    let walk = "algorithm = 'mh'\nstep = 0.06";
    let published = Published {
        settings: FastMhSettings {
            lambda: 10.0,
            batch_cap: 60.0,
            epsilon: 0.05,
            delta: 1e-5,
        },
        bound: RowBound::Mixture { variance: 2.0 },
    };
    for method in [
        Method::reference("mh", walk),
        Method::published("published", walk, published).claiming("0.05"),
    ] {
        let trace = trace(&method);
        assert_eq!(trace.spent(), "NOT private");
        assert!(trace.stops.iter().all(|s| s.epsilon.is_infinite()));
    }
    // Nothing that is not private is run as if it were.
    let problem = Problem {
        settings: MIXTURE,
        delta: 1e-5,
        data: &|| Ok(synthetic::mixture(ROWS, Some(3.0), 1)?),
    };
    assert!(run(&problem, &Method::sound("no", walk), STEPS, 1).is_err());
}

/// The ε of a fixed batch is the accountant's for so many of its events; it reads b rows.
#[test]
fn releases_without_a_rho_cost_what_the_accountant_says() {
    let sampler = "algorithm = 'dp-barker-subsampled'\nbatch = 200\nstep = 0.02";
    let trace = trace(&Method::sound("subsampled", sampler));
    assert_eq!(trace.rows_a_step(), 200.0);
    let budget = Budget::new(MINIBATCH_ROOM, 1e-5).unwrap();
    let event = Event::Heikkila {
        batch: 200,
        rows: ROWS as u64,
        form: Form::Tightened,
    };
    for stop in &trace.stops {
        let events = vec![(event, stop.iteration)];
        let sequence = Sequence::new(Neighbours::Substitution, events).unwrap();
        let delta = budget.conversion_delta();
        let account = account_without_losses(&sequence, Question::Epsilon { delta });
        assert_eq!(stop.epsilon, account.upper);
    }
    let grows = |p: &[Stop]| p[0].epsilon < p[1].epsilon;
    assert!(trace.stops.len() > 5 && trace.stops.windows(2).all(grows));
}

/// The anchor is released first: seven passes over all rows, and all of its budget owed.
#[test]
fn an_anchor_is_counted() {
    let method = Method::ours("anchored", "algorithm = 'anchored-barker'").within(8.0);
    let problem = Problem {
        settings: LOGISTIC,
        delta: 1e-5,
        data: &|| Ok(synthetic::logistic(ROWS, &[0.5, -0.5], 1)?),
    };
    let trace = run(&problem, &method, STEPS, 1).unwrap();
    assert!(trace.stops.iter().all(|s| s.epsilon == 8.0));
    let beyond = trace.end().rows - 7.0 * ROWS as f64;
    assert!(beyond > 0.0 && beyond < (STEPS * ROWS as u64) as f64);
}
