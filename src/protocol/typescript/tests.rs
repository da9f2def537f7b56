use serde_json::json;

use super::*;
use crate::protocol::schema::schema;

#[test]
fn schemas_become_type_expressions() {
    let cases = [
        (json!({"type": "string"}), "string"),
        (json!({"type": ["integer", "null"]}), "number | null"),
        (json!({"type": ["integer", "number"]}), "number"),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            "string[]",
        ),
        (
            json!({"type": "array", "items": {"type": ["string", "null"]}}),
            "(string | null)[]",
        ),
        (json!({"type": "array"}), "unknown[]"),
        (json!({"$ref": "#/$defs/Part", "description": "x"}), "Part"),
        (
            json!({"anyOf": [{"$ref": "#/$defs/Part"}, {"type": "null"}]}),
            "Part | null",
        ),
        (json!({"const": "a\"b"}), r#""a\"b""#),
        (json!({"enum": ["a", "b", 1]}), r#""a" | "b" | 1"#),
        (json!({"type": "object"}), "Record<string, unknown>"),
        (
            json!({"type": "object", "additionalProperties": {"$ref": "#/$defs/X"}}),
            "Record<string, X>",
        ),
        (
            json!({"type": "object", "additionalProperties": true}),
            "Record<string, unknown>",
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {
                "a": {"const": 1, "description": "d"}, "b-c": {"type": "boolean"}}}),
            r#"{ a: 1; "b-c"?: boolean; }"#,
        ),
        (json!({}), "unknown"),
        (json!(true), "unknown"),
        (json!({"type": "other"}), "unknown"),
    ];
    for (schema, expected) in cases {
        assert_eq!(expression(&schema), expected, "{schema}");
    }
}

#[test]
fn declarations_keep_their_comments() {
    let object = json!({"type": "object", "description": "A thing.\n\nMore */ of it.",
        "properties": {"id": {"type": "string", "description": "Its id."}, "n": {"type": "number"}},
        "required": ["id"]});
    assert_eq!(
        declaration("Thing", &object),
        "\n/**\n * A thing.\n *\n * More *\\/ of it.\n */\nexport interface Thing {\n  /** Its id. */\n  id: string;\n  n?: number;\n}\n"
    );
    let words = json!({"oneOf": [
        {"const": "a", "description": "First."}, {"const": "b", "description": "Second."}]});
    assert_eq!(
        declaration("Word", &words),
        "\nexport type Word =\n  /** First. */\n  | \"a\"\n  /** Second. */\n  | \"b\";\n"
    );
    let either = json!({"anyOf": [{"type": "string"}, {"type": "number"}]});
    assert_eq!(
        declaration("Either", &either),
        "\nexport type Either = string | number;\n"
    );
}

#[test]
fn every_definition_and_every_frame_is_there_once() {
    let schema = schema();
    let text = typescript(&schema);
    for name in schema["$defs"].as_object().unwrap().keys() {
        if FRAMES.iter().any(|(frames, ..)| frames == name) {
            continue;
        }
        let declared = text.matches(&format!("export interface {name} {{")).count()
            + text.matches(&format!("export type {name} =")).count();
        assert_eq!(declared, 1, "{name}");
    }
    for (direction, ..) in FRAMES {
        for frame in schema["$defs"][direction]["oneOf"].as_array().unwrap() {
            let kind = frame["title"].as_str().unwrap();
            assert_eq!(
                text.matches(&format!("  \"{kind}\": ")).count(),
                1,
                "{kind}"
            );
        }
    }
    assert!(!text.contains("unknown;\n}\n\n/** Every"), "{text}");
}

#[test]
fn what_is_checked_in_for_clients_is_current() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/typescript/src/protocol.ts");
    let text = typescript(&schema());
    if std::env::var_os("OUTRIGGER_UPDATE").is_some() {
        std::fs::write(path, text).unwrap();
        return;
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == text,
        "{} is out of date; run with OUTRIGGER_UPDATE=1, then npm run build in clients/typescript",
        path.display()
    );
}
