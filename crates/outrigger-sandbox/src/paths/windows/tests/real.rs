//! The same rules with files of a Windows, or of wine.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use tempfile::TempDir;

use super::super::super::*;

struct World {
    dir: TempDir,
    roots: Roots,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["proj/Sub", "outside", "home"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("outside/secret"), "OUTSIDE").unwrap();
        fs::write(dir.path().join("proj/Sub/File.txt"), "inside").unwrap();
        fs::write(dir.path().join("proj/.env"), "KEY=1").unwrap();
        let at = |name: &str| dir.path().join(name);
        let home = at("home");
        let roots = Roots::open(&at("proj"), &at("home/central"), Some(&home)).unwrap();
        Self { dir, roots }
    }

    fn at(&self, path: &str) -> String {
        self.dir.path().join(path).display().to_string()
    }

    fn read(&self, path: &str) -> Result<String, PathError> {
        let target = self.roots.map(path, Access::Read)?;
        let located = self.roots.locate(&target, Access::Read)?;
        Ok(String::from_utf8(located.read()?).unwrap())
    }

    fn write(&self, path: &str, content: &str) -> Result<(), PathError> {
        let target = self.roots.map(path, Access::Write)?;
        let located = self.roots.locate(&target, Access::Write)?;
        located.replace(content.as_bytes())
    }
}

#[test]
fn a_file_is_read_by_each_allowed_way_to_write_its_path() {
    let world = World::new();
    let absolute = world.at(r"proj\Sub\File.txt");
    for path in [
        "Sub/File.txt",
        r"Sub\File.txt",
        r".\sub\FILE.TXT",
        r"sub\..\SUB\file.txt",
        &absolute,
        &absolute.replace('\\', "/"),
        &absolute.to_lowercase(),
        &absolute.to_uppercase(),
    ] {
        assert_eq!(world.read(path).as_deref(), Ok("inside"), "{path}");
    }
}

#[test]
fn other_ways_lead_nowhere() {
    let world = World::new();
    let outside = world.at(r"outside\secret");
    for path in [
        r"..\outside\secret",
        r"Sub\..\..\outside\secret",
        &outside,
        &format!(r"\\?\{outside}"),
        &format!(r"\\?\{}", world.at(r"proj\Sub\File.txt")),
        &format!(r"\\.\{outside}"),
        r"\\localhost\c$\x",
        "C:secret",
        ".ENV",
        ".env.",
        ".env::$DATA",
        "ENV~1",
        "NUL",
        r"Sub\con.txt",
        "Sub/File.txt:x",
        "Sub/File.txt::$DATA",
        "Sub/File.txt.",
        "Sub./File.txt",
    ] {
        let read = world.read(path);
        assert!(
            matches!(read, Err(PathError::Forbidden(_))),
            "{path} {read:?}"
        );
        let written = world.write(path, "x");
        assert!(
            matches!(written, Err(PathError::Forbidden(_))),
            "{path} {written:?}"
        );
    }
    assert_eq!(fs::read_to_string(outside).unwrap(), "OUTSIDE");
}

/// Makes a link by `mklink` with these options: `/J` is a junction, `/D` a symbolic link to a folder, none one to a file.
/// Where the system makes none this says so, past what keeps the output of a test that passes.
fn is_linked(world: &World, options: &[&str], link: &str, target: &str) -> bool {
    let link = world.at(link);
    let made = Command::new("cmd")
        .args(["/d", "/c", "mklink"])
        .args(options)
        .args([&link, target])
        .output()
        .unwrap();
    // Wine says that it made a link, and makes nothing or one that is none.
    let is_link = fs::symlink_metadata(&link).is_ok_and(|it| it.is_symlink());
    if !is_link {
        let said = String::from_utf8_lossy(&made.stderr);
        writeln!(
            std::io::stderr(),
            "*** SKIPPED: mklink {options:?} makes no link here: {} ***",
            said.trim()
        )
        .unwrap();
    }
    is_link
}

#[test]
fn a_link_out_of_the_project_leads_nowhere() {
    let world = World::new();
    let (folder, file) = (world.at("outside"), world.at(r"outside\secret"));
    for (options, link, target, through) in [
        (&["/J"][..], r"proj\junction", &*folder, r"junction\secret"),
        (&["/D"], r"proj\folder", &folder, r"folder\secret"),
        // As a junction cannot be written: by the way up.
        (&["/D"], r"proj\up", r"..\outside", r"up\secret"),
        (&[], r"proj\Sub\file", &file, r"Sub\file"),
    ] {
        if !is_linked(&world, options, link, target) {
            continue;
        }
        let read = world.read(through);
        assert!(
            matches!(read, Err(PathError::Forbidden(_))),
            "{through} {read:?}"
        );
        for path in [through.to_owned(), through.replace("secret", "new")] {
            let written = world.write(&path, "x");
            assert!(
                matches!(written, Err(PathError::Forbidden(_))),
                "{path} {written:?}"
            );
        }
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "OUTSIDE");
    assert!(!fs::exists(world.at(r"outside\new")).unwrap());
}

