//! Whatever provider, tools and client do, in any order: one end for each exchange, one result for
//! each call, one settlement for each question, and a history that is valid.

use std::time::Duration;

use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::testing::{CONFIG, Finish, Move, Scripted, check, finishes, moves};
use super::*;
use crate::exchange::context::SessionContext;
use crate::exchange::history::{Room, is_valid};
use crate::exchange::transcript::Events;
use crate::message::{Message, Part};
use crate::permission::{PermissionMap, Scope};
use crate::protocol::command::{ToolApprove, ToolExtend};
use crate::protocol::event::Event;
use crate::provider::{Provider, Stop};

/// What the client does, after so many steps of the scheduler.
#[derive(Clone, Debug)]
enum Act {
    Send(WhenBusy),
    Cancel(bool),
    Verdict(bool),
    Edit(&'static str),
    Extend,
    CancelTool,
    Close,
}

fn acts() -> impl Strategy<Value = Vec<(u8, Act)>> {
    let one = prop_oneof![
        3 => Just(Act::Send(WhenBusy::Queue)),
        2 => Just(Act::Send(WhenBusy::Steer)),
        1 => Just(Act::Send(WhenBusy::Reject)),
        2 => any::<bool>().prop_map(Act::Cancel),
        4 => any::<bool>().prop_map(Act::Verdict),
        1 => prop::sample::select(vec!["fail", "misfit"]).prop_map(Act::Edit),
        1 => Just(Act::Extend),
        1 => Just(Act::CancelTool),
        1 => Just(Act::Close),
    ];
    prop::collection::vec((0..40_u8, one), 0..12)
}

/// Bytes that a history may have.
const ROOM: usize = 1024 * 1024;

/// Everything that was emitted, in order.
type Emitted = Arc<Mutex<Vec<Event>>>;

struct Stage {
    emitted: Emitted,
    inbox: mpsc::Sender<Command>,
    session: SessionContext,
    provider: Arc<dyn Provider>,
    cancel: CancellationToken,
    actor: tokio::task::JoinHandle<()>,
}

impl Stage {
    fn new(script: Vec<(Vec<Move>, Finish)>) -> Self {
        Self::after(ended(), script)
    }

    /// Returns a conversation that begins nothing before another has wound up.
    fn after(before: CancellationToken, script: Vec<(Vec<Move>, Finish)>) -> Self {
        let emitted = Emitted::default();
        let sink = Arc::clone(&emitted);
        let events = Events::new(move |event, _| sink.lock().push(event));
        let context = testing::context(events, Room::new(ROOM, ROOM));
        let session = context.session.clone();
        let (inbox, commands) = mpsc::channel(INBOX);
        let cancel = CancellationToken::new();
        Self {
            emitted,
            inbox,
            session,
            provider: Arc::new(Scripted(Mutex::new(script.into()))),
            actor: tokio::spawn(run(commands, context, cancel.clone(), before)),
            cancel,
        }
    }

    fn send(&self, when_busy: WhenBusy) -> Command {
        Command::Send(Box::new(SendRequest {
            execute: None,
            setup: testing::setup(
                Arc::clone(&self.provider) as Arc<dyn Provider>,
                self.session.ids.message(),
            ),
            history: None,
            when_busy,
            has_settings: false,
            reply_to: None,
            admission: SharedAdmission::default(),
            kept: KeptSend::default(),
        }))
    }

    /// Sends something that is changed first, and returns what was emitted until its exchange ended.
    async fn ended(&self, change: impl FnOnce(&mut SendRequest)) -> Vec<Event> {
        let mut command = self.send(WhenBusy::Queue);
        if let Command::Send(send) = &mut command {
            change(send);
        }
        drop(self.inbox.send(command).await);
        self.until(|event| matches!(event, Event::ChatStreamEnd(_)))
            .await
    }

