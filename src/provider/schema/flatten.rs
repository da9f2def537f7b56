//! The top of a schema as one plain object: no `$ref`, no `oneOf`, `anyOf`, `allOf` there.
//!
//! Vendors refuse these at the top (`docs/providers.md`, "Tool schemas"). Alternatives become one object
//! that has the fields of all of them; which belong together goes into the description.

use serde_json::{Map, Value, json};

use super::node::add_to_description;
use super::{MAX_DEPTH, MAX_NODES, SchemaProblem, resolve};

/// Keywords that no vendor takes at the top and that an object's fields can do without.
const REFUSED: [&str; 6] = ["not", "if", "then", "else", "enum", "const"];

/// Returns `schema` with a plain top.
///
/// # Errors
///
/// [`SchemaProblem`] as for [`super::normalise`].
pub(super) fn top(schema: &Value) -> Result<Map<String, Value>, SchemaProblem> {
    let empty = Value::Object(Map::new());
    let schema = match schema {
        Value::Null | Value::Bool(true) => &empty,
        other => other,
    };
    let mut flatten = Flatten {
        root: schema,
        steps: 0,
    };
    let mut flat = flatten
        .object(schema, 0)?
        .ok_or(SchemaProblem::NotAnObject)?;
    for keyword in REFUSED {
        flat.shift_remove(keyword);
    }
    Ok(flat)
}

struct Flatten<'a> {
    root: &'a Value,
    steps: usize,
}

impl Flatten<'_> {
    /// Returns the object that `schema` describes, or nothing where it describes none.
    fn object(
        &mut self,
        schema: &Value,
        depth: usize,
    ) -> Result<Option<Map<String, Value>>, SchemaProblem> {
        self.steps += 1;
        if self.steps > MAX_NODES {
            return Err(SchemaProblem::TooLarge);
        }
        let Some(schema) = schema.as_object().filter(|_| depth <= MAX_DEPTH) else {
            return Ok(None);
        };
        if !may_be_object(schema.get("type")) {
            return Ok(None);
        }
        let mut flat = schema.clone();
        if let Some(Value::String(reference)) = flat.shift_remove("$ref") {
            let target = resolve(self.root, &reference);
            let target = target
                .map(|target| self.object(target, depth + 1))
                .transpose()?;
            let Some(target) = target.flatten() else {
                return Ok(None);
            };
            join(&mut flat, target);
        }
        for part in parts(&mut flat, "allOf") {
            if let Some(part) = self.object(&part, depth + 1)? {
                join(&mut flat, part);
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            let all = parts(&mut flat, keyword);
            let mut choices = Vec::with_capacity(all.len());
            for choice in &all {
                choices.extend(self.object(choice, depth + 1)?);
            }
            if choices.is_empty() && !all.is_empty() {
                return Ok(None);
            }
            choose(&mut flat, choices);
        }
        flat.insert("type".to_owned(), Value::from("object"));
        Ok(Some(flat))
    }
}

fn may_be_object(kind: Option<&Value>) -> bool {
    match kind {
        Some(Value::String(kind)) => matches!(&*kind.to_ascii_lowercase(), "object" | "dict"),
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => true,
    }
}

/// Takes out the schemas that a keyword lists.
pub(super) fn parts(flat: &mut Map<String, Value>, keyword: &str) -> Vec<Value> {
    match flat.shift_remove(keyword) {
        Some(Value::Array(parts)) => parts,
        _ => Vec::new(),
    }
}

/// Adds what `part` demands too. What `flat` says itself goes first.
pub(super) fn join(flat: &mut Map<String, Value>, part: Map<String, Value>) {
    for (keyword, value) in part {
        match (flat.get_mut(&keyword), value) {
            (None, value) => {
                flat.insert(keyword, value);
            }
            (Some(Value::Object(own)), Value::Object(more))
                if matches!(&*keyword, "properties" | "$defs" | "definitions") =>
            {
                for (name, schema) in more {
                    own.entry(name).or_insert(schema);
                }
            }
            (Some(Value::Array(own)), Value::Array(more)) if keyword == "required" => {
                let new: Vec<_> = more.into_iter().filter(|it| !own.contains(it)).collect();
                own.extend(new);
            }
            _ => {}
        }
    }
}

/// Adds alternatives: all of their fields, of which those are required that each of them requires.
fn choose(flat: &mut Map<String, Value>, mut choices: Vec<Map<String, Value>>) {
    if choices.len() < 2 {
        if let Some(only) = choices.pop() {
            join(flat, only);
        }
        return;
    }
    describe(flat, &choices);
    let required = |choice: &Map<String, Value>| match choice.get("required") {
        Some(Value::Array(names)) => names.clone(),
        _ => Vec::new(),
    };
    let mut common = choices.first().map(required).unwrap_or_default();
    for choice in &choices {
        let own = required(choice);
        common.retain(|name| own.contains(name));
    }
    let mut fields = Map::new();
    for choice in choices {
        if let Some(Value::Object(more)) = choice.get("properties") {
            for (name, schema) in more {
                offer(&mut fields, name, schema);
            }
        }
    }
    let together = [
        ("properties".to_owned(), Value::Object(fields)),
        ("required".to_owned(), Value::Array(common)),
    ];
    join(flat, Map::from_iter(together));
}

/// Lets a field be as `schema` says too.
fn offer(fields: &mut Map<String, Value>, name: &str, schema: &Value) {
    let Some(known) = fields.get_mut(name) else {
        fields.insert(name.to_owned(), schema.clone());
        return;
    };
    if known == schema {
        return;
    }
    let alternatives = known.as_object_mut().filter(|known| known.len() == 1);
    match alternatives.and_then(|known| known.get_mut("anyOf")) {
        Some(Value::Array(known)) if known.contains(schema) => {}
        Some(Value::Array(known)) => known.push(schema.clone()),
        _ => *known = json!({"anyOf": [known.clone(), schema]}),
    }
}

fn describe(flat: &mut Map<String, Value>, choices: &[Map<String, Value>]) {
    let names = |choice: &Map<String, Value>| {
        let names: Vec<&str> = match (choice.get("required"), choice.get("properties")) {
            (Some(Value::Array(names)), _) if names.iter().any(Value::is_string) => {
                names.iter().filter_map(Value::as_str).collect()
            }
            (_, Some(Value::Object(fields))) => fields.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        format!("({})", names.join(", "))
    };
    let sets: Vec<_> = choices.iter().map(names).collect();
    let sentence = format!("Fields that go together: {}.", sets.join(" or "));
    add_to_description(flat, &sentence);
}
