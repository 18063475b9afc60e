//! Levels that share a prior whose standard deviation is sampled, beside the other coefficients:
//! how the noise of a gradient is divided between the two, and what is kept of a step of either
//! (docs/proofs/anchors.md, "Priors whose scales are sampled"). Functions of what was released.

use nalgebra::{DMatrix, DVector};

use super::algebra::{factor, forward, solve, solve_vector, whiten};
use super::structure::Structure;
use crate::priors::{BlockLaw, Blocks};
use crate::privacy::Halt;

/// Levels have the curvature of their coordinates and this many times more, one of these.
const WIDER: [f64; 4] = [0.0, 3.0, 15.0, 63.0];

/// A level is lost where noise leaves less than this of what its rows say.
const LOST: f64 = 0.2;

/// Which coefficients are of levels that are pooled, and which are not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pooled {
    levels: Vec<usize>,
    others: Vec<usize>,
}

/// What rows say by a gradient with noise, in θ.
pub(super) struct Told<'a> {
    /// The likelihood's curvature, and the prior's precision.
    pub curvature: &'a DMatrix<f64>,
    pub prior: &'a DMatrix<f64>,
    /// A factor of the noise's covariance.
    pub noise: DMatrix<f64>,
}

/// The shares of a step that its noise does not explain.
pub(super) struct Kept {
    /// Of each coefficient.
    pub shares: DVector<f64>,
    /// Of those that are not pooled.
    pub others: f64,
}

impl Pooled {
    /// `None` where no level is pooled, or nothing else is there. (Of numbers that share a prior a
    /// row has all, and none is told less than others.)
    pub fn new(prior: Option<&Blocks>, structure: &Structure, d: usize) -> Option<Self> {
        let shared = |law: &BlockLaw| matches!(law, BlockLaw::Shared { .. });
        let blocks = prior.iter().flat_map(|prior| &prior.blocks);
        let members = blocks.filter(|b| shared(&b.law)).flat_map(|b| &b.members);
        let is_level = |j: &usize| structure.levels.get(*j).is_some_and(|of| !of.is_empty());
        let levels: Vec<usize> = members.copied().filter(is_level).collect();
        let others: Vec<usize> = (0..d).filter(|j| !levels.contains(j)).collect();
        match levels.is_empty() || others.is_empty() {
            true => None,
            false => Some(Pooled { levels, others }),
        }
    }

    /// Coordinates of a gradient in which levels are so much shorter that the error to expect, the
    /// mean over the levels plus the mean over the others, is least. `noise`: the gradient's sd in
    /// the coordinates of a matrix.
    ///
    /// # Errors
    /// [`Halt`] of a matrix that has no inverse.
    pub fn widened(
        &self,
        matrix: DMatrix<f64>,
        (curvature, prior): (&DMatrix<f64>, &DMatrix<f64>),
        noise: impl Fn(&DMatrix<f64>) -> Result<f64, Halt>,
    ) -> Result<DMatrix<f64>, Halt> {
        let d = matrix.nrows();
        let own = solve(&(curvature + prior), &DMatrix::identity(d, d))?;
        let roots = [&self.levels, &self.others].map(|part| factor(&block(&own, part)));
        let [levels, others] = roots;
        let roots = [levels?, others?];
        let mut best = (f64::INFINITY, matrix.clone());
        for by in WIDER {
            let mut wider = matrix.clone();
            for &j in &self.levels {
                wider[(j, j)] += by * curvature[(j, j)];
            }
            let told = Told {
                curvature,
                prior,
                noise: factor(&wider)? * noise(&wider)?,
            };
            let variance = told.variance()?;
            let mut error = 0.0;
            for (part, root) in [&self.levels, &self.others].into_iter().zip(&roots) {
                error += whiten(root, &block(&variance, part))?.trace() / part.len() as f64;
            }
            if error < best.0 {
                best = (error, wider);
            }
        }
        Ok(best.1)
    }

    /// What is kept of a step, of levels and of others each by themselves (James & Stein 1961): of
    /// sixty levels that are lost in noise the length would hide what four numbers say.
    ///
    /// # Errors
    /// [`Halt`] of a matrix that has no inverse.
    pub fn kept(&self, told: &Told, step: &DVector<f64>) -> Result<Kept, Halt> {
        let root = told.step_noise()?;
        let covariance = &root * root.transpose();
        let mut shares = DVector::zeros(step.len());
        let mut others = 0.0;
        for part in [&self.levels, &self.others] {
            let own = DVector::from_iterator(part.len(), part.iter().map(|&j| step[j]));
            let seen = forward(&factor(&block(&covariance, part))?, &own)?.norm_squared();
            let kept = (1.0 - part.len() as f64 / seen.max(1e-300)).clamp(0.0, 1.0);
            part.iter().for_each(|&j| shares[j] = kept);
            others = kept;
        }
        Ok(Kept { shares, others })
    }

