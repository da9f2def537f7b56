//! `bash`: runs a command line in the project's folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::exec::Exec;
use super::input;
use super::secrets::SECRETS;
use super::{Facts, Output, Prepared, Refusal, Run, Tool, Violation};
use crate::classifier::{Classification, Surroundings, classify};
use crate::config::{BashConfig, GitPolicy, NetworkPolicy};
use crate::message::{DangerLevel, Part, ToolCategory, ToolSpec};
use crate::sandbox::deny::Access;
use crate::sandbox::environment::neutral_git;
use crate::sandbox::paths::{Found, PathError, RootName, Roots};
use crate::sandbox::{GitAccess, Mode};

/// The longest command line, in bytes: the system takes no longer argument.
const MAX_COMMAND: usize = 100 * 1024;

/// The shells to use, the first there is.
const SHELLS: [(&str, &[&str]); 2] = [
    ("/bin/bash", &["--noprofile", "--norc", "-c"]),
    ("/bin/sh", &["-c"]),
];

/// What the model reads of repositories, in the description and where a command failed for it.
const GIT_IS_READ_ONLY: &str = "Git repositories are read-only to commands here: use the tool `git` to change one (add, commit, switch, merge, init, ...).";

/// What programs say of a file that they may not write, and of a folder that cannot be moved.
const NOT_WRITTEN: [&str; 2] = ["Read-only file system", "Device or resource busy"];

/// Runs a command line with bash in the project's folder. Standard input is empty and there is no
/// terminal. The output is returned when the command ends, long output shortened in the middle;
/// processes left in the background are killed then.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The command line.
    command: String,
    /// Seconds it may run; 60 where absent.
    #[serde(default)]
    timeout: Option<f64>,
    /// Whether it needs the network. The user is asked for it.
    #[serde(default)]
    network: Option<bool>,
}

/// The tool.
pub struct Bash {
    spec: ToolSpec,
    exec: Exec,
    config: BashConfig,
    home: Option<PathBuf>,
}

impl Bash {
    /// Makes the tool; `home` is the user's home directory.
    pub fn new(exec: Exec, config: BashConfig, home: Option<PathBuf>) -> Self {
        let mut spec = input::spec_of::<Input>("bash", ToolCategory::Exec, DangerLevel::Dangerous);
        if config.git == GitPolicy::Read {
            spec.description.push(' ');
            spec.description.push_str(GIT_IS_READ_ONLY);
        }
        Self {
            spec,
            exec,
            config,
            home,
        }
    }

    fn classify(&self, line: &str) -> Classification {
        let roots = self.exec.roots();
        let apart = self.exec.keeps_files_apart();
        let shows = |path: &Path| shows_secrets(path, roots, apart);
        let mut classified = classify(
            line,
            &Surroundings {
                project_root: roots.path(RootName::Project),
                central_root: roots.path(RootName::Central),
                home: self.home.as_deref(),
                trusted_program: &|name| self.exec.is_trusted(name),
                unhidden: (!self.hides_secrets()).then_some(&shows),
                secrets: &SECRETS,
            },
        );
        let safe = classified.level == DangerLevel::Safe;
        if safe && classified.runs("git") && !self.exec.keeps_files_apart() {
            super::git::unconfined(&mut classified);
        }
        if classified.level == DangerLevel::Safe {
            super::git::runs_settings(&mut classified, roots);
        }
        classified
    }

    /// Whether commands find nothing where files for secrets are; not known counts as no.
    fn hides_secrets(&self) -> bool {
        self.exec.sandbox().known_mode() == Some(Mode::Full)
    }
}

/// Whether a path leads to what `file_read` would refuse, or to a folder in which there may be such.
fn shows_secrets(path: &Path, roots: &Roots, keeps_files_apart: bool) -> bool {
    let Ok(target) = path
        .to_str()
        .ok_or(())
        .and_then(|path| roots.map(path, Access::Look).or(Err(())))
    else {
        // Outside of the roots, where `file_read` reads nothing. The sandbox shows files of the system at most, which
        // are judged by their names; without it everything of the user's is in reach.
        return !keeps_files_apart;
    };
    match roots.locate(&target, Access::Read) {
        Ok(located) => match located.found() {
            // What a folder, a pipe or a device shows, nobody can tell.
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

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        let input: Input = input::parse(&self.spec, input)?;
        if input.command.trim().is_empty() {
            return Err(Refusal::Invalid("`command` is empty".to_owned()));
        }
        if input.command.len() > MAX_COMMAND {
            return Err(Refusal::Invalid(format!(
                "`command` has more than {MAX_COMMAND} bytes; write a script to a file and run that"
            )));
        }
        if input.command.contains('\0') {
            return Err(Refusal::Invalid(
                "`command` holds a NUL character, which no program can be given".to_owned(),
            ));
        }
        let timeout = timeout(input.timeout, &self.config)?;
        let asked = input.network.unwrap_or(false);
        Ok(Box::new(Call {
            classified: self.classify(&input.command),
            exec: self.exec.clone(),
            timeout,
            network: asked || self.config.network == NetworkPolicy::On,
            command: input.command,
            git: self.config.git,
        }))
    }
}

struct Call {
    exec: Exec,
    command: String,
    classified: Classification,
    timeout: Duration,
    network: bool,
    git: GitPolicy,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        Facts {
            network: self.network,
            timeout: Some(self.timeout),
            ..Facts::of_commands("bash", &self.classified)
        }
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let (shell, options) = shell();
            let args = options
                .iter()
                .map(|option| (*option).to_owned())
                .chain([self.command.clone()])
                .collect();
            let mut command = self.exec.command(shell, args, self.network);
            // What makes `git status` and its like as safe as the classifier takes them for.
            if self.classified.level == DangerLevel::Safe {
                command.env.extend(neutral_git());
            }
            if self.git == GitPolicy::Write {
                command.git = GitAccess::Write;
            }
            let mut output = self.exec.run(command, &run).await;
            if self.git == GitPolicy::Read && output.is_error && says_read_only(&output) {
                output
                    .content
                    .push(Part::text(format!("\n[{GIT_IS_READ_ONLY}]")));
            }
            Ok(output)
        })
    }
}

/// Whether a command failed at a repository that is read-only to it.
fn says_read_only(output: &Output) -> bool {
    output.content.iter().any(|part| match part {
        Part::Text { text } => text.lines().any(|line| {
            line.contains(".git") && NOT_WRITTEN.iter().any(|word| line.contains(word))
        }),
        Part::Image { .. } => false,
    })
}

/// How long a call may run that asks for so many seconds.
pub(super) fn timeout(asked: Option<f64>, config: &BashConfig) -> Result<Duration, Refusal> {
    let timeout = match asked {
        None => config.timeout,
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|timeout| !timeout.is_zero())
            .ok_or_else(|| {
                Refusal::Invalid("`timeout` must be a number of seconds above 0".to_owned())
            })?,
    };
    Ok(timeout.min(config.max_timeout))
}

fn shell() -> (&'static str, &'static [&'static str]) {
    let [bash, sh] = SHELLS;
    if Path::new(bash.0).exists() { bash } else { sh }
}
