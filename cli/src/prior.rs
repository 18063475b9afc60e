//! `dpmc prior`: what a prior predicts before any run.

use super::CliError;
use super::answer_args::PriorArguments;
use super::answers::print_json;
use dpmc::config::Plan;
use dpmc::prediction::{NewRows, PriorPredictive, made_up_rows, prior_predictive};

pub(super) fn run(a: &PriorArguments) -> Result<(), CliError> {
    let plan = Plan::read(&a.run)?;
    let seed = a.seed.unwrap_or_else(rand::random);
    let rows = match &a.table {
        Some(table) => NewRows::read(&plan, table, false)?,
        None => made_up_rows(&plan, seed)?,
    };
    // Another stream than that of the rows.
    let found = prior_predictive(&plan, &rows, a.draws as usize, !seed)?;
    if a.json {
        return print_json(&found);
    }
    print(&found, a.table.is_none());
    Ok(())
}

fn print(found: &PriorPredictive, made_up: bool) {
    println!(
        "what the prior predicts for '{}': {} draws, {} {}rows\n",
        found.label,
        found.draws,
        found.rows,
        if made_up { "made-up " } else { "" }
    );
    let mut head = format!("{:11}", "quantile");
    let first = found.predicted.first();
    for (p, _) in first.iter().flat_map(|q| &q.quantiles) {
        head += &format!(" {:>10}", format!("{:.0}%", 100.0 * p));
    }
    println!("{head}");
    for q in &found.predicted {
        let mut line = format!("{:11}", q.of);
        for (_, v) in &q.quantiles {
            line += &match v.abs() {
                0.0 => format!(" {:>10}", 0),
                size if (1e-3..1e6).contains(&size) => format!(" {v:>10.4}"),
                _ => format!(" {v:>10.2e}"),
            };
        }
        println!("{line}");
    }
    if let Some(share) = found.beyond_bounds {
        println!(
            "\n{:.1} % of the labels lie beyond the declared bounds",
            100.0 * share
        );
    }
    if let Some(share) = found.all_but_certain {
        println!(
            "\n{:.1} % of the probabilities are under 0.01 or over 0.99",
            100.0 * share
        );
    }
}
