//! A file system that hangs holds up the call that looks at it, and nobody else.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::conversation::testing::OPENING;
use crate::protocol::event::Event;
use crate::provider::Stop;

/// When the hang ends though nothing that is waited for has come: the test fails then, and does not hang itself.
const WATCHDOG: Duration = Duration::from_secs(60);

/// A session with its socket.
pub(super) struct Peer {
    session: Handle,
    _socket: Attachment,
    read: u64,
}

impl Peer {
    pub(super) async fn new(sessions: &UserSessions) -> Self {
        let session = sessions.create(None).await.unwrap();
        let socket = session.attach().await.unwrap();
        Self {
            session,
            _socket: socket,
            read: 0,
        }
    }

    pub(super) async fn say(&self, request: Value) {
        let request = envelope::read(&request.to_string()).unwrap().unwrap();
        assert!(self.session.request(request).await);
    }

    /// Waits for an event and returns it.
    pub(super) async fn event(&mut self, wanted: impl Fn(&Event, &Value) -> bool) -> Value {
        loop {
            let feed = Arc::clone(&self.session.feed);
            let grown = feed.grown();
            let mut frames = Vec::new();
            while self.session.feed.read(self.read, 1, None, &mut frames)
                != ReadResult::UpTo(self.read)
            {
                self.read += 1;
                let frame: Value = serde_json::from_str(&frames.pop().unwrap()).unwrap();
                let event = serde_json::from_value(frame.clone()).unwrap();
                if wanted(&event, &frame) {
                    return frame;
                }
            }
            grown.await;
        }
    }

    async fn ping(&mut self) {
        self.say(json!({"type": "session:ping", "id": "p"})).await;
        self.event(|event, _| matches!(event, Event::SessionPingResult(_)))
            .await;
    }
}

#[tokio::test]
async fn nobody_waits_for_a_file_system_that_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("hangs");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    // Opening it blocks until somebody opens it to write.
    let hangs: &'static str = Box::leak(format!("open {}", fifo.display()).into_boxed_str());
    let calls = |deed| (vec![Move::Call(deed)], Finish::End(Stop::ToolUse));
    let done = (vec![Move::Say], Finish::End(Stop::EndTurn));
    let script = vec![calls(hangs), calls("ok"), done];
    let sessions = Sessions::new(daemon(script, 1 << 20)).of(Arc::default());
    let released = Arc::new(AtomicBool::new(false));
    let (late, path) = (Arc::clone(&released), fifo.clone());
    let (stop_watching, stopped) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        late.store(stopped.recv_timeout(WATCHDOG).is_err(), Ordering::Relaxed);
        // Both that hang go on.
        let mut open = std::fs::OpenOptions::new();
        drop(open.read(true).write(true).open(&path));
    });

    let (mut one, mut other) = (Peer::new(&sessions).await, Peer::new(&sessions).await);
    one.say(json!({"type": "chat:send", "content": "hi"})).await;
    OPENING.notified().await;
    other.ping().await;
    one.ping().await;
    // What hangs is given up with its exchange.
    one.say(json!({"type": "chat:cancel"})).await;
    one.event(|event, _| matches!(event, Event::ChatStreamEnd(_)))
        .await;

    // The check of an edited input hangs, and its question is open until somebody says no.
    one.say(json!({"type": "chat:send", "content": "again"}))
        .await;
    let confirm = one
        .event(|event, _| matches!(event, Event::ChatToolConfirm(_)))
        .await;
    let tool_id = &confirm["payload"]["toolId"];
    let edited = json!({"type": "chat:tool-approve", "id": "edit", "toolId": tool_id, "approved": true,
        "input": {"do": hangs}});
    one.say(edited).await;
    OPENING.notified().await;
    other.ping().await;
    one.ping().await;
    let denied =
        json!({"type": "chat:tool-approve", "id": "no", "toolId": tool_id, "approved": false});
    one.say(denied).await;
    let late_edit = one.event(|_, frame| frame["replyTo"] == "edit").await;
    assert_eq!(late_edit["payload"]["code"], "approval_not_found");
    let answer = one.event(|_, frame| frame["replyTo"] == "no").await;
    assert_eq!(answer["payload"]["accepted"], true);
    one.event(|event, _| matches!(event, Event::ChatStreamEnd(_)))
        .await;
    assert!(!released.load(Ordering::Relaxed), "somebody waited for it");
    drop(stop_watching);
    watchdog.join().unwrap();
}
