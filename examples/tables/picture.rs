//! The study as one SVG: error against ε, a panel a table, a line a method.

use std::fmt::Write as _;
use std::path::Path;

use super::report::Report;

/// Pixels.
const PANEL: (f64, f64) = (250.0, 170.0);
const GAP: (f64, f64) = (44.0, 62.0);
const MARGIN: (f64, f64) = (46.0, 104.0);
const COLUMNS: usize = 3;

/// Start of a method's name, what the legend calls it, colour (Okabe & Ito 2008), dashes.
const LINES: [(&str, &str, &str, &str); 6] = [
    ("dpmc", "dpmc", "#0072b2", ""),
    (
        "objective perturbation, add",
        "objective perturbation, add/remove",
        "#d55e00",
        "2 3",
    ),
    (
        "objective perturbation",
        "objective perturbation",
        "#d55e00",
        "",
    ),
    ("DP-GD", "DP-GD", "#009e73", ""),
    ("AdaSSP", "AdaSSP", "#cc79a7", ""),
    ("diffprivlib", "diffprivlib (pure ε)", "#966e00", ""),
];
const YARDSTICK: (&str, &str, &str, &str) = (
    "",
    "yardstick: one gradient, all else for free",
    "#282828",
    "6 4",
);

struct Axes {
    left: f64,
    top: f64,
    /// Logarithms of the ends.
    x: (f64, f64),
    y: (f64, f64),
}

impl Axes {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let share = |v: f64, (low, high): (f64, f64)| (v.ln() - low) / (high - low).max(1e-9);
        (
            self.left + PANEL.0 * share(x, self.x),
            self.top + PANEL.1 * (1.0 - share(y, self.y)),
        )
    }
}

pub fn write(reports: &[Report], path: &Path) -> Result<(), String> {
    std::fs::write(path, svg(reports)).map_err(|e| format!("{}: {e}", path.display()))
}

fn svg(reports: &[Report]) -> String {
    let columns = COLUMNS.min(reports.len().max(1));
    let rows = reports.len().div_ceil(columns);
    let width = MARGIN.0 + COLUMNS as f64 * (PANEL.0 + GAP.0);
    let height = MARGIN.1 + rows as f64 * (PANEL.1 + GAP.1);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans, Verdana, sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(
        &mut out,
        (MARGIN.0, 22.0),
        "font-size=\"15\"",
        "Error of private regressions, in posterior standard deviations, against ε (δ = 1e-6)",
    );
    legend(&mut out, reports);
    for (i, report) in reports.iter().enumerate() {
        let axes = Axes {
            left: MARGIN.0 + (i % columns) as f64 * (PANEL.0 + GAP.0),
            top: MARGIN.1 + (i / columns) as f64 * (PANEL.1 + GAP.1) + 22.0,
            x: ends(report.yardstick.iter().map(|p| p.0), 0.04),
            y: ends(errors(report), 0.1),
        };
        panel(&mut out, report, &axes);
    }
    out + "</svg>\n"
}

/// Points of one line: methods whose name starts so, but not with a longer start.
fn points(report: &Report, line: usize) -> Vec<(f64, Option<f64>, bool)> {
    let of = |method: &str| LINES.iter().position(|l| method.starts_with(l.0));
    let scores = report.scores.iter().filter(|s| of(&s.method) == Some(line));
    // The first algorithm alone, where several were asked for.
    let first = report.scores.iter().find(|s| of(&s.method) == Some(line));
    let first = first.map(|s| s.method.clone());
    scores
        .filter(|s| Some(&s.method) == first.as_ref())
        .map(|s| (s.epsilon, s.rms, s.none > 0))
        .collect()
}

fn errors(report: &Report) -> impl Iterator<Item = f64> {
    let scores = report.scores.iter().filter_map(|s| s.rms);
    scores.chain(report.yardstick.iter().map(|p| p.1))
}

/// Logarithms of the least and largest, and a little more.
fn ends(values: impl Iterator<Item = f64>, slack: f64) -> (f64, f64) {
    let logs: Vec<f64> = values
        .filter(|v| *v > 0.0 && v.is_finite())
        .map(f64::ln)
        .collect();
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let more = slack * (high - low).max(1.0);
    (low - more, high + more)
}

