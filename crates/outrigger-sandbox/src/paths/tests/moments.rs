//! What others do between a look at a path and the act, each at the one moment where it counts.

use std::os::unix::net::UnixListener;

use super::*;

/// Locates a path, lets others act, and goes on.
fn amid<T>(
    world: &World,
    (path, access): (&str, Access),
    others: impl FnOnce(),
    act: impl FnOnce(&Located<'_>) -> Result<T, PathError>,
) -> Result<T, PathError> {
    let target = world.roots.map(path, access).unwrap();
    let located = world.roots.locate(&target, access).unwrap();
    others();
    act(&located)
}

#[test]
fn what_takes_a_files_place_is_not_read() {
    type Other = fn(&Path);
    let others: [(&str, Other); 5] = [
        ("does not exist", |_| ()),
        ("is a named pipe", named_pipe),
        ("is a folder", |path| fs::create_dir(path).unwrap()),
        ("cannot be used", |path| {
            drop(UnixListener::bind(path).unwrap());
        }),
        ("was changed while", |path| {
            symlink("sub/file", path).unwrap();
        }),
    ];
    for (said, other) in others {
        let world = World::new();
        let path = world.at("proj/file");
        let swap = || {
            fs::remove_file(&path).unwrap();
            other(&path);
        };
        let read = amid(&world, ("file", Access::Read), swap, |it| it.read());
        let text = read.unwrap_err().to_string();
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn devices_are_named_and_not_opened() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

    let world = World::new();
    for (name, kind) in [
        ("null", FileType::CharacterDevice),
        ("disk", FileType::BlockDevice),
    ] {
        let device = world.at("proj").join(name);
        if let Err(error) = mknodat(CWD, &device, kind, Mode::RWXU, makedev(1, 3)) {
            println!("*** SKIPPED: {name}: {error} ***");
            continue;
        }
        for result in [world.read(name), world.write(name, "x")] {
            let text = result.unwrap_err().to_string();
            assert!(text.contains("a device"), "{text}");
        }
    }
}

#[test]
fn folders_that_others_make_meanwhile_are_used_and_links_are_not() {
    let world = World::new();
    let write = |path: &str, others: &dyn Fn()| {
        let replace = |located: &Located<'_>| located.replace(b"new");
        amid(&world, (path, Access::Write), others, replace)
    };
    write("made/below/file", &|| {
        fs::create_dir(world.at("proj/made")).unwrap();
    })
    .unwrap();
    assert_eq!(world.read("made/below/file").unwrap(), "new");
    let led = || world.link(world.at("outside"), "proj/away");
    assert!(write("away/file", &led).is_err());
    assert_eq!(fs::read_dir(world.at("outside")).unwrap().count(), 1);
    let gone = || fs::remove_dir(world.at("proj/sub/deep")).unwrap();
    let missing = write("sub/deep/more/file", &gone);
    assert!(matches!(missing, Err(PathError::Missing(_))), "{missing:?}");
    // A link to itself: what is asked first follows it.
    let looped = || {
        fs::remove_file(world.at("proj/file")).unwrap();
        world.link("file", "proj/file");
    };
    let error = write("file", &looped).unwrap_err().to_string();
    assert!(error.contains("changed while it was opened"), "{error}");
}

#[test]
fn a_walk_ends_where_a_folder_is_gone_or_too_deep() {
    let world = World::new();
    fs::create_dir_all(world.at("proj").join("d/".repeat(70))).unwrap();
    let visit = |path: &str, each: &mut dyn FnMut(&Entry<'_>)| {
        let step = |located: &Located<'_>| {
            located.visit(&mut |entry| {
                each(entry);
                Step::Enter
            })
        };
        amid(&world, (path, Access::Read), || (), step).unwrap()
    };
    let mut deepest = 0;
    let ended = visit("d", &mut |entry| deepest = entry.relative.len());
    assert_eq!(
        (ended, deepest),
        (Visited::Bounded, "d/".repeat(65).len() - 1)
    );
    let mut seen = Vec::new();
    let ended = visit("sub", &mut |entry| {
        seen.push(entry.relative.to_owned());
        if entry.kind == EntryKind::Folder {
            fs::remove_dir_all(world.at("proj").join(entry.relative)).unwrap();
        }
    });
    assert_eq!(
        (ended, seen),
        (
            Visited::All,
            vec!["sub/deep".to_owned(), "sub/file".to_owned()]
        )
    );
}

#[test]
fn sweeping_removes_files_alone() {
    let world = World::new();
    let folder = world.at("proj/.outrigger-0123456789abcdef.tmp");
    fs::create_dir(&folder).unwrap();
    let link = "proj/.outrigger-1123456789abcdef.tmp";
    world.link("file", link);
    assert_eq!(world.roots.sweep(), 0);
    assert!(folder.is_dir() && world.at(link).is_symlink());
}
