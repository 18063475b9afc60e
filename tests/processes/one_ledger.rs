//! The promise: a ledger's budget is spent once, whatever becomes of its file and of the
//! directories of its runs meanwhile, and nothing but a run's own counts decides when it writes.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::place::{Place, RUN, edit, number, spent};

/// A run that spends on and on, and does not outlive its test.
struct Running(Child);

impl Running {
    fn start(place: &Place, arguments: &str) -> Self {
        let mut command = place.command(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Running(command.spawn().unwrap())
    }

    /// Its exit code and what it said.
    fn end(&mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "it goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut said = String::new();
        let mut stderr = self.0.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
        (self.0.wait().unwrap().code(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Steps that all cost the same.
fn even() -> String {
    edit(RUN, "\"barker\"", "\"dp-penalty\"\ntau = 100.0")
}

/// Eight million steps, far longer than a test takes, and some two hundred writes meanwhile.
fn slow() -> String {
    let run = edit(RUN, "\"barker\"", "\"dp-penalty\"\ntau = 3000.0");
    edit(&run, "iterations = 300", "iterations = 10000000")
}

fn wait_for(path: &Path) {
    let start = Instant::now();
    while std::fs::metadata(path).map_or(0, |m| m.len()) == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing written");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A run whose ledger is taken away, replaced or edited stops before it spends on.
#[test]
fn a_run_whose_ledger_is_tampered_with_spends_no_more() {
    type Tamper = fn(&Path);
    let cases: [(&str, Tamper); 4] = [
        ("removed", |l| std::fs::remove_file(l).unwrap()),
        ("another file", |l| {
            let bytes = std::fs::read(l).unwrap();
            std::fs::remove_file(l).unwrap();
            std::fs::write(l, bytes).unwrap();
        }),
        ("another hand", |l| std::fs::write(l, "[\n").unwrap()),
        ("another hand", |l| {
            use std::io::Write;
            let mut file = std::fs::File::options().append(true).open(l).unwrap();
            file.write_all(b" ").unwrap();
        }),
    ];
    for (k, (says, tamper)) in cases.iter().enumerate() {
        let place = Place::new(&slow());
        let arguments = "sample run.toml --ledger l.json --out out --quiet";
        let mut running = Running::start(&place, arguments);
        wait_for(&place.path("l.json"));
        tamper(&place.path("l.json"));
        let (code, said) = running.end();
        assert_eq!(code, Some(1), "{k}: {said}");
        assert!(
            said.contains("l.json") && said.contains(says),
            "{k}: {said}"
        );
        assert!(!said.contains("panicked"), "{said}");
        // What it had published is within what it had reserved, the certificate says at most.
        let certificate = place.certificate("out");
        assert_eq!(number(&certificate, "epsilon"), 5.0, "{k}");
        assert!(number(&certificate, "epsilon_spent") < 5.0, "{k}");
    }
}

/// The lock is on the file: no name leads around it, and no file beside it matters.
#[cfg(unix)]
#[test]
fn every_name_of_a_ledger_is_locked() {
    let place = Place::new(&slow());
    let arguments = "sample run.toml --ledger l.json --out out --quiet";
    let running = Running::start(&place, arguments);
    wait_for(&place.path("l.json"));
    std::fs::hard_link(place.path("l.json"), place.path("hard.json")).unwrap();
    std::os::unix::fs::symlink("l.json", place.path("soft.json")).unwrap();
    for entry in std::fs::read_dir(place.path(".")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.contains("lock"), "{name}");
    }
    for name in ["l.json", "hard.json", "soft.json"] {
        let second = format!("sample run.toml --ledger {name} --out second --quiet");
        let said = place.refuses(&second);
        assert!(said.contains("in use"), "{name}: {said}");
    }
    drop(running);
}

/// A link that leads nowhere yet: the ledger is made where it leads to.
#[cfg(unix)]
#[test]
fn a_link_to_no_file_is_followed() {
    let place = Place::new(&even());
    std::fs::create_dir(place.path("far")).unwrap();
    std::os::unix::fs::symlink("far/l.json", place.path("l.json")).unwrap();
    place.works("sample run.toml --ledger l.json --out one --quiet");
    let link = std::fs::symlink_metadata(place.path("l.json")).unwrap();
    assert!(link.is_symlink());
    let one = spent(&place.json("far/l.json"));
    place.works("sample run.toml --ledger far/l.json --out two --quiet");
    assert!((spent(&place.json("l.json")) / one - 2.0).abs() < 1e-6);
}

/// Owner and mode of a ledger stay as they are.
#[cfg(unix)]
#[test]
fn a_ledger_keeps_its_mode() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let place = Place::new(RUN);
    place.works("sample run.toml --ledger l.json --out one --quiet");
    let look = || {
        let data = std::fs::metadata(place.path("l.json")).unwrap();
        (
            data.ino(),
            data.uid(),
            data.gid(),
            data.permissions().mode(),
        )
    };
    let mode = std::fs::Permissions::from_mode(0o660);
    std::fs::set_permissions(place.path("l.json"), mode).unwrap();
    let before = look();
    place.works("sample run.toml --ledger l.json --out two --quiet");
    assert_eq!(look(), before);
}

/// A run goes on once from where it stopped: the shared ledger knows which sessions it has seen.
#[test]
fn a_copied_or_restored_directory_is_refused_by_a_shared_ledger() {
    let place = Place::new(RUN);
    place.works("sample run.toml --ledger l.json --out out --quiet");
    place.copy("out", "copy");
    place.works("sample --resume out --iterations 400 --quiet");
    let before = std::fs::read(place.path("l.json")).unwrap();
    let said = place.refuses("sample --resume copy --iterations 400 --quiet");
    assert!(said.contains("copy"), "{said}");
    assert_eq!(std::fs::read(place.path("l.json")).unwrap(), before);
    place.works("sample --resume out --iterations 500 --quiet");
    // Moved is not copied.
    std::fs::rename(place.path("out"), place.path("moved")).unwrap();
    place.works("sample --resume moved --iterations 600 --quiet");
}

/// A run remembers what it has seen in its ledger.
#[test]
fn an_older_ledger_put_back_under_a_run_is_refused() {
    for own in [false, true] {
        let place = Place::new(RUN);
        let (flag, ledger) = if own {
            ("", "out/ledger.json")
        } else {
            ("--ledger l.json", "l.json")
        };
        place.works(&format!("sample run.toml {flag} --out out --quiet"));
        let old = std::fs::read(place.path(ledger)).unwrap();
        place.works("sample --resume out --iterations 400 --quiet");
        std::fs::write(place.path(ledger), old).unwrap();
        let before = place.draws("out");
        let said = place.refuses("sample --resume out --iterations 500 --quiet");
        assert!(said.contains("put back"), "{said}");
        assert_eq!(place.draws("out"), before);
    }
}

/// An edit by hand is noticed, in whichever line.
#[test]
fn an_edited_ledger_is_refused() {
    let place = Place::new(&even());
    place.works("sample run.toml --ledger l.json --out one --quiet");
    place.works("sample run.toml --ledger l.json --out two --quiet");
    let good = std::fs::read_to_string(place.path("l.json")).unwrap();
    let last = place.ledger("l.json")["spent_units"].clone();
    let zero = good.replace(&format!("\"spent_units\":{last}"), "\"spent_units\":\"0\"");
    let without = |k: usize| {
        let lines: Vec<&str> = good.lines().collect();
        let kept = lines.iter().enumerate().filter(|(n, _)| *n != k);
        let kept: Vec<&str> = kept.map(|(_, line)| *line).collect();
        kept.join("\n") + "\n"
    };
    // As a crash may end a file, but with records behind it.
    let before = |k: usize, what: &str| {
        let mut lines: Vec<&str> = good.lines().collect();
        lines.insert(k, what);
        lines.join("\n") + "\n"
    };
    for (k, text) in [
        zero,
        without(1),
        without(2),
        without(3),
        good.replacen("\"count\":300", "\"count\":3", 1),
        good.replacen("\"rows\":500", "\"rows\":600", 1),
        before(1, ""),
        before(2, ""),
        before(3, "]"),
        before(3, "\0"),
        before(3, "{\"run\":\"a"),
        without(2).replacen("\"format\"", "\"\0ormat\"", 1),
    ]
    .into_iter()
    .enumerate()
    {
        assert_ne!(text, good, "{k}");
        place.write("l.json", &text);
        for command in ["check run.toml", "sample run.toml --out three --quiet"] {
            let said = place.refuses(&format!("{command} --ledger l.json"));
            assert!(
                said.contains("l.json") && said.contains("line"),
                "{k}: {said}"
            );
        }
        assert_eq!(std::fs::read_to_string(place.path("l.json")).unwrap(), text);
        assert!(!place.path("three").exists());
    }
    // What a crash leaves of a line that was being written was never spent on.
    let end = good.trim_end_matches("\n]\n");
    let half = ",\n{\"run\":\"a";
    for (k, tail) in ["\n", ",\n", ",\n\n", half, "\n]\n\0\0\0", ",\n\0\0\"}\n]\n"]
        .into_iter()
        .enumerate()
    {
        place.write("l.json", &format!("{end}{tail}"));
        place.works(&format!(
            "sample run.toml --ledger l.json --out three{k} --quiet"
        ));
        let three = spent(&place.json("l.json"));
        assert!((three / spent(&serde_json::from_str(&good).unwrap()) - 1.5).abs() < 1e-6);
    }
}

/// Eight runs at once on one ledger: one at a time has it, and together they stay within it.
#[test]
fn runs_that_race_for_a_ledger_share_its_budget() {
    let run = edit(RUN, "\"barker\"", "\"dp-penalty\"\ntau = 40.0");
    let place = Place::new(&run);
    let mut published = 0.0;
    for round in 0..2 {
        let runs: Vec<Running> = (0..8)
            .map(|k| {
                let out = format!("out{round}{k}");
                Running::start(
                    &place,
                    &format!(
                        "sample run.toml --ledger l.json --iterations 2000 --quiet --out {out}"
                    ),
                )
            })
            .collect();
        for (k, mut run) in runs.into_iter().enumerate() {
            let (code, said) = run.end();
            let refused = said.contains("in use") || said.contains("is left");
            assert!(code == Some(0) || refused, "{said}");
            if code == Some(0) {
                let certificate = place.certificate(&format!("out{round}{k}"));
                published += crate::common::place::releases(&certificate).1;
            }
        }
    }
    let ledger = place.ledger("l.json");
    let counted = number(&ledger, "rho_spent");
    assert!(published > 0.0 && (counted / published - 1.0).abs() < 1e-6);
}

/// Blocks on the ledger and part files follow counts: a run that is made to wait in between
/// leaves the same files.
#[cfg(target_os = "linux")]
#[test]
fn what_is_written_does_not_follow_the_clock() {
    let run = edit(RUN, "iterations = 300", "iterations = 200000");
    let place = Place::new(&edit(&run, "\"barker\"", "\"dp-penalty\"\ntau = 3000.0"));
    let files = |out: &str, waits: bool| {
        let mut running = Running::start(
            &place,
            &format!("sample run.toml --quiet --out {out} --seed 7"),
        );
        let pid = running.0.id().to_string();
        let signal = |name: &str| {
            let mut kill = std::process::Command::new("kill");
            kill.args([name, pid.as_str()]).stderr(Stdio::null());
            kill.status().unwrap();
        };
        if waits {
            wait_for(&place.path(&format!("{out}/ledger.json")));
            signal("-STOP");
            std::thread::sleep(Duration::from_millis(2500));
            signal("-CONT");
        }
        let (code, said) = running.end();
        assert_eq!(code, Some(0), "{said}");
        let counts: Vec<String> = place
            .json(&format!("{out}/ledger.json"))
            .as_array()
            .unwrap()
            .iter()
            .skip(1)
            .map(|record| record["spent_units"].to_string())
            .collect();
        let rows: Vec<usize> = place
            .parts(out)
            .iter()
            .map(|part| {
                crate::common::place::Draws::read(std::slice::from_ref(part))
                    .rows
                    .len()
            })
            .collect();
        (counts, rows)
    };
    let (swift, slow) = (files("swift", false), files("slow", true));
    assert!(swift.0.len() > 2, "{swift:?}");
    assert_eq!(swift, slow);
}

/// A directory whose draws are not those that were written is refused before anything is spent,
/// and is not summarised.
#[test]
fn draws_are_those_that_were_written() {
    type Spoil = fn(&Path);
    let cases: [(&str, &str, Spoil); 6] = [
        ("part-000001", "missing", |d| {
            std::fs::remove_file(d.join("part-000001.parquet")).unwrap();
        }),
        ("part-000003", "not written by this run", |d| {
            let from = d.join("part-000002.parquet");
            std::fs::copy(from, d.join("part-000003.parquet")).unwrap();
        }),
        ("other.parquet", "not written by this run", |d| {
            let from = d.join("part-000002.parquet");
            std::fs::copy(from, d.join("other.parquet")).unwrap();
        }),
        ("part-000000", "not as it was written", |d| {
            let from = d.join("part-000001.parquet");
            std::fs::copy(from, d.join("part-000000.parquet")).unwrap();
        }),
        ("part-000001", "not as it was written", |d| {
            let mut bytes = std::fs::read(d.join("part-000001.parquet")).unwrap();
            let middle = bytes.len() / 3;
            bytes[middle] ^= 1;
            std::fs::write(d.join("part-000001.parquet"), bytes).unwrap();
        }),
        ("run.toml", "another model", |d| {
            let path = d.with_file_name("run.toml");
            let text = std::fs::read_to_string(&path).unwrap();
            let narrower = text.replacen("sd = 3.0", "sd = 2.0", 1);
            assert_ne!(text, narrower);
            std::fs::write(path, narrower).unwrap();
        }),
    ];
    let place = Place::new(RUN);
    place.works("sample run.toml --out good --quiet");
    place.works("sample --resume good --iterations 400 --quiet");
    place.works("sample --resume good --iterations 500 --quiet");
    for (k, (file, says, spoil)) in cases.iter().enumerate() {
        let out = format!("out{k}");
        place.copy("good", &out);
        spoil(&place.path(&out).join("draws.parquet"));
        let ledger = std::fs::read(place.path(&out).join("ledger.json")).unwrap();
        for command in ["summary", "sample --iterations 600 --quiet --resume"] {
            let said = place.refuses(&format!("{command} {out}"));
            assert!(said.contains(file) && said.contains(says), "{k}: {said}");
        }
        let after = std::fs::read(place.path(&out).join("ledger.json")).unwrap();
        assert_eq!(ledger, after, "{k}");
    }
    place.works("summary good");
    place.works("sample --resume good --iterations 600 --quiet");
}
