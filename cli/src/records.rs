//! Which private runs were made on a table, as this user's data folder remembers them: one file a
//! ledger, in a folder a table. It holds what the run's certificate claims, and no cell. So runs
//! that name no common ledger are told what they add up to, and a copied run directory, or an
//! older ledger, is noticed on this machine.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::CliError;
use dpmc::config::{Plan, existing_part};
use dpmc::output::guarantee_number;
use dpmc::posterior_run::PosteriorRun;
use dpmc::privacy::{Budget, Ledger, Measure, epsilon_of_rho, replace_durably};

/// Another folder than the user's, or `off`.
const VARIABLE: &str = "DPMC_RECORDS";

/// What is remembered of one ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    /// The table's path, links followed.
    table: PathBuf,
    /// The run's directory.
    directory: PathBuf,
    /// Identity of the ledger file, of the run that had it last, and that run's session.
    ledger: String,
    run: String,
    #[serde(rename = "leg")]
    session: u64,
    /// Hash that the ledger file ended with.
    head: String,
    /// What the certificate claims.
    epsilon: f64,
    delta: f64,
    rho: Option<f64>,
    /// The column of the units that it protects; none where it protects single rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
}

impl Record {
    /// What is wrong with a ledger that lacks its head.
    fn put_back(&self) -> String {
        format!(
            "the ledger lacks what it held when {} used it: it is an older one put back",
            self.directory.display()
        )
    }
}

/// Where the runs on a table are recorded.
pub(super) struct Records {
    /// The table's own folder, or why there is none.
    folder: Result<PathBuf, String>,
    table: PathBuf,
    unit: Option<String>,
}

impl Records {
    pub fn of(plan: &Plan) -> Self {
        let table = plan.locate(&plan.config.data.file);
        let table = match plan.is_of_frame() {
            // A table in memory lies nowhere: it is known by its name.
            true => table.file_name().map(PathBuf::from).unwrap_or(table),
            // Many files by the folder that they lie in: other patterns may name the same rows.
            false => match existing_part(&table).canonicalize() {
                Ok(found) => found,
                Err(_) => table,
            },
        };
        let digest = Sha256::digest(table.as_os_str().as_encoded_bytes());
        let name: String = digest[..16].iter().map(|b| format!("{b:02x}")).collect();
        let base = match std::env::var_os(VARIABLE) {
            Some(value) if value == "off" => Err(format!("{VARIABLE} is off")),
            Some(value) if !value.is_empty() => Ok(PathBuf::from(value)),
            _ => dirs::data_dir()
                .map(|folder| folder.join("dpmc").join("records"))
                .ok_or_else(|| "this user has no data folder".to_string()),
        };
        Records {
            folder: base.map(|base| base.join(name)),
            table,
            unit: plan.config.data.unit.clone(),
        }
    }

    /// The same, with the folder made, or why it cannot be.
    pub fn made(self) -> Self {
        let made = self.folder.and_then(|folder| {
            // Other runs that begin at this moment have probes of their own.
            let probe = folder.join(format!("probe.{}.tmp", std::process::id()));
            std::fs::create_dir_all(&folder)
                .and_then(|()| std::fs::write(&probe, ""))
                .and_then(|()| std::fs::remove_file(&probe))
                .map_err(|e| format!("the user's data folder cannot be written: {e}"))?;
            Ok(folder)
        });
        Records {
            folder: made,
            table: self.table,
            unit: self.unit,
        }
    }

    /// What a certificate says of where its run is recorded.
    pub fn note(&self) -> String {
        match &self.folder {
            Ok(_) => "recorded under the table's path in the user's data folder".into(),
            Err(why) => format!("not recorded: {why}"),
        }
    }

