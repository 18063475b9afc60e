//! The promise: linear and Poisson regression are anchored like logistic regression. Chains
//! target exactly the posterior times the anchor's tilt, run files need no more than the
//! algorithm's name, and draws carry the anchor's noise.
//!
//! Tolerances as in `known_posteriors`: 5.5 Monte-Carlo standard errors for means (4e-8
//! each) and 3 % for standard deviations at 14,000 effective draws or more (6e-7).

#[path = "common/chains.rs"]
#[allow(dead_code)]
mod chains;
#[path = "common/place.rs"]
#[allow(dead_code)]
mod place;

use std::path::Path;
use std::sync::Arc;

use chains::{assert_moments, quadrature};
use dpmc::config::Plan;
use dpmc::data::{Dataset, LabelKind};
use dpmc::diagnostics::{ess_bulk, mean, noise_aware, sd};
use dpmc::engine::EngineChoice;
use dpmc::model::{Anchor, Linear, Lower, Metric, Model, Poisson, Prior};
use dpmc::posterior_run::{PosteriorRun, Status};
use dpmc::privacy::{
    Acceptance, AnchorNoise, Curator, Estimator, Lambda, Ledger, OpenCurator, Releases,
};
use dpmc::sampler::{
    Adapt, Adaptation, AnchoredProposal, AnchoredSettings, Anchoring, Chains, Preconditioner,
    RandomWalk,
};
use place::{Place, RUN, edit};

const AT: [f64; 2] = [0.6, -0.8];
const KAPPA: f64 = 0.7;
/// s² of the linear model.
const VARIANCE: f64 = 0.4;
const PRIOR_SD: f64 = 0.5;
const NORM: f64 = 1.5;

const NUMBER: LabelKind = LabelKind::Number {
    low: -2.5,
    high: 2.5,
};
const COUNT: LabelKind = LabelKind::Count { max: 12 };

/// Rows of two features, known to the test, with their labels.
struct Table {
    rows: Vec<[f64; 2]>,
    labels: Vec<f64>,
    kind: LabelKind,
}

/// Features and noise by incommensurable turns, label ≈ 0.8 x₁ − 1.1 x₂ or a count about its
/// exponential.
fn table(n: usize, kind: LabelKind) -> Table {
    let narrow = |v: f64| f64::from(v as f32);
    let turn = |i: usize, k: f64| (i as f64 * k + k * k).sin();
    let rows: Vec<[f64; 2]> = (0..n)
        .map(|i| [narrow(turn(i, 1.7)), narrow(turn(i, 2.9))])
        .collect();
    let labels = rows.iter().enumerate().map(|(i, x)| {
        let eta = 0.8 * x[0] - 1.1 * x[1];
        let noise = turn(i, 0.37) + turn(i, 5.3);
        match kind {
            LabelKind::Count { .. } => {
                let rate = eta.exp();
                (rate + noise * rate.sqrt()).round().clamp(0.0, 12.0)
            }
            _ => narrow((eta + VARIANCE.sqrt() * noise).clamp(-2.5, 2.5)),
        }
    });
    Table {
        labels: labels.collect(),
        rows,
        kind,
    }
}

impl Table {
    fn data(&self) -> Dataset {
        let names = vec!["a".to_string(), "b".to_string()];
        let mut set = Dataset::builder_with(names, Some(self.kind), NORM).unwrap();
        for (x, y) in self.rows.iter().zip(&self.labels) {
            let x = [x[0] as f32, x[1] as f32];
            set.push_value(&x, Some(*y)).unwrap();
        }
        set.finish().unwrap()
    }

    fn model(&self) -> Arc<dyn Model> {
        let names = ["a".to_string(), "b".to_string()];
        let prior = Prior::normal(2, PRIOR_SD);
        match self.kind {
            LabelKind::Count { .. } => {
                Arc::new(Poisson::new(&names, self.kind, NORM, prior, KAPPA).unwrap())
            }
            _ => Arc::new(Linear::new(&names, VARIANCE, self.kind, NORM, prior, KAPPA).unwrap()),
        }
    }

    fn open(&self, seed: u64) -> OpenCurator {
        Curator::not_private(self.data(), self.model(), EngineChoice::Cpu, seed).unwrap()
    }

