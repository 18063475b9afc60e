//! `dpmc compare`: public labels beside predictions.

use super::CliError;
use super::answer_args::CompareArguments;
use super::answers::{posterior, print_json};
use dpmc::prediction::{self, Comparison, test_table};

/// Characters of the longest bar.
const BAR: f64 = 40.0;

pub(super) fn run(a: &CompareArguments) -> Result<(), CliError> {
    let posterior = posterior(&a.directory, a.draws)?;
    let rows = test_table(&posterior.plan, a.table.as_deref())?;
    let found = prediction::compare(&posterior, &rows)?;
    match a.json {
        true => print_json(&found),
        false => {
            print(&found);
            Ok(())
        }
    }
}

fn print(found: &Comparison) {
    println!(
        "{} public labels '{}' beside predictions by {} draws",
        found.rows, found.label, found.draws
    );
    for c in &found.coverage {
        println!(
            "inside of {:.0} % intervals: {:.1} % (sd {:.1} % where the model is right)",
            100.0 * c.level,
            100.0 * c.share,
            100.0 * c.sd
        );
    }
    if !found.pit.is_empty() {
        println!("\nprobability of a smaller label   labels (even where the model is right)");
        let most = found.pit.iter().fold(1.0, |m: f64, v| m.max(*v));
        for (k, count) in found.pit.iter().enumerate() {
            let bar = "#".repeat((BAR * count / most).round() as usize);
            let (from, to) = (k as f64 / 10.0, (k + 1) as f64 / 10.0);
            println!("{from:.1} to {to:.1} {count:>10.1} {bar}");
        }
    }
    if !found.calibration.is_empty() {
        println!(
            "\n{:>10} {:>8} {:>10} {:>10}",
            "predicted", "rows", "mean", "observed"
        );
        for c in &found.calibration {
            println!(
                "{:.1} to {:.1} {:>8} {:>10.4} {:>10.4}",
                c.from, c.to, c.rows, c.predicted, c.observed
            );
        }
    }
    for note in &found.notes {
        println!("note: {note}");
    }
}
