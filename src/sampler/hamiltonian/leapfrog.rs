//! The leapfrog integrator on released gradients, all chains in lockstep.

use ndarray::{Array2, Axis, Zip};

use super::mass::Mass;
use crate::model::Prior;
use crate::privacy::{GradientNoise, Halt, Releases};

/// Gradients are asked for within ± this, and at zero where θ is not a number: a trajectory
/// that has diverged costs what any other does. Part of the force, which is a function of θ
/// alone still, so that the integrator stays reversible.
const FARTHEST: f64 = (1u64 << 60) as f64;

/// The public side of a trajectory.
pub(super) struct Leapfrog<'a> {
    pub prior: &'a Prior,
    pub mass: &'a Mass,
    pub noise: GradientNoise,
    /// η, jittered.
    pub step: f64,
    /// L.
    pub steps: u32,
}

impl Leapfrog<'_> {
    /// Moves θ and p, both C × d, along L steps of size η; L + 1 requests for gradients
    /// (Räisä 2021, algorithm 2; the half kicks between two steps share one gradient).
    ///
    /// # Errors
    /// [`Halt`], with θ and p somewhere on the way.
    pub(super) fn run(
        &self,
        thetas: &mut Array2<f64>,
        momenta: &mut Array2<f64>,
        releases: &mut dyn Releases,
    ) -> Result<(), Halt> {
        self.kick(0.5 * self.step, thetas, momenta, releases)?;
        for l in 1..=self.steps {
            for (mut theta, p) in thetas.rows_mut().into_iter().zip(momenta.rows()) {
                for (t, v) in theta.iter_mut().zip(self.mass.velocity(&p.to_vec())) {
                    *t += self.step * v;
                }
            }
            let kick = if l == self.steps { 0.5 } else { 1.0 };
            self.kick(kick * self.step, thetas, momenta, releases)?;
        }
        Ok(())
    }

    /// `p += time · (∇log p(θ) + g(θ) + noise)`.
    fn kick(
        &self,
        time: f64,
        thetas: &Array2<f64>,
        momenta: &mut Array2<f64>,
        releases: &mut dyn Releases,
    ) -> Result<(), Halt> {
        let reachable = thetas.mapv(|t| {
            if t.is_nan() {
                0.0
            } else {
                t.clamp(-FARTHEST, FARTHEST)
            }
        });
        let mut force = releases.gradients(reachable.view(), self.noise)?;
        if force.dim() != thetas.dim() {
            return Err(Halt::Failed(format!(
                "gradients of {:?} chains and parameters were asked for, {:?} came",
                thetas.dim(),
                force.dim()
            )));
        }
        for (mut f, theta) in force.axis_iter_mut(Axis(0)).zip(reachable.rows()) {
            for (f, slope) in f.iter_mut().zip(self.prior.slopes(&theta.to_vec()).0) {
                *f += slope;
            }
        }
        Zip::from(momenta)
            .and(&force)
            .for_each(|p, f| *p += time * f);
        Ok(())
    }
}
