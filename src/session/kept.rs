//! Requests about kept sessions: to list and search them, to name, label, put away, delete and fork one.

use std::sync::Arc;

use jiff::Timestamp;
use outrigger_store::{Change, Cursor, Listing, TitleBy};

use super::counted::count_request;
use super::resolve::invalid;
use super::{Daemon, Session, UserSessions};
use crate::message::{ConversationId, SessionId};
use crate::protocol::command::{
    SessionArchive, SessionDelete, SessionFork, SessionLabel, SessionList, SessionRename,
};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::{RequestId, SessionCode, answer};
use crate::store::{self, Store as _, UserStore, UserUpdates, now};

/// Sessions of a page where the request does not say, and the most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 200;

/// The longest name of a session, in characters.
const MAX_TITLE: usize = 200;

/// The longest piece of a message in a list, in characters, and how many of them stand before the words.
const SNIPPET: usize = 160;
const BEFORE: usize = 40;

impl Session {
    pub(super) fn list_sessions(&self, wanted: SessionList, id: Option<&RequestId>) {
        let sessions = self.others();
        self.with_store(id, async move |store| {
            let page = list(store, sessions.upgrade(), wanted).await?;
            Ok(Event::SessionListResult(page))
        });
    }

    pub(super) fn rename_session(&self, wanted: SessionRename, id: Option<&RequestId>) {
        let title = wanted.title.trim().to_owned();
        let fits = (1..=MAX_TITLE).contains(&title.chars().count());
        if !fits || title.chars().any(char::is_control) {
            let problem = format!(
                "session:rename: field `title` must have 1 to {MAX_TITLE} characters, and no line breaks"
            );
            return self.answer(id, Event::SessionError(invalid(problem)));
        }
        let by = TitleBy::User;
        self.change(
            wanted.session_id,
            Change::Title { title, by },
            id,
            Event::SessionRenameResult,
        );
    }

    pub(super) fn archive_session(&self, wanted: SessionArchive, id: Option<&RequestId>) {
        let at_ms = wanted.archived.then(now);
        self.change(
            wanted.session_id,
            Change::Archived { at_ms },
            id,
            Event::SessionArchiveResult,
        );
    }

    pub(super) fn label_session(&self, wanted: SessionLabel, id: Option<&RequestId>) {
        let labels = match store::labels(&wanted.labels) {
            Ok(labels) => labels,
            Err(problem) => {
                let problem = invalid(format!("session:label: {problem}"));
                return self.answer(id, Event::SessionError(problem));
            }
        };
        self.change(
            wanted.session_id,
            Change::Labels(labels),
            id,
            Event::SessionLabelResult,
        );
    }

    /// Deletes another session. What runs in it is cancelled first.
    pub(super) fn delete_session(&self, wanted: SessionDelete, id: Option<&RequestId>) {
        let session_id = wanted.session_id;
        if session_id == self.ready.session_id {
            let problem = "session:delete: field `sessionId` names this session; delete it from another one, such as a new socket's";
            return self.answer(id, Event::SessionError(invalid(problem)));
        }
        let (sessions, updates) = (self.others(), self.updates());
        self.with_store(id, async move |store| {
            delete(&store, sessions.upgrade(), &updates, &session_id).await?;
            Ok(Event::SessionDeleteResult(answer::SessionDeleted {
                session_id,
            }))
        });
    }

    /// Makes a session of what was said in one.
    pub(super) fn fork_session(&self, wanted: SessionFork, id: Option<&RequestId>) {
        if wanted.before == Some(0) {
            let problem = "session:fork: field `before` must be 1 at least: a fork before the first message is a new session";
            return self.answer(id, Event::SessionError(invalid(problem)));
        }
        let from = self.or_this(wanted.session_id.clone());
        let updates = self.updates();
        let (daemon, quota) = (Arc::clone(&self.daemon), Arc::clone(&self.services.quota));
        self.with_store(id, async move |store| {
            count_request(&daemon, Some(&store), &quota).await?;
            let session_id = fork(&store, &updates, &from, &wanted).await?;
            Ok(Event::SessionForkResult(answer::SessionForked {
                session_id,
            }))
        });
    }

