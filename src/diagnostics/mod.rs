//! What posterior draws say about the posterior and about their own reliability:
//! convergence and effective sample size, point summaries, marginal densities,
//! predictive scores, and distances from a reference as the papers measure them.
//! Every function here is a pure function of its input.
//!
//! Convergence follows Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021),
//! "Rank-normalization, folding, and localization: An improved R-hat for
//! assessing convergence of MCMC", Bayesian Analysis 16(2), 667–718, in the
//! details as ArviZ and the R package `posterior` compute it.
//!
//! Draws of one scalar parameter are passed as `&[Vec<f64>]`, one vector a
//! chain. A quantity that the draws cannot give is NaN, or an error that names the
//! argument; nothing here panics.

mod cells;
#[cfg(test)]
mod cells_tests;
mod chains;
mod density;
mod error;
mod ess;
mod kernel;
#[cfg(test)]
mod kernel_tests;
mod moments;
mod noise_aware;
mod prediction;
mod regression;
mod rhat;
mod spending;
mod summary;
#[cfg(test)]
mod tests;
mod without_noise;

pub use cells::{CellDensity, Cells, KL_FLOOR, symmetric_kl, total_variation};
pub use density::density;
pub use error::DiagnosticError;
pub use ess::{ess_bulk, ess_mean, ess_tail};
pub use kernel::{MEDIAN_SUBSAMPLE, mean_error, median_bandwidth, mmd, mmd_squared};
pub use moments::{mean, quantile, sd};
pub use noise_aware::{
    NOISE_AWARE_LEVEL, NoiseAware, noise_aware, noise_aware_moments, with_noise,
};
pub use prediction::{
    accuracy, class_accuracy, class_log_loss, layers_predictive, log_loss, logistic_predictive,
    network_predictive,
};
pub use regression::{
    declared_log_loss, linear_log_loss, linear_predictive, poisson_log_loss, root_mean_square_error,
};
pub use rhat::r_hat;
pub use spending::epsilon_by_iteration;
pub use summary::{ParameterSummary, summarize};
pub use without_noise::without_noise;
