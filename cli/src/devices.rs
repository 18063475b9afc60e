//! `dpmc devices`: the adapters that the gpu engine could use.

use super::CliError;
use super::args::JsonArguments;
use dpmc::engine;

pub(super) fn run(a: &JsonArguments) -> Result<(), CliError> {
    let devices = engine::devices();
    if a.json {
        let text =
            serde_json::to_string_pretty(&devices).map_err(|e| CliError::Failure(e.to_string()))?;
        println!("{text}");
        return Ok(());
    }
    for d in devices {
        println!("{:4} {} ({})", d.kind, d.adapter, d.driver);
    }
    Ok(())
}
