//! The four refusals that no table of models foresees, and what is sent instead.
//!
//! The vendor alone counts the tokens of the input, and it alone can read a signature. Any other refusal is an error.
//! Wording: `docs/providers.md`, "Refusals that can be repaired", the last part.

use super::request::Prepared;
use crate::provider::ProviderError;

/// Fewest tokens of room for an answer that are worth another attempt.
const MIN_ROOM: u64 = 1024;

/// Tokens by which the vendor's count of the input may be off.
const MARGIN: u64 = 64;

/// Words with which thinking of earlier replies is refused: changed, unreadable, or bound to another prefix.
const REFUSALS: [&str; 5] = [
    "signature",
    "cannot be modified",
    "binding",
    "bound to",
    "prefix",
];

/// Words with which a document is refused, of a request that has one: too many pages, not as the vendor reads them.
const DOCUMENT_REFUSALS: [&str; 2] = ["pdf", "document"];

/// What a repeated request does otherwise than the one that was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amends {
    /// Most tokens of the answer that fit beside the input.
    pub(super) max_tokens: Option<u64>,
    /// The thinking of earlier replies is left out.
    pub(super) no_thinking: bool,
    /// The answer is not held to a form: the words of the request alone ask for it.
    pub(super) no_form: bool,
    /// Documents go as text.
    pub(super) no_documents: bool,
}

/// Words with which the form of an answer is refused.
const FORM: [&str; 5] = [
    "output_config",
    "json_schema",
    "additionalproperties",
    "tool_choice",
    "schema",
];

impl Amends {
    /// Returns what to send after `error`, which `sent` was answered with; each change is proposed once.
    pub(super) fn after(self, error: &ProviderError, sent: &Prepared) -> Option<Self> {
        if !matches!(error.status, Some(400 | 422)) {
            return None;
        }
        let text = error.message.to_lowercase();
        let is_said = |word: &&str| text.contains(*word);
        if sent.has_form && !self.no_form && FORM.iter().any(is_said) {
            return Some(Self {
                no_form: true,
                ..self
            });
        }
        if let Some(room) = room(&text)
            && self.max_tokens.is_none()
            && (MIN_ROOM..sent.max_tokens).contains(&room)
        {
            return Some(Self {
                max_tokens: Some(room),
                ..self
            });
        }
        if sent.has_documents && !self.no_documents && DOCUMENT_REFUSALS.iter().any(is_said) {
            return Some(Self {
                no_documents: true,
                ..self
            });
        }
        let refused = text.contains("thinking") && REFUSALS.iter().any(is_said);
        (refused && !self.no_thinking).then_some(Self {
            no_thinking: true,
            ..self
        })
    }
}

/// Reads "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000".
fn room(text: &str) -> Option<u64> {
    let (_, sum) = text.split_once("exceed context limit:")?;
    let mut numbers = sum
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse::<u64>().ok());
    let (input, _, limit) = (numbers.next()?, numbers.next()?, numbers.next()?);
    limit.checked_sub(input)?.checked_sub(MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::ErrorKind;

    /// A request for at most so many tokens, with documents and a form or without.
    fn sent(max_tokens: u64, has_documents: bool, has_form: bool) -> Prepared {
        Prepared {
            body: crate::provider::request::Body::default(),
            prefix: String::new(),
            max_tokens,
            compacts: false,
            has_documents,
            has_form,
            notices: Vec::new(),
        }
    }

    #[test]
    fn only_what_cannot_be_foreseen_is_amended_and_each_once() {
        let (plain, with_documents) = (sent(64_000, false, false), sent(64_000, true, false));
        let shorter = Amends {
            max_tokens: Some(200_000 - 188_240 - MARGIN),
            ..Amends::default()
        };
        let thoughtless = Amends {
            no_thinking: true,
            ..Amends::default()
        };
        for (message, expected) in [
            (
                "input length and `max_tokens` exceed context limit: 188240 + 64000 > 200000, decrease input length",
                Some(shorter),
            ),
            (
                "input length and `max_tokens` exceed context limit: 199900 + 64000 > 200000, decrease input length",
                None,
            ),
            ("prompt is too long: 210000 tokens > 200000 maximum", None),
            (
                "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
                Some(thoughtless),
            ),
            (
                "messages.1.content.0: Invalid `signature` in `thinking` block",
                Some(thoughtless),
            ),
            (
                "thinking block does not match the prefix it was produced from",
                Some(thoughtless),
            ),
            ("temperature: Extra inputs are not permitted", None),
            ("messages: at least one message is required", None),
            ("", None),
        ] {
            let mut error = ProviderError::new(ErrorKind::InvalidRequest, message);
            for status in [None, Some(401), Some(429), Some(500)] {
                error.status = status;
                assert_eq!(Amends::default().after(&error, &with_documents), None);
            }
            error.status = Some(400);
            assert_eq!(
                Amends::default().after(&error, &plain),
                expected,
                "{message}"
            );
            if let Some(amends) = expected {
                assert_eq!(amends.after(&error, &plain), None, "{message}");
            }
        }
    }

    #[test]
    fn a_document_that_is_refused_goes_as_text() {
        let mut error = ProviderError::new(
            ErrorKind::InvalidRequest,
            "messages.0.content.0.pdf.source.base64.data: A maximum of 100 PDF pages may be provided.",
        );
        error.status = Some(400);
        let amends = Amends::default();
        assert_eq!(amends.after(&error, &sent(1, false, false)), None);
        let with_documents = sent(1, true, false);
        let as_text = amends.after(&error, &with_documents).unwrap();
        assert!(as_text.no_documents);
        assert_eq!(as_text.after(&error, &with_documents), None);
    }

    #[test]
    fn a_form_that_is_refused_is_asked_for_in_words() {
        let message = "output_config.format.schema: `format` is not supported";
        let mut error = ProviderError::new(ErrorKind::InvalidRequest, message);
        let (amends, with_form) = (Amends::default(), sent(1, false, true));
        assert_eq!(amends.after(&error, &with_form), None);
        error.status = Some(400);
        assert_eq!(amends.after(&error, &sent(1, false, false)), None);
        let in_words = amends.after(&error, &with_form).unwrap();
        assert!(in_words.no_form);
        assert_eq!(in_words.after(&error, &with_form), None);
    }
}
