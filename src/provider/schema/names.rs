//! Tool names that every vendor accepts, and the way back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::message::ToolSpec;

/// Longest name that every vendor accepts, in characters (`docs/providers.md`, "Tool names").
const MAX_NAME: usize = 64;

/// Tools whose own name no vendor would accept, by the name they bear on the wire instead.
///
/// The name on the wire is a function of the tool's own name alone, so that histories keep it from
/// one request to the next. Empty in the ordinary case.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolNames(BTreeMap<String, String>);

impl ToolNames {
    /// Notes the tools that need another name on the wire.
    pub(crate) fn new(tools: &[ToolSpec]) -> Self {
        Self(
            tools
                .iter()
                .filter_map(|tool| match wire_name(&tool.name) {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(wire) => Some((wire, tool.name.clone())),
                })
                .collect(),
        )
    }

    /// Returns the tool's own name for the one a model used.
    pub(crate) fn internal<'a>(&'a self, wire: &'a str) -> &'a str {
        self.0.get(wire).map_or(wire, String::as_str)
    }
}

/// Returns the name a tool bears on the wire: its own where that is `^[A-Za-z0-9_-]{1,64}$`, else what
/// is left of it and 8 digits of its hash, which keep two such names apart.
pub(crate) fn wire_name(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(allowed) {
        return Cow::Borrowed(name);
    }
    let digest = Sha256::digest(name.as_bytes());
    let mut tail = HEXLOWER.encode(&digest);
    tail.truncate(8);
    let head: String = name
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .take(MAX_NAME - tail.len() - 1)
        .collect();
    Cow::Owned(format!("{head}_{tail}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{DangerLevel, ToolCategory};

    fn tool(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}).into(),
            category: ToolCategory::Mcp,
            danger_level: DangerLevel::Dangerous,
            origin: "mcp:test".to_owned(),
        }
    }

    #[test]
    fn there_and_back() {
        let long = "x".repeat(65);
        let exact = "x".repeat(64);
        let names = ["bash", "a b", "a.b", "", "é", &long, &exact];
        let tools: Vec<_> = names.iter().map(|name| tool(name)).collect();
        let map = ToolNames::new(&tools);
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            let wire = wire_name(name);
            assert!((1..=MAX_NAME).contains(&wire.len()), "{wire}");
            assert!(
                wire.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
            );
            assert_eq!(map.internal(&wire), name);
            assert!(seen.insert(wire.into_owned()));
        }
        assert_eq!(map.internal("unheard_of"), "unheard_of");
        assert_eq!(wire_name("bash"), "bash");
    }
}
