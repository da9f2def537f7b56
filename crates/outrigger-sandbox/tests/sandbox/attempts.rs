//! Attempts to get out, and what they are aimed at.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use outrigger_sandbox::Mode;

use crate::support::{SECRET, World};

/// What the attempts are aimed at: another process of the user, sockets of the machine, files around the project.
pub(crate) struct Targets {
    pub(crate) world: World,
    pub(crate) victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    abstract_name: String,
    by_abstract_name: UnixListener,
    by_path: UnixListener,
    pub(crate) datagrams: UnixDatagram,
}

impl Targets {
    pub(crate) fn new() -> Self {
        let world = World::new();
        let git = world.project().join(".git");
        fs::create_dir_all(git.join("hooks")).unwrap();
        fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(world.project().join(".env"), SECRET).unwrap();
        fs::write(world.project().join("file"), "harmless").unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let abstract_name = format!("outrigger-battery-{}", world.project().display());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let by_abstract_name = UnixListener::bind_addr(&address).unwrap();
        // A short way to it: the path of a socket has little room.
        let by_path = UnixListener::bind(world.outside().join("socket")).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        by_abstract_name.set_nonblocking(true).unwrap();
        by_path.set_nonblocking(true).unwrap();
        let datagrams = UnixDatagram::bind(world.outside().join("datagrams")).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let victim = std::process::Command::new("/bin/cat")
            .env("CANARY", SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut targets = Self {
            world,
            victim,
            tcp,
            udp,
            abstract_name,
            by_abstract_name,
            by_path,
            datagrams,
        };
        // It is what it was started as only once it answers: its environment is empty for a moment.
        assert!(!targets.is_victim_killed());
        targets
    }

    /// The attempt's line, with the names of the targets in it.
    pub(crate) fn aim(&self, attempt: &Attempt) -> String {
        let line = attempt.line.replace("{perl}", PERL_CONNECT);
        [
            ("{victim}", self.victim.id().to_string()),
            ("{secret}", self.world.secret().display().to_string()),
            ("{outside}", self.world.outside().display().to_string()),
            ("{tcp}", self.tcp.local_addr().unwrap().port().to_string()),
            ("{udp}", self.udp.local_addr().unwrap().port().to_string()),
            ("{abstract}", self.abstract_name.clone()),
        ]
        .into_iter()
        .fold(line, |line, (name, value)| line.replace(name, &value))
    }

    /// The line that connects to the socket by abstract name.
    pub(crate) fn abstract_socket(&self) -> String {
        let attempts = on_sockets();
        let by_name = |attempt: &&Attempt| attempt.line.contains("{abstract}");
        self.aim(attempts.iter().find(by_name).unwrap())
    }

    pub(crate) fn abstract_is_reached(&mut self) -> bool {
        self.by_abstract_name.accept().is_ok()
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.world.outside().join(name)
    }

    pub(crate) fn project(&self, name: &str) -> PathBuf {
        self.world.project().join(name)
    }

    /// Returns whether the victim was killed: whoever was sent that signal answers nothing any more.
    pub(crate) fn is_victim_killed(&mut self) -> bool {
        let (stdin, stdout) = (&mut self.victim.stdin, &mut self.victim.stdout);
        let wrote = stdin.as_mut().unwrap().write_all(b"x");
        wrote.is_err() || stdout.as_mut().unwrap().read_exact(&mut [0]).is_err()
    }

    fn victim_limits(&self) -> String {
        fs::read_to_string(format!("/proc/{}/limits", self.victim.id())).unwrap()
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        self.victim.kill().unwrap();
        self.victim.wait().unwrap();
    }
}

/// One attempt: what bash runs, and what shows that it got through. `output` is what it wrote.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    line: &'static str,
    pub(crate) escaped: fn(targets: &mut Targets, output: &str) -> bool,
    /// The weakest mode that has to stop it.
    pub(crate) stopped_from: Mode,
}

const PERL_CONNECT: &str = "use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die $!; connect($s, pack_sockaddr_un($name)) or die $!";

