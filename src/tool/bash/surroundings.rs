//! What the model is told of where its commands run: a line for each thing that is in force. Pure.

use std::path::Path;
use std::time::Duration;

use crate::config::{HostEntry, NetworkPolicy, PortList};
use crate::sandbox::{Limits, Mode};
use crate::units::{format_duration, format_size};

/// What is in force for commands.
pub(super) struct Surroundings<'a> {
    pub(super) mode: Mode,
    pub(super) project: &'a Path,
    pub(super) central: &'a Path,
    pub(super) network: NetworkPolicy,
    /// TCP ports that a command with the network may connect to.
    pub(super) ports: &'a PortList,
    /// Hosts that each command may connect to; empty where the network is decided about as a whole.
    pub(super) hosts: &'a [HostEntry],
    pub(super) limits: &'a Limits,
    /// How long a command may run that asks for nothing else, and the longest it may ask for.
    pub(super) timeout: Duration,
    pub(super) max_timeout: Duration,
}

impl Surroundings<'_> {
    /// Returns it as a text of a few lines.
    pub(super) fn text(&self) -> String {
        let lines = [
            self.files(),
            self.home(),
            self.loopback(),
            self.network(),
            self.limits(),
        ];
        let lines = lines.map(|line| format!("\n- {line}")).concat();
        format!("Where commands run here (sandbox: {}):{lines}", self.mode)
    }

    fn files(&self) -> String {
        let others = match self.mode {
            Mode::Full => "Other files of the user are not there.",
            Mode::Fallback => "Other files of the user cannot be reached.",
            Mode::Limits | Mode::None => {
                "Nothing keeps a command from other files of the user: leave those alone."
            }
        };
        let (project, central) = (self.project.display(), self.central.display());
        format!(
            "Files: the project is {project}, {central} is for files of your own; commands can change both. {others}"
        )
    }

    fn home(&self) -> String {
        let lasts = "what a command installs or caches there, the next one finds; it is gone when the conversation ends";
        match self.mode {
            Mode::Full => {
                format!("Home: HOME, /tmp and /var/tmp are this conversation's own: {lasts}.")
            }
            Mode::Fallback => format!(
                "Home: $HOME and $TMPDIR are folders of this conversation's own, at other places than usual, and /tmp cannot be used: {lasts}."
            ),
            Mode::Limits | Mode::None => {
                "Home: HOME is the user's; $TMPDIR is new for each command and gone after it."
                    .to_owned()
            }
        }
    }

    fn loopback(&self) -> String {
        let text = match self.mode {
            Mode::Full => {
                "this conversation's commands share a 127.0.0.1 and ::1 of their own, and may listen on any port; services of this machine are not there."
            }
            Mode::Fallback | Mode::Limits => {
                "none: without the network a command has only Unix sockets among its own processes, and it cannot listen on a port."
            }
            Mode::None => "that of this machine.",
        };
        format!("Loopback: {text}")
    }

    fn network(&self) -> String {
        let ports = match self.ports {
            PortList::Any => "all ports".to_owned(),
            PortList::Only(ports) => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                format!("ports {}", ports.join(", "))
            }
        };
        if (self.mode, self.network) == (Mode::Full, NetworkPolicy::Ask) && !self.hosts.is_empty() {
            let hosts: Vec<String> = self.hosts.iter().map(HostEntry::to_string).collect();
            return format!(
                "Network: TCP at {ports}. Hosts that need no question: {}; the user is asked for any other when a command connects to it. `network` is not needed.",
                hosts.join(", ")
            );
        }
        let reach = match self.mode {
            Mode::Full | Mode::Fallback => {
                format!("TCP to other machines at {ports}, and names are looked up")
            }
            Mode::Limits | Mode::None => "every address".to_owned(),
        };
        let text = match (self.mode, self.network) {
            (Mode::None, NetworkPolicy::On) => "on.".to_owned(),
            (Mode::None, _) => {
                "nothing here keeps a command off it; ask for it with `network` all the same."
                    .to_owned()
            }
            (_, NetworkPolicy::Off) => "off; no other machine can be reached.".to_owned(),
            (_, NetworkPolicy::Ask) => {
                format!(
                    "off, unless a call asks for it with `network` and the user agrees; then {reach}."
                )
            }
            (_, NetworkPolicy::On) => format!("on: {reach}."),
        };
        format!("Network: {text}")
    }

    fn limits(&self) -> String {
        let time = format!(
            "{}, or what `timeout` asks for up to {}",
            format_duration(self.timeout),
            format_duration(self.max_timeout)
        );
        let Limits {
            file_size,
            processes,
            data,
            ..
        } = self.limits;
        let size = |bytes: &Option<u64>, what: &str| {
            bytes.map(|bytes| format!("{} {what}", format_size(bytes)))
        };
        let others = [
            processes.map(|count| format!("{count} processes")),
            size(data, "of memory for each"),
            size(file_size, "for a file"),
        ];
        let others = others.into_iter().flatten();
        let all: Vec<String> = match self.mode {
            Mode::None => vec![time],
            _ => std::iter::once(time).chain(others).collect(),
        };
        format!("Limits: {}.", all.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most lines that the model reads of it, those of other parts to come among them.
    const MAX_LINES: usize = 12;

    #[test]
    fn the_model_reads_what_is_in_force() {
        let limits = Limits::default();
        for (mode, network, has, lacks) in [
            (
                Mode::Full,
                NetworkPolicy::Ask,
                &[
                    "(sandbox: full)",
                    "the project is /p, /c is for files",
                    "HOME, /tmp and /var/tmp are this conversation's own",
                    "may listen on any port",
                    "asks for it with `network` and the user agrees; then TCP to other machines at ports 22, 443,",
                    "Limits: 1m, or what `timeout` asks for up to 10m; 512 processes; 3GiB of memory for each; 2GiB for a file.",
                ][..],
                &["TMPDIR", "that of this machine"][..],
            ),
            (
                Mode::Full,
                NetworkPolicy::Off,
                &["off; no other machine"],
                &["`network`", "443"],
            ),
            (
                Mode::Full,
                NetworkPolicy::On,
                &["Network: on: TCP to"],
                &["asks for it with `network`"],
            ),
            (
                Mode::Fallback,
                NetworkPolicy::Ask,
                &[
                    "(sandbox: fallback)",
                    "$HOME and $TMPDIR are folders of this conversation's own, at other places",
                    "cannot listen on a port",
                    "then TCP to",
                ],
                &["/var/tmp", "any port"],
            ),
            (
                Mode::Limits,
                NetworkPolicy::Off,
                &["leave those alone", "HOME is the user's", "512 processes"],
                &["conversation's own"],
            ),
            (
                Mode::None,
                NetworkPolicy::Ask,
                &[
                    "(sandbox: none)",
                    "leave those alone",
                    "nothing here keeps a command off it",
                ],
                &["512", "443"],
            ),
        ] {
            let text = Surroundings {
                mode,
                project: Path::new("/p"),
                central: Path::new("/c"),
                network,
                ports: &PortList::Only(vec![22, 443]),
                hosts: &[],
                limits: &limits,
                timeout: Duration::from_secs(60),
                max_timeout: Duration::from_secs(600),
            }
            .text();
            for part in has {
                assert!(text.contains(part), "{mode} {network:?}: {part:?}: {text}");
            }
            for part in lacks {
                assert!(!text.contains(part), "{mode} {network:?}: {part:?}: {text}");
            }
            assert!(text.lines().count() <= MAX_LINES, "{text}");
        }
    }

    #[test]
    fn hosts_are_named_where_they_decide() {
        let hosts = ["npm", "*.example.org"].map(|it| HostEntry::parse(it).unwrap());
        for (mode, network, names) in [
            (Mode::Full, NetworkPolicy::Ask, true),
            (Mode::Fallback, NetworkPolicy::Ask, false),
            (Mode::Full, NetworkPolicy::On, false),
            (Mode::Full, NetworkPolicy::Off, false),
        ] {
            let text = Surroundings {
                mode,
                project: Path::new("/p"),
                central: Path::new("/c"),
                network,
                ports: &PortList::Any,
                hosts: &hosts,
                limits: &Limits::default(),
                timeout: Duration::from_secs(60),
                max_timeout: Duration::from_secs(600),
            }
            .text();
            let expected =
                "at all ports. Hosts that need no question: npm, *.example.org; the user is asked";
            assert_eq!(text.contains(expected), names, "{text}");
        }
    }
}
