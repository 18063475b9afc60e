//! Rows with public bounds of their own: drawn in proportion to them, and their ratios in
//! units of them (`docs/proofs/guarantee.md`, weighted minibatches).

use super::alias::AliasTable;
use super::secret::Secret;
use super::secret_rng::SecretRng;
use crate::data::RowBounds;
use crate::engine::Grid;

/// What a minibatch draws rows by: their public bounds `w_i`.
pub(in crate::trusted::privacy) struct RowShares {
    bounds: RowBounds,
    table: AliasTable,
}

impl RowShares {
    /// `None` where there are too many rows to be drawn exactly (over 2^43).
    pub(in crate::trusted::privacy) fn new(bounds: &RowBounds) -> Option<Self> {
        Some(RowShares {
            table: AliasTable::new(bounds.units())?,
            bounds: bounds.clone(),
        })
    }

    /// A row, i with probability `w_i/Σw_i`.
    pub(super) fn draw(&self, rng: &mut SecretRng) -> u64 {
        self.table.draw(rng)
    }

    /// `clip_{w_i c}(r_i)/w_i` in grid steps. The clip is by integers: at most `⌊w_i⌊c/γ⌋⌋`.
    fn relative(&self, row: u64, q: i32, grid: Grid) -> f64 {
        let most = self.bounds.clamp(row as usize, grid.bound());
        self.bounds.divide(row as usize, q.clamp(-most, most))
    }
}

/// Quantised ratios of a minibatch, sealed, and whose they are.
pub(in crate::trusted::privacy) struct Drawn<'a> {
    /// Clipped ratios in steps of the grid.
    pub steps: &'a Secret<Vec<i32>>,
    /// Row numbers, as many.
    pub rows: &'a [u64],
    /// Bounds of single rows, where they have some.
    pub shares: Option<&'a RowShares>,
}

impl Drawn<'_> {
    /// `r_i/w_i` of every occurrence in grid steps, at most the grid's bound; `r_i` itself
    /// where rows have no bounds of their own.
    pub(super) fn ratios(&self, grid: Grid) -> impl Iterator<Item = f64> {
        let rows = self.rows;
        let shares = self.shares;
        let steps = self.steps.peek().iter().enumerate();
        steps.map(move |(k, &q)| match (shares, rows.get(k)) {
            (None, _) => f64::from(q),
            (Some(shares), Some(&row)) => shares.relative(row, q, grid),
            (Some(_), None) => 0.0,
        })
    }
}
