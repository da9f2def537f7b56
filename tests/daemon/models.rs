//! What `model:list` tells of models, from each sort of server, and what checking a key asks.

use serde_json::{Map, Value, json};

use crate::support::provider::Pause;
use crate::support::server::{Answer, Server};
use crate::support::wire::{Block, Wire};
use crate::support::{Client, Daemon, Provider};

const KEY: &str = "a/key+of=nobody-0123456789";

/// A sort of server: its name, its kind, the pages it has.
struct Sort {
    name: &'static str,
    kind: Value,
    pages: Vec<(&'static str, Value)>,
}

fn sorts() -> Vec<Sort> {
    let sort = |name, kind, pages| Sort { name, kind, pages };
    vec![
        sort(
            "anthropic",
            json!({"kind": "anthropic"}),
            vec![(
                "/v1/models",
                json!({"has_more": false, "data": [
            {"id": "claude-new", "display_name": "New", "max_input_tokens": 500_000, "max_tokens": 64_000,
                "capabilities": {"image_input": {"supported": true}, "thinking": {"supported": true,
                    "types": {"adaptive": {"supported": true}}}}},
            {"id": "claude-opus-5-5"}]}),
            )],
        ),
        sort(
            "openai",
            json!({"kind": "openai"}),
            vec![(
                "/v1/models",
                json!({"object": "list", "data": [
            {"id": "gpt-5.6-terra", "object": "model", "created": 1, "owned_by": "openai"},
            {"id": "text-embedding-3-small", "object": "model"}]}),
            )],
        ),
        sort(
            "openrouter",
            json!({"kind": "openrouter"}),
            vec![
                (
                    "/models",
                    json!({"data": [{"id": "some/model", "name": "Some Model", "context_length": 200_000,
                "top_provider": {"context_length": 100_000, "max_completion_tokens": 8000},
                "architecture": {"input_modalities": ["text", "image"]},
                "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"},
                "supported_parameters": ["tools", "reasoning", "temperature"]},
                {"id": "plain/model", "supported_parameters": ["temperature"], "pricing": {"prompt": "-1", "completion": "-1"}}]}),
                ),
                ("/key", json!({"data": {"label": "x"}})),
            ],
        ),
        sort(
            "mistral",
            json!({"kind": "mistral"}),
            vec![(
                "/models",
                json!({"data": [{"id": "m-1", "max_context_length": 131_072,
            "capabilities": {"completion_chat": true, "function_calling": false, "vision": true}},
            {"id": "m-embed", "capabilities": {"completion_chat": false}}]}),
            )],
        ),
        sort(
            "groq",
            json!({"kind": "groq"}),
            vec![(
                "/models",
                json!({"data": [{"id": "llama", "active": true,
            "context_window": 131_072, "max_completion_tokens": 32_768}, {"id": "gone", "active": false}]}),
            )],
        ),
        sort(
            "vllm",
            json!({"kind": "vllm"}),
            vec![(
                "/models",
                json!({"data": [{"id": "qwen", "max_model_len": 40_960}]}),
            )],
        ),
        sort(
            "llamacpp",
            json!({"kind": "llamacpp"}),
            vec![
                (
                    "/models",
                    json!({"data": [{"id": "local.gguf", "meta": {"n_ctx_train": 131_072}}]}),
                ),
                (
                    "/props",
                    json!({"default_generation_settings": {"n_ctx": 8192}, "modalities": {"vision": true},
                "chat_template_caps": {"supports_tools": false}}),
                ),
            ],
        ),
        sort(
            "lmstudio",
            json!({"kind": "lmstudio"}),
            vec![
                (
                    "/api/v1/models",
                    json!({"models": [
            {"type": "llm", "key": "local", "display_name": "Local", "max_context_length": 131_072,
                "loaded_instances": [{"config": {"context_length": 16_384}}],
                "capabilities": {"vision": false, "trained_for_tool_use": true}},
            {"type": "embedding", "key": "embed"}]}),
                ),
                ("/v1/models", json!({"data": []})),
            ],
        ),
        sort(
            "ollama",
            json!({"kind": "ollama"}),
            vec![
                ("/api/version", json!({"version": "1"})),
                (
                    "/api/tags",
                    json!({"models": [{"name": "qwen3:latest", "model": "qwen3:latest"}]}),
                ),
            ],
        ),
    ]
}

