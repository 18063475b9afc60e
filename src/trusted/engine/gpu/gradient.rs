//! Gradient sums over all rows: the shape of a pass, its coefficients, its answers.
//!
//! A workgroup takes a block of rows. `shaders/gradient_score.wgsl` (gradients that are a score
//! times the row) and `shaders/gradient_sum.wgsl` (others) say how and why a row's part stays
//! within the bound. Rows are read from memory once, and again from cache or workgroup memory.

use super::GpuEngine;
use super::gradient_text::{GradientShape, MOST_PARTS, SLAB, SPAN, Way};
use super::network::SOFTWARE_TURNS;
use super::pipelines::{Program, most_chains};
use super::submit::{Dispatch, Job, uniform};
use crate::engine::{EngineError, GradientQuery, GradientSum};

/// Threads of a workgroup, by preference. On an H200 128 rows of 50 features kept take 34 KiB: six
/// workgroups a multiprocessor hide each other's reads.
const WORKGROUPS: [usize; 2] = [128, 64];
/// And where scores of several chains fill the registers: an H100 is a tenth faster with few.
const CROWDED: [usize; 2] = [64, 128];
/// Workgroup memory taken at most, so that several workgroups are resident.
const SHARED_BYTES: usize = 40 << 10;
/// Slots of answers: enough that atomic additions hardly meet.
const SLOTS: usize = 64;
/// Workgroups that may add to a slot: low halves stay below 2^31.
const MOST_PER_SLOT: usize = 32_767;
/// Bytes of answers of one submission, by preference.
const ANSWER_BYTES: usize = 1 << 22;

/// Uniform of a gradient pass; twin of `GradientParams` in the shaders.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct GradientParams {
    pub rows: u32,
    pub stride: u32,
    pub features: u32,
    pub dim: u32,
    pub vectors: u32,
    pub labelled: u32,
    pub slots: u32,
    pub answers: u32,
    pub shares: u32,
    pub first_group: u32,
    pub bound_high: u32,
    pub bound_low: u32,
    pub scale: f32,
    pub limit: f32,
    pub edge: f32,
}

/// Coefficients of a tile of chains from `first`, in the order that the row shaders state; chains
/// past the last are silent.
fn tile_coefficients(
    query: &GradientQuery,
    shape: GradientShape,
    first: usize,
    steps: &[f32],
    out: &mut Vec<f32>,
) {
    let (features, tile) = (query.features(), shape.tile);
    let of = |values: &[f32], i: usize| values.get(i).copied().unwrap_or(0.0);
    let chains = first..(first + tile).min(query.chains());
    let end = out.len() + 4 * shape.vectors(query.dim());
    match shape.way() {
        Way::Score => {
            for j in 0..features {
                out.extend(steps.get(j));
                out.extend(chains.clone().map(|c| of(query.weights(c), j)));
                out.extend(std::iter::repeat_n(0.0, tile - chains.len()));
            }
        }
        Way::Shared(parameters) => {
            let silent = (tile - chains.len()) * (parameters + features);
            for c in chains {
                out.extend(&query.offsets(c)[..parameters]);
                out.extend(query.weights(c));
            }
            out.extend(std::iter::repeat_n(0.0, silent));
            out.extend(steps);
        }
        Way::Forms => {
            for c in chains {
                let (offsets, weights) = (query.offsets(c), query.weights(c));
                for k in (0..query.dim()).step_by(4) {
                    out.extend((k..k + 4).map(|k| of(offsets, k)));
                    for j in 0..features {
                        out.extend((k..k + 4).map(|k| of(weights, k * features + j)));
                    }
                }
            }
            out.resize(end - 4 * steps.len().div_ceil(4), 0.0);
            out.extend(steps);
        }
    }
    out.resize(end, 0.0);
}

impl GpuEngine {
    /// Largest binding, bytes.
    pub(super) fn binding(&self) -> usize {
        self.device.binding() as usize
    }

