//! The promises about a table's text: no message, no file and no summary shows a cell, also where
//! the first line is a row; and one record's bytes change nothing but that record, N least of all.

use std::path::Path;
use std::process::Command;

use crate::common::tables::{RUN, csv, edit, folder_with, gzip, parquet, run_over};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// What cells hold; nothing may contain it.
const CELL: &str = "s3cret";

/// Everything that a command says; whether it ended well.
fn say(folder: &Path, arguments: &str) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dpmc"))
        .current_dir(folder)
        // No test writes to the data folder of whoever runs it.
        .env("DPMC_RECORDS", "off")
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(!said.contains("panicked"), "{arguments}: {said}");
    (output.status.success(), said)
}

/// Names of all files in the folder that are no table, and all bytes in them.
fn files(folder: &Path) -> (Vec<String>, Vec<u8>) {
    let (mut names, mut bytes) = (Vec::new(), Vec::new());
    let mut folders = vec![folder.to_path_buf()];
    while let Some(place) = folders.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path
                .file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("table.")
            {
                names.push(path.strip_prefix(folder).unwrap().display().to_string());
                bytes.extend(std::fs::read(path).unwrap());
            }
        }
    }
    names.sort();
    (names, bytes)
}

/// Runs commands on a table; nothing that they say or write holds the marker.
fn assert_silent(file: &str, table: &[u8], run: &str, commands: &[&str]) -> Vec<bool> {
    let folder = folder_with(file, table);
    let path = folder.path();
    std::fs::write(path.join("run.toml"), run).unwrap();
    let said = commands.iter().map(|command| {
        let (good, said) = say(path, command);
        assert!(!said.contains(CELL), "{file}: {command}: {said}");
        good
    });
    let good = said.collect();
    let (names, bytes) = files(path);
    let shown = bytes.windows(CELL.len()).any(|w| w == CELL.as_bytes());
    assert!(!shown, "{file}: one of {names:?} holds a cell");
    good
}

const COMMANDS: [&str; 3] = [
    "check run.toml",
    "check run.toml --json",
    "sample run.toml --out out",
];

#[test]
fn a_table_without_a_header_shows_no_cell() {
    // The last: `init` shows the first line, which is refused where it can be told for a row.
    for (first, init) in [
        ("s3cret1,s3cret2,s3cret3", false),
        ("s3cret,s3cret,s3cret", true),
        ("s3cret1,0.5,1", true),
        ("s3cret1,?,NA", true),
        ("s3cret1;s3cret2;1", false),
        ("\"s3cret1\",\"s3cret2", true),
        ("s3cret1,s3cret2\rs3cret3,a,b", true),
        ("b,s3cret1,a", false),
    ] {
        let table = csv().replace("a,b,y", first);
        let commands = [
            &COMMANDS[..],
            &["init table.csv --out x.toml"][..usize::from(init)],
        ];
        let good = assert_silent("table.csv", table.as_bytes(), RUN, &commands.concat());
        assert!(good.iter().all(|good| !good), "{first}: {good:?}");
    }
}

#[test]
fn bad_cells_and_lines_are_not_shown() {
    let strict = edit(
        RUN,
        "scale = [-1, 1]",
        "one_hot = [\"0.000\"]\nstrict = true",
    );
    let named = edit(
        RUN,
        "\"y\"",
        "\"y\"\npositive = [\"1\"]\nnegative = [\"0\"]",
    );
    let bounds = "public = true\n[[data.features]]\nintercept";
    let bounds = edit(
        RUN,
        "[[data.features]]\nintercept",
        &format!("[data.bounds]\ncolumn = \"b\"\n{bounds}"),
    );
    let bounds = edit(&bounds, "columns = [\"a\", \"b\"]", "column = \"a\"");
    for run in [RUN, &strict, &named, &bounds] {
        for bad in [
            "s3cret,0,1",
            "0,s3cret,1",
            "0,0,s3cret",
            "s3cret",
            "s3cret,0,0,s3cret",
            "\"s3cret,0,1",
            "s3cret\u{0},0,1",
            "\"s3cret\"s3cret,0,1",
            "1e999s3cret,0,0",
        ] {
            let table = csv().replacen("0.571,-0.800,0", bad, 1);
            for quoted in [false, true] {
                let run = match quoted {
                    true => edit(run, "row_norm", "quoted_newlines = true\nrow_norm"),
                    false => run.to_string(),
                };
                let good = assert_silent("table.csv", table.as_bytes(), &run, &COMMANDS[..1]);
                assert_eq!(good, [false], "{bad}");
            }
        }
    }
    let utf8 = [csv().as_bytes(), b"s3cret\xff,0,1\n"].concat();
    assert_silent("table.csv", &utf8, RUN, &COMMANDS);
    let cut = gzip(csv().replace("0.571", "s3cret").as_bytes());
    assert_silent(
        "table.csv.gz",
        &cut[..cut.len() - 9],
        &run_over("table.csv.gz"),
        &COMMANDS,
    );
}

