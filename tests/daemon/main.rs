//! The daemon as a black box: the real binary, a real socket, a scripted HTTP provider.
//!
//! One file per story. A test scripts the provider, acts as a client, and looks at what came over
//! the wire and at what the provider was asked.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

mod approval;
mod bad_input;
mod cancel;
mod commands;
mod exchange;
mod lifecycle;
mod resume;
