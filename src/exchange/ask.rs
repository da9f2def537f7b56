//! Questions to the user and their verdicts, and what the user does not want to be asked again.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::message::{InputId, ToolId};
use crate::protocol::command::Remember;
use crate::protocol::event::ToolConfirm;
use crate::protocol::input::ToolInputRequest;
use crate::tool::user::Given;
use crate::tool::{RememberKey, Tool};

/// What an exchange tells whoever asks the user.
pub enum Question {
    /// The user is to be asked.
    Ask(Box<Ask>),
    /// A question is void, because its call is over.
    Withdraw {
        /// Which call's.
        tool_id: ToolId,
        /// Told when the question is settled, so that no result comes before.
        settled: oneshot::Sender<()>,
    },
    /// A call that runs asks the user for something.
    Input(Box<AskInput>),
    /// What a call asked for is void.
    WithdrawInput {
        /// Which call's.
        tool_id: ToolId,
        /// Which question; all of the call where absent.
        request_id: Option<InputId>,
        /// Told when that is settled.
        settled: oneshot::Sender<()>,
    },
}

/// What a call asks for. Dropping `given` unanswered counts as cancelled.
pub struct AskInput {
    /// What the user is shown; its deadline is set when it is announced.
    pub request: ToolInputRequest,
    /// Where the answer goes.
    pub given: oneshot::Sender<Given>,
}

/// A question of an exchange. Dropping `verdict` unanswered counts as cancelled.
pub struct Ask {
    /// What the user is shown; its deadline is set when it is announced.
    pub confirm: ToolConfirm,
    /// The tool, to check an edited input with.
    pub tool: Arc<dyn Tool>,
    /// What an approval with `remember` stands for.
    pub remember: Option<RememberKey>,
    /// Whether an approval may be remembered: not under `supervised`, where every call is asked for.
    pub may_remember: bool,
    /// Where the verdict goes.
    pub verdict: oneshot::Sender<Verdict>,
}

/// How a question was settled.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The call runs, with another input where one is given.
    Approved(Option<Map<String, Value>>),
    /// The call does not run; the user may have said why.
    Denied(Option<String>),
    /// The call does not run: nobody was there to be asked.
    Unattended,
    /// Nobody answered in time.
    Expired,
    /// The exchange ended first.
    Cancelled,
}

/// What need not be asked again, in one conversation and in its session.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    conversation: Arc<Mutex<HashSet<RememberKey>>>,
    session: Arc<Mutex<HashSet<RememberKey>>>,
}

/// The most calls remembered in one scope; a further one is asked again.
const REMEMBERED: usize = 1_000;

impl Remembered {
    /// A fresh conversation's, sharing what its session remembers.
    #[must_use]
    pub fn for_conversation(&self) -> Self {
        Self {
            conversation: Arc::default(),
            session: Arc::clone(&self.session),
        }
    }

    /// Whether the user said not to be asked for this again.
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
