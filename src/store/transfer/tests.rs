//! A session goes into a file and back; what is wrong with a file is said, with its line.

mod bounds;

use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_store::{Attachment, Change, Head, TitleBy};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::{Sqlite, Store as _, Sync, body};
use super::*;
use crate::message::{Message, NativeReply, Part, Reply, ToolCall, ToolId, ToolResult};

/// Writes pieces to a file and returns what it says.
fn written(format: SessionFormat, pieces: Vec<Piece>) -> String {
    let mut file = tempfile::tempfile().unwrap();
    let export = Export::new(format, file.try_clone().unwrap());
    let mut each = export.each();
    for piece in pieces {
        assert!(each(piece).is_continue());
    }
    export.end().unwrap();
    contents(&mut file)
}

fn contents(file: &mut File) -> String {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_string(&mut text).unwrap();
    text
}

fn head() -> Piece {
    Piece::Head(Head {
        title: Some("Fix it".to_owned()),
        title_by: TitleBy::User,
        project: Some("/work".to_owned()),
        labels: vec!["a".to_owned()],
        created_ms: 1_000,
        archived_ms: None,
    })
}

fn said(conversation: &str, message: &Message) -> Piece {
    Piece::Message {
        conversation: conversation.to_owned(),
        message: outrigger_store::Message {
            exchange: "m1".to_owned(),
            body: body::of(message),
            at_ms: 2_000,
        },
    }
}

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: ToolId::new(id),
        name: "bash".to_owned(),
        input: json!({"command": "ls `x`"}).as_object().unwrap().clone(),
        provider_call_id: None,
    }
}

fn result(id: &str, text: &str) -> Message {
    Message::ToolResult(ToolResult {
        id: ToolId::new(id),
        name: "bash".to_owned(),
        content: vec![Part::text(text)],
        is_error: false,
    })
}

fn calls(ids: &[&str]) -> Message {
    Message::Reply(Reply {
        calls: ids.iter().map(|id| call(id)).collect(),
        ..Reply::default()
    })
}

/// Reads a file and returns its changes, or what is wrong with it.
fn read(text: &str) -> Result<Vec<Change>, String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    Import::new(file, |named| named.map(str::to_owned))?.collect()
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "\\PC{0,40}",
        2 => ".{0,40}",
        // What is attached, and often the same.
        2 => prop::sample::select(vec!["x".repeat(16 * 1024), "ü\n\"".repeat(9_000)]),
    ]
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = prop_oneof![
        3 => texts().prop_map(Part::text),
        1 => prop::sample::select(vec![10, 20_000]).prop_map(|bytes| Part::Image {
            media_type: "image/png".to_owned(),
            data: base64::Engine::encode(&base64::engine::general_purpose::STANDARD, vec![7; bytes]),
        }),
    ];
    prop::collection::vec(part, 1..4)
}

fn replies() -> impl Strategy<Value = Message> {
    let numbers = prop::sample::select(vec![0.1, 5e-324, 1.797_693_134_862_315_7e308]);
    (texts(), texts(), 0..3_usize, any::<bool>(), numbers).prop_map(
        |(text, thinking, count, is_native, number)| {
            let ids = (0..count).map(|it| format!("t{it}"));
            let native = is_native.then(|| NativeReply {
                wire: "w".to_owned(),
                provider: "p".to_owned(),
                model: "m".to_owned(),
                items: json!([{"z": number, "a": [[u64::MAX]]}]),
            });
            Message::Reply(Reply {
                text,
                thinking,
                calls: ids.map(|id| call(&id)).collect(),
                native,
            })
        },
    )
}

