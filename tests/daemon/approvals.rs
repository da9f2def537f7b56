//! Answers that count for later calls: how far they reach, what they outlive, how they are listed and revoked.

use serde_json::{Value, json};

use super::approval::{approve, asked, bash};
use super::audit;
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

mod unread;

fn write(path: &str, text: &str) -> Turn {
    Turn::call("file_write", &json!({"path": path, "content": text}))
}

/// Answers the next question; returns what it settled to.
async fn answer(client: &mut Client, more: Value) -> Value {
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    let answer = client.ask(approve(&confirm["toolId"], &more)).await;
    assert_eq!(answer["payload"]["accepted"], true, "{answer}");
    client.all("chat:tool-resolved").pop().unwrap()
}

/// Has the model make a call in a conversation, where nothing is asked; returns its result.
async fn unasked(
    client: &mut Client,
    provider: &Provider,
    conversation: &str,
    turn: Turn,
) -> Value {
    begin(client, provider, conversation, turn).await;
    let (asked, settled) = (
        client.all("chat:tool-confirm").len(),
        client.all("chat:tool-result").len(),
    );
    client.until("chat:stream-end").await;
    assert_eq!(
        client.all("chat:tool-confirm").len(),
        asked,
        "it is asked for"
    );
    assert_eq!(client.all("chat:tool-result").len(), settled + 1);
    client.all("chat:tool-result").pop().unwrap()
}

/// The same for one that is asked for, and refused.
async fn is_asked(client: &mut Client, provider: &Provider, conversation: &str, turn: Turn) {
    begin(client, provider, conversation, turn).await;
    answer(client, json!({"approved": false})).await;
    client.until("chat:stream-end").await;
}

async fn begin(client: &mut Client, provider: &Provider, conversation: &str, turn: Turn) {
    provider.then(turn).then(Turn::text("done"));
    let send = json!({"type": "chat:send", "content": "go", "conversationId": conversation});
    client.send(send).await;
}

async fn rules(client: &mut Client) -> Vec<Value> {
    let answer = client.ask(json!({"type": "approval:list"})).await;
    assert_eq!(answer["type"], "approval:list-result", "{answer}");
    answer["payload"]["rules"].as_array().unwrap().clone()
}

async fn revoke(client: &mut Client, which: Value) -> Value {
    let mut frame = json!({"type": "approval:revoke"});
    for (key, value) in which.as_object().unwrap() {
        frame[key] = value.clone();
    }
    client.ask(frame).await["payload"].clone()
}

