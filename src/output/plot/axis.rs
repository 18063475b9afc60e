//! Round ticks for a horizontal axis, and numbers as labels.

use super::style::LABEL;

/// Two to four round numbers between `low` and `high`, with labels that
/// `width` pixels have room for.
pub fn ticks(low: f64, high: f64, width: f64) -> Vec<(f64, String)> {
    // Starting from steps too small, the first that gives at most four ticks;
    // no step is more than twice the one before it, so there are at least two.
    let magnitude = 10_f64.powf(((high - low) / 5.0).log10().floor());
    for (round, digits) in [(1.0, 0), (2.0, 0), (2.5, 1), (5.0, 0), (10.0, 0), (20.0, 0)] {
        let step = round * magnitude;
        let (first, last) = ((low / step).ceil(), (high / step).floor());
        if last - first > 3.0 {
            continue;
        }
        let values: Vec<f64> = (0..=(last - first) as usize)
            .map(|i| (first + i as f64) * step)
            .collect();
        let labels: Vec<String> = values
            .iter()
            .map(|&v| tick_label(v, step, digits))
            .collect();
        let widest = labels.iter().map(|l| LABEL.width(l)).fold(0.0, f64::max);
        let needed = (widest + 8.0) * labels.len() as f64;
        let every = (needed / width).ceil().max(1.0) as usize;
        return values.into_iter().zip(labels).step_by(every).collect();
    }
    Vec::new()
}

/// A tick's value with the decimals that tell it from its neighbours.
/// `digits` is the number of digits of the step after its first.
fn tick_label(value: f64, step: f64, digits: usize) -> String {
    // The small addend keeps a step of 0.1 (or 0.0999…) at one decimal.
    let exponent = (step.log10() + 1e-9).floor() as i32;
    let decimals = usize::try_from(-exponent).map_or(0, |d| d + digits);
    let label = if value == 0.0 {
        "0".to_owned()
    } else if step >= 1e4 || decimals > 5 {
        let above = ((value.abs().log10() + 1e-9).floor() as i32 - exponent).max(0);
        format!("{value:.*e}", above as usize + digits)
    } else {
        format!("{value:.decimals$}")
    };
    label.replace('-', "−")
}

/// A number with up to six significant digits.
pub fn constant_label(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    let label = if value == 0.0 || (1e-3..1e6).contains(&value.abs()) {
        rounded.to_string()
    } else {
        format!("{rounded:e}")
    };
    label.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, width: f64) -> Vec<String> {
        let ticks = ticks(low, high, width);
        assert!(ticks.iter().all(|(v, _)| (low..=high).contains(v)));
        ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_told_apart() {
        assert_eq!(labels(-2.3, 2.9, 200.0), ["−2", "0", "2"]);
        assert_eq!(labels(0.01, 0.13, 200.0), ["0.05", "0.10"]);
        assert_eq!(labels(-60.0, 30.0, 200.0), ["−50", "−25", "0", "25"]);
        assert_eq!(labels(0.2, 1.0, 200.0), ["0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(
            labels(9.9e6, 1.16e7, 400.0),
            ["1.00e7", "1.05e7", "1.10e7", "1.15e7"]
        );
        assert_eq!(
            labels(-1e-9, 2e-9, 400.0),
            ["−1e-9", "0", "1e-9", "2e-9"].map(|l| l.replace('-', "−"))
        );
        // Where labels are too long for all, every other one is left out.
        assert_eq!(labels(1000.0001, 1000.00042, 120.0).len(), 2);
    }

    #[test]
    fn any_range_has_ticks() {
        for exponent in -300..300 {
            for range in [1.0, 1.9, 2.4, 3.3, 4.9, 5.1, 7.7, 9.99] {
                let low = 0.37 * 10_f64.powi(exponent);
                let count = labels(low, low + range * 10_f64.powi(exponent), 1e4).len();
                assert!((2..=4).contains(&count), "{low} {range}: {count}");
            }
        }
    }

    #[test]
    fn constants_keep_six_digits() {
        let found = [0.25, 0.0, -1.5e-7, 1e300, 1234.5678, f64::MIN_POSITIVE].map(constant_label);
        assert_eq!(
            found,
            ["0.25", "0", "−1.5e−7", "1e300", "1234.57", "2.22507e−308"]
        );
    }
}
