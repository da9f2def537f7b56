//! The text of a page by its tags alone, without a tree of them: for pages that are too deep or too large for one. Pure.

use std::cell::{Cell, RefCell};

use html5ever::TokenizerResult;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Tags within a line; any other one begins a new line.
const INLINE: [&str; 24] = [
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "em", "font", "i", "kbd", "mark", "q",
    "s", "samp", "small", "span", "strong", "sub", "sup", "tt", "u", "var",
];

/// What a page says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plain {
    pub(super) title: String,
    pub(super) text: String,
}

/// Returns the text of a page.
pub(super) fn read(html: &str) -> Plain {
    let tokenizer = Tokenizer::new(Text::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // It stops where a script would run.
    while let TokenizerResult::Script(()) = tokenizer.feed(&input) {}
    tokenizer.end();
    let Text { title, text, .. } = tokenizer.sink;
    Plain {
        title: title.into_inner(),
        text: text.into_inner(),
    }
}

/// Where text is that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Body,
    Title,
    /// Where nothing is meant to be read.
    Script,
}

#[derive(Default)]
struct Text {
    title: RefCell<String>,
    text: RefCell<String>,
    place: Cell<Place>,
}

impl TokenSink for Text {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => return self.tag(&tag),
            Token::CharacterTokens(text) => match self.place.get() {
                Place::Body => self.text.borrow_mut().push_str(&text),
                Place::Title => self.title.borrow_mut().push_str(&text),
                Place::Script => {}
            },
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Text {
    fn tag(&self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        if tag.kind == TagKind::EndTag {
            self.place.set(Place::Body);
        }
        if !INLINE.contains(&name) {
            self.text.borrow_mut().push('\n');
        }
        if tag.kind == TagKind::EndTag {
            return TokenSinkResult::Continue;
        }
        let (place, kind) = match name {
            "title" => (Place::Title, RawKind::Rcdata),
            "textarea" => (Place::Body, RawKind::Rcdata),
            "script" => (Place::Script, RawKind::ScriptData),
            "style" | "iframe" | "noembed" | "noframes" => (Place::Script, RawKind::Rawtext),
            "xmp" => (Place::Body, RawKind::Rawtext),
            _ => return TokenSinkResult::Continue,
        };
        self.place.set(place);
        TokenSinkResult::RawData(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_is_between_tags() {
        let text = |html: &str| {
            let plain = read(html);
            (plain.title, crate::tool::foreign::lines(&plain.text, 0))
        };
        for (html, title, expected) in [
            ("<title>a &amp; b</title><p>c<b>d</b><p>e", "a & b", "cd\ne"),
            (
                "<script>if (a < b) '<p>no'</script>yes<style>no</style>",
                "",
                "yes",
            ),
            ("<script>no", "", ""),
            ("<textarea><p>a</textarea>b", "", "<p>a\nb"),
            ("a<!-- no -->b<!DOCTYPE no>c", "", "abc"),
            ("a</div></div>b", "", "a\nb"),
            ("<p", "", ""),
            ("a < b", "", "a < b"),
        ] {
            assert_eq!(
                text(html),
                (title.to_owned(), expected.to_owned()),
                "{html}"
            );
        }
    }
}
