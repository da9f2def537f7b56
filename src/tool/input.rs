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
    let description = schema
        .as_object_mut()
        .and_then(|schema| schema.remove("description"))
        .and_then(|text| text.as_str().map(str::to_owned))
        .unwrap_or_default();
    ToolSpec {
        name: name.to_owned(),
        description,
        input_schema: schema,
        category,
        danger_level,
        origin: "core".to_owned(),
    }
}

/// Parses the input of a call of a tool that [`spec_of`] describes.
///
/// # Errors
///
/// [`Refusal::Invalid`] that names every field that does not fit.
pub fn parse<I: DeserializeOwned>(
    spec: &ToolSpec,
    input: &Map<String, Value>,
) -> Result<I, Refusal> {
    let mut problems = Vec::new();
    let mut fitting = Map::new();
    for (key, value) in input {
        match field(spec, key) {
            Some((name, schema)) => {
                let value = coerce(schema, value);
                if value.is_null() && !is_required(spec, name) {
                    continue;
                }
                if let Some(wanted) = misfit(schema, &value) {
                    let came = describe(&value);
                    problems.push(format!("`{name}` has to be {wanted}, but {came} came"));
                }
                if fitting.insert(name.to_owned(), value).is_some() {
                    problems.push(format!("`{name}` is given twice"));
                }
            }
            None => problems.push(unknown(spec, key)),
        }
    }
    for name in required(spec).filter(|name| !fitting.contains_key(*name)) {
        let wanted = property(spec, name).map_or("a value".to_owned(), wanted);
        problems.push(format!("`{name}` is missing; it has to be {wanted}"));
    }
    let invalid = |problem: &str| {
        Refusal::Invalid(format!(
            "the input of `{}` does not fit: {problem}",
            spec.name
        ))
    };
    if !problems.is_empty() {
        return Err(invalid(&problems.join("; ")));
    }
    serde_json::from_value(Value::Object(fitting)).map_err(|error| invalid(&error.to_string()))
}

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
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("title");
    }
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
            if object.get("format").is_some_and(Value::is_string) {
                object.remove("format");
            }
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
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

fn properties(spec: &ToolSpec) -> impl Iterator<Item = (&String, &Value)> {
    let properties = spec
        .input_schema
        .get("properties")
        .and_then(Value::as_object);
    properties.into_iter().flatten()
}

fn property<'a>(spec: &'a ToolSpec, name: &str) -> Option<&'a Value> {
    spec.input_schema.get("properties")?.get(name)
}

fn required(spec: &ToolSpec) -> impl Iterator<Item = &str> {
    let names = spec.input_schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn is_required(spec: &ToolSpec, name: &str) -> bool {
    required(spec).any(|required| required == name)
}

/// Finds the field that a key means: by its name, or by its name in `snake_case`.
fn field<'a>(spec: &'a ToolSpec, key: &str) -> Option<(&'a str, &'a Value)> {
    let camel = camel_case(key);
    properties(spec)
        .find(|(name, _)| *name == key || **name == camel)
        .map(|(name, schema)| (name.as_str(), schema))
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

fn unknown(spec: &ToolSpec, key: &str) -> String {
    let near = properties(spec)
        .map(|(name, _)| (strsim::levenshtein(name, key), name))
        .min()
        .filter(|(distance, _)| *distance <= MAX_DISTANCE);
    let hint = match near {
        Some((_, name)) => format!("`{name}` may be meant"),
        None => {
            let names: Vec<_> = properties(spec)
                .map(|(name, _)| format!("`{name}`"))
                .collect();
            format!("there are {}", names.join(", "))
        }
    };
    format!("there is no field `{}`; {hint}", shortened(key))
}

/// Brings numbers and truth values in the wrong clothes into the type that is wanted.
fn coerce(schema: &Value, value: &Value) -> Value {
    let number = |number: f64| {
        // Only what is whole and exact; the rest is told to the model as it came.
        let whole = number.fract() == 0.0 && number.abs() < 9e15;
        whole
            .then(|| serde_json::from_str(&format!("{number:.0}")).ok())
            .flatten()
    };
    let coerced = match (kind(schema), value) {
        ("integer", Value::Number(came)) if came.is_f64() => came.as_f64().and_then(number),
        ("integer", Value::String(text)) => text.trim().parse::<i64>().ok().map(Value::from),
        ("boolean", Value::String(text)) => text.trim().parse::<bool>().ok().map(Value::from),
        _ => None,
    };
    coerced.unwrap_or_else(|| value.clone())
}

fn kind(schema: &Value) -> &str {
    schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns what is wanted where the value is not that.
fn misfit(schema: &Value, value: &Value) -> Option<String> {
    let fits = match kind(schema) {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => (value.is_i64() || value.is_u64()) && in_range(schema, value),
        "number" => value.is_number() && in_range(schema, value),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    let listed = schema
        .get("enum")
        .and_then(Value::as_array)
        .is_none_or(|values| values.contains(value));
    (!fits || !listed).then(|| wanted(schema))
}

fn in_range(schema: &Value, value: &Value) -> bool {
    let bound = |name| schema.get(name).and_then(Value::as_f64);
    value.as_f64().is_some_and(|number| {
        bound("minimum").is_none_or(|minimum| number >= minimum)
            && bound("maximum").is_none_or(|maximum| number <= maximum)
    })
}

fn wanted(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<_> = values.iter().map(Value::to_string).collect();
        return format!("one of {}", values.join(", "));
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let range = match (bound("minimum"), bound("maximum")) {
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
