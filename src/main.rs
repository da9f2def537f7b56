//! The `outrigger` program.
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: the helper must be single-threaded and owns no more than the standard descriptors.
    #[cfg(target_os = "linux")]
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == outrigger::sandbox::HELPER_ARGUMENT)
    {
        return outrigger::sandbox::helper::main();
    }
    ExitCode::SUCCESS
}
