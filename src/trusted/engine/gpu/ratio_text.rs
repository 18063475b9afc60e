//! The text of the ratio pass for so many chains and features.

use std::fmt::Write;

use super::text::{Features, LANES, fill};
use crate::model::RowFunction;

const PASS: &str = include_str!("../../../../shaders/ratio_sum.wgsl");

/// What the text of a ratio pass depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RatioShape {
    pub function: RowFunction,
    /// Chains T of a tile.
    pub tile: usize,
    /// Features of a row.
    pub features: usize,
    /// Whether rows are integers of 16 bits, two a word.
    pub packed: bool,
}

impl RatioShape {
    /// K·T forms of a row and a tile.
    fn forms(self) -> usize {
        self.function.forms() * self.tile
    }

    fn read(self) -> Features {
        Features {
            forms: self.forms(),
            features: self.features,
            block: if self.tile <= 2 { 8 } else { 4 },
            squared: false,
            packed: self.packed,
        }
    }

    /// Vectors of a tile's coefficients before its weights: scales, bounds, offsets, constants.
    fn weights(self) -> usize {
        let offsets = self.function.offsets() * self.tile;
        (2 * self.tile + offsets).div_ceil(4)
    }

    /// Vectors of a tile's coefficients.
    pub fn vectors(self) -> usize {
        self.weights() + self.read().vectors()
    }

    /// A tile's coefficients in their places: what comes before the weights, and the weights.
    pub fn place(self, mut head: Vec<f32>, weights: Vec<f32>) -> Vec<f32> {
        head.resize(4 * self.weights(), 0.0);
        head.extend(weights);
        head.resize(4 * self.vectors(), 0.0);
        head
    }

    /// Constants and pass.
    pub fn source(self) -> String {
        let texts = [
            ("sums", self.sums()),
            ("offsets", self.offsets()),
            ("features", self.read().turn()),
            ("last features", self.read().rest()),
            ("ratios", self.ratios()),
            ("add", self.add()),
        ];
        let text = fill(PASS, &texts);
        format!(
            "const BLOCKS: u32 = {}u;\nconst TILE_VECTORS: u32 = {}u;\nconst WEIGHTS: u32 = {}u;\n{text}",
            self.read().turns(),
            self.vectors(),
            self.weights()
        )
    }

    /// The f-th number before the weights.
    fn head(f: usize) -> String {
        format!("coefficients[head + {}u].{}", f / 4, LANES[f % 4])
    }

    fn sums(self) -> String {
        let each = (0..self.tile).map(|c| format!("    var sum{c} = 0;\n    var hits{c} = 0;\n"));
        each.collect()
    }

    fn offsets(self) -> String {
        let each = (0..self.forms()).map(|f| {
            let offset = Self::head(2 * self.tile + f);
            format!("        var f{f} = vec4<f32>({offset});\n")
        });
        each.collect()
    }

    /// Ratios of row r of the quad, chain by chain.
    fn ratios(self) -> String {
        let (k, t) = (self.function.forms(), self.tile);
        let constants = self.function.offsets() - k;
        let mut text = String::new();
        for c in 0..t {
            let (scale, bound) = (Self::head(c), Self::head(t + c));
            let forms = (0..k).map(|k| format!("f{}[r]", k * t + c));
            let constants = (0..constants).map(|i| Self::head((2 + k + i) * t + c));
            let all: Vec<String> = forms.chain(constants).collect();
            let _ = writeln!(text, "            let bound{c} = i32({bound});");
            let _ = writeln!(
                text,
                "            let q{c} = quantize(row_ratio(array<f32, K + C>({}), label[r]) * {scale}, bound{c});",
                all.join(", ")
            );
            let _ = writeln!(text, "            sum{c} += select(0, q{c}, live);");
            let _ = writeln!(
                text,
                "            hits{c} += select(0, 1, live && abs(q{c}) == bound{c});"
            );
        }
        text
    }

    fn add(self) -> String {
        let each = (0..self.tile).map(|c| {
            format!(
                "    atomicAdd(&low[{c}u], low_half(sum{c}));\n    atomicAdd(&high[{c}u], high_half(sum{c}));\n    atomicAdd(&saturated[{c}u], hits{c});\n"
            )
        });
        each.collect()
    }
}
