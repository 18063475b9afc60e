//! Figures of several panels ([`Chart`]) as SVG, PNG and numbers.

mod chart;
#[cfg(test)]
mod chart_tests;
mod contours;
mod diagram;
mod ruler;

pub use chart::{Axis, Chart, Mark, Plot};
