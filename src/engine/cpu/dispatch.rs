//! Picks the instruction set at run time. The one place of the library with `unsafe`: calls of
//! functions compiled for a set that was detected first.

use super::gradient::{self, Block, Scratch};
use super::kernel::{self, RowForms};
use super::lanes::Lanes;
use super::network;
#[cfg(target_arch = "x86_64")]
use crate::data::TILE;
use crate::model::NetworkShape;

/// Instruction sets the kernels are compiled for. A value exists only where the
/// machine has the set ([`InstructionSet::available`]), which makes the calls sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstructionSet(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// What the build targets (SSE2 on x86-64, NEON on aarch64).
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
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
        match self.0 {
            Set::Baseline => kernel::forms(weights, offsets, tiles, out),
            // SAFETY: `self` exists only where AVX2 and FMA were detected.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::forms_avx2(weights, offsets, tiles, out) },
            // SAFETY: `self` exists only where these AVX-512 sets, AVX2 and FMA were detected.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::forms_avx512(weights, offsets, tiles, out) },
        }
    }

    /// Quantised gradients of a block of rows.
    pub fn gradients(self, block: &Block<'_>, scratch: &mut Scratch) {
        match self.0 {
            Set::Baseline => gradient::gradients::<false>(block, scratch),
            // SAFETY: as in `forms`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::gradients_avx2(block, scratch) },
            // SAFETY: as in `forms`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::gradients_avx512(block, scratch) },
        }
    }

    /// Ratios of one tile of a network's rows.
    pub(super) fn network_ratios(
        self,
        shape: NetworkShape,
        weights: &[f32],
        tile: &[Lanes],
        labels: &Lanes,
    ) -> Lanes {
        match self.0 {
            Set::Baseline => network::ratios::<false>(shape, weights, tile, labels),
            // SAFETY: as in `forms`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::network_ratios_avx2(shape, weights, tile, labels) },
            // SAFETY: as in `forms`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::network_ratios_avx512(shape, weights, tile, labels) },
        }
    }

    /// Quantised ratios, one a row of `out`.
    pub fn steps(self, row: &RowForms<'_>, scale: f32, bound: i32, out: &mut [i32]) {
        match self.0 {
            Set::Baseline => kernel::steps::<false>(row, scale, bound, out),
            // SAFETY: as in `forms`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::steps_avx2(row, scale, bound, out) },
            // SAFETY: as in `forms`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::steps_avx512(row, scale, bound, out) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, __m512, _mm256_fmadd_ps, _mm256_set1_ps, _mm512_fmadd_ps, _mm512_set1_ps,
    };

    use super::{Block, Lanes, NetworkShape, RowForms, Scratch, TILE, gradient, kernel, network};

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

    #[target_feature(enable = "avx2,fma")]
    pub fn steps_avx2(row: &RowForms<'_>, scale: f32, bound: i32, out: &mut [i32]) {
        kernel::steps::<true>(row, scale, bound, out);
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
    pub fn steps_avx512(row: &RowForms<'_>, scale: f32, bound: i32, out: &mut [i32]) {
        kernel::steps::<true>(row, scale, bound, out);
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn network_ratios_avx2(
        shape: NetworkShape,
        weights: &[f32],
        tile: &[Lanes],
        labels: &Lanes,
    ) -> Lanes {
        network::ratios::<true>(shape, weights, tile, labels)
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
    pub fn network_ratios_avx512(
        shape: NetworkShape,
        weights: &[f32],
        tile: &[Lanes],
        labels: &Lanes,
    ) -> Lanes {
        network::ratios::<true>(shape, weights, tile, labels)
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn gradients_avx2(block: &Block<'_>, scratch: &mut Scratch) {
        gradient::gradients::<true>(block, scratch);
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
    pub fn gradients_avx512(block: &Block<'_>, scratch: &mut Scratch) {
        gradient::gradients::<true>(block, scratch);
    }
}
