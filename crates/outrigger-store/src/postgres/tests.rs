//! The store in a database as its owner uses it, whatever happens to the server between.

mod access;
mod lease;
#[path = "../../testing/postgres.rs"]
mod server_of_tests;
#[expect(clippy::duplicate_mod, reason = "each store runs the same tests")]
#[path = "../testing/suite/mod.rs"]
mod suite;
mod tls;
#[cfg(unix)]
mod trouble;
mod walls;

use super::*;
use server_of_tests as servers;
use suite::*;

type Kept = Postgres;

/// Where a store is.
#[derive(Clone)]
struct Place {
    server: &'static servers::Server,
    database: String,
}

impl Place {
    /// As a role that the policies of tables hold for, as they do not for a superuser.
    fn url(&self) -> String {
        self.server.url("plain", &self.database)
    }

    fn sql(&self, sql: &str) -> String {
        self.server.sql(&self.database, sql)
    }
}

fn temporary() -> Option<((), Place)> {
    let server = servers::shared()?;
    let database = server.database();
    Some(((), Place { server, database }))
}

fn start(place: &Place) -> Postgres {
    Postgres::start(&place.url(), &Node::default()).unwrap()
}

/// Opens it once the process before, which is this one, has let go.
fn restart(place: &Place) -> Postgres {
    start(place)
}

fn count(place: &Place, table: &str) -> i64 {
    let rows = place.sql(&format!("SELECT count(*) FROM {table}"));
    rows.parse().unwrap()
}

fn move_call_ahead(place: &Place, id: &str, by: i64) {
    place.sql(&format!(
        "UPDATE call SET key = key + {by} WHERE id = '{id}'; \
         SELECT setval(pg_get_serial_sequence('call', 'key'), max(key)) FROM call"
    ));
}

/// Waits until something is so, which is only a matter of time; a minute is too long.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never is");
        std::thread::sleep(Duration::from_millis(10));
    }
}
