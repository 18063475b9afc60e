//! The certificate: what is guaranteed about everything a run has published.

use serde::{Deserialize, Serialize};

use super::accountant::Budget;
use super::accountant::Measure;
use super::accountant::{Question, Sequence, account, account_without_losses};
use super::curator::Curator;
use super::event::{Event, Neighbours};
use super::ledger::Ledger;
use crate::data::Unit;
use crate::engine::EngineInfo;

/// What bounds of rows are.
const BOUNDS: &str = "the bounds of single rows ([data.bounds]) are public: the guarantee is for data sets with the same bounds, and void if they were computed from private cells";

/// Runs of at most so many releases, of at most so many kinds, are put to every accountant.
const FEW: (u64, usize) = (64, 4);

/// One group of equal events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventCount {
    /// What was released.
    #[serde(flatten)]
    pub event: Event,
    /// How often.
    pub count: u64,
}

/// A run's certificate; `certificate.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Whether any guarantee is made.
    pub private: bool,
    /// The guarantee: ε at `delta`. Absent without privacy.
    pub epsilon: Option<f64>,
    /// ε of what was spent. Equal to `epsilon` where costs could not depend on the data's
    /// answers; otherwise for information only.
    pub epsilon_spent: Option<f64>,
    /// ε of what this run spent, at `delta`, for neighbours by zero-out: a row's part in every sum
    /// is left out, its place in N stays. For comparison with figures for rows that are added or
    /// removed, with N known. No guarantee where costs were adaptive. Absent for runs that share a
    /// ledger or have lost a reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_zero_out: Option<f64>,
    /// Whether costs or stopping could follow released values. Then the guarantee is the
    /// filter's budget (docs/proofs/accounting.md).
    pub adaptive: bool,
    /// δ.
    pub delta: Option<f64>,
    /// ρ of the guarantee; absent where the filter counted something else.
    pub rho: Option<f64>,
    /// μ of the guarantee: μ-GDP but for what inexact coins cost of δ. Absent where the filter
    /// counted something else, or another accountant gave `epsilon`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mu: Option<f64>,
    /// Order α at which the filter counted Rényi divergences; absent where it counted ρ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<f64>,
    /// Neighbouring relation.
    pub neighbours: String,
    /// Rows N, or units, public.
    pub rows: usize,
    /// Whose rows are, where neighbours differ in all rows of one unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// Chains; their costs add up.
    pub chains: usize,
    /// Iterations of each chain, warm-up included.
    pub iterations: u64,
    /// What the guarantee covers: `this run only`, or all runs of a ledger file.
    pub covers: String,
    /// Whether the ledger was new when this run began, or had runs before it. Absent without
    /// privacy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// Where the run is recorded beside other runs on its table, or why it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<String>,
    /// `running`, `finished`, `budget spent`, `interrupted`, `failed`.
    pub status: String,
    /// The budget.
    pub budget: Option<Budget>,
    /// How ε follows from the events.
    pub accountant: String,
    /// What computed.
    pub engine: EngineInfo,
    /// Version of dpmc.
    pub version: String,
    /// What a reader must know.
    pub warnings: Vec<String>,
    /// Releases of this run, grouped. While `running`, those up to the last published draw.
    pub events: Vec<EventCount>,
}

/// What the run knows and the curator does not.
pub(crate) struct RunFacts<'a> {
    pub chains: usize,
    pub iterations: u64,
    pub status: &'a str,
    /// Costs or stopping may have followed released values.
    pub adaptive: bool,
    pub warnings: &'a [String],
    /// Where it is recorded.
    pub records: Option<&'a str>,
}

impl Certificate {
    /// What the guarantee counts: `5912 units of 'person', up to 5 rows each`, or `1904 rows`.
    pub fn counted(&self) -> String {
        match &self.unit {
            Some(unit) => unit.counted(self.rows),
            None => format!("{} rows", self.rows),
        }
    }

    /// In what neighbours differ: `all rows of one 'person'`, or `one row`.
    pub fn protected(&self) -> String {
        match &self.unit {
            Some(unit) => format!("all rows of one '{}'", unit.column),
            None => "one row".into(),
        }
    }

