//! What is asked of the rows of all users.

use deadpool_postgres::Object;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{Postgres, SETTLED, read};
use crate::user::Whose;
use crate::{Error, Store as _, UsageQuery, UsageSum, User};

impl Postgres {
    /// Returns whose a session is; `None` where there is none.
    pub fn owner(&self, session: &str) -> BoxFuture<'static, Result<Option<User>, Error>> {
        let session = session.to_owned();
        self.read_of(None, async move |client: Object| {
            read::owner(&client, &session).await
        })
    }

    /// Returns what requests to models of all users come to, those first that cost most.
    pub fn usage_of_all(
        &self,
        wanted: UsageQuery,
    ) -> BoxFuture<'static, Result<Vec<UsageSum>, Error>> {
        let store = self.clone();
        async move {
            tokio::time::timeout(SETTLED, store.flush()).await.ok();
            let read = async move |client: Object| {
                read::usage::sums(&client, Whose::Everybodys, &wanted).await
            };
            store.read_of(None, read).await
        }
        .boxed()
    }
}
