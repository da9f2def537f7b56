use std::collections::VecDeque;
use std::sync::Mutex;

use axum::Router;
use axum::extract::{Request as HttpRequest, State};
use axum::http::StatusCode;
use serde_json::Value;

use super::*;
use crate::message::Message;
use crate::provider::testing::{config, request, tools, user};
use crate::provider::{Chunk, Stop};

/// What a server answers, in order, and what it was asked.
#[derive(Default)]
struct Played {
    answers: Mutex<VecDeque<(u16, String)>>,
    asked: Mutex<Vec<(String, Value)>>,
}

async fn play(State(played): State<Arc<Played>>, request: HttpRequest) -> (StatusCode, String) {
    let path = request.uri().path().to_owned();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20)
        .await
        .unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    played.asked.lock().unwrap().push((path, body));
    let (status, body) = played.answers.lock().unwrap().pop_front().unwrap();
    (StatusCode::from_u16(status).unwrap(), body)
}

/// Starts a server that gives these answers, and an instance that asks it.
async fn start(kind: ProviderKind, preset: &str, answers: &[(u16, &str)]) -> (Server, Arc<Played>) {
    let played = Arc::new(Played::default());
    let queue = answers
        .iter()
        .map(|(status, body)| (*status, (*body).to_owned()));
    played.answers.lock().unwrap().extend(queue);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(play).with_state(Arc::clone(&played));
    tokio::task::spawn(async move { axum::serve(listener, router).await });
    let config = Arc::new(config(kind, preset, &url));
    (Server::new(config, Clients::default()), played)
}

const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

const HELLO_RESPONSES: &str = "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hi\"}]}]}}\n\n";

async fn ask(server: &Server) -> Result<Vec<Chunk>, ProviderError> {
    let (history, tools): ([Message; 1], _) = ([user("Hello")], tools());
    let request = Request {
        max_tokens: Some(10),
        temperature: Some(0.5),
        ..request(&history, &tools)
    };
    let chunks = server.answer(request).await?;
    chunks.collect::<Vec<_>>().await.into_iter().collect()
}

fn bodies(played: &Played) -> Vec<Value> {
    let asked = played.asked.lock().unwrap();
    asked.iter().map(|(_, body)| body.clone()).collect()
}

fn paths(played: &Played) -> Vec<String> {
    let asked = played.asked.lock().unwrap();
    asked.iter().map(|(path, _)| path.clone()).collect()
}

