//! A question's deadline is put off while somebody reads or edits. Pure.
//!
//! A terminal hands over whole lines, so a key is seen when its line is: somebody is there who typed a line lately, or
//! is editing.

use std::time::Duration;

use jiff::Timestamp;

use super::{Action, Talk, Typing};
use crate::message::ToolId;
use crate::protocol::Command;
use crate::protocol::command::ToolExtend;

/// Longest time between two requests.
const OFTEN: Duration = Duration::from_secs(10);

/// Shortest time between two.
const SELDOM: Duration = Duration::from_secs(1);

/// Who typed a line so long ago may still be reading.
const LATELY: Duration = Duration::from_secs(120);

/// When the deadline of the question on the screen is put off.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    /// When the last line came.
    typed: Option<Timestamp>,
    /// When the next request is sent, and how often; `None` where the question has no deadline.
    next: Option<(Timestamp, Duration)>,
    /// Whether the daemon does not know the request.
    is_unknown: bool,
}

impl Keeping {
    /// Notes that a line came.
    pub(super) fn typed(&mut self, now: Timestamp) {
        self.typed = Some(now);
    }

    /// Takes up a question that was put on the screen.
    pub(super) fn begin(&mut self, expires_at: Option<&str>, now: Timestamp) {
        let expires: Option<Timestamp> = expires_at.and_then(|at| at.parse().ok());
        let left = expires.map(|expires| expires.duration_since(now));
        self.next = left
            .filter(|left| left.is_positive())
            .map(|left| (left.unsigned_abs() / 2).clamp(SELDOM, OFTEN))
            .and_then(|pause| Some((now.checked_add(pause).ok()?, pause)));
    }

    /// Stops: the daemon does not know how.
    pub(super) fn stop(&mut self) {
        self.is_unknown = true;
    }
}

impl Talk {
    /// When [`extend`](Self::extend) is to be called; `None` where nothing is put off.
    pub(in crate::chat) fn extends_at(&self) -> Option<Timestamp> {
        let is_open = self.wishes.attended && !self.keeping.is_unknown;
        self.open_question().filter(|_| is_open)?;
        self.keeping.next.map(|(at, _)| at)
    }

    /// Has the daemon put the deadline off, where somebody is there.
    pub(in crate::chat) fn extend(&mut self, now: Timestamp) -> Vec<Action> {
        let question = self.open_question().cloned();
        let (Some(tool_id), Some((_, pause))) = (question, self.keeping.next.take()) else {
            return Vec::new();
        };
        self.keeping.next = now.checked_add(pause).ok().map(|at| (at, pause));
        let is_editing = matches!(self.typing, Typing::Input(_));
        let typed = self.keeping.typed;
        let is_there = typed.is_some_and(|at| now.duration_since(at).unsigned_abs() < LATELY);
        if !is_there && !is_editing {
            return Vec::new();
        }
        let extend = Command::ChatToolExtend(ToolExtend {
            tool_id,
            request_id: None,
        });
        vec![self.request(extend).1]
    }

    /// A question lapses later than it was told.
    pub(super) fn extended(&mut self, id: &ToolId, expires_at: Option<&str>) -> Vec<Action> {
        let mut questions = self.questions.iter_mut();
        if let Some(open) = questions.find(|open| open.tool_id == *id) {
            open.expires_at = expires_at.map(str::to_owned);
        }
        Vec::new()
    }

    /// The call whose question is on the screen.
    fn open_question(&self) -> Option<&ToolId> {
        match &self.typing {
            Typing::Verdict(id) | Typing::Input(id) => Some(id),
            Typing::Message => None,
        }
    }
}
