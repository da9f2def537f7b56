//! Sessions that are kept: found by what flags or `/sessions` say of one, listed, and gone on in, with the end of what
//! was said in it on the screen. Pure.

use super::{Action, Talk};
use crate::plain_text::line::{conversation, first_word};
use crate::plain_text::style::Style;
use crate::plain_text::text::one_line;
use crate::protocol::answer::{KeptSession, SessionPage, SessionState};
use crate::protocol::command::{ChatHistory, Empty, SessionList};
use crate::protocol::event::{Event, Ready, SessionError};
use crate::protocol::{Command, SessionCode, word};

/// Sessions of a list.
const LISTED: usize = 20;

/// Sessions of a page where one is looked for by its id: as many as the daemon gives.
const PAGE: usize = 200;

/// Messages that are shown of a session that is gone on in.
const SHOWN: usize = 6;

/// Longest name of a session, in characters.
const TITLE: usize = 60;

/// Characters of an id in a list; whole ones can be marked and copied as well.
const ID: usize = 8;

/// What the user says of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chat) enum Wanted {
    /// The last one of this project.
    Last,
    /// The one whose id is this or begins so.
    Id(String),
}

/// How far the way to another session is.
#[derive(Debug)]
pub(super) enum Way {
    /// The list is on its way, to be shown.
    Listing,
    Seeking(Search),
    /// The socket moves to it, and how things stand there is asked for.
    Opening {
        session: Box<KeptSession>,
        /// Whether flags asked for it.
        is_first: bool,
    },
}

#[derive(Debug)]
pub(super) struct Search {
    wanted: Wanted,
    found: Vec<KeptSession>,
    /// Whether those that were put away are looked at.
    archived: bool,
    is_first: bool,
}

/// Returns what is said after `/sessions`; `None` of another line.
pub(super) fn argument(line: &str) -> Option<&str> {
    let (word, argument) = first_word(line.trim());
    (word == "/sessions").then_some(argument)
}

impl Talk {
    /// Lists the sessions of this project, or goes on in the one that is named.
    pub(super) fn sessions(&mut self, argument: &str) {
        let number = argument.parse::<usize>().ok();
        let listed = number.and_then(|number| self.listed.get(number.checked_sub(1)?));
        match (argument, listed) {
            ("", _) => {
                self.way = Some(Way::Listing);
                self.list(self.project.clone(), LISTED, false, None);
            }
            (_, Some(id)) => self.seek(Wanted::Id(id.to_string()), false),
            (id, None) => self.seek(Wanted::Id(id.to_owned()), false),
        }
    }

    /// Looks for a session, to go on in it; where there is none, a chat ends whose flags ask for it.
    pub(super) fn seek(&mut self, wanted: Wanted, is_first: bool) {
        let (project, limit) = match &wanted {
            Wanted::Last => (self.project.clone(), 1),
            Wanted::Id(_) => (None, PAGE),
        };
        if wanted == Wanted::Last && project.is_none() {
            let problem = "there is no project here, and so no last session of it";
            return self.not_found(problem, is_first);
        }
        self.way = Some(Way::Seeking(Search {
            wanted,
            found: Vec::new(),
            archived: false,
            is_first,
        }));
        self.list(project, limit, false, None);
    }

    fn list(
        &mut self,
        project: Option<String>,
        limit: usize,
        archived: bool,
        cursor: Option<String>,
    ) {
        self.request(Command::SessionList(SessionList {
            query: None,
            project,
            archived,
            labels: Vec::new(),
            limit: Some(limit),
            cursor,
        }));
    }

    /// Takes a page of sessions, or that there is none.
    pub(super) fn found(&mut self, answer: &Event) {
        match (answer, self.way.take()) {
            (Event::SessionListResult(page), Some(Way::Listing)) => self.show_list(page),
            (Event::SessionListResult(page), Some(Way::Seeking(search))) => {
                self.search(page, search);
            }
            (_, Some(Way::Listing)) => self.refused_list(false),
            (_, Some(Way::Seeking(search))) => self.refused_list(search.is_first),
            (_, way) => self.way = way,
        }
    }

