//! The text of the gradient pass of scores, for so many chains and features.

use std::fmt::Write;

use super::text::{Features, fill};

const PASS: &str = include_str!("../../../../shaders/gradient_score.wgsl");
/// Parts of a workgroup's rows, at most: few features leave threads idle.
pub(super) const MOST_PARTS: usize = 16;
/// Features that a thread sums.
pub(super) const SPAN: usize = 4;
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
        let spans = self.features.div_ceil(SPAN).max(1);
        let most = (self.workgroup / spans).clamp(1, MOST_PARTS);
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
        let answer = "        if j + %u < FEATURES {\n            add_answer(slot, #u, j + %u, s%_# - EXCESS);\n        }\n";
        let texts = [
            ("forms", self.each("    var f# = vec4<f32>();\n")),
            ("features", read.turn()),
            ("last features", read.rest()),
            ("factors", self.each(factor)),
            ("columns", self.columns()),
            ("sums", self.sums("        var s%_# = 0;\n")),
            ("products", self.products(straight)),
            ("answers", self.sums(answer)),
        ];
        let text = fill(PASS, &texts);
        (constants, text)
    }

    /// A line for each chain, whose number is `#`.
    fn each(self, line: &str) -> String {
        let chains = (0..self.tile).map(|c| line.replace('#', &c.to_string()));
        chains.collect()
    }

    /// A line for each sum of a thread: of feature `%` and chain `#`.
    fn sums(self, line: &str) -> String {
        let features = (0..SPAN).map(|k| self.each(&line.replace('%', &k.to_string())));
        features.collect()
    }

    /// Features of a word.
    fn per_word(self) -> usize {
        1 + usize::from(self.packed)
    }

    /// Where the rows of a thread's words begin, and their features' steps. A word past the last is
    /// the first one again.
    fn columns(self) -> String {
        let per = self.per_word();
        let mut text = format!("        at = j / {per}u * quads + first + part;\n");
        for k in (0..SPAN).step_by(per) {
            let _ = writeln!(
                text,
                "        let next{k} = select(0u, {}u * quads, j + {k}u < FEATURES);",
                k / per
            );
        }
        for k in (0..SPAN).filter(|_| self.packed) {
            let number = format!("(j + {k}u) * {}u", self.read().numbers());
            let _ = writeln!(
                text,
                "        let step{k} = coefficients[params.coefficients + {number} / 4u][{number} % 4u];"
            );
        }
        text
    }

    /// Adds the integers of so many quads of rows, the loads first.
    fn products(self, straight: usize) -> String {
        let (per, mut text) = (self.per_word(), String::new());
        for i in 0..straight {
            for k in (0..SPAN).step_by(per) {
                let _ = writeln!(text, "            let z{i}_{k} = rows[at + next{k}];");
            }
            text += "            at += PARTS;\n";
        }
        for i in 0..straight {
            for k in 0..SPAN {
                let z = format!("z{i}_{}", k / per * per);
                let half = ["first", "second"][k % 2];
                let _ = match self.packed {
                    true => writeln!(
                        text,
                        "            let x{i}_{k} = {half}_features({z}) * step{k};"
                    ),
                    false => writeln!(text, "            let x{i}_{k} = {z};"),
                };
            }
            for c in 0..self.tile {
                let _ = writeln!(text, "            let t{i}_{c} = factors[{c}u][place];");
                for k in 0..SPAN {
                    let q = format!("q{i}_{k}_{c}");
                    let _ = writeln!(
                        text,
                        "            let {q} = bitcast<vec4<i32>>(fma(x{i}_{k}, t{i}_{c}, ROUND));\n            s{k}_{c} = s{k}_{c} + {q}.x + {q}.y + {q}.z + {q}.w;"
                    );
                }
            }
            text += "            place += PARTS;\n";
        }
        text
    }
}
