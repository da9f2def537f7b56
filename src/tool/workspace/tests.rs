use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::config::{AllowedFolders, Instructions};
use crate::sandbox;

/// A home with folders of projects in it.
struct Home {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Home {
    fn new(folders: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        for folder in folders {
            fs::create_dir_all(path.join(folder)).unwrap();
        }
        Self {
            _folder: folder,
            path,
        }
    }

    fn shown(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// Returns the workspaces of a daemon in `own`, where sessions may name what these globs match.
    fn workspaces(&self, own: Option<&str>, allowed: &[&str]) -> Workspaces {
        let mut globs = AllowedFolders::default();
        for glob in allowed {
            globs.add(glob, Some(&self.path)).unwrap();
        }
        let own = own.map(|own| Project {
            root: self.path.join(own),
            name: own.to_owned(),
            central: self.path.join("outrigger/projects/own"),
        });
        let own = own.ok_or_else(|| "nobody named one".to_owned());
        let roots = own
            .as_ref()
            .map(|own| Arc::new(Roots::open(&own.root, &own.central, Some(&self.path)).unwrap()))
            .map_err(String::clone);
        let common = Common {
            tools: crate::config::for_tests().tools,
            projects: Projects {
                own,
                allowed: globs,
                storage: Some(self.path.join("outrigger/projects")),
                instructions: Instructions::default(),
            },
            sandbox: Sandbox::new(sandbox::Settings::new(None)),
            environment: BTreeMap::new(),
            secrets: Vec::new(),
            home: Some(self.path.clone()),
            own_files: vec![(
                self.path.join("src/audited/log/audit.jsonl"),
                "the audit log",
            )],
        };
        let settings = Current::new(crate::config::for_tests());
        Workspaces::new(common, roots, &settings, &Notices::default())
    }
}

fn refusal(workspaces: &Workspaces, named: &str) -> String {
    let opened = workspaces.open(&User::default(), named);
    let error = opened.err().unwrap_or_else(|| panic!("{named} was opened"));
    error.to_string()
}

#[tokio::test]
async fn a_folder_is_shared_by_those_who_name_it_and_dropped_with_the_last() {
    let home = Home::new(&["src/a", "work/a"]);
    let workspaces = home.workspaces(None, &["~/src/*", "~/work/*"]);
    let one = workspaces
        .open(&User::default(), &home.shown("src/a"))
        .unwrap();
    let again = workspaces
        .open(&User::default(), &home.shown("src/./a/"))
        .unwrap();
    assert!(Arc::ptr_eq(&one, &again));
    // Another folder of the same name has a storage of its own.
    let other = workspaces
        .open(&User::default(), &home.shown("work/a"))
        .unwrap();
    let central = |workspace: &Workspace| workspace.project().unwrap().central.clone();
    assert_ne!(central(&one), central(&other));
    assert!(central(&one).is_dir() && central(&other).is_dir());
    // What is in its place later is another project, and the one before goes on where it was.
    fs::rename(home.path.join("src/a"), home.path.join("src/b")).unwrap();
    fs::create_dir(home.path.join("src/a")).unwrap();
    let later = workspaces
        .open(&User::default(), &home.shown("src/a"))
        .unwrap();
    assert!(!Arc::ptr_eq(&one, &later));
    assert_eq!(workspaces.others.lock().len(), 3);
    drop((one, again, later));
    let new = workspaces
        .open(&User::default(), &home.shown("src/b"))
        .unwrap();
    assert_eq!(workspaces.others.lock().len(), 2);
    drop((other, new));
}

#[tokio::test]
async fn the_daemons_own_project_needs_no_permission() {
    let home = Home::new(&["own", "src/a"]);
    let workspaces = home.workspaces(Some("own"), &[]);
    let own = workspaces
        .open(&User::default(), &home.shown("own"))
        .unwrap();
    assert!(Arc::ptr_eq(&own, workspaces.own()));
    assert!(own.registry.names().contains(&"bash".to_owned()));
    let none = refusal(&workspaces, &home.shown("src/a"));
    assert!(none.contains("project.allowed"), "{none}");
    // Without one there are the tools that need none.
    let without = home.workspaces(None, &[]);
    assert_eq!(without.own().project(), Err("nobody named one"));
    assert_eq!(without.own().registry.names(), ["web_fetch", "web_search"]);
    assert!(refusal(&without, &home.shown("own")).contains("project.allowed"));
}

#[tokio::test]
async fn what_is_no_project_is_refused_with_the_reason() {
    let home = Home::new(&[
        "src/a/sub",
        "src/.hidden",
        "src/audited/log",
        "own",
        "outrigger/projects/x",
        "dots/.ssh",
    ]);
    fs::write(home.path.join("src/file"), "").unwrap();
    symlink("a", home.path.join("src/link")).unwrap();
    symlink("src", home.path.join("way")).unwrap();
    let globs = ["~/**", "~/dots/.ssh", "/etc/**"];
    let workspaces = home.workspaces(Some("own"), &globs);
    let no_link = "name the folder by its path without links";
    for (named, reason) in [
        ("src/file", "is no folder"),
        ("src/file/below", "Not a directory"),
        ("src/gone", "No such file"),
        ("src/link", no_link),
        ("way/a", no_link),
        ("src/.hidden", "not among the folders"),
        ("src/a/../a", "without .."),
        ("src/a\nb", "control characters"),
        ("", "not among the folders"),
        ("outrigger", "central storage"),
        ("outrigger/projects", "central storage"),
        ("outrigger/projects/x", "central storage"),
        ("outrigger/projects/own", "central storage"),
        ("src/audited", "audit log"),
        ("dots/.ssh", "credentials"),
    ] {
        let found = refusal(&workspaces, &home.shown(named));
        assert!(found.contains(reason), "{named:?}: {found}");
    }
    for (named, reason) in [
        ("src/a", "absolute path"),
        ("~/src/a", "absolute path"),
        ("", "absolute path"),
        ("/", "not among the folders"),
        ("/etc/ssl", "not among the folders"),
    ] {
        let found = refusal(&workspaces, named);
        assert!(found.contains(reason), "{named:?}: {found}");
    }
    assert!(workspaces.others.lock().is_empty());
    // A project in a project is one of its own.
    workspaces
        .open(&User::default(), &home.shown("src/a/sub"))
        .unwrap();
    workspaces
        .open(&User::default(), &home.shown("src/a"))
        .unwrap();
}

#[tokio::test]
async fn there_are_so_many_and_no_more() {
    let home = Home::new(&[]);
    let workspaces = home.workspaces(None, &["~/src/*"]);
    let name = |number: usize| {
        let name = format!("src/{number}");
        fs::create_dir_all(home.path.join(&name)).unwrap();
        home.shown(&name)
    };
    let mut open: Vec<_> = (0..MAX_WORKSPACES)
        .map(|number| workspaces.open(&User::default(), &name(number)).unwrap())
        .collect();
    let one_more = name(MAX_WORKSPACES);
    assert_eq!(
        workspaces.open(&User::default(), &one_more).err(),
        Some(NotOpened::TooMany)
    );
    workspaces
        .open(&User::default(), &name(0))
        .expect("one that is open");
    open.pop();
    workspaces
        .open(&User::default(), &one_more)
        .expect("there is room again");
}

#[tokio::test]
async fn one_user_does_not_take_all_there_are() {
    let home = Home::new(&[]);
    let workspaces = home.workspaces(None, &["~/src/*"]);
    let name = |number: usize| {
        let name = format!("src/{number}");
        fs::create_dir_all(home.path.join(&name)).unwrap();
        home.shown(&name)
    };
    let [anna, ben] = ["anna", "ben"].map(User::new);
    let mut open: Vec<_> = (0..MAX_OF_A_USER)
        .map(|number| workspaces.open(&anna, &name(number)).unwrap())
        .collect();
    let one_more = name(MAX_OF_A_USER);
    let refused = workspaces.open(&anna, &one_more).err();
    assert_eq!(refused, Some(NotOpened::TooManyOfUser));
    workspaces.open(&anna, &name(0)).expect("one that is open");
    drop(
        workspaces
            .open(&ben, &one_more)
            .expect("others have theirs"),
    );
    open.pop();
    workspaces
        .open(&anna, &one_more)
        .expect("there is room again");
}

#[test]
fn no_program_is_taken_from_where_a_session_may_work() {
    let home = Home::new(&["own/bin", "src/a/.venv/bin", "bin"]);
    let mut allowed = AllowedFolders::default();
    allowed.add("~/src/*", Some(&home.path)).unwrap();
    let projects = Projects {
        own: Ok(Project {
            root: home.path.join("own"),
            name: "own".to_owned(),
            central: home.path.join("central"),
        }),
        allowed,
        storage: None,
        instructions: Instructions::default(),
    };
    let path = ["own/bin", "bin", "src/a/.venv/bin", "src/later/bin"];
    let path = path.map(|name| home.shown(name)).join(":") + ":/usr/bin";
    let left = format!("{}:/usr/bin", home.shown("bin"));
    assert_eq!(outside(&path, &projects), left);
}
