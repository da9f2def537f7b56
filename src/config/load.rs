//! From sources to a checked configuration, in three steps: `layers`, `typed`, `check`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use secrecy::SecretString;
use serde_json::Value;

use super::check::Findings;
use super::error::ConfigErrors;
use super::show::Values;
use super::{Config, check, keys, layers, typed, variables};

/// The environment variables of the process, or those of a test. On Windows, which takes no notice of the case of their
/// names and writes `Path`, the names are in upper case here.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Takes the variables of this process; those that are not UTF-8 are left out.
    pub fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// Returns a variable's text, trimmed; `None` where that is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let text = self.0.get(&here(name.to_owned()))?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// Returns names and values of the variables whose names start with `prefix`.
    pub(crate) fn starting_with(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .range(prefix.to_owned()..)
            .take_while(move |(name, _)| name.starts_with(prefix))
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(variables: T) -> Self {
        let own = |(name, value): (N, V)| (here(name.into()), value.into());
        Self(variables.into_iter().map(own).collect())
    }
}

/// Returns a variable's name as this system tells it from others.
fn here(name: String) -> String {
    match cfg!(windows) {
        true => name.to_uppercase(),
        false => name,
    }
}

/// One key that a flag of the command line sets.
#[derive(Clone)]
pub struct Override {
    pub(crate) flag: String,
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

impl Override {
    /// Sets `key`, e.g. `server.port`, by a flag, e.g. `--port`.
    pub fn new(flag: impl Into<String>, key: &'static str, value: impl Into<Value>) -> Self {
        Self {
            flag: flag.into(),
            key,
            value: value.into(),
        }
    }
}

/// Where a configuration comes from.
#[derive(Clone, Default)]
pub struct Sources {
    /// The file of `--config`, which replaces the user's.
    pub config_file: Option<PathBuf>,
    /// The directory that holds the user's `config.toml`; `None` for no user file.
    pub user_directory: Option<PathBuf>,
    /// The user's home directory, for `~/` and the default central storage.
    pub home: Option<PathBuf>,
    /// What relative paths are relative to; absolute.
    pub working_directory: PathBuf,
    /// The environment.
    pub environment: Environment,
    /// What the command that is run has as defaults of its own: all else counts more.
    pub defaults: Vec<Override>,
    /// What flags set, the later over the earlier.
    pub flags: Vec<Override>,
    /// The file of `--token-file`.
    pub token_file: Option<PathBuf>,
    /// The folder for what the daemon keeps; `None` where the user has none.
    pub state: Option<PathBuf>,
    /// The directory of `--record`, which every provider records into.
    pub record: Option<PathBuf>,
}

impl Sources {
    /// The sources of this process, without flags.
    pub fn of_process() -> Self {
        Self {
            user_directory: dirs::config_dir().map(|directory| directory.join("outrigger")),
            home: dirs::home_dir(),
            state: dirs::state_dir()
                .or_else(dirs::data_local_dir)
                .map(|directory| directory.join("outrigger")),
            working_directory: std::env::current_dir().unwrap_or_default(),
            environment: Environment::of_process(),
            ..Self::default()
        }
    }
}

/// A configuration that is valid, and what there is to say about it.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The token that was given by `--token-file` or `OUTRIGGER_TOKEN`, the file first; `None`
    /// where neither is there. `--token-stdin` is read by whoever owns stdin.
    pub token: Option<SecretString>,
    /// Each value with where it came from.
    pub values: Values,
    /// What is valid but probably not meant, a sentence each.
    pub warnings: Vec<String>,
}

/// Reads and checks the configuration, or says everything that is wrong with it, each with its key and its source and
/// without secrets; where a file cannot be read, nothing else is looked at.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigErrors> {
    let mut merged = layers::merge(sources).map_err(ConfigErrors)?;
    let mut errors = Vec::new();
    let Some(settings) = typed::settings(&mut merged, &mut errors) else {
        return Err(ConfigErrors(errors));
    };
    let mut findings = Findings::new(&merged, sources, errors);
    let token = findings.found(keys::token(sources));
    let config = check::check(settings, &mut findings);
    if !findings.errors.is_empty() {
        return Err(ConfigErrors(findings.errors));
    }
    let Findings {
        warnings, derived, ..
    } = findings;
    let unknown = variables::unknown(&sources.environment, &merged.defaults);
    Ok(Loaded {
        config,
        token,
        warnings: [unknown, warnings].concat(),
        values: Values::new(merged, derived),
    })
}

#[cfg(test)]
mod tests;
