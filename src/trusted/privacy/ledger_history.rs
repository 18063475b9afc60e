//! What a ledger file holds: a JSON array with one record a line, the ledger's terms first. Each
//! record ends with a hash of itself and of all before it, so that an edit in the middle, or a
//! file that lacks what a run has seen in it, is noticed. Records are only ever added.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::accountant::Budget;
use super::accountant::Measure;
use super::event::Event;

/// Of the files that this version writes.
pub(super) const FORMAT: u32 = 2;

const OPENING: &str = "[\n";
const BETWEEN: &str = ",\n";
const CLOSING: &str = "\n]\n";
const CHAIN: &str = ",\"chain\":\"";
const END: &str = "\"}";
/// Hexadecimal digits of a hash.
const DIGITS: usize = 64;

/// The first record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Terms {
    pub format: u32,
    /// Drawn once, so that a run's state can name the ledger that paid for it.
    pub id: String,
    pub dataset: String,
    pub rows: usize,
    pub neighbours: String,
    pub budget: Budget,
    /// What is counted.
    pub measure: Measure,
}

/// What a run reserved, or had spent when it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// Identity of the run, drawn once.
    pub run: String,
    /// How often it had been resumed.
    #[serde(rename = "leg")]
    pub session: u64,
    /// `open` while reserved; `settled` after a clean end. Where the last record of a session is
    /// `open`, the session was killed and its whole reservation counts.
    pub status: String,
    /// Counted as spent by all sessions up to here, reservations included, in units of 2^-96 nats.
    pub spent_units: String,
    /// Of which this session.
    pub leg_units: String,
    /// The first in nats, for readers: ρ, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho_spent: Option<f64>,
    /// … or μ²/2, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mu_squared_half_spent: Option<f64>,
    /// … or the divergence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence_spent: Option<f64>,
    pub delta_coins: f64,
    /// Of this session, once settled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventEntry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EventEntry {
    #[serde(flatten)]
    pub event: Event,
    pub count: u64,
    /// What all of them cost.
    pub units: String,
}

/// A ledger's records, checked.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub terms: Terms,
    /// Units spent, and of coins, up to the last record.
    pub spent: u128,
    pub coins: f64,
    /// The hash of each record, in order.
    pub heads: Vec<String>,
    /// The last session of each run.
    pub sessions: BTreeMap<String, u64>,
    /// Bytes up to the end of the last record.
    pub end: usize,
}

/// What adds `records` to a file whose last hash is `head`, empty of a new file. It goes where the
/// last record ends.
pub(super) fn addition(head: &str, records: &[String]) -> Result<String, String> {
    let (mut text, mut head) = (String::new(), head.to_string());
    for record in records {
        text += if head.is_empty() { OPENING } else { BETWEEN };
        let body = record.strip_suffix('}').ok_or("a record is no object")?;
        head = hash(&head, body);
        text = text + body + CHAIN + &head + END;
    }
    Ok(text + CLOSING)
}

/// Reads the records of a file; `None` of an empty one. What a crash left of a record that was
/// being written is passed over: nothing was spent on it.
pub(super) fn read(bytes: &[u8]) -> Result<Option<History>, String> {
    let damaged = |line: usize, what: &str| {
        format!(
            "is damaged: line {line} {what}; put back the file as dpmc left it, or count its budget as spent"
        )
    };
    if OPENING.as_bytes().starts_with(bytes) {
        return Ok(None);
    }
    if bytes.starts_with(b"{") && bytes.windows(9).any(|w| w == b"\"format\":") {
        return Err("is a ledger of format 1, which an older dpmc wrote; end its runs with that version, and start a new ledger with what is left of the budget".into());
    }
    if !bytes.starts_with(OPENING.as_bytes()) {
        return Err("is damaged or not a ledger".into());
    }
    let (mut history, mut end, mut number) = (None::<History>, OPENING.len(), 1);
    let mut sessions = Sessions::default();
    let mut lines = bytes[end..].split_inclusive(|b| *b == b'\n');
    while let Some(record) = lines.next().and_then(whole) {
        number += 1;
        let at = history.as_ref().map_or(end, |_| end + BETWEEN.len());
        let head = history.as_ref().and_then(|h: &History| h.heads.last());
        let (body, chain) = split(record, head.map_or("", String::as_str))
            .ok_or_else(|| damaged(number, "was changed, or a line before it"))?;
        match &mut history {
            None => {
                let terms: Terms =
                    serde_json::from_str(&body).map_err(|e| damaged(number, &e.to_string()))?;
                if terms.format != FORMAT {
                    return Err(format!("has unknown format {}", terms.format));
                }
                history = Some(History {
                    terms,
                    spent: 0,
                    coins: 0.0,
                    heads: vec![chain],
                    sessions: BTreeMap::new(),
                    end: 0,
                });
            }
            Some(history) => {
                let entry: Entry =
                    serde_json::from_str(&body).map_err(|e| damaged(number, &e.to_string()))?;
                sessions
                    .add(&entry, history)
                    .map_err(|what| damaged(number, what))?;
                history.heads.push(chain);
            }
        }
        end = at + record.len();
    }
    if lines.filter_map(whole).any(ends_with_hash) {
        return Err(damaged(number + 1, "is none, but records follow it"));
    }
    Ok(history.map(|history| History { end, ..history }))
}

