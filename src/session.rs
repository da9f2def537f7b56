//! A session: it outlives its sockets, holds conversations and their defaults, numbers every event.
//!
//! Conversations append to its [`feed`]; one socket at a time reads there. The actor here takes
//! requests, hands what is a conversation's to that conversation, and answers the rest. When its
//! last socket is gone for longer than the grace period, everything in it is cancelled.
//!
//! Read next: [`log`] (numbers, merging, the bound), [`resolve`] (what a send comes to).

pub mod defaults;
pub mod feed;
pub mod log;
mod requests;
pub mod resolve;
mod sessions;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::conversation::{self, Answer, Conversation};
use crate::exchange::ask::Remembered;
use crate::exchange::events::Events;
use crate::exchange::failure;
use crate::exchange::setup::{ConversationShared, Services, SessionShared};
use crate::message::{ConversationId, SessionId};
use crate::protocol::command::{ChatSend, Command};
use crate::protocol::event::{Event, Ready, Sandbox, SessionError};
use crate::protocol::{Request, RequestId, SessionCode};
use crate::provider::registry::Providers;

use defaults::Defaults;
use feed::Feed;
use sessions::Message;
pub use sessions::{Attachment, Handle, Sessions};

/// How long a new session waits for the socket that it was made for.
const FIRST_SOCKET: Duration = Duration::from_secs(10);

/// The most conversations of a session.
const MAX_CONVERSATIONS: usize = 4_096;

/// Ids of sends that are remembered, so that none runs twice.
const REMEMBERED_SENDS: usize = 256;

/// What one daemon has, made by `main` and handed down.
pub struct Daemon {
    /// Configuration, tools and file locks.
    pub services: Services,
    /// Provider instances.
    pub providers: Providers,
    /// What is enforced here, found out once and off the way to ready.
    pub sandbox: tokio::sync::OnceCell<Sandbox>,
    /// How to find that out.
    pub probe: Box<dyn Fn() -> futures::future::BoxFuture<'static, Sandbox> + Send + Sync>,
    /// Every task there is.
    pub tasks: TaskTracker,
    /// Cancelled when everything has to end.
    pub stop: CancellationToken,
}

impl Daemon {
    /// What is enforced here; found out where nobody did yet.
    pub async fn sandbox(&self) -> &Sandbox {
        self.sandbox.get_or_init(|| (self.probe)()).await
    }

    async fn ready(&self, session_id: SessionId) -> Ready {
        let config = &self.services.config;
        Ready {
            protocol_version: crate::protocol::PROTOCOL_VERSION,
            daemon_version: env!("CARGO_PKG_VERSION").to_owned(),
            session_id,
            resumed: false,
            resume_grace_ms: u64::try_from(config.session.resume_grace.as_millis())
                .unwrap_or(u64::MAX),
            trust_level: config.chat.trust_level,
            project: crate::protocol::event::Project {
                name: config.project.name.clone(),
                root: config.project.root.clone(),
                central: config.project.central.clone(),
            },
            sandbox: self.sandbox().await.clone(),
            providers: requests::ready_providers(&self.providers),
            tools: self.services.registry.snapshot().keys().cloned().collect(),
            layers: defaults::LAYERS.to_vec(),
        }
    }
}

/// A session's actor.
struct Session {
    daemon: Arc<Daemon>,
    ready: Ready,
    feed: Arc<Feed>,
    inbox: mpsc::Receiver<Message>,
    /// For sockets to say that they are gone; weak, so that it does not keep the inbox open.
    own_inbox: mpsc::WeakSender<Message>,
    shared: SessionShared,
    remembered: Remembered,
    defaults: Defaults,
    conversations: HashMap<ConversationId, mpsc::Sender<conversation::Command>>,
    sends: VecDeque<(RequestId, ConversationId, Answer)>,
    sockets: u64,
    socket: Option<CancellationToken>,
    /// When the session ends unless a socket comes.
    lapses: Option<Instant>,
    cancel: CancellationToken,
}

impl Session {
    fn new(
        daemon: Arc<Daemon>,
        ready: Ready,
        feed: Arc<Feed>,
        inbox: mpsc::Receiver<Message>,
        own_inbox: mpsc::WeakSender<Message>,
    ) -> Self {
        let sink = Arc::clone(&feed);
        Self {
            defaults: Defaults::new(&daemon.services.config),
            shared: SessionShared {
                events: Events::new(move |event, reply_to| sink.append(event, reply_to)),
                executions: Arc::default(),
                ids: Arc::default(),
            },
            remembered: Remembered::default(),
            conversations: HashMap::new(),
            sends: VecDeque::new(),
            sockets: 0,
            socket: None,
            lapses: None,
            cancel: daemon.stop.child_token(),
            daemon,
            ready,
            feed,
            inbox,
            own_inbox,
        }
    }

