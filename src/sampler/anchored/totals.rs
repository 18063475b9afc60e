//! What all rows say of the columns that levels add up to, where floors have lifted the levels one
//! by one: the lifts of sixty levels that are lost in noise are not told of the intercept too
//! (docs/proofs/anchors.md, "Priors whose scales are sampled").

use nalgebra::{DMatrix, DVector};

use super::algebra::{factor, forward_matrix, whiten};
use super::denoise::eigen;
use super::structure::Structure;
use crate::privacy::Halt;

/// No direction is lowered to less than this share of what the floors made it, nor to less than
/// so many sds of its noise.
const LEAST: f64 = 0.1;
const SDS: f64 = 2.0;

/// What was told of columns beside levels is followed where a direction has less than this share of
/// what it is believed to have.
const ALIKE: f64 = 0.3;

/// Levels' means differ by as much as their squares are larger than noise makes them, beyond so
/// many sds of that.
const DOUBT: f64 = 2.0;

/// The columns that levels add up to, the other columns, and what the levels' columns are products
/// of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Totals {
    /// Columns that are no parts of a sum: first those that others add up to.
    whole: Vec<usize>,
    /// Parts of a sum.
    parts: Vec<Part>,
    /// The constant, the levels of each factor that add up to it, and the columns beside them.
    constant: Option<usize>,
    factors: Vec<Vec<usize>>,
    beside: Vec<usize>,
}

/// A column, and the columns of the same level that the sums from the first on have, its own last.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    column: usize,
    of: Vec<usize>,
}

impl Totals {
    /// `None` where nothing adds up to a column, or where two factors have different sums so that
    /// one cannot be changed with the other.
    pub fn new(structure: &Structure, d: usize) -> Option<Self> {
        let sums = &structure.sums;
        // (The constant first: slopes have levels beside them more often than levels slopes.)
        let mut wholes: Vec<usize> = sums.iter().map(|s| s.whole).collect();
        wholes.sort_by_key(|w| (Some(*w) != structure.constant, *w));
        wholes.dedup();
        let is_part = |j: usize| sums.iter().any(|s| s.parts.contains(&j));
        if wholes.is_empty() || wholes.iter().any(|w| is_part(*w)) {
            return None;
        }
        let level = |j: usize| structure.levels.get(j).map_or(&[][..], Vec::as_slice);
        let mut parts = Vec::new();
        for sum in sums {
            let place = wholes.iter().position(|w| *w == sum.whole)?;
            for &column in &sum.parts {
                let beside = |whole: &usize| {
                    let own = sums.iter().filter(|s| s.whole == *whole);
                    let mut own = own.flat_map(|s| s.parts.iter().copied());
                    own.find(|j| level(*j) == level(column))
                };
                let of: Option<Vec<usize>> = wholes[..place].iter().map(beside).collect();
                let mut of = of?;
                of.push(column);
                parts.push(Part { column, of });
            }
        }
        let beside: Vec<usize> = (0..d)
            .filter(|j| !wholes.contains(j) && !is_part(*j))
            .collect();
        let whole = wholes.iter().chain(&beside).copied().collect();
        let constant = structure.constant.filter(|k| wholes.contains(k));
        let of = sums.iter().filter(|s| Some(s.whole) == constant);
        let factors = of.map(|s| s.parts.clone()).collect();
        Some(Totals {
            whole,
            parts,
            constant,
            factors,
            beside,
        })
    }

