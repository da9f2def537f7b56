//! How words are indexed and asked for.
//!
//! FTS5 takes a run of letters for one word. Chinese and Japanese have no spaces, so each of their characters is a word
//! of its own here; what is asked for is found where they follow one another.

use std::borrow::Cow;

/// The most words of a query that count.
const MAX_WORDS: usize = 32;

/// The most characters of them that count. A run of Chinese has no words to be counted by, and each of its characters is
/// looked up: without this bound a query of 3 MB took 41 s and 6 GB.
const MAX_CHARACTERS: usize = 256;

/// From how many letters on the last word of a query may be a beginning.
const SHORTEST_BEGINNING: usize = 3;

/// Returns a text as it is indexed.
pub(super) fn indexed(text: &str) -> Cow<'_, str> {
    if !text.contains(stands_alone) {
        return Cow::Borrowed(text);
    }
    let mut spaced = String::with_capacity(text.len() * 2);
    for character in text.chars() {
        if stands_alone(character) {
            spaced.extend([' ', character, ' ']);
        } else {
            spaced.push(character);
        }
    }
    Cow::Owned(spaced)
}

/// Returns the words of a query, without any operator.
pub(super) fn of_query(query: &str) -> Vec<String> {
    let words = query.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    let mut room = MAX_CHARACTERS;
    let cut = words.map(|word| {
        let end = word
            .char_indices()
            .nth(room)
            .map_or(word.len(), |(at, _)| at);
        let word = word.get(..end).unwrap_or_default();
        room -= word.chars().count();
        word.to_lowercase()
    });
    cut.take(MAX_WORDS)
        .take_while(|word| !word.is_empty())
        .collect()
}

/// Returns expressions of FTS5, to be asked for one after the other while there is room: each word quoted, then the last one
/// as a beginning. Not of few letters, and last: all that begins with them is gathered first, which takes as long as there
/// are messages that have it (40 ms of 400,000).
pub(super) fn expressions(words: &[String]) -> Vec<String> {
    let quoted = words.iter().map(|word| format!("\"{}\"", indexed(word)));
    let quoted = quoted.collect::<Vec<_>>().join(" ");
    let last = words.last().map_or(0, |word| word.chars().count());
    let beginning = (last >= SHORTEST_BEGINNING).then(|| format!("{quoted}*"));
    [quoted].into_iter().chain(beginning).collect()
}

/// Returns whether a character belongs to a script without spaces: kana and Han, with their extensions.
fn stands_alone(character: char) -> bool {
    matches!(character,
        '\u{3040}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_without_spaces_are_words() {
        for (text, expected) in [
            ("two words", "two words"),
            ("in 東京 now", "in  東  京  now"),
            ("", ""),
        ] {
            assert_eq!(indexed(text), expected);
        }
    }

    #[test]
    fn a_query_has_no_operators() {
        for (query, expected) in [
            ("one Two", vec!["\"one\" \"two\"", "\"one\" \"two\"*"]),
            ("a\" OR b*", vec!["\"a\" \"or\" \"b\""]),
            ("東京", vec!["\" 東  京 \""]),
        ] {
            assert_eq!(expressions(&of_query(query)), expected);
        }
        assert!(of_query("\"*^-").is_empty());
    }

    #[test]
    fn of_a_long_query_the_beginning_counts() {
        let one = of_query(&"東".repeat(1_000_000));
        assert_eq!(one, ["東".repeat(MAX_CHARACTERS)]);
        assert_eq!(of_query(&"a ".repeat(1_000_000)), ["a"; MAX_WORDS]);
        let (long, rest) = ("b".repeat(MAX_CHARACTERS - 1), "cd");
        assert_eq!(of_query(&format!("{long} {rest} e")), [&*long, "c"]);
    }
}
