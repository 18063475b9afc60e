//! From a text to a graph: `if(y > 0, -log1p_exp(-eta), -log1p_exp(eta))`.

use super::graph::{Graph, Id, Node, Unary};

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}, at character {place} of '{text}'")]
pub struct ParseError {
    /// The expression.
    pub text: String,
    /// Character at fault, from 1.
    pub place: usize,
    /// What is wrong and what to do next.
    pub what: String,
}

/// Functions of one argument, by the names of Stan where it has them.
pub const FUNCTIONS: [(&str, &str); 9] = [
    ("exp", "e^u"),
    ("expm1", "e^u − 1"),
    ("log", "natural logarithm"),
    ("log1p", "log(1 + u)"),
    ("sqrt", "square root"),
    ("log1p_exp", "log(1 + e^u)"),
    ("inv_logit", "1/(1 + e^−u)"),
    ("lgamma", "log Γ(u)"),
    (
        "std_normal_lcdf",
        "log Φ(u), Φ the standard normal distribution function",
    ),
];

const NAMED: [Unary; 9] = [
    Unary::Exp,
    Unary::ExpM1,
    Unary::Log,
    Unary::Log1p,
    Unary::Sqrt,
    Unary::Softplus,
    Unary::Sigmoid,
    Unary::LogGamma,
    Unary::LogNormalCdf,
];

/// Longest text that is read, in characters, and deepest nesting.
const LONGEST: usize = 4096;
const DEEPEST: usize = 64;

/// What a name in an expression stands for, beside `y` and `eta`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Named {
    /// A shared parameter, by its number.
    Shared(usize),
    /// A number.
    Number(f64),
}

