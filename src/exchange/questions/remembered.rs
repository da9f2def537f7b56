//! What the user does not want to be asked again.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::protocol::command::Remember;
use crate::tool::RememberKey;

/// What need not be asked again, in one conversation and in its session.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    conversation: Arc<Mutex<HashSet<RememberKey>>>,
    session: Arc<Mutex<HashSet<RememberKey>>>,
}

/// The most calls remembered in one scope; a further one is asked again.
const REMEMBERED: usize = 1_000;

impl Remembered {
    /// Returns a fresh conversation's, which shares what its session remembers.
    #[must_use]
    pub fn for_conversation(&self) -> Self {
        Self {
            conversation: Arc::default(),
            session: Arc::clone(&self.session),
        }
    }

    /// Returns whether the user said not to be asked for this again.
    pub fn holds(&self, key: &RememberKey) -> bool {
        [&self.conversation, &self.session]
            .iter()
            .any(|scope| scope.lock().contains(key))
    }

    /// Remembers; returns the scope that it is now remembered in.
    pub fn add(&self, key: RememberKey, reach: Remember) -> Remember {
        let scope = match reach {
            Remember::Once => return Remember::Once,
            Remember::Conversation => &self.conversation,
            Remember::Session => &self.session,
        };
        let mut scope = scope.lock();
        if scope.len() >= REMEMBERED {
            return Remember::Once;
        }
        scope.insert(key);
        reach
    }
}
