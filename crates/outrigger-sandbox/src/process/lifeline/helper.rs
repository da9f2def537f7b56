//! What this program is with [`HELPER_ARGUMENT`](super::HELPER_ARGUMENT) where the kernel ends nothing with the daemon.

use std::process::ExitCode;

use super::process::lifeline;

/// Runs the lifeline: it reads from stdin which groups of processes there are, and at its end kills those that are left.
pub fn main() -> ExitCode {
    lifeline::main()
}
