//! For the statistical tests: curators, chains over them, and references by quadrature.

use std::sync::Arc;

use dpmc::data::Dataset;
use dpmc::diagnostics::{ess_mean, mean, sd};
use dpmc::engine::EngineChoice;
use dpmc::model::Model;
use dpmc::privacy::{
    Acceptance, Budget, Curator, Estimator, Lambda, Ledger, OpenCurator, Releases,
};
use dpmc::sampler::{
    Adapt, Adaptation, Chains, ClipNorm, ClipRule, Preconditioner, RandomWalk, Sampler,
};

/// The largest budget there is.
pub fn large() -> Ledger {
    Ledger::in_memory(Budget::new(30.0, 0.5).expect("a valid budget"))
}

/// Every sampler of the catalogue with its estimator, rule, and whether it is private.
pub fn samplers() -> Vec<(&'static str, Estimator, Acceptance, bool)> {
    let poisson = |ratio| Estimator::Poisson {
        lambda: Lambda::Ratio(ratio),
    };
    vec![
        ("mh", Estimator::FullBatch, Acceptance::Metropolis, false),
        ("tuna-mh", poisson(0.5), Acceptance::Metropolis, false),
        ("barker", Estimator::FullBatch, Acceptance::Barker, true),
        ("poisson-barker", poisson(0.5), Acceptance::Barker, true),
        (
            "dp-penalty",
            Estimator::FullBatch,
            Acceptance::Penalty { tau: 0.0 },
            true,
        ),
        (
            "dp-barker",
            Estimator::FullBatch,
            Acceptance::NoisyBarker { variance: 2.0 },
            true,
        ),
    ]
}

pub enum AnyCurator {
    Private(Box<Curator>),
    Open(Box<OpenCurator>),
}

impl AnyCurator {
    pub fn new(
        data: Dataset,
        model: Arc<dyn Model>,
        engine: EngineChoice,
        private: bool,
        seed: u64,
    ) -> Self {
        if private {
            let c = Curator::private(data, model, engine, large(), Some(seed));
            AnyCurator::Private(Box::new(c.expect("a curator")))
        } else {
            let c = Curator::not_private(data, model, engine, seed);
            AnyCurator::Open(Box::new(c.expect("a curator")))
        }
    }

    pub fn releases(&mut self) -> &mut dyn Releases {
        match self {
            AnyCurator::Private(c) => &mut **c,
            AnyCurator::Open(c) => &mut **c,
        }
    }
}

/// Draws of one long chain, warm-up dropped: `draws[parameter][iteration]`.
pub fn run(
    curator: &mut AnyCurator,
    model: &dyn Model,
    (estimator, acceptance): (Estimator, Acceptance),
    start: &[f64],
    scale: &[f64],
    iterations: usize,
    seed: u8,
) -> Vec<Vec<f64>> {
    let clip = ClipRule {
        rate: model.ratio_rate().expect("a bounded model"),
        norm: ClipNorm::Euclidean,
    };
    let d = model.dim();
    let sampler = RandomWalk::new(
        model.prior().clone(),
        estimator,
        acceptance,
        Some(clip),
        2.0 / (d as f64).sqrt(),
        Preconditioner::Diagonal(scale.to_vec()),
        Adaptation::new(Adapt::None, 0.3, 0, d),
    );
    drive(sampler.into(), curator, start, iterations, seed)
}

/// Draws of one long chain of any sampler, 2000 of warm-up dropped.
pub fn drive(
    mut sampler: Sampler,
    curator: &mut AnyCurator,
    start: &[f64],
    iterations: usize,
    seed: u8,
) -> Vec<Vec<f64>> {
    let mut chains = Chains::new(&[start.to_vec()], [seed; 32]);
    let mut draws = vec![Vec::with_capacity(iterations); start.len()];
    for i in 0..iterations + 2000 {
        sampler
            .step(&mut chains, curator.releases())
            .expect("a step");
        if i >= 2000 {
            for (column, v) in draws.iter_mut().zip(chains.thetas.row(0)) {
                column.push(*v);
            }
        }
    }
    draws
}

/// How long a chain is and what is asked of it. A mean must lie within 5.5 Monte-Carlo standard
/// errors (false alarm 4e-8), a standard deviation within `sd`, which is 5 of its own (4e-7).
pub struct Length {
    /// Of a study's iterations.
    share: f64,
    /// Least effective draws.
    ess: f64,
    /// Relative error allowed to a standard deviation.
    sd: f64,
}

