//! A question's deadline is put off while somebody reads or edits. Pure.
//!
//! Somebody is there who typed lately, or is editing. In a line editor each key is seen, and those count that come while the
//! question is there. Without one a terminal hands over whole lines, so a key is seen when its line is, and who typed one before
//! may still be reading.

use std::time::Duration;

use jiff::Timestamp;

use super::{Action, Talk, Typing};
use crate::plain_text::question::Asked;
use crate::protocol::Command;
use crate::protocol::command::ToolExtend;

/// Longest time between two requests.
const OFTEN: Duration = Duration::from_secs(10);

/// Shortest time between two.
const SELDOM: Duration = Duration::from_secs(1);

/// Who typed a line so long ago may still be reading.
const LATELY: Duration = Duration::from_secs(120);

/// Who pressed a key so long ago is still typing.
const KEY_LATELY: Duration = Duration::from_secs(20);

impl Talk {
    /// Takes up the deadline of a question that was put on the screen.
    pub(super) fn keep_open(&mut self, expires_at: Option<&str>) {
        if self.options.composes {
            self.typed = None;
        }
        let expires: Option<Timestamp> = expires_at.and_then(|at| at.parse().ok());
        let left = expires.map(|expires| expires.duration_since(self.now));
        self.extension = left
            .filter(|left| left.is_positive())
            .map(|left| (left.unsigned_abs() / 2).clamp(SELDOM, OFTEN))
            .and_then(|pause| Some((self.now.checked_add(pause).ok()?, pause)));
    }

    /// When [`extend`](Self::extend) is to be called; `None` where nothing is put off.
    pub(in crate::chat) fn extends_at(&self) -> Option<Timestamp> {
        let is_asked = matches!(self.typing, Typing::Verdict(_) | Typing::Input(_));
        let is_open = self.options.attended && is_asked;
        self.extension.filter(|_| is_open).map(|(at, _)| at)
    }

    /// Has the daemon put the deadline off, where somebody is there.
    pub(in crate::chat) fn extend(&mut self, now: Timestamp) -> Vec<Action> {
        let (is_editing, asked) = match &self.typing {
            Typing::Verdict(asked) => (false, asked.clone()),
            Typing::Input(asked) => (true, asked.clone()),
            Typing::Message | Typing::Money(_) | Typing::Trust(_) | Typing::Sampling(_) => {
                return Vec::new();
            }
        };
        let next = |(_, pause)| Some((now.checked_add(pause).ok()?, pause));
        self.extension = self.extension.and_then(next);
        let lately = match self.options.composes {
            true => KEY_LATELY,
            false => LATELY,
        };
        let is_lately = |at| now.duration_since(at).unsigned_abs() < lately;
        if is_editing || self.typed.is_some_and(is_lately) {
            self.request(Command::ChatToolExtend(ToolExtend {
                tool_id: asked.tool_id,
                request_id: None,
                host: asked.host,
            }));
        }
        self.done()
    }

    /// Notes that a question lapses later than it said.
    pub(super) fn extended(&mut self, asked: &Asked, expires_at: Option<&str>) {
        let mut questions = self.questions.iter_mut();
        if let Some(open) = questions.find(|open| asked.is(open)) {
            open.expires_at = expires_at.map(str::to_owned);
        }
    }
}
