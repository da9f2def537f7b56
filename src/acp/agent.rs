//! One connection of an editor: requests in, answers and updates out, each session a task of its own.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::open::{Opening, Start};
use super::rpc::{self, Id, Incoming, RpcError};
use super::session::Order;
use super::{open, wire};
use crate::message::SessionId;
use crate::protocol::SessionCode;
use crate::protocol::command::SessionList;
use crate::runtime::block_in_place_if_large;
use crate::session::UserSessions;

/// The version of the protocol that is spoken, whichever is asked for.
const PROTOCOL_VERSION: u16 = 1;

/// Lines that wait to be written: where a client does not read, sessions wait here, and their logs keep what comes.
pub(super) const OUTGOING: usize = 256;

/// Lines that wait to be taken.
pub(super) const INCOMING: usize = 16;

/// Orders that wait for a session.
const ORDERS: usize = 64;

/// Sessions of a page of `session/list`.
const PAGE: usize = 50;

/// The longest line is longer than this daemon takes.
#[derive(Debug)]
pub(super) struct TooLong;

/// The way to the client. Where it is gone, or the connection is to end, what is written is lost.
#[derive(Clone, Debug)]
pub(super) struct Out {
    lines: mpsc::Sender<String>,
    stop: CancellationToken,
}

impl Out {
    async fn line(&self, line: String) {
        let sending = self.lines.send(line);
        // A client that does not read keeps nobody from ending.
        drop(self.stop.run_until_cancelled(sending).await);
    }

    pub(super) async fn answer(&self, id: &Id, outcome: Result<Value, RpcError>) {
        self.line(rpc::answer(id, outcome)).await;
    }

    pub(super) async fn request(&self, id: &str, method: &str, params: Value) {
        self.line(rpc::request(id, method, &params)).await;
    }

    pub(super) async fn notify(&self, method: &str, params: Value) {
        self.line(rpc::notification(method, &params)).await;
    }

    /// Sends an update of a session.
    pub(super) async fn update(&self, session: &str, update: Value) {
        let params = json!({"sessionId": session, "update": update});
        self.notify("session/update", params).await;
    }
}

/// The sessions of a connection, by their ids.
pub(super) type Live = Arc<Mutex<HashMap<String, mpsc::Sender<Order>>>>;

struct Agent {
    sessions: UserSessions,
    out: Out,
    /// What the client can do; `None` before it said so.
    client: Option<wire::Capabilities>,
    live: Live,
    tasks: TaskTracker,
    /// Ends the connection's sessions.
    stop: CancellationToken,
}

/// Serves a connection until the client ends it or `stop` does; its sessions live on for their grace period.
pub(super) async fn serve(
    sessions: UserSessions,
    mut lines: mpsc::Receiver<Result<String, TooLong>>,
    out: mpsc::Sender<String>,
    stop: CancellationToken,
) {
    let own_stop = stop.child_token();
    let mut agent = Agent {
        sessions,
        out: Out {
            lines: out,
            stop: own_stop.clone(),
        },
        client: None,
        live: Live::default(),
        tasks: TaskTracker::new(),
        stop: own_stop,
    };
    while let Some(Some(line)) = stop.run_until_cancelled(lines.recv()).await {
        match line {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => agent.take(&line).await,
            Err(TooLong) => {
                let most = agent
                    .sessions
                    .daemon()
                    .services
                    .config()
                    .server
                    .max_frame_bytes;
                let problem = format!("a line has more than {most} bytes (server.max_frame_bytes)");
                let error = RpcError::invalid_request(problem);
                agent.out.answer(&Id::NULL, Err(error)).await;
            }
        }
    }
    agent.stop.cancel();
    agent.tasks.close();
    agent.tasks.wait().await;
}

impl Agent {
    async fn take(&mut self, line: &str) {
        match block_in_place_if_large(line, rpc::read) {
            Ok(Incoming::Request { id, method, params }) => {
                if let Err(error) = self.request(&id, &method, params).await {
                    self.out.answer(&id, Err(error)).await;
                }
            }
            Ok(Incoming::Notification { method, params }) => self.notified(&method, &params).await,
            Ok(Incoming::Answer { id, outcome }) => self.answered(&id, outcome).await,
            Ok(Incoming::Stray(id)) => tracing::debug!(?id, "an answer to nothing that was asked"),
            Err(refused) => {
                let (id, error) = *refused;
                self.out.answer(&id, Err(error)).await;
            }
        }
    }

