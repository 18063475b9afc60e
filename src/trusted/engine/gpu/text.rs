//! Text that passes share: the forms of a quad of rows, so many features at a time. Straight where
//! a loop would cost: naga guards every turn of a loop, and drivers do not keep arrays that a loop
//! indexes in registers without selecting among them.

use std::fmt::Write;

/// Components of a vector.
pub(super) const LANES: [&str; 4] = ["x", "y", "z", "w"];

/// A pass with each line `//= NAME` replaced by the text of that name.
pub(super) fn fill(pass: &str, texts: &[(&str, String)]) -> String {
    let put = |pass: String, (name, text): &(&str, String)| {
        pass.replace(&format!("//= {name}\n"), text.trim_start())
    };
    texts.iter().fold(pass.to_string(), put)
}

/// How a pass reads features.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features {
    /// Forms of a row.
    pub forms: usize,
    /// Features of a row.
    pub features: usize,
    /// Features whose loads are in flight together: few enough for registers, and so many that
    /// their weights fill vectors.
    pub block: usize,
    /// Whether their squares are added to `square`.
    pub squared: bool,
    /// Whether two features share a word, as integers of 16 bits. Then a feature's step comes
    /// before its weights, and blocks are of whole words.
    pub packed: bool,
}

impl Features {
    /// Numbers of a feature: its weights, and before them its step, if it has one.
    pub fn numbers(self) -> usize {
        self.forms + usize::from(self.packed)
    }

    /// Vectors of weights.
    pub fn vectors(self) -> usize {
        (self.features * self.numbers()).div_ceil(4)
    }

    /// Turns of the loop over features.
    pub fn turns(self) -> usize {
        self.features / self.block
    }

    /// A turn of the loop.
    pub fn turn(self) -> String {
        self.some(self.block)
    }

    /// The features after the last turn.
    pub fn rest(self) -> String {
        self.some(self.features % self.block)
    }

    /// Adds the next `count` features to the forms, every load before the first use.
    fn some(self, count: usize) -> String {
        let (each, mut text) = (self.numbers(), String::new());
        let words = if self.packed {
            count.div_ceil(2)
        } else {
            count
        };
        for k in 0..words {
            let _ = writeln!(text, "            let z{k} = rows[at];");
            text += "            at += quads;\n";
        }
        for number in 0..count * each {
            let (vector, lane) = (number / 4, LANES[number % 4]);
            if lane == LANES[0] {
                // Not all at once: scalar registers would not hold them.
                let _ = writeln!(
                    text,
                    "            let w{vector} = coefficients[w + {vector}u];"
                );
            }
            let (j, f) = (number / each, number % each);
            if f == 0 {
                text += &self.value(j, &format!("w{vector}.{lane}"));
            }
            // Behind the step.
            if let Some(f) = (f + self.forms).checked_sub(each) {
                let _ = writeln!(
                    text,
                    "            f{f} = fma(vec4<f32>(w{vector}.{lane}), x{j}, f{f});"
                );
            }
        }
        let _ = writeln!(text, "            w += {}u;", (count * each).div_ceil(4));
        // Names of its own.
        format!("            {{\n{text}            }}\n")
    }

    /// The values of feature `j` of a block, and their squares.
    fn value(self, j: usize, step: &str) -> String {
        let half = ["first", "second"][j % 2];
        let mut text = match self.packed {
            true => format!(
                "            let x{j} = {half}_features(z{}) * {step};\n",
                j / 2
            ),
            false => format!("            let x{j} = z{j};\n"),
        };
        if self.squared {
            let _ = writeln!(text, "            square = fma(x{j}, x{j}, square);");
        }
        text
    }
}
