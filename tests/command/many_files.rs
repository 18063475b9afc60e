//! The promises about tables in many files: the same rows, to the bit, as of one file; errors that
//! name the file and show none of the cells that folders' names hold.

use std::path::Path;

use dpmc::config::{Plan, table_files};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use crate::common::place::{Place, RUN, edit, table};
use crate::common::tables::{gzip, npy};

/// What cells hold; no message may contain it.
const CELL: &str = "s3cret";

/// A place whose run file reads `file`.
fn place(run: &str, file: &str) -> Place {
    let run = edit(
        run,
        "file = \"people.csv\"",
        &format!("name = \"visits\"\nfile = '{file}'"),
    );
    Place::new(&run)
}

fn write(place: &Place, name: &str, bytes: impl AsRef<[u8]>) {
    let path = place.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Lines of a table, in pieces of uneven length, each with the header.
fn pieces(text: &str, count: usize) -> Vec<String> {
    let (header, rows) = text.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    // 0, 1, 3, 6, …: the first of several has no row.
    let end = |k: usize| match k == count {
        true => rows.len(),
        false => rows.len() * (k * (k.max(1) - 1)) / (count * count),
    };
    let piece = |k: usize| {
        let rows = &rows[end(k)..end(k + 1)];
        rows.iter()
            .fold(format!("{header}\n"), |text, row| text + row + "\n")
    };
    (0..count).map(piece).collect()
}

/// The same as Parquet: columns of doubles, or of texts where `texts`.
fn parquet(csv: &str, texts: bool) -> Vec<u8> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let kind = if texts {
        ("binary", " (UTF8)")
    } else {
        ("double", "")
    };
    let fields = names
        .iter()
        .map(|n| format!("required {} {n}{};", kind.0, kind.1));
    let schema = format!("message t {{ {} }}", fields.collect::<String>());
    let schema = parse_message_type(&schema).unwrap().into();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for j in 0..names.len() {
        let mut column = group.next_column().unwrap().unwrap();
        let cells = rows.iter().map(|row| row[j]);
        let written = if texts {
            let cells: Vec<ByteArray> = cells.map(ByteArray::from).collect();
            column
                .typed::<ByteArrayType>()
                .write_batch(&cells, None, None)
        } else {
            let cells: Vec<f64> = cells.map(|cell| cell.parse().unwrap()).collect();
            column.typed::<DoubleType>().write_batch(&cells, None, None)
        };
        written.unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// The bits of all features and labels as they are loaded.
fn rows(place: &Place) -> (Vec<u32>, Vec<bool>) {
    let plan = Plan::read(&place.path("run.toml")).unwrap();
    let data = plan.load_data().unwrap_or_else(|e| panic!("{e}"));
    let public = data.as_public();
    let bits = public.rows().iter().map(|v| v.to_bits()).collect();
    (bits, public.labels())
}

/// The bits of the draws of a run with a seed.
fn draws(place: &Place) -> Vec<u64> {
    let arguments = "--not-private --algorithm mh --chains 1 --seed 7 --quiet --out out";
    place.works(&format!("sample run.toml {arguments}"));
    let draws = place.draws("out").rows;
    let draws: Vec<u64> = draws
        .iter()
        .flat_map(|d| &d.2)
        .map(|v| v.to_bits())
        .collect();
    assert!(draws.len() == 900 && draws[..3] != draws[897..], "it moves");
    draws
}

#[test]
fn a_table_in_pieces_is_the_table() {
    let run = edit(RUN, "step = 0.0001", "step = 0.1");
    let text = table(500);
    let whole = place(&run, "people.csv");
    let (of_rows, of_draws) = (rows(&whole), draws(&whole));
    for count in [1, 3, 7] {
        for (file, ending) in [
            ("visits", "csv"),
            ("visits/", "csv"),
            ("visits/*.csv", "csv"),
            ("vis[ij]ts/part-?.csv.gz", "csv.gz"),
            ("visits/**/*.parquet", "parquet"),
            ("visits", "parquet"),
        ] {
            let place = place(&run, file);
            for (k, piece) in pieces(&text, count).iter().enumerate() {
                let bytes = match ending {
                    "parquet" => parquet(piece, false),
                    "csv.gz" => gzip(piece.as_bytes()),
                    _ => piece.clone().into_bytes(),
                };
                write(&place, &format!("visits/part-{k}.{ending}"), bytes);
            }
            // What programs leave beside the files that they write.
            write(&place, "visits/_SUCCESS", CELL);
            write(&place, "visits/.part-0.csv.crc", CELL);
            assert_eq!(rows(&place), of_rows, "{file} in {count}");
            assert_eq!(draws(&place), of_draws, "{file} in {count}");
        }
    }
}

/// Files stand in the order of their names, and sums do not know it.
#[test]
fn the_order_of_files_has_no_say() {
    let run = edit(RUN, "step = 0.0001", "step = 0.1");
    let whole = place(&run, "people.csv");
    let turned = place(&run, "visits");
    for (k, piece) in pieces(&table(500), 5).iter().enumerate() {
        write(&turned, &format!("visits/part-{}.csv", 9 - k), piece);
    }
    assert_ne!(rows(&turned), rows(&whole));
    assert_eq!(draws(&turned), draws(&whole));
}

/// Columns in another order in each file, and another text format in each, are the same rows.
#[test]
fn each_file_has_its_own_header() {
    let place = place(RUN, "visits");
    write(&place, "visits/1.csv", "a,b,y\n0.25,0.5,1\n");
    write(&place, "visits/2.tsv", "y\tnote\tb\ta\n0\tx\t0.75\t-1\n");
    write(&place, "visits/3.csv.gz", gzip(b"b,a,y\n1,0,1"));
    let floats = rows(&place).0.into_iter().map(f32::from_bits);
    let floats: Vec<f32> = floats.map(|v| (v * 1e4).round() / 1e4).collect();
    assert_eq!(floats, [1.0, 0.25, 0.5, 1.0, -1.0, 0.75, 1.0, 0.0, 1.0]);
}

const HIVE: &str = "columns = [\"a\", \"b\"]\nscale = [-1, 1]\n[[data.features]]\ncolumn = \"region\"\none_hot = [\"north\", \"a/b c\", \"\"]\n[[data.features]]\ncolumn = \"year\"\nclamp = [2000, 2100]";

/// Folders' names are columns: texts, numbers, missing ones, with escapes. They go before a column
/// of the file.
#[test]
fn folders_give_columns() {
    let run = edit(RUN, "columns = [\"a\", \"b\"]\nscale = [-1, 1]", HIVE);
    let text = table(400);
    let folders = [
        ("region=__HIVE_DEFAULT_PARTITION__/year=2020", ",2020"),
        ("region=a%2Fb c/year=2021", "a/b c,2021"),
        ("region=north/year=2020", "north,2020"),
        ("region=north/year=2031", "north,2031"),
    ];
    let mut whole = String::from("a,b,y,region,year\n");
    let pieces = pieces(&text, folders.len());
    for (piece, (_, cells)) in pieces.iter().zip(folders) {
        for row in piece.lines().skip(1) {
            whole += &format!("{row},{cells}\n");
        }
    }
    let one = place(&run, "people.csv");
    one.write("people.csv", &whole);
    let expected = rows(&one);
    assert_eq!(expected.1.len(), 400);
    for (file, ending) in [
        ("visits", "csv"),
        ("visits/", "parquet"),
        ("visits/region=*/year=*/*.csv", "csv"),
        ("visits/region=*", "parquet"),
        ("visits/**/*.parquet", "parquet"),
    ] {
        let many = place(&run, file);
        for (piece, (folder, _)) in pieces.iter().zip(folders) {
            // The folder's value counts, not that of a column of the same name.
            let piece = piece.replace('\n', ",1900\n").replace("y,1900", "y,year");
            let bytes = match ending {
                "parquet" => parquet(&piece, false),
                _ => piece.into_bytes(),
            };
            write(&many, &format!("visits/{folder}/part-0.{ending}"), bytes);
        }
        assert_eq!(rows(&many), expected, "{file}");
        let year = edit(&run, "column = \"region\"", "column = \"town\"");
        many.write(
            "run.toml",
            &edit(&year, "file = \"people.csv\"", "file = 'visits'"),
        );
        let said = many.refuses("check run.toml");
        assert!(said.contains("is called 'town'"), "{said}");
    }
    // Below the part that is written out there is no such column.
    let part = place(&run, "visits/region=north/*/*.csv");
    write(
        &part,
        "visits/region=north/year=2020/part-0.csv",
        "a,b,y\n0,0,1\n",
    );
    let said = part.refuses("check run.toml");
    assert!(said.contains("is called 'region'"), "{said}");
}

/// A row whose line does not split keeps what its folder says of it.
#[test]
fn a_bad_line_is_a_row_of_its_folder() {
    let run = edit(RUN, "[data]", "[data]\nbad_cells = \"missing\"");
    let run = edit(
        &run,
        "column = \"y\"",
        "column = \"y\"\nclamp = [0, 1]\nmissing = 1",
    );
    let run = edit(
        &run,
        "kind = \"logistic\"",
        "kind = \"linear\"\nvariance = 1",
    );
    let features = "columns = [\"a\", \"b\"]\nscale = [-1, 1]";
    let run = edit(
        &run,
        features,
        &edit(HIVE, "scale = [-1, 1]", "scale = [-1, 1]\nmissing = 0"),
    );
    let run = edit(&run, "[2000, 2100]", "[2000, 2100]\nmissing = 2000");
    let run = edit(
        &run,
        "[data]",
        "[data]\nstorage = \"f32\"\nrow_norm = 3000.0",
    );
    let place = place(&run, "visits");
    write(
        &place,
        "visits/region=north/year=2020/1.csv",
        "a,b,y\n0,0,1,9,9\n0,0,0\n",
    );
    let plan = Plan::read(&place.path("run.toml")).unwrap();
    let data = plan.load_data().unwrap_or_else(|e| panic!("{e}"));
    let both = data.as_public().rows();
    let row = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2020.0];
    assert_eq!(both, [row, row].concat());
}

/// The files of a case, as names and texts, and what must be said of them.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

const GOOD: &str = "a,b,y\n0,0,1\n0,0,0\n";

#[test]
fn what_is_wrong_names_the_file() {
    let cases: [Case<'_>; 18] = [
        ("visits/*.csv", &[], &["visits/*.csv", "no file matches"]),
        (
            "visits/*.csv",
            &[("visits/a.txt", GOOD)],
            &["no file matches"],
        ),
        ("visits/", &[], &["visits/", "no such folder"]),
        ("visits/[a", &[("visits/a.csv", GOOD)], &["is no pattern"]),
        ("visits", &[("visits/_SUCCESS", "")], &["holds no files"]),
        (
            "visits",
            &[("visits/a.csv", GOOD), ("visits/b.parquet", "")],
            &["visits: ", "of several kinds"],
        ),
        (
            "visits",
            &[("visits/a.csv", GOOD), ("visits/b.orc", "")],
            &["b.orc", "unknown kind"],
        ),
        (
            "visits",
            &[("visits/a.csv", GOOD), ("visits/old/a.csv", GOOD)],
            &["visits/old: ", "not called column=value"],
        ),
        (
            "visits",
            &[("visits/a.csv", GOOD), ("visits/a.csv.gz", "")],
            &["a.csv and ", "a.csv.gz", "count twice"],
        ),
        (
            "visits/*.csv",
            &[
                ("visits/a.csv", GOOD),
                ("visits/b.csv", "a,c,y\n0,s3cret,0\n"),
            ],
            &["visits/b.csv: ", "is called 'b'"],
        ),
        (
            "visits",
            &[
                ("visits/a.csv", GOOD),
                ("visits/b.csv", "a,b,y\n0,0,0\n0,s3cret,0\n"),
            ],
            &["visits/b.csv, line 3, column 'b'"],
        ),
        (
            "visits",
            &[("visits/a.csv", GOOD), ("visits/b.csv", "")],
            &["visits/b.csv: is empty"],
        ),
        (
            "visits",
            &[
                ("visits/a.csv", "a,b,y\n"),
                ("visits/b.csv", "a,b,y\n0,0,1"),
            ],
            &["the table has 1 row(s)"],
        ),
        (
            "visits",
            &[("visits/a.csv", GOOD), ("visits/b.csv", "a,b,y\n0,0\n")],
            &["visits/b.csv, line 2", "as many cells"],
        ),
        // Cells in the names of folders.
        (
            "visits",
            &[
                ("visits/ill=no/a.csv", GOOD),
                ("visits/ill=s3cret/a.csv", "a,b,y\n0,0,0\nx,0,0\n"),
            ],
            &["visits/ill=…/a.csv (file 2 by name), line 3, column 'a'"],
        ),
        (
            "visits/*/*",
            &[
                ("visits/ill=s3cret/a.csv", GOOD),
                ("visits/ill=s3cret/a.tsv", GOOD),
            ],
            &["visits/ill=…/a.csv (file 1 by name) and ", "endings alone"],
        ),
        (
            "visits",
            &[("visits/ill=s3cret/old/a.csv", GOOD)],
            &["visits/ill=…/old: ", "not called column=value"],
        ),
        (
            "visits",
            &[("visits/ill=s3cret/ill=s3cret2/a.csv", GOOD)],
            &["visits/ill=…/ill=…: ", "two folders give the column 'ill'"],
        ),
    ];
    for (file, files, words) in cases {
        let place = place(RUN, file);
        for (name, text) in files {
            write(&place, name, text);
        }
        assert_said(&place, words);
    }
}

/// Every command that reads the table refuses it, by these words and without a cell.
fn assert_said(place: &Place, words: &[&str]) {
    for command in ["check run.toml", "sample run.toml --out out"] {
        let said = place.refuses(command);
        assert!(words.iter().all(|w| said.contains(w)), "{words:?}: {said}");
        assert!(!said.contains(CELL) && !said.contains("panicked"), "{said}");
        assert!(!place.path("out").exists());
    }
}

#[test]
fn a_parquet_file_of_other_columns_or_types_is_named() {
    let place = place(RUN, "visits");
    write(&place, "visits/1.parquet", parquet(GOOD, false));
    // Texts that are numbers are read as such.
    write(&place, "visits/2.parquet", parquet(GOOD, true));
    assert_eq!(rows(&place).1, [true, false, true, false]);
    let text = GOOD.replace("0,0,0", "0,s3cret,0");
    write(&place, "visits/2.parquet", parquet(&text, true));
    assert_said(&place, &["visits/2.parquet, line 2, column 'b'"]);
    write(&place, "visits/2.parquet", parquet("a,c,y\n0,0,1\n", false));
    assert_said(&place, &["visits/2.parquet: ", "is called 'b'"]);
    write(&place, "visits/2.parquet", &parquet(GOOD, false)[..90]);
    assert_said(
        &place,
        &["visits/2.parquet: ", "not a readable Parquet file"],
    );
}

#[cfg(unix)]
#[test]
fn links_that_lead_nowhere_or_back_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    let cases: [(&str, &str, &[&str]); 6] = [
        (
            "gone.csv",
            "visits/b.csv",
            &["visits/b.csv: ", "leads nowhere"],
        ),
        (
            "a.csv",
            "visits/b.csv",
            &["a.csv and ", "b.csv are one file"],
        ),
        (
            ".",
            "visits/ill=s3cret",
            &["visits/ill=…: ", "a folder that it lies in"],
        ),
        (
            "ill=s3cret",
            "visits/ill=s3cret",
            &["visits/ill=…: ", "cannot be looked at"],
        ),
        (
            "gone",
            "visits/ill=s3cret",
            &["visits/ill=…: ", "leads nowhere"],
        ),
        (
            "/dev/null",
            "visits/b.csv",
            &["visits/b.csv: ", "neither a file nor a folder"],
        ),
    ];
    for (to, name, words) in cases {
        let place = place(RUN, "visits");
        write(&place, "visits/a.csv", GOOD);
        symlink(to, place.path(name)).unwrap();
        assert_said(&place, words);
        if to != "a.csv" && to != "/dev/null" && !name.ends_with(".csv") {
            place.write(
                "run.toml",
                &edit(
                    RUN,
                    "file = \"people.csv\"",
                    "name = 'v'\nfile = 'visits/**'",
                ),
            );
            assert_said(&place, words);
        }
    }
    let place = place(RUN, "visits");
    let folder = place.path("visits");
    let name = std::ffi::OsStr::from_bytes(b"ill=s3cret\xff");
    std::fs::create_dir_all(folder.join(name)).unwrap();
    std::fs::write(folder.join(name).join("a.csv"), GOOD).unwrap();
    assert_said(&place, &["visits/ill=…: ", "not valid UTF-8"]);
}

