//! Servers that send without end, refuse the handshake, or speak what nobody knows.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::until_state;
use crate::support::{Client, Daemon, Provider, eventually};

/// More than is taken in of a flood, with what lies in pipes and buffers; a flood of some seconds has 100,000.
const FEW: usize = 20_000;

async fn with_rude(trait_: &str) -> (TempDir, Daemon, Client) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("rude.sh");
    std::fs::write(&script, include_str!("rude.sh")).unwrap();
    let notes = folder.path().join("notes");
    std::fs::create_dir(&notes).unwrap();
    let server = json!({ "command": "bash", "args": [script, notes, trait_] });
    let (daemon, client) = with_server(server).await;
    (folder, daemon, client)
}

async fn with_server(server: Value) -> (Daemon, Client) {
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({ "mcpServers": { "rude": server } })).await;
    let client = daemon.connect().await;
    (daemon, client)
}

/// Waits until the flood is ended; sockets are served while it is sent and afterwards. How soon is not measured here.
async fn outlived(daemon: &Daemon, client: &mut Client, sent: impl Fn() -> usize) {
    let mut other = daemon.connect().await;
    eventually("a flood", async || sent() > 0).await;
    for _ in 0..20 {
        let pong = other.ask(json!({"type": "session:ping"})).await;
        assert_eq!(pong["type"], "session:ping-result");
    }
    let message = loop {
        let notice = client.until("session:notice").await["payload"].take();
        if notice["code"] == "mcp_restarting" {
            break notice["message"].to_string();
        }
    };
    assert!(message.contains("sends too much"), "{message}");
    assert!(sent() < FEW, "{}", sent());
    let pong = other.ask(json!({"type": "session:ping"})).await;
    assert_eq!(pong["type"], "session:ping-result");
}

fn noted(folder: &Path) -> usize {
    let sent = std::fs::read_to_string(folder.join("notes/sent"));
    sent.ok()
        .and_then(|sent| sent.trim().parse().ok())
        .unwrap_or_default()
}

#[tokio::test]
async fn a_flood_over_stdio_is_ended() {
    let (folder, daemon, mut client) = with_rude("flooding").await;
    outlived(&daemon, &mut client, || noted(folder.path())).await;
}

#[tokio::test]
async fn a_flood_over_http_is_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let server = tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(answer(socket, Arc::clone(&counted)));
        }
    });
    let (daemon, mut client) = with_server(json!({ "url": url })).await;
    outlived(&daemon, &mut client, || sent.load(Ordering::Relaxed)).await;
    server.abort();
}

/// Answers one request of a connection as a server does, but for the list of its tools: with pings without end.
async fn answer(mut socket: TcpStream, sent: Arc<AtomicUsize>) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !is_whole(&request) {
        if socket.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8_lossy(&request);
    let body = request.split_once("\r\n\r\n").unwrap_or_default().1;
    let asked: Value = serde_json::from_str(body).unwrap_or_default();
    let answer = match asked["method"].as_str() {
        Some("initialize") => json!({"result": {"protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "rude", "version": "1"}}}),
        Some("server/discover") => json!({"error": {"code": -32601, "message": "not found"}}),
        Some("tools/list") => {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            socket.write_all(head.as_bytes()).await?;
            loop {
                let number = sent.fetch_add(1, Ordering::Relaxed);
                let ping = json!({"jsonrpc": "2.0", "id": number, "method": "ping"});
                // Large, so that the system's buffers hold few of them.
                let event = format!(":{}\ndata: {ping}\n\n", "x".repeat(2_000));
                socket.write_all(event.as_bytes()).await?;
            }
        }
        _ => {
            let status = if request.starts_with("POST") {
                "202 Accepted"
            } else {
                "405 Method Not Allowed"
            };
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            return socket.write_all(head.as_bytes()).await;
        }
    };
    let mut answer = answer;
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = asked["id"].clone();
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    socket.write_all(format!("{head}{answer}").as_bytes()).await
}

/// Whether a request is there with all of its body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    body.len() >= length
}

#[tokio::test]
async fn a_refused_handshake_is_reported_in_the_words_of_the_server() {
    let (_folder, _daemon, mut client) = with_rude("refusing").await;
    let row = until_state(&mut client, "rude", "restarting").await;
    let error = row["error"].as_str().unwrap();
    assert!(
        error.contains("the licence has run out (code -32000)")
            && error.contains("these are words"),
        "{error}"
    );
    assert!(!error.contains(['\u{1b}', '\u{7}']), "{error:?}");
}

#[tokio::test]
async fn a_protocol_that_nobody_knows_is_not_spoken() {
    let (_folder, _daemon, mut client) = with_rude("older").await;
    let row = until_state(&mut client, "rude", "failed").await;
    let error = row["error"].as_str().unwrap();
    assert!(error.contains("version \"1.0\""), "{error}");
    assert_eq!(row["tools"], json!([]));
}
