//! The sensitivity is a fact about integers: the sums of two data sets that differ in one
//! row never differ by more than `2·bound`, whatever the row and whatever arithmetic makes
//! of it. A planted engine whose clip is one grid step too wide shows that these tests
//! would see it.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use super::cpu::{CpuEngine, InstructionSet};
use super::test_cases::{layered, plain_anchor};
use super::{
    AnchorQuery, AnchorSums, Engine, EngineError, EngineInfo, GradientQuery, GradientSum,
    MomentSums, RatioQuery, RatioSum, Rows,
};
use crate::data::{Dataset, LabelKind};
use crate::expression::Law;
use crate::model::{Anchored, GaussianMean, Mixture, Mlp, Model, MomentBasis, Prior, Regression};

/// Rows of each data set: partial tiles, quads and workgroups.
const ROWS: usize = 37;
/// Chains of a query.
const CHAINS: usize = 8;

/// Models of two features with the data sets, which differ in their last row alone.
struct Family {
    model: Box<dyn Model>,
    neighbours: Vec<Arc<Dataset>>,
}

fn families() -> Vec<Family> {
    let names = ["a".to_string(), "b".to_string()];
    let prior = || Prior::normal(2, 10.0);
    let covariance = [1.0, 0.3, 0.3, 2.0];
    let logistic = Regression::logistic(&names, 3.0, prior(), 1.0).unwrap();
    let anchor = plain_anchor(vec![0.3, -0.2], 3.0);
    let number = LabelKind::Number {
        low: -2.0,
        high: 5.0,
    };
    let count = LabelKind::Count { max: 9 };
    let poisson = Regression::poisson(&names, count, 3.0, prior(), 1.0).unwrap();
    let models: [Box<dyn Model>; 7] = [
        Box::new(Anchored::new(Arc::new(poisson), anchor.clone()).unwrap()),
        Box::new(Regression::linear(&names, 0.5, number, 3.0, prior(), 1.0).unwrap()),
        Box::new(Regression::poisson(&names, count, 3.0, prior(), 1.0).unwrap()),
        Box::new(Anchored::new(Arc::new(logistic), anchor).unwrap()),
        Box::new(GaussianMean::new(&names, &covariance, 3.0, prior(), 1.0).unwrap()),
        Box::new(Regression::logistic(&names, 3.0, prior(), 1.0).unwrap()),
        Box::new(Mixture::new(2.0, 3.0, prior(), 1.0).unwrap()),
    ];
    models.into_iter().map(family).collect()
}

/// A network, which the CPU engine alone computes.
fn network() -> Family {
    let names = ["a".to_string(), "b".to_string()];
    let classes = LabelKind::Class { classes: 3 };
    let d = Mlp::shape(2, 4, classes).unwrap().parameters();
    let model = Mlp::new(&names, 4, classes, Prior::normal(d, 10.0), 1.0);
    family(Box::new(model.unwrap()))
}

/// A network seen from an anchor.
fn anchored_network() -> Family {
    let names = ["a".to_string(), "b".to_string()];
    let d = Mlp::shape(2, 3, LabelKind::Binary).unwrap().parameters();
    let model = Mlp::new(&names, 3, LabelKind::Binary, Prior::normal(d, 10.0), 1.0);
    let at = (0..d).map(|j| (1.7 * j as f64 + 0.3).sin()).collect();
    let anchored = Anchored::new(Arc::new(model.unwrap()), plain_anchor(at, 3.0));
    family(Box::new(anchored.unwrap()))
}

/// Declared likelihoods: one whose parameter is sampled along, one that takes anything for an
/// answer, one seen from an anchor.
fn declared() -> Vec<Family> {
    let names = ["a".to_string(), "b".to_string()];
    let count = LabelKind::Count { max: 9 };
    let model = |text: &str, shared: &[String]| {
        let law = Law::new("expression", text, shared, &[]).unwrap();
        let prior = Prior::normal(2 + shared.len(), 10.0);
        Regression::declared(&names, law, count, 3.0, prior, 1.0).unwrap()
    };
    let spread = model("-((y - eta) * exp(-a))^2 - a", &["a".into()]);
    let wild = model("log(eta) / (y - eta) + exp(eta^3) * sqrt(eta)", &[]);
    let anchored = model("y * eta - exp(eta) - eta^4", &[]);
    let anchored = Anchored::new(Arc::new(anchored), plain_anchor(vec![0.3, -0.2], 3.0));
    let all: [Box<dyn Model>; 3] = [
        Box::new(spread),
        Box::new(wild),
        Box::new(anchored.unwrap()),
    ];
    all.into_iter().map(family).collect()
}

