//! The promise: an anchored run is not silently biased, neither on a table with rare levels nor
//! where the model does not hold. Levels of 24 to 600 rows among 262,000 once gave errors of 10 to
//! 40 posterior sds without a note, and four coefficients on Adult errors of 4 times the stated
//! noise.

use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

use crate::common::anchored_run::AnchoredRun;
use dpmc::config::Plan;
use dpmc::data::{Dataset, LabelKind};
use dpmc::engine::EngineChoice;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::StandardNormal;

const ROWS: usize = 262_000;
/// Rows of a block's levels; the rest is its reference.
const LEVELS: [&[usize]; 2] = [
    &[24, 60, 120, 270, 400, 600, 20_000, 60_000],
    &[30, 90, 300, 3_000, 40_000, 90_000],
];
const NUMBERS: usize = 2;
const PRIOR_SD: f64 = 5.0;

/// Features and labels: an intercept, two numbers and two blocks of levels.
struct Table {
    rows: Vec<Vec<f32>>,
    labels: Vec<f64>,
}

fn table() -> Table {
    let mut rng = ChaCha20Rng::seed_from_u64(12);
    let d = 1 + NUMBERS + LEVELS.iter().map(|b| b.len()).sum::<usize>();
    let truth: Vec<f64> = (0..d)
        .map(|j| {
            if j == 0 {
                -1.8
            } else {
                rng.random_range(-1.0..1.0)
            }
        })
        .collect();
    let mut rows = vec![vec![0.0f32; d]; ROWS];
    for row in &mut rows {
        row[0] = 1.0;
        for x in &mut row[1..=NUMBERS] {
            *x = rng.random_range(-1.0..1.0);
        }
    }
    let mut column = 1 + NUMBERS;
    for block in LEVELS {
        // A walk through the rows with a step that has no divisor in common with their number.
        let (mut place, step) = (rng.random_range(0..ROWS), 104_729);
        for size in block {
            for _ in 0..*size {
                rows[place][column] = 1.0;
                place = (place + step) % ROWS;
            }
            column += 1;
        }
    }
    let labels = rows
        .iter()
        .map(|row| {
            let eta: f64 = row.iter().zip(&truth).map(|(x, t)| f64::from(*x) * t).sum();
            f64::from(u8::from(
                rng.random_range(0.0..1.0) < 1.0 / (1.0 + (-eta).exp()),
            ))
        })
        .collect();
    Table { rows, labels }
}

impl Table {
    fn data(&self) -> Dataset {
        let names = (0..self.rows[0].len()).map(|j| format!("x{j}")).collect();
        let norm = (1.0 + (NUMBERS + LEVELS.len()) as f64).sqrt();
        let mut set = Dataset::builder_with(names, Some(LabelKind::Binary), norm).unwrap();
        for (x, y) in self.rows.iter().zip(&self.labels) {
            set.push(x, Some(*y > 0.0)).unwrap();
        }
        set.finish().unwrap()
    }

    /// Mode of the posterior and its sds there, by Newton's method.
    fn posterior(&self) -> Vec<(f64, f64)> {
        let d = self.rows[0].len();
        let mut theta = nalgebra::DVector::<f64>::zeros(d);
        let mut inverse = nalgebra::DMatrix::<f64>::zeros(d, d);
        for _ in 0..12 {
            let mut gradient = -&theta / (PRIOR_SD * PRIOR_SD);
            let mut hessian = nalgebra::DMatrix::identity(d, d) / (PRIOR_SD * PRIOR_SD);
            for (x, y) in self.rows.iter().zip(&self.labels) {
                let used: Vec<usize> = (0..d).filter(|j| x[*j] != 0.0).collect();
                let eta: f64 = used.iter().map(|j| f64::from(x[*j]) * theta[*j]).sum();
                let p = 1.0 / (1.0 + (-eta).exp());
                for &i in &used {
                    gradient[i] += f64::from(x[i]) * (y - p);
                    for &j in &used {
                        hessian[(i, j)] += p * (1.0 - p) * f64::from(x[i]) * f64::from(x[j]);
                    }
                }
            }
            inverse = hessian.try_inverse().unwrap();
            theta += &inverse * gradient;
        }
        (0..d).map(|j| (theta[j], inverse[(j, j)].sqrt())).collect()
    }
}

