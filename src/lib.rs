//! `dpmc` samples Bayesian posteriors over sensitive tables under differential privacy, on a GPU
//! or a plain CPU. This page teaches the library by one example. The command `dpmc` does the same
//! from a run file; the guide in `docs/guide` starts there.
//!
//! # What is promised
//!
//! Two tables are *neighbours* when they differ in one replaced row; the number of rows is public.
//! A release is (ε, δ)-differentially private when no neighbour makes any outcome more probable by
//! more than a factor e^ε, but for a probability of δ. The *budget* is the ε and δ that everything
//! published about a table may cost together. `docs/proofs/guarantee.md` has the proofs, and what
//! is not covered.
//!
//! # One example
//!
//! Only the [`privacy::Curator`] sees rows. It is given the rows, the model and a
//! [`privacy::Ledger`], which holds the budget. Whatever it answers, it charges to the ledger
//! first. A sampler such as [`sampler::RandomWalk`] is public: it proposes moves and asks the
//! curator whether to accept them, so its draws may be published.
//!
//! ```
//! use std::sync::Arc;
//! use dpmc::{synthetic, engine::EngineChoice, model::{Prior, Regression}};
//! use dpmc::privacy::{Acceptance, Budget, Curator, Estimator, Lambda, Ledger};
//! use dpmc::sampler::{Adapt, Adaptation, Chains, ClipNorm, ClipRule, Preconditioner, RandomWalk};
//!
//! // Made-up rows, a prior with sd 10, and a logistic regression, tempered to a tenth.
//! let data = synthetic::logistic(10_000, &[1.0, -0.5], 1)?;
//! let prior = Prior::normal(2, 10.0);
//! let model = Arc::new(Regression::logistic(data.features(), data.row_norm(), prior.clone(), 0.1)?);
//!
//! // All that is published may cost (1, 1e-6) in total.
//! let ledger = Ledger::in_memory(Budget::new(1.0, 1e-6)?);
//! let mut curator = Curator::private(data, model, EngineChoice::Cpu, ledger, None)?;
//!
//! // Each step reads a random minibatch and decides by Barker's rule.
//! let mut sampler = RandomWalk::new(
//!     prior,
//!     Estimator::Poisson { lambda: Lambda::Ratio(2.0) },
//!     Acceptance::Barker,
//!     Some(ClipRule { rate: 0.01, norm: ClipNorm::Euclidean }),
//!     0.2,
//!     Preconditioner::Identity,
//!     Adaptation::new(Adapt::None, 0.2, 0, 2),
//! );
//! let mut chains = Chains::new(&[vec![0.0; 2]], [7; 32]);
//! for _ in 0..100 {
//!     sampler.step(&mut chains, &mut curator)?;
//! }
//! assert!(curator.ledger().is_some_and(|l| l.epsilon_spent() < 1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The seed of [`sampler::Chains`] fixes proposals, which are public. The last argument of
//! `Curator::private` would fix the secret coins; leave it `None` wherever privacy matters.
//!
//! # Features and layout
//!
//! Features `gpu` and `plot` are on by default; the library builds with neither. `src/` is laid
//! out as [`data`] (rows and declarations), [`model`], [`engine`] (exact row queries), [`privacy`]
//! (curator, ledger, mechanisms, certificate), [`sampler`] (public post-processing),
//! [`run`] (from a run file to a run), [`posterior_run`], [`diagnostics`], [`output`],
//! [`prediction`] (from draws to answers), [`config`], [`expression`] (likelihoods as texts),
//! [`math`], [`machine`] and [`synthetic`] (made-up tables); `shaders/` holds the GPU twins.
//! The command lies beside it in `cli/`, the papers' figures in `lab/`.

pub mod benchmark;
pub mod config;
pub mod diagnostics;
pub mod expression;
mod features;
pub mod machine;
pub mod math;
mod models;
pub mod network;
pub mod output;
pub mod posterior_run;
pub mod prediction;
mod priors;
pub mod run;
pub mod sampler;
pub mod synthetic;
mod trusted;

pub use trusted::{data, engine, privacy};

/// Models: what a row says about θ, and what is known about it in public.
pub mod model {
    pub use crate::models::*;
    pub use crate::priors::{Block, BlockLaw, Blocks, ScaleLaw};
    pub use crate::trusted::model::*;
}
