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
const PASSED: [&str; 10] = [
    "LANG",
    "LANGUAGE",
    "TZ",
    "USER",
    "LOGNAME",
    "HOME",
    "NODE_ENV",
    "NODE_EXTRA_CA_CERTS",
    "RUSTUP_TOOLCHAIN",
    "GOFLAGS",
];

/// Passed on likewise, but not to what has a network of its own: no proxy is there, and one would be asked for what listens on its
/// loopback.
pub(crate) const PROXIES: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
];

/// The same on Windows, where programs take no notice of case, and hardly one works without the first of them.
const PASSED_ON_WINDOWS: [&str; 29] = [
    "SystemRoot",
    "windir",
    "SystemDrive",
    "ComSpec",
    "PATHEXT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "USERNAME",
    "USERDOMAIN",
    "COMPUTERNAME",
    "APPDATA",
    "LOCALAPPDATA",
    "ALLUSERSPROFILE",
    "PUBLIC",
    "ProgramData",
    "ProgramFiles",
    "ProgramFiles(x86)",
    "ProgramW6432",
    "CommonProgramFiles",
    "CommonProgramFiles(x86)",
    "CommonProgramW6432",
    "PSModulePath",
    "OS",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "PROCESSOR_IDENTIFIER",
];

/// Of what is set whatever the user has, what names programs that only Unix has.
const NOT_ON_WINDOWS: [&str; 3] = ["SHELL", "GIT_ASKPASS", "SSH_ASKPASS"];

/// Where toolchains are: passed when they point to a directory the command may read.
const TOOLCHAINS: [&str; 10] = [
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
];

/// Which authorities are trusted beside the system's, or in their place: passed where the command may read it.
const CERTIFICATES: [&str; 6] = [
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
];

/// Folders of the system that each command may read.
const OF_SYSTEM: [&str; 4] = ["/etc", "/usr", "/opt", "/nix/store"];

/// Set whatever the user has: no pager, editor or question may wait for somebody who is not there.
const FORCED: [(&str, &str); 27] = [
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
    ("npm_config_audit", "false"),
    ("npm_config_fund", "false"),
    ("npm_config_update_notifier", "false"),
    ("HOMEBREW_NO_AUTO_UPDATE", "1"),
    ("COMPOSER_NO_INTERACTION", "1"),
    ("NEXT_TELEMETRY_DISABLED", "1"),
];

/// The same on Windows beside it: `cmd.exe` looks into the working directory before `PATH`, which is the project's, unless
/// it is told not to.
const FORCED_ON_WINDOWS: [(&str, &str); 1] = [("NoDefaultCurrentDirectoryInExePath", "1")];

/// What programs are looked up in when nothing of the daemon's own `PATH` can be used.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The same on Windows.
const WINDOWS_PATH: &str = r"C:\Windows\System32;C:\Windows";

/// The family of systems whose programs are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    Unix,
    Windows,
}

impl System {
    const HERE: Self = match cfg!(windows) {
        true => Self::Windows,
        false => Self::Unix,
    };