    fn show_list(&mut self, page: &SessionPage) {
        self.listed = page
            .sessions
            .iter()
            .map(|it| it.session_id.clone())
            .collect();
        if page.sessions.is_empty() {
            self.say(Style::Dim, "no session of this project is kept yet");
        }
        for (at, session) in page.sessions.iter().enumerate() {
            let id: String = session.session_id.as_str().chars().take(ID).collect();
            let text = format!("{:>3}  {id}  {}", at + 1, described(session));
            self.say(Style::Plain, text);
        }
        if page.next_cursor.is_some() {
            self.say(Style::Dim, "older ones are there too");
        }
        self.go_on_typing();
    }

    fn search(&mut self, page: &SessionPage, mut search: Search) {
        let fits = |it: &&KeptSession| match &search.wanted {
            Wanted::Last => true,
            Wanted::Id(id) => it.session_id.as_str().starts_with(id.as_str()),
        };
        let mut fitting: Vec<KeptSession> = page.sessions.iter().filter(fits).cloned().collect();
        let is_it = |it: &KeptSession| search.wanted == Wanted::Id(it.session_id.to_string());
        if let Some(at) = fitting.iter().position(is_it) {
            return self.open_session(fitting.swap_remove(at), search.is_first);
        }
        search.found.append(&mut fitting);
        let is_id = matches!(search.wanted, Wanted::Id(_));
        if is_id && search.found.len() < 2 {
            let next = match (&page.next_cursor, search.archived) {
                (Some(cursor), archived) => Some((archived, Some(cursor.clone()))),
                (None, false) => Some((true, None)),
                (None, true) => None,
            };
            if let Some((archived, cursor)) = next {
                search.archived = archived;
                self.way = Some(Way::Seeking(search));
                return self.list(None, PAGE, archived, cursor);
            }
        }
        let Search {
            wanted,
            mut found,
            is_first,
            ..
        } = search;
        let problem = match (wanted, found.len()) {
            (_, 1) => return self.open_session(found.remove(0), is_first),
            (Wanted::Last, _) => {
                "no session of this project is kept yet; leave --continue out to begin one"
                    .to_owned()
            }
            (Wanted::Id(id), 0) => format!(
                "no session is kept whose id is {0:?} or begins so; /sessions in a chat lists them",
                one_line(&id, TITLE)
            ),
            (Wanted::Id(id), _) => {
                let ids: Vec<&str> = found.iter().map(|it| it.session_id.as_str()).collect();
                let id = one_line(&id, TITLE);
                format!(
                    "several ids begin with {id:?}, say more of one: {}",
                    ids.join(", ")
                )
            }
        };
        self.not_found(&problem, is_first);
    }

    /// The daemon has said why there is no list.
    fn refused_list(&mut self, is_first: bool) {
        let text = "  another daemon of yours may have them: outrigger chat --url ADDRESS chats with one that runs";
        self.say(Style::Plain, text);
        self.give_up(is_first);
    }

    fn not_found(&mut self, problem: &str, is_first: bool) {
        self.say(Style::Red, format!("error: {problem}"));
        self.give_up(is_first);
    }

    /// Goes on without: where flags asked for a session, the chat is over.
    fn give_up(&mut self, is_first: bool) {
        self.way = None;
        match is_first {
            true => self.quit(false),
            false => self.go_on_typing(),
        }
    }

    fn open_session(&mut self, session: KeptSession, is_first: bool) {
        self.forget();
        self.actions.push(Action::Open(session.session_id.clone()));
        let session = Box::new(session);
        self.way = Some(Way::Opening { session, is_first });
    }

    pub(super) fn is_opening(&self) -> bool {
        matches!(self.way, Some(Way::Opening { .. }))
    }