    /// Near the posterior's precision, so that u is of order one.
    fn metric(&self) -> Metric {
        let factor = Lower::new(match self.kind {
            LabelKind::Count { .. } => vec![7.4, 0.0, -0.8, 7.0],
            _ => vec![10.0, 0.0, 0.6, 10.5],
        });
        let factor = factor.unwrap();
        let row_bound = NORM * factor.inverse_norm();
        Metric { factor, row_bound }
    }

    fn anchor(&self, noise: Option<AnchorNoise>, radius: f64) -> Anchor {
        let expansion = self.open(3).anchor(&AT, &self.metric(), noise).unwrap();
        Anchor {
            at: AT.to_vec(),
            metric: self.metric(),
            gradient: expansion.gradient,
            curvature: expansion.curvature,
            gradient_sd: expansion.gradient_sd,
            curvature_sd: expansion.curvature_sd,
            centre: vec![0.3, -0.4],
            radius,
        }
    }

    fn sampler(
        &self,
        estimator: Estimator,
        rule: Acceptance,
        proposal: AnchoredProposal,
    ) -> RandomWalk {
        let model = self.model();
        let settings = AnchoredSettings {
            anchoring: Anchoring {
                start: AT.to_vec(),
                stages: 0,
                rows: self.rows.len(),
                row_norm: NORM,
                unit: KAPPA * model.unit(),
                slopes: model.slopes().unwrap(),
                clip: 100.0,
                radius: 3.0,
                split: None,
            },
            proposal,
            share: 1.0,
        };
        let adaptation = Adaptation::new(Adapt::None, 0.3, 0, 2);
        let prior = model.prior().clone();
        let identity = Preconditioner::Identity;
        RandomWalk::new(prior, estimator, rule, None, 1.0, identity, adaptation)
            .with_anchoring(settings)
    }

    /// Long chains around `anchor` have these moments, whatever the estimator, rule and proposal.
    fn check_chains(&self, anchor: &Anchor, exact: &[(f64, f64)]) {
        let poisson = Estimator::Poisson {
            lambda: Lambda::Ratio(0.5),
        };
        let auto = |correlation| AnchoredProposal::Autoregressive { correlation };
        let walk = AnchoredProposal::RandomWalk { step: 1.5 };
        let all = Estimator::FullBatch;
        for (k, (estimator, rule, proposal)) in [
            (poisson, Acceptance::Barker, auto(0.0)),
            (poisson, Acceptance::Barker, walk),
            (all, Acceptance::Barker, auto(-0.4)),
            (all, Acceptance::Metropolis, auto(0.3)),
            (all, Acceptance::Penalty { tau: 0.05 }, auto(0.0)),
        ]
        .into_iter()
        .enumerate()
        {
            let mut curator = self.open(50 + k as u64);
            let mut sampler = self.sampler(estimator, rule, proposal);
            sampler.set_anchor(anchor.clone()).unwrap();
            curator.set_anchor(anchor.clone()).unwrap();
            let mut chains = Chains::new(&[AT.to_vec()], [k as u8; 32]);
            sampler.start_at_anchor(&mut chains);
            let mut draws = [Vec::new(), Vec::new()];
            for _ in 0..220_000 {
                sampler.step(&mut chains, &mut curator).unwrap();
                for (column, v) in draws.iter_mut().zip(chains.thetas.row(0)) {
                    column.push(*v);
                }
            }
            for (j, (column, exact)) in draws.iter().zip(exact).enumerate() {
                let label = format!(
                    "{:?} {proposal:?} {estimator:?} {rule:?} parameter {j}",
                    self.kind
                );
                assert_moments(&label, column, *exact);
            }
        }
    }
}

/// Mean and sd of the Gaussian of this precision (2 × 2) whose log density has this gradient at
/// θ*.
fn gaussian(precision: [f64; 4], gradient: [f64; 2]) -> [(f64, f64); 2] {
    let [a, b, c, d] = precision;
    let determinant = a * d - b * c;
    let covariance = [d, -b, -c, a].map(|v| v / determinant);
    let moment = |j: usize| {
        let step = covariance[2 * j] * gradient[0] + covariance[2 * j + 1] * gradient[1];
        (AT[j] + step, covariance[3 * j].sqrt())
    };
    [moment(0), moment(1)]
}

