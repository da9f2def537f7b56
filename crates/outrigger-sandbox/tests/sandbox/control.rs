//! Nothing outlives its command, and nothing holds the daemon up.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use futures::FutureExt as _;
use outrigger_sandbox::output::{Ended, Stream, TOTAL_BYTES, collect, follow};
use outrigger_sandbox::{Command, Mode, Sandbox, Settings, SpawnError, Stdin};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use crate::support::{
    World, children, eventually, finish, is_empty, is_own_process, kill, kill_helper, own_process,
    processes_with, read, ready, run, zygotes,
};

const MODES: [Mode; 4] = [Mode::Full, Mode::Fallback, Mode::Limits, Mode::None];

/// Starts what tries to outlive its command: in the background, in a session of its own, orphaned, deaf to SIGTERM.
fn fugitives(mark: &str) -> String {
    format!(
        "trap '' TERM HUP
         bash -c 'exec -a {mark}-1 sleep 600' &
         setsid bash -c 'exec -a {mark}-2 sleep 600' &
         (setsid bash -c 'bash -c \"exec -a {mark}-3 sleep 600\" & echo' > /dev/null &)
         (bash -c 'exec -a {mark}-4 sleep 600' > /dev/null 2>&1 &)
         echo started; "
    )
}

/// A mark for command lines that no other test uses at the same time.
fn mark(test: &str, mode: Mode) -> String {
    format!("fugitive-{test}-{mode}-{}", std::process::id())
}

/// Waits for a line of a command's standard output.
pub(crate) async fn line(process: &mut outrigger_sandbox::Process) -> String {
    let mut line = String::new();
    let stdout = process.stdout.as_mut().unwrap();
    tokio::io::BufReader::with_capacity(1, stdout)
        .read_line(&mut line)
        .await
        .unwrap();
    line
}

#[tokio::test]
async fn output_and_exit_code_come_back_in_every_mode() {
    let world = World::new();
    for mode in MODES {
        let sandbox = world.sandbox(mode);
        let report = sandbox.report().await;
        assert_eq!(report.mode, mode, "{report:?}");
        let output = run(&sandbox, &world.bash("echo out; echo err >&2; pwd; exit 3")).await;
        assert_eq!(
            output.stdout.text,
            format!("out\n{}\n", world.project().display()),
            "{mode} {output:?}"
        );
        assert_eq!(output.stderr.text, "err\n", "{mode}");
        assert_eq!(
            (output.exit.code, output.exit.signal),
            (Some(3), None),
            "{mode}"
        );
        let output = run(&sandbox, &world.bash("kill -TERM $$")).await;
        assert_eq!(
            (output.exit.code, output.exit.signal),
            (None, Some(15)),
            "{mode}"
        );
    }
}

#[tokio::test]
async fn what_a_command_leaves_running_dies_with_it_and_holds_nobody_up() {
    let world = World::new();
    for mode in MODES {
        let sandbox = world.sandbox(mode);
        let mark = mark("end", mode);
        // The fugitives hold the output open for ten minutes; that the test ends at all shows that nobody waits.
        let output = run(&sandbox, &world.bash(&(fugitives(&mark) + "exit 4"))).await;
        assert_eq!(output.exit.code, Some(4), "{mode}");
        assert_eq!(processes_with(&mark), [0; 0], "{mode}");
    }
}

#[tokio::test]
async fn kill_drop_and_stop_leave_nothing() {
    let world = World::new();
    for mode in MODES {
        let sandbox = world.sandbox(mode);
        for way in ["kill", "drop", "stop"] {
            let mark = mark(way, mode);
            let lasting = world.bash(&(fugitives(&mark) + "while :; do sleep 600; done"));
            let mut process = sandbox.spawn(&lasting).await.unwrap();
            assert_eq!(line(&mut process).await, "started\n");
            match way {
                "kill" => {
                    process.kill();
                    assert_eq!(process.wait().await.signal, Some(9), "{mode}");
                }
                "drop" => drop(process),
                _ => {
                    let output = read(&mut process, std::future::ready("enough"), |_| {}).await;
                    assert_eq!(output.ended, Ended::Stopped("enough"), "{mode}");
                    assert_eq!(output.exit.signal, Some(9), "{mode}");
                }
            }
            eventually("the death of all", || processes_with(&mark).is_empty());
        }
    }
    eventually("the removal of the private directories", || {
        is_empty(&world.temporary())
    });
}

