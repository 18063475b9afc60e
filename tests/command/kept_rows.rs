//! Rows that take more memory than they may: the same draws from files, which their owner alone may
//! read, which are known by what they were made of, and which are gone when they are not wanted.

use std::path::PathBuf;

use crate::common::place::{Place, RUN, table};

const MH: &str = "--not-private --algorithm mh --chains 1 --seed 7 --quiet";

fn sample(place: &Place, flags: &str, out: &str) -> Vec<Vec<f64>> {
    place.works(&format!("sample run.toml {MH} {flags} --out {out}"));
    let draws = place.draws(out).rows;
    draws.into_iter().map(|(_, _, theta)| theta).collect()
}

fn kept(place: &Place, folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
}

fn rows() -> String {
    table(70_001)
}

#[test]
fn rows_in_files_give_the_same_draws() {
    let place = Place::new(RUN);
    place.write("people.csv", &rows());
    let before = kept(&place, ".").len();
    let memory = sample(&place, "", "memory");
    // Files without a name: nothing is left beside the table.
    assert!(sample(&place, "--memory 64K", "unnamed") == memory);
    assert_eq!(kept(&place, ".").len(), before + 2);
    let cache = "--memory 64K --cache kept";
    assert!(sample(&place, cache, "named") == memory);
    let files = kept(&place, "kept");
    assert_eq!(files.len(), 3, "{files:?}");
    let said = place.works("check run.toml --memory 64K");
    assert!(said.contains("they lie on disk"), "{said}");
    assert!(!place.works("check run.toml").contains("on disk"));
    // Rows that fit are not written anywhere.
    assert!(sample(&place, "--memory 1G --cache other", "fits") == memory);
    assert!(!place.path("other").exists());

    #[cfg(unix)]
    for file in files.iter().chain([&place.path("kept")]) {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", file.display());
    }
    // The next run reads them: the table's own text could not be read any more.
    let times = |files: &[PathBuf]| -> Vec<_> {
        let time = |f: &PathBuf| f.metadata().unwrap().modified().unwrap();
        files.iter().map(time).collect()
    };
    let (made, stamp) = (times(&files), place.path("people.csv").metadata().unwrap());
    let other = "#".repeat(stamp.len() as usize);
    place.write("people.csv", &other);
    let table = std::fs::File::options()
        .append(true)
        .open(place.path("people.csv"));
    table
        .unwrap()
        .set_modified(stamp.modified().unwrap())
        .unwrap();
    assert!(sample(&place, cache, "again") == memory);
    assert_eq!(times(&kept(&place, "kept")), made);

    let said = place.works("forget kept");
    assert!(said.starts_with("deleted 3 files"), "{said}");
    assert!(kept(&place, "kept").is_empty());
}

/// Weights lie beside labels, in a file of their own.
#[test]
fn weights_in_files_give_the_same_draws() {
    let weights = "[data.weights]\ncolumn = \"a\"\nmost = 1\n[model]";
    let place = Place::new(&RUN.replace("[model]", weights));
    place.write(
        "people.csv",
        &rows().replace(",-", ",").replace("\n-", "\n"),
    );
    let memory = sample(&place, "", "memory");
    assert!(sample(&place, "--memory 64K", "unnamed") == memory);
    for out in ["first", "again"] {
        assert!(sample(&place, "--memory 64K --cache kept", out) == memory);
        assert_eq!(kept(&place, "kept").len(), 4);
    }
    assert!(place.works("forget kept").starts_with("deleted 4 files"));
}

/// Files of uneven lengths, one after the other, end amid tiles: what is written of a tile is whole.
#[test]
fn tables_of_many_files_and_both_storages_give_the_same_draws() {
    for storage in ["i16", "f32"] {
        let keys = format!("[data]\nname = \"many\"\nstorage = \"{storage}\"\n");
        let run = RUN.replace("[data]\n", &keys);
        let place = Place::new(&run.replace("people.csv", "many/*.csv"));
        std::fs::create_dir(place.path("many")).unwrap();
        let (all, mut first) = (table(9_000), 1);
        for (k, rows) in [1_003, 17, 0, 1, 4_001, 250, 3_728].into_iter().enumerate() {
            let lines = all.lines().skip(first).take(rows);
            let text = lines.fold("a,b,y\n".to_string(), |text, line| text + line + "\n");
            place.write(&format!("many/{k}.csv"), &text);
            first += rows;
        }
        let memory = sample(&place, "", "memory");
        let cache = "--memory 16K --cache kept";
        assert!(
            sample(&place, "--memory 16K", "unnamed") == memory,
            "{storage}"
        );
        assert!(sample(&place, cache, "named") == memory, "{storage}");
        assert!(sample(&place, cache, "again") == memory, "{storage}");
        assert_eq!(kept(&place, "kept").len(), 3);
        let said = place.refuses(&format!(
            "sample run.toml {MH} --memory 16K --cache run.toml/x"
        ));
        assert!(
            said.contains("run.toml/x: rows cannot be kept there"),
            "{said}"
        );
    }
}