/// Files of another kind than their name says, and damaged ones.
#[test]
fn damaged_files_are_not_shown() {
    let header = "{'descr': 's3cret', 'fortran_order': False, 'shape': (2, 2), }";
    let named = [
        b"\x93NUMPY\x01\x00\x76\x00".to_vec(),
        format!("{header:117}\n").into_bytes(),
    ];
    let mut renamed = parquet();
    let place = renamed.windows(6).rposition(|w| w == b"schema");
    let place = place.unwrap_or(renamed.len() - 60);
    renamed[place..place + 6].copy_from_slice(CELL.as_bytes());
    let text = csv().replace("0.571", CELL);
    let twice = "message t { required double s3cret; required double s3cret; }";
    let twice = parse_message_type(twice).unwrap().into();
    let twice = SerializedFileWriter::new(Vec::new(), twice, Default::default());
    for (file, bytes) in [
        ("table.parquet", twice.unwrap().into_inner().unwrap()),
        ("table.npy", text.clone().into_bytes()),
        ("table.npy", named.concat()),
        ("table.parquet", text.clone().into_bytes()),
        (
            "table.parquet",
            [b"PAR1", text.as_bytes(), b"\x10\0\0\0PAR1"].concat(),
        ),
        ("table.parquet", renamed[..renamed.len() - 12].to_vec()),
    ] {
        let init = format!("init {file} --out x.toml");
        let commands = [&COMMANDS[..], &[&init]].concat();
        let good = assert_silent(file, &bytes, &run_over(file), &commands);
        assert!(good.iter().all(|good| !good), "{file}: {good:?}");
    }
}

/// RUN with a text that nothing reads and a rule for every missing cell.
fn lenient() -> String {
    let run = edit(RUN, "scale = [-1, 1]", "scale = [-1, 1]\nmissing = 0");
    let run = edit(
        &run,
        "\"y\"",
        "\"y\"\npositive = [\"1\"]\nnegative = [\"0\", \"\"]",
    );
    edit(&run, "row_norm", "bad_cells = \"missing\"\nrow_norm")
}

/// Neighbours in one record: the same N, the same words and the same files.
#[test]
fn one_record_bends_no_other() {
    let table = |record: &[u8]| {
        let mut lines = csv().replace('\n', ",note\n").into_bytes();
        lines.extend(record);
        lines.extend(b"\n");
        lines.extend(
            csv()
                .lines()
                .skip(1)
                .flat_map(|l| format!("{l},note\n").into_bytes())
                .collect::<Vec<u8>>(),
        );
        lines
    };
    let look = |record: &[u8]| {
        let folder = folder_with("table.csv", &table(record));
        let path = folder.path();
        std::fs::write(path.join("run.toml"), lenient()).unwrap();
        let check = say(path, "check run.toml");
        let json = say(path, "check run.toml --json");
        assert!(check.0 && json.0, "{}", check.1);
        let (good, said) = say(path, "sample run.toml --out out --quiet");
        assert!(good, "{said}");
        let said = check.1.lines().filter(|line| !line.starts_with("memory"));
        let said: Vec<String> = said.map(String::from).collect();
        (said.join("\n"), memory_aside(&json.1), files(path).0)
    };
    let good = look(b"0.5,-0.5,1,note");
    assert!(good.0.contains("81"), "{}", good.0);
    for record in [
        &b""[..],
        b"\"",
        b"\"0.5,-0.5,1,note",
        b"0.5,-0.5,1,\"note",
        b"0.5,-0.5,1,\"note\"\"",
        b",,,",
        b"0.5",
        b"0.5,-0.5,1,note,,,,,",
        b"\xff,\xfe,\xff,\0",
        b"0.5\r0.5\r,1,1,1",
        b"s3cret,s3cret,s3cret,s3cret",
        &[b'x'; 100_000],
    ] {
        let found = look(record);
        assert_eq!(found, good, "{:?}", &record[..record.len().min(20)]);
    }
}

