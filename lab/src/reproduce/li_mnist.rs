//! Table 1 of Li et al. 2019 on all of MNIST, or on Fashion-MNIST, with a network of two
//! convolutions: what the paper claims, what its mechanism costs, and its methods, DP-SGD and PATE
//! at stated budgets.

use std::time::Instant;

use super::calibration::Calibration;
use super::drawing::shown;
use super::images::{Files, Images};
use super::li_mechanism::{MNIST_CLAIM, MNIST_STEP};
use super::{Drawing, Effort, Figure, ReproduceError, Table};
use crate::pate::Votes;
use crate::plot::{Axis, Mark, Plot};
use dpmc::config::Plan;
use dpmc::diagnostics::layers_predictive;
use dpmc::network::Network;
use dpmc::posterior_run::Status;
use dpmc::privacy::accountant::{Question, Sequence, account_within};
use dpmc::privacy::{Batch, Event, GradientNoise, Neighbours};
use dpmc::run::{Coins, Place, prepare};
use dpmc::sampler::Sampler;

const CLASSES: usize = 10;

/// The network of Papernot 2021 and Tramèr & Boneh 2021 (appendix), of two convolutions as Li's, of
/// tanh units; 26,010 parameters with standard normal priors.
const MODEL: &str = r#"
[model]
kind = "network"
input = [28, 28]
layers = [
    { conv = 16, kernel = 8, stride = 2, padding = 2 }, "tanh", { max_pool = 2, stride = 1 },
    { conv = 32, kernel = 4, stride = 2 }, "tanh", { max_pool = 2, stride = 1 },
    { dense = 32 }, "tanh",
]
prior = { kind = "normal", sd = 1.0 }
"#;

const DELTA: f64 = 1e-5;
/// Room for whatever an entry spends: its own price is what is reported.
const ROOM: f64 = 500.0;
/// Iterations of Adam, of DP-SGD and of what is published; of dynamics.
const STEPS: u64 = 1_000;
const LONG: u64 = 6_000;
/// Images of a step.
const BATCH: f64 = 512.0;
/// Of the accountants, relative.
const TOLERANCE: f64 = 5e-3;
/// Where the line of what is not private ends, ε.
const WIDEST: f64 = 6.0;
/// Draws that predictions are averaged over.
const DRAWS: u64 = 20;

/// A method, which has a row of the table for each of its settings.
struct Entry {
    label: &'static str,
    /// ε that the paper claims; none where it claims nothing.
    claim: &'static str,
    /// `[sampler]` of each.
    samplers: Vec<String>,
    steps: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Without privacy.
    Reference,
    /// To the letter of the paper; the images are public, and what it costs is reckoned.
    Published,
    /// At what it costs, about ε = 0.85 and 2.9 by adding or removing a row.
    Sound,
}

fn entries(rows: usize) -> Vec<Entry> {
    let n = rows as f64;
    let rate = (BATCH / n).min(0.5);
    let published = |algorithm: &str| {
        let rate = n.sqrt().recip();
        vec![format!(
            "algorithm = '{algorithm}'\nas_published = true\nschedule = 'cube-root'\nstep = {MNIST_STEP}\ngradient = {{ clip = 4.0, rate = {rate:e} }}"
        )]
    };
    // Noise in units of 2 · clip.
    let sgd = |step: f64, taus: &[f64]| -> Vec<String> {
        let of = |tau: &f64| {
            format!(
                "algorithm = 'dp-sgd'\nstep = {step:?}\ngradient = {{ clip = 1.0, rate = {rate:e}, tau = {tau:?} }}"
            )
        };
        taus.iter().map(of).collect()
    };
    // The step says how much noise there is: the clip says what it hides.
    let dynamics = |settings: &str, step: f64| -> Vec<String> {
        let of = |clip: f64| {
            format!(
                "{settings}\nstep = {step:e}\ngradient = {{ clip = {clip:?}, rate = {rate:e} }}"
            )
        };
        [2.0, 5.0].map(of).into()
    };
    let entry = |label, claim, samplers, steps, kind| Entry {
        label,
        claim,
        samplers,
        steps,
        kind,
    };
    vec![
        entry(
            "adam, not private",
            "",
            vec![adam(BATCH, rows)],
            STEPS,
            Kind::Reference,
        ),
        entry(
            "dp-sgld, as published",
            MNIST_CLAIM,
            published("dp-sgld"),
            STEPS,
            Kind::Published,
        ),
        entry(
            "dp-sghmc, as published",
            "0.24",
            published("dp-sghmc"),
            STEPS,
            Kind::Published,
        ),
        entry("dp-sgd", "", sgd(2.0, &[0.701, 0.3905]), STEPS, Kind::Sound),
        entry(
            "dp-sgd, 6,000 steps",
            "",
            sgd(1.0, &[1.4795, 0.5915]),
            LONG,
            Kind::Sound,
        ),
        entry(
            "dp-sgld",
            "",
            dynamics("algorithm = 'dp-sgld'", 0.5 / n),
            LONG,
            Kind::Sound,
        ),
        entry(
            "dp-sghmc",
            "",
            dynamics("algorithm = 'dp-sghmc'\nfriction = 0.1", 0.025 / n),
            LONG,
            Kind::Sound,
        ),
    ]
}

