//! Operations as a graph: equal ones are one node, so that whatever is made of them is computed
//! once.

use std::collections::HashMap;

/// A node of a [`Graph`], by its position; arguments come before what uses them.
pub(crate) type Id = usize;

/// What a node is. Numbers are the bits of an f64, so that nodes compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Number(u64),
    /// The label y.
    Label,
    /// The linear predictor η = x·θ.
    Predictor,
    /// Δη of a move.
    PredictorChange,
    /// A shared parameter.
    Shared(usize),
    /// Its change in a move.
    SharedChange(usize),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    /// The second where the first is positive, else the third; the first is made of labels and
    /// numbers alone.
    Choose(Id, Id, Id),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unary {
    Negate,
    Exp,
    ExpM1,
    Log,
    Log1p,
    Sqrt,
    /// log(1 + e^u).
    Softplus,
    /// 1/(1 + e^−u).
    Sigmoid,
    LogGamma,
    Digamma,
    Trigamma,
    /// log Φ(u).
    LogNormalCdf,
    /// Its derivative φ(u)/Φ(u).
    Mills,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// softplus(u + δ) − softplus(u).
    SoftplusChange,
    /// log Γ(u + δ) − log Γ(u).
    LogGammaChange,
    /// log Φ(u + δ) − log Φ(u).
    LogNormalCdfChange,
}

/// A graph under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    known: HashMap<Node, Id>,
}

impl Graph {
    pub fn node(&self, id: Id) -> Node {
        self.nodes[id]
    }

    pub fn push(&mut self, node: Node) -> Id {
        if let Some(id) = self.known.get(&node) {
            return *id;
        }
        let id = self.nodes.len();
        self.nodes.push(node);
        self.known.insert(node, id);
        id
    }

    pub fn number(&mut self, value: f64) -> Id {
        // One zero.
        self.push(Node::Number((value + 0.0).to_bits()))
    }

    /// The number that a node is, if it is one.
    pub fn value(&self, id: Id) -> Option<f64> {
        match self.nodes[id] {
            Node::Number(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    pub fn unary(&mut self, function: Unary, u: Id) -> Id {
        use crate::expression::Number;
        if let Some(v) = self.value(u) {
            return self.number(v.apply(function));
        }
        if let (Unary::Negate, Node::Unary(Unary::Negate, inner)) = (function, self.nodes[u]) {
            return inner;
        }
        self.push(Node::Unary(function, u))
    }

    pub fn negate(&mut self, u: Id) -> Id {
        self.unary(Unary::Negate, u)
    }

    pub fn add(&mut self, a: Id, b: Id) -> Id {
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.number(x + y),
            (Some(0.0), _) => b,
            (_, Some(0.0)) => a,
            _ => match self.nodes[b] {
                Node::Unary(Unary::Negate, b) => self.subtract(a, b),
                _ => self.push(Node::Binary(Binary::Add, a, b)),
            },
        }
    }

    pub fn subtract(&mut self, a: Id, b: Id) -> Id {
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.number(x - y),
            (Some(0.0), _) => self.negate(b),
            (_, Some(0.0)) => a,
            _ if a == b => self.number(0.0),
            _ => match self.nodes[b] {
                Node::Unary(Unary::Negate, b) => self.add(a, b),
                _ => self.push(Node::Binary(Binary::Subtract, a, b)),
            },
        }
    }

    pub fn multiply(&mut self, a: Id, b: Id) -> Id {
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.number(x * y),
            (Some(0.0), _) | (_, Some(0.0)) => self.number(0.0),
            (Some(1.0), _) => b,
            (_, Some(1.0)) => a,
            (Some(-1.0), _) => self.negate(b),
            (_, Some(-1.0)) => self.negate(a),
            // Numbers first, and one order for the same product.
            (None, Some(_)) => self.push(Node::Binary(Binary::Multiply, b, a)),
            (None, None) if b < a => self.push(Node::Binary(Binary::Multiply, b, a)),
            _ => self.push(Node::Binary(Binary::Multiply, a, b)),
        }
    }

    pub fn divide(&mut self, a: Id, b: Id) -> Id {
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.number(x / y),
            (Some(0.0), _) => a,
            (_, Some(y)) if y.is_normal() => {
                let inverse = self.number(1.0 / y);
                self.multiply(inverse, a)
            }
            _ => self.push(Node::Binary(Binary::Divide, a, b)),
        }
    }

    pub fn choose(&mut self, condition: Id, positive: Id, otherwise: Id) -> Id {
        match self.value(condition) {
            Some(v) if v > 0.0 => positive,
            Some(_) => otherwise,
            None if positive == otherwise => positive,
            None => self.push(Node::Choose(condition, positive, otherwise)),
        }
    }

    /// What a node is made of.
    pub fn arguments(&self, id: Id) -> Vec<Id> {
        match self.nodes[id] {
            Node::Unary(_, u) => vec![u],
            Node::Binary(_, a, b) => vec![a, b],
            Node::Choose(c, a, b) => vec![c, a, b],
            _ => Vec::new(),
        }
    }

    /// `root` and all that it is made of, arguments first.
    pub fn order(&self, root: Id) -> Vec<Id> {
        let mut needed = vec![false; root + 1];
        needed[root] = true;
        for id in (0..=root).rev().filter(|id| *id <= root) {
            if needed[id] {
                self.arguments(id)
                    .into_iter()
                    .for_each(|a| needed[a] = true);
            }
        }
        (0..=root).filter(|id| needed[*id]).collect()
    }

    /// Whether the label or numbers alone make a node: it is the same for every θ.
    pub fn is_fixed(&self, id: Id) -> bool {
        let moves = |id: &Id| {
            matches!(
                self.nodes[*id],
                Node::Predictor | Node::Shared(_) | Node::PredictorChange | Node::SharedChange(_)
            )
        };
        !self.order(id).iter().any(moves)
    }
}
