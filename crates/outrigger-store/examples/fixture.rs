//! Makes a file of the newest schema that has something of all that is kept, for `fixtures/store`:
//!
//!     cargo run -p outrigger-store --example fixture -- fixtures/store/3.db
//!
//! Once, when the schema is new. CONTRIBUTING says what else a new schema takes.

use std::path::Path;
use std::sync::mpsc;

use outrigger_store::sqlite::{Sqlite, Sync};
use outrigger_store::{
    Attachment, Body, CallFacts, CallStatus, Change, Ended, Error, Exchange, FileChange, Message,
    Owner, Queued, Rule, Sent, Store as _, TitleBy, ToolCall, Usage, UsageTokens,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: fixture FILE")?;
    let path = Path::new(&path);
    if path.exists() {
        return Err("it is there: a file of a schema never changes".into());
    }
    let store = Sqlite::start(path, Sync::Full)?;
    write(&store, "session1", session())?;
    let part = Some(("default".to_owned(), Some(2)));
    let from = "session1".to_owned();
    let at_ms = 20;
    write(&store, "fork", vec![Change::Fork { from, part, at_ms }])?;
    futures::executor::block_on(store.close())?;
    Ok(())
}

fn write(store: &Sqlite, session: &str, changes: Vec<Change>) -> Result<(), Error> {
    let (done, written) = mpsc::channel();
    let told = Box::new(move |result| drop(done.send(result)));
    store.write(session, changes, told);
    written.recv().unwrap_or(Err(Error::Closed))
}

/// Something of all that a session has.
fn session() -> Vec<Change> {
    let picture = Attachment {
        hash: [1; 32],
        bytes: vec![7; 20_000],
    };
    let mut changes = vec![
        Change::Create {
            project: Some("/work".to_owned()),
            at_ms: 1,
        },
        Change::Reserve {
            seq: 10_000,
            ids: 100,
        },
        Change::Settings(r#"{"model":"m"}"#.to_owned()),
        Change::Title {
            title: "A title".to_owned(),
            by: TitleBy::User,
        },
        Change::Labels(vec!["a label".to_owned()]),
        said("default", "what is this?", vec![picture]),
        said("default", "a picture", Vec::new()),
        said(
            "default",
            &"words that are deflated ".repeat(100),
            Vec::new(),
        ),
        said("other", "東京 tower", Vec::new()),
        Change::Compacted {
            conversation: "default".to_owned(),
            compacted: Some(r#"{"base":2}"#.to_owned()),
        },
        Change::Began(Exchange {
            id: "m1".to_owned(),
            conversation: "default".to_owned(),
            began_ms: 2,
            end: Some((5, "{}".to_owned())),
        }),
        Change::Began(Exchange {
            id: "m2".to_owned(),
            conversation: "default".to_owned(),
            began_ms: 3,
            end: None,
        }),
        Change::Queued(Queued {
            id: "m3".to_owned(),
            conversation: "default".to_owned(),
            send: r#"{"content":"later"}"#.to_owned(),
        }),
        Change::Sent(Sent {
            id: "c1".to_owned(),
            digest: vec![3; 32],
            answer: "{}".to_owned(),
        }),
        Change::File(FileChange {
            conversation: "default".to_owned(),
            exchange: "m1".to_owned(),
            call: "t1".to_owned(),
            root: "/project".to_owned(),
            path: "a.txt".to_owned(),
            about: "{}".to_owned(),
            diff: "-a\n+b\n".to_owned(),
            before: Some(Attachment {
                hash: [2; 32],
                bytes: b"before".to_vec(),
            }),
            at_ms: 4,
        }),
    ];
    changes.push(Change::Used(Usage {
        at_ms: 4,
        conversation: "default".to_owned(),
        exchange: "m1".to_owned(),
        kind: "turn".to_owned(),
        provider: "p".to_owned(),
        model: "large".to_owned(),
        tokens: UsageTokens {
            input: 100,
            output: 50,
            ..UsageTokens::default()
        },
        micros: Some(1_500),
        estimated: false,
    }));
    // One that was settled, and one that ran when the process ended.
    changes.push(call("t1", CallStatus::Ended(Ended::Success)));
    changes.push(call("t2", CallStatus::Running));
    for (id, owner, rule) in [
        ("r1", Owner::Session, "rule of the session"),
        (
            "r2",
            Owner::Conversation("default".to_owned()),
            "rule of default",
        ),
        ("r3", Owner::None, "rule of all"),
    ] {
        changes.push(Change::Rule(Rule {
            id: id.to_owned(),
            owner,
            rule: rule.to_owned(),
        }));
    }
    changes
}

fn said(conversation: &str, text: &str, attachments: Vec<Attachment>) -> Change {
    Change::Message {
        conversation: conversation.to_owned(),
        message: Message {
            exchange: "m1".to_owned(),
            body: Body {
                text: text.to_owned(),
                words: text.to_owned(),
                attachments,
            },
            at_ms: 4,
        },
    }
}

fn call(id: &str, status: CallStatus) -> Change {
    Change::Call {
        call: ToolCall {
            id: id.to_owned(),
            conversation: "default".to_owned(),
            began: true,
            record: "{}".to_owned(),
            result: None,
        },
        facts: CallFacts {
            tool: "bash".to_owned(),
            provider: "p".to_owned(),
            commands: vec!["ls".to_owned()],
            status,
            at_ms: 4,
            ..CallFacts::default()
        },
    }
}
