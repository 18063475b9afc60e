#![no_main]
//! No text makes a reader panic; behind a good header N is the number of lines, whatever they
//! hold.

mod table;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = table::load("t.csv", bytes, "");
    let _ = table::load("t.csv", bytes, "quoted_newlines = true");
    let text = [b"a,s,y\n", bytes, b"\n"].concat();
    let lines = bytes.iter().filter(|b| **b == b'\n').count() + 1;
    match table::load("t.csv", &text, "bad_cells = \"missing\"") {
        Ok(rows) => assert_eq!(rows, lines),
        Err(message) => assert!(lines < 2, "{message}"),
    }
});
