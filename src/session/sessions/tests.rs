//! Sessions that end otherwise than they should, and those that make room for others.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::*;
use crate::conversation::testing::Finish;
use crate::message::ToolSpec;
use crate::protocol::command::Empty;
use crate::protocol::roles::{SocketId, SocketRole};
use crate::protocol::{Request, envelope};
use crate::session::line;
use crate::session::tests::daemon;
use crate::session::{AttachRefused, Entrance};
use crate::store::{Sqlite, Sync};
use crate::tool::{Prepared, Refusal, Tool};
use crate::webhooks::SessionWebhooks;

fn request(frame: &Value) -> Request {
    envelope::read(&frame.to_string()).unwrap().unwrap()
}

/// A tool that panics when it is looked at, once that was said.
struct Trap {
    spec: ToolSpec,
    is_set: Arc<AtomicBool>,
}

impl Tool for Trap {
    fn spec(&self) -> &ToolSpec {
        assert!(!self.is_set.load(Ordering::Relaxed), "a fault, on purpose");
        &self.spec
    }

    fn prepare(&self, _: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        Err(Refusal::Invalid("never called".to_owned()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_panics_leaves_nothing_behind() {
    let daemon = daemon(vec![(Vec::new(), Finish::Hang)], 1 << 20);
    let known = daemon.workspaces.own().registry.snapshot();
    let mut spec = known.values().next().unwrap().spec().clone();
    "trap".clone_into(&mut spec.name);
    let is_set = Arc::new(AtomicBool::new(false));
    let trap: Arc<dyn Tool> = Arc::new(Trap {
        spec,
        is_set: Arc::clone(&is_set),
    });
    daemon.workspaces.own().registry.replace("trap", [trap]);
    let sessions = Sessions::new(Arc::clone(&daemon)).of(Arc::default());
    let session = sessions.create(None).await.unwrap();
    let _socket = session.attach().await.unwrap();
    // A model that never answers keeps its conversation busy.
    let say = json!({"type": "chat:send", "content": "hi"});
    assert!(session.request(request(&say)).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    is_set.store(true, Ordering::Relaxed);
    assert!(
        session
            .request(request(&json!({"type": "tool:list"})))
            .await
    );
    sessions.lost(&session).await;
    assert!(sessions.find(&session.id).is_none());
    daemon.tasks.close();
    let gone = tokio::time::timeout(Duration::from_secs(60), daemon.tasks.wait()).await;
    assert!(gone.is_ok(), "{} tasks are left", daemon.tasks.len());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_somebody_came_back_to_does_not_make_room() {
    let daemon = daemon(Vec::new(), 1 << 20);
    let sessions = Sessions::new(Arc::clone(&daemon)).of(Arc::default());
    let session = sessions.create(None).await.unwrap();
    drop(session.attach().await.unwrap());
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(session.spare.load(Ordering::Relaxed));
    // The socket is on its way when room is made.
    let (reply, attachment) = oneshot::channel();
    session
        .inbox
        .try_send(Message::Attach(Entrance::default(), Arc::default(), reply))
        .unwrap();
    assert!(make_room(&sessions.all.live.lock()));
    let attachment = attachment.await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(sessions.find(&session.id).is_some());
    assert!(
        session
            .request(request(&json!({"type": "session:ping"})))
            .await
    );
    // Nobody holds it any more: it makes room, and is gone from the table.
    drop(attachment);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(make_room(&sessions.all.live.lock()));
    assert!(
        !make_room(&sessions.all.live.lock()),
        "each makes room once"
    );
    sessions.lost(&session).await;
    assert!(sessions.find(&session.id).is_none());
}

#[tokio::test(start_paused = true)]
async fn who_is_alone_with_a_session_keeps_nobody_from_another_one() {
    let daemon = daemon(Vec::new(), 1 << 20);
    let sessions = Sessions::new(daemon).of(Arc::default());
    let (one, two) = (SessionId::new("one"), SessionId::new("two"));
    let alone = sessions.end(&one).await;
    assert!(sessions.all.alone_with(&two).now_or_never().is_some());
    let mut second = Box::pin(sessions.all.alone_with(&one));
    assert!(second.as_mut().now_or_never().is_none());
    drop(alone);
    assert!(
        sessions.all.alone_with(&one).now_or_never().is_none(),
        "in turn"
    );
    drop(second.await);
    drop(sessions.all.alone_with(&two).await);
    assert_eq!(sessions.all.opening.lock().len(), 1, "none is kept");
}

#[tokio::test]
async fn a_session_whose_inbox_is_full_is_kept() {
    let (inbox, _messages) = mpsc::channel(1);
    inbox.try_send(Message::Discard).unwrap();
    let handle = Handle {
        id: SessionId::new("s"),
        grant: Arc::default(),
        feed: Arc::new(Feed::new(
            Log::new(1 << 20, Vec::new()),
            Journal::default(),
            Arc::default(),
            SessionWebhooks::default(),
        )),
        executions: Arc::default(),
        inbox,
        spare: Arc::new(AtomicBool::new(true)),
        tenure: CancellationToken::new(),
        ended: CancellationToken::new(),
    };
    let live = HashMap::from([(handle.id.clone(), handle)]);
    assert!(!make_room(&live));
    assert_eq!(live.len(), 1);
}

#[test]
fn everybody_who_waits_is_woken_by_an_append() {
    let feed = Feed::new(
        Log::new(1 << 20, Vec::new()),
        Journal::default(),
        Arc::default(),
        SessionWebhooks::default(),
    );
    let (old, new) = (feed.grown(), feed.grown());
    feed.append(Event::SessionPingResult(Empty {}), None);
    assert!(futures::future::join(old, new).now_or_never().is_some());
    assert!(feed.grown().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_took_longer_to_get_here_does_not_throw_out_a_later_one() {
    let daemon = daemon(Vec::new(), 1 << 20);
    let sessions = Sessions::new(Arc::clone(&daemon)).of(Arc::default());
    for role in [None, Some(SocketRole::Driver), Some(SocketRole::Observer)] {
        let session = sessions.create(None).await.unwrap();
        let name = Some("a-name-that-nobody-guesses");
        let (before, after) = (SocketId::new(name), SocketId::new(name));
        let enter = async |socket| {
            let entrance = Entrance {
                role,
                socket,
                ..Entrance::default()
            };
            session.enter(entrance).await.unwrap()
        };
        let place = enter(after).await.unwrap();
        assert_eq!(enter(before).await.err(), Some(AttachRefused::Late));
        assert!(!place.taken_over.is_cancelled());
        let again = enter(after.again()).await.unwrap();
        assert!(place.taken_over.is_cancelled() && !again.taken_over.is_cancelled());
    }
}

#[tokio::test]
async fn who_comes_back_where_the_line_is_full_is_told_when_and_who_is_here_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::start(&folder.path().join("s.db"), Sync::Normal).unwrap();
    let mut daemon = daemon(Vec::new(), 1 << 20);
    Arc::get_mut(&mut daemon).unwrap().store = Some(store.into());
    let sessions = Sessions::new(Arc::clone(&daemon)).of(Arc::default());
    let session = sessions.create(None).await.unwrap();
    let (mut places, mut waiting) = line::tests::full(&daemon.line).await;
    let kept = SessionId::new("kept");
    let told = sessions.open(&kept).await.unwrap_err();
    assert_eq!(told.code, SessionCode::RateLimited);
    assert!(told.retry_after_ms.is_some());
    assert!(sessions.open(&session.id).await.unwrap().is_some());
    waiting.shutdown().await;
    places.pop();
    assert!(sessions.open(&kept).await.unwrap().is_none());
}
