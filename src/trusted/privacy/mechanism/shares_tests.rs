//! Minibatches of rows with bounds of their own: the chain is exact and a row's price is what
//! is charged, by enumeration over all that may be kept, and by the sampler's own draws.

use super::coin::LOGIT_BITS;
use super::decide::{Thinning, draw_rows, penalty, poisson_estimate};
use super::poisson::PoissonSampler;
use super::secret::Secret;
use super::secret_rng::SecretRng;
use super::shares::{Drawn, RowShares};
use super::weights::poisson_weights;
use crate::data::{Dataset, Population};
use crate::engine::Grid;
use crate::privacy::accountant::flow::range;

/// Rows of the given bounds; their cells do not matter here.
fn rows(bounds: &[f64]) -> (RowShares, Population) {
    let mut set = Dataset::builder(vec!["a".into()], false, 1.0).unwrap();
    for &w in bounds {
        set.push_bounded(&[0.0], None, w).unwrap();
    }
    let set = set.finish().unwrap();
    let shares = RowShares::new(set.bounds().unwrap()).unwrap();
    (shares, set.population())
}

/// The law of what is kept of one row: mean φ and weight w, from the integers that decide.
#[derive(Clone, Copy)]
struct Kept {
    mean: f64,
    weight: f64,
}

struct Enumerated {
    shares: RowShares,
    bounds: Vec<f64>,
    population: Population,
    grid: Grid,
    lambda: f64,
}

impl Enumerated {
    fn new(bounds: &[f64], clip: f64, ratio: f64) -> Self {
        let (shares, population) = rows(bounds);
        let grid = Grid::new(clip).unwrap();
        Enumerated {
            shares,
            bounds: bounds.to_vec(),
            population,
            grid,
            lambda: ratio * population.total * grid.clip_bound(),
        }
    }

    fn big(&self) -> f64 {
        self.population.total * self.grid.clip_bound()
    }

    /// Largest |q| of a row, grid steps.
    fn most(&self, row: usize) -> i32 {
        (self.bounds[row] * f64::from(self.grid.bound())).floor() as i32
    }

    fn kept(&self, row: usize, q: i32) -> Kept {
        let steps = Secret::seal(vec![q]);
        let drawn = Drawn {
            steps: &steps,
            rows: &[row as u64],
            shares: Some(&self.shares),
        };
        let relative = drawn.ratios(self.grid).next().unwrap();
        let thinning = Thinning::new(self.grid, self.lambda / self.population.total);
        let keep = thinning.threshold(relative) as f64 * f64::powi(2.0, -64);
        // The alias table's masses are tested where it is: exactly w_i/Σw_i.
        let drawn = (self.lambda + self.big()) * self.bounds[row] / self.population.total;
        Kept {
            mean: drawn * keep,
            weight: thinning.weight(relative) as f64 * f64::powi(2.0, -LOGIT_BITS),
        }
    }

    /// Odds of acceptance with Barker's rule at public part h: numerator and denominator,
    /// each a sum over all counts kept up to a tail under 1e-20.
    fn accepted(&self, ratios: &[i32], h: f64) -> (f64, f64) {
        let kept = ratios.iter().enumerate().map(|(i, &q)| self.kept(i, q));
        // Law of Σ s_i w_i as a list of atoms.
        let mut atoms = vec![(1.0f64, h)];
        for row in kept {
            let mut counts = vec![(-row.mean).exp()];
            while counts.len() < 40 {
                let last = counts[counts.len() - 1];
                counts.push(last * row.mean / counts.len() as f64);
            }
            let more = atoms.iter().flat_map(|&(p, z)| {
                let each = counts.iter().enumerate();
                each.map(move |(s, &q)| (p * q, z + s as f64 * row.weight))
            });
            atoms = more.filter(|a| a.0 > 1e-22).collect();
        }
        atoms.iter().fold((0.0, 0.0), |(yes, no), &(p, z)| {
            (yes + p / (1.0 + (-z).exp()), no + p / (1.0 + z.exp()))
        })
    }

