//! Programs and endpoints of the operator that are asked at certain points.

mod ends;

use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::provider::Turn;
use crate::support::{Answering, Daemon, Provider};

/// Runs every safe command, asks for others, and has these hooks.
fn with(hooks: &Value) -> Value {
    json!({ "chat": { "provider": "test", "trust_level": "guided" },
        "approval": { "policy": "auto_approve_safe" }, "hooks": hooks })
}

/// A hook that is a line for a shell.
fn shell(on: &str, line: &str) -> Value {
    json!({ "on": on, "command": "/bin/sh", "args": ["-c", line] })
}

/// The last message that the provider was sent, as text.
fn last_message(provider: &Provider) -> String {
    let requests = provider.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].to_string()
}

#[tokio::test]
async fn a_call_is_refused_with_a_reason_and_others_pass() {
    let guard =
        "grep -q '\"command\":\"id\"' && { echo 'nobody needs to know' >&2; exit 2; }; exit 0";
    let mut hook = shell("before_tool", guard);
    hook["tools"] = json!(["ba*"]);
    let provider = Provider::start().await;
    provider
        .then(Turn::call("bash", &json!({"command": "id"})))
        .then(Turn::call("bash", &json!({"command": "echo fine"})))
        .then(Turn::call("file_list", &json!({})))
        .then(Turn::text("done"));
    let daemon = Daemon::with(&provider, with(&json!({ "guard": hook }))).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert_eq!(
        results[0]["result"],
        "not allowed: the hook `guard` refused: nobody needs to know"
    );
    assert_eq!(results[0]["metadata"]["denied"], true);
    assert_eq!(results[1]["result"], "fine\n");
    assert_eq!(results[2]["status"], "success");
    assert!(client.all("session:notice").is_empty());
    client.check_numbers();
}

#[tokio::test]
async fn an_input_that_a_hook_changed_is_judged_and_shown_and_so_is_what_the_user_makes_of_it() {
    // What is safe becomes what is asked for; what the user makes of that is refused.
    let change = "read -r line; case $line in *'\"pwd\"'*) \
                  echo '{\"input\":{\"command\":\"touch made\"},\"note\":\"the other one\"}';; \
                  *never*) echo '{\"decision\":\"refuse\",\"reason\":\"never\"}';; esac";
    let hooks = json!({ "change": shell("before_tool", change) });
    let provider = Provider::start().await;
    for _ in 0..2 {
        provider.then(Turn::call("bash", &json!({"command": "pwd"})));
    }
    provider.then(Turn::text("done"));
    let daemon = Daemon::with(&provider, with(&hooks)).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(confirm["input"], json!({"command": "touch made"}));
    assert_eq!(confirm["changedBy"], "change");
    client
        .ask(json!({"type": "chat:tool-approve", "toolId": "t1", "approved": true}))
        .await;
    client.until("chat:tool-confirm").await;
    let made = daemon.project().join("made");
    assert!(made.exists());
    client
        .ask(
            json!({"type": "chat:tool-approve", "toolId": "t2", "approved": true,
            "input": {"command": "touch never"}}),
        )
        .await;
    client.until("chat:stream-end").await;
    assert!(!daemon.project().join("never").exists());
    let starts = client.all("chat:tool-start");
    assert_eq!(starts.len(), 1);
    assert_eq!(starts[0]["input"], json!({"command": "touch made"}));
    let refused = &client.all("chat:tool-result")[1]["result"];
    assert_eq!(*refused, "not allowed: the hook `change` refused: never");
    let requests = provider.requests();
    let read = requests[1]["messages"].to_string();
    assert!(
        read.contains("[note of the hook `change`: the other one]"),
        "{read}"
    );
    assert!(
        read.contains("a hook of the operator changed the input of this call"),
        "{read}"
    );
}

#[tokio::test]
async fn an_input_of_a_hook_that_does_not_fit_is_no_fault_of_the_model() {
    let change = "echo '{\"input\":{\"comand\":\"pwd\"}}'";
    let hooks = json!({ "typo": shell("before_tool", change) });
    let provider = Provider::start().await;
    provider.then(Turn::call("bash", &json!({"command": "pwd"})));
    provider.then(Turn::text("done"));
    let daemon = Daemon::with(&provider, with(&hooks)).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let result = client.all("chat:tool-result")[0]["result"].to_string();
    assert!(
        result.contains(
            "hook `typo` changed the input to one that does not fit; yours is not at fault"
        ),
        "{result}"
    );
}

