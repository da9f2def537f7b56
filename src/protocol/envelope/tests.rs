//! What clients and people may send, and what they get for it.

use serde_json::{Value, json};

use super::*;
use crate::protocol::Content;
use crate::protocol::Event;
use crate::protocol::command::{ChatCancel, Empty};

/// What became of a frame, in short.
fn outcome(text: &str) -> Result<Option<Request>, (SessionCode, Option<Value>, String)> {
    read(text).map_err(|rejected| {
        let id = rejected
            .reply_to
            .map(|id| serde_json::from_str(&id.to_string()).unwrap());
        (rejected.error.code, id, rejected.error.message)
    })
}

/// Checks that a frame is refused with a code and a message that has these words.
fn check_refused(text: &str, code: SessionCode, words: &[&str]) {
    let (found, _, message) = outcome(text).expect_err(text);
    assert_eq!(found, code, "{text}: {message}");
    for word in words {
        assert!(message.contains(word), "{text}: {message:?} lacks {word:?}");
    }
}

fn command_of(text: &str) -> Command {
    outcome(text).expect(text).expect(text).command
}

#[test]
fn every_example_is_read_as_what_it_shows() {
    for (kind, example) in examples() {
        let command = serde_json::to_value(command_of(example)).unwrap();
        assert_eq!(command["type"], kind);
    }
}

#[test]
fn every_form_of_a_frame_is_the_same_request() {
    let forms = [
        r#"{"type":"chat:cancel","payload":{"conversationId":"a","queued":true}}"#,
        r#"{"type":"chat:cancel","conversationId":"a","queued":true}"#,
        r#"{"type":"chat:cancel","conversation_id":"a","queued":true}"#,
        r#"{"payload":{"conversation_id":"a","queued":true},"type":"chat:cancel"}"#,
        r#"{"type":"chat:cancel","payload":null,"conversationId":"a","queued":true}"#,
        "\r\n {\"type\":\"chat:cancel\",\"conversationId\":\"a\",\"queued\":true}\t\n",
        r#"{"type":"chat:cancel","conversationId":"a","queued":true,"unknown":{"deep":[1]}}"#,
        r#"{"type":"chat:cancel","seq":3,"payload":{"conversationId":"a","queued":true,"new":1}}"#,
    ];
    let expected = Command::ChatCancel(ChatCancel {
        conversation_id: crate::message::ConversationId::new("a"),
        queued: true,
    });
    for form in forms {
        assert_eq!(command_of(form), expected, "{form}");
    }
}

