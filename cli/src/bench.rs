//! `dpmc bench`: this machine's bandwidth, and what the engines make of it.

use super::CliError;
use super::answers::print_json;
use super::args::JsonArguments;
use dpmc::benchmark;

pub(super) fn run(a: &JsonArguments) -> Result<(), CliError> {
    let reports = benchmark::all()?;
    if a.json {
        return print_json(&reports);
    }
    for report in reports {
        let e = &report.engine;
        println!(
            "{} {} ({}): {:.1} GB/s {}",
            e.kind,
            e.adapter,
            e.driver,
            report.bandwidth / 1e9,
            if e.kind == "gpu" {
                "device copy"
            } else {
                "parallel read"
            }
        );
        println!(
            "  {:54} {:>9} {:>4} {:>6} {:>10} {:>10} {:>6} {:>11}",
            "", "rows", "d", "chains", "median ms", "best ms", "share", "per second"
        );
        for m in &report.measurements {
            let share = m
                .share_of_bandwidth
                .map_or_else(|| "-".into(), |s| format!("{:.0}%", 100.0 * s));
            println!(
                "  {:54} {:>9} {:>4} {:>6} {:>10.3} {:>10.3} {:>6} {:>11.1}",
                m.name, m.rows, m.features, m.chains, m.median_ms, m.best_ms, share, m.per_second
            );
        }
    }
    Ok(())
}