#[tokio::test]
async fn what_was_said_holds_after_the_daemon_was_killed_until_it_is_revoked() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut first = daemon.connect().await;
    for (conversation, command, more) in [
        ("default", "touch a", json!({"remember": "session"})),
        ("default", "touch b", json!({"remember": "conversation"})),
        (
            "default",
            "touch c",
            json!({"approved": false, "remember": "session", "reason": "mine"}),
        ),
    ] {
        begin(&mut first, &provider, conversation, bash(command)).await;
        let settled = answer(&mut first, more.clone()).await;
        assert_eq!(settled["remember"], more["remember"], "{settled}");
        assert!(settled["ruleId"].is_string(), "{settled}");
        first.until("chat:stream-end").await;
    }
    let session = first.session();
    let daemon = daemon.after_kill().await;
    let mut second = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let found = rules(&mut second).await;
    let said: Vec<_> = found
        .iter()
        .map(|it| {
            (
                &it["matches"],
                &it["approved"],
                &it["scope"],
                &it["inForce"],
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            (
                &json!("bash: touch a"),
                &json!(true),
                &json!("session"),
                &json!(true)
            ),
            (
                &json!("bash: touch b"),
                &json!(true),
                &json!("conversation"),
                &json!(true)
            ),
            (
                &json!("bash: touch c"),
                &json!(false),
                &json!("session"),
                &json!(true)
            ),
        ]
    );
    assert_eq!(found[1]["conversationId"], "default");
    assert_eq!(found[2]["reason"], "mine");
    assert_eq!(found[0]["sessionId"], session);
    for (conversation, command) in [
        ("default", "touch a"),
        ("other", "touch a"),
        ("default", "touch b"),
    ] {
        let result = unasked(&mut second, &provider, conversation, bash(command)).await;
        assert_eq!(result["status"], "success", "{result}");
    }
    is_asked(&mut second, &provider, "other", bash("touch b")).await;
    // What was denied is denied wherever it stands, and the model reads why.
    for command in ["touch c", "true; touch c"] {
        let result = unasked(&mut second, &provider, "other", bash(command)).await;
        assert_eq!(result["metadata"]["denied"], true, "{result}");
        assert!(
            result["result"]
                .as_str()
                .unwrap()
                .contains("in this session: mine"),
            "{result}"
        );
    }
    // A copy of what was said is no copy of what was allowed.
    let fork = second.ask(json!({"type": "session:fork"})).await["payload"]["sessionId"].clone();
    let mut copy = Client::connect(
        &daemon,
        &format!("?session={}&after=0", fork.as_str().unwrap()),
    )
    .await;
    assert_eq!(rules(&mut copy).await, Vec::<Value>::new());
    is_asked(&mut copy, &provider, "default", bash("touch b")).await;
    // A conversation that is closed takes its answers with it.
    second.ask(json!({"type": "chat:close"})).await;
    let revoked = revoke(&mut second, json!({"ruleId": found[0]["ruleId"]})).await;
    assert_eq!(revoked["ruleIds"], json!([found[0]["ruleId"]]));
    let daemon = daemon.after_kill().await;
    let mut third = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let left = rules(&mut third).await;
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0]["matches"], "bash: touch c");
    for command in ["touch a", "touch b"] {
        is_asked(&mut third, &provider, "default", bash(command)).await;
    }
    let revoked = revoke(&mut third, json!({"scope": "session"})).await;
    assert_eq!(revoked["ruleIds"], json!([left[0]["ruleId"]]));
    is_asked(&mut third, &provider, "default", bash("touch c")).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_is_for_the_files_below_it_and_no_others() {
    let (daemon, mut client, provider) = asked(
        vec![write("src/a.rs", "1"), Turn::text("done")],
        json!({"tools": {"on_violation": "error"}}),
    )
    .await;
    let confirm = client.until("chat:tool-confirm").await;
    let offer = &confirm["payload"]["remember"];
    assert_eq!(offer["folders"], json!(["src", "."]), "{confirm}");
    assert_eq!(
        offer["approval"],
        json!(["conversation", "session"]),
        "{confirm}"
    );
    for folder in ["src2", "../src", "/", "src/a.rs", ""] {
        let more = json!({"remember": "session", "folder": folder});
        let refused = client.ask(approve(&json!("t1"), &more)).await;
        assert_eq!(refused["payload"]["code"], "invalid_payload", "{refused}");
        let problem = refused["payload"]["message"].as_str().unwrap();
        assert!(
            problem.contains("src, .") && problem.contains("stays open"),
            "{problem}"
        );
    }
    let once = client
        .ask(approve(&json!("t1"), &json!({"folder": "src"})))
        .await;
    assert_eq!(once["payload"]["code"], "invalid_payload", "{once}");
    let more = json!({"remember": "session", "folder": "./src/"});
    client.ask(approve(&json!("t1"), &more)).await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-resolved")[0]["remember"], "session");
    daemon.file("other/b.rs", "1");
    std::os::unix::fs::symlink("../other", daemon.project().join("src/link")).unwrap();
    std::os::unix::fs::symlink("src", daemon.project().join("way")).unwrap();
    // By another way, too: what counts is where a path leads.
    for path in ["src/b.rs", "src/deep/c.rs", "way/d.rs", "other/../src/e.rs"] {
        let result = unasked(&mut client, &provider, "default", write(path, "2")).await;
        assert_eq!(result["status"], "success", "{path} {result}");
    }
    let edit = json!({"path": "src/b.rs", "oldText": "2", "newText": "3"});
    let result = unasked(
        &mut client,
        &provider,
        "default",
        Turn::call("file_edit", &edit),
    )
    .await;
    assert_eq!(result["status"], "success", "{result}");
    for path in [
        "src2/a.rs",
        "src/link/b.rs",
        "src/link/c.rs",
        "src/.bashrc",
        "src/../x.rs",
        "srcs",
    ] {
        is_asked(&mut client, &provider, "default", write(path, "2")).await;
    }
    // What no tool may write is refused as ever.
    let result = unasked(&mut client, &provider, "default", write("src/.envrc", "2")).await;
    assert_eq!(result["metadata"]["denied"], true, "{result}");
    // A file that is denied goes before its folder.
    begin(&mut client, &provider, "default", write("src/.bashrc", "2")).await;
    let no = json!({"approved": false, "remember": "conversation", "folder": "src"});
    assert_eq!(answer(&mut client, no).await["remember"], "conversation");
    client.until("chat:stream-end").await;
    let result = unasked(&mut client, &provider, "default", write("src/b.rs", "4")).await;
    assert_eq!(result["metadata"]["denied"], true, "{result}");
    let found = rules(&mut client).await;
    let words = format!(
        "writing files below {}",
        daemon.project().join("src").display()
    );
    assert!(
        found.iter().all(|it| it["matches"] == words.as_str()),
        "{found:?}"
    );
}

