//! Reads what `providers.NAME.script` names.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::script::Script;
use crate::config::format::Format;
use crate::provider::record::{MANIFEST, Manifest};
use crate::provider::{ErrorKind, ProviderError};

/// The script that is compiled in.
const DEMONSTRATION: &str = include_str!("../../../config/demo.yaml");

/// Largest script; a script is written by hand.
const MAX_SCRIPT_BYTES: u64 = 4 * 1024 * 1024;

/// Largest list of recordings.
const MAX_MANIFEST_BYTES: u64 = 16 * 1024 * 1024;

/// Reads a file or a directory; the built-in script where there is neither.
///
/// The error is of [`ErrorKind::NotConfigured`], with the file, the key and what is wrong.
pub(super) fn load(path: Option<&Path>) -> Result<Script, ProviderError> {
    let Some(path) = path else {
        return parse(DEMONSTRATION, Path::new("config/demo.yaml"));
    };
    let manifest = path.join(MANIFEST);
    match (path.is_dir(), manifest.is_file()) {
        (false, _) => read_script(path),
        (true, false) => directory(path),
        (true, true) => {
            let text = read_text(&manifest, MAX_MANIFEST_BYTES)?;
            let manifest: Manifest =
                serde_json::from_str(&text).map_err(|error| broken(&manifest, &error))?;
            Ok(Script::of_recordings(path, manifest.recordings))
        }
    }
}

/// Reads the scripts of a directory as one: the steps of all, and the first settings given.
fn directory(path: &Path) -> Result<Script, ProviderError> {
    let entries = std::fs::read_dir(path).map_err(|error| broken(path, &error))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| Format::of(file).is_some())
        .collect();
    files.sort();
    let mut whole: Option<Script> = None;
    for file in files {
        let script = read_script(&file)?;
        match &mut whole {
            Some(whole) => whole.steps.extend(script.steps),
            None => whole = Some(script),
        }
    }
    whole.ok_or_else(|| broken(path, &"the directory holds no script (.yaml, .toml, .json)"))
}

fn read_script(path: &Path) -> Result<Script, ProviderError> {
    parse(&read_text(path, MAX_SCRIPT_BYTES)?, path)
}

fn parse(text: &str, path: &Path) -> Result<Script, ProviderError> {
    let Some(format) = Format::of(path) else {
        return Err(broken(path, &"a script ends in .yaml, .toml or .json"));
    };
    let mut script: Script = format.read(text).map_err(|error| broken(path, &error))?;
    script.check().map_err(|reason| broken(path, &reason))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    for step in &mut script.steps {
        step.folder = folder.to_owned();
    }
    Ok(script)
}

/// Reads a text file of at most so many bytes.
fn read_text(path: &Path, most: u64) -> Result<String, ProviderError> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(most + 1).read_to_string(&mut text))
        .map_err(|error| broken(path, &error))?;
    if text.len() as u64 > most {
        let reason = format!("the file is larger than {most} bytes");
        return Err(broken(path, &reason));
    }
    Ok(text)
}

/// The error for a script or a recording that cannot be used.
pub(super) fn broken(path: &Path, reason: &dyn std::fmt::Display) -> ProviderError {
    ProviderError::new(
        ErrorKind::NotConfigured,
        format!("failed to read the script {}: {reason}", path.display()),
    )
}
