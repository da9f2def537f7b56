//! One server's actor: starts it, keeps its lists, starts it again when it is gone, ends it.
//!
//! Its calls do not pass through here: they go to the connection that [`Link`] holds, side by side.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Context;
use super::audience::{Audience, Voice};
use super::catalog::Catalog;
use super::client::{Client, Followers, set_log_level};
use super::connection::{self, Connection, Problem};
use super::elicitation::Elicitations;
use super::handle::{Handle, Life, Link};
use super::hint;
use super::lists::{self, Lists};
use super::roots::Roots;
use super::sign_in::{self, Hurdle, SignIn};
use super::subscriptions::Subscriptions;
use super::tool::McpTool;
use crate::config::{McpServerConfig, McpTransport, SamplingPolicy};
use crate::message::{SessionId, Severity};
use crate::notices::To;
use crate::protocol::answer::{McpServer, McpState};
use crate::protocol::mcp::McpListName;
use crate::tool::Tool;

/// Starts in a row that may fail before the server is given up.
const MAX_FAILURES: u32 = 5;

/// The pause before the first new start; it doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// How long it may take to hear how a server ended whose connection a call found broken.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A server that was up for this long starts with a clean slate.
const STEADY: Duration = Duration::from_secs(60);

/// How long changes of the lists are gathered before they are read again.
const GATHER: Duration = Duration::from_millis(200);

/// The same for a server that has changed its lists more often than anybody has reason to.
const GATHER_OF_RESTLESS: Duration = Duration::from_secs(10);

/// How often it may do so in one life before it is taken for that.
const CHANGES: u32 = 20;

pub(super) struct Server {
    handle: Handle,
    context: Arc<Context>,
    link: watch::Sender<Link>,
    changed: Arc<Notify>,
    /// How it is started or reached, for what approvals are bound to.
    identity: String,
}

impl Server {
    /// Makes an actor, to be run, and the way to it. Where it has an owner, it serves that session alone.
    pub(super) fn new(
        name: &str,
        config: McpServerConfig,
        context: Arc<Context>,
        (audience, owner): (&Arc<Audience>, Option<SessionId>),
        stop: CancellationToken,
    ) -> (Self, Handle) {
        let (link, linked) = watch::channel(Link::Waiting);
        let identity = config.transport.identity();
        let name: Arc<str> = Arc::from(name);
        let (notices, redactor) = (context.notices.clone(), context.redactor.clone());
        let row = McpServer {
            name: name.to_string(),
            ..McpServer::default()
        };
        let (registry, roots) = match config.transport {
            McpTransport::Stdio(_) => {
                let launcher = context.launcher.as_ref().ok();
                let folder = launcher.map(|launcher| launcher.project().to_owned());
                (&context.registry, Roots::of_program(folder))
            }
            McpTransport::Http(_) => (&context.everywhere, Roots::none()),
        };
        let voice = Voice::new(
            Arc::clone(&name),
            owner,
            Arc::clone(audience),
            config.log,
            redactor.clone(),
        );
        let sign_in = match &config.transport {
            McpTransport::Stdio(_) => None,
            McpTransport::Http(server) => {
                let parts = sign_in::Parts {
                    user: &context.user,
                    all: &context.sign_ins,
                    clients: &context.clients,
                    notices: &context.notices,
                    redactor: &context.redactor,
                };
                SignIn::of(&name, server, &parts)
            }
        };
        let handle = Handle {
            sign_in,
            registry: Arc::clone(registry),
            voice,
            subscriptions: Subscriptions::default(),
            roots,
            catalog: Arc::default(),
            is_withdrawn: Arc::default(),
            elicitations: Elicitations::new(Arc::clone(&name), notices, redactor),
            name,
            config: Arc::new(config),
            link: linked,
            followers: Followers::default(),
            stop,
            row: Arc::new(Mutex::new(row)),
        };
        let server = Self {
            handle: handle.clone(),
            context,
            link,
            changed: Arc::default(),
            identity,
        };
        (server, handle)
    }

