//! What exchanges share, by owner: the daemon's services, what a session has, what a conversation has.

mod conversation;
mod services;
mod session;

pub use conversation::{ContextTokens, ConversationContext, Repeats};
pub use services::Services;
pub use session::{Ids, SessionContext};
