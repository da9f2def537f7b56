//! Compilers, interpreters and package caches that live below the home directory.
//!
//! A command does not see the home itself; without these it would not find `cargo` or `node`. They are read-only; over
//! what its programs download to lies an overlay where there is one ([`caches`](crate::caches)).

use std::path::{Path, PathBuf};

/// Below the home; no entry may hold credentials.
const CANDIDATES: [&str; 18] = [
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".deno/bin",
    ".local/bin",
    ".local/lib",
    ".local/share/mise/installs",
    ".local/share/uv/python",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman/candidates",
    ".volta",
    "go/bin",
    "go/pkg",
];

/// Returns those that exist, as canonical paths.
pub(super) fn find(home: Option<&Path>) -> Vec<PathBuf> {
    let Some(home) = home else { return Vec::new() };
    let all = CANDIDATES.iter().map(|candidate| home.join(candidate));
    // Most are not there, and a look takes one call of the system where a walk takes one for each part of the path.
    all.filter(|path| path.exists())
        .filter_map(|path| crate::canonicalize(&path).ok())
        // A link that leaves the home could name any place, a secret one too.
        .filter(|path| path.starts_with(home) && path != home)
        .collect()
}
