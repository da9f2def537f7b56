//! Whether a session's client answers what calls ask of the user, and whose questions are open.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::message::{ConversationId, InputId};

/// The most requests for input that are open in one session: more than a person would answer.
const MAX_OPEN: usize = 16;

/// What a session knows of requests for input.
#[derive(Debug, Default)]
pub struct Inputs {
    wanted: AtomicBool,
    attached: AtomicBool,
    // Held for a look-up, never across an await.
    open: Mutex<HashMap<InputId, ConversationId>>,
}

impl Inputs {
    /// Takes what the client said of `inputRequests`.
    pub fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    /// Whether the client answers such requests.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Takes note of a socket that came or went.
    pub fn attach(&self, attached: bool) {
        self.attached.store(attached, Ordering::Relaxed);
    }

    /// Why nobody can be asked now; `None` where somebody can.
    pub fn unable(&self) -> Option<String> {
        if !self.is_wanted() {
            return Some(
                "the client does not answer such questions (inputRequests of session:configure)"
                    .to_owned(),
            );
        }
        if !self.attached.load(Ordering::Relaxed) {
            return Some("no client is connected".to_owned());
        }
        (self.open.lock().len() >= MAX_OPEN)
            .then(|| format!("{MAX_OPEN} such questions are open already"))
    }

    /// Notes whose a question is; false where too many are open.
    pub fn open(&self, id: InputId, conversation: ConversationId) -> bool {
        let mut open = self.open.lock();
        let fits = open.len() < MAX_OPEN;
        if fits {
            open.insert(id, conversation);
        }
        fits
    }

    /// Forgets a question that is settled.
    pub fn close(&self, id: &InputId) {
        self.open.lock().remove(id);
    }

    /// Returns the conversation whose open question this is.
    pub fn conversation_of(&self, id: &InputId) -> Option<ConversationId> {
        self.open.lock().get(id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_to_want_it_be_there_and_not_be_flooded() {
        let inputs = Inputs::default();
        assert!(inputs.unable().unwrap().contains("inputRequests"));
        inputs.want(true);
        assert!(inputs.unable().unwrap().contains("connected"));
        inputs.attach(true);
        assert_eq!(inputs.unable(), None);
        let id = |number: usize| InputId::new(format!("i{number}"));
        for number in 0..MAX_OPEN {
            assert!(inputs.open(id(number), ConversationId::new("c")));
        }
        assert!(inputs.unable().unwrap().contains("open already"));
        assert!(!inputs.open(id(MAX_OPEN), ConversationId::new("c")));
        assert_eq!(
            inputs.conversation_of(&id(3)),
            Some(ConversationId::new("c"))
        );
        inputs.close(&id(3));
        assert_eq!(inputs.conversation_of(&id(3)), None);
        assert_eq!(inputs.unable(), None);
    }
}
