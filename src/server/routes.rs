//! The routes, each behind the gate it needs.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocketUpgrade};
use axum::extract::{FromRequestParts as _, Query, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use super::admin;
use super::auth::Denied;
use super::callback;
use super::console;
use super::relay;
use super::waiting::Place;
use super::{Peer, Shared};
use crate::acp;
use crate::connection::{self, LastActivity, UpgradeOptions};
use crate::mcp;
use crate::message::SessionId;
use crate::packed::{self, Packed};
use crate::protocol::SUBPROTOCOL;
use crate::protocol::command::Resume;
use crate::protocol::roles::{SocketId, SocketRole};
use crate::session::Entrance;
use crate::telemetry::metrics;
use crate::users::Grant;

/// Bytes that a socket's write buffer may hold: what is handed over is flushed batch by batch, so
/// this only has to be more than the largest single frame, a whole history.
const WRITE_BUFFER: usize = 256 * 1024 * 1024;

/// Bytes asked of a socket at once. The library clears as many whenever it looks for a frame, and whatever wakes a
/// connection makes it look: its default of 128 KiB was 8 % of the time in a flood of deltas.
const READ_CHUNK: usize = 8 * 1024;

/// Bytes written to a socket before the system is called.
const WRITE_CHUNK: usize = 64 * 1024;

/// Names a socket for the Agent Client Protocol.
const ACP_CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");

/// RFC 6455: try again later.
const TRY_LATER: u16 = 1013;

/// Returns the routes. A layer is around the routes above it; built in one go, since each part that is merged and each
/// layer takes all routes apart again, at each start.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let with_console = shared.daemon.services.config().server.console;
    let routes = Router::new()
        .route("/ws", get(upgrade))
        .route("/acp", get(upgrade_to_acp))
        .route("/metrics", get(figures));
    let routes = admin::add_to(routes).method_not_allowed_fallback(another_method);
    let with_token = routes.layer(middleware::from_fn_with_state(
        Arc::clone(&shared),
        need_token,
    ));
    let routes = with_token
        .route("/readyz", get(ready))
        .route(mcp::CALLBACK, get(callback::callback))
        .route("/schema.json", get(protocol_schema))
        .route("/asyncapi.json", get(protocol_asyncapi))
        .fallback(nothing_here);
    let from_here = match with_console {
        true => console::add_to(routes),
        false => routes,
    };
    from_here
        .method_not_allowed_fallback(another_method)
        .layer(middleware::from_fn_with_state(
            Arc::clone(&shared),
            need_source,
        ))
        .route("/healthz", get(|| async { "ok" }).fallback(another_method))
        .layer((
            SetResponseHeaderLayer::if_not_present(
                CACHE_CONTROL,
                HeaderValue::from_static("no-store"),
            ),
            SetResponseHeaderLayer::overriding(
                X_CONTENT_TYPE_OPTIONS,
                HeaderValue::from_static("nosniff"),
            ),
            CatchPanicLayer::new(),
        ))
        .with_state(shared)
}

async fn need_source(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    match shared.gate.check_source(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(denied) => denied.into_response(),
    }
}

async fn need_token(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response {
    let from = request.extensions().get::<Peer>().map(|peer| peer.0);
    let (uri, headers) = (request.uri().clone(), request.headers().clone());
    match shared.gate.check(&uri, &headers, from).await {
        Ok(grant) => {
            request.extensions_mut().insert(grant);
            if let Some(place) = request.extensions().get::<Arc<Place>>() {
                place.admit();
            }
            next.run(request).await
        }
        Err(denied) => {
            tokio::time::sleep(shared.waiting.failed(Instant::now())).await;
            denied.into_response()
        }
    }
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        tracing::warn!(code = self.code, why = %self.message, "request turned away");
        let body = serde_json::json!({ "code": self.code, "message": self.message });
        (self.status, Json(body)).into_response()
    }
}

async fn nothing_here() -> Response {
    let message = "nothing here; the WebSocket is at /ws, and for editors at /acp";
    refused(StatusCode::NOT_FOUND, "not_found", message)
}

/// The header `Allow` is added by the router.
async fn another_method() -> Response {
    let message = "this method is not allowed here; the header `Allow` names those that are";
    refused(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        message,
    )
}

async fn ready(State(shared): State<Arc<Shared>>) -> (StatusCode, &'static str) {
    if shared.daemon.draining.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else {
        (StatusCode::OK, "ok")
    }
}

