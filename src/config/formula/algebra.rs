//! From sums and products to a list of terms, each a product of columns.

use super::Wrong;
use super::parse::{Atom, Node, Shape};
use super::resolve::{Resolved, Resolver};

/// Most terms of a formula.
const MOST_TERMS: usize = 1000;

/// A product of columns, which are numbers in [`Terms::columns`].
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub parts: Vec<usize>,
    /// The character that asks for it.
    pub place: usize,
}

impl Term {
    fn is(&self, other: &Term) -> bool {
        self.parts.len() == other.parts.len() && self.parts.iter().all(|p| other.parts.contains(p))
    }

    /// This and another, each column once.
    fn with(&self, other: &Term) -> Term {
        let mut both = self.clone();
        let more = other.parts.iter().filter(|p| !self.parts.contains(p));
        both.parts.extend(more);
        both
    }
}

/// What a formula asks for.
#[derive(Debug)]
pub(super) struct Terms {
    pub intercept: bool,
    /// What is made of a column, each once.
    pub columns: Vec<Resolved>,
    /// In the order of the formula.
    pub terms: Vec<Term>,
}

/// Terms of a part of the formula; `intercept` where it says.
#[derive(Default)]
struct Set {
    intercept: Option<bool>,
    terms: Vec<Term>,
}

impl Set {
    fn add(&mut self, term: Term) -> Result<(), Wrong> {
        if self.terms.iter().any(|t| t.is(&term)) {
            return Ok(());
        }
        if self.terms.len() == MOST_TERMS {
            let what = format!("makes more than {MOST_TERMS} terms");
            return Err(Wrong::at(term.place, what));
        }
        self.terms.push(term);
        Ok(())
    }

    /// Terms that may be multiplied: an intercept belongs to no product.
    fn factors(self, place: usize) -> Result<Vec<Term>, Wrong> {
        match self.intercept {
            None => Ok(self.terms),
            Some(_) => Err(Wrong::at(
                place,
                "1 and 0 are added or taken away alone, and belong to no product",
            )),
        }
    }
}

pub(super) fn terms(root: &Node, resolver: &Resolver<'_>) -> Result<Terms, Wrong> {
    let mut reader = Reader {
        resolver,
        columns: Vec::new(),
    };
    let set = reader.read(root)?;
    Ok(Terms {
        intercept: set.intercept.unwrap_or(true),
        columns: reader.columns,
        terms: set.terms,
    })
}

struct Reader<'a> {
    resolver: &'a Resolver<'a>,
    columns: Vec<Resolved>,
}

impl Reader<'_> {
    fn read(&mut self, node: &Node) -> Result<Set, Wrong> {
        match node {
            Node::Sum(parts) => self.sum(parts),
            Node::Cross(parts) => self.fold(parts, |a, b| {
                let mut all = Set::default();
                let mut mains = a.iter().chain(&b);
                mains.try_for_each(|t| all.add(t.clone()))?;
                multiply(all, &a, &b)
            }),
            Node::Join(parts) => self.fold(parts, |a, b| multiply(Set::default(), &a, &b)),
            Node::Power(base, power) => self.power(base, *power),
            Node::Constant(value, _) => Ok(Set {
                intercept: Some(*value),
                terms: Vec::new(),
            }),
            Node::All(place) => self.all(*place),
            Node::Atom(atom) => {
                let mut set = Set::default();
                set.add(self.column(atom)?)?;
                Ok(set)
            }
        }
    }

    fn sum(&mut self, parts: &[(bool, Node)]) -> Result<Set, Wrong> {
        let mut sum = Set::default();
        for (added, node) in parts {
            let part = self.read(node)?;
            sum.intercept = part.intercept.map(|one| one == *added).or(sum.intercept);
            for term in part.terms {
                if *added {
                    sum.add(term)?;
                    continue;
                }
                let Some(i) = sum.terms.iter().position(|t| t.is(&term)) else {
                    let what = "takes away a term that is not there; a name with a dash stands in backticks: `a-b`";
                    return Err(Wrong::at(term.place, what));
                };
                sum.terms.remove(i);
            }
        }
        Ok(sum)
    }

    /// Products of all parts, two by two.
    fn fold(
        &mut self,
        parts: &[Node],
        joined: impl Fn(Vec<Term>, Vec<Term>) -> Result<Set, Wrong>,
    ) -> Result<Set, Wrong> {
        let mut all: Option<Vec<Term>> = None;
        for node in parts {
            let next = self.read(node)?.factors(start_of(node))?;
            all = Some(match all {
                None => next,
                Some(before) => joined(before, next)?.terms,
            });
        }
        Ok(Set {
            intercept: None,
            terms: all.unwrap_or_default(),
        })
    }

    fn power(&mut self, base: &Node, power: u32) -> Result<Set, Wrong> {
        let one = self.read(base)?.factors(start_of(base))?;
        let mut all = Set::default();
        one.iter().try_for_each(|t| all.add(t.clone()))?;
        for _ in 1..power {
            let before = all.terms.clone();
            all = multiply(all, &before, &one)?;
        }
        Ok(all)
    }

    /// All declared columns but the label.
    fn all(&mut self, place: usize) -> Result<Set, Wrong> {
        let mut set = Set::default();
        for column in self.resolver.others() {
            let atom = Atom {
                column: column.clone(),
                shape: Shape::Plain,
                start: place,
                end: place + 1,
            };
            let term = self.column(&atom)?;
            set.add(term)?;
        }
        match set.terms.is_empty() {
            true => Err(Wrong::at(
                place,
                "[columns] declares no column but the label",
            )),
            false => Ok(set),
        }
    }

    fn column(&mut self, atom: &Atom) -> Result<Term, Wrong> {
        let found = self.resolver.resolve(atom)?;
        let place = atom.start;
        let known = self.columns.iter().position(|c| c.entry == found.entry);
        if known.is_none() {
            self.columns.push(found);
        }
        Ok(Term {
            parts: vec![known.unwrap_or(self.columns.len() - 1)],
            place,
        })
    }
}

/// Adds the products of any of `left` with any of `right` to a set.
fn multiply(mut set: Set, left: &[Term], right: &[Term]) -> Result<Set, Wrong> {
    for a in left {
        for b in right {
            set.add(a.with(b))?;
        }
    }
    Ok(set)
}

/// Where a part of the formula begins.
fn start_of(node: &Node) -> usize {
    match node {
        Node::Sum(parts) => parts.first().map_or(0, |(_, n)| start_of(n)),
        Node::Cross(parts) | Node::Join(parts) => parts.first().map_or(0, start_of),
        Node::Power(base, _) => start_of(base),
        Node::Constant(_, place) | Node::All(place) => *place,
        Node::Atom(atom) => atom.start,
    }
}
