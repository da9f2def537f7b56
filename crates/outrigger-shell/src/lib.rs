//! How much harm a bash command line may do, from a real reading of it; pure, no file is looked at.
//!
//! The verdict is advice for the user and for the policy. The sandbox is the boundary, and no level switches it off.
//!
//! Two readers see every line: `tree` reads all of bash with tree-sitter, `plain` the part that may be called safe.
//! `walk` goes through every command at every depth, `command` says what one command means, with
//! the tables of `table`; the worst finding is the level. A line without findings is safe only if
//! both readers agree on its words and `safe` proves that each command only reads.

#![forbid(unsafe_code)]

/// The examples of the README are run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod allowed;
mod ansi;
mod characters;
mod command;
mod expand;
mod flow;
mod functions;
mod git;
mod interpret;
mod names;
mod network;
mod parse;
mod paths;
mod pattern;
mod peel;
mod plain;
mod remember;
mod removal;
mod safe;
mod scope;
mod secrets;
mod stored;
mod system;
mod table;
mod tree;
mod types;
mod walk;
mod words;
mod writing;
mod written;

#[cfg(test)]
mod tests;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use self::characters::{is_hidden, is_invisible};
pub use self::pattern::{Denial, Pattern, PatternError};
pub use self::remember::Remembered;
pub use self::secrets::Secrets;

use self::flow::Feed;
use self::plain::Outside;
use self::scope::Scope;
use self::tree::{Fault, Reading};
use self::types::{Script, Token};
use self::walk::Walk;
use DangerLevel::{Blocked, Dangerous, Safe, Warning};

/// Longest line that may be called safe, in bytes.
const MAX_LENGTH: usize = 16 * 1024;

/// Longest line that is looked at, in bytes: Linux runs no `bash -c` with a longer one (`MAX_ARG_STRLEN`).
const MAX_READ: usize = 128 * 1024;

/// Most commands in a line that may be called safe.
const MAX_COMMANDS: usize = 64;

/// How much harm a call may do, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum DangerLevel {
    /// Reads only; proven, not guessed.
    Safe,
    /// Not proven harmless.
    Warning,
    /// May destroy, publish or run what nobody looked at.
    Dangerous,
    /// Refused at every trust level.
    Blocked,
}

/// What the classifier may know about the world; programs and files are looked up by functions, so that it stays pure.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The project's root, absolute; where the line would be run.
    pub project_root: &'a Path,
    /// The root of the central storage, absolute.
    pub central_root: &'a Path,
    /// The user's home, absolute, if there is one.
    pub home: Option<&'a Path>,
    /// Whether a bare program name resolves in the sanitised `PATH` to a trusted file: owned by root, outside the roots.
    pub trusted_program: &'a dyn Fn(&str) -> bool,
    /// Where nothing hides files for secrets from commands: whether reading this absolute path may show one, since it
    /// is a folder or leads elsewhere. `None` where they are hidden.
    pub unhidden: Option<&'a dyn Fn(&Path) -> bool>,
    /// Names of files that are secrets.
    pub secrets: &'a Secrets,
}

/// What is known about one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classification {
    /// The worst of the findings; [`DangerLevel::Safe`] where there are none.
    pub level: DangerLevel,
    /// Every simple command at every depth, those inside wrappers and shell strings included.
    pub commands: Vec<SimpleCommand>,
    /// Those of them that stand in the line themselves, in its order; none where it cannot be read to its end.
    pub written: Vec<SimpleCommand>,
    /// What was found, in the order of the line.
    pub findings: Vec<Finding>,
    /// Whether the line is nothing but commands, pipes and lists, so that `commands` is all of it:
    /// no assignment, here-document, redirection that writes or expansion that runs something.
    pub plain: bool,
    /// What an approval may be remembered by: the words and what joins them.
    ///
    /// `None` where these do not tell what runs, see `remember`; and for dangerous and blocked lines.
    pub remembered: Option<Remembered>,
}

/// The words of one command, its program first; never empty.
pub type SimpleCommand = Vec<Word>;

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Exactly what the program is given.
    Literal(String),
    /// The source text of a word that the shell expands.
    Dynamic(String),
}

/// One reason for a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The level that this alone would give.
    pub level: DangerLevel,
    /// A stable name of the rule, e.g. `protected-tree`.
    pub rule: &'static str,
    /// What triggered it; invisible and reordering characters are escaped.
    pub words: String,
    /// The reason for the user; reads after "it".
    pub reason: String,
}

impl Finding {
    fn new(level: DangerLevel, rule: &'static str, words: &str, reason: impl Into<String>) -> Self {
        Self {
            level,
            rule,
            words: characters::visible(words),
            reason: reason.into(),
        }
    }
}

impl Classification {
    /// Returns the same where nothing is proven to only read: a safe line is to be asked for.
    #[must_use]
    pub fn unproven(mut self) -> Self {
        if self.level == Safe {
            self.level = Warning;
            self.findings.push(Finding {
                level: Warning,
                rule: "unproven",
                words: String::new(),
                reason: "is not proven to only read on this system".to_owned(),
            });
        }
        self
    }

    /// Returns what is said of a line in a language that is not read here: it may do anything, and no answer is remembered.
    pub fn unread(language: &str) -> Self {
        Self {
            level: Dangerous,
            commands: Vec::new(),
            written: Vec::new(),
            findings: vec![Finding {
                level: Dangerous,
                rule: "unread",
                words: String::new(),
                reason: format!(
                    "is a line for {language}, which is not read here: it may do anything"
                ),
            }],
            plain: false,
            remembered: None,
        }
    }

