use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::header::AUTHORIZATION;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::config::ProviderKind;
use crate::message::Usage;
use crate::provider::decode::{Answer, Wire};
use crate::provider::json::Json;
use crate::provider::{Chunk, End, Stop, testing};

mod kept;
mod recorded;

/// Passes each frame on as text; `[DONE]` ends.
struct Plain;

impl Wire for Plain {
    fn name(&self) -> &'static str {
        // So that recordings of it can be played.
        crate::provider::chat::decode::WIRE
    }

    fn frame(&mut self, frame: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        let text = frame.as_str().map_or(frame.to_string(), str::to_owned);
        answer.chunks.push(Chunk::Text(text));
        Ok(())
    }

    fn whole(&mut self, body: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        self.frame(body, answer)?;
        self.marker(answer)
    }

    fn marker(&mut self, answer: &mut Answer) -> Result<(), ProviderError> {
        answer.done = true;
        answer.chunks.push(Chunk::End(End {
            stop: Stop::EndTurn,
            raw_stop: None,
            usage: Usage::default(),
            native: None,
        }));
        Ok(())
    }

    fn finish(&mut self, _: &mut Answer) -> Result<(), ProviderError> {
        Err(ProviderError::new(ErrorKind::IncompleteStream, "cut"))
    }
}

fn config(key: Option<&str>) -> ProviderConfig {
    ProviderConfig {
        id: "test".to_owned(),
        api_key: key.map(SecretString::from),
        key_optional: false,
        headers: BTreeMap::from([("x-extra".into(), "more".into())]),
        ..testing::config(ProviderKind::Chat, "openai", "")
    }
}

/// A server that hands each request to `answer` and counts connections.
struct Server {
    url: String,
    connections: Arc<AtomicUsize>,
}

impl Server {
    async fn start<F, A>(answer: F) -> Self
    where
        F: Fn(TcpStream, String) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Option<TcpStream>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1?secret=query", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut socket = Some(socket);
                    while let Some(mut open) = socket.take() {
                        let Some(request) = read_request(&mut open).await else {
                            return;
                        };
                        socket = answer(open, request).await;
                    }
                });
            }
        });
        Self { url, connections }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        let mut bytes = [0; 4096];
        match socket.read(&mut bytes).await {
            Ok(read) if read > 0 => request.extend_from_slice(&bytes[..read]),
            _ => return None,
        }
    }
}

const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

async fn write(socket: &mut TcpStream, text: &str) {
    socket.write_all(text.as_bytes()).await.unwrap();
}

async fn write_chunk(socket: &mut TcpStream, text: &str) {
    write(socket, &format!("{:x}\r\n{text}\r\n", text.len())).await;
}

async fn ask(
    endpoint: &Endpoint,
    url: &str,
) -> Result<Vec<Result<Chunk, ProviderError>>, ProviderError> {
    let draft = Draft {
        url: url.to_owned(),
        headers: endpoint.key_header(AUTHORIZATION, "Bearer ")?,
        body: Body::new(serde_json::json!({"a": 1}), Vec::new()),
        notices: Vec::new(),
    };
    let request = testing::request(&[], &[]);
    let stream = endpoint.stream(&request, &draft, Box::new(Plain)).await?;
    Ok(stream.collect().await)
}

fn texts(chunks: &[Result<Chunk, ProviderError>]) -> Vec<String> {
    chunks
        .iter()
        .map(|chunk| match chunk {
            Ok(Chunk::Text(text)) => text.clone(),
            Ok(Chunk::End(_)) => "end".into(),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("{:?}", error.kind),
        })
        .collect()
}

#[tokio::test]
async fn refusals_are_classified_and_tell_no_key() {
    let server = Server::start(|mut socket, _| async move {
        let body =
            "{\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow down, my-own-secret\"}}";
        let length = body.len();
        write(
            &mut socket,
            &format!("HTTP/1.1 429 X\r\nretry-after: 7\r\ncontent-length: {length}\r\n\r\n{body}"),
        )
        .await;
        Some(socket)
    })
    .await;
    let endpoint = Endpoint::new(Arc::new(config(Some("my-own-secret"))), Clients::default());
    let error = ask(&endpoint, &server.url).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::RateLimit);
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(error.message, "slow down, [redacted]");
}

#[tokio::test]
async fn an_error_body_without_end_is_read_to_its_limit() {
    /// Pieces of 64 KiB, far more than the buffers of a connection hold.
    const ALL: usize = 2048;
    let (written, mut count) = tokio::sync::mpsc::channel(1);
    let server = Server::start(move |mut socket, _| {
        let written = written.clone();
        async move {
            write(
                &mut socket,
                "HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n",
            )
            .await;
            let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
            let mut pieces = 0;
            while pieces < ALL && socket.write_all(piece.as_bytes()).await.is_ok() {
                pieces += 1;
            }
            written.send(pieces).await.unwrap();
            None
        }
    })
    .await;
    let endpoint = Endpoint::new(Arc::new(config(Some("key"))), Clients::default());
    let error = ask(&endpoint, &server.url).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Server);
    assert!(error.message.len() <= 2048);
    assert!(count.recv().await.unwrap() < ALL, "all of it was read");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let server = Server::start(|mut socket, _| async move {
        write(
            &mut socket,
            "HTTP/1.1 302 X\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
        )
        .await;
        Some(socket)
    })
    .await;
    let endpoint = Endpoint::new(Arc::new(config(Some("key"))), Clients::default());
    let error = ask(&endpoint, &server.url).await.unwrap_err();
    assert_eq!((error.kind, error.status), (ErrorKind::Protocol, Some(302)));
}

