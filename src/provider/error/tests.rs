use reqwest::header::{HeaderName, HeaderValue};
use serde_json::json;

use super::*;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        })
        .collect()
}

fn read(status: u16, body: &str) -> ProviderError {
    ProviderError::from_response(status, &HeaderMap::new(), body.as_bytes())
}

#[test]
fn statuses_without_words() {
    let cases = [
        (302, ErrorKind::Protocol),
        (400, ErrorKind::InvalidRequest),
        (401, ErrorKind::Authentication),
        (402, ErrorKind::Quota),
        (403, ErrorKind::Permission),
        (404, ErrorKind::NotFound),
        (408, ErrorKind::Timeout),
        (409, ErrorKind::Conflict),
        (413, ErrorKind::TooLarge),
        (422, ErrorKind::InvalidRequest),
        (425, ErrorKind::RateLimit),
        (429, ErrorKind::RateLimit),
        (499, ErrorKind::InvalidRequest),
        (500, ErrorKind::Server),
        (501, ErrorKind::Server),
        (502, ErrorKind::Server),
        (503, ErrorKind::Overloaded),
        (408, ErrorKind::Timeout),
        (504, ErrorKind::Server),
        (522, ErrorKind::Server),
        (524, ErrorKind::Server),
        (520, ErrorKind::Server),
        (529, ErrorKind::Overloaded),
    ];
    for (status, expected) in cases {
        for body in ["", "{}", "oops", "<html><title>Bad gateway</title></html>"] {
            let error = read(status, body);
            assert_eq!(error.kind, expected, "{status} {body}");
            assert_eq!(error.status, Some(status));
            assert!(!error.message.is_empty());
        }
    }
}

#[test]
fn what_hides_behind_a_status() {
    use ErrorKind::*;
    let cases = [
        (
            429,
            r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"x"}}"#,
            Quota,
        ),
        (
            429,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
            Quota,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            Quota,
        ),
        (
            403,
            r#"{"error":{"code":403,"message":"Key limit exceeded (total limit)."}}"#,
            Quota,
        ),
        (
            402,
            r#"{"error":{"code":402,"message":"This request requires more credits, or fewer max_tokens."}}"#,
            Quota,
        ),
        (
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"19.5s"}]}}]"#,
            RateLimit,
        ),
        (
            429,
            r#"{"message":"Tokens per minute limit exceeded - too many tokens processed.","type":"too_many_tokens_error","param":"quota","code":"token_quota_exceeded"}"#,
            RateLimit,
        ),
        (
            413,
            r#"{"error":{"message":"Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again. Upgrade at https://console.groq.com/settings/billing","type":"tokens","code":"rate_limit_exceeded"}}"#,
            TooLarge,
        ),
        (
            400,
            r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 198000 + 20000 > 200000"}}"#,
            ContextLength,
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400}"#,
            ContextLength,
        ),
        (
            400,
            r#"{"code":"invalid-argument","error":"This model's maximum prompt length is 131072 but the request contains 200000 tokens."}"#,
            ContextLength,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 3 > 2\"}}"}}}"#,
            ContextLength,
        ),
        (
            500,
            r#"{"error":"the request exceeds the available context size"}"#,
            ContextLength,
        ),
        (
            404,
            r#"{"error":{"code":404,"message":"No endpoints found that support tool use."}}"#,
            NoTools,
        ),
        (
            400,
            r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"}"#,
            NoTools,
        ),
        (
            403,
            r#"{"error":{"code":403,"message":"Your chosen model requires moderation and your input was flagged for \"violence\"."}}"#,
            ContentFilter,
        ),
        (
            400,
            r#"{"error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#,
            ContentFilter,
        ),
        (
            400,
            r#"{"error":{"type":"invalid_request_error","message":"Invalid schema for function 'get_billing_info': overloaded name"}}"#,
            InvalidRequest,
        ),
        (
            500,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Overloaded,
        ),
        (
            500,
            r#"{"error":{"type":"api_error","message":"Internal server error"}}"#,
            Server,
        ),
        (
            422,
            r#"{"detail":[{"loc":["body","messages",0],"msg":"field required","type":"value_error"}]}"#,
            InvalidRequest,
        ),
        (
            400,
            r#"{"error":{"type":"authentication_error","message":"no"}}"#,
            Authentication,
        ),
        (404, r#"{"detail":"Not Found"}"#, NotFound),
    ];
    for (status, body, expected) in cases {
        assert_eq!(read(status, body).kind, expected, "{status} {body}");
    }
}