/// Conjugate posterior, in plain f64 sums over the rows, plus a tilt in θ.
fn conjugate(
    table: &Table,
    kappa: f64,
    prior_sd: f64,
    tilt: ([f64; 4], [f64; 2]),
) -> [(f64, f64); 2] {
    let (mut precision, mut gradient) = tilt;
    for j in 0..2 {
        precision[3 * j] += 1.0 / (prior_sd * prior_sd);
        gradient[j] -= AT[j] / (prior_sd * prior_sd);
    }
    for (x, y) in table.rows.iter().zip(&table.labels) {
        let residual = y - x[0] * AT[0] - x[1] * AT[1];
        for i in 0..2 {
            gradient[i] += kappa / VARIANCE * residual * x[i];
            for j in 0..2 {
                precision[2 * i + j] += kappa / VARIANCE * x[i] * x[j];
            }
        }
    }
    gaussian(precision, gradient)
}

/// `L(g̃ − g)` and `L(C̃ − C)Lᵀ`: what noise adds to gradient and precision in θ.
fn tilt(noisy: &Anchor, exact: &Anchor) -> ([f64; 4], [f64; 2]) {
    let l = |i: usize, j: usize| noisy.metric.factor.entries()[2 * i + j];
    let (mut precision, mut gradient) = ([0.0; 4], [0.0; 2]);
    for i in 0..2 {
        for p in 0..2 {
            gradient[i] += l(i, p) * (noisy.gradient[p] - exact.gradient[p]);
            for j in 0..2 {
                for q in 0..2 {
                    let change = noisy.curvature[2 * p + q] - exact.curvature[2 * p + q];
                    precision[2 * i + j] += l(i, p) * change * l(j, q);
                }
            }
        }
    }
    (precision, gradient)
}

/// How far the tilt moves the mean, in the larger posterior sd.
fn moved(a: &[(f64, f64)], b: &[(f64, f64)]) -> f64 {
    (a[0].0 - b[0].0).hypot(a[1].0 - b[1].0) / a[0].1.max(a[1].1)
}

#[test]
fn anchored_linear_chains_draw_from_the_conjugate_posterior_and_its_tilt() {
    let table = table(120, NUMBER);
    // So large an ellipsoid that it is not felt.
    let exact = table.anchor(None, 40.0);
    let posterior = conjugate(&table, KAPPA, PRIOR_SD, ([0.0; 4], [0.0; 2]));
    table.check_chains(&exact, &posterior);
    let noise = AnchorNoise {
        gradient: 0.15,
        curvature: 0.15,
    };
    let noisy = table.anchor(Some(noise), 40.0);
    let tilted = conjugate(&table, KAPPA, PRIOR_SD, tilt(&noisy, &exact));
    let far = moved(&posterior, &tilted);
    assert!(far > 0.1, "the noise does nothing: {far}");
    table.check_chains(&noisy, &tilted);
}

#[test]
fn anchored_poisson_chains_match_quadrature_of_the_tilted_posterior() {
    let table = table(120, COUNT);
    let exact = table.anchor(None, 3.0);
    let noise = AnchorNoise {
        gradient: 0.05,
        curvature: 0.05,
    };
    let noisy = table.anchor(Some(noise), 3.0);
    let model = table.model();
    // Straight from the rows' densities, which know nothing of remainders.
    let target = |anchor: &Anchor, theta: &[f64]| {
        if !anchor.contains(theta) {
            return f64::NEG_INFINITY;
        }
        let rows = table.rows.iter().zip(&table.labels);
        let sum: f64 = rows.map(|(x, y)| model.log_ratio(x, *y, &AT, theta)).sum();
        sum + model.prior().log_density(theta) + anchor.log_density(theta)
            - exact.log_density(theta)
    };
    let scale = [0.14, 0.14];
    let tilted = quadrature(|t| target(&noisy, t), &AT, &scale, 1e9);
    let posterior = quadrature(|t| target(&exact, t), &AT, &scale, 1e9);
    let far = moved(&posterior, &tilted);
    assert!(far > 0.1, "the noise does nothing: {far}");
    table.check_chains(&noisy, &tilted);
}

