//! Gradients of networks of layers, 16 rows at a time: each row's own, formed in scratch memory by
//! `crate::network`, then clipped and rounded like any other model's.

use super::dispatch::InstructionSet;
use super::gradient::{Clip, add_integers};
use super::network::tile_labels;
use crate::data::TILE;
use crate::engine::{GradientQuery, GradientSum};
use crate::network::{Network, Room};

/// As [`super::gradient::sum_tiles`], of tiles of floats with their labels.
pub(super) fn sum_tiles(
    set: InstructionSet,
    (query, network): (&GradientQuery, Network),
    first: usize,
    (tiles, labels): (&[f32], &[f32]),
    rows: usize,
    sums: &mut [GradientSum],
) {
    let (d, width) = (query.dim(), query.features() * TILE);
    let mut room = Room::new(network);
    let mut gradients = vec![[0.0f32; TILE]; d];
    let mut integers = vec![[0u32; TILE]; d * sums.len()];
    let mut clipped = vec![0; sums.len()];
    let clip = Clip::of(query);
    for (t, tile) in tiles.chunks_exact(width).enumerate() {
        let live = rows.saturating_sub(t * TILE).min(TILE);
        let labels = tile_labels(labels, t);
        for (c, integers) in integers.chunks_exact_mut(d).enumerate() {
            let (weights, rows) = (query.weights(first + c), (tile.as_chunks().0, &labels));
            set.layer_gradients(network, weights, rows, &mut room, &mut gradients);
            let values = gradients.as_flattened_mut();
            set.sanitize(values);
            let (mut squares, mut factors) = ([0.0; TILE], [1.0; TILE]);
            set.squares(d, values, &mut squares);
            clipped[c] += set.clip(&clip, &squares, live, &mut factors);
            set.accumulate(values, &factors, integers);
        }
    }
    add_integers(&integers, &clipped, tiles.len() / width, sums);
}
