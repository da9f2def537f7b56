//! The input of a tool: its schema from a Rust type, and its parsing with errors a model can mend.
//!
//! Models write `max_results` for `maxResults`, `"10"` or `10.0` for 10, and null for what they leave
//! out. All of that is understood. What is not is refused with the field's name, what came and
//! what is wanted.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Refusal;
use crate::message::{DangerLevel, ToolCategory, ToolSpec};

/// Longest piece of a wrong value that an error repeats, in characters.
const SHOWN_VALUE: usize = 60;

/// Most differing letters between an unknown field and the one it is taken for.
const MAX_DISTANCE: usize = 3;

/// Describes a core tool by the type of its input.
///
/// The type's doc comment is the tool's description, those of its fields describe them. The type
/// should be a struct in `camelCase` with `deny_unknown_fields`.
pub fn spec_of<I: JsonSchema>(
    name: &str,
    category: ToolCategory,
    danger_level: DangerLevel,
) -> ToolSpec {
    let mut schema = schema_of::<I>();
    let mut take = |key| schema.as_object_mut()?.remove(key);
    let description = take("description").unwrap_or_default();
    take("title");
    ToolSpec {
        name: name.to_owned(),
        description: description.as_str().unwrap_or_default().to_owned(),
        input_schema: schema.into(),
        category,
        danger_level,
        origin: "core".to_owned(),
    }
}

/// Parses the input of a call of a tool that [`spec_of`] describes. An error names every field that does not fit.
pub fn parse<I: DeserializeOwned>(
    spec: &ToolSpec,
    input: &Map<String, Value>,
) -> Result<I, Refusal> {
    let schema = &spec.input_schema;
    let fields = schema.get("properties").and_then(Value::as_object);
    let fields: Vec<Field<'_>> = fields.into_iter().flatten().collect();
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&Value> = required.into_iter().flatten().collect();
    let mut problems = Vec::new();
    let mut fitting = Map::new();
    for (key, value) in input {
        let camel = camel_case(key);
        let mut known = fields.iter();
        let Some((name, schema)) = known.find(|(name, _)| *name == key || **name == camel) else {
            problems.push(unknown(&fields, key));
            continue;
        };
        let value = coerce(schema, value);
        if value.is_null() && !required.iter().any(|required| *required == *name) {
            continue;
        }
        if !fits(schema, &value) {
            let (wanted, came) = (wanted(schema), describe(&value));
            problems.push(format!("`{name}` has to be {wanted}, but {came} came"));
        }
        if fitting.insert((*name).clone(), value).is_some() {
            problems.push(format!("`{name}` is given twice"));
        }
    }
    for name in required.into_iter().filter_map(Value::as_str) {
        if !fitting.contains_key(name) {
            let field = fields.iter().find(|(field, _)| *field == name);
            let wanted = field.map_or("a value".to_owned(), |(_, schema)| wanted(schema));
            problems.push(format!("`{name}` is missing; it has to be {wanted}"));
        }
    }
    let parsed = match problems.as_slice() {
        [] => serde_json::from_value(Value::Object(fitting)).map_err(|error| error.to_string()),
        problems => Err(problems.join("; ")),
    };
    parsed.map_err(|problem| {
        Refusal::Invalid(format!(
            "the input of `{}` does not fit: {problem}",
            spec.name
        ))
    })
}

type Field<'a> = (&'a String, &'a Value);

/// Generates a schema as plain as every provider takes it: no references, no nullable types.
fn schema_of<I: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<I>()
        .to_value();
    tidy(&mut schema);
    schema
}

/// Takes away what only says that a field is optional, or repeats the Rust type.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            object.retain(|key, value| match key.as_str() {
                "format" => !value.is_string(),
                "default" => !value.is_null(),
                _ => true,
            });
            // Line breaks of the source are none of the text; an empty line is.
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = text
                    .split("\n\n")
                    .map(|paragraph| paragraph.replace('\n', " "))
                    .collect::<Vec<_>>()
                    .join("\n\n");
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn camel_case(key: &str) -> String {
    let mut words = key.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}

fn unknown(fields: &[Field<'_>], key: &str) -> String {
    let near = fields
        .iter()
        .map(|(name, _)| (strsim::levenshtein(name, key), name))
        .min()
        .filter(|(distance, _)| *distance <= MAX_DISTANCE);
    let hint = match near {
        Some((_, name)) => format!("`{name}` may be meant"),
        None => {
            let names = fields.iter().map(|(name, _)| format!("`{name}`"));
            format!("there are {}", names.collect::<Vec<_>>().join(", "))
        }
    };
    format!("there is no field `{}`; {hint}", shortened(key))
}

/// Brings numbers and truth values in the wrong clothes into the type that is wanted.
fn coerce(schema: &Value, value: &Value) -> Value {
    // Only what is whole and exact; the rest is reported to the model as it came.
    let is_whole = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
    let whole = |number: f64| serde_json::from_str(&format!("{number:.0}")).ok();
    let coerced = match (kind(schema), value) {
        ("integer", Value::Number(came)) if came.is_f64() => {
            came.as_f64().filter(is_whole).and_then(whole)
        }
        ("integer", Value::String(text)) => text.trim().parse::<i64>().ok().map(Value::from),
        ("boolean", Value::String(text)) => text.trim().parse::<bool>().ok().map(Value::from),
        _ => None,
    };
    coerced.unwrap_or_else(|| value.clone())
}

fn kind(schema: &Value) -> &str {
    let kind = schema.get("type").and_then(Value::as_str);
    kind.unwrap_or_default()
}

fn fits(schema: &Value, value: &Value) -> bool {
    let fits = match kind(schema) {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => (value.is_i64() || value.is_u64()) && in_range(schema, value),
        "number" => value.is_number() && in_range(schema, value),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    let listed = schema.get("enum").and_then(Value::as_array);
    fits && listed.is_none_or(|values| values.contains(value))
}

fn bound(schema: &Value, name: &str) -> Option<f64> {
    schema.get(name).and_then(Value::as_f64)
}

fn in_range(schema: &Value, value: &Value) -> bool {
    value.as_f64().is_some_and(|number| {
        bound(schema, "minimum").is_none_or(|minimum| number >= minimum)
            && bound(schema, "maximum").is_none_or(|maximum| number <= maximum)
    })
}

fn wanted(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<_> = values.iter().map(Value::to_string).collect();
        return format!("one of {}", values.join(", "));
    }
    let range = match (bound(schema, "minimum"), bound(schema, "maximum")) {
        (Some(minimum), Some(maximum)) => format!(" from {minimum} to {maximum}"),
        (Some(minimum), None) => format!(" of at least {minimum}"),
        (None, Some(maximum)) => format!(" of at most {maximum}"),
        (None, None) => String::new(),
    };
    match kind(schema) {
        "string" => "a string".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => format!("a whole number{range}"),
        "number" => format!("a number{range}"),
        "array" => "a list".to_owned(),
        "object" => "an object".to_owned(),
        _ => "another value".to_owned(),
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("the string {:?}", shortened(text)),
        Value::Array(_) => format!("the list {}", shortened(&value.to_string())),
        Value::Object(_) => format!("the object {}", shortened(&value.to_string())),
    }
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN_VALUE).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests;
