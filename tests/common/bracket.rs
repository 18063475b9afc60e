//! For the audits: a lower bound that must come near its claims.

use dpmc::privacy::audit::Report;

/// The bound must be under both claims, and at least `teeth` of the smaller.
pub fn assert_between(report: &Report, teeth: f64) {
    let claim = report.claim.min(report.accountant);
    assert!(report.epsilon_lower <= claim, "{report:?}");
    assert!(
        report.epsilon_lower >= teeth * claim,
        "{:.3} of the claim: {report:?}",
        report.epsilon_lower / claim
    );
}
