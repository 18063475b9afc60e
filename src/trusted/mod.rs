//! All that can see a row, and nothing else: what somebody reads who wants to know whether the
//! guarantee holds.
//!
//! Rows come in by [`data`], are looked at by [`engine`] on behalf of [`model`], and leave only
//! through the curator of [`privacy`], which charges the ledger before it asks. What is visible
//! in here alone is `pub(in crate::trusted)`; what is `pub` may be had by everybody.

pub mod data;
pub mod engine;
pub mod model;
pub mod privacy;
