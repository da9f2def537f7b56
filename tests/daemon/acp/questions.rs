//! What the user is asked by way of the editor.

use serde_json::{Value, json};

use super::{Editor, is_question, selected};
use crate::support::Provider;
use crate::support::provider::Turn;

/// Has the model write a file once; returns the editor at the first question.
async fn asked(provider: &Provider, more: Value) -> (Editor, String, u64, Value) {
    provider.then(Turn::calls(&[(
        "file_write",
        json!({"path": "a.txt", "content": "new\n"}),
    )]));
    provider.then(Turn::text("That was it."));
    let mut editor = Editor::start(provider, more).await;
    let session = editor.open(json!({})).await;
    let prompt = editor.prompt(&session, "write").await;
    let question = editor.until(is_question).await;
    (editor, session, prompt, question)
}

#[tokio::test]
async fn a_call_that_is_allowed_runs_and_one_that_is_not_does_not() {
    for (answer, status, is_there) in [
        (selected("once"), "completed", true),
        (selected("deny"), "failed", false),
        (selected("nonsense"), "failed", false),
        (
            json!({"outcome": {"outcome": "cancelled"}}),
            "failed",
            false,
        ),
        (json!({"what": 1}), "failed", false),
    ] {
        let provider = Provider::start().await;
        let (mut editor, _, prompt, question) = asked(&provider, json!({})).await;
        let call = &question["params"]["toolCall"];
        assert_eq!(call["content"][0]["type"], "diff", "{question}");
        assert_eq!(call["content"][0]["newText"], "new\n");
        assert_eq!(call["content"][0]["oldText"], Value::Null);
        editor.answer(&question["id"], answer.clone()).await;
        assert_eq!(
            editor.outcome(prompt).await["result"]["stopReason"],
            "end_turn"
        );
        let last = *editor.updates("tool_call_update").last().unwrap();
        assert_eq!(last["status"], status, "{answer}: {last}");
        let file = editor.folder.path().join("project/a.txt");
        assert_eq!(file.exists(), is_there, "{answer}");
    }
}

#[tokio::test]
async fn an_editor_that_cannot_ask_is_taken_for_a_no() {
    let provider = Provider::start().await;
    let (mut editor, _, prompt, question) = asked(&provider, json!({})).await;
    let error = json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32_601, "message": "no"}});
    editor.raw(&error.to_string()).await;
    assert_eq!(
        editor.outcome(prompt).await["result"]["stopReason"],
        "end_turn"
    );
    let told = provider.requests().last().unwrap().to_string();
    assert!(told.contains("could not show the question"), "{told}");
}

#[tokio::test]
async fn a_question_that_lapses_is_taken_back() {
    let provider = Provider::start().await;
    let (mut editor, _, prompt, question) =
        asked(&provider, json!({"approval": {"timeout": "1s"}})).await;
    let back = editor
        .until(|frame| frame["method"] == "$/cancel_request")
        .await;
    assert_eq!(back["params"]["requestId"], question["id"]);
    assert_eq!(
        editor.outcome(prompt).await["result"]["stopReason"],
        "end_turn"
    );
    // An answer that comes too late changes nothing.
    editor.answer(&question["id"], selected("once")).await;
    assert!(!editor.folder.path().join("project/a.txt").exists());
}

#[tokio::test]
async fn a_cancel_while_something_is_asked_ends_the_turn() {
    let provider = Provider::start().await;
    let (mut editor, session, prompt, question) = asked(&provider, json!({})).await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    editor
        .answer(
            &question["id"],
            json!({"outcome": {"outcome": "cancelled"}}),
        )
        .await;
    assert_eq!(
        editor.outcome(prompt).await["result"]["stopReason"],
        "cancelled"
    );
    assert!(!editor.folder.path().join("project/a.txt").exists());
}

#[tokio::test]
async fn more_money_is_asked_for_as_a_call_is() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("hello"));
    let pricing = json!({"input": 0, "output": 1000});
    let more = json!({"providers": {"test": {"pricing": pricing}}, "budget": {"session": 0.006}});
    let mut editor = Editor::start(&provider, more).await;
    let session = editor.open(json!({})).await;
    let prompt = editor.prompt(&session, "hi").await;
    let question = editor.until(is_question).await;
    let asked = &question["params"]["toolCall"];
    assert_eq!(asked["title"], "Spend more");
    let id = asked["toolCallId"].clone();
    editor.answer(&question["id"], selected("once")).await;
    assert_eq!(
        editor.outcome(prompt).await["result"]["stopReason"],
        "end_turn"
    );
    let of_it: Vec<_> = editor
        .seen
        .iter()
        .map(|frame| &frame["params"]["update"])
        .filter(|update| update["toolCallId"] == id)
        .map(|update| (update["sessionUpdate"].clone(), update["status"].clone()))
        .collect();
    let expected = [
        (json!("tool_call"), json!("in_progress")),
        (json!("tool_call_update"), json!("completed")),
    ];
    assert_eq!(of_it, expected);
}

