//! The private way of a regression to its anchor (docs/proofs/anchors.md): curvature at the start,
//! Newton-like steps until the noise of one is all that is left, then a few releases whose
//! observations of one mode are combined. All of it is post-processing of what the curator charges.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};

use super::Anchoring;
use super::algebra::{
    backward, factor, forward, forward_matrix, lower, solve, solve_vector, square, whiten,
};
use super::beside_levels::{BesideLevels, Place};
use super::boxed::nearest;
use super::centre::{centre_of, spread};
use super::columns::{Columns, narrow};
use super::curves;
use super::denoise::{Noise, Target, eigen, floored, heeded, shrink};
use super::drawn::{Drawn, LEAST_BELIEVED};
use super::independent;
use super::levels;
use super::location::Found;
use super::norms::{LEAST_KEPT, Norms};
use super::pooled::{Pooled, Told};
use super::reference;
use super::residuals::{Cut, Residuals};
use super::scales;
use super::secant::{self, Observation};
use super::structure::{Known, LeftOver, Whitened};
use super::tilt::Features;
use super::totals::at_most;
use super::warm_start::multiplier;
use crate::expression::Location;
use crate::model::{
    Anchor, Blocks, Doubts, Metric, Predictor, Prior, Profile, Score, Slopes, Support,
};
use crate::privacy::{AnchorNoise, Expansion, Halt, Releases};

/// Shares of the whole: plain curvature at the start, of which the diagonal is used, and the
/// curvature there in the coordinates which that gives.
const START: [f64; 2] = [0.02, 0.05];
/// A mean weight of rows is at least so much of what is declared.
const LEAST_SHARE: f64 = 0.05;
/// The coordinates' floor, over the largest diagonal entry.
const DIAGONAL_FLOOR: f64 = 0.01;
/// A stage's gradient gets so much that its noise changes η by this, root mean square …
const STAGE_CHANGE: f64 = 0.3;
/// … but between these shares; its curvature gets as much, its profile a tenth.
const STAGE_SHARES: [f64; 2] = [0.01, 0.06];
const PROFILE_SHARE: f64 = 0.1;
/// … and of times more, whose rows may weigh next to nothing.
const PROFILE_OF_TIMES: f64 = 0.5;
/// A last stage that gets less than this of the least share, and of what its noise asks for, is
/// left out.
const LEAST_OF_STAGE: f64 = 0.5;
/// Rows of a stage are clipped at this multiple of the root mean square norm.
pub(super) const STAGE_BOUND: f64 = 1.5;
/// … and where residuals are clipped with their rows, gradients at this one …
pub(super) const STAGE_CLIP: f64 = 0.75;
/// … or, of centred scores, most of which are far from S, at so many sds …
const STAGE_SDS: f64 = 2.4;
/// … but no less than this of two classes, whose rows are weighted down then and steps too short.
const LEAST_STAGE_BOUND: f64 = 1.0;
/// Longest step, root mean square of the change of η …
const LONGEST_STEP: f64 = 2.0;
/// … of which a step is long from this share on. It is halved where a long step turns back on the
/// one before it, with a cosine below minus this, and is 2^cosine times as long where it goes on:
/// what η changes by is known by a noisy curvature alone, which may be far too small where the
/// start's rows say little.
const LONG: f64 = 0.7;
const TURNED: f64 = 0.3;
/// While such steps are long and more than this of them is kept, stages may take so much of what is
/// kept for the last releases: more noise is better than a mode that was not reached.
const FAR_TO_GO: f64 = 0.8;
const TAKEN: f64 = 0.5;
/// Before its gradient is seen, a coefficient's step has at least this sd, in large changes of η:
/// what noise makes longer is drawn in.
const FAR: f64 = 0.4;
/// A shared parameter's change counts this many times in that: scales and shapes overshoot.
const SHARED_LENGTH: f64 = 2.0;
/// Curvature that may be cut off long rows, of one direction's …
const LOST: f64 = 0.25;
/// … or bounds become so many times as wide, up to so many usual norms: remainders are clipped by
/// their cubes.
const WIDER: f64 = 1.189_207_115_002_721;
const WIDEST: f64 = 8.0;
/// A stage whose step keeps less than this of what was seen (the rest is what its noise alone would
/// show, James & Stein 1961) is the last.
const SETTLED: f64 = 0.5;
/// A step is lengthened by what the curvature will fall along it, up to this …
const LENGTHENED: f64 = 4.0;
/// … where more than this of it was kept, wholly where all was.
const TRUSTED: f64 = 0.8;
/// … as if it were so much shorter beside levels that are pooled, whose noise the share leaves out.
const SURE: f64 = 0.95;
/// The last curvature of two classes is clipped at this multiple, or where the gradients are.
const CURVATURE_BOUND: f64 = 1.2;
/// Share of what is left after the stages for the final profile, and for the final curvature.
const FINAL_PROFILE: f64 = 0.02;
const FINAL_CURVATURE: f64 = 0.12;
/// The same for the profile of gradients, which is asked for where labels may lie farther out than
/// expected …
const FINAL_RESIDUALS: f64 = 0.03;
/// … and whose shortest range is this share of a gradient of the largest score and the usual norm.
const SHORTEST_RESIDUAL: f64 = 0.125;
/// Final gradients, and how much more each gets than the one before.
const FINAL_GRADIENTS: usize = 4;
const GROWTH: f64 = 2.0;
/// Weights of counts and numbers are clipped at so many times their mean, where no decision asks
/// for what is cut: their bound is that of the largest label declared, and noise grows with it.
const HEAVIEST: f64 = 4.0;
/// … and those of times at so many, or at so many times what rows weigh whose event is seen, where
/// that is more: their model bounds them as if every event was.
const HEAVIEST_TIME: f64 = 5.0;
const HEAVIEST_EVENT: f64 = 0.7;
/// Share of the first curvature in the coordinates of gradients: keeps them from following a
/// noisy curvature to where it is lost.
const BLEND: f64 = 0.01;
/// The diagonal of the coordinates is at least the inverse square of this many root mean square
/// norms: rows of rare levels are not longer than that. In narrow columns it may be less.
pub(super) const LONGEST_LEVEL: f64 = 1.2;
/// The least eigenvalue that gradients may make of a curvature whose own is no less.
const LEAST_SECANT: f64 = 0.01;
/// Entries of a curvature that was believed become so much less certain, of what they are on the
/// diagonal, for each nat that predictors have changed by since, root mean square.
const DRIFT: f64 = 0.05;
/// Of the noise of a curvature's entries at least this share is left, mean square, when it is drawn
/// to what was believed …
const LEAST_NOISE: f64 = 0.1;
/// … and in intervals it counts so much more, mean square: the floor and the drawing have errors
/// too.
const CURVATURE_DOUBT: f64 = 4.0;
/// Of what a spline leaves over steps believe no more than was seen, or than so many sds of its
/// noise …
const SPLINE_NOISE: f64 = 2.0;
/// … and of what is left over of any columns intervals believe no more than so many, or than was
/// seen less as many.
const LEFT_OVER_NOISE: f64 = 0.5;
/// What clipped labels may shift means by is told where it is more than this many sds of noise.
const SAID_OF_NOISE: f64 = 2.0;
/// Entries of a curvature that a law expects, and labels need not show, are off by so much of what
/// they are on the diagonal, where gradients tell of it.
const MISFIT: f64 = 0.2;
/// Doubts count the last step's squared length over this many times what noise makes it …
const UNSETTLED: f64 = 3.0;
/// … and where that is more than this, the centre is as much less certain.
const BELIEVED_UNSETTLED: f64 = 2.0;

/// ρ of the least release of a curvature whose noise can be drawn: its multiplier is below 2^13.
const LEAST_RHO: f64 = 1e-8;

/// Least ρ of an anchor whose start can be released: below it nothing is learned.
pub(crate) const LEAST_ANCHOR: f64 = LEAST_RHO / 0.1;

/// What may still be spent: shares of the whole, whose ρ is `rho`; `None` without privacy.
pub(super) struct Purse {
    rho: Option<f64>,
    left: f64,
}

impl Purse {
    pub(super) fn new(rho: Option<f64>) -> Self {
        Purse { rho, left: 1.0 }
    }

    /// Smallest share of a release whose noise can be drawn.
    pub(super) fn least_share(&self) -> f64 {
        self.rho.map_or(0.0, |rho| LEAST_RHO / rho)
    }

    /// τ of a release for this share; 0 without privacy.
    pub(super) fn pay(&mut self, share: f64) -> f64 {
        self.left -= share;
        self.pays(share)
    }

    /// The share that pays for a release of this τ; `None` without privacy.
    pub(super) fn share_of(&self, tau: f64) -> Option<f64> {
        self.rho.map(|rho| 0.5 / (tau * tau * rho))
    }

    /// The same, before it is paid.
    pub(super) fn pays(&self, share: f64) -> f64 {
        self.rho.map_or(0.0, |rho| multiplier(rho * share))
    }
}

