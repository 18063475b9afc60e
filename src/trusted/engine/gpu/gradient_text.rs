//! The text of gradient passes, and what it depends on.

use super::ROWS_PER_THREAD;
use super::pipelines::EXPRESSION;
use super::text::{Features, repeat};
use crate::engine::gradient::LARGEST_FACTOR;
use crate::model::{GradientFunction, Score};

/// Coordinates that a pass of forms sums at a time; twin of the shader's.
pub(super) const SLAB: usize = 16;
/// Features that a thread of a pass of scores sums; twin of the shader's.
pub(super) const SPAN: usize = 4;
/// Parts of its rows, at most: few features leave threads idle.
pub(super) const MOST_PARTS: usize = 16;
/// Bits of 1.5·2^23, which is added to every product.
const ROUND_BITS: u32 = 0x4b40_0000;

const CLIP: &str = include_str!("../../../../shaders/gradient_clip.wgsl");
const CLIP_FACTOR: &str = include_str!("../../../../shaders/clip_factor.wgsl");
const SCORE: &str = include_str!("../../../../shaders/gradient_score.wgsl");
const SHARED: &str = include_str!("../../../../shaders/gradient_shared.wgsl");
const FORMS: &str = include_str!("../../../../shaders/gradient_forms.wgsl");
const SUM: &str = include_str!("../../../../shaders/gradient_sum.wgsl");
const LOGISTIC: &str = include_str!("../../../../shaders/model/logistic_score.wgsl");
const LINEAR: &str = include_str!("../../../../shaders/model/linear_score.wgsl");
const POISSON: &str = include_str!("../../../../shaders/model/poisson_score.wgsl");
const AFFINE: &str = include_str!("../../../../shaders/model/affine_gradient.wgsl");
const MIXTURE: &str = include_str!("../../../../shaders/model/mixture_gradient.wgsl");

/// Scores where the only one is that of η.
const ONLY_SCORE: &str =
    "fn scores(eta: f32, label: f32, parameters: array<f32, S + 1u>) -> array<f32, S + 1u> {
    return array<f32, S + 1u>(score(eta, label));
}";

/// What the text of a gradient pass depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GradientShape {
    pub function: GradientFunction,
    /// Chains T of one read of the rows.
    pub tile: usize,
    pub features: usize,
    /// Whether what lies behind a row's features is an offset.
    pub offset: bool,
    /// Whether rows are integers of 16 bits.
    pub packed: bool,
    /// Threads, a multiple of [`SLAB`]: of one row each, or of four in a pass of scores.
    pub workgroup: usize,
    /// Vectors of four coordinates that a row of forms keeps in workgroup memory; 0: none.
    pub kept: usize,
    /// Quads that a turn of the loop over rows takes in a pass of scores, at most: a power of two.
    pub straight: usize,
}

/// The text of a row's clip factor.
pub(super) fn clip_factor() -> String {
    format!("const LARGEST_FACTOR: f32 = {LARGEST_FACTOR:e}f;\n{CLIP_FACTOR}")
}

/// How a row's gradient is made, and held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A score times the row: a factor is held, of the row's norm.
    Score,
    /// A score times the row's features, and the scores of so many shared parameters.
    Shared(usize),
    /// By affine forms.
    Forms,
}

/// The text of a model's score.
fn score(score: Score) -> String {
    match score {
        Score::Logistic => LOGISTIC.into(),
        Score::Linear => LINEAR.into(),
        Score::Poisson => POISSON.into(),
        Score::Declared(law) => format!("{EXPRESSION}\n{}", law.score_shader()),
    }
}

impl GradientShape {
    pub fn way(self) -> Way {
        match self.function {
            GradientFunction::Score(_) if !self.offset => Way::Score,
            GradientFunction::Score(_) => Way::Shared(0),
            GradientFunction::Declared(law) => Way::Shared(law.shared().len()),
            // (Networks have other passes.)
            GradientFunction::Affine
            | GradientFunction::Mixture
            | GradientFunction::Network(_)
            | GradientFunction::Layers(_) => Way::Forms,
        }
    }

