use serde_json::{Value, json};

use crate::config::ProviderKind;
use crate::message::{Effort, Message, Part, Thinking};
use crate::provider::quirks::{Quirks, vendor};
use crate::provider::responses::decode::WIRE;
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

fn openai() -> Quirks {
    let config = config(
        ProviderKind::Responses,
        "openai",
        "https://api.openai.com/v1",
    );
    Quirks::of(vendor(&config), "gpt-5.6")
}

fn golden(request: &Request<'_>) -> String {
    serde_json::to_string_pretty(&body(request, &openai(), "p")).unwrap()
}

fn input(history: &[Message], quirks: &Quirks) -> Value {
    body(&request(history, &[]), quirks, "p")["input"].clone()
}

fn function_call(id: &str, path: &str) -> Value {
    json!({"id": format!("fc_{id}"), "type": "function_call", "status": "completed",
        "arguments": format!("{{ \"path\": \"{path}\" }}"), "call_id": id, "name": "file_read"})
}

fn reasoning(id: &str) -> Value {
    json!({"id": id, "type": "reasoning", "encrypted_content": "gAAA", "summary": []})
}

fn message(text: &str) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "phase": "commentary", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

/// What the model sent for [`two_calls`].
fn native() -> Value {
    json!([
        reasoning("rs_1"),
        message("Let me look."),
        reasoning("rs_2"),
        function_call("call_A", "a"),
        function_call("call_B", "b"),
    ])
}

#[test]
fn text() {
    let history = [user("Hello"), reply("Hi.", "", vec![], None), user(" ")];
    insta::assert_snapshot!("text", golden(&request(&history, &[])));
}

#[test]
fn everything_asked_for() {
    let (history, tools) = ([user("Hello")], tools());
    let request = Request {
        max_tokens: Some(100),
        temperature: Some(0.5),
        thinking: Some(Thinking {
            enabled: true,
            budget_tokens: None,
            effort: Some(Effort::High),
        }),
        tool_choice: ToolChoice::None,
        ..request(&history, &tools)
    };
    insta::assert_snapshot!("asked", golden(&request));
    let off = Request {
        thinking: Some(Thinking::default()),
        ..request
    };
    let off = body(&off, &openai(), "p");
    assert_eq!(off["reasoning"], json!({"effort": "none"}));
    assert_eq!(off["temperature"], json!(0.5));
}

#[test]
fn items_go_back_as_they_came() {
    let tools = tools();
    let history = two_calls(Some((WIRE, native())));
    insta::assert_snapshot!("calls", golden(&request(&history, &tools)));
    let input = input(&history, &openai());
    let items = native();
    let sent: Vec<String> = (1..6).map(|n| input[n].to_string()).collect();
    let came: Vec<String> = (0..5).map(|n| items[n].to_string()).collect();
    assert_eq!(sent, came, "byte for byte");
}

#[test]
fn replies_of_others_are_written_anew() {
    let tools = tools();
    let foreign = two_calls(Some(("anthropic-messages", json!([{"type": "thinking"}]))));
    insta::assert_snapshot!("foreign", golden(&request(&foreign, &tools)));
    let own = two_calls(Some((WIRE, native())));
    let elsewhere = Request {
        model: "other",
        ..request(&own, &tools)
    };
    let expected = body(&request(&foreign, &tools), &openai(), "p")["input"].clone();
    assert_eq!(body(&elsewhere, &openai(), "p")["input"], expected);
    assert_eq!(
        body(&request(&own, &tools), &openai(), "q")["input"],
        expected
    );
}

#[test]
fn images_of_users_and_tools() {
    let history = [
        Message::User(vec![Part::text("What is this?"), image()]),
        reply("", "", vec![call("t1", None, "x.png")], None),
        result("t1", vec![Part::text("1 x 1"), image()], false),
    ];
    insta::assert_snapshot!("images", golden(&request(&history, &[])));
}

#[test]
fn documents_go_as_files_to_openai_and_as_text_to_others() {
    let texts = documents_as_text().map(|text| json!({"type": "input_text", "text": text}));
    let pdf = |name: &str, data: &str| {
        let data = format!("data:application/pdf;base64,{data}");
        json!({"type": "input_file", "filename": name, "file_data": data})
    };
    let files = [
        pdf("a.pdf", "JVBERi0x"),
        pdf("scan.pdf", "JVBERi0y"),
        texts[2].clone(),
        texts[3].clone(),
    ];
    let without = Quirks {
        documents: false,
        ..openai()
    };
    for (quirks, expected) in [(openai(), files), (without, texts)] {
        assert_eq!(
            input(&[documents()], &quirks)[0]["content"],
            json!(expected)
        );
    }
}

#[test]
fn a_call_that_was_cut_is_written_beside_the_items() {
    // The answer ended in reasoning, or in a call that never ended: reasoning without what it led to
    // would be refused.
    let history = [
        user("Go"),
        reply(
            "",
            "",
            vec![call("t1", Some("call_A"), "a")],
            Some((WIRE, json!([message("Hm."), reasoning("rs_1")]))),
        ),
        result("t1", vec![Part::text("cut off")], true),
    ];
    let expected = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        message("Hm."),
        {"type": "function_call", "call_id": "call_t1", "name": "file_read", "arguments": "{\"path\":\"a\"}"},
        {"type": "function_call_output", "call_id": "call_t1", "output": "Error: cut off"},
    ]);
    assert_eq!(input(&history, &openai()), expected);
}