    /// Returns the reasons for a confirmation, one line per finding, worst first.
    pub fn reasons(&self) -> Vec<String> {
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        let reasons = findings.iter().map(|it| match it.words.as_str() {
            "" => it.reason.clone(),
            words => format!("`{words}` {}", it.reason),
        });
        reasons.collect()
    }

    /// Whether one of the commands is this program.
    pub fn runs(&self, program: &str) -> bool {
        let mut programs = self.commands.iter().filter_map(|words| words.first());
        programs.any(|it| matches!(it, Word::Literal(name) if name == program))
    }
}

/// Classifies one line as `bash -c` would be given it.
///
/// Never panics; takes time in proportion to the line, which is refused beyond 128 KiB.
pub fn classify(line: &str, surroundings: &Surroundings<'_>) -> Classification {
    judge(line, surroundings, false)
}

/// `alone` is whether whoever runs the command adds what keeps git from showing secrets.
fn judge(line: &str, surroundings: &Surroundings<'_>, alone: bool) -> Classification {
    let mut walk = Walk::new(surroundings);
    if line.len() > MAX_READ {
        let reason = "is longer than any shell would accept";
        walk.find(Blocked, "limit-length", "", reason);
        return walk.finish(false);
    }
    if line.len() > MAX_LENGTH {
        let reason = format!("is longer than {MAX_LENGTH} bytes");
        walk.find(Warning, "limit-length", "", reason);
    }
    if let Some(c) = line.chars().find(|c| is_invisible(*c)) {
        let reason = format!("holds a character that cannot be seen (U+{:04X})", c as u32);
        walk.find(Warning, "deceptive-text", line, reason);
    }
    let plain = plain::read(line);
    let readings = tree::readings(line);
    let fault = readings.iter().filter_map(|reading| reading.fault).max();
    let mut agreed = false;
    if let Ok(script) = &plain {
        let words = plain_words(script);
        let agrees = |it: &Reading| it.fault.is_none() && plain_words(&it.script) == words;
        agreed = readings.iter().any(agrees);
        walk.script(script, &mut Scope::new(surroundings), &Feed::default());
    }
    if !agreed {
        let mut scope = Scope::new(surroundings);
        walk.readings(line, &readings, &mut scope, &Feed::default());
        faults(line, &plain, fault, &mut walk);
    }
    if walk.commands.len() > MAX_COMMANDS {
        let reason = format!("has more than {MAX_COMMANDS} commands");
        walk.find(Warning, "limit-commands", "", reason);
    }
    walk.conclude();
    if walk.findings.is_empty() {
        proof(&plain, agreed, alone, &mut walk);
    }
    let mut verdict = walk.finish(plain.is_ok());
    let read = readings.iter().find(|reading| reading.fault.is_none());
    let script = plain.as_ref().ok().or(read.map(|reading| &reading.script));
    verdict.written = script.map(written::of).unwrap_or_default();
    let key = |script| remember::key(&script, line, verdict.level);
    verdict.remembered = plain.ok().and_then(key);
    verdict
}

/// Classifies one command that is run with exactly these words, without a shell.
///
/// It is judged as the line in which each word is quoted, so that there is one judgement for both. Only of git more counts
/// as safe (`git_alone` in `tables/safe.toml`): the caller refuses files for secrets and excludes them from what it shows.
pub fn classify_words(words: &[&str], surroundings: &Surroundings<'_>) -> Classification {
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    judge(&quoted.join(" "), surroundings, true)
}

/// The word as bash reads it back, character by character; a plain one as it is.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Tells that the line cannot be read, or not to its end.
fn faults(line: &str, plain: &Result<Script, Outside>, fault: Option<Fault>, walk: &mut Walk<'_>) {
    let unread = |what: &str| format!("cannot be read: it has {what}");
    match (fault, plain) {
        (Some(Fault::TooLong), _) => {
            // What it does is not known, not even in part.
            let reason = "takes too many steps to be read";
            walk.find(Dangerous, "limit-steps", "", reason);
        }
        (Some(Fault::TooDeep), _) => {
            walk.find(Warning, "limit-nesting", line, "is nested too deeply");
        }
        // Bash cannot read it either.
        (_, Err(Outside::Syntax(what))) => walk.find(Warning, "syntax", line, unread(what)),
        // Bash may, for the grammar does not know all of it: `echo $(( rm x; ls ) )` runs both.
        (Some(Fault::Syntax), _) => {
            walk.find(Dangerous, "syntax", line, unread("a syntax error"));
        }
        (None, _) => {}
    }
}

fn proof(plain: &Result<Script, Outside>, agreed: bool, alone: bool, walk: &mut Walk<'_>) {
    match plain {
        Err(Outside::Construct(what) | Outside::Syntax(what)) => {
            let reason = format!("has {what}, so its effect is not proven");
            walk.find(Warning, "grammar", "", reason);
        }
        Ok(_) if !agreed => {
            let reason = "can be read in more than one way";
            walk.find(Warning, "readers-disagree", "", reason);
        }
        Ok(script) => {
            let unproven = safe::prove(script, walk.surroundings, alone).err();
            walk.findings.extend(unproven);
        }
    }
}

/// Returns the words of each command; `None` where there is more than plain commands.
fn plain_words(script: &Script) -> Option<Vec<Vec<Word>>> {
    let stages = script.iter().flat_map(|statement| &statement.stages);
    let words = stages.map(|stage| {
        let plain = stage.assignments.is_empty() && stage.compound.is_none();
        plain.then(|| stage.words.iter().map(Token::word).collect())
    });
    words.collect()
}