/// Where the path stands.
struct Path<'a> {
    plan: &'a Anchoring,
    prior: &'a Prior,
    /// Whether the anchor is to tell what the rows say without a prior.
    alone: bool,
    at: Vec<f64>,
    /// Scores and weights there, and the scales of parameters that rows share.
    slopes: Slopes,
    scales: Vec<f64>,
    /// Curvature of the log likelihood, and what was released of it at the start, d × d.
    curvature: DMatrix<f64>,
    first: DMatrix<f64>,
    /// A curvature that has the levels' means as they were told last.
    means: DMatrix<f64>,
    /// The likelihood's curvature where less is taken for known of it: for intervals.
    doubted: Doubted,
    /// What both were when the last releases began, and would be here.
    expected: [DMatrix<f64>; 2],
    /// Coordinates in which the last curvature was believed, and its entries' variance there; how
    /// far the path has gone since, nats.
    told: (DMatrix<f64>, f64),
    gone: f64,
    /// Mean square of features where their information lies ([`Columns`]).
    far: DVector<f64>,
    /// Σ κw, now and at the start.
    weight: f64,
    first_weight: f64,
    /// Mean weight of rows over the largest: features are as long as its root makes them.
    share: f64,
    /// Gradients that were released on the way, and how uncertain the curvature's entries are since
    /// its last release.
    observations: Vec<Observation>,
    uncertain: f64,
    /// How long a step may be now; the last one, if it was long, of a declared law.
    longest: f64,
    last: Option<DVector<f64>>,
    /// Whether the next step is to be as long, too.
    far_to_go: bool,
    /// What is known of curvatures where levels are pooled; those without noise hold it. (Priors
    /// with heavy tails and fixed ones let levels of few rows go far, and noise that is left raises
    /// floors that keep them near the start.)
    known: Option<Known>,
    pooled: Option<Pooled>,
    /// What is left over of columns where levels have none.
    left_over: Vec<LeftOver>,
    /// Columns that are no levels, and the variance of their part of the curvature's entries on the
    /// diagonal, in coordinates in which it is about one, where they were asked about.
    beside: Option<BesideLevels>,
    beside_variance: Option<f64>,
    /// Whether curvatures of pooled levels are drawn in by themselves.
    apart: bool,
    /// How far the last step went, nats, root mean square.
    moved: f64,
    /// Rows' norms over the usual one by the last profile, and Σ κw of each range.
    norms: Vec<(f64, f64)>,
}

/// A curvature as intervals are to believe it, and how uncertain its entries are.
struct Doubted {
    curvature: DMatrix<f64>,
    uncertain: f64,
}

/// A curvature that was seen, drawn towards what was believed: where no column is shorter than
/// others, and in the release's coordinates.
struct Seen {
    drawn: Drawn,
    guess: DMatrix<f64>,
    /// Variance of the part of columns beside levels.
    beside_variance: f64,
}

/// Coordinates of a release with levels, of which something is known or which are shorter there
/// than anything else.
struct Shorter<'a> {
    /// What takes its coordinates to those in which they are not; its diagonal says how much.
    to: DMatrix<f64>,
    known: Option<Whitened<'a>>,
}

impl Shorter<'_> {
    /// What is heard of a curvature where a share of its distance from a target was kept, in the
    /// release's coordinates and in even ones.
    fn heard(
        &self,
        guess: DMatrix<f64>,
        target: &DMatrix<f64>,
        kept: f64,
    ) -> (DMatrix<f64>, DMatrix<f64>) {
        // A level's square has the fourth power of the noise.
        let share = |j: usize| {
            let by = self.to[(j, j)].max(1.0).powi(4);
            (kept + (1.0 - kept) * by).sqrt().recip()
        };
        let share: Vec<f64> = (0..guess.nrows()).map(share).collect();
        let heard = DMatrix::from_fn(guess.nrows(), guess.ncols(), |i, j| {
            target[(i, j)] + share[i] * share[j] * (guess[(i, j)] - target[(i, j)])
        });
        let even = &self.to * &heard * self.to.transpose();
        (heard, even)
    }
}

/// A step, the share that was kept of it (of coefficients that are not pooled, where that is more),
/// and the share of its length that is trusted where it is lengthened.
struct Step {
    by: DVector<f64>,
    kept: f64,
    sure: f64,
}

/// Coordinates of a release: factor L, and the expected root mean square norm of L⁻¹x.
struct Coordinates {
    factor: DMatrix<f64>,
    usual: f64,
    /// The factor of coordinates in which pooled levels are as long as anything else.
    even: DMatrix<f64>,
}

impl Anchoring {
    /// Whether weights may be clipped below their model's bound: of counts and numbers, where no
    /// decision asks for what is cut.
    fn is_light(&self) -> bool {
        let single = self.slopes.predictor == Predictor::Linear && self.slopes.of_numbers();
        self.undecided && self.split.is_some() && single && !self.slopes.is_quadratic()
    }

    /// Mean weight of rows over the largest: what `square`, the constant's mean square in rows of
    /// the largest weight, tells where curvatures do not depend on labels, else what is declared.
    fn mean_share(&self, square: impl Fn(usize) -> f64) -> f64 {
        let declared = self.slopes.mean_share;
        let of_labels = matches!(self.slopes.score, Score::Declared(_));
        match self.structure.constant {
            Some(k) if declared < 1.0 && (self.slopes.trials > 1.0 || !of_labels) => {
                square(k).clamp(LEAST_SHARE * declared, 1.0)
            }
            _ => declared,
        }
    }

    /// What weights are clipped at where they are clipped below their model's bound.
    pub(super) fn largest_weight(&self) -> Option<f64> {
        self.is_light().then_some(self.slopes.largest_weight)
    }

    /// The same from where labels lie: rows weigh about what a label does that lies there. Where
    /// that was not found they may have any weight, and the model's bound on it stays.
    fn from(&self, found: Option<Found>) -> Self {
        let (Some(Found { start, events }), Some(location)) = (found, &self.location) else {
            return Anchoring {
                undecided: false,
                ..self.clone()
            };
        };
        let mut slopes = self.slopes;
        if self.is_light() {
            let weight = location.weight(start[location.column] + location.offset);
            let known = weight.filter(|w| *w > 0.0 && w.is_finite());
            slopes.first_weight = known.unwrap_or(slopes.first_weight);
        }
        Anchoring {
            location: Some(Location {
                events,
                ..location.clone()
            }),
            start,
            slopes,
            ..self.clone()
        }
    }

    /// Share of rows whose event is seen, as far as that is known: others weigh next to nothing.
    fn events(&self) -> f64 {
        self.location.as_ref().map_or(1.0, |l| l.events)
    }

    /// What weights of times are clipped at whose mean is this, with the law's bounds where the
    /// path stands.
    fn largest_time(&self, mean: f64, slopes: &Slopes) -> Option<f64> {
        let times = slopes.waits() && self.split.is_some();
        times.then_some((HEAVIEST_TIME * mean).max(HEAVIEST_EVENT * slopes.first_weight))
    }

    /// The same with weights that are clipped at a multiple of `mean`, where they may be.
    fn lighter(&self, mean: f64) -> Self {
        let most = self.is_light().then_some(HEAVIEST * mean);
        Anchoring {
            slopes: self.slopes.lighter(most),
            ..self.clone()
        }
    }

    /// Finds and releases the anchor of a regression.
    ///
    /// # Errors
    /// [`Halt`] of the curator, and where what was released holds no usable numbers.
    pub(super) fn follow(
        &self,
        prior: &Prior,
        releases: &mut dyn Releases,
    ) -> Result<Anchor, Halt> {
        let mut purse = Purse::new(self.split.map(|s| s.start + s.gradient + s.curvature));
        let working = prior.working(self.start.len());
        // What the stages may not touch.
        let kept = self
            .split
            .map_or(0.5, |s| 1.0 - s.start / purse.rho.unwrap_or(1.0));
        let blocks = prior.blocks();
        let plan = &self.from(self.located(&working, &mut purse, releases)?);
        let mut path = Path::begin(plan, (&working, blocks), &mut purse, releases)?;
        for stage in 0..self.stages {
            if !path.stage(stage, kept, &mut purse, releases)? {
                break;
            }
        }
        path.finish(&mut purse, releases)
    }
}

