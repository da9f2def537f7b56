//! The commands besides the daemon and the chat: look at the configuration, the machine, a daemon, the contract.
//!
//! Each prints what it found and returns an exit code. Nothing here serves anybody.

mod doctor;
mod healthcheck;
mod schema;
mod show;

use std::process::ExitCode;

use crate::ready::{complain, exit, print};
pub use doctor::doctor;
pub use healthcheck::healthcheck;
pub use schema::schema;
pub use show::show;

fn exit_code(is_well: bool) -> ExitCode {
    ExitCode::from(match is_well {
        true => exit::OK,
        false => exit::FAILED,
    })
}
