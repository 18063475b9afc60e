//! Which rows of a table are here, where several ranks have some each.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{Dataset, RowBounds, TILE, Unit};
use crate::engine::Link;

/// Rows that are dealt together where a file's are: whole tiles of all engines.
const BLOCK: u64 = 256 * TILE as u64;

/// One of several ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which, from 0.
    pub rank: usize,
    /// Of how many.
    pub size: usize,
    /// How many of them share this one's memory, itself included.
    pub beside: usize,
}

/// The rows that a rank holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Files or blocks of rows, as they follow each other here: a key by which those of all ranks
    /// are in the table's order, and their rows.
    pub(super) parts: Vec<(u64, u64)>,
    /// What every rank must have seen alike, or rows would be on two of them or on none: paths and
    /// bytes of all files and, where parts of files are dealt, how many rows and units there are.
    pub(super) seen: Vec<u64>,
    /// The public bounds of its rows, where such are declared.
    pub(super) bounds: Vec<u32>,
}

impl Share {
    /// Whether a row of a table whose rows are dealt, or a unit, is here.
    #[inline]
    pub(super) fn has(self, row: u64, unit: Option<&Unit>) -> bool {
        (row / block(unit)) % self.size as u64 == self.rank as u64
    }

    /// What is here of so many rows or units.
    pub(super) fn of(self, rows: u64, unit: Option<&Unit>) -> Held {
        let block = block(unit);
        let blocks = (0..rows.div_ceil(block)).filter(|k| self.has(k * block, unit));
        let parts = blocks.map(|k| (k, block.min(rows - k * block)));
        Held {
            parts: parts.collect(),
            seen: vec![rows],
            bounds: Vec::new(),
        }
    }

    /// Which of the next rows, of these owners, are here: those that count of units that are.
    /// `units`: those that came before, in the order of the table, and how often.
    pub(super) fn kept(
        self,
        unit: &Unit,
        owners: &[u64],
        units: &mut HashMap<u64, (u64, u32)>,
    ) -> Vec<usize> {
        let mut is_kept = |owner: &u64| {
            let next = units.len() as u64;
            let (number, rows) = units.entry(*owner).or_insert((next, 0));
            *rows = rows.saturating_add(1);
            *rows <= unit.rows && self.has(*number, Some(unit))
        };
        (0..owners.len()).filter(|i| is_kept(&owners[*i])).collect()
    }

    /// Which files, or parts of them, of these sizes are here: about as much everywhere, in order.
    pub(super) fn files(self, bytes: &[u64]) -> Vec<bool> {
        let all = bytes.iter().map(|b| u128::from(*b) + 1).sum::<u128>();
        let mut before = 0;
        let own = |b: &u64| {
            let middle = before + u128::from(*b).div_ceil(2);
            before += u128::from(*b) + 1;
            middle * self.size as u128 / all == self.rank as u128
        };
        bytes.iter().map(own).collect()
    }
}

/// How many rows, or units, are dealt together: units of as many rows as are.
#[inline]
fn block(unit: Option<&Unit>) -> u64 {
    BLOCK / unit.map_or(1, |unit| u64::from(unit.rows).clamp(1, BLOCK))
}

/// Which rank has which rows, and what carries messages to them.
pub struct Ranks {
    link: Arc<dyn Link>,
    parts: Vec<RankPart>,
    rows: u64,
    /// Of all rows, in order.
    pub(super) bounds: Option<RowBounds>,
    /// Whether others wait for questions.
    pub(in crate::trusted) open: AtomicBool,
}

/// Rows that follow each other in the table and on their rank.
struct RankPart {
    first: u64,
    rank: usize,
    own: u64,
}

impl Ranks {
    /// `held`: what each rank has, in order of the ranks.
    ///
    /// # Errors
    /// A rank that has seen another table than rank 0.
    pub fn new(link: Arc<dyn Link>, held: &[Held]) -> Result<Self, usize> {
        if let Some(other) = held.iter().position(|h| h.seen != held[0].seen) {
            return Err(other);
        }
        let mut all: Vec<(u64, usize, u64, u64)> = Vec::new();
        let mut bounds = RowBounds::default();
        let bounded = held.iter().any(|h| !h.bounds.is_empty());
        for (rank, held) in held.iter().enumerate() {
            let mut own = 0;
            for (key, count) in &held.parts {
                all.push((*key, rank, own, *count));
                own += count;
            }
            if bounded && held.bounds.len() as u64 != own {
                return Err(rank);
            }
        }
        all.sort_unstable();
        let (mut parts, mut rows) = (Vec::with_capacity(all.len()), 0);
        for (_, rank, own, count) in all.into_iter().filter(|part| part.3 > 0) {
            if bounded {
                bounds.append(&held[rank].bounds[own as usize..(own + count) as usize]);
            }
            parts.push(RankPart {
                first: rows,
                rank,
                own,
            });
            rows += count;
        }
        let open = AtomicBool::new(true);
        Ok(Ranks {
            link,
            parts,
            rows,
            bounds: bounded.then_some(bounds),
            open,
        })
    }

    /// N.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub(in crate::trusted) fn link(&self) -> &dyn Link {
        &*self.link
    }

    /// Whose a row is, and which one it is there.
    pub(in crate::trusted) fn find(&self, row: u64) -> (usize, u64) {
        let at = self.parts.partition_point(|part| part.first <= row);
        let part = &self.parts[at.saturating_sub(1)];
        (part.rank, part.own + row - part.first)
    }
}

impl Dataset {
    /// The whole table, of which these rows are rank 0's.
    #[must_use]
    pub fn of_ranks(mut self, ranks: Ranks) -> Self {
        self.ranks = Some(Arc::new(ranks));
        self
    }

