//! Finds out what the machine can enforce, by running an empty script in each mode until one works: containers, security
//! modules and system settings refuse what the kernel could do. Control groups are made for it, and not joined: that takes
//! longer than all the rest.

#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
#[cfg(target_os = "linux")]
use tokio::sync::mpsc;

use super::layers::{HeldBy, Layers, LimitsReport};
#[cfg(target_os = "linux")]
use super::{Command, Ports};
use super::{LandlockReport, Mode, Network, SandboxReport, Shared, process};

/// Tries the modes from the ceiling down.
pub(super) async fn probe(shared: &Shared) -> SandboxReport {
    let tried = try_modes(shared).await;
    // A job object holds a command that nothing confines, too. Whoever confines nothing makes no groups.
    let is_held = tried.found.layers.rlimits || cfg!(windows);
    let limits = match is_held && shared.settings.ceiling != Mode::None {
        true => process::limits(shared).await,
        false => LimitsReport::NONE,
    };
    report(tried, limits)
}

/// What there is to try on this system.
const MODES: &[Mode] = if cfg!(target_os = "linux") {
    &[Mode::Full, Mode::Fallback, Mode::Limits]
} else {
    &[Mode::Unverified]
};

struct Tried {
    mode: Mode,
    found: Found,
    /// The stronger modes, and why they do not work.
    refused: Vec<(Mode, String)>,
}

/// What was around a command.
#[derive(Default)]
struct Found {
    layers: Layers,
    /// The caches that it saw, and whether it could add to them.
    caches: Vec<(PathBuf, bool)>,
}

async fn try_modes(shared: &Shared) -> Tried {
    let mut tried = Tried {
        mode: Mode::None,
        found: Found::default(),
        refused: Vec::new(),
    };
    for mode in MODES {
        if *mode == Mode::Unverified && !shared.settings.unverified {
            let reason = "not asked for: tools.bash.sandbox = \"unverified\"".to_owned();
            tried.refused.push((*mode, reason));
            continue;
        }
        let mode = *mode;
        if mode > shared.settings.ceiling {
            let reason = "switched off by the configuration".to_owned();
            tried.refused.push((mode, reason));
            continue;
        }
        match attempt(shared, mode).await {
            Ok(found) => {
                (tried.mode, tried.found) = (mode, found);
                break;
            }
            Err(reason) => {
                tracing::info!(%mode, reason, "sandbox mode does not work here");
                tried.refused.push((mode, reason));
            }
        }
    }
    tried
}

/// Runs a shell, and returns what was around it. In full mode with what a command of a conversation has besides.
#[cfg(target_os = "linux")]
async fn attempt(shared: &Shared, mode: Mode) -> Result<Found, String> {
    let mut command = Command::new("/bin/sh", "/");
    command.args = vec!["-c".to_owned(), "exit 7".to_owned()];
    if mode == Mode::Full {
        command.pod = Some(process::pod(shared, None));
        command.network = Network::Outgoing(Ports::Any);
        command.listening = Some(mpsc::channel(1).0);
    }
    let mut process = process::probe(shared, &command, mode)
        .await
        .map_err(|error| error.to_string())?;
    let layers = process.layers;
    let pod = command.pod.as_ref();
    let caches = pod.map_or_else(Vec::new, |pod| pod.caches());
    // Control groups are looked for while the shell runs.
    let (exit, _) = tokio::join!(process.exited(), process::limits(shared));
    // What the kernel takes to remove the namespaces says nothing more. The pod's folders are removed after that.
    tokio::spawn(async move {
        process.wait().await;
        others_first().await;
        drop(command);
    });
    if exit.code != Some(7) {
        let code = exit.code;
        return Err(format!(
            "a shell that should exit with 7 ended with {code:?}"
        ));
    }
    if mode == Mode::Full {
        can_take_descriptors()
            .map_err(|error| format!("taking a descriptor of a process (pidfd_getfd): {error}"))?;
    }
    Ok(Found { layers, caches })
}

