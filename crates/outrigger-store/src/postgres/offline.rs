//! The database without a task that writes: looked at beside a process that has it.

use deadpool_postgres::ClientWrapper;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::read;
use super::schema::{known, version};
use super::sees;
use super::server::{Server, described};
use crate::user::Whose;
use crate::{Each, Error, Listed, Listing, Page, Stats};

/// A store's database that is only read, also beside a process that has it. Not for a runtime's thread: it waits.
#[derive(Debug)]
pub struct Reader {
    server: Server,
    client: ClientWrapper,
    runtime: Runtime,
}

impl Reader {
    /// Connects; fails where nothing was kept there yet, it is newer than this program, or cannot be reached.
    pub fn open(url: &str) -> Result<Self, Error> {
        let server = Server::read(url)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| server.error(error.to_string()))?;
        let client = runtime.block_on(server.connect());
        let client = client.map_err(|problem| server.error(problem))?;
        let reader = Self {
            server,
            client,
            runtime,
        };
        reader.now(async |client| sees::by(client, None, sees::Until::Next).await)?;
        let has = "SELECT to_regclass('outrigger.any_session') IS NOT NULL";
        let has: bool = reader.now(async |client| client.query_one(has, &[]).await?.try_get(0))?;
        if !has {
            let path = reader.server.shown.to_string();
            return Err(Error::Missing { path });
        }
        let found = reader.now(async |client| version(client).await)?;
        known(&reader.server.shown, found)?;
        Ok(reader)
    }

    /// Returns which database it is, for people.
    pub fn shown(&self) -> &str {
        &self.server.shown
    }

    /// Returns a page of sessions, the one that changed last first.
    pub fn list(&self, wanted: &Listing) -> Result<Page, Error> {
        self.now(async |client| read::list::page(client, Whose::Everybodys, wanted).await)
    }

    /// Returns the session of this id, or else those whose ids begin with it, `most` at most.
    pub fn find(&self, id: &str, most: usize) -> Result<Vec<Listed>, Error> {
        self.now(async |client| read::whole::find(client, id, most).await)
    }

    /// Reads all of a session; false where there is none.
    pub fn export(&self, id: &str, mut each: Each) -> Result<bool, Error> {
        self.now(async |client| {
            let (pieces, mut taken) = mpsc::channel(read::whole::WAITING);
            let take = async move {
                while let Some(piece) = taken.recv().await {
                    if each(piece).is_break() {
                        return;
                    }
                }
            };
            let read = async move {
                {
                    let whose = (Whose::Everybodys, id);
                    read::whole::pieces_of(client, whose, &pieces).await
                }
            };
            futures::join!(read, take).0
        })
    }

    /// Returns how much is kept.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.now(async |client| read::stats(client).await)
    }

    fn now<T>(
        &self,
        read: impl AsyncFnOnce(&ClientWrapper) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Error> {
        let value = self.runtime.block_on(read(&self.client));
        value.map_err(|error| self.server.error(described(&error)))
    }
}