#[tokio::test]
async fn what_a_hook_makes_of_what_the_user_wrote_is_judged_and_asked_about() {
    // What the user makes of a call is made something else once more: once what is safe, once what is asked for.
    let change = "read -r line; case $line in \
                  *'touch edited'*) echo '{\"input\":{\"command\":\"touch changed\"}}';; \
                  *'touch harmless'*) echo '{\"input\":{\"command\":\"echo harmless\"}}';; esac";
    let hooks = json!({ "change": shell("before_tool", change) });
    let provider = Provider::start().await;
    for _ in 0..2 {
        provider.then(Turn::call("bash", &json!({"command": "touch asked"})));
    }
    provider.then(Turn::text("done"));
    let daemon = Daemon::with(&provider, with(&hooks)).await;
    let mut client = daemon.connect().await;
    let edit = |id: &str, command: &str| {
        json!({"type": "chat:tool-approve", "toolId": id, "approved": true,
            "input": {"command": command}})
    };
    client.say("go").await;
    client.until("chat:tool-confirm").await;
    client.ask(edit("t1", "touch edited")).await;
    let again = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(
        (&again["toolId"], &again["input"], &again["changedBy"]),
        (
            &json!("t1"),
            &json!({"command": "touch changed"}),
            &json!("change")
        )
    );
    let yes = json!({"type": "chat:tool-approve", "toolId": "t1", "approved": true});
    client.ask(yes).await;
    let next = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(next["toolId"], "t2");
    client.ask(edit("t2", "touch harmless")).await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-confirm").len(), 3);
    let project = daemon.project();
    let is_there = |name: &str| project.join(name).exists();
    assert!(is_there("changed"));
    assert!(!is_there("asked") && !is_there("edited") && !is_there("harmless"));
    let results = client.all("chat:tool-result");
    assert_eq!(results[1]["result"], "harmless\n");
    client.check_numbers();
}

#[tokio::test]
async fn a_hook_that_fails_does_what_on_failure_says() {
    let slow = |on_failure: &str| {
        let mut hook = shell("before_tool", "sleep 1000");
        (hook["timeout"], hook["on_failure"]) = (json!("200ms"), json!(on_failure));
        hook
    };
    let gone = json!({ "on": "before_tool", "command": "/nowhere/hook" });
    for (hook, problem) in [
        (
            shell("before_tool", "echo broken >&2; exit 1"),
            "it ended with 1; what it wrote is in the daemon's log",
        ),
        (
            shell("before_tool", "echo yes"),
            "its answer is not what docs/hooks.md has",
        ),
        (shell("before_tool", "kill -9 $$"), "it ended by a signal"),
        (
            shell("before_tool", "echo '{\"allow\":true}'"),
            "unknown field `allow`",
        ),
        (gone, "it cannot be started"),
        (slow("refuse"), "it took longer than 200ms"),
        (slow("continue"), "it took longer than 200ms"),
        (
            shell("before_tool", "head -c 3000000 /dev/zero | tr '\\0' x"),
            "its answer is longer than",
        ),
    ] {
        let goes_on = hook["on_failure"] == "continue";
        let provider = Provider::start().await;
        provider
            .then(Turn::call("bash", &json!({"command": "echo ran"})))
            .then(Turn::text("done"));
        let daemon = Daemon::with(&provider, with(&json!({ "h": hook }))).await;
        let mut client = daemon.connect().await;
        client.say("go").await;
        client.until("chat:stream-end").await;
        let result = client.all("chat:tool-result")[0]["result"].to_string();
        match goes_on {
            true => assert_eq!(result, "\"ran\\n\""),
            false => assert!(result.contains(problem), "{problem}: {result}"),
        }
        let notices = client.all("session:notice");
        let notice = &notices[0];
        assert_eq!(notice["code"], "hook_failed");
        let told = notice["message"].as_str().unwrap();
        assert!(told.contains(problem), "{problem}: {told}");
        assert!(!told.contains("broken"), "for the operator alone: {told}");
    }
}

