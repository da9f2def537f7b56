use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use tempfile::TempDir;

use super::replace::MAX_WRITE_BYTES;
use super::*;

mod crash;
mod moments;
#[cfg(target_os = "linux")]
mod mounted;
mod race;
#[cfg(target_os = "linux")]
pub(super) mod rights;
#[cfg(target_os = "linux")]
mod unwritten;

/// A project, a central folder and a place outside with a secret, all in one temporary folder.
struct World {
    dir: TempDir,
    roots: Roots,
}

/// By the program: there is no call for it on every Unix that rustix has.
fn named_pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["proj/sub/deep", "proj-evil", "outside", "home"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("outside/secret"), "OUTSIDE").unwrap();
        fs::write(dir.path().join("proj-evil/file"), "OUTSIDE").unwrap();
        fs::write(dir.path().join("proj/file"), "inside").unwrap();
        fs::write(dir.path().join("proj/sub/file"), "in sub").unwrap();
        fs::write(dir.path().join("proj/.env"), "KEY=1").unwrap();
        fs::write(dir.path().join("proj/.env.example"), "KEY=").unwrap();
        let at = |name: &str| dir.path().join(name);
        let home = at("home");
        let roots = Roots::open(&at("proj"), &at("home/central"), Some(&home)).unwrap();
        fs::write(at("home/central/note"), "central").unwrap();
        Self { dir, roots }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn link(&self, target: impl AsRef<Path>, link: &str) {
        symlink(target, self.at(link)).unwrap();
    }

    fn read(&self, path: &str) -> Result<String, PathError> {
        let target = self.roots.map(path, Access::Read)?;
        let located = self.roots.locate(&target, Access::Read)?;
        Ok(String::from_utf8(located.read()?).unwrap())
    }

    fn write(&self, path: &str, content: &str) -> Result<String, PathError> {
        let target = self.roots.map(path, Access::Write)?;
        let located = self.roots.locate(&target, Access::Write)?;
        located.replace(content.as_bytes())?;
        Ok(located.relative().to_owned())
    }
}

/// What an attempt came to, in a word.
fn word(result: &Result<String, PathError>) -> &str {
    match result {
        Ok(content) => content,
        Err(PathError::Forbidden(_)) => "forbidden",
        Err(PathError::Missing(_)) => "missing",
        Err(PathError::TooLarge(_)) => "too large",
        Err(PathError::Failed(_)) => "failed",
    }
}

/// Path forms; `{}` stands for the temporary folder.
const READS: &[(&str, &str)] = &[
    ("file", "inside"),
    ("./file", "inside"),
    (".//./file", "inside"),
    ("sub/../file", "inside"),
    ("sub/deep/../../file", "inside"),
    ("{}/proj/file", "inside"),
    ("{}//proj/./sub/../file", "inside"),
    ("{}/alias/file", "inside"),
    ("{}/home/central/note", "central"),
    ("~/central/note", "central"),
    ("$HOME/central/note", "central"),
    ("~", "forbidden"),
    ("~/.bashrc", "forbidden"),
    ("~/central/../.bashrc", "forbidden"),
    ("", "failed"),
    ("nul\0byte", "failed"),
    ("file/", "failed"),
    ("file/.", "failed"),
    ("file/x", "failed"),
    (".", "failed"),
    ("sub", "failed"),
    ("none", "missing"),
    ("none/../file", "missing"),
    ("sub/none/x", "missing"),
    ("..", "forbidden"),
    ("../outside/secret", "forbidden"),
    ("sub/../../outside/secret", "forbidden"),
    ("../proj/file", "forbidden"),
    ("/etc/passwd", "forbidden"),
    ("/", "forbidden"),
    ("//etc/passwd", "forbidden"),
    ("/proc/self/environ", "forbidden"),
    ("/proc/self/root/etc/passwd", "forbidden"),
    ("/dev/zero", "forbidden"),
    ("{}/proj-evil/file", "forbidden"),
    ("{}/proj/../outside/secret", "forbidden"),
    ("{}/outside/secret", "forbidden"),
    ("link-in", "inside"),
    ("link-abs-in", "inside"),
    ("link-abs-central", "central"),
    ("link-dir/file", "in sub"),
    ("link-dir/../file", "inside"),
    ("link-deep/../file", "in sub"),
    ("link-chain", "inside"),
    ("link-out", "forbidden"),
    ("link-abs-out", "forbidden"),
    ("link-out-dir/secret", "forbidden"),
    ("link-proc/etc/passwd", "forbidden"),
    ("link-up/outside/secret", "forbidden"),
    ("link-dangling", "missing"),
    ("link-loop", "failed"),
    ("link-self/file", "failed"),
    (".env", "forbidden"),
    (".ENV", "forbidden"),
    ("\u{ff0e}env", "forbidden"),
    ("sub/../.env", "forbidden"),
    ("link-env", "forbidden"),
    ("hard-env", "forbidden"),
    (".env.example", "KEY="),
    ("hard-file", "inside"),
    ("fifo", "failed"),
    ("link-fifo", "failed"),
    ("socket", "failed"),
    (".git/config", "forbidden"),
    ("dotgit/config", "forbidden"),
    ("hard-config", "forbidden"),
    ("hard-config.worktree", "forbidden"),
];

