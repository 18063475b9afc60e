//! Worst cases of gradients are what they claim to be.

use ndarray::array;

use super::gradient_runs::Runs;
use super::{Differing, GradientCase, Settings, Subject};
use crate::engine::EngineChoice;
use crate::privacy::curator::Curator;
use crate::privacy::event::Event;
use crate::privacy::releases::{Batch, GradientNoise, Releases};

/// Wherever a chain may be the row's gradient, or that of the unit's rows together, is the whole
/// clip along e₁, on D' against it, and the other row's is nothing.
#[test]
fn the_two_rows_are_as_far_apart_as_can_be() {
    for (differing, size) in [
        (Differing::Row, 1.0),
        (Differing::Unit, 1.0),
        (Differing::Rows, 4.0),
    ] {
        for (neighbour, sign) in [(false, size), (true, -size)] {
            let case = GradientCase {
                differing,
                ..GradientCase::alone(Subject::DpHmc)
            };
            let data = case.data(neighbour).unwrap();
            let model = GradientCase::model(&data).unwrap();
            let mut open = Curator::not_private(data, model, EngineChoice::Cpu, 1).unwrap();
            let thetas = array![[0.0, 0.0], [7.0, -3.0], [-40.0, 90.0]];
            let noise = GradientNoise {
                clip: Some(1.0),
                batch: Batch::All,
                sigma: 0.0,
            };
            let sums = open.gradients(thetas.view(), noise).unwrap();
            for sum in sums.rows() {
                assert!((sum[0] - sign).abs() < 8e-4 && sum[1].abs() < 2e-4, "{sum}");
            }
        }
    }
}

/// The curator charges the events that the claim is made of, and scores favour the data set
/// that the run was made on: a threshold 8 standard errors from either mean, seeds fixed.
#[test]
fn runs_are_charged_what_is_claimed_and_give_themselves_away() {
    let settings = Settings {
        seed: Some(5),
        ..Settings::default()
    };
    for subject in Subject::ALL {
        let Some(case) = GradientCase::of(subject) else {
            continue;
        };
        for case in [case, GradientCase::alone(subject)] {
            let keys = case.keys().unwrap();
            let mut runs = Runs::open(&case, &keys, &settings).unwrap();
            runs.make(1, 3, 1).unwrap();
            // A penalty may cost what a gradient does; then they are counted together.
            let mut claimed: Vec<(Event, u64)> = Vec::new();
            for (event, n) in keys.iter().map(|(k, n)| (k.event(), 3 * n)) {
                match claimed.iter_mut().find(|(e, _)| *e == event) {
                    Some((_, count)) => *count += n,
                    None => claimed.push((event, n)),
                }
            }
            let mut charged = runs.adversaries[1].curator().ledger().unwrap().events();
            let order = |e: &(Event, u64)| format!("{e:?}");
            claimed.sort_by_key(order);
            charged.sort_by_key(order);
            assert_eq!(charged, claimed, "{subject:?}");
            let mut mean = |neighbour| {
                let (mut sum, mut count) = (0.0, 0);
                while count < 3000 {
                    let scores = runs.make(neighbour, case.steps, 3000).unwrap();
                    sum += scores.iter().sum::<f64>();
                    count += scores.len();
                }
                sum / count as f64
            };
            let (on, off) = (mean(0), mean(1));
            assert!(on > 0.05 && off < -0.05, "{subject:?}: {on} {off}");
        }
    }
}
