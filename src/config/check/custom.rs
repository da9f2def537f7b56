//! `[tools.custom.NAME]`: tools of the operator's own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::super::settings::CustomToolSettings;
use super::super::template::{self, Piece, pieces};
use super::super::{CustomCommand, CustomToolConfig};
use super::core_tools;
use super::findings::Findings;
use crate::message::{DangerLevel, WITH_BASH};

/// The longest name that every provider takes, in bytes.
const MAX_NAME: usize = 64;

/// What of JSON Schema is checked before a call; anything else would promise what nobody keeps.
const CHECKED: [&str; 7] = [
    "type",
    "description",
    "enum",
    "minimum",
    "maximum",
    "items",
    "title",
];

/// Checks all of them; those that are switched off are left out unchecked.
pub(super) fn check(
    settings: BTreeMap<String, CustomToolSettings>,
    findings: &mut Findings<'_>,
) -> Vec<CustomToolConfig> {
    settings
        .into_iter()
        .filter(|(_, tool)| tool.enabled.unwrap_or(true))
        .filter_map(|(name, tool)| check_tool(name, tool, findings))
        .collect()
}

fn check_tool(
    name: String,
    settings: CustomToolSettings,
    findings: &mut Findings<'_>,
) -> Option<CustomToolConfig> {
    let path = ["tools", "custom", name.as_str()];
    if let Err(why) = check_name(&name) {
        findings.refuse(&path, why);
    }
    let key = |key| ["tools", "custom", name.as_str(), key];
    if settings.description.trim().is_empty() {
        findings.refuse(&path, "`description` is missing: the model goes by it");
    }
    let input_schema = match schema(settings.input_schema) {
        Ok(schema) => schema,
        Err(why) => {
            findings.refuse(&key("input_schema"), why);
            return None;
        }
    };
    let command = match (settings.command, settings.shell) {
        (Some(program), None) if !program.trim().is_empty() => CustomCommand::Program {
            program,
            args: settings.args,
        },
        (None, Some(line)) if !line.trim().is_empty() && settings.args.is_empty() => {
            CustomCommand::Shell(line)
        }
        _ => {
            findings.refuse(
                &path,
                "needs `command`, a program with `args`, or `shell`, a line for sh; not both",
            );
            return None;
        }
    };
    if let Err(why) = check_template(&command, &input_schema) {
        findings.refuse(&key("args"), why);
    }
    if settings.danger == Some(DangerLevel::Blocked) {
        findings.refuse(&key("danger"), "allowed: safe, warning, dangerous");
    }
    Some(CustomToolConfig {
        description: settings.description.trim().to_owned(),
        input_schema,
        command,
        danger: settings.danger.unwrap_or(DangerLevel::Dangerous),
        timeout: settings.timeout.map(|timeout| timeout.0),
        network: settings.network,
        name,
    })
}

fn check_name(name: &str) -> Result<(), String> {
    let fits = name.len() <= MAX_NAME
        && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'));
    if !fits {
        return Err(format!(
            "a tool's name begins with a letter and has up to {MAX_NAME} letters, digits, _ and -"
        ));
    }
    let is_taken = core_tools().contains(&name) || WITH_BASH.contains(&name);
    if is_taken || name.starts_with("mcp__") {
        return Err("this name is taken by a tool of another sort".to_owned());
    }
    Ok(())
}

/// Makes a whole schema of the settings: a schema of an object, or its properties alone.
fn schema(given: BTreeMap<String, Value>) -> Result<Value, String> {
    let mut given: Map<String, Value> = given.into_iter().collect();
    if !given.contains_key("properties") && !given.is_empty() {
        return Err("needs `properties`, a table of the inputs".to_owned());
    }
    if given.get("type").is_some_and(|kind| kind != "object") {
        return Err("`type` is object: inputs have names".to_owned());
    }
    let allowed = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "title",
    ];
    if let Some(other) = given.keys().find(|key| !allowed.contains(&key.as_str())) {
        return Err(format!(
            "`{other}` is not checked here; allowed: {}",
            allowed.join(", ")
        ));
    }
    let properties = match given.remove("properties") {
        None => Map::new(),
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err("`properties` is a table of the inputs".to_owned()),
    };
    for (name, property) in &properties {
        check_property(name, property)?;
    }
    let mut variables = BTreeSet::new();
    for name in properties.keys() {
        if !variables.insert(template::variable(name)) {
            return Err(format!("`{name}` and another input would be one variable"));
        }
    }
    let required = given.remove("required").unwrap_or_else(|| json!([]));
    let known = |name: &Value| {
        name.as_str()
            .is_some_and(|name| properties.contains_key(name))
    };
    if !required
        .as_array()
        .is_some_and(|names| names.iter().all(known))
    {
        return Err("`required` is a list of names of `properties`".to_owned());
    }
    Ok(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}

fn check_property(name: &str, property: &Value) -> Result<(), String> {
    let named = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if name.is_empty() || !name.chars().all(named) {
        return Err(format!(
            "the name of input {name:?} has other than letters, digits, _ and -"
        ));
    }
    let Some(property) = property.as_object() else {
        return Err(format!("`{name}` is a table, e.g. {{ type = \"string\" }}"));
    };
    if let Some(other) = property.keys().find(|key| !CHECKED.contains(&key.as_str())) {
        return Err(format!(
            "`{name}`: `{other}` is not checked here; allowed: {}",
            CHECKED.join(", ")
        ));
    }
    let kind = property.get("type").and_then(Value::as_str);
    match kind {
        Some("string" | "integer" | "number" | "boolean" | "array") => Ok(()),
        _ => Err(format!(
            "`{name}`: `type` is one of string, integer, number, boolean, array"
        )),
    }
}

/// A placeholder that names no input would silently leave its argument out.
fn check_template(command: &CustomCommand, schema: &Value) -> Result<(), String> {
    let CustomCommand::Program { args, .. } = command else {
        return Ok(());
    };
    for arg in args {
        for piece in pieces(arg) {
            if let Piece::Input(name) = piece
                && schema.pointer(&format!("/properties/{name}")).is_none()
            {
                return Err(format!("{arg:?} names `{name}`, which is no input"));
            }
        }
    }
    Ok(())
}