#[tokio::test]
async fn a_command_may_end_in_its_own_way_when_asked_to() {
    let world = World::new();
    for mode in MODES {
        let sandbox = world.sandbox(mode);
        let polite = world
            .bash("trap 'echo bye; exit 5' TERM; echo started; while :; do sleep 600 & wait; done");
        let mut process = sandbox.spawn(&polite).await.unwrap();
        assert_eq!(line(&mut process).await, "started\n");
        process.terminate();
        let output = finish(&mut process).await;
        assert_eq!(
            (output.exit.code, output.stdout.text.as_str()),
            (Some(5), "bye\n"),
            "{mode}"
        );
    }
}

#[tokio::test]
async fn a_daemon_that_is_killed_leaves_nothing() {
    const NAME: &str = "control::a_daemon_that_is_killed_leaves_nothing";
    let world = World::new();
    if is_own_process() {
        let mode: Mode = serde_json::from_str(&std::env::var("MODE").unwrap()).unwrap();
        let command = world.bash(&(fugitives(&std::env::var("MARK").unwrap()) + "sleep 600"));
        let mut process = world.sandbox(mode).spawn(&command).await.unwrap();
        line(&mut process).await;
        println!("DIRECTORY {}", world.temporary().display());
        // Until it is killed.
        process.wait().await;
        return;
    }
    for mode in MODES {
        for signal in ["KILL", "TERM"] {
            let mark = mark(signal, mode);
            let mut daemon = own_process(NAME)
                .env("MODE", serde_json::to_string(&mode).unwrap())
                .env("MARK", &mark)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
            let directory = lines
                .find_map(|line| Some(line.unwrap().split_once("DIRECTORY ")?.1.to_owned()))
                .unwrap();
            assert!(!processes_with(&mark).is_empty());
            let zygotes = children(daemon.id());
            assert_eq!(zygotes.len(), 1, "{zygotes:?}");
            let pid = daemon.id().to_string();
            assert!(
                std::process::Command::new("kill")
                    .args(["-s", signal, &pid])
                    .status()
                    .unwrap()
                    .success()
            );
            daemon.wait().unwrap();
            eventually("the death of all", || processes_with(&mark).is_empty());
            eventually("the end of what helpers are forks of", || {
                let is_there = |it: &u32| fs::exists(format!("/proc/{it}")).unwrap();
                !zygotes.iter().any(is_there)
            });
            eventually("the removal of the private directory", || {
                is_empty(directory.as_ref())
            });
            fs::remove_dir_all(std::path::Path::new(&directory).parent().unwrap()).unwrap();
        }
    }
}

#[tokio::test]
async fn a_supervisor_that_is_killed_takes_its_program_along() {
    let world = World::new();
    for mode in MODES {
        let mark = mark("supervisor", mode);
        let lasting = world.bash(&format!("echo started; exec -a {mark} sleep 600"));
        let mut process = world.sandbox(mode).spawn(&lasting).await.unwrap();
        line(&mut process).await;
        kill_helper(&mark);
        assert_eq!(process.wait().await.signal, Some(9), "{mode}");
        eventually("the death of the program", || {
            processes_with(&mark).is_empty()
        });
    }
}

/// Doublings of the storm: 511 processes. Without an end, a storm of root's in fallback mode, where no limit holds, once
/// outran its supervisor on a machine under load and took every process id there was.
const GENERATIONS: u32 = 8;

#[tokio::test]
async fn a_fork_storm_ends() {
    let world = World::new();
    for mode in [Mode::Full, Mode::Fallback] {
        let mark = mark("storm", mode);
        let mut storm = world.bash(&format!(
            "exec 2> /dev/null; cat > storm <<'EOF'\n: {mark}\n\
             [ $2 -eq 0 ] || {{ (bash storm {mark} $(($2 - 1)) &); (bash storm {mark} $(($2 - 1)) &); }}; sleep 600\nEOF\n\
             echo started; bash storm {mark} {GENERATIONS}"
        ));
        // Bounds it where the limit holds; for root it does not.
        storm.limits.processes = Some(64);
        let mut process = world.sandbox(mode).spawn(&storm).await.unwrap();
        line(&mut process).await;
        eventually("a storm", || processes_with(&mark).len() > 20);
        process.kill();
        process.wait().await;
        if mode == Mode::Full {
            assert_eq!(
                processes_with(&mark),
                [0; 0],
                "the kernel ends a namespace at once"
            );
        }
        // On a machine under load the daemon may have stopped waiting for the supervisor, which goes on killing.
        eventually("the end of the storm", || processes_with(&mark).is_empty());
    }
}

