//! Sessions that are begun anew, imported, or were open when the process before ended.

use std::sync::atomic::Ordering;

use deadpool_postgres::ClientWrapper;
use tokio_postgres::types::ToSql;

use super::super::apply::{self, Days, Ops};
use super::super::{op, sees};
use super::Writer;
use super::transaction::{Trouble, Within};
use crate::bounds::{RESERVED_IDS, RESERVED_SEQ};
use crate::slices::Slice;
use crate::user::OwnId;
use crate::{CallFacts, CallStatus, Change, Ended, Error, User};

/// How many sessions are looked at in a step.
const LOOKED_AT: i64 = 100;

impl Writer {
    pub(super) async fn open(&mut self, user: &User, session: &str) -> Result<Option<i64>, Error> {
        self.is_well()?;
        let opened = self
            .transact(async |Within { client, lease, days }| {
                let asked = lease.ask(client, &[(user, session)]).await?;
                broken_off(client, &asked.left_behind, days).await?;
                if let Some((.., elsewhere)) = asked.elsewhere.into_iter().next() {
                    return Ok(Err(elsewhere));
                }
                sees::by(client, Some(user), sees::Until::End).await?;
                let sql = "UPDATE any_session SET epoch = epoch + 1, seq = seq + $2::bigint, ids = ids + $3::bigint \
                           WHERE id = $1::text AND owner = $4::text AND is_whole RETURNING key";
                let statement = client.prepare_cached(sql).await?;
                let parameters: [&(dyn ToSql + Sync); 4] =
                    [&session, &RESERVED_SEQ, &RESERVED_IDS, &user.as_str()];
                let row = client.query_opt(&statement, &parameters).await?;
                let key = row.map(|it| it.try_get(0)).transpose()?;
                Ok(Ok((key, asked.left_behind.len())))
            })
            .await;
        let (opened, taken) = opened.map_err(|trouble| self.told(trouble))??;
        let own = opened.map(|_: i64| (session.to_owned(), user.clone()));
        self.has(own, taken);
        self.holes.is_opened(user, session);
        Ok(opened)
    }

    /// Writes a slice in one transaction.
    pub(super) async fn slice(&mut self, slice: &Slice) -> Result<(), Error> {
        self.is_well()?;
        self.imports.insert(slice.session.clone());
        let written = self
            .transact(async |Within { client, days, .. }| {
                sees::by(client, Some(&slice.user), sees::Until::End).await?;
                let mut changes = slice.changes.as_slice();
                if let [Change::Create { project, at_ms }, rest @ ..] = changes {
                    let sql = "INSERT INTO any_session (id, is_whole, project, created_ms, updated_ms, owner) \
                               VALUES ($1::text, false, $2::text, $3::bigint, $3::bigint, $4::text)";
                    let owner = slice.user.as_str();
                    client
                        .execute(sql, &[&slice.session, project, at_ms, &owner])
                        .await?;
                    changes = rest;
                }
                let mut ops = Ops::new((&slice.user, &slice.session), false);
                for change in changes {
                    ops.change(change, days);
                }
                ops.finish();
                op::run(client, &ops.list).await?;
                if slice.is_last {
                    op::run(client, &[apply::remove::make_whole(&slice.session)]).await?;
                }
                Ok(())
            })
            .await;
        written.map_err(|trouble| self.told(trouble))?;
        if slice.is_last {
            self.imports.remove(&slice.session);
            self.has([(slice.session.clone(), slice.user.clone())], 0);
            self.lets_go = true;
            self.upkeep.look();
        }
        Ok(())
    }

