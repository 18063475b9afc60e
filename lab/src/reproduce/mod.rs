//! The papers' figures, run again: the algorithms as published where they exist here, their
//! sound forms with what they really spend, and ours, side by side.
//!
//! A figure is one entry of [`FIGURES`]; what it compares is a table of methods in the
//! file of its paper, each method the `[sampler]` section of a run file. The papers' data are
//! made up or, for MNIST, public: nothing here is a private release, and secret coins have fixed
//! seeds.

mod calibration;
mod drawing;
mod error;
mod heikkila_correction;
mod heikkila_cost;
mod heikkila_posterior;
mod held_out;
mod images;
mod li_adult;
mod li_mechanism;
mod li_mnist;
mod li_steps;
mod li_table;
mod meter;
mod mixture;
mod raisa_clipping;
mod raisa_comparison;
mod raisa_run;
mod raisa_settings;
mod raisa_targets;
#[cfg(test)]
mod raisa_tests;
mod ridge;
mod study;
mod zhang_mixture;
mod zhang_mnist;
mod zhang_settings;
mod zhang_trade_off;

use std::path::PathBuf;

pub use drawing::{Drawing, Table};
pub use error::ReproduceError;

/// How much work a figure may be.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Seconds: fewer rows and iterations. The numbers mean nothing then.
    pub quick: bool,
    /// Folder with `mnist79_train.parquet` and `mnist79_test.parquet`; of `li-table-mnist` and
    /// `li-table-fashion` with the images as they are published.
    pub data: PathBuf,
    /// Folder of images of another kind, for these two.
    pub other: Option<PathBuf>,
}

impl Effort {
    /// The full count, or the quick one.
    fn of(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }
}

/// One figure of a paper.
pub struct Figure {
    /// Name on the command line.
    pub name: &'static str,
    /// What is plotted: our reading of what the paper's panel shows.
    pub shows: &'static str,
    draw: fn(&Figure, &Effort) -> Result<Drawing, ReproduceError>,
}

impl Figure {
    /// The figure of a name.
    ///
    /// # Errors
    /// [`ReproduceError::Unknown`] naming the nearest.
    pub fn find(name: &str) -> Result<&'static Figure, ReproduceError> {
        FIGURES.iter().find(|f| f.name == name).ok_or_else(|| {
            let near = FIGURES
                .iter()
                .map(|f| (strsim::damerau_levenshtein(f.name, name), f.name))
                .min()
                .filter(|(distance, _)| *distance <= 3);
            ReproduceError::Unknown {
                name: name.into(),
                hint: near.map_or(String::new(), |(_, n)| format!("did you mean '{n}'? ")),
            }
        })
    }

    /// Its paper and number.
    pub fn title(&self) -> String {
        let (paper, number) = self.name.split_once('-').unwrap_or((self.name, ""));
        let paper = match paper {
            "zhang" => "Zhang & Zhang 2023",
            "raisa" => "Räisä et al. 2021",
            "heikkila" => "Heikkilä et al. 2019",
            "li" => "Li et al. 2019",
            other => other,
        };
        match number.strip_prefix('s') {
            Some(number) => format!("{paper}, supplement, figure {number}"),
            None if number == "table" => format!("{paper}, table 1"),
            None if number == "table-mnist" => format!("{paper}, table 1 on all of MNIST"),
            None if number == "table-fashion" => format!("{paper}, table 1 on Fashion-MNIST"),
            None => format!("{paper}, figure {number}"),
        }
    }

    /// Runs its experiments.
    ///
    /// # Errors
    /// [`ReproduceError`], also where its data are missing.
    pub fn draw(&self, effort: &Effort) -> Result<Drawing, ReproduceError> {
        (self.draw)(self, effort)
    }
}