    /// Where its other rows are, if they are not all here.
    pub fn ranks(&self) -> Option<&Arc<Ranks>> {
        self.ranks.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Alone;

    fn share(rank: usize, size: usize) -> Share {
        Share {
            rank,
            size,
            beside: 1,
        }
    }

    impl Link for Alone {
        fn rank(&self) -> usize {
            0
        }

        fn size(&self) -> usize {
            1
        }

        fn beside(&self) -> usize {
            1
        }

        fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>, crate::engine::LinkError> {
            Ok(message)
        }

        fn gather(&self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, crate::engine::LinkError> {
            Ok(vec![message])
        }
    }

    #[test]
    fn every_row_is_found_where_it_is() {
        for size in [1, 2, 3, 8] {
            for rows in [0, 1, BLOCK - 1, BLOCK, 5 * BLOCK + 7] {
                let shares: Vec<Share> = (0..size).map(|rank| share(rank, size)).collect();
                let of = |share: &Share| share.of(rows, None);
                let mut held: Vec<Held> = shares.iter().map(of).collect();
                let ranks = Ranks::new(Arc::new(Alone), &held).ok().unwrap();
                assert_eq!(ranks.rows(), rows);
                let mut own = vec![0; size];
                for row in 0..rows {
                    let (rank, at) = ranks.find(row);
                    assert!(shares[rank].has(row, None));
                    assert_eq!(at, own[rank]);
                    own[rank] += 1;
                }
                // A rank that counts otherwise has another table.
                held[size - 1].seen[0] += 1;
                let found = Ranks::new(Arc::new(Alone), &held).err();
                assert_eq!(found, (size > 1).then_some(size - 1));
            }
        }
    }

    #[test]
    fn bounds_of_all_rows_are_in_the_order_of_the_table() {
        let rows = 5 * BLOCK + 7;
        let mut held = [0, 1, 2].map(|rank| share(rank, 3).of(rows, None));
        for (rank, held) in held.iter_mut().enumerate() {
            let own = (0..rows).filter(|row| share(rank, 3).has(*row, None));
            held.bounds = own.map(|row| 1 + row as u32).collect();
        }
        let ranks = Ranks::new(Arc::new(Alone), &held).ok().unwrap();
        let bounds = ranks.bounds.unwrap();
        assert!((1..=rows as u32).eq(bounds.units().iter().copied()));
        let (total, largest) = (rows * (rows + 1) / 2, rows);
        let share = bounds.population().share();
        assert!((share - largest as f64 / total as f64).abs() < 1e-15);
        // A rank that has not all bounds of its rows, or none, has another table.
        held[1].bounds.pop();
        assert_eq!(Ranks::new(Arc::new(Alone), &held).err(), Some(1));
        held[1].bounds.clear();
        assert_eq!(Ranks::new(Arc::new(Alone), &held).err(), Some(1));
    }

    /// Whatever batches the rows come in, ranks have the rows of their units that count, and no
    /// others, and know how many units there are.
    #[test]
    fn every_unit_is_whole_on_one_rank() {
        let unit = |rows| Unit {
            column: "patient".into(),
            rows,
        };
        let owners: Vec<u64> = (0..20_000).map(|row: u64| row * row % 6_007).collect();
        for most in [1, 3, 1_000] {
            let unit = unit(most);
            let (units, order) = crate::data::Units::group(&owners, unit.clone());
            assert!(block(Some(&unit)) * u64::from(most) <= BLOCK);
            for size in [1, 2, 3, 8] {
                let mut kept = vec![0; owners.len()];
                let mut counts = vec![0; size];
                for (rank, count) in counts.iter_mut().enumerate() {
                    let (mut found, share) = (HashMap::new(), share(rank, size));
                    let mut own = Vec::new();
                    for (k, batch) in owners.chunks(1_717).enumerate() {
                        let here = share.kept(&unit, batch, &mut found);
                        own.extend(here.iter().map(|i| k * 1_717 + i));
                    }
                    assert!(own.is_sorted());
                    own.iter().for_each(|row| kept[*row] += 1);
                    *count = own.len();
                    assert_eq!(found.len(), units.count());
                    // They are as many units as this rank says that it holds.
                    let of: Vec<u64> = own.iter().map(|row| owners[*row]).collect();
                    let (of, _) = crate::data::Units::group(&of, unit.clone());
                    let held = share.of(units.count() as u64, Some(&unit));
                    let all: u64 = held.parts.iter().map(|part| part.1).sum();
                    assert_eq!(of.count() as u64, all);
                }
                let counted: usize = kept.iter().sum();
                assert_eq!(counted, order.len());
                assert!(order.iter().all(|row| kept[*row] == 1));
                assert!(most < 1_000 || counts.iter().all(|n| n * size > order.len() / 2));
            }
        }
    }

    #[test]
    fn every_file_is_dealt_once_and_in_order() {
        for bytes in [vec![], vec![0; 5], vec![9, 1, 1, 1, 1, 1, 1], vec![1; 100]] {
            for size in [1, 2, 3, 8] {
                let dealt: Vec<Vec<bool>> = (0..size)
                    .map(|rank| share(rank, size).files(&bytes))
                    .collect();
                let owner = |file: usize| {
                    let owners: Vec<usize> = (0..size).filter(|r| dealt[*r][file]).collect();
                    assert_eq!(owners.len(), 1, "{bytes:?} {size}");
                    owners[0]
                };
                let owners: Vec<usize> = (0..bytes.len()).map(owner).collect();
                assert!(owners.is_sorted(), "{owners:?}");
            }
        }
    }
}
