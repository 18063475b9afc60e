//! Made-up tables, one for each thing that goes wrong on real ones. Rows are the same in every
//! repeat; labels are drawn anew from the generating coefficients, so that coverage means what
//! it says.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, Poisson};

use super::chance::{generator, normal};
use super::glm::{Model, sigmoid};
use super::table::{Column, Table, Values};

pub const NAMES: [&str; 10] = [
    "rare",
    "skewed",
    "small",
    "collinear",
    "leverage",
    "narrow",
    "separated",
    "wide",
    "linear-rare",
    "poisson-rare",
];

/// Rows in the rare levels of `rare`.
const RARE: [usize; 8] = [24, 38, 60, 95, 150, 240, 380, 600];

pub fn table(name: &str) -> Option<Table> {
    let table = match name {
        "rare" => rare(),
        "skewed" => skewed(),
        "small" => small(),
        "collinear" => collinear(),
        "leverage" => leverage(),
        "narrow" => narrow(),
        "separated" => separated(),
        "wide" => wide(),
        "linear-rare" => linear_rare(),
        "poisson-rare" => poisson_rare(),
        _ => return None,
    };
    Some(table)
}

/// 262,000 × 49: three columns of levels, half of them rare.
fn rare() -> Table {
    let mut m = Maker::new("rare", 262_000, -1.2);
    for (name, slope) in [("a", 0.8), ("b", -0.5), ("c", 0.3)] {
        m.uniform(name, slope);
    }
    m.levels("city", &RARE, 12, 0.7);
    m.levels("trade", &RARE, 7, 0.7);
    m.levels("plan", &RARE[2..], 7, 0.7);
    m.finish(Model::Logistic, [0.0, 1.0])
}

/// 15,216 × 11: six lognormal columns declared on [0, 100], most of whose cells are about 1.
fn skewed() -> Table {
    let mut m = Maker::new("skewed", 15_216, -6.5);
    let slopes = [3.0, -2.0, 2.0, -4.0, -3.0, -2.0];
    for (i, slope) in slopes.into_iter().enumerate() {
        let spread = 0.8 + 0.1 * i as f64;
        let cells = m.draw(|rng| (spread * normal(rng)).exp().min(100.0));
        m.number(&format!("amount{}", i + 1), [0.0, 100.0], cells, slope);
    }
    m.flag("owner", 0.3, 0.6);
    m.flag("urban", 0.7, -0.4);
    m.uniform("age", 1.0);
    m.uniform("term", 0.5);
    m.finish(Model::Logistic, [0.0, 1.0])
}

/// 1,900 × 10: nothing special, but few rows.
fn small() -> Table {
    let mut m = Maker::new("small", 1_900, -0.5);
    for (name, slope) in [("a", 1.2), ("b", -0.8), ("c", 0.5), ("d", 0.0), ("e", 0.3)] {
        m.uniform(name, slope);
    }
    m.flag("f", 0.4, 0.7);
    m.flag("g", 0.2, -0.5);
    m.levels("h", &[], 3, 0.5);
    m.finish(Model::Logistic, [0.0, 1.0])
}

/// 20,000 × 10: three groups of three columns that nearly agree.
fn collinear() -> Table {
    let mut m = Maker::new("collinear", 20_000, -0.3);
    for (group, slope) in [("a", 0.6), ("b", -0.4), ("c", 0.2)] {
        let common = m.draw(|rng| rng.random_range(-0.95..0.95));
        for k in 1..=3 {
            let near = common
                .iter()
                .map(|v| v + 0.02 * normal(&mut m.rng))
                .collect();
            m.number(&format!("{group}{k}"), [-1.0, 1.0], near, slope);
        }
    }
    m.finish(Model::Logistic, [0.0, 1.0])
}

/// 20,000 × 7: cells within a tenth of 0, but for forty rows at the bounds.
fn leverage() -> Table {
    let mut m = Maker::new("leverage", 20_000, -0.4);
    for (i, slope) in [2.0, -1.5, 1.0, 0.5, -0.5, 0.0].into_iter().enumerate() {
        let mut cells = m.draw(|rng| 0.05 * normal(rng));
        for cell in &mut cells[..40] {
            *cell = if m.rng.random::<f64>() < 0.5 {
                -1.0
            } else {
                1.0
            };
        }
        m.number(&format!("x{}", i + 1), [-1.0, 1.0], cells, slope);
    }
    m.finish(Model::Logistic, [0.0, 1.0])
}

/// 20,000 × 8: three columns whose values are a fiftieth of what their bounds allow, beside two
/// flags of about sixty rows.
fn narrow() -> Table {
    let mut m = Maker::new("narrow", 20_000, -0.5);
    for (name, slope) in [("x1", 12.0), ("x2", -8.0)] {
        let cells = m.draw(|rng| 0.02 * normal(rng));
        m.number(name, [-1.0, 1.0], cells, slope);
    }
    let cells = m.draw(|rng| (0.01 * (0.8 * normal(rng)).exp()).min(1.0));
    m.number("amount", [-1.0, 1.0], cells, 6.0);
    m.flag("rare1", 0.003, 1.0);
    m.flag("rare2", 0.003, -1.0);
    m.uniform("age", 0.8);
    m.uniform("term", -0.5);
    m.finish(Model::Logistic, [0.0, 1.0])
}

