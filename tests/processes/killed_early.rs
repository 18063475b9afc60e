//! The promise: a run that is killed at any moment, its first milliseconds included, leaves
//! a directory that `--out` or `--resume` accepts; `--out` takes over nothing else.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::place::{Place, RUN, edit};
use dpmc::config::Plan;
use dpmc::output::RunDirectory;
use dpmc::posterior_run::PosteriorRun;
use dpmc::privacy::{Curator, Ledger};
use dpmc::sampler::Chains;

/// Makes the directory of a run that is about to make its first step.
fn begin(place: &Place, out: &str) {
    let plan = Plan::read(&place.path("run.toml")).unwrap();
    let data = plan.load_data().unwrap();
    let rows = data.rows();
    let model = plan.model(&data).unwrap();
    let sampler = plan.sampler(&*model, rows, data.row_norm()).unwrap();
    let starts = plan.starts(&*model, [7; 32]).unwrap();
    let mut directory = RunDirectory::create(&place.path(out)).unwrap();
    let curator = match plan.budget().unwrap() {
        Some(budget) => {
            let file = place.path(out).join("ledger.json");
            let measure = plan.measure(&sampler, &*model, rows, budget).unwrap();
            let ledger = Ledger::open(&file, &plan.dataset_name(), rows, budget, measure).unwrap();
            Curator::private(
                data,
                Arc::clone(&model),
                plan.config.run.engine,
                ledger,
                None,
            )
        }
        None => Curator::not_private(data, Arc::clone(&model), plan.config.run.engine, 1)
            .map(dpmc::privacy::OpenCurator::into_curator),
    };
    let mut run = PosteriorRun::new(
        curator.unwrap(),
        sampler,
        Chains::new(&starts, [7; 32]),
        plan.length().unwrap(),
        plan.resolved().unwrap(),
        Vec::new(),
    );
    directory.begin(&mut run).unwrap();
}

/// The states that creation passes through, as lists of file names, each file copied from
/// `full`; a name with `.tmp` holds half of its file's bytes. A ledger is empty, or torn.
fn states(private: bool) -> Vec<Vec<String>> {
    let mut states = vec![vec![]];
    let mut have: Vec<String> = Vec::new();
    let mut order = vec!["run.lock", "draws.parquet"];
    order.extend(private.then_some("ledger.json"));
    order.extend(["run.toml", "certificate.json", "state.json"]);
    for name in order {
        if name.ends_with(".toml") || name.ends_with(".json") && name != "ledger.json" {
            states.push([have.clone(), vec![format!("{name}.tmp")]].concat());
        }
        have.push(name.to_string());
        states.push(have.clone());
    }
    if private {
        // The first step reserves its budget before anything else.
        have.retain(|name| name != "ledger.json");
        states.push([have, vec!["ledger.json.torn".into()]].concat());
    }
    // An older version made the folder of the draws before its lock.
    states.push(vec!["draws.parquet".into()]);
    states
}

fn construct(full: &Path, state: &[String], out: &Path) {
    std::fs::create_dir(out).unwrap();
    for name in state {
        let (to, of) = (out.join(name), full.join(name.trim_end_matches(".tmp")));
        if name == "draws.parquet" {
            std::fs::create_dir(to).unwrap();
        } else if let Some(torn) = name.strip_prefix("ledger.json") {
            let bytes: &[u8] = if torn.is_empty() {
                b""
            } else {
                b"[\n{\"format\":"
            };
            std::fs::write(out.join("ledger.json"), bytes).unwrap();
        } else {
            let mut bytes = std::fs::read(of).unwrap();
            if name.ends_with(".tmp") {
                bytes.truncate(bytes.len() / 2);
            }
            std::fs::write(to, bytes).unwrap();
        }
    }
}

