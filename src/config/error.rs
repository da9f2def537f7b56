//! What is wrong with a configuration: all of it at once, each with its key and its source.

use std::fmt;
use std::path::PathBuf;

use super::origin::Origin;

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

/// One thing that is wrong with a configuration. Texts hold no secrets.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that cannot be read, or is not in its format.
    #[error("{}{}: {message}", path.display(), written(*place))]
    File {
        /// The file.
        path: PathBuf,
        /// Line and column, from 1, where the format's reader says so.
        place: Option<(usize, usize)>,
        /// What is wrong with it.
        message: String,
    },
    /// A key that does not exist.
    #[error("{key}: unknown key ({origin}); {hint}")]
    UnknownKey {
        /// The key, with dots between its parts.
        key: String,
        /// Where it was set.
        origin: Origin,
        /// The nearest name, or the names there are.
        hint: String,
    },
    /// A value of the wrong type, out of its range, or that names what does not exist.
    #[error("{key} = {value} ({origin}): {message}")]
    Value {
        /// The key, with dots between its parts.
        key: String,
        /// The value, secrets masked.
        value: String,
        /// Where it was set.
        origin: Origin,
        /// What is allowed.
        message: String,
    },
    /// A value that is missing, or sections that contradict each other.
    #[error("{key}: {message}")]
    Section {
        /// The section or key.
        key: String,
        /// What is wrong, and what to do.
        message: String,
    },
}

impl ConfigError {
    /// Returns the key that the error is about, or the file's path.
    pub fn key(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::UnknownKey { key, .. } | Self::Value { key, .. } | Self::Section { key, .. } => {
                key.clone()
            }
        }
    }
}

fn written(place: Option<(usize, usize)>) -> String {
    place.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"))
}

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
            ConfigError::UnknownKey {
                key: "server.prot".into(),
                origin: Origin::Flag("--x".into()),
                hint: "did you mean \"port\"?".into(),
            },
            ConfigError::File {
                path: "/c.toml".into(),
                place: Some((3, 7)),
                message: "expected `=`".into(),
            },
        ]);
        assert_eq!(
            errors.to_string(),
            "the configuration has 2 errors:\n  \
             server.prot: unknown key (flag --x); did you mean \"port\"?\n  \
             /c.toml:3:7: expected `=`"
        );
    }
}
