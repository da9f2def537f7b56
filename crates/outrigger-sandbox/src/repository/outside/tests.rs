use super::*;

/// A repository and a linked worktree of it, as git lays them out.
fn repository_with_worktree(place: &Path) -> (PathBuf, PathBuf) {
    let place = place.canonicalize().unwrap();
    let common = place.join("main/.git");
    let administration = common.join("worktrees/tree");
    let tree = place.join("tree");
    fs::create_dir_all(&administration).unwrap();
    fs::create_dir_all(&tree).unwrap();
    fs::write(common.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(administration.join("commondir"), "../..\n").unwrap();
    fs::write(
        administration.join("gitdir"),
        format!("{}\n", tree.join(".git").display()),
    )
    .unwrap();
    fs::write(
        tree.join(".git"),
        format!("gitdir: {}\n", administration.display()),
    )
    .unwrap();
    (common, tree)
}

#[test]
fn the_repository_of_a_linked_worktree_is_found() {
    let place = tempfile::tempdir().unwrap();
    let (common, tree) = repository_with_worktree(place.path());
    assert_eq!(directory(&tree), Some(common));
}

#[test]
fn a_forged_link_opens_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (common, tree) = repository_with_worktree(place.path());
    let other = tree.with_file_name("other");
    fs::create_dir(&other).unwrap();
    let secret = tree.with_file_name("secret");
    fs::create_dir(&secret).unwrap();
    for named in [
        // Somebody else's worktree: it does not point back.
        common.join("worktrees/tree"),
        common.clone(),
        secret,
        PathBuf::from("/nowhere"),
    ] {
        fs::write(other.join(".git"), format!("gitdir: {}\n", named.display())).unwrap();
        assert_eq!(directory(&other), None, "{}", named.display());
    }
}

#[test]
fn an_administration_made_in_the_root_opens_nothing() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let forged = root.join("forged");
    fs::create_dir(&forged).unwrap();
    fs::write(
        forged.join("gitdir"),
        root.join(".git").display().to_string(),
    )
    .unwrap();
    fs::write(forged.join("commondir"), "/").unwrap();
    fs::write(root.join(".git"), format!("gitdir: {}", forged.display())).unwrap();
    assert_eq!(directory(&root), None);
}