#[tokio::test]
async fn what_a_call_came_to_is_withheld_or_gets_a_note() {
    let look = "read -r line; case $line in *hunter2*) \
                echo '{\"decision\":\"refuse\",\"reason\":\"a password\"}';; \
                *) echo '{\"note\":\"looked at\"}';; esac";
    let hooks = json!({ "look": shell("after_tool", look) });
    let provider = Provider::start().await;
    provider
        .then(Turn::call(
            "bash",
            &json!({"command": "printf 'hunt%s' er2"}),
        ))
        .then(Turn::call("bash", &json!({"command": "echo fine"})))
        .then(Turn::text("done"));
    let daemon = Daemon::with(&provider, with(&hooks)).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert_eq!(
        results[0]["result"],
        "this call ran, and what it came to is withheld: the hook `look` refused: a password"
    );
    assert_eq!(results[0]["status"], "error");
    assert_eq!(
        results[1]["result"],
        "fine\n\n[note of the hook `look`: looked at]"
    );
    let requests = provider.requests();
    let sent = json!(requests).to_string();
    assert!(!sent.contains("hunter2"), "{sent}");
}

/// A guard of what users say.
fn words() -> Value {
    let line = "read -r line; case $line in *hush*) \
                echo '{\"decision\":\"refuse\",\"reason\":\"it is hush\"}';; \
                *noted*) echo '{\"note\":\"mind the style\"}';; \
                *systemPrompt*hack*) echo '{\"decision\":\"refuse\",\"reason\":\"no such prompt\"}';; esac";
    json!({ "words": shell("before_send", line) })
}

#[tokio::test]
async fn what_a_user_says_is_refused_before_anything_is_kept_of_it() {
    let provider = Provider::start().await;
    provider.then(Turn::text("done"));
    let daemon = Daemon::with(&provider, with(&words())).await;
    let mut client = daemon.connect().await;
    let refused = client
        .ask(json!({"type": "chat:send", "content": "the hush word"}))
        .await["payload"]
        .clone();
    assert_eq!(refused["code"], "forbidden");
    assert_eq!(
        refused["message"],
        "nothing of this was taken: the hook `words` refused: it is hush"
    );
    let prompt = json!({"type": "chat:send", "content": "fine", "systemPrompt": "You hack."});
    let prompt = client.ask(prompt).await["payload"]["message"].clone();
    assert!(
        prompt.as_str().unwrap().ends_with("no such prompt"),
        "{prompt}"
    );
    assert!(provider.requests().is_empty());
    let parts = json!([{"type": "text", "text": "noted"}, {"type": "text", "text": "twice"}]);
    client
        .ask(json!({"type": "chat:send", "content": parts}))
        .await;
    client.until("chat:stream-end").await;
    let last = last_message(&provider);
    assert!(
        last.contains("[note of the hook `words`: mind the style]"),
        "{last}"
    );
    let history = client
        .ask(json!({"type": "chat:history"}))
        .await
        .to_string();
    assert!(!history.contains("hush"), "{history}");
    client.check_numbers();
}

#[tokio::test]
async fn what_is_said_meanwhile_is_asked_about_too_and_so_is_an_edit_of_what_waits() {
    let Answering {
        mut client,
        provider,
        daemon: _daemon,
        pause,
    } = Answering::with(with(&words())).await;
    let steer = json!({"type": "chat:send", "content": "hush", "whenBusy": "steer"});
    assert_eq!(client.ask(steer).await["payload"]["code"], "forbidden");
    let waits = json!({"type": "chat:send", "content": "fine", "whenBusy": "queue"});
    let waits = client.ask(waits).await["payload"].clone();
    assert_eq!(waits["state"], "queued");
    let edit = json!({"type": "chat:queue", "action": "edit",
        "messageId": waits["messageId"], "content": "hush"});
    assert_eq!(client.ask(edit).await["payload"]["code"], "forbidden");
    provider.then(Turn::text("b"));
    pause.go_on();
    for _ in 0..2 {
        client.until("chat:stream-end").await;
    }
    assert!(last_message(&provider).contains("fine"));
    assert!(!json!(provider.requests()).to_string().contains("hush"));
}

