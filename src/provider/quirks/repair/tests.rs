use serde_json::json;

use super::*;

fn refused(message: &str, code: Option<&str>) -> ProviderError {
    ProviderError {
        status: Some(400),
        code: code.map(str::to_owned),
        ..ProviderError::new(ErrorKind::InvalidRequest, message)
    }
}

fn found(message: &str, body: &Value) -> Option<Repair> {
    find(&refused(message, None), body, &Repairs::new())
}

#[test]
fn complaints_of_servers() {
    let tools = json!({"messages": [], "tools": [{}], "tool_choice": "none"});
    let asked = json!({"messages": [{"role": "developer", "content": ""}], "max_tokens": 5,
        "temperature": 1, "stream_options": {}, "reasoning_effort": "low", "prompt_cache_key": "k"});
    let history = json!({"messages": [{"role": "assistant", "reasoning_content": "x"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]}]});
    let responses =
        json!({"input": [], "reasoning": {"summary": "auto"}, "stream_options": {}, "include": []});
    let cases = [
        (
            "registry.ollama.ai/library/gemma3:4b does not support tools",
            &tools,
            Some(Repair::NoTools),
        ),
        (
            "tools is not supported in this model",
            &tools,
            Some(Repair::NoTools),
        ),
        (
            "tools param requires --jinja flag",
            &tools,
            Some(Repair::NoTools),
        ),
        (
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            &tools,
            Some(Repair::NoTools),
        ),
        (
            "No endpoints found that support tool use. To learn more",
            &tools,
            Some(Repair::NoTools),
        ),
        (
            "Thinking mode does not support this tool_choice",
            &tools,
            Some(Repair::NoToolChoice),
        ),
        (
            "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            &tools,
            Some(Repair::OtherApi),
        ),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            &asked,
            Some(Repair::OtherOutputCap),
        ),
        (
            "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
            &asked,
            Some(Repair::NoTemperature),
        ),
        (
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 99.0 instead.",
            &asked,
            None,
        ),
        (
            "Unknown field: stream_options",
            &asked,
            Some(Repair::NoStreamOptions),
        ),
        (
            "unknown variant developer, expected one of system, user, assistant, tool, latest_reminder",
            &asked,
            Some(Repair::SystemRole),
        ),
        (
            "`reasoning_effort` is not supported with this model",
            &asked,
            Some(Repair::NoThinking),
        ),
        (
            "Extra inputs are not permitted: prompt_cache_key",
            &asked,
            Some(Repair::NoCacheKey),
        ),
        (
            "The reasoning_content in the thinking mode must be passed back to the API.",
            &history,
            Some(Repair::ReasoningRequired),
        ),
        (
            "Missing reasoning_content field in the assistant message at message index 3",
            &history,
            Some(Repair::ReasoningRequired),
        ),
        (
            "property 'reasoning_content' is unsupported",
            &history,
            Some(Repair::NoReasoningBack),
        ),
        (
            "This model does not support image input",
            &history,
            Some(Repair::NoImages),
        ),
        (
            "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            &history,
            Some(Repair::ShortIds),
        ),
        (
            "Unexpected role 'user' after role 'tool'",
            &history,
            Some(Repair::NoUserAfterTool),
        ),
        (
            "Your organization must be verified to generate reasoning summaries.",
            &responses,
            Some(Repair::NoSummary),
        ),
        (
            "Unknown parameter: 'include_obfuscation'",
            &responses,
            Some(Repair::NoStreamOptions),
        ),
        (
            "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
            &responses,
            Some(Repair::NoThinking),
        ),
        ("Invalid model: definitely-not-a-model", &asked, None),
        ("does not support tools", &asked, None),
    ];
    for (message, body, expected) in cases {
        assert_eq!(found(message, body), expected, "{message}");
    }
    let coded = refused("wrong id", Some("3280"));
    assert_eq!(
        find(&coded, &history, &Repairs::new()),
        Some(Repair::ShortIds)
    );
}

#[test]
fn a_repair_is_tried_once_and_only_for_refused_requests() {
    let body = json!({"messages": [], "tools": [{}]});
    let mut error = refused("this model does not support tools", None);
    assert_eq!(find(&error, &body, &Repairs::from([Repair::NoTools])), None);
    for kind in [
        ErrorKind::RateLimit,
        ErrorKind::Authentication,
        ErrorKind::Overloaded,
    ] {
        error.kind = kind;
        assert_eq!(find(&error, &body, &Repairs::new()), None, "{kind:?}");
    }
}

#[test]
fn repairs_are_remembered_by_model_within_a_bound() {
    let learned = Learned::default();
    learned.remember("a", &Repairs::from([Repair::NoTools]));
    learned.remember("a", &Repairs::from([Repair::NoImages]));
    assert_eq!(
        learned.repairs("a"),
        Repairs::from([Repair::NoTools, Repair::NoImages])
    );
    assert_eq!(learned.repairs("b"), Repairs::new());
    for number in 0..2 * MAX_MODELS {
        learned.remember(&number.to_string(), &Repairs::from([Repair::NoTools]));
    }
    assert_eq!(learned.repairs.lock().len(), MAX_MODELS);
}

#[test]
fn a_mistake_is_told_once() {
    let learned = Learned::default();
    learned.note_mistake("c1", "wrong parameters");
    assert_eq!(learned.take_mistake("c2"), None);
    assert_eq!(
        learned.take_mistake("c1").as_deref(),
        Some("wrong parameters")
    );
    assert_eq!(learned.take_mistake("c1"), None);
}
