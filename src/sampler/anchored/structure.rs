//! What declarations alone say of a table's columns, and so of every curvature: columns no two of
//! which hold anything in one row have no products, and levels that add up to a column do so in
//! all sums (docs/proofs/anchors.md, "What declarations say").

use std::collections::BTreeMap;
use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::StandardNormal;

use super::algebra::forward_matrix;
use super::denoise::{Noise, eigen};
use super::totals::Totals;
use crate::privacy::Halt;

/// Solutions by conjugate gradients: steps at most, and the share of the residual that is left.
const MOST_STEPS: usize = 100;
const LEFT: f64 = 1e-4;
/// Share of a column's curvature that is within levels at least: as much as its noise is, between
/// these.
const LEAST_WITHIN: f64 = 0.1;
const MOST_WITHIN: f64 = 0.9;
/// Draws of noise by which its spectrum's edge is found.
const DRAWS: usize = 2;

/// Public knowledge of a table's columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structure {
    /// Which columns are 0 or 1 in all rows; of those that it does not reach nothing is known.
    pub flags: Vec<bool>,
    /// A column that is 1 in all rows.
    pub constant: Option<usize>,
    /// A shared parameter that moves all rows' predictors by -1: the first cut of ordered classes,
    /// which have no constant.
    pub cut: Option<usize>,
    /// The levels that a column is the product of, perhaps with numbers; of columns that it does
    /// not reach nothing is known. Of two columns with different levels of one factor one is 0 in
    /// every row.
    pub levels: Vec<Vec<Level>>,
    /// Columns to which others add up in every row.
    pub sums: Vec<Sum>,
    /// The columns of features that a column is the product of, as if they all were levels.
    pub pieces: Vec<Vec<Level>>,
    /// Features, by their numbers, whose columns may have any values …
    pub numbers: Vec<usize>,
    /// … and those whose columns are at least 0 and add up to at most 1. The others' are levels.
    pub splines: Vec<usize>,
    /// Features whose columns add up to 1 in every row.
    pub complete: Vec<usize>,
    /// Columns that are functions of one number.
    pub curves: Vec<Curve>,
}

/// Columns that are functions of one number, and their values where that may lie.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The column that is 1 where these are not 0, the constant or a level.
    pub whole: usize,
    /// The columns.
    pub columns: Vec<usize>,
    /// Their values at points spread evenly over the number's range.
    pub values: Arc<Vec<Vec<f64>>>,
}

impl Curve {
    /// The column that is 1 where the others are not 0, and these.
    pub(super) fn with_whole(&self) -> Vec<usize> {
        [&[self.whole], &self.columns[..]].concat()
    }
}

/// What a column has that others leave over: `own` times a row is the part of column `whole` in
/// which a row has none of the levels that have columns.
pub(super) struct LeftOver {
    pub whole: usize,
    pub own: DVector<f64>,
    /// Whether it is of a spline, and not of levels alone.
    pub of_spline: bool,
}

/// One level of a factor, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level {
    /// The factor.
    pub factor: usize,
    /// The level.
    pub level: usize,
}

/// A column and those that add up to it in every row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The column.
    pub whole: usize,
    /// The others.
    pub parts: Vec<usize>,
}

impl Level {
    /// A product's parts in order.
    pub fn sorted(mut parts: Vec<Level>) -> Vec<Level> {
        parts.sort();
        parts
    }
}

impl Structure {
    /// The first column of each product, by its parts in order.
    pub fn places(pieces: &[Vec<Level>]) -> BTreeMap<Vec<Level>, usize> {
        let mut places = BTreeMap::new();
        for (j, parts) in pieces.iter().enumerate() {
            places.entry(Level::sorted(parts.clone())).or_insert(j);
        }
        places
    }

    /// A column of each level of each factor that is 1 where a row has it, or has it with something
    /// else: products with numbers are not, and of two columns of a level it is the first.
    fn factors(&self) -> Vec<Vec<usize>> {
        let mut factors: BTreeMap<usize, BTreeMap<usize, usize>> = BTreeMap::new();
        for (j, levels) in self.levels.iter().enumerate() {
            if let ([level], Some(true)) = (&levels[..], self.flags.get(j)) {
                let own = factors.entry(level.factor).or_default();
                own.entry(level.level).or_insert(j);
            }
        }
        let columns = |own: BTreeMap<usize, usize>| own.into_values().collect();
        factors.into_values().map(columns).collect()
    }

