//! Sends and edits whose documents are being read, and of which hooks are asked (`asking`), and what waits behind each: in tasks, so
//! that the session goes on meanwhile.
//!
//! What a client says in a conversation keeps its order: while a send is being read there, further sends,
//! calls and changes of its queue wait behind it in a line. Answers to questions, a cancel and everything else do not.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::asking::Asker;
use super::defaults::Defaults;
use super::resolve::invalid;
use super::{Session, shutting_down};
use crate::conversation::Unread;
use crate::document;
use crate::message::{ConversationId, Part};
use crate::protocol::command::{ChatSend, Command};
use crate::protocol::content::Content;
use crate::protocol::event::{ChatError, Event, SessionError};
use crate::protocol::queue::ChatQueue;
use crate::protocol::{ChatCode, RequestId, SessionCode};
use crate::users::Grant;

/// Requests of a session that are read or wait behind one that is: each may be as large as a frame.
const MAX_UNREAD: usize = 16;

/// Sends of a session that are read at once: the daemon reads two files at once, of all sessions.
const AT_ONCE: usize = 1;

/// The lines of a session.
pub(super) struct Reading {
    lines: HashMap<ConversationId, Line>,
    tasks: JoinSet<(Unfinished, Result<(), SessionError>)>,
    slots: Arc<Semaphore>,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            lines: HashMap::new(),
            tasks: JoinSet::new(),
            slots: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

/// What is being read in a conversation, and what waits behind it.
#[derive(Default)]
struct Line {
    /// `None` while what waits behind it is taken.
    read: Option<BeingRead>,
    behind: VecDeque<Behind>,
}

struct BeingRead {
    task: AbortHandle,
    is_send: bool,
    id: Option<RequestId>,
    defaults: Defaults,
    grant: Arc<Grant>,
}

struct Behind {
    command: Command,
    id: Option<RequestId>,
    /// What the client had configured when it asked, and what it may do.
    defaults: Defaults,
    grant: Arc<Grant>,
}

/// What is done once its documents are read and hooks let it pass.
pub(super) enum Unfinished {
    /// A send, and its digest.
    Send(Box<ChatSend>, Vec<u8>),
    Edit(Box<ChatQueue>),
}

/// What a task came to.
pub(super) type Done = Result<(Id, (Unfinished, Result<(), SessionError>)), JoinError>;

impl Unfinished {
    pub(super) fn conversation(&self) -> &ConversationId {
        match self {
            Self::Send(send, _) => &send.conversation_id,
            Self::Edit(edit) => &edit.conversation_id,
        }
    }

    /// Reads the documents, those of a send's history too.
    async fn read(&mut self) -> Result<(), String> {
        let mut reader = document::Reader::default();
        let (history, content) = match self {
            Self::Send(send, _) => (send.history.as_mut(), Some(&mut send.content)),
            Self::Edit(edit) => (None, edit.content.as_mut()),
        };
        for (at, message) in history.into_iter().flatten().enumerate() {
            if let Content::Parts(parts) = &mut message.content {
                let field = format!("history[{at}].content");
                reader.read(&field, parts).await?;
            }
        }
        match content {
            Some(Content::Parts(parts)) => reader.read("content", parts).await,
            _ => Ok(()),
        }
    }
}

/// Returns whether there are documents in it.
pub(super) fn has_documents(content: &Content) -> bool {
    let is_document = |part: &Part| matches!(part, Part::Document(_));
    matches!(content, Content::Parts(parts) if parts.iter().any(is_document))
}

impl Reading {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns whether documents of a send in this conversation are being read.
    pub(super) fn is_reading(&self, conversation: &ConversationId) -> bool {
        let line = self.lines.get(conversation);
        line.is_some_and(|line| line.read.is_some())
    }

    /// Waits until something is read; `None` where nothing is.
    pub(super) async fn next(&mut self) -> Option<Done> {
        self.tasks.join_next_with_id().await
    }

    fn is_full(&self) -> bool {
        let counts = self.lines.values();
        let counts = counts.map(|line| usize::from(line.read.is_some()) + line.behind.len());
        counts.sum::<usize>() >= MAX_UNREAD
    }

    /// Takes what a task has read off its line; `None` where it was dropped meanwhile.
    fn take(&mut self, task: Id) -> Option<(ConversationId, BeingRead)> {
        let is_its = |read: &mut BeingRead| read.task.id() == task;
        let mut lines = self.lines.iter_mut();
        lines.find_map(|(id, line)| Some((id.clone(), line.read.take_if(is_its)?)))
    }