    /// Takes a frame while a session is opened: what happened in it is told by its history, and by how things stand.
    pub(super) fn opened(&mut self, event: &Event, reply_to: Option<u64>) {
        let answered = reply_to.and_then(|number| self.unanswered.remove(&number));
        match (event, answered) {
            (Event::SessionReady(ready), _) => self.arrived(ready),
            (Event::ChatHistoryResult(history), Some(Command::ChatHistory(_))) => {
                if self.options.prompt.is_none() {
                    self.show(event);
                    if history.next_before.is_some() {
                        self.say(Style::Dim, "── the end of it; /history has all");
                    }
                }
                // After the history: what happens between the two is in it.
                self.request(Command::SessionState(Empty {}));
            }
            (Event::SessionStateResult(state), Some(Command::SessionState(_))) => {
                self.stands(state);
            }
            (Event::SessionError(_), Some(_)) => {
                self.show(event);
                let is_first = matches!(self.way, Some(Way::Opening { is_first: true, .. }));
                self.give_up(is_first);
            }
            // Nothing was missed: this chat has seen nothing yet.
            (
                Event::SessionError(SessionError {
                    code: SessionCode::ReplayGap | SessionCode::SessionNotFound,
                    ..
                }),
                None,
            ) => {}
            (Event::SessionNotice(_) | Event::SessionError(_), _) => self.show(event),
            _ => {}
        }
    }

    fn arrived(&mut self, ready: &Ready) {
        let Some(Way::Opening { session, is_first }) = &self.way else {
            return;
        };
        if ready.session_id != session.session_id {
            // It was deleted meanwhile, or the daemon cannot take one more.
            let problem = format!(
                "the session {} could not be opened, this one is new; /sessions lists those there are",
                session.session_id
            );
            let is_first = *is_first;
            return self.not_found(&problem, is_first);
        }
        // Not its beginning, which is told again.
        if ready.resumed {
            // A session keeps its trust level, and may ask for less than one that begins.
            let style = match self.trust.replace(ready.trust_level) {
                Some(trust) if trust == ready.trust_level => Style::Dim,
                _ => Style::Yellow,
            };
            let text = described(session);
            let trust = word(&ready.trust_level);
            let project = ready.project.as_ref();
            self.project = project.map(|it| it.root.to_string_lossy().into_owned());
            self.say(style, format!("going on with {text}; trust: {trust}"));
            if let Some(why) = &ready.project_error {
                self.say(Style::Red, why.clone());
            }
            self.unanswered.clear();
            self.request(Command::ChatHistory(ChatHistory {
                limit: Some(SHOWN),
                ..ChatHistory::newest(conversation())
            }));
        }
    }

    /// Takes how things stand in the session: waits for what runs, answers what is asked, or goes on with the prompt.
    fn stands(&mut self, state: &SessionState) {
        let Some(Way::Opening { is_first, .. }) = self.way.take() else {
            return;
        };
        let mut conversations = state.conversations.iter();
        let ours = conversations.find(|it| it.conversation_id == conversation());
        let runs = ours.is_some_and(|it| it.message_id.is_some());
        if runs {
            self.say(Style::Dim, "it is being answered; Ctrl-C stops that");
            self.busy = Some(self.requests);
        }
        match is_first {
            // What flags ask is asked once that is over.
            true if runs && self.options.prompt.is_some() => {}
            true => self.set_defaults(),
            false if runs => {}
            false => self.go_on_typing(),
        }
        for confirm in &state.approvals {
            self.confirm(confirm);
        }
    }
}

/// A session on one line: its name, how much there is, when it was used.
fn described(session: &KeptSession) -> String {
    let title = one_line(session.title.as_deref().unwrap_or("(no name)"), TITLE);
    let put_away = if session.archived { ", put away" } else { "" };
    // To the minute: `2026-11-20 12:00`.
    let changed: String = session.updated_at.chars().take(16).collect();
    let changed = changed.replace('T', " ");
    format!(
        "{title}  ({} messages, {changed} UTC{put_away})",
        session.messages
    )
}

/// Returns a session as a list would have it.
#[cfg(test)]
pub(super) fn kept(id: &str, title: &str) -> KeptSession {
    KeptSession {
        session_id: crate::message::SessionId::new(id),
        title: Some(title.to_owned()),
        project: None,
        created_at: String::new(),
        updated_at: "2026-11-20T12:00:00.123Z".to_owned(),
        archived: false,
        labels: Vec::new(),
        messages: 2,
        live: false,
        snippet: None,
    }
}