impl<'a> Path<'a> {
    /// The curvature at the start.
    fn begin(
        plan: &'a Anchoring,
        (prior, blocks): (&'a Prior, Option<&Arc<Blocks>>),
        purse: &mut Purse,
        releases: &mut dyn Releases,
    ) -> Result<Self, Halt> {
        let d = plan.start.len();
        let (slopes, scales) = plan.slopes.and_scales(&plan.start);
        let mean = plan.events() * slopes.first_weight;
        let weight = plan.unit * plan.expected_rows() * mean;
        let heaviest = plan.unit * plan.most_rows() * slopes.first_weight;
        let light = plan.lighter(slopes.first_weight);
        let slopes = slopes.lighter(light.largest_weight());
        let ask = |releases: &mut dyn Releases, metric: &Metric, tau| {
            let noise = AnchorNoise {
                curvature: Some(tau),
                largest_weight: light.largest_weight().or(plan.largest_time(mean, &slopes)),
                ..AnchorNoise::default()
            };
            releases.anchor(&plan.start, metric, noise)
        };
        // Coordinates in which a shared parameter is as long as a feature of 1.
        let shared = d - scales.len();
        let units = DVector::from_fn(d, |k, _| if k < shared { 1.0 } else { scales[k - shared] });
        let longest = row_norm(plan.row_norm, &vec![1.0; scales.len()]);
        let plain = Metric {
            factor: lower(&DMatrix::from_diagonal(&units))?,
            row_bound: longest,
        };
        let start = START.map(|share| share.max(purse.least_share()));
        let seen = ask(releases, &plain, purse.pay(start[0]))?;
        let least = seen.curvature_sd.max(1e-9 * weight);
        let diagonal = DVector::from_fn(d, |j, _| seen.curvature[j * d + j].max(least));
        // A trace is at most that of N rows of the largest norm: few rows and much noise else look
        // like much curvature.
        let most = heaviest * longest * longest;
        let diagonal = &diagonal * (most / diagonal.sum()).min(1.0);
        let share = plan.mean_share(|k| diagonal[k] / weight);
        let Columns { diagonal, far } =
            Columns::ask(&light, (diagonal, least), (weight, share), purse, releases)?;
        let squares = units.component_mul(&units);
        let mut floor = squares.component_mul(&far) * (DIAGONAL_FLOOR * diagonal.max());
        let diagonal = squares.component_mul(&diagonal);
        let sds = &units * seen.curvature_sd.sqrt();
        let plain_curvature =
            square(&seen.curvature, d).component_mul(&(&units * units.transpose()));
        let together = match blocks {
            None => independent::moments(&plan.structure, &diagonal, &plain_curvature, &sds),
            Some(_) => None,
        };
        let is_diagonal = together.is_none();
        let mut moments = together.unwrap_or_else(|| DMatrix::from_diagonal(&diagonal));
        let beside = BesideLevels::new(&plan.structure, d).filter(|_| seen.curvature_sd > 0.0);
        let mut beside_variance = None;
        if let Some(beside) = &beside {
            let place = Place {
                plan: &light,
                weight,
                scales: &scales,
            };
            let believed = beside.seen(&plain_curvature, &diagonal, &sds);
            let part = believed.map(|b| beside.ask(&place, b, purse, releases));
            if let Some(part) = part.transpose()?.flatten() {
                moments = beside.scaled_to(moments, &part.curvature)?;
                beside_variance = Some(part.variance);
                beside.columns().iter().for_each(|j| floor[*j] = 0.0);
            }
        }
        // No row is longer than this.
        let longest = row_norm(plan.row_norm, &scales);
        let mut matrix = &moments + DMatrix::from_diagonal(&floor);
        if !is_diagonal {
            let least = DIAGONAL_FLOOR * diagonal.max();
            let curved = plan.structure.in_curves(d);
            (0..d)
                .filter(|j| curved[*j])
                .for_each(|j| matrix[(j, j)] -= floor[j]);
            matrix = curves::raised(matrix, least, &plan.structure.curves)?;
        }
        let factor = factor(&matrix)?;
        let target = whiten(&factor, &moments)?;
        let usual = (target.trace() / weight).sqrt();
        let least = floor.component_div(&squares).min();
        let longest_here = match is_diagonal && beside_variance.is_none() {
            true => plain.row_bound / least.sqrt(),
            false => longest * lower(&factor)?.inverse_norm(),
        };
        let bound = (2.0 * usual).min(longest_here);
        let metric = Metric {
            factor: lower(&factor)?,
            row_bound: bound,
        };
        let seen = ask(releases, &metric, purse.pay(start[1]))?;
        let sd = seen.curvature_sd;
        let pooled = blocks.is_some_and(|b| b.blocks.iter().all(|b| b.law.is_pooled()));
        let apart = slopes.weights_scores || slopes.of_numbers();
        let known = match pooled && apart && sd > 0.0 {
            true => Known::new(&plan.structure, &factor)?,
            false => None,
        };
        let mut observed = square(&seen.curvature, d);
        let mut noise = Noise::whole(d, sd);
        if let Some(known) = &known {
            let whitened = Whitened::new(known, &factor)?;
            observed = whitened.project(&observed);
            noise = whitened.noise(sd);
        }
        let (guess, kept) = shrink(&observed, &target, &noise, Target::Guessed);
        let least = target.diagonal().min().min(0.02);
        let plain = |m: DMatrix<f64>| &factor * m * factor.transpose();
        let mut first = plain(floored(&guess, least));
        if let Some(known) = &known {
            let seen = plain(observed);
            first = known.started(first, &seen, &(&factor * sd.sqrt()))?;
            first = plain(floored(&whiten(&factor, &first)?, least));
            if let (Some(beside), Some(variance)) = (&beside, beside_variance) {
                let told = beside.with_part(first.clone(), &beside.part(&moments));
                first = known
                    .with_told(&first, &told, variance.sqrt())?
                    .unwrap_or(first);
            }
        }
        let most = heaviest * longest.powi(2);
        let first = &first * (most / first.trace()).min(1.0);
        Ok(Path {
            plan,
            prior,
            alone: blocks.is_some(),
            at: plan.start.clone(),
            slopes,
            scales,
            curvature: first.clone(),
            doubted: Doubted {
                curvature: first.clone(),
                uncertain: 0.0,
            },
            expected: [first.clone(), first.clone()],
            means: first.clone(),
            first,
            told: (factor, kept * sd * sd),
            gone: 0.0,
            far,
            weight,
            first_weight: weight,
            share,
            observations: Vec::new(),
            uncertain: 0.0,
            longest: LONGEST_STEP,
            moved: 0.0,
            norms: Vec::new(),
            last: None,
            far_to_go: false,
            known,
            pooled: Pooled::new(blocks.map(Arc::as_ref), &plan.structure, d),
            left_over: plan.structure.left_over(d),
            beside,
            beside_variance,
            apart,
        })
    }

    fn dim(&self) -> usize {
        self.at.len()
    }

    /// Bound on a row's norm, shared parameters by their scales.
    fn row_norm(&self) -> f64 {
        row_norm(self.plan.row_norm, &self.scales)
    }

    /// Noise of a whitened gradient of rows bounded by b, released for all of the budget.
    fn whole_noise(&self, bound: f64, purse: &Purse) -> f64 {
        let sensitivity = 2.0 * self.plan.unit * self.slopes.unit_score() * bound;
        purse.rho.map_or(0.0, |rho| sensitivity * multiplier(rho))
    }

    /// Row bound of a stage's gradient over the usual norm.
    fn stage_clip(&self) -> f64 {
        let sds = || STAGE_SDS / self.slopes.largest_residual(self.mean_weight());
        match (self.slopes.centred, self.slopes.clips_residuals) {
            (true, _) if self.slopes.weights_scores => {
                sds().max(LEAST_STAGE_BOUND * self.slopes.common_score / self.slopes.largest_score)
            }
            (true, _) => sds(),
            (false, true) => STAGE_CLIP,
            (false, false) => STAGE_BOUND,
        }
    }

    /// Mean weight of rows.
    fn mean_weight(&self) -> f64 {
        self.weight / (self.plan.unit * self.plan.expected_rows())
    }

    /// What weights are clipped at here.
    fn largest_weight(&self) -> f64 {
        let most = self.plan.largest_time(self.mean_weight(), &self.slopes);
        self.slopes
            .largest_weight
            .min(most.unwrap_or(f64::INFINITY))
    }

    /// What steps are measured in: the first curvature, and for parameters that rows share what
    /// their scales stand for.
    fn ruler(&self) -> DMatrix<f64> {
        let mut ruler = self.first.clone();
        let shared = self.dim() - self.scales.len();
        for (k, scale) in self.scales.iter().enumerate() {
            ruler.row_mut(shared + k).fill(0.0);
            ruler.column_mut(shared + k).fill(0.0);
            let scale = SHARED_LENGTH * scale;
            ruler[(shared + k, shared + k)] = self.share * self.first_weight * scale * scale;
        }
        ruler
    }

    /// The prior's gradient and precision where the path stands.
    fn prior_slopes(&self) -> (DVector<f64>, DMatrix<f64>) {
        let (gradient, precision) = self.prior.slopes(&self.at);
        let precision = DMatrix::from_diagonal(&DVector::from_vec(precision));
        (DVector::from_vec(gradient), precision)
    }

    /// Coordinates for gradients that get about this share: about the posterior's own, but not
    /// where that is not known, and not so fine in rare levels that their rows are long.
    fn coordinates(&self, share: f64, purse: &Purse) -> Result<Coordinates, Halt> {
        let ratio = self.weight / self.first_weight;
        let (_, prior) = self.prior_slopes();
        let mut matrix = &self.curvature + &self.first * (BLEND * ratio) + &prior;
        let squares = solve(&matrix, &self.curvature)?.trace().max(1e-300) / self.weight;
        let least = self.share / (LONGEST_LEVEL * LONGEST_LEVEL * squares);
        let shared = self.dim() - self.scales.len();
        let curved = self.plan.structure.in_curves(self.dim());
        // A shared parameter is as long as a feature of its scale.
        let far = DVector::from_fn(self.dim(), |j, _| match j.checked_sub(shared) {
            None => self.far[j],
            Some(k) => self.far[j] * self.scales[k].powi(2),
        });
        for j in (0..self.dim()).filter(|j| !curved[*j]) {
            matrix[(j, j)] += (far[j] * least - ratio * self.first[(j, j)]).max(0.0);
        }
        matrix = curves::raised(matrix, least, &self.plan.structure.curves)?;
        matrix = reference::raised(matrix, least, &far, &self.left_over);
        let even = factor(&matrix)?;
        if let (Some(pooled), true) = (&self.pooled, purse.rho.is_some()) {
            let noise = |matrix: &DMatrix<f64>| {
                let bound = STAGE_BOUND.min(self.stage_clip()) * self.usual_norm(matrix)?;
                Ok(self.whole_noise(bound, purse) / share.sqrt())
            };
            matrix = pooled.widened(matrix, (&self.curvature, &prior), noise)?;
        }
        let factor = factor(&matrix)?;
        Ok(Coordinates {
            usual: self.usual_norm(&matrix)?,
            even: if self.apart { even } else { factor.clone() },
            factor,
        })
    }

    /// The root mean square norm of rows in the coordinates of a matrix.
    fn usual_norm(&self, matrix: &DMatrix<f64>) -> Result<f64, Halt> {
        let squares = solve(matrix, &self.curvature)?.trace().max(1e-300) / self.weight;
        Ok(squares.sqrt())
    }

    /// Root mean square change of η along a step; for linear models in units of the noise's sd,
    /// which residuals are clipped at four of.
    fn change(&self, step: &DVector<f64>) -> f64 {
        let square = (step.transpose() * self.ruler() * step)[(0, 0)].max(0.0);
        (square / (self.share * self.first_weight)).sqrt() / self.slopes.eta_unit
    }

    fn is_long(&self, step: &DVector<f64>) -> bool {
        self.change(step) > LONG * self.longest
    }

    /// The cosine between the last step and this one, where both are long; else 0.
    fn cosine_of_long_steps(&self, step: &DVector<f64>) -> f64 {
        let ruler = self.ruler();
        let product = |a: &DVector<f64>, b: &DVector<f64>| (a.transpose() * &ruler * b)[(0, 0)];
        match &self.last {
            Some(last) if self.is_long(step) => {
                product(last, step) / (product(last, last) * product(step, step)).sqrt()
            }
            _ => 0.0,
        }
    }

    /// One stage; whether there should be another.
    fn stage(
        &mut self,
        stage: u32,
        kept: f64,
        purse: &mut Purse,
        releases: &mut dyn Releases,
    ) -> Result<bool, Halt> {
        let kept = match self.far_to_go {
            true => kept * (1.0 - TAKEN),
            false => kept,
        };
        let [least, most] = STAGE_SHARES;
        let coordinates = self.coordinates(most.min(purse.left), purse)?;
        let (_, prior) = self.prior_slopes();
        let longest = self.row_norm() * lower(&coordinates.factor)?.inverse_norm();
        let wide = (STAGE_BOUND * coordinates.usual).min(longest);
        let bound = wide.min(self.stage_clip() * coordinates.usual);
        let whole = self.whole_noise(bound, purse);
        let spread = solve(&(&self.curvature + &prior), &coordinates.factor)?;
        let noise = (spread.transpose() * &self.first * &spread)
            .trace()
            .max(0.0);
        let change = (noise / (self.share * self.first_weight)).sqrt() / self.slopes.eta_unit;
        let change = whole * change;
        let least = least.max(purse.least_share());
        // Labels far off take so many stages in any case.
        let needed = (self.slopes.crossing.ceil() + 3.0 - f64::from(stage)).max(1.0);
        let profile = match self.slopes.waits() {
            true => PROFILE_OF_TIMES,
            false => PROFILE_SHARE,
        };
        let even = (purse.left - kept) / ((2.0 + profile) * needed);
        let asked = (change / STAGE_CHANGE).powi(2);
        let share = asked.clamp(least, most.max(least));
        let share = share.min(even.max(purse.least_share()));
        let spent = purse.left - (2.0 + profile) * share < kept;
        // (What is left over is too little for a stage.)
        let too_little = needed <= 1.0 && share < LEAST_OF_STAGE * least.min(asked);
        if purse.rho.is_some() && (spent || too_little) {
            return Ok(false);
        }
        let wide = self.curvature_bound(&coordinates, longest, purse.pays(share));
        let noise = AnchorNoise {
            gradient: Some(purse.pay(share)),
            curvature: Some(purse.pay(share)),
            profile: Some(purse.pay(profile * share)),
            profile_of: Profile::Norms,
            ..AnchorNoise::default()
        };
        let (_, seen) = self.release(&coordinates, [bound, wide], noise, releases)?;
        let sd = seen.gradient_sd;
        self.remember_norms(&seen, wide, coordinates.usual);
        self.weigh(&seen);
        self.bend(&coordinates, &seen, false)?;
        self.observe(&coordinates, &seen, share);
        self.learn_from_gradients(&coordinates, 0.0)?;
        let gradient = gradient_of(&coordinates, &seen);
        let Step { by, kept, sure } = self.paced_step(&gradient, &coordinates, sd)?;
        let longer = self.lengthened(by.clone(), kept, sure);
        let step = match sd == 0.0 && self.reach(&longer) > 1.0 {
            true => by,
            false => longer,
        };
        let moved = self.change(&step);
        self.far_to_go = self.last.is_some() && kept > FAR_TO_GO;
        self.advance(&step)?;
        // (After a long step the noise was chosen by a curvature of far off.)
        let near = moved.max(self.moved) < LONG * LONGEST_STEP;
        let settled = stage > 0 && kept < SETTLED && near;
        self.moved = moved;
        // Without privacy a step is all signal until none is left.
        Ok(!settled && (sd > 0.0 || moved > 1e-6))
    }

    /// [`Path::step`], where the longest has been halved or has grown by how this step goes on from
    /// the one before it.
    fn paced_step(
        &mut self,
        gradient: &DVector<f64>,
        coordinates: &Coordinates,
        sd: f64,
    ) -> Result<Step, Halt> {
        let mut step = self.step(gradient, coordinates, sd)?;
        let cosine = self.cosine_of_long_steps(&step.by);
        if cosine.abs() > TURNED {
            let by = if cosine < 0.0 { 0.5 } else { cosine.exp2() };
            self.longest = (by * self.longest).min(LONGEST_STEP);
            step = self.step(gradient, coordinates, sd)?;
        }
        // Other laws bend everywhere, and come back by themselves.
        let declared = matches!(self.slopes.score, Score::Declared(_));
        self.last = (declared && self.is_long(&step.by)).then(|| step.by.clone());
        Ok(step)
    }

    /// What is asked for where the path stands: the gradient of rows bounded by the first of two
    /// bounds, the rest of rows bounded by the second, whose metric is given back.
    fn release(
        &self,
        coordinates: &Coordinates,
        [narrow, wide]: [f64; 2],
        noise: AnchorNoise,
        releases: &mut dyn Releases,
    ) -> Result<(Metric, Expansion), Halt> {
        let noise = AnchorNoise {
            largest_weight: Some(self.largest_weight()),
            ..noise
        };
        let metric = Metric {
            factor: lower(&coordinates.factor)?,
            row_bound: wide,
        };
        let seen = expand(&self.at, &metric, narrow, noise, releases)?;
        Ok((metric, seen))
    }

    /// The row bound of a curvature released at τ: as wide as rows by the last profile need, so
    /// that what is cut off them is lost in noise, or little. (A curvature that is cut makes steps
    /// that go too far, and coordinates in which its rows are longer still.)
    fn curvature_bound(&self, coordinates: &Coordinates, longest: f64, tau: f64) -> f64 {
        let d = self.dim() as f64;
        let usual = coordinates.usual;
        let slopes = &self.slopes;
        let noise = 2.0 * self.plan.unit * self.largest_weight() * tau;
        let mean = self.mean_weight();
        let longest = longest.min(WIDEST * usual);
        let mut bound = STAGE_BOUND * usual;
        while bound < longest {
            let cut = |n: f64| {
                let share = (bound / n).min(1.0);
                1.0 - slopes.influence(share, mean).weight / mean * share * share
            };
            let terms = self.norms.iter();
            let lost: f64 = terms
                .map(|(n, w)| w * (n * usual).powi(2) * cut(n * usual))
                .sum();
            if lost <= LOST.max(2.0 * noise * bound * bound * d.sqrt()) {
                break;
            }
            bound *= WIDER;
        }
        bound.min(longest)
    }

    fn remember_norms(&mut self, seen: &Expansion, bound: f64, usual: f64) {
        let ranges = super::norms::ranges(seen, bound).into_iter();
        self.norms = ranges.map(|(n, w)| (n / usual, w)).collect();
    }

    /// Σ κw from a profile, kept within reason; the curvature is scaled along.
    fn weigh(&mut self, seen: &Expansion) {
        let units = self.slopes.rows_of_unit > 1;
        if self.slopes.score == Score::Linear && !units || seen.profile.is_empty() {
            return;
        }
        let sum: f64 = seen.profile.iter().sum();
        let noise = 2.0 * seen.profile_sd * (seen.profile.len() as f64).sqrt();
        let guessed = units || matches!(self.slopes.score, Score::Declared(_));
        if guessed && self.observations.is_empty() {
            // Of the start itself, where the weight was only guessed; the curvature there was seen.
            self.weight = sum.max(noise).max(1e-6 * self.weight);
            self.first_weight = self.weight;
            let doubted = &self.doubted.curvature;
            let [first, own, doubted] = [&self.first, &self.curvature, doubted]
                .map(|matrix| self.within_weight(matrix.clone()));
            (self.first, self.curvature, self.doubted.curvature) = (first, own, doubted);
            self.lighten();
            return;
        }
        let least = noise.max(0.01 * self.first_weight);
        let most = match self.slopes.score {
            Score::Logistic => self.plan.most_rows() * self.plan.unit * 0.25,
            Score::Linear => self.plan.most_rows() * self.plan.unit,
            Score::Declared(_) if !self.slopes.clips_residuals || self.slopes.weights_scores => {
                self.plan.most_rows() * self.plan.unit * self.slopes.largest_weight
            }
            _ => 3.0 * self.weight,
        };
        let weight = sum.max(least).min(most.max(least));
        let ratio = weight / self.weight;
        for matrix in [&mut self.curvature, &mut self.doubted.curvature] {
            *matrix *= ratio;
        }
        self.told.1 *= ratio * ratio;
        self.weight = weight;
        self.lighten();
    }

    /// A curvature beside pooled levels in which a constant has no more than all rows' weight:
    /// noise and floors of a hierarchy add up to much more.
    fn within_weight(&self, matrix: DMatrix<f64>) -> DMatrix<f64> {
        let features = self.dim() - self.scales.len();
        match (self.plan.structure.constant, &self.known) {
            (Some(k), Some(_)) => at_most(matrix, k, self.weight, features),
            _ => matrix,
        }
    }

    /// Clips weights by what they are now, where they may be.
    fn lighten(&mut self) {
        if self.plan.is_light() {
            self.slopes = self.plan.lighter(self.mean_weight()).slopes;
        }
    }

    /// The curvature from a release, drawn towards what was believed; the last one is without what
    /// noise alone says of lost levels.
    fn bend(
        &mut self,
        coordinates: &Coordinates,
        seen: &Expansion,
        last: bool,
    ) -> Result<Bent, Halt> {
        let (l, even) = (&coordinates.factor, &coordinates.even);
        let sd = seen.curvature_sd;
        let known = self.known.as_ref();
        let here = known.map(|known| Whitened::new(known, l)).transpose()?;
        let project = |matrix: DMatrix<f64>| match &here {
            Some(known) => known.project(&matrix),
            None => matrix,
        };
        let observed = project(square(&seen.curvature, self.dim()));
        let whole = Noise::whole(self.dim(), sd);
        let noise = here.as_ref().map_or(whole, |known| known.noise(sd));
        let levels = self.levels(coordinates)?;
        let draw = |believed: &DMatrix<f64>, off: Target| -> Result<Seen, Halt> {
            let centre = match known {
                Some(known) => known.with_means(believed, &self.means),
                None => believed.clone(),
            };
            let target = project(whiten(l, &centre)?);
            let (guess, kept) = shrink(&observed, &target, &noise, off);
            let guess = match last && known.is_none() {
                true => self.without_lost_levels(guess, l, kept.sqrt() * sd)?,
                false => guess,
            };
            let (guess, beside_variance) = match &self.beside {
                Some(beside) => {
                    let told = self.beside_variance.map(|v| Target::Told(v + self.drift()));
                    let off = told.unwrap_or(off);
                    beside.alone(l, guess, [&observed, &target], sd, off)
                }
                None => (guess, 0.0),
            };
            let guess = match known.filter(|_| sd > 0.0) {
                Some(known) => {
                    let plain = |m: &DMatrix<f64>| l * m * l.transpose();
                    let (seen, noise) = (plain(&observed), l * sd.sqrt());
                    whiten(l, &known.heard_means(plain(&guess), &centre, &seen, &noise))?
                }
                None => guess,
            };
            let (guess, even) = match &levels {
                Some(levels) => levels.heard(guess, &target, kept),
                None => (guess.clone(), guess),
            };
            let drawn = Drawn::new(&even, kept, &noise);
            Ok(Seen {
                drawn,
                guess,
                beside_variance,
            })
        };
        // In θ and in the release's coordinates: floors lift what is known to be zero, and what
        // levels add up to.
        let clear = |matrix: DMatrix<f64>, seen: &Seen| -> Result<[DMatrix<f64>; 2], Halt> {
            let Some(levels) = &levels else {
                return Ok([l * &matrix * l.transpose(), matrix]);
            };
            let plain = match &levels.known {
                Some(there) => {
                    let matrix = even * there.spanned(&matrix) * even.transpose();
                    let noise = even * (seen.drawn.kept.sqrt() * sd).sqrt();
                    let told = l * &seen.guess * l.transpose();
                    let plain = there.known.with_totals(matrix, &told, Some(&noise))?;
                    let asked = self.beside_variance.map(|_| seen.beside_variance.sqrt());
                    let own = asked.map(|sd| there.known.with_told(&plain, &told, sd));
                    own.transpose()?.flatten().unwrap_or(plain)
                }
                None => even * matrix * even.transpose(),
            };
            let plain = self.within_weight(plain);
            let own = whiten(l, &plain)?;
            Ok([plain, own])
        };
        let drawn = draw(&self.curvature, Target::Told(self.variance(l)?))?;
        let doubted = draw(&self.doubted.curvature, Target::Guessed)?;
        let [mut curvature, mut raised] = clear(drawn.drawn.raised(), &drawn)?;
        if sd > 0.0 {
            let told = l * &drawn.guess * l.transpose();
            // (A cut's column is part of all other cuts' too.)
            let cut = self.plan.structure.cut;
            let splines = self.left_over.iter();
            let splines = splines.filter(|left| left.of_spline && Some(left.whole) != cut);
            let most = |seen: f64, noise: f64| seen.max(SPLINE_NOISE * noise);
            curvature = reference::held(curvature, &told, (l, drawn.drawn.sd), splines, most);
            raised = whiten(l, &curvature)?;
        }
        let [mut believed, _] = clear(doubted.drawn.believed(), &doubted)?;
        if last && sd > 0.0 {
            let released = l * square(&seen.curvature, self.dim()) * l.transpose();
            let all = self.left_over.iter();
            let most = |seen: f64, noise: f64| {
                let doubt = LEFT_OVER_NOISE * noise;
                (seen - doubt).max(doubt)
            };
            believed = reference::held(believed, &released, (l, sd), all, most);
        }
        let believed = whiten(l, &believed)?;
        let [doubted_curvature, _] = clear(doubted.drawn.raised(), &doubted)?;
        // (A level of no weight has no means.)
        let seen = l * &drawn.guess * l.transpose();
        if known.is_some() && sd > 0.0 && seen.diagonal().min() > 0.0 {
            self.means = seen;
        }
        // What is left of the noise's variance when shrunk, by a normal prior.
        let uncertain = |kept: f64| kept.max(LEAST_NOISE).sqrt() * sd;
        self.curvature = curvature;
        self.uncertain = uncertain(drawn.drawn.kept);
        self.doubted = Doubted {
            curvature: doubted_curvature,
            uncertain: uncertain(doubted.drawn.kept),
        };
        self.told = (even.clone(), drawn.drawn.kept * sd * sd);
        self.beside_variance = self.beside_variance.map(|_| drawn.beside_variance);
        self.gone = 0.0;
        Ok(Bent {
            lift: raised - &believed,
            believed,
            sd: doubted.drawn.sd,
            lost: doubted.drawn.lost(),
        })
    }

    /// `None` where there are no pooled levels.
    fn levels(&self, coordinates: &Coordinates) -> Result<Option<Shorter<'_>>, Halt> {
        if !self.apart || (self.pooled.is_none() && self.known.is_none()) {
            return Ok(None);
        }
        let (l, even) = (&coordinates.factor, &coordinates.even);
        let known = self.known.as_ref();
        Ok(Some(Shorter {
            to: forward_matrix(even, l)?,
            known: known.map(|known| Whitened::new(known, even)).transpose()?,
        }))
    }

