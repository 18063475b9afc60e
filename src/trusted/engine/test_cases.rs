//! Models over synthetic rows for the engines' tests, with partial tiles, quads and workgroups.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use super::RatioQuery;
use crate::data::{Dataset, LabelKind, Offset};
use crate::expression::Law;
use crate::model::{
    Anchor, Anchored, Banana, GaussianMean, Layered, Metric, Mixture, Mlp, Model, MomentAnchor,
    MomentBasis, MomentRemainder, Moments, Prior, Regression, RowFunction, Slopes, Surrogate,
};
use crate::network::{Layer, Network, Volume};
use crate::synthetic;

pub(super) struct Case {
    pub data: Arc<Dataset>,
    pub rows: Vec<f64>,
    pub labels: Vec<f64>,
    pub model: Arc<dyn Model>,
}

pub(super) fn case(data: Dataset, model: impl Fn(&Dataset) -> Box<dyn Model>) -> Case {
    let model = model(&data);
    with(data, model.into())
}

fn with(data: Dataset, model: Arc<dyn Model>) -> Case {
    let rows = data.public_rows().iter().map(|v| f64::from(*v)).collect();
    let labels = data.labels().iter().map(|v| f64::from(*v)).collect();
    Case {
        model,
        data: Arc::new(data),
        rows,
        labels,
    }
}

/// The same cases again, over rows in 16 bits.
fn of_both_storages(floats: Vec<Case>) -> Vec<Case> {
    let integers = floats
        .iter()
        .map(|c| with(c.data.in_16_bits(), c.model.clone()));
    let integers: Vec<Case> = integers.collect();
    floats.into_iter().chain(integers).collect()
}

/// A table of floats with the rows of another one.
pub(super) fn floats(data: &Dataset) -> Dataset {
    // Wider, so that no row is scaled and no rounded offset cut off.
    let norm = 1.001 * data.row_norm();
    let kind = data.label_kind();
    let mut builder = Dataset::builder_with(data.features().to_vec(), kind, norm).unwrap();
    if let Some(Offset { low, high }) = data.offset() {
        let (low, high) = (low - 1.0, high + 1.0);
        builder = builder.with_offset(Offset { low, high }).unwrap();
    }
    for (i, row) in data.public_rows().chunks(data.width()).enumerate() {
        let label = data.labels().get(i).map(|y| f64::from(*y));
        builder.push_value(row, label).unwrap();
    }
    builder.finish().unwrap()
}

/// Bounds of the offsets of [`offset`].
const OFFSET: Offset = Offset {
    low: -0.9,
    high: 0.6,
};

/// The same rows, each with an offset.
fn offset(data: Dataset) -> Dataset {
    let builder =
        Dataset::builder_with(data.features().to_vec(), data.label_kind(), data.row_norm());
    let mut builder = builder.unwrap().with_offset(OFFSET).unwrap();
    for (i, row) in data.public_rows().chunks(data.width()).enumerate() {
        let own = -0.15 + 0.75 * (0.7 * i as f32).sin();
        let label = f64::from(data.labels()[i]);
        builder
            .push_value(&[row, &[own]].concat(), Some(label))
            .unwrap();
    }
    builder.finish().unwrap()
}