    /// Those of them with a level that has no column, beside a constant.
    pub(super) fn factors_with_reference(&self) -> Vec<Vec<usize>> {
        let of_constant = |sum: &&Sum| Some(sum.whole) == self.constant;
        let complete: Vec<&Sum> = self.sums.iter().filter(of_constant).collect();
        let mut factors = self.factors();
        factors.retain(|own| !complete.iter().any(|sum| sum.parts.contains(&own[0])));
        factors
    }

    /// Which of d columns are functions of a number that has others.
    pub(super) fn in_curves(&self, d: usize) -> Vec<bool> {
        let mut found = vec![false; d];
        let columns = self.curves.iter().flat_map(|curve| &curve.columns);
        columns.for_each(|j| found[*j] = true);
        found
    }

    /// What is left over of d columns, the constant among them, where features have a level without
    /// a column: of such levels, of their products with other columns and of those with one
    /// another.
    pub(super) fn left_over(&self, d: usize) -> Vec<LeftOver> {
        let Some(constant) = self.constant.or(self.cut) else {
            return Vec::new();
        };
        let mut places = Structure::places(&self.pieces);
        places.insert(Vec::new(), constant);
        let features = self.features_with_reference();
        let mut found = Vec::new();
        // Columns, as sums of columns, whose pieces are told, and the last feature whose levels
        // were taken off.
        let one = |(pieces, j): (&Vec<Level>, &usize)| (*j, vec![(pieces.clone(), 1.0)], None);
        let mut open: Vec<_> = places.iter().map(one).collect();
        while let Some((whole, terms, last)) = open.pop() {
            for (feature, levels) in &features {
                let is_part = terms[0].0.iter().any(|level| level.factor == *feature);
                if is_part || last >= Some(*feature) {
                    continue;
                }
                let products: Vec<(Vec<Level>, f64)> = (terms.iter())
                    .flat_map(|(pieces, by)| {
                        let times = |level| Level::sorted([&pieces[..], &[level]].concat());
                        levels.iter().map(move |level| (times(*level), -by))
                    })
                    .collect();
                if !products.iter().all(|(p, _)| places.contains_key(p)) {
                    continue;
                }
                let terms = [&terms[..], &products].concat();
                // (What a cut takes away is the negative of all others.)
                let sign = |p: &Vec<Level>| match Some(whole) == self.cut && !p.is_empty() {
                    true => -1.0,
                    false => 1.0,
                };
                let mut own = DVector::zeros(d);
                terms
                    .iter()
                    .for_each(|(p, by)| own[places[p]] += sign(p) * by);
                found.push(LeftOver {
                    whole,
                    own,
                    of_spline: terms.iter().any(|(p, _)| self.is_of_spline(p)),
                });
                open.push((whole, terms, Some(*feature)));
            }
        }
        found
    }

    /// The levels of each feature one of whose levels has no column, by its number.
    fn features_with_reference(&self) -> BTreeMap<usize, Vec<Level>> {
        let mut features: BTreeMap<usize, Vec<Level>> = BTreeMap::new();
        for pieces in &self.pieces {
            let has_none = |level: &Level| {
                !self.complete.contains(&level.factor) && !self.numbers.contains(&level.factor)
            };
            match pieces[..] {
                [level] if has_none(&level) => {
                    features.entry(level.factor).or_default().push(level);
                }
                _ => {}
            }
        }
        features
    }

    /// Whether a product has a part that is a spline's, and none that is any number.
    fn is_of_spline(&self, pieces: &[Level]) -> bool {
        let is_number = |level: &Level| self.numbers.contains(&level.factor);
        let is_spline = |level: &Level| self.splines.contains(&level.factor);
        pieces.iter().any(is_spline) && !pieces.iter().any(is_number)
    }

