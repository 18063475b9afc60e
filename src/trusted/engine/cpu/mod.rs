//! The native CPU engine: tiles of 16 rows, blocks over threads, the best instruction
//! set chosen at run time.

mod dispatch;
mod gradient;
mod kernel;
mod lanes;
mod layers;
mod network;
mod network_gradient;
mod network_remainder;
mod units;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

pub(in crate::trusted) use dispatch::InstructionSet;
use kernel::Group;
use rayon::prelude::*;

use super::{
    AnchorParts, AnchorQuery, AnchorSums, Engine, EngineError, EngineInfo, GradientQuery,
    GradientSum, MomentSums, RatioQuery, RatioSum, Rows, anchor, moments,
};
use crate::data::{Dataset, TILE, Tiles};
use crate::model::{GradientFunction, Metric, MomentBasis, Slopes};

/// Rows of one unit of parallel work; any multiple of 16 gives the same bits.
const BLOCK_ROWS: usize = 4096;
/// The same for gradients of networks, at most.
const NETWORK_ROWS: usize = 1024;
/// Row·feature·chain products (of an anchor, row·parameter·parameter) under which one thread is
/// faster than several.
pub(super) const SERIAL_WORK: usize = 1 << 17;

/// Tiles that listed rows are copied into at a time.
const GATHERED: usize = 16;

/// The CPU engine over a shared data set.
pub(in crate::trusted) struct CpuEngine {
    data: Arc<Dataset>,
    set: InstructionSet,
    block_rows: usize,
    scratch: Vec<f32>,
    weights: Weights,
    /// Whether weights are held for all rows.
    holds: bool,
}

/// Weights of rows at an anchor.
enum Weights {
    /// In whole tiles; none where all are 1.
    Held(Vec<f32>),
    /// Worked out for those that are asked for.
    At {
        anchor: Vec<f64>,
        metric: Metric,
        slopes: Slopes,
        parts: AnchorParts,
    },
}

impl CpuEngine {
    pub fn new(data: Arc<Dataset>) -> Self {
        Self::with(data, InstructionSet::detect(), BLOCK_ROWS)
    }

    /// With a given instruction set and block size (rounded up to whole tiles).
    pub fn with(data: Arc<Dataset>, set: InstructionSet, block_rows: usize) -> Self {
        CpuEngine {
            scratch: vec![0.0; data.width() * TILE],
            weights: Weights::Held(Vec::new()),
            // They would take memory where rows do not.
            holds: !data.on_disk(),
            data,
            set,
            block_rows: block_rows.max(1).next_multiple_of(TILE),
        }
    }
}

impl CpuEngine {
    /// Holds the weights of rows wherever these lie.
    #[cfg(feature = "gpu")]
    pub fn holding_weights(mut self) -> Self {
        self.holds = true;
        self
    }

    /// Weights of rows at an anchor, where they are held; empty where all are 1.
    #[cfg(feature = "gpu")]
    pub fn weights(&self) -> &[f32] {
        match &self.weights {
            Weights::Held(weights) => weights,
            Weights::At { .. } => &[],
        }
    }

    /// The weights of some tiles' rows.
    fn weights_of(&self, tiles: Range<usize>) -> Cow<'_, [f32]> {
        match &self.weights {
            Weights::Held(weights) => {
                let held = weights.get(tiles.start * TILE..tiles.end * TILE);
                held.map_or_else(|| vec![1.0; tiles.len() * TILE].into(), Cow::Borrowed)
            }
            Weights::At {
                anchor,
                metric,
                slopes,
                parts,
            } => {
                let query = AnchorQuery {
                    at: anchor,
                    metric,
                    slopes: *slopes,
                    parts: *parts,
                };
                anchor::row_weights(self.set, &self.data, &query, tiles).into()
            }
        }
    }
}