    /// Notes that what ran when other processes ended has failed. Its result is empty until a message says what is known.
    pub(super) async fn break_off(&mut self) -> Result<(), Trouble> {
        let find = "SELECT DISTINCT any_session.id, any_session.owner FROM call JOIN any_session ON any_session.key = call.session \
                    WHERE status = 'running' AND is_whole AND any_session.node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM node WHERE node.id = any_session.node) \
                    LIMIT $1::bigint";
        loop {
            let step = self.transact(
                async |Within {
                           client,
                           lease,
                           days,
                       }| {
                    lease.remove_dead(client).await?;
                    let rows = client.query(find, &[&LOOKED_AT]).await?;
                    let mut found = Vec::with_capacity(rows.len());
                    for row in &rows {
                        found.push((User::new(row.try_get(1)?), row.try_get::<_, String>(0)?));
                    }
                    let wanted: Vec<_> =
                        found.iter().map(|(user, id)| (user, id.as_str())).collect();
                    let asked = lease.ask(client, &wanted).await?;
                    broken_off(client, &asked.left_behind, days).await?;
                    Ok(asked)
                },
            );
            let asked = step.await?;
            if asked.left_behind.is_empty() {
                return Ok(());
            }
            self.has(asked.own, asked.left_behind.len());
            self.lets_go = true;
        }
    }

    /// Notes sessions that are this process's now, of which so many were taken from processes that are gone.
    pub(super) fn has(&mut self, sessions: impl IntoIterator<Item = (String, User)>, taken: usize) {
        self.own_sessions.extend(sessions);
        self.count_sessions();
        self.counts.taken.fetch_add(taken as u64, Ordering::Relaxed);
    }

    fn count_sessions(&self) {
        let own = self.own_sessions.len() as u64;
        self.counts.sessions.store(own, Ordering::Relaxed);
    }

    /// Lets go of the sessions that nobody has open.
    pub(super) async fn let_go(&mut self) -> Result<(), Trouble> {
        self.lets_go = false;
        let held = self.held.clone();
        if self.is_one_of_several {
            let is_held = |session: &OwnId| held.has(&session.0, &session.1);
            self.holes.forget(&self.room, is_held);
        }
        let own = self.own_sessions.iter();
        let unheld = own.filter(|(session, user)| !held.has(user, session));
        let unheld: Vec<String> = unheld.map(|(session, _)| session.clone()).collect();
        if unheld.is_empty() {
            return Ok(());
        }
        let gone =
            self.transact(async |Within { client, lease, .. }| lease.let_go(client, &unheld).await);
        let gone = gone.await;
        // Where it failed they are this process's until it ends, or something else is written in them.
        self.own_sessions.retain(|it, _| !unheld.contains(it));
        self.count_sessions();
        gone
    }
}

/// Notes that what ran in sessions when the process that had them ended has failed, in a transaction.
pub(super) async fn broken_off(
    client: &ClientWrapper,
    sessions: &[i64],
    days: &mut Days,
) -> Result<(), tokio_postgres::Error> {
    if sessions.is_empty() {
        return Ok(());
    }
    let ended = CallStatus::Ended(Ended::Error);
    let find = "SELECT any_session.id, call.id, tool, provider, commands, at_ms, any_session.owner FROM call \
                JOIN any_session ON any_session.key = call.session WHERE status = 'running' AND call.session = ANY($1::bigint[])";
    let find = client.prepare_cached(find).await?;
    let running = client.query(&find, &[&sessions]).await?;
    if running.is_empty() {
        return Ok(());
    }
    for row in running {
        let (session, id): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let commands: String = row.try_get(4)?;
        let facts = CallFacts {
            tool: row.try_get(2)?,
            provider: row.try_get(3)?,
            commands: commands.lines().map(str::to_owned).collect(),
            status: ended,
            at_ms: row.try_get(5)?,
            ..CallFacts::default()
        };
        let user = User::new(row.try_get(6)?);
        let mut ops = Ops::new((&user, &session), true);
        apply::calls::count(&mut ops, &id, &facts, true, days);
        op::run(client, &ops.list).await?;
    }
    sees::by(client, None, sees::Until::End).await?;
    let end = "UPDATE call SET status = $1::text, result = '' WHERE status = 'running' AND session = ANY($2::bigint[])";
    let end = client.prepare_cached(end).await?;
    client.execute(&end, &[&ended.as_str(), &sessions]).await?;
    Ok(())
}
