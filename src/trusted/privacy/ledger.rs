//! The ledger: a privacy filter on ρ, on μ² of Gaussian DP, or on the Rényi divergence at one order
//! (docs/proofs/accounting.md).
//!
//! Every step is charged before it is made. The filter refuses a charge that does not
//! fit, and refusing changes nothing. With a ledger file the budget is reserved durably
//! in blocks before it is spent, so a crash can only over-count. How large a block is follows
//! what was charged, never how fast.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::accountant::Budget;
use super::accountant::EventKey;
use super::accountant::Rho;
use super::accountant::{Measure, Price};
use super::charge_error::{ChargeError, Refusal};
use super::event::Event;
use super::ledger_error::LedgerFileError;
use super::ledger_file::{Durable, LedgerFile};
use super::releases::MOST_STEPS;

/// A block is as dear as so many steps at first …
const FIRST_BLOCK: u64 = 16;
/// … and grows up to this part of the limit: a run waits for the disk some hundred times, and one
/// that is killed loses so little of its budget at most.
const BLOCKS: u128 = 256;

/// Proof, kept in a run's public state, of which ledger paid for its draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaidRun {
    /// Identity of the ledger file.
    ledger: String,
    /// What it had counted as spent, units of 2^-96 nats.
    spent_units: String,
    /// Events of the run so far.
    events: Vec<(EventKey, u64)>,
    /// The run's name in the ledger; empty without a ledger file.
    #[serde(default)]
    run: String,
    /// Hash of the ledger file's last record.
    #[serde(default)]
    chain: String,
}

/// The privacy filter of one data set (with a file) or of one run.
pub struct Ledger {
    budget: Budget,
    measure: Measure,
    limit: Rho,
    /// Of the limit, to be left after an event that is no Gaussian noise.
    reserve: Rho,
    spent: Rho,
    coins: f64,
    earlier: bool,
    shared: bool,
    events: BTreeMap<EventKey, Charged>,
    file: Option<LedgerFile>,
    /// Whether the file held no record when it was opened.
    new: bool,
    reserved: Durable,
    /// The last block that was not a single dear step's.
    block: Rho,
}

#[derive(Clone, Copy, Debug)]
struct Charged {
    count: u64,
    /// Of these, by sessions before this one.
    earlier: u64,
    price: Price,
}

impl Ledger {
    /// A ledger in memory for one run, which counts ρ. Settings that a run file leaves to the
    /// budget may count on another measure: [`crate::config::Plan::ledger`] knows which.
    pub fn in_memory(budget: Budget) -> Self {
        Self::counting(budget, Measure::Zcdp)
    }

    /// A ledger in memory for one run, which counts `measure`.
    pub fn counting(budget: Budget, measure: Measure) -> Self {
        let limit = Rho::limit(measure.limit(budget));
        Self::unspent(budget, measure, limit, Rho::cost(measure.reserve(budget)))
    }

    /// A ledger in memory of the same budget, with nothing spent: for audits, each of whose
    /// repetitions is paid for in full.
    pub(super) fn renewed(&self) -> Self {
        Self::unspent(self.budget, self.measure, self.limit, self.reserve)
    }

    fn unspent(budget: Budget, measure: Measure, limit: Rho, reserve: Rho) -> Self {
        Ledger {
            limit,
            reserve,
            measure,
            budget,
            spent: Rho::default(),
            coins: 0.0,
            earlier: false,
            shared: false,
            events: BTreeMap::new(),
            file: None,
            new: false,
            reserved: Durable::default(),
            block: Rho::default(),
        }
    }

    /// Opens or starts a ledger file for the data set named `dataset` with `rows` rows, and locks
    /// it. Budget and measure in the file rule; `budget` and `measure` must agree with them.
    ///
    /// # Errors
    /// [`LedgerFileError`] where the file is locked, damaged, of another data set, of
    /// another budget or of another measure, or cannot be written.
    pub fn open(
        path: &std::path::Path,
        dataset: &str,
        rows: usize,
        budget: Budget,
        measure: Measure,
    ) -> Result<Self, LedgerFileError> {
        let file = LedgerFile::open(path, dataset, rows, budget, measure)?;
        let before = file.durable();
        let mut ledger = Ledger::counting(budget, measure);
        ledger.spent = before.spent;
        ledger.coins = before.coins;
        ledger.earlier = before.spent > Rho::default();
        ledger.reserved = before;
        ledger.new = file.is_new();
        ledger.file = Some(file);
        ledger.shared = true;
        Ok(ledger)
    }

    /// The budget.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// What it counts.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Whether earlier runs have spent from this ledger.
    pub fn has_earlier_runs(&self) -> bool {
        self.earlier
    }

    /// Whether there was no such ledger file, or nothing in it, when this was opened.
    pub fn is_new(&self) -> bool {
        self.new
    }

