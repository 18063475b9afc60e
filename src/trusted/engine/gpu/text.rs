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
}

impl Features {
    /// Vectors of weights.
    pub fn vectors(self) -> usize {
        (self.features * self.forms).div_ceil(4)
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
        let (forms, mut text) = (self.forms, String::new());
        for j in 0..count {
            let _ = writeln!(text, "            let x{j} = rows[at];");
            text += "            at += quads;\n";
        }
        let vectors = (count * forms).div_ceil(4);
        let mut loaded = 0;
        for j in 0..count {
            if self.squared {
                let _ = writeln!(text, "            square = fma(x{j}, x{j}, square);");
            }
            for f in 0..forms {
                // Not all at once: scalar registers would not hold them.
                let number = j * forms + f;
                if number / 4 == loaded {
                    let _ = writeln!(
                        text,
                        "            let w{loaded} = coefficients[w + {loaded}u];"
                    );
                    loaded += 1;
                }
                let weight = format!("{}.{}", number / 4, LANES[number % 4]);
                let _ = writeln!(
                    text,
                    "            f{f} = fma(vec4<f32>(w{weight}), x{j}, f{f});"
                );
            }
        }
        let _ = writeln!(text, "            w += {vectors}u;");
        // Names of its own.
        format!("            {{\n{text}            }}\n")
    }
}
