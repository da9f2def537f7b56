//! The older transport over HTTP, for servers that have nothing else: messages come in one event stream, and go by POST to
//! an address that its first event names (modelcontextprotocol.io/specification/2024-11-05/basic/transports, 2026-11-27).
//!
//! To the SDK it looks like a program: lines in and lines out, so that all bounds of these hold. The address has to be of
//! the same origin: what is configured for a server, its headers among it, goes nowhere else.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
    DuplexStream,
};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::io::StreamReader;
use tokio_util::sync::CancellationToken;

use super::connection::bounded;
use crate::http::causes;

/// How long a server may take until it has named its address.
const OPEN_LIMIT: Duration = Duration::from_secs(30);

/// How long a message is waited for until the next one is sent. A server may answer it only once it has done all that is asked.
const IN_ORDER: Duration = Duration::from_secs(1);

/// How long it may take in all.
const POST_LIMIT: Duration = Duration::from_secs(120);

/// The most messages on their way at once; further ones wait.
const MAX_POSTS: usize = 64;

/// The longest event, in bytes.
const MAX_EVENT: u64 = 16 * 1024 * 1024;

/// Bytes between the stream and whoever reads its messages.
const PIPE: usize = 64 * 1024;

/// Both directions, a message a line each.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) from_server: DuplexStream,
    pub(super) to_server: DuplexStream,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct ServerEvent {
    name: String,
    data: String,
}

/// Opens the stream of a server. It ends when either of the lines is dropped.
pub(super) async fn open(client: Client, url: &str, headers: HeaderMap) -> Result<Lines, String> {
    let base = Url::parse(url).map_err(|error| format!("{url}: {error}"))?;
    let opening = async {
        let request = client.get(base.clone()).headers(headers.clone());
        let sent = request.header(ACCEPT, "text/event-stream").send().await;
        let response = sent.map_err(|error| bounded(&causes(&error.without_url())))?;
        let mut events = events(response)?;
        let first = next(&mut events).await.map_err(|error| error.to_string())?;
        let first = first.ok_or("its event stream ended at once")?;
        match first.name.as_str() {
            "endpoint" => Ok((events, endpoint(&base, &first.data)?)),
            _ => Err("the first event of its stream names no endpoint".to_owned()),
        }
    };
    let (events, endpoint) = timeout(OPEN_LIMIT, opening).await.map_err(|_| {
        let seconds = OPEN_LIMIT.as_secs();
        format!("it named no endpoint within {seconds} s")
    })??;
    let (from_server, received) = tokio::io::duplex(PIPE);
    let (to_server, sent) = tokio::io::duplex(PIPE);
    let received = Arc::new(Mutex::new(received));
    let over = CancellationToken::new();
    // The stream is closed as soon as nobody sends any more: it may say nothing for hours.
    let ends = over.clone().drop_guard();
    let receiving = receive(events, Arc::clone(&received));
    tokio::spawn(async move { over.run_until_cancelled(receiving).await });
    tokio::spawn(async move {
        send(client, endpoint, headers, sent, received).await;
        drop(ends);
    });
    Ok(Lines {
        from_server,
        to_server,
    })
}

fn events(response: Response) -> Result<impl AsyncBufRead + Send + Unpin + 'static, String> {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !status.is_success() || !kind.starts_with("text/event-stream") {
        return Err(format!(
            "it has no event stream at this address (status {})",
            status.as_u16()
        ));
    }
    let bytes = response.bytes_stream().map_err(io::Error::other);
    Ok(BufReader::new(StreamReader::new(Box::pin(bytes))))
}

/// Returns the address that messages go to.
fn endpoint(base: &Url, named: &str) -> Result<Url, String> {
    let endpoint = base.join(named.trim());
    let endpoint = endpoint.map_err(|error| format!("the endpoint that it names: {error}"))?;
    let is_plain = endpoint.username().is_empty() && endpoint.password().is_none();
    match is_plain && endpoint.origin() == base.origin() {
        true => Ok(endpoint),
        false => Err(format!(
            "the endpoint that it names is of another origin ({}), and is sent nothing",
            bounded(&endpoint.origin().ascii_serialization())
        )),
    }
}

