//! Audits: a statistical **lower** bound on the ε of what a sampler releases, to be held
//! against what is claimed for it.
//!
//! A run makes the same move θ → θ' T times on worst-case neighbours D, D' (one row's ratio
//! is as large as the clip allows on D, and its negation on D'). Its T released bits are
//! independent and identically distributed, so the number S of accepted moves is a
//! sufficient statistic. M runs are made on each data set:
//!
//! 1. the first half chooses a public part h of the log ratio, an event E = {S ≥ k} or
//!    {S ≤ k}, and which of D, D' plays P, the other being Q;
//! 2. the second half, of n runs each, counts E on both. With α = 1 − confidence,
//!    `p_low = BetaInv(α/2; k_P, n − k_P + 1)` and
//!    `q_high = BetaInv(1 − α/2; k_Q + 1, n − k_Q)` (Clopper & Pearson 1934) hold together
//!    with probability at least 1 − α, however E was chosen, for it was chosen on other runs;
//! 3. (ε, δ)-DP means `P(E) ≤ e^ε Q(E) + δ`, so that
//!    `ε ≥ ε_low = max(0, ln((p_low − δ)/q_high))` (Jagielski, Ullman & Oprea 2020, section 4;
//!    the split of the runs as in Ding et al. 2018).
//!
//! A sampler that follows released gradients is attacked through all that a run of it releases:
//! S is then the log likelihood ratio of D and D' of every gradient and decision, which is
//! what the most informed adversary would put to a threshold.
//!
//! A bound above the claim refutes it, wrongly with probability at most α. A bound below
//! proves nothing: other data, moves or events might do better.
//!
//! ```
//! use dpmc::privacy::audit::{Settings, Subject, Verdict, audit};
//! let settings = Settings { trials: 2_000, seed: Some(1), ..Settings::default() };
//! let report = audit(Subject::Barker, &settings)?;
//! assert!(report.epsilon_lower <= report.claim && report.verdict == Verdict::Consistent);
//! # Ok::<(), dpmc::privacy::audit::AuditError>(())
//! ```

mod adversary;
mod as_published;
mod bound;
mod case;
mod gradient;
mod gradient_runs;
#[cfg(test)]
mod gradient_tests;
mod held_out;
mod release;
#[cfg(test)]
mod release_tests;
mod remainder;
mod repeat;
mod subject;
mod weighted;

use serde::Serialize;

use super::curator::CuratorError;
use super::releases::Halt;
use crate::engine::EngineChoice;
use as_published::FastMh;
use bound::{Histogram, accepted_moves, lower_bound};
pub use case::{Case, MOST_REMAINDER};
pub use gradient::{Differing, GradientCase, GradientRun, audit_gradients};
pub use held_out::audit_held_out;
pub use release::{AnchorCase, AnchorPart, audit_anchor};
use repeat::CuratorRuns;
pub use subject::Subject;
pub use weighted::RowWeights;

/// Most steps of a run.
const MOST_STEPS: u32 = 100_000;
/// Most runs on each data set.
const MOST_TRIALS: u64 = 1_000_000_000;

/// What can go wrong in an audit.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A setting without meaning, or an algorithm that has no audit.
    #[error("{key}: {what}")]
    Setting {
        /// Name of the setting, as of the command's flag.
        key: &'static str,
        /// What is wrong and what to do.
        what: String,
    },
    /// The curator could not be set up.
    #[error(transparent)]
    Curator(#[from] CuratorError),
    /// A step was refused or failed.
    #[error(transparent)]
    Halt(#[from] Halt),
}

impl AuditError {
    fn setting(key: &'static str, what: impl Into<String>) -> Self {
        AuditError::Setting {
            key,
            what: what.into(),
        }
    }
}

/// How an audit is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Steps T of a run; the case's own number where absent.
    pub steps: Option<u32>,
    /// Runs M on each of the two data sets: half choose the event, half bound it.
    pub trials: u64,
    /// δ at which ε is bounded and claimed.
    pub delta: f64,
    /// Probability with which the bound holds.
    pub confidence: f64,
    /// Engine that the curator opens.
    pub engine: EngineChoice,
    /// Fixes every coin of the audit; fresh ones from the operating system without it.
    pub seed: Option<u64>,
    /// Rows with public bounds of their own: the widest row is attacked, and a narrow one
    /// beside it, each held against the ε of its own bound.
    pub row_bounds: bool,
}

impl Default for Settings {
    /// 500,000 runs at δ = 1e-5 and confidence 0.999 on the CPU.
    fn default() -> Self {
        Settings {
            steps: None,
            trials: 500_000,
            delta: 1e-5,
            confidence: 0.999,
            engine: EngineChoice::Cpu,
            seed: None,
            row_bounds: false,
        }
    }
}

impl Settings {
    fn check(&self) -> Result<(), AuditError> {
        let refuse = |key, what: String| Err(AuditError::setting(key, what));
        if let Some(steps) = self.steps
            && !(1..=MOST_STEPS).contains(&steps)
        {
            return refuse(
                "steps",
                format!("must lie in 1..={MOST_STEPS}, not {steps}"),
            );
        }
        if !(2..=MOST_TRIALS).contains(&self.trials) {
            return refuse(
                "trials",
                format!(
                    "must lie in 2..={MOST_TRIALS}, not {}: one half chooses the event, the other bounds it",
                    self.trials
                ),
            );
        }
        if !(0.0..1.0).contains(&self.delta) {
            return refuse("delta", format!("must lie in [0, 1), not {}", self.delta));
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return refuse(
                "confidence",
                format!("must lie strictly between 0 and 1, not {}", self.confidence),
            );
        }
        Ok(())
    }
}

