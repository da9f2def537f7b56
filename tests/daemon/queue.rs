//! What waits in a conversation: listed, said otherwise, put elsewhere, dropped, sent now.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Answering, Client, Daemon, Provider};

/// Has a send wait, and returns the id of its exchange.
async fn wait(client: &mut Client, content: &str) -> String {
    let sent = client
        .ask(json!({"type": "chat:send", "content": content, "whenBusy": "queue"}))
        .await["payload"]
        .clone();
    assert_eq!(sent["state"], "queued", "{sent}");
    sent["messageId"].as_str().unwrap().to_owned()
}

async fn queue(client: &mut Client, more: Value) -> Value {
    let mut wanted = json!({"type": "chat:queue"});
    let fields = more.as_object().unwrap().clone();
    wanted.as_object_mut().unwrap().extend(fields);
    client.ask(wanted).await
}

/// What waits, by its words.
fn words(answer: &Value) -> Vec<String> {
    let waiting = answer["payload"]["queue"].as_array();
    let waiting = waiting.unwrap_or_else(|| panic!("{answer}")).iter();
    waiting
        .map(|it| it["content"].as_str().unwrap().to_owned())
        .collect()
}

/// What the provider was asked last of all in each request but the first.
fn asked(provider: &Provider) -> Vec<Value> {
    provider.requests()[1..]
        .iter()
        .map(|it| it["messages"].as_array().unwrap().last().unwrap()["content"].clone())
        .collect()
}

#[tokio::test]
async fn a_queue_is_listed_and_changed_and_runs_as_it_is_then() {
    let Answering {
        mut client,
        provider,
        daemon: _daemon,
        pause,
    } = Answering::begin().await;
    let nothing = queue(&mut client, json!({"conversationId": "other"})).await;
    assert_eq!(words(&nothing), [""; 0]);
    let one = wait(&mut client, "one").await;
    let two = wait(&mut client, "two").await;
    let three = wait(&mut client, "three").await;
    let listed = queue(&mut client, json!({})).await;
    assert_eq!(words(&listed), ["one", "two", "three"]);
    assert_eq!(listed["payload"]["queue"][1]["messageId"], two.as_str());
    assert_eq!(listed["payload"]["queue"][1]["position"], 2);
    let edit = json!({"action": "edit", "messageId": two, "content": "TWO"});
    assert_eq!(
        words(&queue(&mut client, edit).await),
        ["one", "TWO", "three"]
    );
    let told = client.until("chat:queued").await["payload"].clone();
    assert_eq!(
        [&told["messageId"], &told["content"]],
        [&json!(two), &json!("TWO")]
    );
    let first = json!({"action": "move", "messageId": three, "position": 1});
    assert_eq!(
        words(&queue(&mut client, first).await),
        ["three", "one", "TWO"]
    );
    let remove = json!({"action": "remove", "messageId": one});
    assert_eq!(words(&queue(&mut client, remove).await), ["three", "TWO"]);
    let end = client.until("chat:stream-end").await["payload"].clone();
    assert_eq!(
        [&end["messageId"], &end["stopReason"]],
        [&json!(one), &json!("cancelled")]
    );
    provider.then(Turn::text("3")).then(Turn::text("2"));
    pause.go_on();
    for _ in 0..3 {
        client.until("chat:stream-end").await;
    }
    assert_eq!(asked(&provider), ["three", "TWO"]);
    client.check_numbers();
}

#[tokio::test]
async fn one_that_waits_is_sent_now_as_part_of_what_runs() {
    let Answering {
        mut client,
        provider,
        daemon: _daemon,
        pause,
    } = Answering::begin().await;
    wait(&mut client, "one").await;
    let two = wait(&mut client, "two").await;
    let now = json!({"action": "send", "messageId": two});
    assert_eq!(words(&queue(&mut client, now).await), ["one"]);
    let told = client.until("chat:queued").await["payload"].clone();
    assert_eq!(
        [&told["messageId"], &told["position"]],
        [&json!(two), &json!(0)]
    );
    provider.then(Turn::text("b")).then(Turn::text("c"));
    pause.go_on();
    let steered = client.until("chat:steered").await["payload"].clone();
    assert_eq!(
        [&steered["messageId"], &steered["content"]],
        [&json!("m1"), &json!("two")]
    );
    for _ in 0..2 {
        client.until("chat:stream-end").await;
    }
    assert_eq!(provider.requests().len(), 3);
}

