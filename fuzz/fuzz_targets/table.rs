//! Loads bytes as a table in a folder of their own.

use dpmc::config::Plan;

/// Columns a, s and y of any format; an array has its own names.
fn run_file(file: &str, settings: &str) -> String {
    let (number, text, label) = match file.ends_with(".npy") || file.contains("ubyte") {
        true => ("x0", "x1", "x2"),
        false => ("a", "s", "y"),
    };
    format!(
        r#"[data]
file = "{file}"
{settings}
[data.label]
column = "{label}"
positive = ["1"]
negative = ["0", ""]
[[data.features]]
column = "{number}"
scale = [-1, 1]
missing = 0.5
[[data.features]]
column = "{text}"
one_hot = ["x", "y"]
[model]
kind = "logistic"
[sampler]
algorithm = "mh"
[privacy]
not_private = true
"#
    )
}

/// Rows of the table, where it is one.
pub fn load(file: &str, bytes: &[u8], settings: &str) -> Result<usize, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    std::fs::write(folder.path().join(file), bytes).map_err(|e| e.to_string())?;
    let run = run_file(file, settings);
    let plan = Plan::parse(&folder.path().join("run.toml"), run).map_err(|e| e.to_string())?;
    let _ = dpmc::data::header(&folder.path().join(file), Default::default());
    let loaded = plan.load_data();
    loaded.map(|set| set.rows()).map_err(|e| e.to_string())
}
