//! MCP servers: programs and endpoints of others whose tools the model may call.
//!
//! One actor for each server (`server`) starts it off the way to ready, keeps the list of its tools
//! in the daemon's registry, and starts it again when it is gone. A call (`tool`) goes straight to
//! the connection. A server is trusted with nothing: what it says of its tools' danger is ignored
//! (`definition`), its answers are marked as other people's words (`content`), and it runs in the
//! sandbox with a policy of its own (`launch`). Whether a call may run is decided elsewhere.

mod asking;
mod audience;
mod catalog;
mod client;
mod connection;
mod content;
mod definition;
mod elicitation;
mod handle;
mod hint;
mod intake;
mod launch;
mod lists;
mod names;
mod progress;
mod prompt;
mod roots;
mod sampling;
mod server;
mod sign_in;
mod sse;
mod subscriptions;
mod tool;
mod transport;
mod wire;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::service::ServiceError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::McpServerConfig;
use crate::http::Clients;
use crate::message::SessionId;
use crate::notices::Notices;
use crate::protocol::answer::{McpAuthState, McpServer};
use crate::protocol::event::McpAuthRequired;
use crate::telemetry::Redactor;
use crate::tool::Registry;
use crate::tool::exec::Exec;

pub use asking::Reach;
use audience::Audience;
pub use audience::Ear;
use handle::Handle;
pub use launch::Launcher;
use server::Server;
pub(crate) use sign_in::CALLBACK;
pub use sign_in::{Answer, SignIns};
use sign_in::{Demand, SignIn};

/// The most servers at once.
const MAX_SERVERS: usize = 100;

/// What servers are run with.
pub struct Context {
    /// Where the tools of programs go: they run in the daemon's own project.
    pub registry: Arc<Registry>,
    /// Where the tools of endpoints go: to every session.
    pub everywhere: Arc<Registry>,
    /// How programs are started, or why none is: there is no project.
    pub launcher: Result<Launcher, String>,
    /// How endpoints are reached.
    pub clients: Clients,
    /// Takes secrets out of what they say.
    pub redactor: Redactor,
    /// Bytes of text of one answer given to the model.
    pub output_cap: usize,
    /// Where all sessions are notified.
    pub notices: Notices,
    /// What is signed in to.
    pub sign_ins: Arc<SignIns>,
    /// Whose sign-ins they are; empty for the daemon's own.
    pub user: String,
}

/// The MCP servers of the daemon.
pub struct Mcp {
    context: Arc<Context>,
    // Held for a look at the table, never across an await.
    servers: Mutex<BTreeMap<String, Running>>,
    /// Those that serve one session alone; locked after `servers`.
    own: Mutex<BTreeMap<(SessionId, String), Handle>>,
    /// Who hears what servers say by themselves.
    audience: Arc<Audience>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Whose a server is that serves one session alone, and what it has there.
pub struct Own {
    /// The session.
    pub owner: SessionId,
    /// Where its tools go.
    pub registry: Arc<Registry>,
    /// What programs are run with in the session's project.
    pub exec: Option<Exec>,
    /// Where the session alone is notified.
    pub notices: Notices,
    /// Whose the session is.
    pub user: String,
}

struct Running {
    handle: Handle,
    task: JoinHandle<()>,
}

/// Why a request about a server failed; reads as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct McpError(String);

/// Why a request to a server came to nothing; reads after the server's name.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("is not there: {0}")]
    Gone(String),
    #[error("asks the user for input, which is not possible here")]
    Input,
    #[error("gave an answer that is not passed on: {0}")]
    Unfit(String),
    #[error("tells of {0} resources already, which are the most")]
    Full(usize),
    #[error("does not tell when a resource changes")]
    NoSubscriptions,
    #[error("failed: {}", connection::of_sdk(.0))]
    Service(#[from] ServiceError),
}

impl Mcp {
    /// No servers yet. `tasks` are waited for at the end.
    pub fn new(context: Context, tasks: TaskTracker) -> Self {
        Self {
            context: Arc::new(context),
            servers: Mutex::default(),
            own: Mutex::default(),
            audience: Arc::default(),
            tasks,
            stop: CancellationToken::new(),
        }
    }