    /// How the device sums these gradients; `None` where it cannot, and the CPU is to.
    pub(super) fn gradient_shape(&self, query: &GradientQuery) -> Option<GradientShape> {
        if !query.function().on_gpu() {
            return None;
        }
        let tile = most_chains(1, query.function().law());
        let own = self
            .limits
            .workgroup
            .map(|w| (w as usize / SLAB * SLAB).max(SLAB));
        let any = GradientShape {
            function: query.function(),
            tile: query.chains().next_power_of_two().min(tile),
            features: self.features,
            offset: self.data.offset().is_some(),
            packed: !self.steps.is_empty(),
            workgroup: WORKGROUPS[0],
            kept: 0,
            straight: 1,
        };
        let (tile, quads) = (any.tile, query.dim().div_ceil(4));
        // With a thread for each four features.
        let few = any.way() == Way::Score && tile > 2 && self.features <= SPAN * CROWDED[0];
        let preferred = [WORKGROUPS, CROWDED][usize::from(few)];
        let sizes = own.map_or(preferred.to_vec(), |w| vec![w, WORKGROUPS[1]]);
        // Every chunk may leave a part of a slot's share.
        let fits = self.chunks.len() <= MOST_PER_SLOT / 2 / MOST_PARTS
            && 16 * any.vectors(query.dim()) <= self.binding()
            && self.slots(query, any) * slot_bytes(query, tile) <= self.binding();
        // A driver in software would end the loops over all features, or over all forms made twice,
        // before their end.
        let turns = match any.way() {
            Way::Score => 0,
            Way::Shared(_) => tile * (self.features + quads * SLAB),
            Way::Forms => 2 * tile * quads * (self.features + SLAB),
        };
        if !fits || self.device.software && turns > SOFTWARE_TURNS {
            return None;
        }
        let kept = match any.way() {
            Way::Forms => vec![tile * quads, 0],
            Way::Score | Way::Shared(_) => vec![0],
        };
        let mut shapes = kept.into_iter().flat_map(|kept| {
            sizes.iter().map(move |&workgroup| GradientShape {
                workgroup,
                kept,
                straight: if tile <= 2 { 4 } else { 2 },
                ..any
            })
        });
        let most = self.device.limits.max_compute_workgroup_storage_size as usize;
        let room = |kept: usize| if kept > 0 { SHARED_BYTES } else { most };
        shapes.find(|s| s.shared() <= room(s.kept).min(most))
    }

    /// Slots that the workgroups of a tile add to.
    fn slots(&self, query: &GradientQuery, shape: GradientShape) -> usize {
        let room = ANSWER_BYTES.min(self.binding()) / slot_bytes(query, shape.tile);
        // Additions to an answer, of the workgroups that make the most of them.
        let rows = match shape.way() {
            Way::Score => 4 * self.features.div_ceil(SPAN).clamp(1, SLAB),
            Way::Shared(_) | Way::Forms => SLAB,
        };
        let chunks = self.chunks.iter();
        let additions = chunks.map(|c| c.rows.div_ceil(rows) + MOST_PARTS);
        let needed = additions.sum::<usize>().div_ceil(MOST_PER_SLOT / 2);
        room.clamp(1, SLOTS).max(needed)
    }

    /// Sums over all rows, as many chains a submission as the answers leave room for.
    pub(super) fn submit_gradients(
        &mut self,
        query: &GradientQuery,
        shape: GradientShape,
    ) -> Result<Vec<GradientSum>, EngineError> {
        let (tile, slots) = (shape.tile, self.slots(query, shape));
        let vectors = shape.vectors(query.dim());
        let room = self.binding() / (16 * vectors).max(slots * slot_bytes(query, tile));
        let wanted = ANSWER_BYTES.div_ceil(slots * slot_bytes(query, tile));
        let tiles_at_once = room.min(wanted).max(1);
        let mut sums = Vec::with_capacity(query.chains());
        let tiles: Vec<usize> = (0..query.chains()).step_by(tile).collect();
        for tiles in tiles.chunks(tiles_at_once) {
            self.submit_tiles(query, shape, slots, tiles, &mut sums)?;
        }
        Ok(sums)
    }

