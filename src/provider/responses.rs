//! OpenAI Responses, stateless.

pub(in crate::provider) mod decode;
mod items;
