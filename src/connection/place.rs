//! How a socket comes to its session: a new one, one that it goes on with, or why not.

use axum::extract::ws::Utf8Bytes;

use super::UpgradeOptions;
use crate::message::SessionId;
use crate::protocol::command::Resume;
use crate::protocol::envelope::{self, Stamp, Timestamp};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::roles::SocketRole;
use crate::protocol::{RequestId, SessionCode};
use crate::session::{
    AttachRefused, Attachment, Entrance, Handle, NoSession, UserSessions, elsewhere,
};

/// A socket's session and its place in the log.
pub(super) struct Attached {
    pub(super) session: Handle,
    pub(super) attachment: Attachment,
    pub(super) after: u64,
    /// Whether the session was made for this socket.
    pub(super) fresh: bool,
    /// The frame outside the numbering that a resumed socket gets first.
    pub(super) greeting: Option<Utf8Bytes>,
}

impl Attached {
    /// Goes on with the session asked for, or with a new one.
    pub(super) async fn find(
        sessions: &UserSessions,
        options: UpgradeOptions,
    ) -> Result<Self, NoPlace> {
        let entrance = options.entrance;
        let problem = match options.resume {
            Some(resume) => match Self::resume(sessions, &resume, entrance, None).await {
                Ok(attached) => return Ok(attached),
                Err(Unopened::Refused(refused)) => return Err(refused.into()),
                Err(Unopened::Problem(problem)) if sessions.may_be_elsewhere(&problem) => {
                    return Err(NoPlace::Elsewhere);
                }
                // It comes again, and has no use for a new session meanwhile.
                Err(Unopened::Problem(problem)) if problem.retry_after_ms.is_some() => {
                    return Err(NoPlace::Later(problem));
                }
                // Nor has who may have no more of them.
                Err(Unopened::Problem(problem)) if problem.code == SessionCode::QuotaExceeded => {
                    return Err(NoPlace::Quota);
                }
                Err(Unopened::Problem(problem)) => Some(problem),
            },
            None => None,
        };
        // One that does not drive is there for that session alone.
        if entrance.role.is_some_and(|role| role < SocketRole::Driver) {
            return Err(NoPlace::Gone);
        }
        let session = sessions.create(options.project.as_deref()).await;
        let session = session.map_err(|why| match why {
            NoSession::Quota => NoPlace::Quota,
            NoSession::TooMany => NoPlace::TooMany,
        })?;
        if let Some(problem) = problem {
            session.feed.append(Event::SessionError(problem), None);
        }
        let attachment = session.enter(entrance).await.ok_or(NoPlace::TooMany)??;
        Ok(Self {
            session,
            attachment,
            after: 0,
            fresh: true,
            greeting: None,
        })
    }

    pub(super) async fn resume(
        sessions: &UserSessions,
        resume: &Resume,
        entrance: Entrance,
        reply_to: Option<&RequestId>,
    ) -> Result<Self, Unopened> {
        let unknown = || Unopened::Problem(not_found(&resume.session_id));
        let drives = entrance.role.is_none_or(|role| role == SocketRole::Driver);
        let (session, attachment) = loop {
            let session = match drives {
                true => sessions.open(&resume.session_id).await,
                // To begin one anew may have what waits in it run.
                false => Ok(sessions.find(&resume.session_id)),
            };
            let Some(session) = session.map_err(Unopened::Problem)? else {
                let is_here = sessions.is_here(&resume.session_id).await;
                is_here.map_err(Unopened::Problem)?;
                return Err(unknown());
            };
            // One that ends just now is opened anew, where it is kept.
            if let Some(entered) = session.enter(entrance).await {
                break (session, entered?);
            }
            if sessions.is_stopping() || !drives {
                return Err(unknown());
            }
            session.ended().await;
        };
        let stamp = Stamp {
            timestamp: Timestamp::now(),
            reply_to,
            ..Stamp::default()
        };
        let ready = Event::SessionReady(Box::new(attachment.ready.clone()));
        Ok(Self {
            session,
            attachment,
            after: resume.last_seq,
            fresh: false,
            greeting: Some(Utf8Bytes::from(envelope::write(&ready, &stamp))),
        })
    }
}

/// Why a socket has no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The session does not take it.
    Refused(AttachRefused),
    /// There is no such session, and it wants no other.
    Gone,
    /// Another daemon has the session, or may have it soon.
    Elsewhere,
    /// Too many want theirs at once; this says when to come again.
    Later(SessionError),
    /// There are too many sessions.
    TooMany,
    /// The user has as many as one may.
    Quota,
}

/// Why an earlier session is not gone on with.
pub(super) enum Unopened {
    /// It does not take the socket.
    Refused(AttachRefused),
    Problem(SessionError),
}

impl From<AttachRefused> for NoPlace {
    fn from(refused: AttachRefused) -> Self {
        Self::Refused(refused)
    }
}

impl From<AttachRefused> for Unopened {
    fn from(refused: AttachRefused) -> Self {
        Self::Refused(refused)
    }
}

impl From<Unopened> for SessionError {
    fn from(unopened: Unopened) -> Self {
        let (code, message) = match unopened {
            Unopened::Problem(problem) => return problem,
            Unopened::Refused(AttachRefused::Driven) => (
                SessionCode::Forbidden,
                "another socket drives that session; connect to it with `takeOver=1`, or as an observer",
            ),
            Unopened::Refused(AttachRefused::Elsewhere) => return elsewhere(),
            Unopened::Refused(AttachRefused::Late) => (
                SessionCode::Forbidden,
                "another socket came to that session after this one asked for it; ask again",
            ),
            Unopened::Refused(AttachRefused::Full) => (
                SessionCode::RateLimited,
                "there are too many sockets on that session; close some",
            ),
        };
        Self::new(code, message)
    }
}

fn not_found(id: &SessionId) -> SessionError {
    let message = format!(
        "no session `{id}` is here: it was deleted, or it was never kept; this socket goes on with the session of its last session:ready"
    );
    SessionError::new(SessionCode::SessionNotFound, message)
}
