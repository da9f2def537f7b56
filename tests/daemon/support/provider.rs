//! A provider of the Chat Completions sort that plays a script and checks every request it gets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use super::within;

/// The provider; its server ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct Provider {
    port: u16,
    state: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    turns: VecDeque<Turn>,
    requests: Vec<Value>,
    /// What the next request for the models has to wait for.
    models: Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>,
    models_asked: usize,
    /// The window that the list of models says `test-model` has.
    window: Option<usize>,
    /// Answers where the script is at its end.
    rule: Option<Arc<Rule>>,
}

type Rule = dyn Fn(&Value) -> Turn + Send + Sync;

/// One answer.
pub(crate) struct Turn {
    status: u16,
    content_type: &'static str,
    headers: Vec<(&'static str, String)>,
    steps: Vec<Step>,
}

enum Step {
    Bytes(String),
    /// Tells the test and waits for it.
    Pause(oneshot::Sender<()>, oneshot::Receiver<()>),
    /// Closes the connection without a proper end.
    Break,
}

/// The test's end of a pause.
pub(crate) struct Pause {
    reached: oneshot::Receiver<()>,
    go_on: oneshot::Sender<()>,
}

impl Pause {
    /// Waits until the answer has come so far.
    pub(crate) async fn reached(&mut self) {
        within("the request for an answer", &mut self.reached, String::new)
            .await
            .unwrap();
    }

    /// Lets the answer go on.
    pub(crate) fn go_on(self) {
        self.go_on.send(()).ok();
    }
}

impl Provider {
    /// Starts a provider that has nothing to say yet.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let provider = Self {
            port: listener.local_addr().unwrap().port(),
            state: Arc::default(),
        };
        let router = Router::new()
            .route("/v1/chat/completions", post(answer))
            .route("/v1/models", get(models))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        provider
    }

    /// Its base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Adds an answer to the script.
    pub(crate) fn then(&self, turn: Turn) -> &Self {
        self.state.lock().unwrap().turns.push_back(turn);
        self
    }

    /// Answers by a rule what the script has no answer for; the rule is given the last message.
    pub(crate) fn by_rule(&self, rule: impl Fn(&Value) -> Turn + Send + Sync + 'static) {
        self.by_request(move |request| {
            let last = request["messages"].as_array().and_then(|all| all.last());
            rule(last.unwrap_or(&Value::Null))
        });
    }

    /// The same; the rule is given the whole request.
    pub(crate) fn by_request(&self, rule: impl Fn(&Value) -> Turn + Send + Sync + 'static) {
        self.state.lock().unwrap().rule = Some(Arc::new(rule));
    }

    /// Has the next request for the models wait for the test.
    pub(crate) fn pause_models(&self) -> Pause {
        let (reached, waits) = oneshot::channel();
        let (go_on, goes) = oneshot::channel();
        self.state.lock().unwrap().models = Some((reached, goes));
        Pause {
            reached: waits,
            go_on,
        }
    }

    /// Has the list of models say which window `test-model` has.
    pub(crate) fn says_window(&self, window: usize) {
        self.state.lock().unwrap().window = Some(window);
    }

    /// How often the models were asked for.
    pub(crate) fn models_asked(&self) -> usize {
        self.state.lock().unwrap().models_asked
    }

    /// The bodies of all requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.state.lock().unwrap().requests.clone()
    }
}

async fn models(State(provider): State<Provider>) -> Json<Value> {
    let (pause, window) = {
        let mut state = provider.state.lock().unwrap();
        state.models_asked += 1;
        (state.models.take(), state.window)
    };
    if let Some(window) = window {
        return Json(json!({"data": [{"id": "test-model", "max_model_len": window}]}));
    }
    if let Some((reached, go_on)) = pause {
        reached.send(()).ok();
        go_on.await.ok();
    }
    Json(json!({"data": [{"id": "listed-first"}, {"id": "second"}]}))
}

impl Turn {
    /// A streamed answer of these chunks; `finish` is the finish reason.
    pub(crate) fn chunks(deltas: &[Value], finish: &str) -> Self {
        let mut turn = Self::open(deltas);
        turn.end(finish);
        turn
    }

    /// Text, in one delta.
    pub(crate) fn text(text: &str) -> Self {
        Self::chunks(&[json!({ "content": text })], "stop")
    }

    /// One tool call.
    pub(crate) fn call(name: &str, input: &Value) -> Self {
        Self::calls(&[(name, input.clone())])
    }

