//! Whose rows a connection sees: the second wall, behind the WHERE of each statement.
//!
//! The tables' policies (row-level security) compare a row's owner with what is set here, and a row that is written without
//! one gets it from there.

use deadpool_postgres::ClientWrapper;

use super::op::{Op, Param};
use crate::User;

/// For how long a connection sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Until it is told otherwise.
    Next,
    /// To the end of the transaction.
    End,
}

const SQL: &str = "SELECT set_config('outrigger.owner', $1::text, $3::bool), set_config('outrigger.everyone', $2::text, $3::bool)";

/// Has a connection see what is a user's; everything where none is named.
pub(super) async fn by(
    client: &ClientWrapper,
    user: Option<&User>,
    until: Until,
) -> Result<(), tokio_postgres::Error> {
    let statement = client.prepare_cached(SQL).await?;
    let (owner, all) = values(user.map_or("", User::as_str), user.is_none());
    let is_local = until == Until::End;
    client
        .execute(&statement, &[&owner, &all, &is_local])
        .await?;
    Ok(())
}

/// Returns the statement that has a transaction see what is a user's, or everything beside it.
pub(super) fn op(owner: &str, everything: bool) -> Op<'_> {
    let (owner, all) = values(owner, everything);
    Op {
        sql: SQL,
        parameters: vec![owner.into(), all.into(), Param::from(true)],
    }
}

fn values(owner: &str, everything: bool) -> (&str, &'static str) {
    (owner, if everything { "on" } else { "off" })
}
