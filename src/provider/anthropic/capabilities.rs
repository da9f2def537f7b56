//! What a model accepts: from the model list where that was fetched, else by its family.
//!
//! The rule by family is the table of `docs/providers.md`, "Anthropic: thinking". A name nobody knows is
//! taken for a newer Claude where it says so, for another vendor's model otherwise.

use serde_json::Value;

use crate::message::Effort;

/// How a model may be told to think, or not to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// As much as it finds fit.
    Adaptive,
    /// Up to a number of tokens.
    Enabled,
    /// Not at all.
    Disabled,
    /// Only between calls.
    BetweenTools,
}

impl Mode {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [
        Self::Adaptive,
        Self::Enabled,
        Self::Disabled,
        Self::BetweenTools,
    ];

    /// Returns the word on the wire.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Adaptive => "adaptive",
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::BetweenTools => "between_tools",
        }
    }
}

/// What a model accepts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Capabilities {
    /// Ways of thinking.
    pub(super) modes: Vec<Mode>,
    /// Whether it thinks where nothing is said of it.
    pub(super) thinks_unasked: bool,
    /// Whether thinking goes back only where nothing before it changed.
    pub(super) binds_thinking: bool,
    /// Efforts it can be told.
    pub(super) efforts: Vec<Effort>,
    /// Whether a temperature may be given.
    pub(super) sampling: bool,
    /// Whether it sees images.
    pub(super) images: bool,
    /// Most tokens of one answer.
    pub(super) max_tokens: u64,
}

const EFFORTS: [(Effort, &str); 3] = [
    (Effort::Low, "low"),
    (Effort::Medium, "medium"),
    (Effort::High, "high"),
];

/// Returns the word of an effort on the wire.
pub(super) fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

impl Capabilities {
    /// Returns what is known of a model by its name alone.
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
            thinks_unasked: class.at_least((5, 0)),
            binds_thinking: match class {
                Class::Claude(Family::Fable, version) => version >= (5, 1),
                Class::NewClaude => true,
                other => other.at_least((5, 5)),
            },
            efforts: if efforts {
                EFFORTS.map(|(effort, _)| effort).to_vec()
            } else {
                Vec::new()
            },
            sampling: match class {
                Class::NewClaude => false,
                other => !other.at_least((4, 7)),
            },
            images: true,
            max_tokens: class.max_tokens(),
        }
    }

    /// Returns what an entry of `GET /v1/models` says, completed by the name.
    pub(super) fn from_listing(entry: &Value) -> Self {
        let id = entry.get("id").and_then(Value::as_str).unwrap_or_default();
        let mut known = Self::by_name(id);
        let supported = |path: &str| {
            entry
                .pointer(&format!("/capabilities/{path}/supported"))
                .and_then(Value::as_bool)
        };
        if entry.pointer("/capabilities/thinking/types").is_some() {
            let listed = |mode: &Mode| supported(&format!("thinking/types/{}", mode.word()));
            known.modes = Mode::ALL.to_vec();
            known.modes.retain(|mode| listed(mode) == Some(true));
        }
        if entry.pointer("/capabilities/effort").is_some() {
            let listed = |word: &str| supported(&format!("effort/{word}")) == Some(true);
            let efforts = EFFORTS.iter().filter(|(_, word)| listed(word));
            known.efforts = efforts.map(|(effort, _)| *effort).collect();
        }
        known.images = supported("image_input").unwrap_or(known.images);
        if let Some(max_tokens) = entry.get("max_tokens").and_then(Value::as_u64) {
            known.max_tokens = max_tokens.max(1);
        }
        known
    }

    /// Whether the model takes `mode`.
    pub(super) fn takes(&self, mode: Mode) -> bool {
        self.modes.contains(&mode)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Fable,
    Opus,
    Sonnet,
    Haiku,
}

/// What a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// A known family, with major and minor version.
    Claude(Family, (u32, u32)),
    /// A Claude of a family or version that is not in the name as it used to be.
    NewClaude,
    /// Another vendor's model behind the same API.
    Foreign,
}

impl Class {
    fn of(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let words: Vec<_> = model.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let family = |word: &&str| match *word {
            "fable" => Some(Family::Fable),
            "opus" => Some(Family::Opus),
            "sonnet" => Some(Family::Sonnet),
            "haiku" => Some(Family::Haiku),
            _ => None,
        };
        let Some(claude) = words.iter().position(|word| *word == "claude") else {
            return Self::Foreign;
        };
        let words = words.get(claude + 1..).unwrap_or_default();
        let numbers = |words: &[&str]| {
            let mut numbers = words
                .iter()
                // Dates have eight digits.
                .take_while(|word| (1..=2).contains(&word.len()))
                .map_while(|word| word.parse::<u32>().ok());
            let major = numbers.next()?;
            Some((major, numbers.next().unwrap_or(0)))
        };
        let place = words.iter().position(|word| family(word).is_some());
        let found = place.and_then(|place| {
            let family = family(words.get(place)?)?;
            // `claude-opus-4-5`, and before that `claude-3-5-sonnet`.
            let version = numbers(words.get(place + 1..)?).or_else(|| numbers(words))?;
            Some(Self::Claude(family, version))
        });
        match (found, numbers(words)) {
            (Some(class), _) => class,
            // `claude-2.1`, `claude-instant-1.2`.
            (None, Some((1 | 2, _))) => Self::Claude(Family::Haiku, (2, 0)),
            (None, _) if words.first() == Some(&"instant") => Self::Claude(Family::Haiku, (1, 0)),
            (None, _) => Self::NewClaude,
        }
    }

    fn at_least(self, version: (u32, u32)) -> bool {
        matches!(self, Self::Claude(_, own) if own >= version)
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
