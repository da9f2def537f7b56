//! How much is kept, and what imports and large sessions have left: done in steps while nothing waits to be written. What is
//! free in the tables is the server's to use again (autovacuum).

use std::time::{Duration, Instant};

use super::super::server::described;
use super::super::{apply, op, sees};
use super::transaction::{Trouble, Within};
use super::{Counting, Work, Writer};
use crate::{Growth, Limits, User};

/// In how many steps what is left is removed at the end of the process, and for how long where it takes more; the next
/// process removes the rest.
const LAST_STEPS: usize = 32;
const REMOVE_FOR: Duration = Duration::from_secs(2);

/// How many sessions are looked at in a step: that many may have been opened since those were named that are open. Those that
/// another process has are left.
const LOOKED_AT: i64 = 100;

/// Sessions that changed before a time, the one first that did not change for longest; of all, and of those put away.
const BEFORE: &str = "SELECT id, updated_ms, owner FROM session WHERE updated_ms < $1::bigint AND (owner, id) NOT IN (SELECT * FROM unnest($2::text[], $3::text[])) \
                      AND NOT EXISTS (SELECT 1 FROM node WHERE node.id = session.node AND node.id <> current_setting('outrigger.node')::bigint) \
                      ORDER BY updated_ms LIMIT $4::bigint";
const PUT_AWAY_BEFORE: &str = "SELECT id, updated_ms, owner FROM session WHERE archived_ms IS NOT NULL AND updated_ms < $1::bigint \
                               AND (owner, id) NOT IN (SELECT * FROM unnest($2::text[], $3::text[])) \
                               AND NOT EXISTS (SELECT 1 FROM node WHERE node.id = session.node AND node.id <> current_setting('outrigger.node')::bigint) \
                               ORDER BY updated_ms LIMIT $4::bigint";

/// Bytes of what is said, attached and changed. The server's own figures count what is free in its tables, too.
const BYTES: &str = "SELECT ((SELECT coalesce(sum(octet_length(data)), 0) FROM body) \
                     + (SELECT coalesce(sum(octet_length(data)), 0) FROM attachment) \
                     + (SELECT coalesce(sum(octet_length(diff) + octet_length(about)), 0) FROM file_change))::bigint";

impl Writer {
    /// Does a step of what is to be done.
    pub(super) async fn keep_up(&mut self) {
        let done = match (self.lets_go, self.upkeep.has_left, self.upkeep.is_due) {
            (true, ..) => self.let_go().await,
            (_, true, _) => self.remove_some().await,
            (.., true) => self.hold_limits().await,
            _ => Ok(()),
        };
        self.upkeep.has_free = false;
        if let Err(trouble) = done {
            (self.upkeep.is_due, self.upkeep.has_left) = (false, false);
            match trouble {
                Trouble::Refused(error) => tracing::error!(%error, "the store does not shrink"),
                trouble => self.is_troubled(trouble),
            }
        }
    }

    /// Removes some of what imports have left that broke off, and of large sessions that were deleted.
    async fn remove_some(&mut self) -> Result<(), Trouble> {
        self.upkeep.has_left = false;
        if self.counting == Counting::UnderWay {
            self.counting = Counting::Stale;
        }
        let under_way: Vec<String> = self.imports.iter().cloned().collect();
        let some = self
            .transact(async |Within { client, .. }| apply::remove::some(client, &under_way).await);
        self.upkeep.has_left = some.await?;
        Ok(())
    }

    /// Removes what is left, as far as that does not take long.
    pub(super) async fn remove_last(&mut self) {
        if self.is_well().is_err() {
            return;
        }
        self.imports.clear();
        self.upkeep.has_left = true;
        let began = Instant::now();
        let mut steps = 0;
        while self.upkeep.has_left && (steps < LAST_STEPS || began.elapsed() < REMOVE_FOR) {
            if self.remove_some().await.is_err() {
                return;
            }
            steps += 1;
        }
    }

    /// Deletes one session, where there is one too many.
    async fn hold_limits(&mut self) -> Result<(), Trouble> {
        let Limits { keep, max_bytes } = self.upkeep.limits;
        if let Some(keep) = keep {
            let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
            let before = self.time().await?.saturating_sub(keep);
            if self.delete_first(BEFORE, before, true).await? {
                return Ok(());
            }
        }
        self.upkeep.is_due = false;
        if max_bytes.is_some() && self.counting == Counting::No {
            self.count();
        }
        Ok(())
    }