/// What an audit says of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The lower bound is not above the claim. No proof of it.
    Consistent,
    /// The lower bound is above the claim: the claim is false.
    Violated,
}

/// An audit's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Whether it was run to the letter of its paper.
    pub as_published: bool,
    /// Steps T of a run.
    pub steps: u32,
    /// Public bound of the row that differs, relative to the row norm, where rows have bounds
    /// of their own; `claim` and `accountant` are then for rows no wider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_bound: Option<f64>,
    /// Runs M on each data set.
    pub trials: u64,
    /// δ.
    pub delta: f64,
    /// Probability with which `epsilon_lower` holds.
    pub confidence: f64,
    /// ε claimed for T steps at δ: by the ledger, or by the paper. Infinite (`null` in JSON)
    /// where nothing is claimed at this δ.
    pub claim: f64,
    /// The accountants' ε for the same events; infinite (`null`) where there is none.
    pub accountant: f64,
    /// Lower bound on the ε of T steps at δ.
    pub epsilon_lower: f64,
    /// `epsilon_lower` against the smaller of `claim` and `accountant`.
    pub verdict: Verdict,
    /// `cpu` or `gpu`.
    pub engine: String,
    /// The event that was counted, in words.
    pub event: String,
    /// What else the algorithm releases, audited each on its own worst case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Report>,
}

impl Report {
    /// Whether this claim and those of all parts may be true.
    pub fn is_consistent(&self) -> bool {
        self.verdict == Verdict::Consistent && self.parts.iter().all(Report::is_consistent)
    }
}

/// Audits a subject on its own worst case.
///
/// # Errors
/// [`AuditError`] for settings without meaning, and where engine or steps fail.
pub fn audit(subject: Subject, settings: &Settings) -> Result<Report, AuditError> {
    settings.check()?;
    if settings.row_bounds {
        let [widest, narrow] = Case::weighted(subject).ok_or_else(|| {
            AuditError::setting(
                "row-bounds",
                format!(
                    "{} draws no rows by their bounds; poisson-barker and dp-fast-mh do",
                    subject.name()
                ),
            )
        })?;
        let mut report = audit_case(&widest, subject, settings)?;
        report.parts.push(audit_case(&narrow, subject, settings)?);
        return Ok(report);
    }
    if let Some(case) = Case::of(subject) {
        let mut report = audit_case(&case, subject, settings)?;
        if subject == Subject::AnchoredBarker {
            for part in AnchorPart::ALL {
                report
                    .parts
                    .push(audit_anchor(&AnchorCase::of(part), settings)?);
            }
        }
        return Ok(report);
    }
    if let Some(case) = GradientCase::of(subject) {
        let mut report = audit_gradients(&case, subject, settings)?;
        let alone = GradientCase::alone(subject);
        report
            .parts
            .push(audit_gradients(&alone, subject, settings)?);
        return Ok(report);
    }
    if settings.engine != EngineChoice::Cpu {
        return Err(AuditError::setting(
            "engine",
            format!(
                "{} as published runs the audit's own code on the CPU; leave this out",
                subject.name()
            ),
        ));
    }
    let steps = settings.steps.unwrap_or(1);
    let mut runs = FastMh::worst_case(settings.seed)?;
    // Basic composition, the weakest claim that the paper's theorem makes for T steps, each
    // at (ε, δ/T).
    let claim = as_published::EPSILON * f64::from(steps);
    let mut sample = |neighbour, h, wanted| Ok(runs.repeat(neighbour, h, steps, wanted));
    let words = accepted_moves(steps);
    let (bound, event) = lower_bound(&mut sample, &[0.0], steps, &words, settings)?;
    let claims = (claim, f64::INFINITY);
    Ok(report(
        subject, settings, steps, claims, bound, event, "cpu",
    ))
}

/// Audits a case of one's own through the curator, in the name of `subject`.
///
/// # Errors
/// As [`audit`].
pub fn audit_case(
    case: &Case,
    subject: Subject,
    settings: &Settings,
) -> Result<Report, AuditError> {
    settings.check()?;
    let steps = settings.steps.unwrap_or(case.steps);
    let claims = case.claims(steps, settings.delta)?;
    let mut runs = CuratorRuns::open(case, settings.engine, settings.seed)?;
    let engine = runs.engine();
    let mut sample = |neighbour, h, wanted| -> Result<Histogram, AuditError> {
        runs.repeat(neighbour, h, steps, wanted)
    };
    let words = accepted_moves(steps);
    let (bound, event) = lower_bound(&mut sample, &case.public, steps, &words, settings)?;
    let report = report(subject, settings, steps, claims, bound, event, &engine);
    Ok(Report {
        row_bound: case.weights.map(|w| w.differing),
        ..report
    })
}

fn report(
    subject: Subject,
    settings: &Settings,
    steps: u32,
    (claim, accountant): (f64, f64),
    epsilon_lower: f64,
    event: String,
    engine: &str,
) -> Report {
    let verdict = if epsilon_lower > claim.min(accountant) {
        Verdict::Violated
    } else {
        Verdict::Consistent
    };
    Report {
        algorithm: subject.name(),
        as_published: subject.as_published(),
        steps,
        row_bound: None,
        trials: settings.trials,
        delta: settings.delta,
        confidence: settings.confidence,
        claim,
        accountant,
        epsilon_lower,
        verdict,
        engine: engine.into(),
        event,
        parts: Vec::new(),
    }
}
