//! What an ordinary user may not do, and whose a file is. Rights mean nothing to root, so a thread of it becomes
//! somebody else: the kernel knows users by thread.

use std::os::unix::fs::chown;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::*;

/// The daemon's user, with a group of its own and one more.
const USER: u32 = 54_321;
const GROUP: u32 = 54_322;

/// Another user, with another group.
const OTHER: u32 = 54_323;

/// Does some work as an ordinary user; this one, where it is not root.
pub(in crate::paths) fn as_ordinary_user<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if geteuid().is_root() {
                let (user, group) = (Uid::from_raw(USER), Gid::from_raw(USER));
                set_thread_groups(&[Gid::from_raw(GROUP)]).unwrap();
                set_thread_res_gid(group, group, group).unwrap();
                set_thread_res_uid(user, user, user).unwrap();
            }
            work()
        });
        thread.join().unwrap()
    })
}

pub(in crate::paths) fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_is_closed_is_said_to_be() {
    as_ordinary_user(|| {
        let world = World::new();
        let closed = |place: &str, rights: u32, attempt: &dyn Fn() -> Result<String, PathError>| {
            mode(&world.at(place), rights);
            let text = attempt().unwrap_err().to_string();
            mode(&world.at(place), 0o700);
            assert!(text.contains("no permission"), "{place} {rights:o}: {text}");
        };
        closed("proj/sub", 0o600, &|| world.read("sub/file"));
        closed("proj/sub/deep", 0o000, &|| world.read("sub/deep/file"));
        closed("proj/file", 0o000, &|| world.read("file"));
        closed("proj/file", 0o400, &|| world.write("file", "x"));
        closed("proj/sub", 0o500, &|| world.write("sub/file", "x"));
        closed("proj/sub", 0o500, &|| world.write("sub/new", "x"));
        closed("proj/sub", 0o500, &|| world.write("sub/made/new", "x"));
        assert_eq!(world.read("sub/file").unwrap(), "in sub");
    });
}

#[test]
fn a_setting_that_is_closed_is_a_change() {
    as_ordinary_user(|| {
        let world = World::new();
        let folder = world.at("proj/.vscode");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("tasks.json"), "x").unwrap();
        let before = world.roots.settings();
        mode(&folder, 0o000);
        let changed = world.roots.settings().changed_since(&before);
        mode(&folder, 0o700);
        assert_eq!(changed, [".vscode"]);
        assert!(world.roots.settings().changed_since(&before).is_empty());
    });
}

/// A file of another user's in the project, which everybody may write to.
fn foreign(world: &World, name: &str, (user, group): (u32, u32)) -> PathBuf {
    let file = world.at("proj").join(name);
    fs::write(&file, "theirs").unwrap();
    mode(&file, 0o666);
    chown(&file, Some(user), Some(group)).unwrap();
    file
}

#[test]
fn a_replaced_file_keeps_its_owner_or_its_group_where_it_can() {
    if !geteuid().is_root() {
        println!("*** SKIPPED: no other user's files ***");
        return;
    }
    let world = as_ordinary_user(World::new);
    let write = |name: &str| world.write(name, "ours").map(drop);
    let owner = |file: &Path| {
        let metadata = fs::metadata(file).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o7777, 0o666);
        (metadata.uid(), metadata.gid())
    };
    for (name, theirs, kept) in [
        ("alien", (OTHER, OTHER), (USER, USER)),
        ("shared", (OTHER, GROUP), (USER, GROUP)),
    ] {
        let file = foreign(&world, name, theirs);
        as_ordinary_user(|| write(name)).unwrap();
        assert_eq!(owner(&file), kept, "{name}");
    }
    let file = foreign(&world, "given", (OTHER, OTHER));
    write("given").unwrap();
    assert_eq!(owner(&file), (OTHER, OTHER));
    // What the old group might is not for a group that was among the others, nor the other way round.
    for (name, theirs, before, after) in [
        ("more", (OTHER, OTHER), 0o676, 0o666),
        ("less", (OTHER, OTHER), 0o607, 0o600),
        ("kept", (OTHER, GROUP), 0o676, 0o676),
    ] {
        let file = foreign(&world, name, theirs);
        mode(&file, before);
        as_ordinary_user(|| write(name)).unwrap();
        let metadata = fs::metadata(&file).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o7777, after, "{name}");
    }
}

const ACCESS_LIST: &str = "system.posix_acl_access";

/// A list by which one more user may read, as in `linux/posix_acl_xattr.h`: the version, then kind, rights and id of
/// each entry.
fn access_list() -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] = [
        (0x01, 6, u32::MAX),
        (0x02, 4, OTHER),
        (0x04, 4, u32::MAX),
        (0x10, 4, u32::MAX),
        (0x20, 0, u32::MAX),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (kind, rights, id) in entries {
        list.extend(kind.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

#[test]
fn a_replaced_file_lets_nobody_in_by_its_folders_list() {
    let world = World::new();
    let (folder, name) = (world.at("proj"), "system.posix_acl_default");
    mode(&world.at("proj/file"), 0o640);
    let flags = rustix::fs::XattrFlags::empty();
    if let Err(error) = rustix::fs::setxattr(&folder, name, &access_list(), flags) {
        println!("*** SKIPPED: {error} ***");
        return;
    }
    let list_of = |file: &str| {
        let mut list = vec![0; 128];
        rustix::fs::getxattr(folder.join(file), ACCESS_LIST, list.as_mut_slice())
    };
    world.write("new", "new").unwrap();
    assert!(list_of("new").is_ok(), "a new file has its folder's list");
    world.write("file", "new").unwrap();
    assert_eq!(list_of("file"), Err(rustix::io::Errno::NODATA));
    let metadata = fs::metadata(folder.join("file")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o640);
}

#[test]
fn an_access_list_is_kept() {
    let world = World::new();
    let (path, name, list) = (world.at("proj/file"), ACCESS_LIST, access_list());
    if let Err(error) = rustix::fs::setxattr(&path, name, &list, rustix::fs::XattrFlags::empty()) {
        println!("*** SKIPPED: {error} ***");
        return;
    }
    world.write("file", "new").unwrap();
    let mut kept = vec![0; 128];
    let length = rustix::fs::getxattr(&path, name, kept.as_mut_slice()).unwrap();
    assert_eq!(kept[..length], list);
}

#[test]
fn one_of_several_names_is_read_where_the_file_is_the_users_or_the_roots_owners() {
    if !geteuid().is_root() {
        println!("*** SKIPPED: no other user's files ***");
        return;
    }
    let world = as_ordinary_user(World::new);
    for (name, owner, read) in [("own", USER, true), ("alien", OTHER, false)] {
        let file = foreign(&world, name, (owner, owner));
        fs::hard_link(file, world.at("proj/twin")).unwrap();
        for result in [world.read("twin"), as_ordinary_user(|| world.read("twin"))] {
            match result {
                Ok(_) => assert!(read, "{name}"),
                Err(error) => {
                    assert!(!read, "{name}");
                    let text = error.to_string();
                    assert!(text.contains("belongs to another user"), "{text}");
                }
            }
        }
        fs::remove_file(world.at("proj/twin")).unwrap();
    }
}
