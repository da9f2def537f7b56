//! OpenAI Responses, stateless: the server keeps nothing, each request holds the whole conversation.
//!
//! What servers do differently is in `quirks`, sending in `compat`.

pub(super) mod decode;
mod items;
pub(super) mod request;
