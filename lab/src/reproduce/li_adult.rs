//! Figure 3 of Li et al. 2019: Bayesian logistic regression on Adult.

use super::drawing::shown;
use super::held_out::{HeldOut, Score};
use super::li_mechanism::{Form, Mechanism};
use super::study::{Method, Role};
use super::{Drawing, Effort, Figure, ReproduceError, Table};
use crate::plot::{Axis, Mark, Plot};

/// Twelve features from the survey's code book.
const EXAMPLE: &str = include_str!("../../../examples/adult.toml");
const MODEL: &str = "[model]\nkind = 'logistic'\nprior = { kind = 'normal', sd = 10.0 }";
const TRAIN: &str = "adult_train.csv.gz";
const TEST: &str = "adult_test.csv.gz";

const DELTA: f64 = 1e-4;
const EPSILONS: [f64; 5] = [0.1, 0.3, 1.0, 2.0, 4.0];
/// Below this the anchor is so noisy that its sampler refuses some runs.
const ANCHORED_FROM: f64 = 2.0;
/// What Theorem 4 is asked for; beyond these its steps leave no noise to speak of.
const CLAIMS: [f64; 4] = [0.05, 0.1, 0.3, 1.0];
const RUNS: u64 = 10;
const STEPS: u64 = 5_000;
/// L of the published form. Public: a gradient is a residual times a row of norm at most √12.
const PUBLISHED_CLIP: f64 = 1.0;

/// Without privacy: all gradients whole, the step a small part of the posterior's variances, and
/// enough of them to arrive.
const REFERENCE: Method<'_> = Method::reference(
    "sgld, not private",
    "algorithm = 'sgld'\nstep = 5e-6\ngradient = { rate = 0.02 }",
)
.stretched(10);
/// Their steps are the longest that the budget affords; clip and rate are public round numbers.
const SOUND: &[Method<'_>] = &[
    Method::sound(
        "dp-sgld, step by the budget",
        "algorithm = 'dp-sgld'\ngradient = { clip = 0.5, rate = 0.02 }",
    ),
    Method::sound(
        "dp-sghmc, step by the budget",
        "algorithm = 'dp-sghmc'\nfriction = 0.1\ngradient = { clip = 0.5, rate = 0.02 }",
    ),
    Method::ours("anchored-barker", "algorithm = 'anchored-barker'"),
];

/// PATE: teachers, answers of theirs, Adam's steps.
const PATE: (usize, usize, u64) = (100, 500, 300);

const NOTES: &[&str] = &[
    "dp-sgld as published: cube-root steps from Theorem 4's form at the claimed epsilon, its constant put to 1, L = 1, q = 1/sqrt(N); what it truly costs is the accountant's under substitution. It samples the square of the posterior.",
    "dp-sgld and dp-sghmc take the longest stable step that the budget affords, and anchored-barker divides all of it in advance. Clipped gradients are those of another, flatter posterior; anchored-barker alone aims at the whole one, and refuses some runs at a budget of 1, where its anchor is mostly noise.",
    "pate: 100 logistic teachers on disjoint parts, Gaussian noise on their votes with its bound for any votes, 500 answers on the first test rows; accuracy is on the others. The paper's panel also has hybrid posterior sampling, which is not here.",
];

fn settings() -> String {
    let declared = EXAMPLE.split("[test]").next().unwrap_or(EXAMPLE);
    let declared = declared.replace(&format!("data/{TRAIN}"), TRAIN);
    format!("{declared}\n{MODEL}\n")
}

/// One row of the table, and a point.
struct Line {
    label: String,
    role: &'static str,
    claim: String,
    score: Score,
}

