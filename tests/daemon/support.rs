//! The daemon, a client of it, and a provider that plays a script.

mod client;
mod daemon;
pub(crate) mod provider;

pub(crate) use client::Client;
pub(crate) use daemon::Daemon;
pub(crate) use provider::Provider;
