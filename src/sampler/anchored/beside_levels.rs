//! Curvature of the columns beside levels, asked for by itself (docs/proofs/anchors.md, "Columns
//! beside levels"). A number declared far wider than it usually is says nearly what the intercept
//! says, and what is left of it is lost in the noise of a curvature of all levels. Without them
//! rows are short and noise is little.

use nalgebra::{DMatrix, DVector};

use super::Anchoring;
use super::algebra::{factor, forward_matrix, lower, square};
use super::columns::ASIDE;
use super::denoise::{Noise, Target, compose, eigen, shrink};
use super::drawn::Drawn;
use super::path::{Purse, row_norm};
use super::structure::Structure;
use crate::model::Metric;
use crate::privacy::{AnchorNoise, Halt, Releases};

/// What a release costs: so much that its noise is this, in coordinates in which what was believed
/// is one, or these shares of the whole.
const NOISE: f64 = 0.2;
const SHARES: [f64; 2] = [0.001, 0.02];
/// Nothing is asked where its noise would be more than this.
const MOST_NOISE: f64 = 0.7;
/// Releases at most, each in the coordinates that those before it gave. (A floor by noise of a
/// third falls to a two-hundredth in five, and in one that costs as much as all to a seventh.) …
const ROUNDS: usize = 5;
/// … unless each direction is more than so many sds of its noise.
const SETTLED: f64 = 3.0;
/// … nor where the plain curvature of all these columns is less than so many sds of its noise.
const LOUD: f64 = 4.0;
/// Rows are clipped at this multiple of their usual norm.
const BOUND: f64 = 2.0;

/// The columns that are no levels, where there are levels too.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BesideLevels {
    columns: Vec<usize>,
}

/// What is known of the start, where they are asked about: Σ κw of the rows, and the scales of
/// shared parameters.
pub(super) struct Place<'a> {
    pub plan: &'a Anchoring,
    pub weight: f64,
    pub scales: &'a [f64],
}

/// What these columns' part of the curvature was found to be, in θ, and the variance of its entries
/// on the diagonal in coordinates in which it is about one.
pub(super) struct Part {
    pub curvature: DMatrix<f64>,
    pub variance: f64,
}

/// What is known of their part of the curvature, B diag(values) Bᵀ, and how well: in the
/// coordinates B entry i, j has noise of the sd √(sᵢsⱼ), s the `sds` (over √2 off the diagonal).
struct Estimate {
    basis: DMatrix<f64>,
    values: DVector<f64>,
    sds: DVector<f64>,
}

impl Estimate {
    /// Of a part of which no more is known than its coordinates.
    fn new(believed: &DMatrix<f64>) -> Result<Self, Halt> {
        let m = believed.nrows();
        Ok(Estimate {
            basis: factor(believed)?,
            values: DVector::from_element(m, 1.0),
            sds: DVector::from_element(m, f64::INFINITY),
        })
    }

    /// The part, no direction of which is less than its noise: values of less are one in B.
    fn part(&self) -> DMatrix<f64> {
        &self.basis * self.basis.transpose()
    }

    /// The same with another release of it, whose noise has this sd in its coordinates: entries are
    /// averaged by their precision, and the coordinates become those of the average's directions.
    fn with(self, seen: &DMatrix<f64>, sd: f64) -> Result<Self, Halt> {
        let m = self.values.len();
        let inverse = self.basis.clone().try_inverse();
        let inverse = inverse.ok_or_else(|| Halt::Failed("a curvature has no inverse".into()))?;
        let seen = &inverse * seen * inverse.transpose();
        let heard = DMatrix::from_fn(m, m, |i, j| {
            let before = if i == j { self.values[i] } else { 0.0 };
            // (The share is one where nothing was known.)
            let share = 1.0 / (1.0 + sd * sd / (self.sds[i] * self.sds[j]));
            before + share * (seen[(i, j)] - before)
        });
        let left = self.sds.map(|s| sd / (1.0 + (sd / s).powi(2)).sqrt());
        let (values, directions) = eigen(&heard);
        let sds = directions.component_mul(&directions).tr_mul(&left);
        let floored = values.zip_map(&sds, f64::max);
        Ok(Estimate {
            basis: self.basis * directions * DMatrix::from_diagonal(&floored.map(f64::sqrt)),
            values: values.component_div(&floored),
            sds: sds.component_div(&floored),
        })
    }

