//! The way out of a command where the kernel does not stop its connections: an HTTP proxy on the machine's loopback, the only
//! address to which the sandbox lets that command connect.
//!
//! ```text
//! command: CONNECT example.org:443 ──▶ 127.0.0.1:PORT   may it? ── no ──▶ 403, and why
//!                                          │ yes
//!                                          └─ connects to example.org:443, and joins the two
//! ```
//!
//! `CONNECT` and requests for `http://` addresses are what there is. What knows no proxy has no network.
//!
//! It lets in whoever reaches it. That is this command, and programs that no sandbox confines and that need no proxy.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1 as client;
use hyper::header::{CONNECTION, HOST, HeaderName, HeaderValue, PROXY_AUTHORIZATION, TE, UPGRADE};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::command::Host;
use crate::destinations::{BUFFER, Destinations, MAX_CONNECTIONS, MAX_LOOKUPS, PAUSE, connect};

/// Most bytes of a request's head.
const MAX_HEAD: usize = 64 * 1024;

/// How long the head of a request may take to come, from the end of the request before it.
const HEAD_PATIENCE: Duration = Duration::from_secs(60);

/// Headers that are about the connection to the proxy, and not passed on.
const OF_THE_CONNECTION: [HeaderName; 6] = [
    CONNECTION,
    TE,
    UPGRADE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Variables by which programs are told of a proxy. Some read those in capitals alone, others the others.
const VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// The same for what goes to the machine itself: it does not go by a proxy, and is refused by the sandbox.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Who connects to a host for the command, or says why not.
pub(crate) trait WayOut: Send + Sync + 'static {
    /// # Errors
    /// With [`io::ErrorKind::PermissionDenied`] where the command may not connect to it.
    fn connect(&self, host: Host, port: u16) -> impl Future<Output = io::Result<TcpStream>> + Send;
}

/// Where a command may connect to, by its rules.
#[derive(Debug)]
pub(crate) struct ByRules {
    destinations: Destinations,
    lookups: Arc<Semaphore>,
}

impl ByRules {
    pub(crate) fn new(destinations: Destinations) -> Self {
        Self {
            destinations,
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)),
        }
    }
}

impl WayOut for ByRules {
    async fn connect(&self, host: Host, port: u16) -> io::Result<TcpStream> {
        let targets = self.destinations.targets(host, port, &self.lookups).await?;
        connect(&targets).await
    }
}

/// A proxy, which ends with all its connections when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    _serving: AbortOnDropHandle<()>,
}

impl Proxy {
    /// Starts one on a free port of 127.0.0.1. Must be called within a runtime.
    ///
    /// # Errors
    /// Where no socket can listen.
    pub(crate) async fn start(way: impl WayOut) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let serving = tokio::spawn(serve(listener, Arc::new(way)));
        Ok(Self {
            port,
            _serving: AbortOnDropHandle::new(serving),
        })
    }

    /// Where it listens on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the variables of the environment by which a program finds it.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        let address = format!("http://{}:{}", Ipv4Addr::LOCALHOST, self.port);
        let told = VARIABLES.map(|name| (name, address.clone()));
        let not = EXCEPTIONS.map(|name| (name, "localhost,127.0.0.1,::1".to_owned()));
        // Node.js reads the others where this one says so (since version 24).
        let node = ("NODE_USE_ENV_PROXY", "1".to_owned());
        told.into_iter().chain(not).chain([node])
    }
}

async fn serve<W: WayOut>(listener: TcpListener, way: Arc<W>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(attend(stream, Arc::clone(&way), place))),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// A connection that was made for a `CONNECT`, and the one that waits for it.
struct Tunnel {
    inside: OnUpgrade,
    outside: TcpStream,
}

/// Answers the requests of one connection, of which the last may become a tunnel.
async fn attend<W: WayOut>(stream: TcpStream, way: Arc<W>, _place: OwnedSemaphorePermit) {
    let tunnel = Mutex::new(None);
    let service = service_fn(|request| async {
        let answered = match request.method() {
            &Method::CONNECT => open(request, &*way, &tunnel).await,
            _ => forward(request, &*way).await,
        };
        Ok::<_, hyper::Error>(answered.unwrap_or_else(Refused::answer))
    });
    let served = server::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    // Either end may break off: there is nobody to tell.
    let (Ok(()), Some(tunnel)) = (served, tunnel.into_inner()) else {
        return;
    };
    let Tunnel {
        inside,
        mut outside,
    } = tunnel;
    if let Ok(inside) = inside.await {
        let mut inside = TokioIo::new(inside);
        let joined = copy_bidirectional_with_sizes(&mut inside, &mut outside, BUFFER, BUFFER);
        joined.await.map_or_else(drop, drop);
    }
}