/// Row counts that leave partial tiles, quads and workgroups; rows of either storage.
pub(super) fn cases() -> Vec<Case> {
    let theta: Vec<f64> = (0..7).map(|j| 0.5 * f64::from(j) - 1.5).collect();
    of_both_storages(vec![
        case(synthetic::logistic(3_003, &theta, 1).unwrap(), |d| {
            let prior = Prior::normal(7, 10.0);
            Box::new(Regression::logistic(d.features(), d.row_norm(), prior, 0.3).unwrap())
        }),
        case(synthetic::mixture(2_021, Some(3.0), 2).unwrap(), |d| {
            Box::new(Mixture::new(2.0, d.row_norm(), Prior::flat_box(2, 3.0), 0.02).unwrap())
        }),
        case(
            synthetic::gaussian(1_501, &[0.0, 3.0, 0.0], &[1.0, 0.5, 2.0], 8.0, 3).unwrap(),
            |d| {
                let covariance = [1.0, 0.1, 0.0, 0.1, 0.25, 0.0, 0.0, 0.0, 4.0];
                let prior = Prior::flat_box(3, 4.0);
                let model = GaussianMean::new(d.features(), &covariance, 8.0, prior, 1.0);
                Box::new(model.unwrap())
            },
        ),
        case(synthetic::logistic(2_005, &theta, 4).unwrap(), |d| {
            Box::new(anchored(d, 0.3, vec![0.1, -0.2, 0.3, 0.0, 0.5, -0.4, 0.2]))
        }),
        case(
            synthetic::poisson(1_333, &[0.8, -0.5], 48, 8).unwrap(),
            |d| Box::new(anchored(d, 0.7, vec![0.6, -0.4])),
        ),
        case(
            synthetic::linear(1_999, &[0.8, -1.1], 0.6, 2.5, 5).unwrap(),
            |d| {
                let (label, prior) = (d.label_kind().unwrap(), Prior::flat_box(2, 3.0));
                let norm = d.row_norm();
                Box::new(Regression::linear(d.features(), 0.4, label, norm, prior, 0.7).unwrap())
            },
        ),
        case(
            synthetic::poisson(1_777, &[0.8, -0.5], 12, 6).unwrap(),
            |d| {
                let (label, prior) = (d.label_kind().unwrap(), Prior::flat_box(2, 3.0));
                Box::new(
                    Regression::poisson(d.features(), label, d.row_norm(), prior, 0.7).unwrap(),
                )
            },
        ),
        case(
            offset(synthetic::logistic(2_007, &theta[..4], 4).unwrap()),
            |d| {
                let prior = Prior::normal(4, 10.0);
                let model = Regression::logistic(d.features(), d.row_norm(), prior, 0.3);
                Box::new(model.unwrap().with_offset(OFFSET))
            },
        ),
        case(
            offset(synthetic::linear(1_235, &[0.8, -1.1], 0.6, 2.5, 5).unwrap()),
            |d| {
                let (label, prior) = (d.label_kind().unwrap(), Prior::flat_box(2, 3.0));
                let model = Regression::linear(d.features(), 0.4, label, d.row_norm(), prior, 0.7);
                Box::new(model.unwrap().with_offset(OFFSET))
            },
        ),
        case(
            offset(synthetic::poisson(1_337, &[0.8, -0.5, 0.2], 12, 6).unwrap()),
            |d| {
                let (label, prior) = (d.label_kind().unwrap(), Prior::flat_box(3, 3.0));
                let model = Regression::poisson(d.features(), label, d.row_norm(), prior, 0.7);
                Box::new(model.unwrap().with_offset(OFFSET))
            },
        ),
        case(
            offset(synthetic::logistic(1_005, &theta[..3], 4).unwrap()),
            |d| Box::new(anchored(d, 0.3, vec![0.1, -0.2, 0.3])),
        ),
        case(
            offset(synthetic::poisson(1_101, &[0.8, -0.5], 48, 8).unwrap()),
            |d| Box::new(anchored(d, 0.7, vec![0.6, -0.4])),
        ),
        case(
            synthetic::banana(1_234, [0.3, -0.4], 0.5, [2.0, 1.5], 6.0, 7).unwrap(),
            |d| {
                let prior = Prior::flat_box(2, 3.0);
                Box::new(Banana::new(0.5, [2.0, 1.5], d.row_norm(), prior, 0.7).unwrap())
            },
        ),
        case(
            synthetic::classes(1_009, &[2.0, -1.0], 3, 9).unwrap(),
            |d| Box::new(layered(d.label_kind().unwrap(), 0.7)),
        ),
    ])
}

/// All of the cases whose ratios the GPU engine sums.
pub(super) fn on_gpu() -> Vec<Case> {
    let all = cases().into_iter().chain(networks_and_declared());
    all.filter(|c| c.model.row_function().on_gpu()).collect()
}

