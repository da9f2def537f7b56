//! Checks of this machine: folders, sandbox, port, programs.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use secrecy::ExposeSecret;

use super::Machine;
use super::finding::{Finding, State};
use super::hooks::doubtful;
use super::layers::{self, Facts};
use super::user_ids;
use crate::commands::{ProgramSearch, healthcheck};
use crate::config::{McpTransport, SandboxPolicy};
use crate::process::{self, SET_TMPDIR};
use crate::sandbox::programs::find;
use crate::sandbox::{self, Mode, Sandbox, SandboxReport, caches};
use crate::tool::exec::repository_above;

/// The program that starts most MCP servers.
const NPX: &str = "npx";

/// Whether the project and its central storage can be written.
pub(super) fn project(machine: &Machine) -> Vec<Finding> {
    let project = match &machine.loaded.config.project.own {
        Ok(project) => project,
        Err(why) => {
            let none = Finding::new("project", State::Warning, why.as_str());
            let advice = "without one the daemon starts, and has no tools for files and commands";
            return vec![none.advise(advice)];
        }
    };
    let root = shown(&project.root);
    let found = |state, text: String| Finding::new("project", state, text);
    let root = match (project.root.is_dir(), is_writable(&project.root)) {
        (true, true) => found(State::Ok, root),
        (true, false) => found(State::Warning, format!("{root} cannot be written")).advise(
            "file_write and file_edit will fail; change its owner or mode, or project.root",
        ),
        (false, _) => found(State::Failed, format!("{root} is no folder"))
            .advise("set project.root (--project-root)"),
    };
    let central = shown(&project.central);
    let found = |state, text: String| Finding::new("central", state, text);
    let central = match nearest(&project.central) {
        Some(there) if is_writable(&there) => found(State::Ok, central),
        _ => found(
            State::Failed,
            format!("{central} cannot be made or written"),
        )
        .advise("set project.central to a folder that this user may write"),
    };
    vec![root, central]
}

/// What confines commands here, and layer by layer why it is not more.
pub(super) async fn sandbox(machine: &Machine) -> Vec<Finding> {
    let found = |state, text: &str| Finding::new("sandbox", state, text);
    let policy = machine.loaded.config.tools.bash.sandbox;
    if policy == SandboxPolicy::Off {
        let off = found(State::Warning, "off; commands can do what you can");
        let off = off.advise("set tools.bash.sandbox = \"auto\"");
        let users = user_ids::unconfined(&machine.loaded.config);
        return [off].into_iter().chain(users).collect();
    }
    let home = machine.sources.home.as_deref();
    let caches = caches::find(home, &machine.loaded.config.tools.bash.caches);
    let settings = sandbox::Settings {
        caches: caches.folders,
        unverified: policy == SandboxPolicy::Unverified,
        user_ids: machine.loaded.config.user_ids,
        ..sandbox::Settings::new(machine.sources.home.clone())
    };
    let sandbox = Sandbox::new(settings.off_memory());
    let report = sandbox.report().await;
    let layers = layers::layers(&report, &Facts::find());
    let caches = match report.mode {
        Mode::Full => cache_findings(&report, caches.missing),
        _ => Vec::new(),
    };
    let user_ids = user_ids::user_ids(machine, &sandbox).await;
    let useless = without_effect(machine, &report);
    [vec![mode(&report)], layers, useless, caches, user_ids].concat()
}

/// Whether commands can have temporary files, where not.
pub(super) fn temporary() -> Vec<Finding> {
    let folder = sandbox::Settings::new(None).off_memory().temporary;
    let found = process::unwritable(&folder).map(|why| {
        let shown = folder.display();
        let text = format!("{shown} cannot be written ({why}): commands will fail");
        Finding::new("temporary", State::Failed, text).advise(SET_TMPDIR)
    });
    found.into_iter().collect()
}

/// Variables by which programs find a proxy, in either case.
const PROXIES: [&str; 6] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Settings of commands and of the machine that what confines commands leaves without effect.
fn without_effect(machine: &Machine, report: &SandboxReport) -> Vec<Finding> {
    let found = |text: String| Finding::new("sandbox", State::Warning, text);
    let environment = &machine.sources.environment;
    let proxy = PROXIES.iter().find(|name| environment.get(name).is_some());
    let proxy = proxy.filter(|_| report.mode == Mode::Full).map(|name| {
        found(format!("{name} is set, and commands connect directly, not by a proxy")).advise(
            "where the proxy is the only way out, fetch what commands need yourself and share it: tools.bash.caches",
        )
    });
    let bash = &machine.loaded.config.tools.bash;
    let useless = bash.without_effect(report.mode).into_iter().map(|text| {
        found(text).advise("the lines above say what is missing for mode full; or remove it")
    });
    let project = machine.loaded.config.project.own.as_ref().ok();
    let confined = project.filter(|_| report.mode >= Mode::Fallback);
    let above = confined.and_then(|project| repository_above(&project.root));
    let above = above.map(|above| {
        let text = format!(
            "the project is a folder of the repository {}, which git does not find from there",
            shown(&above)
        );
        found(text).advise(
            "commands reach the project alone; for git, take the repository's folder as the project (--project-root)",
        )
    });
    useless.chain(proxy).chain(above).collect()
}

