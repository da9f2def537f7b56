//! A session: it outlives its sockets, holds conversations and their defaults, numbers every event.
//!
//! Conversations append to its log, and its sockets read there. The actor here takes requests, hands what is a
//! conversation's to that conversation, and answers the rest. When nobody who may answer was there for longer than the
//! grace period, everything in it is cancelled, or runs to its end.
//!
//! Read next: `requests` (what each request does), `sends` and `resolve` (what a send comes to), [`log`] (numbers,
//! merging, the bound), `gap` (what follows a gap).

mod approvals;
mod asking;
mod client_tools;
mod conversations;
mod counted;
mod daemon;
mod defaults;
mod execute;
mod feed;
mod files;
mod gap;
mod handle;
mod imports;
mod instructions;
mod kept;
mod line;
pub(crate) mod live;
pub mod log;
mod mcp;
mod others;
mod overview;
mod presence;
mod project_files;
mod projects;
mod providers;
mod queue;
mod ran;
mod reader;
mod reading;
mod reload;
mod requests;
pub(crate) mod resolve;
mod restore;
mod roles;
mod scope;
mod sends;
mod sessions;
mod settings;
mod status;
mod tasks;
mod tenure;
mod title;
mod told;
mod tools;
mod transfer;
mod turned_away;
mod usage;
mod workflows;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::{BoxFuture, FusedFuture as _, Shared};
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::approvals::PendingRules;
use crate::config::Detached;
use crate::conversation;
use crate::exchange::context::{Ids, Services, SessionContext};
use crate::exchange::history::History;
use crate::exchange::memory::{ConversationMemory, Memory};
use crate::exchange::tasks::{BeginTask, DESK};
use crate::exchange::transcript::Events;
use crate::message::{ConversationId, Money, Notice};
use crate::notices::{Addressed, Notices};
use crate::protocol::RequestId;
use crate::protocol::command::Layer;
use crate::protocol::envelope::Timestamp;
use crate::protocol::event::{Event, Ready, SessionUpdated};
use crate::protocol::roles::SessionRoles;
use crate::runtime::{any_cancelled, sleep_until};
use crate::spend::Account;
use crate::store::restored::Restored;
use crate::telemetry::metrics;
use crate::tool::Registry;
use crate::tool::locks::Away;
use crate::tool::workspace::Workspace;
use crate::units::millis;
use crate::users::Grant;

use client_tools::ClientTools;
pub use daemon::Daemon;
use defaults::Defaults;
pub(crate) use feed::Feed;
use handle::Message;
pub use handle::{AttachRefused, Attachment, Entrance, Handle};
pub(crate) use imports::Imports;
pub(crate) use kept::piece;
pub(crate) use overview::DrainRequest;
pub(crate) use project_files::ProjectFiles;
pub(crate) use reader::Reader;
use reading::Reading;
pub(crate) use reload::Reloadable;
use roles::Socket;
use sends::KnownSend;
pub(crate) use sends::shutting_down;
pub(crate) use sessions::MAX_SIDE_REQUESTS;
pub use sessions::{SessionEnd, Sessions, UserSessions};
use tasks::{EndedTasks, SessionTools};
pub(crate) use tenure::Tenure;
pub(crate) use title::MAX_TITLES;
use transfer::Transfers;
pub use turned_away::NoSession;
pub(crate) use turned_away::elsewhere;

/// How long a new session waits for the socket that it was made for.
const FIRST_SOCKET: Duration = Duration::from_secs(10);

/// Requests that wait for a session: its actor takes them at once, so this is slack, not a queue.
const INBOX: usize = 256;

/// Most outputs that a session reads from the disk at once: more than a frontend shows.
const OUTPUT_READS: usize = 64;

/// The most conversations of a session.
const MAX_CONVERSATIONS: usize = 4_096;

