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
    /// `(1 + x | g)`
    Group(Group),
    Atom(Atom),
}

/// Coefficients of a column's levels that share a prior.
#[derive(Debug)]
pub(super) struct Group {
    /// What each level has of its own: 1, and columns.
    pub effects: Box<Node>,
    /// The column of the levels, as it stands.
    pub column: Atom,
    /// Where it begins.
    pub place: usize,
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
    /// `offset(log(x))`
    Offset(Option<Transform>),
}

#[derive(Clone, Debug)]
pub(super) enum Curve {
    Polynomial(u32),
    Spline(Vec<f64>),
}

const GROUPS: &str = "levels that share a prior stand in parentheses: (1 | g) for intercepts, (x | g) for slopes of x too";
const ONE_COLUMN: &str = "the levels of one column share a prior: (1 | a) + (1 | b); levels within levels need a column of their own";
const NO_FUNCTION: &str =
    "the levels that share a prior stand in [columns], all of them and no reference: (1 | g)";

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

pub(super) struct Parser {
    tokens: Vec<Token>,
    /// Characters of the formula.
    end: usize,
    pub(super) at: usize,
    depth: usize,
}

impl Parser {
    pub(super) fn peek(&self) -> Option<&Word> {
        self.tokens.get(self.at).map(|t| &t.word)
    }

    pub(super) fn peek_second(&self) -> Option<&Word> {
        self.tokens.get(self.at + 1).map(|t| &t.word)
    }

    /// Where the next word begins.
    pub(super) fn place(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |t| t.start)
    }

    /// Where the last word ended.
    fn behind(&self) -> usize {
        let last = self.at.checked_sub(1).and_then(|i| self.tokens.get(i));
        last.map_or(0, |t| t.end)
    }

    pub(super) fn here(&self, what: impl Into<String>) -> Wrong {
        Wrong::at(self.place(), what)
    }

    pub(super) fn unexpected(&self, wanted: &str) -> Wrong {
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

    pub(super) fn take(&mut self, sign: &'static str) -> bool {
        let found = self.peek() == Some(&Word::Sign(sign));
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, sign: &'static str) -> Result<(), Wrong> {
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
                if self.take("|") || self.take("||") {
                    return self.group(inside, start);
                }
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
}

impl Parser {
    /// `g)` behind `(effects |`.
    fn group(&mut self, effects: Node, place: usize) -> Result<Node, Wrong> {
        let start = self.place();
        let column = self.column()?;
        match self.peek() {
            Some(Word::Sign("(")) => return Err(Wrong::at(start, NO_FUNCTION)),
            Some(Word::Sign("/" | ":" | "*" | "+" | "%in%")) => return Err(self.here(ONE_COLUMN)),
            _ => {}
        }
        let end = self.behind();
        self.expect(")")?;
        Ok(Node::Group(Group {
            effects: Box::new(effects),
            column: Atom {
                column,
                shape: Shape::Plain,
                start,
                end,
            },
            place,
        }))
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
