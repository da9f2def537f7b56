//! Outrigger: a headless daemon beside a chat frontend.

pub mod config;
pub mod message;
pub mod permission;
pub mod provider;
