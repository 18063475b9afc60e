//! A GPU whose memory ends, that is small, or that hangs: the same bits from fewer rows on it, and
//! an error in the end, after a stated time, from a process that ends.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cpu::CpuEngine;
use super::gpu::{GpuEngine, GpuLimits};
use super::gradient_gpu_tests::open;
use super::gradient_tests::{query as gradient_query, thetas};
use super::test_cases::{Case, anchored, case, pairs, query};
use super::tests::{all_rows, ratio_rows};
use super::{
    AnchorParts, AnchorQuery, AnchorSums, Engine, EngineChoice, EngineError, EngineInfo,
    EngineSetup, GradientQuery, GradientSum, MomentSums, RatioQuery, RatioSum, Rows, Workload,
};
use crate::model::{Metric, MomentBasis, Prior, Regression, Slopes};
use crate::output::RunDirectory;
use crate::posterior_run::{PosteriorRun, RunLength, Status};
use crate::privacy::{Acceptance, Budget, Curator, Estimator, Ledger, Measure};
use crate::sampler::{Adapt, Adaptation, Chains, ClipNorm, ClipRule, Preconditioner, RandomWalk};
use crate::synthetic;

const FEATURES: usize = 7;
const CHAINS: usize = 11;

fn theta() -> Vec<f64> {
    (0..FEATURES).map(|j| 0.5 * j as f64 - 1.5).collect()
}

fn logistic(rows: usize) -> Case {
    case(synthetic::logistic(rows, &theta(), 1).unwrap(), |d| {
        let prior = Prior::normal(FEATURES, 10.0);
        Box::new(Regression::logistic(d.features(), d.row_norm(), prior, 0.3).unwrap())
    })
}

/// Every kind of answer that a query of the rows of [`logistic`] has.
#[derive(Debug, PartialEq)]
struct Answers {
    sums: Vec<RatioSum>,
    gradients: Vec<GradientSum>,
    anchor: AnchorSums,
    /// Of weighted rows.
    remainders: Vec<RatioSum>,
}

fn answers(engine: &mut dyn Engine, case: &Case) -> Result<Answers, EngineError> {
    let pairs = pairs(&*case.model, CHAINS, 9);
    let at = theta();
    let metric = Metric::identity(FEATURES, case.data.row_norm());
    let anchor = AnchorQuery {
        at: &at,
        metric: &metric,
        slopes: Slopes::logistic(),
        parts: AnchorParts::EXPANSION,
    };
    engine.weigh_rows(&anchor)?;
    let seen = anchored(&case.data, 0.3, at.clone());
    let gradients = gradient_query(&*case.model, &thetas(FEATURES, CHAINS, 3), 0.5);
    Ok(Answers {
        sums: engine.ratio_sums(&query(&*case.model, &pairs, 0.3))?,
        gradients: engine.gradient_sums(&gradients, Rows::All)?,
        anchor: engine.anchor_sums(&anchor)?,
        remainders: engine.ratio_sums(&query(&seen, &pairs, 1.0))?,
    })
}

/// Several chunks, each a submission.
fn several(limits: GpuLimits) -> GpuLimits {
    GpuLimits {
        piece: Some(4 * FEATURES as u64 * 480),
        ..limits
    }
}

/// The GPU's answers with plenty of everything, and the engine. A row may differ by a unit from
/// the CPU's, whose floats are contracted elsewhere; few do.
fn plenty(case: &Case) -> Option<(Answers, GpuEngine)> {
    let mut gpu = open(&case.data, true, several(GpuLimits::default()))?;
    let expected = answers(&mut gpu, case).unwrap();
    let cpu = answers(&mut CpuEngine::new(case.data.clone()), case).unwrap();
    for (gpu, cpu) in expected.sums.iter().zip(&cpu.sums) {
        assert!(gpu.steps.abs_diff(cpu.steps) < 100, "{gpu:?} {cpu:?}");
    }
    let (resident, chunks) = gpu.placement();
    assert!(resident == chunks && chunks > 5, "{resident} {chunks}");
    Some((expected, gpu))
}

