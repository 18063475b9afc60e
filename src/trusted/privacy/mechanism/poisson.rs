//! Poisson counts whose law is right to 2^-100 in total variation.
//!
//! rand_distr's Poisson follows Ahrens & Dieter (1982), whose constants have ten digits:
//! its law is off by about 1e-10 a draw, which would have to be paid for in δ at every
//! step. Here tables of Poisson(2^k), k = 0…8, are made by repeated convolution in
//! 128-bit fixed point and inverted with 128-bit uniforms; a rate is a sum of them,
//! and its fraction thins a Poisson(1).

use super::secret_rng::SecretRng;

/// Largest power of two tabulated: Poisson(2^8).
const TOP: usize = 8;
/// Bound on the total-variation error of one draw, which the ledger sums up: each table
/// is off by under 2^-106 (tested) and a draw of rate under 2^12 uses at most 25 of them;
/// charged once for every started 2^12 of rate.
pub(in crate::trusted::privacy) const DRAW_DELTA: f64 = 1.0 / (1u128 << 100) as f64;

/// Tables of cumulative probabilities, scaled by 2^128.
pub(in crate::trusted::privacy) struct PoissonSampler {
    /// `cumulative[k][n] = Pr[Poisson(2^k) ≤ n]·2^128`.
    cumulative: Vec<Vec<u128>>,
}

impl PoissonSampler {
    pub(in crate::trusted::privacy) fn new() -> Self {
        let mut mass = unit_mass();
        let mut cumulative = vec![accumulate(&mass)];
        for _ in 0..TOP {
            mass = convolve(&mass);
            cumulative.push(accumulate(&mass));
        }
        PoissonSampler { cumulative }
    }

    /// One draw of Poisson(rate), 0 ≤ rate ≤ 2^32.
    pub(in crate::trusted::privacy) fn draw(&self, rng: &mut SecretRng, rate: f64) -> u64 {
        let whole = rate.floor();
        let mut left = whole as u64;
        let mut count = 0;
        for k in (0..=TOP).rev() {
            while left >= 1 << k {
                count += self.table(rng, k);
                left -= 1 << k;
                if k < TOP {
                    break;
                }
            }
        }
        // Thinning: each of Poisson(1) points is kept with probability frac(rate).
        let fraction = rate - whole;
        if fraction > 0.0 {
            let threshold = (fraction * f64::powi(2.0, 128)) as u128;
            for _ in 0..self.table(rng, 0) {
                count += u64::from(rng.bits128() < threshold);
            }
        }
        count
    }

    fn table(&self, rng: &mut SecretRng, k: usize) -> u64 {
        let u = rng.bits128();
        // The first n with u < cumulative(n).
        self.cumulative[k].partition_point(|&c| c <= u) as u64
    }
}

/// Poisson(1) masses ·2^128: e^-1/n!, from a 128-bit e^-1 made of integers.
fn unit_mass() -> Vec<u128> {
    // e^-1 = Σ (−1)^n/n!, pairwise positive: Σ_{m≥1} 1/(2m)! − 1/(2m+1)! = Σ 2m/(2m+1)!.
    let mut inverse_factorial = u128::MAX; // 1/n!, scaled
    let mut e = 0u128;
    for n in 2u128..40 {
        inverse_factorial /= n;
        if n % 2 == 0 {
            e += inverse_factorial;
        } else {
            e -= inverse_factorial;
        }
    }
    let mut mass = vec![e, e];
    let mut n = 2u128;
    while mass[mass.len() - 1] / n > 0 {
        let last = mass[mass.len() - 1];
        mass.push(last / n);
        n += 1;
    }
    mass
}

/// Mass of the sum of two independent draws.
fn convolve(mass: &[u128]) -> Vec<u128> {
    let n = mass.len();
    let mut out = vec![0u128; 2 * n - 1];
    for (i, &a) in mass.iter().enumerate() {
        for (j, &b) in mass.iter().enumerate() {
            out[i + j] += multiply_high(a, b);
        }
    }
    while out.last() == Some(&0) {
        out.pop();
    }
    out
}

/// `a·b / 2^128`, rounded down.
fn multiply_high(a: u128, b: u128) -> u128 {
    let (a1, a0) = (a >> 64, a & u128::from(u64::MAX));
    let (b1, b0) = (b >> 64, b & u128::from(u64::MAX));
    let low = (a0 * b0) >> 64;
    let middle = a1 * b0 + (low & u128::from(u64::MAX));
    let (m1, m0) = (middle >> 64, middle & u128::from(u64::MAX));
    a1 * b1 + m1 + ((a0 * b1 + m0) >> 64)
}

/// Running sums; what truncation lost goes to the last value.
fn accumulate(mass: &[u128]) -> Vec<u128> {
    let mut sum = 0u128;
    let mut out: Vec<u128> = mass
        .iter()
        .map(|&m| {
            sum = sum.saturating_add(m);
            sum
        })
        .collect();
    if let Some(last) = out.last_mut() {
        *last = u128::MAX;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_lose_less_than_they_claim() {
        let mut mass = unit_mass();
        for k in 0..=TOP {
            // Truncation only ever loses mass; all of it together is the error.
            let sum: u128 = mass.iter().sum();
            assert!(
                u128::MAX - sum < 1 << 22,
                "k = {k}: lost {}",
                u128::MAX - sum
            );
            mass = convolve(&mass);
        }
    }

    #[test]
    fn tables_match_the_formula() {
        let s = PoissonSampler::new();
        for k in 0..=TOP {
            let rate = f64::powi(2.0, k as i32);
            let mut p = (-rate).exp();
            let mut sum = 0.0;
            for (n, &c) in s.cumulative[k].iter().enumerate().take(400) {
                if n > 0 {
                    p *= rate / n as f64;
                }
                sum += p;
                let table = c as f64 / f64::powi(2.0, 128);
                assert!((table - sum).abs() < 1e-12, "rate {rate}, n {n}");
            }
        }
    }

    /// Chi-square at a rate that uses several tables and the fraction; about 60 cells,
    /// above 150 with probability under 1e-8.
    #[test]
    fn draws_follow_the_law() {
        let s = PoissonSampler::new();
        let mut rng = SecretRng::from_seed(3, 0);
        let (rate, draws) = (300.7f64, 200_000);
        let mut counts = vec![0u64; 800];
        for _ in 0..draws {
            counts[s.draw(&mut rng, rate) as usize] += 1;
        }
        let mut log_factorial = 0.0;
        let mut chi = 0.0;
        let mut cells = 0;
        for (n, &seen) in counts.iter().enumerate() {
            if n > 0 {
                log_factorial += (n as f64).ln();
            }
            let expected = draws as f64 * (n as f64 * rate.ln() - rate - log_factorial).exp();
            if expected > 300.0 {
                chi += (seen as f64 - expected).powi(2) / expected;
                cells += 1;
            }
        }
        assert!(cells > 50 && cells < 100, "{cells}");
        assert!(
            chi < 3.0 * f64::from(cells),
            "chi-square {chi} over {cells} cells"
        );
    }
}