/// The record of a line; none of the closing line, nor of what a crash cut short: whole lines end,
/// and no byte of theirs is zero.
fn whole(line: &[u8]) -> Option<&[u8]> {
    let record = line.strip_suffix(b"\n").filter(|r| !r.contains(&0))?;
    let record = record.strip_suffix(b"]").unwrap_or(record);
    let record = record.strip_suffix(b",").unwrap_or(record);
    (!record.is_empty()).then_some(record)
}

/// Whether bytes are a whole record, as no crash leaves one behind half a line.
fn ends_with_hash(record: &[u8]) -> bool {
    let body = record.strip_suffix(END.as_bytes());
    let body = body.and_then(|body| body.get(..body.len().checked_sub(DIGITS)?));
    record.starts_with(b"{") && body.is_some_and(|body| body.ends_with(CHAIN.as_bytes()))
}

/// A record without its hash, and the hash, where that is right.
fn split(record: &[u8], before: &str) -> Option<(String, String)> {
    let record = std::str::from_utf8(record).ok()?;
    let rest = record.strip_suffix(END)?;
    let (body, chain) = rest.split_at_checked(rest.len().checked_sub(DIGITS)?)?;
    let body = body.strip_suffix(CHAIN)?;
    (hash(before, body) == chain).then(|| (format!("{body}}}"), chain.to_string()))
}

fn hash(before: &str, body: &str) -> String {
    let digest = Sha256::new()
        .chain_update(before)
        .chain_update(body)
        .finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Adds records up as they come: what they say they spent must be what they add up to.
#[derive(Default)]
struct Sessions {
    /// Spent before the session that is being read, and what of it is settled.
    before: u128,
    settled: u128,
    last: Option<(String, u64)>,
}

impl Sessions {
    fn add(&mut self, entry: &Entry, history: &mut History) -> Result<(), &'static str> {
        let session = (entry.run.clone(), entry.session);
        if self.last.as_ref() != Some(&session) {
            if history
                .sessions
                .get(&session.0)
                .is_some_and(|last| *last >= session.1)
            {
                return Err("is of a session that had ended");
            }
            (self.before, self.settled) = (history.spent, 0);
            history.sessions.insert(session.0.clone(), session.1);
            self.last = Some(session);
        }
        let number = |text: &str| text.parse::<u128>().map_err(|_| "has no number of units");
        let (spent, of_leg) = (number(&entry.spent_units)?, number(&entry.leg_units)?);
        if self.before.checked_add(of_leg) != Some(spent) || of_leg < self.settled {
            return Err("spends less than the lines before it");
        }
        if entry.status == "settled" {
            let events = entry
                .events
                .iter()
                .try_fold(0u128, |sum, e| sum.checked_add(number(&e.units).ok()?));
            if events.is_none_or(|events| events > of_leg) {
                return Err("spends less than its events");
            }
            self.settled = of_leg;
        }
        if entry.delta_coins < 0.0 {
            return Err("has no delta of coins");
        }
        (history.spent, history.coins) = (spent, entry.delta_coins);
        Ok(())
    }
}
