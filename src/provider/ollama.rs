//! Ollama's own API, `/api/chat`.

mod decode;
mod models;
mod request;

/// The name of the wire format in a [`crate::message::NativeReply`].
const WIRE: &str = "ollama-chat";
