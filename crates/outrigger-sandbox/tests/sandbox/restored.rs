//! Where nothing can be mounted, what git would run outside of the sandbox is restored after the last command.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use outrigger_sandbox::Mode;

use crate::repositories::{as_user, git, project, rights, start, state};
use crate::support::{World, as_ordinary_user, eventually, finish, is_empty, kill_helper, run};

/// Modes in which nothing can be mounted, so that settings and hooks are restored.
const RESTORING: [Mode; 2] = [Mode::Fallback, Mode::Limits];

#[tokio::test]
async fn settings_and_hooks_are_restored_and_that_is_said() {
    for mode in RESTORING {
        let world = World::new();
        let project = project(&world);
        let before = state(&project);
        let unusual = fs::Permissions::from_mode(0o750);
        fs::set_permissions(project.join(".git/hooks"), unusual).unwrap();
        let sandbox = world.sandbox(mode);
        for (attempt, named) in [
            ("git config core.fsmonitor evil", ".git/config"),
            ("echo evil > .git/config.worktree", ".git/config.worktree"),
            (
                "echo evil > .git/hooks/post-commit",
                ".git/hooks/post-commit",
            ),
            ("rm -r .git/hooks; echo evil > .git/hooks", ".git/hooks"),
            (
                "mkdir e; rm -rf .git/hooks; ln -s ../e .git/hooks",
                ".git/hooks",
            ),
            ("rm .git/config; ln -s ../evil .git/config", ".git/config"),
            ("rm .git/config; mkdir -p .git/config/x", ".git/config"),
            // As their owner, who may give himself the right again.
            (
                "git config core.fsmonitor evil; echo evil > .git/hooks/x; chmod 444 .git/config; chmod 555 .git/hooks .git",
                ".git/hooks/x",
            ),
            (
                "echo evil > .git/hooks/x; chmod 000 .git/hooks .git/config .git",
                ".git/hooks/x",
            ),
            (
                "mkdir -p .git/hooks/y/z; chmod 000 .git/hooks/y",
                ".git/hooks/y",
            ),
            (
                "rm .git/config; mkdir -p .git/config/a/b/c/d/e/f/g; chmod 000 .git/config/a",
                ".git/config",
            ),
            ("chmod 700 .git/hooks", ".git/hooks"),
            (
                "mv .git/hooks .git/old; mkdir -m 777 .git/hooks",
                ".git/hooks",
            ),
            ("rm -rf .git/old .git/hooks", ".git/hooks"),
            (
                "mkdir -p .git/hooks/x/y; touch .git/hooks/x/y/evil",
                ".git/hooks/x",
            ),
        ] {
            let mut process = sandbox.spawn(&world.bash(attempt)).await.unwrap();
            finish(&mut process).await;
            let restored = process
                .restored()
                .unwrap_or_else(|| panic!("{mode}: {attempt}"));
            assert_eq!(restored.failure, None, "{mode}: {attempt}: {restored:?}");
            assert!(
                restored.paths.contains(&named.to_owned()),
                "{mode}: {attempt}: {restored:?}"
            );
            assert_eq!(state(&project), before, "{mode}: {attempt}");
            assert_eq!(
                rights(&project.join(".git/hooks")),
                0o750,
                "{mode}: {attempt}"
            );
        }
        let replace = "mv .git x; cp -r x .git; git config core.fsmonitor evil";
        run(&sandbox, &world.bash(replace)).await;
        assert_eq!(state(&project), before, "{mode}");
        let gone = "rm -rf x; mv .git x; ln -s x .git";
        let mut process = sandbox.spawn(&world.bash(gone)).await.unwrap();
        finish(&mut process).await;
        assert!(process.restored().unwrap().failure.is_some(), "{mode}");
        fs::remove_file(project.join(".git")).unwrap();
        fs::rename(project.join("x"), project.join(".git")).unwrap();
        git(&project, &["config", "user.name", "changed"]);
        let mine = state(&project);
        let mut process = sandbox.spawn(&world.bash("true")).await.unwrap();
        finish(&mut process).await;
        assert_eq!(process.restored(), None, "{mode}");
        assert_eq!(state(&project), mine, "{mode}");
    }
}

