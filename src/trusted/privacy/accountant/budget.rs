//! The budget: the (ε, δ) that all runs on a data set may spend together, and how it is
//! divided between releases and the inexact coins of secret draws.

use serde::{Deserialize, Serialize};

use super::rho_of_budget;

/// An (ε, δ) budget for neighbours by substitution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawBudget")]
pub struct Budget {
    epsilon: f64,
    delta: f64,
}

#[derive(Deserialize)]
struct RawBudget {
    epsilon: f64,
    delta: f64,
}

impl TryFrom<RawBudget> for Budget {
    type Error = BudgetError;

    fn try_from(raw: RawBudget) -> Result<Self, BudgetError> {
        Budget::new(raw.epsilon, raw.delta)
    }
}

/// A budget that means nothing.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {what}")]
pub struct BudgetError {
    /// Key at fault.
    pub key: &'static str,
    /// What is wrong.
    pub what: String,
}

impl Budget {
    /// Checks 0 < ε ≤ 1000 and 0 < δ < 1.
    ///
    /// # Errors
    /// [`BudgetError`] naming the key.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, BudgetError> {
        let refuse = |key, what| Err(BudgetError { key, what });
        if !(epsilon > 0.0 && epsilon <= 1000.0) {
            return refuse(
                "privacy.epsilon",
                format!("must lie in (0, 1000], not {epsilon}; without privacy, say --not-private"),
            );
        }
        if !(delta > 0.0 && delta < 1.0) {
            return refuse(
                "privacy.delta",
                format!("must lie strictly between 0 and 1, not {delta}"),
            );
        }
        // Shares of a smaller one would round up to all of it.
        if delta < 1e-300 {
            return refuse(
                "privacy.delta",
                format!("must be at least 1e-300, not {delta:e}"),
            );
        }
        Ok(Budget { epsilon, delta })
    }

    /// ε, nats.
    pub fn epsilon(self) -> f64 {
        self.epsilon
    }

    /// δ.
    pub fn delta(self) -> f64 {
        self.delta
    }

    /// The part of δ that conversion from ρ may use; the rest pays for coins.
    pub fn conversion_delta(self) -> f64 {
        self.delta * (1.0 - f64::powi(2.0, -10))
    }

    /// The total-variation error of secret draws (Poisson tables) that the rest of δ pays
    /// for: an error T of a mechanism costs (1 + e^ε)T in δ.
    pub fn coin_delta(self) -> f64 {
        self.delta * f64::powi(2.0, -10) / (1.0 + self.epsilon.exp())
    }

    /// The filter's limit on ρ.
    pub fn rho(self) -> f64 {
        rho_of_budget(self.epsilon, self.conversion_delta())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_without_meaning_is_refused() {
        for (epsilon, delta) in [
            (0.0, 1e-6),
            (-1.0, 1e-6),
            (f64::NAN, 0.1),
            (1e9, 0.1),
            (1.0, 0.0),
            (1.0, 1.0),
            (1.0, 1e-301),
        ] {
            assert!(Budget::new(epsilon, delta).is_err());
            let json = format!("{{\"epsilon\":{epsilon},\"delta\":{delta}}}");
            assert!(serde_json::from_str::<Budget>(&json).is_err());
        }
    }
}