    /// A curvature in the coordinates of `factor`, whose noise has this sd there, with lost levels
    /// set apart.
    fn without_lost_levels(
        &self,
        guess: DMatrix<f64>,
        factor: &DMatrix<f64>,
        sd: f64,
    ) -> Result<DMatrix<f64>, Halt> {
        let plain = factor * &guess * factor.transpose();
        let sds = DVector::from_fn(self.dim(), |j, _| sd * factor.row(j).norm_squared());
        match levels::apart(&plain, &sds, self.weight, &self.plan.structure) {
            Some(plain) => whiten(factor, &plain),
            None => Ok(guess),
        }
    }

    /// Variance of the believed curvature's entries on the diagonal in the coordinates of `factor`.
    fn variance(&self, factor: &DMatrix<f64>) -> Result<f64, Halt> {
        let (before, variance) = &self.told;
        let stretched = forward_matrix(factor, before)?.norm_squared() / self.dim() as f64;
        Ok(variance * stretched * stretched + self.drift())
    }

    /// Variance of what entries have changed by since the last release.
    fn drift(&self) -> f64 {
        match self.slopes.is_quadratic() {
            true => 0.0,
            false => (DRIFT * self.gone).powi(2),
        }
    }

    fn observe(&mut self, coordinates: &Coordinates, seen: &Expansion, share: f64) {
        self.observations.push(Observation {
            at: DVector::from_column_slice(&self.at),
            gradient: gradient_of(coordinates, seen),
            factor: coordinates.factor.clone(),
            sd: seen.gradient_sd,
            share,
            weight: self.weight,
        });
    }