/// Listed rows are read in the order of the file, and answered for in the list's.
#[test]
fn listed_rows_in_files_give_the_same_draws() {
    let place = Place::new(RUN);
    place.write("people.csv", &rows());
    // An anchor scales moves itself. Its decisions weigh listed rows, on disk one by one.
    let anchored = RUN.replace("step = 0.0001\n", "");
    place.write("run.toml", &anchored);
    for sampler in ["tuna-mh", "sgld", "anchored-barker"] {
        let run = |flags: &str, out: &str| {
            let own = format!("{flags} --algorithm {sampler} --out {out}-{sampler}");
            place.works(&format!(
                "sample run.toml --not-private --seed 7 --chains 2 --quiet {own}"
            ));
            place.draws(&format!("{out}-{sampler}")).rows
        };
        assert!(
            run("", "memory") == run("--memory 64K", "file"),
            "{sampler}"
        );
    }
}

#[test]
fn files_of_another_table_are_not_used() {
    let place = Place::new(RUN);
    place.write("people.csv", &rows());
    let cache = "--memory 64K --cache kept";
    let first = sample(&place, cache, "first");
    // As many bytes, at another time.
    let changed = rows().replacen(",1\n", ",0\n", 9_000);
    place.write("people.csv", &changed);
    let other = sample(&place, cache, "other");
    assert!(other != first);
    assert!(sample(&place, "", "other-memory") == other);
    // They took the place of the first ones, which nobody would read again.
    assert_eq!(kept(&place, "kept").len(), 3);
    // Other declarations have files of their own.
    let declared = RUN.replace("scale = [-1, 1]", "scale = [-1, 2]");
    place.write("run.toml", &declared);
    assert!(sample(&place, cache, "declared") != other);
    assert_eq!(kept(&place, "kept").len(), 6);
    // A file that is not whole counts for nothing.
    let labels = kept(&place, "kept").into_iter();
    for labels in labels.filter(|f| f.extension().unwrap() == "dpmc-labels") {
        let file = std::fs::File::options().write(true).open(labels).unwrap();
        file.set_len(1_000).unwrap();
    }
    place.write("run.toml", RUN);
    assert!(sample(&place, cache, "torn") == other);
    // What was left of it is gone.
    assert_eq!(kept(&place, "kept").len(), 6);
}

/// Who may list the folder learns nothing of the table: the same one is kept under other names, and
/// the file that says what it is is of whole blocks.
#[test]
fn names_and_sizes_of_kept_files_follow_no_cell() {
    let place = Place::new(RUN);
    place.write("people.csv", &rows());
    sample(&place, "--memory 64K --cache one", "first");
    sample(&place, "--memory 64K --cache two", "second");
    let names = |folder: &str| -> Vec<_> {
        let files = kept(&place, folder).into_iter();
        files.map(|f| f.file_name().unwrap().to_owned()).collect()
    };
    let shared = |name: &std::ffi::OsString| names("two").contains(name);
    let (about, of_rows): (Vec<_>, Vec<_>) = names("one")
        .into_iter()
        .partition(|name| name.to_string_lossy().ends_with(".dpmc-table"));
    assert!(about.iter().all(shared) && !of_rows.iter().any(shared));
    assert_eq!((about.len(), of_rows.len()), (1, 2));
    let bytes = std::fs::metadata(place.path("one").join(&about[0]));
    assert_eq!(bytes.unwrap().len() % (1 << 16), 0);
}

#[test]
fn what_cannot_be_kept_is_said() {
    let place = Place::new(RUN);
    place.write("people.csv", &rows());
    place.write("file", "");
    let said = place.refuses(&format!(
        "sample run.toml {MH} --memory 64K --cache file/kept"
    ));
    assert!(
        said.contains("file/kept: rows cannot be kept there"),
        "{said}"
    );
    let said = place.refuses(&format!("sample run.toml {MH} --memory lots"));
    assert!(said.contains("8G or 500M"), "{said}");
    // What must be sorted or searched stays in memory.
    let unit = RUN.replacen("[data]", "[data]\nunit = \"a\"\nrows_per_unit = 2", 1);
    place.write("unit.toml", &unit);
    let said = place.refuses(&format!("sample unit.toml {MH} --memory 64K --cache kept"));
    assert!(
        said.contains("MiB of memory; declare fewer features, or split"),
        "{said}"
    );
    assert!(!place.path("kept").exists());
}
