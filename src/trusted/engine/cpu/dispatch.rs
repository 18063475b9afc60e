//! Picks the instruction set at run time. Its `unsafe` is calls of
//! functions compiled for a set that was detected first.

use std::ops::Range;

use super::gradient::{self, Clip, STRIP_ROWS};
use super::kernel::{self, Kept, RowForms};
use super::lanes::Lanes;
use super::network;
use super::network_gradient::{self, Block, Scratch};
use crate::data::{Grid, TILE, Tiles};
use crate::engine::AnchorSums;
use crate::engine::anchor_rows::{self, TileRows};
use crate::expression::Law;
use crate::model::{NetworkShape, RowFunction, Score};
use crate::network::{Network, Room};

/// Instruction sets the kernels are compiled for. A value exists only where the
/// machine has the set ([`InstructionSet::available`]), which makes the calls sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trusted) struct InstructionSet(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// What the build targets (SSE2 on x86-64, NEON on aarch64).
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Calls the version of a function that was compiled for this set.
macro_rules! by_set {
    ($set:expr, $plain:expr, $avx2:ident, $avx512:ident, $arguments:tt) => {
        match $set.0 {
            Set::Baseline => $plain $arguments,
            // SAFETY: a set's value exists only where AVX2 and FMA were detected.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::$avx2 $arguments },
            // SAFETY: as above, and these AVX-512 sets.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::$avx512 $arguments },
        }
    };
}

impl InstructionSet {
    /// The best set of this machine.
    pub fn detect() -> Self {
        Self::available().pop().unwrap_or(Self(Set::Baseline))
    }

    /// All sets of this machine, worst first.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut sets = vec![Self(Set::Baseline)];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            sets.push(Self(Set::Avx2));
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq");
            if wide {
                sets.push(Self(Set::Avx512));
            }
        }
        sets
    }

    /// Whether integers are widened on the way to the sums, without a stop in memory.
    pub fn widens(self) -> bool {
        self.0 != Set::Baseline
    }

    /// Name for the certificate.
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2+fma",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
        }
    }

    /// Values of integers; see [`kernel::decode`].
    pub(super) fn decode(self, tiles: &[i16], grid: &[Grid], out: &mut [f32]) {
        by_set! { self, kernel::decode, decode_avx2, decode_avx512, (tiles, grid, out) }
    }

    /// Affine forms `out[f][row] = offsets[f] + Σ_j weights[j*F + f]·x_j` of some tiles; what is
    /// `kept` of rows in 16 bits is made on the way.
    pub(super) fn forms<const F: usize, const R: usize>(
        self,
        weights: &[f32],
        offsets: &[f32],
        tiles: Tiles<'_>,
        kept: Option<Kept<'_>>,
        out: &mut [[f32; R]; F],
    ) {
        match tiles {
            Tiles::F32(tiles) => by_set! {
                self, kernel::forms, forms_avx2, forms_avx512, (weights, offsets, tiles, out)
            },
            Tiles::I16(tiles, grid) => by_set! {
                self, kernel::forms16, forms16_avx2, forms16_avx512,
                (weights, offsets, tiles, grid, kept, out)
            },
        }
    }

    /// Sums of squares of every row; see [`gradient::squares`].
    pub(super) fn squares(self, d: usize, tiles: &[f32], out: &mut [f32]) {
        by_set! { self, gradient::squares, squares_avx2, squares_avx512, (d, tiles, out) }
    }

    /// Adds rounded products to integers; see [`gradient::accumulate`].
    pub(super) fn accumulate(self, tiles: &[f32], factors: &[f32], integers: &mut [[u32; TILE]]) {
        by_set! {
            self, gradient::accumulate, accumulate_avx2, accumulate_avx512,
            (tiles, factors, integers)
        }
    }
}

/// Methods that are plain loops, compiled for every set: the second one with fused operations.
macro_rules! loops {
    ($($(#[$doc:meta])* $vis:vis $name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)? {
        $plain:expr, $fused:expr
    })*) => {
        impl InstructionSet {
            $($(#[$doc])* $vis fn $name(self, $($arg: $type),*) $(-> $out)? {
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $type),*) $(-> $out)? {
                    $fused($($arg),*)
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
                fn avx512($($arg: $type),*) $(-> $out)? {
                    $fused($($arg),*)
                }
                match self.0 {
                    Set::Baseline => $plain($($arg),*),
                    // SAFETY: a set's value exists only where AVX2 and FMA were detected.
                    #[cfg(target_arch = "x86_64")]
                    Set::Avx2 => unsafe { avx2($($arg),*) },
                    // SAFETY: as above, and these AVX-512 sets.
                    #[cfg(target_arch = "x86_64")]
                    Set::Avx512 => unsafe { avx512($($arg),*) },
                }
            })*
        }
    };
}

