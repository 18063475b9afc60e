#![no_main]
//! No bytes behind an idx magic number make a reader panic, of images or of labels.

mod table;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for dimensions in [1, 2, 3] {
        let file = [&[0, 0, 8, dimensions], bytes].concat();
        let _ = table::load("t-idx3-ubyte", &file, "");
    }
    let _ = table::load("t.idx3-ubyte.gz", bytes, "");
});
