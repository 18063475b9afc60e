//! The promise: the command says where its reader would be misled, what a ledger leaves, and ends
//! quietly where nobody reads on.

use std::process::{Output, Stdio};

use crate::common::place::{Place, RUN, edit, number, spent, table};
use serde_json::Value;

/// RUN at an anchor.
fn anchored(model: &str, label: &str) -> String {
    let run = edit(RUN, "\"barker\"\nstep = 0.0001", "\"anchored-barker\"");
    let run = edit(&run, "kind = \"logistic\"", model);
    edit(&run, "column = \"y\"", &format!("column = \"y\"\n{label}"))
}

/// Runs a command whose standard output is closed before it starts.
fn unread(place: &Place, arguments: &str) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.command(arguments);
    command.stdout(writer).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let place = Place::new(RUN);
    place.works("sample run.toml --out out --quiet");
    for arguments in [
        "summary out --json",
        "summary out",
        "check run.toml",
        "init people.csv",
        "sample run.toml --out another",
        "account out/certificate.json --delta 1e-6",
    ] {
        let output = unread(&place, arguments);
        assert!(output.status.success(), "{arguments}: {output:?}");
        assert!(output.stderr.is_empty(), "{arguments}: {output:?}");
    }
    // The run itself was made to its end, and an error is still one.
    assert_eq!(place.certificate("another")["status"], "finished");
    assert_eq!(unread(&place, "check none.toml").status.code(), Some(2));
}

fn notes(place: &Place, directory: &str) -> Vec<String> {
    let text = place.works(&format!("summary {directory} --json"));
    let summary: Value = serde_json::from_str(&text).unwrap();
    let notes = summary["notes"].as_array().unwrap();
    let human = place.works(&format!("summary {directory}"));
    let texts = notes.iter().map(|n| n.as_str().unwrap().to_string());
    let texts: Vec<String> = texts.collect();
    for text in &texts {
        assert!(human.contains(&format!("note: {text}")), "{human}");
    }
    texts
}

/// Steps of 1e-4 wander slowly; steps of 1000 from 500 rows' posterior are never accepted (log
/// ratios below -1e4).
#[test]
fn draws_that_do_not_tell_are_said_not_to() {
    let place = Place::new(RUN);
    let shown = place.works("sample run.toml --out slow");
    assert!(shown.contains("note: these draws do not tell"), "{shown}");
    let found = notes(&place, "slow");
    assert!(found.iter().any(|n| n.contains("bulk ESS")), "{found:?}");

    let stuck = edit(RUN, "\"barker\"\nstep = 0.0001", "\"mh\"\nstep = 1000.0");
    place.write("stuck.toml", &stuck);
    place.works("sample stuck.toml --not-private --chains 2 --iterations 30 --seed 1 --out stuck");
    assert_eq!(
        notes(&place, "stuck"),
        ["no move was accepted: the draws are the start"]
    );
}

#[test]
fn intervals_without_the_noise_of_privacy_say_so() {
    for (sampler, words) in [
        (
            "\"dpvi\"",
            "do not include the noise that was added for privacy",
        ),
        ("\"dp-sgld\"", "is the sampler's own dynamics"),
    ] {
        let place = Place::new(&edit(RUN, "\"barker\"\nstep = 0.0001", sampler));
        for command in ["check run.toml", "sample run.toml --out out"] {
            let text = place.works(command);
            assert!(text.contains(words) && text.contains("note: "), "{text}");
        }
        assert!(notes(&place, "out").iter().any(|n| n.contains(words)));
    }
    let text = Place::new(RUN).works("check run.toml");
    assert!(
        !text.contains("note: ") && !text.contains("warning: "),
        "{text}"
    );
}

#[test]
fn a_header_that_is_one_name_is_asked_about() {
    let place = Place::new(RUN);
    for (delimiter, what, flag) in [
        (";", "semicolon", "';'"),
        ("|", "bar", "'|'"),
        ("\t", "tab", "$'\\t'"),
    ] {
        place.write("other.csv", &table(9).replace(',', delimiter));
        let said = place.refuses("init other.csv");
        let says = format!("single name with a {what} in it; give --delimiter {flag}");
        assert!(said.contains(&says), "{said}");
        // It may be a row.
        assert!(!said.contains(&format!("a{delimiter}b")), "{said}");
    }
    place.write("other.csv", &table(9).replace(',', ";"));
    let made = place.works("init other.csv --delimiter ;");
    assert!(
        made.contains("delimiter = \";\"") && made.contains("\na = { scale"),
        "{made}"
    );
    assert!(
        place
            .works("init other.csv --delimiter ,")
            .contains("a;b;y")
    );
}