    /// A raised curvature in which the columns that are no parts have the products that were seen,
    /// and levels their share of them. What is true of all second moments stays so: it is that of
    /// other columns, T(x_F) and with each level's products T's own, T lower triangular. `seen` has
    /// noise of this factor's rows: entries v have the sd ‖factorᵀv‖².
    ///
    /// # Errors
    /// [`Halt`] of a matrix that has no inverse.
    pub fn kept(
        &self,
        raised: DMatrix<f64>,
        seen: &DMatrix<f64>,
        noise: Option<&DMatrix<f64>>,
    ) -> Result<DMatrix<f64>, Halt> {
        let own = |m: &DMatrix<f64>| m.select_rows(&self.whole).select_columns(&self.whole);
        let Ok(root) = factor(&own(&raised)) else {
            return Ok(raised);
        };
        let (values, vectors) = eigen(&whiten(&root, &own(seen))?);
        let (least, most) = match noise {
            Some(noise) => {
                let noise = forward_matrix(&root, &noise.select_rows(&self.whole))?;
                let noise = vectors.tr_mul(&noise);
                let least = |k| LEAST.max(SDS * noise.row(k).norm_squared()).min(1.0);
                (DVector::from_fn(values.len(), |k, _| least(k)), 1.0)
            }
            None => (DVector::from_element(values.len(), LEAST), 1.0 / LEAST),
        };
        let roots = DVector::from_fn(values.len(), |k, _| values[k].clamp(least[k], most).sqrt());
        let middle = vectors * DMatrix::from_diagonal(&roots);
        let to = factor(&(&root * &middle * middle.transpose() * root.transpose()))?;
        // T = to·root⁻¹.
        let by = root.transpose().solve_upper_triangular(&to.transpose());
        let by = by.ok_or_else(|| Halt::Failed("a curvature has no inverse".into()))?;
        let by = by.transpose();
        let d = raised.nrows();
        let mut all = DMatrix::identity(d, d);
        for (k, &i) in self.whole.iter().enumerate() {
            for (l, &j) in self.whole.iter().enumerate() {
                all[(i, j)] = by[(k, l)];
            }
        }
        for part in &self.parts {
            let place = part.of.len() - 1;
            for (l, &j) in part.of.iter().enumerate() {
                all[(part.column, j)] = by[(place, l)];
            }
        }
        Ok(&all * raised * all.transpose())
    }

    /// A curvature in which rows of a level have the means that the rows of the `first` had there,
    /// as far off the mean of all: what noise says of sixty such means is taken for what levels and
    /// numbers have in common, and a level's own noise for what a number does. And levels have no
    /// products with one another.
    pub fn with_means(&self, mut matrix: DMatrix<f64>, first: &DMatrix<f64>) -> DMatrix<f64> {
        let Some(k) = self.constant else {
            return matrix;
        };
        for levels in &self.factors {
            for (a, b) in levels
                .iter()
                .flat_map(|a| levels.iter().map(move |b| (*a, *b)))
            {
                if a != b {
                    matrix[(a, b)] = 0.0;
                }
            }
            for &g in levels {
                let own = matrix[(g, g)];
                (matrix[(g, k)], matrix[(k, g)]) = (own, own);
            }
            for &j in &self.beside {
                let mean = matrix[(k, j)] / matrix[(k, k)];
                let usual = first[(k, j)] / first[(k, k)];
                let each: Vec<f64> = (levels.iter())
                    .map(|&g| matrix[(g, g)] * (first[(g, j)] / first[(g, g)] - usual))
                    .collect();
                let weight: f64 = levels.iter().map(|&g| matrix[(g, g)]).sum();
                let off = each.iter().sum::<f64>() / weight;
                for (&g, own) in levels.iter().zip(each) {
                    let own = own + matrix[(g, g)] * (mean - off);
                    (matrix[(g, j)], matrix[(j, g)]) = (own, own);
                }
            }
        }
        matrix
    }

    /// A curvature in which the constant and the columns beside the levels of one factor have the
    /// products that were `told`, and levels their share of the constant's and the means that were
    /// told, drawn in where these would leave less than `least` of a direction within levels.
    /// `None` where other columns than the constant have levels that add up to them, there are
    /// several factors or nothing but levels, or both are about alike.
    ///
    /// # Errors
    /// [`Halt`] of a matrix that has no inverse.
    pub fn told(
        &self,
        matrix: &DMatrix<f64>,
        told: &DMatrix<f64>,
        least: f64,
    ) -> Result<Option<DMatrix<f64>>, Halt> {
        let (Some(k), [levels]) = (self.constant, &self.factors[..]) else {
            return Ok(None);
        };
        let there = |j: usize| told[(j, j)] > 0.0 && matrix[(j, j)] > 0.0;
        if self.beside.is_empty()
            || self.whole.len() != self.beside.len() + 1
            || !there(k)
            || !levels.iter().all(|g| there(*g))
        {
            return Ok(None);
        }
        let part = |m: &DMatrix<f64>| m.select_rows(&self.whole).select_columns(&self.whole);
        let Ok(root) = factor(&part(matrix)) else {
            return Ok(None);
        };
        if eigen(&whiten(&root, &part(told))?).0.min() > ALIKE {
            return Ok(None);
        }
        let mut matrix = matrix.clone();
        let own: f64 = levels.iter().map(|&g| matrix[(g, g)]).sum();
        for &g in levels {
            matrix[(g, g)] *= told[(k, k)] / own;
        }
        for &i in &self.whole {
            self.whole
                .iter()
                .for_each(|&j| matrix[(i, j)] = told[(i, j)]);
        }
        let mut matrix = self.with_means(matrix, told);
        // Moments about the mean, and what the levels' means are of them.
        let mean = DVector::from_fn(self.beside.len(), |a, _| matrix[(k, self.beside[a])])
            / matrix[(k, k)];
        let off =
            |m: &DMatrix<f64>, g: usize, a: usize| m[(g, self.beside[a])] - m[(g, g)] * mean[a];
        let m = self.beside.len();
        let whole = DMatrix::from_fn(m, m, |a, b| {
            let own = matrix[(self.beside[a], self.beside[b])];
            own - mean[a] * mean[b] * matrix[(k, k)]
        });
        let between = DMatrix::from_fn(m, m, |a, b| {
            let each = |&g: &usize| off(&matrix, g, a) * off(&matrix, g, b) / matrix[(g, g)];
            levels.iter().map(each).sum()
        });
        let Ok(root) = factor(&whole) else {
            return Ok(None);
        };
        let explained = eigen(&whiten(&root, &between)?).0.max().max(1e-12);
        let share = ((1.0 - least) / explained).clamp(0.0, 1.0).sqrt();
        for &g in levels {
            for (a, &j) in self.beside.iter().enumerate() {
                let own = matrix[(g, g)] * mean[a] + share * off(&matrix, g, a);
                (matrix[(g, j)], matrix[(j, g)]) = (own, own);
            }
        }
        Ok(Some(matrix))
    }

