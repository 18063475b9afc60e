//! Functions of formulas: `log(x)`, `poly(x, 3)`, `ns(x, knots = [30])`, `factor(x)`, `I(x > 3)`,
//! `offset(log(x))`.

use super::Wrong;
use super::parse::{Curve, Parser, Shape};
use super::token::Word;
use crate::config::schema::IndicatorEntry;
use crate::data::Transform;

/// Functions of a number, by the names of run files.
const TRANSFORMS: [Transform; 4] = [
    Transform::Log,
    Transform::Log1p,
    Transform::Sqrt,
    Transform::Asinh,
];

impl Parser {
    /// What a function, whose name begins at `start`, makes of which column.
    pub(super) fn call(&mut self, function: &str, start: usize) -> Result<(String, Shape), Wrong> {
        let wrong = |what: &str| Err(Wrong::at(start, what));
        match function {
            "poly" | "ns" | "factor" | "C" | "I" | "offset" => {}
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
            "offset" => {
                let (column, transform) = self.number_of()?;
                (column, Shape::Offset(transform))
            }
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
                "'{function}' is no function of formulas, which are log, log1p, sqrt, asinh, poly, ns, factor, I and offset"
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

    pub(super) fn column(&mut self) -> Result<String, Wrong> {
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
