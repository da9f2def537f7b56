//! The provider against a server that answers from a table.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::IntoResponse;
use secrecy::SecretString;

use super::*;
use crate::config::ProviderKind;
use crate::message::{DangerLevel, Message, Part, ToolCategory, ToolSpec};
use crate::provider::{Chunk, Stop, ToolChoice, testing};

/// What came in: path, bearer token, body.
type Seen = Vec<(String, Option<String>, Value)>;

/// Status and body of each answer, by path.
type Answers = BTreeMap<&'static str, Vec<(u16, String)>>;

/// A server with a list of answers for each path, or each `path model`; the last one is given again.
#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<Answers>>,
    seen: Arc<Mutex<Seen>>,
}

impl Server {
    fn answer(self, path: &'static str, status: u16, body: &impl ToString) -> Self {
        let mut answers = self.answers.lock();
        let queue = answers.entry(path).or_default();
        queue.push((status, body.to_string()));
        drop(answers);
        self
    }

    /// Serves on a free port until the test ends; returns an instance for it.
    async fn start(&self, num_ctx: Option<u64>, key: Option<&str>) -> Ollama {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(serve).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ollama::new(
            Arc::new(config(&format!("http://{address}/api/"), num_ctx, key)),
            Clients::default(),
        )
    }

    fn paths(&self) -> Vec<String> {
        let seen = self.seen.lock();
        seen.iter().map(|(path, ..)| path.clone()).collect()
    }

    fn chats(&self) -> Vec<Value> {
        let seen = self.seen.lock();
        seen.iter()
            .filter(|(path, ..)| path == "/api/chat")
            .map(|(_, _, body)| body.clone())
            .collect()
    }
}

async fn serve(
    State(server): State<Server>,
    _method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    let token = headers
        .get("authorization")
        .map(|value| value.to_str().unwrap().to_owned());
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let of_model = format!(
        "{} {}",
        uri.path(),
        body["model"].as_str().unwrap_or_default()
    );
    let mut seen = server.seen.lock();
    seen.push((uri.path().to_owned(), token, body));
    let mut answers = server.answers.lock();
    let path = if answers.contains_key(of_model.as_str()) {
        of_model.as_str()
    } else {
        uri.path()
    };
    let (status, body) = match answers.get_mut(path) {
        Some(queue) if queue.len() > 1 => queue.remove(0),
        Some(queue) => queue[0].clone(),
        None => (404, "404 page not found".to_owned()),
    };
    (StatusCode::from_u16(status).unwrap(), body)
}

fn config(base_url: &str, num_ctx: Option<u64>, key: Option<&str>) -> ProviderConfig {
    ProviderConfig {
        id: "local".to_owned(),
        api_key: key.map(SecretString::from),
        num_ctx,
        ..testing::config(ProviderKind::Ollama, "ollama", base_url)
    }
}

fn tool() -> ToolSpec {
    ToolSpec {
        name: "weather".to_owned(),
        description: "Tells the weather.".to_owned(),
        input_schema: json!({"type": "object", "properties": {}}).into(),
        category: ToolCategory::Search,
        danger_level: DangerLevel::Safe,
        origin: "core".to_owned(),
    }
}

/// Runs one turn and returns its chunks, the outer error or the one in the stream.
async fn turn(ollama: &Ollama, tools: &[ToolSpec]) -> Result<Vec<Chunk>, ProviderError> {
    let messages = [Message::User(vec![Part::text("Hello")])];
    let request = Request {
        model: "qwen3",
        front: &[],
        system: "",
        messages: &messages,
        tools,
        tool_choice: ToolChoice::Auto,
        max_tokens: None,
        temperature: None,
        thinking: None,
        cache_key: "c",
        output: None,
        compact: None,
    };
    let chunks: Vec<_> = ollama.stream(request).await?.collect().await;
    chunks.into_iter().collect()
}

fn notices(chunks: &[Chunk]) -> Vec<&str> {
    chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Notice(notice) => Some(notice.code.as_str()),
            _ => None,
        })
        .collect()
}

