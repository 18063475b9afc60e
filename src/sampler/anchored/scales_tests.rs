//! The Gibbs sampler against numeric integration, and against the joint law of parameters and data.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

use super::scales::{Gibbs, alone};
use crate::model::{Alone, Anchor, Block, BlockLaw, Blocks, Lower, Metric, ScaleLaw};
use crate::sampler::PublicRng;

/// √n times Kolmogorov's gap exceeds this with probability 1e-6; of two samples of n, √(n/2) times.
const FALSE_ALARM: f64 = 2.694;

/// An anchor away from 0, in coordinates that are not θ's, with this likelihood in θ.
fn anchor(precision: &DMatrix<f64>, pull: &DVector<f64>) -> Anchor {
    let d = pull.len();
    let at = DVector::from_fn(d, |j, _| 0.3 - 0.2 * j as f64);
    let l = DMatrix::from_fn(d, d, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 1.5 + 0.1 * i as f64,
        std::cmp::Ordering::Greater => 0.2,
    });
    let inverse = l.clone().try_inverse().unwrap();
    let own = &inverse * precision * inverse.transpose();
    let own_pull = &inverse * (pull - precision * &at);
    let factor = Lower::new(l.transpose().iter().copied().collect()).unwrap();
    Anchor {
        at: at.iter().copied().collect(),
        metric: Metric {
            factor,
            row_bound: 1.0,
        },
        gradient: vec![0.0; d],
        curvature: vec![0.0; d * d],
        gradient_sd: 0.0,
        curvature_sd: 0.0,
        centre: vec![0.0; d],
        radius: 10.0,
        spread: Vec::new(),
        doubts: Default::default(),
        alone: Some(Alone {
            precision: own.transpose().iter().copied().collect(),
            pull: own_pull.iter().copied().collect(),
        }),
    }
}

/// An intercept with a normal prior, and levels that share one.
fn hierarchy(levels: usize, scale: ScaleLaw) -> Blocks {
    let intercept = Block {
        members: vec![0],
        law: BlockLaw::Normal {
            mean: vec![0.5],
            sd: vec![2.0],
        },
    };
    let levels = Block {
        members: (1..=levels).collect(),
        law: BlockLaw::Shared {
            name: "sd(g)".into(),
            scale,
        },
    };
    Blocks {
        blocks: vec![intercept, levels],
    }
}

/// Likelihood of rows of levels with means `means`, `counts` rows of unit variance each.
fn likelihood(means: &[f64], counts: &[f64]) -> (DMatrix<f64>, DVector<f64>) {
    let d = means.len() + 1;
    let mut precision = DMatrix::zeros(d, d);
    let mut pull = DVector::zeros(d);
    for (i, (mean, n)) in means.iter().zip(counts).enumerate() {
        for (j, k) in [(0, 0), (0, i + 1), (i + 1, 0), (i + 1, i + 1)] {
            precision[(j, k)] += n;
        }
        pull[0] += n * mean;
        pull[i + 1] += n * mean;
    }
    (precision, pull)
}

/// Given τ coefficients are normal: log marginal likelihood, mean and variances of theirs.
fn given_tau(precision: &DMatrix<f64>, pull: &DVector<f64>, tau: f64) -> (f64, DVector<f64>) {
    let d = pull.len();
    let prior = DVector::from_fn(d, |j, _| if j == 0 { 0.25 } else { tau.powi(-2) });
    let mean = DVector::from_fn(d, |j, _| if j == 0 { 0.5 } else { 0.0 });
    let whole = precision + DMatrix::from_diagonal(&prior);
    let cholesky = whole.cholesky().unwrap();
    let both = pull + prior.component_mul(&mean);
    let centre = cholesky.solve(&both);
    let logs: f64 = cholesky.l().diagonal().iter().map(|v| v.ln()).sum();
    let log = 0.5 * both.dot(&centre) - logs - (d - 1) as f64 * tau.ln();
    (log, centre)
}

fn density(law: ScaleLaw, tau: f64) -> f64 {
    match law {
        ScaleLaw::HalfNormal { scale } => (-0.5 * (tau / scale).powi(2)).exp(),
        ScaleLaw::HalfStudentT { degrees, scale } => {
            (1.0 + (tau / scale).powi(2) / degrees).powf(-0.5 * (degrees + 1.0))
        }
    }
}