    pub(crate) fn new(curator: &Curator, run: &RunFacts<'_>) -> Self {
        let mut warnings = run.warnings.to_vec();
        if curator.is_weighted() {
            warnings.push(BOUNDS.into());
        }
        let mut certificate = Certificate {
            private: false,
            epsilon: None,
            epsilon_spent: None,
            epsilon_zero_out: None,
            adaptive: run.adaptive,
            delta: None,
            rho: None,
            mu: None,
            order: None,
            neighbours: "substitution".into(),
            rows: curator.rows(),
            unit: curator.unit().cloned(),
            chains: run.chains,
            iterations: run.iterations,
            covers: "this run only".into(),
            ledger: None,
            records: None,
            status: run.status.into(),
            events: Vec::new(),
            budget: None,
            accountant: "none".into(),
            engine: curator.engine_info(),
            version: env!("CARGO_PKG_VERSION").into(),
            warnings: Vec::new(),
        };
        if let Some(ledger) = curator.ledger() {
            let budget = ledger.budget();
            // Other runs of a shared ledger may follow this one's draws.
            let adaptive = run.adaptive || ledger.has_earlier_runs() || ledger.is_shared();
            let lost = ledger.spent() - ledger.spent_of_run();
            let mut spent = ledger.epsilon_spent();
            let measure = ledger.measure();
            let converted = match measure {
                Measure::Gaussian => "Balle & Wang 2018, Theorem 8",
                _ => "Canonne, Kamath & Steinke 2020, Prop. 12",
            };
            certificate.accountant = format!("{}; {converted}", measure.filter());
            // Whether the ledger's measure is that of `epsilon` too.
            let mut counted = true;
            if !adaptive
                && lost <= 1e-12
                && let Some((epsilon, method)) =
                    epsilon(ledger, Neighbours::Substitution, ledger.events())
                && epsilon < spent
            {
                spent = epsilon;
                counted = method == "closed form of the Gaussian";
                certificate.accountant = format!("{method}, of a sequence fixed in advance");
            }
            certificate.private = true;
            certificate.records = run.records.map(String::from);
            certificate.ledger = Some(match ledger.is_of_this_run() {
                true => "new ledger: no other run has spent from it".into(),
                false => "ledger with other runs on it".into(),
            });
            certificate.adaptive = adaptive;
            certificate.epsilon_spent = Some(spent);
            if !ledger.is_shared() && lost <= 1e-12 {
                let found = epsilon(ledger, Neighbours::ZeroOut, ledger.events_of_zero_out());
                // Prices for substitution hold for a blank row too.
                let found = found.map(|(epsilon, _)| epsilon.min(spent));
                certificate.epsilon_zero_out = found.filter(|epsilon| epsilon.is_finite());
            }
            certificate.delta = Some(budget.delta());
            certificate.budget = Some(budget);
            let (epsilon, amount) = if adaptive {
                (budget.epsilon(), ledger.limit())
            } else {
                (spent, ledger.taken())
            };
            certificate.epsilon = Some(epsilon);
            match measure {
                Measure::Zcdp => certificate.rho = Some(amount),
                Measure::Gaussian if counted => {
                    certificate.mu = Some((2.0 * amount).sqrt().next_up());
                }
                Measure::Gaussian => {}
                Measure::Renyi { order } => certificate.order = Some(order),
            }
            certificate.events = ledger
                .events()
                .into_iter()
                .map(|(event, count)| EventCount { event, count })
                .collect();
            if ledger.is_shared() {
                certificate.covers = "every run of the ledger file".into();
            }
            if !ledger.is_shared() && lost > 1e-12 {
                warnings.push(format!(
                    "{} {lost:.3e} was reserved and lost when a session of this run was killed, or spent by another run on its ledger; it counts as spent",
                    measure.symbol()
                ));
            }
            if ledger.has_conditional_events() {
                warnings.push(
                    "CONDITIONAL: a posterior draw (ops) was taken for exact, and its share of epsilon is right only if the chain behind it had converged to the posterior, which nothing here can check (Wang, Fienberg & Smola 2015); other samplers need no such condition"
                        .into(),
                );
            }
            if curator.is_seeded() {
                warnings.push(
                    "the secret generator was given a seed (Curator::private): the guarantee holds only while that seed stays secret, so it must not be the published one (seed in run.toml, public_seed in state.json)"
                        .into(),
                );
            }
        } else {
            warnings.push("this run is NOT private: it may reveal any row".into());
        }
        certificate.warnings = warnings;
        certificate
    }
}

/// ε of events at the ledger's δ by the best accountant, for costs that no answer influenced.
fn epsilon(
    ledger: &Ledger,
    neighbours: Neighbours,
    events: Vec<(Event, u64)>,
) -> Option<(f64, &'static str)> {
    let sequence = Sequence::new(neighbours, events).ok()?;
    let delta = ledger.budget().conversion_delta();
    let question = Question::Epsilon { delta };
    let releases: u64 = sequence.events().iter().map(|(_, count)| count).sum();
    // Privacy loss distributions beat the others for a few releases only, and take their
    // time: half a second a kind.
    let account = if releases <= FEW.0 && sequence.events().len() <= FEW.1 {
        account(&sequence, question)
    } else {
        account_without_losses(&sequence, question)
    };
    Some((account.upper, account.method))
}
