//! What is wrong with a configuration: all of it at once, each with its key and its source.

use std::fmt;
use std::path::Path;

use super::merged::Merged;
use super::origin::shown;
use super::typed::written;

/// Everything that is wrong with a configuration; never empty.
#[derive(Debug)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => write!(f, "the configuration has an error: {only}"),
            many => {
                write!(f, "the configuration has {} errors:", many.len())?;
                many.iter().try_for_each(|error| write!(f, "\n  {error}"))
            }
        }
    }
}

impl std::error::Error for ConfigErrors {}

/// One thing that is wrong with a configuration: a text with its key, file or variable, and no secrets.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// What is wrong with a key, a section or a variable.
    pub(crate) fn at(key: &str, message: impl fmt::Display) -> Self {
        Self(format!("{key}: {message}"))
    }

    /// What is wrong with a file, at a line and column from 1.
    pub(crate) fn file(path: &Path, place: Option<(usize, usize)>, message: &str) -> Self {
        let place = place.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
        Self(format!("{}{place}: {message}", path.display()))
    }

    /// Why the value at a path is refused; `message` says what is allowed.
    pub(crate) fn value(merged: &Merged, path: &[&str], message: impl fmt::Display) -> Self {
        let key = written(path);
        match merged.get(path) {
            Some(value) => {
                let (value, origin) = (shown(path, value), merged.origin(path));
                Self(format!("{key} = {value} ({origin}): {message}"))
            }
            None => Self::at(&key, message),
        }
    }
}

/// What to do about errors and warnings.
pub const HINT: &str = "mend what is named; docs/configuration.md has every key, and `outrigger config show` then prints what is in force";

/// Returns the candidate that is most probably meant, if any is near.
///
/// Case, `-` for `_`, and camelCase make no difference; beyond that a third of the letters may
/// be wrong.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
    let word = plain(word);
    let distance = |candidate| strsim::damerau_levenshtein(&word, &plain(candidate));
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| distance * 3 <= candidate.chars().count().max(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Says which words are allowed, and which of them is nearest.
pub(crate) fn one_of<'a>(word: &str, allowed: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let words: Vec<&str> = allowed.clone().into_iter().collect();
    let near = match nearest(word, allowed) {
        Some(near) => format!("; did you mean {near:?}?"),
        None => String::new(),
    };
    format!("allowed: {}{near}", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name() {
        let names = ["trust_level", "timeout", "max_turns", "root"];
        let cases = [
            ("trustLevel", Some("trust_level")),
            ("trust-level", Some("trust_level")),
            ("trustlevle", Some("trust_level")),
            ("timout", Some("timeout")),
            ("max_trun", Some("max_turns")),
            ("rot", Some("root")),
            ("elephant", None),
            ("", None),
        ];
        for (word, expected) in cases {
            assert_eq!(nearest(word, names), expected, "{word:?}");
        }
    }

    #[test]
    fn several_errors_take_a_line_each() {
        let errors = ConfigErrors(vec![
            ConfigError::at("server.prot", "unknown key"),
            ConfigError::file(Path::new("/c.toml"), Some((3, 7)), "expected `=`"),
        ]);
        assert_eq!(
            errors.to_string(),
            "the configuration has 2 errors:\n  \
             server.prot: unknown key\n  \
             /c.toml:3:7: expected `=`"
        );
    }
}
