use serde_json::{Map, json};

use super::*;
use crate::message::{DangerLevel, NativeReply, ToolCategory, ToolId, ToolSpec};
use crate::provider::request::IMAGE_OMITTED;
use crate::provider::testing::{documents, documents_as_text};

const KNOWN: Facts = Facts {
    context_length: Some(40_960),
    completion: Some(true),
    tools: Some(true),
    thinking: Some(true),
    vision: Some(true),
    thinks_in_levels: false,
};

fn target(facts: Facts) -> Target<'static> {
    Target {
        provider: "local",
        num_ctx: None,
        facts,
    }
}

/// The body of a request that nothing is to be said about.
fn built(facts: Facts, request: &Request<'_>) -> Value {
    let (body, notices) = target(facts).body(request);
    assert_eq!(notices, []);
    body.whole()
}

fn request<'a>(messages: &'a [Message], tools: &'a [ToolSpec]) -> Request<'a> {
    Request {
        front: &[],
        model: "qwen3",
        system: "Be brief.",
        messages,
        tools,
        tool_choice: ToolChoice::Auto,
        max_tokens: None,
        temperature: None,
        thinking: None,
        cache_key: "c",
        output: None,
        compact: None,
    }
}

fn weather() -> ToolSpec {
    ToolSpec {
        name: "weather".to_owned(),
        description: "Tells the weather.".to_owned(),
        input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}).into(),
        category: ToolCategory::Search,
        danger_level: DangerLevel::Safe,
        origin: "core".to_owned(),
    }
}

fn user(text: &str) -> Message {
    Message::User(vec![Part::text(text)])
}

fn image() -> Part {
    Part::Image {
        media_type: "image/png".to_owned(),
        data: "aGk=".to_owned(),
    }
}

fn call(id: &str, provider_call_id: Option<&str>, city: &str) -> ToolCall {
    let mut input = Map::new();
    input.insert("city".to_owned(), json!(city));
    ToolCall {
        id: ToolId::new(id),
        provider_call_id: provider_call_id.map(str::to_owned),
        name: "weather".to_owned(),
        input,
    }
}

fn result(id: &str, text: &str, is_error: bool) -> Message {
    Message::ToolResult(ToolResult {
        id: ToolId::new(id),
        name: "weather".to_owned(),
        content: vec![Part::text(text)],
        is_error,
    })
}

