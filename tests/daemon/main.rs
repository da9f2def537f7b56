//! The daemon as a black box: the real binary, a real socket, a scripted HTTP provider.
//!
//! One file per story. A test scripts the provider, acts as a client, and looks at what came over
//! the wire and at what the provider was asked.

mod support;

mod approval;
mod bad_input;
mod cancel;
mod commands;
mod exchange;
mod lifecycle;
mod resume;
