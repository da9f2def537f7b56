use std::fs;

use super::*;

fn repository(git: &Path) {
    for folder in ["objects", "refs"] {
        fs::create_dir_all(git.join(folder)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
}

/// The pins below a root, each as `PATH KIND`.
fn pins(root: &Path, nested: &[&str], access: GitAccess) -> Vec<String> {
    let nested: Vec<PathBuf> = nested.iter().map(|path| root.join(path)).collect();
    let protection = protect(&[root.to_owned()], &nested, access, &[]).unwrap();
    let pins = protection.pins.iter().map(|pin| {
        let path = pin.path.strip_prefix(root).unwrap().display();
        format!("{path} {:?}", pin.what)
    });
    pins.collect()
}

#[test]
fn each_kind_of_repository_is_found() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let read = GitAccess::ReadOnly;
    // Nothing there: the name is taken, but not beside a program that runs for hours.
    let taken = [".git ReadOnly", "HEAD ReadOnly"];
    assert_eq!(pins(&root, &[], read), taken);
    assert_eq!(pins(&root, &[], GitAccess::Write), taken);
    for access in [
        GitAccess::ExistingReadOnly,
        GitAccess::Create,
        GitAccess::Nested,
    ] {
        assert_eq!(pins(&root, &[], access), [""; 0]);
    }

    repository(&root.join(".git"));
    repository(&root.join(".git/modules/a/b"));
    fs::create_dir_all(root.join(".git/worktrees/tree")).unwrap();
    fs::create_dir_all(root.join("sub/mod")).unwrap();
    fs::write(
        root.join("sub/mod/.git"),
        "gitdir: ../../.git/modules/a/b\n",
    )
    .unwrap();
    let nested = [".git", "sub/mod/.git"];
    assert_eq!(
        pins(&root, &nested, read),
        [
            ".git ReadOnly",
            "sub Folder",
            "sub/mod Folder",
            "sub/mod/.git ReadOnly",
        ]
    );
    assert_eq!(
        pins(&root, &nested, GitAccess::Write),
        [
            ".git Repository",
            ".git/modules Folder",
            ".git/modules/a Folder",
            ".git/modules/a/b Repository",
            ".git/worktrees Folder",
            ".git/worktrees/tree Worktree",
            "sub Folder",
            "sub/mod Folder",
            "sub/mod/.git ReadOnly",
        ]
    );
}

#[test]
fn what_only_sets_up_and_removes_work_trees_may_do_so() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    repository(&root.join(".git"));
    let tree = root.join(".git/worktrees/tree");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("commondir"), "../..\n").unwrap();
    fs::create_dir(root.join("tree")).unwrap();
    fs::write(root.join("tree/.git"), "gitdir: ../.git/worktrees/tree\n").unwrap();
    let nested = [".git", "tree/.git"];
    assert_eq!(
        pins(&root, &nested, GitAccess::Create),
        [
            ".git Repository",
            ".git/worktrees Folder",
            ".git/worktrees/tree Worktree",
            "tree Folder",
            "tree/.git ReadOnly",
        ]
    );
    assert_eq!(pins(&root, &nested, GitAccess::Nested), [".git Repository"]);
}

#[test]
fn a_repository_beside_its_work_tree_is_found() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    repository(&root.join("own"));
    fs::write(root.join(".git"), "gitdir: own\n").unwrap();
    let expected = [".git ReadOnly", "own ReadOnly"];
    assert_eq!(pins(&root, &[".git"], GitAccess::ReadOnly), expected);
    fs::remove_file(root.join(".git")).unwrap();
    std::os::unix::fs::symlink("own", root.join(".git")).unwrap();
    assert_eq!(pins(&root, &[".git"], GitAccess::ReadOnly), expected);
    // A root that is itself one stays open but for its settings.
    repository(&root);
    fs::remove_file(root.join(".git")).unwrap();
    assert_eq!(pins(&root, &[], GitAccess::ReadOnly), [" Repository"]);
}

#[test]
fn what_cannot_all_be_protected_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let dots: Vec<PathBuf> = (0..=MAX_PINS)
        .map(|number| root.join(format!("{number}/.git")))
        .collect();
    for dot in &dots {
        fs::create_dir_all(dot).unwrap();
    }
    let error = protect(&[root], &dots, GitAccess::ReadOnly, &[]).unwrap_err();
    assert!(
        error.to_string().contains("choose a smaller folder"),
        "{error}"
    );
}

#[test]
fn a_worktrees_file_is_believed_only_where_its_repository_points_back() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (root, main) = (place.join("tree"), place.join("main/.git"));
    repository(&main);
    let administration = main.join("worktrees/tree");
    fs::create_dir_all(&administration).unwrap();
    fs::create_dir(&root).unwrap();
    fs::write(
        root.join(".git"),
        format!("gitdir: {}\n", administration.display()),
    )
    .unwrap();
    fs::write(administration.join("commondir"), "../..\n").unwrap();
    let outside = || {
        let protection = protect(std::slice::from_ref(&root), &[], GitAccess::Write, &[]).unwrap();
        protection.outside
    };
    assert!(outside().is_empty());
    fs::write(administration.join("gitdir"), "/elsewhere/.git\n").unwrap();
    assert!(outside().is_empty());
    fs::write(
        administration.join("gitdir"),
        format!("{}\n", root.join(".git").display()),
    )
    .unwrap();
    assert_eq!(outside(), [main]);
}
