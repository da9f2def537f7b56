use serde_json::{Map, json};

use super::*;
use crate::message::{
    DangerLevel, NativeReply, Part, Reply, Thinking, ToolCall, ToolCategory, ToolId, ToolResult,
    ToolSpec,
};
use crate::provider::anthropic::decode::{PREFIX_ITEM, WIRE};
use crate::provider::testing::wires;

mod documents;
mod replies;

const MODEL: &str = "claude-opus-5-5";

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        input_schema: json!({"type": "object", "properties": {"x": {"type": "string"}}}).into(),
        category: ToolCategory::File,
        danger_level: DangerLevel::Safe,
        origin: "core".to_owned(),
    }
}

fn user(text: &str) -> Message {
    Message::User(vec![Part::text(text)])
}

fn image(media_type: &str) -> Part {
    Part::Image {
        media_type: media_type.to_owned(),
        data: "AAAA".to_owned(),
    }
}

fn call(id: &str, provider_call_id: Option<&str>, name: &str) -> ToolCall {
    let mut input = Map::new();
    input.insert("x".to_owned(), Value::from(id));
    ToolCall {
        id: ToolId::new(id),
        provider_call_id: provider_call_id.map(str::to_owned),
        name: name.to_owned(),
        input,
    }
}

fn result(id: &str, content: Vec<Part>, is_error: bool) -> Message {
    Message::ToolResult(ToolResult {
        id: ToolId::new(id),
        name: "any".to_owned(),
        content,
        is_error,
    })
}

fn native(model: &str, items: Value) -> Option<NativeReply> {
    Some(NativeReply {
        wire: WIRE.to_owned(),
        provider: "anthropic".to_owned(),
        model: model.to_owned(),
        items,
    })
}

/// A reply of thinking and two calls, as `model` made it behind `prefix`.
fn thoughtful(model: &str, prefix: &str) -> Message {
    Message::Reply(Reply {
        text: "Let me see.".to_owned(),
        thinking: "hm".to_owned(),
        calls: vec![
            call("t1", Some("toolu_a"), "bash"),
            call("t2", Some("toolu_b"), "bash"),
        ],
        native: native(
            model,
            json!([
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "b3BhcXVl"},
                {"type": "text", "text": "Let me see."},
                {"type": "text", "text": ""},
                {"type": "tool_use", "id": "toolu_a", "name": "bash", "input": {"x": "t1"}, "caller": {"type": "direct"}},
                {"type": "tool_use", "id": "toolu_b", "name": "bash", "input": {"x": "t2"}, "caller": {"type": "direct"}},
                {"type": PREFIX_ITEM, "sha256": prefix},
            ]),
        ),
    })
}

fn results() -> [Message; 2] {
    [
        result("t1", vec![Part::text("one")], false),
        result("t2", vec![Part::text("two")], true),
    ]
}

struct Case {
    model: &'static str,
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    tool_choice: ToolChoice,
    thinking: Option<Thinking>,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    no_sampling: bool,
    amends: Amends,
}

impl Case {
    fn new(messages: Vec<Message>) -> Self {
        Self {
            model: MODEL,
            messages,
            tools: vec![tool("bash"), tool("file_read")],
            tool_choice: ToolChoice::Auto,
            thinking: None,
            temperature: None,
            max_tokens: None,
            no_sampling: false,
            amends: Amends::default(),
        }
    }

    fn prepare(&self) -> Prepared {
        let request = Request {
            front: &[],
            model: self.model,
            system: "Be brief.",
            messages: &self.messages,
            tools: &self.tools,
            tool_choice: self.tool_choice,
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            thinking: self.thinking,
            cache_key: "c",
            output: None,
            compact: None,
        };
        let setting = Setting {
            provider: "anthropic",
            vendor: true,
            no_sampling: self.no_sampling,
            capabilities: &Capabilities::by_name(self.model),
            amends: self.amends,
        };
        let prepared = prepare(&request, setting);
        let again = prepare(&request, setting);
        assert_eq!(
            serde_json::to_string(&prepared.body).unwrap(),
            serde_json::to_string(&again.body).unwrap(),
            "the same input gives the same bytes"
        );
        wires::anthropic(&prepared.body.whole());
        prepared
    }

    fn body(&self) -> Value {
        self.prepare().body.whole()
    }

    /// Returns the messages as `role: type type …`.
    fn shape(&self) -> Vec<String> {
        let body = self.body();
        let shape = |message: &Value| {
            let blocks = message["content"].as_array().unwrap();
            let kinds: Vec<_> = blocks
                .iter()
                .map(|it| it["type"].as_str().unwrap())
                .collect();
            format!("{}: {}", message["role"].as_str().unwrap(), kinds.join(" "))
        };
        body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(shape)
            .collect()
    }
}

