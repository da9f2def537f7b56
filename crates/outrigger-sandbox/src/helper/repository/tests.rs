mod attacks;
mod gitlinks;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use rustix::fs::MemfdFlags;

use super::*;
use crate::real;
use crate::repository::{hand_over, look};

/// The baseline of a root, as a helper gets it.
struct Noted {
    memory: OwnedFd,
    writers: OwnedFd,
    root: OwnedFd,
    git: Option<OwnedFd>,
}

impl Noted {
    fn take(root: &Path) -> Self {
        let root = root.canonicalize().unwrap();
        let seen = look(real::open_dir(&root).unwrap(), &root, false, None, None);
        Self {
            memory: hand_over(&seen.baseline, &seen.contents).unwrap(),
            writers: rustix::fs::memfd_create("writers", MemfdFlags::CLOEXEC).unwrap(),
            root: seen.root.into_std_file().into(),
            git: seen.git.map(|git| git.into_std_file().into()),
        }
    }

    /// As the helper of one more command.
    fn helper(&self) -> Repositories {
        let mut descriptors = vec![
            self.memory.try_clone().unwrap(),
            self.writers.try_clone().unwrap(),
            self.root.try_clone().unwrap(),
        ];
        descriptors.extend(self.git.as_ref().map(|git| git.try_clone().unwrap()));
        Repositories::receive(&[self.git.is_some()], &mut descriptors.into_iter()).unwrap()
    }
}

fn put_back(repositories: Repositories) -> Restored {
    let (restored, junk) = repositories.put_back();
    junk.remove();
    restored
}

fn git(folder: &Path, words: &[&str]) {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=n",
            "-c",
            "user.email=e",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{words:?} {done:?}");
}

