//! Files of the repository, and source code without its comments and tests.

use std::path::{Path, PathBuf};

/// A file with its path relative to the repository.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file below a folder with this ending, in the order of their names.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<File> {
    let mut paths = Vec::new();
    walk(&root().join(folder), ending, &mut paths);
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let path = path.strip_prefix(root()).unwrap().display().to_string();
            let text = read(&path);
            File { path, text }
        })
        .collect()
}

fn walk(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, ending, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == ending)
        {
            found.push(path);
        }
    }
}

/// Every file of the program: of the root, then of the crates below `crates`.
pub(crate) fn program() -> Vec<File> {
    let mut program = files("src", "rs");
    let crates = files("crates", "rs").into_iter();
    program.extend(crates.filter(|file| file.path.split('/').nth(2) == Some("src")));
    program
}

/// The program's own code: what is no test of it, each without comments and its module of tests.
pub(crate) fn sources() -> Vec<File> {
    let mut sources = program();
    sources.retain(|file| !is_test(&file.path));
    for source in &mut sources {
        source.text = code(&source.text);
    }
    sources
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/")
        || path.contains("/testing/")
        || path.ends_with("/tests.rs")
        || path.ends_with("/samples.rs")
        || path.ends_with("/testing.rs")
}

fn code(text: &str) -> String {
    // A module of tests is the last thing in its file.
    let begins = [
        "#[cfg(test)]\nmod tests {",
        "#[cfg(test)]\npub(super) mod tests {",
    ];
    let own = begins.iter().find_map(|begin| text.split_once(begin));
    let own = own.map_or(text, |(before, _)| before);
    own.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |code, line| code + line + "\n")
}

#[test]
fn comments_and_tests_are_no_code() {
    let text = "use a;\n/// crate::b\nfn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\n";
    assert_eq!(code(text), "use a;\nfn f() {}\n");
}
