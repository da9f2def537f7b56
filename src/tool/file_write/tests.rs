use proptest::prelude::*;
use serde_json::json;

use super::super::file::testing::{World, text};
use super::super::file_read::file_read;
use super::*;
use crate::config::FileReadConfig;
use crate::sandbox::paths::RootName;
use crate::tool::Claim;

fn tools(world: &World) -> (impl Tool + use<>, impl Tool + use<>) {
    let config = FileReadConfig {
        enabled: true,
        max_bytes: 1024 * 1024,
        allowed_extensions: Vec::new(),
    };
    (
        file_read(Arc::clone(&world.roots), config),
        file_write(Arc::clone(&world.roots)),
    )
}

#[tokio::test]
async fn files_are_created_with_their_folders_and_replaced() {
    let world = World::with(&[]);
    let (_, write) = tools(&world);
    let output = world
        .call(&write, json!({"path": "a/b/f", "content": "x\ny\n"}))
        .await;
    assert_eq!(text(&output), "a/b/f: created, 2 lines, 4 bytes");
    assert_eq!(output.metadata.path.as_deref(), Some("a/b/f"));
    assert_eq!(
        output.metadata.diff.as_deref(),
        Some("--- /dev/null\n+++ b/a/b/f\n@@ -0,0 +1,2 @@\n+x\n+y\n")
    );
    let output = world
        .call(&write, json!({"path": "a/b/f", "content": "z\n"}))
        .await;
    assert_eq!(text(&output), "a/b/f: replaced, 1 line, 2 bytes");
    let output = world
        .call(&write, json!({"path": "a/b/f", "content": "z\n"}))
        .await;
    assert_eq!(
        text(&output),
        "a/b/f already has this content; nothing was written"
    );
    assert_eq!(world.content("a/b/f"), b"z\n");
}

#[tokio::test]
async fn central_storage_is_named_by_its_absolute_path() {
    let world = World::with(&[]);
    let (_, write) = tools(&world);
    let path = world.dir.path().join("central/notes/n.md");
    let call = world
        .prepare(&write, &json!({"path": path, "content": "n"}))
        .unwrap();
    assert_eq!(call.facts().paths, ["notes/n.md"]);
    let output = world.run(call).await.unwrap();
    assert!(
        text(&output).starts_with(path.to_str().unwrap()),
        "{}",
        text(&output)
    );
    assert_eq!(std::fs::read(path).unwrap(), b"n");
}

#[tokio::test]
async fn encoding_mark_and_line_ends_stay() {
    let world = World::with(&[]);
    let (_, write) = tools(&world);
    for (old, content, new) in [
        (
            &b"\xEF\xBB\xBFa\r\nb\r\n"[..],
            "c\nd\n",
            &b"\xEF\xBB\xBFc\r\nd\r\n"[..],
        ),
        (
            b"\xFF\xFEa\0\r\0\n\0",
            "\u{fc}\n",
            b"\xFF\xFE\xfc\0\r\0\n\0",
        ),
        (b"gr\xfc\xdfe aus M\xfcnchen", "\u{fc}\n", b"\xfc\n"),
        (
            b"gr\xfc\xdfe aus M\xfcnchen",
            "\u{3b1}",
            "\u{3b1}".as_bytes(),
        ),
        (b"a\r\nb\n", "c\nd\r\n", b"c\nd\r\n"),
        (b"\x7fELF\0", "text", b"text"),
    ] {
        world.put("f", old);
        // What the last case wrote is nothing this one has seen.
        world
            .seen
            .forget(&world.roots.identity(RootName::Project, "f"));
        let output = world
            .call(&write, json!({"path": "f", "content": content}))
            .await;
        assert!(!output.is_error, "{}", text(&output));
        assert_eq!(world.content("f"), new, "{old:?} {}", text(&output));
    }
}

/// What others did between the read and the write, and whether the write goes through.
#[tokio::test]
async fn changes_of_others_are_not_overwritten() {
    let world = World::with(&[("f", "old")]);
    let (read, write) = tools(&world);
    let write_it =
        |content: &'static str| world.call(&write, json!({"path": "f", "content": content}));
    let read_it = || world.call(&read, json!({"path": "f"}));

    assert!(!write_it("never read").await.is_error);
    read_it().await;
    assert!(!write_it("read").await.is_error);
    assert!(!write_it("written by itself").await.is_error);
    world.put("f", "foreign");
    let output = write_it("lost update").await;
    assert!(
        output.is_error && text(&output).contains("changed by someone else"),
        "{}",
        text(&output)
    );
    assert_eq!(world.content("f"), b"foreign");
    assert!(write_it("still").await.is_error, "it has to read first");
    read_it().await;
    assert!(!write_it("after reading").await.is_error);
    std::fs::remove_file(world.at("f")).unwrap();
    let output = write_it("gone").await;
    assert!(
        output.is_error && text(&output).contains("deleted by someone else"),
        "{}",
        text(&output)
    );
    assert!(read_it().await.is_error);
    assert!(!write_it("anew").await.is_error);
    // A touch is no change; another path to the same file is the same file.
    world.put("f", "anew");
    std::os::unix::fs::symlink("f", world.at("link")).unwrap();
    let output = world
        .call(&write, json!({"path": "link", "content": "by link"}))
        .await;
    assert!(!output.is_error, "{}", text(&output));
    world.put("f", "foreign");
    let output = world
        .call(&write, json!({"path": "link", "content": "by link"}))
        .await;
    assert!(output.is_error);
    // Another conversation has seen nothing.
    let other = World {
        seen: Arc::default(),
        ..world
    };
    assert!(
        !other
            .call(&write, json!({"path": "f", "content": "other"}))
            .await
            .is_error
    );
}

