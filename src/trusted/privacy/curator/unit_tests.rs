//! On a table with units answers are of units, at the price of as many rows; what is of single rows
//! is refused, and nothing is charged for it.

use std::sync::Arc;

use ndarray::Array2;

use crate::data::{Dataset, LabelKind, Unit};
use crate::engine::EngineChoice;
use crate::model::{Anchor, GaussianMean, Metric, Mlp, Model, Prior, Regression};
use crate::privacy::curator::Curator;
use crate::privacy::releases::{
    Acceptance, AnchorNoise, Batch, DrawRequest, Estimator, GradientNoise, Halt, Lambda,
    MomentNoise, Moves, Releases,
};
use crate::privacy::{Budget, Ledger, Measure};

fn table(label: Option<LabelKind>) -> Dataset {
    let names = vec!["a".into(), "b".into()];
    let column = "person".into();
    let set = Dataset::builder_with(names, label, 2.0).unwrap();
    let mut set = set.of_units(Unit { column, rows: 3 });
    for i in 0..60u32 {
        let row = [(i as f32).sin(), (i as f32).cos()];
        let label = label.map(|_| f64::from(i % 2) * 2.0 - 1.0);
        set.push_owned(&row, label, u64::from(i / 4)).unwrap();
    }
    set.finish().unwrap()
}

fn curator(model: Arc<dyn Model>, label: Option<LabelKind>) -> Curator {
    let ledger = Ledger::counting(Budget::new(5.0, 1e-6).unwrap(), Measure::Zcdp);
    Curator::private(table(label), model, EngineChoice::Cpu, ledger, Some(1)).unwrap()
}

fn logistic() -> Arc<dyn Model> {
    let names = ["a".to_string(), "b".to_string()];
    Arc::new(Regression::logistic(&names, 2.0, Prior::normal(2, 1.0), 1.0).unwrap())
}

/// Decisions and gradients cost what they cost on a table of as many rows as there are units.
#[test]
fn units_are_paid_for_as_rows_are() {
    let label = Some(LabelKind::Binary);
    let mut rows = Dataset::builder_with(vec!["a".into(), "b".into()], label, 2.0).unwrap();
    for i in 0..15u32 {
        rows.push_value(&[(i as f32).sin(), 0.1], Some(1.0))
            .unwrap();
    }
    let ledger = Ledger::counting(Budget::new(5.0, 1e-6).unwrap(), Measure::Zcdp);
    let rows = rows.finish().unwrap();
    let rows = Curator::private(rows, logistic(), EngineChoice::Cpu, ledger, Some(1)).unwrap();
    let mut both = [curator(logistic(), label), rows];
    let (thetas, proposals) = (Array2::zeros((1, 2)), Array2::from_elem((1, 2), 0.1));
    let clips = [0.3];
    let moves = Moves {
        thetas: thetas.view(),
        proposals: proposals.view(),
        public: &[0.0],
        clip_bounds: Some(&clips),
    };
    let poisson = Estimator::Poisson {
        lambda: Lambda::Fixed(5.0),
    };
    let mut last = 0.0;
    for (estimator, rule) in [
        (Estimator::FullBatch, Acceptance::Barker),
        (Estimator::FullBatch, Acceptance::Penalty { tau: 9.0 }),
        (poisson, Acceptance::Barker),
    ] {
        let spent = both.each_mut().map(|curator| {
            curator
                .decide(&moves, estimator, rule, &mut [false])
                .unwrap();
            curator.ledger().unwrap().spent()
        });
        assert!(spent[0] == spent[1] && spent[0] > last, "{spent:?}");
        last = spent[0];
    }
    let noise = GradientNoise {
        clip: Some(1.0),
        sigma: 9.0,
        batch: Batch::All,
    };
    let spent = both.each_mut().map(|curator| {
        curator.gradients(thetas.view(), noise).unwrap();
        curator.ledger().unwrap().spent()
    });
    assert!(spent[0] == spent[1] && spent[0] > last, "{spent:?}");
}

