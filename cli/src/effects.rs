//! `dpmc effects`: average effects of changes of a column.

use super::CliError;
use super::answer_args::EffectsArguments;
use super::answers::{posterior, print_json, raw_table};
use dpmc::prediction::{self, Change};

pub(super) fn run(a: &EffectsArguments) -> Result<(), CliError> {
    let posterior = posterior(&a.directory, a.how.draws)?;
    let plan = &posterior.plan;
    let mut changes = Vec::new();
    for (texts, parse) in [
        (&a.shift, Change::shift as fn(_, &str) -> _),
        (&a.set, Change::set),
        (&a.contrast, Change::contrast),
    ] {
        for text in texts {
            changes.push(parse(plan, text)?);
        }
    }
    if changes.is_empty() {
        let what = "say which change: --shift age=10, --set smoker=no or --contrast education=HS-grad:Masters";
        return Err(CliError::Input(what.into()));
    }
    let table = raw_table(&posterior, &a.table)?;
    let found = prediction::effects(&posterior, &table, &changes, a.how.intervals)?;
    if a.how.json {
        return print_json(&found);
    }
    let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0).max(6);
    let rows = &found.effects;
    let change = width(&mut rows.iter().map(|e| e.change.chars().count()));
    let of = width(&mut rows.iter().map(|e| e.of.chars().count()));
    println!(
        "average change of the expected {}, {} rows, {:.0} % intervals\n",
        found.label,
        found.rows,
        100.0 * found.level
    );
    println!(
        "{:change$}  {:of$} {:>11} {:>11} {:>11}",
        "change", "of", "effect", "low", "high"
    );
    for e in rows {
        println!(
            "{:change$}  {:of$} {:>11.5} {:>11.5} {:>11.5}",
            e.change, e.of, e.effect, e.low, e.high
        );
    }
    for note in &found.notes {
        println!("note: {note}");
    }
    Ok(())
}