#[tokio::test]
async fn the_user_approves_what_is_written() {
    let world = World::with(&[("f", "old\n")]);
    let (_, write) = tools(&world);
    let input = json!({"path": "f", "content": "new\n"});
    let call = world.prepare(&write, &input).unwrap();
    assert!(matches!(call.claims()[..], [Claim::Write(_)]));
    assert_eq!(call.facts().danger.level, DangerLevel::Dangerous);
    assert_eq!(
        call.preview().await.unwrap(),
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n"
    );
    world.put("f", "foreign\n");
    let output = world.run(call).await.unwrap();
    assert!(
        output.is_error && text(&output).contains("waited for approval"),
        "{}",
        text(&output)
    );
    assert_eq!(world.content("f"), b"foreign\n");
    let call = world.prepare(&write, &input).unwrap();
    call.preview().await.unwrap();
    assert!(!world.run(call).await.unwrap().is_error);
}

#[tokio::test]
async fn the_level_of_a_write_says_what_it_does() {
    use DangerLevel::{Dangerous, Warning};

    let long = "line\n".repeat(100);
    let world = World::with(&[
        ("kept.txt", &long),
        ("new.txt", &long),
        ("run.sh", "#!/bin/sh\n"),
    ]);
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        let done = git.arg("-C").arg(world.at("")).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "kept.txt", "run.sh"]);
    std::fs::set_permissions(
        world.at("run.sh"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let (_, write) = tools(&world);
    let changed = |count: usize| long.replacen("line", "other", count);
    for (path, content, level, reason) in [
        (
            "poem.txt",
            "a\nb\n".to_owned(),
            Warning,
            "creates a file of 2 lines",
        ),
        (
            "kept.txt",
            changed(9),
            Warning,
            "removes 9 of 100 lines, adds 9",
        ),
        (
            "kept.txt",
            String::new(),
            Dangerous,
            "much of the file is removed",
        ),
        ("new.txt", changed(9), Warning, "removes 9 of 100 lines"),
        (
            "new.txt",
            changed(10),
            Dangerous,
            "not under version control",
        ),
        (
            "run.sh",
            "#!/bin/sh\nls\n".to_owned(),
            Dangerous,
            "the file is executable",
        ),
        (
            "Makefile",
            "all:\n\tls\n".to_owned(),
            Dangerous,
            "builds, tests or CI run what the file says",
        ),
        (
            ".github/workflows/ci.yml",
            "on: push\n".to_owned(),
            Dangerous,
            "others run what it says",
        ),
    ] {
        let call = world
            .prepare(&write, &json!({"path": path, "content": content}))
            .unwrap();
        let danger = call.appraise().await.unwrap();
        assert_eq!(danger.level, level, "{path}: {danger:?}");
        let reasons = danger.reasons.join("; ");
        assert!(reasons.contains(reason), "{path}: {reasons}");
        // What is decided does not rest on it.
        assert_eq!(call.facts().danger.level, Dangerous);
        assert!(call.facts().danger.reasons.is_empty() || path.starts_with(".github"));
    }
}

#[tokio::test]
async fn files_that_others_run_are_asked_for_each_time() {
    let world = World::with(&[]);
    let (_, write) = tools(&world);
    let facts = |path: &str| {
        let input = json!({"path": path, "content": ""});
        world.prepare(&write, &input).unwrap().facts()
    };
    let workflow = facts(".github/workflows/ci.yml");
    assert_eq!(workflow.remember, None);
    assert_eq!(
        workflow.danger.reasons,
        [".github/workflows/ci.yml: others run what it says"]
    );
    assert!(facts("src/a.rs").remember.is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back(content in "\\PC{0,30}(\r?\n\\PC{0,30}){0,4}") {
        prop_assume!(!content.is_empty() && !content.starts_with('\u{feff}'));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = World::with(&[]);
            let (read, write) = tools(&world);
            let output = world.call(&write, json!({"path": "f", "content": content})).await;
            assert!(!output.is_error, "{}", text(&output));
            assert_eq!(text(&world.call(&read, json!({"path": "f"})).await), content);
        });
    }
}

/// Git's own settings name what it runs; which files those are is tried in the sandbox's tests.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_git_runs_is_a_violation_before_and_after_the_answer() {
    let world = World::with(&[(".githooks/pre-commit", "good\n")]);
    let (_, write) = tools(&world);
    let edit = super::super::file_edit::file_edit(Arc::clone(&world.roots));
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        let done = git.arg("-C").arg(world.at("")).args(words).output();
        assert!(done.unwrap().status.success(), "{words:?}");
    };
    git(&["init", "-q"]);
    let new = json!({"path": ".githooks/post-commit", "content": "evil\n"});
    let asked = world.prepare(&write, &new).unwrap();
    // While the user thinks.
    git(&["config", "core.hooksPath", ".githooks"]);
    let violation = world.run(asked).await.unwrap_err();
    assert!(violation.message.contains("git runs"), "{violation}");
    let old = json!({"path": ".githooks/pre-commit", "oldText": "good", "newText": "evil"});
    let attempts: [(&dyn Tool, _); 2] = [(&write, &new), (&edit, &old)];
    for (tool, input) in attempts {
        let refusal = world.prepare(tool, input).err();
        assert!(
            matches!(&refusal, Some(crate::tool::Refusal::Violation(it)) if it.message.contains("may not be written: git runs")),
            "{refusal:?}"
        );
    }
    assert_eq!(world.content(".githooks/pre-commit"), b"good\n");
    assert!(!world.at(".githooks/post-commit").exists());
}
