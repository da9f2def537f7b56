//! The same attempts by an editor, on the socket of the Agent Client Protocol.

use futures::{SinkExt as _, StreamExt as _};
use tokio_tungstenite::tungstenite::Message;

use super::*;
use crate::support::within;

/// Asks on a socket of an editor's; returns the answer.
async fn ask(users: &Users, token: &str, method: &str, params: &Value) -> Value {
    let url = format!("ws://127.0.0.1:{}/acp?token={token}", users.daemon.port);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
    for (id, method, params) in [(1, "initialize", &hello), (2, method, params)] {
        let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        socket.send(Message::text(frame.to_string())).await.unwrap();
    }
    let answer = async {
        loop {
            if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
                let frame: Value = serde_json::from_str(&text).unwrap();
                if frame["id"] == 2 {
                    return frame;
                }
            }
        }
    };
    within("an answer", answer, String::new).await
}

#[tokio::test]
async fn an_editor_finds_its_own_users_sessions_alone() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, json!({})).await;
    let mut anna = users.connect("anna").await;
    anna.say("a needle").await;
    anna.until("chat:stream-end").await;
    let theirs = anna.session();
    let ben = users.own_token("ben").await;
    let cwd = users.work.join("ben");
    let other = users.work.join("anna");
    for method in [
        "session/load",
        "session/resume",
        "session/fork",
        "session/status",
        "session/archive",
        "session/unarchive",
    ] {
        let params = |id: &str| json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
        let (id, made_up) = (&theirs, "0123456789abcdef");
        let real = ask(&users, &ben, method, &params(id)).await;
        let unknown = ask(&users, &ben, method, &params(made_up)).await;
        assert!(real.get("error").is_some(), "{method}: {real}");
        let same = |answer: Value, id: &str| answer.to_string().replace(id, "ID");
        assert_eq!(same(real, id), same(unknown, made_up), "{method}");
    }
    // What is not there is deleted, whoever asks; this one stays.
    ask(
        &users,
        &ben,
        "session/delete",
        &json!({"sessionId": theirs}),
    )
    .await;
    let listed = ask(&users, &ben, "session/list", &json!({})).await;
    assert_eq!(listed["result"]["sessions"], json!([]), "{listed}");
    let new = json!({"cwd": other, "mcpServers": []});
    let refused = ask(&users, &ben, "session/new", &new).await;
    assert!(refused.get("error").is_some(), "{refused}");
    let own = users.own_token("anna").await;
    let listed = ask(&users, &own, "session/list", &json!({})).await;
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], theirs);
}
