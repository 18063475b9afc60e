//! Ratio queries: coefficients up, sums or listed rows back.

use std::ops::Range;

use super::GpuEngine;
use super::buffers::Params;
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
    /// Sums over all rows, as many tiles and chunks at once as answers and parameters leave room
    /// for.
    pub(super) fn submit_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError> {
        if query.function().is_weighted() {
            self.ensure_weights()?;
        }
        let tile = query.chains().next_power_of_two().min(MAX_TILE);
        let groups: Vec<usize> = self
            .chunks
            .iter()
            .map(|c| self.shape(c).0 as usize)
            .collect();
        let all: usize = groups.iter().sum();
        let mut one = Vec::new();
        tile_coefficients(query, 0, tile, &mut one);
        let (parameters, room) = (4 * one.len(), self.binding() / (16 * tile));
        let tiles_at_once = (self.binding() / parameters.max(1)).min(room / all.max(1));
        let starts: Vec<usize> = (0..query.chains()).step_by(tile).collect();
        let mut sums = vec![RatioSum::default(); query.chains()];
        for starts in starts.chunks(tiles_at_once.max(1)) {
            let mut first = 0;
            while first < groups.len() {
                let mut slots = 0;
                let fit = groups[first..].iter().take_while(|g| {
                    slots += starts.len() * **g;
                    slots <= room
                });
                let end = first + fit.count().max(1);
                self.add_sums(query, tile, starts, first..end, &mut sums)?;
                first = end;
            }
        }
        for (c, sum) in sums.iter_mut().enumerate() {
            sum.steps *= i64::from(query.sign(c));
        }
        Ok(sums)
    }

    /// Adds the sums over some chunks of the tiles that begin with these chains, without signs.
    fn add_sums(
        &mut self,
        query: &RatioQuery,
        tile: usize,
        starts: &[usize],
        chunks: Range<usize>,
        sums: &mut [RatioSum],
    ) -> Result<(), EngineError> {
        let mut coefficients = Vec::new();
        let places: Vec<u32> = starts
            .iter()
            .map(|&start| {
                let place = coefficients.len() as u32;
                tile_coefficients(query, start, tile, &mut coefficients);
                place
            })
            .collect();
        let mut dispatches = Vec::new();
        // The first chain of the tile that a slot belongs to.
        let mut owners = Vec::new();
        // Chunk by chunk: a streamed one is uploaded once.
        for index in chunks {
            let chunk = &self.chunks[index];
            let (groups, quads_per_thread) = self.shape(chunk);
            for (&start, &place) in starts.iter().zip(&places) {
                dispatches.push(Dispatch {
                    chunk: index,
                    groups,
                    params: uniform(&Params {
                        rows: chunk.rows as u32,
                        quads: chunk.quads() as u32,
                        features: self.features as u32,
                        quads_per_thread,
                        first_slot: owners.len() as u32,
                        coefficients: place,
                        labelled: u32::from(self.labelled || query.function().is_weighted()),
                        entries: 0,
                    }),
                });
                owners.extend(std::iter::repeat_n(start, groups as usize));
            }
        }
        let answers = self.submit(&Job {
            program: Program::RatioSum(query.function(), tile),
            coefficients: &coefficients,
            entries: &[],
            dispatches: &dispatches,
            answers: 16 * owners.len() * tile,
            zeroed: false,
        })?;
        let answers: &[[i32; 4]] = bytemuck::cast_slice(&answers);
        for (&start, slot) in owners.iter().zip(answers.chunks(tile)) {
            for (sum, [low, high, saturated, _]) in sums[start..].iter_mut().zip(slot) {
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
            tile_coefficients(query, c, 1, &mut coefficients);
        }
        // Entries sorted by chunk; each remembers the place of its answer.
        let mut by_chunk: Vec<Vec<[u32; 4]>> = vec![Vec::new(); self.chunks.len()];
        for (place, &(c, row)) in wanted.iter().enumerate() {
            let chunk = self.chunks.partition_point(|k| k.first <= row as usize) - 1;
            let local = row as usize - self.chunks[chunk].first;
            by_chunk[chunk].push([local as u32, c as u32, place as u32, 0]);
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
        let answers = self.submit(&Job {
            program: Program::RatioRows(query.function()),
            coefficients: &coefficients,
            entries: bytemuck::cast_slice(&entries),
            dispatches: &dispatches,
            answers: 4 * wanted.len(),
            zeroed: false,
        })?;
        Ok(bytemuck::pod_collect_to_vec(&answers))
    }
}
