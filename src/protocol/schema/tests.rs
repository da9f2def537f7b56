//! The golden schema and the golden frames: a change to the contract shows in review.
//!
//! `OUTRIGGER_UPDATE=1` rewrites both; a new variant needs a frame in `fixtures/protocol`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::schema;
use crate::protocol::command::examples;
use crate::protocol::envelope::{self, Stamp};
use crate::protocol::{Event, RequestId};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Compares a golden file with what it should hold, or rewrites it.
fn check_golden(path: &Path, value: &Value) {
    let text = format!("{value:#}\n");
    if std::env::var_os("OUTRIGGER_UPDATE").is_some() {
        // Other tests read it meanwhile.
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    } else {
        let golden = fs::read_to_string(path).unwrap_or_default();
        assert!(
            golden == text,
            "{} is out of date; look at the change and run with OUTRIGGER_UPDATE=1",
            path.display()
        );
    }
}

/// Every type of a direction, from the schema.
fn kinds(direction: &str) -> BTreeSet<String> {
    let schema = schema();
    let frames = schema["$defs"][direction]["oneOf"].as_array().unwrap();
    frames
        .iter()
        .map(|frame| frame["title"].as_str().unwrap().to_owned())
        .collect()
}

/// Golden frames by their type.
fn frames() -> Vec<(String, PathBuf, Value)> {
    let mut frames: Vec<_> = fs::read_dir(fixtures().join("protocol"))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let frame: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            (frame["type"].as_str().unwrap().to_owned(), path, frame)
        })
        .collect();
    frames.sort_by(|a, b| a.0.cmp(&b.0));
    frames
}

fn validator() -> jsonschema::Validator {
    jsonschema::draft202012::new(&schema()).unwrap()
}

#[test]
fn the_golden_schema_is_current() {
    check_golden(&fixtures().join("schema/protocol.schema.json"), &schema());
}

#[test]
fn the_types_of_the_client_are_made_of_the_golden_schema() {
    let schema = Sha256::digest(format!("{:#}\n", schema()));
    let types = include_str!("../../../clients/typescript/src/protocol.ts");
    assert!(
        types.contains(&data_encoding::HEXLOWER.encode(&schema)),
        "run npm install && npm run build in clients/typescript"
    );
}

#[test]
fn the_schema_is_one_by_its_own_standard() {
    jsonschema::draft202012::meta::validate(&schema()).unwrap();
}

#[test]
fn every_type_has_its_golden_frame() {
    let frames = frames();
    let there: BTreeSet<String> = frames.iter().map(|(kind, ..)| kind.clone()).collect();
    let mut needed = kinds("ClientFrame");
    needed.extend(kinds("ServerFrame"));
    assert_eq!(there, needed);
    for (kind, path, _) in frames {
        let name = format!("{}.json", kind.replace(':', "-"));
        assert_eq!(path.file_name().unwrap().to_str(), Some(name.as_str()));
    }
}

#[test]
fn every_golden_frame_survives_the_round_trip() {
    let requests = kinds("ClientFrame");
    for (kind, path, frame) in frames() {
        let again = match requests.contains(&kind) {
            true => read_and_written(&frame),
            false => parsed_and_written(&frame),
        };
        check_golden(&path, &again);
    }
}

/// A request through the daemon's reader, and written again as a client would.
fn read_and_written(frame: &Value) -> Value {
    let request = envelope::read(&frame.to_string()).unwrap().unwrap();
    let command = serde_json::to_value(&request.command).unwrap();
    let mut again = serde_json::Map::new();
    again.insert("type".to_owned(), command["type"].clone());
    let id = request.id.unwrap().to_string();
    again.insert("id".to_owned(), serde_json::from_str(&id).unwrap());
    again.insert("payload".to_owned(), command["payload"].clone());
    again.into()
}

