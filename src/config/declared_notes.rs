//! Where declarations alone say that coefficients of a regression will hardly be told apart, or
//! that a row reaches far. No row is read: what columns are to each other is worked out on values
//! spread evenly over their declared bounds and levels.

use crate::data::{Cell, Condition, Feature, FeatureKind, Form, Interaction, Number, Source};

/// A column that keeps less of its square than this beside others is nearly one of their sums.
const NEARLY: f64 = 0.01;
/// Values beyond this are far for a column of size 1, in sds or other units.
const FAR: f64 = 20.0;
/// Values spread over the bounds of a number, and over both sides of a threshold.
const POINTS: u32 = 200;
/// Columns of one table column beyond which they are not compared.
const MOST_COLUMNS: usize = 200;

impl Source {
    /// What a reader should know of a regression on these features before anything is spent.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.constants();
        notes.extend(self.features.iter().filter_map(reach));
        notes.extend(self.features.iter().filter_map(mean_outside));
        for (i, feature) in self.features.iter().enumerate() {
            let first = self.features[..i]
                .iter()
                .all(|f| f.column != feature.column);
            if let (Some(column), true) = (&feature.column, first) {
                notes.extend(self.within(column));
            }
        }
        notes.extend(self.products());
        notes
    }

    /// Whether a constant is among the sums of columns, once.
    fn constants(&self) -> Vec<String> {
        let complete = self.features.iter().filter(|f| f.is_complete());
        let complete: Vec<&str> = complete
            .map(|f| f.column.as_deref().unwrap_or("intercept"))
            .collect();
        if complete.len() > 1 {
            return vec![format!(
                "each of {} adds up to 1 in every row, so that the prior alone tells them apart; keep one and give every other one_hot a reference",
                complete.join(", ")
            )];
        }
        let relative = self.features.iter().find(|f| match &f.kind {
            FeatureKind::OneHot(one_hot) => one_hot.reference.is_some(),
            FeatureKind::Number(number) => matches!(number.form(), Form::Spline(_)),
            _ => false,
        });
        match (complete.is_empty(), relative) {
            (true, Some(feature)) => vec![format!(
                "no column holds what '{}' is counted from (a reference, or the lower bound of a spline), which is 0 without one; add an intercept",
                feature.column.as_deref().unwrap_or_default()
            )],
            _ => vec![],
        }
    }

    /// Columns made of one column of the table, against each other and a constant.
    fn within(&self, column: &str) -> Vec<String> {
        let here = |f: &&Feature| f.column.as_deref() == Some(column);
        let features: Vec<&Feature> = self.features.iter().filter(here).collect();
        let alone = features.len() == 1 && !matches!(features[0].kind, FeatureKind::Number(_));
        let names: Vec<String> = features.iter().flat_map(|f| f.names()).collect();
        if alone || names.len() > MOST_COLUMNS {
            return vec![];
        }
        let values = tabulate(&features);
        let constant = self.features.iter().any(|f| !here(&f) && f.is_complete());
        let mut basis: Vec<Vec<f64>> = Vec::new();
        if constant {
            push_rest(&mut basis, vec![1.0; values.len()]);
        }
        let mut notes = Vec::new();
        for (j, name) in names.iter().enumerate() {
            let x: Vec<f64> = values.iter().map(|row| f64::from(row[j])).collect();
            if constant && is_last_of_complete(&features, j) {
                continue;
            }
            let centred = rest(&basis[..usize::from(constant)], &x);
            if square(&centred) < NEARLY * square(&x) {
                notes.push(format!(
                    "'{name}' hardly varies within its bounds, measured from 0: beside a constant the prior tells its coefficient; scale maps the bounds to [-1, 1]"
                ));
            } else if square(&rest(&basis, &x)) < NEARLY * square(&centred) {
                notes.push(format!(
                    "'{name}' is nearly a sum of the other columns made of '{column}' wherever their bounds and levels allow, so that the prior tells their coefficients apart; drop one"
                ));
            } else {
                push_rest(&mut basis, x);
            }
        }
        notes
    }

    /// Products that add up to columns which are there already.
    fn products(&self) -> Vec<String> {
        let declared: Vec<_> = self.interactions.iter().map(Interaction::sorted).collect();
        let note = |interaction: &Interaction| {
            let (complete, others) = interaction.complete_part()?;
            // Features are columns themselves.
            let there = others.len() == 1 || declared.contains(&others);
            there.then(|| {
                let parts: Vec<&str> = interaction.parts().collect();
                let rest: Vec<&str> = parts.iter().copied().filter(|p| *p != complete).collect();
                format!(
                    "the columns of {} add up to those of {}, for '{complete}' adds up to 1 in every row; give it a reference",
                    parts.join(":"),
                    rest.join(":")
                )
            })
        };
        self.interactions.iter().filter_map(note).collect()
    }
}

