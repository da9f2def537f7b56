//! Requests about files that calls changed: what changed, and to put it back.

mod plan;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use outrigger_store::FileQuery;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::kept::{failed, time};
use super::requests::look_at;
use super::resolve::invalid;
use crate::conversation::{self, View};
use crate::exchange::context::SessionContext;
use crate::exchange::files::Keeper;
use crate::message::{ConversationId, Message, MessageId, NotReverted, Part, ToolId};
use crate::protocol::answer::{self, FileReverted, FilesReverted, RevertOutcome};
use crate::protocol::command::{FilesChanges, FilesRevert};
use crate::protocol::content::WireMessage;
use crate::protocol::event::{Event, SessionError, WholeMessage};
use crate::protocol::{RequestId, SessionCode};
use crate::sandbox::paths::Roots;
use crate::store::files::{Author, Known, What};
use crate::store::{Store as _, UserStore};
use crate::telemetry::Redactor;
use crate::tool::Claim;
use crate::tool::locks::{Holder, Locks};
use crate::tool::undo::{self, Content, PutBack};

use plan::{Step, Why, plan};

/// Changes of a page where the request does not say, and the most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 200;

/// After how many bytes of changes a page ends.
const PAGE_BYTES: usize = 1024 * 1024;

/// The most changes that are undone together: as many as a session keeps.
const MAX_CHANGES: usize = 1_000;

/// The most files that an answer names of those that commands changed.
const MAX_OF_COMMANDS: usize = 1_000;

/// The most files that the model is told of by name.
const TOLD: usize = 20;

impl Session {
    pub(super) fn file_changes(&self, wanted: FilesChanges, id: Option<&RequestId>) {
        let refuse = |problem: &str| {
            let problem = invalid(format!("files:changes: {problem}"));
            self.answer(id, Event::SessionError(problem));
        };
        let limit = wanted.limit.unwrap_or(PAGE);
        if !(1..=MAX_PAGE).contains(&limit) {
            return refuse(&format!("field `limit` must be 1 to {MAX_PAGE}"));
        }
        // Before the last one of a page there is another one.
        let place = |it: &String| it.parse().ok().filter(|key| *key > 0);
        let cursor = wanted.cursor.as_ref().map(place);
        if cursor == Some(None) {
            return refuse("field `cursor` is no `nextCursor` of an earlier answer");
        }
        let query = FileQuery {
            session: self.ready.session_id.to_string(),
            conversation: wanted.conversation_id.map(|it| it.to_string()),
            since: wanted.since.map(|it| it.to_string()),
            cursor: cursor.flatten(),
            limit,
            bytes: PAGE_BYTES,
            ..FileQuery::default()
        };
        self.with_store(id, async move |store| {
            if let Some(since) = &query.since {
                let is_known = store.has_exchange(&query.session, since).await;
                if !is_known.map_err(|error| failed(&error))? {
                    return Err(invalid(format!(
                        "files:changes: field `since`: no exchange `{since}` is known in this session"
                    )));
                }
            }
            let page = store.files(query).await.map_err(|error| failed(&error))?;
            let changes = page.changes.into_iter().filter_map(Known::of);
            Ok(Event::FilesChangesResult(answer::FileChanges {
                changes: changes.map(shown).collect(),
                next_cursor: page.next.map(|key| key.to_string()),
            }))
        });
    }

    /// Puts files back.
    pub(super) fn revert_files(&self, wanted: FilesRevert, id: Option<&RequestId>) {
        if wanted.message_id.is_some() == wanted.tool_id.is_some() {
            let problem = "files:revert: give one of the fields `messageId` and `toolId`";
            return self.answer(id, Event::SessionError(invalid(problem)));
        }
        let inboxes = self.conversations.iter();
        let inboxes = inboxes.map(|(id, handle)| (id.clone(), handle.inbox.clone()));
        let revert = Revert {
            session: self.shared.clone(),
            locks: self.services.locks.clone(),
            redactor: self.services.redactor.clone(),
            cancel: self.cancel.clone(),
            inboxes: inboxes.collect(),
        };
        self.with_store(id, async move |store| {
            let reverted = revert.run(&store, wanted).await?;
            Ok(Event::FilesRevertResult(reverted))
        });
    }
}

