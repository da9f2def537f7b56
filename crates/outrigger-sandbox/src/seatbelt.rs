//! What `sandbox-exec` of macOS is told about a command: a profile and its parameters. Pure, so that it is tried on every
//! system. Built from documents and from what others use, and never run on a real machine.
//!
//! Of the rules that match, the last one counts. So those about paths stand in the order of their depth: a root inside of a
//! folder that is denied stays open, and a secret inside of a root stays closed. No path is ever a part of the profile's
//! text: each is a parameter (`-D`), so that no name of a file can be taken for a rule.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::{Command, GitAccess, Network, Ports};

/// By its path: what a `PATH` finds may be anybody's.
pub(crate) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Most paths that a profile names. Arguments and environment together have 1 MiB.
const MAX_PATHS: usize = 2_000;

/// What every program needs, and nothing that leads out: libraries, settings of the system, who its users are, tools for
/// developers. Of the machine's preferences only those of the log and of Xcode, where it stands which licence was agreed to:
/// without that one, and without the link to the Xcode that was chosen, `/usr/bin/git` and `clang` end with a question.
const SYSTEM: [&str; 19] = [
    "/System",
    "/usr",
    "/bin",
    "/sbin",
    "/opt",
    "/nix",
    "/Library/Apple",
    "/Library/Developer",
    "/Library/Frameworks",
    "/Library/Java",
    "/Library/Preferences/Logging",
    "/Library/Preferences/com.apple.dt.Xcode.plist",
    "/Applications/Xcode.app/Contents/Developer",
    "/private/etc",
    "/private/var/db/DarwinDirectory/local/recordStore.data",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/private/var/db/xcode_select_link",
    "/private/var/select",
];

const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/dtracehelper",
];

/// Links at the top of the system: what they lead to lies below `/private`, and by that name the kernel knows it.
const LINKS: [&str; 3] = ["/tmp", "/var", "/etc"];

/// What is allowed to every command besides files and the network.
const BASE: &str = "(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))
";

/// What looking names up and checking certificates takes.
const NETWORK: &str = "(allow system-socket)
(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))
(allow mach-lookup (global-name \"com.apple.SystemConfiguration.configd\") (global-name \"com.apple.trustd.agent\"))
";

/// What a command may do to git's own files, below a `.git`.
const SETTINGS: [&str; 5] = ["config", "config.worktree", "hooks", "commondir", "gitdir"];

/// What a command is to be confined by.
#[derive(Debug)]
pub(crate) struct Confinement<'a> {
    pub(crate) command: &'a Command,
    /// A folder of the command's own, for its home and temporary files.
    pub(crate) private: &'a Path,
    /// Compilers and caches of packages below the user's home.
    pub(crate) toolchains: &'a [PathBuf],
    /// The daemon's own port, to which no command may connect.
    pub(crate) own_port: Option<u16>,
    /// Where the proxy listens that a command goes by for which hosts are decided about.
    pub(crate) proxy: Option<u16>,
}

/// More paths have to be named than a profile can.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl fmt::Display for TooMany {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "more than {MAX_PATHS} secrets, repositories and folders have to be named to macOS's sandbox; choose a smaller folder as the project"
        )
    }
}

/// A rule about one path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    path: PathBuf,
    allows: bool,
    operations: &'static str,
    /// Whether what is below it is meant too.
    is_tree: bool,
}

