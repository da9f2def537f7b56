//! Looks at a root: where its repositories are and what git would run there.
//!
//! Some tens of system calls for an ordinary repository, and bounded for any other.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use rustix::fs::FileType;

use super::gitlinks::{Gitlinks, follow};
use super::noted::{Noted, Noter, kind, names, stamp};
use super::{
    Baseline, COMMON_PLACEHOLDER, FILES, Git, HOOKS, Inside, Leaf, ORDERS, outside, references,
};

/// Most directories of worktrees and submodules that are noted.
const MAX_DIRECTORIES: usize = 1_024;

/// Most directories that are looked into to find them: names of submodules may hold slashes.
const MAX_EXAMINED: usize = 4_096;

/// Deepest path of one of them, in names.
const MAX_DEPTH: usize = 12;

/// What was seen, and the open `.git` where that is a directory: it may be moved, and is found again by that.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) root: Dir,
    pub(crate) baseline: Baseline,
    pub(crate) contents: Vec<u8>,
    pub(crate) git: Option<Dir>,
}

/// Directories of git below one.
#[derive(Debug, Default)]
pub(crate) struct Below {
    pub(crate) worktrees: Vec<PathBuf>,
    pub(crate) modules: Vec<PathBuf>,
    pub(crate) links: Vec<PathBuf>,
    pub(crate) complete: bool,
}

/// Looks at a root. `itself` says that it is the directory of a repository whose work trees are elsewhere.
pub(crate) fn look(
    root: Dir,
    path: &Path,
    itself: bool,
    home: Option<&Path>,
    before: Option<(&Baseline, &[u8])>,
) -> Seen {
    let (earlier, contents) = before.unzip();
    let mut noter = Noter::new(contents.unwrap_or_default());
    let (git, opened, mut own) = if itself {
        (Git::Itself, None, Vec::new())
    } else {
        look_at_git(&root, path, earlier, &mut noter)
    };
    if itself || is_git_directory(&root) {
        own.push(PathBuf::from("."));
    }
    let outside = if itself {
        None
    } else {
        outside::directory(path)
    };
    let mut settings: Vec<PathBuf> = own.iter().map(|git| path.join(git)).collect();
    settings.extend(outside.clone());
    let referenced = if itself {
        Vec::new()
    } else {
        let top = match settings.is_empty() {
            true => work_tree_above(path),
            false => None,
        };
        settings.extend(top.map(|top| top.join(".git")));
        references::inside(path, top.unwrap_or(path), &settings, home)
    };
    let mut directories = Vec::new();
    for git in own {
        if let Ok(dir) = root.open_dir(&git) {
            let before = earlier.and_then(|earlier| find(&earlier.directories, git.as_os_str()));
            let inside = own_of(&dir, before, &mut noter);
            directories.push((git.into_os_string(), inside));
        }
    }
    let referenced: Vec<(OsString, Option<Noted>)> = referenced
        .into_iter()
        .map(|path| {
            let before = earlier
                .and_then(|earlier| find(&earlier.referenced, path.as_os_str()))
                .and_then(Option::as_ref);
            let noted = at(&root, &path).and_then(|(dir, name)| noter.take(&dir, &name, before));
            (path.into_os_string(), noted)
        })
        .collect();
    let inner = referenced.iter().map(|(path, _)| Path::new(path).parent());
    let own = directories.iter().map(|(path, _)| Some(Path::new(path)));
    let folders = with_those_above(own.chain(inner).flatten())
        .into_iter()
        .map(|path| {
            let link = at(&root, &path)
                .filter(|(dir, name)| kind(dir, name) == Some(FileType::Symlink))
                .and_then(|(dir, name)| noter.take(&dir, &name, None));
            (path.into_os_string(), link)
        })
        .collect();
    noter.go_below();
    for (git, inside) in &mut directories {
        if let Ok(dir) = root.open_dir(Path::new(git)) {
            let before = earlier.and_then(|earlier| find(&earlier.directories, git));
            look_below(&dir, inside, before, &mut noter);
        }
    }
    let gitlinks = if itself {
        Gitlinks::default()
    } else {
        let before = earlier.map(|earlier| &earlier.gitlinks);
        look_at_gitlinks(&root, path, &directories, before, &mut noter)
    };
    let is_bare = directories.iter().any(|(git, _)| git == ".");
    let has_namesakes = !is_bare && ["config", HOOKS].iter().any(|name| is_there(&root, name));
    Seen {
        root,
        baseline: Baseline {
            path: path.to_owned(),
            git,
            directories,
            referenced,
            folders,
            has_namesakes,
            outside,
            gitlinks,
        },
        contents: noter.into_contents(),
        git: opened,
    }
}

/// The work tree of which a folder is only a part.
fn work_tree_above(folder: &Path) -> Option<&Path> {
    let mut above = folder.ancestors().skip(1);
    above.find(|folder| folder.join(".git").is_dir())
}

