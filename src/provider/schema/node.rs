//! One schema, keyword by keyword.
//!
//! Keywords whose value the standard does not allow are left out, and so are those nobody reads.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::narrow::narrow;
use super::{Dialect, MAX_DEPTH, MAX_NODES, SchemaProblem, resolve};

/// Longest name of a field that Anthropic takes; it has to be `^[a-zA-Z0-9_.-]{1,64}$`.
const MAX_FIELD: usize = 64;

/// Keywords whose value is a schema.
const SCHEMAS: [&str; 7] = [
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
];

/// The walk through one tool's schema.
pub(super) struct Walk<'a> {
    root: &'a Value,
    dialect: Dialect,
    nodes: usize,
    /// References being put in place, the outermost first.
    inside: Vec<String>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(root: &'a Value, dialect: Dialect) -> Self {
        Self {
            root,
            dialect,
            nodes: 0,
            inside: Vec::new(),
        }
    }

    /// Normalises the top, which [`super::flatten`] made plain.
    pub(super) fn top(&mut self, flat: &Map<String, Value>) -> Result<Value, SchemaProblem> {
        let mut normal = self.object(flat, 0)?;
        let mut ordered = Map::new();
        ordered.insert("type".to_owned(), Value::from("object"));
        ordered.insert("properties".to_owned(), json!({}));
        for keyword in ["type", "nullable", "anyOf"] {
            normal.shift_remove(keyword);
        }
        ordered.extend(normal);
        Ok(Value::Object(ordered))
    }

    fn any(&mut self, schema: &Value, depth: usize) -> Result<Value, SchemaProblem> {
        match schema {
            Value::Object(schema) if depth <= MAX_DEPTH => {
                Ok(Value::Object(self.object(schema, depth)?))
            }
            _ => Ok(json!({})),
        }
    }

    fn object(
        &mut self,
        schema: &Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, SchemaProblem> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(SchemaProblem::TooLarge);
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, schema, depth);
        }
        let mut normal = Map::new();
        for (keyword, value) in schema {
            if let Some(value) = self.value(keyword, value, schema, depth)? {
                normal.insert(keyword.clone(), value);
            }
        }
        tidy(&mut normal);
        if self.dialect == Dialect::Anthropic {
            drop_odd_fields(&mut normal);
        }
        if self.dialect.is_narrow() {
            narrow(&mut normal, self.dialect);
        }
        Ok(normal)
    }

    fn reference(
        &mut self,
        reference: &str,
        beside: &Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, SchemaProblem> {
        let mut normal = Map::new();
        if !self.dialect.is_narrow() {
            normal.insert("$ref".to_owned(), Value::from(reference));
        } else if self.inside.iter().any(|outer| outer == reference) {
            // It would never end. Of one more level only the kind is kept.
            let kind = resolve(self.root, reference).and_then(|target| target.get("type"));
            let kind = kind.and_then(Value::as_str).unwrap_or("object");
            normal.insert("type".to_owned(), Value::from(kind));
        } else if let Some(target) = resolve(self.root, reference) {
            self.inside.push(reference.to_owned());
            let inlined = self.any(target, depth + 1);
            self.inside.pop();
            if let Value::Object(inlined) = inlined? {
                normal = inlined;
            }
        }
        if let Some(Value::String(description)) = beside.get("description") {
            normal.insert("description".to_owned(), Value::from(&**description));
        }
        Ok(normal)
    }

    /// Returns the value that a keyword goes on with; `None` for one that the standard does not allow,
    /// and for keywords that nobody reads.
    fn value(
        &mut self,
        keyword: &str,
        value: &Value,
        schema: &Map<String, Value>,
        depth: usize,
    ) -> Result<Option<Value>, SchemaProblem> {
        let inner = depth + 1;
        let is_schema = SCHEMAS.contains(&keyword);
        Ok(match (keyword, value) {
            ("type", _) => kinds(value),
            ("properties", Value::Object(schemas)) => Some(self.named(schemas, inner)?),
            (
                "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => match self.dialect.is_narrow() {
                // References are put in place, so that nobody asks for what they point to.
                true => None,
                false => Some(self.named(schemas, inner)?),
            },
            (_, Value::Bool(_)) if is_schema => Some(value.clone()),
            (_, Value::Object(_)) if is_schema || keyword == "items" => {
                Some(self.any(value, inner)?)
            }
            ("items", Value::Bool(_)) => Some(json!({})),
            // A list of them in older drafts.
            ("items", Value::Array(of_each)) => Some(alternatives(self.list(of_each, inner)?)),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas))
                if !schemas.is_empty() =>
            {
                Some(Value::Array(self.list(schemas, inner)?))
            }
            ("enum" | "examples", Value::Array(values)) if values.is_empty() => None,
            // A flag in draft 4.
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(true)) => {
                let bound = keyword.trim_start_matches("exclusive").to_ascii_lowercase();
                let bound = schema.get(&bound).filter(|bound| bound.is_number());
                bound.cloned()
            }
            ("required" | "enum" | "examples", Value::Array(_))
            | ("description" | "title" | "format" | "pattern", Value::String(_))
            | (
                "minimum" | "maximum" | "multipleOf" | "minLength" | "maxLength" | "minItems"
                | "maxItems" | "minProperties" | "maxProperties" | "exclusiveMinimum"
                | "exclusiveMaximum",
                Value::Number(_),
            )
            | ("uniqueItems", Value::Bool(_))
            | ("default" | "const", _) => Some(value.clone()),
            _ => None,
        })
    }

    fn named(
        &mut self,
        schemas: &Map<String, Value>,
        depth: usize,
    ) -> Result<Value, SchemaProblem> {
        schemas
            .iter()
            .map(|(name, schema)| Ok((name.clone(), self.any(schema, depth)?)))
            .collect::<Result<Map<_, _>, _>>()
            .map(Value::Object)
    }

    fn list(&mut self, schemas: &[Value], depth: usize) -> Result<Vec<Value>, SchemaProblem> {
        schemas
            .iter()
            .map(|schema| self.any(schema, depth))
            .collect()
    }
}

