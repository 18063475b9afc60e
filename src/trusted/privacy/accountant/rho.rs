//! Amounts of a ledger's measure, ρ of zCDP or a Rényi divergence, as exact integers.

/// An amount of ρ, or of a Rényi divergence at one order, in units of 2^-96 nats: sums are exact,
/// rounding is upwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rho(u128);

impl Rho {
    /// Rounded up.
    pub fn cost(rho: f64) -> Self {
        Rho(((rho * f64::powi(2.0, 96)).ceil() as u128).saturating_add(1))
    }

    /// Rounded down, for limits.
    pub fn limit(rho: f64) -> Self {
        Rho((rho * f64::powi(2.0, 96)).floor() as u128)
    }

    /// In nats, rounded up.
    pub fn nats(self) -> f64 {
        if self.0 == 0 {
            return 0.0;
        }
        (self.0 as f64 * f64::powi(2.0, -96)).next_up()
    }

    pub(in crate::trusted) fn times(self, count: u64) -> Self {
        Rho(self.0.saturating_mul(u128::from(count)))
    }

    pub(in crate::trusted) fn plus(self, other: Rho) -> Self {
        Rho(self.0.saturating_add(other.0))
    }

    pub(in crate::trusted) fn minus(self, other: Rho) -> Self {
        Rho(self.0.saturating_sub(other.0))
    }

    pub(in crate::trusted) fn units(self) -> u128 {
        self.0
    }

    pub(in crate::trusted) fn from_units(units: u128) -> Self {
        Rho(units)
    }
}
