//! The ways out of a private run that `docs/proofs/guarantee.md` lists, one line each, to tick off.

use super::GUARANTEE;
use crate::common::place::repository;
use std::collections::BTreeSet;

/// Each row of the table in `docs/proofs/guarantee.md`, and the test that tries it: file and
/// function.
const WAYS: [(&str, &str, &str); 26] = [
    (
        "L1",
        "tests/promises/no_leaks.rs",
        "equal_decisions_leave_equal_bytes",
    ),
    (
        "L2",
        "tests/promises/no_leaks.rs",
        "l2_every_field_of_a_file_is_listed",
    ),
    (
        "L3",
        "tests/promises/no_leaks.rs",
        "l3_every_family_leaves_equal_bytes",
    ),
    (
        "L4",
        "tests/promises/no_leaks.rs",
        "l4_names_counts_and_costs_follow_public_numbers",
    ),
    (
        "L5",
        "tests/processes/one_ledger.rs",
        "what_is_written_does_not_follow_the_clock",
    ),
    (
        "L6",
        "tests/promises/no_leaks.rs",
        "l6_nothing_is_written_elsewhere",
    ),
    (
        "L7",
        "tests/processes/records.rs",
        "runs_without_a_common_ledger_are_added_up",
    ),
    (
        "L8",
        "tests/promises/no_leaks.rs",
        "l8_standard_output_is_the_summary",
    ),
    (
        "L9",
        "tests/processes/terminal.rs",
        "a_terminal_shows_iterations_rate_acceptance_and_epsilon_of_the_budget",
    ),
    (
        "L10",
        "tests/command/table_messages.rs",
        "bad_cells_and_lines_are_not_shown",
    ),
    (
        "L11",
        "tests/promises/no_leaks.rs",
        "l11_a_run_that_fails_says_the_same",
    ),
    (
        "L12",
        "tests/command/table_messages.rs",
        "one_record_bends_no_other",
    ),
    (
        "L13",
        "tests/processes/interrupted.rs",
        "a_step_that_would_last_for_hours_ends_when_the_caller_wishes",
    ),
    (
        "L14",
        "tests/processes/cli_resume_and_ledger.rs",
        "a_killed_run_leaves_a_covered_directory_and_can_be_resumed",
    ),
    (
        "L15",
        "tests/promises/no_leaks.rs",
        "l15_check_and_init_say_the_same",
    ),
    (
        "L16",
        "tests/promises/no_leaks.rs",
        "l16_readers_of_a_run_need_no_table",
    ),
    (
        "L17",
        "cli/src/panics.rs",
        "a_panic_names_its_place_and_no_value",
    ),
    (
        "L18",
        "tests/promises/no_leaks.rs",
        "what_is_not_private_is_refused_before_anything_is_charged",
    ),
    (
        "L19",
        "tests/command/cli.rs",
        "the_seed_of_a_private_run_is_public",
    ),
    (
        "L20",
        "tests/promises/no_leaks.rs",
        "l20_a_gpu_leaves_equal_bytes",
    ),
    (
        "L21",
        "tests/promises/no_leaks/ways.rs",
        "what_is_outside_is_said",
    ),
    (
        "L22",
        "tests/promises/no_leaks/ways.rs",
        "what_is_outside_is_said",
    ),
    (
        "L23",
        "tests/promises/no_leaks/ways.rs",
        "what_is_outside_is_said",
    ),
    (
        "L24",
        "tests/promises/no_leaks/ways.rs",
        "what_is_outside_is_said",
    ),
    (
        "L25",
        "tests/command/predictions.rs",
        "answers_are_the_same_without_the_private_table",
    ),
    (
        "L26",
        "tests/command/validate.rs",
        "what_is_written_of_a_held_out_table_follows_its_release_alone",
    ),
];

/// The table and `WAYS` have the same rows, and each row's test is there.
#[test]
fn every_way_out_has_a_test() {
    let rows = GUARANTEE.lines().filter_map(|line| {
        let name = line.strip_prefix("| ")?.split(" |").next()?;
        let number = name.strip_prefix('L')?;
        number.bytes().all(|b| b.is_ascii_digit()).then_some(name)
    });
    let rows: Vec<&str> = rows.collect();
    let ways: Vec<&str> = WAYS.iter().map(|(row, ..)| *row).collect();
    assert_eq!(rows, ways);
    for (row, file, test) in WAYS {
        let path = repository(file);
        let text = std::fs::read_to_string(path).unwrap();
        let at = text.find(&format!("fn {test}()"));
        let at = at.unwrap_or_else(|| panic!("{row}: no {test} in {file}"));
        let before = text[..at].trim_end();
        assert!(before.ends_with("#[test]"), "{row}: {test} is no test");
    }
}

/// What nothing pays for is named as such where a reader looks for it.
#[test]
fn what_is_outside_is_said() {
    let (_, outside) = GUARANTEE
        .split_once("## What the guarantee does not cover")
        .unwrap();
    let outside = outside.split("\n## ").next().unwrap();
    let outside = outside.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in [
        "running time",
        "times of files",
        "engine = \"auto\"",
        "core dump",
        "swap",
        "GPU's memory",
        "no cell",
        "Arguments",
    ] {
        assert!(outside.contains(word), "not said: {word}");
    }
    let rows: BTreeSet<&str> = GUARANTEE
        .lines()
        .filter(|line| line.starts_with("| L") && line.contains("nothing: outside"))
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next())
        .collect();
    assert_eq!(rows, BTreeSet::from(["L10", "L21", "L22", "L23", "L24"]));
}
