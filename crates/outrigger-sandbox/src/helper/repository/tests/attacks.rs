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
    for (link, told) in [("$PWD/evil", ".bare"), ("evil", ".bare/config")] {
        let line = format!(
            "cp -r .bare evil; git config -f evil/config core.fsmonitor evil; mv .bare old; ln -s {link} .bare"
        );
        let found = restored(folder.path(), || shell(folder.path(), &line));
        assert_eq!(found, [told], "{link}");
        assert!(!shows(folder.path(), "cat .bare/config || true").contains("evil"));
        shell(folder.path(), "rm -rf .bare evil; mv old .bare");
    }
}

/// This side does not go through a link that leads out of the root, or says so; git does.
#[test]
fn no_link_leads_around_what_settings_refer_to() {
    const PLANT: &str =
        "mkdir -p evil/git/hooks; echo evil > evil/git/hooks/pre-commit; echo evil > evil/settings";
    let referring = || {
        let folder = project();
        shell(
            folder.path(),
            "git config core.hooksPath tools/git/hooks; git config include.path ../own/settings; mkdir -p tools/git/hooks; echo good > tools/git/hooks/pre-commit",
        );
        folder
    };
    for (line, told) in [
        ("mv tools old; ln -s $PWD/evil tools", "tools"),
        (
            "mv tools/git old; ln -s $PWD/evil/git tools/git",
            "tools/git",
        ),
        (
            "mv tools/git old; ln -s ../../../evil tools/git",
            "tools/git",
        ),
        ("ln -s $PWD/evil own", "own"),
        // Git finds there what this side puts back there.
        ("mv tools old; ln -s evil tools", "tools/git/hooks"),
    ] {
        let folder = referring();
        let found = restored(folder.path(), || {
            shell(folder.path(), &format!("{PLANT}; {line}"));
        });
        assert_eq!(found, [told], "{line}");
        let read = "cat tools/git/hooks/pre-commit own/settings 2> /dev/null || true";
        assert!(!shows(folder.path(), read).contains("evil"), "{line}");
    }
    // The user's own link out stays, or comes back.
    let (folder, outside) = (referring(), tempfile::tempdir().unwrap());
    let own = folder.path().join("own");
    symlink(outside.path(), &own).unwrap();
    for (line, told) in [("true", &[][..]), ("ln -sfn $PWD/evil own", &["own"])] {
        let found = restored(folder.path(), || shell(folder.path(), line));
        assert_eq!(found, told, "{line}");
        assert_eq!(fs::read_link(&own).unwrap(), outside.path());
    }
}

/// As on a disk that a command has filled.
#[test]
fn what_cannot_be_made_what_it_was_runs_nothing() {
    let folder = project();
    let root = folder.path().canonicalize().unwrap();
    let seen = look(real::open_dir(&root).unwrap(), &root, false, None, None);
    let noted = Noted {
        memory: hand_over(&seen.baseline, &[]).unwrap(),
        ..Noted::take(&root)
    };
    let helper = noted.helper();
    shell(folder.path(), "echo evil >> .git/hooks/pre-push");
    let restored = put_back(helper);
    assert!(restored.failure.is_some(), "{restored:?}");
    let hooks = folder.path().join(".git/hooks");
    assert!(!hooks.join("pre-push").exists());
    let aside = fs::read_to_string(hooks.join("pre-push-replaced-0")).unwrap();
    assert!(aside.contains("evil"));
    assert!(!shows(folder.path(), "ls -aR .git").contains(".outrigger"));
}

/// More than can be removed at the end has to go all the same.
#[test]
fn whatever_the_number_nothing_stays_where_it_runs() {
    let folder = project();
    let restored = restored(folder.path(), || {
        shell(
            folder.path(),
            "for m in $(seq 12); do mkdir -p .git/modules/$m/hooks; cd .git/modules/$m; echo x > HEAD; for h in $(seq 25); do mkdir -p hooks/$h; touch hooks/$h/x; done; cd ../../..; done",
        );
    });
    assert!(!restored.is_empty());
    assert!(!shows(folder.path(), "ls .git/modules/*/hooks").contains("25"));
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

/// The project may be a part of a work tree, whose hooks are in it.
#[test]
fn what_settings_above_the_project_refer_to_is_covered() {
    let folder = project();
    shell(
        folder.path(),
        "git config core.hooksPath part/.githooks; git config include.path ../part/settings; mkdir -p part/.githooks; echo good > part/.githooks/pre-commit",
    );
    let part = folder.path().join("part");
    let found = restored(&part, || {
        shell(
            &part,
            "echo evil > settings; echo evil > .githooks/pre-commit",
        );
    });
    assert_eq!(found, [".githooks", "settings"]);
}

/// The folder of hooks may itself be a link into the work tree.
#[test]
fn what_a_link_for_hooks_leads_to_is_covered() {
    let folder = project();
    shell(
        folder.path(),
        "mv .git/hooks tools; ln -s ../tools .git/hooks",
    );
    let found = restored(folder.path(), || {
        shell(
            folder.path(),
            "echo evil >> tools/pre-push; echo evil > tools/post-commit; echo x > tools/other",
        );
    });
    assert_eq!(found, ["tools/post-commit", "tools/pre-push"]);
    let hooks = folder.path().join("tools");
    assert_eq!(
        fs::read_to_string(hooks.join("pre-push")).unwrap(),
        "#!/bin/sh\n"
    );
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
