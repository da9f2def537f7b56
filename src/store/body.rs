//! A message as the store has it: what it says, the words by which it is found, and what it has attached.
//!
//! Pictures and long texts are attached, by their hash, so that each is kept once. The rest is the message as clients get
//! it, in which what the provider demands back is byte for byte what it was.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_store::{Attachment, Body, Hash};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::message::{Message, Part};
use crate::protocol::content::{Content, WireMessage};
use crate::runtime::block_in_place;

/// From how many bytes on a part is attached.
const ATTACHED: usize = 16 * 1024;

/// How much of a message is found by its words, in bytes: more than people and models say at once.
const WORDS: usize = 64 * 1024;

/// From how many bytes on a message blocks the thread in place while it is made ready to be written.
const LARGE: usize = 256 * 1024;

/// The longest name that a session gets from its first words, in characters.
const TITLE: usize = 80;

/// A message without what it has attached.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) message: WireMessage,
    /// The parts whose text or data is attached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) attached: Vec<Place>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Place {
    /// Counts the texts that may be attached: parts, as long as none of them is a document.
    pub(super) part: usize,
    pub(super) hash: String,
    /// Whether it is kept as bytes and stands in the message as base64.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    base64: bool,
}

/// Returns a message as the store has it. A large one, with pictures, takes a while: other tasks run on meanwhile.
pub(super) fn of(message: &Message) -> Body {
    let parts = match message {
        Message::User(parts) => parts.as_slice(),
        Message::ToolResult(result) => result.content.as_slice(),
        Message::Reply(_) => &[],
    };
    let sizes = parts.iter().map(|part| match part {
        Part::Text { text } => text.len(),
        Part::Image { data, .. } => data.len(),
        Part::Document(document) => document.bytes(),
    });
    match sizes.sum::<usize>() {
        LARGE.. => block_in_place(|| written(message)),
        _ => written(message),
    }
}

/// Returns the first words of a message, as a name; `None` where it has no words.
pub(super) fn title(parts: &[Part]) -> Option<String> {
    let words = parts.iter().find_map(|part| match part {
        Part::Text { text } => title_of(text),
        Part::Image { .. } | Part::Document(_) => None,
    });
    // Of a document that was sent without a word, its name.
    words.or_else(|| {
        parts.iter().find_map(|part| match part {
            Part::Document(document) => document.name.as_deref().and_then(title_of),
            Part::Text { .. } | Part::Image { .. } => None,
        })
    })
}

pub(super) fn title_of(text: &str) -> Option<String> {
    let mut lines = text.lines().map(str::trim);
    let text = lines.find(|line| !line.is_empty())?;
    if text.chars().count() <= TITLE {
        return Some(text.to_owned());
    }
    let cut: String = text.chars().take(TITLE).collect();
    // At the end of a word, where there is one.
    let whole = cut.rsplit_once(char::is_whitespace).map(|(whole, _)| whole);
    Some(format!("{}…", whole.unwrap_or(&cut).trim_end()))
}

fn written(message: &Message) -> Body {
    let mut words = words(message);
    words.truncate(words.floor_char_boundary(WORDS));
    words.shrink_to_fit();
    let (kept, attachments) = split(message);
    Body {
        text: super::json(&kept),
        words,
        attachments,
    }
}

/// Returns a message without what it has attached, and that.
pub(super) fn split(message: &Message) -> (Kept, Vec<Attachment>) {
    let mut message = WireMessage::from(message);
    let (mut attached, mut attachments) = (Vec::new(), Vec::new());
    for (part, text) in parts(&mut message.content).enumerate() {
        if text.text.len() < ATTACHED {
            continue;
        }
        let taken = std::mem::take(text.text);
        // What is no base64 as we write it comes back as it was.
        let bytes = text
            .is_base64
            .then(|| STANDARD.decode(&taken).ok())
            .flatten();
        let bytes = bytes.filter(|bytes| STANDARD.encode(bytes) == taken);
        let base64 = bytes.is_some();
        let bytes = bytes.unwrap_or_else(|| taken.into_bytes());
        let hash: Hash = Sha256::digest(&bytes).into();
        attached.push(Place {
            part,
            hash: data_encoding::HEXLOWER.encode(&hash),
            base64,
        });
        attachments.push(Attachment { hash, bytes });
    }
    (Kept { message, attached }, attachments)
}

