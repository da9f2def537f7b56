//! A JSON schema that somebody gives for an object: checked so that every provider takes it and that checking a value
//! against it ends soon.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

/// The largest schema, in bytes: it is sent with every turn.
const MAX_SCHEMA: usize = 64 * 1024;

/// Deepest nesting of a schema: no provider takes more.
const MAX_DEPTH: usize = 64;

/// The most parts of a schema, each counted as often as it is referred to: what checks a value may visit all of them.
const MAX_PARTS: usize = 10_000;

/// The most patterns of a schema, and the largest of them when it is compiled, in bytes.
const MAX_PATTERNS: usize = 100;
const MAX_PATTERN_BYTES: usize = 256 * 1024;

/// The longest problem of a value that the model reads, in characters.
const MAX_PROBLEM: usize = 500;

/// A schema of an object.
#[derive(Debug)]
pub(crate) struct ObjectSchema {
    value: Value,
    validator: Validator,
}

impl ObjectSchema {
    /// Takes a schema.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as the rest of a sentence.
    pub(crate) fn new(schema: Map<String, Value>) -> Result<Self, String> {
        let value = completed(schema)?;
        let validator = compiled(&value)?;
        Ok(Self { value, validator })
    }

    /// Returns it as every provider takes it.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// What does not fit, and where; for the model.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        self.validator.validate(value).map_err(|error| {
            let place = error.instance_path().to_string();
            let place = place.trim_start_matches('/');
            let problem = shortened(&error.to_string());
            match place {
                "" => problem,
                place => format!("`{place}`: {problem}"),
            }
        })
    }
}

/// Returns the schema as every provider takes it.
fn completed(sent: Map<String, Value>) -> Result<Value, String> {
    let mut schema = sent;
    match schema.get("type") {
        None => drop(schema.insert("type".to_owned(), Value::from("object"))),
        Some(Value::String(kind)) if kind == "object" => {}
        Some(_) => return Err("`type` has to be \"object\"".to_owned()),
    }
    match schema.get("properties") {
        None => drop(schema.insert("properties".to_owned(), Value::Object(Map::new()))),
        Some(Value::Object(_)) => {}
        Some(_) => return Err("`properties` has to be an object".to_owned()),
    }
    // What says which standard it is by is none of a provider's business.
    schema.remove("$schema");
    let schema = Value::Object(schema);
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA {
        return Err(format!("{bytes} bytes are more than {MAX_SCHEMA}"));
    }
    let mut walk = Walk {
        root: &schema,
        open: Vec::new(),
        parts: 0,
        patterns: 0,
    };
    walk.visit(&schema, 0)?;
    Ok(schema)
}

/// A walk through all that a check of an input may visit.
struct Walk<'s> {
    root: &'s Value,
    /// The references that lead to where it is.
    open: Vec<&'s str>,
    parts: usize,
    patterns: usize,
}

impl<'s> Walk<'s> {
    fn visit(&mut self, part: &'s Value, depth: usize) -> Result<(), String> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(format!(
                "more than {MAX_PARTS} parts, each counted as often as it is referred to"
            ));
        }
        if depth > MAX_DEPTH {
            return Err(format!("nested more than {MAX_DEPTH} deep"));
        }
        match part {
            Value::Object(object) => {
                for (key, value) in object {
                    match (key.as_str(), value) {
                        ("$ref", Value::String(to)) => self.follow(to, depth)?,
                        ("$id" | "$anchor" | "$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                            return Err(format!(
                                "`{key}` is not taken here; refer with `$ref` to `#/$defs/…`"
                            ));
                        }
                        ("pattern", Value::String(_)) => self.patterns += 1,
                        ("patternProperties", Value::Object(these)) => self.patterns += these.len(),
                        _ => {}
                    }
                    self.visit(value, depth + 1)?;
                }
                if self.patterns > MAX_PATTERNS {
                    return Err(format!("more than {MAX_PATTERNS} patterns"));
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.visit(item, depth + 1)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    fn follow(&mut self, to: &'s str, depth: usize) -> Result<(), String> {
        let pointer = to.strip_prefix('#').filter(|path| path.starts_with('/'));
        let Some(target) = pointer.and_then(|path| self.root.pointer(path)) else {
            return Err(format!(
                "`$ref` {to:?} leads nowhere; it has to be `#/$defs/…` of the same schema"
            ));
        };
        if self.open.contains(&to) {
            return Err(format!(
                "`$ref` {to:?} leads back to itself; say how deep it goes"
            ));
        }
        self.open.push(to);
        self.visit(target, depth + 1)?;
        self.open.pop();
        Ok(())
    }
}

fn compiled(schema: &Value) -> Result<Validator, String> {
    let patterns = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES);
    jsonschema::draft202012::options()
        .with_pattern_options(patterns)
        .build(schema)
        .map_err(|error| format!("no JSON schema: {}", shortened(&error.to_string())))
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_PROBLEM).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_cannot_be_checked_is_refused() {
        let deep = (0..80).fold(json!({}), |inner, _| json!({"properties": {"p": inner}}));
        let laughs: Map<String, Value> = (0..8)
            .map(|level| {
                let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
                (
                    format!("d{level}"),
                    json!({"allOf": [next, next, next, next]}),
                )
            })
            .chain([("d8".to_owned(), json!({}))])
            .collect();
        for (schema, said) in [
            (json!({"type": "string"}), "`type` has to be"),
            (json!({"properties": []}), "`properties` has to be"),
            (deep, "nested more than"),
            (json!({"properties": {"a": {"$ref": "#"}}}), "leads nowhere"),
            (
                json!({"properties": {"a": {"$ref": "http://x.test/a"}}}),
                "leads nowhere",
            ),
            (
                json!({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "properties": {"a": {"$ref": "#/$defs/a"}}}),
                "leads back to itself",
            ),
            (
                json!({"$defs": laughs, "properties": {"a": {"$ref": "#/$defs/d0"}}}),
                "parts",
            ),
            (
                json!({"properties": {"a": {"pattern": "("}}}),
                "no JSON schema",
            ),
            (
                json!({"properties": {"a": {"type": "strng"}}}),
                "no JSON schema",
            ),
            (
                json!({"description": "x".repeat(MAX_SCHEMA)}),
                "more than 65536",
            ),
        ] {
            let Value::Object(schema) = schema else {
                panic!("no object");
            };
            let problem = ObjectSchema::new(schema).unwrap_err();
            assert!(problem.contains(said), "{problem}");
        }
    }
}
