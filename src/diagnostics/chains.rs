//! The preparation that R-hat and effective sample size share: cutting chains
//! to one length, splitting them, rank normalisation.

use statrs::distribution::{ContinuousCDF, Normal};

/// Fewest draws a chain that can be diagnosed: each half needs a variance.
const MIN_DRAWS: usize = 4;

/// The chains cut to the length of the shortest.
pub(super) fn cut_to_shortest(chains: &[Vec<f64>]) -> Vec<&[f64]> {
    let shortest = chains.iter().map(Vec::len).min().unwrap_or(0);
    chains.iter().map(|c| &c[..shortest]).collect()
}

/// The chains cut to one length, or nothing where no diagnostic is defined: no
/// chain, fewer than [`MIN_DRAWS`] draws a chain, or a draw that is not finite.
pub(super) fn diagnosable(chains: &[Vec<f64>]) -> Option<Vec<&[f64]>> {
    let chains = cut_to_shortest(chains);
    let long_enough = chains.first().is_some_and(|c| c.len() >= MIN_DRAWS);
    let finite = chains.iter().all(|c| c.iter().all(|x| x.is_finite()));
    (long_enough && finite).then_some(chains)
}

/// First and second half of every chain; the middle draw of an odd number is
/// left out. Splitting shows a drift within a chain as a difference between
/// two (Vehtari et al. 2021, Section 3.1).
pub(super) fn split<C: AsRef<[f64]>>(chains: &[C]) -> Vec<Vec<f64>> {
    chains
        .iter()
        .flat_map(|chain| {
            let chain = chain.as_ref();
            let half = chain.len() / 2;
            [chain[..half].to_vec(), chain[chain.len() - half..].to_vec()]
        })
        .collect()
}

/// All draws of all chains in ascending order.
pub(super) fn pooled_sorted<C: AsRef<[f64]>>(chains: &[C]) -> Vec<f64> {
    let mut pooled: Vec<f64> = chains
        .iter()
        .flat_map(|c| c.as_ref().iter().copied())
        .collect();
    pooled.sort_unstable_by(f64::total_cmp);
    pooled
}

/// Whether all draws of all chains are the same number.
pub(super) fn is_constant(chains: &[Vec<f64>]) -> bool {
    let mut draws = chains.iter().flatten();
    match draws.next() {
        Some(first) => draws.all(|x| x == first),
        None => true,
    }
}

/// Rank-normalised draws, z = Φ⁻¹((r − 3/8) / (S + 1/4)), with r the average
/// rank of a draw among all S of all chains (Vehtari et al. 2021, Section 4.1;
/// the offsets are Blom's of 1958, as in ArviZ and `posterior`).
pub(super) fn rank_normalize(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    // (value, chain, position), so that the scores find their way back.
    let mut draws: Vec<(f64, usize, usize)> = Vec::new();
    for (c, chain) in chains.iter().enumerate() {
        draws.extend(chain.iter().enumerate().map(|(i, &x)| (x, c, i)));
    }
    draws.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));

    let normal = Normal::standard();
    let total = draws.len() as f64;
    let mut scores: Vec<Vec<f64>> = chains.iter().map(|c| vec![0.0; c.len()]).collect();
    let mut before = 0;
    // `==` also ties -0.0 with 0.0, which `total_cmp` puts side by side.
    for ties in draws.chunk_by(|a, b| a.0 == b.0) {
        let rank = before as f64 + (ties.len() + 1) as f64 / 2.0;
        let z = normal.inverse_cdf((rank - 0.375) / (total + 0.25));
        for &(_, c, i) in ties {
            scores[c][i] = z;
        }
        before += ties.len();
    }
    scores
}
