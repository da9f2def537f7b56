//! How sessions are opened and gone on with.

use serde_json::{Value, json};

use super::{Editor, autonomous, is_question, is_update, selected};
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

fn again(editor: &Editor, session: &str) -> Value {
    json!({"sessionId": session, "cwd": editor.cwd(), "mcpServers": []})
}

#[tokio::test]
async fn the_same_words_are_another_prompt_after_a_session_is_gone_on_with() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("ok"));
    let mut editor = Editor::start(&provider, json!({})).await;
    let session = editor.open(json!({})).await;
    assert_eq!(editor.turn(&session, "go on").await, "end_turn");
    for method in ["session/resume", "session/load", "session/load"] {
        editor
            .ask("session/close", json!({"sessionId": session}))
            .await;
        let open = again(&editor, &session);
        editor.ask(method, open).await;
        assert_eq!(editor.turn(&session, "go on").await, "end_turn", "{method}");
    }
    assert_eq!(provider.requests().len(), 4);
}

#[tokio::test]
async fn a_question_that_is_open_is_asked_again() {
    let provider = Provider::start().await;
    let write = json!({"path": "a.txt", "content": "new\n"});
    provider.then(Turn::chunks(
        &[
            json!({"content": "I write."}),
            json!({"tool_calls": [{"index": 0, "id": "c", "type": "function",
                "function": {"name": "file_write", "arguments": write.to_string()}}]}),
        ],
        "tool_calls",
    ));
    provider.then(Turn::text("Written."));
    let mut editor = Editor::start(&provider, json!({})).await;
    let session = editor.open(json!({})).await;
    let turn = editor.prompt(&session, "write").await;
    let first = editor.until(is_question).await;
    editor.seen.clear();
    let open = again(&editor, &session);
    let load = editor.send("session/load", open).await;
    editor.outcome(load).await;
    // Whoever waited on the connection before hears that it is over for him, and his card is taken back.
    let is_error = |frame: &Value| frame["id"] == turn && frame.get("error").is_some();
    if !editor.seen.iter().any(is_error) {
        editor.until(is_error).await;
    }
    let second = match editor.seen.iter().find(|it| is_question(it)) {
        Some(asked) => asked.clone(),
        None => editor.until(is_question).await,
    };
    let taken_back = editor.seen.iter().any(|frame| {
        frame["method"] == "$/cancel_request" && frame["params"]["requestId"] == first["id"]
    });
    assert!(taken_back, "{:#?}", editor.seen);
    let told: Vec<_> = editor
        .updates("agent_message_chunk")
        .into_iter()
        .map(|it| it["content"]["text"].clone())
        .collect();
    assert_eq!(told, ["I write."], "what runs is told once");
    editor.answer(&second["id"], selected("once")).await;
    editor
        .until(|frame| frame["params"]["update"]["content"]["text"] == "Written.")
        .await;
    assert!(editor.folder.path().join("project/a.txt").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_may_be_named_by_a_link() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("ok"));
    let mut editor = Editor::start(&provider, autonomous()).await;
    editor.initialize(json!({})).await;
    let link = editor.folder.path().join("link");
    std::os::unix::fs::symlink(editor.cwd(), &link).unwrap();
    let named = format!("{}/", link.display());
    let opened = editor
        .ask("session/new", json!({"cwd": named, "mcpServers": null}))
        .await;
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    std::fs::write(editor.folder.path().join("project/a.txt"), "hello").unwrap();
    provider.then(Turn::call("file_read", &json!({"path": "a.txt"})));
    let file = format!("file://{}/a.txt#L3", link.display());
    let blocks = json!([{"type": "resource_link", "uri": file, "name": "a"}]);
    let params = json!({"sessionId": session, "prompt": blocks});
    editor.ask("session/prompt", params).await;
    let asked = provider.requests()[0].to_string();
    assert!(asked.contains("[file: a.txt:3]"), "{asked}");
    let path = link.join("a.txt").display().to_string();
    let shown = editor.updates("tool_call_update");
    assert!(
        shown
            .iter()
            .any(|it| it["locations"][0]["path"] == path.as_str()),
        "{shown:?}"
    );
    let listed = editor.ask("session/list", json!({"cwd": named})).await;
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str());
    assert_eq!(listed["sessions"][0]["cwd"], named.as_str());
    let refused = editor
        .refused("session/new", json!({"cwd": "/etc", "mcpServers": []}))
        .await;
    let message = refused["message"].as_str().unwrap();
    assert!(!message.contains("field"), "{message}");
}

