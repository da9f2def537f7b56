//! Checks of hooks: which there are, and whether what they run is there. None is asked anything.

use std::ffi::OsStr;
use std::path::Path;

use super::Machine;
use super::finding::{Finding, State};
use crate::commands::ProgramSearch;
use crate::config::{HookConfig, HookTarget, OnFailure};
use crate::http::host_and_port;
use crate::protocol::word;
use crate::sandbox::programs::find;

/// Lists the hooks in the order in which they are asked; nothing where there are none.
pub(super) fn hooks(machine: &Machine) -> Vec<Finding> {
    let path = ProgramSearch::new(&machine.loaded, &machine.sources).path;
    let hooks = machine.loaded.config.hooks.iter();
    hooks.flat_map(|hook| findings(hook, &path)).collect()
}

fn findings(hook: &HookConfig, path: &str) -> Vec<Finding> {
    let name = &hook.name;
    let found = |state, text: &str| {
        let text = format!("{name} ({}): {text}", word(&hook.on));
        Finding::new("hook", state, text)
    };
    let (command, args) = match &hook.target {
        HookTarget::Endpoint(url) => return vec![found(State::Ok, &host(url))],
        HookTarget::Program { command, args, .. } => (command, args),
    };
    let mut findings = vec![match find(path, command) {
        Some(program) => found(State::Ok, &program.display().to_string()),
        None => {
            let (state, outcome) = match hook.on_failure {
                OnFailure::Refuse => (State::Failed, "it counts as refused each time"),
                OnFailure::Continue => (State::Warning, "things go on without it"),
            };
            let is_there = Path::new(command).is_absolute() && Path::new(command).exists();
            let problem = match is_there {
                true => format!("`{command}` cannot be executed"),
                false => format!("there is no program `{command}`"),
            };
            found(state, &format!("{problem}; {outcome}")).advise(format!(
                "set hooks.{name}.command to the absolute path of a program, or chmod +x it"
            ))
        }
    }];
    findings.extend(doubtful(args).map(|(_, argument, problem)| {
        let text = format!("hooks.{name}.args has {argument:?}: {problem}");
        found(State::Warning, &text)
            .advise("an interpreter that does not find its file may end with 2, which is a no")
    }));
    findings
}

/// Returns the arguments of a program that look like files which are not found: the place of each, and what is wrong with it.
pub(super) fn doubtful(args: &[String]) -> impl Iterator<Item = (usize, &str, &'static str)> {
    let endings = ["py", "js", "mjs", "cjs", "ts", "sh", "rb", "pl"];
    args.iter().enumerate().filter_map(move |(at, argument)| {
        let path = Path::new(argument);
        let ending = path.extension().and_then(OsStr::to_str);
        let is_script = ending.is_some_and(|ending| endings.contains(&ending));
        let problem = if argument.starts_with("~/") {
            "`~` is the home directory to a shell alone; give the absolute path"
        } else if path.is_absolute() && !path.exists() {
            "it is not there"
        } else if path.is_relative() && is_script && !argument.contains([' ', '=', ':']) {
            "it is looked for where the program runs, which is not where you are; give the absolute path"
        } else {
            return None;
        };
        Some((at, argument.as_str(), problem))
    })
}

/// Returns where an endpoint is: the rest of its address may hold a secret.
fn host(url: &str) -> String {
    let url = reqwest::Url::parse(url);
    url.map_or_else(|_| "an endpoint".to_owned(), |url| host_and_port(&url))
}
