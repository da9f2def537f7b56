//! Answers of the user that count for later calls: what one is for, how far it reaches, and whether it speaks for a call.
//! Pure.
//!
//! An approval speaks for what it was given for and nothing else. A denial speaks for more: a command wherever it stands in
//! a line, a tool whatever became of it. A denial goes before every approval, however far either reaches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::classifier::{SimpleCommand, Word};
use crate::message::{ConversationId, SessionId};

/// The most bytes of what an answer is for; what is longer is not remembered.
const MAX_KEY: usize = 4 * 1024;

/// The most characters that are kept of why something was denied.
const MAX_REASON: usize = 1_000;

/// How far an answer reaches.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Remember {
    /// This call.
    #[default]
    Once,
    /// The same again in this conversation.
    Conversation,
    /// The same again in this session.
    Session,
    /// The same again in this project, whichever session works in it.
    Project,
    /// The same again, wherever it is.
    Always,
}

impl Remember {
    /// Those that reach further than the call, the nearest first.
    pub const FURTHER: [Self; 4] = [
        Self::Conversation,
        Self::Session,
        Self::Project,
        Self::Always,
    ];
}

/// What an answer is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Key {
    /// Every call of a tool.
    Tool {
        /// Its name.
        tool: String,
        /// What it was when the user answered, for one that others define; another one is another tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
    /// The same commands of a tool.
    Commands {
        /// Its name.
        tool: String,
        /// The words of each command, in their order.
        commands: Vec<Vec<String>>,
        /// The line itself where it is more than one command's words: what joins them is part of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<String>,
    },
    /// Connections of commands to a host.
    Host {
        /// Its name or address.
        host: String,
    },
    /// One file, by the tools for files.
    File {
        /// Whether it is written; else it is read.
        writes: bool,
        /// Its absolute path, without links.
        path: String,
    },
    /// Writing files below a folder, by the tools for files.
    Folder {
        /// Its absolute path, without links.
        path: String,
    },
    /// Words of a file, told the model as the user's.
    Words {
        /// Its absolute path.
        path: String,
        /// The SHA-256 of its bytes: another content is another answer's.
        sha256: String,
    },
    /// What another version wrote, or what is damaged. As long as a denial is for this, everything is asked.
    #[serde(other)]
    Unreadable,
}

/// A file that a call names, where its path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Whether it is written; else it is read.
    pub writes: bool,
    /// The folder that tools may reach, in which it is: absolute.
    pub root: String,
    /// Whether that is the project's.
    pub in_project: bool,
    /// Its path below that, without links, `/` between components; `.` for the folder itself.
    pub relative: String,
}

/// What a call is recognised by.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// What an approval of it stands for; `None` where it stands for this call alone.
    pub approval: Option<&'a Key>,
    /// The simple commands it runs.
    pub commands: &'a [SimpleCommand],
    /// The file it names.
    pub file: Option<&'a File>,
}

/// Where an answer counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "scope", content = "of", rename_all = "camelCase")]
pub enum Place {
    /// In a conversation of the session it was given in.
    Conversation(ConversationId),
    /// In the session it was given in.
    Session,
    /// In every session that works in this folder.
    Project(String),
    /// In every session.
    Always,
}

impl Place {
    /// Returns how far that is.
    pub fn reach(&self) -> Remember {
        match self {
            Self::Conversation(_) => Remember::Conversation,
            Self::Session => Remember::Session,
            Self::Project(_) => Remember::Project,
            Self::Always => Remember::Always,
        }
    }
}

/// An answer that counts for later calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Its name, to revoke it by.
    pub id: String,
    /// What it is for.
    pub key: Key,
    /// Whether that runs; else it does not.
    pub allows: bool,
    /// Where it counts.
    pub place: Place,
    /// Why not, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The session it was given in.
    pub session: SessionId,
    /// When, in milliseconds since 1970.
    pub given_ms: i64,
}

