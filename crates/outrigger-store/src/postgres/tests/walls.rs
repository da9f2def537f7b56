//! The second wall: rows of another user are not there for a statement that forgets to say whose it wants.

use super::*;
use crate::User;

/// Runs SQL as the role that the daemon has, seeing what a user has; returns what it says.
fn as_seen_by(place: &Place, user: &str, sql: &str) -> String {
    let set = format!("SET ROLE plain; SET outrigger.owner = '{user}'; {sql}");
    place.sql(&set)
}

#[tokio::test]
async fn a_statement_that_names_no_owner_sees_its_own_users_rows_alone() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let store = start(&place);
    for name in ["anna", "ben"] {
        let store = store.of(&User::new(name));
        let picture = {
            let mut said = message(&format!("said by {name}"), 1);
            said.body.attachments.push(crate::Attachment {
                hash: [1; 32],
                bytes: vec![1],
            });
            Change::Message {
                conversation: "a".to_owned(),
                message: said,
            }
        };
        let rule = Change::Rule(crate::Rule {
            id: format!("rule of {name}"),
            owner: crate::Owner::None,
            rule: name.to_owned(),
        });
        let labels = Change::Labels(vec![name.to_owned()]);
        write(
            &store,
            &format!("s-{name}"),
            vec![create(1), picture, rule, labels],
        )
        .unwrap();
    }
    for (table, column) in [
        ("any_session", "id"),
        ("session", "id"),
        ("rule", "rule"),
        ("label", "name"),
        ("conversation", "owner"),
        ("message", "owner"),
        ("body", "owner"),
        ("attached", "owner"),
    ] {
        let sql = format!("SELECT {column} FROM {table}");
        let seen = as_seen_by(&place, "anna", &sql);
        assert!(
            seen.ends_with("anna") && !seen.contains("ben"),
            "{table}: {seen}"
        );
        // The view is its owner's, whoever asks.
        let all = if table == "session" { 0 } else { 2 };
        assert_eq!(place.sql(&sql).lines().count(), all, "{table}");
    }
    // Nobody is named: nothing is seen, and nothing is changed.
    let nobody = "SET ROLE plain; SELECT count(*) FROM any_session";
    assert_eq!(place.sql(nobody), "0");
    let theirs =
        "UPDATE any_session SET title = 'taken'; DELETE FROM message; DELETE FROM any_session";
    as_seen_by(&place, "carla", theirs);
    assert_eq!(
        place.sql("SELECT count(*) FROM any_session WHERE title IS NULL"),
        "2"
    );
    assert_eq!(place.sql("SELECT count(*) FROM message"), "2");
    // Nor is a row made in another's name.
    let made = "DO $$ BEGIN INSERT INTO rule (id, owner, rule) VALUES ('x', 'anna', 'mine'); \
                EXCEPTION WHEN insufficient_privilege THEN NULL; END $$";
    as_seen_by(&place, "ben", made);
    assert_eq!(place.sql("SELECT count(*) FROM rule"), "2");
}

#[tokio::test]
async fn a_database_of_the_first_schema_is_the_one_users() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let first = format!(
        "SET ROLE plain; CREATE SCHEMA outrigger; SET search_path = outrigger; CREATE TABLE schema (version BIGINT NOT NULL); INSERT INTO schema VALUES (1); {} \
         INSERT INTO any_session (id, created_ms, updated_ms) VALUES ('old', 1, 1); \
         INSERT INTO conversation (session, id, next_place) SELECT key, 'a', 1 FROM any_session; \
         INSERT INTO body (deflated, data, words) VALUES (false, 'hello', array_to_tsvector('{{hello}}')); \
         INSERT INTO message SELECT conversation.key, 0, body.key, 'm1', 1 FROM conversation, body",
        include_str!("../1.sql")
    );
    place.sql(&first);
    let store = start(&place);
    assert_eq!(
        texts(&store.open("old").await.unwrap().unwrap(), "a"),
        ["hello"]
    );
    assert_eq!(found(&store, "hello").await, ["old"]);
    let other = store.of(&User::new("anna"));
    assert_eq!(other.open("old").await.unwrap(), None);
    assert!(found(&other, "hello").await.is_empty());
}

#[test]
fn a_role_that_sees_through_the_wall_is_known() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    place.sql("DO $$ BEGIN CREATE ROLE seer LOGIN BYPASSRLS; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
    place.sql(&format!(
        "GRANT CREATE ON DATABASE {} TO seer",
        place.database
    ));
    for (role, is_above) in [("plain", false), ("tester", true), ("seer", true)] {
        let url = place.server.url(role, &place.database);
        assert_eq!(check_up(&url).unwrap().is_above, is_above, "{role}");
    }
}
