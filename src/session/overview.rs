//! What an operator sees of sessions: who has them, where, how they stand and what they cost. Nothing that was said.

use std::sync::OnceLock;
use std::time::Duration;

use futures::future::join_all;
use prometheus::proto::MetricFamily;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::usage::shown;
use super::{Daemon, Session, Sessions, projects};
use crate::message::Usage;
use crate::protocol::admin::{SessionRow, SessionsReport};
use crate::store::AnyStore;
use crate::telemetry::metrics;

/// How long a session has for its row: its task takes requests at once, unless it waits for one of its conversations.
const PATIENCE: Duration = Duration::from_secs(2);

/// That somebody asked the daemon to end once what runs has come to its end.
#[derive(Debug, Default)]
pub(crate) struct DrainRequest {
    within: OnceLock<Duration>,
    asked: CancellationToken,
}

impl DrainRequest {
    /// Asks for it; returns how long what runs may take. The first to ask says so.
    pub(crate) fn ask(&self, within: Duration) -> Duration {
        let within = *self.within.get_or_init(|| within);
        self.asked.cancel();
        within
    }

    /// Waits until somebody asks; returns how long what runs may take.
    pub(crate) async fn asked(&self) -> Duration {
        self.asked.cancelled().await;
        self.within.get().copied().unwrap_or_default()
    }
}

impl Daemon {
    /// Returns all figures of this daemon.
    pub(crate) fn figures(&self) -> prometheus::Result<Vec<MetricFamily>> {
        let store = self.store.as_ref();
        let is_up = store.map(|store| store.failing().is_none());
        let lease = store.and_then(AnyStore::lease).map(|it| metrics::Lease {
            sessions: it.sessions,
            left: it.left.as_secs(),
            taken: it.taken,
            lapses: it.lapses,
        });
        metrics::families(store.and_then(AnyStore::log_bytes), is_up, lease)
    }
}

impl Session {
    /// Returns the row of this session; `node` is where it is.
    pub(super) fn row(&self, node: &str) -> SessionRow {
        let Usage { input, output, .. } = self.shared.totals.usage();
        SessionRow {
            session_id: self.ready.session_id.clone(),
            user: shown(&self.grant.user),
            node: node.to_owned(),
            project: projects::root(&self.shared.workspace),
            state: self.feed.log().status().state,
            sockets: self.sockets().count(),
            conversations: self.conversations.len(),
            input_tokens: input.unwrap_or(0),
            output_tokens: output.unwrap_or(0),
            spent_usd: self.shared.account.spent(),
            since: self.began.to_string(),
        }
    }
}

impl Sessions {
    /// Returns a row for each session that lives; `node` is where they are.
    pub(crate) async fn report(&self, node: &str) -> SessionsReport {
        let all = self.live();
        let rows = all.iter().map(|it| timeout(PATIENCE, it.row(node)));
        let rows = join_all(rows).await;
        let unanswered = rows.iter().filter(|it| it.is_err()).count();
        // One that ended meanwhile has no row.
        let mut sessions: Vec<SessionRow> = rows.into_iter().flatten().flatten().collect();
        sessions.sort_by(|a, b| {
            (&a.since, a.session_id.as_str()).cmp(&(&b.since, b.session_id.as_str()))
        });
        SessionsReport {
            sessions,
            unanswered,
            silent: Vec::new(),
        }
    }
}