struct Session {
    daemon: Arc<Daemon>,
    /// The others.
    sessions: Weak<Sessions>,
    /// What they may do who asked last for something that is run or set.
    grant: Arc<Grant>,
    /// Waits for the answers of its user that count in all sessions; comes to whether they are read.
    rules_are_read: Shared<BoxFuture<'static, bool>>,
    ready: Ready,
    feed: Arc<Feed>,
    inbox: mpsc::Receiver<Message>,
    /// Set when nobody would miss the session.
    spare: Arc<AtomicBool>,
    shared: SessionContext,
    services: Services,
    defaults: Defaults,
    conversations: HashMap<ConversationId, ConversationHandle>,
    /// Tasks that are to begin.
    desk: mpsc::Receiver<Box<BeginTask>>,
    /// The tools that tasks have.
    tools_of_tasks: Arc<Registry>,
    ended_tasks: EndedTasks,
    /// What conversations spent that the store has and that have not begun anew.
    spent: HashMap<ConversationId, Money>,
    /// Closed conversations that still shut down; the token fires when one is done.
    closing: HashMap<ConversationId, CancellationToken>,
    sends: VecDeque<KnownSend>,
    /// Sends whose documents are read.
    reading: Reading,
    /// What the first client is told once it can hear it.
    at_begin: Vec<Notice>,
    /// Whether a socket was ever on it: the next one resumes it.
    had_socket: bool,
    driver: Option<Socket>,
    /// Those that approve and those that observe.
    further: Vec<Socket>,
    /// What was told of who is there; nothing before a socket had a role.
    told_roles: Option<SessionRoles>,
    /// While a client that was there is gone.
    away: Option<Away>,
    /// Permits for requests that read an output from the disk.
    output_reads: Arc<Semaphore>,
    /// Tools that its client runs.
    client_tools: ClientTools,
    /// What the MCP servers of its client say of themselves.
    own_notices: Notices,
    /// Files of sessions on their way to the socket, and from it; they go with it.
    transfers: Transfers,
    /// Has the conversation whose exchange was the first to end well, where a model is to name the session.
    first_end: watch::Receiver<Option<ConversationId>>,
    /// When the session ends unless a socket comes.
    ends_at: Option<Instant>,
    /// Whether it ends as soon as nothing runs unless a socket comes.
    ends_when_idle: bool,
    /// Since when it lives here.
    began: Timestamp,
    cancel: CancellationToken,
}

/// The way to a conversation; `gone` fires when it has ended.
struct ConversationHandle {
    inbox: mpsc::Sender<conversation::Command>,
    gone: CancellationToken,
    history: Arc<History>,
    memory: ConversationMemory,
    account: Arc<Account>,
}

impl Session {
    fn new(
        (daemon, sessions): (Arc<Daemon>, Weak<Sessions>),
        (workspace, rules): (Arc<Workspace>, PendingRules),
        ready: Ready,
        handle: &Handle,
        inbox: mpsc::Receiver<Message>,
        restored: Option<&Restored>,
    ) -> Self {
        let feed = Arc::clone(&handle.feed);
        let sink = Arc::clone(&feed);
        let (ended, first_end) = watch::channel(None);
        // One that was begun before has a title.
        let is_named =
            restored.is_some() || daemon.services.config().session.title_model().is_none();
        let ended = (!is_named).then_some(ended);
        let journal = feed.journal.clone();
        let ids = restored.map_or(0, |restored| restored.ids);
        let (account, spent) = usage::restored(restored, &daemon.services.config());
        let memory = Memory::new(
            ready.session_id.clone(),
            journal.clone(),
            rules.rules,
            projects::folder(&workspace),
            daemon.services.config().approval.remember,
        );
        let tools = SessionTools::new(&workspace.registry, &daemon.services.settings);
        let (to_desk, desk) = mpsc::channel(DESK);
        Self {
            defaults: Defaults::new(&daemon.services.config()),
            shared: SessionContext {
                id: ready.session_id.clone(),
                user: handle.grant.user.clone(),
                tools: tools.all,
                workspace,
                events: Events::new(move |event, reply_to| {
                    if let Some(ended) = &ended {
                        title::note(ended, &event);
                    }
                    sink.append(event, reply_to);
                }),
                executions: Arc::clone(&handle.executions),
                ids: Arc::new(Ids::after(ids, journal.clone())),
                memory,
                journal,
                quota: Arc::default(),
                questions: Arc::default(),
                totals: Arc::default(),
                account,
                desk: to_desk,
            },
            spent,
            services: Services {
                // Outputs of other sessions are not pushed out by this one's.
                spill: daemon.services.spill.for_another(),
                quota: daemon.quotas.of(&handle.grant.user),
                spend: daemon
                    .services
                    .spend
                    .of(&handle.grant.user, handle.grant.day.as_ref()),
                ..daemon.services.clone()
            },
            conversations: HashMap::new(),
            desk,
            tools_of_tasks: tools.of_tasks,
            ended_tasks: EndedTasks::default(),
            closing: HashMap::new(),
            sends: VecDeque::new(),
            reading: Reading::default(),
            at_begin: Vec::new(),
            had_socket: false,
            driver: None,
            further: Vec::new(),
            told_roles: None,
            away: None,
            output_reads: Arc::new(Semaphore::new(OUTPUT_READS)),
            client_tools: ClientTools::default(),
            own_notices: Notices::of_one_session(),
            transfers: Transfers::default(),
            first_end,
            ends_at: None,
            ends_when_idle: false,
            began: Timestamp::now(),
            cancel: handle.tenure.child_token(),
            daemon,
            sessions,
            grant: Arc::clone(&handle.grant),
            rules_are_read: rules.are_read,
            ready,
            feed,
            inbox,
            spare: Arc::clone(&handle.spare),
        }
    }

