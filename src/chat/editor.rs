//! A call's input in the user's own editor.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};
use tokio::process::Command;

use crate::ready::PrivateFile;

/// Editors that need no explanation, by the name they are looked for where none is set.
const USUAL: [&str; 2] = ["editor", "nano"];

/// What a shell says of a program that is not there, or cannot be run.
const NOT_STARTED: [i32; 2] = [126, 127];

#[derive(Debug)]
pub(super) enum Failure {
    /// There was no editor to begin with.
    Missing(String),
    Failed(String),
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
pub(super) async fn edit(editor: &str, input: &Map<String, Value>) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(input).unwrap_or_default();
    let file =
        draft(&text).map_err(|error| Failure::Failed(format!("no file to edit: {error}")))?;
    let status = command(editor, &file.path)
        .status()
        .await
        .map_err(|error| Failure::Missing(format!("the editor {editor} did not start: {error}")))?;
    if !status.success() {
        let text = format!("the editor {editor} ended with {status}");
        let code = status.code();
        return Err(match code.is_some_and(|code| NOT_STARTED.contains(&code)) {
            true => Failure::Missing(text),
            false => Failure::Failed(text),
        });
    }
    std::fs::read_to_string(&file.path)
        .map_err(|error| Failure::Failed(format!("the edited file: {error}")))
}

/// A draft under a name that nobody can guess.
fn draft(text: &str) -> io::Result<PrivateFile> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let name = format!("outrigger-{:016x}.json", u64::from_ne_bytes(bytes));
    PrivateFile::write(std::env::temp_dir().join(name), text)
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
