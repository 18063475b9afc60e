//! The secret generator: ChaCha20 seeded by the operating system, never saved.

use rand::{Rng, SeedableRng, TryRng, rngs::SysRng};
use rand_chacha::ChaCha20Rng;

/// Coins of the curator. Neither printable nor clonable nor serialisable; its stream
/// is readable inside `mechanism` only.
pub(in crate::privacy) struct SecretRng {
    rng: ChaCha20Rng,
}

impl SecretRng {
    /// Seeded by the operating system.
    ///
    /// # Errors
    /// Where the system has no entropy to give.
    pub(in crate::privacy) fn from_system() -> Result<Self, String> {
        let mut seed = [0u8; 32];
        SysRng
            .try_fill_bytes(&mut seed)
            .map_err(|e| format!("the operating system gave no random seed: {e}"))?;
        Ok(SecretRng {
            rng: ChaCha20Rng::from_seed(seed),
        })
    }

    /// From a user's seed: for tests and non-private runs; a private run that uses it
    /// is private only while the seed stays secret, and its certificate says so.
    pub(in crate::privacy) fn from_seed(seed: u64) -> Self {
        // A stream apart from the public generators, which use the same seed.
        let mut rng = ChaCha20Rng::seed_from_u64(seed ^ 0x5ec2_e7c0_1245_0001);
        rng.set_stream(u64::MAX);
        SecretRng { rng }
    }

    pub(super) fn bits64(&mut self) -> u64 {
        self.rng.next_u64()
    }

    pub(super) fn bits128(&mut self) -> u128 {
        u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64())
    }

    /// Uniform on 0..n, exact (Lemire's multiplication with rejection); n ≥ 1.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        let mut product = u128::from(self.bits64()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.bits64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }
}
