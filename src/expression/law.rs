//! A likelihood with all that is made of its expression.

use std::sync::Mutex;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bounds::Range;
use super::graph::{Graph, Id, Node};
use super::number::Fast;
use super::parse::{Named, ParseError, parse};
use super::program::{Inputs, LANES, Program, STRIP};
use crate::math::single::is_nan;

/// Why an expression is no likelihood.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LawError {
    /// It cannot be read.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// It can be read, but not used.
    #[error("{0}")]
    Unfit(String),
}

/// log p(y | η, φ) of a label y given its linear predictor η and shared parameters φ, up to a
/// constant of y; one value for each text.
#[derive(Clone, Copy)]
pub struct Law(&'static Parts);

pub(super) struct Parts {
    name: String,
    text: String,
    shared: Vec<String>,
    fixed: Vec<(String, f64)>,
    graph: Graph,
    /// d log p / dη, then in each shared parameter.
    scores: Vec<Id>,
    value: Program,
    pub change: Program,
    pub score_programs: Vec<Program>,
    /// d² log p in (η, φ), the lower triangle row by row.
    pub bends: Vec<Program>,
    /// d³ log p / dη³, where no parameter is shared and it has one.
    pub third: Option<Program>,
    chooses: bool,
}

/// Laws made so far: rows' functions are compared and copied all the time, so each is made once and
/// kept to the end.
static KNOWN: Mutex<Vec<&'static Parts>> = Mutex::new(Vec::new());

impl PartialEq for Law {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Law {}

impl std::hash::Hash for Law {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.0).hash(state);
    }
}

impl std::fmt::Debug for Law {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?}", self.0.text, self.0.shared, self.0.fixed)
    }
}

/// Most shared parameters.
const MOST_SHARED: usize = 8;

/// As what it was made of.
impl Serialize for Law {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let parts = self.0;
        (&parts.name, &parts.text, &parts.shared, &parts.fixed).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Law {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        type Made = (String, String, Vec<String>, Vec<(String, f64)>);
        let (name, text, shared, fixed) = Made::deserialize(from)?;
        Law::new(&name, &text, &shared, &fixed).map_err(serde::de::Error::custom)
    }
}