/// What is listed of each model, in the order of [`sorts`].
fn expected() -> Value {
    json!([
        {"id": "claude-new", "provider": "anthropic", "displayName": "New", "contextWindow": 500_000, "maxOutputTokens": 64_000,
            "supportsTools": true, "supportsThinking": true, "supportsVision": true},
        {"id": "claude-opus-5-5", "provider": "anthropic", "displayName": "Claude Opus 5.5", "contextWindow": 1_000_000,
            "maxOutputTokens": 128_000, "supportsTools": true, "supportsThinking": true, "supportsVision": true,
            "pricing": {"input": 4.0, "output": 20.0, "cacheRead": 0.2, "cacheWrite": 5.0, "cacheWrite1h": 8.0}},
        {"id": "gpt-5.6-terra", "provider": "openai", "displayName": "gpt-5.6-terra", "supportsTools": true},
        {"id": "some/model", "provider": "openrouter", "displayName": "Some Model", "contextWindow": 100_000, "maxOutputTokens": 8000,
            "supportsTools": true, "supportsThinking": true, "supportsVision": true,
            "pricing": {"input": 3.0, "output": 15.0, "cacheRead": 0.3}},
        {"id": "plain/model", "provider": "openrouter", "displayName": "plain/model", "supportsTools": false, "supportsThinking": false},
        {"id": "m-1", "provider": "mistral", "displayName": "m-1", "contextWindow": 131_072, "supportsTools": false, "supportsVision": true},
        {"id": "llama", "provider": "groq", "displayName": "llama", "contextWindow": 131_072, "maxOutputTokens": 32_768, "supportsTools": true},
        {"id": "qwen", "provider": "vllm", "displayName": "qwen", "contextWindow": 40_960, "supportsTools": true},
        {"id": "local.gguf", "provider": "llamacpp", "displayName": "local.gguf", "contextWindow": 8192, "supportsTools": false, "supportsVision": true},
        {"id": "local", "provider": "lmstudio", "displayName": "Local", "contextWindow": 16_384, "supportsTools": true, "supportsVision": false},
        {"id": "qwen3:latest", "provider": "ollama", "displayName": "qwen3:latest", "contextWindow": 32_768, "supportsTools": true,
            "supportsThinking": true, "supportsVision": false, "pricing": {"input": 0.0, "output": 0.0}},
    ])
}

/// A daemon with all sorts of servers, whose pages have this status.
async fn start(status: u16) -> (Daemon, Client, Server) {
    let server = Server::start().await;
    let mut instances = Map::new();
    for sort in sorts() {
        let mut settings = sort.kind.clone();
        settings["base_url"] = json!(server.case(sort.name, Wire::Chat, Vec::new()));
        settings["api_key"] = json!(KEY);
        for (path, body) in &sort.pages {
            let refused = json!({"error": {"message": format!("{KEY} is no key"), "type": "authentication_error"}});
            server.page(
                sort.name,
                path,
                status,
                if status == 200 { body } else { &refused },
            );
        }
        instances.insert(sort.name.to_owned(), settings);
    }
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"providers": instances})).await;
    let client = daemon.connect().await;
    (daemon, client, server)
}

#[tokio::test]
async fn each_server_tells_what_its_models_can_do() {
    let (_daemon, mut client, _server) = start(200).await;
    let mut listed = Vec::new();
    for sort in sorts() {
        let answer = client
            .ask(json!({"type": "model:list", "payload": {"provider": sort.name}}))
            .await;
        let models = answer["payload"]["models"].as_array();
        listed.extend(models.unwrap_or_else(|| panic!("{answer}")).clone());
    }
    for model in listed
        .iter_mut()
        .filter_map(|model| model.get_mut("pricing"))
    {
        for price in model.as_object_mut().unwrap().values_mut() {
            *price = json!((price.as_f64().unwrap() * 1e6).round() / 1e6);
        }
    }
    assert_eq!(Value::Array(listed), expected());
}

