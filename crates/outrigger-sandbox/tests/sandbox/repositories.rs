//! What git would run outside of the sandbox cannot be changed in full mode. Where it is restored instead: `restored`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use outrigger_sandbox::paths::Roots;
use outrigger_sandbox::{Command, GitAccess, Mode, Process, Sandbox};

use crate::control::line;
use crate::support::{
    World, as_ordinary_user, eventually, finish, is_empty, is_own_process, kill_helper, output,
    own_process, processes_with, run,
};

const EVIL: &str = "git config core.fsmonitor evil; echo evil > .git/hooks/post-commit; echo evil > .husky/pre-commit";

pub(crate) fn git(folder: &Path, words: &[&str]) -> String {
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
pub(crate) fn project(world: &World) -> PathBuf {
    let project = world.project();
    git(&project, &["init", "-q", "--template="]);
    git(&project, &["commit", "-q", "--allow-empty", "-m", "x"]);
    fs::create_dir(project.join(".git/hooks")).unwrap();
    fs::create_dir(project.join(".husky")).unwrap();
    fs::write(project.join(".husky/pre-commit"), "good\n").unwrap();
    project
}

/// Everything that git runs or is led by, as text.
pub(crate) fn state(project: &Path) -> String {
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

pub(crate) fn rights(folder: &Path) -> u32 {
    fs::metadata(folder).unwrap().permissions().mode() & 0o7777
}

pub(crate) async fn start(world: &World, sandbox: &Sandbox, text: &str) -> Process {
    let mut process = sandbox.spawn(&world.bash(text)).await.unwrap();
    assert_eq!(line(&mut process).await, "ready\n");
    process
}

/// A line of bash that may change repositories, as the git tool may.
fn writing(world: &World, line: &str) -> Command {
    let mut command = world.bash(line);
    command.git = GitAccess::Write;
    command
}

/// Names the repositories in the project, as the tools do.
fn cover(world: &World, mut command: Command) -> Command {
    let roots = Roots::open(&world.project(), &world.outside(), None).unwrap();
    command.repositories = roots.hidden().repositories;
    command
}

#[tokio::test]
async fn in_full_mode_a_repository_is_read_only_and_the_users_changes_stay() {
    let world = World::new();
    let project = project(&world);
    let before = state(&project);
    let sandbox = world.sandbox(Mode::Full);
    for attempt in [
        EVIL,
        "echo evil > .git/commondir; echo evil > .git/config.worktree; echo evil > .git/gitdir",
        "mv .git old; mkdir .git; mv old/* .git; git config core.fsmonitor evil",
        "mv .husky husky; mkdir .husky; echo evil > .husky/pre-commit",
        "rm -rf .git .husky",
        "mkdir -p .git/modules/m/hooks; echo evil > .git/modules/m/config",
        "mount -o remount,rw,bind .git; umount .git; unshare -Urm umount .git; echo evil > .git/config",
        "echo x > f; git add f; git -c user.name=n -c user.email=e commit -q -m evil; git update-ref refs/heads/evil HEAD",
    ] {
        let mut process = sandbox.spawn(&world.bash(attempt)).await.unwrap();
        finish(&mut process).await;
        assert_eq!(process.restored(), None, "{attempt}");
        assert_eq!(state(&project), before, "{attempt}");
        assert!(
            !git(&project, &["log", "--all", "--format=%s%D"]).contains("evil"),
            "{attempt}"
        );
    }
    // Reading works, and the user's own changes are seen and stay while a command runs.
    let mut process = start(
        &world,
        &sandbox,
        "git status --short -uno; echo ready; sleep 600",
    )
    .await;
    git(&project, &["config", "user.name", "changed"]);
    let mine = state(&project);
    process.kill();
    process.wait().await;
    assert_eq!(state(&project), mine);
}

#[tokio::test]
async fn hooks_in_the_work_tree_of_a_nested_repository_are_read_only() {
    let world = World::new();
    let nested = project(&world).join("nested");
    fs::create_dir_all(nested.join(".husky")).unwrap();
    fs::write(nested.join(".husky/pre-commit"), "good\n").unwrap();
    git(&nested, &["init", "-q", "--template="]);
    let attempt =
        "echo evil > nested/.husky/pre-commit; mv nested/.husky x; mv nested y; echo tried > tried";
    let command = cover(&world, world.bash(attempt));
    run(&world.sandbox(Mode::Full), &command).await;
    let hook = fs::read_to_string(nested.join(".husky/pre-commit")).unwrap();
    assert_eq!(hook, "good\n");
    assert!(world.project().join("tried").exists());
}

#[tokio::test]
async fn where_there_is_no_repository_a_command_makes_none() {
    let world = World::new();
    let project = world.project();
    // What is made in it has this bit, too.
    fs::set_permissions(&project, fs::Permissions::from_mode(0o2755)).unwrap();
    let sandbox = world.sandbox(Mode::Full);
    let plant = "git init -q; git config core.fsmonitor evil; mkdir -p .git/hooks; mv .git x; rmdir .git; echo ready; cat go";
    let mut first = start(&world, &sandbox, &format!("{plant}; sleep 600")).await;
    let mut second = start(&world, &sandbox, &format!("{plant}; sleep 600")).await;
    // Empty folders, which git takes into no commit of a repository further up.
    for name in [".git", "HEAD"] {
        let entries = fs::read_dir(project.join(name)).unwrap();
        assert_eq!(entries.count(), 0, "{name}");
    }
    first.kill();
    first.wait().await;
    assert!(project.join(".git").exists(), "the second one still runs");
    // The user makes one meanwhile, and it stays.
    git(&project, &["init", "-q", "--template="]);
    second.kill();
    second.wait().await;
    assert!(project.join(".git/config").exists());
    fs::remove_dir_all(project.join(".git")).unwrap();
    run(&sandbox, &world.bash(plant)).await;
    eventually("the end of the placeholders", || {
        !project.join(".git").exists() && !project.join("HEAD").exists()
    });
    // The git tool may.
    let mut command = world.bash("git init -q --template=");
    command.git = GitAccess::Create;
    run(&sandbox, &command).await;
    assert!(project.join(".git/config").exists());
}

#[tokio::test]
async fn a_placeholder_goes_though_helper_or_daemon_is_killed() {
    const NAME: &str = "repositories::a_placeholder_goes_though_helper_or_daemon_is_killed";
    let world = World::new();
    let project = world.project();
    let mark = format!("killed-helper-{}", std::process::id());
    let text = format!("echo ready; exec -a {mark} sleep 600");
    if is_own_process() {
        let mut process = start(&world, &world.sandbox(Mode::Full), &text).await;
        println!("PROJECT {}", project.display());
        // Until it is killed.
        process.wait().await;
        return;
    }
    let mut process = start(&world, &world.sandbox(Mode::Full), &text).await;
    eventually("the start", || !processes_with(&mark).is_empty());
    assert!(project.join(".git").exists());
    kill_helper(&mark);
    assert_eq!(process.wait().await.signal, Some(9));
    eventually("the end of the placeholder", || {
        !project.join(".git").exists()
    });
    eventually("the removal of the private directory", || {
        is_empty(&world.temporary())
    });

    let mut daemon = own_process(NAME).stdout(Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(daemon.stdout.take().unwrap()));
    let project = lines
        .map_while(Result::ok)
        .find_map(|line| Some(PathBuf::from(line.split_once("PROJECT ")?.1)))
        .unwrap();
    assert!(project.join(".git").exists());
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    eventually("the end of the placeholder", || {
        !project.join(".git").exists()
    });
    let place = project.parent().unwrap().parent().unwrap();
    eventually("the removal of the private directory", || {
        is_empty(&place.join("temporary"))
    });
    fs::remove_dir_all(place).unwrap();
}

/// What may be changed by the git tool; git run by the user *while* it runs takes nothing from it.
#[tokio::test]
async fn with_write_access_settings_and_hooks_stay_what_they_are() {
    let world = World::new();
    let project = project(&world);
    fs::create_dir_all(project.join(".git/modules/m/hooks")).unwrap();
    fs::write(project.join(".git/modules/m/HEAD"), "ref: refs/heads/x\n").unwrap();
    fs::write(project.join(".git/modules/m/config"), "[core]\n").unwrap();
    git(&project, &["worktree", "add", "-q", "tree"]);
    git(&project, &["config", "extensions.worktreeConfig", "true"]);
    let before = state(&project);
    let text = "
        exec 2> /dev/null
        mkdir evil; cp -r .git/objects .git/refs .git/HEAD evil/; cp .git/config evil/config; git config -f evil/config core.fsmonitor evil
        echo $PWD/evil > .git/commondir; rm -f .git/commondir; mv -f evil/config .git/config; echo evil > .git/config.worktree
        mv .git old; mv .git/modules .git/x; mv .git/modules/m .git/modules/y; echo evil > .git/modules/m/config; echo evil > .git/modules/m/hooks/x
        echo evil > .git/hooks/post-commit; echo evil > .husky/pre-commit
        echo evil > .git/modules/m/commondir; echo evil > .git/worktrees/tree/commondir; mv .git/worktrees .git/y; echo evil > tree/.git
        git -c user.name=n -c user.email=e commit -q --allow-empty -m 'from inside' && git -C tree status --short && echo ready; sleep 600";
    let command = cover(&world, writing(&world, text));
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
    // What was put at missing names is gone.
    assert_eq!(state(&project), before);
    assert_eq!(process.restored(), None);
}

/// A linked worktree has its repository outside of the project.
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
    let sandbox = world.sandbox(Mode::Full);
    for access in [
        GitAccess::ReadOnly,
        GitAccess::ExistingReadOnly,
        GitAccess::Write,
    ] {
        let mut command = world.bash(
            "C=$(git rev-parse --git-common-dir); G=$(git rev-parse --git-dir); mkdir evil; echo $PWD/evil > $G/commondir; echo evil > $G/config.worktree
             for m in $C/modules/*; do echo evil > $m/config; mkdir -p $m/hooks; echo evil > $m/hooks/post-commit; done; echo evil > $C/commondir; echo evil > $C/hooks/x; echo evil > .git
             git -c user.name=n -c user.email=e commit -q --allow-empty -m 'from inside'",
        );
        command.cwd = tree.clone();
        command.read_write = vec![tree.clone()];
        command.git = access;
        run(&sandbox, &command).await;
        assert_eq!(state(&main), before, "{access:?}");
        git(&tree, &["status"]);
        let last = git(&tree, &["log", "-1", "--format=%s"]);
        assert_eq!(
            last == "from inside\n",
            access == GitAccess::Write,
            "{access:?}"
        );
    }
}

/// Whatever the user's own settings name in the project is covered, and what they include.
#[tokio::test]
async fn hooks_and_settings_by_reference_are_covered() {
    let world = World::new();
    let project = project(&world);
    fs::write(
        world.home().join(".gitconfig"),
        "[core]\n\thooksPath = tools/../.githooks\n",
    )
    .unwrap();
    git(&project, &["config", "include.path", "../.gitconfig"]);
    let sandbox = world.sandbox(Mode::Full);
    let plant = "mkdir .githooks; echo evil > .githooks/pre-commit; echo evil > .gitconfig; mv .githooks x; mv .gitconfig y; mkdir .githooks; echo evil > .githooks/pre-commit; echo evil > .gitconfig";
    run(&sandbox, &world.bash(plant)).await;
    eventually("the end of the placeholders", || {
        !project.join(".githooks").exists() && !project.join(".gitconfig").exists()
    });
    // Also where they are there by now.
    fs::create_dir(project.join(".githooks")).unwrap();
    fs::write(project.join(".gitconfig"), "[alias]\n").unwrap();
    run(&sandbox, &world.bash(plant)).await;
    assert_eq!(fs::read_dir(project.join(".githooks")).unwrap().count(), 0);
    assert_eq!(
        fs::read_to_string(project.join(".gitconfig")).unwrap(),
        "[alias]\n"
    );
    // A change of the user's is seen by the next command.
    git(&project, &["config", "core.hooksPath", "other"]);
    fs::create_dir(project.join("other")).unwrap();
    run(&sandbox, &world.bash("echo evil > other/pre-commit")).await;
    assert_eq!(fs::read_dir(project.join("other")).unwrap().count(), 0);
}

/// Links in the place of what is protected: neither they nor what they lead to can be changed.
#[tokio::test]
async fn links_to_repositories_and_hooks_stay_what_they_are() {
    let world = World::new();
    let project = project(&world);
    for (name, target) in [(".git", "own"), (".husky", "own-husky")] {
        fs::rename(project.join(name), project.join(target)).unwrap();
        std::os::unix::fs::symlink(target, project.join(name)).unwrap();
    }
    let state = || {
        let links = [".git", ".husky"].map(|name| fs::read_link(project.join(name)).ok());
        let files = ["own/config", "own-husky/pre-commit"];
        (
            links,
            files.map(|name| fs::read_to_string(project.join(name)).unwrap()),
        )
    };
    let before = state();
    let sandbox = world.sandbox(Mode::Full);
    for access in [
        GitAccess::ReadOnly,
        GitAccess::ExistingReadOnly,
        GitAccess::Write,
    ] {
        let line = format!(
            "mkdir -p x; {EVIL}; ln -sfn x .git; rm -f .git .husky; mv .git y; mv own z; mv own-husky w; echo evil > own/config; mkdir .husky; git log --format=%s"
        );
        let mut command = cover(&world, world.bash(&line));
        command.git = access;
        let output = run(&sandbox, &command).await;
        assert_eq!(output.stdout.text, "x\n", "{access:?} {output:?}");
        assert_eq!(state(), before, "{access:?}");
    }
}

/// What runs for hours: the user works beside it.
#[tokio::test]
async fn a_lasting_program_changes_no_repository_and_undoes_none_of_the_users_work() {
    for mode in [Mode::Full, Mode::Fallback] {
        let world = World::new();
        let project = project(&world);
        let before = state(&project);
        let mut command = world.bash(
            "exec 2> /dev/null; echo evil > .git/hooks/post-commit; echo evil > .git/commondir; echo evil > .husky/pre-commit; mv .git old; mv .husky old2; touch allowed; echo ready; sleep 600",
        );
        command.git = GitAccess::ExistingReadOnly;
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

/// What the user has, what a command does, and what the user does then. Each runs what the command planted where
/// nothing protects the repositories.
const ATTEMPTS: [(&str, &str, &str); 10] = [
    // The project's folder as a repository without a work tree around it.
    (
        "rm -rf .git",
        "git init -q new; cp -r new/.git/. .; git config -f config core.worktree $PWD; git config -f config core.fsmonitor $PWD/evil",
        "git status",
    ),
    (
        "",
        "made new; git add new; git -C new config core.fsmonitor $PWD/evil",
        "git status",
    ),
    (
        "",
        "made new; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),new; git -C new config core.fsmonitor $PWD/evil",
        "git diff",
    ),
    (
        "",
        "made out; made out/new; git -C out add new; git -C out commit -qm x; git add out; git -C out/new config core.fsmonitor $PWD/evil",
        "git status",
    ),
    (
        "made old; git add old",
        "git config -f old/.git/config core.fsmonitor $PWD/evil",
        "git status",
    ),
    (
        "made old; git add old",
        "mkdir -p old/.git/hooks; cp evil old/.git/hooks/post-commit",
        "cd old; git commit -q --allow-empty -m y",
    ),
    (
        "made mod; git add mod; git config -f .gitmodules submodule.mod.path mod; git submodule absorbgitdirs",
        "rm mod/.git; cp -r .git/modules/mod mod/.git; git config -f mod/.git/config --unset core.worktree; git config -f mod/.git/config core.fsmonitor $PWD/evil",
        "git status",
    ),
    (
        "made mod; git add mod; git config -f .gitmodules submodule.mod.path mod; git submodule absorbgitdirs",
        "mv mod away; made mod; git -C mod config core.fsmonitor $PWD/evil",
        "git status",
    ),
    (
        "conflict",
        "printf '\\tx ./evil' >> .git/rebase-merge/git-rebase-todo",
        "git checkout -q --ours f; git add f; git rebase --continue",
    ),
    (
        "conflict",
        "mkdir git-merge-x; cp evil git-merge-x/evil; echo x/evil > .git/rebase-merge/strategy; printf 'pick %s\\n' $(git rev-parse main~1) >> .git/rebase-merge/git-rebase-todo",
        "git checkout -q --ours f; git add f; git rebase --continue",
    ),
];

const PRELUDE: &str = "exec 2> /dev/null
export GIT_CONFIG_GLOBAL=/dev/null GIT_EDITOR=true GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
made() { git init -q \"$1\"; git -C \"$1\" commit -q --allow-empty -m x; }
change() { echo $1 > f; git add f; git commit -qm $1; }
conflict() { change a; git checkout -q -b b; change b; git checkout -q main; change c; git checkout -q b; git rebase -q main; }
";

pub(crate) fn as_user(project: &Path, text: &str) {
    std::process::Command::new("bash")
        .args(["-c", &format!("{PRELUDE}{text}")])
        .current_dir(project)
        .output()
        .unwrap();
}

#[tokio::test]
async fn nothing_that_a_command_planted_is_run_from_the_top() {
    for mode in [Mode::None, Mode::Full] {
        for (before, plant, later) in ATTEMPTS {
            let world = World::new();
            let project = world.project();
            let ran = world.outside().join("ran");
            let evil = format!("#!/bin/sh\ntouch {}\n", ran.display());
            fs::write(project.join("evil"), evil).unwrap();
            as_user(
                &project,
                &format!(
                    "chmod +x evil; git init -q -b main; git commit -q --allow-empty -m x; {before}"
                ),
            );
            let command = cover(&world, world.bash(&format!("{PRELUDE}{plant}")));
            run(&world.sandbox(mode), &command).await;
            // What ran in the command itself was in the sandbox.
            fs::remove_file(&ran).unwrap_or_default();
            as_user(&project, later);
            assert_eq!(ran.exists(), mode == Mode::None, "{mode}: {plant}");
        }
    }
}

/// The user, or the git tool, may remove a folder on the way to one that settings name.
#[tokio::test]
async fn what_settings_name_cannot_be_made_whatever_of_the_way_to_it_is_there() {
    let world = World::new();
    let project = project(&world);
    git(&project, &["config", "core.hooksPath", "tools/git/hooks"]);
    git(
        &project,
        &["config", "include.path", "../conf/git/settings"],
    );
    let sandbox = world.sandbox(Mode::Full);
    let plant = "for it in tools tools/git conf conf/git; do chmod 755 $it; mkdir $it; done 2> /dev/null; mkdir tools/git/hooks; echo evil > tools/git/hooks/pre-commit; echo evil > conf/git/settings; mv tools x; mv conf y; echo tried > tried";
    for folders in [
        &["tools/git", "conf/git"][..],
        &[],
        &["tools", "conf"],
        &["tools/git"],
    ] {
        for folder in folders {
            fs::create_dir_all(project.join(folder)).unwrap();
        }
        run(&sandbox, &world.bash(plant)).await;
        eventually("the end of the placeholders", || {
            let planted = ["tools/git/hooks", "conf/git/settings", "x", "y"];
            planted.iter().all(|it| !project.join(it).exists())
        });
        fs::remove_file(project.join("tried")).unwrap();
        for folder in ["tools", "conf"] {
            let there = folders.iter().any(|it| it.starts_with(folder));
            assert_eq!(project.join(folder).exists(), there, "{folder} {folders:?}");
            fs::remove_dir_all(project.join(folder)).unwrap_or_default();
        }
    }
}

/// The last one to end leaves nothing.
#[tokio::test]
async fn two_commands_hold_the_same_missing_folder() {
    let world = World::new();
    let project = project(&world);
    git(&project, &["config", "core.hooksPath", "tools/git/hooks"]);
    let sandbox = world.sandbox(Mode::Full);
    let text = "mkdir -p tools/git/hooks; rmdir tools; echo ready; sleep 600";
    let mut first = start(&world, &sandbox, text).await;
    let mut second = start(&world, &sandbox, text).await;
    first.kill();
    first.wait().await;
    let inner = fs::read_dir(project.join("tools")).unwrap();
    assert_eq!(inner.count(), 0);
    second.kill();
    second.wait().await;
    eventually("the end of the placeholder", || {
        !project.join("tools").exists()
    });
}

/// A folder of a command's own that looks like a placeholder.
#[tokio::test]
async fn nothing_is_open_in_what_looks_like_a_placeholder() {
    let world = World::new();
    let project = project(&world);
    git(&project, &["config", "core.hooksPath", "tools/git/hooks"]);
    fs::remove_dir(project.join(".git/hooks")).unwrap();
    fs::create_dir_all(project.join("tools/git")).unwrap();
    let before = state(&project);
    let sandbox = world.sandbox(Mode::Full);
    for (look, plant) in [
        (
            "chmod 1555 .git",
            "chmod 755 .git; mkdir .git/hooks; echo evil > .git/hooks/pre-commit; echo ../evil > .git/commondir",
        ),
        (
            "chmod 1555 tools",
            "chmod 755 tools; mkdir tools/git/hooks; echo evil > tools/git/hooks/pre-commit",
        ),
        (
            "rmdir tools/git; chmod 1555 tools",
            "chmod 755 tools; mkdir -p tools/git/hooks; echo evil > tools/git/hooks/pre-commit",
        ),
    ] {
        run(&sandbox, &writing(&world, look)).await;
        run(&sandbox, &writing(&world, plant)).await;
        eventually("the end of the placeholders", || {
            !project.join("tools/git/hooks").exists() && !project.join(".git/hooks").exists()
        });
        assert_eq!(state(&project), before, "{look}");
    }
}

/// What is in the way of its own work is left to the git tool.
#[tokio::test]
async fn the_git_tool_makes_a_repository_and_folders_that_settings_name() {
    let world = World::new();
    let project = project(&world);
    git(
        &project,
        &["config", "include.path", "../conf/git/settings"],
    );
    let mut command = world.bash("mkdir -p conf/git; touch conf/x; echo tried > tried; ls");
    command.git = GitAccess::Create;
    let said = output(&world.sandbox(Mode::Full), &command).await;
    assert_eq!(said, "conf\ntried\n");
    // Settings of the user's that name a folder in each repository.
    let other = world.outside().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(
        world.home().join(".gitconfig"),
        "[core]\n\thooksPath = .git/hooks\n",
    )
    .unwrap();
    fs::remove_dir_all(project.join(".git")).unwrap();
    let mut command = world.bash("git init -q --template=; ls -A");
    command.git = GitAccess::Create;
    let said = output(&world.sandbox(Mode::Full), &command).await;
    assert!(said.starts_with(".git\n"), "{said}");
}

/// What the git tool may change, but not this.
#[tokio::test]
async fn what_settings_name_in_the_repository_itself_cannot_be_made() {
    let world = World::new();
    let project = project(&world);
    git(&project, &["config", "core.hooksPath", ".git/gh"]);
    git(&project, &["config", "include.path", "inc/settings"]);
    let before = state(&project);
    let sandbox = world.sandbox(Mode::Full);
    for access in [GitAccess::ReadOnly, GitAccess::Write, GitAccess::Create] {
        let plant = "mkdir -p .git/inc .git/gh; chmod 755 .git/inc .git/gh; echo evil > .git/inc/settings; echo evil > .git/gh/pre-commit; echo tried > tried";
        let mut command = world.bash(plant);
        command.git = access;
        run(&sandbox, &command).await;
        eventually("the end of the placeholders", || {
            let planted = [".git/inc", ".git/gh"];
            planted.iter().all(|it| !project.join(it).exists())
        });
        assert_eq!(state(&project), before, "{access:?}");
        fs::remove_file(project.join("tried")).unwrap();
    }
}

/// What cannot be looked at is not taken for what is not there.
#[tokio::test(flavor = "multi_thread")]
async fn while_another_command_opens_and_closes_the_project_no_name_is_free() {
    if rustix::process::geteuid().is_root() {
        // Closed to everybody but root; see `repositories_as_an_ordinary_user`.
        return;
    }
    for is_repository in [false, true] {
        let world = World::new();
        let project = match is_repository {
            true => project(&world),
            false => world.project(),
        };
        let sandbox = world.sandbox(Mode::Full);
        let set = |mode: u32| fs::set_permissions(&project, fs::Permissions::from_mode(mode));
        let mut command = world.bash("mkdir -p .git/x; echo evil > .git/config");
        command.git = match is_repository {
            true => GitAccess::Create,
            false => GitAccess::ReadOnly,
        };
        let before = is_repository.then(|| fs::read(project.join(".git/config")).unwrap());
        // Git says what its settings name.
        run(&sandbox, &world.bash("true")).await;
        set(0o666).unwrap();
        let refused = sandbox.spawn(&command).await.err().map(|it| it.to_string());
        let refused = refused.unwrap_or_default();
        assert!(refused.contains("cannot be looked at"), "{refused}");
        let ended = std::sync::atomic::AtomicBool::new(false);
        let is_over = || ended.load(std::sync::atomic::Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over() {
                    for mode in [0o666, 0o755] {
                        set(mode).unwrap();
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                }
            });
            let spawn = async {
                let mut ran = 0;
                for _ in 0..30 {
                    // Some of them are refused.
                    if let Ok(mut process) = sandbox.spawn(&command).await {
                        finish(&mut process).await;
                        ran += 1;
                    }
                }
                ran
            };
            let handle = tokio::runtime::Handle::current();
            let ran = tokio::task::block_in_place(|| handle.block_on(spawn));
            ended.store(true, std::sync::atomic::Ordering::Relaxed);
            println!("{ran} of 30 commands ran");
        });
        set(0o755).unwrap();
        let now = fs::read(project.join(".git/config")).ok();
        assert!(now == before, "{is_repository}");
        assert!(is_repository || !project.join(".git/x").exists());
    }
}

/// A command could give its owner the right to write again.
#[tokio::test]
async fn no_name_is_left_free_in_a_folder_that_is_closed_for_the_moment() {
    const CLOSED: u32 = 0o555;
    let world = World::new();
    let project = world.project();
    let close = || fs::set_permissions(&project, fs::Permissions::from_mode(CLOSED)).unwrap();
    close();
    let sandbox = world.sandbox(Mode::Full);
    run(&sandbox, &world.bash("true")).await;
    assert_eq!(rights(&project), CLOSED);
    let plant = "chmod 755 .; mkdir -p .git/x; rmdir .git; mkdir -p .git/x; mv .git HEAD x; echo x > HEAD; echo done > tried";
    run(&sandbox, &world.bash(plant)).await;
    let mut names: Vec<_> = fs::read_dir(&project).unwrap().flatten().collect();
    names.retain(|entry| entry.file_name() != "tried");
    assert!(names.is_empty(), "{names:?}");
    assert!(project.join("tried").exists());
}

/// A command cannot change it either.
#[tokio::test]
async fn a_command_runs_in_a_folder_of_somebody_elses() {
    if rustix::process::geteuid().is_root() {
        // Nobody else's to root; see `repositories_as_an_ordinary_user`.
        return;
    }
    let world = World::new();
    let foreign = PathBuf::from("/usr/share");
    let mut command = world.bash("pwd; touch x || echo no");
    command.read_write.push(foreign.clone());
    command.cwd = foreign;
    let said = output(&world.sandbox(Mode::Full), &command).await;
    assert!(said.starts_with("/usr/share\nno\n"), "{said}");
}

#[test]
fn repositories_as_an_ordinary_user() {
    as_ordinary_user(&[
        "repositories::a_command_runs_in_a_folder_of_somebody_elses",
        "repositories::no_name_is_left_free_in_a_folder_that_is_closed_for_the_moment",
        "repositories::what_settings_name_cannot_be_made_whatever_of_the_way_to_it_is_there",
        "repositories::two_commands_hold_the_same_missing_folder",
        "repositories::nothing_is_open_in_what_looks_like_a_placeholder",
        "repositories::while_another_command_opens_and_closes_the_project_no_name_is_free",
    ]);
}
