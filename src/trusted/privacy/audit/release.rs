//! The release of an anchor, attacked: gradient, curvature and profiles of worst-case neighbours, projected on the direction in which they differ.

use std::sync::Arc;

use super::bound::{Event, Histogram, lower_bound};
use super::case::claims;
use super::{AuditError, Report, Settings, Subject, report};
use crate::data::{DataError, Dataset, LabelKind, Unit};
use crate::engine::{EngineChoice, EngineSetup};
use crate::model::{GaussianMean, Metric, Model, ModelError, Prior, Profile, Regression, Score};
use crate::privacy::accountant::Budget;
use crate::privacy::accountant::EventKey;
use crate::privacy::accountant::Measure;
use crate::privacy::curator::{Curator, CuratorError};
use crate::privacy::ledger::Ledger;
use crate::privacy::releases::{AnchorNoise, Expansion, Halt, MomentNoise, Releases};

/// τ of the part that is not attacked: its ρ hardly counts.
const QUIET: f64 = 100.0;
/// Angle of the two rows to the axis across θ*: their scores are ±1 on it, but for 1 − cos.
const ANGLE: f64 = 0.05;
/// Thresholds a standard deviation of the noise: more make the choice of one a lottery.
const FINE: f64 = 4.0;
/// Standard deviations that thresholds reach.
const REACH: f64 = 8.0;

/// Which release is attacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorPart {
    /// `Σ κ∇ℓ_i(θ*)`.
    Gradient,
    /// `Σ −κ∇²ℓ_i(θ*)`.
    Curvature,
    /// `Σ κw_i` by ‖z_i‖, of a row whose w moves from one entry to another.
    Profile,
    /// Rows by ‖∇ℓ_i‖, of a unit whose four rows move from one entry to another.
    GradientProfile,
    /// The gradient, of a row at twice the row bound: shortened, of bounded influence.
    LongGradient,
    /// The curvature, of such a row: its weight grows as it is shortened, up to the largest.
    LongCurvature,
    /// The gradient, of a unit of four rows that pull the same way: shortened together.
    UnitGradient,
    /// The curvature, of such a unit.
    UnitCurvature,
    /// The gradient, of a row whose weight is far beyond the largest: cut off at it.
    HeavyGradient,
    /// The curvature, of such a row.
    HeavyCurvature,
    /// `Σ x_i`, of a Gaussian model's rows.
    Moments,
}

/// Rows of a unit where units are attacked.
const UNIT_ROWS: u32 = 4;
/// Row bound of the parts that are of a row beyond it; rows are of norm 1.
const SHORT: f64 = 0.5;
/// What a heavy row would add of what the largest weight makes a row add.
const HEAVY: f64 = 4.0;
/// Entries of the profile that a row of the norms 1 and 1/2 is in, of thresholds that begin with
/// 2^-3.5 and grow by √2: up to 2⁰ and up to 2⁻¹, and of two classes at η = 0 as much less as their
/// scores are below their bound.
fn profile_entries(score: Score) -> [usize; 2] {
    match score {
        Score::Logistic => [5, 3],
        Score::Declared(_) => [6, 4],
        Score::Linear | Score::Poisson => [7, 5],
    }
}

/// Row bound of a profile of gradients.
const FRACTION: f64 = 0.15;
/// Entries of the profile of gradients that such rows are in at θ* = (-1, 0): by 0.63 of a Poisson
/// model, whose S is 1, beside 0.20; of others by 0.73 S to S beside 0.31 S to 0.38 S.
fn gradient_entries(score: Score) -> [usize; 2] {
    match score {
        Score::Poisson => [6, 2],
        Score::Logistic | Score::Linear | Score::Declared(_) => [6, 4],
    }
}

impl AnchorPart {
    /// All of them.
    pub const ALL: [AnchorPart; 11] = [
        AnchorPart::Gradient,
        AnchorPart::Curvature,
        AnchorPart::Profile,
        AnchorPart::GradientProfile,
        AnchorPart::LongGradient,
        AnchorPart::LongCurvature,
        AnchorPart::UnitGradient,
        AnchorPart::UnitCurvature,
        AnchorPart::HeavyGradient,
        AnchorPart::HeavyCurvature,
        AnchorPart::Moments,
    ];

