//! For how long a daemon may have sessions that are kept in a database, which others may have as well.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::UserSessions;
use super::kept::failed;
use super::line::Place;
use crate::message::SessionId;
use crate::protocol::SessionCode;
use crate::protocol::event::SessionError;
use crate::store::{self, Store as _, UserStore};

/// How long is waited for a session whose daemon does not say any more that it lives: a little longer than its lease lasts,
/// and how often it is looked.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_secs(1);

/// What all sessions live under. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Tenure {
    /// Cancelled when everything has to end.
    stop: CancellationToken,
    now: Arc<Mutex<CancellationToken>>,
    /// Cancelled when it is over for good.
    lost: CancellationToken,
}

impl Tenure {
    /// Begins with none.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self {
            now: Arc::new(Mutex::new(stop.child_token())),
            stop,
            lost: CancellationToken::new(),
        }
    }

    /// Returns what is cancelled when the sessions of now have to end.
    pub(super) fn now(&self) -> CancellationToken {
        self.now.lock().clone()
    }

    /// Ends all sessions: another daemon may have them soon. Their clients come back to wherever they are then.
    pub(crate) fn lapse(&self) {
        let next = self.stop.child_token();
        mem::replace(&mut *self.now.lock(), next).cancel();
    }

    /// The same, and this daemon has none any more.
    pub(crate) fn lose(&self) {
        self.lapse();
        self.lost.cancel();
    }

    /// Waits until this daemon may have no session any more.
    pub(crate) async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

/// Begins a session anew. Waits for a daemon that has it and does not say any more that it lives.
pub(super) async fn open(
    store: &UserStore,
    id: &SessionId,
    place: &mut Place,
) -> Result<Option<outrigger_store::Session>, store::Error> {
    let until = Instant::now() + PATIENCE;
    let mut before = Duration::MAX;
    loop {
        let opened = store.open(id.as_str()).await;
        match opened {
            // One that has more time left than before lives.
            Err(store::Error::Elsewhere { left, .. })
                if left <= before && Instant::now() < until =>
            {
                before = left;
                place.away(tokio::time::sleep(LOOK)).await;
            }
            opened => return opened,
        }
    }
}

impl UserSessions {
    /// Returns whether a session could not be opened for now: another daemon has it, or may have it before this one can look.
    /// Whoever comes back to it wants no other one.
    pub(crate) fn may_be_elsewhere(&self, problem: &SessionError) -> bool {
        match problem.code {
            SessionCode::SessionElsewhere => true,
            SessionCode::StoreUnavailable => self.daemon().services.config().cluster.is_some(),
            _ => false,
        }
    }

    /// Fails where another daemon has a session, or where nobody can tell.
    pub(crate) async fn is_here(&self, id: &SessionId) -> Result<(), SessionError> {
        let Some(kept) = self.kept() else {
            return Ok(());
        };
        let is_here = kept.is_here(id.as_str()).await;
        is_here.map_err(|error| failed(&error))
    }

    /// Returns the address of the daemon that has a session; `None` where it is here, nobody has it, or no address is known.
    pub(crate) async fn address_of(&self, id: &SessionId) -> Option<String> {
        if self.find(id).is_some() {
            return None;
        }
        match self.kept()?.is_here(id.as_str()).await {
            Err(store::Error::Elsewhere { url, .. }) => url,
            _ => None,
        }
    }
}
