//! Each fault and what the client is to see of it.

use serde_json::{Value, json};

use super::answers::{begun, broken_frame, good, gzip, half_a_call, hello, refusal, silent, whole};
use crate::support::server::Answer;
use crate::support::wire::Wire;

/// A fault of one wire format.
pub(crate) struct Fault {
    pub(crate) name: String,
    pub(crate) wire: Wire,
    /// The provider's answers; the last for ever.
    pub(crate) answers: Vec<Answer>,
    /// Whether nobody listens at all.
    pub(crate) refused: bool,
    /// More settings of the instance.
    pub(crate) settings: Value,
    /// What the client sees.
    pub(crate) seen: String,
    /// How often the provider is asked; see [`ANY`].
    pub(crate) requests: usize,
}

/// Stands for a number that depends on how fast the machine is: a client that gives up early may do so
/// before the server has read its request.
pub(crate) const ANY: usize = usize::MAX;

/// The rows of one wire format.
pub(super) struct Rows {
    pub(super) wire: Wire,
    pub(super) key: String,
    rows: Vec<Fault>,
}

/// All faults of a wire format. `key` is the key that the provider is called with.
pub(crate) fn faults(wire: Wire, key: &str) -> Vec<Fault> {
    let mut rows = Rows {
        wire,
        key: key.to_owned(),
        rows: Vec::new(),
    };
    rows.connections();
    rows.stalls();
    rows.inside_a_call();
    rows.bodies();
    rows.statuses();
    rows.delays();
    rows.errors_in_the_stream();
    rows.secrets();
    rows.rows
}

const ANSWERED: &str = "responding, text Hello, usage, end end_turn, idle";

impl Rows {
    pub(super) fn add(
        &mut self,
        name: &str,
        answers: Vec<Answer>,
        seen: String,
        requests: usize,
    ) -> &mut Fault {
        self.rows.push(Fault {
            name: format!("{}-{name}", self.wire.name()),
            wire: self.wire,
            answers,
            refused: false,
            settings: json!({}),
            seen,
            requests,
        });
        self.rows.last_mut().unwrap()
    }

    /// Sets more of the instance of a row.
    pub(super) fn set(&mut self, name: &str, settings: Value) {
        let name = format!("{}-{name}", self.wire.name());
        let row = self.rows.iter_mut().find(|row| row.name == name);
        row.unwrap().settings = settings;
    }

    /// A fault that is not tried again.
    pub(super) fn fatal(&mut self, name: &str, answer: Answer, error: &str) -> &mut Fault {
        self.add(
            name,
            vec![answer],
            format!("start, thinking, error {error}, end error, idle"),
            1,
        )
    }

    /// A fault before any output: tried again in silence, emitted when it comes back.
    pub(super) fn passing(&mut self, name: &str, answer: Answer, error: &str) {
        let again = "start, thinking, retrying 2, thinking";
        let seen = format!("{again}, error {error}, end error, idle");
        self.add(name, vec![answer.clone()], seen, 2);
        let good = good(self.wire);
        self.add(
            &format!("{name}-once"),
            vec![answer, good],
            format!("{again}, {ANSWERED}"),
            2,
        );
    }

    /// A fault after output: the turn is discarded and run again.
    pub(super) fn breaking(&mut self, name: &str, answer: Answer, shown: &str, error: &str) {
        let again = format!("start, thinking, {shown}, discarded, retrying 2, thinking");
        let result = if shown.contains("input") {
            "result error, tool-completed, "
        } else {
            ""
        };
        let seen = format!("{again}, {shown}, {result}error {error}, end error partial, idle");
        self.add(name, vec![answer.clone()], seen, 2);
        let good = good(self.wire);
        self.add(
            &format!("{name}-once"),
            vec![answer, good],
            format!("{again}, {ANSWERED}"),
            2,
        );
    }

    fn fine(&mut self, name: &str, answer: Answer) {
        self.add(
            name,
            vec![answer],
            format!("start, thinking, {ANSWERED}"),
            1,
        );
    }

