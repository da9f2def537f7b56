//! Bombs end, and what the limits cannot reach is known.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use outrigger_sandbox::output::Ended;
use outrigger_sandbox::{Command, HeldBy, Limits, Mode, Reached, Sandbox, Settings};

use crate::support::{
    World, as_ordinary_user, eventually, finish, is_own_process, own_process, read, run,
};

fn limited(world: &World, line: &str, change: impl FnOnce(&mut Limits)) -> Command {
    let mut command = world.bash(line);
    change(&mut command.limits);
    command
}

#[tokio::test]
async fn each_limit_ends_what_it_is_for() {
    let world = World::new();
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits] {
        let sandbox = world.sandbox(mode);
        let endless = limited(&world, "while :; do :; done", |limits| {
            limits.cpu = Some(Duration::from_millis(300));
        });
        assert_eq!(
            run(&sandbox, &endless).await.exit.signal,
            Some(24),
            "{mode}"
        );
        let file = limited(
            &world,
            "head -c 2000000 /dev/zero > big; stat -c %s big",
            |limits| limits.file_size = Some(1_000_000),
        );
        assert_eq!(
            run(&sandbox, &file).await.stdout.text,
            "1000000\n",
            "{mode}"
        );
        let memory = limited(
            &world,
            "perl -e '$x = \"x\" x 300_000_000; print \"done\"'",
            |limits| {
                limits.data = Some(100_000_000);
                limits.memory = Some(100_000_000);
            },
        );
        assert_eq!(run(&sandbox, &memory).await.stdout.text, "", "{mode}");
        let files = limited(&world, "ulimit -n; ulimit -c; ulimit -H -n", |limits| {
            limits.open_files = Some(50);
        });
        assert_eq!(
            run(&sandbox, &files).await.stdout.text,
            "50\n0\n50\n",
            "{mode}"
        );
    }
}

/// It takes the kernel one second to send the first signal and one more for the second.
#[tokio::test]
async fn a_command_that_does_not_hear_of_its_limit_is_killed() {
    let world = World::new();
    let deaf = limited(&world, "trap '' XCPU; while :; do :; done", |limits| {
        limits.cpu = Some(Duration::from_millis(300));
    });
    let output = run(&world.sandbox(Mode::Full), &deaf).await;
    assert_eq!(output.exit.signal, Some(9));
}

/// What a command writes to its temporary directory in full mode is in memory, which is the daemon's too.
#[tokio::test]
async fn temporary_files_in_memory_are_bounded() {
    let world = World::new();
    let sandbox = Sandbox::new(Settings {
        private_bytes: 4 << 20,
        ..world.settings(Mode::Full)
    });
    let line = "head -c 3M /dev/zero > $TMPDIR/a && echo fits; head -c 3M /dev/zero > $TMPDIR/b || echo full; stat -f -c %T $TMPDIR; stat -c %a $TMPDIR";
    let output = run(&sandbox, &world.bash(line)).await;
    assert_eq!(output.stdout.text, "fits\nfull\ntmpfs\n700\n", "{output:?}");
    assert!(output.stderr.text.contains("No space left"), "{output:?}");
    assert!(crate::support::is_empty(&world.temporary()));
}

/// Where memory runs out all the same, the command goes and not the daemon.
#[tokio::test]
async fn the_kernel_ends_a_command_before_the_daemon() {
    let world = World::new();
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits, Mode::None] {
        let line = "cat /proc/self/oom_score_adj";
        let output = run(&world.sandbox(mode), &world.bash(line)).await;
        assert_eq!(output.stdout.text, "1000\n", "{mode} {output:?}");
    }
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    assert_ne!(own, "1000\n");
}

