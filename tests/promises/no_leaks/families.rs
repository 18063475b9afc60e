//! Non-interference, sampler by sampler: two tables that differ in one row, the same secret and
//! public coins, and the same bytes in every file.
//!
//! What is released has noise on sums of rows, so the substituted row must leave these sums alone.
//! `FLIP` does: a logistic regression without intercept cannot tell (x, y) from (−x, −y), but any
//! mean, count, norm or cell could. `NEAR` moves a cell by its last bit, which the grid of sums
//! does not see. `FAR` is another row altogether, where decisions or batches happen to agree.

use std::collections::BTreeSet;
use std::path::Path;

use dpmc::config::Plan;
use dpmc::output::{RunDirectory, summarize_directory};
use dpmc::posterior_run::{PosteriorRun, Status};
use dpmc::privacy::{Curator, CuratorError, Ledger};
use dpmc::sampler::Chains;

use super::{command, files};

const FLIP: [&str; 2] = ["0.5,-0.25,1", "-0.5,0.25,0"];
const NEAR: [&str; 2] = ["0.3137,-0.25,1", "0.31370003,-0.25,1"];
const FAR: [&str; 2] = ["0.5,-0.25,1", "-1.0,1.0,0"];

const LOGISTIC: &str =
    "kind = \"logistic\"\ntempering = 0.1\nprior = { kind = \"normal\", sd = 1.0 }";
const BOXED: &str =
    "kind = \"logistic\"\ntempering = 0.1\nbox = 0.001\nprior = { kind = \"normal\", sd = 1.0 }";
const NETWORK: &str = "kind = \"mlp\"\nhidden = 1\nprior = { kind = \"normal\", sd = 1.0 }";
const MIXTURE: &str = "kind = \"mixture\"\nvariance = 0.5\nbox = 2.0\ntempering = 0.5";
const MEAN: &str = "kind = \"gaussian-mean\"\ncovariance = [[0.3, 0.0], [0.0, 0.3]]\nprior = { kind = \"normal\", sd = 1.0 }";

/// 400 rows of a, b and a label; the last one is `last`.
fn table(last: &str) -> String {
    let mut text = String::from("a,b,y\n");
    for i in 0..399 {
        let (a, b) = ((f64::from(i) * 0.7).sin(), (f64::from(i) * 1.3).cos());
        text += &format!("{a:.4},{b:.4},{}\n", u32::from(a + 0.3 * b > 0.0));
    }
    text + last + "\n"
}

fn run_file(model: &str, sampler: &str, epsilon: f64) -> String {
    let (label, columns) = match model {
        MIXTURE => ("", "column = \"a\""),
        MEAN => ("", "columns = [\"a\", \"b\"]"),
        _ => ("[data.label]\ncolumn = \"y\"", "columns = [\"a\", \"b\"]"),
    };
    let start = match model {
        NETWORK => "start = { value = [1.0, 0.0, 0.0, 1.0, 0.0] }",
        _ => "",
    };
    format!(
        "[data]\nfile = \"t.csv\"\n{label}\n[[data.features]]\n{columns}\nclamp = [-1, 1]\n\
         [model]\n{model}\n[sampler]\n{sampler}\n\
         [run]\nwarmup = 10\niterations = 20\nchains = 2\nengine = \"cpu\"\n{start}\n\
         [privacy]\nepsilon = {epsilon:?}\ndelta = 1e-6\n"
    )
}

/// Runs into `out`; how it ended. The coins are those of seed 5.
fn run(folder: &Path, run_file: &str, last: &str, out: &str) -> Result<Status, CuratorError> {
    std::fs::write(folder.join("t.csv"), table(last)).unwrap();
    let plan = Plan::parse(&folder.join("run.toml"), run_file.into()).unwrap();
    let data = plan.load_data().unwrap();
    let model = plan.model(&data).unwrap();
    let rows = data.rows();
    let sampler = plan.sampler(&*model, rows, data.row_norm()).unwrap();
    let budget = plan.budget().unwrap().unwrap();
    let measure = plan.measure(&sampler, &*model, rows, budget).unwrap();
    let out = folder.join(out);
    let mut directory = RunDirectory::create(&out).unwrap();
    let ledger = Ledger::open(&out.join("ledger.json"), "t", rows, budget, measure);
    let mut ledger = ledger.unwrap();
    ledger.covers_one_run(true);
    let starts = plan.starts(&*model, [9; 32]).unwrap();
    let start = plan.warm_start(&*model).unwrap();
    let curator = Curator::private(data, model, plan.config.run.engine, ledger, Some(5))?;
    let chains = Chains::new(&starts, [9; 32]);
    let (length, resolved) = (plan.length().unwrap(), plan.resolved().unwrap());
    let mut run = PosteriorRun::new(curator, sampler, chains, length, resolved, Vec::new())
        .starting_by(start);
    directory.begin(&mut run).unwrap();
    while *run.step() == Status::Running {
        if run.progress().0.is_multiple_of(12) {
            directory.publish(&mut run).unwrap();
        }
    }
    directory.finish(&mut run).unwrap();
    Ok(run.status().clone())
}

