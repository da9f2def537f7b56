//! The lease where clocks, hands and long transactions are against it.

use std::sync::mpsc;

use super::*;

const SHORT: Duration = Duration::from_secs(3);

#[test]
fn a_lease_that_does_not_end_is_waited_for_no_longer_than_one_lasts() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    drop(start(&place));
    for until in ["'infinity'", "now() + interval '3 years'"] {
        wait_until(|| place.sql("SELECT expires < now() FROM lease") == "t");
        place.sql(&format!(
            "UPDATE lease SET node = 'a ghost', expires = {until}"
        ));
        let refused = Postgres::begin(&place.url(), SHORT).unwrap_err();
        assert!(matches!(refused, Error::Owned { .. }), "{refused:?}");
        let said = refused.to_string();
        for part in ["a ghost", "DELETE FROM outrigger.lease WHERE scope = 'all'"] {
            assert!(said.contains(part), "{said}");
        }
        place.sql("UPDATE lease SET expires = '-infinity'");
    }
    drop(start(&place));
}

#[tokio::test]
async fn the_loss_of_the_lease_is_told_once_though_the_store_was_failing_before() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let store = start(&place);
    write(&store, "s", vec![create(1)]).unwrap();
    let (tell, told) = mpsc::channel();
    store.watch(move |health| {
        let word = match health {
            Health::Failing(_) => "failing",
            Health::Well => "well",
            Health::Ended(Error::Taken { .. }) => "taken",
            _ => "other",
        };
        tell.send(word).unwrap();
    });
    place.sql("ALTER TABLE message RENAME at_ms TO at_another");
    write(&store, "s", vec![said("a", "lost", 1)]).unwrap_err();
    assert_eq!(told.recv(), Ok("failing"));
    place.sql("UPDATE lease SET node = 'another', generation = generation + 1");
    assert_eq!(told.recv(), Ok("taken"));
    assert!(matches!(store.ended(), Some(Error::Taken { .. })));
    assert_eq!(store.not_kept(), ["s"]);
    write(&store, "t", vec![create(1)]).unwrap_err();
    store.flush().await.unwrap_err();
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn a_transaction_that_takes_long_does_not_cost_the_lease() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let store = Postgres::begin(&place.url(), SHORT).unwrap();
    write(&store, "s", vec![create(1)]).unwrap();
    // As long as the lease, all but a little.
    place.sql(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2.8); RETURN NULL; END $$; \
         CREATE TRIGGER slow AFTER INSERT ON message FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    write(&store, "s", vec![said("a", "slow", 2)]).unwrap();
    let left = place.sql("SELECT expires > now() + interval '1 second' FROM lease");
    assert_eq!(left, "t");
}
