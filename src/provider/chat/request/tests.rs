use serde_json::{Value, json};

use crate::config::ProviderKind;
use crate::message::{Effort, Message, Part, Thinking};
use crate::provider::chat::decode::WIRE;
use crate::provider::quirks::{Quirks, vendor};
use crate::provider::testing::{
    call, config, documents, documents_as_text, image, reply, request, result, tools, two_calls,
    user,
};
use crate::provider::{Request, ToolChoice};

fn body(request: &Request<'_>, quirks: &Quirks, provider: &str) -> Value {
    let mut notices = Vec::new();
    let body = super::body(request, quirks, provider, &mut notices);
    assert_eq!(notices, []);
    body.whole()
}

fn quirks(preset: &str) -> Quirks {
    let base = if preset == "openai" {
        "https://api.openai.com/v1"
    } else {
        "http://host/v1"
    };
    Quirks::of(vendor(&config(ProviderKind::Chat, preset, base)), "gpt-5.6")
}

fn golden(request: &Request<'_>, preset: &str) -> String {
    let first = body(request, &quirks(preset), "p");
    let again = body(request, &quirks(preset), "p");
    let text = serde_json::to_string_pretty(&first).unwrap();
    assert_eq!(text, serde_json::to_string_pretty(&again).unwrap());
    text
}

fn messages(history: &[Message], preset: &str) -> Value {
    let tools = tools();
    body(&request(history, &tools), &quirks(preset), "p")["messages"].clone()
}

/// The reply of [`two_calls`] as a server sent it.
fn native(extra: &Value) -> Value {
    let mut message = json!({"tool_calls": [
        {"id": "call_A", "type": "function", "function": {"name": "file_read", "arguments": "{ \"path\" : \"a\" }"}},
        {"id": "call_B", "type": "function", "function": {"name": "file_read", "arguments": "{\"path\":\"b\"}"}},
    ]});
    for (key, value) in extra.as_object().unwrap() {
        message[key] = value.clone();
    }
    json!([message])
}

#[test]
fn text() {
    let history = [
        user("Hello"),
        reply("Hi.", "", vec![], None),
        user("  "),
        user("And now?"),
        user("Well?"),
    ];
    insta::assert_snapshot!("text", golden(&request(&history, &[]), "generic"));
}

#[test]
fn everything_asked_for() {
    let (history, tools) = ([user("Hello")], tools());
    let request = Request {
        max_tokens: Some(100),
        temperature: Some(0.5),
        thinking: Some(Thinking {
            enabled: true,
            budget_tokens: Some(2048),
            effort: Some(Effort::High),
        }),
        tool_choice: ToolChoice::None,
        ..request(&history, &tools)
    };
    for preset in [
        "openai",
        "deepseek",
        "openrouter",
        "groq",
        "mistral",
        "xai",
        "vllm",
        "llamacpp",
        "lmstudio",
        "gemini",
        "ollama",
    ] {
        insta::assert_snapshot!(format!("asked_{preset}"), golden(&request, preset));
    }
}

#[test]
fn thinking_switched_off() {
    let cases = [
        ("generic", json!({"reasoning_effort": "none"})),
        ("mistral", json!({"reasoning_effort": "none"})),
        ("deepseek", json!({"thinking": {"type": "disabled"}})),
        ("openrouter", json!({"reasoning": {"enabled": false}})),
        (
            "vllm",
            json!({"chat_template_kwargs": {"enable_thinking": false}}),
        ),
    ];
    let history = [user("Hello")];
    for (preset, fields) in cases {
        let off = Request {
            thinking: Some(Thinking::default()),
            ..request(&history, &[])
        };
        let off = body(&off, &quirks(preset), "p");
        for (key, value) in fields.as_object().unwrap() {
            assert_eq!(&off[key], value, "{preset}");
        }
    }
}

#[test]
fn calls_go_back_as_they_came() {
    let tools = tools();
    let openrouter = json!({"reasoning": "They want both.", "reasoning_details": [
        {"type": "reasoning.text", "text": "They want both.", "signature": "s", "index": 0}]});
    let gemini = json!({"extra_content": {"google": {"thought_signature": "s"}}});
    let cases = [
        ("deepseek", json!({"reasoning_content": "They want both."})),
        ("openrouter", openrouter),
        ("vllm", json!({"reasoning_content": "They want both."})),
        ("gemini", gemini),
        ("openai", json!({})),
        (
            "mistral",
            json!({"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "They want both."}]},
            {"type": "text", "text": "Let me look."}]}),
        ),
    ];
    for (preset, extra) in cases {
        let history = two_calls(Some((WIRE, native(&extra))));
        let snapshot = golden(&request(&history, &tools), preset);
        insta::assert_snapshot!(format!("calls_{preset}"), snapshot);
    }
}