    /// The curvature as differences of the gradients so far show it; its entries are off by
    /// `misfit` beside their noise.
    fn learn_from_gradients(&mut self, coordinates: &Coordinates, misfit: f64) -> Result<(), Halt> {
        if self.uncertain.max(misfit) <= 0.0 || self.observations.len() < 2 {
            return Ok(());
        }
        let l = &coordinates.even;
        let seen = &self.observations;
        let pooled = self.pooled.as_ref().filter(|_| self.apart);
        let first = pooled.and_then(Pooled::others_first);
        let first = first.unwrap_or(self.dim());
        let Doubted {
            curvature,
            uncertain,
        } = &mut self.doubted;
        let [expected, doubted] = &self.expected;
        for (matrix, sd, expected) in [
            (&mut self.curvature, self.uncertain, expected),
            (curvature, *uncertain, doubted),
        ] {
            // It is a share of what the law expects: not of what coordinates are raised to, where
            // rows hardly tell, and not of what gradients made of it, which has errors.
            let (own, sd) = match misfit > 0.0 {
                true => (
                    factor(&(expected + l * l.transpose() * (sd / misfit)))?,
                    misfit,
                ),
                false => (l.clone(), sd),
            };
            let here = whiten(&own, matrix)?;
            let change = secant::change(&here, &own, sd, self.weight, seen, first)?;
            let least = eigen(&here).0.min().clamp(LEAST_BELIEVED, LEAST_SECANT);
            *matrix = &own * floored(&(here + change), least) * own.transpose();
            if let Some(known) = &self.known {
                *matrix = known.complete(matrix)?;
            }
        }
        Ok(())
    }

