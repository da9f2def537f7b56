use serde_json::json;

use super::super::Run;
use super::super::file::testing::{World, text};
use super::super::testing::Surroundings;
use super::*;

fn project() -> World {
    World::with(&[
        (".gitignore", "target/\n*.log\n"),
        (".env", ""),
        (".git/HEAD", ""),
        ("README.md", ""),
        ("debug.log", ""),
        ("secrets/plan.md", ""),
        ("src/deep/c.rs", ""),
        ("src/main.rs", ""),
        ("target/out.rs", ""),
    ])
}

#[tokio::test]
async fn files_are_listed_by_glob_and_folder() {
    let world = project();
    std::fs::create_dir(world.at("empty")).unwrap();
    let tool = file_list(Arc::clone(&world.roots));
    let all = ".gitignore\nREADME.md\nsecrets/plan.md\nsrc/deep/c.rs\nsrc/main.rs";
    for (input, expected, is_error) in [
        (json!({}), all, false),
        (json!({"path": "."}), all, false),
        (json!({"path": "src/"}), "src/deep/c.rs\nsrc/main.rs", false),
        (
            json!({"pattern": "*.rs"}),
            "src/deep/c.rs\nsrc/main.rs",
            false,
        ),
        (
            json!({"pattern": "deep/*", "path": "src"}),
            "src/deep/c.rs",
            false,
        ),
        (
            json!({"pattern": "*.rs", "path": "target"}),
            "target/out.rs",
            false,
        ),
        (json!({"path": "secrets"}), "secrets/plan.md", false),
        (
            json!({"max_results": 2}),
            ".gitignore\nREADME.md\n\
             [there are more; narrow `pattern` or `path`, or raise `maxResults`]",
            false,
        ),
        (json!({"max_results": 5}), all, false),
        (
            json!({"pattern": "*.py"}),
            "no file in \".\" matches \"*.py\"",
            true,
        ),
        (
            json!({"path": "empty"}),
            "\"empty\" has no files, or all are ignored",
            false,
        ),
        (
            json!({"path": "README.md"}),
            "path \"README.md\" is not a folder",
            true,
        ),
        (
            json!({"path": "none"}),
            "path \"none\" does not exist",
            true,
        ),
    ] {
        let output = world.call(&tool, input.clone()).await;
        assert_eq!(
            (text(&output), output.is_error),
            (expected, is_error),
            "{input}"
        );
    }
}

#[tokio::test]
async fn central_storage_is_listed_by_absolute_paths() {
    let world = project();
    let central = world.dir.path().join("central");
    std::fs::write(central.join("note"), "").unwrap();
    let tool = file_list(Arc::clone(&world.roots));
    let output = world.call(&tool, json!({"path": central})).await;
    assert_eq!(text(&output), central.join("note").to_str().unwrap());
}

#[test]
fn folders_outside_or_of_secrets_are_violations() {
    let world = project();
    std::fs::create_dir(world.at(".ssh")).unwrap();
    std::os::unix::fs::symlink("/etc", world.at("etc")).unwrap();
    let tool = file_list(Arc::clone(&world.roots));
    for path in ["..", "/etc", ".ssh", ".aws/x", "etc"] {
        let refusal = world.prepare(&tool, &json!({"path": path})).err();
        assert!(
            matches!(refusal, Some(Refusal::Violation(_))),
            "{path}: {refusal:?}"
        );
    }
}

#[tokio::test]
async fn a_stopped_listing_says_so() {
    let world = project();
    let tool = file_list(Arc::clone(&world.roots));
    let call = world.prepare(&tool, &json!({})).unwrap();
    let surroundings = Surroundings::default();
    let output = call
        .run(Run {
            cancel: world.cancel.clone(),
            timeout: std::time::Duration::ZERO,
            seen: &world.seen,
            ..surroundings.run()
        })
        .await
        .unwrap();
    assert!(
        output.is_error && output.metadata.timed_out,
        "{}",
        text(&output)
    );
    world.cancel.cancel();
    let output = world.call(&tool, json!({})).await;
    assert!(
        output.is_error && output.metadata.cancelled,
        "{}",
        text(&output)
    );
}

#[tokio::test]
async fn a_name_with_a_line_end_is_one_line_and_can_be_read() {
    let world = World::with(&[("a\nsrc/forged.rs", "odd"), ("b.txt", "")]);
    let list = file_list(Arc::clone(&world.roots));
    let output = world.call(&list, json!({})).await;
    assert_eq!(text(&output), "\"a\\nsrc/forged.rs\"\nb.txt");
    let search = super::super::file_search::file_search(Arc::clone(&world.roots), 1000);
    let output = world.call(&search, json!({"pattern": "odd"})).await;
    assert_eq!(text(&output), "\"a\\nsrc/forged.rs\":1:odd");
    let config = crate::config::FileReadConfig {
        enabled: true,
        max_bytes: 1000,
        allowed_extensions: Vec::new(),
    };
    let read = super::super::file_read::file_read(Arc::clone(&world.roots), config);
    for path in ["\"a\\nsrc/forged.rs\"", "a\nsrc/forged.rs"] {
        let output = world.call(&read, json!({ "path": path })).await;
        assert_eq!(text(&output), "odd", "{path}");
    }
}
