//! Finds a key that an object has twice: readers differ in which one counts, so neither does.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Returns the first key that occurs twice in one object, at any depth. The text is known to be JSON.
pub(super) fn twice(text: &str) -> Option<String> {
    match look(text) {
        Ok(found) => found,
        Err(_) => {
            // Nested deeper than is read at once.
            let Fields(fields) = serde_json::from_str(text).ok()?;
            let mut keys = HashSet::new();
            let mut fields = fields.into_iter();
            fields.find_map(|(key, value)| match keys.insert(key.clone()) {
                true => look(value.get()).ok().flatten(),
                false => Some(key),
            })
        }
    }
}

fn look(text: &str) -> serde_json::Result<Option<String>> {
    let mut found = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    // An error may be how the reading was ended early; what is found tells why.
    match Look(&mut found).deserialize(&mut reader) {
        Err(error) if found.is_none() => Err(error),
        _ => Ok(found),
    }
}

/// An object's fields as they were written.
pub(super) struct Fields<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
                let mut found = Vec::new();
                while let Some(field) = fields.next_entry()? {
                    found.push(field);
                }
                Ok(Fields(found))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

struct Look<'a>(&'a mut Option<String>);

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _value: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _value: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _value: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _value: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _value: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Look(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = fields.next_key::<String>()? {
            if keys.contains(&key) {
                *self.0 = Some(key);
                return Err(A::Error::custom("twice"));
            }
            keys.insert(key);
            fields.next_value_seed(Look(self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::twice;

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
