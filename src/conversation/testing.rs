//! A model and a tool that follow a script, and what must hold whatever they do: for tests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::config::Config;
use crate::exchange::context::{Context, ConversationContext, Services, SessionContext, Setup};
use crate::exchange::history::{History, Room, is_valid};
use crate::exchange::memory::Memory;
use crate::exchange::transcript::Events;
use crate::message::{
    ConversationId, DangerLevel, MessageId, Model, OnViolation, Part, ToolCategory, ToolId,
    ToolSpec, TrustLevel, Usage,
};
use crate::permission::{ApprovalPolicy, Freedom, Scope};
use crate::protocol::ChatCode;
use crate::protocol::event::Event;
use crate::provider::{
    CallInput, Chunk, ChunkStream, End, ErrorKind, Provider, ProviderError, Request, Stop,
};
use crate::store::Journal;

use crate::tool::{Begins, Facts, Output, Prepared, Refusal, Registry, Run, Tool, Violation};

/// What the model does in one turn, before it ends.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Say,
    Think,
    Call(&'static str),
    InvalidCall,
    TruncatedCall,
    UnknownTool,
    /// A call of the tool of this name.
    Named(&'static str),
}

/// How a turn ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finish {
    End(Stop),
    Error(ErrorKind),
    BreakOff,
    Refused(ErrorKind),
    Hang,
}

pub(crate) static CONFIG: LazyLock<Arc<Config>> =
    LazyLock::new(|| Arc::new(crate::config::for_tests()));

/// Notified when a call begins to look at a file.
pub(crate) static OPENING: Notify = Notify::const_new();

const TOOL: &str = "tool";
const DEEDS: [&str; 6] = ["ok", "fail", "panic", "violate", "hang", "misfit"];

pub(crate) fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        Just(Move::Say),
        Just(Move::Think),
        prop::sample::select(DEEDS.to_vec()).prop_map(Move::Call),
        Just(Move::InvalidCall),
        Just(Move::TruncatedCall),
        Just(Move::UnknownTool),
    ];
    prop::collection::vec(one, 0..4)
}

pub(crate) fn finishes() -> impl Strategy<Value = Finish> {
    prop_oneof![
        4 => Just(Finish::End(Stop::EndTurn)),
        1 => Just(Finish::End(Stop::MaxTokens)),
        1 => Just(Finish::End(Stop::Pause)),
        1 => Just(Finish::End(Stop::Refusal)),
        1 => Just(Finish::Error(ErrorKind::Overloaded)),
        1 => Just(Finish::Error(ErrorKind::InvalidRequest)),
        1 => Just(Finish::BreakOff),
        1 => Just(Finish::Refused(ErrorKind::RateLimit)),
        1 => Just(Finish::Refused(ErrorKind::Authentication)),
        1 => Just(Finish::Hang),
    ]
}

/// A model that follows a script; past its end it answers in text.
pub(crate) struct Scripted(pub(crate) Mutex<VecDeque<(Vec<Move>, Finish)>>);

impl Provider for Scripted {
    fn stream<'a>(
        &'a self,
        request: Request<'a>,
    ) -> BoxFuture<'a, Result<ChunkStream, ProviderError>> {
        assert!(is_valid(request.messages), "{:?}", request.messages);
        let turn = self.0.lock().pop_front();
        let (moves, finish) = turn.unwrap_or((vec![Move::Say], Finish::End(Stop::EndTurn)));
        if let Finish::Refused(kind) = finish {
            return std::future::ready(Err(ProviderError::new(kind, "refused"))).boxed();
        }
        let mut chunks: Vec<Result<Chunk, ProviderError>> = vec![Ok(Chunk::Start { model: None })];
        for (index, one) in moves.iter().enumerate() {
            chunks.extend(chunks_of(index, one).into_iter().map(Ok));
        }
        match finish {
            Finish::End(stop) => chunks.push(Ok(Chunk::End(End {
                stop,
                raw_stop: None,
                usage: Usage::default(),
                native: None,
            }))),
            Finish::Error(kind) => chunks.push(Err(ProviderError::new(kind, "failed"))),
            Finish::BreakOff | Finish::Refused(_) | Finish::Hang => {}
        }
        let said = stream::iter(chunks).then(|chunk| async {
            tokio::task::yield_now().await;
            chunk
        });
        let whole = match finish {
            Finish::Hang => said.chain(stream::pending()).boxed(),
            _ => said.boxed(),
        };
        std::future::ready(Ok(whole)).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<Model>, ProviderError>> {
        std::future::ready(Ok(Vec::new())).boxed()
    }

    fn validate(&self) -> BoxFuture<'_, Result<(), ProviderError>> {
        std::future::ready(Ok(())).boxed()
    }

    fn model(&self, id: &str) -> Model {
        Model {
            id: id.to_owned(),
            provider: "scripted".to_owned(),
            display_name: id.to_owned(),
            context_window: None,
            max_output_tokens: None,
            supports_tools: true,
            supports_thinking: None,
            supports_vision: None,
            pricing: None,
        }
    }
}