    fn is_settled(&self) -> bool {
        let mut each = self.values.iter().zip(self.sds.iter());
        each.all(|(value, sd)| *value > SETTLED * sd)
    }
}

impl BesideLevels {
    pub fn new(structure: &Structure, d: usize) -> Option<Self> {
        let is_level = |j: &usize| structure.levels.get(*j).is_some_and(|of| !of.is_empty());
        let columns: Vec<usize> = (0..d).filter(|j| !is_level(j)).collect();
        (!columns.is_empty() && columns.len() < d).then_some(BesideLevels { columns })
    }

    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Their part of a matrix of all columns.
    pub fn part(&self, matrix: &DMatrix<f64>) -> DMatrix<f64> {
        let m = self.columns.len();
        DMatrix::from_fn(m, m, |a, b| matrix[(self.columns[a], self.columns[b])])
    }

    /// A matrix of all columns with this part.
    pub fn with_part(&self, mut matrix: DMatrix<f64>, part: &DMatrix<f64>) -> DMatrix<f64> {
        for (a, i) in self.columns.iter().enumerate() {
            for (b, j) in self.columns.iter().enumerate() {
                matrix[(*i, *j)] = part[(a, b)];
            }
        }
        matrix
    }

    /// A curvature in which these columns are changed to others of this part: what they have with
    /// levels follows.
    ///
    /// # Errors
    /// [`Halt`] of matrices without an inverse.
    pub fn scaled_to(
        &self,
        matrix: DMatrix<f64>,
        part: &DMatrix<f64>,
    ) -> Result<DMatrix<f64>, Halt> {
        let (d, m) = (matrix.nrows(), part.nrows());
        let old = factor(&self.part(&matrix))?;
        let to = factor(part)? * forward_matrix(&old, &DMatrix::identity(m, m))?;
        let by = self.with_part(DMatrix::identity(d, d), &to);
        Ok(&by * matrix * by.transpose())
    }

    /// Their part of a curvature that was released in plain coordinates, whose diagonal is now
    /// known; `sds`: the noise of entry i, j has the sd sᵢsⱼ. No direction has less than its noise.
    /// `None` where all of it may be noise, as far from the mode, where rows have next to no
    /// weight.
    pub fn seen(
        &self,
        plain: &DMatrix<f64>,
        diagonal: &DVector<f64>,
        sds: &DVector<f64>,
    ) -> Option<DMatrix<f64>> {
        let trace: f64 = (self.columns.iter())
            .map(|&j| plain[(j, j)] / (sds[j] * sds[j]))
            .sum();
        if trace < LOUD * (self.columns.len() as f64).sqrt() {
            return None;
        }
        let units = DVector::from_fn(self.columns.len(), |a, _| diagonal[self.columns[a]].sqrt());
        let noise = |a: usize| sds[self.columns[a]] / units[a];
        let mut part = self.part(plain);
        for a in 0..units.len() {
            for b in 0..units.len() {
                let share = (part[(a, b)] / (units[a] * units[b])).clamp(-1.0, 1.0);
                part[(a, b)] = if a == b { 1.0 } else { share };
            }
        }
        let (values, directions) = eigen(&part);
        let raised = DVector::from_fn(values.len(), |k, _| {
            let own = directions.column(k);
            let noise: f64 = (0..own.len()).map(|a| (own[a] * noise(a)).powi(2)).sum();
            values[k].max(noise.min(1.0))
        });
        let units = DMatrix::from_diagonal(&units);
        Some(&units * compose(&directions, &raised) * &units)
    }