/// Reads an event; `None` at the end of the stream.
async fn next(events: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<ServerEvent>> {
    let mut events = events.take(MAX_EVENT);
    let (mut event, mut has_data) = (ServerEvent::default(), false);
    loop {
        let mut line = Vec::new();
        if events.read_until(b'\n', &mut line).await? == 0 || line.last() != Some(&b'\n') {
            // What is unfinished is no event.
            return match events.limit() {
                0 => Err(io::Error::other(format!(
                    "an event has more than {MAX_EVENT} bytes"
                ))),
                _ => Ok(None),
            };
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\n', '\r']);
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if line.is_empty() && has_data => return Ok(Some(event)),
            "" if line.is_empty() => {
                event = ServerEvent::default();
                // The stream may say nothing for long, and say so.
                events.set_limit(MAX_EVENT);
            }
            "event" => value.clone_into(&mut event.name),
            "data" => {
                if has_data {
                    // Between two parts of JSON it is as good as the end of a line.
                    event.data.push(' ');
                }
                event.data.push_str(value);
                has_data = true;
            }
            _ => {}
        }
    }
}

/// Passes the stream's messages on, until it ends or nobody reads them.
async fn receive(mut events: impl AsyncBufRead + Unpin, lines: Arc<Mutex<DuplexStream>>) {
    loop {
        match next(&mut events).await {
            Ok(Some(event)) if matches!(event.name.as_str(), "" | "message") => {
                if !write(&lines, event.data).await {
                    return;
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, "the event stream of an MCP server broke");
                break;
            }
        }
    }
    drop(lines.lock().await.shutdown().await);
}

async fn write(lines: &Mutex<DuplexStream>, mut line: String) -> bool {
    line.push('\n');
    lines.lock().await.write_all(line.as_bytes()).await.is_ok()
}

/// Sends each line, until nobody writes any more.
async fn send(
    client: Client,
    endpoint: Url,
    headers: HeaderMap,
    lines: DuplexStream,
    received: Arc<Mutex<DuplexStream>>,
) {
    let mut lines = BufReader::new(lines).lines();
    let mut posts = JoinSet::new();
    while let Ok(Some(line)) = lines.next_line().await {
        while posts.len() >= MAX_POSTS {
            drop(posts.join_next().await);
        }
        let request = client.post(endpoint.clone()).headers(headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json");
        let received = Arc::clone(&received);
        posts.spawn(async move {
            let sending = request.body(line.clone()).send();
            let problem = match timeout(POST_LIMIT, sending).await {
                Ok(Ok(response)) => refused(response.status()),
                Ok(Err(error)) => Some(bounded(&causes(&error.without_url()))),
                Err(_) => Some("it took no notice of the message in time".to_owned()),
            };
            if let Some(problem) = problem {
                fail(&received, &line, &problem).await;
            }
        });
        // Messages come in their order, but for those that a server takes long for.
        drop(timeout(IN_ORDER, posts.join_next()).await);
    }
}

fn refused(status: StatusCode) -> Option<String> {
    let status = (!status.is_success()).then(|| status.as_u16())?;
    Some(format!("the endpoint answered with status {status}"))
}

/// Answers a request that could not be sent: nobody else does.
async fn fail(received: &Mutex<DuplexStream>, line: &str, problem: &str) {
    let message: Value = serde_json::from_str(line).unwrap_or_default();
    let is_request = message.get("method").is_some();
    if let Some(id) = message.get("id").filter(|_| is_request) {
        let error =
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": problem}});
        write(received, error.to_string()).await;
    } else {
        tracing::debug!(problem, "an MCP server did not take a message");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str) -> Vec<ServerEvent> {
        let mut source = BufReader::with_capacity(3, text.as_bytes());
        let mut events = Vec::new();
        while let Some(event) = next(&mut source).await.unwrap() {
            events.push(event);
        }
        events
    }

    #[tokio::test]
    async fn events_are_read_however_they_are_written() {
        let event = |name: &str, data: &str| ServerEvent {
            name: name.to_owned(),
            data: data.to_owned(),
        };
        let text = ": ping\n\nevent: endpoint\r\ndata: /m?a=b:c\r\n\r\nid: 1\ndata:{\"a\":\ndata: 1}\n\nevent: x\n\nretry: 5\n\ndata: unfinished";
        assert_eq!(
            read(text).await,
            [event("endpoint", "/m?a=b:c"), event("", "{\"a\": 1}")]
        );
        assert_eq!(read("").await, []);
    }

    #[tokio::test]
    async fn an_event_has_an_end() {
        let endless = tokio::io::repeat(b'x');
        let mut source = BufReader::new(endless);
        let error = next(&mut source).await.unwrap_err();
        assert!(error.to_string().contains("more than"), "{error}");
    }

    #[test]
    fn an_endpoint_is_of_the_same_origin() {
        let base = Url::parse("https://a.example/mcp/sse").unwrap();
        for (named, expected) in [
            ("/messages?id=1", Some("https://a.example/messages?id=1")),
            ("messages", Some("https://a.example/mcp/messages")),
            ("https://a.example:443/m", Some("https://a.example/m")),
            ("https://b.example/m", None),
            ("//b.example/m", None),
            ("http://a.example/m", None),
            ("https://a.example:8443/m", None),
            ("https://user:word@a.example/m", None),
            ("file:///etc/passwd", None),
            ("https://", None),
        ] {
            let found = endpoint(&base, named).ok();
            assert_eq!(found.as_ref().map(Url::as_str), expected, "{named}");
        }
    }
}