    pub(super) fn or_this(&self, named: Option<SessionId>) -> SessionId {
        named.unwrap_or_else(|| self.ready.session_id.clone())
    }

    /// Changes what is known of a session.
    fn change(
        &self,
        named: Option<SessionId>,
        change: Change,
        id: Option<&RequestId>,
        answer: impl FnOnce(answer::SessionChanged) -> Event + Send + 'static,
    ) {
        let session_id = self.or_this(named);
        let (sessions, updates) = (self.others(), self.updates());
        self.with_store(id, async move |store| {
            exists(&store, &session_id).await?;
            if let (Change::Title { .. }, Some(sessions)) = (&change, sessions.upgrade())
                && let Some(live) = sessions.find(&session_id)
            {
                live.feed.journal.named();
            }
            let changed = write(&store, &updates, &session_id, change).await;
            changed.map_err(|error| unchanged(&error))?;
            Ok(answer(answer::SessionChanged { session_id }))
        });
    }

    /// Returns the store as the session's user has it, where there is one.
    pub(super) fn store(&self) -> Option<UserStore> {
        let store = self.daemon.store.as_ref();
        store.map(|store| store.of(&self.grant.user))
    }

    /// Returns the way to all sessions of the session's user.
    pub(super) fn updates(&self) -> UserUpdates {
        self.daemon.updates.of(&self.grant.user)
    }

    /// Answers later, with what the store says.
    pub(super) fn with_store<F>(&self, id: Option<&RequestId>, work: impl FnOnce(UserStore) -> F)
    where
        F: Future<Output = Result<Event, SessionError>> + Send + 'static,
    {
        let Some(store) = self.store() else {
            let error = Event::SessionError(not_kept(&self.daemon));
            return self.answer(id, error);
        };
        let work = work(store);
        let problem = "too many requests about sessions at once; try again";
        self.answer_with_permit(&Arc::clone(&self.output_reads), problem, id, async move {
            work.await.unwrap_or_else(Event::SessionError)
        });
    }
}

impl UserSessions {
    /// Lists kept sessions, for who is on none.
    pub(crate) async fn list(
        &self,
        wanted: SessionList,
    ) -> Result<answer::SessionPage, SessionError> {
        list(self.store()?, Some(self.clone()), wanted).await
    }

    /// Deletes a kept session, with all that runs in it, for who is on none.
    pub(crate) async fn delete(&self, id: &SessionId) -> Result<(), SessionError> {
        delete(&self.store()?, Some(self.clone()), &self.updates(), id).await
    }

    /// Puts a kept session away, or takes it back, for who is on none.
    pub(crate) async fn archive(&self, id: &SessionId, archived: bool) -> Result<(), SessionError> {
        let store = self.store()?;
        exists(&store, id).await?;
        let at_ms = archived.then(now);
        let changed = write(&store, &self.updates(), id, Change::Archived { at_ms }).await;
        changed.map_err(|error| unchanged(&error))
    }

    /// Fails where no such session is kept.
    pub(crate) async fn is_kept(&self, id: &SessionId) -> Result<(), SessionError> {
        exists(&self.store()?, id).await
    }

    /// Makes a session of what was said in another one, all of it.
    pub(crate) async fn fork(&self, from: &SessionId) -> Result<SessionId, SessionError> {
        let (store, all) = (self.store()?, SessionFork::default());
        let quota = self.daemon().quotas.of(self.user());
        quota.grant_disk(self.grant().disk.as_ref());
        count_request(self.daemon(), Some(&store), &quota).await?;
        fork(&store, &self.updates(), from, &all).await
    }

    fn store(&self) -> Result<UserStore, SessionError> {
        self.kept().ok_or_else(|| not_kept(self.daemon()))
    }