/// Returns a change as clients are shown it.
fn shown(known: Known) -> answer::FilesChanged {
    answer::FilesChanged {
        files: known.files(),
        reason: known.not_reverted(),
        conversation_id: known.author.conversation,
        message_id: known.author.exchange,
        tool_id: known.author.call,
        at: time(known.at_ms),
        root: match known.what {
            What::File(file) => Some(file.root),
            What::Command(_) => None,
        },
        diff: Some(known.diff).filter(|diff| !diff.is_empty()),
    }
}

/// What it takes to put files back.
struct Revert {
    session: SessionContext,
    locks: Locks,
    redactor: Redactor,
    /// Cancelled where the session ends.
    cancel: CancellationToken,
    inboxes: HashMap<ConversationId, mpsc::Sender<conversation::Command>>,
}

impl Revert {
    async fn run(
        &self,
        store: &UserStore,
        wanted: FilesRevert,
    ) -> Result<FilesReverted, SessionError> {
        let FilesRevert {
            message_id,
            tool_id,
        } = wanted;
        let query = FileQuery {
            session: self.session.id.to_string(),
            exchange: message_id.as_ref().map(ToString::to_string),
            call: tool_id.as_ref().map(ToString::to_string),
            limit: MAX_CHANGES,
            ..FileQuery::default()
        };
        let page = store.files(query).await.map_err(|error| failed(&error))?;
        let known: Vec<Known> = page.changes.into_iter().filter_map(Known::of).collect();
        let Some(first) = known.first() else {
            return Err(nothing(message_id.as_ref(), tool_id.as_ref()));
        };
        let author = Author {
            conversation: first.author.conversation.clone(),
            exchange: self.session.ids.message(),
            call: None,
        };
        if self.is_busy(&author.conversation).await {
            let problem = format!(
                "an exchange runs in conversation `{}`; cancel it or wait for its end, then undo its changes",
                author.conversation
            );
            return Err(SessionError::new(SessionCode::ConversationBusy, problem));
        }
        let (mut files, mut of_commands) = (Vec::new(), Vec::new());
        for change in known {
            match change.what {
                What::File(file) => files.push(file),
                What::Command(changed) => of_commands.extend(changed.files),
            }
        }
        let steps = plan(files);
        let roots = self.session.workspace.exec();
        let roots = roots.map(|exec| Arc::clone(exec.roots()));
        let keeper = Arc::new(Keeper {
            journal: self.session.journal.clone(),
            redactor: self.redactor.clone(),
            executions: Arc::clone(&self.session.executions),
            author: author.clone(),
            cancel: self.cancel.clone(),
        });
        let mut done = Vec::with_capacity(steps.len());
        match roots {
            Err(why) => {
                let why = (NotReverted::Elsewhere, why.to_owned());
                done.extend(steps.into_iter().map(|step| row(&step, Err(why.clone()))));
            }
            Ok(roots) => {
                let _held = self.hold(&roots, &steps, &author)?;
                for step in steps {
                    let put = put_back(store, &roots, &step, &keeper).await;
                    done.push(row(&step, put));
                }
            }
        }
        let is_back = |file: &&FileReverted| file.outcome != RevertOutcome::Left;
        let back: Vec<&str> = done.iter().filter(is_back).map(|it| &*it.path).collect();
        let message_id = (!back.is_empty()).then(|| author.exchange.clone());
        if message_id.is_some() {
            tracing::info!(files = back.len(), "files were put back");
            self.tell(&author, &back).await;
        }
        let more = add_of_commands(&mut done, of_commands.into_iter().map(|file| file.path));
        Ok(FilesReverted {
            message_id,
            files: done,
            more: (more > 0).then_some(more),
        })
    }

    async fn is_busy(&self, conversation: &ConversationId) -> bool {
        match self.inboxes.get(conversation) {
            Some(inbox) => look_at(inbox, |view| view.is_busy()).await == Some(true),
            None => false,
        }
    }

    /// Locks the files as a call does, but waits for none: a command may take long.
    fn hold(
        &self,
        roots: &Roots,
        steps: &[Step],
        author: &Author,
    ) -> Result<crate::tool::locks::Ticket, SessionError> {
        let holder = Holder {
            session: self.session.id.clone(),
            conversation: author.conversation.clone(),
            call: ToolId::new(author.exchange.as_str()),
            tool: "files:revert".to_owned(),
        };
        let identity = |step: &Step| undo::identity(roots, &step.root, &step.path);
        let claims = steps.iter().filter_map(identity).map(Claim::Write);
        let ticket = self.locks.queue(holder, claims.collect());
        match ticket.obstacle() {
            None => Ok(ticket),
            Some(obstacle) => Err(SessionError::new(
                SessionCode::ConversationBusy,
                format!("it {obstacle}; try again when that has ended"),
            )),
        }
    }

