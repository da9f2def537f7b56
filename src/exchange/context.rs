//! What exchanges share, by owner: the daemon's services, what a session has, what a conversation has.

mod conversation;
mod services;
mod session;

pub use conversation::{ContextTokens, ConversationContext, Origin, Repeats};
pub use services::Services;
pub use session::{Ids, SessionContext};

use super::transcript::Events;

/// Where an exchange runs.
pub struct Context {
    /// The daemon's services.
    pub services: Services,
    /// Its session.
    pub session: SessionContext,
    /// Its conversation.
    pub conversation: ConversationContext,
}

impl Context {
    /// Returns where events go.
    pub fn events(&self) -> &Events {
        &self.session.events
    }
}
