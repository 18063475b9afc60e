//! Trajectory length by the ChEES criterion (Hoffman, Radul & Sountsov 2021, section 4): gradient
//! ascent on the expected squared change of the squared distance from the centre, in the
//! metric of the mass. It sees released numbers alone: draws, proposals, momenta, decisions.

use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};

use super::mass::Mass;

/// Adam's rate and second-moment decay as in the paper; no momentum.
const RATE: f64 = 0.025;
const SECOND_MOMENT: f64 = 0.95;
/// Weight t^-0.75 of an iterate in the average that is kept.
const DECAY: f64 = 0.75;

/// Ascent on the log of the trajectory length t = Lη.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TrajectoryLength {
    log_length: f64,
    averaged_log: f64,
    second_moment: f64,
    count: u64,
}

/// One step of all chains, as far as the criterion needs it. All arrays C × d.
pub(super) struct Trajectories<'a> {
    /// θ the trajectories left.
    pub from: &'a Array2<f64>,
    /// θ' they ended at.
    pub to: &'a Array2<f64>,
    /// p' they ended with.
    pub momenta: &'a Array2<f64>,
    /// Decisions.
    pub accepted: &'a [bool],
}

impl TrajectoryLength {
    /// Starts at this length, in units of time.
    pub(super) fn new(length: f64) -> Self {
        let log = length.ln();
        TrajectoryLength {
            log_length: log,
            averaged_log: log,
            second_moment: 0.0,
            count: 0,
        }
    }

    /// Length to use next.
    pub(super) fn length(&self) -> f64 {
        self.log_length.exp()
    }

    /// Length to keep.
    pub(super) fn averaged(&self) -> f64 {
        self.averaged_log.exp()
    }

    /// Ascends by one step, within [`shortest`, `longest`]. A single chain has no centre to
    /// measure from, and where nothing was accepted nothing is learned: no change.
    pub(super) fn update(
        &mut self,
        trajectories: &Trajectories<'_>,
        mass: &Mass,
        shortest: f64,
        longest: f64,
    ) {
        let slope = slope(trajectories, mass) * self.length();
        if slope == 0.0 || !slope.is_finite() {
            return;
        }
        self.count += 1;
        let t = self.count as f64;
        self.second_moment =
            SECOND_MOMENT * self.second_moment + (1.0 - SECOND_MOMENT) * slope * slope;
        let scale = (self.second_moment / (1.0 - SECOND_MOMENT.powf(t))).sqrt();
        if scale > 0.0 && scale.is_finite() {
            self.log_length += RATE * slope / scale;
        } else {
            self.second_moment = 0.0;
        }
        self.log_length = self.log_length.max(shortest.ln()).min(longest.ln());
        let share = t.powf(-DECAY);
        self.averaged_log = share * self.log_length + (1.0 - share) * self.averaged_log;
    }

    /// Whether it holds numbers that can be gone on from.
    pub(super) fn is_consistent(&self) -> bool {
        self.log_length.abs() < 600.0
            && self.averaged_log.abs() < 600.0
            && self.second_moment >= 0.0
            && self.second_moment.is_finite()
            && self.count <= crate::privacy::MOST_STEPS
    }
}

/// Slope of the criterion in t: the mean over accepted moves of
/// `(‖θ'−m'‖² − ‖θ−m‖²) (θ'−m')·p'`, norms in the metric of M, m and m' the chains' means.
/// (`d/dt ½‖θ'−m'‖²_M = (θ'−m')ᵀM v'` and `Mv' = p'`.)
fn slope(t: &Trajectories<'_>, mass: &Mass) -> f64 {
    let chains = t.from.nrows();
    if chains < 2 {
        return 0.0;
    }
    let mean = |a: &Array2<f64>| -> Array1<f64> { a.sum_axis(Axis(0)) / chains as f64 };
    let (centre, centre_to) = (mean(t.from), mean(t.to));
    let mut sum = 0.0;
    for c in (0..chains).filter(|&c| t.accepted[c]) {
        let gap = (&t.from.row(c) - &centre).to_vec();
        let gap_to = (&t.to.row(c) - &centre_to).to_vec();
        let change = mass.norm(&gap_to).powi(2) - mass.norm(&gap).powi(2);
        let outward: f64 = gap_to
            .iter()
            .zip(t.momenta.row(c))
            .map(|(g, p)| g * p)
            .sum();
        sum += change * outward;
    }
    sum
}