    async fn run(mut self, restored: Option<Restored>) {
        let _counted = metrics::SESSIONS.enter();
        // Also where this task panics: what runs in its conversations ends with it.
        let ends = self.cancel.clone().drop_guard();
        self.ends_at = Instant::now().checked_add(FIRST_SOCKET);
        let mut notices = self.daemon.notices.subscribe();
        let mut own_notices = self.own_notices.subscribe();
        let heard = self.listen();
        let mut rules = self.rules_are_read.clone();
        let mut updates = None;
        if let Some(restored) = restored {
            let are_read = (&mut rules).await;
            self.restore(restored).await;
            // Its client asks for a resync, in which they would be lost if they were said now.
            self.note_at_begin(are_read);
        }
        self.say_where_to_sign_in(&mut notices);
        let feed = Arc::clone(&self.feed);
        loop {
            // Before the look, so that nothing that changes after it is missed.
            let mut grown = std::pin::pin!(feed.grown());
            grown.as_mut().enable();
            if self.ends_when_idle && !self.is_at_work().await {
                break;
            }
            // Who shows no list is not woken by what happens in other sessions.
            updates = match self.shows_list() {
                true => Some(updates.unwrap_or_else(|| self.updates().subscribe())),
                false => None,
            };
            let ends_at = self.ends_at;
            let disconnected = self.sockets().map(|it| it.disconnected.clone());
            let disconnected = any_cancelled(disconnected.collect());
            let message = tokio::select! {
                // What a socket said before it went is taken before it is gone.
                biased;
                () = self.cancel.cancelled() => None,
                are_read = &mut rules, if !rules.is_terminated() => {
                    self.note_at_begin(are_read);
                    self.say_at_begin();
                    continue;
                }
                Some(done) = self.reading.next() => {
                    self.has_read(done).await;
                    continue;
                }
                Some(begin) = self.desk.recv() => {
                    self.begin_task(*begin);
                    continue;
                }
                message = self.inbox.recv() => message,
                () = disconnected => {
                    self.leave();
                    continue;
                }
                // One that came too fast to be read is missed; `mcp:list` has how things stand.
                notice = notices.recv() => {
                    if let Some(news) = notice.ok().and_then(|it| self.said(it)) {
                        self.shared.events.emit(news.into());
                    }
                    continue;
                }
                notice = own_notices.recv() => {
                    if let Ok(news) = notice.map(Addressed::of_session) {
                        self.shared.events.emit(news.into());
                    }
                    continue;
                }
                events = heard.hear() => {
                    self.emit_all(events);
                    continue;
                }
                () = grown, if self.ends_when_idle => continue,
                Ok(()) = self.first_end.changed() => {
                    self.ask_for_title();
                    continue;
                }
                update = next(updates.as_mut()) => {
                    // As with notices: `session:list` has how things stand.
                    if let Some(update) = update {
                        self.shared.events.emit(Event::SessionUpdated(update));
                    }
                    continue;
                }
                () = sleep_until(ends_at) => {
                    if self.daemon.services.config().session.detached == Detached::Continue {
                        (self.ends_at, self.ends_when_idle) = (None, true);
                        continue;
                    }
                    None
                }
            };
            match message {
                Some(Message::Request(request, from, grant)) => {
                    // A socket is let in before: a store may be slow.
                    if !rules.is_terminated() {
                        self.note_at_begin((&mut rules).await);
                        self.say_at_begin();
                    }
                    let is_operator = grant.is_operator;
                    if let Some(request) = self.admitted(*request, from, grant) {
                        self.handle(request, is_operator).await;
                    }
                }
                Some(Message::Attach(entrance, grant, reply)) => {
                    drop(reply.send(self.attach(entrance, grant)));
                }
                Some(Message::Resync(after, socket, reply)) => {
                    reply.send(self.resync(after, socket).await).ok();
                    self.say_at_begin();
                }
                Some(Message::AddServer(wanted, grant, reply)) => {
                    drop(reply.send(self.add_own_server(*wanted, &grant)));
                }
                Some(Message::Row(node, reply)) => drop(reply.send(self.row(&node))),
                Some(Message::Spent(reply)) => drop(reply.send(self.shared.account.spent())),
                // Somebody came back meanwhile.
                Some(Message::MakeRoom) if self.is_used() => {}
                Some(Message::Discard | Message::MakeRoom) | None => break,
            }
        }
        drop(ends);
        self.end_servers();
        self.refuse_rest().await;
        // Who begins it anew finds all that it has to say.
        let conversations = self.conversations.into_values().map(|it| it.gone);
        for gone in conversations.chain(self.closing.into_values()) {
            gone.cancelled().await;
        }
        self.shared.totals.log();
    }