#[tokio::test]
async fn a_connection_that_breaks_is_named_by_when_it_broke() {
    let server = Server::start(|mut socket, request| async move {
        if !request.contains("early") {
            write(&mut socket, EVENTS).await;
            write_chunk(&mut socket, "data: \"a\"\n\n").await;
        }
        None
    })
    .await;
    let endpoint = || Endpoint::new(Arc::new(config(Some("key"))), Clients::default());
    let found = texts(&ask(&endpoint(), &server.url).await.unwrap());
    assert_eq!(found, ["a", "IncompleteStream"]);
    let error = ask(&endpoint(), &format!("{}&early", server.url))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect);
    assert!(!error.message.contains("secret"), "{}", error.message);
    let error = ask(&endpoint(), "http://127.0.0.1:1/v1?secret")
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect);
    assert!(
        error.message.contains("127.0.0.1:1: connection refused"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn silence_before_and_within_an_answer_ends_it() {
    let server = Server::start(|mut socket, request| async move {
        if !request.contains("early") {
            write(&mut socket, EVENTS).await;
            write_chunk(&mut socket, "data: \"a\"\n\n").await;
        }
        std::future::pending().await
    })
    .await;
    let mut settings = config(Some("key"));
    settings.timeout_first_byte = Duration::from_millis(200);
    settings.timeout_idle = Duration::from_millis(20);
    let endpoint = Endpoint::new(Arc::new(settings), Clients::default());
    let found = texts(&ask(&endpoint, &server.url).await.unwrap());
    assert_eq!(found, ["a", "Timeout"]);
    let error = ask(&endpoint, &format!("{}&early", server.url))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert!(error.message.contains("within 0.2 s"), "{}", error.message);
}

#[tokio::test]
async fn json_is_read_whole_or_refused() {
    let server = Server::start(|mut socket, request| async move {
        let body = if request.contains("page") {
            "<html>"
        } else {
            "{\"data\":[]}"
        };
        let length = body.len();
        write(
            &mut socket,
            &format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"),
        )
        .await;
        Some(socket)
    })
    .await;
    let endpoint = Endpoint::new(Arc::new(config(Some("key"))), Clients::default());
    let get = |url: String| {
        let endpoint = &endpoint;
        async move {
            endpoint
                .json(Method::GET, &url, HeaderMap::new(), None)
                .await
        }
    };
    assert_eq!(
        get(server.url.clone()).await.unwrap(),
        serde_json::json!({"data": []})
    );
    let error = get(format!("{}&page", server.url)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Protocol);
    assert!(!error.message.contains("secret"), "{}", error.message);
}

#[test]
fn a_key_is_needed_fits_a_header_and_is_never_shown() {
    let endpoint = |key| Endpoint::new(Arc::new(config(key)), Clients::default());
    for key in [None, Some(" "), Some("a\nb")] {
        let refused = endpoint(key)
            .key_header(AUTHORIZATION, "Bearer ")
            .unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotConfigured, "{key:?}");
    }
    let headers = endpoint(Some("good"))
        .key_header(AUTHORIZATION, "Bearer ")
        .unwrap();
    assert!(headers[AUTHORIZATION].is_sensitive());
    assert!(!format!("{headers:?}").contains("good"));
    let mut local = config(None);
    local.key_optional = true;
    let local = Endpoint::new(Arc::new(local), Clients::default());
    assert!(
        local
            .key_header(AUTHORIZATION, "Bearer ")
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_provider_that_wants_rest_is_left_alone_by_all() {
    let server = Server::start(|mut socket, _| async move {
        write(
            &mut socket,
            "HTTP/1.1 429 X\r\nretry-after: 60\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
        )
        .await;
        None
    })
    .await;
    let endpoint = Endpoint::new(Arc::new(config(Some("key"))), Clients::default());
    for _ in 0..50 {
        let error = ask(&endpoint, &server.url).await.unwrap_err();
        assert_eq!(
            (error.kind, error.status),
            (ErrorKind::RateLimit, Some(429))
        );
        assert!(
            error
                .retry_after
                .is_some_and(|left| left > Duration::from_secs(30))
        );
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn instances_with_the_same_account_have_one_gate() {
    let clients = Clients::default();
    let endpoint = |key, base_url: &str| {
        let mut config = config(key);
        config.base_url = base_url.to_owned();
        Endpoint::new(Arc::new(config), clients.clone()).gate
    };
    let first = endpoint(Some("key"), "http://one/v1");
    for (key, base_url, same) in [
        (Some("key "), "http://one/v1/", true),
        (Some("other"), "http://one/v1", false),
        (Some("key"), "http://two/v1", false),
        (None, "http://one/v1", false),
    ] {
        let gate = endpoint(key, base_url);
        assert_eq!(Arc::ptr_eq(&first, &gate), same, "{key:?} {base_url}");
    }
}
