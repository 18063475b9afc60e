//! An expression as a list of instructions over a few slots, run for many rows at a time: each
//! instruction is one plain loop, which vectorises for the caller's instruction set.

use super::graph::{Binary, Graph, Id, Node, Unary};
use super::number::Number;

/// Rows that an instruction works on at a time.
pub(crate) const LANES: usize = 32;
/// The same of a strip of rows: a loop so long is not unrolled, but made of whole vectors, which
/// the next instruction reads again without waiting.
pub(crate) const STRIP: usize = 128;
/// Values kept at a time, at most.
const SLOTS: usize = 64;
/// Slots that need no memory of their own.
const FEW: usize = 8;

/// What starts on a line of the cache: vectors that straddle two are slow to write and read again.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Aligned<T>(T);

/// What an expression of rows is evaluated at: one label, predictor and change a row, one value of
/// each shared parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs<'a, T> {
    pub labels: &'a [T],
    pub predictor: &'a [T],
    /// Δη; empty where nothing moves.
    pub change: &'a [T],
    pub shared: &'a [T],
    /// Changes of the shared parameters; empty where nothing moves.
    pub shared_change: &'a [T],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    Number(f64),
    Label,
    Predictor,
    PredictorChange,
    Shared(usize),
    SharedChange(usize),
    Unary(Unary),
    Binary(Binary),
    Choose,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Instruction {
    pub operation: Operation,
    pub from: [u8; 3],
    pub to: u8,
}

/// `root` and what it is made of, arguments first, and of these those with most to compute first:
/// few values are then kept at a time.
fn depth_first(graph: &Graph, root: Id) -> Vec<Id> {
    let mut size = vec![1u64; root + 1];
    for id in graph.order(root) {
        let parts = graph.arguments(id);
        size[id] = parts
            .iter()
            .fold(1, |sum: u64, a| sum.saturating_add(size[*a]));
    }
    let mut order = Vec::new();
    let mut seen = vec![false; root + 1];
    // What is left to do: a node whose arguments are to be pushed, or one that is ready.
    let mut left = vec![(root, false)];
    while let Some((id, ready)) = left.pop() {
        if ready {
            order.push(id);
        } else if !seen[id] {
            seen[id] = true;
            left.push((id, true));
            let mut parts = graph.arguments(id);
            parts.sort_by_key(|a| size[*a]);
            left.extend(parts.into_iter().map(|a| (a, false)));
        }
    }
    order
}

/// A compiled expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    pub(super) instructions: Vec<Instruction>,
    pub(super) result: u8,
    /// Slots that it takes.
    slots: usize,
}

impl Program {
    /// Compiles `root`; `None` where it takes more than [`SLOTS`] values at a time.
    pub fn compile(graph: &Graph, root: Id) -> Option<Program> {
        let order = depth_first(graph, root);
        let mut last_use = vec![usize::MAX; root + 1];
        for &id in &order {
            graph
                .arguments(id)
                .into_iter()
                .for_each(|a| last_use[a] = id);
        }
        let mut place = vec![0u8; root + 1];
        let mut free: Vec<u8> = (0..SLOTS as u8).rev().collect();
        let mut instructions = Vec::with_capacity(order.len());
        for &id in &order {
            let arguments = graph.arguments(id);
            let mut from = [0; 3];
            for (slot, a) in from.iter_mut().zip(&arguments) {
                *slot = place[*a];
            }
            // A result may take the place of what is used up.
            for (k, a) in arguments.iter().enumerate() {
                if last_use[*a] == id && !arguments[..k].contains(a) {
                    free.push(place[*a]);
                }
            }
            place[id] = free.pop()?;
            let operation = match graph.node(id) {
                Node::Number(bits) => Operation::Number(f64::from_bits(bits)),
                Node::Label => Operation::Label,
                Node::Predictor => Operation::Predictor,
                Node::PredictorChange => Operation::PredictorChange,
                Node::Shared(k) => Operation::Shared(k),
                Node::SharedChange(k) => Operation::SharedChange(k),
                Node::Unary(function, _) => Operation::Unary(function),
                Node::Binary(operation, ..) => Operation::Binary(operation),
                Node::Choose(..) => Operation::Choose,
            };
            let to = place[id];
            instructions.push(Instruction {
                operation,
                from,
                to,
            });
        }
        let result = place[root];
        let slots = instructions.iter().map(|i| usize::from(i.to) + 1).max()?;
        Some(Program {
            instructions,
            result,
            slots,
        })
    }

