//! How the features of rows are kept: as floats, or as integers of 16 bits on a public grid.
//!
//! The grid of a column follows from declarations alone: its bound, and what its values are
//! multiples of where the declaration says so. A row's integers *are* the row: every engine, anchor
//! and file answers about the rounded table.

use std::fs::File;
use std::io;
use std::ops::Range;

use bytemuck::Pod;
use serde::{Deserialize, Serialize};

use super::TILE;
use super::values::Values;
use crate::features::Column;

/// How features are kept in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// Rounded to a grid of up to 65,535 values a column, two bytes a feature.
    #[default]
    I16,
    /// As floats, four bytes a feature.
    F32,
}

/// 1.5·2^52.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// Largest size of a stored integer.
const MOST: f64 = 32_767.0;

impl Column {
    /// The grid of its values in rows of norm at most `norm`: steps of one over a whole number that
    /// `parts` divides, or else that holds whole numbers, or else as fine as the bound allows.
    pub(in crate::trusted) fn grid(self, norm: f64) -> Grid {
        let bound = self.bound.min(norm);
        let mut choices = [self.parts, 1.0].into_iter();
        let whole = choices.find_map(|parts| whole_step(parts, bound));
        let step = whole.unwrap_or((bound / MOST) as f32);
        Grid {
            step,
            most: (bound / f64::from(step) * (1.0 + 1e-7)).floor().min(MOST),
        }
    }
}

/// The finest step that reaches `bound`, is one over a multiple of `parts`, and by which whole
/// numbers are held to the bit: its multiples are nearer to them than half of an f32's last place.
fn whole_step(parts: f64, bound: f64) -> Option<f32> {
    // A bound under one part holds no whole one but 0.
    if parts * bound < 1.0 {
        return None;
    }
    let most = (MOST / (parts * bound)).floor();
    let inverses = (0..most.min(64.0) as u32).map(|k| parts * (most - f64::from(k)));
    inverses
        .map(|inverse| (inverse, inverse.recip() as f32))
        .find(|(inverse, step)| (inverse * f64::from(*step) - 1.0).abs() < f64::powi(2.0, -25))
        .map(|(_, step)| step)
}

/// The values of a column: integers m up to `most`, 32,767 at the most, times the step, rounded to
/// f32, so that all engines have the same bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::trusted) struct Grid {
    pub step: f32,
    /// No value is beyond the column's bound, but for the rounding of f32.
    most: f64,
}

impl Grid {
    /// Of a value: the nearest integer, or the next one towards 0.
    #[inline]
    fn integer(&self, value: f64, truncate: bool) -> i16 {
        let steps = (value / f64::from(self.step)).clamp(-self.most, self.most);
        match truncate {
            true => steps as i16,
            // Adding it rounds to an integer, which the last bits of the sum are.
            false => (steps + ROUND).to_bits() as i16,
        }
    }

    /// The value of an integer.
    #[inline]
    pub fn value(&self, m: i16) -> f32 {
        f32::from(m) * self.step
    }
}

/// The integers of rows, one a lane, in norm at most `most` as the rows are: the nearest ones, or,
/// where those leave the ball, the next ones towards 0.
pub(super) fn round(
    rows: &[[f32; TILE]],
    grid: &[Grid],
    most: &[f64; TILE],
    out: &mut [[i16; TILE]],
) {
    let mut squares = [0.0; TILE];
    for ((m, v), grid) in out.iter_mut().zip(rows).zip(grid) {
        for lane in 0..TILE {
            m[lane] = grid.integer(f64::from(v[lane]), false);
            let value = f64::from(grid.value(m[lane]));
            squares[lane] += value * value;
        }
    }
    for (lane, (square, most)) in squares.iter().zip(most).enumerate() {
        // The slack is for the rounding of values at a column's bound.
        if *square > most * most * (1.0 + 2.5e-7) {
            for ((m, v), grid) in out.iter_mut().zip(rows).zip(grid) {
                m[lane] = grid.integer(f64::from(v[lane]), true);
            }
        }
    }
}

/// Rows in tiles: `width × TILE` values each, feature-major.
#[derive(Clone)]
pub(super) enum Cells {
    F32(Values<f32>),
    /// With a grid a feature.
    I16(Values<i16>, Vec<Grid>),
}

impl Cells {
    /// None yet, of the same kind, in memory.
    pub fn empty(&self) -> Cells {
        match self {
            Cells::F32(_) => Cells::F32(Values::default()),
            Cells::I16(_, grid) => Cells::I16(Values::default(), grid.clone()),
        }
    }

    /// What integers stand for, a column each.
    pub fn grids(&self) -> &[Grid] {
        match self {
            Cells::F32(_) => &[],
            Cells::I16(_, grids) => grids,
        }
    }

    /// Bytes of a value.
    pub fn value_bytes(&self) -> usize {
        if matches!(self, Cells::I16(..)) { 2 } else { 4 }
    }

