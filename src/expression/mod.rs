//! Expressions of a row's log likelihood: `y * eta - exp(eta)`.
//!
//! A text is parsed into a graph of operations; derivatives, changes without cancellation, bounds,
//! programs that run over rows and shader texts are made from the graph, all by the same few rules.
//! Nothing in here keeps a value of a row: an evaluation is a pure function of numbers, which can
//! neither fail nor stop.

mod bounds;
mod change;
mod derivative;
mod families;
mod graph;
mod information;
mod law;
mod location;
mod number;
mod ordinal;
mod parse;
mod program;
mod reach;
#[cfg(feature = "gpu")]
mod shader;
mod special;

pub use bounds::Range;
pub use families::{FAMILIES, Family, Labels, SUCCESSES, family};
pub use information::{Clip, Information, LabelRange, Parts, Source, Zero};
pub use law::{Law, LawError};
pub use location::Location;
pub(crate) use number::{Fast, Number};
pub use ordinal::{ORDINAL_CLASSES, ordinal, ordinal_parameters};
pub use parse::{FUNCTIONS, ParseError};
pub(crate) use reach::MOST_SDS;
pub use reach::{Located, Reach};

#[cfg(test)]
mod tests;
