//! What posterior draws say about the posterior and about their own reliability:
//! convergence and effective sample size, point summaries, marginal densities
//! and predictive scores. Every function here is a pure function of its input.
//!
//! Convergence follows Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021),
//! "Rank-normalization, folding, and localization: An improved R-hat for
//! assessing convergence of MCMC", Bayesian Analysis 16(2), 667–718, in the
//! details as ArviZ and the R package `posterior` compute it.
//!
//! Draws of one scalar parameter are passed as `&[Vec<f64>]`, one vector a
//! chain. A quantity that the draws cannot give is NaN; nothing here panics.

mod chains;
mod density;
mod ess;
mod moments;
mod noise_aware;
mod prediction;
mod rhat;
mod summary;
#[cfg(test)]
mod tests;

pub use density::density;
pub use ess::{ess_bulk, ess_mean, ess_tail};
pub use moments::{mean, quantile, sd};
pub use noise_aware::{NoiseAware, noise_aware};
pub use prediction::{accuracy, log_loss, logistic_predictive};
pub use rhat::r_hat;
pub use summary::{ParameterSummary, summarize};
