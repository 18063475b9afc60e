//! All that can see a row, and nothing else: what somebody reads who wants to know whether the
//! guarantee holds.
//!
//! Rows come in by [`data`], are looked at by [`engine`] on behalf of [`model`], and leave only
//! through the curator of [`privacy`], which charges the ledger before it asks. Whatever leads to
//! a row, an exact sum or a secret coin is `pub(in crate::trusted)` at most; what the rest of the
//! library needs besides the public interface is the list in the test below. Nothing in here
//! knows a sampler or a run file, but for the audit, which attacks whole runs.

pub mod data;
pub mod engine;
pub mod model;
pub mod privacy;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    /// What the rest of the library sees beyond `pub`: facts about declarations, public limits,
    /// files, and what a run does with its curator between two steps.
    const SEAM: [&str; 22] = [
        // data
        "check",
        "curve",
        "is_complete",
        "is_default",
        "is_text",
        "push",
        "reads_missing",
        "stem",
        "without_panics",
        // privacy
        "MOST_STEPS",
        "RunFacts",
        "best_order",
        "largest_batch_clip",
        "new",
        "noise_for_benchmarks",
        "settle",
        "stop_when",
        "stopped",
        "sync_folder",
        "take_up",
        "try_charge",
        "unscaled",
    ];

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => sources(&path, found),
                false => found.push(path),
            }
        }
    }

    fn trusted() -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/trusted");
        sources(&root, &mut found);
        let text = |path: PathBuf| (path.clone(), std::fs::read_to_string(path).unwrap());
        found.into_iter().map(text).collect()
    }

    #[test]
    fn what_crosses_the_boundary_is_listed() {
        let mut crossing = BTreeSet::new();
        for (_, text) in trusted() {
            let lines = text
                .lines()
                .filter_map(|l| l.trim().strip_prefix("pub(crate) "));
            for line in lines.filter(|l| !l.starts_with("use ")) {
                let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                let name = words.find(|w| !["fn", "const", "struct", "unsafe"].contains(w));
                crossing.insert(name.unwrap().to_string());
            }
        }
        assert_eq!(crossing, SEAM.map(String::from).into());
    }

    /// Tests, the accountant (checked against others' figures) and the audit are read apart.
    #[test]
    fn it_can_be_read_in_a_few_days() {
        let apart = |path: &str| {
            ["audit", "accountant", "tests.rs", "test_cases"]
                .iter()
                .any(|w| path.contains(w))
        };
        let lines = trusted()
            .into_iter()
            .filter(|(path, _)| !apart(&path.display().to_string()));
        let lines = lines.map(|(_, text)| {
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            code.lines().count()
        });
        let lines: usize = lines.sum();
        assert!(lines < 20_000, "{lines} lines");
    }

    /// The arrow runs one way. Tests may look up, and so does the audit.
    #[test]
    fn nothing_in_here_knows_who_asks() {
        let above = [
            "config",
            "diagnostics",
            "output",
            "posterior_run",
            "sampler",
            "benchmark",
        ];
        for (path, text) in trusted() {
            let name = path.display().to_string();
            if name.contains("audit")
                || name.ends_with("tests.rs")
                || name.ends_with("trusted/mod.rs")
            {
                continue;
            }
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            for line in code.lines().filter(|l| !l.trim().starts_with("//")) {
                for module in above {
                    assert!(
                        !line.contains(&format!("crate::{module}")),
                        "{name}: {line}"
                    );
                }
            }
        }
    }
}