/// A model with its neighbouring data sets.
fn family(model: Box<dyn Model>) -> Family {
    let width = model.features();
    let kind = model.label();
    // Binary −1 and +1, or a number's and a count's ends.
    let ends = match kind {
        Some(LabelKind::Number { low, high }) => [low, high],
        Some(LabelKind::Count { max }) => [0.0, f64::from(max)],
        Some(LabelKind::Class { classes }) => [0.0, f64::from(classes) - 1.0],
        _ => [-1.0, 1.0],
    };
    let mut last = Vec::new();
    // Far beyond the model's own bound of 3, at it, denormal, nothing.
    for size in [3e38f32, -3e38, 1e20, -1e20, 3.0, -3.0, 1e-40, 0.0] {
        match kind {
            Some(_) => last.extend(ends.map(|y| (size, Some(y)))),
            None => last.push((size, None)),
        }
    }
    let neighbours = last
        .into_iter()
        .map(|(size, label)| {
            let names: Vec<String> = (0..width).map(|j| format!("x{j}")).collect();
            let mut set = Dataset::builder_with(names, kind, 3.2e38).unwrap();
            for i in 1..ROWS {
                let row: Vec<f32> = (0..width).map(|j| ((i * (j + 3)) as f32).sin()).collect();
                set.push_value(&row, kind.map(|_| ends[usize::from(i % 3 == 0)]))
                    .unwrap();
            }
            let mut row = vec![0.0; width];
            row[0] = size;
            set.push_value(&row, label).unwrap();
            Arc::new(set.finish().unwrap())
        })
        .collect();
    Family { model, neighbours }
}

/// Queries from tiny to absurd moves, under clips from 2^-30 to 2^10.
fn queries(model: &dyn Model, count: usize) -> Vec<RatioQuery> {
    let mut rng = ChaCha12Rng::seed_from_u64(12);
    (0..count)
        .map(|i| {
            let size = [1e-6, 1e-2, 1.0, 1e3, 1e12, 1e30][i % 6];
            let mut point = |scale: f64| -> Vec<Vec<f64>> {
                let mut one = || -> Vec<f64> {
                    (0..model.dim())
                        .map(|_| scale * (2.0 * rng.random::<f64>() - 1.0))
                        .collect()
                };
                (0..CHAINS).map(|_| one()).collect()
            };
            let (thetas, moves) = (point(1.0), point(size));
            let proposals: Vec<Vec<f64>> = thetas
                .iter()
                .zip(&moves)
                .map(|(t, m)| t.iter().zip(m).map(|(t, m)| t + m).collect())
                .collect();
            let clips: Vec<f64> = (0..CHAINS)
                .map(|_| (40.0 * rng.random::<f64>() - 30.0).exp2())
                .collect();
            let t: Vec<&[f64]> = thetas.iter().map(Vec::as_slice).collect();
            let p: Vec<&[f64]> = proposals.iter().map(Vec::as_slice).collect();
            RatioQuery::new(model, &t, &p, &clips).unwrap()
        })
        .collect()
}

/// Checks one query on engines of neighbouring data sets; what is wrong.
fn check(engines: &mut [Box<dyn Engine>], query: &RatioQuery) -> Result<(), String> {
    let mut low = vec![i64::MAX; query.chains()];
    let mut high = vec![i64::MIN; query.chains()];
    let last = vec![vec![ROWS as u64 - 1]; query.chains()];
    for engine in engines {
        let sums = engine.ratio_sums(query).unwrap();
        let mut rows = vec![Vec::new(); query.chains()];
        engine.ratio_rows(query, &last, &mut rows).unwrap();
        for c in 0..query.chains() {
            low[c] = low[c].min(sums[c].steps);
            high[c] = high[c].max(sums[c].steps);
            if rows[c][0].abs() > query.grid(c).bound() {
                return Err(format!("chain {c}: a row of {} steps", rows[c][0]));
            }
        }
    }
    for c in 0..query.chains() {
        let (change, allowed) = (high[c] - low[c], query.grid(c).sensitivity());
        if change > allowed {
            return Err(format!("chain {c}: a sum moved by {change} > {allowed}"));
        }
    }
    Ok(())
}

/// Runs the check over families; some sum must also move by all that it may.
fn check_all(
    families: Vec<Family>,
    mut open: impl FnMut(&Arc<Dataset>) -> Box<dyn Engine>,
    count: usize,
) {
    for family in families {
        let mut engines: Vec<_> = family.neighbours.iter().map(&mut open).collect();
        let mut sharp = false;
        for query in queries(&*family.model, count) {
            check(&mut engines, &query).unwrap_or_else(|e| panic!("{}: {e}", family.model.name()));
            let steps = |e: &mut Box<dyn Engine>| e.ratio_sums(&query).unwrap()[0].steps;
            let all: Vec<i64> = engines.iter_mut().map(steps).collect();
            let range = all.iter().max().unwrap() - all.iter().min().unwrap();
            sharp |= range == query.grid(0).sensitivity();
        }
        assert!(sharp, "{}: never at the edge", family.model.name());
    }
}

#[test]
fn no_row_moves_a_sum_by_more_than_the_sensitivity_on_the_cpu() {
    for set in InstructionSet::available() {
        let layers = layered(LabelKind::Class { classes: 3 }, 1.0);
        let alone = [network(), anchored_network(), family(Box::new(layers))];
        let alone = alone.into_iter().chain(declared());
        let families = families().into_iter().chain(alone).collect();
        let open =
            |d: &Arc<Dataset>| -> Box<dyn Engine> { Box::new(CpuEngine::with(d.clone(), set, 16)) };
        check_all(families, open, 60);
    }
}

