//! Seeded generators, and what a Gaussian mechanism may add for a budget.

use dpmc::math::normal::below;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, StandardNormal};

/// A generator of its own for each purpose: FNV-1a of the words is its seed.
pub fn generator(words: &[&str], number: u64) -> ChaCha12Rng {
    let bytes = words.iter().flat_map(|w| w.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    ChaCha12Rng::seed_from_u64(hash ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

pub fn normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// A standard normal vector. Peers add it in floating point, which is no release: such noise
/// has gaps by which a careful reader tells neighbouring tables apart.
pub fn normals(d: usize, rng: &mut impl Rng) -> Vec<f64> {
    (0..d).map(|_| normal(rng)).collect()
}

/// Sensitivity over noise, μ, at which a Gaussian mechanism is (ε, δ)-private (Balle & Wang
/// 2018, theorem 8; Dong, Roth & Su 2022: mechanisms of μ₁, μ₂ compose to their root sum of
/// squares).
pub fn gaussian_mu(epsilon: f64, delta: f64) -> f64 {
    let reached =
        |mu: f64| below(-epsilon / mu + mu / 2.0) - epsilon.exp() * below(-epsilon / mu - mu / 2.0);
    let (mut low, mut high) = (1e-4, 100.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if reached(middle) < delta {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
