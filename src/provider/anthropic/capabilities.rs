//! What a model accepts: from the model list where that was fetched, else by its family.
//!
//! The rule by family is the table of `docs/providers.md`, "Anthropic: thinking". A name nobody knows is
//! taken for a newer Claude where it says so, for another vendor's model otherwise.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::Effort;
use crate::provider::json::string;

/// How a request may have a model think, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    Adaptive,
    /// Up to a number of tokens.
    Enabled,
    Disabled,
    /// Only between calls.
    BetweenTools,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Capabilities {
    pub(super) modes: Vec<Mode>,
    /// Whether it thinks where nothing is said of it.
    pub(super) thinks_by_default: bool,
    /// Whether thinking goes back only where nothing before it changed.
    pub(super) binds_thinking: bool,
    pub(super) efforts: Vec<Effort>,
    pub(super) sampling: bool,
    pub(super) images: bool,
    /// Whether it takes PDF and text files.
    pub(super) documents: bool,
    pub(super) max_tokens: u64,
}

impl Capabilities {
    pub(super) fn by_name(model: &str) -> Self {
        let class = Class::of(model);
        let (modes, efforts): (&[Mode], bool) = match class {
            Class::Foreign => (&[Mode::Enabled, Mode::Disabled], false),
            Class::Claude(Family::Sonnet, version) if version >= (5, 5) => {
                (&[Mode::Adaptive, Mode::BetweenTools], true)
            }
            Class::Claude(Family::Fable, _) | Class::NewClaude => (&[Mode::Adaptive], true),
            Class::Claude(_, version) if version >= (5, 5) => (&[Mode::Adaptive], true),
            Class::Claude(_, version) if version >= (4, 7) => {
                (&[Mode::Adaptive, Mode::Disabled], true)
            }
            Class::Claude(_, (4, 6)) => (&[Mode::Adaptive, Mode::Enabled, Mode::Disabled], true),
            Class::Claude(family, version) if version >= (3, 7) => (
                &[Mode::Enabled, Mode::Disabled],
                family == Family::Opus && version == (4, 5),
            ),
            Class::Claude(..) => (&[], false),
        };
        Self {
            modes: modes.to_vec(),
            thinks_by_default: class.at_least((5, 0)),
            binds_thinking: match class {
                Class::Claude(Family::Fable, version) => version >= (5, 1),
                Class::NewClaude => true,
                other => other.at_least((5, 5)),
            },
            efforts: if efforts {
                vec![Effort::Low, Effort::Medium, Effort::High]
            } else {
                Vec::new()
            },
            sampling: match class {
                Class::NewClaude => false,
                other => !other.at_least((4, 7)),
            },
            images: true,
            documents: class.takes_documents(),
            max_tokens: class.max_tokens(),
        }
    }

    pub(super) fn from_listing(entry: &Value) -> Self {
        let mut known = Self::by_name(string(entry, "id"));
        if let Some(modes) = listed(entry, "/capabilities/thinking/types") {
            known.modes = modes;
        }
        if let Some(efforts) = listed(entry, "/capabilities/effort") {
            known.efforts = efforts;
        }
        let images = entry.pointer("/capabilities/image_input/supported");
        known.images = images.and_then(Value::as_bool).unwrap_or(known.images);
        let documents = entry.pointer("/capabilities/pdf_input/supported");
        known.documents = documents
            .and_then(Value::as_bool)
            .unwrap_or(known.documents);
        if let Some(max_tokens) = entry.get("max_tokens").and_then(Value::as_u64) {
            known.max_tokens = max_tokens.max(1);
        }
        known
    }

    pub(super) fn takes(&self, mode: Mode) -> bool {
        self.modes.contains(&mode)
    }
}

/// Reads the words of a list that are supported and known here.
fn listed<T: DeserializeOwned>(entry: &Value, path: &str) -> Option<Vec<T>> {
    let words = entry.pointer(path)?.as_object()?.iter();
    let words = words.filter(|(_, word)| word.get("supported") == Some(&Value::Bool(true)));
    let known = words.filter_map(|(word, _)| serde_json::from_value(Value::from(&**word)).ok());
    Some(known.collect())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Fable,
    Opus,
    Sonnet,
    Haiku,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// A known family, with major and minor version.
    Claude(Family, (u32, u32)),
    /// A Claude of a family or version that is not in the name as it used to be.
    NewClaude,
    Foreign,
}

impl Class {
    fn of(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let mut words = model.split(|c: char| !c.is_ascii_alphanumeric());
        if !words.any(|word| word == "claude") {
            return Self::Foreign;
        }
        let words: Vec<_> = words.collect();
        let family = words.iter().find_map(|word| match *word {
            "fable" => Some(Family::Fable),
            "opus" => Some(Family::Opus),
            "sonnet" => Some(Family::Sonnet),
            "haiku" => Some(Family::Haiku),
            _ => None,
        });
        // `claude-opus-4-5`, and before that `claude-3-5-sonnet`. Dates have eight digits.
        let short = words.iter().filter(|word| word.len() <= 2);
        let mut numbers = short.filter_map(|word| word.parse().ok());
        match (family, numbers.next(), numbers.next()) {
            (Some(family), Some(major), minor) => Self::Claude(family, (major, minor.unwrap_or(0))),
            // `claude-2.1`, `claude-instant-1.2`.
            (None, Some(1 | 2), _) => Self::Claude(Family::Haiku, (2, 0)),
            _ => Self::NewClaude,
        }
    }

    fn at_least(self, version: (u32, u32)) -> bool {
        matches!(self, Self::Claude(_, own) if own >= version)
    }

    fn takes_documents(self) -> bool {
        match self {
            Self::Claude(_, version) => version >= (3, 5),
            Self::NewClaude => true,
            Self::Foreign => false,
        }
    }

    /// Most tokens of one answer by the vendor's model pages (2026-11-20).
    fn max_tokens(self) -> u64 {
        match self {
            Self::Claude(Family::Opus, (4, 0 | 1)) => 32_000,
            Self::Claude(Family::Opus, (4, 6)) => 128_000,
            Self::Claude(_, version) if version >= (4, 7) => 128_000,
            Self::Claude(_, version) if version >= (3, 7) => 64_000,
            Self::Claude(_, (3, 5)) | Self::Foreign => 8_192,
            Self::Claude(..) => 4_096,
            Self::NewClaude => 64_000,
        }
    }
}

#[cfg(test)]
mod tests;