/// All figures, in the papers' order.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "zhang-1a",
        shows: "symmetric KL of the draws so far from the exact posterior, against iterations",
        draw: zhang_mixture::divergence_by_iteration,
    },
    Figure {
        name: "zhang-1b",
        shows: "symmetric KL of the draws so far from the exact posterior, against expected rows read",
        draw: zhang_mixture::divergence_by_rows,
    },
    Figure {
        name: "zhang-1c",
        shows: "total epsilon at delta = 1e-5 against iterations: what the claim adds up to, and what steps really cost",
        draw: zhang_mixture::cost,
    },
    Figure {
        name: "zhang-1d",
        shows: "marginal posterior histograms against the exact marginals",
        draw: zhang_mixture::marginals,
    },
    Figure {
        name: "zhang-2",
        shows: "joint histograms of each method's draws, with contours of the exact posterior (50 % and 95 % of its mass)",
        draw: zhang_mixture::joint,
    },
    Figure {
        name: "zhang-3a",
        shows: "MNIST 7 against 9: test accuracy of the mean draw against iterations",
        draw: zhang_mnist::by_iteration,
    },
    Figure {
        name: "zhang-3b",
        shows: "MNIST 7 against 9: test accuracy of the mean draw against expected rows read",
        draw: zhang_mnist::by_rows,
    },
    Figure {
        name: "zhang-3c",
        shows: "MNIST 7 against 9: test accuracy of the mean draw against total epsilon at delta = 1e-5",
        draw: zhang_mnist::by_epsilon,
    },
    Figure {
        name: "zhang-4",
        shows: "what lambda, the step and the batch cap K trade: total epsilon, rows a step, acceptance and symmetric KL",
        draw: zhang_trade_off::draw,
    },
    Figure {
        name: "heikkila-1a",
        shows: "total epsilon at delta = 1e-6 of the subsampled test against iterations, by four ways of accounting",
        draw: heikkila_cost::accountings,
    },
    Figure {
        name: "heikkila-1b",
        shows: "total epsilon at delta = 1e-6 against iterations: the subsampled test and the exact ones here",
        draw: heikkila_cost::side_by_side,
    },
    Figure {
        name: "heikkila-1c",
        shows: "the fit of V_cor: acceptance with N(0, 2) + V_cor against the logistic curve, and its error",
        draw: heikkila_correction::fit,
    },
    Figure {
        name: "heikkila-2",
        shows: "posterior of the mixture: joint histogram and contours of the exact posterior (50 % and 95 %), and marginals",
        draw: heikkila_posterior::posterior,
    },
    Figure {
        name: "heikkila-3",
        shows: "error of posterior mean and variance against total epsilon at delta = 1e-6, averaged over runs",
        draw: heikkila_posterior::errors,
    },
    Figure {
        name: "heikkila-s4",
        shows: "error of the acceptance curve at C = 2: non-negative least squares against Seita's ridge (n = 4000, lambda = 10)",
        draw: heikkila_correction::errors,
    },
    Figure {
        name: "heikkila-s5",
        shows: "distribution of V_cor at C = 2: non-negative least squares against Seita's ridge",
        draw: heikkila_correction::distributions,
    },
    Figure {
        name: "heikkila-s6",
        shows: "largest error of the acceptance curve against C: non-negative least squares against Seita's ridge",
        draw: heikkila_correction::by_variance,
    },
    Figure {
        name: "raisa-1",
        shows: "MMD from the exact posterior against epsilon, on the banana and the Gaussian",
        draw: raisa_comparison::divergence,
    },
    Figure {
        name: "raisa-2",
        shows: "error of the posterior mean and largest R-hat against epsilon, on the banana and the Gaussian",
        draw: raisa_comparison::errors,
    },
    Figure {
        name: "raisa-3",
        shows: "MMD and error of the mean against the clip bound of log-likelihood ratios, without noise",
        draw: raisa_clipping::draw,
    },
    Figure {
        name: "li-1",
        shows: "the largest step by epsilon that the theorems claim and that accountants allow, and what the claimed steps truly cost",
        draw: li_steps::by_epsilon,
    },
    Figure {
        name: "li-2",
        shows: "the same by the number of rows N, at epsilon = 0.1 and 1",
        draw: li_steps::by_rows,
    },
    Figure {
        name: "li-3",
        shows: "logistic regression on Adult: test accuracy of the posterior predictive against true epsilon at delta = 1e-4",
        draw: li_adult::draw,
    },
    Figure {
        name: "li-table",
        shows: "the MNIST row, on sevens against nines: test accuracy against true epsilon at delta = 1e-5, logistic regression and a network",
        draw: li_table::draw,
    },
    Figure {
        name: "li-table-mnist",
        shows: "the MNIST row: test accuracy and log loss against true epsilon at delta = 1e-5, a network of two convolutions",
        draw: li_mnist::draw,
    },
    Figure {
        name: "li-table-fashion",
        shows: "the same on Fashion-MNIST, which the paper does not have",
        draw: li_mnist::draw,
    },
];
