//! `outrigger acp`: an editor's agent on stdin and stdout, and the same on a WebSocket. Each line that leaves is read by the
//! protocol's own types, which we did not write.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;

use agent_client_protocol_schema::v1 as schema;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::mcp::Fake;
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

mod ends;
mod opening;
mod questions;
mod servers;
mod socket;
mod steering;

/// How long a line is waited for.
const DEADLINE: Duration = Duration::from_secs(60);

/// An editor, and the agent that it started.
struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    folder: TempDir,
    seen: Vec<Value>,
    /// The methods of requests without an answer.
    asked: HashMap<u64, String>,
    requests: u64,
}

impl Editor {
    async fn start(provider: &Provider, more: Value) -> Self {
        Self::on(Daemon::folder(provider, more))
    }

    /// Starts the agent on a folder that is there.
    fn on(folder: TempDir) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_outrigger"))
            .args(["acp", "--config"])
            .arg(folder.path().join("config.json"))
            .env_clear()
            .env("HOME", folder.path())
            .env("PATH", std::env::var("PATH").unwrap())
            .current_dir(folder.path().join("project"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            stdin: child.stdin.take(),
            lines: stdout.lines(),
            child,
            folder,
            seen: Vec::new(),
            asked: HashMap::new(),
            requests: 0,
        }
    }

    fn cwd(&self) -> String {
        let project = self.folder.path().join("project").canonicalize().unwrap();
        project.display().to_string()
    }

    async fn raw(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).await.unwrap();
        stdin.write_all(b"\n").await.unwrap();
        stdin.flush().await.unwrap();
    }

    /// Sends a request and returns its id.
    async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        self.asked.insert(self.requests, method.to_owned());
        let request =
            json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params});
        self.raw(&request.to_string()).await;
        self.requests
    }

    async fn notify(&mut self, method: &str, params: Value) {
        let notification = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.raw(&notification.to_string()).await;
    }

    async fn answer(&mut self, id: &Value, result: Value) {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.raw(&answer.to_string()).await;
    }

    /// Returns the next line, which the protocol's own types take.
    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(DEADLINE, self.lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("no line came; seen: {:#?}", self.seen));
        let line = line
            .unwrap()
            .unwrap_or_else(|| panic!("the agent ended; seen: {:#?}", self.seen));
        let frame: Value = serde_json::from_str(&line).unwrap();
        self.check(&frame);
        self.seen.push(frame.clone());
        frame
    }

    fn check(&mut self, frame: &Value) {
        assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
        let params = || frame["params"].clone();
        if let Some(method) = frame["method"].as_str() {
            match method {
                "session/update" => read::<schema::SessionNotification>(&params()),
                "session/request_permission" => read::<schema::RequestPermissionRequest>(&params()),
                "elicitation/create" => read::<schema::CreateElicitationRequest>(&params()),
                "elicitation/complete" => {
                    read::<schema::CompleteElicitationNotification>(&params());
                }
                "$/cancel_request" => assert!(params()["requestId"].is_string()),
                other => panic!("a method that is none of the protocol's: {other}"),
            }
            return;
        }
        let Some(method) = frame["id"].as_u64().and_then(|id| self.asked.remove(&id)) else {
            return;
        };
        if frame.get("error").is_some() {
            assert!(frame["error"]["data"]["details"].is_string(), "{frame}");
            return read::<schema::Error>(&frame["error"]);
        }
        let result = frame["result"].clone();
        match method.as_str() {
            "initialize" => read::<schema::InitializeResponse>(&result),
            "session/new" => read::<schema::NewSessionResponse>(&result),
            "session/load" => read::<schema::LoadSessionResponse>(&result),
            "session/resume" => read::<schema::ResumeSessionResponse>(&result),
            "session/list" => read::<schema::ListSessionsResponse>(&result),
            "session/prompt" => read::<schema::PromptResponse>(&result),
            "session/set_mode" => read::<schema::SetSessionModeResponse>(&result),
            "session/set_config_option" => read::<schema::SetSessionConfigOptionResponse>(&result),
            "session/fork" => read::<schema::ForkSessionResponse>(&result),
            "session/set_title" => read::<schema::SetSessionTitleResponse>(&result),
            "session/close" => read::<schema::CloseSessionResponse>(&result),
            "session/delete" => read::<schema::DeleteSessionResponse>(&result),
            "session/archive" => read::<schema::ArchiveSessionResponse>(&result),
            "session/unarchive" => read::<schema::UnarchiveSessionResponse>(&result),
            "session/status" => read::<schema::SessionStatusResponse>(&result),
            _ => {}
        }
    }

    /// Reads on until a frame is what is waited for.
    async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.next().await;
            if is_it(&frame) {
                return frame;
            }
        }
    }

    /// Waits for the answer to a request.
    async fn outcome(&mut self, id: u64) -> Value {
        self.until(|frame| frame["id"] == id && frame.get("method").is_none())
            .await
    }

    /// Sends a request and returns its result.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        let answer = self.outcome(id).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request and returns its error.
    async fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        let answer = self.outcome(id).await;
        assert!(answer.get("error").is_some(), "{method}: {answer}");
        answer["error"].clone()
    }

    async fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        self.ask("initialize", params).await
    }

    /// Initializes, and opens a session; returns its id.
    async fn open(&mut self, capabilities: Value) -> String {
        self.initialize(capabilities).await;
        self.new_session().await["sessionId"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    async fn new_session(&mut self) -> Value {
        let params = json!({"cwd": self.cwd(), "mcpServers": []});
        self.ask("session/new", params).await
    }

    async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.send("session/prompt", prompt(session, text)).await
    }

    /// Prompts, and returns why the turn ended.
    async fn turn(&mut self, session: &str, text: &str) -> Value {
        self.ask("session/prompt", prompt(session, text)).await["stopReason"].clone()
    }

    /// Returns all updates of a kind.
    fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.seen.iter().map(|frame| &frame["params"]["update"]);
        updates
            .filter(|update| update["sessionUpdate"] == kind)
            .collect()
    }

    /// Returns the text that the agent said.
    fn said(&self) -> String {
        let chunks = self.updates("agent_message_chunk").into_iter();
        chunks
            .filter_map(|update| update["content"]["text"].as_str())
            .collect()
    }

    /// Ends it as an editor does; returns its exit code.
    async fn end(mut self) -> Option<i32> {
        self.stdin.take();
        let ended = tokio::time::timeout(DEADLINE, self.child.wait()).await;
        ended.expect("the agent did not end").unwrap().code()
    }
}

