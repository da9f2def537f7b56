//! The way to a session, for its sockets.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Feed;
use crate::exchange::executions::Executions;
use crate::message::{Money, SessionId, ToolId};
use crate::protocol::Request;
use crate::protocol::admin::SessionRow;
use crate::protocol::answer::McpServer;
use crate::protocol::command::McpAdd;
use crate::protocol::event::{Ready, SessionError};
use crate::protocol::record::ExecutionRecord;
use crate::protocol::roles::{SocketId, SocketRole};
use crate::users::Grant;

/// A way to one session, for whoever has been granted it.
#[derive(Clone, Debug)]
pub struct Handle {
    /// Its id.
    pub id: SessionId,
    /// Whose it is, and what they may do who have this.
    pub(super) grant: Arc<Grant>,
    /// Its events.
    pub(crate) feed: Arc<Feed>,
    pub(super) executions: Arc<Executions>,
    pub(super) inbox: mpsc::Sender<Message>,
    /// Whether nobody would miss it: no socket is on it and there is no conversation in it.
    pub(super) spare: Arc<AtomicBool>,
    /// Cancelled when it has to end since another daemon may have it.
    pub(super) tenure: CancellationToken,
    /// Cancelled when it has ended, however.
    pub(super) ended: CancellationToken,
}

#[derive(Debug)]
pub(super) enum Message {
    /// A request, and the socket that asks where it has a name.
    Request(Box<Request>, Option<SocketId>, Arc<Grant>),
    Attach(
        Entrance,
        Arc<Grant>,
        oneshot::Sender<Result<Attachment, AttachRefused>>,
    ),
    /// Resyncs a reader that has everything up to this number.
    Resync(u64, Option<SocketId>, oneshot::Sender<u64>),
    /// Starts an MCP server for the client on it.
    AddServer(
        Box<McpAdd>,
        Arc<Grant>,
        oneshot::Sender<Result<McpServer, SessionError>>,
    ),
    /// What it has cost.
    Spent(oneshot::Sender<Money>),
    /// What an operator sees of it, on the node of this name.
    Row(String, oneshot::Sender<SessionRow>),
    Discard,
    /// Ends it where nobody has come back to it.
    MakeRoom,
}

/// What a socket asks for when it joins a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entrance {
    /// The role that it asks for. One that asks for none drives, and throws out the driver before.
    pub role: Option<SocketRole>,
    /// Whether it drives also where another one does, which approves from then on.
    pub take_over: bool,
    /// Its connection. A client with a role that comes again takes the place of its own socket.
    pub socket: SocketId,
}

impl Entrance {
    /// Returns as what the same socket comes to another session, which it asks for now. To take over was asked for the
    /// session before.
    pub(crate) fn to_another(self) -> Self {
        Self {
            take_over: false,
            socket: self.socket.again(),
            ..self
        }
    }
}

impl Default for Entrance {
    fn default() -> Self {
        Self {
            role: None,
            take_over: false,
            socket: SocketId::new(None),
        }
    }
}

/// Why a socket did not get onto a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachRefused {
    /// Another one drives.
    Driven,
    /// There are as many of its role as there may be.
    Full,
    /// The one that has its place was asked for later.
    Late,
    /// The session works in a folder that its token is not for.
    Elsewhere,
}

/// A socket's place on a session.
#[derive(Debug)]
pub struct Attachment {
    /// Notifies the session when the socket is gone, however it went.
    pub(super) _on_disconnect: DropGuard,
    /// Cancelled when another socket takes the session over.
    pub taken_over: CancellationToken,
    /// Cancelled when it takes what it is sent too slowly.
    pub(crate) too_slow: CancellationToken,
    /// Its name, where it has a role.
    pub(crate) id: Option<SocketId>,
    /// What the socket is sent first where the session is resumed.
    pub ready: Ready,
}

impl Handle {
    /// Puts a socket on the session, in the place of the one before; `None` where the session ended.
    pub async fn attach(&self) -> Option<Attachment> {
        self.enter(Entrance::default()).await?.ok()
    }

    /// Puts a socket on the session, with a role where it asks for one; `None` where the session ended.
    pub(crate) async fn enter(
        &self,
        entrance: Entrance,
    ) -> Option<Result<Attachment, AttachRefused>> {
        let grant = Arc::clone(&self.grant);
        self.ask(|reply| Message::Attach(entrance, grant, reply))
            .await
    }

    /// Returns the number of the last event.
    pub(crate) fn last(&self) -> u64 {
        self.feed.log().last()
    }

    /// Hands a request over; false where the session ended.
    pub async fn request(&self, request: Request) -> bool {
        self.request_of(request, None).await
    }

    /// The same of a socket that may have a name.
    pub(crate) async fn request_of(&self, request: Request, from: Option<SocketId>) -> bool {
        self.inbox
            .send(Message::Request(
                Box::new(request),
                from,
                Arc::clone(&self.grant),
            ))
            .await
            .is_ok()
    }

    /// Has the log begin anew with how things stand, because a socket's place in it is no longer kept; `after` is
    /// the last event that the socket got. Returns the number before the resync, `None` where the session ended.
    ///
    /// A socket with a name is told it alone.
    pub(crate) async fn resync(&self, after: u64, socket: Option<SocketId>) -> Option<u64> {
        self.ask(|reply| Message::Resync(after, socket, reply))
            .await
    }

    /// Starts an MCP server whose tools this session has alone, and which ends when its client is gone. It gets another name
    /// where its own is taken. `None` where the session ended.
    pub(crate) async fn add_server(
        &self,
        wanted: McpAdd,
    ) -> Option<Result<McpServer, SessionError>> {
        let grant = Arc::clone(&self.grant);
        self.ask(|reply| Message::AddServer(Box::new(wanted), grant, reply))
            .await
    }

    /// Returns what the session has cost; `None` where it ended.
    pub(crate) async fn spent(&self) -> Option<Money> {
        self.ask(Message::Spent).await
    }

    /// Returns what an operator sees of it; `node` is where it is. `None` where it ended.
    pub(super) async fn row(&self, node: &str) -> Option<SessionRow> {
        self.ask(|reply| Message::Row(node.to_owned(), reply)).await
    }

    /// Returns what is kept of a call.
    pub(crate) fn record(&self, id: &ToolId) -> Option<ExecutionRecord> {
        self.executions.get(id)
    }

    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(message(reply)).await.ok()?;
        answer.await.ok()
    }

    /// Waits until the session has ended.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Ends a session that nobody has used.
    pub async fn discard(&self) {
        drop(self.inbox.send(Message::Discard).await);
    }
}
