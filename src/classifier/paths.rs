//! Paths that matter, by their text alone: protected trees, devices, secrets, files that are run later.

use std::path::Path;
use std::sync::LazyLock;

use super::expand::{Arg, UNKNOWN};
use super::scope::Scope;
use super::table::wildcard;
use crate::sandbox::deny;

/// System directories in which everything is protected.
const SYSTEM_TREES: [&str; 16] = [
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "usr",
    "System", "Library", "Windows", "private",
];

/// Directories that are protected themselves, with what is directly in them.
const SHARED_PARENTS: [&str; 3] = ["home", "Users", "var"];

/// Directories that are protected themselves, but not what is in them.
const SYSTEM_ROOTS: [&str; 11] = [
    "opt",
    "srv",
    "mnt",
    "media",
    "run",
    "root",
    "snap",
    "nix",
    "Volumes",
    "Applications",
    "lost+found",
];

/// What is in `/dev` without being a disk.
const HARMLESS_DEVICES: [&str; 16] = [
    "null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr", "fd", "pts",
    "shm", "ptmx", "console", "tcp", "udp",
];

/// Longest chain of `..` that is not taken for a climb to the root.
const MAX_CLIMB: usize = 2;

fn parts(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|part| match part {
            std::path::Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect()
}

/// Whether the component is nothing but wildcards: everything in its directory.
fn is_everything(part: &str) -> bool {
    part.contains(['*', '?']) && part.chars().all(|c| "*?.[]!^".contains(c))
}

/// Whether the last part of the path is nothing but wildcards.
pub(super) fn names_everything(path: &str) -> bool {
    is_everything(path.rsplit('/').next().unwrap_or_default())
}

/// Whether the argument names the root, a system directory, a home, or everything in one of them.
pub(super) fn protected(arg: &Arg, scope: &Scope) -> bool {
    let climb = arg
        .text
        .split('/')
        .filter(|part| !matches!(*part, "" | ".") && !is_everything(part))
        .collect::<Vec<_>>();
    if climb.len() > MAX_CLIMB && climb.iter().all(|part| *part == "..") {
        return true;
    }
    if arg.text.starts_with(UNKNOWN) {
        return false;
    }
    let Some(path) = scope.resolve(&arg.text) else {
        return false;
    };
    let mut parts = parts(&path);
    while parts.last().is_some_and(|part| is_everything(part)) {
        parts.pop();
    }
    let stripped = parts.join("/");
    let home = scope.home.trim_start_matches('/');
    let is = |names: &[&str], part: &str| names.iter().any(|name| glob_matches(part, name, arg));
    match parts.as_slice() {
        [] => true,
        _ if !home.is_empty()
            && (stripped == home || home.starts_with(&format!("{stripped}/"))) =>
        {
            true
        }
        _ if scope.is_own(&path) => false,
        [first, second, ..] if first == "dev" && second == "shm" => parts.len() < 3,
        [first, rest @ ..] => {
            is(&SYSTEM_TREES, first)
                || (rest.is_empty() && is(&SYSTEM_ROOTS, first))
                || (rest.len() < 2 && is(&SHARED_PARENTS, first))
        }
    }
}

fn glob_matches(part: &str, name: &str, arg: &Arg) -> bool {
    part == name || (arg.glob && wildcard(&plain_glob(part), name))
}

/// Turns `[…]` into `?`.
pub(super) fn plain_glob(part: &str) -> String {
    let mut plain = String::new();
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        plain.push('?');
        rest = after.split_once(']').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    plain
}

/// Whether the path is a device that holds data, or memory.
pub(super) fn data_device(arg: &Arg, scope: &Scope) -> bool {
    let Some(path) = scope.resolve(&arg.text) else {
        return false;
    };
    match parts(&path).as_slice() {
        [dev, name, ..] if dev == "dev" => !HARMLESS_DEVICES.contains(&name.as_str()),
        _ => false,
    }
}

/// Whether writing there acts on the kernel directly.
pub(super) fn kernel_trigger(arg: &Arg) -> bool {
    arg.text.contains("sysrq") && arg.text.contains("/proc")
}

/// Whether the argument is a network path of bash.
pub(super) fn network_path(arg: &Arg) -> bool {
    ["/dev/tcp/", "/dev/udp/"]
        .iter()
        .any(|prefix| arg.text.contains(prefix))
}

/// Names of files and directories whose content is run later by something else.
const RUN_LATER: [&str; 60] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    "config.fish",
    ".inputrc",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".xprofile",
    ".pam_environment",
    ".envrc",
    ".gitconfig",
    ".gitmodules",
    ".vimrc",
    ".exrc",
    ".emacs",
    ".emacs.d",
    ".gdbinit",
    ".tmux.conf",
    ".curlrc",
    ".wgetrc",
    ".npmrc",
    ".pypirc",
    ".netrc",
    ".ssh",
    "authorized_keys",
    ".gnupg",
    ".git",
    "autostart",
    "launchagents",
    "launchdaemons",
    ".husky",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".mcp.json",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    "crontabs",
    "cron.d",
    ".screenrc",
    ".pythonrc",
    ".rprofile",
    ".irbrc",
];

