//! What a provider says itself: limits, errors inside of a stream, and its client's key.

use serde_json::json;

use super::answers::{begun, broken_frame, call_frames, error_frame, half_a_call, refusal, silent};
use super::table::Rows;
use crate::support::server::Answer;
use crate::support::wire::{Wire, event};

/// A form of a delay: its name, headers, message, and the milliseconds it comes to.
type Delay<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, Option<u64>);

impl Rows {
    /// 429 with every form of a delay.
    pub(super) fn delays(&mut self) {
        const DATE: (&str, &str) = ("date", "Fri, 20 Nov 2026 12:00:00 GMT");
        let wire = self.wire;
        let answer = |headers: &[(&str, &str)], message: &str| {
            let mut all = vec![("content-type", "application/json")];
            all.extend(headers);
            Answer::plain(
                429,
                &all,
                refusal(wire, "rate_limit_error", message).to_string(),
            )
        };
        let cases: [Delay<'_>; 20] = [
            ("none", &[], "slow down", None),
            (
                "milliseconds",
                &[("retry-after-ms", "40")],
                "slow down",
                Some(40),
            ),
            (
                "fraction",
                &[("retry-after-ms", "40.5")],
                "slow down",
                Some(41),
            ),
            (
                "seconds",
                &[("retry-after", "0.25")],
                "slow down",
                Some(250),
            ),
            ("zero", &[("retry-after", "0")], "slow down", Some(0)),
            (
                "date",
                &[DATE, ("retry-after", "Fri, 20 Nov 2026 12:00:01 GMT")],
                "slow down",
                Some(1000),
            ),
            (
                "past-date",
                &[DATE, ("retry-after", "Fri, 20 Nov 2026 11:00:00 GMT")],
                "slow down",
                Some(0),
            ),
            ("nonsense", &[("retry-after", "soon")], "slow down", None),
            ("negative", &[("retry-after", "-5")], "slow down", None),
            (
                "both",
                &[("retry-after", "7200"), ("retry-after-ms", "30")],
                "slow down",
                Some(30),
            ),
            (
                "go-duration",
                &[("x-ratelimit-reset-requests", "120ms")],
                "slow down",
                Some(120),
            ),
            (
                "longest-limit",
                &[
                    ("x-ratelimit-reset-requests", "1m0s"),
                    ("x-ratelimit-remaining-requests", "12"),
                    ("x-ratelimit-reset-tokens", "150ms"),
                    ("x-ratelimit-remaining-tokens", "0"),
                ],
                "slow down",
                Some(150),
            ),
            (
                "rfc-3339",
                &[
                    DATE,
                    ("anthropic-ratelimit-tokens-reset", "2026-11-20T12:00:00.5Z"),
                ],
                "slow down",
                Some(500),
            ),
            (
                "epoch",
                &[DATE, ("x-ratelimit-reset", "1795176001")],
                "slow down",
                Some(1000),
            ),
            (
                "epoch-ms",
                &[DATE, ("x-ratelimit-reset", "1795176000300")],
                "slow down",
                Some(300),
            ),
            (
                "in-words",
                &[],
                "Rate limit reached. Please try again in 28ms.",
                Some(28),
            ),
            (
                "long-words",
                &[],
                "Please try again in 6m0s.",
                Some(360_000),
            ),
            (
                "long-seconds",
                &[("retry-after", "7999")],
                "slow down",
                Some(7_999_000),
            ),
            (
                "long-date",
                &[DATE, ("retry-after", "Fri, 20 Nov 2026 14:00:00 GMT")],
                "slow down",
                Some(7_200_000),
            ),
            (
                "just-too-long",
                &[("retry-after", "121")],
                "slow down",
                Some(121_000),
            ),
        ];
        for (name, headers, message, delay) in cases {
            let after = delay
                .map(|delay| format!(" after {delay}"))
                .unwrap_or_default();
            let error = format!("provider_rate_limited 429 retryable{after}");
            let name = format!("limited-{name}");
            if delay.is_some_and(|delay| delay > 120_000) {
                self.fatal(&name, answer(headers, message), &error);
            } else {
                self.passing(&name, answer(headers, message), &error);
            }
        }
        self.add(
            "limited-for-money",
            vec![Answer::json(
                429,
                &json!({"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota",
                    "message": "You exceeded your current quota"}}),
            )],
            "start, thinking, error provider_quota 429, end error, idle".to_owned(),
            1,
        );
    }

    /// Silence, garbage and an error amid the input of a call, which never runs.
    pub(super) fn inside_a_call(&mut self) {
        let wire = self.wire;
        let half = half_a_call(wire);
        let begun = || Answer::stream(wire).bytes(&half);
        let late = "error provider_timeout retryable";
        let result = "result error, tool-completed";
        let shown = r#"thinking, planned, input {"path":"#;
        let frame = error_frame(wire, "overloaded_error", "Overloaded");
        if wire == Wire::Ollama {
            // A call is one line: half of it is nothing, and an error can only come after it.
            let again = "start, thinking, retrying 2, thinking";
            let seen = format!("{again}, {late}, end error, idle");
            self.add("stall-in-a-call", vec![begun().stall()], seen, 2);
            self.fatal(
                "garbage-in-a-call",
                begun().bytes("}oops\n"),
                "provider_protocol",
            );
            let whole = call_frames(wire).remove(0);
            let answer = Answer::stream(wire).bytes(whole).bytes(&frame);
            let shown = r#"planned, input {"path":"a.txt"}"#;
            self.breaking(
                "error-in-a-call",
                answer,
                shown,
                "provider_overloaded retryable",
            );
        } else {
            let seen = format!(
                "start, {shown}, discarded, retrying 2, {shown}, {result}, {late}, end error partial, idle"
            );
            self.add("stall-in-a-call", vec![begun().stall()], seen, 2);
            let garbage = begun().bytes(broken_frame(wire));
            let seen = format!(
                "start, {shown}, {result}, error provider_protocol, end error partial, idle"
            );
            self.add("garbage-in-a-call", vec![garbage], seen, 1);
            let shown = r#"planned, input {"path":"#;
            self.breaking(
                "error-in-a-call",
                begun().bytes(&frame),
                shown,
                "provider_overloaded retryable",
            );
        }
        self.set("stall-in-a-call", json!({"timeout_idle": "200ms"}));
    }

    pub(super) fn errors_in_the_stream(&mut self) {
        let wire = self.wire;
        let cases: &[(&str, &str, &str, &str, bool)] = &[
            (
                "overloaded",
                "overloaded_error",
                "Overloaded",
                "provider_overloaded",
                true,
            ),
            (
                "limited",
                "rate_limit_error",
                "rate limit reached, try again in 28ms",
                "provider_rate_limited",
                true,
            ),
            (
                "quota",
                "insufficient_quota",
                "insufficient quota, look at your billing details",
                "provider_quota",
                false,
            ),
            (
                "overflow",
                "invalid_request_error",
                "prompt is too long: 3 tokens > 2 maximum",
                "context_overflow",
                false,
            ),
        ];
        for (name, kind, message, code, passes) in cases {
            let after = if message.contains("28ms") {
                " after 28"
            } else {
                ""
            };
            let frame = error_frame(wire, kind, message);
            let early = Answer::stream(wire).frames(&silent(wire)).bytes(&frame);
            let late = Answer::stream(wire).frames(&begun(wire)).bytes(&frame);
            let said = "responding, text He";
            if *passes {
                self.passing(
                    &format!("early-{name}"),
                    early,
                    &format!("{code} retryable{after}"),
                );
                self.breaking(
                    &format!("late-{name}"),
                    late,
                    said,
                    &format!("{code} retryable{after}"),
                );
            } else {
                self.fatal(&format!("early-{name}"), early, code);
                let seen =
                    format!("start, thinking, {said}, error {code}, end error partial, idle");
                self.add(&format!("late-{name}"), vec![late], seen, 1);
            }
        }
        let flat =
            json!({"type": "error", "code": "server_error", "message": "sorry", "param": null});
        let failed = json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": "rate_limit_exceeded", "message": "Please try again in 1ms."}}});
        let frames: &[(&str, String, &str)] = match wire {
            Wire::Responses => &[
                ("flat", event(&flat), "provider_unavailable retryable"),
                ("failed", event(&failed), "provider_rate_limited retryable after 1"),
            ],
            Wire::Chat => &[
                ("named", "event: error\ndata: {\"code\": 503, \"details\": \"full\"}\n\n".to_owned(), "provider_overloaded retryable"),
                ("finish", "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"error\"}]}\n\n".to_owned(), "provider_unavailable retryable"),
            ],
            Wire::Anthropic => &[(
                "unnamed",
                "data: {\"type\": \"error\", \"error\": {\"type\": \"api_error\", \"message\": \"sorry\"}}\n\n".to_owned(),
                "provider_unavailable retryable",
            )],
            Wire::Ollama => &[(
                "lost-runner",
                "{\"message\": {\"content\": \"\"}, \"done\": true, \"done_reason\": \"\"}\n".to_owned(),
                "provider_protocol retryable",
            )],
        };
        for (name, frame, error) in frames {
            self.passing(
                &format!("early-{name}"),
                Answer::stream(wire).bytes(frame),
                error,
            );
        }
        let whole = Answer::json(200, &refusal(wire, "overloaded_error", "Overloaded"));
        self.passing("error-with-200", whole, "provider_overloaded retryable");
    }

    /// Errors that repeat the key.
    pub(super) fn secrets(&mut self) {
        let wire = self.wire;
        let complaint = format!("the key {0} is no good: Bearer {0}", self.key);
        let body = refusal(wire, "authentication_error", &complaint);
        self.fatal("key-in-401", Answer::json(401, &body), "provider_auth 401");
        let page = format!("<html><title>{complaint}</title></html>");
        let page = Answer::plain(200, &[("content-type", "text/html")], page);
        self.fatal("key-in-a-page", page, "provider_protocol");
        let text = Answer::plain(500, &[("content-type", "text/plain")], &complaint);
        self.passing("key-in-500", text, "provider_unavailable 500 retryable");
        let frame = error_frame(
            wire,
            "invalid_request_error",
            &format!("prompt is too long: {complaint}"),
        );
        let early = Answer::stream(wire).frames(&silent(wire)).bytes(&frame);
        self.fatal("key-in-the-stream", early, "context_overflow");
        let late = error_frame(
            wire,
            "overloaded_error",
            &format!("Overloaded: {complaint}"),
        );
        let late = Answer::stream(wire).frames(&begun(wire)).bytes(&late);
        self.breaking(
            "key-after-delta",
            late,
            "responding, text He",
            "provider_overloaded retryable",
        );
    }
}