/// Returns a schema that is as one of `schemas` says.
pub(super) fn alternatives(mut schemas: Vec<Value>) -> Value {
    match schemas.len() {
        0 | 1 => schemas.pop().unwrap_or_else(|| json!({})),
        _ => json!({"anyOf": schemas}),
    }
}

/// Returns the kinds a `type` names, by the names the standard has for them.
fn kinds(value: &Value) -> Option<Value> {
    let kind = |value: &Value| {
        Some(match &*value.as_str()?.to_ascii_lowercase() {
            "object" | "dict" => "object",
            "array" | "list" => "array",
            "string" | "str" => "string",
            "number" | "float" | "double" => "number",
            "integer" | "int" => "integer",
            "boolean" | "bool" => "boolean",
            "null" => "null",
            _ => return None,
        })
    };
    match value {
        Value::String(_) => kind(value).map(Value::from),
        Value::Array(values) => {
            let mut kinds: Vec<_> = values.iter().filter_map(kind).collect();
            let mut seen = HashSet::new();
            kinds.retain(|kind| seen.insert(*kind));
            match kinds.as_slice() {
                [] => None,
                [only] => Some(Value::from(*only)),
                _ => Some(json!(kinds)),
            }
        }
        _ => None,
    }
}

/// Puts right what depends on several keywords.
fn tidy(schema: &mut Map<String, Value>) {
    for (exclusive, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if schema.contains_key(exclusive) && schema.get(exclusive) == schema.get(bound) {
            schema.shift_remove(bound);
        }
    }
    let is_array = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        kind => kind.is_some_and(|kind| kind == "array"),
    };
    if is_array && !schema.contains_key("items") {
        // OpenAI refuses lists of nothing in particular.
        schema.insert("items".to_owned(), json!({}));
    }
    keep_required(schema);
}

/// Keeps of `required` what `properties` names, each once.
fn keep_required(schema: &mut Map<String, Value>) {
    let mut kept = Vec::new();
    if let (Some(Value::Object(fields)), Some(Value::Array(names))) =
        (schema.get("properties"), schema.get("required"))
    {
        for name in names {
            let is_known = name.as_str().is_some_and(|name| fields.contains_key(name));
            if is_known && !kept.contains(name) {
                kept.push(name.clone());
            }
        }
    }
    if kept.is_empty() {
        schema.shift_remove("required");
    } else {
        schema.insert("required".to_owned(), Value::Array(kept));
    }
}

/// Takes out fields whose names Anthropic refuses, and says so in the description.
fn drop_odd_fields(schema: &mut Map<String, Value>) {
    let is_odd = |name: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        !(1..=MAX_FIELD).contains(&name.len()) || !name.bytes().all(allowed)
    };
    let Some(Value::Object(fields)) = schema.get_mut("properties") else {
        return;
    };
    let odd: Vec<_> = fields.keys().filter(|name| is_odd(name)).cloned().collect();
    if odd.is_empty() {
        return;
    }
    fields.retain(|name, _| !is_odd(name));
    keep_required(schema);
    let names: Vec<_> = odd.iter().map(|name| format!("{name:?}")).collect();
    add_to_description(schema, &format!("Also takes {}.", names.join(", ")));
}

/// Appends a sentence to a schema's description.
pub(super) fn add_to_description(schema: &mut Map<String, Value>, sentence: &str) {
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(text) if !text.is_empty() => format!("{text} {sentence}"),
        _ => sentence.to_owned(),
    };
    schema.insert("description".to_owned(), Value::from(text));
}