#[test]
fn a_request_without_fields_takes_any_payload() {
    let schema = schemars::schema_for!(Command).to_value();
    let requests = schema["oneOf"].as_array().unwrap().iter();
    let empty = requests
        .map(|request| &request["properties"])
        .filter(|it| it["payload"]["$ref"] == "#/$defs/Empty");
    let empty: Vec<&str> = empty
        .filter_map(|it| it["type"]["const"].as_str())
        .collect();
    assert_eq!(empty, WITHOUT_FIELDS);
    for kind in WITHOUT_FIELDS {
        for payload in ["\"x\"", "[1]", "7", "true", "{\"a\":null}"] {
            let text = format!(r#"{{"type":"{kind}","payload":{payload}}}"#);
            assert_eq!(
                command_of(&text),
                command_of(&json!({ "type": kind }).to_string())
            );
        }
    }
}

#[test]
fn a_payload_wins_over_the_fields_beside_it() {
    let text = r#"{"type":"chat:cancel","payload":{},"conversationId":"a"}"#;
    let Command::ChatCancel(cancel) = command_of(text) else {
        panic!("no cancel");
    };
    assert_eq!(cancel.conversation_id.as_str(), "default");
}

#[test]
fn every_field_may_be_spelt_in_snake_case() {
    let cases = [
        (
            r#"{"type":"session:configure","trust_level":"autonomous"}"#,
            r#"{"type":"session:configure","trustLevel":"autonomous"}"#,
        ),
        (
            r#"{"type":"session:resume","session_id":"s","last_seq":4}"#,
            r#"{"type":"session:resume","sessionId":"s","lastSeq":4}"#,
        ),
        (
            r#"{"type":"chat:send","content":"x","conversation_id":"a","system_prompt":"s",
                "trust_level":"guided","max_tokens":9,"when_busy":"steer",
                "tool_permissions":{"bash":{"allowed":true,"allow_dangerous":true,"allow_network":true}},
                "thinking":{"enabled":true,"budget_tokens":2000},
                "limits":{"max_turns":3,"timeout_ms":4,"context_reserve":5},
                "history":[{"role":"assistant","content":"","tool_calls":[{"id":"t1","name":"b","provider_call_id":"p"}]},
                    {"role":"tool","content":"r","tool_call_id":"t1","tool_name":"b","is_error":true}]}"#,
            r#"{"type":"chat:send","content":"x","conversationId":"a","systemPrompt":"s",
                "trustLevel":"guided","maxTokens":9,"whenBusy":"steer",
                "toolPermissions":{"bash":{"allowed":true,"allowDangerous":true,"allowNetwork":true}},
                "thinking":{"enabled":true,"budgetTokens":2000},
                "limits":{"maxTurns":3,"timeoutMs":4,"contextReserve":5},
                "history":[{"role":"assistant","content":"","toolCalls":[{"id":"t1","name":"b","providerCallId":"p"}]},
                    {"role":"tool","content":"r","toolCallId":"t1","toolName":"b","isError":true}]}"#,
        ),
        (
            r#"{"type":"chat:tool-approve","tool_id":"t1","approved":false}"#,
            r#"{"type":"chat:tool-approve","toolId":"t1","approved":false}"#,
        ),
        (
            r#"{"type":"provider:configure","provider":"p","api_key":"k","base_url":"u"}"#,
            r#"{"type":"provider:configure","provider":"p","apiKey":"k","baseUrl":"u"}"#,
        ),
        (
            r#"{"type":"tool:history","conversation_id":"a","tool_name":"b"}"#,
            r#"{"type":"tool:history","conversationId":"a","toolName":"b"}"#,
        ),
    ];
    for (snake, camel) in cases {
        assert_eq!(command_of(snake), command_of(camel), "{snake}");
    }
}

#[test]
fn a_field_that_is_null_is_absent() {
    for (with, without) in [
        (
            r#"{"type":"chat:send","content":"x","conversationId":null,"provider":null,"history":null,"limits":null,"whenBusy":null}"#,
            r#"{"type":"chat:send","content":"x"}"#,
        ),
        (
            r#"{"type":"chat:cancel","payload":{"conversation_id":null,"queued":null}}"#,
            r#"{"type":"chat:cancel"}"#,
        ),
        (
            r#"{"type":"chat:tool-approve","toolId":"t1","approved":true,"remember":null,"input":null}"#,
            r#"{"type":"chat:tool-approve","toolId":"t1","approved":true}"#,
        ),
        (
            r#"{"type":"tool:output","toolId":"t1","offset":null,"limit":null}"#,
            r#"{"type":"tool:output","toolId":"t1"}"#,
        ),
    ] {
        assert_eq!(command_of(with), command_of(without), "{with}");
    }
    let text = r#"{"type":"chat:send","content":null}"#;
    check_refused(
        text,
        SessionCode::InvalidPayload,
        &["missing field `content`"],
    );
}

#[test]
fn an_empty_frame_is_none() {
    for text in ["", " ", "\n", "\r\n\t "] {
        assert_eq!(outcome(text), Ok(None), "{text:?}");
    }
}