/// JSON without the ledger's random names and the hashes that follow from them: strings of 32 or 64
/// hexadecimal digits. (A part's hash is among them; parts themselves are compared.)
fn nameless(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let pieces = text.split('"').map(|piece| {
        let random =
            [32, 64].contains(&piece.len()) && piece.bytes().all(|b| b.is_ascii_hexdigit());
        if random { "#" } else { piece }
    });
    pieces.collect::<Vec<_>>().join("\"").into_bytes()
}

/// Files by name, and the summary.
type Left = Vec<(String, Vec<u8>)>;

/// How both runs ended, and what the two tables leave: every file by name, and the summary.
fn left_by(text: &str, rows: [&str; 2]) -> Result<(Status, [Left; 2]), CuratorError> {
    let folder = tempfile::tempdir().unwrap();
    let one = run(folder.path(), text, rows[0], "one")?;
    let two = run(folder.path(), text, rows[1], "two")?;
    // A message is a release too.
    assert_eq!(one, two, "{text}");
    let left = ["one", "two"].map(|out| {
        let out = folder.path().join(out);
        let summary = serde_json::to_vec(&summarize_directory(&out).unwrap()).unwrap();
        let mut left = files(&out);
        for (name, bytes) in &mut left {
            if name.ends_with(".json") {
                *bytes = nameless(bytes);
            }
        }
        left.push(("the summary".into(), summary));
        left
    });
    Ok((one, left))
}

fn assert_equal(text: &str, [one, two]: &[Left; 2]) {
    let names = |left: &Left| {
        left.iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(one), names(two), "{text}");
    for ((name, left), (_, right)) in one.iter().zip(two) {
        assert!(left == right, "{text}: {name} differs");
    }
}

/// Model, `[sampler]` and the rows that are told apart by nothing it releases.
fn families() -> Vec<(&'static str, String, [&'static str; 2])> {
    let noise = "gradient = { tau = 5.0 }";
    let mut all = Vec::new();
    for sampler in [
        "algorithm = \"barker\"\nadapt = \"full\"\nstep = 0.05".to_string(),
        "algorithm = \"poisson-barker\"\nstep = 0.05\nlambda_ratio = 2.0".into(),
        "algorithm = \"dp-penalty\"\ntau = 20.0\nstep = 0.05\nadapt = \"diagonal\"".into(),
        "algorithm = \"dp-barker\"\nstep = 0.05".into(),
        "algorithm = \"dp-barker-subsampled\"\nbatch = 50\nstep = 0.05".into(),
        "algorithm = \"dp-fast-mh\"\nstep = 0.05".into(),
        "algorithm = \"dp-fast-mh-full\"\nstep = 0.05".into(),
        format!("algorithm = \"dp-hmc\"\nstep = 0.1\nleapfrog_steps = 2\ntau = 20.0\n{noise}"),
        format!("algorithm = \"barker-hmc\"\nstep = 0.1\nleapfrog_steps = 2\n{noise}"),
        "algorithm = \"dp-sgld\"\nstep = 1e-4".into(),
        "algorithm = \"dp-sghmc\"\nstep = 1e-4".into(),
        "algorithm = \"dp-sgnht\"\nstep = 1e-4".into(),
        format!("algorithm = \"dp-sgd\"\n{noise}"),
        format!("algorithm = \"dp-adam\"\n{noise}"),
        format!("algorithm = \"dpvi\"\nsteps = 20\n{noise}"),
        "algorithm = \"dp-laplace\"".into(),
        "algorithm = \"anchored-barker\"".into(),
        "algorithm = \"anchored-barker\"\nanchor = { decisions = 0.5 }".into(),
    ] {
        all.push((LOGISTIC, sampler, FLIP));
    }
    all.push((BOXED, "algorithm = \"ops\"\nsteps = 2".into(), FLIP));
    let rate = "gradient = { clip = 1.0, rate = 0.002 }";
    for (model, sampler, rows) in [
        (
            LOGISTIC,
            format!("algorithm = \"dp-sgld\"\nstep = 1e-4\n{rate}"),
            FAR,
        ),
        (
            NETWORK,
            format!("algorithm = \"dp-sgld\"\nstep = 1e-4\n{rate}"),
            FAR,
        ),
        (
            NETWORK,
            "algorithm = \"anchored-barker\"\nclip = { rate = 1.5 }".into(),
            NEAR,
        ),
        (
            MIXTURE,
            "algorithm = \"anchored-barker\"\nstep = 0.1\nanchor = { degree = 2 }".into(),
            NEAR,
        ),
        (
            MEAN,
            "algorithm = \"anchored-barker\"\nstep = 0.1".into(),
            NEAR,
        ),
    ] {
        all.push((model, sampler, rows));
    }
    all
}