#[test]
fn items_with_a_call_that_nobody_answers_do_not_go_back() {
    let history = [
        user("Go"),
        reply("Hm.", "", vec![], Some((WIRE, native()))),
        user("Well?"),
    ];
    let input = input(&history, &openai());
    assert_eq!(input.as_array().unwrap().len(), 3);
    assert_eq!(input[1]["content"][0]["text"], "Hm.");
}

#[test]
fn ids_tell_the_calls_of_all_replies_apart() {
    let turn = |provider_id| {
        [
            reply("", "", vec![call("t1", provider_id, "a")], None),
            result("t1", vec![Part::text("1")], false),
        ]
    };
    let mut history = vec![user("Go")];
    history.extend(turn(None));
    history.extend(turn(Some("call_A")));
    let input = input(&history, &openai());
    let ids: Vec<&Value> = (1..5).map(|at| &input[at]["call_id"]).collect();
    assert_eq!(ids, ["call_t1", "call_t1", "call_t1_2", "call_t1_2"]);
}

#[test]
fn a_free_text_call_is_answered_in_kind() {
    let item = json!({"type": "custom_tool_call", "id": "ct_1", "call_id": "call_A", "name": "file_read", "input": "a"});
    let history = [
        user("Go"),
        reply(
            "",
            "",
            vec![call("t1", Some("call_A"), "a")],
            Some((WIRE, json!([item]))),
        ),
        result("t1", vec![Part::text("alpha")], false),
    ];
    let input = input(&history, &openai());
    assert_eq!(
        input[2],
        json!({"type": "custom_tool_call_output", "call_id": "call_A", "output": "alpha"})
    );
}

#[test]
fn other_servers_get_no_reasoning_that_says_nothing() {
    let config = config(ProviderKind::Responses, "llamacpp", "http://127.0.0.1:8080");
    let quirks = Quirks::of(vendor(&config), "m");
    let empty = json!({"type": "reasoning", "id": "rs_0", "summary": [], "content": [], "encrypted_content": ""});
    let history = [
        user("Go"),
        reply(
            "Hi.",
            "",
            vec![],
            Some((WIRE, json!([empty, reasoning("rs_1"), message("Hi.")]))),
        ),
        user("Well?"),
    ];
    let input = input(&history, &quirks);
    let kinds: Vec<&str> = input
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["message", "reasoning", "message", "message"]);
    assert_eq!(input[1]["id"], "rs_1");
}

#[test]
fn a_compaction_is_asked_for_at_the_end_and_goes_back_first() {
    let tools = tools();
    let made = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA/w=="});
    let history = [
        reply("", "", vec![], Some((WIRE, json!([made])))),
        user("Go on."),
    ];
    let asked = Request {
        max_tokens: Some(100),
        compact: Some(""),
        ..request(&history, &tools)
    };
    let body = body(&asked, &openai(), "p");
    let items = body["input"].as_array().unwrap();
    assert_eq!(items.first().map(Value::to_string), Some(made.to_string()));
    assert_eq!(items.last(), Some(&json!({"type": "compaction_trigger"})));
    assert_eq!((items.len(), body.get("max_output_tokens")), (3, None));
}

#[test]
fn llamacpp_is_told_of_the_form_as_it_knows_it_too() {
    let history = [user("Count.")];
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let request = Request {
        output: Some(&schema),
        ..request(&history, &[])
    };
    for (preset, expected) in [("llamacpp", Some(&schema)), ("generic", None)] {
        let config = config(ProviderKind::Responses, preset, "http://127.0.0.1:8080");
        let body = body(&request, &Quirks::of(vendor(&config), "m"), "p");
        assert_eq!(body["text"]["format"]["schema"], schema, "{body}");
        let beside = body.pointer("/response_format/json_schema/schema");
        assert_eq!(beside, expected, "{body}");
    }
}

#[test]
fn the_answer_is_a_tool_only_where_no_other_may_be_called() {
    let (history, tools) = ([user("Count.")], tools());
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let forced = json!({"type": "function", "name": "answer"});
    let quirks = Quirks {
        output: false,
        ..openai()
    };
    for (tool_choice, tools, names, sent) in [
        (ToolChoice::Auto, &*tools, "file_read", None),
        (ToolChoice::Auto, &[], "answer", Some(&forced)),
        (ToolChoice::None, &*tools, "answer", Some(&forced)),
    ] {
        let request = Request {
            tool_choice,
            output: Some(&schema),
            ..request(&history, tools)
        };
        let body = body(&request, &quirks, "p");
        let offered = body["tools"].as_array().unwrap();
        let offered = offered.iter().map(|tool| &tool["name"]);
        let case = format!("{tool_choice:?}: {body}");
        assert_eq!(Vec::from_iter(offered), [names], "{case}");
        assert_eq!(body.get("tool_choice"), sent, "{case}");
        assert_eq!(body.get("text"), None, "{case}");
    }
}
