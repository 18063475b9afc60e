//! The text of the ratio pass for so many chains and features, straight where a loop would cost:
//! naga guards every turn of a loop, and drivers do not keep arrays that a loop indexes in
//! registers without selecting among them.

use std::fmt::Write;

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
}

impl RatioShape {
    /// K·T forms of a row and a tile.
    fn forms(self) -> usize {
        self.function.forms() * self.tile
    }

    /// Features whose loads are in flight together: few enough for registers, and so many that
    /// their weights fill vectors.
    fn block(self) -> usize {
        if self.tile <= 2 { 8 } else { 4 }
    }

    /// Vectors of a tile's coefficients before its weights: scales, bounds, offsets, constants.
    fn weights(self) -> usize {
        let offsets = self.function.offsets() * self.tile;
        (2 * self.tile + offsets).div_ceil(4)
    }

    /// Vectors of a tile's coefficients.
    pub fn vectors(self) -> usize {
        self.weights() + (self.features * self.forms()).div_ceil(4)
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
        let blocks = self.features / self.block();
        let rest = self.features % self.block();
        let text = PASS
            .replace("    //= sums\n", &self.sums())
            .replace("        //= offsets\n", &self.offsets())
            .replace(
                "            //= features\n",
                &self.some_features(self.block()),
            )
            .replace("        //= last features\n", &self.some_features(rest))
            .replace("            //= ratios\n", &self.ratios())
            .replace("    //= add\n", &self.add());
        format!(
            "const BLOCKS: u32 = {blocks}u;\nconst TILE_VECTORS: u32 = {}u;\nconst WEIGHTS: u32 = {}u;\n{text}",
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

    /// Adds the next `count` features to the forms, every load before the first use.
    fn some_features(self, count: usize) -> String {
        let (forms, mut text) = (self.forms(), String::new());
        for j in 0..count {
            let _ = writeln!(text, "            let x{j} = rows[at];");
            text += "            at += quads;\n";
        }
        let vectors = (count * forms).div_ceil(4);
        let mut loaded = 0;
        for i in 0..count * forms {
            if i / 4 == loaded {
                let _ = writeln!(
                    text,
                    "            let w{loaded} = coefficients[w + {loaded}u];"
                );
                loaded += 1;
            }
            let (j, f) = (i / forms, i % forms);
            let _ = writeln!(
                text,
                "            f{f} = fma(vec4<f32>(w{}.{}), x{j}, f{f});",
                i / 4,
                LANES[i % 4]
            );
        }
        let _ = writeln!(text, "            w += {vectors}u;");
        // Names of its own.
        format!("            {{\n{text}            }}\n")
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

/// Components of a vector.
const LANES: [&str; 4] = ["x", "y", "z", "w"];