loops! {
    /// Quantised ratios, one a row of `out`.
    pub(super) steps(row: &RowForms<'_>, scale: f32, bound: i32, out: &mut [i32]) {
        kernel::steps::<false>, kernel::steps::<true>
    }
    /// Sums of quantised ratios.
    pub(super) total(steps: &[i32], bound: i32) -> (i32, u32) { kernel::total, kernel::total }
    /// Scores of some rows.
    pub(super) scores(score: Score, eta: &[f32], labels: &[f32], out: &mut [f32]) {
        gradient::scores::<false>, gradient::scores::<true>
    }
    /// Scores of a declared likelihood.
    pub(super) declared_scores(
        law: Law, k: usize, labels: &[f32], eta: &[f32], shared: &[f32], out: &mut [f32]
    ) {
        gradient::declared_scores::<false>, gradient::declared_scores::<true>
    }
    /// Clip factors of some rows.
    pub(super) clip(clip: &Clip, squares: &[f32], live: usize, factors: &mut [f32]) -> u64 {
        gradient::clip, gradient::clip
    }
    /// The mixture's gradient.
    pub(super) mixture(forms: &[[f32; STRIP_ROWS]; 3]) -> [[f32; STRIP_ROWS]; 2] {
        gradient::mixture::<false>, gradient::mixture::<true>
    }
    /// Zero for what is no number.
    pub(super) sanitize(values: &mut [f32]) { gradient::sanitize, gradient::sanitize }
    /// Ratios of one tile of a network's rows.
    pub(super) network_ratios(
        function: RowFunction, weights: &[f32], tile: &[Lanes], labels: &Lanes
    ) -> Lanes {
        network::rows::<false>, network::rows::<true>
    }
    /// Quantised gradients of a block of a network's rows.
    pub(super) network_gradients(shape: NetworkShape, block: &Block<'_>, scratch: &mut Scratch) {
        network_gradient::gradients::<false>, network_gradient::gradients::<true>
    }
    /// Gradients of one tile of rows through a network of layers.
    pub(super) layer_gradients(
        network: Network, weights: &[f32], rows: (&[Lanes], &Lanes), room: &mut Room<f32, TILE>,
        gradients: &mut [Lanes]
    ) {
        Network::gradients::<false>, Network::gradients::<true>
    }
    /// Sums of some tiles at an anchor.
    pub(in crate::trusted::engine) anchor_sums(
        rows: TileRows<'_>, tiles: Range<usize>
    ) -> AnchorSums {
        anchor_rows::sums::<false>, anchor_rows::sums::<true>
    }
    /// Weights at an anchor of the rows of the tiles from `first` on.
    pub(in crate::trusted::engine) anchor_weights(
        rows: TileRows<'_>, first: usize, out: &mut [f32]
    ) {
        anchor_rows::weights, anchor_rows::weights
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256, __m256i, __m512, __m512i, _MM_HINT_T0, _mm_prefetch, _mm256_add_epi32,
        _mm256_castps_si256, _mm256_cvtepi16_epi32, _mm256_cvtepi32_ps, _mm256_fmadd_ps,
        _mm256_mul_ps, _mm256_set1_ps, _mm512_add_epi32, _mm512_castps_si512,
        _mm512_cvtepi16_epi32, _mm512_cvtepi32_ps, _mm512_fmadd_ps, _mm512_mul_ps, _mm512_set1_ps,
    };

    use super::{Grid, Kept, Lanes, TILE, gradient};

    /// Integers of which a tile is fetched ahead of its use: 8 KiB, enough for a memory's latency.
    const AHEAD: usize = 4096;

    /// Tiles whose products are added to an integer of a gradient before it goes back to memory.
    const SHARED: usize = 4;

    /// Asks for what will be read soon: decoding outruns what the machine fetches by itself.
    #[inline(always)]
    fn fetch_ahead(m: &[i16; TILE]) {
        // SAFETY: a hint that faults at no address, and reads nothing into the program.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(m.as_ptr().wrapping_add(AHEAD).cast()) }
    }

    /// Vector versions of [`kernel::forms`] and, of integers, [`kernel::forms16`] and
    /// [`kernel::decode`]: `$parts` vectors of `$vector` make a tile, and as many of `$half` one of
    /// integers. So many `$tiles` share the broadcast of a coefficient as registers allow.
    macro_rules! forms {
        ($forms:ident, $some:ident, $forms16:ident, $decode:ident, $value:ident, $features:literal,
         $vector:ty, $half:ty, $parts:literal, $tiles:literal, $set1:ident, $fma:ident, $mul:ident,
         $widen:ident, $float:ident) => {
            #[target_feature(enable = $features)]
            pub fn $forms<const F: usize, const R: usize>(
                weights: &[f32],
                offsets: &[f32],
                tiles: &[f32],
                out: &mut [[f32; R]; F],
            ) {
                let (d, lanes) = (weights.len() / F, tiles.as_chunks::<TILE>().0);
                let strips = lanes.chunks_exact(d * $tiles);
                let (rest, done) = (strips.remainder(), strips.len() * $tiles);
                let part =
                    |lane: &Lanes, part: usize| bytemuck::cast::<_, [$vector; $parts]>(*lane)[part];
                for (t, strip) in strips.enumerate() {
                    let value = |n, j, p| part(&strip[n * d + j], p);
                    $some::<F, $tiles, R>(weights, offsets, t * $tiles, out, value);
                }
                for (t, tile) in rest.chunks_exact(d).enumerate() {
                    $some::<F, 1, R>(weights, offsets, done + t, out, |_, j, p| part(&tile[j], p));
                }
            }

            #[target_feature(enable = $features)]
            pub fn $forms16<const F: usize, const R: usize>(
                weights: &[f32],
                offsets: &[f32],
                tiles: &[i16],
                grid: &[Grid],
                kept: Option<Kept<'_>>,
                out: &mut [[f32; R]; F],
            ) {
                let (d, lanes) = (grid.len(), tiles.as_chunks::<TILE>().0);
                let tiles = lanes.chunks_exact(d).enumerate();
                let Some(kept) = kept else {
                    for (t, tile) in tiles {
                        let value = |_, j: usize, p: usize| $value(&tile[j], &grid[j])[p];
                        $some::<F, 1, R>(weights, offsets, t, out, value);
                    }
                    return;
                };
                let rows = kept.values.as_chunks_mut::<{ TILE / $parts }>().0;
                let rows = rows.chunks_exact_mut(d * $parts);
                let squares = kept.squares.as_chunks_mut::<TILE>().0;
                for (((t, tile), row), squares) in tiles.zip(rows).zip(squares) {
                    let mut sums = [$set1(0.0); $parts];
                    $some::<F, 1, R>(weights, offsets, t, out, |_, j, p| {
                        let v = $value(&tile[j], &grid[j])[p];
                        row[j * $parts + p] = bytemuck::cast(v);
                        sums[p] = $fma(v, v, sums[p]);
                        v
                    });
                    *squares = bytemuck::cast(sums);
                }
            }

            /// N tiles, of which the first one is number `t`; `value`: a part of a tile's feature.
            #[inline]
            #[target_feature(enable = $features)]
            fn $some<const F: usize, const N: usize, const R: usize>(
                weights: &[f32],
                offsets: &[f32],
                t: usize,
                out: &mut [[f32; R]; F],
                mut value: impl FnMut(usize, usize, usize) -> $vector,
            ) {
                // One part at a time keeps all accumulators in registers.
                for part in 0..$parts {
                    let mut acc: [[$vector; F]; N] =
                        [std::array::from_fn(|f| $set1(offsets[f])); N];
                    for (j, w) in weights.as_chunks::<F>().0.iter().enumerate() {
                        let x: [_; N] = std::array::from_fn(|n| value(n, j, part));
                        for f in 0..F {
                            let w = $set1(w[f]);
                            for n in 0..N {
                                acc[n][f] = $fma(w, x[n], acc[n][f]);
                            }
                        }
                    }
                    for n in 0..N {
                        for f in 0..F {
                            let lanes: [f32; TILE / $parts] = bytemuck::cast(acc[n][f]);
                            let start = (t + n) * TILE + part * (TILE / $parts);
                            out[f][start..start + TILE / $parts].copy_from_slice(&lanes);
                        }
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub fn $decode(tiles: &[i16], grid: &[Grid], out: &mut [f32]) {
                let (tiles, out) = (tiles.as_chunks().0, out.as_chunks_mut().0);
                let lanes = tiles
                    .chunks_exact(grid.len())
                    .zip(out.chunks_exact_mut(grid.len()));
                for (tile, out) in lanes {
                    for ((m, out), grid) in tile.iter().zip(out).zip(grid) {
                        let out: &mut Lanes = out;
                        *out = bytemuck::cast($value(m, grid));
                    }
                }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn $value(m: &[i16; TILE], grid: &Grid) -> [$vector; $parts] {
                fetch_ahead(m);
                let m: [$half; $parts] = bytemuck::cast(*m);
                m.map(|m| $mul($float($widen(m)), $set1(grid.step)))
            }
        };
    }

    forms! {
        forms_avx2, some_avx2, forms16_avx2, decode_avx2, value_avx2, "avx2,fma", __m256, __m128i,
        2, 1, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_mul_ps, _mm256_cvtepi16_epi32,
        _mm256_cvtepi32_ps
    }
    forms! {
        forms_avx512, some_avx512, forms16_avx512, decode_avx512, value_avx512,
        "avx512f,avx512vl,avx512dq,avx2,fma", __m512, __m256i, 1, 2, _mm512_set1_ps,
        _mm512_fmadd_ps, _mm512_mul_ps, _mm512_cvtepi16_epi32, _mm512_cvtepi32_ps
    }

    /// Vector versions of [`gradient::squares`] and [`gradient::accumulate`].
    macro_rules! sums {
        ($squares:ident, $accumulate:ident, $some:ident, $features:literal, $vector:ty,
         $integer:ty, $parts:literal, $set1:ident, $fma:ident, $bits:ident, $add:ident) => {
            #[target_feature(enable = $features)]
            pub fn $squares(d: usize, tiles: &[f32], out: &mut [f32]) {
                let outs = out.as_chunks_mut::<TILE>().0;
                for (tile, out) in tiles.chunks_exact(d * TILE).zip(outs) {
                    let mut sum = [$set1(0.0); $parts];
                    for v in tile.as_chunks::<TILE>().0 {
                        let v: [$vector; $parts] = bytemuck::cast(*v);
                        for part in 0..$parts {
                            sum[part] = $fma(v[part], v[part], sum[part]);
                        }
                    }
                    *out = bytemuck::cast(sum);
                }
            }

            #[target_feature(enable = $features)]
            pub fn $accumulate(tiles: &[f32], factors: &[f32], integers: &mut [[u32; TILE]]) {
                let (d, factors) = (integers.len(), factors.as_chunks::<TILE>().0);
                let tiles = tiles.as_chunks::<TILE>().0;
                let (strips, rest) = factors.as_chunks::<SHARED>();
                for (strip, t) in tiles.chunks_exact(SHARED * d).zip(strips) {
                    $some(strip, t, integers);
                }
                let tiles = tiles.chunks_exact(d).skip(strips.len() * SHARED);
                for (tile, t) in tiles.zip(rest) {
                    $some(tile, &[*t], integers);
                }
            }

            /// Of N tiles, all at once.
            #[inline]
            #[target_feature(enable = $features)]
            fn $some<const N: usize>(
                tiles: &[Lanes],
                factors: &[Lanes; N],
                integers: &mut [[u32; TILE]],
            ) {
                let (d, round) = (integers.len(), $set1(gradient::ROUND));
                let t: [[$vector; $parts]; N] = factors.map(bytemuck::cast);
                for (j, sum) in integers.iter_mut().enumerate() {
                    let mut total: [$integer; $parts] = bytemuck::cast(*sum);
                    for n in 0..N {
                        let v: [$vector; $parts] = bytemuck::cast(tiles[n * d + j]);
                        for part in 0..$parts {
                            let bits = $bits($fma(v[part], t[n][part], round));
                            total[part] = $add(total[part], bits);
                        }
                    }
                    *sum = bytemuck::cast(total);
                }
            }
        };
    }

    sums! {
        squares_avx2, accumulate_avx2, add_avx2, "avx2,fma", __m256, __m256i, 2, _mm256_set1_ps,
        _mm256_fmadd_ps, _mm256_castps_si256, _mm256_add_epi32
    }
    sums! {
        squares_avx512, accumulate_avx512, add_avx512, "avx512f,avx512vl,avx512dq,avx2,fma",
        __m512, __m512i, 1, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_castps_si512, _mm512_add_epi32
    }
}
