//! An anchor's sums over all rows: the shape of the pass, its coefficients, its answers.
//!
//! `shaders/anchor_sum.wgsl` says how, why a row's part stays within the bounds of
//! [`AnchorSums`] and why no sum overflows. A row's integers may differ by a unit from those of
//! the CPU engine, whose floats are wider and whose gradients have finer features; the sensitivities
//! do not depend on them.

use super::GpuEngine;
use super::pipelines::{EXPRESSION, Program};
use super::submit::{Dispatch, Job, uniform};
use super::text::repeat;
use crate::engine::anchor::{FEATURE_BITS, GRADIENT_BITS, WEIGHT_BITS};
use crate::engine::{AnchorQuery, AnchorSums, EngineError};
use crate::model::{Metric, Score, Slopes};

/// Rows of a workgroup, by preference; 64 is the most whose sums fit.
const WORKGROUPS: [usize; 3] = [64, 32, 16];
/// Parts that a workgroup's rows are summed in, at most: few features leave threads idle.
const MOST_PARTS: usize = 8;
/// Slots of answers: enough that atomic additions hardly meet.
const SLOTS: usize = 64;
/// Additions that one answer takes: the sums of its limbs stay below 2^31.
const MOST_ADDITIONS: usize = 32_767;
/// Bytes of answers, by preference.
const ANSWER_BYTES: usize = 1 << 22;
/// Limbs of 16 bits of an answer.
const LIMBS: usize = 3;
/// The integer ball and the bound of integer weights; twin of the shader's.
const LIMIT: f64 = (1u64 << FEATURE_BITS) as f64;
const _: () = assert!(FEATURE_BITS == WEIGHT_BITS);
/// Integer scores are at most 2^24; twin of the shader's `STEEPEST`.
const SCORE_BITS: u32 = 24;
/// A gradient's units here are coarser than those of [`AnchorSums`] by this power of two.
const GRADIENT_SHIFT: u32 = 2 * GRADIENT_BITS - FEATURE_BITS - SCORE_BITS;

const SUM: &str = include_str!("../../../../shaders/anchor_sum.wgsl");

/// What a declared likelihood's score, of a row that is shortened by `share`, is multiplied by, of
/// rows that are clipped as a whole, with their residuals, or by the larger of two scores; twins of
/// [`Slopes::score_share`].
pub(super) const SCORE_SHARES: [&str; 3] = [
    "1.0",
    "1.0 / share",
    "min(1.0 / share, 1.0 / (unit * max(abs(slopes(eta, 1.0).x), abs(slopes(eta, -1.0).x))))",
];
const INFLUENCE: &str = "fn influence(share: f32, relative: f32, eta: f32, unit: f32) -> vec2<f32>";

/// What the text of an anchor's pass depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AnchorShape {
    pub score: Score,
    /// One of [`SCORE_SHARES`], for declared likelihoods.
    pub by: &'static str,
    pub features: usize,
    /// Whether what lies behind a row's features is an offset.
    pub offset: bool,
    /// Whether rows are integers of 16 bits.
    pub packed: bool,
    /// Rows of a workgroup, at most 64.
    pub workgroup: usize,
}

impl AnchorShape {
    pub fn constants(self) -> String {
        format!(
            "const D: u32 = {}u;\nconst OFFSET: bool = {};\nconst WORKGROUP: u32 = {}u;\nconst PARTS: u32 = {}u;\n",
            self.features,
            self.offset,
            self.workgroup,
            self.parts()
        )
    }

    /// The text after constants and shared pieces.
    pub fn source(self) -> String {
        let model = match self.score {
            Score::Logistic => {
                include_str!("../../../../shaders/model/logistic_slopes.wgsl").into()
            }
            Score::Linear => include_str!("../../../../shaders/model/linear_slopes.wgsl").into(),
            Score::Poisson => include_str!("../../../../shaders/model/poisson_slopes.wgsl").into(),
            Score::Declared(law) => {
                let model = format!("{EXPRESSION}\n{}\n{INFLUENCE}", law.slopes_shader());
                let body = format!("return vec2<f32>({}, 1.0 / share);", self.by);
                format!("{model} {{ {body} }}")
            }
        };
        format!("{model}\n{}", repeat(SUM, &[('r', 4), ('s', 4)]))
    }

    /// Fours of coordinates: features, and the score as one more.
    fn quads(self) -> usize {
        self.features / 4 + 1
    }

    fn parts(self) -> usize {
        let tiles = self.quads() * (self.quads() + 1) / 2;
        (self.workgroup / tiles).clamp(1, MOST_PARTS)
    }

    /// Sums: the curvature's lower triangle, then the gradient.
    fn entries(self) -> usize {
        self.features * (self.features + 3) / 2
    }

    fn slot_bytes(self) -> usize {
        4 * LIMBS * self.entries()
    }

    /// Bytes of workgroup memory.
    fn shared(self) -> usize {
        4 * (4 * self.quads() * (self.workgroup + 1) + self.workgroup)
    }

    /// Bytes of coefficients.
    fn coefficient_bytes(self) -> usize {
        let quads = self.features.div_ceil(4);
        16 * (quads + 2 * quads * (quads + 1) + quads)
    }
}

/// Uniform of an anchor's pass; twin of `AnchorParams` in the shader.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct AnchorParams {
    pub rows: u32,
    pub stride: u32,
    pub slots: u32,
    pub edge: f32,
    pub score_scale: f32,
    pub weight_scale: f32,
}

