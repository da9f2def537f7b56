//! Servers that ask the user for something in the middle of a call.

use serde_json::{Value, json};

use super::{AUTONOMOUS, Fake, call, until_state, with_fake};
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// A daemon whose client answers, and a model that makes one call.
async fn asked(tool: &str, more: &Value) -> (Fake, Daemon, Client, Provider) {
    let mut config = AUTONOMOUS();
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    let turns = vec![call(tool), Turn::text("done")];
    let (fake, daemon, mut client, provider) = with_fake(turns, &[], &config).await;
    until_state(&mut client, "fake", "ready").await;
    opt_in(&mut client).await;
    client.say("go").await;
    (fake, daemon, client, provider)
}

pub(super) async fn opt_in(client: &mut Client) {
    let configure = json!({"type": "session:configure", "inputRequests": true});
    let answer = client.ask(configure).await;
    assert_eq!(answer["payload"]["inputRequests"], true, "{answer}");
}

async fn request(client: &mut Client) -> Value {
    client.until("chat:tool-input-request").await["payload"].clone()
}

/// What the server was given.
fn given(fake: &Fake) -> Value {
    let answer: Value = serde_json::from_str(&fake.note("answer").unwrap()).unwrap();
    assert_eq!(answer["id"], 902);
    answer["result"].clone()
}

/// Checks that sessions were notified why nobody was asked.
pub(super) fn declined(client: &Client, why: &str) {
    let notices = client.all("session:notice");
    let says_why = |notice: &Value| {
        let message = notice["message"].as_str().unwrap();
        notice["code"] == "mcp_input_declined" && message.contains(why)
    };
    assert!(notices.iter().any(says_why), "{notices:?}");
}

/// How the one question was settled: outcome, action and by whom.
fn settled(client: &Client) -> Value {
    let settled = client.all("chat:tool-input-resolved");
    assert_eq!(settled.len(), 1, "{settled:?}");
    json!([
        settled[0]["outcome"],
        settled[0]["action"],
        settled[0]["by"]
    ])
}

#[tokio::test]
async fn the_user_is_asked_and_the_server_given_what_fits() {
    let loud = json!({"log": {"level": "trace"}});
    let (fake, daemon, mut client, provider) = asked("form", &loud).await;
    let request = request(&mut client).await;
    assert_eq!(request["server"], "fake");
    assert_eq!(request["message"], "your name?");
    assert_eq!(request["mode"], "form");
    assert_eq!(
        request["requestedSchema"]["properties"]["name"]["maxLength"],
        20
    );
    assert!(request["expiresAt"].is_string());
    let state = client.ask(json!({"type": "session:state"})).await;
    assert_eq!(state["payload"]["inputs"], json!([request]));
    assert_eq!(
        state["payload"]["conversations"][0]["state"],
        "awaiting-input"
    );
    let id = &request["requestId"];
    for (content, field) in [
        (json!({"age": 7}), "`name`"),
        (json!({"name": "Ada", "age": "old"}), "`age`"),
        (json!({"name": "Ada", "size": 1}), "`size`"),
        (
            json!({"name": "Ada", "long": "x".repeat(64 * 1024)}),
            "bytes are more than 65536",
        ),
    ] {
        let answer = json!({"type": "chat:tool-input", "requestId": id, "action": "accept",
            "content": content});
        let answer = client.ask(answer).await;
        assert_eq!(answer["payload"]["code"], "invalid_payload");
        let message = answer["payload"]["message"].as_str().unwrap();
        assert!(
            message.contains(field) && message.contains("stays open"),
            "{message}"
        );
    }
    let right = json!({"type": "chat:tool-input", "requestId": id, "action": "accept",
        "content": {"name": "Ada of the engine", "age": 36}});
    let answer = client.ask(right.clone()).await;
    assert_eq!(
        answer["payload"],
        json!({"requestId": id, "accepted": true})
    );
    let twice = client.ask(right).await;
    assert_eq!(twice["payload"]["code"], "input_not_found");
    client.until("chat:stream-end").await;
    assert_eq!(settled(&client), json!(["answered", "accept", "user"]));
    // What the answer leaves out has the default of the form.
    let content = json!({"name": "Ada of the engine", "age": 36, "city": "Rome"});
    assert_eq!(
        given(&fake),
        json!({"action": "accept", "content": content})
    );
    // Only the server tells the model, and nobody else gets what was answered.
    assert!(!json!(client.seen).to_string().contains("of the engine"));
    assert!(
        !json!(provider.requests())
            .to_string()
            .contains("of the engine")
    );
    let log: Vec<String> = daemon.log().iter().map(Value::to_string).collect();
    let with = |words: &str| -> Vec<&String> {
        let lines = log.iter();
        lines.filter(|line| line.contains(words)).collect()
    };
    assert_eq!(with("a request for input settled").len(), 1);
    assert_eq!(with("of the engine"), Vec::<&String>::new());
    assert!(fake.note("initialize").unwrap().contains("elicitation"));
}

