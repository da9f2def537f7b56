//! Whatever provider, tools and client do, in any order: one end for each exchange, one result for
//! each call, one settlement for each question, and a history that is valid.

use std::collections::{HashMap, VecDeque};
use std::sync::{LazyLock, Mutex, PoisonError};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::config::Config;
use crate::exchange::events::Events;
use crate::exchange::history::is_valid;
use crate::message::{Danger, DangerLevel, Model, ToolCategory, ToolSpec, TrustLevel, Usage};
use crate::permission::Scope;
use crate::provider::{
    CallInput, Chunk, ChunkStream, End, ErrorKind, Provider, ProviderError, Request, Stop,
};
use crate::tool::{Facts, Output, Prepared, Refusal, Registry, Run, Tool, Violation};

/// What the model does in one turn, before it ends.
#[derive(Clone, Debug)]
enum Move {
    Say,
    Think,
    Call(&'static str),
    InvalidCall,
    TruncatedCall,
    UnknownTool,
}

/// How a turn ends.
#[derive(Clone, Copy, Debug)]
enum Finish {
    End(Stop),
    Error(ErrorKind),
    BreakOff,
    Refused(ErrorKind),
    Hang,
}

/// What the client does, after so many steps of the scheduler.
#[derive(Clone, Debug)]
enum Act {
    Send(WhenBusy),
    Cancel(bool),
    Verdict(bool),
    CancelTool,
    Close,
}

static CONFIG: LazyLock<Arc<Config>> = LazyLock::new(|| Arc::new(crate::config::for_tests()));

const TOOL: &str = "tool";
const DEEDS: [&str; 6] = ["ok", "fail", "panic", "violate", "hang", "misfit"];

fn moves() -> impl Strategy<Value = Vec<Move>> {
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

fn finishes() -> impl Strategy<Value = Finish> {
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

fn acts() -> impl Strategy<Value = Vec<(u8, Act)>> {
    let one = prop_oneof![
        3 => Just(Act::Send(WhenBusy::Queue)),
        2 => Just(Act::Send(WhenBusy::Steer)),
        1 => Just(Act::Send(WhenBusy::Reject)),
        2 => any::<bool>().prop_map(Act::Cancel),
        4 => any::<bool>().prop_map(Act::Verdict),
        1 => Just(Act::CancelTool),
        1 => Just(Act::Close),
    ];
    prop::collection::vec((0..40_u8, one), 0..12)
}

/// A model that follows a script; past its end it answers in text.
struct Scripted(Mutex<VecDeque<(Vec<Move>, Finish)>>);

impl Provider for Scripted {
    fn stream<'a>(
        &'a self,
        request: Request<'a>,
    ) -> BoxFuture<'a, Result<ChunkStream, ProviderError>> {
        assert!(is_valid(request.messages), "{:?}", request.messages);
        let turn = self.0.lock().unwrap().pop_front();
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
            Some(deed) => Ok(Box::new(Deed(deed.to_owned()))),
        }
    }
}

