//! What bad input gets: a clear error, and a connection and conversation that go on.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

#[tokio::test]
async fn bad_frames_are_reported_and_the_socket_goes_on() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let deep = format!(
        "{{\"type\":\"session:ping\",\"x\":{}1{}}}",
        "[".repeat(200),
        "]".repeat(200)
    );
    let model = "m".repeat(257);
    let long = format!(r#"{{"type":"chat:send","content":"x","model":"{model}"}}"#);
    let kept = format!(r#"{{"type":"session:configure","model":"{model}"}}"#);
    for (frame, code, part) in [
        (long.as_str(), "invalid_payload", "256 bytes at most"),
        (kept.as_str(), "invalid_payload", "256 bytes at most"),
        ("hello", "invalid_json", "chat:send"),
        ("[1]", "invalid_json", "an array"),
        ("{\"type\":", "invalid_json", "EOF"),
        (deep.as_str(), "invalid_json", "recursion"),
        ("{}", "invalid_payload", "`type` is missing"),
        (r#"{"type":7}"#, "invalid_payload", "`type`"),
        (r#"{"type":"chat:sned"}"#, "unknown_type", "chat:send"),
        (r#"{"type":"chat:send"}"#, "invalid_payload", "`content`"),
        (
            r#"{"type":"chat:send","content":5}"#,
            "invalid_payload",
            "`content`",
        ),
        (
            r#"{"type":"chat:send","content":"  "}"#,
            "invalid_payload",
            "`content`",
        ),
        (
            r#"{"type":"chat:send","content":"x","temperature":9}"#,
            "invalid_payload",
            "`temperature`",
        ),
        (
            r#"{"type":"chat:send","content":"x","limits":{"maxTurns":500}}"#,
            "invalid_payload",
            "maxTurns",
        ),
        (
            r#"{"type":"chat:send","content":"x","trustLevel":"wild"}"#,
            "invalid_payload",
            "wild",
        ),
        (
            r#"{"type":"chat:send","content":"x","provider":"nobody"}"#,
            "provider_not_found",
            "there is no provider `nobody`; there are: ",
        ),
        (
            r#"{"type":"chat:send","content":"x","toolPermissions":{"bsh":{"allowed":true}}}"#,
            "invalid_payload",
            "there is no such tool; did you mean \"bash\"?",
        ),
        (
            r#"{"type":"tool:list","toolPermissions":{"bsh":{"allowed":true}}}"#,
            "invalid_payload",
            "`bsh`: there is no such tool",
        ),
        (
            r#"{"type":"tool:expose","port":"x"}"#,
            "invalid_payload",
            "field `port`: must be a number from 1 to 65535",
        ),
        (
            r#"{"type":"chat:send","content":"x","workflow":"none"}"#,
            "invalid_payload",
            "none",
        ),
        (
            r#"{"type":"chat:send","content":"x","content":"y"}"#,
            "invalid_payload",
            "twice",
        ),
        (
            r#"{"type":"chat:tool-approve","toolId":"t9","approved":false,"approved":true}"#,
            "invalid_payload",
            "twice",
        ),
        (
            r#"{"type":"chat:send","payload":[]}"#,
            "invalid_payload",
            "`payload`",
        ),
        (
            r#"{"type":"chat:tool-approve","toolId":"t9","approved":true}"#,
            "approval_not_found",
            "t9",
        ),
        (
            r#"{"type":"tool:status","toolId":"t9"}"#,
            "tool_not_found",
            "t9",
        ),
        (
            r#"{"type":"model:list","provider":"none"}"#,
            "provider_not_found",
            "none",
        ),
        (
            r#"{"type":"session:resume","sessionId":"none"}"#,
            "invalid_payload",
            "first frame",
        ),
    ] {
        client.text(frame).await;
        let answer = client.next().await;
        assert_eq!(answer["type"], "session:error", "{frame}: {answer}");
        assert_eq!(answer["payload"]["code"], code, "{frame}: {answer}");
        let message = answer["payload"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{frame}: {message}");
    }
    for empty in ["", " \n", "\n"] {
        client.text(empty).await;
    }
    client
        .message(Message::binary(vec![1, 2, 3]))
        .await
        .unwrap();
    assert_eq!(client.next().await["payload"]["code"], "unsupported_frame");
    client.text(" {\"type\":\"session:ping\",\"id\":7}\n").await;
    let pong = client.next().await;
    assert_eq!(pong["type"], "session:ping-result");
    assert_eq!(pong["replyTo"], 7);
    client.check_numbers();
}

#[tokio::test]
async fn text_that_is_no_text_closes_the_socket_and_not_the_daemon() {
    use tokio_tungstenite::tungstenite::protocol::frame::{
        Frame,
        coding::{Data, OpCode},
    };
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let frame = Frame::message(&b"{\"type\":\"\xff\"}"[..], OpCode::Data(Data::Text), true);
    client.message(Message::Frame(frame)).await.unwrap();
    assert_eq!(client.next_or_close().await, Err(1007));
    daemon.connect().await;
}

#[tokio::test]
async fn a_frame_that_is_too_big_closes_the_socket_and_not_the_daemon() {
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"server": {"max_frame_bytes": "64KiB"}})).await;
    let mut client = daemon.connect().await;
    client
        .message(Message::text("x".repeat(100_000)))
        .await
        .ok();
    assert_eq!(client.next_or_close().await, Err(1009));
    daemon.connect().await;
}

/// Runs one exchange and returns its error and its end.
async fn failing(client: &mut Client) -> (Value, Value) {
    let before = client.all("chat:error").len();
    client.say("go").await;
    let end = client.until("chat:stream-end").await["payload"].clone();
    let error = client
        .all("chat:error")
        .get(before)
        .cloned()
        .unwrap_or_default();
    (error, end)
}

#[tokio::test]
async fn each_failure_of_the_provider_has_its_code_and_the_conversation_goes_on() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let error = |message: &str| json!({"error": {"message": message, "type": "x"}}).to_string();
    for (turn, code, retryable, part) in [
        (
            Turn::plain(401, "application/json", &error("bad key")),
            "provider_auth",
            false,
            "bad key",
        ),
        (
            Turn::plain(404, "application/json", &error("no model `x`")),
            "provider_invalid_request",
            false,
            "no model",
        ),
        (
            Turn::plain(429, "application/json", &error("slow down")),
            "provider_rate_limited",
            true,
            "slow down",
        ),
        (
            Turn::plain(500, "application/json", &error("oops")),
            "provider_unavailable",
            true,
            "oops",
        ),
        (
            Turn::plain(503, "text/html", "<html>busy</html>"),
            "provider_overloaded",
            true,
            "",
        ),
        (
            Turn::plain(200, "text/html", "<html>login</html>"),
            "provider_protocol",
            false,
            "",
        ),
        (Turn::broken(&[]), "provider_protocol", true, ""),
    ] {
        provider.then(turn);
        let (error, end) = failing(&mut client).await;
        assert_eq!(error["code"], code, "{error}");
        assert_eq!(error["retryable"], retryable, "{error}");
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
        assert!(
            !error["message"].as_str().unwrap().contains("test-key"),
            "{error}"
        );
        assert_eq!(end["stopReason"], "error");
        assert_eq!(end["partial"], false);
    }
    provider.then(Turn::text("well again"));
    let (error, end) = failing(&mut client).await;
    assert_eq!(
        (error, end["stopReason"].as_str()),
        (Value::Null, Some("end_turn"))
    );
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_reported() {
    let provider = Provider::start().await;
    let more = json!({"providers": {"test": {"base_url": "http://127.0.0.1:1/v1"}}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let (error, _) = failing(&mut client).await;
    assert_eq!(error["code"], "provider_unavailable");
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("providers.test.base_url")
    );
}

#[tokio::test]
async fn a_stream_that_breaks_after_text_is_discarded_and_run_again_once() {
    let provider = Provider::start().await;
    let half = || Turn::broken(&[json!({"content": "ha"})]);
    provider.then(half()).then(Turn::text("whole"));
    let more = json!({"providers": {"test": {"max_retries": 1}}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let (_, end) = failing(&mut client).await;
    assert_eq!(end["stopReason"], "end_turn");
    assert_eq!(client.all("chat:turn-discarded")[0]["turn"], 0);
    provider.then(half()).then(half());
    let (error, end) = failing(&mut client).await;
    assert_eq!(error["code"], "provider_protocol");
    assert_eq!(end["partial"], true);
}

#[tokio::test]
async fn calls_whose_input_is_broken_are_answered_and_not_run() {
    let provider = Provider::start().await;
    let call = |arguments: &str| json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "bash", "arguments": arguments}}]});
    provider
        .then(Turn::chunks(&[call("{\"command\": echo}")], "tool_calls"))
        .then(Turn::chunks(&[call("{\"command\": \"echo")], "length"))
        .then(Turn::text("sorry"));
    let more = json!({"chat": {"trust_level": "autonomous"}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let (_, end) = failing(&mut client).await;
    assert_eq!(end["stopReason"], "end_turn");
    let results = client.all("chat:tool-result");
    assert!(
        results[0]["result"]
            .as_str()
            .unwrap()
            .contains("not a JSON object")
    );
    assert!(results[1]["result"].as_str().unwrap().contains("cut off"));
    assert_eq!(client.all("chat:tool-start").len(), 0);
}

#[tokio::test]
async fn two_calls_cut_off_in_a_row_end_the_exchange() {
    let provider = Provider::start().await;
    let cut = || {
        let call = json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "bash", "arguments": "{\"command\": \"ec"}}]});
        Turn::chunks(&[call], "length")
    };
    provider.then(cut()).then(cut());
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let (_, end) = failing(&mut client).await;
    assert_eq!(end["stopReason"], "max_tokens");
}

