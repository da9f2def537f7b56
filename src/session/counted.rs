//! What a user asks for is counted first: how much in a minute, and how much is kept on the disk already. Daemons of one
//! database tell each other what their users do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::turned_away::NoSession;
use super::{Daemon, Session};
use crate::protocol::SessionCode;
use crate::protocol::event::SessionError;
use crate::store::{self, AnyStore, Store as _, UserStore};
use crate::units::millis;
use crate::users::quota::{Counted, EVERY, Quota};
use crate::users::{Grant, User};

/// How long anybody waits for a count: nobody waits longer for a disk that does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

impl Daemon {
    /// Tells other daemons of the database what users do here, and notes what these do there, until the daemon stops. What was
    /// known stays where the database does not answer.
    pub(crate) async fn share_activity(self: Arc<Self>) {
        if !self.counts_everywhere() {
            return;
        }
        loop {
            let pause = tokio::time::sleep(EVERY);
            if self.stop.run_until_cancelled(pause).await.is_none() {
                return;
            }
            let version = self.quotas.next_version();
            let present = self.quotas.present();
            // Each time, whoever is there: what was told before may have been lost.
            self.tell(version, &present, true).await;
            self.learn(&present).await;
        }
    }

    /// Counts a session that is about to begin. Fails where the user has as many as one may: at all daemons of the database,
    /// of which each that begins one at the same time sees the other.
    pub(super) async fn count_session(&self, grant: &Grant) -> Result<Counted, NoSession> {
        let quota = self.quotas.of(&grant.user);
        quota.grant_disk(grant.disk.as_ref());
        let most = self.services.config().auth.limits.sessions;
        let counted = quota.session(most).ok_or(NoSession::Quota)?;
        if self.counts_everywhere() {
            let user = [(grant.user.clone(), Arc::clone(&quota))];
            self.tell(self.quotas.next_version(), &user, false).await;
            self.learn(&user).await;
            if quota.has_too_many_sessions(most) {
                drop(counted);
                // Else it stands in the way of one at another daemon until it is told anew.
                self.tell(self.quotas.next_version(), &user, false).await;
                return Err(NoSession::Quota);
            }
        }
        Ok(counted)
    }

    /// Tells other daemons what users do here; where these are all, that no others do anything.
    async fn tell(&self, version: u64, users: &[(User, Arc<Quota>)], are_all: bool) {
        let Some(store) = &self.store else {
            return;
        };
        let own = users
            .iter()
            .map(|(user, quota)| (user.clone(), quota.activity()));
        let own: Vec<_> = own.collect();
        let told = async {
            store.tell_activity(version, &own).await?;
            match are_all {
                true => store.end_activity(version, &names(users)).await,
                false => Ok(()),
            }
        };
        if !matches!(tokio::time::timeout(PATIENCE, told).await, Ok(Ok(()))) {
            tracing::debug!("other daemons were not told what users do here");
        }
    }

    /// Notes what users do at other daemons.
    async fn learn(&self, users: &[(User, Arc<Quota>)]) {
        let Some(store) = &self.store else {
            return;
        };
        match tokio::time::timeout(PATIENCE, store.activity(&names(users))).await {
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
        let limits = [limits.sessions, limits.exchanges, limits.sends_per_minute];
        let store = self.store.as_ref();
        limits.iter().any(Option::is_some) && store.is_some_and(AnyStore::is_one_of_several)
    }
}

fn names(users: &[(User, Arc<Quota>)]) -> Vec<User> {
    users.iter().map(|it| it.0.clone()).collect()
}

impl Session {
    /// Counts what the user has sent. Fails where that was as much in the last minute as one may, and where the user keeps as
    /// much as one may. How much runs at once is for each conversation to say, as it begins.
    pub(super) async fn count_send(&self) -> Result<(), SessionError> {
        let quota = &self.services.quota;
        count_request(&self.daemon, self.store().as_ref(), quota).await
    }
}

/// Counts what asks for something, as a send does.
pub(super) async fn count_request(
    daemon: &Daemon,
    store: Option<&UserStore>,
    quota: &Quota,
) -> Result<(), SessionError> {
    let most = daemon.services.config().auth.limits.sends_per_minute;
    let problem = "this user has sent as much in a minute as one may (auth.limits.sends_per_minute); send it again later";
    quota.send(most).map_err(|left| SessionError {
        retry_after_ms: Some(millis(left)),
        ..SessionError::new(SessionCode::QuotaExceeded, problem)
    })?;
    room(daemon, store, quota, 0).await
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
