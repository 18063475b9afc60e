//! Papers' algorithms to the letter that no guarantee covers. They read rows that their caller
//! declares public ([`dpmc::data::PublicRows`]), in f64 and by the model's reference density; the
//! library's curator neither knows nor serves them.

mod fast_mh;

pub use fast_mh::{PublishedFastMh, RowBound};
