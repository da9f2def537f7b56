//! Whether an answer fits the flat schema that a server asked with, and what the schema says of fields left out. Pure.
//!
//! What it says names the field and never shows what stands in it: that may be a secret. The schemas are those
//! of MCP's elicitation (modelcontextprotocol.io/specification/2025-11-25/client/elicitation, 2026-11-20).

use serde_json::{Map, Value};

type Fields = Map<String, Value>;

/// Checks an answer.
/// An error says what is wrong with which field.
pub(super) fn fits(schema: &Fields, content: &Fields) -> Result<(), String> {
    let none = Map::new();
    let fields = schema.get("properties").and_then(Value::as_object);
    let fields = fields.unwrap_or(&none);
    for name in strings(schema.get("required")) {
        if !content.contains_key(name) {
            return Err(format!("`{name}` is missing"));
        }
    }
    for (name, value) in content {
        let Some(field) = fields.get(name).and_then(Value::as_object) else {
            let known: Vec<&str> = fields.keys().map(String::as_str).collect();
            return Err(format!(
                "`{name}` was not asked for; the fields are {}",
                known.join(", ")
            ));
        };
        one(field, value).map_err(|problem| format!("`{name}` {problem}"))?;
    }
    Ok(())
}

/// Checks the value of one field.
/// An error is to be read after the field's name.
fn one(field: &Fields, value: &Value) -> Result<(), String> {
    match field.get("type").and_then(Value::as_str) {
        Some("boolean") => match value {
            Value::Bool(_) => Ok(()),
            _ => Err("must be true or false".to_owned()),
        },
        Some("integer") => match value.as_f64() {
            Some(number) if number.fract() == 0.0 => range(field, number),
            _ => Err("must be a whole number".to_owned()),
        },
        Some("number") => match value.as_f64() {
            Some(number) => range(field, number),
            None => Err("must be a number".to_owned()),
        },
        Some("array") => several(field, value),
        _ => match value.as_str() {
            Some(text) => string(field, text),
            None => Err("must be a string".to_owned()),
        },
    }
}

fn range(field: &Fields, number: f64) -> Result<(), String> {
    let bound = |name: &str| field.get(name).and_then(Value::as_f64);
    match (bound("minimum"), bound("maximum")) {
        (Some(least), _) if number < least => Err(format!("must be {least} at least")),
        (_, Some(most)) if number > most => Err(format!("must be {most} at most")),
        _ => Ok(()),
    }
}

fn string(field: &Fields, text: &str) -> Result<(), String> {
    if let Some(choices) = choices(field) {
        return chosen(&choices, text);
    }
    length(field, "Length", text.chars().count() as u64, "characters")?;
    let fits = match field.get("format").and_then(Value::as_str) {
        Some("email") => text.split_once('@').is_some_and(|(who, place)| {
            !who.is_empty() && !place.is_empty() && !text.contains(char::is_whitespace)
        }),
        Some("uri") => reqwest::Url::parse(text).is_ok(),
        Some("date") => text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10,
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        _ => true,
    };
    match field.get("format").and_then(Value::as_str) {
        Some(format) if !fits => Err(format!("must be of the format `{format}`")),
        _ => Ok(()),
    }
}

fn several(field: &Fields, value: &Value) -> Result<(), String> {
    let list = || "must be a list of strings".to_owned();
    let values = value.as_array().ok_or_else(list)?;
    length(field, "Items", values.len() as u64, "choices")?;
    let items = field.get("items").and_then(Value::as_object);
    let choices = items.and_then(choices).unwrap_or_default();
    for value in values {
        chosen(&choices, value.as_str().ok_or_else(list)?)?;
    }
    Ok(())
}

fn chosen(choices: &[&str], text: &str) -> Result<(), String> {
    match choices.contains(&text) {
        true => Ok(()),
        false => Err(format!("must be one of {}", choices.join(", "))),
    }
}

fn length(field: &Fields, what: &str, count: u64, unit: &str) -> Result<(), String> {
    let bound = |side: &str| field.get(&format!("{side}{what}")).and_then(Value::as_u64);
    match (bound("min"), bound("max")) {
        (Some(least), _) if count < least => Err(format!("must have {least} {unit} at least")),
        (_, Some(most)) if count > most => Err(format!("must have {most} {unit} at most")),
        _ => Ok(()),
    }
}

