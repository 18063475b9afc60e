#![no_main]
//! No text of a saved state makes its resumption panic, nor the steps after it. The first byte
//! says which sampler saved it, the rest is its JSON. The ledger is one that paid for all of them.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use dpmc::config::Plan;
use dpmc::data::Dataset;
use dpmc::engine::EngineChoice;
use dpmc::model::Model;
use dpmc::posterior_run::{PosteriorRun, RunState};
use dpmc::privacy::{Curator, Ledger};
use dpmc::sampler::Chains;

const SAMPLERS: [&str; 8] = [
    "barker", "dp-hmc", "dp-sgld", "dp-sghmc", "dp-sgnht", "dpvi", "anchored", "moments",
];

const LEDGER: &[u8] = include_bytes!("../fixtures/ledger.json");

fn plans() -> &'static [Plan] {
    static PLANS: OnceLock<Vec<Plan>> = OnceLock::new();
    PLANS.get_or_init(|| {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let read = |name: &&str| Plan::read(&fixtures.join(format!("{name}.toml")));
        SAMPLERS
            .iter()
            .map(read)
            .collect::<Result<_, _>>()
            .expect("run files of fixtures")
    })
}

/// What is said where something other than the state does not fit.
const GOOD: &str = "all but the state is good";

fn assembled(plan: &Plan, ledger: Ledger) -> PosteriorRun {
    let data: Dataset = plan.load_data().expect(GOOD);
    let model: Arc<dyn Model> = plan.model(&data).expect(GOOD);
    let sampler = plan
        .sampler(&*model, data.population(), data.row_norm())
        .expect(GOOD);
    let starts = plan.starts(&*model, [7; 32]).expect(GOOD);
    let mut length = plan.length().expect(GOOD);
    length.iterations += 10;
    let curator = Curator::private(data, model, EngineChoice::Cpu, ledger, None).expect(GOOD);
    let chains = Chains::new(&starts, [7; 32]);
    PosteriorRun::new(curator, sampler, chains, length, String::new(), Vec::new())
}

fn resume(plan: &Plan, state: &RunState) {
    let Ok(folder) = tempfile::tempdir() else {
        return;
    };
    let path = folder.path().join("ledger.json");
    std::fs::write(&path, LEDGER).expect(GOOD);
    let budget = plan.budget().expect(GOOD).expect(GOOD);
    let measure = Ledger::measure_of(&path).expect(GOOD).expect(GOOD);
    let ledger = Ledger::open(&path, "people", 40, budget, measure).expect(GOOD);
    let (spent, limit) = (ledger.spent(), ledger.limit());
    let mut run = assembled(plan, ledger);
    if run.resume(state).is_err() {
        return;
    }
    for _ in 0..3 {
        run.step();
    }
    let _ = (run.acceptance(), run.certificate(), run.progress());
    let now = run.curator().ledger().map_or(0.0, Ledger::spent);
    assert!(
        now >= spent && now <= limit,
        "{spent} became {now} of {limit}"
    );
    // What is saved can be read again.
    let saved = serde_json::to_vec(&run.state(0)).expect("a state that can be saved");
    let read: Result<RunState, _> = serde_json::from_slice(&saved);
    assert!(read.is_ok(), "{read:?}");
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((which, json)) = bytes.split_first() else {
        return;
    };
    if let Ok(state) = serde_json::from_slice::<RunState>(json) {
        resume(
            &plans()[usize::from(which.wrapping_sub(b'0')) % SAMPLERS.len()],
            &state,
        );
    }
});
