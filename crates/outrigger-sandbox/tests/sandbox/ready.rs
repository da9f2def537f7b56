//! What is made ready for the next command of a pod before that is known, and all that may change until it comes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use outrigger_sandbox::{Command, GitAccess, Held, Mode, Network, Pod, Ports, Sandbox, SpawnError};

use crate::support::{
    SECRET, World, as_ordinary_user, children, in_pod, is_empty, is_own_process, kill, output,
    own_process, ready, zygotes,
};

/// What a command begins with that waits until it is looked where it runs.
const WAITS: &str = "read -t 60 x < go;";

/// A pod that has run a command, and whose next one something was made ready for.
struct Stage {
    world: World,
    sandbox: Sandbox,
    pod: Pod,
    /// The process that all others of it hang on.
    guard: u32,
}

/// In a process of its own: what is looked for are its children.
impl Stage {
    async fn new() -> Self {
        Self::after(|_| {}).await
    }

    async fn after(change: impl FnOnce(&mut Command)) -> Self {
        let others = zygotes();
        let world = World::new();
        let sandbox = world.sandbox(Mode::Full);
        let pod = sandbox.pod();
        let mut command = in_pod(&world, &pod, "echo first > first");
        change(&mut command);
        assert_eq!(output(&sandbox, &command).await, "");
        ready(&pod).await;
        let mut guard = None;
        soon("the processes that wait", || {
            let mut own = zygotes();
            own.retain(|it| !others.contains(it));
            // The guard of a command that has ended may still be there, with nothing below it.
            let guards = own.into_iter().flat_map(children);
            let mut waiting = guards.filter(|it| children(*it).into_iter().any(has_child));
            guard = waiting.next();
            guard.is_some()
        })
        .await;
        Self {
            guard: guard.unwrap(),
            world,
            sandbox,
            pod,
        }
    }

    fn line(&self, line: &str) -> Command {
        in_pod(&self.world, &self.pod, line)
    }

    /// What a command says, and whether what waited ran it.
    async fn said(&self, command: &Command) -> (String, bool) {
        let mut command = command.clone();
        let line = command.args.pop().unwrap();
        command.args.push(format!("{WAITS} {line}"));
        let pipe = self.world.project().join("go");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let mut process = self.sandbox.spawn(&command).await.unwrap();
        soon("the command runs", || zygotes().into_iter().any(runs)).await;
        // What was thrown away may still be there, and does not run it.
        let was_used = runs(self.guard);
        fs::write(&pipe, "go\n").unwrap();
        let output = crate::support::finish(&mut process).await;
        fs::remove_file(&pipe).unwrap();
        (output.stdout.text + &output.stderr.text, was_used)
    }
}

/// Returns whether the command that waits for its pipe is somewhere below a process.
fn runs(process: u32) -> bool {
    children(process).into_iter().any(|child| {
        let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(WAITS) || runs(child)
    })
}

/// Waits, and lets the runtime go on meanwhile: it has to take in what ended.
async fn soon(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("never happened: {what}");
}

fn has_child(process: u32) -> bool {
    !children(process).is_empty()
}

/// Runs the test in a process of its own; returns whether this is it.
fn alone(test: &str) -> bool {
    if !is_own_process() {
        let output = own_process(test).output().unwrap();
        let [said, errors] =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{errors}"
        );
    }
    is_own_process()
}

#[tokio::test]
async fn the_next_command_runs_in_what_was_made_ready() {
    if !alone("ready::the_next_command_runs_in_what_was_made_ready") {
        return;
    }
    let stage = Stage::new().await;
    let mut command = stage.line("echo $MARK; cat first; ulimit -n; echo x > ~/x");
    command.env.insert("MARK".to_owned(), "mine".to_owned());
    command.limits.open_files = Some(77);
    let (said, was_used) = stage.said(&command).await;
    assert_eq!((said.as_str(), was_used), ("mine\nfirst\n77\n", true));
    // And so does the one after, which begins somewhere else.
    ready(&stage.pod).await;
    let mut elsewhere = stage.line("cat ~/x; pwd");
    elsewhere.cwd = PathBuf::from("/usr");
    assert_eq!(output(&stage.sandbox, &elsewhere).await, "x\n/usr\n");
    // It inherits nothing of what was needed to make ready: its input and output, and what `ls` reads.
    ready(&stage.pod).await;
    let open = output(&stage.sandbox, &stage.line("ls /proc/self/fd")).await;
    assert_eq!(open, "0\n1\n2\n3\n");
    // A program that is not there is said to be missing, once.
    ready(&stage.pod).await;
    let mut missing = stage.line("");
    missing.program = "/no/such/program".to_owned();
    let error = stage.sandbox.spawn(&missing).await.unwrap_err();
    assert!(matches!(error, SpawnError::Program { .. }), "{error}");
}

