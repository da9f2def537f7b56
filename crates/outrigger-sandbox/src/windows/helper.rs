//! The program that asks a command to end: it takes the command's console for its own and sends Ctrl-Break there.

use std::process::ExitCode;

use super::windows::ask_to_end;

/// Runs it; its one argument after [`HELPER_ARGUMENT`](super::HELPER_ARGUMENT) is the number of the command's first process.
pub fn main() -> ExitCode {
    let number = std::env::args()
        .nth(2)
        .and_then(|number| number.parse().ok());
    match number.map(ask_to_end) {
        Some(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