#[test]
fn golden_text() {
    insta::assert_json_snapshot!(Case::new(vec![user("Hello")]).body());
}

#[test]
fn golden_thinking_and_two_calls() {
    let first = Case::new(vec![user("Look around")]);
    let prefix = first.prepare().prefix;
    let mut messages = first.messages;
    messages.push(thoughtful(MODEL, &prefix));
    messages.extend(results());
    insta::assert_json_snapshot!(Case::new(messages).body());
}

#[test]
fn golden_images_and_errors() {
    let mut case = Case::new(vec![
        Message::User(vec![image("image/png"), Part::text(" \n")]),
        Message::Reply(Reply {
            calls: vec![
                call("t1", None, "a b"),
                call("t2", None, "bash"),
                call("t3", None, "bash"),
            ],
            ..Reply::default()
        }),
        result("t1", vec![Part::text("see"), image("image/jpeg")], false),
        result("t2", vec![image("image/png"), Part::text("")], true),
        result("t3", vec![Part::text("")], false),
        user("And now?"),
    ]);
    case.tools.push(tool("a b"));
    case.model = "claude-sonnet-4-5";
    case.temperature = Some(1.5);
    case.max_tokens = Some(2_000);
    case.thinking = Some(Thinking {
        enabled: true,
        budget_tokens: Some(1_500),
        effort: None,
    });
    insta::assert_json_snapshot!(case.body());
}

#[test]
fn tools_stay_where_they_may_not_be_called() {
    let mut case = Case::new(vec![user("a")]);
    case.tool_choice = ToolChoice::None;
    let body = case.body();
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    assert_eq!(body["tools"].as_array().unwrap().len(), 2);

    case.tools.clear();
    assert_eq!(case.body().get("tools"), None);
    assert_eq!(case.body().get("tool_choice"), None);

    case.tool_choice = ToolChoice::Auto;
    case.messages.push(thoughtful(MODEL, ""));
    case.messages.extend(results());
    let body = case.body();
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    assert_eq!(body["tools"][0]["name"], "bash");
}

#[test]
fn a_temperature_is_sent_where_it_is_allowed() {
    let thinking = Some(Thinking {
        enabled: true,
        budget_tokens: None,
        effort: None,
    });
    // Model, API version without sampling, thinking; what is sent.
    let cases = [
        ("claude-sonnet-4-5", false, None, Some(json!(0.7))),
        ("claude-sonnet-4-5", true, None, None),
        ("claude-sonnet-4-5", false, thinking, None),
        ("claude-opus-4-7", false, None, None),
        (MODEL, false, None, None),
        ("deepseek-v4-pro", false, None, Some(json!(0.7))),
    ];
    for (model, no_sampling, thinking, expected) in cases {
        let mut case = Case::new(vec![user("a")]);
        (case.model, case.no_sampling, case.thinking) = (model, no_sampling, thinking);
        case.temperature = Some(0.7);
        assert_eq!(case.body().get("temperature"), expected.as_ref(), "{model}");
    }
}

#[test]
fn most_tokens() {
    let cases = [
        (None, None, 128_000),
        (Some(500), None, 500),
        (Some(500_000), None, 128_000),
        (Some(0), None, 1),
        (None, Some(3_000), 3_000),
        (Some(500), Some(3_000), 500),
    ];
    for (asked, fits, expected) in cases {
        let mut case = Case::new(vec![user("a")]);
        case.max_tokens = asked;
        case.amends.max_tokens = fits;
        assert_eq!(case.body()["max_tokens"], expected, "{asked:?} {fits:?}");
    }
}

#[test]
fn a_loop_begun_without_thinking_goes_on_without_a_budget() {
    let mut case = Case::new(vec![
        user("a"),
        Message::Reply(Reply {
            calls: vec![call("t1", None, "bash")],
            ..Reply::default()
        }),
        result("t1", vec![Part::text("x")], false),
    ]);
    case.model = "claude-sonnet-4-5";
    case.thinking = Some(Thinking {
        enabled: true,
        budget_tokens: None,
        effort: None,
    });
    assert_eq!(case.body()["thinking"], json!({"type": "disabled"}));
    case.messages.push(Message::Reply(Reply {
        text: "b".to_owned(),
        ..Reply::default()
    }));
    case.messages.push(user("c"));
    assert_eq!(case.body()["thinking"]["type"], "enabled");
}

#[test]
fn a_bad_schema_costs_its_tool_the_schema_only() {
    let mut case = Case::new(vec![user("a")]);
    case.tools[0].input_schema = json!({"type": "string"}).into();
    case.tools[0].description = " ".to_owned();
    let prepared = case.prepare();
    assert_eq!(
        prepared.body.whole()["tools"][0],
        json!({"name": "bash", "input_schema": {"type": "object", "properties": {}}})
    );
    assert_eq!(prepared.notices.len(), 1);
}