    /// Keeps the server going until it is stopped or given up.
    pub(super) async fn run(self) {
        let mut failures = 0;
        // A server may end at the first message of an era that it does not know.
        let mut older = false;
        loop {
            let began = Instant::now();
            let Some((problem, was_up)) = self.live(older).await else {
                break;
            };
            if began.elapsed() >= STEADY {
                failures = 0;
            }
            if let Some((sign_in, hurdle)) = self.kept_out() {
                failures = 0;
                match self.sign_in(sign_in, hurdle).await {
                    Some(()) => continue,
                    None => break,
                }
            }
            failures += 1;
            older ^= !was_up;
            if problem.is_final || failures >= MAX_FAILURES {
                self.give_up(&problem.message);
                return;
            }
            self.restarting(&problem.message);
            let pause = FIRST_PAUSE * 2_u32.pow(failures - 1);
            let stopped = self.handle.stop.cancelled();
            if timeout(pause, stopped).await.is_ok() {
                break;
            }
        }
        self.withdraw();
        self.link
            .send_replace(Link::Down("it was stopped".to_owned()));
        self.handle.row.lock().state = McpState::Stopped;
    }

    /// What the server wants of its user, where that is why it was lost.
    fn kept_out(&self) -> Option<(&Arc<SignIn>, Hurdle)> {
        let sign_in = self.handle.sign_in.as_ref()?;
        Some((sign_in, sign_in.take_hurdle()?))
    }

    /// Waits until somebody has signed in; `None` where the server was stopped meanwhile.
    async fn sign_in(&self, sign_in: &Arc<SignIn>, hurdle: Hurdle) -> Option<()> {
        let waits = sign_in.waits().await;
        let stop = &self.handle.stop;
        self.withdraw();
        let begun = match hurdle {
            Hurdle::Ask(demand) => stop.run_until_cancelled(sign_in.begin(demand)).await?,
            Hurdle::InVain(why) => Err(why),
        };
        match begun {
            Ok(asked) => {
                let why = format!("sign in at {}; `mcp:auth` has the page", asked.host);
                self.failed(McpState::SignIn, &why);
                self.link.send_replace(Link::Down(why));
                let name = &self.handle.name;
                let message = format!("the MCP server `{name}` waits until somebody has signed in");
                self.notify(Severity::Info, "mcp_sign_in", message);
            }
            // By hand it can be tried again.
            Err(why) => self.fail(&format!("{why}; `mcp:auth` tries it again")),
        }
        stop.run_until_cancelled(sign_in.signed_in(waits)).await?;
        self.link.send_replace(Link::Waiting);
        let mut row = self.handle.row.lock();
        (row.state, row.error) = (McpState::Starting, None);
        Some(())
    }

    /// One life of the server: why it ended and whether there was a connection; `None` where it was
    /// stopped.
    async fn live(&self, older: bool) -> Option<(Problem, bool)> {
        let stop = &self.handle.stop;
        let client = Client {
            server: self.handle.name.to_string(),
            changed: Arc::clone(&self.changed),
            followers: Arc::clone(&self.handle.followers),
            elicitations: self.handle.elicitations.clone(),
            voice: self.handle.voice.clone(),
            subscriptions: self.handle.subscriptions.clone(),
            roots: self.handle.roots.clone(),
            samples: self.handle.config.sampling == SamplingPolicy::Ask,
        };
        // Those of the connection before are answered; its numbers come again.
        self.handle.followers.lock().await.clear();
        let transport = &self.handle.config.transport;
        let sign_in = self.handle.sign_in.as_ref();
        if let Some(sign_in) = sign_in {
            sign_in.set_up(false);
        }
        let name = &self.handle.name;
        let connecting =
            connection::connect(name, transport, &self.context, &client, sign_in, older);
        let patient = async {
            tokio::pin!(connecting);
            tokio::select! {
                biased;
                outcome = &mut connecting => return outcome,
                () = tokio::time::sleep(connection::SLOW_START) => self.slow(),
            }
            connecting.await
        };
        let mut connection = match stop.run_until_cancelled(patient).await? {
            Ok(connection) => connection,
            Err(problem) => return Some((problem, false)),
        };
        let left = self.serve(&mut connection).await;
        self.link.send_replace(Link::Waiting);
        connection.close().await;
        left.map(|message| (Problem::passing(message), true))
    }