/// Pairs of a directory and what is in it, with the same effect.
const RUN_LATER_BELOW: [(&str, &str); 12] = [
    (".config", "systemd"),
    (".config", "fish"),
    (".config", "git"),
    (".config", "nvim"),
    (".config", "environment.d"),
    (".config", "zsh"),
    (".config", "pip"),
    (".config", "outrigger"),
    (".local", "bin"),
    (".cargo", "config.toml"),
    (".cargo", "bin"),
    (".kde", "autostart-scripts"),
];

/// Why writing what another program runs later is more than changing a file.
pub(super) const RUNS_LATER: &str = "writes where another program will run or trust it later";

/// Returns the parts of the path, resolved as far as the line tells, folded.
fn folded_parts(arg: &Arg, scope: &Scope) -> Vec<String> {
    let path = match scope.resolve(&arg.text) {
        Some(path) => path,
        None => Path::new("/unknown").join(arg.text.trim_start_matches('/')),
    };
    parts(&path).iter().map(|part| fold(part)).collect()
}

/// Whether another program will run or trust later what is written there.
pub(super) fn runs_later(arg: &Arg, scope: &Scope) -> bool {
    let parts = folded_parts(arg, scope);
    let below = |pair: &[String]| matches!(pair, [a, b] if RUN_LATER_BELOW.contains(&(a.as_str(), b.as_str())));
    parts.iter().any(|part| RUN_LATER.contains(&part.as_str())) || parts.windows(2).any(below)
}

/// Says why writing there is more than changing a file of the project.
pub(super) fn sensitive_write(arg: &Arg, scope: &Scope) -> Option<&'static str> {
    if runs_later(arg, scope) {
        return Some(RUNS_LATER);
    }
    let resolved = scope.resolve(&arg.text);
    if resolved.is_some_and(|path| scope.is_own(&path)) {
        return None;
    }
    match folded_parts(arg, scope).as_slice() {
        [dev, ..] if dev == "dev" => None,
        [first, ..] if SYSTEM_TREES.iter().any(|name| fold(name) == *first) => {
            Some("writes to a system directory")
        }
        [first, second, ..] if first == "var" && second != "tmp" => {
            Some("writes to a system directory")
        }
        [first, ..] if first == "root" && !scope.home.starts_with("/root") => {
            Some("writes to the home of root")
        }
        _ => None,
    }
}

/// Whether the path is known to be outside both roots.
pub(super) fn outside(arg: &Arg, scope: &Scope, roots: &[&Path]) -> bool {
    !arg.text.starts_with(UNKNOWN)
        && scope
            .resolve(&arg.text)
            .is_some_and(|path| !roots.iter().any(|root| path.starts_with(root)))
}

/// Whether two paths end in the same name, a dynamic one being any.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    let name = |path| str::rsplit(path, '/').next().unwrap_or_default();
    let (a, b): (&str, &str) = (name(a), name(b));
    !b.is_empty() && (a == b || a.contains(UNKNOWN) && b.contains(UNKNOWN))
}

/// What is secret in a home or in the system, beside what `deny` says of every project; `*` is any text.
const MORE_NAMES: [&str; 24] = [
    "_netrc",
    ".bash_history",
    ".zsh_history",
    ".psql_history",
    ".mysql_history",
    ".python_history",
    ".node_repl_history",
    ".rediscli_history",
    ".sqlite_history",
    ".password-store",
    ".vault-token",
    ".boto",
    ".s3cfg",
    ".mylogin.cnf",
    "shadow",
    "gshadow",
    "sudoers",
    "shadow-",
    "master.passwd",
    "*.asc",
    ".gem",
    "*.ovpn",
    "authorized_keys",
    "opasswd",
];

/// The same of directories in which every file is one.
const MORE_DIRECTORIES: [&str; 5] = [
    ".password-store",
    ".azure",
    ".gcloud",
    "keyrings",
    ".mozilla",
];

/// The same of files that are secret in one directory only. Git's own settings can hold credentials.
const MORE_BELOW: [(&str, &str); 6] = [
    (".config", "gh"),
    (".git", "config"),
    (".m2", "settings.xml"),
    (".config", "op"),
    (".config", "hub"),
    (".local", "share/keyrings"),
];

/// The names, directories and pairs by which a file is secret.
struct Secrets {
    names: Vec<&'static str>,
    directories: Vec<&'static str>,
    below: Vec<(&'static str, &'static str)>,
}