    /// Returns whether its client wants to know what changes about sessions.
    fn shows_list(&self) -> bool {
        self.feed.log().layers.contains(&Layer::Sessions)
    }

    /// Answers requests that came too late: an error says that the daemon ends.
    async fn refuse_rest(&mut self) {
        self.inbox.close();
        self.refuse_unread();
        while let Some(message) = self.inbox.recv().await {
            if let Message::Request(request, ..) = message
                && self.daemon.stop.is_cancelled()
            {
                let error = Event::SessionError(shutting_down());
                self.answer(request.id.as_ref(), error);
            }
        }
    }

    fn note_at_begin(&mut self, are_rules_read: bool) {
        self.at_begin.extend(self.unread(are_rules_read));
        self.at_begin.extend(self.not_safe());
    }

    fn say_at_begin(&mut self) {
        for notice in std::mem::take(&mut self.at_begin) {
            self.shared.events.emit(Event::SessionNotice(notice));
        }
    }

    /// Returns what a socket that comes to the session is told first; `grant` is the socket's.
    fn ready_now(&self, grant: &Grant) -> Ready {
        let in_force = self.in_force();
        let config = &self.daemon.services.config();
        Ready {
            resumed: true,
            resume_grace_ms: millis(config.session.resume_grace),
            features: daemon::features(config),
            workflows: daemon::workflows(config),
            trust_level: in_force.trust_level,
            on_violation: in_force.on_violation,
            layers: in_force.layers,
            providers: providers::ready(&self.daemon.providers),
            tools: self.shared.tools.names(),
            project: in_force.project,
            project_error: in_force.project_error,
            persistent: !in_force.ephemeral && self.daemon.keeps(),
            operator: grant.may_operate(),
            ..self.ready.clone()
        }
    }

    fn answer(&self, reply_to: Option<&RequestId>, event: Event) {
        self.shared.events.answer(reply_to, event);
    }
}

/// Waits for what changes about a session; for ever where nobody wants to know. `None` where some was missed.
async fn next(updates: Option<&mut broadcast::Receiver<SessionUpdated>>) -> Option<SessionUpdated> {
    match updates {
        Some(updates) => updates.recv().await.ok(),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
