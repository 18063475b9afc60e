//! A column of numbers as features: cut off at declared bounds, transformed, mapped, and spread
//! over several columns where a curve is asked for.

use serde::{Deserialize, Serialize};

use crate::math::Spline;

/// Largest size of a value in its own units: rows are sums of squares in f32.
const LARGEST: f64 = 1e18;
/// Highest degree of a polynomial, and most knots of a spline.
const MOST_DEGREES: u32 = 10;
const MOST_KNOTS: usize = 50;
/// Least distance of two knots as a share of the range.
const KNOTS_APART: f64 = 1e-6;

/// What declarations say of a column's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Column {
    /// Largest size.
    pub bound: f64,
    /// Values are whole multiples of one over this whole number where the cells are whole; the
    /// grid holds these multiples if it can.
    pub parts: f64,
    /// Values are 0 or 1.
    pub flag: bool,
}

impl Column {
    /// Values within [−1, 1]; −1, 0 and 1 are held.
    pub const UNIT: Column = Column {
        bound: 1.0,
        parts: 1.0,
        flag: false,
    };
    /// 0 or 1.
    pub const FLAG: Column = Column {
        flag: true,
        ..Column::UNIT
    };

    /// The column of the products.
    pub fn times(self, other: Column) -> Column {
        Column {
            bound: self.bound * other.bound,
            parts: self.parts * other.parts,
            flag: self.flag && other.flag,
        }
    }
}

/// What is taken of a number before it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transform {
    /// ln x, for bounds above 0.
    Log,
    /// ln(1 + x), for bounds above −1.
    Log1p,
    /// √x, for bounds from 0 on.
    Sqrt,
    /// asinh x = ln(x + √(x² + 1)): a logarithm on both sides of 0.
    Asinh,
}

impl Transform {
    /// Its name in a run file and in the names of features.
    pub fn name(self) -> &'static str {
        match self {
            Transform::Log => "log",
            Transform::Log1p => "log1p",
            Transform::Sqrt => "sqrt",
            Transform::Asinh => "asinh",
        }
    }

    fn of(self, x: f64) -> f64 {
        match self {
            Transform::Log => x.ln(),
            Transform::Log1p => x.ln_1p(),
            Transform::Sqrt => x.sqrt(),
            Transform::Asinh => x.asinh(),
        }
    }

    /// The number of which this is `z`.
    fn inverse(self, z: f64) -> f64 {
        match self {
            Transform::Log => z.exp(),
            Transform::Log1p => z.exp_m1(),
            Transform::Sqrt => z * z,
            Transform::Asinh => z.sinh(),
        }
    }

    /// What a lower bound must be, where this one is not.
    fn needs(self, low: f64) -> Option<&'static str> {
        match self {
            Transform::Log if low <= 0.0 => Some("a lower bound above 0; log1p takes 0"),
            Transform::Log1p if low <= -1.0 => Some("a lower bound above -1"),
            Transform::Sqrt if low < 0.0 => Some("a lower bound of 0 or more"),
            _ => None,
        }
    }
}

/// What the number becomes after its transform.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// Itself.
    Kept,
    /// Mapped linearly from the bounds onto `[−1, 1]`.
    Scaled,
    /// (x − mean)/sd, in the units of the transform.
    Standardized {
        /// Public mean.
        mean: f64,
        /// Public standard deviation.
        sd: f64,
    },
    /// Legendre polynomials of degrees 1 to this of the scaled number: each within `[−1, 1]`.
    Polynomial(u32),
    /// The natural cubic spline with these knots, in raw units, inside the bounds; one more
    /// column than knots, each within `[0, 1]`, the sum of their squares at most 1.
    Spline(Vec<f64>),
}

/// How a column of numbers becomes features.
#[derive(Clone, Debug)]
pub struct Number {
    bounds: [f64; 2],
    transform: Option<Transform>,
    form: Form,
    /// The bounds, transformed.
    ends: [f64; 2],
    spline: Option<Spline>,
}

impl Number {
    /// Numbers cut off at `[low, high]`, both in the column's own units.
    pub fn new(low: f64, high: f64, transform: Option<Transform>, form: Form) -> Self {
        let mut number = Number {
            bounds: [low, high],
            transform,
            form,
            ends: [low, high].map(|x| transformed(transform, x)),
            spline: None,
        };
        if let Form::Spline(knots) = &number.form {
            let knots: Vec<f64> = knots.iter().map(|&k| number.scaled(k)).collect();
            number.spline = Some(Spline::new(&knots));
        }
        number
    }

    /// Declared bounds, in the column's own units.
    pub fn bounds(&self) -> [f64; 2] {
        self.bounds
    }

    /// What is taken of the number first.
    pub fn transform(&self) -> Option<Transform> {
        self.transform
    }

