//! What the declared features say of a regression's columns, whatever the rows hold.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::Plan;
use crate::config::ConfigError;
use crate::config::schema::ModelKind;
use crate::data::FeatureKind;
use crate::features::{Form, Number};
use crate::sampler::{Curve, Level, Structure, Sum};

/// Points of a number's range at which its columns are looked at.
const POINTS: u32 = 128;

impl Plan {
    /// Which columns are 0 or 1, exclude one another or add up to another one, in the order of the
    /// table. Where rows are shortened none is known to hold a 1; the rest is true there too.
    pub(super) fn structure(&self) -> Result<Structure, ConfigError> {
        let data = &self.config.data;
        let source = self.source(&data.file, data.label_file.as_ref())?;
        let (mut constant, mut complete) = (None, Vec::new());
        let mut complete_features = Vec::new();
        let mut levels: Vec<Vec<Level>> = Vec::new();
        let mut pieces: Vec<Vec<Level>> = Vec::new();
        let (mut numbers, mut splines, mut several) = (Vec::new(), Vec::new(), Vec::new());
        for (factor, feature) in source.features.iter().enumerate() {
            let columns = levels.len()..levels.len() + feature.names().len();
            let one_hot = matches!(feature.kind, FeatureKind::OneHot(_));
            levels.extend((0..columns.len()).map(|level| match one_hot {
                true => vec![Level { factor, level }],
                false => Vec::new(),
            }));
            pieces.extend((0..columns.len()).map(|level| match &feature.kind {
                FeatureKind::Intercept => Vec::new(),
                _ => vec![Level { factor, level }],
            }));
            if let FeatureKind::Number(number) = &feature.kind {
                match number.form() {
                    Form::Spline(_) => splines.push(factor),
                    _ => numbers.push(factor),
                }
                if columns.len() > 1 {
                    several.push((factor, Arc::new(values(number))));
                }
            }
            match feature.kind {
                FeatureKind::Intercept => constant = Some(columns.start),
                _ if feature.is_complete() => {
                    complete_features.push(factor);
                    complete.push(columns);
                }
                _ => {}
            }
        }
        let mut factors: Vec<Vec<usize>> = (0..levels.len()).map(|j| vec![j]).collect();
        factors.extend(source.interactions.iter().flat_map(|i| i.factors()));
        let products = factors.iter().skip(levels.len());
        let of = |product: &Vec<usize>| product.iter().flat_map(|&j| levels[j].clone()).collect();
        let products: Vec<Vec<Level>> = products.map(of).collect();
        levels.extend(products);
        let products = factors.iter().skip(pieces.len());
        let of = |product: &Vec<usize>| product.iter().flat_map(|&j| pieces[j].clone()).collect();
        let products: Vec<Vec<Level>> = products.map(of).collect();
        pieces.extend(products);
        let is_flag = source.flags();
        let cut = (self.config.model.kind == ModelKind::Ordinal).then_some(pieces.len());
        let curves = curves(&several, &pieces, &is_flag, cut);
        let shortened = data.row_norm.is_some();
        Ok(Structure {
            flags: if shortened { Vec::new() } else { is_flag },
            constant: constant.filter(|_| !shortened),
            cut: cut.filter(|_| !shortened),
            levels,
            sums: sums(&factors, &complete, constant),
            pieces: if shortened { Vec::new() } else { pieces },
            numbers,
            splines,
            complete: complete_features,
            curves: if shortened { Vec::new() } else { curves },
        })
    }
}

/// A number's columns over its range.
fn values(number: &Number) -> Vec<Vec<f64>> {
    let row = |x: f64| {
        let mut row = Vec::new();
        number.push(x, &mut row);
        row.into_iter().map(f64::from).collect()
    };
    number.spread(POINTS).map(row).collect()
}

/// The columns of each number that has several, with what these are where it may lie, and their
/// products with each column that is 0 or 1 and has them all. `pieces`: what columns are products
/// of; `cut`: a column that is -1, of which the columns' negatives are functions.
fn curves(
    numbers: &[(usize, Arc<Vec<Vec<f64>>>)],
    pieces: &[Vec<Level>],
    is_flag: &[bool],
    cut: Option<usize>,
) -> Vec<Curve> {
    let places = Structure::places(pieces);
    let curve = |whole: usize, (factor, values): &(usize, Arc<Vec<Vec<f64>>>)| {
        let own = pieces.get(whole).map_or(&[][..], Vec::as_slice);
        let column = |level| {
            let level = Level {
                factor: *factor,
                level,
            };
            places.get(&Level::sorted([own, &[level]].concat()))
        };
        let columns = (0..values[0].len()).map(|level| column(level).copied());
        Some(Curve {
            whole,
            columns: columns.collect::<Option<Vec<usize>>>()?,
            values: match Some(whole) == cut {
                true => Arc::new(negative(values)),
                false => values.clone(),
            },
        })
    };
    (0..pieces.len())
        .filter(|j| is_flag[*j])
        .chain(cut)
        .flat_map(|whole| {
            numbers
                .iter()
                .filter_map(move |number| curve(whole, number))
        })
        .collect()
}

/// The same beside a column that is -1.
fn negative(values: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let row = |row: &Vec<f64>| row.iter().map(|v| -v).collect();
    values.iter().map(row).collect()
}