/// A column in units of its own that makes rows long.
fn reach(feature: &Feature) -> Option<String> {
    let (number, name) = in_units(feature)?;
    let most = number
        .mapped_ends()
        .map(f64::abs)
        .into_iter()
        .fold(0.0, f64::max);
    let standardized = matches!(number.form(), Form::Standardized { .. });
    (most > FAR).then(|| match standardized {
        true => format!(
            "the bounds of '{name}' lie up to {most:.0} sds from its mean: so long are rows taken to be, and noise and costs grow with it; narrow the bounds"
        ),
        false => format!(
            "'{name}' reaches {most} in its own units: so long are rows taken to be, and noise and costs grow with it; scale maps the bounds to [-1, 1]"
        ),
    })
}

/// A mean beyond the bounds: the two are probably in different units.
fn mean_outside(feature: &Feature) -> Option<String> {
    let (number, name) = in_units(feature)?;
    let Form::Standardized { mean, .. } = number.form() else {
        return None;
    };
    let [low, high] = number.mapped_ends();
    (low > 0.0 || high < 0.0).then(|| {
        format!(
            "the mean {mean} of '{name}' lies outside its bounds; bounds are in raw units, mean and sd in those of the transform"
        )
    })
}

/// A number that keeps units, and its name.
fn in_units(feature: &Feature) -> Option<(&Number, String)> {
    match &feature.kind {
        FeatureKind::Number(number)
            if matches!(number.form(), Form::Kept | Form::Standardized { .. }) =>
        {
            Some((number, feature.curve()?))
        }
        _ => None,
    }
}

/// Whether column `j` of these features is the last of a complete one.
fn is_last_of_complete(features: &[&Feature], j: usize) -> bool {
    let mut end = 0;
    features.iter().any(|f| {
        end += f.names().len();
        j + 1 == end && f.is_complete()
    })
}

/// What features of one column are at values spread over their bounds and levels.
fn tabulate(features: &[&Feature]) -> Vec<Vec<f32>> {
    let (mut numbers, mut texts) = (Vec::new(), vec!["\u{0}".to_string()]);
    let ends = features.iter().filter_map(|f| match &f.kind {
        FeatureKind::Number(number) => Some(number.bounds()),
        _ => None,
    });
    let range = ends.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
    for feature in features {
        match &feature.kind {
            FeatureKind::Intercept => {}
            FeatureKind::Number(number) => numbers.extend(number.spread(POINTS)),
            FeatureKind::OneHot(one_hot) => texts.extend(one_hot.all_levels().cloned()),
            FeatureKind::Indicator(Condition::OneOf(levels)) => texts.extend(levels.clone()),
            FeatureKind::Indicator(Condition::Above(v) | Condition::Below(v)) => {
                let reach = range.map_or(v.abs().max(1.0), |[low, high]| 0.5 * (high - low));
                let share = |i: u32| (2.0 * f64::from(i) + 1.0) / f64::from(POINTS) - 1.0;
                numbers.extend((0..POINTS).map(|i| v + reach * share(i)));
            }
        }
    }
    let texts = texts.iter().map(|t| Cell::Text(t));
    let cells = numbers.iter().map(|&v| Cell::Number(v)).chain(texts);
    let row = |cell| {
        let mut row = Vec::new();
        // What one of them refuses is no value of the column.
        let read = features.iter().try_for_each(|f| f.push(cell, &mut row));
        read.ok().map(|()| row)
    };
    cells.filter_map(row).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn square(a: &[f64]) -> f64 {
    dot(a, a)
}

/// What `x` has that an orthonormal basis has not.
fn rest(basis: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    let mut x = x.to_vec();
    for b in basis {
        let along = dot(b, &x);
        x.iter_mut().zip(b).for_each(|(x, b)| *x -= along * b);
    }
    x
}

/// Adds that to the basis, at length 1.
fn push_rest(basis: &mut Vec<Vec<f64>>, x: Vec<f64>) {
    let mut left = rest(basis, &x);
    let length = square(&left).sqrt();
    if length > 0.0 {
        left.iter_mut().for_each(|v| *v /= length);
        basis.push(left);
    }
}

#[cfg(test)]
mod tests;
