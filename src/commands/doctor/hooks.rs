//! Checks of hooks: which there are, and whether what they run is there. None is asked anything.

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
    findings.extend(doubtful(args).map(|doubt| {
        let text = format!("hooks.{name}.args has {doubt}");
        found(State::Warning, &text)
            .advise("an interpreter that does not find its file may end with 2, which is a no")
    }));
    findings
}

/// Returns the arguments of a program that look like files which are not there, each with what is wrong with it.
pub(super) fn doubtful(args: &[String]) -> impl Iterator<Item = String> {
    args.iter().filter_map(|argument| {
        let problem = if argument.starts_with("~/") {
            "`~` is the home directory to a shell alone; give the absolute path"
        } else if argument.starts_with('/') && !Path::new(argument).exists() {
            "it is not there"
        } else {
            return None;
        };
        Some(format!("{argument:?}: {problem}"))
    })
}

/// Returns where an endpoint is: the rest of its address may hold a secret.
fn host(url: &str) -> String {
    let url = reqwest::Url::parse(url);
    url.map_or_else(|_| "an endpoint".to_owned(), |url| host_and_port(&url))
}