impl Rule {
    /// Returns whether it speaks for a call; an approval only where it reaches no further than `most`, which is what the
    /// operator lets approvals do.
    fn speaks_for(&self, call: &Call<'_>, most: Remember) -> bool {
        match self.allows {
            true => self.place.reach() <= most && self.key.allows(call),
            false => self.key.denies(call),
        }
    }

    /// Returns the rule with no more of the reason than is kept.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let cut = |reason: String| reason.chars().take(MAX_REASON).collect();
        self.reason = self.reason.map(cut);
        self
    }
}

/// What was said before of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whether it runs.
    pub allows: bool,
    /// How far the answer reaches.
    pub reach: Remember,
    /// Why not, in the user's words.
    pub reason: Option<String>,
}

/// Returns what the rules say of a call: a denial where there is one, else an approval.
pub fn said<'a>(
    rules: impl IntoIterator<Item = &'a Rule>,
    call: &Call<'_>,
    most: Remember,
) -> Option<Said> {
    let mut approval = None;
    for rule in rules {
        if rule.speaks_for(call, most) {
            let said = Said {
                allows: rule.allows,
                reach: rule.place.reach(),
                reason: rule.reason.clone(),
            };
            if !said.allows {
                return Some(said);
            }
            approval.get_or_insert(said);
        }
    }
    approval
}

impl Key {
    /// Returns what every call of a tool is remembered by that nobody but this program defines.
    pub fn tool(name: impl Into<String>) -> Self {
        Self::Tool {
            tool: name.into(),
            version: None,
        }
    }

    /// Returns what a denial of a call stands for; `None` where it stands for this call alone.
    ///
    /// A tool that runs lines is not denied for one in which no command is found, as one that only writes a file or cannot be
    /// read: it is one whose approvals are for every call of it.
    pub fn denied(call: &Call<'_>) -> Option<Self> {
        let tool = call.tool.to_owned();
        Some(match (call.file, call.approval) {
            (_, Some(Self::Host { host })) => Self::Host { host: host.clone() },
            (Some(file), _) => Self::File {
                writes: file.writes,
                path: file.path(),
            },
            (None, _) if !call.commands.is_empty() => Self::Commands {
                tool,
                commands: distinct(call.commands),
                line: None,
            },
            (None, Some(Self::Tool { .. })) => Self::tool(tool),
            (None, _) => return None,
        })
    }

    /// Returns whether it is short enough to be kept.
    pub fn fits(&self) -> bool {
        let bytes = match self {
            Self::Tool { tool, version } => tool.len() + version.as_ref().map_or(0, String::len),
            Self::Commands {
                tool,
                commands,
                line,
            } => {
                // A word takes its quotes and its comma as well.
                let words = commands.iter().flatten().map(|word| word.len() + 3);
                tool.len() + words.sum::<usize>() + line.as_ref().map_or(0, String::len)
            }
            Self::Host { host } => host.len(),
            Self::File { path, .. } | Self::Folder { path } => path.len(),
            Self::Words { path, sha256 } => path.len() + sha256.len(),
            Self::Unreadable => 0,
        };
        bytes <= MAX_KEY
    }

    fn allows(&self, call: &Call<'_>) -> bool {
        // What is asked for each time is not covered by its folder either.
        let Some(own) = call.approval else {
            return false;
        };
        match self {
            Self::Folder { path } => call
                .file
                .is_some_and(|file| file.writes && is_below(&file.path(), path)),
            key => key == own,
        }
    }

    fn denies(&self, call: &Call<'_>) -> bool {
        match self {
            Self::Tool { tool, .. } => tool == call.tool,
            Self::Commands { tool, commands, .. } => {
                let runs =
                    |denied: &Vec<String>| call.commands.iter().any(|it| words(it) == *denied);
                tool == call.tool && !commands.is_empty() && commands.iter().all(runs)
            }
            Self::Host { .. } => call.approval == Some(self),
            // No call is for these.
            Self::Words { .. } | Self::Unreadable => false,
            // Where case says nothing, the other spelling is the same file.
            Self::File { writes, path } => call.file.is_some_and(|file| {
                file.writes == *writes && file.path().to_lowercase() == path.to_lowercase()
            }),
            Self::Folder { path } => call.file.is_some_and(|file| {
                file.writes && is_below(&file.path().to_lowercase(), &path.to_lowercase())
            }),
        }
    }

