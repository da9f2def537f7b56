//! What is around commands, layer by layer: for each that is missing why, and what brings it.

use std::fs;
use std::path::{Path, PathBuf};

use super::finding::{Finding, State};
use crate::sandbox::{self, HeldBy, LimitsReport, Mode, SandboxReport, Ungrouped};

/// The profile for AppArmor that lets the daemon make user namespaces, and does nothing else.
pub(super) const PROFILE: &str = include_str!("../../../config/apparmor/outrigger");

/// Where it says that the program is.
const PROFILED: [&str; 3] = [
    "/usr/bin/outrigger",
    "/usr/local/bin/outrigger",
    "/opt/outrigger/bin/outrigger",
];

/// The first kernel with Landlock.
const LANDLOCK_SINCE: &str = "Linux 5.13";

/// What the machine says about itself; `None` where it says nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    is_container: bool,
    is_root: bool,
    /// This program.
    program: Option<PathBuf>,
    /// `kernel.apparmor_restrict_unprivileged_userns`.
    restricted: Option<u64>,
    /// `kernel.unprivileged_userns_clone`.
    allowed: Option<u64>,
    /// `user.max_user_namespaces`.
    most_namespaces: Option<u64>,
    /// Whether the kernel knows user namespaces.
    has_namespaces: bool,
    /// Whether the kernel has filters for system calls.
    has_filters: bool,
    /// The security modules in use, separated by commas.
    modules: Option<String>,
}

impl Facts {
    pub(super) fn find() -> Self {
        let number = |name: &str| {
            let text = fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
            text.trim().parse().ok()
        };
        let modules = fs::read_to_string("/sys/kernel/security/lsm").ok();
        Self {
            is_container: sandbox::is_container(),
            is_root: is_root(),
            program: std::env::current_exe().ok(),
            restricted: number("kernel/apparmor_restrict_unprivileged_userns"),
            allowed: number("kernel/unprivileged_userns_clone"),
            most_namespaces: number("user/max_user_namespaces"),
            has_namespaces: Path::new("/proc/self/ns/user").exists(),
            has_filters: Path::new("/proc/sys/kernel/seccomp/actions_avail").exists(),
            modules: modules.map(|text| text.trim().to_owned()),
        }
    }
}

#[cfg(unix)]
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
pub(super) fn is_root() -> bool {
    false
}

/// Says what there is of each layer. Nothing on systems that have none.
pub(super) fn layers(report: &SandboxReport, facts: &Facts) -> Vec<Finding> {
    if cfg!(not(target_os = "linux")) {
        return Vec::new();
    }
    vec![
        namespaces(report, facts),
        landlock(report, facts),
        seccomp(report, facts),
        cgroup(&report.limits, facts),
    ]
}

fn has(report: &SandboxReport, layer: &str) -> bool {
    report.commands.contains(&layer)
}

/// Why a mode was refused; empty where it was not tried.
fn reason(report: &SandboxReport, mode: Mode) -> &str {
    let refused = report.refused.iter().find(|(refused, _)| *refused == mode);
    refused.map_or("", |(_, reason)| reason)
}

fn namespaces(report: &SandboxReport, facts: &Facts) -> Finding {
    let found = |state, text: &str| Finding::new("namespaces", state, text);
    if has(report, "namespaces") {
        return found(State::Ok, "user, mount, pid, ipc and network");
    }
    let reason = reason(report, Mode::Full);
    if reason.contains("(Landlock)") || reason.contains("(Seccomp)") {
        let text = format!("not used, since another layer is missing: {reason}");
        return found(State::Warning, &text).advise("see the lines below");
    }
    let missing = |why: &str| found(State::Warning, &format!("{why} ({reason})"));
    if !facts.has_namespaces {
        return missing("this kernel has no user namespaces")
            .advise("a kernel with CONFIG_USER_NS, as those of all distributions are");
    }
    if facts.is_container {
        // Of the machine's, which a container sees.
        let machine = match facts.restricted {
            Some(1) => format!("; and on the machine itself `{LIFTED}`"),
            _ => String::new(),
        };
        return missing("refused by the container").advise(format!("{IN_CONTAINER}{machine}"));
    }
    if facts.most_namespaces == Some(0) {
        return missing("user.max_user_namespaces is 0").advise(
            "sudo sysctl -w user.max_user_namespaces=10000, and a line `user.max_user_namespaces=10000` in /etc/sysctl.d/90-outrigger.conf for the next start",
        );
    }
    if facts.restricted == Some(1) && !facts.is_root {
        return missing("AppArmor keeps programs without a profile from user namespaces")
            .advise(profile(facts.program.as_deref()));
    }
    if facts.allowed == Some(0) && !facts.is_root {
        return missing("kernel.unprivileged_userns_clone is 0").advise(
            "sudo sysctl -w kernel.unprivileged_userns_clone=1, and a line `kernel.unprivileged_userns_clone=1` in /etc/sysctl.d/90-outrigger.conf for the next start",
        );
    }
    missing("refused here").advise(
        "a system call filter or a security module around this daemon refuses them: in a systemd unit RestrictNamespaces= and SystemCallFilter=, or SELinux; start it without that",
    )
}

/// How a container lets the daemon make namespaces.
const IN_CONTAINER: &str = "let the container make user namespaces: start it as compose.yaml of the source does, with --security-opt seccomp=config/docker/seccomp.json, systempaths=unconfined, and apparmor=unconfined where there is AppArmor; or accept the mode: --require-sandbox fallback checks it";

/// Lifts what a container cannot have a profile of its own for.
const LIFTED: &str = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";