#[test]
fn what_is_of_single_rows_is_refused_and_nothing_is_charged() {
    let refused = |answer: Result<(), Halt>, curator: &Curator| {
        assert!(
            matches!(&answer, Err(Halt::Refused(what)) if what.contains("unit by unit")),
            "{answer:?}"
        );
        assert_eq!(curator.ledger().unwrap().spent(), 0.0);
    };
    let mut open = curator(logistic(), Some(LabelKind::Binary));
    let request = DrawRequest {
        bounds: vec![1.0; 2],
        steps: 10,
        scale: vec![0.1; 2],
    };
    let answer = open.posterior_draw(&[0.0, 0.0], &request).map(|_| ());
    refused(answer, &open);
    // What an anchor leaves of a row.
    open.set_anchor(plain_anchor()).unwrap();
    let (thetas, proposals) = (Array2::zeros((1, 2)), Array2::from_elem((1, 2), 0.1));
    let moves = Moves {
        thetas: thetas.view(),
        proposals: proposals.view(),
        public: &[0.0],
        clip_bounds: Some(&[0.3]),
    };
    let rule = Acceptance::Barker;
    let answer = open.decide(&moves, Estimator::FullBatch, rule, &mut [false]);
    refused(answer, &open);
    let mut open = curator(logistic(), Some(LabelKind::Binary));
    // The anchor is what there is, and it is paid for.
    let noise = AnchorNoise::expansion(3.0, 3.0);
    open.anchor(&[0.0, 0.0], &Metric::identity(2, 1.0), noise)
        .unwrap();
    assert!(open.ledger().unwrap().spent() > 0.0);

    let names = ["a".to_string(), "b".to_string()];
    let covariance = [1.0, 0.0, 0.0, 1.0];
    let mean = GaussianMean::new(&names, &covariance, 2.0, Prior::normal(2, 1.0), 1.0).unwrap();
    let mut open = curator(Arc::new(mean), None);
    let answer = open.moments(1, Some(MomentNoise { tau: 3.0 })).map(|_| ());
    refused(answer, &open);

    let shape = Mlp::shape(2, 3, LabelKind::Binary).unwrap();
    let prior = Prior::normal(shape.parameters(), 1.0);
    let network = Mlp::new(&names, 3, LabelKind::Binary, prior, 1.0).unwrap();
    let at = vec![0.3; shape.parameters()];
    let mut open = curator(Arc::new(network), Some(LabelKind::Binary));
    let metric = Metric::identity(at.len(), 1.0);
    let answer = open.anchor(&at, &metric, noise).map(|_| ());
    refused(answer, &open);
    let thetas = Array2::from_shape_vec((1, at.len()), at).unwrap();
    let noise = GradientNoise {
        clip: Some(1.0),
        sigma: 9.0,
        batch: Batch::Poisson { rate: 0.1 },
    };
    let answer = open.gradients(thetas.view(), noise).map(|_| ());
    refused(answer, &open);
}

/// Without privacy, and with no clip that any unit meets, exact sums are over all rows that count.
#[test]
fn without_privacy_sums_are_over_all_rows_that_count() {
    let mut open = Curator::not_private(
        table(Some(LabelKind::Binary)),
        logistic(),
        EngineChoice::Cpu,
        1,
    )
    .unwrap();
    // Fifteen persons of four rows, of which three count.
    let mut rows = Dataset::builder(vec!["a".into(), "b".into()], true, 2.0).unwrap();
    for i in (0..60u32).filter(|i| i % 4 < 3) {
        let row = [(i as f32).sin(), (i as f32).cos()];
        rows.push(&row, Some(i % 2 == 1)).unwrap();
    }
    let mut plain =
        Curator::not_private(rows.finish().unwrap(), logistic(), EngineChoice::Cpu, 1).unwrap();
    let (a, b): (&[f64], &[f64]) = (&[0.0, 0.0], &[0.4, -0.3]);
    let sums = open.exact_log_ratios(&[a], &[b], &[2.0]).unwrap();
    assert_eq!(sums, plain.exact_log_ratios(&[a], &[b], &[2.0]).unwrap());
    assert!(sums[0].0 != 0.0);
    let noise = GradientNoise {
        clip: Some(9.0),
        sigma: 0.0,
        batch: Batch::All,
    };
    let thetas = Array2::zeros((1, 2));
    let sums = open.gradients(thetas.view(), noise).unwrap();
    let plain = plain.gradients(thetas.view(), noise).unwrap();
    for (a, b) in sums.iter().zip(&plain) {
        assert!((a - b).abs() < 1e-3 && b.abs() > 0.01, "{a} {b}");
    }
}

/// An expansion far from its edge, in plain coordinates.
fn plain_anchor() -> Anchor {
    Anchor {
        at: vec![0.0; 2],
        metric: Metric::identity(2, 1.0),
        gradient: vec![0.0; 2],
        curvature: vec![1.0, 0.0, 0.0, 1.0],
        gradient_sd: 1.0,
        curvature_sd: 1.0,
        centre: vec![0.0; 2],
        radius: 1e3,
        spread: Vec::new(),
        doubts: Default::default(),
        alone: None,
    }
}