#[test]
fn ids_are_strings_or_numbers_and_come_back_as_they_came() {
    let longest = "x".repeat(RequestId::MAX_CHARS);
    for id in [
        json!("7"),
        json!(7),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(""),
        json!("quote\" and \u{1f600}"),
        json!(longest),
    ] {
        let text = json!({"type": "session:ping", "id": id}).to_string();
        let request = outcome(&text).unwrap().unwrap();
        assert_eq!(request.command, Command::SessionPing(Empty {}));
        let id_again = request.id.unwrap();
        let stamp = Stamp {
            seq: Some(1),
            reply_to: Some(&id_again),
            timestamp: Timestamp::default(),
            task: None,
        };
        let answer = write(&Event::SessionPingResult(Empty {}), &stamp);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["replyTo"], id);
    }
    for text in [
        r#"{"type":"session:ping"}"#,
        r#"{"type":"session:ping","id":null}"#,
    ] {
        assert_eq!(outcome(text).unwrap().unwrap().id, None);
    }
}

#[test]
fn numbers_come_back_as_they_were_written() {
    for id in [
        "123456789012345678901234567890",
        "1E2",
        "1e2",
        "1.50",
        "-0",
        "0.1000000000000000055511151231257827",
    ] {
        for text in [
            format!(r#"{{"type":"session:ping","id":{id}}}"#),
            format!(r#"{{ "\u0069d" : {id} , "type": "session:ping", "x": {{"id": 7}} }}"#),
        ] {
            let request = outcome(&text).unwrap().unwrap();
            let stamp = Stamp {
                reply_to: request.id.as_ref(),
                ..Stamp::default()
            };
            let answer = write(&Event::SessionPingResult(Empty {}), &stamp);
            assert!(answer.contains(&format!(r#""replyTo":{id},"#)), "{answer}");
        }
    }
}

#[test]
fn an_id_of_another_sort_is_refused() {
    let too_long = json!("x".repeat(RequestId::MAX_CHARS + 1)).to_string();
    let too_many = "1".repeat(RequestId::MAX_CHARS + 1);
    for id in ["true", "{}", "[1]", too_long.as_str(), too_many.as_str()] {
        let text = format!(r#"{{"type":"session:ping","id":{id}}}"#);
        check_refused(&text, SessionCode::InvalidPayload, &["`id`", "256"]);
    }
}

#[test]
fn a_refusal_carries_the_id() {
    let cases = [
        r#"{"id":"7"}"#,
        r#"{"id":"7","type":3}"#,
        r#"{"id":"7","type":"chat:sned"}"#,
        r#"{"id":"7","type":"chat:send"}"#,
        r#"{"id":"7","type":"chat:send","payload":3}"#,
    ];
    for text in cases {
        let (_, id, _) = outcome(text).expect_err(text);
        assert_eq!(id, Some(json!("7")), "{text}");
    }
}

#[test]
fn what_is_no_object_is_no_frame() {
    let cases = [
        ("hello", "not valid JSON"),
        ("{", "not valid JSON"),
        (r#"{"type":"session:ping"} x"#, "not valid JSON"),
        (r#"{"type":"session:ping",}"#, "not valid JSON"),
        ("[]", "an array"),
        ("null", "null"),
        ("7", "a number"),
        ("true", "a boolean"),
        (r#""chat:send""#, "a string"),
    ];
    for (text, words) in cases {
        check_refused(
            text,
            SessionCode::InvalidJson,
            &[words, "for example", "chat:send"],
        );
    }
}

#[test]
fn nesting_ends_at_its_limit() {
    let nested = |depth: usize| {
        format!(
            r#"{{"type":"session:ping","payload":{{"x":{}{}}}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    // Two levels are the frame's and the payload's own.
    assert!(outcome(&nested(126)).is_ok());
    check_refused(&nested(127), SessionCode::InvalidJson, &["recursion"]);
    check_refused(&nested(100_000), SessionCode::InvalidJson, &["recursion"]);
}

#[test]
fn an_unknown_type_is_answered_with_the_nearest_or_all() {
    let cases = [
        ("chat:sned", "did you mean `chat:send`?"),
        ("chat:tool_approve", "did you mean `chat:tool-approve`?"),
        ("Chat:Send", "did you mean `chat:send`?"),
        ("session:pong", "did you mean `session:ping`?"),
        ("xyz", "known are session:configure, "),
        ("", "known are "),
    ];
    for (kind, words) in cases {
        let text = json!({ "type": kind }).to_string();
        check_refused(&text, SessionCode::UnknownType, &[words]);
    }
    let long = json!({ "type": "é".repeat(10_000) }).to_string();
    let (_, _, message) = outcome(&long).expect_err("unknown");
    assert!(message.len() < 2_000, "{} bytes", message.len());
}

#[test]
fn a_wrong_field_is_named_with_an_example() {
    let cases = [
        (r#"{"content":"hi"}"#, "field `type` is missing"),
        (r#"{"type":7}"#, "`type` must be a string"),
        (r#"{"type":"chat:send"}"#, "`content`"),
        (r#"{"type":"chat:send","content":7}"#, "`content`"),
        (
            r#"{"type":"chat:send","payload":"hi"}"#,
            "`payload` must be an object, not a string",
        ),
        (r#"{"type":"chat:send","payload":[]}"#, "not an array"),
        (
            r#"{"type":"chat:send","content":"x","limits":{"maxTurns":-1}}"#,
            "`limits.maxTurns`",
        ),
        (
            r#"{"type":"chat:send","content":"x","history":[{"role":"user","content":"a"},{"role":"pope","content":"b"}]}"#,
            "`history[1].role`",
        ),
        (
            r#"{"type":"chat:send","content":[{"type":"video"}]}"#,
            "`content",
        ),
        (
            r#"{"type":"session:configure","trustLevel":"bold"}"#,
            "`trustLevel`",
        ),
        (r#"{"type":"session:resume"}"#, "`sessionId`"),
        (
            r#"{"type":"chat:tool-approve","toolId":"t1"}"#,
            "`approved`",
        ),
        (
            r#"{"type":"tool:output","toolId":"t1","offset":-1}"#,
            "`offset`",
        ),
    ];
    for (text, words) in cases {
        check_refused(text, SessionCode::InvalidPayload, &[words, "for example {"]);
    }
}

#[test]
fn no_refusal_repeats_a_key() {
    let text = r#"{"type":"provider:configure","apiKey":"sk-secret","provider":7}"#;
    let (_, _, message) = outcome(text).expect_err("no name");
    assert!(!message.contains("sk-secret"), "{message}");
}

#[test]
fn a_send_has_its_defaults() {
    let Command::ChatSend(send) = command_of(r#"{"type":"chat:send","content":"hi"}"#) else {
        panic!("no send");
    };
    assert_eq!(send.conversation_id.as_str(), "default");
    assert_eq!(send.content, Content::Text("hi".to_owned()));
    assert_eq!(send.when_busy, crate::protocol::command::WhenBusy::Queue);
}

#[test]
fn an_event_is_written_with_its_envelope_in_order() {
    let event = Event::SessionError(SessionError {
        code: SessionCode::InvalidJson,
        message: r#"a text with ,"payload": in it"#.to_owned(),
        retry_after_ms: None,
    });
    let id = RequestId::from("7");
    let cases = [
        (
            Stamp {
                seq: Some(17),
                reply_to: Some(&id),
                timestamp: "2026-11-20T12:00:00.123Z".parse().unwrap(),
                task: None,
            },
            r#"{"type":"session:error","seq":17,"replyTo":"7","timestamp":"2026-11-20T12:00:00.123Z","payload":{"code":"invalid_json","message":"a text with ,\"payload\": in it"}}"#,
        ),
        (
            Stamp {
                seq: None,
                reply_to: None,
                timestamp: "2026-11-20T12:00:00.123Z".parse().unwrap(),
                task: None,
            },
            r#"{"type":"session:error","timestamp":"2026-11-20T12:00:00.123Z","payload":{"code":"invalid_json","message":"a text with ,\"payload\": in it"}}"#,
        ),
    ];
    for (stamp, expected) in cases {
        assert_eq!(write(&event, &stamp), expected);
    }
}

#[test]
fn the_time_is_in_utc_with_milliseconds() {
    let time = Timestamp::now().to_string();
    assert_eq!(time.len(), "2026-11-20T12:00:00.123Z".len(), "{time}");
    assert!(time.ends_with('Z') && time.parse::<jiff::Timestamp>().is_ok());
}
