//! `storage` in `[data]`: 16 bits a feature unless floats are asked for; the same posterior.

use crate::common::place::{Place, RUN, edit, number, table};

const MH: &str = "--not-private --algorithm mh --chains 1 --seed 7 --quiet";

/// A place whose run file keeps floats in `floats.toml` and 16 bits in `run.toml`.
fn place(run: &str, rows: &str) -> Place {
    let place = Place::new(run);
    place.write("people.csv", rows);
    let floats = edit(run, "[data]", "[data]\nstorage = \"f32\"");
    place.write("floats.toml", &floats);
    place
}

fn sample(place: &Place, file: &str, out: &str) -> Vec<Vec<f64>> {
    place.works(&format!("sample {file} {MH} --out {out}"));
    let draws = place.draws(out).rows;
    draws.into_iter().map(|(_, _, theta)| theta).collect()
}

#[test]
fn rows_take_half_the_memory() {
    let place = place(RUN, &table(500));
    let bytes = |file: &str| {
        let report: serde_json::Value =
            serde_json::from_str(&place.works(&format!("check {file} --json"))).unwrap();
        number(&report["memory"], "rows_bytes")
    };
    // Three features and a label, in whole tiles of 16 rows.
    assert_eq!(bytes("run.toml"), 512.0 * (2.0 * 3.0 + 4.0));
    assert_eq!(bytes("floats.toml"), 512.0 * (4.0 * 3.0 + 4.0));
}

/// Cells that the grid holds are the same rows by either storage, and give the same draws.
#[test]
fn what_the_grid_holds_gives_the_same_draws() {
    let run = edit(
        RUN,
        "columns = [\"a\", \"b\"]\nscale = [-1, 1]",
        "column = \"a\"\nclamp = [0, 9]",
    );
    let run = edit(
        &run,
        "[model]",
        "[[data.features]]\ncolumn = \"b\"\nscale = [0, 2]\n[model]",
    );
    let run = edit(
        &run,
        "[model]",
        "[[data.features]]\ncolumn = \"c\"\none_hot = [\"x\", \"z\"]\n[model]",
    );
    let run = run.replace("columns = [\"b\"]", "column = \"b\"");
    let mut rows = String::from("a,b,c,y\n");
    for i in 0..400u32 {
        let (a, b, c) = (
            i * 37 % 10,
            i * 53 % 3,
            ["x", "z", "w"][(i * 11 % 3) as usize],
        );
        rows += &format!("{a},{b},{c},{}\n", u32::from((i * 71) % 10 < a));
    }
    let place = place(&run, &rows);
    let integers = sample(&place, "run.toml", "integers");
    assert!(
        integers.windows(2).any(|pair| pair[0] != pair[1]),
        "it moves"
    );
    assert_eq!(integers, sample(&place, "floats.toml", "floats"));
}

/// The resolved run file says how rows are kept, and a run that goes on keeps them so.
#[test]
fn a_resumed_run_keeps_its_storage() {
    let place = place(RUN, &table(500));
    for (file, storage) in [("run.toml", "i16"), ("floats.toml", "f32")] {
        sample(&place, file, storage);
        for end in ["300", "400"] {
            place.works(&format!(
                "sample --resume {storage} --iterations {end} --quiet"
            ));
            let resolved = place.path(&format!("{storage}/run.toml"));
            let resolved = std::fs::read_to_string(resolved).unwrap();
            let line = format!("storage = \"{storage}\"");
            assert!(resolved.contains(&line), "{resolved}");
        }
    }
}

/// Rounding moves a posterior by far less than its own width. Where bounds are declared so wide
/// that cells are rounded to whole numbers it does, and floats keep the cells.
#[test]
fn other_cells_are_rounded() {
    let run = edit(RUN, "iterations = 300", "iterations = 2000");
    let run = edit(&run, "step = 0.0001", "step = 0.3");
    let both = |run: &str| {
        let place = place(run, &table(500));
        ["run.toml", "floats.toml"].map(|file| {
            let draws = sample(&place, file, &file.replace(".toml", ""));
            [0, 1, 2].map(|j| draws.iter().map(|d| d[j]).sum::<f64>() / draws.len() as f64)
        })
    };
    let gap = |run: &str| {
        let [integers, floats] = both(run);
        let gaps = integers.iter().zip(floats).map(|(a, b)| (a - b).abs());
        gaps.fold(0.0, f64::max)
    };
    assert!(gap(&run) < 0.05);
    let wide = edit(&run, "scale = [-1, 1]", "clamp = [-30000, 30000]");
    assert!(gap(&wide) > 0.15);
}
