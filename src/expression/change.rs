//! The change of an expression in a move from (η, φ) to (η + Δη, φ + Δφ), without cancellation: a
//! small move has as many digits as a large one.

use super::graph::{Binary, Graph, Id, Node, Unary};

impl Graph {
    /// The change of `root`; `None` where an expression holds a function that no text can name.
    pub fn change(&mut self, root: Id) -> Option<Id> {
        let order = self.order(root);
        let zero = self.number(0.0);
        let mut changes = vec![zero; root + 1];
        // What a node becomes, once it was asked for: arguments are shared.
        let mut moved = vec![None; root + 1];
        for id in order {
            changes[id] = match self.node(id) {
                Node::Predictor => self.push(Node::PredictorChange),
                Node::Shared(k) => self.push(Node::SharedChange(k)),
                Node::Unary(function, u) if changes[u] != zero => {
                    self.unary_change(function, u, id, changes[u])?
                }
                Node::Binary(operation, a, b) if (changes[a], changes[b]) != (zero, zero) => {
                    let (da, db) = (changes[a], changes[b]);
                    match operation {
                        Binary::Add => self.add(da, db),
                        Binary::Subtract => self.subtract(da, db),
                        Binary::Multiply => {
                            // a Δb + Δa (b + Δb).
                            let moved = self.add(b, db);
                            let (left, right) = (self.multiply(a, db), self.multiply(da, moved));
                            self.add(left, right)
                        }
                        Binary::Divide => {
                            // (Δa − (a/b) Δb)/(b + Δb), whose last sum may round to 0.
                            let lost = self.multiply(id, db);
                            let rest = self.subtract(da, lost);
                            let there = self.moved(b, &changes, &mut moved);
                            self.divide(rest, there)
                        }
                        _ => return None,
                    }
                }
                Node::Choose(condition, a, b) => self.choose(condition, changes[a], changes[b]),
                _ => zero,
            };
        }
        Some(changes[root])
    }

    /// The value of a node after the move, whose changes are known.
    fn moved(&mut self, id: Id, changes: &[Id], found: &mut [Option<Id>]) -> Id {
        let change = changes[id];
        if self.value(change) == Some(0.0) {
            return id;
        }
        if let Some(there) = found[id] {
            return there;
        }
        let mut at = |graph: &mut Self, id: Id| graph.moved(id, changes, found);
        let there = match self.node(id) {
            Node::Unary(function, u) => {
                let u = at(self, u);
                self.unary(function, u)
            }
            Node::Binary(Binary::Multiply, a, b) => {
                let (a, b) = (at(self, a), at(self, b));
                self.multiply(a, b)
            }
            Node::Binary(Binary::Divide, a, b) => {
                let (a, b) = (at(self, a), at(self, b));
                self.divide(a, b)
            }
            Node::Choose(condition, a, b) => {
                let (a, b) = (at(self, a), at(self, b));
                self.choose(condition, a, b)
            }
            _ => self.add(id, change),
        };
        found[id] = Some(there);
        there
    }

    /// f(u + δ) − f(u); `value`: the node of f(u).
    fn unary_change(&mut self, function: Unary, u: Id, value: Id, delta: Id) -> Option<Id> {
        Some(match function {
            Unary::Negate => self.negate(delta),
            Unary::Exp => {
                let growth = self.unary(Unary::ExpM1, delta);
                self.multiply(value, growth)
            }
            Unary::ExpM1 => {
                let (power, growth) = (self.unary(Unary::Exp, u), self.unary(Unary::ExpM1, delta));
                self.multiply(power, growth)
            }
            Unary::Log => {
                let share = self.divide(delta, u);
                self.unary(Unary::Log1p, share)
            }
            Unary::Log1p => {
                let one = self.number(1.0);
                let shifted = self.add(one, u);
                let share = self.divide(delta, shifted);
                self.unary(Unary::Log1p, share)
            }
            Unary::Sqrt => {
                let moved = self.add(u, delta);
                let root = self.unary(Unary::Sqrt, moved);
                let sum = self.add(value, root);
                self.divide(delta, sum)
            }
            Unary::Softplus => self.push(Node::Binary(Binary::SoftplusChange, u, delta)),
            Unary::Sigmoid => {
                // σ(u) = e^−softplus(−u).
                let (opposite, back) = (self.negate(u), self.negate(delta));
                let fall = self.push(Node::Binary(Binary::SoftplusChange, opposite, back));
                let rise = self.negate(fall);
                let growth = self.unary(Unary::ExpM1, rise);
                self.multiply(value, growth)
            }
            Unary::LogGamma => self.push(Node::Binary(Binary::LogGammaChange, u, delta)),
            Unary::LogNormalCdf => self.push(Node::Binary(Binary::LogNormalCdfChange, u, delta)),
            Unary::Digamma | Unary::Trigamma | Unary::Mills => return None,
        })
    }
}
