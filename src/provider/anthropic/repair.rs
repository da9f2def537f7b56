//! What to do otherwise after a refusal whose message says what is wrong.
//!
//! Models differ in what they take, new ones come without warning, and compatible servers know only
//! part of the API. Wording as of providers.md 5.5 (2026-11-20); a message that is not understood is
//! an error like any other.

use serde_json::{Map, Value};

use super::capabilities::{Capabilities, Mode};
use super::history::is_thinking;
use super::request::{Amends, Prepared};
use crate::provider::ProviderError;

/// Fewest tokens of room for an answer that are worth another attempt.
const MIN_ROOM: u64 = 1024;

/// Tokens by which the vendor's count of the input may be off.
const MARGIN: u64 = 64;

/// What to do otherwise.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Remedy {
    /// The model is not as was thought; holds for all requests to it.
    Learn(Capabilities),
    /// Only this request is to be made otherwise.
    Amend(Amends),
    /// The thinking in this history is not to be sent again.
    StripThinking,
}

/// Returns what helps against `error`, which `sent` was answered with, if anything does.
///
/// Each remedy changes what is sent, so that none is proposed twice.
pub(super) fn remedy(
    error: &ProviderError,
    sent: &Prepared,
    capabilities: &Capabilities,
    amends: Amends,
) -> Option<Remedy> {
    if !matches!(error.status, Some(400 | 422)) {
        return None;
    }
    let text = error.message.to_lowercase();
    if let Some(amended) = amend(&text, sent, amends) {
        return Some(Remedy::Amend(amended));
    }
    if refuses_old_thinking(&text) && has_thinking(&sent.body) {
        return Some(Remedy::StripThinking);
    }
    let mut learnt = capabilities.clone();
    learn(&text, sent, &mut learnt);
    (learnt != *capabilities).then_some(Remedy::Learn(learnt))
}

fn amend(text: &str, sent: &Prepared, amends: Amends) -> Option<Amends> {
    let asked = number(&sent.body, "max_tokens")?;
    if let Some(room) = room(text)
        && (MIN_ROOM..asked).contains(&room)
    {
        return Some(Amends {
            max_tokens: Some(room),
            ..amends
        });
    }
    let wants_thinking_first = text.contains("expected") && text.contains("thinking");
    (wants_thinking_first && sent.mode == Some(Mode::Enabled) && !amends.no_budget).then_some(
        Amends {
            no_budget: true,
            ..amends
        },
    )
}

/// Reads "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000".
fn room(text: &str) -> Option<u64> {
    let (_, sum) = text.split_once("exceed context limit:")?;
    let mut numbers = numbers(sum);
    let (input, _, limit) = (numbers.next()?, numbers.next()?, numbers.next()?);
    limit.checked_sub(input)?.checked_sub(MARGIN)
}

fn numbers(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
}

/// Whether thinking of earlier replies is refused: changed, unreadable, or bound to another prefix.
fn refuses_old_thinking(text: &str) -> bool {
    let about = [
        "signature",
        "cannot be modified",
        "binding",
        "bound to",
        "prefix",
    ];
    text.contains("thinking") && about.iter().any(|word| text.contains(word))
}

fn has_thinking(body: &Map<String, Value>) -> bool {
    thinking_blocks(body).next().is_some()
}

/// Returns the thinking that a request sends back.
pub(super) fn thinking_blocks(
    body: &Map<String, Value>,
) -> impl Iterator<Item = &Map<String, Value>> {
    let messages = body.get("messages").and_then(Value::as_array);
    let contents = messages
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("content"));
    let blocks = contents.filter_map(Value::as_array).flatten();
    blocks
        .filter_map(Value::as_object)
        .filter(|block| is_thinking(block))
}

fn learn(text: &str, sent: &Prepared, learnt: &mut Capabilities) {
    let has = |name: &str| sent.body.contains_key(name);
    if has("temperature") && text.contains("temperature") {
        learnt.sampling = false;
    } else if text.contains("cache_control") {
        learnt.caching = false;
    } else if has("thinking") && text.contains("display") {
        learnt.display = false;
    } else if let Some(mode) = sent.mode
        && text.contains("thinking")
    {
        learnt.modes.retain(|other| *other != mode);
        for other in Mode::ALL {
            if other != mode && names(text, other) && !learnt.takes(other) {
                learnt.modes.push(other);
            }
        }
    } else if has("output_config") && (text.contains("effort") || text.contains("output_config")) {
        learnt.efforts.clear();
    } else if let Some((_, limit)) = text.split_once("max_tokens")
        && let Some(most) = limit
            .split_once('>')
            .and_then(|(_, most)| numbers(most).next())
    {
        // "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for …"
        learnt.max_tokens = most.clamp(1, learnt.max_tokens);
    }
}

/// Whether a message names a mode; `enabled` and `disabled` are words of their own besides.
fn names(text: &str, mode: Mode) -> bool {
    text.match_indices(mode.word()).any(|(place, _)| {
        let before = text
            .get(..place)
            .and_then(|before| before.chars().next_back());
        matches!(mode, Mode::Adaptive | Mode::BetweenTools)
            || matches!(before, Some('.' | '"' | '\'' | '`'))
    })
}

