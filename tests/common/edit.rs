//! For tests that change one thing in a text.

/// Replaces `from` in `text`; every edit must hit.
pub fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no '{from}' to edit");
    text.replace(from, to)
}