/// Reads a value as the protocol's own type, which has to know each of its fields.
fn read<T: for<'de> serde::Deserialize<'de> + serde::Serialize>(value: &Value) {
    let read = T::deserialize(value);
    let read = read.unwrap_or_else(|error| panic!("{value}: {error}"));
    let again = serde_json::to_value(read).unwrap();
    assert_known(value, &again, value);
}

/// Fails where a field did not come through the protocol's own type.
fn assert_known(sent: &Value, read: &Value, whole: &Value) {
    match (sent, read) {
        (Value::Object(sent), Value::Object(read)) => {
            for (name, value) in sent {
                let defaults = json!([null, [], false, "pending", "other"]);
                let is_default = defaults.as_array().unwrap().contains(value);
                match read.get(name) {
                    Some(read) => assert_known(value, read, whole),
                    None => assert!(is_default, "the protocol has no `{name}`: {whole}"),
                }
            }
        }
        (Value::Array(sent), Value::Array(read)) => {
            assert_eq!(sent.len(), read.len(), "{whole}");
            for (sent, read) in sent.iter().zip(read) {
                assert_known(sent, read, whole);
            }
        }
        _ => {}
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

fn is_question(frame: &Value) -> bool {
    frame["method"] == "session/request_permission"
}

/// Returns the answer to a question that chooses an option.
fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// Returns settings under which nothing is asked for.
fn autonomous() -> Value {
    json!({"chat": {"trust_level": "autonomous"}})
}

/// Returns an MCP server as an editor names it.
fn given(fake: &Fake, name: &str) -> Value {
    let mut server = fake.config(&[]);
    server["name"] = json!(name);
    server["env"] = json!([]);
    server
}

fn is_update(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |frame| frame["params"]["update"]["sessionUpdate"] == kind
}

#[tokio::test]
async fn a_prompt_is_answered_and_its_calls_are_shown() {
    let provider = Provider::start().await;
    let mut editor = Editor::start(&provider, autonomous()).await;
    let introduced = editor.initialize(json!({})).await;
    assert_eq!(introduced["protocolVersion"], 1);
    assert_eq!(introduced["agentCapabilities"]["loadSession"], true);
    let opened = editor.new_session().await;
    assert_eq!(opened["modes"]["currentModeId"], "autonomous");
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    std::fs::write(editor.folder.path().join("project/a.txt"), "hello").unwrap();
    provider.then(Turn::calls(&[
        ("file_read", json!({"path": "a.txt"})),
        ("bash", json!({"command": "echo one; echo two"})),
    ]));
    provider.then(Turn::text("Both are done."));
    assert_eq!(editor.turn(&session, "look").await, "end_turn");
    assert_eq!(editor.said(), "Both are done.");
    let calls = editor.updates("tool_call");
    assert_eq!(calls.len(), 2, "{calls:?}");
    let ends: Vec<_> = editor.updates("tool_call_update");
    let done = ends.iter().filter(|it| it["status"] == "completed");
    assert_eq!(done.count(), 2, "{ends:?}");
    let path = format!("{}/a.txt", editor.cwd());
    assert!(
        ends.iter()
            .any(|it| it["locations"][0]["path"] == path.as_str()),
        "{ends:?}"
    );
    // Nothing of a session comes before the answer that names it.
    let answer = editor
        .seen
        .iter()
        .position(|frame| frame["result"].get("sessionId").is_some());
    let first = editor
        .seen
        .iter()
        .position(|frame| frame["method"] == "session/update");
    assert!(answer < first, "{:#?}", editor.seen);
    assert_eq!(editor.updates("available_commands_update").len(), 1);
    assert_eq!(editor.end().await, Some(0));
}

#[tokio::test]
async fn a_turn_is_cancelled_and_no_other_one_runs_beside_it() {
    let provider = Provider::start().await;
    let mut editor = Editor::start(&provider, json!({})).await;
    let session = editor.open(json!({})).await;
    let (turn, mut pause) = Turn::paused(&[json!({"content": "I begin"})], &[], "stop");
    provider.then(turn);
    let first = editor.prompt(&session, "go").await;
    pause.reached().await;
    let refused = editor
        .refused("session/prompt", prompt(&session, "again"))
        .await;
    assert_eq!(refused["code"], -32_600, "{refused}");
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    assert_eq!(
        editor.outcome(first).await["result"]["stopReason"],
        "cancelled"
    );
    // As does a request for the request.
    let (turn, mut pause) = Turn::paused(&[], &[], "stop");
    provider.then(turn);
    let second = editor.prompt(&session, "go").await;
    pause.reached().await;
    editor
        .notify("$/cancel_request", json!({"requestId": second}))
        .await;
    assert_eq!(
        editor.outcome(second).await["result"]["stopReason"],
        "cancelled"
    );
    provider.then(Turn::text("fine"));
    assert_eq!(editor.turn(&session, "once more").await, "end_turn");
}

#[tokio::test]
async fn a_session_is_loaded_after_a_restart_as_it_was() {
    let provider = Provider::start().await;
    let mut editor = Editor::start(&provider, autonomous()).await;
    let session = editor
        .open(json!({"_meta": {"terminal_output": true}}))
        .await;
    provider.then(Turn::call("bash", &json!({"command": "echo here; exit 3"})));
    provider.then(Turn::text("It said here."));
    editor.turn(&session, "run it").await;
    let listed = editor
        .ask("session/list", json!({"cwd": editor.cwd()}))
        .await;
    assert_eq!(
        listed["sessions"][0]["sessionId"],
        session.as_str(),
        "{listed}"
    );
    assert_eq!(listed["sessions"][0]["title"], "run it");
    let Editor {
        mut child,
        stdin,
        folder,
        ..
    } = editor;
    drop(stdin);
    child.wait().await.unwrap();

    let mut editor = Editor::on(folder);
    editor
        .initialize(json!({"_meta": {"terminal_output": true}}))
        .await;
    let load = json!({"sessionId": session, "cwd": editor.cwd(), "mcpServers": []});
    let id = editor.send("session/load", load.clone()).await;
    let answer = editor.outcome(id).await;
    assert!(answer.get("error").is_none(), "{answer}");
    let told: Vec<_> = editor
        .seen
        .iter()
        .filter_map(|it| it["params"]["update"]["sessionUpdate"].as_str())
        .collect();
    assert_eq!(
        told,
        [
            "user_message_chunk",
            "tool_call",
            "tool_call_update",
            "tool_call_update",
            "agent_message_chunk"
        ]
    );
    assert_eq!(editor.said(), "It said here.");
    let exit = &editor.updates("tool_call_update")[1]["_meta"]["terminal_exit"];
    assert_eq!(exit["exit_code"], 3, "{exit}");
    let output = &editor.updates("tool_call_update")[0]["_meta"]["terminal_output"]["data"];
    assert!(output.as_str().unwrap().contains("here\r\n"), "{output}");
    provider.then(Turn::text("As I said."));
    assert_eq!(editor.turn(&session, "and?").await, "end_turn");
    assert!(
        provider
            .requests()
            .last()
            .unwrap()
            .to_string()
            .contains("It said here.")
    );

    // A copy, and one without what was said.
    let copy = editor.ask("session/fork", load.clone()).await;
    assert_ne!(copy["sessionId"], session.as_str());
    editor.seen.clear();
    editor.ask("session/resume", load).await;
    assert!(editor.updates("user_message_chunk").is_empty());
    let unknown = json!({"sessionId": "nobody", "cwd": editor.cwd(), "mcpServers": []});
    assert_eq!(
        editor.refused("session/load", unknown).await["code"],
        -32_002
    );
    for _ in 0..2 {
        editor
            .ask("session/delete", json!({"sessionId": session}))
            .await;
    }
    let listed = editor.ask("session/list", json!({})).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
}

#[tokio::test]
async fn two_sessions_go_on_side_by_side_and_one_is_closed() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("hello"));
    let mut editor = Editor::start(&provider, json!({})).await;
    let first = editor.open(json!({})).await;
    let second = editor.new_session().await["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let ids = [
        editor.prompt(&first, "a").await,
        editor.prompt(&second, "b").await,
    ];
    let mut ends = Vec::new();
    while ends.len() < 2 {
        let frame = editor.next().await;
        if let Some(id) = frame["id"].as_u64().filter(|id| ids.contains(id)) {
            assert_eq!(frame["result"]["stopReason"], "end_turn", "{frame}");
            ends.push(id);
        }
    }
    editor
        .ask("session/close", json!({"sessionId": first}))
        .await;
    let gone = editor.refused("session/prompt", prompt(&first, "a")).await;
    assert_eq!(gone["code"], -32_002, "{gone}");
    assert_eq!(editor.turn(&second, "c").await, "end_turn");
}