    /// The constants, and the text after shared pieces.
    pub fn source(self) -> (String, String) {
        let mut constants = format!(
            "const T: u32 = {}u;\nconst WORKGROUP: u32 = {}u;\nconst KEEP: bool = {};\nconst KEPT: u32 = {}u;\n",
            self.tile,
            self.workgroup,
            self.kept > 0,
            self.kept.max(1)
        );
        let model = match self.function {
            GradientFunction::Score(of) => score(of),
            GradientFunction::Declared(law) => format!("{EXPRESSION}\n{}", law.scores_shader()),
            GradientFunction::Affine => AFFINE.into(),
            GradientFunction::Mixture => MIXTURE.into(),
            // No shape is made for them; an empty text would not compile.
            GradientFunction::Network(_) | GradientFunction::Layers(_) => String::new(),
        };
        let text = match self.way() {
            Way::Score => self.scores(),
            Way::Shared(parameters) => {
                constants += &format!("const S: u32 = {parameters}u;\n");
                let only = match self.function {
                    GradientFunction::Score(_) => ONLY_SCORE,
                    _ => "",
                };
                let shared = repeat(SHARED, &[('c', self.tile)]);
                format!("{only}\n{shared}\n{SUM}")
            }
            Way::Forms => format!("{FORMS}\n{SUM}"),
        };
        (
            constants,
            format!("{CLIP}\n{}\n{model}\n{text}", clip_factor()),
        )
    }

    /// Parts that the rows of a pass of scores are summed in: a power of two.
    fn parts(self) -> usize {
        let most = self.workgroup / self.features.div_ceil(SPAN).max(1);
        1 << most.clamp(1, MOST_PARTS).ilog2()
    }

    /// A pass of scores, after its constants.
    fn scores(self) -> String {
        let quads = self.workgroup / self.parts();
        let straight = self.straight.min(1 << quads.trailing_zeros());
        let counts = [('i', straight), ('c', self.tile), ('k', SPAN)];
        let read = Features {
            features: self.features,
            tile: self.tile,
            forms: 1,
            packed: self.packed,
        };
        format!(
            "const FEATURES: u32 = {}u;\nconst PARTS: u32 = {}u;\nconst STRAIGHT: u32 = {straight}u;\nconst TURNS: u32 = {}u;\nconst EXCESS: i32 = i32({});\n{}",
            self.features,
            self.parts(),
            quads / straight,
            ROUND_BITS.wrapping_mul(4 * quads as u32) as i32,
            read.fill(&repeat(SCORE, &counts), "square = fma(x, x, square);"),
        )
    }

    /// How often a workgroup of a pass of scores takes [`rows`](Self::rows), one after the other,
    /// of so many rows and with so many workgroups wanted.
    pub fn shares(self, rows: usize, groups: usize) -> usize {
        let fours = self.features.div_ceil(SPAN);
        if self.way() != Way::Score || fours * self.parts() > self.workgroup {
            return 1;
        }
        let most = (ROWS_PER_THREAD * self.parts() / self.rows()).max(1);
        (rows / (groups * self.rows())).clamp(1, most)
    }

    /// Rows of a workgroup, of one share.
    pub fn rows(self) -> usize {
        match self.way() {
            Way::Score => 4 * self.workgroup,
            Way::Shared(_) | Way::Forms => self.workgroup,
        }
    }

    /// Bytes of workgroup memory.
    pub fn shared(self) -> usize {
        let steps = 4 * SLAB * (self.workgroup + self.workgroup / SLAB);
        let counts = 4 * self.tile * (SLAB + 1);
        match self.way() {
            Way::Score => self.tile * (16 * self.workgroup + 4),
            Way::Shared(parameters) => {
                steps + counts + 4 * self.tile * (parameters + 1) * self.workgroup
            }
            Way::Forms => steps + counts + 16 * self.kept.max(1) * self.workgroup,
        }
    }

    /// Vectors of a tile's coefficients, of rows whose gradient has d coordinates.
    pub fn vectors(self, dim: usize) -> usize {
        let steps = if self.packed { self.features } else { 0 };
        match self.way() {
            Way::Score => (self.features * self.tile + steps).div_ceil(4),
            Way::Shared(parameters) => {
                (self.tile * (parameters + self.features) + steps).div_ceil(4)
            }
            Way::Forms => self.tile * dim.div_ceil(4) * (self.features + 1) + steps.div_ceil(4),
        }
    }
}
