//! `dpmc bench`: this machine's bandwidth, and what the engines make of it.

use super::CliError;
use super::answers::print_json;
use super::args::BenchArguments;
use dpmc::benchmark;
use dpmc::engine::EngineChoice;

pub(super) fn run(a: &BenchArguments) -> Result<(), CliError> {
    let engine = a.engine.map_or(EngineChoice::Auto, Into::into);
    let reports = benchmark::all(engine, a.rows.map(|rows| rows as usize))?;
    if a.json {
        return print_json(&reports);
    }
    for report in reports {
        let e = &report.engine;
        let what = match report.arithmetic {
            None => "parallel read".into(),
            Some(rate) => format!("device copy, {:.2} Tflop/s", rate / 1e12),
        };
        let rate = report.bandwidth / 1e9;
        println!(
            "{} {} ({}): {rate:.1} GB/s {what}",
            e.kind, e.adapter, e.driver
        );
        println!(
            "  {:54} {:>9} {:>4} {:>6} {:>10} {:>10} {:>9} {:>10} {:>11}",
            "",
            "rows",
            "d",
            "chains",
            "median ms",
            "best ms",
            "bandwidth",
            "arithmetic",
            "per second"
        );
        let share = |s: Option<f64>| s.map_or("-".into(), |s| format!("{:.0}%", 100.0 * s));
        for m in &report.measurements {
            let (bandwidth, arithmetic) = (m.share_of_bandwidth, m.share_of_arithmetic);
            println!(
                "  {:54} {:>9} {:>4} {:>6} {:>10.3} {:>10.3} {:>9} {:>10} {:>11.1}",
                m.name,
                m.rows,
                m.features,
                m.chains,
                m.median_ms,
                m.best_ms,
                share(bandwidth),
                share(arithmetic),
                m.per_second
            );
        }
    }
    Ok(())
}
