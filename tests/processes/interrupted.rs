//! The promise: whoever stops a run does not wait for a fit, a warm start or a secret chain to
//! end; what was spent until then is on the ledger and in the certificate. A resumed run says
//! and draws what is its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dpmc::config::Plan;
use dpmc::data::Dataset;
use dpmc::engine::EngineChoice;
use dpmc::model::{Model, Prior, Regression, Support};
use dpmc::output::{RunDirectory, read_draws};
use dpmc::posterior_run::{Draw, PosteriorRun, RunLength, RunState, Status};
use dpmc::privacy::{
    Batch, Budget, Certificate, Curator, DrawRequest, GradientNoise, Ledger, LedgerFileError,
    Measure,
};
use dpmc::sampler::{Chains, Dpvi, PosteriorDraws, Sampler, Variational};
use dpmc::synthetic;

const LENGTH: RunLength = RunLength {
    iterations: 300,
    warmup: 0,
    thin: 1,
};

const BARKER: &str = "[data]\nfile = \"made up\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"a\", \"b\"]\nclamp = [-3, 3]\n[model]\nkind = \"logistic\"\nprior = { kind = \"normal\", sd = 1.0 }\n[sampler]\nalgorithm = \"barker\"\nstep = 0.3\n[run]\niterations = 300\n[privacy]\nnot_private = true\n";

fn data() -> Dataset {
    synthetic::logistic(100, &[1.5, -1.0], 5).unwrap()
}

fn prior() -> Prior {
    Prior::normal(2, 1.0)
}

fn model(prior: Prior) -> Arc<dyn Model> {
    let d = data();
    Arc::new(Regression::logistic(d.features(), d.row_norm(), prior, 0.7).unwrap())
}

fn run_on(curator: Curator, sampler: Sampler) -> PosteriorRun {
    let chains = Chains::new(&[vec![0.0; 2], vec![0.1; 2]], [9; 32]);
    PosteriorRun::new(curator, sampler, chains, LENGTH, String::new(), Vec::new())
}

fn private(budget: f64, prior: Prior) -> Curator {
    let ledger = Ledger::in_memory(Budget::new(budget, 1e-6).unwrap());
    Curator::private(data(), model(prior), EngineChoice::Cpu, ledger, Some(1)).unwrap()
}

/// More steps than would end within hours, at next to no price each.
fn endless_fit() -> Sampler {
    let fit = Dpvi {
        steps: 1 << 40,
        learning_rate: 0.01,
        draws_per_step: 1,
        scale: None,
    };
    let noise = GradientNoise {
        clip: Some(1.0),
        batch: Batch::All,
        sigma: 1e5,
    };
    Variational::new(prior(), fit, noise).into()
}

fn endless_chain() -> (Sampler, Prior) {
    let bounds = vec![0.5; 2];
    let boxed = Prior {
        support: Support::Box(bounds.clone()),
        ..prior()
    };
    let request = DrawRequest {
        bounds,
        steps: 1 << 40,
        scale: vec![0.3; 2],
    };
    (PosteriorDraws::new(request).into(), boxed)
}

/// Sets a flag a little later.
fn soon() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let later = flag.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        later.store(true, Ordering::SeqCst);
    });
    flag
}

/// Without the flag these runs would not come back from their first step.
#[test]
fn a_step_that_would_last_for_hours_ends_when_the_caller_wishes() {
    let (chain, boxed) = endless_chain();
    let runs = [
        run_on(private(5.0, prior()), endless_fit()),
        run_on(
            private(5.0, prior()),
            Sampler::from(PosteriorDraws::new(DrawRequest {
                bounds: vec![0.1; 2],
                steps: 1,
                scale: vec![0.1; 2],
            })),
        )
        .starting_by(Some(endless_fit())),
        run_on(private(400.0, boxed), chain),
    ];
    for (k, run) in runs.into_iter().enumerate() {
        let mut run = run.stopping_by(soon());
        assert_eq!(*run.step(), Status::Interrupted, "{k}");
        assert_eq!(*run.step(), Status::Interrupted, "{k}");
        let spent = run.curator().ledger().unwrap().spent();
        assert!(spent > 0.0, "{k}");
        let (draws, certificate) = run.take_draws();
        assert!(draws.is_empty() && certificate.iterations == 0, "{k}");
        assert_eq!(
            (certificate.status.as_str(), certificate.adaptive),
            ("interrupted", true)
        );
        let charged: u64 = certificate.events.iter().map(|e| e.count).sum();
        assert!(charged > 0 && (k < 2 || charged == 1), "{k}: {charged}");
        let saved = run.state(0);
        assert!(
            !saved.is_started() || k != 1,
            "a start that was not made is not behind it"
        );
        assert_eq!(saved.chains.accepted, [0, 0]);
    }
}