fn plan(algorithm: &str, privacy: &str) -> Plan {
    let text = format!(
        "[data]\nfile = \"made up\"\n[data.label]\ncolumn = \"y\"\n[[data.features]]\ncolumns = [\"x0\"]\nclamp = [-1, 1]\n[model]\nkind = \"logistic\"\nprior = {{ kind = \"normal\", sd = {PRIOR_SD} }}\n[sampler]\nalgorithm = \"{algorithm}\"\n[run]\nchains = 1\niterations = 400\n[privacy]\n{privacy}\n"
    );
    Plan::parse(Path::new("made-up.toml"), text).unwrap()
}

/// Means, and noise of the means (of the releases and of the chain).
fn run(data: Dataset, plan: &Plan, seed: u64) -> Vec<(f64, f64)> {
    let run = AnchoredRun::of(plan, data, EngineChoice::Cpu, seed).unwrap();
    let noise = run.noise.iter().enumerate();
    noise.map(|(j, n)| (run.moments(j).0, n.mean_sd)).collect()
}

/// Root mean square error over the parameters in posterior sds, and the largest error in units
/// of the noise that the run states.
fn errors(found: &[(f64, f64)], exact: &[(f64, f64)]) -> (f64, f64) {
    let pairs = || found.iter().zip(exact);
    let square: f64 = pairs().map(|((m, _), (t, s))| ((m - t) / s).powi(2)).sum();
    let worst = pairs()
        .map(|((m, noise), (t, _))| (m - t).abs() / noise)
        .fold(0.0, f64::max);
    ((square / exact.len() as f64).sqrt(), worst)
}

/// The table with its posterior, for all tests of it.
static RARE: LazyLock<(Table, Vec<(f64, f64)>)> = LazyLock::new(|| {
    let table = table();
    let exact = table.posterior();
    (table, exact)
});

/// Without privacy means lie within a third of a posterior sd: draws of the Gaussian at the mode
/// miss skewness, the chain has an error of its own.
#[test]
#[ignore = "study"]
fn rare_levels_are_not_biased_without_privacy() {
    let (table, exact) = &*RARE;
    let open = plan("anchored-barker", "not_private = true");
    let data = table.data();
    assert_eq!(open.model(&data).unwrap().dim(), exact.len());
    let (rms, _) = errors(&run(data, &open, 3), exact);
    println!("without privacy: {rms:.3} sds");
    assert!(rms < 0.33, "{rms}");
}

/// At ε = 3 and 20 means lie within what the run says: no parameter beyond 6 of its stated sds
/// (2e-9 each), and 2.5 and 0.7 posterior sds root mean square. At ε = 20 the anchors of before
/// were off by 10 and more. (400 iterations: what is seen is the anchor's error, not the chain's,
/// and it is the same after 1500.)
#[test]
fn rare_levels_are_not_biased() {
    let (table, exact) = &*RARE;
    for (epsilon, most) in [(3.0, 2.5), (20.0, 0.7)] {
        let private = plan(
            "anchored-barker",
            &format!("epsilon = {epsilon:?}\ndelta = 1e-6"),
        );
        let (rms, worst) = errors(&run(table.data(), &private, 3), exact);
        println!("epsilon {epsilon}: {rms:.3} sds, worst {worst:.2} of the stated noise");
        assert!(rms < most, "{epsilon}: {rms}");
        assert!(worst < 6.0, "{epsilon}: {worst}");
    }
}

/// Labels that bend in the first number, which the model does not know of: rows far out pull its
/// coefficient the other way.
fn bent() -> Table {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let rows: Vec<Vec<f32>> = (0..60_000)
        .map(|_| {
            let u: f32 = rng.random_range(0.0..1.0);
            let flag = u8::from(rng.random_range(0.0..1.0) < 0.45);
            vec![
                1.0,
                2.0 * u * u - 1.0,
                rng.random_range(-0.5..0.5),
                f32::from(flag),
            ]
        })
        .collect();
    let labels = rows
        .iter()
        .map(|x| {
            let x: Vec<f64> = x.iter().copied().map(f64::from).collect();
            let eta = 0.5 + 1.5 * x[1] - 6.0 * x[1] * x[1] + 0.5 * x[2] + 2.0 * x[3];
            f64::from(u8::from(
                rng.random_range(0.0..1.0) < 1.0 / (1.0 + (-eta).exp()),
            ))
        })
        .collect();
    Table { rows, labels }
}

