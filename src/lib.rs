#![doc = include_str!("../README.md")]

pub mod benchmark;
#[cfg(feature = "cli")]
pub mod cli;
pub mod config;
pub mod data;
pub mod diagnostics;
pub mod engine;
pub mod model;
pub mod output;
pub mod posterior_run;
pub mod privacy;
#[cfg(feature = "cli")]
pub mod reproduce;
pub mod sampler;
