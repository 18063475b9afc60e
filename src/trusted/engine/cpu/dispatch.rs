//! Picks the instruction set at run time. The one place of the library with `unsafe`: calls of
//! functions compiled for a set that was detected first.

use super::anchor::{self, BLOCK, Block as AnchorBlock, GROUP, Unit};
use super::gradient::{self, Clip, STRIP_ROWS};
use super::kernel::{self, RowForms};
use super::lanes::Lanes;
use super::network;
use super::network_gradient::{self, Block, Scratch};
use crate::data::TILE;
use crate::engine::AnchorSums;
use crate::model::{NetworkShape, RowFunction, Score};

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
    /// Reads rows of an anchor; see [`AnchorBlock::read`].
    pub(super) fn read(self, block: &mut AnchorBlock<'_>, first: usize) {
        by_set!(
            self,
            AnchorBlock::read,
            read_avx2,
            read_avx512,
            (block, first)
        )
    }

    /// Adds what is wanted of them; see [`AnchorBlock::add_to`].
    pub(super) fn add(self, block: &mut AnchorBlock<'_>, sums: &mut AnchorSums) {
        by_set!(
            self,
            AnchorBlock::add_to,
            add_avx2,
            add_avx512,
            (block, sums)
        )
    }

    /// Solves for the columns of a block; see [`anchor::solve`].
    pub(super) fn solve(self, factor: &Unit, z: &mut [f64]) {
        by_set!(self, anchor::solve, solve_avx2, solve_avx512, (factor, z))
    }

    /// Multiplies columns; see [`anchor::products`].
    pub(super) fn products(self, a: &[f64], b: &[f64], out: &mut [f64]) {
        by_set!(
            self,
            anchor::products,
            products_avx2,
            products_avx512,
            (a, b, out)
        )
    }

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

    /// Affine forms `out[f][row] = offsets[f] + Σ_j weights[j*F + f]·x_j` of some tiles.
    pub fn forms<const F: usize, const R: usize>(
        self,
        weights: &[f32],
        offsets: &[f32],
        tiles: &[f32],
        out: &mut [[f32; R]; F],
    ) {
        by_set!(
            self,
            kernel::forms,
            forms_avx2,
            forms_avx512,
            (weights, offsets, tiles, out)
        )
    }

    /// Sums of squares of every row; see [`gradient::squares`].
    pub(super) fn squares(self, d: usize, tiles: &[f32], out: &mut [f32]) {
        by_set!(
            self,
            gradient::squares,
            squares_avx2,
            squares_avx512,
            (d, tiles, out)
        )
    }

    /// Adds rounded products to integers; see [`gradient::accumulate`].
    pub(super) fn accumulate(self, tiles: &[f32], factors: &[f32], integers: &mut [[u32; TILE]]) {
        by_set!(
            self,
            gradient::accumulate,
            accumulate_avx2,
            accumulate_avx512,
            (tiles, factors, integers)
        )
    }

    /// Scores of some rows.
    pub(super) fn scores(self, score: Score, eta: &[f32], labels: &[f32], out: &mut [f32]) {
        by_set!(
            self,
            gradient::scores::<false>,
            scores_avx2,
            scores_avx512,
            (score, eta, labels, out)
        )
    }

    /// Clip factors of some rows.
    pub(super) fn clip(
        self,
        clip: &Clip,
        squares: &[f32],
        live: usize,
        factors: &mut [f32],
    ) -> u64 {
        by_set!(
            self,
            gradient::clip,
            clip_avx2,
            clip_avx512,
            (clip, squares, live, factors)
        )
    }

    /// The mixture's gradient.
    pub(super) fn mixture(self, forms: &[[f32; STRIP_ROWS]; 3]) -> [[f32; STRIP_ROWS]; 2] {
        by_set!(
            self,
            gradient::mixture::<false>,
            mixture_avx2,
            mixture_avx512,
            (forms)
        )
    }

    /// Zero for what is no number.
    pub(super) fn sanitize(self, values: &mut [f32]) {
        by_set!(
            self,
            gradient::sanitize,
            sanitize_avx2,
            sanitize_avx512,
            (values)
        )
    }

    /// Ratios of one tile of a network's rows.
    pub(super) fn network_ratios(
        self,
        function: RowFunction,
        weights: &[f32],
        tile: &[Lanes],
        labels: &Lanes,
    ) -> Lanes {
        by_set!(
            self,
            network::rows::<false>,
            network_ratios_avx2,
            network_ratios_avx512,
            (function, weights, tile, labels)
        )
    }

    /// Quantised gradients of a block of a network's rows.
    pub(super) fn network_gradients(
        self,
        shape: NetworkShape,
        block: &Block<'_>,
        scratch: &mut Scratch,
    ) {
        by_set!(
            self,
            network_gradient::gradients::<false>,
            network_gradients_avx2,
            network_gradients_avx512,
            (shape, block, scratch)
        )
    }

    /// Quantised ratios, one a row of `out`.
    pub fn steps(self, row: &RowForms<'_>, scale: f32, bound: i32, out: &mut [i32]) {
        by_set!(
            self,
            kernel::steps::<false>,
            steps_avx2,
            steps_avx512,
            (row, scale, bound, out)
        )
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, __m256i, __m512, __m512i, _mm256_add_epi32, _mm256_add_pd, _mm256_castps_si256,
        _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_mul_pd, _mm256_set1_pd, _mm256_set1_ps,
        _mm256_sub_pd, _mm512_add_epi32, _mm512_add_pd, _mm512_castps_si512, _mm512_fmadd_pd,
        _mm512_fmadd_ps, _mm512_mul_pd, _mm512_set1_pd, _mm512_set1_ps, _mm512_sub_pd,
    };

    use super::{
        AnchorBlock, AnchorSums, BLOCK, Block, Clip, GROUP, Lanes, NetworkShape, RowForms,
        RowFunction, STRIP_ROWS, Score, Scratch, TILE, Unit, gradient, kernel, network,
        network_gradient,
    };

    /// The vector versions of [`anchor`]'s functions; `$rows` columns times [`GROUP`] fill the
    /// registers.
    macro_rules! anchors {
        (
            $read:ident, $add:ident, $solve:ident, $products:ident, $features:literal,
            $lanes:literal, $rows:literal, $set1:ident, $add_pd:ident, $sub_pd:ident,
            $mul_pd:ident, $fma_pd:ident
        ) => {
            #[target_feature(enable = $features)]
            pub fn $read(block: &mut AnchorBlock<'_>, first: usize) {
                block.read(first);
            }

            #[target_feature(enable = $features)]
            pub fn $add(block: &mut AnchorBlock<'_>, sums: &mut AnchorSums) {
                block.add_to(sums);
            }

            #[target_feature(enable = $features)]
            pub fn $solve(factor: &Unit, z: &mut [f64]) {
                // Sums enough to hide the adder's latency, of columns that stay in the cache.
                const PARTS: usize = 8;
                for strip in (0..BLOCK).step_by(PARTS * $lanes) {
                    for (i, row) in factor.rows.iter().enumerate() {
                        let (solved, rest) = z.split_at_mut(i * BLOCK);
                        let mut sum = [$set1(0.0); PARTS];
                        for (column, l) in solved.chunks_exact(BLOCK).zip(row) {
                            let column = column[strip..].as_chunks::<$lanes>().0;
                            for (sum, z) in sum.iter_mut().zip(column) {
                                *sum = $add_pd(*sum, $mul_pd($set1(*l), bytemuck::cast(*z)));
                            }
                        }
                        let inverse = $set1(factor.inverse[i]);
                        let column = rest[strip..].as_chunks_mut::<$lanes>().0;
                        for (x, sum) in column.iter_mut().zip(sum) {
                            let scaled = $mul_pd(bytemuck::cast(*x), inverse);
                            *x = bytemuck::cast($sub_pd(scaled, sum));
                        }
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub fn $products(a: &[f64], b: &[f64], out: &mut [f64]) {
                type Column = [[f64; $lanes]; BLOCK / $lanes];
                let columns = b.len() / BLOCK;
                let a = bytemuck::cast_slice::<f64, Column>(a)
                    .as_chunks::<$rows>()
                    .0;
                let b = bytemuck::cast_slice::<f64, Column>(b)
                    .as_chunks::<GROUP>()
                    .0;
                for (j, a) in a.iter().enumerate() {
                    let last = ($rows * (j + 1)).div_ceil(GROUP);
                    for (k, b) in b.iter().enumerate().take(last) {
                        let mut sums = [[$set1(0.0); GROUP]; $rows];
                        for i in 0..BLOCK / $lanes {
                            for (sums, a) in sums.iter_mut().zip(a) {
                                for (sum, b) in sums.iter_mut().zip(b) {
                                    *sum =
                                        $fma_pd(bytemuck::cast(a[i]), bytemuck::cast(b[i]), *sum);
                                }
                            }
                        }
                        for (r, sums) in sums.into_iter().enumerate() {
                            let at = ($rows * j + r) * columns + GROUP * k;
                            for (out, sum) in out[at..at + GROUP].iter_mut().zip(sums) {
                                let lanes: [f64; $lanes] = bytemuck::cast(sum);
                                *out = lanes.iter().sum();
                            }
                        }
                    }
                }
            }
        };
    }

    anchors!(
        read_avx2,
        add_avx2,
        solve_avx2,
        products_avx2,
        "avx2,fma",
        4,
        2,
        _mm256_set1_pd,
        _mm256_add_pd,
        _mm256_sub_pd,
        _mm256_mul_pd,
        _mm256_fmadd_pd
    );
    anchors!(
        read_avx512,
        add_avx512,
        solve_avx512,
        products_avx512,
        "avx512f,avx512vl,avx512dq,avx2,fma",
        8,
        4,
        _mm512_set1_pd,
        _mm512_add_pd,
        _mm512_sub_pd,
        _mm512_mul_pd,
        _mm512_fmadd_pd
    );

    /// One vector version of [`kernel::forms`]: `$parts` vectors of `$vector` make a tile.
    macro_rules! forms {
        ($name:ident, $features:literal, $vector:ty, $parts:literal, $set1:ident, $fma:ident) => {
            #[target_feature(enable = $features)]
            pub fn $name<const F: usize, const R: usize>(
                weights: &[f32],
                offsets: &[f32],
                tiles: &[f32],
                out: &mut [[f32; R]; F],
            ) {
                let width = weights.len() / F * TILE;
                for (t, tile) in tiles.chunks_exact(width).enumerate() {
                    // One part at a time keeps all accumulators in registers.
                    for part in 0..$parts {
                        let mut acc: [$vector; F] = std::array::from_fn(|f| $set1(offsets[f]));
                        for (x, w) in tile
                            .as_chunks::<TILE>()
                            .0
                            .iter()
                            .zip(weights.as_chunks::<F>().0)
                        {
                            let x: [$vector; $parts] = bytemuck::cast(*x);
                            for f in 0..F {
                                acc[f] = $fma($set1(w[f]), x[part], acc[f]);
                            }
                        }
                        for f in 0..F {
                            let lanes: [f32; TILE / $parts] = bytemuck::cast(acc[f]);
                            let start = t * TILE + part * (TILE / $parts);
                            out[f][start..start + TILE / $parts].copy_from_slice(&lanes);
                        }
                    }
                }
            }
        };
    }

    forms!(
        forms_avx2,
        "avx2,fma",
        __m256,
        2,
        _mm256_set1_ps,
        _mm256_fmadd_ps
    );
    forms!(
        forms_avx512,
        "avx512f,avx512vl,avx512dq,avx2,fma",
        __m512,
        1,
        _mm512_set1_ps,
        _mm512_fmadd_ps
    );

    /// Vector versions of [`gradient::squares`] and [`gradient::accumulate`].
    macro_rules! sums {
        ($squares:ident, $accumulate:ident, $features:literal, $vector:ty, $integer:ty, $parts:literal,
         $set1:ident, $fma:ident, $bits:ident, $add:ident) => {
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
                let d = integers.len();
                let round = $set1(gradient::ROUND);
                let factors = factors.as_chunks::<TILE>().0;
                for (tile, t) in tiles.chunks_exact(d * TILE).zip(factors) {
                    let t: [$vector; $parts] = bytemuck::cast(*t);
                    for (v, sum) in tile.as_chunks::<TILE>().0.iter().zip(&mut *integers) {
                        let v: [$vector; $parts] = bytemuck::cast(*v);
                        let mut total: [$integer; $parts] = bytemuck::cast(*sum);
                        for part in 0..$parts {
                            let bits = $bits($fma(v[part], t[part], round));
                            total[part] = $add(total[part], bits);
                        }
                        *sum = bytemuck::cast(total);
                    }
                }
            }
        };
    }

    sums!(
        squares_avx2,
        accumulate_avx2,
        "avx2,fma",
        __m256,
        __m256i,
        2,
        _mm256_set1_ps,
        _mm256_fmadd_ps,
        _mm256_castps_si256,
        _mm256_add_epi32
    );
    sums!(
        squares_avx512,
        accumulate_avx512,
        "avx512f,avx512vl,avx512dq,avx2,fma",
        __m512,
        __m512i,
        1,
        _mm512_set1_ps,
        _mm512_fmadd_ps,
        _mm512_castps_si512,
        _mm512_add_epi32
    );

    /// A plain loop, compiled for both sets.
    macro_rules! compiled {
        ($avx2:ident, $avx512:ident, $plain:expr, ($($name:ident: $type:ty),*) $(-> $out:ty)?) => {
            #[target_feature(enable = "avx2,fma")]
            pub fn $avx2($($name: $type),*) $(-> $out)? {
                $plain($($name),*)
            }

            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
            pub fn $avx512($($name: $type),*) $(-> $out)? {
                $plain($($name),*)
            }
        };
    }

    compiled!(
        steps_avx2,
        steps_avx512,
        kernel::steps::<true>,
        (row: &RowForms<'_>, scale: f32, bound: i32, out: &mut [i32])
    );
    compiled!(
        scores_avx2,
        scores_avx512,
        gradient::scores::<true>,
        (score: Score, eta: &[f32], labels: &[f32], out: &mut [f32])
    );
    compiled!(
        clip_avx2,
        clip_avx512,
        gradient::clip,
        (clip: &Clip, squares: &[f32], live: usize, factors: &mut [f32]) -> u64
    );
    compiled!(
        mixture_avx2,
        mixture_avx512,
        gradient::mixture::<true>,
        (forms: &[[f32; STRIP_ROWS]; 3]) -> [[f32; STRIP_ROWS]; 2]
    );
    compiled!(
        sanitize_avx2,
        sanitize_avx512,
        gradient::sanitize,
        (values: &mut [f32])
    );

    compiled!(
        network_ratios_avx2,
        network_ratios_avx512,
        network::rows::<true>,
        (function: RowFunction, weights: &[f32], tile: &[Lanes], labels: &Lanes) -> Lanes
    );
    compiled!(
        network_gradients_avx2,
        network_gradients_avx512,
        network_gradient::gradients::<true>,
        (shape: NetworkShape, block: &Block<'_>, scratch: &mut Scratch)
    );
}
