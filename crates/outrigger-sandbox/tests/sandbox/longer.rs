//! Further attempts to get out, beyond the visible battery: each first succeeds without the sandbox.

use std::fs;

use outrigger_sandbox::Mode;

use crate::attempts::{Attempt, attempt, says_done, shows_secret};
use crate::battery::judge;
use crate::support::{SECRET, World, run};

fn attempts() -> Vec<Attempt> {
    use Mode::{Fallback, Full, Limits};
    let mut attempts = vec![
        attempt(
            "a secret through another process's root",
            "cat /proc/{victim}/root{secret}",
            Fallback,
            shows_secret,
        ),
        attempt(
            "another process's memory, written",
            "perl -e 'open(M, \"<\", \"/proc/{victim}/maps\") or exit; my ($a) = <M> =~ /^([0-9a-f]+)/; open(F, \"+<\", \"/proc/{victim}/mem\") or exit; sysseek(F, hex($a), 0); sysread(F, my $b, 4) and print \"done\"'",
            Fallback,
            says_done,
        ),
        attempt(
            "have another process killed first",
            "echo 900 > /proc/{victim}/oom_score_adj",
            Fallback,
            |targets, _| {
                let path = format!("/proc/{}/oom_score_adj", targets.victim.id());
                fs::read_to_string(path).unwrap().trim() == "900"
            },
        ),
        attempt(
            "a signal through a descriptor of the process",
            "perl -e 'my $f = syscall(434, {victim}, 0); $f >= 0 and syscall(424, $f, 9, 0, 0) == 0 and print \"done\"'",
            Fallback,
            |targets, _| targets.is_victim_killed(),
        ),
        attempt(
            "a descriptor of another process",
            "perl -e 'my $f = syscall(434, {victim}, 0); $f >= 0 and syscall(438, $f, 0, 0) >= 0 and print \"done\"'",
            Limits,
            says_done,
        ),
        attempt(
            "a signal sent by the kernel for a pipe that is ready",
            "perl -e 'use Fcntl; pipe(R, W); fcntl(R, 8, {victim}) or exit; fcntl(R, 10, 9) or exit; fcntl(R, F_SETFL, 0x2000 | O_NONBLOCK) or exit; syswrite(W, \"x\"); print \"done\"'",
            Fallback,
            |targets, _| targets.is_victim_killed(),
        ),
        attempt(
            "the memory of another process by its number",
            "perl -e 'syscall(310, {victim}, 0, 0, 0, 0, 0) == 0 and print \"done\"'",
            Limits,
            says_done,
        ),
        attempt(
            "a datagram to a socket by path",
            "cd {outside}; perl -e 'use Socket; socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) or die $!; send(A, \"x\", 0, pack_sockaddr_un(\"datagrams\")) or die $!'",
            Fallback,
            |targets, _| targets.datagrams.recv(&mut [0; 8]).is_ok(),
        ),
        attempt(
            "a datagram from a raw socket",
            "cd {outside}; perl -e 'use Socket; socketpair(A, B, AF_UNIX, SOCK_RAW, 0) or die $!; send(A, \"x\", 0, pack_sockaddr_un(\"datagrams\")) or die $!'",
            Fallback,
            |targets, _| targets.datagrams.recv(&mut [0; 8]).is_ok(),
        ),
        attempt(
            "the machine's shared memory",
            "n=/dev/shm/outrigger-{victim}; echo {outside} > $n && echo done",
            Fallback,
            |targets, _| {
                let path = format!("/dev/shm/outrigger-{}", targets.victim.id());
                let was_there = fs::exists(&path).unwrap();
                fs::remove_file(path).unwrap_or_default();
                was_there
            },
        ),
        attempt(
            "the machine's temporary directory",
            "echo x > /tmp/outrigger-{victim}",
            Fallback,
            |targets, _| {
                let path = format!("/tmp/outrigger-{}", targets.victim.id());
                let was_there = fs::exists(&path).unwrap();
                fs::remove_file(path).unwrap_or_default();
                was_there
            },
        ),
        attempt(
            "a link exchanged while it is used",
            "mkdir good; (for i in $(seq 100); do ln -sfn good flip; ln -sfn {outside} flip; done) & p=$!; while kill -0 $p; do echo x > flip/planted; done 2> /dev/null",
            Fallback,
            |targets, _| targets.outside("planted").exists(),
        ),
        attempt(
            "settings of git from elsewhere",
            "mkdir evil; cp .git/config evil/config; echo '[core]fsmonitor=evil' >> evil/config; echo ../evil > .git/commondir",
            Limits,
            |targets, _| targets.project(".git/commondir").exists(),
        ),
        attempt(
            "git's settings through a hard link",
            "ln .git/config other; echo '[core]fsmonitor=evil' >> other",
            Limits,
            |targets, _| {
                fs::read_to_string(targets.project(".git/config"))
                    .unwrap()
                    .contains("evil")
            },
        ),
        attempt(
            "a repository made anew",
            "rm -rf .git; git init -q; git config core.fsmonitor evil",
            Limits,
            |targets, _| {
                fs::read_to_string(targets.project(".git/config"))
                    .unwrap_or_default()
                    .contains("evil")
            },
        ),
        attempt(
            "a link in the place of the repository",
            "mv .git old; mkdir -p evil/hooks; echo x > evil/hooks/post-commit; ln -s evil .git",
            Full,
            |targets, _| targets.project(".git/hooks/post-commit").exists(),
        ),
        attempt(
            "settings of a worktree",
            "mkdir -p .git/worktrees/x; echo ../../../evil > .git/worktrees/x/commondir",
            Full,
            |targets, _| {
                fs::read_to_string(targets.project(".git/worktrees/x/commondir"))
                    .unwrap_or_default()
                    .contains("evil")
            },
        ),
    ];
    if rustix::process::geteuid().is_root() {
        attempts.extend(for_root());
    }
    attempts
}

