//! `--json`: every command that prints something prints it as one JSON document, and exit codes
//! mean what help and reference say.

use serde_json::Value;

use crate::common::place::{Place, RUN, edit, repository};

/// Protected rows that score the draws.
const HELD_OUT: &str = r#"[validate]
file = "others.csv"
clip = [-3, 0]
epsilon = 1.0
delta = 1e-6
ledger = "others.ledger.json"
"#;

/// Public rows for the run file of [`RUN`], with labels and without, and held-out ones.
fn place() -> Place {
    let place = Place::new(RUN);
    let table = std::fs::read_to_string(place.path("people.csv")).unwrap();
    let lines: Vec<&str> = table.lines().take(30).collect();
    place.write("public.csv", &(lines.join("\n") + "\n"));
    let unlabelled = lines.iter().map(|l| l.rsplit_once(',').unwrap().0);
    place.write(
        "new.csv",
        &(unlabelled.collect::<Vec<_>>().join("\n") + "\n"),
    );
    place.write("others.csv", &table);
    place.write("run.toml", &format!("{RUN}{HELD_OUT}"));
    let event = r#"{"kind": "gaussian", "sensitivity": 1.0, "sigma": 5.0}"#;
    place.write(
        "events.json",
        &format!(r#"{{"neighbours": "substitution", "events": [{event}]}}"#),
    );
    place
}

fn json(text: &str, arguments: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{arguments}: {e}: {text}"))
}

/// Names of the subcommands, as help lists them.
fn subcommands(place: &Place) -> Vec<String> {
    let help = place.works("--help");
    let commands = help.split("Commands:").nth(1).unwrap();
    let commands = commands.split("Options:").next().unwrap().lines();
    let names = commands.filter_map(|l| l.strip_prefix("  ")?.split_whitespace().next());
    let own = |name: &&str| *name != "help" && name.chars().next().unwrap().is_lowercase();
    names.filter(own).map(String::from).collect()
}

/// In this order: some read what others leave. `bench` measures for a minute; that it knows the
/// flag is seen below.
const PRINTS: &str = "
init people.csv                                                     => columns run_file
check run.toml                                                      => table budget
sample run.toml --out out                                           => directory certificate
summary out                                                         => parameters certificate
validate out                                                        => log_score epsilon
report out --out page.html                                          => page
predict out --table new.csv                                         => columns
effects out --table new.csv --shift a=0.1                           => effects
synthesize out --table new.csv --out made                           => files
compare out --table public.csv                                      => calibration
prior run.toml                                                      => predicted
devices                                                             =>
account events.json --delta 1e-6                                    => upper
calibrate events.json --epsilon 1 --delta 1e-6 --solve sigma          => solution
audit --algorithm barker --trials 2000 --seed 1                     => verdict
man pages                                                           => pages
forget pages                                                        => files bytes
";

#[test]
fn every_command_that_prints_does_so_as_json_if_asked() {
    let place = place();
    let mut tried = vec!["bench".to_string(), "completions".to_string()];
    for line in PRINTS.trim().lines() {
        let (command, keys) = line.split_once("=>").unwrap();
        let command = format!("{} --json", command.trim());
        let found = json(&place.works(&command), &command);
        for key in keys.split_whitespace() {
            assert!(!found[key].is_null(), "{command}: no '{key}' in {found}");
        }
        tried.push(command.split(' ').next().unwrap().to_string());
    }
    let mut all = subcommands(&place);
    all.sort();
    tried.sort();
    assert_eq!(tried, all, "a subcommand is missing here");
    assert!(place.works("bench --help").contains("--json"));
    // The page, the run file and the pages are there as without the flag.
    assert!(place.path("page.html").exists() && place.path("pages/dpmc-init.1").exists());
    // Remarks do not stand among the JSON.
    let output = place.dpmc("sample run.toml --out other --json --ledger l.json");
    json(&String::from_utf8(output.stdout).unwrap(), "sample");
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("new ledger")
    );
}

/// Sizes of moves that adapt are events of their own, so that a run has very many.
#[test]
fn long_lists_of_events_are_shortened_unless_asked_for() {
    let run = edit(RUN, "step = 0.0001", "step = 0.0001\nadapt = \"diagonal\"");
    let place = Place::new(&edit(
        &run,
        "iterations = 300",
        "iterations = 50\nwarmup = 250",
    ));
    place.works("sample run.toml --out out --quiet");
    let events = |text: &str| json(text, "summary")["certificate"]["events"].clone();
    let all = place.certificate("out")["events"].clone();
    let count = all.as_array().unwrap().len();
    assert!(count > 40, "{count}");
    let short = place.works("summary out --json");
    let short = json(&short, "")["certificate"].clone();
    let first = short["first_events"].as_array().unwrap();
    assert_eq!(first[..], all.as_array().unwrap()[..20]);
    assert_eq!(short["events_left_out"], count - 20);
    // No one takes a part for the whole.
    assert!(short["events"].is_null());
    place.write("short.json", &short.to_string());
    let refused = place.refuses("account short.json --delta 1e-6");
    assert!(refused.contains("--events"), "{refused}");
    let long = place.works("summary out --json --events");
    assert_eq!(events(&long), all);
    assert!(json(&long, "")["certificate"]["events_left_out"].is_null());
    assert!(place.refuses("summary out --events").contains("--json"));
}

/// What the reference promises of exit codes, each seen at least once.
#[test]
fn exit_codes_are_what_help_and_reference_say() {
    let place = place();
    let codes = "Exit codes: 0 where it worked";
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(squeezed(&place.works("--help")).contains(codes));
    let page = std::fs::read_to_string(repository("docs/reference/command.md")).unwrap();
    for name in subcommands(&place) {
        let help = squeezed(&place.works(&format!("{name} --help")));
        assert!(help.contains(codes), "{name}: {help}");
        assert!(
            page.contains(&format!("| `{name}` |")),
            "{name}: not in command.md"
        );
    }
    place.write("dear.toml", &edit(RUN, "0.0001", "0.05"));
    for (arguments, code) in [
        ("sample run.toml --out out --quiet", 0),
        // Whoever wants more than there is has what there is.
        (
            "sample dear.toml --out spent --quiet --iterations 100000",
            0,
        ),
        ("summary", 2),
        ("summary nowhere", 2),
        ("sample run.toml --out out", 2),
        ("sample run.toml --epsilon -1 --out b", 2),
        ("sample run.toml --data none.csv --out b", 2),
        ("report out --out none/page.html", 1),
        ("init people.csv --out none/run.toml", 1),
    ] {
        let output = place.dpmc(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.is_empty(), code == 0, "{arguments}: {said}");
    }
    assert_eq!(place.certificate("spent")["status"], "budget spent");
}