    /// Keeps the lists as the server has them while it is there; returns how it was lost, `None` where it was stopped.
    async fn serve(&self, connection: &mut Connection) -> Option<String> {
        let peer = connection.peer.clone();
        let life = Life {
            peer: peer.clone(),
            broken: CancellationToken::new(),
            signed_out: CancellationToken::new(),
        };
        let updates = async {
            set_log_level(&self.handle.name, &peer, self.handle.voice.least()).await;
            let Handle {
                subscriptions,
                voice,
                roots,
                ..
            } = &self.handle;
            let following = subscriptions.run(&peer, voice, &self.changed);
            tokio::join!(following, roots.run(&peer));
        };
        tokio::pin!(updates);
        let (mut is_first, mut changes) = (true, 0);
        loop {
            let reading = lists::read(&peer);
            tokio::select! {
                biased;
                () = self.handle.stop.cancelled() => return None,
                how = connection.lost() => return Some(how),
                lists = reading => match lists {
                    Ok(lists) => self.publish(lists, is_first),
                    Err(why) if is_first => return Some(why),
                    Err(why) => tracing::warn!(server = %self.handle.name, why, "lists not read"),
                },
            }
            if is_first {
                if let Some(sign_in) = &self.handle.sign_in {
                    sign_in.set_up(true);
                }
                self.link.send_replace(Link::Up(life.clone()));
                is_first = false;
            }
            tokio::select! {
                biased;
                () = self.handle.stop.cancelled() => return None,
                how = connection.lost() => return Some(how),
                () = life.broken.cancelled() => {
                    // Where it has ended, what it wrote last says more.
                    let how = timeout(LAST_WORDS, connection.lost()).await;
                    return Some(how.unwrap_or_else(|_| "a call found the connection broken".to_owned()));
                }
                () = life.signed_out.cancelled() => return Some("it was signed out".to_owned()),
                () = self.changed.notified() => {}
                () = &mut updates => {}
            }
            // Servers announce one change many times over.
            changes += 1;
            let gather = if changes > CHANGES {
                GATHER_OF_RESTLESS
            } else {
                GATHER
            };
            let stopped = self.handle.stop.cancelled();
            drop(timeout(gather, stopped).await);
        }
    }

