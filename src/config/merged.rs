//! The values of all sources together: what is set, where it came from, what the default is.

use figment::value::{Dict, Tag, Value};
use figment::{Figment, Profile, Provider};

use super::origin::Origin;

/// All values, the later source over the earlier, each with its origin.
pub(crate) struct Merged {
    figment: Figment,
    /// The values, a table.
    pub(crate) values: Value,
    /// The compiled-in ones alone.
    pub(crate) defaults: Value,
    /// The provider instances that a file names, in its order.
    pub(crate) providers: Vec<String>,
}

impl Merged {
    /// Takes the values out of what was put together.
    pub(crate) fn new(figment: Figment, defaults: Dict, providers: Vec<String>) -> Self {
        Self {
            values: Value::Dict(Tag::Default, data(&figment)),
            defaults: Value::Dict(Tag::Default, defaults),
            figment,
            providers,
        }
    }

    /// Returns the value at a path.
    pub(crate) fn get(&self, path: &[&str]) -> Option<&Value> {
        find(&self.values, path)
    }

    /// Returns where the value at a path came from; that of the nearest table around it where the
    /// value itself is not there.
    pub(crate) fn origin(&self, path: &[&str]) -> Origin {
        let mut value = &self.values;
        let mut tag = value.tag();
        for part in path {
            let Some(inner) = child(value, part) else {
                break;
            };
            value = inner;
            if !value.tag().is_default() {
                tag = value.tag();
            }
        }
        self.figment
            .get_metadata(tag)
            .map_or(Origin::Default, Origin::from_metadata)
    }

    /// Replaces the value at a path, or what is around it in a list.
    pub(crate) fn replace(&mut self, path: &[&str], value: Value) -> bool {
        set(&mut self.values, path, Some(value))
    }

    /// Puts the default back at a path, or removes what has none.
    ///
    /// Of a list it is the whole list. `false` where nothing was changed.
    pub(crate) fn restore(&mut self, path: &[&str]) -> bool {
        let mut path = path;
        loop {
            let default = find(&self.defaults, path).cloned();
            if set(&mut self.values, path, default) {
                return true;
            }
            match path.split_last() {
                Some((_, parents)) if !parents.is_empty() => path = parents,
                _ => return false,
            }
        }
    }
}

fn child<'a>(value: &'a Value, part: &str) -> Option<&'a Value> {
    match value {
        Value::Dict(_, table) => table.get(part),
        Value::Array(_, values) => values.get(part.parse::<usize>().ok()?),
        _ => None,
    }
}

fn find<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter()
        .try_fold(value, |value, part| child(value, part))
}

/// Sets or removes an entry of a table that is there; `false` where it is not.
fn set(root: &mut Value, path: &[&str], value: Option<Value>) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return false;
    };
    let mut table = root;
    for part in parents {
        let Value::Dict(_, entries) = table else {
            return false;
        };
        let Some(inner) = entries.get_mut(*part) else {
            return false;
        };
        table = inner;
    }
    let Value::Dict(_, entries) = table else {
        return false;
    };
    match value {
        Some(value) => entries.insert((*last).to_owned(), value).is_some(),
        None => entries.remove(*last).is_some(),
    }
}

/// The values that figment has put together so far.
pub(crate) fn data(figment: &Figment) -> Dict {
    let mut profiles = figment.data().unwrap_or_default();
    profiles.remove(&Profile::Default).unwrap_or_default()
}