    /// Takes a request. An error is its answer; else it is answered here or by whom it was handed to.
    async fn request(&mut self, id: &Id, method: &str, params: Value) -> Result<(), RpcError> {
        if method == "initialize" {
            let wanted: wire::Initialize = wire::params(params)?;
            self.client = Some(wanted.client_capabilities);
            self.out.answer(id, Ok(self.introduction())).await;
            return Ok(());
        }
        let is_known = method.starts_with("session/") || method == "authenticate";
        if self.client.is_none() && is_known {
            return Err(RpcError::invalid_request("`initialize` comes first"));
        }
        let id = id.clone();
        match method {
            "authenticate" => Err(RpcError::invalid_params(
                "there is nothing to authenticate with: keys of providers are in the daemon's configuration",
            )),
            "session/new" => self.open(id, Opening::New, params),
            "session/load" => self.open(id, Opening::Load, params),
            "session/resume" => self.open(id, Opening::Resume, params),
            "session/list" => self.list(id, params),
            "session/delete" => self.delete(id, params),
            "session/archive" => self.archive(id, params, true),
            "session/unarchive" => self.archive(id, params, false),
            "session/status" => self.status(id, params),
            "session/fork" => self.open(id, Opening::Fork, params),
            "session/prompt" => {
                let (session, prompt) = named::<wire::Prompt>(params)?;
                let steers = prompt.steers();
                let blocks = prompt.prompt;
                self.order(&session, Order::Prompt { id, blocks, steers })
                    .await
            }
            "session/set_mode" => {
                let (session, wanted) = named::<wire::SetMode>(params)?;
                let mode = wanted.mode_id;
                self.order(&session, Order::SetMode { id, mode }).await
            }
            "session/set_config_option" => {
                let (session, wanted) = named::<wire::SetOption>(params)?;
                let (option, value) = (wanted.config_id, wanted.value);
                self.order(&session, Order::SetOption { id, option, value })
                    .await
            }
            "session/set_title" => {
                let (session, wanted) = named::<wire::SetTitle>(params)?;
                let title = wanted.title;
                self.order(&session, Order::SetTitle { id, title }).await
            }
            "session/close" => {
                let wanted: wire::Named = wire::params(params)?;
                self.order(&wanted.session_id, Order::Close { id }).await
            }
            _ => Err(RpcError::no_method(method)),
        }
    }

