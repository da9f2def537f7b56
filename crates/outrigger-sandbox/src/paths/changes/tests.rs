use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

struct World {
    _place: tempfile::TempDir,
    project: PathBuf,
    roots: Roots,
}

impl World {
    fn with(files: &[&str]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let project = place.path().join("project");
        fs::create_dir(&project).unwrap();
        let roots = Roots::open(&project, &place.path().join("central"), None).unwrap();
        let world = Self {
            project,
            roots,
            _place: place,
        };
        files.iter().for_each(|file| world.put(file, "old"));
        world
    }

    fn at(&self, path: &str) -> PathBuf {
        self.project.join(path)
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.at(path)).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.at(from), self.at(to)).unwrap();
    }

    fn changes(&self, act: impl FnOnce(&Self)) -> Changes {
        let before = self.roots.tree();
        assert!(before.is_complete());
        act(self);
        self.roots.tree().changed_since(&before)
    }
}

/// `+` for what was made, `-` for what is gone, `~` for what is other.
fn words(changes: &Changes) -> Vec<String> {
    let mark = |change| match change {
        Change::Created => '+',
        Change::Deleted => '-',
        Change::Modified => '~',
    };
    let words = changes.named.iter();
    words
        .map(|(path, change)| format!("{}{path}", mark(*change)))
        .collect()
}

type Act = fn(&World);

#[test]
fn what_was_done_and_what_is_told() {
    // What there is, what is done, what is told.
    let cases: &[(&[&str], Act, &[&str])] = &[
        (&["a", "b/c"], |_| {}, &[]),
        (&["a"], |it| it.put("a", "other text"), &["~a"]),
        (&["a"], |it| it.put("b/c/d", ""), &["+b/c/d"]),
        (&["a", "b/c"], |it| it.remove("b/c"), &["-b/c"]),
        (
            &["b/c", "b/d/e"],
            |it| fs::remove_dir_all(it.at("b")).unwrap(),
            &["-b/c", "-b/d/e"],
        ),
        (&["a"], |it| it.rename("a", "b"), &["-a", "+b"]),
        (
            &["a/x", "a/y/z"],
            |it| it.rename("a", "b"),
            &["-a/x", "-a/y/z", "+b/x", "+b/y/z"],
        ),
        // As most editors write: another file of the same name and length.
        (
            &["a"],
            |it| {
                it.put("a.new", "new");
                it.rename("a.new", "a");
            },
            &["~a"],
        ),
        (
            &["a"],
            |it| {
                it.remove("a");
                it.put("a/b", "");
            },
            &["-a", "+a/b"],
        ),
        (
            &["a/b"],
            |it| {
                fs::remove_dir_all(it.at("a")).unwrap();
                it.put("a", "");
            },
            &["+a", "-a/b"],
        ),
        (&["a"], |it| symlink("a", it.at("way")).unwrap(), &["+way"]),
        // A folder that is a link is a link.
        (
            &["a/b"],
            |it| symlink("a", it.at("way")).unwrap(),
            &["+way"],
        ),
        (&["a"], |it| fs::create_dir(it.at("empty")).unwrap(), &[]),
        (
            &["a"],
            |it| drop(std::os::unix::net::UnixListener::bind(it.at("socket")).unwrap()),
            &[],
        ),
        (
            &["a"],
            |it| {
                let name = OsStr::from_bytes(b"odd \xff\n");
                fs::write(it.project.join(name), "").unwrap();
            },
            &["+odd \u{fffd}\n"],
        ),
        // What nobody wants to be told file by file.
        (
            &["a"],
            |it| {
                it.put(".git/index", "");
                it.put("node_modules/x/index.js", "");
                it.put("src/__pycache__/a.pyc", "");
            },
            &[],
        ),
    ];
    for (place, (files, act, expected)) in cases.iter().enumerate() {
        let changes = World::with(files).changes(act);
        assert_eq!(words(&changes), *expected, "case {place}");
        assert!(changes.complete && changes.more == 0, "case {place}");
    }
}

#[test]
fn what_ignore_files_leave_out_is_not_told() {
    let cases: &[(&str, Act, &[&str])] = &[
        ("build/\n*.log\n", |it| it.put("build/x/y", ""), &[]),
        (
            "build/\n*.log\n",
            |it| it.put("src/a.log", "other text"),
            &[],
        ),
        (
            "build/\n*.log\n!keep.log\n",
            |it| {
                it.put("keep.log", "");
                it.put("src/build", "");
            },
            &["+keep.log", "+src/build"],
        ),
        // By the rules of a folder of its own, as virtual environments have them.
        (
            "",
            |it| {
                it.put("venv/.gitignore", "*");
                it.put("venv/bin/python", "");
            },
            &[],
        ),
        // A rule that is new, or gone, makes no change of what it is about.
        ("", |it| it.put(".gitignore", "src/\n"), &["~.gitignore"]),
        ("src/\n", |it| it.put(".gitignore", "#\n"), &["~.gitignore"]),
        ("src/\n", |it| it.remove(".gitignore"), &["-.gitignore"]),
        (
            "src/\n",
            |it| fs::remove_dir_all(it.at("src")).unwrap(),
            &[],
        ),
    ];
    for (place, (rules, act, expected)) in cases.iter().enumerate() {
        let world = World::with(&["src/deep/code", "src/a.log"]);
        world.put(".gitignore", rules);
        let changes = world.changes(act);
        assert_eq!(words(&changes), *expected, "case {place}");
    }
}

