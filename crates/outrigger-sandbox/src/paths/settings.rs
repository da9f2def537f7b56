//! Settings in a project that the user's editor, shell, hooks or agents run: whether a command made or changed one.
//!
//! No mount covers what is not there yet, and the git tool may change hooks, so they are looked at before and after, in the
//! project's own folder, and whoever reads the result is told. The deny list and git's settings say which they are.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use cap_fs_ext::{DirExt, MetadataExt};
use cap_std::fs::Dir;

use super::contents::changed;
use super::{RootName, Roots};
use crate::deny;

/// Most entries of one of them that are looked at: such folders hold a page or two.
const MAX_ENTRIES: usize = 500;

/// Deepest folder in one of them that is looked into.
const MAX_DEPTH: usize = 4;

/// Their state: a digest of names, sizes and times for each that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, u64>);

impl Settings {
    /// Names what is new or other than it was. What was removed runs nothing.
    pub fn changed_since(&self, before: &Self) -> Vec<String> {
        self.0
            .iter()
            .filter(|(name, state)| before.0.get(*name) != Some(state))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

impl Roots {
    /// Looks at the project's settings. Some system calls, and git may be waited for; for a thread that may block.
    pub fn settings(&self) -> Settings {
        let dir = &self.root(RootName::Project).dir;
        let names = deny::run_by_others().map(str::to_owned);
        let states = names.chain(self.named_by_git()).filter_map(|name| {
            let mut state = DefaultHasher::new();
            let mut remaining = MAX_ENTRIES;
            look(dir, &name, 0, &mut remaining, &mut state)?;
            Some((name, state.finish()))
        });
        Settings(states.collect())
    }
}

fn look(
    dir: &Dir,
    name: &str,
    depth: usize,
    remaining: &mut usize,
    state: &mut DefaultHasher,
) -> Option<()> {
    let metadata = dir.symlink_metadata(name).ok()?;
    name.hash(state);
    if !metadata.is_dir() {
        (metadata.len(), metadata.ino(), changed(&metadata)).hash(state);
        return Some(());
    }
    if depth < MAX_DEPTH
        && let Ok(inner) = dir.open_dir_nofollow(name).or_else(|_| dir.open_dir(name))
    {
        let entries = inner.entries().into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .take(*remaining)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        *remaining -= names.len();
        names.sort();
        for name in names {
            look(&inner, &name, depth + 1, remaining, state);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn roots(place: &Path) -> Roots {
        fs::create_dir_all(place.join("project/.vscode")).unwrap();
        fs::write(place.join("project/.vscode/tasks.json"), "good").unwrap();
        Roots::open(&place.join("project"), &place.join("central"), None).unwrap()
    }

    // Elsewhere the time that any program sets is all there is.
    #[cfg(unix)]
    #[test]
    fn a_change_is_seen_behind_the_old_length_and_the_old_time() {
        let place = tempfile::tempdir().unwrap();
        let roots = roots(place.path());
        let tasks = place.path().join("project/.vscode/tasks.json");
        let before = roots.settings();
        assert!(roots.settings().changed_since(&before).is_empty());
        let time = fs::metadata(&tasks).unwrap().modified().unwrap();
        // The clock of the file system ticks slowly: until it has, the file looks as it did.
        for _ in 0..100_000 {
            if roots.settings() != before {
                break;
            }
            fs::write(&tasks, "evil").unwrap();
            let file = fs::File::options().write(true).open(&tasks).unwrap();
            file.set_modified(time).unwrap();
        }
        assert_eq!(fs::metadata(&tasks).unwrap().modified().unwrap(), time);
        assert_eq!(roots.settings().changed_since(&before), [".vscode"]);
    }

    #[test]
    fn what_is_deeper_than_is_looked_is_not_looked_at() {
        let place = tempfile::tempdir().unwrap();
        let roots = roots(place.path());
        let deepest = place.path().join("project/.vscode/a/b/c/d");
        fs::create_dir_all(&deepest).unwrap();
        let before = roots.settings();
        fs::write(deepest.join("file"), "x").unwrap();
        assert!(roots.settings().changed_since(&before).is_empty());
        fs::write(deepest.with_file_name("file"), "x").unwrap();
        assert_eq!(roots.settings().changed_since(&before), [".vscode"]);
    }
}