    fn connections(&mut self) {
        let wire = self.wire;
        let broken = "provider_protocol retryable";
        let row = self.add(
            "refused",
            Vec::new(),
            "start, thinking, retrying 2, thinking, error provider_unavailable retryable, end error, idle"
                .to_owned(),
            0,
        );
        row.refused = true;
        let reset = Answer::default().reset();
        self.passing(
            "reset-before-headers",
            reset,
            "provider_unavailable retryable",
        );
        self.passing(
            "closed-before-headers",
            Answer::default(),
            "provider_unavailable retryable",
        );
        self.passing("broken-after-headers", Answer::chunked(wire), broken);
        self.passing("ended-after-headers", Answer::stream(wire), broken);
        let silent = Answer::stream(wire).frames(&silent(wire));
        self.passing("ended-before-output", silent, broken);
        let begun = begun(wire).concat();
        let shown = "responding, text He";
        let reset = Answer::chunked(wire).chunk(&begun).shown().reset();
        self.breaking("reset-after-delta", reset, shown, broken);
        self.breaking(
            "broken-after-delta",
            Answer::chunked(wire).chunk(&begun),
            shown,
            broken,
        );
        self.breaking(
            "ended-after-delta",
            Answer::stream(wire).bytes(&begun),
            shown,
            broken,
        );
        let half = half_a_call(wire);
        if wire == Wire::Ollama {
            // A call is one line: half of it is nothing.
            self.passing(
                "broken-in-a-call",
                Answer::chunked(wire).chunk(&half),
                broken,
            );
            self.passing("ended-in-a-call", Answer::stream(wire).bytes(&half), broken);
        } else {
            let shown = r#"planned, input {"path":"#;
            let reset = Answer::chunked(wire).chunk(&half).shown().reset();
            self.breaking("reset-in-a-call", reset, shown, broken);
            self.breaking(
                "ended-in-a-call",
                Answer::stream(wire).bytes(&half),
                shown,
                broken,
            );
        }
    }

    /// Stalls are run once: a time-out that is short enough for a test is too short for a good answer.
    fn stalls(&mut self) {
        let wire = self.wire;
        let late = "error provider_timeout retryable";
        let again = "start, thinking, retrying 2, thinking";
        let never = Answer::default().stall();
        let row = self.add(
            "stall-before-headers",
            vec![never],
            format!("{again}, {late}, end error, idle"),
            2,
        );
        row.settings = json!({"timeout_first_byte": "200ms"});
        row.requests = ANY;
        let silent = Answer::stream(wire).frames(&silent(wire)).stall();
        let row = self.add(
            "stall-before-output",
            vec![silent],
            format!("{again}, {late}, end error, idle"),
            2,
        );
        row.settings = json!({"timeout_idle": "200ms"});
        let begun = Answer::stream(wire).frames(&begun(wire)).stall();
        let said = "thinking, responding, text He";
        let seen = format!(
            "start, {said}, discarded, retrying 2, {said}, {late}, end error partial, idle"
        );
        let row = self.add("stall-after-delta", vec![begun], seen, 2);
        row.settings = json!({"timeout_idle": "200ms"});
    }

