//! Which build of the program this is.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

/// Its version and, where its file can be read, the digest of that.
pub(crate) fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let file = std::env::current_exe().and_then(std::fs::read);
        let digest = file.map(|bytes| sha256(&bytes)).unwrap_or_default();
        format!("{} {digest}", env!("CARGO_PKG_VERSION"))
    })
}

/// The first 64 bits of a digest, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
}