    fn default_path(self) -> &'static str {
        match self {
            Self::Unix => DEFAULT_PATH,
            Self::Windows => WINDOWS_PATH,
        }
    }

    /// Returns the name of a variable as it is passed on; `None` where it is not.
    fn passed(self, name: &str, value: &str, is_readable: impl Fn() -> bool) -> Option<String> {
        let toolchain = TOOLCHAINS.contains(&name);
        let certificates = CERTIFICATES.contains(&name);
        let is_of_system = || OF_SYSTEM.iter().any(|it| Path::new(value).starts_with(it));
        match self {
            Self::Unix => {
                let listed = PASSED.contains(&name)
                    || PROXIES.contains(&name)
                    || name.starts_with("LC_")
                    || toolchain && is_readable()
                    || certificates && (is_of_system() || is_readable());
                listed.then(|| name.to_owned())
            }
            // Nothing keeps a command there from reading where they are.
            Self::Windows => PASSED_ON_WINDOWS
                .iter()
                .chain(
                    PASSED
                        .iter()
                        .chain(&PROXIES)
                        .filter(|name| !name.starts_with(char::is_lowercase)),
                )
                .chain(&TOOLCHAINS)
                .chain(&CERTIFICATES)
                .find(|listed| listed.eq_ignore_ascii_case(name))
                .map(|listed| (*listed).to_owned()),
        }
    }

    fn is_path(self, name: &str) -> bool {
        match self {
            Self::Unix => name == "PATH",
            Self::Windows => name.eq_ignore_ascii_case("PATH"),
        }
    }

    fn search_path(self, path: &str, trusted: &dyn Fn(&Path) -> bool) -> String {
        let (separator, mut folders) = match self {
            Self::Unix => {
                let absolute = path.split(':').filter(|folder| folder.starts_with('/'));
                (":", absolute.map(str::to_owned).collect())
            }
            Self::Windows => (";", folders_on_drives(path)),
        };
        folders.retain(|folder| trusted(Path::new(folder)));
        if folders.is_empty() {
            return self.default_path().to_owned();
        }
        for folder in &mut folders {
            if self == Self::Windows && folder.contains(';') {
                *folder = format!("\"{folder}\"");
            }
        }
        folders.join(separator)
    }
}

/// Returns the folders of a `PATH` of Windows that are on a drive: what another machine has is not looked at. Quotes are
/// no part of a folder; a `;` between them is.
pub(crate) fn folders_on_drives(path: &str) -> Vec<String> {
    let mut folders = Vec::new();
    let mut folder = String::new();
    let mut is_quoted = false;
    for letter in path.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ';' if !is_quoted => folders.push(std::mem::take(&mut folder)),
            _ => folder.push(letter),
        }
    }
    folders.push(folder);
    folders.retain(|folder| {
        let mut bytes = folder.bytes();
        bytes
            .next()
            .is_some_and(|drive| drive.is_ascii_alphabetic())
            && bytes.next() == Some(b':')
            && matches!(bytes.next(), Some(b'\\' | b'/'))
    });
    folders
}

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
/// `parent` is the daemon's own. Those that name a directory for temporary files are set by
/// [`Sandbox::spawn`](super::Sandbox::spawn).
pub fn build(
    parent: impl IntoIterator<Item = (String, String)>,
    surroundings: &Surroundings<'_>,
) -> BTreeMap<String, String> {
    build_on(System::HERE, parent, surroundings)
}

fn build_on(
    system: System,
    parent: impl IntoIterator<Item = (String, String)>,
    surroundings: &Surroundings<'_>,
) -> BTreeMap<String, String> {
    let path = system.default_path().to_owned();
    let mut environment = BTreeMap::from([("PATH".to_owned(), path)]);
    for (name, value) in parent {
        if system.is_path(&name) {
            let path = system.search_path(&value, surroundings.trusted);
            environment.insert("PATH".to_owned(), path);
            continue;
        }
        let readable = || (surroundings.readable)(Path::new(&value));
        if let Some(passed) = system.passed(&name, &value, readable)
            && is_harmless(&name, &value, surroundings)
        {
            environment.insert(passed, value);
        }
    }
    let on_windows: &[_] = match system {
        System::Unix => &[],
        System::Windows => &FORCED_ON_WINDOWS,
    };
    let forced = FORCED
        .iter()
        .filter(|(name, _)| system == System::Unix || !NOT_ON_WINDOWS.contains(name))
        .chain(on_windows);
    environment.extend(forced.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    environment
}

fn is_harmless(name: &str, value: &str, surroundings: &Surroundings<'_>) -> bool {
    !secret::is_kept_back(name) && !secret::may_hold_one(value, surroundings.secrets)
}

/// Returns the directories of a `PATH` that commands are looked up in; the system's own where none is trusted.
pub fn search_path(path: &str, trusted: &dyn Fn(&Path) -> bool) -> String {
    System::HERE.search_path(path, trusted)
}

#[cfg(test)]
mod tests;
