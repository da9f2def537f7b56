//! Bytes that a provider sent at some time, through the parser of their wire format.
//!
//! For recordings and for tests; a live answer takes the same way from `http` on.

use bytes::Bytes;
use futures::stream::{Stream, StreamExt};

use super::anthropic::decode::MessageWire;
use super::body;
use super::chat::decode::ChatWire;
use super::decode::{self, Decoder};
use super::ollama::decode::OllamaWire;
use super::responses::decode::ResponsesWire;
use super::{ChunkStream, ProviderError};

/// A wire format that answers can be read in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `anthropic-messages`.
    Anthropic,
    /// `openai-chat`.
    Chat,
    /// `openai-responses`.
    Responses,
    /// `ollama-chat`.
    Ollama,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Chat, Self::Responses, Self::Ollama];

    /// Returns the wire format of a name as recordings have it.
    pub fn named(api: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wire| wire.name() == api)
    }

    /// Returns the name that recordings have.
    pub fn name(self) -> &'static str {
        self.wire().name()
    }

    /// Reads the body of an answer with a 2xx status; each item of `reads` is one read, or what broke them off.
    ///
    /// `content_type` is the header's value, empty for none. `provider` and `model` are what the
    /// native reply is marked with.
    pub fn play(
        self,
        reads: impl Stream<Item = Result<Bytes, ProviderError>> + Send + 'static,
        content_type: &str,
        provider: &str,
        model: &str,
    ) -> ChunkStream {
        let decoder = Decoder::new(self.wire(), provider, model, Vec::new());
        body::chunks(reads.boxed(), content_type, decoder)
    }

    fn wire(self) -> Box<dyn decode::Wire> {
        match self {
            Self::Anthropic => Box::<MessageWire>::default(),
            Self::Chat => Box::<ChatWire>::default(),
            Self::Responses => Box::<ResponsesWire>::default(),
            Self::Ollama => Box::<OllamaWire>::default(),
        }
    }
}
