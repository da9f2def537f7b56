use serde_json::json;

use super::super::file::testing::{World, text};
use super::*;
use crate::document::testing::pdf;
use crate::tool::Claim;

fn tool(world: &World) -> impl Tool {
    tool_with(world, 1024, &[])
}

fn tool_with(world: &World, max_bytes: usize, extensions: &[&str]) -> impl Tool {
    file_read(
        Arc::clone(&world.roots),
        FileReadConfig {
            enabled: true,
            max_bytes,
            allowed_extensions: extensions.iter().map(|&ending| ending.to_owned()).collect(),
        },
    )
}

#[tokio::test]
async fn parts_of_a_file_come_with_a_note_on_the_rest() {
    let world = World::with(&[("f", "one\ntwo\nthree\nfour"), ("empty", "")]);
    for (input, expected, is_error) in [
        (json!({"path": "f"}), "one\ntwo\nthree\nfour", false),
        (
            json!({"path": "f", "offset": 3}),
            "three\nfour\n[lines 3 to 4 of 4]",
            false,
        ),
        (
            json!({"path": "f", "limit": 2}),
            "one\ntwo\n[lines 1 to 2 of 4; read on with offset 3]",
            false,
        ),
        (
            json!({"path": "f", "offset": 2, "limit": 1}),
            "two\n[lines 2 to 2 of 4; read on with offset 3]",
            false,
        ),
        (
            json!({"path": "f", "limit": 4}),
            "one\ntwo\nthree\nfour",
            false,
        ),
        (
            json!({"path": "f", "offset": 5}),
            "file \"f\" has 4 lines; there is no line 5",
            true,
        ),
        (json!({"path": "empty"}), "[the file is empty]", false),
        (
            json!({"path": "none"}),
            "path \"none\" does not exist",
            true,
        ),
        (
            json!({"path": "."}),
            "path \".\" is a folder, not a regular file",
            true,
        ),
        (
            json!({"path": "f", "offset": 0}),
            "the input of `file_read` does not fit: `offset` has to be a whole number of at least 1, but 0 came",
            true,
        ),
    ] {
        let output = world.call(&tool(&world), input.clone()).await;
        assert_eq!(
            (text(&output), output.is_error),
            (expected, is_error),
            "{input}"
        );
    }
}

#[tokio::test]
async fn the_cap_cuts_at_lines_and_keeps_part_of_a_long_one() {
    let long = "\u{e4}".repeat(100);
    let world = World::with(&[("f", "12345\n12345\n12345\n"), ("long", &long)]);
    let output = world
        .call(&tool_with(&world, 13, &[]), json!({"path": "f"}))
        .await;
    assert_eq!(
        text(&output),
        "12345\n12345\n[lines 1 to 2 of 3; read on with offset 3]"
    );
    assert!(output.metadata.truncated);
    assert_eq!(
        (output.metadata.total_bytes, output.metadata.omitted_bytes),
        (Some(18), Some(6))
    );
    let output = world
        .call(&tool_with(&world, 13, &[]), json!({"path": "long"}))
        .await;
    assert_eq!(
        text(&output),
        format!(
            "{}\n[line 1 of 1 is cut after 12 bytes; use file_search for what is behind]",
            "\u{e4}".repeat(6)
        )
    );
}