#[test]
fn errors_inside_a_stream_go_by_their_words() {
    let cases = [
        (
            json!({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}),
            ErrorKind::Overloaded,
        ),
        (
            json!({"type":"error","error":{"type":"api_error","message":"x"}}),
            ErrorKind::Server,
        ),
        (
            json!({"code":"rate_limit_exceeded","message":"Please try again in 28ms."}),
            ErrorKind::RateLimit,
        ),
        (
            json!({"code":"context_length_exceeded","message":"x"}),
            ErrorKind::ContextLength,
        ),
        (
            json!({"error":{"code":502,"message":"Provider disconnected"}}),
            ErrorKind::Server,
        ),
        (
            json!({"error":{"code":"429","message":"slow"}}),
            ErrorKind::RateLimit,
        ),
        (
            json!({"error":{"message":"no","type":"invalid_request_error","code":"tool_use_failed","status_code":400}}),
            ErrorKind::InvalidRequest,
        ),
        (
            json!({"error":"an error was encountered while running the model"}),
            ErrorKind::Unknown,
        ),
        (
            json!({"response":{"error":{"code":"server_error","message":"x"}}}),
            ErrorKind::Server,
        ),
        (
            json!({"error":{"type":null,"code":"content_filter","status":400}}),
            ErrorKind::ContentFilter,
        ),
        (json!(null), ErrorKind::Unknown),
        (json!("text"), ErrorKind::Unknown),
        (json!([]), ErrorKind::Unknown),
    ];
    for (payload, expected) in cases {
        let error = ProviderError::from_payload(&payload, None);
        assert_eq!(error.kind, expected, "{payload}");
        assert_eq!(error.status, None);
        assert!(!error.message.is_empty());
    }
}

#[test]
fn type_code_and_message_of_each_form() {
    let cases = [
        (
            json!({"object":"error","message":"Invalid model","type":"invalid_model","param":null,"code":"1500"}),
            Some("invalid_model"),
            Some("1500"),
            "Invalid model",
        ),
        (
            json!({"code":"invalid-argument","error":"Model not found"}),
            None,
            None,
            "Model not found",
        ),
        (
            json!({"error":{"code":400,"message":"bad"}}),
            None,
            Some("400"),
            "bad",
        ),
        (
            json!({"code":400,"details":"bad input"}),
            None,
            Some("400"),
            "bad input",
        ),
        (
            json!({"detail":[{"loc":["body","a",0],"msg":"required"},{"msg":"wrong"}]}),
            None,
            None,
            "body.a.0: required; wrong",
        ),
        (json!({"error":["m", "n"]}), None, None, "m"),
        (
            json!({"errors":[{"message":"m","code":7}]}),
            None,
            Some("7"),
            "m",
        ),
        (
            json!({"error":{"type":"weird_error"}}),
            Some("weird_error"),
            None,
            "the provider reported weird_error without a message",
        ),
    ];
    for (payload, error_type, code, message) in cases {
        let error = ProviderError::from_payload(&payload, Some(400));
        assert_eq!(error.error_type.as_deref(), error_type, "{payload}");
        assert_eq!(error.code.as_deref(), code, "{payload}");
        assert_eq!(error.message, message, "{payload}");
    }
}

#[test]
fn delays_in_headers() {
    type Case = (&'static [(&'static str, &'static str)], Option<u64>);
    const DATE: (&str, &str) = ("date", "Fri, 20 Nov 2026 12:00:00 GMT");
    let cases: &[Case] = &[
        (&[("retry-after", "16")], Some(16_000)),
        (&[("retry-after", "1.5")], Some(1_500)),
        (
            &[("retry-after-ms", "250"), ("retry-after", "9")],
            Some(250),
        ),
        (
            &[("retry-after", "Fri, 20 Nov 2026 12:00:30 GMT"), DATE],
            Some(30_000),
        ),
        (
            &[("retry-after", "Fri, 20 Nov 2026 11:00:30 GMT"), DATE],
            Some(0),
        ),
        (&[("retry-after", "1m30s")], Some(90_000)),
        (&[("retry-after", "250ms")], Some(250)),
        (
            &[("retry-after", "2026-11-20T12:00:09Z"), DATE],
            Some(9_000),
        ),
        (&[("retry-after", "1795176004"), DATE], Some(4_000)),
        (&[("retry-after", "")], None),
        (&[("x-rate-limit-reset", "3")], Some(3_000)),
        (&[("ratelimit-reset", "4")], Some(4_000)),
        (
            &[
                ("anthropic-ratelimit-unified-5h-status", "rejected"),
                ("anthropic-ratelimit-unified-5h-reset", "1795176060"),
                ("anthropic-ratelimit-unified-7d-status", "allowed_warning"),
                ("anthropic-ratelimit-unified-7d-reset", "1795276000"),
                DATE,
            ],
            Some(60_000),
        ),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "-1")], None),
        (&[("retry-after", "7999")], Some(7_999_000)),
        (&[("retry-after", "1e300")], None),
        (&[("x-ratelimit-reset-tokens", "6m0s")], Some(360_000)),
        (&[("x-ratelimit-reset-requests", "120ms")], Some(120)),
        (
            &[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "1.57s"),
                ("x-ratelimit-remaining-tokens", "5"),
                ("x-ratelimit-reset-tokens", "9s"),
            ],
            Some(1_570),
        ),
        (&[("x-ratelimit-reset", "1795176005000"), DATE], Some(5_000)),
        (
            &[
                ("anthropic-ratelimit-tokens-reset", "2026-11-20T12:00:07Z"),
                DATE,
            ],
            Some(7_000),
        ),
        (&[], None),
    ];
    for (pairs, milliseconds) in cases {
        let error = ProviderError::from_response(429, &headers(pairs), b"{}");
        assert_eq!(
            error.retry_after,
            milliseconds.map(Duration::from_millis),
            "{pairs:?}"
        );
    }
}

