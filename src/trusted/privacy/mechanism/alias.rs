//! Weighted row draws whose law is exact: an alias table of integers (Walker 1977; Vose 1991).
//!
//! Tables of floats are off by a rounding a row, which would have to be paid for in δ. Here
//! the weights are integers W_i, and so is everything else: N columns of height ΣW_i hold
//! N·W_i of every row, and column and height are drawn by exact uniforms.

use super::secret_rng::SecretRng;

/// Draws row i with probability `W_i/ΣW_i`.
pub(in crate::trusted::privacy) struct AliasTable {
    /// Row j of a column below `columns[j].0`, else row `columns[j].1`.
    columns: Vec<(u64, u64)>,
    /// ΣW_i.
    height: u64,
}

impl AliasTable {
    /// `weights`: public, one a row. `None` where they are all 0 or `N·max W_i` or `ΣW_i`
    /// exceeds 2^63.
    pub(in crate::trusted::privacy) fn new(weights: &[u32]) -> Option<Self> {
        let rows = weights.len() as u64;
        let height: u64 = weights.iter().map(|&w| u64::from(w)).sum();
        let largest = u64::from(weights.iter().copied().max()?);
        let fits = rows.checked_mul(largest).is_some_and(|n| n < 1 << 63);
        if height == 0 || height >= 1 << 63 || !fits {
            return None;
        }
        let mut columns: Vec<(u64, u64)> = (0..rows)
            .zip(weights)
            .map(|(j, &w)| (u64::from(w) * rows, j))
            .collect();
        let (mut low, mut high): (Vec<u64>, Vec<u64>) =
            (0..rows).partition(|&j| columns[j as usize].0 < height);
        // A column with room is filled up from a row that has too much. Means are equal, so
        // while one has room another has too much, and in the end all are full.
        while let (Some(small), Some(&big)) = (low.pop(), high.last()) {
            let gap = height - columns[small as usize].0;
            columns[small as usize].1 = big;
            let left = &mut columns[big as usize].0;
            *left -= gap;
            if *left < height {
                high.pop();
                low.push(big);
            }
        }
        Some(AliasTable { columns, height })
    }

    /// One draw.
    pub(super) fn draw(&self, rng: &mut SecretRng) -> u64 {
        let column = rng.below(self.columns.len() as u64);
        let (own, other) = self.columns[column as usize];
        if rng.below(self.height) < own {
            column
        } else {
            other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// N times the mass of every row, summed over the columns.
    fn masses(table: &AliasTable) -> Vec<u64> {
        let mut masses = vec![0; table.columns.len()];
        for (j, &(own, other)) in table.columns.iter().enumerate() {
            let own = own.min(table.height);
            masses[j] += own;
            masses[other as usize] += table.height - own;
        }
        masses
    }

    proptest! {
        /// The law is the weights, as integers and without remainder.
        #[test]
        fn the_law_is_the_weights(weights in prop::collection::vec(0u32..=1 << 20, 1..200)) {
            prop_assume!(weights.iter().any(|&w| w > 0));
            let table = AliasTable::new(&weights).unwrap();
            let rows = weights.len() as u64;
            let exact: Vec<u64> = weights.iter().map(|&w| u64::from(w) * rows).collect();
            prop_assert_eq!(masses(&table), exact);
            prop_assert!(table.columns.iter().all(|c| c.0 <= table.height));
        }

        /// The same for heavy tails.
        #[test]
        fn the_law_is_the_weights_of_heavy_tails(logs in prop::collection::vec(0u32..=20, 1..300)) {
            let weights: Vec<u32> = logs.iter().map(|l| (1 << l) + l).collect();
            let table = AliasTable::new(&weights).unwrap();
            let rows = weights.len() as u64;
            let exact: Vec<u64> = weights.iter().map(|&w| u64::from(w) * rows).collect();
            prop_assert_eq!(masses(&table), exact);
        }
    }

    #[test]
    fn impossible_weights_are_none() {
        assert!(AliasTable::new(&[]).is_none());
        assert!(AliasTable::new(&[0, 0]).is_none());
    }

    /// 10^6 draws of heavy and of tiny weights: each count within 6 standard errors (false
    /// alarm 1e-8); a height too high by one moves those of tiny weights by hundreds.
    #[test]
    fn draws_follow_the_table() {
        let n = 1_000_000;
        for weights in [[1u32, 1 << 20, 300_000, 7, 500_000], [1, 0, 2, 1, 0]] {
            let table = AliasTable::new(&weights).unwrap();
            let mut rng = SecretRng::from_seed(4, 0);
            let mut counts = [0u32; 5];
            for _ in 0..n {
                counts[table.draw(&mut rng) as usize] += 1;
            }
            let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
            for (&count, &weight) in counts.iter().zip(&weights) {
                let mean = f64::from(n) * f64::from(weight) / total;
                assert!(
                    (f64::from(count) - mean).abs() < 6.0 * mean.sqrt() + 6.0,
                    "{count} against {mean}"
                );
                assert!(weight > 0 || count == 0);
            }
        }
    }
}