impl Prepared for Deed {
    fn facts(&self) -> Facts {
        Facts {
            danger: Danger {
                level: DangerLevel::Dangerous,
                reasons: Vec::new(),
            },
            paths: Vec::new(),
            commands: Vec::new(),
            plain: true,
            network: false,
            remember: None,
            timeout: None,
        }
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>>
    where
        Self: 'a,
    {
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

/// Everything that was told, in order.
type Told = Arc<Mutex<Vec<Event>>>;

struct Stage {
    told: Told,
    inbox: mpsc::Sender<Command>,
    session: SessionShared,
    provider: Arc<dyn Provider>,
    cancel: CancellationToken,
    actor: tokio::task::JoinHandle<()>,
}

impl Stage {
    fn new(script: Vec<(Vec<Move>, Finish)>) -> Self {
        let told = Told::default();
        let sink = Arc::clone(&told);
        let session = SessionShared {
            events: Events::new(move |event, _| {
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(event);
            }),
            executions: Arc::default(),
            ids: Arc::default(),
        };
        let spec = ToolSpec {
            name: TOOL.to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            category: ToolCategory::Exec,
            danger_level: DangerLevel::Dangerous,
            origin: "core".to_owned(),
        };
        let tools: [Arc<dyn Tool>; 1] = [Arc::new(Deeds(spec))];
        let services = Services {
            config: Arc::clone(&CONFIG),
            registry: Arc::new(Registry::new(tools)),
            locks: Arc::default(),
            exchanges: tokio_util::task::TaskTracker::new(),
            redactor: crate::telemetry::Redactor::default(),
        };
        let (inbox, commands) = mpsc::channel(INBOX);
        let cancel = CancellationToken::new();
        let conversation = Conversation::new(
            ConversationId::new("c"),
            commands,
            services,
            session.clone(),
            ConversationShared::default(),
            cancel.clone(),
        );
        Self {
            told,
            inbox,
            session,
            provider: Arc::new(Scripted(Mutex::new(script.into()))),
            cancel,
            actor: tokio::spawn(conversation.run()),
        }
    }

    fn send(&self, when_busy: WhenBusy) -> Command {
        Command::Send(Box::new(Send {
            setup: Setup {
                conversation_id: ConversationId::new("c"),
                message_id: self.session.ids.message(),
                content: vec![Part::text("hi")],
                provider: Arc::clone(&self.provider),
                provider_id: "scripted".to_owned(),
                model: "m".to_owned(),
                system: String::new(),
                trust: TrustLevel::Guided,
                scope: Scope::everything(),
                max_tokens: None,
                temperature: None,
                thinking: None,
                max_turns: 4,
                timeout_plain: Duration::from_secs(300),
                timeout_tools: Duration::from_secs(300),
                context_reserve: 0,
                max_retries: 2,
                restarts: 1,
                cache_key: "k".to_owned(),
            },
            history: None,
            when_busy,
            reply_to: None,
            answer: Answer::default(),
        }))
    }

    async fn act(&self, act: &Act) {
        let command = match act {
            Act::Send(when_busy) => Some(self.send(*when_busy)),
            Act::Cancel(queued) => Some(Command::Cancel {
                queued: *queued,
                reply_to: None,
            }),
            Act::Verdict(approved) => self.last_asked().map(|tool_id| Command::Approve {
                verdict: ToolApprove {
                    tool_id,
                    approved: *approved,
                    input: None,
                    remember: crate::protocol::command::Remember::Once,
                    reason: None,
                },
                reply_to: None,
            }),
            Act::CancelTool => self.last_asked().map(Command::CancelTool),
            Act::Close => Some(Command::Close),
        };
        if let Some(command) = command {
            // A conversation that was closed takes nothing more.
            drop(self.inbox.send(command).await);
        }
    }

    fn last_asked(&self) -> Option<ToolId> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.iter().rev().find_map(|event| match event {
            Event::ChatToolConfirm(confirm) => Some(confirm.tool_id.clone()),
            _ => None,
        })
    }

    async fn history(&self) -> Option<Vec<Message>> {
        let (reply, told) = oneshot::channel();
        self.inbox.send(Command::History(reply)).await.ok()?;
        let history = told.await.ok()?;
        Some(history.messages.into_iter().map(Message::from).collect())
    }
}

/// Plays one case to its end and returns what was told and what is remembered.
async fn play(
    script: Vec<(Vec<Move>, Finish)>,
    acts: Vec<(u8, Act)>,
) -> (Vec<Event>, Option<Vec<Message>>) {
    let stage = Stage::new(script);
    stage.act(&Act::Send(WhenBusy::Queue)).await;
    for (steps, act) in acts {
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        stage.act(&act).await;
    }
    // Time is paused and runs on by itself: approvals lapse, hanging turns run into their limit.
    tokio::time::sleep(Duration::from_secs(3_600 * 24)).await;
    let history = stage.history().await;
    stage.cancel.cancel();
    stage.actor.await.unwrap();
    let told = std::mem::take(&mut *stage.told.lock().unwrap_or_else(PoisonError::into_inner));
    (told, history)
}

fn check(told: &[Event]) -> Result<(), TestCaseError> {
    let mut ended: HashMap<&MessageId, usize> = HashMap::new();
    let mut started: HashMap<&MessageId, usize> = HashMap::new();
    let (mut results, mut planned) = (HashMap::new(), HashMap::new());
    let (mut asked, mut settled) = (HashMap::new(), HashMap::new());
    let mut discarded: Vec<&ToolId> = Vec::new();
    for event in told {
        match event {
            Event::ChatStreamStart(it) => *started.entry(&it.message_id).or_insert(0) += 1,
            Event::ChatStreamEnd(it) => *ended.entry(&it.message_id).or_insert(0) += 1,
            Event::ChatToolInputDelta(it) => {
                prop_assert!(!ended.contains_key(&it.message_id));
                planned.insert(&it.tool_id, it.turn);
            }
            Event::ChatTurnDiscarded(it) => {
                discarded.extend(
                    planned
                        .iter()
                        .filter(|(id, turn)| **turn == it.turn && !results.contains_key(*id))
                        .map(|(id, _)| *id),
                );
            }
            Event::ChatToolConfirm(it) => *asked.entry(&it.tool_id).or_insert(0) += 1,
            Event::ChatToolResolved(it) => *settled.entry(&it.tool_id).or_insert(0) += 1,
            Event::ChatToolResult(it) => {
                prop_assert!(!ended.contains_key(&it.message_id));
                *results.entry(&it.tool_id).or_insert(0) += 1;
            }
            Event::ChatTextDelta(it) | Event::ChatThinkingDelta(it) => {
                prop_assert!(!ended.contains_key(&it.message_id));
            }
            _ => {}
        }
    }
    prop_assert!(ended.values().all(|count| *count == 1), "{:?}", ended);
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn anything_in_any_order(
        script in prop::collection::vec((moves(), finishes()), 0..6),
        acts in acts(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (told, history) = runtime.block_on(play(script, acts));
        check(&told)?;
        if let Some(history) = history {
            prop_assert!(is_valid(&history), "{:?}", history);
        }
    }
}