/// Where permissions hold: whoever is root may read every folder.
#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_read_is_named() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let place = place(RUN, "visits");
    write(&place, "visits/a.csv", GOOD);
    write(&place, "visits/ill=s3cret/a.csv", GOOD);
    let folder = place.path("visits/ill=s3cret");
    set_permissions(&folder, Permissions::from_mode(0o000)).unwrap();
    if folder.read_dir().is_err() {
        assert_said(&place, &["visits/ill=…: the folder cannot be read: "]);
    }
    set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
}

/// By the library, in between whose two steps a file can go.
#[test]
fn a_file_that_vanishes_is_named() {
    for (file, bytes) in [
        ("1.csv", GOOD.as_bytes().to_vec()),
        ("1.parquet", parquet(GOOD, false)),
    ] {
        let place = place(RUN, "visits");
        write(&place, &format!("visits/ill=s3cret/{file}"), bytes);
        let parts = table_files(&place.path("visits")).unwrap();
        let source = dpmc::data::Source {
            path: place.path("visits"),
            label_file: None,
            features: vec![dpmc::data::Feature {
                column: Some("a".into()),
                kind: dpmc::data::FeatureKind::scale(-1.0, 1.0),
                missing: None,
            }],
            interactions: Vec::new(),
            offset: None,
            label: None,
            row_norm: None,
            weights: None,
            bounds: None,
            unit: None,
            text: Default::default(),
            bad_cells: Default::default(),
            storage: Default::default(),
            room: Default::default(),
        };
        assert_eq!(dpmc::data::load_parts(&source, &parts).unwrap().rows(), 2);
        std::fs::remove_dir_all(place.path("visits/ill=s3cret")).unwrap();
        let said = dpmc::data::load_parts(&source, &parts)
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("(file 1 by name): was there when files were listed"),
            "{said}"
        );
        assert!(!said.contains(CELL), "{said}");
    }
}