#[test]
fn delays_in_bodies() {
    let cases = [
        (
            json!({"error":{"message":"Please try again in 1.3s. Visit"}}),
            Some(1_300),
        ),
        (
            json!({"error":{"message":"Please try again in 6ms."}}),
            Some(6),
        ),
        (
            json!({"error":{"message":"Try again in 6m0s."}}),
            Some(360_000),
        ),
        (
            json!({"error":{"message":"Please retry in 12.5 seconds"}}),
            Some(12_500),
        ),
        (
            json!({"error":{"message":"retry after 2 minutes"}}),
            Some(120_000),
        ),
        (
            json!({"error":{"message":"retry after 60 second(s)"}}),
            Some(60_000),
        ),
        (
            json!({"error":{"message":"Retry after 20 seconds<br>"}}),
            Some(20_000),
        ),
        (
            json!({"error":{"message":"try again in 1.5h30m"}}),
            Some(7_200_000),
        ),
        (
            json!({"error":{"message":"try again in 1.500000000000s"}}),
            Some(1_500),
        ),
        (
            json!({"error":{"message":"x","details":[{"retryDelay":"19s"}]}}),
            Some(19_000),
        ),
        (
            json!({"error":{"type":"usage_limit_reached","resets_in_seconds":3600}}),
            Some(3_600_000),
        ),
        (json!({"error":{"message":"try again in a moment"}}), None),
        (json!({"error":{"message":"try again in "}}), None),
        (json!({"error":{"message":"try again in 9"}}), None),
    ];
    for (payload, milliseconds) in cases {
        let error = ProviderError::from_payload(&payload, Some(429));
        assert_eq!(
            error.retry_after,
            milliseconds.map(Duration::from_millis),
            "{payload}"
        );
    }
}

#[test]
fn limits_say_nothing_of_other_errors() {
    let limits = headers(&[
        ("x-ratelimit-reset-tokens", "9s"),
        ("x-should-retry", "false"),
    ]);
    let error = ProviderError::from_response(400, &limits, b"{}");
    assert_eq!((error.retry_after, error.should_retry), (None, Some(false)));
}

proptest::proptest! {
    #[test]
    fn any_answer_is_an_error(status: u16, body: Vec<u8>, text: String) {
        let message = ProviderError::from_response(status, &HeaderMap::new(), &body).message;
        proptest::prop_assert!(!message.is_empty());
        let payload = json!({"error": {"message": text}});
        let message = ProviderError::from_payload(&payload, None).message;
        proptest::prop_assert!(message.len() <= 2048);
    }
}

#[test]
fn errors_in_bodies_that_are_no_json_as_a_whole() {
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    for body in [
        overloaded.to_owned(),
        format!("event: error\ndata: {overloaded}\n\n"),
        format!("data:{overloaded}\n\ndata: [DONE]\n\n"),
        format!("{overloaded}\n{{\"done\": true}}\n"),
        format!("\u{feff}\n\n{overloaded}"),
        format!("[{overloaded}]"),
    ] {
        let error = read(400, &body);
        assert_eq!(error.message, "Overloaded", "{body}");
        assert_eq!(error.kind, ErrorKind::Overloaded, "{body}");
    }
    assert_eq!(read(500, "{broken").message, "{broken");
}
