//! Money: the question whether more may be spent, its answer, and what was spent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::By;
use crate::message::{BudgetId, BudgetScope, ConversationId, MessageId, Money};

/// Payload of `chat:budget-confirm`: a cap does not allow the next request to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetConfirm {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// What an answer names.
    pub request_id: BudgetId,
    /// What the cap is for.
    pub scope: BudgetScope,
    /// What was spent of it.
    pub spent_usd: Money,
    /// The cap.
    pub limit_usd: Money,
    /// What the next request is expected to cost.
    pub next_usd: Money,
    /// Which turn of the exchange waits.
    pub turn: u32,
    /// What may be offered to the user, besides to stop.
    pub choices: Vec<BudgetChoice>,
    /// When the question lapses, RFC 3339; absent where it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A way to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetChoice {
    /// By how much the cap is raised, in US dollars.
    #[serde(alias = "extend_usd", skip_serializing_if = "Option::is_none")]
    pub extend_usd: Option<Money>,
    /// Whether there is no cap any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unlimited: bool,
}

/// Payload of `chat:budget-approve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetApprove {
    /// The id from `chat:budget-confirm`.
    #[serde(alias = "request_id")]
    pub request_id: BudgetId,
    /// Whether it goes on.
    #[serde(default = "yes")]
    pub approved: bool,
    /// By how much the cap is raised, in US dollars. Absent: by the first of the choices.
    #[serde(alias = "extend_usd", default, skip_serializing_if = "Option::is_none")]
    pub extend_usd: Option<Money>,
    /// Whether there is no cap any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlimited: bool,
    /// Where it does not go on: whether the model may give a last answer, without tools.
    #[serde(default)]
    pub finish: bool,
}

fn yes() -> bool {
    true
}

/// Payload of `chat:budget-resolved`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetResolved {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which question.
    pub request_id: BudgetId,
    /// How.
    pub outcome: BudgetOutcome,
    /// By whom.
    pub by: By,
    /// The cap as it is now; absent where there is none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_usd: Option<Money>,
}

/// How the question was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BudgetOutcome {
    /// The cap was raised, or the request fits without that.
    Extended,
    /// The user wants no more.
    Stopped,
    /// Nobody answered in time.
    Expired,
    /// The exchange ended first.
    Cancelled,
}

/// Payload of `chat:budget-approve-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetTaken {
    /// Which question.
    pub request_id: BudgetId,
    /// Whether the answer counted.
    pub accepted: bool,
}

/// How much of a cap is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetUse {
    /// What the cap is for.
    pub scope: BudgetScope,
    /// What was spent of it.
    pub spent_usd: Money,
    /// The cap.
    pub limit_usd: Money,
}

/// What a session may spend, in `session:configure` and its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionBudget {
    /// US dollars altogether, what was spent before included.
    #[serde(alias = "max_cost_usd", skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<Money>,
    /// Whether there is no cap any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unlimited: bool,
}

impl SessionBudget {
    /// Returns the cap that is wanted, `Some(None)` for none; `None` where nothing is said.
    pub(crate) fn wanted(self) -> Option<Option<Money>> {
        match self.unlimited {
            true => Some(None),
            false => self.max_cost_usd.map(Some),
        }
    }
}

/// Payload of `usage:report`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageReport {
    /// Requests from this time on, RFC 3339; of the last 30 days where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Requests before this time, RFC 3339; up to now where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// By what they are summed.
    #[serde(alias = "group_by")]
    pub group_by: GroupBy,
}

/// What requests to models are summed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GroupBy {
    /// The day, in the zone of `budget.zone`; the oldest first. All else: those first that cost most.
    #[default]
    Day,
    /// The model.
    Model,
    /// The provider instance.
    Provider,
    /// The user: there is one.
    User,
    /// The conversation, with its session.
    Conversation,
    /// What requests were for: `turn`, `title`, `compaction`.
    Kind,
    /// The session.
    Session,
}

/// Payload of `usage:report-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageReported {
    /// From when on, RFC 3339.
    pub since: String,
    /// Until when, RFC 3339.
    pub until: String,
    /// By what they are summed.
    pub group_by: GroupBy,
    /// The sums.
    pub rows: Vec<UsageRow>,
    /// Whether there are more than are listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// What requests to models come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageRow {
    /// What they have in common; empty for conversations and sessions that are deleted or were not kept.
    pub key: String,
    /// Of a conversation: its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// How many.
    pub requests: u64,
    /// All input tokens, cached ones included.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Of the input: read from a cache.
    pub cache_read_tokens: u64,
    /// Of the input: written to a cache.
    pub cache_write_tokens: u64,
    /// What those cost whose model has a price.
    pub spent_usd: Money,
    /// How many have none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u64,
    /// Of how many a part is estimated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
