//! Ratio queries: coefficients up, sums or listed rows back.

use super::GpuEngine;
use super::buffers::{Params, upload_weights};
use super::pipelines::{MAX_TILE, Program};
use super::submit::{Dispatch, Job, uniform};
use crate::engine::{EngineError, RatioQuery, RatioSum};

/// Coefficients of a tile of `tile` chains from `first`, padded with silent chains:
/// scales, bounds, offsets, constants, weights.
fn tile_coefficients(query: &RatioQuery, first: usize, tile: usize, out: &mut Vec<f32>) {
    let k = query.function().forms();
    let live = |c: usize| first + c < query.chains();
    out.extend((0..tile).map(|c| if live(c) { query.scale(first + c) } else { 0.0 }));
    out.extend((0..tile).map(|c| {
        if live(c) {
            query.grid(first + c).bound() as f32
        } else {
            1.0
        }
    }));
    for f in 0..query.function().offsets() {
        out.extend((0..tile).map(|c| {
            if live(c) {
                query.offset(first + c, f)
            } else {
                0.0
            }
        }));
    }
    for j in 0..query.features() {
        for f in 0..k {
            out.extend((0..tile).map(|c| {
                if live(c) {
                    query.weight(first + c, f, j)
                } else {
                    0.0
                }
            }));
        }
    }
}

impl GpuEngine {
    /// Weights of 1 where a query needs some and none were set.
    fn ensure_weights(&mut self, query: &RatioQuery) -> Result<(), EngineError> {
        if query.function().is_weighted() && self.chunks.iter().any(|c| c.weights.is_none()) {
            upload_weights(&self.device, &mut self.chunks, |_| 1.0)?;
            self.cache.forget_groups();
        }
        Ok(())
    }

    pub(super) fn submit_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError> {
        self.ensure_weights(query)?;
        let tile = query.chains().next_power_of_two().min(MAX_TILE);
        let tiles = query.chains().div_ceil(tile);
        let mut coefficients = Vec::new();
        let mut dispatches = Vec::new();
        let mut slots = 0u32;
        for t in 0..tiles {
            let start = coefficients.len() as u32;
            tile_coefficients(query, t * tile, tile, &mut coefficients);
            for (index, chunk) in self.chunks.iter().enumerate() {
                let (groups, quads_per_thread) = self.shape(chunk);
                dispatches.push(Dispatch {
                    chunk: index,
                    groups,
                    params: uniform(&Params {
                        rows: chunk.rows as u32,
                        quads: chunk.quads() as u32,
                        features: self.features as u32,
                        quads_per_thread,
                        first_slot: slots,
                        coefficients: start,
                        labelled: u32::from(self.labelled || query.function().is_weighted()),
                        entries: 0,
                    }),
                });
                slots += groups;
            }
        }
        let bytes = slots as usize * tile * 16;
        let answers = self.submit(&Job {
            program: Program::RatioSum(query.function(), tile),
            coefficients: &coefficients,
            entries: &[],
            dispatches: &dispatches,
            answers: bytes,
            zeroed: false,
        })?;
        let answers: &[[i32; 4]] = bytemuck::cast_slice(&answers);
        let per_tile = slots as usize / tiles;
        Ok((0..query.chains())
            .map(|c| {
                let mut sum = RatioSum::default();
                for slot in (c / tile) * per_tile..(c / tile + 1) * per_tile {
                    let [low, high, saturated, _] = answers[slot * tile + c % tile];
                    sum.steps += i64::from(high) * 65_536 + i64::from(low);
                    sum.saturated += saturated as u64;
                }
                sum.steps *= i64::from(query.sign(c));
                sum
            })
            .collect())
    }

    pub(super) fn submit_rows(
        &mut self,
        query: &RatioQuery,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError> {
        self.ensure_weights(query)?;
        let mut coefficients = Vec::new();
        for c in 0..query.chains() {
            tile_coefficients(query, c, 1, &mut coefficients);
        }
        // Entries sorted by chunk; each remembers the place of its answer.
        let mut by_chunk: Vec<Vec<[u32; 4]>> = vec![Vec::new(); self.chunks.len()];
        let mut place = 0u32;
        for (c, rows) in rows.iter().enumerate() {
            for &row in rows {
                let chunk = self.chunks.partition_point(|k| k.first <= row as usize) - 1;
                let local = row as usize - self.chunks[chunk].first;
                by_chunk[chunk].push([local as u32, c as u32, place, 0]);
                place += 1;
            }
        }
        let mut dispatches = Vec::new();
        let mut first = 0u32;
        for (index, entries) in by_chunk.iter().enumerate().filter(|(_, e)| !e.is_empty()) {
            let chunk = &self.chunks[index];
            dispatches.push(Dispatch {
                chunk: index,
                groups: (entries.len() as u32).div_ceil(self.workgroup),
                params: uniform(&Params {
                    rows: chunk.rows as u32,
                    quads: chunk.quads() as u32,
                    features: self.features as u32,
                    first_slot: first,
                    labelled: u32::from(self.labelled || query.function().is_weighted()),
                    entries: entries.len() as u32,
                    ..Params::default()
                }),
            });
            first += entries.len() as u32;
        }
        let entries: Vec<[u32; 4]> = by_chunk.concat();
        if entries.is_empty() {
            out.iter_mut().for_each(Vec::clear);
            return Ok(());
        }
        let bytes = 4 * place as usize;
        let answers = self.submit(&Job {
            program: Program::RatioRows(query.function()),
            coefficients: &coefficients,
            entries: bytemuck::cast_slice(&entries),
            dispatches: &dispatches,
            answers: bytes,
            zeroed: false,
        })?;
        let mut answers = bytemuck::cast_slice::<u8, i32>(&answers).iter();
        for (c, (rows, out)) in rows.iter().zip(out).enumerate() {
            out.clear();
            out.extend(answers.by_ref().take(rows.len()).map(|q| q * query.sign(c)));
        }
        Ok(())
    }
}