    fn introduction(&self) -> Value {
        let keeps = self.sessions.daemon().store.is_some();
        let mut session = json!({"resume": {}, "close": {}, "additionalDirectories": {}});
        if let Some(fields) = session.as_object_mut().filter(|_| keeps) {
            for name in ["list", "delete", "fork", "title", "archive", "status"] {
                fields.insert(name.to_owned(), json!({}));
            }
        }
        json!({
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "outrigger", "title": "Outrigger", "version": env!("CARGO_PKG_VERSION")},
            "authMethods": [],
            "agentCapabilities": {
                "loadSession": keeps,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": true},
                "sessionCapabilities": session,
            },
        })
    }

    /// Begins a session, or goes on in one; its task answers.
    fn open(&self, id: Id, opening: Opening, params: Value) -> Result<(), RpcError> {
        let wanted: wire::Open = wire::params(params)?;
        let (own, inbox) = mpsc::channel(ORDERS);
        let start = Start {
            sessions: self.sessions.clone(),
            out: self.out.clone(),
            client: self.client.unwrap_or_default(),
            id,
            opening,
            wanted,
            own,
            inbox,
            live: Arc::clone(&self.live),
            stop: self.stop.clone(),
        };
        self.tasks.spawn(open::run(start));
        Ok(())
    }

    fn list(&self, id: Id, params: Value) -> Result<(), RpcError> {
        let wanted: wire::List = wire::params(params)?;
        let (sessions, out) = (self.sessions.clone(), self.out.clone());
        self.tasks.spawn(async move {
            let project = match &wanted.cwd {
                Some(cwd) => match open::real(cwd).await {
                    Ok(real) => Some(real),
                    Err(error) => return out.answer(&id, Err(error)).await,
                },
                None => None,
            };
            let page = sessions.list(SessionList {
                project,
                limit: Some(PAGE),
                cursor: wanted.cursor,
                ..SessionList::default()
            });
            let shown = page.await.map(|page| {
                // One that has no folder any more cannot be opened in one.
                let listed = page.sessions.into_iter().filter_map(|kept| {
                    // As the client names it, which knows it by that.
                    let cwd = wanted.cwd.clone().or(kept.project)?;
                    let mut row = json!({"sessionId": kept.session_id, "cwd": cwd,
                        "updatedAt": kept.updated_at});
                    if let (Some(title), Some(row)) = (kept.title, row.as_object_mut()) {
                        row.insert("title".to_owned(), json!(title));
                    }
                    Some(row)
                });
                let mut shown = json!({"sessions": listed.collect::<Vec<_>>()});
                if let (Some(next), Some(shown)) = (page.next_cursor, shown.as_object_mut()) {
                    shown.insert("nextCursor".to_owned(), json!(next));
                }
                shown
            });
            out.answer(&id, shown.map_err(RpcError::from)).await;
        });
        Ok(())
    }

    fn delete(&self, id: Id, params: Value) -> Result<(), RpcError> {
        let wanted: wire::Named = wire::params(params)?;
        let (sessions, out) = (self.sessions.clone(), self.out.clone());
        self.tasks.spawn(async move {
            let deleted = sessions.delete(&SessionId::new(wanted.session_id)).await;
            let outcome = match deleted {
                // There is none, which is what was asked for.
                Err(error) if error.code == SessionCode::SessionNotFound => Ok(json!({})),
                deleted => deleted.map(|()| json!({})).map_err(RpcError::from),
            };
            out.answer(&id, outcome).await;
        });
        Ok(())
    }

    /// Puts a session away, or takes it back.
    fn archive(&self, id: Id, params: Value, archived: bool) -> Result<(), RpcError> {
        let wanted: wire::Named = wire::params(params)?;
        let (sessions, out) = (self.sessions.clone(), self.out.clone());
        self.tasks.spawn(async move {
            let session = SessionId::new(wanted.session_id);
            let done = sessions.archive(&session, archived).await;
            let outcome = done.map(|()| json!({})).map_err(RpcError::from);
            out.answer(&id, outcome).await;
        });
        Ok(())
    }

    /// Says whether a session is open, or only kept; changes nothing.
    fn status(&self, id: Id, params: Value) -> Result<(), RpcError> {
        let wanted: wire::Named = wire::params(params)?;
        let (sessions, out) = (self.sessions.clone(), self.out.clone());
        self.tasks.spawn(async move {
            let session = SessionId::new(wanted.session_id);
            let outcome = match sessions.find(&session) {
                Some(_) => Ok("open"),
                None => sessions.is_kept(&session).await.map(|()| "saved"),
            };
            let outcome = outcome.map(|status| json!({ "status": status }));
            out.answer(&id, outcome.map_err(RpcError::from)).await;
        });
        Ok(())
    }

    /// Hands an order to a session of this connection.
    async fn order(&self, session: &str, order: Order) -> Result<(), RpcError> {
        let inbox = self.live.lock().get(session).cloned();
        let inbox = inbox.ok_or_else(|| RpcError::no_session(session))?;
        inbox
            .send(order)
            .await
            .map_err(|_| RpcError::no_session(session))
    }

    async fn notified(&self, method: &str, params: &Value) {
        match method {
            "session/cancel" => {
                if let Some(session) = params.get("sessionId").and_then(Value::as_str) {
                    // One that is not there has nothing to cancel.
                    drop(self.order(session, Order::Cancel).await);
                }
            }
            "$/cancel_request" => {
                let wanted = params.get("requestId").cloned().unwrap_or_default();
                let inboxes: Vec<_> = self.live.lock().values().cloned().collect();
                for inbox in inboxes {
                    drop(inbox.send(Order::CancelRequest(wanted.clone())).await);
                }
            }
            _ => tracing::debug!(method, "a notification that is not known"),
        }
    }

    /// Passes an answer on to the session that asked.
    async fn answered(&self, id: &str, outcome: Result<Value, Value>) {
        if let Some((session, number)) = id.rsplit_once('#')
            && let Ok(number) = number.parse()
        {
            // It may have ended meanwhile.
            drop(self.order(session, Order::Answer { number, outcome }).await);
        }
    }
}

/// Reads parameters that name a session, and the rest of them.
fn named<T: for<'de> serde::Deserialize<'de>>(params: Value) -> Result<(String, T), RpcError> {
    let session = params.get("sessionId").and_then(Value::as_str);
    let session =
        session.ok_or_else(|| RpcError::invalid_params("`sessionId` must be a string"))?;
    Ok((session.to_owned(), wire::params(params)?))
}