    pub fn view(&self) -> Tiles<'_> {
        match self {
            Cells::F32(tiles) => Tiles::F32(tiles.as_slice()),
            Cells::I16(tiles, grid) => Tiles::I16(tiles.as_slice(), grid),
        }
    }

    /// Puts rows behind the `stored` ones, one a lane of `lanes`, which begin where those end;
    /// their first `features` values are of norm at most `most`.
    pub fn push(
        &mut self,
        stored: usize,
        (rows, features): (&[[f32; TILE]], usize),
        most: &[f64; TILE],
        lanes: Range<usize>,
    ) {
        match self {
            Cells::F32(tiles) => put(tiles, stored, rows, lanes),
            Cells::I16(tiles, grid) => {
                let mut rounded = vec![[0; TILE]; rows.len()];
                round(&rows[..features], grid, most, &mut rounded);
                for j in features..rows.len() {
                    rounded[j] = rows[j].map(|v| grid[j].integer(f64::from(v), false));
                }
                put(tiles, stored, &rounded, lanes);
            }
        }
    }

    /// Adds the first `more` rows of `from`, which is of the same kind, to `rows` rows.
    pub fn append(&mut self, rows: usize, from: &Cells, more: usize, width: usize) {
        match (self, from) {
            (Cells::F32(tiles), Cells::F32(from)) => append(tiles, rows, from, more, width),
            (Cells::I16(tiles, _), Cells::I16(from, _)) => append(tiles, rows, from, more, width),
            _ => {}
        }
    }

    /// Makes room for so many more values, or gives back what is not used.
    pub fn room(&mut self, more: Option<usize>) {
        match (self, more) {
            (Cells::F32(tiles), more) => tiles.room(more),
            (Cells::I16(tiles, _), more) => tiles.room(more),
        }
    }

    /// From now on they go to this new file: see [`Values`].
    pub fn spill(&mut self, file: File) {
        match self {
            Cells::F32(tiles) => tiles.spill(file),
            Cells::I16(tiles, _) => tiles.spill(file),
        }
    }

    /// Writes what does not change any more to their file, if they have one: all but `keep` values.
    pub fn write(&mut self, keep: usize) -> io::Result<()> {
        match self {
            Cells::F32(tiles) => tiles.write(keep),
            Cells::I16(tiles, _) => tiles.write(keep),
        }
    }

    /// Writes the rest to their file, if they have one.
    pub fn finish(&mut self) -> io::Result<()> {
        match self {
            Cells::F32(tiles) => tiles.finish(),
            Cells::I16(tiles, _) => tiles.finish(),
        }
    }

    /// Those that a file has.
    pub fn open(&mut self, file: &File) -> io::Result<()> {
        match self {
            Cells::F32(tiles) => *tiles = Values::open(file)?,
            Cells::I16(tiles, _) => *tiles = Values::open(file)?,
        }
        Ok(())
    }

    /// See [`Values::fetch`].
    pub fn fetch(&self, at: Range<usize>) {
        match self {
            Cells::F32(tiles) => tiles.fetch(at),
            Cells::I16(tiles, _) => tiles.fetch(at),
        }
    }

    /// Whether they are in a file.
    pub fn is_filed(&self) -> bool {
        match self {
            Cells::F32(tiles) => tiles.is_filed(),
            Cells::I16(tiles, _) => tiles.is_filed(),
        }
    }
}

fn put<T: Pod + Default>(
    tiles: &mut Values<T>,
    stored: usize,
    rows: &[[T; TILE]],
    lanes: Range<usize>,
) {
    if lanes == (0..TILE) {
        return tiles.extend(rows.as_flattened());
    }
    let width = rows.len() * TILE;
    let tile = tiles.from(stored / TILE * width, (stored / TILE + 1) * width);
    for (to, from) in tile.as_chunks_mut::<TILE>().0.iter_mut().zip(rows) {
        to[lanes.clone()].copy_from_slice(&from[lanes.clone()]);
    }
}

fn append<T: Pod + Default>(
    tiles: &mut Values<T>,
    rows: usize,
    from: &Values<T>,
    more: usize,
    features: usize,
) {
    let from = from.as_slice();
    if rows.is_multiple_of(TILE) {
        return tiles.extend(from);
    }
    let width = features * TILE;
    let all = (rows + more).div_ceil(TILE) * width;
    let tiles = tiles.from(rows / TILE * width, all);
    for i in 0..more {
        let (to, lane) = ((rows % TILE + i) / TILE * width, (rows + i) % TILE);
        let source = &from[i / TILE * width..][..width];
        let target = &mut tiles[to..][..width];
        for j in 0..features {
            target[j * TILE + lane] = source[j * TILE + i % TILE];
        }
    }
}

/// Some tiles as they are stored.
#[derive(Clone, Copy)]
pub(in crate::trusted) enum Tiles<'a> {
    F32(&'a [f32]),
    /// With a grid a feature.
    I16(&'a [i16], &'a [Grid]),
}

impl<'a> Tiles<'a> {
    /// The values of one feature, or of a few rows, `at` so many values from the start.
    pub fn slice(self, at: Range<usize>) -> Tiles<'a> {
        match self {
            Tiles::F32(tiles) => Tiles::F32(&tiles[at]),
            Tiles::I16(tiles, grid) => Tiles::I16(&tiles[at], grid),
        }
    }

    /// How many values.
    pub fn len(self) -> usize {
        match self {
            Tiles::F32(tiles) => tiles.len(),
            Tiles::I16(tiles, _) => tiles.len(),
        }
    }

    /// Parts of so many values, the last one perhaps shorter.
    pub fn chunks(self, values: usize) -> impl Iterator<Item = Tiles<'a>> {
        let starts = (0..self.len()).step_by(values);
        starts.map(move |at| self.slice(at..(at + values).min(self.len())))
    }

    /// The values of feature `j` that are number `k` of all lanes.
    #[inline(always)]
    pub fn lanes(self, j: usize, k: usize) -> [f32; TILE] {
        match self {
            Tiles::F32(tiles) => tiles.as_chunks::<TILE>().0[k],
            Tiles::I16(tiles, grid) => {
                let (m, grid) = (&tiles.as_chunks::<TILE>().0[k], grid[j]);
                std::array::from_fn(|i| grid.value(m[i]))
            }
        }
    }
}

#[cfg(test)]
mod tests;
