//! The form of a script, as `docs/scripts.md` describes it. Unknown keys are refused.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::situation::Situation;
use crate::message::Usage;
use crate::provider::record::Entry;
use crate::provider::{ErrorKind, ProviderError, Stop};
use crate::units::parse_duration;

/// Characters of a piece of text where a script says nothing else: about a token or two.
const DEFAULT_CHUNK: usize = 8;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    pub(super) model: Option<String>,
    /// The model's window in tokens, for gauges.
    pub(super) context_window: Option<u64>,
    /// Characters of one piece of text or input.
    chunk: Option<usize>,
    /// Pause between two pieces.
    #[serde(default, deserialize_with = "duration")]
    pub(super) pace: Duration,
    pub(super) steps: Vec<Step>,
    /// Whether it is a directory of recordings.
    #[serde(skip)]
    pub(super) is_recorded: bool,
}

/// One answer and when it is given.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    #[serde(default)]
    when: When,
    /// How often it may be given, over all conversations; for ever where absent.
    times: Option<u32>,
    pub(super) play: Vec<Act>,
    /// `tool_use` or `end_turn` by what was played, where absent.
    pub(super) stop: Option<Stop>,
    /// Estimated from the texts where absent.
    pub(super) usage: Option<Usage>,
    /// How often it was given.
    #[serde(skip)]
    given: AtomicU32,
    /// The folder that its recordings are in.
    #[serde(skip)]
    pub(super) folder: PathBuf,
}

/// Conditions; all that are given have to hold.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct When {
    #[serde(deserialize_with = "words")]
    pub(super) user: Option<Vec<String>>,
    pub(super) turn: Option<usize>,
    pub(super) tool: Option<String>,
    #[serde(deserialize_with = "words")]
    pub(super) result: Option<Vec<String>>,
    pub(super) failed: Option<bool>,
    pub(super) offers: Vec<String>,
}

/// A piece of an answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Act {
    Text(String),
    Thinking(String),
    Call(CallAct),
    #[serde(deserialize_with = "duration")]
    Pause(Duration),
    /// In front, in place of an answer; further down, in the middle of it.
    Error(ErrorAct),
    /// A recorded body, through the parser of its wire format; the only act of its step.
    #[serde(deserialize_with = "recording")]
    Recording(Box<Entry>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallAct {
    pub(super) name: String,
    #[serde(default)]
    pub(super) input: Map<String, Value>,
    /// The input as the model wrote it, to be broken at will; in place of `input`.
    pub(super) raw: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorAct {
    kind: ErrorKind,
    message: Option<String>,
    status: Option<u16>,
    #[serde(default, deserialize_with = "duration")]
    retry_after: Option<Duration>,
}

impl Script {
    /// Makes a script that plays the recordings of a directory in order.
    pub(super) fn of_recordings(folder: &Path, entries: Vec<Entry>) -> Self {
        let step = |entry| Step {
            times: Some(1),
            play: vec![Act::Recording(Box::new(entry))],
            folder: folder.to_owned(),
            ..Step::default()
        };
        Self {
            steps: entries.into_iter().map(step).collect(),
            is_recorded: true,
            ..Self::default()
        }
    }

    /// Characters of one piece, at least 1.
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
        let recorded = |step: &Step| step.play.iter().any(|act| matches!(act, Act::Recording(_)));
        let mut steps = self.steps.iter();
        match steps.position(|step| step.play.len() > 1 && recorded(step)) {
            Some(index) => Err(format!(
                "steps.{index}.play: a recording stands alone in its step"
            )),
            None => Ok(()),
        }
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

impl ErrorAct {
    pub(super) fn error(&self) -> ProviderError {
        let message = self
            .message
            .clone()
            .unwrap_or_else(|| format!("the script fails here: {:?}", self.kind));
        ProviderError {
            status: self.status,
            retry_after: self.retry_after,
            ..ProviderError::new(self.kind, message)
        }
    }
}

/// Reads one word or several, in lower case.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let words = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::String(word) => vec![word],
        other => serde_json::from_value(other).map_err(D::Error::custom)?,
    };
    Ok(Some(words.iter().map(|word| word.to_lowercase()).collect()))
}

fn recording<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<Entry>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Recording {
        file: PathBuf,
        api: String,
        status: Option<u16>,
    }
    let Recording { file, api, status } = Recording::deserialize(deserializer)?;
    Ok(Box::new(Entry {
        file,
        api,
        status: status.or(Some(200)),
        ..Entry::default()
    }))
}

fn duration<'de, D: Deserializer<'de>, T: From<Duration>>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).map(T::from).ok_or_else(|| {
        D::Error::custom(format!(
            "{text:?} is no duration such as \"20ms\" or \"2s\""
        ))
    })
}
