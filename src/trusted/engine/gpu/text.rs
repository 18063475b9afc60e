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
    /// Features of a turn, whose loads are in flight together: few enough for registers, and whole
    /// words and vectors of weights.
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

    /// The pass with its lines `//= first features` (loads before the loop), `//= features` (a turn
    /// of the loop over BLOCKS) and `//= last features` (what is left) replaced; `each` says what
    /// else is done with x. Of packed rows a turn loads what the next one takes, so that a thread
    /// does not wait for it (floats would take too many registers); what the last turn loads may be
    /// past the rows, and is not used.
    pub fn fill(self, pass: &str, each: &str) -> String {
        let block = self.block();
        let (turns, rest) = (self.features / block, self.features % block);
        let (mut first, mut turn, mut last) = Default::default();
        match (turns, self.packed) {
            (0, _) => first = self.loads("let z", rest),
            (_, true) => {
                let moved = (0..self.words(block)).map(|word| format!("z{word} = next{word};\n"));
                first = self.loads("var z", block);
                turn = self.loads("let next", block) + &self.some(block, each);
                turn.extend(moved);
            }
            (_, false) => {
                turn = self.loads("let z", block) + &self.some(block, each);
                last = self.loads("let z", rest);
            }
        }
        last += &self.some(rest, each);
        let pass = pass
            .replace("//= first features\n", &first)
            .replace("//= features\n", &turn)
            .replace("//= last features\n", &last);
        format!("const BLOCKS: u32 = {turns}u;\n{pass}")
    }

    /// Words of so many features.
    fn words(self, count: usize) -> usize {
        count.div_ceil(1 + usize::from(self.packed))
    }

    fn loads(self, name: &str, count: usize) -> String {
        let load = |word| format!("{name}{word} = rows[at];\nat += quads;\n");
        (0..self.words(count)).map(load).collect()
    }

    /// Adds the next `count` features, which are loaded, to the forms.
    fn some(self, count: usize, each: &str) -> String {
        // Names of its own.
        let (numbers, mut text) = (self.numbers(), "{\nvar x: vec4<f32>;\n".to_string());
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
