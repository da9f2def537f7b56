//! What an approval of a line may be remembered by: everything that decides what the line does, or nothing.
//!
//! Words do not say what a program does that runs a file of the project, reads its settings for programs, or takes its
//! text from a redirection: approved today, it is something else tomorrow. Such programs cannot all be
//! listed, so the list is of those that are known *not* to be such; any other is asked for each time.

use super::expand::Arg;
use super::peel;
use super::table::{TABLE, has, is_option};
use super::types::{Redirect, Script, Stage};
use crate::DangerLevel;

/// What has to be the same for an approval to be the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remembered {
    /// The words of each command, in their order.
    pub commands: Vec<Vec<String>>,
    /// The line itself where it is more than one command's words: operators and what they join are part of it.
    pub line: Option<String>,
}

/// Returns what an approval of a line that is [`super::plain`] stands for; `None` where it stands for this one call.
pub(super) fn key(script: &Script, line: &str, level: DangerLevel) -> Option<Remembered> {
    if level >= DangerLevel::Dangerous || script.is_empty() {
        return None;
    }
    let stages: Vec<&Stage> = script.iter().flat_map(|it| &it.stages).collect();
    let commands = stages.iter().map(|stage| words(stage));
    let commands: Vec<Vec<String>> = commands.collect::<Option<_>>()?;
    let alone = matches!(stages.as_slice(), [stage] if stage.redirects.is_empty());
    Some(Remembered {
        commands,
        line: (!alone).then(|| line.trim().to_owned()),
    })
}

/// The command's words where they, and nothing else, say what it does.
fn words(stage: &Stage) -> Option<Vec<String>> {
    let mut redirects = stage.redirects.iter();
    let fed = redirects.any(|it| matches!(it, Redirect::Read(_)));
    let words: Option<Vec<String>> = stage.words.iter().map(|word| word.literal()).collect();
    words.filter(|words| !fed && runs_only_itself(words))
}

fn runs_only_itself(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    // A name with a directory is a file that somebody may exchange.
    if program.contains('/') || has(&TABLE.programs.unrememberable, program) {
        return false;
    }
    let args: Vec<Arg> = rest.iter().map(Arg::literal).collect();
    if TABLE.wrapper(program, &args).is_some()
        || TABLE.interpreters.contains_key(program)
        || !peel::peel(program, &args, &super::Feed::default()).is_empty()
    {
        return false;
    }
    if let Some(agnostic) = TABLE.safe.agnostic.get(program.as_str()) {
        let allowed = |word| !agnostic.except.iter().any(|it| is_option(word, it));
        return rest.iter().all(|word| allowed(word));
    }
    has(&TABLE.programs.changing, program) || (rest.is_empty() && has(&TABLE.safe.bare, program))
}

#[cfg(test)]
mod tests;
