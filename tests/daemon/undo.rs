//! What calls did to files is listed, and put back where nobody changed it since.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// Returns a daemon whose model does as it likes.
async fn autonomous(provider: &Provider) -> Daemon {
    Daemon::with(provider, json!({"chat": {"trust_level": "autonomous"}})).await
}

/// Has the model make these calls, one turn each.
async fn calls(client: &mut Client, provider: &Provider, calls: &[(&str, Value)]) -> Value {
    for (tool, input) in calls {
        provider.then(Turn::call(tool, input));
    }
    provider.then(Turn::text("done"));
    client.say("go").await;
    client.until("chat:stream-end").await["payload"].clone()
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("file_write", json!({"path": path, "content": content}))
}

fn edit(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    let input = json!({"path": path, "oldText": old, "newText": new});
    ("file_edit", input)
}

/// Undoes the changes of an exchange; returns the answer.
async fn revert(client: &mut Client, message: &str) -> Value {
    let request = json!({"type": "files:revert", "messageId": message});
    let answer = client.ask(request).await;
    assert_eq!(answer["type"], "files:revert-result", "{answer}");
    answer["payload"].clone()
}

/// Returns the files of an answer: path, outcome and reason of each.
fn outcomes(answer: &Value) -> Vec<String> {
    let files = answer["files"].as_array().unwrap();
    let word = |file: &Value, name: &str| file[name].as_str().unwrap_or("-").to_owned();
    let shown = |it: &Value| {
        let words = ["path", "outcome", "reason"].map(|name| word(it, name));
        words.join(" ")
    };
    files.iter().map(shown).collect()
}

async fn changes(client: &mut Client, mut wanted: Value) -> Value {
    wanted["type"] = json!("files:changes");
    let answer = client.ask(wanted).await;
    assert_eq!(answer["type"], "files:changes-result", "{answer}");
    answer["payload"].clone()
}

fn content(daemon: &Daemon, path: &str) -> Option<String> {
    std::fs::read_to_string(daemon.project().join(path)).ok()
}

#[tokio::test]
async fn what_an_exchange_did_is_undone_after_the_daemon_was_killed() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    daemon.file("run.sh", "one\n");
    daemon.file("bin", [0, 159, 146, 150]);
    daemon.file("big", "x".repeat(9 * 1024 * 1024));
    let script = daemon.project().join("run.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut first = daemon.connect().await;
    let session = first.session();
    let made = [
        edit("run.sh", "one", "two"),
        edit("run.sh", "two", "three"),
        write("run.sh", "four\n"),
        write("new/file", "made\n"),
        write("bin", "text\n"),
        write("big", "small\n"),
        ("bash", json!({"command": "echo hi > by_bash"})),
    ];
    calls(&mut first, &provider, &made).await;
    let daemon = daemon.after_kill().await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;

    let listed = changes(&mut client, json!({})).await;
    let listed = listed["changes"].as_array().unwrap();
    assert_eq!(listed.len(), made.len(), "{listed:?}");
    let (by_bash, big, script) = (&listed[0], &listed[1], &listed[6]);
    assert_eq!(
        by_bash["files"],
        json!([{"path": "by_bash", "change": "created"}])
    );
    assert_eq!(by_bash["reason"], "command");
    assert_eq!(big["reason"], "notKept");
    assert_eq!(
        script["files"],
        json!([{"path": "run.sh", "change": "modified"}])
    );
    assert_eq!(
        (&script["messageId"], &script["toolId"]),
        (&json!("m1"), &json!("t1"))
    );
    assert_eq!(
        script["diff"],
        "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-one\n+two\n"
    );
    assert_eq!(script["root"], daemon.project().to_str().unwrap());
    assert!(script.get("reason").is_none(), "{script}");

    let answer = revert(&mut client, "m1").await;
    assert_eq!(
        outcomes(&answer),
        [
            "big left notKept",
            "bin reverted -",
            "new/file reverted -",
            "run.sh reverted -",
            "by_bash left command",
        ]
    );
    let path = daemon.project().join("run.sh");
    assert_eq!(content(&daemon, "run.sh").unwrap(), "one\n");
    assert_eq!(
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o755
    );
    assert_eq!(
        std::fs::read(daemon.project().join("bin")).unwrap(),
        [0, 159, 146, 150]
    );
    assert_eq!(content(&daemon, "new/file"), None);
    assert_eq!(content(&daemon, "big").unwrap(), "small\n");
    assert_eq!(content(&daemon, "by_bash").unwrap(), "hi\n");

    // The model knows, and the undoing is undone in turn.
    provider.then(Turn::text("I see"));
    client.say("and now?").await;
    client.until("chat:stream-end").await;
    let asked = provider.requests().pop().unwrap().to_string();
    assert!(
        asked.contains("I undid changes that you made") && asked.contains("run.sh"),
        "{asked}"
    );
    let undone = answer["messageId"].as_str().unwrap();
    let answer = revert(&mut client, undone).await;
    assert_eq!(
        outcomes(&answer),
        ["run.sh reverted -", "new/file reverted -", "bin reverted -"]
    );
    assert_eq!(content(&daemon, "run.sh").unwrap(), "four\n");
    assert_eq!(content(&daemon, "new/file").unwrap(), "made\n");
    // All of it is as it was left by the exchange, and is undone once more.
    assert_eq!(
        revert(&mut client, "m1").await["files"][3]["outcome"],
        "reverted"
    );
}