fn panel(out: &mut String, report: &Report, axes: &Axes) {
    let (left, top) = (axes.left, axes.top);
    let (right, bottom) = (left + PANEL.0, top + PANEL.1);
    let rows = thousands(report.rows);
    let name = format!(
        "{} ({}, {rows} × {})",
        report.table, report.model, report.coefficients
    );
    text(out, (left, top - 8.0), "font-weight=\"bold\"", &name);
    let _ = writeln!(
        out,
        "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#888\"/>"
    );
    for (epsilon, _) in &report.yardstick {
        let x = axes.at(*epsilon, 1.0).0;
        let label = epsilon.to_string();
        text(out, (x, bottom + 15.0), "text-anchor=\"middle\"", &label);
    }
    text(out, (right, bottom + 28.0), "text-anchor=\"end\"", "ε");
    for exponent in -3..6 {
        for digit in [1.0, 2.0, 5.0] {
            let value = digit * 10f64.powi(exponent);
            let inside = value.ln() >= axes.y.0 && value.ln() <= axes.y.1;
            // Over two decades the tens alone are enough.
            if !inside || (digit > 1.0 && axes.y.1 - axes.y.0 > 5.0) {
                continue;
            }
            let y = axes.at(1.0, value).1;
            let color = if value == 1.0 { "#999" } else { "#e4e4e4" };
            let _ = writeln!(
                out,
                "<path d=\"M{left} {y:.1}H{right}\" stroke=\"{color}\"/>"
            );
            let at = (left - 5.0, y + 4.0);
            text(out, at, "text-anchor=\"end\"", &format!("{value}"));
        }
    }
    for (line, style) in LINES.iter().enumerate().rev() {
        curve(out, axes, &points(report, line), style);
    }
    let free = report.yardstick.iter().map(|p| (p.0, Some(p.1), false));
    curve(out, axes, &free.collect::<Vec<_>>(), &YARDSTICK);
}

/// Joined dots; open ones where some runs released nothing.
fn curve(
    out: &mut String,
    axes: &Axes,
    points: &[(f64, Option<f64>, bool)],
    (_, name, color, dashes): &(&str, &str, &str, &str),
) {
    let width = if *name == "dpmc" { 2.6 } else { 1.5 };
    let placed: Vec<(f64, f64, bool)> = points
        .iter()
        .filter_map(|&(x, y, open)| {
            let at = axes.at(x, y.filter(|y| y.is_finite())?);
            Some((at.0, at.1, open))
        })
        .collect();
    let path: Vec<String> = placed
        .iter()
        .map(|p| format!("{:.1},{:.1}", p.0, p.1))
        .collect();
    let _ = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\" \
         stroke-dasharray=\"{dashes}\"/>",
        path.join(" ")
    );
    for (x, y, open) in placed {
        let fill = if open { "white" } else { color };
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{fill}\" stroke=\"{color}\"/>"
        );
    }
    // Where no run released anything, a cross at the foot.
    for &(x, y, _) in points {
        if y.is_none() {
            let x = axes.at(x, 1.0).0;
            let at = (x, axes.top + PANEL.1 - 4.0);
            let look = format!("text-anchor=\"middle\" font-size=\"20\" fill=\"{color}\"");
            text(out, at, &look, "×");
        }
    }
}

fn legend(out: &mut String, reports: &[Report]) {
    let used = |line: &usize| reports.iter().any(|r| !points(r, *line).is_empty());
    let mut styles: Vec<_> = (0..LINES.len()).filter(used).map(|i| LINES[i]).collect();
    styles.push(YARDSTICK);
    for (i, (_, name, color, dashes)) in styles.into_iter().enumerate() {
        let x = MARGIN.0 + (i % COLUMNS) as f64 * (PANEL.0 + GAP.0);
        let y = 44.0 + 17.0 * (i / COLUMNS) as f64;
        let _ = writeln!(
            out,
            "<path d=\"M{x} {y}h26\" stroke=\"{color}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dashes}\"/>"
        );
        text(out, (x + 32.0, y + 4.0), "", name);
    }
    let note = "open dots: some runs released nothing; ×: none did";
    text(out, (MARGIN.0, MARGIN.1 - 8.0), "fill=\"#555\"", note);
}

fn text(out: &mut String, (x, y): (f64, f64), attributes: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{content}</text>"
    );
}

fn thousands(n: usize) -> String {
    match n / 1000 {
        0 => n.to_string(),
        k => format!("{k},{:03}", n % 1000),
    }
}