#[test]
fn a_run_file_in_another_encoding_is_told_to_be_saved_anew() {
    let place = Place::new(RUN);
    let mut latin = b"# gr\xf6\xdfe\n".to_vec();
    latin.extend(RUN.bytes());
    let utf16: Vec<u8> = RUN.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [&[0xff, 0xfe], &utf16[..]].concat();
    for bytes in [latin, marked] {
        std::fs::write(place.path("other.toml"), bytes).unwrap();
        let said = place.refuses("check other.toml");
        assert!(said.contains("other.toml: is not text in UTF-8"), "{said}");
    }
    // With a mark of UTF-8 it is read.
    std::fs::write(place.path("other.toml"), format!("\u{feff}{RUN}")).unwrap();
    place.works("check other.toml");
}

/// By their names alone samplers that pay for every decision go nowhere by a small budget. What is
/// said before is what their draws say after.
#[test]
fn chains_that_a_budget_cannot_move_are_warned_of_before_anything_is_spent() {
    let by_name = |name: &str| edit(RUN, "\"barker\"\nstep = 0.0001", &format!("\"{name}\""));
    for (name, words) in [
        ("barker", "the budget shortens moves to"),
        ("poisson-barker", "the budget shortens moves to"),
        ("barker-hmc", "the budget shortens moves to"),
        (
            "dp-penalty",
            "the noise of a decision has a standard deviation of",
        ),
        (
            "dp-hmc",
            "the noise of a decision has a standard deviation of",
        ),
    ] {
        let place = Place::new(&by_name(name));
        for command in ["check run.toml", "sample run.toml --out out --seed 1"] {
            let text = place.works(&format!("{command} --epsilon 0.2 --iterations 3000"));
            assert!(
                text.contains(&format!("warning: {words}")),
                "{name}: {text}"
            );
        }
        let found = notes(&place, "out");
        let stands = ["bulk ESS", "no move was accepted"];
        assert!(
            found.iter().any(|n| stands.iter().any(|s| n.contains(s))),
            "{name}: {found:?}"
        );
        // (No such budget pays for the coins of a Poisson minibatch.)
        if name != "poisson-barker" {
            let text = place.works("check run.toml --epsilon 900 --iterations 3000");
            assert!(!text.contains(words), "{name}: {text}");
        }
    }
    let text = Place::new(&by_name("anchored-barker")).works("check run.toml --epsilon 0.2");
    assert!(!text.contains("hardly"), "{text}");
}

#[test]
fn a_delta_above_one_row_is_warned_of_before_anything_is_spent() {
    let place = Place::new(RUN);
    for command in ["check run.toml", "sample run.toml --out out"] {
        let text = place.works(&format!("{command} --delta 0.01"));
        assert!(
            text.contains("warning: delta 1e-2 exceeds 1/rows"),
            "{text}"
        );
    }
}

