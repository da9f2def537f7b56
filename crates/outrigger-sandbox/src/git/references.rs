//! What settings of git name in a root: the folder of `core.hooksPath`, and further files of settings.
//!
//! Git itself is asked, so that its rules hold: the user's and the system's settings count, and conditions of includes.
//! The answer is remembered as long as none of the files that it came from changes.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::thread;

use parking_lot::Mutex;
use tokio::runtime::Builder;

use super::{Look, Placeholder, PlaceholderKind, ask};

const MAX_ROOTS: usize = 64;

/// Most files that an answer is said to come from.
const MAX_FILES: usize = 256;

/// How much of a file of settings is looked at, in bytes, to see whether it says something.
const MAX_LOOKED_AT: u64 = 64 * 1024;

/// What tells whether a file is the one it was: device, inode, length and time of the last change.
type Stamp = Option<(u64, u64, u64, (i64, i64))>;

/// What the settings of one root name in it.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// Each with what stands there while nothing else does.
    pub(super) places: Vec<Placeholder>,
    /// The folder of hooks and the further files, as they are named, also outside of the root.
    pub(super) named: Vec<PathBuf>,
    /// `user.name` and `user.email`.
    identity: [Option<String>; 2],
    sources: Vec<(Stamp, PathBuf)>,
}

impl References {
    /// Returns the variables that tell git who commits: the user's own settings are out of a command's sight.
    pub(crate) fn identity(&self) -> impl Iterator<Item = (String, String)> {
        let names = ["NAME", "EMAIL"].into_iter().zip(&self.identity);
        names.flat_map(|(suffix, value)| {
            let roles = ["AUTHOR", "COMMITTER"].into_iter();
            roles.filter_map(move |role| Some((format!("GIT_{role}_{suffix}"), value.clone()?)))
        })
    }

    fn is_current(&self) -> bool {
        let mut sources = self.sources.iter();
        sources.all(|(stamp, file)| stamp_of(file) == *stamp)
    }
}

/// What git answered, by root and home.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<HashMap<Asked, Arc<References>>>);

type Asked = (PathBuf, Option<PathBuf>);

/// For the whole process: commands and file tools go by the same answer.
static KNOWN: LazyLock<Cache> = LazyLock::new(Cache::default);

impl Cache {
    /// Returns the one of this process.
    pub(crate) fn known() -> &'static Self {
        &KNOWN
    }

    /// The same as [`references`](Self::references), for a thread that may block.
    pub(super) fn wait_for(&self, root: &Path, home: Option<&Path>) -> io::Result<Arc<References>> {
        let asked = (root.to_owned(), home.map(Path::to_owned));
        let before = self.0.lock().get(&asked).cloned();
        if let Some(current) = before.filter(|known| known.is_current()) {
            return Ok(current);
        }
        // The caller may be a thread of a runtime, which must not wait for itself.
        let ask = || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(self.references(root, home))
        };
        let ended = |_| Err(io::Error::other("the thread that asks git ended early"));
        thread::scope(|scope| scope.spawn(ask).join().unwrap_or_else(ended))
    }

    /// Returns what the settings of a root name in it. Where git does not answer, what it answered before; an error
    /// where it never did.
    pub(crate) async fn references(
        &self,
        root: &Path,
        home: Option<&Path>,
    ) -> io::Result<Arc<References>> {
        let asked = (root.to_owned(), home.map(Path::to_owned));
        let before = self.0.lock().get(&asked).cloned();
        let known = before.clone();
        let look = move || known.filter(|known| known.is_current());
        if let Some(current) = tokio::task::spawn_blocking(look).await? {
            return Ok(current);
        }
        let words = ["config", "--list", "--show-origin", "--null"];
        // Another user's project is read as well.
        let variables = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("GIT_CONFIG_VALUE_0", "*"),
        ];
        let variables = variables.map(|(name, value)| (name, OsStr::new(value)));
        let home_variable = home.map(|home| ("HOME", home.as_os_str()));
        let listed = ask(root, &words, variables.into_iter().chain(home_variable)).await;
        let answer = match listed {
            Ok(Some((_, listed))) => {
                let (of, home) = (root.to_owned(), home.map(Path::to_owned));
                let read = move || read(&of, home.as_deref(), &listed);
                tokio::task::spawn_blocking(read).await?
            }
            // There is no git: nobody runs it here.
            Ok(None) => return Ok(Arc::default()),
            Err(error) => Err(error),
        };
        let references = match answer {
            Ok(references) => Arc::new(references),
            Err(error) => {
                let root = root.display();
                let Some(before) = before else {
                    let reason =
                        format!("git does not say where the hooks of {root} are ({error})");
                    return Err(io::Error::new(error.kind(), reason));
                };
                tracing::warn!(%root, %error, "git does not say where its hooks are; those it named before are protected");
                return Ok(before);
            }
        };
        let mut roots = self.0.lock();
        if roots.len() >= MAX_ROOTS {
            roots.clear();
        }
        roots.insert(asked, Arc::clone(&references));
        Ok(references)
    }
}