/// What comes between the two is as if there had been nothing ready.
#[tokio::test]
async fn what_appears_meanwhile_is_hidden_and_pinned() {
    if !alone("ready::what_appears_meanwhile_is_hidden_and_pinned") {
        return;
    }
    let stage = Stage::new().await;
    let project = stage.world.project();
    fs::write(project.join(".env"), SECRET).unwrap();
    fs::create_dir_all(project.join("deep")).unwrap();
    fs::write(project.join("deep/key.pem"), SECRET).unwrap();
    let mut look = stage.line("cat .env deep/key.pem 2>/dev/null; echo read");
    look.hidden = vec![project.join(".env"), project.join("deep")];
    let (said, was_used) = stage.said(&look).await;
    assert!(was_used && said.ends_with("read\n"), "{said}");
    assert!(!said.contains(SECRET), "{said}");

    // One that was hidden for the command before, and is another file by now.
    let again = Stage::new().await;
    let project = again.world.project();
    fs::write(project.join(".env"), "harmless").unwrap();
    let mut look = again.line("cat .env; echo read");
    look.hidden = vec![project.join(".env")];
    assert_eq!(output(&again.sandbox, &look).await, "read\n");
    ready(&again.pod).await;
    fs::write(project.join("new"), SECRET).unwrap();
    fs::rename(project.join("new"), project.join(".env")).unwrap();
    assert_eq!(output(&again.sandbox, &look).await, "read\n");
    // And one that moves to a name of which nobody knew.
    ready(&again.pod).await;
    fs::rename(project.join(".env"), project.join(".env.local")).unwrap();
    let mut look = again.line("cat .env.local; echo read");
    look.hidden = vec![project.join(".env.local")];
    assert_eq!(output(&again.sandbox, &look).await, "read\n");
}

#[tokio::test]
async fn a_repository_that_appears_meanwhile_is_read_only() {
    if !alone("ready::a_repository_that_appears_meanwhile_is_read_only") {
        return;
    }
    let stage = Stage::new().await;
    let git = stage.world.project().join(".git");
    fs::create_dir_all(git.join("hooks")).unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(git.join("config"), "[core]\n").unwrap();
    let attack = stage.line("echo x > .git/hooks/pre-commit; echo y >> .git/config; mv .git moved");
    let (said, was_used) = stage.said(&attack).await;
    assert!(was_used, "{said}");
    assert!(is_empty(&git.join("hooks")), "{said}");
    assert_eq!(fs::read_to_string(git.join("config")).unwrap(), "[core]\n");
    // While nothing is there its name is taken, and free again when the command has ended; not while one is made ready.
    let stage = Stage::new().await;
    let git = stage.world.project().join(".git");
    assert!(!git.exists());
    let (said, was_used) = stage.said(&stage.line("mkdir .git && echo made")).await;
    assert!(was_used && !said.contains("made"), "{said}");
    soon("the name is free", || !git.exists()).await;
}

/// Commands for which something else would have to be made ready, and what they must not see or do.
#[tokio::test]
async fn another_policy_throws_it_away() {
    if !alone("ready::another_policy_throws_it_away") {
        return;
    }
    type Change = fn(&World, &mut Command);
    let cases: [(&str, Change, &str, &str); 6] = [
        (
            "fewer folders",
            |world, command| {
                let beside = world.home().join("beside");
                fs::create_dir_all(&beside).unwrap();
                fs::write(beside.join("file"), SECRET).unwrap();
                command.read_write.push(beside);
            },
            "cat ../beside/file",
            "No such file",
        ),
        (
            "fewer to read",
            |world, command| command.read_only.push(world.outside()),
            "cat ../../outside/file",
            "No such file",
        ),
        (
            "no network",
            |_, command| command.network = Network::Outgoing(Ports::Any),
            "cat < /dev/tcp/192.0.2.1/80",
            "Network is unreachable",
        ),
        (
            "no right to repositories",
            |world, command| {
                fs::create_dir_all(world.project().join(".git")).unwrap();
                fs::write(world.project().join(".git/HEAD"), "x").unwrap();
                command.git = GitAccess::Write;
            },
            "echo x > .git/HEAD",
            "Read-only file system",
        ),
        ("input", |_, _| {}, "cat", ""),
        ("nothing else", |_, _| {}, "cat first", "first\n"),
    ];
    for (name, change, line, expected) in cases {
        let stage = Stage::new().await;
        let mut before = stage.line("echo first > first");
        change(&stage.world, &mut before);
        // Thrown away by this one, and made ready for what is like it.
        assert_eq!(output(&stage.sandbox, &before).await, "", "{name}");
        ready(&stage.pod).await;
        let mut command = stage.line(line);
        if name == "input" {
            command.stdin = outrigger_sandbox::Stdin::Piped;
            let mut process = stage.sandbox.spawn(&command).await.unwrap();
            drop(process.stdin.take());
            let output = crate::support::finish(&mut process).await;
            assert_eq!(output.exit.code, Some(0), "{name}: {output:?}");
            continue;
        }
        let said = output(&stage.sandbox, &command).await;
        assert!(
            said.contains(expected) && !said.contains(SECRET),
            "{name}: {said}"
        );
    }
}