    async fn run(mut self) {
        self.lapses = Instant::now().checked_add(FIRST_SOCKET);
        loop {
            let lapses = self.lapses;
            let message = tokio::select! {
                message = self.inbox.recv() => message,
                () = until(lapses) => None,
                () = self.cancel.cancelled() => None,
            };
            match message {
                Some(Message::Request(request)) => self.request(*request).await,
                Some(Message::Attach(reply)) => self.attach(reply),
                Some(Message::Detach(number)) if number == self.sockets => {
                    self.socket = None;
                    self.lapses = self.grace_from_now();
                }
                Some(Message::Detach(_)) => {}
                Some(Message::Account(reply)) => drop(reply.send(self.account().await)),
                Some(Message::Discard) | None => break,
            }
        }
        self.cancel.cancel();
    }

    fn grace_from_now(&self) -> Option<Instant> {
        Instant::now().checked_add(self.daemon.services.config.session.resume_grace)
    }

    fn attach(&mut self, reply: oneshot::Sender<Attachment>) {
        if let Some(before) = self.socket.take() {
            before.cancel();
        }
        self.sockets += 1;
        self.lapses = None;
        let taken_over = CancellationToken::new();
        self.socket = Some(taken_over.clone());
        let in_force = self.in_force();
        drop(
            reply.send(Attachment {
                number: self.sockets,
                session: self.own_inbox.clone(),
                taken_over,
                ready: Ready {
                    resumed: true,
                    trust_level: in_force.trust_level,
                    layers: in_force.layers,
                    providers: requests::ready_providers(&self.daemon.providers),
                    tools: self
                        .daemon
                        .services
                        .registry
                        .snapshot()
                        .keys()
                        .cloned()
                        .collect(),
                    ..self.ready.clone()
                },
            }),
        );
    }

    async fn request(&mut self, request: Request) {
        let Request { id, command } = request;
        let id = id.as_ref();
        match command {
            Command::ChatSend(send) => self.send(*send, id).await,
            Command::ChatCancel(cancel) => {
                let command = conversation::Command::Cancel {
                    queued: cancel.queued,
                    reply_to: id.cloned(),
                };
                if !self.tell(&cancel.conversation_id, command).await && id.is_some() {
                    self.answer(id, requests::nothing_cancelled(cancel.conversation_id));
                }
            }
            Command::ChatToolApprove(verdict) => {
                let tool_id = verdict.tool_id.clone();
                let command = conversation::Command::Approve {
                    verdict,
                    reply_to: id.cloned(),
                };
                let owner = self.shared.executions.conversation_of(&tool_id);
                let told = match owner {
                    Some(owner) => self.tell(&owner, command).await,
                    None => false,
                };
                if !told {
                    let error = conversation::approvals::not_found(&tool_id);
                    self.answer(id, Event::SessionError(error));
                }
            }
            other => self.about_daemon(other, id).await,
        }
    }

    /// Sends on a `chat:send`, once for each id that a client gives.
    async fn send(&mut self, send: ChatSend, id: Option<&RequestId>) {
        if let Some(id) = id
            && self.is_repeated(id).await
        {
            return;
        }
        let setup = resolve::setup(
            &send,
            self.shared.ids.message(),
            &self.ready.session_id,
            &self.defaults,
            &self.daemon.services.config,
            &self.daemon.providers,
        );
        let setup = match setup {
            Ok(setup) => setup,
            Err(error) => return self.answer(id, Event::SessionError(error)),
        };
        let conversation_id = send.conversation_id.clone();
        if !self.conversations.contains_key(&conversation_id)
            && self.conversations.len() >= MAX_CONVERSATIONS
        {
            let error = SessionError {
                code: SessionCode::RateLimited,
                message: format!(
                    "this session has {MAX_CONVERSATIONS} conversations; close one with chat:close"
                ),
            };
            return self.answer(id, Event::SessionError(error));
        }
        let answer = Answer::new(OnceLock::new());
        if let Some(id) = id {
            self.sends
                .push_back((id.clone(), conversation_id.clone(), Arc::clone(&answer)));
            if self.sends.len() > REMEMBERED_SENDS {
                self.sends.pop_front();
            }
        }
        let inbox = self.conversation(&conversation_id);
        let send = conversation::Send {
            setup,
            history: send.history,
            when_busy: send.when_busy,
            reply_to: id.cloned(),
            answer,
        };
        if send.setup.model.is_empty() {
            self.send_with_first_model(send, inbox);
        } else {
            let command = conversation::Command::Send(Box::new(send));
            drop(inbox.send(command).await);
        }
    }