/// In eight runs at ε = 1 the errors of four means are at most 2.6 of the stated noise, root mean
/// square. If the four errors of a run were one and the same, normal of the stated sd with half of
/// that as bias, that would fail with chance 4e-7 (a noncentral χ² of 8). Without an allowance for
/// models that do not hold they are 10.
#[test]
fn a_model_that_does_not_hold_brings_no_silent_bias() {
    let table = bent();
    let exact = table.posterior();
    let private = plan("anchored-barker", "epsilon = 1.0\ndelta = 1e-6");
    let mut squares = 0.0;
    for seed in 0..8 {
        for ((m, noise), (t, sd)) in run(table.data(), &private, seed).iter().zip(&exact) {
            print!("{:.2} ± {:.2}  ", (m - t) / sd, noise / sd);
            squares += ((m - t) / noise).powi(2) / 32.0;
        }
        println!();
    }
    println!("errors are {:.2} of the stated noise", squares.sqrt());
    assert!(squares.sqrt() < 2.6, "{}", squares.sqrt());
}

/// Two columns whose values are a fiftieth of what their bounds allow, a flag of one row in three
/// hundred, and a number.
fn narrow() -> Table {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    // About normal, of sd 0.02: a sum of twelve.
    let small = |rng: &mut ChaCha20Rng| -> f32 {
        let sum: f32 = (0..12).map(|_| rng.random_range(-0.5f32..0.5)).sum();
        0.02 * sum
    };
    let rows: Vec<Vec<f32>> = (0..20_000)
        .map(|_| {
            let flag = u8::from(rng.random_range(0.0..1.0) < 0.003);
            vec![
                1.0,
                small(&mut rng),
                small(&mut rng),
                f32::from(flag),
                rng.random_range(-1.0..1.0),
            ]
        })
        .collect();
    let labels = rows
        .iter()
        .map(|x| {
            let x: Vec<f64> = x.iter().copied().map(f64::from).collect();
            let eta = 8.0 * x[1] - 5.0 * x[2] + x[3] + 0.8 * x[4] - 0.4;
            f64::from(u8::from(
                rng.random_range(0.0..1.0) < 1.0 / (1.0 + (-eta).exp()),
            ))
        })
        .collect();
    Table { rows, labels }
}

/// In eight runs at ε = 3 five means lie within 1.5 posterior sds, root mean square over all, and
/// no mean beyond 6 of its stated sds. (Found: 0.5. For noise of 0.75, which is what it is at most,
/// to look like 1.5 a χ² of 40 would have to be four times its mean: 1e-16.) If no column is asked
/// about the errors are 4.7, and 2.4 if steps of noise are made, for one run loses the flag.
#[test]
fn columns_of_small_values_are_not_taken_for_rare_levels() {
    let table = narrow();
    let exact = table.posterior();
    let private = plan("anchored-barker", "epsilon = 3.0\ndelta = 1e-6");
    let mut squares = 0.0;
    for seed in 0..8 {
        let (rms, worst) = errors(&run(table.data(), &private, seed), &exact);
        println!("{rms:.3} sds, worst {worst:.2} of the stated noise");
        squares += rms * rms / 8.0;
        assert!(worst < 6.0, "{worst}");
    }
    assert!(squares.sqrt() < 1.5, "{}", squares.sqrt());
}

/// 15,120 rows of a linear or logistic regression in 51 levels, the first of which has 120 rows and
/// an effect far from the others'. It has no column: the intercept is its own.
fn with_a_rare_reference(logistic: bool) -> String {
    let mut rng = ChaCha20Rng::seed_from_u64(41);
    let mut text = String::from("level,age,mass,y\n");
    for level in 0..51 {
        let effect = match level {
            0 => -1.3,
            _ => 0.5 * rng.sample::<f64, _>(StandardNormal),
        };
        for _ in 0..if level == 0 { 120 } else { 300 } {
            let age: f64 = rng.random_range(20.0..90.0);
            let mass: f64 = 26.0 + 5.8 * rng.sample::<f64, _>(StandardNormal);
            let mass = mass.clamp(12.0, 60.0);
            let eta = effect + 0.8 * (age - 55.0) / 35.0 + 0.5 * (mass - 36.0) / 24.0;
            let y = match logistic {
                true => f64::from(rng.random_range(0.0..1.0) < 1.0 / (1.0 + (-eta).exp())),
                false => (eta + rng.sample::<f64, _>(StandardNormal)).clamp(-6.0, 6.0),
            };
            writeln!(text, "L{level},{age:.0},{mass:.1},{y:.3}").unwrap();
        }
    }
    text
}