/// Folders that are others by now.
#[tokio::test]
async fn another_folder_throws_it_away() {
    if !alone("ready::another_folder_throws_it_away") {
        return;
    }
    let exchange = |stage: &Stage| {
        let (project, old) = (stage.world.project(), stage.world.home().join("old"));
        fs::rename(&project, old).unwrap();
        fs::create_dir(&project).unwrap();
        fs::write(project.join("first"), "another\n").unwrap();
    };
    let stage = Stage::new().await;
    exchange(&stage);
    let (said, was_used) = stage.said(&stage.line("cat first")).await;
    assert_eq!((said.as_str(), was_used), ("another\n", false));

    // As the daemon holds it, it is refused.
    let hold = |world: &World, command: &mut Command| {
        let dir = Dir::open_ambient_dir(world.project(), ambient_authority()).unwrap();
        command.held = vec![Held::new(world.project(), Arc::new(dir))];
    };
    let stage = Stage::new().await;
    let mut command = stage.line("cat first");
    hold(&stage.world, &mut command);
    assert_eq!(output(&stage.sandbox, &command).await, "first\n");
    ready(&stage.pod).await;
    assert_eq!(output(&stage.sandbox, &command).await, "first\n");
    ready(&stage.pod).await;
    exchange(&stage);
    let error = stage.sandbox.spawn(&command).await.unwrap_err();
    assert!(matches!(error, SpawnError::Moved(_)), "{error}");
    // Held anew, it is the new one.
    let mut command = stage.line("cat first");
    hold(&stage.world, &mut command);
    assert_eq!(output(&stage.sandbox, &command).await, "another\n");

    // What is only read: a folder, a link that is turned, one that was missing.
    let stage = Stage::after(|_| {}).await;
    let (home, outside) = (stage.world.home(), stage.world.outside());
    // The link not in the home, where the pod would keep it.
    let places = [
        home.join("folder"),
        outside.join("link"),
        home.join("missing"),
    ];
    for name in ["folder", "one", "two"] {
        fs::create_dir(stage.world.home().join(name)).unwrap();
        fs::write(
            stage.world.home().join(name).join("file"),
            format!("{name}\n"),
        )
        .unwrap();
    }
    let link = |to: &str| std::os::unix::fs::symlink(stage.world.home().join(to), &places[1]);
    link("one").unwrap();
    let with = |line: &str| {
        let mut command = stage.line(line);
        command.read_only = places.to_vec();
        let targets = ["one", "two"].map(|it| stage.world.home().join(it));
        command.read_only.extend(targets);
        command
    };
    let look = with("cat ../folder/file ../../outside/link/file; cat ../missing/file 2>/dev/null");
    assert_eq!(output(&stage.sandbox, &look).await, "folder\none\n");
    ready(&stage.pod).await;
    fs::rename(&places[0], stage.world.home().join("moved")).unwrap();
    fs::create_dir(&places[0]).unwrap();
    fs::write(places[0].join("file"), "new\n").unwrap();
    fs::remove_file(&places[1]).unwrap();
    link("two").unwrap();
    fs::create_dir(&places[2]).unwrap();
    fs::write(places[2].join("file"), "no more\n").unwrap();
    assert_eq!(output(&stage.sandbox, &look).await, "new\ntwo\nno more\n");
}

