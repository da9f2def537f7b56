//! Bytes that a provider sent at some time, through the parser of their wire format.
//!
//! For recordings and for tests; a live answer takes the same way from `http` on.

use bytes::Bytes;
use futures::stream::{Stream, StreamExt};

use super::body::{self, Framing};
use super::chat::decode::ChatDecoder;
use super::decode::Decoder;
use super::responses::decode::ResponsesDecoder;
use super::schema::ToolNames;
use super::{ChunkStream, ProviderError, anthropic, ollama};

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

    /// The name that recordings have.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic-messages",
            Self::Chat => "openai-chat",
            Self::Responses => "openai-responses",
            Self::Ollama => "ollama-chat",
        }
    }

    /// Reads the body of an answer with a 2xx status; each item of `reads` is one read.
    ///
    /// `content_type` is the header's value, empty for none. `provider` and `model` are what the
    /// native reply is marked with.
    pub fn play<S>(self, reads: S, content_type: &str, provider: &str, model: &str) -> ChunkStream
    where
        S: Stream<Item = Bytes> + Send + 'static,
    {
        self.play_broken(reads.map(Ok), content_type, provider, model)
    }

    /// The same for reads of which the last may be what broke them off.
    pub(super) fn play_broken<S>(
        self,
        reads: S,
        content_type: &str,
        provider: &str,
        model: &str,
    ) -> ChunkStream
    where
        S: Stream<Item = Result<Bytes, ProviderError>> + Send + 'static,
    {
        let bytes = reads.boxed();
        let decoder = self.decoder(provider, model);
        body::chunks(bytes, self.framing(), content_type, decoder)
    }

    fn framing(self) -> Framing {
        match self {
            Self::Anthropic | Self::Chat | Self::Responses => Framing::Sse,
            Self::Ollama => Framing::Ndjson,
        }
    }

    fn decoder(self, provider: &str, model: &str) -> Box<dyn Decoder> {
        let names = ToolNames::new(&[]);
        match self {
            Self::Anthropic => anthropic::decoder(provider, model),
            Self::Chat => Box::new(ChatDecoder::new(provider, model, names, Vec::new())),
            Self::Responses => Box::new(ResponsesDecoder::new(provider, model, names, Vec::new())),
            Self::Ollama => ollama::decoder(provider, model),
        }
    }
}
