//! Criterion benchmarks of the privacy core: `cargo bench --bench accounting`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dpmc::benchmark::privacy::{discrete_gaussians, epsilon, ledger_charges, schedule, subsampled};

fn accountants(c: &mut Criterion) {
    let (Some(one), Some(many)) = (subsampled(), schedule()) else {
        return;
    };
    let mut group = c.benchmark_group("account, all accountants, delta = 1e-5");
    group.sample_size(10);
    group.bench_function("q = 0.01, sigma = 1, T = 1e4", |b| b.iter(|| epsilon(&one)));
    group.bench_function("1e4 distinct sigmas", |b| b.iter(|| epsilon(&many)));
    group.finish();
}

fn core(c: &mut Criterion) {
    let n = 100_000;
    let mut group = c.benchmark_group("privacy core");
    group.throughput(Throughput::Elements(n));
    group.bench_function("ledger charges", |b| b.iter(|| ledger_charges(n)));
    group.bench_function("discrete Gaussians, sigma = 2^20 steps", |b| {
        b.iter(|| discrete_gaussians(n));
    });
    group.finish();
}

criterion_group!(benches, accountants, core);
criterion_main!(benches);
