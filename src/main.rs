//! The `dpmc` command. See `dpmc --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Mesa's device-select layer asks for a Wayland display on machines that have none, and
    // libwayland then complains on standard error that this variable is not set. Nothing can
    // be, or be made, under /dev/null: the search ends in silence, and finds nobody's socket.
    #[cfg(all(target_os = "linux", feature = "gpu"))]
    if std::env::var_os("XDG_RUNTIME_DIR").is_none_or(|v| v.is_empty()) {
        // SAFETY: no other thread exists yet that could read the environment meanwhile.
        unsafe { std::env::set_var("XDG_RUNTIME_DIR", "/dev/null") };
    }
    dpmc::cli::main()
}
