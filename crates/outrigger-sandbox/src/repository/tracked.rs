//! Whether git keeps what a file holds, for whoever is asked about a change of it. Advice: nothing is allowed by it.

use std::path::{Path, PathBuf};

use super::index::holds;
use super::references::text_at;

/// Returns whether the index of the repository that a file lies in names it: `Some(false)` where there is no
/// repository, `None` where its index cannot be read.
///
/// `relative` is the file's path below `root`. Reads files, so it blocks.
pub fn is_tracked(root: &Path, relative: &str) -> Option<bool> {
    let file = root.join(relative);
    for folder in file.ancestors().skip(1) {
        if let Some(git) = git_directory(folder) {
            let below = file.strip_prefix(folder).ok()?.to_str()?;
            return holds(&git, below);
        }
    }
    Some(false)
}

/// The directory of git that belongs to a work tree; the file of a linked worktree or submodule names it.
fn git_directory(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = text_at(&git)?;
    let named = text.trim().strip_prefix("gitdir:")?;
    Some(folder.join(named.trim()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_file_is_tracked_once_the_index_names_it() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        assert_eq!(is_tracked(root, "a.txt"), Some(false), "no repository");
        let git = |args: &[&str]| {
            let mut git = Command::new("git");
            let done = git.arg("-C").arg(root).args(args).output().unwrap();
            assert!(done.status.success(), "{args:?}: {done:?}");
        };
        git(&["init", "--quiet"]);
        fs::create_dir(root.join("sub")).unwrap();
        for path in ["a.txt", "sub/b.txt", "new.txt"] {
            fs::write(root.join(path), "x").unwrap();
        }
        git(&["add", "a.txt", "sub/b.txt"]);
        for (root, path, tracked) in [
            (root.to_owned(), "a.txt", true),
            (root.to_owned(), "sub/b.txt", true),
            // A project that is a part of a repository.
            (root.join("sub"), "b.txt", true),
            (root.to_owned(), "new.txt", false),
            (root.to_owned(), "sub/a.txt", false),
            (root.to_owned(), "missing", false),
        ] {
            assert_eq!(is_tracked(&root, path), Some(tracked), "{root:?} {path}");
        }
        fs::write(root.join(".git/index"), "no index").unwrap();
        assert_eq!(is_tracked(root, "a.txt"), None);
    }
}
