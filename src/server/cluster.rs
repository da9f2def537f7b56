//! What an operator asks of all daemons that have one database: the one that is asked asks the others, over one hop, by a pass.
//! One that does not answer has the row that the database has of it.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use futures::future::join_all;
use reqwest::Url;
use serde::de::DeserializeOwned;

use super::Shared;
use super::relay::PASS;
use crate::http;
use crate::protocol::admin::{NodeRow, NodeState, NodesReport, SessionsReport};
use crate::store::postgres::Process;
use crate::token::Asked;
use crate::units::millis;
use crate::users::Grant;

/// How long another daemon may take to answer: an operator waits for all of them.
const ANSWER: Duration = Duration::from_secs(4);

/// The most bytes of an answer: a row for each of the sessions that a daemon may have, many times over.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// What stands for daemons that the database does not name.
const UNKNOWN: &str = "the database, which knows the other daemons,";

const NODES: &str = "/admin/nodes";
const SESSIONS: &str = "/admin/sessions";

/// What another daemon may ask for, besides sockets: by a pass for that path.
pub(super) const ASKED: [&str; 2] = [NODES, SESSIONS];

/// Of which daemons something is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Of this one: another one asks, or somebody who wants no more (`?here=1`).
    Here,
    /// Of all that have the database.
    All,
}

impl<S: Sync> FromRequestParts<S> for Reach {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let asks_here = parts
            .uri
            .query()
            .is_some_and(|it| it.split('&').any(|it| it == "here=1"));
        Ok(match asks_here || parts.headers.contains_key(PASS) {
            true => Self::Here,
            false => Self::All,
        })
    }
}

/// Returns a row for each daemon.
pub(super) async fn nodes(shared: &Shared, grant: &Grant, reach: Reach) -> NodesReport {
    let mut own = shared.row();
    let (processes, silent) = processes(shared, reach).await;
    if let Some(process) = processes.iter().find(|it| it.is_own) {
        own.url.clone_from(&process.url);
        own.renewed_ms = process.renewed.map(millis);
    }
    let others = processes.into_iter().filter(|it| !it.is_own);
    let others = others.map(async |process| {
        let report = ask::<NodesReport>(shared, grant, &process, NODES).await;
        seen(process, report.and_then(|it| it.nodes.into_iter().next()))
    });
    let mut nodes = join_all(others).await;
    nodes.push(own);
    nodes.sort_by(|a, b| a.node.cmp(&b.node));
    NodesReport { nodes, silent }
}

/// Returns a row for each session that lives at any of them.
pub(super) async fn sessions(shared: &Shared, grant: &Grant, reach: Reach) -> SessionsReport {
    let own = shared.sessions.report(&shared.node.name);
    let others = async {
        let (processes, silent) = processes(shared, reach).await;
        // One whose lease is over has none that live.
        let others = processes
            .into_iter()
            .filter(|it| !it.is_own && it.renewed.is_some());
        let others = others.map(async |process| {
            let report = ask::<SessionsReport>(shared, grant, &process, SESSIONS).await;
            report.ok_or(process.name)
        });
        (join_all(others).await, silent)
    };
    let (mut all, (others, silent)) = tokio::join!(own, others);
    all.silent.extend(silent);
    for other in others {
        match other {
            Ok(report) => {
                all.sessions.extend(report.sessions);
                all.unanswered += report.unanswered;
            }
            Err(name) => all.silent.push(name),
        }
    }
    all
}

/// Returns the daemons that the database knows, where others are to be asked, and what stands for them where it does not say.
async fn processes(shared: &Shared, reach: Reach) -> (Vec<Process>, Vec<String>) {
    let Some(store) = shared.daemon.store.as_ref().filter(|_| reach == Reach::All) else {
        return Default::default();
    };
    match tokio::time::timeout(ANSWER, store.processes()).await {
        Ok(Ok(processes)) => return (processes, Vec::new()),
        Ok(Err(error)) => tracing::warn!(%error, "the database does not say which daemons have it"),
        Err(_) => tracing::warn!("the database does not say in time which daemons have it"),
    }
    (Vec::new(), vec![UNKNOWN.to_owned()])
}