/// What `.git` is, and the directories below the root that git takes for its own by it.
fn look_at_git(
    root: &Dir,
    path: &Path,
    earlier: Option<&Baseline>,
    noter: &mut Noter<'_>,
) -> (Git, Option<Dir>, Vec<PathBuf>) {
    let name = OsStr::new(".git");
    match stamp(root, name) {
        Ok(None) => (Git::Missing, None, Vec::new()),
        Ok(Some((FileType::Directory, stamp))) => {
            let (device, inode) = stamp.identity();
            (
                Git::Directory { device, inode },
                root.open_dir_nofollow(name).ok(),
                vec![name.into()],
            )
        }
        _ => {
            let before = match earlier.map(|earlier| &earlier.git) {
                Some(Git::Other(noted)) => Some(noted),
                _ => None,
            };
            let noted = noter.take(root, name, before);
            let named = match &noted {
                Some(Noted::Link(target)) => Some(PathBuf::from(target)),
                Some(file @ Noted::File { .. }) => noter
                    .content(file)
                    .and_then(|content| std::str::from_utf8(content).ok())
                    .and_then(|text| Some(PathBuf::from(text.strip_prefix("gitdir:")?.trim()))),
                _ => None,
            };
            // Beneath the root, through whatever links; what lies elsewhere a command cannot change.
            let inside = named
                .and_then(|named| path.join(named).canonicalize().ok())
                .and_then(|named| Some(named.strip_prefix(path).ok()?.to_owned()))
                .filter(|named| !named.as_os_str().is_empty());
            let git = noted.map_or(Git::Missing, Git::Other);
            (git, None, inside.into_iter().collect())
        }
    }
}

fn own_of(git: &Dir, before: Option<&Inside>, noter: &mut Noter<'_>) -> Inside {
    let own = leaf(git, before.map(|before| &before.own), noter);
    let worktree_config = own.files.iter().any(|(name, noted)| {
        name == "config"
            && noted
                .as_ref()
                .is_some_and(|noted| asks_for_more(noted, noter))
    });
    Inside {
        own,
        below: Vec::new(),
        links: Vec::new(),
        complete: true,
        worktree_config,
    }
}

/// Submodules in the work tree, with the directories of git there that `own` does not hold already.
fn look_at_gitlinks(
    root: &Dir,
    path: &Path,
    own: &[(OsString, Inside)],
    before: Option<&Gitlinks>,
    noter: &mut Noter<'_>,
) -> Gitlinks {
    let found = follow(root, path, before.map_or(&[], |before| &before.indexes));
    let mut links = Gitlinks {
        complete: found.complete,
        indexes: found.indexes,
        ..Gitlinks::default()
    };
    for (dot, target) in found.dots {
        let Some((dir, name)) = at(root, &dot) else {
            continue;
        };
        let noted = match kind(&dir, &name) {
            Some(FileType::Directory) | None => None,
            Some(_) => {
                let before =
                    before.and_then(|before| find(&before.dots, dot.as_os_str())?.as_ref());
                noter.take(&dir, &name, before)
            }
        };
        let target = target.and_then(|target| Some(target.strip_prefix(path).ok()?.to_owned()));
        links.dots.push((dot.into_os_string(), noted));
        let is_own = |git: &Path| own.iter().any(|(own, _)| git.starts_with(own));
        let Some(git) = target.filter(|git| !is_own(git)) else {
            continue;
        };
        if let Ok(dir) = root.open_dir(&git)
            && find(&links.directories, git.as_os_str()).is_none()
        {
            let before = before.and_then(|before| find(&before.directories, git.as_os_str()));
            let mut inside = own_of(&dir, before, noter);
            look_below(&dir, &mut inside, before, noter);
            links.directories.push((git.into_os_string(), inside));
        }
    }
    links
}

fn asks_for_more(config: &Noted, noter: &Noter<'_>) -> bool {
    noter.content(config).is_some_and(|content| {
        String::from_utf8_lossy(content)
            .to_ascii_lowercase()
            .contains("worktreeconfig")
    })
}

fn look_below(git: &Dir, inside: &mut Inside, before: Option<&Inside>, noter: &mut Noter<'_>) {
    let found = below(git);
    inside.complete = found.complete;
    inside.links = found
        .links
        .into_iter()
        .map(PathBuf::into_os_string)
        .collect();
    for path in found.worktrees.into_iter().chain(found.modules) {
        if let Ok(dir) = git.open_dir_nofollow(&path) {
            let before = before.and_then(|before| find(&before.below, path.as_os_str()));
            let leaf = leaf(&dir, before, noter);
            inside.below.push((path.into_os_string(), leaf));
        }
    }
    inside.below.sort_by(|one, other| one.0.cmp(&other.0));
}