#[tokio::test]
async fn a_part_that_begins_within_a_key_shows_nothing_of_it() {
    let key = "a\n-----BEGIN PRIVATE KEY-----\nMIIE\nMIIF\n-----END PRIVATE KEY-----\nz\n";
    let world = World::with(&[("f", key)]);
    for (offset, limit, expected, masked) in [
        (1, 9, "a\n[redacted]\nz\n", Some(1)),
        (3, 9, "[redacted]\nz\n[lines 3 to 6 of 6]", Some(1)),
        (
            3,
            1,
            "[redacted]\n[lines 3 to 3 of 6; read on with offset 4]",
            Some(1),
        ),
        (
            1,
            3,
            "a\n[redacted]\n[lines 1 to 3 of 6; read on with offset 4]",
            Some(1),
        ),
        (6, 9, "z\n[lines 6 to 6 of 6]", None),
        (1, 1, "a\n[lines 1 to 1 of 6; read on with offset 2]", None),
    ] {
        let input = json!({"path": "f", "offset": offset, "limit": limit});
        let output = world.call(&tool(&world), input).await;
        assert_eq!(text(&output), expected);
        assert_eq!(output.metadata.redacted, masked, "{offset} {limit}");
    }
    let call = world.prepare(&tool(&world), &json!({"path": "f"})).unwrap();
    let claims = call.claims();
    let [Claim::Read(identity)] = claims.as_slice() else {
        panic!("{claims:?}");
    };
    let seen = world.seen.recall(identity);
    assert_eq!(seen, Some(Fingerprint::of(key.as_bytes())));
}

#[tokio::test]
async fn encodings_are_read_and_binary_is_described() {
    let world = World::with(&[]);
    world.put("utf16", b"\xFF\xFEh\0i\0");
    world.put("latin", b"gr\xfc\xdfe aus M\xfcnchen");
    world.put("elf", b"\x7fELF\0");
    for (path, expected, is_error) in [
        ("utf16", "hi", false),
        ("latin", "gr\u{fc}\u{df}e aus M\u{fc}nchen", false),
        (
            "elf",
            "file \"elf\" is an ELF program, not text (5 bytes, SHA-256 \
             8d70ec3a2f3f83952913d20234644bbdec61f9b66c24f94ceed7940252bf2cb4)",
            true,
        ),
    ] {
        let output = world.call(&tool(&world), json!({"path": path})).await;
        assert_eq!((text(&output), output.is_error), (expected, is_error));
    }
}

#[tokio::test]
async fn the_pages_of_a_pdf_are_read_as_text() {
    let world = World::with(&[]);
    world.put("a.pdf", pdf(&["first", "second", "third"]));
    world.put("blank.pdf", pdf(&[" "]));
    world.put("bad.pdf", b"%PDF-1.4 and no more");
    for (input, expected, is_error) in [
        (
            json!({"path": "a.pdf"}),
            "[page 1]\nfirst\n\n[page 2]\nsecond\n\n[page 3]\nthird",
            false,
        ),
        (
            json!({"path": "a.pdf", "offset": 2, "limit": 1}),
            "[page 2]\nsecond\n[pages 2 to 2 of 3; read on with offset 3]",
            false,
        ),
        (
            json!({"path": "a.pdf", "offset": 3}),
            "[page 3]\nthird\n[pages 3 to 3 of 3]",
            false,
        ),
        (
            json!({"path": "a.pdf", "offset": 4}),
            "PDF \"a.pdf\" has 3 pages; there is no page 4",
            true,
        ),
        (
            json!({"path": "blank.pdf"}),
            "[no text could be read of these pages of \"blank.pdf\": they may be pictures, as scans are]",
            false,
        ),
        (
            json!({"path": "bad.pdf"}),
            "PDF \"bad.pdf\" is damaged, or not as PDFs are; open it in a viewer, and print or save it as a new PDF",
            true,
        ),
    ] {
        let output = world.call(&tool(&world), input).await;
        assert_eq!((text(&output), output.is_error), (expected, is_error));
    }
    let short = world
        .call(&tool_with(&world, 30, &[]), json!({"path": "a.pdf"}))
        .await;
    assert_eq!(
        text(&short),
        "[page 1]\nfirst\n\n[page 2]\nsecon\n[pages 1 to 1 of 3; read on with offset 2]"
    );
    assert!(short.metadata.truncated);
}