    /// A logistic regression's step, as long as the gradient it goes against lasts when rows lie at
    /// their root mean square from η = 0 on both sides: the curvature falls away from there, so
    /// that Newton's steps are too short by a lot where classes are nearly separated. (Where a step
    /// is that long, noise in its length multiplies it, so that the share that is `sure` counts.)
    fn lengthened(&self, step: DVector<f64>, kept: f64, sure: f64) -> DVector<f64> {
        let trust = (kept - TRUSTED).max(0.0) / (1.0 - TRUSTED);
        if self.slopes.score != Score::Logistic || trust <= 0.0 {
            return step;
        }
        let at = DVector::from_column_slice(&self.at);
        let product = |a: &DVector<f64>, b: &DVector<f64>| {
            (a.transpose() * &self.first * b)[(0, 0)] / self.first_weight
        };
        let here = product(&at, &at).max(1e-12).sqrt();
        let along = sure * product(&step, &step).max(1e-12).sqrt();
        let cosine = (product(&at, &step) / (here * along)).clamp(-1.0, 1.0);
        let across = (1.0 - cosine * cosine).sqrt();
        let sigmoid = |eta: f64| 1.0 / (1.0 + (-eta).exp());
        // Both signs of either part; the other two points mirror these.
        let points = [1.0, -1.0].map(|sign| (here, along * (cosine + sign * across)));
        let gradient = |length: f64| -> f64 {
            let change = |(eta, by): &(f64, f64)| (sigmoid(eta + length * by) - sigmoid(*eta)) * by;
            points.iter().map(change).sum()
        };
        let linear = |(eta, by): &(f64, f64)| sigmoid(*eta) * sigmoid(-eta) * by * by;
        let asked: f64 = points.iter().map(linear).sum();
        let (mut low, mut high) = (0.2, LENGTHENED);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            match gradient(middle) < asked {
                true => low = middle,
                false => high = middle,
            }
        }
        step * (1.0 + (low - 1.0) * trust)
    }

    /// The step that a gradient of the likelihood asks for, shortened by what its noise alone would
    /// show and damped to the longest.
    fn step(
        &self,
        gradient: &DVector<f64>,
        coordinates: &Coordinates,
        sd: f64,
    ) -> Result<Step, Halt> {
        let (prior_gradient, prior) = self.prior_slopes();
        let precision = &self.curvature + &prior;
        let gradient = gradient + &prior_gradient;
        // (In coordinates in which it is everywhere the same: elsewhere noise is what directions
        // have of it that rows say nothing of.)
        let seen = forward(&coordinates.factor, &gradient)?.norm_squared();
        let noise = self.dim() as f64 * sd * sd;
        let of_all = (1.0 - noise / seen.max(1e-300)).clamp(0.0, 1.0);
        let told = Told {
            curvature: &self.curvature,
            prior: &prior,
            noise: &coordinates.factor * sd,
        };
        let mut shares = DVector::from_element(self.dim(), of_all);
        let (mut kept, mut sure) = (of_all, 1.0);
        if let (Some(pooled), true) = (&self.pooled, sd > 0.0) {
            let step = told.step(&gradient, &prior_gradient)?;
            let own = pooled.kept(&told, &step)?;
            (shares, kept) = (own.shares, own.others.max(of_all));
            sure = SURE * kept;
        }
        let gradient = match sd > 0.0 {
            true => self.heeded(&gradient, &precision, coordinates, sd)?,
            false => gradient,
        };
        // Gradients count by what their noise leaves of them, direction by direction, and the prior
        // has the rest: levels of few rows stay where their prior has them.
        let whole = match self.alone && sd > 0.0 {
            true => told.step(&gradient, &prior_gradient)?,
            false => solve_vector(&precision, &gradient)?,
        };
        let mut whole = self.held(whole.component_mul(&shares), &precision);
        let step = |by| Step { by, kept, sure };
        if self.slopes.is_quadratic() {
            return Ok(step(whole));
        }
        if sd == 0.0 {
            whole = self.within_reach(whole, &precision, &gradient)?;
        }
        if self.change(&whole) <= self.longest {
            return Ok(step(whole));
        }
        let (mut damping, ruler) = (0.01, self.ruler());
        for _ in 0..80 {
            let damped = &precision + &ruler * damping;
            let by = solve_vector(&damped, &gradient)?.component_mul(&shares);
            let by = self.held(by, &damped);
            if self.change(&by) <= self.longest {
                return Ok(step(by));
            }
            damping *= 1.3;
        }
        Ok(step(whole * 0.0))
    }

    /// The largest change of η along a step in rows that have one column alone, over the longest.
    fn reach(&self, step: &DVector<f64>) -> f64 {
        let columns = self.dim() - self.scales.len();
        let each = (0..columns).map(|j| step[j].abs() * self.far[j].sqrt());
        each.fold(0.0, f64::max) / (LONGEST_STEP * self.slopes.eta_unit)
    }

    /// A step without noise, damped where it would take the few rows of a level much farther than
    /// others: Newton's rule overshoots there, and all rows' root mean square does not show it.
    /// (With noise, that is what is heeded.)
    fn within_reach(
        &self,
        step: DVector<f64>,
        precision: &DMatrix<f64>,
        gradient: &DVector<f64>,
    ) -> Result<DVector<f64>, Halt> {
        let (mut step, mut damping) = (step, 1e-7);
        while self.reach(&step) > 1.0 && damping < 1.0 {
            let weight = damping * self.share * self.first_weight;
            let ruler = DMatrix::from_diagonal(&(&self.far * weight));
            let damped = precision + ruler;
            step = self.held(solve_vector(&damped, gradient)?, &damped);
            damping *= 2.0;
        }
        Ok(step)
    }

    /// The step that a quadratic of this precision asks for where it may not leave the prior's box,
    /// given the one it asks for anywhere.
    fn held(&self, step: DVector<f64>, precision: &DMatrix<f64>) -> DVector<f64> {
        let here = DVector::from_column_slice(&self.at);
        match &self.prior.support {
            Support::Box(bounds) => {
                let to = &here + &step;
                match self.prior.supports(to.as_slice()) {
                    true => step,
                    false => nearest(&to, precision, bounds) - here,
                }
            }
            Support::Unbounded => step,
        }
    }

    /// What is heeded of a gradient, some of whose entries are mostly noise: those of coefficients
    /// that few rows tell of. A step's prior sd is the change of all rows' predictors, or FAR.
    fn heeded(
        &self,
        gradient: &DVector<f64>,
        precision: &DMatrix<f64>,
        coordinates: &Coordinates,
        sd: f64,
    ) -> Result<DVector<f64>, Halt> {
        let shared = self.dim() - self.scales.len();
        let mut step = solve_vector(precision, gradient)?;
        step.rows_mut(shared, self.scales.len()).fill(0.0);
        let far = self.change(&step).max(FAR) * self.slopes.eta_unit;
        let far = DVector::from_fn(self.dim(), |k, _| match k.checked_sub(shared) {
            None => far / self.far[k].sqrt(),
            Some(k) => far / self.scales[k],
        });
        let mut usual = DMatrix::from_diagonal(&far.map(|v| v * v));
        // What is left over is as free as a column, where noise that this lets in costs nothing but
        // itself: elsewhere a step that noise makes longer changes what the rows of a level weigh.
        let free = |left: &&LeftOver| left.of_spline || self.slopes.is_quadratic();
        for LeftOver { whole, own, .. } in self.left_over.iter().filter(free) {
            usual += own * own.transpose() * far[*whole].powi(2);
        }
        let noise = &coordinates.factor * coordinates.factor.transpose() * (sd * sd);
        heeded(gradient, precision, &noise, &usual)
    }

    /// Moves, inside the prior's support.
    fn advance(&mut self, step: &DVector<f64>) -> Result<(), Halt> {
        self.gone += self.change(step);
        let to: Vec<f64> = self
            .at
            .iter()
            .zip(step.iter())
            .map(|(a, s)| a + s)
            .collect();
        let to = super::warm_start::inside(to, &self.at, self.prior);
        let before = DVector::from_vec(std::mem::replace(&mut self.at, to));
        self.tilt(&before)?;
        // (Of other laws these are the same everywhere.)
        if self.is_joint() {
            let (slopes, scales) = self.plan.slopes.and_scales(&self.at);
            self.rescale(&slopes, &scales);
            (self.slopes, self.scales) = (slopes, scales);
        }
        Ok(())
    }

    /// The curvature of two classes here, from that `before` the last step. (Without noise the next
    /// release shows it.)
    fn tilt(&mut self, before: &DVector<f64>) -> Result<(), Halt> {
        if self.slopes.score != Score::Logistic || self.plan.split.is_none() {
            return Ok(());
        }
        let structure = &self.plan.structure;
        let features = Features::new(&self.first / self.first_weight, structure);
        let here = DVector::from_column_slice(&self.at);
        let weight = |eta: f64| self.slopes.score.slopes(eta, 1.0).1;
        let carry = features.carry(before, &here, weight);
        let doubted = &mut self.doubted.curvature;
        for matrix in [&mut self.curvature, doubted] {
            *matrix = &carry.by * &*matrix * &carry.by;
            if let Some(known) = &self.known {
                *matrix = known.complete(matrix)?;
            }
        }
        self.weight *= carry.weight;
        Ok(())
    }

    /// Where shared parameters move, rows tell as much more or less of everything as public tables
    /// of the law say.
    fn rescale(&mut self, slopes: &Slopes, scales: &[f64]) {
        let ratio = slopes.largest_weight / self.slopes.largest_weight;
        let shared = self.dim() - scales.len();
        let by = DVector::from_fn(self.dim(), |k, _| match k.checked_sub(shared) {
            None => ratio.sqrt(),
            Some(k) => ratio.sqrt() * scales[k] / self.scales[k],
        });
        let by = DMatrix::from_diagonal(&by);
        let doubted = &mut self.doubted.curvature;
        let [expected, expected_doubted] = &mut self.expected;
        for matrix in [
            &mut self.curvature,
            doubted,
            expected,
            expected_doubted,
            &mut self.first,
            &mut self.means,
        ] {
            *matrix = &by * &*matrix * &by;
        }
        self.told.0 = by * &self.told.0;
        self.weight *= ratio;
        self.first_weight *= ratio;
    }

    /// The last releases and the anchor that they make.
    fn finish(&mut self, purse: &mut Purse, releases: &mut dyn Releases) -> Result<Anchor, Halt> {
        let (whole, coordinates) = (purse.left, self.coordinates(purse.left, purse)?);
        let noise = AnchorNoise {
            profile: Some(purse.pay(FINAL_PROFILE * whole)),
            ..AnchorNoise::default()
        };
        // No row is longer than this.
        let longest = self.row_norm() * lower(&coordinates.factor)?.inverse_norm();
        let wide = (STAGE_BOUND * coordinates.usual).min(longest);
        let (_, seen) = self.release(&coordinates, [wide; 2], noise, releases)?;
        self.remember_norms(&seen, wide, coordinates.usual);
        self.weigh(&seen);
        let residuals = self.residuals(&coordinates, purse, releases)?;
        let curvature_share = self.plan.split.map_or(FINAL_CURVATURE, |s| {
            s.curvature / (s.gradient + s.curvature)
        }) * purse.left;
        let gradients = purse.left - curvature_share;
        let norms = Norms::new(
            &seen,
            wide,
            self.slopes,
            [self.mean_weight(), coordinates.usual],
        );
        let cut = |b: f64| match &residuals {
            Some(residuals) => residuals.cut(self.kept_gradient(b, coordinates.usual)),
            None => Cut::default(),
        };
        let (shared, d) = (self.scales.len(), self.dim());
        let bound = match self.plan.clip {
            Some(multiple) => multiple * coordinates.usual,
            None => norms.best(coordinates.usual, d, |b| {
                let noise = self.whole_noise(b, purse) / gradients.sqrt();
                (noise, cut(b).bias(shared, d))
            }),
        };
        let bias = norms.bias_in_intervals(bound, d);
        let cut = cut(bound);
        // Gradients of rows that are weighted down tell of so much less than the curvature does.
        let heard = match self.slopes.weights_scores {
            true => norms.kept(bound).max(LEAST_KEPT),
            false => 1.0,
        };
        // Of such vectors of scores it is no norm that is clipped.
        let bound = match self.is_joint() && !self.slopes.centred {
            true => bound,
            false => bound.min(longest),
        };
        // Rows that are clipped with their residuals have weights of their own.
        let wide = match self.slopes.clips_residuals {
            true if self.slopes.weights_scores => {
                wide.min(CURVATURE_BOUND * coordinates.usual).max(bound)
            }
            true => {
                let wide = self.curvature_bound(&coordinates, longest, purse.pays(curvature_share));
                wide.max(bound.min(longest))
            }
            false => bound,
        };
        let unit: f64 = (0..FINAL_GRADIENTS).map(|i| GROWTH.powi(i as i32)).sum();
        let first = self.observations.len();
        self.expected = [self.curvature.clone(), self.doubted.curvature.clone()];
        // (Farther from the mode it is the law's own bending that gradients show, and without
        // noise, which lets a path arrive, rounding.)
        let private = purse.rho.is_some();
        let misfit = match private && self.is_joint() && residuals.is_some() {
            true => MISFIT,
            false => 0.0,
        };
        for i in 0..FINAL_GRADIENTS {
            let share = gradients * GROWTH.powi(i as i32) / unit;
            let last = i + 1 == FINAL_GRADIENTS;
            let noise = AnchorNoise {
                gradient: Some(purse.pay(share)),
                curvature: last.then(|| purse.pay(curvature_share)),
                ..AnchorNoise::default()
            };
            let (metric, mut seen) = self.release(&coordinates, [bound, wide], noise, releases)?;
            seen.gradient.iter_mut().for_each(|g| *g /= heard);
            seen.gradient_sd /= heard;
            self.observe(&coordinates, &seen, share);
            let one = self.whole_noise(bound, purse) / heard;
            if last {
                let bent = self.bend(&coordinates, &seen, true)?;
                self.learn_from_gradients(&coordinates, misfit)?;
                let (gradient, sd) = self.combined(first, coordinates.usual, one)?;
                let (own, bias, own_noise) = ((gradient, sd), (bias, cut), sd);
                let mut anchor = self.anchor(&coordinates, metric, &bent, own, bias)?;
                anchor.doubts.weighted_down = norms.lost_far_out(bound);
                let room = cut.room(shared, d);
                anchor.doubts.clipped = if room > own_noise * SAID_OF_NOISE {
                    room
                } else {
                    0.0
                };
                return Ok(anchor);
            }
            self.learn_from_gradients(&coordinates, misfit)?;
            let (gradient, sd) = self.combined(first, coordinates.usual, one)?;
            let step = self.paced_step(&gradient, &coordinates, sd)?;
            self.advance(&step.by)?;
        }
        Err(Halt::Failed("an anchor needs a gradient".into()))
    }

    fn is_joint(&self) -> bool {
        matches!(self.slopes.predictor, Predictor::Joint(_))
    }

    /// The longest gradient of a row that a row bound keeps, nats in whitened coordinates. Scores
    /// are clipped by themselves too but where vectors are clipped whole.
    fn kept_gradient(&self, bound: f64, usual: f64) -> f64 {
        let bound = match self.is_joint() {
            true => bound,
            false => bound.min(usual),
        };
        self.plan.unit * self.slopes.largest_score * bound
    }

    /// A profile of the rows' gradients, where labels may lie farther out than their law expects
    /// and their scores are clipped as they are.
    fn residuals(
        &self,
        coordinates: &Coordinates,
        purse: &mut Purse,
        releases: &mut dyn Releases,
    ) -> Result<Option<Residuals>, Halt> {
        let slopes = &self.slopes;
        if !slopes.clips_residuals || slopes.weights_scores || slopes.centred || slopes.ends {
            return Ok(None);
        }
        let bound = SHORTEST_RESIDUAL * coordinates.usual;
        let metric = Metric {
            factor: lower(&coordinates.factor)?,
            row_bound: bound,
        };
        let noise = AnchorNoise {
            profile: Some(purse.pay(FINAL_RESIDUALS * purse.left)),
            profile_of: Profile::Gradients,
            ..AnchorNoise::default()
        };
        let seen = releases.anchor(&self.at, &metric, noise)?;
        let longest = self.plan.unit * slopes.largest_score * bound;
        Ok(Some(Residuals::new(&seen, longest)))
    }

    /// The likelihood's gradient where the path stands from the observations from `first` on, by
    /// the curvature, and its noise in the release's coordinates. `one`: noise of a gradient for
    /// the whole budget. An observation from far away is worth less where the curvature bends.
    fn combined(&self, first: usize, usual: f64, one: f64) -> Result<(DVector<f64>, f64), Halt> {
        let d = self.dim() as f64;
        let here = DVector::from_column_slice(&self.at);
        let mut sum = DVector::zeros(self.dim());
        let (mut total, mut variance) = (0.0, 0.0);
        for o in &self.observations[first..] {
            let gap = &o.at - &here;
            let pull = &self.curvature * &gap;
            let squared = gap.dot(&pull).max(0.0) / d;
            let bent = match self.slopes.is_quadratic() {
                true => 0.0,
                false => 0.15 * squared * usual * (d / self.share).sqrt(),
            };
            let noise = one * one / o.share;
            let weight = match noise + bent * bent {
                0.0 => 1.0,
                both => (one * one).max(1e-300) / both,
            };
            sum += (&o.gradient + &pull) * weight;
            total += weight;
            variance += weight * weight * noise;
        }
        Ok((sum / total, variance.sqrt() / total))
    }

    /// The anchor, with what is not known of its centre.
    fn anchor(
        &self,
        coordinates: &Coordinates,
        metric: Metric,
        bent: &Bent,
        (gradient, sd): (DVector<f64>, f64),
        (bias, cut): (f64, Cut),
    ) -> Result<Anchor, Halt> {
        let d = self.dim();
        let l = &coordinates.factor;
        let (prior_gradient, plain_prior) = self.prior_slopes();
        let prior = whiten(l, &plain_prior)?;
        let own = forward(l, &gradient)?;
        let raised = whiten(l, &self.curvature)?;
        let precision = &raised + &prior;
        let prior_pull = forward(l, &prior_gradient)?;
        let pull = &own + &prior_pull;
        let centre = solve_vector(&precision, &pull)?;
        // How far the last step goes, over what the noise of two gradients would make it.
        let root = factor(&precision)?;
        let step = backward(l, &centre)?;
        let own_precision = l * &precision * l.transpose();
        let held = self.held(step.clone(), &own_precision);
        let length = held.dot(&(&own_precision * &held));
        // How far a box keeps draws from that centre.
        let kept_off = (l.transpose() * (step - held)).norm();
        let usual = forward_matrix(&root, &DMatrix::identity(d, d))?.norm_squared() * sd * sd;
        let unsettled = match sd > 0.0 {
            true => length / (UNSETTLED * usual).max(1e-300),
            // Without noise a thirtieth of a posterior sd a coordinate is far.
            false => length / (1e-3 * d as f64),
        };
        // Levels that are lost in noise hide how far the others still have to go.
        let unsettled = match (&self.pooled, sd > 0.0 && self.apart) {
            (Some(pooled), true) => {
                let told = Told {
                    curvature: &self.curvature,
                    prior: &plain_prior,
                    noise: l * sd,
                };
                let step = told.step(&(&gradient + &prior_gradient), &prior_gradient)?;
                let noise = 1.0 - pooled.kept(&told, &step)?.others;
                unsettled.max((UNSETTLED * noise.max(1e-12)).recip())
            }
            _ => unsettled,
        };
        let inflation = (unsettled / BELIEVED_UNSETTLED).clamp(1.0, 1e4);
        let noise = match sd > 0.0 {
            true => self.noise(&precision, &centre, (sd, bias)),
            false => DMatrix::zeros(d, d),
        };
        // What is cut is bounded and not known: intervals have room for it, no centre follows it. A
        // way that had not settled is noise in its gradient too: the prior bounds what it hides.
        let uncertain = match sd > 0.0 {
            true => (&noise + self.room_for(cut, coordinates)?) * inflation,
            false => noise.clone(),
        };
        let alone = match self.alone {
            // Levels of which too much noise is said would seem more alike than noise lets them be.
            true if sd > 0.0 => {
                let rows = gradient_noise(&precision, (sd, bias));
                let rows = (rows + self.room_for(cut, coordinates)?) * inflation;
                Some(scales::alone(&own, &bent.believed, &rows)?)
            }
            true => Some(scales::alone(&own, &raised, &noise)?),
            false => None,
        };
        let (own, centre, spread) = match sd > 0.0 {
            true => {
                let answer = |h: &DMatrix<f64>| centre_of(h, &noise, &prior, &own, &prior_pull);
                let (centre, variance) = answer(&raised)?;
                // Where the floor made a step short, it may be as much longer, by one of the
                // prior's sds at most, or by so many as the centre is off already.
                let (longer, _) = answer(&floored(&(&raised - &bent.lift), LEAST_BELIEVED))?;
                let further = longer - &centre;
                let length = further.dot(&(&prior * &further)).sqrt();
                let off = further.dot(&(&prior * &centre - &prior_pull)).abs() / length.max(1e-300);
                let further = further / (length / off.max(1.0)).max(1.0);
                let spread = spread(&bent.believed, &precision, &prior, &uncertain)?;
                let spread = spread + variance + &further * further.transpose();
                let spread = spread.transpose().iter().copied().collect();
                (&precision * &centre - &prior_pull, centre, spread)
            }
            false => (own, centre, Vec::new()),
        };
        let least = eigen(&precision).0.min().max(1e-12);
        Ok(Anchor {
            at: self.at.clone(),
            metric,
            gradient: own.iter().copied().collect(),
            curvature: raised.transpose().iter().copied().collect(),
            gradient_sd: sd,
            curvature_sd: bent.sd,
            centre: centre.iter().copied().collect(),
            radius: self.plan.radius / least.sqrt().min(1.0) + kept_off,
            spread,
            doubts: Doubts {
                lost: bent.lost,
                weighted_down: 0.0,
                clipped: 0.0,
                unsettled,
                narrow: narrow(&self.far),
                alike: self.alike(l * sd),
            },
            alone,
        })
    }

    /// How much of what rows say of pooled levels a gradient with noise of this factor leaves out,
    /// where a likelihood's other coefficients depend on it.
    fn alike(&self, noise: DMatrix<f64>) -> f64 {
        let told = Told {
            curvature: &self.curvature,
            prior: &DMatrix::zeros(self.dim(), self.dim()),
            noise,
        };
        match &self.pooled {
            Some(pooled) if !self.slopes.is_quadratic() => pooled.lost(&told),
            _ => 0.0,
        }
    }

    /// Covariance of the noise in the gradient that `centre` answers, with what the curvature's own
    /// noise and a bias add to it, in the anchor's coordinates.
    fn noise(
        &self,
        precision: &DMatrix<f64>,
        centre: &DVector<f64>,
        (sd, bias): (f64, f64),
    ) -> DMatrix<f64> {
        let one = DMatrix::identity(self.dim(), self.dim());
        // The curvature's own noise moves the centre by P⁻¹N m.
        let length = centre.norm_squared();
        let turned = &one * length + centre * centre.transpose();
        let doubt = 0.5 * CURVATURE_DOUBT * self.doubted.uncertain.powi(2);
        gradient_noise(precision, (sd, bias)) + turned * doubt
    }

    /// Covariance of what clipping may take off a gradient, in the anchor's coordinates.
    fn room_for(&self, cut: Cut, coordinates: &Coordinates) -> Result<DMatrix<f64>, Halt> {
        let shared = self.dim() - self.scales.len();
        let directions: Result<Vec<_>, Halt> = (shared..self.dim())
            .map(|k| {
                let own = DVector::from_fn(self.dim(), |j, _| if j == k { 1.0 } else { 0.0 });
                forward(&coordinates.factor, &own)
            })
            .collect();
        Ok(cut.covariance(&directions?, self.dim()))
    }
}