    /// Sends on a `chat:send` once the provider was asked for a model, which the session does not wait for.
    fn send_with_first_model(
        &self,
        mut send: conversation::Send,
        inbox: mpsc::Sender<conversation::Command>,
    ) {
        let (events, cancel) = (self.shared.events.clone(), self.cancel.child_token());
        self.daemon.tasks.spawn(async move {
            let setup = &mut send.setup;
            let first = resolve::first_model(&*setup.provider, &setup.provider_id);
            match cancel.run_until_cancelled(first).await {
                Some(Ok(model)) => {
                    setup.model = model;
                    let command = conversation::Command::Send(Box::new(send));
                    drop(inbox.send(command).await);
                }
                Some(Err(problem)) => {
                    drop(send.answer.set(None));
                    let error = crate::protocol::event::ChatError {
                        message_id: None,
                        ..failure::from_provider(
                            &problem,
                            &setup.provider_id,
                            &setup.conversation_id,
                            &setup.message_id,
                        )
                    };
                    events.answer(send.reply_to.as_ref(), Event::ChatError(Box::new(error)));
                }
                None => {}
            }
        });
    }

    /// Answers a send that was sent before; false where it was not, or was not admitted then.
    async fn is_repeated(&mut self, id: &RequestId) -> bool {
        let Some(at) = self.sends.iter().position(|(known, _, _)| known == id) else {
            return false;
        };
        let Some((_, conversation, answer)) = self.sends.get(at).cloned() else {
            return false;
        };
        match answer.get() {
            Some(Some(sent)) => {
                let sent = crate::protocol::answer::Sent {
                    duplicate: true,
                    ..sent.clone()
                };
                self.answer(Some(id), Event::ChatSendResult(sent));
            }
            Some(None) => {
                self.sends.remove(at);
                return false;
            }
            // Taken after the send itself, which is on its way: the inbox keeps the order.
            None => {
                let repeat = conversation::Command::Repeat {
                    answer,
                    reply_to: Some(id.clone()),
                };
                self.tell(&conversation, repeat).await;
            }
        }
        true
    }

    /// Returns the way to a conversation, which is made where there is none.
    fn conversation(&mut self, id: &ConversationId) -> mpsc::Sender<conversation::Command> {
        // One that was closed and still winds up makes room for a new one of the same name.
        if let Some(inbox) = self.conversations.get(id)
            && !inbox.is_closed()
        {
            return inbox.clone();
        }
        let (inbox, commands) = mpsc::channel(conversation::INBOX);
        let shared = ConversationShared {
            remembered: self.remembered.for_conversation(),
            ..ConversationShared::default()
        };
        let conversation = Conversation::new(
            id.clone(),
            commands,
            self.daemon.services.clone(),
            self.shared.clone(),
            shared,
            self.cancel.child_token(),
        );
        self.daemon.tasks.spawn(conversation.run());
        self.conversations.insert(id.clone(), inbox.clone());
        inbox
    }

    /// Tells a conversation something; false where there is none.
    async fn tell(&self, id: &ConversationId, command: conversation::Command) -> bool {
        match self.conversations.get(id) {
            Some(inbox) => inbox.send(command).await.is_ok(),
            None => false,
        }
    }

    /// Replaces what the log no longer holds by an account of every conversation.
    async fn account(&self) -> u64 {
        self.feed.hold();
        let mut account = vec![Event::SessionError(SessionError {
            code: SessionCode::ReplayGap,
            message: "events were lost to the bound of session.buffer_bytes; the histories that follow say how things stand".to_owned(),
        })];
        for id in self.conversations.keys() {
            if let Some(history) = self.history_of(id).await {
                account.push(Event::ChatHistoryResult(history));
            }
        }
        for confirm in self.state().await.approvals {
            account.push(Event::ChatToolConfirm(Box::new(confirm)));
        }
        self.feed.restart(account)
    }

    fn answer(&self, reply_to: Option<&RequestId>, event: Event) {
        self.shared.events.answer(reply_to, event);
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
