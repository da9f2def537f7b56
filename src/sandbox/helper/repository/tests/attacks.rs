//! What somebody tried to get past the putting back.

use super::*;

/// Two commands at a time share a baseline; what the first planted is not the second one's original.
#[test]
fn each_end_puts_back_what_was_before_all() {
    let folder = project();
    let before = look_at(folder.path());
    let noted = Noted::take(folder.path());
    let first = noted.helper();
    shell(folder.path(), "echo evil > .git/hooks/post-commit");
    let second = noted.helper();
    assert_eq!(put_back(first).paths, [".git/hooks"]);
    assert_eq!(look_at(folder.path()), before);
    shell(
        folder.path(),
        "git config core.fsmonitor evil; mv .git elsewhere",
    );
    assert_eq!(put_back(second).paths, [".git", ".git/config"]);
    assert_eq!(look_at(folder.path()), before);
}

/// What the sandbox puts at missing names stays until nobody can have it mounted, and is no news.
#[test]
fn placeholders_go_with_the_last() {
    let folder = project();
    let before = look_at(folder.path());
    let noted = Noted::take(folder.path());
    let (first, second) = (noted.helper(), noted.helper());
    shell(
        folder.path(),
        "printf './././\\n' > .git/commondir; : > .git/config.worktree",
    );
    assert_eq!(put_back(first).paths, [""; 0]);
    assert!(folder.path().join(".git/commondir").exists());
    git(folder.path(), &["status"]);
    assert_eq!(put_back(second).paths, [""; 0]);
    assert_eq!(look_at(folder.path()), before);
}

#[test]
fn what_fills_one_place_leaves_the_others_covered() {
    let folder = project();
    shell(
        folder.path(),
        "mkdir -p .husky .git/modules/m/hooks; echo good > .husky/pre-commit; echo x > .git/modules/m/HEAD; cd .git/modules/m/hooks; touch $(seq -f %g.sample 3000)",
    );
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "echo evil > .husky/pre-commit; echo evil > .git/hooks/post-commit",
        );
    });
    assert_eq!(found, [".git/hooks", ".husky"]);
    assert_eq!(
        fs::read_to_string(folder.path().join(".husky/pre-commit")).unwrap(),
        "good\n"
    );
}

#[test]
fn what_does_not_fit_is_told() {
    let folder = project();
    shell(folder.path(), "cd .git/hooks; touch $(seq 3000)");
    let helper = Noted::take(folder.path()).helper();
    let failure = put_back(helper).failure.unwrap();
    assert!(failure.starts_with(".git/hooks: too large"), "{failure}");
}

#[test]
fn samples_without_end_do_not_stay() {
    let folder = tempfile::tempdir().unwrap();
    restored(folder.path(), || {
        shell(
            folder.path(),
            "git init -q; cd .git/hooks; touch $(seq -f %g.sample 300)",
        );
    });
    assert!(
        fs::read_dir(folder.path().join(".git/hooks"))
            .unwrap()
            .count()
            <= 32
    );
}

/// The root may become a repository itself, which git takes where there is no `.git`.
#[test]
fn the_root_does_not_become_a_repository_that_runs_something() {
    let bare = "git init -q --bare b; mv b/* .; rmdir b; git config -f config core.bare false; git config -f config core.worktree .; git config -f config core.fsmonitor evil; echo evil > hooks/post-commit";
    let folder = tempfile::tempdir().unwrap();
    let found = restored(folder.path(), || shell(folder.path(), bare));
    assert_eq!(found, ["config", "hooks"]);
    let config = fs::read_to_string(folder.path().join("config")).unwrap();
    assert!(!config.contains("evil"), "{config}");

    // The user's own files of these names stay what they are.
    let folder = tempfile::tempdir().unwrap();
    shell(folder.path(), "echo mine > config");
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "git init -q --bare b; mv b/HEAD b/objects b/refs .",
        );
    });
    assert_eq!(found, ["HEAD"]);
    assert_eq!(
        fs::read_to_string(folder.path().join("config")).unwrap(),
        "mine\n"
    );

    // Nor where its `.git` is broken, so that git looks further.
    let folder = project();
    let found = restored(folder.path(), || {
        shell(folder.path(), "rm -rf .git");
        shell(folder.path(), bare);
    });
    assert_eq!(found, ["config", "hooks"]);
}