pub(crate) fn attempt(
    name: &'static str,
    line: &'static str,
    stopped_from: Mode,
    escaped: fn(&mut Targets, &str) -> bool,
) -> Attempt {
    Attempt {
        name,
        line,
        escaped,
        stopped_from,
    }
}

pub(crate) fn shows_secret(_: &mut Targets, output: &str) -> bool {
    output.contains(SECRET)
}

pub(crate) fn says_done(_: &mut Targets, output: &str) -> bool {
    output.contains("done")
}

pub(crate) fn on_files() -> Vec<Attempt> {
    use Mode::{Fallback, Full, Limits};
    vec![
        attempt(
            "write beside the project",
            "echo x > ../beside",
            Fallback,
            |targets, _| targets.world.home().join("beside").exists(),
        ),
        attempt("read a secret", "cat {secret}", Fallback, shows_secret),
        attempt(
            "list the home",
            "ls -a ~ && ls ~/.ssh",
            Fallback,
            |_, output| output.contains("id_ed25519"),
        ),
        attempt(
            "read through a link",
            "ln -s {secret} link; cat link",
            Fallback,
            shows_secret,
        ),
        attempt(
            "write through a link",
            "ln -s {outside} way; echo x > way/new",
            Fallback,
            |targets, _| targets.outside("new").exists(),
        ),
        attempt(
            "a hard link of a secret",
            "ln {secret} hard && cat hard",
            Fallback,
            shows_secret,
        ),
        attempt(
            "move a file out",
            "mv file {outside}/moved",
            Fallback,
            |targets, _| targets.outside("moved").exists(),
        ),
        attempt(
            "remove outside",
            "rm {outside}/file",
            Fallback,
            |targets, _| !targets.outside("file").exists(),
        ),
        attempt(
            "truncate outside",
            "truncate -s 0 {outside}/file",
            Fallback,
            |targets, _| fs::read(targets.outside("file")).unwrap().is_empty(),
        ),
        attempt(
            "make outside unreadable",
            "chmod 0 {outside}/file",
            Full,
            |targets, _| {
                std::os::unix::fs::PermissionsExt::mode(
                    &fs::metadata(targets.outside("file")).unwrap().permissions(),
                ) & 0o777
                    == 0
            },
        ),
        attempt(
            "plant a set-user-id file",
            "cp /bin/true planted; chmod u+s planted",
            Limits,
            |targets, _| {
                std::os::unix::fs::PermissionsExt::mode(
                    &fs::metadata(targets.project("planted"))
                        .unwrap()
                        .permissions(),
                ) & 0o4000
                    != 0
            },
        ),
        attempt(
            "create a set-user-id file",
            "perl -e 'use Fcntl; sysopen(F, \"made\", O_CREAT|O_WRONLY, 04755) and print \"done\"'",
            Limits,
            says_done,
        ),
        attempt("read a hidden file", "cat .env", Full, shows_secret),
        attempt(
            "move a hidden file away",
            "mv .env shown; cat shown",
            Full,
            shows_secret,
        ),
        attempt(
            "write a hook",
            "echo evil > .git/hooks/post-commit",
            Limits,
            |targets, _| targets.project(".git/hooks/post-commit").exists(),
        ),
        attempt(
            "change git's settings",
            "echo '[core]fsmonitor=evil' >> .git/config",
            Limits,
            |targets, _| {
                fs::read_to_string(targets.project(".git/config"))
                    .unwrap()
                    .contains("evil")
            },
        ),
        attempt(
            "replace git's settings",
            "echo evil > new; mv -f new .git/config",
            Limits,
            |targets, _| {
                fs::read_to_string(targets.project(".git/config"))
                    .unwrap()
                    .contains("evil")
            },
        ),
        attempt(
            "replace the repository",
            "mv .git old; mkdir -p .git/hooks; echo evil > .git/hooks/post-commit",
            Limits,
            |targets, _| targets.project(".git/hooks/post-commit").exists(),
        ),
        attempt(
            "replace the hooks",
            "mv .git/hooks .git/old; mkdir .git/hooks && echo evil > .git/hooks/post-commit",
            Limits,
            |targets, _| targets.project(".git/hooks/post-commit").exists(),
        ),
    ]
}