    fn name(self) -> &'static str {
        match self {
            AnchorPart::Gradient => "anchored-barker: the anchor's gradient",
            AnchorPart::Curvature => "anchored-barker: the anchor's curvature",
            AnchorPart::Profile => "anchored-barker: the anchor's profile of row norms",
            AnchorPart::GradientProfile => {
                "anchored-barker: the anchor's profile of gradients, of a unit's rows"
            }
            AnchorPart::LongGradient => {
                "anchored-barker: the anchor's gradient, of a row beyond the row bound"
            }
            AnchorPart::LongCurvature => {
                "anchored-barker: the anchor's curvature, of a row beyond the row bound"
            }
            AnchorPart::UnitGradient => "anchored-barker: the anchor's gradient, of a unit's rows",
            AnchorPart::UnitCurvature => {
                "anchored-barker: the anchor's curvature, of a unit's rows"
            }
            AnchorPart::HeavyGradient => {
                "anchored-barker: the anchor's gradient, of a row beyond the largest weight"
            }
            AnchorPart::HeavyCurvature => {
                "anchored-barker: the anchor's curvature, of a row beyond the largest weight"
            }
            AnchorPart::Moments => "anchored-barker: moments",
        }
    }

    /// θ*. Far out scores are at their bound; at 0 weights are (1/4 of a logistic model, 1 of a
    /// linear one, and of a Poisson one with counts up to 1).
    pub(super) fn at(self) -> [f64; 2] {
        match self {
            // −60 = x·θ* for both rows.
            part if part.is_gradient() => [0.0, -60.0 / ANGLE.sin()],
            AnchorPart::GradientProfile => [-1.0, 0.0],
            _ => [0.0, 0.0],
        }
    }

    /// Coordinates of the release.
    pub(super) fn metric(self) -> Metric {
        let bound = match self {
            AnchorPart::LongGradient | AnchorPart::LongCurvature => SHORT,
            AnchorPart::GradientProfile => FRACTION,
            _ => 1.0,
        };
        Metric::identity(2, bound)
    }

    /// The row that differs. (In one dimension no two rows' gradients are 2b apart: s·x lies
    /// in an interval of length b.)
    fn row(self, neighbour: bool) -> [f32; 2] {
        let across = ANGLE.cos() as f32;
        match (self, neighbour) {
            (part, neighbour) if part.is_gradient() => {
                let across = if neighbour { -across } else { across };
                [across, ANGLE.sin() as f32]
            }
            (part, true) if part.is_profile() => [0.5, 0.0],
            (AnchorPart::Moments, true) => [-1.0, 0.0],
            (_, true) => [0.0, 1.0],
            (_, false) => [1.0, 0.0],
        }
    }

    fn is_gradient(self) -> bool {
        matches!(
            self,
            AnchorPart::Gradient
                | AnchorPart::LongGradient
                | AnchorPart::UnitGradient
                | AnchorPart::HeavyGradient
        )
    }

    fn is_profile(self) -> bool {
        matches!(self, AnchorPart::Profile | AnchorPart::GradientProfile)
    }

    fn is_curvature(self) -> bool {
        !self.is_gradient() && !self.is_profile() && self != AnchorPart::Moments
    }

    /// What the profile tells rows apart by.
    pub(super) fn profile(self) -> Profile {
        match self {
            AnchorPart::GradientProfile => Profile::Gradients,
            _ => Profile::Norms,
        }
    }

    /// Entries of the profile that change.
    pub(super) fn entries(self, score: Score) -> [usize; 2] {
        match self.profile() {
            Profile::Gradients => gradient_entries(score),
            Profile::Norms => profile_entries(score),
        }
    }

    fn is_weighted(self) -> bool {
        matches!(self, AnchorPart::HeavyGradient | AnchorPart::HeavyCurvature)
    }

    fn is_of_units(self) -> bool {
        matches!(
            self,
            AnchorPart::UnitGradient | AnchorPart::UnitCurvature | AnchorPart::GradientProfile
        )
    }

    /// D or D': a flat row and the one that differs, or such units.
    pub(super) fn data(
        self,
        neighbour: bool,
        label: Option<LabelKind>,
    ) -> Result<Dataset, DataError> {
        let names = vec!["x".into(), "z".into()];
        let mut set = Dataset::builder_with(names, label, 1.0)?;
        let one = label.map(|_| 1.0);
        if self.is_of_units() {
            let column = "unit".into();
            let mut set = set.of_units(Unit {
                column,
                rows: UNIT_ROWS,
            });
            set.push_owned(&[0.0, 0.0], one, 0)?;
            for _ in 0..UNIT_ROWS {
                set.push_owned(&self.row(neighbour), one, 1)?;
            }
            return set.finish();
        }
        if self.is_weighted() {
            let mut set = set.weighted();
            set.push_weighted(&[0.0, 0.0], one, 0.5)?;
            set.push_weighted(&self.row(neighbour), one, HEAVY)?;
            return set.finish();
        }
        set.push_value(&[0.0, 0.0], one)?;
        set.push_value(&self.row(neighbour), one)?;
        set.finish()
    }

    /// What was released, along the difference of D and D', in standard deviations of its
    /// noise.
    fn project(self, score: Score, released: &Expansion) -> f64 {
        let c = &released.curvature;
        match self {
            part if part.is_curvature() => (c[0] - c[3]) / (2f64.sqrt() * released.curvature_sd),
            part if part.is_profile() => {
                let [one, other] = part.entries(score).map(|k| released.profile[k]);
                (one - other) / (2f64.sqrt() * released.profile_sd)
            }
            _ => released.gradient[0] / released.gradient_sd,
        }
    }
}

