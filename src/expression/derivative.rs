//! Derivatives in the predictor or a shared parameter, by the chain rule.

use super::graph::{Binary, Graph, Id, Node, Unary};

impl Graph {
    /// d `root` / d `leaf`; `None` where a function has no derivative here (that of the trigamma
    /// function, and of changes).
    pub fn derivative(&mut self, root: Id, leaf: Node) -> Option<Id> {
        let order = self.order(root);
        let zero = self.number(0.0);
        let mut slopes = vec![zero; root + 1];
        for id in order {
            let node = self.node(id);
            slopes[id] = match node {
                _ if node == leaf => self.number(1.0),
                Node::Unary(function, u) if slopes[u] != zero => {
                    let outer = self.slope(function, u, id)?;
                    self.multiply(outer, slopes[u])
                }
                Node::Binary(operation, a, b) if (slopes[a], slopes[b]) != (zero, zero) => {
                    let (da, db) = (slopes[a], slopes[b]);
                    match operation {
                        Binary::Add => self.add(da, db),
                        Binary::Subtract => self.subtract(da, db),
                        Binary::Multiply => {
                            let (left, right) = (self.multiply(da, b), self.multiply(a, db));
                            self.add(left, right)
                        }
                        Binary::Divide => {
                            // (a' − (a/b) b')/b.
                            let lost = self.multiply(id, db);
                            let rest = self.subtract(da, lost);
                            self.divide(rest, b)
                        }
                        Binary::SoftplusChange
                        | Binary::LogGammaChange
                        | Binary::LogNormalCdfChange => return None,
                    }
                }
                Node::Choose(condition, a, b) => self.choose(condition, slopes[a], slopes[b]),
                _ => zero,
            };
        }
        Some(slopes[root])
    }

    /// f'(u); `value`: the node of f(u).
    fn slope(&mut self, function: Unary, u: Id, value: Id) -> Option<Id> {
        let one = self.number(1.0);
        Some(match function {
            Unary::Negate => self.number(-1.0),
            Unary::Exp => value,
            Unary::ExpM1 => self.unary(Unary::Exp, u),
            Unary::Log => self.divide(one, u),
            Unary::Log1p => {
                let shifted = self.add(one, u);
                self.divide(one, shifted)
            }
            Unary::Sqrt => {
                let half = self.number(0.5);
                self.divide(half, value)
            }
            Unary::Softplus => self.unary(Unary::Sigmoid, u),
            Unary::Sigmoid => {
                // Both factors keep their digits in either tail.
                let opposite = self.negate(u);
                let rest = self.unary(Unary::Sigmoid, opposite);
                self.multiply(value, rest)
            }
            Unary::LogGamma => self.unary(Unary::Digamma, u),
            Unary::Digamma => self.unary(Unary::Trigamma, u),
            Unary::Trigamma => return None,
            Unary::LogNormalCdf => self.unary(Unary::Mills, u),
            Unary::Mills => {
                // h' = −h(h + u).
                let sum = self.add(value, u);
                let product = self.multiply(value, sum);
                self.negate(product)
            }
        })
    }
}
