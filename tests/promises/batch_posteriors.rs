//! Exactness of `dp-fast-mh` with all four of its branches in one chain, and how near
//! `dp-barker-subsampled` comes, on a posterior known in closed form. Means within 5.5
//! Monte-Carlo standard errors (4e-8), standard deviations within 3 %, which is 5 of theirs at
//! the 14,000 effective draws demanded (6e-7); seeds are fixed.

use std::sync::Arc;

use dpmc::data::Dataset;
use dpmc::diagnostics::{ess_mean, mean, sd};
use dpmc::engine::EngineChoice;
use dpmc::model::{GaussianMean, Model, Prior, Support};
use dpmc::privacy::{Acceptance, Curator, Estimator, FastMhSettings};
use dpmc::sampler::{
    Adapt, Adaptation, Chains, ClipNorm, ClipRule, FastMh, Preconditioner, RandomWalk,
};

/// Half of the rows at 0.8, half at −0.2.
fn data(rows: usize) -> Dataset {
    let mut set = Dataset::builder(vec!["x".into()], false, 1.0).unwrap();
    for i in 0..rows {
        set.push(&[if i % 2 == 0 { 0.8 } else { -0.2 }], None)
            .unwrap();
    }
    set.finish().unwrap()
}

/// Mean and sd of the draws, in units of the exact posterior, and the effective draws.
fn study(
    rows: usize,
    tempering: f64,
    (estimator, acceptance): (Estimator, Acceptance),
    fast_mh: Option<FastMh>,
    clip: Option<ClipRule>,
    step: f64,
    iterations: usize,
) -> (f64, f64, f64) {
    let data = data(rows);
    let prior = Prior {
        support: Support::Box(vec![3.0]),
        ..Prior::normal(1, 0.5)
    };
    let model: Arc<dyn Model> =
        Arc::new(GaussianMean::new(data.features(), &[1.0], 1.0, prior, tempering).unwrap());
    let precision = tempering * rows as f64 + 4.0;
    let exact = 0.3 * tempering * rows as f64 / precision;
    let rate = model.ratio_rate().unwrap();
    let norm = ClipNorm::Euclidean;
    let mut walk = RandomWalk::new(
        model.prior().clone(),
        estimator,
        acceptance,
        Some(clip.unwrap_or(ClipRule { rate, norm })),
        step,
        Preconditioner::Identity,
        Adaptation::new(Adapt::None, 0.2, 0, 1),
    );
    walk.fast_mh = fast_mh;
    let mut curator = Curator::not_private(data, model, EngineChoice::Cpu, 5).unwrap();
    let mut chains = Chains::new(&[vec![exact]], [9; 32]);
    let draws: Vec<f64> = (0..iterations)
        .map(|_| {
            walk.step(&mut chains, &mut curator).unwrap();
            chains.thetas[(0, 0)]
        })
        .collect();
    let ess = ess_mean(std::slice::from_ref(&draws));
    let scale = precision.sqrt();
    ((mean(&draws) - exact) * scale, sd(&draws) * scale, ess)
}

#[test]
fn dp_fast_mh_samples_the_posterior_exactly() {
    let settings = FastMhSettings {
        lambda: 5.0,
        batch_cap: 40.0,
        epsilon: 0.6,
        // Far from private, so that noisy moves are accepted at all.
        delta: 0.48,
    };
    let fast = FastMh {
        settings,
        population: 200.into(),
    };
    let rate = 0.3 * 4.0;
    // Moves of ±0.25 make use of every branch.
    let mut seen = Vec::new();
    for length in [0.005, 0.05, 0.2, 0.3] {
        let rule = fast.rule(rate * length);
        assert!(!seen.contains(&rule), "{rule:?}");
        seen.push(rule);
    }
    let any = (Estimator::FullBatch, Acceptance::Barker);
    let (mean, sd, ess) = study(200, 0.3, any, Some(fast), None, 0.25, 600_000);
    assert!(ess > 14_000.0, "only {ess:.0} effective draws");
    assert!(mean.abs() < 5.5 / ess.sqrt(), "mean off by {mean} sd");
    assert!((sd - 1.0).abs() < 0.03, "sd {sd}");
}

/// Its bias, where nothing is clipped but the longest moves: V_cor moves acceptance by at most
/// 7.7e-4, and b = 50 of N = 1000 rows leave the estimate 5 % less variance than s² and a skew of a
/// few per cent. The posterior's moments are met within 2 % of a standard deviation more than
/// chance.
#[test]
fn dp_barker_subsampled_comes_near() {
    let (batch, rows) = (50usize, 1000usize);
    let clip = ClipRule {
        rate: (batch as f64).sqrt() / rows as f64 * (1.0 - 2e-6),
        norm: ClipNorm::Constant,
    };
    let rule = (
        Estimator::FixedBatch { batch },
        Acceptance::NoisyBarker { variance: 2.0 },
    );
    let (mean, sd, ess) = study(rows, 0.005, rule, None, Some(clip), 0.6, 300_000);
    assert!(ess > 14_000.0, "only {ess:.0} effective draws");
    assert!(
        mean.abs() < 0.02 + 5.5 / ess.sqrt(),
        "mean off by {mean} sd"
    );
    assert!((sd - 1.0).abs() < 0.02 + 0.03, "sd {sd}");
}