    fn bodies(&mut self) {
        let wire = self.wire;
        let typed = |kind: &str, body: &str| Answer::plain(200, &[("content-type", kind)], body);
        let stream = hello(wire).concat();
        self.fine("whole-answer", whole(wire));
        for kind in [
            "text/plain",
            "application/json",
            "text/html",
            "application/octet-stream",
        ] {
            let name = format!("wrong-type-{}", kind.replace('/', "-"));
            self.fine(&name, typed(kind, &stream));
        }
        self.fine("no-type", Answer::plain(200, &[], &stream));
        let marked = format!("\u{feff}\r\n{}", stream.replace('\n', "\r\n"));
        self.fine("mark-and-returns", typed(wire.content_type(), &marked));
        let packed = [
            ("content-type", wire.content_type()),
            ("content-encoding", "gzip"),
        ];
        self.fine(
            "packed",
            Answer::plain(200, &packed, gzip(stream.as_bytes())),
        );
        let fault = "provider_protocol";
        let page = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>";
        self.fatal("page", typed("text/html; charset=utf-8", page), fault);
        self.fatal("page-as-stream", typed(wire.content_type(), page), fault);
        self.fatal("text", typed("text/plain", "upstream says no"), fault);
        let garbage: Vec<u8> = (1..=255).cycle().take(4096).collect();
        self.fatal("garbage", Answer::plain(200, &[], &garbage), fault);
        self.fatal(
            "broken-json",
            typed("application/json", "{\"choices\": [}\n"),
            fault,
        );
        self.passing(
            "empty-body",
            typed(wire.content_type(), ""),
            "provider_protocol retryable",
        );
        let broken = Answer::stream(wire)
            .frames(&silent(wire))
            .bytes(broken_frame(wire));
        self.fatal("broken-frame", broken, fault);
        let broken = Answer::stream(wire)
            .frames(&begun(wire))
            .bytes(broken_frame(wire));
        let seen =
            format!("start, thinking, responding, text He, error {fault}, end error partial, idle");
        self.add("broken-frame-after-delta", vec![broken], seen, 1);
    }

    fn statuses(&mut self) {
        let wire = self.wire;
        for (status, kind, code) in [
            (400, "invalid_request_error", "provider_invalid_request"),
            (401, "authentication_error", "provider_auth"),
            (402, "billing_error", "provider_quota"),
            (403, "permission_error", "provider_auth"),
            (404, "not_found_error", "provider_invalid_request"),
            (409, "conflict_error", "provider_unavailable"),
            (413, "request_too_large", "provider_invalid_request"),
            (422, "invalid_request_error", "provider_invalid_request"),
            (501, "api_error", "provider_unavailable"),
        ] {
            let answer = Answer::json(status, &refusal(wire, kind, "the model test-model says no"));
            self.fatal(
                &format!("status-{status}"),
                answer,
                &format!("{code} {status}"),
            );
        }
        for (status, kind, code) in [
            (408, "timeout_error", "provider_timeout"),
            (500, "api_error", "provider_unavailable"),
            (502, "api_error", "provider_unavailable"),
            (503, "api_error", "provider_overloaded"),
            (504, "timeout_error", "provider_unavailable"),
            (524, "timeout_error", "provider_unavailable"),
            (529, "overloaded_error", "provider_overloaded"),
        ] {
            let answer = Answer::json(status, &refusal(wire, kind, "not now"));
            self.passing(
                &format!("status-{status}"),
                answer,
                &format!("{code} {status} retryable"),
            );
        }
        let page = Answer::plain(
            502,
            &[("content-type", "text/html")],
            "<html><title>Bad gateway</title>",
        );
        self.passing("page-502", page, "provider_unavailable 502 retryable");
        let moved = Answer::plain(302, &[("location", "http://127.0.0.1:9/elsewhere")], "");
        self.fatal("moved", moved, "provider_protocol 302");
        let long = refusal(
            wire,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
        );
        self.fatal("overflow", Answer::json(400, &long), "context_overflow 400");
        let word = [
            ("x-should-retry", "false"),
            ("content-type", "application/json"),
        ];
        let body = refusal(wire, "api_error", "for ever").to_string();
        self.fatal(
            "asks-for-no-retry",
            Answer::plain(500, &word, body),
            "provider_unavailable 500",
        );
        let word = [
            ("x-should-retry", "true"),
            ("content-type", "application/json"),
        ];
        let body = refusal(wire, "conflict_error", "locked").to_string();
        self.passing(
            "asks-for-retry",
            Answer::plain(409, &word, body),
            "provider_unavailable 409 retryable",
        );
    }
}
