//! Servers of the newer era, which end a call with a demand for input and are called again with it.

use serde_json::{Value, json};

use super::input::{declined, opt_in};
use super::{AUTONOMOUS, Fake, call, until_state, with_fake};
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// A daemon with a server of the newer era, and a model that makes these calls.
async fn called(tools: &[&str]) -> (Fake, Daemon, Client, Provider) {
    let mut turns: Vec<Turn> = tools.iter().map(|tool| call(tool)).collect();
    turns.push(Turn::text("done"));
    let (fake, daemon, mut client, provider) = with_fake(turns, &["newer"], &AUTONOMOUS()).await;
    until_state(&mut client, "fake", "ready").await;
    assert_eq!(fake.note("initialize"), None, "the newer era has none");
    (fake, daemon, client, provider)
}

/// The parameters of each call that the server was sent.
fn rounds(fake: &Fake) -> Vec<Value> {
    let lines = fake.note("demands").unwrap();
    let read = |line| serde_json::from_str::<Value>(line).unwrap()["params"].clone();
    lines.lines().map(read).collect()
}

/// The two requests of the first demand, which are open at once.
async fn both(client: &mut Client) -> Vec<Value> {
    client.until("chat:tool-input-request").await;
    client.until("chat:tool-input-request").await;
    client.all("chat:tool-input-request")
}

#[tokio::test]
async fn a_call_is_made_again_with_what_the_user_gave() {
    let (fake, _daemon, mut client, provider) = called(&["demand"]).await;
    opt_in(&mut client).await;
    client.say("go").await;
    for request in both(&mut client).await {
        assert_eq!(request["server"], "fake");
        let mut answer = json!({"type": "chat:tool-input", "requestId": request["requestId"],
            "action": "accept"});
        match request["mode"].as_str() {
            Some("form") => answer["content"] = json!({"name": "Ada of the engine"}),
            _ => assert_eq!(request["url"], "https://pay.example/order?7"),
        }
        client.ask(answer).await;
    }
    client.until("chat:stream-end").await;
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(result["status"], "success", "{result}");
    assert!(result["result"].as_str().unwrap().contains("through"));
    let rounds = rounds(&fake);
    let answers = json!({"pay": {"action": "accept"},
        "who": {"action": "accept", "content": {"name": "Ada of the engine"}}});
    let sent: Vec<Value> = rounds
        .iter()
        .map(|round| json!([round["requestState"], round["inputResponses"]]))
        .collect();
    assert_eq!(
        sent,
        [
            json!([null, null]),
            json!(["one", answers]),
            json!(["two", null])
        ]
    );
    assert!(
        rounds
            .iter()
            .all(|round| round["arguments"] == json!({"text": "hi"}))
    );
    // It was one call, and what was answered went to the server alone.
    assert_eq!(client.all("chat:tool-start").len(), 1);
    let all = json!([client.seen, provider.requests()]).to_string();
    assert!(!all.contains("of the engine"));
}

#[tokio::test]
async fn a_demand_is_that_of_its_call_however_many_run() {
    let (fake, _daemon, mut client, _provider) = called(&["slow", "demand"]).await;
    opt_in(&mut client).await;
    let send = |name: &str| json!({"type": "chat:send", "conversationId": name, "content": "go"});
    client.send(send("a")).await;
    client.until("chat:tool-start").await;
    client.send(send("b")).await;
    for request in both(&mut client).await {
        assert_eq!(request["conversationId"], "b");
        let no = json!({"type": "chat:tool-input", "requestId": request["requestId"],
            "action": "decline"});
        client.ask(no).await;
    }
    client.until("chat:stream-end").await;
    let no = json!({"action": "decline"});
    assert_eq!(
        rounds(&fake)[1]["inputResponses"],
        json!({"pay": no, "who": no})
    );
}

#[tokio::test]
async fn waiting_for_the_user_counts_towards_no_limit() {
    let fake = Fake::new();
    let provider = Provider::start().await;
    provider.then(call("demand")).then(Turn::text("done"));
    let mut config = AUTONOMOUS();
    let mut server = fake.config(&["newer"]);
    // Shorter than the time for an answer.
    server["timeout"] = json!("1s");
    config["mcp"] = json!({"servers": {"fake": server}});
    config["approval"] = json!({"timeout": "2s"});
    let daemon = Daemon::with(&provider, config).await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "fake", "ready").await;
    opt_in(&mut client).await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let late = json!({"action": "cancel"});
    assert_eq!(
        rounds(&fake)[1]["inputResponses"],
        json!({"pay": late, "who": late})
    );
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(result["status"], "success", "{result}");
}

#[tokio::test]
async fn demands_have_an_end_and_nobody_is_asked_who_did_not_opt_in() {
    let (fake, _daemon, mut client, _provider) = called(&["insist", "sample"]).await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    for (result, said) in results
        .iter()
        .zip(["asked for input 10 times", "not to be had"])
    {
        assert_eq!(result["status"], "error", "{result}");
        assert!(
            result["result"].as_str().unwrap().contains(said),
            "{result}"
        );
    }
    let rounds = rounds(&fake);
    assert_eq!(rounds.len(), 10);
    assert_eq!(
        rounds[9]["inputResponses"],
        json!({"who": {"action": "decline"}})
    );
    assert_eq!(client.all("chat:tool-input-request").len(), 0);
    declined(&client, "inputRequests");
}

#[tokio::test]
async fn a_question_ends_with_its_server_or_its_call() {
    for is_cancelled in [false, true] {
        let (fake, _daemon, mut client, _provider) = called(&["leave"]).await;
        opt_in(&mut client).await;
        client.say("go").await;
        client.until("chat:tool-input-request").await;
        if is_cancelled {
            client.ask(json!({"type": "chat:cancel"})).await;
        }
        let go = fake.folder.path().join("notes/go");
        let left = tokio::task::spawn_blocking(move || std::fs::write(go, "on\n").unwrap());
        client.until("chat:stream-end").await;
        left.await.unwrap();
        let settled = client.all("chat:tool-input-resolved");
        assert_eq!(settled.len(), 1);
        assert_eq!(settled[0]["outcome"], "cancelled");
        let types = client.types();
        let at = |kind: &str| types.iter().position(|it| it == kind).unwrap();
        assert!(at("chat:tool-input-resolved") < at("chat:tool-result"));
        let result = client.all("chat:tool-result")[0]["result"].clone();
        let expected = if is_cancelled {
            "cancelled"
        } else {
            "ended during the call"
        };
        assert!(result.as_str().unwrap().contains(expected), "{result}");
    }
}