/// Messages of a conversation whose last calls may have no results yet.
fn histories() -> impl Strategy<Value = Vec<Message>> {
    let message = prop_oneof![parts().prop_map(Message::User), replies()];
    let messages = prop::collection::vec((message, texts()), 0..8);
    (messages, 0..3_usize).prop_map(|(messages, missing)| {
        let mut history = Vec::new();
        for (message, output) in messages {
            let calls = match &message {
                Message::Reply(reply) => reply.calls.clone(),
                _ => Vec::new(),
            };
            history.push(message);
            history.extend(calls.iter().map(|call| result(call.id.as_str(), &output)));
        }
        let ends_with_results = history.iter().rev();
        let results = ends_with_results.take_while(|it| matches!(it, Message::ToolResult(_)));
        let missing = missing.min(results.count());
        history.truncate(history.len() - missing);
        history
    })
}

/// Exports a session of a store as JSON lines.
async fn exported(store: &Sqlite, session: &str) -> String {
    let mut file = tempfile::tempfile().unwrap();
    let export = Export::new(SessionFormat::Jsonl, file.try_clone().unwrap());
    assert!(store.export(session, export.each()).await.unwrap());
    export.end().unwrap();
    contents(&mut file)
}

/// Imports it, and returns what the new session exports.
async fn imported(store: &Sqlite, session: &str, text: &str) -> String {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let import = Import::new(file, |named| named.map(str::to_owned)).unwrap();
    store.import(session, Box::new(import)).await.unwrap();
    exported(store, session).await
}

/// Returns a file without when its session was made.
fn without_time(text: &str) -> Vec<Value> {
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    lines[0]["session"]["createdAt"] = Value::Null;
    lines
}

static NEXT: AtomicU64 = AtomicU64::new(0);

proptest! {
    #[test]
    fn what_is_exported_comes_back(
        histories in prop::collection::vec(histories(), 0..3),
        title in prop::option::of("\\PC{1,30}"),
        is_archived in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::start(&folder.path().join("s.db"), Sync::Normal).unwrap();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut changes = vec![Change::Create { project: Some("/work".to_owned()), at_ms: 5 }];
        changes.extend(title.map(|title| Change::Title { title, by: TitleBy::User }));
        changes.push(Change::Labels(vec![format!("l{number}")]));
        if is_archived {
            changes.push(Change::Archived { at_ms: Some(7) });
        }
        for (at, history) in histories.iter().enumerate() {
            for message in history {
                changes.push(Change::Message {
                    conversation: format!("c{at}"),
                    message: outrigger_store::Message {
                        exchange: "m3".to_owned(),
                        body: body::of(message),
                        at_ms: 6,
                    },
                });
            }
        }
        let (done, written) = std::sync::mpsc::channel();
        store.write("one", changes, Box::new(move |result| done.send(result).unwrap()));
        written.recv().unwrap().unwrap();
        let first = runtime.block_on(exported(&store, "one"));
        let second = runtime.block_on(imported(&store, "two", &first));
        prop_assert_eq!(without_time(&first), without_time(&second));
        // Byte for byte, from there on.
        let third = runtime.block_on(imported(&store, "three", &second));
        let rest = |text: &str| text.split_once('\n').map(|(_, rest)| rest.to_owned());
        prop_assert_eq!(rest(&second), rest(&third));
    }

    #[test]
    fn no_text_is_imported_that_is_none(text in ".{0,200}", cut in 0..500_usize) {
        prop_assert!(read(&text).is_err());
        let whole = written(SessionFormat::Jsonl, vec![head(), said("c", &result_free())]);
        let cut = whole.floor_char_boundary(cut.min(whole.trim_end().len() - 1));
        let cut = whole.get(..cut).unwrap();
        prop_assert!(read(cut).is_err(), "{cut}");
    }
}

fn result_free() -> Message {
    Message::User(vec![Part::text("hi")])
}

#[test]
fn what_is_attached_stands_once() {
    let long = Message::User(vec![Part::text("z".repeat(20_000))]);
    let text = written(
        SessionFormat::Jsonl,
        vec![head(), said("a", &long), said("b", &long)],
    );
    assert_eq!(text.matches("{\"attachment\"").count(), 1);
    let changes = read(&text).unwrap();
    let attached = changes.iter().filter_map(|change| match change {
        Change::Message { message, .. } => Some(message.body.attachments.as_slice()),
        _ => None,
    });
    let bytes = vec![b'z'; 20_000];
    let hash = Sha256::digest(&bytes).into();
    for attachments in attached {
        assert_eq!(
            attachments,
            [Attachment {
                hash,
                bytes: bytes.clone()
            }]
        );
    }
}

