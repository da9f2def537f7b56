//! Logging to stderr.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Reads a filter such as `info` or `outrigger=debug`; patterns in it are plain texts.
pub fn filter(text: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::builder().with_regex(false).parse(text)
}
