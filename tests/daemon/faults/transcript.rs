//! What a client saw of one conversation, as a line of words.

use serde_json::Value;

/// Writes frames as words: `start, thinking, text Hello, usage, end end_turn, idle`. Deltas of one sort
/// in a row are joined.
pub(crate) fn transcript(frames: &[Value]) -> String {
    let mut words: Vec<String> = Vec::new();
    for frame in frames {
        let payload = &frame["payload"];
        let (word, more) = match frame["type"].as_str().unwrap() {
            "chat:stream-start" => ("start".to_owned(), None),
            "chat:state" => (state(payload), None),
            "chat:text-delta" => ("text ".to_owned(), payload["content"].as_str()),
            "chat:thinking-delta" => ("thought ".to_owned(), payload["content"].as_str()),
            "chat:tool-input-delta" => ("input ".to_owned(), payload["chunk"].as_str()),
            "chat:turn-discarded" => ("discarded".to_owned(), None),
            "chat:tool-result" => (format!("result {}", text(&payload["status"])), None),
            "chat:usage" => ("usage".to_owned(), None),
            "chat:error" => (error(payload), None),
            "chat:stream-end" => (end(payload), None),
            other => (other.to_owned(), None),
        };
        match (words.last_mut(), more) {
            (Some(last), Some(more)) if last.starts_with(&word) => last.push_str(more),
            (_, more) => words.push(word + more.unwrap_or_default()),
        }
    }
    words.join(", ")
}

fn state(payload: &Value) -> String {
    match payload["state"].as_str().unwrap() {
        "retrying" => {
            assert!(
                payload["delayMs"].is_u64() && payload["reason"].is_string(),
                "{payload}"
            );
            format!("retrying {}", payload["attempt"])
        }
        "tool-planned" => "planned".to_owned(),
        other => other.to_owned(),
    }
}

fn error(payload: &Value) -> String {
    let mut words = format!("error {}", text(&payload["code"]));
    if let Some(status) = payload.get("httpStatus") {
        words += &format!(" {status}");
    }
    if payload["retryable"] == true {
        words += " retryable";
    }
    if let Some(delay) = payload.get("retryAfterMs") {
        words += &format!(" after {delay}");
    }
    assert!(
        payload["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty()),
        "{payload}"
    );
    words
}

fn end(payload: &Value) -> String {
    let partial = if payload["partial"] == true {
        " partial"
    } else {
        ""
    };
    format!("end {}{partial}", text(&payload["stopReason"]))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
