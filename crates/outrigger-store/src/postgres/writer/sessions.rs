//! Sessions that are begun anew, imported, or were open when the process before ended.

use super::super::apply::{self, Ops};
use super::super::{op, sees};
use super::Writer;
use super::transaction::Trouble;
use crate::bounds::{RESERVED_IDS, RESERVED_SEQ};
use crate::slices::Slice;
use crate::{CallFacts, CallStatus, Change, Ended, Error, User};

impl Writer {
    pub(super) async fn open(&mut self, user: &User, session: &str) -> Result<Option<i64>, Error> {
        self.is_well()?;
        let opened = self
            .transact(async |client, _| {
                sees::by(client, Some(user), sees::Until::End).await?;
                let sql = "UPDATE any_session SET epoch = epoch + 1, seq = seq + $2::bigint, ids = ids + $3::bigint \
                           WHERE id = $1::text AND owner = $4::text AND is_whole RETURNING key";
                let statement = client.prepare_cached(sql).await?;
                let row = client
                    .query_opt(
                        &statement,
                        &[&session, &RESERVED_SEQ, &RESERVED_IDS, &user.as_str()],
                    )
                    .await?;
                row.map(|it| it.try_get(0)).transpose()
            })
            .await;
        let opened = opened.map_err(|trouble| self.told(trouble))?;
        self.holes.is_opened(user, session);
        Ok(opened)
    }

    /// Writes a slice in one transaction.
    pub(super) async fn slice(&mut self, slice: &Slice) -> Result<(), Error> {
        self.is_well()?;
        self.imports.insert(slice.session.clone());
        let written = self
            .transact(async |client, days| {
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
            self.upkeep.look();
        }
        Ok(())
    }

    /// Notes that what ran when the process before ended has failed. Its result is empty until a message says what is known.
    pub(super) async fn break_off(&mut self) -> Result<(), Trouble> {
        let ended = CallStatus::Ended(Ended::Error);
        self.transact(async |client, days| {
            let running = client
                .query(
                    "SELECT any_session.id, any_session.is_whole, call.id, tool, provider, commands, at_ms, any_session.owner FROM call \
                     JOIN any_session ON any_session.key = call.session WHERE status = 'running'",
                    &[],
                )
                .await?;
            for row in running {
                let (session, id): (String, String) = (row.try_get(0)?, row.try_get(2)?);
                let commands: String = row.try_get(5)?;
                let facts = CallFacts {
                    tool: row.try_get(3)?,
                    provider: row.try_get(4)?,
                    commands: commands.lines().map(str::to_owned).collect(),
                    status: ended,
                    at_ms: row.try_get(6)?,
                    ..CallFacts::default()
                };
                let user = User::new(row.try_get(7)?);
                let mut ops = Ops::new((&user, &session), row.try_get(1)?);
                apply::calls::count(&mut ops, &id, &facts, true, days);
                op::run(client, &ops.list).await?;
            }
            sees::by(client, None, sees::Until::End).await?;
            let end = "UPDATE call SET status = $1::text, result = '' WHERE status = 'running'";
            client.execute(end, &[&ended.as_str()]).await?;
            Ok(())
        })
        .await
    }
}
