//! What checking comes to besides the configuration: errors, warnings, and values that were derived.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::error::ConfigError;
use super::super::load::Sources;
use super::super::merged::Merged;
use super::super::origin::{Origin, shown, without_password};
use super::super::show::Shown;
use super::super::typed::written;
use crate::units::{Size, Span, format_duration, format_size};

/// Longest duration of anything that has no limit of its own.
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Shortest duration of anything that may not be zero.
const INSTANT: Duration = Duration::from_millis(1);

/// Gathers what checking finds.
pub(super) struct Findings<'a> {
    pub(super) merged: &'a Merged,
    pub(super) sources: &'a Sources,
    pub(super) errors: &'a mut Vec<ConfigError>,
    pub(super) warnings: Vec<String>,
    /// Values that nobody set, with where they came from instead.
    pub(super) derived: Vec<Shown>,
}

impl Findings<'_> {
    /// Refuses the value at a path; `message` says what is allowed.
    pub(super) fn refuse(&mut self, path: &[&str], message: impl Into<String>) {
        let (key, message) = (written(path), message.into());
        self.errors.push(match self.merged.get(path) {
            Some(value) => ConfigError::Value {
                key,
                value: shown(path, value),
                origin: self.merged.origin(path),
                message,
            },
            None => ConfigError::Section { key, message },
        });
    }

    /// Adds what is wrong with something that is no key, e.g. an environment variable.
    pub(super) fn error(&mut self, error: ConfigError) {
        self.errors.push(error);
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

    /// Returns a number that must be in a range.
    pub(super) fn number<T: TryFrom<u64> + Default>(
        &mut self,
        path: &[&str],
        number: u64,
        range: &RangeInclusive<u64>,
    ) -> T {
        if !range.contains(&number) {
            self.refuse(
                path,
                format!("allowed: {} to {}", range.start(), range.end()),
            );
        }
        T::try_from(number).unwrap_or_default()
    }

    /// Returns a size in bytes that must be in a range.
    pub(super) fn size(&mut self, path: &[&str], size: Size, range: &RangeInclusive<u64>) -> usize {
        if !range.contains(&size.0) {
            let (least, most) = (format_size(*range.start()), format_size(*range.end()));
            self.refuse(path, format!("allowed: {least} to {most}"));
        }
        usize::try_from(size.0).unwrap_or(usize::MAX)
    }

    /// Returns a duration that must be between 1 ms and a limit.
    pub(super) fn duration(&mut self, path: &[&str], span: Span, most: Duration) -> Duration {
        self.duration_between(path, span.0, INSTANT..=most)
    }

    /// Returns a duration up to a limit; zero means something of its own.
    pub(super) fn duration_or_zero(
        &mut self,
        path: &[&str],
        span: Span,
        most: Duration,
    ) -> Duration {
        self.duration_between(path, span.0, Duration::ZERO..=most)
    }

    fn duration_between(
        &mut self,
        path: &[&str],
        duration: Duration,
        range: RangeInclusive<Duration>,
    ) -> Duration {
        if !range.contains(&duration) {
            let (least, most) = (
                format_duration(*range.start()),
                format_duration(*range.end()),
            );
            self.refuse(path, format!("allowed: {least} to {most}"));
        }
        duration
    }

    /// Makes a path absolute: `~/` is the home directory, anything else relative to where the
    /// daemon was started.
    pub(super) fn absolute(&self, text: &str) -> PathBuf {
        let home = self.sources.home.as_deref();
        match (text.strip_prefix('~'), home) {
            (Some(""), Some(home)) => home.to_owned(),
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => self.sources.working_directory.join(Path::new(text)),
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
        let text = without_password(text);
        self.refuse(
            path,
            format!("expected a URL such as https://host/path; {problem}: {text:?}"),
        );
        None
    }
}
