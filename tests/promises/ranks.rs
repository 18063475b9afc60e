//! The promise: rows may lie on any number of ranks, and a seeded run draws the same bits, charges
//! the same ledger and says the same of itself but for how many ranks there were.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use crate::common::ranks::links;
use dpmc::config::Plan;
use dpmc::run::{Coins, Leader, Place, Prepared, RunError, prepare, prepare_over, serve};

/// More rows than are dealt together, in some files of unequal length.
const ROWS: usize = 10_000;

fn line(i: usize) -> String {
    let turn = |rate: f64| (rate * i as f64).sin();
    let (a, b) = (turn(1.3), turn(0.7) + 0.2 * turn(2.1));
    let noise = 0.5 * turn(12.9898 * i as f64);
    let y = usize::from(0.8 * a - 0.5 * b + noise > 0.1);
    let count = (1.5 + a + noise).max(0.0).round();
    format!("{a:.4},{b:.4},{y},{count}\n")
}

fn tables(folder: &Path) {
    let text = |rows: std::ops::Range<usize>| -> String {
        let lines: Vec<String> = rows.map(line).collect();
        format!("a,b,y,n\n{}", lines.concat())
    };
    std::fs::write(folder.join("one.csv"), text(0..ROWS)).unwrap();
    std::fs::create_dir(folder.join("many")).unwrap();
    for (file, rows) in [0..10, 10..5_000, 5_000..5_001, 5_001..9_000, 9_000..ROWS]
        .into_iter()
        .enumerate()
    {
        std::fs::write(folder.join(format!("many/{file}.csv")), text(rows)).unwrap();
    }
}

fn text(file: &str, model: &str, sampler: &str, privacy: &str) -> String {
    let label = match model.contains("poisson") || model.contains("negative-binomial") {
        true => "column = \"n\"\ncount = 9",
        false => "column = \"y\"",
    };
    let label = match model.contains("gaussian-mean") {
        true => String::new(),
        false => format!("[data.label]\n{label}\n[[data.features]]\nintercept = true\n"),
    };
    format!(
        "[data]\nfile = \"{file}\"\n{label}[[data.features]]\ncolumns = [\"a\", \"b\"]\nclamp = [-1, 1]\n[model]\n{model}\n[sampler]\n{sampler}\n[run]\niterations = 40\nseed = 5\nengine = \"cpu\"\n{privacy}"
    )
}

/// Draws to the bit, and the certificate without what names the machine.
fn outcome(prepared: Prepared) -> (Vec<Vec<u64>>, serde_json::Value, String) {
    let mut run = prepared
        .begin(Place::Memory, Coins::Seeded(9), None)
        .unwrap();
    while *run.step() == dpmc::posterior_run::Status::Running {}
    let (draws, certificate) = run.take_draws();
    let bits = draws
        .iter()
        .map(|d| d.theta.iter().map(|v| v.to_bits()).collect());
    let mut certificate = serde_json::to_value(&certificate).unwrap();
    let driver = certificate["engine"]["driver"].take();
    (bits.collect(), certificate, driver.to_string())
}

fn plan(folder: &Path, text: &str) -> Plan {
    Plan::parse(&folder.join("run.toml"), text.into()).unwrap()
}

/// Prepares and makes a run over so many ranks, which are threads.
fn over<T>(size: usize, plan: Plan, made: impl FnOnce(Result<Prepared, RunError>) -> T) -> T {
    let mut links = links(size).into_iter();
    let first = links.next().unwrap();
    std::thread::scope(|scope| {
        for link in links {
            scope.spawn(move || {
                let served = std::panic::catch_unwind(AssertUnwindSafe(|| serve(&link)));
                // Others would wait for it forever.
                if !matches!(served, Ok(Ok(()))) {
                    std::process::abort();
                }
            });
        }
        let mut leader = Leader::new(Arc::new(first));
        let prepared = prepare_over(plan, &mut leader);
        made(prepared)
    })
}

const PRIVATE: &str = "[privacy]\nepsilon = 40.0\ndelta = 1e-6\n";
const OPEN: &str = "[privacy]\nnot_private = true\n";
const LOGISTIC: &str = "kind = \"logistic\"\nprior = { kind = \"normal\", sd = 2.0 }";
const POISSON: &str = "kind = \"poisson\"\nprior = { kind = \"normal\", sd = 2.0 }";
const NETWORK: &str = "kind = \"mlp\"\nhidden = 4\nprior = { kind = \"normal\", sd = 1.0 }";
const LAYERS: &str = "kind = \"network\"\nlayers = [{ dense = 4 }, \"tanh\"]\nprior = { kind = \"normal\", sd = 1.0 }";
const SHARED: &str = "kind = \"negative-binomial\"\nprior = { kind = \"normal\", sd = 2.0 }\nparameters = { log_shape = { mean = 0, sd = 2 } }";
const MEAN: &str = "kind = \"gaussian-mean\"\ncovariance = [[0.3, 0.0], [0.0, 0.3]]\nprior = { kind = \"normal\", sd = 1.0 }";

