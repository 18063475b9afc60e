//! The promise: runs on one table that name no common ledger are told what they add up to, a new
//! ledger is called new, and a copy that brings its own ledger along is noticed on this machine.

use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

use crate::common::place::{Place, RUN, edit};
use serde_json::Value;

/// Runs the command with records in a folder of the place's own.
fn recorded(place: &Place, arguments: &str) -> Output {
    let mut command = place.command(arguments);
    command.env("DPMC_RECORDS", place.path("records"));
    command.output().unwrap()
}

fn works(place: &Place, arguments: &str) -> String {
    let output = recorded(place, arguments);
    assert!(output.status.success(), "{arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn refuses(place: &Place, arguments: &str) -> String {
    let output = recorded(place, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn records(place: &Place) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(place.path("records"))
        .into_iter()
        .flatten();
    let files = folders.flat_map(|f| std::fs::read_dir(f.unwrap().path()).unwrap());
    files.map(|f| f.unwrap().path()).collect()
}

const SUM: &str = "recorded for this table";

/// Patterns over one folder may name the same rows.
#[test]
fn many_files_are_one_table_by_their_folder() {
    let place = Place::new(&edit(RUN, "people.csv", "visits"));
    std::fs::create_dir(place.path("visits")).unwrap();
    place.write("visits/1.csv", &crate::common::place::table(500));
    works(&place, "sample run.toml --out one --quiet");
    let named = edit(
        RUN,
        "file = \"people.csv\"",
        "name = \"v\"\nfile = \"visits/*.csv\"",
    );
    place.write("named.toml", &named);
    let check = works(&place, "check named.toml");
    assert!(check.contains("1 other ledger(s)"), "{check}");
    let check = works(&place, "check run.toml --data people.csv");
    assert!(!check.contains(SUM), "{check}");
    // One file of them by itself, by its own name and by another.
    std::fs::hard_link(place.path("visits/1.csv"), place.path("linked.csv")).unwrap();
    for file in ["visits/1.csv", "linked.csv"] {
        let out = file.replace(['/', '.'], "-");
        let check = works(&place, &format!("check run.toml --data {file}"));
        assert!(check.contains(SUM), "{check}");
        works(
            &place,
            &format!("sample run.toml --data {file} --out {out} --quiet"),
        );
    }
    for (file, others) in [("visits", 2), ("visits/1.csv", 3), ("linked.csv", 2)] {
        let check = works(&place, &format!("check run.toml --data {file}"));
        assert!(
            check.contains(&format!("{others} other ledger(s)")),
            "{check}"
        );
        assert!(check.contains("or for files in common"), "{check}");
    }
    let check = works(&place, "check run.toml --data people.csv");
    assert!(!check.contains(SUM), "{check}");
}

/// ε of two budgets (5, 1e-6) that hold ρ together, with their coins paid at the sum's ε: each
/// keeps a 1024th of its δ for them at its own.
fn of_both(rho: f64, sum: f64) -> f64 {
    let coins = (1.0 + sum.exp()) / (1.0 + 5.0f64.exp()) / 1024.0;
    dpmc::privacy::epsilon_of_rho(rho, 2e-6 * (1.0 - coins))
}

#[test]
fn runs_without_a_common_ledger_are_added_up() {
    let place = Place::new(RUN);
    let said = works(&place, "sample run.toml --out one");
    assert!(said.contains("new ledger") && !said.contains(SUM), "{said}");
    let certificate = place.certificate("one");
    let of = |c: &Value, key: &str| c[key].as_str().unwrap_or_default().to_string();
    assert!(of(&certificate, "ledger").contains("new ledger"));
    assert!(of(&certificate, "records").starts_with("recorded"));
    // Resumed, it is the same run.
    let said = works(&place, "sample --resume one --iterations 400");
    assert!(!said.contains(SUM), "{said}");

    let check = works(&place, "check run.toml");
    assert!(check.contains("1 other ledger(s)"), "{check}");
    // By another name of the table, and from another folder.
    std::fs::create_dir(place.path("far")).unwrap();
    let far = edit(RUN, "people.csv", "../far/../people.csv");
    place.write("far/run.toml", &far);
    let said = works(&place, "sample far/run.toml --out two");
    assert!(said.contains("1 other ledger(s)"), "{said}");
    let certificate = place.certificate("two");
    let warnings = certificate["warnings"].to_string();
    assert!(warnings.contains(SUM), "{warnings}");
    // Two budgets of rho, less than twice the epsilon.
    let words: Vec<&str> = said.split_whitespace().collect();
    let at = words.iter().position(|w| *w == "epsilon").unwrap() + 1;
    let sum: f64 = words[at].parse().unwrap();
    assert!(sum > 5.0 && sum < 10.0, "{said}");
    let rho = 2.0 * dpmc::privacy::Budget::new(5.0, 1e-6).unwrap().rho();
    let by_rho = of_both(rho, sum);
    assert!(sum >= by_rho && sum - by_rho < 1e-3, "{sum} {by_rho}");

    // Another table has a past of its own, and a shared ledger counts once.
    place.write("others.csv", &crate::common::place::table(400));
    let said = works(&place, "check run.toml --data others.csv");
    assert!(!said.contains(SUM), "{said}");
    works(
        &place,
        "sample run.toml --ledger l.json --out three --quiet",
    );
    let said = works(&place, "sample run.toml --ledger l.json --out four");
    assert!(
        said.contains("2 other ledger(s)") && !said.contains("new ledger"),
        "{said}"
    );
    assert_eq!(records(&place).len(), 3);
    // No cell is in any of them.
    for file in records(&place) {
        let record: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let keys: Vec<&String> = record.as_object().unwrap().keys().collect();
        let known = [
            "table",
            "directory",
            "ledger",
            "run",
            "leg",
            "head",
            "epsilon",
            "delta",
            "rho",
        ];
        assert!(
            keys.iter().all(|key| known.contains(&key.as_str())),
            "{keys:?}"
        );
    }
}

/// What the new budget adds is what its own ledger may spend: of Gaussian DP more than of ρ, and of
/// one Rényi order no ρ at all.
#[test]
fn what_a_ledger_counts_is_what_is_added_up() {
    let counting = |how: &str| edit(RUN, "delta = 1e-6", &format!("delta = 1e-6\n{how}"));
    let budget = dpmc::privacy::Budget::new(5.0, 1e-6).unwrap();
    let limit = |measure: dpmc::privacy::Measure| measure.limit(budget);
    use dpmc::privacy::Measure::{Gaussian, Zcdp};
    assert!(limit(Gaussian) > 1.05 * limit(Zcdp));
    let (rho, mu) = ("filter = \"zcdp\"", "filter = \"gaussian\"");
    let order = "order = 50.0";
    let cases = [
        (rho, rho, Some(2.0 * limit(Zcdp))),
        (rho, mu, Some(limit(Zcdp) + limit(Gaussian))),
        (mu, rho, Some(limit(Zcdp) + limit(Gaussian))),
        (rho, order, None),
        (order, rho, None),
    ];
    for (first, second, rho) in cases {
        let place = Place::new(&counting(first));
        works(&place, "sample run.toml --out one --quiet");
        // A run that was resumed claims its whole budget.
        works(&place, "sample --resume one --iterations 310 --quiet");
        place.write("second.toml", &counting(second));
        let said = works(&place, "check second.toml");
        let words: Vec<&str> = said.split_whitespace().collect();
        let at = words.windows(3).position(|w| w == ["up", "to", "epsilon"]);
        let sum: f64 = words[at.unwrap() + 3].parse().unwrap();
        let expected = rho.map_or(10.0, |rho| of_both(rho, sum));
        assert!(
            sum >= expected && sum - expected < 2e-3,
            "{first}, {second}: {sum} {expected}"
        );
    }
}

#[test]
fn records_can_be_off_and_cannot_stop_a_run() {
    let place = Place::new(RUN);
    place.works("sample run.toml --out off --quiet");
    let note = |out: &str| place.certificate(out)["records"].to_string();
    assert!(note("off").contains("DPMC_RECORDS"), "{}", note("off"));
    assert!(!place.path("records").exists());
    // A file where the folder should be.
    place.write("records", "mine");
    works(&place, "sample run.toml --out one --quiet");
    assert!(note("one").contains("not recorded"), "{}", note("one"));
    // Without privacy there is nothing to add up.
    std::fs::remove_file(place.path("records")).unwrap();
    works(&place, "sample run.toml --not-private --out open --quiet");
    assert!(records(&place).is_empty());
}

/// Both halves carry their own ledger; what this machine remembers tells them apart.
#[test]
fn a_copied_run_goes_on_once() {
    let place = Place::new(RUN);
    works(&place, "sample run.toml --out out --quiet");
    place.copy("out", "copy");
    works(&place, "sample --resume out --iterations 400 --quiet");
    let before = std::fs::read(place.path("copy/ledger.json")).unwrap();
    let said = refuses(&place, "sample --resume copy --iterations 400 --quiet");
    assert!(said.contains("copy") && said.contains("remove"), "{said}");
    assert_eq!(
        std::fs::read(place.path("copy/ledger.json")).unwrap(),
        before
    );
    works(&place, "sample --resume out --iterations 500 --quiet");
}

/// Between two runs, with no run's state to remember a later one.
#[test]
fn an_older_shared_ledger_put_back_is_refused() {
    let place = Place::new(RUN);
    let sample = |out: &str| format!("sample run.toml --ledger l.json --out {out} --quiet");
    works(&place, &sample("one"));
    let old = std::fs::read(place.path("l.json")).unwrap();
    works(&place, &sample("two"));
    std::fs::write(place.path("l.json"), &old).unwrap();
    // What would be refused is said before.
    let check = works(&place, "check run.toml --ledger l.json");
    assert!(check.contains("older one put back"), "{check}");
    let said = refuses(&place, &sample("three"));
    assert!(said.contains("older one put back"), "{said}");
    assert!(!place.path("three").exists());
    assert_eq!(std::fs::read(place.path("l.json")).unwrap(), old);
}

/// What a killed run published is remembered, though it never ended.
#[test]
fn an_older_ledger_put_back_under_a_killed_run_is_refused() {
    let place = Place::new(RUN);
    works(&place, "sample run.toml --ledger l.json --out one --quiet");
    let old = std::fs::read(place.path("l.json")).unwrap();
    let endless = "sample run.toml --ledger l.json --out two --chains 64 --iterations 10000000";
    let mut command = place.command(&format!("{endless} --quiet"));
    command.env("DPMC_RECORDS", place.path("records"));
    let mut running = command.spawn().unwrap();
    let start = Instant::now();
    // The first part is remembered before the second one is begun.
    while place.parts("two").len() < 2 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(place.parts("two").len() >= 2);
    std::fs::write(place.path("l.json"), &old).unwrap();
    let again = "sample run.toml --ledger l.json --out three --quiet";
    let said = refuses(&place, again);
    assert!(said.contains("older one put back"), "{said}");
}

/// Each probes the folder that the others probe.
#[test]
fn runs_that_begin_at_once_are_all_recorded() {
    let place = Place::new(RUN);
    let outs: Vec<String> = (0..8).map(|k| format!("out{k}")).collect();
    let start = |out: &String| {
        let mut command = place.command(&format!("sample run.toml --quiet --out {out}"));
        command.env("DPMC_RECORDS", place.path("records"));
        command.spawn().unwrap()
    };
    let running: Vec<_> = outs.iter().map(start).collect();
    for mut run in running {
        assert!(run.wait().unwrap().success());
    }
    for out in &outs {
        let note = place.certificate(out)["records"].to_string();
        assert!(note.contains("recorded under"), "{note}");
    }
    assert_eq!(records(&place).len(), outs.len());
}

/// A run file that names a ledger shares it, whatever a flag says.
#[test]
fn a_ledger_in_a_run_file_binds() {
    let stated = edit(RUN, "delta = 1e-6", "delta = 1e-6\nledger = \"l.json\"");
    let place = Place::new(&stated);
    for command in ["check run.toml", "sample run.toml --out out"] {
        let said = place.refuses(&format!("{command} --ledger other.json"));
        let line = 1 + stated
            .lines()
            .position(|l| l.starts_with("ledger"))
            .unwrap();
        let at = format!("line {line}");
        assert!(said.contains("other.json") && said.contains(&at), "{said}");
        assert!(!place.path("other.json").exists() && !place.path("out").exists());
    }
    let check = place.works("check run.toml --ledger l.json");
    assert!(check.contains("new ledger"), "{check}");
    let said = place.works("sample run.toml --ledger ./l.json --out out");
    assert!(
        said.contains("new ledger") && said.contains("l.json"),
        "{said}"
    );
    let said = place.works("sample run.toml --out two");
    assert!(!said.contains("new ledger"), "{said}");
    let shared = place.certificate("two")["ledger"].to_string();
    assert!(shared.contains("other runs"), "{shared}");
    assert!(!place.works("check run.toml").contains("new ledger"));
}
