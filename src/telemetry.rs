//! Logging to stderr, figures, spans, and the removal of secrets from whatever leaves the daemon as text.
//!
//! Nothing here decides what is logged, and nothing is ever written to stdout. Secrets are taken
//! out of each line by a [`Redactor`], which is as good for tool results and errors.

pub mod metrics;
mod redact;
pub mod traces;
mod writer;

use std::io::IsTerminal;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Deserialize;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer as _};

pub use self::redact::{Hidden, MASK, Redactor, Stream, Unit};
pub use self::writer::LogGuard;

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Human on a terminal, JSON otherwise.
    #[value(skip)]
    Auto,
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter cannot be read.
    #[error("the log filter {filter:?} cannot be read: {source}")]
    Filter {
        /// The filter.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// The thread that writes could not be started.
    #[error("the log's thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
    /// Something else in this process logs already.
    #[error("logging is set up already: {0}")]
    Twice(#[from] TryInitError),
}

/// Libraries that log what others send, and what of theirs is logged: `rmcp` below warnings what MCP servers say,
/// `tungstenite` at `trace` each frame of a client, keys in it too, `lopdf` as errors what is wrong with each object of a
/// PDF, `deadpool` and `tokio_postgres` at `debug` the statements and the address of a database. Whoever wants that names
/// them.
const TALKATIVE: [(&str, &str); 5] = [
    ("deadpool", "off"),
    ("lopdf", "off"),
    ("rmcp", "error"),
    ("tokio_postgres", "warn"),
    ("tungstenite", "error"),
];

/// Reads a filter such as `info` or `outrigger=debug`; patterns in it are plain texts.
pub fn filter(text: &str) -> Result<EnvFilter, ParseError> {
    let mut filter = EnvFilter::builder().with_regex(false).parse(text)?;
    for (library, level) in TALKATIVE {
        if !text.contains(library) {
            filter = filter.add_directive(format!("{library}={level}").parse()?);
        }
    }
    Ok(filter)
}

/// Sets up logging to stderr for the whole process, once.
///
/// Lines are written by a thread of their own; dropping the guard waits shortly for those that are left. Spans go to
/// `traces` as well, where somebody wants them.
pub fn init(
    level: &str,
    format: LogFormat,
    redactor: Redactor,
    traces: Option<traces::Sink>,
) -> Result<LogGuard, TelemetryError> {
    let filter = filter(level).map_err(|source| TelemetryError::Filter {
        filter: level.to_owned(),
        source,
    })?;
    let is_terminal = std::io::stderr().is_terminal();
    let (lines, guard) = writer::start(std::io::stderr(), redactor)?;
    let layer = tracing_subscriber::fmt::layer().with_writer(lines);
    let layer = if format == LogFormat::Human || (format == LogFormat::Auto && is_terminal) {
        // The fields of the spans at the end, without their names: a line stays a line.
        let layer = layer.compact().with_target(false).with_timer(TimeOfDay);
        layer.with_ansi(is_terminal).boxed()
    } else {
        layer.json().flatten_event(true).boxed()
    };
    match traces {
        None => tracing_subscriber::registry()
            .with(layer)
            .with(filter)
            .try_init()?,
        // What is not to be in the log may be in a span all the same.
        Some(sink) => tracing_subscriber::registry()
            .with(layer.with_filter(filter))
            .with(traces::layer(sink))
            .try_init()?,
    }
    Ok(guard)
}

/// The time of a line for people, in UTC.
struct TimeOfDay;

impl FormatTime for TimeOfDay {
    fn format_time(&self, line: &mut Writer<'_>) -> std::fmt::Result {
        write!(line, "{}", jiff::Timestamp::now().strftime("%H:%M:%SZ"))
    }
}