type Answer = Response<Either<Incoming, Full<Bytes>>>;

/// Why a request has no other answer.
struct Refused(StatusCode, String);

impl Refused {
    fn request(why: &str) -> Self {
        Self(StatusCode::BAD_REQUEST, why.to_owned())
    }

    fn connection(host: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self(
                StatusCode::FORBIDDEN,
                format!(
                    "this command may not connect to {host} (tools.bash.hosts, tools.bash.ports)"
                ),
            ),
            io::ErrorKind::TimedOut => Self(
                StatusCode::GATEWAY_TIMEOUT,
                format!("{host} does not answer"),
            ),
            _ => Self(StatusCode::BAD_GATEWAY, format!("{host}: {error}")),
        }
    }

    fn answer(self) -> Answer {
        let text = format!("outrigger: {}\n", self.1);
        let mut answer = Response::new(Either::Right(Full::from(text)));
        *answer.status_mut() = self.0;
        // What comes next on a connection whose tunnel was refused may be meant for the host.
        answer
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        answer
    }
}

/// Connects to what a request names, where the command may.
async fn connect_to(
    way: &impl WayOut,
    authority: Option<&Authority>,
    default_port: Option<u16>,
) -> Result<TcpStream, Refused> {
    let authority = authority.ok_or_else(|| Refused::request("the request names no host"))?;
    let host = authority.host();
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let named = Host::parse(bare.unwrap_or(host));
    let (Some(host), Some(port)) = (named, authority.port_u16().or(default_port)) else {
        return Err(Refused::request(
            "what the request names is no host and port",
        ));
    };
    let name = host.to_string();
    let made = way.connect(host, port).await;
    made.map_err(|error| Refused::connection(&name, &error))
}

/// Answers `CONNECT`.
async fn open(
    mut request: Request<Incoming>,
    way: &impl WayOut,
    tunnel: &Mutex<Option<Tunnel>>,
) -> Result<Answer, Refused> {
    let outside = connect_to(way, request.uri().authority(), None).await?;
    let inside = hyper::upgrade::on(&mut request);
    *tunnel.lock() = Some(Tunnel { inside, outside });
    Ok(Response::new(Either::Right(Full::default())))
}

/// Passes on a request for an `http://` address, and its answer.
async fn forward(mut request: Request<Incoming>, way: &impl WayOut) -> Result<Answer, Refused> {
    let uri = request.uri();
    if uri.scheme() != Some(&Scheme::HTTP) {
        return Err(Refused::request(
            "a proxy takes CONNECT and http:// addresses",
        ));
    }
    let stream = connect_to(way, uri.authority(), Some(80)).await?;
    let named = |error: hyper::http::Error| Refused::request(&error.to_string());
    let authority = uri.authority().map_or("", Authority::as_str);
    // Without the name of a user, which is none of the host's.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = HeaderValue::from_str(host).map_err(|error| named(error.into()))?;
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    *request.uri_mut() = path.parse::<Uri>().map_err(|error| named(error.into()))?;
    let headers = request.headers_mut();
    remove_those_of_the_connection(headers);
    // It is connected to what the address names, whatever this header said.
    headers.insert(HOST, host);
    let failed = |error: hyper::Error| Refused(StatusCode::BAD_GATEWAY, error.to_string());
    let (mut sender, connection) = client::handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    // It is over when its answer is, or when nobody reads that any more.
    tokio::spawn(connection);
    let mut answer = sender.send_request(request).await.map_err(failed)?;
    remove_those_of_the_connection(answer.headers_mut());
    Ok(answer.map(Either::Left))
}

/// Removes the headers that are not passed on, those that `Connection` names among them (RFC 9110, 7.6.1).
fn remove_those_of_the_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in OF_THE_CONNECTION.into_iter().chain(named) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests;