/// Stopped before its first step, a run spends nothing and can be taken up where it stands.
#[test]
fn a_flag_that_is_set_before_costs_nothing() {
    let flag = Arc::new(AtomicBool::new(true));
    let mut run = run_on(private(5.0, prior()), endless_fit()).stopping_by(flag);
    assert_eq!(*run.step(), Status::Interrupted);
    assert_eq!(run.curator().ledger().unwrap().spent(), 0.0);
    assert!(run.certificate().events.is_empty());
}

/// A run file's seed fixes proposals and, without privacy, all coins. Taken up at the very
/// state it began from, so with the same proposals, a run decides by coins of its own.
#[test]
fn a_resumed_run_without_privacy_has_coins_of_its_own() {
    let plan = Plan::parse(Path::new("made-up.toml"), BARKER.into()).unwrap();
    let open = || {
        let d = data();
        let sampler = plan
            .sampler(&*model(prior()), d.rows(), d.row_norm())
            .unwrap();
        let curator = Curator::not_private(d, model(prior()), EngineChoice::Cpu, 4).unwrap();
        run_on(curator.into_curator(), sampler)
    };
    let finish = |mut run: PosteriorRun| -> (Vec<Draw>, RunState) {
        while *run.step() == Status::Running {}
        (run.take_draws().0, run.state(0))
    };
    let begun = open().state(0);
    let taken_up = |state: &RunState| {
        let mut run = open();
        run.resume(state).unwrap();
        run
    };
    let (first, end) = finish(open());
    assert_eq!(first, finish(open()).0);
    assert_eq!((begun.session, end.session), (0, 0));

    let second = taken_up(&begun);
    let again = second.state(0);
    assert_eq!((again.session, again.resumed), (1, true));
    let (second, _) = finish(second);
    // Of 600 decisions on the same proposals some hundred fall otherwise.
    assert_ne!(first, second);
    assert_eq!(
        second,
        finish(taken_up(&begun)).0,
        "still fixed by the seed"
    );
    let (third, end) = finish(taken_up(&again));
    assert_eq!(end.session, 2);
    assert!(third != second && third != first);

    // A state of before sessions were counted.
    let mut old = serde_json::to_value(&again).unwrap();
    old.as_object_mut().unwrap().remove("leg");
    let old: RunState = serde_json::from_value(old).unwrap();
    assert_eq!(taken_up(&old).state(0).session, 2);
}