    /// Tells the model what the user did, as something that the user said. Where an exchange has begun meanwhile it is
    /// not told: its tools refuse to change a file that is other than it was read.
    async fn tell(&self, author: &Author, back: &[&str]) {
        let Some(inbox) = self.inboxes.get(&author.conversation) else {
            return;
        };
        let message = Message::User(vec![Part::text(note(back))]);
        let (conversation, id) = (author.conversation.clone(), author.exchange.clone());
        let say = move |view: View<'_>| {
            if view.is_busy() {
                return;
            }
            let shown = WireMessage::from(&message);
            view.context.conversation.history.say(&id, message, &[]);
            let whole = WholeMessage::new(&conversation, &id, shown);
            let event = Event::ChatMessage(Box::new(whole));
            view.context.events().emit(event);
        };
        look_at(inbox, say).await;
    }
}

/// Says that nothing is known of what is to be undone.
fn nothing(message: Option<&MessageId>, tool: Option<&ToolId>) -> SessionError {
    let (code, what) = match (message, tool) {
        (_, Some(tool)) => (SessionCode::ToolNotFound, format!("call `{tool}`")),
        (Some(message), None) => (SessionCode::InvalidPayload, format!("exchange `{message}`")),
        (None, None) => (SessionCode::InvalidPayload, "nothing".to_owned()),
    };
    let problem = format!(
        "files:revert: no change of a file by {what} is kept in this session; files:changes says which are"
    );
    SessionError::new(code, problem)
}

/// Puts one file back, as far as can be; returns why not further, where that is so.
async fn put_back(
    store: &UserStore,
    roots: &Arc<Roots>,
    step: &Step,
    keeper: &Arc<Keeper>,
) -> Result<Option<Why>, Why> {
    let content = match step.before.clone()? {
        None => None,
        Some((hash, mode)) => {
            let bytes = store.attachment(hash).await;
            let bytes = bytes.map_err(|error| (NotReverted::Failed, error.to_string()))?;
            let bytes = bytes.ok_or_else(|| {
                let text = "its old content is not kept any more".to_owned();
                (NotReverted::NotKept, text)
            })?;
            Some(Content { bytes, mode })
        }
    };
    let wanted = PutBack {
        root: step.root.clone(),
        path: step.path.clone(),
        left: step.left.clone(),
        content,
    };
    let (roots, keeper) = (Arc::clone(roots), Arc::clone(keeper));
    let work = move || undo::put_back(&roots, &wanted, &*keeper);
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        tracing::error!(%error, "putting a file back ended early");
        let text = "it failed for an internal reason; see the log".to_owned();
        Err((NotReverted::Failed, text))
    })?;
    Ok(step.stopped.clone())
}

fn row(step: &Step, done: Result<Option<Why>, Why>) -> FileReverted {
    let (outcome, why) = match done {
        Ok(None) => (RevertOutcome::Reverted, None),
        Ok(Some(why)) => (RevertOutcome::Partly, Some(why)),
        Err(why) => (RevertOutcome::Left, Some(why)),
    };
    let (reason, message) = why.unzip();
    FileReverted {
        path: step.path.clone(),
        root: Some(step.root.clone()),
        outcome,
        reason,
        message,
    }
}

/// Adds the files that commands changed, each once; returns how many there are besides.
fn add_of_commands(done: &mut Vec<FileReverted>, paths: impl Iterator<Item = String>) -> u64 {
    let paths: BTreeSet<String> = paths.collect();
    let count = paths.len();
    done.extend(paths.into_iter().take(MAX_OF_COMMANDS).map(|path| {
        let message = "a command changed it, and what it held before is not kept";
        FileReverted {
            path,
            root: None,
            outcome: RevertOutcome::Left,
            reason: Some(NotReverted::Command),
            message: Some(message.to_owned()),
        }
    }));
    count.saturating_sub(MAX_OF_COMMANDS) as u64
}

/// What the model reads of it.
fn note(back: &[&str]) -> String {
    let named: Vec<String> = back
        .iter()
        .take(TOLD)
        .map(|path| format!("{path:?}"))
        .collect();
    let more = match back.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "[I undid changes that you made: {}{more}. Read these files again before you rely on them.]",
        named.join(", ")
    )
}
