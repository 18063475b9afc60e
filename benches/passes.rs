//! Criterion benchmarks of the passes and of the minibatch sampler: `cargo bench`.
//!
//! Absolute times depend on the machine; `dpmc bench` reports the same passes as shares
//! of bandwidth measured in the same run.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dpmc::benchmark::{
    declared_problem, gradient_pass, logistic_problem, mixture_problem, ratio_pass,
};
use dpmc::data::Storage;
use dpmc::engine::EngineChoice;

fn ratio_passes(c: &mut Criterion) {
    let (rows, features) = (1_000_000, 50);
    let mut group = c.benchmark_group("logistic ratio pass, cpu, N = 1e6, d = 50");
    group.sample_size(20);
    for (storage, bytes) in [(Storage::I16, 2), (Storage::F32, 4)] {
        let problem = logistic_problem(rows, features, storage, EngineChoice::Cpu);
        let Ok((mut curator, _)) = problem else {
            return;
        };
        group.throughput(Throughput::Bytes((rows * features * bytes) as u64));
        for chains in [1, 2, 4, 8] {
            let mut pass = ratio_pass(&mut curator, features, chains);
            let name = format!("{chains} chains, {} bits", 8 * bytes);
            group.bench_function(name, |b| b.iter(&mut pass));
        }
    }
    group.finish();
}

fn gradient_passes(c: &mut Criterion) {
    let (rows, features) = (1_000_000, 50);
    let mut group = c.benchmark_group("logistic gradient pass, cpu, N = 1e6, d = 50");
    group.sample_size(20);
    for (storage, bytes) in [(Storage::I16, 2), (Storage::F32, 4)] {
        let problem = logistic_problem(rows, features, storage, EngineChoice::Cpu);
        let Ok((mut curator, _)) = problem else {
            return;
        };
        group.throughput(Throughput::Bytes((rows * features * bytes) as u64));
        for chains in [1, 2, 4, 8] {
            let mut pass = gradient_pass(&mut curator, features, chains);
            let name = format!("{chains} chains, {} bits", 8 * bytes);
            group.bench_function(name, |b| b.iter(&mut pass));
        }
    }
    group.finish();
}

/// The same likelihood as an expression, beside the one written by hand; on a GPU too, where there
/// is one.
fn declared_passes(c: &mut Criterion) {
    let (rows, features, storage) = (1_000_000, 50, Storage::I16);
    for (engine, place) in [(EngineChoice::Cpu, "cpu"), (EngineChoice::Gpu, "gpu")] {
        let by_hand = logistic_problem(rows, features, storage, engine);
        let declared = declared_problem(rows, features, storage, engine);
        let (Ok((mut by_hand, _)), Ok((mut declared, _))) = (by_hand, declared) else {
            continue;
        };
        let name = format!("declared logistic passes, {place}, N = 1e6, d = 50, 16 bits");
        let mut group = c.benchmark_group(name);
        group.sample_size(20);
        for chains in [1, 8] {
            for (name, curator) in [("by hand", &mut by_hand), ("declared", &mut declared)] {
                let mut pass = ratio_pass(curator, features, chains);
                group.bench_function(format!("ratio, {chains} chains, {name}"), |b| {
                    b.iter(&mut pass)
                });
                drop(pass);
                let mut pass = gradient_pass(curator, features, chains);
                group.bench_function(format!("gradient, {chains} chains, {name}"), |b| {
                    b.iter(&mut pass)
                });
            }
        }
        group.finish();
    }
}

fn minibatch(c: &mut Criterion) {
    let Ok((mut curator, mut sampler, mut chains)) = mixture_problem() else {
        return;
    };
    c.bench_function("poisson-barker step, mixture, N = 5e4, lambda = 300", |b| {
        b.iter(|| sampler.step(&mut chains, &mut curator).is_ok());
    });
}

criterion_group!(
    benches,
    ratio_passes,
    gradient_passes,
    declared_passes,
    minibatch
);
criterion_main!(benches);