/// Asks another daemon of the cluster for itself; `None` where nobody knows how, or it does not answer.
async fn ask<R: DeserializeOwned>(
    shared: &Shared,
    grant: &Grant,
    process: &Process,
    path: &'static str,
) -> Option<R> {
    process.renewed?;
    let address = process.url.as_deref()?;
    let asked = Asked {
        address: address.to_owned(),
        path: path.to_owned(),
        socket: None,
    };
    let pass = shared.gate.passes()?.write(asked, grant)?;
    let url = Url::parse(address).ok()?.join(path).ok()?;
    let client = shared.peers.get(url.as_str(), None).await.ok()?;
    let asked = async {
        let answer = client.get(url).header(PASS, pass).send().await?;
        http::body(answer.error_for_status()?, ANSWER_BYTES).await
    };
    let why = match tokio::time::timeout(ANSWER, asked).await {
        Ok(Ok(body)) => match serde_json::from_slice(&body.bytes) {
            Ok(report) => return Some(report),
            Err(error) => error.to_string(),
        },
        Ok(Err(error)) => http::causes(&error.without_url()),
        Err(_) => "it does not answer".to_owned(),
    };
    tracing::warn!(
        node = process.name,
        why,
        "another daemon could not be asked"
    );
    None
}

/// Returns the row of another daemon, of what the database has of it and what it says itself.
fn seen(process: Process, says: Option<NodeRow>) -> NodeRow {
    let Process {
        name,
        url,
        renewed,
        sessions,
        ..
    } = process;
    let known = NodeRow {
        node: name,
        here: false,
        url,
        version: None,
        state: match renewed {
            Some(_) => NodeState::Unknown,
            None => NodeState::Gone,
        },
        sessions: usize::try_from(sessions).unwrap_or(usize::MAX),
        running: None,
        since: None,
        renewed_ms: renewed.map(millis),
    };
    match says {
        Some(says) => NodeRow {
            version: says.version,
            state: says.state,
            sessions: says.sessions,
            running: says.running,
            since: says.since,
            ..known
        },
        None => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_daemon_says_of_itself_counts_before_what_the_database_has() {
        let process = |renewed: Option<u64>| Process {
            name: "two".to_owned(),
            url: Some("http://10.0.0.6:4517".to_owned()),
            renewed: renewed.map(Duration::from_millis),
            sessions: 3,
            is_own: false,
        };
        for (renewed, expected) in [(Some(1_500), NodeState::Unknown), (None, NodeState::Gone)] {
            let row = seen(process(renewed), None);
            assert_eq!(
                (row.state, row.renewed_ms, row.sessions),
                (expected, renewed, 3)
            );
            assert_eq!((row.running, row.version.as_deref()), (None, None));
        }
        let says = NodeRow {
            // A name and an address are the database's: others find it by these.
            node: "another".to_owned(),
            here: true,
            state: NodeState::Draining,
            sessions: 1,
            running: Some(2),
            ..seen(process(None), None)
        };
        let row = seen(process(Some(5)), Some(says));
        assert_eq!(
            (row.node.as_str(), row.here, row.renewed_ms),
            ("two", false, Some(5))
        );
        assert_eq!(
            (row.state, row.sessions, row.running),
            (NodeState::Draining, 1, Some(2))
        );
    }

    #[tokio::test]
    async fn who_comes_by_a_pass_asks_for_one_daemon() {
        for (uri, pass, expected) in [
            ("/admin/nodes", false, Reach::All),
            ("/admin/nodes?here=1", false, Reach::Here),
            ("/admin/nodes?a=b&here=1", false, Reach::Here),
            ("/admin/nodes?here=0", false, Reach::All),
            ("/admin/nodes", true, Reach::Here),
        ] {
            let mut request = axum::http::Request::get(uri);
            if pass {
                request = request.header(PASS, "x");
            }
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            let reach = Reach::from_request_parts(&mut parts, &()).await.unwrap();
            assert_eq!(reach, expected, "{uri} {pass}");
        }
    }
}