    /// Counts what is kept, beside what is written: it takes as long as it takes.
    fn count(&mut self) {
        self.counting = Counting::UnderWay;
        let (server, own) = (self.server.clone(), self.own.clone());
        tokio::spawn(async move {
            let counted = async {
                let client = server.connect().await?;
                // What all users have.
                let seen = sees::by(&client, None, sees::Until::Next).await;
                seen.map_err(|error| described(&error))?;
                let row = client.query_one(BYTES, &[]).await;
                let bytes = row.and_then(|row| row.try_get::<_, i64>(0));
                bytes.map_err(|error| described(&error))
            };
            let bytes = counted.await.inspect_err(|problem| {
                tracing::warn!(problem, "how much is kept could not be counted");
            });
            let bytes = bytes.ok().map(|bytes| u64::try_from(bytes).unwrap_or(0));
            if let Some(own) = own.upgrade() {
                own.send(Work::Counted(bytes)).await.ok();
            }
        });
    }

    /// Notes how much is kept: of what is too much, one session is deleted, and it is counted again when that is removed.
    pub(super) async fn is_counted(&mut self, bytes: Option<u64>) {
        let is_stale = self.counting == Counting::Stale || self.upkeep.has_left;
        self.counting = Counting::No;
        let (Some(bytes), Some(max_bytes)) = (bytes, self.upkeep.limits.max_bytes) else {
            return;
        };
        if is_stale {
            return self.upkeep.look();
        }
        if bytes > max_bytes && self.is_well().is_ok() {
            match self.delete_first(PUT_AWAY_BEFORE, i64::MAX, false).await {
                Ok(true) => return self.upkeep.look(),
                Ok(false) => {}
                Err(Trouble::Refused(error)) => {
                    tracing::error!(%error, "the store does not shrink");
                }
                Err(trouble) => return self.is_troubled(trouble),
            }
        }
        self.upkeep.tell_fullness(bytes, max_bytes);
    }

    /// Returns the time, as far as it is believed.
    async fn time(&mut self) -> Result<i64, Trouble> {
        let (time, has_gone_on) = self.clock.read();
        if has_gone_on {
            let keep = "INSERT INTO clock (key, at_ms) VALUES (1, $1::bigint) \
                        ON CONFLICT (key) DO UPDATE SET at_ms = greatest(clock.at_ms, excluded.at_ms)";
            self.transact(async |Within { client, .. }| client.execute(keep, &[&time]).await)
                .await?;
        }
        Ok(time)
    }

    /// Deletes the first of these sessions that nobody has open; false where there is none.
    async fn delete_first(
        &mut self,
        sql: &'static str,
        bound: i64,
        is_old: bool,
    ) -> Result<bool, Trouble> {
        let held = self.held.clone();
        let deleted = self.transact(
            async |Within {
                       client,
                       lease,
                       days,
                   }| {
                let statement = client.prepare_cached(sql).await?;
                // Those that somebody has open, as they were when it was asked.
                let (owners, ids) = held.all();
                let rows = client
                    .query(&statement, &[&bound, &owners, &ids, &LOOKED_AT])
                    .await?;
                for row in rows {
                    let (id, updated_ms): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
                    let user = User::new(row.try_get(2)?);
                    if held.has(&user, &id) {
                        continue;
                    }
                    let asked = lease.ask(client, &[(&user, &id)]).await?;
                    if asked.own.is_empty() {
                        continue;
                    }
                    let delete = [crate::Change::Delete];
                    if let Some(ops) = apply::Ops::of((&user, &id), &delete, days) {
                        op::run(client, &ops.list).await?;
                    }
                    return Ok(Some((user, id, updated_ms)));
                }
                Ok(None)
            },
        );
        let Some((user, session, updated_ms)) = deleted.await? else {
            return Ok(false);
        };
        self.upkeep.has_left = true;
        self.upkeep.tell(Growth::Deleted {
            user,
            session,
            updated_ms,
            is_old,
        });
        Ok(true)
    }
}