#[tokio::test]
async fn null_is_what_is_absent() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("ok"));
    let mut editor = Editor::start(&provider, json!({})).await;
    for capabilities in [json!({"session": null, "_meta": null}), Value::Null] {
        editor.initialize(capabilities).await;
    }
    let open = json!({"cwd": editor.cwd(), "mcpServers": null, "additionalDirectories": null});
    editor.ask("session/new", open).await;
    editor.ask("session/list", Value::Null).await;
}

#[tokio::test]
async fn a_session_is_named_put_away_and_asked_for() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("ok"));
    let mut editor = Editor::start(&provider, json!({})).await;
    let introduced = editor.initialize(json!({})).await;
    let can = &introduced["agentCapabilities"]["sessionCapabilities"];
    for name in [
        "list", "delete", "fork", "title", "archive", "status", "resume", "close",
    ] {
        assert!(can[name].is_object(), "{name}: {can}");
    }
    let session = editor.new_session().await["sessionId"].clone();
    let session = session.as_str().unwrap().to_owned();
    editor.turn(&session, "hi").await;
    let named = json!({"sessionId": session, "title": " A name "});
    let titled = editor.ask("session/set_title", named).await;
    assert_eq!(titled["title"], "A name");
    let is_titled = |frame: &Value| frame["params"]["update"]["title"] == "A name";
    if !editor.seen.iter().any(is_titled) {
        let told = editor.until(is_update("session_info_update")).await;
        assert!(is_titled(&told), "{told}");
    }
    let own = json!({"sessionId": session});
    let status = editor.ask("session/status", own.clone()).await;
    assert_eq!(status["status"], "open");
    editor.ask("session/archive", own.clone()).await;
    let listed = editor.ask("session/list", json!({})).await;
    assert_eq!(listed["sessions"], json!([]));
    editor.ask("session/unarchive", own.clone()).await;
    let listed = editor.ask("session/list", json!({})).await;
    assert_eq!(listed["sessions"][0]["title"], "A name");
    let unknown = json!({"sessionId": "nobody"});
    for method in ["session/status", "session/archive"] {
        let error = editor.refused(method, unknown.clone()).await;
        assert_eq!(error["code"], -32_002, "{method}: {error}");
    }
}

#[tokio::test]
async fn what_is_lost_at_the_beginning_is_said_with_the_first_prompt() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("ok"));
    // The store stands at its usual place, which cannot be made: no text of the configuration is at fault.
    let folder = Daemon::folder(&provider, json!({}));
    let path = folder.path().join("config.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config.as_object_mut().unwrap().remove("store");
    std::fs::write(&path, config.to_string()).unwrap();
    std::fs::write(folder.path().join(".local"), "").unwrap();
    let mut editor = Editor::on(folder);
    let introduced = editor.initialize(json!({})).await;
    assert_eq!(introduced["agentCapabilities"]["loadSession"], false);
    let session = editor.new_session().await["sessionId"].clone();
    let session = session.as_str().unwrap().to_owned();
    editor.turn(&session, "hi").await;
    let said = editor.said();
    assert!(said.contains("Nothing of this session is kept"), "{said}");
}

#[tokio::test]
async fn a_session_that_is_loaded_has_its_changes_and_its_cost() {
    let provider = Provider::start().await;
    let pricing = json!({"input": 0, "output": 1000});
    let more =
        json!({"providers": {"test": {"pricing": pricing}}, "chat": {"trust_level": "autonomous"}});
    provider.by_rule(|_| Turn::text("ok"));
    provider.then(Turn::call(
        "file_write",
        &json!({"path": "a.txt", "content": "new\n"}),
    ));
    let mut editor = Editor::start(&provider, more).await;
    let session = editor.open(json!({})).await;
    editor.turn(&session, "write").await;
    editor.seen.clear();
    editor.turn(&session, "/cost").await;
    let cost = editor.said();
    assert!(!cost.contains("$0.000000"), "{cost}");
    editor
        .ask("session/close", json!({"sessionId": session}))
        .await;
    editor.seen.clear();
    let open = again(&editor, &session);
    editor.ask("session/load", open).await;
    let shown = editor.updates("tool_call_update");
    let diff = &shown[0]["content"][0];
    assert_eq!(
        (&diff["type"], &diff["newText"]),
        (&json!("diff"), &json!("new\n"))
    );
    editor.seen.clear();
    editor.turn(&session, "/cost").await;
    assert_eq!(editor.said(), cost);
}