#[tokio::test]
async fn what_somebody_changed_since_is_left() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let names = ["a", "b", "c", "sub/d", "e", "out/g", "f"];
    for name in names {
        daemon.file(name, "old\n");
    }
    let mut client = daemon.connect().await;
    let made: Vec<_> = names.iter().map(|name| write(name, "new\n")).collect();
    calls(&mut client, &provider, &made).await;
    let at = |name: &str| daemon.project().join(name);
    daemon.file("a", "mine\n");
    std::fs::remove_file(at("b")).unwrap();
    std::fs::rename(at("c"), at("moved")).unwrap();
    std::os::unix::fs::symlink("moved", at("c")).unwrap();
    std::fs::remove_dir_all(at("sub")).unwrap();
    daemon.file("e", "old\n");
    let outside = daemon.project().with_file_name("outside");
    std::fs::rename(at("out"), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, at("out")).unwrap();
    let answer = revert(&mut client, "m1").await;
    assert_eq!(
        outcomes(&answer),
        [
            "f reverted -",
            "out/g left changed",
            "e left unchanged",
            "sub/d left gone",
            "c left changed",
            "b left gone",
            "a left changed",
        ]
    );
    assert_eq!(content(&daemon, "a").unwrap(), "mine\n");
    assert_eq!(content(&daemon, "moved").unwrap(), "new\n");
    assert_eq!(content(&daemon, "out/g").unwrap(), "new\n");
    assert!(!at("sub").exists() && !at("b").exists());
    // A second time there is nothing to do, and so nothing to be undone.
    let again = revert(&mut client, "m1").await;
    assert_eq!(outcomes(&again)[0], "f left unchanged");
    assert!(again.get("messageId").is_none(), "{again}");
}

#[tokio::test]
async fn the_user_s_edit_between_two_calls_is_kept() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    daemon.file("a", "old\n");
    let mut client = daemon.connect().await;
    let line = json!({"command": "printf 'user\\n' > a"});
    let read = ("file_read", json!({"path": "a"}));
    let made = [
        write("a", "one\n"),
        ("bash", line),
        read,
        write("a", "two\n"),
    ];
    calls(&mut client, &provider, &made).await;
    assert_eq!(content(&daemon, "a").unwrap(), "two\n");
    let answer = revert(&mut client, "m1").await;
    assert_eq!(outcomes(&answer)[0], "a partly changed");
    assert_eq!(content(&daemon, "a").unwrap(), "user\n");
}

