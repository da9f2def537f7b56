//! This daemon as an agent of the Agent Client Protocol (version 1), for editors: `outrigger acp` on stdin and stdout, and
//! `GET /acp` as a WebSocket.
//!
//! It is one more client of the daemon's sessions, inside of it: what an editor wants becomes requests of our own protocol,
//! and a session's events become updates. It knows no tool and no provider. One session of the protocol is one session here
//! with its conversation `default`. Facts: `docs/acp.md`.
//!
//! Read next: `agent` (a connection), `session` (one session on it), `render` (events as updates, pure).

mod agent;
mod asking;
mod blocks;
mod catch_up;
mod diff;
mod open;
mod options;
mod own;
mod prompts;
mod question;
mod render;
mod replay;
mod replies;
mod rpc;
mod servers;
mod session;
mod slash;
mod socket;
mod stdio;
mod tool_call;
mod trust;
mod turn;
mod wire;

pub(crate) use socket::socket;
pub(crate) use stdio::stdio;
