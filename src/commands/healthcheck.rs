//! `outrigger healthcheck`: asks a running daemon whether it is alive, as `HEALTHCHECK` in a container does.
//!
//! One blocking GET without a runtime or TLS: it runs every few seconds for as long as the daemon lives.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret as _, SecretString};

use super::{complain, print};
use crate::arguments::HealthcheckArguments;
use crate::config::{self, Sources};
use crate::ready::exit;

/// How long the daemon may take altogether.
const LIMIT: Duration = Duration::from_secs(3);

/// The most bytes read of the answer; its first line is all that counts.
const ANSWER_BYTES: usize = 1024;

/// Port of a URL that names none.
const HTTP_PORT: u16 = 80;

/// Prints `ok` and returns 0 where the daemon says that it is alive, 1 where it does not.
pub fn healthcheck(arguments: &HealthcheckArguments) -> ExitCode {
    let authority = match &arguments.url {
        Some(url) => authority(url),
        None => configured(arguments),
    };
    let outcome = authority.and_then(|authority| {
        ask(&authority).map_err(|error| format!("http://{authority}/healthz: {error}"))
    });
    match outcome.map(|()| print("ok\n")) {
        Ok(_) => ExitCode::from(exit::OK),
        Err(problem) => {
            complain(&problem);
            ExitCode::from(exit::FAILED)
        }
    }
}

/// Host and port of a URL such as `http://127.0.0.1:4517` or `ws://localhost:4517/ws`.
fn authority(url: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(url).map_err(|error| format!("--url {url}: {error}"))?;
    if !matches!(url.scheme(), "http" | "ws") {
        return Err(format!(
            "--url {url}: only http:// can be asked; behind a proxy with TLS ask the proxy"
        ));
    }
    match url.host_str() {
        Some(host) => Ok(format!("{host}:{}", url.port().unwrap_or(HTTP_PORT))),
        None => Err(format!("--url {url}: names no host")),
    }
}

/// Where a daemon with this configuration listens.
fn configured(arguments: &HealthcheckArguments) -> Result<String, String> {
    let mut sources = Sources {
        project_is_optional: true,
        ..Sources::of_process()
    };
    arguments.config.apply(&mut sources);
    let loaded = config::load(&sources).map_err(|errors| errors.to_string())?;
    let address = loaded.config.server.address();
    if address.port() == 0 {
        return Err("server.port is 0, any free one; name the daemon with --url".to_owned());
    }
    Ok(reachable(address).to_string())
}

/// The address to ask: a daemon that listens everywhere is asked over loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Whether a daemon that listens there says that it is alive.
pub(super) fn is_alive(address: SocketAddr) -> bool {
    ask(&reachable(address).to_string()).is_ok()
}

/// Whether a daemon that listens there takes this token: it is the one that was started with it.
pub(super) fn takes_token(address: SocketAddr, token: &SecretString) -> bool {
    let authority = reachable(address).to_string();
    let header = format!("Authorization: Bearer {}\r\n", token.expose_secret());
    get(&authority, "/metrics", &header).is_ok()
}

fn ask(authority: &str) -> io::Result<()> {
    get(authority, "/healthz", "")
}

fn get(authority: &str, path: &str, header: &str) -> io::Result<()> {
    let deadline = Instant::now() + LIMIT;
    let mut stream = connect(authority, deadline)?;
    stream.set_write_timeout(Some(left(deadline)?))?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\n{header}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let line = status_line(&mut stream, deadline)?;
    match line.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => Err(io::Error::other(format!("answered {line:?}"))),
    }
}

fn connect(authority: &str, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn status_line(stream: &mut TcpStream, deadline: Instant) -> io::Result<String> {
    let mut answer = Vec::new();
    let mut chunk = [0; 256];
    while answer.len() < ANSWER_BYTES && !answer.contains(&b'\n') {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let count = match stream.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
            read => read?,
        };
        match chunk.get(..count) {
            None | Some([]) => break,
            Some(bytes) => answer.extend_from_slice(bytes),
        }
    }
    let line = answer.split(|byte| matches!(byte, b'\r' | b'\n')).next();
    Ok(String::from_utf8_lossy(line.unwrap_or_default()).into_owned())
}

/// What is left until the deadline; never zero, which would mean for ever.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(late()),
        false => Ok(left),
    }
}

fn late() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("no answer within {} s", LIMIT.as_secs()),
    )
}

#[cfg(test)]
mod tests;