/// Draws of τ and of coefficients against quadrature over τ: Kolmogorov's gap of τ with a false
/// alarm of 1e-6, means of coefficients within 5.2 standard errors. One table tells of τ, one has
/// few rows and levels that are all alike, so that τ is near 0, where centred steps hardly move.
#[test]
fn hierarchies_have_their_posterior() {
    let strong = likelihood(
        &[1.0, -0.5, 2.0, 0.2, 0.9, -1.1],
        &[9.0, 30.0, 4.0, 1.0, 50.0, 12.0],
    );
    let weak = likelihood(&[0.4, 0.5, 0.45, 0.55], &[3.0, 1.0, 2.0, 0.2]);
    for (case, (precision, pull)) in [strong, weak].iter().enumerate() {
        for law in [
            ScaleLaw::HalfNormal { scale: 1.0 },
            ScaleLaw::half_cauchy(0.5),
        ] {
            let masses: Vec<(f64, f64, DVector<f64>)> = (0..6000)
                .map(|i| {
                    let x = (f64::from(i) + 0.5) / 6000.0;
                    let tau = x / (1.0 - x);
                    let (log, centre) = given_tau(precision, pull, tau);
                    (
                        tau,
                        (log - given_tau(precision, pull, 1.0).0).exp() * density(law, tau)
                            / (1.0 - x).powi(2),
                        centre,
                    )
                })
                .collect();
            let whole: f64 = masses.iter().map(|m| m.1).sum();
            let prior = Arc::new(hierarchy(pull.len() - 1, law));
            let gibbs = Gibbs::new(&anchor(precision, pull), prior.clone()).unwrap();
            let mut rng = PublicRng::from_seed([case as u8 + 1; 32]);
            let mut theta = gibbs.burn_in(&vec![1.0; pull.len()], &mut rng);
            let n = 4000;
            let (mut taus, mut draws) = (Vec::new(), Vec::new());
            for _ in 0..n {
                for _ in 0..20 {
                    theta = gibbs.step(&theta, &mut rng);
                }
                taus.push(prior.scales(&theta, &mut rng)[0]);
                draws.push(theta.clone());
            }
            let ess = crate::diagnostics::ess_mean(&[taus.clone()]);
            assert!(
                ess > 0.8 * f64::from(n),
                "the draws are not independent: {ess}"
            );
            taus.sort_by(f64::total_cmp);
            let (mut below, mut i, mut gap) = (0.0, 0, 0.0f64);
            for (tau, mass, _) in &masses {
                below += 0.5 * mass / whole;
                i += taus[i..].iter().take_while(|t| *t < tau).count();
                gap = gap.max((i as f64 / f64::from(n) - below).abs());
                below += 0.5 * mass / whole;
            }
            let gap = gap * f64::from(n).sqrt();
            assert!(gap < FALSE_ALARM, "case {case}, {law:?}: {gap}");
            for j in 0..pull.len() {
                let known = masses.iter().map(|m| m.1 * m.2[j]).sum::<f64>() / whole;
                let own: Vec<f64> = draws.iter().map(|d| d[j]).collect();
                let (mean, sd) = (crate::diagnostics::mean(&own), crate::diagnostics::sd(&own));
                let error = sd / (0.8 * f64::from(n)).sqrt();
                assert!(
                    (mean - known).abs() < 5.2 * error,
                    "{case} {j}: {mean} {known}"
                );
            }
        }
    }
}

/// Draws of parameters and data in turn, each given the other, have the prior's law (Geweke 2004):
/// by Kolmogorov's gap between |b| of such a chain and of the prior, false alarm 1e-6 each.
#[test]
fn every_law_is_left_invariant() {
    let laws = [
        BlockLaw::StudentT {
            degrees: 3.0,
            mean: vec![0.4; 3],
            scale: vec![0.7; 3],
        },
        BlockLaw::Horseshoe {
            name: "sd(horseshoe)".into(),
            scale: 0.5,
        },
        BlockLaw::Shared {
            name: "sd(g)".into(),
            scale: ScaleLaw::HalfStudentT {
                degrees: 3.0,
                scale: 0.8,
            },
        },
    ];
    let precision = DMatrix::from_row_slice(3, 3, &[1.0, 0.4, 0.1, 0.4, 0.8, -0.2, 0.1, -0.2, 0.5]);
    let root = precision.clone().cholesky().unwrap().l();
    for (k, law) in laws.into_iter().enumerate() {
        let members = vec![0, 1, 2];
        let prior = Arc::new(Blocks {
            blocks: vec![Block { members, law }],
        });
        let mut rng = PublicRng::from_seed([k as u8 + 7; 32]);
        let mut theta = prior.draw(&mut rng);
        let n = 4000;
        let (mut chain, mut own) = (Vec::new(), Vec::new());
        for _ in 0..n {
            for _ in 0..15 {
                // a | θ ~ N(Kθ, K).
                let z = DVector::from_fn(3, |_, _| StandardNormal.sample(&mut rng));
                let pull = &precision * DVector::from_column_slice(&theta) + &root * z;
                let gibbs = Gibbs::new(&anchor(&precision, &pull), prior.clone()).unwrap();
                theta = gibbs.step(&theta, &mut rng);
            }
            chain.push(theta[0].abs());
            own.push(prior.draw(&mut rng)[0].abs());
        }
        let logs: Vec<f64> = chain.iter().map(|v| v.ln()).collect();
        let ess = crate::diagnostics::ess_mean(&[logs]);
        chain.sort_by(f64::total_cmp);
        own.sort_by(f64::total_cmp);
        let (mut i, mut gap) = (0, 0.0f64);
        for (j, v) in own.iter().enumerate() {
            i += chain[i..].iter().take_while(|c| *c < v).count();
            gap = gap.max((i as f64 - j as f64).abs() / f64::from(n));
        }
        let gap = gap * (1.0 / (1.0 / f64::from(n) + 1.0 / ess.min(f64::from(n)))).sqrt();
        assert!(gap < FALSE_ALARM, "{k}: {gap}, {ess} effective draws");
        assert!(ess > 400.0, "{k}: {ess}");
    }
}

/// In one coordinate: a gradient 3 of curvature 2 with noise of variance 4 says as much as
/// 2·2/(2 + 4) about 3/2.
#[test]
fn the_rows_alone_by_hand() {
    let m = |v: f64| DMatrix::from_element(1, 1, v);
    let seen = alone(&DVector::from_element(1, 3.0), &m(2.0), &m(4.0)).unwrap();
    assert!((seen.precision[0] - 2.0 / 3.0).abs() < 1e-12);
    assert!((seen.pull[0] - 1.0).abs() < 1e-12);
    let exact = alone(&DVector::from_element(1, 3.0), &m(2.0), &m(0.0)).unwrap();
    assert!(exact.precision[0] == 2.0 && (exact.pull[0] - 3.0).abs() < 1e-12);
}