fn world_of_links() -> World {
    let world = World::new();
    world.link("proj", "alias");
    // A second spelling of the root: the daemon was started with it.
    let (alias, central, home) = (
        world.at("alias"),
        world.at("home/central"),
        world.at("home"),
    );
    let roots = Roots::open(&alias, &central, Some(&home)).unwrap();
    let world = World {
        dir: world.dir,
        roots,
    };
    fs::create_dir_all(world.at("proj/.git")).unwrap();
    for name in ["config", "config.worktree"] {
        let setting = world.at("proj/.git").join(name);
        fs::write(&setting, "token").unwrap();
        fs::hard_link(setting, world.at(&format!("proj/hard-{name}"))).unwrap();
    }
    world.link("file", "proj/link-in");
    world.link(world.at("proj/file"), "proj/link-abs-in");
    world.link(world.at("home/central/note"), "proj/link-abs-central");
    world.link("sub", "proj/link-dir");
    world.link("sub/deep", "proj/link-deep");
    world.link("link-abs-in", "proj/link-chain");
    world.link("../outside/secret", "proj/link-out");
    world.link(world.at("outside/secret"), "proj/link-abs-out");
    world.link(world.at("outside"), "proj/link-out-dir");
    world.link("/proc/self/root", "proj/link-proc");
    world.link("..", "proj/link-up");
    world.link("nowhere", "proj/link-dangling");
    world.link("link-loop", "proj/link-loop");
    world.link("link-self/x", "proj/link-self");
    world.link(".env", "proj/link-env");
    world.link("fifo", "proj/link-fifo");
    world.link(".git", "proj/dotgit");
    fs::hard_link(world.at("proj/.env"), world.at("proj/hard-env")).unwrap();
    fs::hard_link(world.at("proj/file"), world.at("proj/hard-file")).unwrap();
    named_pipe(&world.at("proj/fifo"));
    drop(std::os::unix::net::UnixListener::bind(world.at("proj/socket")).unwrap());
    world
}

#[test]
fn every_path_form_reads_what_it_should() {
    let world = world_of_links();
    let base = world.dir.path().to_str().unwrap();
    for (path, expected) in READS {
        let path = path.replace("{}", base);
        let result = world.read(&path);
        assert_eq!(word(&result), *expected, "{path:?}: {result:?}");
    }
}

#[test]
fn long_paths_are_refused_before_any_system_call() {
    let world = World::new();
    assert_eq!(word(&world.read(&"x".repeat(256))), "failed");
    assert_eq!(word(&world.read(&"x".repeat(255))), "missing");
    assert_eq!(word(&world.read(&"x/".repeat(2049))), "failed");
    let mut deep = world.at("proj");
    for _ in 0..=128 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    assert_eq!(
        word(&world.read(&format!("{}f", "d/".repeat(129)))),
        "failed"
    );
    assert_eq!(
        word(&world.write(&format!("{}f", "n/".repeat(129)), "")),
        "failed"
    );
}

/// Writes: path, what it comes to (the path that was written, or a word).
const WRITES: &[(&str, &str)] = &[
    ("new", "new"),
    ("file", "file"),
    ("a/b/c/new", "a/b/c/new"),
    ("sub/../new2", "new2"),
    ("sub/", "failed"),
    ("new3/", "missing"),
    ("sub", "failed"),
    ("file/x", "failed"),
    ("none/../x", "missing"),
    ("../x", "forbidden"),
    ("a/../../x", "forbidden"),
    ("/tmp/outrigger-never-written", "forbidden"),
    ("{}/outside/x", "forbidden"),
    ("{}/home/central/n/x", "n/x"),
    ("link-in", "file"),
    ("link-dangling", "nowhere"),
    ("link-out", "forbidden"),
    ("link-abs-out", "forbidden"),
    ("link-out-dir/x", "forbidden"),
    ("link-loop", "failed"),
    ("link-env", "forbidden"),
    (".env.local", "forbidden"),
    (".git/hooks/pre-commit", "forbidden"),
    ("dotgit/hooks/pre-commit", "forbidden"),
    ("new4/.git/config", "forbidden"),
    (".vscode/tasks.json", "forbidden"),
    (".claude/settings.json", "forbidden"),
    ("fifo", "failed"),
    ("socket", "failed"),
    ("hard-env", "forbidden"),
    ("hard-file", "hard-file"),
];