/// Returns the message that a body says. An error says what is wrong with it.
pub(super) fn message(body: &Body) -> Result<WireMessage, String> {
    kept(&body.text)?.whole(&body.attachments)
}

/// Reads a message without what it has attached. An error says what is wrong with it.
pub(super) fn kept(text: &str) -> Result<Kept, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    // A call's input may be as deep as a frame may be, and here it lies deeper by what is around it.
    json.disable_recursion_limit();
    Kept::deserialize(&mut json).map_err(|error| error.to_string())
}

impl Kept {
    /// Returns the message with what it has attached. An error says what is wrong with it.
    pub(super) fn whole(self, attachments: &[Attachment]) -> Result<WireMessage, String> {
        let mut message = self.message;
        let mut parts: Vec<_> = parts(&mut message.content).collect();
        for place in self.attached {
            let hash = data_encoding::HEXLOWER.decode(place.hash.as_bytes());
            let hash = hash.map_err(|error| error.to_string())?;
            let found = attachments.iter().find(|it| it.hash[..] == hash[..]);
            let found = found.ok_or_else(|| format!("attachment {} is missing", place.hash))?;
            let part = parts.get_mut(place.part);
            let part = part.ok_or_else(|| format!("there is no part {}", place.part))?;
            *part.text = match place.base64 {
                true => STANDARD.encode(&found.bytes),
                false => {
                    String::from_utf8(found.bytes.clone()).map_err(|error| error.to_string())?
                }
            };
        }
        drop(parts);
        Ok(message)
    }
}

/// Returns what a body says, as far as it is not attached.
pub(super) fn words_of(body: &str) -> String {
    let kept = serde_json::from_str::<Kept>(body);
    let message = kept.map(|kept| Message::from(kept.message));
    message.map(|message| words(&message)).unwrap_or_default()
}

/// A text that may be attached. A document has up to two, its bytes and its text; each other part has one.
struct Text<'a> {
    text: &'a mut String,
    is_base64: bool,
}

fn parts(content: &mut Content) -> impl Iterator<Item = Text<'_>> {
    let (one, many) = match content {
        Content::Text(text) => (Some(text), None),
        Content::Parts(parts) => (None, Some(parts)),
    };
    let one = one.into_iter().map(|text| Text {
        text,
        is_base64: false,
    });
    let of = |text, is_base64| Some(Text { text, is_base64 });
    let many = many.into_iter().flatten().flat_map(move |part| {
        let texts = match part {
            Part::Text { text } => [of(text, false), None],
            Part::Image { data, .. } => [of(data, true), None],
            Part::Document(document) => [
                document.data.as_mut().and_then(|data| of(data, true)),
                document.text.as_mut().and_then(|text| of(text, false)),
            ],
        };
        texts.into_iter().flatten()
    });
    one.chain(many)
}

