//! The horseshoe (Carvalho, Polson & Scott 2010): b ~ N(0, τ²λ²) with λ half-Cauchy.

/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;
/// From here on by a continued fraction.
const LARGE: f64 = 2.0;

/// `e^q E₁(q)`, E₁ the exponential integral; b with q = b²/(2τ²) has the density (2π³)^−½/τ times
/// it. By the series 5.1.11 and the continued fraction 5.1.22 of Abramowitz & Stegun.
pub(super) fn kernel(q: f64) -> f64 {
    if q > 1e15 {
        return 1.0 / q;
    }
    if q < LARGE {
        let q = q.max(1e-300);
        let (mut sum, mut term) = (-EULER - q.ln(), 1.0);
        for k in 1..40 {
            let k = f64::from(k);
            term *= -q / k;
            sum -= term / k;
            if term.abs() < 1e-18 {
                break;
            }
        }
        return q.exp() * sum;
    }
    // Lentz' method: 1/(q+1 − 1/(q+3 − 4/(q+5 − …))).
    let mut b = q + 1.0;
    let (mut c, mut d) = (1e300, 1.0 / b);
    let mut value = d;
    for i in 1..200 {
        let a = -f64::from(i * i);
        b += 2.0;
        d = 1.0 / (a * d + b);
        c = b + a / c;
        let by = c * d;
        value *= by;
        if (by - 1.0).abs() < 1e-14 {
            break;
        }
    }
    value
}

/// Mean of 1/λ² given b and τ, by q = b²/(2τ²): the slope of log kernel, which is 1 − 1/(q·kernel).
pub(super) fn mean_precision(q: f64) -> f64 {
    let q = q.max(1e-300);
    // Far out 1/(q·kernel) is 1 + 1/q − 1/q² + …, and its difference from 1 is lost otherwise.
    match q > 1e7 {
        true => 1.0 / q,
        false => (1.0 / (q * kernel(q)) - 1.0).max(0.0),
    }
}