    /// What it becomes.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// What the transformed column is called.
    pub(crate) fn name(&self, column: &str) -> String {
        match self.transform {
            Some(transform) => format!("{}({column})", transform.name()),
            None => column.into(),
        }
    }

    /// Names of the features of `column`.
    pub(crate) fn names(&self, column: &str) -> Vec<String> {
        let name = self.name(column);
        match &self.form {
            Form::Polynomial(degree) => {
                let higher = (2..=*degree).map(|k| format!("{name}^{k}"));
                std::iter::once(name.clone()).chain(higher).collect()
            }
            Form::Spline(knots) => (1..=knots.len() + 1)
                .map(|k| format!("{name}~s{k}"))
                .collect(),
            _ => vec![name],
        }
    }

    /// Largest sum of the features' squares over the bounds, of values as they are stored.
    pub(crate) fn max_square(&self) -> f64 {
        match &self.form {
            Form::Scaled | Form::Spline(_) => 1.0,
            Form::Polynomial(degree) => f64::from(*degree),
            // Rounding is monotone: no stored value is beyond the rounded bounds.
            Form::Kept | Form::Standardized { .. } => self
                .mapped_ends()
                .map(|v| f64::from(v as f32).powi(2))
                .into_iter()
                .fold(0.0, f64::max),
        }
    }

    /// What is declared of its columns' values.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let one = match &self.form {
            Form::Scaled => Column {
                parts: self.parts(),
                ..Column::UNIT
            },
            Form::Kept | Form::Standardized { .. } => Column {
                bound: self.max_square().sqrt(),
                ..Column::UNIT
            },
            Form::Polynomial(degree) => return vec![Column::UNIT; *degree as usize],
            Form::Spline(knots) => return vec![Column::UNIT; knots.len() + 1],
        };
        vec![one]
    }

    /// Whole numbers between whole bounds are mapped onto multiples of one over this.
    fn parts(&self) -> f64 {
        let [low, high] = self.bounds;
        let whole = self.transform.is_none() && low.fract() == 0.0 && high.fract() == 0.0;
        match (whole, (high - low) % 2.0 == 0.0) {
            (true, true) => (high - low) / 2.0,
            (true, false) => high - low,
            (false, _) => 1.0,
        }
    }

    /// The bounds as a feature with units of its own has them.
    pub(crate) fn mapped_ends(&self) -> [f64; 2] {
        self.ends.map(|z| self.mapped(z))
    }

    fn mapped(&self, z: f64) -> f64 {
        match self.form {
            Form::Standardized { mean, sd } => (z - mean) / sd,
            _ => z,
        }
    }

    /// Checks the declaration; an error comes with the key at fault, "" for all of it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        let [low, high] = self.bounds;
        let whole = |what: String| Err(("", what));
        if !(low.is_finite() && high.is_finite()) {
            return whole("bounds must be finite numbers".into());
        }
        if low >= high {
            return whole(format!(
                "bounds are reversed or equal: [{low}, {high}]; write [low, high]"
            ));
        }
        if let Some(transform) = self.transform
            && let Some(needs) = transform.needs(low)
        {
            let what = format!("{} needs {needs}, not {low}", transform.name());
            return Err(("transform", what));
        }
        let [from, to] = self.ends;
        if !(to - from).is_finite() || from >= to {
            return whole(format!(
                "bounds [{low}, {high}] are too far apart or too close together to tell values between them apart"
            ));
        }
        self.check_form()
    }

    fn check_form(&self) -> Result<(), (&'static str, String)> {
        match &self.form {
            Form::Standardized { mean, sd }
                if !(mean.is_finite() && *sd > 0.0 && sd.is_finite()) =>
            {
                Err((
                    "standardize",
                    "needs a finite mean and a positive, finite sd".into(),
                ))
            }
            Form::Kept | Form::Standardized { .. }
                if self
                    .mapped_ends()
                    .iter()
                    .any(|v| v.is_nan() || v.abs() > LARGEST) =>
            {
                let what = format!(
                    "values of up to {LARGEST:e} are supported; use scale, which maps the bounds to [-1, 1]"
                );
                Err(("", what))
            }
            Form::Polynomial(degree) if !(2..=MOST_DEGREES).contains(degree) => {
                let what = format!(
                    "the degree must lie between 2 and {MOST_DEGREES}, not {degree}; without the key the column is linear"
                );
                Err(("polynomial", what))
            }
            Form::Spline(knots) => self.check_knots(knots).map_err(|what| ("spline", what)),
            _ => Ok(()),
        }
    }

    fn check_knots(&self, knots: &[f64]) -> Result<(), String> {
        let [low, high] = self.bounds;
        if knots.is_empty() || knots.len() > MOST_KNOTS {
            return Err(format!(
                "needs 1 to {MOST_KNOTS} knots inside the bounds, not {}",
                knots.len()
            ));
        }
        if knots.iter().any(|k| !(*k > low && *k < high)) {
            return Err(format!(
                "knots must lie inside the bounds ({low}, {high}), which are knots already"
            ));
        }
        if knots.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err("knots must increase from each to the next".into());
        }
        let mut places = vec![-1.0];
        places.extend(knots.iter().map(|&k| self.scaled(k)));
        places.push(1.0);
        if places
            .windows(2)
            .any(|pair| pair[1] - pair[0] < 2.0 * KNOTS_APART)
        {
            return Err(format!(
                "knots, or a knot and a bound, lie closer together than {KNOTS_APART:e} of the range; leave one out"
            ));
        }
        Ok(())
    }

    /// Values between the bounds, spread evenly on the scale of the transform.
    pub(crate) fn spread(&self, points: u32) -> impl Iterator<Item = f64> {
        let ([from, to], transform) = (self.ends, self.transform);
        (0..points).map(move |i| {
            let z = from + (to - from) * (f64::from(i) + 0.5) / f64::from(points);
            transform.map_or(z, |t| t.inverse(z))
        })
    }

    /// Checks that the value of missing cells is one that a cell may hold.
    pub(crate) fn check_missing(&self, missing: f64) -> Result<(), String> {
        missing_within(missing, self.bounds[0], self.bounds[1])
    }

    /// Cut off at the bounds, then transformed; never beyond the transformed bounds.
    #[inline]
    fn cut(&self, x: f64) -> f64 {
        let [low, high] = self.bounds;
        let [from, to] = self.ends;
        transformed(self.transform, x.max(low).min(high))
            .max(from)
            .min(to)
    }

    /// Mapped linearly from the transformed bounds onto `[−1, 1]`.
    #[inline]
    fn scaled(&self, x: f64) -> f64 {
        let [from, to] = self.ends;
        2.0 * ((self.cut(x) - from) / (to - from)) - 1.0
    }

    /// The only feature of each of some numbers; `None` where a number has several.
    pub(crate) fn lanes<const L: usize>(&self, x: &[f64; L]) -> Option<[f32; L]> {
        let mut values = [0.0; L];
        match &self.form {
            Form::Kept | Form::Standardized { .. } => {
                for lane in 0..L {
                    values[lane] = self.mapped(self.cut(x[lane])) as f32;
                }
            }
            Form::Scaled => {
                for lane in 0..L {
                    values[lane] = self.scaled(x[lane]) as f32;
                }
            }
            Form::Polynomial(_) | Form::Spline(_) => return None,
        }
        Some(values)
    }

    /// Appends the features of a number.
    #[inline]
    pub(crate) fn push(&self, x: f64, out: &mut Vec<f32>) {
        match &self.form {
            Form::Kept | Form::Standardized { .. } => out.push(self.mapped(self.cut(x)) as f32),
            Form::Scaled => out.push(self.scaled(x) as f32),
            Form::Polynomial(degree) => push_legendre(self.scaled(x), *degree, out),
            Form::Spline(_) => {
                let u = self.scaled(x);
                let values = self.spline.iter().flat_map(|s| s.values(u));
                out.extend(values.map(|v| toward_zero(v.clamp(0.0, 1.0))));
            }
        }
    }
}