/// Releases of one anchor on worst-case neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnchorCase {
    /// What is attacked.
    pub part: AnchorPart,
    /// τ of its noise, ρ = 1/(2τ²); the other part's is 100.
    pub tau: f64,
    /// Of which regression.
    pub score: Score,
}

impl AnchorCase {
    /// A case in which noise of half its standard deviation is seen: τ = 2. (At τ = 1 no bound
    /// that half a million runs can reach is above the claim.)
    pub fn of(part: AnchorPart) -> Self {
        AnchorCase {
            part,
            tau: 2.0,
            score: Score::Logistic,
        }
    }

    /// Labels of 1 at most; none where moments are released.
    pub(super) fn label(&self) -> Option<LabelKind> {
        if self.part == AnchorPart::Moments {
            return None;
        }
        Some(match self.score {
            Score::Logistic => LabelKind::Binary,
            Score::Linear => LabelKind::Number {
                low: -1.0,
                high: 1.0,
            },
            Score::Poisson => LabelKind::Count { max: 1 },
            Score::Declared(_) => LabelKind::Binary,
        })
    }

    pub(super) fn model(&self, data: &Dataset) -> Result<Arc<dyn Model>, ModelError> {
        let (names, prior) = (data.features(), Prior::normal(2, 1.0));
        let Some(label) = self.label() else {
            let covariance = [1.0, 0.0, 0.0, 1.0];
            return Ok(Arc::new(GaussianMean::new(
                names,
                &covariance,
                1.0,
                prior,
                1.0,
            )?));
        };
        Ok(match self.score {
            Score::Logistic => Arc::new(Regression::logistic(names, 1.0, prior, 1.0)?),
            Score::Linear => Arc::new(Regression::linear(names, 0.25, label, 1.0, prior, 1.0)?),
            Score::Poisson => Arc::new(Regression::poisson(names, label, 1.0, prior, 1.0)?),
            Score::Declared(law) => {
                Arc::new(Regression::declared(names, law, label, 1.0, prior, 1.0)?)
            }
        })
    }

    fn noise(&self) -> AnchorNoise {
        match self.part {
            part if part.is_profile() => AnchorNoise {
                profile: Some(self.tau),
                profile_of: part.profile(),
                ..AnchorNoise::default()
            },
            part if part.is_curvature() => AnchorNoise::expansion(QUIET, self.tau),
            _ => AnchorNoise::expansion(self.tau, QUIET),
        }
    }

