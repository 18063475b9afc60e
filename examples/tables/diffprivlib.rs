//! diffprivlib's logistic regression (Holohan et al. 2019), where Python has it: the example
//! writes the rows as NPY files and `benches/peers/diffprivlib_logistic.py` prints what it fits.
//! Pure ε, objective perturbation after Chaudhuri, Monteleoni & Sarwate (2011), C = 1 (its
//! default: a prior sd of 1). For rows whose norm is not 1 its Hessian term is doubtful: read it
//! as a hint.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::arguments::Arguments;
use super::glm::{Model, Problem};
use super::outcome::Outcome;

pub const NAME: &str = "diffprivlib, pure ε as it claims";

/// What the script prints: one a line.
#[derive(Deserialize)]
struct Fit {
    theta: Vec<f64>,
    seconds: f64,
}

/// One outcome an ε; none where Python has no diffprivlib, which is said once a table.
pub fn run(problem: &Problem<'_>, a: &Arguments, repeat: u64, folder: &Path) -> Vec<Outcome> {
    if problem.model != Model::Logistic || a.python.is_empty() {
        return Vec::new();
    }
    fits(problem, a, repeat, folder).unwrap_or_else(|why| {
        if repeat == 0 {
            eprintln!("diffprivlib: left out: {why}");
        }
        Vec::new()
    })
}

fn fits(
    problem: &Problem<'_>,
    a: &Arguments,
    repeat: u64,
    folder: &Path,
) -> Result<Vec<Outcome>, String> {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/diffprivlib_logistic.py");
    // Before the rows are written: most have no such Python.
    call(a, &script, &["--check"])?;
    let (x, y) = (folder.join("x.npy"), folder.join("y.npy"));
    let rows = problem.design.rows();
    let shape = format!("({rows}, {})", problem.design.d);
    let cells = (0..rows).flat_map(|i| problem.design.dense(i));
    write_npy(&x, &shape, cells).map_err(|e| e.to_string())?;
    let labels = problem.y.iter().copied();
    write_npy(&y, &format!("({rows},)"), labels).map_err(|e| e.to_string())?;
    let epsilons: Vec<String> = a.epsilons.iter().map(f64::to_string).collect();
    let (norm, seed) = (problem.row_norm.to_string(), repeat.to_string());
    let (x, y) = (x.to_string_lossy(), y.to_string_lossy());
    let text = call(a, &script, &[&x, &y, &norm, &epsilons.join(","), &seed])?;
    text.lines()
        .map(|line| {
            let fit: Fit = serde_json::from_str(line).map_err(|e| e.to_string())?;
            Ok(Outcome::estimate(fit.theta, fit.seconds))
        })
        .collect()
}

fn call(a: &Arguments, script: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new(&a.python);
    let output = command.arg(script).args(words).output();
    let output = output.map_err(|e| format!("{}: {e}", a.python))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(said.lines().last().unwrap_or("no message").to_owned())
}

/// Numbers in f32, row-major, after the header of NPY 1.0.
fn write_npy(path: &Path, shape: &str, values: impl Iterator<Item = f64>) -> std::io::Result<()> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&(header.len() as u16).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    for value in values {
        file.write_all(&(value as f32).to_le_bytes())?;
    }
    file.flush()
}
