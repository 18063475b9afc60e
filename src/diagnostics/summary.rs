//! The row of the summary table that each parameter gets.

use super::chains::{cut_to_shortest, pooled_sorted};
use super::{ess_bulk, ess_tail, mean, quantile, r_hat, sd};

/// What a posterior summary reports for one scalar parameter.
#[derive(Debug, Clone, serde::Serialize)]
pub struct ParameterSummary {
    /// The parameter's name.
    pub name: String,
    /// Posterior mean.
    pub mean: f64,
    /// Posterior standard deviation (divisor n − 1).
    pub sd: f64,
    /// 5 % quantile.
    pub q5: f64,
    /// Median.
    pub q50: f64,
    /// 95 % quantile.
    pub q95: f64,
    /// Bulk effective sample size, see [`ess_bulk`].
    pub ess_bulk: f64,
    /// Tail effective sample size, see [`ess_tail`].
    pub ess_tail: f64,
    /// R-hat, see [`r_hat`].
    pub r_hat: f64,
}

/// Summarises the draws of one parameter, one vector a chain, all chains cut to
/// the length of the shortest. The columns are those that Vehtari et al. (2021,
/// Section 5) recommend to report. A draw that is NaN makes all of them NaN.
pub fn summarize(name: &str, chains: &[Vec<f64>]) -> ParameterSummary {
    let mut sorted = pooled_sorted(&cut_to_shortest(chains));
    if sorted.iter().any(|x| x.is_nan()) {
        // NaN has no place in an order: without draws every column is NaN.
        sorted.clear();
    }
    ParameterSummary {
        name: name.to_owned(),
        mean: mean(&sorted),
        sd: sd(&sorted),
        q5: quantile(&sorted, 0.05),
        q50: quantile(&sorted, 0.5),
        q95: quantile(&sorted, 0.95),
        ess_bulk: ess_bulk(chains),
        ess_tail: ess_tail(chains),
        r_hat: r_hat(chains),
    }
}
