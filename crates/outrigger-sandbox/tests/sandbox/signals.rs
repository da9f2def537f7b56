//! What a command's end depends on: no signal reaches its supervisor, the zygote and the daemon, with Landlock or without.

use outrigger_sandbox::Mode;

use crate::support::{World, eventually, processes_with, run};

/// Older than the version that keeps signals to the command's own processes.
const WITHOUT_SCOPES: u8 = 5;

/// Modes, and what their kernel's Landlock is.
fn kinds() -> [(Mode, u8); 5] {
    let newest = outrigger_sandbox::LANDLOCK;
    [
        (Mode::Limits, newest),
        (Mode::Fallback, WITHOUT_SCOPES),
        (Mode::Fallback, newest),
        (Mode::Full, WITHOUT_SCOPES),
        (Mode::Full, newest),
    ]
}

/// The parent of a command's supervisor.
const ZYGOTE: &str = "$(ps -o ppid= -p $PPID | tr -d ' ')";

/// Ways to reach a process with a signal that does nothing, which is refused in the same way as one that kills.
#[cfg(target_arch = "x86_64")]
const WAYS: [(&str, &str); 11] = [
    ("by its number", "kill -0 $it && echo done"),
    ("with everybody", "kill -0 -1 && echo done"),
    ("with its group", "kill -0 -- -$it && echo done"),
    (
        "with its group, whatever its number",
        "kill -0 -- -$(ps -o pgid= -p $it | tr -d ' ') && echo done",
    ),
    (
        "as a thread of its group",
        "perl -e 'syscall(234, $ENV{it} + 0, $ENV{it} + 0, 0) == 0 and print \"done\"'",
    ),
    (
        "as a thread",
        "perl -e 'syscall(200, $ENV{it} + 0, 0) == 0 and print \"done\"'",
    ),
    (
        "by the number of a thread",
        "[ $it = $PPID ] && thread=$it; kill -0 $thread && echo done",
    ),
    (
        "queued",
        "perl -e 'my $i = pack(\"iii x116\", 0, 0, -1); syscall(129, $ENV{it} + 0, 0, $i) == 0 and print \"done\"'",
    ),
    (
        "queued for a thread",
        "perl -e 'my $i = pack(\"iii x116\", 0, 0, -1); syscall(297, $ENV{it} + 0, $ENV{it} + 0, 0, $i) == 0 and print \"done\"'",
    ),
    (
        "through a descriptor of the process",
        "perl -e 'my $f = syscall(434, $ENV{it} + 0, 0); $f >= 0 and syscall(424, $f, 0, 0, 0) == 0 and print \"done\"'",
    ),
    (
        "through its folder in /proc",
        "perl -e 'use Fcntl; sysopen(F, \"/proc/$ENV{it}\", O_RDONLY | O_DIRECTORY) or exit; syscall(424, fileno(F), 0, 0, 0) == 0 and print \"done\"'",
    ),
];

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn no_signal_reaches_the_supervisor_the_zygote_and_the_daemon() {
    let world = World::new();
    let daemon = std::process::id().to_string();
    // One that is there before any command is: those of other tests come and go.
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid()).unwrap();
        assert!(ended.recv().is_err());
    });
    let number = told.recv().unwrap().as_raw_nonzero();
    let mut wrong = Vec::new();
    for (name, way) in WAYS {
        for target in [&daemon, "$PPID", ZYGOTE] {
            let line = format!("export it={target} thread={number}; {way}");
            let free = run(&world.sandbox(Mode::None), &world.bash(&line)).await;
            // The supervisor leads its own group only after the program has started.
            if !free.stdout.text.contains("done") && !name.contains("group") {
                wrong.push(format!(
                    "{name} {target}: fails without a sandbox: {free:?}"
                ));
            }
            for (mode, landlock) in kinds() {
                // In a namespace of its own a command sees the first process, and cannot kill it; nothing is above that.
                if mode == Mode::Full && target != daemon {
                    continue;
                }
                // The kernel answers "done" where all it would have reached were refused one by one.
                if mode == Mode::Fallback && landlock > WITHOUT_SCOPES && name == "with everybody" {
                    continue;
                }
                let sandbox = world.sandbox_with(mode, landlock);
                assert_eq!(sandbox.report().await.mode, mode);
                let output = run(&sandbox, &world.bash(&line)).await;
                if output.stdout.text.contains("done") {
                    wrong.push(format!("{name} {target} in {mode} {landlock}: {output:?}"));
                }
            }
        }
    }
    drop(end);
    thread.join().unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// In a container the first process is the daemon, or something whose end is the daemon's.
#[tokio::test]
async fn no_signal_reaches_the_first_process() {
    let world = World::new();
    for (mode, landlock) in kinds() {
        // In a namespace of its own the first process is the command's.
        if mode == Mode::Full {
            continue;
        }
        let sandbox = world.sandbox_with(mode, landlock);
        let line = "kill -0 1 2>&1; perl -e 'kill(0, 1) and print \"done\"'";
        let output = run(&sandbox, &world.bash(line)).await;
        let text = output.stdout.text;
        assert!(text.contains("Operation not permitted"), "{mode} {text}");
        assert!(!text.contains("done"), "{mode} {landlock} {text}");
    }
}

#[tokio::test]
async fn a_command_that_would_outlive_its_supervisor_does_not() {
    let world = World::new();
    for (mode, landlock) in kinds() {
        let mark = format!("{}77", std::process::id());
        let line = format!("setsid sleep {mark} & kill -9 $PPID; echo $?");
        let sandbox = world.sandbox_with(mode, landlock);
        let output = run(&sandbox, &world.bash(&line)).await;
        if mode != Mode::Full {
            assert_eq!(output.stdout.text, "1\n", "{mode} {landlock}: {output:?}");
        }
        assert!(output.exit.code.is_some(), "{mode} {landlock}: {output:?}");
        eventually("the end of what was left behind", || {
            processes_with(&mark).is_empty()
        });
    }
}

#[tokio::test]
async fn no_owner_of_a_descriptor_is_sent_what_ends_it() {
    let world = World::new();
    let line = format!(
        "perl -e 'pipe(R, W); fcntl(R, 8, {0}) and print \"done\"; my $p = pack(\"ii\", 1, {0}); fcntl(R, 15, $p) and print \"done\"; $p = pack(\"i\", {0}); ioctl(R, 0x8901, $p) and print \"done\"'",
        std::process::id()
    );
    for mode in [Mode::None, Mode::Limits] {
        let output = run(&world.sandbox(mode), &world.bash(&line)).await;
        let reached = output.stdout.text.contains("done");
        assert_eq!(reached, mode == Mode::None, "{mode}: {output:?}");
    }
    let output = run(
        &world.sandbox_with(Mode::Fallback, WITHOUT_SCOPES),
        &world.bash(&line),
    )
    .await;
    assert_eq!(output.stdout.text, "", "{output:?}");
}
