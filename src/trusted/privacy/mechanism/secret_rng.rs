//! The secret generator: ChaCha20 seeded by the operating system, never saved.

use rand::{Rng, SeedableRng, TryRng, rngs::SysRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::Distribution;

/// Coins of the curator. Neither printable nor clonable nor serialisable; its stream
/// is readable inside `mechanism` only.
pub(in crate::trusted::privacy) struct SecretRng {
    rng: ChaCha20Rng,
}

impl SecretRng {
    /// Seeded by the operating system.
    ///
    /// # Errors
    /// Where the system has no entropy to give.
    pub(in crate::trusted::privacy) fn from_system() -> Result<Self, String> {
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
    ///
    /// `position` of the ledger is part of the key: two runs on one ledger, or the sessions of
    /// a resumed run, never use the same coins, which would void the guarantee.
    pub(in crate::trusted::privacy) fn from_seed(seed: u64, position: u128) -> Self {
        let mut key = [0u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..24].copy_from_slice(&position.to_le_bytes());
        key[24..].copy_from_slice(b"dpmc/sec");
        SecretRng {
            rng: ChaCha20Rng::from_seed(key),
        }
    }

    pub(super) fn bits64(&mut self) -> u64 {
        self.rng.next_u64()
    }

    pub(super) fn bits128(&mut self) -> u128 {
        u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64())
    }

    /// A draw of a library's law, for work without privacy and chains whose draws are taken
    /// for exact: none of them is.
    pub(in crate::trusted::privacy) fn sample<T>(&mut self, law: &impl Distribution<T>) -> T {
        law.sample(&mut self.rng)
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