/// What PATE's student asks: (answers, the ε that the paper states for so many, on MNIST).
const ANSWERS: [(usize, f64); 2] = [(100, 2.04), (1_000, 8.03)];
/// Teachers, as many as Papernot 2017 has.
const TEACHERS: u64 = 250;
/// Test images that teachers may be asked about; nothing is scored on them.
const POOL: usize = 1_000;
/// Adam's steps of a teacher and of a student, at so many images a step.
const TEACHER: (u64, f64) = (200, 60.0);
const STUDENT: (u64, f64) = (1_000, 50.0);

const NOTES: &[&str] = &[
    "Table 1 of the paper, MNIST: Adam 99.23 %, PATE(100) 98.00 % at 2.04, PATE(1000) 98.10 % at 8.03, DP-SGLD 99.12 % at a claimed 0.10, DP-SGHMC 99.28 % at a claimed 0.24. As published means L = 4, steps 0.1 t^(-1/3) on the mean log posterior and q = 1/sqrt(N); the paper states neither iterations nor a listing of DP-SGHMC, so that the number of iterations is ours and so is the listing. The network is not theirs either: its tanh units lose less to clipping than rectifiers.",
    "pate: 250 teachers on disjoint parts, Gaussian noise on their votes with its bound for any votes, at the paper's epsilon, on the first 1,000 test images; a supervised student (theirs is a generative one, which learns from all public images), scored on the other 9,000. A part is a teacher's whatever the neighbours are, so both epsilons are one.",
    "dp-sgd and pate end at a point; the others are averages of the predictions of draws from the second half of one chain, which are no exact posterior (steps are finite, gradients are clipped). Settings were chosen on the public images: no figure is a private release.",
];

/// What a method came to.
struct Outcome {
    scores: Calibration,
    /// On images of another kind, where there are some.
    abroad: Option<Abroad>,
    /// ε by substitution, and by adding or removing a row; infinite without privacy.
    substitution: f64,
    add_remove: f64,
    seconds: f64,
}

/// How unsure predictions are of images of another kind.
#[derive(Clone, Copy, Debug)]
struct Abroad {
    /// Mean entropy of the predictions at home and abroad, nats.
    home: f64,
    away: f64,
    /// Chance that a foreign image has the larger entropy of two (area under the ROC curve).
    area: f64,
}

/// The images, and what their predictions are scored on.
struct Task {
    train: Files,
    test: Images,
    other: Option<Vec<f32>>,
}

impl Task {
    fn read(effort: &Effort) -> Result<Self, ReproduceError> {
        let other = effort.other.as_deref().map(|folder| {
            let images = Files::of(folder, "t10k")?.read()?;
            Ok::<_, ReproduceError>(images.rows())
        });
        Ok(Task {
            train: Files::of(&effort.data, "train")?,
            test: Files::of(&effort.data, "t10k")?.read()?,
            other: other.transpose()?,
        })
    }

    /// What draws predict of the test images from `first` on, and of foreign ones.
    fn scores(
        &self,
        draws: &[Vec<f64>],
        network: Network,
        first: usize,
    ) -> (Calibration, Option<Abroad>) {
        let test = self.test.part(first..self.test.len());
        let labels: Vec<usize> = test.labels.iter().map(|l| usize::from(*l)).collect();
        let p = layers_predictive(draws, network, &test.rows());
        let abroad = self.other.as_ref().map(|rows| {
            let away = layers_predictive(draws, network, rows);
            Abroad::of(&entropies(&p), &entropies(&away))
        });
        (Calibration::of(&p, CLASSES, &labels), abroad)
    }
}

