//! Commands as the tools run them, with real processes. Those of the sandbox alone are in `crates/outrigger-sandbox/tests`.

/// The program that is the helper.
const HELPER: &str = env!("CARGO_BIN_EXE_outrigger");

#[cfg(test)]
#[path = "../../crates/outrigger-sandbox/tests/sandbox/attempts.rs"]
#[expect(dead_code, reason = "the sandbox's own tests need more of it")]
mod attempts;
#[cfg(test)]
#[path = "../../crates/outrigger-sandbox/tests/sandbox/support.rs"]
#[expect(dead_code, reason = "the sandbox's own tests need more of it")]
mod support;
#[cfg(test)]
mod through_bash;
