//! `dpmc devices`: the adapters that the gpu engine could use.

use super::CliError;
use super::answers::print_json;
use super::args::JsonArguments;
use dpmc::engine;

pub(super) fn run(a: &JsonArguments) -> Result<(), CliError> {
    let devices = engine::devices();
    if a.json {
        return print_json(&devices);
    }
    for d in devices {
        println!("{:4} {} ({})", d.kind, d.adapter, d.driver);
    }
    Ok(())
}
