//! Where the daemon listens, and the token that lets somebody in.

use std::net::SocketAddr;

use base64::Engine as _;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::{TcpListener, TcpSocket};

use crate::ready::Fatal;

/// The least characters of a token that guards more than loopback.
const REMOTE_TOKEN_CHARS: usize = 20;

/// Connections that may wait to be taken; the kernel's own bound is often less.
const BACKLOG: u32 = 1024;

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