/// Which columns others add up to: those with one column each of a factor whose columns,
/// `complete`, add up to 1. `factors`: the features' columns that each column is the product of.
fn sums(factors: &[Vec<usize>], complete: &[Range<usize>], constant: Option<usize>) -> Vec<Sum> {
    let sorted = |mut columns: Vec<usize>| {
        columns.sort_unstable();
        columns
    };
    let mut places: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    places.extend(constant.map(|constant| (Vec::new(), constant)));
    places.extend((factors.iter().cloned().map(sorted)).zip(0..));
    // What is left of a product without one of its factors, and of which it is one.
    let mut parts: BTreeMap<(Vec<usize>, usize), Vec<usize>> = BTreeMap::new();
    for (column, own) in factors.iter().enumerate() {
        for (q, factor) in own.iter().enumerate() {
            if let Some(whole) = complete.iter().find(|range| range.contains(factor)) {
                let rest = sorted([&own[..q], &own[q + 1..]].concat());
                parts.entry((rest, whole.start)).or_default().push(column);
            }
        }
    }
    let sums = parts.into_iter().filter_map(|((rest, start), parts)| {
        let range = complete.iter().find(|range| range.start == start)?;
        let whole = *places.get(&rest)?;
        (parts.len() == range.len()).then_some(Sum { whole, parts })
    });
    sums.collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn structure(formula: &str, hierarchies: &str) -> (Vec<String>, Structure) {
        let text = format!(
            "[data]\nfile = \"t.csv\"\n[columns]\ny = {{ positive = [\"1\"] }}\nx = {{ scale = [0, 9] }}\ng = {{ levels = [\"a\", \"b\", \"c\"], strict = true }}\nh = {{ levels = [\"u\", \"v\"] }}\n[model]\nkind = \"logistic\"\nformula = \"{formula}\"\nprior = {{ kind = \"normal\", sd = 3 }}\n{hierarchies}[sampler]\nalgorithm = \"anchored-barker\"\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        );
        let plan = Plan::parse(Path::new("run.toml"), text).unwrap();
        let names = plan.source(Path::new("t.csv"), None).unwrap().names();
        (names, plan.structure().unwrap())
    }

    /// Ordered classes have cuts for a constant, which curves go the other way from.
    #[test]
    fn the_first_cut_of_ordered_classes_is_the_parameter_after_their_columns() {
        let text = "[data]\nfile = \"t.csv\"\n[columns]\ny = { levels = [\"a\", \"b\", \"c\"] }\nx = { scale = [0, 9] }\n[model]\nkind = \"ordinal\"\nformula = \"y ~ poly(x, 2)\"\nprior = { kind = \"normal\", sd = 3 }\n[sampler]\nalgorithm = \"anchored-barker\"\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
        let plan = Plan::parse(Path::new("run.toml"), text.to_owned()).unwrap();
        let own = plan.structure().unwrap();
        assert_eq!((own.constant, own.cut), (None, Some(2)));
        let [curve] = &own.curves[..] else {
            panic!("one number")
        };
        assert_eq!((curve.whole, &curve.columns[..]), (2, &[0, 1][..]));
        let ends = [curve.values.first(), curve.values.last()].map(|row| row.unwrap()[0]);
        assert!(ends[0] > 0.0 && ends[1] < 0.0, "{ends:?}");
        assert_eq!(structure("y ~ poly(x, 2)", "").1.cut, None);
    }

    /// Columns that add up, by name.
    fn sums((names, structure): &(Vec<String>, Structure)) -> Vec<String> {
        let own = |sum: &Sum| {
            let parts: Vec<&str> = sum.parts.iter().map(|j| names[*j].as_str()).collect();
            format!("{} = {}", names[sum.whole], parts.join(" + "))
        };
        structure.sums.iter().map(own).collect()
    }

    #[test]
    fn levels_exclude_one_another_and_add_up_where_none_is_left_out() {
        let found = structure("y ~ h + g * x", "");
        let (names, own) = &found;
        assert_eq!(own.constant, names.iter().position(|n| n == "intercept"));
        assert_eq!(own.levels.len(), names.len());
        for (i, j) in (0..names.len()).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let differ = |factor: &str| {
                let level = |name: &str| -> Option<String> {
                    let at = name.find(&format!("{factor}="))?;
                    Some(name[at + 2..].split(':').next().unwrap().to_owned())
                };
                matches!((level(&names[i]), level(&names[j])), (Some(a), Some(b)) if a != b)
            };
            let excluded = (own.levels[i].iter()).any(|a| {
                (own.levels[j].iter()).any(|b| a.factor == b.factor && a.level != b.level)
            });
            let (a, b) = (&names[i], &names[j]);
            assert_eq!(excluded, differ("g") || differ("h"), "{a} {b}");
        }
    }

    #[test]
    fn a_hierarchys_levels_add_up_to_what_they_vary() {
        let hierarchies = "[[model.hierarchy]]\nname = \"g\"\nscale = 1.0\n[[model.hierarchy]]\nname = \"x | g\"\nscale = 1.0\n";
        let found = structure("y ~ x + h + (x | g)", hierarchies);
        let mut sums = sums(&found);
        sums.sort();
        assert_eq!(
            sums,
            ["intercept = g=a + g=b + g=c", "x = x:g=a + x:g=b + x:g=c",]
        );
    }
}
