//! The public state of all chains and their generators.

use ndarray::Array2;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::privacy::MOST_STEPS;

/// Proposals, momenta and jitter: one ChaCha stream a chain, so that results do not
/// depend on threads or on the other chains.
pub type PublicRng = ChaCha20Rng;

/// C chains in lockstep.
#[derive(Clone, Debug)]
pub struct Chains {
    /// Current θ, C × d.
    pub thetas: Array2<f64>,
    /// One stream a chain.
    pub rngs: Vec<PublicRng>,
    /// Accepted moves of each chain since the start (decisions are released).
    pub accepted: Vec<u64>,
}

/// What `state.json` keeps of [`Chains`]: all of it public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainsState {
    /// θ, one row a chain.
    pub thetas: Vec<Vec<f64>>,
    /// Accepted moves of each chain.
    pub accepted: Vec<u64>,
    /// Seed of the public streams, hexadecimal.
    pub public_seed: String,
    /// Position of each stream, in 32-bit words.
    pub word_positions: Vec<String>,
}

impl Chains {
    /// Chains at the given starts, with public streams of one seed.
    pub fn new(starts: &[Vec<f64>], seed: [u8; 32]) -> Self {
        let d = starts.first().map_or(0, Vec::len);
        Chains {
            thetas: Array2::from_shape_fn((starts.len(), d), |(c, j)| starts[c][j]),
            rngs: (0..starts.len()).map(|c| stream(seed, c as u64)).collect(),
            accepted: vec![0; starts.len()],
        }
    }

    /// Number of chains C.
    pub fn len(&self) -> usize {
        self.thetas.nrows()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.thetas.nrows() == 0
    }

    /// The public state.
    pub fn state(&self) -> ChainsState {
        let seed = self.rngs.first().map_or([0; 32], ChaCha20Rng::get_seed);
        ChainsState {
            thetas: self.thetas.rows().into_iter().map(|r| r.to_vec()).collect(),
            accepted: self.accepted.clone(),
            public_seed: seed.iter().map(|b| format!("{b:02x}")).collect(),
            word_positions: self
                .rngs
                .iter()
                .map(|r| r.get_word_pos().to_string())
                .collect(),
        }
    }

    /// Restores the public state.
    ///
    /// # Errors
    /// A message naming the field that is damaged.
    pub fn restore(state: &ChainsState) -> Result<Self, String> {
        let mut seed = [0u8; 32];
        for (i, byte) in seed.iter_mut().enumerate() {
            *byte = state
                .public_seed
                .get(2 * i..2 * i + 2)
                .and_then(|h| u8::from_str_radix(h, 16).ok())
                .ok_or("'public_seed' is damaged")?;
        }
        let d = state.thetas.first().map_or(0, Vec::len);
        let count = state.thetas.len();
        let fits = state.thetas.iter().all(|t| t.len() == d)
            && state.accepted.len() == count
            && state.word_positions.len() == count;
        if !fits || d == 0 {
            return Err("'thetas', 'accepted' and 'word_positions' do not fit together".into());
        }
        if state.accepted.iter().any(|a| *a > MOST_STEPS) {
            return Err("'accepted' is damaged".into());
        }
        let mut chains = Chains::new(&state.thetas, seed);
        chains.accepted.clone_from(&state.accepted);
        for (rng, position) in chains.rngs.iter_mut().zip(&state.word_positions) {
            rng.set_word_pos(
                position
                    .parse()
                    .map_err(|_| "'word_positions' is damaged".to_string())?,
            );
        }
        Ok(chains)
    }
}

/// Public stream number `stream` of a seed.
pub(crate) fn stream(seed: [u8; 32], stream: u64) -> PublicRng {
    let mut rng = ChaCha20Rng::from_seed(seed);
    rng.set_stream(stream);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn restoring_continues_every_stream() -> Result<(), String> {
        let mut chains = Chains::new(&[vec![1.0, 2.0], vec![3.0, 4.0]], [7; 32]);
        for rng in &mut chains.rngs {
            rng.next_u64();
            rng.next_u32();
        }
        let mut restored = Chains::restore(&chains.state())?;
        assert_eq!(restored.thetas, chains.thetas);
        for (a, b) in chains.rngs.iter_mut().zip(&mut restored.rngs) {
            assert_eq!(a.next_u64(), b.next_u64());
        }
        assert_ne!(chains.rngs[0].next_u64(), chains.rngs[1].next_u64());
        Ok(())
    }
}