/// Covariance of a gradient's noise of this sd, and of a bias.
fn gradient_noise(precision: &DMatrix<f64>, (sd, bias): (f64, f64)) -> DMatrix<f64> {
    let d = precision.nrows();
    DMatrix::from_diagonal_element(d, d, sd * sd) + precision * bias
}

/// What a released curvature is believed to be in intervals, in its coordinates.
struct Bent {
    /// Without the floor and with less taken for known ([`Drawn::believed`]).
    believed: DMatrix<f64>,
    /// What the path's steps make of it, less `believed`.
    lift: DMatrix<f64>,
    /// Noise that is left on its diagonal.
    sd: f64,
    /// Eigenvalues below the floor.
    lost: usize,
}

/// What is asked for at θ* = `at`: the gradient of rows bounded by `narrow`, the rest of rows
/// bounded as the metric says.
pub(super) fn expand(
    at: &[f64],
    metric: &Metric,
    narrow: f64,
    noise: AnchorNoise,
    releases: &mut dyn Releases,
) -> Result<Expansion, Halt> {
    let rest = AnchorNoise {
        gradient: None,
        ..noise
    };
    let alone = rest.curvature.is_none() && rest.profile.is_none();
    if noise.gradient.is_none() || narrow == metric.row_bound {
        return releases.anchor(at, metric, noise);
    }
    let own = Metric {
        factor: metric.factor.clone(),
        row_bound: narrow,
    };
    let gradient = AnchorNoise {
        gradient: noise.gradient,
        largest_weight: noise.largest_weight,
        ..AnchorNoise::default()
    };
    let seen = releases.anchor(at, &own, gradient)?;
    if alone {
        return Ok(seen);
    }
    let others = releases.anchor(at, metric, rest)?;
    Ok(Expansion {
        gradient: seen.gradient,
        gradient_sd: seen.gradient_sd,
        ..others
    })
}

/// ‖z‖ of a row of this norm and shared parameters of these scales, at most.
pub(super) fn row_norm(features: f64, scales: &[f64]) -> f64 {
    let squares = scales.iter().map(|a| a * a);
    (features * features + squares.sum::<f64>()).sqrt()
}

fn gradient_of(coordinates: &Coordinates, seen: &Expansion) -> DVector<f64> {
    &coordinates.factor * DVector::from_column_slice(&seen.gradient)
}