#[tokio::test]
async fn two_hundred_commands_leave_no_process_no_descriptor_and_no_directory() {
    const NAME: &str =
        "control::two_hundred_commands_leave_no_process_no_descriptor_and_no_directory";
    if !is_own_process() {
        // Alone, so that what it counts is its own.
        let status = own_process(NAME).stdout(Stdio::null()).status().unwrap();
        assert!(status.success());
        return;
    }
    let world = World::new();
    for mode in MODES {
        let sandbox = world.sandbox(mode);
        run(&sandbox, &world.bash("true")).await;
        no_helper(mode).await;
        let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
        let before = descriptors();
        for number in 0..50 {
            let mut command = world.bash("setsid sleep 600 & echo x > $TMPDIR/x; echo done");
            command.stdin = if number % 2 == 0 {
                Stdin::Null
            } else {
                Stdin::Piped
            };
            if number % 5 == 0 {
                drop(sandbox.spawn(&command).await.unwrap());
            } else {
                let output = run(&sandbox, &command).await;
                assert_eq!(output.stdout.text, "done\n", "{mode} {output:?}");
            }
        }
        eventually("no directory", || is_empty(&world.temporary()));
        no_helper(mode).await;
        // Fewer where the first one's look after the start still had one open; a leak would be of fifty. Who attended to the
        // last command lets go of it a moment after its helper is gone.
        for _ in 0..1000 {
            if descriptors() <= before {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let now = descriptors();
        assert!(now <= before, "{mode}: {now}, {before} before");
    }
}

/// Waits until there is nothing but what helpers are forks of, and the next one: until then descriptors of others are open.
async fn no_helper(mode: Mode) {
    let left = || match own_children().as_slice() {
        [zygote] => children(*zygote).into_iter().skip(1).collect(),
        several => several.to_vec(),
    };
    for _ in 0..1000 {
        if left().is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("{mode}: children are left: {:?}", left());
}

fn own_children() -> Vec<u32> {
    children(std::process::id())
}

#[tokio::test]
async fn what_helpers_are_forks_of_has_nothing_and_is_replaced() {
    const NAME: &str = "control::what_helpers_are_forks_of_has_nothing_and_is_replaced";
    if !is_own_process() {
        let status = own_process(NAME)
            .env("SOME_API_KEY", "canary")
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    let mut lasting = world.bash("echo started; read x; echo $x");
    lasting.stdin = Stdin::Piped;
    let mut lasting = sandbox.spawn(&lasting).await.unwrap();
    assert_eq!(line(&mut lasting).await, "started\n");
    let [zygote] = zygotes()[..] else {
        panic!("{:?}", zygotes());
    };
    // Nothing of its own, nothing of the command that runs.
    let place = format!("/proc/{zygote}");
    let open: Vec<_> = fs::read_dir(format!("{place}/fd"))
        .unwrap()
        .map(|it| fs::read_link(it.unwrap().path()).unwrap())
        .collect();
    let (sockets, null): (Vec<_>, Vec<_>) = open
        .iter()
        .partition(|it| it.to_string_lossy().starts_with("socket:"));
    assert_eq!((sockets.len(), null.len()), (1, 3), "{open:?}");
    assert!(null.iter().all(|it| it.ends_with("null")), "{open:?}");
    assert_eq!(fs::read(format!("{place}/environ")).unwrap(), b"");
    let others = fs::metadata(format!("{place}/mem")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&others), 0);
    // What runs goes on without it, and what comes next has another one.
    kill(zygote);
    assert_eq!(
        run(&sandbox, &world.bash("echo next")).await.stdout.text,
        "next\n"
    );
    assert!(!zygotes().contains(&zygote));
    let mut stdin = lasting.stdin.take().unwrap();
    stdin.write_all(b"still here\n").await.unwrap();
    assert_eq!(finish(&mut lasting).await.stdout.text, "still here\n");
    // It ends with whoever asks it for helpers.
    drop((lasting, sandbox));
    no_zygote().await;
}

async fn no_zygote() {
    for _ in 0..1000 {
        if zygotes().is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("left: {:?}", zygotes());
}

#[tokio::test]
async fn input_goes_in_and_its_end_is_seen() {
    let world = World::new();
    for mode in MODES {
        let mut command = world.bash("cat; echo end");
        command.stdin = Stdin::Piped;
        let mut process = world.sandbox(mode).spawn(&command).await.unwrap();
        let mut stdin = process.stdin.take().unwrap();
        stdin.write_all(b"hello\n").await.unwrap();
        assert_eq!(line(&mut process).await, "hello\n", "{mode}");
        drop(stdin);
        assert_eq!(finish(&mut process).await.stdout.text, "end\n", "{mode}");
    }
}

#[tokio::test]
async fn no_input_is_the_end_of_input_and_there_is_no_terminal() {
    let world = World::new();
    for mode in MODES {
        let line = "cat; read -r x; (exec 3<> /dev/tty) 2> /dev/null && echo terminal; ls /proc/self/fd | wc -l";
        let output = run(&world.sandbox(mode), &world.bash(line)).await;
        // 0, 1, 2 and the directory that `ls` reads.
        assert_eq!(output.stdout.text.trim(), "4", "{mode} {output:?}");
    }
}

#[tokio::test]
async fn a_flood_is_cut_and_ended() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    let most = 500_000;
    for source in ["yes", "cat /dev/zero", "cat /dev/urandom >&2"] {
        let mut process = sandbox.spawn(&world.bash(source)).await.unwrap();
        let never = std::future::pending::<()>();
        let output = collect(&mut process, most, never, |_, _| {}).await;
        assert_eq!(output.ended, Ended::Flooded, "{source}");
        let flood = output.stdout_bytes + output.stderr_bytes;
        assert!(flood > most, "{source}: {flood}");
    }
}

#[tokio::test]
async fn what_is_followed_goes_on_whatever_it_writes_until_it_is_stopped() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    let line = world.bash("yes | head -c 1000000");
    let mut process = sandbox.spawn(&line).await.unwrap();
    let never = std::future::pending::<()>();
    let output = follow(&mut process, never, |_, _| {}).await;
    assert_eq!(
        (output.ended, output.stdout_bytes),
        (Ended::Exited, 1_000_000)
    );
    let mut process = sandbox.spawn(&world.bash("yes")).await.unwrap();
    let enough = tokio::sync::Notify::new();
    let mut bytes = 0;
    let output = follow(&mut process, enough.notified(), |_, text| {
        bytes += text.len();
        if bytes > 1_000_000 {
            enough.notify_one();
        }
    });
    let output = output.await;
    assert_eq!(output.ended, Ended::Stopped(()));
    assert_eq!(output.stdout_bytes, bytes as u64);
}

#[tokio::test]
async fn every_byte_is_handed_on_and_counted() {
    let world = World::new();
    let mut process = world
        .sandbox(Mode::Full)
        .spawn(&world.bash("seq 1 20000; printf é >&2"))
        .await
        .unwrap();
    let (mut whole, mut errors) = (String::new(), String::new());
    let never = std::future::pending::<()>();
    let output = collect(
        &mut process,
        TOTAL_BYTES,
        never,
        |stream, text| match stream {
            Stream::Stdout => whole.push_str(text),
            Stream::Stderr => errors.push_str(text),
        },
    );
    let output = output.await;
    let expected: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(whole, expected);
    assert_eq!(output.stdout_bytes, expected.len() as u64);
    assert_eq!((errors.as_str(), output.stderr_bytes), ("é", 2));
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let world = World::new();
    for mode in MODES {
        let sandbox = world.sandbox(mode);
        let mut missing = world.bash("true");
        missing.program = "/no/such/program".to_owned();
        let error = sandbox.spawn(&missing).await.unwrap_err();
        assert!(
            matches!(&error, SpawnError::Program { reason } if reason.contains("/no/such/program")),
            "{mode} {error}"
        );
        let mut nowhere = world.bash("true");
        nowhere.cwd = world.project().join("missing");
        let error = sandbox.spawn(&nowhere).await.unwrap_err();
        assert!(
            matches!(&error, SpawnError::Refused(reason) if reason.contains("missing")),
            "{mode} {error}"
        );
        let mut zero = world.bash("true");
        zero.args.push("a\0b".to_owned());
        assert!(
            matches!(sandbox.spawn(&zero).await, Err(SpawnError::Program { .. })),
            "{mode}"
        );
    }
    eventually("the removal of the private directories", || {
        is_empty(&world.temporary())
    });
}

#[tokio::test]
async fn nothing_runs_before_it_may() {
    let world = World::new();
    for mode in MODES {
        let sandbox = world.sandbox(mode);
        let pod = sandbox.pod();
        let name = format!("made-{mode}");
        let made = world.project().join(&name);
        let mut command = world.bash(&format!("touch {name}"));
        command.pod = Some(pod.clone());
        // The second time something was made ready for it, in full mode.
        for _ in 0..2 {
            let refused = sandbox
                .spawn_when(&command, std::future::ready(false))
                .await;
            assert!(
                matches!(refused, Err(SpawnError::Unwanted)),
                "{mode} {refused:?}"
            );
            assert!(!made.exists(), "{mode}");
            let path = made.clone();
            let may_begin = async move {
                tokio::task::yield_now().await;
                !path.exists()
            };
            let may_begin = may_begin.boxed().shared();
            let mut process = sandbox.spawn_when(&command, may_begin).await.unwrap();
            process.wait().await;
            assert!(made.exists(), "{mode}");
            fs::remove_file(&made).unwrap();
            if mode == Mode::Full {
                ready(&pod).await;
            }
        }
        drop((command, pod));
    }
    eventually("the removal of the private directories", || {
        is_empty(&world.temporary())
    });
}

/// What becomes of a program that waits at its gate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Gate {
    Opened,
    Refused,
    /// Nobody waits for the program any more.
    Forgotten,
}

#[tokio::test]
async fn what_waits_at_its_gate_runs_only_where_that_is_opened() {
    let world = World::new();
    for mode in MODES {
        let sandbox = world.sandbox(mode);
        let pod = sandbox.pod();
        let made = world.project().join(format!("made-{mode}"));
        let mut command = world.bash(&format!("touch made-{mode}"));
        command.pod = Some(pod.clone());
        let other = world.bash("true");
        // A program that runs from its start to its end takes longer than this one's way to its gate.
        let meanwhile = async || {
            let mut process = sandbox.spawn(&other).await.unwrap();
            process.wait().await;
            assert!(!made.exists(), "{mode}");
        };
        // Without something that was made ready for it, and with, in full mode.
        for gate in [Gate::Refused, Gate::Forgotten, Gate::Opened].repeat(2) {
            let may_begin = async {
                meanwhile().await;
                match gate {
                    Gate::Opened => true,
                    Gate::Refused => false,
                    Gate::Forgotten => std::future::pending().await,
                }
            };
            let spawned = sandbox.spawn_when(&command, may_begin.boxed_local().shared());
            let spawned = tokio::select! {
                biased;
                spawned = spawned => Some(spawned),
                () = async { meanwhile().await; meanwhile().await }, if gate == Gate::Forgotten => None,
            };
            match (gate, spawned) {
                (Gate::Opened, Some(Ok(mut process))) => {
                    process.wait().await;
                    assert!(made.exists(), "{mode}");
                    fs::remove_file(&made).unwrap();
                    if mode == Mode::Full {
                        ready(&pod).await;
                    }
                }
                (Gate::Refused, Some(Err(SpawnError::Unwanted))) | (Gate::Forgotten, None) => {
                    meanwhile().await;
                }
                (gate, spawned) => panic!("{mode}: {gate:?} came to {spawned:?}"),
            }
        }
        drop((command, pod));
    }
    eventually("the end of all that waited", || {
        is_empty(&world.temporary())
    });
}

#[tokio::test]
async fn without_a_helper_nothing_starts_and_the_report_says_so() {
    let world = World::new();
    for helper in ["/no/such/helper", "/bin/true"] {
        let sandbox = Sandbox::new(Settings {
            helper: helper.into(),
            ceiling: Mode::Full,
            unverified: false,
            landlock: outrigger_sandbox::LANDLOCK,
            home: None,
            temporary: world.temporary(),
            private_bytes: outrigger_sandbox::PRIVATE_BYTES,
            pod_bytes: outrigger_sandbox::POD_BYTES,
            caches: vec!["/tmp".into(), "/usr".into()],
            user_ids: None,
        });
        let report = sandbox.report().await;
        assert_eq!(
            (report.mode, report.commands.len()),
            (Mode::None, 0),
            "{report:?}"
        );
        let is_helper = |reason: &str| reason.contains("cannot start the sandbox helper");
        assert!(report.refused.iter().all(|it| is_helper(&it.1)));
        assert_eq!(report.refused.len(), 3);
        let error = sandbox
            .spawn(&Command::new("/bin/true", "/"))
            .await
            .unwrap_err();
        assert!(matches!(error, SpawnError::Helper(_)), "{error}");
    }
    let gone = move || {
        eventually("the folders of the pods that were tried are gone", || {
            is_empty(&world.temporary())
        });
    };
    tokio::task::spawn_blocking(gone).await.unwrap();
}

#[tokio::test]
async fn the_helper_takes_orders_from_its_parent_only() {
    let output = std::process::Command::new(crate::HELPER)
        .arg("__sandbox-exec")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(126));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not the daemon's socket"));
}