    fn logit(&self, ratios: &[i32], h: f64) -> f64 {
        let (yes, no) = self.accepted(ratios, h);
        (yes / no).ln()
    }
}

const BOUNDS: [f64; 3] = [1.0, 0.25, 0.0625];

/// Flow θ → θ' over flow back is 1 to 1e-12, π'/π = e^R.
#[test]
fn weighted_minibatches_are_reversible() {
    for (clip, lambda) in [(0.7, 0.5), (0.3, 2.0), (1.5, 1.0)] {
        let e = Enumerated::new(&BOUNDS, clip, lambda);
        for ratios in [[1.0, -1.0, 1.0], [0.4, 0.9, -0.8], [-1.0, -0.3, 0.2]] {
            let steps: Vec<i32> = (0..3)
                .map(|i| (ratios[i] * f64::from(e.most(i))) as i32)
                .collect();
            let back: Vec<i32> = steps.iter().map(|q| -q).collect();
            let odds: i32 = steps.iter().sum();
            let odds = (f64::from(odds) * e.grid.step()).exp();
            for h in [-1.3, 0.0, 0.6] {
                let forward = e.accepted(&steps, h).0;
                let reverse = odds * h.exp() * e.accepted(&back, -h).0;
                assert!(
                    (forward / reverse - 1.0).abs() < 1e-12,
                    "{clip} {lambda} {ratios:?} {h}: {forward} {reverse}"
                );
            }
        }
    }
}

/// Substituting row i moves the logit by at most its flow's range, `w_i c g(1)`, for rows of every
/// bound; by nearly as much, so that a missing factor of two would show.
#[test]
fn a_row_moves_the_logit_by_its_own_bound_at_most() {
    let (mut closest, mut counted) = ([0.0f64; 3], 0);
    for (clip, lambda) in [(0.02, 0.5), (0.3, 0.2), (0.3, 2.0), (1.0, 1.0)] {
        let e = Enumerated::new(&BOUNDS, clip, lambda);
        let factor = range(e.big() / e.lambda);
        for (i, closest) in closest.iter_mut().enumerate() {
            let eta = e.bounds[i] * e.grid.clip_bound() * factor;
            for others in [-1.0, 0.5] {
                for h in [-9.0, -2.0, 0.0, 2.0, 9.0] {
                    let logits = [-1.0, -0.5, 0.0, 0.5, 1.0].map(|own| {
                        let steps: Vec<i32> = (0..3)
                            .map(|k| {
                                let share = if k == i { own } else { others };
                                (share * f64::from(e.most(k))) as i32
                            })
                            .collect();
                        e.logit(&steps, h)
                    });
                    let high = logits.iter().copied().fold(f64::MIN, f64::max);
                    let low = logits.iter().copied().fold(f64::MAX, f64::min);
                    assert!(high - low <= eta * (1.0 + 1e-12), "row {i}, {clip}, {h}");
                    *closest = closest.max((high - low) / eta);
                    counted += 1;
                }
            }
        }
    }
    assert_eq!(counted, 120);
    // Two versions of a row, one of ratio +w c and one of −w c, are 2 w c apart at least.
    assert!(closest.iter().all(|c| *c > 0.7), "{closest:?}");
}

/// A row whose answer exceeds its own bound is clipped to it.
#[test]
fn answers_are_clipped_to_the_rows_own_bounds() {
    let e = Enumerated::new(&BOUNDS, 0.3, 1.0);
    let most = e.grid.bound();
    for row in 0..3 {
        for q in [most, -most] {
            let (wide, own) = (e.kept(row, q), e.kept(row, q.signum() * e.most(row)));
            assert_eq!((wide.mean, wide.weight), (own.mean, own.weight));
        }
    }
    assert!(e.most(2) < most / 15);
}

const MANY: u64 = 40;
const CLIP: f64 = 0.2;
const LAMBDA: f64 = 0.8;

/// 40 rows of four bounds, their ratios within them, and the sampler.
struct Sampled {
    shares: RowShares,
    population: Population,
    grid: Grid,
    ratios: Vec<i32>,
    poisson: PoissonSampler,
}

