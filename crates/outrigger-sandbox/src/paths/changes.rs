//! Which files of the project a command made, changed or removed: by a look at all of them before it, and one after it.
//!
//! A look asks the system about each file and opens none: another inode, length or time of change makes it another file.
//! What ignore files leave out is left out, as in searches, and so is what tools fill by the thousand.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cap_fs_ext::DirExt;
#[cfg(unix)]
use cap_fs_ext::MetadataExt;
use cap_std::fs::{Dir, Metadata};

use super::contents::{changed, is_kernels};
use super::ignored::{IGNORE_FILES, Rules};
use super::replace::is_temporary;
use super::tree::{EntryKind, kind_of};
use super::unwritten::holds_a_name;
use super::{RootName, Roots};

/// Most files and folders of one look: some 60 bytes each, and most of a second.
const MAX_ENTRIES: usize = 200_000;

/// Longest look: a disk may be slow, and two of them are made for each command.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Longest path below the root that is looked at, in bytes: the kernel takes 4,096 for the whole, one name has 255.
const MAX_LENGTH: usize = 3_000;

/// Most changed files that are named.
pub const MAX_NAMED: usize = 200;

/// Most bytes of their paths together: each of them may be as long as a path can be, and clients keep what they are told.
const MAX_NAMED_BYTES: usize = 32 * 1024;

/// Folders that are left out whether or not an ignore file says so: the repository, and what package managers and
/// interpreters fill.
const LEFT_OUT: &[&str] = &[
    ".git",
    "node_modules",
    "__pycache__",
    ".venv",
    "site-packages",
];

/// Folders that are looked at on one thread: for fewer, another one costs more than it saves.
const FEW_FOLDERS: usize = 64;

/// Most threads of one look.
const MAX_THREADS: usize = 4;

static THREADS: LazyLock<usize> = LazyLock::new(|| {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    threads.min(MAX_THREADS)
});

/// The files of the project at one moment; those of the default are not known.
#[derive(Debug, Default)]
pub struct Tree {
    folders: HashMap<PathBuf, Folder>,
    /// Folders that nothing is known of: ignored, closed to the daemon, or the kernel's.
    left_out: HashSet<PathBuf>,
    complete: bool,
}

#[derive(Debug)]
struct Folder {
    /// Its files and links in the order of their names, each with what tells it from what it was.
    files: Vec<(OsString, u64)>,
    rules: Rules,
}

/// What is other than it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// Up to [`MAX_NAMED`] files below the project, in the order of their paths.
    pub named: Vec<(String, Change)>,
    /// How many more there are.
    pub more: usize,
    /// Whether all files were compared; where not, the project is too large, or its disk too slow.
    pub complete: bool,
}

/// What became of a file; the first ones are named first where there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It is other than it was: its content, its rights, or the whole file.
    Modified,
    /// It is gone.
    Deleted,
    /// It was not there.
    Created,
}

impl Roots {
    /// Looks at the project's files. Blocks, for two seconds at most; for a thread that may.
    pub fn tree(&self) -> Tree {
        self.tree_within(MAX_ENTRIES, MAX_TIME)
    }

    fn tree_within(&self, most: usize, time: Duration) -> Tree {
        let look = Look {
            root: &self.root(RootName::Project).dir,
            most,
            entries: AtomicUsize::new(0),
            deadline: Instant::now() + time,
        };
        let mut tree = Tree {
            folders: HashMap::new(),
            left_out: HashSet::new(),
            complete: true,
        };
        let mut level = vec![(PathBuf::new(), Rules::default())];
        while !level.is_empty() {
            let looked = look.at_all(&level);
            let mut next = Vec::new();
            for ((path, _), looked) in level.into_iter().zip(looked) {
                match looked {
                    Looked::At(folder, below) => {
                        for name in below {
                            let below = path.join(&name);
                            let left_out = LEFT_OUT.iter().any(|left_out| name == *left_out)
                                || below.as_os_str().len() > MAX_LENGTH
                                || folder.rules.cover(&below, true);
                            if left_out {
                                tree.left_out.insert(below);
                            } else {
                                next.push((below, folder.rules.clone()));
                            }
                        }
                        tree.folders.insert(path, folder);
                    }
                    Looked::Gone => {}
                    Looked::Closed => {
                        tree.left_out.insert(path);
                    }
                    Looked::TooMuch => {
                        tree.complete = false;
                        return tree;
                    }
                }
            }
            level = next;
        }
        tree
    }
}

/// One look at the project, by several threads.
struct Look<'a> {
    root: &'a Dir,
    most: usize,
    entries: AtomicUsize,
    deadline: Instant,
}

/// What came of a look at one folder.
enum Looked {
    /// What is in it, and the names of the folders in it.
    At(Folder, Vec<OsString>),
    Gone,
    Closed,
    TooMuch,
}

