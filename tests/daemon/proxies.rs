//! Proxies out of the environment: what goes through them, and what does not.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use crate::support::provider::Turn;
use crate::support::wire::{Block, Wire};
use crate::support::{Daemon, Provider};

/// A proxy that answers for every server; it ends with the test's runtime.
struct Proxy {
    url: String,
    /// The first line of each request.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let heard = Arc::clone(&heard);
                // A client that goes away is no fault of the proxy.
                tokio::spawn(async move { serve(socket, &heard).await.ok() });
            }
        });
        Self { url, asked }
    }
}

async fn serve(mut socket: TcpStream, heard: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.trim().parse().unwrap());
    socket.read_exact(&mut vec![0; length]).await?;
    let first = head.lines().next().unwrap_or_default().to_owned();
    heard.lock().unwrap().push(first);
    let body = Wire::Chat
        .frames(&[Block::text("through the proxy")])
        .concat();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(answer.as_bytes()).await?;
    socket.shutdown().await
}

#[tokio::test]
async fn the_environment_says_what_goes_through_a_proxy() {
    let proxy = Proxy::start().await;
    let provider = Provider::start().await;
    let instance = |url: &str| {
        json!({"kind": "openai", "wire": "chat", "base_url": url, "api_key": "key-of-nobody",
            "model": "m", "max_retries": 0})
    };
    let more = json!({"providers": {
        "far": instance("http://provider.invalid/v1"),
        "near": instance("http://direct.invalid/v1"),
    }});
    let url = proxy.url.clone();
    let daemon = Daemon::by(&provider, more, |config| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger"));
        command.args(["serve", "--config"]).arg(config);
        for name in [
            "ALL_PROXY",
            "all_proxy",
            "http_proxy",
            "no_proxy",
            "REQUEST_METHOD",
        ] {
            command.env_remove(name);
        }
        command
            .env("HTTP_PROXY", &url)
            .env("NO_PROXY", "direct.invalid");
        command
    })
    .await;
    let mut client = daemon.connect().await;
    // This machine is never behind a proxy.
    provider.then(Turn::text("direct"));
    client.say("hi").await;
    client.until("chat:stream-end").await;
    assert_eq!(client.text_said(), "direct");
    assert!(proxy.asked.lock().unwrap().is_empty());

    let say = |provider: &str| json!({"type": "chat:send", "content": "hi", "provider": provider});
    client.send(say("far")).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn", "{end}");
    assert!(client.text_said().ends_with("through the proxy"));
    let first = "POST http://provider.invalid/v1/chat/completions HTTP/1.1";
    // The list of models is asked for beside the turn.
    let turns = || {
        let asked = proxy.asked.lock().unwrap();
        let turns = asked.iter().filter(|line| line.starts_with("POST "));
        turns.cloned().collect::<Vec<_>>()
    };
    assert_eq!(turns(), [first]);

    client.send(say("near")).await;
    let error: Value = client.until("chat:error").await;
    assert_eq!(error["payload"]["code"], "provider_unavailable", "{error}");
    assert_eq!(turns().len(), 1);
}
