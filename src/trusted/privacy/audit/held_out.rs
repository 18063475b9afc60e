//! The release of a held-out score, attacked: two tables that differ in one row, whose score is at
//! the lowest end of its range in one and at the highest in the other.

use std::sync::Arc;

use super::bound::{Event, Histogram, lower_bound};
use super::case::claims;
use super::{AuditError, Report, Settings, Subject, report};
use crate::data::Dataset;
use crate::engine::EngineChoice;
use crate::model::{Prior, Regression};
use crate::privacy::accountant::Budget;
use crate::privacy::accountant::Measure;
use crate::privacy::curator::CuratorError;
use crate::privacy::held_out::{HeldOut, ScoreRequest};
use crate::privacy::ledger::Ledger;
use crate::privacy::releases::Halt;

/// What the command calls it.
pub(super) const NAME: &str = "held-out";
/// Thresholds a standard deviation of the noise.
const FINE: f64 = 4.0;
/// Standard deviations that thresholds reach.
const REACH: f64 = 8.0;
/// η of the row that differs is this or minus this: its log score is about 0 or about −40.
const FAR: f64 = 40.0;
/// The range of scores.
const RANGE: [f64; 2] = [-1.0, 0.0];

/// D or D': a row that says nothing, and one whose label is all but certain, or all but impossible.
fn held_out(neighbour: bool, seed: Option<u64>) -> Result<HeldOut, AuditError> {
    let refuse = |what: String| AuditError::setting("rows", what);
    let set = Dataset::builder(vec!["x".into()], true, 1.0);
    let set = set.and_then(|mut set| {
        set.push(&[0.0], Some(true))?;
        set.push(&[1.0], Some(!neighbour))?;
        set.finish()
    });
    let data = set.map_err(|e| refuse(e.to_string()))?;
    let model = Regression::logistic(data.features(), 1.0, Prior::normal(1, 1.0), 1.0);
    let model = model.map_err(|e| CuratorError::Mismatch(e.to_string()))?;
    let budget = Budget::new(1000.0, 0.5).map_err(|e| Halt::Refused(e.to_string()))?;
    let ledger = Ledger::counting(budget, Measure::Zcdp);
    let seed = seed.map(|s| s ^ (u64::from(neighbour) << 63));
    Ok(HeldOut::private(data, Arc::new(model), ledger, seed)?)
}

/// Audits the release of a held-out score with noise of `tau`: both sums, each in standard
/// deviations of its noise, are added up and put to a threshold.
///
/// # Errors
/// As [`super::audit`].
pub fn audit_held_out(tau: f64, settings: &Settings) -> Result<Report, AuditError> {
    settings.check()?;
    for (key, given) in [
        ("steps", settings.steps.is_some_and(|s| s != 1)),
        ("engine", settings.engine != EngineChoice::Cpu),
        ("row-bounds", settings.row_bounds),
    ] {
        if given {
            let what = "a held-out score is one release, summed on the CPU over rows of one norm; leave this out";
            return Err(AuditError::setting(key, what));
        }
    }
    let key = HeldOut::cost(tau)?;
    let claims = claims(&[(key, 2)], settings.delta, |_| Measure::Zcdp)?;
    let mut tables = [
        held_out(false, settings.seed)?,
        held_out(true, settings.seed)?,
    ];
    let draws = [vec![FAR]];
    let request = ScoreRequest {
        draws: &draws,
        range: RANGE,
        tau,
    };
    let bins = (2.0 * REACH * FINE) as u32;
    let mut sample = |neighbour: bool, _, runs: u64| -> Result<Histogram, AuditError> {
        let table = &mut tables[usize::from(neighbour)];
        let mut histogram = Histogram::new(bins);
        for _ in 0..runs {
            table.renew();
            let found = table.score(&request)?;
            // From the middle between D and D'.
            let score = (found.log_score - 0.5 * RANGE[0]) / found.log_score_sd;
            let hits = found.accuracy.map_or(0.0, |[mean, sd]| (mean - 0.5) / sd);
            let along = (score + hits) / 2f64.sqrt();
            let bin = ((along + REACH) * FINE).floor();
            histogram.add(bin.clamp(0.0, f64::from(bins)) as u32);
        }
        Ok(histogram)
    };
    let words = |event: &Event| {
        let (sign, bin) = match event.at_least {
            true => ("at least", event.threshold),
            false => ("less than", event.threshold + 1),
        };
        let score = f64::from(bin) / FINE - REACH;
        format!("{sign} {score:.2} sds of the noise released")
    };
    let (bound, event) = lower_bound(&mut sample, &[0.0], bins, &words, settings)?;
    let subject = Subject::AnchoredBarker;
    let mut report = report(subject, settings, 1, claims, bound, event, "cpu");
    report.algorithm = "held-out score and accuracy";
    Ok(report)
}