fn number(body: &Map<String, Value>, name: &str) -> Option<u64> {
    body.get(name).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::ErrorKind;

    fn sent(mode: Option<Mode>) -> Prepared {
        let body = json!({
            "model": "m", "max_tokens": 64_000, "temperature": 0.5,
            "thinking": {"type": mode.map(Mode::word)}, "output_config": {"effort": "low"},
            "messages": [{"role": "assistant", "content": [{"type": "thinking"}]}],
        });
        let Value::Object(body) = body else {
            panic!("a body is an object")
        };
        Prepared {
            body,
            prefix: String::new(),
            mode,
            notices: Vec::new(),
        }
    }

    fn ask(message: &str, mode: Option<Mode>, known: &Capabilities) -> Option<Remedy> {
        let mut error = ProviderError::new(ErrorKind::InvalidRequest, message);
        error.status = Some(400);
        remedy(&error, &sent(mode), known, Amends::default())
    }

    #[test]
    fn modes_are_taken_from_the_message() {
        let known = Capabilities::by_name("claude-sonnet-4-5");
        let cases: &[(&str, Mode, &[Mode])] = &[
            (
                "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.",
                Mode::Enabled,
                &[Mode::Disabled, Mode::Adaptive],
            ),
            (
                "adaptive thinking is not supported on this model",
                Mode::Adaptive,
                &[Mode::Enabled, Mode::Disabled],
            ),
            (
                "thinking.type: \"disabled\" is not supported for this model; use \"between_tools\"",
                Mode::Disabled,
                &[Mode::Enabled, Mode::BetweenTools],
            ),
            (
                "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'",
                Mode::Adaptive,
                &[Mode::Enabled, Mode::Disabled],
            ),
            (
                "thinking: Extra inputs are not permitted",
                Mode::Enabled,
                &[Mode::Disabled],
            ),
        ];
        for (message, mode, expected) in cases {
            let mut before = known.clone();
            if !before.takes(*mode) {
                before.modes.insert(0, *mode);
            }
            match ask(message, Some(*mode), &before) {
                Some(Remedy::Learn(learnt)) => assert_eq!(learnt.modes, *expected, "{message}"),
                other => panic!("{message}: {other:?}"),
            }
        }
    }

    #[test]
    fn other_refusals() {
        let known = Capabilities::by_name("claude-opus-4-6");
        let learn = |change: fn(&mut Capabilities)| {
            let mut learnt = known.clone();
            change(&mut learnt);
            Some(Remedy::Learn(learnt))
        };
        let room = |tokens| {
            Some(Remedy::Amend(Amends {
                max_tokens: Some(tokens),
                no_budget: false,
            }))
        };
        let cases = [
            (
                "temperature: Extra inputs are not permitted",
                None,
                learn(|c| c.sampling = false),
            ),
            (
                "`temperature` is deprecated for this model.",
                None,
                learn(|c| c.sampling = false),
            ),
            (
                "This model does not support the effort parameter.",
                None,
                learn(|c| c.efforts.clear()),
            ),
            (
                "thinking.adaptive.display: Extra inputs are not permitted",
                Some(Mode::Adaptive),
                learn(|c| c.display = false),
            ),
            (
                "system.0.cache_control: Extra inputs are not permitted",
                None,
                learn(|c| c.caching = false),
            ),
            (
                "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for m",
                None,
                learn(|c| c.max_tokens = 8192),
            ),
            (
                "input length and `max_tokens` exceed context limit: 188240 + 64000 > 200000, decrease input length",
                None,
                room(200_000 - 188_240 - MARGIN),
            ),
            (
                "input length and `max_tokens` exceed context limit: 199900 + 64000 > 200000, decrease input length",
                None,
                None,
            ),
            (
                "prompt is too long: 210000 tokens > 200000 maximum",
                None,
                None,
            ),
            (
                "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final `assistant` message must start with a thinking block",
                Some(Mode::Enabled),
                Some(Remedy::Amend(Amends {
                    max_tokens: None,
                    no_budget: true,
                })),
            ),
            (
                "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
                Some(Mode::Adaptive),
                Some(Remedy::StripThinking),
            ),
            (
                "messages.1.content.0: Invalid `signature` in `thinking` block",
                None,
                Some(Remedy::StripThinking),
            ),
            (
                "thinking block does not match the prefix it was produced from",
                None,
                Some(Remedy::StripThinking),
            ),
            ("messages: at least one message is required", None, None),
            ("", None, None),
        ];
        for (message, mode, expected) in cases {
            assert_eq!(ask(message, mode, &known), expected, "{message}");
        }
    }

    #[test]
    fn only_a_refused_request_is_repaired_and_each_way_once() {
        let known = Capabilities::by_name("claude-opus-4-6");
        let mut error = ProviderError::new(ErrorKind::Server, "temperature");
        for status in [None, Some(401), Some(429), Some(500)] {
            error.status = status;
            assert_eq!(remedy(&error, &sent(None), &known, Amends::default()), None);
        }
        let mut learnt = known;
        learnt.sampling = false;
        assert_eq!(ask("temperature", None, &learnt), None);
    }
}