#[test]
fn any_number_of_ranks_gives_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    let step = "step = 1e-3";
    let clip = "gradient = { clip = 1.0 }";
    let batch = "gradient = { clip = 1.0, rate = 0.02 }";
    let cases = [
        (LOGISTIC, format!("algorithm = \"mh\"\n{step}"), OPEN),
        (LOGISTIC, format!("algorithm = \"barker\"\n{step}"), PRIVATE),
        (
            LOGISTIC,
            format!("algorithm = \"poisson-barker\"\n{step}"),
            PRIVATE,
        ),
        (POISSON, "algorithm = \"anchored-barker\"".into(), PRIVATE),
        (LOGISTIC, "algorithm = \"dp-laplace\"".into(), PRIVATE),
        (
            LOGISTIC,
            format!("algorithm = \"dp-hmc\"\nleapfrog_steps = 3\n{step}\n{clip}"),
            PRIVATE,
        ),
        (
            LOGISTIC,
            format!("algorithm = \"dp-sgld\"\n{batch}"),
            PRIVATE,
        ),
        (
            NETWORK,
            format!("algorithm = \"dp-sgld\"\n{batch}"),
            PRIVATE,
        ),
        (LAYERS, format!("algorithm = \"dp-sgld\"\n{batch}"), PRIVATE),
        (SHARED, "algorithm = \"anchored-barker\"".into(), PRIVATE),
        (SHARED, format!("algorithm = \"mh\"\n{step}"), OPEN),
        (
            MEAN,
            "algorithm = \"anchored-barker\"\nstep = 0.05".into(),
            PRIVATE,
        ),
    ];
    for (model, sampler, privacy) in cases {
        let alone = outcome(
            prepare(plan(
                folder.path(),
                &text("one.csv", model, &sampler, privacy),
            ))
            .unwrap(),
        );
        for (file, size) in [
            ("one.csv", 1),
            ("one.csv", 2),
            ("one.csv", 3),
            ("one.csv", 8),
            ("many", 2),
            ("many", 3),
        ] {
            let text = text(file, model, &sampler, privacy);
            let (draws, certificate, driver) = over(size, plan(folder.path(), &text), |prepared| {
                outcome(prepared.unwrap())
            });
            assert_eq!(draws, alone.0, "{sampler}, {file}, {size} ranks");
            assert!(driver.contains(&format!("{size} ranks")), "{driver}");
            assert_eq!(certificate, alone.1, "{sampler}, {file}, {size} ranks");
        }
    }
}

#[test]
fn what_goes_wrong_on_a_rank_is_said_and_all_end() {
    let folder = tempfile::tempdir().unwrap();
    tables(folder.path());
    let said = |text: &str, size: usize| -> String {
        over(size, plan(folder.path(), text), |prepared| match prepared {
            Ok(_) => "nothing".into(),
            Err(e) => e.to_string(),
        })
    };
    let sampler = "algorithm = \"barker\"\nstep = 1e-3";
    let good = text("many", LOGISTIC, sampler, PRIVATE);
    assert_eq!(said(&good, 3), "nothing");
    // The last file is another rank's.
    std::fs::write(
        folder.path().join("many/4.csv"),
        "a,b,y,n\n0.1,secret,1,1\n",
    )
    .unwrap();
    let what = said(&good, 3);
    assert!(
        what.contains("rank 2") && what.contains("4.csv, line 2, column 'b'"),
        "{what}"
    );
    assert!(!what.contains("secret"), "{what}");
    let unit = good.replace(
        "file = \"many\"",
        "file = \"one.csv\"\nunit = \"n\"\nrows_per_unit = 2",
    );
    assert!(said(&unit, 2).contains("data.unit"), "{}", said(&unit, 2));
    std::fs::write(folder.path().join("one.csv"), "a,b,y,n\n0.1,0.2,1,1\n").unwrap();
    let what = said(&text("one.csv", LOGISTIC, sampler, PRIVATE), 2);
    assert!(what.contains("1 row(s)"), "{what}");
}
