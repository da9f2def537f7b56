//! Where the daemon listens, and the tokens that let somebody in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::{TcpListener, TcpSocket};

use crate::config::Config;
use crate::protocol::roles::SocketRole;
use crate::ready::Fatal;
use crate::token::Tokens;

/// The least characters of a token that guards more than loopback.
const REMOTE_TOKEN_CHARS: usize = 20;

/// Connections that may wait to be taken; the kernel's own bound is often less.
const BACKLOG: u32 = 1024;

/// How often it is looked whether tokens were taken back.
const LOOK: Duration = Duration::from_secs(2);

/// An address that is taken, at which nobody is let in yet.
pub(super) struct Bound {
    socket: TcpSocket,
    pub(super) address: SocketAddr,
}

impl Bound {
    /// Listens. From here on connections are made, so the daemon must be about to take them: a client that gave up
    /// while they waited would still be taken for one.
    pub(super) fn listen(self) -> Result<TcpListener, Fatal> {
        let Self { socket, address } = self;
        socket
            .listen(BACKLOG)
            .map_err(|error| failed(address, &error))
    }
}

/// Takes an address, unless anybody could reach it without a token.
pub(super) fn bind(address: SocketAddr, has_token: bool) -> Result<Bound, Fatal> {
    if !address.ip().is_loopback() && !has_token {
        return Err(Fatal::configuration(
            format!(
                "server.host = {} can be reached from outside, and there is no token",
                address.ip()
            ),
            "set OUTRIGGER_TOKEN, --token-file or --token-stdin, or listen on 127.0.0.1",
        ));
    }
    let bound = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A port whose last connections are not over yet is free again. On Windows it would mean another thing: that a
        // port in use may be taken.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let address = socket.local_addr()?;
        Ok(Bound { socket, address })
    };
    bound().map_err(|error| failed(address, &error))
}

fn failed(address: SocketAddr, error: &std::io::Error) -> Fatal {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => Fatal::port_in_use(address),
        _ => Fatal::configuration(
            format!("failed to listen on {address}: {error}"),
            "change server.host (--host) or server.port (--port)",
        ),
    }
}

/// Returns the token, and whether it was made up here.
pub(super) fn token(
    given: Option<SecretString>,
    address: SocketAddr,
) -> Result<(SecretString, bool), Fatal> {
    let Some(given) = given else {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| Fatal::failed(format!("no random numbers for a token: {error}")))?;
        let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        return Ok((SecretString::from(text), true));
    };
    if given.expose_secret().chars().count() < REMOTE_TOKEN_CHARS {
        if !address.ip().is_loopback() {
            return Err(Fatal::configuration(
                format!(
                    "the token has fewer than {REMOTE_TOKEN_CHARS} characters, too few for a port that can be reached from outside"
                ),
                "make one with: openssl rand -hex 32",
            ));
        }
        tracing::warn!(
            "the token has fewer than {REMOTE_TOKEN_CHARS} characters and can be guessed"
        );
    }
    Ok((given, false))
}

/// Returns what tokens of users are checked by, where there are such; sees to it that what is taken back counts.
pub(super) fn users(config: &Config) -> Result<Option<Arc<Tokens>>, Fatal> {
    let Some(jwt) = &config.auth.jwt else {
        return Ok(None);
    };
    let tokens = Tokens::new(jwt).map_err(|problem| {
        let hint = "auth.jwt.keys and auth.jwt.revoked name files that are there, or nothing";
        Fatal::configuration(format!("users cannot be let in: {problem}"), hint)
    })?;
    let tokens = Arc::new(tokens);
    let looking = Arc::downgrade(&tokens);
    // Not among the tasks that are waited for: it ends with the port.
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(tokens) = looking.upgrade() else {
                return;
            };
            tokens.look_at_revoked().await;
        }
    });
    Ok(Some(tokens))
}

/// Returns the tokens that open the port, with what their sockets may do.
pub(super) fn tokens(token: &SecretString, config: &Config) -> Vec<(SocketRole, SecretString)> {
    let server = &config.server;
    let all = [
        (SocketRole::Driver, Some(token)),
        (SocketRole::Approver, server.approver_token.as_ref()),
        (SocketRole::Observer, server.observer_token.as_ref()),
    ];
    let given = all
        .into_iter()
        .filter_map(|(role, token)| Some((role, token?.clone())));
    given.collect()
}
