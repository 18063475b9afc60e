//! What declarations alone say of a table's columns.

/// Public knowledge of a table's columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structure {
    /// Which columns are 0 or 1 in all rows; of those that it does not reach nothing is known.
    pub flags: Vec<bool>,
    /// A column that is 1 in all rows.
    pub constant: Option<usize>,
}