#[tokio::test]
async fn a_key_is_checked_without_cost() {
    let (_daemon, mut client, server) = start(200).await;
    for sort in sorts() {
        let answer = validate(&mut client, sort.name).await;
        assert_eq!(answer, json!({"provider": sort.name, "ok": true}));
        let asked = server.asked(sort.name);
        let expected: &[&str] = match sort.name {
            "anthropic" => &["GET /v1/models?limit=1"],
            "openrouter" => &["GET /v1/key"],
            "ollama" => &["GET /api/version", "GET /api/tags"],
            _ => &["GET /v1/models"],
        };
        assert_eq!(asked, expected, "{}", sort.name);
        assert_eq!(server.requests(sort.name).len(), 0, "{}", sort.name);
    }
}

#[tokio::test]
async fn a_key_that_is_refused_is_reported_and_not_shown() {
    let (_daemon, mut client, _server) = start(401).await;
    for sort in sorts() {
        let answer = validate(&mut client, sort.name).await;
        assert_eq!(answer["ok"], false, "{answer}");
        assert_eq!(answer["code"], "provider_auth", "{answer}");
        let listed = client
            .ask(json!({"type": "model:list", "payload": {"provider": sort.name}}))
            .await;
        assert_eq!(listed["type"], "session:error", "{listed}");
        assert_eq!(listed["payload"]["code"], "provider_auth", "{listed}");
    }
    let shown = client
        .seen
        .iter()
        .find(|frame| frame.to_string().contains(KEY));
    assert_eq!(shown, None);
}

#[tokio::test]
async fn no_secret_of_the_daemon_is_in_what_a_provider_says_in_the_place_of_a_list() {
    let server = Server::start().await;
    let mut instance = Wire::Chat.settings(&server.case("mine", Wire::Chat, Vec::new()));
    instance["api_key"] = json!(KEY);
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"providers": {"mine": instance}})).await;
    let message = format!("not with {}", daemon.token);
    let refused = json!({"error": {"message": message, "type": "authentication_error"}});
    server.page("mine", "/models", 401, &refused);
    let mut client = daemon.connect().await;
    let one = client
        .ask(json!({"type": "model:list", "payload": {"provider": "mine"}}))
        .await;
    client.ask(json!({"type": "model:list"})).await;
    let all = client.all("session:notice");
    for problem in [&one["payload"], &all[0]] {
        let message = problem["message"].as_str().unwrap();
        assert!(message.contains("not with [redacted]"), "{message}");
    }
}

#[tokio::test]
async fn a_list_that_cannot_be_had_says_why_as_a_validation_does() {
    let provider = Provider::start().await;
    // Bound, so that nobody else listens there.
    let gone = tokio::net::TcpSocket::new_v4().unwrap();
    gone.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/v1", gone.local_addr().unwrap());
    let instances = json!({
        "keyless": {"kind": "groq"},
        "gone": {"kind": "vllm", "base_url": url},
    });
    let daemon = Daemon::with(&provider, json!({"providers": instances})).await;
    let mut client = daemon.connect().await;
    for (name, code) in [
        ("keyless", "provider_not_configured"),
        ("gone", "provider_unavailable"),
    ] {
        let validated = validate(&mut client, name).await;
        assert_eq!(validated["code"], code, "{validated}");
        let listed = client
            .ask(json!({"type": "model:list", "provider": name}))
            .await;
        assert_eq!(listed["type"], "session:error", "{listed}");
        assert_eq!(listed["payload"]["code"], code, "{listed}");
    }
}

#[tokio::test]
async fn what_a_list_says_counts_from_then_on() {
    let (_daemon, mut client, server) = start(200).await;
    let hello = Wire::Chat.frames(&[Block::text("Hello")]);
    server.answers(
        "openrouter",
        vec![Answer::stream(Wire::Chat).frames(&hello)],
    );
    let say = json!({"type": "chat:send", "content": "hi", "provider": "openrouter", "model": "some/model"});
    client
        .ask(json!({"type": "model:list", "payload": {"provider": "openrouter"}}))
        .await;
    client.send(say).await;
    let usage = client.until("chat:usage").await;
    assert_eq!(usage["payload"]["context"]["window"], 100_000);
    // 12 tokens at $3, 4 from the cache at $0.3, 5 of output at $15.
    let end = client.until("chat:stream-end").await;
    // $0.0001122, rounded up to the millionth.
    assert_eq!(end["payload"]["costUsd"], 0.000_113);
}

