//! Numbers of a guarantee in a few digits: what is printed promises no more than is kept.

/// An ε, ρ or μ in four decimals, a small one in three digits; never less than it is.
pub fn guarantee_number(v: f64) -> String {
    rounded_up(v, |v| match v {
        v if v > 0.0 && v < 1e-3 => format!("{v:.2e}"),
        v => format!("{v:.4}"),
    })
}

/// The least number not under `v` that `text` can write, as it writes it.
pub fn rounded_up(v: f64, text: impl Fn(f64) -> String) -> String {
    let is_enough = |text: &String| text.parse().is_ok_and(|printed: f64| printed >= v);
    // A step that doubles passes half of the last digit before it passes all of it.
    let step = |k: i32| v.abs() * f64::EPSILON * f64::powi(2.0, k);
    let steps = (0..53).map(|k| text(v + step(k)));
    let all = std::iter::once(text(v)).chain(steps);
    let mut enough = all.filter(is_enough);
    enough.next().unwrap_or_else(|| text(v))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_printed_under_itself() {
        for (v, printed) in [
            (3.0, "3.0000"),
            (2.9737, "2.9737"),
            (2.973_650_1, "2.9737"),
            (2.973_700_1, "2.9738"),
            (0.000_935, "9.35e-4"),
            (0.000_935_4, "9.36e-4"),
            (0.000_999_9, "1.00e-3"),
            (1.6e-7, "1.60e-7"),
            (0.0, "0.0000"),
            (123_456.000_01, "123456.0001"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(guarantee_number(v), printed, "{v}");
        }
        let whole = |v: f64| format!("{v:.0}");
        assert_eq!(rounded_up(4.1, whole), "5");
        assert_eq!(rounded_up(f64::NAN, whole), "NaN");
        let mut v = 1e-9;
        while v < 1e6 {
            let printed: f64 = guarantee_number(v).parse().unwrap();
            assert!(
                printed >= v && printed <= v + 0.0101 * v.max(0.01),
                "{v} {printed}"
            );
            v *= 1.0137;
        }
    }
}
