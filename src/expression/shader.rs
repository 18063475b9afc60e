//! Programs as shader text: an instruction is a `let`, which drivers keep in registers as they
//! like. Functions with more to them than an operator are in `shaders/expression.wgsl`, by their
//! names.

use std::fmt::Write;

use super::graph::{Binary, Unary};
use super::law::Law;
use super::program::{Operation, Program};

/// Operations from which on rows' chains are not computed side by side: their texts would grow with
/// each, and reading rows once for all of them saves little.
const LONG: usize = 100;

/// What is made of a law's derivatives.
const REMAINDER: &str = include_str!("../../shaders/expression_remainder.wgsl");

impl Operation {
    /// The value, of arguments by their names.
    fn shader(self, [a, b, c]: [&str; 3]) -> String {
        let call = |function: &str| format!("{function}({a})");
        let change = |function: &str| format!("{function}({a}, {b})");
        let operator = |operator: &str| format!("{a} {operator} {b}");
        match self {
            Operation::Number(v) => format!("{:e}f", v as f32),
            Operation::Label => "label".into(),
            Operation::Predictor => "eta".into(),
            Operation::PredictorChange => "delta".into(),
            Operation::Shared(k) => format!("shared{k}"),
            Operation::SharedChange(k) => format!("change{k}"),
            Operation::Unary(function) => match function {
                Unary::Negate => format!("-{a}"),
                Unary::Exp => call("exp_accurate"),
                Unary::ExpM1 => call("exp_m1"),
                Unary::Log => call("ln"),
                Unary::Log1p => call("ln_1p"),
                Unary::Sqrt => call("sqrt"),
                Unary::Softplus => call("softplus"),
                Unary::Sigmoid => call("sigmoid"),
                Unary::LogGamma => call("ln_gamma"),
                Unary::Digamma => call("digamma"),
                Unary::Trigamma => call("trigamma"),
                Unary::LogNormalCdf => call("ln_normal_cdf"),
                Unary::Mills => call("mills"),
            },
            Operation::Binary(operation) => match operation {
                Binary::Add => operator("+"),
                Binary::Subtract => operator("-"),
                Binary::Multiply => operator("*"),
                Binary::Divide => operator("/"),
                Binary::SoftplusChange => change("softplus_difference"),
                Binary::LogGammaChange => change("ln_gamma_change"),
                Binary::LogNormalCdfChange => change("ln_normal_cdf_change"),
            },
            Operation::Choose => format!("select({c}, {b}, {a} > 0.0)"),
        }
    }

    /// Operations of a row that it takes, about.
    fn cost(self) -> usize {
        match self {
            Operation::Unary(Unary::Negate | Unary::Sqrt) => 1,
            Operation::Unary(Unary::LogGamma | Unary::Digamma | Unary::Trigamma) => 60,
            Operation::Unary(Unary::LogNormalCdf | Unary::Mills) => 40,
            Operation::Unary(_) => 15,
            Operation::Binary(Binary::SoftplusChange) => 40,
            Operation::Binary(Binary::LogGammaChange) => 150,
            Operation::Binary(Binary::LogNormalCdfChange) => 300,
            _ => 1,
        }
    }
}

impl Program {
    fn cost(&self) -> usize {
        self.instructions.iter().map(|i| i.operation.cost()).sum()
    }

    /// A function of `label`, `eta` and `parameters`.
    fn shader(&self, name: &str, parameters: &[String]) -> String {
        let parameters: String = parameters.iter().map(|p| format!(", {p}: f32")).collect();
        let mut text = format!("fn {name}(label: f32, eta: f32{parameters}) -> f32 {{\n");
        // The instruction whose value a slot holds.
        let mut slots = [0; 1 + u8::MAX as usize];
        for (n, instruction) in self.instructions.iter().enumerate() {
            let names = instruction
                .from
                .map(|slot| format!("v{}", slots[usize::from(slot)]));
            let value = instruction
                .operation
                .shader([&names[0], &names[1], &names[2]]);
            let _ = writeln!(text, "    let v{n} = {value};");
            slots[usize::from(instruction.to)] = n;
        }
        let _ = writeln!(text, "    return v{};\n}}", slots[usize::from(self.result)]);
        text
    }
}

