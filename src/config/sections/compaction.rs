//! The section `[compaction]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Share;

/// How conversations go on that do not fit their model's window any more: the model is shown less of them, and nothing is
/// lost.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactionConfig {
    /// Whether conversations are compacted by themselves; `false` outranks `limits.compactAt`. `chat:compact` does it all the
    /// same.
    pub enabled: bool,
    /// From which share of the model's window on; 0.3 to 0.99. It is earlier where an answer would not fit.
    pub at: Share<30, 99>,
    /// The share of that which is left after large old results are left out, else the conversation is summed up; 0.2 to 0.8.
    pub target: Share<20, 80>,
    /// The model that sums up, as `PROVIDER/MODEL`, for conversations with that provider; empty for the conversation's own, which
    /// has most of what it reads in its cache.
    pub model: String,
    /// Tools whose results are never left out, but only summed up.
    pub keep_tools: Vec<String>,
    /// What a summary is to mind besides, in words for the model.
    pub instructions: String,
    /// Whose own compaction is asked for in the place of a summary: `"off"`, `"anthropic"` or `"openai"` (Responses), for conversations
    /// with such a provider. Only the model that made one can read it; for others, and where it fails, there is a summary. OpenAI's
    /// takes no instructions: where there are some, a summary is made.
    pub native: NativeCompaction,
}

/// A vendor's own compaction, which its API makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NativeCompaction {
    /// None.
    #[default]
    Off,
    /// Anthropic's `compaction` block.
    Anthropic,
    /// The `compaction` item of OpenAI's Responses.
    Openai,
}

impl CompactionConfig {
    /// Returns the model that sums up conversations with this provider; `None` for their own.
    pub fn model_of(&self, provider: &str) -> Option<&str> {
        let (named, model) = self.model.split_once('/')?;
        (named == provider && !model.is_empty()).then_some(model)
    }
}