/// What is compared is bounded, what is removed is not; and the project itself may be closed.
#[tokio::test]
async fn nothing_that_is_new_is_left_however_much_it_is() {
    for (attempt, closes) in [
        (
            "rm -rf .git/hooks/*; cd .git/hooks; mkdir d; touch {1..3000} d/{1..3000}; echo evil > pre-commit",
            false,
        ),
        (
            "echo evil > .git/hooks/x; git config core.fsmonitor evil; chmod 000 .git/hooks .git .",
            true,
        ),
    ] {
        let world = World::new();
        let project = project(&world);
        fs::write(project.join(".git/hooks/post-merge"), "good\n").unwrap();
        let before = state(&project);
        let sandbox = world.sandbox(Mode::Fallback);
        let mut process = sandbox.spawn(&world.bash(attempt)).await.unwrap();
        finish(&mut process).await;
        let restored = process.restored().unwrap();
        assert_eq!(restored.failure, None, "{attempt}: {restored:?}");
        if closes {
            assert_eq!(rights(&project), 0, "what the command did is not undone");
            fs::set_permissions(&project, fs::Permissions::from_mode(0o755)).unwrap();
        }
        assert_eq!(state(&project), before, "{attempt}");
    }
}

/// What the daemon could not see before may be the user's.
#[tokio::test]
async fn no_hook_of_the_users_is_removed() {
    const HOOKS: &str = ".git/hooks";
    for (before, attempt, rights_after) in [
        // Not to be looked into, even by its owner.
        ("chmod -R -x .git/hooks", "true", 0o644),
        // More than is compared.
        ("touch .git/hooks/{1..2000}", "rm .git/hooks/1; true", 0o755),
        (
            "head -c 3M /dev/zero > .git/hooks/a; head -c 2M /dev/zero > .git/hooks/b",
            "rm .git/hooks/a",
            0o755,
        ),
        // A link to a folder of the project's.
        (
            "mkdir more; touch more/{1..2000}",
            "rm -rf .git/hooks; ln -s ../more .git/hooks",
            0o755,
        ),
    ] {
        let world = World::new();
        let project = project(&world);
        fs::set_permissions(project.join(HOOKS), fs::Permissions::from_mode(0o755)).unwrap();
        as_user(&project, before);
        let files = || {
            as_user(&project, "chmod 755 .git/hooks");
            let all = ["more", HOOKS].map(|it| project.join(it));
            let read = all.iter().filter_map(|it| fs::read_dir(it).ok());
            let mut names: Vec<_> = read.flatten().flatten().map(|it| it.file_name()).collect();
            names.retain(|it| it != "1" || before.contains("more"));
            names.sort();
            names
        };
        let there = files();
        fs::set_permissions(
            project.join(HOOKS),
            fs::Permissions::from_mode(rights_after),
        )
        .unwrap();
        let sandbox = world.sandbox(Mode::Fallback);
        let plant = "echo evil > .git/config.worktree; echo evil >> .git/config";
        run(&sandbox, &world.bash(&format!("{plant}; {attempt}"))).await;
        assert!(!project.join(".git/config.worktree").exists(), "{before}");
        let config = fs::read_to_string(project.join(".git/config")).unwrap();
        assert!(!config.contains("evil"), "{before}");
        assert_eq!(rights(&project.join(HOOKS)), rights_after, "{before}");
        assert_eq!(files(), there, "{before}; {attempt}");
    }
}

/// The first command closes the project, in which the second one is to be watched as well.
#[tokio::test]
async fn a_command_in_a_closed_project_is_watched_as_well() {
    let world = World::new();
    let project = project(&world);
    let before = state(&project);
    let sandbox = world.sandbox(Mode::Fallback);
    for mode in ["300", "100"] {
        run(&sandbox, &world.bash(&format!("chmod {mode} ."))).await;
        let plant = "chmod 755 .; echo evil > .git/hooks/pre-commit; echo tried > tried";
        run(&sandbox, &world.bash(plant)).await;
        assert_eq!(state(&project), before, "{mode}");
        fs::remove_file(project.join("tried")).unwrap();
    }
}

