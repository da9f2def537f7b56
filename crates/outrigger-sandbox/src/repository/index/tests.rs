use std::fs;
use std::process::Command;

use super::*;

/// A repository with a submodule among other files.
fn repository(options: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &[&["init", "-q"], options].concat());
    for name in ["a", "deep/er", "sub-before", "z"] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    git(folder.path(), &["add", "."]);
    let hash = if options.is_empty() { 40 } else { 64 };
    let link = format!("160000,{},deep/sub", "1".repeat(hash));
    git(
        folder.path(),
        &["update-index", "--add", "--cacheinfo", &link],
    );
    folder
}

fn git(folder: &Path, words: &[&str]) {
    let done = Command::new("git")
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{words:?} {done:?}");
}

fn found(folder: &tempfile::TempDir) -> (Vec<OsString>, State) {
    let index = Index::read(&folder.path().join(".git"), None, &mut Budget::default());
    (index.links, index.state)
}

#[test]
fn submodules_are_found_in_each_version() {
    for options in [&[][..], &["--object-format=sha256"]] {
        for version in ["2", "3", "4"] {
            let folder = repository(options);
            git(folder.path(), &["update-index", "--index-version", version]);
            git(
                folder.path(),
                &["update-index", "--skip-worktree", "deep/er"],
            );
            assert_eq!(found(&folder), (vec!["deep/sub".into()], State::Read));
        }
    }
}

#[test]
fn one_in_the_shared_index_is_found() {
    let folder = repository(&[]);
    git(folder.path(), &["update-index", "--split-index"]);
    fs::write(folder.path().join("new"), "x").unwrap();
    git(folder.path(), &["add", "new"]);
    assert_eq!(found(&folder), (vec!["deep/sub".into()], State::Read));
    // Of a changed one the index itself has no name.
    let link = format!("160000,{},z", "1".repeat(40));
    fs::remove_file(folder.path().join("z")).unwrap();
    git(folder.path(), &["update-index", "--cacheinfo", &link]);
    let (links, state) = found(&folder);
    assert!(links.contains(&"z".into()), "{links:?}");
    assert_eq!(state, State::Read);
}

#[test]
fn what_git_did_not_write_is_broken() {
    let folder = repository(&[]);
    let path = folder.path().join(".git/index");
    let whole = fs::read(&path).unwrap();
    let at = whole
        .windows(8)
        .position(|part| part == b"deep/sub")
        .unwrap();
    for name in [&b"../p/sub"[..], b"/eep/sub", b"././/sub", b"deep/s/."] {
        let mut changed = whole.clone();
        changed[at..at + 8].copy_from_slice(name);
        fs::write(&path, &changed).unwrap();
        assert_eq!(found(&folder).1, State::Broken, "{name:?}");
    }
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        found(&folder);
    }
    let mut blocks = whole[..whole.len() - SHA1].to_vec();
    for (offset, state) in [(12_u32, State::Read), (13, State::Broken)] {
        blocks.truncate(whole.len() - SHA1);
        blocks.extend(b"IEOT\0\0\0\x0c\0\0\0\x01");
        blocks.extend(offset.to_be_bytes());
        blocks.extend(5_u32.to_be_bytes());
        blocks.extend([0; SHA1]);
        fs::write(&path, &blocks).unwrap();
        assert_eq!(found(&folder).1, state, "{offset}");
    }
    let mut sparse = whole[..whole.len() - SHA1].to_vec();
    sparse.extend(b"sdir\0\0\0\0");
    sparse.extend([0; SHA1]);
    fs::write(&path, &sparse).unwrap();
    assert_eq!(found(&folder), (vec!["deep/sub".into()], State::Sparse));
    let budget = &mut Budget(whole.len() as u64);
    assert_eq!(
        Index::read(&folder.path().join(".git"), None, budget).state,
        State::Unknown
    );
    fs::remove_file(&path).unwrap();
    assert_eq!(found(&folder), (vec![], State::Read));
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    assert_eq!(found(&folder).1, State::Broken);
}