#[test]
fn replies_of_others_are_written_anew() {
    let tools = tools();
    let foreign = two_calls(Some((
        "anthropic-messages",
        json!([{"type": "thinking", "thinking": "They want both.", "signature": "s"}]),
    )));
    for preset in ["deepseek", "gemini", "mistral", "generic"] {
        let snapshot = golden(&request(&foreign, &tools), preset);
        insta::assert_snapshot!(format!("foreign_{preset}"), snapshot);
    }
    let own = two_calls(Some((WIRE, native(&json!({"reasoning_content": "x"})))));
    let elsewhere = Request {
        model: "other",
        ..request(&own, &tools)
    };
    let other_model = body(&elsewhere, &quirks("generic"), "p")["messages"].clone();
    let other_provider = body(&request(&own, &tools), &quirks("generic"), "q")["messages"].clone();
    assert_eq!(other_model, messages(&foreign, "generic"));
    assert_eq!(other_provider, messages(&foreign, "generic"));
}

#[test]
fn images_of_users_and_tools() {
    let history = [
        Message::User(vec![Part::text("What is this?"), image()]),
        reply(
            "",
            "",
            vec![call("t1", None, "x.png"), call("t2", None, "y")],
            None,
        ),
        result("t1", vec![image()], false),
        result("t2", vec![Part::text("")], false),
        reply("A dot.", "", vec![], None),
    ];
    let tools = tools();
    insta::assert_snapshot!("images", golden(&request(&history, &tools), "generic"));
    // No images there, and none are smuggled in after the tools' messages.
    insta::assert_snapshot!(
        "images_deepseek",
        golden(&request(&history, &tools), "deepseek")
    );
}

#[test]
fn documents_go_as_files_to_openai_and_as_text_to_others() {
    let history = [documents()];
    let content = |quirks: &Quirks| {
        let body = body(&request(&history, &[]), quirks, "p");
        body["messages"][1]["content"].clone()
    };
    let texts = documents_as_text();
    let pdf = |name: &str, data: &str| {
        let data = format!("data:application/pdf;base64,{data}");
        json!({"type": "file", "file": {"filename": name, "file_data": data}})
    };
    let expected = json!([
        pdf("a.pdf", "JVBERi0x"),
        pdf("scan.pdf", "JVBERi0y"),
        {"type": "text", "text": texts[2]},
        {"type": "text", "text": texts[3]},
    ]);
    assert_eq!(content(&quirks("openai")), expected);
    for vendor in [
        "generic",
        "deepseek",
        "mistral",
        "openrouter",
        "gemini",
        "ollama",
    ] {
        assert_eq!(
            content(&quirks(vendor)),
            json!(texts.join("\n\n")),
            "{vendor}"
        );
    }
}

#[test]
fn a_model_without_tools_gets_calls_in_words() {
    let tools = tools();
    let history = two_calls(None);
    let without = Quirks {
        tools: false,
        ..quirks("generic")
    };
    let body = body(&request(&history, &tools), &without, "p");
    insta::assert_snapshot!(
        "without_tools",
        serde_json::to_string_pretty(&body).unwrap()
    );
}

#[test]
fn a_user_after_a_tool_waits_for_the_assistant_where_it_must() {
    let mut history = two_calls(None);
    history.push(user("Stop."));
    let roles = |preset: &str| -> Vec<String> {
        let messages = messages(&history, preset);
        let role = |message: &Value| message["role"].as_str().unwrap().to_owned();
        messages.as_array().unwrap().iter().map(role).collect()
    };
    let plain = ["system", "user", "assistant", "tool", "tool", "user"];
    let mistral = [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ];
    assert_eq!(roles("generic"), plain);
    assert_eq!(roles("mistral"), mistral);
}

