//! `git`: runs git without a shell, with what a repository's configuration may make it run switched off.
//!
//! How much harm a call may do is the classifier's judgement of its words, which `arguments` checks. What free names in a
//! repository's configuration still make git run (filters) is confined by the sandbox, and asked for: no call counts as
//! safe where the configuration has such names, or where the sandbox does not keep files apart; nor does a line of bash,
//! to which no option can be added, where there are more of them.

mod arguments;
pub(super) mod settings;
mod shown;
mod words;

use schemars::JsonSchema;
use serde::Deserialize;

use self::arguments::Arguments;
use super::program::{Commands, Effect, ProgramCall, unsafe_git};
use super::typed::Typed;
use super::{Refusal, Tool};
use crate::classifier::classify_words;
use crate::message::{DangerLevel, ToolCategory};
use crate::sandbox::Mode;
use crate::sandbox::environment::git_alone;
use crate::sandbox::paths::RootName;

/// Runs git in the project's folder, without a shell: `args` are the words after `git`, for example
/// ["log", "--oneline", "-5"]. The tool to change a repository with; its settings (`config`, `remote add`) and hooks
/// stay as they are. Commands that only read run at once. No hook, pager, editor, alias or external program runs; use
/// `bash` where one is wanted. Files for passwords and keys are left out of what is shown.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The words after `git`, the subcommand first.
    args: Vec<String>,
    /// Seconds it may run; as for `bash` where absent.
    timeout: Option<f64>,
    /// Whether it needs the network (fetch, pull, push, clone). The user is asked for it.
    network: Option<bool>,
}

/// Makes the tool. Time limits, the network and its hosts are those of commands.
pub fn git(commands: Commands) -> impl Tool {
    // What a call may do is said by its words; by itself the tool may be offered where only reading is.
    Typed::new("git", ToolCategory::Exec, DangerLevel::Safe, move |input| {
        prepare(&commands, input)
    })
}

fn prepare(commands: &Commands, input: Input) -> Result<ProgramCall, Refusal> {
    let roots = commands.exec.roots();
    let arguments = Arguments::read(input.args, roots)?;
    if arguments.only_configures && commands.exec.sandbox().known_mode() == Some(Mode::Full) {
        let why = "the repository's settings (.git/config) are read-only here, remotes among them; the user changes them, in a terminal of their own";
        return Err(Refusal::Invalid(why.to_owned()));
    }
    let own = arguments.words.iter().map(String::as_str);
    let words: Vec<&str> = std::iter::once("git").chain(own).collect();
    // The tool refuses and excludes files of the deny list by itself.
    let mut classified =
        commands.classify(None, |surroundings| classify_words(&words, surroundings));
    if classified.level == DangerLevel::Safe && settings::may_run_filters(roots) {
        let reason = "runs a filter that the repository's settings name, or may: they take settings from elsewhere";
        unsafe_git(&mut classified, "git-filters", reason);
    }
    let line = ("git", arguments.hardened);
    let mut call = commands.call("git", &classified, line, input.timeout, input.network)?;
    call.facts.paths = arguments.paths;
    call.facts.plain = true;
    // Two that change a repository never run beside each other.
    call.effect = Effect::of_command(classified.level, false);
    let variables = git_alone(roots.path(RootName::Project), call.facts.network);
    call.command.env.extend(variables);
    call.command.git = arguments.access;
    if call.facts.network {
        commands.decide_by_hosts(&mut call);
    }
    Ok(call)
}

#[cfg(test)]
mod tests;
