//! Questions to git itself, outside of the sandbox: such that it runs nothing for them.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::environment::git_alone;
use crate::process::supervised::children::Started;

/// Where git is looked for. Not the user's `PATH`, which may name folders of a project.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin";

/// How long git may take; milliseconds usually. A file of settings may be a pipe.
const PATIENCE: Duration = Duration::from_secs(5);

const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Runs git in a folder, with these words and variables; returns whether it succeeded
/// and what it said, `None` where there is no git.
pub(super) async fn ask(
    folder: &Path,
    words: &[impl AsRef<OsStr>],
    variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
) -> io::Result<Option<(bool, Vec<u8>)>> {
    let mut git = Command::new("git");
    git.args(words)
        .current_dir(folder)
        .env_clear()
        .env("PATH", PATH)
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let answer = async {
        let mut git = match Started::spawn(&mut git) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            started => started?,
        };
        let mut text = Vec::new();
        if let Some(output) = git.child.stdout.take() {
            output.take(MAX_BYTES).read_to_end(&mut text).await?;
        }
        let is_success = git.child.wait().await?.success();
        Ok(Some((is_success, text)))
    };
    timeout(PATIENCE, answer).await?
}

/// Returns whether git keeps what a file holds: whether the index of the repository that it lies in names it. Where git
/// cannot be asked, it does not.
///
/// `relative` is the file's path below `root`.
pub async fn is_tracked(root: &Path, relative: &str) -> bool {
    let file = root.join(relative);
    let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(OsStr::to_str))
    else {
        return false;
    };
    let mut variables = git_alone(root, false);
    // A project may be a part of a repository.
    variables.remove("GIT_CEILING_DIRECTORIES");
    let words = [
        "--literal-pathspecs",
        "ls-files",
        "--error-unmatch",
        "--",
        name,
    ];
    let answer = ask(folder, &words, variables).await;
    matches!(answer, Ok(Some((true, _))))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn a_file_is_tracked_once_the_index_names_it() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        assert!(!is_tracked(root, "a.txt").await, "no repository");
        let git = |args: &[&str]| {
            let mut git = Command::new("git");
            let done = git.arg("-C").arg(root).args(args).output().unwrap();
            assert!(done.status.success(), "{args:?}: {done:?}");
        };
        git(&["init", "--quiet"]);
        fs::create_dir(root.join("sub")).unwrap();
        for path in ["a.txt", "sub/b.txt", "new.txt", "*.txt"] {
            fs::write(root.join(path), "x").unwrap();
        }
        git(&["add", "a.txt", "sub/b.txt"]);
        // What the repository names is not run.
        let ran = root.join("ran");
        let program = format!("touch {}", ran.display());
        git(&["config", "core.fsmonitor", &program]);
        for (root, path, tracked) in [
            (root.to_owned(), "a.txt", true),
            (root.to_owned(), "sub/b.txt", true),
            // A project that is a part of a repository.
            (root.join("sub"), "b.txt", true),
            (root.to_owned(), "new.txt", false),
            (root.to_owned(), "*.txt", false),
            (root.to_owned(), "sub/a.txt", false),
            (root.to_owned(), "missing", false),
            (root.to_owned(), "no/folder", false),
        ] {
            assert_eq!(is_tracked(&root, path).await, tracked, "{root:?} {path}");
        }
        assert!(!ran.exists());
        fs::write(root.join(".git/index"), "no index").unwrap();
        assert!(!is_tracked(root, "a.txt").await);
    }
}