/// A reply with thinking and two calls as this server and model gave it.
fn reply(provider: &str, model: &str) -> Reply {
    Reply {
        text: "Looking.".to_owned(),
        thinking: "Two cities.".to_owned(),
        calls: vec![call("t1", Some("call_a"), "Rome"), call("t2", None, "Oslo")],
        native: Some(NativeReply {
            wire: WIRE.to_owned(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            items: json!([{"role": "assistant", "content": "Looking.", "thinking": "Two cities.", "tool_calls": [
                {"id": "call_a", "function": {"index": 0, "name": "weather", "arguments": {"city": "Rome"}}, "new": 1},
                {"function": {"index": 0, "name": "weather", "arguments": {"city": "Oslo"}}},
            ]}]),
        }),
    }
}

fn loop_of(reply: Reply) -> Vec<Message> {
    vec![
        user("Weather in Rome and Oslo?"),
        Message::Reply(reply),
        result("t1", "sunny", false),
        result("t2", "no such city", true),
    ]
}

#[test]
fn text_with_every_setting() {
    let messages = [user("Hello")];
    let request = Request {
        max_tokens: Some(500),
        temperature: Some(0.5),
        ..request(&messages, &[])
    };
    insta::assert_json_snapshot!(built(KNOWN, &request));
}

#[test]
fn thinking_two_calls_and_their_results_go_back_as_they_came() {
    let messages = loop_of(reply("local", "qwen3"));
    let tools = [weather()];
    insta::assert_json_snapshot!(built(KNOWN, &request(&messages, &tools)));
}

#[test]
fn a_reply_of_another_model_is_rebuilt_without_thinking() {
    let tools = [weather()];
    let rebuilt_from = |reply| built(KNOWN, &request(&loop_of(reply), &tools));
    let rebuilt = rebuilt_from(reply("local", "llama4"));
    insta::assert_json_snapshot!(rebuilt);
    let mut changed = reply("local", "qwen3");
    changed.calls.pop();
    let mut messages = loop_of(changed);
    messages.pop();
    let changed = built(KNOWN, &request(&messages, &tools));
    assert_eq!(
        changed["messages"][2]["tool_calls"],
        json!([rebuilt["messages"][2]["tool_calls"][0]])
    );

    assert_eq!(rebuilt_from(reply("other", "qwen3")), rebuilt);
    let mut foreign = reply("local", "qwen3");
    if let Some(native) = &mut foreign.native {
        native.wire = "anthropic-messages".to_owned();
    }
    assert_eq!(rebuilt_from(foreign), rebuilt);
    let mut without = reply("local", "qwen3");
    without.native = None;
    assert_eq!(rebuilt_from(without), rebuilt);
}

#[test]
fn documents_go_as_text() {
    let (body, notices) = target(KNOWN).body(&request(&[documents()], &[]));
    let body = body.whole();
    let text = documents_as_text().join("\n");
    assert_eq!(body["messages"][1]["content"], json!(text));
    let codes: Vec<_> = notices.iter().map(|notice| notice.code.as_str()).collect();
    assert_eq!(codes, ["documents_left_out"]);
}

#[test]
fn images_of_users_and_tools_go_along_where_the_model_sees() {
    let messages = [
        Message::User(vec![Part::text("What is this?"), image(), image()]),
        Message::Reply(Reply {
            calls: vec![call("t1", None, "Rome")],
            ..Reply::default()
        }),
        Message::ToolResult(ToolResult {
            id: ToolId::new("t1"),
            name: "weather".to_owned(),
            content: vec![image(), Part::text("a map")],
            is_error: false,
        }),
    ];
    insta::assert_json_snapshot!(built(KNOWN, &request(&messages, &[])));
    let blind = Facts {
        vision: Some(false),
        ..KNOWN
    };
    let (body, notices) = target(blind).body(&request(&messages, &[]));
    let body = body.whole();
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].code, "images_left_out");
    assert!(!body.to_string().contains(r#""images""#));
    let text = format!("What is this?\n{IMAGE_OMITTED}\n{IMAGE_OMITTED}");
    assert_eq!(body["messages"][1]["content"], json!(text));
    let text = format!("{IMAGE_OMITTED}\na map");
    assert_eq!(body["messages"][3]["content"], json!(text));
}

#[test]
fn tools_are_sent_unless_the_choice_or_the_model_forbids() {
    let tools = [weather()];
    let messages = [user("Hello")];
    // (what the model can, the choice, whether tools go out)
    let cases = [
        (Some(true), ToolChoice::Auto, true),
        (None, ToolChoice::Auto, true),
        (Some(false), ToolChoice::Auto, false),
        (Some(true), ToolChoice::None, false),
    ];
    for (tools_known, tool_choice, expected) in cases {
        let facts = Facts {
            tools: tools_known,
            ..KNOWN
        };
        let request = Request {
            tool_choice,
            ..request(&messages, &tools)
        };
        let (body, notices) = target(facts).body(&request);
        let body = body.whole();
        let codes: Vec<&str> = notices.iter().map(|notice| notice.code.as_str()).collect();
        let expected_codes: &[&str] = if tools_known == Some(false) {
            &["model_no_tools"]
        } else {
            &[]
        };
        assert_eq!(codes, expected_codes);
        assert_eq!(body.get("tools").is_some(), expected);
        assert_eq!(target(facts).has_tools(&request), expected);
        assert_eq!(body.get("tool_choice"), None);
    }
    let body = built(KNOWN, &request(&messages, &[]));
    assert_eq!(body.get("tools"), None);
}

#[test]
fn a_schema_is_sent_in_the_words_ollama_keeps() {
    let mut bounded = weather();
    bounded.input_schema = json!({"type": "object", "additionalProperties": false,
        "properties": {"days": {"$ref": "#/$defs/days"}}, "$defs": {"days": {"type": "integer", "minimum": 1}}}).into();
    let mut broken = weather();
    broken.input_schema = json!({"type": "string"}).into();
    let messages = [user("Hello")];
    let tools = [bounded, broken];
    let (body, notices) = target(KNOWN).body(&request(&messages, &tools));
    let body = body.whole();
    let parameters = |index: usize| body["tools"][index]["function"]["parameters"].clone();
    let days = &parameters(0)["properties"]["days"];
    assert_eq!(days["type"], json!("integer"));
    assert_eq!(days.get("minimum"), None);
    assert!(
        days["description"]
            .as_str()
            .is_some_and(|text| text.contains('1'))
    );
    assert_eq!(parameters(1), json!({"type": "object", "properties": {}}));
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].code, "tool_schema_replaced");
}

