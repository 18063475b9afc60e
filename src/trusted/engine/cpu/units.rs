//! Sums over units, whose rows follow each other: what the rows of one come to together is clipped
//! once, so that a unit moves a sum by no more than a row does where rows are protected.

use rayon::prelude::*;

use super::kernel::{Beside, Group};
use super::{CpuEngine, add_gradients, gradient, no_gradients};
use crate::data::{TILE, Units, share_of};
use crate::engine::{EngineError, GradientQuery, GradientSum, RatioQuery, RatioSum, Rows};

/// Units of one piece of parallel work: their gradients fit the lanes' integers.
const BLOCK: usize = 1024;
const _: () = assert!(BLOCK / TILE <= gradient::MOST_TILES);

impl CpuEngine {
    /// `clip(Σ clip(r_i))` of listed units at one chain, i the rows of one, with the query's sign;
    /// and whether a row of it, or it, is at the bound.
    pub(super) fn unit_steps(
        &self,
        query: &RatioQuery,
        units: &Units,
        c: usize,
        list: &[u64],
    ) -> Vec<(i32, bool)> {
        let group = Group::single(query, c);
        let (bound, sign) = (query.grid(c).bound(), query.sign(c));
        let shares = self.data.shares();
        let block = |block: &[u64]| -> Vec<(i32, bool)> {
            let of_units = || block.iter().map(|u| units.rows(*u as usize));
            let rows: Vec<u64> = of_units().flatten().map(|row| row as u64).collect();
            let mut scratch = vec![0.0; self.data.width() * TILE];
            let mut steps = Vec::with_capacity(rows.len());
            self.row_steps(query, &group, c, &rows, &mut scratch, &mut steps);
            let mut rest = &steps[..];
            let each = of_units().map(|rows| {
                let (own, others) = rest.split_at(rows.len());
                rest = others;
                let is_clipped = own.iter().zip(rows).any(|(q, row)| {
                    let share = shares.get(row).copied().unwrap_or(1.0);
                    *q != 0 && i64::from(q.abs()) == share_of(share, i64::from(bound))
                });
                // At most 1,000 rows of 2^20.
                let sum = own.iter().sum::<i32>();
                let clipped = is_clipped || sum.abs() >= bound;
                (sign * sum.clamp(-bound, bound), clipped)
            });
            each.collect()
        };
        match list.len() {
            ..=BLOCK => block(list),
            _ => list.par_chunks(BLOCK).flat_map_iter(block).collect(),
        }
    }

    /// [`Engine::ratio_sums`](crate::engine::Engine::ratio_sums) over all units.
    pub(super) fn unit_ratio_sums(&self, query: &RatioQuery, units: &Units) -> Vec<RatioSum> {
        let every: Vec<u64> = (0..units.count() as u64).collect();
        let each = |c: usize| {
            let steps = self.unit_steps(query, units, c, &every);
            RatioSum {
                steps: steps.iter().map(|(q, _)| i64::from(*q)).sum(),
                saturated: steps.iter().filter(|(_, clipped)| *clipped).count() as u64,
            }
        };
        (0..query.chains()).map(each).collect()
    }

    /// [`Engine::gradient_sums`](crate::engine::Engine::gradient_sums) over units.
    pub(super) fn unit_gradients(
        &self,
        query: &GradientQuery,
        units: &Units,
        which: Rows<'_>,
    ) -> Result<Vec<GradientSum>, EngineError> {
        if query.function().sees_rows() {
            return Err(EngineError::Query(
                "a network's rows are not added up unit by unit".into(),
            ));
        }
        let every: Vec<u64>;
        let lists: Vec<&[u64]> = match which {
            Rows::All => {
                every = (0..units.count() as u64).collect();
                vec![&every; query.chains()]
            }
            Rows::Listed(lists) => lists.iter().map(Vec::as_slice).collect(),
        };
        let blocks = lists.iter().enumerate();
        let blocks = blocks.flat_map(|(c, list)| list.chunks(BLOCK).map(move |some| (c, some)));
        let blocks: Vec<(usize, &[u64])> = blocks.collect();
        let zero = || no_gradients(query);
        Ok(blocks
            .into_par_iter()
            .fold(zero, |mut sums, (c, some)| {
                self.add_units(query, units, some, c, &mut sums[c]);
                sums
            })
            .reduce(zero, add_gradients))
    }

    /// Adds the clipped gradients of up to [`BLOCK`] units at chain `c`.
    fn add_units(
        &self,
        query: &GradientQuery,
        units: &Units,
        some: &[u64],
        c: usize,
        sum: &mut GradientSum,
    ) {
        let mut gradients = gradient::UnitGradients::new(self.set, query, c);
        for strip in some.chunks(gradient::UNITS) {
            let rows = strip.iter().enumerate();
            let rows = rows.flat_map(|(at, u)| units.rows(*u as usize).map(move |row| (row, at)));
            let rows: Vec<(usize, usize)> = rows.collect();
            for rows in rows.chunks(gradient::UNITS) {
                let list: Vec<u64> = rows.iter().map(|(row, _)| *row as u64).collect();
                let own: Vec<usize> = rows.iter().map(|(_, at)| *at).collect();
                let (tiles, [labels, shares]) = self.gathered(&list);
                let beside = Beside {
                    labels: &labels,
                    weights: &[],
                    shares: &shares,
                };
                gradients.add_rows(&tiles, beside, &own);
            }
            gradients.end_strip(strip.len());
        }
        gradients.finish(sum);
    }
}
