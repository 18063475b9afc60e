//! What the laboratory promises: figures that can be drawn and that say what is plotted.

mod place;
mod reproduce_command;
