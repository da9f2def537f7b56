use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use super::super::file::testing::{World, text};
use super::super::file_edit::file_edit;
use super::super::file_write::file_write;
use super::*;
use std::sync::Arc;

/// Writes `a.txt` by a call.
async fn write(world: &World, content: &str) {
    let tool = file_write(Arc::clone(&world.roots));
    let output = world
        .call(&tool, json!({"path": "a.txt", "content": content}))
        .await;
    assert!(!output.is_error, "{}", text(&output));
}

/// Returns what undoes the last change.
fn undone(world: &World) -> PutBack {
    let undo = world.kept.changes.lock().last().cloned().unwrap();
    PutBack {
        root: undo.root,
        path: undo.path,
        left: vec![undo.after],
        content: match undo.before {
            Before::Missing => None,
            Before::Content { bytes, mode } => Some(Content { bytes, mode }),
            Before::TooLarge => panic!("too large"),
        },
    }
}

/// Undoes the last change; returns why not.
fn undo(world: &World) -> Option<NotReverted> {
    let left = put_back(&world.roots, &undone(world), &*world.kept);
    left.err().map(|(reason, _)| reason)
}

#[tokio::test]
async fn a_file_is_put_back_and_that_undone_again() {
    let world = World::with(&[("a.txt", "old\n")]);
    fs::set_permissions(world.at("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    write(&world, "new\n").await;
    for expected in ["old\n", "new\n", "old\n"] {
        assert_eq!(undo(&world), None);
        assert_eq!(world.content("a.txt"), expected.as_bytes());
        let mode = fs::metadata(world.at("a.txt"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
    }
    let changes = world.kept.changes.lock();
    assert_eq!(
        changes[0].diff,
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"
    );
    assert_eq!(
        changes[1].diff,
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-new\n+old\n"
    );
}

#[tokio::test]
async fn a_file_that_was_made_is_removed_and_made_again_with_its_rights() {
    let world = World::with(&[]);
    write(&world, "#!/bin/sh\n").await;
    fs::set_permissions(world.at("a.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(undo(&world), None);
    assert!(!world.at("a.txt").exists());
    assert_eq!(undo(&world), None);
    assert_eq!(world.content("a.txt"), b"#!/bin/sh\n");
    let mode = fs::metadata(world.at("a.txt"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750);
}

#[tokio::test]
async fn what_somebody_else_did_is_left() {
    type Deed = fn(&World);
    let deeds: [(Deed, NotReverted); 9] = [
        (|it| it.put("a.txt", "mine\n"), NotReverted::Changed),
        (|it| it.put("a.txt", "old\n"), NotReverted::Unchanged),
        (
            |it| fs::remove_file(it.at("a.txt")).unwrap(),
            NotReverted::Gone,
        ),
        (
            |it| {
                fs::rename(it.at("a.txt"), it.at("b.txt")).unwrap();
                symlink("b.txt", it.at("a.txt")).unwrap();
            },
            NotReverted::Changed,
        ),
        (
            |it| {
                fs::remove_file(it.at("a.txt")).unwrap();
                symlink("/etc/hostname", it.at("a.txt")).unwrap();
            },
            NotReverted::Changed,
        ),
        (
            |it| {
                fs::remove_file(it.at("a.txt")).unwrap();
                symlink("nowhere", it.at("a.txt")).unwrap();
            },
            NotReverted::Changed,
        ),
        (
            |it| {
                fs::remove_file(it.at("a.txt")).unwrap();
                fs::create_dir(it.at("a.txt")).unwrap();
            },
            NotReverted::Failed,
        ),
        (
            |it| {
                let moved = it.dir.path().join("moved");
                fs::rename(it.at(""), &moved).unwrap();
                fs::create_dir(it.at("")).unwrap();
                fs::remove_file(moved.join("a.txt")).unwrap();
            },
            NotReverted::Gone,
        ),
        (
            // Somebody is faster, while what the revert takes to be undone is written down.
            |it| {
                let path = it.at("a.txt");
                let then = move || fs::write(&path, "mine\n").unwrap();
                *it.kept.then.lock() = Some(Box::new(then));
            },
            NotReverted::Failed,
        ),
    ];
    for (number, (deed, expected)) in deeds.into_iter().enumerate() {
        let world = World::with(&[("a.txt", "old\n")]);
        write(&world, "new\n").await;
        deed(&world);
        assert_eq!(undo(&world), Some(expected), "{number}");
        // What was not put back is not to be undone.
        assert_eq!(world.kept.changes.lock().len(), 1, "{number}");
        let now = fs::read_to_string(world.at("a.txt")).unwrap_or_default();
        assert!(number == 1 || !now.contains("old"), "{number}: {now}");
    }
}

#[tokio::test]
async fn a_folder_that_the_session_does_not_work_in_is_left() {
    let (world, other) = (
        World::with(&[("a.txt", "old\n")]),
        World::with(&[("a.txt", "new\n")]),
    );
    write(&world, "new\n").await;
    let (reason, text) = put_back(&other.roots, &undone(&world), &()).unwrap_err();
    assert_eq!(reason, NotReverted::Elsewhere);
    assert!(text.contains(world.roots.path(RootName::Project).to_str().unwrap()));
    assert_eq!(other.content("a.txt"), b"new\n");
}

#[tokio::test]
async fn what_is_no_text_comes_back_without_a_diff() {
    let world = World::with(&[]);
    world.put("a.txt", [0, 159, 146, 150]);
    write(&world, "text\n").await;
    assert_eq!(undo(&world), None);
    assert_eq!(world.content("a.txt"), [0, 159, 146, 150]);
    assert_eq!(world.kept.changes.lock().last().unwrap().diff, "");
}

#[tokio::test]
async fn a_call_writes_nothing_where_somebody_is_faster_or_nothing_changes() {
    let world = World::with(&[("a.txt", "old\n")]);
    write(&world, "old\n").await;
    assert!(world.kept.changes.lock().is_empty());
    let path = world.at("a.txt");
    let then = move || fs::write(&path, "mine\n").unwrap();
    *world.kept.then.lock() = Some(Box::new(then));
    let tool = file_edit(Arc::clone(&world.roots));
    let input = json!({"path": "a.txt", "oldText": "old", "newText": "new"});
    let output = world.call(&tool, input).await;
    assert!(
        output.is_error && text(&output).contains("at this moment"),
        "{}",
        text(&output)
    );
    assert_eq!(world.content("a.txt"), b"mine\n");
    assert!(world.kept.changes.lock().is_empty());
}