#[tokio::test]
async fn what_may_be_chosen_is_chosen() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("hello"));
    let mut editor = Editor::start(&provider, json!({"workflows": {"review": {}}})).await;
    let session = editor.open(json!({})).await;
    let mode = |mode| json!({"sessionId": session, "modeId": mode});
    editor.ask("session/set_mode", mode("supervised")).await;
    let changed = editor.until(is_update("config_option_update")).await;
    let options = changed["params"]["update"]["configOptions"]
        .as_array()
        .unwrap();
    assert_eq!(options[0]["currentValue"], "supervised", "{changed}");
    assert_eq!(
        editor.refused("session/set_mode", mode("x")).await["code"],
        -32_602
    );
    let option = |id, value| json!({"sessionId": session, "configId": id, "value": value});
    let all = editor
        .ask("session/set_config_option", option("model", "test/other"))
        .await;
    let model = all["configOptions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["id"] == "model");
    assert_eq!(model.unwrap()["currentValue"], "test/other", "{all}");
    editor
        .ask("session/set_config_option", option("effort", "high"))
        .await;
    editor.turn(&session, "hi").await;
    assert_eq!(provider.requests()[0]["model"], "other");

    for (line, words) in [
        (
            "/trust guided",
            "Trust is now guided: asks before what can change something.",
        ),
        ("/model test/third", "Model is now test/third."),
        ("/model", "The model is test/third. Choose"),
        ("/review", "`/review look at"),
        ("/cost", "has cost"),
        ("/undo", "No turn of this session"),
        ("/compact", "nothing to leave out"),
    ] {
        editor.seen.clear();
        assert_eq!(editor.turn(&session, line).await, "end_turn", "{line}");
        assert!(editor.said().contains(words), "{line}: {}", editor.said());
    }
    assert_eq!(provider.requests().len(), 1);
    editor.turn(&session, "/review all of it").await;
    let asked = provider.requests().last().unwrap().clone();
    assert_eq!(asked["model"], "third");
    assert!(asked.to_string().contains("all of it") && !asked.to_string().contains("/review"));
    editor.turn(&session, "/unknown word").await;
    assert!(
        provider
            .requests()
            .last()
            .unwrap()
            .to_string()
            .contains("/unknown word")
    );
}