#[test]
fn a_call_without_a_result_gets_one() {
    let record = json!({
        "toolId": "t2", "conversationId": "a", "provider": "p", "model": "m", "toolName": "bash", "input": {},
        "category": "exec", "danger": {"level": "safe", "reasons": []}, "approval": {"asked": false, "waitedMs": 0},
        "status": "running", "stdoutBytes": 0, "stderrBytes": 0, "truncated": false, "durationMs": 0, "queuedMs": 0,
        "startedAt": "2026-11-20T12:00:00.000Z",
    });
    let known = WireMessage::from(&result("t2", "known"));
    let running = Piece::Call(outrigger_store::ToolCall {
        id: "t2".to_owned(),
        conversation: "a".to_owned(),
        began: true,
        record: record.to_string(),
        result: Some(serde_json::to_string(&known).unwrap()),
    });
    let pieces = vec![
        head(),
        running,
        said("a", &calls(&["t1", "t2", "t3"])),
        said("a", &result("t1", "first")),
        said("b", &result_free()),
    ];
    let changes = read(&written(SessionFormat::Jsonl, pieces)).unwrap();
    let texts: Vec<&str> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Message { message, .. } => Some(message.body.text.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        texts[2].contains("known") && texts[3].contains("no result"),
        "{texts:?}"
    );
    assert!(changes.contains(&Change::Reserve { seq: 0, ids: 3 }));
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    let image = Message::User(vec![Part::text("y".repeat(20_000))]);
    let whole = written(
        SessionFormat::Jsonl,
        vec![
            head(),
            said("c", &image),
            said("c", &calls(&["t1", "t2"])),
            said("c", &result("t1", "1")),
            said("c", &result("t2", "2")),
        ],
    );
    assert!(read(&whole).is_ok());
    assert!(read(whole.trim_end()).is_ok());
    let lines: Vec<&str> = whole.lines().collect();
    // 0 session, 1 attachment, 2 user, 3 calls, 4 and 5 results, 6 end.
    let of = |order: &[usize]| {
        let lines: Vec<&str> = order.iter().map(|&at| lines[at]).collect();
        lines.join("\n")
    };
    let with = |at: usize, from: &str, to: &str| {
        assert!(lines[at].contains(from), "{}", lines[at]);
        let line = lines[at].replacen(from, to, 1);
        let mut lines = lines.clone();
        lines[at] = &line;
        lines.join("\n")
    };
    let deep = format!("{{\"message\":{}", "[".repeat(100_000));
    for (file, expected) in [
        (String::new(), "line 1: it ends before"),
        ("{}".to_owned(), "line 1: it is no session"),
        ("{\"format\":1}".to_owned(), "line 1: it is no session"),
        (of(&[1, 2]), "line 1: it is no session"),
        (
            with(0, "outrigger-session", "other"),
            "line 1: it is no session",
        ),
        (
            with(0, "\"version\":1", "\"version\":2"),
            "line 1: it is of version 2",
        ),
        (with(0, "\"a\"", "\"a\\nb\""), "line 1: field `labels`"),
        (with(0, "Fix it", &"t".repeat(500)), "line 1: the title"),
        (of(&[0, 0]), "line 2: a file holds one session"),
        (of(&[0, 1, 2]), "line 4: it ends before"),
        (of(&[0, 1, 2, 3, 4, 6]), "line 6: 6 lines were written"),
        (of(&[0, 1, 2, 3, 4, 5, 6, 2]), "line 8: nothing may follow"),
        (of(&[0, 2]), "line 2: attachment"),
        (
            with(1, "\"hash\":\"", "\"hash\":\"00"),
            "line 2: the bytes of attachment",
        ),
        (
            with(1, "\"data\":\"", "\"data\":\"!"),
            "line 2: field `data`",
        ),
        (
            with(2, "\"part\":0", "\"part\":7"),
            "line 3: there is no part 7",
        ),
        (
            with(2, "\"hash\":\"", "\"hash\":\"../"),
            "line 3: attachment",
        ),
        (with(2, "\"at\":\"", "\"at\":\"x"), "line 3: \"x"),
        (
            with(2, "\"conversationId\":\"c\"", "\"conversationId\":\"\""),
            "line 3: field `conversationId`",
        ),
        (
            with(2, "\"messageId\":\"m1\"", "\"messageId\":\"m\\n\""),
            "line 3: field `messageId`",
        ),
        (
            with(2, "\"role\":\"user\"", "\"role\":\"root\""),
            "line 3: unknown variant",
        ),
        (
            of(&[0, 1, 2, 4]),
            "line 4: the result of \"t1\" does not follow",
        ),
        (
            of(&[0, 1, 2, 3, 5]),
            "line 5: the result of \"t2\" does not follow",
        ),
        (
            of(&[0, 1, 2, 3, 4, 2]),
            "line 6: call \"t2\" of conversation \"c\" has no result",
        ),
        (
            with(3, "\"id\":\"t2\"", "\"id\":\"t1\""),
            "line 4: one message has two calls \"t1\"",
        ),
        (with(6, "6", "7"), "line 7: 7 lines were written"),
        (
            of(&[0]) + "\n{\"magic\":{}}",
            "line 2: unknown variant `magic`",
        ),
        (of(&[0]) + "\n" + &deep, "line 2: it is nested deeper"),
        (
            of(&[0]) + "\n{\"end\":{\"lines\":1}} x",
            "line 2: trailing characters",
        ),
    ] {
        let problem = read(&file).unwrap_err();
        assert!(problem.starts_with(expected), "{problem} is not {expected}");
    }
    let mut unfinished: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
    unfinished.truncate(5);
    unfinished.push("{\"end\":{\"lines\":5}}".to_owned());
    let problem = read(&unfinished.join("\n")).unwrap_err();
    assert!(problem.contains("call \"t2\""), "{problem}");
}