#[tokio::test]
async fn a_file_of_two_conversations_is_undone_from_the_last_change_on() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    for (conversation, content) in [("a", "one\n"), ("b", "two\n")] {
        let (tool, input) = write("f", content);
        provider
            .then(Turn::call(tool, &input))
            .then(Turn::text("done"));
        let send = json!({"type": "chat:send", "conversationId": conversation, "content": "go"});
        client.send(send).await;
        client.until("chat:stream-end").await;
    }
    let listed = changes(&mut client, json!({"conversationId": "b"})).await;
    assert_eq!(listed["changes"].as_array().unwrap().len(), 1);
    assert_eq!(
        outcomes(&revert(&mut client, "m1").await),
        ["f left changed"]
    );
    let by_call = json!({"type": "files:revert", "toolId": "t2"});
    let answer = client.ask(by_call).await;
    assert_eq!(outcomes(&answer["payload"]), ["f reverted -"]);
    assert_eq!(content(&daemon, "f").unwrap(), "one\n");
    assert_eq!(outcomes(&revert(&mut client, "m1").await), ["f reverted -"]);
    assert_eq!(content(&daemon, "f"), None);
    // What is forgotten is not listed.
    client
        .ask(json!({"type": "chat:close", "conversationId": "a"}))
        .await;
    let listed = changes(&mut client, json!({})).await;
    let listed = listed["changes"].as_array().unwrap();
    assert!(
        !listed.is_empty() && listed.iter().all(|it| it["conversationId"] == "b"),
        "{listed:?}"
    );
}

#[tokio::test]
async fn nothing_is_undone_while_an_exchange_runs() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    calls(&mut client, &provider, &[write("f", "one\n")]).await;
    let (turn, mut pause) = Turn::paused(
        &[json!({"content": "a"})],
        &[json!({"content": "b"})],
        "stop",
    );
    provider.then(turn);
    client.say("wait").await;
    pause.reached().await;
    let refused = client
        .ask(json!({"type": "files:revert", "messageId": "m1"}))
        .await;
    assert_eq!(refused["payload"]["code"], "conversation_busy", "{refused}");
    assert_eq!(content(&daemon, "f").unwrap(), "one\n");
    pause.go_on();
    client.until("chat:stream-end").await;
    assert_eq!(outcomes(&revert(&mut client, "m1").await), ["f reverted -"]);
}

#[tokio::test]
async fn nothing_is_undone_while_another_call_may_change_files() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    calls(&mut client, &provider, &[write("f", "one\n")]).await;
    let line = "touch began; while [ ! -e go ]; do sleep 0.05; done";
    provider
        .then(Turn::call("bash", &json!({"command": line})))
        .then(Turn::text("done"));
    client
        .send(json!({"type": "chat:send", "conversationId": "other", "content": "go"}))
        .await;
    crate::support::eventually("the command's begin", async || {
        daemon.project().join("began").exists()
    })
    .await;
    let refused = client
        .ask(json!({"type": "files:revert", "messageId": "m1"}))
        .await;
    assert_eq!(refused["payload"]["code"], "conversation_busy", "{refused}");
    let message = refused["payload"]["message"].as_str().unwrap();
    assert!(
        message.contains("bash of conversation \"other\""),
        "{message}"
    );
    daemon.file("go", "");
    client.until("chat:stream-end").await;
    assert_eq!(outcomes(&revert(&mut client, "m1").await), ["f reverted -"]);
}