/// An event as a client would parse it, and through the daemon's writer.
fn parsed_and_written(frame: &Value) -> Value {
    let event: Event = serde_json::from_value(frame.clone()).unwrap();
    let reply_to = frame
        .get("replyTo")
        .map(|id| RequestId::from(id.as_str().unwrap()));
    let written = envelope::write(
        &event,
        &Stamp {
            seq: frame["seq"].as_u64(),
            reply_to: reply_to.as_ref(),
            timestamp: frame["timestamp"].as_str().unwrap().parse().unwrap(),
            task: None,
        },
    );
    serde_json::from_str(&written).unwrap()
}

#[test]
fn the_schema_accepts_every_golden_frame_and_every_example() {
    let validator = validator();
    let examples =
        examples().map(|(kind, text)| (kind.to_owned(), serde_json::from_str(text).unwrap()));
    let golden = frames().into_iter().map(|(kind, _, frame)| (kind, frame));
    for (kind, frame) in examples.chain(golden) {
        let wrong: Vec<String> = validator
            .iter_errors(&frame)
            .map(|error| error.to_string())
            .collect();
        assert!(wrong.is_empty(), "{kind}: {wrong:?}\n{frame:#}");
    }
}

#[test]
fn the_schema_accepts_the_short_form() {
    let requests = kinds("ClientFrame");
    let validator = validator();
    for (kind, _, frame) in frames() {
        if !requests.contains(&kind) {
            continue;
        }
        let mut flat = frame["payload"].as_object().unwrap().clone();
        flat.insert("type".to_owned(), frame["type"].clone());
        assert!(validator.is_valid(&flat.into()), "{kind}");
    }
}

#[test]
fn the_schema_accepts_what_the_daemon_accepts() {
    let cases = [
        r#"{"type":"session:ping","payload":"x"}"#,
        r#"{"type":"session:ping","payload":[1]}"#,
        r#"{"type":"tool:metrics","x":1}"#,
        r#"{"type":"chat:tool-approve","tool_id":"t1","approved":true}"#,
        r#"{"type":"session:resume","session_id":"s","last_seq":4}"#,
        r#"{"type":"tool:status","payload":{"tool_id":"t1"}}"#,
        r#"{"type":"tool:output","tool_id":"t1"}"#,
    ];
    let validator = validator();
    for case in cases {
        assert!(envelope::read(case).is_ok(), "{case}");
        let frame: Value = serde_json::from_str(case).unwrap();
        assert!(validator.is_valid(&frame), "{case}");
    }
}

#[test]
fn the_schema_refuses_what_the_daemon_refuses_or_never_writes() {
    let cases = [
        r#"{}"#,
        r#"[]"#,
        r#"{"type":"chat:sned","content":"hi"}"#,
        r#"{"type":"chat:send"}"#,
        r#"{"type":"chat:send","content":7}"#,
        r#"{"type":"chat:send","payload":{},"content":"hi"}"#,
        r#"{"type":"chat:send","payload":"hi"}"#,
        r#"{"type":"chat:send","id":{},"content":"hi"}"#,
        r#"{"type":"tool:status"}"#,
        r#"{"type":"tool:status","tool_id":7}"#,
        r#"{"type":"chat:tool-approve","tool_id":"t1"}"#,
        r#"{"type":"session:configure","trustLevel":"bold"}"#,
        // An event without its number, and one with a `null`.
        r#"{"type":"chat:tool-delta","seq":1,"timestamp":"2026-11-20T12:00:00.123Z","payload":{"conversationId":"default","messageId":"m1","toolId":"t1","chunk":null,"stream":"stdout"}}"#,
        r#"{"type":"chat:state","seq":1,"timestamp":"2026-11-20T12:00:00.123Z","payload":{"conversationId":"default","state":"idle","messageId":null}}"#,
    ];
    let validator = validator();
    for case in cases {
        let frame: Value = serde_json::from_str(case).unwrap();
        assert!(!validator.is_valid(&frame), "{case}");
    }
}
