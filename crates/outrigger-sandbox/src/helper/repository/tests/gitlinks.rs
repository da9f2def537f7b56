//! What somebody tried by submodules, and by what git goes on with.

use super::*;

const MAKE: &str = "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e; made() { git init -q \"$1\"; git -C \"$1\" commit -q --allow-empty -m x; };";

const PLANT: &str = "git config -f mod/.git/config core.fsmonitor evil; mkdir -p mod/.git/hooks; echo evil > mod/.git/hooks/post-checkout";

/// What git would find in the submodules of a project.
fn found_in(folder: &Path) -> String {
    let line = "find . -name '*-replaced-*' -prune -o \\( -path '*/.git/config' -o -path '*/hooks/*' -o -name git-rebase-todo -o -name strategy -o -name opts \\) -type f -exec cat {} +; find . -name .git ! -type d -exec cat {} +";
    let done = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .output()
        .unwrap();
    String::from_utf8(done.stdout).unwrap()
}

/// A project with a submodule whose `.git` is a directory.
fn with_submodule() -> tempfile::TempDir {
    let folder = project();
    shell(
        folder.path(),
        &format!(
            "{MAKE} made mod; git add mod 2> /dev/null; git config -f .gitmodules submodule.mod.path mod"
        ),
    );
    folder
}

#[test]
fn a_new_submodule_has_nothing_that_runs() {
    for plant in [
        format!("made mod; git add mod; {PLANT}"),
        format!("made mod; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),mod; {PLANT}"),
        format!("made mod; git add mod; git update-index --split-index; {PLANT}"),
        format!("made mod; git add mod; git update-index --index-version 4; {PLANT}"),
        // A submodule of a submodule.
        "made out; made out/mod; git -C out add mod; git -C out commit -q -m x; git add out; git -C out/mod config core.fsmonitor evil".into(),
        // Its directory is elsewhere.
        "made mod; git add mod; git -C mod config core.fsmonitor evil; mv mod/.git elsewhere; echo 'gitdir: ../elsewhere' > mod/.git; mkdir -p x; mv elsewhere x/evil; echo 'gitdir: ../x/evil' > mod/.git".into(),
        "made mod; git add mod; git -C mod config core.fsmonitor evil; mv mod/.git evil; ln -s ../evil mod/.git; mv evil x-replaced-evil".into(),
        "made mod; git add mod; mkdir -p mod/.git/rebase-merge; echo 'exec evil' > mod/.git/rebase-merge/git-rebase-todo".into(),
    ] {
        let folder = project();
        let helper = Noted::take(folder.path()).helper();
        shell(folder.path(), &format!("{MAKE} {{ {plant}; }} 2> /dev/null"));
        let restored = put_back(helper);
        assert_eq!(restored.failure, None, "{plant}");
        assert!(!restored.paths.is_empty(), "{plant}");
        // What no `.git` leads to any more is not git's.
        shell(folder.path(), "rm -rf x");
        let after = found_in(folder.path());
        assert!(!after.contains("evil"), "{plant}: {after}");
        git(folder.path(), &["status"]);
    }
}

#[test]
fn a_submodule_that_was_there_is_put_back() {
    for plant in [
        PLANT,
        "git config -f mod/.git/config core.fsmonitor evil; git rm -qf --cached mod",
        "rm -rf mod/.git; git init -q mod; git -C mod config core.fsmonitor evil",
        "mkdir -p mod/.git/modules/m; echo x > mod/.git/modules/m/HEAD; echo '[core] fsmonitor = evil' > mod/.git/modules/m/config",
    ] {
        let folder = with_submodule();
        git(
            &folder.path().join("mod"),
            &["config", "core.pager", "mine"],
        );
        let found = restored(folder.path(), || shell(folder.path(), plant));
        assert!(found[0].starts_with("mod/.git/"), "{plant}: {found:?}");
        let after = found_in(folder.path());
        assert!(!after.contains("evil"), "{plant}: {after}");
        assert!(after.contains("mine"), "{plant}: {after}");
        git(folder.path(), &["status"]);
    }
}

/// A `.git` that is a file leads where it led; what took its place may be all there is of the submodule.
#[test]
fn the_file_of_a_submodule_is_put_back() {
    for (plant, kept) in [
        ("echo 'gitdir: ../evil' > mod/.git", false),
        (
            "rm mod/.git; cp -r .git/modules/mod mod/.git; git config -f mod/.git/config core.fsmonitor evil",
            true,
        ),
        (
            "mv mod mod2; git init -q mod; git -C mod config core.fsmonitor evil",
            true,
        ),
    ] {
        let folder = with_submodule();
        git(folder.path(), &["submodule", "absorbgitdirs"]);
        let file = fs::read_to_string(folder.path().join("mod/.git")).unwrap();
        let found = restored(folder.path(), || shell(folder.path(), plant));
        assert_eq!(found, ["mod/.git"], "{plant}");
        assert_eq!(
            fs::read_to_string(folder.path().join("mod/.git")).unwrap(),
            file
        );
        assert_eq!(
            folder.path().join("mod/.git-replaced-0").exists(),
            kept,
            "{plant}"
        );
        git(folder.path(), &["status"]);
    }
}

