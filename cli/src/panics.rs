//! What a panic says, which is a defect of this program. Its own words could quote a value that
//! follows rows ("the index is …"), so the place is named and nothing else.

use std::io::Write;

/// Has panics name their place alone, on standard error.
pub fn name_the_place_alone() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        let place = place.unwrap_or_else(|| "an unknown place".into());
        // Nobody may be there to read it.
        let _ = writeln!(
            std::io::stderr(),
            "dpmc: panicked at {place}: a defect of dpmc, please report this line (what went wrong is not shown, for it could tell of a row)"
        );
    }));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// What a test that panics says in a process of its own, which has no hook but this.
    #[test]
    fn a_panic_names_its_place_and_no_value() {
        let itself = std::env::current_exe().unwrap();
        // Tests are named without their crate.
        let (_, here) = module_path!().split_once("::").unwrap();
        let output = Command::new(itself)
            .args(["--exact", &format!("{here}::one_that_panics")])
            .args(["--ignored", "--nocapture"])
            .env("RUST_BACKTRACE", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| line.starts_with("dpmc: "));
        let line = line.unwrap_or_else(|| panic!("no panic: {output:?}"));
        assert!(line.contains("cli/src/panics.rs:"), "{line}");
        let all = format!("{said}{}", String::from_utf8_lossy(&output.stdout));
        assert!(!all.contains("4711"), "{all}");
    }

    #[test]
    #[ignore = "panics, for the test above"]
    fn one_that_panics() {
        super::name_the_place_alone();
        dpmc::data::silence_damaged_files();
        let row = [0.5; 3];
        let index = std::hint::black_box(4711);
        assert!(row[index] > 0.0);
    }
}
