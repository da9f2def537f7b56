//! Outrigger: a headless daemon beside a chat frontend.

pub mod arguments;
pub mod chat;
pub mod classifier;
pub mod commands;
pub mod config;
pub mod connection;
pub mod conversation;
pub mod daemon;
pub mod exchange;
pub mod http;
pub mod lifecycle;
pub mod message;
pub mod permission;
pub mod process;
pub mod protocol;
pub mod provider;
pub mod ready;
pub mod sandbox;
pub mod server;
pub mod session;
pub mod telemetry;
pub mod tool;
