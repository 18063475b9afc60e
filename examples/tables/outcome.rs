//! What a method gives for one table, ε and repeat.

/// Released values and how they came.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Point estimate of each coefficient: a posterior mean, or what a peer releases.
    pub mean: Vec<f64>,
    /// 90 % intervals for the non-private posterior mean, where the method gives some.
    pub mean_intervals: Option<Vec<[f64; 2]>>,
    /// 90 % credible intervals with the noise in them, where the method gives some.
    pub intervals: Option<Vec<[f64; 2]>>,
    /// Parameters to predict with; the mean alone where there are no draws.
    pub draws: Vec<Vec<f64>>,
    /// Seconds of the method itself, without reading the table.
    pub seconds: f64,
    /// Effective draws of the worst coefficient.
    pub effective_draws: Option<f64>,
    /// How it ended, where a reader should know.
    pub status: String,
}

impl Outcome {
    /// A peer's bare estimate.
    pub fn estimate(theta: Vec<f64>, seconds: f64) -> Outcome {
        Outcome {
            draws: vec![theta.clone()],
            mean: theta,
            seconds,
            ..Outcome::default()
        }
    }
}