/// θ*, then M = L⁻¹ 2^14/b in vectors of four rows, in the order that the shader states.
fn coefficients(at: &[f64], metric: &Metric) -> Vec<f32> {
    let d = at.len();
    let quads = d.div_ceil(4);
    let mut out: Vec<f32> = at.iter().map(|v| *v as f32).collect();
    out.resize(4 * quads, 0.0);
    // Made in f64: scaled, its entries are of the size of ordinary numbers.
    let columns: Vec<Vec<f64>> = (0..d)
        .map(|k| {
            let mut column = vec![0.0; d];
            column[k] = LIMIT / metric.row_bound;
            metric.factor.solve(&mut column);
            column
        })
        .collect();
    for first in (0..d).step_by(4) {
        for k in 0..first + 4 {
            out.extend((first..first + 4).map(|j| match columns.get(k) {
                Some(column) if j < d => column[j] as f32,
                _ => 0.0,
            }));
        }
    }
    out
}

impl GpuEngine {
    /// How the device makes these sums; `None` where rows are too wide for workgroup memory or
    /// answers for a binding, and the CPU copy is to.
    pub(super) fn anchor_shape(&self, slopes: &Slopes) -> Option<AnchorShape> {
        if matches!(slopes.score, Score::Declared(law) if !law.has_shader()) {
            return None;
        }
        let own = self
            .limits
            .workgroup
            .map(|w| (w as usize).clamp(1, WORKGROUPS[0]));
        let sizes = own.map_or(WORKGROUPS.to_vec(), |w| vec![w]);
        let most = self.device.limits.max_compute_workgroup_storage_size as usize;
        sizes
            .into_iter()
            .map(|workgroup| AnchorShape {
                score: slopes.score,
                by: SCORE_SHARES
                    [usize::from(slopes.clips_residuals) + usize::from(slopes.weights_scores)],
                features: self.data.features().len(),
                offset: self.data.offset().is_some(),
                packed: !self.steps.is_empty(),
                workgroup,
            })
            .find(|s| {
                s.shared() <= most
                    && s.coefficient_bytes() <= self.binding()
                    && self.anchor_slots(*s) * s.slot_bytes() <= self.binding()
                    // Every chunk may leave a part of a slot's share.
                    && self.chunks.len() <= MOST_ADDITIONS / MOST_PARTS / 2
            })
    }

    /// Slots that the workgroups add to.
    fn anchor_slots(&self, shape: AnchorShape) -> usize {
        let room = ANSWER_BYTES.min(self.binding()) / shape.slot_bytes();
        let groups: usize = self
            .chunks
            .iter()
            .map(|c| c.rows.div_ceil(shape.workgroup))
            .sum();
        let needed = groups.div_ceil(MOST_ADDITIONS / shape.parts() / 2);
        room.clamp(1, SLOTS).max(needed)
    }

    /// The sums over all rows, in one submission.
    pub(super) fn submit_anchor(
        &mut self,
        query: &AnchorQuery<'_>,
        shape: AnchorShape,
    ) -> Result<AnchorSums, EngineError> {
        let slots = self.anchor_slots(shape);
        // Longer rows are shrunk to this: d squares in f32, a root and a quotient may be off by
        // less than the margin.
        let margin = (shape.features + 16) as f64 * 1.2e-7;
        let edge = LIMIT * (1.0 - margin) * self.limits.edge.map_or(1.0, f64::from);
        let units = |bits: u32, bound: f64| ((1u64 << bits) as f64 / bound) as f32;
        let dispatches: Vec<Dispatch> = self
            .chunks
            .iter()
            .enumerate()
            .map(|(index, chunk)| Dispatch {
                program: Program::AnchorSum(shape),
                chunk: index,
                bytes: chunk.bytes(self.words),
                tiles: 1,
                groups: chunk.rows.div_ceil(shape.workgroup) as u32,
                params: uniform(&AnchorParams {
                    rows: chunk.rows as u32,
                    stride: 4 * chunk.quads() as u32,
                    slots: slots as u32,
                    edge: edge as f32,
                    score_scale: units(SCORE_BITS, query.slopes.largest_score),
                    weight_scale: units(WEIGHT_BITS, query.slopes.largest_weight),
                }),
            })
            .collect();
        let mut coefficients = coefficients(query.at, query.metric);
        coefficients.extend(&self.steps);
        let answers = self.submit(&Job {
            coefficients: &coefficients,
            entries: &[],
            dispatches: &dispatches,
            answers: slots * shape.slot_bytes(),
            zeroed: true,
            scratch: 0,
        })?;
        let answers: Vec<[i32; LIMBS]> = bytemuck::pod_collect_to_vec(&answers);
        let mut totals = vec![0i128; shape.entries()];
        for slot in answers.chunks(shape.entries()) {
            for (total, [low, middle, high]) in totals.iter_mut().zip(slot) {
                let high = (i128::from(*high) << 32) + (i128::from(*middle) << 16);
                *total += high + i128::from(*low);
            }
        }
        let mut gradient = totals.split_off(totals.len() - shape.features);
        gradient.iter_mut().for_each(|g| *g <<= GRADIENT_SHIFT);
        Ok(AnchorSums {
            gradient,
            curvature: totals,
            ..AnchorSums::zero(shape.features)
        })
    }
}
