//! Compilers, interpreters and package caches that live below the home directory.
//!
//! A command does not see the home itself; without these it would not find `cargo` or `node`.

use std::path::{Path, PathBuf};

/// Below the home; no entry may hold credentials.
const CANDIDATES: [&str; 17] = [
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
    ".volta",
    "go/bin",
    "go/pkg",
];

/// Returns those that exist, as canonical paths.
pub(super) fn find(home: Option<&Path>) -> Vec<PathBuf> {
    let Some(home) = home else { return Vec::new() };
    CANDIDATES
        .iter()
        .filter_map(|candidate| crate::canonicalize(&home.join(candidate)).ok())
        // A link that leaves the home could name any place, a secret one too.
        .filter(|path| path.starts_with(home) && path != home)
        .collect()
}