    /// How many coefficients are no levels, if they come first: so do their coordinates then, for L
    /// is lower triangular.
    pub fn others_first(&self) -> Option<usize> {
        let k = self.others.len();
        self.others.iter().copied().eq(0..k).then_some(k)
    }

    /// Share of the levels' curvature that is of levels lost in noise.
    pub fn lost(&self, told: &Told) -> f64 {
        let (mut lost, mut all) = (0.0, 0.0);
        for &j in &self.levels {
            let own = told.curvature[(j, j)];
            all += own;
            if own < LOST * (own + told.noise.row(j).norm_squared()) {
                lost += own;
            }
        }
        lost / all.max(1e-300)
    }
}

impl Told<'_> {
    /// (C + N)⁻¹C, N the noise's covariance, and the precision of what is told and the prior,
    /// C(C + N)⁻¹C + D.
    fn believed(&self) -> Result<(DMatrix<f64>, DMatrix<f64>), Halt> {
        let seen = self.curvature + &self.noise * self.noise.transpose();
        let heeded = solve(&seen, self.curvature)?;
        let known = self.curvature * &heeded;
        let known = (&known + known.transpose()) * 0.5;
        Ok((heeded, known + self.prior))
    }

    /// The coefficients' covariance given such a gradient.
    fn variance(&self) -> Result<DMatrix<f64>, Halt> {
        let (_, precision) = self.believed()?;
        let d = precision.nrows();
        solve(&precision, &DMatrix::identity(d, d))
    }

    /// The step to the coefficients' mean given a gradient of likelihood and prior together, of
    /// which the prior's own is `prior_gradient`.
    ///
    /// # Errors
    /// [`Halt`] of a matrix that has no inverse.
    pub fn step(
        &self,
        gradient: &DVector<f64>,
        prior_gradient: &DVector<f64>,
    ) -> Result<DVector<f64>, Halt> {
        let (heeded, precision) = self.believed()?;
        let own = heeded.tr_mul(&(gradient - prior_gradient));
        solve_vector(&precision, &(own + prior_gradient))
    }

    /// A root of the covariance of what the gradient's noise does to that step.
    fn step_noise(&self) -> Result<DMatrix<f64>, Halt> {
        let (heeded, precision) = self.believed()?;
        solve(&precision, &heeded.tr_mul(&self.noise))
    }
}

