//! A likelihood with all that is made of its expression.

use std::sync::Mutex;

use super::bounds::Range;
use super::graph::{Graph, Id, Node};
use super::number::Fast;
use super::parse::{Named, ParseError, parse};
use super::program::{Inputs, LANES, Program};
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

struct Parts {
    name: String,
    text: String,
    shared: Vec<String>,
    fixed: Vec<(String, f64)>,
    graph: Graph,
    /// d log p / dη, then in each shared parameter.
    scores: Vec<Id>,
    value: Program,
    change: Program,
    score_programs: Vec<Program>,
    weight: Program,
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

    /// d log p / dη and −d² log p / dη² of a law without shared parameters.
    pub fn slopes(self, label: f64, eta: f64) -> (f64, f64) {
        let (label, eta) = ([label], [eta]);
        let inputs = at(&label, &eta, &[]);
        let score = self.0.score_programs[0].at(&inputs);
        (score, -self.0.weight.at(&inputs))
    }

    /// What a second-order expansion at η leaves of a move from η + t to η + t + δ, of −log p
    /// without shared parameters; the curvature of the expansion is the weight between 0 and
    /// `most`.
    pub fn remainder(self, label: f64, most: f64, [eta, offset, delta]: [f64; 3]) -> f64 {
        let (score, weight) = self.slopes(label, eta);
        let weight = weight.max(0.0).min(most);
        let whole = self.change(label, [eta + offset, delta], [&[], &[]]);
        score * delta - weight * delta * (offset + 0.5 * delta) - whole
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
    program.run::<Fast<FMA>, f32, LANES>(&inputs, out);
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
        let bend = graph
            .derivative(scores[0], Node::Predictor)
            .ok_or_else(no_slope)?;
        let change = graph.change(root).ok_or_else(no_slope)?;
        let compile = |id: Id| Program::compile(&graph, id).ok_or_else(too_long);
        Ok(Parts {
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
            weight: compile(bend)?,
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

/// How large scores, weights and third derivatives of rows that a law fits come to be: what an
/// anchor clips at (a choice, and no bound: privacy rests on none of it).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// Largest |score| that is usual.
    pub score: f64,
    /// Largest weight that is usual.
    pub weight: f64,
    /// Largest |third derivative| that is usual.
    pub third: f64,
    /// Mean weight at η = 0.
    pub first_weight: f64,
    /// Newton steps on clipped scores from η = 0 to the farthest label.
    pub crossing: f64,
}

/// Sds of a score beyond which it is clipped: of classes, and of other labels.
const CLASS_SDS: f64 = 4.0;
const MOST_SDS: f64 = 8.0;
/// |η| of rows whose class is all but certain.
const CERTAIN: f64 = 8.0;
/// Chance of a class that is seldom seen.
const RARE: f64 = 0.05;
/// Weights of labels that are not the best fitted come to this many times those that are.
const MOST_SPREAD: f64 = 4.0;

impl Law {
    /// For labels like these; `classes`: they are all there are.
    pub fn reach(self, labels: &[f64], classes: bool) -> Reach {
        let reach = match classes {
            true => self.class_reach(labels),
            false => self.number_reach(labels),
        };
        let usable = |v: f64, least: f64| if v.is_finite() && v > least { v } else { least };
        let weight = usable(reach.weight, 1e-12);
        Reach {
            score: usable(reach.score, 1e-6 * weight.sqrt()),
            weight,
            // What rounding leaves of a quadratic has none.
            third: if reach.third.is_finite() && reach.third > 1e-6 * weight {
                reach.third
            } else {
                0.0
            },
            first_weight: usable(reach.first_weight, 1e-3 * weight).min(weight),
            crossing: usable(reach.crossing, 1.0),
        }
    }

    /// The law itself says how often a label is seen: rare ones do not count.
    fn class_reach(self, labels: &[f64]) -> Reach {
        let (mut score, mut weight, mut third, mut first) = (0.0f64, 0.0f64, 0.0f64, 0.0);
        for k in -160..=160 {
            let eta = CERTAIN * f64::from(k) / 160.0;
            let chances = labels
                .iter()
                .map(|y| self.log_likelihood(*y, eta, &[]).exp());
            let chances: Vec<f64> = chances.collect();
            let whole: f64 = chances.iter().sum();
            for (y, p) in labels.iter().zip(&chances) {
                let (s, w) = self.slopes(*y, eta);
                score = score.max(s.abs());
                if *p >= RARE * whole {
                    weight = weight.max(w);
                    third = third.max(self.third(*y, eta, 1e-3).abs());
                }
                if k == 0 {
                    first += p / whole * w;
                }
            }
        }
        Reach {
            score: score.min(CLASS_SDS * weight.sqrt()),
            weight,
            third,
            first_weight: first,
            crossing: 1.0,
        }
    }

    /// Weights of labels where they are best fitted, and a few sds beside.
    fn number_reach(self, labels: &[f64]) -> Reach {
        let best: Vec<f64> = labels.iter().map(|y| self.best(*y)).collect();
        let fitted = labels.iter().zip(&best).map(|(y, e)| self.slopes(*y, *e).1);
        let fitted: Vec<f64> = fitted.filter(|w| w.is_finite()).collect();
        let weight = fitted.iter().fold(0.0f64, |m, w| m.max(*w));
        let least = fitted.iter().fold(f64::INFINITY, |m, w| m.min(*w));
        let sd = 1.0 / weight.sqrt();
        let (mut score, mut third, mut beside) = (0.0f64, 0.0f64, weight);
        let larger = |m: f64, v: f64| if v.is_finite() { m.max(v.abs()) } else { m };
        for (y, e) in labels.iter().zip(&best) {
            for k in [-1.5, -0.75, 0.0, 0.75, 1.5] {
                third = larger(third, self.third(*y, e + k * sd, 1e-3 * sd));
                beside = larger(beside, self.slopes(*y, e + k * sd).1.max(0.0));
            }
            for e in &best {
                score = larger(score, self.slopes(*y, *e).0);
            }
        }
        let firsts = labels.iter().map(|y| self.slopes(*y, 0.0).1.max(0.0));
        let first_weight = firsts.sum::<f64>() / labels.len().max(1) as f64;
        // η itself is on the labels' scale where weights are all the same.
        let low = best.iter().fold(f64::INFINITY, |m, e| m.min(*e));
        let high = best.iter().fold(f64::NEG_INFINITY, |m, e| m.max(*e));
        let far = (high - low).max(high.abs()).max(low.abs());
        let score = score.min(MOST_SDS * weight.sqrt());
        let alike = least > 0.5 * weight;
        let weight = beside.min(MOST_SPREAD * weight);
        Reach {
            score,
            weight,
            third,
            first_weight,
            crossing: if alike { far * weight / score } else { 1.0 },
        }
    }

    /// The predictor that fits a label best, on a grid that is refined by Newton's steps.
    fn best(self, label: f64) -> f64 {
        let far = (1.1 * label.abs()).max(30.0);
        let (mut best, mut most) = (0.0, f64::NEG_INFINITY);
        let mut consider = |eta: f64| {
            let value = self.log_likelihood(label, eta, &[]);
            if value > most {
                (best, most) = (eta, value);
            }
        };
        for k in 0..=200 {
            let size = far * (1e-4f64).powf(1.0 - f64::from(k) / 200.0);
            consider(size);
            consider(-size);
        }
        consider(label);
        for _ in 0..20 {
            let (score, weight) = self.slopes(label, best);
            let step = score / weight;
            if !(weight > 0.0 && step.abs() <= 0.1 * best.abs().max(1.0)) {
                break;
            }
            best += step;
        }
        best
    }

    fn third(self, label: f64, eta: f64, h: f64) -> f64 {
        (self.slopes(label, eta + h).1 - self.slopes(label, eta - h).1) / (2.0 * h)
    }
}
