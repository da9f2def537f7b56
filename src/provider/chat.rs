//! OpenAI Chat Completions and every server that speaks it.

mod calls;
pub(in crate::provider) mod decode;
mod details;
pub(in crate::provider) mod history;
pub(in crate::provider) mod request;
pub(in crate::provider) mod usage;
