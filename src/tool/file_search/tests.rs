use serde_json::{Value, json};

use super::super::Output;
use super::super::file::testing::{World, text};
use super::*;

const CAP: usize = 10_000;

fn project() -> World {
    let world = World::with(&[
        (".gitignore", "target/\n"),
        (".env", "needle=1"),
        (
            "a.txt",
            "one\nneedle two\nthree\nfour\nfive\nsix\nneedle seven\n",
        ),
        ("b.rs", "fn needle() {}\r\nlet x = 1;\r\n"),
        ("src/c.rs", "// Needle\n"),
        ("target/d.rs", "needle"),
    ]);
    world.put("bin", b"needle\nneedle\n\0needle");
    world.put("utf16", b"\xFF\xFEn\0e\0e\0d\0l\0e\0");
    world
}

async fn search(world: &World, input: Value) -> Output {
    let tool = file_search(Arc::clone(&world.roots), CAP);
    world.call(&tool, input).await
}

#[tokio::test]
async fn lines_are_found_with_their_place() {
    let world = project();
    let all = "a.txt:2:needle two\na.txt:7:needle seven\nb.rs:1:fn needle() {}\nutf16:1:needle";
    for (input, expected, is_error) in [
        (json!({"pattern": "needle"}), all, false),
        (
            json!({"pattern": "needle", "glob": "*.rs"}),
            "b.rs:1:fn needle() {}",
            false,
        ),
        (
            json!({"pattern": "(?i)needle", "path": "src"}),
            "src/c.rs:1:// Needle",
            false,
        ),
        (
            json!({"pattern": "needle", "path": "b.rs"}),
            "b.rs:1:fn needle() {}",
            false,
        ),
        (
            json!({"pattern": "needle", "path": "target"}),
            "target/d.rs:1:needle",
            false,
        ),
        (
            json!({"pattern": "\\{\\}$"}),
            "b.rs:1:fn needle() {}",
            false,
        ),
        (json!({"pattern": "^let"}), "b.rs:2:let x = 1;", false),
        (
            json!({"pattern": "needle", "path": "a.txt", "context_lines": 1}),
            "a.txt-1-one\na.txt:2:needle two\na.txt-3-three\n--\na.txt-6-six\na.txt:7:needle seven",
            false,
        ),
        (
            json!({"pattern": "needle", "maxResults": 1}),
            "a.txt:2:needle two\n\
             [there are more; narrow `pattern`, `path` or `glob`, or raise `maxResults`]",
            false,
        ),
        (json!({"pattern": "needle", "maxResults": 4}), all, false),
        (
            json!({"pattern": "absent"}),
            "no line in \".\" matches \"absent\"",
            true,
        ),
        (
            json!({"pattern": "needle", "path": "none"}),
            "path \"none\" does not exist",
            true,
        ),
    ] {
        let output = search(&world, input.clone()).await;
        assert_eq!(
            (text(&output), output.is_error),
            (expected, is_error),
            "{input}"
        );
    }
}

#[tokio::test]
async fn expressions_that_cannot_work_are_explained() {
    let world = project();
    for (pattern, expected) in [
        ("a(", "unclosed group"),
        ("a\\nb", "is not allowed"),
        ("(?=x)", "look-around"),
        ("(\\w{1000}){1000}", "size limit"),
    ] {
        let output = search(&world, json!({"pattern": pattern})).await;
        assert!(output.is_error, "{pattern}");
        assert!(
            text(&output).contains(expected),
            "{pattern}: {}",
            text(&output)
        );
    }
}

#[tokio::test]
async fn secrets_are_neither_searched_nor_named() {
    let world = project();
    std::fs::hard_link(world.at(".env"), world.at("innocent")).unwrap();
    let output = search(&world, json!({"pattern": "needle=1"})).await;
    assert!(output.is_error, "{}", text(&output));
    let tool = file_search(Arc::clone(&world.roots), CAP);
    let refusal = world
        .prepare(&tool, &json!({"pattern": "n", "path": ".env"}))
        .err();
    assert!(matches!(refusal, Some(Refusal::Violation(_))));
}

#[tokio::test]
async fn long_lines_and_much_text_are_cut() {
    let world = World::with(&[]);
    let long = format!("{}needle{}", "\u{e4}".repeat(2000), "x".repeat(5000));
    world.put("long", &long);
    let output = search(&world, json!({"pattern": "needle"})).await;
    let shown = text(&output);
    assert!(
        shown.starts_with("long:1:…\u{e4}") && shown.ends_with("x…"),
        "{shown}"
    );
    assert!(
        shown.contains("needle") && shown.len() < 450,
        "{}",
        shown.len()
    );
    world.put("many", "needle\n".repeat(5000));
    let output = search(&world, json!({"pattern": "needle", "maxResults": 2000})).await;
    assert!(text(&output).len() < CAP + 200 && output.metadata.truncated);
    assert!(output.metadata.result_count.unwrap() > 500);
}

#[tokio::test]
async fn a_search_is_stopped_within_a_file() {
    let world = World::with(&[("f", "needle")]);
    world.cancel.cancel();
    let output = search(&world, json!({"pattern": "needle", "path": "f"})).await;
    assert!(
        output.is_error && output.metadata.cancelled,
        "{}",
        text(&output)
    );
}

#[tokio::test]
async fn loops_closed_folders_and_huge_files_hold_nothing_up() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let world = World::with(&[
        ("a/found.txt", "a needle\n"),
        ("closed/in.txt", "a needle\n"),
    ]);
    symlink(".", world.at("a/loop")).unwrap();
    symlink("two", world.at("one")).unwrap();
    symlink("one", world.at("two")).unwrap();
    // Sparse: a gigabyte of zeros that takes no room.
    let huge = std::fs::File::create(world.at("huge.bin")).unwrap();
    huge.set_len(1 << 30).unwrap();
    world.put("long.txt", "x".repeat(8 << 20));
    let closed = world.at("closed");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let found = search(&world, json!({"pattern": "needle"})).await;
    assert!(!found.is_error, "{found:?}");
    // Root reads closed folders as well.
    assert!(text(&found).starts_with("a/found.txt:1:a needle"));
    let list = super::super::file_list::file_list(Arc::clone(&world.roots));
    let listed = world.call(&list, json!({})).await;
    for name in [
        "a/found.txt",
        "a/loop",
        "huge.bin",
        "long.txt",
        "one",
        "two",
    ] {
        assert!(text(&listed).lines().any(|line| line == name), "{listed:?}");
    }
    assert!(!text(&listed).contains("loop/"));
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
}
