//! A call that runs one program, and what the tools `bash` and `git` make theirs of.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::BoxFuture;

use super::exec::Exec;
use super::hosts::HostList;
use super::secrets::SECRETS;
use super::{Begins, Claim, Facts, Output, Prepared, Refusal, Run, Violation};
use crate::classifier::{Classification, Finding, Surroundings};
use crate::config::{BashConfig, NetworkPolicy};
use crate::message::DangerLevel;
use crate::sandbox::paths::RootName;
use crate::sandbox::{Command, Mode, Network};

/// A call that runs one program in the project's folder.
pub(super) struct ProgramCall {
    pub(super) exec: Exec,
    pub(super) facts: Facts,
    pub(super) command: Command,
    /// What it may connect to without a question, where hosts are asked for one by one.
    pub(super) hosts: Option<HostList>,
    /// Whose package managers say which registries it is told of.
    pub(super) registries: Option<HostList>,
    pub(super) effect: Effect,
    /// The line of a command that goes on in the background.
    pub(super) background: Option<String>,
}

/// What a program does to the project's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It is proven to only read them, or somebody gave their word for it.
    Reads,
    /// It may change any of them, and nothing else that changes files runs beside it.
    Changes,
    /// It may change any of them, and runs beside what it runs beside: `tools.bash.parallel`.
    ChangesBesideOthers,
}

impl Effect {
    /// Returns the effect of a command of this level, where commands may run side by side or not.
    pub(super) fn of_command(level: DangerLevel, parallel: bool) -> Self {
        match (level, parallel) {
            (DangerLevel::Safe, _) => Self::Reads,
            (_, true) => Self::ChangesBesideOthers,
            (_, false) => Self::Changes,
        }
    }
}

impl Prepared for ProgramCall {
    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    fn claims(&self) -> Vec<Claim> {
        match self.effect {
            Effect::Changes => vec![Claim::WriteTree(self.exec.roots().changeable())],
            Effect::Reads => vec![Claim::ReadTree(self.exec.roots().changeable())],
            Effect::ChangesBesideOthers => Vec::new(),
        }
    }

    fn begins(&self) -> Begins {
        Begins::Looking
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>> {
        Box::pin(async move {
            let Self {
                exec,
                mut command,
                hosts,
                registries,
                effect,
                background,
                ..
            } = *self;
            if let Some(list) = registries {
                let told = run.cancel.run_until_cancelled(list.variables()).await;
                for (name, value) in told.unwrap_or_default() {
                    let variable = command.env.entry(name.clone());
                    variable.or_insert_with(|| value.clone());
                }
            }
            if let Some(line) = background {
                // What it changes, and when, nobody waits for.
                return Ok(exec.start(command, &line, hosts, &run).await);
            }
            let changes = effect != Effect::Reads;
            Ok(exec.run(command, hosts, changes, &run).await)
        })
    }
}

/// What commands of the model's are judged and run by: those of `bash` and of `git`. Clones have one list of hosts.
#[derive(Clone)]
pub struct Commands {
    pub(super) exec: Exec,
    pub(super) config: BashConfig,
    home: Option<PathBuf>,
    /// What they may connect to without a question, where hosts are asked for one by one.
    pub(super) hosts: Option<HostList>,
}

impl Commands {
    /// Returns that of a project; `home` is the user's home directory. Within a runtime the package managers on the list of hosts
    /// are asked from now on.
    pub fn new(exec: Exec, config: BashConfig, home: Option<PathBuf>) -> Self {
        let hosts = match config.network {
            NetworkPolicy::Ask => HostList::new(&config.hosts, &exec, home.clone()),
            NetworkPolicy::On | NetworkPolicy::Off => None,
        };
        Self {
            exec,
            config,
            home,
            hosts,
        }
    }

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
            command: self.exec.command(program, args, self.network(network)),
            hosts: None,
            registries: None,
            effect: Effect::of_command(classified.level, self.config.parallel),
            background: None,
        })
    }

    fn network(&self, has_network: bool) -> Network {
        match has_network {
            true => Network::Outgoing(self.config.ports.of_commands()),
            false => Network::Off,
        }
    }

    /// Has the hosts that a command connects to decide over it, in the place of the network as a whole; nothing where they are not
    /// asked for one by one.
    pub(super) fn decide_by_hosts(&self, call: &mut ProgramCall) {
        let mode = self.exec.sandbox().known_mode();
        let Some(hosts) = &self.hosts else {
            return;
        };
        if !mode.is_some_and(Mode::decides_by_hosts) {
            return;
        }
        call.facts.network = false;
        call.command.network = self.network(true);
        call.hosts = Some(hosts.clone());
    }

    fn timeout(&self, asked: Option<f64>) -> Result<Duration, Refusal> {
        let timeout = time_limit(asked)?.unwrap_or(self.config.timeout);
        Ok(timeout.min(self.config.max_timeout))
    }
}

/// Reads the time limit that a model asks for.
pub(super) fn time_limit(asked: Option<f64>) -> Result<Option<Duration>, Refusal> {
    match asked.map(Duration::try_from_secs_f64) {
        None => Ok(None),
        Some(Ok(timeout)) if !timeout.is_zero() => Ok(Some(timeout)),
        Some(_) => {
            let why = "`timeout` must be a number of seconds above 0";
            Err(Refusal::Invalid(why.to_owned()))
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_proven_to_only_read_may_change_files() {
        use DangerLevel::{Blocked, Dangerous, Safe, Warning};
        for level in [Safe, Warning, Dangerous, Blocked] {
            let effects = [false, true].map(|parallel| Effect::of_command(level, parallel));
            let expected = match level {
                Safe => [Effect::Reads; 2],
                Warning | Dangerous | Blocked => [Effect::Changes, Effect::ChangesBesideOthers],
            };
            assert_eq!(effects, expected, "{level:?}");
        }
    }
}