/// Reads git's list: `file:PATH NUL key LF value NUL`, again and again. An error where git has not read the repository's own
/// settings, which it passes over where a command closed the folder for that moment.
fn read(root: &Path, home: Option<&Path>, listed: &[u8]) -> io::Result<References> {
    // The top of the work tree, which relative paths are below: the root may be a folder in it.
    let mut folders = root.ancestors();
    let look = Look::default();
    let top = folders.find(|folder| look.has_repository(&folder.join(".git")));
    let top = top.unwrap_or(root);
    // Files that may appear, beside those that git names.
    let own = [".git/config", ".git/config.worktree"].map(|name| top.join(name));
    let users = [".gitconfig", ".config/git/config"];
    let users = users.iter().filter_map(|name| Some(home?.join(name)));
    let mut sources: Vec<PathBuf> = own.iter().cloned().chain(users).collect();
    sources.push(PathBuf::from("/etc/gitconfig"));
    let mut origins = Vec::new();
    let mut places = Vec::new();
    let mut hooks = None;
    let [mut name, mut email] = [None, None];
    let mut words = listed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    while let (Some(origin), Some(setting)) = (words.next(), words.next()) {
        let Some(file) = origin.strip_prefix("file:") else {
            continue;
        };
        let file = top.join(file);
        // Of a setting that is there again the last one counts.
        match setting.split_once('\n') {
            Some(("user.name", value)) => name = Some(value.to_owned()),
            Some(("user.email", value)) => email = Some(value.to_owned()),
            Some(("core.hookspath", value)) => hooks = Some(resolve(top, value, home)),
            Some((key, value)) if is_include(key) => {
                let included = resolve(file.parent().unwrap_or(top), value, home);
                sources.push(included.clone());
                places.push(place(included, PlaceholderKind::Settings));
            }
            _ => {}
        }
        origins.push(file);
    }
    places.extend(hooks.map(|hooks| place(hooks, PlaceholderKind::Directory)));
    let named = places.iter().map(|place| place.path.clone()).collect();
    places.retain(|place| place.path != root && place.path.starts_with(root));
    let [own, _] = own;
    if !origins.contains(&own) && has_settings(&own)? {
        return Err(io::Error::other(format!(
            "it did not read {}",
            own.display()
        )));
    }
    sources.extend(origins);
    sources.sort();
    sources.dedup();
    sources.truncate(MAX_FILES);
    let stamped = |file: PathBuf| (stamp_of(&file), file);
    Ok(References {
        places,
        named,
        identity: [name, email],
        sources: sources.into_iter().map(stamped).collect(),
    })
}

/// Whether a file says something that git would list.
fn has_settings(file: &Path) -> io::Result<bool> {
    let text = match std::fs::File::open(file) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        opened => {
            let mut text = Vec::new();
            opened?.take(MAX_LOOKED_AT).read_to_end(&mut text)?;
            text
        }
    };
    let mut lines = text
        .split(|byte| *byte == b'\n')
        .map(|line| line.trim_ascii());
    Ok(
        lines
            .any(|line| line.contains(&b'=') && !line.starts_with(b"#") && !line.starts_with(b";")),
    )
}

fn is_include(key: &str) -> bool {
    key == "include.path" || key.starts_with("includeif.") && key.ends_with(".path")
}

fn place(path: PathBuf, kind: PlaceholderKind) -> Placeholder {
    Placeholder { path, kind }
}