impl Law {
    /// Whether a row is so much work that chains had better go one by one.
    pub(crate) fn is_long(self) -> bool {
        self.parts().change.cost() > LONG
    }

    /// Names of one value a shared parameter.
    fn named(self, name: &str) -> Vec<String> {
        (0..self.shared().len())
            .map(|k| format!("{name}{k}"))
            .collect()
    }

    /// `row_ratio` of a ratio pass: of the forms η and Δη, then φ and Δφ.
    pub(crate) fn ratio_shader(self) -> String {
        let moved = [
            vec!["delta".into()],
            self.named("shared"),
            self.named("change"),
        ]
        .concat();
        let change = self.parts().change.shader("law_change", &moved);
        let forms: Vec<String> = (1..=moved.len()).map(|k| format!("forms[{k}]")).collect();
        format!(
            "{change}
fn row_ratio(forms: array<f32, K + C>, label: f32) -> f32 {{
    let value = law_change(label, forms[0], {});
    // A predictor that is no number makes no ratio.
    return select(value, forms[0] + forms[1], is_nan(forms[0]) || is_nan(forms[1]));
}}
",
            forms.join(", ")
        )
    }

    /// `row_ratio` of what an expansion leaves over: of the forms η*, t and δ, the largest weight,
    /// and the distance from η* up to which an integral is the better way.
    ///
    /// What is left of a change is `∫ G(a)` from t to t + δ, `G(a) = s(η*+a) − s(η*) + w a`, and
    /// `G(a) = a² ∫ (1−v) s''(η* + va) dv` over [0, 1]: near η* by Gauss–Legendre and Gauss–Jacobi
    /// points, without cancellation; further off by the change itself.
    pub(crate) fn remainder_shader(self) -> String {
        let parts = self.parts();
        let third = parts.third.as_ref().map(|p| p.shader("law_third", &[]));
        format!(
            "{}{}{}{}{REMAINDER}",
            parts.change.shader("law_change", &["delta".into()]),
            parts.score_programs[0].shader("law_score", &[]),
            parts.bends[0].shader("law_bend", &[]),
            // Nobody asks for one without.
            third.unwrap_or_default()
        )
    }

    /// `scores` of a gradient pass: of η, then of the shared parameters.
    pub(crate) fn scores_shader(self) -> String {
        let names = self.named("shared");
        let shared: String = (0..names.len())
            .map(|k| format!(", parameters[{k}]"))
            .collect();
        let (mut programs, mut scores) = (String::new(), Vec::new());
        for (k, program) in self.parts().score_programs.iter().enumerate() {
            programs += &program.shader(&format!("law_score{k}"), &names);
            scores.push(format!("law_score{k}(label, eta{shared})"));
        }
        format!(
            "{programs}
fn scores(eta: f32, label: f32, parameters: array<f32, S + 1u>) -> array<f32, S + 1u> {{
    return array<f32, S + 1u>({});
}}
",
            scores.join(", ")
        )
    }

    /// `score` of a likelihood without shared parameters.
    pub(crate) fn score_shader(self) -> String {
        let program = self.parts().score_programs[0].shader("law_score", &[]);
        format!(
            "{program}
fn score(eta: f32, label: f32) -> f32 {{
    return law_score(label, eta);
}}
"
        )
    }

    /// `slopes` of a likelihood without shared parameters: first derivative in η, minus the second.
    pub(crate) fn slopes_shader(self) -> String {
        let parts = self.parts();
        let score = parts.score_programs[0].shader("law_score", &[]);
        let bend = parts.bends[0].shader("law_bend", &[]);
        format!(
            "{score}{bend}
fn slopes(eta: f32, label: f32) -> vec2<f32> {{
    return vec2<f32>(law_score(label, eta), -law_bend(label, eta));
}}
"
        )
    }
}
