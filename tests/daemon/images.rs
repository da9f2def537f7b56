//! Pictures: said by the user, read by tools, refused where no model takes them.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

const PIXEL: &str = "R0lGODlhAQABAAAAACw=";

fn send(part: &Value) -> Value {
    json!({"type": "chat:send", "content": [{"type": "text", "text": "what is this?"}, part]})
}

#[tokio::test]
async fn a_picture_of_the_user_reaches_the_model() {
    let provider = Provider::start().await;
    provider.then(Turn::text("a dot"));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let part = json!({"type": "image", "mediaType": "image/gif", "data": PIXEL});
    client.send(send(&part)).await;
    client.until("chat:stream-end").await;
    let asked = provider.requests()[0]["messages"].to_string();
    assert!(
        asked.contains(&format!("data:image/gif;base64,{PIXEL}")),
        "{asked}"
    );
}

#[tokio::test]
async fn a_picture_that_a_tool_reads_reaches_the_model() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call("file_read", &json!({"path": "dot.gif"})))
        .then(Turn::text("a dot"));
    let daemon = Daemon::start(&provider).await;
    daemon.file("dot.gif", b"GIF89a\x01\x00\x01\x00\x00\x00\x00,");
    let mut client = daemon.connect().await;
    client.say("look").await;
    client.until("chat:stream-end").await;
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(result["result"], "[image image/gif]");
    let parts = json!([{"type": "image", "mediaType": "image/gif", "data": PIXEL}]);
    assert_eq!(result["content"], parts);
    let asked = provider.requests()[1]["messages"].to_string();
    assert!(asked.contains("data:image/gif;base64,"), "{asked}");
    // Whoever comes later is shown it too.
    let session = client.session();
    drop(client);
    let mut later = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let again = later.until("chat:tool-result").await;
    assert_eq!(again["payload"]["content"], parts);
    let history = later.ask(json!({"type": "chat:history"})).await;
    assert_eq!(history["payload"]["messages"][2]["content"], parts);
}

#[tokio::test]
async fn what_no_model_takes_is_refused_at_the_door() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let large = "iVBORw0KGgo".to_owned() + &"A".repeat(6_000_001);
    for (media_type, data, expected) in [
        ("image/png", "not base64!", "is not standard base64"),
        (
            "image/svg+xml",
            "PHN2Zz48L3N2Zz4=",
            "is no picture that models take",
        ),
        ("image/png", large.as_str(), "allowed: 3750000"),
        ("image/png", PIXEL, "the picture is image/gif"),
    ] {
        let part = json!({"type": "image", "mediaType": media_type, "data": data});
        let answer = client.ask(send(&part)).await;
        assert_eq!(answer["payload"]["code"], "invalid_payload", "{answer}");
        let message = answer["payload"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("field `content[1]") && message.contains(expected),
            "{message}"
        );
    }
    assert!(provider.requests().is_empty());
}