impl Look<'_> {
    /// Looks at these folders, in this order.
    fn at_all(&self, folders: &[(PathBuf, Rules)]) -> Vec<Looked> {
        let at_each = |folders: &[(PathBuf, Rules)]| -> Vec<Looked> {
            let looked = folders.iter().map(|(path, rules)| self.at(path, rules));
            looked.collect()
        };
        if folders.len() < FEW_FOLDERS {
            return at_each(folders);
        }
        thread::scope(|scope| {
            let mut shares = folders.chunks(folders.len().div_ceil(*THREADS));
            let first = shares.next().unwrap_or_default();
            let begin = |share| thread::Builder::new().spawn_scoped(scope, move || at_each(share));
            let others: Vec<_> = shares.map(|share| (share, begin(share))).collect();
            let mut looked = at_each(first);
            for (share, begun) in others {
                match begun.map(thread::ScopedJoinHandle::join) {
                    Ok(Ok(more)) => looked.extend(more),
                    // It failed by a fault of its own, so nobody knows what is there.
                    Ok(Err(_)) => looked.extend(share.iter().map(|_| Looked::TooMuch)),
                    // There was no thread to be had.
                    Err(_) => looked.extend(at_each(share)),
                }
            }
            looked
        })
    }

    fn at(&self, path: &Path, rules: &Rules) -> Looked {
        if Instant::now() >= self.deadline {
            return Looked::TooMuch;
        }
        match self.read(path, rules) {
            Ok(looked) => looked,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Looked::Gone,
            Err(_) => Looked::Closed,
        }
    }

    fn read(&self, path: &Path, rules: &Rules) -> io::Result<Looked> {
        let dir = match path.as_os_str().is_empty() {
            true => self.root.try_clone()?,
            false => self.root.open_dir_nofollow(path)?,
        };
        if is_kernels(&dir) {
            return Ok(Looked::Closed);
        }
        let (mut files, mut folders, mut has_rules) = (Vec::new(), Vec::new(), false);
        for entry in dir.entries()? {
            let entry = entry?;
            if self.entries.fetch_add(1, Ordering::Relaxed) >= self.most {
                return Ok(Looked::TooMuch);
            }
            let name = entry.file_name();
            match kind_of(&entry) {
                EntryKind::Folder => folders.push(name),
                EntryKind::File | EntryKind::Link if !is_temporary(&name) => {
                    has_rules |= IGNORE_FILES.iter().any(|file| name == *file);
                    // What vanished meanwhile is not there.
                    if let Ok(metadata) = entry.metadata()
                        && !holds_a_name(&dir, &name, metadata.len())
                    {
                        files.push((name, state(&metadata)));
                    }
                }
                EntryKind::File | EntryKind::Link | EntryKind::Other => {}
            }
        }
        files.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let rules = match has_rules {
            true => rules.below(&dir, path),
            false => rules.clone(),
        };
        Ok(Looked::At(Folder { files, rules }, folders))
    }
}

/// A digest of what the system says of a file.
fn state(metadata: &Metadata) -> u64 {
    let mut state = DefaultHasher::new();
    (number(metadata), metadata.len(), changed(metadata)).hash(&mut state);
    state.finish()
}

#[cfg(unix)]
fn number(metadata: &Metadata) -> u64 {
    metadata.ino()
}

/// What a folder says of a file there has no number, and each file would have to be opened for it.
#[cfg(windows)]
fn number(_metadata: &Metadata) -> u64 {
    0
}

impl Tree {
    /// Whether all files are in it; where not, a second look tells nothing.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Names what is other than it was before.
    pub fn changed_since(&self, before: &Self) -> Changes {
        let mut found = Found::default();
        if before.complete {
            for (path, folder) in &self.folders {
                match before.folders.get(path) {
                    Some(old) => found.compare(path, old, folder),
                    None if before.knows_nothing_of(path) => {}
                    None => found.all(path, folder, Change::Created),
                }
            }
            // Where this look ended early, what it did not come to may still be there.
            let gone = before.folders.iter().filter(|(path, _)| {
                self.complete && !self.folders.contains_key(*path) && !self.knows_nothing_of(path)
            });
            for (path, folder) in gone {
                found.all(path, folder, Change::Deleted);
            }
        }
        let mut room = MAX_NAMED_BYTES;
        let named = found.named.into_iter().filter(|(.., path)| {
            let left = room.checked_sub(path.len());
            room = left.unwrap_or(room);
            left.is_some()
        });
        let mut named: Vec<(String, Change)> =
            named.map(|(change, _, path)| (path, change)).collect();
        named.sort();
        Changes {
            more: found.count - named.len(),
            named,
            complete: before.complete && self.complete,
        }
    }

    fn knows_nothing_of(&self, folder: &Path) -> bool {
        folder
            .ancestors()
            .any(|above| self.left_out.contains(above))
    }
}

/// Changes so far: the number of all, and those to be named. The user's own files are rather changed than created, and
/// rather near the root.
#[derive(Default)]
struct Found {
    count: usize,
    named: BTreeSet<(Change, usize, String)>,
}

impl Found {
    fn compare(&mut self, path: &Path, before: &Folder, after: &Folder) {
        let (mut old, mut new) = (
            before.files.iter().peekable(),
            after.files.iter().peekable(),
        );
        loop {
            let order = match (old.peek(), new.peek()) {
                (Some((old, _)), Some((new, _))) => old.cmp(new),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => break,
            };
            let gone = old.next_if(|_| order.is_le());
            let here = new.next_if(|_| order.is_ge());
            match (gone, here) {
                (Some((name, was)), Some((_, is))) if was != is => {
                    self.add(path, name, after, Change::Modified);
                }
                (Some((name, _)), None) => self.add(path, name, before, Change::Deleted),
                (None, Some((name, _))) => self.add(path, name, after, Change::Created),
                _ => {}
            }
        }
    }

    fn all(&mut self, path: &Path, folder: &Folder, change: Change) {
        for (name, _) in &folder.files {
            self.add(path, name, folder, change);
        }
    }

    fn add(&mut self, path: &Path, name: &OsStr, folder: &Folder, change: Change) {
        let path = path.join(name);
        if folder.rules.cover(&path, false) {
            return;
        }
        self.count += 1;
        let depth = path.components().count();
        let path = path.to_string_lossy().into_owned();
        self.named.insert((change, depth, path));
        if self.named.len() > MAX_NAMED {
            self.named.pop_last();
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