#[test]
fn every_path_form_writes_where_it_should() {
    let world = world_of_links();
    let base = world.dir.path().to_str().unwrap();
    for (path, expected) in WRITES {
        let path = path.replace("{}", base);
        let result = world.write(&path, "written");
        assert_eq!(word(&result), *expected, "{path:?}: {result:?}");
        if result.is_ok() {
            assert_eq!(world.read(&path).unwrap(), "written", "{path:?}");
        }
    }
    assert_eq!(
        fs::read_to_string(world.at("outside/secret")).unwrap(),
        "OUTSIDE"
    );
    assert_eq!(fs::read_dir(world.at("outside")).unwrap().count(), 1);
    assert!(
        !world.at("proj/new4").exists(),
        "nothing is made for a denied path"
    );
    assert!(
        fs::symlink_metadata(world.at("proj/link-in"))
            .unwrap()
            .is_symlink()
    );
    // A twin elsewhere keeps its content: the write made a new file of this name.
    assert_eq!(
        fs::read_to_string(world.at("proj/file")).unwrap(),
        "written"
    );
    assert_eq!(fs::metadata(world.at("proj/hard-file")).unwrap().nlink(), 1);
}

#[test]
fn replacing_keeps_mode_and_attributes_but_no_set_id_bits() {
    let world = World::new();
    for (mode, kept) in [
        (0o751, 0o751),
        (0o4755, 0o755),
        (0o2644, 0o644),
        (0o600, 0o600),
    ] {
        let file = world.at("proj/file");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        world.write("file", "x").unwrap();
        let found = fs::metadata(&file).unwrap().permissions().mode() & 0o7777;
        assert_eq!(found, kept, "{mode:o}");
    }
    let name = "user.outrigger.test";
    let flags = rustix::fs::XattrFlags::empty();
    let path = world.at("proj/file");
    rustix::fs::setxattr(&path, name, b"kept", flags).unwrap();
    world.write("file", "y").unwrap();
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(&path, name, &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"kept");
}

#[test]
fn sizes_are_bounded() {
    let world = World::new();
    let large = fs::File::create(world.at("proj/large")).unwrap();
    large.set_len(MAX_FILE_BYTES + 1).unwrap();
    assert_eq!(word(&world.read("large")), "too large");
    large.set_len(MAX_FILE_BYTES).unwrap();
    assert_eq!(world.read("large").unwrap().len() as u64, MAX_FILE_BYTES);
    let largest = "x".repeat(MAX_WRITE_BYTES);
    assert_eq!(word(&world.write("new", &format!("{largest}x"))), "failed");
    assert!(world.write("new", &largest).is_ok());
}

#[test]
fn an_existing_file_that_is_swapped_after_locating_is_not_followed() {
    let world = World::new();
    let target = world.roots.map("file", Access::Write).unwrap();
    let located = world.roots.locate(&target, Access::Write).unwrap();
    fs::remove_file(world.at("proj/file")).unwrap();
    world.link(world.at("outside/secret"), "proj/file");
    assert!(matches!(located.read(), Err(PathError::Failed(_))));
    assert!(located.replace(b"x").is_err());
    assert_eq!(
        fs::read_to_string(world.at("outside/secret")).unwrap(),
        "OUTSIDE"
    );
}

#[test]
fn a_file_that_appears_after_locating_is_not_replaced() {
    let world = World::new();
    let target = world.roots.map("new", Access::Write).unwrap();
    let located = world.roots.locate(&target, Access::Write).unwrap();
    fs::write(world.at("proj/new"), "foreign").unwrap();
    let error = located.replace(b"x").unwrap_err().to_string();
    assert!(error.contains("someone else just created it"), "{error}");
    assert_eq!(world.read("new").unwrap(), "foreign");
    let names: Vec<_> = fs::read_dir(world.at("proj")).unwrap().collect();
    assert_eq!(names.len(), 5, "no temporary file is left: {names:?}");
}