#[tokio::test]
async fn a_model_without_tools_is_asked_without_and_remembered() {
    let refusal = r#"{"error":{"message":"gemma does not support tools","type":"api_error"}}"#;
    let answers = [(400, refusal), (200, HELLO), (200, HELLO)];
    let (server, played) = start(ProviderKind::Chat, "generic", &answers).await;
    // Said once: it is the same conversation.
    for expected in [&["model_no_tools"][..], &[]] {
        let chunks = ask(&server).await.unwrap();
        let notices: Vec<&str> = chunks
            .iter()
            .filter_map(|chunk| match chunk {
                Chunk::Notice(notice) => Some(notice.code.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(notices, expected);
    }
    let with_tools: Vec<bool> = bodies(&played)
        .iter()
        .map(|body| body.get("tools").is_some())
        .collect();
    assert_eq!(with_tools, [true, false, false]);
    assert!(!server.model("m").supports_tools);
}

#[tokio::test]
async fn several_repairs_in_a_row_and_no_loop() {
    let answers = [
        (
            400,
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"'temperature' does not support 0.5 with this model"}}"#,
        ),
        (
            422,
            r#"{"detail":[{"loc":["body","stream_options"],"msg":"stream_options: Extra inputs are not permitted"}]}"#,
        ),
        (200, HELLO),
    ];
    let (server, played) = start(ProviderKind::Chat, "generic", &answers).await;
    ask(&server).await.unwrap();
    let last = bodies(&played).pop().unwrap();
    assert_eq!(last["max_completion_tokens"], 10);
    for gone in ["max_tokens", "temperature", "stream_options"] {
        assert_eq!(last.get(gone), None, "{gone}");
    }
    let stubborn = (
        400,
        r#"{"error":{"message":"'temperature' is not supported"}}"#,
    );
    let (server, played) = start(ProviderKind::Chat, "generic", &[stubborn, stubborn]).await;
    assert_eq!(
        ask(&server).await.unwrap_err().kind,
        ErrorKind::InvalidRequest
    );
    assert_eq!(bodies(&played).len(), 2);
    let learned = server.learned.quirks("generic", "m");
    assert_eq!(learned, Quirks::of("generic", "m"), "nothing was learned");
}

#[tokio::test]
async fn the_way_over_to_the_other_api_and_back() {
    let refusal = r#"{"error":{"message":"Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'."}}"#;
    let answers = [
        (400, refusal),
        (200, HELLO_RESPONSES),
        (200, HELLO_RESPONSES),
    ];
    let (server, played) = start(ProviderKind::Chat, "generic", &answers).await;
    for _ in 0..2 {
        let chunks = ask(&server).await.unwrap();
        assert_eq!(chunks[1], Chunk::Text("Hi".to_owned()));
    }
    assert_eq!(
        paths(&played),
        ["/v1/chat/completions", "/v1/responses", "/v1/responses"]
    );
    let (server, played) = start(
        ProviderKind::Responses,
        "generic",
        &[(404, "404 page not found"), (200, HELLO)],
    )
    .await;
    ask(&server).await.unwrap();
    assert_eq!(paths(&played), ["/v1/responses", "/v1/chat/completions"]);
    let missing =
        r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#;
    let (server, played) = start(ProviderKind::Responses, "generic", &[(404, missing)]).await;
    assert_eq!(ask(&server).await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(paths(&played).len(), 1);
}

#[tokio::test]
async fn a_recording_names_the_api_that_was_spoken() {
    let refusal = r#"{"error":{"message":"use /v1/responses"}}"#;
    let answers = [(400, refusal), (200, HELLO_RESPONSES)];
    let (server, _) = start(ProviderKind::Chat, "generic", &answers).await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = ProviderConfig::clone(server.endpoint.config());
    config.record = Some(folder.path().to_owned());
    ask(&Server::new(Arc::new(config), Clients::default()))
        .await
        .unwrap();
    let list = std::fs::read(folder.path().join("manifest.json")).unwrap();
    let list: Value = serde_json::from_slice(&list).unwrap();
    assert_eq!(list["recordings"][0]["api"], "openai-chat");
    assert_eq!(list["recordings"][1]["api"], "openai-responses");
}

#[tokio::test]
async fn a_call_that_the_server_refused_is_reported_to_the_model_once() {
    let refusal = r#"{"error":{"message":"parameters did not match schema","type":"invalid_request_error","code":"tool_use_failed"}}"#;
    let in_stream = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"reasoning\":\"x\"}}}}]}}\n\nevent: error\ndata: {refusal}\n\n"
    );
    let answers = [
        (400, refusal),
        (200, HELLO),
        (200, &*in_stream),
        (200, HELLO),
        (200, HELLO),
        (400, refusal),
        (400, refusal),
    ];
    let (server, played) = start(ProviderKind::Chat, "groq", &answers).await;
    ask(&server).await.unwrap();
    assert!(ask(&server).await.unwrap_err().is_model_mistake());
    ask(&server).await.unwrap();
    ask(&server).await.unwrap();
    assert!(ask(&server).await.unwrap_err().is_model_mistake());
    let has_mistake: Vec<bool> = bodies(&played)
        .iter()
        .map(|body| {
            body["messages"]
                .to_string()
                .contains("did not match schema")
        })
        .collect();
    assert_eq!(has_mistake, [false, true, false, true, false, false, true]);
}

#[tokio::test]
async fn a_plain_answer_leaves_no_trace() {
    let (server, played) = start(
        ProviderKind::Responses,
        "generic",
        &[(200, HELLO_RESPONSES)],
    )
    .await;
    let chunks = ask(&server).await.unwrap();
    assert!(matches!(chunks.last(), Some(Chunk::End(end)) if end.stop == Stop::EndTurn));
    assert_eq!(bodies(&played).len(), 1);
    let learned = server.learned.quirks("generic", "m");
    assert_eq!(learned, Quirks::of("generic", "m"));
}

#[tokio::test]
async fn keys_are_checked_where_it_proves_something() {
    let cases = [
        ("openrouter", "/v1/key", 200, None),
        ("deepseek", "/v1/models", 200, None),
        (
            "generic",
            "/v1/models",
            401,
            Some(ErrorKind::Authentication),
        ),
        ("llamacpp", "/v1/models", 503, Some(ErrorKind::Overloaded)),
    ];
    for (preset, path, status, expected) in cases {
        let (server, played) = start(ProviderKind::Chat, preset, &[(status, "{}")]).await;
        assert_eq!(
            server.validate().await.err().map(|error| error.kind),
            expected,
            "{preset}"
        );
        assert_eq!(paths(&played), [path]);
    }
}

#[tokio::test]
async fn models_of_local_servers() {
    let list = r#"{"data":[{"id":"qwen","meta":{"n_ctx_train":32768}}]}"#;
    let props = r#"{"default_generation_settings":{"n_ctx":8192},"chat_template_caps":{"supports_tools":false},"modalities":{"vision":true}}"#;
    let (server, played) =
        start(ProviderKind::Chat, "llamacpp", &[(200, list), (200, props)]).await;
    let models = server.models().await.unwrap();
    assert_eq!(paths(&played), ["/v1/models", "/props"]);
    assert_eq!(models[0].context_window, Some(8192));
    assert_eq!(
        (models[0].supports_tools, models[0].supports_vision),
        (false, Some(true))
    );
    // What the list says is used without asking for it again.
    assert!(!server.model("qwen").supports_tools);
    let answers = [
        (404, "no"),
        (
            200,
            r#"{"data":[{"id":"q","type":"llm","max_context_length":4096,"state":"loaded","loaded_context_length":2048}]}"#,
        ),
    ];
    let (server, played) = start(ProviderKind::Chat, "lmstudio", &answers).await;
    assert_eq!(server.models().await.unwrap()[0].context_window, Some(2048));
    assert_eq!(paths(&played), ["/api/v1/models", "/api/v0/models"]);
}

/// What llama.cpp's server says of itself (recorded 2026-11-22, shortened).
const LLAMA_LIST: &str = r#"{"models":[{"name":"tiny","model":"tiny","capabilities":["completion"]}],"object":"list","data":[{"id":"tiny","object":"model","created":1763800000,"owned_by":"llamacpp","meta":{"vocab_type":2,"n_vocab":292,"n_ctx":8192,"n_ctx_train":262144,"n_embd":64,"n_params":50000,"size":3700000}}]}"#;

const LLAMA_PROPS: &str = r#"{"default_generation_settings":{"n_ctx":8192},"total_slots":2,"chat_template_caps":{"supports_tools":false,"supports_tool_calls":false},"modalities":{"vision":false,"audio":false}}"#;

#[tokio::test]
async fn a_llamacpp_that_nobody_named_is_recognised() {
    let answers = [(200, LLAMA_LIST), (200, LLAMA_PROPS), (200, HELLO)];
    let (server, played) = start(ProviderKind::Chat, "openai", &answers).await;
    assert_eq!(server.model("tiny").context_window, None);
    server.look_up("tiny").await;
    assert_eq!(paths(&played), ["/v1/models", "/props"]);
    let model = server.model("tiny");
    assert_eq!(
        (model.context_window, model.supports_tools),
        (Some(8192), false)
    );
    let (history, tools) = ([user("Hello")], tools());
    let request = Request {
        model: "tiny",
        thinking: Some(crate::message::Thinking {
            enabled: false,
            effort: None,
            budget_tokens: None,
        }),
        ..request(&history, &tools)
    };
    let chunks: Vec<_> = server.answer(request).await.unwrap().collect().await;
    let is_told = |chunk: &Result<Chunk, ProviderError>| matches!(chunk, Ok(Chunk::Notice(notice)) if notice.code == "model_no_tools");
    assert!(chunks.iter().any(is_told), "{chunks:?}");
    let sent = bodies(&played).pop().unwrap();
    assert_eq!(sent.get("tools"), None);
    assert_eq!(sent["chat_template_kwargs"]["enable_thinking"], false);
    // Asked once: what the list says is known from now on.
    server.look_up("tiny").await;
    assert_eq!(paths(&played).len(), 3);
}

/// The end of an answer of llama.cpp's `/v1/responses`, which says `completed` however it ended (2026-11-27).
fn llama_response(input: u64, output: u64) -> String {
    let usage = json!({"input_tokens": input, "output_tokens": output});
    let item = json!({"type": "message", "status": "completed", "id": "msg_1", "role": "assistant",
        "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "on and on"}]});
    let response = json!({"id": "resp_1", "object": "response", "status": "completed", "model": "tiny",
        "output": [item], "usage": usage});
    format!(
        "data: {}\n\n",
        json!({"type": "response.completed", "response": response})
    )
}

#[tokio::test]
async fn an_answer_of_llamacpp_was_cut_where_its_tokens_say_so() {
    // Ten are asked for at most, and the window has 8,192.
    for (preset, input, output, expected) in [
        ("llamacpp", 100, 9, Stop::EndTurn),
        ("llamacpp", 100, 10, Stop::MaxTokens),
        ("llamacpp", 8_187, 5, Stop::MaxTokens),
        ("generic", 100, 10, Stop::EndTurn),
    ] {
        let answer = llama_response(input, output);
        let answers = [(200, LLAMA_LIST), (200, LLAMA_PROPS), (200, &answer)];
        let answers = if preset == "llamacpp" {
            &answers[..]
        } else {
            &answers[2..]
        };
        let (server, _) = start(ProviderKind::Responses, preset, answers).await;
        if preset == "llamacpp" {
            server.look_up("tiny").await;
        }
        let history = [user("Go on.")];
        let request = Request {
            model: "tiny",
            max_tokens: Some(10),
            ..request(&history, &[])
        };
        let chunks: Vec<_> = server.answer(request).await.unwrap().collect().await;
        match chunks.last() {
            Some(Ok(Chunk::End(end))) => {
                assert_eq!(end.stop, expected, "{preset} {input} {output}");
            }
            other => panic!("{other:?} is no end"),
        }
    }
}

#[tokio::test]
async fn a_list_of_somebody_else_changes_nothing() {
    let list = r#"{"data":[{"id":"m","owned_by":"organization"}]}"#;
    let (server, played) = start(ProviderKind::Chat, "openai", &[(200, list)]).await;
    server.look_up("m").await;
    assert_eq!(paths(&played), ["/v1/models"]);
    assert_eq!(server.vendor(), "generic");
}

/// Its answer to what does not fit, the same on each of its APIs (2026-11-27).
const LLAMA_OVERFLOW: &str = r#"{"error":{"code":400,"message":"request (6376 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":6376,"n_ctx":4096}}"#;

#[tokio::test]
async fn an_overflow_at_a_server_of_ones_own_says_how_to_widen_it() {
    let overflow = r#"{"error":{"message":"this model's maximum context length is 4096 tokens","type":"invalid_request_error"}}"#;
    for (preset, overflow, advice) in [
        ("llamacpp", overflow, Some("llama-server -c")),
        ("generic", LLAMA_OVERFLOW, Some("llama-server -c")),
        ("vllm", LLAMA_OVERFLOW, Some("--max-model-len")),
        ("generic", overflow, None),
    ] {
        let (server, _) = start(ProviderKind::Chat, preset, &[(400, overflow)]).await;
        let error = ask(&server).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::ContextLength);
        let named = error.window.map(std::num::NonZeroU32::get);
        assert_eq!(named, (overflow == LLAMA_OVERFLOW).then_some(4096));
        match advice {
            Some(words) => assert!(error.widens.unwrap().advice().contains(words)),
            None => assert_eq!(error.widens, None),
        }
    }
}

#[tokio::test]
async fn an_image_that_was_left_out_is_reported_once() {
    let refusal = r#"{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}"#;
    let answers = [(500, refusal), (200, HELLO), (200, HELLO)];
    let (server, _) = start(ProviderKind::Chat, "llamacpp", &answers).await;
    let history = [Message::User(vec![crate::provider::testing::image()])];
    for expected in [&["images_left_out"][..], &[]] {
        let chunks = server.answer(request(&history, &[])).await.unwrap();
        let codes: Vec<String> = chunks
            .filter_map(|chunk| async move {
                match chunk {
                    Ok(Chunk::Notice(notice)) => Some(notice.code),
                    _ => None,
                }
            })
            .collect()
            .await;
        assert_eq!(codes, expected);
    }
}

#[tokio::test]
async fn chat_completions_are_not_asked_for_a_compaction() {
    for (kind, expected) in [
        (ProviderKind::Chat, NativeCompaction::Off),
        (ProviderKind::Responses, NativeCompaction::Openai),
    ] {
        let (server, played) = start(kind, "openai", &[(200, HELLO_RESPONSES)]).await;
        assert_eq!(server.native_compaction(), expected);
        let history = [user("Hello")];
        let request = Request {
            compact: Some(""),
            ..request(&history, &[])
        };
        let is_asked = server.answer(request).await.is_ok();
        assert_eq!(is_asked, expected == NativeCompaction::Openai);
        assert_eq!(played.asked.lock().unwrap().len(), usize::from(is_asked));
    }
}
