//! The form of a script, as `docs/scripts.md` describes it. Unknown keys are refused.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::situation::Situation;
use crate::provider::{ErrorKind, Stop};
use crate::units::parse_duration;

/// Characters of a piece of text where a script says nothing else: about a token or two.
const DEFAULT_CHUNK: usize = 8;

/// A script: what a model would say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    /// The name of the model that answers.
    #[serde(default)]
    pub(super) model: Option<String>,
    /// The model's window in tokens, for gauges; unknown where absent.
    #[serde(default)]
    pub(super) context_window: Option<u64>,
    /// Characters of one piece of text or input; at least 1.
    #[serde(default)]
    pub(super) chunk: Option<usize>,
    /// Pause between two pieces.
    #[serde(default, deserialize_with = "duration")]
    pub(super) pace: Duration,
    /// The first one whose conditions hold is played.
    pub(super) steps: Vec<Step>,
}

/// One answer and when it is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// When it is given; always, where absent.
    #[serde(default)]
    pub(super) when: When,
    /// How often it may be given, over all conversations; for ever where absent.
    #[serde(default)]
    pub(super) times: Option<u32>,
    /// What the answer is made of, in order.
    pub(super) play: Vec<Act>,
    /// Why it stops; `tool_use` or `end_turn` by what was played, where absent.
    #[serde(default)]
    pub(super) stop: Option<StopWord>,
    /// Its figures; estimated from the texts where absent.
    #[serde(default)]
    pub(super) usage: Option<Figures>,
    /// How often it was given.
    #[serde(skip)]
    pub(super) given: AtomicU32,
    /// The folder that its recordings are in.
    #[serde(skip)]
    pub(super) folder: PathBuf,
}

/// Conditions; all that are given have to hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct When {
    /// The last message of the user has one of these, in any case.
    #[serde(default)]
    pub(super) user: Option<Words>,
    /// So many turns came since that message; 0 is the first answer to it.
    #[serde(default)]
    pub(super) turn: Option<usize>,
    /// The last result is of this tool.
    #[serde(default)]
    pub(super) tool: Option<String>,
    /// The last result has one of these, in any case.
    #[serde(default)]
    pub(super) result: Option<Words>,
    /// Whether the last result is an error, a refusal included.
    #[serde(default)]
    pub(super) failed: Option<bool>,
    /// All these tools are on offer and may be called.
    #[serde(default)]
    pub(super) offers: Vec<String>,
}

/// One word or several.
#[derive(Debug)]
pub(super) struct Words(pub(super) Vec<String>);

/// A piece of an answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Act {
    /// Text; `{user}` and `{result}` stand for the last message and the last result.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// A call of a tool.
    Call(CallAct),
    /// A pause.
    #[serde(deserialize_with = "duration")]
    Pause(Duration),
    /// A failure: in front, in place of an answer; further down, in the middle of it.
    Error(ErrorAct),
    /// A recorded body, through the parser of its wire format; the only act of its step.
    Recording(RecordingAct),
}

/// A call of a tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallAct {
    /// The tool's name.
    pub(super) name: String,
    /// The input.
    #[serde(default)]
    pub(super) input: Map<String, Value>,
    /// The input as the model wrote it, to be broken at will; in place of `input`.
    #[serde(default)]
    pub(super) raw: Option<String>,
}

/// A failure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorAct {
    /// Its kind, e.g. `rate_limit`.
    #[serde(deserialize_with = "kind")]
    pub(super) kind: ErrorKind,
    /// The provider's message.
    #[serde(default)]
    pub(super) message: Option<String>,
    /// The HTTP status.
    #[serde(default)]
    pub(super) status: Option<u16>,
    /// How long the provider wants to be left alone.
    #[serde(default, deserialize_with = "some_duration")]
    pub(super) retry_after: Option<Duration>,
}

/// A recorded body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordingAct {
    /// The file, relative to the script.
    pub(super) file: PathBuf,
    /// Its wire format, e.g. `anthropic-messages`.
    pub(super) api: String,
    /// Its HTTP status.
    #[serde(default = "ok")]
    pub(super) status: u16,
}

/// Why an answer stops.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StopWord {
    EndTurn,
    ToolUse,
    MaxTokens,
    StopSequence,
    Refusal,
    ContentFilter,
    PauseTurn,
}

impl From<StopWord> for Stop {
    fn from(word: StopWord) -> Self {
        match word {
            StopWord::EndTurn => Self::EndTurn,
            StopWord::ToolUse => Self::ToolUse,
            StopWord::MaxTokens => Self::MaxTokens,
            StopWord::StopSequence => Self::StopSequence,
            StopWord::Refusal => Self::Refusal,
            StopWord::ContentFilter => Self::ContentFilter,
            StopWord::PauseTurn => Self::Pause,
        }
    }
}

/// Tokens; what is left out is not told.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figures {
    #[serde(default)]
    pub(super) input: Option<u64>,
    #[serde(default)]
    pub(super) output: Option<u64>,
    #[serde(default)]
    pub(super) cache_read: Option<u64>,
    #[serde(default)]
    pub(super) cache_write: Option<u64>,
    #[serde(default)]
    pub(super) reasoning: Option<u64>,
}

impl Script {
    /// Characters of one piece.
    pub(super) fn chunk(&self) -> usize {
        self.chunk.unwrap_or(DEFAULT_CHUNK).max(1)
    }

    /// Finds the step for a situation and counts it as given.
    pub(super) fn step_for(&self, situation: &Situation) -> Option<&Step> {
        self.steps
            .iter()
            .find(|step| situation.meets(&step.when) && step.take_turn())
    }

    /// Says what no type can: which acts go together.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.steps.is_empty() {
            return Err("steps: a script needs at least one".to_owned());
        }
        for (index, step) in self.steps.iter().enumerate() {
            let recorded = step.play.iter().any(|act| matches!(act, Act::Recording(_)));
            if recorded && step.play.len() > 1 {
                return Err(format!(
                    "steps.{index}.play: a recording stands alone in its step"
                ));
            }
        }
        Ok(())
    }
}

impl Step {
    fn take_turn(&self) -> bool {
        let Some(times) = self.times else {
            return true;
        };
        self.given
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |given| {
                (given < times).then_some(given + 1)
            })
            .is_ok()
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = match Value::deserialize(deserializer)? {
            Value::String(word) => vec![word],
            other => serde_json::from_value(other).map_err(serde::de::Error::custom)?,
        };
        Ok(Self(words.iter().map(|word| word.to_lowercase()).collect()))
    }
}

fn ok() -> u16 {
    200
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).ok_or_else(|| {
        serde::de::Error::custom(format!(
            "{text:?} is no duration such as \"20ms\" or \"2s\""
        ))
    })
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ErrorKind, D::Error> {
    let word = String::deserialize(deserializer)?;
    ErrorKind::WORDS
        .iter()
        .find(|(known, _)| *known == word)
        .map(|(_, kind)| *kind)
        .ok_or_else(|| {
            let known: Vec<&str> = ErrorKind::WORDS.iter().map(|(known, _)| *known).collect();
            serde::de::Error::custom(format!("{word:?} is none of {}", known.join(", ")))
        })
}
