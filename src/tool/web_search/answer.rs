//! What was found, in one shape whoever found it, and as the model reads it. Pure.

use serde::Serialize;
use serde_json::Value;

use crate::tool::foreign::{WARNING, line as clean};

/// The longest excerpt of one result, in characters.
const SNIPPET: usize = 500;

const TITLE: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) engine: &'static str,
    pub(super) results: Vec<Found>,
    pub(super) answers: Vec<String>,
    /// What went wrong besides, e.g. an engine behind it that did not answer.
    pub(super) warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Found {
    title: String,
    url: String,
    snippet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<String>,
    source: String,
}

impl Found {
    /// Cleans what an engine sent; `None` where there is no address.
    pub(super) fn new(
        title: &str,
        url: &str,
        snippet: &str,
        published: Option<&str>,
        source: &str,
    ) -> Option<Self> {
        let url = clean(url, usize::MAX);
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return None;
        }
        let title = clean(title, TITLE);
        Some(Self {
            title: if title.is_empty() { url.clone() } else { title },
            url,
            snippet: clean(snippet, SNIPPET),
            published: published.map(|date| clean(date, 40)),
            source: clean(source, 60),
        })
    }

    fn bytes(&self) -> usize {
        let texts = [&self.title, &self.url, &self.snippet, &self.source];
        let texts = texts.into_iter().chain(&self.published);
        texts.map(String::len).sum()
    }
}

impl Answer {
    pub(super) fn is_empty(&self) -> bool {
        self.results.is_empty() && self.answers.is_empty()
    }

    /// Returns how long its texts are.
    pub(super) fn bytes(&self) -> usize {
        let results = self.results.iter().map(Found::bytes);
        let texts = self.answers.iter().chain(&self.warnings).map(String::len);
        results.chain(texts).sum()
    }

    /// A numbered list of the first results, marked as other people's words.
    pub(super) fn text(&self, query: &str, shown: usize) -> String {
        use std::fmt::Write as _;

        let mut text = format!(
            "Web results for {query:?} from {}. {WARNING}\n",
            self.engine
        );
        // Writing to a string cannot fail.
        for answer in &self.answers {
            let _ = write!(text, "\nAnswer: {}\n", clean(answer, SNIPPET));
        }
        for (number, found) in self.results.iter().take(shown).enumerate() {
            let (number, Found { title, url, .. }) = (number + 1, found);
            let _ = write!(text, "\n{number}. {title}\n   {url}\n");
            if let Some(published) = &found.published {
                let _ = writeln!(text, "   {published}");
            }
            if !found.snippet.is_empty() {
                let _ = writeln!(text, "   {}", found.snippet);
            }
        }
        for warning in &self.warnings {
            let _ = write!(text, "\nNote: {warning}\n");
        }
        text
    }

    pub(super) fn data(&self, shown: usize) -> Value {
        let results: Vec<&Found> = self.results.iter().take(shown).collect();
        serde_json::to_value(results).unwrap_or_default()
    }
}
