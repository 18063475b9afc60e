//! The promise: on a terminal a run shows where it is, how fast, and what it has spent;
//! nothing else reaches standard error. Under a real pseudo-terminal (Unix).
#![cfg(unix)]

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::common::place::{Place, RUN, edit};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Runs the command with standard error on a terminal of 120 columns; what the terminal
/// got, and standard output.
fn on_a_terminal(place: &Place, arguments: &str) -> (String, String) {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&main).unwrap();
    unlockpt(&main).unwrap();
    let name = ptsname(&main, Vec::new()).unwrap();
    let path = std::ffi::OsStr::from_bytes(name.as_bytes());
    let terminal = File::options().read(true).write(true).open(path).unwrap();
    let size = Winsize {
        ws_row: 30,
        ws_col: 120,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).unwrap();
    let mut command = place.command(arguments);
    command.env("TERM", "xterm-256color");
    command.stderr(Stdio::from(terminal)).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    // The command keeps its ends of the terminal open; the last one must close with it.
    drop(command);
    let reader = std::thread::spawn(move || {
        let (mut main, mut bytes) = (File::from(main), Vec::new());
        let mut buffer = [0u8; 4096];
        // Linux ends a terminal that nobody holds with EIO, others with an empty read.
        while let Ok(n @ 1..) = main.read(&mut buffer) {
            bytes.extend_from_slice(&buffer[..n]);
        }
        bytes
    });
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(reader.join().unwrap()).unwrap();
    (shown, String::from_utf8(output.stdout).unwrap())
}

/// The text of each renewal of the line, without control sequences.
fn frames(shown: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = shown.chars();
    while let Some(c) = rest.next() {
        if c == '\x1b' {
            // CSI … final letter.
            rest.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(c);
        }
    }
    let lines = plain.split(['\r', '\n']).map(|l| l.trim().to_string());
    lines.filter(|l| !l.is_empty()).collect()
}

fn after<'a>(line: &'a str, word: &str) -> &'a str {
    let at = line
        .find(word)
        .unwrap_or_else(|| panic!("no '{word}' in {line:?}"));
    line[at + word.len()..].trim_start()
}

fn number(text: &str) -> f64 {
    let end = text.find(|c: char| !"0123456789.,".contains(c));
    let digits = text[..end.unwrap_or(text.len())].replace(',', "");
    digits
        .trim_end_matches('.')
        .parse()
        .unwrap_or_else(|_| panic!("no number: {text:?}"))
}

#[test]
fn a_terminal_shows_iterations_rate_acceptance_and_epsilon_of_the_budget() {
    // Spends the budget within seconds, whatever the machine.
    let run = edit(RUN, "0.0001", "0.0005");
    let place = Place::new(&edit(&run, "iterations = 300", "iterations = 100000000"));
    let (shown, out) = on_a_terminal(&place, "sample run.toml --out out");
    let lines = frames(&shown);
    let lines: Vec<&String> = lines.iter().filter(|l| l.contains("acceptance")).collect();
    assert!(lines.len() >= 2, "{shown:?}");
    let (mut done, mut spent) = (0.0, 0.0);
    for line in &lines {
        let (before, total) = line.split_once("/100,000,000").unwrap();
        let iterations = number(before.split(' ').next_back().unwrap());
        let rate = number(total.split_once('(').unwrap().1);
        let acceptance = number(after(line, "acceptance "));
        let epsilon = number(after(line, "ε "));
        assert!(total.contains("/s)") && rate > 0.0, "{line}");
        assert!(iterations >= done && iterations > 0.0, "{line}");
        assert!((0.0..=1.0).contains(&acceptance), "{line}");
        assert!(epsilon >= spent && epsilon <= 5.0, "{line}");
        assert_eq!(number(after(line, " of ")), 5.0, "{line}");
        (done, spent) = (iterations, epsilon);
    }
    let certificate = place.json("out/certificate.json");
    assert!(done <= certificate["iterations"].as_f64().unwrap());
    // Its costs were fixed in advance: an accountant may know better than the filter did.
    let claimed = certificate["epsilon_spent"].as_f64().unwrap();
    assert!(
        0.9 * spent <= claimed && claimed <= 5.0,
        "{spent} {claimed}"
    );
    assert!(spent > 0.0, "{lines:?}");
    // The line is gone at the end; the summary went to standard output, plain.
    assert!(out.contains("intercept") && !out.contains(['\x1b', '\r']));
}

#[test]
fn a_run_without_privacy_says_so_on_the_terminal_and_quiet_is_quiet() {
    let place = Place::new(RUN);
    let flags = "--not-private --chains 1 --iterations 60000";
    let (shown, _) = on_a_terminal(&place, &format!("sample run.toml --out a {flags}"));
    assert!(shown.contains("NOT private"), "{shown:?}");
    let (shown, out) = on_a_terminal(&place, &format!("sample run.toml --out b {flags} --quiet"));
    assert!(shown.is_empty() && out.is_empty(), "{shown:?} {out:?}");
}

/// Mesa's layers would speak of a display that is not there.
#[test]
fn looking_for_adapters_says_nothing_on_standard_error() {
    let place = Place::new(RUN);
    let auto = "sample run.toml --engine auto --out out --quiet";
    for arguments in ["devices", auto] {
        for value in [None, Some("")] {
            let mut command = place.command(arguments);
            command.env_remove("XDG_RUNTIME_DIR");
            command.env_remove("NODEVICE_SELECT");
            command.envs(value.map(|v| ("XDG_RUNTIME_DIR", v)));
            let output = command.output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{arguments}: {error}");
            assert!(error.is_empty(), "{arguments}: {error}");
            let _ = std::fs::remove_dir_all(place.path("out"));
        }
    }
}
