//! Which rows of a table are here, where several ranks have some each.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{Dataset, TILE};
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
    /// bytes of all files and, where rows are dealt, how many there are.
    pub(super) seen: Vec<u64>,
}

impl Share {
    /// Whether a row of a table whose rows are dealt is here.
    #[inline]
    pub(super) fn has(self, row: u64) -> bool {
        (row / BLOCK) % self.size as u64 == self.rank as u64
    }

    /// What is here of so many rows.
    pub(super) fn of(self, rows: u64) -> Held {
        let blocks = (0..rows.div_ceil(BLOCK)).filter(|k| self.has(k * BLOCK));
        let parts = blocks.map(|k| (k, BLOCK.min(rows - k * BLOCK)));
        Held {
            parts: parts.collect(),
            seen: vec![rows],
        }
    }

    /// Which files of these sizes are here: about as many bytes everywhere, in order.
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

/// Which rank has which rows, and what carries messages to them.
pub struct Ranks {
    link: Arc<dyn Link>,
    parts: Vec<RankPart>,
    rows: u64,
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
        for (rank, held) in held.iter().enumerate() {
            let mut own = 0;
            for (key, count) in &held.parts {
                all.push((*key, rank, own, *count));
                own += count;
            }
        }
        all.sort_unstable();
        let (mut parts, mut rows) = (Vec::with_capacity(all.len()), 0);
        for (_, rank, own, count) in all.into_iter().filter(|part| part.3 > 0) {
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
                let mut held: Vec<Held> = shares.iter().map(|share| share.of(rows)).collect();
                let ranks = Ranks::new(Arc::new(Alone), &held).ok().unwrap();
                assert_eq!(ranks.rows(), rows);
                let mut own = vec![0; size];
                for row in 0..rows {
                    let (rank, at) = ranks.find(row);
                    assert!(shares[rank].has(row));
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