#[test]
fn ids_tell_the_calls_of_a_reply_apart() {
    let sent = json!([{"tool_calls": [
        {"id": "0", "type": "function", "function": {"name": "file_read", "arguments": "{\"path\":\"a\"}"}},
        {"id": "0", "type": "function", "function": {"name": "file_read", "arguments": "{\"path\":\"b\"}"}},
        {"type": "function", "function": {"name": "file_read", "arguments": "{\"path\":\"c\"}"}},
    ]}]);
    let history = [
        user("Go"),
        reply(
            "",
            "",
            vec![
                call("t1", Some("0"), "a"),
                call("t2", Some("0"), "b"),
                call("t3", None, "c"),
            ],
            Some((WIRE, sent)),
        ),
        result("t1", vec![Part::text("1")], false),
        result("t2", vec![Part::text("2")], false),
        result("t3", vec![Part::text("3")], false),
    ];
    let check = |preset: &str| {
        let messages = messages(&history, preset);
        let of_calls: Vec<Value> = messages[2]["tool_calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| call["id"].clone())
            .collect();
        let of_results: Vec<Value> = (3..6)
            .map(|n| messages[n]["tool_call_id"].clone())
            .collect();
        assert_eq!(of_calls, of_results);
        of_calls
    };
    assert_eq!(check("generic"), ["0", "call_t2", "call_t3"]);
    for id in check("mistral") {
        let id = id.as_str().unwrap();
        assert!(
            id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "{id}"
        );
    }
}

#[test]
fn ids_tell_the_calls_of_all_replies_apart() {
    // A client's own history, and the daemon's own ids after it.
    let turn = |id, provider_id| {
        [
            reply("", "", vec![call(id, provider_id, "a")], None),
            result(id, vec![Part::text("1")], false),
        ]
    };
    let sent = json!([{"tool_calls": [
        {"id": "0", "type": "function", "function": {"name": "file_read", "arguments": "{\"path\":\"a\"}"}},
    ]}]);
    let own = |id| {
        [
            reply(
                "",
                "",
                vec![call(id, Some("0"), "a")],
                Some((WIRE, sent.clone())),
            ),
            result(id, vec![Part::text("1")], false),
        ]
    };
    let mut history = vec![user("Go")];
    for turn in [
        turn("t7", None),
        turn("t7", Some("p")),
        own("t8"),
        own("t8"),
    ] {
        history.extend(turn);
    }
    for (preset, expected) in [
        ("generic", Some(["call_t7", "call_t7_2", "0", "call_t8"])),
        ("mistral", None),
    ] {
        let messages = messages(&history, preset);
        let ids = |of: fn(&Value) -> Option<&Value>| -> Vec<String> {
            let found = messages.as_array().unwrap().iter().filter_map(of);
            found.map(|id| id.as_str().unwrap().to_owned()).collect()
        };
        let calls = ids(|message| message.pointer("/tool_calls/0/id"));
        assert_eq!(calls, ids(|message| message.get("tool_call_id")));
        let distinct: std::collections::BTreeSet<&String> = calls.iter().collect();
        assert_eq!(distinct.len(), 4, "{preset}: {calls:?}");
        if let Some(expected) = expected {
            assert_eq!(calls, expected);
        }
    }
}

#[test]
fn tools_stay_away_where_they_cannot_be_forbidden() {
    let (history, tools) = ([user("Hello")], tools());
    let closing = Request {
        tool_choice: ToolChoice::None,
        ..request(&history, &tools)
    };
    let ollama = body(&closing, &quirks("ollama"), "p");
    assert!(ollama.get("tools").is_none() && ollama.get("tool_choice").is_none());
    let generic = body(&closing, &quirks("generic"), "p");
    assert_eq!(generic["tool_choice"], "none");
    assert_eq!(generic["tools"].as_array().unwrap().len(), 1);
}

#[test]
fn the_answer_is_a_tool_only_where_no_other_may_be_called() {
    let (history, tools) = ([user("Count.")], tools());
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let forced = json!({"type": "function", "function": {"name": "answer"}});
    // Choice, tools, and whether the server knows a choice; the tools that are sent, and the choice.
    for (tool_choice, tools, knows_choice, names, sent) in [
        (ToolChoice::Auto, &*tools, true, "file_read", None),
        (ToolChoice::Auto, &*tools, false, "file_read", None),
        (ToolChoice::Auto, &[], true, "answer", Some(&forced)),
        (ToolChoice::Auto, &[], false, "answer", None),
        (ToolChoice::None, &*tools, true, "answer", Some(&forced)),
        (ToolChoice::None, &*tools, false, "answer", None),
    ] {
        let request = Request {
            tool_choice,
            output: Some(&schema),
            ..request(&history, tools)
        };
        let quirks = Quirks {
            output: false,
            tool_choice: knows_choice,
            ..quirks("openai")
        };
        let body = body(&request, &quirks, "p");
        let offered = body["tools"].as_array().unwrap();
        let offered = offered.iter().map(|tool| &tool["function"]["name"]);
        let case = format!("{tool_choice:?} {knows_choice}: {body}");
        assert_eq!(Vec::from_iter(offered), [names], "{case}");
        assert_eq!(body.get("tool_choice"), sent, "{case}");
        assert_eq!(body.get("response_format"), None, "{case}");
    }
}