/// Returns what a user looks for: what was said, not what tools returned, which may be anything.
fn words(message: &Message) -> String {
    match message {
        Message::User(parts) => {
            let texts = parts.iter().filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Document(document) => document.name.as_deref(),
                Part::Image { .. } => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Message::Reply(reply) => reply.text.clone(),
        Message::ToolResult(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Document, NativeReply, PDF, Reply, ToolCall, ToolId, ToolResult};
    use serde_json::{Map, json};

    fn there_and_back(message: &Message) -> Message {
        Message::from(super::message(&of(message)).unwrap())
    }

    #[test]
    fn every_message_comes_back_as_it_was() {
        let input = json!({"b": 0.1, "a": [1.7976931348623157e308, 9007199254740993_u64, 5e-324]});
        let native =
            json!([{"type": "thinking", "signature": "Eq+/=", "z": 1, "a": 0.30000000000000004}]);
        let call = ToolCall {
            id: ToolId::new("t1"),
            name: "bash".to_owned(),
            input: input.as_object().unwrap().clone(),
            provider_call_id: Some("toolu_1".to_owned()),
        };
        let image = Part::Image {
            media_type: "image/png".to_owned(),
            data: STANDARD.encode(vec![7; 40_000]),
        };
        let document = |bytes: usize, letters: usize| {
            Part::Document(Document {
                media_type: PDF.to_owned(),
                data: Some(STANDARD.encode(vec![8; bytes])),
                text: Some("d".repeat(letters)),
                name: Some("a.pdf".to_owned()),
                pages: Some(2),
            })
        };
        let result = |content| {
            Message::ToolResult(ToolResult {
                id: ToolId::new("t1"),
                name: "bash".to_owned(),
                content,
                is_error: true,
            })
        };
        for message in [
            Message::User(vec![Part::text("hi")]),
            Message::User(vec![Part::text("look"), image.clone()]),
            Message::User(vec![
                document(40_000, 40_000),
                image.clone(),
                document(10, 40_000),
            ]),
            Message::User(vec![document(40_000, 0), Part::text("z".repeat(ATTACHED))]),
            Message::User(vec![Part::text("x".repeat(ATTACHED))]),
            Message::Reply(Reply {
                text: "y".repeat(ATTACHED * 2),
                thinking: "hm".to_owned(),
                calls: vec![call],
                native: Some(NativeReply {
                    wire: "anthropic-messages".to_owned(),
                    provider: "p".to_owned(),
                    model: "m".to_owned(),
                    items: native,
                }),
            }),
            result(vec![Part::text("out")]),
            result(vec![
                Part::text("a"),
                image,
                Part::text("b".repeat(ATTACHED)),
            ]),
            // No base64 as we write it.
            Message::User(vec![Part::Image {
                media_type: "image/png".to_owned(),
                data: format!("{}\n", STANDARD.encode(vec![7; 40_000])),
            }]),
        ] {
            assert_eq!(there_and_back(&message), message);
        }
    }

    #[test]
    fn an_input_may_be_deep() {
        let mut deep = json!(1);
        for _ in 0..200 {
            deep = json!([deep]);
        }
        let reply = Message::Reply(Reply {
            calls: vec![ToolCall {
                id: ToolId::new("t1"),
                name: "x".to_owned(),
                input: Map::from_iter([("deep".to_owned(), deep)]),
                provider_call_id: None,
            }],
            ..Reply::default()
        });
        assert_eq!(there_and_back(&reply), reply);
    }

    #[test]
    fn what_is_said_twice_is_attached_under_one_hash() {
        let long = |prefix: &str| {
            of(&Message::User(vec![
                Part::text(prefix),
                Part::text("z".repeat(ATTACHED)),
            ]))
        };
        let (one, other) = (long("a"), long("b"));
        assert_eq!(one.attachments, other.attachments);
        assert!(one.text.len() < 500 && one.words.contains("zzz"));
    }

    #[test]
    fn a_title_is_the_first_words() {
        let titled = |text: &str| title(&[Part::text(text)]);
        assert_eq!(titled("\n  Fix it  \nplease"), Some("Fix it".to_owned()));
        assert_eq!(titled(" \n\t"), None);
        let document = Part::Document(Document {
            name: Some("a.pdf".to_owned()),
            ..Document::default()
        });
        assert_eq!(
            title(std::slice::from_ref(&document)),
            Some("a.pdf".to_owned())
        );
        assert_eq!(
            title(&[document, Part::text("Read it")]),
            Some("Read it".to_owned())
        );
        let long = titled(&"word ".repeat(40)).unwrap();
        assert!(
            long.ends_with("word…") && long.chars().count() <= TITLE + 1,
            "{long}"
        );
        let one = titled(&"ü".repeat(200)).unwrap();
        assert_eq!(one.chars().count(), TITLE + 1);
    }
}
