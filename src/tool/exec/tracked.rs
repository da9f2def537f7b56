//! Secrets that git tracks, for calls of the `git` tool.
//!
//! A hidden file cannot be opened, and git takes a tracked one for changed then: `git status` would name it and
//! `git commit -a` fail. A file whose content is, byte for byte, what the index says is in the repository's
//! objects already, where every git command reads it: hiding it from git hides nothing. One that was changed stays
//! hidden. The content is compared here: what git itself believes of a file, a command could have written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Exec, Run};
use crate::sandbox::environment::git_alone;
use crate::sandbox::output::{self, HeadAndTail, Stream, TOTAL_BYTES};
use crate::sandbox::paths::RootName;
use crate::sandbox::{Command, GitAccess, Network};

/// Most hidden files that git is asked about: they are arguments.
const MAX_ASKED: usize = 500;

/// Bytes that are kept of what git says of them.
const KEPT_BYTES: usize = 100 * 1024;

impl Exec {
    /// Takes from the hidden files those that git knows as they are.
    pub(super) async fn without_tracked(
        &self,
        mut hidden: Vec<PathBuf>,
        run: &Run<'_>,
    ) -> Vec<PathBuf> {
        let project = self.roots.path(RootName::Project).to_owned();
        let asked: Vec<String> = hidden
            .iter()
            .filter_map(|path| Some(path.strip_prefix(&project).ok()?.to_str()?.to_owned()))
            .take(MAX_ASKED)
            .collect();
        if asked.is_empty() {
            return hidden;
        }
        let Some(listed) = self.listed(&project, &asked, &hidden, run).await else {
            return hidden;
        };
        let roots = Arc::clone(&self.roots);
        let is_same = move |(path, object): (String, String)| {
            let content = roots.hidden_content(&path)?;
            names(&content, &object).then(|| project.join(path))
        };
        let unchanged = move || listed.into_iter().filter_map(is_same).collect();
        let same: Vec<PathBuf> = tokio::task::spawn_blocking(unchanged)
            .await
            .unwrap_or_default();
        hidden.retain(|path| !same.contains(path));
        hidden
    }

    /// What the index says of these paths, each with the name of its object. Git runs as any command does.
    async fn listed(
        &self,
        project: &Path,
        asked: &[String],
        hidden: &[PathBuf],
        run: &Run<'_>,
    ) -> Option<Vec<(String, String)>> {
        let options = ["--literal-pathspecs", "ls-files", "-s", "--"];
        let args = options.iter().map(|option| (*option).to_owned());
        let mut command = self.command(
            "git",
            args.chain(asked.iter().cloned()).collect(),
            Network::Off,
        );
        command.env.extend(git_alone(project, false));
        command.hidden = hidden.to_vec();
        command.git = GitAccess::ExistingReadOnly;
        let output = self.quietly(command, run).await?;
        // `mode object stage\tpath`; a path with odd characters is quoted, matches nothing and stays hidden.
        let entry = |line: &str| {
            let (facts, path) = line.split_once('\t')?;
            let object = facts.split(' ').nth(1)?;
            Some((path.to_owned(), object.to_owned()))
        };
        Some(output.lines().filter_map(entry).collect())
    }

    async fn quietly(&self, mut command: Command, run: &Run<'_>) -> Option<String> {
        command.user = Some(run.owner.to_owned());
        let mut process = self.sandbox.spawn(&command).await.ok()?;
        let stop = async {
            drop(tokio::time::timeout(run.timeout, run.cancel.cancelled()).await);
        };
        let mut kept = HeadAndTail::new(KEPT_BYTES);
        let output = output::collect(&mut process, TOTAL_BYTES, stop, |stream, text| {
            if stream == Stream::Stdout {
                kept.push(text);
            }
        });
        let is_success = output.await.exit.code == Some(0);
        is_success.then(|| kept.finish().text)
    }
}

/// Whether git would name this content so: SHA-1, or SHA-256 where the repository uses that.
fn names(content: &[u8], object: &str) -> bool {
    let head = format!("blob {}\0", content.len());
    let blob = [head.as_bytes(), content].concat();
    let digest = match object.len() {
        40 => <sha1::Sha1 as sha1::Digest>::digest(&blob).to_vec(),
        64 => <sha2::Sha256 as sha2::Digest>::digest(&blob).to_vec(),
        _ => return false,
    };
    data_encoding::HEXLOWER.encode(&digest) == object
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_object_is_named_as_git_does() {
        // `printf hello | git hash-object --stdin`, git 2.47.
        let name = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0";
        assert!(super::names(b"hello", name));
        assert!(!super::names(b"hellp", name));
        assert!(!super::names(b"hello", "b6fc"));
    }
}