#[tokio::test]
async fn an_answer_that_is_not_enough_is_gone_on_with_but_not_for_ever() {
    let hooks = json!({ "tests": shell("stop", "echo 'the tests fail' >&2; exit 2") });
    let provider = Provider::start().await;
    for _ in 0..4 {
        provider.then(Turn::text("I am done"));
    }
    let daemon = Daemon::with(&provider, with(&hooks)).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    let end = client.until("chat:stream-end").await["payload"].clone();
    assert_eq!(
        (&end["stopReason"], &end["turns"]),
        (&json!("end_turn"), &json!(4))
    );
    assert_eq!(provider.requests().len(), 4);
    let notices = client.all("session:notice");
    assert_eq!(notices.len(), 3);
    assert_eq!(
        (&notices[0]["code"], &notices[0]["message"]),
        (
            &json!("hook_refused"),
            &json!(
                "the model goes on, its answer was not enough: the hook `tests` refused: the tests fail"
            )
        )
    );
    let last = last_message(&provider);
    assert!(
        last.contains("[not done yet: the hook `tests` refused: the tests fail"),
        "{last}"
    );
    client.check_numbers();
}

#[tokio::test]
async fn a_conversation_is_not_compacted_where_a_hook_refuses() {
    let hooks = json!({ "keep": shell("compact", "grep -q manual && exit 2; exit 0") });
    let provider = Provider::start().await;
    provider.then(Turn::text("a")).then(Turn::text("b"));
    let daemon = Daemon::with(&provider, with(&hooks)).await;
    let mut client = daemon.connect().await;
    for _ in 0..2 {
        client.say("x").await;
        client.until("chat:stream-end").await;
    }
    let answer = client
        .ask(json!({"type": "chat:compact", "mode": "summary"}))
        .await;
    assert_eq!(answer["payload"]["state"], "refused");
    let notices = client.all("session:notice");
    let refused = "the conversation is not compacted: the hook `keep` refused: it gives no reason";
    assert_eq!(notices[0]["message"], refused);
    assert_eq!(provider.requests().len(), 2);
}

/// More than a test has asked.
const MOST_SEEN: usize = 16;

#[tokio::test]
async fn an_endpoint_is_asked_and_its_failures_are_failures() {
    let (saw, mut seen) = mpsc::channel(MOST_SEEN);
    let answer = move |Json(asked): Json<Value>| async move {
        let command = asked["tool"]["input"]["command"].clone();
        saw.try_send(asked).unwrap();
        match command.as_str() {
            Some("id") => (
                StatusCode::OK,
                json!({"decision": "refuse", "reason": "no"}).to_string(),
            ),
            Some("pwd") => (StatusCode::BAD_GATEWAY, String::new()),
            _ => (StatusCode::NO_CONTENT, String::new()),
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let router = Router::new().route("/hook", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let provider = Provider::start().await;
    for command in ["id", "pwd", "echo fine"] {
        provider.then(Turn::call("bash", &json!({"command": command})));
    }
    provider.then(Turn::text("done"));
    let hooks = json!({ "far": { "on": "before_tool", "url": url } });
    let daemon = Daemon::with(&provider, with(&hooks)).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert_eq!(
        results[0]["result"],
        "not allowed: the hook `far` refused: no"
    );
    let failed = "not allowed: the hook `far` refused: it failed: its endpoint answered 502";
    assert_eq!(results[1]["result"], failed);
    assert_eq!(results[2]["result"], "fine\n");
    let asked = seen.recv().await.unwrap();
    let expected = json!({
        "hook": "before_tool", "sessionId": client.session(), "conversationId": "default",
        "messageId": "m1",
        "tool": { "id": "t1", "name": "bash", "input": {"command": "id"} },
    });
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn a_hook_is_confined_like_a_command_and_reads_its_own_script() {
    let scripts = tempfile::tempdir().unwrap();
    let script = scripts.path().join("hook.sh");
    let home = std::env::var("HOME").unwrap();
    std::fs::write(
        &script,
        format!("touch {home}/from-a-hook; echo '{{\"note\":\"read\"}}'\n"),
    )
    .unwrap();
    let hook = json!({ "on": "before_tool", "command": "/bin/sh", "args": [script] });
    let provider = Provider::start().await;
    provider
        .then(Turn::call("bash", &json!({"command": "echo ran"})))
        .then(Turn::text("done"));
    let daemon = Daemon::with(&provider, with(&json!({ "h": hook }))).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let result = &client.all("chat:tool-result")[0]["result"];
    assert_eq!(*result, "ran\n\n[note of the hook `h`: read]");
    assert!(!std::path::Path::new(&home).join("from-a-hook").exists());
}