    /// The tiles that begin with these chains, in one submission.
    fn submit_tiles(
        &mut self,
        query: &GradientQuery,
        shape: GradientShape,
        slots: usize,
        tiles: &[usize],
        sums: &mut Vec<GradientSum>,
    ) -> Result<(), EngineError> {
        let tile = shape.tile;
        let entries = query.dim() + 1;
        let mut coefficients = Vec::new();
        for &first in tiles {
            tile_coefficients(query, shape, first, &self.steps, &mut coefficients);
        }
        let bound = query.grid().bound() as u64;
        let tile_answers = 2 * slots * tile * entries;
        // A factor under the limit, roots and quotients being what they are, is under the edge.
        let slack = if shape.way() == Way::Score {
            1.0 - 1e-6
        } else {
            1.0
        };
        let mut dispatches = Vec::new();
        // Chunk by chunk: a streamed one is uploaded once.
        for (index, chunk) in self.chunks.iter().enumerate() {
            let shares = shape.shares(chunk.rows, self.groups());
            let each = shares * shape.rows();
            // Ranges that one submission can read for so many tiles.
            let read = 4 * self.words.max(1) * tiles.len();
            let most = (self.device.piece() as usize / (each * read)).max(1);
            let groups = chunk.rows.div_ceil(each);
            for first in (0..groups).step_by(most) {
                let end = groups.min(first + most);
                dispatches.push(Dispatch {
                    program: Program::GradientSum(shape),
                    chunk: index,
                    bytes: ((end - first) * each * read) as u64,
                    tiles: tiles.len() as u32,
                    groups: (end - first) as u32,
                    params: uniform(&GradientParams {
                        rows: chunk.rows.min(end * each) as u32,
                        stride: 4 * chunk.quads() as u32,
                        features: self.features as u32,
                        dim: query.dim() as u32,
                        vectors: shape.vectors(query.dim()) as u32,
                        labelled: u32::from(self.labelled),
                        slots: slots as u32,
                        answers: tile_answers as u32,
                        shares: shares as u32,
                        first_group: first as u32,
                        bound_high: ((bound * bound) >> 20) as u32,
                        bound_low: ((bound * bound) & 0xf_ffff) as u32,
                        scale: query.scale(),
                        limit: query.limit() * slack,
                        edge: query.reach(),
                    }),
                });
            }
        }
        let answers = self.submit(&Job {
            coefficients: &coefficients,
            entries: &[],
            dispatches: &dispatches,
            answers: 4 * tiles.len() * tile_answers,
            zeroed: true,
            scratch: 0,
        })?;
        let answers: Vec<[i32; 2]> = bytemuck::pod_collect_to_vec(&answers);
        for (&first, answers) in tiles.iter().zip(answers.chunks(tile_answers / 2)) {
            let live = tile.min(query.chains() - first);
            let mut totals = vec![0i64; live * entries];
            for slot in answers.chunks(tile * entries) {
                for (total, [low, high]) in totals.iter_mut().zip(slot) {
                    *total += i64::from(*high) * 65_536 + i64::from(*low);
                }
            }
            sums.extend(totals.chunks(entries).map(|chain| {
                let (steps, clipped) = chain.split_at(query.dim());
                GradientSum {
                    steps: steps.to_vec(),
                    clipped: clipped.iter().sum::<i64>().unsigned_abs(),
                }
            }));
        }
        Ok(())
    }
}

/// Bytes of answers of one slot of a tile: halves of dim sums and a count a chain.
fn slot_bytes(query: &GradientQuery, tile: usize) -> usize {
    8 * tile * (query.dim() + 1)
}
