//! `outrigger doctor`: what the daemon needs on this machine, what is missing and what to do.

use std::process::ExitCode;

use super::{complain, print};
use crate::arguments::DoctorArguments;
use crate::config::{self, Sources};
use crate::ready::exit;

/// Checks the machine and prints a line for each check.
pub fn doctor(arguments: &DoctorArguments) -> ExitCode {
    let mut sources = Sources::of_process();
    arguments.config.apply(&mut sources);
    match config::load(&sources) {
        Ok(_) => match print("ok    configuration: no errors\n") {
            Ok(()) => ExitCode::from(exit::OK),
            Err(_) => ExitCode::from(exit::FAILED),
        },
        Err(errors) => {
            complain(&errors.to_string());
            ExitCode::from(exit::FAILED)
        }
    }
}