/// Ledgers know a folder by its name; a pattern needs one.
#[test]
fn a_pattern_needs_a_name() {
    let place = Place::new(&edit(RUN, "people.csv", "visits/*.csv"));
    write(&place, "visits/a.csv", table(500));
    for command in ["check run.toml", "check run.toml --data people.csv"] {
        let said = place.refuses(command);
        assert!(said.contains("run.toml, line 1: data.name: "), "{said}");
    }
    place.write("run.toml", &edit(RUN, "people.csv", "visits/"));
    place.works("sample run.toml --out out --quiet");
    assert_eq!(place.ledger("out/ledger.json")["dataset"], "visits");
    let resolved = std::fs::read_to_string(place.path("out/run.toml")).unwrap();
    assert!(resolved.contains("name = \"visits\""), "{resolved}");
    place.works("sample --resume out --iterations 320 --quiet");
}

/// In a folder whose name has the characters of a pattern, a run goes on from its resolved file.
#[test]
fn names_that_are_there_are_taken_as_written() {
    let run = edit(
        RUN,
        "file = \"people.csv\"",
        "name = \"v\"\nfile = '[x]*/visit[1].csv'",
    );
    let place = Place::new(&run);
    write(&place, "[x]*/visit[1].csv", table(500));
    write(&place, "x/visit1.csv", "a,b,y\n");
    assert_eq!(rows(&place).1.len(), 500);
    let deep = edit(
        RUN,
        "file = \"people.csv\"",
        "name = \"v\"\nfile = 'v*.csv'",
    );
    write(&place, "[x]*/run.toml", &deep);
    place.works("sample [x]*/run.toml --out out --quiet");
    place.works("sample --resume out --iterations 320 --quiet");
}