#[test]
fn a_link_within_the_project_is_the_path_that_it_leads_to() {
    let world = World::new();
    let (project, folder) = (world.at("proj"), world.at(r"proj\Sub"));
    fs::create_dir(world.at(r"proj\.ssh")).unwrap();
    fs::write(world.at(r"proj\.ssh\id"), "KEY").unwrap();
    let hidden = world.at(r"proj\.ssh");
    for (options, link, target, path, allowed) in [
        (
            &["/J"][..],
            r"proj\junction",
            &*folder,
            r"junction\File.txt",
            true,
        ),
        (&["/D"], r"proj\folder", "SUB", r"folder\file.TXT", true),
        // The deny list knows no file by the name of a link.
        (&["/J"], r"proj\again", &project, r"again\.ENV", false),
        (&["/J"], r"proj\plain", &hidden, r"plain\id", false),
        (
            &[],
            r"proj\Sub\settings",
            r"..\.env",
            r"Sub\settings",
            false,
        ),
    ] {
        if !is_linked(&world, options, link, target) {
            continue;
        }
        let (read, written) = (world.read(path), world.write(path, "inside"));
        if allowed {
            assert_eq!(read.as_deref(), Ok("inside"), "{path}");
            assert_eq!(written, Ok(()), "{path}");
            continue;
        }
        assert!(
            matches!(read, Err(PathError::Forbidden(_))),
            "{path} {read:?}"
        );
        assert!(
            matches!(written, Err(PathError::Forbidden(_))),
            "{path} {written:?}"
        );
    }
    assert_eq!(fs::read_to_string(world.at(r"proj\.env")).unwrap(), "KEY=1");
}

#[test]
fn links_that_lead_to_each_other_come_to_an_end() {
    let world = World::new();
    let (one, two) = (world.at(r"proj\one"), world.at(r"proj\two"));
    if is_linked(&world, &["/J"], r"proj\one", &two)
        && is_linked(&world, &["/J"], r"proj\two", &one)
    {
        let read = world.read(r"one\x");
        assert!(matches!(read, Err(PathError::Failed(_))), "{read:?}");
    }
}

#[test]
fn a_file_is_replaced_as_a_whole_and_made_only_where_nothing_is() {
    let world = World::new();
    world.write("sub/file.TXT", "replaced").unwrap();
    assert_eq!(world.read("Sub/File.txt").as_deref(), Ok("replaced"));
    world.write(r"new\deep\file", "made").unwrap();
    assert_eq!(world.read("new/deep/file").as_deref(), Ok("made"));
    // What came there after it was looked at is not replaced.
    let target = world.roots.map("late", Access::Write).unwrap();
    let located = world.roots.locate(&target, Access::Write).unwrap();
    fs::write(world.at(r"proj\late"), "another's").unwrap();
    let replaced = located.replace(b"x");
    assert!(replaced.is_err());
    assert_eq!(world.read("late").as_deref(), Ok("another's"));
    let left: Vec<_> = fs::read_dir(world.at("proj")).unwrap().flatten().collect();
    assert!(
        left.iter().all(|entry| !is_left(&entry.file_name())),
        "{left:?}"
    );
}

fn is_left(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with(".outrigger-")
}

#[test]
fn a_file_that_is_marked_as_read_only_is_not_replaced() {
    let world = World::new();
    let file = world.at(r"proj\Sub\File.txt");
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&file, permissions.clone()).unwrap();
    assert!(world.write("Sub/File.txt", "x").is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "inside");
}

#[test]
fn what_a_crash_left_is_swept_and_what_is_in_use_is_not() {
    let world = World::new();
    let left = world.at(r"proj\Sub\.outrigger-0123456789abcdef.tmp");
    fs::write(&left, "left").unwrap();
    let used = world.at(r"proj\.outrigger-fedcba9876543210.tmp");
    fs::write(&used, "used").unwrap();
    let held = fs::File::options().write(true).open(&used).unwrap();
    held.try_lock().unwrap();
    assert_eq!(world.roots.sweep(), 1);
    assert!(!fs::exists(&left).unwrap() && fs::exists(&used).unwrap());
}

#[test]
fn a_folder_of_another_form_is_no_root() {
    let world = World::new();
    for folder in [r"C:\", r"C:\Windows", r"C:\Users"] {
        let opened = Roots::open(folder.as_ref(), world.at("c").as_ref(), None);
        assert!(opened.is_err(), "{folder}");
    }
    let project = world.roots.path(RootName::Project).display().to_string();
    assert!(!project.starts_with(r"\\"), "{project}");
}
