//! JSON-RPC 2.0 as the protocol has it: one object a line, no batches. Pure.

use serde_json::{Map, Value, json};

use crate::protocol::SessionCode;
use crate::protocol::event::SessionError;

/// Codes of errors: those of JSON-RPC, and two of the protocol.
mod code {
    pub(super) const PARSE: i64 = -32_700;
    pub(super) const INVALID_REQUEST: i64 = -32_600;
    pub(super) const METHOD_NOT_FOUND: i64 = -32_601;
    pub(super) const INVALID_PARAMS: i64 = -32_602;
    pub(super) const INTERNAL: i64 = -32_603;
    pub(super) const NOT_FOUND: i64 = -32_002;
}

/// The id of a request: text, a number or null, given back as it came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Id(Value);

impl Id {
    pub(super) const NULL: Self = Self(Value::Null);

    fn read(value: Value) -> Option<Self> {
        let is_id = match &value {
            Value::Null | Value::String(_) => true,
            Value::Number(number) => number.is_i64() || number.is_u64(),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
        };
        is_id.then_some(Self(value))
    }

    /// Returns whether this is the id that a client wrote.
    pub(super) fn is(&self, value: &Value) -> bool {
        self.0 == *value
    }
}

/// What a client wrote.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Incoming {
    Request {
        id: Id,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// The answer to a request of ours, by its id.
    Answer {
        id: String,
        outcome: Result<Value, Value>,
    },
    /// An answer to nothing that was asked.
    Stray(Id),
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RpcError {
    code: i64,
    message: String,
    /// What to do, where the message does not say.
    hint: Option<String>,
}

impl RpcError {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    pub(super) fn no_method(method: &str) -> Self {
        Self::new(
            code::METHOD_NOT_FOUND,
            format!("there is no method `{method}`"),
        )
    }

    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    pub(super) fn no_session(id: &str) -> Self {
        Self::new(
            code::NOT_FOUND,
            format!(
                "no session `{id}` is here; session/list says which are kept, session/new makes one"
            ),
        )
    }

    /// Returns an error that happened here: what happened, and what to do.
    pub(super) fn internal(message: impl Into<String>, hint: Option<&str>) -> Self {
        Self {
            hint: hint.map(str::to_owned),
            ..Self::new(code::INTERNAL, message)
        }
    }

    /// Returns it as the protocol has it; `data.details` is what clients show.
    pub(super) fn json(&self) -> Value {
        let details = match &self.hint {
            Some(hint) => format!("{}\n{hint}", self.message),
            None => self.message.clone(),
        };
        json!({"code": self.code, "message": self.message, "data": { "details": details }})
    }
}

impl From<SessionError> for RpcError {
    fn from(error: SessionError) -> Self {
        let hint = match error.code {
            SessionCode::SessionNotFound => return Self::new(code::NOT_FOUND, error.message),
            SessionCode::InvalidPayload => return Self::invalid_params(error.message),
            SessionCode::RateLimited => Some("wait a little and try again"),
            SessionCode::ShuttingDown => Some("start the agent again"),
            _ => None,
        };
        Self::internal(error.message, hint)
    }
}

/// Reads a line. An error has the id of whom to answer.
pub(super) fn read(line: &str) -> Result<Incoming, Box<(Id, RpcError)>> {
    let value: Value = serde_json::from_str(line).map_err(|error| {
        let error = RpcError::new(code::PARSE, format!("no JSON: {error}"));
        Box::new((Id::NULL, error))
    })?;
    let refused = |id: Id, message: &str| Err(Box::new((id, RpcError::invalid_request(message))));
    let Value::Object(mut frame) = value else {
        let message = match value {
            Value::Array(_) => "batches are no part of the protocol; send one request a line",
            _ => "a request is a JSON object",
        };
        return refused(Id::NULL, message);
    };
    let id = match frame.remove("id").map(Id::read) {
        None => None,
        Some(Some(id)) => Some(id),
        Some(None) => return refused(Id::NULL, "`id` must be a string, an integer or null"),
    };
    let whom = id.clone().unwrap_or(Id::NULL);
    let Some(method) = frame.remove("method") else {
        return unasked(frame, id).ok_or_else(|| {
            let error = RpcError::invalid_request("`method` is missing");
            Box::new((whom, error))
        });
    };
    if frame.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refused(whom, "`jsonrpc` must be \"2.0\"");
    }
    match (method, id) {
        (Value::String(method), Some(id)) => Ok(Incoming::Request {
            id,
            method,
            params: params(&mut frame),
        }),
        (Value::String(method), None) => Ok(Incoming::Notification {
            method,
            params: params(&mut frame),
        }),
        (_, _) => refused(whom, "`method` must be a string"),
    }
}