impl Confinement<'_> {
    /// Returns the arguments of [`PROGRAM`] with which it runs the command.
    ///
    /// # Errors
    /// [`TooMany`]
    pub(crate) fn arguments(&self) -> Result<Vec<OsString>, TooMany> {
        let rules = self.rules();
        if rules.len() > MAX_PATHS {
            return Err(TooMany);
        }
        let mut profile = BASE.to_owned();
        let mut parameters = Vec::new();
        for (number, rule) in rules.iter().enumerate() {
            let verb = if rule.allows { "allow" } else { "deny" };
            let filter = if rule.is_tree { "subpath" } else { "literal" };
            let operations = rule.operations;
            // Nothing that can go wrong: it is written to a text.
            writeln!(
                profile,
                "({verb} {operations} ({filter} (param \"P{number}\")))"
            )
            .unwrap_or_default();
            let mut parameter = OsString::from(format!("P{number}="));
            parameter.push(&rule.path);
            parameters.extend([OsString::from("-D"), parameter]);
        }
        profile.push_str(&self.network());
        let mut arguments = vec![OsString::from("-p"), OsString::from(profile)];
        arguments.append(&mut parameters);
        arguments.push("--".into());
        arguments.push((&self.command.program).into());
        arguments.extend(self.command.args.iter().map(OsString::from));
        Ok(arguments)
    }

    /// Returns the rules about paths, of which the last that matches counts.
    fn rules(&self) -> Vec<Rule> {
        let rule = |path: &Path, allows, operations, is_tree| Rule {
            path: real(path),
            allows,
            operations,
            is_tree,
        };
        let allow = |path: &Path, operations| rule(path, true, operations, true);
        let command = self.command;
        let own = std::slice::from_ref(&command.cwd);
        let mut rules: Vec<Rule> = SYSTEM
            .iter()
            .map(Path::new)
            .chain(command.read_only.iter().map(PathBuf::as_path))
            .chain(self.toolchains.iter().map(PathBuf::as_path))
            .chain(own.iter().map(PathBuf::as_path))
            .map(|path| allow(path, READ))
            .collect();
        rules.extend(DEVICES.map(|path| {
            rule(
                Path::new(path),
                true,
                "file-read* file-write-data file-ioctl",
                false,
            )
        }));
        rules.push(allow(Path::new("/dev/fd"), "file-read* file-write-data"));
        rules.extend(LINKS.map(|path| Rule {
            path: path.into(),
            allows: true,
            operations: PASSED,
            is_tree: false,
        }));
        // The kernel reads the root folder, and it alone, whenever a program is executed: where that is denied, none starts.
        rules.push(rule(Path::new("/"), true, "file-read-data", false));
        let changed: Vec<&Path> = command
            .read_write
            .iter()
            .map(PathBuf::as_path)
            .chain([self.private])
            .collect();
        rules.extend(changed.iter().map(|path| allow(path, CHANGE)));
        // The way to each of them can be gone, and not be listed.
        let ways: Vec<Rule> = rules
            .iter()
            .filter(|rule| rule.allows)
            .flat_map(|rule| rule.path.ancestors().skip(1))
            .map(|path| Rule {
                path: path.to_owned(),
                allows: true,
                operations: PASSED,
                is_tree: false,
            })
            .collect();
        rules.extend(ways);
        let hidden = command.hidden.iter().map(|path| (path.clone(), HIDDEN));
        for (path, operations) in hidden.chain(self.repositories()) {
            let closed = rule(&path, false, operations, true);
            // Under another name it would be open: neither it nor what it lies in is moved.
            let roots = command.read_write.iter().map(|root| real(root));
            let ways: Vec<Rule> = roots
                .filter(|root| closed.path.starts_with(root))
                .flat_map(|root| {
                    let above = closed.path.ancestors().skip(1);
                    let above = above.take_while(move |path| path.starts_with(&root));
                    above.map(Path::to_owned).collect::<Vec<_>>()
                })
                .map(|path| Rule {
                    path,
                    allows: false,
                    operations: "file-write-unlink",
                    is_tree: false,
                })
                .collect();
            rules.push(closed);
            rules.extend(ways);
        }
        // Those of one path stay in the order in which they were made: what closes it comes after what opens it.
        rules.sort_by_key(|rule| rule.path.components().count());
        let mut unique: Vec<Rule> = Vec::with_capacity(rules.len());
        let mut seen = std::collections::HashSet::new();
        // From the end, since the last of two that are the same is the one that counts.
        for rule in rules.into_iter().rev() {
            if seen.insert((
                rule.path.clone(),
                rule.allows,
                rule.operations,
                rule.is_tree,
            )) {
                unique.push(rule);
            }
        }
        unique.reverse();
        unique
    }

    /// Returns what of git's own the command may not change, in the roots.
    fn repositories(&self) -> Vec<(PathBuf, &'static str)> {
        let command = self.command;
        let tops = command.read_write.iter().map(|root| root.join(".git"));
        let all: Vec<PathBuf> = tops.chain(command.repositories.iter().cloned()).collect();
        let parts: &[&str] = match command.git {
            GitAccess::ReadOnly | GitAccess::ExistingReadOnly => &[""],
            GitAccess::Write | GitAccess::Create => &SETTINGS,
            GitAccess::Nested => &["hooks"],
        };
        let below = |git: &PathBuf| {
            let git = git.clone();
            parts.iter().map(move |part| match *part {
                "" => (git.clone(), CHANGED),
                part => (git.join(part), CHANGED),
            })
        };
        let mut found: Vec<_> = all.iter().flat_map(below).collect();
        if command.git <= GitAccess::ExistingReadOnly {
            let beside = all.iter().filter_map(|git| git.parent());
            found.extend(beside.map(|folder| (folder.join(".husky"), CHANGED)));
        }
        found
    }

    /// Returns the rules about the network; nothing where the command has none.
    fn network(&self) -> String {
        let ports = match &self.command.network {
            Network::Off => return String::new(),
            Network::Outgoing(_) if self.command.hosts.is_some() => {
                // The rules know no names: the proxy does, and it is all that there is.
                let proxy =
                    |port| format!("(allow network-outbound (remote tcp \"localhost:{port}\"))\n");
                return self.proxy.map(proxy).unwrap_or_default();
            }
            Network::Outgoing(ports) | Network::Host(ports) => ports,
        };
        let mut text = NETWORK.to_owned();
        let mut allow = |what: &str| {
            writeln!(text, "(allow network-outbound (remote {what}))").unwrap_or_default();
        };
        match ports {
            Ports::Any => allow("tcp \"*:*\""),
            Ports::Only(ports) => ports
                .iter()
                .for_each(|port| allow(&format!("tcp \"*:{port}\""))),
        }
        allow("udp \"*:*\"");
        if let Some(port) = self.own_port {
            writeln!(text, "(deny network-outbound (remote tcp \"*:{port}\"))").unwrap_or_default();
        }
        text
    }
}

const READ: &str = "file-read* file-test-existence file-map-executable";
const CHANGE: &str = "file-read* file-test-existence file-map-executable file-write*";
/// What is open of a folder that is only on the way.
const PASSED: &str = "file-read-metadata file-test-existence";
/// What is closed of a secret: it can be seen to be there, and no more.
const HIDDEN: &str = "file-read-data file-read-xattr file-write*";
/// What is closed of git's own.
const CHANGED: &str = "file-write*";

/// Returns the name by which the kernel knows a path.
fn real(path: &Path) -> PathBuf {
    match LINKS.iter().any(|link| path.starts_with(link)) {
        true => {
            let below = path.strip_prefix("/").unwrap_or(path);
            Path::new("/private").join(below)
        }
        false => path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
