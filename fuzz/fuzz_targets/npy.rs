#![no_main]
//! No bytes behind an NPY magic number make a reader panic.

mod table;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = table::load("t.npy", &[b"\x93NUMPY\x01\x00", bytes].concat(), "");
    let _ = table::load("t.npy", bytes, "bad_cells = \"missing\"");
});
