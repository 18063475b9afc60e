//! A posterior's marginal densities as one SVG file. How text, lines and ticks look is here for
//! other pictures to share.

pub mod axis;
mod panel;
pub mod style;

use std::path::Path;

use plotters::prelude::{IntoDrawingArea, SVGBackend};
use plotters::style::WHITE;
use plotters::style::text_anchor::HPos;

use self::panel::Panel;
use self::style::{
    CURVE, Canvas, INTERVAL, LEGEND, MEAN, TAILS, TITLE, WIDTH, fill, line, message, text, units,
};

/// Space around all panels, and between two of them.
const MARGIN: f64 = 24.0;
/// Height of the head, with title and legend.
const HEAD: f64 = 76.0;
/// Height of a panel's name above, and of its tick labels below, the curve.
const PANEL_NAME: f64 = 24.0;
const PANEL_LABELS: f64 = 30.0;

/// Draws one panel a parameter: the kernel density of the draws pooled over
/// chains, the interval between their 5 % and 95 % quantiles shaded, and a line
/// at their mean. A parameter comes as its name and one vector of draws a
/// chain. Draws that are not finite are passed over; constant draws give a
/// line.
pub fn marginals_svg(
    parameters: &[(String, Vec<Vec<f64>>)],
    title: &str,
    path: &Path,
) -> Result<(), String> {
    let svg = marginals(parameters, title)?;
    std::fs::write(path, svg).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// The same picture as text.
pub fn marginals(parameters: &[(String, Vec<Vec<f64>>)], title: &str) -> Result<String, String> {
    if parameters.is_empty() {
        return Err("there is no parameter to draw".to_owned());
    }
    render(parameters, title).map_err(|e| format!("cannot draw the marginals: {e}"))
}

fn render(parameters: &[(String, Vec<Vec<f64>>)], title: &str) -> Result<String, String> {
    // Few parameters share the width; many go three, then four a row.
    let (columns, curve_height) = match parameters.len() {
        1 => (1, 220.0),
        2 => (2, 160.0),
        4 | 10.. => (4, 104.0),
        _ => (3, 104.0),
    };
    let rows = parameters.len().div_ceil(columns);
    let row_height = PANEL_NAME + curve_height + PANEL_LABELS;
    let height = HEAD + rows as f64 * row_height + MARGIN / 2.0;
    // From the left side of a panel to that of the next.
    let pitch = (WIDTH - MARGIN) / columns as f64;

    let size = (units(WIDTH) as u32, units(height) as u32);
    let mut svg = String::new();
    {
        let canvas = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        canvas.fill(&WHITE).map_err(message)?;
        draw_head(&canvas, title)?;
        for (i, (name, chains)) in parameters.iter().enumerate() {
            let left = MARGIN + (i % columns) as f64 * pitch;
            let top = HEAD + (i / columns) as f64 * row_height + PANEL_NAME;
            let panel = Panel {
                canvas: &canvas,
                left,
                right: left + pitch - MARGIN,
                top,
                bottom: top + curve_height,
                overhang: MARGIN / 2.0 - 2.0,
            };
            panel.draw(name, chains)?;
        }
        canvas.present().map_err(message)?;
    }
    let in_units = format!(r#"width="{}" height="{}""#, size.0, size.1);
    let in_pixels = format!(r#"width="{WIDTH}" height="{height}""#);
    Ok(svg.replacen(&in_units, &in_pixels, 1))
}

/// The title, and below it what the marks in the panels mean.
fn draw_head(canvas: &Canvas, title: &str) -> Result<(), String> {
    let title = TITLE.fit(title, WIDTH - 2.0 * MARGIN);
    text(canvas, TITLE, &title, (MARGIN, 26.0), HPos::Left)?;

    let (top, middle, bottom) = (48.0, 53.0, 58.0);
    let mut x = MARGIN;
    for (color, label) in [
        (Some(TAILS), "posterior density"),
        (Some(INTERVAL), "90 % interval"),
        (None, "mean"),
    ] {
        let right = x + 14.0;
        if let Some(color) = color {
            let corners = [(x, bottom), (x, top), (right, top), (right, bottom)];
            fill(canvas, color, &corners)?;
            line(canvas, CURVE, &[(x, top), (right, top)])?;
        } else {
            line(canvas, MEAN, &[(x + 7.0, top), (x + 7.0, bottom)])?;
        }
        text(canvas, LEGEND, label, (right + 7.0, middle), HPos::Left)?;
        x = right + 7.0 + LEGEND.width(label) + 12.0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize) -> Vec<f64> {
        (0..n).map(|i| (i as f64 * 0.7).sin()).collect()
    }

    fn parameters(count: usize) -> Vec<(String, Vec<Vec<f64>>)> {
        (0..count)
            .map(|i| (format!("beta[{i}]"), vec![wave(300), wave(200)]))
            .collect()
    }

    #[test]
    fn every_parameter_has_a_panel_at_900_pixels() {
        for count in [1, 2, 3, 4, 5, 9, 10, 60] {
            let svg = render(&parameters(count), "posterior").unwrap();
            assert!(svg.starts_with(r#"<svg width="900" height=""#));
            assert!(svg.trim_end().ends_with("</svg>"));
            assert_eq!(svg.matches("beta[").count(), count);
            // Tails and interval of every panel; the legend has one of each.
            assert_eq!(svg.matches("<polygon").count(), 2 * (count + 1));
        }
    }

    #[test]
    fn odd_draws_and_names_are_drawn() {
        let cases = [
            vec![],
            vec![vec![]],
            vec![vec![f64::NAN; 9]],
            vec![vec![3.5; 9]],
            vec![vec![f64::MAX; 9]],
            vec![vec![-f64::MAX, f64::MAX, 0.0]],
            vec![vec![1.0]],
            vec![vec![1.0, 2.0], vec![f64::INFINITY]],
            vec![vec![1e-320, 2e-320, 3e-320]],
            vec![vec![1.0, 1.0 + f64::EPSILON]],
        ];
        for chains in cases {
            let parameter = ("a<b & \u{0}\"c\"".to_owned(), chains);
            let svg = render(&[parameter], "x < y").unwrap();
            assert!(svg.contains("a&lt;b &amp; &quot;c&quot;"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }

    #[test]
    fn files_are_written_or_the_reason_is_told() {
        let path = std::env::temp_dir().join(format!("marginals-{}.svg", std::process::id()));
        marginals_svg(&parameters(2), "posterior", &path).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("beta[1]"));
        std::fs::remove_file(&path).unwrap();

        let nowhere = Path::new("/nonexistent/marginals.svg");
        let error = marginals_svg(&parameters(1), "posterior", nowhere).unwrap_err();
        assert!(error.contains("/nonexistent/marginals.svg"));
        assert!(marginals_svg(&[], "posterior", &path).is_err());
    }
}
