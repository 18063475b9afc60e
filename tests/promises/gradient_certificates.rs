//! Certificates of runs that follow released gradients: they state what was paid for, under
//! which neighbours, and never more than the budget.

use std::sync::Arc;

use dpmc::data::Dataset;
use dpmc::engine::EngineChoice;
use dpmc::model::{Prior, Regression};
use dpmc::posterior_run::{PosteriorRun, RunLength, Status};
use dpmc::privacy::accountant::{Question, Sequence, account_without_losses};
use dpmc::privacy::{
    Acceptance, Batch, Budget, Certificate, Curator, Estimator, Event, GradientNoise, Ledger,
    Measure, Neighbours,
};
use dpmc::sampler::{
    Chains, ClipNorm, ClipRule, Dpvi, Dynamics, GradientSettings, Hamiltonian, HamiltonianSettings,
    HamiltonianWarmup, Mass, Sampler, Schedule, StochasticGradient, Variational,
};

const DELTA: f64 = 1e-6;
const ORDER: f64 = 8.0;

fn private(epsilon: f64, measure: Measure) -> Curator {
    let mut set = Dataset::builder(vec!["a".into(), "b".into()], true, 2.0).unwrap();
    for i in 0..400 {
        let (a, b) = ((f64::from(i) * 0.7).sin(), (f64::from(i) * 1.3).cos());
        set.push(&[a as f32, b as f32], Some(a + 0.3 * b > 0.0))
            .unwrap();
    }
    let data = set.finish().unwrap();
    let prior = Prior::normal(2, 1.0);
    let model = Regression::logistic(data.features(), data.row_norm(), prior, 1.0).unwrap();
    let ledger = Ledger::counting(Budget::new(epsilon, DELTA).unwrap(), measure);
    Curator::private(data, Arc::new(model), EngineChoice::Cpu, ledger, Some(5)).unwrap()
}

fn renyi() -> Measure {
    Measure::renyi(ORDER).unwrap()
}

fn noise(rate: Option<f64>, sigma: f64) -> GradientNoise {
    GradientNoise {
        clip: Some(0.5),
        batch: rate.map_or(Batch::All, |rate| Batch::Poisson { rate }),
        sigma,
    }
}

fn hamiltonian() -> Sampler {
    let settings = HamiltonianSettings {
        estimator: Estimator::FullBatch,
        acceptance: Acceptance::Penalty { tau: 6.0 },
        clip: Some(ClipRule {
            rate: 1.0,
            norm: ClipNorm::Euclidean,
        }),
        largest_clip: 100.0,
        gradient: noise(None, 8.0),
        step: 0.05,
        leapfrog_steps: 3,
        jitter: Some(HamiltonianSettings::JITTER),
        mass: Mass::Scalar(1.0),
        warmup: HamiltonianWarmup::none(),
    };
    let sampler = Hamiltonian::new(Prior::normal(2, 1.0), settings, 2);
    sampler.unwrap().into()
}

fn langevin(rate: f64) -> Sampler {
    let settings = GradientSettings {
        clip: Some(0.5),
        batch: Batch::Poisson { rate },
        extra_noise: 0.0,
    };
    let schedule = Schedule::Fixed { step: 0.002 };
    let prior = Prior::normal(2, 1.0);
    let sampler = StochasticGradient::new(prior, 2, Dynamics::Sgld, schedule, settings);
    sampler.unwrap().into()
}

fn variational(steps: u64, request: GradientNoise) -> Sampler {
    let fit = Dpvi {
        steps,
        learning_rate: 0.05,
        draws_per_step: 2,
        scale: None,
    };
    Variational::new(Prior::normal(2, 1.0), fit, request).into()
}

/// Two chains of at most `iterations` steps.
fn certified(
    sampler: Sampler,
    (epsilon, measure): (f64, Measure),
    iterations: u64,
) -> (Certificate, Status) {
    let curator = private(epsilon, measure);
    let chains = Chains::new(&[vec![0.0; 2], vec![0.1; 2]], [9; 32]);
    let length = RunLength {
        iterations,
        warmup: 0,
        thin: 1,
    };
    let mut run = PosteriorRun::new(curator, sampler, chains, length, String::new(), Vec::new());
    while *run.step() == Status::Running {}
    (run.certificate(), run.status().clone())
}

fn counts(certificate: &Certificate) -> Vec<(&'static str, u64)> {
    let events = certificate.events.iter();
    events.map(|e| (e.event.kind(), e.count)).collect()
}

