//! Public step sizes as a function of the iteration.

use serde::{Deserialize, Serialize};

use crate::sampler::SettingError;

/// Longest cycle: the last step of one, (π/2n)² of the first, still has a noise that can be charged.
const LONGEST_CYCLE: u64 = 100_000;

/// Step size of every iteration; t counts from 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// `a_t = step`.
    Fixed {
        /// Step.
        step: f64,
    },
    /// `a_t = step · t^(−1/3)` (Li 2019, section 4).
    CubeRoot {
        /// Step of the first iteration.
        step: f64,
    },
    /// `a_t = step · (offset + t)^(−exponent)` (Welling & Teh 2011, section 2).
    Polynomial {
        /// Factor.
        step: f64,
        /// b ≥ 0.
        offset: f64,
        /// γ in (0, 1].
        exponent: f64,
    },
    /// `a_t = (step/2)·(1 + cos(π·((t − 1) mod n)/n))`: from `step` to almost nothing, and anew
    /// (Zhang 2020, equation 1). A long step finds another mode, short ones sample it.
    Cyclical {
        /// Step at the start of every cycle.
        step: f64,
        /// n ≥ 2, iterations of a cycle.
        length: u64,
    },
}

impl Schedule {
    /// Step size of iteration t ≥ 1.
    pub fn at(self, t: u64) -> f64 {
        // Whole counts below 2^53 are exact; no run is longer.
        let t = t.max(1) as f64;
        match self {
            Schedule::Fixed { step } => step,
            Schedule::CubeRoot { step } => step / t.cbrt(),
            Schedule::Polynomial {
                step,
                offset,
                exponent,
            } => step * (offset + t).powf(-exponent),
            Schedule::Cyclical { step, length } => {
                let n = length.max(2) as f64;
                0.5 * step * (1.0 + (std::f64::consts::PI * ((t - 1.0) % n) / n).cos())
            }
        }
    }

    /// The same schedule with steps `factor` times as long.
    #[must_use]
    pub(super) fn times(self, factor: f64) -> Self {
        match self {
            Schedule::Fixed { step } => Schedule::Fixed {
                step: step * factor,
            },
            Schedule::CubeRoot { step } => Schedule::CubeRoot {
                step: step * factor,
            },
            Schedule::Polynomial {
                step,
                offset,
                exponent,
            } => Schedule::Polynomial {
                step: step * factor,
                offset,
                exponent,
            },
            Schedule::Cyclical { step, length } => Schedule::Cyclical {
                step: step * factor,
                length,
            },
        }
    }

    /// Checks its numbers.
    ///
    /// # Errors
    /// [`SettingError`] for one out of range.
    pub(in crate::sampler) fn validate(self) -> Result<(), SettingError> {
        let (Schedule::Fixed { step }
        | Schedule::CubeRoot { step }
        | Schedule::Polynomial { step, .. }
        | Schedule::Cyclical { step, .. }) = self;
        if !(step > 0.0 && step.is_finite()) {
            return Err(SettingError::new(
                "sampler.step",
                format!("must be positive, not {step}"),
            ));
        }
        if let Schedule::Cyclical { length, .. } = self
            && !(2..=LONGEST_CYCLE).contains(&length)
        {
            return Err(SettingError::new(
                "sampler.schedule",
                format!("'cycle' must be 2 to {LONGEST_CYCLE} iterations, not {length}"),
            ));
        }
        if let Schedule::Polynomial {
            offset, exponent, ..
        } = self
        {
            if !(offset >= 0.0 && offset.is_finite()) {
                return Err(SettingError::new(
                    "sampler.schedule",
                    format!("'offset' must be at least 0, not {offset}"),
                ));
            }
            if !(exponent > 0.0 && exponent <= 1.0) {
                return Err(SettingError::new(
                    "sampler.schedule",
                    format!(
                        "'exponent' must lie in (0, 1], not {exponent}; faster decay stops the chain short"
                    ),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_decay_at_their_rate() {
        let cube = Schedule::CubeRoot { step: 0.1 };
        assert_eq!(cube.at(1), 0.1);
        assert!((cube.at(1000) - 0.01).abs() < 1e-15);
        let polynomial = Schedule::Polynomial {
            step: 6.0,
            offset: 7.0,
            exponent: 0.5,
        };
        assert!((polynomial.at(2) - 2.0).abs() < 1e-15);
        assert!((polynomial.times(0.5).at(29) - 0.5).abs() < 1e-15);
        assert_eq!(Schedule::Fixed { step: 0.3 }.at(1 << 40), 0.3);
        let cyclical = Schedule::Cyclical {
            step: 0.2,
            length: 100,
        };
        for (t, a) in [(1, 0.2), (51, 0.1), (101, 0.2), (1051, 0.1)] {
            assert!((cyclical.at(t) - a).abs() < 1e-15);
        }
        assert!(cyclical.at(100) < 1e-4);
        assert!((cyclical.times(2.0).at(51) - 0.2).abs() < 1e-15);
    }

    #[test]
    fn impossible_schedules_are_named() {
        for (schedule, key) in [
            (Schedule::Fixed { step: 0.0 }, "sampler.step: "),
            (Schedule::CubeRoot { step: f64::NAN }, "sampler.step: "),
            (
                Schedule::Polynomial {
                    step: 1.0,
                    offset: -1.0,
                    exponent: 0.5,
                },
                "sampler.schedule: 'offset'",
            ),
            (
                Schedule::Polynomial {
                    step: 1.0,
                    offset: 0.0,
                    exponent: 1.5,
                },
                "sampler.schedule: 'exponent'",
            ),
            (
                Schedule::Cyclical {
                    step: 1.0,
                    length: 1,
                },
                "sampler.schedule: 'cycle'",
            ),
        ] {
            let error = schedule.validate().unwrap_err().to_string();
            assert!(error.starts_with(key), "{error}");
        }
    }
}
