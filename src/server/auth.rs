//! Who may talk to the daemon: host, origin and token, checked before anything else of a request.
//!
//! WebSockets are exempt from the same-origin policy, so any page in the user's browser can reach a
//! loopback port; what keeps it out is here. Hosts and origins are parsed and compared whole, never
//! by prefix. See `SECURITY.md`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::cluster::ASKED;
use super::relay::PASS;
use crate::config::HeaderConfig;
use crate::protocol::roles::SocketRole;
use crate::token::{Asked, AskedSocket, MAX_NAME, Passes, Refused, Tokens};
use crate::users::{Grant, User};

/// What the subprotocol that carries a token begins with.
pub(super) const BEARER_PROTOCOL: &str = "bearer.";

/// Where sockets are asked for.
const SOCKETS: &str = "/ws";

pub(crate) struct Gate {
    /// Tokens with what their sockets may do at most.
    tokens: Vec<(SocketRole, SecretString)>,
    /// Origins accepted besides loopback ones, literally.
    origins: Vec<String>,
    /// Hosts accepted besides loopback ones, without port.
    hosts: Vec<String>,
    /// Users with tokens of their own.
    users: Option<Arc<Tokens>>,
    /// Users of a proxy.
    header: Option<HeaderConfig>,
    /// Sockets that other daemons of the cluster pass on.
    cluster: Option<Cluster>,
}

/// How other daemons of the cluster are known here.
struct Cluster {
    passes: Passes,
    /// Where they reach this one, as they know it.
    address: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub status: StatusCode,
    /// For programs.
    pub code: &'static str,
    /// For people, with the setting to change.
    pub message: String,
}

impl Gate {
    /// A gate that opens for these tokens, for loopback, and for what the operator names.
    pub(crate) fn new(
        tokens: Vec<(SocketRole, SecretString)>,
        origins: Vec<String>,
        hosts: Vec<String>,
    ) -> Self {
        Self {
            tokens,
            origins,
            hosts,
            users: None,
            header: None,
            cluster: None,
        }
    }

    /// Opens it for other daemons that know this secret, too, and know this one by its `address`.
    pub(crate) fn for_cluster(
        self,
        secret: Option<&SecretString>,
        address: Option<String>,
    ) -> Self {
        let cluster = |secret| Cluster {
            passes: Passes::new(secret),
            address,
        };
        Self {
            cluster: secret.map(cluster),
            ..self
        }
    }

    /// Returns what writes passes to other daemons of the cluster; `None` where there is none.
    pub(super) fn passes(&self) -> Option<&Passes> {
        self.cluster.as_ref().map(|it| &it.passes)
    }

    /// Opens it for users, too: with tokens, and of a proxy.
    pub(crate) fn for_users(
        self,
        users: Option<Arc<Tokens>>,
        header: Option<HeaderConfig>,
    ) -> Self {
        Self {
            users,
            header,
            ..self
        }
    }