#[test]
fn every_state_on_the_way_to_the_first_step_can_be_gone_on_with() {
    let open = edit(RUN, "epsilon = 5.0\ndelta = 1e-6", "not_private = true");
    for (run, private) in [(RUN, true), (&open, false)] {
        let place = Place::new(run);
        begin(&place, "full");
        let mut begun: Vec<String> = std::fs::read_dir(place.path("full"))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        begun.sort();
        let states = states(private);
        let mut last = states
            .iter()
            .rfind(|s| s.last().is_some_and(|n| n == "state.json"));
        let mut listed = last.take().unwrap().clone();
        // A ledger that nothing was written to goes with its run, unless that is killed.
        listed.retain(|name| name != "ledger.json");
        listed.sort();
        assert_eq!(begun, listed, "creation writes what this test lists");

        for (i, state) in states.iter().enumerate() {
            let out = format!("out{i}");
            construct(&place.path("full"), state, &place.path(&out));
            let ready = state.iter().any(|name| name == "state.json");
            let (good, bad) = ("sample --resume", "sample run.toml --out");
            let (good, bad) = if ready { (good, bad) } else { (bad, good) };
            let message = place.refuses(&format!("{bad} {out}"));
            let way = if ready { "--resume" } else { "--out" };
            assert!(message.contains(way), "{state:?}: {message}");
            place.works(&format!("{good} {out}"));
            assert_eq!(place.json(&format!("{out}/state.json"))["iteration"], 300);
            let certificate = place.json(&format!("{out}/certificate.json"));
            assert_eq!(certificate["status"], "finished", "{state:?}");
            assert_eq!(certificate["private"], private);
            assert_eq!(place.path(&out).join("ledger.json").exists(), private);
            let left = std::fs::read_dir(place.path(&out)).unwrap();
            let names = left.map(|e| e.unwrap().file_name().into_string().unwrap());
            let stray: Vec<String> = names.filter(|n| n.ends_with(".tmp")).collect();
            assert!(stray.is_empty(), "{state:?} leaves {stray:?}");
        }
    }
}

#[test]
fn a_refused_run_leaves_a_directory_that_it_took_over_empty() {
    let place = Place::new(RUN);
    begin(&place, "full");
    let state: Vec<String> = [
        "run.lock",
        "draws.parquet",
        "run.toml",
        "certificate.json.tmp",
    ]
    .map(String::from)
    .to_vec();
    construct(&place.path("full"), &state, &place.path("out"));
    // Stated, or the ledger would be read for it before the directory is touched.
    let stated = edit(RUN, "delta = 1e-6", "delta = 1e-6\nfilter = \"zcdp\"");
    place.write("run.toml", &stated);
    place.write("damaged.json", "{}");
    place.refuses("sample run.toml --out out --ledger damaged.json");
    assert_eq!(std::fs::read_dir(place.path("out")).unwrap().count(), 0);
}

#[test]
fn what_is_not_a_run_before_its_first_step_is_left_alone() {
    let place = Place::new(RUN);
    place.works("sample run.toml --out done");
    type Spoil = fn(&Path);
    let cases: [(&str, Spoil); 6] = [
        ("the run file alone", |p| {
            std::fs::write(p.join("run.toml"), RUN).unwrap();
        }),
        ("a foreign file", |p| {
            std::fs::write(p.join("run.lock"), "").unwrap();
            std::fs::write(p.join("note"), "mine").unwrap();
        }),
        ("a foreign lock", |p| {
            std::fs::write(p.join("run.lock"), "mine").unwrap();
        }),
        ("a draw", |p| {
            std::fs::write(p.join("run.lock"), "").unwrap();
            std::fs::create_dir(p.join("draws.parquet")).unwrap();
            std::fs::write(p.join("draws.parquet/part-000000.parquet"), "").unwrap();
        }),
        ("a ledger", |p| {
            std::fs::write(p.join("run.lock"), "").unwrap();
            std::fs::write(p.join("ledger.json"), "{}").unwrap();
        }),
        ("a certificate of draws that are gone", |p| {
            std::fs::write(p.join("run.lock"), "").unwrap();
            let done = p.with_file_name("done").join("certificate.json");
            std::fs::copy(done, p.join("certificate.json")).unwrap();
        }),
    ];
    for (i, (case, spoil)) in cases.iter().enumerate() {
        let out = place.path(&format!("out{i}"));
        std::fs::create_dir(&out).unwrap();
        spoil(&out);
        let names = || {
            let mut names: Vec<_> = std::fs::read_dir(&out)
                .unwrap()
                .map(|e| {
                    let path = e.unwrap().path();
                    (path.clone(), std::fs::read(&path).unwrap_or_default())
                })
                .collect();
            names.sort();
            names
        };
        let before = names();
        for arguments in ["sample run.toml --out", "sample --resume"] {
            let message = place.refuses(&format!("{arguments} out{i}"));
            assert!(message.contains(&format!("out{i}")), "{case}: {message}");
            assert_eq!(names(), before, "{case}, {arguments}");
        }
    }
}

