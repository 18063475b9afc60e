//! The text of `dpmc check`, from the numbers of its report.

use super::check_budget::{BudgetReport, Decisions};
use super::check_report::{Anchor, Clip, Gradients, Report};
use dpmc::config::{Forecast, FormulaTerms};

/// So many names of a term's features are all shown, in lines of at most so many characters, and
/// what they mean stands beside those of up to so many characters.
const SHOWN_NAMES: usize = 8;
const LONGEST_LINE: usize = 86;
const WIDEST_NAMES: usize = 40;

/// From so many steps on that a budget affords, their number is of no interest.
const MORE_THAN_ANYONE_MAKES: f64 = 1e9;
/// Nor is it where the run asks for no more than this share of them.
const NEXT_TO_NOTHING: f64 = 1e-3;

/// All that does not depend on the budget.
pub(super) fn print_setting(r: &Report) {
    let t = &r.table;
    let counted = match &t.unit {
        Some(unit) => unit.counted(t.rows),
        None => format!("{} rows", t.rows),
    };
    println!(
        "table      {counted} (public), {} features, row norm ≤ {:.4}",
        t.features, t.row_norm
    );
    if let (Some(mean), Some(largest)) = (t.mean_row_bound, t.largest_row_bound) {
        println!(
            "bounds     public, of every row: {mean:.4} of the row norm on average, {largest:.4} at most"
        );
    }
    println!(
        "model      {} with {} parameters, tempering {}",
        r.model.name, r.model.parameters, r.model.tempering
    );
    if let Some(formula) = &r.formula {
        print_formula(formula);
    }
    if let Some(weights) = &r.weights {
        println!("weights    {weights}");
    }
    if let Some(offset) = &r.offset {
        println!("offset     {offset}; its coefficient is 1");
    }
    for h in &r.hierarchies {
        let (first, n) = (h.coefficients.first(), h.coefficients.len());
        println!(
            "hierarchy  {}, sampled, of {}, … ({n} in all); prior {}",
            h.name,
            first.map_or("", String::as_str),
            h.prior
        );
    }
    println!("prior      {}", r.prior);
    println!(
        "memory     {:.1} MiB of rows{}",
        r.memory.rows_bytes as f64 / f64::from(1 << 20),
        r.memory
            .available_bytes
            .map(|m| format!(", {} MiB available", m >> 20))
            .unwrap_or_default()
    );
    if r.memory.on_disk {
        println!(
            "           they lie on disk: what asks all rows reads that much, in {:.1} s at 1 GB/s",
            r.memory.rows_bytes as f64 / 1e9
        );
    }
    println!(
        "run        {} × ({} warm-up + {} iterations), algorithm {}",
        r.run.chains, r.run.warmup, r.run.iterations, r.run.algorithm
    );
    print_reading(r);
}

/// Coefficients of a formula, term by term, with what their features are.
fn print_formula(f: &FormulaTerms) {
    println!("formula    {}", f.formula);
    if let (Some(label), Some(meaning)) = (&f.label, &f.label_meaning) {
        println!("label      {label}: {meaning}");
    }
    let names: Vec<Vec<String>> = f.terms.iter().map(|t| names(&t.coefficients)).collect();
    let short = names.iter().flatten().map(|line| line.chars().count());
    let width = short.filter(|n| *n <= WIDEST_NAMES).max().unwrap_or(0);
    let mut head = "features";
    for (term, names) in f.terms.iter().zip(&names) {
        let last = names.len().saturating_sub(1);
        for (i, line) in names.iter().enumerate() {
            let beside = i == last && line.chars().count() <= width;
            let meaning = if beside { &*term.meaning } else { "" };
            let line = format!("{head:<11}{line:<width$}   {meaning}");
            println!("{}", line.trim_end());
            head = "";
            if i == last && !beside && !term.meaning.is_empty() {
                println!("{head:<11}{head:<width$}   {}", term.meaning);
            }
        }
    }
}

/// The names of a term's features in lines, of many the first and the last.
fn names(all: &[String]) -> Vec<String> {
    let shown = match all {
        [first, second, .., last] if all.len() > SHOWN_NAMES => {
            let last = format!("{last} ({} in all)", all.len());
            vec![first.clone(), second.clone(), "…".into(), last]
        }
        _ => all.to_vec(),
    };
    let mut lines: Vec<String> = Vec::new();
    for name in shown {
        match lines.last_mut() {
            Some(line) if line.chars().count() + name.chars().count() + 2 <= LONGEST_LINE => {
                *line += &format!(", {name}");
            }
            Some(line) => {
                line.push(',');
                lines.push(name);
            }
            None => lines.push(name),
        }
    }
    lines
}

