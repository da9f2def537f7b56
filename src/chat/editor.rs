//! A call's input in the user's own editor.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tokio::process::Command;

/// Editors that need no explanation, by the name they are looked for where none is set.
const USUAL: [&str; 2] = ["editor", "nano"];

/// What a shell says of a program that is not there, or cannot be run.
const NOT_STARTED: [i32; 2] = [126, 127];

/// Why there is no edited text.
#[derive(Debug)]
pub(super) struct Failure {
    /// What went wrong.
    pub(super) text: String,
    /// Whether there was no editor to begin with.
    pub(super) is_missing: bool,
}

impl Failure {
    fn new(text: String) -> Self {
        Self {
            text,
            is_missing: false,
        }
    }
}

/// The user's editor: `$VISUAL`, else `$EDITOR`, else a usual one that is installed; `None` where there is none.
pub(super) fn editor() -> Option<String> {
    let set = ["VISUAL", "EDITOR"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|editor| !editor.trim().is_empty());
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_installed =
        |name: &&str| std::env::split_paths(&folders).any(|folder| folder.join(name).is_file());
    set.or_else(|| USUAL.into_iter().find(is_installed).map(str::to_owned))
}

/// Lets the user edit an input, and returns the text afterwards.
///
/// # Errors
///
/// What went wrong: no file, or an editor that failed.
pub(super) async fn edit(editor: &str, input: &Map<String, Value>) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(input).unwrap_or_default();
    let file =
        Draft::write(&text).map_err(|error| Failure::new(format!("no file to edit: {error}")))?;
    let status = command(editor, &file.path)
        .status()
        .await
        .map_err(|error| Failure {
            text: format!("the editor {editor} did not start: {error}"),
            is_missing: true,
        })?;
    if !status.success() {
        return Err(Failure {
            text: format!("the editor {editor} ended with {status}"),
            is_missing: status
                .code()
                .is_some_and(|code| NOT_STARTED.contains(&code)),
        });
    }
    std::fs::read_to_string(&file.path)
        .map_err(|error| Failure::new(format!("the edited file: {error}")))
}

/// The editor may come with arguments, as in `code --wait`; a shell takes it apart, as git's does.
#[cfg(unix)]
fn command(editor: &str, path: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{editor} \"$1\""));
    command.arg("editor").arg(path);
    command
}

#[cfg(not(unix))]
fn command(editor: &str, path: &Path) -> Command {
    let mut command = Command::new(editor);
    command.arg(path);
    command
}

/// A private file that is removed when this is dropped.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn write(text: &str) -> io::Result<Self> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let name = format!("outrigger-{:016x}.json", u64::from_ne_bytes(bytes));
        let path = std::env::temp_dir().join(name);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        let draft = Self { path };
        writeln!(file, "{text}")?;
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "the edited file could not be removed");
        }
    }
}
