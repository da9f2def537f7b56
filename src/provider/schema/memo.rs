//! Schemas that were normalised before: the same tools go with each request, and to normalise theirs took more time than
//! all else that a request is made from.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use serde_json::Value;

use super::{Dialect, SchemaProblem, normalise};

/// Most schemas that are remembered, each for each wire format: the tools of a dozen servers.
const MAX_KNOWN: usize = 1024;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// By the schema's address, which nothing else has as long as a reference to it is kept, a weak one included.
type Known = HashMap<(usize, Dialect), (Weak<Value>, Result<Arc<Value>, SchemaProblem>)>;

/// Does what [`normalise`] does, once for a schema.
pub(super) fn normalised(
    schema: &Arc<Value>,
    dialect: Dialect,
) -> Result<Arc<Value>, SchemaProblem> {
    let key = (Arc::as_ptr(schema).addr(), dialect);
    if let Some((_, normal)) = KNOWN.lock().get(&key) {
        return normal.clone();
    }
    let normal = normalise(schema, dialect).map(Arc::new);
    let mut known = KNOWN.lock();
    if known.len() >= MAX_KNOWN {
        known.retain(|_, (schema, _)| schema.strong_count() > 0);
    }
    if known.len() < MAX_KNOWN {
        known.insert(key, (Arc::downgrade(schema), normal.clone()));
    }
    normal
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_normalised_once_for_each_wire_and_never_taken_for_another() {
        let schema = Arc::new(
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}),
        );
        for dialect in [Dialect::Anthropic, Dialect::Gemini] {
            let first = normalised(&schema, dialect).unwrap();
            assert_eq!(*first, normalise(&schema, dialect).unwrap());
            assert!(Arc::ptr_eq(&first, &normalised(&schema, dialect).unwrap()));
        }
        for number in 0..3 * MAX_KNOWN {
            let schema =
                Arc::new(json!({"type": "object", "properties": {format!("p{number}"): {}}}));
            assert_eq!(
                *normalised(&schema, Dialect::Chat).unwrap(),
                normalise(&schema, Dialect::Chat).unwrap()
            );
        }
        let none = Arc::new(json!({"type": "string"}));
        assert_eq!(
            normalised(&none, Dialect::Chat),
            Err(SchemaProblem::NotAnObject)
        );
        assert_eq!(
            normalised(&none, Dialect::Chat),
            Err(SchemaProblem::NotAnObject)
        );
    }
}