pub(crate) fn on_processes() -> Vec<Attempt> {
    use Mode::{Fallback, Full, Limits};
    vec![
        attempt(
            "another process's environment",
            "tr '\\0' '\\n' < /proc/{victim}/environ",
            Fallback,
            shows_secret,
        ),
        attempt(
            "another process's memory",
            "head -c 1 /proc/{victim}/maps && echo done",
            Fallback,
            says_done,
        ),
        attempt(
            "another process's root",
            "ls /proc/{victim}/root/ && echo done",
            Fallback,
            says_done,
        ),
        attempt(
            "another process's command line",
            "cat /proc/{victim}/cmdline && echo done",
            Full,
            says_done,
        ),
        attempt(
            "limits of another process",
            "prlimit --pid {victim} --nofile=5:5",
            Limits,
            |targets, _| {
                targets
                    .victim_limits()
                    .lines()
                    .any(|line| line.starts_with("Max open files") && line.contains(" 5 "))
            },
        ),
        attempt(
            "the priority of another process",
            // The lowest, which a process of the lowest priority may set too.
            "renice -n 19 -p {victim} && echo done",
            Limits,
            says_done,
        ),
        attempt("debug another process", PTRACE, Limits, says_done),
        attempt(
            "kill another process",
            "kill -9 {victim}",
            Fallback,
            |targets, _| targets.is_victim_killed(),
        ),
        attempt(
            "namespaces",
            "unshare -Urm mount -t tmpfs none . && echo done",
            Limits,
            says_done,
        ),
        attempt(
            "a mount",
            // Where it works it works on the machine itself, so it is taken back.
            "unshare -Urm true && echo done; mount -t tmpfs none . && echo done && cd / && umount \"$OLDPWD\"",
            Limits,
            says_done,
        ),
    ]
}

#[cfg(target_arch = "x86_64")]
const PTRACE: &str = "perl -e 'syscall(101, 16, {victim}, 0, 0) == 0 and print \"done\"'";
#[cfg(not(target_arch = "x86_64"))]
const PTRACE: &str = "perl -e 'syscall(117, 16, {victim}, 0, 0) == 0 and print \"done\"'";

pub(crate) fn on_sockets() -> Vec<Attempt> {
    use Mode::{Fallback, Limits};
    vec![
        attempt(
            "TCP",
            "echo x > /dev/tcp/127.0.0.1/{tcp}",
            Limits,
            |targets, _| targets.tcp.accept().is_ok(),
        ),
        attempt(
            "UDP",
            "echo x > /dev/udp/127.0.0.1/{udp}",
            Limits,
            |targets, _| targets.udp.recv(&mut [0; 8]).is_ok(),
        ),
        attempt(
            "a socket by abstract name",
            "NAME='{abstract}' perl -e 'my $name = \"\\0$ENV{NAME}\"; {perl}'",
            Fallback,
            |targets, _| targets.by_abstract_name.accept().is_ok(),
        ),
        attempt(
            "a socket by path",
            "cd {outside}; perl -e 'my $name = \"socket\"; {perl}'",
            Fallback,
            |targets, _| targets.by_path.accept().is_ok(),
        ),
        attempt(
            "generic netlink",
            "perl -e 'socket(my $s, 16, 3, 16) and print \"done\"'",
            Limits,
            says_done,
        ),
        // What the machine's network looks like; one of the command's own may be looked at.
        attempt(
            "interfaces by netlink",
            "perl -e 'socket(my $s, 16, 3, 0) or die; send($s, pack(\"LSSLLCxSiLL\", 32, 18, 0x301, 1, 0, 0, 0, 0, 0, 0), 0) or die; for (1..9) { recv($s, my $b, 65536, 0); while (length $b) { my ($l, $t) = unpack(\"LS\", $b); exit if $t == 3; print \"done\" if unpack(\"x20i\", $b) > 1; $b = substr($b, $l) } }'",
            Limits,
            says_done,
        ),
    ]
}
