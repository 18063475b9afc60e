//! Passes as text for so many chains and features, straight where a loop would cost: naga guards
//! every turn of a loop, and drivers do not keep arrays that a loop indexes in registers without
//! selecting among them.

use std::fmt::Write;

/// A pass with each line `//= KEYS: text` as often as its keys count, an index in the place of each
/// `{key}`. The first count turns slowest.
pub(super) fn repeat(pass: &str, counts: &[(char, usize)]) -> String {
    let mut out = String::new();
    for line in pass.lines() {
        let marked = line.trim_start().strip_prefix("//= ");
        let Some((keys, text)) = marked.and_then(|l| l.split_once(": ")) else {
            let _ = writeln!(out, "{line}");
            continue;
        };
        let mut texts = vec![format!("{text}\n")];
        for (key, count) in counts.iter().filter(|(key, _)| keys.contains(*key)) {
            let place = format!("{{{key}}}");
            let each = (texts.iter()).flat_map(|t| (0..*count).map(move |i| (t, i.to_string())));
            texts = each.map(|(t, i)| t.replace(&place, &i)).collect();
        }
        out.extend(texts);
    }
    out
}

/// How a pass reads the rows' features, of which it makes forms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features {
    pub features: usize,
    /// Chains T of a tile.
    pub tile: usize,
    /// Forms K of a chain.
    pub forms: usize,
    /// Whether rows are integers of 16 bits, two a word. Then a feature's step comes before its
    /// weights.
    pub packed: bool,
}

impl Features {
    /// Features whose loads are in flight together: few enough for registers, and whole words and
    /// vectors of weights.
    fn block(self) -> usize {
        let few = self.tile <= 2 || self.tile * self.forms <= 8;
        if few { 8 } else { 4 }
    }

    /// Numbers of a feature: its step, if it has one, and its weights.
    pub fn numbers(self) -> usize {
        self.tile * self.forms + usize::from(self.packed)
    }

    /// Vectors of steps and weights.
    pub fn vectors(self) -> usize {
        (self.features * self.numbers()).div_ceil(4)
    }

    /// The pass with its lines `//= features` (a turn of the loop over BLOCKS) and `//= last
    /// features` (what is left) replaced, in which `each` says what else is done with x.
    pub fn fill(self, pass: &str, each: &str) -> String {
        let (turns, rest) = (self.features / self.block(), self.features % self.block());
        let pass = pass
            .replace("//= features\n", &self.some(self.block(), each))
            .replace("//= last features\n", &self.some(rest, each));
        format!("const BLOCKS: u32 = {turns}u;\n{pass}")
    }

    /// Adds the next `count` features to the forms, every load before the first use.
    fn some(self, count: usize, each: &str) -> String {
        // Names of its own.
        let (numbers, mut text) = (self.numbers(), "{\nvar x: vec4<f32>;\n".to_string());
        for word in 0..count.div_ceil(1 + usize::from(self.packed)) {
            let _ = writeln!(text, "let z{word} = rows[at];\nat += quads;");
        }
        for number in 0..count * numbers {
            let (vector, lane) = (number / 4, ["x", "y", "z", "w"][number % 4]);
            if number % 4 == 0 {
                // Not all at once: scalar registers would not hold them.
                let _ = writeln!(text, "let w{vector} = coefficients[w + {vector}u];");
            }
            let (j, place) = (number / numbers, number % numbers);
            if place == 0 {
                let (word, step) = match self.packed {
                    true => (j / 2, format!("w{vector}.{lane}")),
                    false => (j, "1.0".into()),
                };
                let _ = writeln!(text, "x = four_of(z{word}, {j}u, {step});\n{each}");
            }
            // Behind the step.
            if let Some(form) = place.checked_sub(usize::from(self.packed)) {
                let form = format!("f{}_{}", form / self.tile, form % self.tile);
                let _ = writeln!(
                    text,
                    "{form} = fma(vec4<f32>(w{vector}.{lane}), x, {form});"
                );
            }
        }
        let _ = writeln!(text, "w += {}u;\n}}", (count * numbers).div_ceil(4));
        text
    }
}