/// Finds a mean that is off by 0.15 sds, or an sd by 10 %, with power 0.9995.
pub const TEST: Length = Length {
    share: 0.3,
    ess: 3_600.0,
    sd: 0.06,
};
/// Finds a mean that is off by 0.107 sds, or an sd by 7 %, with power 0.9995.
pub const LONGER: Length = Length {
    share: 0.5,
    ess: 7_000.0,
    sd: 0.043,
};
/// Finds a mean that is off by 0.075 sds, or an sd by 5 %, with power 0.9995.
pub const STUDY: Length = Length {
    share: 1.0,
    ess: 14_000.0,
    sd: 0.03,
};

impl Length {
    /// Of a study's many iterations.
    pub fn of(&self, iterations: usize) -> usize {
        (self.share * iterations as f64) as usize
    }

    pub fn assert_moments(&self, label: &str, column: &[f64], exact: (f64, f64)) {
        let (m, s) = (mean(column), sd(column));
        let ess = ess_mean(&[column.to_vec()]);
        let error = s / ess.sqrt();
        let apart = (m - exact.0) / error;
        let wide = s / exact.1 - 1.0;
        println!("{label}: {ess:.0} draws, mean {apart:.2} errors, sd {wide:.3}");
        assert!(ess > self.ess, "{label}: only {ess:.0} effective draws");
        assert!(
            apart.abs() < 5.5,
            "{label}: mean {m} against {} ± {error}",
            exact.0
        );
        assert!(wide.abs() < self.sd, "{label}: sd {s} against {}", exact.1);
    }
}

/// By the length of a study.
pub fn assert_moments(label: &str, column: &[f64], exact: (f64, f64)) {
    STUDY.assert_moments(label, column, exact);
}

/// Mean and sd of each parameter by quadrature on a grid of `log_density` around `centre`
/// ± 8 `scale` (clipped to ±`limit`), 2 parameters.
pub fn quadrature(
    log_density: impl Fn(&[f64]) -> f64,
    centre: &[f64],
    scale: &[f64],
    limit: f64,
) -> Vec<(f64, f64)> {
    const CELLS: usize = 240;
    let axis = |j: usize| -> Vec<f64> {
        let low = (centre[j] - 8.0 * scale[j]).max(-limit);
        let high = (centre[j] + 8.0 * scale[j]).min(limit);
        (0..CELLS)
            .map(|i| low + (high - low) * (i as f64 + 0.5) / CELLS as f64)
            .collect()
    };
    let (a, b) = (axis(0), axis(1));
    let top = log_density(centre);
    let (mut mass, mut first, mut second) = (0.0, [0.0; 2], [0.0; 2]);
    for &x in &a {
        for &y in &b {
            let w = (log_density(&[x, y]) - top).exp();
            mass += w;
            for (j, v) in [x, y].into_iter().enumerate() {
                first[j] += w * v;
                second[j] += w * v * v;
            }
        }
    }
    (0..2)
        .map(|j| {
            let mean = first[j] / mass;
            (mean, (second[j] / mass - mean * mean).sqrt())
        })
        .collect()
}

/// Log posterior up to a constant, over the exact sums of an open curator.
pub fn log_posterior_by_curator(
    data: fn() -> Dataset,
    model: Arc<dyn Model>,
    base: Vec<f64>,
) -> impl Fn(&[f64]) -> f64 {
    // Exact sums relative to a base point, summed in f64 from the engine's integers;
    // their agreement with the f64 oracle is a test of its own (engine/tests.rs).
    let open = Curator::not_private(data(), model.clone(), EngineChoice::Cpu, 1).unwrap();
    let open = std::cell::RefCell::new(open);
    move |theta: &[f64]| {
        let prior = model.prior().log_density(theta);
        if prior == f64::NEG_INFINITY {
            return prior;
        }
        let distance: f64 = theta.iter().zip(&base).map(|(a, b)| (a - b).powi(2)).sum();
        let clip = (1.01 * model.ratio_rate().unwrap() * distance.sqrt()).max(1e-9);
        let sums = open
            .borrow_mut()
            .exact_log_ratios(&[&base], &[theta], &[clip])
            .unwrap();
        sums[0].0 + prior
    }
}