impl Engine for CpuEngine {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            kind: "cpu".into(),
            adapter: self.set.name().into(),
            driver: format!("native, {} threads", rayon::current_num_threads()),
        }
    }

    fn ratio_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError> {
        let (data, set) = (&*self.data, self.set);
        query.check(data.width(), data.labelled())?;
        if let Some(units) = data.units() {
            return Ok(self.unit_ratio_sums(query, units));
        }
        let weighted = query.function().is_weighted();
        let groups = Group::split(query);
        let width = data.width() * TILE;
        let (rows, block) = (data.lines(), self.block_rows);
        let labels = data.labels();
        let shares = data.shares();
        let weights = |tiles: Range<usize>| match weighted {
            true => self.weights_of(tiles),
            false => Cow::Borrowed(&[][..]),
        };
        let block_sum = |b: usize| -> Vec<RatioSum> {
            let (start, end) = (b * block, ((b + 1) * block).min(rows));
            let (t0, t1) = (start / TILE, end.div_ceil(TILE));
            let label = labels.get(t0 * TILE..t1 * TILE).unwrap_or(&[]);
            let weight = weights(t0..t1);
            let mut sums = vec![RatioSum::default(); query.chains()];
            let tiles = data.tiles().slice(t0 * width..t1 * width);
            if query.function().sees_rows() {
                let mut room = Vec::new();
                let tiles = kernel::floats(set, tiles, &mut room);
                let rows = network::Rows {
                    labels: label,
                    weights: &weight,
                    live: end - start,
                };
                network::sum_tiles(set, query, tiles, &rows, &mut sums);
                return sums;
            }
            let beside = kernel::Beside {
                labels: label,
                weights: &weight,
                shares: shares.get(t0 * TILE..t1 * TILE).unwrap_or(&[]),
            };
            kernel::sum_tiles(set, &groups, tiles, beside, end - start, &mut sums);
            sums
        };
        let add = |mut a: Vec<RatioSum>, b: Vec<RatioSum>| {
            for (a, b) in a.iter_mut().zip(&b) {
                a.steps += b.steps;
                a.saturated += b.saturated;
            }
            a
        };
        let zero = || vec![RatioSum::default(); query.chains()];
        let blocks = rows.div_ceil(block);
        let work = match query.function().sees_rows() {
            true => query.function().weights(data.width()),
            false => data.width(),
        };
        let mut sums = if rows * work * query.chains() < SERIAL_WORK {
            (0..blocks).map(block_sum).fold(zero(), add)
        } else {
            (0..blocks)
                .into_par_iter()
                .fold(zero, |a, b| add(a, block_sum(b)))
                .reduce(zero, add)
        };
        for (c, sum) in sums.iter_mut().enumerate() {
            sum.steps *= i64::from(query.sign(c));
        }
        Ok(sums)
    }

    fn ratio_rows(
        &mut self,
        query: &RatioQuery,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError> {
        let data = &*self.data;
        query.check(data.width(), data.labelled())?;
        if let Some(units) = data.units() {
            for (c, (list, out)) in rows.iter().zip(out).enumerate() {
                let steps = self.unit_steps(query, units, c, list);
                *out = steps.into_iter().map(|(q, _)| q).collect();
            }
            return Ok(());
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        for (c, (rows, out)) in rows.iter().zip(out).enumerate() {
            let group = Group::single(query, c);
            let places = self.data.by_place(rows);
            let in_file = (places.iter().flatten()).map(|&at| rows[at]);
            let in_file: Vec<u64> = in_file.collect();
            let rows = if places.is_some() { &in_file } else { rows };
            out.clear();
            self.row_steps(query, &group, c, rows, &mut scratch, out);
            let sign = query.sign(c);
            out.iter_mut().for_each(|q| *q *= sign);
            if let Some(places) = places {
                let mut listed = vec![0; out.len()];
                places
                    .iter()
                    .zip(&*out)
                    .for_each(|(&at, q)| listed[at] = *q);
                *out = listed;
            }
        }
        self.scratch = scratch;
        Ok(())
    }

    fn gradient_sums(
        &mut self,
        query: &GradientQuery,
        rows: Rows<'_>,
    ) -> Result<Vec<GradientSum>, EngineError> {
        query.check(self.data.width(), self.data.labelled())?;
        match (rows, self.data.units()) {
            (Rows::Listed(lists), _) if lists.len() != query.chains() => {
                let (lists, chains) = (lists.len(), query.chains());
                let what = format!("{lists} lists of rows for {chains} chains");
                Err(EngineError::Query(what))
            }
            (rows, Some(units)) => self.unit_gradients(query, units, rows),
            (Rows::All, None) => Ok(self.all_gradients(query)),
            (Rows::Listed(lists), None) => Ok(self.listed_gradients(query, lists)),
        }
    }

    fn anchor_sums(&mut self, query: &AnchorQuery<'_>) -> Result<AnchorSums, EngineError> {
        anchor::sums(self.set, &self.data, query)
    }

    fn weigh_rows(&mut self, query: &AnchorQuery<'_>) -> Result<(), EngineError> {
        query.check(self.data.features().len(), self.data.labelled())?;
        let tiles = self.data.lines().div_ceil(TILE);
        self.weights = match self.holds {
            true => Weights::Held(anchor::row_weights(self.set, &self.data, query, 0..tiles)),
            false => Weights::At {
                anchor: query.at.to_vec(),
                metric: query.metric.clone(),
                slopes: query.slopes,
                parts: query.parts,
            },
        };
        Ok(())
    }

    fn moment_sums(&mut self, basis: &MomentBasis) -> Result<MomentSums, EngineError> {
        moments::sums(&self.data, basis)
    }
}

/// Zero sums of every chain.
fn no_gradients(query: &GradientQuery) -> Vec<GradientSum> {
    let zero = GradientSum {
        steps: vec![0; query.dim()],
        clipped: 0,
    };
    vec![zero; query.chains()]
}

fn add_gradients(mut a: Vec<GradientSum>, b: Vec<GradientSum>) -> Vec<GradientSum> {
    for (a, b) in a.iter_mut().zip(&b) {
        a.steps.iter_mut().zip(&b.steps).for_each(|(a, b)| *a += b);
        a.clipped += b.clipped;
    }
    a
}

impl CpuEngine {
    /// Adds the quantised ratios of listed rows at chain `c` to `out`, without the query's sign;
    /// `scratch`: room for a tile.
    fn row_steps(
        &self,
        query: &RatioQuery,
        group: &Group,
        c: usize,
        rows: &[u64],
        scratch: &mut [f32],
        out: &mut Vec<i32>,
    ) {
        let (data, set) = (&*self.data, self.set);
        for chunk in rows.chunks(TILE) {
            let (mut labels, mut weights) = ([0.0; TILE], [1.0; TILE]);
            let mut shares = [1.0; TILE];
            data.gather(chunk, scratch);
            for (i, &row) in chunk.iter().enumerate() {
                labels[i] = data.labels().get(row as usize).copied().unwrap_or(0.0);
                shares[i] = data.shares().get(row as usize).copied().unwrap_or(1.0);
                if query.function().is_weighted() {
                    let tile = row as usize / TILE;
                    weights[i] = self.weights_of(tile..tile + 1)[row as usize % TILE];
                }
            }
            let steps = match query.function().sees_rows() {
                true => network::ratio_tile(set, query, c, scratch, &labels, &weights),
                false => {
                    let beside = kernel::Beside {
                        labels: &labels,
                        weights: &weights,
                        shares: &shares[..usize::from(data.weighted()) * TILE],
                    };
                    kernel::ratio_tile(set, group, scratch, beside)
                }
            };
            out.extend(&steps[..chunk.len()]);
        }
    }

    fn all_gradients(&self, query: &GradientQuery) -> Vec<GradientSum> {
        let (data, set) = (&*self.data, self.set);
        let width = query.features() * TILE;
        let rows = data.lines();
        let (work, most) = match query.function() {
            // Smaller blocks: a row is work enough to share out.
            GradientFunction::Network(_) | GradientFunction::Layers(_) => {
                (query.dim(), NETWORK_ROWS)
            }
            _ => (query.features(), gradient::MOST_TILES * TILE),
        };
        let block = self.block_rows.min(most);
        let block_sum = |b: usize| {
            let (start, end) = (b * block, ((b + 1) * block).min(rows));
            let (t0, t1) = (start / TILE, end.div_ceil(TILE));
            let tiles = data.tiles().slice(t0 * width..t1 * width);
            let beside = kernel::Beside {
                labels: data.labels().get(t0 * TILE..t1 * TILE).unwrap_or(&[]),
                weights: &[],
                shares: data.shares().get(t0 * TILE..t1 * TILE).unwrap_or(&[]),
            };
            let mut sums = no_gradients(query);
            gradient::sum_tiles(set, query, 0, tiles, beside, end - start, &mut sums);
            sums
        };
        let zero = || no_gradients(query);
        let blocks = rows.div_ceil(block);
        if rows * work * query.chains() < SERIAL_WORK {
            (0..blocks).map(block_sum).fold(zero(), add_gradients)
        } else {
            (0..blocks)
                .into_par_iter()
                .fold(zero, |a, b| add_gradients(a, block_sum(b)))
                .reduce(zero, add_gradients)
        }
    }

    /// Rows are copied into tiles, so that a list costs what as many rows in order do.
    fn listed_gradients(&self, query: &GradientQuery, lists: &[Vec<u64>]) -> Vec<GradientSum> {
        let in_file = |list: &Vec<u64>| {
            let places = self.data.by_place(list)?;
            Some(places.iter().map(|&at| list[at]).collect())
        };
        let in_file: Option<Vec<Vec<u64>>> = lists.iter().map(in_file).collect();
        let lists = in_file.as_deref().unwrap_or(lists);
        let add_chunk = |mut sums: Vec<GradientSum>, (c, chunk): (usize, &[u64])| {
            self.add_listed(query, c, chunk, &mut sums[c]);
            sums
        };
        let zero = || no_gradients(query);
        if let GradientFunction::Layers(_) = query.function() {
            // A row is work enough to share out, evenly.
            let parts = 2 * rayon::current_num_threads();
            let chunks = lists.iter().enumerate().flat_map(|(c, list)| {
                let rows = list.len().div_ceil(parts).next_multiple_of(TILE);
                list.chunks(rows.clamp(TILE, TILE * GATHERED))
                    .map(move |chunk| (c, chunk))
            });
            let chunks: Vec<(usize, &[u64])> = chunks.collect();
            let chunks = chunks.into_par_iter().fold(zero, add_chunk);
            return chunks.reduce(zero, add_gradients);
        }
        let chunks = lists.iter().enumerate().flat_map(|(c, list)| {
            let chunks = list.chunks(TILE * GATHERED);
            chunks.map(move |chunk| (c, chunk))
        });
        chunks.fold(zero(), add_chunk)
    }

    /// Listed rows in tiles, with their labels and shares in whole tiles.
    fn gathered(&self, rows: &[u64]) -> (Vec<f32>, [Vec<f32>; 2]) {
        let width = self.data.width() * TILE;
        let mut tiles = vec![0.0; width * rows.len().div_ceil(TILE)];
        for (tile, rows) in tiles.chunks_exact_mut(width).zip(rows.chunks(TILE)) {
            self.data.gather(rows, tile);
        }
        let of = |values: &[f32]| -> Vec<f32> {
            let value = |row: &u64| values.get(*row as usize).copied();
            let mut values: Vec<f32> = rows.iter().filter_map(value).collect();
            values.resize(values.len().next_multiple_of(TILE), 0.0);
            values
        };
        (tiles, [self.data.labels(), self.data.shares()].map(of))
    }

    /// Adds the gradients of up to 16·[`GATHERED`] listed rows.
    fn add_listed(&self, query: &GradientQuery, c: usize, chunk: &[u64], sum: &mut GradientSum) {
        let (tiles, [labels, shares]) = self.gathered(chunk);
        let beside = kernel::Beside {
            labels: &labels,
            weights: &[],
            shares: &shares,
        };
        let (tiles, sums) = (Tiles::F32(&tiles), std::slice::from_mut(sum));
        gradient::sum_tiles(self.set, query, c, tiles, beside, chunk.len(), sums);
    }
}
