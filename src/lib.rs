//! Outrigger: a headless daemon beside a chat frontend.

pub mod message;
pub mod sandbox;