#[test]
fn a_bare_repository_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "-q", "--bare"]);
    let config = fs::read_to_string(folder.path().join("config")).unwrap();
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "git config core.fsmonitor evil; echo evil > hooks/post-receive; echo evil > commondir",
        );
    });
    assert_eq!(found, ["config", "commondir", "hooks"]);
    assert_eq!(
        fs::read_to_string(folder.path().join("config")).unwrap(),
        config
    );
}

/// `.git` may be a file that names a directory beside it.
#[test]
fn the_directory_that_a_file_names_is_covered() {
    let folder = project();
    shell(
        folder.path(),
        "mv .git .bare; echo 'gitdir: ./.bare' > .git",
    );
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "git config core.fsmonitor evil; echo evil > .bare/hooks/post-commit",
        );
    });
    assert_eq!(found, [".bare/config", ".bare/hooks"]);
}

#[test]
fn what_settings_refer_to_is_covered() {
    let folder = project();
    shell(
        folder.path(),
        "git config include.path ../.gitconfig; git config core.hooksPath tools/.hooks; mkdir -p tools/.hooks; echo good > tools/.hooks/pre-commit",
    );
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "printf '[core]\\nfsmonitor = evil\\n' > .gitconfig; echo evil > tools/.hooks/pre-commit",
        );
    });
    assert_eq!(found, [".gitconfig", "tools/.hooks"]);
    assert!(!folder.path().join(".gitconfig").exists());
}

#[test]
fn links_in_the_place_of_submodules_lead_nowhere() {
    let folder = project();
    shell(
        folder.path(),
        "mkdir -p .git/modules/m; echo x > .git/modules/m/HEAD; : > .git/modules/m/config",
    );
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "mkdir evil; mv .git/modules gone; ln -s ../evil .git/modules",
        );
    });
    assert_eq!(found, [".git/modules"]);
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "mkdir .git/modules; ln -s ../../evil .git/modules/m",
        );
    });
    assert_eq!(found, [".git/modules/m"]);
}

/// Time and length of a file can be made what they were; the time of the change of its time cannot.
#[test]
fn a_file_that_looks_unchanged_is_put_back() {
    let folder = project();
    let hook = folder.path().join(".git/hooks/pre-push");
    // Old enough to be known by its time.
    while fs::metadata(&hook)
        .unwrap()
        .modified()
        .unwrap()
        .elapsed()
        .unwrap()
        .as_millis()
        < 200
    {
        std::thread::yield_now();
    }
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "touch -r .git/hooks/pre-push r; echo '#!/bin/ev' > .git/hooks/pre-push; touch -r r .git/hooks/pre-push",
        );
    });
    assert_eq!(found, [".git/hooks"]);
    assert_eq!(fs::read_to_string(&hook).unwrap(), "#!/bin/sh\n");
}

#[test]
fn a_path_cannot_break_the_text_it_stands_in() {
    let folder = project();
    let name = format!("a\u{1b}[2J\n{}", "x".repeat(230));
    let found = restored(folder.path(), || {
        fs::create_dir_all(folder.path().join(".git/modules").join(&name)).unwrap();
        fs::write(
            folder.path().join(".git/modules").join(&name).join("HEAD"),
            "x",
        )
        .unwrap();
        fs::write(
            folder
                .path()
                .join(".git/modules")
                .join(&name)
                .join("config"),
            "evil",
        )
        .unwrap();
    });
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with(".git/modules/a\\u{1b}[2J\\nxxx"),
        "{found:?}"
    );
    assert!(found[0].len() < 300);
}
