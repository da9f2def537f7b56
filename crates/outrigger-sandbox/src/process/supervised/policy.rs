//! What is told to the helper of a command: the command with what the daemon adds.

use std::fs;
use std::path::PathBuf;

use crate::environment::PROXIES;
use crate::outgoing::names;
use crate::pod::RUNTIME;
use crate::policy::{PodFolders, Policy};
use crate::{Command, Mode, Network, Ports, Shared};

/// Returns it without what has to be looked up.
pub(super) fn policy(
    shared: &Shared,
    command: &Command,
    mode: Mode,
    private_tmp: Option<PathBuf>,
) -> Policy {
    let mut command = command.clone();
    if let Some(path) = &private_tmp {
        let path = path.display().to_string();
        command.env.insert("TMPDIR".to_owned(), path.clone());
        command.env.insert("XDG_RUNTIME_DIR".to_owned(), path);
    }
    command.read_only.extend_from_slice(&shared.toolchains);
    let is_apart = mode == Mode::Full && command.pod.is_some();
    if let Network::Outgoing(ports) = &command.network
        && !is_apart
    {
        command.network = match command.hosts {
            None => Network::Host(ports.clone()),
            Some(_) => Network::Off,
        };
    }
    if mode == Mode::Full && command.network.is_own() {
        command.env.retain(|name, _| !PROXIES.contains(&&**name));
    }
    if let Network::Outgoing(Ports::Only(ports)) | Network::Host(Ports::Only(ports)) =
        &mut command.network
    {
        ports.retain(|port| Some(port) != shared.own_port.get());
    }
    // Asked and told in the daemon, not in the helper.
    command.hosts = None;
    command.listening = None;
    Policy {
        mode,
        outside: None,
        command,
        places: Vec::new(),
        home: shared.settings.home.clone(),
        pod: None,
        joins: None,
        stops: Vec::new(),
        caches: Vec::new(),
        names: Vec::new(),
        pins: Vec::new(),
        private_tmp,
        private_bytes: shared.settings.private_bytes,
        landlock: shared.settings.landlock,
    }
}

/// Returns the files about names, by their own paths, and what they say to a command for which the daemon looks names up;
/// none for one without the network.
pub(super) async fn about_names(network: &Network) -> Vec<(PathBuf, String)> {
    if *network == Network::Off {
        return Vec::new();
    }
    let look = || {
        let files = [
            (names::RESOLVER, names::resolver()),
            (names::HOSTS, names::hosts()),
        ];
        let files = files.map(|(path, text)| Some((fs::canonicalize(path).ok()?, text)));
        files.into_iter().flatten().collect::<Vec<_>>()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// Lets a command with the network read the files about names, which are below `/run` on many systems.
pub(super) fn resolve(policy: &mut Policy, files: Vec<(PathBuf, String)>) {
    let command = &mut policy.command;
    if command.network == Network::Off {
        return;
    }
    command
        .read_only
        .extend(files.iter().map(|(path, _)| path.clone()));
    if matches!(command.network, Network::Outgoing(_)) {
        policy.names = files;
    }
}

/// Gives a command the folders of its pod: at the places that they stand for in full mode, by their own paths below it. Where
/// nothing is hidden its home is the user's.
pub(super) fn share(policy: &mut Policy, folders: PodFolders) {
    let command = &mut policy.command;
    let tmp = match policy.mode {
        Mode::Full => PathBuf::from("/tmp"),
        Mode::Limits | Mode::Unverified | Mode::None => folders.tmp.clone(),
        Mode::Fallback => {
            let home = folders.home.display().to_string();
            command.env.insert("HOME".to_owned(), home);
            let own = [&folders.home, &folders.tmp];
            command.read_write.extend(own.into_iter().cloned());
            folders.tmp.clone()
        }
    };
    for (name, path) in [
        ("TMPDIR", tmp.clone()),
        ("XDG_RUNTIME_DIR", tmp.join(RUNTIME)),
    ] {
        command
            .env
            .insert(name.to_owned(), path.display().to_string());
    }
    policy.pod = Some(folders);
}
