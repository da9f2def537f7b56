//! `outrigger config show`: each value in force with where it came from.

use std::process::ExitCode;

use super::{complain, print};
use crate::arguments::ShowArguments;
use crate::config::{self, Sources};
use crate::ready::exit;

/// Prints the configuration, secrets masked; what is wrong with it goes to stderr.
pub fn show(arguments: &ShowArguments) -> ExitCode {
    let mut sources = Sources {
        project_is_optional: true,
        ..Sources::of_process()
    };
    arguments.config.apply(&mut sources);
    let loaded = match config::load(&sources) {
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
    match print(&text) {
        Ok(()) => ExitCode::from(exit::OK),
        Err(_) => ExitCode::from(exit::FAILED),
    }
}
