//! What a user asks for is counted first: how much in a minute, and how much is kept on the disk already.

use std::time::Duration;

use super::{Daemon, Session};
use crate::protocol::SessionCode;
use crate::protocol::event::SessionError;
use crate::store::{self, Store as _, UserStore};
use crate::units::millis;
use crate::users::quota::Quota;

/// How long anybody waits for a count: nobody waits longer for a disk that does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

impl Session {
    /// Counts what the user has sent. Fails where that was as much in the last minute as one may, and where the user keeps as
    /// much as one may. How much runs at once is for each conversation to say, as it begins.
    pub(super) async fn count_send(&self) -> Result<(), SessionError> {
        let most = self.daemon.services.config().auth.limits.sends_per_minute;
        let problem = "this user has sent as much in a minute as one may (auth.limits.sends_per_minute); send it again later";
        let counted = self.services.quota.send(most);
        counted.map_err(|left| SessionError {
            retry_after_ms: Some(millis(left)),
            ..SessionError::new(SessionCode::QuotaExceeded, problem)
        })?;
        room(&self.daemon, self.store().as_ref(), &self.services.quota, 0).await
    }
}

/// Fails where a user keeps as much as one may, or would with so many bytes more. Where the store cannot say, it is told by
/// others, and nobody is kept from going on in memory.
pub(super) async fn room(
    daemon: &Daemon,
    store: Option<&UserStore>,
    quota: &Quota,
    more: u64,
) -> Result<(), SessionError> {
    let Some(most) = quota.disk(daemon.services.config().auth.limits.disk) else {
        return Ok(());
    };
    let counted = async {
        let homes = quota.homes().await;
        let beside = homes.saturating_add(more);
        let kept = match store {
            Some(store) => store.kept(most.saturating_sub(beside)).await?,
            None => 0,
        };
        Ok::<_, store::Error>((kept, homes))
    };
    let (kept, homes) = match tokio::time::timeout(PATIENCE, counted).await {
        Ok(Ok(counted)) => counted,
        Ok(Err(error)) => {
            tracing::warn!(%error, "it could not be counted how much a user keeps");
            return Ok(());
        }
        Err(_) => {
            tracing::warn!("it takes too long to count how much a user keeps");
            return Ok(());
        }
    };
    let kept = kept.saturating_add(homes);
    let bytes = kept.saturating_add(more);
    let has_room = match more {
        0 => bytes < most,
        _ => bytes <= most,
    };
    if has_room {
        return Ok(());
    }
    let what = match more {
        0 => String::new(),
        _ => format!(", and this would be {more} more"),
    };
    let message = format!(
        "this user keeps {kept} bytes, {homes} of them in homes of conversations, and {most} are the most (auth.limits.disk){what}; nothing new is taken until sessions are deleted (session:delete) or conversations closed"
    );
    Err(SessionError::new(SessionCode::QuotaExceeded, message))
}