#[test]
fn folders_that_are_too_much_are_no_roots() {
    let world = World::new();
    let (home, central) = (world.at("home"), world.at("home/c"));
    fs::create_dir_all(world.at("home/.ssh")).unwrap();
    fs::create_dir_all(world.at("home/work/.git")).unwrap();
    let refused = |path: &Path| {
        Roots::open(path, &central, Some(&home))
            .is_err_and(|error| error.to_string().contains("refused as a root"))
    };
    for path in [
        "/",
        "/etc",
        "/usr/lib",
        "/tmp",
        "/proc/self",
        "/dev",
        "/var",
        "/home",
    ] {
        assert!(refused(Path::new(path)), "{path}");
    }
    for path in ["home", "home/.", "home/.ssh", "home/work/.git", "."] {
        assert!(refused(&world.at(path)), "{path}");
    }
    world.link("home", "alias-of-home");
    assert!(refused(&world.at("alias-of-home")));
    assert!(!refused(&world.at("home/work")));
    assert!(!refused(&world.at("proj")));
    let unusable = Roots::open(&world.at("none"), &central, Some(&home)).unwrap_err();
    assert!(
        unusable.to_string().contains("cannot be used"),
        "{unusable}"
    );
}

#[test]
fn secrets_are_listed_for_masking() {
    let world = World::new();
    fs::create_dir_all(world.at("proj/sub/.ssh")).unwrap();
    fs::write(world.at("proj/sub/.ssh/x"), "").unwrap();
    fs::create_dir_all(world.at("proj/.git")).unwrap();
    fs::write(world.at("proj/.git/config"), "").unwrap();
    fs::write(world.at("proj/secret_test.go"), "").unwrap();
    let hidden = world.roots.hidden();
    let base = world.roots.path(RootName::Project);
    assert_eq!(
        hidden,
        Hidden {
            repositories: vec![base.join(".git")],
            paths: vec![base.join(".env"), base.join("sub/.ssh")],
            complete: true
        }
    );
}

#[test]
fn a_walk_obeys_ignore_files_and_leaves_secrets_out() {
    let world = World::new();
    for file in [
        "a.log",
        "keep.log",
        "sub/b.log",
        "sub/deep/c.txt",
        "target/x",
        ".git/HEAD",
    ] {
        fs::create_dir_all(world.at("proj").join(file).parent().unwrap()).unwrap();
        fs::write(world.at("proj").join(file), "").unwrap();
    }
    fs::write(world.at("proj/.gitignore"), "*.log\n/target/\n!keep.log\n").unwrap();
    fs::write(world.at("proj/sub/.gitignore"), "!b.log\n").unwrap();
    world.link(world.at("outside"), "proj/link");
    let walk = |base: &str| {
        let target = world.roots.map(base, Access::Read).unwrap();
        let located = world.roots.locate(&target, Access::Read).unwrap();
        let mut found = Vec::new();
        let visited = located
            .visit(&mut |entry| {
                found.push(entry.relative.to_owned());
                Step::Enter
            })
            .unwrap();
        assert_eq!(visited, Visited::All);
        found
    };
    assert_eq!(
        walk("."),
        [
            ".env.example",
            ".gitignore",
            "file",
            "keep.log",
            "link",
            "sub",
            "sub/.gitignore",
            "sub/b.log",
            "sub/deep",
            "sub/deep/c.txt",
            "sub/file",
        ]
    );
    fs::write(world.at("proj/sub/deep/d.log"), "").unwrap();
    // What the daemon itself writes to is nothing of the user's; what only looks like it is.
    fs::write(
        world.at("proj/sub/deep/.outrigger-0123456789abcdef.tmp"),
        "",
    )
    .unwrap();
    fs::create_dir(world.at("proj/sub/deep/.outrigger-fedcba9876543210.tmp")).unwrap();
    // Rules of the folders above hold, a folder asked for by name is looked into all the same.
    assert_eq!(walk("sub/deep"), ["sub/deep/c.txt"]);
    assert_eq!(walk("target"), ["target/x"]);
    fs::write(world.at("proj/target/.outrigger-notes.tmp"), "").unwrap();
    assert_eq!(walk("target"), ["target/.outrigger-notes.tmp", "target/x"]);
}

#[test]
fn errors_never_name_a_place_outside() {
    let world = world_of_links();
    for path in [
        "link-abs-out",
        "link-out-dir/secret",
        "link-proc/etc/passwd",
    ] {
        let text = world.read(path).unwrap_err().to_string();
        assert!(!text.contains(world.dir.path().to_str().unwrap()), "{text}");
        assert!(text.contains(path.split('/').next().unwrap()), "{text}");
    }
}