/// The default, in one process. Where a control group counts what processes have, what they only ask for is theirs.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn no_process_gets_more_than_three_gibibytes_of_its_own() {
    let world = World::new();
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits] {
        // Asked for and never touched.
        let line = "perl -e 'my $p = syscall(9, 0, $ARGV[0] << 20, 3, 0x22, -1, 0); print $p > 0 ? \"fits\" : \"refused\"'";
        let sandbox = world.sandbox(mode);
        let more = match sandbox.report().await.limits.memory {
            HeldBy::Cgroup | HeldBy::Job => "fits",
            HeldBy::Rlimit | HeldBy::None => "refused",
        };
        for (mebibytes, expected) in [(2_800, "fits"), (3_584, more)] {
            let line = format!("{line} {mebibytes}");
            let output = run(&sandbox, &world.bash(&line)).await;
            assert_eq!(
                output.stdout.text, expected,
                "{mode} {mebibytes} {output:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_a_command_used_is_known() {
    let world = World::new();
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits, Mode::None] {
        let line = "perl -e '$x = \"x\" x 50_000_000; 1 while $n++ < 3_000_000'";
        let exit = run(&world.sandbox(mode), &world.bash(line)).await.exit;
        assert!(exit.cpu_ms > 0, "{mode} {exit:?}");
        assert!(
            (50_000_000..500_000_000).contains(&exit.max_rss_bytes),
            "{mode} {exit:?}"
        );
    }
}

#[tokio::test]
async fn an_endless_command_is_stopped_and_what_it_wrote_is_kept() {
    let world = World::new();
    let mut process = world
        .sandbox(Mode::Full)
        .spawn(&world.bash("echo before; while :; do sleep 600; done"))
        .await
        .unwrap();
    let (said, heard) = tokio::sync::oneshot::channel();
    let mut said = Some(said);
    let output = read(&mut process, heard, |_| {
        if let Some(said) = said.take() {
            said.send(()).unwrap();
        }
    })
    .await;
    assert_eq!(output.ended, Ended::Stopped(Ok(())));
    assert_eq!(output.stdout.text, "before\n");
    assert_eq!(output.exit.signal, Some(15));
}

/// Says aloud what is not tried: without control groups nothing bounds all processes together.
fn is_held_by_groups(held: HeldBy, what: &str) -> bool {
    let held = held == HeldBy::Cgroup;
    if !held {
        eprintln!(
            "*** NOT BOUNDED: {what} of all processes together: uid {} has no control group here ***",
            rustix::process::geteuid().as_raw()
        );
    }
    held
}

const MIB: u64 = 1 << 20;

/// Five processes of 40 MiB each, where one of them is allowed and not all. Each says when it has its own.
const MEMORY_BOMB: &str = "for i in 1 2 3 4 5; do perl -e '$x = \"x\" x 40_000_000; print \"had\\n\"; sleep 600' & done; wait -n; echo lost one";

#[tokio::test]
async fn memory_is_bounded_for_all_processes_together() {
    let world = World::new();
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits] {
        let sandbox = world.sandbox(mode);
        if !is_held_by_groups(sandbox.report().await.limits.memory, "memory") {
            // By itself, each process is.
            let alone = limited(
                &world,
                "perl -e '$x = \"x\" x 150_000_000' || echo refused",
                |limits| {
                    limits.data = Some(100 * MIB);
                },
            );
            let output = run(&sandbox, &alone).await;
            assert_eq!(output.stdout.text, "refused\n", "{mode} {output:?}");
            continue;
        }
        let bomb = limited(&world, MEMORY_BOMB, |limits| {
            limits.memory = Some(100 * MIB);
        });
        let mut process = sandbox.spawn(&bomb).await.unwrap();
        let output = finish(&mut process).await;
        assert!(process.reached().memory, "{mode} {output:?}");
        assert!(
            output.stdout.text.contains("lost one\n"),
            "{mode} {output:?}"
        );
        let few = limited(
            &world,
            "perl -e '$x = \"x\" x 40_000_000; print \"had\"'",
            |limits| {
                limits.memory = Some(100 * MIB);
            },
        );
        let mut process = sandbox.spawn(&few).await.unwrap();
        let output = finish(&mut process).await;
        assert_eq!(output.stdout.text, "had", "{mode} {output:?}");
        assert_eq!(process.reached(), Reached::default(), "{mode}");
    }
}

/// Counts how many processes it can have at once; what it started ends with it.
const FORK_BOMB: &str = "exec perl -e 'my $n = 1; while ($n < 2000) { my $p = fork; last unless defined $p; if (!$p) { sleep 600 } $n++ } print $n'";

#[tokio::test]
async fn processes_are_bounded() {
    let world = World::new();
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits] {
        let sandbox = world.sandbox(mode);
        let held = sandbox.report().await.limits.processes;
        let bomb = limited(&world, FORK_BOMB, |limits| limits.processes = Some(40));
        if held == HeldBy::None {
            eprintln!("*** NOT BOUNDED: the processes of root, without a control group ***");
            continue;
        }
        let mut process = sandbox.spawn(&bomb).await.unwrap();
        let output = finish(&mut process).await;
        let most: u64 = output.stdout.text.parse().unwrap();
        if is_held_by_groups(held, "the number") {
            assert_eq!(most, 40, "{mode} {output:?}");
            assert!(process.reached().processes, "{mode} {output:?}");
        } else {
            // Below full mode those of the whole machine count, which come and go.
            assert!(most < 2000, "{mode} {output:?}");
            assert!(
                mode < Mode::Full || (35..=40).contains(&most),
                "{mode} {output:?}"
            );
        }
    }
}