    /// What a run of this budget, counted in this measure, adds up to with all that are recorded on
    /// other ledgers; none where there are no others. `ledger`: the run's own ledger's identity,
    /// where it has one.
    pub fn sum(&self, budget: Budget, measure: Measure, ledger: Option<&str>) -> Option<String> {
        let all = self.all();
        let others: Vec<&Record> = all.iter().filter(|r| Some(&*r.ledger) != ledger).collect();
        if others.is_empty() {
            return None;
        }
        let mut budgets = vec![(budget.epsilon(), budget.delta())];
        budgets.extend(others.iter().map(|r| (r.epsilon, r.delta)));
        let (epsilon, delta) = budgets
            .iter()
            .fold((0.0, 0.0), |sum, b| (sum.0 + b.0, sum.1 + b.1));
        // What is μ-GDP is μ²/2-zCDP (Dong, Roth & Su 2022); one Rényi order alone is not.
        let own_rho = match measure {
            Measure::Zcdp | Measure::Gaussian => Some(measure.limit(budget)),
            Measure::Renyi { .. } => None,
        };
        let rho = others.iter().fold(own_rho, |sum, r| Some(sum? + r.rho?));
        let by_rho = rho.and_then(|rho| epsilon_of_all(rho, &budgets));
        let epsilon = by_rho.map_or(epsilon, |by_rho| by_rho.min(epsilon));
        // What protects all rows of a unit protects each of them where it stays the unit's own, and
        // not the other way round.
        let of = match others.iter().any(|r| r.unit != self.unit) {
            true => {
                " for any single row that stays its unit's own (not for all rows of a unit, which not all runs protect)"
            }
            false => "",
        };
        let guarantee = match delta < 1.0 {
            true => format!(
                "epsilon {} at delta {delta:.3e}{of}",
                guarantee_number(epsilon)
            ),
            false => "no guarantee at all (their deltas alone make 1 or more)".into(),
        };
        let shared = match others.iter().any(|r| r.table != self.table) {
            true => " or for files in common with it",
            false => "",
        };
        Some(format!(
            "{} other ledger(s) are recorded for this table{shared}: with the budget of this run all of it adds up to {guarantee}; runs that name one --ledger share one budget",
            others.len(),
        ))
    }

    /// All records of this table, and of folders that it lies in, files in it, and other names of
    /// its file.
    fn all(&self) -> Vec<Record> {
        let Ok(Some(base)) = self.folder.as_deref().map(Path::parent) else {
            return Vec::new();
        };
        let within = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files = within(base).flat_map(|folder| within(&folder.path()));
        let paths = files.map(|file| file.path());
        let paths = paths.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
        let texts = paths.filter_map(|path| std::fs::read(path).ok());
        texts
            .filter_map(|text| serde_json::from_slice::<Record>(&text).ok())
            .filter(|record| record.epsilon >= 0.0 && record.delta >= 0.0)
            .filter(|record| self.shares_files_with(&record.table))
            .collect()
    }

    fn shares_files_with(&self, other: &Path) -> bool {
        self.table.starts_with(other)
            || other.starts_with(&self.table)
            // (What is opened to compare is no pipe.)
            || self.table.is_file()
                && other.is_file()
                && same_file::is_same_file(&self.table, other).unwrap_or(false)
    }

    fn file(&self, ledger: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref().ok()?;
        Some(folder.join(format!("{ledger}.json")))
    }

    /// Whether what is remembered of a run's ledger and its sessions agrees with what it brings.
    ///
    /// # Errors
    /// [`CliError::Input`] of a copied run directory, or of an older ledger put back.
    pub fn check(&self, ledger: &Ledger, session: u64) -> Result<(), CliError> {
        let Some((record, anyway)) = self.remembered(ledger.id())? else {
            return Ok(());
        };
        if record.run == ledger.run() && record.session >= session {
            return Err(CliError::Input(format!(
                "this run was taken up from here before, in {}: this directory is a copy, or an older one put back, and its draws were paid for once; {anyway}",
                record.directory.display()
            )));
        }
        if !ledger.holds(&record.head) {
            return Err(CliError::Input(format!("{}; {anyway}", record.put_back())));
        }
        Ok(())
    }

    /// What is remembered of a ledger, and how to go on whatever it says.
    fn remembered(&self, ledger: &str) -> Result<Option<(Record, String)>, CliError> {
        let Some(file) = self.file(ledger) else {
            return Ok(None);
        };
        let Ok(text) = std::fs::read(&file) else {
            return Ok(None);
        };
        let anyway = format!("to go on all the same, remove {}", file.display());
        match serde_json::from_slice(&text) {
            Ok(record) => Ok(Some((record, anyway))),
            Err(e) => {
                let file = file.display();
                let what = format!("{file}: is damaged: {e}; {anyway}");
                Err(CliError::Input(what))
            }
        }
    }