#[tokio::test]
async fn what_cannot_be_done_to_a_queue_is_said_and_changes_nothing() {
    let Answering {
        mut client,
        provider: _provider,
        daemon: _daemon,
        pause: _pause,
    } = Answering::begin().await;
    let own = client
        .ask(json!({"type": "chat:send", "content": "own", "model": "other"}))
        .await["payload"]["messageId"]
        .clone();
    let call = client
        .ask(json!({"type": "tool:execute", "toolName": "file_list", "input": {}}))
        .await["payload"]["messageId"]
        .clone();
    let one = wait(&mut client, "one").await;
    for (change, code) in [
        (
            json!({"action": "remove", "messageId": "m99"}),
            "not_queued",
        ),
        // It runs.
        (json!({"action": "remove", "messageId": "m1"}), "not_queued"),
        (json!({"action": "remove"}), "invalid_payload"),
        (
            json!({"action": "drop", "messageId": one}),
            "invalid_payload",
        ),
        (
            json!({"action": "edit", "messageId": one}),
            "invalid_payload",
        ),
        (
            json!({"action": "edit", "messageId": one, "content": " "}),
            "invalid_payload",
        ),
        (
            json!({"action": "edit", "messageId": call, "content": "x"}),
            "invalid_payload",
        ),
        (
            json!({"action": "move", "messageId": one}),
            "invalid_payload",
        ),
        (
            json!({"action": "move", "messageId": one, "position": 0}),
            "invalid_payload",
        ),
        (
            json!({"action": "send", "messageId": own}),
            "conversation_busy",
        ),
        (
            json!({"action": "send", "messageId": call}),
            "conversation_busy",
        ),
    ] {
        let answer = queue(&mut client, change.clone()).await;
        assert_eq!(answer["payload"]["code"], code, "{change}: {answer}");
    }
    let last = json!({"action": "move", "messageId": own, "position": 99});
    let moved = queue(&mut client, last).await;
    assert_eq!(words(&moved), ["", "one", "own"]);
    assert_eq!(moved["payload"]["queue"][0]["toolName"], "file_list");
}

#[tokio::test]
async fn a_queue_is_as_it_was_left_after_a_kill_and_may_be_sent_then() {
    let Answering {
        mut client,
        provider,
        daemon,
        pause: _pause,
    } = Answering::begin().await;
    let session = client.session();
    let one = wait(&mut client, "one").await;
    let two = wait(&mut client, "two").await;
    let edit = json!({"action": "edit", "messageId": one, "content": "ONE"});
    queue(&mut client, edit).await;
    let first = json!({"action": "move", "messageId": two, "position": 1});
    assert_eq!(words(&queue(&mut client, first).await), ["two", "ONE"]);
    drop(client);
    let daemon = daemon.after_kill().await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let listed = queue(&mut client, json!({})).await;
    assert_eq!(words(&listed), ["two", "ONE"]);
    assert_eq!(listed["payload"]["held"], true);
    provider.then(Turn::text("1")).then(Turn::text("2"));
    let now = json!({"action": "send", "messageId": one});
    queue(&mut client, now).await;
    for _ in 0..2 {
        client
            .find(|it| it["type"] == "chat:stream-end" && it["payload"]["stopReason"] == "end_turn")
            .await;
    }
    // The first one was never answered.
    assert_eq!(asked(&provider), ["first\n\nONE", "two"]);
}

