//! The commands besides the daemon and the chat: look at the configuration, the machine, a daemon, the contract.
//!
//! Each prints what it found and returns an exit code. Nothing here serves anybody.

mod doctor;
mod healthcheck;
mod schema;
mod show;

use std::io::Write;

pub use doctor::doctor;
pub use healthcheck::healthcheck;
pub use schema::schema;
pub use show::show;

/// Prints a line to stderr; where nobody reads it there is nobody to tell.
fn complain(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "outrigger: {text}"));
}

/// Prints text to stdout.
///
/// # Errors
///
/// Where nobody reads it any more, as with `outrigger config show | head`.
fn print(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
