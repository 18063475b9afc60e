//! A run whose rows several ranks have. Rank 0 prepares and makes it as any other, by
//! [`prepare_over`]; all others [`serve`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::RunError;
use super::prepare::{Prepared, prepare_with};
use crate::config::Plan;
use crate::data::{DataError, Dataset, Held, Ranks, Share};
use crate::engine::{EngineError, Link, LinkError, serve_rows};
use crate::model::Model;
use crate::privacy::CuratorError;

/// What rank 0 has other ranks do.
#[derive(Serialize, Deserialize)]
enum Order {
    /// To load their rows of the table that a run file names.
    Load {
        /// The version that rank 0 is of.
        version: String,
        path: PathBuf,
        text: String,
    },
    /// To answer about them until the run ends.
    Answer,
    /// To end.
    Leave,
}

/// What a rank has loaded, or why it has not.
type Loaded = Result<Vec<Held>, String>;

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
    let link = leader.link.clone();
    leader.order(&Order::Load {
        version: env!("CARGO_PKG_VERSION").into(),
        path: plan.path().into(),
        text: plan.resolved()?,
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
    let data = data.of_ranks(Ranks::new(link, &all));
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
                version,
                path,
                text,
            } => {
                loaded = None;
                let found: Loaded = match load(&version, &path, text, share(link)) {
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

type Rows = (Arc<Dataset>, Arc<dyn Model>, Vec<Held>);

fn load(version: &str, path: &Path, text: String, share: Share) -> Result<Rows, String> {
    let own = env!("CARGO_PKG_VERSION");
    if version != own {
        return Err(format!("is dpmc {own}, and rank 0 is {version}"));
    }
    let plan = Plan::parse(path, text).map_err(|e| e.to_string())?;
    let (data, held) = plan.load_share(share).map_err(|e| e.to_string())?;
    let model = plan.model(&data).map_err(|e| e.to_string())?;
    Ok((Arc::new(data), model, held))
}

fn share(link: &dyn Link) -> Share {
    Share {
        rank: link.rank(),
        size: link.size(),
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