    /// Orthonormal directions of these columns in the coordinates of L = `l`: what is seen along
    /// them is the curvature of these columns alone.
    fn directions(&self, l: &DMatrix<f64>) -> DMatrix<f64> {
        let span = DMatrix::from_fn(l.ncols(), self.columns.len(), |i, k| {
            l[(self.columns[k], i)]
        });
        span.qr().q()
    }

    /// A guess of a curvature in the coordinates of L, whose part of these columns is drawn to its
    /// target by itself and is no less than its own noise is: what they have changed by is little
    /// beside the noise of sixty levels. With it, the variance of that part's entries on the
    /// diagonal.
    pub fn alone(
        &self,
        l: &DMatrix<f64>,
        guess: DMatrix<f64>,
        [observed, target]: [&DMatrix<f64>; 2],
        sd: f64,
        off: Target,
    ) -> (DMatrix<f64>, f64) {
        let q = self.directions(l);
        let own = |m: &DMatrix<f64>| q.tr_mul(m) * &q;
        let noise = Noise::whole(self.columns.len(), sd);
        let (part, kept) = match off {
            Target::Told(variance) => drawn_in(&own(observed), &own(target), &noise, variance),
            Target::Guessed => shrink(&own(observed), &own(target), &noise, off),
        };
        let part = Drawn::new(&part, kept, &noise).raised();
        let change = part - own(&guess);
        (guess + &q * change * q.transpose(), kept * sd * sd)
    }

    /// Their part of the likelihood's curvature, in θ, given what is believed of it; `None` where
    /// they are more than half of all, or too much noise would be in it.
    ///
    /// # Errors
    /// [`Halt`] of the curator, and where what was released cannot be used.
    pub fn ask(
        &self,
        place: &Place<'_>,
        believed: DMatrix<f64>,
        purse: &mut Purse,
        releases: &mut dyn Releases,
    ) -> Result<Option<Part>, Halt> {
        let (plan, m) = (place.plan, self.columns.len());
        let d = plan.start.len();
        if 2 * m > d {
            return Ok(None);
        }
        let usual = (m as f64 / place.weight).sqrt();
        let bound = BOUND * usual;
        let weight = plan.slopes.at(&plan.start).unit_weight();
        // Noise has the sd √2 κW b² τ on the diagonal.
        let tau = NOISE / (2f64.sqrt() * plan.unit * weight * bound * bound);
        let Some(share) = purse.share_of(tau) else {
            return Ok(None);
        };
        let [least, most] = SHARES;
        let least = least.max(purse.least_share());
        if share > most * (MOST_NOISE / NOISE).powi(2) || least > most {
            return Ok(None);
        }
        let share = share.clamp(least, most);
        let mut known = Estimate::new(&believed)?;
        for _ in 0..ROUNDS {
            let l = factor(&known.part())?;
            let metric = self.metric(place, &l, bound)?;
            let noise = AnchorNoise {
                curvature: Some(purse.pay(share)),
                largest_weight: plan.largest_weight(),
                ..AnchorNoise::default()
            };
            let seen = releases.anchor(&plan.start, &metric, noise)?;
            let part = self.part(&square(&seen.curvature, d));
            known = known.with(&(&l * part * l.transpose()), seen.curvature_sd)?;
            if known.is_settled() {
                break;
            }
        }
        Ok(Some(Part {
            curvature: known.part(),
            variance: known.sds.norm_squared() / m as f64,
        }))
    }

    /// Coordinates L of these columns, in which levels are next to nothing.
    fn metric(&self, place: &Place<'_>, l: &DMatrix<f64>, bound: f64) -> Result<Metric, Halt> {
        let longest = row_norm(place.plan.row_norm, place.scales);
        let aside = ASIDE * longest / bound;
        let d = place.plan.start.len();
        let whole = self.with_part(DMatrix::from_diagonal_element(d, d, aside), l);
        Ok(Metric {
            factor: lower(&whole)?,
            row_bound: bound,
        })
    }
}

