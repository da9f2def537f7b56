//! What must hold whatever a conversation has and however its model sums up.

use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::testing::{Compaction, SECRET, Summariser, picture, reply, result, said};
use super::*;
use crate::config::NativeCompaction;
use crate::exchange::history::is_valid;
use crate::message::{NativeReply, Part, Reply};
use crate::provider::testing::wires::accepted_by_all;

/// One step of a conversation.
#[derive(Clone, Debug)]
enum Step {
    Say(usize),
    Show,
    Think,
    /// Calls side by side, each with the size of its result and whether it failed.
    Call(Vec<(usize, bool)>),
    Write(usize),
    Answer(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![4 => 1..200_usize, 2 => 200..3_000_usize, 1 => 3_000..30_000_usize];
    let calls = prop::collection::vec((size.clone(), any::<bool>()), 1..4);
    let step = prop_oneof![
        2 => size.clone().prop_map(Step::Say),
        1 => Just(Step::Show),
        1 => Just(Step::Think),
        5 => calls.prop_map(Step::Call),
        2 => size.clone().prop_map(Step::Write),
        2 => size.prop_map(Step::Answer),
    ];
    prop::collection::vec(step, 1..40)
}

/// Returns the messages of these steps; the first one is the user's.
fn conversation(steps: &[Step]) -> Vec<Message> {
    let mut messages = vec![said("the task")];
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Say(size) => messages.push(said(&format!("say {number} {}", "s".repeat(*size)))),
            Step::Show => messages.push(picture()),
            // Signed by the vendor, whose blocks go back as they came.
            Step::Think => messages.push(Message::Reply(Reply {
                text: "well".to_owned(),
                thinking: "hm ".repeat(50),
                native: Some(NativeReply {
                    wire: "anthropic-messages".to_owned(),
                    provider: "p".to_owned(),
                    model: "m".to_owned(),
                    items: json!([
                        {"type": "thinking", "thinking": "hm ".repeat(50), "signature": "c2ln"},
                        {"type": "text", "text": "well"},
                    ]),
                }),
                ..Reply::default()
            })),
            Step::Answer(size) => messages.push(reply(&"a".repeat(*size), &[])),
            Step::Write(size) => {
                let id = format!("w{number}");
                let path = format!("src/{number}.rs");
                let input = json!({"path": path, "content": "w".repeat(*size)});
                messages.push(reply("", &[(&id, "file_write", input)]));
                messages.push(result(&id, "file_write", "written", false));
            }
            Step::Call(calls) => {
                let ids: Vec<String> = (0..calls.len())
                    .map(|at| format!("t{number}_{at}"))
                    .collect();
                let made: Vec<_> = ids
                    .iter()
                    .map(|id| (id.as_str(), "bash", json!({"command": id})))
                    .collect();
                messages.push(reply("", &made));
                for (id, (size, failed)) in ids.iter().zip(calls) {
                    messages.push(result(id, "bash", &"r".repeat(*size), *failed));
                }
            }
        }
    }
    messages
}

fn summarisers() -> impl Strategy<Value = Summariser> {
    prop::sample::select(vec![
        Summariser::Good,
        Summariser::Empty,
        Summariser::Huge,
        Summariser::Failing,
        Summariser::Echoing,
        Summariser::Calling,
    ])
}

/// Returns all text of messages.
fn text_of(messages: &[Message]) -> String {
    format!("{messages:?}")
}

