//! Bombs end, and what the limits cannot reach is known.

use std::time::Duration;

use outrigger_sandbox::output::Ended;
use outrigger_sandbox::{Command, Limits, Mode, Sandbox, Settings};

use crate::support::{World, read, run};

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
            |limits| limits.data = Some(100_000_000),
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

/// The default, in one process.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn no_process_gets_more_than_three_gibibytes_of_its_own() {
    let world = World::new();
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits] {
        // Asked for and never touched.
        let line = "perl -e 'my $p = syscall(9, 0, $ARGV[0] << 20, 3, 0x22, -1, 0); print $p > 0 ? \"fits\" : \"refused\"'";
        for (mebibytes, expected) in [(2_800, "fits"), (3_584, "refused")] {
            let line = format!("{line} {mebibytes}");
            let output = run(&world.sandbox(mode), &world.bash(&line)).await;
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