    /// Whether all that the ledger file holds is of this run.
    pub fn is_of_this_run(&self) -> bool {
        self.file.as_ref().is_none_or(LedgerFile::is_of_this_run)
    }

    /// Identity of the ledger file; empty without one.
    pub fn id(&self) -> &str {
        self.file.as_ref().map_or("", LedgerFile::id)
    }

    /// The run's name in the ledger file; empty without one.
    pub fn run(&self) -> &str {
        self.file.as_ref().map_or("", LedgerFile::run)
    }

    /// Hash of the ledger file's last record; empty without one.
    pub fn head(&self) -> &str {
        self.file.as_ref().map_or("", LedgerFile::head)
    }

    /// Whether the ledger file holds a record of this hash.
    pub fn holds(&self, head: &str) -> bool {
        self.file.as_ref().is_none_or(|file| file.has(head))
    }

    /// Says that the ledger file belongs to a single run (it lies in its directory).
    pub fn covers_one_run(&mut self, one: bool) {
        self.shared = !one;
    }

    /// Whether the budget is cumulative over the runs of a shared ledger file.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Charges `events` (each with its count) and `coins` of δ together, or nothing.
    pub(super) fn charge(
        &mut self,
        events: &[(EventKey, u64)],
        coins: f64,
    ) -> Result<(), ChargeError> {
        let mut prices = Vec::with_capacity(events.len());
        let (mut cost, mut coins) = (Rho::default(), coins);
        for (key, count) in events {
            let price = match self.events.get(key) {
                Some(charged) => charged.price,
                None => self
                    .measure
                    .price(*key, self.budget)
                    .map_err(ChargeError::Unpriced)?,
            };
            cost = cost.plus(price.cost.times(*count));
            coins += price.tail * *count as f64;
            prices.push(price);
        }
        let spent = self.spent.plus(cost);
        let limit = match events.iter().all(|(key, _)| key.is_gaussian()) {
            true => self.limit,
            false => self.limit.minus(self.reserve),
        };
        if spent > limit || self.coins + coins > self.budget.coin_delta() {
            return Err(ChargeError::Spent(Refusal {
                cost: cost.nats(),
                left: limit.minus(self.spent).nats(),
                measure: self.measure,
            }));
        }
        if self.file.is_some()
            && (spent > self.reserved.spent || self.coins + coins > self.reserved.coins)
        {
            self.reserve((cost, coins), limit)
                .map_err(ChargeError::File)?;
        }
        self.spent = spent;
        self.coins += coins;
        for ((key, count), price) in events.iter().zip(prices) {
            self.events
                .entry(*key)
                .or_insert(Charged {
                    count: 0,
                    earlier: 0,
                    price,
                })
                .count += count;
        }
        Ok(())
    }

    /// Charges one event; whether it fitted. For benchmarks: a ledger is only worth
    /// anything inside a curator.
    pub(crate) fn try_charge(&mut self, key: EventKey) -> bool {
        self.charge(&[(key, 1)], 0.0).is_ok()
    }

    /// Reserves a block of steps durably, never beyond `limit`. A step that is dearer than the
    /// largest block, an anchor say, is reserved alone.
    fn reserve(&mut self, (cost, coins): (Rho, f64), limit: Rho) -> Result<(), LedgerFileError> {
        let most = Rho::from_units(self.limit.units() / BLOCKS);
        let grown = cost.times(FIRST_BLOCK).max(self.block.times(2)).min(most);
        let block = grown.max(cost);
        let steps = (block.units() / cost.units().max(1)).max(1) as f64;
        let want = Durable {
            spent: self.spent.plus(block).min(limit),
            coins: (self.coins + coins * (steps + 1.0)).min(self.budget.coin_delta()),
        };
        if let Some(file) = &mut self.file {
            file.reserve(want)?;
        }
        self.reserved = want;
        if block == grown {
            self.block = grown;
        }
        Ok(())
    }

    /// Writes what was really spent in place of the reservation. After this a further
    /// charge reserves anew.
    ///
    /// # Errors
    /// [`LedgerFileError`] where the file cannot be written; the reservation stands.
    pub fn settle(&mut self) -> Result<(), LedgerFileError> {
        let events = self.events.iter().map(|(key, c)| {
            let count = c.count - c.earlier;
            (key.event(), count, c.price.cost.times(count))
        });
        let events = events.filter(|(_, count, _)| *count > 0).collect();
        let now = Durable {
            spent: self.spent,
            coins: self.coins,
        };
        if let Some(file) = &mut self.file {
            file.settle(now, events)?;
            self.reserved = now;
        }
        Ok(())
    }

    /// Whether this run released something whose guarantee holds under a condition only.
    pub fn has_conditional_events(&self) -> bool {
        self.events.keys().any(|key| key.is_conditional())
    }