/// So many rows, or units where rows belong to these.
fn many(count: impl std::fmt::Display, r: &Report) -> String {
    match &r.table.unit {
        Some(_) => format!("{count} units"),
        None => format!("{count} rows"),
    }
}

/// What a step reads of the rows.
fn print_reading(r: &Report) {
    let all = many(r.table.rows, r);
    match &r.clip {
        Some(Clip::Typical { nats }) => {
            println!("clip       c = {nats:.3e} nats for a typical move");
        }
        Some(Clip::None) => println!("clip       none (widened until nothing is clipped)"),
        None => {}
    }
    match r.minibatch.as_ref().map(|m| m.rows_a_step) {
        Some(read) if read < 0.5 => {
            println!("minibatch  expects none at most steps: {read:.0e} of {all} a step");
        }
        Some(read) => println!("minibatch  expects {read:.0} of {all} a step"),
        None => {}
    }
    if let Some(share) = r.branches_percent {
        println!(
            "branches   about {:.0} % of moves on a minibatch without noise, {:.0} % with; {:.0} % on all rows without, {:.0} % with",
            share[0], share[1], share[2], share[3]
        );
    }
    if let Some(step) = r.first_step {
        println!("step       {step:.4e} at first");
    }
    if let Some(steps) = r.secret_steps_a_draw {
        println!("draws      each the end of {steps} secret steps");
    }
    if let Some(gradients) = &r.gradients {
        print_gradients(gradients, r);
    }
}

/// How gradients are clipped and noised, and the rows that they read.
fn print_gradients(g: &Gradients, r: &Report) {
    let Some(clip) = g.clip else {
        println!("gradients  {}, not clipped", g.count);
        return;
    };
    println!(
        "gradients  {}, clipped at {clip:.4e}, noise sd {:.3e} on the sum ({:.3} of its sensitivity)",
        g.count,
        g.noise_sd,
        g.noise_sd / (2.0 * clip)
    );
    if let Some(rate) = g.rate {
        let read = rate * r.table.rows as f64;
        let all = many(r.table.rows, r);
        println!("minibatch  expects {read:.0} of {all} a step");
    }
}

/// What the budget decides, and what there is to say of the run as a whole.
pub(super) fn print_outlook(r: &Report) {
    match &r.budget {
        Some(budget) => {
            if let Some(anchor) = &r.anchor {
                print_anchor(anchor);
            }
            print_budget(budget);
        }
        None => println!("budget     none: NOT private"),
    }
    if let Some(forecast) = &r.forecast {
        print_forecast(forecast, r);
    }
    if let Some(v) = &r.validate {
        let accuracy = v
            .accuracy_sd
            .map_or(String::new(), |sd| format!(", of the accuracy {sd:.2e}"));
        println!(
            "validate   {} held-out rows, ({}, {:e})-DP for their table, a share of {} a score; noise of the mean log score {:.2e} (sd){accuracy}",
            v.rows, v.epsilon, v.delta, v.share, v.log_score_sd
        );
    }
    for warning in &r.warnings {
        println!("warning: {warning}");
    }
    for note in &r.notes {
        println!("note: {note}");
    }
}

/// What an anchored run releases first: Gaussian noise, whose ρ is its μ²/2.
fn print_anchor(anchor: &Anchor) {
    let second = match anchor {
        Anchor::Path {
            path_at_most,
            gradients,
            curvature,
            second_one,
        } => {
            println!(
                "anchor     rho {} for the path at most (what it leaves goes to the gradients), {} for the gradients, {} for the curvature",
                amount(*path_at_most),
                amount(*gradients),
                amount(*curvature)
            );
            *second_one
        }
        Anchor::Expansion {
            warm_start,
            gradient,
            curvature,
            second_one,
        } => {
            println!(
                "anchor     rho {} for the warm start, {} for the gradient, {} for the curvature",
                amount(*warm_start),
                amount(*gradient),
                amount(*curvature)
            );
            *second_one
        }
        Anchor::Moments { moments, degree } => {
            println!(
                "anchor     rho {} for moments up to degree {degree}",
                amount(*moments)
            );
            0.0
        }
    };
    if second > 0.0 {
        println!(
            "           rho {} for a second one after warm-up",
            amount(second)
        );
    }
}

/// Four decimals, or four digits where those are zeros.
fn amount(nats: f64) -> String {
    match nats < 1e-3 {
        true => format!("{nats:.3e}"),
        false => format!("{nats:.4}"),
    }
}

