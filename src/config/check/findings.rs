//! What checking comes to besides the configuration: errors, warnings, and values that were derived.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use super::super::error::ConfigError;
use super::super::keys::{self, Found, SECRET_FORM};
use super::super::load::Sources;
use super::super::merged::Merged;
use super::super::origin::{MASK, Origin, is_secret, without_password};
use super::super::show::Shown;
use super::super::typed::written;

pub(in crate::config) struct Findings<'a> {
    pub(super) merged: &'a Merged,
    pub(super) sources: &'a Sources,
    pub(in crate::config) errors: Vec<ConfigError>,
    pub(in crate::config) warnings: Vec<String>,
    /// Values that nobody set, with where they came from instead.
    pub(in crate::config) derived: Vec<Shown>,
}

impl<'a> Findings<'a> {
    /// Begins with the errors that there are already.
    pub(in crate::config) fn new(
        merged: &'a Merged,
        sources: &'a Sources,
        errors: Vec<ConfigError>,
    ) -> Self {
        Self {
            merged,
            sources,
            errors,
            warnings: Vec::new(),
            derived: Vec::new(),
        }
    }

    /// Refuses the value at a path; `message` says what is allowed.
    pub(super) fn refuse(&mut self, path: &[&str], message: impl Into<String>) {
        let error = ConfigError::value(self.merged, path, message.into());
        self.errors.push(error);
    }

    /// Returns what was found; an error is added to the others.
    pub(in crate::config) fn found<T>(
        &mut self,
        found: Result<Option<T>, ConfigError>,
    ) -> Option<T> {
        found.unwrap_or_else(|error| {
            self.errors.push(error);
            None
        })
    }

    /// Notes a value that nobody set.
    pub(super) fn derive(
        &mut self,
        path: &[&str],
        value: impl Into<serde_json::Value>,
        origin: Origin,
    ) {
        self.derived.push(Shown {
            key: written(path),
            value: value.into(),
            origin,
        });
    }

    /// Checks a key that is set, or else looks for it in a variable of the environment.
    pub(super) fn key(
        &mut self,
        path: &[&str],
        set: Option<SecretString>,
        variable: &str,
    ) -> Option<SecretString> {
        if let Some(set) = set {
            if !keys::is_secret_text(set.expose_secret()) {
                self.refuse(path, SECRET_FORM);
            }
            return Some(set);
        }
        let found = keys::secret(&self.sources.environment, variable);
        let Found { secret, origin } = self.found(found)?;
        self.derive(path, MASK, origin);
        Some(secret)
    }

    /// Makes a path absolute: `~/` is the home directory, anything else relative to where the
    /// daemon was started.
    pub(super) fn absolute(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        match (path.strip_prefix("~"), self.sources.home.as_deref()) {
            (Ok(rest), Some(home)) => home.components().chain(rest.components()).collect(),
            _ => self.sources.working_directory.join(path),
        }
    }

    /// Checks that a text is an `http` or `https` URL without credentials and returns it parsed.
    pub(super) fn url(&mut self, path: &[&str], text: &str) -> Option<reqwest::Url> {
        let problem = match reqwest::Url::parse(text.trim()) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") => "the scheme is neither",
            Ok(url) if url.host_str().is_none_or(str::is_empty) => "it has no host",
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                "it holds a user or a password, which would be seen in logs"
            }
            Ok(url) => return Some(url),
            Err(_) => "it is no URL",
        };
        let shown = match is_secret(path) {
            true => String::new(),
            false => format!(": {:?}", without_password(text)),
        };
        self.refuse(
            path,
            format!("expected a URL such as https://host/path; {problem}{shown}"),
        );
        None
    }
}