    /// This run's events, grouped, with counts. Asking changes nothing.
    pub fn events(&self) -> Vec<(Event, u64)> {
        let mut counts: BTreeMap<EventKey, u64> = BTreeMap::new();
        for (key, charged) in &self.events {
            *counts.entry(key.under_substitution()).or_default() += charged.count;
        }
        let events = counts.into_iter();
        events.map(|(key, count)| (key.event(), count)).collect()
    }

    /// The same as neighbours by zero-out bound them.
    pub(super) fn events_of_zero_out(&self) -> Vec<(Event, u64)> {
        let events = self.events.iter();
        events.map(|(key, c)| (key.zero_out(), c.count)).collect()
    }

    /// Spent by this run alone, in the ledger's measure.
    pub fn spent_of_run(&self) -> f64 {
        self.events
            .values()
            .fold(Rho::default(), |sum, c| {
                sum.plus(c.price.cost.times(c.count))
            })
            .nats()
    }

    /// Spent from the budget, earlier runs of a shared ledger included.
    pub fn spent(&self) -> f64 {
        self.spent.nats()
    }

    /// Counted as spent on disk at this moment: after a crash, this is the cost.
    pub fn reserved(&self) -> f64 {
        self.reserved.spent.max(self.spent).nats()
    }

    /// What of the limit the guarantee of what was spent takes: also what was left in reserve
    /// after events that are no Gaussian noise.
    pub(super) fn taken(&self) -> f64 {
        let noise_alone = !self.earlier && self.events.keys().all(|key| key.is_gaussian());
        match noise_alone {
            true => self.spent(),
            false => self.spent.plus(self.reserve).min(self.limit).nats(),
        }
    }

    /// ε spent at the budget's δ, by the ledger's measure.
    pub fn epsilon_spent(&self) -> f64 {
        self.measure
            .epsilon(self.taken(), self.budget.conversion_delta())
    }

    /// Position of the ledger when it was opened or last charged, in units of 2^-96 nats:
    /// no two runs on one ledger file start from the same one.
    pub(super) fn position(&self) -> u128 {
        self.spent.units()
    }

    /// What a saved run state must show to go on with this ledger.
    pub fn paid_run(&self) -> PaidRun {
        let of_file = |name: fn(&LedgerFile) -> &str| {
            let name = self.file.as_ref().map(name);
            name.unwrap_or_default().to_string()
        };
        PaidRun {
            ledger: of_file(LedgerFile::id),
            spent_units: self.spent.units().to_string(),
            events: self.events.iter().map(|(k, c)| (*k, c.count)).collect(),
            run: of_file(LedgerFile::run),
            chain: of_file(LedgerFile::head),
        }
    }

    /// Takes up a saved run that this ledger paid for, for the `session`-th time: its name, and its
    /// events so far.
    ///
    /// # Errors
    /// A message where another ledger paid, where this one does not hold what the run has seen
    /// in it, or where it has seen this session of the run already.
    pub(in crate::trusted) fn accept(
        &mut self,
        paid: &PaidRun,
        session: u64,
    ) -> Result<(), String> {
        if let Some(file) = &mut self.file
            && !paid.run.is_empty()
        {
            if let Some(seen) = file.last_session(&paid.run).filter(|seen| *seen >= session) {
                return Err(format!(
                    "the ledger has seen this run resumed {seen} time(s), and this directory {}: it is a copy, or an older one put back; go on with the one that went on, or start a new run",
                    session - 1
                ));
            }
            if !file.has(&paid.chain) {
                return Err("the ledger is not what it was when this run was last saved: it is another one, or an older one put back; put the right one in its place".into());
            }
            file.begin_session(&paid.run, session);
        }
        // Nothing was released yet: a run killed before its first charge had not even
        // written its ledger.
        if paid.events.is_empty() {
            return Ok(());
        }
        let id = self.file.as_ref().map_or("", LedgerFile::id);
        let spent: u128 = paid
            .spent_units
            .parse()
            .map_err(|_| "'spent_units' is damaged".to_string())?;
        if id.is_empty() || id != paid.ledger || self.spent.units() < spent {
            return Err(
                "this ledger did not pay for the saved draws; resume with the ledger of the run"
                    .into(),
            );
        }
        for (key, count) in &paid.events {
            if *count > MOST_STEPS {
                return Err("'events' of the saved state is damaged".into());
            }
            let (count, price) = (*count, self.measure.price(*key, self.budget)?);
            self.events.insert(
                *key,
                Charged {
                    count,
                    earlier: count,
                    price,
                },
            );
        }
        Ok(())
    }

    /// The filter's limit, in its measure.
    pub fn limit(&self) -> f64 {
        self.limit.nats()
    }
}
