//! Outrigger: a headless daemon beside a chat frontend.

pub mod classifier;
pub mod message;
