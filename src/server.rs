//! The listening port: routes, who is let in, limits, and the end.
//!
//! What happens on a socket is [`crate::connection`]'s. Two things axum leaves to its caller are done
//! here: heads that never end are given up after `HEAD_TIMEOUT`, and the task of an upgraded socket
//! is tracked from before the upgrade, since a graceful shutdown does not wait for it.

mod admin;
pub(crate) mod auth;
mod callback;
mod cluster;
mod console;
mod relay;
mod routes;
mod waiting;
mod watched;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::connection::LastActivity;
use crate::http::Clients;
use crate::protocol::roles::SocketRole;
use crate::session::{Daemon, Sessions};
pub(crate) use admin::Node;
use auth::Gate;
use waiting::Place;
pub(crate) use waiting::Waiting;
use watched::Watched;

/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest head of a request, in bytes.
const HEAD_BYTES: usize = 16 * 1024;

/// How long to wait where the system has no descriptor left for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Shared {
    /// Which daemon this is, for operators.
    pub node: Node,
    pub gate: Gate,
    pub sessions: Arc<Sessions>,
    pub daemon: Arc<Daemon>,
    /// Cancelled when sockets have to close.
    pub stop: CancellationToken,
    /// The way to other daemons of the cluster.
    pub peers: Clients,
    pub sockets: Arc<Semaphore>,
    /// Places for those whose token does not let them drive: half of all.
    pub guests: Arc<Semaphore>,
    /// Connections that have not shown the token yet.
    pub waiting: Arc<Waiting>,
}

/// Room for a socket, until it is dropped.
struct Places {
    _socket: OwnedSemaphorePermit,
    _guest: Option<OwnedSemaphorePermit>,
}

impl Shared {
    /// Makes room for a socket whose token allows this much; `None` where there is none left.
    fn places(&self, allowed: SocketRole) -> Option<Places> {
        let socket = Arc::clone(&self.sockets).try_acquire_owned().ok()?;
        // Who may not drive does not keep out who may.
        let guest = match allowed {
            SocketRole::Driver => None,
            _ => Some(Arc::clone(&self.guests).try_acquire_owned().ok()?),
        };
        Some(Places {
            _socket: socket,
            _guest: guest,
        })
    }
}

/// The address that a connection comes from.
#[derive(Clone, Copy, Debug)]
struct Peer(IpAddr);

/// Serves until `stop` is cancelled: while the daemon drains, whoever asks gets an error that says so.
///
/// Connections without the token have places of their own, see `waiting`; those with it are sockets,
/// which have theirs, or end with their answer.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let service = routes::router(Arc::clone(&shared));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shared.stop.cancelled() => return,
        };
        let (stream, peer) = match accepted {
            Ok((stream, address)) => (stream, Peer(address.ip())),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let place = shared.waiting.enter();
        let service = TowerToHyperService::new(service.clone());
        let stop = shared.stop.clone();
        shared
            .daemon
            .tasks
            .spawn(connect((stream, peer), service, place, stop));
    }
}

async fn connect(
    (stream, peer): (TcpStream, Peer),
    service: TowerToHyperService<axum::Router>,
    place: Arc<Place>,
    stop: CancellationToken,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    let evicted = place.evicted.clone();
    let activity = Arc::new(LastActivity::default());
    let stream = Watched::new(stream, Arc::clone(&activity));
    let service = service_fn(move |mut request: Request<Incoming>| {
        let extensions = request.extensions_mut();
        extensions.insert(peer);
        extensions.insert(Arc::clone(&place));
        extensions.insert(Arc::clone(&activity));
        service.call(request)
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let serving = evicted.run_until_cancelled(serving);
    match stop.run_until_cancelled(serving).await {
        Some(Some(Err(error))) => tracing::debug!(%error, "connection failed"),
        Some(None) => tracing::debug!("a connection without a token made room for another"),
        Some(Some(Ok(()))) | None => {}
    }
}