fn print_budget(b: &BudgetReport) {
    let symbol = &b.symbol;
    if b.start_cost > 0.0 {
        println!("start      {symbol} {} for the start", amount(b.start_cost));
    }
    let step = match (b.step_cost, b.step_epsilon) {
        (None, _) => String::new(),
        // The conversion gives zero where delta alone pays for the step.
        (Some(cost), None) => format!("; a typical step costs {symbol} {cost:.3e}"),
        (Some(cost), Some(epsilon)) => {
            format!("; a typical step costs {symbol} {cost:.3e} (epsilon {epsilon:.2e} alone)")
        }
    };
    println!(
        "budget     ({}, {:e})-DP = {symbol} {}{step}",
        b.epsilon,
        b.delta,
        amount(b.limit)
    );
    if symbol != "rho" {
        println!("           counted by a {}", b.filter);
    }
    if let Some(ledger) = &b.ledger {
        println!(
            "ledger     {}: {symbol} {:.4e} spent, {symbol} {:.4e} left",
            ledger.path, ledger.spent, ledger.left
        );
    }
    print_steps(b);
    if b.step_is_a_guess {
        let driver = b.label_count.map_or(String::new(), |count| {
            format!(
                "; it grows with the declared largest count ({}.count = {count})",
                b.label_key
            )
        });
        println!(
            "           a guess before the anchor is known: what a step costs follows where it comes to lie{driver}"
        );
    }
    if b.adapts {
        println!(
            "           at the first step's size; adaptation may make steps dearer, or cheaper"
        );
    }
}

fn print_steps(b: &BudgetReport) {
    let asked = b.steps_asked;
    if let Some(decisions) = &b.free_draws {
        println!(
            "draws      free: of the released quadratic; {}",
            words(decisions)
        );
        return;
    }
    // Nothing is free that is not of an anchor.
    let steps = b.steps_affordable.unwrap_or(f64::INFINITY);
    if steps >= MORE_THAN_ANYONE_MAKES && asked <= NEXT_TO_NOTHING * steps {
        println!(
            "           steps cost next to nothing: it affords far more than the {asked:.0} that the run asks for"
        );
    } else {
        let early = match (b.ends_early, b.decisions_are_spread) {
            (true, _) => ": it will end early",
            (_, true) => ": it will decide as often as that, spread over them",
            _ => "",
        };
        println!("           affords about {steps:.0} steps; the run asks for {asked:.0}{early}");
    }
}

/// What decisions about the rows would cost where none are made.
fn words(decisions: &Decisions) -> String {
    match decisions {
        Decisions::NeverMade => "this run makes no decisions".into(),
        Decisions::NothingToDecide => {
            "the model is its own quadratic, so there is nothing to decide".into()
        }
        Decisions::TooDear {
            rho_each,
            count,
            rho,
            budget_rho,
        } => {
            let why = match rho > budget_rho {
                true => format!("which the budget (rho {budget_rho:.3e}) does not hold"),
                false => format!("more of the budget (rho {budget_rho:.3e}) than they are worth"),
            };
            format!(
                "decisions would cost rho {rho_each:.1e} each, rho {rho:.1e} for {count:.0} of them: {why}"
            )
        }
        Decisions::Unpriced => "decisions have no price at such clips".into(),
    }
}

fn print_forecast(f: &Forecast, r: &Report) {
    let sds = f.noise_posterior_sds;
    println!(
        "forecast   means off by about {} posterior sds for the noise (root mean square over {} coefficients)",
        two_digits(sds),
        r.model.parameters
    );
    if let Some(draws) = f.effective_draws {
        println!("           about {draws:.0} effective draws");
    }
    let target = f.target_posterior_sds;
    let rows = many(two_digits(f.rows_for_target), r);
    if f.falls_short() {
        let epsilon = match f.epsilon_for_target {
            Some(epsilon) => format!("epsilon {}", two_digits(epsilon)),
            None => "no epsilon up to 1000".into(),
        };
        println!("           {target} posterior sds would take {epsilon}, or {rows}");
    }
    println!("           {}", f.assumptions);
}

/// Two significant digits, which is more than a forecast has.
fn two_digits(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return format!("{value}");
    }
    if value.abs() >= 1e6 {
        return format!("{value:.1e}");
    }
    let size = value.abs().log10().floor();
    let unit = 10f64.powf(size - 1.0);
    let decimals = (1.0 - size).max(0.0) as usize;
    format!("{:.decimals$}", (value / unit).round() * unit)
}

#[cfg(test)]
mod tests {
    #[test]
    fn forecasts_have_two_digits() {
        for (value, text) in [
            (0.2449, "0.24"),
            (1.04, "1.0"),
            (99.7, "100"),
            (32_561.0, "33000"),
            (7.3421e8, "7.3e8"),
            (0.0, "0"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(super::two_digits(value), text);
        }
    }
}