/// The last draws are written and the state that owns them is not: the run has not ended, and goes
/// on from the state before.
#[test]
fn a_run_whose_last_state_cannot_be_written_can_be_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let begun = || {
        let text = BARKER.replace("step = 0.3", "step = 0.05");
        let plan = Plan::parse(Path::new("made-up.toml"), text).unwrap();
        let data = data();
        let model = model(prior());
        let sampler = plan.sampler(&*model, data.rows(), data.row_norm()).unwrap();
        let budget = Budget::new(500.0, 1e-6).unwrap();
        let ledger = Ledger::open(&out.join("ledger.json"), "d", 100, budget, Measure::Zcdp);
        let curator =
            Curator::private(data, model, EngineChoice::Cpu, ledger.unwrap(), None).unwrap();
        run_on(curator, sampler)
    };
    let mut directory = RunDirectory::create(&out).unwrap();
    let mut run = begun();
    directory.begin(&mut run).unwrap();
    while *run.step() == Status::Running {}
    // In the way of the state's temporary name.
    std::fs::create_dir(out.join("state.json.tmp")).unwrap();
    let error = directory.finish(&mut run).unwrap_err();
    assert!(error.to_string().contains("state.json"), "{error}");
    drop((run, directory));
    let text = std::fs::read(out.join("certificate.json")).unwrap();
    let certificate: Certificate = serde_json::from_slice(&text).unwrap();
    assert_eq!(
        (
            &*certificate.status,
            certificate.epsilon,
            certificate.iterations
        ),
        ("running", Some(500.0), LENGTH.iterations)
    );
    assert!(out.join("draws.parquet/part-000000.parquet").exists());

    std::fs::remove_dir(out.join("state.json.tmp")).unwrap();
    let (mut directory, state) = RunDirectory::resume(&out).unwrap();
    let mut run = begun();
    run.resume(&state).unwrap();
    directory.begin(&mut run).unwrap();
    while *run.step() == Status::Running {}
    let certificate = directory.finish(&mut run).unwrap();
    assert_eq!(certificate.status, "finished");
    assert_eq!(read_draws(&out).unwrap().len() as u64, LENGTH.iterations);
}

/// A second anchor that the budget does not hold: each certificate of the run says so.
#[test]
fn a_resumed_run_still_says_that_it_kept_its_first_anchor() {
    let text = "[data]\nfile = \"made up\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"a\", \"b\"]\nclamp = [-3, 3]\n[model]\nkind = \"logistic\"\ntempering = 0.7\nprior = { kind = \"normal\", sd = 1.0 }\n[sampler]\nalgorithm = \"anchored-barker\"\nclip = { share = 1e-4 }\nanchor = { refresh = 0.3 }\n[run]\nwarmup = 100\niterations = 200\n[privacy]\nepsilon = 20.0\ndelta = 1e-6\n";
    let plan = Plan::parse(Path::new("made-up.toml"), text.into()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // What is left after anchor and warm-up is no third of the plan's budget, but pays for steps.
    let whole = plan.budget().unwrap().unwrap();
    let budget = (100..200)
        .rev()
        .map(|k| Budget::new(0.1 * f64::from(k), 1e-6).unwrap())
        .find(|b| b.rho() < 0.85 * whole.rho())
        .unwrap();
    let open = || {
        let d = data();
        let sampler = plan
            .sampler(&*model(prior()), d.rows(), d.row_norm())
            .unwrap();
        let path = folder.path().join("ledger.json");
        let ledger = || Ledger::open(&path, "made up", d.rows(), budget, Measure::Zcdp);
        let mut opened = ledger();
        // A process that another test starts holds this one's files until it is another program.
        for _ in 0..500 {
            if !matches!(opened, Err(LedgerFileError::Locked(_))) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            opened = ledger();
        }
        let ledger = opened.unwrap();
        let curator = Curator::private(d, model(prior()), EngineChoice::Cpu, ledger, None);
        let length = RunLength {
            warmup: 100,
            ..LENGTH
        };
        let chains = Chains::new(&[vec![0.0; 2]], [9; 32]);
        PosteriorRun::new(
            curator.unwrap(),
            sampler,
            chains,
            length,
            String::new(),
            Vec::new(),
        )
    };
    let says = |run: &PosteriorRun| {
        let warnings = run.certificate().warnings;
        warnings
            .iter()
            .filter(|w| w.contains("second anchor"))
            .count()
    };
    let mut run = open();
    for _ in 0..100 {
        assert_eq!(*run.step(), Status::Running);
    }
    assert_eq!(says(&run), 0);
    for _ in 0..20 {
        assert_eq!(*run.step(), Status::Running);
    }
    assert_eq!(says(&run), 1);
    let mut saved = serde_json::to_string(&run.state(0)).unwrap();
    drop(run);
    for _ in 0..2 {
        let mut run = open();
        run.resume(&serde_json::from_str(&saved).unwrap()).unwrap();
        saved = serde_json::to_string(&run.state(0)).unwrap();
        assert_eq!(says(&run), 1);
        assert_eq!(*run.step(), Status::Running);
        assert_eq!(says(&run), 1);
    }
}