/// Without what the machine's other processes change from one moment to the next.
fn memory_aside(json: &str) -> serde_json::Value {
    let mut value: serde_json::Value = serde_json::from_str(json).unwrap();
    if let Some(memory) = value.get_mut("memory") {
        memory.as_object_mut().unwrap().remove("available_bytes");
    }
    value
}

/// A cell that cannot be read stops a run, by its line, unless the run file says otherwise.
#[test]
fn bad_cells_stop_a_run_unless_they_count_as_missing() {
    let table = edit(&csv(), "0.571,-0.800,0", "s3cret,-0.800,0");
    let folder = folder_with("table.csv", table.as_bytes());
    let path = folder.path();
    let strict = edit(&lenient(), "bad_cells = \"missing\"\n", "");
    std::fs::write(path.join("run.toml"), strict).unwrap();
    let (good, said) = say(path, "check run.toml");
    assert!(!good && said.contains("line 6, column 'a'"), "{said}");
    std::fs::write(path.join("run.toml"), lenient()).unwrap();
    let (good, said) = say(path, "sample run.toml --out out --quiet");
    assert!(good, "{said}");
    // A NaN is a bad cell of an array.
    let mut array = crate::common::tables::npy("(40, 2)", 79);
    array.extend(f64::NAN.to_le_bytes());
    std::fs::write(path.join("table.npy"), array).unwrap();
    let run = edit(
        &run_over("table.npy"),
        "scale = [-1, 1]",
        "scale = [-1, 1]\nmissing = 0",
    );
    std::fs::write(path.join("array.toml"), &run).unwrap();
    let (good, said) = say(path, "check array.toml");
    assert!(!good && said.contains("line 40, column 'x1'"), "{said}");
    let run = edit(&run, "row_norm", "bad_cells = \"missing\"\nrow_norm");
    std::fs::write(path.join("array.toml"), run).unwrap();
    let (good, said) = say(path, "check array.toml");
    assert!(good, "{said}");
    let resolved = std::fs::read_to_string(path.join("out/run.toml")).unwrap();
    assert!(resolved.contains("bad_cells = \"missing\""), "{resolved}");
}

/// A delimiter is that of the table, of the test table and of what `init` reads.
#[test]
fn a_declared_delimiter_holds_for_both_tables() {
    let semicolons = csv().replace(',', ";");
    let folder = folder_with("table.csv", semicolons.as_bytes());
    let path = folder.path();
    std::fs::write(path.join("test.csv"), &semicolons).unwrap();
    let test = "[test]\nfile = \"test.csv\"\npublic = true\n[model]";
    let run = edit(RUN, "row_norm", "delimiter = \";\"\nrow_norm");
    std::fs::write(path.join("run.toml"), edit(&run, "[model]", test)).unwrap();
    let (good, said) = say(path, "check run.toml");
    assert!(good, "{said}");
    std::fs::write(path.join("test.csv"), csv()).unwrap();
    let (good, said) = say(path, "check run.toml");
    assert!(
        !good && said.contains("test.csv") && said.contains("delimiter"),
        "{said}"
    );
    let (good, said) = say(path, "init table.csv --delimiter ;");
    assert!(good && said.contains("delimiter = \";\""), "{said}");
    assert!(said.contains("\na = { scale = "), "{said}");
    let (good, said) = say(path, "init table.csv --delimiter ;;");
    assert!(!good && said.contains("--delimiter"), "{said}");
}
