//! What the command promises to those who type it: files in, files out, words and exit codes. One
//! module a subject.

#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

mod account_command;
mod anchored_network_files;
mod anchored_run_files;
mod audit_command;
mod bad_input;
mod batch_command;
mod check_command;
mod cli;
mod cli_cautions;
mod combinations;
mod declared_run_files;
mod examples;
mod feature_formats;
mod features;
mod formulas;
mod fuzz_input;
mod gradient_resumed;
mod gradient_run_files;
mod held_out_scores;
mod hierarchies;
mod json_output;
mod kept_rows;
mod labels;
mod long_fuzz;
mod many_files;
mod moments_run_files;
mod network_files;
mod odd_settings;
mod offsets;
mod optimisers;
mod persons;
mod predictions;
mod prior_command;
mod ranks;
mod report_command;
mod row_bounds_command;
mod row_weights;
mod second_reader;
mod storage;
mod synthetic_tables;
mod table_messages;
mod validate;