    /// Whether one of two columns is 0 in every row.
    pub(super) fn excludes(&self, i: usize, j: usize) -> bool {
        let of = |j: usize| self.levels.get(j).map_or(&[][..], Vec::as_slice);
        let differ = |a: &Level, b: &Level| a.factor == b.factor && a.level != b.level;
        (of(i).iter()).any(|a| of(j).iter().any(|b| differ(a, b)))
    }
}

/// The same of second moments of d columns, as what is free in them: they are B M Bᵀ, where M is
/// of columns that do not follow from others.
pub(super) struct Known {
    /// B, d × r: all columns from r of them.
    basis: DMatrix<f64>,
    /// Which entries of M are zero.
    zero: DMatrix<bool>,
    /// The columns that M is of.
    own: Vec<usize>,
    /// What levels add up to.
    totals: Option<Totals>,
    /// Largest eigenvalue of what is left of noise with a standard deviation of one on the
    /// diagonal.
    edge: f64,
}

impl Known {
    /// `None` where nothing is known; `factor`: coordinates in which columns are about as long as
    /// one another.
    ///
    /// # Errors
    /// [`Halt`] of a factor without an inverse.
    pub fn new(structure: &Structure, factor: &DMatrix<f64>) -> Result<Option<Self>, Halt> {
        let d = factor.nrows();
        let (basis, own) = reduced(&structure.sums, d);
        let excludes = |i, j| structure.excludes(i, j);
        let zero = DMatrix::from_fn(own.len(), own.len(), |i, j| excludes(own[i], own[j]));
        if own.len() == d && !zero.iter().any(|zero| *zero) {
            return Ok(None);
        }
        let mut known = Known {
            basis,
            zero,
            own,
            totals: Totals::new(structure, d),
            edge: 0.0,
        };
        known.edge = Whitened::new(&known, factor)?.edge();
        Ok(Some(known))
    }

    /// Moments of all columns by those of the ones that M is of, where what levels add up to is as
    /// it was: of that all rows tell.
    ///
    /// # Errors
    /// [`Halt`] of moments without an inverse.
    pub fn complete(&self, matrix: &DMatrix<f64>) -> Result<DMatrix<f64>, Halt> {
        let r = self.own.len();
        let m = DMatrix::from_fn(r, r, |i, j| matrix[(self.own[i], self.own[j])]);
        self.with_totals(&self.basis * m * self.basis.transpose(), matrix, None)
    }

    /// Moments with what levels add up to as it was `seen` ([`Totals::kept`]).
    ///
    /// # Errors
    /// [`Halt`] of moments without an inverse.
    pub fn with_totals(
        &self,
        moments: DMatrix<f64>,
        seen: &DMatrix<f64>,
        noise: Option<&DMatrix<f64>>,
    ) -> Result<DMatrix<f64>, Halt> {
        match &self.totals {
            Some(totals) => totals.kept(moments, seen, noise),
            None => Ok(moments),
        }
    }

    /// Moments with what was `told` of the columns beside levels, whose noise has this sd in
    /// coordinates in which they are about one ([`Totals::told`]).
    ///
    /// # Errors
    /// [`Halt`] of moments without an inverse.
    pub fn with_told(
        &self,
        moments: &DMatrix<f64>,
        told: &DMatrix<f64>,
        sd: f64,
    ) -> Result<Option<DMatrix<f64>>, Halt> {
        match &self.totals {
            Some(totals) => totals.told(moments, told, sd.clamp(LEAST_WITHIN, MOST_WITHIN)),
            None => Ok(None),
        }
    }

    /// Moments with the levels' means of the start's ([`Totals::with_means`]).
    pub fn with_means(&self, moments: &DMatrix<f64>, first: &DMatrix<f64>) -> DMatrix<f64> {
        match &self.totals {
            Some(totals) => totals.with_means(moments.clone(), first),
            None => moments.clone(),
        }
    }

    /// Moments with the levels' means of a centre's, and of others what noise does not explain
    /// ([`Totals::heard_means`]).
    pub fn heard_means(
        &self,
        moments: DMatrix<f64>,
        centre: &DMatrix<f64>,
        seen: &DMatrix<f64>,
        noise: &DMatrix<f64>,
    ) -> DMatrix<f64> {
        match &self.totals {
            Some(totals) => totals.heard_means(moments, centre, seen, noise),
            None => moments,
        }
    }