fn chunks_of(index: usize, one: &Move) -> Vec<Chunk> {
    let call = |name: &str, input: CallInput| {
        vec![
            Chunk::ToolCallStart {
                index,
                provider_call_id: None,
                name: name.to_owned(),
            },
            Chunk::ToolCallDelta {
                index,
                fragment: "{".to_owned(),
            },
            Chunk::ToolCallEnd {
                index,
                provider_call_id: None,
                input,
            },
        ]
    };
    let object = |deed: &str| match json!({ "do": deed }) {
        Value::Object(object) => CallInput::Object(object),
        _ => unreachable!(),
    };
    match one {
        Move::Say => vec![Chunk::Text("text".to_owned())],
        Move::Think => vec![Chunk::Thinking("thought".to_owned())],
        Move::Call(deed) => call(TOOL, object(deed)),
        Move::UnknownTool => call("nothing", object("ok")),
        Move::Named(name) => call(name, object("ok")),
        Move::InvalidCall => call(
            TOOL,
            CallInput::Invalid {
                raw: "{".to_owned(),
                reason: "not JSON".to_owned(),
            },
        ),
        Move::TruncatedCall => call(
            TOOL,
            CallInput::Truncated {
                raw: "{".to_owned(),
            },
        ),
    }
}

/// A tool that does what its input says.
struct Deeds(ToolSpec);

struct Deed(String);

impl Tool for Deeds {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        match input.get("do").and_then(Value::as_str) {
            Some("misfit") | None => Err(Refusal::Invalid("misfit".to_owned())),
            Some(deed) => {
                if let Some(path) = deed.strip_prefix("open ") {
                    OPENING.notify_one();
                    drop(std::fs::File::open(path));
                }
                Ok(Box::new(Deed(deed.to_owned())))
            }
        }
    }
}

impl Prepared for Deed {
    fn facts(&self) -> Facts {
        Facts::new(DangerLevel::Dangerous, None)
    }

    fn begins(&self) -> Begins {
        assert!(self.0 != "break", "a fault of the daemon, on purpose");
        Begins::Waited
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            match self.0.as_str() {
                "fail" => Ok(Output::error("failed")),
                "panic" => panic!("a fault of the tool, on purpose"),
                "violate" => Err(Violation {
                    message: "outside".to_owned(),
                }),
                "hang" => {
                    run.cancel.cancelled().await;
                    Ok(Output::error("cancelled"))
                }
                _ => Ok(Output::text("done")),
            }
        })
    }
}

/// Returns a registry with the tool that follows the script.
pub(crate) fn tools() -> Registry {
    let spec = ToolSpec {
        name: TOOL.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object"}).into(),
        category: ToolCategory::Exec,
        danger_level: DangerLevel::Dangerous,
        origin: "core".to_owned(),
    };
    let tools: [Arc<dyn Tool>; 1] = [Arc::new(Deeds(spec))];
    Registry::new(tools)
}

/// Returns an exchange that says "hi" to this provider.
pub(crate) fn setup(provider: Arc<dyn Provider>, message_id: MessageId) -> Setup {
    Setup {
        conversation_id: ConversationId::new("c"),
        message_id,
        content: vec![Part::text("hi")],
        provider,
        provider_id: "scripted".to_owned(),
        first_model: Arc::default(),
        model: "m".to_owned(),
        system: String::new(),
        freedom: Freedom::new(
            TrustLevel::Guided,
            ApprovalPolicy::Ask,
            TrustLevel::Autonomous,
        ),
        on_violation: OnViolation::Stop,
        scope: Scope::everything(),
        max_tokens: None,
        temperature: None,
        thinking: None,
        output: None,
        max_turns: 4,
        timeout_plain: Duration::from_secs(300),
        timeout_tools: Duration::from_secs(300),
        context_reserve: 0,
        compact_at: None,
        max_cost: None,
        max_fresh_tokens: None,
        rates: crate::provider::rates::Rates::new(crate::config::RateLimits::default()),
        pricing: None,
        max_retries: 2,
        restarts: 1,
        cache_key: "k".to_owned(),
    }
}