    /// Several tool calls.
    pub(crate) fn calls(calls: &[(&str, Value)]) -> Self {
        let deltas: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(index, (name, input))| {
                json!({ "tool_calls": [{
                    "index": index, "id": format!("call_{index}_{name}"), "type": "function",
                    "function": { "name": name, "arguments": input.to_string() },
                }] })
            })
            .collect();
        Self::chunks(&deltas, "tool_calls")
    }

    /// An answer that is not a stream.
    pub(crate) fn plain(status: u16, content_type: &'static str, body: &str) -> Self {
        Self {
            status,
            content_type,
            headers: Vec::new(),
            steps: vec![Step::Bytes(body.to_owned())],
        }
    }

    /// A stream that breaks off after these chunks.
    pub(crate) fn broken(deltas: &[Value]) -> Self {
        let mut turn = Self::open(deltas);
        turn.steps.push(Step::Break);
        turn
    }

    /// A stream that pauses after these chunks and then ends well.
    pub(crate) fn paused(deltas: &[Value], rest: &[Value], finish: &str) -> (Self, Pause) {
        let (tell, reached) = oneshot::channel();
        let (go_on, wait) = oneshot::channel();
        let mut turn = Self::open(deltas);
        turn.steps.push(Step::Pause(tell, wait));
        turn.steps
            .extend(rest.iter().map(|delta| Step::Bytes(chunk(delta, None))));
        turn.end(finish);
        (turn, Pause { reached, go_on })
    }

    /// The same with so many tokens of input in its usage.
    pub(crate) fn counted(mut self, tokens: usize) -> Self {
        if let Some(Step::Bytes(end)) = self.steps.last_mut() {
            *end = end.replace(
                r#""prompt_tokens":10"#,
                &format!(r#""prompt_tokens":{tokens}"#),
            );
        }
        self
    }

    /// The same with a header.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn open(deltas: &[Value]) -> Self {
        Self {
            status: 200,
            content_type: "text/event-stream",
            headers: Vec::new(),
            steps: deltas
                .iter()
                .map(|delta| Step::Bytes(chunk(delta, None)))
                .collect(),
        }
    }

    fn end(&mut self, finish: &str) {
        let usage = json!({"id": "x", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
        self.steps
            .push(Step::Bytes(chunk(&json!({}), Some(finish))));
        self.steps
            .push(Step::Bytes(format!("data: {usage}\n\ndata: [DONE]\n\n")));
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({
        "id": "x", "object": "chat.completion.chunk", "model": "test-model",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    });
    format!("data: {chunk}\n\n")
}

async fn answer(State(provider): State<Provider>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let problem = unpaired(&request);
    let turn = {
        let mut script = provider.state.lock().unwrap();
        let rule = script.rule.clone();
        let scripted = script.turns.pop_front();
        let turn = scripted.or_else(|| rule.map(|rule| rule(&request)));
        script.requests.push(request);
        turn
    };
    let turn = match (problem, turn) {
        (Some(problem), _) => {
            let body = json!({"error": {"message": format!("TEST: {problem}"), "type": "invalid_request_error"}});
            Turn::plain(400, "application/json", &body.to_string())
        }
        (None, Some(turn)) => turn,
        (None, None) => Turn::plain(
            400,
            "application/json",
            r#"{"error":{"message":"TEST: the script is at its end"}}"#,
        ),
    };
    let mut response = Response::builder()
        .status(StatusCode::from_u16(turn.status).unwrap())
        .header("content-type", turn.content_type);
    for (name, value) in turn.headers {
        response = response.header(name, value);
    }
    let (sender, receiver) = mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    tokio::spawn(async move {
        for step in turn.steps {
            match step {
                Step::Bytes(text) => {
                    if sender.send(Ok(Bytes::from(text))).await.is_err() {
                        return;
                    }
                }
                Step::Pause(tell, wait) => {
                    tell.send(()).ok();
                    wait.await.ok();
                }
                Step::Break => {
                    let error = std::io::Error::other("broken off by the script");
                    sender.send(Err(error)).await.ok();
                }
            }
        }
    });
    let stream = futures::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|item| (item, receiver))
    });
    response.body(Body::from_stream(stream)).unwrap()
}

/// What is wrong with the calls and results of a request: each call needs one result, right after it.
fn unpaired(request: &Value) -> Option<String> {
    let mut owed: Vec<String> = Vec::new();
    for message in request["messages"].as_array()? {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or("");
            let Some(at) = owed.iter().position(|call| call == id) else {
                return Some(format!("result without a call: {id}"));
            };
            owed.remove(at);
            continue;
        }
        if !owed.is_empty() {
            return Some(format!("calls without a result: {owed:?}"));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            owed.push(call["id"].as_str().unwrap_or("").to_owned());
        }
    }
    (!owed.is_empty()).then(|| format!("calls without a result: {owed:?}"))
}
