use serde_json::{Map, json};

use super::*;
use crate::message::{DangerLevel, ToolCategory};

const ALL: [Dialect; 5] = [
    Dialect::Anthropic,
    Dialect::Chat,
    Dialect::Responses,
    Dialect::Ollama,
    Dialect::Gemini,
];

fn check(dialects: &[Dialect], schema: &Value, expected: &Value) {
    for dialect in dialects {
        let normal = normalise(schema, *dialect).unwrap();
        assert_eq!(
            serde_json::to_string(&normal).unwrap(),
            serde_json::to_string(expected).unwrap(),
            "{dialect:?} {schema}"
        );
    }
}

#[test]
fn whatever_stands_for_no_input_is_an_object() {
    let empty = json!({"type": "object", "properties": {}});
    for schema in [
        json!({}),
        json!(null),
        json!(true),
        json!({"type": "object"}),
        json!({"type": ["object", "null"]}),
        json!({"type": "dict", "properties": null, "required": true}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {}, "required": [], "x-vendor": {"a": 1}}),
        json!({"type": "object", "properties": [], "required": ["gone"]}),
    ] {
        check(&ALL, &schema, &empty);
    }
}

#[test]
fn what_is_no_object_is_a_problem() {
    for schema in [
        json!("object"),
        json!([]),
        json!(false),
        json!({"type": "string"}),
        json!({"type": ["array", "null"]}),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"$ref": "#/$defs/Gone"}),
        json!({"$ref": "https://example.org/schema.json"}),
        json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}),
    ] {
        for dialect in ALL {
            assert_eq!(
                normalise(&schema, dialect),
                Err(SchemaProblem::NotAnObject),
                "{schema}"
            );
        }
    }
}

#[test]
fn an_ordinary_schema_stays_as_it_is() {
    let schema = json!({"type": "object", "properties": {
        "path": {"type": "string", "description": "Where."},
        "limit": {"type": ["integer", "null"], "minimum": 1, "default": 5},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "more": {"$ref": "#/$defs/More", "description": "More."},
    }, "required": ["path"], "additionalProperties": false,
    "$defs": {"More": {"type": "object", "properties": {"more": {"$ref": "#/$defs/More"}}}}});
    check(
        &[Dialect::Anthropic, Dialect::Chat, Dialect::Responses],
        &schema,
        &schema,
    );
    let ollama = json!({"type": "object", "properties": {
        "path": {"type": "string", "description": "Where."},
        "limit": {"type": ["integer", "null"], "description": "(minimum: 1; default: 5)"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "more": {"type": "object", "properties": {"more": {"type": "object"}}, "description": "More."},
    }, "required": ["path"]});
    check(&[Dialect::Ollama], &schema, &ollama);
    let gemini = json!({"type": "object", "properties": {
        "path": {"type": "string", "description": "Where."},
        "limit": {"minimum": 1, "nullable": true, "type": "integer", "description": "(default: 5)"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "more": {"type": "object", "properties": {"more": {"type": "object"}}, "description": "More."},
    }, "required": ["path"]});
    check(&[Dialect::Gemini], &schema, &gemini);
}

#[test]
fn the_top_is_one_plain_object() {
    let cases = [
        (
            json!({"oneOf": [
                {"type": "object", "properties": {"a": {"type": "string"}, "k": {"type": "string"}},
                    "required": ["a", "k"]},
                {"properties": {"b": {"type": "string"}, "k": {"type": "integer"}},
                    "required": ["b", "k"]},
                {"type": "null"},
            ]}),
            json!({"type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "k": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                    "b": {"type": "string"},
                },
                "description": "Fields that go together: (a, k) or (b, k).",
                "required": ["k"]}),
        ),
        (
            json!({"type": "object", "description": "Both.", "allOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"$ref": "#/definitions/B"},
            ], "definitions": {"B": {"properties": {"b": {"type": "string"}}, "required": ["b"]}},
            "not": {"required": ["c"]}}),
            json!({"type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "description": "Both.",
                "definitions": {"B": {"properties": {"b": {"type": "string"}}, "required": ["b"]}},
                "required": ["a", "b"]}),
        ),
        (
            json!({"$ref": "#/$defs/In", "$defs": {"In": {"type": "object",
                "properties": {"a": {"type": "boolean"}}}}}),
            json!({"type": "object", "properties": {"a": {"type": "boolean"}},
                "$defs": {"In": {"type": "object", "properties": {"a": {"type": "boolean"}}}}}),
        ),
        (
            json!({"anyOf": [{"properties": {"a": {"type": "string"}}}]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        ),
    ];
    for (schema, expected) in cases {
        check(
            &[Dialect::Anthropic, Dialect::Chat, Dialect::Responses],
            &schema,
            &expected,
        );
    }
}

#[test]
fn keywords_of_older_drafts_and_of_no_draft() {
    let field = |schema: Value| json!({"type": "object", "properties": {"f": schema}});
    let cases = [
        (
            json!({"type": "int", "minimum": 3, "exclusiveMinimum": true}),
            json!({"type": "integer", "exclusiveMinimum": 3}),
        ),
        (
            json!({"minimum": 3, "exclusiveMinimum": false}),
            json!({"minimum": 3}),
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}),
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}),
        ),
        (
            json!({"type": "array"}),
            json!({"type": "array", "items": {}}),
        ),
        (
            json!({"type": "any", "enum": [], "required": true}),
            json!({}),
        ),
        (
            json!({"type": ["String", "string", "who knows"]}),
            json!({"type": "string"}),
        ),
        (
            json!({"minLength": "3", "pattern": 7, "description": null, "anyOf": []}),
            json!({}),
        ),
        (json!(true), json!({})),
        (json!("string"), json!({})),
        (
            json!({"$ref": "#/$defs/Gone", "description": "x"}),
            json!({"description": "x"}),
        ),
        (json!({"$ref": 3}), json!({})),
    ];
    for (schema, expected) in cases {
        check(
            &[Dialect::Anthropic, Dialect::Chat, Dialect::Responses],
            &field(schema),
            &field(expected),
        );
    }
}