    /// Takes the next one that waits in a conversation. The line is gone where it was the last one.
    fn take_behind(&mut self, conversation: &ConversationId) -> Option<Behind> {
        let line = self.lines.get_mut(conversation)?;
        if line.read.is_some() {
            return None;
        }
        let next = line.behind.pop_front();
        if next.is_none() {
            self.lines.remove(conversation);
        }
        next
    }

    /// Gives up everything, and returns the requests that are to be answered.
    pub(super) fn give_up(&mut self) -> Vec<Option<RequestId>> {
        let lines = std::mem::take(&mut self.lines).into_values();
        let requests = lines.flat_map(|line| {
            let read = line.read.map(|read| {
                read.task.abort();
                read.id
            });
            read.into_iter()
                .chain(line.behind.into_iter().map(|it| it.id))
        });
        requests.collect()
    }
}

impl Session {
    /// Has documents read in a task; [`Self::has_read`] goes on with them.
    pub(super) fn read_documents(&mut self, mut unfinished: Unfinished, id: Option<&RequestId>) {
        if self.reading.is_full() {
            return self.answer(id, too_many());
        }
        self.spare
            .store(false, std::sync::atomic::Ordering::Relaxed);
        let conversation = unfinished.conversation().clone();
        let is_send = matches!(unfinished, Unfinished::Send(..));
        let slots = Arc::clone(&self.reading.slots);
        let asker = Asker {
            services: self.services.clone(),
            workspace: Arc::clone(&self.shared.workspace),
            session: self.ready.session_id.clone(),
            events: self.shared.events.clone(),
        };
        let task = self.reading.tasks.spawn(async move {
            let slot = slots.acquire_owned().await;
            let read = unfinished.read().await;
            // Hooks have places of their own.
            drop(slot);
            let outcome = match read {
                Ok(()) => asker.ask(&mut unfinished).await,
                Err(problem) => Err(invalid(problem)),
            };
            (unfinished, outcome)
        });
        self.feed.grow(|log| log.status_mut().reads(&conversation));
        let line = self.reading.lines.entry(conversation).or_default();
        line.read = Some(BeingRead {
            task,
            is_send,
            id: id.cloned(),
            defaults: self.defaults.clone(),
            grant: Arc::clone(&self.grant),
        });
    }

    /// Has a request wait behind what is read in its conversation.
    pub(super) fn wait_behind(
        &mut self,
        conversation: &ConversationId,
        command: Command,
        id: Option<&RequestId>,
    ) {
        if self.reading.is_full() {
            return self.answer(id, too_many());
        }
        let line = self.reading.lines.entry(conversation.clone()).or_default();
        line.behind.push_back(Behind {
            command,
            id: id.cloned(),
            defaults: self.defaults.clone(),
            grant: Arc::clone(&self.grant),
        });
    }

    /// Goes on with what was read, and with what waited behind it.
    pub(super) async fn has_read(&mut self, done: Done) {
        let (task, outcome) = match done {
            Ok((task, outcome)) => (task, Some(outcome)),
            Err(error) => (error.id(), None),
        };
        let Some((conversation, read)) = self.reading.take(task) else {
            return;
        };
        let id = read.id.as_ref();
        let now = std::mem::replace(&mut self.defaults, read.defaults);
        let grant = std::mem::replace(&mut self.grant, read.grant);
        match outcome {
            Some((Unfinished::Send(send, digest), Ok(()))) => {
                // With their text, so that they are not read again after a restart.
                let json = super::sends::json(&send);
                self.admit_send(*send, json, digest, id).await;
            }
            Some((Unfinished::Edit(edit), Ok(()))) => self.change_queue(*edit, id).await,
            Some((_, Err(problem))) => self.answer(id, Event::SessionError(problem)),
            None => {
                let problem = "the documents could not be read: the daemon failed; see its log";
                let problem = SessionError::new(SessionCode::Internal, problem);
                self.answer(id, Event::SessionError(problem));
            }
        }
        (self.defaults, self.grant) = (now, grant);
        self.go_on(&conversation).await;
    }

