//! Reads JSON into a tree, and notes a key that an object has twice: readers differ in which one counts, so neither does.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The deepest nesting that is read: what walks the tree need not be protected.
const MAX_DEPTH: usize = 128;

/// Returns the value of a text, and the first key that occurs twice in one object, at any depth.
pub(crate) fn read(text: &str) -> serde_json::Result<(Value, Option<String>)> {
    let mut twice = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    // Its own limit is one level less.
    reader.disable_recursion_limit();
    let tree = Tree {
        room: MAX_DEPTH,
        twice: &mut twice,
    };
    let value = tree.deserialize(&mut reader)?;
    reader.end()?;
    Ok((value, twice))
}

struct Tree<'a> {
    /// Levels that may still be nested.
    room: usize,
    twice: &'a mut Option<String>,
}

impl Tree<'_> {
    fn inner<E: Error>(&mut self) -> Result<Tree<'_>, E> {
        match self.room.checked_sub(1) {
            Some(room) => Ok(Tree {
                room,
                twice: self.twice,
            }),
            None => Err(E::custom("recursion limit exceeded")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut tree = Vec::new();
        while let Some(item) = items.next_element_seed(self.inner()?)? {
            tree.push(item);
        }
        Ok(Value::Array(tree))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Value, A::Error> {
        let mut tree = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if tree.contains_key(&key) {
                self.twice.get_or_insert_with(|| key.clone());
            }
            let value = fields.next_value_seed(self.inner()?)?;
            tree.insert(key, value);
        }
        Ok(Value::Object(tree))
    }
}

#[cfg(test)]
mod tests {
    fn twice(text: &str) -> Option<String> {
        super::read(text).unwrap().1
    }

    #[test]
    fn a_key_that_occurs_twice_is_found_beside_what_is_deepest() {
        let deep = format!("{}{}", "[".repeat(127), "]".repeat(127));
        for (text, wanted) in [
            (format!(r#"{{"x":{deep},"a":1}}"#), None),
            (format!(r#"{{"a":1,"x":{deep},"a":2}}"#), Some("a")),
            (format!(r#"{{"x":{deep},"b":{{"c":1,"c":2}}}}"#), Some("c")),
        ] {
            assert_eq!(twice(&text).as_deref(), wanted);
        }
    }

    #[test]
    fn a_key_that_occurs_twice_is_found_at_any_depth() {
        for (text, wanted) in [
            (r#"{"a":1,"b":2}"#, None),
            (r#"{"a":1,"a":1}"#, Some("a")),
            (r#"{"a":1,"\u0061":2}"#, Some("a")),
            (r#"{"a":{"b":[{"c":1,"c":null}]}}"#, Some("c")),
            (r#"{"a":{"x":1},"b":{"x":1.5e300}}"#, None),
            (r#"[{"x":-1,"y":true},{"x":""}]"#, None),
        ] {
            assert_eq!(twice(text).as_deref(), wanted, "{text}");
        }
    }
}