fn block(matrix: &DMatrix<f64>, part: &[usize]) -> DMatrix<f64> {
    DMatrix::from_fn(part.len(), part.len(), |i, j| matrix[(part[i], part[j])])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::anchored::Level;

    /// A constant, a number, and levels of equal size.
    fn pooled(levels: usize) -> Pooled {
        Pooled {
            levels: (2..2 + levels).collect(),
            others: vec![0, 1],
        }
    }

    /// Curvature of n rows spread evenly over the levels, the number's mean square a third.
    fn curvature(levels: usize, n: f64) -> DMatrix<f64> {
        let each = n / levels as f64;
        DMatrix::from_fn(2 + levels, 2 + levels, |i, j| match (i.min(j), i.max(j)) {
            (0, 0) => n,
            (1, 1) => n / 3.0,
            (0, 1) => 0.0,
            (0, _) => each,
            (i, j) if i == j => each,
            _ => 0.0,
        })
    }

    fn prior(levels: usize) -> DMatrix<f64> {
        let one = |j: usize| if j < 2 { 0.01 } else { 4.0 };
        DMatrix::from_diagonal(&DVector::from_fn(2 + levels, |j, _| one(j)))
    }

    /// The noise that rows of the usual length need, for `budget` rows' worth of it.
    fn noise(c: &DMatrix<f64>, n: f64, budget: f64) -> impl Fn(&DMatrix<f64>) -> Result<f64, Halt> {
        move |matrix: &DMatrix<f64>| {
            let length = (solve(matrix, c)?.trace() / n).sqrt();
            Ok(length * budget)
        }
    }

    #[test]
    fn levels_are_those_of_a_shared_prior() {
        let level = |level| vec![Level { factor: 0, level }];
        let structure = Structure {
            levels: vec![vec![], vec![], level(0), level(1)],
            ..Structure::default()
        };
        let blocks = |law: BlockLaw| Blocks {
            blocks: vec![crate::priors::Block {
                members: vec![1, 2, 3],
                law,
            }],
        };
        let shared = blocks(BlockLaw::Shared {
            name: "tau".into(),
            scale: crate::priors::ScaleLaw::HalfNormal { scale: 1.0 },
        });
        let found = Pooled::new(Some(&shared), &structure, 4);
        let expected = Pooled {
            levels: vec![2, 3],
            others: vec![0, 1],
        };
        assert_eq!(found, Some(expected));
        let fixed = blocks(BlockLaw::Normal {
            mean: vec![0.0; 3],
            sd: vec![1.0; 3],
        });
        assert_eq!(Pooled::new(Some(&fixed), &structure, 4), None);
        assert_eq!(Pooled::new(None, &structure, 4), None);
        assert_eq!(
            Pooled::new(Some(&shared), &Structure::default(), 4),
            None,
            "numbers have no levels"
        );
    }

    /// Of sixty levels of twelve rows' worth, which the budget tells next to nothing of, the noise
    /// is left to the levels: that of the others falls to a quarter, and what is known of a level
    /// by a sixteenth. Little noise is divided evenly enough for both. (By hand, in another
    /// language.)
    #[test]
    fn noise_goes_where_nothing_is_told() {
        let (levels, n) = (60, 720.0);
        let (c, d) = (curvature(levels, n), prior(levels));
        let told = |matrix: &DMatrix<f64>, budget| {
            let told = Told {
                curvature: &c,
                prior: &d,
                noise: factor(matrix).unwrap() * noise(&c, n, budget)(matrix).unwrap(),
            };
            told.variance().unwrap()
        };
        let plain = &c + &d;
        let own = solve(&plain, &DMatrix::identity(62, 62)).unwrap();
        let pooled = pooled(levels);
        let widened = |budget| {
            let matrix = pooled.widened(plain.clone(), (&c, &d), noise(&c, n, budget));
            matrix.unwrap()
        };
        let ratio = |budget: f64, j: usize| {
            let (before, after) = (told(&plain, budget), told(&widened(budget), budget));
            let extra = |v: &DMatrix<f64>| v[(j, j)] - own[(j, j)];
            (extra(&after) / extra(&before)).sqrt()
        };
        let own_sd = told(&widened(12.0), 12.0)[(7, 7)] / told(&plain, 12.0)[(7, 7)];
        let found = [ratio(12.0, 1), own_sd.sqrt(), ratio(0.1, 1), ratio(0.1, 7)];
        for (found, expected) in found.into_iter().zip([0.251, 1.065, 0.581, 1.048]) {
            assert!((found - expected).abs() < 1e-3, "{found} {expected}");
        }
    }

    /// Of sixty levels two that have half of the rows are seen.
    #[test]
    fn levels_are_lost_where_noise_leaves_little() {
        let mut c = curvature(60, 720.0);
        (c[(2, 2)], c[(3, 3)]) = (348.0, 348.0);
        let one = DMatrix::identity(62, 62);
        let told = |sd: f64| Told {
            curvature: &c,
            prior: &one,
            noise: &one * sd,
        };
        // 12/(12 + 48) is the limit, and 348/(348 + 1392).
        let share = |sd: f64| pooled(60).lost(&told(sd));
        assert_eq!(share(6.9), 0.0);
        assert!((share(7.0) - 0.5).abs() < 1e-12, "{}", share(7.0));
        assert_eq!(share(60.0), 1.0);
    }

    /// Sixty levels of noise and two numbers, one of which is 6 sds of its noise away.
    #[test]
    fn levels_in_noise_do_not_hide_numbers() {
        use rand::{RngExt, SeedableRng};
        let (levels, n) = (60, 720.0);
        let (c, d) = (curvature(levels, n), prior(levels));
        let sd = noise(&c, n, 12.0)(&(&c + &d)).unwrap();
        let told = Told {
            curvature: &c,
            prior: &d,
            noise: factor(&(&c + &d)).unwrap() * sd,
        };
        let pooled = pooled(levels);
        let noise_of_one = told.step_noise().unwrap();
        let far = 6.0 * noise_of_one.row(1).norm();
        let mut truth = DVector::zeros(2 + levels);
        truth[1] = far;
        let zero = DVector::zeros(2 + levels);
        let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(3);
        let runs = 200;
        let mut sums = [0.0; 3];
        for _ in 0..runs {
            let z = DVector::from_fn(2 + levels, |_, _| -> f64 {
                rng.sample(rand_distr::StandardNormal)
            });
            for (sum, there) in sums.iter_mut().zip([&zero, &truth]) {
                let gradient = &c * there + &told.noise * &z;
                let step = told.step(&gradient, &zero).unwrap();
                *sum += pooled.kept(&told, &step).unwrap().others / f64::from(runs);
            }
            let gradient = &c * &truth + &told.noise * &z;
            let root = factor(&(&c + &d)).unwrap();
            let seen = forward(&root, &gradient).unwrap().norm_squared();
            let of_noise = sd * sd * (2 + levels) as f64;
            sums[2] += (1.0 - of_noise / seen).max(0.0) / f64::from(runs);
        }
        // A χ² of two degrees keeps less than a third on average, one that is moved by 36 more than
        // nine tenths, and all coefficients together less than that.
        let [none, some, all] = sums;
        assert!(none < 0.3 && some > 0.9 && all < 0.6, "{sums:?}");
    }
}