    /// Takes what waits in a conversation in which nothing is read any more, up to the next one that is to be read.
    async fn go_on(&mut self, conversation: &ConversationId) {
        if !self.reading.lines.contains_key(conversation) {
            return;
        }
        while let Some(next) = self.reading.take_behind(conversation) {
            let now = std::mem::replace(&mut self.defaults, next.defaults);
            let grant = std::mem::replace(&mut self.grant, next.grant);
            let id = next.id.as_ref();
            match next.command {
                // Each was counted when it came.
                Command::ChatSend(send) => {
                    if let Some(new) = self.new_send(*send, id).await {
                        self.take_send(new, id).await;
                    }
                }
                Command::ToolExecute(wanted) => {
                    if let Some(digest) = self.new_call(&wanted, id).await {
                        self.take_call(wanted, digest, id).await;
                    }
                }
                Command::ChatQueue(wanted) => self.take_queue(wanted, id).await,
                Command::ChatCompact(wanted) => self.take_compact(wanted, id).await,
                // Nothing else waits.
                _ => {}
            }
            (self.defaults, self.grant) = (now, grant);
        }
        if !self.reading.is_reading(conversation) {
            self.note_live(conversation).await;
            self.feed
                .grow(|log| log.status_mut().has_read(conversation));
        }
    }

    /// Has the session's status know whether an exchange runs in a conversation, or is about to.
    pub(super) async fn note_live(&self, conversation: &ConversationId) {
        let (feed, id) = (Arc::clone(&self.feed), conversation.clone());
        // In its own task, so that no event of it comes in between.
        let note = move |view: crate::conversation::View<'_>| {
            let is_live = view.is_live();
            feed.grow(|log| log.status_mut().note_live(&id, is_live));
        };
        self.look(conversation, note).await;
    }

    /// Drops the send whose documents are read where it would run next or what waits is to be dropped, and then all sends
    /// and calls behind it, too.
    pub(super) async fn cancel_unread(
        &mut self,
        conversation: &ConversationId,
        queued: bool,
    ) -> Unread {
        let mut unread = Unread::default();
        if !self.reading.is_reading(conversation) {
            return unread;
        }
        let is_busy = self.look(conversation, |view| view.is_busy()).await == Some(true);
        let Some(line) = self.reading.lines.get_mut(conversation) else {
            return unread;
        };
        let goes = |read: &mut BeingRead| read.is_send && (queued || !is_busy);
        let mut dropped = Vec::new();
        if let Some(read) = line.read.take_if(goes) {
            read.task.abort();
            dropped.push(read.id);
            unread.next = !is_busy;
            unread.queued += usize::from(is_busy);
        }
        if queued {
            let is_said =
                |it: &Behind| matches!(it.command, Command::ChatSend(_) | Command::ToolExecute(_));
            let behind = std::mem::take(&mut line.behind);
            let (said, rest): (Vec<_>, Vec<_>) = behind.into_iter().partition(is_said);
            unread.queued += said.len();
            line.behind = rest.into();
            dropped.extend(said.into_iter().map(|it| it.id));
        }
        for id in dropped {
            self.answer(id.as_ref(), cancelled(conversation));
        }
        unread
    }

    /// Goes on after a cancel, where it dropped what was read.
    pub(super) async fn go_on_after_cancel(&mut self, conversation: &ConversationId) {
        if !self.reading.is_reading(conversation) {
            self.go_on(conversation).await;
        }
    }

    /// Drops everything that was to be done in a conversation that is closed.
    pub(super) fn close_unread(&mut self, conversation: &ConversationId) {
        let Some(line) = self.reading.lines.remove(conversation) else {
            return;
        };
        if let Some(read) = &line.read {
            read.task.abort();
        }
        let read = line.read.into_iter().map(|read| read.id);
        for id in read.chain(line.behind.into_iter().map(|it| it.id)) {
            self.answer(id.as_ref(), cancelled(conversation));
        }
        self.feed
            .grow(|log| log.status_mut().has_read(conversation));
    }

    /// Answers what is read, and what waits behind it, where the daemon ends.
    pub(super) fn refuse_unread(&mut self) {
        for id in self.reading.give_up() {
            if self.daemon.stop.is_cancelled() {
                self.answer(id.as_ref(), Event::SessionError(shutting_down()));
            }
        }
    }
}

fn too_many() -> Event {
    let problem = format!(
        "{MAX_UNREAD} requests of this session wait until documents are read and hooks have answered; send it again in a moment"
    );
    Event::SessionError(SessionError::new(SessionCode::RateLimited, problem))
}

fn cancelled(conversation: &ConversationId) -> Event {
    let problem = "this was cancelled while documents were read or hooks were asked: nothing of it was taken; send it again where it is still wanted";
    Event::ChatError(Box::new(ChatError {
        retryable: true,
        ..ChatError::new(conversation, None, ChatCode::Interrupted, problem)
    }))
}
