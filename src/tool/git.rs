//! `git`: runs git without a shell, with what a repository's configuration may make it run switched off.
//!
//! The words of a call are read by `arguments`: they name a subcommand of git itself, no option for all of
//! git and none that runs another program, and no path outside the project. How much harm it may do is
//! the classifier's judgement of the same words. What free names in a repository's configuration still
//! make git run (filters) is confined by the sandbox, and asked for: no call counts as safe where the
//! configuration has such names, or where the sandbox does not keep files apart. Nor does a line of bash, to which no
//! option can be added, where there are more of them.

mod arguments;
pub(super) mod settings;
mod shown;
mod words;

use std::path::PathBuf;
use std::time::Duration;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use self::arguments::Arguments;
use super::exec::Exec;
use super::input;
use super::secrets::SECRETS;
use super::{Facts, Output, Prepared, Refusal, Run, Tool, Violation};
use crate::classifier::{Classification, Finding, Surroundings, classify_words};
use crate::config::{BashConfig, NetworkPolicy};
use crate::message::{DangerLevel, ToolCategory, ToolSpec};
use crate::sandbox::environment::git_alone;
use crate::sandbox::paths::{RootName, Roots};

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
    #[serde(default)]
    timeout: Option<f64>,
    /// Whether it needs the network (fetch, pull, push, clone). The user is asked for it.
    #[serde(default)]
    network: Option<bool>,
}

/// The tool.
pub struct Git {
    spec: ToolSpec,
    exec: Exec,
    /// Time limits and the network are those of commands.
    config: BashConfig,
    home: Option<PathBuf>,
}

impl Git {
    /// Makes the tool; `home` is the user's home directory.
    pub fn new(exec: Exec, config: BashConfig, home: Option<PathBuf>) -> Self {
        Self {
            // What a call may do is said by its words; by itself the tool may be offered where only reading is.
            spec: input::spec_of::<Input>("git", ToolCategory::Exec, DangerLevel::Safe),
            exec,
            config,
            home,
        }
    }

    fn classify(&self, arguments: &Arguments) -> Classification {
        let roots = self.exec.roots();
        let words: Vec<&str> = std::iter::once("git")
            .chain(arguments.words.iter().map(String::as_str))
            .collect();
        let mut classified = classify_words(
            &words,
            &Surroundings {
                project_root: roots.path(RootName::Project),
                central_root: roots.path(RootName::Central),
                home: self.home.as_deref(),
                trusted_program: &|name| self.exec.is_trusted(name),
                // The tool refuses and excludes files of the deny list by itself.
                unhidden: None,
                secrets: &SECRETS,
            },
        );
        if classified.level == DangerLevel::Safe && !self.exec.keeps_files_apart() {
            unconfined(&mut classified);
        }
        if classified.level == DangerLevel::Safe && settings::may_run_filters(roots) {
            runs_filters(&mut classified);
        }
        classified
    }
}

/// Takes back that a git command is safe, since nothing confines the filters of its repository.
pub(super) fn unconfined(classified: &mut Classification) {
    classified.level = DangerLevel::Warning;
    classified.findings.push(Finding {
        level: DangerLevel::Warning,
        rule: "git-unconfined",
        words: "git".to_owned(),
        reason: "runs what the repository's configuration names, and no sandbox confines that here"
            .to_owned(),
    });
}

/// Takes back that a line of bash only reads where its git may run what settings of the repository name.
pub(super) fn runs_settings(classified: &mut Classification, roots: &Roots) {
    if !classified.runs("git") || !settings::may_run_programs(&classified.commands, roots) {
        return;
    }
    classified.level = DangerLevel::Warning;
    classified.findings.push(Finding {
        level: DangerLevel::Warning,
        rule: "git-settings",
        words: "git".to_owned(),
        reason: "may run what the repository's settings name: filters, converters, external diffs"
            .to_owned(),
    });
}

/// Takes back that a git command is safe whose repository names filters: nothing switches those off.
fn runs_filters(classified: &mut Classification) {
    classified.level = DangerLevel::Warning;
    classified.findings.push(Finding {
        level: DangerLevel::Warning,
        rule: "git-filters",
        words: "git".to_owned(),
        reason: "runs a filter that the repository's settings name, or may: they take settings from elsewhere"
            .to_owned(),
    });
}

impl Tool for Git {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        let input: Input = input::parse(&self.spec, input)?;
        let arguments = Arguments::read(input.args, self.exec.roots())?;
        let timeout = super::bash::timeout(input.timeout, &self.config)?;
        let asked = input.network.unwrap_or(false);
        Ok(Box::new(Call {
            classified: self.classify(&arguments),
            exec: self.exec.clone(),
            arguments,
            timeout,
            network: asked || self.config.network == NetworkPolicy::On,
        }))
    }
}

struct Call {
    exec: Exec,
    arguments: Arguments,
    classified: Classification,
    timeout: Duration,
    network: bool,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        Facts {
            paths: self.arguments.paths.clone(),
            plain: true,
            network: self.network,
            timeout: Some(self.timeout),
            ..Facts::of_commands("git", &self.classified)
        }
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let root = self.exec.roots().path(RootName::Project).to_owned();
            let args = self.arguments.hardened;
            let mut command = self.exec.command("git", args, self.network);
            command.env.extend(git_alone(&root, self.network));
            command.git = self.arguments.access;
            Ok(self.exec.run_git(command, &run).await)
        })
    }
}

#[cfg(test)]
mod tests;
