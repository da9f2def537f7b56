//! The JSON schema of the contract: one document whose root accepts every frame of either direction.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{Command, Event};

/// Returns the schema.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let command = generator.subschema_for::<Command>();
    let event = generator.subschema_for::<Event>();
    let definitions: Map<String, Value> = generator.take_definitions(true);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Outrigger protocol, version 1",
        "anyOf": [command, event],
        "$defs": definitions,
    })
}
