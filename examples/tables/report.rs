//! What a person reads and what a program reads.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::score::Score;

/// All that is known of one table.
#[derive(Serialize, Deserialize)]
pub struct Report {
    pub table: String,
    pub model: String,
    pub rows: usize,
    pub coefficients: usize,
    pub row_norm: f64,
    pub prior_sd: f64,
    pub delta: f64,
    /// Test log loss of the posterior without privacy.
    pub log_loss: Option<f64>,
    /// Coverage of the generating coefficients by its 90 % intervals, and the least.
    pub covers_truth: Option<[f64; 2]>,
    /// Largest Monte-Carlo error of a reference mean, in posterior sds.
    pub reference_error: f64,
    /// Root mean square of posterior mean − mode, in posterior sds.
    pub reference_skew: f64,
    /// (ε, error of one gradient at the mode with all else for free).
    pub yardstick: Vec<(f64, f64)>,
    pub scores: Vec<Score>,
}

pub fn print(report: &Report) {
    println!(
        "\n{}: {}, {} rows, {} coefficients, row norm at most {:.2}, prior N(0, {}²)",
        report.table,
        report.model,
        report.rows,
        report.coefficients,
        report.row_norm,
        report.prior_sd
    );
    let mut without = format!(
        "without privacy: means to {:.3} sd, {:.2} sd (rms) from the mode",
        report.reference_error, report.reference_skew
    );
    if let Some(loss) = report.log_loss {
        without += &format!("; test log loss {loss:.4}");
    }
    if let Some([share, least]) = report.covers_truth {
        without += &format!("; intervals cover {share:.2} (least {least:.2}) of the truth");
    }
    println!("{without}");
    for (epsilon, error) in &report.yardstick {
        println!(
            "  ε = {epsilon}, δ = {:e}   yardstick {error:.2}",
            report.delta
        );
        println!(
            "    {:42} {:>7} {:>7} {:>6} {:>6} {:>6} {:>8} {:>8} {:>7} {:>6}",
            "method",
            "rms",
            "worst",
            "mean",
            "truth",
            "least",
            "log loss",
            "seconds",
            "draws",
            "none"
        );
        let here = report.scores.iter().filter(|s| s.epsilon == *epsilon);
        here.for_each(line);
    }
}

fn line(s: &Score) {
    let number = |v: Option<f64>, digits: usize| match v {
        Some(v) if v.abs() >= 1000.0 => format!("{v:.0}"),
        Some(v) => format!("{v:.digits$}"),
        None => "-".into(),
    };
    let none = match s.none {
        0 => "-".into(),
        n => format!("{n}/{}", s.repeats),
    };
    println!(
        "    {:42} {:>7} {:>7} {:>6} {:>6} {:>6} {:>8} {:>8} {:>7} {:>6}",
        s.method,
        number(s.rms, 2),
        number(s.worst, 1),
        number(s.covers_mean, 2),
        number(s.covers_truth, 2),
        number(s.covers_truth_least, 2),
        number(s.log_loss, 4),
        number(s.seconds, 2),
        number(s.effective_draws, 0),
        none
    );
    if let Some(why) = &s.why_none {
        println!("      none: {}", first(why));
    }
    for how in &s.ended {
        println!("      some ended so: {}", first(how));
    }
}

/// The beginning of a long message.
fn first(text: &str) -> String {
    let mut short: String = text.chars().take(150).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// What the columns are, once, above all tables.
pub fn print_legend(repeats: usize) {
    println!(
        "{repeats} repeats. rms: error over coefficients of the released mean against the \
         posterior mean\nwithout privacy, in posterior sds (mean of repeats). worst: the same of \
         the worst coefficient. mean:\nshare of 90 % intervals of the noise alone that hold that \
         mean. truth, least: share of full 90 %\nintervals that hold the generating \
         coefficients; the least of any coefficient. draws: effective, of\nthe worst \
         coefficient. none: runs that released nothing. yardstick: one noisy gradient at the\n\
         mode with metric, mode and curvature for free. Neighbours by substitution but where a \
         method says\notherwise. Peers add floating-point noise: good for a comparison, not for \
         a release."
    );
}

pub fn write_json(reports: &[Report], path: &Path) -> Result<(), String> {
    let text = serde_json::to_string_pretty(reports).map_err(|e| e.to_string())?;
    std::fs::write(path, text + "\n").map_err(|e| format!("{}: {e}", path.display()))
}

/// The tables of several studies, in the order of the files.
pub fn read_json(paths: &[PathBuf]) -> Result<Vec<Report>, String> {
    let mut reports = Vec::new();
    for path in paths {
        let wrong = |e: String| format!("{}: {e}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
        let read: Vec<Report> = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        reports.extend(read);
    }
    Ok(reports)
}
