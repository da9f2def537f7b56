//! What the daemon's commands are run by.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::LAST_MOMENTS;
use crate::config::{Config, SandboxPolicy};
use crate::lifecycle::Signals;
use crate::protocol::{event, word};
use crate::ready::Fatal;
use crate::sandbox::paths::{Reach, RootName, Roots};
use crate::sandbox::{self, HeldBy, IdRange, Limits, Mode, Sandbox, Zygote};
use crate::session::Daemon;
use crate::users::not_apart;

/// What commands are run by, and what runs those that are not to be confined.
pub(super) struct Sandboxes {
    pub(super) confined: Sandbox,
    pub(super) unconfined: Sandbox,
}

impl Sandboxes {
    pub(super) async fn new(config: &Config, home: Option<&Path>, zygote: Option<Zygote>) -> Self {
        let bash = &config.tools.bash;
        let settings = sandbox::Settings {
            private_bytes: bash.tmp_size,
            pod_bytes: bash.limits.disk,
            caches: found_caches(&bash.caches, home),
            unverified: bash.sandbox == SandboxPolicy::Unverified,
            user_ids: config.user_ids,
            ..sandbox::Settings::new(home.map(Path::to_owned))
        }
        .off_memory();
        let unconfined = Sandbox::new(sandbox::Settings {
            ceiling: Mode::None,
            user_ids: None,
            ..settings.clone()
        });
        let confined = match bash.sandbox {
            SandboxPolicy::Auto | SandboxPolicy::Unverified => Sandbox::new(settings),
            SandboxPolicy::Off => unconfined.clone(),
        };
        // What is enforced is found out by another thread, beside what follows: it takes longer than the rest, and each session
        // waits for it.
        confined.expect_command(zygote);
        let sandbox = confined.clone();
        let (begun, has_begun) = oneshot::channel();
        tokio::spawn(async move {
            begun.send(()).ok();
            sandbox.report().await
        });
        if bash.sandbox != SandboxPolicy::Off {
            // The scheduler puts a new thread behind this one, even where another processor is idle. So this one waits until that
            // one runs, and then lets it go first.
            has_begun.await.ok();
            std::thread::yield_now();
        }
        Self {
            confined,
            unconfined,
        }
    }
}

/// Waits until the daemon is ready; returns `None` where a signal asked it to end before. Where it is not ready, waits until the
/// folders of the sandbox's trial are removed, unless a second signal comes.
pub(super) async fn started<T>(
    start: impl Future<Output = Result<T, Fatal>>,
    signals: &mut Signals,
    confined: &Sandbox,
) -> Result<Option<T>, Fatal> {
    let started = tokio::select! {
        // The configuration has just been read.
        why = signals.first(async || {}) => {
            tracing::info!(?why, "shutting down before it was ready");
            Ok(None)
        }
        started = start => started.map(Some),
    };
    if !matches!(started, Ok(Some(_))) {
        let tried = async {
            confined.report().await;
            confined.pods_removed().await;
        };
        tokio::select! {
            // What it does not come to, the next start removes.
            _ = tokio::time::timeout(LAST_MOMENTS, tried) => {}
            () = signals.second() => {}
        }
    }
    started
}

/// Returns the sandbox as `session:ready` has it.
pub(super) fn ready_sandbox(
    report: &sandbox::SandboxReport,
    limits: &Limits,
    disk: u64,
    is_online: bool,
) -> event::Sandbox {
    event::Sandbox {
        mode: report.mode.to_string(),
        paths: if cfg!(target_os = "linux") {
            "kernel"
        } else {
            "process"
        }
        .to_owned(),
        commands: report.commands.iter().map(ToString::to_string).collect(),
        network: match is_online {
            true => "on",
            false => report.network,
        }
        .to_owned(),
        loopback: Some(loopback(report, is_online).to_owned()),
        landlock: report.landlock.as_ref().map(|landlock| event::Landlock {
            abi: landlock.abi,
            missing: landlock.missing.iter().map(ToString::to_string).collect(),
        }),
        limits: Some(ready_limits(report, limits, disk)),
    }
}

/// Returns which loopback commands have. Where each has the network and not a loopback of its own, it has the machine's.
fn loopback(report: &sandbox::SandboxReport, is_online: bool) -> &'static str {
    match (report.loopback, is_online) {
        ("none", true) => "machine",
        (loopback, _) => loopback,
    }
}

/// Returns what commands are held to, and by what.
fn ready_limits(
    sandbox: &sandbox::SandboxReport,
    limits: &Limits,
    disk: u64,
) -> event::SandboxLimits {
    let report = &sandbox.limits;
    let held = |by: HeldBy, most: Option<u64>| event::SandboxLimit {
        most: most.filter(|_| by != HeldBy::None),
        by: word(&by),
    };
    let memory = match report.memory {
        HeldBy::Cgroup | HeldBy::Job => Some(limits.total_memory()),
        HeldBy::Rlimit | HeldBy::None => limits.data,
    };
    event::SandboxLimits {
        cgroup: report.cgroup,
        memory: held(report.memory, memory),
        cpu: limits.cpu_percent.map(|most| held(report.cpu, Some(most))),
        processes: held(report.processes, limits.processes),
        file_size: held(report.file_size, limits.file_size),
        disk: Some(match sandbox.mode {
            Mode::Full | Mode::Fallback => event::SandboxLimit {
                most: Some(disk),
                by: "daemon".to_owned(),
            },
            // There a conversation has no folders of its own.
            Mode::Limits | Mode::Unverified | Mode::None => held(HeldBy::None, None),
        }),
        missing: report.ungrouped.as_ref().map(ToString::to_string),
    }
}

