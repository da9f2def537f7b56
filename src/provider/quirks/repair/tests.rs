use serde_json::json;

use super::*;
use crate::provider::quirks::GENERIC;

/// Every flag that a repair takes away.
const START: Quirks = Quirks {
    system_role: "developer",
    prompt_cache_key: true,
    documents: true,
    ..GENERIC
};

fn refused(message: &str, code: Option<&str>) -> ProviderError {
    ProviderError {
        status: Some(400),
        code: code.map(str::to_owned),
        ..ProviderError::new(ErrorKind::InvalidRequest, message)
    }
}

fn found(message: &str, body: &Value) -> Option<Quirks> {
    Some(find(&refused(message, None), body, &START, &START)?.quirks)
}

#[test]
fn complaints_of_servers() {
    let tools = json!({"messages": [], "tools": [{}], "tool_choice": "none"});
    let asked = json!({"messages": [{"role": "developer", "content": ""}], "max_tokens": 5,
        "temperature": 1, "stream_options": {}, "reasoning_effort": "low", "prompt_cache_key": "k"});
    let history = json!({"messages": [{"role": "assistant", "reasoning_content": "x"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]}]});
    let files = json!({"messages": [{"role": "user", "content": [{"type": "file", "file": {}}]}]});
    let responses =
        json!({"input": [], "reasoning": {"summary": "auto"}, "stream_options": {}, "include": []});
    let cases = [
        (
            "Invalid Value: 'file'. This model does not support file content types.",
            &files,
            Some(Quirks {
                documents: false,
                ..START
            }),
        ),
        (
            "registry.ollama.ai/library/gemma3:4b does not support tools",
            &tools,
            Some(Quirks {
                tools: false,
                ..START
            }),
        ),
        (
            "tools is not supported in this model",
            &tools,
            Some(Quirks {
                tools: false,
                ..START
            }),
        ),
        (
            "tools param requires --jinja flag",
            &tools,
            Some(Quirks {
                tools: false,
                ..START
            }),
        ),
        (
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            &tools,
            Some(Quirks {
                tools: false,
                ..START
            }),
        ),
        (
            "No endpoints found that support tool use. To learn more",
            &tools,
            Some(Quirks {
                tools: false,
                ..START
            }),
        ),
        (
            "Thinking mode does not support this tool_choice",
            &tools,
            Some(Quirks {
                tool_choice: false,
                ..START
            }),
        ),
        (
            "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            &tools,
            Some(Quirks {
                other_api: true,
                ..START
            }),
        ),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            &asked,
            Some(Quirks {
                output_cap: MAX_COMPLETION_TOKENS,
                ..START
            }),
        ),
        (
            "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
            &asked,
            Some(Quirks {
                temperature: false,
                ..START
            }),
        ),
        (
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 99.0 instead.",
            &asked,
            None,
        ),
        (
            "Unknown field: stream_options",
            &asked,
            Some(Quirks {
                stream_options: false,
                ..START
            }),
        ),
        (
            "unknown variant developer, expected one of system, user, assistant, tool, latest_reminder",
            &asked,
            Some(Quirks {
                system_role: SYSTEM,
                ..START
            }),
        ),
        (
            "`reasoning_effort` is not supported with this model",
            &asked,
            Some(Quirks {
                thinking: ThinkingDialect::None,
                ..START
            }),
        ),
        (
            "Extra inputs are not permitted: prompt_cache_key",
            &asked,
            Some(Quirks {
                prompt_cache_key: false,
                ..START
            }),
        ),
        (
            "The reasoning_content in the thinking mode must be passed back to the API.",
            &history,
            Some(Quirks {
                reasoning_back: ReasoningBack::Always("reasoning_content"),
                ..START
            }),
        ),
        (
            "Missing reasoning_content field in the assistant message at message index 3",
            &history,
            Some(Quirks {
                reasoning_back: ReasoningBack::Always("reasoning_content"),
                ..START
            }),
        ),
        (
            "property 'reasoning_content' is unsupported",
            &history,
            Some(Quirks {
                reasoning_back: ReasoningBack::Never,
                ..START
            }),
        ),
        (
            "This model does not support image input",
            &history,
            Some(Quirks {
                images: false,
                ..START
            }),
        ),
        (
            "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            &history,
            Some(Quirks {
                short_ids: true,
                ..START
            }),
        ),
        (
            "Unexpected role 'user' after role 'tool'",
            &history,
            Some(Quirks {
                user_after_tool: false,
                ..START
            }),
        ),
        (
            "Your organization must be verified to generate reasoning summaries.",
            &responses,
            Some(Quirks {
                summaries: Summaries::Never,
                ..START
            }),
        ),
        (
            "Unknown parameter: 'include_obfuscation'",
            &responses,
            Some(Quirks {
                stream_options: false,
                ..START
            }),
        ),
        (
            "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
            &responses,
            Some(Quirks {
                thinking: ThinkingDialect::None,
                ..START
            }),
        ),
        ("Invalid model: definitely-not-a-model", &asked, None),
        ("does not support tools", &asked, None),
    ];
    for (message, body, expected) in cases {
        assert_eq!(found(message, body), expected, "{message}");
    }
    let coded = refused("wrong id", Some("3280"));
    assert_eq!(
        find(&coded, &history, &START, &START).map(|it| it.quirks),
        Some(Quirks {
            short_ids: true,
            ..START
        })
    );
}

