//! The environment a command gets: what is on a list, minus what looks like a secret, plus what keeps it from asking. Pure.
//!
//! Patterns for secrets alone would let `DATABASE_URL` and every custom name through, hence the list.

mod git;

use std::collections::BTreeMap;
use std::path::Path;

use crate::secret;
pub use git::{git_alone, neutral_git};

/// Whether a variable holds a secret, by its name or by the form of its value.
pub fn is_secret(name: &str, value: &str) -> bool {
    secret::is_kept_back(name) || secret::may_hold_one(value, &[])
}

/// Passed on unless the value may hold a secret, as the address of a proxy may.
const PASSED: [&str; 18] = [
    "LANG",
    "LANGUAGE",
    "TZ",
    "USER",
    "LOGNAME",
    "HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "NODE_ENV",
    "NODE_EXTRA_CA_CERTS",
    "RUSTUP_TOOLCHAIN",
    "GOFLAGS",
];

/// Where toolchains are: passed when they point to a directory the command may read.
const TOOLCHAINS: [&str; 12] = [
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "RBENV_ROOT",
    "VOLTA_HOME",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Set whatever the user has: no pager, editor or question may wait for somebody who is not there.
const FORCED: [(&str, &str); 28] = [
    ("SHELL", "/bin/bash"),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("CLICOLOR", "0"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("LESS", "-FRX"),
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("GCM_INTERACTIVE", "never"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
    ("PYTHONUNBUFFERED", "1"),
    ("npm_config_yes", "false"),
    ("npm_config_audit", "false"),
    ("npm_config_fund", "false"),
    ("npm_config_update_notifier", "false"),
    ("HOMEBREW_NO_AUTO_UPDATE", "1"),
    ("COMPOSER_NO_INTERACTION", "1"),
    ("NEXT_TELEMETRY_DISABLED", "1"),
];

/// What programs are looked up in when nothing of the daemon's own `PATH` can be used.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What is known of the machine.
pub struct Surroundings<'a> {
    /// Whether the command may read the directory or file.
    pub readable: &'a dyn Fn(&Path) -> bool,
    /// Whether a directory is safe to take programs from: outside the roots, not writable by everybody.
    pub trusted: &'a dyn Fn(&Path) -> bool,
    /// Values that must not be passed on under any name: the provider keys and the daemon's token.
    pub secrets: &'a [&'a str],
}

/// Returns the environment for a command.
///
/// `parent` is the daemon's own. `TMPDIR` and `XDG_RUNTIME_DIR` are set by [`Sandbox::spawn`](super::Sandbox::spawn).
pub fn build(
    parent: impl IntoIterator<Item = (String, String)>,
    surroundings: &Surroundings<'_>,
) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::from([("PATH".to_owned(), DEFAULT_PATH.to_owned())]);
    for (name, value) in parent {
        if name == "PATH" {
            environment.insert(name, search_path(&value, surroundings.trusted));
        } else if is_passed(&name, &value, surroundings) {
            environment.insert(name, value);
        }
    }
    environment.extend(FORCED.map(|(name, value)| (name.to_owned(), value.to_owned())));
    environment
}

fn is_passed(name: &str, value: &str, surroundings: &Surroundings<'_>) -> bool {
    let listed = PASSED.contains(&name)
        || name.starts_with("LC_")
        || TOOLCHAINS.contains(&name) && (surroundings.readable)(Path::new(value));
    listed && !secret::is_kept_back(name) && !secret::may_hold_one(value, surroundings.secrets)
}

/// Returns the directories of a `PATH` that commands are looked up in; the system's own where none is trusted.
pub fn search_path(path: &str, trusted: &dyn Fn(&Path) -> bool) -> String {
    let directories = path.split(':').map(Path::new);
    let directories = directories.filter(|directory| directory.is_absolute() && trusted(directory));
    let kept: Vec<_> = directories.map(Path::to_string_lossy).collect();
    match kept.is_empty() {
        true => DEFAULT_PATH.to_owned(),
        false => kept.join(":"),
    }
}

#[cfg(test)]
mod tests;
