//! Ratio queries: coefficients up, sums or listed rows back.

use super::buffers::Params;
use super::pipelines::{Program, most_chains};
use super::ratio_text::RatioShape;
use super::submit::{Dispatch, Job, MAX_GROUPS, uniform};
use super::{GpuEngine, ROWS_PER_THREAD};
use crate::engine::{EngineError, RatioQuery, RatioSum};

/// Slots of answers: enough that atomic additions hardly meet.
const SLOTS: usize = 64;
/// Threads whose sums, of 2^30 at most, a slot takes: each adds 2^14 to its high half, and what
/// their low halves carry.
const THREADS_A_SLOT: usize = 128_000;
const _: () = assert!(THREADS_A_SLOT * ((1 << 14) + 1) < 1 << 31);
/// Bytes of a chain's answer in a slot: halves of the sum, and how many rows are at the bound.
const ANSWER_BYTES: usize = 12;

/// Uniform of the pass over all rows; twin of `SumParams` in `shaders/ratio_sum.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct SumParams {
    pub rows: u32,
    pub quads: u32,
    pub first_quad: u32,
    pub end_quad: u32,
    pub quads_per_thread: u32,
    pub slots: u32,
    pub tiles: u32,
    pub labelled: u32,
}

/// Rows of one chunk that a dispatch reads, in quads.
struct Range {
    chunk: usize,
    quads: std::ops::Range<usize>,
    /// Workgroups of one tile.
    groups: usize,
    quads_per_thread: usize,
}

/// Scales, bounds, offsets and constants of a tile of `tile` chains from `first`, and its weights,
/// padded with silent chains; before each feature's weights comes its column's step, if it has one.
fn tile_coefficients(
    query: &RatioQuery,
    first: usize,
    tile: usize,
    steps: &[f32],
) -> (Vec<f32>, Vec<f32>) {
    let chains = |value: &dyn Fn(usize) -> f32, silent: f32| -> Vec<f32> {
        (first..first + tile)
            .map(|c| if c < query.chains() { value(c) } else { silent })
            .collect()
    };
    let mut head = chains(&|c| query.scale(c), 0.0);
    head.extend(chains(&|c| query.grid(c).bound() as f32, 1.0));
    for f in 0..query.function().offsets() {
        head.extend(chains(&|c| query.offset(c, f), 0.0));
    }
    let mut weights = Vec::new();
    for j in 0..query.features() {
        weights.extend(steps.get(j));
        for f in 0..query.function().forms() {
            weights.extend(chains(&|c| query.weight(c, f, j), 0.0));
        }
    }
    (head, weights)
}

impl GpuEngine {
    /// Sums over all rows, as many tiles and ranges of rows at once as answers and parameters leave
    /// room for.
    pub(super) fn submit_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError> {
        if query.function().is_weighted() {
            self.ensure_weights()?;
        }
        let most = most_chains(query.function().forms(), query.function().law());
        let mut shape = RatioShape {
            function: query.function(),
            tile: query.chains().next_power_of_two().min(most),
            features: self.features,
            packed: !self.steps.is_empty(),
            uniform: false,
        };
        let tile = shape.tile;
        shape.uniform = self.is_uniform(query.chains().div_ceil(tile) * shape.vectors());
        let all: usize = self.chunks.iter().map(|c| self.shape(c.quads()).0).sum();
        // Half of the workgroups that a slot takes are left for the last ones of ranges.
        let most = THREADS_A_SLOT / self.workgroup as usize;
        let needed = all.div_ceil(most / 2);
        let room = self.binding() / (ANSWER_BYTES * tile);
        let slots = all.clamp(1, SLOTS).min(room).max(needed);
        let parameters = self.binding() / (16 * shape.vectors());
        let tiles_at_once = parameters.min(room / slots).clamp(1, MAX_GROUPS as usize);
        let starts: Vec<usize> = (0..query.chains()).step_by(tile).collect();
        let mut sums = vec![RatioSum::default(); query.chains()];
        for starts in starts.chunks(tiles_at_once) {
            let ranges = self.ranges(starts.len());
            // Each range may leave a part of a slot's share, and is a workgroup more.
            for ranges in ranges.chunks(most / 4) {
                self.add_sums(query, shape, starts, (ranges, slots), &mut sums)?;
            }
        }
        for (c, sum) in sums.iter_mut().enumerate() {
            sum.steps *= i64::from(query.sign(c));
        }
        Ok(sums)
    }

    /// Workgroups that so many quads take, and quads of each thread.
    fn shape(&self, quads: usize) -> (usize, usize) {
        let group = self.workgroup as usize;
        let per_thread = quads
            .div_ceil(self.groups() * group)
            .clamp(1, ROWS_PER_THREAD / 4);
        (quads.div_ceil(per_thread * group), per_thread)
    }

    /// All rows, in ranges of which one submission can read one for so many tiles.
    fn ranges(&self, tiles: usize) -> Vec<Range> {
        let bytes_a_quad = 16 * self.words.max(1) * tiles;
        let most = (self.device.piece() as usize / bytes_a_quad).max(1);
        let mut ranges = Vec::new();
        for (chunk, rows) in self.chunks.iter().enumerate() {
            let (_, quads_per_thread) = self.shape(rows.quads());
            // Whole workgroups, but for the last.
            let group = self.workgroup as usize * quads_per_thread;
            let most = most.next_multiple_of(group);
            for first in (0..rows.quads()).step_by(most) {
                let quads = first..rows.quads().min(first + most);
                ranges.push(Range {
                    chunk,
                    groups: quads.len().div_ceil(group),
                    quads,
                    quads_per_thread,
                });
            }
        }
        ranges
    }

