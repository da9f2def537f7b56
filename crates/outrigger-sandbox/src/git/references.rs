//! What settings of git name in a root: the folder of `core.hooksPath`, and further files of settings.
//!
//! Git itself is asked, so that its rules hold: the user's and the system's settings count, and conditions of includes.
//! The answer is remembered as long as none of the files that it came from changes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
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

/// Variables of the daemon's own environment, as a rule the user's, that say where git has settings from.
const PLACES: [&str; 4] = [
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
];

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
        let answer = async {
            let Some((_, mut listed)) = list(root, home, None).await? else {
                return Ok(None);
            };
            let (of, text) = (root.to_owned(), listed.clone());
            let passed_over = move || passed_over(&of, &text);
            if let Some(own) = tokio::task::spawn_blocking(passed_over).await?? {
                match list(root, home, Some(&own)).await? {
                    Some((true, more)) => listed.extend(more),
                    Some((false, _)) | None => {
                        let reason = format!("it does not read {}", own.display());
                        return Err(io::Error::other(reason));
                    }
                }
            }
            let (of, home) = (root.to_owned(), home.map(Path::to_owned));
            let read = move || read(&of, home.as_deref(), &listed);
            tokio::task::spawn_blocking(read).await?.map(Some)
        };
        let references = match answer.await {
            Ok(Some(references)) => Arc::new(references),
            // There is no git: nobody runs it here.
            Ok(None) => return Ok(Arc::default()),
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

/// Has git list the settings that count in a folder, or those of one file; whether it could, and its list.
async fn list(
    root: &Path,
    home: Option<&Path>,
    file: Option<&Path>,
) -> io::Result<Option<(bool, Vec<u8>)>> {
    let words = ["config", "--list", "--show-origin", "--null"].map(OsStr::new);
    let of_file = file.into_iter().flat_map(|file| {
        let words = ["--includes", "--file"].map(OsStr::new);
        words.into_iter().chain([file.as_os_str()])
    });
    let words: Vec<_> = words.into_iter().chain(of_file).collect();
    // Another user's project is read as well.
    let variables = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
    ];
    let variables = variables.map(|(name, value)| (name, OsString::from(value)));
    let home = home.map(|home| ("HOME", home.into()));
    let own = PLACES.into_iter();
    let own = own.filter_map(|name| Some((name, std::env::var_os(name)?)));
    ask(root, &words, variables.into_iter().chain(home).chain(own)).await
}

/// Returns the top of the work tree, which relative paths are below: the root may be a folder in it.
fn top(root: &Path) -> io::Result<&Path> {
    let look = Look::default();
    let mut folders = root.ancestors();
    let top = folders.find(|folder| look.has_repository(&folder.join(".git")));
    look.finish()?;
    Ok(top.unwrap_or(root))
}

/// The words of git's list: where each setting is from, and `key LF value`.
fn listed_settings(listed: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    let mut words = listed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    std::iter::from_fn(move || Some((words.next()?, words.next()?)))
}

/// Returns the repository's own file of settings where git listed nothing of it, though it says something. Git passes a
/// repository over that is on another file system than the root or that it takes for broken, and one in a folder that a
/// command closed for that moment.
fn passed_over(root: &Path, listed: &[u8]) -> io::Result<Option<PathBuf>> {
    let top = top(root)?;
    let own = top.join(".git/config");
    let mut origins = listed_settings(listed);
    let is_listed = origins.any(|(origin, _)| {
        origin
            .strip_prefix("file:")
            .is_some_and(|file| top.join(file) == own)
    });
    let says_something = !is_listed && has_settings(&own)?;
    Ok(says_something.then_some(own))
}

