//! What is known of a task that has ended: the work that a call of the tool `task` handed to a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConversationId, Money, StopReason, Tokens, ToolId};

/// The tool that begins tasks.
pub const TASK: &str = "task";

/// How a task went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskFacts {
    /// The task: the id of the call that began it.
    pub task_id: ToolId,
    /// The profile that it had.
    pub profile: String,
    /// The model that did it.
    pub model: String,
    /// Turns that ended well.
    pub turns: u32,
    /// Calls of its own.
    pub tool_calls: u32,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Its tokens.
    pub usage: Tokens,
    /// What it counted against caps on money, estimates included. Absent where nothing of it has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_usd: Option<Money>,
    /// Calls of its own that were refused, since nobody could be asked or answered in time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unattended_calls: u32,
    /// Hosts that its calls did not reach for the same reason, 64 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered_hosts: Vec<String>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl ConversationId {
    /// Returns the conversation of the task that a call begins.
    pub fn of_task(call: &ToolId) -> Self {
        Self::new(format!("task:{call}"))
    }

    /// Returns the call whose task the conversation is; `None` of a conversation of a client's.
    pub fn task(&self) -> Option<&str> {
        let call = self.as_str().strip_prefix("task:")?;
        let number = call.strip_prefix('t')?;
        let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
        is_number.then_some(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_known_by_the_name_of_its_conversation() {
        let of_call = ConversationId::of_task(&ToolId::new("t12"));
        assert_eq!(of_call.task(), Some("t12"));
        for name in [
            "default",
            "task",
            "task:",
            "task:t",
            "task:t1x",
            "task:x1",
            "a task:t1",
        ] {
            assert_eq!(ConversationId::new(name).task(), None, "{name}");
        }
    }
}
