//! `dpmc audit`: a lower bound on ε, found by attack, beside what is claimed.

use super::CliError;
use super::answers::print_json;
use super::args::{AuditArguments, AuditEngine};
use dpmc::privacy::audit::{AuditError, Report, Settings, Subject, Verdict, audit, audit_held_out};

/// τ of the noise that is attacked in a held-out score.
const HELD_OUT_TAU: f64 = 2.0;

impl From<AuditError> for CliError {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Setting { key, what } => CliError::Input(format!("--{key}: {what}")),
            AuditError::Curator(e) => e.into(),
            AuditError::Halt(e) => CliError::Failure(e.to_string()),
        }
    }
}

pub(super) fn run(a: &AuditArguments) -> Result<(), CliError> {
    let held_out = a.algorithm == "held-out" && !a.as_published;
    let subject = match held_out {
        true => Subject::AnchoredBarker,
        false => Subject::parse(&a.algorithm, a.as_published)?,
    };
    let usual = Settings::default();
    let settings = Settings {
        steps: a.steps,
        trials: a.trials.unwrap_or(match a.engine {
            AuditEngine::Cpu => usual.trials,
            // A software adapter takes ten times as long.
            AuditEngine::Gpu => usual.trials / 10,
        }),
        delta: a.delta.unwrap_or(usual.delta),
        confidence: a.confidence.unwrap_or(usual.confidence),
        engine: a.engine.into(),
        seed: a.seed,
        row_bounds: a.row_bounds,
    };
    let report = match held_out {
        true => audit_held_out(HELD_OUT_TAU, &settings)?,
        false => audit(subject, &settings)?,
    };
    if a.json {
        print_json(&report)?;
    } else {
        print(&report);
        for part in &report.parts {
            println!();
            print(part);
        }
    }
    // A paper's false claim is what its audit is there to show; one of our own is a failure.
    if !report.is_consistent() && !report.as_published {
        return Err(CliError::Failure(format!(
            "the claim of {} is false; please report this",
            report.algorithm
        )));
    }
    Ok(())
}

fn print(r: &Report) {
    let number = |v: f64| {
        if v.is_finite() {
            format!("{v:.4}")
        } else {
            "none".into()
        }
    };
    let (name, verdict) = (r.algorithm, verdict(r));
    let delta = delta(r);
    let published = if r.as_published { ", as published" } else { "" };
    println!("algorithm    {name}{published}");
    if let Some(bound) = r.row_bound {
        println!("row          of bound {bound} of the row norm; claims are for rows no longer");
    }
    println!(
        "runs         {} of {} on each of two neighbours ({})",
        r.trials,
        steps(r),
        r.engine
    );
    println!("event        {}", r.event);
    println!("                             epsilon at delta = {delta}");
    println!("claim                        {}", number(r.claim));
    println!("accountant                   {}", number(r.accountant));
    println!(
        "audit, at least              {}  (confidence {})",
        number(r.epsilon_lower),
        r.confidence
    );
    println!("verdict      {verdict}");
}

fn steps(r: &Report) -> String {
    if r.steps == 1 {
        "1 step".into()
    } else {
        format!("{} steps", r.steps)
    }
}

fn delta(r: &Report) -> String {
    if r.delta > 0.0 {
        format!("{:e}", r.delta)
    } else {
        "0".into()
    }
}

fn verdict(r: &Report) -> String {
    match r.verdict {
        Verdict::Consistent if r.claim.min(r.accountant) == f64::INFINITY => format!(
            "none: nothing is claimed at delta = {}, so no bound can contradict it",
            delta(r)
        ),
        Verdict::Consistent => "consistent: the lower bound is not above the claim".into(),
        Verdict::Violated => format!(
            "the claim is false: the epsilon of {} at delta = {} is at least {:.4}, not {:.4}",
            steps(r),
            delta(r),
            r.epsilon_lower,
            r.claim.min(r.accountant)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaussian noise has no epsilon at delta 0.
    #[test]
    fn where_nothing_is_claimed_there_is_no_verdict() {
        let words = |name: &str, delta: f64| {
            let settings = Settings {
                trials: 1_000,
                delta,
                seed: Some(1),
                ..Settings::default()
            };
            verdict(&audit(Subject::parse(name, false).unwrap(), &settings).unwrap())
        };
        assert!(words("dp-penalty", 0.0).starts_with("none: nothing is claimed at delta = 0"));
        assert!(words("dp-penalty", 1e-5).starts_with("consistent"));
        assert!(words("barker", 0.0).starts_with("consistent"));
    }
}