/// The two commands that bring the profile, and what comes before them where it does not name this program.
fn profile(program: Option<&Path>) -> String {
    let elsewhere = program.filter(|path| !PROFILED.iter().any(|known| *path == Path::new(known)));
    let first = elsewhere.map_or_else(String::new, |path| {
        format!(
            "put the program where only root may write, such as {}, since the profile holds for that path and not for {}; then ",
            PROFILED[1],
            path.display()
        )
    });
    format!(
        "{first}load its profile (config/apparmor/outrigger): `outrigger doctor --apparmor-profile | sudo tee /etc/apparmor.d/outrigger`, then `sudo apparmor_parser -r /etc/apparmor.d/outrigger`"
    )
}

fn landlock(report: &SandboxReport, facts: &Facts) -> Finding {
    let found = |state, text: &str| Finding::new("landlock", state, text);
    if let Some(landlock) = &report.landlock {
        let version = format!("version {}", landlock.abi);
        if landlock.missing.is_empty() {
            return found(State::Ok, &version);
        }
        let lacks = format!(
            "{version}, which leaves open: {}",
            landlock.missing.join(", ")
        );
        return found(State::Ok, &lacks).advise("a newer kernel closes it; 6.12 all of it");
    }
    let reason = reason(report, Mode::Fallback);
    let missing = |why: &str| found(State::Warning, &format!("{why} ({reason})"));
    match &facts.modules {
        Some(modules) if !modules.split(',').any(|it| it == "landlock") => {
            missing("the kernel was not started with it").advise(format!(
                "if it is in the kernel ({LANDLOCK_SINCE} with CONFIG_SECURITY_LANDLOCK), add `lsm=landlock,{modules}` to the kernel's command line and start the machine again"
            ))
        }
        _ if facts.is_container => missing("not to be had in this container").advise(format!(
            "the host's kernel must have it ({LANDLOCK_SINCE}), and the container's seccomp profile allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self"
        )),
        _ => missing("not to be had here").advise(format!(
            "a kernel with it: {LANDLOCK_SINCE} with CONFIG_SECURITY_LANDLOCK, and `landlock` in its parameter lsm="
        )),
    }
}

fn seccomp(report: &SandboxReport, facts: &Facts) -> Finding {
    let found = |state, text: &str| Finding::new("seccomp", state, text);
    if has(report, "seccomp") {
        return found(State::Ok, "system calls are filtered");
    }
    if report.mode != Mode::None {
        let text = format!(
            "there is no filter for {} processors",
            std::env::consts::ARCH
        );
        return found(State::Warning, &text)
            .advise("x86_64, aarch64 and riscv64 have one; the other layers hold");
    }
    let reason = reason(report, Mode::Limits);
    match facts.has_filters {
        false => found(
            State::Warning,
            &format!("this kernel has no filters for system calls ({reason})"),
        )
        .advise("a kernel with CONFIG_SECCOMP_FILTER, as those of all distributions are"),
        true => found(State::Warning, &format!("not to be had here ({reason})"))
            .advise("what the reason in parentheses names is in the way"),
    }
}

fn cgroup(limits: &LimitsReport, facts: &Facts) -> Finding {
    let held = [
        ("memory", limits.memory),
        ("processes", limits.processes),
        ("processor time", limits.cpu),
    ];
    let by = |wanted: HeldBy| {
        let names = held.iter().filter(|it| it.1 == wanted).map(|it| it.0);
        names.collect::<Vec<_>>().join(", ")
    };
    let mut text = match limits.cgroup {
        Some(version) => format!("version {version} bounds {}", by(HeldBy::Cgroup)),
        None => "none".to_owned(),
    };
    for (by, says) in [
        (by(HeldBy::Rlimit), "bounded for each process by itself"),
        (by(HeldBy::None), "not bounded"),
    ] {
        if !by.is_empty() {
            text.push_str(&format!("; {says}: {by}"));
        }
    }
    let Some(reason) = &limits.ungrouped else {
        return Finding::new("cgroup", State::Ok, text);
    };
    // Nothing keeps root's commands from filling the table of processes.
    let state = match limits.processes {
        HeldBy::None => State::Warning,
        HeldBy::Cgroup | HeldBy::Rlimit | HeldBy::Job => State::Absent,
    };
    Finding::new("cgroup", state, format!("{text}; {reason}")).advise(remedy(reason, facts))
}

/// What brings control groups.
fn remedy(reason: &Ungrouped, facts: &Facts) -> &'static str {
    const ENGINE: &str = "have the engine mount /sys/fs/cgroup writable, in a cgroup namespace of the container's own, and give its top group to the daemon's user; or bound the container: mem_limit, pids_limit, cpus";
    const HAND_OVER: &str = "start it by `systemd-run --user --scope -p Delegate=yes outrigger`, or with `Delegate=yes` in its unit";
    match reason {
        _ if facts.is_container => ENGINE,
        Ungrouped::NotDelegated => HAND_OVER,
        Ungrouped::NotWritable(_) => {
            "where systemd runs version 2, start it by `systemd-run --user --scope -p Delegate=yes outrigger`, or with `Delegate=yes` in its unit; version 1 takes root, or a group that was given to this user"
        }
        Ungrouped::Lacks(_) => {
            "the unit above does not hand them on: for a user's, `sudo systemctl edit user@.service`, [Service] Delegate=memory pids cpu, and log in again"
        }
        Ungrouped::Absent => {
            "mount them: `sudo mount -t cgroup2 none /sys/fs/cgroup`; systemd does so by itself"
        }
        Ungrouped::Failed(_) => {
            "let this user write what the reason names, or accept limits of each process by itself"
        }
    }
}

#[cfg(test)]
mod tests;
