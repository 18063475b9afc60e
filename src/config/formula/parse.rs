//! From a formula's words to sums and products of terms.

use super::Wrong;
use super::token::{Token, Word, tokens};
use crate::config::schema::IndicatorEntry;
use crate::data::Transform;

/// Deepest nesting of parentheses, and highest power.
const DEEPEST: usize = 64;
const HIGHEST: f64 = 10.0;

/// A formula as it is written.
#[derive(Debug)]
pub(super) struct Formula {
    /// The label's column and where it stands; none where the formula begins with `~`.
    pub label: Option<(String, usize)>,
    pub terms: Node,
}

/// Sums and products of columns.
#[derive(Debug)]
pub(super) enum Node {
    /// `a + b - c`: whether each is added.
    Sum(Vec<(bool, Node)>),
    /// `a * b`
    Cross(Vec<Node>),
    /// `a:b`
    Join(Vec<Node>),
    /// `(a + b)^2`
    Power(Box<Node>, u32),
    /// `1` or `0`
    Constant(bool, usize),
    /// `.`
    All(usize),
    Atom(Atom),
}

/// What is made of one column.
#[derive(Clone, Debug)]
pub(super) struct Atom {
    pub column: String,
    pub shape: Shape,
    /// Where it begins and ends.
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// As it is declared.
    Plain,
    /// A function or a curve of a number.
    Number {
        transform: Option<Transform>,
        curve: Option<Curve>,
    },
    /// `factor(x)`, with the reference and where it stands.
    Levels { reference: Option<(String, usize)> },
    /// `I(x > 3)`
    Condition(IndicatorEntry),
}

#[derive(Clone, Debug)]
pub(super) enum Curve {
    Polynomial(u32),
    Spline(Vec<f64>),
}

/// Functions of a number, by the names of run files.
const TRANSFORMS: [Transform; 4] = [
    Transform::Log,
    Transform::Log1p,
    Transform::Sqrt,
    Transform::Asinh,
];

const OFFSET: &str = "an offset has no place in a formula yet; for now declare the exposure with clamp, write log(exposure) as a term, and give its coefficient a prior near 1 (mean 1, a small sd)";
const GROUPS: &str = "levels that share a prior, such as (1 | g), have no place in a formula yet; for now declare the levels of g in [columns] and write g as a term: its coefficients have the model's prior, whose sd may be given one by one";

pub(super) fn parse(text: &str) -> Result<Formula, Wrong> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        end: text.chars().count(),
        tokens,
        at: 0,
        depth: 0,
    };
    let label = parser.label()?;
    let terms = parser.sum()?;
    match parser.peek() {
        None => Ok(Formula { label, terms }),
        Some(Word::Sign("~")) => Err(parser.here("a formula has one ~: label ~ terms")),
        Some(_) => Err(parser.unexpected("+, -, *, : or the end")),
    }
}

struct Parser {
    tokens: Vec<Token>,
    /// Characters of the formula.
    end: usize,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Word> {
        self.tokens.get(self.at).map(|t| &t.word)
    }

    fn peek_second(&self) -> Option<&Word> {
        self.tokens.get(self.at + 1).map(|t| &t.word)
    }