impl Sampled {
    fn new() -> Self {
        let bound = |i: u64| [1.0, 0.05, 0.3, 0.05][i as usize % 4];
        let bounds: Vec<f64> = (0..MANY).map(bound).collect();
        let (shares, population) = rows(&bounds);
        let grid = Grid::new(CLIP).unwrap();
        let ratio = |i: u64| grid.quantize(CLIP * bound(i) * (0.3 + 0.7 * (i as f64 * 0.37).sin()));
        Sampled {
            shares,
            population,
            grid,
            ratios: (0..MANY).map(ratio).collect(),
            poisson: PoissonSampler::new(),
        }
    }

    fn per_row(&self) -> f64 {
        LAMBDA / self.population.total
    }

    fn exact(&self) -> f64 {
        let sum: i32 = self.ratios.iter().sum();
        f64::from(sum) * self.grid.step()
    }

    /// Draws a batch, forward or back, and hands it to `with`.
    fn batch<T>(
        &self,
        rng: &mut SecretRng,
        sign: i32,
        with: impl FnOnce(&mut SecretRng, &Drawn<'_>) -> T,
    ) -> T {
        let mut listed = Vec::new();
        let rate = LAMBDA + self.population.total * self.grid.clip_bound();
        let from = (self.population.rows, Some(&self.shares));
        draw_rows(rng, &self.poisson, rate, from, &mut listed);
        let steps = listed.iter().map(|&i| sign * self.ratios[i as usize]);
        let steps = Secret::seal(steps.collect());
        let drawn = Drawn {
            steps: &steps,
            rows: &listed,
            shares: Some(&self.shares),
        };
        with(rng, &drawn)
    }
}

/// E exp(R̂) = exp(R) within 5.5 standard errors (4e-8) by the sampler's own draws. Rows
/// drawn uniformly, or ratios not divided by their bounds, move it by tens of them.
#[test]
fn weighted_estimates_are_unbiased_on_the_exponential_scale() {
    let s = Sampled::new();
    let mut rng = SecretRng::from_seed(31, 0);
    let n = 400_000;
    let (mut sum, mut square) = (0.0, 0.0);
    for _ in 0..n {
        let r = s.batch(&mut rng, 1, |rng, drawn| {
            poisson_estimate(rng, drawn, s.grid, s.per_row()).open()
        });
        let e = (r as f64 * f64::powi(2.0, -LOGIT_BITS)).exp();
        sum += e;
        square += e * e;
    }
    let n = f64::from(n);
    let mean = sum / n;
    let error = ((square / n - mean * mean) / n).sqrt();
    let exact = s.exact().exp();
    assert!(
        (mean - exact).abs() < 5.5 * error,
        "{mean} against {exact} ± {error}"
    );
    assert!(error < 0.005 * mean && (exact - 1.0).abs() > 0.2);
}

/// With noise and penalty the flows between two states agree within 6 standard errors
/// (2e-9).
#[test]
fn weighted_noise_and_penalty_keep_detailed_balance() {
    let s = Sampled::new();
    let weights = Grid::new((s.grid.clip_bound() / s.per_row()).ln_1p()).unwrap();
    let variance = (0.8 / weights.step()).ceil() as u64;
    let mut rng = SecretRng::from_seed(37, 0);
    let n = 400_000;
    let [forward, back] = [1, -1].map(|sign| {
        let accepted = (0..n).filter(|_| {
            let sum = s.batch(&mut rng, sign, |rng, drawn| {
                poisson_weights(rng, drawn, s.grid, s.per_row(), weights)
            });
            penalty(&mut rng, sum, weights, variance, 0.0)
        });
        accepted.count() as f64
    });
    let ratio = forward / (s.exact().exp() * back);
    let error = (1.0 / forward + 1.0 / back).sqrt();
    assert!((ratio - 1.0).abs() < 6.0 * error, "{ratio} ± {error}");
    assert!(error < 0.01);
}