/// 5,000 × 8: all 400 rows with a flag are positive. Its coefficient is the prior's to say.
fn separated() -> Table {
    let mut m = Maker::new("separated", 5_000, -0.5);
    m.flag("always", 0.08, 60.0);
    for (i, slope) in [1.0, -0.7, 0.4, 0.0, 0.8, -0.2].into_iter().enumerate() {
        m.uniform(&format!("x{}", i + 1), slope);
    }
    let mut table = m.finish(Model::Logistic, [0.0, 1.0]);
    table.separated = Some(1);
    table
}

/// 30,000 × 100.
fn wide() -> Table {
    let mut m = Maker::new("wide", 30_000, -0.2);
    for i in 1..100 {
        let slope = 0.25 * normal(&mut m.rng);
        m.uniform(&format!("x{i}"), slope);
    }
    m.finish(Model::Logistic, [0.0, 1.0])
}

/// 50,000 × 30: linear, two columns of levels, some rare.
fn linear_rare() -> Table {
    let mut m = Maker::new("linear-rare", 50_000, 0.2);
    for (name, slope) in [("a", 0.3), ("b", -0.2), ("c", 0.1), ("d", 0.0)] {
        m.uniform(name, slope);
    }
    m.levels("city", &RARE[..6], 9, 0.2);
    m.levels("trade", &RARE[2..], 6, 0.2);
    m.finish(Model::Linear { variance: 0.09 }, [-3.0, 3.0])
}

/// 60,000 × 22: counts up to 12 at rates about 1, two columns of levels, some rare.
fn poisson_rare() -> Table {
    let mut m = Maker::new("poisson-rare", 60_000, 0.1);
    for (name, slope) in [("a", 0.3), ("b", -0.2), ("c", 0.1)] {
        m.uniform(name, slope);
    }
    m.levels("city", &RARE[..6], 6, 0.25);
    m.levels("trade", &RARE[4..], 4, 0.25);
    m.finish(Model::Poisson, [0.0, 12.0])
}

/// A table in the making.
struct Maker {
    name: &'static str,
    rng: ChaCha12Rng,
    rows: usize,
    columns: Vec<Column>,
    truth: Vec<f64>,
}

impl Maker {
    fn new(name: &'static str, rows: usize, intercept: f64) -> Self {
        Maker {
            name,
            rng: generator(&["table", name], 0),
            rows,
            columns: Vec::new(),
            truth: vec![intercept],
        }
    }

    fn draw(&mut self, mut cell: impl FnMut(&mut ChaCha12Rng) -> f64) -> Vec<f64> {
        (0..self.rows).map(|_| cell(&mut self.rng)).collect()
    }

    fn number(&mut self, name: &str, bounds: [f64; 2], cells: Vec<f64>, slope: f64) {
        self.columns.push(Column::number(name, bounds, cells));
        self.truth.push(slope);
    }

    fn uniform(&mut self, name: &str, slope: f64) {
        let cells = self.draw(|rng| rng.random_range(-1.0..1.0));
        self.number(name, [-1.0, 1.0], cells, slope);
    }

    fn flag(&mut self, name: &str, share: f64, slope: f64) {
        let flags = self.draw(|rng| rng.random());
        let flags = flags.into_iter().map(|u| u < share).collect();
        self.columns.push(Column::flag(name, flags));
        self.truth.push(slope);
    }

    /// Levels with these numbers of rows, and `common` more that share the rest. The first
    /// common one is the reference; coefficients are drawn with standard deviation `spread`.
    fn levels(&mut self, name: &str, rare: &[usize], common: usize, spread: f64) {
        let mut codes: Vec<u16> = Vec::with_capacity(self.rows);
        for (k, &count) in rare.iter().enumerate() {
            codes.extend(std::iter::repeat_n((common + k) as u16, count));
        }
        while codes.len() < self.rows {
            codes.push((codes.len() % common) as u16);
        }
        codes.shuffle(&mut self.rng);
        let all = common + rare.len();
        let values = Values::Levels {
            names: (0..all).map(|k| format!("{name}{k:02}")).collect(),
            reference: 0,
            codes,
        };
        self.columns.push(Column {
            name: name.into(),
            values,
        });
        for _ in 1..all {
            let slope = spread * normal(&mut self.rng);
            self.truth.push(slope.clamp(-2.0 * spread, 2.0 * spread));
        }
    }

    fn finish(self, model: Model, label: [f64; 2]) -> Table {
        let mut table = Table::new(self.name, model, self.columns, Vec::new());
        table.label = label;
        table.truth = Some(self.truth);
        table
    }
}

/// Labels of one repeat, from the generating coefficients.
pub fn labels(table: &Table, truth: &[f64], repeat: u64) -> Vec<f64> {
    let mut rng = generator(&["labels", &table.name], repeat);
    let [low, high] = table.label;
    (0..table.design.rows())
        .map(|i| {
            let eta = table.design.eta(i, truth);
            one_label(table.model, eta, &mut rng).clamp(low, high)
        })
        .collect()
}

fn one_label(model: Model, eta: f64, rng: &mut impl Rng) -> f64 {
    match model {
        Model::Logistic => f64::from(u8::from(rng.random::<f64>() < sigmoid(eta))),
        Model::Linear { variance } => eta + variance.sqrt() * normal(rng),
        Model::Poisson => Poisson::new(eta.exp()).map_or(0.0, |p| p.sample(rng)),
    }
}