/// A root that lies in another one is put there when its command comes, and no earlier.
#[tokio::test]
async fn nothing_is_made_ready_for_a_folder_in_a_folder() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    let pod = sandbox.pod();
    let inner = world.project().join("inner");
    fs::create_dir(&inner).unwrap();
    let mut command = in_pod(&world, &pod, "cat inner/file");
    command.read_only = vec![inner.clone()];
    fs::write(inner.join("file"), "old\n").unwrap();
    assert_eq!(output(&sandbox, &command).await, "old\n");
    fs::rename(&inner, world.project().join("moved")).unwrap();
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("file"), "new\n").unwrap();
    command.args[3] = "cat inner/file; echo x > inner/file".to_owned();
    let said = output(&sandbox, &command).await;
    assert!(
        said.starts_with("new\n") && said.contains("Read-only"),
        "{said}"
    );
    assert!(!pod.is_ready());
}

/// Whatever ends a process that waits, the command runs, and once.
#[tokio::test]
async fn what_waits_may_be_killed() {
    if !alone("ready::what_waits_may_be_killed") {
        return;
    }
    for depth in 0..3 {
        let stage = Stage::new().await;
        let init = children(stage.guard)[0];
        let all = [stage.guard, init, children(init)[0]];
        let victim = all[depth];
        kill(victim);
        // Those below go with it, at once, and not before it.
        let below = &all[depth..];
        let is_gone = |it: &u32| {
            fs::read_to_string(format!("/proc/{it}/stat")).map_or(true, |stat| stat.contains(") Z"))
        };
        soon("the end of those below", || below.iter().all(is_gone)).await;
        let said = output(
            &stage.sandbox,
            &stage.line("cat first; echo once >> count; cat count"),
        )
        .await;
        assert_eq!(said, "first\nonce\n", "{depth}");
    }
}

#[tokio::test]
async fn what_waits_ends_with_its_pod() {
    if !alone("ready::what_waits_ends_with_its_pod") {
        return;
    }
    let Stage {
        world,
        sandbox,
        pod,
        guard,
    } = Stage::new().await;
    let below: Vec<_> = children(guard).into_iter().chain([guard]).collect();
    drop(pod);
    soon("the end of what waited", || {
        !below.iter().any(|it| {
            zygotes()
                .into_iter()
                .flat_map(children)
                .any(|child| child == *it)
        })
    })
    .await;
    soon("the folders are gone", || is_empty(&world.temporary())).await;
    drop(sandbox);
}

/// What is mounted or unmounted on the machine is so for the next command.
#[tokio::test]
async fn a_mount_throws_it_away() {
    const NAME: &str = "ready::a_mount_throws_it_away";
    if !rustix::process::geteuid().is_root() {
        eprintln!("*** SKIPPED: {NAME}: only root can mount ***");
        return;
    }
    if !is_own_process() {
        let own = own_process(NAME);
        let output = std::process::Command::new("unshare")
            .args(["--mount", "--"])
            .arg(own.get_program())
            .args(own.get_args())
            .env("OUTRIGGER_TEST_ROLE", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{output:?}"
        );
        return;
    }
    let stage = Stage::new().await;
    let place = stage.world.project().join("data");
    fs::create_dir(&place).unwrap();
    // Not seen as a change of the folder: it was there.
    assert_eq!(output(&stage.sandbox, &stage.line("ls data")).await, "");
    ready(&stage.pod).await;
    let mount = |args: &[&str]| {
        let done = std::process::Command::new(args[0])
            .args(&args[1..])
            .arg(&place)
            .status();
        assert!(done.unwrap().success());
    };
    mount(&["mount", "-t", "tmpfs", "none"]);
    fs::write(place.join("file"), "mounted\n").unwrap();
    assert_eq!(
        output(&stage.sandbox, &stage.line("cat data/file")).await,
        "mounted\n"
    );
    ready(&stage.pod).await;
    mount(&["umount"]);
    // Without a command that asks for it, too: it would keep what was mounted.
    soon("it is thrown away", || !stage.pod.is_ready()).await;
    assert_eq!(output(&stage.sandbox, &stage.line("ls data")).await, "");
}

#[test]
fn all_of_it_as_an_ordinary_user() {
    as_ordinary_user(&[
        "ready::the_next_command_runs_in_what_was_made_ready",
        "ready::what_appears_meanwhile_is_hidden_and_pinned",
        "ready::a_repository_that_appears_meanwhile_is_read_only",
        "ready::another_folder_throws_it_away",
    ]);
}
