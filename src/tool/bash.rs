//! `bash`: runs a command line in the project's folder.

mod shell;
mod surroundings;

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::exec::GIT_IS_READ_ONLY;
use super::git::settings::may_run_programs;
use super::program::{Commands, ProgramCall, time_limit, unsafe_git};
use super::typed::Typed;
use super::{Prepared, Refusal, Tool};
use crate::classifier::classify;
use crate::config::GitPolicy;
use crate::message::{DangerLevel, ToolCategory, ToolSpec};
use crate::sandbox::deny::Access;
use crate::sandbox::environment::neutral_git;
use crate::sandbox::paths::{Found, PathError, RootName, Roots, real_path};
use crate::sandbox::programs;
use crate::sandbox::{GitAccess, Mode};
use shell::{Judged, Shell};
use surroundings::Surroundings;

/// What the description of the tool says of its shell.
const BY_BASH: &str = "with bash";

/// The longest command line, in bytes: the system takes no longer argument.
const MAX_COMMAND: usize = 100 * 1024;

/// Runs a command line with bash in the project's folder. Standard input is empty and there is no
/// terminal. The output is returned when the command ends, long output shortened in the middle;
/// processes left in the background are killed then. Start a server or another command that goes on with
/// `background`, not with `&`: it returns an id at once, `bash_output` reads what it writes, `bash_kill` ends
/// it, later commands reach its ports on 127.0.0.1, and it ends with the conversation.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The command line.
    command: String,
    /// Seconds it may run; the usual limit where absent, in the background none.
    timeout: Option<f64>,
    /// Whether it goes on in the background.
    background: Option<bool>,
    /// Whether it needs the network. The user is asked for it.
    network: Option<bool>,
}

/// The tool, whose description says what is in force once that is known.
struct Bash {
    tool: Typed<Input>,
    commands: Commands,
    described: OnceLock<ToolSpec>,
}

/// Makes the tool.
pub fn bash(commands: Commands) -> impl Tool {
    let Commands { exec, config, .. } = &commands;
    let path = exec.environment().get("PATH").map_or("", String::as_str);
    let find = |name: &str| {
        let found = programs::find(path, name)?;
        found.to_str().map(str::to_owned)
    };
    let is_file = |path: &str| Path::new(path).is_file();
    let shell = Shell::here(exec.environment(), find, is_file);
    let name = shell.name();
    let prepare = {
        let commands = commands.clone();
        move |input| prepare(&commands, &shell, input)
    };
    let mut tool = Typed::new("bash", ToolCategory::Exec, DangerLevel::Dangerous, prepare);
    tool.spec.description = tool
        .spec
        .description
        .replacen(BY_BASH, &format!("with {name}"), 1);
    if config.git == GitPolicy::Read {
        tool.spec.description.push(' ');
        tool.spec.description.push_str(GIT_IS_READ_ONLY);
    }
    Bash {
        tool,
        commands,
        described: OnceLock::new(),
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        let Commands { exec, config, .. } = &self.commands;
        // Known before any session is ready.
        let Some(report) = exec.sandbox().known_report() else {
            return &self.tool.spec;
        };
        self.described.get_or_init(|| {
            let roots = exec.roots();
            let surroundings = Surroundings {
                mode: report.mode,
                project: roots.path(RootName::Project),
                central: roots.path(RootName::Central),
                network: config.network,
                ports: &config.ports,
                kernel_tells_ports: report
                    .landlock
                    .as_ref()
                    .is_some_and(|it| !it.missing.contains(&"ports")),
                hosts: &config.hosts,
                further: &config.further(),
                caches: &report.caches,
                limits: exec.limits(),
                held: &report.limits,
                disk: config.limits.disk,
                timeout: config.timeout,
                max_timeout: config.max_timeout,
            };
            let mut spec = self.tool.spec.clone();
            spec.description.push('\n');
            spec.description.push_str(&surroundings.text());
            spec
        })
    }

    fn looks_at_files(&self) -> bool {
        self.tool.looks_at_files()
    }

    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        self.tool.prepare(input)
    }
}

