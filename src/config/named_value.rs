//! The value of a variable or header, and whether it is a secret.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::secret;

/// The value of a variable or header: a text, or a table that says besides whether that is a secret.
///
/// Never shown by `Debug`, secret or not.
#[derive(Clone, Debug)]
pub struct NamedValue {
    text: SecretString,
    /// The operator's word; where there is none, name and form tell.
    secret: Option<bool>,
}

impl NamedValue {
    /// Takes a value for a secret, whatever it looks like.
    pub(super) fn secret(text: String) -> Self {
        Self {
            text: SecretString::from(text),
            secret: Some(true),
        }
    }

    /// Lists what of it is a secret, under this name; nothing where it is an ordinary value.
    pub fn secrets(&self, name: &str) -> Vec<SecretString> {
        secret::in_value(name, self.text.expose_secret(), self.secret)
            .into_iter()
            .map(SecretString::from)
            .collect()
    }
}

impl From<String> for NamedValue {
    fn from(text: String) -> Self {
        Self {
            text: SecretString::from(text),
            secret: None,
        }
    }
}

impl From<&str> for NamedValue {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl ExposeSecret<str> for NamedValue {
    fn expose_secret(&self) -> &str {
        self.text.expose_secret()
    }
}

impl<'de> Deserialize<'de> for NamedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            value: String,
            secret: Option<bool>,
        }
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = NamedValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a table such as {value = \"…\", secret = true}")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<NamedValue, E> {
                Ok(text.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NamedValue, A::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(NamedValue {
                    text: SecretString::from(table.value),
                    secret: table.secret,
                })
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for NamedValue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NamedValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A text, or a table that says besides whether that is a secret.",
            "anyOf": [
                {"type": "string", "format": "secret"},
                {
                    "type": "object",
                    "properties": {
                        "value": {"type": "string", "format": "secret"},
                        "secret": {"type": "boolean"}
                    },
                    "required": ["value"],
                    "additionalProperties": false
                }
            ]
        })
    }
}