/// The user's own rights are not what a command changed.
#[tokio::test]
async fn nothing_is_told_of_a_repository_that_is_closed_to_writing() {
    let world = World::new();
    let git = project(&world).join(".git");
    fs::set_permissions(&git, fs::Permissions::from_mode(0o555)).unwrap();
    let mut process = world
        .sandbox(Mode::Fallback)
        .spawn(&world.bash("true"))
        .await
        .unwrap();
    finish(&mut process).await;
    assert_eq!(process.restored(), None);
    assert_eq!(rights(&git), 0o555);
    // So that it can be removed.
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
}

/// It cannot be put back, and may be the user's: it is left, but git does not run it any more, and that is told.
#[tokio::test]
async fn a_change_of_what_is_too_large_to_be_kept_is_told() {
    let world = World::new();
    let hook = project(&world).join(".git/hooks/pre-push");
    let large = || fs::write(&hook, vec![b'a'; 5 << 20]).unwrap();
    large();
    let sandbox = world.sandbox(Mode::Fallback);
    for (line, is_changed) in [
        ("cat .git/hooks/pre-push > copy", false),
        ("printf b | dd of=.git/hooks/pre-push conv=notrunc", true),
        ("printf evil > .git/hooks/pre-push", true),
    ] {
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        let mut process = sandbox.spawn(&world.bash(line)).await.unwrap();
        finish(&mut process).await;
        let failure = process.restored().and_then(|it| it.failure);
        let told = failure.is_some_and(|it| it.contains("too large to be kept"));
        assert_eq!(told, is_changed, "{line}");
        let expected = if is_changed { 0o644 } else { 0o755 };
        assert_eq!(rights(&hook), expected, "{line}");
    }
    large();
    // What is no file any more is not the user's.
    let line = "rm .git/hooks/pre-push; ln -s ../../evil .git/hooks/pre-push";
    run(&sandbox, &world.bash(line)).await;
    assert!(hook.symlink_metadata().is_err());
}

/// The second command starts when the first has planted; the last one's end restores.
#[tokio::test]
async fn two_commands_at_once_do_not_take_each_others_plants_for_the_users_files() {
    for mode in RESTORING {
        let world = World::new();
        let project = project(&world);
        let before = state(&project);
        let sandbox = world.sandbox(mode);
        let plant = "git config core.fsmonitor evil; echo ready; sleep 600";
        let mut first = start(&world, &sandbox, plant).await;
        let mut second = start(&world, &sandbox, "echo ready; sleep 600").await;
        first.kill();
        first.wait().await;
        assert_eq!(first.restored(), None, "{mode}");
        // Though nobody waits for it.
        drop(second.stdout.take());
        second.kill();
        second.wait().await;
        assert!(second.restored().is_some(), "{mode}");
        assert_eq!(state(&project), before, "{mode}");
    }
}

#[tokio::test]
async fn what_a_command_planted_is_restored_though_its_helper_is_killed() {
    for mode in RESTORING {
        let world = World::new();
        let project = project(&world);
        let before = state(&project);
        let mark = format!("killed-helper-{mode}-{}", std::process::id());
        // Deep enough for more descriptors than anybody has, who walks through it with one for each level.
        let text = format!(
            "git config core.fsmonitor evil; cd $TMPDIR; perl -e 'for (1..3000) {{ mkdir \"d\"; chdir \"d\" }}'; echo ready; exec -a {mark} sleep 600"
        );
        let mut process = start(&world, &world.sandbox(mode), &text).await;
        kill_helper(&mark);
        assert_eq!(process.wait().await.signal, Some(9), "{mode}");
        assert_eq!(process.restored().unwrap().failure, None, "{mode}");
        assert_eq!(state(&project), before, "{mode}");
        eventually("the removal of the private directory", || {
            is_empty(&world.temporary())
        });
    }
}

#[test]
fn restored_as_an_ordinary_user() {
    as_ordinary_user(&[
        "restored::settings_and_hooks_are_restored_and_that_is_said",
        "restored::nothing_that_is_new_is_left_however_much_it_is",
        "restored::no_hook_of_the_users_is_removed",
        "restored::a_command_in_a_closed_project_is_watched_as_well",
        "restored::nothing_is_told_of_a_repository_that_is_closed_to_writing",
    ]);
}