/// A run file's first lines for a table of this kind.
fn run_file(kind: LabelKind) -> String {
    let (label, model) = match kind {
        LabelKind::Count { .. } => ("count = 12", "kind = \"poisson\""),
        _ => ("clamp = [-2.5, 2.5]", "kind = \"linear\"\nvariance = 0.4"),
    };
    format!(
        "[data]\nfile = \"made up\"\n[data.label]\ncolumn = \"y\"\n{label}\n[[data.features]]\ncolumns = [\"a\", \"b\"]\nclamp = [-1, 1]\n[model]\n{model}\nprior = {{ kind = \"normal\", sd = 3.0 }}\n[sampler]\nalgorithm = \"anchored-barker\"\n[run]\niterations = 6000\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n"
    )
}

/// Maximum of the posterior and Laplace's sds, by Newton steps in f64.
fn mode(table: &Table, model: &dyn Model, prior_sd: f64) -> [(f64, f64); 2] {
    let mut theta = [0.0; 2];
    let mut moments = [(0.0, 0.0); 2];
    for _ in 0..50 {
        let (mut gradient, mut precision) = ([0.0; 2], [0.0; 4]);
        for (x, y) in table.rows.iter().zip(&table.labels) {
            let eta = x[0] * theta[0] + x[1] * theta[1];
            let (score, weight) = model.slopes().unwrap().score.slopes(eta, *y);
            for i in 0..2 {
                gradient[i] += model.tempering() * model.unit() * score * x[i];
                for j in 0..2 {
                    precision[2 * i + j] += model.tempering() * model.unit() * weight * x[i] * x[j];
                }
            }
        }
        for j in 0..2 {
            precision[3 * j] += 1.0 / (prior_sd * prior_sd);
            gradient[j] -= theta[j] / (prior_sd * prior_sd);
        }
        moments = gaussian(precision, gradient);
        for j in 0..2 {
            theta[j] += moments[j].0 - AT[j];
            moments[j].0 = theta[j];
        }
    }
    moments
}

/// From a run file that names the algorithm alone: warm start, anchor and steps within ε = 3.
/// The mean lies within 5.5 sds of the anchor's stated noise of the true one (4e-8 a parameter;
/// a tenth of a posterior sd for Laplace's error and clipped rows), and the budget is kept.
#[test]
fn run_files_sample_regressions_around_private_anchors() {
    for kind in [NUMBER, COUNT] {
        let table = table(20_000, kind);
        let plan = Plan::parse(Path::new("run.toml"), run_file(kind)).unwrap();
        let data = table.data();
        let model = plan.model(&data).unwrap();
        let expected = mode(&table, &*model, 3.0);
        let sampler = plan.sampler(&*model, data.rows(), data.row_norm()).unwrap();
        let chains = Chains::new(&plan.starts(&*model, [1; 32]).unwrap(), [1; 32]);
        let budget = plan.budget().unwrap().unwrap();
        let ledger = Ledger::in_memory(budget);
        let curator = Curator::private(data, model, EngineChoice::Cpu, ledger, Some(1)).unwrap();
        let length = plan.length().unwrap();
        let mut run = PosteriorRun::new(curator, sampler, chains, length, String::new(), vec![]);
        while *run.step() == Status::Running {}
        assert!(
            matches!(run.status(), Status::Finished),
            "{:?}",
            run.status()
        );
        let spent = run.curator().ledger().unwrap().spent();
        assert!(spent <= budget.rho(), "{spent}");
        let anchor = run.state(0).anchor.clone().unwrap();
        let (draws, _) = run.take_draws();
        let column = |j: usize| -> Vec<f64> { draws.iter().map(|d| d.theta[j]).collect() };
        let columns: Vec<Vec<Vec<f64>>> = (0..2).map(|j| vec![column(j)]).collect();
        let noise = noise_aware(&columns, &anchor).unwrap();
        for j in 0..2 {
            let (m, s) = (mean(&columns[j][0]), sd(&columns[j][0]));
            let ess = ess_bulk(&columns[j]);
            let (exact, laplace) = expected[j];
            println!(
                "{kind:?} {j}: {m:.4} against {exact:.4}, sd {s:.4} against {laplace:.4}, noise {:.4}, ess {ess:.0}, rho {spent:.4} of {:.4}",
                noise[j].mean_sd,
                budget.rho()
            );
            let allowed = 5.5 * noise[j].mean_sd.hypot(s / ess.sqrt()) + 0.1 * laplace;
            assert!((m - exact).abs() < allowed, "{kind:?}: {m} against {exact}");
            assert!(
                noise[j].mean_sd < 3.0 * laplace,
                "{kind:?}: the anchor is all noise"
            );
            assert!(
                (s / laplace - 1.0).abs() < 0.5,
                "{kind:?}: {s} against {laplace}"
            );
            assert!(ess > 800.0, "{kind:?}: {ess}");
        }
    }
}

