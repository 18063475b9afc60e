//! One table over several ranks. Each holds some of its rows and an engine of its own; rank 0, which
//! has the curator, asks all of them and adds their answers. These are integers, so that any number
//! of ranks gives the same bits.
//!
//! Questions may have secret coins in them, and answers are exact, before any noise: ranks, and
//! what carries their messages, are inside the curator (docs/proofs/guarantee.md, "Ranks").

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::select::open_own;
use super::{
    AnchorParts, AnchorQuery, AnchorSums, Engine, EngineError, EngineInfo, EngineSetup,
    GradientQuery, GradientSum, MomentSums, RatioQuery, RatioSum, Rows,
};
use crate::data::{Dataset, Ranks};
use crate::model::{Metric, Model, MomentBasis, Slopes};

/// Carries messages between ranks, which all call it in the same order.
pub trait Link: Send + Sync {
    /// This rank; rank 0 has the curator.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// How many of them share this rank's machine, itself included.
    fn beside(&self) -> usize;

    /// Rank 0's message, at every rank; what others give is dropped.
    ///
    /// # Errors
    /// [`LinkError`] where a rank is gone.
    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>, LinkError>;

    /// Every rank's message in order of the ranks, at rank 0; none elsewhere.
    ///
    /// # Errors
    /// As [`Link::broadcast`].
    fn gather(&self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, LinkError>;
}

/// Ranks that cannot reach each other.
#[derive(Debug, thiserror::Error)]
#[error("the ranks of this run lost each other: {0}; draws up to here are kept")]
pub struct LinkError(pub String);

/// What rank 0 asks. [`Asked`] is the same, as it arrives.
#[derive(Serialize)]
enum Question<'a> {
    Open(EngineSetup),
    Ratios(&'a RatioQuery),
    /// With each rank's rows by their places there: a list a chain.
    RatioRows(&'a RatioQuery, Vec<Vec<Vec<u64>>>),
    Gradients(&'a GradientQuery),
    GradientRows(&'a GradientQuery, Vec<Vec<Vec<u64>>>),
    Anchor(&'a AnchorQuery<'a>),
    Weigh(&'a AnchorQuery<'a>),
    Moments(&'a MomentBasis),
    End,
}

#[derive(Deserialize)]
enum Asked {
    Open(EngineSetup),
    Ratios(RatioQuery),
    RatioRows(RatioQuery, Vec<Vec<Vec<u64>>>),
    Gradients(GradientQuery),
    GradientRows(GradientQuery, Vec<Vec<Vec<u64>>>),
    Anchor(AskedAnchor),
    Weigh(AskedAnchor),
    Moments(MomentBasis),
    End,
}

#[derive(Deserialize)]
struct AskedAnchor {
    at: Vec<f64>,
    metric: Metric,
    slopes: Slopes,
    parts: AnchorParts,
}

impl AskedAnchor {
    fn query(&self) -> AnchorQuery<'_> {
        AnchorQuery {
            at: &self.at,
            metric: &self.metric,
            slopes: self.slopes,
            parts: self.parts,
        }
    }
}

fn encoded(message: &impl Serialize) -> Result<Vec<u8>, LinkError> {
    postcard::to_stdvec(message).map_err(|e| LinkError(format!("a message cannot be written: {e}")))
}

fn decoded<T: DeserializeOwned>(message: &[u8]) -> Result<T, LinkError> {
    let what = |e| {
        LinkError(format!(
            "a message cannot be read ({e}); are all of one build?"
        ))
    };
    postcard::from_bytes(message).map_err(what)
}

/// Asks all ranks; their answers in order, `mine` first.
fn ask<T: DeserializeOwned>(
    ranks: &Ranks,
    question: &Question<'_>,
    mine: impl FnOnce() -> Result<T, EngineError>,
) -> Result<Vec<T>, EngineError> {
    ranks.link().broadcast(encoded(question)?)?;
    let mine = mine();
    // Others have answered whatever became of it here.
    let answers = ranks.link().gather(Vec::new())?;
    let mut all = vec![mine?];
    for (rank, answer) in answers.iter().enumerate().skip(1) {
        let answer: Result<T, String> = decoded(answer)?;
        all.push(answer.map_err(|what| EngineError::Rank { rank, what })?);
    }
    Ok(all)
}

/// Rank 0's engine: its own rows', and those of all other ranks.
pub(super) struct Ranked {
    own: Box<dyn Engine>,
    ranks: Arc<Ranks>,
    /// What computes on each.
    infos: Vec<EngineInfo>,
}

impl Ranked {
    /// Opens every rank's engine.
    pub fn open(
        setup: EngineSetup,
        data: Arc<Dataset>,
        model: &dyn Model,
        ranks: Arc<Ranks>,
    ) -> Result<Self, EngineError> {
        let mut own = Err(EngineError::Query("no engine".into()));
        let mine = || {
            let engine = open_own(setup, data, model)?;
            let info = engine.info();
            own = Ok(engine);
            Ok(info)
        };
        let infos = ask(&ranks, &Question::Open(setup), mine)?;
        let own = own?;
        Ok(Ranked { own, ranks, infos })
    }

    /// Each rank's part of listed rows, by their places there.
    fn dealt(&self, lists: &[Vec<u64>]) -> Vec<Vec<Vec<u64>>> {
        let mut dealt = vec![vec![Vec::new(); lists.len()]; self.ranks.link().size()];
        for (chain, list) in lists.iter().enumerate() {
            for row in list {
                let (rank, own) = self.ranks.find(*row);
                dealt[rank][chain].push(own);
            }
        }
        dealt
    }
}

impl Drop for Ranked {
    fn drop(&mut self) {
        self.ranks.end();
    }
}

impl Ranks {
    /// Other ranks answer no more, once.
    pub fn end(&self) {
        if self.open.swap(false, Ordering::Relaxed) {
            // A link that is broken ends other ranks as well.
            let _ = encoded(&Question::End).and_then(|end| self.link().broadcast(end));
        }
    }
}

fn add_gradients(mut all: Vec<Vec<GradientSum>>) -> Vec<GradientSum> {
    let mut sums = all.swap_remove(0);
    for other in all.iter().flat_map(|other| other.iter().enumerate()) {
        let (sum, other) = (&mut sums[other.0], other.1);
        let steps = sum.steps.iter_mut().zip(&other.steps);
        steps.for_each(|(a, b)| *a += b);
        sum.clipped += other.clipped;
    }
    sums
}

impl Engine for Ranked {
    fn info(&self) -> EngineInfo {
        let all = |of: fn(&EngineInfo) -> &String| {
            let mut different: Vec<&str> = self.infos.iter().map(|info| &**of(info)).collect();
            different.sort_unstable();
            different.dedup();
            different.join(" and ")
        };
        EngineInfo {
            kind: all(|info| &info.kind),
            adapter: all(|info| &info.adapter),
            driver: format!("{}, {} ranks", all(|info| &info.driver), self.infos.len()),
        }
    }

    fn ratio_sums(&mut self, query: &RatioQuery) -> Result<Vec<RatioSum>, EngineError> {
        let mine = || self.own.ratio_sums(query);
        let mut all = ask(&self.ranks, &Question::Ratios(query), mine)?;
        let mut sums = all.swap_remove(0);
        for other in &all {
            for (sum, other) in sums.iter_mut().zip(other) {
                sum.steps += other.steps;
                sum.saturated += other.saturated;
            }
        }
        Ok(sums)
    }

    fn ratio_rows(
        &mut self,
        query: &RatioQuery,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError> {
        let dealt = self.dealt(rows);
        let own = dealt[0].clone();
        let question = Question::RatioRows(query, dealt);
        let all = ask(&self.ranks, &question, || {
            let mut answers = vec![Vec::new(); own.len()];
            self.own.ratio_rows(query, &own, &mut answers)?;
            Ok(answers)
        })?;
        for (chain, (rows, out)) in rows.iter().zip(out).enumerate() {
            let mut answers: Vec<_> = all.iter().map(|of_rank| of_rank[chain].iter()).collect();
            let next = |row: &u64| answers[self.ranks.find(*row).0].next().copied();
            let found: Option<Vec<i32>> = rows.iter().map(next).collect();
            *out = found.ok_or_else(|| EngineError::Query("a rank left rows out".into()))?;
        }
        Ok(())
    }

    fn gradient_sums(
        &mut self,
        query: &GradientQuery,
        rows: Rows<'_>,
    ) -> Result<Vec<GradientSum>, EngineError> {
        let all = match rows {
            Rows::All => {
                let mine = || self.own.gradient_sums(query, Rows::All);
                ask(&self.ranks, &Question::Gradients(query), mine)
            }
            Rows::Listed(lists) => {
                let dealt = self.dealt(lists);
                let own = dealt[0].clone();
                let mine = || self.own.gradient_sums(query, Rows::Listed(&own));
                ask(&self.ranks, &Question::GradientRows(query, dealt), mine)
            }
        };
        all.map(add_gradients)
    }

    fn anchor_sums(&mut self, query: &AnchorQuery<'_>) -> Result<AnchorSums, EngineError> {
        let mine = || self.own.anchor_sums(query);
        let mut all = ask(&self.ranks, &Question::Anchor(query), mine)?.into_iter();
        let first = all
            .next()
            .unwrap_or_else(|| AnchorSums::zero(query.at.len()));
        Ok(all.fold(first, |mut sums, other| {
            sums.add(other);
            sums
        }))
    }

    fn weigh_rows(&mut self, query: &AnchorQuery<'_>) -> Result<(), EngineError> {
        let mine = || self.own.weigh_rows(query);
        ask(&self.ranks, &Question::Weigh(query), mine).map(|_| ())
    }

    fn moment_sums(&mut self, basis: &MomentBasis) -> Result<MomentSums, EngineError> {
        let mine = || self.own.moment_sums(basis);
        let mut all = ask(&self.ranks, &Question::Moments(basis), mine)?.into_iter();
        let first = all.next().unwrap_or(MomentSums(Vec::new()));
        Ok(all.fold(first, |mut sums, other| {
            let each = sums.0.iter_mut().zip(other.0);
            each.for_each(|(a, b)| *a += b);
            sums
        }))
    }
}

/// Answers rank 0 about the rows of this rank until it has no more questions.
///
/// # Errors
/// [`LinkError`]; what goes wrong with a question is rank 0's to say.
pub fn serve_rows(
    link: &dyn Link,
    data: &Arc<Dataset>,
    model: &dyn Model,
) -> Result<(), LinkError> {
    let mut engine: Option<Box<dyn Engine>> = None;
    loop {
        let asked: Asked = decoded(&link.broadcast(Vec::new())?)?;
        let answer = match (asked, &mut engine) {
            (Asked::End, _) => return Ok(()),
            (Asked::Open(setup), _) => answer(open_own(setup, data.clone(), model).map(|opened| {
                let info = opened.info();
                engine = Some(opened);
                info
            })),
            (asked, Some(engine)) => answered(&mut **engine, asked, link.rank()),
            (_, None) => Err(LinkError("a question came before its engine".into())),
        };
        link.gather(answer?)?;
    }
}

fn answer<T: Serialize>(answer: Result<T, EngineError>) -> Result<Vec<u8>, LinkError> {
    encoded(&answer.map_err(|e| e.to_string()))
}

fn answered(engine: &mut dyn Engine, asked: Asked, rank: usize) -> Result<Vec<u8>, LinkError> {
    let own = |mut dealt: Vec<Vec<Vec<u64>>>| dealt.swap_remove(rank);
    match asked {
        Asked::Open(_) | Asked::End => answer(Ok(())),
        Asked::Ratios(query) => answer(engine.ratio_sums(&query)),
        Asked::RatioRows(query, dealt) => {
            let mut answers = vec![Vec::new(); query.chains()];
            let done = engine.ratio_rows(&query, &own(dealt), &mut answers);
            answer(done.map(|()| answers))
        }
        Asked::Gradients(query) => answer(engine.gradient_sums(&query, Rows::All)),
        Asked::GradientRows(query, dealt) => {
            answer(engine.gradient_sums(&query, Rows::Listed(&own(dealt))))
        }
        Asked::Anchor(asked) => answer(engine.anchor_sums(&asked.query())),
        Asked::Weigh(asked) => answer(engine.weigh_rows(&asked.query())),
        Asked::Moments(basis) => answer(engine.moment_sums(&basis)),
    }
}