    /// Returns what was emitted until an event came, which it does.
    async fn until(&self, is_it: impl Fn(&Event) -> bool) -> Vec<Event> {
        loop {
            let emitted = self.emitted.lock().clone();
            if emitted.iter().any(&is_it) {
                return emitted;
            }
            // Time is paused, and goes on where nothing else does.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn act(&self, act: &Act) {
        let command = match act {
            Act::Send(when_busy) => Some(self.send(*when_busy)),
            Act::Cancel(queued) => Some(Command::Cancel {
                queued: *queued,
                unread: Unread::default(),
                reply_to: None,
            }),
            Act::Verdict(approved) => self.verdict(*approved, None),
            Act::Edit(deed) => self.verdict(true, json!({ "do": deed }).as_object().cloned()),
            Act::Extend => self.last_asked().map(|tool_id| Command::Question {
                action: Action::Extend(ToolExtend {
                    tool_id,
                    request_id: None,
                    host: None,
                }),
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

    fn verdict(&self, approved: bool, input: Option<Map<String, Value>>) -> Option<Command> {
        let tool_id = self.last_asked()?;
        let verdict = ToolApprove {
            unattended: false,
            tool_id,
            host: None,
            approved,
            input,
            remember: crate::protocol::command::Remember::Once,
            folder: None,
            reason: None,
        };
        Some(Command::Question {
            action: Action::Approve(verdict),
            reply_to: None,
        })
    }

    fn last_asked(&self) -> Option<ToolId> {
        let emitted = self.emitted.lock();
        emitted.iter().rev().find_map(|event| match event {
            Event::ChatToolConfirm(confirm) => Some(confirm.tool_id.clone()),
            _ => None,
        })
    }

    async fn history(&self) -> Option<Vec<Message>> {
        let (reply, answer) = tokio::sync::oneshot::channel();
        let look = Command::Look(Box::new(|view| {
            drop(reply.send(view.newest_history(usize::MAX)));
        }));
        self.inbox.send(look).await.ok()?;
        let history = answer.await.ok()?;
        Some(history.messages.into_iter().map(Message::from).collect())
    }
}

/// Returns the token of a conversation that ended long ago.
fn ended() -> CancellationToken {
    let ended = CancellationToken::new();
    ended.cancel();
    ended
}

/// Plays one case to its end and returns what was emitted and what is remembered.
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
    let emitted = std::mem::take(&mut *stage.emitted.lock());
    (emitted, history)
}

fn said(text: &str) -> Message {
    Message::User(vec![Part::text(text)])
}

#[tokio::test(start_paused = true)]
async fn what_was_said_is_remembered_where_no_model_is_found() {
    let stage = Stage::new(Vec::new());
    let earlier = WireMessage::from(&said("earlier"));
    let emitted = stage.ended(|send| {
        send.setup.model = String::new();
        send.history = Some(vec![earlier]);
    });
    let is_error = |event: &Event| matches!(event, Event::ChatError(_));
    assert!(emitted.await.iter().any(is_error));
    let history = stage.history().await.unwrap();
    assert_eq!(history, [said("earlier"), said("hi")]);
}

#[tokio::test(start_paused = true)]
async fn who_was_answered_that_an_exchange_started_gets_its_beginning_and_its_end() {
    let before = CancellationToken::new();
    let stage = Stage::after(before.clone(), Vec::new());
    stage.act(&Act::Send(WhenBusy::Queue)).await;
    stage.act(&Act::Send(WhenBusy::Queue)).await;
    for _ in 0..2 {
        stage.act(&Act::Cancel(false)).await;
    }
    stage.act(&Act::Send(WhenBusy::Queue)).await;
    assert_eq!(stage.history().await.unwrap(), [said("hi")]);
    before.cancel();
    let is_last =
        |event: &Event| matches!(event, Event::ChatStreamEnd(it) if it.message_id.as_str() == "m3");
    let emitted = stage.until(is_last).await;
    check(&emitted).unwrap();
    let of_first = emitted.iter().filter_map(|event| match event {
        Event::ChatStreamStart(it) => Some(("start", it.message_id.to_string())),
        Event::ChatStreamEnd(it) => Some((word_of(it.stop_reason), it.message_id.to_string())),
        Event::ChatQueued(it) => Some((
            ["first", "second"][it.position - 1],
            it.message_id.to_string(),
        )),
        _ => None,
    });
    let of_first: Vec<_> = of_first.collect();
    let expected = [
        ("first", "m2"),
        ("start", "m1"),
        ("cancelled", "m1"),
        ("second", "m3"),
        ("start", "m2"),
        ("end", "m2"),
        ("start", "m3"),
        ("end", "m3"),
    ];
    assert_eq!(of_first, expected.map(|(what, id)| (what, id.to_owned())));
}

fn word_of(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Cancelled => "cancelled",
        _ => "end",
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_steered_after_a_cancel_is_queued_and_answered() {
    let stage = Stage::new(vec![(vec![Move::Call("hang")], Finish::End(Stop::ToolUse))]);
    stage.act(&Act::Send(WhenBusy::Queue)).await;
    let is_asked = |event: &Event| matches!(event, Event::ChatToolConfirm(_));
    stage.until(is_asked).await;
    stage.act(&Act::Verdict(true)).await;
    stage
        .until(|event| matches!(event, Event::ChatToolStart(_)))
        .await;
    // Both come before the exchange has wound up.
    stage.act(&Act::Cancel(false)).await;
    stage.act(&Act::Send(WhenBusy::Steer)).await;
    let is_second =
        |event: &Event| matches!(event, Event::ChatStreamEnd(it) if it.message_id.as_str() == "m2");
    let emitted = stage.until(is_second).await;
    check(&emitted).unwrap();
    let ends = emitted.iter().filter_map(|event| match event {
        Event::ChatStreamEnd(it) => Some((it.message_id.to_string(), it.stop_reason, it.turns)),
        _ => None,
    });
    let expected = [
        ("m1".to_owned(), StopReason::Cancelled, 1),
        ("m2".to_owned(), StopReason::EndTurn, 1),
    ];
    assert_eq!(ends.collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_fault_settles_open_questions_before_their_calls() {
    let calls = vec![Move::Call("ok"), Move::Call("break")];
    let stage = Stage::new(vec![(calls, Finish::End(Stop::ToolUse))]);
    drop(stage.inbox.send(stage.send(WhenBusy::Queue)).await);
    stage
        .until(|event| matches!(event, Event::ChatToolConfirm(it) if it.tool_id.as_str() == "t2"))
        .await;
    stage.act(&Act::Verdict(true)).await;
    let emitted = stage
        .until(|event| matches!(event, Event::ChatStreamEnd(_)))
        .await;
    let of_first = emitted.iter().filter_map(|event| match event {
        Event::ChatToolResolved(it) if it.tool_id.as_str() == "t1" => Some("resolved"),
        Event::ChatToolResult(it) if it.tool_id.as_str() == "t1" => Some("result"),
        _ => None,
    });
    assert_eq!(of_first.collect::<Vec<_>>(), ["resolved", "result"]);
}

#[tokio::test(start_paused = true)]
async fn the_limit_that_was_reached_is_named() {
    let nothing = Scope::new(None, Some(&PermissionMap::new())).unwrap();
    for (scope, setting) in [
        (Scope::everything(), "chat.timeout_tools"),
        (nothing, "chat.timeout_plain"),
    ] {
        let stage = Stage::new(vec![(Vec::new(), Finish::Hang)]);
        let emitted = stage.ended(|send| send.setup.scope = scope).await;
        let error = emitted.iter().find_map(|event| match event {
            Event::ChatError(error) => Some(error.clone()),
            _ => None,
        });
        let error = error.unwrap();
        assert_eq!(error.code, ChatCode::ExchangeTimeout);
        assert!(error.hint.unwrap().contains(setting));
        assert_eq!(error.message, "the exchange took longer than 300 s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_stays_open_while_somebody_is_at_it_and_not_for_ever() {
    let stage = Stage::new(vec![(vec![Move::Call("ok")], Finish::End(Stop::ToolUse))]);
    stage.act(&Act::Send(WhenBusy::Queue)).await;
    let asked = stage
        .until(|event| matches!(event, Event::ChatToolConfirm(_)))
        .await;
    let asked_at = Instant::now();
    let is_resolved = |event: &Event| matches!(event, Event::ChatToolResolved(_));
    assert!(!asked.iter().any(is_resolved));
    let (emitted, open) = loop {
        // A sign every 20 s keeps a question of 30 s open.
        tokio::time::sleep(Duration::from_secs(20)).await;
        let emitted = stage.emitted.lock().clone();
        if emitted.iter().any(is_resolved) {
            break (emitted, asked_at.elapsed());
        }
        stage.act(&Act::Extend).await;
    };
    let longest = CONFIG.approval.max_timeout;
    assert!(
        open >= longest && open < longest + Duration::from_secs(60),
        "{open:?}"
    );
    let expired = emitted.iter().any(|event| {
        matches!(event, Event::ChatToolResolved(it) if it.outcome == crate::protocol::event::Outcome::Expired)
    });
    assert!(expired);
    let extended = |event: &&Event| matches!(event, Event::ChatToolExtended(_));
    assert!(emitted.iter().filter(extended).count() > 80);
    check(&emitted).unwrap();
}

proptest! {
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
        let (emitted, history) = runtime.block_on(play(script, acts));
        check(&emitted)?;
        if let Some(history) = history {
            prop_assert!(is_valid(&history), "{:?}", history);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_history_has_no_room_for_is_refused_and_loses_nothing() {
    let stage = Stage::new(Vec::new());
    let half = || vec![Part::text("x".repeat(ROOM * 2 / 3))];
    let emitted = stage.ended(|send| send.setup.content = half()).await;
    assert!(!emitted.iter().any(|it| matches!(it, Event::ChatError(_))));
    stage.emitted.lock().clear();
    // Neither a message nor a history of the client's own.
    let long = || {
        Some(vec![WireMessage::from(&Message::User(vec![Part::text(
            "x".repeat(ROOM),
        )]))])
    };
    for (content, history) in [(half(), None), (vec![Part::text("hi")], long())] {
        let emitted = stage
            .ended(|send| (send.setup.content, send.history) = (content, history))
            .await;
        let errors = emitted.iter().filter_map(|it| match it {
            Event::ChatError(error) => Some(error),
            _ => None,
        });
        let errors: Vec<_> = errors.collect();
        let [error] = errors.as_slice() else {
            panic!("{emitted:?}");
        };
        assert_eq!(error.code, ChatCode::HistoryFull);
        assert!(error.message.contains("1 MiB"), "{}", error.message);
        assert!(error.hint.is_some());
        stage.emitted.lock().clear();
    }
    assert_eq!(stage.history().await.unwrap().len(), 2);
    // A shorter one makes room.
    let emitted = stage.ended(|send| send.history = Some(Vec::new())).await;
    assert!(!emitted.iter().any(|it| matches!(it, Event::ChatError(_))));
    assert_eq!(stage.history().await.unwrap().len(), 2);
}