    /// Adds the sums over some ranges of the tiles that begin with these chains, without signs.
    fn add_sums(
        &mut self,
        query: &RatioQuery,
        shape: RatioShape,
        starts: &[usize],
        (ranges, slots): (&[Range], usize),
        sums: &mut [RatioSum],
    ) -> Result<(), EngineError> {
        let (tile, tiles) = (shape.tile, starts.len());
        let mut coefficients = Vec::new();
        for &start in starts {
            let (head, weights) = tile_coefficients(query, start, tile, &self.steps);
            coefficients.extend(shape.place(head, weights));
        }
        let mut dispatches = Vec::new();
        for range in ranges {
            let chunk = &self.chunks[range.chunk];
            dispatches.push(Dispatch {
                program: Program::RatioSum(shape),
                chunk: range.chunk,
                bytes: (16 * range.quads.len() * self.words * tiles) as u64,
                tiles: tiles as u32,
                groups: range.groups as u32,
                params: uniform(&SumParams {
                    rows: chunk.rows as u32,
                    quads: chunk.quads() as u32,
                    first_quad: range.quads.start as u32,
                    end_quad: range.quads.end as u32,
                    quads_per_thread: range.quads_per_thread as u32,
                    slots: slots as u32,
                    tiles: tiles as u32,
                    labelled: u32::from(self.labelled || query.function().is_weighted()),
                }),
            });
        }
        let answers = self.submit(&Job {
            coefficients: &coefficients,
            entries: &[],
            dispatches: &dispatches,
            answers: ANSWER_BYTES * slots * tiles * tile,
            zeroed: true,
            scratch: 0,
        })?;
        let answers: Vec<[i32; 3]> = bytemuck::pod_collect_to_vec(&answers);
        // A slot begins with the first tile's.
        for (&start, slot) in starts.iter().cycle().zip(answers.chunks(tile)) {
            for (sum, [low, high, saturated]) in sums[start..].iter_mut().zip(slot) {
                sum.steps += i64::from(*high) * 65_536 + i64::from(*low);
                sum.saturated += *saturated as u64;
            }
        }
        Ok(())
    }

    /// Rows of a list, as many at once as a binding takes.
    pub(super) fn submit_rows(
        &mut self,
        query: &RatioQuery,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError> {
        if query.function().is_weighted() {
            self.ensure_weights()?;
        }
        out.iter_mut().for_each(Vec::clear);
        let lists = rows.iter().enumerate();
        let wanted: Vec<(usize, u64)> = lists
            .flat_map(|(c, rows)| rows.iter().map(move |row| (c, *row)))
            .collect();
        for wanted in wanted.chunks((self.binding() / 16).max(1)) {
            for (answer, (c, _)) in self.rows_at_once(query, wanted)?.iter().zip(wanted) {
                out[*c].push(answer * query.sign(*c));
            }
        }
        Ok(())
    }

    /// Pairs of chain and row, without signs.
    fn rows_at_once(
        &mut self,
        query: &RatioQuery,
        wanted: &[(usize, u64)],
    ) -> Result<Vec<i32>, EngineError> {
        let mut coefficients = Vec::new();
        for c in 0..query.chains() {
            let (head, weights) = tile_coefficients(query, c, 1, &[]);
            coefficients.extend(head.into_iter().chain(weights));
        }
        let first_step = coefficients.len();
        coefficients.extend(&self.steps);
        // Entries sorted by chunk; each remembers the place of its answer.
        let mut by_chunk: Vec<Vec<[u32; 4]>> = vec![Vec::new(); self.chunks.len()];
        for (place, &(c, row)) in wanted.iter().enumerate() {
            let chunk = self.chunks.partition_point(|k| k.first <= row as usize) - 1;
            let local = row as usize - self.chunks[chunk].first;
            by_chunk[chunk].push([local as u32, c as u32, place as u32, 0]);
        }
        let program = Program::RatioRows(query.function(), !self.steps.is_empty());
        let mut dispatches = Vec::new();
        let mut first = 0u32;
        for (index, entries) in by_chunk.iter().enumerate().filter(|(_, e)| !e.is_empty()) {
            let chunk = &self.chunks[index];
            dispatches.push(Dispatch {
                program,
                chunk: index,
                bytes: chunk.bytes(self.words),
                tiles: 1,
                groups: (entries.len() as u32).div_ceil(self.workgroup),
                params: uniform(&Params {
                    rows: chunk.rows as u32,
                    quads: chunk.quads() as u32,
                    features: self.features as u32,
                    first_slot: first,
                    labelled: u32::from(self.labelled || query.function().is_weighted()),
                    entries: entries.len() as u32,
                    coefficients: first_step as u32,
                    ..Params::default()
                }),
            });
            first += entries.len() as u32;
        }
        let entries: Vec<[u32; 4]> = by_chunk.concat();
        let answers = self.submit(&Job {
            coefficients: &coefficients,
            entries: bytemuck::cast_slice(&entries),
            dispatches: &dispatches,
            answers: 4 * wanted.len(),
            zeroed: false,
            scratch: 0,
        })?;
        Ok(bytemuck::pod_collect_to_vec(&answers))
    }
}
