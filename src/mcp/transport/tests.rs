use std::time::Duration;

use futures::stream;
use rmcp::handler::client::ClientHandler;
use rmcp::model::ErrorData;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RequestContext};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::time::Instant;

use serde_json::json;

use super::*;
use crate::mcp::connection::lifecycle;
use crate::mcp::wire;

/// A client that answers pings, or never gets to it.
struct Answering(bool);

impl ClientHandler for Answering {
    async fn ping(&self, _: RequestContext<RoleClient>) -> Result<(), ErrorData> {
        match self.0 {
            true => Ok(()),
            false => std::future::pending().await,
        }
    }
}

/// A server that pings five times a second, and reads the answers or not; ends after `most` pings.
async fn pings(mut output: DuplexStream, input: DuplexStream, reads: bool, most: usize) -> usize {
    let mut input = BufReader::new(input).lines();
    input.next_line().await.unwrap().unwrap();
    let ready = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    output
        .write_all(format!("{ready}\n").as_bytes())
        .await
        .unwrap();
    input.next_line().await.unwrap().unwrap();
    let mut answered = 0;
    for id in 0..most {
        let ping = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        output.write_all(ping.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        if reads {
            input.next_line().await.unwrap().unwrap();
            answered += 1;
        }
    }
    answered
}

/// What became of a server that pings: how many were answered, or why it has failed.
async fn pinged(answering: bool, reads: bool) -> Result<usize, String> {
    let intake = Intake::of("s");
    let (theirs, output) = tokio::io::duplex(64);
    let (stdin, input) = tokio::io::duplex(64);
    let server = pings(theirs, input, reads, 1_000);
    let client = async {
        let output = wire::follow(output, Arc::clone(&intake));
        let inner = AsyncRwTransport::new_client(output, stdin);
        let transport = Counted::new(inner, Arc::clone(&intake));
        let lifecycle = ClientLifecycleMode::Initialize;
        let serving = Answering(answering).serve_with_lifecycle(transport, lifecycle);
        let _service = serving.await.unwrap();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answered = server => Ok(answered),
        why = intake.failed() => Err(why),
        () = client => unreachable!(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reads_the_answers_may_ask_for_ever() {
    assert_eq!(pinged(true, true).await, Ok(1_000));
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_not_read_and_requests_that_wait_are_bounded() {
    for (answering, reads) in [(true, false), (false, false)] {
        let why = pinged(answering, reads).await.unwrap_err();
        assert!(why.contains("open, or their answers not read"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_over_http_are_paced_as_lines_are() {
    let intake = Intake::of("s");
    let flood: BoxedSseResponse = stream::repeat_with(|| Ok(Default::default())).boxed();
    let mut events = paced(flood, Arc::clone(&intake));
    let began = Instant::now();
    let mut taken = 0;
    let reading = async {
        while events.next().await.is_some() {
            taken += 1;
        }
    };
    let why = tokio::select! {
        why = intake.failed() => why,
        () = reading => unreachable!(),
    };
    assert!(why.contains("sends too much"), "{why}");
    let elapsed = began.elapsed();
    assert!(elapsed > Duration::from_secs(4), "{elapsed:?}");
    assert!(taken < 20_000, "{taken}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_slow_to_start_is_greeted_all_the_same() {
    let (mut theirs, output) = tokio::io::duplex(4096);
    let (stdin, input) = tokio::io::duplex(4096);
    let server = async move {
        let mut input = BufReader::new(input).lines();
        // It reads nothing before both requests are there, and answers each in turn, as programs do.
        tokio::time::sleep(Duration::from_secs(15)).await;
        for answer in [
            json!({"error": {"code": -32601, "message": "Method not found"}}),
            json!({"result": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "slow", "version": "1"},
            }}),
        ] {
            let line = input.next_line().await.unwrap().unwrap();
            let request: serde_json::Value = serde_json::from_str(&line).unwrap();
            let mut answer = answer;
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = request["id"].clone();
            theirs
                .write_all(format!("{answer}\n").as_bytes())
                .await
                .unwrap();
        }
        // The end of its input is the end of the client.
        while input.next_line().await.unwrap().is_some() {}
    };
    let client = async {
        let intake = Intake::of("s");
        let output = wire::follow(output, Arc::clone(&intake));
        let transport = Counted::new(AsyncRwTransport::new_client(output, stdin), intake);
        let lifecycle = lifecycle(false);
        let serving = Answering(true).serve_with_lifecycle(transport, lifecycle);
        let service = serving.await.unwrap();
        let info = service.peer().peer_info().unwrap();
        info.server_info.as_ref().unwrap().name.clone()
    };
    let (name, ()) = tokio::join!(client, server);
    assert_eq!(name, "slow");
}
