//! What a user asks for is counted first: how much in a minute, and how much is kept on the disk already. Daemons of one
//! database tell each other what their users do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Daemon, Session};
use crate::protocol::SessionCode;
use crate::protocol::event::SessionError;
use crate::store::{self, AnyStore, Store as _, UserStore};
use crate::units::millis;
use crate::users::User;
use crate::users::quota::{EVERY, Quota};

/// How long anybody waits for a count: nobody waits longer for a disk that does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

impl Daemon {
    /// Tells other daemons of the database what users do here, and notes what these do there, until the daemon stops. What was
    /// known stays where the database does not answer.
    pub(crate) async fn share_activity(self: Arc<Self>) {
        let store = self.store.as_ref().filter(|it| it.is_one_of_several());
        let Some(store) = store else {
            return;
        };
        let mut has_told = false;
        loop {
            let pause = tokio::time::sleep(EVERY);
            if self.stop.run_until_cancelled(pause).await.is_none() {
                return;
            }
            if !self.counts_everywhere() {
                continue;
            }
            let present = self.quotas.present();
            if present.is_empty() && !has_told {
                continue;
            }
            has_told = !present.is_empty();
            let own: Vec<_> = present
                .iter()
                .map(|(user, quota)| (user.clone(), quota.activity()))
                .collect();
            let told = tokio::time::timeout(PATIENCE, store.tell_activity(&own)).await;
            if !matches!(told, Ok(Ok(()))) {
                tracing::debug!("other daemons were not told what users do here");
            }
            self.learn(&present).await;
        }
    }

    /// Returns what a user does, who is about to have a session: what others know of it is asked where that was never done.
    pub(super) async fn quota(&self, user: &User) -> Arc<Quota> {
        let quota = self.quotas.of(user);
        if self.counts_everywhere() && !quota.was_told() {
            self.learn(&[(user.clone(), Arc::clone(&quota))]).await;
        }
        quota
    }

    /// Notes what users do at other daemons.
    async fn learn(&self, users: &[(User, Arc<Quota>)]) {
        let Some(store) = &self.store else {
            return;
        };
        let names: Vec<User> = users.iter().map(|it| it.0.clone()).collect();
        match tokio::time::timeout(PATIENCE, store.activity(&names)).await {
            Ok(Ok(elsewhere)) => {
                let elsewhere: HashMap<_, _> = elsewhere.into_iter().collect();
                for (user, quota) in users {
                    quota.told(elsewhere.get(user).copied().unwrap_or_default());
                }
            }
            _ => tracing::debug!("it is not known what users do at other daemons"),
        }
    }

    /// Returns whether anything is limited that counts for all daemons of the database together.
    fn counts_everywhere(&self) -> bool {
        let limits = self.services.config().auth.limits;
        let is_limited = [limits.sessions, limits.exchanges, limits.sends_per_minute]
            .iter()
            .any(Option::is_some);
        is_limited && self.store.as_ref().is_some_and(AnyStore::is_one_of_several)
    }
}

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
