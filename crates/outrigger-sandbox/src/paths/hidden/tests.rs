use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::deny;
use crate::paths::RootName;

/// A project whose folders were last changed long ago, and its roots.
fn world() -> (tempfile::TempDir, Roots) {
    let place = tempfile::tempdir().unwrap();
    let project = place.path().join("project");
    for path in [
        "a/b/.env",
        "a/b/code.rs",
        "c/plain",
        ".ssh/id_rsa",
        ".git/.env",
        "secrets/x",
    ] {
        let path = project.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    let roots = Roots::open(&project, &place.path().join("central"), None).unwrap();
    (place, roots)
}

/// What is found after a while: then all that is read is remembered.
fn names(roots: &Roots) -> Vec<String> {
    names_at(roots, SystemTime::now() + Duration::from_secs(3_600))
}

fn names_at(roots: &Roots, now: SystemTime) -> Vec<String> {
    let hidden = roots.hidden_within(MAX_ENTRIES, now);
    assert!(hidden.complete);
    let base = roots.path(RootName::Project);
    let below = hidden
        .paths
        .iter()
        .filter_map(|path| path.strip_prefix(base).ok());
    let mut names: Vec<String> = below.map(|path| path.display().to_string()).collect();
    names.sort();
    names
}

#[test]
fn what_is_remembered_and_what_is_new_are_both_found() {
    let (_place, roots) = world();
    let base = roots.path(RootName::Project).to_owned();
    let first = names(&roots);
    assert_eq!(first, [".ssh", "a/b/.env"]);
    assert_eq!(names(&roots), first);
    let remembered = |name: &str| {
        let memory = &roots.root(RootName::Project).hidden;
        memory.lock().contains_key(Path::new(name))
    };
    assert!(remembered("") && remembered("a/b") && remembered("c"));
    // Known folders are not read again, and a change of one is seen at once.
    fs::write(base.join("c/.npmrc"), "x").unwrap();
    fs::remove_file(base.join("a/b/.env")).unwrap();
    assert_eq!(names_at(&roots, SystemTime::now()), [".ssh", "c/.npmrc"]);
    // Changed a moment ago: its time tells nothing of a further change.
    assert!(!remembered("c"));
    fs::create_dir_all(base.join("secrets/deep/er")).unwrap();
    fs::write(base.join("secrets/deep/er/key.pem"), "x").unwrap();
    assert_eq!(
        names(&roots),
        [".ssh", "c/.npmrc", "secrets/deep/er/key.pem"]
    );
    // Another folder at the same name.
    fs::rename(base.join("a"), base.join("z")).unwrap();
    fs::create_dir(base.join("a")).unwrap();
    fs::write(base.join("a/.env"), "x").unwrap();
    assert_eq!(
        names(&roots),
        [".ssh", "a/.env", "c/.npmrc", "secrets/deep/er/key.pem"]
    );
}

#[test]
fn depth_does_not_show_a_secret() {
    let (_place, roots) = world();
    let base = roots.path(RootName::Project).to_owned();
    let deep: PathBuf = std::iter::repeat_n("d", 70).collect();
    fs::create_dir_all(base.join(&deep)).unwrap();
    fs::write(base.join(&deep).join(".env"), "x").unwrap();
    assert!(names(&roots).contains(&format!("{}/.env", deep.display())));
    // Beyond what is looked into, the whole of it is hidden.
    let deeper: PathBuf = std::iter::repeat_n("e", MAX_DEPTH + 10).collect();
    fs::create_dir_all(base.join(&deeper)).unwrap();
    let limit: PathBuf = std::iter::repeat_n("e", MAX_DEPTH + 1).collect();
    assert!(names(&roots).contains(&limit.display().to_string()));
}

#[test]
fn more_entries_than_are_looked_at_are_said() {
    let (_place, roots) = world();
    assert!(!roots.hidden_within(5, SystemTime::now()).complete);
    assert!(roots.hidden_within(1_000, SystemTime::now()).complete);
    // Where it cannot be known, a file with several names is not shown either.
    let base = roots.path(RootName::Project).to_owned();
    fs::hard_link(base.join("c/plain"), base.join("c/twin")).unwrap();
    let twin = || {
        let target = roots.map("c/twin", deny::Access::Read).unwrap();
        let located = roots.locate(&target, deny::Access::Read).unwrap();
        located.read().map_err(|error| error.to_string())
    };
    assert!(twin().is_ok());
    assert!(!roots.hidden_within(5, SystemTime::now()).complete);
    assert!(twin().unwrap_err().contains("too large to tell"));
    // In a folder that holds files alone, too.
    let flat = tempfile::tempdir().unwrap();
    let project = flat.path().join("project");
    fs::create_dir(&project).unwrap();
    for name in ["a", "b", "c", ".env"] {
        fs::write(project.join(name), "x").unwrap();
    }
    let roots = Roots::open(&project, &flat.path().join("central"), None).unwrap();
    assert!(!roots.hidden_within(3, SystemTime::now()).complete);
    assert!(roots.hidden_within(4, SystemTime::now()).complete);
}

/// Some seconds; a project of today has several times as many files.
#[test]
fn a_large_project_is_looked_through() {
    let (_place, roots) = world();
    let base = roots.path(RootName::Project).to_owned();
    for folder in 0..60 {
        let folder = base.join(format!("many/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..1_000 {
            fs::File::create(folder.join(file.to_string())).unwrap();
        }
    }
    fs::write(base.join("many/59/.env"), "x").unwrap();
    fs::create_dir(base.join("zz")).unwrap();
    fs::write(base.join("zz/.env"), "x").unwrap();
    assert_eq!(
        names(&roots),
        [".ssh", "a/b/.env", "many/59/.env", "zz/.env"]
    );
}

#[test]
fn a_secret_stays_one_under_another_name() {
    let (_place, roots) = world();
    let base = roots.path(RootName::Project).to_owned();
    let file = |path: &str| {
        let path = base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    };
    for path in [
        ".docker/config.json",
        ".config/gcloud/token.db",
        ".config/gcloud/deep/more",
        ".kube/config",
        ".terraform.d/credentials.tfrc.json",
    ] {
        file(path);
    }
    names(&roots);
    fs::rename(base.join(".docker"), base.join("dk")).unwrap();
    fs::rename(base.join(".config"), base.join("conf")).unwrap();
    fs::rename(base.join(".kube"), base.join("k")).unwrap();
    fs::rename(base.join(".ssh"), base.join("plain")).unwrap();
    fs::hard_link(base.join("a/b/.env"), base.join("c/hard.txt")).unwrap();
    let odd = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff");
    fs::rename(base.join(".terraform.d"), base.join::<&OsStr>(odd)).unwrap();
    let hidden = roots.hidden();
    assert!(hidden.complete);
    for path in [
        "dk/config.json",
        "conf/gcloud",
        "k/config",
        "plain",
        "c/hard.txt",
        "a/b/.env",
    ] {
        assert!(hidden.paths.contains(&base.join(path)), "{path} {hidden:?}");
    }
    let below_odd = base.join::<&OsStr>(odd).join("credentials.tfrc.json");
    assert!(hidden.paths.contains(&below_odd));
    // A folder is named once, and what was never secret is not.
    assert!(!hidden.paths.contains(&base.join("plain/id_rsa")));
    assert!(!hidden.paths.contains(&base.join("c/plain")));
    // File tools know them as well, and what is in the folders.
    for path in [
        "dk/config.json",
        "conf/gcloud/token.db",
        "conf/gcloud/deep/more",
        "c/hard.txt",
    ] {
        let target = roots.map(path, deny::Access::Read).unwrap();
        let located = roots.locate(&target, deny::Access::Read).unwrap();
        let refused = located.open().unwrap_err();
        assert!(
            matches!(refused, crate::paths::PathError::Forbidden(_)),
            "{path}"
        );
    }
    // The number of a file that is gone says nothing of the next one that gets it.
    fs::remove_file(base.join("dk/config.json")).unwrap();
    for number in 0..200 {
        file(&format!("new/{number}"));
    }
    let hidden = roots.hidden().paths;
    assert!(
        !hidden.iter().any(|path| path.starts_with(base.join("new"))),
        "{hidden:?}"
    );
}

/// Each of these a command can open again by itself, and look at the secret in the same line.
#[cfg(target_os = "linux")]
#[test]
fn what_is_closed_to_the_daemon_is_hidden() {
    use crate::paths::tests::rights::{as_ordinary_user, mode};

    as_ordinary_user(|| {
        let (_place, roots) = world();
        let base = roots.path(RootName::Project).to_owned();
        fs::hard_link(base.join("a/b/.env"), base.join("c/twin")).unwrap();
        let open = names(&roots);
        assert_eq!(open, [".ssh", "a/b/.env", "c/twin"]);
        for (folder, rights, hidden) in [
            ("a/b", 0o000, [".ssh", "a/b", "c/twin"]),
            ("a", 0o300, [".ssh", "a", "c/twin"]),
            // What is in it can be read, but not looked at.
            ("a", 0o600, [".ssh", "a", "c/twin"]),
            ("c", 0o600, [".ssh", "a/b/.env", "c"]),
        ] {
            mode(&base.join(folder), rights);
            let found = names(&roots);
            mode(&base.join(folder), 0o700);
            assert_eq!(found, hidden, "{folder} {rights:o}");
        }
        // A root cannot be hidden: nothing may run.
        for root in [RootName::Project, RootName::Central] {
            let path = roots.path(root).to_owned();
            mode(&path, 0o300);
            let hidden = roots.hidden();
            mode(&path, 0o700);
            assert!(!hidden.complete, "{hidden:?}");
            assert!(roots.hidden().complete);
        }
    });
}

#[test]
fn what_vanishes_meanwhile_is_not_hidden() {
    let (_place, roots) = world();
    let root = &roots.project;
    let read = |name: &str, known: &mut Known| {
        let dir = root.dir.open_dir(name).unwrap();
        let folder = Folder::read(&dir, Path::new(name), stamp(&dir).unwrap(), false, 9).unwrap();
        let metadata = dir.symlink_metadata("plain").unwrap();
        known.add(Identity::of(&metadata));
        folder
    };
    let mut known = Known::default();
    let folder = read("c", &mut known);
    let mut names = || folder.other_names(&root.dir, Path::new("c"), &mut known);
    assert_eq!(names().unwrap(), ["plain"]);
    fs::remove_dir_all(root.path.join("c")).unwrap();
    assert!(names().unwrap().is_empty());
    std::os::unix::fs::symlink("a", root.path.join("link")).unwrap();
    let mut walk = Walk {
        root,
        reach: Reach::ReadWrite,
        now: SystemTime::now(),
        old: HashMap::new(),
        new: HashMap::new(),
        remaining: MAX_ENTRIES,
        hidden: Hidden::default(),
        folders: Vec::new(),
        links: Vec::new(),
        known: roots.secrets.lock(),
    };
    for name in ["c", "link"] {
        walk.enter(&root.dir, Path::new(name), OsStr::new(name), 1, false);
        assert_eq!(walk.hidden, Hidden::default(), "{name}");
    }
}

#[test]
fn a_repository_in_what_is_hidden_is_none_of_its_own() {
    let (_place, roots) = world();
    let base = roots.path(RootName::Project).to_owned();
    for folder in ["a/.git", ".ssh/.git", ".ssh/deep/.git"] {
        fs::create_dir_all(base.join(folder)).unwrap();
    }
    let repositories = roots.hidden().repositories;
    assert_eq!(repositories, [base.join(".git"), base.join("a/.git")]);
}

#[test]
fn a_long_path_does_not_show_a_secret() {
    let (_place, roots) = world();
    let base = roots.path(RootName::Project).to_owned();
    let name = "n".repeat(250);
    let long: PathBuf = std::iter::repeat_n(&name, 14).collect();
    fs::create_dir_all(base.join(&long)).unwrap();
    fs::write(base.join(&long).join(".env"), "x").unwrap();
    let limit: PathBuf = std::iter::repeat_n(&name, 12).collect();
    assert!(names(&roots).contains(&limit.display().to_string()));
}

#[test]
fn links_that_lead_on_and_on_are_said() {
    use std::os::unix::fs::symlink;
    for (folders, complete) in [(MAX_WALKS - 1, true), (MAX_WALKS, false)] {
        let (_place, roots) = world();
        let base = roots.path(RootName::Project).to_owned();
        symlink("../way/0", base.join("c/.ssh")).unwrap();
        for folder in 0..folders {
            let way = base.join(format!("way/{folder}"));
            fs::create_dir_all(&way).unwrap();
            symlink(format!("../{}", folder + 1), way.join("on")).unwrap();
        }
        let hidden = roots.hidden();
        assert_eq!(hidden.complete, complete, "{folders}");
        let last = base.join(format!("way/{}", folders - 1));
        assert_eq!(hidden.paths.contains(&last), complete, "{folders}");
    }
}

#[test]
fn what_is_not_remembered_is_read_again() {
    let (_place, roots) = world();
    let dir = &roots.project.dir;
    let stamp = stamp(dir).unwrap();
    let folder = Folder::read(dir, Path::new(""), stamp, false, 9).unwrap();
    let folder = Arc::new(folder);
    let later = SystemTime::now() + Duration::from_secs(3_600);
    let mut folders = HashMap::new();
    for number in 0..memory::MAX_FOLDERS + 2 {
        let path = PathBuf::from(number.to_string());
        memory::keep(&mut folders, later, &path, Arc::clone(&folder));
    }
    assert_eq!(folders.len(), memory::MAX_FOLDERS);
}

#[test]
fn what_a_link_with_a_secrets_name_leads_to_is_a_secret() {
    use std::os::unix::fs::symlink;
    let (place, roots) = world();
    let base = roots.path(RootName::Project).to_owned();
    let central = roots.path(RootName::Central).to_owned();
    fs::write(place.path().join("outside"), "x").unwrap();
    for path in [
        "conf/dev",
        "conf/prod",
        "conf/far",
        "conf/own",
        "aaa/keys/one",
        "aaa/docker/config.json",
        "aaa/docker/plain",
        "aaa/deep/gcloud/token",
        "aaa/more/key",
        "plain/file",
    ] {
        fs::create_dir_all(base.join(path).parent().unwrap()).unwrap();
        fs::write(base.join(path), "x").unwrap();
    }
    fs::write(central.join("notes"), "x").unwrap();
    for (target, link) in [
        // Upwards, and by a link to a link.
        (Path::new("../conf/dev"), "c/.env.local"),
        (Path::new("prod"), "conf/step"),
        (Path::new("conf/step"), ".env"),
        // By an absolute path inside, in the same root and in the other.
        (&base.join("conf/far"), "c/.npmrc"),
        (&central.join("notes"), "c/.netrc"),
        // Folders, found after they were passed; what is in them and is a link itself.
        (Path::new("../aaa/keys"), "c/.ssh"),
        (Path::new("../more"), "aaa/keys/further"),
        (Path::new("../aaa/docker"), "c/.docker"),
        (Path::new("../aaa/deep"), "c/.CONFIG"),
        // To itself, outside, to nothing, to the root.
        (Path::new("loop.pem"), "c/loop.pem"),
        (&place.path().join("outside"), "c/out.pem"),
        (Path::new("nothing"), "c/none.pem"),
        (Path::new(".."), "c/.aws"),
        (Path::new("../plain"), "c/harmless"),
        // A folder's name for a file makes nothing of it.
        (Path::new("../plain/file"), "c/.config"),
    ] {
        symlink(target, base.join(link)).unwrap();
    }
    let hidden = roots.hidden();
    assert!(hidden.complete);
    for path in [
        "conf/dev",
        "conf/prod",
        "conf/far",
        "aaa/keys",
        "aaa/more",
        "aaa/docker/config.json",
        "aaa/deep/gcloud",
    ] {
        assert!(hidden.paths.contains(&base.join(path)), "{path} {hidden:?}");
    }
    assert!(hidden.paths.contains(&central.join("notes")));
    for path in [
        "conf/own",
        "aaa/docker/plain",
        "aaa/docker",
        "aaa/deep",
        "plain",
        "plain/file",
    ] {
        assert!(
            !hidden.paths.contains(&base.join(path)),
            "{path} {hidden:?}"
        );
    }
    // The link's own folder is remembered by now; what it leads to is another file.
    names(&roots);
    fs::rename(base.join("conf/own"), base.join("conf/prod")).unwrap();
    assert!(names(&roots).contains(&"conf/prod".to_owned()));
    // And it stays a secret without the link.
    fs::remove_file(base.join(".env")).unwrap();
    assert!(names(&roots).contains(&"conf/prod".to_owned()));
    let target = roots.map("conf/prod", deny::Access::Read).unwrap();
    let located = roots.locate(&target, deny::Access::Read).unwrap();
    assert!(located.open().is_err());
}
