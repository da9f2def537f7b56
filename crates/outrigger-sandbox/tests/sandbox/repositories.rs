//! What git would run outside of the sandbox is, after a command, what it was before: whatever the command tried, and
//! whoever else ran beside it or was killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use outrigger_sandbox::{Mode, Process, Sandbox, Upkeep};

use crate::control::{descends, line};
use crate::support::{
    World, eventually, finish, is_empty, is_own_process, own_children, own_process, processes_with,
    run,
};

/// Modes in which things are put back.
const MODES: [Mode; 3] = [Mode::Full, Mode::Fallback, Mode::Limits];

const EVIL: &str = "git config core.fsmonitor evil; echo evil > .git/hooks/post-commit; echo evil > .husky/pre-commit";

fn git(folder: &Path, words: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e"])
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?} {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A project with a repository and a hook of husky's.
fn project(world: &World) -> PathBuf {
    let project = world.project();
    git(&project, &["init", "-q", "--template="]);
    git(&project, &["commit", "-q", "--allow-empty", "-m", "x"]);
    fs::create_dir(project.join(".git/hooks")).unwrap();
    fs::create_dir(project.join(".husky")).unwrap();
    fs::write(project.join(".husky/pre-commit"), "good\n").unwrap();
    project
}

/// Everything that git runs or is led by, as text.
fn state(project: &Path) -> String {
    let line = "find .git .husky -path '*/objects' -prune -o -path '*/logs' -prune -o -name '.outrigger*' -prune -o -type f \\( -path '*hooks*' -o -path '*husky*' -o -name 'config*' -o -name commondir -o -name gitdir \\) -print -exec cat {} \\; ; find .git .husky -type l; ls -d HEAD config hooks 2> /dev/null";
    let output = std::process::Command::new("bash")
        .args(["-c", line])
        .current_dir(project)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

async fn start(world: &World, sandbox: &Sandbox, text: &str) -> Process {
    let mut process = sandbox.spawn(&world.bash(text)).await.unwrap();
    assert_eq!(line(&mut process).await, "ready\n");
    process
}

/// Kills the helper of a command with the mark in its command line.
fn kill_helper(mark: &str) {
    for child in own_children() {
        let is_helper = fs::read_to_string(format!("/proc/{child}/cmdline"))
            .is_ok_and(|line| line.contains("__sandbox"));
        if is_helper && descends(&processes_with(mark), &child) {
            let killed = std::process::Command::new("kill")
                .args(["-9", &child])
                .status()
                .unwrap();
            assert!(killed.success());
        }
    }
}

#[tokio::test]
async fn nothing_planted_stays_and_the_users_changes_between_commands_do() {
    for mode in MODES {
        let world = World::new();
        let project = project(&world);
        let before = state(&project);
        let sandbox = world.sandbox(mode);
        for attempt in [
            EVIL,
            "mkdir -p evil; cp .git/config evil; echo ../evil > .git/commondir; echo evil > .git/config.worktree; echo evil > .git/gitdir",
            "git init -q --bare b; mv b/* .; rmdir b; git config -f config core.fsmonitor evil; rm -f HEAD",
            "mkdir -p .git/modules/m/hooks; cd .git/modules/m; echo x > HEAD; echo evil > config; cd hooks; touch $(seq -f %g.sample 3000)",
            // The one after it finds its place full.
            EVIL,
            "mkdir e; rm -rf .git/hooks; ln -s ../e .git/hooks; echo evil > e/post-commit",
            "for i in $(seq 300); do mkdir -p .git/hooks/$i/x; done",
        ] {
            let mut process = sandbox.spawn(&world.bash(attempt)).await.unwrap();
            finish(&mut process).await;
            let failure = process
                .restored()
                .and_then(|restored| restored.failure.clone());
            assert_eq!(failure, None, "{mode}: {attempt}");
            git(&project, &["status"]);
            fs::remove_dir_all(project.join("e")).unwrap_or_default();
            fs::remove_dir_all(project.join("evil")).unwrap_or_default();
            for name in [
                "config",
                "hooks",
                "objects",
                "refs",
                "info",
                "branches",
                "description",
            ] {
                fs::remove_dir_all(project.join(name)).unwrap_or_default();
                fs::remove_file(project.join(name)).unwrap_or_default();
            }
            let after = state(&project);
            for known in before.lines() {
                assert!(
                    after.contains(known),
                    "{mode}: {attempt}: {known} of {after}"
                );
            }
            assert!(!after.contains("evil"), "{mode}: {attempt}");
        }
        git(&project, &["config", "user.name", "changed"]);
        let mine = state(&project);
        run(&sandbox, &world.bash("true")).await;
        assert_eq!(state(&project), mine, "{mode}");
    }
}

/// The second command starts when the first has planted, and ends when the first has been cleaned up after.
#[tokio::test]
async fn two_commands_at_once_do_not_take_each_others_plants_for_the_users_files() {
    for mode in MODES {
        let world = World::new();
        let project = project(&world);
        let before = state(&project);
        let sandbox = world.sandbox(mode);
        let mut first = start(&world, &sandbox, &format!("{EVIL}; echo ready; cat go")).await;
        let mut second = start(
            &world,
            &sandbox,
            "echo ready; until [ -e go ]; do sleep 0.01; done",
        )
        .await;
        first.kill();
        first.wait().await;
        assert!(!state(&project).contains("evil"), "{mode}");
        fs::write(project.join("go"), "").unwrap();
        finish(&mut second).await;
        assert_eq!(state(&project), before, "{mode}");
    }
}

/// A repository that was not there is not an original either.
#[tokio::test]
async fn nor_does_a_new_repository_come_back() {
    for mode in MODES {
        let world = World::new();
        let sandbox = world.sandbox(mode);
        let plant = "git init -q; git config core.fsmonitor evil; echo ready; sleep 600";
        let mut first = start(&world, &sandbox, plant).await;
        let mut second = start(&world, &sandbox, "echo ready; sleep 600").await;
        for process in [&mut first, &mut second] {
            process.kill();
            process.wait().await;
            let config = fs::read_to_string(world.project().join(".git/config")).unwrap();
            assert!(!config.contains("evil"), "{mode}: {config}");
        }
    }
}

#[tokio::test]
async fn a_helper_that_is_killed_has_a_successor() {
    for mode in MODES {
        let world = World::new();
        let project = project(&world);
        let before = state(&project);
        let mark = format!("killed-helper-{mode}-{}", std::process::id());
        // Deep enough for more descriptors than anybody has, who walks through it with one for each level.
        let text = format!(
            "echo evil > .husky/pre-commit; mkdir -p .git/modules/m; echo x > .git/modules/m/HEAD; echo evil > .git/modules/m/config; cd $TMPDIR; perl -e 'for (1..3000) {{ mkdir \"d\"; chdir \"d\" }}'; echo ready; exec -a {mark} sleep 600"
        );
        let mut process = start(&world, &world.sandbox(mode), &text).await;
        eventually("the start", || !processes_with(&mark).is_empty());
        kill_helper(&mark);
        assert_eq!(process.wait().await.signal, Some(9), "{mode}");
        let restored = process.restored().unwrap();
        assert_eq!(restored.failure, None, "{mode}: {restored:?}");
        assert!(
            restored.paths.contains(&".husky".to_owned()),
            "{restored:?}"
        );
        assert!(!state(&project).contains("evil"), "{mode}");
        assert!(before.contains("good") && state(&project).contains("good"));
        eventually("the removal of the private directory", || {
            is_empty(&world.temporary())
        });
    }
}

/// However much there is to remove, that comes after what matters.
#[tokio::test]
async fn what_is_slow_to_remove_is_put_back_first() {
    for mode in MODES {
        let world = World::new();
        let project = project(&world);
        let before = state(&project);
        let text = "mkdir .git/gitdir; echo evil > .husky/pre-commit; perl -e 'chdir \".git/gitdir\"; for (1..3000) { mkdir \"d\"; chdir \"d\" }'; echo ready; sleep 600";
        let mut process = start(&world, &world.sandbox(mode), text).await;
        process.kill();
        process.wait().await;
        assert_eq!(process.restored().unwrap().failure, None, "{mode}");
        assert_eq!(state(&project), before, "{mode}");
        eventually("the removal of what was moved aside", || {
            let mut entries = fs::read_dir(project.join(".git")).unwrap();
            !entries.any(|entry| {
                let name = entry.unwrap().file_name();
                name.to_string_lossy().starts_with(".outrigger")
            })
        });
    }
}

#[tokio::test]
async fn a_daemon_that_is_killed_leaves_nothing_planted() {
    const NAME: &str = "repositories::a_daemon_that_is_killed_leaves_nothing_planted";
    let world = World::new();
    if is_own_process() {
        let mode: Mode = serde_json::from_str(&std::env::var("MODE").unwrap()).unwrap();
        let project = project(&world);
        let text = format!("{EVIL}; echo ready; sleep 600");
        let mut process = start(&world, &world.sandbox(mode), &text).await;
        println!("PROJECT {}", project.display());
        // Until it is killed.
        process.wait().await;
        return;
    }
    for mode in MODES {
        let mut daemon = own_process(NAME)
            .env("MODE", serde_json::to_string(&mode).unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = std::io::BufRead::lines(std::io::BufReader::new(daemon.stdout.take().unwrap()));
        let project = lines
            .map_while(Result::ok)
            .find_map(|line| Some(PathBuf::from(line.split_once("PROJECT ")?.1)))
            .unwrap();
        assert!(state(&project).contains("evil"));
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        eventually("the end of what was planted", || {
            !state(&project).contains("evil")
        });
        assert!(state(&project).contains("good"));
        let place = project.parent().unwrap().parent().unwrap();
        eventually("the removal of the private directory", || {
            is_empty(&place.join("temporary"))
        });
        fs::remove_dir_all(place).unwrap();
    }
}

/// git run by the user *while* a command runs takes nothing from it, in full mode.
#[tokio::test]
async fn settings_cannot_be_planted_while_a_command_runs() {
    let world = World::new();
    let project = project(&world);
    fs::create_dir_all(project.join(".git/modules/m/hooks")).unwrap();
    fs::write(project.join(".git/modules/m/HEAD"), "ref: refs/heads/x\n").unwrap();
    fs::write(project.join(".git/modules/m/config"), "[core]\n").unwrap();
    git(&project, &["worktree", "add", "-q", "tree"]);
    git(&project, &["config", "extensions.worktreeConfig", "true"]);
    let before = state(&project);
    let text = "
        mkdir evil; cp -r .git/objects .git/refs .git/HEAD evil/; cp .git/config evil/config; git config -f evil/config core.fsmonitor evil
        echo $PWD/evil > .git/commondir; rm -f .git/commondir; mv -f evil/config .git/config; echo evil > .git/config.worktree
        mv .git old; mv .git/modules .git/x; mv .git/modules/m .git/modules/y; echo evil > .git/modules/m/config; echo evil > .git/modules/m/hooks/x
        echo evil > .git/modules/m/commondir; echo evil > .git/worktrees/tree/commondir; mv .git/worktrees .git/y
        git -c user.name=n -c user.email=e commit -q --allow-empty -m 'from inside' && git -C tree status --short && echo ready; sleep 600";
    let mut command = world.bash(text);
    command.args[3] = format!("exec 2> /dev/null; {text}");
    let mut process = world.sandbox(Mode::Full).spawn(&command).await.unwrap();
    assert_eq!(line(&mut process).await, "ready\n");
    let during = state(&project);
    assert!(!during.contains("evil"), "{during}");
    assert_eq!(git(&project, &["status", "--short", "-uno"]), "");
    assert_eq!(
        git(&project, &["log", "-1", "--format=%s"]),
        "from inside\n"
    );
    process.kill();
    process.wait().await;
    // What was put at missing names to be pinned is gone.
    assert_eq!(state(&project), before);
    assert_eq!(process.restored(), None);
}

/// A linked worktree writes to a repository outside of the project, whose other places are covered as well.
#[tokio::test]
async fn the_repository_of_a_linked_worktree_is_covered() {
    let world = World::new();
    let main = world.outside().join("main");
    fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q", "--template="]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let tree = world.project().join("tree");
    git(&main, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    let modules = main.join(".git/modules");
    for number in 0..20 {
        let module = modules.join(number.to_string());
        fs::create_dir_all(&module).unwrap();
        fs::write(module.join("HEAD"), "ref: refs/heads/x\n").unwrap();
        fs::write(module.join("config"), "[core]\n").unwrap();
    }
    fs::create_dir(main.join(".husky")).unwrap();
    let before = state(&main);
    let mut command = world.bash(
        "C=$(git rev-parse --git-common-dir); G=$(git rev-parse --git-dir); mkdir evil; echo $PWD/evil > $G/commondir; echo evil > $G/config.worktree
         for m in $C/modules/*; do echo evil > $m/config; mkdir -p $m/hooks; echo evil > $m/hooks/post-commit; done; echo evil > $C/commondir; echo evil > $C/hooks/x",
    );
    command.cwd = tree.clone();
    command.read_write = vec![tree.clone()];
    let sandbox = world.sandbox(Mode::Full);
    run(&sandbox, &command).await;
    assert_eq!(state(&main), before);
    git(&tree, &["status"]);
}

/// Whatever the user's own settings name in the project is covered, and what they include.
#[tokio::test]
async fn hooks_and_settings_by_reference_are_put_back() {
    for mode in MODES {
        let world = World::new();
        let project = project(&world);
        fs::write(
            world.home().join(".gitconfig"),
            "[core]\n\thooksPath = .githooks\n",
        )
        .unwrap();
        git(&project, &["config", "include.path", "../.gitconfig"]);
        let sandbox = world.sandbox(mode);
        let plant = "mkdir .githooks; echo evil > .githooks/pre-commit; echo evil > .gitconfig";
        run(&sandbox, &world.bash(plant)).await;
        assert!(!project.join(".githooks").exists(), "{mode}");
        assert!(!project.join(".gitconfig").exists(), "{mode}");
    }
}

/// What runs for hours: nothing is put back, so that the user's own work stays, and in full mode repositories are
/// read-only to it.
#[tokio::test]
async fn a_lasting_program_changes_no_repository_and_undoes_none_of_the_users_work() {
    for mode in [Mode::Full, Mode::Fallback] {
        let world = World::new();
        let project = project(&world);
        let before = state(&project);
        let mut command = world.bash(
            "exec 2> /dev/null; echo evil > .git/hooks/post-commit; echo evil > .git/commondir; echo evil > .husky/pre-commit; mv .git old; mv .husky old2; touch allowed; echo ready; sleep 600",
        );
        command.upkeep = Upkeep::ReadOnly;
        let mut process = world.sandbox(mode).spawn(&command).await.unwrap();
        assert_eq!(line(&mut process).await, "ready\n");
        assert!(project.join("allowed").exists());
        if mode == Mode::Full {
            assert_eq!(state(&project), before);
            git(
                &project,
                &["remote", "add", "origin", "https://example.org/x"],
            );
            fs::write(project.join(".husky/pre-commit"), "new\n").unwrap();
        }
        let mine = state(&project);
        process.kill();
        process.wait().await;
        assert_eq!(state(&project), mine, "{mode}");
        assert_eq!(process.restored(), None, "{mode}");
    }
}
