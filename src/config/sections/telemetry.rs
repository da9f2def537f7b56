//! The section `[telemetry.otlp]`: spans and figures for a collector of OpenTelemetry.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::named_value::NamedValue;
use crate::units::{DAY, Span};

/// What is sent to others about how the daemon does.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TelemetrySettings {
    /// A collector of OpenTelemetry. It is sent times, counts and names of models and tools, never what was said, files,
    /// commands or secrets.
    pub(crate) otlp: OtlpSettings,
}

/// A collector of OpenTelemetry.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OtlpSettings {
    /// Its address for OTLP over HTTP, without `/v1/traces`, e.g. `http://127.0.0.1:4318`. `env` for that of the variables
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` and `OTEL_EXPORTER_OTLP_HEADERS`. Empty: nothing is sent.
    pub(crate) endpoint: String,
    /// Headers of each request, such as `authorization`: texts, or `{value = "…", secret = true}`. None is shown.
    pub(crate) headers: BTreeMap<String, NamedValue>,
    /// Whether spans are sent: of exchanges, turns, requests to models and calls of tools.
    pub(crate) traces: bool,
    /// Whether the figures of `/metrics` are sent.
    pub(crate) metrics: bool,
    /// How often figures are sent; 1s to 24h.
    #[serde(with = "Span::<1_000, DAY>")]
    pub(crate) interval: Duration,
}
