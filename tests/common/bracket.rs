//! For the audits: a lower bound that must come near its claims, or refute another's.

use dpmc::privacy::audit::Report;

/// The bound must be under both claims, and at least `teeth` of the smaller.
pub fn assert_between(report: &Report, teeth: f64) {
    let claim = report.claim.min(report.accountant);
    println!(
        "{:.3} of the claim: {report:?}",
        report.epsilon_lower / claim
    );
    assert!(report.epsilon_lower <= claim, "{report:?}");
    assert!(
        report.epsilon_lower >= teeth * claim,
        "{:.3} of the claim: {report:?}",
        report.epsilon_lower / claim
    );
}

/// The bound must lie above what the honest run claims.
pub fn assert_caught(faulty: &Report, claim: f64) {
    println!(
        "{:.3} of a wrong claim of {claim}: {faulty:?}",
        faulty.epsilon_lower / claim
    );
    assert!(faulty.epsilon_lower > claim, "{faulty:?} against {claim}");
}