    /// Starts the servers of the configuration, all at once and in the background.
    pub fn start(&self, servers: &BTreeMap<String, McpServerConfig>) {
        for (name, config) in servers {
            if let Err(error) = self.add(name, config.clone()) {
                tracing::warn!(server = name, %error, "an MCP server is not started");
            }
        }
    }

    /// Ends all servers side by side; their tasks end with the daemon's.
    pub fn shut_down(&self) {
        self.stop.cancel();
    }

    /// Has the servers that a session may call, and that wait for their user, look whether another process has signed in.
    pub fn seek(&self, session: &SessionId) {
        self.all(session).iter().for_each(Handle::seek);
    }

    /// How all servers are, by name.
    pub fn list(&self) -> Vec<McpServer> {
        let servers = self.servers.lock();
        servers.values().map(|server| server.handle.row()).collect()
    }

    /// Starts a server, unless there is one of that name, or too many.
    pub fn add(&self, name: &str, config: McpServerConfig) -> Result<McpServer, McpError> {
        let mut servers = self.servers.lock();
        if servers.contains_key(name) {
            return Err(McpError(format!(
                "there is an MCP server `{name}` already; remove it first"
            )));
        }
        if servers.len() >= MAX_SERVERS {
            return Err(McpError(format!(
                "there are {MAX_SERVERS} MCP servers already"
            )));
        }
        let stop = self.stop.child_token();
        let (server, handle) = Server::new(
            name,
            config,
            Arc::clone(&self.context),
            (&self.audience, None),
            stop,
        );
        let task = self.tasks.spawn(server.run());
        let row = handle.row();
        servers.insert(name.to_owned(), Running { handle, task });
        Ok(row)
    }

    /// Starts a server for one session alone, under a name that no other one has there: `x-2` where `x` is taken.
    pub fn add_own(
        &self,
        name: &str,
        config: McpServerConfig,
        own: Own,
    ) -> Result<McpServer, McpError> {
        let servers = self.servers.lock();
        let mut all = self.own.lock();
        if servers.len() + all.len() >= MAX_SERVERS {
            return Err(McpError(format!(
                "there are {MAX_SERVERS} MCP servers already"
            )));
        }
        let Own {
            owner,
            registry,
            exec,
            notices,
            user,
        } = own;
        let is_free = |name: &String| {
            !servers.contains_key(name) && !all.contains_key(&(owner.clone(), name.clone()))
        };
        let others = (2..=MAX_SERVERS + 1).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(others);
        let name = names.find(is_free).unwrap_or_else(|| name.to_owned());
        let launcher = self.context.launcher.as_ref().map_err(String::clone);
        let context = Context {
            everywhere: Arc::clone(&registry),
            registry,
            launcher: launcher.map(|launcher| match exec {
                Some(exec) => launcher.within(exec),
                None => launcher.clone(),
            }),
            clients: self.context.clients.clone(),
            redactor: self.context.redactor.clone(),
            output_cap: self.context.output_cap,
            notices,
            sign_ins: Arc::clone(&self.context.sign_ins),
            user,
        };
        let stop = self.stop.child_token();
        let (server, handle) = Server::new(
            &name,
            config,
            Arc::new(context),
            (&self.audience, Some(owner.clone())),
            stop,
        );
        self.tasks.spawn(server.run());
        let row = handle.row();
        all.insert((owner, name), handle);
        Ok(row)
    }

    /// How the servers are that serve this session alone.
    pub fn list_of(&self, owner: &SessionId) -> Vec<McpServer> {
        let all = self.own.lock();
        let own = all.iter().filter(|((of, _), _)| of == owner);
        own.map(|(_, handle)| handle.row()).collect()
    }

    /// Has the programs that serve this session alone be told of another folder.
    pub fn set_root(&self, owner: &SessionId, folder: Option<&Path>) {
        let all = self.own.lock();
        for (_, handle) in all.iter().filter(|((of, _), _)| of == owner) {
            handle.roots.set_project(folder);
        }
    }

    /// Ends all servers that serve this session alone. Their tools are gone at once; their tasks end with the daemon's.
    pub fn end_own(&self, owner: &SessionId) {
        self.own.lock().retain(|(of, _), handle| {
            let stays = of != owner;
            if !stays {
                handle.end();
            }
            stays
        });
    }