/// Checks what came of a compaction of `messages`, of which the model did not see all `before`.
fn check(
    messages: &[Message],
    before: Option<&Compacted>,
    compaction: &Compaction,
    outcome: Outcome,
) {
    let history = &compaction.context.conversation.history;
    let (record, compacted) = history.compacted();
    // Nothing is lost, and what the model sees follows from what is kept.
    assert_eq!(record.as_slice(), messages);
    let seen = compaction.seen();
    assert!(is_valid(seen.iter()), "{seen:?}");
    accepted_by_all(&seen);
    assert_eq!(estimate(&seen), history.tokens());
    if outcome != Outcome::Done {
        assert_eq!(compacted.as_ref(), before);
        return;
    }
    let compacted = compacted.unwrap();
    let json = serde_json::to_string(&compacted).unwrap();
    let again: Compacted = serde_json::from_str(&json).unwrap();
    assert_eq!(view::view(&record, &again), *seen);
    let told = compaction.last().unwrap();
    let result = told.result.unwrap();
    assert!(result.after_tokens < told.before_tokens);
    // The user's last message is there once, as it was.
    let last = messages
        .iter()
        .rev()
        .find(|it| matches!(it, Message::User(_)));
    let count = |wanted: &Message| seen.iter().filter(|it| *it == wanted).count();
    let before = |wanted: &Message| messages.iter().filter(|it| *it == wanted).count();
    let last = last.unwrap();
    assert!((1..=before(last)).contains(&count(last)), "{last:?}");
    let text = text_of(&seen);
    // The vendor's own goes back to it as it came.
    let is_native = told.kind == CompactionKind::Native;
    assert!(is_native || !text.contains(SECRET));
    assert!(!format!("{:?}", compaction.events.lock()).contains(SECRET));
    // Paths of what was written, at most 50 here, and what the user said, or how much of it is left out.
    for message in messages {
        match message {
            Message::Reply(reply) => {
                for call in reply.calls.iter().filter(|call| call.name == "file_write") {
                    let path = call.input["path"].as_str().unwrap();
                    assert!(text.contains(path), "{path}");
                }
            }
            Message::User(parts) => {
                let Some(Part::Text { text: words }) = parts.first() else {
                    unreachable!()
                };
                let is_counted = text.contains("more messages of the user are left out");
                assert!(text.contains(words.as_str()) || is_counted, "{words}");
            }
            Message::ToolResult(_) => {}
        }
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(work)
}

proptest! {
    #[test]
    fn what_the_model_sees_is_shorter_valid_and_made_of_what_is_kept(
        steps in steps(),
        summariser in summarisers(),
        share in 20..100_u64,
        native in prop::sample::select(vec![NativeCompaction::Off, NativeCompaction::Anthropic]),
    ) {
        let messages = conversation(&steps);
        // A window that the conversation fills, as far as that.
        let window = estimate(&messages) * 100 / share + 200;
        let compaction = Compaction::with(&messages, Some(window), summariser, native);
        block_on(async {
            let outcome = compaction.run(CompactionTrigger::Auto).await;
            check(&messages, None, &compaction, outcome);
        });
    }

    #[test]
    fn a_second_compaction_goes_on_from_the_first(
        steps in steps(),
        more in steps(),
        first in summarisers(),
    ) {
        let messages = conversation(&steps);
        let window = estimate(&messages) * 5 / 4 + 200;
        let compaction = Compaction::of(&messages, Some(window), first);
        block_on(async {
            compaction.run(CompactionTrigger::Auto).await;
            let more = conversation(&more);
            let history = &compaction.context.conversation.history;
            history.extend(&MessageId::new("m2"), more.clone());
            let all = [messages.clone(), more].concat();
            let (_, before) = history.compacted();
            compaction.context.conversation.breaker.lock().restart();
            let outcome = compaction.run(CompactionTrigger::Auto).await;
            check(&all, before.as_ref(), &compaction, outcome);
            prop_assert!(is_valid(compaction.seen().iter()));
            Ok(())
        })?;
    }
}

/// A long exchange, in which no result is so large that it is left out.
fn long() -> Vec<Message> {
    let steps = (0..60).map(|number| Step::Call(vec![(590, number % 9 == 0)]));
    conversation(&steps.collect::<Vec<_>>())
}

#[tokio::test(start_paused = true)]
async fn results_are_left_out_before_anybody_is_asked() {
    let messages = [
        conversation(&[Step::Call(vec![(60_000, false)])]),
        vec![reply("ok", &[])],
        conversation(&[Step::Answer(9_000)]),
    ]
    .concat();
    let compaction = Compaction::of(&messages, Some(28_000), Summariser::Failing);
    assert_eq!(compaction.run(CompactionTrigger::Auto).await, Outcome::Done);
    assert_eq!(compaction.asked(), 0);
    let told = compaction.last().unwrap();
    assert_eq!(told.kind, CompactionKind::Prune);
    let result = told.result.unwrap();
    assert_eq!((result.messages_replaced, result.summary), (0, None));
}

#[tokio::test(start_paused = true)]
async fn a_summary_by_the_model_or_else_by_code_takes_the_place_of_messages() {
    for (summariser, asked, kind) in [
        (Summariser::Good, 1, CompactionKind::Summary),
        (Summariser::Calling, 2, CompactionKind::Summary),
        (Summariser::Empty, 2, CompactionKind::Mechanical),
        (Summariser::Failing, 2, CompactionKind::Mechanical),
    ] {
        let compaction = Compaction::of(&long(), Some(15_000), summariser);
        assert_eq!(compaction.run(CompactionTrigger::Auto).await, Outcome::Done);
        assert_eq!(compaction.asked(), asked, "{summariser:?}");
        let told = compaction.last().unwrap();
        assert_eq!((told.phase, told.kind), (CompactionPhase::Done, kind));
        let result = told.result.unwrap();
        assert!(result.messages_replaced > 10 && result.messages_kept > 0);
        assert!(result.summary.unwrap().contains("Commands") || kind == CompactionKind::Summary);
    }
}

#[tokio::test(start_paused = true)]
async fn the_vendor_compacts_or_else_a_summary_is_made() {
    let native = NativeCompaction::Anthropic;
    for (summariser, asked, kind) in [
        (Summariser::Good, 1, CompactionKind::Native),
        (Summariser::Calling, 3, CompactionKind::Summary),
        (Summariser::Empty, 3, CompactionKind::Mechanical),
        (Summariser::Failing, 3, CompactionKind::Mechanical),
        (Summariser::Huge, 3, CompactionKind::Mechanical),
    ] {
        let compaction = Compaction::with(&long(), Some(15_000), summariser, native);
        assert_eq!(compaction.run(CompactionTrigger::Auto).await, Outcome::Done);
        assert_eq!(
            (compaction.asked(), compaction.last().unwrap().kind),
            (asked, kind)
        );
        let history = &compaction.context.conversation.history;
        let is_native = kind == CompactionKind::Native;
        let begins_native = || match compaction.seen().first() {
            Some(Message::Reply(reply)) => reply.native.is_some(),
            _ => false,
        };
        for (provider, model, expected) in [
            ("scripted", "m", is_native),
            ("scripted", "n", false),
            ("another", "m", false),
            ("scripted", "m", is_native),
        ] {
            history.show_to(provider, model);
            assert_eq!(begins_native(), expected);
            assert!(is_valid(compaction.seen().iter()));
            assert_eq!(estimate(&compaction.seen()), history.tokens());
        }
        history.show_to("scripted", "n");
        assert!(!history.drop_native());
        history.show_to("scripted", "m");
        assert_eq!(history.drop_native(), is_native);
        assert!(!begins_native() && !history.drop_native());
        assert_eq!(compaction.asked(), asked);
    }
}

#[tokio::test(start_paused = true)]
async fn a_vendor_that_failed_twice_is_asked_only_by_hand() {
    let native = NativeCompaction::Anthropic;
    let compaction = Compaction::with(&long(), Some(15_000), Summariser::Calling, native);
    for (trigger, expected) in [
        (CompactionTrigger::Auto, 3),
        (CompactionTrigger::Auto, 6),
        (CompactionTrigger::Auto, 8),
        (CompactionTrigger::Manual, 11),
    ] {
        compaction.context.conversation.breaker.lock().restart();
        assert_eq!(compaction.run(trigger).await, Outcome::Done);
        assert_eq!(compaction.asked(), expected);
        let history = &compaction.context.conversation.history;
        history.extend(&MessageId::new("m2"), long());
    }
}

#[tokio::test(start_paused = true)]
async fn models_that_were_refused_twice_are_asked_only_by_hand() {
    let compaction = Compaction::of(&long(), Some(15_000), Summariser::Empty);
    for expected in [2, 4, 4] {
        let history = &compaction.context.conversation.history;
        history.extend(&MessageId::new("m2"), long());
        compaction.context.conversation.breaker.lock().restart();
        assert_eq!(compaction.run(CompactionTrigger::Auto).await, Outcome::Done);
        assert_eq!(compaction.asked(), expected);
    }
    compaction
        .context
        .conversation
        .history
        .extend(&MessageId::new("m3"), long());
    assert_eq!(
        compaction.run(CompactionTrigger::Manual).await,
        Outcome::Done
    );
    assert_eq!(compaction.asked(), 6);
}

#[tokio::test(start_paused = true)]
async fn where_system_prompt_and_tools_fill_the_window_nobody_is_asked() {
    let mut compaction = Compaction::of(&long(), Some(15_000), Summariser::Good);
    compaction.setup.system = "s".repeat(90_000);
    for _ in 0..2 {
        assert_eq!(
            compaction.run(CompactionTrigger::Auto).await,
            Outcome::Nothing
        );
    }
    assert_eq!(compaction.asked(), 0);
    let events = compaction.events.lock();
    let notices: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, Event::SessionNotice(it) if it.code == "context_too_small"))
        .collect();
    assert_eq!((notices.len(), events.len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn one_message_that_is_too_large_is_said_to_be_that() {
    let messages = [long(), vec![said(&"x".repeat(120_000))]].concat();
    let compaction = Compaction::of(&messages, Some(15_000), Summariser::Good);
    assert_eq!(
        compaction.run(CompactionTrigger::Auto).await,
        Outcome::Failed
    );
    let told = compaction.last().unwrap();
    assert_eq!(told.phase, CompactionPhase::Failed);
    assert_eq!(told.reason, Some(CompactionFailure::TooSmall));
    assert_eq!(compaction.seen().as_slice(), messages);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_cancelled_changes_nothing() {
    for native in [NativeCompaction::Off, NativeCompaction::Anthropic] {
        cancelled(Compaction::with(
            &long(),
            Some(15_000),
            Summariser::Hanging,
            native,
        ))
        .await;
    }
}

async fn cancelled(compaction: Compaction) {
    let cancel = CancellationToken::new();
    let wish = Wish {
        trigger: CompactionTrigger::Auto,
        mode: None,
        instructions: "",
        on_start: None,
    };
    let work = by_hand(&compaction.setup, &compaction.context, &cancel, wish);
    let (outcome, ()) = tokio::join!(work, async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(outcome, Outcome::Cancelled);
    let told = compaction.last().unwrap();
    assert_eq!(told.reason, Some(CompactionFailure::Cancelled));
    assert_eq!(compaction.seen().as_slice(), long());
}

#[tokio::test(start_paused = true)]
async fn by_hand_no_window_has_to_be_known_and_nothing_may_be_left_to_do() {
    let compaction = Compaction::of(&long(), None, Summariser::Good);
    assert_eq!(
        compaction.run(CompactionTrigger::Manual).await,
        Outcome::Done
    );
    let fresh = Compaction::of(&[said("hi")], None, Summariser::Good);
    assert_eq!(fresh.run(CompactionTrigger::Manual).await, Outcome::Nothing);
    assert_eq!(fresh.events.lock().len(), 0);
}
