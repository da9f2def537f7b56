//! The wire contract, version 1: every frame of either direction, its schema and its codes.
//!
//! [`Command`] is what a client may say, [`Event`] what it is told; [`envelope`] turns text into the
//! one and the other into text. Nothing here runs. The words are explained in `docs/protocol.md`.

pub mod answer;
pub mod code;
pub mod command;
pub mod content;
pub mod envelope;
pub mod event;
pub mod record;
pub mod schema;

pub use code::{ChatCode, SessionCode};
pub use command::Command;
pub use content::{Content, WireMessage};
pub use envelope::{Request, RequestId};
pub use event::Event;

/// The version of the contract, told in `session:ready` and in the ready line.
pub const PROTOCOL_VERSION: u32 = 1;

/// The WebSocket subprotocol offered back to a client that asks for it.
pub const SUBPROTOCOL: &str = "outrigger.v1";