impl Law {
    /// From an expression; `shared`: names of the parameters that are sampled beside coefficients;
    /// `fixed`: names of numbers.
    ///
    /// # Errors
    /// [`LawError`]: with the character where the text cannot be read.
    pub fn new(
        name: &str,
        text: &str,
        shared: &[String],
        fixed: &[(String, f64)],
    ) -> Result<Law, LawError> {
        let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
        let same = |p: &&&'static Parts| {
            p.name == name && p.text == text && p.shared == shared && p.fixed == fixed
        };
        if let Some(parts) = known.iter().find(same) {
            return Ok(Law(parts));
        }
        let parts: &'static Parts = Box::leak(Box::new(Parts::new(name, text, shared, fixed)?));
        known.push(parts);
        Ok(Law(parts))
    }

    #[cfg(feature = "gpu")]
    pub(super) fn parts(self) -> &'static Parts {
        self.0
    }

    /// Name in run files and certificates.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// The expression.
    pub fn text(self) -> &'static str {
        &self.0.text
    }

    /// Shared parameters, in order.
    pub fn shared(self) -> &'static [String] {
        &self.0.shared
    }

    /// log p(y | η, φ).
    pub fn log_likelihood(self, label: f64, eta: f64, shared: &[f64]) -> f64 {
        self.0.value.at(&at(&[label], &[eta], shared))
    }

    /// The same of many labels.
    pub fn log_likelihoods(self, labels: &[f64], eta: f64, shared: &[f64]) -> Vec<f64> {
        self.0.value.along(labels, eta, shared)
    }

    /// log p(y | η + Δη, φ + Δφ) − log p(y | η, φ), with as many digits for small moves.
    pub fn change(self, label: f64, eta: [f64; 2], shared: [&[f64]; 2]) -> f64 {
        self.0.change.at(&Inputs {
            labels: &[label],
            predictor: &eta[..1],
            change: &eta[1..],
            shared: shared[0],
            shared_change: shared[1],
        })
    }

    /// d log p / dη, and in the shared parameters.
    pub fn scores(self, label: f64, eta: f64, shared: &[f64]) -> Vec<f64> {
        let programs = self.0.score_programs.iter();
        programs
            .map(|p| p.at(&at(&[label], &[eta], shared)))
            .collect()
    }

    /// The same of many labels: one list of them for η, and one for each shared parameter.
    pub fn score_lists(self, labels: &[f64], eta: f64, shared: &[f64]) -> Vec<Vec<f64>> {
        let programs = self.0.score_programs.iter();
        programs.map(|p| p.along(labels, eta, shared)).collect()
    }

    /// Whether it is another expression for other labels.
    pub fn chooses(self) -> bool {
        self.0.chooses
    }

    /// d log p / dη and −d² log p / dη².
    pub fn slopes(self, label: f64, eta: f64, shared: &[f64]) -> (f64, f64) {
        let (label, eta) = ([label], [eta]);
        let inputs = at(&label, &eta, shared);
        let score = self.0.score_programs[0].at(&inputs);
        (score, -self.0.bends[0].at(&inputs))
    }

    /// The derivatives in (η, φ) of the log hazard of an event at a time, whose label is minus that
    /// where it was not seen.
    pub fn hazard_scores(self, time: f64, eta: f64, shared: &[f64]) -> Vec<f64> {
        let mut scores = self.scores(time, eta, shared);
        let unseen = self.scores(-time, eta, shared);
        scores.iter_mut().zip(unseen).for_each(|(s, u)| *s -= u);
        scores
    }

    /// −d² log p in (η, φ): the lower triangle, row by row.
    pub fn bends(self, label: f64, eta: f64, shared: &[f64]) -> Vec<f64> {
        let (label, eta) = ([label], [eta]);
        let inputs = at(&label, &eta, shared);
        self.0.bends.iter().map(|p| -p.at(&inputs)).collect()
    }

    /// What a second-order expansion at η leaves of a move from η + t to η + t + δ, of −log p
    /// without shared parameters; the curvature of the expansion is the weight between 0 and
    /// `most`.
    pub fn remainder(self, label: f64, most: f64, [eta, offset, delta]: [f64; 3]) -> f64 {
        let (score, weight) = self.slopes(label, eta, &[]);
        let weight = weight.max(0.0).min(most);
        let whole = self.change(label, [eta + offset, delta], [&[], &[]]);
        score * delta - weight * delta * (offset + 0.5 * delta) - whole
    }

    /// [`Law::remainder`] of many rows, each weighed: of the label, the predictor, its offset and
    /// its move.
    #[inline(always)]
    pub(crate) fn remainders(
        self,
        most: f64,
        [labels, eta, offset, delta]: [&[f32]; 4],
        weights: &[f32],
        mut each: impl FnMut(usize, f64),
    ) {
        let rows = labels.len();
        for first in (0..rows).step_by(LANES) {
            let count = LANES.min(rows - first);
            let wide = |values: &[f32]| -> [f64; LANES] {
                std::array::from_fn(|i| {
                    if i < count {
                        values[first + i].into()
                    } else {
                        0.0
                    }
                })
            };
            let [y, eta, offset, delta] = [labels, eta, offset, delta].map(wide);
            let to: [f64; LANES] = std::array::from_fn(|i| eta[i] + offset[i]);
            let [mut score, mut weight, mut whole] = [[0.0; LANES]; 3];
            let here = at(&y, &eta, &[]);
            self.0.score_programs[0].run::<f64, f64, LANES>(&here, &mut score);
            self.0.bends[0].run::<f64, f64, LANES>(&here, &mut weight);
            let moves = Inputs {
                change: &delta,
                ..at(&y, &to, &[])
            };
            self.0.change.run::<f64, f64, LANES>(&moves, &mut whole);
            for i in 0..count {
                let omega = f64::from(weights[first + i]);
                let weight = (-weight[i]).max(0.0).min(omega * most);
                let expanded =
                    score[i] * delta[i] - weight * delta[i] * (offset[i] + 0.5 * delta[i]);
                each(first + i, omega * (expanded - whole[i]));
            }
        }
    }

    /// Changes of many rows in f32; no number where η or Δη is none.
    #[inline(always)]
    pub(crate) fn changes<const FMA: bool>(
        self,
        labels: &[f32],
        eta: &[f32],
        delta: &[f32],
        constants: &[f32],
        out: &mut [f32],
    ) {
        let (shared, moved) = constants.split_at(constants.len() / 2);
        lanes::<FMA>(&self.0.change, [labels, eta, delta], [shared, moved], out);
        for ((r, a), d) in out.iter_mut().zip(eta).zip(delta) {
            *r = if is_nan(*a) | is_nan(*d) {
                f32::NAN
            } else {
                *r
            };
        }
    }

    /// The k-th of [`Law::scores`] of many rows in f32.
    #[inline(always)]
    pub(crate) fn score_lanes<const FMA: bool>(
        self,
        k: usize,
        labels: &[f32],
        eta: &[f32],
        shared: &[f32],
        out: &mut [f32],
    ) {
        lanes::<FMA>(
            &self.0.score_programs[k],
            [labels, eta, &[]],
            [shared, &[]],
            out,
        );
        for (s, a) in out.iter_mut().zip(eta) {
            *s = if is_nan(*a) { f32::NAN } else { *s };
        }
    }

    /// Whether a GPU can be told it: its numbers are ones of f32.
    pub fn has_shader(self) -> bool {
        let parts = self.0;
        let programs = parts.score_programs.iter().chain(&parts.bends);
        programs.chain([&parts.change]).all(Program::is_single)
    }

    /// The same of what an expansion leaves over, which takes a third derivative.
    pub fn has_remainder_shader(self) -> bool {
        self.has_shader() && self.0.third.as_ref().is_some_and(Program::is_single)
    }

    /// True bounds on the sizes of [`Law::scores`] where labels, predictor and shared parameters
    /// are in these ranges; infinite where none is found.
    pub fn score_bounds(self, labels: &[Range], predictor: Range, shared: &[Range]) -> Vec<f64> {
        let scores = self.0.scores.iter();
        scores
            .map(|id| self.0.graph.bound(*id, labels, predictor, shared))
            .collect()
    }
}

