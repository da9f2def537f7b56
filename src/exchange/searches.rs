//! What the operator's settings say of a search of the web: how many there were, and whether its words are the user's.
//!
//! A query leaves this machine, and the model may have read anything before it writes one. A word counts as the
//! user's where a message of theirs in this conversation has it, or another form of it, and so do the common words
//! that searches are put together with.

use std::collections::HashSet;

use parking_lot::Mutex;

use crate::config::{AskSearch, WebSearchConfig};
use crate::hooks::is_of_hook;
use crate::message::{Message, Part, ToolId};
use crate::permission::decision::Search;

/// Words that say nothing by themselves.
const COMMON: &str = "a about after an and are as at be before best between by can changelog compare definition do docs \
    documentation does example examples for from guide how if in into is it latest list meaning new not \
    of official on or release site than that the to tutorial use using version vs what when where which \
    who why will with without you";

/// Letters that two forms of a word share at least: `install`, `installing`.
const STEM: usize = 4;

/// Letters that one form may have more than the other.
const ENDING: usize = 3;

/// The most words that are named to the user.
const NAMED: usize = 5;

/// The searches of one exchange, by their calls; as many as the limit at most.
#[derive(Debug, Default)]
pub(crate) struct Searches(Mutex<HashSet<ToolId>>);

impl Searches {
    pub(crate) fn restart(&self) {
        self.0.lock().clear();
    }

    /// Says what holds for a search, and counts it where it is a further one.
    pub(crate) fn judge(
        &self,
        call: &ToolId,
        query: &str,
        history: &[Message],
        config: &WebSearchConfig,
    ) -> Search {
        {
            let mut counted = self.0.lock();
            if !counted.contains(call) && counted.len() >= config.limit {
                return Search::Spent(config.limit);
            }
            counted.insert(call.clone());
        }
        match config.ask {
            AskSearch::Never => Search::Free,
            AskSearch::Always => Search::Asked(
                "every search of the web is asked for here (tools.web_search.ask)".to_owned(),
            ),
            AskSearch::NewWords => match new_words(query, history).as_slice() {
                [] => Search::Free,
                words => Search::Asked(format!(
                    "the search has words that you did not write in this conversation: {}",
                    named(words)
                )),
            },
        }
    }
}

/// Returns the words of a query that are not the user's, each once.
fn new_words(query: &str, history: &[Message]) -> Vec<String> {
    let texts = history.iter().filter_map(|message| match message {
        Message::User(parts) => Some(parts),
        Message::Reply(_) | Message::ToolResult(_) => None,
    });
    let texts = texts.flatten().filter_map(|part| match part {
        // What the operator's hooks said stands among the user's words, and is none of them.
        Part::Text { text } => Some(text.as_str()).filter(|text| !is_of_hook(text)),
        Part::Image { .. } | Part::Document(_) => None,
    });
    let users: HashSet<String> = texts.flat_map(words).collect();
    let mut new = Vec::new();
    for word in words(query) {
        let is_known = COMMON.split(' ').any(|common| common == word)
            || users.contains(&word)
            || users.iter().any(|user| is_form(&word, user));
        if !is_known && !new.contains(&word) {
            new.push(word);
        }
    }
    new
}

/// Returns the words of a text in lower case: runs of letters and digits, and each sign by itself where a script puts
/// no blanks between words.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in text.chars() {
        let is_sign = matches!(c, '\u{e00}'..='\u{eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
        if is_sign {
            words.push(c.to_string());
            words.push(String::new());
        } else if c.is_alphanumeric() {
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        } else {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether two words are the same but for an ending.
fn is_form(word: &str, other: &str) -> bool {
    let (short, long) = match word.len() <= other.len() {
        true => (word, other),
        false => (other, word),
    };
    let is_word = |text: &str| text.chars().all(char::is_alphabetic);
    let ending = long.strip_prefix(short);
    short.chars().count() >= STEM
        && is_word(long)
        && ending.is_some_and(|ending| ending.chars().count() <= ENDING)
}

fn named(words: &[String]) -> String {
    let shown: Vec<String> = words
        .iter()
        .take(NAMED)
        .map(|word| format!("`{word}`"))
        .collect();
    let rest = match words.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{rest}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn history(said: &[&str]) -> Vec<Message> {
        said.iter()
            .map(|text| Message::User(vec![Part::text(*text)]))
            .collect()
    }

    fn config(ask: AskSearch, limit: usize) -> WebSearchConfig {
        WebSearchConfig {
            enabled: true,
            searxng_url: None,
            engines: Vec::new(),
            brave_api_key: None,
            brave_url: String::new(),
            cache_ttl: Duration::ZERO,
            ask,
            limit,
        }
    }

    #[test]
    fn words_of_the_user_and_common_ones_are_known() {
        let history = history(&[
            "How do I install ripgrep on Ubuntu 24.04?",
            "Und in Köln? 北京的天气怎么样",
        ]);
        let cases: [(&str, &[&str]); 8] = [
            ("ripgrep ubuntu installation", &["installation"]),
            ("installing RIPGREP on Ubuntu 24.04 documentation", &[]),
            ("ripgrep debian", &["debian"]),
            ("köln", &[]),
            ("北京 天气", &[]),
            ("上海", &["上", "海"]),
            // Of a number every digit says something.
            ("ubuntu 240", &["240"]),
            ("hunter2 hunter2", &["hunter2"]),
        ];
        for (query, expected) in cases {
            assert_eq!(new_words(query, &history), expected, "{query}");
        }
        let others = [Message::Reply(crate::message::Reply {
            text: "debian".to_owned(),
            thinking: String::new(),
            calls: Vec::new(),
            native: None,
        })];
        assert_eq!(new_words("debian", &others), ["debian"]);
        // What hooks said there is nobody's who was asked.
        let noted = Message::User(vec![
            Part::text("noted"),
            Part::text("[note of the hook `words`: hush]"),
        ]);
        let held = Message::User(vec![Part::text(
            "[not done yet: the hook `x` refused: debian]",
        )]);
        assert_eq!(
            new_words("noted hush debian", &[noted, held]),
            ["hush", "debian"]
        );
    }

    #[test]
    fn the_setting_decides_and_names_the_words() {
        let history = history(&["weather in Berlin"]);
        let judge = |ask, query| {
            Searches::default().judge(&ToolId::new("t1"), query, &history, &config(ask, 1))
        };
        assert_eq!(judge(AskSearch::Never, "secret"), Search::Free);
        assert_eq!(judge(AskSearch::NewWords, "berlin weather"), Search::Free);
        assert!(matches!(
            judge(AskSearch::Always, "berlin"),
            Search::Asked(_)
        ));
        let Search::Asked(why) = judge(AskSearch::NewWords, "b c d e f g h") else {
            panic!("asked");
        };
        assert!(why.ends_with("`b`, `c`, `d`, `e`, `f` and 2 more"), "{why}");
    }

    #[test]
    fn each_call_counts_once_and_an_exchange_begins_anew() {
        let searches = Searches::default();
        let config = config(AskSearch::Never, 2);
        let judge = |id: &str| searches.judge(&ToolId::new(id), "x", &[], &config);
        // The third was asked about, edited and judged again.
        for (id, expected) in [
            ("t1", Search::Free),
            ("t1", Search::Free),
            ("t2", Search::Free),
            ("t3", Search::Spent(2)),
            ("t3", Search::Spent(2)),
        ] {
            assert_eq!(judge(id), expected, "{id}");
        }
        searches.restart();
        assert_eq!(judge("t4"), Search::Free);
    }
}