async fn figures(
    State(shared): State<Arc<Shared>>,
    Extension(grant): Extension<Arc<Grant>>,
) -> Response {
    // They are sums of all users.
    if !grant.is_operator {
        let denied = Denied {
            status: StatusCode::FORBIDDEN,
            code: "forbidden",
            message: "the daemon's figures are for operators, and this token is none of theirs"
                .to_owned(),
        };
        return denied.into_response();
    }
    const FORM: &str = "text/plain; version=0.0.4; charset=utf-8";
    let families = shared.daemon.figures();
    families
        .and_then(|families| metrics::text(&families))
        .map(|figures| ([(CONTENT_TYPE, FORM)], figures))
        .map_err(|error| {
            tracing::error!(%error, "figures that cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR
        })
        .into_response()
}

/// The schema of every frame, unpacked at the first request.
async fn protocol_schema() -> impl IntoResponse {
    static SCHEMA: LazyLock<String> = LazyLock::new(|| compact(packed::SCHEMA));
    ([(CONTENT_TYPE, "application/json")], SCHEMA.as_str())
}

/// The same as AsyncAPI, unpacked at the first request.
async fn protocol_asyncapi() -> impl IntoResponse {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| compact(packed::ASYNCAPI));
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str())
}

/// The document without blanks between its parts.
fn compact(document: Packed) -> String {
    let text = document.text();
    serde_json::from_str(&text).map_or(text, |value: serde_json::Value| value.to_string())
}

/// Names of what `/ws` may be asked for.
const PARAMETERS: [&str; 8] = [
    "token", "session", "after", "text", "project", "role", "takeOver", "client",
];

/// How long the name of a client may be: long enough that nobody guesses a random one.
const CLIENT_CHARS: RangeInclusive<usize> = 16..=128;

/// Returns a parameter that is none by one letter, and which one is. Others are ignored: a later client may have more.
fn misspelt(names: &BTreeMap<String, IgnoredAny>) -> Option<(&str, &'static str)> {
    names.keys().find_map(|name| {
        let near = |known: &&str| strsim::damerau_levenshtein(known, name) == 1;
        Some((name.as_str(), PARAMETERS.into_iter().find(near)?))
    })
}

/// What `/ws` may be asked for besides the token.
#[derive(Deserialize)]
struct Wanted {
    session: Option<SessionId>,
    /// A number; what is none is 0, for everything that is kept.
    after: Option<String>,
    /// `1` for a person who types lines.
    text: Option<String>,
    /// The folder that a new session works in.
    project: Option<String>,
    /// `driver`, `approver` or `observer`.
    role: Option<String>,
    /// `1` to drive a session that another socket drives.
    #[serde(rename = "takeOver")]
    take_over: Option<String>,
    /// A name that the client made up and that nobody can guess.
    client: Option<String>,
}

impl Wanted {
    /// Returns as what a socket comes, whose token allows this much. An error says which word is wrong.
    fn entrance(&self, allowed: SocketRole) -> Result<Entrance, String> {
        let role = match self.role.as_deref() {
            // One that may not drive has a role all the same.
            None => Some(allowed).filter(|allowed| *allowed < SocketRole::Driver),
            Some(word) => {
                let role = [
                    SocketRole::Driver,
                    SocketRole::Approver,
                    SocketRole::Observer,
                ]
                .into_iter()
                .find(|role| role.word() == word);
                Some(role.ok_or_else(|| {
                    format!("`role` is {word:?}; it is `driver`, `approver` or `observer`")
                })?)
            }
        };
        if role.is_some_and(|role| role > allowed) {
            return Err(format!(
                "this token is for the role `{}`, and no more",
                allowed.word()
            ));
        }
        if role.is_some_and(|role| role < SocketRole::Driver) && self.session.is_none() {
            return Err(
                "a socket that does not drive names its session: add `session=ID`".to_owned(),
            );
        }
        Ok(Entrance {
            role,
            take_over: self.take_over.as_deref() == Some("1"),
            socket: SocketId::new(self.client.as_deref()),
        })
    }
}