#[tokio::test]
async fn what_is_no_request_gets_an_error_and_ends_nothing() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("hello"));
    let more = json!({"server": {"max_frame_bytes": 65_536}});
    let mut editor = Editor::start(&provider, more).await;
    let early = editor
        .refused("session/new", json!({"cwd": "/", "mcpServers": []}))
        .await;
    assert_eq!(early["code"], -32_600, "{early}");
    let session = editor.open(json!({})).await;
    for (line, code) in [
        ("not json".to_owned(), -32_700),
        ("[]".to_owned(), -32_600),
        (
            r#"{"jsonrpc":"2.0","id":[],"method":"initialize"}"#.to_owned(),
            -32_600,
        ),
        ("x".repeat(100_000), -32_600),
    ] {
        editor.raw(&line).await;
        let answer = editor
            .until(|frame| frame["id"].is_null() && frame.get("error").is_some())
            .await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    editor.raw("").await;
    editor
        .raw(r#"{"jsonrpc":"2.0","id":"text","method":"_x/y"}"#)
        .await;
    let unknown = editor.until(|frame| frame["id"] == "text").await;
    assert_eq!(unknown["error"]["code"], -32_601, "{unknown}");
    editor.notify("_x/y", json!({})).await;
    editor
        .raw(r#"{"jsonrpc":"2.0","id":"nobody#1","result":{}}"#)
        .await;
    for (method, params, code) in [
        (
            "session/new",
            json!({"cwd": "relative", "mcpServers": []}),
            -32_602,
        ),
        (
            "session/new",
            json!({"cwd": "/etc", "mcpServers": []}),
            -32_602,
        ),
        ("session/new", json!({"mcpServers": []}), -32_602),
        (
            "session/new",
            json!({"cwd": editor.cwd(), "mcpServers": [], "additionalDirectories": ["/opt"]}),
            -32_602,
        ),
        (
            "session/prompt",
            json!({"sessionId": "nobody", "prompt": []}),
            -32_002,
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": []}),
            -32_602,
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "film"}]}),
            -32_602,
        ),
        ("session/list", json!({"cursor": "x"}), -32_602),
        ("authenticate", json!({"methodId": "x"}), -32_602),
        ("session/set_model", json!({"sessionId": session}), -32_601),
    ] {
        let error = editor.refused(method, params.clone()).await;
        assert_eq!(error["code"], code, "{method} {params}: {error}");
    }
    assert_eq!(editor.turn(&session, "still there?").await, "end_turn");
}