    /// Returns the tool that it is for; `None` where it is for several.
    pub fn of_tool(&self) -> Option<&str> {
        match self {
            Self::Tool { tool, .. } | Self::Commands { tool, .. } => Some(tool),
            Self::Host { .. }
            | Self::File { .. }
            | Self::Folder { .. }
            | Self::Words { .. }
            | Self::Unreadable => None,
        }
    }

    /// Says what it is for, for a person.
    pub fn in_words(&self) -> String {
        match self {
            Self::Tool {
                tool,
                version: None,
            } => format!("every call of {tool}"),
            Self::Tool { tool, .. } => format!("every call of {tool}, as it was then"),
            Self::Commands {
                tool,
                line: Some(line),
                ..
            } => format!("{tool}: {line}"),
            Self::Commands { tool, commands, .. } => {
                let commands: Vec<String> = commands.iter().map(|it| typed(it)).collect();
                format!("{tool}: {}", commands.join(" + "))
            }
            Self::Host { host } => format!("connections of commands to {host}"),
            Self::File { writes, path } => {
                let what = if *writes { "writing" } else { "reading" };
                format!("{what} {path}")
            }
            Self::Folder { path } => format!("writing files below {path}"),
            Self::Words { path, sha256 } => {
                let short = sha256.get(..12).unwrap_or(sha256);
                format!("the words of {path}, as they were then (SHA-256 {short}…)")
            }
            Self::Unreadable => "something that this version cannot read".to_owned(),
        }
    }
}

impl File {
    /// Returns its absolute path.
    pub fn path(&self) -> String {
        match self.relative.as_str() {
            "." | "" => self.root.clone(),
            relative => format!("{}/{relative}", self.root.trim_end_matches('/')),
        }
    }

    /// Returns the folders that hold it, the nearest first, each as it is named to the user and by its absolute path; none
    /// of a file that is read.
    pub fn folders(&self) -> Vec<(String, String)> {
        let mut folders = Vec::new();
        if !self.writes || matches!(self.relative.as_str(), "." | "") {
            return folders;
        }
        let mut relative = self.relative.as_str();
        loop {
            let above = relative.rsplit_once('/').map_or("", |(above, _)| above);
            let folder = Self {
                relative: above.to_owned(),
                ..self.clone()
            };
            let path = folder.path();
            let named = match (self.in_project, above) {
                (true, "") => ".".to_owned(),
                (true, above) => above.to_owned(),
                (false, _) => path.clone(),
            };
            // A name that is not text stands for others, too.
            if !path.contains(char::REPLACEMENT_CHARACTER) {
                folders.push((named, path));
            }
            if above.is_empty() {
                return folders;
            }
            relative = above;
        }
    }
}

/// Returns whether a path is below a folder; both absolute, without links.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.starts_with('/'))
        && !path.split('/').any(|part| matches!(part, "." | ".."))
}

fn words(command: &SimpleCommand) -> Vec<String> {
    let text = |word: &Word| match word {
        Word::Literal(text) | Word::Dynamic(text) => text.clone(),
    };
    command.iter().map(text).collect()
}

/// Returns the words of commands, each once.
fn distinct(commands: &[SimpleCommand]) -> Vec<Vec<String>> {
    let mut distinct = Vec::new();
    for words in commands.iter().map(words) {
        if !distinct.contains(&words) {
            distinct.push(words);
        }
    }
    distinct
}

/// Returns words as they would be typed.
fn typed(words: &[String]) -> String {
    let quoted = |word: &String| match word.is_empty() || word.contains(char::is_whitespace) {
        true => format!("'{word}'"),
        false => word.clone(),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