/// Counts of about 20 seen from θ = 0, where rates are 1: a whole Newton step would raise η by
/// 19, and steps of clipped scores over clipped weights would not come back.
#[test]
fn a_warm_start_does_not_overshoot_an_exponential() {
    let kind = LabelKind::Count { max: 60 };
    let mut table = table(4_000, kind);
    for (i, (x, y)) in table.rows.iter_mut().zip(&mut table.labels).enumerate() {
        x[0] = 1.0;
        let rate = (3.0 - 0.4 * x[1]).exp();
        *y = (rate + rate.sqrt() * (i as f64 * 0.37).sin()).round();
    }
    let model = table.model();
    let walk = table.sampler(
        Estimator::FullBatch,
        Acceptance::Barker,
        AnchoredProposal::Autoregressive { correlation: 0.0 },
    );
    let mut anchoring = walk.anchoring.unwrap().anchoring;
    anchoring.start = vec![0.0; 2];
    anchoring.stages = 6;
    let anchor = anchoring.run(model.prior(), &mut table.open(1)).unwrap();
    let centre = anchor.theta(&anchor.centre);
    for (j, (exact, sd)) in mode(&table, &*model, PRIOR_SD).into_iter().enumerate() {
        let gap = (centre[j] - exact).abs() / sd;
        assert!(gap < 0.1, "{j}: {centre:?} is {gap} sds off {exact}");
    }
}

/// The command itself: what it checks, samples and sums up.
#[test]
fn the_command_anchors_regressions_and_reports_their_noise() {
    for (label, model) in [
        ("clamp = [-1, 2]", "\"linear\"\nvariance = 0.25"),
        ("count = 2", "\"poisson\""),
    ] {
        let run = edit(RUN, "column = \"y\"", &format!("column = \"y\"\n{label}"));
        let run = edit(&run, "\"logistic\"", model);
        let run = edit(&run, "\"barker\"\nstep = 0.0001", "\"anchored-barker\"");
        let run = edit(&run, "epsilon = 5.0", "epsilon = 30.0");
        let place = Place::new(&run);
        assert!(place.works("check run.toml").contains("anchor     rho"));
        place.works("sample run.toml --out out --quiet");
        let summary = place.works("summary out");
        assert!(summary.contains("with the anchor's noise"), "{summary}");
        let json: serde_json::Value =
            serde_json::from_str(&place.works("summary out --json")).unwrap();
        let noise = json["noise_aware"].as_array().unwrap();
        assert_eq!(noise.len(), 3);
        assert!(noise.iter().all(|n| n["mean_sd"].as_f64().unwrap() > 0.0));
    }
    // A linear model leaves no remainder that could be clipped.
    let run = edit(RUN, "column = \"y\"", "column = \"y\"\nclamp = [-1, 2]");
    let run = edit(&run, "\"logistic\"", "\"linear\"\nvariance = 0.25");
    let clip = "\"anchored-barker\"\nclip = { share = 0.5 }";
    let run = edit(&run, "\"barker\"\nstep = 0.0001", clip);
    let message = Place::new(&run).refuses("check run.toml");
    assert!(
        message.contains("sampler.clip") && message.contains("quadratic"),
        "{message}"
    );
}