/// Looks for the caches that commands are given, and says of which there is nothing.
fn found_caches(names: &[String], home: Option<&Path>) -> Vec<PathBuf> {
    let found = sandbox::caches::find(home, names);
    if !found.missing.is_empty() {
        tracing::warn!(
            "tools.bash.caches: there is nothing of {} in the home; commands begin with an empty one",
            found.missing.join(", ")
        );
    }
    found.folders
}

/// Finds out what the sandbox enforces, and says in the log what that leaves without effect: the wall between users, and
/// settings of commands.
pub(super) async fn warn_of_mode(daemon: Arc<Daemon>, sandbox: Sandbox) {
    let mode = sandbox.report().await.mode;
    let config = daemon.services.config();
    let has_users = config.auth.has_users() && mode != Mode::Full;
    let users = has_users.then(|| not_apart(&mode.to_string()));
    let settings = config.tools.bash.without_effect(mode);
    for problem in users.into_iter().chain(settings) {
        tracing::warn!("{problem}; `outrigger doctor` says what is missing");
    }
}

/// Fails where the commands of each user are to be a user of the system, and cannot be, or not in the daemon's own folders.
pub(super) async fn require_users(
    sandbox: &Sandbox,
    ids: Option<IdRange>,
    roots: Option<&Roots>,
) -> Result<(), Fatal> {
    let Some(ids) = ids else {
        return Ok(());
    };
    let folders = roots.map_or_else(Vec::new, working_folders);
    let Err(error) = sandbox.try_users(&folders).await else {
        return Ok(());
    };
    let report = sandbox.report().await;
    let full = report.refused.iter().find(|(mode, _)| *mode == Mode::Full);
    let why = full.map_or_else(|| error.to_string(), |(_, why)| why.clone());
    Err(Fatal::configuration(
        format!(
            "commands of users cannot run as users of the system (sandbox.user_ids = \"{ids}\"): {why}"
        ),
        "start the daemon as root, with its folders and TMPDIR on ext4, xfs, btrfs or tmpfs; or take the setting out, and all commands run as the daemon's own user",
    ))
}

/// The folders in which every command works.
fn working_folders(roots: &Roots) -> Vec<PathBuf> {
    let own = [RootName::Project, RootName::Central];
    let own = own.map(|root| roots.path(root).to_owned());
    let further = roots
        .further()
        .filter(|(_, reach)| *reach == Reach::ReadWrite);
    let further = further.map(|(folder, _)| folder.path().to_owned());
    own.into_iter().chain(further).collect()
}

/// Fails where commands are confined less than they have to be.
pub(super) async fn require_sandbox(daemon: &Daemon, least: Option<Mode>) -> Result<(), Fatal> {
    let Some(least) = least else {
        return Ok(());
    };
    let found = daemon.sandbox.clone().await;
    let mode = [Mode::Full, Mode::Fallback, Mode::Limits, Mode::Unverified]
        .into_iter()
        .find(|mode| mode.to_string() == found.mode)
        .unwrap_or(Mode::None);
    if mode >= least {
        return Ok(());
    }
    Err(Fatal::configuration(
        format!(
            "commands can be sandboxed in mode `{mode}` only, and --require-sandbox asks for `{least}`"
        ),
        "`outrigger doctor` says why; start without --require-sandbox to accept it",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{LimitsReport, SandboxReport};

    fn report(mode: Mode, loopback: &'static str) -> SandboxReport {
        SandboxReport {
            mode,
            commands: Vec::new(),
            landlock: None,
            caches: Vec::new(),
            network: "off",
            loopback,
            limits: LimitsReport::NONE,
            refused: Vec::new(),
        }
    }

    #[test]
    fn who_has_the_network_without_a_loopback_of_its_own_has_the_machines() {
        for (own, is_online, expected) in [
            ("own", false, "own"),
            ("own", true, "own"),
            ("none", false, "none"),
            ("none", true, "machine"),
            ("machine", false, "machine"),
            ("machine", true, "machine"),
        ] {
            let limits = Limits::default();
            let ready = ready_sandbox(&report(Mode::Fallback, own), &limits, 1, is_online);
            assert_eq!(
                ready.loopback.as_deref(),
                Some(expected),
                "{own} {is_online}"
            );
        }
    }

    #[test]
    fn the_folders_of_a_conversation_are_bounded_where_it_has_any() {
        for (mode, most, by) in [
            (Mode::Full, Some(7), "daemon"),
            (Mode::Fallback, Some(7), "daemon"),
            (Mode::Limits, None, "none"),
            (Mode::Unverified, None, "none"),
            (Mode::None, None, "none"),
        ] {
            let ready = ready_sandbox(&report(mode, "own"), &Limits::default(), 7, false);
            let disk = ready.limits.unwrap().disk.unwrap();
            assert_eq!((disk.most, disk.by.as_str()), (most, by), "{mode}");
        }
    }
}