/// Returns a conversation without a client, whose events go to `events`.
pub(crate) fn context(events: Events, room: Room) -> Context {
    let services = Services {
        settings: crate::config::Current::new(Arc::clone(&CONFIG)),
        locks: crate::tool::locks::Locks::default(),
        exchanges: tokio_util::task::TaskTracker::new(),
        redactor: crate::telemetry::Redactor::default(),
        spill: crate::sandbox::spill::Spill::new(std::env::temp_dir(), 1 << 20),
        audit: crate::audit::Audit::default(),
        room: room.clone(),
        hooks: crate::hooks::Hooks::default(),
        quota: Arc::default(),
        spend: crate::spend::testing::unlimited(&CONFIG.budget),
    };
    let memory = Memory::for_tests();
    let workspace = crate::tool::workspace::testing::with_tools(tools());
    let session = SessionContext {
        id: crate::message::SessionId::new("s"),
        user: crate::users::User::default(),
        tools: Arc::new(Registry::beside(&workspace.registry, [])),
        workspace: Arc::new(workspace),
        events,
        memory: memory.clone(),
        journal: Journal::default(),
        executions: Arc::default(),
        ids: Arc::default(),
        quota: Arc::default(),
        questions: Arc::default(),
        totals: Arc::default(),
        account: Arc::default(),
        // Nobody begins tasks here.
        desk: tokio::sync::mpsc::channel(1).0,
    };
    let id = ConversationId::new("c");
    let history = Arc::new(History::new(room, Journal::default(), id.clone()));
    let memory = memory.for_conversation(&id);
    let conversation = ConversationContext::new(id, history, memory, Arc::default());
    Context {
        services,
        session,
        conversation,
    }
}

/// Checks what must hold of all that was emitted of whole exchanges, in order.
pub(crate) fn check(emitted: &[Event]) -> Result<(), TestCaseError> {
    let mut ended: HashMap<&MessageId, usize> = HashMap::new();
    let mut started: HashMap<&MessageId, usize> = HashMap::new();
    let (mut results, mut planned) = (HashMap::new(), HashMap::new());
    let (mut asked, mut settled) = (HashMap::new(), HashMap::new());
    let mut discarded: Vec<&ToolId> = Vec::new();
    for event in emitted {
        match event {
            Event::ChatStreamStart(it) => *started.entry(&it.message_id).or_insert(0) += 1,
            Event::ChatStreamEnd(it) => *ended.entry(&it.message_id).or_insert(0) += 1,
            Event::ChatToolInputDelta(it) => {
                prop_assert!(!ended.contains_key(&it.message_id));
                planned.insert(&it.tool_id, (&it.message_id, it.turn));
            }
            Event::ChatTurnDiscarded(it) => {
                let of_turn = (&it.message_id, it.turn);
                discarded.extend(
                    planned
                        .iter()
                        .filter(|(id, turn)| **turn == of_turn && !results.contains_key(*id))
                        .map(|(id, _)| *id),
                );
            }
            Event::ChatToolConfirm(it) => {
                prop_assert!(!ended.contains_key(&it.message_id));
                *asked.entry(&it.tool_id).or_insert(0) += 1;
            }
            Event::ChatToolResolved(it) => *settled.entry(&it.tool_id).or_insert(0) += 1,
            Event::ChatToolStart(it) => prop_assert!(!results.contains_key(&it.tool_id)),
            Event::ChatToolResult(it) => {
                prop_assert!(!ended.contains_key(&it.message_id));
                *results.entry(&it.tool_id).or_insert(0) += 1;
            }
            Event::ChatTextDelta(it) | Event::ChatThinkingDelta(it) => {
                prop_assert!(!ended.contains_key(&it.message_id));
            }
            // What panics ends an exchange with it.
            Event::ChatError(it) => prop_assert!(it.code != ChatCode::Internal, "{:?}", it),
            _ => {}
        }
    }
    prop_assert!(ended.values().all(|count| *count == 1), "{:?}", ended);
    prop_assert!(started.values().all(|count| *count == 1), "{:?}", started);
    for id in started.keys() {
        prop_assert!(ended.contains_key(id), "no end for {id}");
    }
    prop_assert_eq!(asked, settled);
    for id in planned.keys() {
        let expected = usize::from(!discarded.contains(id));
        prop_assert_eq!(results.get(id).copied().unwrap_or(0), expected, "{}", id);
    }
    Ok(())
}