#[tokio::test]
async fn what_is_said_for_a_project_counts_in_all_its_sessions_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    let more = json!({"approval": {"remember": "project"}, "audit": {"path": log}});
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, more).await;
    let (mut one, mut two) = (daemon.connect().await, daemon.connect().await);
    begin(&mut one, &provider, "default", bash("touch a")).await;
    let settled = answer(&mut one, json!({"remember": "always"})).await;
    assert_eq!(
        settled["remember"], "project",
        "no further than the operator lets it: {settled}"
    );
    one.until("chat:stream-end").await;
    unasked(&mut two, &provider, "default", bash("touch a")).await;
    begin(&mut two, &provider, "default", bash("touch b")).await;
    answer(&mut two, json!({"approved": false, "remember": "project"})).await;
    two.until("chat:stream-end").await;
    let result = unasked(&mut one, &provider, "default", bash("touch b")).await;
    assert!(
        result["result"]
            .as_str()
            .unwrap()
            .contains("in this project"),
        "{result}"
    );
    let lines = audit::lines(&log, 4).await;
    for (at, decision, by, scope) in [
        (0, "run", "user", Value::Null),
        (1, "run", "remembered", json!("project")),
        (2, "refused", "user", Value::Null),
        (3, "refused", "remembered", json!("project")),
    ] {
        let line = &lines[at];
        assert_eq!(
            (&line["decision"], &line["decidedBy"]),
            (&json!(decision), &json!(by)),
            "{line}"
        );
        assert_eq!(line["scope"], scope, "{line}");
    }
    // Its session may go, and the daemon may: it stays.
    let gone = one.session();
    drop(one);
    two.ask(json!({"type": "session:delete", "sessionId": gone}))
        .await;
    let daemon = daemon.after_kill().await;
    let mut three = daemon.connect().await;
    let found = rules(&mut three).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0]["sessionId"], gone);
    assert_eq!(found[0]["project"], daemon.project().to_str().unwrap());
    unasked(&mut three, &provider, "default", bash("touch a")).await;
    let mut four = daemon.connect().await;
    let revoked = revoke(&mut four, json!({"ruleId": found[0]["ruleId"]})).await;
    assert_eq!(
        revoked["ruleIds"],
        json!([found[0]["ruleId"]]),
        "by a session in which nothing was said"
    );
    is_asked(&mut three, &provider, "default", bash("touch a")).await;
    let daemon = daemon.after_kill().await;
    let mut five = daemon.connect().await;
    assert_eq!(rules(&mut five).await, [found[1].clone()]);
}

