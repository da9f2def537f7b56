//! The values of all sources together: what is set, where it came from, what the default is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::origin::Origin;

/// All values, the later source over the earlier, each with its origin.
pub(crate) struct Merged {
    pub(crate) values: Value,
    /// The compiled-in ones alone.
    pub(crate) defaults: Value,
    /// Where values came from that are no default, by their path; a table speaks for what is in it.
    origins: BTreeMap<Vec<String>, Origin>,
    /// Where a value was wrong, and is no more: it has its error.
    restored: BTreeSet<Vec<String>>,
}

impl Merged {
    pub(crate) fn new(defaults: Map<String, Value>) -> Self {
        let defaults = Value::Object(defaults);
        Self {
            values: defaults.clone(),
            defaults,
            origins: BTreeMap::new(),
            restored: BTreeSet::new(),
        }
    }

    pub(crate) fn add(&mut self, values: Map<String, Value>, origin: &Origin) {
        let mut mark = |path: &[String]| drop(self.origins.insert(path.to_vec(), origin.clone()));
        put_over(
            &mut self.values,
            Value::Object(values),
            &mut Vec::new(),
            &mut mark,
        );
    }

    /// Returns the names in a table, in the order in which they came.
    pub(crate) fn names(&self, path: &[&str]) -> Vec<String> {
        let table = self.get(path).and_then(Value::as_object);
        table.into_iter().flat_map(Map::keys).cloned().collect()
    }

    pub(crate) fn get(&self, path: &[&str]) -> Option<&Value> {
        find(&self.values, path)
    }

    /// Returns where the value at a path came from; that of the nearest table around it where the
    /// value itself is not there.
    pub(crate) fn origin(&self, path: &[&str]) -> Origin {
        let mut path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
        loop {
            if let Some(origin) = self.origins.get(&path) {
                return origin.clone();
            }
            if path.pop().is_none() {
                return Origin::Default;
            }
        }
    }

    /// Replaces the value at a path, or what is around it in a list.
    pub(crate) fn replace(&mut self, path: &[&str], value: Value) -> bool {
        set(&mut self.values, path, Some(value))
    }

    /// Returns whether a value was set at a path which was wrong.
    pub(crate) fn was_wrong(&self, path: &[&str]) -> bool {
        let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
        self.restored.contains(&path)
    }

    /// Puts the default back at a path, or removes what has none.
    ///
    /// Of a list it is the whole list. `false` where nothing was changed.
    pub(crate) fn restore(&mut self, path: &[&str]) -> bool {
        let mut path = path;
        loop {
            let default = find(&self.defaults, path).cloned();
            if set(&mut self.values, path, default) {
                let path = path.iter().map(|part| (*part).to_owned());
                self.restored.insert(path.collect());
                return true;
            }
            match path.split_last() {
                Some((_, parents)) if !parents.is_empty() => path = parents,
                _ => return false,
            }
        }
    }
}

/// Merges tables and replaces everything else; `mark` gets the path of what was put there.
fn put_over(
    lower: &mut Value,
    upper: Value,
    path: &mut Vec<String>,
    mark: &mut impl FnMut(&[String]),
) {
    match (lower, upper) {
        (Value::Object(lower), Value::Object(upper)) => {
            for (key, value) in upper {
                path.push(key.clone());
                match lower.get_mut(&key) {
                    Some(lower) => put_over(lower, value, path, mark),
                    None => {
                        mark(path);
                        lower.insert(key, value);
                    }
                }
                path.pop();
            }
        }
        (lower, upper) => {
            mark(path);
            *lower = upper;
        }
    }
}

fn find<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, part| match value {
        Value::Object(table) => table.get(*part),
        Value::Array(values) => values.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Sets or removes an entry of a table that is there; `false` where it is not.
fn set(root: &mut Value, path: &[&str], value: Option<Value>) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return false;
    };
    let table = parents
        .iter()
        .try_fold(root, |table, part| table.as_object_mut()?.get_mut(*part));
    let Some(Value::Object(entries)) = table else {
        return false;
    };
    match value {
        Some(value) => entries.insert((*last).to_owned(), value).is_some(),
        None => entries.remove(*last).is_some(),
    }
}