/// Networks with a Bernoulli and a softmax head, and one seen from an anchor; declared likelihoods
/// with and without shared parameters, and seen from an anchor.
pub(super) fn networks_and_declared() -> Vec<Case> {
    let make = |hidden, d: &Dataset| {
        let (names, label) = (d.features(), d.label_kind().unwrap());
        let shape = Mlp::shape(names.len(), hidden, label).unwrap();
        let prior = Prior::normal(shape.parameters(), 2.0);
        Mlp::new(names, hidden, label, prior, 0.7).unwrap()
    };
    let network = |hidden| move |d: &Dataset| -> Box<dyn Model> { Box::new(make(hidden, d)) };
    of_both_storages(vec![
        case(
            synthetic::logistic(1_101, &[2.0, -1.0, 0.5], 3).unwrap(),
            |d| {
                let model = make(4, d);
                let at = (0..model.dim()).map(|j| (1.7 * j as f64 + 0.3).sin());
                let anchor = plain_anchor(at.collect(), 9.0);
                Box::new(Anchored::new(Arc::new(model), anchor).unwrap())
            },
        ),
        case(
            synthetic::logistic(1_003, &[2.0, -1.0, 0.5], 8).unwrap(),
            network(5),
        ),
        case(
            synthetic::classes(777, &[2.0, -1.0], 4, 9).unwrap(),
            network(7),
        ),
        case(
            synthetic::logistic(1_103, &[2.0, -1.0, 0.5], 3).unwrap(),
            |d| Box::new(declared(d, "probit", &[], 0.7)),
        ),
        case(
            synthetic::poisson(1_203, &[0.8, -0.5], 12, 6).unwrap(),
            |d| Box::new(declared(d, "negative-binomial", &[], 0.7)),
        ),
        case(
            synthetic::linear(901, &[0.8, -1.1], 0.6, 2.5, 5).unwrap(),
            |d| Box::new(declared(d, "gaussian", &[], 1.0)),
        ),
        case(
            synthetic::logistic(1_103, &[2.0, -1.0, 0.5], 3).unwrap(),
            |d| {
                let model = Arc::new(declared(d, "cloglog", &[], 0.7));
                let anchor = plain_anchor(vec![0.3, -0.2, 0.1], 9.0);
                Box::new(Anchored::new(model, anchor).unwrap())
            },
        ),
        case(
            offset(synthetic::linear(907, &[0.8, -1.1], 0.6, 2.5, 5).unwrap()),
            |d| Box::new(declared(d, "gaussian", &[], 1.0).with_offset(OFFSET)),
        ),
        case(
            offset(synthetic::logistic(1_109, &[2.0, -1.0, 0.5], 3).unwrap()),
            |d| {
                let model = declared(d, "cloglog", &[], 0.7).with_offset(OFFSET);
                let anchor = plain_anchor(vec![0.3, -0.2, 0.1], 9.0);
                Box::new(Anchored::new(Arc::new(model), anchor).unwrap())
            },
        ),
        case(
            synthetic::linear(901, &[0.8, -1.1], 0.6, 2.5, 5).unwrap(),
            |d| {
                let fixed = [("log_sigma", -0.5), ("nu", 4.0)];
                let model = Arc::new(declared(d, "student-t", &fixed, 0.7));
                let anchor = plain_anchor(vec![0.6, -0.4], 9.0);
                Box::new(Anchored::new(model, anchor).unwrap())
            },
        ),
    ])
}

/// A network of a few layers over two features, taken for a picture of two places.
pub(super) fn layered(label: LabelKind, tempering: f64) -> Layered {
    let conv = Layer::Conv {
        channels: 5,
        kernel: 2,
        stride: 1,
        padding: 1,
    };
    let pool = Layer::MaxPool {
        kernel: 2,
        stride: 1,
    };
    let input = Volume {
        height: 1,
        width: 2,
        channels: 1,
    };
    let layers = [
        conv,
        Layer::Softplus,
        pool,
        Layer::Dense { units: 3 },
        Layer::Tanh,
    ];
    let outputs = Layered::outputs(label).unwrap();
    let network = Network::new(input, &layers, outputs).unwrap();
    let prior = Prior::normal(network.parameters(), 2.0);
    Layered::new(network, label, prior, tempering).unwrap()
}

/// A family's likelihood over some rows, in a box; parameters that are not fixed are sampled.
pub(super) fn declared(
    data: &Dataset,
    name: &str,
    fixed: &[(&str, f64)],
    tempering: f64,
) -> Regression {
    let family = crate::expression::family(name).unwrap();
    let fixed: Vec<(String, f64)> = fixed.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let names = family.parameters.iter().map(|(n, _)| n.to_string());
    let shared: Vec<String> = names
        .filter(|n| fixed.iter().all(|(f, _)| f != n))
        .collect();
    let law = Law::new(name, family.likelihood, &shared, &fixed).unwrap();
    let prior = Prior::flat_box(data.features().len() + shared.len(), 1.0);
    let label = data.label_kind().unwrap();
    let model = Regression::declared(
        data.features(),
        law,
        label,
        data.row_norm(),
        prior,
        tempering,
    );
    model.unwrap()
}

