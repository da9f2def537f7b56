//! Sockets that ask for a session which another daemon of the cluster has: they are passed on to it, over one hop. Its bytes
//! are copied as they are; what they mean is the other daemon's business.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use reqwest::Url;

use super::Shared;
use crate::http::causes;
use crate::message::SessionId;
use crate::token::{Asked, AskedSocket};
use crate::users::Grant;

/// What a daemon of the cluster says of the socket that it passes on.
pub(super) const PASS: HeaderName = HeaderName::from_static("x-outrigger-pass");

/// How long the other daemon may take to answer. It said within the last seconds that it lives, so it may just be busy.
const ANSWER: Duration = Duration::from_secs(10);

/// Passes a socket on to the daemon that has its session; `None` where it has to be served here: nobody else has the session, it
/// was passed on already, or the other daemon does not take it.
pub(super) async fn pass_on(
    shared: &Arc<Shared>,
    grant: &Arc<Grant>,
    session: &SessionId,
    parts: &mut Parts,
) -> Option<Response> {
    let passes = shared.gate.passes()?;
    let is_here = parts.headers.contains_key(PASS) || shared.daemon.draining.is_cancelled();
    // What is no request for a socket must not have the other daemon make room for one.
    if is_here || !wants_socket(parts) {
        return None;
    }
    let sessions = Arc::clone(&shared.sessions).of(Arc::clone(grant));
    let address = sessions.address_of(session).await?;
    // Served there, it counts here all the same: taken before the other daemon makes room for it.
    let places = shared.places(grant.role)?;
    let key = parts.headers.get(SEC_WEBSOCKET_KEY)?.to_str().ok()?;
    let asked = Asked {
        address: address.clone(),
        path: parts.uri.path().to_owned(),
        socket: Some(AskedSocket {
            session: session.to_string(),
            key: key.to_owned(),
        }),
    };
    let pass = passes.write(asked, grant)?;
    let answer = match ask(shared, &address, parts, pass).await? {
        Ok(answer) => answer,
        Err(why) => {
            tracing::warn!(%session, address, why, "a socket could not be passed on");
            return None;
        }
    };
    let client = parts.extensions.remove::<OnUpgrade>()?;
    let response = switched(&answer);
    tracing::debug!(%session, address, "a socket is passed on");
    let (stop, grant) = (shared.stop.clone(), Arc::clone(grant));
    shared.daemon.tasks.spawn(async move {
        tokio::select! {
            () = copy(client, answer) => {}
            _ = grant.over() => {}
            () = stop.cancelled() => {}
        }
        drop(places);
    });
    Some(response)
}

/// Asks another daemon for the socket that a client asks for; an error says why it has none. `None` where that cannot be asked.
async fn ask(
    shared: &Shared,
    address: &str,
    parts: &Parts,
    pass: String,
) -> Option<Result<reqwest::Response, String>> {
    let url = target(address, &parts.uri)?;
    let client = shared.peers.get(url.as_str(), None).await.ok()?;
    let mut request = client
        .get(url)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(PASS, pass);
    for name in [SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION] {
        request = request.header(&name, parts.headers.get(&name)?);
    }
    if let Some(protocols) = protocols(&parts.headers) {
        request = request.header(SEC_WEBSOCKET_PROTOCOL, protocols);
    }
    let answer = tokio::time::timeout(ANSWER, request.send()).await;
    Some(match answer {
        Ok(Ok(answer)) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => Ok(answer),
        Ok(Ok(answer)) => Err(answer.status().to_string()),
        Ok(Err(error)) => Err(causes(&error.without_url())),
        Err(_) => Err("it does not answer".to_owned()),
    })
}

/// Returns what a client is answered whose socket another daemon has made.
fn switched(answer: &reqwest::Response) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    for name in [SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL] {
        if let Some(value) = answer.headers().get(&name) {
            headers.insert(name, value.clone());
        }
    }
    response
}

/// Copies both ways until either side ends: neither waits for the other one to close, too.
async fn copy(client: OnUpgrade, answer: reqwest::Response) {
    let (Ok(client), Ok(daemon)) = tokio::join!(client, answer.upgrade()) else {
        return;
    };
    let (mut said, mut client) = tokio::io::split(TokioIo::new(client));
    let (mut answered, mut daemon) = tokio::io::split(daemon);
    tokio::select! {
        _ = tokio::io::copy(&mut said, &mut daemon) => {}
        _ = tokio::io::copy(&mut answered, &mut client) => {}
    }
}

/// Returns whether a request asks for a WebSocket, as the daemon that has the session will look.
fn wants_socket(parts: &Parts) -> bool {
    let has = |name: &HeaderName, wanted: &str| {
        let value = parts.headers.get(name).and_then(|it| it.to_str().ok());
        let mut words = value.into_iter().flat_map(|it| it.split(','));
        words.any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    parts.method == Method::GET
        && has(&CONNECTION, "upgrade")
        && has(&UPGRADE, "websocket")
        && has(&SEC_WEBSOCKET_VERSION, "13")
        && parts.extensions.get::<OnUpgrade>().is_some()
}

/// Returns where a request goes at another daemon: without the token.
fn target(address: &str, uri: &axum::http::Uri) -> Option<Url> {
    let asked = Url::options()
        .base_url(Some(&Url::parse("http://here").ok()?))
        .parse(&uri.to_string())
        .ok()?;
    let mut url = Url::parse(address).ok()?.join(asked.path()).ok()?;
    let rest = asked.query_pairs().filter(|(name, _)| name != "token");
    url.query_pairs_mut().extend_pairs(rest);
    Some(url)
}

/// Returns the subprotocols that a client offers, without the one that carries the token.
fn protocols(headers: &HeaderMap) -> Option<HeaderValue> {
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let offered = offered.filter_map(|it| it.to_str().ok());
    let offered = offered.flat_map(|it| it.split(',')).map(str::trim);
    let rest = offered.filter(|it| !it.starts_with(super::auth::BEARER_PROTOCOL));
    let rest: Vec<_> = rest.collect();
    HeaderValue::from_str(&rest.join(", "))
        .ok()
        .filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_on_has_no_token() {
        let uri = "/ws?token=secret&session=a%26b&after=3&text=1"
            .parse()
            .unwrap();
        let url = target("http://10.0.0.5:4517", &uri).unwrap();
        assert_eq!(
            url.as_str(),
            "http://10.0.0.5:4517/ws?session=a%26b&after=3&text=1"
        );
        let mut headers = HeaderMap::new();
        assert_eq!(protocols(&headers), None);
        headers.append(
            SEC_WEBSOCKET_PROTOCOL,
            HeaderValue::from_static("outrigger.v1, bearer.secret"),
        );
        assert_eq!(protocols(&headers).unwrap(), "outrigger.v1");
        headers.clear();
        headers.append(
            SEC_WEBSOCKET_PROTOCOL,
            HeaderValue::from_static("bearer.secret"),
        );
        assert_eq!(protocols(&headers), None);
    }
}