fn prepare(commands: &Commands, shell: &Shell, input: Input) -> Result<ProgramCall, Refusal> {
    let Input {
        command,
        timeout,
        background,
        network,
    } = input;
    let invalid = |why: &str| Err(Refusal::Invalid(why.to_owned()));
    if command.trim().is_empty() {
        return invalid("`command` is empty");
    }
    if command.len() > MAX_COMMAND {
        return invalid(&format!(
            "`command` has more than {MAX_COMMAND} bytes; write a script to a file and run that"
        ));
    }
    if command.contains('\0') {
        return invalid("`command` holds a NUL character, which no program can be given");
    }
    if let Some(why) = shell.refuses(&command) {
        return invalid(why);
    }
    let line = background.unwrap_or(false).then(|| command.clone());
    let judged = judge(commands, shell, command);
    let classified = judged.classified();
    let mut call = commands.call("bash", classified, judged.program(), timeout, network)?;
    if line.is_some() {
        // It may run as long as its conversation, but for the permission's cap.
        call.facts.timeout = Some(time_limit(timeout)?.unwrap_or(Duration::MAX));
        call.background = line;
    }
    // Nobody is asked in the middle of a command in the background: it asks for the whole network at its start.
    let asks_at_once = call.background.is_some() && network == Some(true);
    if !asks_at_once {
        commands.decide_by_hosts(&mut call);
    }
    // Where its home is the user's, they read the settings themselves.
    let has_other_home = |mode: Mode| mode >= Mode::Fallback || mode.decides_by_hosts();
    let mode = commands.exec.sandbox().known_mode();
    if mode.is_some_and(has_other_home) {
        call.registries = commands.hosts.clone();
    }
    if classified.level == DangerLevel::Safe {
        // What makes `git status` and its like as safe as the classifier takes them for.
        call.command.env.extend(neutral_git());
    }
    call.command.git = match commands.config.git {
        GitPolicy::Read => GitAccess::ReadOnly,
        GitPolicy::Write => GitAccess::Write,
    };
    Ok(call)
}

fn judge<'a>(commands: &Commands, shell: &'a Shell, line: String) -> Judged<'a> {
    let exec = &commands.exec;
    let shows = |path: &Path| shows_secrets(path, exec.roots(), exec.keeps_files_apart());
    // Commands find nothing where files for secrets are; not known counts as no.
    let hides_secrets = exec.sandbox().known_mode() == Some(Mode::Full);
    let unhidden: Option<&dyn Fn(&Path) -> bool> = match hides_secrets {
        true => None,
        false => Some(&shows),
    };
    let mut judged = shell.judge(line, |line| {
        commands.classify(unhidden, |surroundings| classify(line, surroundings))
    });
    let classified = judged.classified_mut();
    if classified.level == DangerLevel::Safe
        && classified.runs("git")
        && may_run_programs(&classified.commands, exec.roots())
    {
        let reason =
            "may run what the repository's settings name: filters, converters, external diffs";
        unsafe_git(classified, "git-settings", reason);
    }
    judged
}

/// Whether a path leads to what `file_read` would refuse, or to a folder in which there may be such.
fn shows_secrets(path: &Path, roots: &Roots, keeps_files_apart: bool) -> bool {
    let target = path.to_str().map(|path| roots.map(path, Access::Look));
    let Some(Ok(target)) = target else {
        // Outside of the roots, where `file_read` reads nothing. The sandbox shows files of the system at most, which
        // are judged by their names; without it everything of the user's is in reach. A link may lead back.
        let real = real_path(path);
        let is_own = |path: &Path| {
            let own = [RootName::Project, RootName::Central];
            own.iter().any(|root| path.starts_with(roots.path(*root)))
        };
        return !keeps_files_apart
            || roots.is_in_further(path)
            || !is_own(path) && (is_own(&real) || roots.is_in_further(&real));
    };
    match roots.locate(&target, Access::Read) {
        Ok(located) => match located.found() {
            // What a folder, a pipe or a device shows is unknown.
            Found::Folder(_) | Found::Other(_) => true,
            // By the file itself: it may be a secret under another name.
            Found::File => located.open().is_err() || !roots.knows_secrets(),
            Found::Missing => false,
        },
        Err(PathError::Missing(_)) => false,
        // Forbidden, or not to be known: too deep, a loop of links.
        Err(_) => true,
    }
}
