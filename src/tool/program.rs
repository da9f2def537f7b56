//! A call that runs one program, and what the tools `bash` and `git` make theirs of.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::BoxFuture;

use super::exec::Exec;
use super::secrets::SECRETS;
use super::{Facts, Output, Prepared, Refusal, Run, Violation};
use crate::classifier::{Classification, Finding, Surroundings};
use crate::config::{BashConfig, NetworkPolicy};
use crate::message::DangerLevel;
use crate::sandbox::Command;
use crate::sandbox::paths::RootName;

/// A call that runs one program in the project's folder.
pub(super) struct ProgramCall {
    pub(super) exec: Exec,
    pub(super) facts: Facts,
    pub(super) command: Command,
}

impl Prepared for ProgramCall {
    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>> {
        Box::pin(async move { Ok(self.exec.run(self.command, &run).await) })
    }
}

/// What commands of the model's are judged and run by.
pub(super) struct Commands {
    pub(super) exec: Exec,
    pub(super) config: BashConfig,
    pub(super) home: Option<PathBuf>,
}

impl Commands {
    /// Classifies a command by `classify`, to which `unhidden` is handed on.
    pub(super) fn classify(
        &self,
        unhidden: Option<&dyn Fn(&Path) -> bool>,
        classify: impl FnOnce(&Surroundings<'_>) -> Classification,
    ) -> Classification {
        let roots = self.exec.roots();
        let mut classified = classify(&Surroundings {
            project_root: roots.path(RootName::Project),
            central_root: roots.path(RootName::Central),
            home: self.home.as_deref(),
            trusted_program: &|name| self.exec.is_trusted(name),
            unhidden,
            secrets: &SECRETS,
        });
        if classified.runs("git") && !self.exec.keeps_files_apart() {
            let reason =
                "runs what the repository's configuration names, and no sandbox confines that here";
            unsafe_git(&mut classified, "git-unconfined", reason);
        }
        classified
    }

    /// Makes a call of what the model asked for. Fails where the time limit is none.
    pub(super) fn call(
        &self,
        tool: &str,
        classified: &Classification,
        (program, args): (&str, Vec<String>),
        timeout: Option<f64>,
        network: Option<bool>,
    ) -> Result<ProgramCall, Refusal> {
        let network = network.unwrap_or(false) || self.config.network == NetworkPolicy::On;
        Ok(ProgramCall {
            exec: self.exec.clone(),
            facts: Facts {
                network,
                timeout: Some(self.timeout(timeout)?),
                ..Facts::of_commands(tool, classified)
            },
            command: self.exec.command(program, args, network),
        })
    }

    fn timeout(&self, asked: Option<f64>) -> Result<Duration, Refusal> {
        let timeout = match asked.map(Duration::try_from_secs_f64) {
            None => self.config.timeout,
            Some(Ok(timeout)) if !timeout.is_zero() => timeout,
            Some(_) => {
                let why = "`timeout` must be a number of seconds above 0";
                return Err(Refusal::Invalid(why.to_owned()));
            }
        };
        Ok(timeout.min(self.config.max_timeout))
    }
}

pub(super) fn unsafe_git(classified: &mut Classification, rule: &'static str, reason: &str) {
    if classified.level != DangerLevel::Safe {
        return;
    }
    classified.level = DangerLevel::Warning;
    classified.findings.push(Finding {
        level: DangerLevel::Warning,
        rule,
        words: "git".to_owned(),
        reason: reason.to_owned(),
    });
}