#[tokio::test]
async fn an_edit_keeps_its_place_and_what_was_removed_stays_away_after_a_kill() {
    let Answering {
        mut client,
        provider: _provider,
        daemon,
        pause: _pause,
    } = Answering::begin().await;
    let session = client.session();
    let one = wait(&mut client, "one").await;
    wait(&mut client, "two").await;
    let three = wait(&mut client, "three").await;
    let edit = json!({"action": "edit", "messageId": one, "content": "ONE"});
    queue(&mut client, edit).await;
    let remove = json!({"action": "remove", "messageId": three});
    assert_eq!(words(&queue(&mut client, remove).await), ["ONE", "two"]);
    let daemon = daemon.after_kill().await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let listed = queue(&mut client, json!({})).await;
    assert_eq!(words(&listed), ["ONE", "two"]);
    let idle_before = client.seen.iter().filter(|it| is_idle(it)).count();
    // Held sends that are dropped one by one leave the conversation idle.
    for waiting in listed["payload"]["queue"].as_array().unwrap() {
        let idle = client.seen.iter().filter(|it| is_idle(it)).count();
        assert_eq!(idle, idle_before, "it is not idle while one waits");
        let remove = json!({"action": "remove", "messageId": waiting["messageId"]});
        queue(&mut client, remove).await;
        client
            .find(|it| {
                it["type"] == "chat:stream-end"
                    && it["payload"]["messageId"] == waiting["messageId"]
            })
            .await;
    }
    client.find(is_idle).await;
}

fn is_idle(frame: &Value) -> bool {
    frame["type"] == "chat:state" && frame["payload"]["state"] == "idle"
}

#[tokio::test]
async fn held_sends_that_a_cancel_drops_leave_the_conversation_idle() {
    let Answering {
        mut client,
        provider: _provider,
        daemon,
        pause: _pause,
    } = Answering::begin().await;
    let session = client.session();
    wait(&mut client, "one").await;
    let daemon = daemon.after_kill().await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let status = json!({"type": "session:status"});
    // What is held does not run; the exchange that the kill broke off was never seen to begin.
    assert_eq!(client.ask(status).await["payload"]["state"], "idle");
    let cancel = json!({"type": "chat:cancel", "queued": true});
    let answer = client.ask(cancel).await;
    assert_eq!(answer["payload"]["queuedDropped"], 1);
    client.find(is_idle).await;
}

#[tokio::test]
async fn a_change_where_nothing_waits_is_refused() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for change in [
        json!({"action": "remove", "messageId": "m8"}),
        json!({"action": "edit", "messageId": "m8", "content": "x"}),
        json!({"action": "send", "messageId": "m8"}),
    ] {
        let answer = queue(&mut client, change).await;
        assert_eq!(answer["payload"]["code"], "not_queued", "{answer}");
    }
    let listed = queue(&mut client, json!({})).await;
    assert_eq!(words(&listed), [""; 0]);
}

#[tokio::test]
async fn an_edit_drops_no_document_unseen() {
    let Answering {
        mut client,
        provider,
        daemon: _daemon,
        pause,
    } = Answering::begin().await;
    let table =
        json!({"type": "document", "mediaType": "text/csv", "name": "a.csv", "text": "x,y"});
    let content = json!([{"type": "text", "text": "sum"}, table]);
    let sent = client
        .ask(json!({"type": "chat:send", "content": content, "whenBusy": "queue"}))
        .await;
    let id = sent["payload"]["messageId"].clone();
    let edit = json!({"action": "edit", "messageId": id, "content": "sum all"});
    let answer = queue(&mut client, edit).await;
    assert_eq!(answer["payload"]["code"], "invalid_payload", "{answer}");
    let listed = queue(&mut client, json!({})).await;
    assert_eq!(words(&listed), ["sum"]);
    assert_eq!(listed["payload"]["queue"][0]["attachments"], 1);
    let content = json!([{"type": "text", "text": "sum all"}, table]);
    let edit = json!({"action": "edit", "messageId": id, "content": content});
    assert_eq!(words(&queue(&mut client, edit).await), ["sum all"]);
    provider.then(Turn::text("b"));
    pause.go_on();
    for _ in 0..2 {
        client.until("chat:stream-end").await;
    }
    let asked = provider.requests()[1]["messages"].to_string();
    assert!(
        asked.contains("sum all") && asked.contains("x,y"),
        "{asked}"
    );
}
