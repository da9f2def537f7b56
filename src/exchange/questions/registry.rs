//! Whose open question is whose in a session, and whether its client answers what calls ask for.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::QuestionId;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::message::{ConversationId, ToolId};

/// The most requests for input that are open in one session: more than a person would answer.
pub(super) const MAX_INPUTS: usize = 16;

/// Outputs of calls that are known when they come again: as many as may be on their way when a socket breaks.
const MAX_ANSWERED: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct QuestionRegistry {
    wants_inputs: AtomicBool,
    wants_trust: AtomicBool,
    /// Whether somebody is there who may answer.
    is_attended: AtomicBool,
    presence: watch::Sender<Presence>,
    /// The last calls that the client answered, with what tells the answer from another one; the oldest first.
    answered: Mutex<VecDeque<(ToolId, [u8; 32])>>,
    /// As many as its conversations have open, each at most [`super::MAX_OPEN`].
    open: Mutex<HashMap<QuestionId, ConversationId>>,
}

/// How long a client has been connected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Presence {
    before: Duration,
    /// Since when there is one; `None` where there is none.
    since: Option<Instant>,
}

impl Presence {
    pub(crate) fn is_there(self) -> bool {
        self.since.is_some()
    }

    /// Returns for how long there was one, all in all.
    pub(super) fn total(self) -> Duration {
        let now = self.since.map(|since| since.elapsed()).unwrap_or_default();
        self.before.saturating_add(now)
    }

    /// Returns when there will have been one for so long, if it stays; `None` where there is none.
    pub(super) fn at(self, total: Duration) -> Option<Instant> {
        self.since?.checked_add(total.saturating_sub(self.before))
    }
}

impl QuestionRegistry {
    /// Notes whether the client answers requests for input (`inputRequests`).
    pub(crate) fn want_inputs(&self, wanted: bool) {
        self.wants_inputs.store(wanted, Ordering::Relaxed);
    }

    pub(crate) fn wants_inputs(&self) -> bool {
        self.wants_inputs.load(Ordering::Relaxed)
    }

    /// Notes whether the client answers whether files may speak for the user (`trustQuestions`).
    pub(crate) fn want_trust(&self, wanted: bool) {
        self.wants_trust.store(wanted, Ordering::Relaxed);
    }

    pub(crate) fn wants_trust(&self) -> bool {
        self.wants_trust.load(Ordering::Relaxed)
    }

    /// Notes whether somebody is there who may answer.
    pub(crate) fn attend(&self, is_attended: bool) {
        self.is_attended.store(is_attended, Ordering::Relaxed);
    }

    /// Returns why nobody can be asked about files now; `None` where somebody can.
    pub(crate) fn unable_to_trust(&self) -> Option<&'static str> {
        if !self.wants_trust() {
            return Some(
                "the client does not answer such questions (trustQuestions of session:configure; in text mode /instructions on)",
            );
        }
        let is_attended = self.is_attended.load(Ordering::Relaxed);
        (!is_attended).then_some("nobody is connected who may answer")
    }

    /// Notes whether a client is connected.
    pub(crate) fn attach(&self, attached: bool) {
        self.presence.send_if_modified(|presence| {
            let changes = presence.is_there() != attached;
            if changes {
                *presence = Presence {
                    before: presence.total(),
                    since: attached.then(Instant::now),
                };
            }
            changes
        });
    }

    pub(crate) fn presence(&self) -> Presence {
        *self.presence.borrow()
    }

    pub(super) fn watch_presence(&self) -> watch::Receiver<Presence> {
        self.presence.subscribe()
    }

    /// Notes the output of a call.
    pub(super) fn answered(&self, id: ToolId, digest: [u8; 32]) {
        let mut answered = self.answered.lock();
        if answered.len() >= MAX_ANSWERED {
            answered.pop_front();
        }
        answered.push_back((id, digest));
    }

    /// Returns whether this very output of a call was taken.
    pub(super) fn was_answered(&self, id: &ToolId, digest: &[u8; 32]) -> bool {
        let answered = self.answered.lock();
        answered
            .iter()
            .any(|(known, of)| known == id && of == digest)
    }

    /// Returns why no call can ask for input now; `None` where one can.
    pub(crate) fn unable(&self) -> Option<String> {
        if !self.wants_inputs() {
            return Some(
                "the client does not answer such questions (inputRequests of session:configure)"
                    .to_owned(),
            );
        }
        if !self.presence().is_there() {
            return Some("no client is connected".to_owned());
        }
        (inputs(&self.open.lock()) >= MAX_INPUTS)
            .then(|| format!("{MAX_INPUTS} such questions are open already"))
    }

    /// Notes whose a question is; returns false where too many are open.
    pub(super) fn open(&self, id: QuestionId, conversation: ConversationId) -> bool {
        let mut open = self.open.lock();
        let fits = !matches!(id, QuestionId::Input(_)) || inputs(&open) < MAX_INPUTS;
        if fits {
            open.insert(id, conversation);
        }
        fits
    }

    pub(super) fn close(&self, id: &QuestionId) {
        self.open.lock().remove(id);
    }

    pub(crate) fn conversation_of(&self, id: &QuestionId) -> Option<ConversationId> {
        self.open.lock().get(id).cloned()
    }
}

fn inputs(open: &HashMap<QuestionId, ConversationId>) -> usize {
    let is_input = |id: &&QuestionId| matches!(id, QuestionId::Input(_));
    open.keys().filter(is_input).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{InputId, ToolId};

    #[test]
    fn a_client_has_to_want_inputs_be_there_and_not_be_flooded() {
        let questions = QuestionRegistry::default();
        assert!(questions.unable().unwrap().contains("inputRequests"));
        questions.want_inputs(true);
        assert!(questions.unable().unwrap().contains("connected"));
        questions.attach(true);
        assert_eq!(questions.unable(), None);
        let id = |number: usize| QuestionId::Input(InputId::new(format!("i{number}")));
        let open = |id: QuestionId| questions.open(id, ConversationId::new("c"));
        for number in 0..MAX_INPUTS {
            assert!(open(id(number)));
        }
        assert!(questions.unable().unwrap().contains("open already"));
        assert!(!open(id(MAX_INPUTS)));
        // Approvals are no requests for input.
        assert!(open(QuestionId::Approval(ToolId::new("t1"))));
        let owner = questions.conversation_of(&id(3));
        assert_eq!(owner, Some(ConversationId::new("c")));
        questions.close(&id(3));
        assert_eq!(questions.conversation_of(&id(3)), None);
        assert_eq!(questions.unable(), None);
    }
}
