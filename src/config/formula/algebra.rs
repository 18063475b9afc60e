//! From sums and products to a list of terms, each a product of columns.

use super::Wrong;
use super::parse::{Atom, Group, Node, Shape};
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
    /// Levels that share a prior, each with one effect.
    pub shared: Vec<Shared>,
    /// What is added as it is.
    pub offset: Option<Resolved>,
}

/// What each level of a column has of its own.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    /// The levels.
    pub levels: Resolved,
    /// The column whose slope it is, by its number in [`Terms::columns`]; none for an intercept.
    pub effect: Option<usize>,
    pub place: usize,
}

/// Terms of a part of the formula; `intercept` where it says.
#[derive(Default)]
struct Set {
    intercept: Option<bool>,
    terms: Vec<Term>,
    /// Where levels that share a prior stand in it.
    shared: Option<usize>,
    /// Where an offset stands in it.
    offset: Option<usize>,
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
        if let Some(place) = self.shared {
            return Err(Wrong::at(
                place,
                "levels that share a prior are added alone, and belong to no product: a + (1 | g)",
            ));
        }
        if let Some(place) = self.offset {
            let what = "an offset is added alone, and belongs to no product: a + offset(log(n))";
            return Err(Wrong::at(place, what));
        }
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
        shared: Vec::new(),
        offset: None,
    };
    let set = reader.read(root)?;
    Ok(Terms {
        intercept: set.intercept.unwrap_or(true),
        columns: reader.columns,
        terms: set.terms,
        shared: reader.shared,
        offset: reader.offset,
    })
}

struct Reader<'a> {
    resolver: &'a Resolver<'a>,
    columns: Vec<Resolved>,
    shared: Vec<Shared>,
    offset: Option<Resolved>,
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
                ..Set::default()
            }),
            Node::Group(group) => self.group(group),
            Node::All(place) => self.all(*place),
            Node::Atom(atom) if matches!(atom.shape, Shape::Offset(_)) => self.offset(atom),
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
            if let (false, Some(place)) = (added, part.shared) {
                let what = "levels that share a prior are not taken away: leave them out";
                return Err(Wrong::at(place, what));
            }
            if let (false, Some(place)) = (added, part.offset) {
                let what = "an offset is not taken away: leave it out";
                return Err(Wrong::at(place, what));
            }
            sum.shared = sum.shared.or(part.shared);
            sum.offset = sum.offset.or(part.offset);
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
            terms: all.unwrap_or_default(),
            ..Set::default()
        })
    }

    /// `(1 + x | g)`: an intercept for each level, and a slope of each column.
    fn group(&mut self, group: &Group) -> Result<Set, Wrong> {
        let place = group.place;
        let levels = self.resolver.levels(&group.column)?;
        let effects = self.read(&group.effects)?;
        if let Some(inner) = effects.shared {
            return Err(Wrong::at(
                inner,
                "levels within levels need a column of their own",
            ));
        }
        if let Some(inner) = effects.offset {
            let what = "an offset has no coefficient that levels could share; add it alone";
            return Err(Wrong::at(inner, what));
        }
        if effects.intercept == Some(false) {
            let what = "slopes without intercepts are not to be had: (x | g) gives each level both";
            return Err(Wrong::at(place, what));
        }
        let mut found = vec![None];
        for term in effects.terms {
            match term.parts[..] {
                [one] => found.push(Some(one)),
                _ => {
                    let what = "a level's slopes are of single columns, not of products";
                    return Err(Wrong::at(term.place, what));
                }
            }
        }
        for effect in found {
            let same = |s: &Shared| s.levels.column == levels.column && s.effect == effect;
            if !self.shared.iter().any(same) {
                let levels = levels.clone();
                self.shared.push(Shared {
                    levels,
                    effect,
                    place,
                });
            }
        }
        Ok(Set {
            shared: Some(place),
            ..Set::default()
        })
    }

    fn offset(&mut self, atom: &Atom) -> Result<Set, Wrong> {
        let found = self.resolver.resolve(atom)?;
        let place = atom.start;
        if self.offset.as_ref().is_some_and(|o| o.entry != found.entry) {
            let what = "a formula has one offset; add the two up in a column of the table";
            return Err(Wrong::at(place, what));
        }
        self.offset = Some(found);
        Ok(Set {
            offset: Some(place),
            ..Set::default()
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
        Node::Group(group) => group.place,
        Node::Atom(atom) => atom.start,
    }
}
