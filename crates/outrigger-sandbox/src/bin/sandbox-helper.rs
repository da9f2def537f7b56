//! The sandbox helper as a program of its own: what another program's `main` does before anything else.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == outrigger_sandbox::HELPER_ARGUMENT)
    {
        return outrigger_sandbox::helper::main();
    }
    ExitCode::FAILURE
}