fn hi() -> String {
    let lines = [
        json!({"model": "qwen3", "message": {"content": "Hi"}, "done": false}),
        json!({"message": {"content": ""}, "done": true, "done_reason": "stop"}),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn show(context: u64, capabilities: &[&str]) -> Value {
    json!({"capabilities": capabilities, "model_info": {
        "general.architecture": "qwen3", "qwen3.context_length": context}})
}

#[tokio::test]
async fn a_model_is_asked_about_once_and_keeps_its_context() {
    let server = Server::default()
        .answer("/api/show", 200, &show(8192, &["completion", "tools"]))
        .answer("/api/chat", 200, &hi());
    let ollama = server.start(None, Some("secret")).await;
    assert_eq!(ollama.model("qwen3").context_window, None);
    for _ in 0..2 {
        let chunks = turn(&ollama, &[tool()]).await.unwrap();
        assert!(chunks.contains(&Chunk::Text("Hi".to_owned())));
        assert_eq!(notices(&chunks), [""; 0]);
        let Some(Chunk::End(end)) = chunks.last() else {
            panic!("no end");
        };
        assert_eq!(end.stop, Stop::EndTurn);
    }
    assert_eq!(server.paths(), ["/api/show", "/api/chat", "/api/chat"]);
    for chat in server.chats() {
        assert_eq!(chat["options"]["num_ctx"], json!(8192));
        assert_eq!(chat["tools"][0]["function"]["name"], json!("weather"));
    }
    assert_eq!(ollama.model("qwen3").context_window, Some(8192));
    let seen = server.seen.lock();
    assert!(
        seen.iter()
            .all(|(_, token, _)| token.as_deref() == Some("Bearer secret"))
    );
}

#[tokio::test]
async fn a_model_without_tools_gets_none_and_the_client_a_notice() {
    let server = Server::default()
        .answer("/api/show", 200, &show(8192, &["completion"]))
        .answer("/api/chat", 200, &hi());
    let ollama = server.start(None, None).await;
    let chunks = turn(&ollama, &[tool()]).await.unwrap();
    assert!(matches!(chunks[0], Chunk::Start { .. }));
    assert_eq!(notices(&chunks), ["model_no_tools"]);
    assert_eq!(notices(&turn(&ollama, &[]).await.unwrap()), [""; 0]);
    assert!(
        server
            .chats()
            .iter()
            .all(|chat| chat.get("tools").is_none())
    );
    assert!(!ollama.model("qwen3").supports_tools);
    let seen = server.seen.lock();
    assert!(seen.iter().all(|(_, token, _)| token.is_none()));
}

#[tokio::test]
async fn a_server_that_only_says_so_when_it_refuses_is_asked_again_without_tools() {
    let refusal = json!({"error": "registry.ollama.ai/library/qwen3 does not support tools"});
    let server = Server::default()
        .answer("/api/show", 200, &json!({"model_info": {}}))
        .answer("/api/chat", 400, &refusal)
        .answer("/api/chat", 200, &hi());
    let ollama = server.start(None, None).await;
    // Said once: it is the same conversation.
    for codes in [vec!["model_no_tools"], vec![]] {
        let chunks = turn(&ollama, &[tool()]).await.unwrap();
        assert_eq!(notices(&chunks), codes);
    }
    let with_tools: Vec<bool> = server
        .chats()
        .iter()
        .map(|chat| chat.get("tools").is_some())
        .collect();
    assert_eq!(with_tools, [true, false, false]);
}

#[tokio::test]
async fn the_turn_is_tried_where_the_question_is_not_understood() {
    let server = Server::default().answer("/api/chat", 200, &hi());
    let ollama = server.start(None, None).await;
    turn(&ollama, &[tool()]).await.unwrap();
    assert_eq!(server.chats()[0]["options"]["num_ctx"], json!(32_768));

    let missing = json!({"error": "model \"qwen3\" not found, try pulling it first"});
    let server = Server::default()
        .answer(
            "/api/show",
            404,
            &json!({"error": "model 'qwen3' not found"}),
        )
        .answer("/api/chat", 404, &missing);
    let ollama = server.start(None, None).await;
    let error = turn(&ollama, &[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.message.contains("try pulling it first"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_busy_or_refuses_the_key_is_not_asked_twice() {
    for (status, kind) in [
        (503, ErrorKind::Overloaded),
        (401, ErrorKind::Authentication),
        (500, ErrorKind::Server),
    ] {
        let body = json!({"error": "no"});
        let server =
            Server::default()
                .answer("/api/show", status, &body)
                .answer("/api/chat", status, &body);
        let ollama = server.start(None, None).await;
        let error = turn(&ollama, &[]).await.unwrap_err();
        assert_eq!(error.kind, kind);
        assert_eq!(server.paths(), ["/api/show"]);
    }
}

#[tokio::test]
async fn models_are_listed_with_what_each_can_do() {
    let tags = json!({"models": [
        {"model": "a"},
        {"model": "embed"},
        {"model": "old", "capabilities": ["completion"]},
        {"model": "c", "capabilities": ["embedding"]},
    ]});
    let all = ["completion", "tools", "vision"];
    let server = Server::default()
        .answer("/api/tags", 200, &tags)
        .answer("/api/show a", 200, &show(262_144, &all))
        .answer("/api/show embed", 200, &show(512, &["embedding"]));
    let ollama = server.start(Some(65_536), None).await;
    let listed = ollama.models().await.unwrap();
    let found: Vec<_> = listed
        .iter()
        .map(|model| {
            let abilities = (
                model.supports_tools,
                model.supports_thinking,
                model.supports_vision,
            );
            (model.id.as_str(), model.context_window, abilities)
        })
        .collect();
    let expected = [
        ("a", Some(65_536), (true, Some(false), Some(true))),
        ("old", Some(65_536), (false, Some(false), Some(false))),
    ];
    assert_eq!(found, expected);
    assert_eq!(ollama.model("a"), listed[0]);
}

#[tokio::test]
async fn credentials_are_checked_by_questions_that_cost_nothing() {
    let server = Server::default()
        .answer("/api/version", 200, &json!({"version": "0.32.9"}))
        .answer("/api/tags", 200, &json!({"models": []}));
    let ollama = server.start(None, None).await;
    assert_eq!(ollama.validate().await, Ok(()));
    assert_eq!(server.paths(), ["/api/version", "/api/tags"]);

    let server = server.answer("/api/version", 401, &json!({"error": "unauthorized"}));
    let ollama = server.start(None, None).await;
    ollama.validate().await.unwrap();
    let error = ollama.validate().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Authentication);
}

#[test]
fn the_address_is_found_in_urls_meant_for_an_api() {
    let cases = [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("http://127.0.0.1:11434/", "http://127.0.0.1:11434"),
        ("http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434"),
        ("https://ollama.com/api", "https://ollama.com"),
        ("https://host/ollama", "https://host/ollama"),
        ("", ""),
    ];
    for (base_url, expected) in cases {
        assert_eq!(root(base_url), expected, "{base_url}");
    }
}
