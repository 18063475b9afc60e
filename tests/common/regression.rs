//! For the tests of anchored regressions: tables whose rows are known, models and samplers over
//! them, and their posteriors' modes.

use std::sync::Arc;

use dpmc::data::{Dataset, LabelKind, Offset};
use dpmc::engine::EngineChoice;
use dpmc::model::{Anchor, Lower, Metric, Model, Prior, Regression};
use dpmc::privacy::{Acceptance, AnchorNoise, Curator, Estimator, OpenCurator, Releases};
use dpmc::sampler::{
    Adapt, Adaptation, AnchoredProposal, AnchoredSettings, Anchoring, Decisions, Preconditioner,
    RandomWalk, Structure,
};

pub const AT: [f64; 2] = [0.6, -0.8];
pub const KAPPA: f64 = 0.7;
/// s² of the linear model.
pub const VARIANCE: f64 = 0.4;
pub const PRIOR_SD: f64 = 0.5;
pub const NORM: f64 = 1.5;

pub const NUMBER: LabelKind = LabelKind::Number {
    low: -2.5,
    high: 2.5,
};
/// So many that no rate is above a quarter of it: weights are not cut.
pub const COUNT: LabelKind = LabelKind::Count { max: 36 };

/// Bounds of the offsets, where a table has some.
pub const OFFSET: Offset = Offset {
    low: -1.0,
    high: 0.8,
};

/// Rows of two features, known to the test, with their labels; offsets, one a row, or none.
pub struct Table {
    pub rows: Vec<[f64; 2]>,
    pub offsets: Vec<f64>,
    pub labels: Vec<f64>,
    pub kind: LabelKind,
}

/// Features and noise by incommensurable turns, label ≈ 0.8 x₁ − 1.1 x₂ or a count about its
/// exponential.
pub fn table(n: usize, kind: LabelKind) -> Table {
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
        offsets: Vec::new(),
        rows,
        kind,
    }
}

impl Table {
    pub fn data(&self) -> Dataset {
        let names = vec!["a".to_string(), "b".to_string()];
        let mut set = Dataset::builder_with(names, Some(self.kind), NORM).unwrap();
        if !self.offsets.is_empty() {
            set = set.with_offset(OFFSET).unwrap();
        }
        for (i, y) in self.labels.iter().enumerate() {
            let x: Vec<f32> = self.row(i).iter().map(|v| *v as f32).collect();
            set.push_value(&x, Some(*y)).unwrap();
        }
        set.finish().unwrap()
    }

    /// Features, and the offset behind them.
    pub fn row(&self, i: usize) -> Vec<f64> {
        let offset = self.offsets.get(i).copied();
        self.rows[i].iter().copied().chain(offset).collect()
    }

    pub fn model(&self) -> Arc<dyn Model> {
        let names = ["a".to_string(), "b".to_string()];
        let prior = Prior::normal(2, PRIOR_SD);
        let model = match self.kind {
            LabelKind::Count { .. } => Regression::poisson(&names, self.kind, NORM, prior, KAPPA),
            _ => Regression::linear(&names, VARIANCE, self.kind, NORM, prior, KAPPA),
        };
        let model = model.unwrap();
        match self.offsets.is_empty() {
            true => Arc::new(model),
            false => Arc::new(model.with_offset(OFFSET)),
        }
    }

    pub fn open(&self, seed: u64) -> OpenCurator {
        Curator::not_private(self.data(), self.model(), EngineChoice::Cpu, seed).unwrap()
    }

    /// Near the posterior's precision, so that u is of order one.
    pub fn metric(&self) -> Metric {
        let factor = Lower::new(match self.kind {
            LabelKind::Count { .. } => vec![7.4, 0.0, -0.8, 7.0],
            _ => vec![10.0, 0.0, 0.6, 10.5],
        });
        let factor = factor.unwrap();
        let row_bound = NORM * factor.inverse_norm();
        Metric { factor, row_bound }
    }

    pub fn anchor(&self, noise: AnchorNoise, radius: f64) -> Anchor {
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
            spread: Vec::new(),
            doubts: Default::default(),
            alone: None,
        }
    }

    pub fn sampler(
        &self,
        estimator: Estimator,
        rule: Acceptance,
        proposal: AnchoredProposal,
    ) -> RandomWalk {
        let model = self.model();
        let settings = AnchoredSettings {
            anchoring: Anchoring {
                start: AT.to_vec(),
                location: None,
                stages: 0,
                rows: self.rows.len(),
                row_norm: NORM,
                unit: KAPPA * model.unit(),
                slopes: model.slopes().unwrap(),
                structure: Structure::default(),
                clip: Some(100.0),
                radius: 3.0,
                split: None,
                undecided: false,
            },
            proposal,
            share: 1.0,
            refresh_after: None,
            decisions: Decisions::All,
        };
        let adaptation = Adaptation::new(Adapt::None, 0.3, 0, 2);
        let prior = model.prior().clone();
        let identity = Preconditioner::Identity;
        RandomWalk::new(prior, estimator, rule, None, 1.0, identity, adaptation)
            .with_anchoring(settings)
    }
}

/// Mean and sd of the Gaussian of this precision (2 × 2) whose log density has this gradient at
/// θ*.
pub fn gaussian(precision: [f64; 4], gradient: [f64; 2]) -> [(f64, f64); 2] {
    let [a, b, c, d] = precision;
    let determinant = a * d - b * c;
    let covariance = [d, -b, -c, a].map(|v| v / determinant);
    let moment = |j: usize| {
        let step = covariance[2 * j] * gradient[0] + covariance[2 * j + 1] * gradient[1];
        (AT[j] + step, covariance[3 * j].sqrt())
    };
    [moment(0), moment(1)]
}

/// Maximum of the posterior and Laplace's sds, by Newton steps in f64.
pub fn mode(table: &Table, model: &dyn Model, prior_sd: f64) -> [(f64, f64); 2] {
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
