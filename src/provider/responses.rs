//! OpenAI Responses, stateless.

pub(in crate::provider) mod decode;
mod items;
pub(in crate::provider) mod request;