    /// The first curvature, in which what was seen of the levels' means is drawn to the mean of all
    /// rows, as much of it as noise explains (rows of `noise` as in [`Totals::kept`]).
    pub fn first_means(
        &self,
        first: DMatrix<f64>,
        seen: &DMatrix<f64>,
        noise: &DMatrix<f64>,
    ) -> DMatrix<f64> {
        let Some(k) = self.constant else {
            return first;
        };
        let mut alike = first.clone();
        for &g in self.factors.iter().flatten() {
            for &j in &self.beside {
                let own = first[(g, g)] * first[(k, j)] / first[(k, k)];
                (alike[(g, j)], alike[(j, g)]) = (own, own);
            }
        }
        self.heard_means(first, &alike, seen, noise)
    }

    /// A curvature in which what was seen of the levels' means is drawn to those of a `centre`, as
    /// much of it as noise explains.
    pub fn heard_means(
        &self,
        mut matrix: DMatrix<f64>,
        centre: &DMatrix<f64>,
        seen: &DMatrix<f64>,
        noise: &DMatrix<f64>,
    ) -> DMatrix<f64> {
        let Some(k) = self.constant else {
            return matrix;
        };
        let plain = matrix.clone();
        for levels in &self.factors {
            for &j in &self.beside {
                let mean = |g: usize| centre[(g, j)] / centre[(g, g)];
                let off = |g: usize| seen[(g, j)] - mean(g) * seen[(g, g)];
                let variance = |g: usize| {
                    let row = noise.row(j) - noise.row(k) * mean(g);
                    let own = noise.row(g);
                    0.5 * (row.norm_squared() * own.norm_squared() + row.dot(&own).powi(2))
                };
                let more: f64 = levels.iter().map(|&g| off(g).powi(2) - variance(g)).sum();
                let varies: f64 = levels.iter().map(|&g| 2.0 * variance(g).powi(2)).sum();
                let more = more - DOUBT * varies.sqrt();
                let size: f64 = levels.iter().map(|&g| plain[(g, g)].powi(2)).sum();
                let between = (more / size).max(0.0);
                for &g in levels {
                    let own = plain[(g, g)];
                    let real = between * own * own;
                    let share = real / (real + variance(g)).max(1e-300);
                    let cross = own * mean(g) + share * off(g);
                    (matrix[(g, j)], matrix[(j, g)]) = (cross, cross);
                }
            }
        }
        let means = matrix.clone();
        self.with_means(matrix, &means)
    }
}

