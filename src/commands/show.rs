//! `outrigger config show`: each value in force with where it came from.

use std::process::ExitCode;

use super::{complain, exit_code, print};
use crate::arguments::ShowArguments;
use crate::config;
use crate::ready::exit;

/// Prints the configuration, secrets masked; what is wrong with it goes to stderr.
pub fn show(arguments: &ShowArguments) -> ExitCode {
    let loaded = match config::load(&arguments.config.sources()) {
        Ok(loaded) => loaded,
        Err(errors) => {
            complain(&errors.to_string());
            return ExitCode::from(exit::CONFIGURATION);
        }
    };
    for warning in &loaded.warnings {
        complain(warning);
    }
    let text = match arguments.json {
        true => format!("{:#}\n", config::json(&loaded.origins)),
        false => config::text(&loaded.origins),
    };
    exit_code(print(&text).is_ok())
}
