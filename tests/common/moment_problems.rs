//! Models that released moments tell, over small tables.

use std::sync::Arc;

use dpmc::data::Dataset;
use dpmc::model::{Banana, GaussianMean, Mixture, Model, Prior};
use dpmc::synthetic;

/// A model of two parameters over its table, and a walk's step for it.
pub struct Problem {
    pub data: fn() -> Dataset,
    pub model: Arc<dyn Model>,
    pub degree: usize,
    pub step: f64,
    pub iterations: u32,
    pub centre: [f64; 2],
    pub scale: [f64; 2],
    pub limit: f64,
}

pub fn mixture(degree: usize) -> Problem {
    let data = || synthetic::mixture(400, Some(3.0), 7).unwrap();
    let prior = Prior::flat_box(2, 3.0);
    Problem {
        model: Arc::new(Mixture::new(2.0, data().row_norm(), prior, 0.2).unwrap()),
        data,
        degree,
        step: 0.9,
        iterations: 750_000,
        centre: [0.4, 0.1],
        scale: [0.45, 0.6],
        limit: 3.0,
    }
}

pub fn gaussian() -> Problem {
    let data = || synthetic::gaussian(300, &[0.5, -1.0], &[1.0, 2.0], 8.0, 3).unwrap();
    let covariance = [1.0, 0.3, 0.3, 4.0];
    let prior = Prior::normal(2, 2.0);
    let model = GaussianMean::new(
        data().features(),
        &covariance,
        data().row_norm(),
        prior,
        0.02,
    );
    Problem {
        model: Arc::new(model.unwrap()),
        data,
        degree: 1,
        step: 0.35,
        iterations: 850_000,
        centre: [0.5, -1.0],
        scale: [0.14, 0.3],
        limit: 1e9,
    }
}

pub fn banana() -> Problem {
    let data = || synthetic::banana(300, [0.3, -0.4], 0.5, [2.0, 1.5], 6.0, 7).unwrap();
    let prior = Prior::flat_box(2, 3.0);
    let model = Banana::new(0.5, [2.0, 1.5], data().row_norm(), prior, 0.2).unwrap();
    Problem {
        model: Arc::new(model),
        data,
        degree: 1,
        step: 0.4,
        iterations: 500_000,
        centre: [0.3, -0.4],
        scale: [0.22, 0.22],
        limit: 3.0,
    }
}