#[tokio::test]
async fn commands_that_misbehave_come_to_a_bounded_result() {
    let provider = Provider::start().await;
    let commands = [
        ("no-such-command-here", "exit code 127"),
        ("exit 9", "exit code 9"),
        ("head -c 3000 /dev/urandom", ""),
        ("head -c 1000000 /dev/zero | tr '\\0' x", "left out"),
        ("cat", "no output"),
        ("tty", "not a tty"),
        ("sleep 600 & echo background", "background"),
    ];
    for (command, _) in commands {
        provider.then(Turn::call("bash", &json!({ "command": command })));
    }
    provider.then(Turn::call(
        "bash",
        &json!({"command": "yes", "timeout": 0.2}),
    ));
    provider.then(Turn::text("done"));
    // Room for all that is printed: this client is slow, and a gap is another story.
    let more = json!({
        "chat": {"trust_level": "autonomous"},
        "session": {"buffer_bytes": "256MiB"},
    });
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let (_, end) = failing(&mut client).await;
    assert_eq!(end["stopReason"], "end_turn");
    let results = client.all("chat:tool-result");
    for ((command, part), result) in commands.iter().zip(&results) {
        let text = result["result"].as_str().unwrap();
        assert!(text.contains(part), "{command}: {text}");
        assert!(text.len() < 300_000, "{command}: {}", text.len());
    }
    let last = &results[results.len() - 1]["metadata"];
    assert!(
        last["timedOut"] == true || last["truncated"] == true,
        "{last}"
    );
}

#[tokio::test]
async fn files_that_cannot_be_read_are_tool_errors() {
    let provider = Provider::start().await;
    let paths = ["missing.txt", "folder", "pipe"];
    for path in paths {
        provider.then(Turn::call("file_read", &json!({ "path": path })));
    }
    provider.then(Turn::text("done"));
    let daemon = Daemon::start(&provider).await;
    daemon.file("folder/inside", "x");
    let made = std::process::Command::new("mkfifo")
        .arg(daemon.project().join("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let mut client = daemon.connect().await;
    let (_, end) = failing(&mut client).await;
    assert_eq!(end["stopReason"], "end_turn");
    for (path, result) in paths.iter().zip(client.all("chat:tool-result")) {
        assert_eq!(result["status"], "error");
        assert!(
            result["result"].as_str().unwrap().contains(path),
            "{result}"
        );
    }
}
