mod compaction;

use std::collections::VecDeque;
use std::sync::Mutex;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use secrecy::SecretString;
use serde_json::json;

use super::*;
use crate::config::ProviderKind;
use crate::message::{DangerLevel, Message, Part, Reply, Thinking, ToolCategory, ToolSpec};
use crate::provider::testing::config;
use crate::provider::{Chunk, End, Stop, ToolChoice};

const MODEL: &str = "claude-sonnet-4-5";

/// A server that gives the answers it is given, one by one, and notes what it was asked.
struct Server {
    asked: Arc<Mutex<Vec<(Uri, HeaderMap, Value)>>>,
    provider: Anthropic,
}

type Answers = Arc<Mutex<VecDeque<(u16, String)>>>;
type Asked = Arc<Mutex<Vec<(Uri, HeaderMap, Value)>>>;

async fn answer(
    State((answers, asked)): State<(Answers, Asked)>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = serde_json::from_slice(&body).unwrap_or_default();
    asked.lock().unwrap().push((uri, headers, body));
    let next = answers.lock().unwrap().pop_front();
    let (status, body) = next.unwrap_or_else(|| (500, "no answer is left".to_owned()));
    let kind = if body.starts_with("event:") {
        "text/event-stream"
    } else {
        "application/json"
    };
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("content-type", kind)], body).into_response()
}

impl Server {
    async fn start(answers: impl IntoIterator<Item = (u16, String)>) -> Self {
        let answers: Answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        let asked = Asked::default();
        let router = Router::new()
            .fallback(answer)
            .with_state((answers, Arc::clone(&asked)));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        drop(tokio::spawn(async { axum::serve(listener, router).await }));
        Self {
            asked,
            provider: provider(&base_url, Some("sk-ant-api-test"), &[]),
        }
    }

    /// Runs a turn to its end.
    async fn turn(&self, case: &Case) -> Result<Vec<Chunk>, ProviderError> {
        let chunks = self.provider.stream(case.request()).await?;
        chunks.collect::<Vec<_>>().await.into_iter().collect()
    }

    /// Returns the bodies it was asked with.
    fn bodies(&self) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(_, _, body)| body.clone()).collect()
    }
}

fn provider(base_url: &str, key: Option<&str>, headers: &[(&str, &str)]) -> Anthropic {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).into()));
    let config = ProviderConfig {
        id: "anthropic".to_owned(),
        api_key: key.map(SecretString::from),
        key_optional: false,
        headers: headers.collect(),
        ..config(ProviderKind::Anthropic, "anthropic", base_url)
    };
    Anthropic::new(Arc::new(config), Clients::default())
}

struct Case {
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    thinking: Option<Thinking>,
    conversation: &'static str,
    compact: Option<&'static str>,
}

impl Case {
    fn new() -> Self {
        Self {
            messages: vec![Message::User(vec![Part::text("Hello")])],
            tools: Vec::new(),
            thinking: None,
            conversation: "c1",
            compact: None,
        }
    }

    fn request(&self) -> Request<'_> {
        Request {
            front: &[],
            model: MODEL,
            system: "",
            messages: &self.messages,
            tools: &self.tools,
            tool_choice: ToolChoice::Auto,
            max_tokens: None,
            temperature: Some(0.5),
            thinking: self.thinking,
            cache_key: self.conversation,
            output: None,
            compact: self.compact,
        }
    }
}

