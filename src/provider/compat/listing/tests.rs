use serde_json::{Value, json};

use super::*;

fn one(vendor: &str, entry: Value) -> Model {
    let mut models = models(&Value::Array(vec![entry]), None, "p", vendor);
    models.pop().unwrap()
}

#[test]
fn what_each_vendor_says_of_a_model() {
    let openrouter = one(
        "generic",
        json!({
            "id": "x/y", "name": "X: Y", "context_length": 200000,
            "top_provider": {"context_length": 128000, "max_completion_tokens": 8192},
            "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"},
            "supported_parameters": ["tools", "reasoning"],
            "architecture": {"input_modalities": ["text", "image"]},
        }),
    );
    let expected = Model {
        id: "x/y".to_owned(),
        provider: "p".to_owned(),
        display_name: "X: Y".to_owned(),
        context_window: Some(128_000),
        max_output_tokens: Some(8192),
        supports_tools: true,
        supports_thinking: Some(true),
        supports_vision: Some(true),
        pricing: openrouter.pricing,
    };
    assert_eq!(openrouter, expected);
    let pricing = openrouter.pricing.unwrap().rates;
    let near = |price: f64, expected: f64| (price - expected).abs() < 1e-9;
    assert!(near(pricing.input, 3.0) && near(pricing.output, 15.0));
    assert!(near(pricing.cache_read.unwrap(), 0.3) && pricing.cache_write.is_none());

    let no_tools = json!({"id": "x", "supported_parameters": ["temperature"], "pricing": {"prompt": "-1", "completion": "-1"}});
    assert!(!one("generic", no_tools.clone()).supports_tools);
    assert_eq!(one("generic", no_tools).pricing, None);
    let vllm = one("vllm", json!({"id": "q", "max_model_len": 40960}));
    assert_eq!(
        (vllm.context_window, vllm.supports_tools),
        (Some(40_960), true)
    );
    let groq = one(
        "generic",
        json!({"id": "q", "active": true, "context_window": 131072, "max_completion_tokens": 65536}),
    );
    assert_eq!(
        (groq.context_window, groq.max_output_tokens),
        (Some(131_072), Some(65_536))
    );
    let mistral = one(
        "generic",
        json!({"id": "q", "max_context_length": 32768,
        "capabilities": {"completion_chat": true, "function_calling": false, "vision": true}}),
    );
    assert_eq!(
        (
            mistral.context_window,
            mistral.supports_tools,
            mistral.supports_vision
        ),
        (Some(32_768), false, Some(true))
    );
}

#[test]
fn lm_studio_in_both_versions() {
    let list = json!({"models": [
        {"type": "llm", "key": "q", "display_name": "Q", "max_context_length": 131072,
         "loaded_instances": [{"id": "q", "config": {"context_length": 8192}}],
         "capabilities": {"vision": false, "trained_for_tool_use": false}},
        {"type": "embedding", "key": "nomic", "max_context_length": 2048},
    ]});
    let models = models(&list, None, "p", "lmstudio");
    assert_eq!(models.len(), 1);
    let expected = ("q", "Q", Some(8192), true, Some(false));
    let model = &models[0];
    let read = (
        model.id.as_str(),
        model.display_name.as_str(),
        model.context_window,
        model.supports_tools,
        model.supports_vision,
    );
    assert_eq!(
        read, expected,
        "a model that was not trained for tools gets them in words"
    );
    let older = one(
        "lmstudio",
        json!({"id": "q", "type": "vlm", "capabilities": [], "max_context_length": 4096}),
    );
    assert_eq!(
        (older.supports_tools, older.supports_vision),
        (true, Some(true))
    );
}

#[test]
fn what_is_no_model_to_talk_to_is_left_out() {
    let ids = [
        "gpt-5.6-terra",
        "text-embedding-3-large",
        "whisper-1",
        "gpt-4o-realtime-preview",
        "models/gemini-x",
        "",
    ];
    let mut entries: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    entries.extend([
        json!({"id": "off", "active": false}),
        json!({"id": "fim", "capabilities": {"completion_chat": false}}),
        json!({"no": "id"}),
        json!("text"),
    ]);
    let kept: Vec<String> = models(&json!(entries), None, "p", "generic")
        .into_iter()
        .map(|model| model.id)
        .collect();
    assert_eq!(kept, ["gpt-5.6-terra", "gemini-x"]);
    for broken in [json!({}), json!(null), json!({"data": "x"})] {
        assert_eq!(models(&broken, None, "p", "generic"), []);
    }
}