/// SIGKILL at random moments of the first milliseconds.
#[test]
fn a_run_killed_in_its_first_milliseconds_can_be_gone_on_with() {
    let place = Place::new(RUN);
    let (mut unstarted, mut started) = (0, 0);
    for round in 0..60u64 {
        let out = format!("out{round}");
        let arguments = format!("sample run.toml --iterations 100000000 --out {out}");
        let mut child = place.command(&arguments).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(250 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        if place.path(&out).join("state.json").exists() {
            started += 1;
            let state = place.json(&format!("{out}/state.json"));
            let more = state["iteration"].as_u64().unwrap() + 20;
            place.works(&format!(
                "sample --resume {out} --iterations {more} --quiet"
            ));
        } else {
            unstarted += 1;
            place.works(&format!(
                "sample run.toml --iterations 20 --out {out} --quiet"
            ));
        }
    }
    println!("{unstarted} killed before the state was there, {started} after");
    assert!(unstarted > 0);
}

/// A state that was damaged on disk is an error that names the field, never a panic.
#[test]
fn a_damaged_state_is_refused_by_field() {
    let run = edit(RUN, "[run]", "adapt = \"full\"\n[run]\nwarmup = 40");
    let place = Place::new(&run);
    place.works("sample run.toml --out out --quiet");
    let good = place.json("out/state.json");
    let certificate = place.json("out/certificate.json");
    for (pointer, value, field) in [
        (
            "/sampler/walk/preconditioner",
            r#"{"diagonal":[1.0]}"#,
            "preconditioner",
        ),
        (
            "/sampler/walk/preconditioner",
            r#"{"full":[1.0,2.0]}"#,
            "preconditioner",
        ),
        ("/sampler/walk/step", "-1.0", "step"),
        (
            "/sampler/walk/iteration",
            "18446744073709551615",
            "iteration",
        ),
        ("/sampler/walk/adaptation/mean", "[]", "adaptation"),
        ("/sampler/walk/adaptation/scatter", "[1.0]", "adaptation"),
        (
            "/sampler/walk/adaptation/since",
            "18446744073709551615",
            "adaptation",
        ),
        ("/iteration", "18446744073709551615", "iteration"),
        ("/kept_accepted", "18446744073709551615", "kept_accepted"),
        ("/parts", "18446744073709551615", "parts"),
        ("/chains/accepted", "[18446744073709551615]", "accepted"),
        ("/chains/thetas", "[[0.0]]", "chains"),
        ("/paid/events/0/1", "18446744073709551615", "events"),
    ] {
        let mut state = good.clone();
        let place_of = state.pointer_mut(pointer).expect(pointer);
        *place_of = serde_json::from_str(value).unwrap();
        place.write("out/state.json", &state.to_string());
        let message = place.refuses("sample --resume out --iterations 400 --quiet");
        assert!(message.contains(field), "{pointer}: {message}");
        assert_eq!(place.json("out/certificate.json"), certificate, "{pointer}");
    }
    place.write("out/state.json", &good.to_string());
    place.works("sample --resume out --iterations 400 --quiet");
}
