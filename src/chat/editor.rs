//! A call's input in the user's own editor.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tokio::process::Command;

/// The user's editor: `$VISUAL`, else `$EDITOR`; `None` where neither is set.
pub(super) fn editor() -> Option<String> {
    ["VISUAL", "EDITOR"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|editor| !editor.trim().is_empty())
}

/// Lets the user edit an input, and returns the text afterwards.
///
/// # Errors
///
/// What went wrong: no file, or an editor that failed.
pub(super) async fn edit(editor: &str, input: &Map<String, Value>) -> Result<String, String> {
    let text = serde_json::to_string_pretty(input).unwrap_or_default();
    let file = Draft::write(&text).map_err(|error| format!("no file to edit: {error}"))?;
    let status = command(editor, &file.path)
        .status()
        .await
        .map_err(|error| format!("the editor {editor} did not start: {error}"))?;
    if !status.success() {
        return Err(format!("the editor {editor} ended with {status}"));
    }
    std::fs::read_to_string(&file.path).map_err(|error| format!("the edited file: {error}"))
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