async fn upgrade(
    State(shared): State<Arc<Shared>>,
    Extension(activity): Extension<Arc<LastActivity>>,
    Extension(grant): Extension<Arc<Grant>>,
    wanted: Result<Query<Wanted>, QueryRejection>,
    Query(names): Query<BTreeMap<String, IgnoredAny>>,
    request: Request,
) -> Response {
    if let Some((name, near)) = misspelt(&names) {
        // Whoever wants another project and gets this one would find out too late.
        let message = format!("there is no parameter `{name}`; did you mean `{near}`?");
        return refused(StatusCode::BAD_REQUEST, "unknown_parameter", &message);
    }
    let wanted = match wanted {
        Ok(Query(wanted)) => wanted,
        Err(problem) => {
            let message = problem.body_text();
            return refused(problem.status(), "invalid_parameter", &message);
        }
    };
    let allowed = grant.role;
    let entrance = match wanted.entrance(allowed) {
        Ok(entrance) => entrance,
        Err(message) => return refused(StatusCode::BAD_REQUEST, "invalid_role", &message),
    };
    if let Some(client) = &wanted.client
        && !CLIENT_CHARS.contains(&client.chars().count())
    {
        let (least, most) = (CLIENT_CHARS.start(), CLIENT_CHARS.end());
        let message = format!(
            "`client` is a name that nobody can guess, of {least} to {most} characters: make a random one, and give the same one whenever this client connects"
        );
        return refused(StatusCode::BAD_REQUEST, "invalid_client", &message);
    }
    let (mut parts, _) = request.into_parts();
    if let Some(session) = &wanted.session
        && let Some(passed_on) = relay::pass_on(&shared, &grant, session, &mut parts).await
    {
        return passed_on;
    }
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &shared).await;
    let upgrade = match upgrade.map(|it| prepared(&shared, it)) {
        Ok(Ok(upgrade)) => upgrade.protocols([SUBPROTOCOL]),
        Ok(Err(draining)) => return *draining,
        Err(problem) => return no_socket(&problem),
    };
    // Taken before the upgrade, so that no socket slips between it and the handler.
    let tracked = shared.daemon.tasks.token();
    let places = shared.places(allowed);
    upgrade.on_upgrade(move |socket| async move {
        let _tracked = tracked;
        let Some(_places) = places else {
            return turn_away(socket).await;
        };
        let after = wanted.after.and_then(|after| after.parse().ok());
        let resume = wanted.session.map(|session_id| Resume {
            session_id,
            last_seq: after.unwrap_or(0),
        });
        let text = wanted.text.as_deref() == Some("1");
        let options = UpgradeOptions {
            resume,
            project: wanted.project,
            text,
            entrance,
        };
        let sessions = Arc::clone(&shared.sessions).of(grant);
        let stop = shared.stop.child_token();
        connection::serve(socket, activity, sessions, options, stop).await;
    })
}

/// Returns the answer to a request that is turned away.
fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    let body = serde_json::json!({ "code": code, "message": message });
    (status, Json(body)).into_response()
}

/// Returns the answer to a request that a WebSocket does not begin with.
fn no_socket(problem: &WebSocketUpgradeRejection) -> Response {
    let why = problem.body_text();
    let message =
        format!("here a WebSocket begins; connect with a client for one, such as wscat: {why}");
    refused(problem.status(), "no_websocket", &message)
}

/// Puts the bounds of a socket on an upgrade; the answer to it while the daemon ends.
fn prepared(shared: &Shared, upgrade: WebSocketUpgrade) -> Result<WebSocketUpgrade, Box<Response>> {
    if shared.daemon.draining.is_cancelled() {
        let message = "the daemon is shutting down and takes no new sockets";
        let answer = refused(StatusCode::SERVICE_UNAVAILABLE, "draining", message);
        return Err(Box::new(answer));
    }
    let max_frame_bytes = shared.daemon.services.config().server.max_frame_bytes;
    Ok(upgrade
        .max_message_size(max_frame_bytes)
        .max_frame_size(max_frame_bytes)
        .read_buffer_size(READ_CHUNK)
        .write_buffer_size(WRITE_CHUNK)
        .max_write_buffer_size(WRITE_BUFFER))
}

/// A socket for the Agent Client Protocol.
async fn upgrade_to_acp(
    State(shared): State<Arc<Shared>>,
    Extension(activity): Extension<Arc<LastActivity>>,
    Extension(grant): Extension<Arc<Grant>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(problem) => return no_socket(&problem),
    };
    if grant.role < SocketRole::Driver {
        return refused(
            StatusCode::BAD_REQUEST,
            "invalid_role",
            "an editor drives its sessions, and this token is for less",
        );
    }
    let upgrade = match prepared(&shared, upgrade) {
        Ok(upgrade) => upgrade.protocols([SUBPROTOCOL]),
        Err(draining) => return *draining,
    };
    // Taken before the upgrade, so that no socket slips between it and the handler.
    let tracked = shared.daemon.tasks.token();
    let place = Arc::clone(&shared.sockets).try_acquire_owned();
    let mut response = upgrade.on_upgrade(move |socket| async move {
        let _tracked = tracked;
        let Ok(_place) = place else {
            return turn_away(socket).await;
        };
        let sessions = Arc::clone(&shared.sessions).of(grant);
        let stop = shared.stop.child_token();
        acp::socket(socket, activity, sessions, stop).await;
    });
    // Nothing is asked for by it; clients want to know it.
    let id = SessionId::random().map(|id| HeaderValue::from_str(id.as_str()));
    if let Some(Ok(id)) = id {
        response.headers_mut().insert(ACP_CONNECTION_ID, id);
    }
    response
}

async fn turn_away(mut socket: axum::extract::ws::WebSocket) {
    let frame = CloseFrame {
        code: TRY_LATER,
        reason: "too many connections (server.max_connections)".into(),
    };
    // It is turned away either way.
    drop(socket.send(Message::Close(Some(frame))).await);
}