#[tokio::test]
async fn a_denial_holds_under_supervised_and_autonomous_and_for_what_is_dangerous() {
    let turns = vec![bash("rm -r build"), Turn::text("done")];
    let (_daemon, mut client, provider) = asked(turns, json!({})).await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(confirm["remember"]["approval"], json!([]), "{confirm}");
    assert_eq!(
        confirm["remember"]["denial"],
        json!(["conversation", "session"])
    );
    let no = json!({"approved": false, "remember": "session"});
    client.ask(approve(&json!("t1"), &no)).await;
    client.until("chat:stream-end").await;
    for trust in ["supervised", "guided", "autonomous"] {
        client
            .ask(json!({"type": "session:configure", "trustLevel": trust}))
            .await;
        let result = unasked(&mut client, &provider, "default", bash("rm -r build")).await;
        assert_eq!(result["metadata"]["denied"], true, "{trust} {result}");
    }
    // An answer that nobody gave is none.
    client
        .ask(json!({"type": "session:configure", "trustLevel": "guided"}))
        .await;
    begin(&mut client, &provider, "default", bash("touch a")).await;
    let away = json!({"approved": false, "unattended": true, "remember": "session"});
    assert!(answer(&mut client, away).await["remember"].is_null());
    client.until("chat:stream-end").await;
    assert_eq!(rules(&mut client).await.len(), 1);
}

#[tokio::test]
async fn a_denial_of_a_line_without_commands_is_not_one_of_all_lines() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for line in ["> made", "A=$(", "X=1"] {
        begin(&mut client, &provider, "default", bash(line)).await;
        let more = json!({"approved": false, "remember": "session"});
        let settled = answer(&mut client, more).await;
        assert!(settled.get("remember").is_none(), "{line}: {settled}");
        client.until("chat:stream-end").await;
        let asked = client.all("chat:tool-confirm").pop().unwrap();
        assert!(asked.get("remember").is_none(), "{line}: {asked}");
    }
    assert!(rules(&mut client).await.is_empty());
    is_asked(&mut client, &provider, "default", bash("touch made")).await;
}

#[tokio::test]
async fn without_a_store_an_answer_reaches_no_further_than_its_session() {
    let more = json!({"store": {"enabled": false}, "approval": {"remember": "always"}});
    let (_daemon, mut client, provider) =
        asked(vec![bash("touch a"), Turn::text("done")], more).await;
    let settled = answer(&mut client, json!({"remember": "always"})).await;
    assert_eq!(settled["remember"], "session", "{settled}");
    client.until("chat:stream-end").await;
    unasked(&mut client, &provider, "other", bash("touch a")).await;
    let revoked = revoke(&mut client, json!({"ruleId": settled["ruleId"]})).await;
    assert_eq!(revoked["ruleIds"], json!([settled["ruleId"]]));
    is_asked(&mut client, &provider, "other", bash("touch a")).await;
}

#[tokio::test]
async fn what_is_revoked_must_be_named_and_be_there() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for which in [
        json!({}),
        json!({"ruleId": "r1", "scope": "session"}),
        json!({"scope": "once"}),
        json!({"scope": "everything"}),
        json!({"scope": "session", "conversationId": "default"}),
        json!({"ruleId": 7}),
    ] {
        let refused = revoke(&mut client, which.clone()).await;
        assert_eq!(refused["code"], "invalid_payload", "{which} {refused}");
    }
    for id in ["", "r1", "../../etc/passwd", "\'; DROP TABLE rule; --"] {
        let refused = revoke(&mut client, json!({"ruleId": id})).await;
        assert_eq!(refused["code"], "rule_not_found", "{id} {refused}");
    }
    for scope in ["conversation", "session", "project", "always"] {
        let revoked = revoke(&mut client, json!({"scope": scope})).await;
        assert_eq!(revoked["ruleIds"], json!([]), "{scope} {revoked}");
    }
    let listed = client.ask(json!({"type": "session:list"})).await;
    assert_eq!(
        listed["payload"]["sessions"],
        json!([]),
        "asking keeps no session"
    );
}
