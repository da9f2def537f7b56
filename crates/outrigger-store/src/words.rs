//! How words are indexed and asked for.
//!
//! SQLite's FTS5 takes a run of letters for one word. Chinese and Japanese have no spaces, so each of their characters is a word
//! of its own here; what is asked for is found where they follow one another.

use std::borrow::Cow;
use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

use crate::User;

/// The most words of a query that count.
const MAX_WORDS: usize = 32;

/// The most characters of them that count. A run of Chinese has no words to be counted by, and each of its characters is
/// looked up: without this bound a query of 3 MB took 41 s and 6 GB.
const MAX_CHARACTERS: usize = 256;

/// From how many letters on the last word of a query may be a beginning.
const SHORTEST_BEGINNING: usize = 3;

/// Returns a text as it is indexed.
pub(crate) fn indexed(text: &str) -> Cow<'_, str> {
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

/// Returns what a user says as it is indexed.
pub(crate) fn indexed_of<'t>(user: &User, text: &'t str) -> Cow<'t, str> {
    let text = indexed(text);
    match of_user(user) {
        Some(user) => Cow::Owned(format!("{text} {user}")),
        None => text,
    }
}

/// Returns the word that stands in the index beside what a user says, so that what others say is not looked through; none
/// for the one without a name. It keeps nobody out: whoever says it is found no further.
pub(crate) fn of_user(user: &User) -> Option<String> {
    let name = user.as_str();
    let digits = name.bytes().map(|byte| format!("{byte:02x}"));
    (!name.is_empty()).then(|| format!("outriggeruser{}", digits.collect::<String>()))
}

/// Returns the words of a query, without any operator.
pub(crate) fn of_query(query: &str) -> Vec<String> {
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
pub(crate) fn expressions(words: &[String]) -> Vec<String> {
    let quoted = words.iter().map(|word| format!("\"{}\"", indexed(word)));
    let quoted = quoted.collect::<Vec<_>>().join(" ");
    let last = words.last().map_or(0, |word| word.chars().count());
    let beginning = (last >= SHORTEST_BEGINNING).then(|| format!("{quoted}*"));
    [quoted].into_iter().chain(beginning).collect()
}

/// The most bytes of all words of a text in PostgreSQL's index, which has a bound of 1 MiB for them, and the most characters
/// of one. What a text says beyond that is not found there.
const MAX_INDEXED: usize = 900 * 1024;
const MAX_WORD: usize = MAX_CHARACTERS;

/// Returns the words of a text for PostgreSQL, whose index has places for the first 16,383 words only: so it is given none,
/// and of scripts without spaces each two characters that follow one another are a word, beside each one.
pub(crate) fn lexemes(text: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut bytes = 0;
    let text = folded(text);
    for word in runs(&text) {
        let parts = match word.starts_with(stands_alone) {
            true => singles(word).chain(pairs(word)).collect(),
            false => vec![cut(word).to_owned()],
        };
        for part in parts {
            if found.contains(&part) {
                continue;
            }
            bytes += part.len();
            if bytes > MAX_INDEXED {
                return found.into_iter().collect();
            }
            found.insert(part);
        }
    }
    found.into_iter().collect()
}

/// Returns queries of PostgreSQL, to be asked one after the other as those of [`expressions`] are.
pub(crate) fn queries(words: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for word in words {
        let word = folded(word);
        for run in runs(&word) {
            match run.starts_with(stands_alone) {
                true if run.chars().nth(1).is_some() => all.extend(pairs(run)),
                true => all.push(run.to_owned()),
                false => all.push(cut(run).to_owned()),
            }
        }
    }
    // What is no letter is gone: nothing has to be escaped.
    let quoted: Vec<String> = all.iter().map(|word| format!("'{word}'")).collect();
    let quoted = quoted.join(" & ");
    if quoted.is_empty() {
        return Vec::new();
    }
    let last = words.last().map_or(0, |word| word.chars().count());
    let beginning = (last >= SHORTEST_BEGINNING).then(|| format!("{quoted}:*"));
    [quoted].into_iter().chain(beginning).collect()
}

/// Returns a text in small letters, without what stands above and below them.
fn folded(text: &str) -> String {
    let apart = text.nfd().filter(|it| !matches!(it, '\u{300}'..='\u{36F}'));
    apart.nfc().collect::<String>().to_lowercase()
}

/// Returns the runs of letters, and those of characters that stand alone.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).flat_map(|word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let end = rest.find(|c| stands_alone(c) != stands_alone(first));
            let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            Some(run)
        })
    })
}

fn singles(run: &str) -> impl Iterator<Item = String> {
    run.chars().map(String::from)
}

fn pairs(run: &str) -> impl Iterator<Item = String> {
    let after = run.chars().skip(1);
    run.chars().zip(after).map(|(a, b)| [a, b].iter().collect())
}

fn cut(word: &str) -> &str {
    let end = word.char_indices().nth(MAX_WORD);
    end.map_or(word, |(at, _)| word.split_at(at).0)
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
    fn words_are_the_same_however_they_are_written() {
        for (text, expected) in [
            ("The CAFÉ, the café", vec!["cafe", "the"]),
            ("a東京タb", vec!["a", "b", "タ", "京", "京タ", "東", "東京"]),
            ("'; DROP \\", vec!["drop"]),
            ("", vec![]),
        ] {
            assert_eq!(lexemes(text), expected, "{text}");
        }
        for (query, expected) in [
            ("a cat", vec!["'a' & 'cat'", "'a' & 'cat':*"]),
            ("Müßte 東京", vec!["'mußte' & '東京'"]),
            ("東", vec!["'東'"]),
            ("a' | 'b", vec!["'a' & 'b'"]),
        ] {
            assert_eq!(queries(&of_query(query)), expected, "{query}");
        }
        let long = lexemes(&"x".repeat(1_000_000));
        assert_eq!(long, ["x".repeat(MAX_WORD)]);
        let many: String = (0..1_000_000).map(|it| format!("{it} ")).collect();
        let bytes: usize = lexemes(&many).iter().map(String::len).sum();
        assert!(bytes <= MAX_INDEXED && bytes > MAX_INDEXED - 10);
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
