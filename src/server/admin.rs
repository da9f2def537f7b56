//! Routes for operators: who works where, what runs, what it costs; and to have the daemon end in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde_json::{Map, Value};

use super::Shared;
use super::auth::Denied;
use super::cluster::{self, Reach};
use crate::message::Money;
use crate::protocol::admin::{
    DrainWanted, Draining, NodeRow, NodeState, NodesReport, SessionRow, SessionsReport, UserRow,
    UsersReport,
};
use crate::protocol::envelope::Timestamp;
use crate::protocol::status::SessionStateName;
use crate::telemetry::metrics;
use crate::users::Grant;

/// The longest that somebody may have the daemon wait for what runs.
const MAX_DRAIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Which daemon this is.
pub(crate) struct Node {
    pub(super) name: String,
    since: String,
}

impl Node {
    /// Returns the one of this name, from now on; of this machine's where it has none.
    pub(crate) fn here(name: Option<&str>) -> Self {
        Self {
            name: name.map_or_else(machine, str::to_owned),
            since: Timestamp::now().to_string(),
        }
    }
}

/// Returns what this machine is called; in a pod, what the pod is.
#[cfg(unix)]
fn machine() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// Returns a name for this machine.
#[cfg(not(unix))]
fn machine() -> String {
    "localhost".to_owned()
}

pub(super) fn add_to(routes: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    routes
        .route("/admin/sessions", get(sessions))
        .route("/admin/users", get(users))
        .route("/admin/nodes", get(nodes))
        .route("/admin/drain", post(drain))
}

/// Fails where whoever was granted this is no operator.
fn may_operate(grant: &Grant) -> Result<(), Denied> {
    match grant.may_operate() {
        true => Ok(()),
        false => Err(Denied {
            status: StatusCode::FORBIDDEN,
            code: "forbidden",
            message: "this is for operators: it takes the daemon's own token, or a user's with the role `operator`"
                .to_owned(),
        }),
    }
}

async fn sessions(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Arc<Grant>>,
    reach: Reach,
) -> Result<Json<SessionsReport>, Denied> {
    may_operate(&grant)?;
    Ok(Json(cluster::sessions(&shared, &grant, reach).await))
}

async fn users(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Arc<Grant>>,
    reach: Reach,
) -> Result<Json<UsersReport>, Denied> {
    may_operate(&grant)?;
    let report = cluster::sessions(&shared, &grant, reach).await;
    Ok(Json(UsersReport {
        silent: report.silent,
        users: by_user(&report.sessions),
    }))
}

async fn nodes(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Arc<Grant>>,
    reach: Reach,
) -> Result<Json<NodesReport>, Denied> {
    may_operate(&grant)?;
    Ok(Json(cluster::nodes(&shared, &grant, reach).await))
}

impl Shared {
    /// Returns the row of this daemon.
    pub(super) fn row(&self) -> NodeRow {
        NodeRow {
            node: self.node.name.clone(),
            here: true,
            url: None,
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            state: match self.daemon.draining.is_cancelled() {
                true => NodeState::Draining,
                false => NodeState::Ready,
            },
            sessions: metrics::SESSIONS.now(),
            running: Some(metrics::EXCHANGES.now()),
            since: Some(self.node.since.clone()),
            renewed_ms: None,
        }
    }
}

async fn drain(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Arc<Grant>>,
    // Whatever its Content-Type: `curl -d` says that it is a form.
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Denied> {
    may_operate(&grant)?;
    let usual = shared.daemon.services.config().shutdown_grace;
    let body = body.map_err(|problem| no_body(problem.status(), &problem.body_text()))?;
    let wanted = drain_wanted(&body)?;
    let within = wanted
        .within_ms
        .map_or(usual, |ms| Duration::from_millis(ms).min(MAX_DRAIN));
    let within = shared.daemon.drain.ask(within);
    tracing::info!(?within, "an operator asked the daemon to end");
    let draining = Draining {
        within_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
        running: metrics::EXCHANGES.now(),
    };
    Ok((StatusCode::ACCEPTED, Json(draining)).into_response())
}

/// Reads the body of a request to drain, which may be empty.
fn drain_wanted(body: &[u8]) -> Result<DrainWanted, Denied> {
    if body.is_empty() {
        return Ok(DrainWanted::default());
    }
    // A list would be read as the fields in their order.
    serde_json::from_slice::<Map<String, Value>>(body)
        .and_then(|fields| serde_json::from_value(Value::Object(fields)))
        .map_err(|problem| no_body(StatusCode::BAD_REQUEST, &problem.to_string()))
}

/// Returns the answer to a request to drain whose body is none.
fn no_body(status: StatusCode, problem: &str) -> Denied {
    Denied {
        status,
        code: "invalid_body",
        message: format!(
            "the body is {{\"withinMs\": MILLISECONDS}}, or empty for shutdown.grace; nothing was begun: {problem}"
        ),
    }
}

/// Adds sessions up by their users.
fn by_user(sessions: &[SessionRow]) -> Vec<UserRow> {
    let mut users: BTreeMap<&str, UserRow> = BTreeMap::new();
    for session in sessions {
        let row = users.entry(&session.user).or_insert_with(|| UserRow {
            user: session.user.clone(),
            sessions: 0,
            running: 0,
            input_tokens: 0,
            output_tokens: 0,
            spent_usd: Money::ZERO,
        });
        let runs = matches!(
            session.state,
            SessionStateName::Running | SessionStateName::RequiresAction
        );
        row.sessions += 1;
        row.running += usize::from(runs);
        row.input_tokens = row.input_tokens.saturating_add(session.input_tokens);
        row.output_tokens = row.output_tokens.saturating_add(session.output_tokens);
        row.spent_usd = row.spent_usd.plus(session.spent_usd);
    }
    users.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::SessionId;
    use crate::protocol::roles::SocketRole;

    #[test]
    fn only_operators_operate() {
        for (role, is_operator, expected) in [
            (SocketRole::Driver, true, true),
            (SocketRole::Driver, false, false),
            (SocketRole::Approver, true, false),
            (SocketRole::Observer, true, false),
        ] {
            let grant = Grant {
                is_operator,
                ..Grant::of_the_daemon(role)
            };
            assert_eq!(may_operate(&grant).is_ok(), expected, "{role:?}");
        }
    }

    #[test]
    fn sessions_are_added_up_by_user() {
        let row = |user: &str, state, micros| SessionRow {
            session_id: SessionId::new("s"),
            user: user.to_owned(),
            node: "n".to_owned(),
            project: None,
            state,
            sockets: 1,
            conversations: 1,
            input_tokens: 10,
            output_tokens: 1,
            spent_usd: Money::from_micros(micros),
            since: String::new(),
        };
        let users = by_user(&[
            row("b", SessionStateName::Idle, 1),
            row("a", SessionStateName::Running, 2),
            row("b", SessionStateName::RequiresAction, 4),
        ]);
        let users: Vec<_> = users
            .iter()
            .map(|it| {
                let money = it.spent_usd.micros();
                (
                    it.user.as_str(),
                    it.sessions,
                    it.running,
                    it.input_tokens,
                    money,
                )
            })
            .collect();
        assert_eq!(users, [("a", 1, 1, 10, 2), ("b", 2, 1, 20, 5)]);
    }
}