    /// The start's moments: totals as they were seen, and of the levels' means what noise does not
    /// explain.
    ///
    /// # Errors
    /// [`Halt`] of moments without an inverse.
    pub fn started(
        &self,
        moments: DMatrix<f64>,
        seen: &DMatrix<f64>,
        noise: &DMatrix<f64>,
    ) -> Result<DMatrix<f64>, Halt> {
        let Some(totals) = &self.totals else {
            return Ok(moments);
        };
        let whole = totals.kept(self.complete(&moments)?, seen, Some(noise))?;
        Ok(totals.first_means(whole, seen, noise))
    }
}

/// All of d columns from those that do not follow from others, and which these are.
fn reduced(sums: &[Sum], d: usize) -> (DMatrix<f64>, Vec<usize>) {
    let mut all: DMatrix<f64> = DMatrix::identity(d, d);
    let mut own: Vec<usize> = (0..d).collect();
    for sum in sums {
        // What is zero: the whole less its parts, by the columns that are left.
        let mut zero = all.row(sum.whole).into_owned();
        sum.parts.iter().for_each(|&j| zero -= all.row(j));
        // The whole goes rather than a part: parts exclude one another. (Sums may follow from
        // one another, and nothing is left of them then.)
        let there = |j: &usize| zero[*j].abs() > 0.5;
        let pivot = [sum.whole].into_iter().chain(sum.parts.iter().copied());
        let Some(pivot) = pivot.chain(0..d).find(there) else {
            continue;
        };
        let by = all.column(pivot) / zero[pivot];
        all -= by * zero;
        own.retain(|j| *j != pivot);
    }
    (all.select_columns(&own), own)
}

/// The same in the coordinates of one release, whose factor is L.
pub(super) struct Whitened<'a> {
    pub known: &'a Known,
    /// G = L⁻¹BTD, and its columns' products. D makes these as long as one; T changes columns so
    /// that those without a zero in M are orthogonal to all others, in which M keeps its zeros.
    scaled: DMatrix<f64>,
    square: DMatrix<f64>,
    /// An orthonormal basis of its columns' span.
    span: DMatrix<f64>,
}

/// Columns of which those without a zero are orthonormal, and the others orthogonal to them. A
/// number that is nearly the same in all rows is nearly the sum of all levels: where columns hold
/// what the two differ by, all are much alike, and [`Whitened::project`] would not arrive.
fn orthogonal(mut columns: DMatrix<f64>, zero: &DMatrix<bool>) -> DMatrix<f64> {
    let has_none = |j: &usize| !zero.column(*j).iter().any(|zero| *zero);
    let (free, others): (Vec<usize>, Vec<usize>) = (0..zero.ncols()).partition(has_none);
    if free.is_empty() {
        return columns;
    }
    let q = columns.select_columns(&free).qr().q();
    let mut rest = columns.select_columns(&others);
    // (Twice, for what rounding leaves.)
    for _ in 0..2 {
        rest -= &q * q.tr_mul(&rest);
    }
    for (k, j) in free.into_iter().enumerate() {
        columns.set_column(j, &q.column(k));
    }
    for (k, j) in others.into_iter().enumerate() {
        columns.set_column(j, &rest.column(k));
    }
    columns
}

impl<'a> Whitened<'a> {
    /// # Errors
    /// [`Halt`] of a factor without an inverse.
    pub fn new(known: &'a Known, factor: &DMatrix<f64>) -> Result<Self, Halt> {
        let mut scaled = orthogonal(forward_matrix(factor, &known.basis)?, &known.zero);
        for mut column in scaled.column_iter_mut() {
            column /= column.norm();
        }
        Ok(Whitened {
            known,
            square: scaled.tr_mul(&scaled),
            span: scaled.clone().qr().q(),
            scaled,
        })
    }

    /// What is left of noise of this standard deviation in a matrix that was projected.
    pub fn noise(&self, sd: f64) -> Noise {
        let r = self.square.nrows();
        let entries = (0..r).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let free = entries.filter(|at| !self.known.zero[*at]).count();
        Noise {
            sd,
            freedom: free as f64,
            edge: sd * self.known.edge,
        }
    }

