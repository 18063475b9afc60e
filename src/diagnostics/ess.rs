//! Effective sample size: how many independent draws would estimate as well?

use rustfft::{FftPlanner, num_complex::Complex};

use super::chains::{diagnosable, is_constant, pooled_sorted, rank_normalize, split};
use super::moments::{mean, quantile, sd};

/// Bulk effective sample size: that of the rank-normalised draws of the split
/// chains (Vehtari et al. 2021, Section 4.1). It tells how well the centre of
/// the posterior is explored; they ask for 100 a chain.
///
/// NaN for fewer than four draws a chain, constant draws, or draws that are
/// not finite.
pub fn ess_bulk(chains: &[Vec<f64>]) -> f64 {
    diagnosable(chains).map_or(f64::NAN, |c| basic_ess(&rank_normalize(&split(&c))))
}

/// Effective sample size for the mean: that of the draws of the split chains as
/// they are (Vehtari et al. 2021, Section 3.2). The Monte Carlo standard error
/// of the posterior mean is sd / sqrt(ess_mean).
///
/// NaN where [`ess_bulk`] is.
pub fn ess_mean(chains: &[Vec<f64>]) -> f64 {
    diagnosable(chains).map_or(f64::NAN, |c| basic_ess(&split(&c)))
}

/// Tail effective sample size: the smaller of those of the 5 % and the 95 %
/// quantile (Vehtari et al. 2021, Section 4.3).
///
/// NaN where [`ess_bulk`] is, and also where so many draws are tied that one of
/// the quantiles splits nothing (as in `posterior`; ArviZ gives the number of
/// draws there).
pub fn ess_tail(chains: &[Vec<f64>]) -> f64 {
    let Some(chains) = diagnosable(chains) else {
        return f64::NAN;
    };
    let sorted = pooled_sorted(&chains);
    let ess_quantile = |p: f64| {
        let q = quantile(&sorted, p);
        let below: Vec<Vec<f64>> = chains
            .iter()
            .map(|c| c.iter().map(|&x| f64::from(x <= q)).collect())
            .collect();
        basic_ess(&split(&below))
    };
    let (low, high) = (ess_quantile(0.05), ess_quantile(0.95));
    if low.is_nan() || high.is_nan() {
        f64::NAN
    } else {
        low.min(high)
    }
}

/// S / τ of chains of one length, with the autocorrelation time τ estimated
/// over all chains by Geyer's initial monotone sequence (Vehtari et al. 2021,
/// Section 3.2 and Appendix A; Geyer 1992, "Practical Markov chain Monte
/// Carlo"). Which lags enter at the ends of the sequence is as in ArviZ 0.23.
fn basic_ess(chains: &[Vec<f64>]) -> f64 {
    let n = chains.first().map_or(0, Vec::len);
    if n < 2 || is_constant(chains) {
        return f64::NAN;
    }
    let autocovariance = mean_autocovariance(chains, n);
    let within = autocovariance[0] * n as f64 / (n as f64 - 1.0);
    let chain_means: Vec<f64> = chains.iter().map(|c| mean(c)).collect();
    let mut total_variance = autocovariance[0];
    if chains.len() > 1 {
        total_variance += sd(&chain_means).powi(2);
    }
    let correlation = |lag: usize| 1.0 - (within - autocovariance[lag]) / total_variance;

    // Initial positive sequence: pairs of lags (even, odd) while their sum is
    // positive.
    let mut rho = vec![0.0; n];
    let mut even = 1.0;
    let mut odd = correlation(1);
    rho[0] = even;
    rho[1] = odd;
    let mut t = 1;
    while t + 3 < n && even + odd > 0.0 {
        even = correlation(t + 1);
        odd = correlation(t + 2);
        if even + odd >= 0.0 {
            rho[t + 1] = even;
            rho[t + 2] = odd;
        }
        t += 2;
    }
    // The even lag after the last pair kept still enters, once instead of twice:
    // this steadies the estimate for antithetic chains.
    let last = t - 1;
    if even > 0.0 {
        rho[last] = even;
    }

    // Initial monotone sequence: no pair above the one before it.
    let mut t = 1;
    while t + 3 <= last {
        let previous = rho[t - 1] + rho[t];
        if rho[t + 1] + rho[t + 2] > previous {
            rho[t + 1] = previous / 2.0;
            rho[t + 2] = previous / 2.0;
        }
        t += 2;
    }

    let draws = (chains.len() * n) as f64;
    let tau = -1.0 + 2.0 * rho[..last].iter().sum::<f64>() + rho[last];
    // At most S·log10(S), for antithetic chains (ibid., Section 3.2).
    draws / tau.max(1.0 / draws.log10())
}

/// Autocovariance at lags 0 to n − 1 (divisor n), averaged over chains, by FFT.
/// The average is taken of the power spectra: one inverse transform serves all.
fn mean_autocovariance(chains: &[Vec<f64>], n: usize) -> Vec<f64> {
    // Padded with zeros to twice the length, so that the ends do not wrap
    // around.
    let size = (2 * n).next_power_of_two();
    let mut planner = FftPlanner::new();
    let forward = planner.plan_fft_forward(size);
    let inverse = planner.plan_fft_inverse(size);
    let zero = Complex::new(0.0, 0.0);
    let mut power = vec![zero; size];
    for chain in chains {
        let centre = mean(chain);
        let mut buffer = vec![zero; size];
        for (slot, x) in buffer.iter_mut().zip(chain) {
            slot.re = x - centre;
        }
        forward.process(&mut buffer);
        for (sum, f) in power.iter_mut().zip(&buffer) {
            sum.re += f.norm_sqr();
        }
    }
    inverse.process(&mut power);
    let scale = 1.0 / (size * n * chains.len()) as f64;
    power[..n].iter().map(|p| p.re * scale).collect()
}