impl Abroad {
    fn of(home: &[f64], away: &[f64]) -> Self {
        let mean = |e: &[f64]| e.iter().sum::<f64>() / e.len().max(1) as f64;
        let mut sorted = home.to_vec();
        sorted.sort_by(f64::total_cmp);
        // A tie is half a win.
        let wins = away.iter().map(|a| {
            let below = sorted.partition_point(|h| h < a);
            let up_to = sorted.partition_point(|h| h <= a);
            0.5 * (below + up_to) as f64
        });
        Abroad {
            home: mean(home),
            away: mean(away),
            area: wins.sum::<f64>() / (home.len() * away.len()).max(1) as f64,
        }
    }
}

/// Entropy of each row's class probabilities, nats.
fn entropies(probabilities: &[f64]) -> Vec<f64> {
    let rows = probabilities.chunks_exact(CLASSES);
    let entropy = |p: &[f64]| -> f64 {
        let terms = p.iter().filter(|p| **p > 0.0);
        -terms.map(|p| p * p.ln()).sum::<f64>()
    };
    rows.map(entropy).collect()
}

fn settings(files: &Files) -> String {
    format!(
        "[data]\nfile = '{}'\nlabel_file = '{}'\n[data.label]\nclasses = {CLASSES}\n[[data.features]]\npixels = 784\n{MODEL}",
        files.images.display(),
        files.labels.display()
    )
}

/// ε of so many steps of a sampler on gradients.
fn epsilon(sampler: &Sampler, steps: u64, neighbours: Neighbours) -> Result<f64, ReproduceError> {
    let levels: Vec<(GradientNoise, u64)> = match sampler {
        Sampler::Optimiser(s) => vec![(s.noise(), steps)],
        Sampler::StochasticGradient(s) => {
            let levels = s.levels(steps).into_iter();
            levels
                .map(|(t, count)| (s.noise_of_step(t), count))
                .collect()
        }
        _ => Vec::new(),
    };
    let events = levels.into_iter().filter_map(|(noise, count)| {
        let sensitivity = match neighbours {
            Neighbours::AddRemove | Neighbours::ZeroOut => noise.clip?,
            Neighbours::Substitution => 2.0 * noise.clip?,
        };
        let Batch::Poisson { rate } = noise.batch else {
            return None;
        };
        let event = Event::PoissonGaussian {
            rate,
            sensitivity,
            sigma: noise.sigma,
        };
        (noise.sigma > 0.0).then_some((event, count))
    });
    let events: Vec<(Event, u64)> = events.collect();
    if events.is_empty() {
        return Ok(f64::INFINITY);
    }
    let question = Question::Epsilon { delta: DELTA };
    let sequence = Sequence::new(neighbours, events)?;
    Ok(account_within(&sequence, question, TOLERANCE).upper)
}

/// A run that has ended.
struct Ran {
    draws: Vec<Vec<f64>>,
    network: Network,
    sampler: Sampler,
    seconds: f64,
}

/// Runs a sampler for so many steps, the second half of which leaves draws.
fn ran(
    settings: &str,
    sampler: &str,
    budget: Option<f64>,
    (steps, seed): (u64, u64),
) -> Result<Ran, ReproduceError> {
    let privacy = match budget {
        Some(epsilon) => format!("epsilon = {epsilon:?}\ndelta = {DELTA:e}"),
        None => "not_private = true".into(),
    };
    let thin = (steps / 2 / DRAWS).max(1);
    let text = format!(
        "{settings}\n[sampler]\n{sampler}\n[run]\nwarmup = {}\niterations = {}\nthin = {thin}\nchains = 1\nseed = {seed}\nengine = 'cpu'\n[privacy]\n{privacy}\n",
        steps - steps / 2,
        steps / 2
    );
    let prepared = prepare(Plan::parse(std::path::Path::new("images"), text)?)?;
    let network = prepared
        .plan
        .layered_network(prepared.data.features().len())?;
    let sampler = prepared.sampler.clone();
    let failed = |what: String| ReproduceError::Failed(what);
    let mut run = prepared
        .begin(Place::Memory, Coins::Seeded(seed))
        .map_err(|e| failed(e.to_string()))?;
    let start = Instant::now();
    while *run.step() == Status::Running {}
    let seconds = start.elapsed().as_secs_f64();
    if let Status::Failed(what) = run.status() {
        return Err(failed(what.clone()));
    }
    let (draws, _) = run.take_draws();
    Ok(Ran {
        draws: draws.into_iter().map(|d| d.theta).collect(),
        network,
        sampler,
        seconds,
    })
}