/// A project with a repository in which one hook of the user's is.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "-q"]);
    git(
        folder.path(),
        &["commit", "-q", "--allow-empty", "-m", "first"],
    );
    fs::write(folder.path().join(".git/hooks/pre-push"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(
        folder.path().join(".git/hooks/pre-push"),
        Permissions::from_mode(0o755),
    )
    .unwrap();
    folder
}

/// Everything that matters below a folder, as text.
fn look_at(folder: &Path) -> String {
    let find = "find .git -path '*/objects' -prune -o -path '*/logs' -prune -o \\( -path '*hooks*' -o -name 'config*' -o -name commondir -o -name gitdir \\) -printf '%p %y %m %l\\n' | sort; cat .git/config .git/hooks/pre-push 2>/dev/null";
    let done = Command::new("sh")
        .args(["-c", find])
        .current_dir(folder)
        .output()
        .unwrap();
    String::from_utf8(done.stdout).unwrap()
}

fn restored(folder: &Path, change: impl FnOnce()) -> Vec<String> {
    let helper = Noted::take(folder).helper();
    change();
    let restored = put_back(helper);
    assert_eq!(restored.failure, None, "{restored:?}");
    restored.paths
}

fn shell(folder: &Path, line: &str) {
    shows(folder, line);
}

/// What a line writes.
fn shows(folder: &Path, line: &str) -> String {
    let done = Command::new("sh")
        .args(["-ec", line])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn an_empty_directory_of_hooks_is_no_change_and_a_filled_one_is() {
    for (line, told) in [
        ("mkdir .git/hooks", &[][..]),
        (
            "mkdir .git/hooks; touch .git/hooks/pre-push",
            &[".git/hooks"],
        ),
        ("ln -s /tmp .git/hooks", &[".git/hooks"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "-q", "--template="]);
        let paths = restored(folder.path(), || shell(folder.path(), line));
        assert_eq!(paths, told, "{line}");
    }
}

#[test]
fn whatever_was_changed_is_put_back() {
    for (line, told) in [
        ("true", &[][..]),
        (
            "git -c user.name=n -c user.email=e commit -q --allow-empty -m more",
            &[],
        ),
        ("git config core.fsmonitor evil", &[".git/config"]),
        ("rm .git/config", &[".git/config"]),
        ("rm .git/config; mkdir .git/config", &[".git/config"]),
        (
            "mv .git/config keep; ln -s ../keep .git/config; echo evil >> keep",
            &[".git/config"],
        ),
        ("echo evil > .git/hooks/post-commit", &[".git/hooks"]),
        ("echo evil >> .git/hooks/pre-push", &[".git/hooks"]),
        ("chmod a-x .git/hooks/pre-push", &[".git/hooks"]),
        ("rm -r .git/hooks", &[".git/hooks"]),
        (
            "mv .git/hooks h; ln -s ../h .git/hooks; echo evil > h/post-commit",
            &[".git/hooks"],
        ),
        (
            "mkdir -p .git/hooks/a/b; echo evil > .git/hooks/a/b/c; chmod 0 .git/hooks/a",
            &[".git/hooks"],
        ),
        (
            "mkdir evil; cp .git/config evil; echo ../evil > .git/commondir",
            &[".git/commondir"],
        ),
        (
            "echo evil > .git/config.worktree",
            &[".git/config.worktree"],
        ),
    ] {
        let folder = project();
        let before = look_at(folder.path());
        let found = restored(folder.path(), || shell(folder.path(), line));
        assert_eq!(look_at(folder.path()), before, "{line}");
        assert_eq!(found, told, "{line}");
        git(folder.path(), &["log"]);
    }
}

#[test]
fn the_repository_itself_comes_back() {
    for line in [
        "mv .git old; cp -r old .git; echo evil > .git/hooks/post-commit; git config core.fsmonitor evil",
        "mv .git old; mkdir evil; ln -s evil .git",
        "mv .git old; echo 'gitdir: evil' > .git",
        "mkdir deep; mv .git deep/x",
        "mv .git .git2; git init -q; git config core.pager evil",
    ] {
        let folder = project();
        let before = look_at(folder.path());
        let found = restored(folder.path(), || shell(folder.path(), line));
        assert_eq!(look_at(folder.path()), before, "{line}");
        assert_eq!(found, [".git"], "{line}");
        git(folder.path(), &["log"]);
    }
}

#[test]
fn one_that_was_removed_has_no_harmful_heir() {
    let folder = project();
    let before = look_at(folder.path());
    restored(folder.path(), || {
        shell(
            folder.path(),
            "rm -rf .git; git init -q; git config core.fsmonitor evil; echo evil > .git/hooks/post-commit",
        );
    });
    assert_eq!(look_at(folder.path()), before);
}

#[test]
fn one_that_was_removed_stays_removed() {
    let folder = project();
    let found = restored(folder.path(), || shell(folder.path(), "rm -rf .git"));
    assert_eq!(found, [""; 0]);
    assert!(!folder.path().join(".git").exists());
}

#[test]
fn a_new_repository_stays_without_what_runs() {
    let folder = tempfile::tempdir().unwrap();
    let found = restored(folder.path(), || {
        shell(folder.path(), "git init -q; git config user.name n");
    });
    assert_eq!(found, [""; 0]);
    let folder = tempfile::tempdir().unwrap();
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "git init -q; git config core.fsmonitor evil; git remote add origin https://example.org/x; echo evil > .git/hooks/post-commit; echo x > .git/commondir",
        );
    });
    assert_eq!(found, [".git/config", ".git/hooks", ".git/commondir"]);
    git(folder.path(), &["remote", "get-url", "origin"]);
    let hooks = folder.path().join(".git/hooks");
    assert!(!hooks.join("post-commit").exists());
    assert!(hooks.join("pre-push.sample").exists());
    git(folder.path(), &["status"]);
    for line in ["echo 'gitdir: evil' > .git", "ln -s evil .git"] {
        let folder = tempfile::tempdir().unwrap();
        let found = restored(folder.path(), || shell(folder.path(), line));
        assert_eq!(found, [".git"], "{line}");
        assert!(fs::symlink_metadata(folder.path().join(".git")).is_err());
    }
}

#[test]
fn worktrees_and_submodules_are_kept_from_leading_elsewhere() {
    let folder = project();
    shell(
        folder.path(),
        "mkdir inner; cd inner; git init -q; git -c user.name=n -c user.email=e commit -q --allow-empty -m x",
    );
    git(
        folder.path(),
        &["submodule", "add", "-q", "./inner", "sub/one"],
    );
    git(folder.path(), &["worktree", "add", "-q", "tree"]);
    let before = look_at(folder.path());
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "echo evil > .git/worktrees/tree/commondir; echo evil > .git/worktrees/tree/config.worktree
             git worktree add -q second; echo evil > .git/worktrees/second/commondir; test ! -d .git/modules || find .git/modules -name config -exec sh -c 'echo evil >> $1' - {} \\;",
        );
    });
    git(folder.path(), &["-C", "second", "status"]);
    git(folder.path(), &["worktree", "remove", "--force", "second"]);
    assert_eq!(look_at(folder.path()), before);
    assert!(
        found.contains(&".git/worktrees/tree/commondir".to_owned()),
        "{found:?}"
    );
    assert!(
        found.contains(&".git/worktrees/second/commondir".to_owned()),
        "{found:?}"
    );
}

/// Another command runs meanwhile and makes links where this side writes.
#[test]
fn nothing_is_written_through_a_link() {
    let outside = tempfile::tempdir().unwrap();
    let folder = project();
    restored(folder.path(), || {
        fs::remove_dir_all(folder.path().join(".git/hooks")).unwrap();
        symlink(outside.path(), folder.path().join(".git/hooks")).unwrap();
    });
    assert!(fs::read_dir(outside.path()).unwrap().next().is_none());
}