    /// Ends a server and forgets it; returns when nothing of it is left.
    pub async fn remove(&self, name: &str) -> Result<McpServer, McpError> {
        let running = self.servers.lock().remove(name);
        let Running { handle, task } = running.ok_or_else(|| self.unknown(name))?;
        handle.stop.cancel();
        if let Err(error) = task.await {
            tracing::error!(server = name, %error, "an MCP server's task failed");
        }
        Ok(McpServer {
            state: crate::protocol::answer::McpState::Stopped,
            // What went wrong before is over.
            error: None,
            ..handle.row()
        })
    }

    /// Takes where the daemon listens: pages where somebody signs in send their answer there.
    pub fn listens_at(&self, address: SocketAddr) {
        let ip = match address.ip() {
            // Whoever opened the page has the daemon on this machine, or another `redirect`.
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        let origin = format!("http://{}", SocketAddr::new(ip, address.port()));
        self.context.sign_ins.listens_at(&origin);
    }

    /// Takes what a page answered; returns the server's name.
    ///
    /// # Errors
    ///
    /// Where no sign-in waits for it, or it leads to no tokens.
    pub async fn answered(&self, answer: Answer) -> Result<String, McpError> {
        self.context.sign_ins.answered(answer).await
    }

    /// Begins a sign-in, or takes what somebody pasted of its end; of a server of this session alone before the daemon's.
    ///
    /// # Errors
    ///
    /// Where there is no such server, it does not sign in, or it fails.
    pub async fn sign_in(
        &self,
        owner: &SessionId,
        server: &str,
        code: Option<String>,
        url: Option<&str>,
    ) -> Result<McpAuthState, McpError> {
        let sign_in = self.sign_in_of(owner, server)?;
        let said = |why: String| McpError(format!("the MCP server `{server}`: {why}"));
        let asked = match (&code, url) {
            (None, None) if sign_in.is_done_elsewhere().await => None,
            (None, None) => Some(sign_in.begin(Demand::default()).await.map_err(said)?),
            _ => {
                sign_in.pasted(code, url).await.map_err(said)?;
                None
            }
        };
        Ok(McpAuthState {
            server: server.to_owned(),
            signed_in: asked.is_none(),
            asked,
        })
    }

    /// Forgets the sign-in at a server, which is connected to anew; returns its row.
    ///
    /// # Errors
    ///
    /// Where there is no such server, or it does not sign in.
    pub async fn sign_out(&self, owner: &SessionId, server: &str) -> Result<McpServer, McpError> {
        self.sign_in_of(owner, server)?.sign_out().await;
        let handle = self.handle_of(owner, server)?;
        handle.signed_out();
        Ok(handle.row())
    }

    /// Lists what users are asked now by the daemon's own servers.
    pub fn asked(&self) -> Vec<McpAuthRequired> {
        let servers = self.servers.lock();
        let sign_ins = servers.values().filter_map(|it| it.handle.sign_in.as_ref());
        sign_ins.filter_map(|sign_in| sign_in.asks()).collect()
    }

    fn handle_of(&self, owner: &SessionId, server: &str) -> Result<Handle, McpError> {
        let own = self.own.lock();
        let own = own.get(&(owner.clone(), server.to_owned())).cloned();
        let all = || Some(self.servers.lock().get(server)?.handle.clone());
        own.or_else(all).ok_or_else(|| self.unknown(server))
    }

    fn sign_in_of(&self, owner: &SessionId, server: &str) -> Result<Arc<SignIn>, McpError> {
        let sign_in = self.handle_of(owner, server)?.sign_in;
        sign_in.ok_or_else(|| {
            McpError(format!(
                "nobody signs in at the MCP server `{server}`: it is a program, or its `headers` hold an Authorization"
            ))
        })
    }

    fn unknown(&self, name: &str) -> McpError {
        let known: Vec<String> = self.servers.lock().keys().cloned().collect();
        let known = match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        };
        McpError(format!(
            "there is no MCP server `{name}`; there are: {known}"
        ))
    }
}