    fn updates(&self) -> UserUpdates {
        self.daemon().updates.of(self.user())
    }
}

fn not_kept(daemon: &Daemon) -> SessionError {
    let problem = format!("sessions are not kept here: {}", daemon.not_kept);
    SessionError::new(SessionCode::Forbidden, problem)
}

async fn list(
    store: UserStore,
    sessions: Option<UserSessions>,
    wanted: SessionList,
) -> Result<answer::SessionPage, SessionError> {
    let limit = wanted.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(invalid(format!(
            "session:list: field `limit` must be 1 to {MAX_PAGE}"
        )));
    }
    let cursor = wanted.cursor.as_deref().map(Cursor::read);
    if cursor == Some(None) {
        let problem = "session:list: field `cursor` is no `nextCursor` of an earlier answer";
        return Err(invalid(problem));
    }
    let query = wanted.query.clone();
    let page = store.list(Listing {
        query: wanted.query,
        project: wanted.project,
        archived: wanted.archived,
        labels: wanted.labels,
        limit,
        cursor: cursor.flatten(),
    });
    let page = page.await.map_err(|error| failed(&error))?;
    let live = |id: &SessionId| {
        let sessions = sessions.as_ref();
        sessions.is_some_and(|sessions| sessions.find(id).is_some())
    };
    let query = query.unwrap_or_default();
    let listed = page.sessions.into_iter();
    Ok(answer::SessionPage {
        sessions: listed.map(|it| shown(it, &query, live)).collect(),
        next_cursor: page.next.map(|it| it.to_string()),
    })
}

/// Deletes a session. What runs in it is cancelled first.
async fn delete(
    store: &UserStore,
    sessions: Option<UserSessions>,
    updates: &UserUpdates,
    id: &SessionId,
) -> Result<(), SessionError> {
    exists(store, id).await?;
    // What runs is not cancelled for nothing.
    store.flush().await.map_err(|error| unchanged(&error))?;
    // Nobody begins it anew meanwhile.
    let _one = match &sessions {
        Some(sessions) => Some(sessions.end(id).await),
        None => None,
    };
    write(store, updates, id, Change::Delete)
        .await
        .map_err(|error| {
            let failed = failed(&error);
            let message = format!(
                "{}; the session is kept, but what ran in it was cancelled: delete it again later",
                failed.message
            );
            SessionError { message, ..failed }
        })
}

async fn fork(
    store: &UserStore,
    updates: &UserUpdates,
    from: &SessionId,
    wanted: &SessionFork,
) -> Result<SessionId, SessionError> {
    exists(store, from).await?;
    let part = wanted.part();
    let part = part.map(|(id, before)| (id.to_string(), before));
    let session_id = SessionId::random()
        .ok_or_else(|| SessionError::new(SessionCode::Internal, "no random numbers for an id"))?;
    let fork = Change::Fork {
        from: from.to_string(),
        part,
        at_ms: now(),
    };
    let forked = write(store, updates, &session_id, fork).await;
    forked.map_err(|error| match (&error, wanted.part()) {
        (store::Error::Unknown, Some((id, _))) => SessionError::new(
            SessionCode::ConversationNotFound,
            format!("session `{from}` has no conversation {:?}", id.as_str()),
        ),
        (store::Error::Beyond { messages }, _) => invalid(format!(
            "session:fork: field `before`: the conversation has {messages} messages, so {messages} takes them all"
        )),
        _ => unchanged(&error),
    })?;
    Ok(session_id)
}

async fn exists(store: &UserStore, id: &SessionId) -> Result<(), SessionError> {
    match store
        .has(id.as_str())
        .await
        .map_err(|error| failed(&error))?
    {
        true => Ok(()),
        false => Err(unknown(id)),
    }
}

pub(super) fn unknown(id: &SessionId) -> SessionError {
    SessionError::new(
        SessionCode::SessionNotFound,
        format!("no session `{id}` is kept; session:list says which are"),
    )
}