    /// Makes the server's tools those that the model is offered from its next turn on.
    fn publish(&self, mut lists: Lists, is_first: bool) {
        let name = &self.handle.name;
        let catalog = Catalog::new(
            name,
            std::mem::take(&mut lists.resources),
            std::mem::take(&mut lists.templates),
            std::mem::take(&mut lists.prompts),
            &self.context.redactor,
        );
        let left_out = lists.left_out().or_else(|| catalog.left_out());
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        let mut seen = BTreeSet::new();
        for tool in lists.tools {
            let safe = &self.handle.config.safe_tools;
            let redactor = &self.context.redactor;
            match super::definition::define(name, &self.identity, &tool, safe, redactor) {
                Ok(definition) if seen.insert(definition.spec.name.clone()) => {
                    tools.push(Arc::new(McpTool {
                        definition,
                        server: self.handle.clone(),
                        output_cap: self.context.output_cap,
                    }));
                }
                Ok(definition) => tracing::warn!(
                    server = %name, tool = definition.spec.name, "a tool is there twice"
                ),
                Err(why) if is_first => self.notify(
                    Severity::Warning,
                    "mcp_tool_dropped",
                    format!(
                        "the tool {:?} of the MCP server `{name}` is not offered: {why}",
                        self.context
                            .redactor
                            .redact(&connection::bounded(&tool.name))
                    ),
                ),
                Err(why) => tracing::debug!(server = %name, why, "a tool is not offered"),
            }
        }
        self.handle.show(tools);
        let now: Vec<String> = seen.into_iter().collect();
        let (count, error) = (now.len(), left_out.clone());
        let row = McpServer {
            name: name.to_string(),
            state: McpState::Ready,
            tools: now.clone(),
            resources: catalog.resources.iter().map(|it| it.uri.clone()).collect(),
            prompts: catalog.prompts.iter().map(|it| it.name.clone()).collect(),
            error,
        };
        let before = std::mem::replace(&mut *self.handle.row.lock(), row);
        let mut changes = self.handle.put(catalog);
        changes.extend((now != before.tools).then_some(McpListName::Tools));
        self.handle.voice.changed(&changes);
        let was_sent = before.error == left_out;
        if let (false, Some(left_out)) = (was_sent, left_out) {
            let message = format!("the MCP server `{name}`: {left_out}");
            self.notify(Severity::Warning, "mcp_list_cut", message);
        }
        if is_first {
            let tools = if count == 1 { "tool" } else { "tools" };
            let message = format!("the MCP server `{name}` is ready with {count} {tools}");
            self.notify(Severity::Info, "mcp_ready", message);
        } else if now != before.tools {
            let message = format!("the MCP server `{name}` changed its tools; there are {count}");
            self.notify(Severity::Info, "mcp_tools_changed", message);
        }
    }

    /// Says that a server takes long; one that is being downloaded may.
    fn slow(&self) {
        let seconds = connection::SLOW_START.as_secs();
        let why = format!("it did not answer `initialize` within {seconds} s; still waiting");
        let name = &self.handle.name;
        let message = format!("the MCP server `{name}` is not there yet: {why}");
        self.handle.row.lock().error = Some(why);
        self.notify(Severity::Warning, "mcp_slow", message);
    }

    fn restarting(&self, why: &str) {
        let why = self.context.redactor.redact(why).into_owned();
        self.failed(McpState::Restarting, &why);
        let name = &self.handle.name;
        let message = format!("the MCP server `{name}` is started again: {why}");
        self.notify(Severity::Warning, "mcp_restarting", message);
    }

    fn give_up(&self, why: &str) {
        let hint = hint::hint(&self.handle.name, &self.handle.config.transport, why);
        let why = &match hint {
            Some(hint) => format!("{why}\n{hint}"),
            None => why.to_owned(),
        };
        self.fail(why);
    }

    fn fail(&self, why: &str) {
        let why = self.context.redactor.redact(why).into_owned();
        self.withdraw();
        self.failed(McpState::Failed, &why);
        // Whoever calls it: the end of its standard error is for operators.
        let short = "it failed for good; mcp:list has why, for operators";
        self.link.send_replace(Link::Down(short.to_owned()));
        let name = &self.handle.name;
        let message = format!("the MCP server `{name}` failed for good: {why}");
        self.notify(Severity::Error, "mcp_failed", message);
    }

    fn withdraw(&self) {
        self.handle.show(Vec::new());
        let changes = self.handle.put(Catalog::default());
        self.handle.voice.changed(&changes);
        let mut row = self.handle.row.lock();
        row.tools.clear();
        row.resources.clear();
        row.prompts.clear();
    }

    fn notify(&self, severity: Severity, code: &str, message: String) {
        let notices = &self.context.notices;
        notices.send(To::Operators, severity, code, message);
    }

    fn failed(&self, state: McpState, why: &str) {
        let mut row = self.handle.row.lock();
        row.state = state;
        row.error = Some(why.to_owned());
    }
}
