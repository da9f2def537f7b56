//! Who may what in a database, and tables that are not as they should be.

use std::sync::mpsc;

use super::*;

#[test]
fn a_user_who_may_make_nothing_there_is_told_what_to_do() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let role = format!("reader_of_{}", place.database);
    place.sql(&format!("CREATE ROLE {role} LOGIN"));
    let url = place.server.url(&role, &place.database);
    let both = |expected: &str| {
        let started = Postgres::start(&url, &Node::default())
            .map(drop)
            .unwrap_err()
            .to_string();
        let looked = check_up(&url).unwrap_err().to_string();
        for said in [started, looked] {
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains(&role), "{said}");
        }
    };
    both("may not make the schema");
    place.sql("CREATE SCHEMA outrigger");
    both("may not write in its schema");
    place.sql(&format!("ALTER SCHEMA outrigger OWNER TO {role}"));
    assert_eq!(check_up(&url).unwrap().schema, None);
    drop(Postgres::start(&url, &Node::default()).unwrap());
    assert_eq!(check_up(&url).unwrap().schema, Some(SCHEMA));
}

#[test]
fn what_a_stranger_made_there_is_not_trusted() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let (user, stranger) = (
        format!("user_of_{}", place.database),
        format!("stranger_in_{}", place.database),
    );
    place.sql(&format!(
        "CREATE ROLE {user} LOGIN; CREATE ROLE {stranger} LOGIN; \
         GRANT CREATE ON DATABASE {0} TO {user}, {stranger}; CREATE SCHEMA outrigger AUTHORIZATION {stranger}; \
         GRANT ALL ON SCHEMA outrigger TO {user}",
        place.database
    ));
    let url = place.server.url(&user, &place.database);
    let refused = Postgres::start(&url, &Node::default())
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("belongs to a user who is neither"),
        "{refused}"
    );
    place.sql("DROP SCHEMA outrigger");
    drop(Postgres::start(&url, &Node::default()).unwrap());
    // Nor is a table that stands elsewhere.
    let elsewhere = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(place.sql(elsewhere), "0");
}

#[test]
fn a_schema_that_cannot_be_is_refused() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    drop(start(&place));
    place.sql("UPDATE schema SET version = -1");
    let started = Postgres::start(&place.url(), &Node::default())
        .map(drop)
        .unwrap_err();
    let read = Reader::open(&place.url()).map(drop).unwrap_err();
    for refused in [started, read, check_up(&place.url()).unwrap_err()] {
        let said = refused.to_string();
        assert!(said.contains("has -1, which is no schema"), "{said}");
    }
}

#[tokio::test]
async fn what_is_said_waits_until_the_tables_are_mended() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let store = start(&place);
    write(&store, "s", vec![create(1), said("a", "before", 1)]).unwrap();
    let (tell, told) = mpsc::channel();
    store.watch(move |health| tell.send(health == Health::Well).unwrap());
    place.sql("ALTER TABLE message RENAME at_ms TO at_another");
    let failing = write(&store, "s", vec![said("a", "meanwhile", 2)]);
    assert!(matches!(failing, Err(Error::Failing(_))), "{failing:?}");
    assert_eq!(store.not_kept(), ["s"]);
    place.sql("ALTER TABLE message RENAME at_another TO at_ms");
    assert_eq!([told.recv().unwrap(), told.recv().unwrap()], [false, true]);
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["before", "meanwhile"]);
    assert!(store.not_kept().is_empty());
}