fn run(task: &Task, sampler: &str, kind: Kind, steps: u64) -> Result<Outcome, ReproduceError> {
    let budget = (kind == Kind::Sound).then_some(ROOM);
    let ran = ran(&settings(&task.train), sampler, budget, (steps, 1))?;
    let (scores, abroad) = task.scores(&ran.draws, ran.network, 0);
    Ok(Outcome {
        scores,
        abroad,
        substitution: epsilon(&ran.sampler, steps, Neighbours::Substitution)?,
        add_remove: epsilon(&ran.sampler, steps, Neighbours::AddRemove)?,
        seconds: ran.seconds,
    })
}

/// `[sampler]` of so many images a step.
fn adam(images: f64, rows: usize) -> String {
    let rate = (images / rows as f64).min(0.5);
    format!("algorithm = 'adam'\nstep = 2e-3\ngradient = {{ rate = {rate:e} }}")
}

/// PATE, by number of answers.
fn pate(task: &Task, effort: &Effort) -> Result<Vec<(String, Outcome)>, ReproduceError> {
    let folder = tempfile::tempdir().map_err(|e| ReproduceError::Failed(e.to_string()))?;
    // A point without privacy, on images of its own.
    let fit = |images: &Images, (steps, most): (u64, f64), seed| {
        let settings = settings(&images.write(folder.path())?);
        let steps = effort.of(steps, 4);
        ran(&settings, &adam(most, images.len()), None, (steps, seed))
    };
    let start = Instant::now();
    let train = task.train.read()?;
    let teachers = effort.of(TEACHERS, 3) as usize;
    let pool = task.test.part(0..POOL.min(task.test.len() / 2));
    let mut votes = Votes::none(pool.len(), CLASSES);
    for teacher in 0..teachers {
        // Dealt by position: replacing an image changes one part.
        let part = train.part((teacher..train.len()).step_by(teachers));
        let at = fit(&part, TEACHER, teacher as u64)?;
        let said = layers_predictive(&at.draws, at.network, &pool.rows());
        let best = |p: &[f64]| (1..CLASSES).fold(0, |b, k| if p[k] > p[b] { k } else { b });
        let said: Vec<usize> = said.chunks_exact(CLASSES).map(best).collect();
        votes.add(&said);
    }
    let shared = start.elapsed().as_secs_f64();
    let mut found = Vec::new();
    for (answers, wanted) in ANSWERS {
        let start = Instant::now();
        let asked = answers.min(pool.len());
        let sigma = crate::pate::sigma(wanted, answers as u64, DELTA)?;
        let mut labelled = pool.part(0..asked);
        let winners = votes.answers(asked, sigma, 1);
        labelled.labels = winners.into_iter().map(|k| k as u8).collect();
        let student = fit(&labelled, STUDENT, 1)?;
        let (scores, abroad) = task.scores(&student.draws, student.network, pool.len());
        let epsilon = crate::pate::epsilon(sigma, answers as u64, DELTA)?;
        let outcome = Outcome {
            scores,
            abroad,
            substitution: epsilon,
            add_remove: epsilon,
            seconds: shared + start.elapsed().as_secs_f64(),
        };
        let agreement = 100.0 * votes.agreement();
        let label = format!("pate({answers}), {agreement:.0} % of teachers agree");
        found.push((label, outcome));
    }
    Ok(found)
}