    /// Whether its numbers are ones of f32: a shader's text has no others.
    pub fn is_single(&self) -> bool {
        self.instructions.iter().all(|i| match i.operation {
            Operation::Number(v) => (v as f32).is_finite(),
            _ => true,
        })
    }

    /// The value for every row: as many as `out` has room for.
    #[inline(always)]
    pub fn run<T: Number + From<S> + Into<S>, S: Copy, const R: usize>(
        &self,
        inputs: &Inputs<'_, S>,
        out: &mut [S],
    ) {
        let mut made = Aligned([T::of(0.0); R]);
        let (mut few, mut many) = ([made; FEW], Vec::new());
        let slots = if self.slots <= FEW {
            &mut few[..]
        } else {
            many.resize(self.slots, made);
            &mut many[..]
        };
        for (n, out) in out.chunks_mut(R).enumerate() {
            for instruction in &self.instructions {
                let to = instruction.to as usize;
                let [a, b, c] = instruction.from;
                let [a, b, c] = [a as usize, b as usize, c as usize];
                match instruction.operation {
                    Operation::Number(v) => made.0 = [T::of(v); R],
                    Operation::Label => load(&mut made.0, inputs.labels, n),
                    Operation::Predictor => load(&mut made.0, inputs.predictor, n),
                    Operation::PredictorChange => load(&mut made.0, inputs.change, n),
                    Operation::Shared(k) => made.0 = [one(inputs.shared, k); R],
                    Operation::SharedChange(k) => made.0 = [one(inputs.shared_change, k); R],
                    Operation::Unary(function) => each(function, &slots[a].0, &mut made.0),
                    Operation::Binary(operation) => {
                        both(operation, &slots[a].0, &slots[b].0, &mut made.0);
                    }
                    Operation::Choose => {
                        let (u, v, w) = (&slots[a].0, &slots[b].0, &slots[c].0);
                        for i in 0..R {
                            made.0[i] = u[i].choose(v[i], w[i]);
                        }
                    }
                }
                slots[to] = made;
            }
            let result = &slots[self.result as usize].0;
            for (out, value) in out.iter_mut().zip(result) {
                *out = (*value).into();
            }
        }
    }

    /// The value at each of many labels.
    pub fn along(&self, labels: &[f64], eta: f64, shared: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; labels.len()];
        let predictor = vec![eta; labels.len()];
        let inputs = Inputs {
            labels,
            predictor: &predictor,
            change: &[],
            shared,
            shared_change: &[],
        };
        self.run::<f64, f64, LANES>(&inputs, &mut out);
        out
    }

    /// The value at one row.
    pub fn at(&self, inputs: &Inputs<'_, f64>) -> f64 {
        let mut out = [0.0];
        self.run::<f64, f64, 1>(inputs, &mut out);
        out[0]
    }
}

#[inline(always)]
fn load<T: From<S>, S: Copy, const R: usize>(slot: &mut [T; R], values: &[S], n: usize) {
    let values = values.get(n * R..).unwrap_or(&[]);
    for (s, v) in slot.iter_mut().zip(values) {
        *s = (*v).into();
    }
}

fn one<T: Number + From<S>, S: Copy>(values: &[S], k: usize) -> T {
    values.get(k).map_or(T::of(0.0), |v| (*v).into())
}

/// One loop a function: the choice is made outside of it.
#[inline(always)]
fn each<T: Number, const R: usize>(function: Unary, u: &[T; R], to: &mut [T; R]) {
    macro_rules! loops {
        ($($name:ident),*) => {
            match function {
                $(Unary::$name => {
                    for i in 0..R {
                        to[i] = u[i].apply(Unary::$name);
                    }
                })*
            }
        };
    }
    loops!(
        Negate,
        Exp,
        ExpM1,
        Log,
        Log1p,
        Sqrt,
        Softplus,
        Sigmoid,
        LogGamma,
        Digamma,
        Trigamma,
        LogNormalCdf,
        Mills
    );
}

/// As [`each`].
#[inline(always)]
fn both<T: Number, const R: usize>(operation: Binary, u: &[T; R], v: &[T; R], to: &mut [T; R]) {
    macro_rules! loops {
        ($($name:ident),*) => {
            match operation {
                $(Binary::$name => {
                    for i in 0..R {
                        to[i] = u[i].combine(Binary::$name, v[i]);
                    }
                })*
            }
        };
    }
    loops!(
        Add,
        Subtract,
        Multiply,
        Divide,
        SoftplusChange,
        LogGammaChange,
        LogNormalCdfChange
    );
}
