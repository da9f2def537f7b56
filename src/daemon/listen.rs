//! Where the daemon listens, and the token that lets somebody in.

use std::net::SocketAddr;

use base64::Engine as _;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpListener;

use crate::ready::Fatal;

/// The least characters of a token that guards more than loopback.
const REMOTE_TOKEN_CHARS: usize = 20;

/// Listens at an address, unless anybody could reach it without a token.
pub(super) async fn bind(
    address: SocketAddr,
    has_token: bool,
) -> Result<(TcpListener, SocketAddr), Fatal> {
    if !address.ip().is_loopback() && !has_token {
        return Err(Fatal::configuration(
            format!(
                "server.host = {} can be reached from outside, and there is no token",
                address.ip()
            ),
            "set OUTRIGGER_TOKEN, --token-file or --token-stdin, or listen on 127.0.0.1",
        ));
    }
    let listener = TcpListener::bind(address).await;
    listener
        .and_then(|listener| listener.local_addr().map(|address| (listener, address)))
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => Fatal::port_in_use(address),
            _ => Fatal::configuration(
                format!("failed to listen on {address}: {error}"),
                "change server.host (--host) or server.port (--port)",
            ),
        })
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