pub fn every_family_leaves_equal_bytes(docs: &str) {
    let listed = command::listed(docs);
    let mut found: [BTreeSet<String>; 3] = Default::default();
    for (model, sampler, rows) in families() {
        let text = run_file(model, &sampler, 20.0);
        let (ended, left) = left_by(&text, rows).unwrap();
        // So few rows leave a network's anchor nothing for decisions.
        let expected = match (model, rows) {
            (NETWORK, NEAR) => Status::BudgetSpent,
            _ => Status::Finished,
        };
        assert_eq!(ended, expected, "{text}");
        assert_equal(&text, &left);
        let named = |name: &str| {
            let found = left[0].iter().find(|(file, _)| file == name);
            let found = found.unwrap_or_else(|| panic!("no {name}: {text}"));
            found.1.as_slice()
        };
        if ended == Status::Finished {
            named("draws.parquet/part-000000.parquet");
        }
        for (i, name) in ["certificate", "state", "ledger"].iter().enumerate() {
            let file = serde_json::from_slice(named(&format!("{name}.json"))).unwrap();
            command::assert_listed(&file, &listed[i], &format!("{name}.json of {sampler}"));
            found[i].append(&mut command::keys_of(&file));
        }
    }
    // Nothing is listed that no sampler writes. (`records` is the command's.)
    found[0].insert("records".into());
    assert_eq!(listed[..2], found[..2]);
}

/// The comparison above is not one of files that no row reaches.
pub fn rows_do_reach_the_files() {
    for sampler in [
        "algorithm = \"dp-laplace\"",
        "algorithm = \"dp-sgld\"\nstep = 1e-4",
    ] {
        let (_, [one, two]) = left_by(&run_file(LOGISTIC, sampler, 20.0), FAR).unwrap();
        assert!(one != two, "{sampler}");
    }
}

/// A start from which an anchor fails: what is said, and what is left, follows releases.
pub fn a_run_that_fails_says_the_same() {
    let sampler = "algorithm = \"anchored-barker\"\nclip = { rate = 1.5 }\nanchor = { stages = 1 }";
    let text = run_file(NETWORK, sampler, 20.0).replace("1.0, 0.0]", "0.0, 50.0]");
    let (ended, left) = left_by(&text, NEAR).unwrap();
    assert!(matches!(ended, Status::Failed(_)), "{ended:?}");
    assert_equal(&text, &left);
}

/// Sums and gradients on an adapter, where there is one.
pub fn a_gpu_leaves_equal_bytes() {
    for sampler in [
        "algorithm = \"barker\"",
        "algorithm = \"dp-sgld\"\nstep = 1e-4",
    ] {
        let text = run_file(LOGISTIC, sampler, 20.0).replace("\"cpu\"", "\"gpu\"");
        match left_by(&text, FLIP) {
            Ok((_, left)) => assert_equal(&text, &left),
            Err(e) => {
                let required = std::env::var_os("DPMC_REQUIRE_GPU").is_some();
                assert!(!required, "{e}");
                println!("skipped: {e}");
                return;
            }
        }
    }
}
