//! Outrigger: a headless daemon beside a chat frontend.

pub mod arguments;
pub mod classifier;
pub mod config;
pub mod message;
pub mod permission;
pub mod provider;
pub mod sandbox;
pub mod telemetry;
pub mod tool;
