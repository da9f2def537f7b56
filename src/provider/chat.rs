//! OpenAI Chat Completions, and every server that speaks it.
//!
//! What servers do differently is in `quirks`, sending in `compat`.

mod calls;
pub(super) mod decode;
pub(super) mod history;
mod message;
pub(super) mod request;
