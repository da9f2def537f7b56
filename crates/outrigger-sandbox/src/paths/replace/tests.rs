//! Files with and without a name, and what of the old file is kept.

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn what_is_being_written_has_no_name_until_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let dir = Dir::open_ambient_dir(path, cap_std::ambient_authority()).unwrap();
    let mut first = Temporary::unnamed(&dir, false).unwrap();
    first.file.write_all(b"first").unwrap();
    assert_eq!(names(path), [""; 0]);
    first.rename(Path::new("file"), false).unwrap();
    drop(first);
    assert_eq!(names(path), ["file"]);
    let mut taken = Temporary::unnamed(&dir, false).unwrap();
    let error = taken.rename(Path::new("file"), false).unwrap_err();
    assert!(is_final(&error), "{error}");
    let mut second = Temporary::unnamed(&dir, true).unwrap();
    second.file.write_all(b"second").unwrap();
    second.rename(Path::new("file"), true).unwrap();
    drop((taken, second));
    assert_eq!(names(path), ["file"]);
    assert_eq!(
        std::fs::read_to_string(path.join("file")).unwrap(),
        "second"
    );
}

#[test]
fn a_file_with_a_name_leaves_none_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let dir = Dir::open_ambient_dir(path, cap_std::ambient_authority()).unwrap();
    let dropped = Temporary::named(&dir, true).unwrap();
    let found = names(path);
    assert!(found.iter().all(|name| is_temporary(OsStr::new(name))));
    assert_eq!(found.len(), 1);
    drop(dropped);
    let mut new = Temporary::named(&dir, false).unwrap();
    new.rename(Path::new("file"), false).unwrap();
    drop(new);
    assert_eq!(names(path), ["file"]);
    let mut other = Temporary::named(&dir, true).unwrap();
    other.file.write_all(b"other").unwrap();
    other.rename(Path::new("file"), true).unwrap();
    drop(other);
    assert_eq!(names(path), ["file"]);
    assert_eq!(std::fs::read(path.join("file")).unwrap(), b"other");
    // Somebody removed it: there is nothing to rename, and nothing else is removed.
    let mut removed = Temporary::named(&dir, true).unwrap();
    dir.remove_file(removed.name.as_deref().unwrap()).unwrap();
    assert!(removed.rename(Path::new("file"), true).is_err());
    drop(removed);
    assert_eq!(std::fs::read(path.join("file")).unwrap(), b"other");
}

#[test]
fn another_name_is_drawn_where_one_is_taken_and_only_then() {
    let drawn = |kind: io::ErrorKind, failures: usize| {
        let mut names = Vec::new();
        let made = draw_name(|name| {
            names.push(name.to_owned());
            match names.len() > failures {
                true => Ok(()),
                false => Err(kind.into()),
            }
        });
        names.dedup();
        (made.map_err(|error| error.kind()).err(), names.len())
    };
    use io::ErrorKind::{AlreadyExists, PermissionDenied};
    assert_eq!(drawn(AlreadyExists, 0), (None, 1));
    assert_eq!(drawn(AlreadyExists, 2), (None, 3));
    assert_eq!(drawn(AlreadyExists, 9), (Some(AlreadyExists), MAX_DRAWS));
    assert_eq!(drawn(PermissionDenied, 1), (Some(PermissionDenied), 1));
}

#[test]
fn attributes_that_cannot_be_kept_never_widen_the_mode() {
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::{CWD, Mode, OFlags, XattrFlags, fsetxattr, mkfifoat};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let old = std::fs::File::create(at("old")).unwrap();
    old.set_permissions(std::fs::Permissions::from_mode(0o640))
        .unwrap();
    fsetxattr(&old, "user.outrigger.test", b"x", XattrFlags::empty()).unwrap();
    // The kernel keeps the user's attributes for files and folders.
    mkfifoat(CWD, at("pipe"), Mode::RUSR).unwrap();
    let pipe = std::fs::File::options()
        .read(true)
        .write(true)
        .open(at("pipe"));
    // It lists none of a file that is open as a place only; nor says it whether that has an access list.
    // With musl, the standard library's flags cannot say so.
    let place = rustix::fs::open(at("old"), OFlags::PATH, Mode::empty());
    let place = place.map(std::fs::File::from);
    let new = std::fs::File::create(at("new")).unwrap();
    let mode = |name: &str| std::fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
    for (from, to, name, kept) in [
        (old, pipe.unwrap(), "pipe", 0o640),
        (place.unwrap(), new, "new", 0o600),
    ] {
        keep_attributes(&File::from_std(from), &File::from_std(to)).unwrap();
        assert_eq!(mode(name), kept, "{name}");
    }
}
