//! A file of each schema that there was opens, and has all that was in it. `fixtures/store/N.db` was made by
//! `examples/fixture.rs` when N was the newest one, and never changes.

use super::*;
use crate::{FileQuery, UsageBy, UsageQuery};

/// Copies the file of a schema to where it may be written.
fn copy(schema: i64) -> (tempfile::TempDir, PathBuf) {
    let (folder, path) = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/store");
    std::fs::copy(fixtures.join(format!("{schema}.db")), &path).unwrap();
    (folder, path)
}

#[tokio::test]
async fn a_file_of_each_schema_has_all_that_was_in_it() {
    for schema in 1..=SCHEMA {
        let (_folder, path) = copy(schema);
        let store = restart(&path);
        let session = store.open("session1").await.unwrap().unwrap();
        assert_eq!(session.epoch, 2, "{schema}");
        assert_eq!((session.seq, session.ids), (10_000, 100));
        assert_eq!(session.title.as_deref(), Some("A title"));
        assert_eq!(session.project.as_deref(), Some("/work"));
        assert_eq!(session.settings.as_deref(), Some(r#"{"model":"m"}"#));
        let long = "words that are deflated ".repeat(100);
        let expected = ["what is this?", "a picture", long.as_str()];
        assert_eq!(texts(&session, "default"), expected);
        assert_eq!(texts(&session, "other"), ["東京 tower"]);
        let compacted = (schema >= 2).then_some(r#"{"base":2}"#);
        assert_eq!(session.conversations[0].compacted.as_deref(), compacted);
        let picture = &session.conversations[0].messages[0].body.attachments[0];
        assert_eq!((picture.hash, picture.bytes.len()), ([1; 32], 20_000));
        let ends: Vec<bool> = session
            .exchanges
            .iter()
            .map(|it| it.end.is_some())
            .collect();
        assert_eq!(ends, [true, false]);
        let calls: Vec<_> = session
            .calls
            .iter()
            .map(|it| (it.id.as_str(), it.began))
            .collect();
        assert_eq!(calls, [("t1", true), ("t2", true)]);
        assert_eq!(session.queued[0].send, r#"{"content":"later"}"#);
        assert_eq!(
            (session.sent[0].id.as_str(), session.sent[0].digest.len()),
            ("c1", 32)
        );
        let only_rules = |rules: Vec<(String, String)>| {
            rules.into_iter().map(|(_, rule)| rule).collect::<Vec<_>>()
        };
        assert_eq!(
            only_rules(session.rules.clone()),
            ["rule of the session", "rule of default"]
        );
        assert_eq!(only_rules(store.rules().await.unwrap()), ["rule of all"]);

        let page = store.list(wanted("tower")).await.unwrap();
        assert_eq!(page.sessions[0].labels, ["a label"]);
        assert_eq!(found(&store, "deflated").await, ["session1"]);
        let fork = store.open("fork").await.unwrap().unwrap();
        assert_eq!(texts(&fork, "default"), expected[..2]);

        let files = FileQuery {
            session: "session1".to_owned(),
            limit: 10,
            bytes: 1_000_000,
            ..FileQuery::default()
        };
        let files = store.files(files).await.unwrap().changes;
        assert_eq!(
            (files[0].change.path.as_str(), files[0].change.diff.as_str()),
            ("a.txt", "-a\n+b\n")
        );
        let before = store.attachment(files[0].before.unwrap()).await.unwrap();
        assert_eq!(before.unwrap(), b"before");
        let ran = store.ran(0).await.unwrap();
        let tools: Vec<_> = ran
            .tools
            .iter()
            .map(|it| (it.name.as_str(), it.calls))
            .collect();
        assert_eq!(tools, [("bash", 2)]);

        let all = UsageQuery {
            since_ms: 0,
            until_ms: i64::MAX,
            by: UsageBy::Model,
            limit: 10,
        };
        let spent = store.usage(all).await.unwrap();
        let spent: Vec<_> = spent
            .iter()
            .map(|it| (it.key.as_str(), it.micros))
            .collect();
        let (models, of_session) = match schema {
            1 => (vec![], vec![]),
            _ => (vec![("large", 1_500)], vec![("default".to_owned(), 1_500)]),
        };
        assert_eq!((spent, &session.spent), (models, &of_session));

        // And it takes what this version writes.
        write(&store, "session1", vec![said("default", "new", 9)]).unwrap();
        write(&store, "fork", vec![Change::Delete]).unwrap();
        let stats = store.stats().await.unwrap();
        assert_eq!(
            (stats.sessions, stats.messages, stats.attachments),
            (1, 5, 2)
        );
        store.close().await.unwrap();
        drop(store);
        let sound = check_up(&path).unwrap();
        assert_eq!((sound.schema, sound.problems), (SCHEMA, Vec::new()));
    }
}

#[test]
fn a_file_of_a_schema_is_small() {
    for schema in 1..=SCHEMA {
        let (_folder, path) = copy(schema);
        assert!(std::fs::metadata(path).unwrap().len() < 256 * 1024);
    }
}
