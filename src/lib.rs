//! Outrigger: a headless daemon beside a chat frontend.
//!
//! A frontend opens one WebSocket and says something; the daemon streams a language model's answer,
//! runs the tools that the model calls, asks the user before anything dangerous, and goes on until
//! the model is done. `main` only reads arguments and configuration; everything else is here, so that
//! tests can run the whole daemon.
//!
//! # The way of a message
//!
//! ```text
//! frame ─ server ─ connection ─ session ─ conversation ─ exchange ─┬─ provider   the model's turns
//!                                  │                               ├─ permission may it run?
//! frame ─ connection ─ log ────────┘ every event, numbered         └─ tool ─ sandbox
//! ```
//!
//! Begin with [`exchange`], the main flow, top to bottom: one exchange is one send of the user and all that follows.
//! `docs/architecture.md` follows a message through the files and has a map of them; [`chat`] is a client of the
//! protocol that uses nothing of the daemon but its words.
//!
//! # Invariants
//!
//! - **A call that the model made has one result**: output, refusal or "cancelled", never silence. The
//!   function that runs calls cannot fail, and `exchange::history` is checked before each request.
//! - **An exchange has one end**: `exchange::transcript` emits its first and its last event, and is ended by value.
//! - **No provider's wire type leaves its module**; what must go back unchanged travels as opaque
//!   [`message::NativeReply`].
//! - **Tools reach files and processes through [`sandbox`] only**, and every path through an open directory.
//! - **State has one owner**: a task a conversation, a task a session, messages between them. A slow client
//!   holds up nobody: its socket reads the session's log at its own pace.
//! - **An exchange ends by its token, not by dropping its future**; only then is its history whole.
//! - **Whatever grows has a bound** with a name and a reason.
//! - **A module that calls itself pure** does no I/O, holds no clock and spawns nothing.
//!
//! Who may import whom is a table, and a test: `tests/repository/imports.rs`.

#![forbid(unsafe_code)]

pub mod exchange;

pub mod connection;
pub mod conversation;
pub mod server;
pub mod session;

mod document;
pub mod message;
pub mod notices;
pub mod protocol;
pub mod store;

pub use outrigger_shell as classifier;
pub mod permission;

pub use outrigger_sandbox as sandbox;
pub mod tool;

pub mod mcp;

mod hooks;
pub mod http;
pub mod provider;

mod acp;
mod address;
pub mod arguments;
pub mod audit;
pub mod commands;
pub mod config;
pub mod daemon;
mod instructions;
mod json_schema;
pub mod lifecycle;
mod otlp;
mod packed;
mod plain_text;
pub mod process;
pub mod ready;
pub use outrigger_sandbox::secret;
pub mod runtime;
mod spend;
pub mod telemetry;
pub mod terminal_text;
pub mod token;
pub mod units;
pub mod users;
mod vault;
mod webhooks;

pub mod chat;