/// Returns what may be chosen; `None` where anything may be said.
fn choices(field: &Fields) -> Option<Vec<&str>> {
    if let Some(values) = field.get("enum") {
        return Some(strings(Some(values)).collect());
    }
    let titled = field.get("oneOf").or_else(|| field.get("anyOf"))?;
    let titled = titled.as_array()?.iter();
    Some(
        titled
            .filter_map(|choice| choice.get("const")?.as_str())
            .collect(),
    )
}

fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let values = value.and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str)
}

/// Adds the default of each field that the answer leaves out.
///
/// `default` of each sort of field is SEP-1034, part of the above. What the user gave stays as it is, `null` and an
/// empty text too. A default that its own field does not allow is left out, for nobody could mend it.
pub(super) fn filled(
    schema: &Map<String, Value>,
    mut content: Map<String, Value>,
) -> Map<String, Value> {
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let field = field.as_object();
        let default = field.and_then(|field| Some((field, field.get("default")?)));
        if let Some((field, default)) = default
            && !content.contains_key(name)
            && one(field, default).is_ok()
        {
            content.insert(name.clone(), default.clone());
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_sort_of_field_is_checked_and_named() {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 4},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "size": {"type": "number", "minimum": 0.5},
            "sure": {"type": "boolean"},
            "hue": {"type": "string", "enum": ["red", "blue"]},
            "tone": {"type": "string", "oneOf": [{"const": "d", "title": "dark"}]},
            "tags": {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["a", "b"]}},
            "mail": {"type": "string", "format": "email"},
            "page": {"type": "string", "format": "uri"},
            "day": {"type": "string", "format": "date"},
            "time": {"type": "string", "format": "date-time"},
        }});
        let schema = schema.as_object().unwrap();
        let ok = json!({"name": "Ada", "age": 36, "size": 1.5, "sure": true, "hue": "red",
            "tone": "d", "tags": ["a", "b"], "mail": "a@b.c", "page": "https://a.b/",
            "day": "1815-12-10", "time": "1842-01-01T00:00:00Z"});
        assert_eq!(fits(schema, ok.as_object().unwrap()), Ok(()));
        for (field, value, said) in [
            ("name", json!("Adelaide"), "4 characters at most"),
            ("name", json!("A"), "2 characters at least"),
            ("name", json!(7), "a string"),
            ("age", json!(1.5), "whole number"),
            ("age", json!(151), "150 at most"),
            ("size", json!("1"), "a number"),
            ("size", json!(0), "0.5 at least"),
            ("sure", json!("yes"), "true or false"),
            ("hue", json!("green"), "red, blue"),
            ("tone", json!("dark"), "one of d"),
            ("tags", json!("a"), "a list"),
            ("tags", json!(["c"]), "one of a, b"),
            ("tags", json!(["a", "b", "a"]), "2 choices at most"),
            ("mail", json!("nobody"), "`email`"),
            ("mail", json!("@b.c"), "`email`"),
            ("mail", json!("a@"), "`email`"),
            ("mail", json!("a b@c"), "`email`"),
            ("page", json!("no page"), "`uri`"),
            ("day", json!("tomorrow"), "`date`"),
            ("time", json!("noon"), "`date-time`"),
            ("other", json!(1), "not asked for"),
        ] {
            let mut content = json!({"name": "Ada"});
            content[field] = value;
            let problem = fits(schema, content.as_object().unwrap()).unwrap_err();
            assert!(problem.contains(said), "{field}: {problem}");
            assert!(problem.contains(&format!("`{field}`")), "{problem}");
        }
        let problem = fits(schema, &Map::new()).unwrap_err();
        assert_eq!(problem, "`name` is missing");
    }

    #[test]
    fn fields_left_out_have_their_default() {
        // The form of the protocol's own test of this.
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "off"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]},
            "note": {"type": "string"},
            "broken": {"type": "integer", "minimum": 5, "default": 1},
        }});
        let all = json!({"name": "John Doe", "age": 30, "score": 95.5, "status": "active",
            "verified": true, "tags": ["a"]});
        let mut some = all.clone();
        some["name"] = json!("");
        some["verified"] = json!(false);
        let cases = [
            (json!({}), all),
            (json!({"name": "", "verified": false}), some),
        ];
        let schema = schema.as_object().unwrap();
        for (given, expected) in cases {
            let given = given.as_object().unwrap().clone();
            assert_eq!(Value::Object(filled(schema, given)), expected);
        }
        let none = json!({"type": "object"});
        assert!(filled(none.as_object().unwrap(), Map::new()).is_empty());
    }
}