    /// Why a run would be refused whose ledger has this identity and records of these hashes.
    ///
    /// # Errors
    /// [`CliError::Input`] where what is remembered is damaged.
    pub fn doubt(&self, ledger: &str, heads: &[String]) -> Result<Option<String>, CliError> {
        let remembered = self.remembered(ledger)?;
        let doubted = remembered.filter(|(record, _)| !heads.contains(&record.head));
        Ok(doubted.map(|(record, anyway)| {
            let what = record.put_back();
            format!("{what}, and a run would be refused; put the later one back, or, {anyway}")
        }))
    }

    /// Remembers a run as its certificate stands.
    ///
    /// # Errors
    /// [`CliError::Failure`] where the folder that was made cannot be written.
    pub fn write(&self, run: &PosteriorRun, directory: &Path) -> Result<(), CliError> {
        let (Some(ledger), certificate) = (run.curator().ledger(), run.certificate()) else {
            return Ok(());
        };
        let (Some(file), Some(epsilon), Some(delta)) = (
            self.file(ledger.id()),
            certificate.epsilon,
            certificate.delta,
        ) else {
            return Ok(());
        };
        let record = Record {
            table: self.table.clone(),
            directory: directory.canonicalize().unwrap_or(directory.into()),
            ledger: ledger.id().into(),
            run: ledger.run().into(),
            session: run.session(),
            head: ledger.head().into(),
            epsilon,
            delta,
            rho: certificate.rho.or(certificate.mu.map(|mu| mu * mu / 2.0)),
            unit: self.unit.clone(),
        };
        let fail = |e: std::io::Error| {
            let file = file.display();
            CliError::Failure(format!("{file}: the run cannot be recorded: {e}"))
        };
        let text = serde_json::to_vec_pretty(&record).map_err(|e| fail(e.into()))?;
        replace_durably(&file, &text).map_err(fail)
    }
}

/// ε at which ρ-zCDP and the coins of all these budgets (ε, δ) hold at the sum of their δ. A
/// budget keeps a 1024th of its δ for coins, which no ρ pays for: (1 + e^ε) times how far these are off in
/// all, so at a larger ε more. `None` where that leaves no δ.
fn epsilon_of_all(rho: f64, budgets: &[(f64, f64)]) -> Option<f64> {
    let delta: f64 = budgets.iter().map(|b| b.1).sum();
    let coins = |epsilon: f64| -> f64 {
        let of = |&(own, delta): &(f64, f64)| delta * (epsilon - own).exp().max(1.0);
        f64::powi(2.0, -10) * budgets.iter().map(of).sum::<f64>()
    };
    let at = |epsilon: f64| {
        let rest = delta - coins(epsilon);
        (rest > 0.0).then(|| epsilon_of_rho(rho, rest))
    };
    // With what coins take at more than the answer it is one.
    let more = 1.02 * at(0.0)? + 0.01;
    at(more).filter(|epsilon| *epsilon <= more)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said covers ρ and the coins at that ε, and is no more than a thousandth above what ρ
    /// alone says; where coins would take all of δ nothing is said.
    #[test]
    fn coins_of_all_budgets_are_paid_at_their_sum() {
        for (epsilon, count, rho) in [(3.0, 2, 0.5), (1.0, 9, 0.15), (0.1, 40, 0.01)] {
            let budgets = vec![(epsilon, 1e-6); count];
            let found = epsilon_of_all(rho, &budgets).unwrap();
            let delta = 1e-6 * count as f64;
            // Each coin's errors, in all T of a run, take (1 + e^ε)T.
            let share = f64::powi(2.0, -10) * (1.0 + found.exp()) / (1.0 + f64::exp(epsilon));
            let needed = epsilon_of_rho(rho, delta * (1.0 - share));
            assert!(
                found >= needed && found < 1.001 * needed,
                "{found} {needed}"
            );
        }
        assert_eq!(epsilon_of_all(40.0, &[(0.1, 1e-6); 2]), None);
    }
}
