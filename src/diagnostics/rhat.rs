//! R-hat: do the chains, and the halves of each chain, agree?

use super::chains::{diagnosable, is_constant, pooled_sorted, rank_normalize, split};
use super::moments::{mean, sd};

/// The larger of rank-normalised split R-hat of the draws (do the chains agree
/// in location?) and of the folded draws |x − median| (do they agree in
/// scale?). Vehtari et al. (2021), Sections 4.1 and 4.2; they advise to use
/// draws only where it is below 1.01.
///
/// One chain is enough: its halves are compared. The result is NaN for fewer
/// than four draws a chain, constant draws or draws that are not finite, and
/// infinite where every chain is stuck at a value of its own.
pub fn r_hat(chains: &[Vec<f64>]) -> f64 {
    let Some(chains) = diagnosable(chains) else {
        return f64::NAN;
    };
    let halves = split(&chains);
    let sorted = pooled_sorted(&halves);
    // NumPy's formula: its rounding decides which of the two middle draws is
    // the nearer one after folding, which shows in R-hat of very few draws.
    let median = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    let folded: Vec<Vec<f64>> = halves
        .iter()
        .map(|half| half.iter().map(|x| (x - median).abs()).collect())
        .collect();
    // `f64::max` passes over NaN: folding makes draws of two values constant,
    // and the bulk then decides alone.
    basic_r_hat(&rank_normalize(&halves)).max(basic_r_hat(&rank_normalize(&folded)))
}

/// sqrt(((n − 1)/n·W + B/n) / W), with B the variance between and W the mean
/// variance within chains of n draws (Vehtari et al. 2021, Section 3.1,
/// equations 1 to 4; Gelman and Rubin 1992).
fn basic_r_hat(chains: &[Vec<f64>]) -> f64 {
    if is_constant(chains) {
        return f64::NAN;
    }
    let n = chains.first().map_or(0, Vec::len) as f64;
    let means: Vec<f64> = chains.iter().map(|c| mean(c)).collect();
    let variances: Vec<f64> = chains.iter().map(|c| variance(c)).collect();
    let between = n * variance(&means);
    let within = mean(&variances);
    ((between / within + n - 1.0) / n).sqrt()
}

/// Sample variance, exactly zero for a stuck chain (whose mean may be off by a
/// rounding error).
fn variance(values: &[f64]) -> f64 {
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        0.0
    } else {
        sd(values).powi(2)
    }
}
