//! A run whose rows several ranks have. Rank 0 prepares and makes it as any other, by
//! [`prepare_over`]; all others [`serve`].

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::RunError;
use super::prepare::{Prepared, prepare_with};
use crate::config::Plan;
use crate::data::{DataError, Dataset, Held, Ranks, Room, Share};
use crate::engine::{EngineError, Link, LinkError, serve_rows};
use crate::machine::build;
use crate::model::Model;
use crate::privacy::CuratorError;

/// What rank 0 has other ranks do.
#[derive(Serialize, Deserialize)]
enum Order {
    /// To load their rows of the table that a run file names.
    Load {
        /// The build that rank 0 is of.
        build: String,
        path: String,
        text: String,
        room: Room,
    },
    /// To answer about them until the run ends.
    Answer,
    /// To end.
    Leave,
}

/// What a rank has loaded, or why it has not.
type Loaded = Result<Held, String>;

/// Rank 0's hold on other ranks, which end when it is dropped: keep it until runs have ended.
pub struct Leader {
    link: Arc<dyn Link>,
    /// What they were asked to answer about.
    asked: Vec<Arc<Ranks>>,
}

impl Leader {
    /// Of rank 0's link.
    pub fn new(link: Arc<dyn Link>) -> Self {
        let asked = Vec::new();
        Leader { link, asked }
    }

    fn order(&self, order: &Order) -> Result<(), LinkError> {
        let message = postcard::to_stdvec(order).map_err(|e| LinkError(e.to_string()))?;
        self.link.broadcast(message).map(|_| ())
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.asked.iter().for_each(|ranks| ranks.end());
        // A link that is broken ends other ranks as well.
        let _ = self.order(&Order::Leave);
    }
}

impl From<LinkError> for RunError {
    fn from(error: LinkError) -> Self {
        RunError::Curator(CuratorError::Engine(EngineError::Ranks(error)))
    }
}

/// As [`prepare`](super::prepare), with a part of the table's rows at each rank.
///
/// # Errors
/// As there, and where a rank cannot load its rows.
pub fn prepare_over(plan: Plan, leader: &mut Leader) -> Result<Prepared, RunError> {
    plan.check_declarations()?;
    leader.asked.drain(..).for_each(|ranks| ranks.end());
    let link = leader.link.clone();
    leader.order(&Order::Load {
        build: build().into(),
        // For messages alone: the text's paths are whole.
        path: plan.path().to_string_lossy().into_owned(),
        text: plan.resolved()?,
        room: plan.room().clone(),
    })?;
    let mine = plan.load_share(share(&*link));
    // Others have loaded, or not, whatever became of it here.
    let theirs = link.gather(Vec::new())?;
    let (data, held) = mine?;
    let mut all = vec![held];
    for (rank, loaded) in theirs.iter().enumerate().skip(1) {
        let loaded: Loaded = decoded(loaded)?;
        all.push(loaded.map_err(|what| RunError::State(format!("rank {rank}: {what}")))?);
    }
    let ranks = Ranks::new(link, &all).map_err(|rank| {
        RunError::State(format!(
            "rank {rank} sees other files than rank 0, or other rows in them; all ranks must find the same bytes under the same paths, and nobody may write to them meanwhile"
        ))
    })?;
    let data = data.of_ranks(ranks);
    if let rows @ ..2 = data.rows() {
        let too_few = DataError::TooFewRows { rows };
        return Err(RunError::Config(too_few.into()));
    }
    let prepared = prepare_with(plan, data)?;
    leader.order(&Order::Answer)?;
    leader.asked.extend(prepared.data.ranks().cloned());
    Ok(prepared)
}

/// Loads and answers what rank 0 asks for, until it ends.
///
/// # Errors
/// [`LinkError`]; what goes wrong with rows is rank 0's to say.
pub fn serve(link: &dyn Link) -> Result<(), LinkError> {
    let mut loaded: Option<(Arc<Dataset>, Arc<dyn Model>)> = None;
    loop {
        match decoded(&link.broadcast(Vec::new())?)? {
            Order::Load {
                build,
                path,
                text,
                room,
            } => {
                loaded = None;
                let plan = planned(&build, &path, text, room);
                let found: Loaded = match plan.and_then(|plan| load(&plan, share(link))) {
                    Ok((data, model, held)) => {
                        loaded = Some((data, model));
                        Ok(held)
                    }
                    Err(what) => Err(what),
                };
                let found = postcard::to_stdvec(&found).map_err(|e| LinkError(e.to_string()))?;
                link.gather(found)?;
            }
            Order::Answer => {
                if let Some((data, model)) = &loaded {
                    serve_rows(link, data, &**model)?;
                }
            }
            Order::Leave => return Ok(()),
        }
    }
}

type Rows = (Arc<Dataset>, Arc<dyn Model>, Held);

fn planned(other: &str, path: &str, text: String, room: Room) -> Result<Plan, String> {
    let own = build();
    if other != own {
        return Err(format!(
            "is another build of dpmc ({own}) than rank 0 ({other}); start one file on all ranks"
        ));
    }
    let mut plan = Plan::parse(Path::new(path), text).map_err(|e| e.to_string())?;
    plan.keep_rows(room);
    Ok(plan)
}

fn load(plan: &Plan, share: Share) -> Result<Rows, String> {
    let (data, held) = plan.load_share(share).map_err(|e| e.to_string())?;
    let model = plan.model(&data).map_err(|e| e.to_string())?;
    Ok((Arc::new(data), model, held))
}

fn share(link: &dyn Link) -> Share {
    Share {
        rank: link.rank(),
        size: link.size(),
        beside: link.beside(),
    }
}

fn decoded<'a, T: Deserialize<'a>>(message: &'a [u8]) -> Result<T, LinkError> {
    let what = |e| {
        LinkError(format!(
            "a message cannot be read ({e}); are all of one build?"
        ))
    };
    postcard::from_bytes(message).map_err(what)
}