/// A curvature with the first `features` columns scaled so that column k has at most this much.
pub(super) fn at_most(matrix: DMatrix<f64>, k: usize, most: f64, features: usize) -> DMatrix<f64> {
    let scale = (most / matrix[(k, k)].max(most)).sqrt();
    let by = |j: usize| if j < features { scale } else { 1.0 };
    DMatrix::from_fn(matrix.nrows(), matrix.ncols(), |i, j| {
        by(i) * matrix[(i, j)] * by(j)
    })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha20Rng;
    use rand_distr::StandardNormal;

    use super::super::structure::{Level, Sum};
    use super::*;

    /// A constant, two numbers, and from here on twelve levels and their products with the first.
    const LEVELS: usize = 12;
    const D: usize = 3 + 2 * LEVELS;

    fn structure() -> Structure {
        let level = |j: usize| Level {
            factor: 0,
            level: (j - 3) % LEVELS,
        };
        Structure {
            flags: Vec::new(),
            constant: Some(0),
            levels: (0..D)
                .map(|j| (j >= 3).then(|| level(j)).into_iter().collect())
                .collect(),
            sums: vec![
                Sum {
                    whole: 1,
                    parts: (3 + LEVELS..D).collect(),
                },
                Sum {
                    whole: 0,
                    parts: (3..3 + LEVELS).collect(),
                },
            ],
            ..Structure::default()
        }
    }

    /// Second moments of rows whose second number has these means in the levels.
    fn moments(means: impl Fn(usize) -> f64) -> DMatrix<f64> {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let mut sum = DMatrix::zeros(D, D);
        for i in 0..6000 {
            let level = i % LEVELS;
            let [a, b] = [0.5, 0.3].map(|sd| sd * rng.sample::<f64, _>(StandardNormal));
            let mut x = DVector::zeros(D);
            (x[0], x[1], x[2]) = (1.0, 0.2 + a, means(level) + b);
            (x[3 + level], x[3 + LEVELS + level]) = (1.0, x[1]);
            sum += &x * x.transpose() * rng.random_range(0.1..1.0);
        }
        sum
    }

    /// How far sums and zeros are off what they are in every table.
    fn untrue(matrix: &DMatrix<f64>) -> f64 {
        let mut off: f64 = 0.0;
        for sum in structure().sums {
            let parts: Vec<_> = sum.parts.iter().map(|j| matrix.row(*j)).collect();
            let left = parts
                .into_iter()
                .fold(matrix.row(sum.whole).into_owned(), |s, p| s - p);
            off = off.max(left.amax());
        }
        for (a, b) in (0..LEVELS).flat_map(|a| (0..LEVELS).map(move |b| (a, b))) {
            let products = [3, 3 + LEVELS].map(|k| matrix[(3 + a, k + b)].abs());
            off = off.max(if a == b {
                0.0
            } else {
                products[0].max(products[1])
            });
        }
        off / matrix.amax()
    }

    /// Levels three times as large as they are, and what follows of the constant: all that is no
    /// level's is again as it was, levels have their part of it, and what is true of all tables is.
    #[test]
    fn totals_are_not_lifted_with_the_levels() {
        let truth = moments(|_| -0.4);
        let totals = Totals::new(&structure(), D).unwrap();
        let by = DMatrix::from_fn(D, D, |i, j| match i == j && i >= 3 {
            true => 2.0 * truth[(i, i)],
            false => 0.0,
        });
        let mut lifted = &truth + by;
        for sum in structure().sums {
            let total = |m: &DMatrix<f64>| {
                let rows = sum.parts.iter().map(|j| m.row(*j).into_owned());
                rows.reduce(|s, r| s + r).unwrap()
            };
            let row = total(&lifted);
            lifted.row_mut(sum.whole).copy_from(&row);
            let column = row.transpose();
            lifted.column_mut(sum.whole).copy_from(&column);
            let own: f64 = sum.parts.iter().map(|j| column[*j]).sum();
            lifted[(sum.whole, sum.whole)] = own;
        }
        assert!(untrue(&lifted) < 1e-12 && lifted[(0, 0)] > 2.9 * truth[(0, 0)]);
        let kept = totals.kept(lifted, &truth, None).unwrap();
        assert!(untrue(&kept) < 1e-10, "{}", untrue(&kept));
        let own = |m: &DMatrix<f64>| m.view((0, 0), (3, 3)).into_owned();
        assert!((own(&kept) - own(&truth)).amax() < 1e-8 * truth.amax());
        assert!(eigen(&kept).0.min() > -1e-9 * truth.amax());
        for g in 3..3 + LEVELS {
            assert!((kept[(g, g)] / truth[(g, g)] - 1.0).abs() < 1e-9);
        }
        // What noise may have made is left where it was lifted.
        let noise = DMatrix::identity(D, D) * 1e3;
        let left = totals.kept(truth.clone(), &(&truth * 0.5), Some(&noise));
        assert!((left.unwrap() - &truth).amax() < 1e-9 * truth.amax());
    }

    /// A constant and two numbers beside twelve levels, without products.
    fn plain(means: impl Fn(usize) -> f64) -> (Totals, DMatrix<f64>) {
        let d = 3 + LEVELS;
        let mut structure = structure();
        structure.levels.truncate(d);
        structure.sums.remove(0);
        let moments = moments(means).view((0, 0), (d, d)).into_owned();
        (Totals::new(&structure, d).unwrap(), moments)
    }

    /// Where a number was told to have a tenth of what it is believed to have, it has that, and
    /// levels have their part and their means; where both are alike nothing is done.
    #[test]
    fn what_was_told_of_a_number_beside_levels_is_kept() {
        let (totals, truth) = plain(|level| -0.4 + 0.01 * level as f64);
        let mut raised = &truth * 1.2;
        raised[(2, 2)] *= 10.0;
        (raised[(4, 4)], raised[(5, 2)]) = (1.5 * truth[(4, 4)], 0.0);
        let told = totals.told(&raised, &truth, 0.1).unwrap().unwrap();
        let part = |m: &DMatrix<f64>| m.view((0, 0), (3, 3)).into_owned();
        assert!((part(&told) - part(&truth)).amax() < 1e-9 * truth.amax());
        let of_levels = told.row(0).columns(3, LEVELS).sum();
        assert!((of_levels / truth[(0, 0)] - 1.0).abs() < 1e-12);
        for g in 3..3 + LEVELS {
            let usual = |m: &DMatrix<f64>| m[(g, 2)] / m[(g, g)] - m[(0, 2)] / m[(0, 0)];
            assert!((usual(&told) - usual(&truth)).abs() < 2e-3, "{g}");
        }
        assert!(eigen(&told).0.min() > -1e-9 * truth.amax());
        assert_eq!(totals.told(&(&truth * 1.2), &truth, 0.1).unwrap(), None);
        // Levels alone, and numbers that have levels of their own.
        let mut alone = structure();
        alone.levels = std::iter::once(Vec::new())
            .chain(alone.levels.drain(3..3 + LEVELS))
            .collect();
        alone.sums = vec![Sum {
            whole: 0,
            parts: (1..=LEVELS).collect(),
        }];
        let of = |j: usize| if j == 0 { 0 } else { j + 2 };
        let few = DMatrix::from_fn(1 + LEVELS, 1 + LEVELS, |i, j| truth[(of(i), of(j))]);
        let alone = Totals::new(&alone, 1 + LEVELS).unwrap();
        assert_eq!(alone.told(&(&few * 9.0), &few, 0.1).unwrap(), None);
        let sums = Totals::new(&structure(), D).unwrap();
        let moments = moments(|_| 0.0);
        assert_eq!(sums.told(&(&moments * 9.0), &moments, 0.1).unwrap(), None);
    }

    /// A constant with four times what all rows weigh: features have a quarter, products with what
    /// rows share a half, and that itself stays.
    #[test]
    fn a_constant_has_no_more_than_all_rows_weigh() {
        let much = DMatrix::from_row_slice(3, 3, &[8.0, 4.0, 2.0, 4.0, 6.0, 1.0, 2.0, 1.0, 5.0]);
        let less = DMatrix::from_row_slice(3, 3, &[2.0, 1.0, 1.0, 1.0, 1.5, 0.5, 1.0, 0.5, 5.0]);
        assert_eq!(at_most(much.clone(), 0, 2.0, 2), less);
        assert_eq!(at_most(much.clone(), 0, 8.5, 2), much);
    }

    /// Means that would leave a hundredth of a number within levels leave the half that is asked
    /// for.
    #[test]
    fn means_that_were_told_leave_some_of_a_number_within_levels() {
        let (totals, truth) = plain(|level| if level % 2 == 0 { 3.0 } else { -3.0 });
        let within = |m: &DMatrix<f64>| {
            let levels = 3..3 + LEVELS;
            let explained: f64 = levels.map(|g| m[(g, 2)].powi(2) / m[(g, g)]).sum();
            (m[(2, 2)] - explained) / (m[(2, 2)] - m[(0, 2)].powi(2) / m[(0, 0)])
        };
        assert!(within(&truth) < 0.02, "{}", within(&truth));
        let told = totals.told(&(&truth * 9.0), &truth, 0.5).unwrap().unwrap();
        assert!((within(&told) - 0.5).abs() < 0.01, "{}", within(&told));
    }

    /// Means that noise alone sets apart are drawn together, and others are not.
    #[test]
    fn means_of_levels_are_as_far_apart_as_noise_does_not_explain() {
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        let totals = Totals::new(&structure(), D).unwrap();
        let sd = 60.0;
        let noise = DMatrix::identity(D, D) * f64::sqrt(sd);
        // Levels have a weight of 275: the noise in a mean has an sd of 0.15.
        for (apart, left) in [(0.0, 0.0..0.1), (1.5, 1.35..1.6)] {
            let truth = moments(|g| apart * if g % 2 == 0 { 1.0 } else { -1.0 });
            let mut squares = 0.0;
            let tries = 40;
            for _ in 0..tries {
                let mut draw = || sd * rng.sample::<f64, _>(StandardNormal);
                let all = DMatrix::from_fn(D, D, |_, _| draw());
                let seen = &truth + (&all + all.transpose()) * 0.5;
                let first = totals.first_means(truth.clone(), &seen, &noise);
                assert!((first[(0, 2)] - truth[(0, 2)]).abs() < 1e-9 * truth.amax());
                let means = (3..3 + LEVELS).map(|g| first[(g, 2)] / first[(g, g)]);
                let all = first[(0, 2)] / first[(0, 0)];
                let square: f64 = means.map(|m| (m - all).powi(2)).sum();
                squares += square / (LEVELS * tries) as f64;
                // Another curvature has them where rows of another weight are.
                let later = totals.with_means(&first * 0.1 + &truth * 0.2, &first);
                let sum: f64 = (3..3 + LEVELS).map(|g| later[(g, 2)]).sum();
                assert!((sum - later[(0, 2)]).abs() < 1e-9 * later.amax());
                for g in 3..3 + LEVELS {
                    let [own, usual] = [(g, g), (0, 0)].map(|(i, k)| {
                        later[(i, 2)] / later[(k, k)] - first[(i, 2)] / first[(k, k)]
                    });
                    assert!((own - usual).abs() < 0.02, "{own} {usual}");
                }
            }
            let between = squares.sqrt();
            assert!(left.contains(&between), "{apart}: {between}");
        }
    }

    /// Root mean square of how far means of the second number are off those of another matrix.
    fn gap(a: &DMatrix<f64>, b: &DMatrix<f64>) -> f64 {
        let gaps = (3..3 + LEVELS).map(|g| a[(g, 2)] / a[(g, g)] - b[(g, 2)] / b[(g, g)]);
        (gaps.map(|v| v * v).sum::<f64>() / LEVELS as f64).sqrt()
    }

    /// Means that are known stay where a release is mostly noise. Where it is not they are those that
    /// it shows.
    #[test]
    fn what_is_known_of_means_is_not_given_up_for_noise() {
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        let totals = Totals::new(&structure(), D).unwrap();
        let [alike, truth] = [0.0, 1.5].map(|apart| {
            let mean = move |g: usize| if g.is_multiple_of(2) { apart } else { -apart };
            moments(mean)
        });
        // Noise of 1 in a mean, and of 0.05.
        for (sd, centre, least, most) in [
            (400.0, &truth, 0.0, 0.12),
            (400.0, &alike, 0.6, 1.1),
            (20.0, &alike, 0.0, 0.06),
        ] {
            let noise = DMatrix::identity(D, D) * f64::sqrt(sd);
            let tries = 40;
            let mut off = 0.0;
            for _ in 0..tries {
                let mut draw = || sd * rng.sample::<f64, _>(StandardNormal);
                let all = DMatrix::from_fn(D, D, |_, _| draw());
                let mut seen = &truth + (&all + all.transpose()) * 0.5;
                // A level's own weight is seen twice, as in releases.
                for g in 3..3 + LEVELS {
                    let own = (seen[(g, g)] + 2.0 * seen[(g, 0)]) / 3.0;
                    (seen[(g, g)], seen[(g, 0)], seen[(0, g)]) = (own, own, own);
                }
                let heard = totals.heard_means(truth.clone(), centre, &seen, &noise);
                off += gap(&heard, &truth).powi(2) / f64::from(tries);
            }
            assert!((least..most).contains(&off.sqrt()), "{sd}: {}", off.sqrt());
        }
    }

    /// Of a product whose number adds up and whose level's own column is not there nothing is known,
    /// nor where nothing adds up.
    #[test]
    fn totals_need_levels_of_what_comes_before() {
        let mut other = structure();
        for level in &mut other.levels[3 + LEVELS..] {
            level[0].factor = 1;
        }
        assert!(Totals::new(&other, D).is_none());
        other.sums.clear();
        assert!(Totals::new(&other, D).is_none());
    }
}
