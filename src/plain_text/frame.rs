//! A frame of the daemon as this client reads it. Pure.

use serde_json::Value;

use crate::protocol::Event;

/// A frame that this client knows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    /// Its number in the session; absent for the `session:ready` of a resumed socket.
    pub(crate) seq: Option<u64>,
    /// The request of this client that it answers.
    pub(crate) reply_to: Option<u64>,
    pub(crate) event: Event,
}

impl Frame {
    /// Reads a frame; `None` for one that this client does not know, as the contract wants it.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let frame: Value = serde_json::from_str(text).ok()?;
        let seq = frame.get("seq").and_then(Value::as_u64);
        let reply_to = frame.get("replyTo").and_then(Value::as_str);
        let reply_to = reply_to.and_then(number_of);
        let event = serde_json::from_value(frame)
            .inspect_err(|error| tracing::debug!(%error, "a frame that is not known"))
            .ok()?;
        Some(Self {
            seq,
            reply_to,
            event,
        })
    }
}

/// Returns the id of a request on the wire.
pub(crate) fn request_id(number: u64) -> String {
    format!("c{number}")
}

/// Returns the number in a request's id.
fn number_of(id: &str) -> Option<u64> {
    id.strip_prefix('c')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::command::Empty;

    #[test]
    fn frames_are_read_and_unknown_ones_left() {
        let pong = |seq, reply_to| {
            Some(Frame {
                seq,
                reply_to,
                event: Event::SessionPingResult(Empty {}),
            })
        };
        let cases = [
            (
                r#"{"type":"session:ping-result","seq":7,"replyTo":"c3","timestamp":"","payload":{}}"#,
                pong(Some(7), Some(3)),
            ),
            (
                r#"{"type":"session:ping-result","replyTo":"x","new":1,"payload":{"new":1}}"#,
                pong(None, None),
            ),
            (r#"{"type":"chat:new-thing","seq":8,"payload":{}}"#, None),
            (r#"{"type":"chat:text-delta","seq":8,"payload":{}}"#, None),
            ("[]", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Frame::read(text), expected, "{text}");
        }
    }

    #[test]
    fn ids_of_requests_are_read_back() {
        for (text, expected) in [
            ("c1", Some(1)),
            ("c18446744073709551615", Some(u64::MAX)),
            ("c", None),
            ("x1", None),
            ("c1x", None),
        ] {
            assert_eq!(number_of(text), expected, "{text}");
        }
    }
}
