//! Messages, models that sum up well and badly, and compactions of conversations, for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Outcome, Wish, by_hand};
use crate::config::{Current, NativeCompaction};
use crate::conversation::testing;
use crate::exchange::context::{Context, Setup};
use crate::exchange::history::{Room, is_valid};
use crate::exchange::transcript::Events;
use crate::message::{
    Message, MessageId, NativeReply, Part, Reply, ToolCall, ToolId, ToolResult, Usage,
};
use crate::protocol::event::{self, CompactionTrigger, Event};
use crate::provider::{
    Chunk, ChunkStream, End, ErrorKind, Provider, ProviderError, Request, Stop, ToolChoice,
};

pub(super) fn said(text: &str) -> Message {
    Message::User(vec![Part::text(text)])
}

pub(super) fn picture() -> Message {
    Message::User(vec![
        Part::text("look"),
        Part::Image {
            media_type: "image/png".to_owned(),
            data: "iVBORw0KGgo=".to_owned(),
        },
    ])
}

/// A reply with calls: their ids, tools and inputs.
pub(super) fn reply(text: &str, calls: &[(&str, &str, Value)]) -> Message {
    let calls = calls.iter().map(|(id, name, input)| ToolCall {
        id: ToolId::new(*id),
        provider_call_id: None,
        name: (*name).to_owned(),
        input: input.as_object().cloned().unwrap_or_default(),
    });
    Message::Reply(Reply {
        text: text.to_owned(),
        calls: calls.collect(),
        ..Reply::default()
    })
}

pub(super) fn result(id: &str, name: &str, text: &str, is_error: bool) -> Message {
    Message::ToolResult(ToolResult {
        id: ToolId::new(id),
        name: name.to_owned(),
        content: vec![Part::text(text)],
        is_error,
    })
}

/// A secret that the redactor knows.
pub(super) const SECRET: &str = "hunter2-hunter2-hunter2";

/// How a model sums up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Summariser {
    Good,
    Empty,
    Huge,
    Failing,
    /// It says again what it is shown.
    Echoing,
    /// It calls a tool unless it may not.
    Calling,
    /// It never answers.
    Hanging,
}

pub(super) struct Model {
    window: Option<u64>,
    native: NativeCompaction,
    summariser: Summariser,
    asked: AtomicUsize,
}

impl Provider for Model {
    fn stream<'a>(
        &'a self,
        request: Request<'a>,
    ) -> BoxFuture<'a, Result<ChunkStream, ProviderError>> {
        assert!(is_valid(request.messages), "{:?}", request.messages);
        self.asked.fetch_add(1, Ordering::Relaxed);
        let good = format!("Task: build. State: half. {SECRET}. Next step: go on.");
        let mut text = match self.summariser {
            Summariser::Good => good.repeat(5),
            Summariser::Empty => String::new(),
            Summariser::Huge => "x".repeat(100_000),
            Summariser::Echoing => format!("{:?}", request.messages),
            Summariser::Calling if request.tool_choice == ToolChoice::None => good.repeat(5),
            Summariser::Calling => String::new(),
            Summariser::Failing => {
                let error = ProviderError::new(ErrorKind::InvalidRequest, "no");
                return std::future::ready(Err(error)).boxed();
            }
            Summariser::Hanging => return std::future::pending().boxed(),
        };
        let mut chunks = Vec::new();
        if request.compact.is_some() && self.summariser != Summariser::Calling {
            chunks.push(Ok(Chunk::End(native(&std::mem::take(&mut text)))));
        }
        if self.summariser == Summariser::Calling {
            chunks.push(Ok(Chunk::ToolCallStart {
                index: 0,
                provider_call_id: None,
                name: "tool".to_owned(),
            }));
        }
        chunks.extend((!text.is_empty()).then_some(Ok(Chunk::Text(text))));
        chunks.push(Ok(Chunk::End(End {
            stop: Stop::EndTurn,
            raw_stop: None,
            usage: Usage {
                input: Some(100),
                output: Some(10),
                ..Usage::default()
            },
            native: None,
        })));
        std::future::ready(Ok(stream::iter(chunks).boxed())).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<crate::message::Model>, ProviderError>> {
        std::future::ready(Ok(Vec::new())).boxed()
    }

    fn validate(&self) -> BoxFuture<'_, Result<(), ProviderError>> {
        std::future::ready(Ok(())).boxed()
    }

    fn caches_by_settings(&self) -> bool {
        true
    }

    fn native_compaction(&self) -> NativeCompaction {
        self.native
    }

    fn model(&self, id: &str) -> crate::message::Model {
        crate::message::Model {
            context_window: self.window,
            ..testing::Scripted(Mutex::default()).model(id)
        }
    }
}

/// The end of an answer that is the vendor's own compaction; empty for one that failed.
fn native(text: &str) -> End {
    let content = Some(text).filter(|text| !text.is_empty());
    End {
        stop: Stop::Pause,
        raw_stop: None,
        usage: Usage::default(),
        native: Some(NativeReply {
            wire: "anthropic-messages".to_owned(),
            provider: "scripted".to_owned(),
            model: "m".to_owned(),
            items: json!([{"type": "compaction", "content": content, "signature": "c2ln"}]),
        }),
    }
}

/// A conversation, and what came of a compaction of it.
pub(super) struct Compaction {
    pub(super) context: Context,
    pub(super) events: Arc<Mutex<Vec<Event>>>,
    model: Arc<Model>,
    pub(super) setup: Setup,
}

impl Compaction {
    pub(super) fn of(messages: &[Message], window: Option<u64>, summariser: Summariser) -> Self {
        Self::with(messages, window, summariser, NativeCompaction::Off)
    }

    /// Makes one whose provider's own compaction is asked for.
    pub(super) fn with(
        messages: &[Message],
        window: Option<u64>,
        summariser: Summariser,
        native: NativeCompaction,
    ) -> Self {
        let events = Arc::<Mutex<Vec<Event>>>::default();
        let sink = Arc::clone(&events);
        let emit = Events::new(move |event, _| sink.lock().push(event));
        let mut context = testing::context(emit, Room::default());
        let mut config = (*context.services.config()).clone();
        config.compaction.native = native;
        context.services.settings = Current::new(config);
        context.services.redactor.add(SECRET);
        let exchange = MessageId::new("m1");
        let history = &context.conversation.history;
        history.extend(&exchange, messages.iter().cloned());
        let model = Arc::new(Model {
            window,
            native,
            summariser,
            asked: AtomicUsize::new(0),
        });
        let provider = Arc::clone(&model) as Arc<dyn Provider>;
        let setup = Setup {
            system: "system".to_owned(),
            context_reserve: 500,
            compact_at: Some(80),
            max_retries: 0,
            ..testing::setup(provider, exchange)
        };
        Self {
            context,
            events,
            model,
            setup,
        }
    }

    pub(super) async fn run(&self, trigger: CompactionTrigger) -> Outcome {
        let wish = Wish {
            trigger,
            mode: None,
            instructions: "",
            on_start: None,
        };
        let cancel = CancellationToken::new();
        by_hand(&self.setup, &self.context, &cancel, wish).await
    }

    pub(super) fn seen(&self) -> Arc<Vec<Message>> {
        self.context.conversation.history.view()
    }

    pub(super) fn asked(&self) -> usize {
        self.model.asked.load(Ordering::Relaxed)
    }

    /// Returns the last event of a compaction.
    pub(super) fn last(&self) -> Option<event::Compaction> {
        let events = self.events.lock();
        events.iter().rev().find_map(|event| match event {
            Event::ChatCompaction(it) => Some((**it).clone()),
            _ => None,
        })
    }
}
