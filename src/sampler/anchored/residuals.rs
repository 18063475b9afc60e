//! What a released profile of gradients says of labels that lie farther out than their law expects
//! (docs/proofs/anchors.md, "Labels far out").

use nalgebra::{DMatrix, DVector};

use crate::privacy::Expansion;

/// A range of a profile with rows below this many sds of its noise, and any beyond it, is not
/// seen.
const LOUD: f64 = 2.5;
/// Beyond these there are at most this many of those in the range before.
const GROWN_FEWER: f64 = 0.5;
/// A wider clip is chosen for what is cut less this many sds of its noise.
const SURE: f64 = 2.0;
/// … of which this share is taken to lie in one direction, over the number of those there are.
const COHERENT: f64 = 0.5;

/// Rows by the length of their gradients before they are clipped, in whitened coordinates.
pub(super) struct Residuals {
    /// Of each range: its length, nats, rows with scores from 0 on, rows with others.
    ranges: Vec<(f64, [f64; 2])>,
    /// Ranges that were seen, and the noise of a number of rows there.
    heard: usize,
    sd: f64,
}

/// What clipping takes off gradients, added up over rows, nats in whitened coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cut {
    /// Of all rows.
    pub all: f64,
    /// Of rows on one side less those on the other.
    pub lopsided: f64,
    /// Of all rows at least.
    pub sure: f64,
}

impl Residuals {
    /// From a profile that was released where the largest gradient that is kept is `longest`, nats.
    /// Beyond what is seen rows grow fewer from range to range, by the square of what the range
    /// before was fewer by: so do those of normal and of log-normal residuals, about. They are no
    /// more than noise may hide there, in any case.
    pub fn new(seen: &Expansion, longest: f64) -> Self {
        let sides: Vec<[f64; 2]> = seen.profile.as_chunks::<2>().0.to_vec();
        let lengths: Vec<f64> = (0..sides.len()).map(|k| 2f64.powi(k as i32)).collect();
        let sum = |k: usize| sides[k][0] + sides[k][1];
        let unheard = LOUD * 2f64.sqrt() * seen.profile_sd;
        let loud = |k: usize| sum(k) > unheard;
        let peak = (0..sides.len()).fold(0, |best, k| if sum(k) > sum(best) { k } else { best });
        let heard = match (peak..sides.len()).find(|k| !loud(*k)) {
            // Noise alone.
            Some(quiet) if quiet == peak => 0,
            quiet => quiet.unwrap_or(sides.len()),
        };
        let mut ranges: Vec<[f64; 2]> = sides[..heard].to_vec();
        let mut ratio = match heard {
            0 => 0.0,
            n if n - 1 == peak => GROWN_FEWER.sqrt(),
            n => (sum(n - 1) / sum(n - 2)).min(GROWN_FEWER.sqrt()),
        };
        while let (true, Some(last)) = (ranges.len() < lengths.len(), ranges.last()) {
            ratio *= ratio;
            let most = sum(ranges.len()).max(0.0) + unheard;
            let by = ratio.min(most / last.iter().sum::<f64>());
            let next = last.map(|rows| rows * by);
            ranges.push(next);
        }
        let middle = longest / 2f64.sqrt();
        let lengths = lengths.iter().map(|length| length * middle);
        Residuals {
            ranges: lengths.zip(ranges).collect(),
            heard,
            sd: seen.profile_sd,
        }
    }

    /// What is cut where gradients are clipped to `most` nats.
    pub fn cut(&self, most: f64) -> Cut {
        let (mut all, mut seen, mut gap) = (0.0, 0.0, 0.0);
        let (mut chance, mut variance, mut carried) = (0.0, 0.0, 0.0);
        let last = self.heard.checked_sub(1);
        let rows = |k: usize| self.ranges[k].1.iter().sum::<f64>();
        // (Either side's entry has noise of its own.)
        let noise = 2.0 * self.sd * self.sd;
        for (k, (length, [above, below])) in self.ranges.iter().enumerate() {
            let excess = excess(*length, most);
            all += excess * (above + below);
            gap += excess * (above - below);
            chance += excess * excess * (above + below);
            if Some(k) >= last {
                // What was not seen follows from the last range that was, noise and all.
                carried += excess * rows(k) / rows(last.unwrap_or(k));
            }
            if k < self.heard {
                seen += excess * (above + below);
                variance += excess * excess * noise;
            }
            if Some(k) < last {
                chance += excess * excess * noise;
            }
        }
        chance += carried * carried * noise;
        Cut {
            all,
            lopsided: (gap * gap - chance).max(0.0).sqrt(),
            sure: (seen - SURE * variance.sqrt()).max(0.0),
        }
    }
}