#[tokio::test]
async fn a_page_is_shown_and_opened_by_the_user_alone() {
    let (fake, _daemon, mut client, _provider) = asked("page", &json!({})).await;
    let request = request(&mut client).await;
    assert_eq!(request["mode"], "url");
    assert_eq!(request["message"], "please pay");
    assert_eq!(request["url"], "https://pay.example/order?7");
    assert_eq!(request.get("requestedSchema"), None);
    let mut accept = json!({"type": "chat:tool-input", "requestId": request["requestId"],
        "action": "accept", "content": {"paid": true}});
    let refused = client.ask(accept.clone()).await;
    assert_eq!(refused["payload"]["code"], "invalid_payload", "{refused}");
    accept["content"].take();
    let answer = client.ask(accept).await;
    assert_eq!(answer["payload"]["accepted"], true, "{answer}");
    client.until("chat:stream-end").await;
    assert_eq!(settled(&client), json!(["answered", "accept", "user"]));
    assert_eq!(given(&fake), json!({"action": "accept"}));
    let offered: Value = serde_json::from_str(&fake.note("initialize").unwrap()).unwrap();
    let offered = &offered["params"]["capabilities"]["elicitation"];
    assert!(
        offered["url"].is_object() && offered["form"].is_object(),
        "{offered}"
    );
}

#[tokio::test]
async fn an_empty_form_is_nothing_given_to_a_page() {
    let (fake, _daemon, mut client, _provider) = asked("page", &json!({})).await;
    let request = request(&mut client).await;
    let accept = json!({"type": "chat:tool-input", "requestId": request["requestId"],
        "action": "accept", "content": {}});
    let answer = client.ask(accept).await;
    assert_eq!(answer["payload"]["accepted"], true, "{answer}");
    client.until("chat:stream-end").await;
    assert_eq!(given(&fake), json!({"action": "accept"}));
}

#[tokio::test]
async fn what_is_no_page_is_not_shown() {
    let (fake, _daemon, mut client, _provider) = asked("script", &json!({})).await;
    client.until("chat:stream-end").await;
    assert_eq!(given(&fake), json!({"action": "decline"}));
    assert_eq!(client.all("chat:tool-input-request").len(), 0);
    declined(&client, "not that of a web page");
}

#[tokio::test]
async fn a_no_is_reported_to_the_server() {
    for (action, by) in [("decline", "decline"), ("cancel", "cancel")] {
        let (fake, _daemon, mut client, _provider) = asked("form", &json!({})).await;
        let request = request(&mut client).await;
        let answer = json!({"type": "chat:tool-input", "requestId": request["requestId"],
            "action": action});
        client.ask(answer).await;
        client.until("chat:stream-end").await;
        assert_eq!(settled(&client), json!(["answered", action, "user"]));
        assert_eq!(given(&fake), json!({"action": by}));
        assert_eq!(client.all("chat:tool-result")[0]["status"], "success");
    }
}

#[tokio::test]
async fn a_question_lapses_and_waiting_counts_towards_no_limit() {
    let fake = Fake::new();
    let provider = Provider::start().await;
    provider.then(call("form")).then(Turn::text("done"));
    let mut config = AUTONOMOUS();
    let mut server = fake.config(&[]);
    // Shorter than the time for an answer, and enough for a server on a busy machine to ask.
    server["timeout"] = json!("5s");
    config["mcp"] = json!({"servers": {"fake": server}});
    config["approval"] = json!({"timeout": "6s"});
    config["chat"]["timeout_tools"] = json!("6s");
    let daemon = Daemon::with(&provider, config).await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "fake", "ready").await;
    opt_in(&mut client).await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    assert_eq!(settled(&client), json!(["expired", null, "timeout"]));
    assert_eq!(given(&fake), json!({"action": "cancel"}));
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(result["status"], "success", "{result}");
}

#[tokio::test]
async fn a_cancel_settles_the_question_before_the_call() {
    for frame in [
        json!({"type": "chat:cancel"}),
        json!({"type": "tool:cancel", "toolId": "t1"}),
    ] {
        let (_fake, _daemon, mut client, _provider) = asked("form", &json!({})).await;
        request(&mut client).await;
        client.ask(frame).await;
        client.until("chat:stream-end").await;
        assert_eq!(settled(&client), json!(["cancelled", null, "cancel"]));
        let types = client.types();
        let at = |kind: &str| types.iter().position(|it| it == kind).unwrap();
        assert!(at("chat:tool-input-resolved") < at("chat:tool-result"));
    }
}