    /// Where the next word begins.
    fn place(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |t| t.start)
    }

    /// Where the last word ended.
    fn behind(&self) -> usize {
        let last = self.at.checked_sub(1).and_then(|i| self.tokens.get(i));
        last.map_or(0, |t| t.end)
    }

    fn here(&self, what: impl Into<String>) -> Wrong {
        Wrong::at(self.place(), what)
    }

    fn unexpected(&self, wanted: &str) -> Wrong {
        let found = match self.peek() {
            None => "the end".into(),
            Some(Word::Name { name, .. }) => format!("'{name}'"),
            Some(Word::Number(v)) => format!("{v}"),
            Some(Word::Text(_)) => "a text in quotes".into(),
            Some(Word::Sign("/" | "%in%")) => {
                return self.here("nested terms are not to be had: a / b would be a + a:b, which multiplies by b without b itself; write a * b");
            }
            Some(Word::Sign("|" | "||")) => return self.here(GROUPS),
            Some(Word::Sign(sign)) => format!("'{sign}'"),
        };
        self.here(format!("{wanted} is expected, not {found}"))
    }

    fn take(&mut self, sign: &'static str) -> bool {
        let found = self.peek() == Some(&Word::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), Wrong> {
        match self.take(sign) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("'{sign}'"))),
        }
    }

    /// The column to the left of `~`.
    fn label(&mut self) -> Result<Option<(String, usize)>, Wrong> {
        if self.take("~") {
            return Ok(None);
        }
        let place = self.place();
        if !self.tokens.iter().any(|t| t.word == Word::Sign("~")) {
            let what = "a formula has a ~ between the label and its terms: label ~ a + b";
            return Err(Wrong::at(self.end, what));
        }
        let Some(Word::Name { name, .. }) = self.peek() else {
            return Err(self.unexpected("the label's column, or ~,"));
        };
        let name = name.clone();
        self.at += 1;
        if !self.take("~") {
            return Err(self.here("left of ~ stands one column alone, the label; [columns] says how it is read (scale, clamp, count, …), and [model] kind what its law is"));
        }
        Ok(Some((name, place)))
    }

    /// Terms, added and taken away.
    fn sum(&mut self) -> Result<Node, Wrong> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.here(format!("nested more than {DEEPEST} deep")));
        }
        let mut parts = Vec::new();
        let mut added = !self.take("-");
        if added {
            self.take("+");
        }
        loop {
            parts.push((added, self.cross()?));
            if self.take("+") {
                added = true;
            } else if self.take("-") {
                added = false;
            } else {
                self.depth -= 1;
                return Ok(Node::Sum(parts));
            }
        }
    }

    fn cross(&mut self) -> Result<Node, Wrong> {
        let mut parts = vec![self.join()?];
        while self.take("*") {
            parts.push(self.join()?);
        }
        Ok(one_or(parts, Node::Cross))
    }

    fn join(&mut self) -> Result<Node, Wrong> {
        let mut parts = vec![self.power()?];
        while self.take(":") {
            parts.push(self.power()?);
        }
        Ok(one_or(parts, Node::Join))
    }

    fn power(&mut self) -> Result<Node, Wrong> {
        let base = self.atom()?;
        if self.peek() != Some(&Word::Sign("^")) {
            return Ok(base);
        }
        if !matches!(base, Node::Sum(_)) {
            return Err(self.here("^ is for sums in parentheses, (a + b)^2, which are their interactions; a column's own powers are poly(x, 2)"));
        }
        self.at += 1;
        match self.peek() {
            Some(&Word::Number(n)) if n.fract() == 0.0 && (1.0..=HIGHEST).contains(&n) => {
                self.at += 1;
                Ok(Node::Power(Box::new(base), n as u32))
            }
            _ => Err(self.unexpected(&format!("a whole number from 1 to {HIGHEST}"))),
        }
    }

    fn atom(&mut self) -> Result<Node, Wrong> {
        let start = self.place();
        match self.peek().cloned() {
            Some(Word::Sign("(")) => {
                self.at += 1;
                let inside = self.sum()?;
                self.expect(")")?;
                Ok(inside)
            }
            Some(Word::Number(v)) => {
                if v != 0.0 && v != 1.0 {
                    return Err(self.here(format!(
                        "{v} is no term; 1 is the intercept, 0 or - 1 leaves it out"
                    )));
                }
                self.at += 1;
                Ok(Node::Constant(v == 1.0, start))
            }
            Some(Word::Name { name, quoted }) => {
                self.at += 1;
                if !quoted && name == "." {
                    return Ok(Node::All(start));
                }
                let called = !quoted && self.peek() == Some(&Word::Sign("("));
                let (column, shape) = match called {
                    true => self.call(&name, start)?,
                    false => (name, Shape::Plain),
                };
                let end = self.behind();
                Ok(Node::Atom(Atom {
                    column,
                    shape,
                    start,
                    end,
                }))
            }
            _ => Err(self.unexpected("a column, a function of one or '('")),
        }
    }

    /// What a function, whose name begins at `start`, makes of which column.
    fn call(&mut self, function: &str, start: usize) -> Result<(String, Shape), Wrong> {
        let wrong = |what: &str| Err(Wrong::at(start, what));
        match function {
            "poly" | "ns" | "factor" | "C" | "I" => {}
            "offset" => return wrong(OFFSET),
            "s" | "t2" | "te" | "ti" | "bs" | "cs" | "cr" | "rcs" | "lo" | "gp" => {
                return wrong(
                    "curves are ns(x, knots = […]), a natural cubic spline with stated knots, and poly(x, 3)",
                );
            }
            "scale" | "center" | "standardize" => {
                return wrong(
                    "how a column is scaled stands in [columns], for means and sds of the rows are theirs: scale = [LOW, HIGH], or clamp = [LOW, HIGH] with standardize = { mean = M, sd = S }",
                );
            }
            _ => {
                let (column, transform) = self.transformed_after(function, start)?;
                let curve = None;
                let transform = Some(transform);
                return Ok((column, Shape::Number { transform, curve }));
            }
        }
        self.expect("(")?;
        let found = match function {
            "poly" => self.polynomial()?,
            "ns" => self.spline()?,
            "I" => self.condition()?,
            _ => self.levels()?,
        };
        self.expect(")")?;
        Ok(found)
    }

    /// `(x)` behind the name of a transform.
    fn transformed_after(
        &mut self,
        function: &str,
        start: usize,
    ) -> Result<(String, Transform), Wrong> {
        let Some(transform) = TRANSFORMS.iter().find(|t| t.name() == function) else {
            let what = format!(
                "'{function}' is no function of formulas, which are log, log1p, sqrt, asinh, poly, ns, factor and I"
            );
            return Err(Wrong::at(start, what));
        };
        self.expect("(")?;
        let column = self.column()?;
        if self.peek() != Some(&Word::Sign(")")) {
            let what = format!("{function} is of one column, {function}(x), as it is declared");
            return Err(self.here(what));
        }
        self.at += 1;
        Ok((column, *transform))
    }

    fn column(&mut self) -> Result<String, Wrong> {
        match self.peek().cloned() {
            Some(Word::Name { name, quoted }) if quoted || name != "." => {
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected("a column")),
        }
    }

    /// `x` or `log(x)`
    fn number_of(&mut self) -> Result<(String, Option<Transform>), Wrong> {
        let start = self.place();
        let column = self.column()?;
        if self.peek() != Some(&Word::Sign("(")) {
            return Ok((column, None));
        }
        let (column, transform) = self.transformed_after(&column, start)?;
        Ok((column, Some(transform)))
    }

    /// `NAME =`, if it comes next; other names before `=` are refused.
    fn keyword(&mut self, names: &[&str], what: &str) -> Result<(), Wrong> {
        let Some(Word::Name { name, .. }) = self.peek() else {
            return Ok(());
        };
        if self.peek_second() != Some(&Word::Sign("=")) {
            return Ok(());
        }
        if !names.contains(&name.as_str()) {
            return Err(self.here(what));
        }
        self.at += 2;
        Ok(())
    }

    fn polynomial(&mut self) -> Result<(String, Shape), Wrong> {
        const WHAT: &str = "poly(x, 3) has a degree and nothing else: it is Legendre's polynomials over the declared bounds";
        let (column, transform) = self.number_of()?;
        self.expect(",")?;
        self.keyword(&["degree"], WHAT)?;
        let degree = match self.peek() {
            Some(&Word::Number(n)) if n.fract() == 0.0 && (2.0..=10.0).contains(&n) => n as u32,
            _ => return Err(self.unexpected("a degree from 2 to 10")),
        };
        self.at += 1;
        if self.peek() == Some(&Word::Sign(",")) {
            return Err(self.here(WHAT));
        }
        let curve = Some(Curve::Polynomial(degree));
        Ok((column, Shape::Number { transform, curve }))
    }

    fn spline(&mut self) -> Result<(String, Shape), Wrong> {
        const WHAT: &str = "ns(x, knots = [30, 50]) needs its knots: df would place them by the rows, and the outer knots are the declared bounds";
        let (column, transform) = self.number_of()?;
        if !self.take(",") {
            return Err(self.here(WHAT));
        }
        let place = self.place();
        self.keyword(&["knots"], WHAT)?;
        if self.place() == place {
            return Err(self.here(WHAT));
        }
        let knots = self.list("a number", Parser::signed)?;
        if self.peek() == Some(&Word::Sign(",")) {
            return Err(self.here(WHAT));
        }
        let curve = Some(Curve::Spline(knots));
        Ok((column, Shape::Number { transform, curve }))
    }

    fn levels(&mut self) -> Result<(String, Shape), Wrong> {
        const WHAT: &str =
            "factor(x, ref = \"north\") may name the reference; levels are declared in [columns]";
        let column = self.column()?;
        let mut reference = None;
        if self.take(",") {
            self.keyword(&["ref", "reference", "base"], WHAT)?;
            let place = self.place();
            let Some(text) = self.text() else {
                return Err(self.here(WHAT));
            };
            reference = Some((text, place));
        }
        Ok((column, Shape::Levels { reference }))
    }

    fn condition(&mut self) -> Result<(String, Shape), Wrong> {
        const WHAT: &str = "I(…) holds a comparison of a column with a number or a text: I(age > 65), I(age < 18), I(region == \"north\"), I(region in [\"north\", \"south\"]); a column's powers are poly(x, 2)";
        let column = self.column()?;
        let place = self.place();
        let sign = self.peek().cloned();
        self.at += 1;
        let mut entry = IndicatorEntry::default();
        match sign {
            Some(Word::Sign(sign @ (">" | "<"))) => {
                let value = match self.signed() {
                    Some(value) => Some(value),
                    None => return Err(self.unexpected("a number")),
                };
                match sign {
                    ">" => entry.above = value,
                    _ => entry.below = value,
                }
            }
            Some(Word::Sign(">=" | "<=")) => {
                return Err(Wrong::at(
                    place,
                    "a threshold itself counts as 0: write > or <, with a number that lies between two values",
                ));
            }
            Some(Word::Sign("!=")) => {
                return Err(Wrong::at(
                    place,
                    "name the texts that count as 1: I(x == \"a\") or I(x in [\"a\", \"b\"])",
                ));
            }
            Some(Word::Sign("==")) => match self.text() {
                Some(text) => entry.one_of = Some(vec![text]),
                None => {
                    return Err(self.unexpected("a text in quotes (\"1\" matches the number 1)"));
                }
            },
            Some(Word::Sign("%in%")) => entry.one_of = Some(self.list("a text", Parser::text)?),
            Some(Word::Name { name, .. }) if name == "in" => {
                entry.one_of = Some(self.list("a text", Parser::text)?);
            }
            _ => return Err(Wrong::at(place, WHAT)),
        }
        Ok((column, Shape::Condition(entry)))
    }

    fn text(&mut self) -> Option<String> {
        let Some(Word::Text(text)) = self.peek() else {
            return None;
        };
        let text = text.clone();
        self.at += 1;
        Some(text)
    }

    fn signed(&mut self) -> Option<f64> {
        let negative = self.take("-");
        let Some(&Word::Number(value)) = self.peek() else {
            return None;
        };
        self.at += 1;
        Some(if negative { -value } else { value })
    }

    /// `[a, b]`, as in a run file, or `c(a, b)`, as in R.
    fn list<T>(&mut self, one: &str, read: fn(&mut Self) -> Option<T>) -> Result<Vec<T>, Wrong> {
        let closing = match self.peek() {
            Some(Word::Sign("[")) => "]",
            Some(Word::Name { name, .. })
                if name == "c" && self.peek_second() == Some(&Word::Sign("(")) =>
            {
                self.at += 1;
                ")"
            }
            _ => return Err(self.unexpected("a list such as [1, 2]")),
        };
        self.at += 1;
        let mut values = Vec::new();
        loop {
            match read(self) {
                Some(value) => values.push(value),
                None => return Err(self.unexpected(one)),
            }
            if self.take(closing) {
                return Ok(values);
            }
            self.expect(",")?;
        }
    }
}

/// The only one, or all of them under `of`.
fn one_or(mut parts: Vec<Node>, of: fn(Vec<Node>) -> Node) -> Node {
    match (parts.pop(), parts.is_empty()) {
        (Some(one), true) => one,
        (Some(last), false) => {
            parts.push(last);
            of(parts)
        }
        // Nobody gives an empty list.
        (None, _) => of(parts),
    }
}