    /// Checks host and origin; every route but `/healthz` needs it.
    pub(crate) fn check_source(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Denied> {
        // It comes from no browser, and names this daemon as the others know it.
        if self.of_cluster(uri, headers).is_some() {
            return Ok(());
        }
        let host = single(headers, &HOST).map_err(|()| host_denied("sent twice"))?;
        let host = host.ok_or_else(|| host_denied("missing"))?;
        for host in [Some(host), uri.authority().map(|whole| whole.as_str())]
            .into_iter()
            .flatten()
        {
            if !self.host_is_allowed(host) {
                return Err(host_denied(host));
            }
        }
        match single(headers, &ORIGIN) {
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.origin_is_allowed(origin) => Ok(()),
            Ok(Some(origin)) => Err(origin_denied(origin)),
            Err(()) => Err(origin_denied("sent twice")),
        }
    }

    /// Checks who it is that asks for what takes a token; returns what that grants. Where it is not known `from` where, it is
    /// from no proxy.
    ///
    /// What a proxy says counts before what a client has: it has asked the client.
    pub(crate) async fn check(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        from: Option<IpAddr>,
    ) -> Result<Arc<Grant>, Denied> {
        if headers.contains_key(PASS) && self.cluster.is_some() {
            let grant = self.of_cluster(uri, headers);
            return grant.map(Arc::new).ok_or_else(unauthorized);
        }
        if let Some(grant) = self.of_proxy(headers, from)? {
            return Ok(Arc::new(grant));
        }
        let given = credential(uri, headers).ok_or_else(unauthorized)?;
        match (self.check_token(&given), &self.users) {
            (Some(role), _) => Ok(Arc::new(Grant::of_the_daemon(role))),
            (None, Some(users)) => users
                .grant(&given)
                .await
                .map_err(|refused| not_let_in(&refused)),
            (None, None) => Err(unauthorized()),
        }
    }

    /// Returns what another daemon of the cluster grants, which passes a socket on to the session that it asks for, or an
    /// operator's question.
    fn of_cluster(&self, uri: &Uri, headers: &HeaderMap) -> Option<Grant> {
        let pass = single(headers, &PASS).ok()??;
        let cluster = self.cluster.as_ref()?;
        // It is for a socket or for what daemons ask each other, and for nothing else.
        let socket = match uri.path() {
            SOCKETS => Some(AskedSocket {
                session: axum::extract::Query::<Session>::try_from_uri(uri)
                    .ok()?
                    .0
                    .session,
                key: single(headers, &SEC_WEBSOCKET_KEY).ok()??.to_owned(),
            }),
            path if ASKED.contains(&path) => None,
            _ => return None,
        };
        let asked = Asked {
            address: cluster.address.clone()?,
            path: uri.path().to_owned(),
            socket,
        };
        cluster.passes.read(&asked, pass)
    }

    /// Returns what the user may that a trusted proxy names; `None` where none does.
    fn of_proxy(&self, headers: &HeaderMap, from: Option<IpAddr>) -> Result<Option<Grant>, Denied> {
        let is_trusted = |it: &&HeaderConfig| from.is_some_and(|from| it.is_trusted(from));
        let Some(config) = self.header.as_ref().filter(is_trusted) else {
            return Ok(None);
        };
        let mut values = headers.get_all(config.name.as_str()).iter();
        let (name, other) = (values.next(), values.next());
        let Some(name) = name else {
            return Ok(None);
        };
        let name = name.to_str().unwrap_or_default().trim();
        let is_name = (1..=MAX_NAME).contains(&name.chars().count());
        if other.is_some() || !is_name {
            return Err(unauthorized());
        }
        Ok(Some(Grant {
            user: User::new(name),
            is_operator: config.operators.contains(name),
            ..Grant::default()
        }))
    }

    /// Checks a token of the daemon's own; returns what it is for.
    fn check_token(&self, given: &str) -> Option<SocketRole> {
        // Digests have one length whatever was given, so the comparison tells nothing of the token's.
        let given = Sha256::digest(given.as_bytes());
        let is_given = |token: &SecretString| {
            let wanted = Sha256::digest(token.expose_secret().as_bytes());
            bool::from(given.as_slice().ct_eq(wanted.as_slice()))
        };
        // All are compared, so that the time tells nothing of which one it was.
        self.tokens.iter().fold(None, |found, (role, token)| {
            let is_it = is_given(token);
            found.max(is_it.then_some(*role))
        })
    }

    fn host_is_allowed(&self, host: &str) -> bool {
        let Some(name) = host_name(host) else {
            return false;
        };
        is_loopback(name)
            || self
                .hosts
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(name))
    }

    fn origin_is_allowed(&self, origin: &str) -> bool {
        let loopback = ["http://", "https://"].iter().any(|scheme| {
            origin
                .strip_prefix(scheme)
                .and_then(host_name)
                .is_some_and(is_loopback)
        });
        loopback || self.origins.iter().any(|allowed| allowed == origin)
    }
}

/// The token that a request carries: header, then subprotocol, then, without an origin, query.
fn credential(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    if let Some(header) = headers.get(AUTHORIZATION) {
        let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
        return scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| token.trim().to_owned());
    }
    let offered = headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|header| header.to_str().ok())
        .flat_map(|list| list.split(','))
        .find_map(|protocol| protocol.trim().strip_prefix(BEARER_PROTOCOL));
    if let Some(token) = offered {
        return Some(token.to_owned());
    }
    if headers.contains_key(ORIGIN) {
        return None;
    }
    let query = axum::extract::Query::<Token>::try_from_uri(uri).ok()?;
    query.0.token
}

#[derive(serde::Deserialize)]
struct Session {
    session: String,
}

#[derive(serde::Deserialize)]
struct Token {
    token: Option<String>,
}

/// The one value of a header; an error where there are several or it is no text.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

/// The name in `name` or `name:port`, where it is nothing else.
fn host_name(host: &str) -> Option<&str> {
    let end_of_name = match host.strip_prefix('[') {
        Some(_) => host.find(']')? + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at_checked(end_of_name)?;
    let port_is_right = match port.strip_prefix(':') {
        None => port.is_empty(),
        Some(digits) => {
            digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok()
        }
    };
    (port_is_right && !name.is_empty()).then_some(name)
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

fn unauthorized() -> Denied {
    Denied {
        status: StatusCode::UNAUTHORIZED,
        code: "unauthorized",
        message: "the token is missing or wrong; send it as `Authorization: Bearer TOKEN`, as subprotocol `bearer.TOKEN`, or, outside of browsers, as `?token=TOKEN`".to_owned(),
    }
}

fn not_let_in(refused: &Refused) -> Denied {
    let wrong = unauthorized();
    match refused {
        Refused::Wrong => wrong,
        refused => Denied {
            message: refused.to_string(),
            ..wrong
        },
    }
}

fn host_denied(host: &str) -> Denied {
    Denied {
        status: StatusCode::FORBIDDEN,
        code: "host_not_allowed",
        message: format!(
            "host {host:?} is not a loopback name; name it in server.allowed_hosts to allow it"
        ),
    }
}

fn origin_denied(origin: &str) -> Denied {
    Denied {
        status: StatusCode::FORBIDDEN,
        code: "origin_not_allowed",
        message: format!(
            "origin {origin:?} is not a loopback origin; name it in server.allowed_origins, or start with --allow-origin, to allow it"
        ),
    }
}

#[cfg(test)]
mod tests;
