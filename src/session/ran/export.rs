//! Execution records as texts for other programs: JSON lines, and comma-separated values. Pure.

use std::borrow::Cow;

use serde_json::Value;

use crate::protocol::record::ExecutionRecord;
use crate::protocol::word;
use crate::telemetry::Redactor;

/// The names of the columns, in the order of [`cells`].
const COLUMNS: [&str; 23] = [
    "sessionId",
    "conversationId",
    "toolId",
    "startedAt",
    "toolName",
    "provider",
    "model",
    "status",
    "exitCode",
    "durationMs",
    "queuedMs",
    "cpuMs",
    "maxRssBytes",
    "inputBytes",
    "stdoutBytes",
    "stderrBytes",
    "truncated",
    "danger",
    "asked",
    "outcome",
    "sandbox",
    "commands",
    "input",
];

/// Takes secrets out of what the model wrote: a file goes further than an answer.
pub(super) fn clean(record: &mut ExecutionRecord, redactor: &Redactor) {
    let mut input = Value::Object(std::mem::take(&mut record.input));
    redactor.redact_value_for_record(&mut input);
    if let Value::Object(input) = input {
        record.input = input;
    }
    for reason in &mut record.danger.reasons {
        redact(reason, redactor);
    }
    if let Some(background) = &mut record.background {
        redact(&mut background.command, redactor);
    }
}

fn redact(text: &mut String, redactor: &Redactor) {
    if let Cow::Owned(clean) = redactor.redact_for_record(text) {
        *text = clean;
    }
}

/// Returns one record a line.
pub(super) fn json_lines(records: &[ExecutionRecord]) -> String {
    let mut text = String::new();
    for record in records {
        // Records are read from JSON, or were written before.
        text.push_str(&serde_json::to_string(record).unwrap_or_default());
        text.push('\n');
    }
    text
}

/// Returns one record a line as RFC 4180 has it, with a line of names before the first.
pub(super) fn csv(records: &[ExecutionRecord], is_first: bool) -> String {
    let mut text = String::new();
    if is_first {
        line(&mut text, COLUMNS.map(|name| Cell::Plain(name.to_owned())));
    }
    for record in records {
        line(&mut text, cells(record));
    }
    text
}

/// One field of a line.
enum Cell {
    /// A number, or a word of ours: it is written as it is.
    Plain(String),
    /// A text that others chose.
    Text(String),
}

fn cells(record: &ExecutionRecord) -> [Cell; COLUMNS.len()] {
    let text = |text: &str| Cell::Text(text.to_owned());
    let number = |number: u64| Cell::Plain(number.to_string());
    let plain = |figure: Option<String>| Cell::Plain(figure.unwrap_or_default());
    let used = record.resources;
    [
        text(record.session_id.as_ref().map_or("", |id| id.as_str())),
        text(record.conversation_id.as_str()),
        text(record.tool_id.as_str()),
        text(&record.started_at),
        text(&record.tool_name),
        text(&record.provider),
        text(&record.model),
        Cell::Plain(word(&record.status)),
        plain(record.exit_code.map(|code| code.to_string())),
        number(record.duration_ms),
        number(record.queued_ms),
        plain(used.map(|it| it.cpu_ms.to_string())),
        plain(used.map(|it| it.max_rss_bytes.to_string())),
        number(record.input_bytes),
        number(record.stdout_bytes),
        number(record.stderr_bytes),
        Cell::Plain(record.truncated.to_string()),
        Cell::Plain(word(&record.danger.level)),
        Cell::Plain(record.approval.asked.to_string()),
        plain(record.approval.outcome.map(|it| word(&it))),
        text(record.sandbox.as_deref().unwrap_or_default()),
        Cell::Text(record.commands.join("; ")),
        Cell::Text(Value::Object(record.input.clone()).to_string()),
    ]
}

fn line(text: &mut String, cells: impl IntoIterator<Item = Cell>) {
    for (index, cell) in cells.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        match cell {
            Cell::Plain(plain) => text.push_str(&plain),
            Cell::Text(chosen) => text.push_str(&quoted(&harmless(chosen))),
        }
    }
    text.push_str("\r\n");
}

