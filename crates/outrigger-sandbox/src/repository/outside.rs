//! The repository of a linked worktree, where that lies outside the root.

#[cfg(test)]
use std::fs;
use std::path::{Path, PathBuf};

use super::references::text_at;

/// The repository a linked worktree belongs to, when it lies outside the root.
///
/// The worktree's `.git` file is only believed when the repository points back to it: a command may have written the
/// file in an earlier run, but nothing outside the root.
pub(super) fn directory(root: &Path) -> Option<PathBuf> {
    let file = root.join(".git");
    if !file.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let named = text_at(&file)?;
    let administration = root
        .join(named.strip_prefix("gitdir:")?.trim())
        .canonicalize()
        .ok()?;
    let back = text_at(&administration.join("gitdir"))?;
    if Path::new(back.trim()) != file || administration.starts_with(root) {
        return None;
    }
    let common = text_at(&administration.join("commondir"))?;
    let common = administration.join(common.trim()).canonicalize().ok()?;
    // The administration of a worktree always lies in its repository.
    (common.join("HEAD").is_file() && administration.starts_with(common.join("worktrees")))
        .then_some(common)
}

#[cfg(test)]
mod tests;