/// Reads `text`; `names`: what may be named beside `y`, `eta` and the functions.
///
/// # Errors
/// [`ParseError`] with the character.
pub(crate) fn parse(
    graph: &mut Graph,
    text: &str,
    names: &[(String, Named)],
) -> Result<Id, ParseError> {
    let mut parser = Parser {
        text,
        characters: text.chars().collect(),
        at: 0,
        depth: 0,
        names,
        graph,
    };
    if parser.characters.len() > LONGEST {
        return Err(parser.wrong(
            LONGEST,
            format!("an expression has at most {LONGEST} characters"),
        ));
    }
    let root = parser.sum()?;
    match parser.peek() {
        None => Ok(root),
        Some(c) => Err(parser.here(format!("'{c}' is not expected"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    characters: Vec<char>,
    at: usize,
    depth: usize,
    names: &'a [(String, Named)],
    graph: &'a mut Graph,
}

impl Parser<'_> {
    fn wrong(&self, at: usize, what: impl Into<String>) -> ParseError {
        ParseError {
            text: self.text.chars().take(LONGEST).collect(),
            place: at + 1,
            what: what.into(),
        }
    }

    fn here(&self, what: impl Into<String>) -> ParseError {
        self.wrong(self.at, what)
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        while self
            .characters
            .get(self.at)
            .is_some_and(|c| c.is_whitespace())
        {
            self.at += 1;
        }
        self.characters.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), ParseError> {
        match (self.take(wanted), self.peek()) {
            (true, _) => Ok(()),
            (false, Some(c)) => Err(self.here(format!("'{wanted}' is expected, not '{c}'"))),
            (false, None) => Err(self.here(format!("'{wanted}' is expected, not the end"))),
        }
    }

    /// Terms, added and subtracted.
    fn sum(&mut self) -> Result<Id, ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.here(format!("nested more than {DEEPEST} deep")));
        }
        let mut left = self.product()?;
        loop {
            if self.take('+') {
                let right = self.product()?;
                left = self.graph.add(left, right);
            } else if self.take('-') {
                let right = self.product()?;
                left = self.graph.subtract(left, right);
            } else {
                self.depth -= 1;
                return Ok(left);
            }
        }
    }

    /// Factors, multiplied and divided.
    fn product(&mut self) -> Result<Id, ParseError> {
        let mut left = self.signed()?;
        loop {
            if self.take('*') {
                let right = self.signed()?;
                left = self.graph.multiply(left, right);
            } else if self.take('/') {
                let right = self.signed()?;
                left = self.graph.divide(left, right);
            } else {
                return Ok(left);
            }
        }
    }

    /// Signs bind less than powers: −2^2 is −4.
    fn signed(&mut self) -> Result<Id, ParseError> {
        let mut negative = false;
        while matches!(self.peek(), Some('-' | '+')) {
            negative ^= self.take('-');
            self.take('+');
        }
        let value = self.power()?;
        Ok(if negative {
            self.graph.negate(value)
        } else {
            value
        })
    }

    /// Whole powers up to ±64; others are written with exp and log.
    fn power(&mut self) -> Result<Id, ParseError> {
        let base = self.atom()?;
        if !self.take('^') {
            return Ok(base);
        }
        let start = self.at;
        let negative = self.take('-');
        let exponent = self.atom()?;
        let whole = self
            .graph
            .value(exponent)
            .filter(|v| v.fract() == 0.0 && v.abs() <= 64.0);
        let Some(count) = whole else {
            return Err(self.wrong(
                start,
                "powers are whole numbers from -64 to 64; write exp(a * log(u)) for others",
            ));
        };
        let mut value = self.graph.number(1.0);
        for _ in 0..count.abs() as usize {
            value = self.graph.multiply(value, base);
        }
        if negative != (count < 0.0) {
            let one = self.graph.number(1.0);
            value = self.graph.divide(one, value);
        }
        Ok(value)
    }

    fn atom(&mut self) -> Result<Id, ParseError> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let inside = self.sum()?;
                self.expect(')')?;
                Ok(inside)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.named(),
            Some(c) => Err(self.here(format!("a number, a name or '(' is expected, not '{c}'"))),
            None => Err(self.here("a number, a name or '(' is expected, not the end")),
        }
    }

    fn number(&mut self) -> Result<Id, ParseError> {
        let start = self.at;
        let mut digits = String::new();
        while let Some(&c) = self.characters.get(self.at) {
            let exponent = digits.ends_with(['e', 'E']);
            if !(c.is_ascii_digit()
                || c == '.'
                || c == 'e'
                || c == 'E'
                || exponent && "+-".contains(c))
            {
                break;
            }
            digits.push(c);
            self.at += 1;
        }
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(self.graph.number(value)),
            _ => Err(self.wrong(start, format!("'{digits}' is not a number"))),
        }
    }

    fn named(&mut self) -> Result<Id, ParseError> {
        let start = self.at;
        let mut name = String::new();
        while let Some(&c) = self.characters.get(self.at) {
            if !(c.is_alphanumeric() || c == '_') {
                break;
            }
            name.push(c);
            self.at += 1;
        }
        if name == "if" {
            return self.choice();
        }
        if let Some(k) = FUNCTIONS.iter().position(|(f, _)| *f == name) {
            self.expect('(')?;
            let inside = self.sum()?;
            self.expect(')')?;
            return Ok(self.graph.unary(NAMED[k], inside));
        }
        match name.as_str() {
            "y" => return Ok(self.graph.push(Node::Label)),
            "eta" => return Ok(self.graph.push(Node::Predictor)),
            _ => {}
        }
        match self.names.iter().find(|(n, _)| *n == name) {
            Some((_, Named::Shared(k))) => Ok(self.graph.push(Node::Shared(*k))),
            Some((_, Named::Number(v))) => Ok(self.graph.number(*v)),
            None => {
                let functions: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
                Err(self.wrong(
                    start,
                    format!(
                        "'{name}' is not known: y is the label, eta the linear predictor; other names are declared in [model.parameters] or [model.constants]; functions are if, {}",
                        functions.join(", ")
                    ),
                ))
            }
        }
    }

    /// `(a > b, then, else)`, the comparison of labels and numbers.
    fn choice(&mut self) -> Result<Id, ParseError> {
        self.expect('(')?;
        let start = self.at;
        let left = self.sum()?;
        let mut sign = String::new();
        while let Some(c @ ('<' | '>' | '=' | '!')) = self.peek() {
            sign.push(c);
            self.at += 1;
        }
        if sign.is_empty() {
            return Err(self.here("if needs a comparison of the label: if(y > 0, a, b)"));
        }
        let right = self.sum()?;
        let (over, under) = (
            self.graph.subtract(left, right),
            self.graph.subtract(right, left),
        );
        if !self.graph.is_fixed(over) {
            return Err(self.wrong(
                start,
                "if compares the label with numbers: a likelihood that jumps in a parameter has no slope",
            ));
        }
        self.expect(',')?;
        let first = self.sum()?;
        self.expect(',')?;
        let second = self.sum()?;
        self.expect(')')?;
        let graph = &mut *self.graph;
        Ok(match sign.as_str() {
            ">" => graph.choose(over, first, second),
            "<" => graph.choose(under, first, second),
            ">=" => graph.choose(under, second, first),
            "<=" => graph.choose(over, second, first),
            "==" | "!=" => {
                let (equal, other) = match sign.as_str() {
                    "==" => (first, second),
                    _ => (second, first),
                };
                let low = graph.choose(under, other, equal);
                graph.choose(over, other, low)
            }
            _ => {
                return Err(self.wrong(start, "comparisons are >, <, >=, <=, == and !="));
            }
        })
    }
}