/// Reads a frame without a method: an answer, which is never answered itself, however it looks. `None` where nothing says
/// that it is one.
fn unasked(mut frame: Map<String, Value>, id: Option<Id>) -> Option<Incoming> {
    let (result, error) = (frame.remove("result"), frame.remove("error"));
    let is_answer = result.is_some() || error.is_some();
    let outcome = match (result, error.filter(|error| !error.is_null())) {
        (Some(result), None) => Ok(result),
        (_, error) => Err(error.unwrap_or_default()),
    };
    match id {
        // Ids of ours are text.
        Some(Id(Value::String(id))) => Some(Incoming::Answer { id, outcome }),
        id => is_answer.then(|| Incoming::Stray(id.unwrap_or(Id::NULL))),
    }
}

fn params(frame: &mut Map<String, Value>) -> Value {
    let params = frame.remove("params").filter(|it| !it.is_null());
    params.unwrap_or_else(|| json!({}))
}

/// Returns the answer to a request.
pub(super) fn answer(id: &Id, outcome: Result<Value, RpcError>) -> String {
    let Id(id) = id;
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error.json()}),
    }
    .to_string()
}

pub(super) fn request(id: &str, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_request_a_notification_or_an_answer() {
        let id = |value| Id(value);
        let request = |id| Incoming::Request {
            id,
            method: "a".to_owned(),
            params: json!({}),
        };
        for (line, expected) in [
            (
                json!({"jsonrpc": "2.0", "id": 0, "method": "a"}),
                request(id(json!(0))),
            ),
            (
                json!({"jsonrpc": "2.0", "id": "x", "method": "a", "params": {}}),
                request(id(json!("x"))),
            ),
            (
                json!({"jsonrpc": "2.0", "id": null, "method": "a"}),
                request(Id::NULL),
            ),
            (
                json!({"jsonrpc": "2.0", "method": "b", "params": {"c": 1}}),
                Incoming::Notification {
                    method: "b".to_owned(),
                    params: json!({"c": 1}),
                },
            ),
            (
                json!({"jsonrpc": "2.0", "id": "q1", "result": null}),
                Incoming::Answer {
                    id: "q1".to_owned(),
                    outcome: Ok(Value::Null),
                },
            ),
            (
                json!({"jsonrpc": "2.0", "id": "q1", "error": {"code": 1}}),
                Incoming::Answer {
                    id: "q1".to_owned(),
                    outcome: Err(json!({"code": 1})),
                },
            ),
            // As clients write that have both fields always.
            (
                json!({"jsonrpc": "2.0", "id": "q1", "result": {}, "error": null}),
                Incoming::Answer {
                    id: "q1".to_owned(),
                    outcome: Ok(json!({})),
                },
            ),
            // Whatever is no clear yes is a no.
            (
                json!({"id": "q1", "error": null}),
                Incoming::Answer {
                    id: "q1".to_owned(),
                    outcome: Err(Value::Null),
                },
            ),
            (
                json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
                Incoming::Stray(id(json!(1))),
            ),
            (
                json!({"jsonrpc": "2.0", "id": 0, "method": "a", "params": null}),
                request(id(json!(0))),
            ),
        ] {
            assert_eq!(read(&line.to_string()), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_is_neither_is_refused_and_says_why() {
        for (line, id, code, words) in [
            ("{", Id::NULL, -32_700, "no JSON"),
            ("[]", Id::NULL, -32_600, "batches"),
            ("3", Id::NULL, -32_600, "object"),
            (r#"{"id":1,"method":"a"}"#, Id(json!(1)), -32_600, "jsonrpc"),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
                Id::NULL,
                -32_600,
                "`id`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#,
                Id::NULL,
                -32_600,
                "`id`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":2}"#,
                Id(json!(1)),
                -32_600,
                "`method`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1}"#,
                Id(json!(1)),
                -32_600,
                "`method`",
            ),
        ] {
            let (whom, error) = *read(line).unwrap_err();
            assert_eq!((whom, error.code), (id, code), "{line}");
            assert!(error.message.contains(words), "{line}: {error:?}");
        }
    }

    #[test]
    fn each_error_has_details_and_what_to_do_where_that_is_known() {
        let error = RpcError::internal("no", Some("do this"));
        let expected =
            json!({"code": -32_603, "message": "no", "data": {"details": "no\ndo this"}});
        assert_eq!(error.json(), expected);
        let written = answer(&Id(json!(7)), Err(RpcError::no_method("x")));
        let written: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written["error"]["code"], -32_601);
        let details = written["error"]["data"]["details"].as_str().unwrap();
        assert!(details.contains("`x`"), "{written}");
        assert_eq!(written["id"], 7);
    }
}
