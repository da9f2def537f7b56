//! The tool against engines that answer as real ones do, failures included.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use secrecy::SecretString;
use serde_json::{Map, json};

use super::*;
use crate::message::Part;
use crate::notices::News;
use crate::tool::testing::Surroundings;

type Answers = Arc<Mutex<VecDeque<(u16, &'static str, String)>>>;

#[derive(Clone, Default)]
struct Engine {
    answers: Answers,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Engine {
    fn then(
        &self,
        status: u16,
        content_type: &'static str,
        body: &(impl ToString + ?Sized),
    ) -> &Self {
        let answer = (status, content_type, body.to_string());
        self.answers.lock().unwrap().push_back(answer);
        self
    }

    async fn start(&self) -> String {
        async fn answer(
            State(engine): State<Engine>,
            RawQuery(query): RawQuery,
            headers: HeaderMap,
        ) -> Response {
            let key = headers
                .get("x-subscription-token")
                .map_or("", |value| value.to_str().unwrap());
            let asked = format!("{} {key}", query.unwrap_or_default());
            engine.asked.lock().unwrap().push(asked.trim().to_owned());
            let (status, content_type, body) = engine
                .answers
                .lock()
                .unwrap()
                .pop_front()
                .expect("a scripted answer");
            let status = StatusCode::from_u16(status).unwrap();
            (
                status,
                [
                    ("content-type", content_type),
                    ("x-ratelimit-remaining", "0, 0"),
                ],
                body,
            )
                .into_response()
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }
}

fn tool(searxng: Option<&str>, brave: Option<&str>) -> impl Tool + use<> {
    notifying(searxng, brave, Notices::default())
}

fn notifying(searxng: Option<&str>, brave: Option<&str>, notices: Notices) -> impl Tool + use<> {
    let mut config = crate::config::for_tests();
    config.tools.web_search = WebSearchConfig {
        enabled: true,
        searxng_url: searxng.map(str::to_owned),
        engines: Vec::new(),
        brave_api_key: brave.map(|_| SecretString::from("brave-key")),
        brave_url: brave.unwrap_or_default().to_owned(),
        cache_ttl: Duration::from_secs(300),
        ask: crate::config::AskSearch::default(),
        limit: 30,
    };
    web_search(Current::new(config), Clients::default(), notices)
}

async fn search(tool: &impl Tool, query: &str) -> (Output, String) {
    let mut input = Map::new();
    input.insert("query".to_owned(), json!(query));
    let prepared = tool.prepare(&input).unwrap();
    let progress = Mutex::new(String::new());
    let emit = |_, chunk: &str| progress.lock().unwrap().push_str(chunk);
    let surroundings = Surroundings::default();
    let run = Run {
        emit: &emit,
        timeout: Duration::from_secs(30),
        ..surroundings.run()
    };
    let output = prepared.run(run).await.unwrap();
    (output, progress.into_inner().unwrap())
}

fn text(output: &Output) -> &str {
    match output.content.as_slice() {
        [Part::Text { text }] => text,
        other => panic!("{other:?}"),
    }
}

const JSON: &str = "application/json";

#[tokio::test]
async fn searxng_results_become_a_numbered_list_and_data() {
    let engine = Engine::default();
    let results = json!({
        "results": [
            { "url": "https://a.example/", "title": "A\u{202e}", "content": "first\n  line", "engine": "x" },
            { "url": null, "title": "", "template": "keyvalue.html" },
            { "url": "javascript:alert(1)", "title": "no" },
            { "url": "https://b.example/", "content": "b" },
        ],
        "answers": ["42", { "answer": "forty-two" }],
        "unresponsive_engines": [["bing", "timeout"]],
    });
    engine.then(200, JSON, &results);
    let (output, _) = search(&tool(Some(&engine.start().await), None), "!!g what  is it").await;
    assert!(!output.is_error);
    assert_eq!(output.metadata.result_count, Some(2));
    let text = text(&output);
    for part in [
        "1. A\n   https://a.example/\n   first line",
        "2. https://b.example/",
        "Answer: 42",
        "bing: timeout",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(
        engine.asked.lock().unwrap().as_slice(),
        ["q=g+what+is+it&format=json"]
    );
}

#[tokio::test]
async fn each_failure_of_searxng_says_what_to_do() {
    let suspended =
        json!({ "results": [], "unresponsive_engines": [["bing", "Suspended: access denied"]] });
    for (status, content_type, body, expected) in [
        (403, "text/html", "Forbidden".to_owned(), "search.formats"),
        (429, "text/html", String::new(), "limiter"),
        (
            200,
            "text/html",
            "<html>".to_owned(),
            "page instead of JSON",
        ),
        (302, "text/html", String::new(), "redirects"),
        (500, "text/html", String::new(), "status 500"),
        (200, JSON, "{".to_owned(), "not valid JSON"),
        (200, JSON, suspended.to_string(), "Suspended: access denied"),
    ] {
        let engine = Engine::default();
        engine.then(status, content_type, &body);
        if status >= 500 {
            engine.then(status, content_type, &body);
        }
        let (output, progress) = search(&tool(Some(&engine.start().await), None), "x").await;
        assert!(output.is_error);
        assert!(text(&output).contains(expected), "{}", text(&output));
        assert!(progress.contains(expected), "{progress}");
    }
    let (output, _) = search(&tool(Some("http://127.0.0.1:1"), None), "x").await;
    assert!(
        text(&output).contains("cannot be reached at http://127.0.0.1:1"),
        "{}",
        text(&output)
    );
}

#[tokio::test]
async fn brave_answers_where_searxng_fails_and_the_answer_is_kept() {
    let (searxng, brave) = (Engine::default(), Engine::default());
    searxng.then(403, "text/html", "Forbidden");
    brave.then(
        200,
        JSON,
        &json!({ "web": { "results": [
        { "title": "<strong>T</strong>", "url": "https://t.example/", "description": "it&#x27;s" },
    ] } }),
    );
    let brave_url = format!("{}/res/v1/web/search", brave.start().await);
    let notices = Notices::default();
    let mut received = notices.subscribe();
    let tool = notifying(Some(&searxng.start().await), Some(&brave_url), notices);
    for _ in 0..2 {
        let (output, _) = search(&tool, "query").await;
        assert!(
            text(&output).contains("1. T\n   https://t.example/\n   it's"),
            "{}",
            text(&output)
        );
        assert_eq!(output.metadata.provider.as_deref(), Some("brave"));
        let warning = &output.metadata.warnings[0];
        assert!(warning.contains("search.formats") && warning.ends_with("brave was asked instead"));
        assert!(text(&output).contains(warning));
    }
    let News::Notice(notice) = received.try_recv().unwrap().of_session() else {
        unreachable!()
    };
    assert_eq!(notice.code, "search_backend_down");
    assert!(notice.message.contains("search.formats"), "{notice:?}");
    assert!(received.try_recv().is_err());
    assert_eq!(
        brave.asked.lock().unwrap().as_slice(),
        ["q=query&count=20&text_decorations=false brave-key"]
    );
}

#[tokio::test]
async fn a_cause_is_reported_once_and_a_passing_failure_not_at_all() {
    let (searxng, brave) = (Engine::default(), Engine::default());
    let found = json!({ "web": { "results": [{ "title": "T", "url": "https://t.example/" }] } });
    for _ in 0..2 {
        searxng.then(403, "text/html", "Forbidden");
        brave.then(200, JSON, &found);
    }
    let passing = json!({
        "infoboxes": [{ "infobox": "Name", "content": "what it is" }], "answers": ["42"],
    });
    searxng.then(502, "text/html", "").then(200, JSON, &passing);
    let notices = Notices::default();
    let mut received = notices.subscribe();
    let (searxng, brave) = (searxng.start().await, brave.start().await);
    let tool = notifying(Some(&searxng), Some(&brave), notices);
    for query in ["a", "b"] {
        search(&tool, query).await;
    }
    assert!(received.try_recv().is_ok() && received.try_recv().is_err());
    let (output, _) = search(&tool, "c").await;
    assert_eq!(output.metadata.answers, ["42", "Name: what it is"]);
    assert!(output.metadata.warnings.is_empty() && received.try_recv().is_err());
}

#[tokio::test]
async fn each_failure_of_brave_says_what_to_do() {
    for (status, body, expected) in [
        (401, "{}", "refused its key"),
        (
            422,
            r#"{"error":{"code":"SUBSCRIPTION_TOKEN_INVALID"}}"#,
            "refused its key",
        ),
        (422, r#"{"errors":[{"detail":"bad value"}]}"#, "bad value"),
        (429, "{}", "quota"),
        (503, "", "status 503"),
        (200, "<html>", "not valid JSON"),
    ] {
        let brave = Engine::default();
        brave.then(status, JSON, body);
        if status >= 500 {
            brave.then(status, JSON, body);
        }
        let (output, _) = search(&tool(None, Some(&brave.start().await)), "x").await;
        assert!(text(&output).contains(expected), "{}", text(&output));
        assert!(!text(&output).contains("brave-key"));
    }
}

#[tokio::test]
async fn nothing_found_and_nobody_to_ask_are_reported() {
    let engine = Engine::default();
    engine.then(200, JSON, &json!({ "results": [] }));
    let (output, _) = search(&tool(Some(&engine.start().await), None), "x").await;
    assert_eq!(text(&output), "nothing was found for \"x\"");
    let (output, _) = search(&tool(None, None), "x").await;
    assert!(text(&output).contains("no search engine is configured"));
}

#[tokio::test]
async fn brave_is_asked_where_searxng_finds_nothing() {
    let nothing = json!({ "results": [] });
    let found = json!({ "web": { "results": [{ "title": "T", "url": "https://t.example/" }] } });
    let cases = [
        (200, found.to_string(), false, "1. T\n   https://t.example/"),
        (
            200,
            json!({}).to_string(),
            true,
            "nothing was found for \"x\", neither by searxng nor by brave",
        ),
        (
            401,
            "{}".to_owned(),
            true,
            "nothing was found for \"x\" by searxng; brave: refused its key",
        ),
    ];
    for (status, body, is_error, expected) in cases {
        let (searxng, brave) = (Engine::default(), Engine::default());
        searxng.then(200, JSON, &nothing);
        brave.then(status, JSON, &body);
        let (searxng_url, brave_url) = (searxng.start().await, brave.start().await);
        let (output, progress) = search(&tool(Some(&searxng_url), Some(&brave_url)), "x").await;
        assert_eq!(output.is_error, is_error);
        assert!(text(&output).contains(expected), "{}", text(&output));
        assert!(progress.contains("searxng found nothing"), "{progress}");
        assert_eq!(brave.asked.lock().unwrap().len(), 1);
        if !is_error {
            let note = "searxng found nothing; brave was asked instead";
            assert_eq!(output.metadata.warnings, [note]);
            assert!(text(&output).contains(note));
        }
    }
}