/// Those of the deny list, and the further ones: one table, so that no reader knows less than the others.
static SECRETS: LazyLock<Secrets> = LazyLock::new(|| {
    let mut secrets = Secrets {
        names: MORE_NAMES.to_vec(),
        directories: MORE_DIRECTORIES.to_vec(),
        below: MORE_BELOW.to_vec(),
    };
    for glob in deny::names_of_secrets() {
        let path = glob.trim_start_matches("**/");
        match path.split_once('/') {
            None => secrets.names.push(path),
            Some((directory, "**")) => secrets.directories.push(directory),
            Some((directory, name)) => {
                let name = name.strip_suffix("/**").unwrap_or(name);
                secrets.below.push((directory, name));
            }
        }
    }
    secrets
});

/// Says why the file should not be read, if it is on the deny list or a glob may match such a file.
pub(super) fn denied(arg: &Arg, scope: &Scope) -> Option<&'static str> {
    let text = &arg.text;
    let resolved = scope.resolve(text);
    // What is not known is folded to nothing: `${X}.env` counts as `.env`.
    let folded: Vec<String> = match &resolved {
        Some(path) => parts(path).iter().map(|part| fold(part)).collect(),
        None => text
            .split('/')
            .filter(|part| !matches!(*part, "" | "." | ".."))
            .map(fold)
            .collect(),
    };
    if let [proc, process, ..] = folded.as_slice()
        && glob_matches(proc, "proc", arg)
        && (process.starts_with(|c: char| c.is_ascii_digit() || "*?[".contains(c))
            || process.is_empty()
            || matches!(process.as_str(), "self" | "thread-self" | "kcore" | "kmem"))
    {
        return Some("reads the memory or environment of a process");
    }
    // A file name that is `repo:path`, as git has it, counts by its path.
    let last = folded.last()?;
    let file = last.rsplit(':').next().unwrap_or(last);
    let directories = folded.iter().take(folded.len() - 1);
    let denied = is_denied_name(file, arg.glob)
        || directories
            .clone()
            .chain([last])
            .any(|part| SECRETS.directories.iter().any(|name| glob_covers(part, name, arg.glob)))
        || folded.windows(2).any(|pair| {
            matches!(pair, [a, b] if SECRETS.below.iter().any(|(x, y)| a.rsplit(':').next() == Some(*x) && (wildcard(y, b) || glob_covers(b, y, arg.glob))))
        });
    denied.then_some("reads a file that may hold secrets")
}

fn is_denied_name(name: &str, glob: bool) -> bool {
    if deny::is_shared(name) {
        return false;
    }
    let mut names = SECRETS.names.iter();
    names.any(|pattern| wildcard(pattern, name) || (glob && glob_covers(name, pattern, true)))
}

/// Whether a glob may match a name of the deny list.
///
/// `*` and `*.txt` match nearly any name, which tells nothing; a glob counts that spells a part of one out.
fn glob_covers(part: &str, pattern: &str, glob: bool) -> bool {
    if !glob || !part.contains(['*', '?', '[']) {
        return part == pattern;
    }
    let part = plain_glob(part);
    // Hidden names are matched only by globs that begin with the dot.
    if pattern.starts_with('.') && !part.starts_with('.') {
        return false;
    }
    let spelled = part.trim_start_matches(['*', '?']);
    let tells = if part.starts_with(['*', '?']) && spelled.starts_with('.') {
        pattern.starts_with("*.")
    } else {
        !spelled.is_empty()
    };
    let sample = pattern.trim_matches('*');
    let samples = [
        sample.to_owned(),
        format!("{sample}s"),
        format!("{sample}.json"),
        pattern.replace('*', "x"),
    ];
    tells && samples.iter().any(|sample| wildcard(&part, sample))
}

/// Folds a name as the deny list does, and takes out what a terminal does not show.
fn fold(name: &str) -> String {
    deny::fold(name)
        .chars()
        .filter(|c| !crate::terminal_text::is_invisible(*c))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Surroundings;
    use super::*;

    /// Each glob of the deny list makes a path secret here too.
    #[test]
    fn what_file_tools_do_not_read_is_secret_in_a_line() {
        let scope = Scope::new(&Surroundings {
            project_root: Path::new("/p"),
            central_root: Path::new("/c"),
            home: Some(Path::new("/h")),
            trusted_program: &|_| true,
            unhidden: None,
        });
        let is_secret = |path: &str| denied(&Arg::literal(path), &scope).is_some();
        for glob in deny::names_of_secrets() {
            let path = glob.replace("**", "x").replace('*', "x");
            assert!(is_secret(&path), "{glob} {path}");
        }
        assert!(!is_secret(".env.example"));
        assert!(is_secret("ſecret.txt"));
    }
}