/// The MNIST half of Table 1.
pub(super) fn draw(figure: &Figure, effort: &Effort) -> Result<Drawing, ReproduceError> {
    let task = Task::read(effort)?;
    let rows = task.train.read()?.len();
    let (mut table, mut marks) = (Vec::new(), Vec::new());
    let mut losses = Vec::new();
    for entry in &entries(rows) {
        let (mut accuracies, mut points) = (Vec::new(), Vec::new());
        for sampler in &entry.samplers {
            let at = run(&task, sampler, entry.kind, effort.of(entry.steps, 6))?;
            let (accuracy, loss) = (at.scores.accuracy, at.scores.log_loss);
            match entry.kind {
                Kind::Reference => {
                    accuracies.extend([(0.1, accuracy), (WIDEST, accuracy)]);
                    points.extend([(0.1, loss), (WIDEST, loss)]);
                }
                Kind::Published => {
                    let claim = entry.claim.parse().unwrap_or(at.substitution);
                    accuracies.extend([(claim, accuracy), (at.substitution, accuracy)]);
                    points.extend([(claim, loss), (at.substitution, loss)]);
                }
                Kind::Sound => {
                    accuracies.push((at.substitution, accuracy));
                    points.push((at.substitution, loss));
                }
            }
            table.push(row(entry.label, entry.claim, &at));
        }
        let (name, mark) = match entry.kind {
            Kind::Sound => (entry.label.to_string(), Mark::line as fn(String, _) -> Mark),
            Kind::Reference => (
                entry.label.to_string(),
                Mark::dashed as fn(String, _) -> Mark,
            ),
            Kind::Published => (
                format!("{}: from claim to cost", entry.label),
                Mark::dashed as fn(String, _) -> Mark,
            ),
        };
        marks.push(mark(name.clone(), accuracies));
        losses.push(mark(name, points));
    }
    let (mut accuracies, mut points) = (Vec::new(), Vec::new());
    for ((label, at), (_, claim)) in pate(&task, effort)?.iter().zip(ANSWERS) {
        table.push(row(label, &claim.to_string(), at));
        accuracies.push((at.substitution, at.scores.accuracy));
        points.push((at.substitution, at.scores.log_loss));
    }
    marks.push(Mark::line("pate", accuracies));
    losses.push(Mark::line("pate", points));
    let plot = |name: &str, y: &str, marks| Plot {
        name: name.into(),
        x: Axis::log("epsilon at delta = 1e-5, substitution"),
        y: Axis::linear(y),
        marks,
    };
    let plots = vec![
        plot("Accuracy", "test accuracy", marks),
        plot("Log loss", "test log loss, nats", losses),
    ];
    let says = format!("{rows} training images, one run each.");
    let mut head = vec![
        "method",
        "claimed",
        "epsilon, substitution",
        "epsilon, add/remove",
        "accuracy",
        "log loss",
        "Brier",
        "ECE",
    ];
    if task.other.is_some() {
        head.extend(["entropy", "of other images", "area under ROC"]);
    }
    head.push("seconds");
    let table = Table { head, rows: table };
    Ok(Drawing::new(figure, &says, (2, 330.0), plots, table).noting(NOTES))
}

fn row(label: &str, claim: &str, at: &Outcome) -> Vec<String> {
    let cost = |epsilon: f64| match epsilon.is_infinite() {
        true => "NOT private".into(),
        false => shown(epsilon),
    };
    let Calibration {
        accuracy,
        log_loss,
        brier,
        error,
    } = at.scores;
    let mut cells = vec![
        label.into(),
        claim.into(),
        cost(at.substitution),
        cost(at.add_remove),
        format!("{accuracy:.4}"),
        format!("{log_loss:.4}"),
        format!("{brier:.4}"),
        format!("{error:.4}"),
    ];
    let abroad = at.abroad.map(|a| [a.home, a.away, a.area]);
    cells.extend(abroad.into_iter().flatten().map(|v| format!("{v:.3}")));
    cells.push(format!("{:.0}", at.seconds));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entropies 0 and ln 2 at home, ln 2 and ln 10 away: of four pairs away is the larger in
    /// three and equal in one.
    #[test]
    fn foreign_images_are_told_by_their_entropy() {
        let mut home = vec![0.0; 2 * CLASSES];
        (home[0], home[CLASSES], home[CLASSES + 1]) = (1.0, 0.5, 0.5);
        let mut away = vec![0.1; 2 * CLASSES];
        away[..CLASSES].fill(0.0);
        (away[0], away[1]) = (0.5, 0.5);
        let found = Abroad::of(&entropies(&home), &entropies(&away));
        assert!((found.home - 0.5 * 2f64.ln()).abs() < 1e-12);
        assert!((found.away - 0.5 * (2f64.ln() + 10f64.ln())).abs() < 1e-12);
        assert!((found.area - 0.875).abs() < 1e-12);
    }
}