    /// The nearest matrix whose columns and rows are in the span of all rows.
    pub fn spanned(&self, matrix: &DMatrix<f64>) -> DMatrix<f64> {
        let inner = self.span.tr_mul(matrix) * &self.span;
        &self.span * inner * self.span.transpose()
    }

    /// The nearest matrix of which all is true that is known, GMGᵀ with G the scaled basis: least
    /// squares by conjugate gradients.
    pub fn project(&self, matrix: &DMatrix<f64>) -> DMatrix<f64> {
        let masked = |mut m: DMatrix<f64>| {
            m.zip_apply(&self.known.zero, |v, zero| {
                if zero {
                    *v = 0.0;
                }
            });
            m
        };
        let mut residual = masked(self.scaled.tr_mul(matrix) * &self.scaled);
        let mut direction = residual.clone();
        let mut m = DMatrix::zeros(residual.nrows(), residual.nrows());
        let mut size = residual.norm_squared();
        let left = LEFT * LEFT * size;
        for _ in 0..MOST_STEPS {
            if size <= left {
                break;
            }
            let image = masked(&self.square * &direction * &self.square);
            let by = size / direction.dot(&image);
            m += &direction * by;
            residual -= &image * by;
            let next = residual.norm_squared();
            direction = &residual + &direction * (next / size);
            size = next;
        }
        &self.scaled * m * self.scaled.transpose()
    }

    /// The largest eigenvalue of projected noise with a standard deviation of one on the diagonal.
    fn edge(&self) -> f64 {
        let d = self.scaled.nrows();
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let each = (0..DRAWS).map(|_| {
            let noise = symmetric_noise(d, &mut rng);
            eigen(&self.project(&noise)).0.amax()
        });
        each.sum::<f64>() / DRAWS as f64
    }
}

/// Symmetric noise with a standard deviation of one on the diagonal.
fn symmetric_noise(d: usize, rng: &mut ChaCha20Rng) -> DMatrix<f64> {
    let mut draw = || -> f64 { rng.sample(StandardNormal) };
    let all = DMatrix::from_fn(d, d, |_, _| draw());
    (&all + all.transpose()) * 0.5
}

#[cfg(test)]
mod tests {
    use nalgebra::DVector;

    use super::*;

    const D: usize = 14;

    /// A constant, a number, a complete factor of eight levels and one of five with a reference.
    fn structure() -> Structure {
        let levels = (0..D).map(|j| match j {
            0 | 1 => vec![],
            2..10 => vec![Level {
                factor: 0,
                level: j,
            }],
            _ => vec![Level {
                factor: 1,
                level: j,
            }],
        });
        Structure {
            flags: Vec::new(),
            constant: Some(0),
            levels: levels.collect(),
            sums: vec![Sum {
                whole: 0,
                parts: (2..10).collect(),
            }],
            ..Structure::default()
        }
    }

    /// Second moments of such rows, with weights.
    fn moments(rng: &mut ChaCha20Rng) -> DMatrix<f64> {
        let mut sum = DMatrix::zeros(D, D);
        for _ in 0..500 {
            let mut x = DVector::zeros(D);
            x[0] = 1.0;
            x[1] = rng.random_range(-1.0..1.0);
            x[2 + rng.random_range(0..8)] = 1.0;
            let level = rng.random_range(0..5);
            if level > 0 {
                x[9 + level] = 1.0;
            }
            sum += &x * x.transpose() * rng.random_range(0.1..1.0);
        }
        sum / 500.0
    }

    /// Of two factors one adds up to the constant. Its levels, products of the other's with a
    /// number and with a flag, and what is not declared to be 0 or 1 are left out.
    #[test]
    fn levels_of_factors_are_told_from_their_products() {
        let mut structure = structure();
        assert!(structure.factors_with_reference().is_empty());
        structure.flags = (0..D).map(|j| j != 1).collect();
        for (level, is_flag) in [(10, false), (11, true)] {
            structure.levels.push(vec![Level { factor: 1, level }]);
            structure.flags.push(is_flag);
        }
        assert_eq!(structure.factors_with_reference(), [[10, 11, 12, 13]]);
    }

