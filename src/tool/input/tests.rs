use serde::Deserialize;
use serde_json::json;

use super::*;

/// Does a thing
/// with a file.
///
/// More about it.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// Where.
    path: String,
    /// How many
    /// of them.
    #[schemars(range(min = 1, max = 50))]
    max_results: Option<u32>,
    /// Whether.
    #[serde(default)]
    replace_all: bool,
}

fn spec() -> ToolSpec {
    spec_of::<Input>("thing", ToolCategory::File, DangerLevel::Safe)
}

#[test]
fn the_schema_is_plain_and_speaks_with_the_doc_comments() {
    let spec = spec();
    assert_eq!(
        spec.description,
        "Does a thing with a file.\n\nMore about it."
    );
    assert_eq!(
        spec.input_schema,
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where."},
                "maxResults": {
                    "type": "integer", "minimum": 1, "maximum": 50,
                    "description": "How many of them."
                },
                "replaceAll": {"type": "boolean", "default": false, "description": "Whether."},
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn what_is_meant_is_understood() {
    let expected = Input {
        path: "a".to_owned(),
        max_results: Some(10),
        replace_all: true,
    };
    for input in [
        json!({"path": "a", "maxResults": 10, "replaceAll": true}),
        json!({"path": "a", "max_results": 10, "replace_all": true}),
        json!({"path": "a", "maxResults": "10", "replaceAll": "true"}),
        json!({"path": "a", "maxResults": 10.0, "replaceAll": true}),
    ] {
        let parsed: Input = parse(&spec(), input.as_object().unwrap()).unwrap();
        assert_eq!(parsed, expected, "{input}");
    }
    let sparse = json!({"path": "a", "maxResults": null, "replaceAll": null});
    let parsed: Input = parse(&spec(), sparse.as_object().unwrap()).unwrap();
    assert_eq!((parsed.max_results, parsed.replace_all), (None, false));
}

#[test]
fn what_does_not_fit_is_named_with_what_is_wanted() {
    for (input, expected) in [
        (json!({}), "`path` is missing; it has to be a string"),
        (
            json!({"path": null}),
            "`path` has to be a string, but null came",
        ),
        (json!({"path": 5}), "`path` has to be a string, but 5 came"),
        (
            json!({"path": "a", "maxResults": "many"}),
            "`maxResults` has to be a whole number from 1 to 50, but the string \"many\" came",
        ),
        (
            json!({"path": "a", "maxResults": 0}),
            "`maxResults` has to be a whole number from 1 to 50, but 0 came",
        ),
        (
            json!({"path": "a", "maxResults": 1.5}),
            "`maxResults` has to be a whole number from 1 to 50, but 1.5 came",
        ),
        (
            json!({"path": "a", "maxResult": 5}),
            "there is no field `maxResult`; `maxResults` may be meant",
        ),
        (
            json!({"path": "a", "command": 5}),
            "there is no field `command`; there are `path`, `maxResults`, `replaceAll`",
        ),
        (
            json!({"path": "a", "maxResults": 5, "max_results": 6}),
            "`maxResults` is given twice",
        ),
        (
            json!({"path": ["a"], "replaceAll": 1}),
            "`path` has to be a string, but the list [\"a\"] came; \
             `replaceAll` has to be true or false, but 1 came",
        ),
    ] {
        let refusal = parse::<Input>(&spec(), input.as_object().unwrap()).unwrap_err();
        let expected = format!("the input of `thing` does not fit: {expected}");
        assert_eq!(refusal, Refusal::Invalid(expected), "{input}");
    }
}