/// Reads git's list: `file:PATH NUL key LF value NUL`, again and again.
fn read(root: &Path, home: Option<&Path>, listed: &[u8]) -> io::Result<References> {
    let top = top(root)?;
    // Files that may appear, beside those that git names.
    let own = [".git/config", ".git/config.worktree"].map(|name| top.join(name));
    let users = [".gitconfig", ".config/git/config"];
    let users = users.iter().filter_map(|name| Some(home?.join(name)));
    let mut sources: Vec<PathBuf> = own.into_iter().chain(users).collect();
    sources.push(PathBuf::from("/etc/gitconfig"));
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    sources.extend(variable("GIT_CONFIG_GLOBAL"));
    sources.extend(variable("XDG_CONFIG_HOME").map(|folder| folder.join("git/config")));
    let mut places = Vec::new();
    let mut hooks = None;
    let [mut name, mut email] = [None, None];
    for (origin, setting) in listed_settings(listed) {
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
        sources.push(file);
    }
    places.extend(hooks.map(|hooks| place(hooks, PlaceholderKind::Directory)));
    let mut named: Vec<_> = places.iter().map(|place| place.path.clone()).collect();
    // The root has one path here, and may have others for the user.
    for place in &mut places {
        if !place.path.starts_with(root)
            && let Some(real) = real_path(&place.path)
        {
            place.path = real;
        }
    }
    named.extend(places.iter().map(|place| place.path.clone()));
    named.sort();
    named.dedup();
    places.retain(|place| place.path != root && place.path.starts_with(root));
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
    let look = Look::default();
    let text = look.beginning(file, MAX_LOOKED_AT);
    look.finish()?;
    let text = text.unwrap_or_default();
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let is_comment = |line: &[u8]| line.starts_with(b"#") || line.starts_with(b";");
    Ok(lines.any(|line| line.contains(&b'=') && !is_comment(line)))
}

/// Returns a path with the links resolved in what is there of it.
fn real_path(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|there| {
        let below = path.strip_prefix(there).ok()?;
        let real = there.canonicalize().ok()?;
        // With a slash at its end a file could not be opened.
        Some(real.components().chain(below.components()).collect())
    })
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
    fn it_is_seen_where_git_has_passed_the_repository_over() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let git = root.join(".git");
        fs::create_dir(&git).unwrap();
        fs::write(git.join("HEAD"), "").unwrap();
        let users = "file:/home/me/.gitconfig\0user.name\nme\0";
        let both = format!("{users}file:.git/config\0core.bare\nfalse\0");
        for (config, listed, is_passed_over) in [
            (None, users, false),
            (Some("# a = b\n"), users, false),
            (Some("[core]\n\tbare = false\n"), users, true),
            (Some("[core]\n\tbare = false\n"), &both, false),
        ] {
            if let Some(config) = config {
                fs::write(git.join("config"), config).unwrap();
            }
            let found = passed_over(root, listed.as_bytes()).unwrap();
            let expected = is_passed_over.then(|| git.join("config"));
            assert_eq!(found, expected, "{config:?} {listed}");
        }
    }

    /// As `/home` may lead to `/var/home`.
    #[test]
    fn a_path_by_way_of_a_link_is_that_of_the_root() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("real/project");
        fs::create_dir_all(&root).unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(place.path().join("real"), &link).unwrap();
        let named = link.join("project/tools/hooks");
        let listed = format!("file:.git/config\0core.hookspath\n{}\0", named.display());
        let hooks = ("tools/hooks".to_owned(), PlaceholderKind::Directory);
        assert_eq!(places(&listed, &root), [hooks]);
        let named_too = read(&root, None, listed.as_bytes()).unwrap().named;
        assert!(named_too.contains(&named) && named_too.contains(&root.join("tools/hooks")));
        let file = root.join("settings");
        fs::write(&file, "").unwrap();
        let named = link.join("project/settings");
        let listed = format!("file:.git/config\0include.path\n{}\0", named.display());
        let found = read(&root, None, listed.as_bytes()).unwrap().places;
        // As it is opened, not only as it compares.
        assert_eq!(found[0].path.as_os_str(), file.as_os_str());
    }

    #[test]
    fn nobody_waits_for_a_pipe_in_the_place_of_settings() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join(".git")).unwrap();
        let config = place.path().join(".git/config");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &config, kind, mode, 0).unwrap();
        assert_eq!(passed_over(place.path(), b"").unwrap(), None);
    }

    /// Git takes it for none, for its `HEAD` says nothing.
    #[tokio::test]
    async fn a_broken_repository_is_protected_as_well() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/HEAD"), "").unwrap();
        fs::write(
            root.join(".git/config"),
            "[core]\n\thooksPath = tools/hooks\n",
        )
        .unwrap();
        let cache = Cache::default();
        let found = cache.references(root, Some(root)).await.unwrap();
        let expected = [super::place(
            root.join("tools/hooks"),
            PlaceholderKind::Directory,
        )];
        assert_eq!(found.places, expected);
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