#[tokio::test]
async fn a_provider_that_fails_is_an_error_with_what_to_do() {
    let provider = Provider::start().await;
    let refusal = r#"{"error":{"message":"bad key"}}"#;
    provider.then(Turn::plain(401, "application/json", refusal));
    let mut editor = Editor::start(&provider, json!({})).await;
    let session = editor.open(json!({})).await;
    let error = editor
        .refused("session/prompt", prompt(&session, "hi"))
        .await;
    assert_eq!(error["code"], -32_603, "{error}");
    let details = error["data"]["details"].as_str().unwrap();
    assert!(details.contains("key"), "{details}");
    provider.then(Turn::text("better"));
    assert_eq!(editor.turn(&session, "again").await, "end_turn");
}

#[tokio::test]
async fn a_start_that_fails_says_so_on_stderr_alone() {
    let provider = Provider::start().await;
    let folder = Daemon::folder(&provider, json!({"chat": {"provider": "nobody"}}));
    let output = Command::new(env!("CARGO_BIN_EXE_outrigger"))
        .args(["acp", "--config"])
        .arg(folder.path().join("config.json"))
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("chat.provider"), "{said}");
}

#[tokio::test]
async fn a_prompt_that_the_provider_finds_too_large_is_an_error() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("read"));
    let mut editor = Editor::start(&provider, json!({})).await;
    let session = editor.open(json!({})).await;
    // 10 MB, of which this provider takes 2.
    let large = prompt(&session, &"word ".repeat(2_000_000));
    let error = editor.refused("session/prompt", large).await;
    assert_eq!(error["code"], -32_603, "{error}");
    let opened = editor.new_session().await;
    let other = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(editor.turn(&other, "hi").await, "end_turn");
}

#[tokio::test]
async fn pictures_and_files_come_to_the_model() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("seen"));
    let mut editor = Editor::start(&provider, json!({})).await;
    let session = editor.open(json!({})).await;
    let file = format!("file://{}/src/a.rs", editor.cwd());
    let blocks = json!([
        {"type": "text", "text": "look at"},
        {"type": "resource_link", "uri": file, "name": "a.rs"},
        {"type": "resource", "resource": {"uri": file, "text": "fn main() {}"}},
        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
    ]);
    let params = json!({"sessionId": session, "prompt": blocks});
    assert_eq!(
        editor.ask("session/prompt", params).await["stopReason"],
        "end_turn"
    );
    let asked = provider.requests()[0].to_string();
    for words in ["[file: src/a.rs]", "fn main() {}"] {
        assert!(asked.contains(words), "{words}: {asked}");
    }
}