fn at<'a>(label: &'a [f64], eta: &'a [f64], shared: &'a [f64]) -> Inputs<'a, f64> {
    Inputs {
        labels: label,
        predictor: eta,
        change: &[],
        shared,
        shared_change: &[],
    }
}

/// Runs a program over f32 rows.
#[inline(always)]
fn lanes<const FMA: bool>(
    program: &Program,
    [labels, eta, delta]: [&[f32]; 3],
    [shared, shared_change]: [&[f32]; 2],
    out: &mut [f32],
) {
    let inputs = Inputs {
        labels,
        predictor: eta,
        change: delta,
        shared,
        shared_change,
    };
    match out.len() > LANES {
        true => program.run::<Fast<FMA>, f32, STRIP>(&inputs, out),
        false => program.run::<Fast<FMA>, f32, LANES>(&inputs, out),
    }
}

impl Parts {
    fn new(
        name: &str,
        text: &str,
        shared: &[String],
        fixed: &[(String, f64)],
    ) -> Result<Parts, LawError> {
        let unfit = |what: String| LawError::Unfit(what);
        if shared.len() > MOST_SHARED {
            return Err(unfit(format!(
                "at most {MOST_SHARED} parameters beside coefficients"
            )));
        }
        let mut names = Vec::new();
        for (k, name) in shared.iter().enumerate() {
            names.push((name.clone(), Named::Shared(k)));
        }
        names.extend(fixed.iter().map(|(n, v)| (n.clone(), Named::Number(*v))));
        for (k, (name, _)) in names.iter().enumerate() {
            check_name(name).map_err(LawError::Unfit)?;
            if names[..k].iter().any(|(n, _)| n == name) {
                return Err(unfit(format!("'{name}' is declared twice")));
            }
        }
        let mut graph = Graph::default();
        let root = parse(&mut graph, text, &names)?;
        let used: Vec<Node> = graph.order(root).iter().map(|id| graph.node(*id)).collect();
        if !used.contains(&Node::Predictor) {
            return Err(unfit(
                "the expression does not name eta, the linear predictor".into(),
            ));
        }
        for (k, name) in shared.iter().enumerate() {
            if !used.contains(&Node::Shared(k)) {
                return Err(unfit(format!("the expression does not name '{name}'")));
            }
        }
        let leaves = (0..shared.len()).map(Node::Shared);
        let scores: Option<Vec<Id>> = std::iter::once(Node::Predictor)
            .chain(leaves)
            .map(|leaf| graph.derivative(root, leaf))
            .collect();
        let too_long = || {
            unfit("the expression is too long: it holds more values at a time than rows are given room for".into())
        };
        let no_slope =
            || unfit("the expression has no derivative: of lgamma two can be made".into());
        let scores = scores.ok_or_else(no_slope)?;
        let leaf = |k: usize| match k {
            0 => Node::Predictor,
            k => Node::Shared(k - 1),
        };
        let (mut bends, mut third) = (Vec::new(), None);
        for (k, score) in scores.iter().enumerate() {
            for l in 0..=k {
                bends.push(graph.derivative(*score, leaf(l)).ok_or_else(no_slope)?);
            }
        }
        if shared.is_empty() {
            third = graph.derivative(bends[0], Node::Predictor);
        }
        let change = graph.change(root).ok_or_else(no_slope)?;
        let compile = |id: Id| Program::compile(&graph, id).ok_or_else(too_long);
        let chooses = used.iter().any(|n| matches!(n, Node::Choose(..)));
        Ok(Parts {
            third: third.and_then(|id| Program::compile(&graph, id)),
            chooses,
            name: name.into(),
            text: text.into(),
            shared: shared.to_vec(),
            fixed: fixed.to_vec(),
            value: compile(root)?,
            change: compile(change)?,
            score_programs: scores
                .iter()
                .map(|id| compile(*id))
                .collect::<Result<_, _>>()?,
            bends: bends.into_iter().map(compile).collect::<Result<_, _>>()?,
            scores,
            graph,
        })
    }
}

/// Names that parameters may have: they are columns of the draws.
fn check_name(name: &str) -> Result<(), String> {
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let taken = ["y", "eta", "if", "chain", "iteration"].contains(&name)
        || super::FUNCTIONS.iter().any(|(f, _)| *f == name);
    match plain && starts && !taken {
        true => Ok(()),
        false => Err(format!(
            "'{name}' cannot be the name of a parameter: letters, digits and _, and no function's name, y or eta"
        )),
    }
}