/// Lets other tasks run first. From the report to the first frame of a session that waited for it are a few tasks, one after
/// the other, and tidying up would take the processor from them. A hint, not an order: too few turns cost a millisecond.
#[cfg(target_os = "linux")]
pub(super) async fn others_first() {
    const TURNS: usize = 16;
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

/// Tries on this process what the daemon does to one whose call was stopped.
#[cfg(target_os = "linux")]
fn can_take_descriptors() -> rustix::io::Result<()> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    pidfd_getfd(&own, own.as_raw_fd(), PidfdGetfdFlags::empty()).map(drop)
}

/// Runs a shell, and returns the layers that were around it.
#[cfg(not(target_os = "linux"))]
async fn attempt(shared: &Shared, mode: Mode) -> Result<Found, String> {
    let mut command = process::trial(shared);
    command.network = Network::Off;
    let mut process = process::probe(shared, &command, mode)
        .await
        .map_err(|error| error.to_string())?;
    let layers = process.layers;
    let code = process.wait().await.code;
    match (code, layers.unverified) {
        (_, []) => Err("nothing on this system confines commands".to_owned()),
        (Some(7), _) => Ok(Found {
            layers,
            caches: Vec::new(),
        }),
        _ => Err(format!(
            "a shell that should exit with 7 ended with {code:?}"
        )),
    }
}

/// What an older Landlock leaves open, and nothing else closes. Versions: landlock(7), Linux 7.1.
fn missing(mode: Mode, abi: u8) -> Vec<&'static str> {
    // Truncating by a path (3) and sockets by abstract name (6) are refused by the system call filter instead, and
    // before 2 more is refused than has to be.
    let since = [
        ("ports", 4),
        ("devices", 5),
        // In full mode a command sees no process but its own.
        ("signals", if mode == Mode::Full { 0 } else { 6 }),
    ];
    since
        .into_iter()
        .filter(|(_, since)| abi < *since)
        .map(|(what, _)| what)
        .collect()
}

/// Namespaces bring a loopback of their own; without them the system call filter refuses the sockets for it.
fn loopback(layers: &Layers) -> &'static str {
    match (layers.namespaces, layers.seccomp) {
        (true, _) => "own",
        (false, true) => "none",
        (false, false) => "machine",
    }
}

fn report(tried: Tried, limits: LimitsReport) -> SandboxReport {
    let Tried {
        mode,
        found: Found { layers, caches },
        refused,
    } = tried;
    let commands = [
        ("namespaces", layers.namespaces),
        ("landlock", layers.landlock.is_some()),
        ("seccomp", layers.seccomp),
        ("rlimits", layers.rlimits),
        ("cgroup", limits.cgroup.is_some()),
        ("job", limits.memory == HeldBy::Job),
    ];
    SandboxReport {
        mode,
        commands: commands
            .iter()
            .filter(|it| it.1)
            .map(|it| it.0)
            .chain(layers.unverified.iter().copied())
            .collect(),
        landlock: layers.landlock.map(|abi| LandlockReport {
            abi,
            missing: missing(mode, abi),
        }),
        network: match layers.namespaces || layers.seccomp {
            true => "off",
            false => "unenforced",
        },
        loopback: loopback(&layers),
        limits,
        caches,
        refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_loopback_it_is_goes_by_the_layers_in_force() {
        for (namespaces, seccomp, expected) in [
            (true, true, "own"),
            (false, true, "none"),
            // Landlock alone keeps a command from ports, not from sockets.
            (false, false, "machine"),
        ] {
            let layers = Layers {
                namespaces,
                seccomp,
                landlock: Some(7),
                ..Layers::default()
            };
            assert_eq!(loopback(&layers), expected, "{namespaces} {seccomp}");
        }
    }

    #[test]
    fn what_an_older_landlock_leaves_open_is_said() {
        for (mode, abi, expected) in [
            (Mode::Fallback, 1, &["ports", "devices", "signals"][..]),
            (Mode::Fallback, 3, &["ports", "devices", "signals"]),
            (Mode::Fallback, 4, &["devices", "signals"]),
            (Mode::Fallback, 5, &["signals"]),
            (Mode::Fallback, 6, &[]),
            (Mode::Full, 3, &["ports", "devices"]),
            (Mode::Full, 5, &[]),
        ] {
            assert_eq!(missing(mode, abi), expected, "{mode} {abi}");
        }
    }
}