#[test]
fn a_plot_is_svg_or_png_or_refused_before_draws_are_read() {
    let place = Place::new(RUN);
    for name in ["p.jpg", "p.pdf", "p"] {
        let message = place.refuses(&format!("summary nowhere --plot {name}"));
        assert!(
            message.contains(name) && message.contains("p.svg"),
            "{message}"
        );
    }
    place.works("sample run.toml --out out --quiet");
    place.works("summary out --plot p.svg");
    assert!(place.path("p.svg").exists() && !place.path("p.png").exists());
    let title = "Posterior of people (500 rows), private at ε = ";
    let svg = std::fs::read_to_string(place.path("p.svg")).unwrap();
    assert!(svg.contains(title), "{svg}");
    place.works("summary out --plot p.PNG");
    let png = std::fs::read(place.path("p.PNG")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
}

/// The number that follows `word` in `text`.
fn after(text: &str, word: &str) -> f64 {
    let rest = text
        .split(word)
        .nth(1)
        .unwrap_or_else(|| panic!("no '{word}': {text}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn check_reads_the_ledger_as_sample_would() {
    let run = edit(RUN, "0.0001", "0.004");
    let place = Place::new(&run);
    let alone = after(&place.works("check run.toml"), "affords about ");
    place.works("check run.toml --ledger l.json");
    assert!(!place.path("l.json").exists() && !place.path("l.json.lock").exists());
    place.works("sample run.toml --ledger l.json --out one --quiet");
    let before = std::fs::read(place.path("l.json")).unwrap();
    let text = place.works("check run.toml --ledger l.json");
    let left = after(&text, "affords about ");
    // 300 steps are gone, each at a price near the typical one (moves differ in length).
    assert!(
        left < alone - 150.0 && left > alone - 900.0,
        "{alone} {text}"
    );
    let told = after(text.split("spent,").nth(1).unwrap(), "rho ");
    let limit = dpmc::privacy::rho_of_budget(5.0, 1e-6);
    let there = limit - spent(&place.json("l.json"));
    assert!((told / there - 1.0).abs() < 0.01, "{told} {there}");

    // Neither run file nor flags name a budget: the ledger does.
    let silent = edit(&edit(&run, "epsilon = 5.0\n", ""), "delta = 1e-6\n", "");
    place.write("silent.toml", &silent);
    assert!(
        place
            .works("check silent.toml --ledger l.json")
            .contains("budget     (5, 1e-6)-DP")
    );
    assert!(
        place
            .refuses("check silent.toml --ledger none.json")
            .contains("no budget")
    );
    assert_eq!(std::fs::read(place.path("l.json")).unwrap(), before);
    place.works("sample silent.toml --ledger l.json --out two --quiet --iterations 10");
    let budget = &place.certificate("two")["budget"];
    assert_eq!(
        (number(budget, "epsilon"), number(budget, "delta")),
        (5.0, 1e-6)
    );

    place.write("others.csv", &table(400));
    place.write("other.toml", &edit(&run, "people.csv", "others.csv"));
    place.write("dear.toml", &edit(&run, "0.004", "0.25"));
    for (run, word) in [
        ("run.toml --epsilon 4", "must name the same budget"),
        ("other.toml", "of data set 'people'"),
        (
            "run.toml --algorithm dp-penalty --epsilon 4",
            "must name the same budget",
        ),
    ] {
        let message = place.refuses(&format!("check {run} --ledger l.json"));
        assert!(
            message.contains(word) && message.contains("l.json"),
            "{message}"
        );
    }
    // What is left does not hold the first step of a run that the whole would.
    place.works("sample run.toml --ledger l.json --out three --quiet --iterations 1000000");
    place.works("check dear.toml");
    for command in ["check dear.toml", "sample dear.toml --out four"] {
        let message = place.refuses(&format!("{command} --ledger l.json"));
        let word = "of the ledger's budget is left, and this run needs";
        assert!(
            message.contains(word) && message.contains("l.json"),
            "{message}"
        );
    }
    assert!(!place.path("four").exists());
}

#[test]
fn a_warm_up_that_takes_the_whole_budget_is_refused_before_anything_is_charged() {
    let run = edit(RUN, "0.0001", "0.05\nadapt = \"full\"");
    let place = Place::new(&edit(&run, "[run]", "[run]\nwarmup = 5000"));
    let word = "warm-up alone needs more than the budget: no draw would be kept";
    let text = place.works("check run.toml");
    assert!(
        text.contains(word) && text.contains("adaptation may make steps dearer"),
        "{text}"
    );
    let message = place.refuses("sample run.toml --ledger l.json --out out");
    assert!(
        message.contains(word) && message.contains("run.warmup"),
        "{message}"
    );
    assert!(!place.path("out").exists() && !place.path("l.json").exists());
}

/// Of 20,000 rows at epsilon 1, the budget that it names; sampled at 10, where a start cannot fail.
#[test]
fn the_run_file_of_init_affords_draws() {
    let place = Place::new(RUN);
    place.write("people.csv", &table(20_000));
    let text = place.works("init people.csv");
    let text = edit(
        &text,
        "y = { positive = [\"LEVEL\"], negative = [\"LEVEL\"] }",
        "y = {}",
    );
    let text = text.replace("a = { scale = [LOW, HIGH] }", "a = { scale = [-1, 1] }");
    let text = text.replace("b = { scale = [LOW, HIGH] }", "b = { scale = [-1, 1] }");
    place.write("new.toml", &text);
    let text = place.works("check new.toml");
    assert!(!text.contains("warm-up alone"), "{text}");
    assert!(text.contains(" effective draws"), "{text}");
    place.works("sample new.toml --epsilon 10 --quiet --out out");
    assert!(place.draws("out").last() > 500);
}

#[test]
fn check_says_what_numbers_of_an_anchored_run_mean() {
    let place = Place::new(&anchored(
        "kind = \"linear\"\nvariance = 1.0",
        "clamp = [-1, 1]",
    ));
    // So many rows that a start cannot fail at this epsilon.
    place.write("people.csv", &table(20_000));
    let text = place.works("check run.toml");
    for word in [
        "draws      free: of the released quadratic",
        "nothing to decide",
        "prior      normal, mean 0, sd 3",
    ] {
        assert!(text.contains(word), "no '{word}': {text}");
    }
    for word in ["affords about", "expects 0 of", "a guess", "0.00e0"] {
        assert!(!text.contains(word), "'{word}': {text}");
    }
    place.works("sample run.toml --out out --quiet");
    let summary: Value = serde_json::from_str(&place.works("summary out --json")).unwrap();
    let rows = summary["noise_aware"].as_array().unwrap();
    for (row, name) in rows.iter().zip(["intercept", "a", "b"]) {
        assert_eq!(row["name"], name);
        assert_eq!(number(row, "level"), 0.9);
        assert!(number(row, "mean_sd") > 0.0 && row["interval"].is_array());
    }
    assert_eq!(rows.len(), 3);
    let place = Place::new(&anchored("kind = \"poisson\"", "count = 3"));
    place.write("people.csv", &table(20_000));
    let text = place.works("check run.toml");
    assert!(
        text.contains("a guess before the anchor is known"),
        "{text}"
    );
    assert!(text.contains("data.label.count = 3"), "{text}");
}

/// The accountants' answer on a certificate of costs fixed in advance is the certificate's.
#[test]
fn a_certificate_is_a_sequence_of_events() {
    let place = Place::new(&edit(RUN, "\"barker\"", "\"dp-penalty\""));
    place.works("sample run.toml --out out --quiet --iterations 20");
    let text = place.works("account out/certificate.json --delta 1e-6 --json");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let certificate = place.certificate("out");
    assert_eq!(certificate["adaptive"], false);
    // A 1024th of the certificate's delta pays for coins.
    let (found, claimed) = (number(&answer, "epsilon"), number(&certificate, "epsilon"));
    assert!(
        found <= claimed && found > 0.99 * claimed,
        "{found} {claimed}"
    );
    // What is no certificate keeps its strict keys.
    place.write(
        "e.json",
        r#"{"neighbours": "substitution", "events": [], "private": true}"#,
    );
    assert!(
        place
            .refuses("account e.json --delta 1e-6")
            .contains("unknown key 'private'")
    );
}

/// Decisions by clipped log ratios are of another posterior where rows reach the clip: said before
/// and after the run, and not where the clip is the model's bound.
#[test]
fn a_clip_below_the_bound_is_said() {
    let place = Place::new(RUN);
    let said = "draws are of another distribution than the posterior";
    assert!(!place.works("check run.toml").contains(said));
    let clipped = edit(
        RUN,
        "step = 0.0001",
        "step = 0.0001\nclip = { share = 0.5 }",
    );
    place.write("clipped.toml", &clipped);
    assert!(place.works("check clipped.toml").contains(said));
    place.works("sample clipped.toml --out out --quiet");
    assert!(place.works("summary out").contains(said));
    let bound = edit(
        RUN,
        "step = 0.0001",
        "step = 0.0001\nclip = { share = 1.0 }",
    );
    place.write("bound.toml", &bound);
    assert!(!place.works("check bound.toml").contains(said));
}

/// Without privacy a level that no row has is as wide as the prior: moves along it are long, and no
/// minibatch is drawn for them.
#[test]
fn a_level_without_rows_ends_without_privacy() {
    let run = edit(
        &anchored("kind = \"logistic\"", ""),
        "[model]",
        "[[data.features]]\ncolumn = \"town\"\none_hot = [\"a\", \"b\"]\nreference = \"a\"\n[model]",
    );
    let run = edit(&run, "epsilon = 5.0\ndelta = 1e-6", "not_private = true");
    let run = edit(&run, "sd = 3.0", "sd = 10.0");
    let place = Place::new(&run);
    let mut table = String::from("a,b,y,town\n");
    for i in 0..4000u32 {
        let part = |k: u32| f64::from(i.wrapping_mul(k) % 1009) / 504.5 - 1.0;
        let (a, b) = (part(617), part(331));
        let y = u8::from(a + 0.5 * b + 1.5 * part(907) > 0.0);
        let town = ["a", "b"][(i / 7 % 2) as usize];
        table.push_str(&format!("{a:.3},{b:.3},{y},{town}\n"));
    }
    place.write("people.csv", &table);
    place.works("sample run.toml --out out --quiet --iterations 2000");
    let summary: Value = serde_json::from_str(&place.works("summary out --json")).unwrap();
    let of = |name: &str| {
        let all = summary["parameters"].as_array().unwrap();
        let found = all.iter().find(|p| p["name"] == name).unwrap();
        (number(found, "mean"), number(found, "sd"))
    };
    let (nothing, known) = (of("town=other"), of("town=b"));
    assert!((9.0..11.0).contains(&nothing.1), "{nothing:?}");
    assert!(known.0.abs() < 0.5 && known.1 < 0.15, "{known:?}");
    assert_eq!(summary["certificate"]["status"], "finished");
}
