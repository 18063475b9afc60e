//! What the library promises: exact samplers, an accountant that is never under, releases that
//! are charged before they are answered, and no side door. One module a promise.

#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

mod accounting_vectors;
mod anchor_refresh;
mod anchored;
mod anchored_network;
mod anchored_regressions;
mod batch_posteriors;
mod batch_samplers;
mod boxes;
mod declared_posteriors;
mod far_labels;
mod few_rows;
mod gradient_audit;
mod gradient_certificates;
mod gradient_leaks;
mod gradient_posteriors;
mod held_out;
mod known_posteriors;
mod left_over;
mod long_rows;
mod long_tails;
mod many_levels;
mod moments;
mod network_posteriors;
mod no_leaks;
mod offsets;
mod privacy_audit;
mod ranks;
mod rare_levels;
mod row_bounds;
mod row_weights;
mod wide_bounds;
