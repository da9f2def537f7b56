//! `outrigger healthcheck`: asks a running daemon whether it is alive, as `HEALTHCHECK` in a container does.
//!
//! One GET without an HTTP client or TLS: it runs every few seconds for as long as the daemon lives.

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::Builder;

use super::{complain, configured, exit_code, print};
use crate::address::Address;
use crate::arguments::HealthcheckArguments;
use crate::config;
use crate::ready::reachable;

/// How long the daemon may take altogether.
const LIMIT: Duration = Duration::from_secs(3);

/// The most bytes read of the answer; its first line is all that counts.
const ANSWER_BYTES: u64 = 1024;

/// Where a daemon says that it is alive.
const HEALTH: &str = "/healthz";

/// Port of a URL that names none.
const HTTP_PORT: u16 = 80;

/// Prints `ok` and returns 0 where the daemon says that it is alive, 1 where it does not.
pub fn healthcheck(arguments: &HealthcheckArguments) -> ExitCode {
    let authority = match &arguments.url {
        Some(url) => authority(url),
        None => config::load(&arguments.sources())
            .map_err(|errors| errors.to_string())
            .and_then(|loaded| configured(&loaded))
            .map(|address| address.to_string()),
    };
    let outcome = authority
        .and_then(|authority| ask(&authority).map_err(|error| unanswered(&authority, &error)));
    match &outcome {
        Ok(()) => print("ok\n").unwrap_or_default(),
        Err(problem) => complain(problem),
    }
    exit_code(outcome.is_ok())
}

/// Says why nothing was heard of a daemon there; where nobody listens, that it may be somewhere else.
fn unanswered(authority: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!(
            "no daemon answers at http://{authority} (connection refused); start it, or name its port with --port, or another address with --url"
        ),
        _ => format!("http://{authority}{HEALTH}: {error}"),
    }
}

/// Host and port of a URL such as `http://127.0.0.1:4517` or `ws://localhost:4517/ws`.
fn authority(url: &str) -> Result<String, String> {
    let url = Address::parse(url)?.base();
    if url.scheme() != "http" {
        let why = "only http:// can be asked; behind a proxy with TLS ask the proxy";
        return Err(format!("--url: {why}"));
    }
    let host = url.host_str().unwrap_or_default();
    Ok(format!("{host}:{}", url.port().unwrap_or(HTTP_PORT)))
}

/// Whether a daemon that listens there says that it is alive.
pub(super) async fn is_alive(address: SocketAddr) -> bool {
    let authority = reachable(address).to_string();
    get(&authority, HEALTH, "").await.is_ok()
}

/// Whether a daemon that listens there takes this token: it is the one that was started with it.
pub(super) async fn takes_token(address: SocketAddr, token: &SecretString) -> bool {
    let authority = reachable(address).to_string();
    let header = format!("Authorization: Bearer {}\r\n", token.expose_secret());
    get(&authority, "/metrics", &header).await.is_ok()
}

fn ask(authority: &str) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let response = runtime.block_on(get(authority, HEALTH, ""));
    // A name that is still being looked up is not waited for.
    runtime.shutdown_background();
    response
}

async fn get(authority: &str, path: &str, header: &str) -> io::Result<()> {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\n{header}Connection: close\r\n\r\n");
    let response = tokio::time::timeout(LIMIT, status_line(authority, &request)).await;
    let line = response.map_err(|_| {
        let late = format!("no answer within {} s", LIMIT.as_secs());
        io::Error::new(io::ErrorKind::TimedOut, late)
    })??;
    match line.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => Err(io::Error::other(format!("answered {line:?}"))),
    }
}

async fn status_line(authority: &str, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(authority).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut line = Vec::new();
    let mut answer = BufReader::new(stream.take(ANSWER_BYTES));
    answer.read_until(b'\n', &mut line).await?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

#[cfg(test)]
mod tests;