/// Mean of what lengths in a range of an octave about `middle` are beyond `most`, spread evenly by
/// their logarithms.
fn excess(middle: f64, most: f64) -> f64 {
    let [low, high] = [0.5f64.sqrt() * middle, 2f64.sqrt() * middle];
    let from = most.clamp(low, high);
    (high - from) / std::f64::consts::LN_2 - most * (high / from).log2()
}

impl Cut {
    /// Mean square a coordinate of the bias that it surely makes where rows share parameters, which
    /// feel rows on either side. (Others feel the difference of the two, and so much of that as the
    /// path is off by, that no bound is chosen for it.)
    pub fn bias(self, shared: usize, d: usize) -> f64 {
        match shared {
            0 => 0.0,
            _ => (COHERENT / shared as f64 * self.sure).powi(2) / d as f64,
        }
    }

    /// Root mean square over coordinates of what intervals have room for.
    pub fn room(self, shared: usize, d: usize) -> f64 {
        let square = self.lopsided.powi(2) + shared as f64 * self.all.powi(2);
        (square / d as f64).sqrt()
    }

    /// Covariance that intervals should have room for, of a gradient in d coordinates; `directions`
    /// are those of parameters that rows share.
    pub fn covariance(self, directions: &[DVector<f64>], d: usize) -> DMatrix<f64> {
        let mut sum = DMatrix::identity(d, d) * (self.lopsided.powi(2) / d as f64);
        for direction in directions {
            let unit = direction.normalize();
            sum += &unit * unit.transpose() * self.all.powi(2);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile_of(profile: Vec<f64>) -> Expansion {
        Expansion {
            gradient: Vec::new(),
            curvature: Vec::new(),
            profile,
            gradient_sd: 0.0,
            curvature_sd: 0.0,
            profile_sd: 10.0,
        }
    }

    /// Numbers of rows that fall from range to range on one side; what is left is noise.
    fn falling() -> Residuals {
        let mut profile = vec![0.0; 18];
        (profile[0], profile[1]) = (3000.0, 3000.0);
        (profile[2], profile[3]) = (900.0, 900.0);
        (profile[4], profile[6], profile[17]) = (600.0, 33.0, 34.0);
        Residuals::new(&profile_of(profile), 0.5)
    }

    /// The mean of v − most over lengths v of an octave, spread evenly by their logarithms.
    #[test]
    fn an_octave_is_longer_than_a_bound_by_its_mean() {
        for (middle, most) in [(1.0, 0.2), (1.0, 0.9), (3.0, 3.5), (1.0, 2.0)] {
            let n = 20_000;
            let each = (0..n).map(|k| {
                let v = middle * 2f64.powf((f64::from(k) + 0.5) / f64::from(n) - 0.5);
                (v - most).max(0.0)
            });
            let mean = each.sum::<f64>() / f64::from(n);
            assert!(
                (excess(middle, most) - mean).abs() < 1e-4,
                "{middle} {most}"
            );
        }
    }

    /// Lengths of up to 0.5, 1 and 2 were seen. Beyond these, of up to 4, there is a ninth of them,
    /// the square of the third that the last range has of the one before.
    #[test]
    fn rows_far_out_are_cut_by_what_they_are_longer() {
        let (residuals, octave) = (falling(), 2f64.sqrt());
        let seen = 600.0 * excess(octave, 1.0);
        let beyond = 600.0 / 9.0 * excess(2.0 * octave, 1.0);
        let farther = 600.0 / 9.0 / 81.0 * excess(4.0 * octave, 1.0);
        let cut = residuals.cut(1.0);
        let all = seen + beyond + farther;
        assert!((cut.all / all - 1.0).abs() < 1e-3, "{cut:?} {all}");
        assert!(cut.lopsided > 0.95 * all && cut.lopsided < all, "{cut:?}");
        let sure = seen - SURE * 200f64.sqrt() * excess(octave, 1.0);
        assert!((cut.sure / sure - 1.0).abs() < 1e-9, "{cut:?} {sure}");
        assert_eq!(cut.bias(1, 4), (COHERENT * cut.sure).powi(2) / 4.0);
        assert_eq!(cut.bias(2, 4), 0.25 * cut.bias(1, 4));
        assert_eq!(cut.bias(0, 4), 0.0);
        // A bound for what was seen leaves what was not.
        let wide = residuals.cut(2.0);
        assert!(wide.sure == 0.0 && wide.all > 0.0 && wide.all < 0.2 * cut.all);
        // Rows on both sides alike leave nothing but for parameters that rows share.
        let even = Residuals::new(&profile_of(vec![400.0; 6]), 0.5).cut(0.1);
        assert!(even.lopsided == 0.0 && even.all > 1000.0 * 0.2, "{even:?}");
    }

    /// A profile whose fullest range is under its noise tells of no row, wherever that range is.
    #[test]
    fn noise_alone_is_no_row() {
        for peak in 0..6 {
            let mut profile = vec![-3.0; 12];
            profile[2 * peak] = 20.0;
            let cut = Residuals::new(&profile_of(profile), 0.5).cut(0.1);
            assert_eq!(cut, Cut::default(), "{peak}");
        }
    }

    /// Where all rows that are seen are in the first range, there are no more beyond it than noise
    /// hides: a half of them would be 4,000.
    #[test]
    fn rows_that_were_not_seen_are_no_more_than_noise_hides() {
        let mut profile = vec![0.0; 18];
        (profile[0], profile[1]) = (1500.0, 6500.0);
        let cut = Residuals::new(&profile_of(profile), 0.5).cut(0.5);
        let hidden = LOUD * 200f64.sqrt();
        let next = hidden * excess(0.5f64.sqrt(), 0.5);
        // (A quarter of these in the octave after it, and then a sixteenth.)
        assert!(cut.all >= next && cut.all < 2.5 * next, "{cut:?} {next}");
    }

    /// A difference between the sides of the last range that was seen, as large as its noise, is
    /// none in those that follow from it either: they have the same noise.
    #[test]
    fn noise_is_carried_to_what_was_not_seen() {
        let with = |above: f64, below: f64| {
            let mut profile = vec![0.0; 18];
            (profile[0], profile[1]) = (3000.0, 3000.0);
            (profile[2], profile[3]) = (40.0, 40.0);
            (profile[4], profile[5]) = (above, below);
            Residuals::new(&profile_of(profile), 0.5).cut(1.0)
        };
        // One sd of the noise.
        let even = with(37.0, 23.0);
        assert!(even.lopsided == 0.0 && even.all > 100.0, "{even:?}");
        let much = with(55.0, 5.0);
        assert!(much.lopsided > 0.5 * much.all, "{much:?}");
    }

    /// Room for what is cut: rows on either side in the directions of shared parameters, whatever
    /// their lengths, what is lopsided in all.
    #[test]
    fn intervals_have_room_for_what_is_cut() {
        let cut = Cut {
            all: 6.0,
            lopsided: 2.0,
            sure: 1.0,
        };
        let shared = DVector::from_vec(vec![0.0, 0.3, 0.4]);
        let covariance = cut.covariance(&[shared], 3);
        let all = 36.0 / 25.0;
        let expected = [4.0 / 3.0, 4.0 / 3.0 + 9.0 * all, 4.0 / 3.0 + 16.0 * all];
        for (k, expected) in expected.into_iter().enumerate() {
            assert!((covariance[(k, k)] - expected).abs() < 1e-12);
        }
        assert!((covariance[(1, 2)] - 12.0 * all).abs() < 1e-12);
        let mean = (covariance.trace() / 3.0).sqrt();
        assert!((cut.room(1, 3) - mean).abs() < 1e-12);
    }
}
