#![no_main]
//! No text of a run file makes its checks panic, and what a run would write can be read again.

use std::path::Path;

use dpmc::config::Plan;

libfuzzer_sys::fuzz_target!(|text: String| {
    if let Ok(plan) = Plan::parse(Path::new("run.toml"), text) {
        let _ = plan.check_declarations();
        let _ = (plan.notes_on_features(), plan.formula_terms());
        if let Ok(resolved) = plan.resolved() {
            assert!(Plan::parse(Path::new("run.toml"), resolved).is_ok());
        }
    }
});