/// A small matrix drawn to a target whose entries on the diagonal have this variance, or more where
/// the distance between the two shows more, and the share that is kept of that distance. (Of a few
/// entries one in six would show none by chance, and the target would be believed as if it were
/// exact.)
fn drawn_in(
    observed: &DMatrix<f64>,
    target: &DMatrix<f64>,
    noise: &Noise,
    variance: f64,
) -> (DMatrix<f64>, f64) {
    let gap = observed - target;
    let one = noise.sd * noise.sd;
    let varies = one * (2.0 / noise.freedom).sqrt();
    let own = variance.max(gap.norm_squared() / noise.freedom - one - varies);
    let kept = if own > 0.0 { own / (own + one) } else { 0.0 };
    (target + gap * kept, kept)
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ArrayView2};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha20Rng;
    use rand_distr::StandardNormal;

    use super::*;
    use crate::model::Slopes;
    use crate::privacy::{Acceptance, Estimator, Expansion, GradientNoise, Moves};
    use crate::sampler::anchored::algebra::whiten;
    use crate::sampler::anchored::structure::Level;

    const D: usize = 64;

    /// Sixty levels of one factor between two columns and two others.
    fn structure() -> Structure {
        let levels = (0..D).map(|level| match (2..62).contains(&level) {
            true => vec![Level { factor: 0, level }],
            false => Vec::new(),
        });
        Structure {
            levels: levels.collect(),
            ..Structure::default()
        }
    }

    fn noise(sd: f64, rng: &mut ChaCha20Rng) -> DMatrix<f64> {
        let noise = DMatrix::from_fn(D, D, |_, _| sd * rng.sample::<f64, _>(StandardNormal));
        (&noise + noise.transpose()) * 0.5
    }

    #[test]
    fn there_are_levels_and_others_or_nothing_is_asked() {
        let beside = |structure: &Structure, d| BesideLevels::new(structure, d);
        assert_eq!(beside(&structure(), D).unwrap().columns(), [0, 1, 62, 63]);
        assert_eq!(beside(&Structure::default(), D), None);
        let mut all = structure();
        all.levels = all.levels[2..62].to_vec();
        assert_eq!(beside(&all, 60), None);
    }

    /// The others' curvature is three times what was believed, four sds of the noise, beside sixty
    /// levels of which nothing has changed: with these it is nearly all taken for noise.
    #[test]
    fn levels_do_not_hide_what_the_others_curvature_has_become() {
        let (beside, sd) = (BesideLevels::new(&structure(), D).unwrap(), 0.5);
        let target: DMatrix<f64> = DMatrix::identity(D, D);
        let truth = beside.with_part(target.clone(), &(DMatrix::identity(4, 4) * 3.0));
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        // Coordinates in which the columns that come last have a part of all before them.
        let mut l: DMatrix<f64> = DMatrix::identity(D, D);
        (0..62).for_each(|j| l[(63, j)] = if j < 2 { 0.1 } else { 0.01 });
        let (mut together, mut alone, tries) = (0.0, 0.0, 50);
        for _ in 0..tries {
            let seen = whiten(&l, &truth).unwrap() + noise(sd, &mut rng);
            let off = Target::Told(0.01 * sd * sd);
            let believed = whiten(&l, &target).unwrap();
            let (guess, _) = shrink(&seen, &believed, &Noise::whole(D, sd), off);
            let mean = |guess: &DMatrix<f64>| beside.part(&(&l * guess * l.transpose())).trace();
            together += 0.25 * mean(&guess) / f64::from(tries);
            let (guess, _) = beside.alone(&l, guess, [&seen, &believed], sd, off);
            alone += 0.25 * mean(&guess) / f64::from(tries);
        }
        assert!(
            together < 1.6 && (2.6..3.2).contains(&alone),
            "{together} {alone}"
        );
    }

    /// A direction of a fiftieth beside three of one, seen five times with a noise of a third, is
    /// found, and the others are known by the five. Once at five times the price, a noise of 0.15,
    /// would leave it at that.
    #[test]
    fn a_small_direction_is_found_in_its_own_coordinates() {
        let truth = {
            let along = DVector::from_element(4, 0.5);
            DMatrix::identity(4, 4) - &along * along.transpose() * 0.98
        };
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        let (sd, tries) = (1.0 / 3.0, 200);
        let (mut small, mut others) = (0.0, 0.0);
        for _ in 0..tries {
            let mut known = Estimate::new(&DMatrix::identity(4, 4)).unwrap();
            for _ in 0..5 {
                let l = factor(&known.part()).unwrap();
                let noise = noise(sd, &mut rng).view((0, 0), (4, 4)).into_owned();
                let seen = &truth + &l * noise * l.transpose();
                known = known.with(&seen, sd).unwrap();
            }
            let found = known.part();
            small += 0.25 * found.sum() / f64::from(tries);
            others += (found.trace() - 0.25 * found.sum()) / 3.0 / f64::from(tries);
            assert!(known.sds.iter().all(|s| *s <= 1.0 + 1e-9));
        }
        assert!((0.02..0.06).contains(&small), "{small}");
        assert!((0.85..1.15).contains(&others), "{others}");
    }

    /// A target that is told to be as uncertain as what is seen has half of it, whatever chance
    /// says; one that is told to be exact, and is not, has what is seen.
    #[test]
    fn what_is_told_of_a_small_target_is_not_taken_back() {
        let (one, noise) = (DMatrix::identity(5, 5), Noise::whole(5, 0.5));
        let (same, kept) = drawn_in(&one, &one, &noise, 0.25);
        assert!(same == one && (kept - 0.5).abs() < 1e-12);
        let (far, kept) = drawn_in(&(&one * 9.0), &one, &noise, 0.0);
        assert!(kept > 0.98 && far[(0, 0)] > 8.8, "{kept}");
    }

    /// Of plain curvature a direction that is less than its noise is that; others are as seen.
    #[test]
    fn what_plain_curvature_shows_is_no_less_than_its_noise() {
        let beside = BesideLevels::new(&structure(), D).unwrap();
        let mut plain: DMatrix<f64> = DMatrix::identity(D, D) * 7.0;
        (plain[(0, 62)], plain[(62, 0)]) = (-19.0, -19.0);
        let diagonal = DVector::from_fn(D, |j, _| [10.0, 40.0][usize::from(j == 62)]);
        let sds = DVector::from_fn(D, |j, _| [1.0, 2.0][usize::from(j == 62)]);
        let seen = beside.seen(&plain, &diagonal, &sds).unwrap();
        // In units of the diagonal −0.95, whose eigenvalue 0.05 is less than the noise, 0.1.
        let kept = 0.5 * (1.95 - 0.1);
        assert!((seen[(0, 2)] + kept * 20.0).abs() < 1e-9, "{seen}");
        assert!((seen[(1, 1)] - 10.0).abs() < 1e-9 && seen[(1, 3)].abs() < 1e-9);
        let noise = &sds * 6.0;
        assert_eq!(beside.seen(&plain, &diagonal, &noise), None);
    }

    /// Releases of one curvature, at its price.
    struct Curvature {
        of: DMatrix<f64>,
        weight: f64,
        rng: ChaCha20Rng,
        rho: f64,
    }

    impl Releases for Curvature {
        fn decide(
            &mut self,
            _: &Moves<'_>,
            _: Estimator,
            _: Acceptance,
            _: &mut [bool],
        ) -> Result<(), Halt> {
            Err(Halt::Refused("curvature alone".into()))
        }

        fn anchor(
            &mut self,
            _: &[f64],
            metric: &Metric,
            asked: AnchorNoise,
        ) -> Result<Expansion, Halt> {
            let tau = asked.curvature.expect("curvature alone is asked for");
            self.rho += 0.5 / (tau * tau);
            let one = |j: usize| {
                (0..D)
                    .map(|i| f64::from(u8::from(i == j)))
                    .collect::<Vec<_>>()
            };
            let columns = (0..D).map(|j| DVector::from_vec(metric.factor.times(&one(j))));
            let factor = DMatrix::from_columns(&columns.collect::<Vec<_>>());
            let sd = 2f64.sqrt() * self.weight * metric.row_bound.powi(2) * tau;
            let seen = whiten(&factor, &self.of)? + noise(sd, &mut self.rng);
            Ok(Expansion {
                gradient: Vec::new(),
                curvature: seen.iter().copied().collect(),
                profile: Vec::new(),
                gradient_sd: 0.0,
                curvature_sd: sd,
                profile_sd: 0.0,
            })
        }

        fn gradients(
            &mut self,
            _: ArrayView2<'_, f64>,
            _: GradientNoise,
        ) -> Result<Array2<f64>, Halt> {
            Err(Halt::Refused("curvature alone".into()))
        }
    }

    /// A number that is nearly the intercept: what is left of it, a hundredth, is told by plain
    /// curvature with ten times as much noise, and by two more releases to about a third of itself,
    /// for a twentieth of the budget.
    #[test]
    fn a_number_that_is_nearly_the_intercept_is_told_from_it() {
        let beside = BesideLevels::new(&structure(), D).unwrap();
        let (rows, slopes) = (9_000, Slopes::logistic());
        let weight = 0.25 * rows as f64;
        let mut of: DMatrix<f64> = DMatrix::identity(D, D) * (0.02 * weight);
        for (i, j, share) in [
            (0, 0, 1.0),
            (0, 62, -0.99),
            (62, 62, 1.0),
            (1, 1, 0.3),
            (63, 63, 0.1),
        ] {
            (of[(i, j)], of[(j, i)]) = (share * weight, share * weight);
        }
        let plan = Anchoring {
            start: vec![0.0; D],
            stages: 6,
            location: None,
            rows,
            row_norm: 3.0,
            unit: 1.0,
            slopes,
            structure: structure(),
            clip: None,
            radius: 18.0,
            split: None,
            undecided: false,
        };
        let along = DVector::from_vec(vec![1.0, 0.0, 1.0, 0.0]);
        let mut ratios = Vec::new();
        for seed in 0..20 {
            let mut releases = Curvature {
                of: of.clone(),
                weight: slopes.largest_weight,
                rng: ChaCha20Rng::seed_from_u64(seed),
                rho: 0.0,
            };
            let mut purse = Purse::new(Some(0.05));
            let place = Place {
                plan: &plan,
                weight,
                scales: &[],
            };
            let sds = DVector::from_fn(D, |j, _| (0.1 * of[(j, j)]).sqrt());
            let by = &sds * sds.transpose();
            let plain = &of + noise(1.0, &mut releases.rng).component_mul(&by);
            let believed = beside.seen(&plain, &of.diagonal(), &sds).unwrap();
            let found = beside.ask(&place, believed, &mut purse, &mut releases);
            let found = found.unwrap().expect("noise is little").curvature;
            assert!(releases.rho <= 0.05 * 0.05, "{}", releases.rho);
            let own = |m: &DMatrix<f64>| (along.transpose() * m * &along)[(0, 0)];
            ratios.push(own(&found) / own(&beside.part(&of)));
        }
        ratios.sort_by(f64::total_cmp);
        let usual = 0.5 * (ratios[9] + ratios[10]);
        assert!((0.8..1.5).contains(&usual), "{ratios:?}");
        assert!(ratios[0] > 0.4 && ratios[19] < 3.0, "{ratios:?}");
    }
}
