//! Language model providers behind one trait and one vocabulary of stream chunks.
//!
//! A provider turns a [`Request`] into its own wire format and the answer back into [`Chunk`]s.
//! All that is specific to one vendor stays inside its module, the form of tool results included.
//! Whether a failed turn is tried again is decided by the exchange with `retry`. Here a request is only sent again
//! without something that the server refused, with the server's complaint about a call, or over a dead connection. Nothing here keeps a conversation.

mod anthropic;
mod arguments;
mod body;
mod chat;
pub(crate) mod compaction;
mod compat;
mod decode;
mod error;
mod frames;
mod gate;
mod halves;
mod http;
mod json;
mod lines;
pub mod models;
mod notices;
mod ollama;
mod output;
mod quirks;
pub(crate) mod rates;
mod record;
pub mod registry;
pub mod replay;
mod request;
mod responses;
pub mod retry;
mod schema;
mod scripted;
mod sse;
#[cfg(test)]
pub(crate) mod testing;
mod usage;

use std::borrow::Cow;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::NativeCompaction;
use crate::message::{Message, Model, NativeReply, Notice, Part, Thinking, ToolSpec, Usage};
pub use error::{ErrorKind, ProviderError, WiderWindow};
pub use http::Clients;

/// Most calls of one turn. More is a server that loops, not a model that works.
pub const MAX_CALLS: usize = 512;

/// The chunks of one turn, ended by [`Chunk::End`] or by the first error.
pub type ChunkStream = BoxStream<'static, Result<Chunk, ProviderError>>;

/// A language model behind an HTTP API, or a script.
pub trait Provider: Send + Sync {
    /// Sends one turn and returns its chunks as they come.
    ///
    /// The body is built from `request` before the future first waits. The outer error means that
    /// no answer began (refused, unreachable, an error status); an error inside the stream means
    /// that it broke off. Dropping the future or the stream drops the HTTP request.
    fn stream<'a>(
        &'a self,
        request: Request<'a>,
    ) -> BoxFuture<'a, Result<ChunkStream, ProviderError>>;

    /// Lists the models of the live endpoint, completed from the compiled-in table.
    fn models(&self) -> BoxFuture<'_, Result<Vec<Model>, ProviderError>>;

    /// Asks something free of cost that needs the credentials, to see whether they are accepted.
    fn validate(&self) -> BoxFuture<'_, Result<(), ProviderError>>;

    /// Asks for what is not known of a model, where asking helps: once, in silence, beside the first
    /// turn with it, so that [`Provider::model`] knows more from then on.
    fn look_up<'a>(&'a self, model: &'a str) -> BoxFuture<'a, ()> {
        let _ = model;
        Box::pin(std::future::ready(()))
    }

    /// Returns whether its prompt cache is lost where the tool choice or thinking is another one than before.
    fn caches_by_settings(&self) -> bool {
        false
    }

    /// Returns whose compaction [`Request::compact`] asks for; `Off` where that cannot be asked.
    fn native_compaction(&self) -> NativeCompaction {
        NativeCompaction::Off
    }

    /// Returns whether [`Request::output`] may be asked for beside tools that the model may call.
    fn forms_beside_tools(&self) -> bool {
        false
    }

    /// Returns what is known of a model without asking anybody.
    fn model(&self, id: &str) -> Model;
}

