//! Worst-case neighbours for steps on remainders: a given anchor, one row whose remainder
//! grows by more than any clip of a case along the move, and one whose remainder shrinks.

use std::sync::Arc;

use super::AuditError;
use crate::data::{DataError, Dataset};
use crate::model::{Anchor, Metric, Model, Prior, Regression};
use crate::privacy::curator::CuratorError;

/// θ*: the first feature of a row is its a = x·θ*, the second its t = x·(θ' − θ*).
pub(super) const AT: [f64; 2] = [1.0, 0.0];
/// Of a row: softplus bends upwards between a and a + t, beyond its own quadratic there.
const SHRINKS: [f32; 2] = [-4.0, 8.0];
/// Of a row: the quadratic at a overshoots.
const GROWS: [f32; 2] = [2.0, 8.0];
/// Bound on the norm of both.
const ROW_NORM: f64 = 9.0;

/// D, or its neighbour D': flat rows (x = 0, remainder 0) and one that is not.
pub(super) fn data(rows: usize, neighbour: bool) -> Result<Dataset, AuditError> {
    let build = || -> Result<Dataset, DataError> {
        let mut set = Dataset::builder(vec!["a".into(), "t".into()], true, ROW_NORM)?;
        for _ in 1..rows {
            set.push(&[0.0, 0.0], Some(true))?;
        }
        set.push(if neighbour { &SHRINKS } else { &GROWS }, Some(true))?;
        set.finish()
    };
    build().map_err(|e| AuditError::setting("rows", e.to_string()))
}

pub(super) fn model(data: &Dataset) -> Result<Arc<dyn Model>, AuditError> {
    Regression::logistic(data.features(), ROW_NORM, Prior::normal(2, 1.0), 1.0)
        .map(|model| Arc::new(model) as Arc<dyn Model>)
        .map_err(|e| CuratorError::Mismatch(e.to_string()).into())
}

/// A public anchor at [`AT`] whose expansion is flat: only remainders are left to see.
pub(super) fn anchor() -> Anchor {
    Anchor {
        at: AT.to_vec(),
        metric: Metric::identity(2, ROW_NORM),
        gradient: vec![0.0; 2],
        curvature: vec![0.0; 4],
        gradient_sd: 0.0,
        curvature_sd: 0.0,
        centre: vec![0.0; 2],
        radius: 10.0,
        spread: Vec::new(),
        doubts: Default::default(),
        alone: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::remainder_difference;
    use crate::privacy::audit::case::MOST_REMAINDER;

    #[test]
    fn both_remainders_exceed_every_clip_of_a_case() {
        let remainder = |row: [f32; 2]| {
            let [a, t] = row.map(f64::from);
            -remainder_difference(a, 0.0, t)
        };
        assert!(remainder(GROWS) > MOST_REMAINDER && remainder(SHRINKS) < -MOST_REMAINDER);
    }
}