#[test]
fn a_repair_is_tried_once_and_only_for_refused_requests() {
    let body = json!({"messages": [], "tools": [{}]});
    let mut error = refused("this model does not support tools", None);
    let without = find(&error, &body, &START, &START).unwrap().quirks;
    assert!(find(&error, &body, &START, &without).is_none());
    for kind in [
        ErrorKind::RateLimit,
        ErrorKind::Authentication,
        ErrorKind::Overloaded,
    ] {
        error.kind = kind;
        let found = find(&error, &body, &START, &START);
        assert!(found.is_none(), "{kind:?}");
    }
}

#[test]
fn what_one_file_or_schema_has_is_no_fault_of_the_model() {
    let files = json!({"messages": [{"role": "user", "content": [{"type": "file", "file": {}}]}]});
    let form = json!({"messages": [], "response_format": {"type": "json_schema"}});
    let text = json!({"input": [], "text": {"format": {"type": "json_schema"}}});
    for (message, body, is_of_model) in [
        (
            "This model does not support file content types.",
            &files,
            true,
        ),
        ("unsupported content: PDF", &files, true),
        (
            "The file is too large: PDFs of more than 100 pages are not supported",
            &files,
            false,
        ),
        ("Unsupported file: the document is encrypted", &files, false),
        ("Could not read the document", &files, false),
        (
            "'response_format' is not supported with this model",
            &form,
            true,
        ),
        (
            "Unrecognized request argument supplied: response_format",
            &form,
            true,
        ),
        (
            "Invalid schema for response_format 'answer': In context=('properties', 'a'), 'oneOf' is not permitted",
            &form,
            false,
        ),
        (
            "Invalid schema for response_format 'answer': 'allOf' is not supported",
            &form,
            false,
        ),
        (
            "text.format: the schema has too many properties",
            &text,
            false,
        ),
        (
            "Unsupported parameter: 'text.format' is not supported with this model.",
            &text,
            true,
        ),
    ] {
        let found = find(&refused(message, None), body, &START, &START).unwrap();
        assert!(!found.quirks.documents || !found.quirks.output, "{message}");
        assert_eq!(found.is_of_model, is_of_model, "{message}");
    }
}

#[test]
fn no_flag_is_changed_to_and_fro() {
    let body = json!({"messages": [{"role": "assistant", "reasoning_content": "x"}],
        "max_tokens": 1, "max_completion_tokens": 1});
    for (first, second) in [
        (
            "max_tokens is not supported",
            "max_completion_tokens is not supported",
        ),
        (
            "The reasoning_content must be passed back",
            "reasoning_content is not supported",
        ),
        (
            "reasoning_content is not supported",
            "The reasoning_content must be passed back",
        ),
    ] {
        let once = found(first, &body).unwrap();
        let second = find(&refused(second, None), &body, &START, &once);
        assert!(second.is_none(), "{first}");
    }
}

#[test]
fn repairs_are_remembered_by_model_within_a_bound() {
    let learned = Learned::default();
    let without_tools: Repair = |quirks| quirks.tools = false;
    let without_temperature: Repair = |quirks| quirks.temperature = false;
    // Of two turns that began together.
    learned.remember("generic", "a", &[without_temperature]);
    learned.remember("generic", "a", &[without_tools]);
    let repaired = Quirks {
        tools: false,
        temperature: false,
        ..GENERIC
    };
    assert_eq!(learned.quirks("generic", "a"), repaired);
    assert_eq!(learned.quirks("generic", "b"), GENERIC);
    assert_eq!(learned.quirks("vllm", "a"), Quirks::of("vllm", "a"));
    for number in 0..2 * MAX_MODELS {
        learned.remember("generic", &number.to_string(), &[without_tools]);
    }
    assert_eq!(learned.quirks.lock().len(), MAX_MODELS);
}

#[test]
fn a_mistake_is_taken_once() {
    let learned = Learned::default();
    learned.note_mistake("c1", "wrong parameters");
    assert_eq!(learned.take_mistake("c2"), None);
    assert_eq!(
        learned.take_mistake("c1").as_deref(),
        Some("wrong parameters")
    );
    assert_eq!(learned.take_mistake("c1"), None);
}

#[test]
fn mistakes_are_noted_however_many_conversations_never_took_theirs() {
    let learned = Learned::default();
    for number in 0..3 * MAX_MISTAKES {
        let conversation = number.to_string();
        learned.note_mistake(&conversation, "wrong");
        assert!(learned.mistakes.lock().len() <= MAX_MISTAKES);
        assert!(learned.mistakes.lock().contains_key(&conversation));
    }
}
