//! The daemon, a client of it, and providers that play a script.

mod answering;
mod client;
mod daemon;
mod dice;
pub(crate) mod own_network;
pub(crate) mod provider;
pub(crate) mod server;
mod waiting;
pub(crate) mod wire;

pub(crate) use answering::Answering;
pub(crate) use client::Client;
pub(crate) use daemon::Daemon;
pub(crate) use dice::Dice;
pub(crate) use provider::Provider;
pub(crate) use waiting::{PATIENCE, eventually, within};