    fn keys(&self, releases: u32) -> Result<Vec<(EventKey, u64)>, AuditError> {
        let keys = match self.part {
            AnchorPart::Moments => vec![Curator::moments_cost(MomentNoise { tau: self.tau })?],
            _ => Curator::anchor_cost(self.noise())?,
        };
        Ok(keys.into_iter().map(|k| (k, u64::from(releases))).collect())
    }

    /// One release, along the difference of D and D', in sds of its noise.
    fn score(&self, curator: &mut Curator) -> Result<f64, Halt> {
        if self.part == AnchorPart::Moments {
            let moments = curator.moments(1, Some(MomentNoise { tau: self.tau }))?;
            return Ok(moments.sums[0] / moments.sds[0]);
        }
        let (at, metric) = (self.part.at(), self.part.metric());
        let released = curator.anchor(&at, &metric, self.noise())?;
        Ok(self.part.project(self.score, &released))
    }

    /// The private curator of D or D'.
    fn curator(
        &self,
        neighbour: bool,
        engine: EngineChoice,
        seed: Option<u64>,
    ) -> Result<Curator, AuditError> {
        let data = self.part.data(neighbour, self.label());
        let data = data.map_err(|e| AuditError::setting("rows", e.to_string()))?;
        let model = self.model(&data);
        let model = model.map_err(|e| CuratorError::Mismatch(e.to_string()))?;
        // Units and weighted rows are added up on the CPU alone.
        let on_cpu = self.part.is_of_units() || self.part.is_weighted();
        let setup = EngineSetup::from(match on_cpu {
            true => EngineChoice::Cpu,
            false => engine,
        });
        let budget = Budget::new(1000.0, 0.5).map_err(|e| Halt::Refused(e.to_string()))?;
        let ledger = Ledger::counting(budget, Measure::Zcdp);
        let seed = seed.map(|s| s ^ (u64::from(neighbour) << 63));
        Ok(Curator::private(data, model, setup, ledger, seed)?)
    }
}

/// Audits the release of an anchor: runs of T releases each, whose sum is put to a threshold.
///
/// # Errors
/// As [`super::audit`].
pub fn audit_anchor(case: &AnchorCase, settings: &Settings) -> Result<Report, AuditError> {
    settings.check()?;
    let releases = settings.steps.unwrap_or(1);
    let claims = claims(&case.keys(releases)?, settings.delta, |_| Measure::Zcdp)?;
    let mut curators = [false, true]
        .map(|neighbour| case.curator(neighbour, settings.engine, settings.seed))
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let engine = curators[0].engine_info().kind;
    let bins = (2.0 * REACH * FINE) as u32;
    let mut sample = |neighbour: bool, _, runs: u64| -> Result<Histogram, AuditError> {
        let curator = &mut curators[usize::from(neighbour)];
        let mut histogram = Histogram::new(bins);
        for _ in 0..runs {
            let mut sum = 0.0;
            for _ in 0..releases {
                sum += release(curator, case)?;
            }
            let score = sum / f64::from(releases).sqrt();
            let bin = ((score + REACH) * FINE).floor();
            histogram.add(bin.clamp(0.0, f64::from(bins)) as u32);
        }
        Ok(histogram)
    };
    let words = |event: &Event| {
        let (sign, bin) = match event.at_least {
            true => ("at least", event.threshold),
            false => ("less than", event.threshold + 1),
        };
        let score = f64::from(bin) / FINE - REACH;
        format!("{sign} {score:.2} sds of the noise released")
    };
    let (bound, event) = lower_bound(&mut sample, &[0.0], bins, &words, settings)?;
    let mut report = report(
        Subject::AnchoredBarker,
        settings,
        releases,
        claims,
        bound,
        event,
        &engine,
    );
    report.algorithm = case.part.name();
    Ok(report)
}

/// One release, on a fresh ledger where the last one is spent (nothing was charged then).
fn release(curator: &mut Curator, case: &AnchorCase) -> Result<f64, Halt> {
    match case.score(curator) {
        Err(Halt::BudgetSpent(_)) => {
            if let Some(ledger) = curator.ledger_mut() {
                *ledger = ledger.renewed();
            }
            case.score(curator)
        }
        other => other,
    }
}