/// A test table may be many files, but none of those that are protected; and `init` reads the
/// header of the first file.
#[test]
fn test_tables_and_init_know_folders() {
    let run = edit(
        RUN,
        "[model]",
        "[test]\nfile = 'held/*.csv'\npublic = true\n[model]",
    );
    let place = place(&run, "visits");
    for (k, piece) in pieces(&table(500), 3).iter().enumerate() {
        write(&place, &format!("visits/year=202{k}/part.csv"), piece);
        write(&place, &format!("held/{k}.csv"), piece);
    }
    place.works("sample run.toml --out out --quiet");
    let said = place.works("summary out");
    assert!(said.contains("test"), "{said}");
    for test in ["visits/year=2021/part.csv", "visits/*1/*", "visits"] {
        let text = edit(&run, "held/*.csv", test);
        place.write("run.toml", &edit(&text, "people.csv", "visits"));
        let said = place.refuses("check run.toml");
        assert!(said.contains("test.file: is the file of [data]"), "{said}");
    }
    let made = place.works("init visits");
    assert!(made.contains("name = \"visits\"\nfile = "), "{made}");
    assert!(
        made.contains("\nyear = { scale") && made.contains("formula = \"y ~ .\""),
        "{made}"
    );
    let made = place.works("init visits/year=2020/*.csv");
    assert!(
        !made.contains("\nyear = ") && made.contains("\nb = { scale"),
        "{made}"
    );
}

