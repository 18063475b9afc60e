//! A posterior's parameters as one picture, SVG or PNG. How text, lines and ticks look is here for
//! other pictures to share.

pub mod axis;
mod panel;
mod picture;
mod png;
pub mod style;

use std::path::Path;

use self::picture::Picture;
pub use self::png::png;
use crate::diagnostics::ess_bulk;

/// A parameter as it is drawn.
#[derive(Clone, Debug)]
pub struct Marginal {
    /// Its name.
    pub name: String,
    /// One vector of draws a chain; those that are not finite are passed over.
    pub chains: Vec<Vec<f64>>,
    /// Its 90 % interval, where the draws do not hold all that is known of it (the noise for
    /// privacy): the draws' own quantiles without.
    pub interval: Option<[f64; 2]>,
}

impl Marginal {
    /// Its finite draws.
    fn sorted(&self) -> Vec<f64> {
        let mut draws: Vec<f64> = self.chains.iter().flatten().copied().collect();
        draws.retain(|x| x.is_finite());
        draws.sort_unstable_by(f64::total_cmp);
        draws
    }

    /// How many independent draws it is worth.
    fn effective(&self) -> f64 {
        ess_bulk(&self.chains)
    }
}

/// Draws up to twelve parameters as densities (the kernel density of the draws pooled over chains,
/// the 90 % interval shaded, a line at the mean), the first 250 of more of them as lines under each
/// other, to the file at `path`: PNG where its name ends so, else SVG.
///
/// # Errors
/// What keeps the picture from being made, or the file from being written.
pub fn write(parameters: &[Marginal], title: &str, path: &Path) -> Result<(), String> {
    let picture = Picture::new(some(parameters)?, title);
    let extension = path.extension().unwrap_or_default();
    let bytes = match extension.eq_ignore_ascii_case("png") {
        true => picture.png(),
        false => picture.svg().map(String::into_bytes),
    };
    let bytes = bytes.map_err(|e| format!("cannot draw the marginals: {e}"))?;
    std::fs::write(path, bytes).map_err(|e| format!("{}: cannot be written: {e}", path.display()))
}

/// Densities of any number of parameters as the text of an SVG.
///
/// # Errors
/// What keeps the picture from being made.
pub fn densities(parameters: &[Marginal], title: &str) -> Result<String, String> {
    let picture = Picture::densities(some(parameters)?, title);
    picture
        .svg()
        .map_err(|e| format!("cannot draw the marginals: {e}"))
}

fn some(parameters: &[Marginal]) -> Result<&[Marginal], String> {
    match parameters.is_empty() {
        true => Err("there is no parameter to draw".into()),
        false => Ok(parameters),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize) -> Vec<f64> {
        (0..n).map(|i| (i as f64 * 0.7).sin()).collect()
    }

    fn parameters(count: usize) -> Vec<Marginal> {
        (0..count)
            .map(|i| Marginal {
                name: format!("beta[{i}]"),
                chains: vec![wave(300), wave(200)],
                interval: None,
            })
            .collect()
    }

    #[test]
    fn every_parameter_has_a_panel_at_900_pixels() {
        for count in [1, 2, 3, 4, 5, 9, 10, 60] {
            let svg = densities(&parameters(count), "posterior").unwrap();
            assert!(svg.starts_with(r#"<svg width="900" height=""#));
            assert!(svg.trim_end().ends_with("</svg>"));
            assert_eq!(svg.matches("beta[").count(), count);
            // Tails and interval of every panel; the legend has one of each.
            assert_eq!(svg.matches("<polygon").count(), 2 * (count + 1));
        }
    }

    #[test]
    fn more_than_twelve_parameters_are_lines() {
        let polygons = |count: usize| {
            let parameters = parameters(count);
            let svg = Picture::new(&parameters, "posterior").svg().unwrap();
            assert_eq!(svg.matches("beta[").count(), count);
            svg.matches("<polygon").count()
        };
        assert_eq!(polygons(12), 2 * 13);
        // A mark each, and one in the legend.
        assert_eq!(polygons(13), 14);
    }

    #[test]
    fn of_a_whole_network_the_first_parameters_are_drawn_and_it_says_so() {
        let parameters = parameters(300);
        let svg = Picture::new(&parameters, "posterior").svg().unwrap();
        assert_eq!(svg.matches("beta[").count(), 250);
        assert!(svg.contains("the first 250 of 300 parameters"));
    }

    #[test]
    fn an_interval_that_is_given_is_drawn_in_place_of_the_draws_own() {
        for count in [1, 13] {
            let mut given = parameters(count);
            let own = Picture::new(&given, "posterior").svg().unwrap();
            assert!(!own.contains("noise"));
            given[0].interval = Some([-3.0, 3.0]);
            let wider = Picture::new(&given, "posterior").svg().unwrap();
            assert!(wider.contains("the noise for privacy included"));
            assert_ne!(wider, own);
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
            for interval in [None, Some([f64::NAN, 1.0]), Some([-1.0, f64::MAX])] {
                let parameter = Marginal {
                    name: "a<b & \u{0}\"c\"".to_owned(),
                    chains: chains.clone(),
                    interval,
                };
                for count in [1, 13] {
                    let parameters = vec![parameter.clone(); count];
                    let svg = Picture::new(&parameters, "x < y").svg().unwrap();
                    assert!(svg.contains("a&lt;b &amp; &quot;c&quot;"));
                    assert!(!svg.contains("NaN") && !svg.contains("inf"));
                }
            }
        }
    }

    #[test]
    fn files_are_written_or_the_reason_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("marginals.svg");
        write(&parameters(2), "posterior", &path).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("beta[1]"));
        for count in [2, 40] {
            let path = folder.path().join("marginals.PNG");
            write(&parameters(count), "posterior", &path).unwrap();
            assert!(std::fs::read(&path).unwrap().starts_with(b"\x89PNG"));
        }
        let nowhere = folder.path().join("none/marginals.svg");
        let error = write(&parameters(1), "posterior", &nowhere).unwrap_err();
        assert!(error.contains("none/marginals.svg"));
        assert!(write(&[], "posterior", &path).is_err());
    }
}
