//! Two numbers in a list, such as bounds. A list of more is no such pair: `[0,5, 60,0]` is a table
//! of someone who writes decimals with commas, and has four numbers.

use serde::de::{Deserialize, Deserializer, Error};

fn pair<E: Error>(numbers: &[f64]) -> Result<[f64; 2], E> {
    <[f64; 2]>::try_from(numbers).map_err(|_| {
        E::custom(format!(
            "two numbers are needed here, such as [0.5, 60.0], and there are {}; decimals have a point",
            numbers.len()
        ))
    })
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[f64; 2], D::Error> {
    pair(&Vec::deserialize(from)?)
}

/// The same where the key may be absent.
pub(super) mod optional {
    use super::{Deserialize, Deserializer, pair};

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<[f64; 2]>, D::Error> {
        let numbers: Option<Vec<f64>> = Option::deserialize(from)?;
        numbers.map(|numbers| pair(&numbers)).transpose()
    }
}