/// What the kernel was told; that it does so is its own affair, and takes time to see.
#[tokio::test]
async fn processor_time_is_bounded_for_all_processes_together() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Limits);
    if !is_held_by_groups(sandbox.report().await.limits.cpu, "the processor") {
        return;
    }
    let line = "tree=/sys/fs/cgroup; one=$(sed -n 's/^[0-9]*:\\(cpu\\|cpu,[^:]*\\):/\\1/p' /proc/self/cgroup); cat $tree/$one/cpu.cfs_quota_us $tree$(sed -n 's/^0:://p' /proc/self/cgroup)/cpu.max";
    for (percent, expected) in [(Some(20), true), (None, false)] {
        let command = limited(&world, line, |limits| limits.cpu_percent = percent);
        let output = run(&sandbox, &command).await;
        let told = output.stdout.text.split_whitespace().next() == Some("20000");
        assert_eq!(told, expected, "{percent:?} {output:?}");
    }
}

#[test]
fn bombs_of_an_ordinary_user() {
    as_ordinary_user(&[
        "limits::memory_is_bounded_for_all_processes_together",
        "limits::processes_are_bounded",
        "limits::no_process_gets_more_than_three_gibibytes_of_its_own",
    ]);
}

/// The groups of daemons in the tree for the number of processes, with what they hold.
fn groups_of(daemon: u32) -> Vec<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let path = own
        .lines()
        .find_map(|line| line.split_once(":pids:"))
        .unwrap()
        .1;
    let place = PathBuf::from("/sys/fs/cgroup/pids").join(path.trim_start_matches('/'));
    let mut found = Vec::new();
    for group in std::fs::read_dir(place).unwrap().flatten() {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let number = std::fs::metadata(group.path()).map_or(0, |it| it.ino());
        let is_its = locks.lines().any(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            fields.get(4) == Some(&daemon.to_string().as_str())
                && fields
                    .get(5)
                    .is_some_and(|it| it.ends_with(&format!(":{number}")))
        });
        if is_its {
            found.push(group.path());
        }
    }
    found
}

/// Whoever confines nothing has no group.
#[tokio::test]
async fn without_a_sandbox_there_are_no_groups() {
    const NAME: &str = "limits::without_a_sandbox_there_are_no_groups";
    if !is_own_process() {
        let done = own_process(NAME).status().unwrap();
        assert!(done.success());
        return;
    }
    let sandbox = World::new().sandbox(Mode::None);
    assert_eq!(sandbox.report().await.limits.cgroup, None);
    if std::path::Path::new("/sys/fs/cgroup/pids").exists() {
        assert!(groups_of(std::process::id()).is_empty());
    }
}

/// A daemon that is killed leaves its group, which the next one removes; the group of its command goes at once.
#[tokio::test]
async fn groups_of_a_killed_daemon_are_removed() {
    let name = "limits::groups_of_a_killed_daemon_are_removed";
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    if is_own_process() {
        let mut process = sandbox
            .spawn(&world.bash("echo begun; sleep 600"))
            .await
            .unwrap();
        read(&mut process, std::future::pending::<()>(), |text| {
            println!("{text}");
        })
        .await;
        return;
    }
    let limits = sandbox.report().await.limits;
    if limits.cgroup != Some(1) || limits.processes != HeldBy::Cgroup {
        eprintln!(
            "*** SKIPPED: {name}: it takes control groups of version 1 that can be written ***"
        );
        return;
    }
    let mut daemon = own_process(name).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("begun")));
    let [group] = &groups_of(daemon.id())[..] else {
        panic!("it has one group");
    };
    let commands = || std::fs::read_dir(group).into_iter().flatten().flatten();
    let commands = || commands().filter(|it| it.path().is_dir()).count();
    assert!(commands() > 0);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    eventually("the command's group is gone", || commands() == 0);
    let next = world.sandbox(Mode::Full);
    assert_eq!(next.report().await.limits.cgroup, Some(1));
    assert!(!group.exists());
    drop(next);
}
