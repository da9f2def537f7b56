//! Requests to models: what each took and cost, and what they come to in sum.

/// A request to a model. Of what nobody counted it has an estimate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// When it ended.
    pub at_ms: i64,
    /// Whose conversation it was for; empty where that is not to be kept.
    pub conversation: String,
    /// Which exchange; empty for none.
    pub exchange: String,
    /// What it was for: a word of its owner.
    pub kind: String,
    /// The provider instance.
    pub provider: String,
    /// The model.
    pub model: String,
    /// What it took.
    pub tokens: UsageTokens,
    /// Micro-dollars; `None` where the model has no price.
    pub micros: Option<i64>,
    /// Whether part of it is an estimate.
    pub estimated: bool,
}

/// Tokens by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageTokens {
    /// All of the input.
    pub input: u64,
    /// Of it: read from a cache.
    pub cache_read: u64,
    /// Of it: written to a cache.
    pub cache_write: u64,
    /// Output.
    pub output: u64,
}

/// What requests are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageBy {
    /// The quarter of an hour, counted since 1970 (UTC): whoever knows a zone makes days of them.
    Quarter,
    /// The model.
    Model,
    /// The provider instance.
    Provider,
    /// The session and the conversation.
    Conversation,
    /// The session.
    Session,
    /// What they were for.
    Kind,
    /// All together.
    All,
}

/// Which requests are wanted, and by what they are summed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageQuery {
    /// From this time on.
    pub since_ms: i64,
    /// Before this time.
    pub until_ms: i64,
    /// By what.
    pub by: UsageBy,
    /// At most so many sums: those that cost most.
    pub limit: usize,
}

/// What requests come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageSum {
    /// What they have in common.
    pub key: String,
    /// Beside it the session, where they are summed by conversation.
    pub session: String,
    /// How many.
    pub requests: u64,
    /// What they took.
    pub tokens: UsageTokens,
    /// Micro-dollars of those whose model has a price.
    pub micros: i64,
    /// How many have none.
    pub unpriced: u64,
    /// How many are estimated in part.
    pub estimated: u64,
}

/// Milliseconds of a quarter of an hour: no zone is ahead of another by a part of it.
pub const MS_OF_QUARTER: i64 = 15 * 60 * 1_000;