/// What runs say of the intercept where the first level is rare: how far off it is from that
/// without privacy, in posterior sds, root mean square, and the same in sds of the noise that is
/// stated.
fn intercept_of_a_rare_reference(logistic: bool, epsilon: f64, runs: u64) -> [f64; 2] {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), with_a_rare_reference(logistic)).unwrap();
    let levels: Vec<String> = (0..51).map(|i| format!("\"L{i}\"")).collect();
    let levels = levels.join(", ");
    let (label, model) = match logistic {
        true => ("positive = [1]", "kind = \"logistic\""),
        false => ("clamp = [-6, 6]", "kind = \"linear\"\nvariance = 1"),
    };
    let run = |privacy: &str, seed| {
        let text = format!(
            "[data]\nfile = \"t.csv\"\n[columns]\nlevel = {{ levels = [{levels}], strict = true }}\ny = {{ {label} }}\nage = {{ scale = [20, 90] }}\nmass = {{ scale = [12, 60] }}\n[model]\n{model}\nprior = {{ kind = \"normal\", sd = 10 }}\nformula = \"y ~ age + mass + level\"\n[sampler]\nalgorithm = \"dp-laplace\"\n[run]\nchains = 1\niterations = 2000\n{privacy}"
        );
        let plan = Plan::parse(&folder.path().join("run.toml"), text).unwrap();
        let data = plan.load_data().unwrap();
        AnchoredRun::of(&plan, data, EngineChoice::Cpu, seed).unwrap()
    };
    let exact = run("[privacy]\nnot_private = true\n", 0).moments(0);
    let privacy = format!("[privacy]\nepsilon = {epsilon:?}\ndelta = 1e-6\n");
    let mut squares = [0.0; 2];
    for seed in 0..runs {
        let noisy = run(&privacy, seed);
        let (off, stated) = (noisy.moments(0).0 - exact.0, noisy.noise[0].mean_sd);
        squares[0] += (off / exact.1).powi(2) / runs as f64;
        squares[1] += (off / stated).powi(2) / runs as f64;
    }
    squares.map(f64::sqrt)
}

/// Where products of levels with the intercept were taken for nothing until they were seen, the
/// rows without a level's column seemed to be all rows, and noise of all levels hid that they are
/// few: it was 9.0 and 2.0 posterior sds off, 6.7 and 3.7 of those that were stated.
#[test]
fn a_rare_level_without_a_column_is_told() {
    for (logistic, most) in [(false, 6.0), (true, 1.7)] {
        let [off, sds] = intercept_of_a_rare_reference(logistic, 3.0, 6);
        println!("{logistic}: {off:.2} {sds:.2}");
        assert!(off < most && sds < 1.8, "{logistic}: {off} {sds}");
    }
}

/// Without privacy 30 rows of 20,030 tell the intercept where only they have no other level: in a
/// linear regression it is their mean. Where coordinates made their rows 26 times as long as others
/// these were clipped, and it was 2 off.
#[test]
fn a_rare_level_without_a_column_is_told_without_privacy() {
    let mut rng = ChaCha20Rng::seed_from_u64(43);
    let (mut text, mut sum) = (String::from("level,y\n"), 0.0);
    for i in 0..20_030 {
        let level = if i < 30 { 0 } else { 1 + i % 5 };
        let effect = if level == 0 {
            -1.3
        } else {
            0.2 * f64::from(level)
        };
        let y = (effect + rng.sample::<f64, _>(StandardNormal)).clamp(-6.0, 6.0);
        writeln!(text, "L{level},{y:.3}").unwrap();
        sum += if level == 0 { y } else { 0.0 };
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), text).unwrap();
    let run_file = "[data]\nfile = \"t.csv\"\n[columns]\nlevel = { levels = [\"L0\", \"L1\", \"L2\", \"L3\", \"L4\", \"L5\"], strict = true }\ny = { clamp = [-6, 6] }\n[model]\nkind = \"linear\"\nvariance = 1\nprior = { kind = \"normal\", sd = 10 }\nformula = \"y ~ level\"\n[sampler]\nalgorithm = \"dp-laplace\"\n[run]\nchains = 1\niterations = 4000\n[privacy]\nnot_private = true\n";
    let plan = Plan::parse(&folder.path().join("run.toml"), run_file.to_string()).unwrap();
    let data = plan.load_data().unwrap();
    let run = AnchoredRun::of(&plan, data, EngineChoice::Cpu, 1).unwrap();
    let (mean, sd, _) = run.moments(0);
    let [known, width] = [sum / 30.01, 30.01f64.sqrt().recip()];
    println!("{mean:.3} {sd:.3} {known:.3} {width:.3}");
    assert!((mean - known).abs() < 0.1 * width && (sd / width - 1.0).abs() < 0.1);
}
