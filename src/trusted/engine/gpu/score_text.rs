//! The text of the gradient pass of scores, for so many chains and features.

use std::fmt::Write;

use super::text::{Features, fill};

const PASS: &str = include_str!("../../../../shaders/gradient_score.wgsl");
/// Parts of a workgroup's rows, at most: few features leave threads idle.
pub(super) const MOST_PARTS: usize = 16;
/// Bits of 1.5·2^23, which is added to every product.
const ROUND_BITS: u32 = 0x4b40_0000;

/// What the text of a pass depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScoreShape {
    /// Chains T of a tile.
    pub tile: usize,
    /// Features of a row.
    pub features: usize,
    /// Whether rows are integers of 16 bits, two a word.
    pub packed: bool,
    /// Threads, each of four rows; a multiple of 16.
    pub workgroup: usize,
    /// Quads that a turn of the loop over rows takes, if there are as many.
    pub straight: usize,
}

impl ScoreShape {
    /// The shape with as many rows a turn as it has best.
    pub fn new(tile: usize, features: usize, packed: bool, workgroup: usize) -> Self {
        ScoreShape {
            tile,
            features,
            packed,
            workgroup,
            straight: if tile <= 2 { 4 } else { 1 },
        }
    }

    fn read(self) -> Features {
        Features {
            forms: self.tile,
            features: self.features,
            block: if self.tile <= 2 { 8 } else { 4 },
            squared: true,
            packed: self.packed,
        }
    }

    /// Vectors of a tile's coefficients.
    pub fn vectors(self) -> usize {
        self.read().vectors()
    }

    /// Parts that the rows of a workgroup are summed in: a power of two.
    pub fn parts(self) -> usize {
        let words = self.features.div_ceil(2).max(1);
        let most = (self.workgroup / words).clamp(1, MOST_PARTS);
        1 << most.ilog2()
    }

    /// Quads of a part.
    fn quads(self) -> usize {
        self.workgroup / self.parts()
    }

    /// Bytes of workgroup memory.
    pub fn shared(self) -> usize {
        self.tile * (16 * self.workgroup + 4)
    }

    /// Constants and pass.
    pub fn source(self) -> (String, String) {
        let (read, quads) = (self.read(), self.quads());
        let straight = self.straight.min(quads);
        let excess = ROUND_BITS.wrapping_mul(4 * quads as u32) as i32;
        let constants = format!(
            "const FEATURES: u32 = {}u;\nconst BLOCKS: u32 = {}u;\nconst PARTS: u32 = {}u;\nconst TURNS: u32 = {}u;\nconst EXCESS: i32 = i32({excess});\n",
            self.features,
            read.turns(),
            self.parts(),
            quads / straight,
        );
        let factor =
            "        factors[#u][lane][r] = row_factor(#u, f#[r], label[r], square[r], live);\n";
        let answer = "        add_answer(slot, #u, 2u * word, a# - EXCESS);\n        if paired {\n            add_answer(slot, #u, 2u * word + 1u, b# - EXCESS);\n        }\n";
        let texts = [
            ("forms", self.each("    var f# = vec4<f32>();\n")),
            ("features", read.turn()),
            ("last features", read.rest()),
            ("factors", self.each(factor)),
            ("first row", self.first_row()),
            (
                "sums",
                self.each("        var a# = 0;\n        var b# = 0;\n"),
            ),
            ("products", self.products(straight)),
            ("answers", self.each(answer)),
        ];
        let text = fill(PASS, &texts);
        (constants, text)
    }

    /// Where the rows of a word begin, and how its features are read.
    fn first_row(self) -> String {
        if !self.packed {
            return "        at = 2u * word * quads + first + part;\n        let next = select(0u, quads, paired);\n".into();
        }
        let mut text = "        at = word * quads + first + part;\n".to_string();
        for (j, name) in ["step_x", "step_y"].iter().enumerate() {
            let number = format!("(2u * word + {j}u) * {}u", self.read().numbers());
            let _ = writeln!(
                text,
                "        let {name} = coefficients[params.coefficients + {number} / 4u][{number} % 4u];"
            );
        }
        text
    }

    /// A line for each chain, whose number is `#`.
    fn each(self, line: &str) -> String {
        (0..self.tile)
            .map(|c| line.replace('#', &c.to_string()))
            .collect()
    }

    /// Adds the integers of so many quads of rows, the loads first.
    fn products(self, straight: usize) -> String {
        let mut text = String::new();
        for i in 0..straight {
            let _ = match self.packed {
                true => writeln!(
                    text,
                    "            let z{i} = rows[at];\n            let x{i} = first_features(z{i}) * step_x;\n            let y{i} = second_features(z{i}) * step_y;"
                ),
                false => writeln!(
                    text,
                    "            let x{i} = rows[at];\n            let y{i} = rows[at + next];"
                ),
            };
            text += "            at += PARTS;\n";
        }
        for i in 0..straight {
            for c in 0..self.tile {
                let _ = writeln!(text, "            let t{i}_{c} = factors[{c}u][place];");
                for (sum, v) in [("a", "x"), ("b", "y")] {
                    let _ = writeln!(
                        text,
                        "            let {sum}{i}_{c} = bitcast<vec4<i32>>(fma({v}{i}, t{i}_{c}, ROUND));"
                    );
                    let _ = writeln!(
                        text,
                        "            {sum}{c} = {sum}{c} + {sum}{i}_{c}.x + {sum}{i}_{c}.y + {sum}{i}_{c}.z + {sum}{i}_{c}.w;"
                    );
                }
            }
            text += "            place += PARTS;\n";
        }
        text
    }
}