/// Figure 3.
pub(super) fn draw(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let settings = settings();
    let data = HeldOut::load(effort, &settings, (TRAIN, TEST))?;
    let (epsilons, claims) = if effort.quick {
        (&EPSILONS[2..], &CLAIMS[1..3])
    } else {
        (&EPSILONS[..], &CLAIMS[..])
    };

    let steps = effort.of(STEPS, 1_000);
    let length = (steps, effort.of(RUNS, 2));
    let score = |method: &Method<'_>| data.score(&settings, DELTA, method, length, None);
    let reference = score(&REFERENCE)?;
    let mut lines = vec![Line {
        label: REFERENCE.label.into(),
        role: REFERENCE.role.name(),
        claim: String::new(),
        score: reference,
    }];
    for &claim in claims {
        let rows = data.train.rows() as f64;
        let text = published(rows, steps, claim);
        let method = Method::repriced("dp-sgld, as published", &text);
        lines.push(Line {
            label: method.label.into(),
            role: method.role.name(),
            claim: shown(claim),
            score: score(&method)?,
        });
    }
    for method in SOUND {
        for &epsilon in epsilons {
            if method.role == Role::Ours && epsilon < ANCHORED_FROM {
                continue;
            }
            let method = method.within(epsilon);
            lines.push(Line {
                label: method.label.into(),
                role: method.role.name(),
                claim: String::new(),
                score: score(&method)?,
            });
        }
    }
    let few = (5, 20, 30);
    let sizes = if effort.quick { few } else { PATE };
    let scores = data.pate(&settings, (epsilons, DELTA), sizes, length.1)?;
    lines.extend(scores.into_iter().map(|score| Line {
        label: "pate, a supervised student".into(),
        role: Role::Sound.name(),
        claim: String::new(),
        score,
    }));
    let says = format!(
        "{} training rows, 12 features, N(0, 100) prior, {} iterations from the origin, the second half kept, means of {} runs.",
        data.train.rows(),
        length.0,
        length.1
    );
    let plots = vec![plot(&lines, reference)];
    let drawing = Drawing::new(figure, &says, (1, 330.0), plots, table(&lines, reference));
    Ok(drawing.noting(NOTES))
}

/// The `[sampler]` section of Algorithm 1 with the step that Theorem 4 gives this claim.
fn published(rows: f64, steps: u64, claim: f64) -> String {
    let mechanism = Mechanism {
        rows,
        clip: PUBLISHED_CLIP,
        steps,
        form: Form::CubeRoot,
        delta: DELTA,
    };
    format!(
        "algorithm = 'dp-sgld'\nas_published = true\nschedule = 'cube-root'\nstep = {:e}\ngradient = {{ clip = {PUBLISHED_CLIP:?}, rate = {:e} }}",
        mechanism.claimed_step(claim),
        mechanism.rate()
    )
}

fn plot(lines: &[Line], reference: Score) -> Plot {
    let mut marks: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for line in lines.iter().filter(|l| l.score.epsilon.is_finite()) {
        let point = (line.score.epsilon, line.score.accuracy);
        match marks.iter_mut().find(|(label, _)| *label == line.label) {
            Some((_, points)) => points.push(point),
            None => marks.push((&line.label, vec![point])),
        }
    }
    let ends = lines.iter().map(|l| l.score.epsilon);
    let ends = ends.filter(|e| e.is_finite());
    let (low, high) = ends.fold((f64::MAX, 0.0f64), |(a, b), e| (a.min(e), b.max(e)));
    let level = [low, high].map(|e| (e, reference.accuracy));
    let mut marks: Vec<Mark> = marks
        .into_iter()
        .map(|(label, points)| Mark::line(label, points))
        .collect();
    marks.push(Mark::dashed("not private", level.into()));
    Plot {
        name: "Adult".into(),
        x: Axis::log("true epsilon at delta = 1e-4"),
        y: Axis::linear("test accuracy"),
        marks,
    }
}

fn table(lines: &[Line], reference: Score) -> Table {
    let rows = lines.iter().map(|line| {
        vec![
            line.label.clone(),
            line.role.into(),
            line.claim.clone(),
            line.score.spent(),
            format!("{:.0}", line.score.iterations),
            format!("{:.0}", line.score.rows_a_step),
            line.score.shown(),
            format!("{:+.2}", 100.0 * (line.score.accuracy - reference.accuracy)),
        ]
    });
    Table {
        head: vec![
            "method",
            "role",
            "claimed in total",
            "spends in total",
            "iterations",
            "rows a step",
            "test accuracy",
            "points to non-private",
        ],
        rows: rows.collect(),
    }
}