    /// A constant, a spline of two columns, a flag, a number and all products of two. What is left
    /// over of a column is that column in rows without the flag, or times what the spline's columns
    /// leave over of 1, or both.
    #[test]
    fn columns_leave_over_what_levels_have_none_of() {
        let piece = |factor, level| Level { factor, level };
        let (spline, flag, number) = ([piece(1, 0), piece(1, 1)], piece(2, 0), piece(3, 0));
        let pieces = vec![
            vec![],
            vec![spline[0]],
            vec![spline[1]],
            vec![flag],
            vec![number],
            vec![spline[0], flag],
            vec![flag, spline[1]],
            vec![spline[0], number],
            vec![spline[1], number],
            vec![flag, number],
        ];
        let structure = Structure {
            constant: Some(0),
            levels: vec![vec![]; pieces.len()],
            pieces,
            numbers: vec![3],
            splines: vec![1],
            ..Structure::default()
        };
        let found = structure.left_over(10);
        let row = |s: [f64; 2], f: f64, x: f64| {
            let [a, b] = s;
            DVector::from_vec(vec![1.0, a, b, f, x, a * f, b * f, a * x, b * x, f * x])
        };
        let has = |whole: usize, of_spline: bool, value: &dyn Fn(f64, f64, f64) -> f64| {
            let rows = [
                ([0.2, 0.5], 0.0, 0.7),
                ([0.1, 0.0], 1.0, -2.0),
                ([0.6, 0.3], 0.0, 1.5),
            ];
            found.iter().any(|left| {
                let is_so = rows.iter().all(|(s, f, x)| {
                    let off = left.own.dot(&row(*s, *f, *x)) - value(1.0 - s[0] - s[1], *f, *x);
                    off.abs() < 1e-12
                });
                left.whole == whole && left.of_spline == of_spline && is_so
            })
        };
        assert!(has(0, true, &|rest, _, _| rest));
        assert!(has(0, false, &|_, f, _| 1.0 - f));
        assert!(has(0, true, &|rest, f, _| rest * (1.0 - f)));
        assert!(has(3, true, &|rest, f, _| rest * f));
        assert!(has(4, false, &|rest, _, x| rest * x));
        assert!(has(4, false, &|_, f, x| x * (1.0 - f)));
        // (Each spline column without the flag; there are no products of three.)
        assert_eq!(found.len(), 8);
    }