/// Bounds of rows in a file of their own would follow the folders, which are cells.
#[test]
fn bounds_by_place_are_not_for_folders_that_are_cells() {
    let bounds = "[data.bounds]\nfile = \"w.npy\"\npublic = true\n[[data.features]]\nintercept";
    let run = edit(RUN, "[[data.features]]\nintercept", bounds);
    let place = place(&run, "visits");
    write(&place, "w.npy", npy("(2,)", 2));
    write(&place, "visits/a.csv", GOOD);
    assert_eq!(rows(&place).1.len(), 2);
    std::fs::create_dir(place.path("visits/ill=s3cret")).unwrap();
    std::fs::rename(
        place.path("visits/a.csv"),
        place.path("visits/ill=s3cret/a.csv"),
    )
    .unwrap();
    assert_said(&place, &["data.bounds.file", "follow cells"]);
}

/// NPY arrays in pieces: their rows follow one another.
#[test]
fn arrays_are_read_in_pieces() {
    let run = edit(RUN, "\"a\", \"b\"", "\"x0\", \"x1\"");
    let run = edit(
        &run,
        "[data.label]\ncolumn = \"y\"\n",
        "label_file = \"l.npy\"\n",
    );
    let place = place(&run, "visits");
    write(&place, "visits/1.npy", npy("(2, 2)", 4));
    write(&place, "visits/2.npy", npy("(1, 2)", 2));
    write(&place, "l.npy", npy("(3,)", 3));
    assert_said(&place, &["l.npy, line 1"]);
    let labels: Vec<f64> = vec![1.0, 0.0, 1.0];
    let mut bytes = npy("(3,)", 0);
    bytes.extend(labels.iter().flat_map(|v| v.to_le_bytes()));
    write(&place, "l.npy", bytes);
    assert_eq!(rows(&place).1, [true, false, true]);
}