/// Writes a change now or never, waits until it is safe, and tells those who show lists.
async fn write(
    store: &UserStore,
    updates: &UserUpdates,
    id: &SessionId,
    change: Change,
) -> Result<(), store::Error> {
    let changes = vec![change];
    let update = store::update(id, &changes);
    store.attempt(id.as_str(), changes).await?;
    if let Some(update) = update {
        updates.send(update);
    }
    Ok(())
}

pub(super) fn failed(error: &store::Error) -> SessionError {
    let code = match error {
        store::Error::Unknown => SessionCode::InvalidPayload,
        store::Error::Failing(_) => {
            return SessionError::new(
                SessionCode::StoreUnavailable,
                format!("{error}; what runs goes on, try this again in a while"),
            );
        }
        store::Error::Taken { .. } => SessionCode::StoreUnavailable,
        store::Error::Elsewhere { .. } => SessionCode::SessionElsewhere,
        _ => SessionCode::Internal,
    };
    SessionError::new(code, error.to_string())
}

/// Returns why a change was not made, and never will be.
pub(super) fn unchanged(error: &store::Error) -> SessionError {
    let failed = failed(error);
    match error {
        store::Error::Unknown => failed,
        _ => SessionError {
            message: format!("{}; nothing was changed, try again later", failed.message),
            ..failed
        },
    }
}

/// Returns a moment as clients get it: RFC 3339, UTC, milliseconds.
pub(super) fn time(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    format!("{time:.3}")
}

fn shown(
    listed: outrigger_store::Listed,
    query: &str,
    live: impl Fn(&SessionId) -> bool,
) -> answer::KeptSession {
    let session_id = SessionId::new(listed.id);
    answer::KeptSession {
        live: live(&session_id),
        session_id,
        title: listed.title,
        project: listed.project,
        created_at: time(listed.created_ms),
        updated_at: time(listed.updated_ms),
        archived: listed.archived_ms.is_some(),
        labels: listed.labels,
        messages: listed.messages,
        snippet: listed.snippet.map(|snippet| answer::Snippet {
            conversation_id: ConversationId::new(snippet.conversation),
            place: snippet.place,
            text: piece(&store::words_of(&snippet.text), query),
        }),
    }
}

/// Returns the piece of a text in which the first of the words stands.
pub(crate) fn piece(text: &str, query: &str) -> String {
    let lower = text.to_lowercase();
    let words = query.split(|c: char| !c.is_alphanumeric());
    let mut found = words.filter(|word| !word.is_empty());
    let at = found.find_map(|word| lower.find(&word.to_lowercase()));
    // Lower case may have other lengths.
    let mut lowered = 0;
    let stands_before = |character: &char| {
        lowered += character.to_lowercase().map(char::len_utf8).sum::<usize>();
        at.is_some_and(|at| lowered <= at)
    };
    let at = text.chars().take_while(stands_before).count();
    let from = at.saturating_sub(BEFORE);
    let all = text.chars().count();
    let kept: String = text.chars().skip(from).take(SNIPPET).collect();
    let (before, after) = (from > 0, from + SNIPPET < all);
    let kept = kept.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(
        "{}{kept}{}",
        if before { "…" } else { "" },
        if after { "…" } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_where_the_words_are() {
        let long = format!("{} needle {}", "a ".repeat(100), "b ".repeat(100));
        let found = piece(&long, "NEEDLE \"x");
        assert!(found.starts_with('…') && found.ends_with('…'), "{found}");
        assert!(found.contains("needle"), "{found}");
        let longer = format!("{}needle", "İ".repeat(100));
        assert!(piece(&longer, "needle").ends_with("İneedle"));
        for (text, query, expected) in [
            ("short", "nothing", "short"),
            ("two\n lines", "lines", "two lines"),
            ("", "x", ""),
        ] {
            assert_eq!(piece(text, query), expected);
        }
    }
}