#[test]
fn think_is_said_only_to_models_that_can() {
    let thinking = |enabled, effort| Thinking {
        enabled,
        budget_tokens: Some(2000),
        effort,
    };
    // (can think, levels only, asked for, sent)
    let cases = [
        (Some(true), false, None, json!(null)),
        (Some(true), false, Some(thinking(true, None)), json!(true)),
        (
            Some(true),
            false,
            Some(thinking(true, Some(Effort::High))),
            json!("high"),
        ),
        (Some(true), false, Some(thinking(false, None)), json!(false)),
        (
            Some(true),
            false,
            Some(thinking(false, Some(Effort::High))),
            json!(false),
        ),
        (Some(true), true, Some(thinking(true, None)), json!(true)),
        (
            Some(true),
            true,
            Some(thinking(true, Some(Effort::Medium))),
            json!("medium"),
        ),
        (Some(true), true, Some(thinking(false, None)), json!("low")),
        (
            Some(true),
            true,
            Some(thinking(false, Some(Effort::High))),
            json!("low"),
        ),
        (Some(false), false, Some(thinking(true, None)), json!(null)),
        (None, false, Some(thinking(true, None)), json!(null)),
    ];
    let messages = [user("Hello")];
    for (can, thinks_in_levels, asked, sent) in cases {
        let facts = Facts {
            thinking: can,
            thinks_in_levels,
            ..KNOWN
        };
        let request = Request {
            thinking: asked,
            ..request(&messages, &[])
        };
        let body = built(facts, &request);
        assert_eq!(
            body.get("think").unwrap_or(&Value::Null),
            &sent,
            "{asked:?}"
        );
    }
}

#[test]
fn the_context_is_always_said_and_overflow_is_never_silent() {
    let messages = [user("Hello")];
    for (num_ctx, context_length, expected) in [
        (None, Some(8192), 8192),
        (None, None, 32_768),
        (Some(65_536), Some(8192), 65_536),
    ] {
        let target = Target {
            num_ctx,
            ..target(Facts {
                context_length,
                ..KNOWN
            })
        };
        let (body, _) = target.body(&request(&messages, &[]));
        let body = body.whole();
        assert_eq!(body["options"]["num_ctx"], json!(expected));
        assert_eq!(body["truncate"], json!(false));
        assert_eq!(body["shift"], json!(false));
    }
}

#[test]
fn nothing_is_said_in_the_name_of_an_empty_reply_or_prompt() {
    let messages = [user("a"), Message::Reply(Reply::default()), user("b")];
    let request = Request {
        system: "",
        ..request(&messages, &[])
    };
    let body = built(KNOWN, &request);
    let expected = json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]);
    assert_eq!(body["messages"], expected);
}

#[test]
fn the_same_request_gives_the_same_bytes() {
    let messages = loop_of(reply("local", "qwen3"));
    let tools = [weather()];
    let once = built(KNOWN, &request(&messages, &tools)).to_string();
    let again = built(KNOWN, &request(&messages, &tools)).to_string();
    assert_eq!(once, again);
}

#[test]
fn the_estimate_counts_words_and_no_images_or_indentation() {
    let estimate_of = |parts: Vec<Part>| {
        let messages = [Message::User(parts)];
        let request = Request {
            system: "",
            ..request(&messages, &[])
        };
        estimate(&target(KNOWN).body(&request).0)
    };
    let words = "word ".repeat(700);
    assert_eq!(estimate_of(vec![Part::text(words.clone())]), 1000);
    let picture = Part::Image {
        media_type: "image/png".to_owned(),
        data: "A".repeat(100_000),
    };
    assert_eq!(estimate_of(vec![Part::text(words), picture]), 1000);
    let indented = format!("{}x", " ".repeat(100_000));
    assert_eq!(estimate_of(vec![Part::text(indented)]), 0);
    assert_eq!(estimate(&Body::default()), 0);
}
