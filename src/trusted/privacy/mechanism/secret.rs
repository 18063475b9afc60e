//! A value computed from rows that has not been paid for yet.

/// Wraps an exact answer. It can be sealed by the curator, but opened only by the
/// mechanisms of this folder; it cannot be printed, cloned, compared or serialised.
pub(in crate::trusted::privacy) struct Secret<T> {
    value: T,
}

impl<T> Secret<T> {
    /// Seals an engine's answer.
    pub(in crate::trusted::privacy) fn seal(value: T) -> Self {
        Secret { value }
    }

    /// Opens it, inside a mechanism.
    pub(super) fn open(self) -> T {
        self.value
    }

    /// Looks at it, inside a mechanism.
    pub(super) fn peek(&self) -> &T {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;
    use static_assertions::assert_not_impl_any;

    assert_not_impl_any!(Secret<i64>: Clone, Copy, std::fmt::Debug, std::fmt::Display, PartialEq, serde::Serialize);
    assert_not_impl_any!(crate::privacy::mechanism::SecretRng: Clone, std::fmt::Debug, serde::Serialize);
}
