//! MCP servers that the client names. They serve its session alone and go with its connection; the first prompt waits for them.

use std::time::Duration;

use tokio::time::Instant;

use super::replies::Pending;
use super::rpc::Id;
use super::session::AcpSession;
use super::wire;
use crate::protocol::answer::McpState;
use crate::protocol::command::{ChatSend, Command, McpAdd};

/// How long a first prompt waits for the servers.
const PATIENCE: Duration = Duration::from_secs(10);

/// After how long the user is told that it waits.
const SILENCE: Duration = Duration::from_secs(1);

/// A prompt that waits for servers.
#[derive(Debug)]
pub(super) struct Held {
    send: Box<ChatSend>,
    id: Id,
    until: Instant,
    /// When the user is told; `None` once that is done.
    told_at: Option<Instant>,
}

impl Held {
    pub(super) fn new(send: Box<ChatSend>, id: Id) -> Self {
        let now = Instant::now();
        Self {
            send,
            id,
            until: now + PATIENCE,
            told_at: Some(now + SILENCE),
        }
    }
}

impl AcpSession {
    /// Starts the servers. What fails is told with the first prompt.
    pub(super) async fn add_servers(&mut self, servers: Vec<wire::McpServer>) {
        for server in servers {
            let named = server.name.clone();
            let add = McpAdd {
                name: server.name,
                command: server.command,
                args: server.args,
                env: wire::map(server.env),
                url: server.url,
                headers: wire::map(server.headers),
            };
            match self.handle.add_server(add).await {
                Some(Ok(row)) => self.starting.push(row.name),
                Some(Err(error)) => self.problems.push(problem(&named, &error.message)),
                None => self.problems.push(problem(&named, "the session ended")),
            }
        }
    }

    /// Looks how the servers stand that had not answered yet, and sends the prompt that waits for them where none is left.
    pub(super) async fn look_at_servers(&mut self) {
        let rows = match self.starting.is_empty() {
            true => Vec::new(),
            false => self.sessions.daemon().mcp.list_of(&self.handle.id),
        };
        let starting = std::mem::take(&mut self.starting);
        for row in rows.into_iter().filter(|row| starting.contains(&row.name)) {
            match (row.state, row.error) {
                (McpState::Starting, _) => self.starting.push(row.name),
                (_, Some(why)) if self.turn.is_some() => {
                    let problem = problem(&row.name, &why);
                    self.say(&format!("*{problem}*\n\n")).await;
                }
                (_, Some(why)) => self.problems.push(problem(&row.name, &why)),
                (_, None) => {}
            }
        }
        if self.starting.is_empty() || self.has_waited {
            self.begin().await;
        }
    }

    /// When a prompt that waits for servers is looked at again.
    pub(super) fn held_until(&self) -> Option<Instant> {
        let held = self.turn.as_ref()?.held.as_ref()?;
        Some(held.told_at.unwrap_or(held.until).min(held.until))
    }

    /// Tells the user what is waited for, or waits no longer.
    pub(super) async fn go_on_waiting(&mut self) {
        let held = self.turn.as_mut().and_then(|turn| turn.held.as_mut());
        if let Some(held) = held.filter(|held| Instant::now() < held.until)
            && held.told_at.take().is_some()
        {
            let names: Vec<String> = self.starting.iter().map(|it| format!("`{it}`")).collect();
            let text = format!("*Waiting for MCP server {}.*\n\n", names.join(", "));
            return self.say(&text).await;
        }
        self.has_waited = true;
        self.begin().await;
    }

    /// Sends the prompt that was held back. Servers that are still on their way are looked at later.
    async fn begin(&mut self) {
        let held = self.turn.as_mut().and_then(|turn| turn.held.take());
        if let Some(Held { send, id, .. }) = held {
            self.send(Command::ChatSend(send), Pending::Prompt(id))
                .await;
        }
    }
}

fn problem(server: &str, why: &str) -> String {
    format!("MCP server `{server}`: {why}")
}