/// Does it again until it is seen: the clock of a file system may tick slowly.
fn seen_at_last(world: &World, act: impl Fn(&World)) -> Vec<String> {
    let before = world.roots.tree();
    for _ in 0..100_000 {
        act(world);
        let changes = world.roots.tree().changed_since(&before);
        if !changes.named.is_empty() {
            return words(&changes);
        }
    }
    panic!("it was never seen");
}

#[test]
fn a_change_is_seen_behind_the_old_length_and_the_old_time() {
    let world = World::with(&["a", "b"]);
    let time = fs::metadata(world.at("a")).unwrap().modified().unwrap();
    let rewrite = |world: &World| {
        fs::write(world.at("a"), "new").unwrap();
        let file = fs::File::options().write(true).open(world.at("a")).unwrap();
        file.set_modified(time).unwrap();
    };
    assert_eq!(seen_at_last(&world, rewrite), ["~a"]);
    let rights = |world: &World| {
        fs::set_permissions(world.at("b"), fs::Permissions::from_mode(0o755)).unwrap();
    };
    assert_eq!(seen_at_last(&world, rights), ["~b"]);
}

#[test]
fn of_many_the_users_own_are_named() {
    let world = World::with(&["z/changed", "z/gone"]);
    let changes = world.changes(|world| {
        for number in 0..300 {
            world.put(&format!("a/b/{number}"), "");
        }
        world.put("top", "");
        world.put("z/changed", "other text");
        world.remove("z/gone");
    });
    let told = words(&changes);
    assert_eq!((told.len(), changes.more), (MAX_NAMED, 103));
    for name in ["~z/changed", "-z/gone", "+top"] {
        assert!(told.contains(&name.to_owned()), "{name} {told:?}");
    }
    assert!(changes.named.is_sorted() && changes.complete);
}

#[test]
fn long_paths_are_fewer() {
    let world = World::with(&[]);
    let changes = world.changes(|world| {
        for number in 0..MAX_NAMED {
            world.put(&format!("{number:0>250}"), "");
        }
    });
    assert_eq!(changes.named.len(), MAX_NAMED_BYTES / 250);
    assert_eq!(changes.more, MAX_NAMED - MAX_NAMED_BYTES / 250);
}

#[test]
fn many_folders_are_looked_at_by_several_threads() {
    let files: Vec<String> = (0..10 * FEW_FOLDERS)
        .map(|number| format!("{number}/f"))
        .collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let world = World::with(&files);
    let changes = world.changes(|world| {
        world.put("7/f", "other text");
        world.put("99/g", "");
        fs::remove_dir_all(world.at("500")).unwrap();
    });
    assert_eq!(words(&changes), ["-500/f", "~7/f", "+99/g"]);
}

#[test]
fn beyond_the_bounds_it_is_said_and_nothing_is_made_up() {
    let world = World::with(&["a", "b/c", "b/d", "e"]);
    let whole = world.roots.tree_within(5, MAX_TIME);
    assert!(whole.is_complete());
    let some = world.roots.tree_within(4, MAX_TIME);
    let late = world.roots.tree_within(MAX_ENTRIES, Duration::ZERO);
    for partial in [&some, &late] {
        assert!(!partial.is_complete());
        let since = whole.changed_since(partial);
        assert_eq!((words(&since), since.complete), (vec![], false));
        let since = partial.changed_since(&whole);
        assert_eq!((words(&since), since.complete), (vec![], false));
    }
    // What was looked at is told all the same.
    world.put("a", "other text");
    world.put("new", "");
    let since = world.roots.tree_within(5, MAX_TIME).changed_since(&whole);
    assert_eq!(
        (words(&since), since.complete),
        (vec!["~a".to_owned(), "+new".to_owned()], false)
    );
}

#[test]
fn a_path_that_is_too_long_is_left_out() {
    let world = World::with(&["a"]);
    let changes = world.changes(|world| {
        let mut path = world.project.clone();
        while path.as_os_str().len() < MAX_LENGTH + 500 {
            path.push("d".repeat(200));
            fs::create_dir(&path).unwrap();
        }
        fs::write(path.join("f"), "").unwrap();
        world.put("b", "");
    });
    assert_eq!(words(&changes), ["+b"]);
    assert!(changes.complete);
}

/// It comes and goes with the commands that run, of this conversation or of another.
#[test]
#[cfg(target_os = "linux")]
fn what_holds_a_name_while_a_command_runs_is_no_file_of_the_project() {
    let world = World::with(&["a"]);
    let placeholder = "# Placeholder of Outrigger: stands here while a command runs.\n";
    let other = placeholder.replace("Outrigger", "outrigger");
    let changes = world.changes(|it| it.put("HEAD", placeholder));
    assert_eq!(words(&changes), [""; 0]);
    let changes = world.changes(|it| it.put("HEAD", &other));
    assert_eq!(words(&changes), ["+HEAD"]);
    let changes = world.changes(|it| it.put("HEAD", placeholder));
    assert_eq!(words(&changes), ["-HEAD"]);
}