/// What an engine that ran out of memory must say.
fn assert_says_what_to_do(error: EngineError) {
    assert!(matches!(error, EngineError::GpuMemory { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("--engine cpu"), "{text}");
    // A size would tell of a minibatch's, which is secret.
    let says_a_size = text.contains(|c: char| c.is_ascii_digit());
    assert!(text.contains("no memory for ") && !says_a_size, "{text}");
}

/// What became of the engines of a series of budgets.
#[derive(Debug, Default)]
struct Seen {
    whole: usize,
    partly: usize,
    streamed: usize,
    halved: usize,
    refused: usize,
}

/// From plenty down until several in a row are refused; once one is too small, all smaller are.
fn budgets(case: &Case, full: u64, limits: impl Fn(u64) -> GpuLimits, expected: &Answers) -> Seen {
    let mut seen = Seen::default();
    let mut chunks = 0;
    let mut budget = full;
    while seen.refused < 3 {
        let limits = limits(budget);
        let result = GpuEngine::new(case.data.clone(), true, limits)
            .and_then(|mut gpu| Ok((answers(&mut gpu, case)?, gpu)));
        match result {
            Ok((got, gpu)) => {
                assert!(seen.refused == 0, "{limits:?} after less was refused");
                assert_eq!(got, *expected, "{limits:?}");
                let (resident, all) = gpu.placement();
                chunks = if chunks == 0 { all } else { chunks };
                seen.whole += usize::from(resident == all);
                seen.partly += usize::from(resident > 0 && resident < all);
                seen.streamed += usize::from(resident == 0);
                seen.halved += usize::from(all > chunks);
            }
            Err(e) => {
                assert_says_what_to_do(e);
                seen.refused += 1;
            }
        }
        budget -= full / 40;
    }
    seen
}

/// Wherever memory ends, from all rows on the device to a few, the answers are the same bits, or
/// an error says what could not be had.
#[test]
#[ignore = "study"]
fn where_memory_ends_rows_are_streamed() {
    let case = logistic(9_003);
    let Some((expected, mut whole)) = plenty(&case) else {
        return;
    };
    let full = whole.held();
    let limits = |memory| {
        several(GpuLimits {
            memory: Some(memory),
            ..GpuLimits::default()
        })
    };
    let seen = budgets(&case, full, limits, &expected);
    assert!(seen.whole >= 1 && seen.partly >= 5, "{seen:?}");
    assert!(seen.streamed >= 1, "{seen:?}");
    // Two chunks, which take more than the queries do: halves of them fit where they do not.
    let large = |memory| GpuLimits {
        piece: Some(4 * FEATURES as u64 * 6_400),
        ..limits(memory)
    };
    let seen = budgets(&case, full, large, &expected);
    assert!(seen.halved >= 2, "{seen:?}");
    // An engine that refused one query answers those that fit.
    let data = case.data.clone();
    let mut small = GpuEngine::new(data, true, limits(full / 6)).unwrap();
    assert_says_what_to_do(answers(&mut small, &case).unwrap_err());
    let one = query(&*case.model, &pairs(&*case.model, 1, 9), 0.3);
    let expected = whole.ratio_sums(&one).unwrap();
    assert_eq!(small.ratio_sums(&one).unwrap(), expected);
}

/// Where wgpu gives the device up for want of memory, it is opened again with fewer rows.
#[test]
fn a_device_lost_to_memory_is_opened_again_with_fewer_rows() {
    let case = logistic(9_003);
    let Some((expected, gpu)) = plenty(&case) else {
        return;
    };
    let full = gpu.held();
    let mut seen = Seen::default();
    for share in [100, 80, 60, 40, 25, 1] {
        let limits = several(GpuLimits {
            staging: Some(full * share / 100),
            ..GpuLimits::default()
        });
        let result = GpuEngine::new(case.data.clone(), true, limits)
            .and_then(|mut gpu| Ok((answers(&mut gpu, &case)?, gpu)));
        match result {
            Ok((got, gpu)) => {
                assert_eq!(got, expected, "{share} %");
                let (resident, all) = gpu.placement();
                seen.partly += usize::from(resident > 0 && resident < all);
                seen.streamed += usize::from(resident == 0);
            }
            Err(e) => {
                assert_says_what_to_do(e);
                seen.refused += 1;
            }
        }
    }
    assert!(seen.partly >= 1, "{seen:?}");
    assert!(seen.partly + seen.streamed >= 3, "{seen:?}");
    assert!(seen.refused >= 1 && seen.refused <= 2, "{seen:?}");
}

/// Adapters of small bindings and small buffers, which wgpu itself holds queries to.
#[test]
fn small_adapters_give_the_same_bits() {
    let case = logistic(9_003);
    let Some((expected, mut gpu)) = plenty(&case) else {
        return;
    };
    let pairs = pairs(&*case.model, CHAINS, 9);
    let q = query(&*case.model, &pairs, 0.3);
    drop(gpu);
    gpu = open(&case.data, false, GpuLimits::default()).unwrap();
    let rows = ratio_rows(&mut gpu, &q, &all_rows(&case, CHAINS));
    for limits in [
        (Some(1 << 16), None),
        (Some(1 << 14), None),
        (Some(3_000), None),
        (None, Some(1 << 16)),
        (Some(1 << 15), Some(1 << 17)),
        (Some(1 << 20), Some(1 << 15)),
    ] {
        let (binding, buffer) = limits;
        let limits = GpuLimits {
            binding,
            buffer,
            ..GpuLimits::default()
        };
        for resident in [None, Some(0)] {
            let limits = GpuLimits { resident, ..limits };
            let mut small = open(&case.data, true, limits).unwrap();
            let got = answers(&mut small, &case).unwrap();
            // Queries too large for a binding go to the CPU copy, whose rows may differ by units.
            assert_eq!(got.sums, expected.sums, "{limits:?}");
            assert_eq!(got.remainders, expected.remainders, "{limits:?}");
            if binding.is_none_or(|b| b >= 1 << 14) {
                assert_eq!(got, expected, "{limits:?}");
            }
            let mut small = open(&case.data, false, limits).unwrap();
            let got = ratio_rows(&mut small, &q, &all_rows(&case, CHAINS));
            assert_eq!(got, rows, "{limits:?}");
        }
    }
    // One that a query does not fit says so.
    let tiny = GpuLimits {
        binding: Some(16 * 4 * FEATURES as u64),
        ..GpuLimits::default()
    };
    let mut tiny = open(&case.data, false, tiny).unwrap();
    let mut out = vec![Vec::new(); CHAINS];
    let listed = tiny.ratio_rows(&q, &all_rows(&case, CHAINS), &mut out);
    let error = listed.unwrap_err().to_string();
    assert!(error.contains("--engine cpu"), "{error}");
}

/// A pass in many submissions may take longer than the deadline of one; a submission that does
/// not end in time is an error, and nobody waits for it.
#[test]
fn the_deadline_is_for_one_submission() {
    let theta: Vec<f64> = (0..50).map(|j| 0.1 * f64::from(j % 7) - 0.3).collect();
    let data = Arc::new(synthetic::logistic(100_000, &theta, 8).unwrap());
    let prior = Prior::normal(50, 1.0);
    let model = Regression::logistic(data.features(), data.row_norm(), prior, 1.0).unwrap();
    let q = gradient_query(&model, &thetas(50, 8, 3), 0.5);
    let with = |piece| GpuLimits {
        piece: Some(piece),
        ..GpuLimits::default()
    };
    let Some(mut short) = open(&data, false, with(4 * 50 * 2_000)) else {
        return;
    };
    // A card is through before a deadline of so short a pass is looked at.
    if !short.is_software() {
        return;
    }
    let time = |engine: &mut GpuEngine| {
        let sums = engine.gradient_sums(&q, Rows::All).unwrap();
        let start = Instant::now();
        assert_eq!(engine.gradient_sums(&q, Rows::All).unwrap(), sums);
        (sums, start.elapsed())
    };
    let (sums, pass) = time(&mut short);
    assert_eq!(short.placement(), (50, 50));
    // Fifty pieces, of which each has half of the time of all.
    short.set_deadline(pass / 2);
    assert_eq!(short.gradient_sums(&q, Rows::All).unwrap(), sums);

    let mut long = open(&data, false, with(1 << 30)).unwrap();
    let (same, pass) = time(&mut long);
    assert_eq!(same, sums);
    long.set_deadline(pass / 4);
    let start = Instant::now();
    let error = long.gradient_sums(&q, Rows::All).unwrap_err();
    assert!(matches!(error, EngineError::Hung(_)), "{error}");
    let text = error.to_string();
    for word in ["--resume", "--engine cpu", &format!("{:?}", pass / 4)] {
        assert!(text.contains(word), "{text}");
    }
    // It is given up for good, without a wait.
    assert!(matches!(
        long.gradient_sums(&q, Rows::All),
        Err(EngineError::Hung(_))
    ));
    drop(long);
    assert!(start.elapsed() < pass, "{:?} {pass:?}", start.elapsed());
}

/// An engine whose device hangs for good after so many answers.
struct HangsLater {
    gpu: GpuEngine,
    answers: usize,
}

impl Engine for HangsLater {
    fn info(&self) -> EngineInfo {
        self.gpu.info()
    }

    fn ratio_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError> {
        if self.answers == 0 {
            self.gpu.hang()?;
        }
        self.answers = self.answers.saturating_sub(1);
        self.gpu.ratio_sums(query)
    }

    fn ratio_rows(
        &mut self,
        query: &RatioQuery,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError> {
        self.gpu.ratio_rows(query, rows, out)
    }

    fn gradient_sums(
        &mut self,
        query: &GradientQuery,
        rows: Rows<'_>,
    ) -> Result<Vec<GradientSum>, EngineError> {
        self.gpu.gradient_sums(query, rows)
    }

    fn anchor_sums(&mut self, query: &AnchorQuery<'_>) -> Result<AnchorSums, EngineError> {
        self.gpu.anchor_sums(query)
    }

    fn weigh_rows(&mut self, query: &AnchorQuery<'_>) -> Result<(), EngineError> {
        self.gpu.weigh_rows(query)
    }

    fn moment_sums(&mut self, basis: &MomentBasis) -> Result<MomentSums, EngineError> {
        self.gpu.moment_sums(basis)
    }
}

const STEPS: u64 = 40;
const BEFORE: u64 = 25;
/// Where the run of [`the_hung_run`] is; set by the test that starts it.
const DIRECTORY: &str = "DPMC_TEST_HUNG_RUN";

/// A private run in `directory`, as the command makes one.
fn run(directory: &Path, engine: Option<Box<dyn Engine>>) -> PosteriorRun {
    let data = synthetic::logistic(3_003, &theta(), 1).unwrap();
    let prior = Prior::normal(FEATURES, 10.0);
    let model = Regression::logistic(data.features(), data.row_norm(), prior.clone(), 0.3).unwrap();
    let budget = Budget::new(5.0, 1e-6).unwrap();
    let path = directory.join("ledger.json");
    let ledger = Ledger::open(&path, "table", data.rows(), budget, Measure::Zcdp).unwrap();
    let choice = EngineChoice::Cpu;
    let mut curator = Curator::private(data, Arc::new(model), choice, ledger, Some(3)).unwrap();
    if let Some(engine) = engine {
        curator = curator.with_engine(engine);
    }
    let sampler = RandomWalk::new(
        prior,
        Estimator::FullBatch,
        Acceptance::Barker,
        Some(ClipRule {
            rate: 0.01,
            norm: ClipNorm::Euclidean,
        }),
        0.2,
        Preconditioner::Identity,
        Adaptation::new(Adapt::None, 0.2, 0, FEATURES),
    );
    let chains = Chains::new(&[vec![0.0; FEATURES]], [7; 32]);
    let length = RunLength {
        iterations: STEPS,
        warmup: 0,
        thin: 1,
    };
    PosteriorRun::new(curator, sampler, chains, length, String::new(), vec![])
}

/// Not a test of its own: what [`a_hung_device_ends_the_run_and_the_process`] runs.
#[test]
#[ignore = "run by another test, in a process of its own"]
fn the_hung_run() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let mut directory = RunDirectory::create(Path::new(&directory)).unwrap();
    let data = Arc::new(synthetic::logistic(3_003, &theta(), 1).unwrap());
    let mut gpu = open(&data, false, GpuLimits::default()).unwrap();
    gpu.set_deadline(Duration::from_secs(4));
    let engine = HangsLater {
        gpu,
        answers: BEFORE as usize,
    };
    let mut run = run(directory.path(), Some(Box::new(engine)));
    directory.begin(&mut run).unwrap();
    let start = Instant::now();
    while *run.step() == Status::Running {}
    let Status::Failed(what) = run.status().clone() else {
        panic!("{:?}", run.status());
    };
    assert!(what.contains("hang") && what.contains("4s"), "{what}");
    assert!(start.elapsed() > Duration::from_secs(4));
    let start = Instant::now();
    directory.finish(&mut run).unwrap();
    drop(run);
    assert!(start.elapsed() < Duration::from_secs(4));
    println!("the run is over");
}

/// A device that hangs for ever: the run ends with an error and keeps its draws, its ledger is
/// settled, the process ends, and the run goes on on the CPU.
#[test]
fn a_hung_device_ends_the_run_and_the_process() {
    let data = Arc::new(synthetic::logistic(3_003, &theta(), 1).unwrap());
    if open(&data, false, GpuLimits::default()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    // Tests are named without their crate.
    let (_, here) = module_path!().split_once("::").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{here}::the_hung_run")])
        .args(["--ignored", "--nocapture"])
        .env(DIRECTORY, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(100) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("the run is over"), "{text}");
    assert!(output.status.success(), "{:?} {text}", output.status);

    let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
    let certificate: serde_json::Value = serde_json::from_str(&read("certificate.json")).unwrap();
    assert_eq!(certificate["status"], "failed");
    let (mut directory, state) = RunDirectory::resume(&path).unwrap();
    assert_eq!(state.iteration, BEFORE);
    let mut run = run(&path, None);
    // Settled: nothing is reserved, and what was asked before the hang is paid for.
    let ledger = run.curator().ledger().unwrap();
    assert!(ledger.spent() > 0.0);
    let records = read("ledger.json");
    assert!(records.rfind("\"settled\"") > records.rfind("\"open\""));
    run.resume(&state).unwrap();
    directory.begin(&mut run).unwrap();
    while *run.step() == Status::Running {}
    assert_eq!(*run.status(), Status::Finished);
    directory.finish(&mut run).unwrap();
    drop((run, directory));
    let (_, state) = RunDirectory::resume(&path).unwrap();
    assert_eq!(state.iteration, STEPS);
}

/// What `auto` compares: every kind of query is timed on both engines.
#[test]
fn a_runs_own_queries_are_timed_on_both_engines() {
    let data = Arc::new(crate::synthetic::logistic(3000, &[0.5, -0.5], 1).unwrap());
    let prior = Prior::normal(2, 1.0);
    let model = Regression::logistic(data.features(), data.row_norm(), prior, 1.0).unwrap();
    let each = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]];
    let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(CpuEngine::new(data.clone()))];
    engines.extend(
        open(&data, false, GpuLimits::default()).map(|gpu| Box::new(gpu) as Box<dyn Engine>),
    );
    for engine in &mut engines {
        for [ratios, gradients, anchors, listed] in each {
            let workload = Workload {
                ratios,
                gradients,
                anchors,
                listed,
                share: 0,
            };
            let setup = EngineSetup {
                chains: 3,
                workload,
                ..EngineChoice::Auto.into()
            };
            let seconds = setup
                .seconds(&mut **engine, &data, &model, f64::INFINITY)
                .unwrap();
            assert_eq!(seconds > 0.0, workload != Workload::default());
        }
    }
}