/// Anchored logistic, linear or Poisson regression, by the label, in plain coordinates, far
/// from its edge.
pub(super) fn anchored(data: &Dataset, tempering: f64, at: Vec<f64>) -> Anchored {
    let d = at.len();
    let prior = Prior::normal(d, 10.0);
    let (names, norm) = (data.features(), data.row_norm());
    let model = match data.label_kind() {
        Some(label @ LabelKind::Number { .. }) => {
            Regression::linear(names, 0.4, label, norm, prior, tempering).unwrap()
        }
        Some(label @ LabelKind::Count { .. }) => {
            Regression::poisson(names, label, norm, prior, tempering).unwrap()
        }
        _ => Regression::logistic(names, norm, prior, tempering).unwrap(),
    };
    let model = match data.offset() {
        Some(offset) => model.with_offset(offset),
        None => model,
    };
    Anchored::new(Arc::new(model), plain_anchor(at, norm)).unwrap()
}

/// An expansion at `at` in plain coordinates, of rows of this norm, far from its edge.
pub(super) fn plain_anchor(at: Vec<f64>, norm: f64) -> Anchor {
    let d = at.len();
    Anchor {
        at,
        metric: Metric::identity(d, norm),
        gradient: vec![0.0; d],
        curvature: vec![0.0; d * d],
        gradient_sd: 0.0,
        curvature_sd: 0.0,
        centre: vec![0.0; d],
        radius: 1e6,
        spread: Vec::new(),
        doubts: Default::default(),
        alone: None,
    }
}

/// What moments of this degree leave of a mixture.
pub(super) fn moments(data: &Dataset, degree: usize) -> MomentRemainder {
    let bound = data.row_norm();
    let model = Mixture::new(2.0, bound, Prior::flat_box(2, 3.0), 0.02).unwrap();
    let moments = Moments {
        basis: MomentBasis {
            degree,
            features: 1,
            bound,
        },
        rows: data.rows() as f64,
        sums: vec![0.0; degree],
        sds: vec![0.0; degree],
    };
    MomentRemainder::new(MomentAnchor::new(Arc::new(model), moments).unwrap())
}

/// A true bound on the model's row ratios for this pair, where there is one.
pub(super) fn bound(model: &dyn Model, theta: &[f64], proposal: &[f64]) -> f64 {
    let step = distance(theta, proposal);
    match (&model.prior().anchor, model.ratio_rate()) {
        (Some(Surrogate::Moments(anchor)), _) => anchor.clip(theta, proposal),
        (Some(Surrogate::Expansion(anchor)), _) => {
            let reach = distance(theta, &anchor.at).max(distance(proposal, &anchor.at));
            let norm = anchor.metric.row_bound;
            // No bound either: half a row's slope and bend, at most, of these.
            if model.row_function().network().is_some() {
                return 4.0 * reach * step;
            }
            let zero = vec![0.0; theta.len()];
            let slopes = match model.row_function() {
                // The true bound: e^η at its largest between θ* and the ends.
                RowFunction::PoissonRemainder => {
                    let ends = [&anchor.at[..], theta, proposal];
                    let far = ends.iter().fold(0.0, |m, t| distance(t, &zero).max(m));
                    Slopes {
                        largest_third: (norm * far + model.offset().map_or(0.0, |o| o.high)).exp(),
                        ..Slopes::poisson(1.0, None)
                    }
                }
                // No bound is known: the largest slope times the step.
                RowFunction::DeclaredRemainder(_) => return 8.0 * step,
                _ => Slopes::logistic(),
            };
            slopes.remainder_rate(model.tempering(), norm) * reach * reach * step
        }
        // Networks have no bound: a clip that few of these rows reach.
        (None, rate) => rate.unwrap_or(4.0) * step,
    }
}

/// `count` random pairs with moves from tiny to large.
pub(super) fn pairs(model: &dyn Model, count: usize, seed: u64) -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    (0..count)
        .map(|i| {
            let size = 10f64.powi(-((i % 4) as i32)) * 0.5;
            let theta: Vec<f64> = (0..model.dim())
                .map(|_| 2.0 * rng.random::<f64>() - 1.0)
                .collect();
            let proposal = theta
                .iter()
                .map(|t| t + size * (2.0 * rng.random::<f64>() - 1.0))
                .collect();
            (theta, proposal)
        })
        .collect()
}

pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// A query whose clip is `share` of the model's bound.
pub(super) fn query(model: &dyn Model, pairs: &[(Vec<f64>, Vec<f64>)], share: f64) -> RatioQuery {
    let thetas: Vec<&[f64]> = pairs.iter().map(|p| &p.0[..]).collect();
    let proposals: Vec<&[f64]> = pairs.iter().map(|p| &p.1[..]).collect();
    let clips: Vec<f64> = pairs
        .iter()
        .map(|p| share * bound(model, &p.0, &p.1))
        .collect();
    RatioQuery::new(model, &thetas, &proposals, &clips).unwrap()
}
