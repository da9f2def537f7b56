//! Notices of the daemon, each with whom it is for: a server that is ready or gone, a store that fails, a provider that was found.

use outrigger_store::User;
use tokio::sync::broadcast;

use crate::message::{Notice, SessionId, Severity};
use crate::protocol::event::{Event, McpAuthRequired};

/// Notices that a session may be behind; older ones it misses.
const BACKLOG: usize = 64;

/// The same of what the MCP servers of one session's client say. There is room for them in each session, whether or not it has any.
const OWN_BACKLOG: usize = 8;

/// What a user is told who is no operator, where what is said is not safe.
pub(crate) const NOT_SAFE: &str = "what is said from now on is not safe: it goes on in memory, and is lost if the daemon ends before it is written";

/// What is said where other daemons have taken this one's sessions.
pub(crate) const TAKEN: &str = "this session ends here, since other daemons have taken this one for dead; it goes on where its client connects again";

/// What is said of what is not safe where this daemon is one of several.
pub(crate) const WAITS: &str = "what is said from now on is answered when it is safe; where that takes longer than 10 seconds, the session ends here and goes on where its client connects again";

/// Whom a notice is for. Who operates the daemon is told all of it, but what is a user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// Whoever operates the daemon: it may name servers, files and folders.
    Operators,
    /// Everybody. Who is no operator is told this in the place of its words.
    Everybody(&'static str),
    /// One session. Where its user is no operator, this is told in the place of its words.
    Session(SessionId, &'static str),
    /// One user, in all of the user's sessions.
    User(User),
}

/// What sessions are told.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Something that is no conversation's error.
    Notice(Notice),
    /// An MCP server that asks its user to sign in.
    SignIn(McpAuthRequired),
}

impl From<News> for Event {
    fn from(news: News) -> Self {
        match news {
            News::Notice(notice) => Self::SessionNotice(notice),
            News::SignIn(asked) => Self::McpAuthRequired(asked),
        }
    }
}

/// News, and whom they are for.
#[derive(Clone, Debug, PartialEq)]
pub struct Addressed {
    to: To,
    news: News,
}

impl Addressed {
    /// Returns what is said of it in a session of this user; `None` where it is not for that.
    pub(crate) fn said_in(
        self,
        session: &SessionId,
        user: &User,
        is_operator: bool,
    ) -> Option<News> {
        let Self { to, news } = self;
        let (is_for, others) = match &to {
            To::Operators => (is_operator, None),
            To::Everybody(others) => (true, Some(*others)),
            To::Session(of, others) => (is_operator || of == session, Some(*others)),
            To::User(of) => (of == user, None),
        };
        let news = match (news, others) {
            (News::Notice(notice), Some(others)) if !is_operator => News::Notice(Notice {
                message: others.to_owned(),
                ..notice
            }),
            (news, _) => news,
        };
        is_for.then_some(news)
    }

    /// Returns them where they were sent to one session alone.
    pub(crate) fn of_session(self) -> News {
        self.news
    }

    /// Returns the sign-in that somebody is asked for, where they are that.
    pub(crate) fn sign_in(&self) -> Option<&McpAuthRequired> {
        match &self.news {
            News::SignIn(asked) => Some(asked),
            News::Notice(_) => None,
        }
    }
}

/// The way to all sessions; clones lead to the same ones.
#[derive(Clone)]
pub struct Notices(broadcast::Sender<Addressed>);

impl Default for Notices {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl Notices {
    /// Returns the way to one session.
    pub(crate) fn of_one_session() -> Self {
        Self(broadcast::Sender::new(OWN_BACKLOG))
    }

    /// Logs a notice and sends it to those whom it is for.
    pub fn send(&self, to: To, severity: Severity, code: &str, message: String) {
        match severity {
            Severity::Info => tracing::info!(code, "{message}"),
            Severity::Warning | Severity::Error => tracing::warn!(code, "{message}"),
        }
        let news = News::Notice(Notice {
            severity,
            code: code.to_owned(),
            message,
        });
        // Nobody may be connected.
        drop(self.0.send(Addressed { to, news }));
    }

    /// Sends that a server asks its user to sign in, and logs at whose page. The address in it is for the user alone.
    pub fn sign_in(&self, asked: McpAuthRequired) {
        tracing::info!(
            server = asked.server,
            host = asked.host,
            "an MCP server asks to sign in"
        );
        // Whoever does it does it for all.
        let (to, news) = (To::Operators, News::SignIn(asked));
        drop(self.0.send(Addressed { to, news }));
    }

    /// Receives what is sent from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Addressed> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_says_what_it_may_to_those_whom_it_is_for() {
        let (whole, short) = (Some("/secret/path"), Some("not safe"));
        let (own, other) = (SessionId::new("own"), SessionId::new("other"));
        let [anna, ben] = ["anna", "ben"].map(User::new);
        // To an operator, to anna in her session, to anna in another one, to ben.
        for (to, expected) in [
            (To::Operators, [whole, None, None, None]),
            (To::Everybody("not safe"), [whole, short, short, short]),
            (
                To::Session(own.clone(), "not safe"),
                [whole, short, None, None],
            ),
            (To::User(anna.clone()), [None, whole, whole, None]),
        ] {
            let said = |session: &SessionId, user: &User, is_operator| {
                let notice = Notice {
                    severity: Severity::Error,
                    code: "store_failed".to_owned(),
                    message: "/secret/path".to_owned(),
                };
                let (to, news) = (to.clone(), News::Notice(notice));
                let said = Addressed { to, news }.said_in(session, user, is_operator);
                match said {
                    Some(News::Notice(notice)) => Some(notice.message),
                    _ => None,
                }
            };
            let found = [
                said(&other, &User::default(), true),
                said(&own, &anna, false),
                said(&other, &anna, false),
                said(&other, &ben, false),
            ];
            assert_eq!(found, expected.map(|it| it.map(str::to_owned)), "{to:?}");
        }
    }
}