#[tokio::test]
async fn pages_lead_back_and_bad_requests_are_named() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    for number in 0..2 {
        let made = [
            write("f", &format!("{number}\n")),
            write("g", &format!("{number}\n")),
        ];
        calls(&mut client, &provider, &made).await;
    }
    let page = changes(&mut client, json!({"limit": 3})).await;
    assert_eq!(page["changes"].as_array().unwrap().len(), 3);
    assert_eq!(page["changes"][0]["toolId"], "t4");
    let rest = changes(&mut client, json!({"cursor": page["nextCursor"]})).await;
    assert_eq!(rest["changes"].as_array().unwrap().len(), 1);
    assert!(rest.get("nextCursor").is_none(), "{rest}");
    let since = changes(&mut client, json!({"since": "m2"})).await;
    assert_eq!(since["changes"].as_array().unwrap().len(), 2);
    for (request, code) in [
        (json!({"type": "files:revert"}), "invalid_payload"),
        (
            json!({"type": "files:changes", "since": "m9"}),
            "invalid_payload",
        ),
        (
            json!({"type": "files:changes", "cursor": "-1"}),
            "invalid_payload",
        ),
        (
            json!({"type": "files:revert", "messageId": "m1", "toolId": "t1"}),
            "invalid_payload",
        ),
        (
            json!({"type": "files:revert", "messageId": "m9"}),
            "invalid_payload",
        ),
        (
            json!({"type": "files:revert", "messageId": "' OR 1=1; --"}),
            "invalid_payload",
        ),
        (
            json!({"type": "files:revert", "toolId": "../../f"}),
            "tool_not_found",
        ),
        (
            json!({"type": "files:revert", "toolId": ""}),
            "tool_not_found",
        ),
        (
            json!({"type": "files:changes", "limit": 0}),
            "invalid_payload",
        ),
        (
            json!({"type": "files:changes", "limit": 201}),
            "invalid_payload",
        ),
        (
            json!({"type": "files:changes", "cursor": "x"}),
            "invalid_payload",
        ),
    ] {
        let refused = client.ask(request.clone()).await;
        assert_eq!(refused["payload"]["code"], code, "{request} {refused}");
    }
    assert_eq!(content(&daemon, "f").unwrap(), "1\n");
}

#[tokio::test]
async fn a_change_is_of_the_project_in_which_it_was_made() {
    let provider = Provider::start().await;
    let other = tempfile::tempdir().unwrap();
    let other = other.path().canonicalize().unwrap();
    let allowed = json!({"chat": {"trust_level": "autonomous"}, "project": {"allowed": [other]}});
    let daemon = Daemon::with(&provider, allowed).await;
    std::fs::write(other.join("f"), "old\n").unwrap();
    let mut first = daemon.connect().await;
    let session = first.session();
    first
        .ask(json!({"type": "session:configure", "project": other}))
        .await;
    calls(&mut first, &provider, &[write("f", "new\n")]).await;
    // The folder is away when the session is begun anew.
    let away = other.with_extension("away");
    std::fs::rename(&other, &away).unwrap();
    let daemon = daemon.after_end().await;
    daemon.file("f", "new\n");
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let answer = revert(&mut client, "m1").await;
    assert_eq!(outcomes(&answer), ["f left elsewhere"], "{answer}");
    assert_eq!(content(&daemon, "f").unwrap(), "new\n");
    std::fs::rename(&away, &other).unwrap();
    let daemon = daemon.after_end().await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    assert_eq!(outcomes(&revert(&mut client, "m1").await), ["f reverted -"]);
    assert_eq!(std::fs::read_to_string(other.join("f")).unwrap(), "old\n");
}

#[tokio::test]
async fn without_a_store_nothing_is_undone_and_all_else_goes_on() {
    let provider = Provider::start().await;
    let more = json!({"chat": {"trust_level": "autonomous"}, "store": {"enabled": false}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    calls(&mut client, &provider, &[write("f", "one\n")]).await;
    assert_eq!(content(&daemon, "f").unwrap(), "one\n");
    for kind in ["files:changes", "files:revert"] {
        let refused = client.ask(json!({"type": kind, "messageId": "m1"})).await;
        assert_eq!(refused["payload"]["code"], "forbidden", "{refused}");
    }
}