/// What an ordinary user may not do anyway. Opened, never written.
fn for_root() -> Vec<Attempt> {
    use Mode::{Fallback, Limits};
    vec![
        attempt(
            "the program for crashes",
            "{ : >> /proc/sys/kernel/core_pattern; } && echo done",
            Fallback,
            says_done,
        ),
        attempt(
            "another root",
            "perl -e 'chroot(\".\") and print \"done\"'",
            Limits,
            says_done,
        ),
        attempt(
            "a file of somebody else's",
            "touch owned; chown 12345 owned && echo done",
            Limits,
            says_done,
        ),
    ]
}

#[tokio::test]
async fn further_attempts() {
    judge(attempts()).await;
}

/// The filter answers, whatever this kernel would have said.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn calls_off_the_list_are_refused() {
    const CALLS: &[(&str, &str)] = &[
        ("ptrace", "101, 0, 0, 0, 0"),
        ("process_vm_readv", "310, 1, 0, 0, 0, 0, 0"),
        ("process_vm_writev", "311, 1, 0, 0, 0, 0, 0"),
        ("kcmp", "312, 1, 1, 0, 0, 0"),
        ("process_madvise", "440, -1, 0, 0, 0, 0"),
        ("pidfd_getfd", "438, -1, 0, 0"),
        ("bpf", "321, 0, 0, 0"),
        ("perf_event_open", "298, 0, 0, -1, -1, 0"),
        ("userfaultfd", "323, 0"),
        ("io_uring_setup", "425, 1, 0"),
        ("io_uring_enter", "426, -1, 0, 0, 0, 0, 0"),
        ("io_uring_register", "427, -1, 0, 0, 0"),
        ("add_key", "248, 0, 0, 0, 0, 0"),
        ("request_key", "249, 0, 0, 0, 0"),
        ("keyctl", "250, 0, 0, 0, 0, 0"),
        ("unshare", "272, 0"),
        ("setns", "308, -1, 0"),
        ("mount", "165, 0, 0, 0, 0, 0"),
        ("umount2", "166, 0, 0"),
        ("pivot_root", "155, 0, 0"),
        ("chroot", "161, 0"),
        ("move_mount", "429, -1, 0, -1, 0, 0"),
        ("open_tree", "428, -1, 0, 0"),
        ("fsopen", "430, 0, 0"),
        ("fsconfig", "431, -1, 0, 0, 0, 0"),
        ("fsmount", "432, -1, 0, 0"),
        ("fspick", "433, -1, 0, 0"),
        ("mount_setattr", "442, -1, 0, 0, 0, 0"),
        ("open_by_handle_at", "304, -1, 0, 0"),
        ("fanotify_init", "300, 0, 0"),
        ("init_module", "175, 0, 0, 0"),
        ("finit_module", "313, -1, 0, 0"),
        ("delete_module", "176, 0, 0"),
        ("kexec_load", "246, 0, 0, 0, 0"),
        ("reboot", "169, 0, 0, 0, 0"),
        ("swapon", "167, 0, 0"),
        ("acct", "163, 0"),
        ("syslog", "103, 3, 0, 0"),
        ("quotactl", "179, 0, 0, 0, 0"),
        ("settimeofday", "164, 0, 0"),
        ("clock_settime", "227, 0, 0"),
        ("sethostname", "170, 0, 0"),
        ("iopl", "172, 0"),
        ("memfd_secret", "447, 0"),
        ("personality without random addresses", "135, 0x0040000"),
        ("clone into a user namespace", "56, 0x10000011, 0, 0, 0, 0"),
        (
            "clone into a network namespace",
            "56, 0x40000011, 0, 0, 0, 0",
        ),
        ("typing into a terminal", "16, 0, 0x5412, 0"),
        (
            "the same with bits that the kernel drops",
            "16, 0, 0x100005412, 0",
        ),
        (
            "ptrace by its second number",
            "0x40000000 + 521, 0, 0, 0, 0",
        ),
    ];
    // Where processes outside are in sight, what changes them is refused by number and by kind.
    const OUTSIDE: &[(&str, &str)] = &[
        ("the priority of all the user's processes", "141, 2, 0, 5"),
        ("the same for reading and writing", "251, 3, 0, 0x6000"),
        ("the processors of the first process", "203, 1, 0, 0"),
        ("shared memory", "29, 0, 4096, 0x3b6"),
        ("somebody's shared memory by its number", "30, 0, 0, 0"),
        ("the end of it", "31, 0, 0, 0"),
        ("a queue", "68, 0, 0x3b6"),
        ("a message to a queue by its number", "69, 0, 0, 0, 0"),
        ("a message from it", "70, 0, 0, 0, 0, 0x800"),
        ("the end of it", "71, 0, 0, 0"),
        ("semaphores", "64, 0, 1, 0x3b6"),
        ("semaphores by their number", "65, 0, 0, 0"),
        ("the same with a time", "220, 0, 0, 0, 0"),
        ("the end of them", "66, 0, 0, 0, 0"),
        ("a queue by its name", "240, 0, 0x42, 0x180, 0"),
        ("the end of a queue with a name", "241, 0"),
    ];
    let world = World::new();
    let mut wrong = Vec::new();
    for mode in [Mode::Limits, Mode::Fallback, Mode::Full] {
        let sandbox = world.sandbox(mode);
        let more = if mode < Mode::Full { OUTSIDE } else { &[] };
        for (name, call) in CALLS.iter().chain(more) {
            let line = format!(
                "perl -e '$! = 0; my $r = syscall({call}); print $r == -1 ? $! + 0 : \"done\"'"
            );
            let output = run(&sandbox, &world.bash(&line)).await;
            if output.stdout.text != "1" {
                wrong.push(format!("{name} in {mode}: {output:?}"));
            }
        }
        let line = "perl -e 'my $r = syscall(435, 0, 0); print $! + 0'";
        let output = run(&sandbox, &world.bash(line)).await;
        assert_eq!(output.stdout.text, "38", "clone3 in {mode}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn no_descriptor_but_the_standard_three_is_inherited() {
    let world = World::new();
    fs::write(world.secret(), SECRET).unwrap();
    // As some library that forgets to say "close on exec" would leave one open.
    let file = fs::File::open(world.secret()).unwrap();
    let leaked = rustix::io::dup(&file).unwrap();
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits, Mode::None] {
        // The one of the listing itself is the fourth.
        let output = run(&world.sandbox(mode), &world.bash("ls /proc/self/fd")).await;
        assert_eq!(output.stdout.text, "0\n1\n2\n3\n", "{mode}");
    }
    drop(leaked);
}

#[tokio::test]
async fn there_is_no_terminal_to_type_into() {
    let world = World::new();
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits, Mode::None] {
        let output = run(
            &world.sandbox(mode),
            &world.bash(": < /dev/tty && echo done; ps -o tty= -p $$ || echo '?'"),
        )
        .await;
        assert!(!output.stdout.text.contains("done"), "{mode} {output:?}");
    }
}

#[tokio::test]
async fn what_runs_in_secret_memory_is_as_confined() {
    let world = World::new();
    let line = format!(
        "perl -e 'my $n = \"x\"; my $f = syscall(319, $n, 0); open(F, \">&=\", $f); binmode F; open(P, \"<\", \"/bin/cat\"); print F $_ while <P>; F->flush; close P; exec {{\"/proc/self/fd/$f\"}} \"cat\", \"{}\"'",
        world.secret().display()
    );
    for (mode, shown) in [
        (Mode::None, true),
        (Mode::Fallback, false),
        (Mode::Full, false),
    ] {
        let output = run(&world.sandbox(mode), &world.bash(&line)).await;
        assert_eq!(
            output.stdout.text.contains(SECRET),
            shown,
            "{mode} {output:?}"
        );
    }
}
