//! The promise: a run's memory does not grow with its length. Draws are published and
//! forgotten; the ledger groups its events. Linux: the peak comes from `/proc`.
#![cfg(target_os = "linux")]

use std::time::Duration;

use crate::common::place::{Place, RUN, edit};

/// Peak resident memory of a whole run, in KiB.
fn peak(place: &Place, arguments: &str) -> u64 {
    let mut child = place.command(arguments).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    // The high-water mark never falls, so the last look before the end is the peak.
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kib = line.and_then(|l| l.trim().strip_suffix(" kB"));
        peak = kib.and_then(|k| k.trim().parse().ok()).unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success(), "{arguments}");
    assert!(peak > 0, "no peak was seen: {arguments}");
    peak
}

/// Peaks of a short run and one `times` as long; the longer may not need 4 MiB more.
/// (A draw kept in memory takes some 60 bytes: 10^6 of them would be 60 MiB.)
fn assert_constant((name, flags): (&str, &str), short: u64, times: u64) {
    let poisson = edit(RUN, "\"barker\"", "\"poisson-barker\"\nlambda_ratio = 1.0");
    let place = Place::new(&edit(&poisson, "0.0001", "0.00005"));
    let peaks = [short, times * short].map(|iterations| {
        let out = format!("out-{iterations}");
        let arguments = format!("sample run.toml --quiet --iterations {iterations} --out {out}");
        let peak = peak(&place, &format!("{arguments} {flags}"));
        let certificate = place.json(&format!("{out}/certificate.json"));
        assert_eq!(certificate["iterations"], iterations, "{certificate}");
        println!("{name}: {iterations} iterations, peak {peak} KiB");
        peak
    });
    assert!(peaks[1] < peaks[0] + 4096, "{name}: {peaks:?} KiB");
}

const PRIVATE: (&str, &str) = ("private poisson-barker", "");
const PLAIN: (&str, &str) = ("mh", "--not-private --chains 1 --algorithm mh");

#[test]
fn memory_does_not_grow_over_hundreds_of_thousands_of_iterations() {
    // The short end already fills the buffer of draws (65,536). Twelve bytes kept of an iteration
    // would be seen, and half a byte in the long form.
    for case in [PRIVATE, PLAIN] {
        assert_constant(case, 70_000, 6);
    }
}

/// The long ones: `cargo test --test processes memory -- --ignored --nocapture`.
#[test]
#[ignore = "study"]
fn memory_does_not_grow_over_ten_million_private_iterations() {
    assert_constant(PRIVATE, 1_000_000, 10);
}

#[test]
#[ignore = "study"]
fn memory_does_not_grow_over_ten_million_iterations() {
    assert_constant(PLAIN, 1_000_000, 10);
}
