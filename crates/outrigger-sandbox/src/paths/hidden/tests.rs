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
}

/// About ten seconds: as many files as a project of today has.
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

#[test]
fn what_is_closed_to_the_daemon_is_hidden() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        return;
    }
    let (_place, roots) = world();
    let base = roots.path(RootName::Project).to_owned();
    let closed = base.join("a/b");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(names(&roots), [".ssh", "a/b"]);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
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