#[test]
fn certificates_of_gradient_runs_never_claim_more_than_was_paid_for() {
    let gradient = "discrete_gaussian";
    for (name, sampler, budget, iterations) in [
        ("dp-hmc", hamiltonian(), (3.0, Measure::Zcdp), 100_000),
        ("dp-sgld", langevin(0.05), (3.0, renyi()), 100_000),
        (
            "dpvi",
            variational(40, noise(None, 20.0)),
            (3.0, Measure::Zcdp),
            50,
        ),
        (
            "dpvi, Poisson",
            variational(40, noise(Some(0.1), 2.5)),
            (3.0, renyi()),
            50,
        ),
    ] {
        let (certificate, status) = certified(sampler, budget, iterations);
        let claimed = certificate.epsilon.unwrap();
        let spent = certificate.epsilon_spent.unwrap();
        assert!(certificate.private && certificate.neighbours == "substitution");
        assert!(spent > 0.0 && spent <= budget.0, "{name}: {spent}");
        assert!(claimed <= budget.0 && claimed >= spent, "{name}: {claimed}");
        assert_eq!(certificate.chains, 2);
        assert_eq!(certificate.delta, Some(DELTA));
        let counts = counts(&certificate);
        let made = certificate.iterations;
        match name {
            // Moves follow released gradients, hence their clips: the budget is claimed.
            "dp-hmc" => {
                assert_eq!(status, Status::BudgetSpent);
                assert!(certificate.adaptive && claimed == budget.0);
                // Gradients of a trajectory that the budget cut short are paid for too.
                let total: u64 = counts.iter().map(|c| c.1).sum();
                assert!(counts.iter().all(|c| c.0 == gradient), "{counts:?}");
                assert!((10 * made..10 * made + 10).contains(&total), "{total}");
            }
            "dp-sgld" => {
                assert_eq!(status, Status::BudgetSpent);
                assert!(!certificate.adaptive && made > 100);
                assert_eq!(counts, [("poisson_gaussian", 2 * made)]);
                assert_eq!(certificate.order, Some(ORDER));
                assert!(certificate.rho.is_none());
            }
            // The fit is all that costs: 40 steps of two gradients, whatever is drawn.
            _ => {
                assert_eq!(status, Status::Finished);
                assert_eq!(counts.iter().map(|c| c.1).sum::<u64>(), 80);
            }
        }
    }
}

/// Beside the claim stands what other people's neighbours would make of the same noise: sums of
/// gradients in a ball move by half as much for a row that is blanked out, and on Poisson samples
/// that is the pair of add/remove.
#[test]
fn certificates_count_a_blank_row_by_its_own_part() {
    for (sampler, budget, neighbours) in [
        (
            hamiltonian(),
            (3.0, Measure::Zcdp),
            Neighbours::Substitution,
        ),
        (langevin(0.05), (3.0, renyi()), Neighbours::AddRemove),
    ] {
        let (certificate, _) = certified(sampler, budget, 100_000);
        let halved = certificate.events.iter().map(|e| {
            let mut event = e.event;
            match &mut event {
                Event::DiscreteGaussian { sensitivity, .. }
                | Event::PoissonGaussian { sensitivity, .. } => *sensitivity *= 0.5,
                other => panic!("{other:?}"),
            }
            (event, e.count)
        });
        let sequence = Sequence::new(neighbours, halved.collect()).unwrap();
        let by = |delta| account_without_losses(&sequence, Question::Epsilon { delta }).upper;
        let blank = certificate.epsilon_zero_out.unwrap();
        // A thousandth of δ is kept for coins.
        assert!(by(DELTA) <= blank && blank <= by(DELTA * 0.998), "{blank}");
        let spent = certificate.epsilon_spent.unwrap();
        assert!(
            (0.3 * spent..0.7 * spent).contains(&blank),
            "{blank} {spent}"
        );
    }
}

/// The budget ends a fit midway: nothing is drawn from it, and what it released is paid for.
#[test]
fn a_fit_beyond_the_budget_leaves_no_draws() {
    let sampler = variational(100_000, noise(None, 20.0));
    let (certificate, status) = certified(sampler, (1.0, Measure::Zcdp), 5);
    assert_eq!(status, Status::BudgetSpent);
    assert_eq!(certificate.iterations, 0);
    assert!(certificate.epsilon.unwrap() <= 1.0);
    let paid: u64 = certificate.events.iter().map(|e| e.count).sum();
    assert!(paid > 10 && paid.is_multiple_of(2));
}