#[tokio::test]
async fn what_the_table_does_not_know_is_looked_up_once_beside_the_first_turn() {
    let (_daemon, mut client, server) = start(200).await;
    let hello = Wire::Chat.frames(&[Block::text("Hello")]);
    for (name, model, window) in [
        ("openrouter", "some/model", 100_000),
        ("vllm", "qwen", 40_960),
        ("llamacpp", "local.gguf", 8192),
        ("lmstudio", "local", 16_384),
    ] {
        server.answers(name, vec![Answer::stream(Wire::Chat).frames(&hello)]);
        // The first turn does not wait for it, so nobody knows after which it is there.
        let usage = loop {
            let say =
                json!({"type": "chat:send", "content": "hi", "provider": name, "model": model});
            client.send(say).await;
            let usage = client.until("chat:usage").await;
            client.until("chat:stream-end").await;
            if usage["payload"]["context"].get("window").is_some() {
                break usage;
            }
        };
        assert_eq!(usage["payload"]["context"]["window"], window, "{name}");
        let lists = |asked: &String| asked.contains("models");
        let asked = server.asked(name);
        assert_eq!(asked.iter().filter(|it| lists(it)).count(), 1, "{asked:?}");
    }
}

#[tokio::test]
async fn the_default_provider_named_in_a_send_keeps_the_default_model() {
    let server = Server::start().await;
    let hello = Wire::Chat.frames(&[Block::text("Hello")]);
    let answer = Answer::stream(Wire::Chat).frames(&hello);
    let mut mine = Wire::Chat.settings(&server.case("mine", Wire::Chat, vec![answer]));
    mine["api_key"] = json!(KEY);
    mine["model"] = json!("of-the-instance");
    let more = json!({"providers": {"mine": mine},
        "chat": {"provider": "mine", "model": "of-the-chat"}});
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    for named in [json!({}), json!({"provider": "mine"})] {
        let mut say = json!({"type": "chat:send", "content": "hi"});
        for (key, value) in named.as_object().unwrap() {
            say[key] = value.clone();
        }
        client.send(say).await;
        client.until("chat:stream-end").await;
    }
    let asked = server.requests("mine");
    let models: Vec<&Value> = asked.iter().map(|request| &request["model"]).collect();
    assert_eq!(models, ["of-the-chat", "of-the-chat"]);
}

/// A daemon whose provider is asked for a model first, and is slow to name one.
async fn slow_to_name_one() -> (Daemon, Client, Provider, Pause) {
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"providers": {"test": {"model": ""}}})).await;
    let client = daemon.connect().await;
    let pause = provider.pause_models();
    (daemon, client, provider, pause)
}

#[tokio::test]
async fn a_cancel_while_a_model_is_looked_for_loses_nothing_that_was_said() {
    let (_daemon, mut client, _provider, mut pause) = slow_to_name_one().await;
    let earlier = json!([{"role": "user", "content": "earlier"}]);
    client
        .send(json!({"type": "chat:send", "content": "first", "history": earlier}))
        .await;
    pause.reached().await;
    let steer = json!({"type": "chat:send", "content": "second", "whenBusy": "steer"});
    let steered = client.ask(steer).await;
    assert_eq!(steered["payload"]["state"], "steered", "{steered}");
    client.send(json!({"type": "chat:cancel"})).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "cancelled");
    assert_eq!(client.all("chat:stream-start").len(), 1);
    let history = client.ask(json!({"type": "chat:history"})).await;
    let said: Vec<&Value> = history["payload"]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["content"])
        .collect();
    assert_eq!(said, ["earlier", "first", "second"]);
}

#[tokio::test]
async fn the_limit_of_an_exchange_counts_while_a_model_is_looked_for() {
    let (_daemon, mut client, _provider, _pause) = slow_to_name_one().await;
    client
        .send(json!({"type": "chat:send", "content": "go", "limits": {"timeoutMs": 200}}))
        .await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "timeout");
    assert_eq!(client.all("chat:error")[0]["code"], "exchange_timeout");
    assert_eq!(client.all("chat:stream-start").len(), 1);
}

async fn validate(client: &mut Client, provider: &str) -> Value {
    let answer = client
        .ask(json!({"type": "provider:validate", "payload": {"provider": provider}}))
        .await;
    assert_eq!(answer["type"], "provider:validate-result", "{answer}");
    answer["payload"].clone()
}
