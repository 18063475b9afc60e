//! The text of the ratio pass for so many chains and features.

use super::text::{Features, repeat};
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
    /// Whether coefficients are few enough for a uniform buffer.
    pub uniform: bool,
}

impl RatioShape {
    fn read(self) -> Features {
        Features {
            features: self.features,
            tile: self.tile,
            forms: self.function.forms(),
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
        let forms = self.function.forms();
        let constants = self.function.offsets() - forms;
        // Two rows of a long one are too much text for a compiler.
        let rows = match self.function {
            RowFunction::Declared(law) if !law.is_long() => 2,
            RowFunction::Declared(_) | RowFunction::DeclaredRemainder(_) => 1,
            _ => 2,
        };
        let counts = [
            ('r', rows),
            ('c', self.tile),
            ('k', forms),
            ('i', constants),
        ];
        format!(
            "const TILE_VECTORS: u32 = {}u;\nconst WEIGHTS: u32 = {}u;\nconst ROWS_A_TURN: u32 = {rows}u;\n{}",
            self.vectors(),
            self.weights(),
            self.read().fill(&repeat(PASS, &counts), "")
        )
    }
}