fn leaf(git: &Dir, before: Option<&Leaf>, noter: &mut Noter<'_>) -> Leaf {
    let files = FILES.map(|name| {
        let before = before.and_then(|before| {
            before
                .files
                .iter()
                .find(|(known, _)| known == name)
                .and_then(|(_, noted)| noted.as_ref())
        });
        let noted = noter.take(git, OsStr::new(name), before);
        // Left behind by a power cut, see there.
        let is_ours = noted
            .as_ref()
            .is_some_and(|noted| noter.content(noted) == Some(COMMON_PLACEHOLDER));
        (name.to_owned(), noted.filter(|_| !is_ours))
    });
    let hooks = before.and_then(|before| before.hooks.as_ref());
    let hooks = noter.take(git, OsStr::new(HOOKS), hooks);
    let mut orders = Vec::new();
    for (folder, names) in ORDERS {
        let Ok(dir) = git.open_dir_nofollow(folder) else {
            continue;
        };
        let noted = names.iter().filter_map(|name| {
            let before = before.map_or(&[][..], |before| &before.orders);
            let before = before.iter().find(|(known, _)| known == name);
            let noted = noter.take(&dir, OsStr::new(name), before.map(|(_, noted)| noted))?;
            Some(((*name).to_owned(), noted))
        });
        orders.extend(noted);
    }
    Leaf {
        files: files.into(),
        hooks,
        orders,
    }
}

/// Finds the directories of linked worktrees and of submodules below a directory of git.
pub(crate) fn below(git: &Dir) -> Below {
    let mut found = Below {
        complete: true,
        ..Below::default()
    };
    let mut examined = 0;
    let mut waiting = vec![PathBuf::from("worktrees"), PathBuf::from("modules")];
    while let Some(folder) = waiting.pop() {
        if kind_at(git, &folder) == Some(FileType::Symlink) {
            found.links.push(folder);
            continue;
        }
        let Ok(dir) = git.open_dir_nofollow(&folder) else {
            continue;
        };
        let is_of_worktrees = folder.ends_with("worktrees");
        for name in names(&dir, MAX_EXAMINED) {
            let path = folder.join(&name);
            examined += 1;
            let is_full = found.worktrees.len() + found.modules.len() >= MAX_DIRECTORIES;
            if is_full || examined >= MAX_EXAMINED || path.components().count() > MAX_DEPTH {
                found.complete = false;
                return found;
            }
            match kind(&dir, &name) {
                Some(FileType::Symlink) => found.links.push(path),
                Some(FileType::Directory) if is_of_worktrees => {
                    // Submodules of a linked worktree.
                    waiting.push(path.join("modules"));
                    found.worktrees.push(path);
                }
                Some(FileType::Directory) if has_head(&dir, &name) => {
                    waiting.extend(["worktrees", "modules"].map(|name| path.join(name)));
                    found.modules.push(path);
                }
                Some(FileType::Directory) => waiting.push(path),
                _ => {}
            }
        }
    }
    found
}

fn kind_at(dir: &Dir, path: &Path) -> Option<FileType> {
    stamp(dir, path.as_os_str())
        .ok()
        .flatten()
        .map(|(kind, _)| kind)
}

fn has_head(dir: &Dir, name: &OsStr) -> bool {
    kind_at(dir, &Path::new(name).join("HEAD")).is_some()
}

fn is_there(dir: &Dir, name: &str) -> bool {
    kind(dir, OsStr::new(name)).is_some()
}

/// Whether git takes a directory for a repository: one without a work tree around it, of which the objects may be
/// elsewhere.
pub(crate) fn is_git_directory(dir: &Dir) -> bool {
    is_there(dir, "HEAD")
        && (is_there(dir, "commondir") || (is_there(dir, "objects") && is_there(dir, "refs")))
}

/// These folders and those above them below the root, each once, outer ones first. `.git` is looked at by itself.
fn with_those_above<'p>(folders: impl Iterator<Item = &'p Path>) -> BTreeSet<PathBuf> {
    folders
        .flat_map(Path::ancestors)
        .filter(|folder| ![Path::new(""), Path::new("."), Path::new(".git")].contains(folder))
        .map(Path::to_owned)
        .collect()
}

/// The folder that holds a path, and its name there.
pub(crate) fn at(root: &Dir, path: &Path) -> Option<(Dir, OsString)> {
    let name = path.file_name()?.to_owned();
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let dir = match parent {
        Some(parent) => root.open_dir(parent).ok()?,
        None => root.try_clone().ok()?,
    };
    Some((dir, name))
}

fn find<'a, T>(list: &'a [(OsString, T)], name: &OsStr) -> Option<&'a T> {
    list.iter()
        .find(|(known, _)| known == name)
        .map(|(_, found)| found)
}
