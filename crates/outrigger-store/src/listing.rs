//! A list of sessions: what is asked for, and a page of it.

use std::fmt;

/// Which sessions are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Words that were said in it or are in its name; each has to be there, the last one, from three letters on,
    /// perhaps as a beginning. All
    /// sessions where it is empty, none where it has no word.
    pub query: Option<String>,
    /// Only those that work in this folder.
    pub project: Option<String>,
    /// Those that are put away, instead of the others.
    pub archived: bool,
    /// Only those that have each of these labels.
    pub labels: Vec<String>,
    /// At most so many; 1 at least.
    pub limit: usize,
    /// What an earlier page said comes next.
    pub cursor: Option<Cursor>,
}

/// A page of sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The sessions.
    pub sessions: Vec<Listed>,
    /// What to ask for the next page with; `None` where there is none.
    pub next: Option<Cursor>,
}

/// A place in a list of sessions. It is shown as clients have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) updated_ms: i64,
    pub(crate) key: i64,
}

impl Cursor {
    /// Reads what a client gives back; `None` where it is none.
    pub fn read(text: &str) -> Option<Self> {
        let (updated_ms, key) = text.split_once('-')?;
        Some(Self {
            updated_ms: updated_ms.parse().ok()?,
            key: key.parse().ok()?,
        })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.updated_ms, self.key)
    }
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its name.
    pub title: Option<String>,
    /// The folder it works in.
    pub project: Option<String>,
    /// When it was made.
    pub created_ms: i64,
    /// When it changed last.
    pub updated_ms: i64,
    /// When it was put away.
    pub archived_ms: Option<i64>,
    /// Its labels, sorted.
    pub labels: Vec<String>,
    /// How many messages it has.
    pub messages: u64,
    /// Where the words stand that were looked for.
    pub snippet: Option<Snippet>,
}

/// A message that has the words that were looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Snippet {
    /// Its conversation.
    pub conversation: String,
    /// Its place there.
    pub place: u64,
    /// Its body, as its owner wrote it.
    pub text: String,
}