/// Returns a text as a spreadsheet takes it for a text: it would run one that begins like a formula.
fn harmless(text: String) -> String {
    match text.chars().next() {
        Some('=' | '+' | '-' | '@' | '\t' | '\r' | '\n' | '＝' | '＋' | '－' | '＠') => {
            format!("'{text}")
        }
        _ => text,
    }
}

fn quoted(text: &str) -> Cow<'_, str> {
    match text.contains(['"', ',', '\r', '\n']) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::message::{ConversationId, Danger, DangerLevel, SessionId, ToolCategory, ToolId};
    use crate::protocol::record::{Approval, ExecutionStatus, Resources};

    fn record(conversation: &str, input: Value) -> ExecutionRecord {
        let Value::Object(input) = input else {
            panic!("an object");
        };
        ExecutionRecord {
            tool_id: ToolId::new("t1"),
            session_id: Some(SessionId::new("-s")),
            conversation_id: ConversationId::new(conversation),
            provider: "p".to_owned(),
            model: "m".to_owned(),
            provider_call_id: None,
            tool_name: "bash".to_owned(),
            input,
            input_bytes: 9,
            commands: vec!["cd".to_owned(), "cargo test".to_owned()],
            category: ToolCategory::Exec,
            danger: Danger {
                level: DangerLevel::Safe,
                reasons: Vec::new(),
            },
            approval: Approval::default(),
            status: ExecutionStatus::Error,
            exit_code: Some(-1),
            stdout_bytes: 1,
            stderr_bytes: 2,
            truncated: false,
            duration_ms: 3,
            queued_ms: 4,
            sandbox: None,
            resources: Some(Resources {
                cpu_ms: 5,
                max_rss_bytes: 6,
            }),
            background: None,
            started_at: "2026-11-20T12:00:00.000Z".to_owned(),
        }
    }

    #[test]
    fn a_text_is_one_field_and_no_formula() {
        for (text, expected) in [
            ("plain", "plain"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("two\r\nlines", "\"two\r\nlines\""),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "\"'\rx\""),
            ("\n=x", "\"'\n=x\""),
            ("＝1", "'＝1"),
            (
                "=HYPERLINK(\"http://x\",\"y\")",
                "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\"",
            ),
            ("a=1", "a=1"),
        ] {
            let mut written = String::new();
            line(
                &mut written,
                [Cell::Text(text.to_owned()), Cell::Plain("-1".to_owned())],
            );
            assert_eq!(written, format!("{expected},-1\r\n"), "{text:?}");
        }
    }

    #[test]
    fn pieces_join_to_one_table() {
        let records = [
            record("=c", json!({"command": "a,b\n"})),
            record("d", json!({})),
        ];
        let text = csv(&records[..1], true) + &csv(&records[1..], false) + &csv(&[], false);
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[0], COLUMNS.join(","));
        assert_eq!(
            lines[1],
            "'-s,'=c,t1,2026-11-20T12:00:00.000Z,bash,p,m,error,-1,3,4,5,6,9,1,2,false,safe,false,,,cd; cargo test,\
             \"{\"\"command\"\":\"\"a,b\\n\"\"}\""
        );
        assert!(lines[2].ends_with(",{}"), "{}", lines[2]);
        assert_eq!(lines[3], "");
        let lines = json_lines(&records);
        let read = lines.lines().map(serde_json::from_str::<ExecutionRecord>);
        assert!(read.map(Result::unwrap).eq(records));
    }

    #[test]
    fn secrets_are_not_in_it() {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let mut secret = record(
            "c",
            json!({"command": ["x hunter2-hunter2"], "hunter2-hunter2": 1}),
        );
        secret.danger.reasons = vec!["`hunter2-hunter2` is it".to_owned()];
        clean(&mut secret, &redactor);
        let text = json_lines(std::slice::from_ref(&secret));
        assert!(!text.contains("hunter2"), "{text}");
        assert_ne!(secret.input, Map::new());
    }
}