/// Returns a path as git reads it, with `.` and `..` taken out.
fn resolve(folder: &Path, value: &str, home: Option<&Path>) -> PathBuf {
    let named = match (value.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => folder.join(value),
    };
    let mut path = PathBuf::new();
    for component in named.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            component => path.push(component),
        }
    }
    path
}

fn stamp_of(file: &Path) -> Stamp {
    let found = file.metadata().ok()?;
    let changed = (found.ctime(), found.ctime_nsec());
    Some((found.dev(), found.ino(), found.len(), changed))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn places(listed: &str, root: &Path) -> Vec<(String, PlaceholderKind)> {
        let settings = read(root, Some(Path::new("/home/me")), listed.as_bytes()).unwrap();
        let below = |place: &Placeholder| {
            let path = place.path.strip_prefix(root).unwrap();
            (path.display().to_string(), place.kind)
        };
        settings.places.iter().map(below).collect()
    }

    #[test]
    fn hooks_and_includes_in_the_work_tree_are_found() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let directory = |path: &str| (path.to_owned(), PlaceholderKind::Directory);
        let outside = "file:/home/me/.gitconfig\0core.hookspath\n~/hooks\0";
        assert_eq!(places(outside, root), []);
        let inside = "file:/home/me/.gitconfig\0core.hookspath\nfirst\0file:.git/config\0core.hookspath\n./a/../hooks\0";
        assert_eq!(places(inside, root), [directory("hooks")]);
        let included = "file:.git/config\0include.path\n../settings\0file:.git/config\0includeif.gitdir:x.path\nbelow\0";
        let settings = |path: &str| (path.to_owned(), PlaceholderKind::Settings);
        let expected = [settings("settings"), settings(".git/below")];
        assert_eq!(places(included, root), expected);
        let deep = "file:.git/config\0core.hookspath\n.husky/_\0";
        assert_eq!(places(deep, root), [directory(".husky/_")]);
    }

    #[test]
    fn paths_are_below_the_top_of_the_work_tree() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join(".git")).unwrap();
        fs::write(place.path().join(".git/HEAD"), "").unwrap();
        let root = place.path().join("app");
        // As a placeholder stands there while another command runs.
        fs::create_dir_all(root.join(".git")).unwrap();
        let listed = "file:.git/config\0core.hookspath\napp/hooks\0file:.git/config\0include.path\n../app/more\0";
        let expected = [
            ("more".to_owned(), PlaceholderKind::Settings),
            ("hooks".to_owned(), PlaceholderKind::Directory),
        ];
        assert_eq!(places(listed, &root), expected);
        let sources = read(&root, None, listed.as_bytes()).unwrap().sources;
        let config = place.path().join(".git/config");
        assert!(sources.iter().any(|(_, file)| *file == config));
    }

    #[test]
    fn an_answer_without_the_repositorys_own_settings_is_none() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let git = root.join(".git");
        fs::create_dir(&git).unwrap();
        fs::write(git.join("HEAD"), "").unwrap();
        let users = "file:/home/me/.gitconfig\0user.name\nme\0";
        let both = format!("{users}file:.git/config\0core.bare\nfalse\0");
        for (config, listed, is_answer) in [
            (None, users, true),
            (Some("# a = b\n"), users, true),
            (Some("[core]\n\tbare = false\n"), users, false),
            (Some("[core]\n\tbare = false\n"), &both, true),
        ] {
            if let Some(config) = config {
                fs::write(git.join("config"), config).unwrap();
            }
            let read = read(root, None, listed.as_bytes());
            assert_eq!(read.is_ok(), is_answer, "{config:?} {listed}");
        }
    }

    #[tokio::test]
    async fn what_git_does_not_answer_is_an_error_until_it_has_answered() {
        let place = tempfile::tempdir().unwrap();
        let (root, home) = (place.path(), Some(place.path()));
        let settings = root.join(".gitconfig");
        fs::write(&settings, "[user]\n\tname = me\n").unwrap();
        let cache = Cache::default();
        let before = cache.references(root, home).await.unwrap();
        // A pipe that nobody writes to.
        fs::remove_file(&settings).unwrap();
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &settings,
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
        tokio::time::pause();
        let after = cache.references(root, home).await.unwrap();
        assert_eq!(after.identity, before.identity);
        let error = Cache::default().references(root, home).await.unwrap_err();
        assert!(error.to_string().contains("where the hooks of"), "{error}");
    }
}
