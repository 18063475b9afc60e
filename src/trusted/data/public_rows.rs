//! Rows of a table that its owner declares public.

use super::{Dataset, LabelKind};

/// Rows that hide nothing and may be read back: a held-out table, made-up data.
///
/// To declare rows public is a promise of the caller, as
/// [`Curator::not_private`](crate::privacy::Curator::not_private) is: no ledger is charged for
/// what is computed from them. A curator never gives its table out, so this cannot be asked of one.
#[derive(Clone, Copy, Debug)]
pub struct PublicRows<'a>(&'a Dataset);

impl Dataset {
    /// This table's rows, declared public.
    pub fn as_public(&self) -> PublicRows<'_> {
        PublicRows(self)
    }
}

impl PublicRows<'_> {
    /// Feature names, in column order.
    pub fn features(&self) -> &[String] {
        self.0.features()
    }

    /// What the labels are, where rows carry some.
    pub fn label_kind(&self) -> Option<LabelKind> {
        self.0.label_kind()
    }

    /// Number of values of a row: features, and an offset where there is one.
    pub fn width(&self) -> usize {
        self.0.width()
    }

    /// The rows as they are stored, clipped to the declared norm: row after row, the offset last;
    /// of units all rows that count.
    pub fn rows(&self) -> Vec<f32> {
        self.0.public_rows()
    }

    /// Binary labels, one a row.
    pub fn labels(&self) -> Vec<bool> {
        let labels = self.0.labels().iter().take(self.0.lines());
        labels.map(|&y| y > 0.0).collect()
    }

    /// Labels as numbers: of a class its number, of a binary label −1 or +1.
    pub fn numbers(&self) -> Vec<f64> {
        let labels = self.0.labels().iter().take(self.0.lines());
        labels.map(|&y| f64::from(y)).collect()
    }
}