#[cfg(feature = "gpu")]
#[test]
fn no_row_moves_a_sum_by_more_than_the_sensitivity_on_the_gpu() {
    use super::gpu::{GpuEngine, GpuLimits};
    let probe = families().remove(0).neighbours.remove(0);
    if let Err(EngineError::NoAdapter { .. }) = GpuEngine::new(probe, false, GpuLimits::default())
        && std::env::var_os("DPMC_REQUIRE_GPU").is_none()
    {
        eprintln!("skipped: no GPU adapter (DPMC_REQUIRE_GPU=1 makes this a failure)");
        return;
    }
    // Listed rows on the device too.
    let open = |d: &Arc<Dataset>| -> Box<dyn Engine> {
        Box::new(GpuEngine::new(d.clone(), false, GpuLimits::default()).unwrap())
    };
    check_all(families(), open, 12);
    check_all(declared(), open, 60);
}

/// An engine that clips to bound + 1.
struct WiderByOne(CpuEngine);

impl Engine for WiderByOne {
    fn info(&self) -> EngineInfo {
        self.0.info()
    }

    fn ratio_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError> {
        let mut rows = vec![Vec::new(); query.chains()];
        let all = vec![(0..ROWS as u64).collect(); query.chains()];
        self.ratio_rows(query, &all, &mut rows)?;
        Ok(rows
            .iter()
            .map(|r| RatioSum {
                steps: r.iter().map(|&q| i64::from(q)).sum(),
                saturated: 0,
            })
            .collect())
    }

    fn ratio_rows(
        &mut self,
        query: &RatioQuery,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError> {
        self.0.ratio_rows(query, rows, out)?;
        for (c, out) in out.iter_mut().enumerate() {
            let bound = query.grid(c).bound();
            for q in out.iter_mut().filter(|q| q.abs() == bound) {
                *q += q.signum();
            }
        }
        Ok(())
    }

    fn gradient_sums(
        &mut self,
        query: &GradientQuery,
        rows: Rows<'_>,
    ) -> Result<Vec<GradientSum>, EngineError> {
        self.0.gradient_sums(query, rows)
    }

    fn anchor_sums(&mut self, query: &AnchorQuery<'_>) -> Result<AnchorSums, EngineError> {
        self.0.anchor_sums(query)
    }
    fn weigh_rows(&mut self, query: &AnchorQuery<'_>) -> Result<(), EngineError> {
        self.0.weigh_rows(query)
    }
    fn moment_sums(&mut self, basis: &MomentBasis) -> Result<MomentSums, EngineError> {
        self.0.moment_sums(basis)
    }
}

/// As above, but its rows are listed as they should be: the sums alone show it.
struct WiderSums(WiderByOne);

impl Engine for WiderSums {
    fn info(&self) -> EngineInfo {
        self.0.info()
    }

    fn ratio_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError> {
        self.0.ratio_sums(query)
    }

    fn ratio_rows(
        &mut self,
        query: &RatioQuery,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError> {
        self.0.0.ratio_rows(query, rows, out)
    }

    fn gradient_sums(
        &mut self,
        query: &GradientQuery,
        rows: Rows<'_>,
    ) -> Result<Vec<GradientSum>, EngineError> {
        self.0.gradient_sums(query, rows)
    }

    fn anchor_sums(&mut self, query: &AnchorQuery<'_>) -> Result<AnchorSums, EngineError> {
        self.0.anchor_sums(query)
    }
    fn weigh_rows(&mut self, query: &AnchorQuery<'_>) -> Result<(), EngineError> {
        self.0.weigh_rows(query)
    }
    fn moment_sums(&mut self, basis: &MomentBasis) -> Result<MomentSums, EngineError> {
        self.0.moment_sums(basis)
    }
}

#[test]
fn a_clip_one_step_too_wide_is_caught() {
    let caught = |open: &dyn Fn(&Arc<Dataset>) -> Box<dyn Engine>| -> Vec<String> {
        families()
            .iter()
            .map(|family| {
                let mut engines: Vec<_> = family.neighbours.iter().map(open).collect();
                let failure = queries(&*family.model, 60)
                    .iter()
                    .find_map(|q| check(&mut engines, q).err());
                failure.unwrap_or_else(|| panic!("{}: not caught", family.model.name()))
            })
            .collect()
    };
    let wider = |d: &Arc<Dataset>| WiderByOne(CpuEngine::new(d.clone()));
    let rows = caught(&|d| Box::new(wider(d)));
    assert!(rows.iter().all(|e| e.contains("a row of")), "{rows:?}");
    let sums = caught(&|d| Box::new(WiderSums(wider(d))));
    assert!(sums.iter().all(|e| e.contains("a sum moved")), "{sums:?}");
}