/// One turn: everything the model is to know.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The model's id.
    pub model: &'a str,
    /// The system prompt; empty for none.
    pub system: &'a str,
    /// Words of the user that stand before what the user says: they go out with the first message of the user ([`said`](Self::said)).
    pub front: &'a [Part],
    /// The history, valid in the sense of [`Message`].
    pub messages: &'a [Message],
    /// The tools on offer, in a stable order.
    pub tools: &'a [ToolSpec],
    /// Whether the model may call them.
    pub tool_choice: ToolChoice,
    /// Most tokens of the answer; the provider's or the model's own limit where absent.
    pub max_tokens: Option<u32>,
    /// Sampling temperature, 0 to 2; left out where the model refuses it.
    pub temperature: Option<f64>,
    /// Thinking; the model's default where absent.
    pub thinking: Option<Thinking>,
    /// Opaque and stable for a conversation: routes its requests to the same prompt cache.
    pub cache_key: &'a str,
    /// The JSON schema of an object that the answer is to be, where it is not to be words. Beside tools only where
    /// [`Provider::forms_beside_tools`] says so; elsewhere `tools` is empty then.
    pub output: Option<&'a Value>,
    /// Asks for a compaction of the messages in the vendor's own form, and for no answer. The text says what it is to be like in the
    /// place of the vendor's own words; empty for those. Only where [`Provider::native_compaction`] has one.
    pub compact: Option<&'a str>,
}

impl Request<'_> {
    /// Returns what a message of the user says, the first one with what stands before it.
    pub fn said<'p>(&self, message: &Message, parts: &'p [Part]) -> Cow<'p, [Part]> {
        let is_users = |message: &&Message| matches!(message, Message::User(_));
        let is_first = || {
            let first = self.messages.iter().find(is_users);
            first.is_some_and(|first| std::ptr::eq(first, message))
        };
        match !self.front.is_empty() && is_first() {
            true => Cow::Owned([self.front, parts].concat()),
            false => Cow::Borrowed(parts),
        }
    }
}

/// Whether the model may call tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// It has to answer in text, although the tools stay in the request.
    None,
}

/// What a provider's stream comes to, whoever the provider is.
///
/// Order: `Start`, then any mix of `Text`, `Thinking` and calls, then one `End`. A call is
/// `ToolCallStart`, `ToolCallDelta`*, `ToolCallEnd`, told apart by `index`; several may be open at once.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// The answer began.
    Start {
        /// The model that answers, as the provider names it.
        model: Option<String>,
    },
    /// Text of the answer; never empty.
    Text(String),
    /// Thinking, reasoning or a summary of it; never empty.
    Thinking(String),
    /// A call began.
    ToolCallStart {
        /// Counts the calls of this turn from 0.
        index: usize,
        /// The provider's id of the call, where it sent one by now.
        provider_call_id: Option<String>,
        /// The tool's name as the model wrote it.
        name: String,
    },
    /// More of a call's input; never empty.
    ToolCallDelta {
        /// Which call.
        index: usize,
        /// A piece of JSON text, cut anywhere.
        fragment: String,
    },
    /// A call is whole, or will never be.
    ToolCallEnd {
        /// Which call.
        index: usize,
        /// The provider's id of the call, where it sent one at all.
        provider_call_id: Option<String>,
        /// What the fragments came to.
        input: CallInput,
    },
    /// Something the client should know that is no error.
    Notice(Notice),
    /// The answer is complete.
    End(End),
}

/// What the pieces of a call's input came to.
#[derive(Clone, Debug, PartialEq)]
pub enum CallInput {
    /// A JSON object; empty text counts as `{}`.
    Object(Map<String, Value>),
    /// Text that is no JSON object. The call is answered with an error that says so.
    Invalid {
        /// The text as it came.
        raw: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Cut off by the token limit or a lost connection. The call must never run.
    Truncated {
        /// The text as far as it came.
        raw: String,
    },
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Why the model stopped.
    pub stop: Stop,
    /// The provider's own word for it.
    pub raw_stop: Option<String>,
    /// The last figures sent.
    pub usage: Usage,
    /// The answer in the provider's own form, where something in it has to go back unchanged.
    pub native: Option<NativeReply>,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It said what it had to say.
    EndTurn,
    /// It wants its calls answered. Decided by the calls that came, not by the provider's word.
    ToolUse,
    /// The limit of output tokens, or of the context, was reached.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence,
    /// It, or a filter of the provider before it answered, refused.
    Refusal,
    /// A filter of the provider stopped it.
    ContentFilter,
    /// The provider paused the turn; sending the reply back as it is continues it.
    #[serde(rename = "pause_turn")]
    Pause,
}
