//! What is wrong with a diagnostic's input.

/// An argument that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{argument}: {what}")]
pub struct DiagnosticError {
    /// Name of the argument at fault.
    pub argument: &'static str,
    /// What is wrong and what to do next.
    pub what: String,
}

/// An error at an argument.
pub(super) fn refuse<T>(
    argument: &'static str,
    what: impl Into<String>,
) -> Result<T, DiagnosticError> {
    Err(DiagnosticError {
        argument,
        what: what.into(),
    })
}