#[tokio::test]
async fn a_change_is_shown_whole_before_and_after_it() {
    let provider = Provider::start().await;
    let lines: Vec<String> = (0..40).map(|line| format!("line {line}\n")).collect();
    let before = lines.concat();
    let edit = json!({"path": "a.txt", "oldText": "line 20\n", "newText": "LINE 20\n"});
    provider.then(Turn::call("file_edit", &edit));
    provider.then(Turn::text("Done."));
    let mut editor = Editor::start(&provider, json!({})).await;
    std::fs::write(editor.folder.path().join("project/a.txt"), &before).unwrap();
    let session = editor.open(json!({})).await;
    let prompt = editor.prompt(&session, "edit").await;
    let question = editor.until(is_question).await;
    let asked = &question["params"]["toolCall"];
    let after = before.replace("line 20", "LINE 20");
    let whole = json!({"type": "diff", "path": format!("{}/a.txt", editor.cwd()), "oldText": before, "newText": after});
    assert_eq!(asked["content"][0], whole);
    let text = asked["content"][1]["content"]["text"].as_str().unwrap();
    assert!(text.contains("Refused unless answered by "), "{text}");
    editor.answer(&question["id"], selected("once")).await;
    editor.outcome(prompt).await;
    let last = *editor.updates("tool_call_update").last().unwrap();
    assert_eq!(last["content"], json!([whole]));
}

#[tokio::test]
async fn servers_of_the_editor_serve_its_session() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hello"));
    let mut editor = Editor::start(&provider, json!({})).await;
    editor.initialize(json!({})).await;
    let servers = json!([
        {"name": "broken", "command": "/nonexistent/server", "args": [], "env": [{"name": "KEY", "value": "hidden-value"}]},
        {"type": "sse", "name": "old", "url": "http://127.0.0.1:9/sse", "headers": []},
    ]);
    let params = json!({"cwd": editor.cwd(), "mcpServers": servers});
    let opened = editor.ask("session/new", params).await;
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(editor.turn(&session, "hi").await, "end_turn");
    let said = editor.said();
    assert!(
        said.contains("`old`") && said.contains("`broken`"),
        "{said}"
    );
    assert!(!said.contains("hidden-value"), "{said}");
}

#[tokio::test]
async fn what_a_task_asks_is_asked_here_and_its_call_has_an_end() {
    let provider = Provider::start().await;
    let task = json!({"description": "write it", "prompt": "write a.txt", "profile": "fix"});
    for turn in [
        Turn::call("task", &task),
        Turn::call("file_write", &json!({"path": "a.txt", "content": "new\n"})),
        Turn::text("written"),
        Turn::text("That was it."),
    ] {
        provider.then(turn);
    }
    let writes = json!({"file_write": {"allowed": true}});
    let more = json!({
        "workflows": {"fix": {"tool_permissions": writes}},
        "tasks": {"profiles": ["fix"]},
    });
    let mut editor = Editor::start(&provider, more).await;
    let session = editor.open(json!({})).await;
    let prompt = editor.prompt(&session, "write").await;
    let question = editor.until(is_question).await;
    assert_eq!(question["params"]["sessionId"], session);
    assert_eq!(question["params"]["toolCall"]["toolCallId"], "t2");
    editor.answer(&question["id"], selected("once")).await;
    let outcome = editor.outcome(prompt).await;
    assert_eq!(outcome["result"]["stopReason"], "end_turn");
    assert!(editor.folder.path().join("project/a.txt").exists());
    let begun = editor.updates("tool_call");
    let titles: Vec<&Value> = begun.iter().map(|it| &it["title"]).collect();
    assert_eq!(titles, ["task", "Write a.txt"]);
    for id in ["t1", "t2"] {
        let updates = editor.updates("tool_call_update");
        let mut its = updates.iter().filter(|it| it["toolCallId"] == id);
        let last = its.next_back().unwrap();
        assert_eq!(last["status"], "completed", "{last}");
    }
}