    /// Of ordered classes, which have no constant, the same is left over of their first cut, which
    /// is minus that; of levels that all have columns nothing is.
    #[test]
    fn a_cut_stands_for_a_constant() {
        let piece = |factor, level| Level { factor, level };
        let pieces = [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)].map(|(f, l)| vec![piece(f, l)]);
        let structure = Structure {
            cut: Some(5),
            pieces: pieces.to_vec(),
            splines: vec![0],
            complete: vec![2],
            ..Structure::default()
        };
        let found = structure.left_over(7);
        assert_eq!(found.len(), 2);
        // Two columns of a spline, a flag, two levels, two cuts.
        let own = |of_spline: bool| {
            let left = found.iter().find(|left| left.of_spline == of_spline);
            left.map(|left| (left.whole, left.own.as_slice()))
        };
        let spline = [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        assert_eq!(own(true), Some((5, &spline[..])));
        assert_eq!(
            own(false),
            Some((5, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0][..]))
        );
    }

    /// What is true stays, in coordinates that mix all columns and are all but singular along what
    /// adds up; what is not is taken away, and of noise so much is left as is said.
    #[test]
    fn projections_keep_what_is_true_and_its_share_of_the_noise() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let truth = moments(&mut rng);
        let prior = DMatrix::from_diagonal_element(D, D, 1e-4);
        let factor = super::super::algebra::factor(&(moments(&mut rng) + prior)).unwrap();
        let known = Known::new(&structure(), &factor).unwrap().unwrap();
        let whitened = Whitened::new(&known, &factor).unwrap();
        let there = super::super::algebra::whiten(&factor, &truth).unwrap();
        for kept in [whitened.project(&there), whitened.spanned(&there)] {
            let off = (kept - &there).norm();
            assert!(off < 1e-3 * there.norm(), "{off}");
        }
        let completed = known.complete(&truth).unwrap();
        assert!((completed - &truth).amax() < 1e-12);

        let noise = whitened.noise(1.0);
        // Of 13 columns, without the factors' own pairs, 28 and 6.
        assert_eq!(noise.freedom, (91 - 28 - 6) as f64);
        let (mut squares, mut edge, draws) = (0.0, 0.0, 300);
        for _ in 0..draws {
            let left = whitened.project(&symmetric_noise(D, &mut rng));
            squares += left.norm_squared() / f64::from(draws);
            edge += eigen(&left).0.amax() / f64::from(draws);
            let back = &factor * &left * factor.transpose();
            let size = back.amax();
            let mut none = back.column(0).into_owned();
            (2..10).for_each(|j| none -= back.column(j));
            assert!(none.amax() < 1e-9 * size);
            for (i, j) in (0..D).flat_map(|i| (0..D).map(move |j| (i, j))) {
                let excluded = structure().excludes(i, j);
                assert!(!excluded || back[(i, j)].abs() < 1e-3 * size, "{i} {j}");
            }
        }
        assert!((squares / noise.freedom - 1.0).abs() < 0.05, "{squares}");
        assert!((noise.edge / edge - 1.0).abs() < 0.25, "{edge}");
        assert!(noise.edge < 0.9 * Noise::whole(D, 1.0).edge);
    }

    /// A number that is 0.84 in all rows, give or take 0.02, beside forty levels of unequal size:
    /// what is true stays.
    #[test]
    fn projections_arrive_beside_a_number_that_hardly_varies() {
        let d = 42;
        let mut structure = structure();
        structure.levels = vec![vec![]; 2];
        (2..d).for_each(|level| structure.levels.push(vec![Level { factor: 0, level }]));
        structure.sums[0].parts = (2..d).collect();
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let mut truth = DMatrix::zeros(d, d);
        for _ in 0..20_000 {
            let mut x = DVector::zeros(d);
            x[0] = 1.0;
            x[1] = 0.84 + 0.02 * rng.random_range(-1.0..1.0);
            let level = 40.0 * rng.random_range(0.0..1.0f64).powi(2);
            x[2 + level as usize] = 1.0;
            truth.ger(0.14, &x, &x, 1.0);
        }
        let prior = DMatrix::from_diagonal_element(d, d, 0.04);
        let factor = super::super::algebra::factor(&(&truth + prior)).unwrap();
        let known = Known::new(&structure, &factor).unwrap().unwrap();
        let whitened = Whitened::new(&known, &factor).unwrap();
        let there = super::super::algebra::whiten(&factor, &truth).unwrap();
        let back = &factor * whitened.project(&there) * factor.transpose();
        let off = (back - &truth).amax() / truth.amax();
        assert!(off < 0.01, "{off}");
    }

    /// Two complete factors: one takes the constant's place, and one level of the other follows.
    #[test]
    fn columns_follow_from_those_that_are_left() {
        let sums = [(0, 1..4), (0, 4..6)].map(|(whole, parts)| Sum {
            whole,
            parts: parts.collect(),
        });
        let twice = [sums[0].clone(), sums[1].clone(), sums[0].clone()];
        let (basis, own) = reduced(&twice, 6);
        assert_eq!(own, [1, 2, 3, 5]);
        for (a, b) in (1..4).flat_map(|a| (4..6).map(move |b| (a, b))) {
            let row = DVector::from_fn(6, |j, _| f64::from(u8::from(j == 0 || j == a || j == b)));
            let left = DVector::from_fn(4, |k, _| row[own[k]]);
            assert_eq!(&basis * left, row);
        }
    }

    #[test]
    fn of_columns_that_are_not_declared_nothing_is_known() {
        let one = DMatrix::identity(3, 3);
        assert!(Known::new(&Structure::default(), &one).unwrap().is_none());
        let structure = structure();
        assert!(structure.excludes(2, 9) && !structure.excludes(2, 10));
        assert!(!structure.excludes(0, 2) && !structure.excludes(2, 40));
    }
}
