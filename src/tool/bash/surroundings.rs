//! What the model is told of where its commands run: a line for each thing that is in force. Pure.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{HostEntry, NetworkPolicy, PortList};
use crate::sandbox::paths::Reach;
use crate::sandbox::{HeldBy, Limits, LimitsReport, Mode, caches};
use crate::units::{format_duration, format_size};

/// What is in force for commands.
pub(super) struct Surroundings<'a> {
    pub(super) mode: Mode,
    pub(super) project: &'a Path,
    pub(super) central: &'a Path,
    pub(super) network: NetworkPolicy,
    /// TCP ports that a command with the network may connect to.
    pub(super) ports: &'a PortList,
    /// Whether the kernel can tell ports apart (Landlock since Linux 6.7); in full mode the daemon does.
    pub(super) kernel_tells_ports: bool,
    /// Hosts that each command may connect to; empty where the network is decided about as a whole.
    pub(super) hosts: &'a [HostEntry],
    /// Further folders, with what commands may do in them.
    pub(super) further: &'a [(PathBuf, Reach)],
    /// Caches of the user's that commands see in full mode, and whether they may add to them.
    pub(super) caches: &'a [(PathBuf, bool)],
    pub(super) limits: &'a Limits,
    /// What holds commands to them.
    pub(super) held: &'a LimitsReport,
    /// Most bytes in the conversation's home and temporary files.
    pub(super) disk: u64,
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
            Mode::Full => {
                "Secrets in it (.env, keys, credentials) look empty. Other files of the user are not there."
            }
            Mode::Fallback => "Other files of the user cannot be reached.",
            Mode::Limits | Mode::Unverified | Mode::None => {
                "Nothing keeps a command from other files of the user: leave those alone."
            }
        };
        let (project, central) = (self.project.display(), self.central.display());
        // Where programs of low integrity run, which write only to what is labelled for them.
        let change = match cfg!(windows) && self.mode == Mode::Unverified {
            true => {
                "commands can read both and change neither unless the user allowed it, use the tools for files; they write to TEMP"
            }
            false => "commands can change both",
        };
        format!(
            "Files: the project is {project}, {central} is for files of your own; {change}.{} {others}",
            self.further()
        )
    }

    fn further(&self) -> String {
        let named = |wanted: Reach, can: &str| {
            let folders = self.further.iter().filter(|(_, reach)| *reach == wanted);
            let folders: Vec<String> = folders
                .map(|(folder, _)| folder.display().to_string())
                .collect();
            match folders.as_slice() {
                [] => String::new(),
                folders => format!(" They can {can} {} too.", folders.join(", ")),
            }
        };
        named(Reach::ReadWrite, "change") + &named(Reach::ReadOnly, "read")
    }

    fn home(&self) -> String {
        let lasts = "what a command installs or caches there, the next one finds; it is emptied, and what runs in the background ends, when the conversation ends or its user is away for a while";
        let disk = format_size(self.disk);
        match self.mode {
            Mode::Full => {
                let caches = self.caches();
                format!(
                    "Home: HOME, /tmp and /var/tmp are this conversation's own: {lasts}. Together they hold {disk} at most.{caches}"
                )
            }
            Mode::Fallback => format!(
                "Home: $HOME and $TMPDIR are folders of this conversation's own, at other places than usual, and /tmp cannot be used: {lasts}. Together they hold {disk} at most."
            ),
            Mode::Unverified => {
                "Home: HOME, where it is not the user's, and the folder for temporary files are new for each command and gone after it."
                    .to_owned()
            }
            Mode::Limits | Mode::None if cfg!(target_os = "linux") => {
                format!("Home: HOME is the user's; $TMPDIR is this conversation's own: {lasts}.")
            }
            Mode::Limits | Mode::None => {
                "Home: HOME is the user's; $TMPDIR is new for each command and gone after it."
                    .to_owned()
            }
        }
    }

    fn caches(&self) -> String {
        let names = |wanted: bool| {
            let folders = self.caches.iter().filter(|(_, can_add)| *can_add == wanted);
            let mut names: Vec<_> = folders
                .filter_map(|(folder, _)| caches::name_of(folder))
                .collect();
            names.dedup();
            names.join(", ")
        };
        let said = |names: String, begin: &str, end: &str| match names.is_empty() {
            true => names,
            false => format!(" {begin}: {names}{end}"),
        };
        let end = "; what is added to them is this conversation's.";
        let added_to = said(names(true), "The user's caches are there", end);
        let begin = "Caches of the user's that can only be read";
        added_to + &said(names(false), begin, ".")
    }

    fn loopback(&self) -> String {
        let listens = match self.mode == Mode::Fallback && self.kernel_tells_ports {
            true => ", where it cannot listen on a TCP port",
            false => "",
        };
        let without = "a command has only Unix sockets among its own processes, and it cannot listen on a port";
        let text = match (self.mode, self.network) {
            (Mode::Full, _) => {
                "this conversation's commands share a 127.0.0.1 and ::1 of their own, and may listen on any port; services of this machine are not there."
                    .to_owned()
            }
            (Mode::Fallback | Mode::Limits, NetworkPolicy::Off) => format!("none: {without}."),
            (Mode::Fallback | Mode::Limits, NetworkPolicy::Ask) => {
                format!("none without the network: {without}; with it that of this machine{listens}.")
            }
            (Mode::Fallback | Mode::Limits, NetworkPolicy::On) => {
                format!("a command has that of this machine{listens}.")
            }
            (Mode::Unverified, _) => "that of this machine, where a command may reach it.".to_owned(),
            (Mode::None, _) => "that of this machine.".to_owned(),
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
        let asks = self.network == NetworkPolicy::Ask && !self.hosts.is_empty();
        if asks && self.mode.decides_by_hosts() {
            let hosts: Vec<String> = self.hosts.iter().map(HostEntry::to_string).collect();
            let way = match self.mode {
                Mode::Unverified => {
                    " It goes by the HTTP proxy of HTTPS_PROXY: what knows no proxy has no network."
                }
                Mode::Full | Mode::Fallback | Mode::Limits | Mode::None => "",
            };
            return format!(
                "Network: TCP at {ports}. Hosts that need no question: {}; the user is asked for any other when a command connects to it.{way} Leave `network` out, except with `background` for hosts that are not listed: nobody is asked while such a command runs.",
                hosts.join(", ")
            );
        }
        let reach = match self.mode {
            Mode::Full => format!("TCP to other machines at {ports}, and names are looked up"),
            Mode::Fallback if self.kernel_tells_ports => format!(
                "TCP at {ports}, also to services of this machine, and UDP to every address"
            ),
            Mode::Fallback | Mode::Limits | Mode::Unverified | Mode::None => {
                "every address, services of this machine among them".to_owned()
            }
        };
        let text = match (self.mode, self.network) {
            (Mode::None, NetworkPolicy::On) => "on.".to_owned(),
            (Mode::None, _) => {
                "nothing here keeps a command off it; ask for it with `network` all the same."
                    .to_owned()
            }
            (Mode::Unverified, NetworkPolicy::Ask | NetworkPolicy::Off) => {
                "a command may have none; one that needs it asks for it with `network`.".to_owned()
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
            "{}, or what `timeout` asks for up to {}, and none in the background",
            format_duration(self.timeout),
            format_duration(self.max_timeout)
        );
        let (limits, held) = (self.limits, self.held);
        let size = |bytes: u64, what: &str| format!("{} {what}", format_size(bytes));
        let memory = match held.memory {
            HeldBy::Cgroup | HeldBy::Job => {
                // In whole MiB: a share of the machine's is any number.
                let bytes = limits.total_memory() >> 20 << 20;
                Some(size(bytes, "of memory together"))
            }
            HeldBy::Rlimit => limits.data.map(|bytes| size(bytes, "of memory for each")),
            HeldBy::None => None,
        };
        let is_held = |by: HeldBy| by != HeldBy::None;
        let processes = limits.processes.filter(|_| is_held(held.processes));
        let cpu = limits.cpu_percent.filter(|_| is_held(held.cpu));
        let file = limits.file_size.filter(|_| is_held(held.file_size));
        let all = [
            Some(time),
            processes.map(|count| format!("{count} processes")),
            memory,
            cpu.map(|percent| format!("{percent} % of one processor")),
            file.map(|bytes| size(bytes, "for a file")),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        format!("Limits: {}.", all.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most lines that the model reads of it, those of other parts to come among them.
    const MAX_LINES: usize = 12;

    /// What is in force where nothing is set.
    fn surroundings(limits: &Limits) -> Surroundings<'_> {
        const EACH: LimitsReport = LimitsReport {
            cgroup: None,
            memory: HeldBy::Rlimit,
            cpu: HeldBy::None,
            processes: HeldBy::Rlimit,
            file_size: HeldBy::Rlimit,
            ungrouped: None,
        };
        Surroundings {
            mode: Mode::Full,
            project: Path::new("/p"),
            central: Path::new("/c"),
            network: NetworkPolicy::Ask,
            ports: &PortList::Any,
            kernel_tells_ports: true,
            hosts: &[],
            further: &[],
            caches: &[],
            limits,
            held: &EACH,
            disk: 2 << 30,
            timeout: Duration::from_secs(60),
            max_timeout: Duration::from_secs(600),
        }
    }

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
                    "Together they hold 2GiB at most.",
                    "ends, when the conversation ends or its user is away for a while.",
                    "Limits: 1m, or what `timeout` asks for up to 10m, and none in the background; 512 processes; 3GiB of memory for each; 2GiB for a file.",
                ][..],
                &[
                    "TMPDIR",
                    "that of this machine",
                    "processor",
                    "The user's caches",
                ][..],
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
                    "none without the network: a command has only Unix sockets among its own processes, and it cannot listen on a port; with it that of this machine, where it cannot listen on a TCP port.",
                    "then TCP at ports 22, 443, also to services of this machine, and UDP to every address.",
                ],
                &["/var/tmp", "any port"],
            ),
            (
                Mode::Fallback,
                NetworkPolicy::Off,
                &[
                    "Loopback: none: a command has only Unix sockets",
                    "off; no other machine",
                ],
                &["that of this machine", "443"],
            ),
            (
                Mode::Fallback,
                NetworkPolicy::On,
                &[
                    "Loopback: a command has that of this machine, where it cannot listen on a TCP port.",
                    "Network: on: TCP at ports 22, 443,",
                ],
                &["none:", "none without"],
            ),
            (
                Mode::Limits,
                NetworkPolicy::On,
                &[
                    "Loopback: a command has that of this machine.",
                    "on: every address, services of this machine among them.",
                ],
                &["443"],
            ),
            (
                Mode::Limits,
                NetworkPolicy::Off,
                &[
                    "leave those alone",
                    "HOME is the user's",
                    #[cfg(target_os = "linux")]
                    "$TMPDIR is this conversation's own: ",
                    "512 processes",
                ],
                &["hold"],
            ),
            (
                Mode::None,
                NetworkPolicy::Ask,
                &[
                    "(sandbox: none)",
                    "leave those alone",
                    "nothing here keeps a command off it",
                ],
                &["443"],
            ),
            (
                Mode::Unverified,
                NetworkPolicy::Ask,
                &[
                    "(sandbox: unverified)",
                    "leave those alone",
                    "asks for it with `network`",
                ],
                &["443", "agrees"],
            ),
        ] {
            let text = Surroundings {
                mode,
                network,
                ports: &PortList::Only(vec![22, 443]),
                ..surroundings(&limits)
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
    fn what_an_older_kernel_cannot_tell_apart_is_not_promised() {
        let text = Surroundings {
            mode: Mode::Fallback,
            network: NetworkPolicy::On,
            ports: &PortList::Only(vec![443]),
            kernel_tells_ports: false,
            ..surroundings(&Limits::default())
        }
        .text();
        assert!(text.contains("on: every address, services"), "{text}");
        assert!(text.contains("has that of this machine.\n"), "{text}");
        assert!(!text.contains("443"), "{text}");
    }

    #[test]
    fn hosts_are_named_where_they_decide() {
        let hosts = ["npm", "*.example.org"].map(|it| HostEntry::parse(it).unwrap());
        for (mode, network, names) in [
            (Mode::Full, NetworkPolicy::Ask, true),
            (Mode::Fallback, NetworkPolicy::Ask, false),
            (
                Mode::Unverified,
                NetworkPolicy::Ask,
                cfg!(target_os = "macos"),
            ),
            (Mode::Full, NetworkPolicy::On, false),
            (Mode::Full, NetworkPolicy::Off, false),
        ] {
            let text = Surroundings {
                mode,
                network,
                hosts: &hosts,
                ..surroundings(&Limits::default())
            }
            .text();
            let expected =
                "at all ports. Hosts that need no question: npm, *.example.org; the user is asked";
            assert_eq!(text.contains(expected), names, "{text}");
        }
    }

    #[test]
    fn what_the_operator_gave_and_what_holds_is_named() {
        let limits = Limits {
            memory: Some(4 << 30),
            cpu_percent: Some(150),
            ..Limits::default()
        };
        let held = LimitsReport {
            cgroup: Some(2),
            memory: HeldBy::Cgroup,
            cpu: HeldBy::Cgroup,
            processes: HeldBy::None,
            file_size: HeldBy::Rlimit,
            ungrouped: None,
        };
        let text = Surroundings {
            further: &[
                (PathBuf::from("/data"), Reach::ReadOnly),
                (PathBuf::from("/out"), Reach::ReadWrite),
            ],
            caches: &[
                (PathBuf::from("/home/.npm/_cacache"), true),
                (PathBuf::from("/home/.cargo/registry"), true),
                (PathBuf::from("/home/.cargo/git"), true),
                (PathBuf::from("/home/go/pkg"), false),
            ],
            held: &held,
            ..surroundings(&limits)
        }
        .text();
        for part in [
            "They can change /out too. They can read /data too.",
            "The user's caches are there: npm, cargo; what is added",
            " Caches of the user's that can only be read: go.\n",
            "; 4GiB of memory together; 150 % of one processor; 2GiB for a file.",
        ] {
            assert!(text.contains(part), "{part:?}: {text}");
        }
        assert!(!text.contains("512"), "{text}");
    }
}