/// What confines commands, in all.
fn mode(report: &SandboxReport) -> Finding {
    let layers = match report.commands.as_slice() {
        [] => String::new(),
        layers => format!(" ({})", layers.join(", ")),
    };
    let text = format!("mode {}{layers}", report.mode);
    let found = |state| Finding::new("sandbox", state, text);
    match report.mode {
        Mode::Full => found(State::Ok),
        Mode::Unverified => found(State::Warning).advise(
            "what confines commands here was never tried on a real machine: count on nothing; for what is tried, run the daemon in a container or virtual machine",
        ),
        _ if cfg!(not(target_os = "linux")) => found(State::Warning).advise(
            "commands are confined on Linux only; run the daemon in a container or virtual machine, or set tools.bash.sandbox = \"unverified\" for what was never tried on a real machine",
        ),
        _ => found(State::Warning)
            .advise("what is missing for mode full is below, and what brings it"),
    }
}

/// How commands see caches: those that are configured, and those that they see in any case.
fn cache_findings(report: &SandboxReport, missing: Vec<String>) -> Vec<Finding> {
    let found = |state, text: String| Finding::new("cache", state, text);
    let seen = report.caches.iter().map(|(place, can_add)| match can_add {
        true => found(State::Ok, shown(place)),
        false => found(State::Warning, format!("{}: commands read it and cannot add to it", shown(place)))
            .advise("let the kernel mount an overlay in a user namespace (Linux 5.11), with the temporary files on a disk: set TMPDIR to a folder there"),
    });
    let missing = missing.into_iter().map(|name| {
        found(
            State::Absent,
            format!("{name}: there is nothing of it in the home"),
        )
        .advise("nothing to do; commands begin with an empty one")
    });
    seen.chain(missing).collect()
}

/// Returns whether the daemon of this configuration runs, as far as that can be known.
pub(super) async fn runs_here(machine: &Machine) -> bool {
    let address = machine.loaded.config.server.address();
    // In a container nobody else can have taken the port, and be given the token.
    match &machine.loaded.token {
        Some(token) if sandbox::is_container() && address.port() != 0 => {
            healthcheck::takes_token(address, token).await
        }
        _ => false,
    }
}

/// Whether the daemon could listen.
pub(super) async fn port(machine: &Machine) -> Vec<Finding> {
    let address = machine.loaded.config.server.address();
    let found = |state, text: String| Finding::new("port", state, text);
    if address.port() == 0 {
        let any = format!("the system chooses a free one at {} (port 0)", address.ip());
        return vec![found(State::Ok, any)];
    }
    let Err(problem) = TcpListener::bind(address) else {
        return vec![found(State::Ok, format!("{address} is free"))];
    };
    if runs_here(machine).await {
        let ours = format!("the daemon with this token runs at {address}");
        return vec![found(State::Ok, ours)];
    }
    vec![match healthcheck::is_alive(address).await {
        true => found(
            State::Warning,
            format!("a daemon answers at {address} already"),
        )
        .advise("a second one needs another port: --port or server.port; 0 takes a free one"),
        false => found(State::Failed, format!("{address}: {problem}"))
            .advise("choose another port with --port or server.port; 0 takes a free one"),
    }]
}

/// Whether the programs that MCP servers are started with are there.
pub(super) fn programs(machine: &Machine) -> Vec<Finding> {
    let path = machine.sources.environment.get("PATH").unwrap_or_default();
    let trusted = ProgramSearch::new(&machine.loaded, &machine.sources).path;
    let mut findings = Vec::new();
    for (name, server) in &machine.loaded.config.mcp.servers {
        let McpTransport::Stdio(server) = &server.transport else {
            continue;
        };
        let command = &server.command;
        let own = server.env.get("PATH").map(ExposeSecret::expose_secret);
        let found = |state, text: String| Finding::new("mcp", state, format!("{name}: {text}"));
        findings.push(match find(own.unwrap_or(&trusted), command) {
            Some(program) => found(State::Ok, shown(&program)),
            None if find(path, command).is_some() => found(
                State::Failed,
                format!("`{command}` lies where not only you or root can write, and is not taken from there"),
            )
            .advise(format!(
                "set mcp.servers.{name}.command to its absolute path, or PATH in mcp.servers.{name}.env"
            )),
            None => found(State::Failed, format!("there is no program `{command}`")).advise(format!(
                "install it, or set mcp.servers.{name}.command to its absolute path"
            )),
        });
        // By its place: an argument may be a secret. Paths of a container are none of this machine.
        let is_container = ["docker", "podman"].iter().any(|it| command.ends_with(it));
        let doubtful = doubtful(&server.args).filter(|_| !is_container);
        findings.extend(doubtful.map(|(at, _, problem)| {
            let text = format!("mcp.servers.{name}.args, number {}: {problem}", at + 1);
            found(State::Warning, text)
                .advise("a server that does not find a file of its own does not start")
        }));
    }
    findings.push(match find(path, NPX) {
        Some(found) => Finding::new(NPX, State::Ok, shown(&found)),
        None => Finding::new(NPX, State::Absent, "not on PATH")
            .advise("most MCP servers are started with it; it comes with Node.js"),
    });
    findings
}

pub(super) fn is_writable(path: &Path) -> bool {
    process::unwritable(path).is_none()
}

/// The nearest folder on the way to a path that is there.
pub(super) fn nearest(path: &Path) -> Option<PathBuf> {
    path.ancestors()
        .find(|ancestor| ancestor.exists())
        .filter(|ancestor| ancestor.is_dir())
        .map(Path::to_owned)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_yet_counts_as_its_nearest() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(
            nearest(&place.path().join("a/b/c")),
            Some(place.path().to_owned())
        );
        assert_eq!(nearest(place.path()), Some(place.path().to_owned()));
        assert_eq!(nearest(&file.join("below")), None);
    }
}