#[cfg(unix)]
fn odd_name() -> impl Strategy<Value = std::ffi::OsString> {
    use std::os::unix::ffi::OsStringExt;
    let bytes = prop_oneof![
        "[a=%*?\\[\\]._ 2F-]{1,8}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 1..8),
    ];
    bytes.prop_map(|mut bytes| {
        bytes.retain(|b| *b != 0 && *b != b'/');
        let is_dots = bytes.iter().all(|b| *b == b'.');
        std::ffi::OsString::from_vec(if is_dots { b"x".to_vec() } else { bytes })
    })
}

#[cfg(unix)]
proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    /// Whatever files are called, and whatever the pattern: an answer or an error, and the answer
    /// names files that are there, each once, in order. A folder of files of odd names is listed
    /// whole, and no error shows what stands behind a `=`.
    #[test]
    fn listing_never_panics(
        names in proptest::collection::vec((odd_name(), odd_name()), 1..5),
        pattern in proptest::collection::vec("(\\*\\*|[a=*?\\[\\]!._-]{1,6}|\\.\\.)", 0..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("t");
        let mut visible = 0;
        for (k, (dir, file)) in names.iter().enumerate() {
            let mut key = std::ffi::OsString::from(format!("k{k}={CELL}"));
            key.push(dir);
            let inside = base.join(key);
            std::fs::create_dir_all(&inside).unwrap();
            std::fs::write(inside.join(file), "").unwrap();
            let name = file.as_encoded_bytes();
            let hidden = name[0] == b'.' || name[0] == b'_' && !name.contains(&b'=');
            visible += usize::from(!hidden);
        }
        let check = |path: &Path| -> Result<Option<usize>, TestCaseError> {
            match table_files(path) {
                Ok(parts) => {
                    for pair in parts.windows(2) {
                        prop_assert!(pair[0].path < pair[1].path);
                    }
                    for part in &parts {
                        prop_assert!(part.path.is_file());
                        prop_assert!(!part.shown.to_string_lossy().contains(CELL));
                    }
                    Ok(Some(parts.len()))
                }
                Err(e) => {
                    prop_assert!(!e.to_string().contains(CELL), "{}", e);
                    Ok(None)
                }
            }
        };
        if let Some(count) = check(&base)? {
            prop_assert_eq!(count, visible);
        }
        check(&base.join(pattern.join("/")))?;
    }
}