/// What git itself does with submodules is no attack.
#[test]
fn ordinary_work_with_submodules_is_left_alone() {
    for work in [
        "made new; git add new",
        "git submodule absorbgitdirs; git config -f .git/modules/mod/config --unset core.worktree",
        "git rm -qf --cached mod; rm -rf mod",
        "git worktree add -q tree; git add tree",
        "touch x; git add x; git commit -q -m x",
    ] {
        let folder = with_submodule();
        git(&folder.path().join("mod"), &["config", "user.name", "n"]);
        let found = restored(folder.path(), || {
            shell(folder.path(), &format!("{MAKE} {{ {work}; }} 2> /dev/null"));
        });
        assert_eq!(found, [""; 0], "{work}");
        git(folder.path(), &["status"]);
    }
}

/// It may be the user's, made before: of another branch, or just not added yet.
#[test]
fn what_has_to_go_of_a_nested_repository_is_kept() {
    let folder = project();
    shell(folder.path(), &format!("{MAKE} made mod; {PLANT}"));
    let found = restored(folder.path(), || {
        shell(folder.path(), "git add mod 2> /dev/null");
    });
    assert_eq!(found, ["mod/.git/hooks", "mod/.git/config"]);
    let git = folder.path().join("mod/.git");
    for kept in ["config-replaced-0", "hooks-replaced-0/post-checkout"] {
        let text = fs::read_to_string(git.join(kept)).unwrap();
        assert!(text.contains("evil"), "{kept}");
    }
    // From now on it is the user's.
    let found = restored(folder.path(), || shell(folder.path(), "touch x"));
    assert_eq!(found, [""; 0]);
}

#[test]
fn an_index_that_may_be_read_otherwise_is_put_aside() {
    let folder = with_submodule();
    let found = restored(folder.path(), || {
        shell(folder.path(), "sed -i 's,mod,m/.,' .git/index");
    });
    assert_eq!(found, [".git/index"]);
    assert!(folder.path().join(".git/index-replaced-0").exists());
    assert!(!folder.path().join(".git/index").exists());
}

#[test]
fn a_rebase_goes_on_without_programs_of_a_command() {
    let folder = project();
    shell(
        folder.path(),
        "mkdir .git/rebase-merge; cd .git/rebase-merge; echo ort > strategy; printf 'pick 1\\nexec mine\\nfixup 2\\n' > git-rebase-todo",
    );
    let todo = folder.path().join(".git/rebase-merge/git-rebase-todo");
    for (plant, told) in [
        ("sed -i 1d .git/rebase-merge/git-rebase-todo", &[][..]),
        (
            "cd .git/rebase-merge; printf 'exec evil\\nx evil\\nexec mine\\npick 1\\n\\t x evil' > git-rebase-todo; echo x/evil > strategy",
            &[
                ".git/rebase-merge/git-rebase-todo",
                ".git/rebase-merge/strategy",
            ],
        ),
        (
            "mv .git/rebase-merge evil; ln -s ../evil .git/rebase-merge; echo x evil > evil/git-rebase-todo",
            &[".git/rebase-merge"],
        ),
        (
            "mkdir .git/rebase-merge; echo x evil > .git/rebase-merge/git-rebase-todo",
            &[".git/rebase-merge/git-rebase-todo"],
        ),
        (
            "mkdir .git/sequencer; printf '[options]\\n\\tedit = true\\n\\tstrategy = x/evil\\n' > .git/sequencer/opts",
            &[".git/sequencer/opts"],
        ),
    ] {
        let found = restored(folder.path(), || shell(folder.path(), plant));
        assert_eq!(found, told, "{plant}");
        shell(folder.path(), "rm -rf evil");
        assert!(!found_in(folder.path()).contains("evil"), "{plant}");
        if plant.contains("x evil\\nexec mine") {
            assert_eq!(fs::read_to_string(&todo).unwrap(), "exec mine\npick 1\n");
            assert!(!todo.with_file_name("strategy").exists());
        }
    }
}

/// An old way to name remotes, with hooks that a push would run.
#[test]
fn remotes_are_not_planted_in_files() {
    let folder = project();
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "mkdir -p .git/branches .git/remotes; echo evil > .git/branches/origin; echo URL: evil > .git/remotes/origin",
        );
    });
    assert_eq!(found, [".git/remotes", ".git/branches"]);
}