#[test]
fn narrow_wires_get_words_for_constraints() {
    let schema = json!({"type": "object", "properties": {
        "mode": {"const": "fast", "description": "How."},
        "url": {"type": "string", "format": "uri", "pattern": "^https", "maxLength": 9},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]},
        "one": {"oneOf": [{"type": "string"}, {"type": "number", "multipleOf": 2}]},
        "all": {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]}]},
        "level": {"enum": [1, 2]},
        "mixed": {"type": ["string", "array", "null"]},
    }});
    let shared = |mode: Value, level: Value, mixed: Value| {
        json!({"type": "object", "properties": {
            "mode": mode,
            "url": {"type": "string",
                "description": "(format: uri; pattern: ^https; at most this many characters: 9)"},
            "pair": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
            "one": {"anyOf": [{"type": "string"}, {"type": "number", "description": "(multiple of: 2)"}]},
            "all": {"type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]},
            "level": level,
            "mixed": mixed,
        }})
    };
    let ollama = shared(
        json!({"description": "How.", "enum": ["fast"]}),
        json!({"enum": [1, 2]}),
        json!({"type": ["string", "array", "null"], "items": {}}),
    );
    check(&[Dialect::Ollama], &schema, &ollama);
    let gemini = shared(
        json!({"description": "How.", "enum": ["fast"], "type": "string"}),
        json!({"description": "(one of [1,2])"}),
        json!({"items": {"type": "string"}, "nullable": true, "anyOf": [
            {"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
    );
    check(&[Dialect::Gemini], &schema, &gemini);
}

#[test]
fn names_that_anthropic_refuses_are_given_in_words() {
    let schema = json!({"type": "object",
        "properties": {"a": {}, "$filter": {"type": "string"}}, "required": ["a", "$filter"]});
    let expected = json!({"type": "object", "properties": {"a": {}}, "required": ["a"],
        "description": "Also takes \"$filter\"."});
    check(&[Dialect::Anthropic], &schema, &expected);
    check(&[Dialect::Chat], &schema, &schema);
}

#[test]
fn nothing_makes_it_run_without_end() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"d": deep}, "allOf": [{"properties": {}}]});
    }
    let mut wide = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
        let both = json!({"type": "object", "properties": {"l": next.clone(), "r": next}});
        wide.insert(format!("L{level}"), both);
    }
    let bomb =
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/L0"}}, "$defs": wide});
    let circle = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}});
    for dialect in ALL {
        assert!(normalise(&deep, dialect).is_ok());
        assert!(normalise(&circle, dialect).is_ok());
        let expected = if dialect.is_narrow() {
            Err(SchemaProblem::TooLarge)
        } else {
            Ok(())
        };
        assert_eq!(normalise(&bomb, dialect).map(drop), expected, "{dialect:?}");
    }
}

#[test]
fn a_tool_with_a_hopeless_schema_is_offered_without_one() {
    let mut tool = ToolSpec {
        name: "mcp__x__y".to_owned(),
        description: String::new(),
        input_schema: json!({"type": "string"}).into(),
        category: ToolCategory::Mcp,
        danger_level: DangerLevel::Dangerous,
        origin: "mcp:x".to_owned(),
    };
    let mut notices = Vec::new();
    let text = of_tool(&tool, Dialect::Anthropic, &mut notices);
    let schema = r#""input_schema":{"type":"object","properties":{}}"#;
    assert!(text.get().contains(schema), "{text}");
    let message = notices.remove(0).message;
    assert!(
        message.contains("mcp__x__y") && message.contains("mcp:x"),
        "{message}"
    );
    tool.input_schema = json!({}).into();
    of_tool(&tool, Dialect::Anthropic, &mut notices);
    assert_eq!(notices, []);
}

proptest::proptest! {
    #[test]
    fn any_json_comes_to_an_object_or_a_problem(schema in json_value()) {
        for dialect in ALL {
            if let Ok(normal) = normalise(&schema, dialect) {
                let top = normal.as_object().unwrap();
                assert_eq!(top["type"], "object");
                assert!(top["properties"].is_object());
                for refused in ["anyOf", "oneOf", "allOf", "not", "enum"] {
                    assert!(!top.contains_key(refused), "{normal}");
                }
                assert_eq!(normalise(&normal, dialect).unwrap()["type"], "object");
            }
        }
    }
}

fn json_value() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let word = prop_oneof![
        Just("type"),
        Just("object"),
        Just("string"),
        Just("properties"),
        Just("required"),
        Just("anyOf"),
        Just("allOf"),
        Just("oneOf"),
        Just("items"),
        Just("$ref"),
        Just("#"),
        Just("#/properties/items"),
        Just("enum"),
        Just("not"),
        Just("a"),
        Just("const"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone().prop_map(str::to_owned), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
