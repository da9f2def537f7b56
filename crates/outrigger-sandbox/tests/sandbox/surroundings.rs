//! Daemons and machines of other kinds: not dumpable, in a container, in a linked worktree.

use std::fs;
use std::process::Stdio;

use outrigger_sandbox::{GitAccess, Mode};
use rustix::process::DumpableBehavior;

use crate::support::{PLACE, SECRET, World, is_own_process, own_process, run};

#[tokio::test]
async fn full_mode_works_from_a_daemon_that_is_not_dumpable() {
    const NAME: &str = "surroundings::full_mode_works_from_a_daemon_that_is_not_dumpable";
    if !is_own_process() {
        // As an ordinary user, for whom the files in /proc are root's then.
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let program = own_process(NAME);
        let mut command = if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(place.path(), Some(1000), Some(1000)).unwrap();
            let mut setpriv = std::process::Command::new("setpriv");
            setpriv
                .args(["--reuid", "1000", "--regid", "1000", "--clear-groups", "--"])
                .arg(program.get_program());
            setpriv.args(program.get_args());
            setpriv
        } else {
            own_process(NAME)
        };
        let output = command
            .env(PLACE, place.path())
            .env("OUTRIGGER_TEST_ROLE", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap();
    let world = World::new();
    let sandbox = outrigger_sandbox::Sandbox::new(outrigger_sandbox::Settings {
        helper: crate::HELPER.into(),
        ceiling: Mode::Full,
        unverified: false,
        landlock: outrigger_sandbox::LANDLOCK,
        home: Some(world.home()),
        temporary: world.temporary(),
        private_bytes: outrigger_sandbox::PRIVATE_BYTES,
        pod_bytes: outrigger_sandbox::POD_BYTES,
        caches: Vec::new(),
        user_ids: None,
    });
    let report = sandbox.report().await;
    assert_eq!(report.mode, Mode::Full, "{report:?}");
    assert_eq!(
        report.commands,
        ["namespaces", "landlock", "seccomp", "rlimits"]
    );
    assert_eq!(report.refused, []);
    let line = format!("cat /proc/{}/environ; id -u", std::process::id());
    assert_eq!(
        run(&sandbox, &world.bash(&line)).await.stdout.text,
        "1000\n"
    );
}

/// The sandbox in the sandbox: a filter that refuses namespaces, as the default profile of Docker does.
#[tokio::test]
async fn where_namespaces_are_refused_the_next_mode_is_used_and_the_reason_given() {
    const NAME: &str =
        "surroundings::where_namespaces_are_refused_the_next_mode_is_used_and_the_reason_given";
    let world = World::new();
    if !is_own_process() {
        let program = own_process(NAME);
        let mut command = world.bash("");
        command.program = program.get_program().to_str().unwrap().to_owned();
        command.args = program
            .get_args()
            .map(|argument| argument.to_str().unwrap().to_owned())
            .collect();
        command
            .env
            .insert("OUTRIGGER_TEST_ROLE".to_owned(), "1".to_owned());
        command
            .env
            .insert(PLACE.to_owned(), world.project().display().to_string());
        command.limits.open_files = None;
        let output = run(&world.sandbox(Mode::Limits), &command).await;
        assert_eq!(output.exit.code, Some(0), "{output:?}");
        return;
    }
    let sandbox = world.sandbox(Mode::Full);
    let report = sandbox.report().await;
    assert_eq!(report.mode, Mode::Fallback, "{report:?}");
    let [(Mode::Full, reason)] = &report.refused[..] else {
        panic!("{report:?}");
    };
    assert!(
        reason.contains("unshare: Operation not permitted"),
        "{reason}"
    );
    let output = run(&sandbox, &world.bash("echo x > ../beside || echo refused")).await;
    assert_eq!(output.stdout.text, "refused\n");
}

fn git(directory: &std::path::Path, arguments: &[&str]) {
    let status = std::process::Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{arguments:?}");
}

/// An MCP server reads the project and may not change it.
#[tokio::test]
async fn a_hidden_file_is_hidden_where_the_project_is_for_reading_only() {
    let world = World::new();
    fs::write(world.project().join(".env"), SECRET).unwrap();
    fs::create_dir(world.project().join(".aws")).unwrap();
    fs::write(world.project().join(".aws/credentials"), SECRET).unwrap();
    for (hidden, shown) in [(&[][..], true), (&[".env", ".aws"], false)] {
        let mut command = world.bash("cat .env .aws/credentials");
        command.read_write = vec![world.outside()];
        command.read_only = vec![world.project()];
        command.hidden = hidden
            .iter()
            .map(|name| world.project().join(name))
            .collect();
        let output = run(&world.sandbox(Mode::Full), &command).await;
        assert_eq!(output.stdout.text.contains(SECRET), shown, "{output:?}");
    }
}

/// Root's command is the owner of what only root may read.
#[tokio::test]
async fn what_root_alone_may_read_of_the_system_is_hidden() {
    const LINE: &str = "find /etc -type f ! -perm -o=r -exec head -c 1 {} + 2> /dev/null | wc -c; find /etc -type d ! -perm -o=x -exec ls {} + 2> /dev/null | wc -l; cat /etc/passwd > /dev/null && echo readable";
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let open = run(&world.sandbox(Mode::None), &world.bash(LINE)).await;
    assert!(!open.stdout.text.starts_with("0\n"), "{open:?}");
    let output = run(&world.sandbox(Mode::Full), &world.bash(LINE)).await;
    assert_eq!(output.stdout.text, "0\n0\nreadable\n", "{output:?}");
}

const COMMIT: &str = "echo x > file && git add file && git -c user.name=n -c user.email=e commit -q -m work && git log --format=%s -1";

#[tokio::test]
async fn commits_work_in_a_repository_whose_hooks_and_settings_are_closed() {
    let world = World::new();
    git(&world.project(), &["init", "-q"]);
    fs::remove_dir_all(world.project().join(".git/hooks")).unwrap();
    let sandbox = world.sandbox(Mode::Full);
    let mut command = world.bash(COMMIT);
    command.git = GitAccess::Write;
    let output = run(&sandbox, &command).await;
    assert_eq!(output.stdout.text, "work\n", "{output:?}");
    let plant = "git config core.fsmonitor evil; echo evil > .git/hooks/pre-commit; ls .git/hooks";
    command.args[3] = plant.to_owned();
    let output = run(&sandbox, &command).await;
    assert_eq!(output.stdout.text, "", "{output:?}");
    let settings = fs::read_to_string(world.project().join(".git/config")).unwrap();
    assert!(!settings.contains("evil"), "{settings}");
}

#[tokio::test]
async fn commits_work_in_a_linked_worktree_and_its_repository_is_closed_too() {
    let world = World::new();
    let repository = world.outside().join("repository");
    fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "-q"]);
    git(
        &repository,
        &["commit", "-q", "--allow-empty", "-m", "first"],
    );
    git(
        &repository,
        &[
            "worktree",
            "add",
            "-q",
            world.project().join("tree").to_str().unwrap(),
        ],
    );
    let tree = world.project().join("tree");
    let sandbox = world.sandbox(Mode::Full);
    let mut command = world.bash(COMMIT);
    command.cwd = tree.clone();
    command.read_write = vec![tree.clone()];
    command.git = GitAccess::Write;
    let output = run(&sandbox, &command).await;
    assert_eq!(output.stdout.text, "work\n", "{output:?}");
    command.args[3] = format!(
        "echo evil > {0}/.git/hooks/pre-commit; echo evil >> {0}/.git/config; echo evil > {0}/beside; echo evil > .git",
        repository.display()
    );
    run(&sandbox, &command).await;
    assert!(!repository.join("beside").exists());
    assert!(!repository.join(".git/hooks/pre-commit").exists());
    assert!(
        !fs::read_to_string(repository.join(".git/config"))
            .unwrap()
            .contains("evil")
    );
    assert!(
        !fs::read_to_string(tree.join(".git"))
            .unwrap()
            .contains("evil")
    );
}