#[test]
fn times_to_come_are_now_and_ids_are_passed_over() {
    let whole = written(
        SessionFormat::Jsonl,
        vec![head(), said("c", &result_free())],
    );
    let later = whole.replace("1970-01-01T00:00:02.000Z", "9999-01-01T00:00:00Z");
    let later = later.replace("\"m1\"", "\"m4000\"");
    assert_ne!(later, whole);
    let changes = read(&later).unwrap();
    let at = changes.iter().find_map(|change| match change {
        Change::Message { message, .. } => Some(message.at_ms),
        _ => None,
    });
    assert!(at.unwrap() <= super::super::now());
    assert!(changes.contains(&Change::Reserve { seq: 0, ids: 4_000 }));
}

#[test]
fn markdown_is_for_people() {
    let reply = Message::Reply(Reply {
        text: "I look.".to_owned(),
        calls: vec![call("t1")],
        ..Reply::default()
    });
    let picture = Part::Image {
        media_type: "image/png".to_owned(),
        data: "QUJD".to_owned(),
    };
    let output = "1\n2\n3\n4\n```\n6\n7";
    let pieces = vec![
        head(),
        said("a", &Message::User(vec![Part::text("look"), picture])),
        said("a", &reply),
        said("a", &result("t1", output)),
        said("b", &result_free()),
    ];
    let expected = "\
# Fix it

1970-01-01T00:00:01.000Z · `/work` · `a`

## User

look

*[picture, image/png]*

## Assistant

I look.

- **bash** `` {\"command\":\"ls `x`\"} ``

  ````text
  1
  2
  3
  4
  ```
  … 2 more lines
  ````

---

Conversation `b`

## User

hi
";
    assert_eq!(written(SessionFormat::Markdown, pieces), expected);
}