fn said(text: &str) -> (u16, String) {
    let frames = [
        json!({"type": "message_start", "message": {"model": "claude-x", "usage": {"input_tokens": 7}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    let frame = |frame: &Value| {
        format!(
            "event: {}\ndata: {frame}\n\n",
            frame["type"].as_str().unwrap()
        )
    };
    (200, frames.iter().map(frame).collect())
}

fn refused(status: u16, message: &str) -> (u16, String) {
    let error = json!({"type": "invalid_request_error", "message": message});
    (status, json!({"type": "error", "error": error}).to_string())
}

#[tokio::test]
async fn a_turn() {
    let server = Server::start([said("Hi")]).await;
    let chunks = server.turn(&Case::new()).await.unwrap();
    let [
        start,
        text,
        Chunk::End(End {
            stop,
            usage,
            native,
            ..
        }),
    ] = &chunks[..]
    else {
        panic!("{chunks:?}")
    };
    assert_eq!(
        *start,
        Chunk::Start {
            model: Some("claude-x".to_owned())
        }
    );
    assert_eq!(*text, Chunk::Text("Hi".to_owned()));
    assert_eq!(
        (*stop, usage.input, usage.output),
        (Stop::EndTurn, Some(7), Some(2))
    );
    assert_eq!(*native, None);

    let asked = server.asked.lock().unwrap();
    let (uri, headers, body) = &asked[0];
    assert_eq!(uri.path(), "/v1/messages");
    assert_eq!(headers["anthropic-version"], COPIED_VERSION);
    assert_eq!(headers["x-api-key"], "sk-ant-api-test");
    assert_eq!(headers["content-type"], "application/json");
    assert!(!headers.contains_key("authorization") && !headers.contains_key("anthropic-beta"));
    assert_eq!(
        (&body["stream"], &body["temperature"]),
        (&json!(true), &json!(0.5))
    );
}

#[test]
fn who_is_asked_and_as_whom() {
    let vendor = "https://api.anthropic.com";
    let own = [
        ("Authorization", "Bearer mine"),
        ("Anthropic-Version", "2024-01-01"),
    ];
    // Base URL, key, configured headers; version, `x-api-key`, `authorization`.
    let cases = [
        (
            vendor,
            Some("sk-ant-api-1\n"),
            &own[..0],
            [Some(VERSION), Some("sk-ant-api-1"), None],
        ),
        (
            vendor,
            Some("sk-ant-oat01-1"),
            &own[..0],
            [Some(VERSION), None, Some("Bearer sk-ant-oat01-1")],
        ),
        (
            "https://proxy.example/v1",
            Some("k"),
            &own[..0],
            [Some(COPIED_VERSION), Some("k"), None],
        ),
        (
            "https://api.anthropic.com.example",
            Some("k"),
            &own[..0],
            [Some(COPIED_VERSION), Some("k"), None],
        ),
        // Added to each request by the endpoint itself.
        (vendor, None, &own[..], [Some("2024-01-01"), None, None]),
    ];
    for (base_url, key, configured, expected) in cases {
        let headers = provider(base_url, key, configured).headers().unwrap();
        let names = ["anthropic-version", "x-api-key", "authorization"];
        let seen = names.map(|name| headers.get(name).map(|value| value.to_str().unwrap()));
        assert_eq!(seen, expected, "{base_url} {key:?}");
    }
    let error = provider(vendor, None, &[]).headers().unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotConfigured);
    for base_url in [
        "https://x.example/api",
        "https://x.example/api/",
        "https://x.example/api/v1",
    ] {
        let url = provider(base_url, None, &[]).url("messages");
        assert_eq!(url, "https://x.example/api/v1/messages");
    }
}

#[tokio::test]
async fn refused_thinking_is_left_out() {
    let server = Server::start([
        refused(
            400,
            "messages.1.content.0: Invalid `signature` in `thinking` block",
        ),
        said("Hi"),
    ])
    .await;
    let mut case = Case::new();
    let items = json!([
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "Yes?"},
    ]);
    case.messages.push(Message::Reply(Reply {
        text: "Yes?".to_owned(),
        native: Some(crate::message::NativeReply {
            wire: decode::WIRE.to_owned(),
            provider: "anthropic".to_owned(),
            model: MODEL.to_owned(),
            items,
        }),
        ..Reply::default()
    }));
    case.messages.push(Message::User(vec![Part::text("So")]));
    server.turn(&case).await.unwrap();
    let first: Vec<_> = server
        .bodies()
        .iter()
        .map(|body| body["messages"][1]["content"][0]["type"].clone())
        .collect();
    assert_eq!(first, ["thinking", "text"]);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_shorter_once() {
    let server = Server::start([
        refused(
            400,
            "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000",
        ),
        said("Hi"),
        said("again"),
    ])
    .await;
    server.turn(&Case::new()).await.unwrap();
    server.turn(&Case::new()).await.unwrap();
    let bodies = server.bodies();
    assert_eq!(bodies[1]["max_tokens"], 200_000 - 190_000 - 64);
    assert_eq!(bodies[2]["max_tokens"], bodies[0]["max_tokens"]);
}

#[tokio::test]
async fn another_refusal_is_an_error() {
    for status in [400, 401] {
        let server = Server::start([refused(status, "temperature"), said("Hi")]).await;
        server.turn(&Case::new()).await.unwrap_err();
        assert_eq!(server.bodies().len(), 1);
    }
}

#[tokio::test]
async fn models_are_listed_page_by_page_and_remembered() {
    let entry = |id: &str| {
        json!({"id": id, "display_name": id.to_uppercase(), "max_tokens": 4_000,
            "capabilities": {"thinking": {"supported": true, "types": {"adaptive": {"supported": true}}}}})
    };
    let page = |id: &str, more: bool| {
        (
            200,
            json!({"data": [entry(id)], "has_more": more, "last_id": id}).to_string(),
        )
    };
    let server = Server::start([page("claude-a", true), page(MODEL, false), said("Hi")]).await;
    let models = server.provider.models().await.unwrap();
    let ids: Vec<_> = models.iter().map(|model| &*model.id).collect();
    assert_eq!(ids, ["claude-a", MODEL]);
    assert_eq!(server.provider.model("claude-a").display_name, "CLAUDE-A");
    assert_eq!(server.provider.model("unheard-of").id, "unheard-of");

    let mut case = Case::new();
    case.thinking = Some(Thinking {
        enabled: true,
        budget_tokens: None,
        effort: None,
    });
    server.turn(&case).await.unwrap();
    let asked = server.asked.lock().unwrap();
    let queries: Vec<_> = asked.iter().map(|(uri, _, _)| uri.query()).collect();
    assert_eq!(
        queries,
        [
            Some("limit=1000"),
            Some("limit=1000&after_id=claude-a"),
            None
        ]
    );
    assert_eq!(asked[2].2["max_tokens"], 4_000);
    assert_eq!(asked[2].2["thinking"]["type"], "adaptive");
}

#[tokio::test]
async fn a_list_that_repeats_itself_ends() {
    let page = (
        200,
        json!({"data": [], "has_more": true, "last_id": "x"}).to_string(),
    );
    let server = Server::start(vec![page; 10]).await;
    assert_eq!(server.provider.models().await.unwrap(), []);
    assert_eq!(server.bodies().len(), 2);
}

#[tokio::test]
async fn keys_are_checked_without_cost() {
    let server = Server::start([(200, "{}".to_owned()), refused(401, "invalid x-api-key")]).await;
    assert_eq!(server.provider.validate().await, Ok(()));
    let error = server.provider.validate().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Authentication);
    let uri = server.asked.lock().unwrap()[0].0.to_string();
    assert_eq!(uri, "/v1/models?limit=1");
}

#[tokio::test]
async fn a_conversation_gets_one_notice_of_a_bad_tool() {
    let broken = (500, json!({"error": {"type": "api_error"}}).to_string());
    let server = Server::start([broken, said("a"), said("b"), said("c")]).await;
    let mut case = Case::new();
    case.tools.push(ToolSpec {
        name: "mcp__x__y".to_owned(),
        description: String::new(),
        input_schema: json!({"type": "string"}).into(),
        category: ToolCategory::Mcp,
        danger_level: DangerLevel::Dangerous,
        origin: "mcp:x".to_owned(),
    });
    let mut counts = Vec::new();
    for conversation in ["c1", "c1", "c1", "c2"] {
        case.conversation = conversation;
        let chunks = server.turn(&case).await.unwrap_or_default();
        let is_notice = |chunk: &&Chunk| matches!(chunk, Chunk::Notice(_));
        counts.push(chunks.iter().filter(is_notice).count());
    }
    assert_eq!(counts, [0, 1, 0, 1]);
}
