//! Row queries: exact integer answers about all rows or listed rows, for all chains
//! at once. Engines touch rows, know no probability, hold no generator, add no noise.

mod anchor;
mod anchor_rows;
mod anchor_vectors;
pub(in crate::trusted) mod cpu;
mod error;
#[cfg(feature = "gpu")]
pub(in crate::trusted) mod gpu;
mod gradient;
mod grid;
mod moments;
#[cfg(feature = "mpi")]
mod mpi;
mod query;
mod ranks;
mod select;

pub(in crate::trusted) use anchor::{AnchorParts, AnchorQuery, AnchorSums};
pub use error::EngineError;
pub(in crate::trusted) use gradient::{GradientQuery, GradientSum, Rows};
pub use grid::Grid;
pub(in crate::trusted) use moments::MomentSums;
#[cfg(feature = "mpi")]
pub use mpi::MpiLink;
pub(in crate::trusted) use query::{RatioQuery, RatioSum};
pub use ranks::{Link, LinkError, serve_rows};
pub(in crate::trusted) use select::open;
pub use select::{EngineChoice, EngineInfo, EngineSetup, Workload, devices};

use crate::model::MomentBasis;

/// Answers queries about the rows it holds, exactly and reproducibly.
pub(in crate::trusted) trait Engine: Send {
    /// What computes, for the certificate.
    fn info(&self) -> EngineInfo;

    /// `Σ_i clip(r_i)` over all rows, one answer a chain, in grid steps.
    fn ratio_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError>;

    /// `clip(r_i)` in grid steps of the listed rows; `rows[chain]` lists global row
    /// numbers (repeats allowed), `out[chain]` receives as many answers.
    fn ratio_rows(
        &mut self,
        query: &RatioQuery,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError>;

    /// `Σ clip(∇_i)` over the rows asked for, one answer a chain, in grid steps.
    fn gradient_sums(
        &mut self,
        query: &GradientQuery,
        rows: Rows<'_>,
    ) -> Result<Vec<GradientSum>, EngineError>;

    /// Exact gradient and curvature sums at a public point.
    fn anchor_sums(&mut self, query: &AnchorQuery<'_>) -> Result<AnchorSums, EngineError>;

    /// From here on remainders at an anchor are those of rows weighted by its influence weights ω
    /// (`query`: where and in which coordinates); before, every row has the weight 1.
    fn weigh_rows(&mut self, query: &AnchorQuery<'_>) -> Result<(), EngineError>;

    /// Exact sums of the rows' moments, from the rows on the host.
    fn moment_sums(&mut self, basis: &MomentBasis) -> Result<MomentSums, EngineError>;
}

#[cfg(all(test, feature = "gpu"))]
mod anchor_gpu_tests;
#[cfg(test)]
mod anchor_network_tests;
#[cfg(all(test, feature = "gpu"))]
mod declared_gpu_tests;
#[cfg(all(test, feature = "gpu"))]
mod gpu_faults_tests;
#[cfg(all(test, feature = "gpu"))]
mod gradient_gpu_tests;
#[cfg(test)]
mod gradient_tests;
#[cfg(all(test, feature = "gpu"))]
mod moments_gpu_tests;
#[cfg(all(test, feature = "gpu"))]
mod network_gpu_tests;
#[cfg(test)]
mod row_weights_tests;
#[cfg(test)]
mod sensitivity_tests;
#[cfg(all(test, feature = "gpu"))]
mod storage_gpu_tests;
#[cfg(test)]
mod test_cases;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod units_tests;
#[cfg(test)]
mod weighted_rows_tests;