#[inline]
fn transformed(transform: Option<Transform>, x: f64) -> f64 {
    transform.map_or(x, |t| t.of(x))
}

/// The Legendre polynomials of degrees 1 to `degree` at `u`, by (k + 1) P₊ = (2k + 1) u P − k P₋.
fn push_legendre(u: f64, degree: u32, out: &mut Vec<f32>) {
    let (mut before, mut at) = (1.0, u);
    for k in 1..=degree {
        out.push(at.clamp(-1.0, 1.0) as f32);
        let k = f64::from(k);
        let next = ((2.0 * k + 1.0) * u * at - k * before) / (k + 1.0);
        (before, at) = (at, next);
    }
}

/// The f32 nearest to `v` that is no larger in size: what bounds `v` bounds it too.
pub(crate) fn toward_zero(v: f64) -> f32 {
    let nearest = v as f32;
    if f64::from(nearest).abs() <= v.abs() {
        nearest
    } else if nearest > 0.0 {
        nearest.next_down()
    } else {
        nearest.next_up()
    }
}

/// A value for missing cells stands for one that a cell may hold: beyond the bounds it would
/// silently be the bound.
pub(crate) fn missing_within(missing: f64, low: f64, high: f64) -> Result<(), String> {
    if (low..=high).contains(&missing) {
        return Ok(());
    }
    Err(format!(
        "the value of a missing cell, {missing}, must lie inside the declared bounds [{low}, {high}]"
    ))
}

#[cfg(test)]
mod tests;