#[tokio::test]
async fn a_call_that_ends_takes_its_question_with_it() {
    let (fake, _daemon, mut client, _provider) = asked("hasty", &json!({})).await;
    let request = request(&mut client).await;
    let go = fake.folder.path().join("notes/go");
    tokio::task::spawn_blocking(move || std::fs::write(go, "on\n").unwrap());
    client.until("chat:stream-end").await;
    assert_eq!(settled(&client), json!(["cancelled", null, "cancel"]));
    let types = client.types();
    let at = |kind: &str| types.iter().position(|it| it == kind).unwrap();
    assert!(at("chat:tool-input-resolved") < at("chat:tool-result"));
    let late = json!({"type": "chat:tool-input", "requestId": request["requestId"],
        "action": "decline"});
    let answer = client.ask(late).await;
    assert_eq!(answer["payload"]["code"], "input_not_found");
}

#[tokio::test]
async fn a_question_is_carried_over_a_resume() {
    let (fake, daemon, mut client, _provider) = asked("form", &json!({})).await;
    let asked = request(&mut client).await;
    let session = client.all("session:ready")[0]["sessionId"].clone();
    drop(client);
    let query = format!("?session={}&after=0", session.as_str().unwrap());
    let mut client = Client::connect(&daemon, &query).await;
    let again = request(&mut client).await;
    assert_eq!(again, asked);
    let answer = json!({"type": "chat:tool-input", "requestId": again["requestId"],
        "action": "accept", "content": {"name": "Ada"}});
    client.ask(answer).await;
    client.until("chat:stream-end").await;
    assert_eq!(given(&fake)["content"]["name"], "Ada");
}

#[tokio::test]
async fn with_several_calls_nobody_is_asked() {
    let turns = vec![call("slow"), call("ask"), Turn::text("done")];
    let (fake, _daemon, mut client, _provider) = with_fake(turns, &[], &AUTONOMOUS()).await;
    until_state(&mut client, "fake", "ready").await;
    opt_in(&mut client).await;
    let send = |name: &str| json!({"type": "chat:send", "conversationId": name, "content": "go"});
    client.send(send("a")).await;
    client.until("chat:tool-start").await;
    client.send(send("b")).await;
    client.until("chat:stream-end").await;
    let answer: Value = serde_json::from_str(&fake.note("answer").unwrap()).unwrap();
    assert_eq!(answer["result"]["action"], "decline");
    declined(&client, "several calls");
    assert_eq!(client.all("chat:tool-input-request").len(), 0);
}

#[tokio::test]
async fn where_nobody_attends_nobody_is_asked() {
    let unattended = json!({"approval": {"unattended": "deny"}});
    let (fake, _daemon, mut client, _provider) = asked("form", &unattended).await;
    client.until("chat:stream-end").await;
    assert_eq!(given(&fake), json!({"action": "decline"}));
    assert_eq!(client.all("chat:tool-input-request").len(), 0);
    declined(&client, "approval.unattended");
}

#[tokio::test]
async fn an_open_question_is_part_of_the_resync_after_a_gap() {
    let mut turns = vec![call("form")];
    turns.extend((0..30).map(|_| Turn::text(&"x".repeat(3_000))));
    turns.push(Turn::text("done"));
    let mut config = AUTONOMOUS();
    config["session"] = json!({"buffer_bytes": "64KiB"});
    let (fake, daemon, mut client, _provider) = with_fake(turns, &[], &config).await;
    until_state(&mut client, "fake", "ready").await;
    opt_in(&mut client).await;
    let send = |name: &str| json!({"type": "chat:send", "conversationId": name, "content": "go"});
    client.send(send("a")).await;
    let asked = request(&mut client).await;
    for _ in 0..30 {
        client.send(send("b")).await;
        client.until("chat:stream-end").await;
    }
    // Somebody is at it: it lapses later, and the resync says so.
    let extend = |tool: &Value| json!({"type": "chat:tool-extend", "toolId": tool, "requestId": asked["requestId"]});
    let other = client.ask(extend(&json!("t9"))).await;
    assert_eq!(other["payload"]["code"], "approval_not_found");
    let extended = client.ask(extend(&asked["toolId"])).await["payload"].clone();
    let announced = client.all("chat:tool-extended");
    assert_eq!(announced[0]["requestId"], asked["requestId"]);
    assert_eq!(announced[0]["expiresAt"], extended["expiresAt"]);
    let mut later = asked.clone();
    later["expiresAt"] = extended["expiresAt"].clone();
    assert_ne!(later, asked);
    let session = client.all("session:ready")[0]["sessionId"].clone();
    drop(client);
    let query = format!("?session={}&after=1", session.as_str().unwrap());
    let mut client = Client::connect(&daemon, &query).await;
    let gap = client.next().await;
    assert_eq!(gap["payload"]["code"], "replay_gap");
    assert_eq!(request(&mut client).await, later);
    let answer = json!({"type": "chat:tool-input", "requestId": asked["requestId"],
        "action": "accept", "content": {"name": "Ada"}});
    client.ask(answer).await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-input-request").len(), 1);
    assert_eq!(given(&fake)["content"]["name"], "Ada");
}