#[tokio::test]
async fn images_are_returned_as_images_up_to_a_size() {
    let world = World::with(&[]);
    for (path, bytes, expected) in [
        ("a.png", &b"\x89PNG\r\n\x1a\nrest"[..], "image/png"),
        ("a.bin", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("a.gif", b"GIF89a\0", "image/gif"),
        ("a.webp", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ] {
        world.put(path, bytes);
        let output = world.call(&tool(&world), json!({"path": path})).await;
        let data = image::encode(bytes);
        let media_type = expected.to_owned();
        assert_eq!(output.content, [Part::Image { media_type, data }]);
    }
    let mut large = b"GIF89a".to_vec();
    large.resize(MAX_IMAGE_BYTES + 1, 0);
    world.put("large.gif", &large);
    let output = world
        .call(&tool(&world), json!({"path": "large.gif"}))
        .await;
    assert!(
        output.is_error && text(&output).contains("at most 3750000"),
        "{}",
        text(&output)
    );
}

#[tokio::test]
async fn only_allowed_extensions_are_read() {
    let world = World::with(&[("a.RS", "x"), ("a.txt", "x"), ("Makefile", "x")]);
    std::os::unix::fs::symlink("a.txt", world.at("link.rs")).unwrap();
    let tool = tool_with(&world, 1024, &["rs", ".toml"]);
    for (path, fine) in [
        ("a.RS", true),
        ("a.txt", false),
        ("Makefile", false),
        ("link.rs", false),
    ] {
        let output = world.call(&tool, json!({"path": path})).await;
        assert_eq!(!output.is_error, fine, "{path}: {}", text(&output));
    }
}

#[test]
fn a_path_that_leaves_or_is_denied_is_a_violation() {
    let world = World::with(&[(".env", "x"), ("f", "x")]);
    std::os::unix::fs::symlink("/etc", world.at("etc")).unwrap();
    std::os::unix::fs::symlink(".env", world.at("notes")).unwrap();
    for path in ["../x", "/etc/passwd", ".env", ".ENV", "etc/passwd", "notes"] {
        let refusal = world.prepare(&tool(&world), &json!({"path": path})).err();
        assert!(
            matches!(refusal, Some(Refusal::Violation(_))),
            "{path}: {refusal:?}"
        );
    }
}

#[tokio::test]
async fn the_rules_hear_of_the_file_that_a_link_leads_to() {
    let world = World::with(&[("docs/f", "x"), ("src/secret_test.go", "x")]);
    std::fs::create_dir_all(world.at("src")).unwrap();
    std::os::unix::fs::symlink("../docs/f", world.at("src/link")).unwrap();
    let call = world
        .prepare(&tool(&world), &json!({"path": "src/./x/../link"}))
        .unwrap();
    assert_eq!(
        call.facts().paths,
        ["src/link"],
        "x does not exist, so it leads nowhere"
    );
    let call = world
        .prepare(&tool(&world), &json!({"path": "src/link"}))
        .unwrap();
    assert_eq!(call.facts().paths, ["src/link", "docs/f"]);
    assert_eq!(call.facts().danger.level, DangerLevel::Safe);
    let direct = world
        .prepare(&tool(&world), &json!({"path": "docs/f"}))
        .unwrap();
    assert_eq!(call.claims(), direct.claims());
    assert!(matches!(call.claims()[..], [Claim::Read(_)]));
    // What it leads to changes between the judgement and the run.
    std::fs::remove_file(world.at("src/link")).unwrap();
    std::os::unix::fs::symlink("secret_test.go", world.at("src/link")).unwrap();
    let output = world.run(call).await.unwrap();
    assert!(
        output.is_error && text(&output).contains("leads elsewhere"),
        "{}",
        text(&output)
    );
    let asked = world
        .prepare(&tool(&world), &json!({"path": "src/link"}))
        .unwrap()
        .facts();
    assert_eq!(asked.danger.level, DangerLevel::Warning);
    assert_eq!(asked.remember, None);
}

#[tokio::test]
async fn a_cancelled_call_does_nothing() {
    let world = World::with(&[("f", "x")]);
    world.cancel.cancel();
    let output = world.call(&tool(&world), json!({"path": "f"})).await;
    assert!(output.is_error && output.metadata.cancelled);
}
